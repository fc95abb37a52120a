//! Gzip in base64 inside of a text: looked into as it flows, and masked from where a key is in it.

use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use memchr::memmem;

use super::packed::{Contents, Scan, WAITING};
use super::{push, push_masked};
use crate::secret::{SecretMatcher, Spelled, is_introducer, spellings};

/// How gzip begins in base64: `1f 8b 08` (RFC 1952, section 2.3).
const MARK: &[u8] = b"H4sI";

/// How many bytes of a stream are looked into at once, counted from its beginning, so that it makes no difference how
/// they come.
const STEP: usize = 48;

/// The look into the gzip streams of one text.
pub(super) struct Embedded {
    matcher: Arc<SecretMatcher>,
    /// The tail that could begin a stream, or a spelling in one.
    held: Bytes,
    stream: Option<Box<Stream>>,
}

/// One stream, from its first character to the first that is no base64.
struct Stream {
    scan: Scan,
    /// Bits that are no whole byte yet.
    bits: u32,
    count: u32,
    packed: Vec<u8>,
    /// What came and was not let go yet, and how much it is.
    waiting: Vec<Bytes>,
    waits: usize,
    is_masked: bool,
}

/// What a character is to base64.
enum Character {
    /// Six bits, or none for padding and line breaks; how many bytes it is written in.
    Part(Option<u32>, usize),
    /// The text ends within it.
    Cut,
    Other,
}

impl Embedded {
    pub(super) fn new(matcher: Arc<SecretMatcher>) -> Self {
        Self { matcher, held: Bytes::new(), stream: None }
    }

    /// Takes a piece of the text in, and lets go what is certain.
    pub(super) fn write(&mut self, chunk: Bytes, out: &mut Vec<Bytes>) {
        let mut bytes = self.joined(chunk);
        loop {
            if let Some(stream) = &mut self.stream {
                if !stream.take(&mut bytes, out) {
                    self.held = bytes;
                    return;
                }
                stream.end(out);
                self.stream = None;
            }
            let Some(at) = memmem::find(&bytes, MARK) else { break };
            push(bytes.split_to(at), out);
            self.stream = Scan::new(&self.matcher).map(|scan| Box::new(Stream::new(scan)));
        }
        let tail = (1..MARK.len()).rev().find(|length| bytes.ends_with(&MARK[..*length])).unwrap_or_default();
        self.held = bytes.split_off(bytes.len() - tail);
        push(bytes, out);
    }

    /// The text has ended.
    pub(super) fn finish(&mut self, out: &mut Vec<Bytes>) {
        if let Some(mut stream) = self.stream.take() {
            stream.end(out);
        }
        push(std::mem::take(&mut self.held), out);
    }

    fn joined(&mut self, chunk: Bytes) -> Bytes {
        if self.held.is_empty() {
            return chunk;
        }
        let mut joined = BytesMut::with_capacity(self.held.len() + chunk.len());
        joined.extend_from_slice(&std::mem::take(&mut self.held));
        joined.extend_from_slice(&chunk);
        joined.freeze()
    }
}

impl Stream {
    fn new(scan: Scan) -> Self {
        let packed = Vec::with_capacity(STEP);
        Self { scan, bits: 0, count: 0, packed, waiting: Vec::new(), waits: 0, is_masked: false }
    }

    /// Takes the characters of the stream off the front. Returns whether it has ended; where it may go on behind the text,
    /// what is left of that is the beginning of a character.
    fn take(&mut self, bytes: &mut Bytes, out: &mut Vec<Bytes>) -> bool {
        let mut at = 0;
        let is_ended = loop {
            let Some(rest) = bytes.get(at..).filter(|rest| !rest.is_empty()) else { break false };
            match character(rest) {
                Character::Cut => break false,
                Character::Other => break true,
                Character::Part(sextet, length) => {
                    at += length;
                    if self.add(sextet) {
                        self.wait(bytes.split_to(at));
                        at = 0;
                        self.look(out);
                    }
                }
            }
        };
        self.wait(bytes.split_to(at));
        is_ended
    }

    /// Adds six bits; returns whether enough has come for a look.
    fn add(&mut self, sextet: Option<u32>) -> bool {
        let Some(sextet) = sextet else { return false };
        self.bits = self.bits << 6 | sextet;
        self.count += 6;
        if self.count >= 8 {
            self.count -= 8;
            self.packed.extend(u8::try_from(self.bits >> self.count & 0xff));
        }
        self.packed.len() >= STEP
    }

    fn wait(&mut self, bytes: Bytes) {
        self.waits += bytes.len();
        self.waiting.push(bytes);
    }

    /// Looks into what has come, and lets go what is certain.
    fn look(&mut self, out: &mut Vec<Bytes>) {
        if !self.is_masked {
            match self.scan.read(&self.packed) {
                Contents::Begun if self.waits <= WAITING => {
                    self.packed.clear();
                    return;
                }
                Contents::Key | Contents::Begun => self.is_masked = true,
                Contents::Clean | Contents::Unreadable => {}
            }
        }
        self.packed.clear();
        self.release(out);
    }

    /// The stream has ended: what could have begun a key does not.
    fn end(&mut self, out: &mut Vec<Bytes>) {
        self.look(out);
        self.release(out);
    }

    fn release(&mut self, out: &mut Vec<Bytes>) {
        for bytes in self.waiting.drain(..) {
            if self.is_masked { push_masked(bytes.len(), out) } else { push(bytes, out) }
        }
        self.waits = 0;
    }
}

/// The character of base64 or base64url at the start of a text that is not empty, as it is or spelled otherwise.
fn character(rest: &[u8]) -> Character {
    let first = rest[0];
    if first == b'=' {
        return Character::Part(None, 1);
    }
    if !is_introducer(first) {
        return sextet(first).map_or(Character::Other, |bits| Character::Part(Some(bits), 1));
    }
    let mut found = Character::Other;
    let is_cut = spellings(rest, &mut |spelled| match spelled {
        Spelled::Gap(length) => found = Character::Part(None, length),
        Spelled::Byte(b'=', length) => found = Character::Part(None, length),
        Spelled::Byte(byte, length) => {
            if let Some(bits) = sextet(byte) {
                found = Character::Part(Some(bits), length);
            }
        }
    });
    if is_cut { Character::Cut } else { found }
}

fn sextet(byte: u8) -> Option<u32> {
    let value = match byte {
        b'A'..=b'Z' => byte - b'A',
        b'a'..=b'z' => byte - b'a' + 26,
        b'0'..=b'9' => byte - b'0' + 52,
        b'+' | b'-' => 62,
        b'/' | b'_' => 63,
        _ => return None,
    };
    Some(u32::from(value))
}
