//! Why a connection is closed (RFC 6455, section 7.4).

use super::{CONTROL_BYTES, Violation};

/// The payload of a close frame.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Close {
    pub code: u16,
    /// At most 123 bytes.
    pub reason: String,
}

impl Close {
    /// A reason that fits: what is too long is cut.
    pub fn new(code: u16, reason: &str) -> Self {
        let most = reason.floor_char_boundary(CONTROL_BYTES - 2);
        Self { code, reason: reason[..most].to_owned() }
    }

    /// Reads a payload. None where it is empty.
    pub(super) fn read(payload: &[u8]) -> Result<Option<Self>, Violation> {
        let Some((code, reason)) = payload.split_first_chunk() else {
            return if payload.is_empty() { Ok(None) } else { Err(Violation::Close) };
        };
        let code = u16::from_be_bytes(*code);
        if !is_sent(code) {
            return Err(Violation::Close);
        }
        let reason = std::str::from_utf8(reason).map_err(|_| Violation::Text)?.to_owned();
        Ok(Some(Self { code, reason }))
    }

    pub(super) fn payload(&self) -> Vec<u8> {
        let fit = Self::new(self.code, &self.reason);
        [&fit.code.to_be_bytes()[..], fit.reason.as_bytes()].concat()
    }
}

/// Whether a code may stand in a frame: those of the RFC's registry, of libraries, and of applications.
fn is_sent(code: u16) -> bool {
    matches!(code, 1000..=1003 | 1007..=1014 | 3000..=4999)
}
