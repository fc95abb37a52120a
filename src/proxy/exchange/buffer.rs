//! Buffers a whole body within its bounds, and undoes its content coding.

use bytes::{Bytes, BytesMut};
use http_body::Body as HttpBody;
use http_body_util::BodyExt;

use crate::proxy::body::transit::Chunk;
use crate::proxy::budget::{Exhausted, Reserved};
use crate::proxy::error::Failure;
use crate::wire::coding::{self, CodingError, Decoder, Wrote};

/// Why a body could not be buffered.
#[derive(Debug)]
pub(crate) enum BufferError {
    /// It is longer than its bound, in bytes.
    TooLarge(usize),
    /// All exchanges together hold too much.
    Exhausted,
    /// It cannot be decoded.
    Coded(CodingError),
    /// It broke off.
    Failed(Failure),
}

impl From<Exhausted> for BufferError {
    fn from(_: Exhausted) -> Self {
        Self::Exhausted
    }
}

/// Buffers a body. Reads nothing if its announced length is beyond the bound.
pub(crate) async fn buffer<B>(mut body: B, most: usize, reserved: &mut Reserved) -> Result<Bytes, BufferError>
where
    B: HttpBody<Data = Chunk, Error = Failure> + Unpin,
{
    let announced = body.size_hint().exact().map(|length| usize::try_from(length).unwrap_or(usize::MAX));
    if announced.is_some_and(|length| length > most) {
        return Err(BufferError::TooLarge(most));
    }
    reserved.set(announced.unwrap_or(0))?;
    let mut whole = BytesMut::new();
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame.map_err(BufferError::Failed)?.into_data().map(Chunk::into_bytes) else {
            continue;
        };
        // A body in one piece is not copied.
        if whole.is_empty() && announced == Some(data.len()) {
            return Ok(data);
        }
        let length = whole.len() + data.len();
        if length > most {
            return Err(BufferError::TooLarge(most));
        }
        if whole.capacity() - whole.len() < data.len() {
            // The budget holds the announced length already; memory is allocated as the body comes.
            let room = announced.filter(|_| whole.is_empty()).unwrap_or_else(|| room(whole.len(), most));
            whole.reserve(room.max(data.len()));
        }
        whole.extend_from_slice(&data);
        reserved.set(reserved.bytes().max(whole.len()))?;
    }
    Ok(whole.freeze())
}

/// Returns how much to allocate behind the `length` bytes that are there. The buffer grows fourfold, and to its bound
/// where that is near: the allocator does not give an outgrown buffer back at once.
fn room(length: usize, most: usize) -> usize {
    let (grown, bound) = (4 * length, most.saturating_add(FIRST));
    let target = if grown > bound / 2 { bound } else { grown };
    target.saturating_sub(length).max(FIRST)
}

/// The first allocation for a body of unknown length.
const FIRST: usize = 64 << 10;

/// Undoes a content coding. The decoder must have been made with the bound `most`.
pub(crate) fn decode(
    coded: &Bytes,
    mut decoder: Decoder,
    most: usize,
    reserved: &mut Reserved,
) -> Result<Bytes, BufferError> {
    let held = reserved.bytes();
    let (mut rest, mut plain) = (&coded[..], Vec::new());
    loop {
        if plain.capacity() - plain.len() < coding::Limits::default().chunk_bytes {
            plain.reserve_exact(room(plain.len(), most));
        }
        let wrote = decoder.write(&mut rest, &mut plain).map_err(BufferError::Coded)?;
        reserved.set(held + plain.len())?;
        if wrote == Wrote::All {
            break;
        }
    }
    decoder.finish().map_err(BufferError::Coded)?;
    Ok(plain.into())
}
