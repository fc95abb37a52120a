//! What is written for an agent passes the guard, which reads Messages alone, and calls are denied in it.

use super::recording_tests::recordings;
use super::testing::{STREAM, deltas, terms, translated};
use super::{AnswerTerms, Transform};
use crate::provider::adapter::Framing;
use crate::provider::answer::testing::{Every, fed, settings};
use crate::provider::answer::{BrokenAnswer, Guard};
use crate::provider::anthropic::MessagesTranscript;
use crate::provider::anthropic::checker::check;
use crate::wire::sse;

const EVENTS: sse::Form = sse::Form {
    name: sse::NameLine::Required,
    comments: true,
    end: sse::End::Name(&["message_stop", "error"]),
};

/// What an agent reads behind a guard that denies every so many calls; 0 denies none.
fn guarded(
    terms: &AnswerTerms,
    stream: &str,
    step: usize,
    holds: bool,
) -> (Vec<u8>, Vec<u8>, Result<(), BrokenAnswer>) {
    let before = translated(terms, STREAM, stream.as_bytes(), 1000).out;
    let judge = Every::new(step, holds);
    let guard = Guard::new(Box::new(MessagesTranscript::default()), Framing::Events(EVENTS), settings(judge));
    let (after, result) = fed(guard, &before, 777);
    (before, after, result)
}

#[test]
fn an_answer_of_which_nothing_is_denied_passes_byte_for_byte() {
    for (name, terms, stream) in recordings(".sse") {
        for holds in [false, true] {
            let (before, after, result) = guarded(&terms, &stream, 0, holds);
            assert_eq!(result, Ok(()), "{name}");
            assert_eq!(String::from_utf8(after), String::from_utf8(before), "{name}");
        }
    }
}

#[test]
fn an_answer_of_which_everything_is_denied_has_no_call() {
    let mut denied = 0;
    for (name, terms, stream) in recordings(".sse") {
        for holds in [false, true] {
            let (before, after, result) = guarded(&terms, &stream, 1, holds);
            assert_eq!(result, Ok(()), "{name}");
            let (before, after) = (check(&before, false), check(&after, false));
            assert_eq!(after.calls(), [], "{name}");
            assert_eq!(after.blocks.len(), before.blocks.len(), "{name}");
            denied += before.calls().len();
        }
    }
    assert!(recordings(".sse").is_empty() || denied > 10);
}

#[test]
fn every_other_call_of_many_that_interleave_is_denied() {
    let call = |index: usize, name: &str, arguments: &str| {
        let function = format!(r#"{{"name":"{name}","arguments":"{arguments}"}}"#);
        format!(r#"{{"tool_calls":[{{"index":{index},"id":"c{index}","function":{function}}}]}}"#)
    };
    let open = (0..6).map(|index| call(index, "f", "{"));
    let text = [r#"{"content":"t"}"#.to_owned(), r#"{"reasoning":"r"}"#.to_owned()];
    let all: Vec<String> = open.chain(text).chain((0..6).map(|index| call(index, "", "}"))).collect();
    let stream = deltas(&all, "tool_calls");
    for holds in [false, true] {
        let (_, after, result) = guarded(&terms(&[Transform::Reasoning]), &stream, 2, holds);
        assert_eq!(result, Ok(()));
        let ids: Vec<String> = check(&after, false).calls().into_iter().map(|(id, ..)| id).collect();
        assert_eq!(ids, ["c1", "c3", "c5"]);
    }
}

#[test]
fn arguments_that_are_no_object_are_the_guards_to_deny() {
    let call = r#"{"tool_calls":[{"id":"a","function":{"name":"f","arguments":"{\"x\":"}}]}"#;
    let (_, after, _) = guarded(&terms(&[]), &deltas(&[call], "tool_calls"), 0, true);
    assert_eq!(check(&after, true).calls(), []);
}
