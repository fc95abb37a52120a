//! The bounds of one answer, and what comes out of odd framings.

use super::*;
use crate::call::FailureClass;
use crate::provider::openai_chat::transform::Transform;

/// What was said, as words.
#[derive(Default)]
struct Words(Vec<String>);

impl Listen for Words {
    fn said(&mut self, said: Said<'_>) -> Result<(), AnswerFailure> {
        self.0.push(match said {
            Said::Begin { id, model } => format!("begin {id:?} {model:?}"),
            Said::Text(text) => format!("text {}", text.text()),
            Said::Thinking(text) => format!("thinking {}", text.text()),
            Said::Hidden => "hidden".to_owned(),
            Said::CallStart { call } => format!("start {call}"),
            Said::CallName { call, id, name } => format!("name {call} {id:?} {name}"),
            Said::CallInput { call, piece } => format!("input {call} {}", piece.text()),
            Said::CallComplete { call } => format!("complete {call}"),
            Said::Usage(usage) => format!("usage {:?} {:?}", usage.input, usage.output),
            Said::Stop(stop) => format!("stop {stop:?}"),
            Said::Failed(failure) => format!("failed {failure}"),
        });
        Ok(())
    }
}

const LIMITS: AnswerLimits = AnswerLimits { event_bytes: 1 << 10, tool_input_bytes: 64, body_bytes: 256 };

fn terms(transforms: &[Transform]) -> HearTerms {
    HearTerms {
        transforms: transforms.iter().copied().collect(),
        has_exit_tool: false,
        drops_unreadable: false,
        limits: LIMITS,
    }
}

/// What is said of a stream, and why it fails.
fn heard(body: &str) -> (Vec<String>, Option<AnswerFailure>) {
    let mut reader = ChatReader::new(&terms(&[Transform::Reasoning]), true);
    let mut words = Words::default();
    let result = reader.write(body.as_bytes(), &mut words).and_then(|()| reader.finish(&mut words));
    (words.0, result.err())
}

fn message(body: &str) -> String {
    let failure = heard(body).1.expect("the answer fails");
    assert_eq!(failure.class, FailureClass::Translate);
    failure.message
}

fn call(index: usize, arguments: &str) -> String {
    let arguments = serde_json::Value::from(arguments);
    format!(
        "data: {{\"choices\":[{{\"delta\":{{\"tool_calls\":[{{\"index\":{index},\"id\":\"c{index}\",\"function\":{{\"name\":\"f\",\"arguments\":{arguments}}}}}]}}}}]}}\n\n"
    )
}

#[test]
fn pieces_are_told_in_their_order() {
    let body = "data: {\"id\":\"c\",\"model\":\"m\",\"choices\":[{\"delta\":{\"reasoning\":\"a\",\"content\":\"b\"}}]}\n\n"
        .to_owned()
        + &call(0, "{}")
        + "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"length\"}],\"usage\":{\"prompt_tokens\":1}}\n\ndata: [DONE]\n\n";
    let expected = [
        "begin Some(\"c\") Some(\"m\")",
        "thinking a",
        "text b",
        "start 0",
        "name 0 Some(\"c0\") f",
        "input 0 {}",
        "complete 0",
        "usage Some(1) None",
        "stop Length",
    ];
    assert_eq!(heard(&body), (expected.map(str::to_owned).to_vec(), None));
}

#[test]
fn an_event_is_bounded() {
    let body = format!("data: {}", "x".repeat(LIMITS.event_bytes));
    assert_eq!(message(&body), "server-sent event is longer than 1024 bytes (limits.sseEventBytes)");
}

#[test]
fn the_arguments_of_a_call_are_bounded() {
    let body = call(0, &"x".repeat(60)) + &call(0, "12345");
    assert_eq!(message(&body), "the input of a call is longer than 64 bytes (limits.toolInputBytes)");
    assert_eq!(heard(&(call(0, &"x".repeat(60)) + &call(0, "1234") + "data: [DONE]\n\n")).1, None);
}

#[test]
fn the_arguments_of_all_calls_are_bounded() {
    let body: String = (0..5).map(|index| call(index, &"x".repeat(60))).collect();
    // Those that are told as they come are not kept here.
    assert_eq!(heard(&(body.clone() + "data: [DONE]\n\n")).1, None);
    let mut reader = ChatReader::new(&terms(&[Transform::EnhanceTool]), true);
    let failure = reader.write(body.as_bytes(), &mut Words::default()).unwrap_err();
    assert_eq!(failure.message, "the inputs of calls are longer than 256 bytes (limits.decodedBodyBytes)");
}

#[test]
fn the_calls_of_an_answer_are_counted() {
    let body: String = (0..1025).map(|index| call(index, "")).collect();
    assert_eq!(message(&body), "the answer has more than 1024 calls");
    let body: String = (0..1024).map(|index| call(index, "")).collect();
    assert_eq!(heard(&(body + "data: [DONE]\n\n")).1, None);
}

#[test]
fn a_whole_answer_is_bounded() {
    let mut reader = ChatReader::new(&terms(&[]), false);
    let mut words = Words::default();
    assert!(reader.write(&[b' '; 256], &mut words).is_ok());
    assert_eq!(reader.held(), 256);
    let failure = reader.write(b" ", &mut words).unwrap_err();
    assert_eq!(failure.message, "the answer is longer than 256 bytes (limits.decodedBodyBytes)");
}

#[test]
fn comments_names_and_odd_line_ends_change_nothing() {
    let body = ": OPENROUTER PROCESSING\r\n\r\nevent: message\r\nid: 1\r\ndata:{\"choices\":[{\"delta\":\r\ndata: {\"content\":\"a\"}}]}\r\n\r\ndata:[DONE]";
    assert_eq!(heard(body), (vec!["text a".to_owned(), "stop Done { sequence: None }".to_owned()], None));
}

#[test]
fn an_error_of_google_in_a_line_without_a_field_is_read() {
    let body = "data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\n{\"error\":{\"code\":499,\"message\":\"cancelled\"}}\n\n";
    let (words, failure) = heard(body);
    assert_eq!(words, ["text a"]);
    assert_eq!(failure, Some(AnswerFailure::new(Unavailable, "cancelled")));
}

#[test]
fn an_event_that_the_body_cuts_is_no_unreadable_one() {
    let (words, failure) = heard("data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\ndata: {\"choi");
    assert_eq!(words, ["text a"]);
    assert_eq!(failure.map(|failure| failure.class), Some(Unavailable));
}

#[test]
fn a_text_that_is_no_utf8_is_unreadable() {
    let mut reader = ChatReader::new(&terms(&[]), true);
    let failure = reader
        .write(b"data: {\"choices\":[{\"delta\":{\"content\":\"\xff\"}}]}\n\n", &mut Words::default())
        .unwrap_err();
    assert_eq!(failure.class, FailureClass::Translate);
}

#[test]
fn hidden_reasoning_is_a_sign_of_life() {
    let mut reader = ChatReader::new(&terms(&[]), true);
    let mut words = Words::default();
    let event = b"data: {\"choices\":[{\"delta\":{\"reasoning\":\"a\"}}]}\n\n";
    reader.write(&event.repeat(2), &mut words).unwrap();
    assert_eq!(words.0, ["hidden", "hidden"]);
}
