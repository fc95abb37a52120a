//! `postern ledger query`: the events that a filter takes, in the order in which they were written.

use std::io::{self, Write};
use std::process::ExitCode;
use std::time::SystemTime;

use super::filter::EventFilter;
use super::print;
use super::reader::{LedgerReader, ReadStep};
use crate::cli::{LedgerQueryArgs, Output};

/// Prints them as they are found, so that nothing is held.
pub(super) fn run(args: &LedgerQueryArgs, output: Output) -> anyhow::Result<ExitCode> {
    let mut reader = LedgerReader::open(args.source.ledger.as_deref(), false)?;
    let filter = EventFilter::new(&args.filter, SystemTime::now());
    let mut stdout = io::BufWriter::new(io::stdout().lock());
    let (mut count, mut is_more) = (0, false);
    while let ReadStep::Entry(entry) = reader.next()? {
        if !filter.takes(&entry.event) {
            continue;
        }
        if count == args.limit {
            is_more = true;
            break;
        }
        count += 1;
        stdout.write_all(print::entry(&entry, output)?.as_bytes())?;
    }
    stdout.flush()?;
    if is_more {
        // Nobody may be reading it.
        let _ = writeln!(io::stderr(), "postern: there are more; --limit says how many are printed");
    }
    print::report_skipped(&reader.skipped());
    reader.check_lines()?;
    Ok(ExitCode::SUCCESS)
}
