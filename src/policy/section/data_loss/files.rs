//! Files by their names: those that hold credentials, and places that are nobody's business (record.md, section 1.1).
//!
//! They count where a call names them as files; prose, code and listings name nothing.

use std::sync::LazyLock;

use aho_corasick::{AhoCorasick, AhoCorasickBuilder};

use super::decide::Ruled;
use super::written::{DetectorGroup, FindingAction};
use super::{DataLoss, FindingPlace, FindingVerdict};
use crate::call::{Kind, Tool, ToolCall};
use crate::decision::{Decision, RuleId, Verdict};
use crate::policy::Policy;
use crate::policy::scope::PolicyScope;

/// Names of files that hold credentials, in lower case.
const FILES: &[&str] = &[
    ".dockercfg",
    ".env",
    ".git-credentials",
    ".htpasswd",
    ".my.cnf",
    ".netrc",
    ".npmrc",
    ".pgpass",
    ".pypirc",
    "_netrc",
    "application_default_credentials.json",
    "credentials",
    "credentials.json",
    "id_dsa",
    "id_ecdsa",
    "id_ed25519",
    "id_rsa",
    "kubeconfig",
    "shadow",
];

/// Endings of such names.
const ENDINGS: &[&str] =
    &[".jks", ".kdbx", ".key", ".keystore", ".kubeconfig", ".p12", ".pem", ".pfx", ".ppk"];

/// Endings of `.env` files that are examples.
const EXAMPLES: &[&str] = &["default", "defaults", "dist", "example", "sample", "template"];

/// Directories that are protected with all that is in them.
const DIRECTORIES: &[&str] = &[".aws", ".azure", ".gnupg", ".kube", ".ssh", "gcloud", "secrets"];

/// A file that is nobody's business, by its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum NamedFile {
    /// It holds credentials: `.env`, `id_rsa` and their like.
    Credential,
    /// It stands in a place that does: `.ssh`, `secrets` and their like.
    Protected,
}

impl NamedFile {
    /// What the path names; none where it is any file.
    pub fn of(path: &str) -> Option<Self> {
        group(path)
    }

    /// Whether a text of JSON may name one: a first look. Shells take quotes and backslashes out of a name; the quotes of
    /// JSON itself stand in no name.
    pub fn may_stand_in(text: &[u8]) -> bool {
        static WORDS: LazyLock<Option<AhoCorasick>> = LazyLock::new(|| {
            let words = FILES.iter().chain(ENDINGS).chain(DIRECTORIES).chain(&["environ", "\\u"]);
            AhoCorasickBuilder::new().ascii_case_insensitive(true).build(words).ok()
        });
        let is_sign = |byte: &u8| matches!(byte, b'\'' | b'"' | b'\\');
        WORDS.as_ref().is_none_or(|words| {
            let has_signs = memchr::memchr2(b'\'', b'\\', text).is_some();
            let bare = || text.iter().copied().filter(|byte| !is_sign(byte)).collect::<Vec<u8>>();
            words.is_match(text) || has_signs && words.is_match(&bare())
        })
    }

    /// The kind of its findings, and the word in policies.
    pub fn kind(self) -> &'static str {
        match self {
            Self::Credential => DetectorGroup::CredentialFiles.as_str(),
            Self::Protected => DetectorGroup::ProtectedPaths.as_str(),
        }
    }

    /// The detector in events and in what stands in the place of its content.
    pub fn detector(self) -> &'static str {
        match self {
            Self::Credential => "credential-file",
            Self::Protected => "protected-path",
        }
    }
}

/// The group that a path belongs to.
fn group(path: &str) -> Option<NamedFile> {
    let path = path.trim().to_lowercase().replace('\\', "/");
    let parts: Vec<&str> = path.split('/').filter(|part| !matches!(*part, "" | ".")).collect();
    let is_environment = matches!(parts[..], ["proc", _, "environ"]) && path.starts_with('/');
    if is_environment || parts.iter().any(|part| DIRECTORIES.contains(part)) {
        return Some(NamedFile::Protected);
    }
    let name = parts.last()?;
    let is_environment = name.strip_prefix(".env.").is_some_and(|ending| !EXAMPLES.contains(&ending));
    let is_file =
        FILES.contains(name) || ENDINGS.iter().any(|ending| name.ends_with(ending)) || is_environment;
    is_file.then_some(NamedFile::Credential)
}

impl Policy {
    /// Decides about a file that a request names, or the content of one: what is told a model is replaced where policy says
    /// so.
    pub fn judge_file(&self, file: NamedFile, place: FindingPlace) -> FindingVerdict {
        let decided = |scope| {
            let parts = self.sections.data_loss.visible(scope);
            let written = parts.filter_map(|part| Some((part.stance.of_files(file)?, &part.rule)));
            // Of equals the first one, which is the cluster's.
            let strictest = written.reduce(|one, other| if other.0 > one.0 { other } else { one });
            strictest.map_or_else(
                || Ruled { action: FindingAction::Audit, rule: RuleId::builtin("outbound-exfiltration") },
                |(action, rule)| Ruled { action: in_place(action, place), rule: rule.clone() },
            )
        };
        self.settle(decided)
    }
}

/// What is done there: a text that a model is told is replaced, and nothing else can be.
fn in_place(action: FindingAction, place: FindingPlace) -> FindingAction {
    match action {
        FindingAction::Allow | FindingAction::Audit => action,
        FindingAction::Redact | FindingAction::Deny if place == FindingPlace::Told => FindingAction::Redact,
        FindingAction::Redact | FindingAction::Deny => FindingAction::Deny,
    }
}

impl DataLoss {
    /// Whether calls that name files could be denied.
    pub(in crate::policy) fn denies_files(&self, scope: PolicyScope) -> bool {
        self.visible(scope).any(|part| {
            [NamedFile::Credential, NamedFile::Protected].iter().any(|file| part.stance.denies_files(*file))
        })
    }

    /// The same of a tool.
    pub(in crate::policy) fn is_about(&self, tool: &Tool<'_>, scope: PolicyScope) -> bool {
        let names = |kind: &Kind| matches!(kind, Kind::Read | Kind::Write | Kind::Shell);
        self.denies_files(scope) && tool.kinds.iter().any(names)
    }

    /// The denial of a call that names a file of a group which a policy denies.
    pub(in crate::policy) fn file_denial(&self, call: &ToolCall<'_>, scope: PolicyScope) -> Option<Decision> {
        if !self.denies_files(scope) {
            return None;
        }
        let facts = call.facts.into_iter().chain(call.derived);
        let groups: Vec<NamedFile> =
            facts.flat_map(|facts| &facts.paths).filter_map(|path| group(path)).collect();
        self.visible(scope).find_map(|part| {
            let denied = groups.iter().find(|group| part.stance.denies_files(**group))?;
            let reason = match denied {
                NamedFile::Protected => "The call names a protected place (ProtectedPaths)",
                NamedFile::Credential => "The call names a file that holds credentials (CredentialFiles)",
            };
            Some(Decision::by(part.rule.clone(), Verdict::Deny, reason))
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;
    use proptest::sample::select;

    use super::*;

    #[test]
    fn files_are_known_by_their_names_and_places() {
        for path in [
            ".env",
            "/w/.env.local",
            "a/id_rsa",
            "~/.netrc",
            "C:\\Users\\a\\.npmrc",
            "tls/server.key",
            "x.PEM",
        ] {
            assert_eq!(group(path), Some(NamedFile::Credential), "{path}");
        }
        for path in [
            "~/.ssh/config",
            "/home/a/.aws/credentials",
            "/proc/self/environ",
            "/var/run/secrets/k/token",
            "/home/a/.kube/config",
        ] {
            assert_eq!(group(path), Some(NamedFile::Protected), "{path}");
        }
        for path in [
            ".env.example",
            "id_rsa.pub",
            "src/environ.rs",
            "docs/secrets.md",
            "keys.rs",
            "proc/1/environ.txt",
            "",
        ] {
            assert_eq!(group(path), None, "{path}");
        }
    }

    #[test]
    fn a_first_look_sees_a_name_in_which_a_shell_has_quotes() {
        for text in
            [r#"{"command":"cat .e''nv"}"#, r#"{"command":"cat .e\\nv"}"#, r#"{"command":"cat \".e\"nv"}"#]
        {
            assert!(NamedFile::may_stand_in(text.as_bytes()), "{text}");
        }
        assert!(!NamedFile::may_stand_in(br#"{"command":"cat 'a' \"b\""}"#));
    }

    const PARTS: [&str; 10] = [".env", ".e", "nv", "id_", "rsa", "'", "\"", "\\", " ", "a"];

    proptest! {
        #[test]
        fn the_quotes_of_json_hide_no_name(words in vec(vec(select(&PARTS), 0..6), 0..4)) {
            let words: Vec<String> = words.iter().map(|parts| parts.concat()).collect();
            let json = serde_json::json!({"command": words, "path": words.first()}).to_string();
            let bare = json.replace(['\'', '"', '\\'], "");
            let is_bare = NamedFile::may_stand_in(bare.as_bytes());
            prop_assert!(!is_bare || NamedFile::may_stand_in(json.as_bytes()), "{}", json);
        }
    }
}
