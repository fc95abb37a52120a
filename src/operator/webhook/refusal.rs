//! Refuses an admission request, with the status and the words that the API server gives its client. Pure.

use kube::core::DynamicObject;
use kube::core::admission::{AdmissionRequest, AdmissionResponse};
use kube::core::response::StatusSummary;

/// Why something is refused, as an HTTP status.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RefusalStatus {
    /// Nobody may do it.
    Forbidden,
    /// It is not well-formed.
    Invalid,
}

/// Refuses a request with this message.
pub(super) fn refused(
    answer: AdmissionResponse,
    denial: RefusalStatus,
    message: impl ToString,
) -> AdmissionResponse {
    let (code, reason) = match denial {
        RefusalStatus::Forbidden => (403, "Forbidden"),
        RefusalStatus::Invalid => (422, "Invalid"),
    };
    let mut answer = answer.deny(message);
    answer.result.status = Some(StatusSummary::Failure);
    answer.result.code = code;
    reason.clone_into(&mut answer.result.reason);
    answer
}

/// Names the object of a request as `kind namespace/name`; where the API server generates the name, by its prefix.
pub(super) fn named(request: &AdmissionRequest<DynamicObject>) -> String {
    let generated = request.object.as_ref().and_then(|object| object.metadata.generate_name.clone());
    let name = Some(request.name.clone()).filter(|name| !name.is_empty()).or(generated).unwrap_or_default();
    let place = request.namespace.as_deref().map(|namespace| format!("{namespace}/")).unwrap_or_default();
    format!("{} {place}{name}", request.kind.kind)
}

#[cfg(test)]
mod tests {
    use super::super::review::read;
    use super::super::testing::review;
    use super::*;

    #[test]
    fn an_object_is_named_by_its_kind_namespace_and_name() {
        let mut made = review("Pod", "CREATE");
        let request = read(made.to_string().as_bytes()).unwrap();
        assert_eq!(named(&request), "Pod agents/agent");
        made["request"]["name"] = "".into();
        made["request"]["object"]["metadata"] = serde_json::json!({"generateName": "job-"});
        let request = read(made.to_string().as_bytes()).unwrap();
        assert_eq!(named(&request), "Pod agents/job-");
    }
}
