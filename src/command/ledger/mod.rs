//! `postern ledger`: reads the events that gateways wrote down. They are data of others: bounded, and never obeyed.

mod filter;
mod find;
mod print;
mod query;
mod reader;
mod row;
mod sarif;
mod show;
mod tail;

use std::process::ExitCode;

use crate::cli::{LedgerCommand, Output};

pub(super) use find::find;
pub(super) use reader::RUNS;

/// Does what a subcommand of `ledger` says.
pub(super) fn run(command: &LedgerCommand, output: Output) -> anyhow::Result<ExitCode> {
    match command {
        LedgerCommand::Tail(args) => tail::run(args, output),
        LedgerCommand::Query(args) => query::run(args, output),
        LedgerCommand::Show(args) => show::run(args, output),
        LedgerCommand::Sarif(args) => sarif::run(args, output),
    }
}
