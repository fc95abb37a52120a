//! What annotations of a pod and of its namespace change of Postern's containers, and what they cannot.

use k8s_openapi::api::core::v1::Pod;
use serde_json::{Value, json};

use super::Annotations;
use super::testing::{UID, inject_in, injected, judged, judged_change, patched, pod, try_inject};
use super::ways_around_tests::ways_around;

const CANARY: &str = "ghcr.io/postern-dev/postern-gateway:1.1.0-rc1";
const FORMER: &str = "ghcr.io/postern-dev/postern-gateway:0.9.0";

fn annotated(annotations: &[(&str, &str)]) -> Value {
    let mut pod = pod("bare");
    pod["metadata"]["annotations"] = written(annotations).into_iter().collect();
    pod
}

fn written(annotations: &[(&str, &str)]) -> Annotations {
    annotations.iter().map(|(key, value)| (format!("postern.dev/{key}"), (*value).to_owned())).collect()
}

/// The pod as it is injected in a namespace with annotations; it is stored so, and its agents have no way around.
fn made(namespace: &[(&str, &str)], own: &[(&str, &str)]) -> Value {
    let pod = annotated(own);
    let made = patched(&pod, &inject_in(&written(namespace), &pod, UID).unwrap());
    assert_eq!(judged(&made), Vec::<String>::new());
    let typed: Pod = serde_json::from_value(made.clone()).unwrap();
    assert_eq!(ways_around(&typed), Vec::<String>::new());
    let again = inject_in(&written(namespace), &made, UID).unwrap();
    assert_eq!(again.patch.0, [], "injecting twice is injecting once");
    made
}

fn ours(made: &Value) -> [&Value; 2] {
    [&made["spec"]["initContainers"][0], &made["spec"]["initContainers"][1]]
}

fn refused(namespace: &[(&str, &str)], own: &[(&str, &str)]) -> String {
    inject_in(&written(namespace), &annotated(own), UID).unwrap_err().join("\n")
}

#[test]
fn a_namespace_chooses_resources_for_its_pods_and_a_pod_for_itself() {
    let namespace = [
        ("gateway-limits", "cpu=500m,memory=128Mi"),
        ("gateway-requests", "cpu=20m"),
        ("redirect-limits", "cpu=100m, memory=128Mi"),
    ];
    let pod = made(&namespace, &[]);
    let [redirect, gateway] = ours(&pod);
    assert_eq!(
        gateway["resources"],
        json!({"requests": {"cpu": "20m", "memory": "64Mi"}, "limits": {"cpu": "500m", "memory": "128Mi"}})
    );
    assert_eq!(
        redirect["resources"],
        json!({"requests": {"cpu": "10m", "memory": "16Mi"}, "limits": {"cpu": "100m", "memory": "128Mi"}})
    );
    let pod = made(&namespace, &[("gateway-limits", "memory=1Gi")]);
    assert_eq!(ours(&pod)[1]["resources"]["limits"], json!({"cpu": "500m", "memory": "1Gi"}));
}

#[test]
fn what_is_not_chosen_follows_what_is() {
    let resources = |own: &[(&str, &str)]| ours(&made(&[], own))[1]["resources"].clone();
    let lower = resources(&[("gateway-limits", "memory=48Mi")]);
    assert_eq!(lower, json!({"requests": {"cpu": "50m", "memory": "48Mi"}, "limits": {"memory": "48Mi"}}));
    let higher = resources(&[("gateway-requests", "memory=512Mi")]);
    assert_eq!(higher, json!({"requests": {"cpu": "50m", "memory": "512Mi"}, "limits": {"memory": "512Mi"}}));
    let nothing = resources(&[("gateway-requests", " , ")]);
    assert_eq!(nothing, json!({"requests": {"cpu": "50m", "memory": "64Mi"}, "limits": {"memory": "256Mi"}}));
}

#[test]
fn what_is_past_the_charts_bounds_is_refused_with_its_place() {
    for (key, text, words) in [
        ("gateway-limits", "memory=2Gi", "\"memory=2Gi\" is more than the chart's bound, 1Gi"),
        ("gateway-limits", "memory=1Mi", "is less than the chart's bound, 32Mi"),
        ("gateway-limits", "cpu=2001m", "is more than the chart's bound, 2"),
        (
            "gateway-requests",
            "nvidia.com/gpu=1",
            "names no resource that may be chosen: those are cpu, memory",
        ),
        ("gateway-requests", "memory", "is no RESOURCE=AMOUNT"),
        ("gateway-requests", "memory=lots", "expected an amount such as 250m, 2 or 64Mi"),
        ("gateway-requests", "cpu=1,cpu=1", "cpu is there twice"),
        ("redirect-limits", "memory=1Gi", "is more than the chart's bound, 256Mi"),
        ("gateway-image", "registry.example/other:1", "is no image that the chart lists"),
        ("gateway-image", "ghcr.io/postern-dev/postern-gateway", "is no image that the chart lists"),
        ("log-level", "trace", "\"trace\" is none of info, debug"),
        ("log-level", "DEBUG", "is none of info, debug"),
    ] {
        let told = refused(&[], &[(key, text)]);
        assert!(told.starts_with(&format!("metadata.annotations[postern.dev/{key}]: ")), "{told}");
        assert!(told.contains(words), "{told}");
        let told = refused(&[(key, text)], &[]);
        assert!(told.starts_with("the namespace's metadata.annotations["), "{told}");
    }
    let told = refused(&[("gateway-limits", "cpu=1")], &[("gateway-requests", "cpu=2")]);
    assert!(told.contains("cpu=2 is more than the limit of 1"), "{told}");
    let long = "x".repeat(100_000);
    assert!(refused(&[], &[("gateway-limits", long.as_str())]).len() < 300);
}

#[test]
fn a_pod_or_a_namespace_runs_a_canary_that_the_chart_lists() {
    let images = |made: &Value| ours(made).map(|container| container["image"].clone());
    assert_eq!(images(&made(&[], &[("gateway-image", CANARY)])), [CANARY, CANARY]);
    assert_eq!(images(&made(&[("gateway-image", CANARY)], &[])), [CANARY, CANARY]);
    let usual = "ghcr.io/postern-dev/postern-gateway:1.0.0";
    assert_eq!(images(&made(&[("gateway-image", CANARY)], &[("gateway-image", usual)])), [usual, usual]);
}

#[test]
fn nobody_chooses_a_former_image_and_what_another_replica_made_with_it_is_stored() {
    for (namespace, own) in [(&[("gateway-image", FORMER)][..], &[][..]), (&[], &[("gateway-image", FORMER)])]
    {
        let told = refused(namespace, own);
        assert!(told.contains("is no image that the chart lists") && told.contains("canaryImages"), "{told}");
    }
    let mut pod = injected(&pod("bare"), UID);
    pod["spec"]["initContainers"][0]["image"] = FORMER.into();
    pod["spec"]["initContainers"][1]["image"] = FORMER.into();
    assert_eq!(judged(&pod), Vec::<String>::new());
}

#[test]
fn what_is_stored_has_one_image_that_the_chart_lists_in_both_containers() {
    let stored = injected(&pod("bare"), UID);
    let with = |images: [&str; 2]| {
        let mut pod = stored.clone();
        for (number, image) in images.into_iter().enumerate() {
            pod["spec"]["initContainers"][number]["image"] = image.into();
        }
        judged(&pod)
    };
    assert_eq!(with([CANARY; 2]), Vec::<String>::new(), "another replica of the operator may have made it");
    let usual = stored["spec"]["initContainers"][0]["image"].as_str().unwrap();
    assert!(!with([usual, CANARY]).is_empty());
    assert!(!with(["registry.example/other:1"; 2]).is_empty());
    let written = with([CANARY; 2]);
    assert_eq!(written, Vec::<String>::new());
    let mut pod = stored.clone();
    pod["spec"]["initContainers"][1]["image"] = CANARY.into();
    pod["spec"]["initContainers"][0]["image"] = CANARY.into();
    let again = patched(&pod, &try_inject(&pod, UID).unwrap());
    assert_eq!(ours(&again).map(|each| each["image"].clone()), [usual, usual], "nobody asked for it");
}

#[test]
fn the_level_of_the_log_is_where_the_gateway_reads_it() {
    let level = |made: &Value| made["metadata"]["annotations"]["postern.dev/log-level"].clone();
    assert_eq!(level(&made(&[("log-level", "debug")], &[])), "debug");
    assert_eq!(level(&made(&[("log-level", "debug")], &[("log-level", "info")])), "info");
    assert_eq!(level(&made(&[], &[])), Value::Null);
}

#[test]
fn the_level_of_the_log_of_a_pod_that_runs_changes_within_the_charts_bounds() {
    let before = injected(&pod("bare"), UID);
    let with = |level: &str| {
        let mut pod = before.clone();
        pod["metadata"]["annotations"] = json!({"postern.dev/log-level": level});
        pod
    };
    assert_eq!(judged_change(&with("debug"), &before), Vec::<String>::new());
    assert_eq!(judged_change(&before, &with("debug")), Vec::<String>::new());
    assert!(judged_change(&with("trace"), &before)[0].contains("none of info, debug"));
    assert_eq!(judged_change(&with("trace"), &with("trace")), Vec::<String>::new(), "it was there before");
}

#[test]
fn capabilities_are_those_that_a_container_adds_and_no_other() {
    let capabilities = |written: Value| {
        let mut pod = pod("bare");
        pod["spec"]["containers"][0]["securityContext"] = json!({"capabilities": written});
        injected(&pod, UID)["spec"]["containers"][0]["securityContext"]["capabilities"].clone()
    };
    assert_eq!(capabilities(Value::Null), json!({"drop": ["ALL"]}));
    assert_eq!(capabilities(json!({"drop": ["NET_RAW"]})), json!({"drop": ["ALL"]}));
    let asked = json!({"add": ["CAP_CHOWN", "fowner", "CHOWN"]});
    assert_eq!(capabilities(asked), json!({"add": ["CHOWN", "FOWNER"], "drop": ["ALL"]}));
}
