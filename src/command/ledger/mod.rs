//! `postern ledger`: reads the events that gateways wrote down. They are data of others: bounded, and never obeyed.

mod ahead;
mod filter;
mod find;
mod follow;
mod print;
mod query;
mod reader;
mod row;
mod sarif;
mod show;
mod sql;
mod stats;
mod tail;
mod verify;

use std::path::Path;
use std::process::ExitCode;

use crate::cli::{LedgerCommand, Output};
use crate::event::Event;
use reader::LedgerReader;

pub(super) use find::find;
pub(super) use follow::FollowedLedger;
pub(super) use reader::RUNS;

/// Gives every event, with its line, of what `--ledger` names, else of the newest run. Returns what to say of lines that
/// were skipped.
///
/// # Errors
/// It cannot be read, or has no events.
pub(super) fn each(ledger: Option<&Path>, mut take: impl FnMut(&Event, &str)) -> anyhow::Result<Vec<String>> {
    let mut reader = LedgerReader::open(ledger, false)?;
    reader.each(|event, line, _| {
        take(event, line);
        Ok(())
    })?;
    reader.check_events()?;
    Ok(reader.skipped())
}

/// Does what a subcommand of `ledger` says.
pub(super) fn run(command: &LedgerCommand, output: Output) -> anyhow::Result<ExitCode> {
    match command {
        LedgerCommand::Tail(args) => tail::run(args, output),
        LedgerCommand::Query(args) => query::run(args, output),
        LedgerCommand::Show(args) => show::run(args, output),
        LedgerCommand::Stats(args) => stats::run(args, output),
        LedgerCommand::Verify(args) => verify::run(args, output),
        LedgerCommand::Sarif(args) => sarif::run(args, output),
    }
}
