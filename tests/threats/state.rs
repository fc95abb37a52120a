//! What providers keep: background work, stored conversations, prompts, containers, and the configuration in them.

use crate::providers::inspected;

use super::requests::{
    CHAT, CONVERSE, DIALECTS, GEMINI, INVOKE, MESSAGES, RESPONSES, Row, becomes, models, offering, own_tool,
    refused, said, untouched,
};

const STATE: &str = "postern/builtin/provider-state";
const PROMPT: &str = "bedrock-runtime.us-east-1.amazonaws.com/model/arn%3Aaws%3Abedrock%3Aus-east-1%3A1%3Aprompt%2FP1/converse";
const PROFILE: &str = "bedrock-runtime.us-east-1.amazonaws.com/model/arn%3Aaws%3Abedrock%3Aus-east-1%3A1%3Ainference-profile%2FP1/converse";

/// Requests that go on from what the provider keeps, or leave something there that no edit could spare.
fn kept() -> Vec<(&'static str, String)> {
    vec![
        (RESPONSES, said(RESPONSES, r#""background":true,"#)),
        (RESPONSES, said(RESPONSES, r#""previous_response_id":"resp_0","#)),
        (RESPONSES, said(RESPONSES, r#""conversation":"conv_1","#)),
        (RESPONSES, said(RESPONSES, r#""conversation":{"id":"conv_1"},"#)),
        (RESPONSES, said(RESPONSES, r#""prompt":{"id":"pmpt_1","version":"2"},"#)),
        (
            RESPONSES,
            r#"{"model":"m","store":false,"input":[{"type":"item_reference","id":"msg_1"}]}"#.to_owned(),
        ),
        (RESPONSES, r#"{"model":"m","store":false,"input":[{"id":"msg_1"}]}"#.to_owned()),
        ("api.x.ai/v1/chat/completions", said(CHAT, r#""deferred":true,"#)),
        (GEMINI, said(GEMINI, r#""cachedContent":"cachedContents/c1","#)),
        (GEMINI, said(GEMINI, r#""cached_content":"cachedContents/c1","#)),
        (CONVERSE, said(CONVERSE, r#""promptVariables":{"a":{"text":"b"}},"#)),
    ]
}

/// E3: work in the background is refused where it is asked for, and so is every way to its result.
#[test]
fn no_background_work_is_begun_and_none_is_read() {
    let test = models("");
    test.assert_rows(&[
        refused(RESPONSES, said(RESPONSES, r#""background":true,"#), STATE),
        refused(RESPONSES, said(RESPONSES, r#""background":"true","#), STATE),
        refused(RESPONSES, said(RESPONSES, r#""background":1,"#), STATE),
        untouched(RESPONSES, said(RESPONSES, r#""background":false,"#)),
        untouched(RESPONSES, said(RESPONSES, r#""background":null,"#)),
    ]);
    let doors = inspected(&["api.openai.com", "api.x.ai", "bedrock-runtime.us-east-1.amazonaws.com"]);
    doors.assert_closed(&[
        "GET api.openai.com/v1/responses/resp_1",
        "GET api.openai.com/v1/responses/resp_1?stream=true&starting_after=3",
        "POST api.openai.com/v1/responses/resp_1/cancel",
        "GET api.x.ai/v1/chat/deferred-completion/r1",
        "POST bedrock-runtime.us-east-1.amazonaws.com/async-invoke",
    ]);
    doors.assert_open(&["POST api.openai.com/v1/responses"]);
}

/// E4: what would begin a conversation at the provider begins none, and nothing goes on from one.
#[test]
fn no_conversation_is_kept_at_the_provider() {
    let test = models("");
    let mut rows: Vec<Row> = kept().into_iter().map(|(door, sent)| refused(door, sent, STATE)).collect();
    rows.extend([
        becomes(RESPONSES, r#"{"model":"m","input":"go"}"#, r#"{"model":"m","input":"go","store":false}"#),
        becomes(
            RESPONSES,
            r#"{"model":"m","store":true,"input":"go"}"#,
            r#"{"model":"m","store":false,"input":"go"}"#,
        ),
        becomes(
            RESPONSES,
            r#"{"model":"m","store":null,"input":"go"}"#,
            r#"{"model":"m","store":false,"input":"go"}"#,
        ),
        untouched(RESPONSES, r#"{"model":"m","store":false,"input":"go"}"#),
        becomes(CHAT, said(CHAT, r#""store":true,"metadata":{"a":"b"},"#), said(CHAT, r#""store":false,"#)),
        untouched(CHAT, said(CHAT, r#""store":false,"#)),
        untouched(CHAT, said(CHAT, "")),
        becomes(MESSAGES, said(MESSAGES, r#""thread":{"type":"create"},"#), said(MESSAGES, "")),
        becomes(GEMINI, said(GEMINI, r#""store":true,"#), said(GEMINI, r#""store":false,"#)),
    ]);
    rows.extend(DIALECTS.map(|door| untouched(door, offering(door, &[own_tool(door)]))));
    test.assert_rows(&rows);
}

/// E4: a refusal has the form after which each client sends the whole conversation.
#[test]
fn a_conversation_that_goes_on_is_refused_as_clients_recover_from() {
    let test = models("");
    for (thread, what) in [
        (r#"{"type":"continue","previous_message_id":"msg_0"}"#, "continue"),
        (r#"{"type":"create","previous_message_id":"msg_0"}"#, "create, of one that is there"),
        (r#"{"type":"of_next_month"}"#, "unknown"),
    ] {
        let asked = test.post(MESSAGES, said(MESSAGES, &format!(r#""thread":{thread},"#)));
        assert_eq!(asked.answer.status, 400, "{what}");
        assert_eq!(asked.answer.json()["error"]["type"], "invalid_request_error", "{what}");
        assert_eq!(
            asked.answer.json()["error"]["details"]["error_code"],
            "thread_unsupported_request",
            "{what}"
        );
        assert!(asked.reached.is_empty(), "{what}");
        test.assert_denial_is_told(&asked, STATE);
    }
    let asked = test.post(RESPONSES, said(RESPONSES, r#""previous_response_id":"resp_0","#));
    assert_eq!(
        (asked.answer.status, &asked.answer.json()["error"]["code"]),
        (400, &"previous_response_not_found".into())
    );

    // As the clients do then.
    let whole = r#"{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"a"},{"role":"assistant","content":"b"},{"role":"user","content":"c"}]}"#;
    let all = r#"{"model":"m","store":false,"input":[{"role":"user","content":"a"},{"role":"assistant","content":"b"},{"role":"user","content":"c"}]}"#;
    test.assert_rows(&[untouched(MESSAGES, whole), untouched(RESPONSES, all)]);
}

/// E4: where policy allows state, all of it goes on as it was sent.
#[test]
fn state_is_kept_where_policy_allows_it() {
    let test = models("providerState: Allow");
    let mut rows: Vec<Row> = kept().into_iter().map(|(door, sent)| untouched(door, sent)).collect();
    rows.extend([
        untouched(RESPONSES, r#"{"model":"m","input":"go"}"#),
        untouched(CHAT, said(CHAT, r#""store":true,"metadata":{"a":"b"},"#)),
        untouched(MESSAGES, said(MESSAGES, r#""thread":{"type":"create"},"#)),
        untouched(MESSAGES, said(MESSAGES, r#""thread":{"type":"continue","previous_message_id":"msg_0"},"#)),
        untouched(GEMINI, said(GEMINI, r#""store":true,"#)),
        // What it opens is state, not tools.
        becomes(
            RESPONSES,
            offering(RESPONSES, &[r#"{"type":"web_search"}"#, own_tool(RESPONSES)]),
            offering(RESPONSES, &[own_tool(RESPONSES)]),
        ),
        // Its tools may be among what is kept.
        becomes(
            RESPONSES,
            said(RESPONSES, r#""previous_response_id":"resp_0","tools":[{"type":"web_search"}],"#),
            said(RESPONSES, r#""previous_response_id":"resp_0","#),
        ),
    ]);
    test.assert_rows(&rows);
}

/// E5: configuration that is kept at the provider can hold tools that nobody sees: it is neither made nor used.
#[test]
fn no_configuration_that_is_kept_at_the_provider_is_used() {
    let test = models("");
    let upload = r#"{"role":"user","content":[{"type":"container_upload","file_id":"file_1"},{"type":"text","text":"go"}]}"#;
    let text = r#"{"role":"user","content":[{"type":"text","text":"[postern] A file for a container stood here; containers are not available."},{"type":"text","text":"go"}]}"#;
    let messages = |message: &str| format!(r#"{{"model":"m","messages":[{message}]}}"#);
    let openrouter = "openrouter.ai/api/v1/chat/completions";
    let mistral = "api.mistral.ai/v1/chat/completions";
    let mut rows = vec![
        refused(RESPONSES, said(RESPONSES, r#""prompt":{"id":"pmpt_1"},"#), STATE),
        refused(PROMPT, said(CONVERSE, ""), "endpoint"),
        untouched(PROFILE, said(CONVERSE, "")),
        refused(openrouter, said(CHAT, r#""preset":"p","#), "hosted-tools"),
        refused(openrouter, r#"{"model":"@preset/p","messages":[]}"#, "hosted-tools"),
        refused(openrouter, r#"{"model":"openai/gpt-5@preset/p","messages":[]}"#, "hosted-tools"),
        refused(mistral, said(CHAT, r#""agent_id":"ag_1","#), "hosted-tools"),
        becomes(MESSAGES, messages(upload), messages(text)),
    ];
    for door in [MESSAGES, INVOKE] {
        let skills = r#""container":{"id":"c1","skills":[{"type":"custom","skill_id":"s1"}]},"#;
        rows.push(becomes(door, said(door, skills), said(door, "")));
        rows.push(becomes(door, said(door, r#""container":"container_1","#), said(door, "")));
    }
    for tool in [
        r#"{"type":"file_search","vector_store_ids":["vs_1"]}"#,
        r#"{"type":"code_interpreter","container":"cntr_1"}"#,
        r#"{"type":"shell","environment":{"type":"container_auto","skills":[{"type":"skill_reference","skill_id":"s1"}]}}"#,
    ] {
        let own = own_tool(RESPONSES);
        rows.push(becomes(RESPONSES, offering(RESPONSES, &[tool, own]), offering(RESPONSES, &[own])));
    }
    rows.extend([untouched(openrouter, said(CHAT, "")), untouched(mistral, said(CHAT, ""))]);
    test.assert_rows(&rows);
}

/// E5: the endpoints at which such configuration is made, read and run are closed.
#[test]
fn no_endpoint_of_stored_configuration_is_open() {
    let test = inspected(&[
        "api.openai.com",
        "api.anthropic.com",
        "generativelanguage.googleapis.com",
        "api.mistral.ai",
    ]);
    test.assert_closed(&[
        "POST api.openai.com/v1/assistants",
        "POST api.openai.com/v1/threads/t/runs",
        "POST api.openai.com/v1/conversations",
        "POST api.openai.com/v1/containers",
        "POST api.openai.com/v1/skills",
        "POST api.openai.com/v1/vector_stores/v/search",
        "POST api.openai.com/v1/chatkit/sessions",
        "GET api.openai.com/v1/chat/completions/c",
        "POST api.anthropic.com/v1/skills",
        "POST api.anthropic.com/v1/agents",
        "POST api.anthropic.com/v1/sessions/s/events",
        "POST api.anthropic.com/v1/memory_stores",
        "POST generativelanguage.googleapis.com/v1beta/cachedContents",
        "POST generativelanguage.googleapis.com/v1beta/agents",
        "POST api.mistral.ai/v1/agents",
        "POST api.mistral.ai/v1/connectors/c",
    ]);
    test.assert_open(&[
        "POST api.openai.com/v1/chat/completions",
        "POST api.anthropic.com/v1/messages",
        "POST generativelanguage.googleapis.com/v1beta/models/m:generateContent",
        "POST api.mistral.ai/v1/chat/completions",
    ]);
}
