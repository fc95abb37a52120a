//! The files and URLs that a simple command names, by a table of programs.

use super::division::DividedCommand;
use crate::call::{Facts, SimpleCommand};

/// A simple command as rules see it, with what it does beside running: one fact for each kind.
pub(super) struct ProgramReading {
    pub(super) command: SimpleCommand,
    pub(super) facts: Vec<Facts<'static>>,
    /// Whether it runs code that is not read: `eval`, `python -c`.
    pub(super) is_opaque: bool,
}

/// Reads a simple command.
pub(super) fn read(_command: &DividedCommand) -> ProgramReading {
    ProgramReading { command: SimpleCommand::default(), facts: Vec::new(), is_opaque: false }
}
