//! Expressions in CEL: read or refused, never a crash; what is accepted costs no more than was reckoned, and means what the
//! crate `cel` says.
#![no_main]

use std::collections::HashMap;

use cel::{Context, Program, Value};
use libfuzzer_sys::fuzz_target;
use postern::policy::cel::{Expression, Facts, Failure, MOST_COST, MOST_SOURCE, Regexes};
use regex::{Regex, RegexBuilder};

/// Functions and macros that the crate does not have, or has without its feature for times.
const OURS: [&str; 9] = [
    "hostIn",
    "lowerAscii",
    "timestamp",
    "duration",
    "getHours",
    "getMinutes",
    "getDay",
    "getDate",
    "getMonth",
];

const MODELS: [&str; 3] = ["claude-opus-5", "ä", ""];

struct Bounded;

impl Regexes for Bounded {
    fn compile(&mut self, source: &str) -> Result<Regex, String> {
        RegexBuilder::new(source).size_limit(1 << 16).build().map_err(|error| error.to_string())
    }
}

/// What is known of an event here and there: each field has a value, so that nothing hangs on how what is missing is read.
fn facts() -> Facts<'static> {
    Facts {
        kind: "Request",
        direction: "Outbound",
        session: Some("s-1"),
        method: Some("POST"),
        path: Some("/v1/messages"),
        port: Some(443),
        model: Some("claude-opus-5"),
        models: &MODELS,
        stream: Some(true),
        payload_bytes: Some(2_000_000),
        tokens_today: Some(5),
        ..Facts::default()
    }
}

fn group(entries: &[(&str, Value)]) -> Value {
    entries.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect::<HashMap<_, _>>().into()
}

fn event() -> Value {
    let models: Vec<Value> = MODELS.iter().map(|model| (*model).into()).collect();
    group(&[
        ("kind", "Request".into()),
        ("direction", "Outbound".into()),
        ("session", "s-1".into()),
        ("http", group(&[("method", "POST".into()), ("path", "/v1/messages".into())])),
        ("destination", group(&[("port", Value::Int(443))])),
        (
            "provider",
            group(&[
                ("model", "claude-opus-5".into()),
                ("models", models.into()),
                ("stream", Value::Bool(true)),
            ]),
        ),
        ("payload", group(&[("bytes", Value::Int(2_000_000))])),
        ("spent", group(&[("tokensToday", Value::Int(5))])),
    ])
}

/// Fields that both sides have.
const FIELDS: [&str; 10] = [
    "event.kind",
    "event.session",
    "event.http.method",
    "event.http.path",
    "event.destination.port",
    "event.provider.model",
    "event.provider.models",
    "event.provider.stream",
    "event.payload.bytes",
    "event.spent.tokensToday",
];

/// An expression made of bytes, so that most of them pass.
struct Writer<'a> {
    bytes: &'a [u8],
    out: String,
}

impl Writer<'_> {
    fn byte(&mut self) -> usize {
        let Some((first, rest)) = self.bytes.split_first() else { return 0 };
        self.bytes = rest;
        usize::from(*first)
    }

    fn one(&mut self, of: &[&str]) {
        let number = self.byte() % of.len();
        self.out.push_str(of[number]);
    }

    fn condition(&mut self, depth: usize) {
        match self.byte() % 12 {
            0..=2 if depth > 0 => {
                let operator = ["&&", "||", "&& !"][self.byte() % 3];
                self.between("(", depth, operator, Self::condition);
            }
            3 if depth > 0 => {
                self.out.push('(');
                self.condition(depth - 1);
                self.out.push_str(" ? ");
                self.condition(depth - 1);
                self.out.push_str(" : ");
                self.condition(depth - 1);
                self.out.push(')');
            }
            4 | 5 if depth > 0 => {
                let operator = ["==", "!=", "<", "<=", ">", ">="][self.byte() % 6];
                self.between("(", depth, operator, Self::number);
            }
            6 if depth > 0 => {
                let operator = ["==", "!=", "<", ">="][self.byte() % 4];
                self.between("(", depth, operator, Self::text);
            }
            7 if depth > 0 => {
                self.list(depth - 1);
                self.one(&[".all(x, ", ".exists(x, ", ".exists_one(x, "]);
                self.out.push_str("x ");
                self.one(&["== ", "> ", "<= "]);
                self.number(depth - 1);
                self.out.push(')');
            }
            8 => {
                self.text(depth.saturating_sub(1));
                self.one(&[".contains('e')", ".startsWith('/v')", ".endsWith('')", ".matches('[a-z]+|ä')"]);
            }
            9 if depth > 0 => self.between("(", depth, "in", Self::number_in),
            10 => self
                .out
                .push_str("event.provider.models.exists(m, size(m) > 1 && m in event.provider.models)"),
            _ => self.one(&["true", "false", "event.provider.stream", "has(event.http.method)"]),
        }
    }

    fn number_in(&mut self, depth: usize) {
        // The first operand is a number, the second a list.
        if self.out.ends_with("in ") { self.list(depth) } else { self.number(depth) }
    }

    fn number(&mut self, depth: usize) {
        match self.byte() % 7 {
            0..=2 if depth > 0 => {
                let operator = ["+", "-", "*", "/", "%"][self.byte() % 5];
                self.between("(", depth, operator, Self::number);
            }
            3 if depth > 0 => {
                self.out.push_str("size(");
                self.text(depth - 1);
                self.out.push(')');
            }
            4 if depth > 0 => {
                self.list(depth - 1);
                self.one(&["[0]", "[1]", "[-1]"]);
            }
            5 => self.one(&["event.destination.port", "event.payload.bytes", "event.spent.tokensToday"]),
            _ => self.one(&["0", "1", "-1", "7", "0x10", "9223372036854775807", "-9223372036854775808"]),
        }
    }

    fn text(&mut self, depth: usize) {
        match self.byte() % 4 {
            0 if depth > 0 => self.between("(", depth, "+", Self::text),
            1 => {
                let field = FIELDS[self.byte() % FIELDS.len()];
                self.out.push_str(field);
            }
            _ => self.one(&["''", "'ab'", r"'\u00e4\n'", "r'\\d'", "\"\"\"a\"b\"\"\"", "'/v1'"]),
        }
    }

    fn list(&mut self, depth: usize) {
        match self.byte() % 5 {
            0 if depth > 0 => self.between("(", depth, "+", Self::list),
            1 if depth > 0 => {
                self.list(depth - 1);
                self.one(&[".filter(y, y > 0)", ".map(y, y * 2)", ".map(y, y != 1, -y)"]);
            }
            _ => self.one(&["[]", "[1, 2, 3]", "[0]", "[-1, 1]"]),
        }
    }

    fn between(&mut self, open: &str, depth: usize, operator: &str, part: fn(&mut Self, usize)) {
        self.out.push_str(open);
        part(self, depth - 1);
        self.out.push_str(&format!(" {operator} "));
        part(self, depth - 1);
        self.out.push(')');
    }
}

/// The expression that an input stands for: its text, or one made of its bytes.
fn source(data: &[u8]) -> Option<String> {
    match data.split_first()? {
        (first, rest) if first % 4 == 0 => Some(str::from_utf8(rest).ok()?.to_owned()),
        (_, rest) => {
            let mut writer = Writer { bytes: rest, out: String::new() };
            writer.condition(5);
            Some(writer.out)
        }
    }
}

fuzz_target!(|data: &[u8]| {
    let Some(source) = source(data) else { return };
    let expression = match Expression::compile(&source, &mut Bounded) {
        Ok(expression) => expression,
        Err(mistakes) => {
            assert!(!mistakes.is_empty(), "a refusal says why");
            for mistake in &mistakes {
                assert!(
                    mistake.offset <= source.len().min(MOST_SOURCE) && !mistake.message.is_empty(),
                    "{source}"
                );
                mistake.describe(&source);
            }
            return;
        }
    };
    assert!(source.len() <= MOST_SOURCE && expression.cost() <= MOST_COST, "{source}");
    let facts = facts();
    let ours = expression.holds(&facts, MOST_COST);
    assert!(!matches!(ours, Err(Failure::Cost | Failure::Type)), "{source}: {ours:?}");
    let is_shared = || {
        let mut rest = source.clone();
        FIELDS.iter().for_each(|field| rest = rest.replace(field, ""));
        !rest.contains("event") && !OURS.iter().any(|name| source.contains(name))
    };
    if !is_shared() {
        return;
    }
    let mut context = Context::default();
    context.add_variable_from_value("event", event());
    let program = Program::compile(&source).unwrap_or_else(|error| panic!("{source}: {error}"));
    match (ours, program.execute(&context)) {
        (Ok(ours), Ok(Value::Bool(theirs))) => assert_eq!(ours, theirs, "{source}"),
        (Err(_), Err(_)) => {}
        (ours, theirs) => panic!("{source}: here {ours:?}, there {theirs:?}"),
    }
});
