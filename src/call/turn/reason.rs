//! Makes the message of a foreign server fit for an agent and for events: one line, bounded, without keys.

/// The most characters of a message.
const MOST_CHARACTERS: usize = 512;

/// What stands in the place of a key.
const REDACTED: &str = "[redacted]";

/// Beginnings of keys, of which each vendor has its own; what follows must have [`SHORTEST_KEY`] bytes.
const KEYS: &[&str] = &[
    "sk-",
    "sk_",
    "rk_",
    "pk-",
    "gsk_",
    "xai-",
    "pplx-",
    "AIza",
    "AQ.",
    "hf_",
    "ghp_",
    "gho_",
    "ghu_",
    "ghs_",
    "github_pat_",
    "ABSK",
    "bedrock-api-key-",
    "csk-",
    "r8_",
    "tgp_v1_",
    "nvapi-",
    "fw_",
    "ya29.",
    "eyJ",
    "AKIA",
    "ASIA",
    "glpat-",
    "xoxb-",
    "xoxp-",
    "dapi",
];

/// How many bytes a word that begins like a key has at least behind that beginning.
const SHORTEST_KEY: usize = 6;

/// How long a word of letters of both cases and digits is at least, to be taken for a key.
const SHORTEST_RANDOM: usize = 32;

/// The message as one line of at most 512 characters. Control characters and runs of white space become one space; words
/// that look like keys, and the word behind `Bearer`, become `[redacted]`.
pub fn clean_reason(message: &str) -> String {
    let mut cleaned = String::with_capacity(message.len().min(4 * MOST_CHARACTERS));
    let mut is_behind_bearer = false;
    let is_blank = |character: char| character.is_whitespace() || character.is_control();
    for word in message.split(is_blank).filter(|word| !word.is_empty()) {
        if !cleaned.is_empty() {
            cleaned.push(' ');
        }
        push_word(&mut cleaned, word, is_behind_bearer);
        is_behind_bearer =
            word.trim_matches(|character: char| !character.is_alphanumeric()).eq_ignore_ascii_case("bearer");
        // What is behind the bound is not looked at. Four bytes are the longest character.
        if cleaned.len() > 4 * MOST_CHARACTERS {
            break;
        }
    }
    if let Some((end, _)) = cleaned.char_indices().nth(MOST_CHARACTERS) {
        cleaned.truncate(end);
    }
    cleaned
}

/// Appends a word without the keys in it.
fn push_word(cleaned: &mut String, word: &str, is_key: bool) {
    let mut rest = word;
    while !rest.is_empty() {
        let start = rest.find(is_of_key).unwrap_or(rest.len());
        let (around, behind) = rest.split_at(start);
        cleaned.push_str(around);
        let end = behind.find(|character| !is_of_key(character)).unwrap_or(behind.len());
        let (part, behind) = behind.split_at(end);
        // OpenAI shows keys with stars in the middle, which are no characters of keys: what is around them goes too.
        let is_starred = behind.starts_with("***") || around.ends_with("***");
        if !part.is_empty() && (is_key || looks_like_key(part) || is_starred) {
            cleaned.push_str(REDACTED);
        } else {
            cleaned.push_str(part);
        }
        rest = behind;
    }
}

fn is_of_key(character: char) -> bool {
    character.is_ascii_alphanumeric() || "-_.+/~".contains(character)
}

fn looks_like_key(part: &str) -> bool {
    let begins_so = |beginning: &str| {
        part.match_indices(beginning).any(|(at, _)| {
            let is_start =
                part[..at].chars().next_back().is_none_or(|before| !before.is_ascii_alphanumeric());
            is_start && part.len() - at - beginning.len() >= SHORTEST_KEY
        })
    };
    if KEYS.iter().any(|beginning| begins_so(beginning)) {
        return true;
    }
    let is_random = |run: &str| {
        let has = |is: fn(&u8) -> bool| run.bytes().any(|byte| is(&byte));
        let is_hex = run.bytes().all(|byte| byte.is_ascii_hexdigit());
        run.len() >= SHORTEST_RANDOM
            && has(u8::is_ascii_digit)
            && (is_hex || has(u8::is_ascii_lowercase) && has(u8::is_ascii_uppercase))
    };
    part.split(|character: char| !character.is_ascii_alphanumeric()).any(is_random)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_becomes_one_line() {
        assert_eq!(clean_reason(" a\r\n\tb\u{1b}[31mc\u{85} d "), "a b [31mc d");
        assert_eq!(clean_reason(""), "");
    }

    #[test]
    fn a_message_has_at_most_512_characters() {
        assert_eq!(clean_reason(&"é".repeat(600)).chars().count(), 512);
        assert_eq!(clean_reason(&"é ".repeat(600)).chars().count(), 512);
        assert_eq!(clean_reason(&"a".repeat(512)).len(), 512);
    }

    #[test]
    fn keys_and_bearer_words_are_redacted() {
        let cleaned = [
            ("Incorrect API key provided: sk-proj-abcdefgh1234.", "Incorrect API key provided: [redacted]"),
            (
                "Incorrect API key provided: sk-ab***************wxyz. You can",
                "Incorrect API key provided: [redacted]***************[redacted] You can",
            ),
            ("got 'Authorization: Bearer abc'", "got 'Authorization: Bearer [redacted]'"),
            ("key=gsk_0123456789abcdef, model=x", "key=[redacted], model=x"),
            ("{\"token\":\"AbCdEfGhIjKlMnOpQrStUvWxYz012345\"}", "{\"token\":\"[redacted]\"}"),
            ("https://x.example/v1?key=AIzaSyA0123456789", "https://x.example/v1?key=[redacted]"),
        ];
        for (message, expected) in cleaned {
            assert_eq!(clean_reason(message), expected);
        }
    }

    #[test]
    fn names_of_models_and_ids_of_requests_stay() {
        for message in [
            "The model claude-haiku-4-5-20251001 does not exist",
            "accounts/fireworks/models/qwen3-coder-480b-a35b-instruct",
            "request 0199f3a1-7c6e-7000-8000-123456789abc failed",
            "task-1 risk-free",
        ] {
            assert_eq!(clean_reason(message), message);
        }
    }
}
