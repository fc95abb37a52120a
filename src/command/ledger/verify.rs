//! `postern ledger verify`: whether events hold together, and with lines that left the gateway.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, bail};

use super::print;
use super::reader::{self, LedgerReader, ReadStep};
use crate::cli::{LedgerVerifyArgs, Output};
use crate::command::output;
use crate::event::Event;
use crate::ledger::store::{self, PagesCheck, StoreRow, StoreRows};
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
    while let ReadStep::Entry(entry) = reader.next()? {
        let place = || reader.place();
        take(
            &PlacedLine { event: &entry.event, line: entry.line.as_bytes(), place: &place, before: None },
            verifier,
        );
    }
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
    while rows.next_page(|row| take_row(row, &name, &mut check, verifier))? {}
    check.finish(&name, verifier);
    Ok(Vec::new())
}

fn take_row(row: &StoreRow<'_>, name: &str, check: &mut RowCheck, verifier: &mut Verifier) {
    let place = || format!("{name}: row {}", row.n);
    let Some((line, event)) = row.line.and_then(|line| Some((line, Event::read(line.as_bytes())?))) else {
        verifier.fault(FaultKind::Changed, place(), "the row holds no event".to_owned());
        return;
    };
    let line = PlacedLine { event: &event, line: line.as_bytes(), place: &place, before: row.before };
    check.take(row.n, &line, verifier);
    if let Some(column) = row.differing_column(&event) {
        verifier.fault(FaultKind::Column, place(), format!("the column {column} is not what the line says"));
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
