//! HTTP/2 by hand (RFC 9113): frames that no library would write.

use super::Connection;

pub(crate) const DATA: u8 = 0;
pub(crate) const HEADERS: u8 = 1;
pub(crate) const RST_STREAM: u8 = 3;
pub(crate) const SETTINGS: u8 = 4;
pub(crate) const GOAWAY: u8 = 7;
pub(crate) const WINDOW_UPDATE: u8 = 8;
pub(crate) const CONTINUATION: u8 = 9;

pub(crate) const END_STREAM: u8 = 0x1;
pub(crate) const END_HEADERS: u8 = 0x4;
const ACK: u8 = 0x1;

/// SETTINGS_MAX_CONCURRENT_STREAMS and SETTINGS_INITIAL_WINDOW_SIZE (RFC 9113, section 6.5.2).
const MAX_CONCURRENT_STREAMS: u16 = 3;
const INITIAL_WINDOW_SIZE: u16 = 4;
/// A connection's window before any update (RFC 9113, section 6.9.2).
const FIRST_WINDOW: usize = 65_535;

/// One connection, its preface said.
pub(crate) struct Frames {
    connection: Connection,
}

/// A frame that came.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Frame {
    pub(crate) kind: u8,
    pub(crate) flags: u8,
    pub(crate) stream: u32,
    pub(crate) payload: Vec<u8>,
}

impl Frames {
    /// Says the preface and empty settings.
    pub(crate) fn open(mut connection: Connection) -> Self {
        connection.send(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
        let mut frames = Self { connection };
        frames.send(SETTINGS, 0, 0, b"");
        frames
    }

    /// Sends one frame, or panics.
    #[track_caller]
    pub(crate) fn send(&mut self, kind: u8, flags: u8, stream: u32, payload: &[u8]) {
        self.try_send(kind, flags, stream, payload).unwrap();
    }

    /// Sends one frame; Err where the other side is gone.
    pub(crate) fn try_send(
        &mut self,
        kind: u8,
        flags: u8,
        stream: u32,
        payload: &[u8],
    ) -> std::io::Result<()> {
        let mut frame = u32::try_from(payload.len()).unwrap().to_be_bytes()[1..].to_vec();
        frame.extend([kind, flags]);
        frame.extend(stream.to_be_bytes());
        frame.extend_from_slice(payload);
        self.connection.try_send(frame)
    }

    /// A whole request without a body.
    pub(crate) fn request(&mut self, stream: u32, fields: &[(&str, &str)]) {
        self.send(HEADERS, END_STREAM | END_HEADERS, stream, &block(fields));
    }

    /// The next frame; None where the connection ended instead. Settings are acknowledged on the way.
    pub(crate) fn next(&mut self) -> Option<Frame> {
        let head = self.exactly(9)?;
        let length = u32::from_be_bytes([0, head[0], head[1], head[2]]);
        let stream = u32::from_be_bytes([head[5], head[6], head[7], head[8]]);
        let payload = self.exactly(length.try_into().unwrap())?;
        let frame = Frame { kind: head[3], flags: head[4], stream, payload };
        if frame.kind == SETTINGS && frame.flags & ACK == 0 {
            self.try_send(SETTINGS, ACK, 0, b"").ok()?;
        }
        Some(frame)
    }

    /// The first frame of this kind on this stream; None where the connection ended before.
    pub(crate) fn find(&mut self, kind: u8, stream: u32) -> Option<Frame> {
        std::iter::from_fn(|| self.next()).find(|frame| frame.kind == kind && frame.stream == stream)
    }

    /// How a stream ends: the text of its body, or the frame that cut it or the connection.
    pub(crate) fn ending(&mut self, stream: u32) -> Result<String, Option<Frame>> {
        let mut text = String::new();
        while let Some(frame) = self.next() {
            if frame.kind == GOAWAY || (frame.kind == RST_STREAM && frame.stream == stream) {
                return Err(Some(frame));
            }
            if frame.stream != stream {
                continue;
            }
            if frame.kind == DATA {
                text.push_str(&String::from_utf8_lossy(&frame.payload));
            }
            if frame.flags & END_STREAM != 0 {
                return Ok(text);
            }
        }
        Err(None)
    }

    /// How many streams the other side allows at once, by its first settings.
    pub(crate) fn streams_allowed(&mut self) -> Option<u32> {
        setting(&self.find(SETTINGS, 0)?.payload, MAX_CONCURRENT_STREAMS)
    }

    /// The windows that the other side begins with, of a stream and of the connection: its settings, and the update
    /// behind them where the connection's is so much larger than it begins that an update is said.
    pub(crate) fn windows(&mut self) -> (usize, usize) {
        let (mut stream, mut connection) = (FIRST_WINDOW, FIRST_WINDOW);
        let mut is_acknowledged = false;
        while !is_acknowledged || (connection == FIRST_WINDOW && stream > FIRST_WINDOW) {
            let frame = self.next().unwrap();
            match frame.kind {
                SETTINGS if frame.flags & ACK != 0 => is_acknowledged = true,
                SETTINGS => {
                    stream =
                        setting(&frame.payload, INITIAL_WINDOW_SIZE).map_or(stream, |size| size as usize);
                }
                WINDOW_UPDATE => connection += u32::from_be_bytes(frame.payload.try_into().unwrap()) as usize,
                other => panic!("a frame of kind {other}"),
            }
        }
        (stream, connection)
    }

    /// Lets the other side send so much more, on the connection and on every stream.
    pub(crate) fn grant(&mut self, bytes: u32) {
        let size = [&INITIAL_WINDOW_SIZE.to_be_bytes()[..], &bytes.to_be_bytes()].concat();
        self.send(SETTINGS, 0, 0, &size);
        self.send(WINDOW_UPDATE, 0, 0, &bytes.to_be_bytes());
    }

    fn exactly(&mut self, count: usize) -> Option<Vec<u8>> {
        self.connection.try_read_exactly(count)
    }
}

fn setting(settings: &[u8], name: u16) -> Option<u32> {
    let found = settings.chunks_exact(6).find(|entry| entry[..2] == name.to_be_bytes())?;
    Some(u32::from_be_bytes([found[2], found[3], found[4], found[5]]))
}

/// A GET's pseudo-fields.
pub(crate) fn get<'a>(authority: &'a str, path: &'a str) -> Vec<(&'a str, &'a str)> {
    vec![(":method", "GET"), (":scheme", "https"), (":authority", authority), (":path", path)]
}

/// A field block of literals without indexing (RFC 7541, section 6.2.2), as they stand: nothing is checked.
pub(crate) fn block(fields: &[(&str, &str)]) -> Vec<u8> {
    let mut block = Vec::new();
    for (name, value) in fields {
        block.push(0);
        for text in [name, value] {
            length(text.len(), &mut block);
            block.extend_from_slice(text.as_bytes());
        }
    }
    block
}

/// A length in seven bits and as many bytes more as it takes (RFC 7541, section 5.1).
fn length(length: usize, block: &mut Vec<u8>) {
    let Some(mut rest) = length.checked_sub(127) else {
        block.push(u8::try_from(length).unwrap());
        return;
    };
    block.push(127);
    while rest >= 128 {
        block.push(u8::try_from(rest % 128).unwrap() | 0x80);
        rest /= 128;
    }
    block.push(u8::try_from(rest).unwrap());
}
