//! Reads members of an answer's JSON, and refuses keys of which clients may read another value.

use std::borrow::Cow;

use super::BrokenAnswer;
use crate::fold::is_other_case;
use crate::wire::json::Value;

/// The member of an object.
///
/// # Errors
/// If the key stands twice, or in another case: the client may take the other value.
pub(in crate::provider) fn get<'d>(object: Value<'d>, key: &str) -> Result<Option<Value<'d>>, BrokenAnswer> {
    match find(object, key) {
        Ok(value) if object.duplicate().is_none() => Ok(value),
        Ok(_) => object.get(key).map_err(|duplicate| BrokenAnswer::ambiguous(format!("{key}: {duplicate}"))),
        Err(respelled) => Err(BrokenAnswer::ambiguous(format!("{key}: {respelled}"))),
    }
}

/// Why a key has two readings: some clients and servers take it for the one in lower case, others do not see it.
#[derive(Debug, thiserror::Error)]
#[error("the key is written in another case")]
pub(in crate::provider) struct Respelled;

/// The member of an object in which no key stands twice.
///
/// # Errors
/// If the object has the key in another case, beside it or alone.
#[inline]
pub(in crate::provider) fn find<'d>(object: Value<'d>, key: &str) -> Result<Option<Value<'d>>, Respelled> {
    if object.may_have(key) { search(object, key) } else { Ok(None) }
}

fn search<'d>(object: Value<'d>, key: &str) -> Result<Option<Value<'d>>, Respelled> {
    let entries = object.entries().into_iter().flatten();
    if object.has_plain_keys() && !key.bytes().any(|byte| byte.is_ascii_uppercase()) {
        let mut same = entries.filter(|entry| entry.key.says(key));
        return Ok(same.next().map(|entry| entry.value));
    }
    let mut value = None;
    for entry in entries {
        if entry.key.says(key) {
            value = value.or(Some(entry.value));
        } else if entry.key.text().is_some_and(|text| is_other_case(&text, key)) {
            return Err(Respelled);
        }
    }
    Ok(value)
}

/// The member of an object; null counts as absent.
///
/// # Errors
/// As for [`get`].
pub(in crate::provider) fn present<'d>(
    object: Value<'d>,
    key: &str,
) -> Result<Option<Value<'d>>, BrokenAnswer> {
    Ok(get(object, key)?.filter(|value| !value.is_null()))
}

/// The text of a member; none where it is absent.
///
/// # Errors
/// If the key stands twice, or its value is no string.
pub(in crate::provider) fn text<'d>(
    object: Value<'d>,
    key: &str,
) -> Result<Option<Cow<'d, str>>, BrokenAnswer> {
    let Some(value) = present(object, key)? else { return Ok(None) };
    value.text().map(Some).ok_or_else(|| BrokenAnswer::ambiguous(format!("{key} is no string")))
}

/// The number of a member, without a sign or a fraction; none where it is absent or another number.
///
/// # Errors
/// If the key stands twice.
pub(in crate::provider) fn count(object: Value<'_>, key: &str) -> Result<Option<u64>, BrokenAnswer> {
    Ok(present(object, key)?.and_then(Value::number_text).and_then(|number| number.parse().ok()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::json::{Document, Limits};

    #[test]
    fn a_key_in_another_case_is_refused_whichever_of_the_two_is_in_lower_case() {
        for (text, key) in [
            (r#"{"toolconfig":1}"#, "toolConfig"),
            (r#"{"toolConfig":1}"#, "toolconfig"),
            (r#"{"id":1}"#, "Id"),
            (r#"{"id":1}"#, "iD"),
            (r#"{"ID":1}"#, "id"),
        ] {
            let document = Document::parse(text.as_bytes(), Limits::default()).unwrap();
            assert!(find(document.root(), key).is_err(), "{text}");
        }
        let document = Document::parse(br#"{"tool_config":1}"#, Limits::default()).unwrap();
        assert!(find(document.root(), "tool_config").unwrap().is_some());
        assert!(find(document.root(), "toolConfig").unwrap().is_none());
    }
}
