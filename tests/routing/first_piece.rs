//! When a stand-in counts as answering: with the first piece of its answer, hidden reasoning included.

use std::sync::{Mutex, OnceLock};

use serde_json::json;

use super::*;
use crate::support::upstream::Gate;

const CHAIN: &str = "- {name: all, match: {models: ['*']}, to: [coder], fallback: [chat]}";

/// What the reasoning one waits for before it says its answer.
fn gate() -> &'static Mutex<Gate> {
    static GATE: OnceLock<Mutex<Gate>> = OnceLock::new();
    GATE.get_or_init(|| Mutex::new(Gate::new()))
}

fn data(event: &Value) -> Step {
    Step::Data(format!("data: {event}\n\n").into())
}

/// Asked for silence it says nothing; else it reasons, and says its answer once the gate is open.
fn reasoning_or_silent(seen: &Seen) -> Option<Reply> {
    let asked: Value = serde_json::from_slice(&seen.body).unwrap();
    let begun = data(&json!({"id": "c1", "choices": [{"index": 0, "delta": {"role": "assistant"}}]}));
    if asked["messages"][0]["content"] == "be silent" {
        let waits = vec![begun, Step::Wait(Gate::new())];
        return Some(Reply::streaming(waits).header("content-type", "text/event-stream"));
    }
    let steps = vec![
        begun,
        data(&json!({"choices": [{"index": 0, "delta": {"reasoning_content": "let me see"}}]})),
        Step::Wait(gate().lock().unwrap().clone()),
        data(&json!({"choices": [{"index": 0, "delta": {"content": "vllm"}, "finish_reason": "stop"}]})),
        Step::Data("data: [DONE]\n\n".into()),
    ];
    Some(Reply::streaming(steps).header("content-type", "text/event-stream"))
}

#[test]
fn hidden_reasoning_is_a_first_piece() {
    let policy = policy(CHAIN, "").replace(
        "dialect: OpenAIChat, credential: vllm",
        "dialect: OpenAIChat, credential: vllm, firstEvent: 1s",
    );
    let test = routed_by(&policy, Scripts { vllm: reasoning_or_silent, ..Scripts::default() }, |setup| setup);
    let said = |text: &str| {
        request("claude", json!({"stream": true, "messages": [{"role": "user", "content": text}]}))
    };
    std::thread::scope(|scope| {
        let reasoning = scope.spawn(|| test.ask(&said("think")));
        test.vllm.wait_for_request("the one that reasons", |seen| seen.complete);
        // A second one, which begins later, is too late and followed by the next: so the first one's time is over, too.
        let silent = test.ask(&said("be silent"));
        assert_eq!(text_of(&silent), "spare", "{}", silent.text());
        gate().lock().unwrap().open();
        let answer = reasoning.join().unwrap();
        assert_eq!(text_of(&answer), "vllm", "{}", answer.text());
    });
    let attempts = test.gateway.wait_for_event("the end of the first", |event| {
        event["kind"] == "Response" && event["provider"]["route"]["label"] == "coder"
    });
    assert_eq!(attempts["provider"]["route"]["attempts"][0]["class"], "Answered", "{attempts}");
}
