//! Published vectors of the format, frames that lie or are damaged, and that cutting a stream never matters.

use bytes::Bytes;
use proptest::prelude::*;

use super::*;

/// Frames that other implementations test themselves with (aws-c-event-stream, botocore): bytes, headers, payload.
fn vectors() -> Vec<(&'static [u8], Vec<Header>, &'static [u8])> {
    let header = |name: &str, value| Header { name: name.to_owned(), value };
    let all = vec![
        header("0", Value::Bool(true)),
        header("1", Value::Bool(false)),
        header("2", Value::Byte(2)),
        header("3", Value::Short(3)),
        header("4", Value::Int(4)),
        header("5", Value::Long(5)),
        header("6", Value::Bytes(Bytes::from_static(b"bytes"))),
        header("7", Value::String("utf8".to_owned())),
        header("8", Value::Timestamp(8)),
        header("9", Value::Uuid(*b"0123456789abcdef")),
    ];
    let error = [(":message-type", "error"), (":error-code", "code"), (":error-message", "message")];
    vec![
        (b"\0\0\0\x10\0\0\0\0\x05\xc2H\xeb}\x98\xc8\xff", vec![], b""),
        (b"\0\0\0\x1d\0\0\0\0\xfdR\x8cZ{'foo':'bar'}\xc3e96", vec![], b"{'foo':'bar'}"),
        (b"\0\0\0\x17\0\0\0\x07)\x86\x01X\x04byte\x02\xff\xc2\xf8i\xdc", vec![header("byte", Value::Byte(-1))], b""),
        (
            b"\0\0\0=\0\0\0 \x07\xfd\x83\x96\x0ccontent-type\x07\0\x10application/json{'foo':'bar'}\x8d\x9c\x08\xb1",
            vec![Header::string("content-type", "application/json")],
            b"{'foo':'bar'}",
        ),
        (
            b"\0\0\0\x62\0\0\0\x52\x03\xb5\xcb\x9c\x010\0\x011\x01\x012\x02\x02\x013\x03\0\x03\x014\x04\0\0\0\x04\
              \x015\x05\0\0\0\0\0\0\0\x05\x016\x06\0\x05bytes\x017\x07\0\x04utf8\x018\x08\0\0\0\0\0\0\0\x08\
              \x019\x090123456789abcdef\x63\x35\x36\x71",
            all,
            b"",
        ),
        (
            b"\0\0\0\x52\0\0\0\x42\xbf\x23\x63\x7e\x0d:message-type\x07\0\x05error\x0b:error-code\x07\0\x04code\
              \x0e:error-message\x07\0\x07message\x6b\x6c\xea\x3d",
            error.iter().map(|(name, value)| Header::string(name, value)).collect(),
            b"",
        ),
    ]
}

fn decode(pieces: &[&[u8]]) -> (Vec<Frame>, Result<(), EventStreamError>, Bytes) {
    let mut decoder = Decoder::default();
    let mut frames = Vec::new();
    let mut outcome = Ok(());
    for piece in pieces.iter().map(Some).chain([None]) {
        match piece {
            Some(piece) => decoder.push(Bytes::copy_from_slice(piece)),
            None => decoder.end(),
        }
        while let Some(frame) = decoder.next_frame().unwrap_or_else(|error| {
            outcome = Err(error);
            None
        }) {
            frames.push(frame);
        }
    }
    (frames, outcome, decoder.into_rest())
}

fn encoded(headers: &[Header], payload: &[u8]) -> Vec<u8> {
    let mut output = Vec::new();
    encode(headers, payload, &mut output).unwrap();
    output
}

/// A frame with these lengths and whatever follows them, with checksums that are right.
fn forged(total: u32, headers: u32, rest: &[u8]) -> Vec<u8> {
    let mut frame = [total.to_be_bytes(), headers.to_be_bytes()].concat();
    frame.extend_from_slice(&crc32fast::hash(&frame).to_be_bytes());
    frame.extend_from_slice(rest);
    frame.extend_from_slice(&crc32fast::hash(&frame).to_be_bytes());
    frame
}

#[test]
fn published_frames_are_read_and_written() {
    let mut stream = Vec::new();
    for (bytes, headers, payload) in vectors() {
        assert_eq!(encoded(&headers, payload), bytes);
        stream.extend_from_slice(bytes);
    }
    let (frames, outcome, rest) = decode(&[&stream]);
    assert_eq!((outcome, rest.len()), (Ok(()), 0));
    for (frame, (bytes, headers, payload)) in frames.iter().zip(vectors()) {
        let expected = Frame { headers, payload: payload.into(), raw: bytes.into() };
        assert_eq!(*frame, expected);
    }
    assert_eq!(frames.len(), vectors().len());
}

#[test]
fn strings_are_found_by_name() {
    let (frames, ..) = decode(&[vectors()[4].0, vectors()[5].0]);
    assert_eq!(frames[1].string(":message-type"), Some("error"));
    assert_eq!(frames[1].string(":event-type"), None);
    assert_eq!((frames[0].string("7"), frames[0].string("6")), (Some("utf8"), None));
}

#[test]
fn a_changed_payload_leaves_the_headers_as_they_were() {
    let (frames, ..) = decode(&[vectors()[4].0]);
    let (again, outcome, _) = decode(&[&encoded(&frames[0].headers, b"another")]);
    assert_eq!(outcome, Ok(()));
    assert_eq!((&again[0].headers, again[0].payload.as_ref()), (&frames[0].headers, &b"another"[..]));
    let section = PRELUDE..frames[0].raw.len() - CHECKSUM;
    assert_eq!(again[0].raw[section.clone()], frames[0].raw[section]);
}

#[test]
fn any_damaged_byte_is_an_error_and_nothing_is_lost() {
    let frame = vectors()[3].0;
    for at in 0..frame.len() {
        for bit in 0..8 {
            let mut damaged = frame.to_vec();
            damaged[at] ^= 1 << bit;
            let (frames, outcome, rest) = decode(&[&damaged]);
            assert!(frames.is_empty() && outcome.is_err(), "byte {at}, bit {bit}");
            assert_eq!(rest, damaged);
        }
    }
}

#[test]
fn lengths_that_lie_are_refused() {
    use EventStreamError::*;
    let cases = [
        (forged(15, 0, b""), Length),
        (forged(0, 0, b""), Length),
        (forged(20, 5, b"abcd"), Length),
        (forged(20, u32::MAX, b"abcd"), Length),
        (forged(17, 0, b"ab"), Checksum),
        (forged(19, 0, b"ab"), Truncated),
        (forged(17, 1, b"\x05"), Header),
        (forged(18, 2, b"\0\0"), Header),
        (forged(19, 3, b"\x01a\x0a"), Header),
        (forged(20, 4, b"\x01a\x04\0"), Header),
        (forged(21, 5, b"\x01a\x07\0\x01"), Header),
        (forged(22, 6, b"\x01a\x07\0\x01\xff"), Header),
        (forged(19, 3, b"\x01\xff\0"), Header),
        (forged(22, 6, b"\x01a\0\x01a\x01"), DuplicateHeader),
        (b"\0\0\0\x10\0\0\0\0\x05\xc2H\xea".to_vec(), Checksum),
    ];
    for (frame, error) in cases {
        assert_eq!(decode(&[&frame]).1, Err(error), "{frame:?}");
        let good = vectors()[1].0;
        let (frames, outcome, _) = decode(&[good, &frame, good]);
        assert!(!frames.is_empty() && outcome.is_err(), "what is in front of it comes out: {frame:?}");
    }
}

#[test]
fn a_frame_over_the_bound_is_refused_by_its_first_four_bytes() {
    let mut decoder = Decoder::default();
    decoder.push(Bytes::from_static(b"\x01\0\0"));
    assert_eq!(decoder.next_frame(), Ok(None));
    decoder.push(Bytes::from_static(b"\x01"));
    assert_eq!(decoder.next_frame(), Err(EventStreamError::TooLong));
    assert_eq!(decoder.next_frame(), Err(EventStreamError::TooLong));
    assert_eq!(decode(&[b"\x01\0\0\0"]).1, Err(EventStreamError::Truncated), "16 MiB are allowed");
}

#[test]
fn what_no_frame_can_hold_is_not_written() {
    let mut output = b"before".to_vec();
    let long = Header::string("a", &"x".repeat(1 << 16));
    let cases = [
        (vec![Header::string("", "x")], 0, EventStreamError::Header),
        (vec![Header::string(&"n".repeat(256), "x")], 0, EventStreamError::Header),
        (vec![long], 0, EventStreamError::Header),
        (vec![Header::string("a", "1"), Header::string("a", "2")], 0, EventStreamError::DuplicateHeader),
        (vec![], FRAME_BYTES - 15, EventStreamError::TooLong),
    ];
    for (headers, payload, error) in cases {
        assert_eq!(encode(&headers, &vec![0; payload], &mut output), Err(error));
    }
    assert_eq!(output, b"before");
}

#[test]
fn a_frame_in_one_piece_is_a_slice_of_it() {
    let piece = Bytes::from_static(vectors()[3].0);
    let mut decoder = Decoder::default();
    decoder.push(piece.clone());
    let frame = decoder.next_frame().unwrap().unwrap();
    assert_eq!((frame.raw.as_ptr(), frame.payload.as_ptr()), (piece.as_ptr(), piece[44..].as_ptr()));
}

fn value() -> impl Strategy<Value = Value> {
    prop_oneof![
        any::<bool>().prop_map(Value::Bool),
        any::<i8>().prop_map(Value::Byte),
        any::<i16>().prop_map(Value::Short),
        any::<i32>().prop_map(Value::Int),
        any::<i64>().prop_map(Value::Long),
        prop::collection::vec(any::<u8>(), 0..40).prop_map(|bytes| Value::Bytes(bytes.into())),
        ".{0,20}".prop_map(Value::String),
        any::<i64>().prop_map(Value::Timestamp),
        any::<[u8; 16]>().prop_map(Value::Uuid),
    ]
}

fn stream() -> impl Strategy<Value = Vec<u8>> {
    let headers = prop::collection::btree_map("[:a-z-]{1,9}", value(), 0..5);
    let frame = (headers, prop::collection::vec(any::<u8>(), 0..60)).prop_map(|(headers, payload)| {
        let headers: Vec<_> = headers.into_iter().map(|(name, value)| Header { name, value }).collect();
        encoded(&headers, &payload)
    });
    prop::collection::vec(frame, 0..5).prop_map(|frames| frames.concat())
}

proptest! {
    #[test]
    fn chunking_never_matters_and_no_byte_is_lost(
        mut stream in stream(),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..12),
        damage in prop::option::of((any::<prop::sample::Index>(), 1u8..)),
        length in any::<prop::sample::Index>(),
    ) {
        if let Some((at, bits)) = damage {
            stream.truncate(length.index(stream.len() + 1));
            if let Some(byte) = stream.get_mut(at.index(length.index(usize::MAX) % 64 + 1)) { *byte ^= bits; }
        }
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(stream.len() + 1)).collect();
        cuts.extend([0, stream.len()]);
        cuts.sort_unstable();
        let pieces: Vec<&[u8]> = cuts.windows(2).map(|cut| &stream[cut[0]..cut[1]]).collect();
        let (frames, outcome, rest) = decode(&pieces);
        let whole = decode(&[&stream]);
        prop_assert_eq!((&frames, &outcome, &rest), (&whole.0, &whole.1, &whole.2));
        prop_assert!(damage.is_some() || outcome.is_ok());
        let raw: Vec<u8> = frames.iter().flat_map(|frame| frame.raw.clone()).chain(rest).collect();
        prop_assert_eq!(raw, stream);
        for frame in frames {
            prop_assert_eq!(encoded(&frame.headers, &frame.payload), frame.raw);
        }
    }
}
