//! CountTokens: a body of Converse, or one of InvokeModel in base64.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;

use super::operation::Target;
use super::{converse, invoke};
use crate::call::Denial;
use crate::provider::adapter::Asked;
use crate::provider::request::Draft;
use crate::wire::json::{Document, Limits};

/// Reads `input`: the same doors are closed as where a model is asked, so that what is counted is what is sent.
///
/// # Errors
/// Where the request must not go on, or cannot be understood.
pub(super) fn read(draft: &mut Draft<'_>, asked: &Asked<'_>, target: &Target) -> Result<(), Denial> {
    let input = draft.get(draft.root(), "input")?.filter(|input| !input.is_null());
    let input = input.ok_or_else(|| Denial::unparseable("input", "there is none"))?;
    if let Some(duplicate) = input.duplicate() {
        return Err(Denial::unparseable("input", duplicate));
    }
    if let Some(counted) = draft.get(input, "converse")?.filter(|counted| !counted.is_null()) {
        converse::read(draft, counted, target)?;
    }
    let counted = draft.get(input, "invokeModel")?.filter(|counted| !counted.is_null());
    let Some(counted) = counted else { return Ok(()) };
    let Some(encoded) = draft.get(counted, "body")? else { return Ok(()) };
    let inner = encoded.text().and_then(|text| BASE64_STANDARD.decode(text.as_bytes()).ok());
    let inner = inner.ok_or_else(|| Denial::unparseable("input.invokeModel.body", "it is no base64"))?;
    let document = Document::parse(&inner, Limits::default())
        .map_err(|error| Denial::unparseable("input.invokeModel.body", error))?;
    if let Some(edited) = draft.nested(&document, |draft| invoke::read(draft, asked, target))? {
        let json = serde_json::Value::from(BASE64_STANDARD.encode(edited));
        draft.replace(encoded, json.to_string())?;
    }
    Ok(())
}
