//! Reads scripts of code mode (JavaScript): which tools a script names, with which inputs, and whether it could reach
//! others.
//!
//! The script is not run and not parsed. Its tokens are looked at: `tools.NAME(literal)` is a call with its input
//! wherever it stands, `tools.NAME` in any other form is a tool whose input nobody knows. Whatever else is done with
//! `tools`, and whatever leads to code that is not written here, could call any tool.

mod constants;
mod literal;
mod outline;
#[cfg(test)]
mod tests;
mod tokens;

use std::collections::HashSet;

use serde_json::{Map, Value};

use constants::Constants;
use literal::{LiteralReader, cooked};
use tokens::{ScriptToken, TokenKind, UnclearScript};

/// What a script does, as far as that can be read.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Script {
    /// The calls, in their order; of those whose input is not known each stands once.
    pub(super) calls: Vec<ScriptCall>,
    /// Why it could call any tool.
    pub(super) reaches: Option<&'static str>,
}

/// A tool that a script names.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct ScriptCall {
    pub(super) name: String,
    /// A string is the input of a custom tool; none where only running the script would tell.
    pub(super) input: Option<Value>,
    /// Where the input is not known: its keys, with texts for the values, if those are.
    pub(super) keys: Option<Value>,
}

/// The longest text that could be the name of one of [`PROPERTIES`], in bytes with escapes.
const MOST_NAME: usize = 256;

/// The object of all tools.
const TOOLS: &str = "tools";

/// Names of properties that lead from a value to code made of text, or to the values that everything shares.
const PROPERTIES: &[&str] = &[
    "constructor",
    "prototype",
    "__proto__",
    "__defineGetter__",
    "__lookupGetter__",
    "getOwnPropertyDescriptor",
    "getOwnPropertyDescriptors",
    "getOwnPropertyNames",
    "getPrototypeOf",
    "setPrototypeOf",
    "prepareStackTrace",
];

/// Names through which a script has the global object, code made of text, or other modules.
const GLOBALS: &[&str] = &[
    "eval",
    "Function",
    "import",
    "export",
    "globalThis",
    "global",
    "self",
    "window",
    "this",
    "with",
    "Reflect",
    "Proxy",
    "ShadowRealm",
    "require",
];

/// Words behind which a bracket begins an array or a pattern, rather than the name of a property.
const OPERATORS: &[&str] = &[
    "return",
    "typeof",
    "case",
    "do",
    "else",
    "in",
    "of",
    "instanceof",
    "new",
    "delete",
    "void",
    "throw",
    "default",
    "await",
    "yield",
    "const",
    "let",
    "var",
    "extends",
];

/// Reads a script.
///
/// # Errors
/// Nobody can be certain what is code in it.
pub(super) fn read(script: &str) -> Result<Script, &'static str> {
    let tokens = tokens::tokens(script).map_err(|UnclearScript(why)| why)?;
    let mut reader = LiteralReader::new(&tokens, script.len());
    let constants = Constants::new(&tokens, &mut reader);
    let mut scan = ScriptScan {
        tokens: &tokens,
        reader,
        constants,
        script: Script::default(),
        unknown: HashSet::new(),
        looks_up: false,
        names_danger: false,
    };
    (0..tokens.len()).for_each(|at| scan.look(at));
    if scan.looks_up && scan.names_danger {
        scan.reaches("it looks up what values are made of");
    }
    Ok(scan.script)
}

struct ScriptScan<'a, 't> {
    tokens: &'t [ScriptToken<'a>],
    reader: LiteralReader<'a, 't>,
    constants: Constants<'a>,
    script: Script,
    /// Tools that are in the list without an input, and the keys that it has.
    unknown: HashSet<(String, Option<String>)>,
    /// Properties are looked up by variables.
    looks_up: bool,
    /// A text is the name of a property that leads to code made of text.
    names_danger: bool,
}

impl<'a, 't> ScriptScan<'a, 't> {
    fn token(&self, at: usize) -> Option<&'t ScriptToken<'a>> {
        self.tokens.get(at)
    }

    fn is_at(&self, at: usize, sign: &str) -> bool {
        self.token(at).is_some_and(|token| token.is(sign))
    }

    fn reaches(&mut self, why: &'static str) {
        self.script.reaches.get_or_insert(why);
    }

    fn look(&mut self, at: usize) {
        let Some(token) = self.token(at) else { return };
        match token.kind {
            TokenKind::Name => self.name(at, token.text),
            TokenKind::Sign if token.text == "[" => self.bracket(at, token),
            TokenKind::Text | TokenKind::Template if token.text.len() <= MOST_NAME => {
                self.names_danger |= cooked(token).is_some_and(|name| PROPERTIES.contains(&name.as_str()));
            }
            TokenKind::Sign
            | TokenKind::Number
            | TokenKind::Text
            | TokenKind::Regex
            | TokenKind::Template
            | TokenKind::TemplateHead
            | TokenKind::TemplateMiddle
            | TokenKind::TemplateTail => {}
        }
    }

    fn name(&mut self, at: usize, name: &str) {
        let last = at.checked_sub(1).and_then(|at| self.token(at));
        let is_property = last.is_some_and(ScriptToken::is_dot);
        let is_key = || self.is_at(at + 1, ":") && last.is_some_and(|last| last.is("{") || last.is(","));
        if name == TOOLS && is_property {
            self.reaches("it has the tools in another object");
        } else if name == TOOLS {
            self.tool(at);
        } else if PROPERTIES.contains(&name) {
            self.reaches("it uses what values are made of");
        } else if GLOBALS.contains(&name) && !is_property && !is_key() {
            self.reaches("it can run code that is not written in it");
        }
    }

    /// `tools.NAME`, `tools["NAME"]`, called or not.
    fn tool(&mut self, at: usize) {
        let Some((name, behind)) = self.named(at + 1) else {
            return self.reaches("it uses `tools` other than by a tool's name");
        };
        let open = if self.is_at(behind, "?.") { behind + 1 } else { behind };
        let is_called = self.is_at(open, "(");
        let input = if is_called { self.input(open) } else { None };
        let keys = if is_called && input.is_none() { self.keys(open) } else { None };
        if input.is_some() || self.unknown.insert((name.clone(), keys.as_ref().map(Value::to_string))) {
            self.script.calls.push(ScriptCall { name, input, keys });
        }
    }

    /// The name of a property behind an object, and the place behind it.
    fn named(&self, at: usize) -> Option<(String, usize)> {
        let first = self.token(at)?;
        let second = self.token(at + 1)?;
        if first.is_dot() && second.kind == TokenKind::Name {
            return Some((second.text.to_owned(), at + 2));
        }
        let open = if first.is("?.") { at + 1 } else { at };
        let key = self.token(open + 1)?;
        let is_literal = self.is_at(open, "[") && matches!(key.kind, TokenKind::Text | TokenKind::Template);
        if is_literal && self.is_at(open + 2, "]") { Some((cooked(key)?, open + 3)) } else { None }
    }

    /// The one argument of a call, where it is data.
    fn input(&mut self, open: usize) -> Option<Value> {
        if self.is_at(open + 1, ")") {
            return Some(Value::Object(Map::new()));
        }
        let (value, behind) = self.reader.value(open + 1, &self.constants)?;
        self.is_last(behind).then_some(value)
    }

    /// The keys of the one argument of a call, where the script says them.
    fn keys(&mut self, open: usize) -> Option<Value> {
        let (object, behind) = self.reader.outline(open + 1, &self.constants)?;
        self.is_last(behind).then_some(object)
    }

    /// Whether the arguments of a call end here.
    fn is_last(&self, at: usize) -> bool {
        let at = if self.is_at(at, ",") { at + 1 } else { at };
        self.is_at(at, ")")
    }

    /// What stands in brackets may be the name of a property: one that is put together could be any.
    fn bracket(&mut self, at: usize, open: &ScriptToken<'_>) {
        if !self.is_property(at, open) {
            return;
        }
        let key = self.tokens.get(at + 1..open.partner).unwrap_or_default();
        match key {
            [ScriptToken { kind: TokenKind::Number, .. }] => {}
            [text] if matches!(text.kind, TokenKind::Text | TokenKind::Template) => {
                if cooked(text).is_none_or(|name| is_dangerous(&name)) {
                    self.reaches("it uses what values are made of");
                }
            }
            // What is only written gives nothing away.
            _ if self.is_at(open.partner + 1, "=") => {}
            _ if is_harmless(key) => {}
            _ if (at + 1..open.partner).any(|at| self.puts_together(at)) => {
                self.reaches("it puts the name of a property together");
            }
            _ => {
                self.looks_up = true;
                let behind = open.partner + 1;
                let behind = if self.is_at(behind, "?.") { behind + 1 } else { behind };
                let is_called = self.token(behind).is_some_and(|token| {
                    token.is("(") || matches!(token.kind, TokenKind::Template | TokenKind::TemplateHead)
                });
                if is_called {
                    self.reaches("it calls what it looks up");
                }
            }
        }
    }

    /// Whether the text at a place may be a part of the name that stands around it: all but the whole arguments of calls,
    /// whose results are as little known as what variables hold.
    fn puts_together(&self, at: usize) -> bool {
        let Some(token) = self.token(at).filter(|token| token.is_textual()) else { return false };
        let before = |at: usize| at.checked_sub(1).and_then(|at| self.token(at));
        let is_whole = matches!(token.kind, TokenKind::Text | TokenKind::Template)
            && before(at).is_some_and(|last| last.is("(") || last.is(","))
            && (self.is_at(at + 1, ",") || self.is_at(at + 1, ")"));
        let is_called = || {
            let open = token.parent.filter(|open| self.is_at(*open, "("));
            open.and_then(before)
                .is_some_and(|name| name.kind == TokenKind::Name && !OPERATORS.contains(&name.text))
        };
        !(is_whole && is_called())
    }

    fn is_property(&self, at: usize, open: &ScriptToken<'_>) -> bool {
        let Some(last) = at.checked_sub(1).and_then(|at| self.token(at)) else { return false };
        let is_member = match (last.kind, last.text) {
            (TokenKind::Name, name) => !OPERATORS.contains(&name),
            (TokenKind::Sign, sign) => [")", "]", "}", "?."].contains(&sign),
            (
                TokenKind::Number
                | TokenKind::Text
                | TokenKind::Regex
                | TokenKind::Template
                | TokenKind::TemplateTail,
                _,
            ) => true,
            (TokenKind::TemplateHead | TokenKind::TemplateMiddle, _) => false,
        };
        let is_key = || {
            let parent = open.parent.and_then(|at| self.token(at));
            let behind = open.partner + 1;
            parent.is_some_and(|parent| parent.is("{"))
                && (self.is_at(behind, ":") || self.is_at(behind, "("))
        };
        is_member || is_key()
    }
}

/// Whether a name of a property that is a template cannot be one that leads anywhere, by how it begins and ends.
fn is_harmless(key: &[ScriptToken<'_>]) -> bool {
    let [head, .., tail] = key else { return false };
    let is_one = head.kind == TokenKind::TemplateHead
        && tail.kind == TokenKind::TemplateTail
        && key
            .iter()
            .filter(|token| token.parent == head.parent && token.kind == TokenKind::TemplateHead)
            .count()
            == 1;
    let (Some(start), Some(end)) = (cooked(head), cooked(tail)) else { return false };
    let may_be = |name: &str| name.starts_with(&start) && name.ends_with(&end);
    is_one && !may_be(TOOLS) && !PROPERTIES.iter().any(|name| may_be(name))
}

fn is_dangerous(name: &str) -> bool {
    name == TOOLS || PROPERTIES.contains(&name)
}
