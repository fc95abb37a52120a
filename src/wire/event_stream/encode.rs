//! Encodes frames, with lengths and both checksums.

use super::{CHECKSUM, EventStreamError, FRAME_BYTES, Header, PRELUDE, headers};

/// Appends one frame. The headers of a received frame are written exactly as they were in it.
///
/// Fails if a name or value is too long for a header, a name occurs twice, or the frame is longer than [`FRAME_BYTES`];
/// the output is then unchanged.
pub fn encode(headers: &[Header], payload: &[u8], output: &mut Vec<u8>) -> Result<(), EventStreamError> {
    let mut section = Vec::new();
    for header in headers {
        headers::write(header, &mut section)?;
    }
    headers::check_names(headers)?;
    let total = PRELUDE + section.len() + payload.len() + CHECKSUM;
    if total > FRAME_BYTES {
        return Err(EventStreamError::TooLong);
    }
    let length = |length: usize| u32::try_from(length).map_err(|_| EventStreamError::TooLong);
    let lengths = [length(total)?.to_be_bytes(), length(section.len())?.to_be_bytes()].concat();
    let start = output.len();
    output.reserve(total);
    output.extend_from_slice(&lengths);
    output.extend_from_slice(&crc32fast::hash(&lengths).to_be_bytes());
    output.extend_from_slice(&section);
    output.extend_from_slice(payload);
    let checksum = crc32fast::hash(output.get(start..).unwrap_or_default());
    output.extend_from_slice(&checksum.to_be_bytes());
    Ok(())
}
