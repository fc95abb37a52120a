//! Reads bodies of InvokeModel, and takes out what would act at the provider.

use super::family::InvokeFamily;
use crate::call::Denial;
use crate::provider::adapter::{Adapter, ModelRequestHead};
use crate::provider::anthropic::{self, MessagesVariant, messages_request};
use crate::provider::bedrock::converse;
use crate::provider::bedrock::operation::RuntimeTarget;
use crate::provider::openai_chat::{self, OpenAiChat};
use crate::provider::request::RequestEditor;
use crate::provider::request::marks::Marks;
use crate::wire::json::Kind;

/// Fields that carry tools in APIs of which nobody here knows who runs them.
const UNKNOWN: [&str; 4] = ["tool_config", "toolChoice", "connectors", "plugins"];

/// Reads a body whose root is the document's.
///
/// # Errors
/// If the request must not go on, or cannot be understood: tools in an API that is not known among it.
pub(in crate::provider::bedrock) fn read(
    editor: &mut RequestEditor<'_>,
    head: &ModelRequestHead<'_>,
    target: &RuntimeTarget,
) -> Result<(), Denial> {
    let body = editor.root();
    if body.kind() != Kind::Object {
        return Err(Denial::unparseable("the body", "it is no JSON object"));
    }
    if let Some(duplicate) = body.duplicate() {
        return Err(Denial::unparseable("the body", duplicate));
    }
    let family = InvokeFamily::of(editor, &target.model, body)?;
    family.check(editor, body)?;
    match family {
        InvokeFamily::Anthropic => {
            let variant =
                MessagesVariant { model: Some(&target.model), stream: target.stream, subscription: false };
            messages_request(editor, body, &variant)
        }
        InvokeFamily::Nova => converse::read_tools(editor, body),
        InvokeFamily::Other => other(editor, head),
    }
}

/// Marks a body whose root is the document's by whose text its parts are.
pub(in crate::provider::bedrock) fn mark<'d>(
    editor: &RequestEditor<'d>,
    target: &RuntimeTarget,
    marks: &mut Marks<'d>,
) {
    let body = editor.root();
    match InvokeFamily::of(editor, &target.model, body) {
        Ok(InvokeFamily::Anthropic) => anthropic::mark_roles(body, marks),
        Ok(InvokeFamily::Nova) => converse::mark(body, marks),
        Ok(InvokeFamily::Other) | Err(_) => openai_chat::mark_roles(body, marks),
    }
}

/// Models that speak Chat Completions, or something of their own without tools. An entry of `tools` that is none of
/// Chat Completions' is refused there.
fn other(editor: &mut RequestEditor<'_>, head: &ModelRequestHead<'_>) -> Result<(), Denial> {
    for key in UNKNOWN {
        if editor.get(editor.root(), key)?.is_some_and(|value| !value.is_null()) {
            let why =
                "it is not known which tools models of this vendor have, and who runs them; use Converse";
            return Err(Denial::unparseable(key, why));
        }
    }
    OpenAiChat.request(head, editor)
}
