//! What is refused of pods as they would be stored, whoever changed them after the injector.

use serde_json::{Value, json};

use super::testing::{UID, injected, judged, judged_change, pod, try_inject};

/// Changes a value of a pod by its JSON pointer.
fn with(pod: &Value, pointer: &str, value: Value) -> Value {
    let (parent, key) = pointer.rsplit_once('/').unwrap();
    let mut pod = pod.clone();
    match pod.pointer_mut(parent).unwrap() {
        Value::Object(fields) => {
            fields.insert(key.replace("~1", "/"), value);
        }
        Value::Array(items) if key == "-" => items.push(value),
        Value::Array(items) => items[key.parse::<usize>().unwrap()] = value,
        other @ (Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_)) => {
            panic!("{other} has no parts")
        }
    }
    pod
}

#[test]
fn a_weakened_pod_is_not_stored() {
    let stored = injected(&pod("node-extra-ca-certs"), UID);
    assert_eq!(judged(&stored), Vec::<String>::new());
    let (redirect, gateway, agent) =
        ("/spec/initContainers/0", "/spec/initContainers/1", "/spec/containers/0");
    let changes = [
        (format!("{redirect}/image"), json!("registry.example/other")),
        (format!("{redirect}/command"), json!(["/bin/true"])),
        (format!("{redirect}/args/2"), json!("61235")),
        (format!("{redirect}/args/2"), json!("0")),
        (format!("{redirect}/args/-"), json!("--dry-run")),
        (format!("{redirect}/restartPolicy"), json!("Always")),
        (format!("{redirect}/env"), json!([{"name": "PATH", "value": "/tmp"}])),
        (format!("{redirect}/aFieldOfTomorrow"), json!(true)),
        (format!("{gateway}/image"), json!("registry.example/other")),
        (format!("{gateway}/imagePullPolicy"), json!("Never")),
        (format!("{gateway}/args/2"), json!("/tmp/settings")),
        (format!("{gateway}/env/0/value"), json!("0")),
        (format!("{gateway}/env/-"), json!({"name": "POSTERN_NAMESPACE", "value": "other"})),
        (format!("{gateway}/restartPolicy"), Value::Null),
        (format!("{gateway}/startupProbe"), Value::Null),
        (format!("{gateway}/resources/claims"), json!([{"name": "device"}])),
        (format!("{gateway}/resources/limits/example.com~1device"), json!("1")),
        (format!("{redirect}/resources"), json!({"limits": {"example.com/device": "1"}})),
        (format!("{gateway}/lifecycle"), json!({"postStart": {"exec": {"command": ["/x"]}}})),
        (format!("{gateway}/securityContext/runAsUser"), json!(0)),
        (format!("{gateway}/securityContext/capabilities/add"), json!(["NET_ADMIN"])),
        (format!("{gateway}/securityContext/readOnlyRootFilesystem"), json!(false)),
        (format!("{gateway}/volumeMounts/0/subPath"), json!("x")),
        (
            format!("{gateway}/volumeMounts/-"),
            json!({"name": "postern-ca", "subPath": "ca-key.pem", "readOnly": true,
                "mountPath": "/etc/postern/own-roots/agent/PIP_CERT.pem"}),
        ),
        (format!("{agent}/securityContext/runAsUser"), json!(UID)),
        (format!("{agent}/securityContext/privileged"), json!(true)),
        (format!("{agent}/securityContext/allowPrivilegeEscalation"), json!(true)),
        (format!("{agent}/securityContext/capabilities/drop"), json!(["NET_RAW"])),
        (format!("{agent}/securityContext/capabilities/add"), json!(["SYS_PTRACE"])),
        (format!("{agent}/securityContext/seccompProfile"), Value::Null),
        (format!("{agent}/volumeMounts/-"), json!({"name": "postern-ca", "mountPath": "/ca"})),
        (format!("{agent}/volumeMounts/1/readOnly"), json!(false)),
        (format!("{agent}/ports"), json!([{"containerPort": 4444}])),
        (format!("{agent}/ports"), json!([{"containerPort": 4444, "hostPort": 443}])),
        (format!("{agent}/securityContext/seLinuxOptions"), json!({"role": "sysadm_r"})),
        ("/spec/containers/-".to_owned(), json!({"name": "late", "image": "registry.example/late:1"})),
        ("/spec/initContainers/-".to_owned(), json!({"name": "late", "image": "registry.example/late:1"})),
        ("/spec/volumes/2".to_owned(), json!({"name": "postern-ca", "emptyDir": {}})),
        ("/spec/automountServiceAccountToken".to_owned(), json!(true)),
        ("/spec/hostNetwork".to_owned(), json!(true)),
        ("/spec/shareProcessNamespace".to_owned(), json!(true)),
        ("/spec/securityContext".to_owned(), json!({"runAsUser": UID})),
        ("/metadata/labels/postern.dev~1injected".to_owned(), json!("false")),
        ("/metadata/labels/postern.dev~1user-id".to_owned(), json!("chosen")),
        ("/spec/securityContext".to_owned(), json!({"sysctls": [{"name": "kernel.msgmax", "value": "1"}]})),
    ];
    for (pointer, value) in changes {
        let changed = with(&stored, &pointer, value.clone());
        assert_ne!(changed, stored, "{pointer}");
        assert!(!judged(&changed).is_empty(), "{pointer} = {value}");
    }
}

#[test]
fn the_order_of_starting_is_the_injectors() {
    let mut stored = injected(&pod("init-containers"), UID);
    stored["spec"]["initContainers"].as_array_mut().unwrap().swap(1, 2);
    assert_eq!(judged(&stored).len(), 1);
    stored["spec"]["initContainers"].as_array_mut().unwrap().rotate_left(1);
    assert_eq!(judged(&stored).len(), 1);
}

#[test]
fn what_the_api_server_adds_to_a_pod_is_no_change() {
    let mut stored = injected(&pod("asks-for-its-token"), UID);
    let token = json!({"name": "kube-api-access-9q2rz", "readOnly": true,
        "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount"});
    for index in 0..2 {
        let container = &mut stored["spec"]["initContainers"][index];
        container["imagePullPolicy"] = json!("Always");
        container["resources"] = json!({"requests": {"cpu": "1", "memory": "1Gi"}});
        container["volumeMounts"].as_array_mut().unwrap().push(token.clone());
    }
    stored["spec"]["priority"] = json!(0);
    stored["spec"]["tolerations"] = json!([{"key": "node.kubernetes.io/not-ready", "operator": "Exists"}]);
    assert_eq!(judged(&stored), Vec::<String>::new());
    assert_eq!(try_inject(&stored, UID).unwrap().patch.0, []);
}

#[test]
fn a_pod_that_was_there_before_is_not_judged_by_its_changes() {
    let before = pod("bare");
    assert_eq!(
        judged_change(&with(&before, "/metadata/labels", json!({"a": "b"})), &before),
        Vec::<String>::new()
    );
}

#[test]
fn a_pod_without_a_gateway_is_not_passed_off_as_one_that_has_it() {
    let before = pod("bare");
    let labelled = with(&before, "/metadata/labels", json!({"postern.dev/injected": "true"}));
    let [problem] = &judged_change(&labelled, &before)[..] else { panic!("one problem") };
    assert!(problem.contains("is set on a pod without a gateway"), "{problem}");
    assert_eq!(judged_change(&labelled, &labelled), Vec::<String>::new());
}

#[test]
fn a_running_pod_keeps_its_images_and_its_label() {
    let before = injected(&pod("init-containers"), UID);
    let change = |pointer: &str, value: Value| judged_change(&with(&before, pointer, value), &before);
    assert_eq!(change("/metadata/labels/a", json!("b")), Vec::<String>::new());
    assert_eq!(change("/metadata/annotations", json!({"postern.dev/inject": "false"})), Vec::<String>::new());
    for index in 0..2 {
        let problems =
            change(&format!("/spec/initContainers/{index}/image"), json!("registry.example/other"));
        assert_eq!(problems.len(), 1, "{problems:?}");
    }
    assert_eq!(change("/metadata/labels/postern.dev~1injected", json!("")).len(), 1);
    assert_eq!(
        change("/spec/initContainers/2/image", json!("registry.example/other")),
        [
            "spec.initContainers[2].image may not change in a pod that runs unless securityContext.runAsUser is set: \
             its USER could be the gateway's: create the pod anew"
        ]
    );
    assert_eq!(change("/spec/containers/0/image", json!("registry.example/agent:2")), Vec::<String>::new());
}
