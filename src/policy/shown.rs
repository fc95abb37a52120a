//! A value as a person may see it: on one line, shortened, without what looks like a secret.

/// The longest text that is shown, in characters.
const MOST_CHARACTERS: usize = 80;

/// Words of so many letters and digits mixed are taken for keys; names and commands are shorter or have one of both.
const KEY_LENGTH: usize = 16;

/// After these, with `=`, `:` or a space between, comes a secret.
const NAMES: &[&str] =
    &["password", "passwd", "pwd", "secret", "token", "apikey", "api_key", "api-key", "bearer", "basic"];

const HIDDEN: &str = "[hidden]";

/// The text in quotes, with a sign where something is left out.
pub(super) fn shown(text: &str) -> String {
    // What is cut off first needs no look; a word that the cut divides is hidden whole or not shown at all.
    let looked: String = text.chars().take(8 * MOST_CHARACTERS).collect();
    let plain = without_secrets(&looked);
    match plain.char_indices().nth(MOST_CHARACTERS) {
        Some((end, _)) => format!("{:?}…", plain.get(..end).unwrap_or_default()),
        None if looked.len() < text.len() => format!("{plain:?}…"),
        None => format!("{plain:?}"),
    }
}

fn without_secrets(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    // Whether a secret was announced.
    let mut announced = false;
    let mut rest = text;
    while !rest.is_empty() {
        let length = rest.find(|c: char| !is_of_word(c)).unwrap_or(rest.len());
        let (word, after) = rest.split_at(length);
        plain.push_str(if (announced && !word.is_empty()) || is_key(word) { HIDDEN } else { word });
        if !word.is_empty() {
            announced = announces(word);
        }
        let between = after.find(is_of_word).unwrap_or(after.len());
        let (signs, next) = after.split_at(between);
        plain.push_str(signs);
        announced &= signs.chars().all(|sign| "=:\"' ".contains(sign));
        rest = next;
    }
    plain
}

fn is_of_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || "_-+~".contains(c)
}

fn announces(word: &str) -> bool {
    let word = word.to_ascii_lowercase();
    NAMES.iter().any(|name| word.ends_with(name))
}

fn is_key(word: &str) -> bool {
    word.len() >= KEY_LENGTH
        && word.bytes().any(|byte| byte.is_ascii_digit())
        && word.bytes().any(|byte| byte.is_ascii_alphabetic())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_secret_is_shown_as_it_is() {
        for text in
            ["rm -rf /", "/workspace/src/main.rs", "git commit -m 'a token ring'", "SELECT 1", "ünïcode"]
        {
            let expected = if text.contains("token") { "git commit -m 'a token [hidden]'" } else { text };
            assert_eq!(shown(text), format!("{expected:?}"));
        }
    }

    #[test]
    fn what_looks_like_a_secret_is_hidden() {
        for (text, expected) in [
            ("curl -H 'x-api-key: sk-ant-api03-abcdef'", "curl -H 'x-api-key: [hidden]'"),
            ("export TOKEN=hunter2 && ls", "export TOKEN=[hidden] && ls"),
            ("Authorization: Bearer abc", "Authorization: Bearer [hidden]"),
            ("AKIAIOSFODNN7EXAMPLE", "[hidden]"),
            (
                "git clone https://ghp_0123456789abcdef@github.com/x",
                "git clone https://[hidden]@github.com/x",
            ),
            ("{\"password\":\"correct horse\"}", "{\"password\":\"[hidden] horse\"}"),
        ] {
            assert_eq!(shown(text), format!("{expected:?}"), "{text}");
        }
    }

    #[test]
    fn a_long_text_is_cut_and_says_so() {
        assert_eq!(shown(&"ab ".repeat(100)), format!("{:?}…", "ab ".repeat(100).get(..80).unwrap()));
        let end = "x ".repeat(400) + "sk-ant-0123456789abcdef";
        assert!(!shown(&end).contains("0123"));
    }

    #[test]
    fn controls_are_escaped() {
        assert_eq!(shown("a\n\u{1b}[31mb"), "\"a\\n\\u{1b}[31mb\"");
    }
}
