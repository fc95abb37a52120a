//! Answers of other statuses than success: a client that looks at none runs what is in them.

use serde_json::json;

use super::model::{Model, NO_DELETE, NO_FORCE, assert_without};
use crate::parity::anthropic::Anthropic;
use crate::parity::bedrock::{Converse, Invoke};
use crate::parity::chat::Chat;
use crate::parity::dialect::Mode::{Streamed, Whole};
use crate::parity::dialect::{Called, Dialect, Mode, Said};
use crate::parity::gemini;
use crate::parity::responses::Responses;
use crate::support::Answer;
use crate::support::upstream::Step;

const EVERY: [&dyn Dialect; 7] =
    [&Anthropic, &Chat, &Responses, &gemini::Sse, &gemini::Array, &Converse, &Invoke];

/// Redirects without and with a place among them; clients follow the latter, or read what came.
const STATUSES: [u16; 9] = [300, 302, 307, 399, 400, 404, 429, 500, 503];

/// Whose streams have events with names.
const NAMED: [&str; 2] = ["/v1/messages", "/v1/responses"];

fn answering(model: &Model, (dialect, mode): (&dyn Dialect, Mode), status: u16, body: &[u8]) -> Answer {
    let mut headers = vec![("content-type", dialect.content_type(mode)), ("retry-after", "7")];
    if matches!(status, 302 | 307) {
        headers.push(("location", "https://elsewhere.example.com/"));
    }
    model.says_with(status, &headers, vec![Step::Data(body.to_vec().into())]);
    model.question(dialect, mode)
}

/// E13: a call is judged whatever the status of the answer says: anthropic-sdk-go, go-openai and `requests` take a 300
/// or a 399 for a success, and others look at no status at all.
#[test]
fn no_status_hides_a_call() {
    let by_name = Model::under(NO_DELETE);
    let by_input = Model::under(NO_FORCE);
    for dialect in EVERY {
        for mode in [Whole, Streamed].into_iter().filter(|mode| dialect.place(*mode).is_some()) {
            let body = |name: &'static str, input: &'static str| {
                let called = Called { id: "call_1".to_owned(), namespace: None, name, input };
                dialect.answer(&Said { text: "so", calls: vec![called] }, mode).concat()
            };
            for status in STATUSES {
                for (model, name, input) in
                    [(&by_name, "delete_file", "{}"), (&by_input, "Bash", r#"{"command":"rm -rf /"}"#)]
                {
                    let denied = answering(model, (dialect, mode), status, &body(name, input));
                    assert_without(&denied, &["\"call_1\"", "rm -rf"]);
                    assert_eq!(denied.status, status, "{}", denied.text());
                }
                let fine = body("get_weather", "{}");
                let allowed = answering(&by_input, (dialect, mode), status, &fine);
                assert_eq!((allowed.status, &allowed.body), (status, &fine));
            }
        }
    }
}

/// E13: an error reaches the agent as it came, whoever wrote it, with its status and its head.
#[test]
fn an_error_of_whatever_shape_passes_as_it_came() {
    let model = Model::under(NO_FORCE);
    let html = "<html>\r\n<body data-x='1'>\n{ upstream: 503 }\r\n</body></html>";
    let errors = [
        json!({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}, "request_id": "r"}).to_string(),
        "{\n  \"error\": {\n    \"message\": \"no\",\n    \"code\": 429\n  }\n}\n".to_owned(),
        "[{\n  \"error\": {\n    \"code\": 400,\n    \"status\": \"INVALID_ARGUMENT\"\n  }\n}\n]".to_owned(),
        r#"{"message":"Too many requests"}"#.to_owned(),
        r#"{"detail":[{"loc":["body"],"msg":"field required"}]}"#.to_owned(),
        "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"api_error\",\"message\":\"no\"}}\n\n".to_owned(),
        "upstream connect error or disconnect/reset before headers".to_owned(),
        html.to_owned(),
        r#"{"message": "cut"#.to_owned(),
    ];
    for dialect in EVERY {
        for mode in [Whole, Streamed].into_iter().filter(|mode| dialect.place(*mode).is_some()) {
            for error in &errors {
                // The events of others have no names.
                if error.starts_with("event:")
                    && !dialect.place(mode).is_some_and(|(_, path)| NAMED.contains(&path))
                {
                    continue;
                }
                for status in [302, 400, 429, 503] {
                    let answer = answering(&model, (dialect, mode), status, error.as_bytes());
                    assert_eq!(
                        (answer.status, answer.text()),
                        (status, error.clone()),
                        "{:?}",
                        dialect.place(mode)
                    );
                    assert_eq!(answer.header("retry-after"), Some("7"));
                }
            }
        }
    }
}

/// E13: what could be an answer in another spelling is no error: it does not go on.
#[test]
fn a_failure_that_cannot_be_read_is_no_hiding_place() {
    let model = Model::under(NO_FORCE);
    let call = r#"{"id":"c1","choices":[{"index":0,"message":{"role":"assistant","tool_calls":[{"id":"call_1","type":"function","function":{"name":"Bash","arguments":"{\"command\":\"rm -rf /\"}"}}]}}]}"#;
    let wide: Vec<u8> =
        "\u{feff}".encode_utf16().chain(call.encode_utf16()).flat_map(u16::to_le_bytes).collect();
    for body in [
        format!("{call},").into_bytes(),
        format!("\u{feff}{call}").into_bytes(),
        format!(r#"{{"error":{{}},"error":{call}}}"#).into_bytes(),
        format!("oops\n\ndata: {call}\n\n").into_bytes(),
        wide,
    ] {
        let answer = answering(&model, (&Chat, Whole), 400, &body);
        assert_without(&answer, &["call_1", "rm -rf"]);
        assert!(!answer.body.windows(4).any(|four| four == b"r\0m\0"), "{answer:?}");
    }
    let fine = call.replace("rm -rf /", "ls");
    assert_eq!(answering(&model, (&Chat, Whole), 400, fine.as_bytes()).text(), fine);
}
