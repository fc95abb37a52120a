//! Streams that parsers read differently, and content codings: no call hides where our reader and the client's part.

use bytes::Bytes;
use compression_codecs::brotli::params::EncoderParams;
use compression_codecs::core::Level;
use compression_codecs::core::util::{PartialBuffer, WriteBuffer};
use compression_codecs::{BrotliEncoder, EncodeV2, GzipEncoder, ZstdEncoder};
use serde_json::json;

use super::model::{Model, NO_DELETE, NO_FORCE, assert_without, call, message, named};
use crate::parity::anthropic::Anthropic;
use crate::parity::chat::Chat;
use crate::parity::dialect::Mode::{Streamed, Whole};
use crate::parity::dialect::{Called, Dialect, Said, server_sent};
use crate::parity::gemini;
use crate::parity::responses::Responses;
use crate::support::Answer;
use crate::support::upstream::Step;

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
    Form { name: "bare JSON", write: |stream| stream.replace("data: ", ""), keeps: Keeps::Nothing },
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
    let model = Model::under(NO_DELETE);
    for (dialect, line_end) in STREAMED {
        for form in FORMS {
            let what = format!("{} {}", dialect.place(Streamed).unwrap().1, form.name);
            let denied =
                model.ask(dialect, Streamed, (form.write)(&stream(dialect, "call_no", "delete_file")));
            assert_canonical(&denied, &what);
            assert_without(&denied, &["\"call_no\""]);

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
    let body =
        named(&message(&[call(0, "call_1", "Bash", &[r#"{"command":"ls"}"#])], "tool_use")).into_bytes();
    let closed = Model::under(NO_FORCE);
    let open = Model::under(&format!("failurePolicy: Open\n{NO_FORCE}"));
    for coding in ["compress", "gzip, br", "x-own"] {
        let answer = coded(&closed, (&Anthropic, false), coding, body.clone());
        answer.assert_refused_by_provider(UNPARSEABLE);

        let answer = coded(&open, (&Anthropic, false), coding, body.clone());
        assert_eq!((answer.header("content-encoding"), &answer.body), (Some(coding), &body));
    }
    assert_eq!(open.gateway.wait_for("Policy", "Audit")["decision"]["rule"], json!(UNPARSEABLE));
    let answer = coded(&closed, (&Anthropic, false), "identity", body.clone());
    assert_eq!(answer.body, body);
}
