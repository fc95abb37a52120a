//! `postern ledger`: reads the events that gateways wrote down. They are data of others: bounded, and never obeyed.

mod filter;
mod find;
mod query;
mod row;
mod show;
mod source;
mod tail;

use std::io::{self, Write};
use std::process::ExitCode;

use crate::cli::{LedgerCommand, Output};
use crate::command::output;
use crate::event::Read;
use crate::terminal;

pub(super) use find::find;
use source::Passed;
pub(super) use source::RUNS;

/// Does what a subcommand of `ledger` says.
pub(super) fn run(command: &LedgerCommand, output: Output) -> anyhow::Result<ExitCode> {
    match command {
        LedgerCommand::Tail(args) => tail::run(args, output),
        LedgerCommand::Query(args) => query::run(args, output),
        LedgerCommand::Show(args) => show::run(args, output),
    }
}

/// An event, and the line that it was read from.
pub(super) struct Entry {
    pub(super) event: Read,
    pub(super) line: String,
}

impl Entry {
    /// One line for people, the event itself for programs; a document each in YAML.
    fn print(&self, form: Output) -> anyhow::Result<String> {
        Ok(match form {
            Output::Text => row::row(&self.event) + "\n",
            Output::Json => format!("{}\n", terminal::json(&self.line)),
            Output::Yaml => {
                let event: serde_json::Value = serde_json::from_str(&self.line)?;
                format!("---\n{}", output::yaml(&event)?)
            }
        })
    }
}

/// Says on standard error what was passed over; standard output has events alone.
fn say_passed(passed: &[Passed]) {
    for passed in passed {
        if let Some(text) = passed.text() {
            // Nobody may be reading it.
            let _ = writeln!(io::stderr(), "postern: {}", terminal::plain(&text));
        }
    }
}
