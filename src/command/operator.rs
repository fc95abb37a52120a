//! `postern-operator`: the controller, the injector and the webhook, joined.

use std::process::ExitCode;

use crate::operator::cli::{Cli, Command, RunArgs};

/// Does what the command line says. An error is said in words by the caller, who exits with 1.
pub fn run(cli: Cli) -> anyhow::Result<ExitCode> {
    match cli.command {
        Command::Run(args) => operate(&args),
        Command::Crds(args) => super::crds::run(&args, cli.output),
    }
}

fn operate(_args: &RunArgs) -> anyhow::Result<ExitCode> {
    anyhow::bail!("not joined yet")
}
