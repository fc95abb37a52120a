//! `postern ledger query`: the events that a filter takes, in the order in which they were written.

use std::io::{self, Write};
use std::process::ExitCode;
use std::time::SystemTime;

use super::filter::Filter;
use super::say_passed;
use super::source::{Reading, Step};
use crate::cli::{LedgerQueryArgs, Output};

/// Prints them as they are found, so that nothing is held.
pub(super) fn run(args: &LedgerQueryArgs, output: Output) -> anyhow::Result<ExitCode> {
    let mut reading = Reading::open(args.source.ledger.as_deref(), false)?;
    let filter = Filter::new(&args.filter, SystemTime::now());
    let mut stdout = io::BufWriter::new(io::stdout().lock());
    let (mut found, mut is_more) = (0, false);
    while let Step::Event(entry) = reading.next()? {
        if !filter.takes(&entry.event) {
            continue;
        }
        if found == args.limit {
            is_more = true;
            break;
        }
        found += 1;
        stdout.write_all(entry.print(output)?.as_bytes())?;
    }
    stdout.flush()?;
    if is_more {
        // Nobody may be reading it.
        let _ = writeln!(io::stderr(), "postern: there are more; --limit says how many are printed");
    }
    say_passed(&reading.passed);
    Ok(ExitCode::SUCCESS)
}
