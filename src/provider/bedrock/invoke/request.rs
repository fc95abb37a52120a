//! Reads bodies of InvokeModel, and takes out what would act at the provider.

use super::family::Family;
use crate::call::Denial;
use crate::provider::adapter::{Adapter, Asked};
use crate::provider::anthropic::{Door, messages_request};
use crate::provider::bedrock::converse;
use crate::provider::bedrock::operation::Target;
use crate::provider::openai_chat::OpenAiChat;
use crate::provider::request::Draft;
use crate::wire::json::Kind;

/// Fields that carry tools in APIs of which nobody here knows who runs them.
const UNKNOWN: [&str; 4] = ["tool_config", "toolChoice", "connectors", "plugins"];

/// Reads a body whose root is the document's.
///
/// # Errors
/// Where the request must not go on, or cannot be understood: tools in an API that is not known among it.
pub(in crate::provider::bedrock) fn read(
    draft: &mut Draft<'_>,
    asked: &Asked<'_>,
    target: &Target,
) -> Result<(), Denial> {
    let body = draft.root();
    if body.kind() != Kind::Object {
        return Err(Denial::unparseable("the body", "it is no JSON object"));
    }
    if let Some(duplicate) = body.duplicate() {
        return Err(Denial::unparseable("the body", duplicate));
    }
    let family = Family::of(draft, &target.model, body)?;
    family.check(draft, body)?;
    match family {
        Family::Anthropic => {
            let door = Door { model: Some(&target.model), stream: target.stream, subscription: false };
            messages_request(draft, body, &door)
        }
        Family::Nova => converse::read_tools(draft, body),
        Family::Other => other(draft, asked),
    }
}

/// Models that speak Chat Completions, or something of their own without tools. An entry of `tools` that is none of
/// Chat Completions' is refused there.
fn other(draft: &mut Draft<'_>, asked: &Asked<'_>) -> Result<(), Denial> {
    for key in UNKNOWN {
        if draft.get(draft.root(), key)?.is_some_and(|value| !value.is_null()) {
            let why =
                "it is not known which tools models of this vendor have, and who runs them; use Converse";
            return Err(Denial::unparseable(key, why));
        }
    }
    OpenAiChat.request(asked, draft)
}
