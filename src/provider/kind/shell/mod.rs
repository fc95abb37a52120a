//! Reads commands as a shell divides them: simple commands, and the files and URLs that they name.

pub mod division;
mod program;
mod script;

pub(super) use script::{patches, script};
