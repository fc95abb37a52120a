//! The resolver: which names have addresses, what is said of the others, and what becomes of bytes that are no question.

use std::io::{Read, Write};
use std::net::{IpAddr, UdpSocket};

use hickory_proto::op::{Edns, Message, ResponseCode};
use hickory_proto::rr::RecordType;

use crate::support::dns::{Resolver, address, question, read_framed, receive, send_framed};
use crate::support::setup::policy;
use crate::support::upstream::RawUpstream;
use crate::support::{Gateway, Pki, Setup};

const POOL: &str = "198.18.0.0/15";
const QUESTIONS: &str = "postern_dns_questions_total";

fn gateway(destinations: &[&str]) -> Gateway {
    Setup::new(&Pki::new("Upstream Test CA")).resolver(POOL).destinations(destinations).start()
}

fn is_of_pool(address: IpAddr) -> bool {
    matches!(address, IpAddr::V4(ip) if ip.octets()[0] == 198 && matches!(ip.octets()[1], 18 | 19))
}

#[test]
fn a_name_that_a_host_rule_names_has_an_address_whatever_the_rule_says() {
    let gateway = gateway(&[
        "{name: api, hosts: [api.example.com], action: Inspect}",
        "{name: files, hosts: [files.example.com], action: Tunnel}",
        "{name: db, hosts: [db.example.com], ports: [5432], protocol: Opaque, action: Tunnel}",
        "{name: denied, hosts: [denied.example.com], action: Deny}",
        "{name: one, hosts: [\"*.one.example.com\"], action: Tunnel}",
        "{name: more, hosts: [\"**.more.example.com\"], action: Deny}",
        "{name: net, cidrs: [192.0.2.0/24], ports: [443], action: Tunnel}",
    ]);
    let resolver = gateway.resolver();
    for name in ["api", "files", "db", "denied", "x.one", "x.more", "y.x.more"] {
        let name = format!("{name}.example.com");
        assert!(is_of_pool(resolver.address(&name)), "{name}");
    }
    for name in
        ["other.example.com", "one.example.com", "y.x.one.example.com", "more.example.com", "localhost"]
    {
        assert_eq!(resolver.code(name), ResponseCode::NXDomain, "{name}");
    }
    assert_eq!(gateway.metric(QUESTIONS, &[("answer", "address")]), 7.0);
    assert_eq!(gateway.metric(QUESTIONS, &[("answer", "nxdomain")]), 5.0);
    assert_eq!(gateway.metric("postern_dns_names", &[]), 7.0);
}

#[test]
fn one_name_has_one_address_in_any_case_and_over_both_families_and_transports() {
    let gateway = gateway(&["{name: all, hosts: [\"**.example.com\"], action: Tunnel}"]);
    let resolver = gateway.resolver();
    let first = resolver.address("a.example.com");
    assert_eq!(resolver.address("A.exAMPle.com."), first);
    assert_ne!(resolver.address("b.example.com"), first);
    let mut stream = resolver.connect();
    send_framed(&mut stream, &question("a.example.com", RecordType::A).to_vec().unwrap());
    assert_eq!(address(&read_framed(&mut stream)), Some(first));
    for listener in gateway.status()["listeners"].as_array().unwrap() {
        if listener["mode"] == "dns" {
            let resolver = Resolver::at(listener["address"].as_str().unwrap().parse().unwrap());
            assert_eq!(resolver.address("a.example.com"), first, "{listener}");
        }
    }
}

#[test]
fn an_answered_name_has_addresses_alone_so_that_nobody_learns_keys_for_a_hidden_name() {
    let gateway = gateway(&["{name: api, hosts: [api.example.com], action: Inspect}"]);
    let resolver = gateway.resolver();
    for kind in [RecordType::HTTPS, RecordType::SVCB, RecordType::TXT, RecordType::AAAA, RecordType::ANY] {
        let answer = resolver.ask("api.example.com", kind);
        assert_eq!(answer.response_code, ResponseCode::NoError, "{kind}");
        assert!(answer.answers.is_empty(), "{kind}: {answer}");
        assert_eq!(answer.authorities.len(), 1, "{kind}");
    }
    assert_eq!(gateway.metric(QUESTIONS, &[("answer", "nodata")]), 5.0);
    assert_eq!(
        gateway.metric("postern_dns_names", &[]),
        0.0,
        "a question for something else takes no address"
    );
}

#[test]
fn a_question_is_repeated_as_it_was_spelt_and_edns_answered_in_kind() {
    let gateway = gateway(&["{name: api, hosts: [api.example.com], action: Inspect}"]);
    let mut message = question("aPi.eXample.cOm", RecordType::A);
    let asked = message.to_vec().unwrap();
    let answer = gateway.resolver().exchange(&asked);
    assert_eq!(answer[12..asked.len()], asked[12..]);
    let mut edns = Edns::new();
    edns.set_max_payload(4_096);
    message.set_edns(edns);
    let answer = gateway.resolver().exchange(&message.to_vec().unwrap());
    assert_eq!(Message::from_vec(&answer).unwrap().edns.unwrap().max_payload(), 1_232);
}

#[test]
fn a_connection_takes_one_question_after_the_other() {
    let gateway = gateway(&["{name: all, hosts: [\"*.example.com\"], action: Tunnel}"]);
    let mut stream = gateway.resolver().connect();
    let asked = question("a.example.com", RecordType::A).to_vec().unwrap();
    send_framed(&mut stream, &asked);
    send_framed(&mut stream, &question("nobody.example.org", RecordType::A).to_vec().unwrap());
    assert!(address(&read_framed(&mut stream)).is_some());
    assert_eq!(read_framed(&mut stream).response_code, ResponseCode::NXDomain);
    stream.write_all(&[0, 29, asked[0]]).unwrap();
    stream.write_all(&asked[1..]).unwrap();
    assert!(address(&read_framed(&mut stream)).is_none_or(is_of_pool));
}

#[test]
fn a_connection_that_sends_no_question_is_closed_and_counted() {
    let gateway = gateway(&[]);
    for bytes in [vec![0, 0], vec![255; 10], vec![0, 12, 0, 1, 0x80, 0, 0, 1, 0, 0, 0, 0, 0, 0]] {
        let mut stream = gateway.resolver().connect();
        stream.write_all(&bytes).unwrap();
        // What was not read of it may make the close a reset.
        let read = stream.read(&mut [0; 16]);
        assert!(
            matches!(read, Ok(0)) || read.is_err_and(|e| e.kind() == std::io::ErrorKind::ConnectionReset)
        );
    }
    gateway.wait_for_metric(QUESTIONS, &[("answer", "dropped")], 3.0);
}

/// That nothing was answered to what came before: the answer to a sound question comes first.
#[track_caller]
fn assert_silent(socket: &UdpSocket) {
    let mut message = question("nobody.example.org", RecordType::A);
    message.metadata.id = 0x0fed;
    socket.send(&message.to_vec().unwrap()).unwrap();
    assert_eq!(receive(socket)[..2], [0x0f, 0xed]);
}

#[test]
fn what_is_no_question_is_dropped_and_counted() {
    let gateway = gateway(&[]);
    let socket = gateway.resolver().socket();
    let mut response = question("api.example.com", RecordType::A).to_vec().unwrap();
    response[2] |= 0x80;
    for datagram in [&b""[..], b"\x00", b"GET / HTTP", &response, &[0x41; 4_097], &[0x41; 60_000]] {
        socket.send(datagram).unwrap();
        assert_silent(&socket);
    }
    assert_eq!(gateway.metric(QUESTIONS, &[("answer", "dropped")]), 6.0);
}

#[test]
fn a_question_that_cannot_be_read_is_told_so() {
    let gateway = gateway(&[]);
    let resolver = gateway.resolver();
    let asked = question("api.example.com", RecordType::A).to_vec().unwrap();
    let mut many = asked.clone();
    many[4..6].copy_from_slice(&[255, 255]);
    for datagram in [&asked[..20], &many, &[&asked[..12], &[0x41; 4_000]].concat()] {
        let answer = resolver.exchange(datagram);
        assert_eq!((answer.len(), answer[3] & 15), (12, 1));
    }
    assert_eq!(gateway.metric(QUESTIONS, &[("answer", "malformed")]), 3.0);
}

#[test]
fn a_flood_is_answered_up_to_its_bound_and_the_rest_is_counted() {
    let gateway = gateway(&["{name: all, hosts: [\"**.example.com\"], action: Tunnel}"]);
    let asked = question("a.example.com", RecordType::TXT).to_vec().unwrap();
    let mut flood = gateway.resolver().connect();
    send_framed(&mut flood, &asked);
    let answer = read_framed(&mut flood).to_vec().unwrap();
    let framed = [&u16::try_from(asked.len()).unwrap().to_be_bytes()[..], &asked].concat();
    // Many at a time: over TCP none is lost on the way, and the one that is dropped ends the connection.
    let mut answers = vec![0; 500 * (2 + answer.len())];
    while flood.write_all(&framed.repeat(500)).is_ok() && flood.read_exact(&mut answers).is_ok() {}
    assert_eq!(gateway.metric(QUESTIONS, &[("answer", "dropped")]), 1.0);
    assert!(gateway.metric(QUESTIONS, &[("answer", "nodata")]) >= 2_000.0);
}

#[test]
fn a_full_pool_fails_new_names_and_takes_no_address_from_others() {
    let upstreams = Pki::new("Upstream Test CA");
    let gateway = Setup::new(&upstreams)
        .resolver("203.0.113.8/29")
        .destinations(&["{name: all, hosts: [\"*.example.com\"], action: Tunnel}"])
        .start();
    let resolver = gateway.resolver();
    let given: Vec<IpAddr> = (0..6).map(|n| resolver.address(&format!("n{n}.example.com"))).collect();
    assert_eq!(given[0].to_string(), "203.0.113.9");
    assert_eq!(resolver.code("one-more.example.com"), ResponseCode::ServFail);
    for (n, address) in given.iter().enumerate() {
        assert_eq!(resolver.address(&format!("n{n}.example.com")), *address);
    }
    assert_eq!(gateway.metric(QUESTIONS, &[("answer", "servfail")]), 1.0);
    assert_eq!(gateway.metric("postern_dns_names", &[]), 6.0);
}

#[test]
fn a_new_policy_decides_about_the_next_question() {
    let gateway = gateway(&["{name: a, hosts: [a.example.com], action: Inspect}"]);
    let resolver = gateway.resolver();
    let before = resolver.address("a.example.com");
    assert_eq!(resolver.code("b.example.com"), ResponseCode::NXDomain);

    gateway.reload_policy(&policy(&["{name: b, hosts: [b.example.com], action: Inspect}"]), "success");

    assert_eq!(resolver.code("a.example.com"), ResponseCode::NXDomain);
    assert_ne!(resolver.address("b.example.com"), before, "the address is still that of the other name");
}

#[test]
fn every_name_is_answered_where_policies_only_record() {
    let audit = policy(&[]).replace("spec:\n", "spec:\n  enforcement: Audit\n");
    let upstreams = Pki::new("Upstream Test CA");
    let gateway = Setup::new(&upstreams).resolver(POOL).policy(&audit).start();
    assert!(is_of_pool(gateway.resolver().address("anything.example.org")));
}

#[test]
fn a_denied_name_is_one_event() {
    let gateway = gateway(&["{name: api, hosts: [api.example.com], action: Inspect}"]);
    let resolver = gateway.resolver();
    for kind in [RecordType::A, RecordType::AAAA, RecordType::HTTPS] {
        assert_eq!(resolver.ask("other.example.com", kind).response_code, ResponseCode::NXDomain);
    }
    assert_eq!(resolver.code("_sip.example.com"), ResponseCode::NXDomain, "which no rule could name");
    assert_eq!(resolver.code("last.example.com"), ResponseCode::NXDomain);

    gateway
        .wait_for_event("the last name's event", |event| event["destination"]["host"] == "last.example.com");
    let denied: Vec<_> =
        gateway.events().into_iter().filter(|e| e["decision"]["verdict"] == "Deny").collect();
    assert_eq!(denied.len(), 2, "{denied:#?}");
    let event = &denied[0];
    assert_eq!((&event["kind"], &event["direction"]), (&"Connection".into(), &"Outbound".into()));
    assert_eq!(
        event["destination"],
        serde_json::json!({"host": "other.example.com", "port": 53, "action": "Deny", "intercepted": false})
    );
    assert_eq!(event["decision"]["rule"], "postern/builtin/default-deny");
    assert_eq!(event["decision"]["reason"], "No rule names this host");
}

#[test]
fn an_address_that_stands_for_nobody_is_never_dialled() {
    let upstreams = Pki::new("Upstream Test CA");
    let gateway = Setup::new(&upstreams)
        .resolver("100.64.0.0/20")
        .destinations(&["{name: net, cidrs: [0.0.0.0/0, \"::/0\"], ports: [5432], action: Tunnel}"])
        .start();
    for (address, shown) in
        [("100.64.0.9", "100.64.0.9"), ("[fd70:6f73:7465:726e::9]", "fd70:6f73:7465:726e::9")]
    {
        let _connection = gateway.agent().connect(&format!("{address}:5432"));
        let event = gateway.wait_for_event(shown, |event| event["destination"]["host"] == shown);
        assert_eq!(event["decision"]["rule"], "postern/builtin/denied-address");
    }
}

#[test]
fn an_address_leads_where_the_gateway_finds_the_name_it_stands_for() {
    let upstream = RawUpstream::start(None, |connection, heard| {
        heard.push(connection.read_until(b"\n"));
    });
    let gateway = Setup::new(&Pki::new("Upstream Test CA"))
        .resolver(POOL)
        .host("db.example.com", upstream.address())
        .destinations(&[
            "{name: db, hosts: [db.example.com], ports: [5432], protocol: Opaque, action: Tunnel}",
        ])
        .start();
    let address = gateway.resolver().address("db.example.com");
    let mut connection = gateway.agent().connect(&format!("{address}:5432")).unwrap();
    connection.send("hello\n");
    upstream.heard().wait_for("the bytes", |heard| heard == b"hello\n");
    let event = gateway.wait_for("Connection", "Allow");
    assert_eq!(event["destination"]["host"], "db.example.com");
}

#[test]
fn a_pool_that_changed_waits_for_a_restart() {
    let gateway = gateway(&["{name: all, hosts: [\"*.example.com\"], action: Tunnel}"]);
    let settings = std::fs::read_to_string(gateway.path().join("settings.yaml")).unwrap();
    assert!(settings.contains(POOL));
    gateway.write("settings.yaml", &settings.replace(POOL, "100.64.0.0/20"));

    gateway.reload_policy(&policy(&["{name: a, hosts: [a.example.com], action: Tunnel}"]), "success");

    assert!(is_of_pool(gateway.resolver().address("a.example.com")));
    assert_eq!(gateway.status()["settings"]["listeners"]["dns"]["pool"], POOL);
}

#[test]
fn a_port_that_is_held_is_said() {
    let held = UdpSocket::bind("127.0.0.1:0").unwrap();
    let port = held.local_addr().unwrap().port();
    let setup = Setup::new(&Pki::new("Upstream Test CA"))
        .set("/listeners/dns", serde_json::json!({"port": port}))
        .run(&["gateway", "--config", "settings.yaml"]);
    assert_eq!(setup.status.code(), Some(1));
    let words = format!("listeners.dns.port: 127.0.0.1:{port} is in use by another process");
    assert!(setup.stderr.contains(&words), "{}", setup.stderr);
}
