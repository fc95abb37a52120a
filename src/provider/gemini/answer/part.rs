//! One part of a candidate's content: text, a tool call for the client, or something that ran at the provider.

use std::borrow::Cow;

use super::chunk::{self, unclear};
use crate::provider::answer::BrokenAnswer;
use crate::provider::gemini::fields::MessageFields;
use crate::wire::json::Value;

/// What a part can be; one part is one of them.
const KINDS: &[&str] = &[
    "text",
    "inlineData",
    "fileData",
    "functionCall",
    "functionResponse",
    "executableCode",
    "codeExecutionResult",
    "toolCall",
    "toolResponse",
    "audioTranscription",
];

/// A part, as far as it matters here.
#[derive(Debug)]
pub(super) enum ContentPart<'d> {
    /// A call that the client is to execute, or a piece of one.
    Call(FunctionCall<'d>),
    /// A call that the provider has executed.
    Ran(HostedPart<'d>),
    /// The result of such a call.
    Result(HostedPart<'d>),
    /// Text, media, and what nobody executes.
    Other,
}

/// A call of a function, whole or a piece.
#[derive(Debug)]
pub(super) struct FunctionCall<'d> {
    pub(super) id: Cow<'d, str>,
    /// Empty in what continues a call.
    pub(super) name: Cow<'d, str>,
    pub(super) args: Option<Value<'d>>,
    pub(super) partial: Option<Value<'d>>,
    /// None where the field is absent.
    pub(super) continues: Option<bool>,
    /// The signature of the model's thoughts beside the call, as JSON.
    pub(super) signature: Option<&'d str>,
}

/// A call, or the result of one, of a tool of the provider.
#[derive(Debug)]
pub(super) struct HostedPart<'d> {
    /// The tool, by its field in a request's `tools` where it has one.
    pub(super) tool: Cow<'d, str>,
    /// Empty where it has none.
    pub(super) id: Cow<'d, str>,
    /// Its input as JSON.
    pub(super) input: &'d str,
}

impl<'d> ContentPart<'d> {
    /// Reads a part.
    ///
    /// # Errors
    /// If it is more than one thing at once, or a call in it could be read in several ways.
    pub(super) fn read(value: Value<'d>) -> Result<Self, BrokenAnswer> {
        let fields = chunk::fields(value)?;
        let mut kinds = fields.iter().filter(|field| KINDS.contains(&&*field.name));
        let Some(kind) = kinds.next() else { return Ok(Self::Other) };
        let is_two = kinds.next().is_some();
        let part = match &*kind.name {
            "functionCall" => Self::Call(function_call(kind.value, &fields)?),
            "executableCode" => Self::Ran(code(kind.value)?),
            "codeExecutionResult" => Self::Result(code(kind.value)?),
            "toolCall" => Self::Ran(tool(kind.value)?),
            "toolResponse" => Self::Result(tool(kind.value)?),
            _ => Self::Other,
        };
        if is_two {
            return Err(unclear("a part of it is two things at once"));
        }
        Ok(part)
    }
}

fn function_call<'d>(call: Value<'d>, part: &MessageFields<'d>) -> Result<FunctionCall<'d>, BrokenAnswer> {
    let fields = chunk::fields(call)?;
    let continues = match fields.at("willContinue") {
        Some(value) => {
            Some(value.as_bool().ok_or_else(|| unclear("`willContinue` is neither true nor false"))?)
        }
        None => None,
    };
    let is_said = |signature: &Value<'_>| signature.text().is_some_and(|text| !text.is_empty());
    Ok(FunctionCall {
        id: string(&fields, "id")?,
        name: string(&fields, "name")?,
        args: fields.at("args"),
        partial: fields.at("partialArgs"),
        continues,
        signature: part.at("thoughtSignature").filter(is_said).map(Value::raw),
    })
}

fn code(value: Value<'_>) -> Result<HostedPart<'_>, BrokenAnswer> {
    let id = string(&chunk::fields(value)?, "id")?;
    Ok(HostedPart { tool: Cow::Borrowed("codeExecution"), id, input: value.raw() })
}

fn tool(value: Value<'_>) -> Result<HostedPart<'_>, BrokenAnswer> {
    let fields = chunk::fields(value)?;
    let tool = string(&fields, "toolType")?;
    let tool = match &*tool {
        "GOOGLE_SEARCH_WEB" | "GOOGLE_SEARCH_IMAGE" => Cow::Borrowed("googleSearch"),
        "URL_CONTEXT" => Cow::Borrowed("urlContext"),
        "GOOGLE_MAPS" => Cow::Borrowed("googleMaps"),
        "FILE_SEARCH" => Cow::Borrowed("fileSearch"),
        _ => tool,
    };
    Ok(HostedPart { tool, id: string(&fields, "id")?, input: fields.at("args").map_or("{}", Value::raw) })
}

/// A field that is a string wherever it is set.
fn string<'d>(fields: &MessageFields<'d>, name: &str) -> Result<Cow<'d, str>, BrokenAnswer> {
    match fields.at(name) {
        Some(value) => value.text().ok_or_else(|| unclear("an id or a name is no string")),
        None => Ok(Cow::Borrowed("")),
    }
}
