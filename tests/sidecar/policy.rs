//! The directory that the operator writes: what is in force of it, how old it is, and what is said where it is not.

use std::time::Duration;

use super::{DENY, HOUR, INSPECT, MINUTE, Published, TUNNEL, Volumes, reasons, stamp};
use crate::support::coding::encode;
use crate::support::journal::poll;
use postern::pod::{COMPRESSED_KEY, LOG_LEVEL};

const URL: &str = "https://api.example.com/echo";
const ENDED: &str = "postern_policy_reloads_total";

#[test]
fn the_revision_in_force_is_the_one_that_the_operator_published() {
    let published = Published::of(INSPECT);
    let mut pod = Volumes::publishing(published.clone()).start();
    let agent = pod.gateway.agent().trusting(pod.ca_roots());
    assert_eq!(agent.get(URL).status, 200);
    let policy = &pod.gateway.status()["policy"];
    assert_eq!(
        (&policy["revision"], &policy["published"]),
        (&published.revision.as_str().into(), &published.revision.as_str().into())
    );
    assert_eq!(pod.gateway.admin("/readyz").status, 200);

    let next = Published::of(DENY);
    pod.policy.publish(&next.keys());

    pod.gateway.wait_for_metric("postern_policy_info", &[("revision", &next.revision)], 1.0);
    agent.get(URL).assert_refused(403, "agents/coder/no-api");
}

#[test]
fn a_directory_without_any_policy_denies_everything_and_runs() {
    let mut pod = Volumes::publishing(Published::new(&[], Duration::ZERO)).start();
    let agent = pod.gateway.agent().trusting(pod.ca_roots());
    let refused = agent.connect("api.example.com:443").err().unwrap();
    refused.assert_refused(403, "postern/builtin/no-policy");
    assert!(reasons(&pod.gateway).contains("no policy selects this pod"), "{}", reasons(&pod.gateway));
    assert_eq!(pod.gateway.admin("/readyz").status, 200, "a pod may start before its policy is written");

    let first = Published::of(INSPECT);
    pod.policy.publish(&first.keys());

    pod.gateway.wait_for_metric("postern_policy_info", &[("revision", &first.revision)], 1.0);
    assert_eq!(agent.get(URL).status, 200);
}

#[test]
fn policies_may_come_compressed() {
    let plain = Published::of(INSPECT);
    let (_, text) = &plain.documents[0];
    let documents = vec![(COMPRESSED_KEY.to_owned(), encode("gzip", text))];
    let pod = Volumes::publishing(Published { documents, ..plain }).start();
    let agent = pod.gateway.agent().trusting(pod.ca_roots());
    assert_eq!(agent.get(URL).status, 200);
    assert_eq!(reasons(&pod.gateway), "", "the revision is that of the documents, whatever holds them");
}

#[test]
fn what_decompresses_to_too_much_changes_nothing() {
    let plain = Published::of(INSPECT);
    let mut pod = Volumes::publishing(plain.clone()).start();
    let bomb = encode("gzip", &vec![b' '; 17 << 20]);
    assert!(bomb.len() < 1 << 20, "it would fit into a ConfigMap");

    pod.policy.publish(&Published { documents: vec![(COMPRESSED_KEY.to_owned(), bomb)], ..plain }.keys());

    pod.gateway.wait_for_metric(ENDED, &[("result", "failure")], 1.0);
    assert!(reasons(&pod.gateway).contains("becomes more than"), "{}", reasons(&pod.gateway));
    assert_eq!(pod.gateway.agent().trusting(pod.ca_roots()).get(URL).status, 200);
}

#[test]
fn a_policy_that_is_only_vouched_for_again_disturbs_nothing() {
    let old = Published::new(&[("coder", INSPECT)], 10 * MINUTE);
    let mut pod = Volumes::publishing(old.clone()).start();
    let mut connection = pod.gateway.agent().trusting(pod.ca_roots()).tls("api.example.com");
    let mut ask = || {
        connection.send("GET /echo HTTP/1.1\r\nHost: api.example.com\r\n\r\n");
        connection.read_answer().status
    };
    assert_eq!(ask(), 200);
    assert_eq!(pod.gateway.status()["policy"]["state"], "Stale");
    assert!(reasons(&pod.gateway).contains("the policy is stale"), "{}", reasons(&pod.gateway));
    let (links, minted) =
        (pod.upstream.links().len(), pod.gateway.metric("postern_leaf_certificates_minted_total", &[]));

    pod.policy.publish(&old.synced(Duration::ZERO).keys());

    pod.gateway.wait_for_metric(ENDED, &[("result", "success")], 1.0);
    assert_eq!(pod.gateway.status()["policy"]["state"], "Fresh");
    assert!(pod.gateway.metric("postern_policy_age_seconds", &[]) < 300.0);
    assert_eq!(ask(), 200, "the connection lives on");
    assert_eq!(pod.gateway.agent().trusting(pod.ca_roots()).get(URL).status, 200);
    assert_eq!(pod.upstream.links().len(), links, "and so does the pool");
    assert_eq!(pod.gateway.metric("postern_leaf_certificates_minted_total", &[]), minted);
    let told = pod.gateway.events().into_iter().filter(|event| event["kind"] == "Policy").count();
    assert_eq!(told, 0, "nothing is told of it");
}

#[test]
fn a_policy_that_nobody_vouches_for_expires_and_recovers() {
    let old = Published::new(&[("coder", INSPECT)], 25 * HOUR);
    let mut pod = Volumes::publishing(old.clone()).start();
    let agent = pod.gateway.agent().trusting(pod.ca_roots());
    assert_eq!(pod.gateway.status()["policy"]["state"], "Expired");
    assert!(pod.gateway.admin("/readyz").text().contains("the policy has expired"));
    agent.connect("api.example.com:443").err().unwrap().assert_refused(403, "postern/builtin/expired");

    pod.policy.publish(&old.synced(Duration::ZERO).keys());

    pod.gateway.wait_for_metric(ENDED, &[("result", "success")], 1.0);
    assert_eq!(agent.get(URL).status, 200);
    assert_eq!(pod.gateway.admin("/readyz").status, 200);
}

#[test]
fn a_time_that_is_none_leaves_the_last_good_policy() {
    let good = Published::of(INSPECT);
    let mut pod = Volumes::publishing(good.clone()).start();

    pod.policy.publish(&Published { synced_at: "yesterday".to_owned(), ..good.clone() }.keys());

    pod.gateway.wait_for_metric(ENDED, &[("result", "failure")], 1.0);
    assert!(pod.gateway.status()["reasons"].to_string().contains("syncedAt: expected a time like"));
    assert_eq!(pod.gateway.admin("/readyz").status, 503);
    assert_eq!(pod.gateway.agent().trusting(pod.ca_roots()).get(URL).status, 200);
    pod.policy.publish(&good.keys());
    poll("readiness", || (pod.gateway.admin("/readyz").status == 200).then_some(()));
}

#[test]
fn documents_that_are_not_what_the_operator_published_are_said() {
    let other = Published { revision: format!("sha256:{}", "0".repeat(32)), ..Published::of(INSPECT) };
    let pod = Volumes::publishing(other).start();
    assert!(
        reasons(&pod.gateway)
            .contains("they were altered, or gateway and operator are of different versions")
    );
    assert_eq!(pod.gateway.agent().trusting(pod.ca_roots()).get(URL).status, 200);
    assert_eq!(pod.gateway.admin("/readyz").status, 200);
}

#[test]
fn a_stamp_that_is_not_the_revision_in_force_is_said_and_traffic_goes_on() {
    let (first, second) = (Published::of(INSPECT), Published::of(TUNNEL));
    let mut pod = Volumes::publishing(first.clone()).start();
    let programmed = || pod.gateway.admin("/metrics").text().contains("\npostern_policy_programmed 1");
    assert!(
        !pod.gateway.admin("/metrics").text().contains("postern_policy_programmed "),
        "nobody stamped it"
    );

    pod.info.publish(&[("labels", b"app=\"coder\"\n"), ("annotations", stamp(&second.revision).as_bytes())]);

    poll("the reason", || reasons(&pod.gateway).contains("not programmed yet").then_some(()));
    assert_eq!(pod.gateway.status()["policy"]["stamped"], second.revision.as_str());
    assert!(pod.gateway.admin("/metrics").text().contains("\npostern_policy_programmed 0"));
    assert_eq!(pod.gateway.admin("/readyz").status, 200);
    assert_eq!(pod.gateway.agent().trusting(pod.ca_roots()).get(URL).status, 200);

    pod.policy.publish(&second.keys());

    poll("the metric", || programmed().then_some(()));
    assert_eq!(reasons(&pod.gateway), "");

    pod.info.publish(&[("labels", b"app=\"coder\"\n"), ("annotations", b"")]);

    poll("its end", || {
        (!pod.gateway.admin("/metrics").text().contains("postern_policy_programmed ")).then_some(())
    });
}

#[test]
fn labels_that_change_select_other_policies() {
    let published = Published::new(&[("coder", INSPECT), ("tester", DENY)], Duration::ZERO);
    let mut pod = Volumes::publishing(published).start();
    let agent = pod.gateway.agent().trusting(pod.ca_roots());
    assert_eq!(agent.get(URL).status, 200);

    pod.info.publish(&[("labels", b"app=\"tester\"\n"), ("annotations", b"")]);

    pod.gateway.wait_for("Policy", "Allow");
    agent.get(URL).assert_refused(403, "agents/tester/no-api");
}

#[test]
fn the_pods_annotation_sets_the_level_of_a_log_that_runs() {
    let mut pod = Volumes::publishing(Published::of(INSPECT)).start();
    let agent = pod.gateway.agent().trusting(pod.ca_roots());
    let failed = || pod.gateway.log().matches("the agent's TLS handshake failed").count();
    let fail = |times: f64| {
        assert!(agent.dial("api.example.com").protocols(&["ssh"]).open().is_err());
        let closed = [("reason", "agent_tls")];
        pod.gateway.wait_for_metric("postern_connections_closed_total", &closed, times);
    };
    fail(1.0);
    assert_eq!((failed(), agent.get(URL).status), (0, 200), "that is a word of level debug");

    let annotated = |level: &str| format!("{LOG_LEVEL}=\"{level}\"\n");
    pod.info.publish(&[("labels", b"app=\"coder\"\n"), ("annotations", annotated("debug").as_bytes())]);

    poll("the level", || pod.gateway.log().contains("another level level=DEBUG").then_some(()));
    fail(2.0);
    poll("its words", || (failed() == 1).then_some(()));

    pod.info.publish(&[("labels", b"app=\"coder\"\n"), ("annotations", annotated("loud").as_bytes())]);

    poll("the level of before", || pod.gateway.log().contains("another level level=INFO").then_some(()));
    fail(3.0);
    assert_eq!(failed(), 1);
}
