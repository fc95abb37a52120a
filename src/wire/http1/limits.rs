//! The bounds of a head and of a trailer section.

/// The most of a head (or of a trailer section) that is held until it is judged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of one head, its empty line included.
    pub header_bytes: usize,
    /// Field lines of one head.
    pub header_count: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { header_bytes: 64 * 1024, header_count: 128 }
    }
}
