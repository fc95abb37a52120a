//! When an answer is the agent's, and what becomes of failures before and after that.

use super::testing::{STREAM, WHOLE, deltas, events, seen, seen_deltas, terms, translated, whole_terms};
use super::*;
use crate::call::FailureClass;
use crate::call::{Dialect, Usage};
use crate::provider::anthropic::checker::{SeenBlock, check};

fn text(text: &str) -> String {
    format!(r#"{{"content":"{text}"}}"#)
}

fn begun(terms: AnswerTerms) -> AnswerTranslation {
    AnswerTranslation::new(terms, STREAM).unwrap()
}

fn chunk(delta: &str) -> Vec<u8> {
    events(&[format!(r#"{{"choices":[{{"delta":{delta}}}]}}"#)]).into_bytes()
}

#[test]
fn the_first_piece_that_begins_a_block_commits() {
    let mut translation = begun(terms(&[Transform::Reasoning]));
    let mut out = Vec::new();
    for delta in [
        r#"{"role":"assistant"}"#,
        r#"{"content":""}"#,
        r#"{"content":"\n"}"#,
        r#"{"tool_calls":[{"id":"a"}]}"#,
    ] {
        translation.write(&chunk(delta), &mut out).unwrap();
        assert!(!translation.is_committed() && out.is_empty(), "{delta}");
    }
    translation.write(&chunk(r#"{"tool_calls":[{"function":{"name":"f"}}]}"#), &mut out).unwrap();
    assert!(translation.is_committed());
    assert_eq!(check(&out, true).blocks.len(), 1);
}

#[test]
fn reasoning_that_nobody_reads_commits_nothing_and_is_a_piece() {
    for asks in [true, false] {
        let transforms = if asks { vec![] } else { vec![Transform::Reasoning] };
        let mut translation = begun(AnswerTerms { shows_thinking: asks, ..terms(&transforms) });
        let mut out = Vec::new();
        translation.write(&chunk(r#"{"role":"assistant"}"#), &mut out).unwrap();
        assert!(!translation.has_piece());
        translation.write(&chunk(r#"{"reasoning":"a"}"#), &mut out).unwrap();
        assert!(translation.has_piece() && !translation.is_committed() && out.is_empty());
    }
}

#[test]
fn a_failure_before_the_commit_is_returned_and_nothing_is_written() {
    let mut translation = begun(terms(&[]));
    let mut out = Vec::new();
    let failure = translation.broken_off("connection reset", &mut out).unwrap_err();
    assert_eq!((failure.class, failure.message.as_str()), (FailureClass::Unavailable, "connection reset"));
    assert!(failure.retry_may_help() && out.is_empty() && translation.is_over());
    let failure = begun(terms(&[])).timed_out("nothing came within 2m", &mut out).unwrap_err();
    assert_eq!((failure.class, out.is_empty()), (FailureClass::Timeout, true));
}

#[test]
fn a_failure_after_the_commit_is_the_last_event() {
    let mut translation = begun(terms(&[]));
    let mut out = Vec::new();
    translation
        .write(&chunk(r#"{"tool_calls":[{"id":"a","function":{"name":"f","arguments":"{\"x"}}]}"#), &mut out)
        .unwrap();
    translation.broken_off("connection reset", &mut out).unwrap();
    let before = out.len();
    translation.write(&chunk(&text("more")), &mut out).unwrap();
    translation.finish(&mut out).unwrap();
    translation.ping(&mut out);
    translation.commit_now(&mut out);
    assert_eq!(out.len(), before);
    let seen = check(&out, false);
    let message = "[postern] coder broke off its answer\nClass: Unavailable\nReason: connection reset\nRoute: agents/p/small";
    assert_eq!(seen.error, Some(("overloaded_error".to_owned(), message.to_owned())));
    assert!(seen.stop_reason.is_none(), "no call is completed");
    assert_eq!(translation.report().stop_reason, None);
}

#[test]
fn the_head_goes_out_without_a_piece_where_no_model_follows() {
    let mut translation = begun(AnswerTerms { input_estimate: Some(9), ..terms(&[]) });
    let mut out = Vec::new();
    translation.ping(&mut out);
    assert!(out.is_empty());
    translation.commit_now(&mut out);
    translation.commit_now(&mut out);
    translation.ping(&mut out);
    assert!(translation.is_committed());
    translation.write(deltas(&[text("a")], "stop").as_bytes(), &mut out).unwrap();
    assert!(translation.is_over());
    assert_eq!(check(&out, false).text(), "a");
    assert_eq!(std::str::from_utf8(&out).unwrap().matches("event: ping").count(), 1);
}

#[test]
fn a_whole_answer_is_written_at_its_end() {
    let mut translation = begun(whole_terms(&[]));
    let mut out = Vec::new();
    translation.commit_now(&mut out);
    translation.ping(&mut out);
    translation.write(&chunk(&text("a")), &mut out).unwrap();
    assert!(out.is_empty() && !translation.is_committed() && translation.held() > 0);
    let failure = translation.finish(&mut out).unwrap_err();
    assert_eq!(failure.class, FailureClass::Unavailable);
    assert!(out.is_empty());
}

#[test]
fn the_report_has_what_the_server_says_alone() {
    let body = deltas(&[text("a")], "stop");
    let outcome =
        translated(&AnswerTerms { input_estimate: Some(9), ..terms(&[]) }, STREAM, body.as_bytes(), 9);
    let report = AnswerReport {
        stop_reason: Some("end_turn"),
        model: Some("m1".to_owned()),
        id: Some("c1".to_owned()),
        ..AnswerReport::default()
    };
    assert_eq!(outcome.report, report);
    let call = r#"{"tool_calls":[{"id":"a","function":{"name":"f","arguments":"{}"}}]}"#;
    let chunk = format!(
        r#"{{"model":"m","choices":[{{"delta":{call}}}],"usage":{{"prompt_tokens":5,"completion_tokens":2}}}}"#
    );
    let report =
        translated(&terms(&[]), STREAM, (events(&[chunk]) + "data: [DONE]\n\n").as_bytes(), 9).report;
    let usage = Usage { input: Some(5), output: Some(2), ..Usage::default() };
    assert_eq!((report.usage, report.has_called, report.stop_reason), (Some(usage), true, Some("tool_use")));
}

#[test]
fn other_types_and_dialects_are_not_translated() {
    for content_type in ["text/html", "", "application/x-ndjson", "text/plain"] {
        let failure = AnswerTranslation::new(terms(&[]), content_type).err().unwrap();
        assert_eq!(
            (failure.class, failure.is_of_request),
            (FailureClass::Translate, false),
            "{content_type}"
        );
    }
    for content_type in ["Application/JSON", "text/event-stream;charset=utf-8"] {
        assert!(AnswerTranslation::new(terms(&[]), content_type).is_ok(), "{content_type}");
    }
    let terms = AnswerTerms { agent: Dialect::OpenAIResponses, ..terms(&[]) };
    assert!(AnswerTranslation::new(terms, WHOLE).is_err());
}

#[test]
fn what_waits_is_bounded() {
    let mut small = terms(&[]);
    small.limits.body_bytes = 1000;
    let open = r#"{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{"}}]}"#.to_owned();
    let waiting = vec![text(&"x".repeat(100)); 11];
    let all: Vec<String> = [open].into_iter().chain(waiting).collect();
    let outcome = translated(&small, STREAM, deltas(&all, "stop").as_bytes(), 50);
    let (_, message) = check(&outcome.out, false).error.unwrap();
    assert!(
        message.contains("more of the answer waits than 1000 bytes (limits.decodedBodyBytes)"),
        "{message}"
    );
    // What is written does not wait.
    let long = vec![text(&"x".repeat(100)); 50];
    assert_eq!(seen(&small, STREAM, &deltas(&long, "stop")).text().len(), 5000);
}

#[test]
fn endless_white_space_is_bounded() {
    let mut small = terms(&[]);
    small.limits.body_bytes = 1000;
    let blanks = vec![text(&" ".repeat(100)); 11];
    let outcome = translated(&small, STREAM, deltas(&blanks, "stop").as_bytes(), 50);
    assert_eq!(outcome.result.unwrap_err().class, FailureClass::Translate);
}

#[test]
fn what_waits_is_counted_down_as_it_is_written() {
    let mut translation = begun(terms(&[]));
    let mut out = Vec::new();
    for delta in [
        r#"{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{"}}]}"#,
        r#"{"content":" t"}"#,
        r#"{"tool_calls":[{"index":1,"id":"b","function":{"name":"f","arguments":"{}"}}]}"#,
    ] {
        translation.write(&chunk(delta), &mut out).unwrap();
    }
    assert_eq!(translation.held(), 2 + 2);
    translation
        .write(&chunk(r#"{"tool_calls":[{"index":0,"function":{"arguments":"}"}}]}"#), &mut out)
        .unwrap();
    assert_eq!(translation.held(), 0);
}

#[test]
fn a_call_that_goes_on_behind_an_object_is_no_object() {
    let call = |arguments: &str| {
        format!(
            r#"{{"tool_calls":[{{"index":0,"id":"a","function":{{"name":"f","arguments":"{arguments}"}}}}]}}"#
        )
    };
    let all = [call("{}"), call("{}"), text("t")];
    let seen = seen_deltas(&[], &all, "stop");
    assert_eq!(
        seen.blocks[0],
        SeenBlock::Call { id: "a".to_owned(), name: "f".to_owned(), input: "{}{}".to_owned() }
    );
    let outcome = translated(&whole_terms(&[]), STREAM, deltas(&all, "stop").as_bytes(), 9);
    assert_eq!(outcome.result.unwrap_err().message, "the input of a call is no JSON object");
}

#[test]
fn the_order_in_which_transforms_are_written_does_not_matter() {
    let all = [
        r#"{"reasoning_details":[{"text":"r"}]}"#.to_owned(),
        text("<think>a</think> b"),
        r#"{"tool_calls":[{"index":0,"id":"a","function":{"name":"ExitTool","arguments":"{'response':'c',"}}]}"#.to_owned(),
    ];
    let mut transforms = vec![
        Transform::OpenRouter,
        Transform::ExtraThinkTag,
        Transform::ForceReasoning,
        Transform::Reasoning,
        Transform::EnhanceTool,
        Transform::ToolUse,
    ];
    let expected = translated(&terms(&transforms), STREAM, deltas(&all, "stop").as_bytes(), 7);
    let seen = check(&expected.out, false);
    assert_eq!((seen.thinking().as_str(), seen.text().as_str()), ("ra", "bc"));
    for _ in 0..transforms.len() {
        transforms.rotate_left(1);
        assert_eq!(translated(&terms(&transforms), STREAM, deltas(&all, "stop").as_bytes(), 7), expected);
    }
}

#[test]
fn a_tool_of_the_agent_that_is_called_exit_tool_is_a_tool() {
    let call = r#"{"tool_calls":[{"index":0,"id":"a","function":{"name":"ExitTool","arguments":"{\"response\":\"c\"}"}}]}"#;
    let own = AnswerTerms { has_exit_tool: false, ..terms(&[Transform::ToolUse]) };
    assert_eq!(seen(&own, STREAM, &deltas(&[call], "stop")).calls().len(), 1);
}
