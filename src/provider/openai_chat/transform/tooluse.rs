//! `tooluse`: a model that forgets its tools must call one at every turn, and has one with which it answers.

use super::enhancetool;
use crate::call::turn::Text;
use crate::call::turn::prompt::ToolSchema;
use crate::provider::openai_chat::ask::draft::{Choice, Draft, Message, Part, Role, Tool};
use crate::wire::json::{Document, Limits};
use std::borrow::Cow;

/// The tool that a request adds, and whose call is the answer. Its arguments are `{"response": string}`.
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

// The side of answers.

/// The text of a call of [`EXIT_TOOL`]. Arguments that say no `response` are the text themselves: models write their
/// answer there.
pub(in crate::provider::openai_chat) fn exit_text(arguments: &str) -> String {
    let mended = response(arguments).or_else(|| response(&enhancetool::mend(arguments)?));
    mended.unwrap_or_else(|| arguments.to_owned())
}

fn response(arguments: &str) -> Option<String> {
    let document = Document::parse(arguments.as_bytes(), Limits::default()).ok()?;
    let response = document.root().get("response").ok()??;
    response.text().map(Cow::into_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_is_the_response() {
        assert_eq!(exit_text(r#"{"response":"a\nb"}"#), "a\nb");
        assert_eq!(exit_text(r#"{'response':'ok',}"#), "ok");
        assert_eq!(exit_text(r#"{"response":"cut"#), "cut");
        assert_eq!(exit_text(r#"{"answer":1}"#), r#"{"answer":1}"#);
        assert_eq!(exit_text("I am done."), "I am done.");
        assert_eq!(exit_text(""), "");
    }
}
