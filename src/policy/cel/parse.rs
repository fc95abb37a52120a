//! Parses an expression within its bounds: brackets, nodes and depth are counted as they are read.

use super::lex::{Token, TokenKind, tokens};
use super::syntax::{Operator, Syntax, SyntaxKind};
use super::{MOST_DEPTH, MOST_NESTED, MOST_NODES, Mistake};
use crate::yaml::field;

/// Parses a whole expression. Mistakes in strings and numbers are told all at once; of a syntax that cannot be read, the
/// first place, since what follows hangs on it.
pub(super) fn parse(source: &str) -> Result<Syntax, Vec<Mistake>> {
    let tokens = tokens(source)?;
    let mut parser = Parser { tokens: &tokens, at: 0, nested: 0, nodes: 0 };
    let parsed = parser.expression().and_then(|syntax| {
        let is_whole = parser.peek().what == TokenKind::End;
        if is_whole {
            Ok(syntax)
        } else {
            Err(parser.unexpected("an operator, or the end of the expression"))
        }
    });
    parsed.map_err(|mistake| vec![mistake])
}

struct Parser<'t, 'a> {
    /// At least one: the end.
    tokens: &'t [Token<'a>],
    at: usize,
    nested: usize,
    nodes: usize,
}

/// What stands after the end.
const END: Token<'static> = Token { offset: 0, text: "", what: TokenKind::End };

/// Words that CEL keeps for itself.
const RESERVED: &[&str] = &[
    "as",
    "break",
    "const",
    "continue",
    "else",
    "for",
    "function",
    "if",
    "import",
    "in",
    "let",
    "loop",
    "package",
    "namespace",
    "return",
    "var",
    "void",
    "while",
];

type Parsed = Result<Syntax, Mistake>;

impl<'t, 'a> Parser<'t, 'a> {
    fn peek(&self) -> &'t Token<'a> {
        self.tokens.get(self.at).unwrap_or(&END)
    }

    /// Takes the token if it is this mark, and returns its offset.
    fn take(&mut self, mark: &str) -> Option<usize> {
        let token = self.peek();
        let found = matches!(token.what, TokenKind::Mark) && token.text == mark;
        let offset = token.offset;
        found.then(|| {
            self.at += 1;
            offset
        })
    }

    fn expect(&mut self, mark: &str, expected: &str) -> Result<(), Mistake> {
        self.take(mark).map(|_| ()).ok_or_else(|| self.unexpected(expected))
    }

    fn unexpected(&self, expected: &str) -> Mistake {
        let token = self.peek();
        let found = match &token.what {
            TokenKind::End => "the expression ends here".to_owned(),
            TokenKind::Name | TokenKind::Digits { .. } | TokenKind::Text(_) | TokenKind::Mark => {
                format!("{} does not belong here", field::plainly(token.text))
            }
        };
        Mistake::new(token.offset, format!("{found}; expected {expected}"))
    }

    /// Makes a node of a tree, within the bounds. `below` is the depth of the deepest child.
    fn node(&mut self, offset: usize, below: usize, what: SyntaxKind) -> Parsed {
        self.nodes += 1;
        let depth = below + 1;
        if depth > MOST_DEPTH {
            let message = format!("the expression is more than {MOST_DEPTH} steps deep; write several rules");
            return Err(Mistake::new(offset, message));
        }
        if self.nodes > MOST_NODES {
            let message = format!("the expression has more than {MOST_NODES} parts; write several rules");
            return Err(Mistake::new(offset, message));
        }
        Ok(Syntax { offset, depth, what })
    }

    /// `a ? b : c`, whose parts may be anything.
    fn expression(&mut self) -> Parsed {
        self.nested += 1;
        if self.nested > MOST_NESTED + 1 {
            let message = format!("more than {MOST_NESTED} brackets and choices stand in each other here");
            return Err(Mistake::new(self.peek().offset, message));
        }
        let parsed = self.choice();
        self.nested -= 1;
        parsed
    }

    fn choice(&mut self) -> Parsed {
        let condition = self.any()?;
        let Some(offset) = self.take("?") else { return Ok(condition) };
        let then = self.any()?;
        self.expect(":", "`:` of `condition ? one : other`")?;
        let otherwise = self.expression()?;
        let below = condition.depth.max(then.depth).max(otherwise.depth);
        self.node(offset, below, SyntaxKind::Choice(Box::new([condition, then, otherwise])))
    }

    fn any(&mut self) -> Parsed {
        self.chain("||", Self::all, SyntaxKind::Or)
    }

    fn all(&mut self) -> Parsed {
        self.chain("&&", |parser| parser.binary(0), SyntaxKind::And)
    }

    /// Operands of an operator that is told as one node, however many there are.
    fn chain(
        &mut self,
        mark: &str,
        operand: fn(&mut Self) -> Parsed,
        make: fn(Vec<Syntax>) -> SyntaxKind,
    ) -> Parsed {
        let first = operand(self)?;
        let Some(offset) = self.take(mark) else { return Ok(first) };
        let mut operands = vec![first];
        operands.push(operand(self)?);
        while self.take(mark).is_some() {
            operands.push(operand(self)?);
        }
        let below = operands.iter().map(|operand| operand.depth).max().unwrap_or(0);
        self.node(offset, below, make(operands))
    }

    /// Operators that bind at this level or tighter.
    fn binary(&mut self, level: usize) -> Parsed {
        let mut left = self.unary()?;
        while let Some((operator, offset)) = self.operator(level) {
            self.at += 1;
            let right = self.binary(operator.level() + 1)?;
            let below = left.depth.max(right.depth);
            left = self.node(offset, below, SyntaxKind::Binary(operator, Box::new([left, right])))?;
        }
        Ok(left)
    }

    fn operator(&self, level: usize) -> Option<(Operator, usize)> {
        let token = self.peek();
        let is_operator = matches!(token.what, TokenKind::Mark) || token.text == "in";
        let operator =
            Operator::of(token.text).filter(|operator| is_operator && operator.level() >= level)?;
        Some((operator, token.offset))
    }

    /// `!a`, `-a`. A sign that stands twice is none.
    fn unary(&mut self) -> Parsed {
        let Some((mark, offset)) = ["!", "-"].into_iter().find_map(|mark| Some((mark, self.take(mark)?)))
        else {
            return self.member();
        };
        let mut is_odd = true;
        while self.take(mark).is_some() {
            is_odd = !is_odd;
        }
        if mark == "-" && matches!(self.peek().what, TokenKind::Digits { .. }) {
            let number = self.number(is_odd)?;
            return self.members(number);
        }
        let operand = self.member()?;
        // Two of them still say which type the operand has.
        let make = if mark == "!" { SyntaxKind::Not } else { SyntaxKind::Negate };
        let below = operand.depth;
        let once = self.node(offset, below, make(Box::new(operand)))?;
        if is_odd {
            return Ok(once);
        }
        let below = once.depth;
        self.node(offset, below, make(Box::new(once)))
    }

    fn member(&mut self) -> Parsed {
        let primary = self.primary()?;
        self.members(primary)
    }

    /// `.name`, `.name(arguments)` and `[index]`, as many as there are.
    fn members(&mut self, mut base: Syntax) -> Parsed {
        loop {
            if self.take(".").is_some() {
                let token = self.peek();
                if !matches!(token.what, TokenKind::Name) {
                    return Err(self.unexpected("the name of a field or of a function"));
                }
                let (name, offset) = (token.text.to_owned(), token.offset);
                self.at += 1;
                base = self.selected(base, name, offset)?;
            } else if let Some(offset) = self.take("[") {
                let index = self.expression()?;
                self.expect("]", "`]`")?;
                let below = base.depth.max(index.depth);
                base = self.node(offset, below, SyntaxKind::Index(Box::new([base, index])))?;
            } else {
                return Ok(base);
            }
        }
    }

    fn selected(&mut self, base: Syntax, name: String, offset: usize) -> Parsed {
        let below = base.depth;
        if self.take("(").is_none() {
            return self.node(offset, below, SyntaxKind::Select(Box::new(base), name));
        }
        let arguments = self.list(")")?;
        let below = arguments.iter().map(|argument| argument.depth).fold(below, usize::max);
        self.node(offset, below, SyntaxKind::Call { target: Some(Box::new(base)), name, arguments })
    }

    fn primary(&mut self) -> Parsed {
        let token = self.peek();
        let (text, offset) = (token.text, token.offset);
        match &token.what {
            TokenKind::Digits { .. } => self.number(false),
            TokenKind::Text(value) => {
                let value = value.clone();
                self.at += 1;
                self.node(offset, 0, SyntaxKind::Text(value))
            }
            TokenKind::Name => self.name(text, offset),
            TokenKind::Mark if self.take("(").is_some() => {
                let inner = self.expression()?;
                self.expect(")", "`)`, or an operator")?;
                Ok(inner)
            }
            TokenKind::Mark if self.take("[").is_some() => {
                let items = self.list("]")?;
                let below = items.iter().map(|item| item.depth).max().unwrap_or(0);
                self.node(offset, below, SyntaxKind::List(items))
            }
            TokenKind::Mark if text == "{" => {
                Err(Mistake::new(offset, "maps are no part of these rules; expected a value, a list or `(`"))
            }
            TokenKind::Mark | TokenKind::End => {
                Err(self.unexpected("a value: a field, a string, a number, `(`"))
            }
        }
    }

    fn name(&mut self, text: &str, offset: usize) -> Parsed {
        self.at += 1;
        match text {
            "true" | "false" => self.node(offset, 0, SyntaxKind::Bool(text == "true")),
            "null" => Err(Mistake::new(
                offset,
                "there is no null here; `has(event.…)` asks whether a field is there",
            )),
            reserved if RESERVED.contains(&reserved) => {
                Err(Mistake::new(offset, format!("`{reserved}` is a word that CEL keeps; expected a value")))
            }
            name if self.take("(").is_some() => {
                let name = name.to_owned();
                let arguments = self.list(")")?;
                let below = arguments.iter().map(|argument| argument.depth).max().unwrap_or(0);
                self.node(offset, below, SyntaxKind::Call { target: None, name, arguments })
            }
            name => self.node(offset, 0, SyntaxKind::Name(name.to_owned())),
        }
    }

    /// Items up to the bracket that closes them; a comma may stand behind the last.
    fn list(&mut self, close: &str) -> Result<Vec<Syntax>, Mistake> {
        let mut items = Vec::new();
        while self.take(close).is_none() {
            items.push(self.expression()?);
            if self.take(",").is_none() {
                self.expect(close, if close == ")" { "`,` or `)`" } else { "`,` or `]`" })?;
                break;
            }
        }
        Ok(items)
    }

    fn number(&mut self, is_negative: bool) -> Parsed {
        let token = self.peek();
        let (digits, offset) = (token.text, token.offset);
        let TokenKind::Digits { radix } = token.what else { return Err(self.unexpected("a number")) };
        self.at += 1;
        let size = i128::from_str_radix(digits, radix).ok();
        let value = size.and_then(|size| i64::try_from(if is_negative { -size } else { size }).ok());
        let value = value.ok_or_else(|| {
            Mistake::new(
                offset,
                "the number is too large; numbers have 64 bits, from -9223372036854775808 on",
            )
        })?;
        self.node(offset, 0, SyntaxKind::Int(value))
    }
}
