//! What a request says of itself, beside what the tests of whole translations compare.

use crate::call::turn::prompt::{AssistantPart, Content, Effort, Prompt, ToolChoice, Turn, UserPart};
use crate::wire::json::{Document, Limits};

use super::prompt;

fn read<R>(body: &str, check: impl FnOnce(Prompt<'_>) -> R) -> R {
    let document = Document::parse(body.as_bytes(), Limits::default()).unwrap();
    check(prompt(&document).unwrap())
}

#[test]
fn thinking_is_asked_for_unless_it_is_disabled() {
    for (body, asks, budget) in [
        (r#"{"thinking":{"type":"enabled","budget_tokens":1024}}"#, true, Some(1024)),
        (r#"{"thinking":{"type":"adaptive"}}"#, true, None),
        (r#"{"thinking":{"type":"disabled"}}"#, false, None),
        (r#"{"thinking":null}"#, false, None),
        ("{}", false, None),
    ] {
        read(body, |prompt| assert_eq!((prompt.asks_for_thinking, prompt.thinking_budget), (asks, budget)));
    }
}

#[test]
fn efforts_are_read_and_unknown_ones_are_above_high() {
    for (word, effort) in
        [("low", Effort::Low), ("medium", Effort::Medium), ("high", Effort::High), ("max", Effort::Above)]
    {
        let body = format!(r#"{{"output_config":{{"effort":"{word}"}}}}"#);
        read(&body, |prompt| assert_eq!(prompt.effort, Some(effort)));
    }
}

#[test]
fn the_conversation_is_read_in_its_order_wherever_its_tools_stand() {
    let body = r#"{"messages":[{"role":"user","content":[{"type":"tool_reference","tool_name":"Late"}]},
        {"role":"assistant","content":[{"type":"thinking","thinking":"hm","signature":"postern.1.a.b.ff"},
         {"type":"tool_use","id":"t","name":"Late","input":{},"caller":{"type":"direct"}}]}],
        "tool_choice":{"type":"tool","name":"Late"},
        "tools":[{"name":"Late","defer_loading":true,"input_schema":{}}]}"#;
    read(body, |prompt| {
        assert_eq!(prompt.tools.len(), 1, "the search found it");
        assert_eq!(prompt.choice, Some(ToolChoice::Tool("Late".into())));
        let [Turn::User(user), Turn::Assistant(assistant)] = &*prompt.turns else { panic!() };
        assert!(matches!(&**user, [UserPart::Content(Content::Available(name))] if name == "Late"));
        let [AssistantPart::Thinking(thinking), AssistantPart::Call(call)] = &**assistant else { panic!() };
        assert_eq!((thinking.signer(), &*call.name, call.input), (Some("a.b"), "Late", "{}"));
        assert!(prompt.notes.is_empty());
    });
}

#[test]
fn nothing_of_a_request_is_shown_when_it_is_printed_or_refused() {
    let body = r#"{"system":"secret","messages":[{"role":"user","content":"secret"},{"role":"assistant",
        "content":[{"type":"tool_use","id":"secret","name":"A","input":{"p":"secret"}}]}]}"#;
    read(body, |prompt| assert!(!format!("{prompt:?}").contains("secret")));
    let document = Document::parse(br#"{"secret":1,"messages":"secret"}"#, Limits::default()).unwrap();
    assert!(!format!("{:?}", prompt(&document).unwrap_err()).contains("secret"));
}
