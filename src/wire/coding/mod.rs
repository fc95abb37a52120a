//! Decodes content codings (RFC 9110, section 8.4.1) piece by piece, within bounds on memory and output.

mod detect;
mod error;
mod zstd;

pub use detect::{Detector, decoder_of};
pub use error::{CodingError, Unsupported};

use compression_codecs::core::util::{PartialBuffer, WriteBuffer};
use compression_codecs::zstd::params::DParameter;
use compression_codecs::{BrotliDecoder, DecodeV2, DeflateDecoder, GzipDecoder, ZlibDecoder, ZstdDecoder};
use http::HeaderMap;
use http::header::CONTENT_ENCODING;

/// The bounds of one body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// The most that one [`Decoder::write`] adds to its output, in bytes.
    pub chunk_bytes: usize,
    /// The most that a whole body may decode to, in bytes; `u64::MAX` for a body that only streams.
    pub decoded_bytes: u64,
    /// The largest window a zstd frame may ask for, in bytes (RFC 9659 allows 8 MiB).
    pub zstd_window_bytes: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self { chunk_bytes: 64 << 10, decoded_bytes: 64 << 20, zstd_window_bytes: 8 << 20 }
    }
}

/// The result of a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wrote {
    /// All input is used up, and everything that it decodes to is in the output.
    All,
    /// The chunk is full: take the output and write the rest of the input, even if it is empty.
    Full,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Coding {
    Gzip,
    Deflate,
    Brotli,
    Zstd,
}

/// The names of the codings (RFC 9110, section 8.4.1; RFC 7932; RFC 8878).
const NAMES: [(&str, Coding); 5] = [
    ("gzip", Coding::Gzip),
    ("x-gzip", Coding::Gzip),
    ("deflate", Coding::Deflate),
    ("br", Coding::Brotli),
    ("zstd", Coding::Zstd),
];

/// Decodes one body. Beside its output it holds 16 KiB and what the coding itself needs: 32 KiB for gzip and
/// deflate, the window for zstd, up to 16 MiB for br (RFC 7932, section 9.1).
pub struct Decoder {
    coding: Coding,
    limits: Limits,
    stage: CodecStage,
    codec: Option<Box<dyn DecodeV2 + Send>>,
    /// The first bytes of a zstd frame, until its header is whole.
    header: Vec<u8>,
    scratch: Box<[u8]>,
    decoded: u64,
    /// The codec filled its output buffer, and may hold more.
    pending: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CodecStage {
    /// Before the first member (gzip) or frame (zstd), or between two.
    Between,
    Inside,
    /// After the only stream of a coding that allows one.
    Ended,
}

const SCRATCH: usize = 16 << 10;

impl Decoder {
    /// The decoder for a message's `Content-Encoding`; `None` if it has no coding.
    pub fn for_headers(headers: &HeaderMap, limits: Limits) -> Result<Option<Self>, Unsupported> {
        let mut values = headers.get_all(CONTENT_ENCODING).iter();
        let Some(value) = values.next() else { return Ok(None) };
        if values.next().is_some() {
            return Err(Unsupported);
        }
        Self::for_header(value.to_str().map_err(|_| Unsupported)?, limits)
    }

    /// The decoder for one `Content-Encoding` value; `None` for `identity` and for no coding at all.
    pub fn for_header(content_encoding: &str, limits: Limits) -> Result<Option<Self>, Unsupported> {
        let mut names = content_encoding.split(',').map(str::trim).filter(|name| !name.is_empty());
        let Some(name) = names.next() else { return Ok(None) };
        if names.next().is_some() {
            return Err(Unsupported);
        }
        if name.eq_ignore_ascii_case("identity") {
            return Ok(None);
        }
        let known = NAMES.iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
        let (_, coding) = known.ok_or(Unsupported)?;
        Ok(Some(Self::new(*coding, limits)))
    }

    fn new(coding: Coding, limits: Limits) -> Self {
        Self {
            coding,
            limits,
            stage: CodecStage::Between,
            codec: None,
            header: Vec::new(),
            scratch: vec![0; SCRATCH].into_boxed_slice(),
            decoded: 0,
            pending: false,
        }
    }

    /// Decodes from the front of `input`, advances it past the used bytes, and appends at most [`Limits::chunk_bytes`]
    /// to `output`.
    pub fn write(&mut self, input: &mut &[u8], output: &mut Vec<u8>) -> Result<Wrote, CodingError> {
        let mut room = self.limits.chunk_bytes.max(1);
        loop {
            match self.stage {
                CodecStage::Between | CodecStage::Ended if input.is_empty() => return Ok(Wrote::All),
                CodecStage::Ended => return Err(CodingError::Trailing),
                CodecStage::Between => self.begin(input)?,
                CodecStage::Inside if input.is_empty() && !self.pending => return Ok(Wrote::All),
                CodecStage::Inside if room == 0 => return Ok(Wrote::Full),
                CodecStage::Inside => room -= self.decode(input, room, output)?,
            }
        }
    }

    /// Ends the body, after a [`Wrote::All`]. Fails if the coding has not ended. An empty body is no error.
    pub fn finish(&mut self) -> Result<(), CodingError> {
        if self.stage == CodecStage::Between && self.header.is_empty() || self.stage == CodecStage::Ended {
            return Ok(());
        }
        // These codecs may know their end only when asked for more; the others report it themselves.
        let can_tell = matches!(self.coding, Coding::Deflate | Coding::Brotli);
        let mut rest = WriteBuffer::new_initialized(&mut self.scratch);
        let codec = self.codec.as_mut().filter(|_| can_tell).ok_or(CodingError::Truncated)?;
        if matches!(codec.finish(&mut rest), Ok(true)) { Ok(()) } else { Err(CodingError::Truncated) }
    }

    /// Prepares the codec for the member or frame that begins with `input`, and checks its first bytes.
    fn begin(&mut self, input: &mut &[u8]) -> Result<(), CodingError> {
        if self.coding == Coding::Zstd {
            return self.begin_frame(input);
        }
        let first = input.first().copied().unwrap_or_default();
        match &mut self.codec {
            // Another gzip member: the codec is reused, so that many small ones cost no allocations.
            Some(codec) => codec.reinit().map_err(|_| CodingError::Corrupt)?,
            None => self.codec = Some(self.coding.codec(first)?),
        }
        self.stage = CodecStage::Inside;
        Ok(())
    }

    /// Takes the header of a zstd frame. The codec gets it whole and alone: given the whole frame at once, it would not
    /// check the window, and the verdict would depend on how the bytes are cut.
    fn begin_frame(&mut self, input: &mut &[u8]) -> Result<(), CodingError> {
        while let Some((byte, rest)) = input.split_first() {
            *input = rest;
            self.header.push(*byte);
            if zstd::header_length(&self.header)? != Some(self.header.len()) {
                continue;
            }
            zstd::check_header(&self.header, self.limits.zstd_window_bytes)?;
            let window = self.limits.zstd_window_bytes.clamp(1 << 10, 1 << 27).next_power_of_two();
            let codec = self.codec.get_or_insert_with(|| {
                Box::new(ZstdDecoder::new_with_params(&[DParameter::window_log_max(window.ilog2())]))
            });
            let mut header = PartialBuffer::new(self.header.as_slice());
            let mut nothing = WriteBuffer::new_initialized(&mut self.scratch);
            let ended = codec.decode(&mut header, &mut nothing).map_err(|_| CodingError::Corrupt)?;
            if !header.unwritten().is_empty() || nothing.written_len() > 0 {
                return Err(CodingError::Corrupt);
            }
            self.header.clear();
            self.stage = if ended { CodecStage::Between } else { CodecStage::Inside };
            return Ok(());
        }
        Ok(())
    }

    /// Lets the codec decode once into at most `room` bytes; returns how many came out.
    fn decode(&mut self, input: &mut &[u8], room: usize, output: &mut Vec<u8>) -> Result<usize, CodingError> {
        let codec = self.codec.as_mut().ok_or(CodingError::Corrupt)?;
        let offered = room.min(self.scratch.len());
        let mut out = WriteBuffer::new_initialized(self.scratch.get_mut(..offered).unwrap_or_default());
        let mut taken = PartialBuffer::new(*input);
        // Without input, only bytes that the codec holds back can come out; some codecs fail to decode nothing.
        let ended = if input.is_empty() {
            codec.flush(&mut out).map(|_| false)
        } else {
            codec.decode(&mut taken, &mut out)
        };
        let ended = ended.map_err(|_| CodingError::Corrupt)?;
        let (used, wrote) = (taken.written_len(), out.written_len());
        if !ended && used == 0 && wrote == 0 && !input.is_empty() {
            return Err(CodingError::Corrupt);
        }
        output.extend_from_slice(out.written());
        *input = input.get(used..).unwrap_or_default();
        self.decoded = self.decoded.saturating_add(wrote as u64);
        if self.decoded > self.limits.decoded_bytes {
            return Err(CodingError::TooLarge);
        }
        self.pending = !ended && wrote == offered;
        if ended {
            self.stage = match self.coding {
                Coding::Gzip | Coding::Zstd => CodecStage::Between,
                Coding::Deflate | Coding::Brotli => CodecStage::Ended,
            };
        }
        Ok(wrote)
    }
}

impl Coding {
    /// The codec for a stream with this first byte. The one for zstd is created once a frame's header is known.
    fn codec(self, first: u8) -> Result<Box<dyn DecodeV2 + Send>, CodingError> {
        match self {
            Self::Gzip => Ok(Box::new(GzipDecoder::new())),
            // RFC 9110, section 8.4.1.2: "deflate" is the zlib format, but some send raw deflate. Read as raw deflate,
            // the first byte of a zlib header is a stored block with bits set in its padding, which no encoder writes.
            Self::Deflate if first & 0x8f == 0x08 => Ok(Box::new(ZlibDecoder::new())),
            Self::Deflate => Ok(Box::new(DeflateDecoder::new())),
            // "Large window" brotli is not part of the coding "br", but the codec accepts it: up to 1 GiB.
            Self::Brotli if first & 0x7f == 0x11 => Err(CodingError::Window),
            Self::Brotli => Ok(Box::new(BrotliDecoder::new())),
            Self::Zstd => Err(CodingError::Corrupt),
        }
    }
}

/// The coding that the first bytes of a body show, whatever its head says (threat D3).
pub fn betrayed_by(first_bytes: &[u8]) -> Option<&'static str> {
    match first_bytes {
        [0x1f, 0x8b, 0x08, ..] => Some("gzip"),
        [0x28, 0xb5, 0x2f, 0xfd, ..] | [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..] => Some("zstd"),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
