//! `tooluse`: a model that forgets its tools must call one at every turn, and has one with which it answers.

use std::borrow::Cow;

use crate::call::turn::Text;
use crate::call::turn::prompt::ToolSchema;
use crate::provider::openai_chat::ask::draft::{Choice, Draft, Message, Part, Role, Tool};

/// The tool whose call is the answer.
pub const EXIT_TOOL: &str = "ExitTool";

const DESCRIPTION: &str = "Gives your answer to the user, when no other tool fits or all is done.";
const SCHEMA: &str =
    r#"{"type":"object","properties":{"response":{"type":"string"}},"required":["response"]}"#;
const PROMPT: &str = "Call a tool. If none fits, or all is done, call ExitTool with your answer.";

// The request.

/// Makes the model call a tool, where it has tools and may choose among all of them.
pub(super) fn request(draft: &mut Draft<'_>) {
    let is_free = match &draft.choice {
        None | Some(Choice::Auto | Choice::Required) => true,
        Some(Choice::None | Choice::Function(_)) => false,
    };
    let is_taken = draft.tools.iter().any(|tool| tool.name == EXIT_TOOL);
    if draft.tools.is_empty() || !is_free || is_taken {
        return;
    }
    draft.tools.push(Tool {
        name: Cow::Borrowed(EXIT_TOOL),
        description: Some(Text::fixed(DESCRIPTION)),
        schema: ToolSchema::Known(SCHEMA),
    });
    draft.choice = Some(Choice::Required);
    draft.has_exit_tool = true;
    draft.messages.push(Message::new(Role::System, vec![Part::fixed(PROMPT)]));
}
