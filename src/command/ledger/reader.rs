//! Reads events from the newest run's file, a file, a directory of files, or standard input.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};

use super::ahead;
use crate::command::directories;
use crate::event::Event;
use crate::ledger::lines::{EventLines, NextLine};
use crate::ledger::store::{self, RowFilter, StoreLines};
use crate::ledger::unpacked::Unpacked;

/// A block of lines is full with so many of them, or so many bytes.
const BLOCK_LINES: usize = 64;
const BLOCK_BYTES: usize = 128 << 10;

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
    /// Rows of a ledger that do not fit it need not be read.
    filter: RowFilter,
    /// The skipped lines of each file so far; the last is the current file.
    files: Vec<SkippedLines>,
    /// How many events were read.
    events: u64,
}

/// Lines whose events are read together, on another thread.
#[derive(Default)]
struct LineBlock {
    text: String,
    lines: Vec<BlockLine>,
}

/// A line of a block: its file, its number there, and where it ends in the text.
struct BlockLine {
    file: usize,
    number: u64,
    end: usize,
}

/// Lines with their events; none where a line is no event.
struct EventBlock {
    lines: LineBlock,
    events: Vec<Option<Event>>,
}

impl LineBlock {
    fn read(self) -> EventBlock {
        let mut begin = 0;
        let event = |line: &BlockLine| {
            let text = self.text.get(begin..line.end)?;
            begin = line.end;
            Event::read_text(text)
        };
        let events = self.lines.iter().map(event).collect();
        EventBlock { lines: self, events }
    }
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
        Self::begin(files, follows, RowFilter::default())
    }

    /// Opens files to read what fits a filter. Of a ledger it leaves out what does not; of lines it gives all.
    pub(super) fn filtered(files: Vec<PathBuf>, filter: RowFilter) -> anyhow::Result<Self> {
        Self::begin(files, false, filter)
    }

    fn begin(files: Vec<PathBuf>, follows: bool, filter: RowFilter) -> anyhow::Result<Self> {
        let mut reading =
            Self { waiting: files.into(), current: None, follows, filter, files: Vec::new(), events: 0 };
        reading.open_next()?;
        Ok(reading)
    }

    /// Whether a ledger was among the files so far.
    pub(super) fn has_store(&self) -> bool {
        self.files.iter().any(|file| file.is_store)
    }

    /// The next event.
    pub(super) fn next(&mut self) -> anyhow::Result<ReadStep> {
        let mut line = String::new();
        while self.next_line(&mut line)? {
            if let Some(event) = Event::read_text(&line) {
                self.events += 1;
                return Ok(ReadStep::Entry(Box::new(LedgerEntry { event, line })));
            }
            self.skip_line(self.files.len().saturating_sub(1));
            line.clear();
        }
        Ok(ReadStep::End)
    }

    /// Gives every event that is left, with its line and its place. They are read ahead on several threads.
    pub(super) fn each(
        &mut self,
        mut take: impl FnMut(&Event, &str, &dyn Fn() -> String) -> anyhow::Result<()>,
    ) -> anyhow::Result<()> {
        let workers = vec![LineBlock::read; ahead::workers()];
        let reader = RefCell::new(self);
        let take = |block: &EventBlock| {
            let mut begin = 0;
            for (line, event) in block.lines.lines.iter().zip(&block.events) {
                let text = block.lines.text.get(begin..line.end).unwrap_or_default();
                begin = line.end;
                let Some(event) = event else {
                    reader.borrow_mut().skip_line(line.file);
                    continue;
                };
                reader.borrow_mut().events += 1;
                take(event, text, &|| reader.borrow().place(line.file, line.number))?;
            }
            Ok(())
        };
        ahead::each(|| reader.borrow_mut().next_block(), workers, take)
    }

    /// The next lines; none where there are no more.
    fn next_block(&mut self) -> anyhow::Result<Option<LineBlock>> {
        let mut block = LineBlock::default();
        while block.lines.len() < BLOCK_LINES
            && block.text.len() < BLOCK_BYTES
            && self.next_line(&mut block.text)?
        {
            let number = self.files.last().map_or(0, |file| file.count);
            let (file, end) = (self.files.len().saturating_sub(1), block.text.len());
            block.lines.push(BlockLine { file, number, end });
        }
        Ok((!block.lines.is_empty()).then_some(block))
    }

    /// Adds the next line that is text to `text`. Returns whether there was one.
    fn next_line(&mut self, text: &mut String) -> anyhow::Result<bool> {
        loop {
            let (Some(current), Some(skipped)) = (&mut self.current, self.files.last_mut()) else {
                return Ok(false);
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
                // A writer ends a torn line with a break before it goes on, which may leave an empty line.
                NextLine::Line([]) => {}
                NextLine::Line(line) => match std::str::from_utf8(line) {
                    Ok(line) => {
                        text.push_str(line);
                        return Ok(true);
                    }
                    Err(_) => skipped.lines += 1,
                },
                NextLine::TooLong => skipped.lines += 1,
                NextLine::End { torn } => {
                    skipped.torn = torn;
                    if self.waiting.is_empty() || !self.open_next()? {
                        return Ok(false);
                    }
                }
            }
        }
    }

    /// Counts a line that is no event.
    fn skip_line(&mut self, file: usize) {
        if let Some(file) = self.files.get_mut(file) {
            file.lines += 1;
        }
    }

    /// Describes the lines of each file that were skipped so far.
    pub(super) fn skipped(&self) -> Vec<String> {
        self.files.iter().filter_map(SkippedLines::text).collect()
    }

    /// Names a line's place: the file and the number of the line.
    fn place(&self, file: usize, number: u64) -> String {
        self.files.get(file).map(|file| format!("{}:{number}", file.name)).unwrap_or_default()
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
        if self.has_store() { Ok(()) } else { self.check_events() }
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
                Box::new(StoreLines::filtered(&path, &self.filter)?)
            } else if metadata.is_file() && !(self.follows && self.waiting.is_empty()) {
                // Up to its length by now, so that reading ends while a run goes on writing.
                Box::new(Unpacked::new(io::Read::take(file, metadata.len())))
            } else {
                Box::new(Unpacked::new(file))
            }
        };
        self.files.push(SkippedLines { name: shown(&path), is_store, ..SkippedLines::default() });
        self.current = Some(EventLines::new(reader));
        Ok(true)
    }
}

pub(super) fn is_standard_input(path: &Path) -> bool {
    path == Path::new("-")
}

/// The name of a file that holds a copy of standard input.
pub(super) const COPY_OF_INPUT: &str = "standard input";

/// What a file is called where people read of it: a copy of standard input as what it is.
pub(super) fn shown(path: &Path) -> String {
    if is_standard_input(path) || path.ends_with(COPY_OF_INPUT) {
        COPY_OF_INPUT.to_owned()
    } else {
        path.display().to_string()
    }
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::event::Id;
    use crate::ledger::{fresh_id, now};

    fn event(id: Id) -> String {
        json!({
            "apiVersion": "postern.dev/event/v1", "id": id, "time": now(), "sequence": 1, "count": 1,
            "kind": "Request", "direction": "Outbound", "decision": {"verdict": "Allow"},
        })
        .to_string()
    }

    /// Files of which the first has several blocks, and lines between its events that are none.
    fn files(place: &Path) -> Vec<PathBuf> {
        let (mut long, mut short) = (Vec::new(), Vec::new());
        for number in 0..2_000 {
            long.extend_from_slice(event(fresh_id()).as_bytes());
            long.push(b'\n');
            if number % 300 == 0 {
                long.extend_from_slice(b"\n{}\n\xff\n");
            }
        }
        short.extend_from_slice(format!("no event\n{}\n{}", event(fresh_id()), "torn").as_bytes());
        let files = ["a.jsonl", "b.jsonl"].map(|name| place.join(name));
        fs::write(&files[0], long).unwrap();
        fs::write(&files[1], short).unwrap();
        files.to_vec()
    }

    #[test]
    fn what_several_threads_read_is_what_one_reads_in_the_same_order() {
        let place = tempfile::tempdir().unwrap();
        let files = files(place.path());
        let (mut one, mut several) = (Vec::new(), Vec::new());
        let mut reader = LedgerReader::of(files.clone(), false).unwrap();
        while let ReadStep::Entry(entry) = reader.next().unwrap() {
            let (name, count) = reader.files.last().map(|file| (&file.name, file.count)).unwrap();
            one.push((entry.event.id, entry.line, format!("{name}:{count}")));
        }
        let mut again = LedgerReader::of(files, false).unwrap();
        let take = |event: &Event, line: &str, place: &dyn Fn() -> String| {
            several.push((event.id, line.to_owned(), place()));
            Ok(())
        };
        again.each(take).unwrap();
        assert_eq!(one.len(), 2_001);
        assert!(one == several);
        assert_eq!((&again.files, again.events), (&reader.files, 2_001));
        let lines: Vec<u64> = again.files.iter().map(|file| file.lines).collect();
        assert_eq!((lines, again.files[1].torn), (vec![14, 1], 4));
    }
}
