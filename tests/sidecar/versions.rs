//! A gateway and an operator of different versions: what is in force of policies that the gateway does not know.

use std::time::Duration;

use postern::pod::{NEWEST_KEY, NEWEST_REVISION_KEY};

use super::{DENY, INSPECT, MINUTE, Published, Volumes, reasons};
use crate::support::Gateway;
use crate::support::coding::encode;
use crate::support::journal::poll;

const URL: &str = "https://api.example.com/echo";

/// The same policies, with a field that no version has.
fn later(published: &Published) -> Published {
    let mut later = published.clone();
    for (_, text) in &mut later.documents {
        let with =
            String::from_utf8(text.clone()).unwrap().replacen("\"spec\":{", "\"spec\":{\"later\":true,", 1);
        *text = with.into_bytes();
    }
    Published { revision: "sha256:1111111111111111".to_owned(), ..later }
}

/// The keys of both forms of the policies, as the operator writes them for gateways of two versions.
fn both(newest: &Published, older: &Published) -> Vec<(String, Vec<u8>)> {
    let mut keys: Vec<(String, Vec<u8>)> =
        older.keys().into_iter().map(|(key, content)| (key.to_owned(), content.to_vec())).collect();
    keys.push((NEWEST_KEY.to_owned(), encode("gzip", &newest.documents[0].1)));
    keys.push((NEWEST_REVISION_KEY.to_owned(), newest.revision.clone().into_bytes()));
    keys
}

fn borrowed(keys: &[(String, Vec<u8>)]) -> Vec<(&str, &[u8])> {
    keys.iter().map(|(key, content)| (key.as_str(), content.as_slice())).collect()
}

fn policy(gateway: &Gateway) -> serde_json::Value {
    gateway.status()["policy"].clone()
}

#[test]
fn a_document_that_the_gateway_cannot_know_is_said_at_once_and_renews_no_age() {
    let old = Published::new(&[("coder", INSPECT)], 10 * MINUTE);
    let mut pod = Volumes::publishing(old.clone()).start();
    let agent = pod.gateway.agent().trusting(pod.ca_roots());
    assert_eq!(pod.gateway.metric("postern_policy_unknown", &[]), 0.0);

    pod.policy.publish(&later(&old).synced(Duration::ZERO).keys());

    pod.gateway.wait_for_metric("postern_policy_unknown", &[], 1.0);
    let said = policy(&pod.gateway);
    assert_eq!((&said["state"], &said["revision"]), (&"Unknown".into(), &old.revision.as_str().into()));
    assert!(said["ageSeconds"].as_u64().unwrap() >= 600, "{said}");
    assert!(pod.gateway.metric("postern_policy_age_seconds", &[]) >= 600.0);
    let reasons = reasons(&pod.gateway);
    assert!(reasons.contains("spec.later") && reasons.contains("start the pod anew"), "{reasons}");
    assert_eq!(
        pod.gateway.admin("/readyz").text(),
        "the newest policies are not known to this version\n",
        "without what they say"
    );
    assert_eq!(agent.get(URL).status, 200, "the last good policy stays in force");

    pod.policy.publish(&old.synced(Duration::ZERO).keys());

    poll("the newest policy", || (pod.gateway.metric("postern_policy_unknown", &[]) == 0.0).then_some(()));
    assert_eq!(policy(&pod.gateway)["state"], "Fresh");
    assert_eq!(pod.gateway.admin("/readyz").status, 200);
}

#[test]
fn a_gateway_that_does_not_know_the_newest_form_follows_the_older_one_and_says_so() {
    let old = Published::new(&[("coder", INSPECT)], 10 * MINUTE);
    let mut pod = Volumes::publishing(old.clone()).start();
    let agent = pod.gateway.agent().trusting(pod.ca_roots());
    let older = Published::of(DENY);

    pod.policy.publish(&borrowed(&both(&later(&Published::of(INSPECT)), &older)));

    pod.gateway.wait_for_metric("postern_policy_unknown", &[], 1.0);
    agent.get(URL).assert_refused(403, "agents/coder/no-api");
    let said = policy(&pod.gateway);
    assert_eq!((&said["state"], &said["revision"]), (&"Unknown".into(), &older.revision.as_str().into()));
    assert!(said["ageSeconds"].as_u64().unwrap() < 300, "the operator vouches for it: {said}");
    assert!(reasons(&pod.gateway).contains("form of them for older versions"), "{}", reasons(&pod.gateway));
    assert_eq!(pod.gateway.admin("/readyz").status, 200);
    pod.gateway.wait_for("Policy", "Deny");
}

#[test]
fn a_gateway_that_knows_the_newest_form_follows_that() {
    let (newest, older) = (Published::of(DENY), Published::of(INSPECT));
    let mut pod = Volumes::new().start();
    let agent = pod.gateway.agent().trusting(pod.ca_roots());

    pod.policy.publish(&borrowed(&both(&newest, &older)));

    pod.gateway.wait_for_metric("postern_policy_info", &[("revision", &newest.revision)], 1.0);
    agent.get(URL).assert_refused(403, "agents/coder/no-api");
    assert_eq!(policy(&pod.gateway)["state"], "Fresh");
    assert_eq!(policy(&pod.gateway)["published"], newest.revision.as_str());
    assert_eq!(reasons(&pod.gateway), "");
}

#[test]
fn a_new_policy_is_in_force_though_the_settings_are_not_known() {
    let mut pod = Volumes::new().start();
    let agent = pod.gateway.agent().trusting(pod.ca_roots());
    let settings = std::fs::read_to_string(pod.gateway.path().join("settings.yaml")).unwrap();
    pod.gateway.write("settings.yaml", &format!("{settings}\nlater: true\n"));
    poll("the failure", || reasons(&pod.gateway).contains("later").then_some(()));
    let next = Published::of(DENY);

    pod.policy.publish(&next.keys());

    pod.gateway.wait_for_metric("postern_policy_info", &[("revision", &next.revision)], 1.0);
    agent.get(URL).assert_refused(403, "agents/coder/no-api");
    assert!(reasons(&pod.gateway).contains("the newest settings are not known"), "{}", reasons(&pod.gateway));
    assert_eq!(pod.gateway.admin("/readyz").status, 200, "no pod is taken away for it");
    assert_eq!(policy(&pod.gateway)["state"], "Fresh");
}

#[test]
fn what_is_wrong_with_the_policy_is_said_though_the_settings_are_broken() {
    let old = Published::new(&[("coder", INSPECT)], Duration::ZERO);
    let mut pod = Volumes::publishing(old.clone()).start();
    pod.gateway.write("settings.yaml", "nonsense: [");
    poll("the failure", || reasons(&pod.gateway).contains("settings.yaml").then_some(()));
    assert_eq!(policy(&pod.gateway)["state"], "Fresh");

    pod.policy.publish(&later(&old).keys());

    pod.gateway.wait_for_metric("postern_policy_unknown", &[], 1.0);
    assert_eq!(policy(&pod.gateway)["state"], "Unknown");
    let said = reasons(&pod.gateway);
    assert!(said.contains("settings.yaml") && said.contains("spec.later"), "{said}");

    let settings = pod.gateway.status()["policy"]["lastError"].to_string();
    assert_eq!(settings.matches("spec.later").count(), 1, "{settings}");
}
