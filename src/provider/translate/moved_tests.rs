//! A moved request differs from the agent's in the named edits alone.

use super::{MessagesServer, MovedTerms, has_own_thinking, moved_chat, moved_messages, moved_responses};
use crate::wire::json::{Document, Limits};

const PLAIN: MovedTerms<'_> = MovedTerms { model: None, max_tokens: None, params: "" };
const OTHER: MovedTerms<'_> = MovedTerms { model: Some("qwen"), ..PLAIN };

/// What a body of Messages becomes; none where it stays as it is.
fn messages(body: &str, terms: MovedTerms<'_>, server: MessagesServer) -> Option<String> {
    let document = Document::parse(body.as_bytes(), Limits::default()).unwrap();
    let moved = moved_messages(&document, &terms, server).unwrap();
    moved.body.map(|body| String::from_utf8(body).unwrap())
}

#[test]
fn the_model_is_replaced_and_every_other_byte_stays() {
    let body = r#"{ "messages" : [ ], "model" : "claude", "max_tokens":1.0e1 }"#;
    let moved = r#"{ "messages" : [ ], "model" : "qwen", "max_tokens":1.0e1 }"#;
    for server in [MessagesServer::Anthropic, MessagesServer::Other] {
        assert_eq!(messages(body, OTHER, server).unwrap(), moved);
        assert_eq!(messages(body, PLAIN, server), None);
        assert_eq!(messages(body, MovedTerms { model: Some("claude"), ..PLAIN }, server), None);
    }
    let named = messages("{}", OTHER, MessagesServer::Other).unwrap();
    assert_eq!(named, r#"{"model":"qwen"}"#, "a body may leave the model to its path");
}

#[test]
fn params_are_put_where_the_body_has_no_such_key() {
    let terms = MovedTerms { params: r#"{"temperature":0.30,"top_k":5,"seed":[1, 2]}"#, ..PLAIN };
    let body = r#"{"temperature":null,"top_k":1 }"#;
    let moved = r#"{"temperature":null,"top_k":1,"seed":[1, 2] }"#;
    assert_eq!(messages(body, terms, MessagesServer::Other).unwrap(), moved);
    let document = Document::parse(b"{}", Limits::default()).unwrap();
    assert!(moved_chat(&document, &MovedTerms { params: "[]", ..PLAIN }).is_err());
}

#[test]
fn limits_are_lowered_and_never_raised_or_added() {
    let terms = MovedTerms { max_tokens: Some(100), ..PLAIN };
    for (before, after) in [
        ("101", Some("100")),
        ("100", None),
        ("1", None),
        ("1e9", Some("100")),
        ("99999999999999999999999", Some("100")),
        ("-1", None),
        ("null", None),
        ("\"101\"", None),
    ] {
        let of = |key: &str, number: &str| format!(r#"{{"{key}":{number}}}"#);
        let body = of("max_tokens", before);
        assert_eq!(
            messages(&body, terms, MessagesServer::Other),
            after.map(|after| of("max_tokens", after)),
            "{body}"
        );
        for key in ["max_tokens", "max_completion_tokens"] {
            let body = of(key, before);
            let document = Document::parse(body.as_bytes(), Limits::default()).unwrap();
            let moved = moved_chat(&document, &terms).unwrap();
            assert_eq!(moved.body, after.map(|after| of(key, after).into_bytes()), "{body}");
            assert_eq!(moved.notes.count("max_tokens"), u32::from(after.is_some()));
        }
        let body = of("max_output_tokens", before);
        let document = Document::parse(body.as_bytes(), Limits::default()).unwrap();
        let moved = moved_responses(&document, &terms).unwrap().body;
        assert_eq!(moved, after.map(|after| of("max_output_tokens", after).into_bytes()), "{body}");
    }
    assert_eq!(messages("{}", terms, MessagesServer::Other), None);
}

/// A conversation in which this gateway signed some of the thinking.
const THOUGHT: &str = r#"{"model":"claude","messages":[{"role":"user","content":"a"},{"role":"assistant","content":[{"type":"thinking","thinking":"x","signature":"postern.1.coder.00"}, {"type":"text","text":"b"}, {"type":"thinking","thinking":"y","signature":"EpwI"}]},{"role":"user","content":"c"},{"role":"assistant","content":[{"type":"thinking","thinking":"z","signature":"postern.1.coder.00"}]},{"role":"assistant","content":[{"type":"redacted_thinking","data":"d"}]},{"role":"user","content":[{"type":"text","text":"thinking"}]}]}"#;

#[test]
fn our_thinking_is_cut_for_anthropics_own_and_an_emptied_turn_says_so() {
    let moved = r#"{"model":"claude","messages":[{"role":"user","content":"a"},{"role":"assistant","content":[{"type":"text","text":"b"}, {"type":"thinking","thinking":"y","signature":"EpwI"}]},{"role":"user","content":"c"},{"role":"assistant","content":[{"type":"text","text":"(no content)"}]},{"role":"assistant","content":[{"type":"redacted_thinking","data":"d"}]},{"role":"user","content":[{"type":"text","text":"thinking"}]}]}"#;
    assert_eq!(messages(THOUGHT, PLAIN, MessagesServer::Anthropic).unwrap(), moved);
    assert_eq!(messages(moved, PLAIN, MessagesServer::Anthropic), None);
    let has_any =
        |body: &str| has_own_thinking(&Document::parse(body.as_bytes(), Limits::default()).unwrap());
    assert_eq!((has_any(THOUGHT), has_any(moved), has_any("[]")), (true, false, false));
}

#[test]
fn all_thinking_is_cut_for_anthropics_own_where_the_model_is_another() {
    let moved = r#"{"model":"qwen","messages":[{"role":"user","content":"a"},{"role":"assistant","content":[{"type":"text","text":"b"}]},{"role":"user","content":"c"},{"role":"assistant","content":[{"type":"text","text":"(no content)"}]},{"role":"assistant","content":[{"type":"text","text":"(no content)"}]},{"role":"user","content":[{"type":"text","text":"thinking"}]}]}"#;
    assert_eq!(messages(THOUGHT, OTHER, MessagesServer::Anthropic).unwrap(), moved);
}

#[test]
fn other_servers_get_the_thinking_and_no_billing_line() {
    assert_eq!(messages(THOUGHT, PLAIN, MessagesServer::Other), None);
    let line = "x-anthropic-billing-header: cch=abcde;";
    for (before, after) in [
        (
            format!(
                r#"{{"system":[{{"type":"text","text":"{line}"}}, {{"type":"text","text":"a"}}],"x":1}}"#
            ),
            r#"{"system":[{"type":"text","text":"a"}],"x":1}"#,
        ),
        (format!(r#"{{"system":[{{"type":"text","text":"{line}"}}],"x":1}}"#), r#"{"x":1}"#),
        (format!(r#"{{"system":"{line}\nYou \u0061re.","x":1}}"#), r#"{"system":"You \u0061re.","x":1}"#),
        (format!(r#"{{"system":"{line}","x":1}}"#), r#"{"x":1}"#),
    ] {
        assert_eq!(messages(&before, PLAIN, MessagesServer::Other).unwrap(), after);
        assert_eq!(messages(&before, PLAIN, MessagesServer::Anthropic), None, "its own have a use for it");
    }
    let inside = format!(r#"{{"system":"a {line}"}}"#);
    assert_eq!(messages(&inside, PLAIN, MessagesServer::Other), None);
}

#[test]
fn a_body_with_two_readings_is_not_moved() {
    for body in ["[]", r#"{"model":"a","model":"b"}"#] {
        let document = Document::parse(body.as_bytes(), Limits::default()).unwrap();
        assert!(moved_chat(&document, &OTHER).is_err(), "{body}");
    }
}
