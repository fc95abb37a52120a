//! The companion of a pod: where it is, what it may, and which annotations are refused.

use serde_json::{Value, json};

use super::testing::{UID, injected, judged, pod, try_inject};

fn annotated(written: &str) -> Value {
    let mut pod = pod("workspace");
    pod["metadata"]["annotations"]["postern.dev/workspace"] = json!(written);
    pod
}

fn refused(pod: &Value) -> String {
    try_inject(pod, UID).map(|_| String::new()).unwrap_or_else(|problems| problems.join("\n"))
}

#[test]
fn the_companion_is_the_third_container_and_reads_the_volume_alone() {
    let stored = injected(&pod("workspace"), UID);
    let companion = &stored["spec"]["initContainers"][2];
    assert_eq!(companion["name"], "postern-workspace");
    assert_eq!(companion["args"][2], "/workspace");
    assert_eq!(
        companion["volumeMounts"],
        json!([
            {"name": "work", "mountPath": "/workspace", "readOnly": true},
            {"name": "postern-workspace", "mountPath": "/run/postern-workspace"},
        ])
    );
    let context = &companion["securityContext"];
    assert_eq!(context["capabilities"], json!({"drop": ["ALL"]}));
    assert_eq!((&context["runAsUser"], &context["runAsGroup"]), (&json!(UID - 1), &json!(UID - 1)));
    assert!(companion.get("env").is_none() && companion.get("ports").is_none());
    assert_eq!(stored["spec"]["automountServiceAccountToken"], false);
    let others = stored["spec"]["initContainers"].as_array().unwrap();
    let with_socket = others.iter().chain(stored["spec"]["containers"].as_array().unwrap());
    let with_socket = with_socket.filter(|one| one["volumeMounts"].to_string().contains("postern-workspace"));
    let names: Vec<_> = with_socket.map(|one| one["name"].clone()).collect();
    assert_eq!(names, ["postern-gateway", "postern-workspace"], "agents have no socket");
}

#[test]
fn a_companion_that_nobody_asked_for_or_that_was_changed_is_put_right_and_not_stored() {
    let whole = injected(&pod("workspace"), UID);
    let mut unasked = whole.clone();
    unasked["metadata"]["annotations"].as_object_mut().unwrap().shift_remove("postern.dev/workspace");
    assert!(!judged(&unasked).is_empty());
    assert!(!injected(&unasked, UID).to_string().contains("postern-workspace"));
    for (pointer, value) in [
        ("/spec/initContainers/2/volumeMounts/0/readOnly", json!(false)),
        ("/spec/initContainers/2/securityContext/runAsUser", json!(UID)),
        ("/spec/initContainers/2/args/2", json!("/")),
        ("/spec/initContainers/2/volumeMounts/0/name", json!("postern-ca")),
        ("/spec/initContainers/2/image", json!("registry.example/agent:1")),
    ] {
        let mut changed = whole.clone();
        *changed.pointer_mut(pointer).unwrap() = value;
        assert!(!judged(&changed).is_empty(), "{pointer}");
        assert_eq!(injected(&changed, UID), whole, "{pointer}");
    }
    let mut gone = whole.clone();
    gone["spec"]["initContainers"].as_array_mut().unwrap().remove(2);
    assert!(!judged(&gone).is_empty());
}

#[test]
fn annotations_that_name_no_mount_of_an_agent_are_refused_in_words() {
    for (written, said) in [
        ("work", "is no VOLUME:PATH, as in work:/workspace"),
        ("work:workspace", "the path is to be absolute"),
        ("work:/workspace/", "the path is to be absolute"),
        ("work:/a/../workspace", "the path is to be absolute"),
        ("work:/", "the path is to be absolute"),
        ("work:/etc/x", "cannot be in"),
        ("work:/postern", "cannot be in"),
        ("work:/var/run/x", "the path is to be absolute"),
        ("other:/workspace", "no container mounts this volume there"),
        ("work:/workspace2", "no container mounts this volume there"),
        ("postern-ca:/etc/postern/ca", "cannot be in"),
        ("postern-trust:/workspace", "no container mounts this volume there"),
    ] {
        let problems = refused(&annotated(written));
        assert!(problems.contains(said), "{written}: {problems}");
        assert!(problems.contains("metadata.annotations[postern.dev/workspace]"), "{problems}");
    }
    assert_eq!(refused(&annotated("work:/workspace")), "");
    let mut partly = annotated("work:/workspace");
    partly["spec"]["containers"][0]["volumeMounts"][0]["subPath"] = json!("a");
    assert!(refused(&partly).contains("without subPath"));
    let mut token = annotated("work:/workspace");
    token["metadata"]["annotations"]["postern.dev/service-account-token"] = json!("true");
    assert!(refused(&token).contains("leave out one of the two"));
}
