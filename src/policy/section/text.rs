//! Which texts may be names, placeholders and the like.

/// The name of a policy, as Kubernetes has it (RFC 1123 subdomain).
pub(in crate::policy) fn policy_name(text: &str) -> Result<(), String> {
    dashed(text, 253)
}

/// The name of a namespace (RFC 1123 label).
pub(in crate::policy) fn namespace(text: &str) -> Result<(), String> {
    if text.contains('.') {
        return Err("a namespace has no dots in its name".to_owned());
    }
    dashed(text, 63)
}

/// The name of a rule or a credential: a part of ids, headers and metrics, and a file's name.
pub(super) fn rule_name(text: &str) -> Result<(), String> {
    dashed(text, 63)
}

/// What the agent holds in place of a key. It is searched for in whole requests, so it is neither short nor
/// something that a request could hold by chance.
pub(super) fn placeholder(text: &str) -> Result<(), String> {
    if !(8..=256).contains(&text.len()) || !text.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err("a placeholder is 8 to 256 visible ASCII characters, without spaces".to_owned());
    }
    Ok(())
}

/// Why a rule denies: one line of what the agent reads, and of headers and events.
pub(super) fn reason(text: &str) -> Result<(), String> {
    if text.chars().count() > 256 || text.chars().any(char::is_control) {
        return Err("a reason is one line of at most 256 characters, without control characters".to_owned());
    }
    Ok(())
}

/// A name or a wildcard over names: visible, at most 256 bytes.
pub(super) fn pattern(text: &str) -> Result<(), String> {
    if text.is_empty() || text.len() > 256 {
        return Err("a name is 1 to 256 bytes long, `*` standing for any run of characters".to_owned());
    }
    // No API has such names: a rule with one would be about nothing, and a Deny rule would be a hole.
    if text.starts_with('^') || text.ends_with('$') {
        let bare = text.trim_start_matches('^').trim_end_matches('$');
        return Err(format!(
            "is no regular expression: names are compared whole, so write {bare}, with `*` for any run of characters"
        ));
    }
    Ok(())
}

/// The name of a service or region of AWS, as signatures have it.
pub(super) fn aws_word(text: &str) -> Result<(), String> {
    if text.is_empty() {
        return Err("is required".to_owned());
    }
    let fine = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    if text.len() > 63 || !text.bytes().all(fine) {
        return Err(
            "expected 1 to 63 lower-case letters, digits and `-`, as in `bedrock` or `us-east-1`".to_owned()
        );
    }
    Ok(())
}

/// The name of an environment variable (POSIX, section 8.1, lower case allowed).
pub(super) fn variable(text: &str) -> Result<(), String> {
    let fine = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    if text.is_empty() || text.starts_with(|first: char| first.is_ascii_digit()) || !text.bytes().all(fine) {
        return Err("an environment variable's name is letters, digits and `_`, no digit first".to_owned());
    }
    Ok(())
}

/// Lower-case letters, digits, `-` and `.`, a letter or digit at both ends.
fn dashed(text: &str, most: usize) -> Result<(), String> {
    if text.is_empty() {
        return Err("is required".to_owned());
    }
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let ends = [text.bytes().next(), text.bytes().next_back()];
    let inside = text.bytes().all(|byte| plain(byte) || byte == b'-' || byte == b'.');
    if text.len() > most || !inside || !ends.into_iter().flatten().all(plain) {
        return Err(format!(
            "a name is 1 to {most} lower-case letters, digits, `-` and `.`, with a letter or digit at both ends"
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rules_name_is_fit_for_a_path_and_a_header() {
        for name in ["a", "anthropic", "no-force-remove", "v1.2", "0"] {
            assert!(rule_name(name).is_ok(), "{name}");
        }
        for name in ["", "-a", "a-", ".a", "..", "A", "a/b", "a b", "a_b", "ä", "a\nb", &"a".repeat(64)] {
            assert!(rule_name(name).is_err(), "{name:?}");
        }
    }

    #[test]
    fn a_placeholder_is_visible_and_not_short() {
        assert!(placeholder("postern:a").is_ok());
        for text in ["", "key", "has a space", "tab\tinside", "schlüssel", &"x".repeat(257)] {
            assert!(placeholder(text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn a_variable_is_named_as_shells_name_it() {
        assert!(variable("ANTHROPIC_API_KEY").is_ok());
        for text in ["", "1A", "A-B", "A=B", "$A"] {
            assert!(variable(text).is_err(), "{text}");
        }
    }
}
