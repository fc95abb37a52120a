//! Reads members of an answer's JSON; what stands twice has two readings.

use std::borrow::Cow;

use crate::provider::answer::Broken;
use crate::wire::json::Value;

/// The member of an object; a null counts as absent.
///
/// # Errors
/// Where the key stands twice.
pub(super) fn get<'d>(object: Value<'d>, key: &str) -> Result<Option<Value<'d>>, Broken> {
    let found = object.get(key).map_err(|duplicate| Broken::ambiguous(format!("{key}: {duplicate}")))?;
    Ok(found.filter(|value| !value.is_null()))
}

/// The text of a member; none where it is absent.
///
/// # Errors
/// Where the key stands twice, or its value is no string.
pub(super) fn text<'d>(object: Value<'d>, key: &str) -> Result<Option<Cow<'d, str>>, Broken> {
    let Some(value) = get(object, key)? else { return Ok(None) };
    value.text().map(Some).ok_or_else(|| Broken::ambiguous(format!("{key} is no string")))
}

/// The number of a member, without a sign or a fraction; none where it is absent or another number.
///
/// # Errors
/// Where the key stands twice.
pub(super) fn count(object: Value<'_>, key: &str) -> Result<Option<u64>, Broken> {
    Ok(get(object, key)?.and_then(Value::number_text).and_then(|number| number.parse().ok()))
}
