//! Content codings of bodies, and bodies that decode to far more than they are.

use compression_codecs::brotli::params::EncoderParams;
use compression_codecs::core::Level;
use compression_codecs::core::util::{PartialBuffer, WriteBuffer};
use compression_codecs::{BrotliEncoder, EncodeV2, GzipEncoder, ZlibEncoder, ZstdEncoder};

/// Encodes a body with one of `gzip`, `deflate`, `br` and `zstd`.
pub(crate) fn encode(coding: &str, data: &[u8]) -> Vec<u8> {
    let mut encoder: Box<dyn EncodeV2> = match coding {
        "gzip" => Box::new(GzipEncoder::new(Level::Default.into())),
        "deflate" => Box::new(ZlibEncoder::new(Level::Default.into())),
        "br" => Box::new(BrotliEncoder::new(EncoderParams::default().quality(Level::Fastest))),
        "zstd" => Box::new(ZstdEncoder::new(3)),
        other => panic!("no coding {other}"),
    };
    let mut scratch = vec![0; 1 << 16];
    let mut encoded = Vec::new();
    let mut input = PartialBuffer::new(data);
    while !input.unwritten().is_empty() {
        let mut out = WriteBuffer::new_initialized(&mut scratch);
        encoder.encode(&mut input, &mut out).unwrap();
        encoded.extend_from_slice(out.written());
    }
    loop {
        let mut out = WriteBuffer::new_initialized(&mut scratch);
        let done = encoder.finish(&mut out).unwrap();
        encoded.extend_from_slice(out.written());
        if done {
            return encoded;
        }
    }
}

/// A zstd frame of 2,048 blocks of one byte repeated 131,072 times (RFC 8878, section 3.1.1.2): 256 MiB.
pub(crate) fn zstd_bomb() -> Vec<u8> {
    let mut frame = vec![0x28, 0xb5, 0x2f, 0xfd, 0, 0x68];
    for block in 1..=2048_u32 {
        let header = u32::from(block == 2048) | 1 << 1 | 131_072 << 3;
        frame.extend(&header.to_le_bytes()[..3]);
        frame.push(b'x');
    }
    frame
}
