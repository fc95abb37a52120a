//! Reads members of an answer's JSON; what stands twice has two readings.

use std::borrow::Cow;

use super::Broken;
use crate::fold::is_other_case;
use crate::wire::json::Value;

/// The member of an object.
///
/// # Errors
/// Where the key stands twice, or in another case: the client may take the other value.
pub(in crate::provider) fn get<'d>(object: Value<'d>, key: &str) -> Result<Option<Value<'d>>, Broken> {
    if is_respelled(object, key) {
        return Err(Broken::ambiguous(format!("{key}: the key is written in another case")));
    }
    object.get(key).map_err(|duplicate| Broken::ambiguous(format!("{key}: {duplicate}")))
}

/// Whether an object has this key in another case: some readers take it for the key, others do not see it.
pub(in crate::provider) fn is_respelled(object: Value<'_>, key: &str) -> bool {
    let mut entries = object.entries().into_iter().flatten();
    entries.any(|entry| entry.key.text().is_some_and(|text| is_other_case(&text, key)))
}

/// The same; a null counts as absent.
///
/// # Errors
/// As for [`get`].
pub(in crate::provider) fn present<'d>(object: Value<'d>, key: &str) -> Result<Option<Value<'d>>, Broken> {
    Ok(get(object, key)?.filter(|value| !value.is_null()))
}

/// The text of a member; none where it is absent.
///
/// # Errors
/// Where the key stands twice, or its value is no string.
pub(in crate::provider) fn text<'d>(object: Value<'d>, key: &str) -> Result<Option<Cow<'d, str>>, Broken> {
    let Some(value) = present(object, key)? else { return Ok(None) };
    value.text().map(Some).ok_or_else(|| Broken::ambiguous(format!("{key} is no string")))
}

/// The number of a member, without a sign or a fraction; none where it is absent or another number.
///
/// # Errors
/// Where the key stands twice.
pub(in crate::provider) fn count(object: Value<'_>, key: &str) -> Result<Option<u64>, Broken> {
    Ok(present(object, key)?.and_then(Value::number_text).and_then(|number| number.parse().ok()))
}
