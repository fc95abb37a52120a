//! `postern policy learn`: a draft of a policy from what happened.

use std::process::ExitCode;

use crate::cli::{Output, PolicyLearnArgs};
use crate::command::{ledger, output};
use crate::trial::learn::Learner;

/// Prints the draft; for programs it is the document without its comments.
pub(super) fn run(args: &PolicyLearnArgs, output: Output) -> anyhow::Result<ExitCode> {
    let mut learner = Learner::default();
    let skipped = ledger::each(args.source.ledger.as_deref(), |event, _| learner.take(event))?;
    let text = learner.draft(args.min, &skipped);
    let document: serde_json::Value = serde_yaml::from_str(&text)?;
    output::print(output, &text, &document)?;
    Ok(ExitCode::SUCCESS)
}
