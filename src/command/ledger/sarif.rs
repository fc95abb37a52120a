//! `postern ledger sarif`: denials and findings in the format of code scanners.

use std::io::{self, Write};
use std::process::ExitCode;

use super::print;
use crate::cli::{LedgerSarifArgs, Output};
use crate::command::{ledger, output, policy};
use crate::sarif::{RulePlaces, SarifReport};

/// Prints the report: JSON, but for `-o yaml`.
pub(super) fn run(args: &LedgerSarifArgs, form: Output) -> anyhow::Result<ExitCode> {
    let (documents, problems) = policy::read(&args.policy);
    if !problems.is_empty() {
        output::print_problems(Output::Text, &problems)?;
        return Ok(ExitCode::FAILURE);
    }
    let mut report = SarifReport::new(args.group);
    // Where no event was read this fails: an empty report would close the alerts of the last one.
    let skipped = ledger::each(args.source.ledger.as_deref(), |event, _| report.take(event))?;
    print::report_skipped(&skipped);
    let left_out = report.left_out();
    let log = report.into_log(&RulePlaces::of(documents, &std::env::current_dir()?));
    let form = if form == Output::Yaml { Output::Yaml } else { Output::Json };
    output::print(form, "", &log)?;
    if left_out > 0 {
        // Nobody may be reading it.
        let _ = writeln!(
            io::stderr(),
            "postern: {left_out} older results were left out, and the newest {} are in the report; --group counts equal \
             ones in one",
            log.results()
        );
    }
    Ok(ExitCode::SUCCESS)
}
