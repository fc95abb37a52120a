//! Reads the members of an object in one pass, and counts those that nobody asked for.

use std::borrow::Cow;

use crate::wire::json::Value;

/// Members of an object.
pub(super) struct Members<'d, const N: usize> {
    /// The values of the keys that were asked for, in their order. `null` is no value.
    pub known: [Option<Value<'d>>; N],
    /// How many others there are.
    pub others: usize,
}

/// Reads the members with these keys; of what is no object, none.
pub(super) fn members<'d, const N: usize>(object: Value<'d>, keys: [&str; N]) -> Members<'d, N> {
    let mut found = Members { known: [None; N], others: 0 };
    for entry in object.entries().into_iter().flatten().filter(|entry| !entry.value.is_null()) {
        let place = keys.iter().zip(&mut found.known).find(|(key, _)| entry.key.says(key));
        match place {
            Some((_, known)) => *known = Some(entry.value),
            None => found.others += 1,
        }
    }
    found
}

/// The text of a member that is a string.
pub(super) fn text(member: Option<Value<'_>>) -> Option<Cow<'_, str>> {
    member.and_then(Value::text)
}

/// The type of a block; empty where it has none.
pub(super) fn kind(block: Value<'_>) -> Cow<'_, str> {
    text(members(block, ["type"]).known.into_iter().next().flatten()).unwrap_or_default()
}
