//! Reads members of an answer's JSON; what stands twice has two readings.

use std::borrow::Cow;

use super::Broken;
use crate::wire::json::Value;

/// The member of an object.
///
/// # Errors
/// Where the key stands twice: the client may take the other value.
pub(in crate::provider) fn get<'d>(object: Value<'d>, key: &str) -> Result<Option<Value<'d>>, Broken> {
    object.get(key).map_err(|duplicate| Broken::ambiguous(format!("{key}: {duplicate}")))
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
