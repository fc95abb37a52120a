//! `postern policy`: works on policies as files, without a gateway.

mod check;
mod diff;
mod explain;
mod init;
mod learn;
mod list;
mod test;

use std::path::PathBuf;
use std::process::ExitCode;

use super::output;
use crate::cli::{Output, PodArgs, PolicyCommand};
use crate::config::limits::Limits;
use crate::policy::document::Document;
use crate::policy::{Labels, Policy};
use crate::problem::Problem;
use crate::provider::answer::GuardLimits;
use crate::provider::surface::COMPANIONS;
use crate::wire::json;

/// Does what a subcommand of `policy` says.
pub(super) fn run(command: &PolicyCommand, output: Output) -> anyhow::Result<ExitCode> {
    match command {
        PolicyCommand::Init(args) => init::run(args, output),
        PolicyCommand::Check(args) => check::run(args, output),
        PolicyCommand::List(args) => list::run(args, output),
        PolicyCommand::Explain(args) => explain::run(args, output),
        PolicyCommand::Test(args) => test::run(args, output),
        PolicyCommand::Learn(args) => learn::run(args, output),
        PolicyCommand::Diff(args) => diff::run(args, output),
    }
}

/// Reads the documents of all paths, and what is wrong with any of them.
pub(super) fn read(paths: &[PathBuf]) -> (Vec<Document>, Vec<Problem>) {
    let (mut documents, mut problems) = (Vec::new(), Vec::new());
    for path in paths {
        match super::check::documents(path) {
            Ok(found) => documents.extend(found),
            Err(found) => problems.extend(found),
        }
    }
    (documents, problems)
}

/// The documents of all paths, and what they are for a pod with these labels; none where something is wrong with them,
/// which is then told.
fn compile(
    paths: &[PathBuf],
    pod: &PodArgs,
    output: Output,
) -> anyhow::Result<Option<(Vec<Document>, Policy)>> {
    let labels: Labels = pod.labels.iter().cloned().collect();
    let (documents, mut problems) = read(paths);
    match Policy::compile(&documents, &labels) {
        Ok(policy) if problems.is_empty() => {
            return Ok(Some((documents, policy.accompanied(COMPANIONS))));
        }
        Ok(_) => {}
        Err(found) => problems.extend(found),
    }
    output::print_problems(output, &problems)?;
    Ok(None)
}

/// The bounds of a gateway that nobody configured.
fn guard_limits() -> GuardLimits {
    let limits = Limits::default();
    GuardLimits {
        event_bytes: limits.sse_event_bytes,
        tool_input_bytes: limits.tool_input_bytes,
        body_bytes: limits.decoded_body_bytes,
        json: json::Limits { depth: limits.json_depth, ..json::Limits::default() },
    }
}
