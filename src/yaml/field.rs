//! How a field of a document is called: `spec.destinations[2].hosts[0]`.

/// The field `key` of the mapping `parent`; a key with a separator of its own stands in quotes.
pub(crate) fn key(parent: &str, key: &str) -> String {
    if key.contains(['.', '[', ']', '"']) {
        format!("{parent}[{key:?}]")
    } else if parent.is_empty() {
        key.to_owned()
    } else {
        format!("{parent}.{key}")
    }
}

/// Item `number` of the list `parent`, from 0.
pub(crate) fn item(parent: &str, number: usize) -> String {
    format!("{parent}[{number}]")
}

/// Whether `path` is `above` or lies under it.
pub(crate) fn is_within(path: &str, above: &str) -> bool {
    path.strip_prefix(above)
        .is_some_and(|rest| above.is_empty() || rest.is_empty() || rest.starts_with(['.', '[']))
}

/// What a user wrote, in quotes and at a length that a message can bear.
pub(crate) fn quoted(text: &str) -> String {
    match text.char_indices().nth(64) {
        Some((end, _)) => format!("{:?}…", text.get(..end).unwrap_or_default()),
        None => format!("{text:?}"),
    }
}

/// The same, in single quotes where that spares the reader escapes, as YAML has it.
pub(crate) fn plainly(text: &str) -> String {
    let escapes = text.contains(['\\', '"']) && !text.contains('\'') && !text.contains(char::is_control);
    match text.char_indices().nth(64) {
        _ if !escapes => quoted(text),
        Some((end, _)) => format!("'{}'…", text.get(..end).unwrap_or_default()),
        None => format!("'{text}'"),
    }
}

/// The field that holds this one; the whole document, `""`, at the end.
pub(crate) fn parent(path: &str) -> &str {
    path.get(..path.rfind(['.', '[']).unwrap_or(0)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_called_as_people_write_them() {
        let destination = item(&key("spec", "destinations"), 2);
        assert_eq!(key(&destination, "hosts"), "spec.destinations[2].hosts");
        assert_eq!(key("", "spec"), "spec");
        assert_eq!(key("matchLabels", "app.kubernetes.io/name"), r#"matchLabels["app.kubernetes.io/name"]"#);
    }

    #[test]
    fn long_texts_are_quoted_in_part() {
        assert_eq!(quoted("a\"b"), r#""a\"b""#);
        assert_eq!(quoted(&"é".repeat(65)), format!("\"{}\"…", "é".repeat(64)));
        assert_eq!(plainly(r"rm\s+"), r"'rm\s+'");
        assert_eq!(plainly("it's \\"), r#""it's \\""#);
        assert_eq!(plainly(&r"\".repeat(65)), format!("'{}'…", r"\".repeat(64)));
    }

    #[test]
    fn a_field_lies_within_what_holds_it() {
        assert!(is_within("spec.hosts[0]", "spec.hosts"));
        assert!(is_within("spec.hosts", "spec.hosts"));
        assert!(is_within("spec", ""));
        assert!(!is_within("spec.hostsx", "spec.hosts"));
        assert_eq!(parent("spec.hosts[0]"), "spec.hosts");
        assert_eq!(parent("spec.hosts"), "spec");
        assert_eq!(parent("spec"), "");
    }
}
