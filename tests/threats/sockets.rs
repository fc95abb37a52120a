//! The WebSocket of Responses, frame by frame from both ends: what is said in it is judged as over HTTP, and bounded.

use serde_json::{Value, json};

use super::model::{NO_DELETE, policy};
use crate::parity::dialect::{Called, Said};
use crate::parity::responses;
use crate::support::journal::poll;
use crate::support::upstream::{RawUpstream, accept_key};
use crate::support::{Connection, Ending, Gateway, Pki, Setup, directory};

const KEY: &str = "dGhlIHNhbXBsZSBub25jZQ==";
const TEXT: u8 = 0x1;
const BINARY: u8 = 0x2;
const CLOSE: u8 = 0x8;
const PING: u8 = 0x9;
const LAST: u8 = 0x80;

/// A gateway, and a provider that answers each message as it is told.
struct Room {
    gateway: Gateway,
    upstream: RawUpstream,
}

/// What a provider says to a message: frames, whole.
type Answers = fn(&Value) -> Vec<Vec<u8>>;

impl Room {
    fn new(spec: &str, answers: Answers) -> Self {
        Self::with(spec, answers, |setup| setup)
    }

    fn with(spec: &str, answers: Answers, change: impl FnOnce(Setup) -> Setup) -> Self {
        let upstreams = Pki::new("Upstream Test CA");
        let identity = upstreams.leaf(&[responses::HOST]);
        let upstream = RawUpstream::start(Some(&identity), move |connection, heard| {
            heard.push(connection.read_until(b"\r\n\r\n"));
            connection.send(format!(
                "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
                 Sec-WebSocket-Accept: {}\r\n\r\n",
                accept_key(KEY)
            ));
            while let Some((first, payload)) = read(connection) {
                if first & 0xf == PING {
                    continue;
                }
                heard.push(payload.clone());
                let said = serde_json::from_slice(&payload).unwrap_or_default();
                for frame in answers(&said) {
                    connection.send(frame);
                }
            }
        });
        let setup = Setup::new(&upstreams).policy(&serving(spec)).host(responses::HOST, upstream.address());
        Self { gateway: change(setup).start(), upstream }
    }

    /// A WebSocket through the gateway.
    fn open(&self) -> Connection {
        let mut connection = self.gateway.agent().tls(responses::HOST);
        connection.send(format!(
            "GET {} HTTP/1.1\r\nHost: {}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
             Sec-WebSocket-Key: {KEY}\r\nSec-WebSocket-Version: 13\r\n\
             Sec-WebSocket-Extensions: permessage-deflate; client_max_window_bits\r\n\r\n",
            responses::PATH,
            responses::HOST
        ));
        let answer = connection.read_head();
        assert_eq!((answer.status, answer.header("sec-websocket-extensions")), (101, None));
        connection
    }

    /// What the provider heard behind the head.
    fn heard(&self) -> Vec<String> {
        let heard = self.upstream.heard().entries();
        heard[1..].iter().map(|bytes| String::from_utf8_lossy(bytes).into_owned()).collect()
    }
}

/// A policy that serves the WebSocket.
fn serving(spec: &str) -> String {
    policy(&format!("providerState: Allow\n{spec}"))
}

/// One frame of a server, or, masked with zeros, of a client.
fn frame(first: u8, payload: &[u8], masked: bool) -> Vec<u8> {
    let mask = if masked { 0x80 } else { 0 };
    let mut frame = vec![first];
    match (u8::try_from(payload.len()), u16::try_from(payload.len())) {
        (Ok(length @ ..126), _) => frame.push(mask | length),
        (_, Ok(length)) => {
            frame.push(mask | 126);
            frame.extend(length.to_be_bytes());
        }
        (_, Err(_)) => {
            frame.push(mask | 127);
            frame.extend((payload.len() as u64).to_be_bytes());
        }
    }
    if masked {
        frame.extend([0; 4]);
    }
    frame.extend(payload);
    frame
}

/// The first byte of the next frame and what it says, without its mask; none at the end.
fn read(connection: &mut Connection) -> Option<(u8, Vec<u8>)> {
    let head = connection.try_read_exactly(2)?;
    let length = match head[1] & 0x7f {
        126 => u64::from(u16::from_be_bytes(connection.try_read_exactly(2)?.try_into().unwrap())),
        127 => u64::from_be_bytes(connection.try_read_exactly(8)?.try_into().unwrap()),
        short => u64::from(short),
    };
    let mask = if head[1] & 0x80 == 0 { vec![0; 4] } else { connection.try_read_exactly(4)? };
    let mut payload = connection.try_read_exactly(usize::try_from(length).unwrap())?;
    payload.iter_mut().zip(mask.iter().cycle()).for_each(|(byte, mask)| *byte ^= mask);
    Some((head[0], payload))
}

/// A question, in one frame.
fn create(more: Value) -> Vec<u8> {
    let mut question = json!({"type": "response.create", "model": "gpt-5", "input": "go"});
    if let Value::Object(more) = more {
        question.as_object_mut().unwrap().extend(more);
    }
    frame(LAST | TEXT, question.to_string().as_bytes(), true)
}

fn called(name: &'static str) -> Vec<Value> {
    let call = Called { id: "call_1".to_owned(), namespace: None, name, input: r#"{"id":7}"# };
    responses::events(&Said { text: "so", calls: vec![call] })
}

/// The tool is the one that the question asks for.
fn events(question: &Value) -> Vec<Value> {
    let name = if question["instructions"] == "delete" { "delete_file" } else { "get_weather" };
    called(name)
}

/// Each event in one frame.
fn whole(question: &Value) -> Vec<Vec<u8>> {
    events(question).iter().map(|event| frame(LAST | TEXT, event.to_string().as_bytes(), false)).collect()
}

/// Each event in three frames, with a ping between two of them.
fn in_fragments(question: &Value) -> Vec<Vec<u8>> {
    let cut = |event: &Value| {
        let bytes = event.to_string().into_bytes();
        let third = bytes.len() / 3;
        vec![
            frame(TEXT, &bytes[..third], false),
            frame(0, &bytes[third..2 * third], false),
            frame(LAST | PING, b"beat", false),
            frame(LAST, &bytes[2 * third..], false),
        ]
    };
    events(question).iter().flat_map(cut).collect()
}

/// The events up to the last of a response; pings are passed over.
#[track_caller]
fn answer(connection: &mut Connection) -> Vec<Value> {
    let mut events: Vec<Value> = Vec::new();
    loop {
        let (first, payload) = read(connection).expect("the connection ended inside an answer");
        if first == LAST | PING {
            continue;
        }
        assert_eq!(first, LAST | TEXT, "{}", String::from_utf8_lossy(&payload));
        events.push(serde_json::from_slice(&payload).unwrap());
        let kind = events.last().unwrap()["type"].as_str().unwrap();
        if matches!(kind, "response.completed" | "response.failed" | "error") {
            return events;
        }
    }
}

/// Asserts that the gateway closes the connection with this code.
#[track_caller]
fn assert_closed(connection: &mut Connection, code: u16) {
    loop {
        let (first, payload) = read(connection).expect("it ends with a close frame");
        if first == LAST | CLOSE {
            assert_eq!(payload[..2], code.to_be_bytes(), "{}", String::from_utf8_lossy(&payload));
            break;
        }
        assert_eq!(first & 0xf, TEXT);
    }
    let (Ending::Closed(rest) | Ending::Cut(rest)) = connection.ending();
    assert_eq!(rest, b"");
}

/// F11: a denied call in a message is replaced, in whatever frames the message comes.
#[test]
fn a_call_over_a_websocket_is_judged_in_whatever_frames_it_comes() {
    for answers in [whole as Answers, in_fragments] {
        let room = Room::new(NO_DELETE, answers);
        let mut connection = room.open();

        connection.send(create(json!({"instructions": "delete"})));
        let denied = answer(&mut connection);
        let text = Value::from(denied.clone()).to_string();
        assert!(!text.contains("\"call_1\"") && text.contains("Rule: agents/test/no-delete"), "{text}");
        assert!(responses::hear_events(&denied).calls.is_empty());

        connection.send(create(json!({})));
        assert_eq!(answer(&mut connection), called("get_weather"), "the twin, over the same connection");
        let head = String::from_utf8(room.upstream.heard().entries()[0].clone()).unwrap();
        assert!(!head.to_ascii_lowercase().contains("sec-websocket-extensions"), "{head}");
    }
}

/// F11: a question in pieces is one question: what it may not ask is taken out of it.
#[test]
fn a_question_in_fragments_is_read_whole() {
    let room = Room::new(NO_DELETE, whole);
    let mut connection = room.open();
    let question = r#"{"type":"response.create","input":"go","tools":[{"type":"web_search"},{"type":"function","name":"f"}]}"#;
    for (number, piece) in question.as_bytes().chunks(9).enumerate() {
        let first = if number == 0 { TEXT } else { 0 };
        connection.send(frame(first, piece, true));
        connection.send(frame(LAST | PING, b"", true));
    }
    connection.send(frame(LAST, b"", true));

    assert_eq!(answer(&mut connection), called("get_weather"));
    let heard: Value = serde_json::from_str(&room.heard()[0]).unwrap();
    assert_eq!(heard["tools"], json!([{"type": "function", "name": "f"}]));
    assert_eq!(heard["input"], "go");
}

/// F11: a question that is refused is answered as a response that failed, and the connection goes on.
#[test]
fn a_question_that_is_refused_is_answered_and_the_next_one_passes() {
    let room = Room::new(&format!("hostedTools: {{action: Deny}}\n{NO_DELETE}"), whole);
    let mut connection = room.open();
    let twice = br#"{"type":"response.create","input":"a","tools":[],"tools":[{"type":"web_search"}]}"#;
    for refused in [
        create(json!({"tools": [{"type": "web_search"}]})),
        frame(LAST | TEXT, b"{\"type\":\"response.create\"", true),
        frame(LAST | TEXT, twice, true),
    ] {
        connection.send(refused);
        let said = answer(&mut connection).pop().unwrap();
        assert_eq!(said["type"], "response.failed", "{said}");
        let message = said["response"]["error"]["message"].as_str().unwrap();
        assert!(message.starts_with("[postern] Blocked by policy\nRule: "), "{message}");
    }
    assert!(room.heard().is_empty(), "{:?}", room.heard());

    connection.send(create(json!({})));
    assert_eq!(answer(&mut connection), called("get_weather"));
    room.gateway.wait_for("Request", "Deny");
}

/// E7: over a WebSocket too a question with hosted tools alone is refused; one that goes on from another may have tools
/// there.
#[test]
fn over_a_websocket_a_question_with_hosted_tools_alone_is_refused() {
    let room = Room::new(NO_DELETE, whole);
    let mut connection = room.open();
    let search = json!([{"type": "web_search"}]);
    connection.send(create(json!({"tools": search})));
    let said = answer(&mut connection).pop().unwrap();
    assert_eq!(said["type"], "response.failed", "{said}");
    assert!(said["response"]["error"]["message"].as_str().unwrap().contains("would invent"), "{said}");
    assert!(room.heard().is_empty(), "{:?}", room.heard());

    connection.send(create(json!({"tools": search, "previous_response_id": "resp_0"})));
    assert_eq!(answer(&mut connection), called("get_weather"));
    let heard: Value = serde_json::from_str(&room.heard()[0]).unwrap();
    assert!(heard.get("tools").is_none(), "{heard}");
}

/// F11: what is no text, not masked as it must be, or compressed without leave, ends the connection.
#[test]
fn what_cannot_be_read_ends_the_connection() {
    let binary: Answers = |_| vec![frame(LAST | BINARY, b"{}", false)];
    let compressed: Answers = |_| vec![frame(LAST | 0x40 | TEXT, b"{}", false)];
    let masked: Answers = |_| vec![frame(LAST | TEXT, b"{}", true)];
    for (answers, code) in [(binary, 1008), (compressed, 1002), (masked, 1002)] {
        let room = Room::new(NO_DELETE, answers);
        let mut connection = room.open();
        connection.send(create(json!({})));
        assert_closed(&mut connection, code);
    }
    for (said, code) in [
        (frame(LAST | BINARY, b"{}", true), 1008),
        (frame(LAST | 0x40 | TEXT, b"{}", true), 1002),
        (frame(LAST | TEXT, b"{}", false), 1002),
        (frame(LAST | TEXT, b"\xff", true), 1002),
        (frame(LAST, b"{}", true), 1002),
    ] {
        let room = Room::new(NO_DELETE, whole);
        let mut connection = room.open();
        connection.send(said);
        assert_closed(&mut connection, code);
        assert!(room.heard().is_empty());
    }
}

/// J4: neither side makes the gateway gather more than a message may have, and control frames gather nothing.
#[test]
fn a_flood_of_fragments_or_pings_is_bounded() {
    let bounded =
        |setup: Setup| setup.set("/limits/requestBodyBytes", 100_000).set("/limits/sseEventBytes", 100_000);
    let room = Room::with(NO_DELETE, whole, bounded);
    let mut connection = room.open();
    connection.send(create(json!({})));
    answer(&mut connection);
    let before = room.gateway.peak_memory();
    for _ in 0..2_000 {
        connection.send(frame(LAST | PING, &[b'p'; 125], true));
    }
    connection.send(create(json!({})));
    assert_eq!(answer(&mut connection), called("get_weather"), "pings are no messages");
    connection.send(frame(TEXT, b"{", true));
    for _ in 0..100 {
        if connection.try_send(frame(0, &[b' '; 2_000], true)).is_err() {
            break;
        }
    }
    assert_closed(&mut connection, 1002);
    assert!(room.gateway.peak_memory() < before + (8 << 20));
    assert_eq!(room.heard().len(), 2);

    let endless: Answers = |_| {
        let more = (0..100).map(|_| frame(0, &[b' '; 2_000], false));
        std::iter::once(frame(TEXT, b"{", false)).chain(more).collect()
    };
    let room = Room::with(NO_DELETE, endless, bounded);
    let mut connection = room.open();
    connection.send(create(json!({})));
    assert_closed(&mut connection, 1002);
}

/// J8: a changed policy decides the next question and the next call of an open WebSocket.
#[test]
fn a_changed_policy_decides_the_next_message_of_an_open_websocket() {
    let room = Room::new(NO_DELETE, whole);
    let mut connection = room.open();
    let tools = json!({"tools": [{"type": "web_search"}, {"type": "function", "name": "f"}]});
    connection.send(create(tools.clone()));
    assert_eq!(answer(&mut connection), called("get_weather"));

    let closed =
        "hostedTools: {action: Deny}\ntools: [{name: no-weather, tools: [get_weather], action: Deny}]";
    room.gateway.reload_policy(&serving(closed), "success");
    connection.send(create(tools));
    assert_eq!(answer(&mut connection).pop().unwrap()["type"], "response.failed");
    connection.send(create(json!({})));
    let text = Value::from(answer(&mut connection)).to_string();
    assert!(!text.contains("\"call_1\"") && text.contains("Rule: agents/test/no-weather"), "{text}");

    room.gateway.reload_policy(&serving(NO_DELETE), "success");
    connection.send(create(json!({})));
    assert_eq!(answer(&mut connection), called("get_weather"));
}

#[test]
fn rules_over_facts_are_asked_of_each_message() {
    let rule = "rules: [{name: models, when: '!event.provider.models.all(m, m == \"gpt-5\")', action: Deny, reason: No}]";
    let room = Room::new(rule, whole);
    let mut connection = room.open();

    connection.send(create(json!({"model": "gpt-5-pro"})));
    let refused = answer(&mut connection);
    assert!(refused[0].to_string().contains("/models"), "{refused:?}");
    assert_eq!(room.heard().len(), 0);

    connection.send(create(json!({})));
    assert_eq!(answer(&mut connection).last().unwrap()["type"], "response.completed");
    assert_eq!(room.heard().len(), 1);
}

/// J10: each answer of a WebSocket counts, while it is open and for the gateway after a kill.
#[test]
fn tokens_of_each_answer_of_a_websocket_count_at_once_and_after_a_kill() {
    let (place, spec) = (directory(), "limits: {tokensPerDay: 40}");
    let file = place.path().join("ledger.db").display().to_string();
    let ask = |connection: &mut Connection| {
        connection.send(create(json!({})));
        answer(connection).pop().unwrap()
    };
    let kept = |setup: Setup| setup.set("/ledger/path", file.as_str());
    let mut room = Room::with(spec, whole, kept);
    let mut connection = room.open();
    for _ in 0..2 {
        assert_eq!(ask(&mut connection)["type"], "response.completed");
    }
    poll("what the second answer spent", || {
        let tokens = "SELECT tokens FROM spent WHERE tokens = 32";
        let read = rusqlite::Connection::open(&file).unwrap();
        read.query_row(tokens, [], |row| row.get::<_, i64>(0)).ok()
    });
    room.gateway.signal("KILL");
    room.gateway.wait_for_exit();

    let room = Room::with(spec, whole, kept);
    let mut connection = room.open();
    assert_eq!(ask(&mut connection)["type"], "response.completed", "48 of 40: what is under way still ends");
    let refused = ask(&mut connection);
    assert_eq!(refused["type"], "response.failed", "{refused}");
    assert!(refused.to_string().contains("40 tokens a day"), "{refused}");
}

/// G9, D8: what is said over a WebSocket stands in no record, and a secret in it does not reach the provider.
#[test]
fn what_is_said_over_a_websocket_is_kept_nowhere() {
    let room = Room::new(NO_DELETE, whole);
    let token = ["glp", "at-Ab3dEf6hIj9kLm2nOp5q"].concat();
    let mut connection = room.open();
    let said = format!("canary-prompt {token}");
    connection.send(create(
        json!({"input": said, "instructions": "delete", "metadata": {"canary-key": "canary-value"}}),
    ));
    assert!(!answer(&mut connection).is_empty());
    let heard = room.heard().concat();
    assert!(heard.contains("canary-prompt [postern:gitlab-token]") && !heard.contains(&token), "{heard}");
    let denied = room.gateway.wait_for("ToolCall", "Deny");
    assert_eq!(denied["decision"]["rule"], "agents/test/no-delete");
    let records = [
        Value::from(room.gateway.events()).to_string(),
        room.gateway.log(),
        room.gateway.admin("/metrics").text(),
        room.gateway.status().to_string(),
    ];
    assert!(records[0].contains("gitlab-token"));
    for record in records {
        assert!(!record.contains("canary") && !record.contains(&token), "{record}");
    }
}

/// O3: long results in a question over a WebSocket are cut as over HTTP.
#[test]
fn a_long_result_over_a_websocket_is_cut() {
    let spec = "toolOutputs: {compress: {above: {lines: 40}, head: {lines: 5}, tail: {lines: 10}}}";
    let room = Room::with(spec, whole, |setup| {
        std::fs::create_dir(setup.path().join("evidence")).unwrap();
        setup.set("/evidence", json!({"directory": "evidence"}))
    });
    let mut connection = room.open();
    let said: String = (1..=300).map(|number| format!("line {number}\n")).collect();
    let input = |said: &str| {
        json!([{"role": "user", "content": "go"},
            {"type": "function_call", "call_id": "c", "name": "exec_command", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "c", "output": said}])
    };
    connection.send(create(json!({"input": input(&said)})));
    assert_eq!(answer(&mut connection), called("get_weather"));
    let heard: Value = serde_json::from_str(&room.heard()[0]).unwrap();
    let read = heard["input"][2]["output"].as_str().unwrap();
    assert!(
        read.contains("\n[postern] 285 of 300 lines (2 KB) left out. All of it: http://postern.internal/"),
        "{read}"
    );
    // The twin: a short one.
    connection.send(create(json!({"input": input("short")})));
    answer(&mut connection);
    let heard: Value = serde_json::from_str(&room.heard()[1]).unwrap();
    assert_eq!(heard["input"], input("short"));
}

/// A call of the shell, which reads what was cut where the question says so.
fn shells(question: &Value) -> Vec<Vec<u8>> {
    let reads = r#"{"cmd":"curl http://postern.internal/evidence/9f3a1c22d0e74b10aa51"}"#;
    let input = if question["instructions"] == "reads" { reads } else { r#"{"cmd":"make"}"# };
    let call = Called { id: "call_1".to_owned(), namespace: None, name: "exec_command", input };
    let events = responses::events(&Said { text: "so", calls: vec![call] });
    events.iter().map(|event| frame(LAST | TEXT, event.to_string().as_bytes(), false)).collect()
}

/// O3: an agent sends a result alone, as the provider has its call from the response before: it is known from there.
#[test]
fn a_long_result_that_comes_without_its_call_is_cut_by_what_the_answer_called() {
    let spec = "toolOutputs: {compress: {above: {lines: 40}, head: {lines: 5}, tail: {lines: 10}}}";
    let room = Room::with(spec, shells, |setup| {
        std::fs::create_dir(setup.path().join("evidence")).unwrap();
        setup.set("/evidence", json!({"directory": "evidence"}))
    });
    let said: String = (1..=300).map(|number| format!("line {number}\n")).collect();
    let mut connection = room.open();
    let mut sent = |call: &str, more: Value| {
        let result = json!([{"type": "function_call_output", "call_id": call, "output": said}]);
        let mut question = json!({"previous_response_id": "resp_1", "input": result});
        question.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        connection.send(create(question));
        while !last(&read(&mut connection).unwrap().1) {}
        let heard: Value = serde_json::from_str(room.heard().last().unwrap()).unwrap();
        heard["input"][0]["output"].as_str().unwrap().to_owned()
    };
    assert_eq!(sent("call_1", json!({})), said, "nobody has called it yet");
    let cut = sent("call_1", json!({"instructions": "reads"}));
    assert!(
        cut.contains("\n[postern] 285 of 300 lines (2 KB) left out. All of it: http://postern.internal/"),
        "{cut}"
    );
    // The twins: what reads the evidence is given all of it, and a call that nobody heard is of no known tool.
    assert_eq!(sent("call_1", json!({})), said);
    assert_eq!(sent("call_2", json!({})), said);
}

/// Whether a message ends an answer.
fn last(message: &[u8]) -> bool {
    serde_json::from_slice::<Value>(message).unwrap()["type"] == "response.completed"
}
