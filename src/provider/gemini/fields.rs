//! Fields of a protobuf message as JSON: each may be spelled in camelCase or in snake_case.
//!
//! Google's readers take both spellings of every field (<https://protobuf.dev/programming-guides/json/>), a single
//! value where a field is repeated, and `null` for one that is absent. Names are spelled in one way from here on.

use std::borrow::Cow;
use std::collections::HashSet;

use crate::call::Denial;
use crate::fold::is_other_case;
use crate::provider::answer::BrokenAnswer;
use crate::wire::json::{Duplicate, Value};

/// The fields of one message, in their order, those that are null left out.
#[derive(Debug, Clone)]
pub(super) struct MessageFields<'d>(Vec<MessageField<'d>>);

/// A field that is set.
#[derive(Debug, Clone)]
pub(super) struct MessageField<'d> {
    /// In camelCase, however it is spelled.
    pub(super) name: Cow<'d, str>,
    pub(super) value: Value<'d>,
}

/// Why a value has not one reading as a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum FieldError {
    #[error("an object is expected here")]
    NoObject,
    #[error(transparent)]
    Duplicate(#[from] Duplicate),
    #[error("a field stands in both spellings, camelCase and snake_case")]
    BothSpellings,
    #[error("the key of {0} is written in another case")]
    OtherCase(&'static str),
}

/// The fields by which anything is decided. Google's own readers compare keys exactly; those of clients and gateways
/// in Go do not.
const READ: &[&str] = &[
    "args",
    "candidates",
    "codeExecutionResult",
    "content",
    "executableCode",
    "finishReason",
    "functionCall",
    "generateContentRequest",
    "id",
    "index",
    "jsonPath",
    "name",
    "partialArgs",
    "parts",
    "request",
    "response",
    "stringValue",
    "toolCall",
    "toolConfig",
    "toolType",
    "tools",
    "cachedContent",
    "store",
    "model",
    "willContinue",
];

impl FieldError {
    /// Returns the refusal of a request with this error at `place`.
    pub(super) fn denial(self, place: &str) -> Denial {
        Denial::unparseable(place, self)
    }

    /// Returns the error for an answer.
    pub(super) fn broken(self) -> BrokenAnswer {
        BrokenAnswer::ambiguous(format!("the answer cannot be understood: {self}"))
    }
}

impl<'d> MessageFields<'d> {
    /// Reads a message.
    ///
    /// # Errors
    /// For what is no object, and where a field stands twice, in one spelling or in both, or one that is read here in
    /// another case.
    pub(super) fn read(value: Value<'d>) -> Result<Self, FieldError> {
        let entries = value.entries().ok_or(FieldError::NoObject)?;
        if let Some(duplicate) = value.duplicate() {
            return Err(duplicate.into());
        }
        let fields = entries
            .filter_map(|entry| Some(MessageField { name: camel(entry.key.text()?), value: entry.value }));
        let fields: Vec<MessageField<'d>> = fields.collect();
        let other = |field: &MessageField<'d>| READ.iter().find(|name| is_other_case(&field.name, name));
        if let Some(name) = fields.iter().find_map(other) {
            return Err(FieldError::OtherCase(name));
        }
        // Without a name that was spelled anew, no two can have become alike.
        if fields.iter().any(|field| matches!(field.name, Cow::Owned(_))) {
            let mut seen = HashSet::with_capacity(fields.len());
            if !fields.iter().all(|field| seen.insert(field.name.as_ref())) {
                return Err(FieldError::BothSpellings);
            }
        }
        Ok(Self(fields.into_iter().filter(|field| !field.value.is_null()).collect()))
    }

    /// The value of a field by its name in camelCase; none where it is absent or null.
    pub(super) fn at(&self, name: &str) -> Option<Value<'d>> {
        self.iter().find(|field| field.name == name).map(|field| field.value)
    }

    pub(super) fn iter(&self) -> std::slice::Iter<'_, MessageField<'d>> {
        self.0.iter()
    }

    /// The string in a field; none if it is empty, because the API reads an empty string as absent.
    pub(super) fn text(&self, name: &str) -> Option<Cow<'d, str>> {
        self.at(name).and_then(Value::text).filter(|text| !text.is_empty())
    }

    /// Whether a field is set to anything but its default. Readers take `"true"` and `1` for `true`.
    pub(super) fn is_on(&self, name: &str) -> bool {
        self.at(name).is_some_and(is_on)
    }
}

/// Whether a value of a boolean or string field is another than that of an absent one.
pub(super) fn is_on(value: Value<'_>) -> bool {
    let is_off = |text: &str| matches!(text, "" | "0") || text.eq_ignore_ascii_case("false");
    match value.as_bool() {
        Some(on) => on,
        None => !value.text().is_some_and(|text| is_off(&text)) && value.number_text() != Some("0"),
    }
}

/// The values of a repeated field: the items of an array, else the single value.
pub(super) fn repeated<'d>(value: Value<'d>) -> impl Iterator<Item = Value<'d>> {
    let single = value.items().is_none().then_some(value);
    value.items().into_iter().flatten().chain(single)
}

/// Returns a name in camelCase: the letter after an underscore becomes upper case.
pub(super) fn camel(name: Cow<'_, str>) -> Cow<'_, str> {
    if !name.contains('_') {
        return name;
    }
    let mut upper = false;
    let mut spelled = String::with_capacity(name.len());
    for character in name.chars() {
        match character {
            '_' => upper = true,
            plain => {
                spelled.push(if upper { plain.to_ascii_uppercase() } else { plain });
                upper = false;
            }
        }
    }
    Cow::Owned(spelled)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::json::{Document, Limits};

    fn read(json: &str) -> Result<Vec<String>, FieldError> {
        let document = Document::parse(json.as_bytes(), Limits::default()).unwrap();
        let fields = MessageFields::read(document.root())?;
        Ok(fields.iter().map(|field| format!("{}={}", field.name, field.value.raw())).collect())
    }

    #[test]
    fn both_spellings_are_one_name_and_null_is_absent() {
        assert_eq!(read(r#"{"tool_config":1,"cachedContent":null,"x":2}"#).unwrap(), ["toolConfig=1", "x=2"]);
        assert_eq!(read(r#"{"\u0074ool_\u0063onfig":1}"#).unwrap(), ["toolConfig=1"]);
    }

    #[test]
    fn a_field_that_stands_twice_in_any_spelling_has_no_reading() {
        assert_eq!(read(r#"{"toolConfig":1,"tool_config":null}"#), Err(FieldError::BothSpellings));
        assert_eq!(read(r#"{"tool_config":1,"tool__config":2}"#), Err(FieldError::BothSpellings));
        assert!(matches!(read(r#"{"tools":1,"t\u006fols":2}"#), Err(FieldError::Duplicate(_))));
        assert_eq!(read("[]"), Err(FieldError::NoObject));
        assert_eq!(
            read(r#"{"functionCall":1,"FunctionCall":2}"#),
            Err(FieldError::OtherCase("functionCall"))
        );
        assert_eq!(read(r#"{"TOOL_S":[]}"#), Err(FieldError::OtherCase("tools")));
    }

    #[test]
    fn a_value_is_on_unless_it_is_a_spelling_of_the_default() {
        let on = |json: &str| {
            let document = Document::parse(json.as_bytes(), Limits::default()).unwrap();
            is_on(document.root())
        };
        assert!([r"true", r#""true""#, "1", r#""x""#, "{}"].into_iter().all(on));
        assert!(![r"false", r#""false""#, "0", r#""""#].into_iter().any(on));
    }
}
