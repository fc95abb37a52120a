//! Simple commands: assignments, words and redirections.

use super::reader::Reader;
use super::state::{RawRedirection, Record, Step, Stop};
use super::word::RawWord;
use super::{Redirection, RedirectionKind, Word, grammar, wrapper};

/// Commands of the shell whose operands may be arrays.
const DECLARING: &[&str] = &["declare", "typeset", "local", "export", "readonly"];

/// Room for the words of most commands.
const USUAL_WORDS: usize = 6;

impl Reader<'_, '_> {
    /// A simple command, or the definition `name() …`.
    pub(super) fn simple(&mut self) -> Step<()> {
        let mut record = Record {
            words: Vec::with_capacity(USUAL_WORDS),
            redirections: Vec::new(),
            place: self.state.place.clone(),
            is_piped: false,
            order: self.state.next_order(),
        };
        let read = self.parts(&mut record);
        if let Ok(Some(name)) = &read {
            return self.function(name);
        }
        // What was read before the reading ended is a command, too.
        wrapper::run(record, self.state)?;
        read.map(|_| ())
    }

    /// Reads the parts of a command; returns a name where a function is defined.
    fn parts(&mut self, record: &mut Record) -> Step<Option<String>> {
        let mut is_empty = true;
        let mut is_only = false;
        loop {
            self.skip_blanks();
            match self.peek() {
                None | Some(b'\n' | b';' | b')' | b'|') => break,
                Some(b'&') if self.second() != Some(b'>') => break,
                Some(b'(') => {
                    let name = record.words.pop().filter(|_| is_only).ok_or(Stop)?.text;
                    self.at += 1;
                    self.skip_blanks();
                    self.expect(b')')?;
                    return Ok(Some(name));
                }
                Some(_) => {}
            }
            if self.redirection(&mut record.redirections)? {
                (is_empty, is_only) = (false, false);
                continue;
            }
            let is_first = is_empty;
            is_empty = false;
            let assigns = record.words.first().is_none_or(|first| DECLARING.contains(&first.text.as_str()));
            let word = self.word(assigns)?.ok_or(Stop)?;
            if is_descriptor(&word) && matches!(self.raw(), Some(b'<' | b'>')) {
                continue;
            }
            if is_first && word.is_bare() && word.text != "time" && grammar::is_keyword(&word.text) {
                return Err(Stop);
            }
            let count = record.words.len();
            is_only = is_first && word.is_bare();
            self.take(word, &mut record.words)?;
            // An assignment is no word.
            is_only &= record.words.len() > count;
        }
        if is_empty { Err(Stop) } else { Ok(None) }
    }

    /// Takes a word, or an assignment in front of the first one.
    fn take(&mut self, word: RawWord, words: &mut Vec<Word>) -> Step<()> {
        if let Some(name) = word.assigned() {
            self.state.assigns_separator |= name == "IFS";
            self.state.assigns_search_path |= name == "CDPATH";
            if words.is_empty() {
                self.state.has_assignments = true;
                return self.state.count_word();
            }
        }
        self.expand(word, words)
    }

    /// A redirection without the number of its descriptor; false where none stands here.
    pub(super) fn redirection(&mut self, redirections: &mut Vec<RawRedirection>) -> Step<bool> {
        let (first, second) = (self.peek(), self.second());
        let kind = match (first, second) {
            (Some(b'<' | b'>'), Some(b'(')) => return Ok(false),
            (Some(b'<'), _) => {
                self.at += 1;
                match self.peek() {
                    Some(b'<') => return self.text_redirection(redirections),
                    Some(b'&') => return self.copy(RedirectionKind::Read, redirections),
                    Some(b'>') => {
                        self.at += 1;
                        RedirectionKind::ReadWrite
                    }
                    _ => RedirectionKind::Read,
                }
            }
            (Some(b'>'), _) => {
                self.at += 1;
                match self.peek() {
                    Some(b'&') => return self.copy(RedirectionKind::Write, redirections),
                    Some(b'>' | b'|') => self.at += 1,
                    _ => {}
                }
                RedirectionKind::Write
            }
            (Some(b'&'), Some(b'>')) => {
                self.at += 1;
                self.expect(b'>')?;
                self.eat(b'>');
                RedirectionKind::Write
            }
            _ => return Ok(false),
        };
        self.targets(kind, redirections)?;
        Ok(true)
    }

    /// `<<`, `<<-`, `<<<`, from the second sign.
    fn text_redirection(&mut self, redirections: &mut Vec<RawRedirection>) -> Step<bool> {
        self.at += 1;
        if self.eat(b'<') {
            self.targets(RedirectionKind::Text, redirections)?;
        } else {
            redirections.push(self.document()?);
        }
        Ok(true)
    }

    /// `>&` and `<&`, from the second sign: a copy of a descriptor, or a file.
    fn copy(&mut self, kind: RedirectionKind, redirections: &mut Vec<RawRedirection>) -> Step<bool> {
        self.at += 1;
        let word = self.target()?;
        let is_copy = word.is_bare() && {
            let number = word.text.strip_suffix('-').unwrap_or(&word.text);
            number.bytes().all(|byte| byte.is_ascii_digit())
        };
        // Only a file is written by `>& word`; `<& word` is never one.
        if !is_copy && kind == RedirectionKind::Write {
            self.push(kind, word, redirections)?;
        }
        Ok(true)
    }

    /// The word behind a sign, which is no descriptor of the next one.
    fn target(&mut self) -> Step<RawWord> {
        self.skip_blanks();
        let word = self.word(false)?.ok_or(Stop)?;
        if is_descriptor(&word) && matches!(self.raw(), Some(b'<' | b'>')) { Err(Stop) } else { Ok(word) }
    }

    fn targets(&mut self, kind: RedirectionKind, redirections: &mut Vec<RawRedirection>) -> Step<()> {
        let word = self.target()?;
        // `>!` is a sign of zsh, and a file of the others.
        self.state.is_opaque |= word.is_bare() && word.text.starts_with('!');
        self.push(kind, word, redirections)
    }

    fn push(
        &mut self,
        kind: RedirectionKind,
        word: RawWord,
        redirections: &mut Vec<RawRedirection>,
    ) -> Step<()> {
        let mut words = std::mem::take(&mut self.state.spare_words);
        let read = self.expand(word, &mut words);
        // Of a list that is too long, nothing.
        let targets = words.drain(..).filter(|_| read.is_ok());
        redirections.extend(targets.map(|target| RawRedirection::To(Redirection { kind, target })));
        self.state.spare_words = words;
        read
    }
}

/// `2` or `{name}` in front of a redirection.
fn is_descriptor(word: &RawWord) -> bool {
    let is_number = word.is_bare() && word.text.bytes().all(|byte| byte.is_ascii_digit());
    let name = word.text.strip_prefix('{').and_then(|rest| rest.strip_suffix('}'));
    let is_name = |name: &str| name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    is_number || (word.quoted.is_none() && name.is_some_and(is_name))
}
