//! `postern policy check`: everything that is wrong with policies, before they bite.

use std::process::ExitCode;

use crate::cli::{Output, PolicyCheckArgs};

pub(super) fn run(_args: &PolicyCheckArgs, _output: Output) -> anyhow::Result<ExitCode> {
    Ok(ExitCode::SUCCESS)
}
