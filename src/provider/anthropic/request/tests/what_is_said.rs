//! What requests say of themselves, in each variant of the API, and who may have them edited.

use super::super::testing::*;
use super::super::{MessagesVariant, is_subscription, messages_request};
use crate::call::{Api, DenialForm, Dialect, RequestFacts, Service, Vendor};
use crate::provider::adapter::ModelRequestHead;
use crate::provider::request::RequestEditor;
use crate::wire::json::{Document, Limits};

fn facts(body: &str, rules: Rules) -> RequestFacts {
    drafted(body, rules, &MessagesVariant::default()).unwrap().facts
}

#[test]
fn a_request_names_every_model_that_could_answer() {
    let body = r#"{"model":"claude-opus-4-8","fallbacks":[{"model":"claude-sonnet-4-5"},{"model":"claude-opus-4-8"}],
        "tools":[{"type":"advisor_20260301","name":"advisor","model":"claude-fable-5"}],"stream":true}"#;
    let allowed = facts(body, allowing(&["advisor_20260301"]));
    assert_eq!(allowed.model.as_deref(), Some("claude-opus-4-8"));
    assert_eq!(allowed.models, ["claude-opus-4-8", "claude-sonnet-4-5", "claude-fable-5"]);
    assert!(allowed.stream);
    let stripped = facts(body, STRICT);
    assert_eq!(stripped.models, ["claude-opus-4-8", "claude-sonnet-4-5"]);
    assert_eq!(facts(r#"{"model":"a","fallbacks":"default"}"#, STRICT).models, ["a", "default"]);
}

#[test]
fn a_tool_is_named_with_the_hash_of_its_definition() {
    let body = r#"{"tools":[{"name":"mine", "input_schema":{}},{"type":"web_search_20250305","name":"web_search"},{"type":"browser_toolset_20260801"}]}"#;
    let facts = facts(body, STRICT);
    let names: Vec<&str> = facts.tools.iter().map(|tool| tool.name.as_str()).collect();
    assert_eq!(names, ["mine", "browser"]);
    // printf '%s' '{"name":"mine", "input_schema":{}}' | sha256sum
    assert_eq!(facts.tools[0].sha256, MINE_SHA256);
}

#[test]
fn a_request_says_whether_files_may_be_written() {
    let writes = |tools: &str| facts(&format!(r#"{{"tools":[{tools}]}}"#), STRICT).writes;
    assert!(writes(r#"{"name":"Read"},{"name":"Write"}"#));
    assert!(writes(r#"{"type":"text_editor_20250728","name":"str_replace_based_edit_tool"}"#));
    assert!(writes(r#"{"name":"Read"},{"name":"batch"}"#), "other calls may stand in its input");
    let mine = |properties: &str| {
        let schema = format!(r#"{{"type":"object","properties":{{{properties}}}}}"#);
        writes(&format!(r#"{{"name":"Read"}},{{"name":"mine","input_schema":{schema}}}"#))
    };
    assert!(!mine(""));
    assert!(!mine(r#""file_path":{"type":"string"}"#));
    assert!(mine(r#""file_path":{"type":"string"},"content":{"type":"string"}"#));
    assert!(writes(r#"{"name":"Read"},{"name":"mine"}"#), "nothing is said of what it takes");
    assert!(!writes(r#"{"type":"web_search_20250305","name":"Write"}"#), "it is taken out");
}

const MINE_SHA256: &str = "0f3a800c5cebacd2a97825d87313044eabc7d9799d90e570dbc54dba783c6616";

#[test]
fn a_request_without_tools_offers_none() {
    let facts = facts(r#"{"messages":[]}"#, STRICT);
    assert_eq!(facts.tools, []);
    assert!(!facts.writes);
    assert!(!facts.stream);
}

#[test]
fn a_session_is_what_claude_code_says_of_it() {
    let of = |user: &str| {
        let user = serde_json::Value::from(user);
        facts(&format!(r#"{{"metadata":{{"user_id":{user}}}}}"#), STRICT).session
    };
    assert_eq!(of("user_ab12_account__session_0f-9a").as_deref(), Some("0f-9a"));
    assert_eq!(of(r#"{"device_id":"d","session_id":"s-1"}"#).as_deref(), Some("s-1"));
    for none in ["somebody", "user_session_", "x_session_a b", "x_session_\u{e9}", r#"{"session_id":7}"#] {
        assert_eq!(of(none), None, "{none}");
    }
    assert_eq!(of(&format!("x_session_{}", "a".repeat(129))), None);
    assert_eq!(of(&format!("x_session_{}", "a".repeat(128))).map(|session| session.len()), Some(128));
}

fn head<'a>(path: &'a str, headers: &http::HeaderMap) -> ModelRequestHead<'a> {
    let service =
        Service { vendor: Vendor::Anthropic, api: Api::Messages, dialect: Some(Dialect::Anthropic) };
    ModelRequestHead { service, path, query: Some("beta=true"), is_subscription: is_subscription(headers) }
}

#[test]
fn a_path_may_name_the_model_and_ask_for_a_stream() {
    let none = http::HeaderMap::new();
    let at = |path: &str| {
        let variant = MessagesVariant::of(&head(path, &none));
        let facts = drafted(r#"{"anthropic_version":"vertex-2023-10-16"}"#, STRICT, &variant).unwrap().facts;
        (facts.model, facts.models.len(), facts.stream)
    };
    let models = "/v1/projects/p/locations/l/publishers/anthropic/models";
    let model = || Some("claude-opus-4-8@20260101".to_owned());
    assert_eq!(at(&format!("{models}/claude-opus-4-8@20260101:rawPredict")), (model(), 1, false));
    assert_eq!(at(&format!("{models}/claude-opus-4-8@20260101:streamRawPredict")), (model(), 1, true));
    assert_eq!(at(&format!("{models}/count-tokens:rawPredict")), (None, 0, false));
    assert_eq!(at("/v1/messages"), (None, 0, false));
    assert_eq!(at("/anthropic/v1/messages"), (None, 0, false));
}

#[test]
fn the_fields_may_be_those_of_an_object_in_another_body() {
    let body = r#"{"outer":1,"inner":{"tools":[{"type":"web_search_20250305"},{"name":"y"}]},"tools":[{"type":"x"}]}"#;
    let document = Document::parse(body.as_bytes(), Limits::default()).unwrap();
    let mut editor = RequestEditor::new(&document, &STRICT);
    let inner = editor.root().get("inner").unwrap().unwrap();
    let variant = MessagesVariant { model: Some("m"), stream: true, subscription: false };
    messages_request(&mut editor, inner, &variant).unwrap();
    let drafted = editor.finish();
    let edited = String::from_utf8(drafted.body.unwrap()).unwrap();
    assert_eq!(edited, r#"{"outer":1,"inner":{"tools":[{"name":"y"}]},"tools":[{"type":"x"}]}"#);
    assert_eq!(drafted.facts.model.as_deref(), Some("m"));
}

const ATTESTED: &str = r#"{"system":[{"type":"text","text":"x-anthropic-billing-header: cc_version=2; cch=a1b2c;"}],"tools":[TOOLS]}"#;
const SEARCH: &str = r#"{"type":"web_search_20250305"}"#;

#[test]
fn a_subscription_body_with_a_hash_over_it_is_refused_rather_than_edited() {
    let body = ATTESTED.replace("TOOLS", SEARCH);
    for login in [
        headers(&[("authorization", "Bearer sk-ant-oat01-x")]),
        headers(&[("authorization", "bearer  sk-ant-oat01-x")]),
        headers(&[("anthropic-beta", "a-2025,oauth-2025-04-20"), ("authorization", "Bearer placeholder")]),
    ] {
        let variant = MessagesVariant::of(&head("/v1/messages", &login));
        let denial = drafted(&body, STRICT, &variant).map(|_| ()).unwrap_err();
        let (rule, reason) = told(&denial);
        assert_eq!(rule, "postern/builtin/subscription-edit");
        assert!(reason.contains("CLAUDE_CODE_ATTRIBUTION_HEADER=0") && reason.contains("hostedTools.allow"));
        assert_eq!(denial.answer, DenialForm::Forbidden);
        for unchanged in [ATTESTED.replace("TOOLS", r#"{"name":"y"}"#), body.clone()] {
            let rules = allowing(&["web_search_20250305"]);
            assert_eq!(drafted(&unchanged, rules, &variant).unwrap().body, None, "{unchanged}");
        }
        let without = format!(r#"{{"system":"You are helpful","a":1,"tools":[{SEARCH}]}}"#);
        let edited = drafted(&without, STRICT, &variant).unwrap().body.unwrap();
        assert_eq!(edited, br#"{"system":"You are helpful","a":1}"#);
    }
}

#[test]
fn with_a_key_a_body_is_edited_whatever_it_says_of_itself() {
    let login = headers(&[("x-api-key", "sk-ant-api03-x"), ("authorization", "Bearer sk-ant-api03-x")]);
    let variant = MessagesVariant::of(&head("/v1/messages", &login));
    assert!(drafted(&ATTESTED.replace("TOOLS", SEARCH), STRICT, &variant).unwrap().body.is_some());
}

#[test]
fn a_subscription_thread_is_refused_in_the_form_that_clients_recover_from() {
    let variant = MessagesVariant { subscription: true, ..MessagesVariant::default() };
    let denial = drafted(r#"{"thread":{"type":"create"}}"#, STRICT, &variant).map(|_| ()).unwrap_err();
    assert_eq!(denial.answer, DenialForm::Recoverable { status: 400, code: "thread_unsupported_request" });
}
