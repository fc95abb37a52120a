//! Decoding stays within its bounds, and neither the split of the input nor the size of the chunks changes it.
#![no_main]

use libfuzzer_sys::fuzz_target;
use postern::wire::coding::{CodingError, Decoder, Limits, Wrote};

const DECODED: u64 = 1 << 16;

fuzz_target!(|input: (u8, Vec<u8>, Vec<u16>, u8)| {
    let (coding, bytes, cuts, chunk) = input;
    let coding = ["gzip", "deflate", "br", "zstd"][usize::from(coding % 4)];
    let mut cuts: Vec<usize> = cuts.iter().map(|cut| usize::from(*cut) % (bytes.len() + 1)).collect();
    cuts.sort_unstable();
    let whole = decode(coding, &bytes, &[], 64 << 10);
    assert_eq!(
        decode(coding, &bytes, &cuts, 1 + usize::from(chunk) * 64),
        whole,
        "another split, other bytes"
    );
});

fn decode(coding: &str, bytes: &[u8], cuts: &[usize], chunk_bytes: usize) -> Result<Vec<u8>, CodingError> {
    let limits = Limits { chunk_bytes, decoded_bytes: DECODED, ..Limits::default() };
    let mut decoder = Decoder::for_header(coding, limits).expect("known").expect("a coding");
    let mut decoded = Vec::new();
    let mut start = 0;
    for end in cuts.iter().copied().chain([bytes.len()]) {
        let mut input = &bytes[start..end];
        loop {
            let (before, left) = (decoded.len(), input.len());
            let wrote = decoder.write(&mut input, &mut decoded)?;
            assert!(decoded.len() - before <= chunk_bytes, "more than a chunk");
            assert!(decoded.len() as u64 <= DECODED, "more than the limit");
            match wrote {
                Wrote::All => break,
                Wrote::Full => assert!(decoded.len() > before || input.len() < left, "no progress"),
            }
        }
        assert!(input.is_empty());
        start = end;
    }
    decoder.finish()?;
    Ok(decoded)
}
