//! What the parts of a reading share: the commands that were read, what may still be read, and where they run.

use super::place::Place;
use super::reader::Reader;
use super::variable::{Evaluation, has_code};
use super::word::Mark;
use super::{
    DividedCommand, Division, Redirection, RedirectionKind, Word, WordForm, WorkingDirectory, wrapper,
};

/// The longest text that is read, in bytes.
pub(super) const MOST_BYTES: usize = 64 << 10;

/// How many bytes are read at most, with the texts inside of the text and with what brace lists make of it.
const MOST_READ: usize = 16 * MOST_BYTES;

/// The most words of all commands; those of a command that runs another stand in both.
const MOST_WORDS: usize = 4096;

const MOST_COMMANDS: usize = 256;

/// How deep compound commands, expansions and texts stand in one another at most.
const MOST_DEPTH: usize = 8;

/// The reading ends: a bound was reached, or what follows is no syntax that is known.
#[derive(Debug)]
pub(super) struct Stop;

pub(super) type Step<T> = Result<T, Stop>;

pub(super) struct State {
    records: Vec<Record>,
    /// The texts of here-documents, by number.
    pub(super) documents: Vec<Option<Word>>,
    /// Empty, with room for what the next word needs.
    pub(super) spare_marks: Vec<Mark>,
    pub(super) spare_words: Vec<Word>,
    pub(super) is_opaque: bool,
    pub(super) has_assignments: bool,
    pub(super) place: Place,
    /// How often the directory was changed.
    pub(super) moves: usize,
    /// What was read last is an `exit` that nothing goes on behind.
    pub(super) is_ended: bool,
    /// Functions of the text.
    pub(super) functions: Vec<String>,
    /// One of them changes the directory.
    pub(super) has_moving_function: bool,
    /// A text runs at signals, before any command.
    pub(super) has_trap: bool,
    /// The directory may change before any command.
    pub(super) moves_anytime: bool,
    /// Wrappers around what is read.
    pub(super) wrappers: usize,
    /// The text gives `IFS` a value, so that `$IFS` may be something else than a space.
    pub(super) assigns_separator: bool,
    /// The text gives `CDPATH` a value, so that `cd name` may lead elsewhere.
    pub(super) assigns_search_path: bool,
    pub(super) evaluation: Evaluation,
    /// Here-documents that a shell runs, and where.
    scripts: Vec<(usize, Place)>,
    /// So much was read that nothing is read any more.
    is_exhausted: bool,
    depth: usize,
    order: usize,
    words: usize,
    bytes: usize,
}

/// A command that was read.
pub(super) struct Record {
    pub(super) words: Vec<Word>,
    pub(super) redirections: Vec<RawRedirection>,
    pub(super) place: Place,
    pub(super) is_piped: bool,
    /// Where it begins among the others.
    pub(super) order: usize,
}

/// A redirection; the target of a here-document is the number of its text.
pub(super) enum RawRedirection {
    To(Redirection),
    Document(usize),
    /// Of another descriptor than the input.
    Aside(Redirection),
    /// The input is a copy of another descriptor.
    Copy,
}

impl RawRedirection {
    /// Whether the command reads its input there.
    pub(super) fn is_input(&self) -> bool {
        match self {
            Self::To(to) => to.kind != RedirectionKind::Write,
            Self::Document(_) | Self::Copy => true,
            Self::Aside(_) => false,
        }
    }
}

impl State {
    pub(super) fn new(directory: &WorkingDirectory) -> Self {
        Self {
            records: Vec::new(),
            documents: Vec::new(),
            spare_marks: Vec::new(),
            spare_words: Vec::new(),
            is_opaque: false,
            has_assignments: false,
            place: Place::start(directory),
            moves: 0,
            is_ended: false,
            functions: Vec::new(),
            has_moving_function: false,
            has_trap: false,
            moves_anytime: false,
            wrappers: 0,
            assigns_separator: false,
            assigns_search_path: false,
            evaluation: Evaluation::default(),
            scripts: Vec::new(),
            is_exhausted: false,
            depth: 0,
            order: 0,
            words: 0,
            bytes: 0,
        }
    }

    /// Reads a whole text. What of it cannot be read makes the division opaque, and nothing else ends.
    pub(super) fn read(&mut self, text: &str) {
        let (depth, is_whole) = (self.depth, text.len() <= MOST_BYTES);
        self.is_opaque |= !is_whole || text.contains('\0');
        let text = if is_whole { text } else { &text[..text.floor_char_boundary(MOST_BYTES)] };
        let is_read = self.charge(text.len()).and_then(|()| Reader::new(text, is_whole, self).program());
        self.is_opaque |= is_read.is_err();
        self.depth = depth;
    }

    /// Reads the words of one command, each of which is what it stands for.
    pub(super) fn read_words(&mut self, words: &[&str]) {
        let bytes: usize = words.iter().map(|word| word.len() + 1).sum();
        if bytes > MOST_BYTES || words.len() > MOST_WORDS || words.iter().any(|word| word.contains('\0')) {
            self.is_opaque = true;
            return;
        }
        let word = |text: &&str| Word { text: (*text).to_owned(), form: WordForm::Literal };
        let record = Record {
            words: words.iter().map(word).collect(),
            redirections: Vec::new(),
            place: self.place.clone(),
            is_piped: false,
            order: self.next_order(),
        };
        self.is_opaque |= wrapper::run(record, self).is_err();
    }

    /// Reads a text that stands in another.
    pub(super) fn read_nested(&mut self, text: &str) -> Step<()> {
        if self.enter().is_ok() {
            self.read(text);
            self.leave();
        }
        if self.is_exhausted { Err(Stop) } else { Ok(()) }
    }

    /// A shell reads its commands from a here-document, whose text is not known yet.
    pub(super) fn run_later(&mut self, document: usize, place: Place) {
        self.scripts.push((document, place));
    }

    /// Reads the text of a here-document where a shell runs it.
    pub(super) fn run_document(&mut self, number: usize, text: &Word) -> Step<()> {
        let Some((_, place)) = self.scripts.iter().find(|(document, _)| *document == number) else {
            // What reads it may give it to a variable. Where it has expansions, what is escaped was seen with them.
            self.evaluation.has_hidden_code |= text.form == WordForm::Literal && has_code(&text.text);
            return Ok(());
        };
        self.is_opaque |= text.form != WordForm::Literal;
        let outer = std::mem::replace(&mut self.place, place.clone());
        let read = self.read_nested(&text.text);
        self.place = outer;
        read
    }

    pub(super) fn finish(mut self) -> Division {
        if !self.records.is_sorted_by_key(|record| record.order) {
            self.records.sort_unstable_by_key(|record| record.order);
        }
        let documents = &mut self.documents;
        let commands = self.records.into_iter().map(|record| record.finish(documents));
        // A here-document without its text is none.
        let is_some =
            |command: &DividedCommand| !command.words.is_empty() || !command.redirections.is_empty();
        let commands = commands.filter(is_some).collect();
        let is_opaque = self.is_opaque || self.evaluation.may_run();
        let has_assignments = self.has_assignments || self.evaluation.may_set();
        Division { commands, is_opaque, has_assignments }
    }

    /// Counts bytes that are read or made.
    pub(super) fn charge(&mut self, bytes: usize) -> Step<()> {
        #[cfg(test)]
        super::reader::count_steps(bytes);
        self.bytes += bytes;
        self.exhaust(self.bytes <= MOST_READ)
    }

    pub(super) fn count_word(&mut self) -> Step<()> {
        self.count_words(1)
    }

    /// Counts words that were read, or that stand in one more command.
    pub(super) fn count_words(&mut self, count: usize) -> Step<()> {
        self.words += count;
        self.exhaust(self.words <= MOST_WORDS)
    }

    /// Goes a level deeper.
    pub(super) fn enter(&mut self) -> Step<()> {
        self.bound(self.depth < MOST_DEPTH)?;
        self.depth += 1;
        Ok(())
    }

    pub(super) fn leave(&mut self) {
        self.depth = self.depth.saturating_sub(1);
    }

    fn exhaust(&mut self, is_within: bool) -> Step<()> {
        self.is_exhausted |= !is_within;
        self.bound(is_within)
    }

    fn bound(&mut self, is_within: bool) -> Step<()> {
        self.is_opaque |= !is_within;
        if is_within { Ok(()) } else { Err(Stop) }
    }

    /// The place of the next command among the others.
    pub(super) fn next_order(&mut self) -> usize {
        self.order += 1;
        self.order
    }

    pub(super) fn record(&mut self, record: Record) -> Step<()> {
        self.exhaust(self.records.len() < MOST_COMMANDS)?;
        self.records.push(record);
        Ok(())
    }

    /// Where the next command runs.
    pub(super) fn here(&self) -> Place {
        if self.moves_anytime { Place::computed() } else { self.place.clone() }
    }

    /// How many commands were read.
    pub(super) fn count(&self) -> usize {
        self.records.len()
    }

    /// The commands that were read since there were so many.
    pub(super) fn since(&mut self, count: usize) -> &mut [Record] {
        self.records.get_mut(count..).unwrap_or_default()
    }

    pub(super) fn pipe_since(&mut self, count: usize) {
        self.since(count).iter_mut().for_each(|record| record.is_piped = true);
    }

    /// The commands that were read since there were so many run in a loop: unless they say where, it depends on the turn.
    pub(super) fn unsettle_since(&mut self, count: usize, order: usize) {
        self.since(count).iter_mut().for_each(|record| record.place.unsettle(order));
    }
}

impl Record {
    fn finish(self, documents: &mut [Option<Word>]) -> DividedCommand {
        let redirection = |raw| match raw {
            RawRedirection::To(redirection) | RawRedirection::Aside(redirection) => Some(redirection),
            RawRedirection::Copy => None,
            RawRedirection::Document(number) => {
                let target = documents.get_mut(number)?.take()?;
                Some(Redirection { kind: RedirectionKind::Text, target })
            }
        };
        DividedCommand {
            words: self.words,
            redirections: self.redirections.into_iter().filter_map(redirection).collect(),
            directories: self.place.told(),
            is_piped: self.is_piped,
        }
    }
}
