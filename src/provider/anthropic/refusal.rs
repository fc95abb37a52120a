//! Refuses a request of Anthropic Messages in the shape of its errors: <https://platform.claude.com/docs/en/api/errors>

use serde_json::json;

use crate::call::DenialForm;
use crate::provider::adapter::{ErrorAnswer, RefusalMessage};

/// A refusal with a status that official clients show once and do not retry. Never 401, over which Claude Code tries
/// again without a word.
pub(super) fn answer(refusal: &RefusalMessage<'_>) -> ErrorAnswer {
    let (status, kind, code) = match refusal.answer {
        DenialForm::Forbidden => (403, "permission_error", None),
        DenialForm::TooLarge => (413, "request_too_large", None),
        DenialForm::UnsupportedCoding => (415, "invalid_request_error", None),
        DenialForm::Limited { .. } => (429, "rate_limit_error", None),
        DenialForm::Recoverable { status, code } => (status, "invalid_request_error", Some(code)),
    };
    let mut error = json!({ "type": kind, "message": refusal.message });
    if let Some(code) = code {
        error["details"] = json!({ "error_code": code });
    }
    let body = json!({ "type": "error", "error": error }).to_string();
    let mut headers = vec![("x-should-retry", "false".to_owned())];
    if let DenialForm::Limited { retry_after_seconds } = refusal.answer {
        headers.push(("retry-after", retry_after_seconds.to_string()));
    }
    ErrorAnswer { status, headers, body }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::call::{Api, Dialect, Service, Vendor};

    fn refused(answer: DenialForm) -> (u16, serde_json::Value) {
        let service =
            Service { vendor: Vendor::Anthropic, api: Api::Messages, dialect: Some(Dialect::Anthropic) };
        let answered = super::answer(&RefusalMessage { service, message: "Blocked\nby \"a\"", answer });
        assert_eq!(answered.headers, [("x-should-retry", "false".to_owned())]);
        (answered.status, serde_json::from_str(&answered.body).unwrap())
    }

    #[test]
    fn a_refusal_has_the_shape_of_the_providers_own_errors() {
        let error = |kind: &str| json!({"type":"error","error":{"type":kind,"message":"Blocked\nby \"a\""}});
        assert_eq!(refused(DenialForm::Forbidden), (403, error("permission_error")));
        assert_eq!(refused(DenialForm::TooLarge), (413, error("request_too_large")));
        assert_eq!(refused(DenialForm::UnsupportedCoding), (415, error("invalid_request_error")));
    }

    #[test]
    fn a_limit_says_when_it_ends_and_that_nobody_should_try_before() {
        let service =
            Service { vendor: Vendor::Anthropic, api: Api::Messages, dialect: Some(Dialect::Anthropic) };
        let limited = DenialForm::Limited { retry_after_seconds: 30 };
        let answered = answer(&RefusalMessage { service, message: "Too many", answer: limited });
        assert_eq!(answered.status, 429);
        assert_eq!(
            answered.headers,
            [("x-should-retry", "false".to_owned()), ("retry-after", "30".to_owned())]
        );
    }

    #[test]
    fn a_refusal_from_which_clients_recover_says_the_code_that_they_look_for() {
        let (status, body) =
            refused(DenialForm::Recoverable { status: 400, code: "thread_unsupported_request" });
        assert_eq!(status, 400);
        assert_eq!(body["error"]["type"], "invalid_request_error");
        assert_eq!(body["error"]["details"]["error_code"], "thread_unsupported_request");
    }
}
