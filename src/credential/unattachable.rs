//! Why a key cannot be put into a request.

/// Why a key cannot be put where its placeholder stands. Nothing of the request was changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Unattachable {
    #[error("the key holds a colon, so it cannot be the user of Basic authorization")]
    ColonInUser,
    #[error("the placeholder no longer stands in the request")]
    Gone,
    #[error("with the key in it, the header or the URL would be too long")]
    TooLong,
    #[error("it signs requests, and is no key that is put into one")]
    Signs,
    #[error("it is a key that is put into requests, and signs none")]
    DoesNotSign,
    #[error("the time cannot be written")]
    Time,
}
