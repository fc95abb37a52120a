//! Cutting a stream never matters, no byte is lost, and a frame that is read is written as it was received.
#![no_main]

use bytes::Bytes;
use libfuzzer_sys::fuzz_target;
use postern::wire::event_stream::{Decoder, EventStreamError, Frame, encode};

fuzz_target!(|input: (Vec<u8>, Vec<u8>, Vec<u16>)| {
    let (headers, bytes, cuts) = input;
    // Checksums are seldom guessed: half of what is read are frames whose checksums are made here.
    let stream = [framed(&headers, &bytes), bytes].concat();
    let mut cuts: Vec<usize> = cuts.iter().map(|cut| usize::from(*cut) % (stream.len() + 1)).collect();
    cuts.sort_unstable();
    let (frames, outcome, rest) = decode(&stream, &cuts);
    let whole = decode(&stream, &[]);
    assert_eq!((&frames, outcome, &rest), (&whole.0, whole.1, &whole.2), "another split, other frames");
    for frame in &frames {
        let mut written = Vec::new();
        encode(&frame.headers, &frame.payload, &mut written).expect("it was read");
        assert_eq!(written, frame.raw, "written otherwise");
    }
    let raw = frames.iter().flat_map(|frame| frame.raw.clone()).chain(rest);
    assert!(raw.eq(stream), "bytes are lost");
});

/// A frame whose lengths and checksums are right, around any headers.
fn framed(headers: &[u8], payload: &[u8]) -> Vec<u8> {
    let total = (16 + headers.len() + payload.len()) as u32;
    let mut frame = [total.to_be_bytes(), (headers.len() as u32).to_be_bytes()].concat();
    frame.extend_from_slice(&crc32fast::hash(&frame).to_be_bytes());
    frame.extend_from_slice(headers);
    frame.extend_from_slice(payload);
    frame.extend_from_slice(&crc32fast::hash(&frame).to_be_bytes());
    frame
}

fn decode(bytes: &[u8], cuts: &[usize]) -> (Vec<Frame>, Result<(), EventStreamError>, Bytes) {
    let mut decoder = Decoder::default();
    let mut frames = Vec::new();
    let mut outcome = Ok(());
    let mut start = 0;
    for end in cuts.iter().copied().chain([bytes.len()]) {
        decoder.push(Bytes::copy_from_slice(&bytes[start..end]));
        drain(&mut decoder, &mut frames, &mut outcome);
        start = end;
    }
    decoder.end();
    drain(&mut decoder, &mut frames, &mut outcome);
    (frames, outcome, decoder.into_rest())
}

fn drain(decoder: &mut Decoder, frames: &mut Vec<Frame>, outcome: &mut Result<(), EventStreamError>) {
    loop {
        match decoder.next_frame() {
            Ok(Some(frame)) => frames.push(frame),
            Ok(None) => return,
            Err(error) => {
                *outcome = Err(error);
                return;
            }
        }
    }
}
