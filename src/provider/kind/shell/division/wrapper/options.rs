//! The options of a wrapper, and where the command behind them begins.

use super::super::{Word, WordForm};
use super::table::{OptionKind, Runs, Wrapper, kind};

/// The most letters of options in one word.
const MOST_LETTERS: usize = 64;

/// What the options of a wrapper say.
#[derive(Default)]
pub(super) struct Options {
    /// Where the operands begin.
    pub(super) rest: usize,
    pub(super) text: Option<Word>,
    pub(super) directory: Option<Word>,
    pub(super) written: Vec<Word>,
    pub(super) read: Vec<Word>,
    /// `NAME=value`, for the command.
    pub(super) set: Vec<Word>,
    pub(super) replaced: Option<Word>,
    pub(super) first_is_text: bool,
    pub(super) reads_input: bool,
    pub(super) is_exact: bool,
    pub(super) is_home: bool,
    pub(super) stays: bool,
    pub(super) is_opaque: bool,
}

impl Options {
    pub(super) fn read(wrapper: &Wrapper, words: &[Word]) -> Self {
        let mut options = Self { rest: 1, ..Self::default() };
        let own = kind(wrapper, "/");
        let takes_assignments = matches!(wrapper.runs, Runs::Assigned | Runs::Elevated);
        while let Some(word) = words.get(options.rest) {
            let is_permuted = wrapper.runs == Runs::Options;
            if word.form != WordForm::Literal {
                options.is_opaque = true;
                break;
            }
            let text = word.text.as_str();
            if text == "--" {
                options.rest += 1;
                break;
            }
            let is_option = text.len() > 1
                && (text.starts_with('-') || (wrapper.runs == Runs::Shell && text.starts_with('+')));
            options.is_home |= is_permuted && text == "-";
            if !is_option {
                if own == Some(OptionKind::Written) && is_permuted {
                    options.written.push(word.clone());
                }
                // `env -` is `env -i`.
                let is_in_front = own == Some(OptionKind::Flag) && options.rest == 1;
                if text == "-" && takes_assignments || is_permuted || is_in_front {
                    options.rest += 1;
                    continue;
                }
                break;
            }
            options.rest += 1;
            options.option(wrapper, text, words);
            if options.stays {
                return options;
            }
        }
        if own == Some(OptionKind::Written) && wrapper.operands > 0 {
            let is_number = |word: &&Word| word.text.bytes().all(|byte| byte.is_ascii_digit());
            options.written.extend(words.get(options.rest).filter(|word| !is_number(word)).cloned());
        }
        options.rest += wrapper.operands;
        while takes_assignments && words.get(options.rest).is_some_and(|word| wrapper.assigns(word)) {
            options.rest += 1;
        }
        if wrapper.operands > 0 {
            options.late_text(wrapper, words);
        }
        options.rest = options.rest.min(words.len());
        options
    }

    /// `flock FILE -c TEXT`
    fn late_text(&mut self, wrapper: &Wrapper, words: &[Word]) {
        let Some(word) = words.get(self.rest).filter(|word| word.text.starts_with('-')) else { return };
        if kind(wrapper, word.text.trim_start_matches('-')) == Some(OptionKind::Text) {
            self.text = words.get(self.rest + 1).cloned();
        }
    }

    /// Takes an option, and its value from the words behind it.
    fn option(&mut self, wrapper: &Wrapper, text: &str, words: &[Word]) {
        if let Some(long) = text.strip_prefix("--") {
            let (name, value) =
                long.split_once('=').map_or((long, None), |(name, value)| (name, Some(value)));
            return self.apply(kind(wrapper, name).filter(|_| name.len() > 1), value, words);
        }
        let letters = text.get(1..).unwrap_or_default();
        // `pkexec -user`, `strace -ff`
        if letters.len() > 1
            && let Some(kind) = kind(wrapper, letters)
        {
            return self.apply(Some(kind), None, words);
        }
        if letters.bytes().all(|byte| byte.is_ascii_digit()) && kind(wrapper, "#").is_some() {
            return;
        }
        for (at, letter) in letters.char_indices() {
            let kind = kind(wrapper, letter.encode_utf8(&mut [0; 4])).filter(|_| at < MOST_LETTERS);
            let value = letters.get(at + letter.len_utf8()..).filter(|value| !value.is_empty());
            let takes_rest = match kind {
                None
                | Some(
                    OptionKind::Valued | OptionKind::Directory | OptionKind::Written | OptionKind::ReadFrom,
                )
                | Some(OptionKind::Sourced | OptionKind::Set)
                | Some(OptionKind::Text | OptionKind::Replaced | OptionKind::Attached) => true,
                Some(OptionKind::Flag | OptionKind::Home | OptionKind::FirstIsText | OptionKind::Input)
                | Some(OptionKind::Exact | OptionKind::Stays | OptionKind::Unread) => false,
            };
            // The value of a shell's `-o` is the next word, whatever stands behind the letter.
            let is_shells = wrapper.runs == Runs::Shell;
            self.apply(kind, value.filter(|_| takes_rest && !is_shells), words);
            if takes_rest && !is_shells {
                return;
            }
        }
    }

    fn apply(&mut self, kind: Option<OptionKind>, attached: Option<&str>, words: &[Word]) {
        let Some(kind) = kind else {
            self.is_opaque = true;
            self.stays = true;
            return;
        };
        match kind {
            OptionKind::Flag | OptionKind::Attached => return,
            OptionKind::Home => self.is_home = true,
            OptionKind::FirstIsText => self.first_is_text = true,
            OptionKind::Input => self.reads_input = true,
            OptionKind::Exact => self.is_exact = true,
            OptionKind::Stays => self.stays = true,
            OptionKind::Unread => (self.is_opaque, self.stays) = (true, true),
            OptionKind::Valued | OptionKind::Directory | OptionKind::Written | OptionKind::ReadFrom => {}
            OptionKind::Text | OptionKind::Replaced | OptionKind::Set | OptionKind::Sourced => {}
        }
        let takes_value = matches!(
            kind,
            OptionKind::Valued
                | OptionKind::Directory
                | OptionKind::Written
                | OptionKind::ReadFrom
                | OptionKind::Sourced
                | OptionKind::Set
                | OptionKind::Text
                | OptionKind::Replaced
        );
        if !takes_value {
            return;
        }
        let value = match attached {
            Some(text) => Some(Word { text: text.to_owned(), form: WordForm::Literal }),
            None => {
                self.rest += 1;
                words.get(self.rest - 1).cloned()
            }
        };
        self.is_opaque |= value.as_ref().is_none_or(|value| value.form == WordForm::Computed);
        match kind {
            OptionKind::Directory => self.directory = value,
            OptionKind::Written => {
                // `strace -o '|command'`
                self.is_opaque |= value.as_ref().is_some_and(|file| file.text.starts_with(['|', '!']));
                self.written.extend(value);
            }
            OptionKind::Set => self.set.extend(value),
            OptionKind::Sourced => {
                self.is_opaque |= value.as_ref().is_none_or(|file| file.text != "/dev/null");
                self.read.extend(value);
            }
            OptionKind::ReadFrom => self.read.extend(value),
            OptionKind::Text => self.text = value,
            OptionKind::Replaced => self.replaced = value,
            OptionKind::Valued | OptionKind::Flag | OptionKind::Attached | OptionKind::Home => {}
            OptionKind::FirstIsText | OptionKind::Input | OptionKind::Exact | OptionKind::Stays => {}
            OptionKind::Unread => {}
        }
    }
}

impl Wrapper {
    /// Whether a word in front of the command sets a variable: `env` takes any with a `=`, `sudo` no path.
    fn assigns(&self, word: &Word) -> bool {
        word.text.contains('=') && (self.runs == Runs::Assigned || !word.text.starts_with('/'))
    }
}
