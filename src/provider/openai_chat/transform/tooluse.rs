//! `tooluse`: models that call tools badly must call one; with `ExitTool` they answer.

// The side of answers.

use super::enhancetool;
use crate::wire::json::{Document, Limits};

/// The tool that the request adds, and whose call is the answer's text. Its arguments are `{"response": string}`.
pub const EXIT_TOOL: &str = "ExitTool";

/// The text of a call of [`EXIT_TOOL`]. Arguments that say no `response` are the text themselves: models write their
/// answer there.
pub(in crate::provider::openai_chat) fn exit_text(arguments: &str) -> String {
    let mended = response(arguments).or_else(|| response(&enhancetool::mend(arguments)?));
    mended.unwrap_or_else(|| arguments.to_owned())
}

fn response(arguments: &str) -> Option<String> {
    let document = Document::parse(arguments.as_bytes(), Limits::default()).ok()?;
    let response = document.root().get("response").ok()??;
    response.text().map(std::borrow::Cow::into_owned)
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
