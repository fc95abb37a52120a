//! Tests of the results of tools that are found in each dialect.

use super::*;
use crate::call::{Api, Dialect, Service, Vendor};
use crate::provider::request::testing::Open;
use crate::wire::json::Limits;

/// The results of a request: the tool, its call's id, the text, and whether it is an error.
type Found = Vec<(String, String, String, bool)>;

fn with<T>(dialect: Dialect, api: Api, path: &str, body: &str, see: impl FnOnce(ToolResults<'_>) -> T) -> T {
    let service = Service { vendor: Vendor::Custom, api, dialect: Some(dialect) };
    let head = ModelRequestHead { service, path, query: None, is_subscription: false };
    let document = Document::parse(body.as_bytes(), Limits::default()).unwrap();
    see(ToolResults::find(crate::provider::adapter(dialect), &head, &document, &Open, &[]))
}

fn found(dialect: Dialect, api: Api, path: &str, body: &str) -> Found {
    with(dialect, api, path, body, |results| {
        let shown = results.iter().map(|(result, call)| {
            let name = call.map(|call| call.name.to_string()).unwrap_or_default();
            let id = call.and_then(|call| call.id.as_deref()).unwrap_or_default().to_owned();
            (name, id, result.text.text().unwrap().into_owned(), result.is_error)
        });
        shown.collect()
    })
}

fn row(name: &str, id: &str, text: &str, is_error: bool) -> (String, String, String, bool) {
    (name.to_owned(), id.to_owned(), text.to_owned(), is_error)
}

const ANTHROPIC: &str = r#"{"model":"m","messages":[
    {"role":"user","content":[{"type":"text","text":"begin","cache_control":{"type":"ephemeral"}}]},
    {"role":"assistant","content":[{"type":"tool_use","id":"t1","name":"Bash","input":{}},
        {"type":"tool_use","id":"t2","name":"Read","input":{}},
        {"type":"server_tool_use","id":"s","name":"web_search","input":{}},
        {"type":"web_search_tool_result","tool_use_id":"s","content":[{"type":"text","text":"theirs"}]}]},
    {"role":"user","content":[
        {"type":"tool_result","tool_use_id":"t1","content":"out","is_error":true},
        {"type":"tool_result","tool_use_id":"t2","content":[{"type":"text","text":"one"},
            {"type":"image","source":{"type":"base64","data":""}},{"type":"text","text":"two"}]},
        {"type":"tool_result","tool_use_id":"gone","content":"of no call"},
        {"type":"text","text":"said"}]}]}"#;

#[test]
fn results_of_messages_are_texts_of_the_agents_own_tools() {
    assert_eq!(
        found(Dialect::Anthropic, Api::Messages, "/v1/messages", ANTHROPIC),
        [
            row("Bash", "t1", "out", true),
            row("Read", "t2", "one", false),
            row("Read", "t2", "two", false),
            row("", "", "of no call", false),
        ]
    );
}

#[test]
fn results_of_chat_completions_are_messages_of_the_role_tool() {
    let body = r#"{"model":"m","messages":[{"role":"system","content":"s"},{"role":"user","content":"begin"},
        {"role":"assistant","content":null,"tool_calls":[
            {"id":"c1","type":"function","function":{"name":"bash","arguments":"{}"}}]},
        {"role":"tool","tool_call_id":"c1","content":"out"},
        {"role":"tool","tool_call_id":"c1","content":[{"type":"text","text":"part"}]}]}"#;
    assert_eq!(
        found(Dialect::OpenAIChat, Api::ChatCompletions, "/v1/chat/completions", body),
        [row("bash", "c1", "out", false), row("bash", "c1", "part", false)]
    );
}

#[test]
fn results_of_responses_are_outputs_of_calls_of_the_client() {
    let body = r#"{"model":"m","input":[{"role":"user","content":"begin"},
        {"type":"function_call","call_id":"f","name":"exec_command","arguments":"{}"},
        {"type":"function_call_output","call_id":"f","output":"out"},
        {"type":"function_call_output","call_id":"f","output":[{"type":"input_text","text":"part"},
            {"type":"input_image","image_url":"data:,"}]},
        {"type":"shell_call","call_id":"s","action":{"commands":["ls"]}},
        {"type":"shell_call_output","call_id":"s","output":[{"stdout":"o","stderr":"e","outcome":{"type":"exit"}}]},
        {"type":"custom_tool_call","call_id":"c","name":"apply_patch","input":"p"},
        {"type":"custom_tool_call_output","call_id":"c","output":"done"},
        {"type":"mcp_call","id":"m","name":"n","arguments":"{}","output":"theirs"}]}"#;
    assert_eq!(
        found(Dialect::OpenAIResponses, Api::Responses, "/v1/responses", body),
        [
            row("exec_command", "f", "out", false),
            row("exec_command", "f", "part", false),
            row("shell", "s", "o", false),
            row("shell", "s", "e", false),
            row("apply_patch", "c", "done", false),
        ]
    );
}

#[test]
fn results_of_gemini_are_four_members_of_a_response() {
    let body = r#"{"contents":[{"role":"user","parts":[{"text":"begin"}]},
        {"role":"model","parts":[{"functionCall":{"name":"run_shell_command","args":{}}},
            {"functionCall":{"id":"g","name":"read_file","args":{}}}]},
        {"role":"user","parts":[
            {"functionResponse":{"name":"run_shell_command","response":{"output":"out","exit":"0"}}},
            {"function_response":{"id":"g","name":"read_file","response":{"error":"none","content":[{"text":"c"}]}}},
            {"toolResponse":{"response":{"output":"theirs"}}}]}]}"#;
    assert_eq!(
        found(Dialect::Gemini, Api::GenerateContent, "/v1beta/models/gemini-2.5-pro:generateContent", body),
        [
            row("run_shell_command", "", "out", false),
            row("read_file", "g", "none", true),
            row("read_file", "g", "c", false)
        ]
    );
}

#[test]
fn results_of_bedrock_are_texts_whatever_else_stands_beside_them() {
    let body = r#"{"messages":[{"role":"user","content":[{"text":"begin"}]},
        {"role":"assistant","content":[{"toolUse":{"toolUseId":"b","name":"bash","input":{}}}]},
        {"role":"user","content":[{"toolResult":{"toolUseId":"b","status":"error","content":[{"text":"out"},
            {"json":{"text":"no text"}}]}}]}]}"#;
    let expected = [row("bash", "b", "out", true)];
    assert_eq!(found(Dialect::Bedrock, Api::Converse, "/model/amazon.nova-pro/converse", body), expected);
    let invoke = ANTHROPIC.replace("\"model\":\"m\"", "\"anthropic_version\":\"bedrock-2023-05-31\"");
    assert_eq!(
        found(Dialect::Bedrock, Api::InvokeModel, "/model/anthropic.claude-3/invoke", &invoke).len(),
        4
    );
}

#[test]
fn a_conversation_is_known_by_what_was_said_before_the_model_spoke() {
    let opening =
        |body: &str| with(Dialect::Anthropic, Api::Messages, "/v1/messages", body, |results| results.opening);
    let first = r#"{"model":"other","system":"new","messages":[{"role":"user","content":"begin"}]}"#;
    assert_eq!(opening(ANTHROPIC), opening(first), "cache marks, system prompt and later turns do not count");
    assert_ne!(opening(first), opening(&first.replace("begin", "begun")));
}

#[test]
fn where_the_provider_may_drop_what_is_earlier_it_is_said() {
    let forgets = |members: &str| {
        let body = format!(r#"{{"model":"m",{members}"input":[]}}"#);
        with(Dialect::OpenAIResponses, Api::Responses, "/v1/responses", &body, |results| results.may_forget)
    };
    for (members, may) in [
        ("", false),
        (r#""previous_response_id":"r","#, true),
        (r#""previous_response_id":null,"#, false),
        (r#""conversation":{"id":"c"},"#, true),
        (r#""thread":"t","#, true),
        (r#""truncation":"auto","#, true),
        (r#""truncation":"disabled","#, false),
        (r#""context_management":[{"type":"compaction"}],"#, true),
        (r#""context_management":{"edits":[{"type":"clear_tool_uses_20250919"}]},"#, true),
        (r#""context_management":{"edits":[{"type":"clear_thinking_20251015","keep":"all"}]},"#, false),
    ] {
        assert_eq!(forgets(members), may, "{members}");
    }
}
