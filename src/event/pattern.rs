//! Patterns of names in events, in which `*` stands for any text.

/// Whether a text matches a pattern. Case does not matter.
pub fn matches(pattern: &str, text: &str) -> bool {
    let (pattern, text) = (pattern.to_lowercase(), text.to_lowercase());
    let mut parts = pattern.split('*');
    let Some(mut rest) = parts.next().and_then(|first| text.strip_prefix(first)) else { return false };
    let Some(last) = parts.next_back() else { return rest.is_empty() };
    for part in parts {
        match rest.split_once(part) {
            Some((_, after)) => rest = after,
            None => return false,
        }
    }
    rest.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_stands_for_any_text_and_case_does_not_matter() {
        for (pattern, text, holds) in [
            ("Bash", "bash", true),
            ("bas", "bash", false),
            ("*.example.com", "a.b.Example.com", true),
            ("*.example.com", "example.com", false),
            ("mcp__*__get_*", "mcp__github__get_issue", true),
            ("a*a", "a", false),
            ("*", "", true),
            ("", "x", false),
        ] {
            assert_eq!(matches(pattern, text), holds, "{pattern} {text}");
        }
    }
}
