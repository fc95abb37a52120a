//! Writes a drafted request as JSON, its keys always in the same order.

use super::ChatTerms;
use super::draft::{Call, Choice, Draft, Message, Part, Role, Tool};
use crate::call::turn::prompt::{Image, Pdf, ToolSchema};
use crate::call::turn::{Text, escape};
use crate::provider::openai_chat::transform::schema::{SchemaRules, write_schema};
use crate::wire::json::{Copies, Document, Value};

/// Returns the body, and where in it the agent's own strings stand.
pub(super) fn body<'d>(
    draft: &Draft<'d>,
    terms: &ChatTerms<'_>,
    params: Option<&Document<'_>>,
) -> (Vec<u8>, Copies<'d>) {
    let rules = SchemaRules::of(terms.transforms);
    let (out, copies) = (String::with_capacity(estimate(draft)), Copies::default());
    let mut writer = Writer { out, copies, draft, rules, keys: Vec::new() };
    writer.out.push('{');
    writer.key("model");
    writer.string(terms.model);
    writer.key("messages");
    writer.list(&draft.messages, Writer::message);
    writer.tools();
    writer.parameters();
    for entry in params.and_then(|params| params.root().entries()).into_iter().flatten() {
        writer.param(entry.key, entry.value);
    }
    writer.out.push('}');
    (writer.out.into_bytes(), writer.copies)
}

/// About how long the body becomes.
fn estimate(draft: &Draft<'_>) -> usize {
    let part = |part: &Part<'_>| match part {
        Part::Text { text, .. } | Part::ResultOf(text) => text.escaped().len() + 40,
        Part::Image(Image::Data { data, .. }) => data.escaped().len() + 80,
        Part::Image(Image::Url(url)) => url.escaped().len() + 80,
        Part::File(pdf) => pdf.data.escaped().len() + 120,
    };
    let message = |message: &Message<'_>| {
        let calls = message.calls.iter().map(|call| call.input.len() * 9 / 8 + 160);
        message.parts.iter().map(part).chain(calls).sum::<usize>() + 80
    };
    let tool = |tool: &Tool<'_>| {
        let schema = match tool.schema {
            ToolSchema::Given(schema) => schema.raw().len(),
            ToolSchema::Known(schema) => schema.len(),
        };
        schema + tool.description.as_ref().map_or(0, |text| text.escaped().len()) + 160
    };
    draft.messages.iter().map(message).chain(draft.tools.iter().map(tool)).sum::<usize>() + 1024
}

struct Writer<'r, 'd> {
    out: String,
    copies: Copies<'d>,
    draft: &'r Draft<'d>,
    rules: SchemaRules,
    /// The keys of the body so far.
    keys: Vec<&'static str>,
}

impl<'d> Writer<'_, 'd> {
    /// Begins a member of the body.
    fn key(&mut self, key: &'static str) {
        if !self.keys.is_empty() {
            self.out.push(',');
        }
        self.keys.push(key);
        self.member(key);
    }

    fn member(&mut self, key: &str) {
        self.out.push('"');
        self.out.push_str(key);
        self.out.push_str("\":");
    }

    /// Writes a text that is not escaped yet.
    fn string(&mut self, text: &str) {
        self.out.push('"');
        escape(text, &mut self.out);
        self.out.push('"');
    }

    fn text(&mut self, text: &Text<'d>) {
        self.copied(text);
        self.quoted(&[text.escaped()]);
    }

    /// The agent's own string is written next, with its quotes.
    fn copied(&mut self, text: &Text<'d>) {
        if let Some(string) = text.origin() {
            self.copies.add(self.out.len(), string);
        }
    }

    /// Writes pieces of an escaped text as one string.
    fn quoted(&mut self, pieces: &[&str]) {
        self.out.push('"');
        pieces.iter().for_each(|piece| self.out.push_str(piece));
        self.out.push('"');
    }

    fn list<T>(&mut self, items: &[T], mut write: impl FnMut(&mut Self, &T)) {
        self.out.push('[');
        for (number, item) in items.iter().enumerate() {
            if number > 0 {
                self.out.push(',');
            }
            write(self, item);
        }
        self.out.push(']');
    }

    fn message(&mut self, message: &Message<'d>) {
        self.out.push_str("{\"role\":\"");
        self.out.push_str(message.role.as_str());
        self.out.push('"');
        if let Some(call) = &message.call {
            self.out.push_str(",\"tool_call_id\":");
            self.text(call);
        }
        self.out.push_str(",\"content\":");
        self.content(message);
        if let Some(reasoning) = &message.reasoning {
            self.out.push_str(",\"reasoning_content\":");
            self.text(reasoning);
        }
        if !message.calls.is_empty() {
            self.out.push_str(",\"tool_calls\":");
            self.list(&message.calls, Self::call);
        }
        self.out.push('}');
    }

    fn content(&mut self, message: &Message<'d>) {
        if message.parts.is_empty() && message.role == Role::Assistant {
            return self.out.push_str("null");
        }
        if message.parts.iter().all(|part| self.is_simple(part)) {
            return self.run(&message.parts, message.role);
        }
        // Texts side by side are one part, as they would be one string.
        let both_simple = |left: &Part<'d>, right: &Part<'d>| self.is_simple(left) && self.is_simple(right);
        let runs: Vec<&[Part<'d>]> = message.parts.chunk_by(both_simple).collect();
        self.list(&runs, |writer, run| writer.parts(run, message.role));
    }

    /// Whether a part is a text with nothing beside it.
    fn is_simple(&self, part: &Part<'_>) -> bool {
        match part {
            Part::Text { cache, .. } => cache.is_none() || !self.draft.keeps_cache,
            Part::ResultOf(_) => true,
            Part::Image(_) | Part::File(_) => false,
        }
    }

    /// Writes the texts of simple parts as one string, with what stands between them.
    fn run(&mut self, parts: &[Part<'d>], role: Role) {
        if let [Part::Text { text, .. }] = parts {
            return self.text(text);
        }
        self.out.push('"');
        for (number, part) in parts.iter().enumerate() {
            if number > 0 {
                self.out.push_str(role.separator());
            }
            match part {
                Part::Text { text, .. } => self.out.push_str(text.escaped()),
                Part::ResultOf(call) => {
                    self.out.push_str("[of tool result ");
                    self.out.push_str(call.escaped());
                    self.out.push(']');
                }
                Part::Image(_) | Part::File(_) => {}
            }
        }
        self.out.push('"');
    }

    /// Writes simple parts as one, or a single part that is not simple.
    fn parts(&mut self, parts: &[Part<'d>], role: Role) {
        match parts {
            [Part::Image(image)] => self.image(image),
            [Part::File(pdf)] => self.file(pdf),
            texts => {
                self.out.push_str("{\"type\":\"text\",\"text\":");
                self.run(texts, role);
                if let [Part::Text { cache: Some(cache), .. }] = texts
                    && self.draft.keeps_cache
                {
                    self.out.push_str(",\"cache_control\":");
                    self.out.push_str(cache);
                }
                self.out.push('}');
            }
        }
    }

    fn image(&mut self, image: &Image<'d>) {
        self.out.push_str("{\"type\":\"image_url\",\"image_url\":{\"url\":");
        match image {
            Image::Data { media_type, data } => {
                self.quoted(&["data:", media_type.escaped(), ";base64,", data.escaped()]);
            }
            Image::Url(url) => self.text(url),
        }
        self.out.push_str("}}");
    }

    fn file(&mut self, pdf: &Pdf<'_>) {
        let title = pdf.title.as_ref().map_or("document", Text::escaped);
        // Servers tell the type by the name's ending.
        let is_named =
            title.get(title.len().saturating_sub(4)..).is_some_and(|end| end.eq_ignore_ascii_case(".pdf"));
        self.out.push_str("{\"type\":\"file\",\"file\":{\"filename\":");
        self.quoted(&[title, if is_named { "" } else { ".pdf" }]);
        self.out.push_str(",\"file_data\":");
        self.quoted(&["data:application/pdf;base64,", pdf.data.escaped()]);
        self.out.push_str("}}");
    }

    fn call(&mut self, call: &Call<'d>) {
        self.out.push_str("{\"id\":");
        self.text(&call.id);
        self.out.push_str(",\"type\":\"function\",\"function\":{\"name\":");
        self.string(&call.name);
        self.out.push_str(",\"arguments\":");
        self.string(call.input);
        self.out.push('}');
        if self.draft.skips_signatures {
            self.out.push_str(
                r#","extra_content":{"google":{"thought_signature":"skip_thought_signature_validator"}}"#,
            );
        }
        self.out.push('}');
    }

    fn tools(&mut self) {
        let draft = self.draft;
        if draft.tools.is_empty() {
            return;
        }
        self.key("tools");
        self.list(&draft.tools, Self::tool);
        match &draft.choice {
            None => {}
            Some(Choice::Auto) => self.plain("tool_choice", "\"auto\""),
            Some(Choice::Required) => self.plain("tool_choice", "\"required\""),
            Some(Choice::None) => self.plain("tool_choice", "\"none\""),
            Some(Choice::Function(name)) => {
                self.key("tool_choice");
                self.out.push_str("{\"type\":\"function\",\"function\":{\"name\":");
                self.string(name);
                self.out.push_str("}}");
            }
        }
        if draft.one_call {
            self.plain("parallel_tool_calls", "false");
        }
    }

    fn tool(&mut self, tool: &Tool<'d>) {
        self.out.push_str("{\"type\":\"function\",\"function\":{\"name\":");
        self.string(&tool.name);
        if let Some(description) = &tool.description {
            self.out.push_str(",\"description\":");
            self.text(description);
        }
        self.out.push_str(",\"parameters\":");
        match tool.schema {
            ToolSchema::Given(schema) => write_schema(schema, self.rules, &mut self.out),
            ToolSchema::Known(schema) => self.out.push_str(schema),
        }
        self.out.push_str("}}");
    }

    /// Writes what follows the tools.
    fn parameters(&mut self) {
        let draft = self.draft;
        if let Some(limit) = &draft.limit {
            self.plain(
                if limit.of_completion { "max_completion_tokens" } else { "max_tokens" },
                &limit.tokens,
            );
        }
        for (key, number) in [("temperature", draft.temperature), ("top_p", draft.top_p)] {
            if let Some(number) = number {
                self.plain(key, number);
            }
        }
        if let Some(stop) = draft.stop {
            self.plain("stop", stop.raw());
        }
        if let Some(stream) = draft.stream {
            self.plain("stream", if stream { "true" } else { "false" });
        }
        if draft.asks_for_usage {
            self.plain("stream_options", r#"{"include_usage":true}"#);
        }
        if let Some(schema) = draft.schema {
            self.key("response_format");
            self.out.push_str(r#"{"type":"json_schema","json_schema":{"name":"answer","schema":"#);
            write_schema(schema, self.rules, &mut self.out);
            self.out.push_str("}}");
        }
        if let Some(effort) = draft.effort {
            self.key("reasoning_effort");
            self.string(effort);
        }
    }

    /// Writes a member of the body whose value is JSON already.
    fn plain(&mut self, key: &'static str, json: &str) {
        self.key(key);
        self.out.push_str(json);
    }

    fn param(&mut self, key: Value<'_>, value: Value<'_>) {
        if !self.keys.iter().any(|known| key.says(known)) {
            self.out.push(',');
            self.out.push_str(key.raw());
            self.out.push(':');
            self.out.push_str(value.raw());
        }
    }
}
