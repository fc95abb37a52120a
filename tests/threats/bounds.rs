//! Bounds of what an agent may send to a model: how much at once, how much over all, how often, and how they are told.

use crate::support::journal::poll;
use crate::support::upstream::{Reply, Seen};
use crate::support::{Answer, Ending};

use super::requests::{
    Asked, CHAT, GEMINI, MESSAGES, Models, RESPONSES, hosted_tool, models, models_with, offering, own_tool,
    reply, said,
};

const BOUND: &str = "postern/builtin/bound";
const LIMITS: &str = "agents/test/limits";

/// A request of this many bytes for Anthropic.
fn padded(length: usize) -> String {
    let body = |pad: usize| said(MESSAGES, &format!(r#""pad":"{}","#, "a".repeat(pad)));
    body(length - body(0).len())
}

/// The head of a request for Anthropic with a body of this many bytes.
fn head(length: usize) -> String {
    format!("POST /v1/messages HTTP/1.1\r\nHost: api.anthropic.com\r\nContent-Length: {length}\r\n\r\n")
}

/// K2: a client that writes 40 MB before it reads anything reads a 413, and an orderly end after it.
#[test]
fn a_client_that_writes_first_reads_its_413() {
    let test = models("");
    let before = test.gateway.peak_memory();
    let mut connection = test.gateway.agent().tls("api.anthropic.com");
    connection.send(head(40_000_000));
    let piece = vec![b'a'; 1_000_000];
    for number in 0..40 {
        assert!(connection.try_send(&piece).is_ok(), "after {number} MB the connection was gone");
    }
    connection.read_answer().assert_refused_by_provider(BOUND);
    assert_eq!(connection.ending(), Ending::Closed(Vec::new()));
    assert!(test.upstream.requests().is_empty());
    let grown = test.gateway.peak_memory() - before;
    assert!(grown < 20 << 20, "{grown} bytes for a body that nobody reads");
    let event = test.gateway.wait_for("Request", "Deny");
    assert_eq!((&event["decision"]["rule"], &event["http"]["status"]), (&BOUND.into(), &413.into()));
}

/// K2: the same without a length, which is noticed only once the bound is reached.
#[test]
fn a_client_that_says_no_length_reads_its_413_too() {
    let test = models("limits: {requestBodyBytes: 1000000}");
    let mut connection = test.gateway.agent().tls("api.anthropic.com");
    connection
        .send("POST /v1/messages HTTP/1.1\r\nHost: api.anthropic.com\r\nTransfer-Encoding: chunked\r\n\r\n");
    let chunk = [b"f4240\r\n", &vec![b'a'; 1_000_000][..], b"\r\n"].concat();
    for number in 0..20 {
        assert!(connection.try_send(&chunk).is_ok(), "after {number} MB the connection was gone");
    }
    connection.send("0\r\n\r\n");
    connection.read_answer().assert_refused_by_provider(BOUND);
    assert_eq!(connection.ending(), Ending::Closed(Vec::new()));
    assert!(test.upstream.requests().is_empty());
    assert_eq!(test.post(MESSAGES, padded(999_999)).seen().body.len(), 999_999);
}

/// K2: over h2 the stream alone is refused, and the connection goes on.
#[test]
fn over_h2_a_413_leaves_the_connection_as_it_is() {
    let test = models("");
    let connection = test.gateway.agent().h2("api.anthropic.com");
    let ask = |body: &[u8]| connection.request("POST", &format!("https://{MESSAGES}"), &[], body).unwrap();

    ask(&vec![b'a'; 40_000_000]).assert_refused_by_provider(BOUND);

    assert!(test.upstream.requests().is_empty());
    assert_eq!(ask(said(MESSAGES, "").as_bytes()).status, 200);
    assert_eq!(test.upstream.requests().len(), 1);
}

/// J1: a body for which there is no room is refused before a byte of it is read, and the next one has room again.
#[test]
fn a_body_for_which_there_is_no_room_is_refused_before_it_is_read() {
    let test =
        models_with("", |seen| reply(seen.path()), |setup| setup.set("/limits/bufferedBytes", 1_000_000));
    let body = padded(600_000);
    let mut first = test.gateway.agent().tls("api.anthropic.com");
    first.send(head(body.len()));
    first.send(&body.as_bytes()[..1000]);
    test.gateway.wait_for_metric("postern_buffered_bytes", &[], 600_000.0);

    let mut second = test.gateway.agent().tls("api.anthropic.com");
    second.send(head(body.len()));
    let answer = second.read_answer();

    assert_eq!((answer.status, answer.header("x-postern-rule")), (503, Some(BOUND)), "{answer:?}");
    assert!(answer.text().contains("limits.bufferedBytes"), "{answer:?}");
    let event = test.gateway.wait_for("Request", "Deny");
    assert_eq!(event["decision"]["rule"], BOUND);
    assert!(test.upstream.requests().is_empty());
    first.send(&body.as_bytes()[1000..]);
    assert_eq!(first.read_answer().status, 200);
    assert_eq!(test.post(MESSAGES, &body).seen().body, body.as_bytes());
    assert_eq!(test.gateway.metric("postern_limit_refusals_total", &[("limit", "bufferedBytes")]), 1.0);
}

/// J1: a request of 30 MB is held once, not copied over and over.
#[test]
fn a_large_request_is_held_once() {
    let test = models("");
    assert_eq!(test.post(MESSAGES, said(MESSAGES, "")).answer.status, 200);
    let before = test.gateway.peak_memory();
    let body = padded(30 << 20);

    let asked = test.post(MESSAGES, &body);

    assert_eq!(asked.answer.status, 200, "{:?}", asked.answer);
    assert!(asked.seen().body == body.as_bytes());
    let grown = test.gateway.peak_memory() - before;
    // Once whole, with what TLS, two sockets and the document need beside it.
    assert!(grown < 45 << 20, "{} MiB for 30", grown >> 20);
}

/// J1: a request of 30 MB that is edited is held as it came and as it goes on, and then no more.
#[test]
fn a_large_request_that_is_edited_is_held_twice() {
    let test = models("");
    let own = own_tool(MESSAGES);
    assert_eq!(test.post(MESSAGES, said(MESSAGES, "")).answer.status, 200);
    let before = test.gateway.peak_memory();
    let body = padded(30 << 20);
    let offering = |tools: &str| {
        let tools = format!(r#""tools":[{tools}],"messages""#);
        body.replacen(r#""messages""#, &tools, 1)
    };

    let edited = test.post(MESSAGES, offering(&format!("{},{own}", hosted_tool(MESSAGES))));

    assert!(edited.seen().body == offering(own).as_bytes());
    let grown = test.gateway.peak_memory() - before;
    // 60 MiB, and not another 30.
    assert!(grown < 85 << 20, "{} MiB for 30 that are edited", grown >> 20);
    poll("the end of what was held", || {
        (test.gateway.metric("postern_buffered_bytes", &[]) == 0.0).then_some(())
    });
}

/// K3: a WebSocket is refused before anybody upstream is asked, as Codex falls back from, and its connection goes on.
#[test]
fn a_websocket_is_refused_at_once_and_its_connection_goes_on() {
    let test = models("");
    let mut connection = test.gateway.agent().tls("api.openai.com");
    connection.send(
        "GET /v1/responses HTTP/1.1\r\nHost: api.openai.com\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
         Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\
         OpenAI-Beta: responses_websockets=2026-02-06\r\n\r\n",
    );
    let refused = connection.read_answer();

    refused.assert_refused(426, "postern/builtin/provider-state");
    assert!(test.upstream.requests().is_empty());
    let body = offering(RESPONSES, &[own_tool(RESPONSES)]);
    connection.send(format!(
        "POST /v1/responses HTTP/1.1\r\nHost: api.openai.com\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    ));
    assert_eq!(connection.read_answer().status, 200);
    assert_eq!(test.upstream.requests()[0].body, body.as_bytes());
}

/// Asserts a refusal by a limit that time lifts, in the form that this dialect's clients show once.
#[track_caller]
fn assert_limited(test: &Models, door: &str, asked: &Asked, reason: &str) {
    let Asked { answer, reached, .. } = asked;
    assert_eq!(answer.header("x-postern-rule"), Some(LIMITS), "{answer:?}");
    assert!(reached.is_empty() && answer.text().contains(reason), "{answer:?}");
    test.assert_denial_is_told(asked, LIMITS);
    if door == MESSAGES {
        let wait: u64 = answer.header("retry-after").unwrap().parse().unwrap();
        assert!(answer.status == 429 && wait > 0, "{answer:?}");
        assert_eq!(answer.header("x-should-retry"), Some("false"));
    } else {
        assert_eq!(answer.status, 400, "{answer:?}");
        assert_eq!(answer.header("retry-after"), None);
    }
}

/// J10: requests are counted per pod and credential, not by the session that an agent says, and not by dialect.
#[test]
fn requests_beyond_the_limit_of_a_minute_are_refused() {
    let test = models("limits: {requestsPerMinute: 3}");
    for door in [MESSAGES, CHAT, GEMINI] {
        assert_eq!(test.post(door, said(door, "")).answer.status, 200, "{door}");
    }
    for door in [MESSAGES, CHAT, RESPONSES, GEMINI] {
        let headers = [("session-id", "another"), ("x-claude-code-session-id", "another")];
        assert_limited(&test, door, &test.post_with(door, &headers, said(door, "")), "3 requests a minute");
    }
    test.gateway.reload_policy(&super::requests::policy("limits: {requestsPerMinute: 4}"), "success");
    assert_eq!(
        test.post(MESSAGES, said(MESSAGES, "")).answer.status,
        200,
        "a refused request does not count"
    );
}

/// J10: tokens are counted as providers say them, until the day ends.
#[test]
fn tokens_beyond_the_limit_of_a_day_are_refused() {
    let test = models("limits: {tokensPerDay: 20}");
    for door in [MESSAGES, CHAT] {
        let asked = test.post(door, said(door, ""));
        assert_eq!(asked.answer.status, 200, "{door}");
        let usage = &test.event_of(&asked, "Response", "Allow")["usage"];
        assert_eq!((&usage["inputTokens"], &usage["outputTokens"]), (&7.into(), &9.into()), "{door}");
    }
    for door in [MESSAGES, RESPONSES] {
        assert_limited(&test, door, &test.post(door, said(door, "")), "20 tokens a day");
    }
}

/// J10, F22: a model that tries what is denied over and over is stopped; an allowed call between starts the count anew.
#[test]
fn denials_in_a_row_end_the_conversation() {
    let call = |seen: &Seen| {
        let name = seen.header("x-call").unwrap_or("look_up");
        let body = format!(
            r#"{{"id":"msg_1","type":"message","role":"assistant","model":"m","content":[{{"type":"tool_use","id":"t1","name":"{name}","input":{{}}}}],"stop_reason":"tool_use","stop_sequence":null,"usage":{{"input_tokens":7,"output_tokens":9}}}}"#
        );
        Reply::of(200, body).header("content-type", "application/json")
    };
    let spec =
        "tools: [{name: no-delete, tools: [delete_file], action: Deny}]\nlimits: {consecutiveDenials: 2}";
    let test = models_with(spec, call, |setup| setup);
    let ask = |name: &str| {
        let asked = test.post_with(MESSAGES, &[("x-call", name)], said(MESSAGES, ""));
        let is_replaced = asked.answer.text().contains("no-delete");
        assert_eq!(is_replaced, asked.answer.status == 200 && name == "delete_file", "{:?}", asked.answer);
        asked
    };

    let passed: Vec<Answer> =
        ["delete_file", "look_up", "delete_file", "delete_file"].map(|name| ask(name).answer).into();
    assert!(passed.iter().all(|answer| answer.status == 200));
    for name in ["delete_file", "look_up"] {
        let asked = ask(name);
        asked.answer.assert_refused_by_provider(LIMITS);
        assert!(asked.reached.is_empty());
        test.assert_denial_is_told(&asked, LIMITS);
    }
}
