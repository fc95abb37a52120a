//! The arguments of `postern dlp`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

/// `postern dlp`.
#[derive(Debug, Subcommand)]
pub enum DlpCommand {
    Scan(DlpScanArgs),
    /// Lists the detectors.
    List,
    /// Prints the SHA-256 of a value on standard input, in hex; a line break at its end is no part of it.
    Hash,
}

/// Looks for secrets in files, and says where they stand, never what they are.
///
/// Exit status: 0 where nothing was found, 1 where something was, or a file cannot be read.
#[derive(Debug, Args)]
pub struct DlpScanArgs {
    /// Files, directories, or `-` for standard input. Links are not followed, and `.git` is left out.
    #[arg(required = true, value_name = "FILE|DIR|-")]
    pub paths: Vec<PathBuf>,
    /// How sure a finding is at least.
    #[arg(long, value_name = "LEVEL", value_enum, ignore_case = true, default_value_t = LeastConfidence::Medium)]
    pub confidence: LeastConfidence,
}

/// How sure a finding is at least.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "PascalCase")]
pub enum LeastConfidence {
    /// Published examples, too.
    Low,
    /// What may be a secret, too.
    Medium,
    High,
}
