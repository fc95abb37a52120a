//! Reads events from the newest run's file, a file, a directory of files, or standard input.

use std::collections::VecDeque;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};

use crate::command::directories;
use crate::event::Event;
use crate::ledger::lines::{EventLines, NextLine};
use crate::ledger::store::{self, StoreLines};
use crate::ledger::unpacked::Unpacked;

/// The most files of a directory.
const MOST_FILES: usize = 10_000;

/// How many files an error names.
const MOST_NAMED: usize = 3;

/// The endings of files of events.
const ENDINGS: [&str; 3] = [".jsonl", ".jsonl.gz", ".jsonl.zst"];

/// Where the runs of `postern run` are written down, below the user's state directory.
pub(in crate::command) const RUNS: &str = "runs";

/// An event, and the line that it was read from.
pub(in crate::command) struct LedgerEntry {
    pub(in crate::command) event: Event,
    pub(in crate::command) line: String,
}

/// The lines of one file that were skipped.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct SkippedLines {
    name: String,
    /// Lines that were read.
    count: u64,
    /// Lines that are no events.
    lines: u64,
    /// The bytes of a last line that does not end.
    torn: u64,
    /// Why the file could not be read to its end.
    fault: Option<String>,
    is_store: bool,
}

impl SkippedLines {
    /// Describes them in a sentence; none where no line was skipped.
    fn text(&self) -> Option<String> {
        let lines = match self.lines {
            0 => None,
            1 => Some("1 line is no event, or too long, and was passed over".to_owned()),
            lines => Some(format!("{lines} lines are no events, or too long, and were passed over")),
        };
        let torn = (self.torn > 0).then(|| {
            format!("the last line is torn ({} bytes): its writer was stopped, or is writing", self.torn)
        });
        let texts: Vec<String> = [lines, torn, self.fault.clone()].into_iter().flatten().collect();
        (!texts.is_empty()).then(|| format!("{}: {}", self.name, texts.join("; ")))
    }
}

/// Events of several files, one after another.
pub(super) struct LedgerReader {
    waiting: VecDeque<PathBuf>,
    current: Option<EventLines<Box<dyn io::Read>>>,
    /// The last file is read on when it grows.
    follows: bool,
    /// The skipped lines of each file so far; the last is the current file.
    files: Vec<SkippedLines>,
    /// How many events were read.
    events: u64,
}

/// The next step of reading.
pub(super) enum ReadStep {
    Entry(Box<LedgerEntry>),
    /// There are no more events, or none yet in a file that is followed.
    End,
}

impl LedgerReader {
    /// Opens the files that `--ledger` names, or the newest run's. `follows`: the last file is read on when it grows.
    ///
    /// # Errors
    /// There is no such file, or no run.
    pub(super) fn open(ledger: Option<&Path>, follows: bool) -> anyhow::Result<Self> {
        Self::of(named(ledger)?, follows)
    }

    /// Opens files, in this order.
    pub(super) fn of(files: Vec<PathBuf>, follows: bool) -> anyhow::Result<Self> {
        let mut reading =
            Self { waiting: files.into(), current: None, follows, files: Vec::new(), events: 0 };
        reading.open_next()?;
        Ok(reading)
    }

    /// The next event.
    pub(super) fn next(&mut self) -> anyhow::Result<ReadStep> {
        loop {
            let (Some(current), Some(skipped)) = (&mut self.current, self.files.last_mut()) else {
                return Ok(ReadStep::End);
            };
            let read = match current.read() {
                Ok(read) => read,
                // Compressed data that is damaged or cut, as a line may be torn: the other files are read.
                Err(error) if error.kind() == io::ErrorKind::InvalidData => {
                    skipped.fault = Some(error.to_string());
                    continue;
                }
                Err(error) => return Err(error).with_context(|| format!("{} cannot be read", skipped.name)),
            };
            skipped.count += u64::from(!matches!(read, NextLine::End { .. }));
            match read {
                NextLine::Line(line) => match entry(line) {
                    Some(entry) => {
                        self.events += 1;
                        return Ok(ReadStep::Entry(Box::new(entry)));
                    }
                    // A writer ends a torn line with a break before it goes on, which may leave an empty line.
                    None => skipped.lines += u64::from(!line.is_empty()),
                },
                NextLine::TooLong => skipped.lines += 1,
                NextLine::End { torn } => {
                    skipped.torn = torn;
                    if self.waiting.is_empty() || !self.open_next()? {
                        return Ok(ReadStep::End);
                    }
                }
            }
        }
    }

    /// Describes the lines of each file that were skipped so far.
    pub(super) fn skipped(&self) -> Vec<String> {
        self.files.iter().filter_map(SkippedLines::text).collect()
    }

    /// Where the last event stands: the file and the number of the line.
    pub(super) fn place(&self) -> String {
        self.files.last().map(|file| format!("{}:{}", file.name, file.count)).unwrap_or_default()
    }

    /// The name of the file that is read now.
    pub(super) fn current_name(&self) -> Option<&str> {
        self.files.last().map(|file| file.name.as_str())
    }

    /// Fails where no event was read of files of lines: whoever asked for events has named something else. A ledger may
    /// be empty.
    ///
    /// # Errors
    /// There was none, and why.
    pub(super) fn check_lines(&self) -> anyhow::Result<()> {
        if self.files.iter().any(|file| file.is_store) { Ok(()) } else { self.check_events() }
    }

    /// Fails where no event was read.
    ///
    /// # Errors
    /// There was none, and why.
    pub(super) fn check_events(&self) -> anyhow::Result<()> {
        if self.events > 0 {
            return Ok(());
        }
        let file = |file: &SkippedLines| file.text().unwrap_or_else(|| format!("{} has none", file.name));
        let files: Vec<String> = self.files.iter().take(MOST_NAMED).map(file).collect();
        bail!("no event was read: {}", files.join("; "))
    }

    fn open_next(&mut self) -> anyhow::Result<bool> {
        let Some(path) = self.waiting.pop_front() else { return Ok(false) };
        let mut is_store = false;
        let reader: Box<dyn io::Read> = if is_standard_input(&path) {
            Box::new(Unpacked::new(io::stdin()))
        } else {
            let file = File::open(&path).with_context(|| format!("{} cannot be opened", path.display()))?;
            let metadata = file.metadata()?;
            if metadata.is_dir() {
                bail!("{} is a directory", path.display());
            }
            if metadata.is_file() && store::is_store(&path)? {
                is_store = true;
                Box::new(StoreLines::open(&path)?)
            } else if metadata.is_file() && !(self.follows && self.waiting.is_empty()) {
                // Up to its length by now, so that reading ends while a run goes on writing.
                Box::new(Unpacked::new(io::Read::take(file, metadata.len())))
            } else {
                Box::new(Unpacked::new(file))
            }
        };
        let name =
            if is_standard_input(&path) { "standard input".to_owned() } else { path.display().to_string() };
        self.files.push(SkippedLines { name, is_store, ..SkippedLines::default() });
        self.current = Some(EventLines::new(reader));
        Ok(true)
    }
}

fn entry(line: &[u8]) -> Option<LedgerEntry> {
    let event = Event::read(line)?;
    Some(LedgerEntry { event, line: std::str::from_utf8(line).ok()?.to_owned() })
}

pub(super) fn is_standard_input(path: &Path) -> bool {
    path == Path::new("-")
}

/// Lists the files of every run, the newest first.
///
/// # Errors
/// There is no run.
pub(super) fn runs() -> anyhow::Result<Vec<PathBuf>> {
    let directory = directories::state()?.join(RUNS);
    let mut files = match files(&directory) {
        Ok(files) => files,
        Err(_) if !directory.exists() => Vec::new(),
        Err(error) => return Err(error),
    };
    if files.is_empty() {
        bail!(
            "no run has written events in {} yet; start one with `postern run -- COMMAND`, or name a file, a \
             directory or `-` with --ledger",
            directory.display()
        );
    }
    files.reverse();
    Ok(files)
}

/// Lists the files that `--ledger` names, or the newest run's.
///
/// # Errors
/// There is no such file, or no run.
pub(super) fn named(ledger: Option<&Path>) -> anyhow::Result<Vec<PathBuf>> {
    match ledger {
        Some(path) => listed(path),
        None => Ok(vec![newest()?]),
    }
}

fn newest() -> anyhow::Result<PathBuf> {
    runs()?.into_iter().next().context("no run has written events yet")
}

/// Lists the files that a user named: one file, standard input, or those of a directory.
pub(super) fn listed(path: &Path) -> anyhow::Result<Vec<PathBuf>> {
    if is_standard_input(path) || !path.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let files = files(path)?;
    if files.is_empty() {
        bail!("{} has no files of events (*.jsonl, *.jsonl.gz, *.jsonl.zst)", path.display());
    }
    Ok(files)
}

/// Lists the regular files of events in a directory by name; the name of a run's file begins with its time.
fn files(directory: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let cannot = || format!("{} cannot be listed", directory.display());
    let mut files = Vec::new();
    for entry in fs::read_dir(directory).with_context(cannot)? {
        let entry = entry.with_context(cannot)?;
        let path = entry.path();
        let is_regular = entry.file_type().with_context(cannot)?.is_file();
        let name = entry.file_name();
        let is_events = |ending: &&str| name.as_encoded_bytes().ends_with(ending.as_bytes());
        if is_regular && ENDINGS.iter().any(is_events) {
            files.push(path);
        }
        if files.len() > MOST_FILES {
            bail!("{} has more than {MOST_FILES} files of events: name some of them", directory.display());
        }
    }
    files.sort();
    Ok(files)
}
