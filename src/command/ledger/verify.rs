//! `postern ledger verify`: whether events hold together, and with lines that left the gateway.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, anyhow, bail};

use super::reader::{self, LedgerReader};
use super::{ahead, print};
use crate::cli::{LedgerVerifyArgs, Output};
use crate::command::output;
use crate::event::{Chain, Event};
use crate::ledger::store::{self, PagesCheck, StoreError, StoreRow, StoreRows};
use crate::ledger::verify::{FaultKind, PlacedLine, Report, RowCheck, Verifier};

/// Prints what was found; exit status 1 where something does not hold.
pub(super) fn run(args: &LedgerVerifyArgs, output: Output) -> anyhow::Result<ExitCode> {
    let ledger = args.source.ledger.as_deref();
    if let (Some(against), Some(ledger)) = (&args.against, ledger)
        && reader::is_standard_input(against)
        && reader::is_standard_input(ledger)
    {
        bail!("--ledger and --against cannot both be standard input");
    }
    let files = reader::named(ledger)?;
    let mut verifier = Verifier::new(args.against.is_some());
    let skipped = match files.as_slice() {
        [file] if is_store(file)? => rows(file, &mut verifier)?,
        _ => lines(
            files,
            |line, verifier| {
                if let Some(missing) = verifier.take(line) {
                    verifier.missing(missing, line);
                }
            },
            &mut verifier,
        )?,
    };
    print::report_skipped(&skipped);
    if let Some(against) = &args.against {
        let files = reader::listed(against)?;
        if let [file] = files.as_slice()
            && is_store(file)?
        {
            bail!("{} is a ledger: the witness is lines that left the gateway", file.display());
        }
        let skipped = lines(files, |line, verifier| verifier.compare(line), &mut verifier)?;
        print::report_skipped(&skipped);
    }
    let report = verifier.report();
    output::print(output, &people(&report), &report)?;
    Ok(if report.holds { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn is_store(file: &Path) -> anyhow::Result<bool> {
    Ok(file.is_file()
        && store::is_store(file).with_context(|| format!("{} cannot be read", file.display()))?)
}

/// Gives each line of these files. Returns what to say of lines that were skipped.
fn lines(
    files: Vec<PathBuf>,
    mut take: impl FnMut(&PlacedLine<'_>, &mut Verifier),
    verifier: &mut Verifier,
) -> anyhow::Result<Vec<String>> {
    let mut reader = LedgerReader::of(files, false)?;
    reader.each(|event, line, place| {
        take(&PlacedLine { event, line: line.as_bytes(), place, before: None }, verifier);
        Ok(())
    })?;
    reader.check_events()?;
    Ok(reader.skipped())
}

/// Gives each row of a ledger. Returns what to say of what was not checked.
fn rows(file: &Path, verifier: &mut Verifier) -> anyhow::Result<Vec<String>> {
    let name = file.display().to_string();
    let mut rows = StoreRows::open(file)?;
    match rows.check_pages()? {
        PagesCheck::Whole => {}
        PagesCheck::Damaged(damage) => verifier.fault(FaultKind::Changed, name.clone(), damage),
        PagesCheck::Unfinished => {
            verifier
                .note("the file is too large to check each page in 5 seconds; its rows were read".to_owned());
        }
    }
    let mut check = RowCheck::new(&rows.evictions()?, rows.starts()?);
    let readers = (0..ahead::workers()).map(|_| StoreRows::open(file)).collect::<Result<Vec<_>, _>>()?;
    let read = |reader: StoreRows| move |page| reader.read(page, CheckedRow::of);
    ahead::each(
        || Ok(rows.next_page()?),
        readers.into_iter().map(read).collect(),
        |page: &Result<Vec<CheckedRow>, StoreError>| {
            let rows = page.as_ref().map_err(|error| anyhow!("{error}"))?;
            rows.iter().for_each(|row| row.take(&name, &mut check, verifier));
            Ok(())
        },
    )?;
    check.finish(&name, verifier);
    Ok(Vec::new())
}

/// A row whose columns were compared with its line.
struct CheckedRow {
    n: i64,
    /// The event and its line; none where the row holds no event.
    event: Option<(Event, String)>,
    before: Option<Chain>,
    differing_column: Option<&'static str>,
}

impl CheckedRow {
    fn of(row: &StoreRow<'_>) -> Self {
        let event = row.line.and_then(|line| Some((Event::read_text(line)?, line.to_owned())));
        let differing_column = event.as_ref().and_then(|(event, _)| row.differing_column(event));
        Self { n: row.n, event, before: row.before, differing_column }
    }

    fn take(&self, name: &str, check: &mut RowCheck, verifier: &mut Verifier) {
        let place = || format!("{name}: row {}", self.n);
        let Some((event, line)) = &self.event else {
            verifier.fault(FaultKind::Changed, place(), "the row holds no event".to_owned());
            return;
        };
        let line = PlacedLine { event, line: line.as_bytes(), place: &place, before: self.before };
        check.take(self.n, &line, verifier);
        if let Some(column) = self.differing_column {
            let message = format!("the column {column} is not what the line says");
            verifier.fault(FaultKind::Column, place(), message);
        }
    }
}

fn people(report: &Report) -> String {
    let mut text = String::new();
    for fault in &report.faults {
        let start = fault.start.map(|start| format!(" (start {start})")).unwrap_or_default();
        // Writing to a String cannot fail.
        let _ =
            writeln!(text, "{:<9} {}: {}{start}", format!("{:?}", fault.kind), fault.place, fault.message);
    }
    if report.more_faults > 0 {
        let _ = writeln!(text, "and {} more", report.more_faults);
    }
    for note in &report.notes {
        let _ = writeln!(text, "note      {note}");
    }
    if let Some(witness) = &report.witness {
        let _ = writeln!(
            text,
            "witness   {} of {} lines are in the record as they are",
            witness.same, witness.lines
        );
    }
    let Report { events, chained, starts, .. } = report;
    let starts = starts.len();
    let verdict = if report.holds { "holds together" } else { "does not hold together" };
    let _ = writeln!(text, "{events} events of {starts} starts, {chained} chained: the record {verdict}");
    text
}
