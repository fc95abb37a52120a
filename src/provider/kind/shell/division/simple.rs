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
            place: self.state.here(),
            is_piped: false,
            order: self.state.next_order(),
        };
        let read = self.parts(&mut record);
        if let Ok(Some(name)) = &read {
            return self.function(name);
        }
        self.state.is_ended = false;
        // What was read before the reading ended is a command, too.
        wrapper::run(record, self.state)?;
        read.map(|_| ())
    }

    /// Reads the parts of a command; returns a name where a function is defined.
    fn parts(&mut self, record: &mut Record) -> Step<Option<String>> {
        let mut is_empty = true;
        let mut is_only = false;
        let mut is_aside = false;
        let mut assigns = true;
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
            if self.redirection(std::mem::take(&mut is_aside), &mut record.redirections)? {
                (is_empty, is_only) = (false, false);
                continue;
            }
            let is_first = is_empty;
            is_empty = false;
            let word = self.word(assigns)?.ok_or(Stop)?;
            if is_descriptor(&word) && matches!(self.raw(), Some(b'<' | b'>')) {
                if let Some((name, place)) = descriptor_variable(&word) {
                    // The shell chooses a number and gives it to the variable.
                    self.state.assign_within(name);
                    place.into_iter().for_each(|place| self.state.evaluate(place));
                }
                is_aside = is_aside_number(&word.text);
                // The input is a copy of what is written.
                self.state.is_opaque |= !is_aside && self.raw() == Some(b'>');
                continue;
            }
            if is_first && word.is_bare() && word.text != "time" && grammar::is_keyword(&word.text) {
                return Err(Stop);
            }
            let count = record.words.len();
            is_only = is_first && word.is_bare();
            self.take(word, assigns, &mut record.words)?;
            if count == 0 {
                assigns = record.words.first().is_none_or(is_declaring);
            }
            // An assignment is no word.
            is_only &= record.words.len() > count;
        }
        if is_empty { Err(Stop) } else { Ok(None) }
    }

    /// Takes a word, or an assignment in front of the first one.
    fn take(&mut self, word: RawWord, assigns: bool, words: &mut Vec<Word>) -> Step<()> {
        if let Some(name) = word.assigned() {
            let is_first = words.is_empty();
            self.state.assigns_separator |= name == "IFS";
            self.state.assigns_search_path |= name == "CDPATH";
            if assigns {
                self.state.evaluation.has_hidden_code |= word.hides_code();
                let value = word.text.split_once('=').map(|(_, value)| value);
                if !word.is_computed() {
                    self.state.hide_code(value.unwrap_or_default());
                }
                self.state.assign(name, value);
                // The place in an array is an expression.
                self.state.evaluation.has_arithmetic |=
                    word.text.get(name.len()..).is_some_and(|rest| rest.starts_with('['));
            }
            if is_first {
                self.state.has_assignments = true;
                return self.state.count_word();
            }
        }
        if word.has_quoted_sign {
            // Where nothing is expanded in it, it is looked at where it is known what it is for.
            self.state.evaluation.has_hidden_code |= word.is_computed() && word.hides_code();
        }
        self.expand(word, words)
    }

    /// A redirection from behind the number of its descriptor; false where none stands here. `is_aside`: that is not the
    /// input's.
    pub(super) fn redirection(
        &mut self,
        is_aside: bool,
        redirections: &mut Vec<RawRedirection>,
    ) -> Step<bool> {
        let first = redirections.len();
        let read = self.redirection_here(redirections);
        if is_aside {
            wrapper::builtin::hide_texts(redirections.get(first..).unwrap_or_default(), self.state);
            set_aside(redirections, first);
        }
        read
    }

    fn redirection_here(&mut self, redirections: &mut Vec<RawRedirection>) -> Step<bool> {
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
        } else if kind == RedirectionKind::Read {
            redirections.push(RawRedirection::Copy);
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
        self.state.evaluation.has_hidden_code |=
            kind == RedirectionKind::Text && word.is_computed() && word.hides_code();
        let mut words = std::mem::take(&mut self.state.spare_words);
        let read = self.expand(word, &mut words);
        // Of a list that is too long, nothing.
        let targets = words.drain(..).filter(|_| read.is_ok());
        redirections.extend(targets.map(|target| RawRedirection::To(Redirection { kind, target })));
        self.state.spare_words = words;
        read
    }
}

/// Keeps the redirections behind the first ones as those of another descriptor; its texts are no input.
fn set_aside(redirections: &mut Vec<RawRedirection>, first: usize) {
    let set = redirections.split_off(first);
    redirections.extend(set.into_iter().filter_map(|redirection| match redirection {
        RawRedirection::To(to) if to.kind == RedirectionKind::Text => None,
        RawRedirection::To(to) => Some(RawRedirection::Aside(to)),
        RawRedirection::Document(_) | RawRedirection::Copy | RawRedirection::Aside(_) => None,
    }));
}

/// Whether a descriptor in front of a redirection is another one than that of the input.
pub(super) fn is_aside_number(text: &str) -> bool {
    !text.trim_start_matches('0').is_empty()
}

fn is_declaring(program: &Word) -> bool {
    DECLARING.contains(&program.text.as_str())
}

/// `2` or `{name}` in front of a redirection.
fn is_descriptor(word: &RawWord) -> bool {
    let is_number = word.is_bare() && word.text.bytes().all(|byte| byte.is_ascii_digit());
    is_number || descriptor_variable(word).is_some()
}

/// The variable of `{name}` and `{name[place]}` in front of a redirection.
fn descriptor_variable(word: &RawWord) -> Option<(&str, Option<&str>)> {
    let written = word.text.strip_prefix('{')?.strip_suffix('}').filter(|_| word.quoted.is_none())?;
    let (name, place) = match written.strip_suffix(']').and_then(|rest| rest.split_once('[')) {
        Some((name, place)) => (name, Some(place)),
        None => (written, None),
    };
    let is_name = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    is_name.then_some((name, place))
}
