//! Reads the choices of a chunk or of a whole answer, and the calls in them, in whichever shape they come.

use std::borrow::Cow;

use crate::provider::answer::{BrokenAnswer, InputForm, member};
use crate::wire::json::{Kind, Value};

/// A choice, with the object that says what is new in it.
pub(super) struct ChunkChoice<'d> {
    pub(super) index: u64,
    pub(super) value: Value<'d>,
    /// `delta` of a chunk, `message` of a whole answer.
    pub(super) said: Option<Value<'d>>,
    pub(super) finish: Option<Cow<'d, str>>,
}

/// An entry about a call: all of the call, or the next piece.
pub(super) struct CallPiece<'d> {
    pub(super) key: CallKey,
    pub(super) id: Option<Cow<'d, str>>,
    pub(super) name: Option<Cow<'d, str>>,
    /// None where nothing tells.
    pub(super) form: Option<InputForm>,
    pub(super) input: Cow<'d, str>,
}

/// By what clients tell one call of a choice from another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum CallKey {
    Index(u64),
    /// Some vendors give none: each such entry is a call of its own.
    Missing,
    /// The one `function_call` of the time before tools.
    Function,
}

/// Returns the value of an entry that is not null, of an object without duplicate keys.
///
/// # Errors
/// If a key stands twice, or this one in another case: clients differ in which of the two they take.
pub(super) fn entry<'d>(object: Value<'d>, key: &str) -> Result<Option<Value<'d>>, BrokenAnswer> {
    if let Some(duplicate) = object.duplicate() {
        return Err(BrokenAnswer::ambiguous(duplicate.to_string()));
    }
    member::present(object, key)
}

/// The choices of a document, each with its entry `key` (`delta` or `message`); none where it has no choices.
pub(super) fn choices<'d>(root: Value<'d>, key: &str) -> Result<Vec<ChunkChoice<'d>>, BrokenAnswer> {
    if root.kind() != Kind::Object {
        return Ok(Vec::new());
    }
    let Some(list) = entry(root, "choices")? else { return Ok(Vec::new()) };
    let items = list.items().ok_or_else(|| BrokenAnswer::malformed("`choices` is no list"))?;
    items.enumerate().map(|(position, value)| choice(value, position as u64, key)).collect()
}

fn choice<'d>(value: Value<'d>, position: u64, key: &str) -> Result<ChunkChoice<'d>, BrokenAnswer> {
    if value.kind() != Kind::Object {
        return Err(BrokenAnswer::malformed("a choice is no object"));
    }
    let index = entry(value, "index")?.map_or(Ok(position), number)?;
    let finish = entry(value, "finish_reason")?.and_then(Value::text);
    Ok(ChunkChoice { index, value, said: entry(value, key)?, finish })
}

fn number(value: Value<'_>) -> Result<u64, BrokenAnswer> {
    let number = value.number_text().and_then(|text| text.parse().ok());
    number.ok_or_else(|| BrokenAnswer::ambiguous("an `index` is no number"))
}

/// The calls that a delta or message speaks of: those of `tool_calls`, in their order, then `function_call`.
pub(super) fn pieces<'d>(said: Value<'d>) -> Result<Vec<CallPiece<'d>>, BrokenAnswer> {
    let mut pieces = Vec::new();
    if let Some(list) = entry(said, "tool_calls")? {
        let items = list.items().ok_or_else(|| BrokenAnswer::ambiguous("`tool_calls` is no list"))?;
        for item in items {
            pieces.push(piece(item)?);
        }
    }
    if let Some(call) = entry(said, "function_call")? {
        let mut piece =
            CallPiece { key: CallKey::Function, id: None, name: None, form: None, input: Cow::default() };
        body(&mut piece, call, "arguments", InputForm::Json)?;
        pieces.push(piece);
    }
    Ok(pieces)
}

fn piece(item: Value<'_>) -> Result<CallPiece<'_>, BrokenAnswer> {
    if item.kind() != Kind::Object {
        return Err(BrokenAnswer::ambiguous("a tool call is no object"));
    }
    let key =
        entry(item, "index")?.map_or(Ok(CallKey::Missing), |index| number(index).map(CallKey::Index))?;
    let id = text(item, "id")?;
    let mut piece = CallPiece { key, id, name: None, form: None, input: Cow::default() };
    match (entry(item, "function")?, entry(item, "custom")?) {
        (Some(_), Some(_)) => {
            return Err(BrokenAnswer::ambiguous("a tool call has a function and a custom tool"));
        }
        (Some(function), None) => body(&mut piece, function, "arguments", InputForm::Json)?,
        (None, Some(custom)) => body(&mut piece, custom, "input", InputForm::Text)?,
        (None, None) => {
            let plain = |kind: &Cow<'_, str>| kind != "function" && kind != "custom";
            piece.name = text(item, "type")?.filter(plain);
        }
    }
    Ok(piece)
}

fn body<'d>(
    piece: &mut CallPiece<'d>,
    body: Value<'d>,
    key: &str,
    form: InputForm,
) -> Result<(), BrokenAnswer> {
    if body.kind() != Kind::Object {
        return Err(BrokenAnswer::ambiguous("the body of a tool call is no object"));
    }
    piece.name = text(body, "name")?;
    piece.form = Some(form);
    // Some vendors give an object instead of its text.
    if let Some(input) = entry(body, key)? {
        piece.input = input.text().unwrap_or(Cow::Borrowed(input.raw()));
    }
    Ok(())
}

/// A string that says something.
fn text<'d>(object: Value<'d>, key: &str) -> Result<Option<Cow<'d, str>>, BrokenAnswer> {
    let Some(value) = entry(object, key)? else { return Ok(None) };
    let text = value
        .text()
        .ok_or_else(|| BrokenAnswer::ambiguous(format!("`{key}` of a tool call is no string")))?;
    Ok(Some(text).filter(|text| !text.is_empty()))
}
