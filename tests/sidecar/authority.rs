//! The CA of a namespace: taken over while the gateway runs, and what becomes of a host that it does not permit yet.

use std::sync::Arc;

use super::{DENY, INSPECT, Published, TUNNEL, Volumes, borrowed, ca_keys};
use crate::support::Pki;
use crate::support::journal::poll;

const URL: &str = "https://api.example.com/echo";

/// A rule of another host.
const TUNNEL_OTHER: &str = r#"{"name":"other","hosts":["other.example.com"],"action":"Tunnel"}"#;

/// A CA that may vouch for this name alone.
fn permitting(name: &str) -> Pki {
    Pki::permitting(&format!("CA for {name}"), &[name])
}

#[test]
fn a_new_ca_is_taken_over_while_old_connections_live_on() {
    let mut pod = Volumes::new().start();
    let (agent, next) = (pod.gateway.agent(), Pki::new("Next CA"));
    let mut before = agent.clone().trusting(pod.ca_roots()).tls("api.example.com");
    assert_eq!(before.issuer(), "Postern Test CA");

    pod.ca.publish(&borrowed(&ca_keys(&next)));

    pod.gateway.wait_for("Policy", "Allow");
    let after = agent.trusting(next.roots()).tls("api.example.com");
    assert_eq!(after.issuer(), "Next CA");
    before.send("GET /echo HTTP/1.1\r\nHost: api.example.com\r\n\r\n");
    assert_eq!(before.read_answer().status, 200);
    assert_eq!(pod.gateway.status()["interception"]["fingerprint"], next.fingerprint().as_str());
}

#[test]
fn a_ca_with_anothers_key_leaves_the_last_good_one() {
    let mut pod = Volumes::new().start();
    let (next, other) = (ca_keys(&Pki::new("Next CA")), ca_keys(&Pki::new("Other CA")));

    pod.ca.publish(&borrowed(&[next[0].clone(), other[1].clone()]));

    pod.gateway.wait_for_metric("postern_policy_reloads_total", &[("result", "failure")], 1.0);
    assert_eq!(
        pod.gateway.agent().trusting(pod.ca_roots()).tls("api.example.com").issuer(),
        "Postern Test CA"
    );
    assert!(pod.gateway.status()["reasons"].to_string().contains("ca-cert.pem"), "{}", pod.gateway.log());
    assert_eq!(pod.gateway.admin("/readyz").text(), "the newest files are not in force\n");
}

#[test]
fn a_host_that_the_ca_does_not_permit_yet_is_denied_until_it_does() {
    let mut pod = Volumes { ca: permitting("old.example.com"), ..Volumes::new() }
        .start_with(|setup| setup.reverse("https://api.example.com"));
    let next = permitting("api.example.com");
    let agent = pod.gateway.agent().trusting(next.roots());

    let refused = agent.connect("api.example.com:443").err().unwrap();

    refused.assert_refused(403, "postern/builtin/ca-missing");
    let denied = pod.gateway.wait_for("Connection", "Deny");
    assert_eq!(denied["decision"]["rule"], "postern/builtin/ca-missing");
    assert!(denied["decision"]["reason"].as_str().unwrap().contains("the operator reissues it"), "{denied}");
    assert!(pod.upstream.links().is_empty(), "nobody is dialled");
    let mut reverse = pod.gateway.reverse();
    reverse.send("GET /echo HTTP/1.1\r\nHost: localhost\r\n\r\n");
    assert_eq!(reverse.read_answer().status, 200, "where nobody is vouched for, no CA is wanted");

    pod.ca.publish(&borrowed(&ca_keys(&next)));

    pod.gateway.wait_for("Policy", "Allow");
    assert_eq!(agent.get(URL).status, 200);
}

#[test]
fn a_handshake_that_the_ca_cannot_answer_gets_an_alert_and_no_reset() {
    let ports = r#"{"name":"api","hosts":["api.example.com"],"ports":[80,443],"action":"Inspect"}"#;
    let pod =
        Volumes { policy: Published::of(ports), ca: permitting("old.example.com"), ..Volumes::new() }.start();
    // On port 80 CONNECT is answered: plain HTTP needs no CA.
    let Err(error) = pod.gateway.agent().dial("api.example.com").port(80).open() else {
        panic!("it was let in")
    };
    assert!(error.to_string().contains("AccessDenied"), "{error}");
    let denied = pod.gateway.wait_for("Connection", "Deny");
    assert_eq!(denied["decision"]["rule"], "postern/builtin/ca-missing");
}

#[test]
fn a_connection_waits_for_the_ca_that_a_new_policy_needs_and_for_nothing_else() {
    let mut pod =
        Volumes { policy: Published::of(TUNNEL), ca: permitting("old.example.com"), ..Volumes::new() }
            .start();
    let (next, policy) = (permitting("api.example.com"), Published::of(INSPECT));
    let agent = pod.gateway.agent().trusting(next.roots());

    pod.policy.publish(&policy.keys());

    pod.gateway.wait_for_metric("postern_policy_info", &[("revision", &policy.revision)], 1.0);
    let refused = agent.connect("other.example.com:443").err().unwrap();
    refused.assert_refused(403, "postern/builtin/default-deny");
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| agent.get(URL));
        poll("the connection", || (pod.gateway.status()["connections"]["open"] == 1).then_some(()));
        pod.ca.publish(&borrowed(&ca_keys(&next)));
        assert_eq!(waiting.join().unwrap().status, 200);
    });
    let denied = pod
        .gateway
        .events()
        .into_iter()
        .filter(|event| event["decision"]["rule"] == "postern/builtin/ca-missing");
    assert_eq!(denied.count(), 0);
}

#[test]
fn a_connection_that_waits_for_a_ca_is_refused_by_a_stricter_policy_in_words() {
    for (stricter, rule) in [(DENY, "agents/coder/no-api"), (TUNNEL_OTHER, "postern/builtin/default-deny")] {
        let mut pod =
            Volumes { policy: Published::of(TUNNEL), ca: permitting("old.example.com"), ..Volumes::new() }
                .start();
        let (policy, stricter) = (Published::of(INSPECT), Published::of(stricter));
        let agent = pod.gateway.agent();
        pod.policy.publish(&policy.keys());
        pod.gateway.wait_for_metric("postern_policy_info", &[("revision", &policy.revision)], 1.0);
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| agent.connect("api.example.com:443").err().unwrap());
            poll("the connection", || (pod.gateway.status()["connections"]["open"] == 1).then_some(()));

            pod.policy.publish(&stricter.keys());

            waiting.join().unwrap().assert_refused(403, rule);
        });
    }
}

#[test]
fn a_new_policy_is_in_force_though_the_ca_is_not_in_order() {
    let mut pod = Volumes::new().start();
    let agent = pod.gateway.agent().trusting(pod.ca_roots());
    let (next, other) = (ca_keys(&Pki::new("Next CA")), ca_keys(&Pki::new("Other CA")));
    pod.ca.publish(&borrowed(&[next[0].clone(), other[1].clone()]));
    pod.gateway.wait_for_metric("postern_policy_reloads_total", &[("result", "failure")], 1.0);
    assert_eq!(agent.get(URL).status, 200);
    let stricter = Published::of(DENY);

    pod.policy.publish(&stricter.keys());

    pod.gateway.wait_for_metric("postern_policy_info", &[("revision", &stricter.revision)], 1.0);
    agent.get(URL).assert_refused(403, "agents/coder/no-api");
    let reasons = pod.gateway.status()["reasons"].to_string();
    assert!(reasons.contains("ca-cert.pem"), "{reasons}");
    pod.ca.publish(&borrowed(&next));
    poll("readiness", || (pod.gateway.admin("/readyz").status == 200).then_some(()));
    let after = pod.gateway.agent().trusting(Arc::clone(&pod.roots));
    assert!(after.dial("api.example.com").open().is_err(), "the new CA is in force");
}

#[test]
fn a_denied_host_that_the_ca_does_not_permit_is_refused_under_its_own_rule() {
    let pod =
        Volumes { policy: Published::of(DENY), ca: permitting("old.example.com"), ..Volumes::new() }.start();
    assert!(pod.gateway.agent().dial("api.example.com").open().is_err());
    let denied = pod.gateway.wait_for("Connection", "Deny");
    assert_eq!(denied["decision"]["rule"], "agents/coder/no-api");
}
