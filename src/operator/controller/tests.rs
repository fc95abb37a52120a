//! Tests of the controller as a whole, against a scripted API server.

use std::time::{Duration, Instant, SystemTime};

use serde_json::json;
use tokio::time::timeout;

use super::fleet::GatewayAnswer;
use super::publish::FallbackVersion;
use super::testing::{CA, CREDENTIALS, Cluster, POLICY, cluster_policy, object, place, policy};
use crate::policy::document::Kind;

const TUNNEL: &str = "destinations: [{name: d, hosts: [one.example], action: Tunnel}]";
const INSPECT: &str = "destinations: [{name: d, hosts: [llm.example], action: Inspect}]\n  credentials: [{name: llm, hosts: [llm.example], secretKeyRef: {name: llm, key: api-key}}]";

fn answers(revision: &str, proven: bool) -> Option<GatewayAnswer> {
    Some(GatewayAnswer { revision: Some(revision.to_owned()), proven: Some(proven), unknown: false })
}

#[tokio::test]
async fn a_namespace_has_its_objects_before_its_first_pod_and_its_first_policy() {
    let cluster = Cluster::new().await;
    cluster.turn().await;
    assert_eq!(cluster.published()["settings"], "a: b");
    assert_eq!(cluster.published()["revision"], cluster.report().revision.as_str());
    assert!(cluster.published()["syncedAt"].as_str().unwrap().ends_with('Z'));
    assert!(cluster.server.object(CREDENTIALS).is_some());
}

#[tokio::test]
async fn a_turn_that_finds_everything_as_it_should_be_writes_nothing() {
    let mut cluster = Cluster::new().await;
    cluster.policy(&policy("a", TUNNEL));
    cluster.turn().await;
    cluster.server.forget();
    cluster.turn().await;
    assert_eq!(cluster.server.writes(), Vec::<String>::new());
}

#[tokio::test]
async fn the_ca_is_written_before_the_revision_that_needs_it() {
    let mut cluster = Cluster::new().await;
    cluster.turn().await;
    let before = cluster.server.object(CA);
    cluster.server.forget();
    cluster.policy(&policy("a", INSPECT));
    cluster.turn().await;
    let writes = cluster.server.writes();
    let at = |path: &str| writes.iter().position(|write| *write == format!("PATCH {path}")).unwrap();
    assert!(at(CA) < at(POLICY), "{writes:?}");
    assert_ne!(cluster.server.object(CA), before);
}

#[tokio::test]
async fn a_ca_that_cannot_be_written_keeps_the_revision_back() {
    let mut cluster = Cluster::new().await;
    cluster.turn().await;
    let before = cluster.published();
    cluster.policy(&policy("a", INSPECT));
    cluster.server.refuse(&format!("PATCH {CA}"), 500);
    let error = cluster.controller.reconcile("agents", SystemTime::now()).await.unwrap_err();
    assert_eq!(error.to_string(), "cannot write agents/postern-ca: refused by the test");
    assert_eq!(cluster.published(), before);
}

#[tokio::test]
async fn a_policy_that_does_not_compile_leaves_the_last_good_one_in_force() {
    let mut cluster = Cluster::new().await;
    cluster.policy(&policy("a", TUNNEL));
    cluster.turn().await;
    let before = cluster.published();
    cluster.policy(&policy(
        "a",
        "destinations: [{name: d, hosts: [one.example], action: Permit}]\n  toolDefault: Perhaps",
    ));
    cluster.policy(&policy("b", TUNNEL));
    cluster.turn().await;
    cluster.controller.announce().await;
    assert_eq!(cluster.published()["namespace-a.json"], before["namespace-a.json"]);
    assert!(cluster.published()["namespace-b.json"].is_string(), "the others go on");
    let (status, reason, message) = cluster.condition(&place("a"), "Accepted");
    assert_eq!((status.as_str(), reason.as_str()), ("False", "Invalid"));
    assert!(
        message.contains("spec.destinations[0].action: ") && message.contains("spec.toolDefault: "),
        "{message}"
    );
    assert!(message.contains("Its last good version stays in force"), "{message}");
    assert_eq!(cluster.condition(&place("a"), "Programmed").1, "NotAccepted");
    assert_eq!(cluster.condition(&place("b"), "Accepted").0, "True");
    assert!(cluster.server.events().iter().any(|note| note.contains("spec.toolDefault")));
}

#[tokio::test]
async fn an_object_that_cannot_be_read_stops_nobody() {
    let mut cluster = Cluster::new().await;
    let strange =
        kube::api::DynamicObject { data: json!({ "spec": "nonsense" }), ..object(&policy("x", "{}")) };
    cluster.server.put(&place("x"), serde_json::to_value(&strange).unwrap());
    cluster.seen(Kind::EgressPolicy, strange);
    cluster.policy(&policy("b", TUNNEL));
    cluster.turn().await;
    cluster.controller.announce().await;
    assert!(cluster.published()["namespace-b.json"].is_string());
    assert_eq!(cluster.condition(&place("x"), "Accepted").0, "False");
}

#[tokio::test]
async fn policies_that_contradict_each_other_are_told_how_to_mend_it() {
    let mut cluster = Cluster::new().await;
    cluster.policy(&policy("a", INSPECT));
    cluster.turn().await;
    cluster.policy(&policy("b", INSPECT));
    cluster.turn().await;
    cluster.controller.announce().await;
    let (status, reason, message) = cluster.condition(&place("b"), "Accepted");
    assert_eq!((status.as_str(), reason.as_str()), ("False", "Conflict"));
    assert!(
        message.contains("In namespace agents: spec.credentials[0]") && message.contains("change or delete"),
        "{message}"
    );
    assert_eq!(cluster.condition(&place("a"), "Accepted").0, "True");
    assert_eq!(cluster.report().refused["namespace-b.json"].in_force, FallbackVersion::Nothing);
}

#[tokio::test]
async fn a_cluster_policy_goes_to_the_namespaces_that_it_selects() {
    let mut cluster = Cluster::new().await;
    let selector = |tier: &str| format!("namespaceSelector: {{matchLabels: {{tier: {tier}}}}}\n  {TUNNEL}");
    cluster.namespace("agents", &[("postern.dev/injection", "enabled"), ("tier", "a")]);
    cluster.policy(&cluster_policy("mine", &selector("a")));
    cluster.policy(&cluster_policy("other", &selector("b")));
    cluster.turn().await;
    assert!(cluster.published()["cluster-mine.json"].is_string());
    assert!(cluster.published()["cluster-other.json"].is_null());
}

#[tokio::test]
async fn a_secret_of_another_namespace_is_never_read() {
    let mut cluster = Cluster::new().await;
    cluster.secret("postern-system", "llm", &[("api-key", "theirs")]);
    cluster.secret("default", "llm", &[("api-key", "theirs")]);
    cluster.policy(&policy("a", INSPECT));
    cluster.policy(&cluster_policy("c", &INSPECT.replace("llm", "other")));
    cluster.turn().await;
    let secrets: Vec<String> =
        cluster.server.asked().into_iter().filter(|it| it.contains("/secrets/")).collect();
    assert!(secrets.iter().all(|it| it.contains("/namespaces/agents/secrets/")), "{secrets:?}");
    assert_eq!(cluster.server.object(CREDENTIALS).unwrap()["data"], json!({}));
}

#[tokio::test]
async fn a_policy_of_the_cluster_names_keys_in_a_namespace_that_the_chart_lists_and_in_no_other() {
    let mut cluster = Cluster::new().await;
    for namespace in ["keys", "kube-system", "postern-system", "agents"] {
        cluster.secret(namespace, "llm", &[("api-key", namespace)]);
    }
    cluster.secret("keys", "postern-credentials", &[("api-key", "copies")]);
    let named = |name: &str, namespace: &str| {
        let credential = format!(
            "credentials: [{{name: {name}, hosts: [{name}.example], secretKeyRef: {{name: llm, key: api-key, namespace: {namespace}}}}}]"
        );
        cluster_policy(name, &credential)
    };
    cluster.policy(&named("fine", "keys"));
    cluster.policy(&named("theirs", "kube-system"));
    cluster.policy(&named("root", "postern-system"));
    cluster.policy(&named("copies", "keys").replace("name: llm, key", "name: postern-credentials, key"));
    cluster.policy(&policy("own", INSPECT));
    cluster.turn().await;
    let asked = cluster.server.asked();
    let read: Vec<&String> = asked.iter().filter(|it| it.contains("/secrets/llm")).collect();
    let places = ["keys", "agents"].map(|it| format!("GET /api/v1/namespaces/{it}/secrets/llm"));
    assert!(places.iter().all(|place| read.contains(&place)) && read.len() == 2, "{read:?}");
    let copied = cluster.server.object(CREDENTIALS).unwrap()["data"].clone();
    assert_eq!(copied, json!({ "fine": "a2V5cw==", "llm": "YWdlbnRz" }));
    let told: Vec<String> = cluster.report().credentials.values().flatten().cloned().collect();
    assert_eq!(told.len(), 3, "{told:?}");
    for part in ["is kube-system, which the chart's rbac.sourceNamespaces does not list", "Postern's own"] {
        assert!(told.iter().any(|sentence| sentence.contains(part)), "{part}: {told:?}");
    }
    let before = cluster.report();
    cluster.secret("keys", "llm", &[("api-key", "rotated")]);
    cluster.controller.look_at_sources("agents", &before).await;
    assert!(cluster.controller.queue(|queue| queue.next_due()).is_some(), "the change was seen");
}

#[tokio::test]
async fn a_credential_is_copied_as_it_is_and_again_when_it_changes() {
    let mut cluster = Cluster::new().await;
    cluster.secret("agents", "llm", &[("api-key", "sk-one\n"), ("other", "x")]);
    cluster.policy(&policy("a", INSPECT));
    cluster.turn().await;
    assert_eq!(cluster.server.object(CREDENTIALS).unwrap()["data"], json!({ "llm": "c2stb25lCg==" }));
    let before = cluster.report();
    cluster.secret("agents", "llm", &[("api-key", "sk-two")]);
    cluster.controller.look_at_sources("agents", &before).await;
    assert!(cluster.controller.queue(|queue| queue.next_due()).is_some(), "the change was seen");
    cluster.turn().await;
    assert_ne!(cluster.report().secrets, before.secrets);
    assert_eq!(cluster.report().revision, before.revision);
}

#[tokio::test]
async fn a_credential_that_is_missing_is_said_and_disturbs_nothing_else() {
    let mut cluster = Cluster::new().await;
    cluster.policy(&policy("a", INSPECT));
    cluster.policy(&policy(
        "b",
        &INSPECT.replace("llm", "own").replace("name: own, key", "name: postern-ca, key"),
    ));
    cluster.turn().await;
    cluster.controller.announce().await;
    assert!(cluster.published()["namespace-a.json"].is_string());
    let (status, reason, message) = cluster.condition(&place("a"), "Programmed");
    assert_eq!((status.as_str(), reason.as_str()), ("False", "CredentialMissing"));
    assert!(message.contains("there is no Secret agents/llm: create it with the key api-key"), "{message}");
    let (_, _, message) = cluster.condition(&place("b"), "Programmed");
    assert!(message.contains("Postern's own"), "{message}");
    assert_eq!(cluster.condition(&place("a"), "Accepted").0, "True");
}

#[tokio::test]
async fn the_token_of_a_service_account_is_nobodys_credential() {
    let mut cluster = Cluster::new().await;
    cluster.secret("agents", "llm", &[("api-key", "token")]);
    let path = "/api/v1/namespaces/agents/secrets/llm";
    let mut token = cluster.server.object(path).unwrap();
    token["type"] = json!("kubernetes.io/service-account-token");
    cluster.server.put(path, token);
    cluster.policy(&policy("a", INSPECT));
    cluster.turn().await;
    assert_eq!(cluster.server.object(CREDENTIALS).unwrap()["data"], json!({}));
    let told = cluster.report().credentials["namespace-a.json"].concat();
    assert!(told.contains("agents/llm is the token of a ServiceAccount"), "{told}");
    cluster.secret("agents", "llm", &[("api-key", "key")]);
    cluster.turn().await;
    assert_eq!(cluster.server.object(CREDENTIALS).unwrap()["data"], json!({ "llm": "a2V5" }));
}

#[tokio::test]
async fn secrets_that_cannot_be_read_now_are_not_taken_for_missing() {
    let mut cluster = Cluster::new().await;
    cluster.secret("agents", "llm", &[("api-key", "sk-one")]);
    cluster.policy(&policy("a", INSPECT));
    cluster.turn().await;
    let before = cluster.server.object(CREDENTIALS);
    cluster.server.refuse("GET /api/v1/namespaces/agents/secrets/llm", 500);
    assert!(cluster.controller.reconcile("agents", SystemTime::now()).await.is_err());
    assert_eq!(cluster.server.object(CREDENTIALS), before);
}

#[tokio::test]
async fn a_conflict_is_not_retried_in_a_loop() {
    let cluster = Cluster::new().await;
    cluster.server.refuse(&format!("PATCH {POLICY}"), 409);
    let (_, turn) = cluster.controller.turn("agents".to_owned()).await;
    assert_eq!(turn, super::queue::TurnOutcome::Failed);
    let tries = cluster.server.asked().into_iter().filter(|it| *it == format!("PATCH {POLICY}")).count();
    assert_eq!(tries, 1);
    assert!(cluster.controller.reports.failure("agents").is_some());
}

#[tokio::test]
async fn pods_are_stamped_once_and_again_when_the_revision_changes() {
    let mut cluster = Cluster::new().await;
    cluster.pod("one", &[]);
    cluster.turn().await;
    cluster.server.forget();
    cluster.controller.stamp_all().await;
    cluster.controller.stamp_all().await;
    let stamp = "PATCH /api/v1/namespaces/agents/pods/one/status";
    assert_eq!(cluster.server.writes(), [stamp]);
    let pod = cluster.server.object("/api/v1/namespaces/agents/pods/one").unwrap();
    assert_eq!(
        pod["metadata"]["annotations"]["postern.dev/policy-revision"],
        cluster.report().revision.as_str()
    );
    assert_eq!(
        pod["metadata"]["annotations"]["postern.dev/secrets-revision"],
        cluster.report().secrets.as_str()
    );
    cluster.policy(&policy("a", TUNNEL));
    cluster.turn().await;
    cluster.server.forget();
    cluster.controller.stamp_all().await;
    assert_eq!(cluster.server.writes(), [stamp]);
}

#[tokio::test]
async fn a_status_says_how_many_pods_enforce_and_is_written_when_that_changes() {
    let mut cluster = Cluster::new().await;
    cluster.policy(&policy("a", &format!("podSelector: {{matchLabels: {{app: coder}}}}\n  {TUNNEL}")));
    cluster.pod("one", &[("app", "coder")]);
    cluster.pod("two", &[("app", "coder")]);
    cluster.pod("other", &[]);
    cluster.turn().await;
    let wanted = cluster.report().revision.clone();
    cluster.controller.learn(&cluster.guarded("one"), &wanted, answers(&wanted, true), Instant::now()).await;
    cluster
        .controller
        .learn(&cluster.guarded("two"), &wanted, answers("sha256:old", true), Instant::now())
        .await;
    cluster.controller.announce().await;
    let status = cluster.server.object(&place("a")).unwrap()["status"].clone();
    assert_eq!((&status["enforcing"], &status["notEnforcing"]), (&json!("1/2"), &json!(["agents/two"])));
    assert_eq!((&status["observedGeneration"], &status["revision"]), (&json!(1), &json!(wanted)));
    assert_eq!(cluster.condition(&place("a"), "Programmed").1, "Pending");
    cluster.server.forget();
    cluster.controller.announce().await;
    assert_eq!(cluster.server.writes(), Vec::<String>::new());
    cluster.controller.learn(&cluster.guarded("two"), &wanted, answers(&wanted, true), Instant::now()).await;
    cluster.controller.announce().await;
    assert_eq!(cluster.condition(&place("a"), "Programmed").0, "True");
    let status = cluster.server.object(&place("a")).unwrap()["status"].clone();
    assert!(status["notEnforcing"].is_null() && status["enforcing"] == "2/2", "{status}");
}

#[tokio::test]
async fn a_policy_that_selects_nothing_says_so() {
    let mut cluster = Cluster::new().await;
    cluster.policy(&policy("a", &format!("podSelector: {{matchLabels: {{app: nobody}}}}\n  {TUNNEL}")));
    cluster.pod("one", &[]);
    cluster.turn().await;
    cluster.controller.announce().await;
    let (status, reason, message) = cluster.condition(&place("a"), "Programmed");
    assert_eq!((status.as_str(), reason.as_str()), ("True", "NoPods"));
    assert!(message.contains("selects no injected pod"), "{message}");
}

#[tokio::test]
async fn a_pod_that_drifts_is_told_in_an_event_and_in_the_status() {
    let mut cluster = Cluster::new().await;
    cluster.policy(&policy("a", TUNNEL));
    cluster.pod("one", &[]);
    cluster.turn().await;
    let wanted = cluster.report().revision.clone();
    let start = Instant::now();
    for read in 0..5 {
        let now = start + Duration::from_secs(40 * read);
        cluster.controller.learn(&cluster.guarded("one"), &wanted, answers("sha256:old", true), now).await;
    }
    let events = cluster.server.events();
    assert!(events.len() == 1 && events[0].contains("sha256:old"), "{events:?}");
    cluster.controller.announce().await;
    assert_eq!(cluster.condition(&place("a"), "Programmed").1, "Drift");
}

#[tokio::test]
async fn a_pod_that_stays_unproven_is_deleted_with_an_event() {
    let mut cluster = Cluster::new().await;
    cluster.pod("one", &[]);
    cluster.turn().await;
    let wanted = cluster.report().revision.clone();
    let start = Instant::now();
    let after = |seconds| start + Duration::from_secs(seconds);
    for read in 0..3 {
        cluster.controller.learn(&cluster.guarded("one"), &wanted, None, after(10 * read)).await;
    }
    assert!(cluster.server.object("/api/v1/namespaces/agents/pods/one").is_some(), "silence deletes nobody");
    for read in 0..3 {
        let unproven = answers(&wanted, false);
        cluster.controller.learn(&cluster.guarded("one"), &wanted, unproven, after(30 + 5 * read)).await;
    }
    assert!(cluster.server.object("/api/v1/namespaces/agents/pods/one").is_none());
    assert!(cluster.server.events().iter().any(|note| note.contains("cannot prove")));
    assert!(cluster.controller.metrics.encode().contains("postern_operator_pods_deleted_total 1"));
}

#[tokio::test]
async fn what_is_published_is_vouched_for_every_two_minutes_unless_a_watch_is_behind() {
    let mut cluster = Cluster::new().await;
    cluster.policy(&policy("a", TUNNEL));
    cluster.turn().await;
    let first = cluster.published()["syncedAt"].clone();
    let after = |minutes| SystemTime::now() + Duration::from_mins(minutes);
    cluster.controller.refresh(after(1)).await;
    assert_eq!(cluster.published()["syncedAt"], first);
    cluster.controller.refresh(after(3)).await;
    let second = cluster.published()["syncedAt"].clone();
    assert_ne!(second, first);
    assert!(cluster.published()["namespace-a.json"].is_string(), "nothing else changes");
    cluster.server.put(&place("unseen"), serde_json::to_value(object(&policy("unseen", TUNNEL))).unwrap());
    cluster.controller.refresh(after(9)).await;
    assert_eq!(cluster.published()["syncedAt"], second);
    cluster.server.remove(&place("unseen"));
    cluster.controller.refresh(after(9)).await;
    assert_ne!(cluster.published()["syncedAt"], second);
}

#[tokio::test]
async fn a_namespace_that_is_not_injected_is_left_alone() {
    let mut cluster = Cluster::new().await;
    cluster.namespace("agents", &[]);
    cluster.policy(&policy("a", TUNNEL));
    cluster.turn().await;
    cluster.controller.announce().await;
    assert!(cluster.server.object(POLICY).is_none());
    let (status, reason, _) = cluster.condition(&place("a"), "Programmed");
    assert_eq!((status.as_str(), reason.as_str()), ("True", "NoPods"));
    cluster.pod("one", &[]);
    cluster.turn().await;
    assert!(cluster.server.object(POLICY).is_some(), "an injected pod is enough");
}

#[tokio::test]
async fn the_root_is_made_once_and_never_over_another_s() {
    let cluster = Cluster::new().await;
    let root = "/api/v1/namespaces/postern-system/secrets/postern-root-ca";
    let made = cluster.server.object(root).unwrap();
    cluster.controller.look_at_root(SystemTime::now()).await.unwrap();
    assert_eq!(cluster.server.object(root).unwrap(), made);
    assert_eq!(cluster.server.writes(), Vec::<String>::new());
}

#[tokio::test]
async fn of_two_leaders_that_make_the_root_at_once_the_first_one_s_is_the_root_of_both() {
    let (root, secrets) = (
        "/api/v1/namespaces/postern-system/secrets/postern-root-ca",
        "/api/v1/namespaces/postern-system/secrets",
    );
    let theirs = Cluster::new().await.server.object(root).unwrap();
    let mut cluster = Cluster::new().await;
    assert_ne!(cluster.server.object(root).unwrap()["data"], theirs["data"]);
    cluster.server.remove(root);
    cluster.server.before(&format!("POST {secrets}"), root, theirs.clone());

    cluster.controller.look_at_root(SystemTime::now()).await.unwrap();

    assert_eq!(cluster.server.object(root).unwrap()["data"], theirs["data"]);
    cluster.policy(&policy("a", INSPECT));
    cluster.turn().await;
    assert_eq!(cluster.server.object(CA).unwrap()["data"]["roots.pem"], theirs["data"]["tls.crt"]);
}

#[tokio::test(start_paused = true)]
async fn no_status_is_written_before_every_namespace_had_its_turn_and_every_pod_was_asked() {
    let mut cluster = Cluster::new().await;
    cluster.policy(&policy("a", TUNNEL));
    cluster.pod("one", &[]);
    let mut settled = std::pin::pin!(cluster.controller.settle());
    let wait = Duration::from_secs(5);
    assert!(timeout(wait, &mut settled).await.is_err(), "no turn was taken");
    cluster.turn().await;
    assert!(timeout(wait, &mut settled).await.is_err(), "the pod was not asked");
    let wanted = cluster.report().revision.clone();
    cluster.controller.learn(&cluster.guarded("one"), &wanted, None, Instant::now()).await;
    assert!(timeout(wait, &mut settled).await.is_ok(), "silence is an answer");
}

#[tokio::test(start_paused = true)]
async fn a_namespace_that_nobody_gets_to_holds_statuses_up_for_half_a_minute_at_most() {
    let cluster = Cluster::new().await;
    let started = tokio::time::Instant::now();
    cluster.controller.settle().await;
    assert!((30..=31).contains(&started.elapsed().as_secs()), "{:?}", started.elapsed());
}

#[tokio::test]
async fn what_the_ca_cannot_vouch_for_is_in_the_status() {
    let mut cluster = Cluster::new().await;
    let hosts = |tier: char| (0..700).map(|at| format!("{tier}{at:06}.test")).collect::<Vec<_>>().join(", ");
    let inspect = |hosts: &str| format!("destinations: [{{name: d, hosts: [{hosts}], action: Inspect}}]");
    for tier in ['a', 'b', 'c'] {
        cluster.policy(&policy(&tier.to_string(), &inspect(&hosts(tier))));
    }
    cluster.turn().await;
    cluster.controller.announce().await;
    let (_, reason, message) = cluster.condition(&place("a"), "Programmed");
    assert_eq!(reason, "NoPods");
    assert!(
        message.contains("these are denied: ") && message.contains("inspect them by wildcards"),
        "{message}"
    );
    let (status, reason, message) = cluster.condition(&place("c"), "Programmed");
    assert_eq!((status.as_str(), reason.as_str()), ("False", "HostsLeftOut"));
    assert!(message.contains("these hosts are denied") && message.contains("c000000.test"), "{message}");
    assert!(message.contains("c000009.test and 690 more"), "{message}");

    cluster.policy(&policy("b", &inspect("'**'")));
    cluster.turn().await;
    cluster.controller.announce().await;
    let (_, reason, message) = cluster.condition(&place("c"), "Programmed");
    assert_eq!(reason, "NoPods");
    assert!(message.contains("The namespace's CA is unconstrained: "), "{message}");
}
