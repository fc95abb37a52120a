//! Tests of how an edit reaches the pods: at once where it is stricter, and as far as their gateways know what it says.

use std::time::{Duration, Instant};

use super::fleet::GatewayAnswer;
use super::known_fields::KnownFields;
use super::queue::{NamespaceQueue, TurnOutcome};
use super::testing::{Cluster, POLICY, place, policy};

const TUNNEL: &str = "destinations: [{name: d, hosts: [one.example], action: Tunnel}]";

fn answers(revision: &str, proven: bool) -> Option<GatewayAnswer> {
    Some(GatewayAnswer { revision: Some(revision.to_owned()), proven: Some(proven), unknown: false })
}

/// Tunnels so many names.
fn names(count: usize) -> String {
    let rule = |at| format!("{{name: d{at}, hosts: [h{at}.example], action: Tunnel}}");
    format!("destinations: [{}]", (0..count).map(rule).collect::<Vec<_>>().join(", "))
}

#[tokio::test]
async fn what_makes_a_policy_stricter_is_stamped_at_once_after_any_number_of_edits() {
    let mut cluster = Cluster::new().await;
    cluster.pod("one", &[]);
    let (mut count, mut stamped) = (1, Vec::new());
    for _ in 0..30 {
        cluster.policy(&policy("a", &names(count)));
        cluster.turn().await;
        cluster.controller.stamp_all().await;
        cluster.pod_seen("one");
        let is_newest = cluster.guarded("one").policy_stamp.as_ref() == Some(&cluster.report().revision);
        stamped.push(is_newest);
        count += 1;
    }
    assert!(stamped[..20].iter().all(|is_newest| *is_newest), "{stamped:?}");
    assert!(!stamped[29], "who edits all the time does not have all of the pace");
    for stricter in [names(count - 2), format!("{}\n  toolDefault: Deny", names(count - 2))] {
        cluster.policy(&policy("a", &stricter));
        cluster.turn().await;
        cluster.controller.stamp_all().await;
        cluster.pod_seen("one");
        assert_eq!(cluster.guarded("one").policy_stamp.as_ref(), Some(&cluster.report().revision));
    }
}

#[tokio::test]
async fn what_could_be_stricter_does_not_wait_for_the_turn_of_whoever_edits_all_the_time() {
    let mut cluster = Cluster::new().await;
    cluster.policy(&policy("a", &names(2)));
    cluster.turn().await;
    let start = Instant::now();
    let turned = |queue: &mut NamespaceQueue| {
        queue.touch("agents", start);
        assert!(queue.take(start + Duration::from_hours(1)).is_some());
        queue.end("agents", TurnOutcome::Done, start, 0.5);
    };
    (0..40).for_each(|_| cluster.controller.queue(turned));
    let mut waits = |spec: &str| {
        cluster.policy(&policy("a", spec));
        let before = Instant::now().checked_sub(Duration::from_secs(1)).unwrap();
        cluster.controller.queue(|queue| queue.touch("agents", before));
        cluster.controller.hurry();
        cluster.controller.queue(|queue| queue.take(Instant::now())).is_none()
    };
    assert!(waits(&names(3)));
    assert!(!waits(&names(1)));
}

/// Gateways of a release that had not heard of `toolDefault`.
fn before_tool_default() -> &'static KnownFields {
    let lines = include_str!("last-release.txt").lines().filter(|line| !line.starts_with("spec.toolDefault"));
    Box::leak(Box::new(KnownFields::of(&lines.collect::<Vec<_>>().join("\n"))))
}

#[tokio::test]
async fn older_gateways_are_given_the_last_version_that_they_know_and_the_status_names_their_pods() {
    let mut cluster = Cluster::new().await;
    cluster.controller.last_release = before_tool_default();
    cluster.policy(&policy("a", TUNNEL));
    cluster.policy(&policy("b", TUNNEL));
    cluster.pod("old", &[]);
    cluster.pod("new", &[]);
    cluster.turn().await;
    assert!(cluster.published()["revision.newest"].is_null(), "one form does for everybody");
    let first = cluster.published()["namespace-a.json"].clone();

    cluster.policy(&policy("a", &format!("{TUNNEL}\n  toolDefault: Deny")));
    cluster.policy(&policy("b", &TUNNEL.replace("Tunnel", "Deny")));
    cluster.turn().await;
    let published = cluster.published();
    assert_eq!(published["namespace-a.json"], first);
    assert!(published["namespace-b.json"].as_str().unwrap().contains("Deny"), "the others go on");
    let report = cluster.report();
    assert_eq!(published["revision.newest"], report.revision.as_str());
    let older = published["revision"].as_str().unwrap().to_owned();
    assert_ne!(older, report.revision);
    let binary = cluster.server.object(POLICY).unwrap()["binaryData"].clone();
    assert!(binary["policies.newest.yaml.gz"].is_string());

    let wanted = report.revision.clone();
    for (pod, revision) in [("old", &older), ("new", &wanted)] {
        let answer = answers(revision, true);
        cluster.controller.learn(&cluster.guarded(pod), &wanted, answer, Instant::now()).await;
    }
    cluster.controller.announce().await;
    let (status, reason, message) = cluster.condition(&place("a"), "Programmed");
    assert_eq!((status.as_str(), reason.as_str()), ("False", "GatewayTooOld"));
    assert!(message.contains("1 of 2 pods enforce"), "{message}");
    assert!(message.contains("spec.toolDefault") && message.contains("agents/old"), "{message}");
    assert!(!message.contains("agents/new"), "{message}");
    assert_eq!(
        cluster.condition(&place("b"), "Programmed").0,
        "True",
        "all pods enforce it as it is written"
    );

    cluster.server.forget();
    cluster.turn().await;
    assert_eq!(
        cluster.server.writes(),
        Vec::<String>::new(),
        "the next turn finds everything as it should be"
    );
    cluster.policy(&policy("a", TUNNEL));
    cluster.turn().await;
    assert!(cluster.published()["revision.newest"].is_null());
}

#[tokio::test]
async fn a_pod_that_does_not_know_the_policies_is_in_the_status_at_once() {
    let mut cluster = Cluster::new().await;
    cluster.policy(&policy("a", TUNNEL));
    cluster.pod("one", &[]);
    cluster.turn().await;
    let wanted = cluster.report().revision.clone();
    let answer = answers("sha256:old", true).map(|answer| GatewayAnswer { unknown: true, ..answer });
    cluster.controller.learn(&cluster.guarded("one"), &wanted, answer, Instant::now()).await;
    cluster.controller.announce().await;
    let (status, reason, message) = cluster.condition(&place("a"), "Programmed");
    assert_eq!((status.as_str(), reason.as_str()), ("False", "GatewayTooOld"));
    assert!(message.contains("agents/one") && message.contains("Start them anew"), "{message}");
}
