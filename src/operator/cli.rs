//! The operator's command line: clap types, nothing else.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

use crate::cli::Output;
use crate::version;

/// Postern's operator.
#[derive(Debug, Parser)]
#[command(
    name = "postern-operator",
    version = version::VERSION,
    propagate_version = true,
    arg_required_else_help = true,
    after_help = "Exit status: 0 fine, 1 refused or failed, 2 wrong usage."
)]
pub struct OperatorCli {
    /// How results are printed.
    #[arg(short, long, global = true, value_enum, default_value_t = Output::Text, value_name = "FORMAT")]
    pub output: Output,
    #[command(subcommand)]
    pub command: OperatorCommand,
}

impl OperatorCli {
    /// Reads the command line of this process.
    ///
    /// # Errors
    /// Wrong usage, or a question for help or the version, which is to be printed.
    pub fn read() -> Result<Self, clap::Error> {
        let cli = Self::try_parse()?;
        cli.output.check::<Self>(false)?;
        Ok(cli)
    }
}

/// What the executable does.
#[derive(Debug, Subcommand)]
pub enum OperatorCommand {
    Run(OperatorRunArgs),
    Crds(CrdsArgs),
    EventSchema(EventSchemaArgs),
}

/// Runs the operator in the foreground: the controller where it leads, the webhook on every replica.
#[derive(Debug, Args)]
pub struct OperatorRunArgs {
    /// The settings file, which the chart writes.
    #[arg(long, value_name = "FILE")]
    pub config: PathBuf,
    /// Read the settings, say all that is wrong, and exit.
    #[arg(long)]
    pub check: bool,
}

/// Prints the CustomResourceDefinitions, or writes each to a file.
#[derive(Debug, Args)]
pub struct CrdsArgs {
    /// A directory for one file each, instead of standard output.
    #[arg(long, value_name = "DIR")]
    pub directory: Option<PathBuf>,
}

/// Prints the JSON Schema of the events that gateways write.
#[derive(Debug, Args)]
pub struct EventSchemaArgs {
    /// A file, instead of standard output.
    #[arg(long, value_name = "FILE")]
    pub file: Option<PathBuf>,
}
