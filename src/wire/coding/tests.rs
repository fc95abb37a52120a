//! Codings whole, cut anywhere, damaged, and meant to exhaust.

use compression_codecs::brotli::params::EncoderParams;
use compression_codecs::core::Level;
use compression_codecs::zstd::params::CParameter;
use compression_codecs::{BrotliEncoder, DeflateEncoder, EncodeV2, GzipEncoder, ZlibEncoder, ZstdEncoder};
use proptest::prelude::*;

use super::*;

const ALL: [&str; 5] = ["gzip", "zlib", "raw", "br", "zstd"];

fn encode(kind: &str, data: &[u8]) -> Vec<u8> {
    let mut encoder: Box<dyn EncodeV2> = match kind {
        "gzip" => Box::new(GzipEncoder::new(Level::Default.into())),
        "zlib" => Box::new(ZlibEncoder::new(Level::Default.into())),
        "raw" => Box::new(DeflateEncoder::new(Level::Default.into())),
        "br" => Box::new(BrotliEncoder::new(EncoderParams::default().quality(Level::Fastest))),
        _ => Box::new(ZstdEncoder::new(3)),
    };
    run(&mut *encoder, data)
}

fn run(encoder: &mut dyn EncodeV2, data: &[u8]) -> Vec<u8> {
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

fn decoder(kind: &str, limits: Limits) -> Decoder {
    let name = if matches!(kind, "zlib" | "raw") { "deflate" } else { kind };
    Decoder::for_header(name, limits).unwrap().unwrap()
}

/// Decodes `bytes` cut at `cuts`, and sees to it that no write gives more than its chunk.
fn decode(kind: &str, bytes: &[u8], cuts: &[usize], limits: Limits) -> Result<Vec<u8>, CodingError> {
    let mut decoder = decoder(kind, limits);
    let mut decoded = Vec::new();
    let mut start = 0;
    for end in cuts.iter().copied().chain([bytes.len()]) {
        let mut input = &bytes[start..end];
        loop {
            let before = decoded.len();
            let wrote = decoder.write(&mut input, &mut decoded)?;
            assert!(decoded.len() - before <= limits.chunk_bytes);
            if wrote == Wrote::All {
                break;
            }
        }
        assert!(input.is_empty());
        start = end;
    }
    decoder.finish()?;
    Ok(decoded)
}

fn whole(kind: &str, bytes: &[u8]) -> Result<Vec<u8>, CodingError> {
    decode(kind, bytes, &[], Limits::default())
}

fn text(length: usize) -> Vec<u8> {
    (0..length).flat_map(|n| format!("{{\"n\":{}}}", n * 7919 % 10_007).into_bytes()).take(length).collect()
}

#[test]
fn names_are_matched_as_the_standard_says() {
    let kind = |value: &str| Decoder::for_header(value, Limits::default()).map(|d| d.map(|d| d.coding));
    for (value, expected) in [
        ("gzip", Ok(Some(Coding::Gzip))),
        ("X-GZip", Ok(Some(Coding::Gzip))),
        (" zstd ", Ok(Some(Coding::Zstd))),
        ("BR", Ok(Some(Coding::Brotli))),
        ("deflate,", Ok(Some(Coding::Deflate))),
        ("", Ok(None)),
        ("Identity", Ok(None)),
        ("gzip, gzip", Err(Unsupported)),
        ("identity, gzip", Err(Unsupported)),
        ("compress", Err(Unsupported)),
        ("aws-chunked", Err(Unsupported)),
    ] {
        assert_eq!(kind(value), expected, "{value}");
    }
}

#[test]
fn a_repeated_header_is_unsupported() {
    let mut headers = HeaderMap::new();
    assert!(Decoder::for_headers(&headers, Limits::default()).unwrap().is_none());
    headers.append(CONTENT_ENCODING, "gzip".parse().unwrap());
    assert!(Decoder::for_headers(&headers, Limits::default()).unwrap().is_some());
    headers.append(CONTENT_ENCODING, "gzip".parse().unwrap());
    assert_eq!(Decoder::for_headers(&headers, Limits::default()).err(), Some(Unsupported));
}

#[test]
fn every_coding_gives_back_what_went_in() {
    for kind in ALL {
        for data in [text(0), text(1), text(100_000), vec![b'a'; 300_000]] {
            assert_eq!(whole(kind, &encode(kind, &data)).as_ref(), Ok(&data), "{kind}, {}", data.len());
        }
    }
}

#[test]
fn an_empty_body_is_no_error() {
    for kind in ALL {
        assert_eq!(whole(kind, b""), Ok(vec![]), "{kind}");
    }
}

#[test]
fn gzip_members_and_zstd_frames_follow_each_other() {
    let skippable: &[u8] = &[0x53, 0x2a, 0x4d, 0x18, 3, 0, 0, 0, 1, 2, 3];
    let empty_skippable: &[u8] = &[0x50, 0x2a, 0x4d, 0x18, 0, 0, 0, 0];
    let [one, two] = ["gzip", "zstd"].map(|kind| (kind, encode(kind, b"one "), encode(kind, b"two")));
    for (kind, first, second) in [one, two] {
        assert_eq!(whole(kind, &[&first[..], &second].concat()), Ok(b"one two".to_vec()), "{kind}");
        let cut = [&first[..], &second[..second.len() - 1]].concat();
        assert_eq!(whole(kind, &cut), Err(CodingError::Truncated), "{kind}");
        assert_eq!(whole(kind, &[&first[..], b"GARBAGE"].concat()), Err(CodingError::Corrupt), "{kind}");
    }
    let many = encode("gzip", b"a").repeat(1000);
    assert_eq!(whole("gzip", &many), Ok(vec![b'a'; 1000]));
    let frame = encode("zstd", b"one ");
    let between = [skippable, &frame, empty_skippable, &frame, skippable].concat();
    let cuts: Vec<usize> = (1..between.len()).collect();
    assert_eq!(whole("zstd", &between), Ok(b"one one ".to_vec()));
    assert_eq!(decode("zstd", &between, &cuts, Limits::default()), Ok(b"one one ".to_vec()));
}

#[test]
fn a_stream_that_ends_early_or_late_is_refused() {
    for kind in ALL {
        let encoded = encode(kind, &text(5000));
        for cut in 1..encoded.len() {
            let verdict = whole(kind, &encoded[..cut]);
            assert_eq!(verdict, Err(CodingError::Truncated), "{kind} cut at {cut} of {}", encoded.len());
        }
        if !matches!(kind, "gzip" | "zstd") {
            let trailing = [&encoded[..], b"x"].concat();
            assert_eq!(whole(kind, &trailing), Err(CodingError::Trailing), "{kind}");
        }
    }
}

#[test]
fn a_bomb_is_stopped_at_its_limit_without_being_held() {
    let data = vec![0; 1 << 20];
    let limits = Limits { decoded_bytes: 100_000, ..Limits::default() };
    for kind in ALL {
        let encoded = encode(kind, &data);
        assert_eq!(decode(kind, &encoded, &[], limits), Err(CodingError::TooLarge), "{kind}");
        assert!(whole(kind, &encoded).is_ok(), "{kind}");
    }
}

#[test]
fn a_zstd_window_over_the_limit_is_refused_however_it_is_cut() {
    let large = |log, data: &[u8]| {
        let parameters = [CParameter::window_log(log), CParameter::content_size_flag(false)];
        run(&mut ZstdEncoder::new_with_params(1, &parameters), data)
    };
    for data in [text(10), text(300_000)] {
        let (fits, over) = (large(23, &data), large(24, &data));
        let cuts: Vec<usize> = (1..over.len().min(30)).collect();
        assert_eq!(whole("zstd", &fits), Ok(data));
        assert_eq!(whole("zstd", &over), Err(CodingError::Window));
        assert_eq!(decode("zstd", &over, &cuts, Limits::default()), Err(CodingError::Window));
    }
    // One segment of 9 MiB: its window is its content.
    let single = [0x28, 0xb5, 0x2f, 0xfd, 0xa0, 0, 0, 0x90, 0, 0, 0, 0];
    assert_eq!(whole("zstd", &single), Err(CodingError::Window));
    let dictionary = [0x28, 0xb5, 0x2f, 0xfd, 0x21, 7, 1, 9, 0, 0, b'x'];
    assert_eq!(whole("zstd", &dictionary), Err(CodingError::Dictionary));
}

#[test]
fn a_large_window_brotli_stream_is_refused() {
    assert_eq!(whole("br", &[0x11, 0x1e, 0x00]), Err(CodingError::Window));
    assert_eq!(whole("br", &[0x91, 0x1e, 0x00]), Err(CodingError::Window));
}

#[test]
fn a_body_that_is_coded_without_saying_so_is_seen() {
    assert_eq!(betrayed_by(&encode("gzip", b"x")), Some("gzip"));
    assert_eq!(betrayed_by(&encode("zstd", b"x")), Some("zstd"));
    assert_eq!(betrayed_by(b"{\"model\": \"x\"}"), None);
}

proptest! {
    #[test]
    fn any_split_and_any_chunk_give_the_same(
        kind in proptest::sample::select(ALL.to_vec()),
        length in 0usize..20_000,
        repeat in any::<bool>(),
        chunk_bytes in prop_oneof![1usize..40, 1000usize..70_000],
        cuts in proptest::collection::vec(any::<prop::sample::Index>(), 0..8),
        damage in proptest::option::of((any::<prop::sample::Index>(), any::<u8>())),
    ) {
        let data = if repeat { vec![7; length] } else { text(length) };
        let mut bytes = encode(kind, &data);
        if let Some((at, byte)) = damage {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len())).collect();
        cuts.sort_unstable();
        let expected = whole(kind, &bytes);
        if damage.is_none() {
            prop_assert_eq!(expected.as_ref(), Ok(&data));
        }
        let limits = Limits { chunk_bytes, ..Limits::default() };
        prop_assert_eq!(decode(kind, &bytes, &cuts, limits), expected);
    }

    #[test]
    fn arbitrary_bytes_never_panic(
        kind in proptest::sample::select(ALL.to_vec()),
        bytes in proptest::collection::vec(any::<u8>(), 0..200),
    ) {
        let _ = whole(kind, &bytes);
    }
}
