//! Cuts JavaScript into tokens, or says why nobody can be certain where they are.
//!
//! A token that this reader and an agent's would cut otherwise could hide a call. So whatever has two readings (a slash
//! that divides or begins a regular expression, comments of HTML, escapes in names) is refused rather than guessed.

/// The most tokens of one script.
const MOST_TOKENS: usize = 100_000;

/// How deep brackets may stand in one another.
const MOST_DEPTH: usize = 256;

/// How far a regular expression is looked for where there may be none, in bytes.
const MOST_REGEX: usize = 1024;

/// Where a line ends.
const LINE_ENDS: [char; 4] = ['\n', '\r', '\u{2028}', '\u{2029}'];

/// Signs of several characters, the longest first.
const SIGNS: &[&str] = &[
    ">>>=", "...", "===", "!==", "**=", "<<=", ">>=", ">>>", "&&=", "||=", "??=", "=>", "==", "!=", "<=",
    ">=", "&&", "||", "??", "?.", "++", "--", "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "<<", ">>",
    "**",
];

/// Words behind which an expression begins, so that a slash there begins a regular expression.
const OPERATORS: &[&str] = &[
    "return",
    "typeof",
    "case",
    "do",
    "else",
    "in",
    "instanceof",
    "new",
    "delete",
    "void",
    "throw",
    "default",
    "extends",
];

/// Words that are operators in one place and names in another, or that end a statement by themselves.
const UNCERTAIN: &[&str] = &["of", "await", "yield", "break", "continue", "debugger"];

/// Words whose parentheses end in front of a statement.
const HEADS: &[&str] = &["if", "while", "for", "with"];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TokenKind {
    /// A name or a keyword.
    Name,
    Number,
    /// A string, with its quotes.
    Text,
    /// A template without substitutions, with its quotes.
    Template,
    /// A piece of a template: from its quote to `${`, from `}` to `${`, from `}` to its quote.
    TemplateHead,
    TemplateMiddle,
    TemplateTail,
    Regex,
    Sign,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct ScriptToken<'a> {
    pub(super) kind: TokenKind,
    pub(super) text: &'a str,
    /// Of a bracket: the place of the other one.
    pub(super) partner: usize,
    /// The place of the bracket that it stands in; none outside of all.
    pub(super) parent: Option<usize>,
}

impl ScriptToken<'_> {
    pub(super) fn is(&self, sign: &str) -> bool {
        self.kind == TokenKind::Sign && self.text == sign
    }

    pub(super) fn is_name(&self, name: &str) -> bool {
        self.kind == TokenKind::Name && self.text == name
    }

    /// Whether it is a dot in front of a property.
    pub(super) fn is_dot(&self) -> bool {
        self.is(".") || self.is("?.")
    }

    /// Whether it is a part of a template, or a string.
    pub(super) fn is_textual(&self) -> bool {
        match self.kind {
            TokenKind::Text
            | TokenKind::Template
            | TokenKind::TemplateHead
            | TokenKind::TemplateMiddle
            | TokenKind::TemplateTail => true,
            TokenKind::Name | TokenKind::Number | TokenKind::Regex | TokenKind::Sign => false,
        }
    }
}

/// Why a script has no certain reading.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct UnclearScript(pub(super) &'static str);

/// The tokens of a script.
pub(super) fn tokens(script: &str) -> Result<Vec<ScriptToken<'_>>, UnclearScript> {
    let mut lexer = Lexer { rest: script, tokens: Vec::new(), open: Vec::new(), new_line: false };
    while lexer.skip()? {
        lexer.token()?;
        if lexer.tokens.len() > MOST_TOKENS {
            return Err(UnclearScript("it is too long"));
        }
    }
    if lexer.open.is_empty() { Ok(lexer.tokens) } else { Err(BROKEN) }
}

const BROKEN: UnclearScript = UnclearScript("it is no JavaScript that can be read");
const TWO_READINGS: UnclearScript = UnclearScript("a sign in it has two readings");

struct Lexer<'a> {
    rest: &'a str,
    tokens: Vec<ScriptToken<'a>>,
    /// The brackets that are open, as places among the tokens.
    open: Vec<usize>,
    /// A line ended in front of the next token.
    new_line: bool,
}

/// What a slash does at a place.
enum Slash {
    Divides,
    BeginsRegex,
    Either,
}

impl<'a> Lexer<'a> {
    /// Goes past white space and comments; false at the end.
    fn skip(&mut self) -> Result<bool, UnclearScript> {
        self.new_line = false;
        loop {
            let is_space = |c: char| c.is_whitespace() || c == '\u{feff}';
            let end = if self.rest.starts_with(is_space) {
                self.rest.find(|c| !is_space(c)).unwrap_or(self.rest.len())
            } else if self.rest.starts_with("//") {
                self.rest.find(LINE_ENDS).unwrap_or(self.rest.len())
            } else if self.rest.starts_with("/*") {
                self.rest.get(2..).and_then(|comment| comment.find("*/")).ok_or(BROKEN)? + 4
            } else if self.rest.starts_with("<!--") || self.rest.starts_with("-->") {
                return Err(TWO_READINGS);
            } else {
                return Ok(!self.rest.is_empty());
            };
            let (skipped, rest) = self.rest.split_at_checked(end).ok_or(BROKEN)?;
            self.new_line |= skipped.contains(LINE_ENDS);
            self.rest = rest;
        }
    }

    fn token(&mut self) -> Result<(), UnclearScript> {
        let first = self.rest.chars().next().ok_or(BROKEN)?;
        let second = self.rest.chars().nth(1);
        match first {
            '"' | '\'' => self.string(first),
            '`' => self.template(TokenKind::Template, TokenKind::TemplateHead),
            '}' if self.is_in_template() => {
                self.open.pop();
                self.template(TokenKind::TemplateTail, TokenKind::TemplateMiddle)
            }
            '0'..='9' => self.number(),
            '.' if second.is_some_and(|c| c.is_ascii_digit()) => self.number(),
            '/' => self.slash(),
            '#' if second.is_some_and(|c| is_part(c) && !c.is_ascii_digit()) => self.push(TokenKind::Sign, 1),
            '\\' | '#' => Err(UnclearScript("a name in it is written with escapes")),
            c if is_part(c) => {
                let length = self.rest.find(|c| !is_part(c)).unwrap_or(self.rest.len());
                self.push(TokenKind::Name, length)
            }
            c if c.is_ascii_punctuation() => self.sign(),
            _ => Err(BROKEN),
        }
    }

    /// Takes the next bytes as a token.
    fn push(&mut self, kind: TokenKind, length: usize) -> Result<(), UnclearScript> {
        let (text, rest) = self.rest.split_at_checked(length).ok_or(BROKEN)?;
        self.rest = rest;
        self.tokens.push(ScriptToken { kind, text, partner: 0, parent: self.open.last().copied() });
        Ok(())
    }

    fn sign(&mut self) -> Result<(), UnclearScript> {
        let several = SIGNS.iter().find(|sign| self.rest.starts_with(**sign));
        // `a?.5:b`
        let is_chain =
            |sign: &&&str| **sign != "?." || !self.rest.as_bytes().get(2).is_some_and(u8::is_ascii_digit);
        let length = several.filter(is_chain).map_or(1, |sign| sign.len());
        let sign = self.rest.as_bytes().first().copied().unwrap_or_default();
        match sign {
            b'(' | b'[' | b'{' => {
                self.push(TokenKind::Sign, length)?;
                self.open()
            }
            b')' => self.close("("),
            b']' => self.close("["),
            b'}' => self.close("{"),
            _ => self.push(TokenKind::Sign, length),
        }
    }

    /// The last token opens a bracket, or a substitution.
    fn open(&mut self) -> Result<(), UnclearScript> {
        if self.open.len() == MOST_DEPTH {
            return Err(UnclearScript("its brackets are too deep"));
        }
        self.open.push(self.tokens.len() - 1);
        Ok(())
    }

    /// The next token closes the last bracket, which is this one.
    fn close(&mut self, opening: &str) -> Result<(), UnclearScript> {
        let open = self.open.pop().filter(|at| self.tokens.get(*at).is_some_and(|open| open.is(opening)));
        let (open, close) = (open.ok_or(BROKEN)?, self.tokens.len());
        self.push(TokenKind::Sign, 1)?;
        for (at, partner) in [(open, close), (close, open)] {
            self.tokens.get_mut(at).into_iter().for_each(|token| token.partner = partner);
        }
        Ok(())
    }

    fn is_in_template(&self) -> bool {
        let open = self.open.last().and_then(|at| self.tokens.get(*at));
        open.is_some_and(|open| matches!(open.kind, TokenKind::TemplateHead | TokenKind::TemplateMiddle))
    }

    fn string(&mut self, quote: char) -> Result<(), UnclearScript> {
        let mut signs = self.rest.char_indices().skip(1).peekable();
        while let Some((at, c)) = signs.next() {
            match c {
                '\\' => {
                    let escaped = signs.next();
                    if matches!(escaped, Some((_, '\r'))) {
                        signs.next_if(|(_, c)| *c == '\n');
                    }
                }
                '\n' | '\r' => return Err(BROKEN),
                c if c == quote => return self.push(TokenKind::Text, at + 1),
                _ => {}
            }
        }
        Err(BROKEN)
    }

    /// A piece of a template, from the sign that it begins with: `last` where its quote ends it, else `open`.
    fn template(&mut self, last: TokenKind, open: TokenKind) -> Result<(), UnclearScript> {
        let bytes = self.rest.as_bytes();
        let mut at = 1;
        loop {
            match (bytes.get(at), bytes.get(at + 1)) {
                (None, _) => return Err(BROKEN),
                (Some(b'\\'), _) => at += 2,
                (Some(b'`'), _) => return self.push(last, at + 1),
                (Some(b'$'), Some(b'{')) => {
                    self.push(open, at + 2)?;
                    return self.open();
                }
                (Some(_), _) => at += 1,
            }
        }
    }

    fn number(&mut self) -> Result<(), UnclearScript> {
        let bytes = self.rest.as_bytes();
        let digits = |from: usize| {
            let digit = |byte: &u8| byte.is_ascii_digit() || *byte == b'_';
            from + bytes.iter().skip(from).take_while(|byte| digit(byte)).count()
        };
        let is_based = matches!(bytes, [b'0', b'x' | b'X' | b'o' | b'O' | b'b' | b'B', ..]);
        let mut end = if is_based {
            2 + bytes.iter().skip(2).take_while(|byte| byte.is_ascii_hexdigit() || **byte == b'_').count()
        } else {
            let mut end = digits(0);
            if bytes.get(end) == Some(&b'.') {
                end = digits(end + 1);
            }
            if matches!(bytes.get(end), Some(b'e' | b'E')) {
                let sign = usize::from(matches!(bytes.get(end + 1), Some(b'+' | b'-')));
                end = digits(end + 1 + sign);
            }
            end
        };
        end += usize::from(bytes.get(end) == Some(&b'n'));
        let follows = self.rest.get(end..).and_then(|rest| rest.chars().next());
        if follows.is_some_and(is_part) {
            return Err(BROKEN);
        }
        self.push(TokenKind::Number, end)
    }

    fn slash(&mut self) -> Result<(), UnclearScript> {
        match self.what_a_slash_does() {
            Slash::Divides => self.sign(),
            Slash::BeginsRegex => {
                let length = regex(self.rest).ok_or(BROKEN)?;
                self.push(TokenKind::Regex, length)
            }
            Slash::Either => {
                // Each such slash looks at what follows; only so much, so that many of them cost no more than a few.
                let (next, rest) = self.rest.split_at(self.rest.floor_char_boundary(MOST_REGEX));
                let goes_on = !rest.is_empty() && !next.contains(LINE_ENDS);
                if goes_on || regex(next).is_some() { Err(TWO_READINGS) } else { self.sign() }
            }
        }
    }

    fn what_a_slash_does(&self) -> Slash {
        let slash = self.what_a_slash_does_in_a_line();
        // The end of a line ends some statements, `let x` among them.
        if self.new_line && matches!(slash, Slash::Divides) { Slash::Either } else { slash }
    }

    fn what_a_slash_does_in_a_line(&self) -> Slash {
        let Some(last) = self.tokens.last() else { return Slash::BeginsRegex };
        let before = self.tokens.len().checked_sub(2).and_then(|at| self.tokens.get(at));
        match (last.kind, last.text) {
            (TokenKind::Name, _) if before.is_some_and(is_in_front_of_property) => Slash::Divides,
            (TokenKind::Name, name) if OPERATORS.contains(&name) => Slash::BeginsRegex,
            (TokenKind::Name, name) if UNCERTAIN.contains(&name) => Slash::Either,
            (TokenKind::TemplateHead | TokenKind::TemplateMiddle, _) => Slash::BeginsRegex,
            (TokenKind::Sign, ")") if self.ends_a_head() => Slash::BeginsRegex,
            // The end of a block or that of an object; behind a value, or in front of `/x/.lastIndex`.
            (TokenKind::Sign, "}" | "++" | "--") => Slash::Either,
            (TokenKind::Sign, ")" | "]") => Slash::Divides,
            (TokenKind::Sign, _) => Slash::BeginsRegex,
            (
                TokenKind::Name
                | TokenKind::Number
                | TokenKind::Text
                | TokenKind::Template
                | TokenKind::TemplateTail
                | TokenKind::Regex,
                _,
            ) => Slash::Divides,
        }
    }

    /// Whether the parentheses that have just been closed belong to `if`, `while` or `for`.
    fn ends_a_head(&self) -> bool {
        let open = self.tokens.last().map_or(0, |close| close.partner);
        let before = |distance: usize| open.checked_sub(distance).and_then(|at| self.tokens.get(at));
        let is_head = |token: &ScriptToken<'_>| token.kind == TokenKind::Name && HEADS.contains(&token.text);
        match (before(2), before(1)) {
            (Some(dot), Some(_)) if is_in_front_of_property(dot) => false,
            (Some(head), Some(word)) if word.is_name("await") => is_head(head),
            (_, Some(word)) => is_head(word),
            (_, None) => false,
        }
    }
}

/// Whether the name behind a token is that of a property, which a keyword can be, too.
fn is_in_front_of_property(token: &ScriptToken<'_>) -> bool {
    token.is_dot() || token.is("#")
}

/// The length of the regular expression that a text begins with, with its flags; none where the line ends first.
fn regex(text: &str) -> Option<usize> {
    let (mut escaped, mut class) = (false, false);
    for (at, c) in text.char_indices().skip(1) {
        match c {
            c if LINE_ENDS.contains(&c) => return None,
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '[' => class = true,
            ']' => class = false,
            '/' if !class => {
                let flags = text.get(at + 1..)?;
                return Some(at + 1 + flags.find(|c| !is_part(c)).unwrap_or(flags.len()));
            }
            _ => {}
        }
    }
    None
}

/// Whether a name may have this character in it. JavaScript takes fewer of them; in a script with any other, no agent
/// runs anything.
fn is_part(c: char) -> bool {
    c.is_ascii_alphanumeric()
        || c == '_'
        || c == '$'
        || (!c.is_ascii() && !c.is_whitespace() && c != '\u{feff}')
}
