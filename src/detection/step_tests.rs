//! What is remembered of clean texts changes nothing but the time: with it the same is found and replaced as without.

use std::sync::Arc;

use proptest::prelude::*;
use serde_json::json;

use super::CleanTexts;
use super::testing::Gateway;
use crate::call::Dialect;

/// Texts that are clean alone; some are two parts of a token.
const TEXTS: [&str; 7] =
    ["go", "a\n\"b\"\\", "see glpat-Zx3", "Zx3kQ9vB7mW2", "kQ9vB7mW2tR5yU8pL there", "tR5yU8pL1", "ä€ text"];

/// A conversation of these texts; a long one has a page in front or behind it.
fn conversation(turns: &[(usize, usize)]) -> String {
    let messages: Vec<_> = turns
        .iter()
        .enumerate()
        .map(|(number, (text, page))| {
            let page_text = "let value = read(\"file\");\n".repeat(page % 3 * 40);
            let text = match page / 3 {
                0 => format!("{page_text}{}", TEXTS[*text]),
                _ => format!("{}{page_text}", TEXTS[*text]),
            };
            if number % 4 == 3 {
                let call = json!({"type": "tool_use", "id": format!("t{number}"), "name": "Read", "input": {"file_path": "a"}});
                return json!({"role": "assistant", "content": [call]});
            }
            json!({"role": "user", "content": [{"type": "text", "text": text}]})
        })
        .collect();
    json!({"model": "m", "max_tokens": 1, "messages": messages}).to_string()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn what_is_passed_over_holds_nothing(
        conversations in prop::collection::vec(prop::collection::vec((0..TEXTS.len(), 0..6_usize), 1..8), 1..4),
    ) {
        let (gateway, clean) = (Gateway::new(), Arc::new(CleanTexts::default()));
        for turns in &conversations {
            for length in 1..=turns.len() {
                let body = conversation(&turns[..length]);
                prop_assert_eq!(gateway.read(&body, Some(&clean)), gateway.read(&body, None));
            }
        }
    }
}

#[test]
fn a_token_in_two_texts_is_found_behind_texts_that_were_passed_over() {
    let (gateway, clean) = (Gateway::new(), Arc::new(CleanTexts::default()));
    let turns = [(0, 1), (2, 1), (0, 0), (0, 0), (4, 3)];
    for length in 1..=turns.len() {
        let _ = gateway.read(&conversation(&turns[..length]), Some(&clean));
    }
    // The first part alone is clean, and so is the second one; one behind the other they are not.
    let (found, _) = gateway.read(&conversation(&[(2, 1), (4, 3)]), Some(&clean));
    let (expected, _) = gateway.read(&conversation(&[(2, 1), (4, 3)]), None);
    assert_eq!(found, expected);
    assert!(found.iter().any(|found| found.contains("gitlab-token")), "{found:?}");
}

/// Policies about files by their names.
const SPECS: [&str; 3] = [
    "{}",
    "{dataLoss: {action: Redact, detectors: [CredentialFiles, ProtectedPaths]}}",
    "{dataLoss: {action: Deny, detectors: [Secrets, CredentialFiles]}}",
];

/// What calls read; of a repeated id the last call counts.
const PATHS: [&str; 4] = ["a", "/w/.env", "/home/a/.ssh/id_rsa", "b'c"];

/// An item of a conversation by its kind, a text, and a number that chooses among few: an id, a path.
type Item = (usize, usize, usize);

/// The same in Chat Completions, where the input of a call is a document of its own.
fn item_of_chat((kind, text, number): Item) -> serde_json::Value {
    let (text, id) = (TEXTS[text], format!("t{}", number % 3));
    let call = |name: &str, input: serde_json::Value| {
        let function = json!({"name": name, "arguments": input.to_string()});
        json!({"role": "assistant", "tool_calls": [{"id": id, "type": "function", "function": function}]})
    };
    match kind {
        0 => json!({"role": "user", "content": text}),
        1 => call("Read", json!({"file_path": PATHS[number], "note": text})),
        2 => json!({"role": "tool", "tool_call_id": id, "content": text}),
        3 => json!({"role": "user", "content": [{"type": "text", "text": "glpat-Zx3kQ9vB7mW2tR5yU8pL1"}]}),
        4 => {
            let placeholder = format!("{}gitlab-token] {text}", crate::call::withheld::PLACEHOLDER);
            json!({"role": "system", "content": placeholder})
        }
        5 => json!({"role": "user", "name": "Zx3", "content": [{"type": "text", "text": text}]}),
        6 => json!({"role": "assistant", "content": format!("{text} glpat-Zx3kQ9vB7mW2tR5yU8pL1")}),
        _ => call("Bash", json!({"command": text})),
    }
}

fn item((kind, text, number): Item) -> serde_json::Value {
    let (text, id) = (TEXTS[text], format!("t{}", number % 3));
    let png = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR42mNk";
    let (role, block) = match kind {
        0 => ("user", json!({"type": "text", "text": text})),
        1 => {
            let input = json!({"file_path": PATHS[number], "note": text});
            ("assistant", json!({"type": "tool_use", "id": id, "name": "Read", "input": input}))
        }
        2 => ("user", json!({"type": "tool_result", "tool_use_id": id, "content": text})),
        3 => ("user", json!({"type": "text", "text": "glpat-Zx3kQ9vB7mW2tR5yU8pL1"})),
        4 => (
            "user",
            json!({"type": "text", "text": format!("{}gitlab-token] {text}", crate::call::withheld::PLACEHOLDER)}),
        ),
        5 => {
            let source = json!({"type": "base64", "media_type": "image/png", "data": png});
            ("user", json!({"type": "image", "source": source}))
        }
        6 => ("assistant", json!({"type": "text", "text": format!("{text} glpat-Zx3kQ9vB7mW2tR5yU8pL1")})),
        _ => ("assistant", json!({"type": "tool_use", "id": id, "name": "Bash", "input": {"command": text}})),
    };
    json!({"role": role, "content": [block]})
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn an_item_that_is_passed_over_holds_nothing_whatever_its_calls_and_neighbours_are(
        spec in prop::sample::select(&SPECS),
        conversations in prop::collection::vec(
            (
                any::<[bool; 3]>(),
                prop::collection::vec((0..8_usize, 0..TEXTS.len(), 0..PATHS.len()), 1..7),
                0..3_usize,
            ),
            1..6,
        ),
    ) {
        let (mut gateway, clean) = (Gateway::under(spec), Arc::new(CleanTexts::default()));
        for ([is_vouched, is_chat, is_searching], items, tool) in &conversations {
            gateway.is_vouched = *is_vouched;
            gateway.dialect = if *is_chat { Dialect::OpenAIChat } else { Dialect::Anthropic };
            let item = if *is_chat { item_of_chat } else { item };
            for length in 1..=items.len() {
                let messages: Vec<_> = items[..length].iter().map(|of| item(*of)).collect();
                let described = json!({"name": "Read", "description": TEXTS[*tool], "input_schema": {"type": "object"}});
                let tool = if *is_chat { json!({"type": "function", "function": described}) } else { described };
                // It is taken out, where a policy denies what providers run.
                let hosted = json!({"type": "web_search_20250305", "name": "web_search"});
                let tools: Vec<_> = [hosted, tool].into_iter().skip(usize::from(!*is_searching)).collect();
                let body = json!({"model": "m", "tools": tools, "max_tokens": 1, "messages": messages, "user": "Zx3"}).to_string();
                prop_assert_eq!(gateway.read(&body, Some(&clean)), gateway.read(&body, None));
            }
        }
    }
}

#[test]
fn a_result_that_was_clean_is_looked_at_where_it_answers_another_call() {
    let (gateway, clean) = (Gateway::under(SPECS[1]), Arc::new(CleanTexts::default()));
    let body = |path: &str| {
        let call = json!({"type": "tool_use", "id": "t0", "name": "Read", "input": {"file_path": path}});
        let messages = [json!({"role": "assistant", "content": [call]}), item((0, 0, 0)), item((2, 6, 0))];
        json!({"model": "m", "max_tokens": 1, "messages": messages}).to_string()
    };
    assert_eq!(gateway.read(&body("a"), Some(&clean)).0, Vec::<String>::new());
    // The text in between stands in front of the result both times.
    let (found, became) = gateway.read(&body("/w/.env"), Some(&clean));
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(became.contains("[postern:credential-file]"), "{became}");
}
