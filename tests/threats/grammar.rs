//! Streams that parsers read differently, and content codings: no call hides where our reader and the client's part.

use bytes::Bytes;
use compression_codecs::brotli::params::EncoderParams;
use compression_codecs::core::Level;
use compression_codecs::core::util::{PartialBuffer, WriteBuffer};
use compression_codecs::{BrotliEncoder, EncodeV2, GzipEncoder, ZstdEncoder};
use serde_json::json;

use super::model::{Model, NO_DELETE, NO_FORCE, assert_without, call, message, named};
use super::requests::{GEMINI, models_with, said};
use crate::parity::anthropic::Anthropic;
use crate::parity::chat::Chat;
use crate::parity::dialect::Mode::{Streamed, Whole};
use crate::parity::dialect::{Called, Dialect, Said, server_sent};
use crate::parity::gemini;
use crate::parity::responses::Responses;
use crate::parity::routed::Routed;
use crate::support::Answer;
use crate::support::upstream::{Reply, Step};

const UNPARSEABLE: &str = "postern/builtin/unparseable";

/// A form of a stream, and what is to become of a call in it that is allowed.
struct Form {
    name: &'static str,
    write: fn(&str) -> String,
    keeps: Keeps,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Keeps {
    /// By the standard it is there, and goes on in canonical form.
    Call,
    /// By the standard there is no such event.
    Nothing,
    /// Either: the clients themselves disagree.
    Either,
}

/// The table of forms in which clients were seen to disagree. Each is made of a stream with LF.
const FORMS: &[Form] = &[
    Form { name: "LF", write: str::to_owned, keeps: Keeps::Call },
    Form { name: "CRLF", write: |stream| stream.replace('\n', "\r\n"), keeps: Keeps::Call },
    Form { name: "lone CR", write: |stream| stream.replace('\n', "\r"), keeps: Keeps::Call },
    Form { name: "mixed ends", write: |stream| stream.replacen('\n', "\r\n", 3), keeps: Keeps::Call },
    Form { name: "byte order mark", write: |stream| format!("\u{feff}{stream}"), keeps: Keeps::Call },
    Form { name: "no space", write: |stream| stream.replace("data: ", "data:"), keeps: Keeps::Call },
    Form { name: "two spaces", write: |stream| stream.replace("data: ", "data:  "), keeps: Keeps::Call },
    Form { name: "comment", write: |stream| stream.replace("data: ", ": x\ndata: "), keeps: Keeps::Call },
    Form {
        name: "id and retry",
        write: |stream| stream.replace("data: ", "id: 7\nretry: 1\ndata: "),
        keeps: Keeps::Call,
    },
    Form { name: "two data lines", write: |stream| split_data(stream), keeps: Keeps::Call },
    Form { name: "no event line", write: |stream| without_names(stream), keeps: Keeps::Call },
    Form { name: "wrong name", write: |stream| renamed(stream), keeps: Keeps::Call },
    Form { name: "name behind data", write: |stream| name_behind(stream), keeps: Keeps::Call },
    Form {
        name: "unterminated",
        write: |stream| stream.trim_end_matches('\n').to_owned(),
        keeps: Keeps::Call,
    },
    Form {
        name: "leading space",
        write: |stream| stream.replace("data: ", " data: "),
        keeps: Keeps::Nothing,
    },
    Form { name: "upper case", write: |stream| stream.replace("data: ", "Data: "), keeps: Keeps::Nothing },
    // Google's Python client reads it, and no other one.
    Form { name: "bare JSON", write: |stream| stream.replace("data: ", ""), keeps: Keeps::Either },
    Form { name: "twice", write: |stream| format!("{stream}{stream}"), keeps: Keeps::Either },
];

fn split_data(stream: &str) -> String {
    let lines =
        stream.split('\n').map(|line| match line.split_once(',').filter(|_| line.starts_with("data: ")) {
            Some((first, rest)) => format!("{first},\ndata: {rest}"),
            None => line.to_owned(),
        });
    lines.collect::<Vec<_>>().join("\n")
}

fn without_names(stream: &str) -> String {
    let lines = stream.split('\n').filter(|line| !line.starts_with("event: "));
    lines.collect::<Vec<_>>().join("\n")
}

fn renamed(stream: &str) -> String {
    let named = |line: &str| match line.strip_prefix("event: ") {
        Some(_) => "event: ping".to_owned(),
        None => line.to_owned(),
    };
    stream.split('\n').map(named).collect::<Vec<_>>().join("\n")
}

fn name_behind(stream: &str) -> String {
    let events = stream.split("\n\n").map(|event| match event.split_once('\n') {
        Some((name, data)) => format!("{data}\n{name}"),
        None => event.to_owned(),
    });
    events.collect::<Vec<_>>().join("\n\n")
}

const STREAMED: [(&dyn Dialect, &str); 4] =
    [(&Anthropic, "\n"), (&Chat, "\n"), (&Responses, "\n"), (&gemini::Sse, "\r\n")];

fn stream(dialect: &dyn Dialect, id: &str, name: &'static str) -> String {
    let called = Called { id: id.to_owned(), namespace: None, name, input: r#"{"id":7,"why":"x"}"# };
    let said = Said { text: "so", calls: vec![called] };
    let stream = dialect.answer(&said, Streamed).concat();
    String::from_utf8(stream).unwrap().replace("\r\n", "\n")
}

/// Asserts that a stream has one reading: one kind of line ends, whole events, a name and one line of data each.
#[track_caller]
fn assert_canonical(answer: &Answer, what: &str) -> String {
    let text = answer.text();
    let line_end = if text.contains("\r\n") { "\r\n" } else { "\n" };
    let bare = text.replace("\r\n", "\n");
    assert!(
        !bare.contains('\r')
            && (line_end == "\n" || bare.matches('\n').count() == text.matches("\r\n").count()),
        "{what}: {text}"
    );
    assert!(!text.starts_with('\u{feff}'), "{what}: {text}");
    for (name, data) in server_sent(&answer.body, line_end) {
        assert!(name.is_none_or(|name| !name.is_empty()) && !data.contains('\n'), "{what}: {text}");
    }
    bare
}

/// F14: in whatever form a stream comes, what goes on has one reading, and no denied call is in it.
#[test]
fn whatever_form_a_stream_has_its_client_reads_what_was_judged() {
    let model = Model::routed(NO_DELETE);
    let routed: (&dyn Dialect, &str) = (&Routed, "\n");
    for (dialect, line_end) in STREAMED.into_iter().chain([routed]) {
        for form in FORMS {
            let what = format!("{} {}", dialect.place(Streamed).unwrap().1, form.name);
            let denied =
                model.ask(dialect, Streamed, (form.write)(&stream(dialect, "call_no", "delete_file")));
            assert_without(&denied, &["\"call_no\""]);
            if denied.status == 502 {
                // Of a stand-in: an answer that cannot be read is none.
                assert!(form.keeps != Keeps::Call, "{what}: {}", denied.text());
                continue;
            }
            assert_canonical(&denied, &what);

            let allowed =
                model.ask(dialect, Streamed, (form.write)(&stream(dialect, "call_ok", "get_weather")));
            let canonical = assert_canonical(&allowed, &what);
            let passes = canonical.contains("\"call_ok\"");
            match form.keeps {
                Keeps::Call => {
                    let body = canonical.replace('\n', line_end);
                    let heard = dialect.hear(body.as_bytes(), Streamed);
                    assert_eq!(heard.calls.len(), 1, "{what}: {canonical}");
                }
                Keeps::Nothing => assert!(!passes, "{what}: {canonical}"),
                Keeps::Either => {}
            }
        }
    }
}

/// F14: what stands behind the end of a stream is dropped: some clients still execute it.
#[test]
fn nothing_goes_on_behind_the_end() {
    let model = Model::under(NO_DELETE);
    for (dialect, _) in &STREAMED[..3] {
        let first = stream(*dialect, "call_1", "get_weather");
        for second in [
            stream(*dialect, "call_2", "delete_file"),
            stream(*dialect, "call_2", "get_weather"),
            "data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"id\":\"call_2\"}]}}]}".to_owned(),
        ] {
            let answer = model.ask(*dialect, Streamed, format!("{first}{second}"));
            assert_eq!(answer.text(), first);
            let detail = format!("{} bytes left out", second.len());
            model.gateway.wait_for_event("the event that says what was left out", |event| {
                event["kind"] == "Response" && event["transforms"].to_string().contains(&detail)
            });
        }
        model.assert_passes(*dialect, Streamed, first);
    }
}

/// F14: separators of lines that only some parsers know stay inside of their string.
#[test]
fn separators_inside_a_string_stay_there() {
    let model = Model::under(NO_DELETE);
    for (dialect, line_end) in STREAMED {
        let stream =
            stream(dialect, "call_1", "get_weather").replace("\"so\"", "\"s\u{2028}o\u{2029}\u{85}\"");
        model.assert_passes(dialect, Streamed, stream.replace('\n', line_end));
    }
}

/// F14: keys that stand twice in a call have two readings, under either failure policy.
#[test]
fn keys_that_stand_twice_end_the_answer() {
    for failure in ["Closed", "Open"] {
        let model = Model::under(&format!("failurePolicy: {failure}\n{NO_DELETE}"));
        for (dialect, line_end) in STREAMED {
            let stream = stream(dialect, "call_1", "get_weather").replace('\n', line_end);
            let twice = stream
                .replace(r#""name":"get_weather""#, r#""name":"get_weather","name":"delete_file""#)
                .replace(r#""tool_calls":["#, r#""tool_calls":[],"tool_calls":["#);
            let answer = model.ask(dialect, Streamed, twice);
            assert_without(&answer, &["delete_file"]);
            model.assert_passes(dialect, Streamed, stream);
        }
    }
}

/// F14: an event without end is bounded.
#[test]
fn an_event_over_its_bound_ends_the_answer() {
    let model = Model::with(&format!("failurePolicy: Open\n{NO_DELETE}"), |setup| {
        setup.set("/limits/sseEventBytes", 65_536)
    });
    let stream = |bytes: usize| {
        let said = stream(&Anthropic, "call_1", "get_weather");
        said.replace("\"so\"", &format!("\"{}\"", "x".repeat(bytes)))
    };
    for endless in [stream(70_000), format!("data: {}", "x".repeat(10_000_000))] {
        let answer = model.ask(&Anthropic, Streamed, endless);
        assert_without(&answer, &["call_1", "xxxx"]);
        assert!(answer.text().contains("limits.sseEventBytes"), "{}", answer.text());
    }
    model.assert_passes(&Anthropic, Streamed, stream(60_000));
}

fn encode(coding: &str, data: &[u8]) -> Vec<u8> {
    let mut encoder: Box<dyn EncodeV2> = match coding {
        "gzip" => Box::new(GzipEncoder::new(Level::Default.into())),
        "br" => Box::new(BrotliEncoder::new(EncoderParams::default().quality(Level::Fastest))),
        _ => Box::new(ZstdEncoder::new(3)),
    };
    let (mut room, mut encoded, mut input) = (vec![0; 1 << 16], Vec::new(), PartialBuffer::new(data));
    while !input.unwritten().is_empty() {
        let mut out = WriteBuffer::new_initialized(&mut room);
        encoder.encode(&mut input, &mut out).unwrap();
        encoded.extend_from_slice(out.written());
    }
    loop {
        let mut out = WriteBuffer::new_initialized(&mut room);
        let is_done = encoder.finish(&mut out).unwrap();
        encoded.extend_from_slice(out.written());
        if is_done {
            return encoded;
        }
    }
}

/// Asks for an answer in these codings, whatever was asked for.
fn coded(model: &Model, (dialect, whole): (&dyn Dialect, bool), coding: &str, body: Vec<u8>) -> Answer {
    let mode = if whole { Whole } else { Streamed };
    let mut first = Bytes::from(body);
    let second = first.split_off(first.len() / 2);
    let headers = [("content-type", dialect.content_type(mode)), ("content-encoding", coding)];
    model.says(&headers, vec![Step::Data(first), Step::Data(second)]);
    model.question(dialect, mode)
}

/// F15: an encoded answer is decoded and judged, though plain ones are asked for; one that ends too early is no answer.
#[test]
fn an_encoded_answer_is_decoded_and_judged() {
    let model = Model::under(NO_DELETE);
    for coding in ["gzip", "br", "zstd"] {
        for whole in [false, true] {
            let mode = if whole { Whole } else { Streamed };
            let body = |name: &'static str| {
                let called = Called { id: "call_1".to_owned(), namespace: None, name, input: "{}" };
                Anthropic.answer(&Said { text: "so", calls: vec![called] }, mode).concat()
            };
            let answer = coded(&model, (&Anthropic, whole), coding, encode(coding, &body("delete_file")));
            assert_eq!((answer.status, answer.header("content-encoding")), (200, None), "{coding}");
            assert_without(&answer, &["call_1"]);
            assert!(Anthropic.hear(&answer.body, mode).text.contains("Rule: agents/test/no-delete"));

            let answer = coded(&model, (&Anthropic, whole), coding, encode(coding, &body("get_weather")));
            assert_eq!(answer.body, body("get_weather"), "{coding} {whole}");

            let mut short = encode(coding, &body("delete_file"));
            short.truncate(short.len() / 2);
            let said = if whole {
                coded(&model, (&Anthropic, whole), coding, short).text()
            } else {
                let headers = [("content-type", "text/event-stream"), ("content-encoding", coding)];
                model.says(&headers, vec![Step::Data(short.into()), Step::Abort]);
                model.overhear(&Anthropic)
            };
            assert!(!said.contains("call_1"), "{said}");
        }
    }
    let asked = model.upstream.requests();
    assert!(asked.iter().all(|seen| seen.header("accept-encoding") == Some("identity")), "{asked:?}");
}

/// F15: an answer in a coding that nobody here knows, or in two, is refused, or passes with a warning.
#[test]
fn an_unknown_coding_is_refused_or_passes_with_a_warning() {
    let plain =
        named(&message(&[call(0, "call_1", "Bash", &[r#"{"command":"ls"}"#])], "tool_use")).into_bytes();
    let body: Vec<u8> = plain.iter().map(|byte| !byte).collect();
    let closed = Model::under(NO_FORCE);
    let open = Model::under(&format!("failurePolicy: Open\n{NO_FORCE}"));
    for coding in ["compress", "gzip, br", "x-own"] {
        let answer = coded(&closed, (&Anthropic, false), coding, body.clone());
        answer.assert_refused_by_provider(UNPARSEABLE);

        let answer = coded(&open, (&Anthropic, false), coding, body.clone());
        assert_eq!((answer.header("content-encoding"), &answer.body), (Some(coding), &body));
    }
    assert_eq!(open.gateway.wait_for("Policy", "Audit")["decision"]["rule"], json!(UNPARSEABLE));
    let answer = coded(&closed, (&Anthropic, false), "identity", plain.clone());
    assert_eq!(answer.body, plain);
}

/// An error as Google writes it into a stream of events, without a field.
const BARE_ERROR: &str = "{\n  \"error\": {\n    \"code\": 499,\n    \"message\": \"The operation was cancelled.\",\n    \"status\": \"CANCELLED\"\n  }\n}\n";

fn gemini_chunk(parts: &str) -> String {
    format!(
        "data: {{\"candidates\":[{{\"content\":{{\"role\":\"model\",\"parts\":[{parts}]}},\"index\":0}}]}}\r\n\r\n"
    )
}

/// F14: an error that stands in no event reaches its client byte for byte, whatever rules there are, and whatever was
/// held or denied before it.
#[test]
fn an_error_that_stands_in_no_event_reaches_its_client() {
    let builtin = Model::under("");
    let held = Model::under(NO_FORCE);
    let denying = Model::under(NO_DELETE);
    let text = gemini_chunk(r#"{"text":"so"}"#);
    let errors = [
        BARE_ERROR.to_owned(),
        format!("{BARE_ERROR}\n"),
        BARE_ERROR.replace('\n', "\r\n"),
        format!("{}\r\n", BARE_ERROR.replace('\n', "\r\n")),
        BARE_ERROR.trim_end().to_owned(),
        r#"{"error":{"code":503,"message":"m","status":"UNAVAILABLE"}}"#.to_owned(),
    ];
    for error in &errors {
        for model in [&builtin, &held, &denying] {
            model.assert_passes(&gemini::Sse, Streamed, error);
            model.assert_passes(&gemini::Sse, Streamed, format!("{text}{error}"));
        }
        // A blank line is missing between the two.
        let joined = held.ask(
            &gemini::Sse,
            Streamed,
            format!("{}{error}", text.trim_end_matches("\r\n").to_owned() + "\r\n"),
        );
        assert!(
            joined.text().starts_with(text.trim_end()) && joined.text().contains(error.trim_end()),
            "{}",
            joined.text()
        );

        let begun = r#"{"functionCall":{"id":"call_1","name":"Bash","willContinue":true}}"#;
        let answer = held.ask(&gemini::Sse, Streamed, format!("{text}{}{error}", gemini_chunk(begun)));
        assert_without(&answer, &["call_1"]);
        assert!(answer.complete && answer.text().ends_with(error.as_str()), "{}", answer.text());

        let call = r#"{"functionCall":{"id":"call_2","name":"delete_file","args":{}}}"#;
        let answer = denying.ask(&gemini::Sse, Streamed, format!("{}{error}", gemini_chunk(call)));
        assert_without(&answer, &["call_2"]);
        assert!(
            answer.text().contains("no-delete") && answer.text().ends_with(error.as_str()),
            "{}",
            answer.text()
        );
    }
    let begun = message(&[call(0, "call_3", "Bash", &["{"])], "tool_use");
    let answer = held.ask(&Anthropic, Streamed, named(&begun[..3]) + BARE_ERROR);
    assert_without(&answer, &["call_3"]);
    assert!(answer.text().ends_with(BARE_ERROR), "{}", answer.text());

    for (dialect, _) in &STREAMED[..3] {
        let stream = stream(*dialect, "call_1", "get_weather");
        let (first, _) = stream.split_once("\n\n").unwrap();
        denying.assert_passes(*dialect, Streamed, format!("{first}\n\n{BARE_ERROR}\n"));
        denying.assert_passes(*dialect, Streamed, BARE_ERROR);
    }
    // An array of chunks is an error alone, or has one in it.
    let chunk = r#"{"candidates":[{"content":{"role":"model","parts":[{"text":"so"}]},"index":0}]}"#;
    for body in [BARE_ERROR.to_owned(), format!("[{chunk}\n,\r\n{}\n]", BARE_ERROR.trim_end())] {
        held.assert_passes(&gemini::Array, Streamed, body);
    }
}

/// F14: so it does where no rule could deny anything.
#[test]
fn an_error_that_stands_in_no_event_passes_without_a_rule() {
    let text = gemini_chunk(r#"{"text":"so"}"#);
    let unruled = {
        let sent = format!("{text}{BARE_ERROR}");
        let reply = move |_: &_| Reply::of(200, sent.clone()).header("content-type", "text/event-stream");
        models_with("", reply, |setup| setup)
    };
    let door = GEMINI.replace(":generateContent", ":streamGenerateContent?alt=sse");
    assert_eq!(unruled.post_with(&door, &[], said(GEMINI, "")).answer.text(), format!("{text}{BARE_ERROR}"));
}

/// F14: JSON without a field is read as Google's client reads it, whatever else stands in it: it hides no call.
#[test]
fn json_without_a_field_hides_no_call() {
    let model = Model::under(NO_DELETE);
    let chunk = |name: &str| {
        format!(
            r#""candidates":[{{"content":{{"role":"model","parts":[{{"functionCall":{{"id":"call_1","name":"{name}","args":{{}}}}}}]}},"finishReason":"STOP","index":0}}]"#
        )
    };
    let forms: [fn(&str) -> String; 6] = [
        |chunk| format!("{{{chunk}}}\n\n"),
        |chunk| format!("{{\n{chunk}\n}}\r\n"),
        |chunk| format!("{{\"error\":{{\"code\":400}},{chunk}}}\n\n"),
        |chunk| format!("{{\"error\":{{\"code\":400}}}}\n\n{{{chunk}}}\n\n"),
        |chunk| format!("data: {{}}\n{{{chunk}}}\n\n"),
        |chunk| format!("{{\"error\":{{}}}}\n{{{chunk}}}\n\n"),
    ];
    for form in forms {
        let answer = model.ask(&gemini::Sse, Streamed, form(&chunk("delete_file")));
        assert_without(&answer, &["call_1"]);
    }
    let fine = model.ask(&gemini::Sse, Streamed, forms[0](&chunk("get_weather")));
    assert_eq!(gemini::Sse.hear(fine.text().replace('\n', "\r\n").as_bytes(), Streamed).calls.len(), 1);
}

/// F14: under `failurePolicy: Open` the part goes on that cannot be read, and what is behind it is read; nothing of a
/// call is let go on unread.
#[test]
fn under_open_only_the_part_goes_on_that_cannot_be_read() {
    let open = Model::under(&format!("failurePolicy: Open\n{NO_DELETE}"));
    let closed = Model::under(NO_DELETE);
    let garbage = "{\"text\": NaN";
    for (dialect, line_end) in STREAMED {
        let broken = format!("data: {garbage}\n\n");
        let with = |id: &str, name: &'static str| {
            let stream = stream(dialect, id, name);
            let (first, rest) = stream.split_once("\n\n").unwrap();
            format!("{first}\n\n{broken}{rest}").replace('\n', line_end)
        };
        open.assert_passes(dialect, Streamed, with("call_ok", "get_weather"));
        let answer = open.ask(dialect, Streamed, with("call_no", "delete_file"));
        assert_without(&answer, &["\"call_no\""]);
        assert!(answer.text().contains(garbage) && answer.text().contains("no-delete"), "{}", answer.text());
        let answer = closed.ask(dialect, Streamed, with("call_ok", "get_weather"));
        assert_without(&answer, &[garbage, "call_ok"]);

        // A part of a call, or what could be one.
        let suspect =
            with("call_ok", "get_weather").replace("NaN", "NaN, \"\\u0074ool_use\": \"functionCall\"");
        assert_without(&open.ask(dialect, Streamed, suspect), &["functionCall\"", "call_ok"]);
    }
    let inside = {
        let stream = named(&message(&[call(0, "call_1", "get_weather", &["{\"a\":", "1}"])], "tool_use"));
        let at = stream.find("event: content_block_stop").unwrap();
        format!("{}event: ping\ndata: {garbage}\n\n{}", &stream[..at], &stream[at..])
    };
    let answer = open.ask(&Anthropic, Streamed, inside);
    assert_without(&answer, &[garbage, "message_stop"]);
    assert!(answer.text().contains("event: error\n"), "{}", answer.text());

    let chunk = |parts: &str| {
        format!(r#"{{"candidates":[{{"content":{{"role":"model","parts":[{parts}]}},"index":0}}]}}"#)
    };
    let array = |name: &str| {
        let call = chunk(&format!(r#"{{"functionCall":{{"id":"call_1","name":"{name}","args":{{}}}}}}"#));
        format!("[{},\r\n{garbage}}}\n,\r\n{call}]", chunk(r#"{"text":"so"}"#))
    };
    open.assert_passes(&gemini::Array, Streamed, array("get_weather"));
    let answer = open.ask(&gemini::Array, Streamed, array("delete_file"));
    assert!(answer.text().contains(garbage) && answer.text().contains("no-delete"), "{}", answer.text());
    assert_eq!(open.gateway.wait_for("Policy", "Audit")["decision"]["rule"], json!(UNPARSEABLE));
}

/// F15: bytes that can be read are read, whatever coding they are said to be in.
#[test]
fn a_wrong_label_over_readable_bytes_hides_nothing() {
    let model = Model::under(NO_DELETE);
    for whole in [false, true] {
        let mode = if whole { Whole } else { Streamed };
        let body = |name: &'static str| {
            let called = Called { id: "call_1".to_owned(), namespace: None, name, input: "{}" };
            Anthropic.answer(&Said { text: "so", calls: vec![called] }, mode).concat()
        };
        let labels = ["gzip", "br", "deflate", "zstd", "utf-8", "aws-chunked, gzip"];
        let plain = labels.map(|label| (label, None));
        let coded = [("", Some("gzip")), ("", Some("zstd")), ("br", Some("gzip")), ("gzip", Some("zstd"))];
        for (label, coding) in plain.into_iter().chain(coded) {
            let write = |name| coding.map_or_else(|| body(name), |coding| encode(coding, &body(name)));
            let denied = coded_or_plain(&model, (&Anthropic, whole), label, write("delete_file"));
            assert_eq!((denied.status, denied.header("content-encoding")), (200, None), "{label} {coding:?}");
            assert_without(&denied, &["call_1"]);
            assert!(Anthropic.hear(&denied.body, mode).text.contains("Rule: agents/test/no-delete"));
            let allowed = coded_or_plain(&model, (&Anthropic, whole), label, write("get_weather"));
            assert_eq!(allowed.body, body("get_weather"), "{label} {coding:?} {whole}");
        }
    }
}

/// The same as [`coded`]; without a label where it is empty.
fn coded_or_plain(model: &Model, asked: (&dyn Dialect, bool), label: &str, body: Vec<u8>) -> Answer {
    if !label.is_empty() {
        return coded(model, asked, label, body);
    }
    let (dialect, whole) = asked;
    let mode = if whole { Whole } else { Streamed };
    model.says(&[("content-type", dialect.content_type(mode))], vec![Step::Data(body.into())]);
    model.question(dialect, mode)
}
