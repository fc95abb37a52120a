//! The volume of tool results: the gateway writes it, agents read it, and the ledger's is never shared.

use serde_json::{Value, json};

use super::testing::{UID, corpus, injected, judged, patched, pod, settings};
use super::{Annotations, InjectionFacts, mutate, mutate_ephemeral, validate};
use crate::operator::settings::Settings;

/// The settings with 100 MiB of tool results.
fn keeping() -> Settings {
    let mut settings = settings();
    settings.gateway.settings.push_str(
        "evidence: {directory: /var/lib/postern-evidence, agentPath: /run/postern/evidence, maxBytes: 100MiB}\n",
    );
    settings
}

fn inject(pod: &Value) -> Result<Value, Vec<String>> {
    let (settings, annotations) = (&keeping(), &Annotations::new());
    let injected = mutate(pod, &InjectionFacts { settings, namespace: "agents", annotations, uid: UID })?;
    Ok(patched(pod, &injected))
}

fn judge(pod: &Value) -> Vec<String> {
    let (settings, annotations) = (&keeping(), &Annotations::new());
    validate(pod, None, &InjectionFacts { settings, namespace: "agents", annotations, uid: 0 })
}

/// The mounts of the volume, each with the name of its container.
fn mounts(pod: &Value) -> Vec<(String, Value)> {
    let lists = ["initContainers", "containers", "ephemeralContainers"].into_iter();
    let containers = lists.flat_map(|list| pod["spec"][list].as_array().cloned().unwrap_or_default());
    let of = |container: Value| {
        let mounts = container["volumeMounts"].as_array().cloned().unwrap_or_default().into_iter();
        let name = container["name"].as_str().unwrap().to_owned();
        mounts.filter(|mount| mount["name"] == "postern-evidence").map(move |mount| (name.clone(), mount))
    };
    containers.flat_map(of).collect()
}

#[test]
fn the_gateway_writes_the_results_and_every_agent_reads_them() {
    for (name, pod) in corpus("injected") {
        let stored = inject(&pod).unwrap();
        let mounts = mounts(&stored);
        for (container, mount) in &mounts {
            let expected = match container.as_str() {
                "postern-gateway" => {
                    json!({"name": "postern-evidence", "mountPath": "/var/lib/postern-evidence"})
                }
                _ => {
                    json!({"name": "postern-evidence", "mountPath": "/run/postern/evidence", "readOnly": true})
                }
            };
            assert_eq!(*mount, expected, "{name}: {container}");
        }
        let without = ["postern-redirect", "postern-workspace"];
        let reads = |container: &&Value| !without.iter().any(|name| container["name"] == *name);
        let count =
            |list: &str| stored["spec"][list].as_array().map_or(0, |list| list.iter().filter(reads).count());
        assert_eq!(mounts.len(), count("initContainers") + count("containers"), "{name}");
        let volumes = stored["spec"]["volumes"].as_array().unwrap();
        let volume = json!({"name": "postern-evidence", "emptyDir": {"sizeLimit": "164Mi"}});
        assert!(volumes.contains(&volume), "{name}");
        let variables = stored["spec"]["initContainers"][1]["env"].as_array().unwrap();
        let bytes = json!({"name": "POSTERN_EVIDENCE_BYTES", "value": (100_u64 << 20).to_string()});
        assert!(variables.contains(&bytes), "{name}");
        assert_eq!(judge(&stored), Vec::<String>::new(), "{name}");
        assert_eq!(inject(&stored).unwrap(), stored, "{name}: injecting twice is injecting once");
    }
}

#[test]
fn a_pod_of_other_settings_loses_the_volume_and_one_without_it_is_not_stored() {
    let with = inject(&pod("bare")).unwrap();
    let without = injected(&pod("bare"), UID);
    assert!(!without.to_string().contains("evidence"), "{without}");
    assert_eq!(injected(&with, UID)["spec"], without["spec"]);
    assert_eq!(inject(&without).unwrap()["spec"], with["spec"]);
    for problems in [judged(&with), judge(&without)] {
        assert!(problems.iter().any(|problem| problem.contains("not as Postern made it")), "{problems:?}");
    }
}

/// O2: an agent writes no results, and nobody but the gateway sees the ledger.
#[test]
fn what_an_agent_may_not_mount_of_the_volumes_is_refused() {
    let path = "/run/postern/evidence";
    for mount in [
        json!({"name": "postern-evidence", "mountPath": path}),
        json!({"name": "postern-evidence", "mountPath": path, "readOnly": false}),
        json!({"name": "postern-evidence", "mountPath": "/evidence", "readOnly": true}),
        json!({"name": "postern-evidence", "mountPath": path, "readOnly": true, "subPath": "x"}),
        json!({"name": "postern-evidence", "mountPath": path, "readOnly": true, "mountPropagation": "Bidirectional"}),
        json!({"name": "postern-ledger", "mountPath": path, "readOnly": true}),
        json!({"name": "postern-ledger", "mountPath": "/var/lib/postern", "readOnly": true}),
        json!({"name": "own", "mountPath": path, "readOnly": true}),
        json!({"name": "own", "mountPath": "/run/postern/evidence/", "readOnly": true}),
    ] {
        let bare = pod("bare");
        let mut pod = bare.clone();
        pod["spec"]["volumes"] = json!([{"name": "own", "emptyDir": {}}]);
        pod["spec"]["containers"][0]["volumeMounts"] = json!([mount]);
        let problems = inject(&pod).unwrap_err();
        assert!(problems.iter().any(|problem| problem.contains("volumeMounts[0]")), "{mount}: {problems:?}");
        // After the webhook, another one gives the agent what it may not have.
        let mut stored = inject(&bare).unwrap();
        let mounts = stored["spec"]["containers"][0]["volumeMounts"].as_array_mut().unwrap();
        mounts.retain(|ours| ours["name"] != "postern-evidence");
        mounts.push(mount.clone());
        assert!(!judge(&stored).is_empty(), "{mount}");
    }
    for volume in [
        json!({"name": "postern-evidence", "hostPath": {"path": "/srv/models"}}),
        json!({"name": "postern-evidence", "persistentVolumeClaim": {"claimName": "shared"}}),
        json!({"name": "postern-evidence", "emptyDir": {}}),
    ] {
        let mut stored = inject(&pod("bare")).unwrap();
        let volumes = stored["spec"]["volumes"].as_array_mut().unwrap();
        volumes.retain(|ours| ours["name"] != "postern-evidence");
        volumes.push(volume.clone());
        assert!(!judge(&stored).is_empty(), "{volume}");
    }
}

#[test]
fn a_container_that_is_added_for_debugging_reads_them_where_the_pod_has_them() {
    for (before, has) in [(inject(&pod("bare")).unwrap(), true), (injected(&pod("bare"), UID), false)] {
        let mut pod = before.clone();
        pod["spec"]["ephemeralContainers"] = json!([{"name": "debug", "image": "busybox"}]);
        let edited = patched(&pod, &mutate_ephemeral(&pod, Some(&before)).unwrap());
        let debug = mounts(&edited).into_iter().find(|(name, _)| name == "debug");
        assert_eq!(debug.is_some(), has);
    }
}
