//! Requests at every endpoint: what is taken out, what follows, what is refused, and the benign twin of each.

use super::OpenAiChat;
use crate::call::{Api, Denial, DenialForm, Dialect, HostedAction, Service, Vendor};
use crate::provider::adapter::{Adapter, Framing, ModelRequestHead, RefusalMessage};
use crate::provider::compatible::testing::{Policy, STRICT, drafted, outcome};
use crate::provider::request::EditedRequest;

fn service(vendor: Vendor) -> Service {
    Service { vendor, api: Api::ChatCompletions, dialect: Some(Dialect::OpenAIChat) }
}

fn asked_at(vendor: Vendor, path: &str, body: &str, policy: &Policy) -> Result<EditedRequest, Denial> {
    let head = ModelRequestHead { service: service(vendor), path, query: None, is_subscription: false };
    drafted(body, policy, |editor| OpenAiChat.request(&head, editor))
}

fn head(body: &str, policy: &Policy) -> Result<EditedRequest, Denial> {
    asked_at(Vendor::OpenAi, "/v1/chat/completions", body, policy)
}

/// Asserts what becomes of each body under this policy.
#[track_caller]
fn expect_under(policy: &Policy, table: &[(&str, &str)]) {
    for (body, expected) in table {
        let seen = outcome(body, head(body, policy));
        let expected = if expected.is_empty() { body } else { expected };
        assert_eq!(seen, *expected, "{body}");
        assert_eq!(outcome(body, head(body, policy)), seen, "the same every time");
    }
}

/// The same where nobody writes a policy; an empty expectation is the body itself.
#[track_caller]
fn expect(table: &[(&str, &str)]) {
    expect_under(&STRICT, table);
}

const F: &str = r#"{"type":"function","function":{"name":"f","parameters":{"properties":{},"x":1.0}}}"#;

#[test]
fn only_tools_that_the_client_runs_stay() {
    let custom = r#"{"type":"custom","custom":{"name":"c"}}"#;
    for hosted in
        ["web_search", "openrouter:web_search", "builtin_function", "mcp", "bash_20270101", "Function", ""]
    {
        let tool = format!(r#"{{"type":"{hosted}","name":"n"}}"#);
        let body = format!(r#"{{"model":"m", "tools":[{F}, {tool} ,{custom}]}}"#);
        expect(&[(&body, &format!(r#"{{"model":"m", "tools":[{F}, {custom}]}}"#))]);
        let allowing = Policy { allowed: &["web_search", "mcp"], ..STRICT };
        let kept = ["web_search", "mcp"].contains(&hosted);
        assert_eq!(outcome(&body, head(&body, &allowing)) == body, kept, "{hosted}");
        let denying = Policy { action: HostedAction::Refuse, ..STRICT };
        assert_eq!(outcome(&body, head(&body, &denying)), format!("!{hosted}"));
    }
    expect(&[
        (&format!(r#"{{"tools":[{F},{custom}]}}"#), ""),
        (r#"{"tools":[]}"#, ""),
        (r#"{"tools":null}"#, ""),
    ]);
}

#[test]
fn escapes_and_repeated_keys_hide_nothing() {
    expect(&[
        (r#"{"t\u006fols":[{"t\u0079pe":"web_se\u0061rch"}],"a":1}"#, r#"{"a":1}"#),
        (
            r#"{"tools":[{"type":"function","type":"web_search"}]}"#,
            "!the request cannot be understood: a key stands twice in one object, at bytes 11 and 29",
        ),
        (
            r#"{"tools":[],"t\u006fols":[{"type":"mcp"}]}"#,
            "!the request cannot be understood: a key stands twice in one object, at bytes 1 and 12",
        ),
    ]);
    for body in [
        r#"{"tools":[1]}"#,
        r#"{"tools":[{"name":"x"}]}"#,
        r#"{"tools":[{"type":7}]}"#,
        r#"{"tools":{"type":"mcp"}}"#,
        r#"{"tools":[{"Type":"mcp","type":"function"}]}"#,
        r#"{"messages":["x"]}"#,
        r#"{"functions":[{}]}"#,
        r#"[]"#,
    ] {
        assert!(
            outcome(body, head(body, &STRICT)).starts_with("!the request cannot be understood"),
            "{body}"
        );
    }
}

#[test]
fn nothing_speaks_of_tools_where_none_is_left() {
    let tools = r#""tools":[{"type":"web_search"}]"#;
    for choice in [r#""auto""#, r#""required""#, r#"{"type":"web_search"}"#] {
        let body = format!(r#"{{"a":1,{tools},"tool_choice":{choice},"parallel_tool_calls":true,"b":2}}"#);
        expect(&[(&body, r#"{"a":1,"b":2}"#)]);
    }
    let read = head(&format!("{{{tools}}}"), &STRICT).unwrap();
    assert!(!read.facts.writes);
}

#[test]
fn a_tool_choice_does_not_name_what_is_gone() {
    let with = |choice: &str| {
        format!(
            r#"{{"tools":[{F},{{"type":"builtin_function","function":{{"name":"$web_search"}}}},{{"type":"mcp"}}],"tool_choice":{choice}}}"#
        )
    };
    let left = |choice: &str| format!(r#"{{"tools":[{F}],"tool_choice":{choice}}}"#);
    let f = r#"{"type":"function","function":{"name":"f"}}"#;
    let gone = r#"{"type":"function","function":{"name":"$web_search"}}"#;
    let allowed = |tools: &str| {
        format!(r#"{{"type":"allowed_tools","allowed_tools":{{"mode":"required","tools":[{tools}]}}}}"#)
    };
    for (choice, expected) in [
        (r#""required""#.to_owned(), r#""required""#.to_owned()),
        (f.to_owned(), f.to_owned()),
        (gone.to_owned(), r#""auto""#.to_owned()),
        (r#"{"type":"mcp"}"#.to_owned(), r#""auto""#.to_owned()),
        (
            r#"{"type":"function","function":{"name":"other"}}"#.to_owned(),
            r#"{"type":"function","function":{"name":"other"}}"#.to_owned(),
        ),
        (allowed(&format!("{f}, {gone}")), allowed(f)),
        (allowed(gone), r#""none""#.to_owned()),
        (allowed(f), allowed(f)),
    ] {
        expect(&[(&with(&choice), &left(&expected))]);
    }
}

#[test]
fn urls_that_the_provider_would_fetch_are_refused() {
    let part = |part: &str| {
        format!(
            r#"{{"messages":[{{"role":"user","content":[{{"type":"text","text":"https://a.b"}},{part}]}}]}}"#
        )
    };
    for (refused, place) in [
        (r#"{"type":"image_url","image_url":{"url":"https://a.b/c"}}"#, "url"),
        (r#"{"type":"image_url","image_url":{"url":" HTTP://a.b/c"}}"#, "url"),
        (r#"{"type":"image_url","image_url":"http://a.b/c"}"#, "image_url"),
        (r#"{"type":"image_url","image_url":{"\u0075rl":"\u0068ttps://a.b/c"}}"#, "url"),
        (r#"{"type":"image_url","image_url":{"url":"gs://bucket/c"}}"#, "url"),
        (r#"{"type":"image_url","image_url":{"url":"//a.b/c"}}"#, "url"),
        (r#"{"type":"file","file":{"file_data":"https://a.b/c.pdf"}}"#, "file_data"),
        (r#"{"type":"document_url","document_url":"https://a.b/c.pdf"}"#, "document_url"),
        (r#"{"type":"input_audio","input_audio":{"data":"https://a.b/c.wav"}}"#, "data"),
        (r#"{"type":"video_url","video_url":{"url":"https://a.b/c.mp4"}}"#, "url"),
    ] {
        let body = part(refused);
        expect(&[(&body, &format!("!url (messages: {place})"))]);
        expect_under(&Policy { urls: true, ..STRICT }, &[(&body, "")]);
    }
    for fine in [
        r#"{"type":"image_url","image_url":{"url":"data:image/png;base64,iVBO","detail":"high"}}"#,
        r#"{"type":"image_url","image_url":{"url":"DATA:image/png;base64,iVBO"}}"#,
        r#"{"type":"file","file":{"file_data":"data:application/pdf;base64,AA","filename":"https://a"}}"#,
        r#"{"type":"input_audio","input_audio":{"data":"UklGR//a","format":"wav"}}"#,
        r#"{"type":"text","text":"see https://a.b"}"#,
        r#"{"type":"tool_result","content":"https://a.b"}"#,
    ] {
        expect(&[(&part(fine), "")]);
    }
    expect(&[(
        r#"{"messages":[{"role":"user","content":"https://a.b"},{"role":"assistant","content":null}]}"#,
        "",
    )]);
}

#[test]
fn nothing_is_kept_at_the_provider() {
    let file = r#"{"messages":[{"role":"user","content":[{"type":"file","file":{"file_id":"file-1"}}]}]}"#;
    let table = [
        (r#"{"store": true,"metadata":{"a":"b"},"model":"m"}"#, r#"{"store": false,"model":"m"}"#),
        (r#"{"store":1}"#, r#"{"store":false}"#),
        (r#"{"store":false,"metadata":{}}"#, ""),
        (r#"{"store":null}"#, ""),
        (file, "!state (messages: file_id)"),
    ];
    expect(&table);
    let allowing = Policy { state: true, ..STRICT };
    for (body, _) in table {
        expect_under(&allowing, &[(body, "")]);
    }
}

#[test]
fn doors_of_the_vendor_are_closed() {
    let table = [
        (Vendor::OpenAi, r#"{"model":"gpt-4o","web_search_options":{}}"#, r#"{"model":"gpt-4o"}"#),
        (Vendor::OpenAi, r#"{"model":"gpt-4o-search-preview"}"#, "!search_model"),
        (Vendor::OpenRouter, r#"{"model":"a/b:online","plugins":[{"id":"web"}]}"#, r#"{"model":"a/b"}"#),
        (Vendor::Groq, r#"{"model":"groq/compound"}"#, "!search_model"),
        (Vendor::Perplexity, r#"{"model":"sonar-pro"}"#, "!search_model"),
        (Vendor::Mistral, r#"{"agent_id":"ag"}"#, "!agent_id"),
        (Vendor::Custom, r#"{"model":"m","enable_search":true}"#, r#"{"model":"m"}"#),
        (Vendor::DeepSeek, r#"{"model":"m","temperature":0}"#, r#"{"model":"m","temperature":0}"#),
    ];
    for (vendor, body, expected) in table {
        let seen = outcome(body, asked_at(vendor, "/v1/chat/completions", body, &STRICT));
        assert_eq!(seen, expected, "{vendor:?} {body}");
    }
}

#[test]
fn a_request_says_what_it_is() {
    let tool = r#"{"type":"openrouter:advisor","parameters":{"model":"wise"}}"#;
    let body = format!(
        r#"{{"model":"m","stream":true,"tools":[{F},{{"type":"mcp"}},{tool}],"functions":[{{"name":"g","parameters":{{"properties":{{}}}}}}]}}"#
    );
    let allowing = Policy { allowed: &["openrouter:advisor"], ..STRICT };
    let facts = head(&body, &allowing).unwrap().facts;
    assert_eq!((facts.model.as_deref(), facts.stream, facts.writes), (Some("m"), true, false));
    assert_eq!(facts.models, ["m", "wise"]);
    let names: Vec<_> = facts.tools.iter().map(|tool| tool.name.as_str()).collect();
    assert_eq!(names, ["f", "openrouter:advisor", "g"]);
    assert_eq!(facts.tools[0].sha256.len(), 64);
    let path = "/openai/deployments/mine/chat/completions";
    let facts = asked_at(Vendor::AzureOpenAi, path, r#"{"messages":[]}"#, &STRICT).unwrap().facts;
    assert_eq!((facts.model.as_deref(), facts.writes), (Some("mine"), false));
}

#[test]
fn whether_files_may_be_changed_is_told_by_the_tools() {
    const NONE: &str = r#""parameters":{"properties":{}}"#;
    for (name, writes) in
        [("Write", true), ("apply_patch", true), ("exec", true), ("get_weather", false), ("Bash", true)]
    {
        let tools =
            format!(r#"{{"tools":[{F},{{"type":"function","function":{{"name":"{name}",{NONE}}}}}]}}"#);
        let functions = format!(r#"{{"functions":[{{"name":"{name}",{NONE}}}]}}"#);
        for body in [tools, functions] {
            assert_eq!(head(&body, &STRICT).unwrap().facts.writes, writes, "{body}");
        }
    }
}

#[test]
fn a_refusal_has_the_shape_of_the_dialect() {
    for (answer, status) in [
        (DenialForm::Forbidden, 400),
        (DenialForm::TooLarge, 413),
        (DenialForm::UnsupportedCoding, 415),
        (DenialForm::Recoverable { status: 426, code: "x" }, 426),
        (DenialForm::Limited { retry_after_seconds: 1 }, 400),
    ] {
        let refusal = RefusalMessage { service: service(Vendor::Groq), message: "a \"b\"\nc", answer };
        let said = OpenAiChat.refusal(&refusal);
        let body: serde_json::Value = serde_json::from_str(&said.body).unwrap();
        assert_eq!((said.status, body["error"]["message"].as_str()), (status, Some("a \"b\"\nc")));
        assert_eq!(body["error"]["type"], "invalid_request_error");
        assert!(body["error"]["param"].is_null());
    }
}

#[test]
fn an_answer_is_read_as_its_client_reads_it() {
    let framing = |stream: bool, content_type: &str| {
        let head = ModelRequestHead {
            service: service(Vendor::OpenAi),
            path: "/",
            query: None,
            is_subscription: false,
        };
        let facts = crate::call::RequestFacts { stream, ..Default::default() };
        OpenAiChat.framing(&head, &facts, content_type)
    };
    assert_eq!(framing(true, "application/json"), Framing::Whole);
    assert_eq!(framing(false, ""), Framing::Whole);
    for (stream, content_type) in
        [(true, "text/event-stream"), (false, "text/event-stream"), (true, ""), (true, "text/plain")]
    {
        assert_eq!(framing(stream, content_type), Framing::Events(super::FORM));
    }
}
