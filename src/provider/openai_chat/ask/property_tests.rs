//! Conversations of any shape: a turn's messages begin the next turn's, and names and ids come back.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::testing::translated;
use crate::wire::json::{Document, Limits};

/// Lists of transforms under which a conversation only grows.
const TRANSFORMS: [&[&str]; 4] =
    [&[], &["reasoning", "schema:generic"], &["mistral", "reasoning"], &["gemini", "schema:gemini"]];

/// What a user says beside results.
fn speech() -> impl Strategy<Value = Vec<Value>> {
    let text = "[a-z\\n\"é]{0,4}".prop_map(|text| json!({"type": "text", "text": text}));
    let image = Just(json!({"type": "image", "source": {"type": "url", "url": "https://a.example/i"}}));
    let orphan = Just(json!({"type": "tool_result", "tool_use_id": "gone", "content": "x"}));
    prop::collection::vec(prop_oneof![4 => text, 1 => image, 1 => orphan], 0..3)
}

/// What comes of a call; none where nothing does.
fn outcome() -> impl Strategy<Value = Option<Value>> {
    let content = prop_oneof![
        Just(json!("done")),
        Just(json!([])),
        Just(json!([{"type": "text", "text": "a"}, {"type": "text", "text": "b"}])),
        Just(
            json!([{"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AA=="}}])
        ),
        Just(json!([{"type": "tool_reference", "tool_name": "Late.Tool"}])),
    ];
    prop::option::weighted(
        0.9,
        (content, any::<bool>()).prop_map(|(content, fails)| json!({"content": content, "is_error": fails})),
    )
}

#[derive(Debug, Clone)]
struct Round {
    /// Whether the model's turn has thinking, of this gateway or another.
    thinking: Option<bool>,
    text: Option<String>,
    /// The tool of each call, and what comes of it.
    calls: Vec<(String, Option<Value>)>,
    is_reversed: bool,
    /// Whether the turns of both sides have a text, so that none is empty.
    is_filled: bool,
    /// Instructions between the calls and their results, and behind the user.
    system: (bool, bool),
    speech: Vec<Value>,
}

fn round() -> impl Strategy<Value = Round> {
    let calls = prop::collection::vec(("[a-zA-Z_.é]{1,3}|[a-z.]{60,70}", outcome()), 0..4);
    let thinking = prop::option::of(any::<bool>());
    let text = prop::option::of("[a-z]{1,3}");
    (thinking, text, calls, any::<bool>(), any::<(bool, bool)>(), speech()).prop_map(
        |(thinking, text, calls, is_reversed, system, speech)| Round {
            thinking,
            text,
            calls,
            is_reversed,
            is_filled: false,
            system,
            speech,
        },
    )
}

/// The messages of the agent that a round adds.
fn messages(number: usize, round: &Round) -> Vec<Value> {
    let id = |call: usize| format!("toolu_{number}_{call}");
    let mut turn = Vec::new();
    if let Some(is_ours) = round.thinking {
        let signature =
            if is_ours { format!("postern.1.coder.{}", "0".repeat(32)) } else { "EpwI".to_owned() };
        turn.push(json!({"type": "thinking", "thinking": "hm", "signature": signature}));
    }
    turn.extend(round.is_filled.then(|| json!({"type": "text", "text": "So."})));
    turn.extend(round.text.iter().map(|text| json!({"type": "text", "text": text})));
    turn.extend(round.calls.iter().enumerate().map(
        |(call, (name, _))| json!({"type": "tool_use", "id": id(call), "name": name, "input": {"n": call}}),
    ));
    let mut results: Vec<Value> = round
        .calls
        .iter()
        .enumerate()
        .filter_map(|(call, (_, outcome))| {
            let mut result = outcome.clone()?;
            result["type"] = json!("tool_result");
            result["tool_use_id"] = json!(id(call));
            Some(result)
        })
        .collect();
    if round.is_reversed {
        results.reverse();
    }
    results.extend(round.speech.iter().cloned());
    results.extend(round.is_filled.then(|| json!({"type": "text", "text": "Go on."})));
    let system = json!({"role": "system", "content": "Mind."});
    let mut messages = vec![json!({"role": "assistant", "content": turn})];
    messages.extend(round.system.0.then(|| system.clone()));
    messages.push(json!({"role": "user", "content": results}));
    messages.extend(round.system.1.then_some(system));
    messages
}

/// The messages that are sent, without the brackets around them.
fn sent(messages: &[Value], transforms: &[&str]) -> String {
    let tools = json!([{"name": "Late.Tool", "input_schema": {"type": "object"}, "defer_loading": true}]);
    let body = json!({"system": "You are.", "messages": messages, "tools": tools}).to_string();
    let request = translated(&body, &json!({"transforms": transforms})).unwrap();
    let document = Document::parse(&request.body, Limits::default()).unwrap();
    assert!(document.first_duplicate().is_none());
    let sent = document.root().get("messages").unwrap().unwrap().raw();
    sent[1..sent.len() - 1].to_owned()
}

proptest! {
    #[test]
    fn the_messages_of_a_turn_begin_those_of_the_next(
        rounds in prop::collection::vec(round(), 1..5),
        transforms in prop::sample::select(&TRANSFORMS[..]),
    ) {
        let mut conversation = vec![json!({"role": "user", "content": "hi"})];
        let mut before = sent(&conversation, transforms);
        for (number, mut round) in rounds.into_iter().enumerate() {
            // Mistral joins two turns of one side, which an empty turn between them would have kept apart.
            round.is_filled = transforms.contains(&"mistral");
            conversation.extend(messages(number, &round));
            let now = sent(&conversation, transforms);
            prop_assert!(now.starts_with(&before), "{before}\n{now}");
            before = now;
        }
    }

    #[test]
    fn every_call_has_one_result_right_behind_it_in_its_order(
        rounds in prop::collection::vec(round(), 1..5),
        transforms in prop::sample::select(&TRANSFORMS[..]),
    ) {
        let mut conversation = vec![json!({"role": "user", "content": "hi"})];
        conversation.extend(rounds.iter().enumerate().flat_map(|(number, round)| messages(number, round)));
        let sent: Vec<Value> = serde_json::from_str(&format!("[{}]", sent(&conversation, transforms))).unwrap();
        let mut open: Vec<&Value> = Vec::new();
        for message in &sent {
            if message["role"] == "tool" {
                prop_assert!(!open.is_empty() && open.remove(0) == &message["tool_call_id"]);
            } else {
                prop_assert!(open.is_empty(), "{message}");
            }
            open.extend(message["tool_calls"].as_array().into_iter().flatten().map(|call| &call["id"]));
        }
        prop_assert!(open.is_empty());
    }

    #[test]
    fn names_and_ids_come_back(names in prop::collection::hash_set("[a-z._é-]{1,5}|[A-Z.]{60,90}", 1..6)) {
        let names: Vec<String> = names.into_iter().collect();
        let tools: Vec<Value> =
            names.iter().map(|name| json!({"name": name, "input_schema": {}})).collect();
        let calls: Vec<Value> = names.iter().map(
            |name| json!({"type": "tool_use", "id": format!("id of {name}"), "name": name, "input": {}}),
        ).collect();
        let body = json!({"messages": [{"role": "assistant", "content": calls}], "tools": tools}).to_string();
        let request = translated(&body, &json!({})).unwrap();
        let sent: Value = serde_json::from_slice(&request.body).unwrap();
        let is_taken = |name: &str| {
            (1..=64).contains(&name.len())
                && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte))
        };
        for (number, name) in names.iter().enumerate() {
            let tool = sent["tools"][number]["function"]["name"].as_str().unwrap();
            let call = &sent["messages"][0]["tool_calls"][number];
            prop_assert!(is_taken(tool));
            prop_assert_eq!(request.names.of_agent(tool), name);
            prop_assert_eq!(call["function"]["name"].as_str().unwrap(), tool);
            prop_assert_eq!(call["id"].as_str().unwrap(), format!("id of {name}"));
            prop_assert_eq!(is_taken(name), tool == name);
        }
    }
}
