//! What the API server asks and what it is told: an `AdmissionReview` read, judged and answered. Pure.

use kube::core::DynamicObject;
use kube::core::admission::{
    AdmissionRequest, AdmissionResponse, AdmissionReview, META_API_VERSION_V1, META_KIND,
};
use kube::core::response::StatusSummary;

use super::{pods, policies};
use crate::operator::injector::Annotations;
use crate::operator::settings::Settings;

/// The most that a review may nest and hold: a value of JSON takes many times its bytes once it is read, and objects
/// as large as the API server takes have far less.
const MAX_VALUES: usize = 500_000;

/// What is asked, by the path that is asked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Question {
    MutatePod,
    ValidatePod,
    /// Asked in namespaces that demand it: does every container say which user it runs as?
    DemandUsers,
    ValidatePolicy,
}

impl Question {
    pub const ALL: [Self; 4] = [Self::MutatePod, Self::ValidatePod, Self::DemandUsers, Self::ValidatePolicy];

    /// The question of a path.
    pub fn at(path: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|question| question.path() == path)
    }

    pub fn path(self) -> &'static str {
        match self {
            Self::MutatePod => "/pods/mutate",
            Self::ValidatePod => "/pods/validate",
            Self::DemandUsers => "/pods/users",
            Self::ValidatePolicy => "/policies/validate",
        }
    }
}

/// With what a question is answered.
#[derive(Clone, Copy)]
pub struct Circumstances<'a> {
    pub settings: &'a Settings,
    /// The annotations of a new pod's namespace.
    pub annotations: &'a Annotations,
    /// What the gateway's user ID is drawn by.
    pub random: u32,
}

/// Why a body is no review.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    #[error("the review holds more than {MAX_VALUES} values")]
    TooMany,
    /// The parser's own words would repeat what is in the pod, which may be a secret.
    #[error("no AdmissionReview could be read: line {line}, column {column}: {what}")]
    Unreadable { line: usize, column: usize, what: &'static str },
    #[error("expected an AdmissionReview of admission.k8s.io/v1 with a request")]
    Other,
}

/// Reads a review's request.
///
/// # Errors
/// Why it is none; nothing of what is in it.
pub fn read(body: &[u8]) -> Result<AdmissionRequest<DynamicObject>, Malformed> {
    if body.iter().filter(|byte| matches!(byte, b',' | b'[' | b'{')).count() > MAX_VALUES {
        return Err(Malformed::TooMany);
    }
    let review: AdmissionReview<DynamicObject> =
        serde_json::from_slice(body).map_err(|error| Malformed::Unreadable {
            line: error.line(),
            column: error.column(),
            what: match error.classify() {
                serde_json::error::Category::Data => "a field is missing, or holds what it should not",
                serde_json::error::Category::Eof => "it ends too soon",
                serde_json::error::Category::Syntax | serde_json::error::Category::Io => "it is no JSON",
            },
        })?;
    if review.types.kind != META_KIND || review.types.api_version != META_API_VERSION_V1 {
        return Err(Malformed::Other);
    }
    review.try_into().map_err(|_| Malformed::Other)
}

/// Answers what is asked. Nothing is done: a dry run is answered the same.
pub fn answer(
    question: Question,
    request: AdmissionRequest<DynamicObject>,
    circumstances: Circumstances<'_>,
) -> AdmissionResponse {
    match question {
        Question::MutatePod => pods::mutate(request, circumstances),
        Question::ValidatePod => pods::validate(request, circumstances),
        Question::DemandUsers => pods::demand_users(request),
        Question::ValidatePolicy => policies::validate(request),
    }
}

/// A refusal, with the status code and reason that the client sees.
pub(super) fn refused(
    answer: AdmissionResponse,
    (code, reason): (u16, &str),
    message: impl ToString,
) -> AdmissionResponse {
    let mut answer = answer.deny(message);
    answer.result.status = Some(StatusSummary::Failure);
    answer.result.code = code;
    reason.clone_into(&mut answer.result.reason);
    answer
}

/// Something that nobody may do.
pub(super) const FORBIDDEN: (u16, &str) = (403, "Forbidden");
/// Something that is not well-formed.
pub(super) const INVALID: (u16, &str) = (422, "Invalid");

/// `kind namespace/name`, for messages; a name that the API server is still to make up is its beginning.
pub(super) fn named(request: &AdmissionRequest<DynamicObject>) -> String {
    let generated = request.object.as_ref().and_then(|object| object.metadata.generate_name.clone());
    let name = Some(request.name.clone()).filter(|name| !name.is_empty()).or(generated).unwrap_or_default();
    let place = request.namespace.as_deref().map(|namespace| format!("{namespace}/")).unwrap_or_default();
    format!("{} {place}{name}", request.kind.kind)
}

#[cfg(test)]
mod tests {
    use super::super::testing::review;
    use super::*;

    #[test]
    fn a_path_asks_one_question() {
        for question in Question::ALL {
            assert_eq!(Question::at(question.path()), Some(question));
        }
        for path in ["/", "", "/pods", "/pods/mutate/", "/Pods/mutate", "//pods/mutate"] {
            assert_eq!(Question::at(path), None, "{path}");
        }
    }

    #[test]
    fn what_is_no_review_is_said_without_repeating_it() {
        let secret =
            r#"{"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": "hunter2"}"#;
        let said = read(secret.as_bytes()).unwrap_err().to_string();
        assert!(said.contains("line 1") && !said.contains("hunter2"), "{said}");
        assert!(read(b"{").unwrap_err().to_string().contains("ends too soon"));
        assert!(read(b"<xml>").unwrap_err().to_string().contains("no JSON"));
        let deep = format!("{}{}", "[".repeat(10_000), "]".repeat(10_000));
        assert!(matches!(read(deep.as_bytes()), Err(Malformed::Unreadable { .. })));
    }

    #[test]
    fn a_review_of_another_version_or_without_a_request_is_no_review() {
        let mut old = review("Pod", "CREATE");
        old["apiVersion"] = "admission.k8s.io/v1beta1".into();
        assert_eq!(read(old.to_string().as_bytes()).unwrap_err(), Malformed::Other);
        let mut empty = review("Pod", "CREATE");
        empty.as_object_mut().unwrap().remove("request");
        assert_eq!(read(empty.to_string().as_bytes()).unwrap_err(), Malformed::Other);
    }

    #[test]
    fn a_review_with_more_values_than_any_object_has_is_not_read() {
        let many = format!("[{}]", "0,".repeat(MAX_VALUES + 1));
        assert_eq!(read(many.as_bytes()).unwrap_err(), Malformed::TooMany);
    }

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
