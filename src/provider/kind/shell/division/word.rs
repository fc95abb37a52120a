//! Words: what stands between blanks and operators, with its quotes taken off.

use super::reader::Reader;
use super::state::{Step, Stop};
use super::{Word, WordForm, brace};

/// A word before brace lists and separators make several of it.
#[derive(Debug, Clone, Default)]
pub(super) struct RawWord {
    /// Without quotes; expansions as they are written.
    pub(super) text: String,
    /// What of the text is more than itself, in order.
    pub(super) marks: Vec<Mark>,
    /// Where the first quote stands in the text.
    pub(super) quoted: Option<usize>,
    /// The word as it is written.
    pub(super) written: String,
    /// An unquoted `[` waits for its end.
    pub(super) bracket: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Mark {
    pub(super) at: usize,
    pub(super) kind: MarkKind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MarkKind {
    /// An expansion begins here.
    Computed,
    /// `*`, `?`, `[…]`, a `~` in front.
    Glob,
    /// `$IFS` stood here.
    Separator,
    /// An unquoted `{`, `,` or `}`.
    Open,
    Comma,
    Close,
}

/// Bytes that are themselves wherever they stand in a word.
const PLAIN: [bool; 256] = {
    let mut plain = [true; 256];
    let special = b" \t\n;&|<>()'\"\\$`{},~*?[]";
    let mut at = 0;
    while at < special.len() {
        plain[special[at] as usize] = false;
        at += 1;
    }
    plain
};

impl RawWord {
    pub(super) fn mark(&mut self, kind: MarkKind) {
        self.marks.push(Mark { at: self.text.len(), kind });
    }

    pub(super) fn quote(&mut self) {
        self.quoted.get_or_insert(self.text.len());
    }

    /// Whether nothing of it is quoted, expanded or a pattern.
    pub(super) fn is_bare(&self) -> bool {
        self.quoted.is_none() && self.marks.is_empty()
    }

    /// The name that it assigns to: of `name=…`, `name+=…`, `name[…]=…`.
    pub(super) fn assigned(&self) -> Option<&str> {
        let length = self.text.bytes().take_while(|b| b.is_ascii_alphanumeric() || *b == b'_').count();
        let (name, rest) = self.text.split_at_checked(length)?;
        let is_name = !name.is_empty() && !name.starts_with(|c: char| c.is_ascii_digit());
        let mut value = length;
        if rest.starts_with('[') {
            value += rest.find("]=").or_else(|| rest.find("]+="))? + 1;
        }
        let rest = self.text.get(value..)?;
        let sign = if rest.starts_with('=') { value } else { value + 1 };
        let is_assignment = is_name && (rest.starts_with('=') || rest.starts_with("+="));
        // A quote or an expansion in the name makes it a word like any other.
        let is_plain = self.quoted.is_none_or(|quoted| quoted > sign || (quoted > length && value > length))
            && self.marks.first().is_none_or(|mark| mark.at > sign || mark.at >= length && value > length);
        (is_assignment && is_plain).then_some(name)
    }

    fn expects_array(&self) -> bool {
        self.text.ends_with('=')
            && self.assigned().is_some_and(|name| {
                let sign = self.text.get(name.len()..).unwrap_or_default();
                sign == "=" || sign == "+="
            })
    }
}

impl Reader<'_, '_> {
    /// The word that stands here; none where an operator does. `assigns`: it may be an assignment.
    pub(super) fn word(&mut self, assigns: bool) -> Step<Option<RawWord>> {
        self.peek();
        let start = self.at;
        let mut word = RawWord::default();
        while self.word_part(&mut word, assigns)? {}
        if self.at == start || (word.text.is_empty() && word.is_bare()) {
            return Ok(None);
        }
        if !self.is_whole && self.at == self.text.len() {
            return Err(Stop);
        }
        if word.marks.iter().any(|mark| mark.kind == MarkKind::Computed) {
            word.written = self.from(start).to_owned();
        }
        Ok(Some(word))
    }

    /// Reads on in a word; false at its end.
    fn word_part(&mut self, word: &mut RawWord, assigns: bool) -> Step<bool> {
        let plain = self.rest().bytes().take_while(|byte| PLAIN[usize::from(*byte)]).count();
        word.text.push_str(self.rest().get(..plain).unwrap_or_default());
        self.at += plain;
        let Some(byte) = self.peek() else { return Ok(false) };
        match byte {
            b' ' | b'\t' if self.in_subscript(word, assigns) => {
                // zsh and dash end the word here.
                self.state.is_opaque = true;
                self.literal(word);
            }
            b' ' | b'\t' | b'\n' | b';' | b'&' | b'|' | b')' => return Ok(false),
            b'<' | b'>' if self.second() == Some(b'(') => {
                word.mark(MarkKind::Computed);
                let start = self.at;
                self.at += 1;
                self.expect(b'(')?;
                self.substitution()?;
                word.text.push_str(self.from(start));
            }
            b'(' if assigns && word.expects_array() => self.array(word)?,
            b'<' | b'>' | b'(' => return Ok(false),
            b'\'' => self.single_quotes(word)?,
            b'"' => self.double_quotes(word)?,
            b'\\' => self.escape(word)?,
            b'$' => self.dollar(word, false)?,
            b'`' => self.backquotes(word, false)?,
            _ => self.special(word, byte),
        }
        Ok(true)
    }

    /// Whether a blank stands in the brackets of `name[…]=`.
    fn in_subscript(&self, word: &RawWord, assigns: bool) -> bool {
        let Some((name, rest)) = word.text.split_once('[') else { return false };
        assigns
            && word.quoted.is_none()
            && !name.is_empty()
            && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
            && !rest.contains(']')
    }

    fn literal(&mut self, word: &mut RawWord) {
        word.text.extend(self.bump());
    }

    /// Signs of globs and brace lists.
    fn special(&mut self, word: &mut RawWord, byte: u8) {
        match byte {
            b'{' => word.mark(MarkKind::Open),
            b',' if word.marks.iter().any(|mark| mark.kind == MarkKind::Open) => word.mark(MarkKind::Comma),
            b'}' if word.marks.iter().any(|mark| mark.kind == MarkKind::Open) => word.mark(MarkKind::Close),
            b'*' | b'?' => word.mark(MarkKind::Glob),
            b'~' if word.text.is_empty() && word.is_bare() => word.mark(MarkKind::Glob),
            b'[' => word.bracket = true,
            b']' if std::mem::take(&mut word.bracket) => word.mark(MarkKind::Glob),
            _ => {}
        }
        self.literal(word);
    }

    /// `(…)` behind `name=`.
    fn array(&mut self, word: &mut RawWord) -> Step<()> {
        let start = self.at;
        word.mark(MarkKind::Computed);
        self.expect(b'(')?;
        loop {
            self.skip_lines()?;
            if self.eat(b')') {
                break;
            }
            self.state.enter()?;
            let element = self.word(true)?;
            self.state.leave();
            if element.is_none() {
                return Err(Stop);
            }
            self.state.count_word()?;
        }
        word.text.push_str(self.from(start));
        Ok(())
    }

    /// Adds the words that a raw word stands for.
    pub(super) fn expand(&mut self, raw: RawWord, words: &mut Vec<Word>) -> Step<()> {
        let has = |kind| raw.marks.iter().any(|mark| mark.kind == kind);
        if has(MarkKind::Separator) || (has(MarkKind::Open) && has(MarkKind::Close)) {
            return brace::expand(raw, self.state, words);
        }
        self.state.count_word()?;
        let (text, form) = match (has(MarkKind::Computed), has(MarkKind::Glob)) {
            (true, _) => (raw.written, WordForm::Computed),
            (false, true) => (raw.text, WordForm::Pattern),
            (false, false) => (raw.text, WordForm::Literal),
        };
        words.push(Word { text, form });
        Ok(())
    }
}
