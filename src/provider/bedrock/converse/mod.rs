//! Converse and ConverseStream: one shape for the models of every vendor, and Nova's own.

mod message;
mod request;
mod roles;
mod stream;
mod tool_config;
mod transcript;
mod usage;
mod whole;

pub(super) use request::{read, read_tools};
pub(super) use roles::mark;
pub(super) use transcript::{ConverseTranscript, EventShape, KNOWN};
