//! Which names of a script stand for one literal wherever they are read.
//!
//! JavaScript has scopes, patterns and parameters that can give a name another meaning. A name counts here only if no
//! place in the script could be another declaration of it or an assignment to it; what is uncertain is no constant.

use std::collections::HashMap;

use serde_json::Value;

use super::literal::LiteralReader;
use super::tokens::{ScriptToken, TokenKind};

/// The constants of a script.
#[derive(Debug, Default)]
pub(super) struct Constants<'a> {
    named: HashMap<&'a str, Constant>,
    string_is_builtin: bool,
}

#[derive(Debug)]
struct Constant {
    value: Value,
    bytes: usize,
    /// The place of its name.
    declared: usize,
    /// The bracket that it is declared in; none outside of all.
    scope: Option<usize>,
}

/// How a name is used.
#[derive(Debug, Default)]
struct NameUse {
    count: usize,
    declarations: usize,
    /// Somewhere it could be declared anew, or assigned to.
    is_unsafe: bool,
}

/// Words behind which a name is declared.
const DECLARING: &[&str] = &["let", "var", "const", "function", "class", "import", "as", "catch"];

/// Signs behind a name that is declared or assigned to.
const ASSIGNING: &[&str] = &[
    "=", "=>", "++", "--", "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "**=", "<<=", ">>=", ">>>=",
    "&&=", "||=", "??=",
];

impl<'a> Constants<'a> {
    pub(super) fn new(tokens: &[ScriptToken<'a>], reader: &mut LiteralReader<'a, '_>) -> Self {
        let usages = usages(tokens);
        let string = usages.get("String");
        let string_is_builtin = string.is_none_or(|usage| !usage.is_unsafe && usage.declarations == 0)
            && (0..tokens.len()).all(|at| leaves_string_alone(tokens, at));
        let mut constants = Self { named: HashMap::new(), string_is_builtin };
        for (at, token) in tokens.iter().enumerate() {
            let (Some(name), true) = (tokens.get(at + 1), is_declaration(tokens, at + 1)) else { continue };
            let Some(usage) = usages.get(name.text) else { continue };
            if usage.is_unsafe || usage.declarations > 1 {
                continue;
            }
            let Some((value, behind)) = reader.value(at + 3, &constants) else { continue };
            // Objects change without an assignment to their name.
            let may_change = (value.is_object() || value.is_array()) && usage.count > 2;
            if may_change || !ends_expression(tokens.get(behind)) {
                continue;
            }
            let bytes = value.to_string().len();
            let constant = Constant { value, bytes, declared: at + 1, scope: token.parent };
            constants.named.insert(name.text, constant);
        }
        constants
    }

    /// What the name at a place stands for, with its size.
    pub(super) fn at(&self, tokens: &[ScriptToken<'_>], at: usize) -> Option<(&Value, usize)> {
        let token = tokens.get(at)?;
        let constant = self.named.get(token.text).filter(|constant| constant.declared < at)?;
        let mut parent = token.parent;
        // Outside of the block of its declaration the name is another.
        while parent != constant.scope {
            parent = tokens.get(parent?)?.parent;
        }
        Some((&constant.value, constant.bytes))
    }

    /// Whether `String.raw` is what the language has.
    pub(super) fn string_is_builtin(&self) -> bool {
        self.string_is_builtin
    }
}

/// Whether what stands at a place could not give `String.raw` another meaning: `String` is called, or asked for one of
/// its functions.
fn leaves_string_alone(tokens: &[ScriptToken<'_>], at: usize) -> bool {
    let token = |distance: usize| tokens.get(at + distance);
    if !token(0).is_some_and(|token| token.is_name("String")) {
        return true;
    }
    let is_template =
        |token: &ScriptToken<'_>| matches!(token.kind, TokenKind::Template | TokenKind::TemplateHead);
    match (token(1), token(2), token(3)) {
        (Some(open), _, _) if open.is("(") => true,
        (Some(dot), Some(raw), Some(next)) if dot.is(".") && raw.is_name("raw") => is_template(next),
        (Some(dot), Some(_), Some(open)) => dot.is(".") && open.is("("),
        (_, _, _) => false,
    }
}

/// Whether the name at a place is declared by `const NAME =`.
fn is_declaration(tokens: &[ScriptToken<'_>], at: usize) -> bool {
    let before = |distance: usize| at.checked_sub(distance).and_then(|at| tokens.get(at));
    before(1).is_some_and(|token| token.is_name("const"))
        && !before(2).is_some_and(ScriptToken::is_dot)
        && tokens.get(at).is_some_and(|token| token.kind == TokenKind::Name)
        && tokens.get(at + 1).is_some_and(|token| token.is("="))
}

/// Whether an expression has ended in front of this token.
fn ends_expression(token: Option<&ScriptToken<'_>>) -> bool {
    token.is_none_or(|token| match (token.kind, token.text) {
        (TokenKind::Sign, ";" | "," | ")" | "}") => true,
        (TokenKind::Name, name) => !["in", "instanceof", "of", "as"].contains(&name),
        (
            TokenKind::Sign
            | TokenKind::Number
            | TokenKind::Text
            | TokenKind::Regex
            | TokenKind::Template
            | TokenKind::TemplateHead
            | TokenKind::TemplateMiddle
            | TokenKind::TemplateTail,
            _,
        ) => false,
    })
}

/// What the brackets that are open at a place make of names.
#[derive(Default)]
struct Levels {
    /// For each level whether it may be a pattern or a list of parameters, and whether a list of declarations goes on.
    levels: Vec<(bool, bool)>,
    patterns: usize,
    /// The same for what stands outside of all brackets.
    declares: bool,
}

impl Levels {
    fn open(&mut self, is_pattern: bool) {
        self.patterns += usize::from(is_pattern);
        self.levels.push((is_pattern, false));
    }

    fn close(&mut self) {
        if let Some((is_pattern, _)) = self.levels.pop() {
            self.patterns -= usize::from(is_pattern);
        }
    }

    fn declares(&mut self) -> &mut bool {
        self.levels.last_mut().map_or(&mut self.declares, |(_, declares)| declares)
    }
}

fn usages<'a>(tokens: &[ScriptToken<'a>]) -> HashMap<&'a str, NameUse> {
    let mut usages: HashMap<&str, NameUse> = HashMap::new();
    let mut levels = Levels::default();
    for (at, token) in tokens.iter().enumerate() {
        match (token.kind, token.text) {
            (TokenKind::Sign, "(" | "[" | "{") => levels.open(is_pattern(tokens, at)),
            (TokenKind::TemplateHead, _) => levels.open(false),
            (TokenKind::Sign, ")" | "]" | "}") | (TokenKind::TemplateTail, _) => levels.close(),
            (TokenKind::Sign, ";") => *levels.declares() = false,
            (TokenKind::Name, "let" | "var" | "const") => *levels.declares() = true,
            (TokenKind::Name, _) => {
                let declares = *levels.declares();
                if let Some(is_unsafe) = occurrence(tokens, at, declares) {
                    let usage = usages.entry(token.text).or_default();
                    usage.count += 1;
                    let is_declaration = is_declaration(tokens, at);
                    usage.declarations += usize::from(is_declaration);
                    usage.is_unsafe |= levels.patterns > 0 || (is_unsafe && !is_declaration);
                }
            }
            (
                TokenKind::Sign
                | TokenKind::Number
                | TokenKind::Text
                | TokenKind::Regex
                | TokenKind::Template
                | TokenKind::TemplateMiddle,
                _,
            ) => {}
        }
    }
    usages
}

/// Whether the bracket that opens here may hold a pattern or parameters.
fn is_pattern(tokens: &[ScriptToken<'_>], open: usize) -> bool {
    let behind = tokens.get(open).and_then(|token| tokens.get(token.partner + 1));
    behind.is_some_and(|token| {
        token.is("=>") || token.is("=") || token.is("{") || token.is_name("of") || token.is_name("in")
    })
}

/// Whether the name at a place could be declared or assigned to there; none where it is the name of a property.
fn occurrence(tokens: &[ScriptToken<'_>], at: usize, declares: bool) -> Option<bool> {
    let before = |distance: usize| at.checked_sub(distance).and_then(|at| tokens.get(at));
    let (last, next) = (before(1), tokens.get(at + 1));
    let is = |token: Option<&ScriptToken<'_>>, signs: &[&str]| {
        token.is_some_and(|token| token.kind == TokenKind::Sign && signs.contains(&token.text))
    };
    if last.is_some_and(ScriptToken::is_dot) || (is(last, &["{", ","]) && is(next, &[":"])) {
        return None;
    }
    let declared = last.is_some_and(|last| last.kind == TokenKind::Name && DECLARING.contains(&last.text));
    let generator = is(last, &["*"]) && before(2).is_some_and(|token| token.is_name("function"));
    let looped = next.is_some_and(|next| next.is_name("of") || next.is_name("in"));
    Some(
        declared
            || generator
            || looped
            || is(next, ASSIGNING)
            || is(last, &["++", "--", "..."])
            || (is(last, &[","]) && declares),
    )
}
