//! Answers as they go on: calls in every shape, denied and allowed, in every framing.

use bytes::Bytes;

use super::testing::{array, events, guard, guarded};
use crate::call::{CallNote, Usage};
use crate::provider::adapter::Framing;
use crate::provider::answer::testing::{Every, Names};

const TEXTS: &[(&str, &str)] = &[
    (
        r#"{"text":"[postern] Tool call blocked by policy\nTool: Denied\nRule: postern/builtin/test\nReason: a test says so\nThis tool is not available here.\nEvent: 00000000-0000-7000-8000-000000000000\n\n"}"#,
        "<Denied>",
    ),
    (
        r#"{"text":"[postern] Tool call blocked by policy\nTool: Held\nRule: postern/builtin/test\nReason: a test says so\nThe tool itself is allowed; this use of it is not. Do not retry it unchanged.\nEvent: 00000000-0000-7000-8000-000000000000\n\n"}"#,
        "<Held>",
    ),
];

/// A text in the place of a call as one word.
fn short(text: &str) -> String {
    TEXTS.iter().fold(text.to_owned(), |text, (long, short)| text.replace(long, short))
}

fn chunk(parts: &str) -> String {
    format!(r#"{{"candidates": [{{"content":{{"parts":[{parts}],"role":"model"}},"index":0}}]}}"#)
}

fn last(parts: &str) -> String {
    format!(
        r#"{{"candidates":[{{"content":{{"role":"model","parts":[{parts}]}},"finishReason":"STOP"}}],"usageMetadata":{{}}}}"#
    )
}

/// Asserts what chunks become, as events and as an array, however they come in pieces.
#[track_caller]
fn become_(sent: &[String], expected: &[String]) {
    for (stream, expected) in [(events(sent), events(expected)), (array(sent), array(expected))] {
        for piece in [stream.len(), 1, 7, 64] {
            let (out, result) = guarded(Names::default(), &stream, piece);
            assert_eq!(result, Ok(()), "{stream}");
            if stream.starts_with('[') {
                // What is between elements that are written anew is not what Google has there.
                let tight = |text: &str| text.replace("\n,\r\n", ",").replace("\n]", "]");
                assert_eq!(tight(&short(&out)), tight(&expected));
            } else {
                assert_eq!(short(&out), expected);
            }
        }
    }
}

#[track_caller]
fn whole(body: &str) -> String {
    let out = guard(Names::default(), Framing::Whole).whole(Bytes::copy_from_slice(body.as_bytes())).unwrap();
    short(std::str::from_utf8(&out).unwrap())
}

fn notes(stream: &str) -> Vec<CallNote> {
    let mut guard = guard(Names::default(), Framing::Events(crate::provider::gemini::EVENTS));
    let mut out = Vec::new();
    let _ = guard.write(Bytes::copy_from_slice(stream.as_bytes()), &mut out);
    let _ = guard.finish(&mut out);
    guard.take_notes()
}

const ALLOWED: &str = r#"{"functionCall": {"name": "Allowed", "args": {"x" : 1.0}}}"#;
const DENIED: &str = r#"{"functionCall":{"name":"Denied","args":{}}}"#;
const FORBIDDEN: &str = r#"{"functionCall":{"name":"Held","args":{"command":"forbidden"}}}"#;
const BENIGN: &str = r#"{"functionCall":{"name":"Held","args":{"command":"ls"}}}"#;

#[test]
fn a_call_is_replaced_in_its_place_and_nothing_else_changes() {
    let table = [
        (ALLOWED.to_owned(), ALLOWED.to_owned()),
        (BENIGN.to_owned(), BENIGN.to_owned()),
        (r#"{"text":"a \u0041 b"}"#.to_owned(), r#"{"text":"a \u0041 b"}"#.to_owned()),
        (DENIED.to_owned(), "<Denied>".to_owned()),
        (FORBIDDEN.to_owned(), "<Held>".to_owned()),
        (format!("{ALLOWED} , {DENIED}, {BENIGN}"), format!("{ALLOWED} , <Denied>, {BENIGN}")),
        (r#"{"function_call":{"name":"Denied"}}"#.to_owned(), "<Denied>".to_owned()),
        (r#"{"function\u0043all":{"n\u0061me":"\u0044enied"}}"#.to_owned(), "<Denied>".to_owned()),
        (
            r#"{"thought":true,"text":"t"},{"functionCall":{"id":"1","name":"Denied","args":null}}"#
                .to_owned(),
            r#"{"thought":true,"text":"t"},<Denied>"#.to_owned(),
        ),
    ];
    for (parts, expected) in table {
        become_(&[chunk(&parts), last(r#"{"text":""}"#)], &[chunk(&expected), last(r#"{"text":""}"#)]);
        assert_eq!(whole(&last(&parts)), last(&expected));
        let wrapped = |inner: &str| format!(r#"{{"response": {inner}, "traceId":"t"}}"#);
        become_(&[wrapped(&chunk(&parts))], &[wrapped(&chunk(&expected))]);
        assert_eq!(whole(&wrapped(&last(&parts))), wrapped(&last(&expected)));
    }
}

#[test]
fn every_candidate_is_read() {
    let body = format!(
        r#"{{"candidates":[{{"content":{{"parts":[{ALLOWED}]}}}},{{"index":1,"content":{{"parts":[{DENIED}]}}}},{{"index":"2"}}]}}"#
    );
    assert_eq!(whole(&body), body.replace(DENIED, "<Denied>"));
}

#[test]
fn the_signature_of_a_denied_call_goes_to_the_first_that_passes() {
    let signed = |name: &str| format!(r#"{{"functionCall":{{"name":"{name}"}},"thoughtSignature":"S+/="}}"#);
    let taken = r#"{"functionCall": {"name": "Allowed", "args": {"x" : 1.0}},"thoughtSignature":"S+/="}"#;
    // In one chunk, and in two.
    let (denied, second) = (signed("Denied"), r#"{"functionCall":{"name":"Other"}}"#);
    become_(
        &[chunk(&format!("{denied},{ALLOWED},{second}"))],
        &[chunk(&format!("<Denied>,{taken},{second}"))],
    );
    become_(
        &[chunk(&denied), chunk(DENIED), chunk(ALLOWED), chunk(second)],
        &[chunk("<Denied>"), chunk("<Denied>"), chunk(taken), chunk(second)],
    );
    // An empty one is none.
    let empty = r#"{"functionCall":{"name":"Other"},"thought_signature":""}"#;
    let filled = r#"{"functionCall":{"name":"Other"},"thought_signature":"S+/="}"#;
    become_(&[chunk(&format!("{denied},{empty}"))], &[chunk(&format!("<Denied>,{filled}"))]);
    // A call with its own, or behind one that passed, needs no other.
    let own = signed("Allowed").replace("S+", "T+");
    become_(&[chunk(&format!("{denied},{own}"))], &[chunk(&format!("<Denied>,{own}"))]);
    become_(&[chunk(&format!("{own},{denied},{second}"))], &[chunk(&format!("{own},<Denied>,{second}"))]);
}

fn begin(name: &str) -> String {
    chunk(&format!(r#"{{"functionCall":{{"name":"{name}","willContinue":true}},"thoughtSignature":"S"}}"#))
}

fn piece(path: &str, text: &str) -> String {
    chunk(&format!(
        r#"{{"functionCall":{{"partialArgs":[{{"jsonPath":"{path}","stringValue":"{text}","willContinue":true}}],"willContinue":true}}}}"#
    ))
}

/// A call whose arguments come in pieces, with its end marker.
fn pieces(name: &str, text: &str) -> Vec<String> {
    let (one, other) = text.split_at(text.len() / 2);
    vec![
        begin(name),
        piece("$.a.command", one),
        chunk(r#"{"functionCall":{"willContinue":true}}"#),
        piece("$.a.command", other),
        chunk(r#"{"functionCall":{}}"#),
    ]
}

fn emptied(text: &str) -> Vec<String> {
    let mut chunks = vec![chunk(text)];
    chunks.resize(5, chunk(r#"{"text":""}"#));
    chunks
}

#[test]
fn a_call_in_pieces_is_put_together_and_judged_as_a_whole() {
    let around =
        |chunks: Vec<String>| [vec![chunk(r#"{"text":"before"}"#)], chunks, vec![last(ALLOWED)]].concat();
    let passing = [pieces("Held", "list files"), pieces("Allowed", "forbidden")];
    for chunks in passing {
        become_(&around(chunks.clone()), &around(chunks));
    }
    let signed = r#"{"functionCall": {"name": "Allowed", "args": {"x" : 1.0}},"thoughtSignature":"S"}"#;
    for (chunks, text) in
        [(pieces("Held", "a forbidden thing"), "<Held>"), (pieces("Denied", "list files"), "<Denied>")]
    {
        let mut expected = around(emptied(text));
        expected.pop();
        expected.push(last(signed));
        become_(&around(chunks), &expected);
    }
}

#[test]
fn a_call_without_an_end_marker_ends_at_the_next_or_with_the_answer() {
    let mut chunks = pieces("Held", "forbidden");
    chunks.pop();
    chunks.push(last(r#"{"text":"end"}"#));
    let mut expected = emptied("<Held>");
    expected.pop();
    expected.push(last(r#"{"text":"end"}"#));
    become_(&chunks, &expected);
    chunks.pop();
    chunks.push(chunk(ALLOWED));
    expected.pop();
    expected.push(chunk(&ALLOWED.replace("}}}", r#"}},"thoughtSignature":"S"}"#)));
    become_(&chunks, &expected);
}

#[test]
fn chunks_wait_for_a_verdict_in_their_order() {
    let mut guard = guard(Names::default(), Framing::Events(crate::provider::gemini::EVENTS));
    let mut out = Vec::new();
    let mut write = |chunk: &String| {
        guard.write(Bytes::from(events(std::slice::from_ref(chunk))), &mut out).unwrap();
        (out.concat().len(), guard.held())
    };
    let chunks = pieces("Held", "ls");
    let (first, rest) = chunks.split_first().unwrap();
    assert_eq!(write(&chunk(r#"{"text":"a"}"#)).1, 0);
    let before = write(first).0;
    for chunk in &rest[..3] {
        let (went_on, held) = write(chunk);
        assert!(went_on == before && held > 0);
    }
    let (after, held) = write(&rest[3]);
    assert_eq!((after - before, held), (events(&chunks).len(), 0));
}

#[test]
fn the_last_piece_of_a_denied_call_does_not_become_one_of_its_own() {
    let marker = chunk(r#"{"functionCall":{}}"#);
    become_(&[chunk(DENIED), marker.clone()], &[chunk("<Denied>"), chunk(r#"{"text":""}"#)]);
    become_(&[chunk(ALLOWED), marker.clone()], &[chunk(ALLOWED), marker]);
}

const CODE: &str = r#"{"executableCode":{"language":"PYTHON","code":"print(1)","id":"c"}}"#;
const OUTPUT: &str = r#"{"codeExecutionResult":{"outcome":"OUTCOME_OK","output":"1","id":"c"}}"#;
const SEARCH: &str = r#"{"toolCall":{"toolType":"GOOGLE_SEARCH_WEB","args":{"queries":["x"]},"id":"s"}}"#;
const FOUND: &str = r#"{"tool_response":{"tool_type":"GOOGLE_SEARCH_WEB","response":{},"id":"s"}}"#;

#[test]
fn what_ran_at_the_provider_is_noted_and_goes_with_its_result() {
    let text = r#"{"text":"1"}"#;
    let parts = format!("{CODE},{OUTPUT},{text},{SEARCH},{FOUND}");
    assert_eq!(whole(&last(&parts)), last(&parts));
    let seen = notes(&events(&[chunk(&parts)]));
    let seen: Vec<_> = seen.iter().map(|note| (note.name.as_str(), note.id.as_str(), note.hosted)).collect();
    assert_eq!(seen, [("codeExecution", "c", true), ("googleSearch", "s", true)]);

    let out = |every: usize| {
        let body = Bytes::from(last(&parts));
        let out = guard(Every::new(every, false), Framing::Whole).whole(body).unwrap();
        let out: serde_json::Value = serde_json::from_slice(&out).unwrap();
        let parts = out.pointer("/candidates/0/content/parts").unwrap().as_array().unwrap().clone();
        parts.iter().map(|part| part.as_object().unwrap().keys().next().unwrap().clone()).collect::<Vec<_>>()
    };
    assert_eq!(out(1), ["text", "text", "text"]);
    assert_eq!(out(2), ["text", "text", "toolCall", "tool_response"]);
}

#[test]
fn a_result_in_a_chunk_of_its_own_leaves_an_empty_text() {
    let stream = events(&[chunk(CODE), chunk(OUTPUT), chunk(r#"{"text":"x"}"#)]);
    let (out, _) = guarded(Every::new(1, false), &stream, stream.len());
    let expected = events(&[chunk(r#"{"text":""}"#), chunk(r#"{"text":"x"}"#)]);
    assert!(out.ends_with(&expected), "{out}");
    // A result whose call nobody saw stands for it.
    let stream = events(&[chunk(OUTPUT)]);
    let (out, _) = guarded(Every::new(1, false), &stream, stream.len());
    assert!(out.contains("Tool: codeExecution") && !out.contains("OUTCOME_OK"), "{out}");
}

#[test]
fn grounding_is_a_search_that_has_run() {
    let grounded = r#"{"candidates":[{"content":{"parts":[{"text":"x"}]}, "groundingMetadata":{"webSearchQueries":["q"]}}]}"#;
    let metadata = r#", "groundingMetadata":{"webSearchQueries":["q"]}"#;
    assert_eq!(whole(grounded), grounded);
    let note = &notes(&events(&[grounded, grounded]))[..];
    assert_eq!(note.len(), 1);
    assert_eq!((note[0].name.as_str(), note[0].hosted), ("googleSearch", true));
    assert_eq!(note[0].input.as_deref(), Some(r#"{"webSearchQueries":["q"]}"#));
    let again = grounded.replace(metadata, "");
    let (out, _) = guarded(Every::new(1, false), &events(&[grounded, grounded]), usize::MAX);
    assert!(out.contains("Tool: googleSearch") && !out.contains("webSearchQueries"), "{out}");
    assert!(out.ends_with(&events(&[again])), "{out}");
    for alone in [
        r#"{"candidates":[{"groundingMetadata":{"webSearchQueries":["q"]}}]}"#,
        r#"{"candidates":[{"content":{"role":"model"},"urlContextMetadata":{"urlMetadata":[]}}]}"#,
    ] {
        let body = Bytes::from_static(alone.as_bytes());
        let out = guard(Every::new(1, false), Framing::Whole).whole(body).unwrap();
        let out: serde_json::Value = serde_json::from_slice(&out).unwrap();
        assert!(out.pointer("/candidates/0/content/parts/0/text").is_some(), "{out}");
    }
}

#[test]
fn what_has_several_readings_goes_no_further() {
    let call = DENIED;
    let table = [
        chunk(r#"{"functionCall":{"name":"Allowed"},"function_call":{"name":"Denied"}}"#),
        chunk(r#"{"functionCall":{"name":"Allowed","name":"Denied"}}"#),
        chunk(r#"{"text":"x","functionCall":{"name":"Allowed"}}"#),
        chunk(r#"{"functionCall":{"name":["Denied"]}}"#),
        chunk(r#"{"functionCall":{"args":{}}}"#),
        chunk(r#"{"functionCall":{"partialArgs":[]}}"#),
        chunk(r#"{"functionCall":{"name":"Allowed","args":{"x":1},"willContinue":true}}"#),
        chunk(r#"{"functionCall":{"name":"Allowed","willContinue":"true"}}"#),
        chunk(r#"{"functionCall":"Denied"}"#),
        chunk(r#""Denied""#),
        format!(r#"{{"candidates":{{"content":{{"parts":[{call}]}}}}}}"#),
        format!(r#"{{"candidates":[{{"content":{{"parts":{call}}}}}]}}"#),
        format!(r#"{{"candidates":[{{"content":[{{"parts":[{call}]}}]}}]}}"#),
        format!(r#"{{"candidates":[{{"index":1}},{{"index":1,"content":{{"parts":[{call}]}}}}]}}"#),
        format!(r#"{{"response":{},"candidates":[]}}"#, chunk(call)),
        r#"{"candidates":[{"index":64}]}"#.to_owned(),
    ];
    for sent in table {
        let stream = events(&[&chunk(ALLOWED), &sent]);
        let (out, result) = guarded(Names::default(), &stream, stream.len());
        assert!(result.is_err_and(|broken| !broken.forgivable), "{sent}");
        let (first, error) = out.split_at(events(&[chunk(ALLOWED)]).len());
        assert_eq!(first, events(&[chunk(ALLOWED)]));
        assert!(error.starts_with(r#"data: {"error":{"code":403,"message":"[postern] "#), "{error}");
        assert!(error.ends_with("\"status\":\"PERMISSION_DENIED\"}}\r\n\r\n"), "{error}");
        let whole = guard(Names::default(), Framing::Whole).whole(Bytes::from(sent));
        assert!(whole.is_err());
    }
}

#[test]
fn an_answer_that_ends_inside_a_held_call_ends_with_an_error() {
    let mut chunks = pieces("Held", "ls");
    chunks.pop();
    for stream in [events(&chunks), array(&chunks)] {
        let (out, result) = guarded(Names::default(), &stream, stream.len());
        assert!(result.is_err_and(|broken| !broken.forgivable));
        assert!(out.contains("PERMISSION_DENIED") && !out.contains("functionCall"), "{out}");
    }
    // One that flows has gone on already.
    let mut chunks = pieces("Allowed", "ls");
    chunks.pop();
    become_(&chunks, &chunks);
    let seen = notes(&events(&chunks));
    assert_eq!((seen.len(), seen[0].incomplete), (1, true));
}

#[test]
fn arguments_beyond_the_bound_are_denied() {
    let long = "x".repeat(1 << 15);
    let mut chunks = vec![begin("Held")];
    chunks.extend((0..3).map(|_| piece("$.a", &long)));
    chunks.push(chunk(r#"{"functionCall":{}}"#));
    let stream = events(&chunks);
    let (out, result) = guarded(Names::default(), &stream, stream.len());
    assert_eq!(result, Ok(()));
    assert!(out.contains("Tool: Held\\nRule: postern/builtin/bound") && !out.contains("xxx"));
}

#[test]
fn what_an_answer_says_of_itself_is_noted() {
    let mut guard = guard(Names::default(), Framing::Events(crate::provider::gemini::EVENTS));
    let sent = [
        r#"{"candidates":[],"usageMetadata":{"promptTokenCount":10,"totalTokenCount":10},"modelVersion":"m-1","responseId":"r"}"#,
        r#"{"usageMetadata":{"trafficType":"ON_DEMAND"}}"#,
        r#"{"response":{"usage_metadata":{"promptTokenCount":100,"cachedContentTokenCount":60,"candidatesTokenCount":"7","thoughtsTokenCount":5,"toolUsePromptTokenCount":20}}}"#,
    ];
    guard.write(Bytes::from(events(&sent)), &mut Vec::new()).unwrap();
    let facts = guard.facts();
    assert_eq!((facts.model.as_deref(), facts.id.as_deref()), (Some("m-1"), Some("r")));
    let expected = Usage {
        input: Some(120),
        output: Some(12),
        cache_read: Some(60),
        cache_write: None,
        reasoning: Some(5),
    };
    assert_eq!(facts.usage, expected);
}

#[test]
fn errors_and_ends_of_streams_go_on() {
    let sent = [r#"{"error":{"code":499,"message":"x","status":"CANCELLED"}}"#.to_owned()];
    become_(&sent, &sent);
    let stream = "data: {\"candidates\":[]}\r\n\r\ndata: [DONE]\r\n\r\n";
    assert_eq!(guarded(Names::default(), stream, 1), (stream.to_owned(), Ok(())));
}

#[test]
fn nothing_rides_outside_of_the_grammar_of_events() {
    let call = chunk(DENIED);
    for stream in [
        format!("{call}\r\n\r\n"),
        format!(": {call}\r\n\r\n"),
        format!("data:{call}\r\n\r\n"),
        format!(" data: {call}\r\n\r\n"),
        format!("data: {}\r\n{call}\r\n\r\n", chunk(ALLOWED)),
        format!("\u{feff}data: {call}\r\n\r\n"),
    ] {
        let (out, _) = guarded(Names::default(), &stream, stream.len());
        assert!(!out.contains(r#""Denied""#), "{stream} became {out}");
    }
}

#[test]
fn what_cannot_be_read_passes_as_it_came_where_nothing_is_denied() {
    let stream = b"[{\"candidates\":[]},{\"\xb9\":1},\r\n{\"candidates\":[]}]";
    for piece in [1, 20, stream.len()] {
        let guard = guard(Names { observes: true }, Framing::Array);
        let (out, ended) = crate::provider::answer::testing::fed(guard, stream, piece);
        assert_eq!((out, ended), (stream.to_vec(), Ok(())), "in pieces of {piece}");
    }
}
