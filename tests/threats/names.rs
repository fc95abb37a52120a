//! Names that disagree, look alike, or are read differently by two parsers.

use rustls::ClientConnection;
use rustls::pki_types::ServerName;

use super::denials;
use crate::gateway::{Inspected, inspected, inspected_with};
use crate::support::frames::{Frames, get};
use crate::support::upstream::RawUpstream;
use crate::support::{Answer, Ending, Pki, Setup, Upstream};

const EVERYTHING: &str = "{name: all, hosts: ['**'], action: Inspect}";

/// B1: the address that the agent asked for is evidence, never authority: the name is resolved here, and dialled.
#[test]
fn an_allowed_name_towards_an_attackers_address_reaches_the_names_own_server() {
    let upstreams = Pki::new("Upstream Test CA");
    let upstream = Upstream::tls(&upstreams, &["api.example.com"]);
    let attacker = RawUpstream::start(None, |connection, _| {
        let _ = connection.ending();
    });
    let port = attacker.address().port();
    let gateway = Setup::new(&upstreams)
        .host("api.example.com", upstream.address())
        .destinations(&[&format!(
            "{{name: api, hosts: [api.example.com], ports: [{port}], action: Inspect}}"
        )])
        .start();
    let dial = |name| gateway.agent().dial(name).authority(&format!("127.0.0.1:{port}"));

    assert!(dial("evil.example.com").open().is_err());
    let mut connection = dial("api.example.com").open().unwrap();
    connection.send(format!("GET /echo HTTP/1.1\r\nHost: api.example.com:{port}\r\n\r\n"));

    assert_eq!((connection.read_answer().status, connection.issuer().as_str()), (200, "Postern Test CA"));
    assert_eq!(upstream.links()[0].sni.as_deref(), Some("api.example.com"));
    assert_eq!(attacker.accepted(), 0);
    assert_eq!(
        denials(&gateway, 1),
        [("evil.example.com".to_owned(), "postern/builtin/default-deny".to_owned())]
    );
}

/// B2: domain fronting over HTTP/1.1: a Host, or an absolute form, for another name than TLS was made for.
#[test]
fn a_host_other_than_the_name_in_tls_is_misdirected() {
    let test = inspected_with(|setup| setup.destinations(&[EVERYTHING]));
    for (target, host) in [
        ("/echo", "evil.example.com"),
        ("/echo", "api.example.com.evil.net"),
        ("/echo", "192.0.2.7"),
        ("/echo", "api.example.com:8443"),
        ("https://evil.example.com/echo", "api.example.com"),
        ("https://api.example.com/echo", "evil.example.com"),
    ] {
        ask(&test, target, host).assert_refused(421, "postern/builtin/name-mismatch");
    }
    let event = test.gateway.wait_for("Request", "Deny");
    assert_eq!(event["decision"]["rule"], "postern/builtin/name-mismatch");
    assert!(test.upstream.requests().is_empty());

    assert_eq!(ask(&test, "/echo", "api.example.com").status, 200);
    assert_eq!(test.upstream.requests()[0].authority, "api.example.com");
}

/// B2: domain fronting over HTTP/2: another `:authority`, or a `host` beside it that says something else.
#[test]
fn an_authority_other_than_the_name_in_tls_is_misdirected() {
    let test = inspected_with(|setup| setup.destinations(&[EVERYTHING]));
    let dial = test.gateway.agent().dial("api.example.com").protocols(&["h2"]);
    let mut frames = Frames::open(dial.open().unwrap());
    let mut beside = get("api.example.com", "/echo");
    beside.push(("host", "evil.example.com"));
    let alone: Vec<_> = [(":method", "GET"), (":scheme", "https"), (":path", "/echo")]
        .into_iter()
        .chain([("host", "evil.example.com")])
        .collect();

    for (stream, fields) in [(1, get("evil.example.com", "/echo")), (3, beside), (5, alone)] {
        frames.request(stream, &fields);
        let said = frames.ending(stream).unwrap();
        assert!(said.contains("Rule: postern/builtin/name-mismatch\n"), "{fields:?}: {said}");
    }
    assert!(test.upstream.requests().is_empty());

    frames.request(7, &get("api.example.com", "/echo"));
    assert!(frames.ending(7).unwrap().contains("\"authority\":\"api.example.com\""));
    assert_eq!(test.upstream.requests().len(), 1);
}

/// B3: a Host that is missing, double, or no host is refused as framing; spellings of the same name are one name.
#[test]
fn a_host_field_has_exactly_one_reading() {
    let test = inspected();
    let send = |fields: &str| {
        let mut connection = test.gateway.agent().tls("api.example.com");
        connection.send(format!("GET /echo HTTP/1.1\r\n{fields}\r\n"));
        connection.read_answer()
    };

    for fields in [
        "X-No: host\r\n",
        "Host: api.example.com\r\nHost: api.example.com\r\n",
        "Host: user@api.example.com\r\n",
        "Host: api.example.com:443:443\r\n",
        "Host: api.example.com:99999\r\n",
        "Host: api.example.com, evil.example.com\r\n",
        "Host:\r\n",
    ] {
        let answer = send(fields);
        assert_eq!(
            (answer.status, answer.header("x-postern-rule")),
            (400, Some("postern/builtin/framing")),
            "{fields:?}"
        );
    }
    assert!(test.upstream.requests().is_empty());

    for host in ["api.example.com", "API.Example.COM", "api.example.com.", "api.example.com:443"] {
        assert_eq!(send(&format!("Host: {host}\r\n")).status, 200, "{host}");
        assert_eq!(test.upstream.requests().pop().unwrap().authority, "api.example.com", "{host}");
    }
}

/// B4: an h2 connection carries one name, even where one certificate upstream, and policy, cover both.
#[test]
fn an_h2_connection_is_not_coalesced_over_two_names() {
    let upstreams = Pki::new("Upstream Test CA");
    let upstream = Upstream::tls(&upstreams, &["one.example.com", "two.example.com"]);
    let gateway = Setup::new(&upstreams)
        .host("one.example.com", upstream.address())
        .host("two.example.com", upstream.address())
        .destinations(&["{name: both, hosts: ['*.example.com'], action: Inspect}"])
        .start();
    let agent = gateway.agent();
    let one = agent.h2("one.example.com");

    assert_eq!(one.get("https://one.example.com/echo").status, 200);
    one.get("https://two.example.com/echo").assert_refused(421, "postern/builtin/name-mismatch");
    assert_eq!(one.get("https://one.example.com/echo").status, 200, "the connection goes on");
    let two = agent.h2("two.example.com");
    assert_eq!(two.get("https://two.example.com/echo").status, 200);

    let seen = upstream.requests();
    let names: Vec<&str> = seen.iter().map(|seen| seen.authority.as_str()).collect();
    assert_eq!(names, ["one.example.com", "one.example.com", "two.example.com"]);
    assert_ne!(seen[0].link, seen[2].link, "nor upstream");
}

/// B7: what speaks another protocol than its port's rule reaches nobody: HTTP on 443, TLS on 80, text before TLS.
#[test]
fn a_protocol_on_another_ones_port_reaches_nobody() {
    let upstreams = Pki::new("Upstream Test CA");
    let (tls, plain) = (Upstream::tls(&upstreams, &["tls.example.com"]), Upstream::plain());
    let gateway = Setup::new(&upstreams)
        .host("tls.example.com", tls.address())
        .host("plain.example.com", plain.address())
        .destinations(&["{name: all, hosts: ['*.example.com'], action: Inspect}"])
        .start();
    let agent = gateway.agent();

    let mut http = agent.connect("tls.example.com:443").unwrap();
    http.send("GET /echo HTTP/1.1\r\nHost: tls.example.com\r\n\r\n");
    http.read_answer().assert_refused(403, "postern/builtin/default-deny");
    assert!(agent.dial("plain.example.com").port(80).open().is_err());
    for text in ["EHLO agent\r\nSTARTTLS\r\n", "SSH-2.0-OpenSSH_9.2\r\n", "\0\0\0\x08\x04\x52\x16\x2f"] {
        let mut connection = agent.connect("tls.example.com:443").unwrap();
        connection.send(text);
        assert_eq!(connection.ending(), Ending::Cut(Vec::new()), "{text:?}");
    }
    assert_eq!(denials(&gateway, 5).len(), 5);
    assert!(tls.links().is_empty() && plain.links().is_empty());

    assert_eq!(agent.get("https://tls.example.com/echo").status, 200);
    assert_eq!(agent.get("http://plain.example.com/echo").status, 200);
    assert_eq!((tls.requests().len(), plain.requests().len()), (1, 1));
}

/// B9: what one parser takes for a name, and another for something else, is no name: in CONNECT.
#[test]
fn a_name_that_two_parsers_read_differently_is_refused_at_connect() {
    let test = inspected_with(|setup| setup.destinations(&[EVERYTHING]));
    for name in [
        "api.example.com%2e",
        "api%2eexample.com",
        "user@api.example.com",
        "evil.com#api.example.com",
        "api.example.com/..",
        "api\u{ff0e}example.com",
        "api.example.com..",
        ".api.example.com",
        "api..example.com",
        "-api.example.com",
        "0x7f.0.0.1",
        "0177.0.0.1",
        "2130706433",
        "127.1",
        "127.0.0.1.",
        "[::1%25lo]",
        "[fe80::1%eth0]",
        "[::1",
        "::1",
        "xn--a",
        "b\u{fc}cher.example.com",
    ] {
        let answer = test.gateway.agent().connect(&format!("{name}:443")).err();
        let answer = answer.unwrap_or_else(|| panic!("{name} was taken for a host"));
        assert_eq!(
            (answer.status, answer.header("x-postern-rule")),
            (400, Some("postern/builtin/framing")),
            "{name}"
        );
    }
    assert!(test.upstream.links().is_empty());

    for name in ["api.example.com", "API.EXAMPLE.COM.", "xn--bcher-kva.example.com"] {
        assert!(test.gateway.agent().connect(&format!("{name}:443")).is_ok(), "{name}");
    }
}

/// B9: a NUL, a percent sign or an address in TLS's server name, or in Host, is no name either.
#[test]
fn a_name_that_two_parsers_read_differently_is_refused_in_tls_and_in_host() {
    let test = inspected_with(|setup| setup.destinations(&[EVERYTHING]));
    for (place, byte) in [("api~example.com", b'\0'), ("api~example.com", b'%'), ("api~example.com", b'/')] {
        let mut tunnel = test.gateway.agent().connect("192.0.2.7:443").unwrap();
        tunnel.send(hello_for(&test, &place.replace('~', "0"), byte));
        assert_eq!(tunnel.ending(), Ending::Cut(Vec::new()));
    }
    assert_eq!(denials(&test.gateway, 3).len(), 3);
    for host in [
        "api.example.com%2e",
        "api\u{ff0e}example.com",
        "0x7f.1",
        "2130706433",
        "[::1%25lo]",
        "api.example.com\0",
    ] {
        let answer = ask(&test, "/echo", host);
        assert_eq!(
            (answer.status, answer.header("x-postern-rule")),
            (400, Some("postern/builtin/framing")),
            "{host}"
        );
    }
    assert!(test.upstream.requests().is_empty());

    assert_eq!(ask(&test, "/echo", "API.example.com.").status, 200);
    assert_eq!(test.upstream.requests().len(), 1);
}

/// B10: a wildcard is one label, at a label's boundary, without the apex; `**.` is one or more.
#[test]
fn a_wildcard_covers_whole_labels_alone() {
    let test = inspected_with(|setup| {
        setup.destinations(&[
            "{name: one, hosts: ['*.example.com'], action: Inspect}",
            "{name: many, hosts: ['**.deep.example.net'], action: Inspect}",
        ])
    });
    let agent = test.gateway.agent();
    for name in [
        "evil-example.com",
        "evilexample.com",
        "example.com",
        "a.b.example.com",
        "api.example.com.evil.net",
        "deep.example.net",
        "evildeep.example.net",
    ] {
        let answer = agent.connect(&format!("{name}:443")).err().unwrap_or_else(|| panic!("{name} passed"));
        answer.assert_refused(403, "postern/builtin/default-deny");
    }
    assert!(test.upstream.links().is_empty());

    assert!(agent.connect("a.b.deep.example.net:443").is_ok());
    assert_eq!(agent.get("https://api.example.com/echo").status, 200);
    assert_eq!(test.upstream.requests().len(), 1);
}

/// B11: no spelling in upper case slips past a Deny rule, nor does a rule in upper case miss its host.
#[test]
fn the_case_of_a_name_changes_nothing() {
    let test = inspected_with(|setup| {
        setup.destinations(&[
            "{name: all, hosts: ['**'], action: Inspect}",
            "{name: no-evil, hosts: [Evil.Example.COM], action: Deny}",
        ])
    });
    let agent = test.gateway.agent();

    for name in ["evil.example.com", "EVIL.EXAMPLE.COM", "eViL.example.com"] {
        agent.get(&format!("http://{name}/echo")).assert_refused(403, "agents/test/no-evil");
        let mut inside = agent.dial(name).open().unwrap();
        inside.send(format!("GET /echo HTTP/1.1\r\nHost: {name}\r\n\r\n"));
        inside.read_answer().assert_refused(403, "agents/test/no-evil");
    }
    assert!(test.upstream.links().is_empty());

    assert_eq!(agent.get("https://API.Example.Com/echo").status, 200);
    assert_eq!(test.upstream.links()[0].sni.as_deref(), Some("api.example.com"));
}

/// B20: CONNECT's authority is a name too: another one in TLS, another port, or other bytes than its rule takes.
#[test]
fn connects_authority_must_agree_with_what_follows_it() {
    let upstreams = Pki::new("Upstream Test CA");
    let (api, other) =
        (Upstream::tls(&upstreams, &["api.example.com"]), Upstream::tls(&upstreams, &["other.example.com"]));
    let mail = RawUpstream::start(None, |connection, heard| {
        connection.send("220 ready\r\n");
        heard.push(connection.read_until(b"\r\n"));
    });
    let gateway = Setup::new(&upstreams)
        .host("api.example.com", api.address())
        .host("other.example.com", other.address())
        .host("mail.example.com", mail.address())
        .destinations(&[
            "{name: both, hosts: [api.example.com, other.example.com], action: Inspect}",
            "{name: mail, hosts: [mail.example.com], ports: [25], action: Tunnel, protocol: Opaque}",
        ])
        .start();
    let agent = gateway.agent();

    assert!(agent.dial("other.example.com").authority("api.example.com:443").open().is_err());
    let refused = agent.connect("api.example.com:25").err().unwrap();
    refused.assert_refused(403, "postern/builtin/default-deny");
    let mut opaque = agent.connect("api.example.com:443").unwrap();
    opaque.send("HELO\r\n");
    assert_eq!(opaque.ending(), Ending::Cut(Vec::new()));
    let rules: Vec<String> = denials(&gateway, 3).into_iter().map(|(_, rule)| rule).collect();
    assert_eq!(
        rules,
        ["postern/builtin/name-mismatch", "postern/builtin/default-deny", "postern/builtin/default-deny"]
    );
    assert!(api.links().is_empty() && other.links().is_empty());

    let mut smtp = agent.connect("mail.example.com:25").unwrap();
    assert_eq!(smtp.read_until(b"\r\n"), b"220 ready\r\n");
    smtp.send("QUIT\r\n");
    mail.heard().wait_for("the greeting's answer", |heard| heard == b"QUIT\r\n");
    assert_eq!(agent.get("https://other.example.com/echo").status, 200);
}

/// One request over TLS for `api.example.com`.
fn ask(test: &Inspected, target: &str, host: &str) -> Answer {
    let mut connection = test.gateway.agent().tls("api.example.com");
    connection.send(format!("GET {target} HTTP/1.1\r\nHost: {host}\r\n\r\n"));
    connection.read_answer()
}

/// A ClientHello for a name in which the one `0` is another byte.
fn hello_for(test: &Inspected, name: &str, byte: u8) -> Vec<u8> {
    let config = test.gateway.agent().dial("api.example.com").config();
    let server = ServerName::try_from(name.to_owned()).unwrap();
    let mut hello = Vec::new();
    ClientConnection::new(config, server).unwrap().write_tls(&mut hello).unwrap();
    let at = memchr::memmem::find(&hello, name.as_bytes()).unwrap();
    hello[at + name.find('0').unwrap()] = byte;
    hello
}
