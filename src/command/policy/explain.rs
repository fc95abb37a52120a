//! `postern policy explain`: why each rule does or does not apply to one call or request.

use std::fmt::Write as _;
use std::io::{self, Read};
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::SystemTime;

use anyhow::{Context, bail};
use serde::Serialize;

use super::{compile, guard_limits};
use crate::cli::{Output, PolicyExplainArgs};
use crate::command::{ledger, output};
use crate::config::source;
use crate::event::{API_VERSION, Event};
use crate::policy::explain::{Applies, CommandExplanation, Explanation, RuleExplanation, ShownDecision};
use crate::terminal;
use crate::trial::question::{Asked, Question, Recorded};

/// The largest question that is read.
const MOST_BYTES: u64 = 4 << 20;

/// The explanation, and of an event what the gateway decided.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Explained<'a> {
    #[serde(flatten)]
    explanation: Explanation,
    #[serde(skip_serializing_if = "Option::is_none")]
    recorded_decision: Option<&'a Recorded>,
}

/// Prints the explanation; exit status 1 where the policies or the question have a mistake.
pub(super) fn run(args: &PolicyExplainArgs, output: Output) -> anyhow::Result<ExitCode> {
    if args.event.is_none() && args.source.ledger.is_some() {
        bail!("--ledger says where --event ID is looked for");
    }
    let Some((_, policy)) = compile(&args.policy, &args.pod, output)? else { return Ok(ExitCode::FAILURE) };
    let (question, event) = match (&args.event, &args.question) {
        (Some(id), _) => {
            let entry = ledger::find(id, args.source.ledger.as_deref())?.entry;
            let question = Question::parse(&entry.line)
                .context("the event is about no call or request that could be explained")?;
            (question, Some(entry.event))
        }
        (None, Some(question)) => read(question)?,
        (None, None) => bail!("name a file with the call or request, or an event with --event"),
    };
    let asked = event.as_ref().map_or(Asked::At(Some(SystemTime::now())), Asked::Event);
    let explanation = question.ask(&Arc::new(policy), guard_limits(), asked)?;
    let explained = Explained { explanation, recorded_decision: question.recorded() };
    output::print(output, &people(&explained), &explained)?;
    Ok(ExitCode::SUCCESS)
}

/// Reads a file, or standard input where the path is `-`. Returns the question, and the event that it is, if it is one.
fn read(path: &Path) -> anyhow::Result<(Question, Option<Event>)> {
    let text = if path == Path::new("-") {
        let mut text = String::new();
        io::stdin().take(MOST_BYTES).read_to_string(&mut text).context("standard input cannot be read")?;
        text
    } else {
        source::read_text(path, MOST_BYTES).map_err(|problem| anyhow::anyhow!("{problem}"))?
    };
    let place = if path == Path::new("-") { "standard input".to_owned() } else { path.display().to_string() };
    let question = Question::parse(&text)
        .with_context(|| format!("{place} is no call or request that could be explained"))?;
    let event = serde_json::from_str::<Event>(&text).ok().filter(|event| event.api_version == API_VERSION);
    Ok((question, event))
}

fn people(explained: &Explained<'_>) -> String {
    let mut text = String::new();
    let explanation = &explained.explanation;
    head(explanation, &mut text);
    if let Some(recorded) = explained.recorded_decision {
        compare(recorded, &explanation.decision, &mut text);
    }
    explanation.rules.iter().for_each(|rule| explain(rule, &mut text));
    for inside in &explanation.inside {
        text.push_str("\ninside it, ");
        head(inside, &mut text);
        inside.rules.iter().for_each(|rule| explain(rule, &mut text));
    }
    text
}

/// What it is about, and what is decided.
fn head(explanation: &Explanation, text: &mut String) {
    // Writing to a String cannot fail.
    let _ = writeln!(text, "{}\n{}", explanation.about, explanation.decision);
    for recorded in &explanation.recorded {
        let _ = writeln!(text, "recorded beside: {}", recorded);
    }
    for CommandExplanation { command, does } in &explanation.commands {
        let does = if does.is_empty() { String::new() } else { format!(": {}", does.join("; ")) };
        let _ = writeln!(text, "it runs {command}{does}");
    }
    if explanation.opaque {
        text.push_str("a part of what it runs cannot be told (opaque)\n");
    }
}

/// What the gateway decided, and why that may be something else. An event is what somebody wrote: it makes no lines.
fn compare(recorded: &Recorded, decision: &ShownDecision, text: &mut String) {
    let is_same = recorded.verdict == decision.verdict && recorded.rule == decision.rule;
    let why = if is_same || decision.is_open() {
        ""
    } else {
        " (not as here: it had another policy, other labels or bounds, or knew what an event does not have: addresses, \
         credentials, limits, the request's body, definitions of tools)"
    };
    let rule = recorded.rule.as_ref().map(|rule| format!(" by {rule}")).unwrap_or_default();
    let reason = recorded.reason.as_ref().map(|reason| format!(": {reason}")).unwrap_or_default();
    let decided = format!("{}{rule}{reason}", recorded.verdict);
    // Writing to a String cannot fail.
    let _ = writeln!(text, "the gateway decided: {}{why}", terminal::plain(&decided));
}

fn explain(rule: &RuleExplanation, text: &mut String) {
    let applies = match rule.applies {
        Applies::Yes => "applies",
        Applies::No => "does not apply",
        Applies::Unknown => "may apply",
    };
    let aside = if rule.enforcement == "Audit" { ", Audit" } else { "" };
    let _ = writeln!(text, "\n{} ({}{aside}) {applies}: {}", rule.rule, rule.action, rule.why.join("; "));
    for test in &rule.tests {
        let holds = if test.holds { "holds" } else { "does not hold" };
        let _ = writeln!(text, "  {} {holds}: found {}", test.test, test.found.join(", "));
    }
}
