//! `postern ledger tail`: the last events, and those that come.

use std::collections::VecDeque;
use std::io::{self, Write};
use std::process::ExitCode;
use std::time::{Duration, SystemTime};

use super::filter::EventFilter;
use super::print;
use super::reader::{LedgerReader, ReadStep};
use crate::cli::{LedgerTailArgs, Output};
use crate::terminal;

/// How often a file that is followed is looked at.
const PAUSE: Duration = Duration::from_millis(100);

/// The most bytes that are held of the last events.
const MOST_BYTES: usize = 64 << 20;

/// Prints the last events, and with `--follow` every further one until it is interrupted.
pub(super) fn run(args: &LedgerTailArgs, output: Output) -> anyhow::Result<ExitCode> {
    let mut reader = LedgerReader::open(args.source.ledger.as_deref(), args.follow)?;
    let filter = EventFilter::new(&args.filter, SystemTime::now());
    let mut stdout = io::stdout().lock();
    let mut last = LastEvents { events: VecDeque::new(), bytes: 0, most: args.lines };
    let mut is_current = false;
    loop {
        match reader.next()? {
            ReadStep::Entry(entry) if !filter.takes(&entry.event) => {}
            ReadStep::Entry(entry) if is_current => {
                stdout.write_all(print::entry(&entry, output)?.as_bytes())?
            }
            ReadStep::Entry(entry) => last.push(print::entry(&entry, output)?),
            ReadStep::End => {
                for event in last.events.drain(..) {
                    stdout.write_all(event.as_bytes())?;
                }
                stdout.flush()?;
                if !args.follow {
                    break;
                }
                if !is_current {
                    report_followed(&reader);
                }
                is_current = true;
                std::thread::sleep(PAUSE);
            }
        }
    }
    print::report_skipped(&reader.skipped());
    reader.check_lines()?;
    Ok(ExitCode::SUCCESS)
}

/// Reports which file is followed: a run that begins later has another.
fn report_followed(reader: &LedgerReader) {
    if let Some(name) = reader.current_name() {
        // Nobody may be reading it.
        let _ = writeln!(io::stderr(), "postern: following {}", terminal::plain(name));
    }
}

/// The last events as text, bounded.
struct LastEvents {
    events: VecDeque<String>,
    bytes: usize,
    most: usize,
}

impl LastEvents {
    fn push(&mut self, event: String) {
        self.bytes += event.len();
        self.events.push_back(event);
        while self.events.len() > self.most || self.bytes > MOST_BYTES {
            let Some(first) = self.events.pop_front() else { return };
            self.bytes -= first.len();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_held_is_bounded_in_number_and_bytes() {
        let mut last = LastEvents { events: VecDeque::new(), bytes: 0, most: 2 };
        ["a", "b", "c"].into_iter().for_each(|event| last.push(event.to_owned()));
        assert_eq!(last.events, ["b", "c"]);
        last.push("x".repeat(MOST_BYTES));
        assert_eq!((last.events.len(), last.bytes), (1, MOST_BYTES));
    }
}
