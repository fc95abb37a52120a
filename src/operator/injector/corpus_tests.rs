//! Real-world pods, injected or refused.

use std::fmt::Write as _;

use k8s_openapi::api::core::v1::Pod;
use serde_json::{Value, json};

use super::testing::{UID, corpus, injected, judged, patched, pod, settings, try_inject};
use super::ways_around_tests::ways_around;
use super::{Annotations, DEFAULT_CONTAINER, InjectionFacts, mutate, validate};

#[test]
fn a_bare_pod_is_injected_whole() {
    insta::assert_snapshot!(pretty(&injected(&pod("bare"), UID)));
}

#[test]
fn every_pod_that_can_be_is_injected() {
    for (name, pod) in corpus("injected") {
        insta::assert_snapshot!(name, outcome(&pod));
    }
}

#[test]
fn every_pod_that_would_get_past_the_gateway_is_refused_in_words() {
    for (name, pod) in corpus("refused") {
        let problems = try_inject(&pod, UID).map(|_| name.clone()).unwrap_err();
        insta::assert_snapshot!(format!("refused-{name}"), problems.join("\n"));
    }
}

#[test]
fn an_injected_pod_has_no_way_around_and_may_be_stored() {
    for (name, pod) in corpus("injected") {
        let stored = injected(&pod, UID);
        let typed: Pod = serde_json::from_value(stored.clone()).unwrap();
        assert_eq!(ways_around(&typed), Vec::<String>::new(), "{name}");
        assert_eq!(judged(&stored), Vec::<String>::new(), "{name}");
    }
}

#[test]
fn a_pod_that_is_not_injected_is_not_stored() {
    for (name, pod) in corpus("injected").into_iter().chain(corpus("refused")) {
        assert!(!judged(&pod).is_empty(), "{name}");
    }
}

#[test]
fn kubectl_is_told_the_author_s_container_and_the_author_s_own_word_stands() {
    let chosen = |pod: &Value| injected(pod, UID)["metadata"]["annotations"][DEFAULT_CONTAINER].clone();
    let mut several = pod("several-agents");
    assert_eq!(chosen(&several), several["spec"]["containers"][0]["name"]);
    several["metadata"]["annotations"][DEFAULT_CONTAINER] = json!("another");
    assert_eq!(chosen(&several), "another");

    let mut stored = injected(&pod("bare"), UID);
    stored["metadata"]["annotations"].as_object_mut().unwrap().shift_remove(DEFAULT_CONTAINER);
    assert_eq!(judged(&stored), Vec::<String>::new(), "another webhook may take it away");
}

#[test]
fn without_a_ledger_in_the_settings_a_pod_has_no_volume_for_one() {
    let mut settings = settings();
    settings.gateway.settings = settings.gateway.settings.replace("ledger:", "# ledger:");
    let annotations = &Annotations::new();
    let circumstances = InjectionFacts { settings: &settings, namespace: "agents", annotations, uid: UID };
    // One that was injected while there was a ledger, and is made anew, loses its parts.
    for pod in [pod("bare"), injected(&pod("bare"), UID)] {
        let plain = patched(&pod, &mutate(&pod, &circumstances).unwrap());
        let spec = plain["spec"].to_string();
        assert!(!spec.contains("postern-ledger") && !spec.contains("POSTERN_LEDGER_BYTES"), "{spec}");
        assert_eq!(validate(&plain, None, &circumstances), Vec::<String>::new());
    }
    let with = validate(&injected(&pod("bare"), UID), None, &circumstances);
    assert!(with.iter().any(|problem| problem.contains("not as Postern made it")), "{with:?}");
}

#[test]
fn injecting_twice_is_injecting_once() {
    for (name, pod) in corpus("injected") {
        let once = injected(&pod, UID);
        assert_eq!(try_inject(&once, UID).unwrap().patch.0, [], "{name}");
        // The UID that is written may be one that the author chose, so that it is drawn anew; nothing else changes.
        let again = injected(&once, UID + 1);
        let expected =
            serde_json::to_string(&once).unwrap().replace("61234", "61235").replace("61233", "61234");
        assert_eq!(again, serde_json::from_str::<Value>(&expected).unwrap(), "{name}");
    }
}

#[test]
fn what_only_a_newer_kubernetes_knows_stays_where_it_was() {
    let pod = injected(&pod("newer-kubernetes"), UID);
    assert_eq!(pod["spec"]["aFieldOfTomorrow"], json!({"kept": true}));
    assert_eq!(pod["spec"]["initContainers"][2]["tomorrow"], 1);
    assert_eq!(pod["spec"]["initContainers"][0]["restartPolicyRules"], Value::Null);
    assert_eq!(pod["spec"]["containers"][0]["securityContext"]["tomorrow"], "kept");
}

#[test]
fn what_the_pod_has_for_all_its_containers_is_not_asked_for_again() {
    let mut pod = pod("bare");
    pod["spec"]["resources"] = json!({"requests": {"cpu": "50m"}, "limits": {"memory": "128Mi"}});
    let stored = injected(&pod, UID);
    for container in &stored["spec"]["initContainers"].as_array().unwrap()[..2] {
        assert_eq!(container.get("resources"), None, "{container}");
    }
    pod["spec"]["resources"] = json!({"requests": {"cpu": "50m"}});
    let stored = injected(&pod, UID);
    let gateway = &stored["spec"]["initContainers"][1];
    assert_eq!(gateway["resources"], json!({"requests": {"memory": "64Mi"}, "limits": {"memory": "256Mi"}}));
    assert_eq!(judged(&stored), Vec::<String>::new());
}

#[test]
fn variables_of_the_settings_come_after_postern_s_and_replace_none() {
    let mut settings = settings();
    let node = json!({"name": "NODE_IP", "valueFrom": {"fieldRef": {"fieldPath": "status.hostIP"}}});
    settings.gateway.env = serde_json::from_value(json!([
        {"name": "OTEL_SERVICE_NAME", "value": "agents"},
        {"name": "EMPTY", "value": ""},
        {"name": "POSTERN_INTERCEPT", "value": "0"},
        node,
    ]))
    .unwrap();
    let around = InjectionFacts {
        settings: &settings,
        namespace: "agents",
        annotations: &Annotations::new(),
        uid: UID,
    };
    let bare = pod("bare");
    let made = patched(&bare, &mutate(&bare, &around).unwrap());
    let variables = made["spec"]["initContainers"][1]["env"].as_array().unwrap();
    let posterns = variables.iter().take_while(|one| one["name"].as_str().unwrap().starts_with("POSTERN_"));
    let posterns = posterns.count();
    assert_eq!(variables[0], json!({"name": "POSTERN_INTERCEPT", "value": "1"}));
    let mut stored = node;
    stored["valueFrom"]["fieldRef"]["apiVersion"] = "v1".into();
    let further = [json!({"name": "OTEL_SERVICE_NAME", "value": "agents"}), json!({"name": "EMPTY"}), stored];
    assert_eq!(variables[posterns..], further, "as the API server stores them");
    assert_eq!(validate(&made, None, &around), Vec::<String>::new());
}

#[test]
fn a_drawn_uid_is_nobody_elses() {
    let pod = json!({"spec": {
        "hostUsers": false,
        "securityContext": {"runAsUser": 60_000},
        "containers": [{"name": "a", "securityContext": {"runAsUser": 60_001}}],
    }});
    assert_eq!(super::draw(&pod, 0), 60_002);
    assert_eq!(super::draw(&pod, 5_533), 65_533);
    assert_eq!(super::draw(&pod, 5_534), 60_002);
    let many = 2_147_483_647 - 60_000 + 1;
    assert_eq!(super::draw(&json!({}), many - 1), 2_147_483_647);
    assert_eq!(super::draw(&json!({}), u32::MAX), 60_000 + u32::MAX % many);
}

#[test]
fn warnings_are_not_cut_by_the_api_server() {
    let long = "/".to_owned() + &"x".repeat(4_000);
    let pod = json!({"spec": {"containers": [{"name": "a".repeat(63), "image": "i", "env": [
        {"name": "GRPC_DEFAULT_SSL_ROOTS_FILE_PATH", "value": long},
        {"name": "JAVA_TOOL_OPTIONS", "value": "-Djavax.net.ssl.trustStore=x"},
    ]}]}});
    let warnings = try_inject(&pod, UID).unwrap().warnings;
    assert_eq!(warnings.len(), 2);
    for warning in warnings {
        assert!(warning.chars().count() <= 256, "{warning}");
    }
}

/// What differs from pod to pod: warnings, the redirect's arguments, roots of its own, volumes and agents.
fn outcome(pod: &Value) -> String {
    let result = try_inject(pod, UID).unwrap();
    let stored = patched(pod, &result);
    let spec = &stored["spec"];
    let mut text = String::new();
    for warning in result.warnings {
        writeln!(text, "warning: {warning}").unwrap();
    }
    writeln!(text, "labels: {}", stored["metadata"]["labels"]).unwrap();
    writeln!(text, "redirect: {}", spec["initContainers"][0]["args"]).unwrap();
    for mount in spec["initContainers"][1]["volumeMounts"].as_array().unwrap().iter().skip(6) {
        writeln!(text, "gateway mounts: {mount}").unwrap();
    }
    let volumes = spec["volumes"].as_array().unwrap().iter().map(|volume| volume["name"].as_str().unwrap());
    writeln!(text, "volumes: {}", volumes.collect::<Vec<_>>().join(" ")).unwrap();
    let others = spec["initContainers"].as_array().unwrap().iter().skip(2);
    for agent in others.chain(spec["containers"].as_array().unwrap()) {
        writeln!(text, "{}", pretty(agent)).unwrap();
    }
    text
}

fn pretty(value: &Value) -> String {
    serde_json::to_string_pretty(value).unwrap()
}
