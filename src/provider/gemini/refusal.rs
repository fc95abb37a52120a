//! Google's error shape (<https://cloud.google.com/apis/design/errors>), with statuses that its clients show once.

use serde_json::json;

use crate::call::DenialForm;
use crate::provider::adapter::{ErrorAnswer, RefusalMessage};

const FORBIDDEN: (u16, &str) = (403, "PERMISSION_DENIED");

/// A refused request, as an answer of its own.
pub(super) fn answer(refusal: &RefusalMessage<'_>) -> ErrorAnswer {
    let (status, word) = match refusal.answer {
        DenialForm::Forbidden => FORBIDDEN,
        DenialForm::TooLarge => (413, "INVALID_ARGUMENT"),
        DenialForm::UnsupportedCoding => (415, "INVALID_ARGUMENT"),
        DenialForm::Limited { .. } => (400, "FAILED_PRECONDITION"),
        DenialForm::Recoverable { status, code } => (status, code),
    };
    ErrorAnswer { status, headers: Vec::new(), body: body((status, word), refusal.message) }
}

/// An answer that cannot go on, as the last part of a stream. The official SDKs raise an error with the message where
/// a part is an object whose first field is `error`.
pub(super) fn last_part(message: &str) -> String {
    body(FORBIDDEN, message)
}

fn body((code, status): (u16, &str), message: &str) -> String {
    json!({"error": {"code": code, "message": message, "status": status}}).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::call::{Api, Dialect, Service, Vendor};

    fn said(answer: DenialForm) -> (u16, String) {
        let service =
            Service { vendor: Vendor::Gemini, api: Api::GenerateContent, dialect: Some(Dialect::Gemini) };
        let error = super::answer(&RefusalMessage { service, message: "blocked\n\"why\"", answer });
        (error.status, error.body)
    }

    #[test]
    fn a_refusal_has_googles_shape() {
        let expect = |code: u16, status: &str| {
            let body =
                format!(r#"{{"error":{{"code":{code},"message":"blocked\n\"why\"","status":"{status}"}}}}"#);
            (code, body)
        };
        assert_eq!(said(DenialForm::Forbidden), expect(403, "PERMISSION_DENIED"));
        assert_eq!(said(DenialForm::TooLarge), expect(413, "INVALID_ARGUMENT"));
        assert_eq!(said(DenialForm::UnsupportedCoding), expect(415, "INVALID_ARGUMENT"));
        let limited = DenialForm::Limited { retry_after_seconds: 1 };
        assert_eq!(said(limited), expect(400, "FAILED_PRECONDITION"));
        let recoverable = DenialForm::Recoverable { status: 404, code: "NOT_FOUND" };
        assert_eq!(said(recoverable), expect(404, "NOT_FOUND"));
    }
}
