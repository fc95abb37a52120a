//! Recorded AWS event streams: every frame is written as it was received, and damaged streams are found.

use bytes::Bytes;
use postern::wire::event_stream::{Decoder, EventStreamError, Frame, encode};

use super::recordings;

#[test]
fn every_recorded_frame_is_written_as_it_was_received() {
    for recording in recordings("bin") {
        let path = &recording.path;
        let [(frames, outcome), others @ ..] = recording.pieces().map(|pieces| decode(&pieces));
        let same = others.iter().all(|other| (&other.0, other.1) == (&frames, outcome));
        assert!(same, "{path}: cutting it matters");
        assert_eq!(outcome.is_err(), path.contains("broken"), "{path}: {outcome:?}");
        for frame in &frames {
            let mut written = Vec::new();
            encode(&frame.headers, &frame.payload, &mut written).unwrap();
            assert_eq!(written, frame.raw, "{path}: written otherwise");
            let kind = frame.string(":event-type").or(frame.string(":exception-type"));
            assert!(kind.is_some(), "{path}: {:?}", frame.headers);
        }
    }
}

fn decode(pieces: &[&[u8]]) -> (Vec<Frame>, Result<(), EventStreamError>) {
    let mut decoder = Decoder::default();
    let mut frames = Vec::new();
    for piece in pieces.iter().map(Some).chain([None]) {
        match piece {
            Some(piece) => decoder.push(Bytes::copy_from_slice(piece)),
            None => decoder.end(),
        }
        loop {
            match decoder.next_frame() {
                Ok(Some(frame)) => frames.push(frame),
                Ok(None) => break,
                Err(error) => return (frames, Err(error)),
            }
        }
    }
    (frames, Ok(()))
}
