//! Finds out how a body is coded whose head may be wrong about it.

use bytes::{Bytes, BytesMut};
use http::HeaderMap;

use super::{Coding, Decoder, Limits, Unsupported};

/// How many bytes tell text from a coding that has no signature.
const ENOUGH: usize = 16;

/// With what JSON and server-sent events begin.
const BEGINNINGS: [&[u8]; 8] = [b"{", b"[", b":", b"data:", b"event:", b"id:", b"retry:", b"\xef\xbb\xbf"];

/// What the first bytes of a body show.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shown {
    Coded(Coding),
    /// JSON, server-sent events, or an AWS event stream.
    Plain,
    Nothing,
    /// It takes more bytes to tell.
    TooFew,
}

/// Waits for the bytes that show how a body is coded.
pub struct Detector {
    said: Option<Decoder>,
    limits: Limits,
    first: BytesMut,
}

impl Detector {
    /// For a body of which its head says this.
    pub fn new(said: Option<Decoder>, limits: Limits) -> Self {
        Self { said, limits, first: BytesMut::new() }
    }

    /// Takes the next piece. Answers what decodes the body, if anything has to, and all that came of it so far; none
    /// where it takes more to tell.
    pub fn take(&mut self, piece: Bytes) -> Option<(Option<Decoder>, Bytes)> {
        let whole = if self.first.is_empty() {
            piece
        } else {
            self.first.extend_from_slice(&piece);
            self.first.split().freeze()
        };
        let decoder = match shown(&whole, false, self.said.is_some()) {
            Shown::TooFew => {
                self.first = BytesMut::from(&whole[..]);
                return None;
            }
            Shown::Coded(coding) => Some(Decoder::new(coding, self.limits)),
            Shown::Plain => None,
            Shown::Nothing => self.said.take(),
        };
        Some((decoder, whole))
    }

    /// The body has ended. Answers what decodes the bytes that were kept, and these.
    pub fn end(&mut self) -> (Option<Decoder>, Bytes) {
        let whole = self.first.split().freeze();
        let decoder = match shown(&whole, true, self.said.is_some()) {
            Shown::Coded(coding) => Some(Decoder::new(coding, self.limits)),
            Shown::Plain => None,
            Shown::Nothing | Shown::TooFew => self.said.take(),
        };
        (decoder, whole)
    }
}

/// What decodes a whole body with this head; none where nothing has to.
///
/// # Errors
/// For a coding that is not known, or stacked on another, where the bytes show nothing else.
pub fn decoder_of(head: &HeaderMap, body: &[u8], limits: Limits) -> Result<Option<Decoder>, Unsupported> {
    match shown(body, true, true) {
        Shown::Coded(coding) => Ok(Some(Decoder::new(coding, limits))),
        Shown::Plain => Ok(None),
        Shown::Nothing | Shown::TooFew => Decoder::for_headers(head, limits),
    }
}

/// `is_said`: the head says a coding, so that plain bytes have to show that they are plain.
fn shown(first: &[u8], is_all: bool, is_said: bool) -> Shown {
    let signatures: [(&[u8], Coding); 2] =
        [(&[0x1f, 0x8b, 0x08], Coding::Gzip), (&[0x28, 0xb5, 0x2f, 0xfd], Coding::Zstd)];
    if let Some((_, coding)) = signatures.iter().find(|(signature, _)| first.starts_with(signature)) {
        return Shown::Coded(*coding);
    }
    if !is_all && signatures.iter().any(|(signature, _)| signature.starts_with(first)) {
        return Shown::TooFew;
    }
    if !is_said {
        return Shown::Plain;
    }
    if !is_all && first.len() < ENOUGH {
        return Shown::TooFew;
    }
    if is_text(first) || is_frame(first) { Shown::Plain } else { Shown::Nothing }
}

fn is_text(first: &[u8]) -> bool {
    let first = &first[..first.len().min(ENOUGH)];
    let is_cut = |error: std::str::Utf8Error| error.error_len().is_none();
    let has_control = first.iter().any(|byte| *byte < b' ' && !matches!(byte, b'\t' | b'\n' | b'\r'));
    let is_utf8 = std::str::from_utf8(first).map_or_else(is_cut, |_| true);
    let begun = first.trim_ascii_start();
    !has_control && is_utf8 && BEGINNINGS.iter().any(|beginning| begun.starts_with(beginning))
}

/// Whether it begins as a frame of an AWS event stream: two lengths and their checksum.
fn is_frame(first: &[u8]) -> bool {
    let prelude = first.split_first_chunk::<8>();
    let checked = prelude.and_then(|(lengths, rest)| Some((lengths, rest.first_chunk::<4>()?)));
    checked.is_some_and(|(lengths, checksum)| crc32fast::hash(lengths) == u32::from_be_bytes(*checksum))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gzip() -> Option<Decoder> {
        Decoder::for_header("gzip", Limits::default()).unwrap()
    }

    /// Whether what is found decodes, for every way of cutting the body.
    fn decodes(said: fn() -> Option<Decoder>, body: &[u8]) -> bool {
        let found: Vec<bool> = (1..=body.len())
            .map(|piece| {
                let (mut detector, mut came) = (Detector::new(said(), Limits::default()), Vec::new());
                for chunk in body.chunks(piece) {
                    came.extend_from_slice(chunk);
                    if let Some((decoder, bytes)) = detector.take(Bytes::copy_from_slice(chunk)) {
                        assert_eq!(bytes, came);
                        return decoder.is_some();
                    }
                }
                let (decoder, bytes) = detector.end();
                assert_eq!(bytes, body);
                decoder.is_some()
            })
            .collect();
        assert!(found.iter().all(|decodes| *decodes == found[0]), "{body:?}");
        found[0]
    }

    #[test]
    fn bytes_show_what_they_are_whatever_is_said_of_them() {
        for plain in [
            &b"{\"id\":\"msg_1\",\"type\":\"message\"}"[..],
            b"{}",
            b"\n[{\"candidates\":[]}]",
            b"event: message_start\ndata: {}\n\n",
            b"data:{}\n\n",
            b": keep-alive\n\ndata: {}\n\n",
            b"{\"text\":\"\xc3\xa9\xc3\xa9\xc3\xa9\"}",
        ] {
            assert!(!decodes(gzip, plain) && !decodes(|| None, plain), "{plain:?}");
        }
        let mut frame = [0, 0, 0, 20, 0, 0, 0, 0].to_vec();
        frame.extend(crc32fast::hash(&frame).to_be_bytes());
        frame.extend([0; 8]);
        assert!(!decodes(gzip, &frame));
        for coded in [&b"\x1f\x8b\x08\0\0\0\0\0\0\x03"[..], b"\x28\xb5\x2f\xfd\x04\x00\x01"] {
            assert!(decodes(gzip, coded) && decodes(|| None, coded), "{coded:?}");
        }
        for opaque in [&b"\x8b\x02\x80plain bytes of br"[..], b"{\0\x01\x02\x03\x04\x05\x06\x07 is none"] {
            assert!(decodes(gzip, opaque) && !decodes(|| None, opaque), "{opaque:?}");
        }
    }
}
