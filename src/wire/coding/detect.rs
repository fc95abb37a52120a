//! Detects the content coding of a body whose head may be wrong about it.

use bytes::{Bytes, BytesMut};
use http::HeaderMap;

use super::{Coding, Decoder, Limits, Unsupported};

/// How many bytes distinguish text from a coding without a signature.
const ENOUGH: usize = 16;

/// The beginnings of JSON and of server-sent events.
const BEGINNINGS: [&[u8]; 8] = [b"{", b"[", b":", b"data:", b"event:", b"id:", b"retry:", b"\xef\xbb\xbf"];

/// What the first bytes of a body prove.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Evidence {
    Coded(Coding),
    /// JSON, server-sent events, or an AWS event stream.
    Plain,
    Nothing,
    /// More bytes are needed.
    TooFew,
}

/// Waits for the bytes that show how a body is coded.
pub struct Detector {
    /// The decoder for the coding that the head declares.
    declared: Option<Decoder>,
    limits: Limits,
    first: BytesMut,
}

impl Detector {
    /// A detector for a body whose head declares this coding.
    pub fn new(declared: Option<Decoder>, limits: Limits) -> Self {
        Self { declared, limits, first: BytesMut::new() }
    }

    /// Takes the next piece. Returns the decoder of the body, if it needs one, and all bytes so far; none while more
    /// bytes are needed.
    pub fn take(&mut self, piece: Bytes) -> Option<(Option<Decoder>, Bytes)> {
        let whole = if self.first.is_empty() {
            piece
        } else {
            self.first.extend_from_slice(&piece);
            self.first.split().freeze()
        };
        let decoder = match shown(&whole, false, self.declared.is_some()) {
            Evidence::TooFew => {
                self.first = BytesMut::from(&whole[..]);
                return None;
            }
            Evidence::Coded(coding) => Some(Decoder::new(coding, self.limits)),
            Evidence::Plain => None,
            Evidence::Nothing => self.declared.take(),
        };
        Some((decoder, whole))
    }

    /// Ends the body. Returns the decoder of the bytes that were kept, and these bytes.
    pub fn end(&mut self) -> (Option<Decoder>, Bytes) {
        let whole = self.first.split().freeze();
        let decoder = match shown(&whole, true, self.declared.is_some()) {
            Evidence::Coded(coding) => Some(Decoder::new(coding, self.limits)),
            Evidence::Plain => None,
            Evidence::Nothing | Evidence::TooFew => self.declared.take(),
        };
        (decoder, whole)
    }
}

/// The decoder of a whole body with this head; none if it needs none.
///
/// # Errors
/// Fails for an unknown or stacked coding, unless the bytes show another one.
pub fn decoder_of(head: &HeaderMap, body: &[u8], limits: Limits) -> Result<Option<Decoder>, Unsupported> {
    match shown(body, true, true) {
        Evidence::Coded(coding) => Ok(Some(Decoder::new(coding, limits))),
        Evidence::Plain => Ok(None),
        Evidence::Nothing | Evidence::TooFew => Decoder::for_headers(head, limits),
    }
}

/// Judges the first bytes. If the head declares a coding (`is_declared`), plain bytes must prove that they are plain.
fn shown(first: &[u8], is_all: bool, is_declared: bool) -> Evidence {
    let signatures: [(&[u8], Coding); 2] =
        [(&[0x1f, 0x8b, 0x08], Coding::Gzip), (&[0x28, 0xb5, 0x2f, 0xfd], Coding::Zstd)];
    if let Some((_, coding)) = signatures.iter().find(|(signature, _)| first.starts_with(signature)) {
        return Evidence::Coded(*coding);
    }
    if !is_all && signatures.iter().any(|(signature, _)| signature.starts_with(first)) {
        return Evidence::TooFew;
    }
    if !is_declared {
        return Evidence::Plain;
    }
    if !is_all && first.len() < ENOUGH {
        return Evidence::TooFew;
    }
    if is_text(first) || is_frame(first) { Evidence::Plain } else { Evidence::Nothing }
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
