//! Tests of what tools read of a status: readiness, and when it was looked at last.

use std::time::SystemTime;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use k8s_openapi::jiff::{SignedDuration, Timestamp};

use super::policies::Readings;
use super::status::status;
use super::testing::{Cluster, object, place, policy};
use crate::api::status::PolicyStatus;
use crate::policy::document::Kind;

const TUNNEL: &str = "destinations: [{name: d, hosts: [one.example], action: Tunnel}]";
const WRONG: &str = "destinations: [{name: d, hosts: [one.example], action: Perhaps}]";

fn types(cluster: &Cluster) -> Vec<String> {
    let status = cluster.server.object(&place("a")).unwrap()["status"].clone();
    let conditions = status["conditions"].as_array().unwrap().clone();
    conditions.iter().map(|one| one["type"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn a_policy_is_ready_where_it_is_accepted_and_programmed() {
    let mut cluster = Cluster::new().await;
    cluster.policy(&policy("a", TUNNEL));
    cluster.turn().await;
    cluster.controller.announce().await;
    assert_eq!(cluster.condition(&place("a"), "Ready").0, "True");
    assert_eq!(types(&cluster), ["Accepted", "Programmed", "Ready"]);

    cluster.pod("one", &[]);
    cluster.controller.announce().await;
    let (ready, reason, _) = cluster.condition(&place("a"), "Ready");
    assert_eq!((ready.as_str(), reason.as_str()), ("False", "Pending"));
    assert_eq!(types(&cluster), ["Accepted", "Programmed", "Ready"], "it waits, and nobody must do anything");
}

#[tokio::test]
async fn a_policy_that_is_not_accepted_is_stalled_until_somebody_changes_it() {
    let mut cluster = Cluster::new().await;
    cluster.policy(&policy("a", WRONG));
    cluster.turn().await;
    cluster.controller.announce().await;
    let (ready, reason, message) = cluster.condition(&place("a"), "Ready");
    assert_eq!((ready.as_str(), reason.as_str()), ("False", "Invalid"));
    assert!(message.contains("spec.destinations[0].action"), "{message}");
    assert_eq!(cluster.condition(&place("a"), "Stalled").0, "True");
    assert_eq!(cluster.server.events().len(), 1, "one mistake is one Event");

    cluster.policy(&policy("a", TUNNEL));
    cluster.turn().await;
    cluster.controller.announce().await;
    assert_eq!(types(&cluster), ["Accepted", "Programmed", "Ready"]);
}

#[test]
fn a_status_that_stays_the_same_says_now_and_then_when_it_was_looked_at() {
    let readings = Readings::default();
    let reading = readings.read(Kind::EgressPolicy, &object(&policy("a", TUNNEL)));
    let start = Timestamp::try_from(SystemTime::UNIX_EPOCH).unwrap();
    let after = |minutes| start + SignedDuration::from_mins(minutes);
    let first = status(&reading, &[], &PolicyStatus::default(), start);
    assert_eq!(first.checked_at, Some(Time(start)));
    assert_eq!(status(&reading, &[], &first, after(9)), first, "nothing is written meanwhile");
    let again = status(&reading, &[], &first, after(10));
    assert_eq!(again.checked_at, Some(Time(after(10))));
    assert_eq!(again.conditions, first.conditions, "and nothing else has changed");

    let mut changed = object(&policy("a", WRONG));
    changed.metadata.generation = Some(2);
    let wrong = readings.read(Kind::EgressPolicy, &changed);
    assert_eq!(status(&wrong, &[], &first, after(1)).checked_at, Some(Time(after(1))), "a change is a look");
}
