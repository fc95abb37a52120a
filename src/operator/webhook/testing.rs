//! Reviews and settings for the tests of this module.

use kube::core::admission::AdmissionResponse;
use serde_json::{Value, json};

use super::review::{self, Circumstances, Question};
use crate::operator::settings::Settings;

/// A review of the object `agents/agent`, the object being empty but for its name.
pub(super) fn review(kind: &str, operation: &str) -> Value {
    let kind_of = json!({"group": "", "version": "v1", "kind": kind});
    json!({
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "request": {
            "uid": "705ab4f5-6393-11e8-b7cc-42010a800002",
            "kind": kind_of,
            "resource": {"group": "", "version": "v1", "resource": "objects"},
            "name": "agent",
            "namespace": "agents",
            "operation": operation,
            "userInfo": {"username": "someone"},
            "object": {"apiVersion": "v1", "kind": kind, "metadata": {"name": "agent", "namespace": "agents"}},
            "dryRun": false,
        },
    })
}

/// The answer to a review.
pub(super) fn judged(question: Question, made: &Value) -> AdmissionResponse {
    let settings = settings();
    let request = review::read(made.to_string().as_bytes()).unwrap();
    review::answer(question, request, Circumstances { settings: &settings, draw: &|_| Some(61_000) })
}

/// Settings as the chart writes them, with the shortest drain.
pub(super) fn settings() -> Settings {
    serde_json::from_value(json!({
        "namespace": "postern-system",
        "serviceAccount": "postern-operator",
        "gateway": {"image": "gateway:test", "settings": "policy: {path: /etc/postern/policy}"},
    }))
    .unwrap()
}
