//! Joins messages from frames that come in any pieces.

use bytes::{Buf, Bytes, BytesMut};

use super::{BINARY, CLOSE, CONTINUATION, CONTROL, Message, PING, PONG, Sender, TEXT, WebSocketError};

/// Reads what one side sends. Pieces go in by [`Decoder::push`], messages come out by [`Decoder::next_message`] until
/// there is none. It holds the unfinished message, and at most one unfinished frame.
#[derive(Debug)]
pub struct Decoder {
    sender: Sender,
    message_bytes: usize,
    received: BytesMut,
    /// The unfinished message: its opcode, and its payload so far.
    begun: Option<(u8, BytesMut)>,
    failed: Option<WebSocketError>,
}

/// The header of a frame.
struct FrameHeader {
    is_last: bool,
    opcode: u8,
    mask: Option<[u8; 4]>,
    /// Of the header itself.
    length: usize,
    payload: usize,
}

impl Decoder {
    /// A decoder for the frames of `sender`; `message_bytes` is the most that one message may have.
    pub fn new(sender: Sender, message_bytes: usize) -> Self {
        Self { sender, message_bytes, received: BytesMut::new(), begun: None, failed: None }
    }

    /// Takes the next piece of the connection.
    pub fn push(&mut self, piece: &[u8]) {
        self.received.extend_from_slice(piece);
    }

    /// How many bytes are held.
    pub fn held(&self) -> usize {
        self.received.len() + self.begun.as_ref().map_or(0, |(_, payload)| payload.len())
    }

    /// The next message that is complete; `None` needs more bytes.
    ///
    /// # Errors
    /// Fails if the bytes are no frames of this sender, or a message is too long; from then on always.
    pub fn next_message(&mut self) -> Result<Option<Message>, WebSocketError> {
        if let Some(error) = self.failed {
            return Err(error);
        }
        self.read().inspect_err(|error| self.failed = Some(*error))
    }

    fn read(&mut self) -> Result<Option<Message>, WebSocketError> {
        while let Some(header) = self.header()? {
            if self.received.len() < header.length + header.payload {
                return Ok(None);
            }
            self.received.advance(header.length);
            let mut payload = self.received.split_to(header.payload);
            if let Some(mask) = header.mask {
                unmask(&mut payload, mask);
            }
            if let Some(message) = self.take(&header, payload)? {
                return Ok(Some(message));
            }
        }
        Ok(None)
    }

    /// Appends a frame to the unfinished message. Returns the message that it completes.
    fn take(&mut self, header: &FrameHeader, payload: BytesMut) -> Result<Option<Message>, WebSocketError> {
        if header.opcode >= CLOSE {
            return control(header.opcode, payload.freeze()).map(Some);
        }
        let (opcode, mut whole) = match (header.opcode, self.begun.take()) {
            (CONTINUATION, Some(begun)) => begun,
            (CONTINUATION, None) | (_, Some(_)) => return Err(WebSocketError::Sequence),
            (opcode, None) => (opcode, BytesMut::new()),
        };
        if whole.is_empty() {
            whole = payload;
        } else {
            whole.extend_from_slice(&payload);
        }
        if !header.is_last {
            self.begun = Some((opcode, whole));
            return Ok(None);
        }
        let whole = whole.freeze();
        if opcode == BINARY {
            return Ok(Some(Message::Binary(whole)));
        }
        std::str::from_utf8(&whole).map_err(|_| WebSocketError::Text)?;
        Ok(Some(Message::Text(whole)))
    }

    /// The header of the next frame, once it is complete. The announced length is judged before the payload is awaited.
    fn header(&self) -> Result<Option<FrameHeader>, WebSocketError> {
        let (Some(first), Some(second)) = (self.received.first(), self.received.get(1)) else {
            return Ok(None);
        };
        let opcode = first & 0x0f;
        if first & 0x70 != 0 {
            return Err(WebSocketError::Extension);
        }
        if !matches!(opcode, CONTINUATION | TEXT | BINARY | CLOSE | PING | PONG) {
            return Err(WebSocketError::Opcode);
        }
        let is_masked = second & 0x80 != 0;
        if is_masked != (self.sender == Sender::Client) {
            return Err(WebSocketError::Mask);
        }
        let is_last = first & 0x80 != 0;
        if opcode >= CLOSE && (!is_last || usize::from(second & 0x7f) > CONTROL) {
            return Err(WebSocketError::Control);
        }
        let Some((payload, mut length)) = self.length(second & 0x7f)? else { return Ok(None) };
        let begun = self.begun.as_ref().map_or(0, |(_, payload)| payload.len());
        let begun = if opcode >= CLOSE { 0 } else { begun };
        if payload > self.message_bytes.saturating_sub(begun) && opcode < CLOSE {
            return Err(WebSocketError::TooLong(self.message_bytes));
        }
        let mut mask = None;
        if is_masked {
            mask = self.received.get(length..length + 4).and_then(|mask| mask.try_into().ok());
            length += 4;
            if mask.is_none() {
                return Ok(None);
            }
        }
        Ok(Some(FrameHeader { is_last, opcode, mask, length, payload }))
    }

    /// The lengths of the payload and of the header up to the mask (section 5.2); `None` needs more bytes.
    fn length(&self, short: u8) -> Result<Option<(usize, usize)>, WebSocketError> {
        let bytes = |count: usize| self.received.get(2..2 + count);
        let (length, header, least) = match short {
            126 => match bytes(2).and_then(|bytes| bytes.try_into().ok()) {
                Some(bytes) => (u64::from(u16::from_be_bytes(bytes)), 4, 126),
                None => return Ok(None),
            },
            127 => match bytes(8).and_then(|bytes| bytes.try_into().ok()) {
                Some(bytes) => (u64::from_be_bytes(bytes), 10, 1 << 16),
                None => return Ok(None),
            },
            _ => (u64::from(short), 2, 0),
        };
        if length < least {
            return Err(WebSocketError::Length);
        }
        Ok(Some((usize::try_from(length).unwrap_or(usize::MAX), header)))
    }
}

/// A control frame, which may come between two frames of a message.
fn control(opcode: u8, payload: Bytes) -> Result<Message, WebSocketError> {
    match opcode {
        PING => Ok(Message::Ping(payload)),
        PONG => Ok(Message::Pong(payload)),
        _ if payload.len() == 1 => Err(WebSocketError::Control),
        _ => {
            let reason = payload.get(2..).unwrap_or_default();
            std::str::from_utf8(reason).map_err(|_| WebSocketError::Text)?;
            Ok(Message::Close(payload))
        }
    }
}

/// Unmasks a payload in place, or masks it (section 5.3).
pub(super) fn unmask(payload: &mut [u8], mask: [u8; 4]) {
    let mut words = payload.chunks_exact_mut(4);
    for word in &mut words {
        for (byte, key) in word.iter_mut().zip(mask) {
            *byte ^= key;
        }
    }
    for (byte, key) in words.into_remainder().iter_mut().zip(mask) {
        *byte ^= key;
    }
}
