//! `postern completions`: the completion script of a shell.

use std::io::{self, Write};
use std::process::ExitCode;

use clap::CommandFactory;

use crate::cli::{Cli, CompletionsArgs};

pub(super) fn run(args: &CompletionsArgs) -> anyhow::Result<ExitCode> {
    // Into memory first: the generator panics where standard output is a closed pipe.
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "postern", &mut script);
    io::stdout().write_all(&script)?;
    Ok(ExitCode::SUCCESS)
}
