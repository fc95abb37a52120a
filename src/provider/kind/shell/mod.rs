//! Reads commands as a shell divides them: simple commands, and the files and URLs that they name.

pub mod division;
mod facts;
mod hash;
mod program;
mod script;
mod source;

pub(super) use division::WorkingDirectory;
pub(super) use facts::{CommandReading, read};
pub(super) use script::{patches, script};
pub(super) use source::{CommandSource, Language, language, start};
