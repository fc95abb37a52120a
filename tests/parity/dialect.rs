//! What every dialect of the matrix can do: ask, answer with a text and calls, and hear what came of that answer.

use bytes::Bytes;
use serde_json::Value;

/// How an answer is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    Whole,
    Streamed,
}

/// An answer of a model, whatever speaks it: a text, then calls.
pub(crate) struct Said {
    pub(crate) text: &'static str,
    pub(crate) calls: Vec<Called>,
}

/// One call; `input` is JSON as it is sent.
pub(crate) struct Called {
    pub(crate) id: String,
    pub(crate) namespace: Option<&'static str>,
    pub(crate) name: &'static str,
    pub(crate) input: &'static str,
}

/// What a client of the dialect reads in an answer.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Heard {
    pub(crate) text: String,
    pub(crate) calls: Vec<HeardCall>,
    /// Whether it says that it ended to have tools called; none where the dialect does not say.
    pub(crate) ends_in_calls: Option<bool>,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct HeardCall {
    pub(crate) id: String,
    /// With the namespace before a dot.
    pub(crate) name: String,
    pub(crate) input: Value,
}

/// One dialect over HTTP.
pub(crate) trait Dialect: Sync {
    /// The host and the path that are asked; none where it has no answers of this mode.
    fn place(&self, mode: Mode) -> Option<(&'static str, &'static str)>;

    /// A request that offers tools of these names.
    fn request(&self, tools: &[String], mode: Mode) -> Value;

    fn content_type(&self, mode: Mode) -> &'static str;

    /// The answer's body, in the pieces in which a model writes it.
    fn answer(&self, said: &Said, mode: Mode) -> Vec<Bytes>;

    /// Reads an answer's body as strictly as the strictest client.
    fn hear(&self, body: &[u8], mode: Mode) -> Heard;
}

impl Called {
    /// The name by which rules know it too, and by which dialects without namespaces call it.
    pub(crate) fn full_name(&self) -> String {
        self.namespace.map_or_else(|| self.name.to_owned(), |namespace| format!("{namespace}.{}", self.name))
    }

    /// The input in pieces, as models stream it.
    pub(crate) fn fragments(&self) -> Vec<String> {
        let characters: Vec<char> = self.input.chars().collect();
        characters.chunks(7).map(|piece| piece.iter().collect()).collect()
    }
}

impl HeardCall {
    /// A call by strings of an answer; panics where its input is no JSON.
    pub(crate) fn new(id: &Value, name: &Value, input: &str) -> Self {
        let input = serde_json::from_str(input).unwrap_or_else(|error| panic!("{error} in {input}"));
        Self { id: text(id), name: text(name), input }
    }

    /// The same in a namespace.
    pub(crate) fn within(mut self, namespace: &Value) -> Self {
        if let Some(namespace) = namespace.as_str() {
            self.name = format!("{namespace}.{}", self.name);
        }
        self
    }
}

/// A string of an answer; panics with what stands there where it is none.
#[track_caller]
pub(crate) fn text(value: &Value) -> String {
    value.as_str().unwrap_or_else(|| panic!("{value} where a string was expected")).to_owned()
}

/// The name and the data of each server-sent event; panics on a stream that is not in canonical form.
pub(crate) fn server_sent(body: &[u8], line_end: &str) -> Vec<(Option<String>, String)> {
    let stream = std::str::from_utf8(body).unwrap();
    let blank = line_end.repeat(2);
    let mut parts: Vec<&str> = stream.split(&blank).collect();
    assert_eq!(parts.pop(), Some(""), "the last event has its blank line: {stream}");
    let events = parts.into_iter().filter(|part| !part.starts_with(':')).map(|part| {
        let (name, data) = match part.split_once(line_end) {
            Some((name, data)) => (Some(name.strip_prefix("event: ").unwrap().to_owned()), data),
            None => (None, part),
        };
        (name, data.strip_prefix("data: ").unwrap_or_else(|| panic!("no data: {part}")).to_owned())
    });
    events.collect()
}

/// JSON text; panics with it where it is none.
#[track_caller]
pub(crate) fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error} in {text}"))
}
