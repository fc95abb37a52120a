//! What the keys of known vendors look like. A shape begins with fixed letters and has a length, so that no other text
//! is taken for it; what only looks random is told apart.

use std::borrow::Cow;
use std::sync::LazyLock;

use aho_corasick::AhoCorasick;
use memchr::memmem;
use regex::bytes::Regex;

use crate::wire::percent;

/// The keys of one vendor, or of one kind.
struct KeyShape {
    owner: &'static str,
    /// The letters that every such key has.
    mark: &'static str,
    /// How many bytes stand before the mark.
    before: usize,
    /// The whole key.
    pattern: &'static str,
}

const fn shape(owner: &'static str, mark: &'static str, pattern: &'static str) -> KeyShape {
    KeyShape { owner, mark, before: 0, pattern }
}

/// From gitleaks' and betterleaks' rules (gitleaks.toml 8.x), and from the vendors' own documents where these have no
/// rule: Anthropic's OAuth, Google's OAuth, long GitHub installation tokens, Stripe's webhooks. Lengths are the least
/// that those have. Shapes without fixed letters (an AWS secret, a bare hex key) are not here.
const SHAPES: &[KeyShape] = &[
    shape("AWS", "AKIA", "AKIA[A-Z2-7]{16}"),
    shape("AWS", "ASIA", "ASIA[A-Z2-7]{16}"),
    shape("AWS", "ABIA", "ABIA[A-Z2-7]{16}"),
    shape("AWS", "ACCA", "ACCA[A-Z2-7]{16}"),
    shape("AWS", "A3T", "A3T[A-Z0-9][A-Z2-7]{16}"),
    shape("Amazon Bedrock", "ABSK", "ABSK[A-Za-z0-9+/]{109}"),
    shape("Amazon Bedrock", "bedrock-api-key-", "bedrock-api-key-YmVkcm9jay5hbWF6b25hd3MuY29t"),
    shape("Anthropic", "sk-ant-", "sk-ant-[A-Za-z0-9_-]{10,}"),
    shape("OpenAI", "sk-proj-", "sk-proj-[A-Za-z0-9_-]{20,}"),
    shape("OpenAI", "sk-svcacct-", "sk-svcacct-[A-Za-z0-9_-]{20,}"),
    shape("OpenAI", "sk-admin-", "sk-admin-[A-Za-z0-9_-]{20,}"),
    shape("OpenRouter", "sk-or-v1-", "sk-or-v1-[0-9a-f]{64}"),
    // OpenAI's older keys, DeepSeek's, Moonshot's and those of others that follow OpenAI.
    shape("OpenAI's kind", "sk-", "sk-[A-Za-z0-9]{32,}"),
    shape("Groq", "gsk_", "gsk_[A-Za-z0-9]{52}"),
    shape("xAI", "xai-", "xai-[A-Za-z0-9_-]{70,120}"),
    shape("Perplexity", "pplx-", "pplx-[A-Za-z0-9]{48}"),
    shape("Cerebras", "csk-", "csk-[a-z0-9]{48}"),
    shape("Replicate", "r8_", "r8_[A-Za-z0-9]{37}"),
    shape("Together", "tgp_v1_", "tgp_v1_[A-Za-z0-9_-]{43}"),
    shape("Google", "AIza", "AIza[A-Za-z0-9_-]{35}"),
    shape("Google", "AQ.Ab8RN6", "AQ\\.Ab8RN6[A-Za-z0-9_-]{44}"),
    shape("Google", "GOCSPX-", "GOCSPX-[A-Za-z0-9_-]{28}"),
    shape("Google", "ya29.", "ya29\\.[A-Za-z0-9_-]{20,}"),
    shape("Google", "1//0", "1//0[A-Za-z0-9_-]{35,}"),
    shape("GitHub", "ghp_", "ghp_[0-9A-Za-z]{36}"),
    shape("GitHub", "gho_", "gho_[0-9A-Za-z]{36}"),
    shape("GitHub", "ghu_", "ghu_[0-9A-Za-z]{36}"),
    shape("GitHub", "ghr_", "ghr_[0-9A-Za-z]{36}"),
    shape("GitHub", "ghs_", "ghs_[0-9A-Za-z_.-]{36,}"),
    shape("GitHub", "github_pat_", "github_pat_[0-9A-Za-z_]{82}"),
    shape("GitLab", "glpat-", "glpat-[0-9A-Za-z_-]{20,}"),
    shape("Slack", "xoxb-", "xoxb-[0-9]{10,13}-[0-9]{10,13}"),
    shape("Slack", "xoxp", "xoxp(?:-[0-9]{10,13}){3}-[A-Za-z0-9-]{28,34}"),
    shape("Slack", "xoxe", "xoxe(?:-[0-9]{10,13}){3}-[A-Za-z0-9-]{28,34}"),
    shape("Slack", "xapp-", "xapp-[0-9]-[A-Za-z0-9]+-[0-9]+-[A-Za-z0-9]+"),
    shape(
        "Slack",
        "hooks.slack.com/",
        "hooks\\.slack\\.com/(?:services|workflows|triggers)/[A-Za-z0-9+/]{43,56}",
    ),
    shape("Stripe", "sk_", "sk_(?:test|live|prod)_[A-Za-z0-9]{10,99}"),
    shape("Stripe", "rk_", "rk_(?:test|live|prod)_[A-Za-z0-9]{10,99}"),
    shape("Stripe", "whsec_", "whsec_[A-Za-z0-9+/=]{32,}"),
    shape("whoever holds a private key", "-----BEGIN", "-----BEGIN[ A-Z0-9_-]{0,100}PRIVATE KEY"),
    shape(
        "whoever signs JSON Web Tokens",
        "eyJ",
        "eyJ[A-Za-z0-9_-]{14,}\\.eyJ[A-Za-z0-9_-]{14,}\\.[A-Za-z0-9_-]{10,}",
    ),
    shape("Hugging Face", "hf_", "hf_[A-Za-z]{34}"),
    shape("Hugging Face", "api_org_", "api_org_[A-Za-z]{34}"),
    shape("npm", "npm_", "npm_[A-Za-z0-9]{36}"),
    shape("PyPI", "pypi-", "pypi-AgEIcHlwaS5vcmc[A-Za-z0-9_-]{50,}"),
    shape("crates.io", "cio", "cio[A-Za-z0-9]{32}"),
    shape("SendGrid", "SG.", "SG\\.[A-Za-z0-9_.=-]{66}"),
    shape("Mailgun", "key-", "key-[a-f0-9]{32}"),
    shape("Twilio", "SK", "SK[0-9a-fA-F]{32}"),
    shape("Databricks", "dapi", "dapi[a-f0-9]{32}"),
    shape("Vault", "hvs.", "hvs\\.[A-Za-z0-9_-]{90,}"),
    shape("Vault", "hvb.", "hvb\\.[A-Za-z0-9_-]{138,}"),
    KeyShape {
        owner: "Azure",
        mark: "Q~",
        before: 4,
        pattern: "[A-Za-z0-9_~.]{3}[0-9]Q~[A-Za-z0-9_~.-]{31,34}",
    },
    shape("Azure", "AccountKey=", "AccountKey=[A-Za-z0-9+/]{86}=="),
    shape("1Password", "ops_eyJ", "ops_eyJ[A-Za-z0-9+/]{250,}"),
    shape("Doppler", "dp.pt.", "dp\\.pt\\.[A-Za-z0-9]{43}"),
    shape("Linear", "lin_api_", "lin_api_[A-Za-z0-9]{40}"),
    shape("Notion", "ntn_", "ntn_[0-9]{11}[A-Za-z0-9]{35}"),
    shape("Vercel", "vck_", "vck_[A-Za-z0-9_-]{56}"),
    shape("Vercel", "vcp_", "vcp_[A-Za-z0-9_-]{56}"),
    shape("Supabase", "sbp_", "sbp_[a-z0-9_-]{40}"),
    shape("Supabase", "sb_secret_", "sb_secret_[A-Za-z0-9_-]{31}"),
    shape("Figma", "figd_", "figd_[A-Za-z0-9_-]{38,42}"),
    shape("Docker Hub", "dckr_pat_", "dckr_pat_[A-Za-z0-9_-]{27}"),
    shape("Docker Hub", "dckr_oat_", "dckr_oat_[A-Za-z0-9_-]{32}"),
    shape("LangSmith", "lsv2_", "lsv2_(?:pt|sk)_[0-9a-fA-F]{32}_[0-9a-fA-F]{10}"),
    shape("age", "AGE-SECRET-KEY-1", "AGE-SECRET-KEY-1[A-Z0-9]{58}"),
];

/// How often a text is percent-decoded before it is looked at once more.
const DECODINGS: usize = 3;

/// The shapes, ready to be searched for. It is made where a policy first requires a placeholder.
static SEARCH: LazyLock<Option<ShapeSearch>> = LazyLock::new(ShapeSearch::new);

struct ShapeSearch {
    /// The length of the shortest key, in bytes.
    least: usize,
    marks: AhoCorasick,
    /// In the order of the shapes, each tied to where the search begins.
    patterns: Vec<Regex>,
}

impl ShapeSearch {
    /// `None` for a row that is no pattern; a test finds it.
    fn new() -> Option<Self> {
        let marks = AhoCorasick::new(SHAPES.iter().map(|shape| shape.mark)).ok()?;
        let patterns = SHAPES.iter().map(|shape| Regex::new(&format!(r"\A(?-u:{})", shape.pattern)));
        let lengths =
            SHAPES.iter().map(|shape| regex_syntax::parse(shape.pattern).ok()?.properties().minimum_len());
        let least = lengths.collect::<Option<Vec<_>>>()?.into_iter().min()?;
        Some(Self { least, marks, patterns: patterns.collect::<Result<_, _>>().ok()? })
    }
}

/// Whose key a text looks like: a known shape stands in it, as it is or percent-encoded, that is no part of an
/// `accepted` placeholder.
pub(super) fn find(text: &[u8], accepted: &[&str]) -> Option<&'static str> {
    let Some(search) = SEARCH.as_ref() else { return Some("an unknown vendor") };
    // To decode makes no text longer.
    if text.len() < search.least {
        return None;
    }
    let mut decoded = percent::decode(text);
    for _ in 0..DECODINGS {
        if let Some(owner) = search.find(&decoded, accepted) {
            return Some(owner);
        }
        decoded = match decoded {
            Cow::Borrowed(_) => return None,
            Cow::Owned(text) => match percent::decode(&text) {
                Cow::Borrowed(_) => return None,
                Cow::Owned(next) => next.into(),
            },
        };
    }
    None
}

impl ShapeSearch {
    fn find(&self, text: &[u8], accepted: &[&str]) -> Option<&'static str> {
        self.marks.find_overlapping_iter(text).find_map(|mark| {
            let number = mark.pattern().as_usize();
            let (shape, pattern) = (SHAPES.get(number)?, self.patterns.get(number)?);
            let start = mark.start().checked_sub(shape.before)?;
            // In the middle of a word it is another word: `task-…` has no key of OpenAI.
            let is_inside = start.checked_sub(1).is_some_and(|before| is_word(text[before]));
            let end = start + pattern.find(text.get(start..).filter(|_| !is_inside)?)?.end();
            let is_ours = accepted.iter().any(|placeholder| covers(placeholder.as_bytes(), text, start..end));
            (!is_ours).then_some(shape.owner)
        })
    }
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_')
}

/// Whether a part of a text lies inside the placeholder.
fn covers(placeholder: &[u8], text: &[u8], part: std::ops::Range<usize>) -> bool {
    !placeholder.is_empty()
        && memmem::find_iter(text, placeholder)
            .any(|at| at <= part.start && part.end <= at + placeholder.len())
}

/// The shortest run of letters and digits that could be a key.
const LEAST_RUN: usize = 20;

/// Whether a text has a run of letters and digits, some of each and many different ones, that could be a key of a
/// vendor that nobody knows.
pub(super) fn looks_random(text: &[u8]) -> bool {
    if text.len() < LEAST_RUN {
        return false;
    }
    let runs = text.split(|byte| !byte.is_ascii_alphanumeric()).filter(|run| run.len() >= LEAST_RUN);
    runs.into_iter().any(|run| {
        let digits = run.iter().filter(|byte| byte.is_ascii_digit()).count();
        let mut seen = [false; 128];
        for byte in run {
            seen[usize::from(byte & 127)] = true;
        }
        let different = seen.iter().filter(|seen| **seen).count();
        digits >= 2 && run.len() - digits >= 2 && different >= 8
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn owner(text: &str) -> Option<&'static str> {
        find(text.as_bytes(), &["sk-ant-postern-0123456789abcdef", "AKIAPOSTERN234567ABC"])
    }

    #[test]
    fn every_row_is_a_pattern_that_begins_with_its_mark() {
        assert!(SEARCH.is_some());
        for shape in SHAPES {
            let pattern = shape.pattern.replace('\\', "");
            assert!(shape.before > 0 || pattern.starts_with(shape.mark), "{}", shape.pattern);
        }
    }

    #[test]
    fn a_key_is_known_by_its_shape_wherever_it_stands_and_percent_encoded() {
        for (text, vendor) in [
            ("sk-ant-api03-attackers-own", "Anthropic"),
            ("Bearer ghp_0123456789abcdefghijABCDEFGHIJ012345", "GitHub"),
            ("a=1&t=glpat-0123456789abcdefghij", "GitLab"),
            ("%73k-ant-api03-attackers%2down", "Anthropic"),
            ("%2573k-ant-api03-attackers", "Anthropic"),
            ("(AKIAQ234567ABCDEFGHI)", "AWS"),
            ("abc8Q~0123456789abcdef0123456789abcdef", "Azure"),
            (
                "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N",
                "whoever signs JSON Web Tokens",
            ),
        ] {
            assert_eq!(owner(text), Some(vendor), "{text}");
        }
    }

    #[test]
    fn our_placeholder_has_a_vendors_shape_and_passes_alone() {
        assert_eq!(owner("sk-ant-postern-0123456789abcdef"), None);
        assert_eq!(owner("u:sk-ant-postern-0123456789abcdef"), None);
        assert_eq!(owner("sk-ant-postern-0123456789abcdef-and-more"), Some("Anthropic"));
        assert_eq!(owner("sk-ant-postern-0123456789abcdef,sk-ant-attackers-own"), Some("Anthropic"));
        assert_eq!(owner("Credential=AKIAPOSTERN234567ABC/20260101/us-east-1/s3/aws4_request"), None);
    }

    #[test]
    fn words_ids_and_cursors_have_no_shape() {
        for text in [
            "task-0123456789abcdef0123456789abcdef",
            "cache-key-d41d8cd98f00b204e9800998ecf8427e",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            "0f8fad5b-d9cb-469f-a165-70867728950e",
            "eyJsYXN0X2lkIjoxMjM0NTY3ODkwfQ==",
            "d41d8cd98f00b204e9800998ecf8427e",
            "SKU-0123",
        ] {
            assert_eq!(owner(text), None, "{text}");
        }
    }

    #[test]
    fn what_looks_random_is_told_from_words_and_versions() {
        for text in ["d41d8cd98f00b204e9800998ecf8427e", "id=Zq9tYw1cKx8vB2nM4pL6rD0s"] {
            assert!(looks_random(text.as_bytes()), "{text}");
        }
        for text in [
            "claude-code-20250219,interleaved-thinking-2025-05-14",
            "claude-cli/1.0.83 (external, cli)",
            "0f8fad5b-d9cb-469f-a165-70867728950e",
            "application/vnd.github.v3+json",
            "Mozilla/5.0 (X11; Linux x86_64)",
        ] {
            assert!(!looks_random(text.as_bytes()), "{text}");
        }
    }
}
