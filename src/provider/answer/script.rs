//! Reads scripts of code mode (JavaScript) that are made of plain tool calls alone: `tools.NAME(literal)`.
//!
//! What is read is a small part of the language, in which a call cannot hide: literals, constants that hold one,
//! `await`, `Promise.all` over calls, and `text` or `image` over what came back. Anything else is no such script.

use serde_json::Value;

use super::literal::{Reader, Word};

/// The most calls of one script.
const MOST_CALLS: usize = 64;

/// A call in a script.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct ScriptCall {
    pub(super) name: String,
    /// A string is the input of a custom tool.
    pub(super) input: Value,
}

/// The calls of a script, in their order; none where it is more than plain calls.
pub(super) fn calls(script: &str) -> Option<Vec<ScriptCall>> {
    let mut parser = Parser { reader: Reader::new(script), calls: Vec::new() };
    while !parser.reader.is_at_end() {
        parser.statement()?;
    }
    Some(parser.calls)
}

struct Parser<'a> {
    reader: Reader<'a>,
    calls: Vec<ScriptCall>,
}

impl Parser<'_> {
    fn statement(&mut self) -> Option<()> {
        if self.reader.takes(b';') {
            return Some(());
        }
        match self.reader.word()? {
            "const" | "let" | "var" => self.declaration()?,
            "await" => self.awaited()?,
            "tools" => self.call()?,
            "text" | "image" => self.shown()?,
            _ => return None,
        }
        self.reader.ends_statement()
    }

    /// `name = …`, `[one, two] = …`
    fn declaration(&mut self) -> Option<()> {
        let name = if self.reader.takes(b'[') {
            while !self.reader.takes(b']') {
                let name = declared(self.reader.word()?)?;
                self.reader.declare(name, None)?;
                if !self.reader.takes(b',') && !self.reader.is_at(b']') {
                    return None;
                }
            }
            None
        } else {
            Some(declared(self.reader.word()?)?)
        };
        if !self.reader.takes(b'=') {
            return None;
        }
        let value = match self.reader.peek_word() {
            Word::Is("await") => {
                self.reader.word()?;
                self.awaited()?;
                None
            }
            Word::Is("tools") => {
                self.reader.word()?;
                self.call()?;
                None
            }
            Word::Is(_) | Word::None => Some(self.reader.value().filter(|_| name.is_some())?),
        };
        name.map_or(Some(()), |name| self.reader.declare(name, value))
    }

    fn awaited(&mut self) -> Option<()> {
        match self.reader.word()? {
            "tools" => self.call(),
            "Promise" => self.together(),
            _ => None,
        }
    }

    /// `.all([tools.one({}), tools.two({})])`
    fn together(&mut self) -> Option<()> {
        let opens = self.reader.takes(b'.') && self.reader.word()? == "all";
        if !opens || !self.reader.takes(b'(') || !self.reader.takes(b'[') {
            return None;
        }
        while !self.reader.takes(b']') {
            if self.reader.word()? != "tools" {
                return None;
            }
            self.call()?;
            if !self.reader.takes(b',') && !self.reader.is_at(b']') {
                return None;
            }
        }
        self.reader.takes(b')').then_some(())
    }

    /// `.NAME(literal)`
    fn call(&mut self) -> Option<()> {
        if !self.reader.takes(b'.') || self.calls.len() == MOST_CALLS {
            return None;
        }
        let name = self.reader.word()?.to_owned();
        if !self.reader.takes(b'(') {
            return None;
        }
        let input = if self.reader.is_at(b')') {
            Value::Object(serde_json::Map::new())
        } else {
            self.reader.value()?
        };
        self.reader.takes(b',');
        self.calls.push(ScriptCall { name, input });
        self.reader.takes(b')').then_some(())
    }

    /// `(result)`, `(result.output)`, `(JSON.stringify(result))`: what came back is shown to the model.
    fn shown(&mut self) -> Option<()> {
        if !self.reader.takes(b'(') {
            return None;
        }
        match self.reader.peek_word() {
            Word::Is("JSON") => {
                self.reader.word()?;
                let opens =
                    self.reader.takes(b'.') && self.reader.word()? == "stringify" && self.reader.takes(b'(');
                if !opens {
                    return None;
                }
                self.member()?;
                while self.reader.takes(b',') {
                    self.reader.value()?;
                }
                self.reader.takes(b')').then_some(())?;
            }
            Word::Is(_) => self.member()?,
            Word::None => self.reader.value().map(drop)?,
        }
        self.reader.takes(b')').then_some(())
    }

    /// `result.output`: reads what a tool gave back, and runs nothing.
    fn member(&mut self) -> Option<()> {
        declared(self.reader.word()?)?;
        while self.reader.takes(b'.') {
            self.reader.word()?;
        }
        Some(())
    }
}

/// A name of the script's own: not of what is looked at here.
fn declared(name: &str) -> Option<&str> {
    let reserved =
        ["tools", "text", "image", "await", "Promise", "JSON", "async", "function", "new", "class", "yield"];
    (!reserved.contains(&name)).then_some(name)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(script: &str) -> Option<Vec<(String, Value)>> {
        Some(calls(script)?.into_iter().map(|call| (call.name, call.input)).collect())
    }

    #[test]
    fn plain_calls_are_read() {
        let one = |input: Value| Some(vec![("exec_command".to_owned(), input)]);
        for (script, expected) in [
            ("", Some(vec![])),
            ("tools.exec_command({cmd: 'ls'})", one(json!({"cmd": "ls"}))),
            (
                "const r=await tools.exec_command({cmd:\"echo hi\"});\ntext(r);",
                one(json!({"cmd": "echo hi"})),
            ),
            (
                "// one\nawait tools.exec_command({\"cmd\": `ls\n-l`, n: -1.5e3, deep: [true, null,],},)",
                one(json!({"cmd": "ls\n-l", "n": -1500.0, "deep": [true, null]})),
            ),
            (
                "const c = 'ls'; text(1)\nawait tools.exec_command({cmd: c}) /* end */",
                one(json!({"cmd": "ls"})),
            ),
            (
                r#"tools.exec_command({cmd: "\x72m\u{20}-rf \u002f\
tmp 'x'\'"})"#,
                one(json!({"cmd": "rm -rf /tmp 'x''"})),
            ),
            ("tools.exec_command()", one(json!({}))),
        ] {
            assert_eq!(read(script), expected, "{script}");
        }
        let both = "const [a, b] = await Promise.all([tools.one({}), tools.two('x')]); text(JSON.stringify(a.b, null, 2))";
        assert_eq!(read(both), Some(vec![("one".to_owned(), json!({})), ("two".to_owned(), json!("x"))]));
    }

    #[test]
    fn whatever_else_a_script_does_it_is_no_list_of_calls() {
        for script in [
            "tools['exec_command']({cmd: 'ls'})",
            "const t = tools; t.exec_command({})",
            "const tools = {}",
            "tools.exec_command({cmd: `ls ${x}`})",
            "tools.exec_command({cmd: 'a' + 'b'})",
            "tools.exec_command({...x})",
            "tools.exec_command({[x]: 1})",
            "tools.exec_command({cmd})",
            "tools.exec_command({cmd: 'a', cmd: 'b'})",
            "tools.exec_command({__proto__: {cmd: 'b'}})",
            "tools.exec_command({cmd: x})",
            "tools.exec_command({cmd: 'a'}).then(f)",
            "tools.exec_command({cmd: 'a'}, 2)",
            "let c = 'a'; c = 'b'; tools.exec_command({cmd: c})",
            "let c = 'a'; tools.exec_command({cmd: c, d: c})\n[0].x",
            "var c = 'a'; var c = await tools.one({}); tools.exec_command({cmd: c})",
            "const [c] = await Promise.all([tools.one({})]); tools.exec_command({cmd: c})",
            "text(tools.exec_command({}))",
            "text(r[tools.x()])",
            "text(r.f())",
            "for (;;) tools.exec_command({})",
            "if (1) { tools.exec_command({}) }",
            "t\\u006fols.exec_command({})",
            "tools.exec_command({cmd: '\\101'})",
            "tools.exec_command({cmd: '\\ud800'})",
            "tools.exec_command({cmd: 'a\nb'})",
            "tools.exec_command({}) tools.other({})",
            "// \u{2028}evil()",
            "tools.exec_command({}",
            "tools.exec_command(function () {})",
            "eval('x')",
        ] {
            assert_eq!(read(script), None, "{script}");
        }
        assert_eq!(read(&"tools.a({});".repeat(65)), None);
        assert_eq!(read(&format!("tools.a({})", "[".repeat(100_000))), None);
    }
}
