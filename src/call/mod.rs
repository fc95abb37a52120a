//! What passes between agents and LLM providers, as plain data: what an agent asks for, and the tools a model calls.

mod blocked;
mod companion;
pub mod edit;
mod facts;
mod failure;
pub(crate) mod name;
pub mod recent;
mod role;
mod service;
mod shape;
mod shell;
mod terms;
mod tool;
pub mod turn;
pub mod withheld;

pub use crate::decision::Decision;
pub use blocked::{BlockedCall, BlockedCalls};
pub use companion::{Companion, ProviderHosts};
pub use edit::{EditBlock, EditCheck, EditTerms, FileChange, FileEdit, FileState, MOST_BLOCKS, Occurrences};
pub use facts::{
    AnswerFacts, CallNote, Change, Conversation, Inputs, Normalization, RequestFacts, ToolDefinition, Usage,
};
pub use failure::FailureClass;
pub use role::Role;
pub use service::{Api, Dialect, Service, Vendor};
pub use shape::{Place, Shape};
pub use shell::{ShellFacts, ShellTerms, SimpleCommand};
pub use terms::{Denial, DenialForm, HostedAction, HostedToolVerdict, Judgement, Terms};
pub use tool::{
    Advice, ByFacts, CallVerdict, Facts, FactsDeny, Input, Judge, Kind, Kinds, KindsBy, SeenCall, Spelling,
    Start, Tool, ToolCall,
};
