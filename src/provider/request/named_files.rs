//! The files that the calls of a request name, as the catalogue of tools reads them.

use serde_json::Value;

use super::marks::MarkedCall;
use crate::call::{Input, ShellTerms};
use crate::provider::kind::{self, Offered};
use crate::wire::json;

/// The files that a call reads or writes, those of its commands too.
pub(super) fn of(call: &MarkedCall<'_>, offered: &Offered) -> Vec<String> {
    let Some(input) = call.input else { return Vec::new() };
    let json = read(input);
    let input = json.as_str().map_or(Input::Json(&json), Input::Text);
    let terms = ShellTerms { reads: true, ..ShellTerms::default() };
    let named = (&*call.name, call.namespace.as_deref());
    let read = kind::read_commands(named, input, offered, &terms, &[]);
    let facts = read.facts.iter().flatten().chain(&read.derived);
    facts.flat_map(|facts| &facts.paths).map(|path| path.to_string()).collect()
}

/// The input: JSON, that of a string with JSON in it, or a text.
fn read(input: json::Value<'_>) -> Value {
    let whole: Value = serde_json::from_str(input.raw()).unwrap_or_default();
    let inside = whole.as_str().and_then(|text| serde_json::from_str(text).ok());
    inside.filter(Value::is_object).unwrap_or(whole)
}
