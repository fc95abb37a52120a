//! Memory that agents make the gateway hold: half a head, bodies and answers that nobody reads, on many connections.

use crate::gateway::{Inspected, behind};
use crate::support::frames::{DATA, END_HEADERS, Frames, HEADERS, SETTINGS, block, get};
use crate::support::journal::poll;
use crate::support::upstream::{RawUpstream, Reply, Seen, Step, Upstream};
use crate::support::{Agent, Connection, Gateway, Pki, Setup};

const BOUND: &str = "postern/builtin/bound";

/// A head that does not end, just below `limits.headerBytes`.
fn half_head(start: &str) -> Vec<u8> {
    format!("{start}\r\nHost: api.example.com\r\nX-Filler: {}", "y".repeat(60_000)).into_bytes()
}

/// An upstream with `/long`, 64 MiB, behind a gateway that holds so many bytes at most.
fn bounded(bytes: u64) -> Inspected {
    let chunk = Step::Data(vec![b'x'; 1 << 20].into());
    let script =
        move |seen: &Seen| (seen.path() == "/long").then(|| Reply::streaming(vec![chunk.clone(); 64]));
    behind(Upstream::build().script(script), |setup| setup.set("/limits/bufferedBytes", bytes))
}

fn held(gateway: &Gateway) -> f64 {
    gateway.metric("postern_buffered_bytes", &[])
}

fn refused(gateway: &Gateway) -> f64 {
    gateway.metric("postern_limit_refusals_total", &[("limit", "bufferedBytes")])
}

/// Waits until everything that was held has been let go, and new work is served again.
#[track_caller]
fn assert_served_again(test: &Inspected) {
    poll("the end of what was held", || (held(&test.gateway) == 0.0).then_some(()));
    assert_eq!(test.gateway.agent().get("https://api.example.com/echo").status, 200);
}

/// J1: half-sent heads count against `limits.bufferedBytes`, wherever they are awaited; beyond it a head is refused in
/// words, and what is under way goes on.
#[test]
fn half_heads_of_many_connections_fit_into_the_bound() {
    let test = bounded(4 << 20);
    let agent = test.gateway.agent();
    let mut reading = agent.tls("api.example.com");
    reading.send("GET /long HTTP/1.1\r\nHost: api.example.com\r\n\r\n");
    assert_eq!(reading.read_head().status, 200);
    let before = test.gateway.peak_memory();

    let ways: [fn(&Agent) -> Connection; 3] = [
        |agent| agent.tls("api.example.com"),
        |agent| agent.connect("api.example.com:80").unwrap(),
        Agent::open,
    ];
    let starts = ["GET / HTTP/1.1", "GET / HTTP/1.1", "CONNECT api.example.com:443 HTTP/1.1"];
    let open: Vec<Connection> = (0..180)
        .map(|number| {
            let mut connection = ways[number % 3](&agent);
            // One that is refused may be gone before all of it was sent.
            let _ = connection.try_send(half_head(starts[number % 3]));
            connection
        })
        .collect();
    poll("refusals", || (refused(&test.gateway) >= 100.0).then_some(()));

    for mut connection in open.into_iter().rev().take(3) {
        let answer = connection.read_answer();
        assert_eq!((answer.status, answer.header("x-postern-rule")), (503, Some(BOUND)), "{answer:?}");
        assert!(answer.text().contains("limits.bufferedBytes"), "{answer:?}");
    }
    assert!(test.gateway.events().iter().any(|event| event["decision"]["rule"] == BOUND));
    let grown = test.gateway.peak_memory() - before;
    assert!(grown < 16 << 20, "{} KiB for 4 MiB", grown >> 10);
    let chunks = std::iter::from_fn(|| Some(reading.read_chunk()).filter(|chunk| !chunk.is_empty()));
    assert_eq!(chunks.map(|chunk| chunk.len()).sum::<usize>(), 64 << 20, "what is under way goes on");
    drop(reading);
    assert_served_again(&test);
}

/// J1: what an h2 agent may send before it is read shrinks with the number of connections and counts against
/// `limits.bufferedBytes`; beyond it a body is refused.
#[test]
fn request_bodies_that_nobody_reads_fit_into_the_bound() {
    // It takes what the first window of its connection allows, and grants nothing more.
    let upstream = RawUpstream::start(None, |connection, _| {
        connection.send([0, 0, 0, SETTINGS, 0, 0, 0, 0, 0]);
        while connection.try_read().is_some() {}
    });
    let gateway = Setup::new(&Pki::new("Upstream Test CA"))
        .host("api.example.com", upstream.address())
        .destinations(&["{name: api, hosts: [api.example.com], action: Inspect}"])
        .set("/limits/bufferedBytes", 16 << 20)
        .start();
    let agent = gateway.agent();
    let before = gateway.peak_memory();

    let open: Vec<(Frames, usize)> = (0..64)
        .map(|_| {
            let mut frames = Frames::open(agent.connect("api.example.com:80").unwrap());
            let window = fill(&mut frames);
            (frames, window)
        })
        .collect();
    poll("refusals", || (refused(&gateway) >= 32.0).then_some(()));

    let sent: usize = open.iter().map(|(_, window)| window).sum();
    assert!(sent > 32 << 20, "the test is about more than fits: {sent}");
    let (first, last) = (open[0].1, open[63].1);
    assert!(first >= 2 << 20 && last < first / 4, "{first} {last}");
    // What is under way may always have one piece on its way.
    assert!(held(&gateway) <= f64::from(20 << 20), "{}", held(&gateway));
    let grown = gateway.peak_memory() - before;
    assert!(grown < 40 << 20, "{} KiB for 16 MiB", grown >> 10);
    drop(open);
    poll("the end of what was held", || (held(&gateway) == 0.0).then_some(()));
    let mut again = Frames::open(agent.connect("api.example.com:80").unwrap());
    assert!(fill(&mut again) > 1 << 20, "windows grow again");
}

/// Sends as much of two bodies as the windows of an h2 connection allow. Answers how much that is.
fn fill(frames: &mut Frames) -> usize {
    let (stream, connection) = frames.windows();
    let fields =
        [(":method", "POST"), (":scheme", "http"), (":authority", "api.example.com"), (":path", "/upload")];
    let piece = [b'x'; 16 << 10];
    let mut left = connection;
    for id in [1, 3] {
        frames.send(HEADERS, END_HEADERS, id, &block(&fields));
        let mut may = stream.min(left);
        left -= may;
        while may > 0 {
            let length = may.min(piece.len());
            frames.send(DATA, 0, id, &piece[..length]);
            may -= length;
        }
    }
    connection - left
}

/// J1: an agent that does not read its answers makes its upstreams wait, over HTTP/1.1 and h2, and not the gateway grow.
#[test]
fn answers_that_nobody_reads_fit_into_the_bound() {
    let test = bounded(16 << 20);
    let agent = test.gateway.agent();
    assert_eq!(agent.get("https://api.example.com/echo").status, 200);
    let before = test.gateway.peak_memory();

    let plain: Vec<Connection> = (0..160)
        .map(|_| {
            let mut connection = agent.tls("api.example.com");
            connection.send("GET /long HTTP/1.1\r\nHost: api.example.com\r\n\r\n");
            connection
        })
        .collect();
    let multiplexed: Vec<Frames> = (0..20)
        .map(|_| {
            let mut frames = Frames::open(agent.dial("api.example.com").protocols(&["h2"]).open().unwrap());
            frames.grant(1 << 30);
            (0..10).for_each(|number| frames.request(2 * number + 1, &get("api.example.com", "/long")));
            frames
        })
        .collect();
    let asked = || test.gateway.metric("postern_requests_total", &[]);
    poll("every request", || (asked() >= 361.0).then_some(()));

    // Beyond the bound each of the 360 answers may have one piece on its way.
    assert!(held(&test.gateway) <= f64::from(32 << 20), "{}", held(&test.gateway));
    // Besides the bound there are the connections, their TLS, and what the allocator keeps: 50 to 75 MiB were seen.
    let grown = test.gateway.peak_memory() - before;
    assert!(grown < 128 << 20, "{} KiB for 16 MiB", grown >> 10);
    drop((plain, multiplexed));
    assert_served_again(&test);
    assert_eq!(agent.get("https://api.example.com/long").body.len(), 64 << 20, "one that reads gets all");
}
