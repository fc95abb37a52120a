//! Estimates how many tokens a request of Anthropic Messages has, for a model whose server does not count.

use std::collections::HashSet;
use std::sync::LazyLock;

use memchr::memmem::Finder;

use crate::wire::json::{Document, Kind, Value};

/// The tokens that a message costs beside its texts, and those of a picture.
const MESSAGE: u64 = 4;
const PICTURE: u64 = 1600;

/// What a request has of everything that costs tokens.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Size {
    /// Of texts, names, inputs and schemas, without the escapes of texts.
    pub bytes: u64,
    pub messages: u64,
    /// Pictures, and PDFs as if each were one.
    pub pictures: u64,
}

impl Size {
    /// Measures a body of Messages. What is in no message and no tool costs nothing; thinking neither, since most
    /// servers forget it.
    pub fn of(document: &Document<'_>) -> Self {
        let root = document.root();
        let member = |key: &str| root.get(key).ok().flatten();
        let mut measure = Measure::default();
        if let Some(system) = member("system") {
            measure.size.messages += 1;
            measure.content(system);
        }
        for message in member("messages").and_then(Value::items).into_iter().flatten() {
            measure.size.messages += 1;
            measure.members(message, &["content"]);
        }
        for tool in member("tools").and_then(Value::items).into_iter().flatten() {
            measure.tool(tool);
        }
        measure.size
    }

    /// How many tokens that is, at so many bytes a token.
    pub fn tokens(self, ratio: Ratio) -> u64 {
        // Bodies are bounded: the sum is far from what a float cannot tell apart.
        (self.bytes as f64 / ratio.bytes).ceil() as u64 + self.fixed()
    }

    fn fixed(self) -> u64 {
        self.messages.saturating_mul(MESSAGE).saturating_add(self.pictures.saturating_mul(PICTURE))
    }
}

/// How many bytes of a model's requests are a token, as its answers tell.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Ratio {
    bytes: f64,
    is_measured: bool,
}

/// The ratio of a model that never answered, and the least and the most that is believed.
const DEFAULT: f64 = 3.5;
const LEAST: f64 = 2.0;
const MOST: f64 = 6.0;

/// How far an answer moves the ratio towards its own.
const SHARE: f64 = 0.25;

impl Default for Ratio {
    fn default() -> Self {
        Self { bytes: DEFAULT, is_measured: false }
    }
}

impl Ratio {
    /// Bytes a token.
    pub fn bytes(self) -> f64 {
        self.bytes
    }

    /// Learns from an answer how many tokens a request had: the first sets the ratio, later ones move it by a quarter.
    /// A count that leaves nothing for the texts says nothing about them.
    pub fn learn(&mut self, size: Size, prompt_tokens: u64) {
        let tokens = prompt_tokens.saturating_sub(size.fixed());
        if tokens == 0 || size.bytes == 0 {
            return;
        }
        let told = (size.bytes as f64 / tokens as f64).clamp(LEAST, MOST);
        self.bytes = if self.is_measured { self.bytes + (told - self.bytes) * SHARE } else { told };
        self.is_measured = true;
    }
}

#[derive(Default)]
struct Measure<'d> {
    size: Size,
    /// The tools that a search found.
    found: HashSet<&'d str>,
}

impl<'d> Measure<'d> {
    /// Measures a text, or blocks.
    fn content(&mut self, content: Value<'d>) {
        match content.kind() {
            Kind::String => self.text(content),
            Kind::Array => content.items().into_iter().flatten().for_each(|block| self.block(block)),
            Kind::Object => self.block(content),
            Kind::Null | Kind::Bool | Kind::Number => {}
        }
    }

    fn block(&mut self, block: Value<'d>) {
        let kind = block.get("type").ok().flatten().and_then(Value::text).unwrap_or_default();
        match &*kind {
            "text" => return self.members(block, &["text"]),
            "thinking" | "redacted_thinking" => return,
            "image" => {
                self.size.pictures += 1;
                return;
            }
            "tool_reference" => {
                self.found.extend(block.get("tool_name").ok().flatten().map(Value::raw));
            }
            _ => {}
        }
        for entry in block.entries().into_iter().flatten() {
            match &*entry.key.text().unwrap_or_default() {
                "input" => self.size.bytes += entry.value.raw().len() as u64,
                "source" => self.source(entry.value),
                "tool" => self.change(entry.value),
                // Members that hold texts, or blocks with texts.
                "content" | "text" | "name" | "title" | "context" | "summary" | "stdout" | "stderr" => {
                    self.content(entry.value);
                }
                _ => {}
            }
        }
    }

    /// The source of a document, or of a search result, where it is a text.
    fn source(&mut self, source: Value<'d>) {
        let member = |key: &str| source.get(key).ok().flatten();
        let kind = member("type");
        if kind.is_some_and(|kind| kind.says("text")) {
            self.members(source, &["data"]);
        } else if let Some(content) = member("content") {
            self.content(content);
        } else if source.kind() == Kind::Object {
            self.size.pictures += 1;
        } else {
            self.content(source);
        }
    }

    /// A tool that the conversation adds, or names.
    fn change(&mut self, tool: Value<'d>) {
        let member = |key: &str| tool.get(key).ok().flatten();
        self.found.extend(member("name").map(Value::raw));
        if let Some(definition) = member("definition") {
            self.tool(definition);
        }
    }

    /// A tool; one whose loading is deferred counts once a search found it.
    fn tool(&mut self, tool: Value<'d>) {
        let member = |key: &str| tool.get(key).ok().flatten();
        let is_deferred = member("defer_loading").and_then(Value::as_bool) == Some(true);
        if is_deferred && !member("name").is_some_and(|name| self.found.contains(name.raw())) {
            return;
        }
        self.members(tool, &["name", "description"]);
        self.size.bytes += member("input_schema").map_or(0, |schema| schema.raw().len() as u64);
    }

    fn members(&mut self, object: Value<'d>, keys: &[&str]) {
        for entry in object.entries().into_iter().flatten() {
            if keys.iter().any(|key| entry.key.says(key)) {
                self.content(entry.value);
            }
        }
    }

    fn text(&mut self, text: Value<'d>) {
        self.size.bytes += decoded_length(text.raw());
    }
}

/// How an escape by number begins.
static NUMBER: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(br"\u"));

/// The length of a string without its quotes and escapes: exact but for a backslash, which counts nothing.
fn decoded_length(raw: &str) -> u64 {
    let bytes = raw.as_bytes();
    let escapes = memchr::memchr_iter(b'\\', bytes).count();
    if escapes == 0 {
        return bytes.len().saturating_sub(2) as u64;
    }
    // `\n` is one byte, `\u00e9` two, half of a pair two.
    let numbers = NUMBER.find_iter(bytes).count();
    bytes.len().saturating_sub(2 + escapes + 3 * numbers) as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::json::Limits;

    fn size(body: &str) -> Size {
        Size::of(&Document::parse(body.as_bytes(), Limits::default()).unwrap())
    }

    #[test]
    fn texts_names_inputs_and_schemas_are_counted_and_nothing_else() {
        let body = r#"{"model":"m","max_tokens":9,"metadata":{"user_id":"long and long"},
            "system":[{"type":"text","text":"12345","cache_control":{"type":"ephemeral"}}],
            "tools":[{"name":"ab","description":"cde","input_schema":{"a":1}},
                     {"name":"late","description":"deferred","input_schema":{},"defer_loading":true}],
            "messages":[{"role":"user","content":"a\nb"},
                        {"role":"assistant","content":[{"type":"thinking","thinking":"hm","signature":"s"},
                            {"type":"tool_use","id":"toolu_1","name":"ab","input":{"p":2}}]},
                        {"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_1",
                            "content":[{"type":"text","text":"xy"},
                                       {"type":"image","source":{"type":"base64","data":"AAAA"}}]}]}]}"#;
        assert_eq!(size(body), Size { bytes: 5 + 2 + 3 + 7 + 3 + 2 + 7 + 2, messages: 4, pictures: 1 });
        assert_eq!(size(body).tokens(Ratio::default()), 9 + 4 * 4 + 1600);
    }

    #[test]
    fn a_deferred_tool_counts_once_it_was_found() {
        let found = |name: &str| {
            size(&format!(
                r#"{{"tools":[{{"name":"x","input_schema":{{}},"defer_loading":true}}],"messages":[{{"role":"user",
                "content":[{{"type":"tool_reference","tool_name":"{name}"}}]}}]}}"#
            ))
        };
        assert_eq!((found("x").bytes, found("y").bytes), (3, 0));
    }

    #[test]
    fn the_first_answer_sets_the_ratio_and_later_ones_move_it_by_a_quarter() {
        let size = Size { bytes: 4000, messages: 10, pictures: 0 };
        let mut ratio = Ratio::default();
        ratio.learn(size, 1040);
        assert_eq!(ratio.bytes(), 4.0);
        assert_eq!(size.tokens(ratio), 1040, "the same body counts as it was told");
        ratio.learn(size, 840);
        assert_eq!(ratio.bytes(), 4.25);
        ratio.learn(size, 40);
        assert_eq!(ratio.bytes(), 4.25, "no tokens are left for texts");
        ratio.learn(size, u64::MAX);
        assert_eq!(ratio.bytes(), 4.25 - 2.25 / 4.0);
    }

    #[test]
    fn the_ratio_stays_within_two_and_six() {
        let size = Size { bytes: 1000, messages: 0, pictures: 0 };
        let (mut least, mut most) = (Ratio::default(), Ratio::default());
        least.learn(size, 100_000);
        most.learn(size, 1);
        assert_eq!((least.bytes(), most.bytes()), (2.0, 6.0));
    }

    #[test]
    fn escapes_are_not_counted() {
        for (raw, length) in
            [(r#""""#, 0), (r#""ab""#, 2), (r#""a\n\"b""#, 4), (r#""\u00e9\ud83d\ude00""#, 6)]
        {
            assert_eq!(decoded_length(raw), length, "{raw}");
        }
    }
}
