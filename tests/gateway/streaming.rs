//! Bodies flow while they are being written, and end as their sender ended them.

use super::{INSPECT_API, Inspected, halting, halting_with, inspected};
use crate::support::upstream::{Gate, RawUpstream, Step, pattern};
use crate::support::{Ending, Pki, Setup};

fn two_parts(gate: &Gate) -> Inspected {
    halting(gate, Step::Data("second".into()))
}

#[test]
fn an_answer_reaches_the_agent_while_the_upstream_still_writes_it() {
    let gate = Gate::new();
    let test = two_parts(&gate);
    let mut connection = test.gateway.agent().tls("api.example.com");

    connection.send("GET / HTTP/1.1\r\nHost: api.example.com\r\n\r\n");
    assert_eq!(connection.read_head().status, 200);
    assert_eq!(connection.read_chunk(), b"first");
    gate.open();

    assert_eq!(connection.read_chunk(), b"second");
    assert_eq!(connection.read_chunk(), b"");
}

#[test]
fn an_h2_answer_reaches_the_agent_while_the_upstream_still_writes_it() {
    let gate = Gate::new();
    let test = two_parts(&gate);
    let agent = test.gateway.agent();
    let connection = agent.h2("api.example.com");
    let (writer, pending) = connection.upload("https://api.example.com/");
    drop(writer);
    let mut open = pending.head().unwrap();

    assert_eq!(open.chunk().unwrap(), "first");
    gate.open();

    assert_eq!(open.rest().body, b"second");
}

#[test]
fn a_request_body_reaches_the_upstream_while_the_agent_still_writes_it() {
    let test = inspected();
    let mut connection = test.gateway.agent().tls("api.example.com");

    connection.send("POST /echo HTTP/1.1\r\nHost: api.example.com\r\nContent-Length: 10\r\n\r\nfirst");
    test.upstream.wait_for_request("the first half", |seen| seen.body == b"first" && !seen.complete);
    connection.send("-half");

    assert_eq!(connection.read_answer().json()["body"], "first-half");
}

#[test]
fn server_sent_events_come_one_by_one() {
    let test = inspected();
    let mut connection = test.gateway.agent().tls("api.example.com");

    connection.send("GET /sse?events=3&interval=20 HTTP/1.1\r\nHost: api.example.com\r\n\r\n");
    let head = connection.read_head();

    assert_eq!(head.header("content-type"), Some("text/event-stream"));
    assert_eq!(head.header("content-length"), None);
    for n in 0..3 {
        assert_eq!(connection.read_chunk(), format!("event: tick\ndata: {{\"n\":{n}}}\n\n").as_bytes());
    }
}

#[test]
fn an_upstream_that_resets_in_the_middle_ends_the_answer_in_the_middle() {
    let gate = Gate::new();
    let test = halting(&gate, Step::Abort);
    let mut connection = test.gateway.agent().tls("api.example.com");
    connection.send("GET / HTTP/1.1\r\nHost: api.example.com\r\n\r\n");
    assert_eq!(connection.read_head().status, 200);
    assert_eq!(connection.read_chunk(), b"first");

    gate.open();

    let (Ending::Closed(rest) | Ending::Cut(rest)) = connection.ending();
    assert_eq!(rest, b"", "an answer that was cut must not look whole");
    let event = test.gateway.wait_for_event("the answer's event", |event| event["kind"] == "Response");
    assert!(event["destination"]["reason"].is_string(), "{event}");
}

#[test]
fn an_h2_answer_that_breaks_off_is_reset_on_its_stream_alone() {
    let gate = Gate::new();
    let test = halting(&gate, Step::Abort);
    let agent = test.gateway.agent();
    let connection = agent.h2("api.example.com");
    let (writer, pending) = connection.upload("https://api.example.com/");
    drop(writer);
    let mut open = pending.head().unwrap();
    assert_eq!(open.chunk().unwrap(), "first");

    gate.open();

    assert!(!open.rest().complete);
    let again = connection.request("GET", "https://api.example.com/", &[], b"");
    assert!(again.is_err() || again.is_ok_and(|answer| !answer.complete));
    assert_eq!(test.upstream.requests().len(), 2, "the connection goes on");
}

#[test]
fn an_agent_that_hangs_up_is_recorded() {
    let gate = Gate::new();
    let test = two_parts(&gate);
    let mut connection = test.gateway.agent().tls("api.example.com");
    connection.send("GET /watched HTTP/1.1\r\nHost: api.example.com\r\n\r\n");
    connection.read_until(b"first");

    drop(connection);

    let event = test.gateway.wait_for_event("the answer's event", |event| event["kind"] == "Response");
    assert_eq!(event["http"]["path"], "/watched");
    assert!(event["destination"]["reason"].is_string(), "{event}");
}

#[test]
fn an_early_answer_reaches_an_agent_that_is_still_writing() {
    let upstreams = Pki::new("Upstream Test CA");
    let upstream = RawUpstream::start(Some(&upstreams.leaf(&["api.example.com"])), |connection, heard| {
        heard.push(connection.read_until(b"\r\n\r\n"));
        connection.send("HTTP/1.1 413 Content Too Large\r\nContent-Length: 8\r\n\r\ntoo much");
        let _ = connection.ending();
    });
    let gateway = Setup::new(&upstreams)
        .host("api.example.com", upstream.address())
        .destinations(&[INSPECT_API])
        .start();
    let mut connection = gateway.agent().tls("api.example.com");

    connection.send("POST / HTTP/1.1\r\nHost: api.example.com\r\nContent-Length: 100000000\r\n\r\n");
    connection.send(pattern(64 * 1024));

    let answer = connection.read_answer();
    assert_eq!((answer.status, answer.text().as_str()), (413, "too much"));
    let again = gateway.agent().get("https://api.example.com/");
    assert_eq!((again.status, upstream.accepted()), (413, 2), "that upstream connection is not used again");
}

#[test]
fn excess_bytes_of_an_upstream_never_answer_somebody_else() {
    let upstreams = Pki::new("Upstream Test CA");
    let excess =
        "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nmineHTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nforged";
    let upstream =
        RawUpstream::start(Some(&upstreams.leaf(&["api.example.com"])), move |connection, heard| {
            heard.push(connection.read_until(b"\r\n\r\n"));
            connection.send(excess);
            let _ = connection.ending();
        });
    let gateway = Setup::new(&upstreams)
        .host("api.example.com", upstream.address())
        .destinations(&[INSPECT_API])
        .start();
    let mut connection = gateway.agent().tls("api.example.com");

    for _ in 0..2 {
        connection.send("GET / HTTP/1.1\r\nHost: api.example.com\r\n\r\n");
        assert_eq!(connection.read_answer().text(), "mine");
    }

    assert!(upstream.accepted() >= 2, "the poisoned connection was used again");
}

#[test]
fn a_request_is_sent_again_only_where_it_was_never_sent() {
    let upstreams = Pki::new("Upstream Test CA");
    let upstream = RawUpstream::start(Some(&upstreams.leaf(&["api.example.com"])), |connection, heard| {
        heard.push(connection.read_until(b"\r\n\r\n"));
    });
    let gateway = Setup::new(&upstreams)
        .host("api.example.com", upstream.address())
        .destinations(&[INSPECT_API])
        .start();

    let answer = gateway.agent().request("POST", "https://api.example.com/pay", &[], b"once");

    assert_eq!(answer.status, 502, "{answer:?}");
    assert_eq!(upstream.heard().entries().len(), 1);
}

#[test]
fn an_idle_stream_is_ended_after_its_bound() {
    let last = Step::Data("too late".into());
    let test = halting_with(&Gate::new(), last, |setup| setup.set("/timeouts/streamIdle", "300ms"));

    let answer = test.gateway.agent().get("https://api.example.com/");

    assert_eq!((answer.status, answer.complete), (200, false), "{answer:?}");
}

#[test]
fn a_get_with_a_chunked_body_keeps_it() {
    let test = inspected();
    let mut connection = test.gateway.agent().tls("api.example.com");

    connection.send(
        "GET /echo HTTP/1.1\r\nHost: api.example.com\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nquery\r\n0\r\n\r\n",
    );

    assert_eq!(connection.read_answer().json()["body"], "query");
}
