//! Recorded answers of Anthropic: nothing denied, everything denied, and every other call denied.

use std::fs;
use std::path::PathBuf;

use super::super::EVENTS;
use super::MessagesTranscript;
use super::tests::{events, seen};
use crate::provider::adapter::Framing;
use crate::provider::answer::testing::{Every, fed, recorded, settings};
use crate::provider::answer::{BrokenAnswer, Guard};

/// Recordings of what no answer may look like.
const NO_ANSWERS: [&str; 1] = ["spliced-message-start.sse"];
/// One with the end of a block before the answer.
const STRAY: [&str; 1] = ["unknown_events.sse"];
/// Several answers one after the other: what stands behind the end of the first is read by some clients alone.
const SEVERAL: [&str; 2] = ["anthropic-programmatic-tool-calling.1.sse", "anthropic-tool-search-regex.1.sse"];

fn recordings() -> Vec<(PathBuf, String)> {
    let folders = ["anthropic/live", "anthropic/sdk", "anthropic/vercel"];
    let paths = folders.into_iter().flat_map(recorded);
    let streams = paths.filter(|path| path.extension().is_some_and(|extension| extension == "sse"));
    let is_one = |path: &PathBuf| {
        let name = path.file_name().unwrap().to_str().unwrap();
        ![&NO_ANSWERS[..], &STRAY, &SEVERAL].concat().contains(&name)
    };
    streams.filter(is_one).map(|path| (path.clone(), fs::read_to_string(path).unwrap())).collect()
}

fn judged(
    stream: &str,
    step: Option<usize>,
    by_name: bool,
    piece: usize,
) -> (String, Result<(), BrokenAnswer>) {
    let judge = Every::new(step.unwrap_or(0), !by_name);
    let guard = Guard::new(Box::new(MessagesTranscript::default()), Framing::Events(EVENTS), settings(judge));
    let (out, result) = fed(guard, stream.as_bytes(), piece);
    (String::from_utf8(out).unwrap(), result)
}

fn calls(stream: &str) -> usize {
    seen(stream).0.iter().filter(|(kind, _)| kind.ends_with("_use")).count()
}

/// Whether a canonical stream ends in a blank line: where it does not, one is added.
fn is_whole(stream: &str) -> bool {
    stream.ends_with("\n\n") && !stream.starts_with(':')
}

#[test]
fn nothing_denied_is_byte_for_byte_what_came() {
    for (path, stream) in recordings() {
        for by_name in [false, true] {
            let (out, result) = judged(&stream, None, by_name, stream.len());
            assert_eq!(result, Ok(()), "{}", path.display());
            if is_whole(&stream) && !path.ends_with("tool_use_invalid_json.sse") {
                assert_eq!(out, stream, "{}", path.display());
            }
        }
    }
}

#[test]
fn everything_denied_leaves_an_answer_without_calls() {
    for (path, stream) in recordings() {
        for by_name in [false, true] {
            let (out, result) = judged(&stream, Some(1), by_name, stream.len());
            assert_eq!(result, Ok(()), "{}", path.display());
            let (blocks, reason) = seen(&out);
            assert_eq!(calls(&out), 0, "{}", path.display());
            assert_ne!(reason.as_deref(), Some("tool_use"), "{}", path.display());
            assert!(blocks.len() <= seen(&stream).0.len(), "{}", path.display());
        }
    }
}

#[test]
fn every_other_call_denied_leaves_the_others_as_they_came() {
    for (path, stream) in recordings() {
        let (out, result) = judged(&stream, Some(2), false, stream.len());
        assert_eq!(result, Ok(()), "{}", path.display());
        let expected = calls(&stream) / 2;
        if !path.ends_with("tool_use_invalid_json.sse") {
            assert_eq!(calls(&out), expected, "{}", path.display());
        }
        let (before, after) = (seen(&stream), seen(&out));
        let is_left = |block: &(String, String)| before.0.contains(block) || block.1.starts_with("[postern]");
        assert!(after.0.iter().all(is_left), "{}", path.display());
    }
}

#[test]
fn any_pieces_of_a_recording_come_to_the_same() {
    for (path, stream) in recordings().into_iter().filter(|(_, stream)| stream.len() < 20_000) {
        for step in [None, Some(1), Some(2)] {
            let whole = judged(&stream, step, false, stream.len());
            for piece in [1, 13, 1000] {
                assert_eq!(judged(&stream, step, false, piece), whole, "{} by {piece}", path.display());
            }
        }
    }
}

/// Of those beside the recordings above.
fn others(names: &[&'static str]) -> Vec<(&'static str, String)> {
    let paths: Vec<_> = ["anthropic/sdk", "anthropic/vercel"].into_iter().flat_map(recorded).collect();
    let read = |name: &&'static str| {
        let path = paths.iter().find(|path| path.ends_with(name))?;
        Some((*name, fs::read_to_string(path).unwrap()))
    };
    names.iter().filter_map(read).collect()
}

#[test]
fn recordings_that_are_no_answers_are_refused() {
    for (name, stream) in others(&NO_ANSWERS) {
        let (out, result) = judged(&stream, None, false, stream.len());
        assert_eq!(result.map_err(|broken| broken.forgivable), Err(false), "{name}");
        assert_eq!(events(&out).last().unwrap()["type"], "error", "{name}");
    }
}

#[test]
fn the_end_of_a_block_before_the_answer_is_left_out() {
    for (name, stream) in others(&STRAY) {
        let (out, result) = judged(&stream, None, false, stream.len());
        assert_eq!(result, Ok(()), "{name}");
        let out = events(&out);
        let ends = out.iter().filter(|event| event["type"] == "content_block_stop").count();
        assert_eq!(ends, 1, "{name}");
    }
}

#[test]
fn of_several_answers_the_first_goes_on() {
    for (name, stream) in others(&SEVERAL) {
        let (out, result) = judged(&stream, None, false, stream.len());
        assert_eq!(result, Ok(()), "{name}");
        assert!(stream.starts_with(&out) && events(&out).last().unwrap()["type"] == "message_stop", "{name}");
    }
}
