//! A place in a text, and small steps from there.

use super::here::PendingDocument;
use super::state::{State, Step, Stop};

pub(super) struct Reader<'t, 's> {
    pub(super) text: &'t str,
    pub(super) at: usize,
    /// The text was not cut, so that its last word is whole.
    pub(super) is_whole: bool,
    /// Here-documents that begin behind the next line break.
    pub(super) pending: Vec<PendingDocument>,
    pub(super) state: &'s mut State,
}

impl<'t, 's> Reader<'t, 's> {
    pub(super) fn new(text: &'t str, is_whole: bool, state: &'s mut State) -> Self {
        Self { text, at: 0, is_whole, pending: Vec::new(), state }
    }

    /// The next byte, behind backslashes that continue a line.
    #[inline]
    pub(super) fn peek(&mut self) -> Option<u8> {
        #[cfg(test)]
        count_steps(1);
        match self.raw() {
            Some(b'\\') => self.peek_behind_lines(),
            byte => byte,
        }
    }

    fn peek_behind_lines(&mut self) -> Option<u8> {
        let bytes = self.text.as_bytes();
        while bytes.get(self.at) == Some(&b'\\') && bytes.get(self.at + 1) == Some(&b'\n') {
            #[cfg(test)]
            count_steps(1);
            self.at += 2;
        }
        self.raw()
    }

    /// The next byte as it stands there.
    pub(super) fn raw(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    /// The byte behind the next one.
    pub(super) fn second(&mut self) -> Option<u8> {
        self.peek()?;
        let at = self.at;
        self.at += 1;
        let second = self.peek();
        self.at = at;
        second
    }

    /// Goes over the next byte if it is this one.
    pub(super) fn eat(&mut self, byte: u8) -> bool {
        let is_next = self.peek() == Some(byte);
        self.at += usize::from(is_next);
        is_next
    }

    pub(super) fn expect(&mut self, byte: u8) -> Step<()> {
        if self.eat(byte) { Ok(()) } else { Err(Stop) }
    }

    /// Goes over the next character, whole.
    pub(super) fn bump(&mut self) -> Option<char> {
        #[cfg(test)]
        count_steps(1);
        let next = self.rest().chars().next()?;
        self.at += next.len_utf8();
        Some(next)
    }

    pub(super) fn rest(&self) -> &'t str {
        self.text.get(self.at..).unwrap_or_default()
    }

    /// The text from a place to here.
    pub(super) fn from(&self, start: usize) -> &'t str {
        self.text.get(start..self.at).unwrap_or_default()
    }

    /// Goes over spaces, tabs and a comment.
    pub(super) fn skip_blanks(&mut self) {
        loop {
            let bytes = self.text.as_bytes().get(self.at..).unwrap_or_default();
            let count = bytes.iter().take_while(|byte| matches!(byte, b' ' | b'\t')).count();
            self.at += count;
            #[cfg(test)]
            count_steps(count + 1);
            // A line that goes on may begin with more of them.
            if bytes.get(count) != Some(&b'\\') || !matches!(self.peek(), Some(b' ' | b'\t')) {
                break;
            }
        }
        if self.raw() == Some(b'#') {
            let rest = self.rest();
            self.at += rest.find('\n').unwrap_or(rest.len());
        }
    }

    /// The same, and line breaks with the here-documents behind them.
    pub(super) fn skip_lines(&mut self) -> Step<()> {
        loop {
            self.skip_blanks();
            if !self.eat(b'\n') {
                return Ok(());
            }
            self.read_documents()?;
        }
    }
}

#[cfg(test)]
thread_local! {
    /// How often a place in a text was looked at, and how many bytes were made, so that tests can compare texts of different length.
    static STEPS: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

#[cfg(test)]
pub(super) fn count_steps(count: usize) {
    STEPS.set(STEPS.get() + count);
}

#[cfg(test)]
pub(super) fn steps() -> usize {
    STEPS.get()
}
