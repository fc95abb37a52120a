//! Floods of refusals: they rotate no evidence away, nothing of them is lost, and they hold up nobody else.

use std::collections::BTreeSet;
use std::time::Instant;

use serde_json::Value;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use crate::gateway::{inspected, inspected_with};
use crate::support::Gateway;
use crate::support::frames::{Frames, HEADERS, get};
use crate::support::journal::poll;

/// Agents that ask at the same time, and how often each does.
const AGENTS: usize = 8;
const EACH: usize = 250;
const ALL: u64 = (AGENTS * EACH) as u64;
/// Lines a second that equal refusals of one rule are: 20 by themselves, and their number.
const LINES: u64 = 21;
/// So many refusals on one connection that the next one waits for about a second.
const MANY: u32 = 28;

/// J11: cheap events push out nothing else.
/// J21: thousands of refused CONNECTs are some lines whose counts add up; each refusal's event is found by its id, and
/// the one request that was allowed stands by itself.
#[test]
fn refused_connections_are_counted_and_none_is_lost() {
    let mut test = inspected();
    let began = Instant::now();
    let gateway = &test.gateway;
    let flood = || {
        let agent = gateway.agent();
        let ids = (0..EACH).map(|_| {
            let refused = agent.connect("evil.example.net:443").err().unwrap();
            refused.assert_refused(403, "postern/builtin/default-deny");
            refused.header("x-postern-event").unwrap().to_owned()
        });
        ids.collect::<Vec<String>>()
    };
    let ids: Vec<String> = std::thread::scope(|scope| {
        let floods: Vec<_> = (0..AGENTS).map(|_| scope.spawn(flood)).collect();
        assert_eq!(gateway.agent().get("https://api.example.com/echo").status, 200);
        floods.into_iter().flat_map(|flood| flood.join().unwrap()).collect()
    });
    assert_eq!(
        gateway.metric("postern_connections_total", &[("mode", "explicit"), ("action", "Deny")]),
        ALL as f64
    );

    poll("all of them to be written", || (counted(&refusals(gateway)) == ALL).then_some(()));

    let written = refusals(gateway);
    let most = LINES * (began.elapsed().as_secs() + 2);
    assert!(written.len() as u64 <= most, "{} lines, {most} at most", written.len());
    for id in &ids {
        assert!(written.iter().any(|event| stands_for(event, id)), "nobody knows what became of {id}");
    }
    let allowed = |kind: &str| {
        let events = gateway.events().into_iter();
        events.filter(|event| event["kind"] == kind && event["decision"]["verdict"] == "Allow").count()
    };
    assert_eq!((allowed("Connection"), allowed("Request"), allowed("Response")), (1, 1, 1));

    // What is counted when the gateway stops is written before it ends.
    for _ in 0..100 {
        assert!(gateway.agent().connect("late.example.net:443").is_err());
    }
    assert!(test.gateway.terminate().success());
    assert_eq!(counted(&refusals(&test.gateway)), ALL + 100);
    let sequences = test.gateway.events().into_iter().map(|event| event["sequence"].as_u64().unwrap());
    assert!(sequences.enumerate().all(|(at, sequence)| sequence == at as u64 + 1), "a gap");
}

/// J21: the same of requests that are denied on inspected connections, whatever their paths are; and a path or method
/// as long as a head makes no long line.
#[test]
fn denied_requests_are_counted_and_short() {
    let test = inspected_with(|setup| {
        setup.destinations(&[
            "{name: api, hosts: [api.example.com], action: Inspect, endpoints: [{methods: [GET], path: /echo}]}",
        ])
    });
    let long = "x".repeat(60_000);
    std::thread::scope(|scope| {
        for number in 0..AGENTS {
            let (gateway, long) = (&test.gateway, &long);
            scope.spawn(move || {
                for _ in 0..4 {
                    let mut connection = gateway.agent().tls("api.example.com");
                    for request in 0..20 {
                        let path = format!("/secret/{number}/{request}/{long}");
                        connection.send(format!("GET {path} HTTP/1.1\r\nHost: api.example.com\r\n\r\n"));
                        connection.read_answer().assert_refused(403, "postern/builtin/endpoint");
                    }
                }
            });
        }
        assert_eq!(test.gateway.agent().get("https://api.example.com/echo").status, 200);
    });
    let all = AGENTS as u64 * 4 * 20;

    poll("all of them to be written", || (counted(&refusals(&test.gateway)) == all).then_some(()));

    let written = refusals(&test.gateway);
    assert!(written.len() < all as usize, "{} lines", written.len());
    assert!(written.iter().all(|event| event.to_string().len() < 4_096));
    let requests = [("verdict", "Deny")];
    assert_eq!(test.gateway.metric("postern_requests_total", &requests), all as f64);
}

/// J21: refusals on one connection wait longer and longer; a request beside them, on the same connection, does not.
#[test]
fn what_is_allowed_overtakes_what_is_refused_again_and_again() {
    let test = inspected_with(|setup| {
        setup.destinations(&[
            "{name: api, hosts: [api.example.com], action: Inspect, endpoints: [{methods: [GET], path: /echo}]}",
        ])
    });
    let stream = test.gateway.agent().dial("api.example.com").protocols(&["h2"]).open().unwrap();
    let mut frames = Frames::open(stream);
    frames.request(1, &get("api.example.com", "/echo"));
    assert!(frames.ending(1).unwrap().contains("/echo"));
    for number in 1..=MANY {
        frames.request(2 * number + 1, &get("api.example.com", "/secret"));
        frames.find(HEADERS, 2 * number + 1).unwrap();
    }

    let (refused, allowed) = (2 * MANY + 3, 2 * MANY + 5);
    frames.request(refused, &get("api.example.com", "/secret"));
    frames.request(allowed, &get("api.example.com", "/echo"));

    let heads = std::iter::from_fn(|| frames.next()).filter(|frame| frame.kind == HEADERS);
    let order: Vec<u32> =
        heads.map(|frame| frame.stream).filter(|stream| *stream >= refused).take(2).collect();
    assert_eq!(order, [allowed, refused]);
}

/// The events of connections and requests that were refused.
fn refusals(gateway: &Gateway) -> Vec<Value> {
    let mut events = gateway.events();
    let kinds = BTreeSet::from(["Connection", "Request"]);
    events.retain(|event| {
        kinds.contains(event["kind"].as_str().unwrap()) && event["decision"]["verdict"] == "Deny"
    });
    events
}

/// How many happenings events stand for.
fn counted(events: &[Value]) -> u64 {
    events.iter().map(|event| event["count"].as_u64().unwrap()).sum()
}

/// Whether an event is the one with this id, or counts it: ids begin with the time at which they were made.
fn stands_for(event: &Value, id: &str) -> bool {
    let text = |field: &str| event[field].as_str().unwrap();
    if text("id") == id {
        return true;
    }
    let Some(last) = event["last"].as_str() else { return false };
    let millis = |time: &str| {
        let time = OffsetDateTime::parse(time, &Rfc3339).unwrap();
        time.unix_timestamp_nanos() / 1_000_000
    };
    let made = i128::from_str_radix(&id.replace('-', "")[..12], 16).unwrap();
    (millis(text("time"))..=millis(last)).contains(&made)
}
