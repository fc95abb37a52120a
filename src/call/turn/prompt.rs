//! A request to a model in no vendor's words: its turns in the agent's order, its tools and its parameters.
//!
//! Everything points into the agent's document. Who reads a request says in `notes` what has no place here.

use std::borrow::Cow;
use std::fmt;

use super::{Notes, Text};
use crate::wire::json::Value;

/// A request that cannot be said to the model; the text says what of it, without content of the request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{what}")]
pub struct Unsayable {
    pub what: &'static str,
}

impl Unsayable {
    pub const fn new(what: &'static str) -> Self {
        Self { what }
    }
}

/// One request.
#[derive(Debug, Default)]
pub struct Prompt<'d> {
    /// The instructions before the conversation.
    pub system: Vec<TextPart<'d>>,
    pub turns: Vec<Turn<'d>>,
    /// The tools that the agent executes, each name once, none of them deferred any more.
    pub tools: Vec<OfferedTool<'d>>,
    pub choice: Option<ToolChoice<'d>>,
    /// Whether the model may not call several tools at once.
    pub one_call: bool,
    /// The most tokens of an answer: a number as it is written.
    pub max_tokens: Option<&'d str>,
    /// A number as it is written.
    pub temperature: Option<&'d str>,
    /// A number as it is written.
    pub top_p: Option<&'d str>,
    /// The sequences at which the answer stops: an array of strings, not empty.
    pub stop: Option<Value<'d>>,
    pub stream: Option<bool>,
    /// The JSON schema of the answer.
    pub schema: Option<Value<'d>>,
    pub effort: Option<Effort>,
    /// The most tokens of thinking.
    pub thinking_budget: Option<u64>,
    /// Whether the agent asks for the model's thinking.
    pub asks_for_thinking: bool,
    /// What was dropped or mended so far.
    pub notes: Notes,
}

/// What one side says at a time.
#[derive(Debug)]
pub enum Turn<'d> {
    /// Instructions in the middle of a conversation.
    System(Vec<TextPart<'d>>),
    User(Vec<UserPart<'d>>),
    Assistant(Vec<AssistantPart<'d>>),
}

/// A text, and what the agent wrote about caching what ends with it: JSON of its dialect.
#[derive(Debug, Clone)]
pub struct TextPart<'d> {
    pub text: Text<'d>,
    pub cache: Option<&'d str>,
}

impl<'d> TextPart<'d> {
    pub fn of(text: Text<'d>) -> Self {
        Self { text, cache: None }
    }
}

#[derive(Debug)]
pub enum UserPart<'d> {
    Content(Content<'d>),
    Result(ToolResult<'d>),
}

/// What a user or a tool shows.
#[derive(Debug)]
pub enum Content<'d> {
    Text(TextPart<'d>),
    Image(Image<'d>),
    Pdf(Pdf<'d>),
    /// A tool of this name may be called from now on.
    Available(Cow<'d, str>),
}

/// A picture.
#[derive(Debug, Clone)]
pub enum Image<'d> {
    /// Its media type, and its bytes in base64.
    Data {
        media_type: Text<'d>,
        data: Text<'d>,
    },
    Url(Text<'d>),
}

/// A PDF, in base64.
#[derive(Debug, Clone)]
pub struct Pdf<'d> {
    pub title: Option<Text<'d>>,
    pub data: Text<'d>,
}

/// What came of a call.
#[derive(Debug)]
pub struct ToolResult<'d> {
    /// The id of the call.
    pub call: Text<'d>,
    pub is_error: bool,
    pub content: Vec<Content<'d>>,
}

#[derive(Debug)]
pub enum AssistantPart<'d> {
    Text(TextPart<'d>),
    Available(Cow<'d, str>),
    Thinking(Thinking<'d>),
    Call(Call<'d>),
}

/// What the model thought.
#[derive(Debug, Clone)]
pub struct Thinking<'d> {
    pub text: Text<'d>,
    /// What the dialect's provider, or this gateway, signed it with.
    pub signature: Option<Cow<'d, str>>,
}

impl Thinking<'_> {
    /// The label of the model whose thinking this gateway signed; none for thinking that others signed.
    pub fn signer(&self) -> Option<&str> {
        signer(self.signature.as_deref()?)
    }
}

/// How the signatures of this gateway begin: `postern.1.LABEL.` and 32 hex digits follow.
pub const SIGNATURE: &str = "postern.1.";

/// The label in a signature of this gateway. The digits are not compared with the thinking: the signature is no proof,
/// since it has no secret, and a client may have trimmed the text.
pub fn signer(signature: &str) -> Option<&str> {
    let (label, _) = signature.strip_prefix(SIGNATURE)?.rsplit_once('.')?;
    Some(label)
}

/// A call of one of the agent's tools.
#[derive(Clone)]
pub struct Call<'d> {
    pub id: Text<'d>,
    pub name: Cow<'d, str>,
    /// JSON, an object.
    pub input: &'d str,
}

/// Shows the name and sizes: the input is what people wrote.
impl fmt::Debug for Call<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Call with an input of {} bytes", self.input.len())
    }
}

/// A tool that the agent executes.
#[derive(Debug)]
pub struct OfferedTool<'d> {
    pub name: Cow<'d, str>,
    pub description: Option<Text<'d>>,
    pub schema: ToolSchema<'d>,
}

/// The JSON schema of a tool's input.
#[derive(Debug, Clone, Copy)]
pub enum ToolSchema<'d> {
    /// The agent's.
    Given(Value<'d>),
    /// Of a tool whose schema the agent's dialect knows and does not send: JSON.
    Known(&'static str),
}

/// Which tools the model may or must call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ToolChoice<'d> {
    Auto,
    Any,
    Tool(Cow<'d, str>),
    None,
}

/// How hard the model shall think.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Effort {
    Low,
    Medium,
    High,
    /// More than high, whatever it is called.
    Above,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_our_signatures_name_a_label_and_labels_may_have_dots() {
        assert_eq!(signer("postern.1.qwen3.5-coder.0123456789abcdef0123456789abcdef"), Some("qwen3.5-coder"));
        assert_eq!(signer("EpwIXyz=="), None);
        assert_eq!(signer("postern.1."), None);
    }
}
