//! Recognises a chunk that changes no state: text, and usage.

use super::chunk::{self, COUNTS};
use super::part::ContentPart;
use crate::provider::gemini::fields::MessageFields;
use crate::wire::json::{Kind, Value};

/// The free values of such a chunk.
pub(super) struct PlainChunk<'d> {
    pub(super) texts: Vec<Value<'d>>,
    /// The numbers in what was used, in the order of the document.
    pub(super) numbers: Vec<Value<'d>>,
    /// The name of each, where it is one of [`COUNTS`].
    pub(super) names: Vec<Option<&'static str>>,
}

/// Reads a chunk that was read before; none where it is more than this.
pub(super) fn read(chunk: Value<'_>) -> Option<PlainChunk<'_>> {
    let answer = chunk::fields(chunk::unwrap(chunk).ok()?).ok()?;
    let mut plain = PlainChunk { texts: Vec::new(), numbers: Vec::new(), names: Vec::new() };
    for candidate in chunk::candidates(&answer).ok()? {
        let grounds = ["groundingMetadata", "urlContextMetadata"];
        if candidate.ending.is_some() || grounds.iter().any(|name| candidate.fields.at(name).is_some()) {
            return None;
        }
        for part in candidate.parts {
            let Ok(ContentPart::Other) = ContentPart::read(part) else { return None };
            plain.texts.push(text(part)?);
        }
    }
    if let Some(usage) = answer.at("usageMetadata") {
        plain.used(&chunk::fields(usage).ok()?)?;
    }
    (!plain.texts.is_empty()).then_some(plain)
}

/// The text of a part.
fn text(part: Value<'_>) -> Option<Value<'_>> {
    chunk::fields(part).ok()?.at("text").filter(|text| text.kind() == Kind::String)
}

impl<'d> PlainChunk<'d> {
    /// Takes the numbers of what was used; none where one that counts is no number.
    fn used(&mut self, usage: &MessageFields<'d>) -> Option<()> {
        for field in usage.iter() {
            let counted = COUNTS.into_iter().find(|name| *name == field.name);
            if counted.is_some() && field.value.kind() != Kind::Number {
                return None;
            }
            self.numbers_in(field.value, counted);
        }
        Some(())
    }

    /// Takes the numbers in a value, of which one that stands alone has this name.
    fn numbers_in(&mut self, value: Value<'d>, name: Option<&'static str>) {
        if value.kind() == Kind::Number {
            self.numbers.push(value);
            self.names.push(name);
        }
        value.items().into_iter().flatten().for_each(|item| self.numbers_in(item, None));
        value.entries().into_iter().flatten().for_each(|entry| self.numbers_in(entry.value, None));
    }
}
