//! Reads commands as a shell divides them: simple commands, and the files and URLs that they name.

pub mod division;
mod facts;
mod history;
mod program;
mod script;
mod source;

use std::collections::HashMap;

use foldhash::fast::FixedState;

pub(super) use division::WorkingDirectory;
pub(super) use facts::{CommandReading, read};
pub(super) use script::{patches, script};
pub(super) use source::{CommandSource, Language, language, says_more, start, texts};

/// Directories in which a name means the program of that name.
const OF_THE_SYSTEM: &[&str] =
    &["/bin", "/sbin", "/usr/bin", "/usr/sbin", "/usr/local/bin", "/usr/local/sbin", "/opt/homebrew/bin"];

/// A table of which nobody outside chooses the keys: a fixed hash is enough, as none can be made that collide.
type Table<V> = HashMap<&'static str, V, FixedState>;
