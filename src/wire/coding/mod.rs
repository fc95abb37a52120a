//! Decodes content codings (RFC 9110, section 8.4.1) piece by piece, within bounds on memory and output.

mod detect;
mod zstd;

pub use detect::{Detector, decoder_of};

use compression_codecs::core::util::{PartialBuffer, WriteBuffer};
use compression_codecs::zstd::params::DParameter;
use compression_codecs::{BrotliDecoder, DecodeV2, DeflateDecoder, GzipDecoder, ZlibDecoder, ZstdDecoder};
use http::HeaderMap;
use http::header::CONTENT_ENCODING;

/// What one body may cost.
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

/// A content coding that is unknown, repeated or stacked on another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("content coding is not one of gzip, deflate, br, zstd")]
pub struct Unsupported;

/// Why a body cannot be decoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum CodingError {
    #[error("body does not decode")]
    Corrupt,
    #[error("body ends inside its content coding")]
    Truncated,
    #[error("bytes after the end of the content coding")]
    Trailing,
    #[error("body decodes to more than its limit")]
    TooLarge,
    #[error("content coding wants a larger window than its limit")]
    Window,
    #[error("content coding wants a dictionary")]
    Dictionary,
}

/// What a write did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wrote {
    /// All input is used up, and all that it decodes to is in the output.
    All,
    /// The chunk is full: take the output and write what is left of the input, even if nothing is.
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
    stage: Stage,
    codec: Option<Box<dyn DecodeV2 + Send>>,
    /// The first bytes of a zstd frame, until its header is whole.
    header: Vec<u8>,
    scratch: Box<[u8]>,
    decoded: u64,
    /// The codec filled what it was given, and may hold more.
    pending: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    /// Before the first, or between two members (gzip) or frames (zstd).
    Between,
    Inside,
    /// After the one stream of a coding that has no more.
    Ended,
}

const SCRATCH: usize = 16 << 10;

impl Decoder {
    /// The decoder for a message's `Content-Encoding`; `None` where it has no coding.
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
            stage: Stage::Between,
            codec: None,
            header: Vec::new(),
            scratch: vec![0; SCRATCH].into_boxed_slice(),
            decoded: 0,
            pending: false,
        }
    }

    /// Decodes from the front of `input`, which is advanced past what was used, and appends at most
    /// [`Limits::chunk_bytes`] to `output`.
    pub fn write(&mut self, input: &mut &[u8], output: &mut Vec<u8>) -> Result<Wrote, CodingError> {
        let mut room = self.limits.chunk_bytes.max(1);
        loop {
            match self.stage {
                Stage::Between | Stage::Ended if input.is_empty() => return Ok(Wrote::All),
                Stage::Ended => return Err(CodingError::Trailing),
                Stage::Between => self.begin(input)?,
                Stage::Inside if input.is_empty() && !self.pending => return Ok(Wrote::All),
                Stage::Inside if room == 0 => return Ok(Wrote::Full),
                Stage::Inside => room -= self.decode(input, room, output)?,
            }
        }
    }

    /// The body has ended, after a [`Wrote::All`]: an error where the coding has not. An empty body is well.
    pub fn finish(&mut self) -> Result<(), CodingError> {
        if self.stage == Stage::Between && self.header.is_empty() || self.stage == Stage::Ended {
            return Ok(());
        }
        // The end of these may be known only when they are asked for more; the others say it themselves.
        let can_tell = matches!(self.coding, Coding::Deflate | Coding::Brotli);
        let mut rest = WriteBuffer::new_initialized(&mut self.scratch);
        let codec = self.codec.as_mut().filter(|_| can_tell).ok_or(CodingError::Truncated)?;
        if matches!(codec.finish(&mut rest), Ok(true)) { Ok(()) } else { Err(CodingError::Truncated) }
    }

    /// Makes the codec ready for what begins with `input`, and checks what its first bytes say.
    fn begin(&mut self, input: &mut &[u8]) -> Result<(), CodingError> {
        if self.coding == Coding::Zstd {
            return self.begin_frame(input);
        }
        let first = input.first().copied().unwrap_or_default();
        match &mut self.codec {
            // Another gzip member: a body of many small ones costs no allocation for each.
            Some(codec) => codec.reinit().map_err(|_| CodingError::Corrupt)?,
            None => self.codec = Some(self.coding.codec(first)?),
        }
        self.stage = Stage::Inside;
        Ok(())
    }

    /// Takes the header of a zstd frame. The codec gets it whole and alone: given the whole frame at once it would
    /// not check the window, so that the verdict would depend on how the bytes are cut.
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
            self.stage = if ended { Stage::Between } else { Stage::Inside };
            return Ok(());
        }
        Ok(())
    }

    /// Lets the codec decode once into at most `room` bytes; answers how many came out.
    fn decode(&mut self, input: &mut &[u8], room: usize, output: &mut Vec<u8>) -> Result<usize, CodingError> {
        let codec = self.codec.as_mut().ok_or(CodingError::Corrupt)?;
        let offered = room.min(self.scratch.len());
        let mut out = WriteBuffer::new_initialized(self.scratch.get_mut(..offered).unwrap_or_default());
        let mut taken = PartialBuffer::new(*input);
        // Without input only what the codec holds back can come; asked to decode nothing, some fail.
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
                Coding::Gzip | Coding::Zstd => Stage::Between,
                Coding::Deflate | Coding::Brotli => Stage::Ended,
            };
        }
        Ok(wrote)
    }
}

impl Coding {
    /// The codec for a stream with that first byte; the one for zstd is made when a frame's header is known.
    fn codec(self, first: u8) -> Result<Box<dyn DecodeV2 + Send>, CodingError> {
        match self {
            Self::Gzip => Ok(Box::new(GzipDecoder::new())),
            // RFC 9110, section 8.4.1.2: "deflate" is the zlib format, but some send it without its header. As raw
            // deflate the header's first byte is a stored block with bits set in its padding: no encoder writes it.
            Self::Deflate if first & 0x8f == 0x08 => Ok(Box::new(ZlibDecoder::new())),
            Self::Deflate => Ok(Box::new(DeflateDecoder::new())),
            // Not part of the coding "br", but the codec takes it: a window of up to 1 GiB.
            Self::Brotli if first & 0x7f == 0x11 => Err(CodingError::Window),
            Self::Brotli => Ok(Box::new(BrotliDecoder::new())),
            Self::Zstd => Err(CodingError::Corrupt),
        }
    }
}

/// The coding that the first bytes of a body betray, whatever its head says (threat D3).
pub fn betrayed_by(first_bytes: &[u8]) -> Option<&'static str> {
    match first_bytes {
        [0x1f, 0x8b, 0x08, ..] => Some("gzip"),
        [0x28, 0xb5, 0x2f, 0xfd, ..] | [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..] => Some("zstd"),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
