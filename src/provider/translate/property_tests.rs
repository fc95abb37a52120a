//! Whatever a server sends, and however it is cut, the agent reads a valid answer, and always the same.

use proptest::prelude::*;

use super::Transform;
use super::testing::{STREAM, events, terms, translated, whole_terms};
use crate::provider::anthropic::checker::{check, check_whole};

/// A delta, of which pieces of calls lack what servers leave out.
fn delta() -> impl Strategy<Value = String> {
    let text = prop_oneof![
        Just("a".to_owned()),
        Just(" \\n".to_owned()),
        Just("<think>".to_owned()),
        Just("</think>".to_owned()),
        Just("<thi".to_owned()),
        "[a-z é<>]{0,6}"
    ];
    let arguments = prop_oneof![
        Just("{"),
        Just("}"),
        Just("{}"),
        Just(r#"\"x\":1"#),
        Just(""),
        Just(" "),
        Just("{'a':1,"),
        Just(r#"{\"response\":\"r\"}"#),
    ];
    let call = (
        prop::option::of(0..3_u8),
        prop::option::of(prop_oneof![Just("a"), Just("b"), Just(""), Just("1"), Just("x:y")]),
        prop::option::of(prop_oneof![Just("f"), Just("g"), Just(""), Just("ExitTool")]),
        prop::option::of(arguments),
    )
        .prop_map(|(index, id, name, arguments)| {
            let entry = |key: &str, value: Option<&str>| value.map(|value| format!(r#""{key}":"{value}""#));
            let function: Vec<String> =
                [entry("name", name), entry("arguments", arguments)].into_iter().flatten().collect();
            let function = format!(r#""function":{{{}}}"#, function.join(","));
            let index = index.map(|index| format!(r#""index":{index}"#));
            let call: Vec<String> = [index, entry("id", id), Some(function)].into_iter().flatten().collect();
            format!(r#"{{"tool_calls":[{{{}}}]}}"#, call.join(","))
        });
    prop_oneof![
        3 => text.clone().prop_map(|text| format!(r#"{{"content":"{text}"}}"#)),
        2 => text.clone().prop_map(|text| format!(r#"{{"reasoning":"{text}"}}"#)),
        1 => text.prop_map(|text| format!(r#"{{"refusal":"{text}"}}"#)),
        4 => call,
    ]
}

fn body(deltas: &[String], finish: Option<&str>, marker: bool) -> String {
    let chunk = |delta: &String| format!(r#"{{"choices":[{{"index":0,"delta":{delta}}}]}}"#);
    let mut chunks: Vec<String> = deltas.iter().map(chunk).collect();
    chunks.extend(
        finish.map(|finish| format!(r#"{{"choices":[{{"delta":{{}},"finish_reason":"{finish}"}}]}}"#)),
    );
    events(&chunks) + if marker { "data: [DONE]\n\n" } else { "" }
}

fn transforms() -> impl Strategy<Value = Vec<Transform>> {
    prop::sample::subsequence(
        vec![
            Transform::Reasoning,
            Transform::ExtraThinkTag,
            Transform::ForceReasoning,
            Transform::EnhanceTool,
            Transform::ToolUse,
        ],
        0..=5,
    )
}

proptest! {
    #[test]
    fn any_interleaving_is_a_valid_stream_and_any_split_gives_the_same(
        deltas in prop::collection::vec(delta(), 0..12),
        finish in prop::option::of(prop_oneof![Just("stop"), Just("length"), Just("tool_calls"), Just("content_filter"), Just("error")]),
        marker in any::<bool>(),
        transforms in transforms(),
        shows_thinking in any::<bool>(),
        piece in 1_usize..40,
    ) {
        let body = body(&deltas, finish, marker);
        let terms = super::AnswerTerms { shows_thinking, ..terms(&transforms) };
        let whole = translated(&terms, STREAM, body.as_bytes(), usize::MAX);
        check(&whole.out, false);
        prop_assert_eq!(&translated(&terms, STREAM, body.as_bytes(), piece), &whole);
        prop_assert_eq!(&translated(&terms, STREAM, body.as_bytes(), 1), &whole);
    }

    #[test]
    fn a_whole_answer_says_what_the_stream_says(
        deltas in prop::collection::vec(delta(), 0..12),
        transforms in transforms(),
    ) {
        let body = body(&deltas, Some("stop"), true);
        let whole = translated(&whole_terms(&transforms), STREAM, body.as_bytes(), 7);
        let stream = translated(&terms(&transforms), STREAM, body.as_bytes(), 7);
        if whole.result.is_ok() {
            let (whole, stream) = (check_whole(&whole.out), check(&stream.out, false));
            prop_assert_eq!(whole.text(), stream.text());
            prop_assert_eq!(whole.thinking(), stream.thinking());
            prop_assert_eq!(&whole.stop_reason, &stream.stop_reason);
            prop_assert_eq!(whole.calls().len(), stream.calls().len());
        }
    }

    #[test]
    fn any_bytes_end_in_an_error_or_an_answer(body in prop::collection::vec(any::<u8>(), 0..200), piece in 1_usize..20) {
        let outcome = translated(&terms(&[]), STREAM, &body, piece);
        check(&outcome.out, false);
        let whole = translated(&whole_terms(&[]), "application/json", &body, piece);
        prop_assert!(whole.result.is_err() || !whole.out.is_empty());
    }
}
