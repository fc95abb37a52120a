//! `[[ … ]]`: words between operators of its own, of which only the expansions matter.

use super::reader::Reader;
use super::state::{Step, Stop};
use super::word::RawWord;

impl Reader<'_, '_> {
    pub(super) fn condition(&mut self) -> Step<()> {
        self.at += "[[".len();
        self.either()?;
        self.skip_lines()?;
        match self.operand()? {
            Some(word) if word.is_bare() && word.text == "]]" => Ok(()),
            Some(_) | None => Err(Stop),
        }
    }

    /// Terms with `&&` and `||` between them.
    fn either(&mut self) -> Step<()> {
        loop {
            self.term()?;
            self.skip_lines()?;
            let sign = self.peek();
            if !matches!(sign, Some(b'&' | b'|')) {
                return Ok(());
            }
            if self.second() != sign {
                return Err(Stop);
            }
            self.at += 1;
            self.peek();
            self.at += 1;
        }
    }

    fn term(&mut self) -> Step<()> {
        self.skip_lines()?;
        while self.peek() == Some(b'!') && matches!(self.second(), Some(b' ' | b'\t' | b'\n' | b'(')) {
            self.at += 1;
            self.skip_lines()?;
        }
        if self.eat(b'(') {
            self.state.enter()?;
            self.either()?;
            self.state.leave();
            self.skip_lines()?;
            return self.expect(b')');
        }
        let first = self.operand()?.ok_or(Stop)?;
        if first.is_bare() && first.text == "]]" {
            return Err(Stop);
        }
        let is_unary = first.is_bare() && is_unary(&first.text);
        self.skip_blanks();
        if matches!(self.peek(), Some(b'<' | b'>')) {
            self.at += 1;
            self.skip_blanks();
            return self.operand()?.map(|_| ()).ok_or(Stop);
        }
        if matches!(self.peek(), None | Some(b'&' | b'|' | b')' | b'\n')) || self.is_at_close() {
            return Ok(());
        }
        let second = self.operand()?.ok_or(Stop)?;
        self.skip_blanks();
        match second.text.as_str() {
            _ if is_unary => {
                if matches!(first.text.as_str(), "-v" | "-R") {
                    self.state.evaluate_operand(&second);
                }
                Ok(())
            }
            "=~" => {
                // The shell keeps what fits in an array.
                self.state.evaluation.has_hidden_code |= first.hides_code();
                self.state.hide_expression(&first.text);
                self.expression()
            }
            "-eq" | "-ne" | "-lt" | "-le" | "-gt" | "-ge" => {
                let third = self.operand()?.ok_or(Stop)?;
                self.state.evaluate_operand(&first);
                self.state.evaluate_operand(&third);
                Ok(())
            }
            "=" | "==" | "!=" | "-nt" | "-ot" | "-ef" => self.operand()?.map(|_| ()).ok_or(Stop),
            _ => Err(Stop),
        }
    }

    fn is_at_close(&mut self) -> bool {
        self.peek();
        self.rest().strip_prefix("]]").is_some_and(|rest| {
            rest.is_empty() || rest.starts_with([' ', '\t', '\n', ';', '&', '|', ')', '<', '>'])
        })
    }

    fn operand(&mut self) -> Step<Option<RawWord>> {
        self.state.count_word()?;
        self.word(false)
    }

    /// The expression behind `=~`, in which parentheses and bars are signs of its own.
    fn expression(&mut self) -> Step<()> {
        let mut open = 0_usize;
        let start = self.at;
        loop {
            let before = self.at;
            self.word(false)?;
            match self.peek() {
                Some(b'(') => open += 1,
                Some(b')') if open > 0 => open -= 1,
                Some(b'|') if open > 0 || self.second() != Some(b'|') => {}
                Some(b' ' | b'\t' | b'<' | b'>') if open > 0 => {}
                Some(b' ' | b'\t' | b'\n') if self.at > start => return Ok(()),
                _ if self.at > before => continue,
                _ => return Err(Stop),
            }
            self.at += 1;
        }
    }
}

fn is_unary(word: &str) -> bool {
    word.strip_prefix('-')
        .is_some_and(|letter| letter.len() == 1 && "abcdefghknoprstuvwxzGLNORS".contains(letter))
}
