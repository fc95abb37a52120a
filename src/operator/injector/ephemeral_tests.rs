//! Ephemeral containers as `kubectl debug` adds them, by profile.

use serde_json::{Value, json};

use super::mutate_ephemeral;
use super::testing::{UID, injected, judged_change, patched, pod};

/// A running pod to which an ephemeral container is added.
fn debugged(name: &str, context: Value, more: Value) -> (Value, Value) {
    let before = injected(&pod(name), UID);
    let mut container = json!({"name": "debugger-x2k7p", "image": "busybox", "stdin": true, "tty": true});
    container["securityContext"] = context;
    let Value::Object(more) = more else { panic!("{more} has no fields") };
    container.as_object_mut().unwrap().extend(more);
    let mut pod = before.clone();
    pod["spec"]["ephemeralContainers"] = json!([container]);
    (before, pod)
}

fn refused(context: Value, more: Value) -> String {
    let (before, pod) = debugged("bare", context, more);
    let problems = mutate_ephemeral(&pod, Some(&before)).map(|_| ()).unwrap_err();
    assert!(!judged_change(&pod, &before).is_empty());
    problems.join("\n")
}

#[test]
fn a_plain_one_is_made_one_that_the_gateway_guards() {
    let (before, pod) = debugged("placeholders", json!({}), json!({"targetContainerName": "agent"}));
    assert!(!judged_change(&pod, &before).is_empty(), "as it was written it may not be stored");
    let result = mutate_ephemeral(&pod, Some(&before)).unwrap();
    let stored = patched(&pod, &result);
    assert_eq!(judged_change(&stored, &before), Vec::<String>::new());
    assert_eq!(mutate_ephemeral(&stored, Some(&before)).unwrap().patch.0, []);
    let container = &stored["spec"]["ephemeralContainers"][0];
    insta::assert_snapshot!(serde_json::to_string_pretty(container).unwrap());
}

#[test]
fn one_that_runs_already_is_left_as_it_is() {
    let (_, before) = debugged("bare", json!({"capabilities": {"add": ["SYS_PTRACE"]}}), json!({}));
    let mut pod = before.clone();
    let second = json!({"name": "debugger-2", "image": "busybox", "securityContext": {"runAsUser": 1000}});
    pod["spec"]["ephemeralContainers"].as_array_mut().unwrap().push(second);
    let stored = patched(&pod, &mutate_ephemeral(&pod, Some(&before)).unwrap());
    assert_eq!(stored["spec"]["ephemeralContainers"][0], before["spec"]["ephemeralContainers"][0]);
    assert_eq!(stored["spec"]["ephemeralContainers"][1]["securityContext"]["runAsUser"], 1000);
    assert_eq!(judged_change(&stored, &before), Vec::<String>::new());
}

#[test]
fn a_pod_without_a_gateway_is_left_as_it_is() {
    let before = pod("bare");
    let mut pod = before.clone();
    pod["spec"]["ephemeralContainers"] = json!([{"name": "d", "image": "busybox"}]);
    assert_eq!(mutate_ephemeral(&pod, Some(&before)).unwrap().patch.0, []);
    assert_eq!(judged_change(&pod, &before), Vec::<String>::new());
}

#[test]
fn the_profiles_of_kubectl_debug_that_add_capabilities_are_refused() {
    insta::assert_snapshot!(refused(json!({"capabilities": {"add": ["SYS_PTRACE"]}}), json!({})), @"spec.ephemeralContainers[0].securityContext.capabilities.add: SYS_PTRACE could undo the redirect or change the user: remove it (kubectl debug --profile=restricted adds none); there may be CHOWN, DAC_OVERRIDE, FOWNER, FSETID, KILL, NET_BIND_SERVICE");
    insta::assert_snapshot!(refused(json!({"capabilities": {"add": ["NET_ADMIN", "NET_RAW"]}}), json!({})), @"spec.ephemeralContainers[0].securityContext.capabilities.add: NET_ADMIN, NET_RAW could undo the redirect or change the user: remove it (kubectl debug --profile=restricted adds none); there may be CHOWN, DAC_OVERRIDE, FOWNER, FSETID, KILL, NET_BIND_SERVICE");
    insta::assert_snapshot!(refused(json!({"privileged": true}), json!({})), @"spec.ephemeralContainers[0].securityContext.privileged: the container could remove the redirect: leave it out");
}

#[test]
fn one_that_reaches_for_the_gateway_is_refused() {
    insta::assert_snapshot!(refused(json!({"runAsUser": UID}), json!({})), @"spec.ephemeralContainers[0].securityContext.runAsUser is 61234, which is the gateway's: choose another");
    insta::assert_snapshot!(refused(json!({}), json!({"targetContainerName": "postern-gateway"})), @"spec.ephemeralContainers[0].targetContainerName is Postern's, whose memory and files would be within reach: name another");
    insta::assert_snapshot!(refused(json!({}), json!({"name": "postern-debugger"})), @r#"spec.ephemeralContainers[0].name begins with "postern-": rename the container"#);
    let mounts = json!({"volumeMounts": [{"name": "postern-credentials", "mountPath": "/credentials"}]});
    insta::assert_snapshot!(refused(json!({}), mounts), @"spec.ephemeralContainers[0].volumeMounts[0] mounts a volume of Postern's, or over one: remove it, agents get what they need");
    let secrets = json!({"envFrom": [{"secretRef": {"name": "postern-ca"}}]});
    insta::assert_snapshot!(refused(json!({}), secrets), @r#"spec.ephemeralContainers[0].envFrom[0].secretRef.name refers to "postern-ca", which is the gateway's alone: remove it"#);
}

#[test]
fn its_user_is_named_for_its_image_could_have_the_gateways() {
    let user = |name: &str, context: Value| {
        let (before, pod) = debugged(name, context, json!({}));
        let stored = patched(&pod, &mutate_ephemeral(&pod, Some(&before)).unwrap());
        stored["spec"]["ephemeralContainers"][0]["securityContext"]["runAsUser"].clone()
    };
    assert_eq!(user("bare", json!({})), 0);
    assert_eq!(user("bare", json!({"runAsNonRoot": true})), 65_534);
    assert_eq!(user("bare", json!({"runAsUser": 1000})), 1000);
    assert_eq!(user("restricted", json!({})), Value::Null, "the pod names one");
}
