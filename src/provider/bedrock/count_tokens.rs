//! CountTokens: a body of Converse, or one of InvokeModel in base64.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;

use super::operation::RuntimeTarget;
use super::{converse, invoke};
use crate::call::{Api, Denial, Role, Service};
use crate::provider::adapter::{CarriedBody, ModelRequestHead};
use crate::provider::request::RequestEditor;
use crate::provider::request::marks::{Form, Marks, member};
use crate::wire::json::{Document, Limits, Value};

/// Marks what tokens are counted of by whose text it is.
pub(super) fn mark<'d>(body: Value<'d>, marks: &mut Marks<'d>) {
    let Some(input) = member(body, "input") else { return };
    if let Some(counted) = member(input, "converse") {
        converse::mark(counted, marks);
    }
    if let Some(encoded) = member(input, "invokeModel").and_then(|counted| member(counted, "body")) {
        marks.set(encoded, Role::Metadata, Form::Nested);
    }
}

/// Returns the request of InvokeModel that is counted; none where the tokens of Converse are.
pub(super) fn carried<'h>(
    head: &ModelRequestHead<'h>,
    body: &[u8],
    limits: Limits,
) -> Option<(ModelRequestHead<'h>, CarriedBody)> {
    let document = Document::parse(body, limits).ok()?;
    let encoded = member(member(member(document.root(), "input")?, "invokeModel")?, "body")?;
    let body = BASE64_STANDARD.decode(encoded.text()?.as_bytes()).ok()?;
    let service = Service { api: Api::InvokeModel, ..head.service };
    Some((ModelRequestHead { service, ..*head }, CarriedBody { at: encoded.span(), body: body.into() }))
}

/// Reads `input`: the same is removed as from a request to a model, so that what is counted is what is sent.
///
/// # Errors
/// If the request must not go on, or cannot be understood.
pub(super) fn read(
    editor: &mut RequestEditor<'_>,
    head: &ModelRequestHead<'_>,
    target: &RuntimeTarget,
) -> Result<(), Denial> {
    let input = editor.get(editor.root(), "input")?.filter(|input| !input.is_null());
    let input = input.ok_or_else(|| Denial::unparseable("input", "there is none"))?;
    if let Some(duplicate) = input.duplicate() {
        return Err(Denial::unparseable("input", duplicate));
    }
    if let Some(counted) = editor.get(input, "converse")?.filter(|counted| !counted.is_null()) {
        converse::read(editor, counted, target)?;
    }
    let counted = editor.get(input, "invokeModel")?.filter(|counted| !counted.is_null());
    let Some(counted) = counted else { return Ok(()) };
    let Some(encoded) = editor.get(counted, "body")? else { return Ok(()) };
    let inner = encoded.text().and_then(|text| BASE64_STANDARD.decode(text.as_bytes()).ok());
    let inner = inner.ok_or_else(|| Denial::unparseable("input.invokeModel.body", "it is no base64"))?;
    let document = Document::parse(&inner, Limits::default())
        .map_err(|error| Denial::unparseable("input.invokeModel.body", error))?;
    let edited = editor.nested(&document, |editor| {
        invoke::read(editor, head, target)?;
        editor
            .detect("/input/invokeModel/body", |editor, marks| invoke::mark(editor, target, marks))
            .map(drop)
    })?;
    if let Some(edited) = edited {
        let json = serde_json::Value::from(BASE64_STANDARD.encode(edited));
        editor.replace(encoded, json.to_string())?;
    }
    Ok(())
}
