//! Why a message is refused, and the status of the answer.

use http::StatusCode;

/// Why a message is refused. The connection is closed after the answer: the beginning of the next message is no longer
/// known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub struct Violation {
    reason: &'static str,
    status: StatusCode,
    bound: Option<Bound>,
}

/// The bound that a message exceeds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bound {
    HeaderBytes,
    HeaderCount,
}

impl Violation {
    /// A few stable words, fit for the agent's eyes and for a metric's label.
    pub fn reason(&self) -> &'static str {
        self.reason
    }

    /// The bound that was exceeded, if the message is not malformed but too large.
    pub fn bound(&self) -> Option<Bound> {
        self.bound
    }

    /// 400, 431 (head or trailers too large) or 505 (version) for what the agent sent; 502 for the upstream's.
    pub fn status(&self) -> StatusCode {
        self.status
    }

    pub(super) const fn malformed(reason: &'static str) -> Self {
        Self { reason, status: StatusCode::BAD_REQUEST, bound: None }
    }

    pub(super) const fn too_large(reason: &'static str) -> Self {
        let status = StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE;
        Self { reason, status, bound: Some(Bound::HeaderBytes) }
    }

    pub(super) const fn too_many() -> Self {
        let status = StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE;
        Self { reason: "too many headers", status, bound: Some(Bound::HeaderCount) }
    }

    pub(super) const fn version() -> Self {
        Self { reason: "HTTP version", status: StatusCode::HTTP_VERSION_NOT_SUPPORTED, bound: None }
    }

    pub(super) const fn upstream(reason: &'static str) -> Self {
        Self { reason, status: StatusCode::BAD_GATEWAY, bound: None }
    }
}
