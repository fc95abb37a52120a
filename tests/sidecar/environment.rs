//! What the settings take from the environment, and what works where the environment is not there.

use serde_json::json;

use super::{INSPECT, Published, Volumes};
use crate::support::{Pki, Setup};

/// The settings that every gateway of a cluster has.
const SETTINGS: &str = r#"
listeners: {transparent: {port: 15001}, explicit: {address: "127.0.0.1:15002"}, dns: {port: 15053}}
admin: {address: "0.0.0.0:15090"}
interception: {mode: Required, caCertificate: /etc/postern/ca/ca-cert.pem, caKey: /etc/postern/ca/ca-key.pem}
policy:
  path: /etc/postern/policy
  labels: /etc/podinfo/labels
  annotations: /etc/podinfo/annotations
  workload: {namespace: {fromEnv: POSTERN_NAMESPACE}, pod: {fromEnv: POSTERN_POD}, serviceAccount: {fromEnv: POSTERN_SERVICE_ACCOUNT}, node: {fromEnv: POSTERN_NODE}}
upstream: {denyAddresses: ["10.96.0.0/16", {fromEnv: POSTERN_NODE_ADDRESSES}]}
credentials: {directory: /etc/postern/credentials}
trust: {directory: /run/postern-trust, roots: /etc/postern/ca/roots.pem, ownRoots: /etc/postern/own-roots}
"#;

fn from_environment(setup: Setup) -> Setup {
    setup
        .set(
            "/policy/workload",
            json!({"namespace": {"fromEnv": "POSTERN_NAMESPACE"}, "pod": {"fromEnv": "POSTERN_POD"}}),
        )
        .set("/upstream/denyAddresses", json!(["10.96.0.0/16", {"fromEnv": "POSTERN_NODE_ADDRESSES"}]))
}

fn laid_out() -> Setup {
    let (setup, _) = Volumes::new().lay_out(Setup::new(&Pki::new("Upstream Test CA")));
    from_environment(setup)
}

#[test]
fn the_pod_is_named_in_events_and_the_nodes_addresses_are_denied() {
    let policy = Published::of(INSPECT);
    let pod = Volumes::publishing(policy).start_with(|setup| {
        from_environment(setup)
            .variable("POSTERN_NAMESPACE", "agents")
            .variable("POSTERN_POD", "coder-0")
            .variable("POSTERN_NODE_ADDRESSES", "192.0.2.7,2001:db8::7")
            .set("/upstream/hosts/api.example.com", "192.0.2.7")
    });
    let agent = pod.gateway.agent().trusting(pod.ca_roots());
    agent.get("https://api.example.com/").assert_refused(403, "postern/builtin/denied-address");
    let event = pod.gateway.wait_for("Request", "Deny");
    assert_eq!(event["workload"], json!({"namespace": "agents", "pod": "coder-0"}));
    assert_eq!(pod.gateway.status()["settings"]["upstream"]["denyAddresses"][2], "2001:db8::7/128");
}

#[test]
fn a_gateway_without_its_variables_does_not_start_and_names_them() {
    let said = laid_out().variable("POSTERN_POD", "coder-0").run(&["gateway", "--config", "settings.yaml"]);
    assert_eq!(said.status.code(), Some(1), "{said:?}");
    for part in ["policy.workload.namespace: ", "POSTERN_NAMESPACE", "upstream.denyAddresses[1]: "] {
        assert!(said.stderr.contains(part), "{part}: {}", said.stderr);
    }
    assert!(!said.stderr.contains("POSTERN_POD"), "{}", said.stderr);
}

#[test]
fn a_check_elsewhere_names_the_variables_and_judges_the_rest() {
    let check = ["gateway", "--config", "settings.yaml", "--check"];
    let said = laid_out().run(&check);
    assert_eq!(said.status.code(), Some(0), "{said:?}");
    assert!(said.stdout.starts_with("in order: policy sha256:"), "{said:?}");
    assert!(said.stderr.contains("POSTERN_NODE_ADDRESSES, which is not set here"), "{said:?}");

    let said = laid_out().variable("POSTERN_NODE_ADDRESSES", "node-1").run(&check);
    assert_eq!(said.status.code(), Some(1), "{said:?}");
    assert!(said.stderr.contains("upstream.denyAddresses[1]: the variable's value is wrong: "), "{said:?}");
}

#[test]
fn the_redirect_is_made_from_the_same_settings_where_nothing_else_is_there() {
    let setup = Setup::new(&Pki::new("Upstream Test CA"));
    std::fs::write(setup.path().join("settings"), SETTINGS).unwrap();
    let said = setup.run(&["redirect", "--uid", "61234", "--config", "settings", "--dry-run"]);
    assert_eq!(said.status.code(), Some(0), "{said:?}");
    for port in ["15001", "15053", "15090"] {
        assert!(said.stdout.contains(port), "{port}: {}", said.stdout);
    }
}
