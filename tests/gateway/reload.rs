//! A new policy takes effect whole, or not at all.

use super::{INSPECT_API, halting, inspected, inspected_with};
use crate::support::journal::poll;
use crate::support::setup::policy;
use crate::support::upstream::{Gate, Step};
use crate::support::{Ending, Pki, Setup, Upstream};

const DENY_API: &str = "{name: no-api, hosts: [api.example.com], action: Deny}";

#[test]
fn a_new_policy_is_in_force_after_a_reload() {
    let test = inspected();
    let before = test.gateway.status()["policy"]["revision"].clone();
    assert_eq!(test.gateway.agent().get("https://api.example.com/echo").status, 200);

    test.gateway.reload_policy(&policy(&[DENY_API]), "success");

    test.gateway.agent().get("https://api.example.com/echo").assert_refused(403, "agents/test/no-api");
    assert_ne!(test.gateway.status()["policy"]["revision"], before);
}

#[test]
fn a_changed_file_is_noticed_without_a_signal() {
    let test = inspected();

    test.gateway.write("policy.yaml", &policy(&[DENY_API]));

    test.gateway.wait_for_metric("postern_policy_reloads_total", &[("result", "success")], 1.0);
    assert_eq!(test.gateway.agent().get("https://api.example.com/echo").status, 403);
}

#[test]
fn an_invalid_policy_changes_nothing_and_is_said() {
    let test = inspected();

    test.gateway.reload_policy(&policy(&["{name: api, hosts: [api.example.com], action: Allow}"]), "failure");

    assert_eq!(test.gateway.agent().get("https://api.example.com/echo").status, 200);
    poll("the mistake in the log", || test.gateway.log().contains("policy.yaml").then_some(()));
    test.gateway.reload_policy(&policy(&[DENY_API]), "success");
    assert_eq!(test.gateway.agent().get("https://api.example.com/echo").status, 403);
}

#[test]
fn a_policy_that_was_never_valid_starts_nothing_and_names_every_mistake() {
    let setup = Setup::new(&Pki::new("Upstream Test CA")).destinations(&[
        "{name: one, hosts: [api.example.com], action: Allow}",
        "{name: two, hosts: ['not a name'], action: Inspect}",
    ]);

    let said = setup.run(&["gateway", "--config", "settings.yaml"]);

    assert_eq!(said.status.code(), Some(1), "{said:?}");
    for part in ["policy.yaml", "action", "Inspect"] {
        assert!(said.stderr.contains(part), "{part}: {}", said.stderr);
    }
}

#[test]
fn an_exchange_in_flight_ends_under_the_policy_it_began_with() {
    let gate = Gate::new();
    let test = halting(&gate, Step::Data("second".into()));
    let mut connection = test.gateway.agent().tls("api.example.com");
    connection.send("GET / HTTP/1.1\r\nHost: api.example.com\r\n\r\n");
    connection.read_head();
    assert_eq!(connection.read_chunk(), b"first");

    test.gateway.reload_policy(&policy(&[DENY_API]), "success");
    gate.open();

    assert_eq!(connection.read_chunk(), b"second");
    assert_eq!(connection.read_chunk(), b"");
}

#[test]
fn a_new_request_on_an_open_connection_meets_the_new_policy() {
    let test = inspected();
    let mut connection = test.gateway.agent().tls("api.example.com");
    connection.send("GET /echo HTTP/1.1\r\nHost: api.example.com\r\n\r\n");
    assert_eq!(connection.read_answer().status, 200);

    test.gateway.reload_policy(&policy(&[DENY_API]), "success");

    connection.send("GET /echo HTTP/1.1\r\nHost: api.example.com\r\n\r\n");

    connection.read_answer().assert_refused(403, "agents/test/no-api");
    assert_eq!(test.upstream.requests().len(), 1);
}

/// Inspects a provider of models, and keeps a key for another host.
const MODELS: &str = "apiVersion: postern.dev/v1alpha1\nkind: EgressPolicy\nmetadata: {name: test, namespace: agents}\n\
spec:\n  podSelector: {}\n  destinations:\n    - {name: models, hosts: [api.example.com], action: Inspect, provider: Anthropic}\n  \
credentials:\n    - {name: key, hosts: [other.example.com], secretKeyRef: {name: keys, key: key}, placeholder: sk-placeholder-key}\n";

/// The answer of the upstream, which has no models.
const UPSTREAMS: u16 = 404;

#[test]
fn a_head_that_is_said_again_to_a_model_meets_the_new_policy() {
    let test = inspected_with(|setup| setup.policy(MODELS).credential("key", "sk-0123456789abcdef0123"));
    let mut connection = test.gateway.agent().tls("api.example.com");
    let head = "GET /v1/models HTTP/1.1\r\nHost: api.example.com\r\n\r\n";
    for _ in 0..2 {
        connection.send(head);
        assert_eq!(connection.read_answer().status, UPSTREAMS);
    }

    test.gateway.reload_policy(&policy(&[DENY_API]), "success");

    connection.send(head);
    connection.read_answer().assert_refused(403, "agents/test/no-api");
    assert_eq!(test.upstream.requests().len(), 2);
}

#[test]
fn a_head_that_is_said_again_to_a_model_is_searched_for_a_value_that_has_come_to_be_known() {
    let test = inspected_with(|setup| setup.policy(MODELS).credential("key", "sk-0123456789abcdef0123"));
    let mut connection = test.gateway.agent().tls("api.example.com");
    let head = "GET /v1/models HTTP/1.1\r\nHost: api.example.com\r\nX-Note: 9f8e7d6c5b4a39281706\r\n\r\n";
    connection.send(head);
    assert_eq!(connection.read_answer().status, UPSTREAMS);

    test.gateway.write("credentials/key", "9f8e7d6c5b4a39281706");
    test.gateway.signal("HUP");

    poll("the denial", || {
        connection.send(head);
        (connection.read_answer().status == 403).then_some(())
    });
}

#[test]
fn an_open_tunnel_is_closed_where_it_is_now_denied() {
    let tunnel = "{name: api, hosts: [api.example.com], action: Tunnel}";
    let kept = "{name: other, hosts: [other.example.com], action: Tunnel}";
    let upstreams = Pki::new("Upstream Test CA");
    let (upstream, other) =
        (Upstream::tls(&upstreams, &["api.example.com"]), Upstream::tls(&upstreams, &["other.example.com"]));
    let gateway = Setup::new(&upstreams)
        .host("api.example.com", upstream.address())
        .host("other.example.com", other.address())
        .destinations(&[tunnel, kept])
        .start();
    let agent = gateway.agent().trusting(upstreams.roots());
    let (mut denied, mut allowed) = (agent.tls("api.example.com"), agent.tls("other.example.com"));

    gateway.reload_policy(&policy(&[kept]), "success");

    assert!(matches!(denied.ending(), Ending::Closed(rest) | Ending::Cut(rest) if rest.is_empty()));
    allowed.send("GET /echo HTTP/1.1\r\nHost: other.example.com\r\n\r\n");
    assert_eq!(allowed.read_answer().status, 200);
}

#[test]
fn an_open_tunnel_is_closed_where_its_destination_is_now_inspected() {
    let upstreams = Pki::new("Upstream Test CA");
    let upstream = Upstream::tls(&upstreams, &["api.example.com"]);
    let gateway = Setup::new(&upstreams)
        .host("api.example.com", upstream.address())
        .destinations(&["{name: api, hosts: [api.example.com], action: Tunnel}"])
        .start();
    let mut tunnelled = gateway.agent().trusting(upstreams.roots()).tls("api.example.com");

    gateway.reload_policy(&policy(&[INSPECT_API]), "success");

    assert!(matches!(tunnelled.ending(), Ending::Closed(rest) | Ending::Cut(rest) if rest.is_empty()));
}

#[test]
fn an_open_tunnel_is_closed_where_its_address_is_now_denied() {
    let upstreams = Pki::new("Upstream Test CA");
    let upstream = Upstream::tls(&upstreams, &["api.example.com"]);
    let tunnel = "{name: api, hosts: [api.example.com], action: Tunnel}";
    let gateway =
        Setup::new(&upstreams).host("api.example.com", upstream.address()).destinations(&[tunnel]).start();
    let mut tunnelled = gateway.agent().trusting(upstreams.roots()).tls("api.example.com");

    gateway
        .reload_policy(&policy(&[tunnel, "{name: nowhere, cidrs: [127.0.0.0/8], action: Deny}"]), "success");

    assert!(matches!(tunnelled.ending(), Ending::Closed(rest) | Ending::Cut(rest) if rest.is_empty()));
}

#[test]
fn a_policy_that_judges_edits_without_a_workspace_is_told_of_once() {
    let denying = |name: &str| {
        let allowed = format!("{{name: {name}, hosts: [{name}.example.com], action: Tunnel}}");
        policy(&[&allowed]) + "  edits: {match: Deny}\n"
    };
    let test = inspected_with(|setup| setup.policy(&denying("a")));
    let told = || test.gateway.log().matches("there is no workspace: none is judged").count();
    assert_eq!(told(), 1, "{}", test.gateway.log());
    test.gateway.reload_policy(&denying("b"), "success");
    assert_eq!(told(), 1, "it was told already");
    test.gateway.reload_policy(&policy(&[DENY_API]), "success");
    test.gateway.reload_policy(&denying("b"), "success");
    assert_eq!(told(), 2, "{}", test.gateway.log());
}
