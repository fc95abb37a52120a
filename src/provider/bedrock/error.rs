//! Errors as AWS writes them: of a request that is refused, and inside a stream that cannot go on.

use crate::call::DenialForm;
use crate::provider::adapter::{ErrorAnswer, RefusalMessage};
use crate::provider::answer::Out;

/// A refusal. No AWS SDK tries again after a 403 or 400.
pub(super) fn refusal(refusal: &RefusalMessage<'_>) -> ErrorAnswer {
    let (status, kind) = match refusal.answer {
        DenialForm::Forbidden => (403, "AccessDeniedException"),
        DenialForm::TooLarge | DenialForm::UnsupportedCoding => (400, "ValidationException"),
        DenialForm::Limited { .. } => (400, "ServiceQuotaExceededException"),
        DenialForm::Recoverable { status, code } => (status, code),
    };
    let body = serde_json::json!({"__type": kind, "message": refusal.message}).to_string();
    ErrorAnswer { status, headers: vec![("x-amzn-errortype", kind.to_owned())], body }
}

/// Ends a stream with the exception that no SDK tries again after.
pub(super) fn break_off(message: &str, out: &mut Out) {
    out.say(Some("validationException"), serde_json::json!({"message": message}).to_string());
}
