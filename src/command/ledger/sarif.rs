//! `postern ledger sarif`: denials in the format of code scanners.

use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;

use anyhow::bail;

use super::print;
use super::reader::{LedgerReader, ReadStep, SkippedLines};
use crate::cli::{LedgerSarifArgs, Output};
use crate::command::{output, policy};
use crate::event::Event;
use crate::sarif::{RulePlaces, SarifReport};

/// Prints the report: JSON, but for `-o yaml`.
pub(super) fn run(args: &LedgerSarifArgs, form: Output) -> anyhow::Result<ExitCode> {
    let (documents, problems) = policy::read(&args.policy);
    if !problems.is_empty() {
        output::print_problems(Output::Text, &problems)?;
        return Ok(ExitCode::FAILURE);
    }
    let (mut report, mut count) = (SarifReport::new(args.group), 0_u64);
    let skipped = each_event(args.source.ledger.as_deref(), |event| {
        count += 1;
        report.take(event);
    })?;
    print::report_skipped(&skipped);
    if count == 0 {
        bail!("no event was read, and an empty report would close the alerts of the last one");
    }
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

/// Gives each event of the ledger to `take`. Returns the lines that were skipped.
fn each_event(ledger: Option<&Path>, mut take: impl FnMut(&Event)) -> anyhow::Result<Vec<SkippedLines>> {
    let mut reader = LedgerReader::open(ledger, false)?;
    while let ReadStep::Entry(entry) = reader.next()? {
        take(&entry.event);
    }
    Ok(reader.skipped)
}
