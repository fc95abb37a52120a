//! A whole item of a request that is passed over holds nothing, in every dialect: with the memory the same is found and replaced
//! as without.

use std::sync::Arc;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::CleanTexts;
use super::testing::{Gateway, TEXTS};
use crate::call::Dialect;
use crate::call::withheld::PLACEHOLDER;

/// What calls read; of a repeated id the last call counts.
const PATHS: [&str; 4] = ["a", "/w/.env", "/home/a/.ssh/id_rsa", "b'c"];

/// The beginning of a picture.
const PNG: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR42mNk";

/// Policies about files by their names.
const SPECS: [&str; 3] = [
    "{}",
    "{dataLoss: {action: Redact, detectors: [CredentialFiles, ProtectedPaths]}}",
    "{dataLoss: {action: Deny, detectors: [Secrets, CredentialFiles]}}",
];

const DIALECTS: [Dialect; 5] =
    [Dialect::Anthropic, Dialect::OpenAIChat, Dialect::OpenAIResponses, Dialect::Gemini, Dialect::Bedrock];

/// An item of a conversation by its kind, a text, and a number that chooses among few: an id, a path.
type Item = (usize, usize, usize);

/// What an item says, whatever its dialect.
enum Said {
    User(String),
    Model(String),
    Call(&'static str, Value),
    Result(String),
    Picture,
}

fn said((kind, text, number): Item) -> Said {
    let (text, secret) = (TEXTS[text], ["glpat-Zx3kQ9vB7mW2", "tR5yU8pL1"].concat());
    match kind {
        0 => Said::User(text.to_owned()),
        1 => Said::Call("Read", json!({"file_path": PATHS[number], "note": text})),
        2 => Said::Result(text.to_owned()),
        3 => Said::User(secret),
        4 => Said::User(format!("{PLACEHOLDER}gitlab-token] {text}")),
        5 => Said::Picture,
        6 => Said::Model(format!("{text} {secret}")),
        _ => Said::Call("Bash", json!({"command": text})),
    }
}

/// An item as a dialect writes it. In some the input of a call is a document of its own.
fn written(dialect: Dialect, item: Item) -> Value {
    let (id, said) = (format!("t{}", item.2 % 3), said(item));
    match dialect {
        Dialect::Anthropic => anthropic(&id, said),
        Dialect::OpenAIChat => chat(&id, said),
        Dialect::OpenAIResponses => responses(&id, said),
        Dialect::Gemini => gemini(&id, said),
        Dialect::Bedrock => bedrock(&id, said),
    }
}

fn anthropic(id: &str, said: Said) -> Value {
    let (role, block) = match said {
        Said::User(text) => ("user", json!({"type": "text", "text": text})),
        Said::Model(text) => ("assistant", json!({"type": "text", "text": text})),
        Said::Call(name, input) => {
            ("assistant", json!({"type": "tool_use", "id": id, "name": name, "input": input}))
        }
        Said::Result(text) => ("user", json!({"type": "tool_result", "tool_use_id": id, "content": text})),
        Said::Picture => {
            let source = json!({"type": "base64", "media_type": "image/png", "data": PNG});
            ("user", json!({"type": "image", "source": source}))
        }
    };
    json!({"role": role, "content": [block]})
}

fn chat(id: &str, said: Said) -> Value {
    match said {
        Said::User(text) => json!({"role": "user", "name": "Zx3", "content": text}),
        Said::Model(text) => json!({"role": "assistant", "content": text}),
        Said::Call(name, input) => {
            let function = json!({"name": name, "arguments": input.to_string()});
            json!({"role": "assistant", "tool_calls": [{"id": id, "type": "function", "function": function}]})
        }
        Said::Result(text) => json!({"role": "tool", "tool_call_id": id, "content": text}),
        Said::Picture => {
            let url = json!({"url": format!("data:image/png;base64,{PNG}")});
            json!({"role": "user", "content": [{"type": "image_url", "image_url": url}]})
        }
    }
}

fn responses(id: &str, said: Said) -> Value {
    match said {
        Said::User(text) => json!({"role": "user", "content": [{"type": "input_text", "text": text}]}),
        Said::Model(text) => {
            json!({"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": text}]})
        }
        Said::Call(name, input) => {
            json!({"type": "function_call", "call_id": id, "name": name, "arguments": input.to_string()})
        }
        Said::Result(text) => json!({"type": "function_call_output", "call_id": id, "output": text}),
        Said::Picture => {
            json!({"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": PNG})
        }
    }
}

fn gemini(id: &str, said: Said) -> Value {
    let (role, part) = match said {
        Said::User(text) => ("user", json!({"text": text})),
        Said::Model(text) => ("model", json!({"text": text})),
        Said::Call(name, input) => {
            ("model", json!({"functionCall": {"id": id, "name": name, "args": input}}))
        }
        Said::Result(text) => {
            let response = json!({"output": text});
            ("user", json!({"functionResponse": {"id": id, "name": "Read", "response": response}}))
        }
        Said::Picture => ("user", json!({"inlineData": {"mimeType": "image/png", "data": PNG}})),
    };
    json!({"role": role, "parts": [part]})
}

fn bedrock(id: &str, said: Said) -> Value {
    let (role, block) = match said {
        Said::User(text) => ("user", json!({"text": text})),
        Said::Model(text) => ("assistant", json!({"text": text})),
        Said::Call(name, input) => {
            ("assistant", json!({"toolUse": {"toolUseId": id, "name": name, "input": input}}))
        }
        Said::Result(text) => ("user", json!({"toolResult": {"toolUseId": id, "content": [{"text": text}]}})),
        Said::Picture => ("user", json!({"image": {"format": "png", "source": {"bytes": PNG}}})),
    };
    json!({"role": role, "content": [block]})
}

/// A request with these items, which offers a tool that is described by a text and, where `is_searching`, a hosted one.
fn request(dialect: Dialect, items: &[Item], description: &str, is_searching: bool) -> String {
    let items: Vec<_> = items.iter().map(|item| written(dialect, *item)).collect();
    let schema = json!({"type": "object"});
    let function = json!({"name": "Read", "description": description, "parameters": schema});
    let (hosted, tool) = match dialect {
        Dialect::Anthropic => (
            json!({"type": "web_search_20250305", "name": "web_search"}),
            json!({"name": "Read", "description": description, "input_schema": schema}),
        ),
        Dialect::OpenAIChat => {
            (json!({"type": "web_search"}), json!({"type": "function", "function": function}))
        }
        Dialect::OpenAIResponses => (
            json!({"type": "web_search"}),
            json!({"type": "function", "name": "Read", "description": description, "parameters": schema}),
        ),
        Dialect::Gemini => (json!({"googleSearch": {}}), json!({"functionDeclarations": [function]})),
        Dialect::Bedrock => {
            let spec = json!({"name": "Read", "description": description, "inputSchema": {"json": schema}});
            (json!({"systemTool": {"name": "nova_grounding"}}), json!({"toolSpec": spec}))
        }
    };
    let tools: Vec<_> = [hosted, tool].into_iter().skip(usize::from(!is_searching)).collect();
    match dialect {
        Dialect::Anthropic | Dialect::OpenAIChat => {
            json!({"model": "m", "tools": tools, "max_tokens": 1, "messages": items, "user": "Zx3"})
        }
        Dialect::OpenAIResponses => {
            json!({"model": "m", "tools": tools, "store": false, "input": items, "user": "Zx3"})
        }
        Dialect::Gemini => json!({"tools": tools, "contents": items, "labels": {"user": "Zx3"}}),
        Dialect::Bedrock => json!({"toolConfig": {"tools": tools}, "messages": items}),
    }
    .to_string()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn an_item_that_is_passed_over_holds_nothing_whatever_its_calls_and_neighbours_are(
        spec in prop::sample::select(&SPECS),
        dialects in prop::collection::vec(prop::sample::select(&DIALECTS), 1..3),
        conversations in prop::collection::vec(
            (
                any::<[bool; 2]>(),
                prop::collection::vec((0..8_usize, 0..TEXTS.len(), 0..PATHS.len()), 1..7),
                0..3_usize,
            ),
            1..6,
        ),
    ) {
        let (mut gateway, clean) = (Gateway::under(spec), Arc::new(CleanTexts::default()));
        for ([is_vouched, is_searching], items, tool) in &conversations {
            gateway.is_vouched = *is_vouched;
            for dialect in &dialects {
                gateway.dialect = *dialect;
                for length in 1..=items.len() {
                    let body = request(*dialect, &items[..length], TEXTS[*tool], *is_searching);
                    prop_assert_eq!(gateway.read(&body, Some(&clean)), gateway.read(&body, None), "{}", body);
                }
            }
        }
    }
}

/// Else nothing above would be compared.
#[test]
fn items_of_every_dialect_are_passed_over_the_second_time() {
    for dialect in DIALECTS {
        let (gateway, clean) = (Gateway::new().speaking(dialect), Arc::new(CleanTexts::default()));
        let body = request(dialect, &[(0, 0, 0), (7, 0, 0), (0, 5, 0)], "reads", false);
        assert_eq!(gateway.passed_over(&body, &clean), 0, "{dialect:?}");
        assert!(gateway.passed_over(&body, &clean) >= 3, "{dialect:?}");
    }
}

/// The same.
#[test]
fn secrets_of_these_conversations_are_found_and_replaced_in_every_dialect() {
    for dialect in DIALECTS {
        let gateway = Gateway::new().speaking(dialect);
        let items = [(0, 0, 0), (1, 0, 0), (2, 0, 0), (3, 0, 0)];
        let (found, became) = gateway.read(&request(dialect, &items, "reads", false), None);
        assert_eq!(found.len(), 1, "{dialect:?}: {found:?} {became}");
        assert!(became.contains("\"[postern:gitlab-token]\""), "{dialect:?}: {became}");
        let named = Gateway::under(SPECS[1]).speaking(dialect);
        let items = [(1, 0, 1), (0, 0, 0), (2, 0, 1)];
        let (found, became) = named.read(&request(dialect, &items, "reads", false), None);
        assert!(became.contains("[postern:credential-file]"), "{dialect:?}: {found:?} {became}");
    }
}

#[test]
fn a_result_that_was_clean_is_looked_at_where_it_answers_another_call() {
    for dialect in DIALECTS {
        let gateway = Gateway::under(SPECS[1]).speaking(dialect);
        let clean = Arc::new(CleanTexts::default());
        // The text in between stands in front of the result both times.
        let body = |path| request(dialect, &[(1, 0, path), (0, 0, 0), (2, 6, path)], "reads", false);
        // Both calls have one id.
        let body = |path| body(path).replace("\"t1\"", "\"t0\"");
        assert_eq!(gateway.read(&body(0), Some(&clean)).0, Vec::<String>::new(), "{dialect:?}");
        let (found, became) = gateway.read(&body(1), Some(&clean));
        assert_eq!(found.len(), 1, "{dialect:?}: {found:?}");
        assert!(became.contains("[postern:credential-file]"), "{dialect:?}: {became}");
    }
}
