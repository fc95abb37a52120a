//! Joins the parts, one file a subcommand; the only place that names everything and reads the environment.

use std::process::ExitCode;

use crate::cli::{CaCommand, Cli, Command, DemoArgs};

mod ca;
mod check;
mod completions;
#[cfg(feature = "operator")]
mod crds;
mod demo;
pub mod directories;
mod dlp;
mod doctor;
mod environment;
#[cfg(feature = "operator")]
mod event_schema;
mod gateway;
mod gateways;
mod ledger;
#[cfg(feature = "operator")]
pub mod operator;
pub mod output;
pub mod panics;
mod policy;
mod private_directory;
mod redirect;
mod roots;
mod run;
mod status;
mod ui;
mod workspace;

/// Runs the subcommand of the command line. The caller prints an error and exits with 1.
pub fn run(cli: Cli) -> anyhow::Result<ExitCode> {
    let output = cli.output;
    match cli.command {
        Command::Gateway(args) => gateway::run(&args, output),
        Command::Run(args) => run::run(&args, output),
        Command::Demo(DemoArgs {}) => demo::run(output),
        Command::Doctor(args) => doctor::run(&args, output),
        Command::Status(args) => status::run(args.socket.as_deref(), output),
        Command::Redirect(args) => redirect::run(&args, output),
        Command::Policy(command) => policy::run(&command, output),
        Command::Ui(args) => ui::run(&args, output),
        Command::Workspace(args) => workspace::run(&args),
        Command::Ledger(command) => ledger::run(&command, output),
        Command::Dlp(command) => dlp::run(&command, output),
        Command::Ca(CaCommand::Init(args)) => ca::init(&args, output),
        Command::Ca(CaCommand::Status(args)) => ca::status(&args, output),
        Command::Completions(args) => completions::run(&args),
    }
}
