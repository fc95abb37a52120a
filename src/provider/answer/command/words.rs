//! Cuts a shell command into words, operators and redirections (POSIX.1-2024, sections 2.2, 2.3 and 2.7).

use std::iter::Peekable;
use std::str::Chars;

/// One part of a command.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum ShellToken {
    Word(ShellWord),
    /// Between two commands.
    Operator(&'static str),
    /// The next word is where something is read from or written to.
    Redirection(&'static str),
}

/// One word, without its quotes.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct ShellWord {
    pub(super) text: String,
    /// How many bytes stand before the first quote, escape or variable.
    pub(super) plain: usize,
    /// Something in it was quoted or escaped.
    quoted: bool,
    /// A variable stands in it.
    pub(super) expands: bool,
}

impl ShellWord {
    /// A word of which every sign stands for itself.
    pub(super) fn literal(text: &str) -> Self {
        Self { text: text.to_owned(), plain: text.len(), ..Self::default() }
    }

    /// Whether it is written as it is.
    pub(super) fn is_plain(&self) -> bool {
        !self.quoted && !self.expands
    }

    pub(super) fn is(&self, text: &str) -> bool {
        self.is_plain() && self.text == text
    }

    /// Whether it sets a variable for the command behind it: `NAME=`, `NAME+=`, `NAME[…]=`.
    pub(super) fn is_assignment(&self) -> bool {
        let Some((target, _)) = self.text.get(..self.plain).and_then(|plain| plain.split_once('=')) else {
            return false;
        };
        let target = target.strip_suffix('+').unwrap_or(target);
        let element = target.strip_suffix(']').and_then(|element| element.split_once('['));
        let name = element.map_or(target, |(name, _)| name);
        !name.is_empty()
            && !name.starts_with(|c: char| c.is_ascii_digit())
            && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
    }

    /// Whether a shell takes it for a file or an operand, and what follows for operands too.
    pub(super) fn is_shells_operand(&self) -> bool {
        self.expands || !self.text.starts_with('-') || self.text == "-"
    }

    /// Whether it is a path and nothing else, so that its last part is the name of a program.
    pub(super) fn is_path(&self) -> bool {
        let of_path = |byte: u8| byte.is_ascii_alphanumeric() || b"/._+-@~".contains(&byte);
        self.is_plain() && self.text.bytes().all(of_path)
    }
}

/// The parts of a command; none where it has anything that this reader does not follow: substitutions, groups,
/// documents behind `<<`, quotes that do not end, comments that a shell without comments could read in another way, and
/// quotes that PowerShell reads in another way, which agents on Windows may run.
pub(super) fn tokens(command: &str) -> Option<Vec<ShellToken>> {
    if command.contains(|c: char| ('\u{2018}'..='\u{201f}').contains(&c)) {
        return None;
    }
    let mut reader = WordReader { rest: command.chars().peekable(), word: None, tokens: Vec::new() };
    while let Some(c) = reader.rest.next() {
        reader.take(c)?;
    }
    reader.end_word();
    Some(reader.tokens)
}

struct WordReader<'a> {
    rest: Peekable<Chars<'a>>,
    word: Option<ShellWord>,
    tokens: Vec<ShellToken>,
}

impl WordReader<'_> {
    fn take(&mut self, c: char) -> Option<()> {
        match c {
            ' ' | '\t' => self.end_word(),
            '\n' => self.operator(";"),
            '\'' | '"' if self.word.as_ref().is_some_and(|word| word.text == "@") => return None,
            '\'' => self.single_quotes()?,
            '"' => self.double_quotes()?,
            '\\' => self.escape()?,
            '$' => self.variable(false)?,
            '`' | '(' | ')' => return None,
            ';' if self.rest.peek() == Some(&';') => return None,
            ';' => self.operator(";"),
            '|' => {
                let sign = if self.follows('|') { "||" } else { "|" };
                self.follows('&');
                self.operator(sign);
            }
            '&' if self.follows('&') => self.operator("&&"),
            '&' if self.rest.peek() == Some(&'>') => {}
            '&' => self.operator("&"),
            '<' | '>' => self.redirection(c)?,
            '#' if self.word.is_none() => self.comment()?,
            c if c.is_control() => return None,
            c => self.push(c),
        }
        Some(())
    }

    fn follows(&mut self, c: char) -> bool {
        self.rest.next_if_eq(&c).is_some()
    }

    fn push(&mut self, c: char) {
        let word = self.word.get_or_insert_default();
        word.text.push(c);
        if word.is_plain() {
            word.plain = word.text.len();
        }
    }

    fn quote(&mut self) {
        self.word.get_or_insert_default().quoted = true;
    }

    fn end_word(&mut self) {
        self.tokens.extend(self.word.take().map(ShellToken::Word));
    }

    /// Ends a command; several line breaks, or one at the beginning, are none.
    fn operator(&mut self, sign: &'static str) {
        self.end_word();
        let follows_command = matches!(self.tokens.last(), Some(ShellToken::Word(_)));
        if follows_command || sign != ";" {
            self.tokens.push(ShellToken::Operator(sign));
        }
    }

    fn single_quotes(&mut self) -> Option<()> {
        self.quote();
        loop {
            match self.rest.next()? {
                '\'' => return Some(()),
                c => self.push(c),
            }
        }
    }

    fn double_quotes(&mut self) -> Option<()> {
        self.quote();
        loop {
            match self.rest.next()? {
                '"' => return Some(()),
                '`' => return None,
                '$' => self.variable(true)?,
                '\\' => match self.rest.next()? {
                    '"' => return None,
                    c @ ('\\' | '$' | '`') => self.push(c),
                    '\n' => {}
                    c => {
                        self.push('\\');
                        self.push(c);
                    }
                },
                c => self.push(c),
            }
        }
    }

    fn escape(&mut self) -> Option<()> {
        match self.rest.next()? {
            '\n' => {}
            '\'' | '"' => return None,
            c => {
                self.quote();
                self.push(c);
            }
        }
        Some(())
    }

    /// `$name` and `${name}`; a text in quotes of its own (`$'…'`), a substitution and any other expansion are not read.
    fn variable(&mut self, in_quotes: bool) -> Option<()> {
        match self.rest.peek() {
            Some('(') => return None,
            Some('\'' | '"') if !in_quotes => return None,
            Some('{') => {
                self.rest.next();
                while self.rest.next_if(|c| c.is_ascii_alphanumeric() || *c == '_').is_some() {}
                if !self.follows('}') {
                    return None;
                }
            }
            Some(_) | None => {}
        }
        self.word.get_or_insert_default().expands = true;
        self.push('$');
        Some(())
    }

    fn redirection(&mut self, c: char) -> Option<()> {
        // The number of a descriptor belongs to the sign.
        let is_number =
            |word: &ShellWord| word.is_plain() && word.text.bytes().all(|byte| byte.is_ascii_digit());
        if self.word.as_ref().is_some_and(is_number) {
            self.word = None;
        }
        self.end_word();
        let sign = match (c, self.rest.peek()) {
            ('<', Some('<')) => return None,
            ('>', Some('>')) => ">>",
            ('>', Some('&')) => ">&",
            ('<', Some('&')) => "<&",
            ('>', Some('|')) => ">|",
            ('<', Some('>')) => "<>",
            ('<', _) => "<",
            _ => ">",
        };
        if sign.len() == 2 {
            self.rest.next();
        }
        self.tokens.push(ShellToken::Redirection(sign));
        Some(())
    }

    /// Passes over a comment. A shell that takes it for words would find no quote in it.
    fn comment(&mut self) -> Option<()> {
        while let Some(c) = self.rest.next_if(|c| *c != '\n') {
            if "'\"`\\$".contains(c) {
                return None;
            }
        }
        Some(())
    }
}
