//! What a message may not say: the reason, and the status that answers it.

use http::StatusCode;

/// Why a message goes no further. The connection is closed after the answer: where the next one would begin is
/// no longer known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub struct Violation {
    reason: &'static str,
    status: StatusCode,
}

impl Violation {
    /// A few stable words, fit for the agent's eyes and for a metric's label.
    pub fn reason(&self) -> &'static str {
        self.reason
    }

    /// 400, 431 (head or trailers too large) or 505 (version) for what the agent sent; 502 for the upstream's.
    pub fn status(&self) -> StatusCode {
        self.status
    }

    pub(super) const fn malformed(reason: &'static str) -> Self {
        Self { reason, status: StatusCode::BAD_REQUEST }
    }

    pub(super) const fn too_large(reason: &'static str) -> Self {
        Self { reason, status: StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE }
    }

    pub(super) const fn version() -> Self {
        Self { reason: "HTTP version", status: StatusCode::HTTP_VERSION_NOT_SUPPORTED }
    }

    pub(super) const fn upstream(reason: &'static str) -> Self {
        Self { reason, status: StatusCode::BAD_GATEWAY }
    }
}
