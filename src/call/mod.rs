//! What passes between agents and LLM providers, as plain data: what an agent asks for, and the tools a model calls.

mod blocked;
mod facts;
mod service;
mod terms;
mod tool;

pub use crate::event::Decision;
pub use blocked::{BlockedCall, BlockedCalls};
pub use facts::{AnswerFacts, CallNote, Change, Inputs, Normalization, RequestFacts, ToolDefinition, Usage};
pub use service::{Api, Dialect, Service, Vendor};
pub use terms::{Answer, Denial, Hosted, HostedAction, Judgement, Terms};
pub use tool::{Advice, Facts, Input, Judge, Kind, Spelling, Start, Tool, ToolCall, Verdict};
