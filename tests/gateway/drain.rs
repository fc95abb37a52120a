//! The end of the process: what is in flight ends, nothing new begins.

use std::net::TcpStream;

use super::{halting, halting_with, inspected, inspected_with};
use crate::support::journal::poll;
use crate::support::upstream::{Gate, Step};
use crate::support::{Pki, Setup};

#[test]
fn an_idle_gateway_ends_soon_and_well() {
    let mut test = inspected();
    let _idle = test.gateway.agent().tls("api.example.com");

    let status = test.gateway.terminate();

    assert_eq!(status.code(), Some(0));
    let last = test.gateway.events().pop().unwrap();
    assert_eq!(last["kind"], "Lifecycle", "{last}");
}

#[test]
fn an_exchange_in_flight_is_finished_and_its_event_written() {
    let gate = Gate::new();
    let mut test = halting(&gate, Step::Data("second".into()));
    let address = test.gateway.address("explicit");
    let mut connection = test.gateway.agent().tls("api.example.com");
    connection.send("GET / HTTP/1.1\r\nHost: api.example.com\r\n\r\n");
    connection.read_head();
    assert_eq!(connection.read_chunk(), b"first");

    test.gateway.signal("TERM");
    poll("the listener's end", || TcpStream::connect(address).err());
    gate.open();

    assert_eq!(connection.read_chunk(), b"second");
    assert_eq!(connection.read_chunk(), b"");
    assert_eq!(test.gateway.wait_for_exit().code(), Some(0));
    test.gateway.wait_for_event("the answer", |event| event["kind"] == "Response");
}

/// The kernel chooses what the gateway sees first when it runs again, the requests or the signal: all are answered either
/// way. `listener.rs` has the twin in which it is the signal.
#[test]
fn requests_on_their_way_when_the_end_begins_are_answered() {
    let mut test = inspected_with(|setup| setup.reverse("https://api.example.com"));
    let get = "GET /echo HTTP/1.1\r\nHost: api.example.com\r\n\r\n";
    let (mut used, fresh) = (test.gateway.reverse(), test.gateway.agent().tls("api.example.com"));
    used.send(get);
    assert_eq!(used.read_answer().status, 200);

    test.gateway.pause();
    let waiting: Vec<_> = (0..40).map(|_| test.gateway.reverse()).collect();
    let mut connections: Vec<_> = [used, fresh].into_iter().chain(waiting).collect();
    connections.iter_mut().for_each(|connection| connection.send(get));
    test.gateway.signal("TERM");
    test.gateway.signal("CONT");

    for connection in &mut connections {
        assert_eq!(connection.read_answer().status, 200);
    }
    assert_eq!(test.gateway.wait_for_exit().code(), Some(0));
    assert_eq!(test.upstream.requests().len(), 43);
}

#[test]
fn what_does_not_end_within_the_grace_is_cut_and_recorded() {
    let last = Step::Data("too late".into());
    let mut test = halting_with(&Gate::new(), last, |setup| setup.set("/shutdown/grace", "300ms"));
    let mut connection = test.gateway.agent().tls("api.example.com");
    connection.send("GET / HTTP/1.1\r\nHost: api.example.com\r\n\r\n");
    connection.read_until(b"first");

    test.gateway.terminate();

    test.gateway.wait_for_event("the answer", |event| event["kind"] == "Response");
}

#[test]
fn a_port_in_use_is_said_with_the_remedy() {
    let holder = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = holder.local_addr().unwrap().to_string();
    let setup =
        Setup::new(&Pki::new("Upstream Test CA")).set("/listeners/explicit/address", address.as_str());

    let said = setup.run(&["gateway", "--config", "settings.yaml"]);

    assert_eq!(said.status.code(), Some(1), "{said:?}");
    assert!(said.stderr.contains(&address), "{}", said.stderr);
    assert_eq!(said.stdout.lines().filter(|line| !line.starts_with('{')).count(), 0);
}

#[test]
fn unknown_settings_are_refused_with_their_line() {
    let setup = Setup::new(&Pki::new("Upstream Test CA")).set("/listners", serde_json::json!({}));

    let said = setup.run(&["gateway", "--config", "settings.yaml", "--check"]);

    assert_eq!(said.status.code(), Some(1), "{said:?}");
    assert!(said.stderr.contains("listners") && said.stderr.contains("settings.yaml:"), "{}", said.stderr);
}
