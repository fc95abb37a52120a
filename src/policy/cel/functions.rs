//! Checks functions and macros: `size`, `matches`, `all`, `has` and the others.

use super::check::{Checker, Typed, constant, fields_of, poison};
use super::kind::Type;
use super::syntax::{Syntax, SyntaxKind};
use super::tree::{Comprehension, Function, Macro, Node, NodeKind, TimePart};
use super::value::Value;
use super::{moment, near};
use crate::policy::pattern::Pattern;
use crate::yaml::field;

/// Functions that stand alone.
const GLOBAL: &[&str] = &["size", "has", "timestamp", "duration", "hostIn"];
/// Functions that stand behind a value.
const METHODS: &[&str] = &[
    "size",
    "contains",
    "startsWith",
    "endsWith",
    "matches",
    "lowerAscii",
    "all",
    "exists",
    "exists_one",
    "filter",
    "map",
    "getHours",
    "getMinutes",
    "getDayOfWeek",
    "getDate",
    "getMonth",
];

impl Checker<'_> {
    pub(super) fn call(
        &mut self,
        offset: usize,
        target: Option<&Syntax>,
        (name, arguments): (&str, &[Syntax]),
    ) -> Typed {
        let Some(target) = target else { return self.global(offset, name, arguments) };
        match (name, arguments) {
            ("size", []) => self.size(offset, target),
            ("contains", [part]) => self.text_pair(offset, Function::Contains, [target, part]),
            ("startsWith", [part]) => self.text_pair(offset, Function::StartsWith, [target, part]),
            ("endsWith", [part]) => self.text_pair(offset, Function::EndsWith, [target, part]),
            ("lowerAscii", []) => {
                let text = self.expect(target, &Type::Text, "the value before `.lowerAscii()`");
                (Node { offset, what: NodeKind::Call(Function::LowerAscii, vec![text]) }, Type::Text)
            }
            ("matches", [pattern]) => self.matches(offset, target, pattern),
            ("all" | "exists" | "exists_one" | "filter" | "map", _) => {
                self.each(offset, target, (name, arguments))
            }
            (name, arguments) => match (time_part(name), arguments) {
                (Some(part), [] | [_]) => self.time_part(offset, part, (target, arguments.first())),
                _ => self.no_function(offset, (name, arguments.len()), METHODS, GLOBAL),
            },
        }
    }

    fn global(&mut self, offset: usize, name: &str, arguments: &[Syntax]) -> Typed {
        match (name, arguments) {
            ("size", [of]) => self.size(offset, of),
            ("has", [of]) => self.has(offset, of),
            ("timestamp", [text]) => self.constant_of(text, |text| {
                moment::timestamp(text).map(|time| (Value::Time(time), Type::Time))
            }),
            ("duration", [text]) => self.constant_of(text, |text| {
                moment::duration(text).map(|length| (Value::Duration(length), Type::Duration))
            }),
            ("hostIn", [host, patterns @ ..]) if !patterns.is_empty() => self.host_in(offset, host, patterns),
            (name, arguments) => self.no_function(offset, (name, arguments.len()), GLOBAL, METHODS),
        }
    }

    /// Says that there is no such function, or that it is called otherwise.
    fn no_function(
        &mut self,
        offset: usize,
        (name, count): (&str, usize),
        known: &[&str],
        elsewhere: &[&str],
    ) -> Typed {
        let message = if known.contains(&name) {
            format!("`{name}` is not called with {count} arguments; expected {}", usage(name))
        } else if elsewhere.contains(&name) {
            format!("`{name}` is called otherwise; expected {}", usage(name))
        } else {
            let names = known.iter().chain(elsewhere).copied();
            format!("there is no function {}{}", field::quoted(name), near::hint(name, names))
        };
        self.unknown(offset, message)
    }

    fn size(&mut self, offset: usize, of: &Syntax) -> Typed {
        let (node, found) = self.check(of);
        if !matches!(found, Type::Text | Type::List(_) | Type::Unknown) {
            self.say(of.offset, format!("`size` does not go with {found}; expected a string or a list"));
        }
        (Node { offset, what: NodeKind::Call(Function::Size, vec![node]) }, Type::Int)
    }

    fn text_pair(&mut self, offset: usize, function: Function, of: [&Syntax; 2]) -> Typed {
        let nodes = of.map(|of| self.expect(of, &Type::Text, "a text that is compared"));
        (Node { offset, what: NodeKind::Call(function, nodes.into()) }, Type::Bool)
    }

    fn matches(&mut self, offset: usize, target: &Syntax, pattern: &Syntax) -> Typed {
        let text = self.expect(target, &Type::Text, "the value before `.matches()`");
        let Some(source) = self.literal(pattern) else { return (poison(offset).0, Type::Bool) };
        match self.regexes.compile(source) {
            Ok(regex) => (Node { offset, what: NodeKind::Matches(Box::new(text), regex) }, Type::Bool),
            Err(error) => {
                self.say(pattern.offset, format!("{}: {error}", field::plainly(source)));
                (poison(offset).0, Type::Bool)
            }
        }
    }

    fn host_in(&mut self, offset: usize, host: &Syntax, written: &[Syntax]) -> Typed {
        let host = self.expect(host, &Type::Text, "the first argument of `hostIn`");
        let mut patterns = Vec::with_capacity(written.len());
        for pattern in written {
            let Some(source) = self.literal(pattern) else { continue };
            match Pattern::parse(source) {
                Ok(pattern) => patterns.push(pattern),
                Err(error) => self.say(pattern.offset, format!("{}: {error}", field::quoted(source))),
            }
        }
        (Node { offset, what: NodeKind::HostIn(Box::new(host), patterns) }, Type::Bool)
    }

    fn time_part(
        &mut self,
        offset: usize,
        part: TimePart,
        (time, zone): (&Syntax, Option<&Syntax>),
    ) -> Typed {
        let time = self.expect(time, &Type::Time, "the value whose hours or days are asked");
        let mut offset_of_zone = time::UtcOffset::UTC;
        if let Some((zone, text)) = zone.and_then(|zone| Some((zone, self.literal(zone)?))) {
            match moment::zone(text) {
                Ok(known) => offset_of_zone = known,
                Err(error) => self.say(zone.offset, format!("{} {error}", field::quoted(text))),
            }
        }
        (Node { offset, what: NodeKind::TimePart(part, offset_of_zone, Box::new(time)) }, Type::Int)
    }

    /// Reads a text that is made into something else when the policy is loaded.
    fn constant_of(
        &mut self,
        syntax: &Syntax,
        read: impl FnOnce(&str) -> Result<(Value<'static>, Type), String>,
    ) -> Typed {
        let Some(text) = self.literal(syntax) else { return poison(syntax.offset) };
        match read(text) {
            Ok((value, of)) => constant(syntax.offset, value, of),
            Err(error) => self.unknown(syntax.offset, format!("{} {error}", field::quoted(text))),
        }
    }

    /// The text of a string that is written out, or a mistake.
    fn literal<'s>(&mut self, syntax: &'s Syntax) -> Option<&'s str> {
        if let SyntaxKind::Text(text) = &syntax.what {
            return Some(text);
        }
        self.say(
            syntax.offset,
            "expected a string that is written out: it is read when the policy is loaded",
        );
        None
    }

    fn has(&mut self, offset: usize, of: &Syntax) -> Typed {
        let SyntaxKind::Select(..) = &of.what else {
            return self
                .unknown(of.offset, "`has` asks for a field; expected one as in has(event.provider.model)");
        };
        let (node, found) = self.check(of);
        let what = match (node.what, found) {
            (_, Type::Group(path)) => NodeKind::Has(fields_of(path)),
            (NodeKind::Field(field), _) => NodeKind::Has(vec![field]),
            (NodeKind::Member(of, field), _) => NodeKind::HasMember(of, field),
            // Told already.
            (other, _) => other,
        };
        (Node { offset, what }, Type::Bool)
    }

    /// `list.all(x, condition)` and its kin.
    fn each(&mut self, offset: usize, target: &Syntax, (name, arguments): (&str, &[Syntax])) -> Typed {
        let (list, of) = self.check(target);
        let of = if let Type::List(of) = of {
            *of
        } else if of == Type::Unknown {
            of
        } else {
            let message = format!("{of} has no elements; expected a list before `.{name}()`");
            return self.unknown(offset, message);
        };
        let (which, is_map) = match name {
            "all" => (Macro::All, false),
            "exists" => (Macro::Exists, false),
            "exists_one" => (Macro::ExistsOne, false),
            "filter" => (Macro::Filter, false),
            _ => (Macro::Map, true),
        };
        let (variable, bodies): (_, Vec<&Syntax>) = match arguments {
            [variable, body] => (variable, vec![body]),
            [variable, filter, body] if is_map => (variable, vec![body, filter]),
            _ => return self.no_function(offset, (name, arguments.len()), METHODS, GLOBAL),
        };
        let SyntaxKind::Name(variable_name) = &variable.what else {
            return self
                .unknown(variable.offset, format!("expected the name of a variable, as in {}", usage(name)));
        };
        let mut checked =
            self.within((variable.offset, variable_name.clone()), of.clone(), &bodies).into_iter();
        let Some((body, found)) = checked.next() else { return poison(offset) };
        let filter = checked.next();
        let mut condition = |(syntax, found): (Option<&&Syntax>, &Type)| {
            if let Some(syntax) = syntax.filter(|_| !found.fits(&Type::Bool)) {
                self.say(syntax.offset, format!("the condition is {found}; expected bool"));
            }
        };
        match &filter {
            Some((_, found)) => condition((bodies.get(1), found)),
            None if !is_map => condition((bodies.first(), &found)),
            None => {}
        }
        if is_map && matches!(found, Type::Group(_)) {
            return self.unknown(offset, format!("a list holds no {found}; expected one of its fields"));
        }
        let result = match which {
            Macro::All | Macro::Exists | Macro::ExistsOne => Type::Bool,
            Macro::Filter => Type::list(of),
            Macro::Map => Type::list(found),
        };
        let comprehension = Comprehension { list, filter: filter.map(|(node, _)| node), body };
        (Node { offset, what: NodeKind::Comprehension(which, Box::new(comprehension)) }, result)
    }
}

pub(super) fn time_part(name: &str) -> Option<TimePart> {
    match name {
        "getHours" => Some(TimePart::Hours),
        "getMinutes" => Some(TimePart::Minutes),
        "getDayOfWeek" => Some(TimePart::DayOfWeek),
        "getDate" => Some(TimePart::Date),
        "getMonth" => Some(TimePart::Month),
        _ => None,
    }
}

/// How a function is called.
fn usage(name: &str) -> String {
    match name {
        "has" => "has(event.provider.model)".to_owned(),
        "size" => "size(value)".to_owned(),
        "timestamp" => "timestamp(\"2026-11-23T09:00:00Z\")".to_owned(),
        "duration" => "duration(\"90s\")".to_owned(),
        "hostIn" => "hostIn(host, \"**.example.com\")".to_owned(),
        "lowerAscii" => "text.lowerAscii()".to_owned(),
        "contains" | "startsWith" | "endsWith" => format!("text.{name}(\"part\")"),
        "matches" => "text.matches(\"pattern\")".to_owned(),
        "map" => "list.map(x, value) or list.map(x, condition, value)".to_owned(),
        "all" | "exists" | "exists_one" | "filter" => format!("list.{name}(x, condition)"),
        _ => format!("event.time.{name}() or event.time.{name}(\"+01:00\")"),
    }
}
