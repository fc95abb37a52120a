//! `postern policy explain`: why each rule does or does not apply to one call or request.

use std::fmt::Write as _;
use std::process::ExitCode;

use super::compile;
use super::question::Question;
use crate::cli::{Output, PolicyExplainArgs};
use crate::command::output;
use crate::policy::explain::{Applies, Explanation, RuleSaid, Said};

/// Prints the explanation; exit status 1 where the policies or the question have a mistake.
pub(super) fn run(args: &PolicyExplainArgs, output: Output) -> anyhow::Result<ExitCode> {
    let Some((_, policy)) = compile(&args.policy, &args.pod, output)? else { return Ok(ExitCode::FAILURE) };
    let explanation = Question::read(&args.question)?.ask(&policy)?;
    output::print(output, &people(&explanation), &explanation)?;
    Ok(ExitCode::SUCCESS)
}

fn people(explanation: &Explanation) -> String {
    let mut text = format!("{}\n{}\n", explanation.about, said(&explanation.decision));
    // Writing to a String cannot fail.
    for recorded in &explanation.recorded {
        let _ = writeln!(text, "recorded beside: {}", said(recorded));
    }
    for rule in &explanation.rules {
        explain(rule, &mut text);
    }
    text
}

fn said(said: &Said) -> String {
    let rule = said.rule.as_ref().map(|rule| format!(" by {rule}")).unwrap_or_default();
    let reason = said.reason.as_ref().map(|reason| format!(": {reason}")).unwrap_or_default();
    format!("{}{rule}{reason}", said.verdict)
}

fn explain(rule: &RuleSaid, text: &mut String) {
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
