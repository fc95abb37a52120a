//! `enhancetool`: arguments of calls that are no JSON object are mended.

// The side of answers.

use crate::wire::json::{Document, Kind, Limits};

/// How many arrays and objects may stand in one another.
const DEPTH: usize = 128;

/// Mends arguments that are complete and no JSON object: text around the braces, trailing commas, single quotes, bare
/// keys, `True`, `False`, `None`, raw control characters in strings, open strings and brackets. `None` where these
/// arguments are an object, where that does not make one of them, or where nothing would be left: `{}` is another call.
pub(in crate::provider::openai_chat) fn mend(arguments: &str) -> Option<String> {
    if is_object(arguments) {
        return None;
    }
    let rest = &arguments[arguments.find('{')?..];
    let mut mender = Mender { rest, mended: String::with_capacity(rest.len() + 8) };
    mender.object(0)?;
    (mender.mended != "{}" && is_object(&mender.mended)).then_some(mender.mended)
}

/// Whether a text is one JSON object, with white space around it.
pub(in crate::provider::openai_chat) fn is_object(text: &str) -> bool {
    let document = Document::parse(text.as_bytes(), Limits::default());
    document.is_ok_and(|document| document.root().kind() == Kind::Object)
}

/// Reads JSON with mistakes, and writes it without them. Its methods return `None` at a mistake that it does not know.
struct Mender<'t> {
    rest: &'t str,
    mended: String,
}

impl Mender<'_> {
    fn value(&mut self, depth: usize) -> Option<()> {
        match self.rest.chars().next()? {
            '{' => self.object(depth),
            '[' => self.array(depth),
            quote @ ('"' | '\'') => self.string(quote),
            '-' | '0'..='9' => self.number(),
            _ => self.word(),
        }
    }

    fn object(&mut self, depth: usize) -> Option<()> {
        self.open(depth, '{')?;
        let mut is_first = true;
        while self.is_in(is_first)? {
            let before = self.mended.len();
            if !is_first {
                self.mended.push(',');
            }
            self.key()?;
            self.skip_blanks();
            if !self.rest.is_empty() {
                self.rest = self.rest.strip_prefix(':')?;
                self.mended.push(':');
                self.skip_blanks();
            }
            if self.rest.is_empty() {
                // The arguments end before the value: an entry without one is left out.
                self.mended.truncate(before);
                break;
            }
            self.value(depth + 1)?;
            is_first = false;
        }
        self.close('}');
        Some(())
    }

    fn array(&mut self, depth: usize) -> Option<()> {
        self.open(depth, '[')?;
        let mut is_first = true;
        while self.is_in(is_first)? {
            if !is_first {
                self.mended.push(',');
            }
            self.value(depth + 1)?;
            is_first = false;
        }
        self.close(']');
        Some(())
    }

    fn open(&mut self, depth: usize, bracket: char) -> Option<()> {
        self.rest = self.rest.strip_prefix(bracket).filter(|_| depth < DEPTH)?;
        self.mended.push(bracket);
        Some(())
    }

    /// Writes the closing bracket, which may be missing: another one closes what is around.
    fn close(&mut self, bracket: char) {
        self.rest = self.rest.strip_prefix(bracket).unwrap_or(self.rest);
        self.mended.push(bracket);
    }

    /// Whether another item or entry follows; reads the comma before it, and one behind the last.
    fn is_in(&mut self, is_first: bool) -> Option<bool> {
        self.skip_blanks();
        if !is_first && !self.is_at_end() {
            self.rest = self.rest.strip_prefix(',')?;
            self.skip_blanks();
        }
        Some(!self.is_at_end())
    }

    fn is_at_end(&self) -> bool {
        self.rest.is_empty() || self.rest.starts_with(['}', ']'])
    }

    fn key(&mut self) -> Option<()> {
        if let Some(quote @ ('"' | '\'')) = self.rest.chars().next() {
            return self.string(quote);
        }
        let is_of_key = |character: char| character.is_ascii_alphanumeric() || "_$-".contains(character);
        let length = self.rest.find(|character| !is_of_key(character)).unwrap_or(self.rest.len());
        let (key, rest) = self.rest.split_at(length);
        if key.is_empty() {
            return None;
        }
        self.rest = rest;
        self.mended.extend(['"', '"']);
        self.mended.insert_str(self.mended.len() - 1, key);
        Some(())
    }

    fn string(&mut self, quote: char) -> Option<()> {
        self.rest = self.rest.strip_prefix(quote)?;
        self.mended.push('"');
        while let Some(character) = self.rest.chars().next() {
            self.rest = &self.rest[character.len_utf8()..];
            match character {
                _ if character == quote => break,
                '\\' => self.escape(),
                '"' => self.mended.push_str(r#"\""#),
                '\n' => self.mended.push_str(r"\n"),
                '\r' => self.mended.push_str(r"\r"),
                '\t' => self.mended.push_str(r"\t"),
                '\0'..'\x20' => self.mended.push_str(&format!(r"\u{:04x}", u32::from(character))),
                _ => self.mended.push(character),
            }
        }
        self.mended.push('"');
        Some(())
    }

    /// Copies the escape behind a backslash; one that the arguments' end cuts goes.
    fn escape(&mut self) {
        let Some(kind) = self.rest.chars().next() else { return };
        let length = if kind == 'u' { 5 } else { kind.len_utf8() };
        let Some((escape, rest)) = self.rest.split_at_checked(length) else {
            self.rest = "";
            return;
        };
        self.rest = rest;
        if kind != '\'' {
            self.mended.push('\\');
        }
        self.mended.push_str(escape);
    }

    fn number(&mut self) -> Option<()> {
        let is_of_number = |character: char| character.is_ascii_digit() || "+-.eE".contains(character);
        let length = self.rest.find(|character| !is_of_number(character)).unwrap_or(self.rest.len());
        let (number, rest) = self.rest.split_at(length);
        (self.rest, _) = (rest, self.mended.push_str(number));
        Some(())
    }

    fn word(&mut self) -> Option<()> {
        const WORDS: [(&str, &str); 6] = [
            ("true", "true"),
            ("false", "false"),
            ("null", "null"),
            ("True", "true"),
            ("False", "false"),
            ("None", "null"),
        ];
        let length =
            self.rest.find(|character: char| !character.is_alphanumeric()).unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at(length);
        let (_, mended) = WORDS.iter().find(|(written, _)| *written == word)?;
        self.rest = rest;
        self.mended.push_str(mended);
        Some(())
    }

    fn skip_blanks(&mut self) {
        self.rest = self.rest.trim_start();
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_models_get_wrong_is_mended() {
        let cases = [
            (r"{'p':'/a',n:[1,],", r#"{"p":"/a","n":[1]}"#),
            ("Here you are:\n```json\n{\"a\": 1}\n```", r#"{"a":1}"#),
            (r#"{"a":1,}"#, r#"{"a":1}"#),
            (r#"{"a":True,"b":False,"c":None}"#, r#"{"a":true,"b":false,"c":null}"#),
            ("{\"a\":\"x\ny\tz\u{1}\"}", r#"{"a":"x\ny\tz\u0001"}"#),
            (r#"{"a":"open"#, r#"{"a":"open"}"#),
            (r#"{"a":"open\"#, r#"{"a":"open"}"#),
            (r#"{"a":"open\u00"#, r#"{"a":"open"}"#),
            (r#"{"a":{"b":[1,{"c":2"#, r#"{"a":{"b":[1,{"c":2}]}}"#),
            (r#"{"a":[1,2}"#, r#"{"a":[1,2]}"#),
            (r#"{"a":1,"b":"#, r#"{"a":1}"#),
            (r#"{"a":1,"b"#, r#"{"a":1}"#),
            (r#"{'say':'a "word"','it\'s':"don't"}"#, r#"{"say":"a \"word\"","it's":"don't"}"#),
            (r#"{"a":-1.5e3} and more {"b":2}"#, r#"{"a":-1.5e3}"#),
            (r#"{my-key:1,$x:2}"#, r#"{"my-key":1,"$x":2}"#),
        ];
        for (arguments, expected) in cases {
            assert_eq!(mend(arguments).as_deref(), Some(expected), "{arguments}");
        }
    }

    #[test]
    fn what_is_right_or_cannot_be_mended_is_left() {
        for arguments in [
            r#"{"a":1}"#,
            "{} ",
            "",
            "no braces",
            "[1]",
            "{",
            "{,}",
            r#"{"a":"#,
            r#"{"a":1 "b":2}"#,
            r#"{"a":word}"#,
            r"{'it's':1}",
            r#"{"a":1,,"b":2}"#,
            r#"{"a":1.}"#,
            r#"{"a" 1}"#,
            r#"{"a":"\x"}"#,
        ] {
            assert_eq!(mend(arguments), None, "{arguments}");
        }
    }

    #[test]
    fn deep_nesting_is_left() {
        assert_eq!(mend(&"{a:".repeat(100_000)), None);
    }

    proptest! {
        #[test]
        fn whatever_comes_the_result_is_an_object(arguments in r#"[{}\[\]"',:a-c0-2 \\un\n\x00]{0,40}"#) {
            if let Some(mended) = mend(&arguments) {
                prop_assert!(is_object(&mended));
                prop_assert_eq!(mend(&mended), None);
            }
        }
    }
}
