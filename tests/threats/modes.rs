//! Ways to ask a model and to be answered: whole or in a stream, labelled rightly or not.

use crate::support::Answer;
use crate::support::upstream::{Reply, Seen};

use super::requests::{CHAT, GEMINI, MESSAGES, Models, NO_RM, RESPONSES, models_with, said};

/// A model's answer with one call of a shell, whole and as a stream, for each dialect that has streams of events.
fn answers(command: &str) -> [(&'static str, String, String); 4] {
    let quoted = format!(r#"{{\"command\":\"{command}\"}}"#);
    let anthropic = format!(
        r#"{{"id":"msg_1","type":"message","role":"assistant","model":"m","content":[{{"type":"tool_use","id":"t1","name":"Bash","input":{{"command":"{command}"}}}}],"stop_reason":"tool_use","stop_sequence":null,"usage":{{"input_tokens":7,"output_tokens":9}}}}"#
    );
    let chat = |key: &str| {
        format!(
            r#"{{"id":"c1","object":"chat.completion","model":"m","choices":[{{"index":0,"{key}":{{"role":"assistant","content":null,"tool_calls":[{{"index":0,"id":"t1","type":"function","function":{{"name":"Bash","arguments":"{quoted}"}}}}]}},"finish_reason":"tool_calls"}}]}}"#
        )
    };
    let item = format!(
        r#"{{"id":"fc_1","type":"function_call","status":"completed","call_id":"t1","name":"Bash","arguments":"{quoted}"}}"#
    );
    let response = format!(
        r#"{{"id":"resp_1","object":"response","status":"completed","model":"m","output":[{item}],"usage":{{"input_tokens":7,"output_tokens":9,"total_tokens":16}}}}"#
    );
    let gemini = format!(
        r#"{{"candidates":[{{"content":{{"role":"model","parts":[{{"functionCall":{{"id":"t1","name":"Bash","args":{{"command":"{command}"}}}}}}]}},"finishReason":"STOP","index":0}}]}}"#
    );
    let streamed = |events: &[String]| {
        let event = |data: &String| {
            let name =
                serde_json::from_str::<serde_json::Value>(data).unwrap()["type"].as_str().unwrap().to_owned();
            format!("event: {name}\ndata: {data}\n\n")
        };
        events.iter().map(event).collect::<String>()
    };
    let anthropic_events = streamed(&[
        r#"{"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","model":"m","content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":7,"output_tokens":1}}}"#.to_owned(),
        r#"{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"t1","name":"Bash","input":{}}}"#.to_owned(),
        format!(r#"{{"type":"content_block_delta","index":0,"delta":{{"type":"input_json_delta","partial_json":"{quoted}"}}}}"#),
        r#"{"type":"content_block_stop","index":0}"#.to_owned(),
        r#"{"type":"message_delta","delta":{"stop_reason":"tool_use","stop_sequence":null},"usage":{"output_tokens":9}}"#.to_owned(),
        r#"{"type":"message_stop"}"#.to_owned(),
    ]);
    let responses_events = streamed(&[
        r#"{"type":"response.created","response":{"id":"resp_1","object":"response","status":"in_progress","model":"m","output":[]},"sequence_number":0}"#.to_owned(),
        format!(r#"{{"type":"response.output_item.added","output_index":0,"item":{},"sequence_number":1}}"#, item.replace(&quoted, "").replace("completed", "in_progress")),
        format!(r#"{{"type":"response.function_call_arguments.delta","item_id":"fc_1","output_index":0,"delta":"{quoted}","sequence_number":2}}"#),
        format!(r#"{{"type":"response.function_call_arguments.done","item_id":"fc_1","output_index":0,"name":"Bash","arguments":"{quoted}","sequence_number":3}}"#),
        format!(r#"{{"type":"response.output_item.done","output_index":0,"item":{item},"sequence_number":4}}"#),
        format!(r#"{{"type":"response.completed","response":{response},"sequence_number":5}}"#),
    ]);
    let chat_events = format!(
        "data: {}\n\ndata: [DONE]\n\n",
        chat("delta").replace("chat.completion", "chat.completion.chunk")
    );
    [
        (MESSAGES, anthropic, anthropic_events),
        (CHAT, chat("message"), chat_events),
        (RESPONSES, response, responses_events),
        (GEMINI, gemini.clone(), format!("data: {gemini}\n\n")),
    ]
}

/// How a model is asked, and how it answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Mode {
    /// Whether a stream is asked for.
    asks: bool,
    /// Whether one comes.
    streams: bool,
    /// What the answer calls itself; nothing where this is empty.
    content_type: &'static str,
}

impl Mode {
    fn all() -> impl Iterator<Item = Self> {
        let types = ["text/event-stream", "application/json", "text/plain", "application/octet-stream", ""];
        let asked = [true, false].into_iter();
        asked.flat_map(move |asks| {
            let types = types.into_iter();
            types.flat_map(move |content_type| {
                [true, false].map(|streams| Self { asks, streams, content_type })
            })
        })
    }

    /// Whether the answer is what was asked for, and says so.
    fn is_honest(self) -> bool {
        let content_type = if self.asks { "text/event-stream" } else { "application/json" };
        self.asks == self.streams && self.content_type == content_type
    }

    /// The answer to a request for a command, which says in its head how it wants it.
    #[track_caller]
    fn ask(self, test: &Models, door: &str, command: &str) -> Answer {
        let fields = [
            // The other one than is meant.
            ("accept", if self.asks { "application/json" } else { "text/event-stream" }),
            ("x-type", self.content_type),
            ("x-streams", if self.streams { "yes" } else { "no" }),
            ("x-command", command),
        ];
        let streams = door.replace(":generateContent", ":streamGenerateContent?alt=sse");
        let (target, entry) = match (self.asks, door) {
            (false, _) => (door, ""),
            (true, GEMINI) => (streams.as_str(), ""),
            (true, _) => (door, r#""stream":true,"#),
        };
        test.post_with(target, &fields, said(door, entry)).answer
    }
}

/// The call that a request asks for, in the dialect of its path, in the mode that its head asks for.
fn call(seen: &Seen) -> Reply {
    let field = |name: &str| seen.header(name).unwrap_or_default().to_owned();
    let found = answers(if field("x-command") == "rm" { "rm -rf /" } else { "ls -l" });
    let api = |path: &str| path.split(':').next().unwrap_or_default().to_owned();
    let speaks =
        |door: &str| door.split_once('/').is_some_and(|(_, path)| api(path) == api(&seen.path()[1..]));
    let (_, whole, streamed) = found.into_iter().find(|(door, ..)| speaks(door)).unwrap();
    let reply = Reply::of(200, if field("x-streams") == "yes" { streamed } else { whole });
    match field("x-type") {
        none if none.is_empty() => reply,
        content_type => reply.header("content-type", content_type),
    }
}

/// E13: whole or streamed, asked for or not, and whatever an answer calls itself, a denied call never reaches the agent.
#[test]
fn no_way_of_asking_or_answering_hides_a_call() {
    let test = models_with(NO_RM, call, |setup| setup);
    for (door, whole, streamed) in answers("ls -l") {
        for mode in Mode::all() {
            let denied = mode.ask(&test, door, "rm").text();
            assert!(!denied.contains("rm -rf"), "{door} {mode:?}: {denied}");
            if mode.is_honest() {
                assert!(denied.contains("no-rm"), "{door} {mode:?}: {denied}");
                let passed = mode.ask(&test, door, "ls").text();
                assert_eq!(passed, *if mode.streams { &streamed } else { &whole }, "{door} {mode:?}");
            }
        }
    }
}

/// K6: what a stream says of usage at its beginning reaches the agent as it was said, also where a call is replaced.
#[test]
fn usage_at_the_beginning_of_a_stream_is_preserved() {
    let test = models_with(NO_RM, call, |setup| setup);
    let [(_, _, sent), ..] = answers("rm -rf /");
    let start = &sent[..sent.find("\n\n").unwrap() + 2];
    assert!(start.contains(r#""usage":{"input_tokens":7,"output_tokens":1}"#));

    for command in ["rm", "ls"] {
        let fields = [("x-command", command), ("x-streams", "yes"), ("x-type", "text/event-stream")];
        let asked = test.post_with(MESSAGES, &fields, said(MESSAGES, r#""stream":true,"#));
        let text = asked.answer.text();
        assert!(text.starts_with(start), "{text}");
        assert!(text.contains(r#""usage":{"output_tokens":9}"#), "{text}");
        assert_eq!(text.contains("[postern]"), command == "rm");
        let usage = &test.event_of(&asked, "Response", "Allow")["usage"];
        assert_eq!((&usage["inputTokens"], &usage["outputTokens"]), (&7.into(), &9.into()), "{usage}");
    }
}
