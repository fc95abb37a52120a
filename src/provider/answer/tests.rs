//! The guard over a dialect of its own: `call`, `input` and `stop` make a call, everything else is text.

use bytes::Bytes;
use proptest::prelude::*;

use super::testing::{Names, fed, settings};
use super::{
    AnswerPart, BrokenAnswer, CallHead, CallOutcome, FailurePolicy, Gate, Guard, GuardSettings, KeepAlive,
    Out, PendingCall, StreamEvent, Transcript,
};
use crate::call::Normalization;
use crate::provider::adapter::Framing;
use crate::wire::event_stream::{self, Header};
use crate::wire::json::Document;
use crate::wire::sse::{self, End, NameLine};

const NAMED: Framing =
    Framing::Events(sse::Form { name: NameLine::Required, comments: true, end: End::Name(&["end"]) });
const BARE: Framing =
    Framing::Events(sse::Form { name: NameLine::Absent, comments: true, end: End::Data("[DONE]") });

/// One call at a time; a denied one becomes one `text`.
#[derive(Default)]
struct Small {
    call: Option<PendingCall>,
    kept: Vec<AnswerPart>,
}

impl Transcript for Small {
    fn event(&mut self, event: &StreamEvent<'_>, gate: &mut Gate, out: &mut Out) -> Result<(), BrokenAnswer> {
        let text = |key: &str| -> Result<String, BrokenAnswer> {
            let value = event.json.get(key).map_err(|error| BrokenAnswer::ambiguous(error.to_string()))?;
            Ok::<_, BrokenAnswer>(value.and_then(|value| value.text()).unwrap_or_default().into_owned())
        };
        match (text("type")?.as_str(), self.call.take()) {
            ("call", None) => {
                let call = gate.begin(&CallHead::new("1", &text("name")?));
                self.kept.push(AnswerPart::Received(event.received.clone()));
                self.call = Some(call);
            }
            ("input", Some(mut call)) => {
                call.push(&text("piece")?, gate);
                self.kept.push(AnswerPart::Received(event.received.clone()));
                self.call = Some(call);
            }
            ("stop", Some(call)) => match gate.finish(call) {
                CallOutcome::Passes => {
                    out.release(self.kept.drain(..));
                    out.pass(event);
                }
                CallOutcome::Denied(text) => {
                    self.kept.clear();
                    out.say(Some("text"), serde_json::json!({"type": "text", "text": text}).to_string());
                }
            },
            ("call" | "input" | "stop", _) => return Err(BrokenAnswer::ambiguous("a call out of order")),
            (_, call) => {
                self.call = call;
                out.pass(event);
            }
        }
        Ok(())
    }

    fn end(&mut self, gate: &mut Gate, _: &mut Out) -> Result<(), BrokenAnswer> {
        self.kept.clear();
        self.call.take().into_iter().for_each(|call| gate.abandon(call));
        Ok(())
    }

    fn whole(&mut self, body: &Document<'_>, gate: &mut Gate) -> Result<Option<Vec<u8>>, BrokenAnswer> {
        let name = body.root().get("name").map_err(|error| BrokenAnswer::ambiguous(error.to_string()))?;
        let name = name.and_then(|name| name.text()).unwrap_or_default().into_owned();
        Ok(match gate.whole(&CallHead::new("1", &name), "{}") {
            CallOutcome::Passes => None,
            CallOutcome::Denied(_) => Some(b"{}".to_vec()),
        })
    }

    fn is_in_call(&self) -> bool {
        self.call.is_some()
    }

    fn held(&self) -> usize {
        self.kept.iter().map(AnswerPart::kept_bytes).sum()
    }

    fn keep_alive(&self) -> KeepAlive {
        KeepAlive::Comment
    }

    fn broken(&mut self, _: &str, out: &mut Out) {
        out.say(Some("error"), r#"{"type":"error"}"#);
    }
}

fn guard(framing: Framing) -> Guard {
    Guard::new(Box::new(Small::default()), framing, settings(Names::default()))
}

fn open(framing: Framing) -> Guard {
    let settings = GuardSettings { failure: FailurePolicy::Open, ..settings(Names::default()) };
    Guard::new(Box::new(Small::default()), framing, settings)
}

fn observing(framing: Framing) -> Guard {
    Guard::new(Box::new(Small::default()), framing, settings(Names { observes: true }))
}

/// What becomes of a stream of which every split gives the same.
fn every_split(make: impl Fn() -> Guard, stream: &[u8]) -> (String, Result<(), BrokenAnswer>) {
    let (whole, result) = fed(make(), stream, stream.len().max(1));
    for piece in [1, 2, 3, 7, 64] {
        let (split, again) = fed(make(), stream, piece);
        assert_eq!(String::from_utf8_lossy(&split), String::from_utf8_lossy(&whole), "in pieces of {piece}");
        assert_eq!(again, result);
    }
    (String::from_utf8_lossy(&whole).into_owned(), result)
}

fn named(events: &[(&str, &str)]) -> String {
    events.iter().map(|(name, data)| format!("event: {name}\ndata: {data}\n\n")).collect()
}

const HELD: [(&str, &str); 4] = [
    ("call", r#"{"type":"call","name":"Held"}"#),
    ("input", r#"{"type":"input","piece":"{\"a\": "}"#),
    ("input", r#"{"type":"input","piece":"1}"}"#),
    ("stop", r#"{ "type":"stop" }"#),
];

#[test]
fn what_is_allowed_goes_on_as_it_came() {
    let text = [("text", r#"{"type":"text"}"#)];
    let stream = named(&text) + ": ping\n\n" + &named(&HELD) + &named(&[("end", r#"{"type":"end"}"#)]);
    assert_eq!(every_split(|| guard(NAMED), stream.as_bytes()), (stream.clone(), Ok(())));
}

#[test]
fn what_passes_in_one_chunk_is_one_slice_of_it() {
    let stream = Bytes::from(named(&[("text", r#"{"type":"text"}"#)]).repeat(50));
    let mut out = Vec::new();
    guard(NAMED).write(stream.clone(), &mut out).unwrap();
    assert_eq!(out, std::slice::from_ref(&stream));
    assert_eq!(out[0].as_ptr(), stream.as_ptr());
}

#[test]
fn a_denied_call_is_replaced_and_noted_once() {
    let stream = named(&HELD).replace("1}", r#"\"forbidden\"}"#);
    let mut guard = guard(NAMED);
    let mut out = Vec::new();
    guard.write(stream.into(), &mut out).unwrap();
    guard.finish(&mut out).unwrap();
    let text = String::from_utf8(out.concat()).unwrap();
    assert!(text.starts_with("event: text\ndata: {"), "{text}");
    assert!(!text.contains("forbidden"), "{text}");
    let notes = guard.take_notes();
    assert_eq!(notes.len(), 1);
    assert!(notes[0].verdict.decision.denies());
    assert_eq!(notes[0].input.as_deref(), Some(r#"{"a": "forbidden"}"#));
    assert_eq!(guard.normalization(), Normalization::StreamReconstructed);
}

#[test]
fn what_clients_read_differently_is_written_anew() {
    let text = "event: text\ndata: {\"type\":\"text\"}\n\n";
    for odd in [
        "data: {\"type\":\"text\"}\n\n",
        "event: other\ndata: {\"type\":\"text\"}\n\n",
        "event: text\ndata:{\"type\":\"text\"}\n\n",
        "id: 1\nevent: text\ndata: {\"type\":\"text\"}\n\n",
        "event: text\n: comment\ndata: {\"type\":\"text\"}\n\n",
        "event: text\ndata: {\"type\":\"text\"}",
        "\u{feff}event: text\ndata: {\"type\":\"text\"}\n\n",
        "event: text\ndata: {\"type\":\"text\"}\n\nevent: empty\n\n",
    ] {
        assert_eq!(every_split(|| guard(NAMED), odd.as_bytes()), (text.to_owned(), Ok(())), "{odd:?}");
    }
    let split = "event: text\ndata: {\"type\":\ndata: \"text\"}\n\n";
    let joined = "event: text\ndata: {\"type\": \"text\"}\n\n";
    assert_eq!(every_split(|| guard(NAMED), split.as_bytes()), (joined.to_owned(), Ok(())));
}

#[test]
fn nothing_goes_on_behind_the_end() {
    let end = named(&[("end", r#"{"type":"end"}"#)]);
    let stream = end.clone() + &named(&HELD);
    assert_eq!(every_split(|| guard(NAMED), stream.as_bytes()), (end, Ok(())));
    let unnamed = "data: {\"type\":\"end\"}\n\ndata: {\"type\":\"text\"}\n\n";
    let expected = "event: end\ndata: {\"type\":\"end\"}\n\n";
    assert_eq!(every_split(|| guard(NAMED), unnamed.as_bytes()), (expected.to_owned(), Ok(())));
    let done = "data: {}\n\ndata: [DONE]\n\n";
    let stream = format!("{done}data: {{}}\n\n");
    assert_eq!(every_split(|| guard(BARE), stream.as_bytes()), (done.to_owned(), Ok(())));
}

#[test]
fn what_is_no_json_ends_the_stream_with_an_error() {
    let stream =
        "event: text\ndata: {\"type\":\"text\"}\n\nevent: text\ndata: {\n\nevent: text\ndata: {}\n\n";
    let (text, result) = every_split(|| guard(NAMED), stream.as_bytes());
    assert!(text.ends_with("event: error\ndata: {\"type\":\"error\"}\n\n"), "{text}");
    assert_eq!(result.map_err(|broken| broken.rule), Err("unparseable"));
}

#[test]
fn under_open_what_is_no_json_passes_unless_a_call_is_kept() {
    let broken = "event: text\ndata: {\n\nevent: text\ndata: [\n\n";
    let stream = named(&[("text", r#"{"type":"text"}"#)]) + broken;
    assert_eq!(every_split(|| open(NAMED), stream.as_bytes()), (stream.clone(), Ok(())));
    let denied = named(&[("call", r#"{"type":"call","name":"Denied"}"#), ("stop", r#"{"type":"stop"}"#)]);
    let (text, result) = every_split(|| open(NAMED), (stream.clone() + &denied).as_bytes());
    assert!(text.starts_with(&stream) && text.contains("[postern]") && !text.contains("Denied\"}"), "{text}");
    assert_eq!(result, Ok(()));
    let suspect = stream.replace("[\n", "{\"tool_use\n");
    let (text, result) = every_split(|| open(NAMED), suspect.as_bytes());
    assert!(!text.contains("tool_use") && result.is_err(), "{text}");
    let stream = named(&HELD[..2]) + broken;
    let (text, result) = every_split(|| open(NAMED), stream.as_bytes());
    assert_eq!(text, "event: error\ndata: {\"type\":\"error\"}\n\n");
    assert!(result.is_err());
}

#[test]
fn an_array_stays_one_whatever_is_taken_out() {
    let text = r#"{"type":"text"}"#;
    for (stream, expected) in [
        (format!("[{text},\n{text}\n]\n"), format!("[{text},\n{text}\n]\n")),
        (format!("[ {text}]"), format!("[ {text}]")),
        ("[ ]".to_owned(), "[ ]".to_owned()),
        (r#"[{"type":"call"},{"type":"text"}]"#.to_owned(), format!("[{text}]")),
        (r#"[{"type":"call"}]"#.to_owned(), "[]".to_owned()),
    ] {
        assert_eq!(every_split(|| guard(Framing::Array), stream.as_bytes()), (expected, Ok(())));
    }
    let denied = r#"[{"type":"call","name":"Denied"}, {"type":"stop"}, {"type":"text"}]"#;
    let (text, _) = every_split(|| guard(Framing::Array), denied.as_bytes());
    assert_eq!(serde_json::from_str::<Vec<serde_json::Value>>(&text).unwrap().len(), 2, "{text}");
    let (text, result) = every_split(|| guard(Framing::Array), b"[{\"type\":\"text\"},");
    assert_eq!(text, r#"[{"type":"text"},{"type":"error"}]"#);
    assert!(result.is_err());
}

fn frame(name: &str, json: &str) -> Vec<u8> {
    let headers = [Header::string(":message-type", "event"), Header::string(":event-type", name)];
    let mut output = Vec::new();
    event_stream::encode(&headers, json.as_bytes(), &mut output).unwrap();
    output
}

#[test]
fn frames_pass_and_are_made() {
    let text = frame("text", r#"{"type":"text"}"#);
    let (out, result) = fed(guard(Framing::EventStream), &text, 5);
    assert_eq!((out, result), (text.clone(), Ok(())));
    let mut stream = frame("call", r#"{"type":"call","name":"Denied"}"#);
    stream.extend(frame("stop", r#"{"type":"stop"}"#));
    let (out, _) = fed(guard(Framing::EventStream), &stream, 9);
    let mut decoder = event_stream::Decoder::default();
    decoder.push(out.into());
    let made = decoder.next_frame().unwrap().unwrap();
    assert_eq!(made.string(":event-type"), Some("text"));
    assert_eq!(made.string(":message-type"), Some("event"));
}

#[test]
fn under_open_a_frame_with_a_wrong_checksum_passes_and_what_is_behind_it_is_read() {
    let text = frame("text", r#"{"type":"text"}"#);
    let mut wrong = text.clone();
    let at = wrong.len() - 6;
    wrong[at] ^= 1;
    let denied =
        [frame("call", r#"{"type":"call","name":"Denied"}"#), frame("stop", r#"{"type":"stop"}"#)].concat();
    let stream = [text.clone(), wrong.clone(), text.clone(), denied].concat();
    for piece in [1, 7, stream.len()] {
        let (out, result) = fed(open(Framing::EventStream), &stream, piece);
        assert!(out.starts_with(&[text.clone(), wrong.clone(), text.clone()].concat()) && result.is_ok());
        assert!(String::from_utf8_lossy(&out).contains("[postern]"));
        let (out, result) = fed(guard(Framing::EventStream), &stream, piece);
        assert!(out.starts_with(&text) && result.is_err());
    }
    let mut lengths = text.clone();
    lengths[9] ^= 1;
    assert!(fed(open(Framing::EventStream), &[text.clone(), lengths].concat(), 64).1.is_err());
}

#[test]
fn under_open_an_array_that_ends_too_early_passes_as_it_came() {
    let cut = br#"[{"type":"text"},{"type":"#;
    assert_eq!(fed(open(Framing::Array), cut, 5), (cut.to_vec(), Ok(())));
    let suspect = br#"[{"type":"text"},{"type":"tool_use"#;
    assert!(fed(open(Framing::Array), suspect, 5).1.is_err());
}

#[test]
fn a_stream_that_breaks_off_gives_up_its_call() {
    let mut guard = guard(NAMED);
    let mut out = Vec::new();
    guard.write(named(&HELD[..3]).into(), &mut out).unwrap();
    assert!(out.is_empty());
    assert_eq!(guard.keep_alive().as_deref(), Some(&b": keep-alive\n\n"[..]));
    guard.broken_off(&mut out);
    assert_eq!(out.concat(), b"event: error\ndata: {\"type\":\"error\"}\n\n");
    let notes = guard.take_notes();
    assert!(notes.len() == 1 && notes[0].incomplete, "{notes:?}");
    assert_eq!(guard.keep_alive(), None);
}

#[test]
fn a_stream_that_breaks_off_while_nothing_is_held_ends_as_it_came() {
    let mut guard = guard(NAMED);
    let mut out = Vec::new();
    let text = named(&[("text", r#"{"type":"text"}"#)]);
    guard.write(text.clone().into(), &mut out).unwrap();
    guard.broken_off(&mut out);
    assert_eq!((out.concat(), guard.normalization()), (text.into_bytes(), Normalization::Failed));
}

#[test]
fn messages_stay_messages() {
    let mut guard = guard(Framing::Whole);
    let mut out = Vec::new();
    for (_, data) in HELD {
        guard.message(Bytes::from(data), &mut out).unwrap();
    }
    assert_eq!(out, HELD.map(|(_, data)| Bytes::from(data)));
}

#[test]
fn whole_answers_are_read_and_bounded() {
    let body = Bytes::from_static(br#"{"name":"Held"}"#);
    assert_eq!(guard(Framing::Whole).whole(body.clone()), Ok(body));
    assert_eq!(guard(Framing::Whole).whole(br#"{"name":"Denied"}"#[..].into()), Ok("{}".into()));
    let broken = guard(Framing::Whole).whole("{".into()).unwrap_err();
    assert!(broken.forgivable);
    let mut forgiving = open(Framing::Whole);
    assert_eq!(forgiving.whole("{".into()), Ok("{".into()));
    assert!(forgiving.warning().is_some());
    let large = Bytes::from(vec![b' '; 5 << 20]);
    assert_eq!(guard(Framing::Whole).whole(large.clone()).unwrap_err().rule, "bound");
    let mut large_one = observing(Framing::Whole);
    assert_eq!(large_one.whole(large.clone()), Ok(large));
    assert_eq!(large_one.normalization(), Normalization::TooLarge);
}

#[test]
fn a_whole_answer_that_is_observed_goes_on_piece_by_piece_and_is_read_at_its_end() {
    let body = Bytes::from_static(br#"{"name":"Held"}"#);
    let (mut guard, mut out) = (observing(Framing::Whole), Vec::new());
    for piece in body.chunks(4) {
        guard.write(Bytes::copy_from_slice(piece), &mut out).unwrap();
    }
    assert_eq!(out.concat(), body);
    guard.finish(&mut out).unwrap();
    assert_eq!((guard.normalization(), guard.take_notes().len()), (Normalization::Parsed, 1));

    let mut large = observing(Framing::Whole);
    for _ in 0..5 {
        large.write(vec![b' '; 1 << 20].into(), &mut out).unwrap();
    }
    large.finish(&mut out).unwrap();
    assert_eq!(
        (large.normalization(), out.concat().len()),
        (Normalization::TooLarge, body.len() + (5 << 20))
    );
}

proptest! {
    #[test]
    fn observed_bytes_are_the_same_whatever_they_are(bytes: Vec<u8>, piece in 1..64_usize) {
        for framing in [NAMED, BARE, Framing::EventStream, Framing::Array] {
            prop_assert_eq!(&fed(observing(framing), &bytes, piece), &(bytes.clone(), Ok(())));
        }
    }

    #[test]
    fn any_split_gives_the_same(
        parts in prop::collection::vec(prop::sample::select(vec![
            "event: call\n", "event: stop\n", "data: {\"type\":\"call\",\"name\":\"Held\"}\n", "\n", "\r\n", ": c\n",
            "data: {\"type\":\"input\",\"piece\":\"{}\"}\n", "data: {\"type\":\"stop\"}\n", "data:{\"type\":\"text\"}\r\n",
            "event: text\n", "data: {\"type\":\"text\"}\n", "data: [DONE]\n", "data: {\n", "\r", "id: 1\n",
        ]), 0..24),
        piece in 1..40_usize,
    ) {
        let stream = parts.concat();
        for framing in [NAMED, BARE] {
            let whole = fed(guard(framing), stream.as_bytes(), stream.len().max(1));
            prop_assert_eq!(&fed(guard(framing), stream.as_bytes(), piece), &whole);
            let opened = fed(open(framing), stream.as_bytes(), stream.len().max(1));
            prop_assert_eq!(&fed(open(framing), stream.as_bytes(), piece), &opened);
        }
    }
}

#[test]
fn a_whole_answer_that_nothing_could_be_denied_in_is_read_while_it_goes_on() {
    let body = br#"{"type":"answer"}"#;
    let mut guard = observing(Framing::Whole);
    let mut out = Vec::new();
    for piece in body.chunks(3) {
        guard.write(Bytes::copy_from_slice(piece), &mut out).unwrap();
    }
    assert_eq!(out.concat(), body);
    guard.finish(&mut out).unwrap();
    assert_eq!((out.concat(), guard.normalization()), (body.to_vec(), Normalization::Parsed));
}
