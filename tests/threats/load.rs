//! Denial of service: floods of streams, of names, and of connections that do nothing.

use std::time::Instant;

use crate::gateway::{behind, halting_with, inspected, inspected_with};
use crate::support::frames::{
    CONTINUATION, END_HEADERS, END_STREAM, Frames, GOAWAY, HEADERS, RST_STREAM, block, get,
};
use crate::support::journal::poll;
use crate::support::upstream::{Gate, RawUpstream, Reply, Seen, Step};
use crate::support::{Connection, Ending, Gateway, Pki, Setup, Upstream};

/// The error of a stream that was not looked at (RFC 9113, section 7).
const REFUSED_STREAM: u32 = 7;
const CANCEL: [u8; 4] = [0, 0, 0, 8];

/// J2: an agent that opens and resets streams without end is cut off; others are served meanwhile.
#[test]
fn a_rapid_reset_ends_its_connection() {
    let test = inspected();
    let mut frames = raw_h2(&test.gateway);
    let request = block(&get("api.example.com", "/slow?ms=5000"));

    let mut flooding = true;
    for number in 0..5_000 {
        let stream = 2 * number + 1;
        flooding = frames.try_send(HEADERS, END_STREAM | END_HEADERS, stream, &request).is_ok()
            && frames.try_send(RST_STREAM, 0, stream, &CANCEL).is_ok();
        if !flooding {
            break;
        }
    }
    let ending = std::iter::from_fn(|| frames.next()).find(|frame| frame.kind == GOAWAY);

    assert!(!flooding || ending.is_some(), "5,000 resets were taken");
    assert_eq!(test.gateway.agent().get("https://api.example.com/echo").status, 200);
    assert_eq!(test.gateway.agent().h2("api.example.com").get("https://api.example.com/echo").status, 200);
}

/// J2: streams beyond `limits.h2Streams` are refused on their own; the bound is announced, and holds.
#[test]
fn streams_over_their_number_are_refused() {
    let gate = Gate::new();
    let test = halting_with(&gate, Step::Data("last".into()), |setup| setup.set("/limits/h2Streams", 3));
    let mut frames = raw_h2(&test.gateway);
    assert_eq!(frames.streams_allowed(), Some(3));

    for stream in [1, 3, 5, 7] {
        frames.request(stream, &get("api.example.com", "/"));
    }

    let refused = frames.find(RST_STREAM, 7).unwrap();
    assert_eq!(refused.payload, REFUSED_STREAM.to_be_bytes());
    gate.open();
    assert!(frames.ending(5).is_ok_and(|said| said.ends_with("last")), "the others go on");
    assert!(test.upstream.requests().len() <= 3);
}

/// J2: a head that goes on and on in CONTINUATION frames is cut before it is held.
#[test]
fn a_flood_of_continuations_ends_its_connection() {
    let test = inspected();
    assert_eq!(test.gateway.agent().get("https://api.example.com/echo").status, 200);
    let before = test.gateway.peak_memory();
    let mut frames = raw_h2(&test.gateway);
    frames.send(HEADERS, END_STREAM, 1, &block(&get("api.example.com", "/echo")));
    let filler = block(&[("x-filler", &"y".repeat(16_000))]);

    let taken = (0..4_000).take_while(|_| frames.try_send(CONTINUATION, 0, 1, &filler).is_ok()).count();

    assert!(taken < 4_000, "64 MiB of one head were taken");
    let grown = test.gateway.peak_memory() - before;
    assert!(grown < 16 << 20, "{grown} bytes were held");
    assert_eq!(test.upstream.requests().len(), 1);
    assert_eq!(test.gateway.agent().h2("api.example.com").get("https://api.example.com/echo").status, 200);
}

/// J3: names that no rule inspects mint nothing, however many come.
#[test]
fn random_names_mint_nothing() {
    let test = inspected();
    for number in 0..50 {
        let name = format!("r{number}.random.example.net");
        assert!(test.gateway.agent().dial(&name).authority("192.0.2.7:443").open().is_err());
        assert_eq!(test.gateway.agent().connect(&format!("{name}:443")).err().unwrap().status, 403);
    }
    assert_eq!(test.gateway.metric("postern_leaf_certificates_minted_total", &[]), 0.0);
    assert!(test.upstream.links().is_empty());

    for _ in 0..3 {
        assert_eq!(test.gateway.agent().get("https://api.example.com/echo").status, 200);
    }
    assert_eq!(test.gateway.metric("postern_leaf_certificates_minted_total", &[]), 1.0);
}

/// J3: leaves for the names under a wildcard are kept up to `limits.leafCache`, and no name is minted twice at once.
#[test]
fn leaves_are_kept_up_to_their_number() {
    let names: Vec<String> = (0..12).map(|number| format!("n{number}.example.com")).collect();
    let listed: Vec<&str> = names.iter().map(String::as_str).collect();
    let upstreams = Pki::new("Upstream Test CA");
    let upstream = Upstream::tls(&upstreams, &listed);
    let setup = Setup::new(&upstreams)
        .destinations(&["{name: all, hosts: ['*.example.com'], action: Inspect}"])
        .set("/limits/leafCache", 4);
    let gateway = listed.iter().fold(setup, |setup, name| setup.host(name, upstream.address())).start();
    let minted = || gateway.metric("postern_leaf_certificates_minted_total", &[]);
    let agent = gateway.agent();

    for name in &listed {
        agent.tls(name);
    }
    assert_eq!(minted(), 12.0);
    // The twin: names within the number are kept, and many askers at once wait for one leaf.
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| agent.tls("n0.example.com"));
        }
    });
    agent.tls("n0.example.com");
    assert!(minted() <= 13.0, "{}", minted());
    listed.iter().for_each(|name| drop(agent.tls(name)));
    assert!(minted() > 13.0, "those beyond it were dropped");
}

/// J6: a connection that does nothing ends within its bound, at whatever step it stopped; one in use does not.
#[test]
fn connections_that_do_nothing_end_within_their_bounds() {
    let gate = Gate::new();
    let test = halting_with(&gate, Step::Data("last".into()), |setup| {
        setup
            .set("/timeouts/sniff", "300ms")
            .set("/timeouts/agentHead", "300ms")
            .set("/timeouts/keepAlive", "300ms")
            .reverse("https://api.example.com")
    });
    let agent = test.gateway.agent();
    let mut used = agent.tls("api.example.com");
    used.send("GET / HTTP/1.1\r\nHost: api.example.com\r\n\r\n");
    used.read_until(b"first");
    let half = |mut connection: Connection, text: &[u8]| {
        connection.send(text);
        connection
    };

    let idle = [
        ("nothing", agent.open()),
        ("half of CONNECT", half(agent.open(), b"CONNECT api.example")),
        ("CONNECT alone", agent.connect("api.example.com:443").unwrap()),
        (
            "half a ClientHello",
            half(agent.connect("api.example.com:443").unwrap(), b"\x16\x03\x01\x02\0\x01\0"),
        ),
        ("half a word", half(agent.connect("api.example.com:443").unwrap(), b"GE")),
        ("a handshake alone", agent.tls("api.example.com")),
        ("half a head", half(agent.tls("api.example.com"), b"GET / HTTP/1.1\r\nHo")),
        ("nothing to a reverse listener", test.gateway.reverse()),
        ("half a head to it", half(test.gateway.reverse(), b"GET")),
        ("h2 without a word", agent.dial("api.example.com").protocols(&["h2"]).open().unwrap()),
    ];
    for (what, mut connection) in idle {
        let begun = Instant::now();
        let (Ending::Closed(said) | Ending::Cut(said)) = connection.ending();
        assert!(!said.starts_with(b"HTTP/1.1 2"), "{what}: {}", String::from_utf8_lossy(&said));
        assert!(begun.elapsed().as_secs() < 8, "{what}: {:?}", begun.elapsed());
    }
    assert_eq!(test.gateway.metric("postern_connections_open", &[]), 1.0);

    gate.open();
    used.read_until(b"last");
    poll("every connection's end", || {
        (test.gateway.metric("postern_connections_open", &[]) == 0.0).then_some(())
    });
}

/// J6: an h2 connection without a request ends too, whether it never made one or has made its last.
#[test]
fn an_idle_h2_connection_ends_within_its_bound() {
    let test =
        inspected_with(|setup| setup.set("/timeouts/agentHead", "300ms").set("/timeouts/keepAlive", "300ms"));

    let mut silent = raw_h2(&test.gateway);
    assert!(silent.find(GOAWAY, 0).is_some());
    let mut done = raw_h2(&test.gateway);
    done.request(1, &get("api.example.com", "/echo"));
    assert!(done.ending(1).unwrap().contains("/echo"));
    assert!(done.find(GOAWAY, 0).is_some());
    drop((silent, done));

    poll("every connection's end", || {
        (test.gateway.metric("postern_connections_open", &[]) == 0.0).then_some(())
    });
    for reason in ["head_timeout", "keep_alive"] {
        test.gateway.wait_for_metric("postern_connections_closed_total", &[("reason", reason)], 1.0);
    }
    test.gateway.wait_for_metric("postern_requests_total", &[("verdict", "Allow")], 1.0);
}

/// J6: a tunnel and a WebSocket on which nothing flows end after `timeouts.streamIdle`; the upstream's side too.
#[test]
fn a_tunnel_or_websocket_on_which_nothing_flows_ends() {
    let server = RawUpstream::start(None, |connection, heard| {
        connection.send("hello\n");
        let (Ending::Closed(rest) | Ending::Cut(rest)) = connection.ending();
        heard.push(rest);
    });
    let upstreams = Pki::new("Upstream Test CA");
    let upstream = Upstream::tls(&upstreams, &["api.example.com"]);
    let gateway = Setup::new(&upstreams)
        .host("api.example.com", upstream.address())
        .host("db.example.com", server.address())
        .set("/timeouts/streamIdle", "300ms")
        .destinations(&[
            "{name: api, hosts: [api.example.com], action: Inspect, upgrade: Allow}",
            "{name: db, hosts: [db.example.com], ports: [5432], action: Tunnel, protocol: Opaque}",
        ])
        .start();

    let mut tunnel = gateway.agent().connect("db.example.com:5432").unwrap();
    assert_eq!(tunnel.read_until(b"\n"), b"hello\n");
    assert!(matches!(tunnel.ending(), Ending::Closed(rest) | Ending::Cut(rest) if rest.is_empty()));
    server.heard().wait_for("the tunnel's end", |rest| rest.is_empty());

    let mut websocket = gateway.agent().tls("api.example.com");
    websocket.send(
        "GET /ws HTTP/1.1\r\nHost: api.example.com\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
         Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n",
    );
    assert_eq!(websocket.read_head().status, 101);
    websocket.send([0x81, 0x82, 1, 2, 3, 4, b'h' ^ 1, b'i' ^ 2]);
    assert_eq!(websocket.read_exactly(4), b"\x81\x02hi");
    assert!(matches!(websocket.ending(), Ending::Closed(rest) | Ending::Cut(rest) if rest.is_empty()));
    poll("every connection's end", || (gateway.metric("postern_connections_open", &[]) == 0.0).then_some(()));
}

/// J6: an agent that stops writing its body, or stops reading its answer, does not hold its upstream for ever.
#[test]
fn an_agent_that_stops_in_the_middle_is_let_go() {
    let chunk = Step::Data(vec![b'x'; 1 << 20].into());
    let script =
        move |seen: &Seen| (seen.path() == "/long").then(|| Reply::streaming(vec![chunk.clone(); 64]));
    let test = behind(Upstream::build().script(script), |setup| {
        let bounds = ["streamIdle", "upstreamHead", "connect"];
        bounds.iter().fold(setup, |setup, name| setup.set(&format!("/timeouts/{name}"), "1s"))
    });
    let agent = test.gateway.agent();
    let mut writing = agent.tls("api.example.com");
    writing.send("POST /echo HTTP/1.1\r\nHost: api.example.com\r\nContent-Length: 10\r\n\r\nhalf");
    let mut reading = agent.tls("api.example.com");
    reading.send("GET /long HTTP/1.1\r\nHost: api.example.com\r\n\r\n");
    assert_eq!(reading.read_head().status, 200);
    // A client that reads nothing more, and gives its stream no window.
    let mut frames = raw_h2(&test.gateway);
    frames.request(1, &get("api.example.com", "/long"));

    let (Ending::Closed(said) | Ending::Cut(said)) = writing.ending();
    assert!(!said.starts_with(b"HTTP/1.1 2"), "{}", String::from_utf8_lossy(&said));
    poll("the end of what nobody reads", || {
        let events = test.gateway.events().into_iter();
        let cut = events.filter(|event| {
            event["kind"] == "Response"
                && event["http"]["path"] == "/long"
                && event["destination"]["reason"].is_string()
        });
        (cut.count() == 2).then_some(())
    });
    poll("every connection's end", || {
        (test.gateway.metric("postern_connections_open", &[]) == 0.0).then_some(())
    });

    assert_eq!(
        agent.get("https://api.example.com/long").body.len(),
        64 << 20,
        "the twin: one that reads gets all"
    );
}

fn raw_h2(gateway: &Gateway) -> Frames {
    Frames::open(gateway.agent().dial("api.example.com").protocols(&["h2"]).open().unwrap())
}
