//! Expansions: `$name`, `${…}`, `$(…)`, `$((…))`, backquotes. What they give is not told; commands in them are read.

use super::reader::Reader;
use super::state::{Step, Stop};
use super::word::{MarkKind, RawWord};

impl Reader<'_, '_> {
    /// What a `$` begins.
    pub(super) fn dollar(&mut self, word: &mut RawWord, in_quotes: bool) -> Step<()> {
        self.peek();
        let start = self.at;
        self.at += 1;
        match self.peek() {
            Some(b'\'') if !in_quotes => return self.escaped_quotes(word),
            Some(b'"') if !in_quotes => return self.double_quotes(word),
            Some(b'(') if self.second() == Some(b'(') => {
                self.at += 1;
                self.expect(b'(')?;
                self.nested(|reader| reader.arithmetic(b')'))?;
                self.expect(b')')?;
            }
            Some(b'(') => {
                self.at += 1;
                self.substitution()?;
            }
            Some(b'[') => {
                self.at += 1;
                self.state.is_opaque = true;
                self.nested(|reader| reader.arithmetic(b']'))?;
            }
            Some(b'{') => {
                self.at += 1;
                self.nested(|reader| reader.parameter(in_quotes))?;
            }
            Some(byte) if byte.is_ascii_alphabetic() || byte == b'_' => self.name(),
            Some(byte) if byte.is_ascii_digit() || b"@*#?-$!".contains(&byte) => self.at += 1,
            _ => {
                word.text.push('$');
                return Ok(());
            }
        }
        let written = self.from(start);
        if !in_quotes && matches!(written, "$IFS" | "${IFS}") && !self.state.assigns_separator {
            word.mark(MarkKind::Separator);
            word.text.push(' ');
        } else {
            word.mark(MarkKind::Computed);
            word.text.push_str(written);
        }
        Ok(())
    }

    fn name(&mut self) {
        while self.peek().is_some_and(|byte| byte.is_ascii_alphanumeric() || byte == b'_') {
            self.at += 1;
        }
    }

    fn nested(&mut self, read: impl FnOnce(&mut Self) -> Step<()>) -> Step<()> {
        self.state.enter()?;
        read(self)?;
        self.state.leave();
        Ok(())
    }

    /// The commands of `$(…)`, `<(…)`, `>(…)` from behind the parenthesis.
    pub(super) fn substitution(&mut self) -> Step<()> {
        let (start, outer) = (self.at, std::mem::take(&mut self.pending));
        let (place, first) = (self.state.place.clone(), self.state.count());
        self.nested(Self::list_of_substitution)?;
        self.state.pipe_since(first);
        self.state.place = place;
        self.resume_documents(outer, start)
    }

    fn list_of_substitution(&mut self) -> Step<()> {
        self.list()?;
        self.expect(b')')
    }

    /// The commands between backquotes.
    pub(super) fn backquotes(&mut self, word: &mut RawWord, in_quotes: bool) -> Step<()> {
        let start = self.at;
        self.at += 1;
        let mut text = String::new();
        loop {
            let plain = self.rest().find(['`', '\\']).ok_or(Stop)?;
            text.push_str(self.rest().get(..plain).unwrap_or_default());
            self.at += plain + 1;
            if self.text.as_bytes().get(self.at - 1) == Some(&b'`') {
                break;
            }
            match self.bump().ok_or(Stop)? {
                sign @ ('`' | '\\' | '$') => text.push(sign),
                '"' if in_quotes => text.push('"'),
                other => text.extend(['\\', other]),
            }
        }
        if !self.pending.is_empty() && self.from(start).contains('\n') {
            self.state.is_opaque = true;
        }
        let (place, first) = (self.state.place.clone(), self.state.count());
        self.state.read_nested(&text)?;
        self.state.pipe_since(first);
        self.state.place = place;
        word.mark(MarkKind::Computed);
        word.text.push_str(self.from(start));
        Ok(())
    }

    /// `${…}` from behind the brace.
    fn parameter(&mut self, in_quotes: bool) -> Step<()> {
        // `${ commands; }` of ksh and bash 5.3, and `${(e)name}` of zsh, which runs what the name holds.
        if matches!(self.peek(), None | Some(b' ' | b'\t' | b'\n' | b'|' | b'(')) {
            return Err(Stop);
        }
        let start = self.at;
        while self.peek().is_some_and(|byte| byte.is_ascii_alphanumeric() || b"_!#@*?$".contains(&byte)) {
            self.at += 1;
        }
        let is_value = matches!(self.peek(), Some(b':' | b'-' | b'=' | b'+'));
        self.at = start;
        let (mut ignored, mut has_quoted_sign) = (RawWord::default(), false);
        loop {
            match self.peek().ok_or(Stop)? {
                b'}' => {
                    let written = self.from(start);
                    self.at += 1;
                    self.evaluate_parameter(written, has_quoted_sign);
                    return Ok(());
                }
                b'\'' if in_quotes => {
                    // A sign in values, a quote in patterns.
                    self.state.is_opaque = true;
                    if is_value { self.at += 1 } else { self.single_quotes(&mut ignored)? }
                }
                b'\'' => self.single_quotes(&mut ignored)?,
                b'"' => self.double_quotes(&mut ignored)?,
                b'\\' => self.escape(&mut ignored)?,
                b'$' => self.dollar(&mut ignored, in_quotes)?,
                b'`' => self.backquotes(&mut ignored, in_quotes)?,
                _ => {
                    self.bump();
                }
            }
            has_quoted_sign |= ignored.has_quoted_sign;
            ignored.text.clear();
            ignored.marks.clear();
        }
    }

    /// What `${…}` evaluates and sets, and not only gives.
    fn evaluate_parameter(&mut self, written: &str, has_quoted_sign: bool) {
        // The place in an array, an offset, and what a variable names; `@P` expands what it holds.
        if let Some(expression) = expression_of(written) {
            self.state.evaluate(expression);
        }
        self.state.is_opaque |= has_quoted_sign && written.contains(['(', '`']) || written.ends_with("@P");
        if let Some((name, value)) = assignment_of(written) {
            self.state.assign_within(name);
            self.state.hide_expression(value);
            // It is another variable that gets the value, and may be any.
            self.state.is_opaque |= written.starts_with('!');
            self.state.assigns_search_path |= written.starts_with('!');
        }
    }

    /// An expression up to a sign outside of parentheses, and over that.
    pub(super) fn arithmetic(&mut self, end: u8) -> Step<()> {
        let (start, mut open) = (self.at, 0_usize);
        let mut ignored = RawWord::default();
        loop {
            match self.peek().ok_or(Stop)? {
                byte if byte == end && open == 0 => {
                    // bash counts parentheses in commands, too, and where they do not fit reads commands instead.
                    let count = |sign| self.from(start).bytes().filter(|byte| *byte == sign).count();
                    self.state.is_opaque |= count(b'(') != count(b')');
                    self.state.evaluate(self.from(start));
                    self.at += 1;
                    return Ok(());
                }
                b'(' => {
                    open += 1;
                    self.at += 1;
                }
                b')' => {
                    open = open.checked_sub(1).ok_or(Stop)?;
                    self.at += 1;
                }
                // Shells do not agree about quotes here.
                b'\'' | b'\\' => return Err(Stop),
                b'"' => self.double_quotes(&mut ignored)?,
                b'$' => self.dollar(&mut ignored, true)?,
                b'`' => self.backquotes(&mut ignored, true)?,
                _ => {
                    self.bump();
                }
            }
            // A text in quotes that is evaluated, and with it what stands in it.
            self.state.is_opaque |= ignored.has_quoted_sign;
            ignored.text.clear();
            ignored.marks.clear();
        }
    }
}

/// The name and the value of `${name=…}`, `${name[place]:=…}`, `${!name:=…}`.
fn assignment_of(written: &str) -> Option<(&str, &str)> {
    let written = written.strip_prefix('!').unwrap_or(written);
    let length = written.find(|c: char| !c.is_ascii_alphanumeric() && c != '_')?;
    let (name, behind) = written.split_at_checked(length)?;
    let behind = match behind.strip_prefix('[') {
        Some(behind) => behind.split_once("]:=").or_else(|| behind.split_once("]="))?.1,
        None => behind.trim_start_matches(':').strip_prefix('=')?,
    };
    Some((name, behind))
}

/// What `${…}` evaluates behind the name: the place in an array, an offset; all of it where a variable holds the name.
fn expression_of(written: &str) -> Option<&str> {
    if written.starts_with('!') {
        return Some(written);
    }
    let behind_length = written.trim_start_matches('#');
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let behind = behind_length.trim_start_matches(is_part);
    let behind = if behind.len() < behind_length.len() {
        behind
    } else {
        behind.strip_prefix(['@', '*', '?', '-', '$']).unwrap_or(behind)
    };
    let mut signs = behind.chars();
    match (signs.next(), signs.next()) {
        (Some('['), _) => Some(behind),
        (Some(':'), Some('-' | '=' | '+' | '?')) => None,
        // What stands behind these is a value or a pattern.
        (None | Some('-' | '=' | '+' | '?' | '#' | '%' | '/' | '^' | ',' | '@'), _) => None,
        (Some(_), _) => written.contains(['[', ':']).then_some(written),
    }
}
