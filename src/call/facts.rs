//! What a request and its answer say of themselves, as events and metrics have it (plain data, no content).

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{CallVerdict, Kinds, KindsBy, Shape};
use crate::id::Id;

/// What a request asks for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RequestFacts {
    /// The model that is asked, from the body or the path.
    pub model: Option<String>,
    /// Every model that the request could use: with the first its fallbacks and advisors.
    pub models: Vec<String>,
    /// Whether the answer is asked for as a stream.
    pub stream: bool,
    /// The tools that it offers the model, after edits.
    pub tools: Vec<ToolDefinition>,
    /// Whether a tool of kind Write may be called: one is offered, or what is offered is not in the request.
    pub writes: bool,
    /// The conversation at the provider whose blocked calls were given outputs in this request: once it goes through,
    /// they are no longer awaited.
    pub answered_conversation: Option<String>,
    /// What the client calls its session, from the body.
    pub session: Option<String>,
    /// How many tokens it lets the model write at most.
    pub max_tokens: Option<u64>,
    /// Whether a secret was replaced in it, now or before: a call that repeats what it was replaced by would destroy it.
    pub holds_placeholders: bool,
    /// Whether its provider takes the body as its client made it alone.
    pub is_attested: bool,
    pub conversation: Conversation,
}

/// How much a conversation holds, without what is in it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Conversation {
    /// The messages of the request, whoever wrote them, without a system prompt of its own field.
    pub messages: u64,
    /// In messages and in results of tools.
    pub images: u64,
    /// The results of tools in it.
    pub tool_results: u64,
}

/// A tool that a request offers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolDefinition {
    pub name: String,
    /// SHA-256 of the definition as it stands in the request, in hex.
    pub sha256: String,
    /// What its parameters say; none of a tool that the catalogue knows by its whole name.
    pub shape: Option<Arc<Shape>>,
}

/// What was changed in a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// A hosted tool of this type was taken out.
    HostedTool(String),
    /// What this detector found was replaced.
    Redaction(String),
    /// Something else that had to follow, or that provider state asks for; the words are stable.
    Other(&'static str),
}

/// What an answer says of itself.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AnswerFacts {
    /// The model that answered.
    pub model: Option<String>,
    /// The provider's id of the answer.
    pub id: Option<String>,
    pub usage: Usage,
}

/// Tokens, as far as the provider says.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Usage {
    /// All that the model read, what came from a cache included.
    pub input: Option<u64>,
    /// All that it wrote, reasoning included.
    pub output: Option<u64>,
    /// Of the input: read from a cache.
    pub cache_read: Option<u64>,
    /// Of the input: written to a cache.
    pub cache_write: Option<u64>,
    /// Of the output: reasoning.
    pub reasoning: Option<u64>,
}

/// How well an answer was understood.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Normalization {
    /// A whole answer was read.
    Parsed,
    /// A stream was read to its end.
    StreamReconstructed,
    /// It was too large to be read; it passed because no rule could deny a call in it.
    TooLarge,
    /// It could not be read.
    Failed,
    /// Nobody tried: no answer of a model.
    NotNormalized,
}

impl Normalization {
    /// The word in events.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Parsed => "Parsed",
            Self::StreamReconstructed => "StreamReconstructed",
            Self::TooLarge => "TooLarge",
            Self::Failed => "Failed",
            Self::NotNormalized => "NotNormalized",
        }
    }
}

/// What an event keeps of a tool's input, the words of `audit.toolInputs`; the later is the more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "operator", derive(schemars::JsonSchema))]
pub enum Inputs {
    /// Its length.
    None,
    /// Its SHA-256 too.
    Hash,
    /// Also its JSON, each text replaced by its length; of a shell command the programs and the names of options stay.
    Redacted,
    /// Also the input as the model wrote it.
    Full,
}

/// A verdict on a tool call, with what may be told of the call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallNote {
    /// The id of the call's event, which a refusal of it names.
    pub event: Id,
    /// As the provider calls it; empty where it has none.
    pub id: String,
    /// As the model wrote it.
    pub name: String,
    pub namespace: Option<String>,
    /// Its input is a text, that of a custom tool, and no JSON.
    pub custom: bool,
    /// How its kinds are known; none where it has none, and where its input would have told.
    pub kinds_by: Option<KindsBy>,
    /// What it may do.
    pub kinds: Kinds,
    /// What came of the input, in bytes.
    pub input_bytes: u64,
    /// SHA-256 of the input as it was sent, in hex; none where the call was denied before it came.
    pub input_sha256: Option<String>,
    /// Only if policy says so.
    pub input: Option<String>,
    /// The simple command that is denied, of a Shell call in which that can be told; only if policy says so.
    pub command: Option<String>,
    pub verdict: CallVerdict,
    /// It reads what was cut of a result before; told only where results are cut, and the provider keeps the answer.
    pub reads_evidence: bool,
    /// It had run at the provider before anybody could stop it.
    pub hosted: bool,
    /// The answer ended before the call did.
    pub incomplete: bool,
    /// It stands inside another call, which has a note of its own and goes on, or does not, as a whole.
    pub inside: bool,
    /// Its input is computed by a script that stands inside, so that nobody knows it before the script runs.
    pub computed: bool,
}

#[cfg(test)]
impl CallNote {
    /// An allowed call of this tool.
    pub(crate) fn allowed(event: Id, name: &str) -> Self {
        Self {
            event,
            id: String::new(),
            name: name.to_owned(),
            namespace: None,
            custom: false,
            kinds_by: None,
            kinds: Kinds::default(),
            input_bytes: 0,
            input_sha256: None,
            input: None,
            command: None,
            verdict: CallVerdict::allowed(),
            reads_evidence: false,
            hosted: false,
            incomplete: false,
            inside: false,
            computed: false,
        }
    }
}

impl CallNote {
    /// The same with what a model has chosen as its names written otherwise.
    #[must_use]
    pub fn map_names(self, name: impl Fn(String) -> String) -> Self {
        Self { id: name(self.id), name: name(self.name), namespace: self.namespace.map(&name), ..self }
    }
}
