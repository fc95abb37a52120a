//! Why a body cannot be decoded.

/// A content coding that is unknown, repeated or stacked on another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("content coding is not one of gzip, deflate, br, zstd")]
pub struct Unsupported;

/// Why a body cannot be decoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum CodingError {
    #[error("body does not decode")]
    Corrupt,
    #[error("body ends inside its content coding")]
    Truncated,
    #[error("bytes after the end of the content coding")]
    Trailing,
    #[error("body decodes to more than its limit")]
    TooLarge,
    #[error("content coding wants a larger window than its limit")]
    Window,
    #[error("content coding wants a dictionary")]
    Dictionary,
}

impl CodingError {
    /// Whether a bound was reached, and not the body unreadable.
    pub(crate) fn is_bound(self) -> bool {
        match self {
            Self::TooLarge | Self::Window => true,
            Self::Corrupt | Self::Truncated | Self::Trailing | Self::Dictionary => false,
        }
    }
}
