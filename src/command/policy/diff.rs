//! `postern policy diff`: what a new policy changes, and what it would have decided otherwise.

use std::fmt::Write as _;
use std::process::ExitCode;
use std::slice;
use std::sync::Arc;

use serde::Serialize;

use super::{compile, guard_limits};
use crate::cli::{FailOn, Output, PolicyDiffArgs};
use crate::command::{ledger, output};
use crate::terminal;
use crate::trial::changes::{self, Mark, PolicyChange};
use crate::trial::compare::{Comparison, Counts, Group, Outcome};

#[derive(Serialize)]
struct Difference {
    changes: Vec<PolicyChange>,
    #[serde(skip_serializing_if = "Option::is_none")]
    replay: Option<Replay>,
}

#[derive(Serialize)]
struct Replay {
    #[serde(flatten)]
    counts: Counts,
    groups: Vec<Group>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    skipped: Vec<String>,
}

/// Prints the changes, and with a ledger what differs in its events; exit status 1 where `--fail-on` finds something, or
/// a policy has a mistake.
pub(super) fn run(args: &PolicyDiffArgs, output: Output) -> anyhow::Result<ExitCode> {
    let Some((old, before)) = compile(slice::from_ref(&args.old), &args.pod, output)? else {
        return Ok(ExitCode::FAILURE);
    };
    let Some((new, after)) = compile(slice::from_ref(&args.new), &args.pod, output)? else {
        return Ok(ExitCode::FAILURE);
    };
    let changes = changes::changes(&old, &new);
    let replay = match &args.source.ledger {
        None => None,
        Some(path) => {
            let policies = [Arc::new(before), Arc::new(after)];
            let mut comparison = Comparison::new(policies, [&old, &new], guard_limits());
            let skipped = ledger::each(Some(path), |event, line| comparison.take(event, line))?;
            Some(Replay { counts: comparison.counts(), groups: comparison.into_groups(), skipped })
        }
    };
    let difference = Difference { changes, replay };
    output::print(output, &people(&difference), &difference)?;
    let fails = args.fail_on.is_some_and(|fail_on| difference.has(fail_on));
    Ok(if fails { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

impl Difference {
    fn has(&self, fail_on: FailOn) -> bool {
        let counts = self.replay.as_ref().map(|replay| replay.counts).unwrap_or_default();
        match fail_on {
            FailOn::Loosening => {
                self.changes.iter().any(|change| change.mark == Mark::Looser) || counts.allowed > 0
            }
            FailOn::Any => !self.changes.is_empty() || counts.allowed + counts.denied > 0,
        }
    }
}

fn people(difference: &Difference) -> String {
    let mut text = String::new();
    if difference.changes.is_empty() {
        text.push_str("nothing is changed\n");
    }
    for PolicyChange { mark, rule, what } in &difference.changes {
        // Writing to a String cannot fail.
        let _ = writeln!(text, "{:<7}  {rule}  {what}", mark.as_str());
    }
    let Some(replay) = &difference.replay else { return text };
    let Counts { decisions, same, denied, allowed, unknown } = replay.counts;
    let _ = writeln!(
        text,
        "{decisions} decisions: {same} the same, {denied} would be denied, {allowed} would be allowed, {unknown} cannot be said"
    );
    for Group { outcome, events, by, about, example } in &replay.groups {
        let word = match outcome {
            Outcome::Denied => "denied",
            Outcome::Allowed => "allowed",
            Outcome::Unknown => "unknown",
        };
        // An event is what somebody wrote: it makes no lines.
        let (by, about) = (terminal::plain(by), terminal::plain(about));
        let _ = writeln!(text, "  {word:<7} {events:>6}  {by}  {about}  e.g. {example}");
    }
    for skipped in &replay.skipped {
        let _ = writeln!(text, "{skipped}");
    }
    text
}
