//! What the tests of the injector share: the operator's settings, pods of the corpus, and what becomes of them.

use std::fs;
use std::path::Path;

use serde_json::Value;

use super::{Annotations, Injected, InjectionFacts, mutate};
use crate::operator::settings::Settings;

/// The UID that is drawn in tests.
pub(super) const UID: u32 = 61_234;

pub(super) fn settings() -> Settings {
    let text = r#"
namespace: postern-system
serviceAccount: postern-operator
gateway:
  image: ghcr.io/postern-dev/postern-gateway:1.0.0
  canaryImages: [ghcr.io/postern-dev/postern-gateway:1.1.0-rc1]
  formerImages: [ghcr.io/postern-dev/postern-gateway:0.9.0]
  resourceBounds: {least: {memory: 32Mi}, most: {cpu: "2", memory: 1Gi}}
  resources: {requests: {cpu: 50m, memory: 64Mi}, limits: {memory: 256Mi}}
  settings: |
    listeners: {transparent: {port: 15001}, explicit: {address: "127.0.0.1:15002"}, dns: {port: 15053}}
    admin: {address: "0.0.0.0:15090"}
    ledger: {path: /var/lib/postern/ledger.db, maxBytes: 256MiB}
    policy: {path: /etc/postern/policy, workload: {namespace: {fromEnv: POSTERN_NAMESPACE}}}
redirect: {resources: {requests: {cpu: 10m, memory: 16Mi}}, resourceBounds: {most: {cpu: "1", memory: 256Mi}}}
injection: {hostPaths: [/srv/models], logLevels: [info, debug]}
"#;
    serde_yaml::from_str(text).unwrap()
}

/// The pods of one directory of the corpus, by name.
pub(super) fn corpus(directory: &str) -> Vec<(String, Value)> {
    let directory =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("src/operator/injector/corpus").join(directory);
    let mut files: Vec<_> = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    let read = |path: &std::path::PathBuf| {
        let pod = serde_yaml::from_str(&fs::read_to_string(path).unwrap()).unwrap();
        (path.file_stem().unwrap().to_str().unwrap().to_owned(), pod)
    };
    files.iter().map(read).collect()
}

/// A pod of the corpus that is injected.
pub(super) fn pod(name: &str) -> Value {
    let pods = corpus("injected");
    pods.into_iter().find(|(found, _)| found == name).unwrap().1
}

pub(super) fn try_inject(pod: &Value, uid: u32) -> Result<Injected, Vec<String>> {
    inject_in(&Annotations::new(), pod, uid)
}

/// The same in a namespace that has annotations.
pub(super) fn inject_in(annotations: &Annotations, pod: &Value, uid: u32) -> Result<Injected, Vec<String>> {
    mutate(pod, &InjectionFacts { settings: &settings(), namespace: "agents", annotations, uid })
}

/// The pod after its patch.
pub(super) fn injected(pod: &Value, uid: u32) -> Value {
    patched(pod, &try_inject(pod, uid).unwrap())
}

pub(super) fn patched(pod: &Value, injected: &Injected) -> Value {
    let mut pod = pod.clone();
    json_patch::patch(&mut pod, &injected.patch).unwrap();
    pod
}

/// What is wrong with a pod as it is stored when it is created.
pub(super) fn judged(pod: &Value) -> Vec<String> {
    let (settings, annotations) = (&settings(), &Annotations::new());
    super::validate(pod, None, &InjectionFacts { settings, namespace: "agents", annotations, uid: 0 })
}

/// What is wrong with a change of a pod.
pub(super) fn judged_change(pod: &Value, before: &Value) -> Vec<String> {
    let (settings, annotations) = (&settings(), &Annotations::new());
    super::validate(pod, Some(before), &InjectionFacts { settings, namespace: "agents", annotations, uid: 0 })
}
