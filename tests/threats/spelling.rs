//! Keys in another case, which clients in Go, C# or Java may read: of inputs, of answers, of what a request offers.

use serde_json::{Value, json};

use super::model::{Model, NO_DELETE, assert_without, call, message, named};
use super::requests::{
    CHAT, CONVERSE, GEMINI, INVOKE, MESSAGES, RESPONSES, models, offering, own_tool, refused, said, untouched,
};
use crate::parity::anthropic::Anthropic;
use crate::parity::bedrock::{Converse, Invoke};
use crate::parity::chat::Chat;
use crate::parity::dialect::Mode::{self, Streamed, Whole};
use crate::parity::dialect::{Called, Dialect, Said};
use crate::parity::gemini;
use crate::parity::responses::Responses;

const UNPARSEABLE: &str = "postern/builtin/unparseable";

/// Asserts what becomes of a call with this input: it passes byte for byte, or is denied by this rule.
#[track_caller]
fn assert_judged(model: &Model, (id, tool): (&str, &str), input: &str, rule: Option<&str>) {
    let stream = named(&message(&[call(0, id, tool, &[input])], "tool_use"));
    if rule.is_none() {
        model.assert_passes(&Anthropic, Streamed, &stream);
    } else {
        assert_without(&model.ask(&Anthropic, Streamed, &stream), &[id]);
    }
    model.assert_verdict(id, rule);
}

/// D7: of two keys that fold to one parameter a client may read either: the call is denied. One key in another case is
/// judged as the parameter.
#[test]
fn a_parameter_in_another_case_is_judged_and_two_of_them_are_none() {
    let rules = [
        r"{name: no-force, kind: Shell, action: Deny, when: {param: command, operator: Matches, values: ['rm\s+-rf']}}",
        "{name: no-etc, kind: Read, action: Deny, when: {param: paths, operator: Within, values: [/etc]}}",
        "{name: no-task, tools: [plan], action: Deny, when: {param: options.task, operator: Contains, values: [bad]}}",
    ];
    let model = Model::under(&format!("tools: [{}]", rules.join(", ")));
    let (force, etc, task) = (Some("no-force"), Some("no-etc"), Some("no-task"));
    for (number, (tool, input, rule)) in [
        ("Bash", r#"{"command":"ls","COMMAND":"rm -rf /"}"#, Some(UNPARSEABLE)),
        ("Bash", r#"{"Command":"ls","COMMAND":"ls"}"#, Some(UNPARSEABLE)),
        ("Bash", r#"{"command":"ls","comm\u0061nd ":"rm -rf /"}"#, Some(UNPARSEABLE)),
        ("Bash", r#"{"COMMAND":"rm -rf /"}"#, force),
        ("Bash", r#"{"Command":["rm","-rf","/"]}"#, force),
        ("Bash", r#"{"COMMAND":"ls"}"#, None),
        (
            "Bash",
            r#"{"command":"ls","description":"a","Description":"b","env":{"PATH":"/a","path":"/b"}}"#,
            None,
        ),
        ("read_file", r#"{"file_path":"/w/a","f\u0131le_path":"/etc/shadow"}"#, Some(UNPARSEABLE)),
        (
            "read_file",
            r#"{"files":[{"path":"/w/a"},{"path":"/w/b","Path":"/etc/shadow"}]}"#,
            Some(UNPARSEABLE),
        ),
        ("read_file", r#"{"Files":[{"Path":"/etc/shadow"}]}"#, etc),
        ("read_file", r#"{"Files":[{"Path":"/w/a"}]}"#, None),
        ("plan", r#"{"options":{"task":"good","ta\u017f\u212a":"bad"}}"#, Some(UNPARSEABLE)),
        ("plan", r#"{"options":{"task":"good"},"OPTIONS":{"task":"bad"}}"#, Some(UNPARSEABLE)),
        ("plan", r#"{"Options":{"tas\u212a":"bad"}}"#, task),
        ("plan", r#"{"options":{"task":"good","Title":"a","title":"b"},"tasks":1,"Tasks":2}"#, None),
        ("Write", r#"{"file_path":"/w/a.rs","File_Path":"/w/.mcp.json","content":""}"#, Some(UNPARSEABLE)),
        (
            "Write",
            r#"{"FILE_PATH":"/w/.mcp.json","content":""}"#,
            Some("postern/builtin/agent-control-files"),
        ),
        ("Write", r#"{"FILE_PATH":"/w/a.rs","content":"","Content":""}"#, None),
        (
            "parallel",
            r#"{"Tool_Uses":[{"recipient_name":"Bash","parameters":{"command":"ls"}}]}"#,
            Some(UNPARSEABLE),
        ),
    ]
    .into_iter()
    .enumerate()
    {
        assert_judged(&model, (&format!("toolu_{number}_"), tool), input, rule);
    }
}

/// D7: for a rule that allows, a parameter in another case is missing: a client that compares keys exactly finds none.
#[test]
fn a_parameter_in_another_case_allows_nothing() {
    let model = Model::under(
        "toolDefault: Deny\ntools: [{name: only-ls, kind: Shell, action: Allow, when: {param: command, operator: Equals, values: [ls]}}, \
         {name: soft, tools: [plan], action: Allow, when: {param: force, operator: NotExists}}]",
    );
    for (number, (tool, input, verdict, rule)) in [
        ("Bash", r#"{"command":"ls"}"#, "Allow", "agents/test/only-ls"),
        ("Bash", r#"{"COMMAND":"ls"}"#, "Deny", "agents/test/toolDefault"),
        ("Bash", r#"{"command":"ls","COMMAND":"ls"}"#, "Deny", UNPARSEABLE),
        ("plan", r#"{"Title":"a"}"#, "Allow", "agents/test/soft"),
        ("plan", r#"{"FORCE":true}"#, "Deny", "agents/test/toolDefault"),
    ]
    .into_iter()
    .enumerate()
    {
        let id = format!("toolu_{number}_");
        let stream = named(&message(&[call(0, &id, tool, &[input])], "tool_use"));
        if verdict == "Allow" {
            model.assert_passes(&Anthropic, Streamed, &stream);
        } else {
            assert_without(&model.ask(&Anthropic, Streamed, &stream), &[&id]);
        }
        assert_eq!(model.verdict(&id), (verdict.to_owned(), rule.to_owned()), "{tool} {input}");
    }
}

/// The keys of each dialect on the way to a call.
const ANSWERS: [(&dyn Dialect, Mode, &[&str]); 8] = [
    (
        &Anthropic,
        Streamed,
        &["type", "content_block", "index", "id", "name", "delta", "partial_json", "message"],
    ),
    (&Anthropic, Whole, &["content", "type", "id", "name", "input"]),
    (&Chat, Streamed, &["choices", "delta", "tool_calls", "index", "id", "function", "name", "arguments"]),
    (&Chat, Whole, &["choices", "message", "tool_calls", "id", "function", "name", "arguments"]),
    (
        &Responses,
        Streamed,
        &["type", "output_index", "item", "call_id", "name", "arguments", "response", "output"],
    ),
    (&gemini::Sse, Streamed, &["candidates", "content", "parts", "functionCall", "id", "name", "args"]),
    (&Converse, Whole, &["output", "message", "content", "toolUse", "toolUseId", "name", "input"]),
    (&Invoke, Whole, &["content", "type", "id", "name", "input"]),
];

/// D7: no call hides under a key in another case, alone or beside the one that is read: such an answer ends.
#[test]
fn a_key_of_an_answer_in_another_case_ends_it() {
    let model = Model::under(NO_DELETE);
    for (dialect, mode, keys) in ANSWERS {
        let body = |name: &'static str| {
            let input = r#"{"place":"a-secret-place"}"#;
            let called = Called { id: "call_1".to_owned(), namespace: None, name, input };
            let body = dialect.answer(&Said { text: "so", calls: vec![called] }, mode).concat();
            String::from_utf8(body).unwrap()
        };
        model.assert_passes(dialect, mode, body("get_weather"));
        for key in keys {
            let (plain, other) = (format!("\"{key}\":"), format!("\"{}\":", capital(key)));
            let alone = body("delete_file").replace(&plain, &other);
            assert_ne!(alone, body("delete_file"), "{key}");
            assert_without(&model.ask(dialect, mode, &alone), &["call_1", "a-secret-place"]);
            for beside in [format!("{other}null,{plain}"), format!("{other}\"x\",{plain}")] {
                let beside = body("get_weather").replace(&plain, &beside);
                let answer = model.ask(dialect, mode, &beside);
                assert!(!answer.text().contains(&other), "{key}: {}", answer.text());
            }
        }
    }
}

fn capital(key: &str) -> String {
    let (first, rest) = key.split_at(1);
    format!("{}{rest}", first.to_uppercase())
}

/// D7: what a request offers, under keys that servers in Go read, is refused in every dialect.
#[test]
fn a_key_of_an_offered_tool_in_another_case_is_refused() {
    let test = models("");
    let beside = |own: &str| format!("{{\"Type\":\"web_search\",{}", &own[1..]);
    let web = "web_search_20250305";
    test.assert_rows(&[
        untouched(CHAT, offering(CHAT, &[own_tool(CHAT)])),
        refused(CHAT, offering(CHAT, &[&beside(own_tool(CHAT))]), UNPARSEABLE),
        refused(CHAT, offering(CHAT, &[r#"{"TYPE":"web_search"}"#]), UNPARSEABLE),
        untouched(RESPONSES, offering(RESPONSES, &[own_tool(RESPONSES)])),
        refused(RESPONSES, offering(RESPONSES, &[&beside(own_tool(RESPONSES))]), UNPARSEABLE),
        refused(RESPONSES, offering(RESPONSES, &[r#"{"TYPE":"web_search"}"#]), UNPARSEABLE),
        refused(
            RESPONSES,
            offering(RESPONSES, &[r#"{"type":"namespace","name":"n","Tools":[{"type":"web_search"}]}"#]),
            UNPARSEABLE,
        ),
        refused(
            RESPONSES,
            r#"{"model":"gpt-5","store":false,"input":[{"type":"additional_tools","Tools":[{"type":"web_search"}]}]}"#,
            UNPARSEABLE,
        ),
        untouched(MESSAGES, offering(MESSAGES, &[own_tool(MESSAGES)])),
        refused(MESSAGES, offering(MESSAGES, &[&beside(own_tool(MESSAGES))]), UNPARSEABLE),
        refused(MESSAGES, offering(MESSAGES, &[&format!(r#"{{"TYPE":"{web}","name":"x"}}"#)]), UNPARSEABLE),
        refused(INVOKE, offering(INVOKE, &[&beside(own_tool(INVOKE))]), UNPARSEABLE),
        untouched(CONVERSE, offering(CONVERSE, &[own_tool(CONVERSE)])),
        refused(
            CONVERSE,
            said(CONVERSE, r#""toolConfig":{"Tools":[{"systemTool":{"name":"nova_grounding"}}]},"#),
            UNPARSEABLE,
        ),
        untouched(GEMINI, offering(GEMINI, &[own_tool(GEMINI)])),
        refused(GEMINI, said(GEMINI, r#""Tools":[{"googleSearch":{}}],"#), UNPARSEABLE),
        refused(GEMINI, offering(GEMINI, &[r#"{"functionDeclarations":[{"name":"x","Name":"y"}]}"#]), UNPARSEABLE),
    ]);
}

/// A response with a text and these events and items of calls, in the order of its numbers.
pub(super) fn response_with(events: &[Value], item: &Value) -> String {
    let mut all = crate::parity::responses::events(&Said { text: "so", calls: Vec::new() });
    let last = all.len() - 1;
    all[last]["response"]["output"].as_array_mut().unwrap().push(item.clone());
    all.splice(last..last, events.iter().cloned());
    for (number, event) in all.iter_mut().enumerate() {
        event["sequence_number"] = json!(number);
    }
    named(&all)
}
