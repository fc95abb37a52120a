//! Tests of what becomes of pods without a gateway, and of gateways that end, against a scripted API server.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::fleet::GatewayAnswer;
use super::testing::{Cluster, place, policy};

const TUNNEL: &str = "destinations: [{name: d, hosts: [one.example], action: Tunnel}]";
const ENABLED: (&str, &str) = ("postern.dev/injection", "enabled");

/// Where a pod of `agents` is.
fn pod(name: &str) -> String {
    format!("/api/v1/namespaces/agents/pods/{name}")
}

async fn enforces(cluster: &Cluster, name: &str) {
    let wanted = cluster.report().revision.clone();
    let answer = GatewayAnswer { revision: Some(wanted.clone()), proven: Some(true), unknown: false };
    cluster.controller.learn(&cluster.guarded(name), &wanted, Some(answer), Instant::now()).await;
}

fn status(cluster: &Cluster) -> Value {
    cluster.server.object(&place("a")).unwrap()["status"].clone()
}

fn metrics(cluster: &Cluster) -> String {
    cluster.controller.metrics.encode()
}

/// A namespace with a policy, two guarded pods that enforce it, and this many others.
async fn cluster_with(bare: usize) -> Cluster {
    let mut cluster = Cluster::new().await;
    cluster.policy(&policy("a", TUNNEL));
    cluster.pod("one", &[]);
    cluster.pod("two", &[]);
    for at in 0..bare {
        cluster.bare_pod("agents", &format!("bare-{at}"), &json!({}));
    }
    cluster.turn().await;
    enforces(&cluster, "one").await;
    enforces(&cluster, "two").await;
    cluster
}

#[tokio::test]
async fn pods_without_a_gateway_are_in_the_status_a_metric_and_an_event_until_they_are_gone() {
    let mut cluster = cluster_with(1).await;
    cluster.controller.announce().await;
    let now = status(&cluster);
    assert_eq!((&now["enforcing"], &now["selectedPods"]), (&json!("2/3, 1 unguarded"), &json!(3)));
    assert_eq!((&now["unguardedPods"], &now["unguarded"]), (&json!(1), &json!(["agents/bare-0"])));
    let (holds, reason, message) = cluster.condition(&place("a"), "Programmed");
    assert_eq!((holds.as_str(), reason.as_str()), ("False", "Unguarded"));
    assert!(
        message.starts_with("2 of 3 pods enforce the newest revision, 1 unguarded: agents/bare-0."),
        "{message}"
    );

    let start = Instant::now();
    cluster.controller.look_at_unguarded(start).await;
    cluster.controller.look_at_unguarded(start + Duration::from_secs(60)).await;
    let of_pod = |note: &String| note.starts_with("The pod has no gateway");
    assert_eq!(cluster.server.events().iter().filter(|note| of_pod(note)).count(), 1, "it is told once");
    assert!(metrics(&cluster).contains("postern_operator_unguarded_pods{namespace=\"agents\"} 1"));
    assert!(cluster.server.object(&pod("bare-0")).is_some(), "it is reported, not deleted");

    cluster.bare_pod_ends("agents", "bare-0");
    cluster.controller.look_at_unguarded(start + Duration::from_secs(62)).await;
    cluster.controller.announce().await;
    assert_eq!(cluster.condition(&place("a"), "Programmed").1, "Programmed");
    assert_eq!(status(&cluster)["enforcing"], "2/2");
    assert!(metrics(&cluster).contains("postern_operator_unguarded_pods{namespace=\"agents\"} 0"));
}

#[tokio::test]
async fn a_policy_counts_the_unguarded_pods_that_it_selects() {
    let mut cluster = Cluster::new().await;
    cluster.policy(&policy("a", &format!("podSelector: {{matchLabels: {{app: coder}}}}\n  {TUNNEL}")));
    cluster.bare_pod("agents", "coder", &json!({ "labels": { "app": "coder" } }));
    cluster.bare_pod("agents", "other", &json!({ "labels": { "app": "other" } }));
    cluster.turn().await;
    cluster.controller.announce().await;
    assert_eq!(status(&cluster)["unguarded"], json!(["agents/coder"]));
    cluster.controller.look_at_unguarded(Instant::now()).await;
    assert!(
        metrics(&cluster).contains("postern_operator_unguarded_pods{namespace=\"agents\"} 2"),
        "both are counted"
    );
}

#[tokio::test]
async fn what_else_is_wrong_with_a_policy_does_not_hide_unguarded_pods() {
    let mut cluster = cluster_with(2).await;
    cluster.policy(&policy("a", "destinations: [{name: d, hosts: [one.example], action: Perhaps}]"));
    cluster.turn().await;
    cluster.controller.announce().await;
    let (_, reason, message) = cluster.condition(&place("a"), "Programmed");
    assert_eq!(reason, "NotAccepted");
    assert!(message.contains("2 unguarded: agents/bare-0, agents/bare-1"), "{message}");
}

#[tokio::test]
async fn pods_of_namespaces_that_want_no_gateway_are_nobody_s_business() {
    let mut cluster = cluster_with(0).await;
    cluster.namespace("plain", &[]);
    cluster.namespace("postern-system", &[ENABLED]);
    cluster.namespace("kube-system", &[ENABLED]);
    for namespace in ["plain", "postern-system", "kube-system", "not-listed"] {
        cluster.bare_pod(namespace, "bare", &json!({}));
    }
    cluster.controller.look_at_unguarded(Instant::now()).await;
    cluster.controller.announce().await;
    assert_eq!(cluster.server.events(), Vec::<String>::new());
    assert_eq!(cluster.condition(&place("a"), "Programmed").0, "True");
    let text = metrics(&cluster);
    assert_eq!(text.matches("postern_operator_unguarded_pods{").count(), 1, "{text}");
    cluster.namespace("plain", &[ENABLED]);
    cluster.controller.look_at_unguarded(Instant::now()).await;
    assert_eq!(cluster.server.events().len(), 1, "it is labelled now, and its pod ran before");
}

#[tokio::test]
async fn a_pod_that_says_it_is_injected_and_has_no_gateway_is_unguarded() {
    let mut cluster = cluster_with(0).await;
    cluster.labelled_pod(json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": "liar", "namespace": "agents", "uid": "uid-liar", "labels": { "postern.dev/injected": "true" },
        },
        "spec": { "containers": [], "initContainers": [{ "name": "postern-gateway" }] },
        "status": { "phase": "Running", "podIP": "192.0.2.9" },
    }));
    cluster.controller.announce().await;
    assert_eq!(status(&cluster)["unguarded"], json!(["agents/liar"]));
    assert_eq!(status(&cluster)["enforcing"], "2/3, 1 unguarded");
}

#[tokio::test]
async fn a_namespace_that_asks_for_it_has_its_unguarded_pods_deleted_and_no_others() {
    let mut cluster = cluster_with(1).await;
    cluster.bare_pod("agents", "static", &json!({ "annotations": { "kubernetes.io/config.mirror": "x" } }));
    cluster.bare_pod("agents", "leaving", &json!({ "deletionTimestamp": "2026-01-01T00:00:00Z" }));
    cluster.namespace("other", &[ENABLED]);
    cluster.bare_pod("other", "bare", &json!({}));
    cluster.namespace("agents", &[ENABLED, ("postern.dev/unguarded", "Delete")]);
    cluster.controller.look_at_unguarded(Instant::now()).await;
    let deleted: Vec<String> =
        cluster.server.writes().into_iter().filter(|line| line.starts_with("DELETE")).collect();
    assert_eq!(deleted, [format!("DELETE {}", pod("bare-0"))]);
    assert!(
        cluster
            .server
            .events()
            .iter()
            .any(|note| note.contains("it is deleted, as postern.dev/unguarded=Delete"))
    );
    assert!(cluster.server.events().iter().any(|note| note.contains("remove its manifest from the node")));
    assert!(metrics(&cluster).contains("postern_operator_unguarded_pods_deleted_total 1"));
}

#[tokio::test]
async fn a_pod_with_a_gateway_that_lost_its_label_is_not_deleted() {
    let mut cluster = cluster_with(1).await;
    let mut object = cluster.server.object(&pod("bare-0")).unwrap();
    object["spec"]["initContainers"] = json!([{ "name": "postern-redirect" }, { "name": "postern-gateway" }]);
    cluster.server.put(&pod("bare-0"), object);
    cluster.namespace("agents", &[ENABLED, ("postern.dev/unguarded", "Delete")]);
    cluster.controller.look_at_unguarded(Instant::now()).await;
    assert!(cluster.server.object(&pod("bare-0")).is_some());
}

#[tokio::test]
async fn a_word_that_nobody_knows_deletes_nothing_and_is_said() {
    let mut cluster = cluster_with(1).await;
    cluster.namespace("agents", &[ENABLED, ("postern.dev/unguarded", "delete")]);
    cluster.controller.look_at_unguarded(Instant::now()).await;
    assert!(cluster.server.object(&pod("bare-0")).is_some());
    let events = cluster.server.events();
    assert!(events[0].contains("\"delete\" there, which is neither Report nor Delete"), "{events:?}");
}

#[tokio::test]
async fn of_five_thousand_unguarded_pods_ten_are_named_and_twenty_told_of_at_a_time() {
    let cluster = cluster_with(5_000).await;
    let start = Instant::now();
    cluster.controller.look_at_unguarded(start).await;
    assert_eq!(cluster.server.events().len(), 20);
    cluster.controller.look_at_unguarded(start + Duration::from_secs(2)).await;
    assert_eq!(cluster.server.events().len(), 40, "the next ones, not the same");
    cluster.controller.announce().await;
    let now = status(&cluster);
    assert_eq!((&now["enforcing"], &now["unguarded"]), (&json!("2/5002, 5000 unguarded"), &Value::Null));
    let message = cluster.condition(&place("a"), "Programmed").2;
    assert!(message.contains("5000 unguarded: ") && message.contains(" and 4990 more"), "{message}");
}

/// The guarded pod `one`, its gateway's container being so.
fn ended(restarts: u32, state: &Value) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": { "name": "one", "namespace": "agents", "uid": "uid-one" },
        "spec": {
            "containers": [],
            "initContainers": [{ "name": "postern-redirect" }, { "name": "postern-gateway" }],
        },
        "status": {
            "phase": "Running",
            "initContainerStatuses": [{
                "name": "postern-gateway", "image": "", "imageID": "", "ready": false, "restartCount": restarts,
                "state": state, "lastState": { "terminated": { "exitCode": 137, "reason": "OOMKilled" } },
            }],
        },
    })
}

#[tokio::test]
async fn a_gateway_that_ends_is_told_of_and_so_is_that_kubelet_waits() {
    let mut cluster = cluster_with(0).await;
    let running = json!({ "running": {} });
    cluster.controller.look_at_crashes().await;
    assert_eq!(cluster.server.events(), Vec::<String>::new());

    cluster.labelled_pod(ended(1, &running));
    cluster.controller.look_at_crashes().await;
    cluster.controller.look_at_crashes().await;
    let events = cluster.server.events();
    assert_eq!(events.len(), 1);
    assert!(events[0].contains("(OOMKilled, exit code 137) and was started again"), "{events:?}");

    let waits = "back-off 10s restarting failed container=postern-gateway pod=one_agents(uid-one)";
    let waiting = json!({ "waiting": { "reason": "CrashLoopBackOff", "message": waits } });
    cluster.labelled_pod(ended(1, &waiting));
    cluster.controller.look_at_crashes().await;
    assert!(cluster.server.events().iter().any(|note| note.contains("Kubelet waits 10s")));
    assert!(metrics(&cluster).contains("postern_operator_gateways_backing_off 1"));

    cluster.labelled_pod(ended(2, &running));
    cluster.controller.look_at_crashes().await;
    let text = metrics(&cluster);
    for line in [
        "postern_operator_gateway_restarts_total 2",
        "postern_operator_gateway_back_offs_total 1",
        "postern_operator_gateways_backing_off 0",
    ] {
        assert!(text.lines().any(|told| told == line), "{line} in\n{text}");
    }
}
