//! Reads an `AdmissionReview` of the API server, and has it answered. Pure.

use kube::core::DynamicObject;
use kube::core::admission::{
    AdmissionRequest, AdmissionResponse, AdmissionReview, META_API_VERSION_V1, META_KIND,
};

pub use super::pods::ReviewFacts;
use super::{pods, policies};

/// The most values that a review may hold: a JSON value takes many times its bytes once it is read, and even the
/// largest objects that the API server accepts have far fewer.
const MAX_VALUES: usize = 500_000;

/// The questions of the API server, each at its own path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AdmissionQuestion {
    MutatePod,
    ValidatePod,
    /// Asked in namespaces that demand it: does every container say which user it runs as?
    DemandUsers,
    ValidatePolicy,
}

impl AdmissionQuestion {
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

/// Why a body is no review.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    #[error("the review holds more than {MAX_VALUES} values")]
    TooMany,
    /// The parser's own words would repeat parts of the pod, which may be secret.
    #[error("no AdmissionReview could be read: line {line}, column {column}: {what}")]
    Unreadable { line: usize, column: usize, what: &'static str },
    #[error("expected an AdmissionReview of admission.k8s.io/v1 with a request")]
    Other,
}

/// Reads a review's request.
///
/// # Errors
/// Fails with the reason, which repeats nothing of the body.
pub fn read(body: &[u8]) -> Result<AdmissionRequest<DynamicObject>, Malformed> {
    // Counted before parsing: every value but the outermost follows one of these bytes.
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

/// Answers a question. Nothing is changed by it, so a dry run gets the same answer.
pub fn answer(
    question: AdmissionQuestion,
    request: AdmissionRequest<DynamicObject>,
    circumstances: ReviewFacts<'_>,
) -> AdmissionResponse {
    match question {
        AdmissionQuestion::MutatePod => pods::mutate(request, circumstances),
        AdmissionQuestion::ValidatePod => pods::validate(request, circumstances),
        AdmissionQuestion::DemandUsers => pods::demand_users(request),
        AdmissionQuestion::ValidatePolicy => policies::validate(request),
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::review;
    use super::*;

    #[test]
    fn a_path_asks_one_question() {
        for question in AdmissionQuestion::ALL {
            assert_eq!(AdmissionQuestion::at(question.path()), Some(question));
        }
        for path in ["/", "", "/pods", "/pods/mutate/", "/Pods/mutate", "//pods/mutate"] {
            assert_eq!(AdmissionQuestion::at(path), None, "{path}");
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
}
