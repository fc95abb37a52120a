//! Takes messages out of bytes that come in any pieces.

use bytes::{Bytes, BytesMut};

use super::{CONTROL_BYTES, Close, Message, Opcode, Sender, Violation, mask};
use crate::wire::inflow::Inflow;

/// The most frames of one message. Each costs at least two bytes on the way here, and nothing once it is read.
const MOST_FRAMES: usize = 1 << 16;

/// Reads what one end sends. Pieces go in by [`Decoder::push`], messages come out by [`Decoder::next_message`] until
/// there is none; how the bytes were cut into pieces never matters.
#[derive(Debug)]
pub struct Decoder {
    sender: Sender,
    message_bytes: usize,
    inflow: Inflow,
    /// The message of which some frames came.
    begun: Option<Begun>,
    closed: bool,
    ended: bool,
    failed: Option<Violation>,
}

#[derive(Debug)]
struct Begun {
    opcode: Opcode,
    payload: BytesMut,
    frames: usize,
}

/// The beginning of a frame.
#[derive(Debug, Clone, Copy)]
struct Head {
    is_last: bool,
    opcode: Opcode,
    key: Option<[u8; 4]>,
    /// Of the payload.
    length: usize,
    /// Of the beginning itself.
    bytes: usize,
}

impl Decoder {
    /// Reads what this end sends, in messages of at most so many bytes.
    pub fn new(sender: Sender, message_bytes: usize) -> Self {
        Self {
            sender,
            message_bytes,
            inflow: Inflow::default(),
            begun: None,
            closed: false,
            ended: false,
            failed: None,
        }
    }

    /// Takes the next piece.
    pub fn push(&mut self, piece: Bytes) {
        self.inflow.push(piece);
    }

    /// No more bytes come.
    pub fn end(&mut self) {
        self.ended = true;
    }

    /// The next message that is complete; none needs more bytes, or there are no more.
    ///
    /// # Errors
    /// Where the bytes are no message, from then on always. A length over the bound fails before the bytes have come.
    pub fn next_message(&mut self) -> Result<Option<Message>, Violation> {
        if let Some(violation) = self.failed {
            return Err(violation);
        }
        self.read().inspect_err(|violation| self.failed = Some(*violation))
    }

    /// Bytes that are held.
    pub fn held(&self) -> usize {
        self.inflow.len() + self.begun.as_ref().map_or(0, |begun| begun.payload.len())
    }

    fn read(&mut self) -> Result<Option<Message>, Violation> {
        loop {
            if self.closed && self.inflow.len() > 0 {
                return Err(Violation::AfterClose);
            }
            let head = self.head()?;
            let Some(head) = head.filter(|head| self.inflow.len() - head.bytes >= head.length) else {
                // What came before the last message may still be under way when it is said.
                if self.ended && (self.inflow.len() > 0 || (self.begun.is_some() && !self.closed)) {
                    return Err(Violation::Truncated);
                }
                self.inflow.hold();
                return Ok(None);
            };
            let payload = self.payload(head);
            if let Some(message) = self.frame(head, payload)? {
                self.closed = matches!(message, Message::Close(_));
                return Ok(Some(message));
            }
        }
    }

    /// The beginning of the next frame, judged as soon as its bytes are there; none where it is not whole.
    fn head(&self) -> Result<Option<Head>, Violation> {
        let Some([first, second]) = self.inflow.first() else { return Ok(None) };
        if first & 0x70 != 0 {
            return Err(Violation::Reserved);
        }
        let opcode = Opcode::of(first & 0x0f).ok_or(Violation::Opcode)?;
        let (is_last, is_masked) = (first & 0x80 != 0, second & 0x80 != 0);
        if is_masked != (self.sender == Sender::Client) {
            return Err(Violation::Mask);
        }
        self.check_order(opcode)?;
        let short = usize::from(second & 0x7f);
        if opcode.is_control() && (!is_last || short > CONTROL_BYTES) {
            return Err(Violation::Control);
        }
        let (length, bytes) = match short {
            126 => match self.inflow.first::<4>() {
                Some([_, _, length @ ..]) => (u64::from(u16::from_be_bytes(length)), 4),
                None => return Ok(None),
            },
            127 => match self.inflow.first::<10>() {
                Some([_, _, length @ ..]) => (u64::from_be_bytes(length), 10),
                None => return Ok(None),
            },
            short => (short as u64, 2),
        };
        if (bytes == 4 && length < 126) || (bytes == 10 && (length <= 0xffff || length >> 63 != 0)) {
            return Err(Violation::Length);
        }
        let before = self.begun.as_ref().filter(|_| !opcode.is_control());
        let room = self.message_bytes.saturating_sub(before.map_or(0, |begun| begun.payload.len()));
        let length = usize::try_from(length).ok().filter(|length| *length <= room || opcode.is_control());
        let length = length.ok_or(Violation::TooLong(self.message_bytes))?;
        let Some(key) = self.key(is_masked, bytes) else { return Ok(None) };
        let bytes = if is_masked { bytes + 4 } else { bytes };
        Ok(Some(Head { is_last, opcode, key, length, bytes }))
    }

    fn check_order(&self, opcode: Opcode) -> Result<(), Violation> {
        let continues = opcode == Opcode::Continuation;
        if !opcode.is_control() && continues != self.begun.is_some() {
            return Err(Violation::Fragment);
        }
        match &self.begun {
            Some(begun) if continues && begun.frames >= MOST_FRAMES => Err(Violation::TooMany(MOST_FRAMES)),
            _ => Ok(()),
        }
    }

    /// The key of a mask that stands behind so many bytes. None within where there is no mask; none where it is not
    /// whole.
    fn key(&self, is_masked: bool, behind: usize) -> Option<Option<[u8; 4]>> {
        if !is_masked {
            return Some(None);
        }
        match behind {
            2 => self.inflow.first().map(|[_, _, key @ ..]: [u8; 6]| Some(key)),
            4 => self.inflow.first().map(|[_, _, _, _, key @ ..]: [u8; 8]| Some(key)),
            _ => self.inflow.first().map(|[_, _, _, _, _, _, _, _, _, _, key @ ..]: [u8; 14]| Some(key)),
        }
    }

    fn payload(&mut self, head: Head) -> Bytes {
        let held = self.inflow.held().len();
        let frame = self.inflow.take((head.bytes + head.length).saturating_sub(held));
        let payload = frame.slice(head.bytes..);
        let Some(key) = head.key else { return payload };
        let mut unmasked = BytesMut::from(payload);
        mask(&mut unmasked, key);
        unmasked.freeze()
    }

    /// Takes a frame: the message that it completes, if it does.
    fn frame(&mut self, head: Head, payload: Bytes) -> Result<Option<Message>, Violation> {
        match head.opcode {
            Opcode::Close => return Close::read(&payload).map(|close| Some(Message::Close(close))),
            Opcode::Ping => return Ok(Some(Message::Ping(payload))),
            Opcode::Pong => return Ok(Some(Message::Pong(payload))),
            Opcode::Continuation | Opcode::Text | Opcode::Binary => {}
        }
        let Some(mut begun) = self.begun.take() else {
            if head.is_last {
                return message(head.opcode, payload).map(Some);
            }
            self.begun = Some(Begun { opcode: head.opcode, payload: BytesMut::from(payload), frames: 1 });
            return Ok(None);
        };
        begun.payload.extend_from_slice(&payload);
        begun.frames += 1;
        if head.is_last {
            return message(begun.opcode, begun.payload.freeze()).map(Some);
        }
        self.begun = Some(begun);
        Ok(None)
    }
}

fn message(opcode: Opcode, payload: Bytes) -> Result<Message, Violation> {
    if opcode != Opcode::Text {
        return Ok(Message::Binary(payload));
    }
    match std::str::from_utf8(&payload) {
        Ok(_) => Ok(Message::Text(payload)),
        Err(_) => Err(Violation::Text),
    }
}
