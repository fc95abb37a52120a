//! Words: what stands between blanks and operators, with its quotes taken off.

use std::ops::Range;

use super::reader::Reader;
use super::state::{Step, Stop};
use super::variable::has_code;
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
    /// A `$` or a backquote in it is quoted.
    pub(super) has_quoted_sign: bool,
    /// Where it stands in the text.
    pub(super) written: Range<usize>,
    /// An unquoted `{` stands in it.
    pub(super) has_brace: bool,
    /// An unquoted `[` waits for its end.
    pub(super) has_open_bracket: bool,
    /// Whether the first unquoted `[` stands behind the name of a variable that may be assigned to.
    pub(super) is_subscripted: Option<bool>,
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

/// Signs of globs and brace lists, and blanks that no shell takes for such.
const SPECIAL: [bool; 256] = having(b"{},~*?[]\r\x0b\x0c", [false; 256]);

/// Bytes that are themselves wherever they stand in a word.
const PLAIN: [bool; 256] = having(b" \t\n\r\x0b\x0c;&|<>()'\"\\$`{},~*?[]", [true; 256]);

/// A table of bytes in which these are what the others are not.
pub(super) const fn having(bytes: &[u8], others: [bool; 256]) -> [bool; 256] {
    let mut table = others;
    let mut at = 0;
    while at < bytes.len() {
        table[bytes[at] as usize] = !others[bytes[at] as usize];
        at += 1;
    }
    table
}

impl MarkKind {
    fn bit(self) -> u8 {
        1 << self as u8
    }
}

impl RawWord {
    pub(super) fn mark(&mut self, kind: MarkKind) {
        self.marks.push(Mark { at: self.text.len(), kind });
    }

    pub(super) fn quote(&mut self) {
        self.quoted.get_or_insert(self.text.len());
    }

    /// Takes characters that are quoted.
    pub(super) fn push_quoted(&mut self, text: &str) {
        self.has_quoted_sign |= text.contains(['$', '`']);
        self.text.push_str(text);
    }

    /// Whether it has commands in quotes, which run where it is evaluated once more.
    pub(super) fn hides_code(&self) -> bool {
        // The members of a list may put the signs together.
        self.has_quoted_sign && (has_code(&self.text) || (self.has_brace && self.text.contains('(')))
    }

    pub(super) fn is_computed(&self) -> bool {
        self.marks.iter().any(|mark| mark.kind == MarkKind::Computed)
    }

    /// Whether nothing of it is quoted, expanded or a pattern.
    pub(super) fn is_bare(&self) -> bool {
        self.quoted.is_none() && self.marks.is_empty()
    }

    /// The name that it assigns to: of `name=…`, `name+=…`, `name[…]=…`.
    pub(super) fn assigned(&self) -> Option<&str> {
        let bytes = self.text.as_bytes();
        let is_part = |byte: &&u8| byte.is_ascii_alphanumeric() || **byte == b'_';
        let length = bytes.iter().take_while(is_part).count();
        // Most words are none.
        if !matches!(bytes.get(length), Some(b'=' | b'+' | b'[')) {
            return None;
        }
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
        let marks = std::mem::take(&mut self.state.spare_marks);
        let mut word = RawWord { marks, ..RawWord::default() };
        while self.word_part(&mut word, assigns)? {}
        if self.at == start || (word.text.is_empty() && word.is_bare()) {
            return Ok(None);
        }
        // bash goes on to the end of the brackets, whatever stands between.
        self.state.is_opaque |= word.has_open_bracket && word.is_subscripted == Some(true);
        if !self.is_whole && self.at == self.text.len() {
            return Err(Stop);
        }
        word.written = start..self.at;
        Ok(Some(word))
    }

    /// Reads on in a word; false at its end.
    fn word_part(&mut self, word: &mut RawWord, assigns: bool) -> Step<bool> {
        let bytes = self.text.as_bytes().get(self.at..).unwrap_or_default();
        let length = bytes.iter().take_while(|byte| PLAIN[usize::from(**byte)]).count();
        if length > 0 {
            let start = self.at;
            self.at += length;
            let plain = self.from(start);
            // For shells these are letters; what pastes or shows the text may take them for spaces.
            self.state.is_opaque |= !plain.is_ascii() && plain.contains(char::is_whitespace);
            word.text.push_str(plain);
        }
        let Some(byte) = self.peek() else { return Ok(false) };
        match byte {
            b' ' | b'\t' if word.has_open_bracket && word.is_subscripted == Some(true) => {
                // zsh and dash end the word here.
                self.state.is_opaque = true;
                self.literal(word, byte);
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
            // Signs stand behind signs where there are many.
            _ => {
                while let Some(sign) = self.raw().filter(|sign| SPECIAL[usize::from(*sign)]) {
                    self.special(word, sign, assigns);
                }
            }
        }
        Ok(true)
    }

    /// Takes a byte that is a character.
    fn literal(&mut self, word: &mut RawWord, byte: u8) {
        #[cfg(test)]
        super::reader::count_steps(1);
        word.text.push(char::from(byte));
        self.at += 1;
    }

    /// Signs of globs and brace lists.
    fn special(&mut self, word: &mut RawWord, byte: u8, assigns: bool) {
        match byte {
            b'{' => {
                word.has_brace = true;
                word.mark(MarkKind::Open);
            }
            b',' if word.has_brace => word.mark(MarkKind::Comma),
            b'}' if word.has_brace => word.mark(MarkKind::Close),
            b'\r' | 0x0b | 0x0c => self.state.is_opaque = true,
            b'*' | b'?' => word.mark(MarkKind::Glob),
            // Quotes behind it are part of the name of a home, which they keep from being one.
            b'~' if word.text.is_empty()
                && word.is_bare()
                && !matches!(self.second(), Some(b'\'' | b'"' | b'\\')) =>
            {
                word.mark(MarkKind::Glob)
            }
            b'[' => {
                word.has_open_bracket = true;
                let is_name = || assigns && word.quoted.is_none() && is_name(&word.text);
                word.is_subscripted.get_or_insert_with(is_name);
            }
            b']' if std::mem::take(&mut word.has_open_bracket) => word.mark(MarkKind::Glob),
            _ => {}
        }
        self.literal(word, byte);
    }

    /// `(…)` behind `name=`.
    fn array(&mut self, word: &mut RawWord) -> Step<()> {
        let start = self.at;
        word.mark(MarkKind::Computed);
        self.state.evaluation.has_array = true;
        self.expect(b'(')?;
        loop {
            self.skip_lines()?;
            if self.eat(b')') {
                break;
            }
            self.state.enter()?;
            let element = self.word(true)?;
            self.state.leave();
            let element = element.ok_or(Stop)?;
            self.state.evaluation.has_hidden_code |= element.hides_code();
            // `([x]=1)`: the place in an array is an expression.
            let rest = element.text.strip_prefix('[');
            let place = rest.and_then(|rest| rest.split_once("]=").or_else(|| rest.split_once("]+=")));
            place.into_iter().for_each(|(place, _)| self.state.evaluate(place));
            self.state.count_word()?;
        }
        word.text.push_str(self.from(start));
        Ok(())
    }

    /// Adds the words that a raw word stands for.
    pub(super) fn expand(&mut self, raw: RawWord, words: &mut Vec<Word>) -> Step<()> {
        let kinds = raw.marks.iter().fold(0, |kinds, mark| kinds | mark.kind.bit());
        let has = |kind: MarkKind| kinds & kind.bit() != 0;
        if has(MarkKind::Separator) || (has(MarkKind::Open) && has(MarkKind::Close)) {
            return brace::expand(raw, self.state, words);
        }
        self.state.count_word()?;
        let RawWord { mut text, mut marks, written, .. } = raw;
        let form = match (has(MarkKind::Computed), has(MarkKind::Glob)) {
            (true, _) => WordForm::Computed,
            (false, true) => WordForm::Pattern,
            (false, false) => WordForm::Literal,
        };
        if form == WordForm::Computed {
            text.clear();
            text.push_str(self.text.get(written).unwrap_or_default());
        }
        words.push(Word { text, form });
        marks.clear();
        self.state.spare_marks = marks;
        Ok(())
    }
}

fn is_name(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}
