//! `postern ledger tail`: the last events, and those that come.

use std::collections::VecDeque;
use std::io::{self, Write};
use std::process::ExitCode;
use std::time::{Duration, SystemTime};

use super::filter::Filter;
use super::say_passed;
use super::source::{Reading, Step};
use crate::cli::{LedgerTailArgs, Output};
use crate::terminal;

/// How often a file that is followed is looked at.
const PAUSE: Duration = Duration::from_millis(100);

/// The most bytes that are held of the last events.
const MOST_BYTES: usize = 64 << 20;

/// Prints the last events, and with `--follow` every further one until it is interrupted.
pub(super) fn run(args: &LedgerTailArgs, output: Output) -> anyhow::Result<ExitCode> {
    let mut reading = Reading::open(args.source.ledger.as_deref(), args.follow)?;
    let filter = Filter::new(&args.filter, SystemTime::now());
    let mut stdout = io::stdout().lock();
    let mut last = Last { events: VecDeque::new(), bytes: 0, most: args.lines };
    let mut is_current = false;
    loop {
        match reading.next()? {
            Step::Event(entry) if !filter.takes(&entry.event) => {}
            Step::Event(entry) if is_current => stdout.write_all(entry.print(output)?.as_bytes())?,
            Step::Event(entry) => last.push(entry.print(output)?),
            Step::End => {
                for event in last.events.drain(..) {
                    stdout.write_all(event.as_bytes())?;
                }
                stdout.flush()?;
                if !args.follow {
                    break;
                }
                if !is_current {
                    say_followed(&reading);
                }
                is_current = true;
                std::thread::sleep(PAUSE);
            }
        }
    }
    say_passed(&reading.passed);
    Ok(ExitCode::SUCCESS)
}

/// Says which file is read on: a run that begins later has another.
fn say_followed(reading: &Reading) {
    if let Some(current) = reading.passed.last() {
        // Nobody may be reading it.
        let _ = writeln!(io::stderr(), "postern: following {}", terminal::plain(&current.name));
    }
}

/// The last events, as they are printed.
struct Last {
    events: VecDeque<String>,
    bytes: usize,
    most: usize,
}

impl Last {
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
        let mut last = Last { events: VecDeque::new(), bytes: 0, most: 2 };
        ["a", "b", "c"].into_iter().for_each(|event| last.push(event.to_owned()));
        assert_eq!(last.events, ["b", "c"]);
        last.push("x".repeat(MOST_BYTES));
        assert_eq!((last.events.len(), last.bytes), (1, MOST_BYTES));
    }
}
