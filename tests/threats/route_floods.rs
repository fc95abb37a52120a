//! Floods in the answer of a stand-in: names, indices, white space, comments, lines without an end. Each is bounded, ends the
//! answer or is left out, and harms nobody else.

use serde_json::{Value, json};

use crate::routing::{Routed, Scripts, events, policy, request, routed_by, text_of};
use crate::support::Answer;
use crate::support::journal::poll;
use crate::support::upstream::{Reply, Seen, Step};

const ROUTE: &str = "- {name: all, match: {models: ['claude-haiku-*']}, to: [coder]}";
const MIB: usize = 1 << 20;

fn chunk(delta: &Value) -> String {
    format!("data: {}\n\n", json!({"id": "c1", "model": "served", "choices": [{"index": 0, "delta": delta}]}))
}

fn piece(call: &Value) -> String {
    chunk(&json!({"tool_calls": [call]}))
}

const END: &str =
    "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";

/// The same bytes again and again, then others.
fn flood(of: &str, bytes: usize, then: &str) -> Vec<Step> {
    let piece = of.repeat((64 << 10) / of.len() + 1);
    let times = bytes / piece.len() + 1;
    let mut steps = vec![Step::Data(piece.into()); times];
    steps.push(Step::Data(then.to_owned().into()));
    steps
}

/// What the stand-in floods with, as the last message says.
fn flooding(seen: &Seen) -> Option<Reply> {
    let asked: Value = serde_json::from_slice(&seen.body).unwrap();
    let said = chunk(&json!({"content": "ok"}));
    let steps = match asked["messages"][0]["content"].as_str().unwrap() {
        "comments" => flood(": flood\n\n", 6 * MIB, &format!("{said}{END}")),
        "comments in one event" => flood(": flood\n", 24 * MIB, &format!("\n{said}{END}")),
        "blank lines" => flood("\n", 6 * MIB, &format!("{said}{END}")),
        "fields" => flood("id: flood\n", 24 * MIB, &format!("\n{said}{END}")),
        "events without data" => flood("event: flood\n\n", 6 * MIB, &format!("{said}{END}")),
        "empty pieces" => flood(&chunk(&json!({"content": ""})), 6 * MIB, &format!("{said}{END}")),
        "white space" => flood(&chunk(&json!({"content": " \n".repeat(500)})), 24 * MIB, &format!("{said}{END}")),
        "reasoning of white space" => flood(&chunk(&json!({"reasoning_content": " \n".repeat(500)})), 24 * MIB, &format!("{said}{END}")),
        "a line" => flood("data: xxxxxxxxxxxxxxxxxxxxxxxxx", 24 * MIB, &format!("\n\n{said}{END}")),
        "a name" => vec![Step::Data(piece(&json!({"index": 0, "id": "a", "function": {"name": "n".repeat(MIB), "arguments": "{}"}})).into()), Step::Data(END.into())],
        "an id" => vec![Step::Data(piece(&json!({"index": 0, "id": "i".repeat(MIB), "function": {"name": "Look", "arguments": "{}"}})).into()), Step::Data(END.into())],
        "names" => {
            let calls = (0..1_000).map(|at| piece(&json!({"index": 0, "id": format!("c{at}"), "function": {"name": format!("n{at}"), "arguments": "{}"}})));
            vec![Step::Data(calls.collect::<String>().into()), Step::Data(END.into())]
        }
        "too many names" => {
            let calls = (0..5_000).map(|at| piece(&json!({"index": at, "id": format!("c{at}"), "function": {"name": "Look", "arguments": "{}"}})));
            vec![Step::Data(said.into()), Step::Data(calls.collect::<String>().into()), Step::Data(END.into())]
        }
        "indices" => {
            let calls = [0_u64, 7, 4_000_000_000, u64::MAX].map(|at| piece(&json!({"index": at, "id": format!("c{at}"), "function": {"name": "Look", "arguments": "{}"}})));
            vec![Step::Data(calls.concat().into()), Step::Data(END.into())]
        }
        "an index" => vec![Step::Data(said.into()), Step::Data(piece(&json!({"index": 1e30, "id": "c"})).into()), Step::Data(END.into())],
        "arguments" => {
            let begun = piece(&json!({"index": 0, "id": "a", "function": {"name": "Look", "arguments": "{\"a\":\""}}));
            let more = piece(&json!({"index": 0, "function": {"arguments": "x".repeat(1_000)}}));
            let mut steps = vec![Step::Data(format!("{said}{begun}").into())];
            steps.extend(flood(&more, 24 * MIB, END));
            steps
        }
        "waiting calls" => {
            // The first call is not complete, so that all others wait behind it.
            let begun = piece(&json!({"index": 0, "id": "a", "function": {"name": "Look", "arguments": "{"}}));
            let mut steps = vec![Step::Data(format!("{said}{begun}").into())];
            for at in 1..60 {
                let rest = "x".repeat(400_000);
                steps.push(Step::Data(piece(&json!({"index": at, "id": format!("c{at}"), "function": {"name": "Look", "arguments": format!("{{\"a\":\"{rest}\"}}")}})).into()));
            }
            steps.push(Step::Data(END.into()));
            steps
        }
        "depth" => vec![Step::Data(said.into()), Step::Data(format!("data: {}{}\n\n", "[".repeat(100_000), "]".repeat(100_000)).into()), Step::Data(END.into())],
        "choices" => {
            let all: Vec<Value> = (1..50_000).map(|at| json!({"index": at, "delta": {"content": "x"}})).collect();
            vec![Step::Data(said.into()), Step::Data(format!("data: {}\n\n", json!({"id": "c1", "choices": all})).into()), Step::Data(END.into())]
        }
        other => panic!("{other}"),
    };
    Some(Reply::streaming(steps).header("content-type", "text/event-stream"))
}

fn ask(test: &Routed, what: &str) -> Answer {
    let tools = json!([{"name": "Look", "input_schema": {"type": "object"}}]);
    test.ask(&request("claude-haiku-4-5", json!({"stream": true, "tools": tools, "thinking": {"type": "enabled", "budget_tokens": 1024}, "messages": [{"role": "user", "content": what}]})))
}

/// A gateway with small bounds, whose policy reads calls.
fn bounded() -> Routed {
    let text = policy(ROUTE, "  tools: [{name: no-bash, tools: [Bash], action: Deny}]\n");
    routed_by(&text, Scripts { vllm: flooding, ..Scripts::default() }, |setup| {
        setup
            .set("/limits/sseEventBytes", 2 * MIB)
            .set("/limits/decodedBodyBytes", 4 * MIB)
            .set("/limits/toolInputBytes", MIB)
            .set("/limits/bufferedBytes", 32 * MIB)
    })
}

/// How an answer that has begun is ended by the gateway.
fn broke_off(answer: &Answer) -> bool {
    answer.status == 200 && events(answer).last().is_some_and(|event| event["type"] == "error")
}

/// L12: what says nothing is left out, however much there is: the answer behind it arrives, and nothing grows.
#[test]
fn a_flood_that_says_nothing_is_left_out() {
    let test = bounded();
    assert_eq!(text_of(&ask(&test, "blank lines")), "ok");
    let before = test.gateway.peak_memory();
    for what in ["comments", "blank lines", "events without data", "empty pieces"] {
        let answer = ask(&test, what);
        assert_eq!((answer.status, text_of(&answer).as_str()), (200, "ok"), "{what}: {:.300}", answer.text());
    }
    let grown = test.gateway.peak_memory() - before;
    assert!(grown < 5 << 20, "{} KiB for floods of 6 MiB", grown >> 10);
}

/// L12: what waits, and each single event, name and input has a bound; beyond it the answer ends as a failure, and the
/// gateway serves as before.
#[test]
fn a_flood_that_would_be_held_ends_the_answer() {
    let test = bounded();
    assert_eq!(text_of(&ask(&test, "blank lines")), "ok");
    let before = test.gateway.peak_memory();
    for what in ["comments in one event", "fields", "white space", "reasoning of white space", "a line"] {
        let answer = ask(&test, what);
        assert_eq!(answer.status, 502, "{what}: {:.300}", answer.text());
        assert!(answer.text().contains("Class: Translate"), "{what}: {:.300}", answer.text());
    }
    for what in ["too many names", "an index", "arguments", "waiting calls", "depth"] {
        let answer = ask(&test, what);
        assert!(broke_off(&answer), "{what}: {:.300}", answer.text());
        assert!(answer.body.len() < 12 * MIB, "{what}: {}", answer.body.len());
    }
    poll("the end of what was held", || {
        (test.gateway.metric("postern_buffered_bytes", &[]) == 0.0).then_some(())
    });
    let grown = test.gateway.peak_memory() - before;
    assert!(grown < 48 << 20, "{} KiB for floods of 24 MiB", grown >> 10);
    // The twins: some of all that is an answer as any other.
    assert_eq!(text_of(&ask(&test, "comments")), "ok");
    for (what, calls) in [("names", 1_000), ("indices", 4)] {
        let answer = ask(&test, what);
        let called =
            events(&answer).iter().filter(|event| event["content_block"]["type"] == "tool_use").count();
        assert_eq!((answer.status, called), (200, calls), "{what}: {:.300}", answer.text());
    }
    assert_eq!(text_of(&ask(&test, "choices")), "ok");
}

/// L12: a name or an id as long as an event makes no long event of ours, and no long id of the agent's.
#[test]
fn a_name_without_end_is_short_in_events() {
    let test = bounded();
    for what in ["a name", "an id"] {
        let answer = ask(&test, what);
        assert_eq!(answer.status, 200, "{what}: {:.300}", answer.text());
        let started = events(&answer);
        let call = started.iter().find(|event| event["content_block"]["type"] == "tool_use");
        let id = call.map(|event| event["content_block"]["id"].as_str().unwrap().len());
        assert!(id.is_none_or(|length| length <= 64), "{what}");
    }
    let ended = || test.gateway.events().iter().filter(|event| event["kind"] == "Response").count();
    poll("both ends", || (ended() == 2).then_some(()));
    let longest = test.gateway.events().iter().map(|event| event.to_string().len()).max().unwrap();
    assert!(longest < 8_192, "{longest} bytes");
    assert!(test.gateway.admin("/metrics").text().len() < 200_000);
}
