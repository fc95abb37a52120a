//! What passes between agents and LLM providers, as plain data: what an agent asks for, and the tools a model calls.

mod service;
mod tool;

pub use service::{Api, Dialect, Service, Vendor};
pub use tool::{Advice, Facts, Input, Judge, Kind, Start, Tool, ToolCall, Verdict};
