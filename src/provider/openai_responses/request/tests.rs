//! Requests, one way to hosted tools after the other, each with a benign twin.

use super::super::OpenAiResponses;
use crate::call::{
    Api, BlockedCall, BlockedCalls, Change, Decision, Denial, DenialForm, Dialect, HostedAction,
    HostedToolVerdict, Judgement, Service, Terms, Vendor,
};
use crate::provider::adapter::{Adapter, ModelRequestHead};
use crate::provider::request::{EditedRequest, RequestEditor};
use crate::wire::json::{Document, Limits};

/// What policy says in these tests.
#[derive(Default)]
struct Says {
    allow: &'static [&'static str],
    refuses: bool,
    state: bool,
    urls: bool,
    audit: bool,
}

fn decision(allowed: bool) -> Decision {
    if allowed {
        Decision { verdict: crate::decision::Verdict::Allow, rule: None, reason: None, enforcement: None }
    } else {
        Denial::builtin("hosted-tools", "not allowed here").decision
    }
}

impl Terms for Says {
    fn hosted_tool(&self, tool_type: &str) -> HostedToolVerdict {
        let action = match self.allow.contains(&tool_type) || self.audit {
            true => HostedAction::Keep,
            false if self.refuses => HostedAction::Refuse,
            false => HostedAction::Strip,
        };
        HostedToolVerdict { action, decision: decision(action == HostedAction::Keep), audited: None }
    }

    fn provider_state(&self) -> Judgement {
        Judgement { decision: decision(self.state || self.audit), audited: None }
    }

    fn url_sources(&self) -> Judgement {
        Judgement { decision: decision(self.urls || self.audit), audited: None }
    }

    fn may_edit(&self) -> bool {
        !self.audit
    }
}

/// Most bodies say that they are not stored, so that what else is changed is seen alone.
const STRICT: Says = Says { allow: &[], refuses: false, state: false, urls: false, audit: false };

fn ask(path: &str, body: &str, says: &Says, blocked: &BlockedCalls) -> Result<EditedRequest, Denial> {
    let api = if path.ends_with("input_tokens") { Api::CountTokens } else { Api::Responses };
    let service = Service { vendor: Vendor::OpenAi, api, dialect: Some(Dialect::OpenAIResponses) };
    let head = ModelRequestHead { service, path, query: None, is_subscription: false };
    let document = Document::parse(body.as_bytes(), Limits::default()).unwrap();
    let mut editor = RequestEditor::new(&document, says).with_blocked(blocked);
    OpenAiResponses.request(&head, &mut editor)?;
    Ok(editor.finish())
}

fn posted(body: &str, says: &Says) -> Result<EditedRequest, Denial> {
    ask("/v1/responses", body, says, &BlockedCalls::new(4))
}

/// What goes on of a body.
fn sent(body: &str, says: &Says) -> String {
    let drafted = posted(body, says).unwrap();
    drafted.body.map_or_else(|| body.to_owned(), |body| String::from_utf8(body).unwrap())
}

/// Bodies, and what goes on of each where nothing is allowed.
fn assert_sent(table: &[(&str, &str)]) {
    for (body, expected) in table {
        assert_eq!(sent(body, &STRICT), *expected, "{body}");
        assert_eq!(sent(expected, &STRICT), *expected, "it is the same when it is read again");
    }
}

fn assert_same(bodies: &[&str]) {
    for body in bodies {
        assert!(posted(body, &STRICT).unwrap().body.is_none(), "{body}");
    }
}

#[test]
fn tools_that_the_client_runs_are_kept_and_all_others_are_taken_out() {
    assert_sent(&[
        (
            r#"{"store":false, "tools":[ {"type":"function","name":"f"}, {"type":"web_search"} ]}"#,
            r#"{"store":false, "tools":[ {"type":"function","name":"f"} ]}"#,
        ),
        (
            r#"{"store":false,"tools":[{"type":"custom","name":"c"},{"type":"bash_20271101","name":"bash"}]}"#,
            r#"{"store":false,"tools":[{"type":"custom","name":"c"}]}"#,
        ),
        (r#"{"tools":[{"type":"mcp","server_url":"https://a"}],"store":false}"#, r#"{"store":false}"#),
        (r#"{"tools":[{"t\u0079pe":"we\u0062_search"}],"store":false}"#, r#"{"store":false}"#),
        (
            r#"{"store":false,"tools":[{"type":"Function","name":"f"},{"type":"local_shell"}]}"#,
            r#"{"store":false,"tools":[{"type":"local_shell"}]}"#,
        ),
    ]);
    assert_same(&[
        r#"{"store":false,"tools":[{"type":"function"},{"type":"custom"},{"type":"apply_patch"}]}"#,
        r#"{"store":false,"tools":[{"type":"local_shell"},{"type":"computer"},{"type":"computer_use_preview"}]}"#,
        r#"{"store":false,"tools":[]}"#,
        r#"{"store":false,"tools":null,"input":"web_search"}"#,
    ]);
}

#[test]
fn a_type_that_is_run_by_either_side_is_kept_where_it_says_that_it_is_the_clients() {
    let hosted = [
        r#"{"type":"shell"}"#,
        r#"{"type":"shell","environment":{"type":"container_auto"}}"#,
        r#"{"type":"shell","environment":null}"#,
        r#"{"type":"tool_search"}"#,
        r#"{"type":"tool_search","execution":"server"}"#,
    ];
    for tool in hosted {
        let body = format!(r#"{{"tools":[{tool}],"store":false}}"#);
        assert_eq!(sent(&body, &STRICT), r#"{"store":false}"#, "{tool}");
    }
    assert_same(&[
        r#"{"store":false,"tools":[{"type":"shell","environment":{"type":"local"}}]}"#,
        r#"{"store":false,"tools":[{"type":"tool_search","execution":"client"}]}"#,
    ]);
}

#[test]
fn a_namespace_is_as_empty_as_what_is_in_it() {
    assert_sent(&[
        (
            r#"{"store":false,"tools":[{"type":"namespace","name":"n","tools":[{"type":"mcp"},{"type":"custom","name":"exec"}]}]}"#,
            r#"{"store":false,"tools":[{"type":"namespace","name":"n","tools":[{"type":"custom","name":"exec"}]}]}"#,
        ),
        (
            r#"{"store":false,"tools":[{"type":"namespace","name":"n","tools":[{"type":"mcp"}]},{"type":"local_shell"}]}"#,
            r#"{"store":false,"tools":[{"type":"local_shell"}]}"#,
        ),
    ]);
    let body = r#"{"store":false,"tools":[{"type":"namespace","name":"a","tools":[{"type":"function","name":"f"}]}]}"#;
    let drafted = posted(body, &STRICT).unwrap();
    assert!(drafted.body.is_none());
    assert_eq!(drafted.facts.tools[0].name, "a.f");
}

#[test]
fn what_is_allowed_is_kept_and_only_that() {
    let says = Says { allow: &["web_search"], ..STRICT };
    let body = r#"{"store":false,"tools":[{"type":"web_search"},{"type":"web_search_preview"}]}"#;
    assert_eq!(sent(body, &says), r#"{"store":false,"tools":[{"type":"web_search"}]}"#);
}

#[test]
fn input_items_bring_no_hosted_tool() {
    let emptied = r#"{"store":false,"input":[{"role":"user","content":"hi"}]}"#;
    for item in [
        r#"{"type":"additional_tools","role":"developer","tools":[{"type":"web_search"}]}"#,
        r#"{"type":"tool_search_output","tools":[{"type":"mcp"}]}"#,
        r#"{"type":"configuration_update","configuration":{"tools":[{"type":"mcp"}]}}"#,
        r#"{"type":"something_new","tools":[{"type":"web_search"}]}"#,
        r#"{"type":"mcp_list_tools","server_label":"s","tools":[{"name":"x","input_schema":{}}]}"#,
        r#"{"type":"mcp_approval_response","approval_request_id":"a","approve":true}"#,
        r#"{"type":"program","code":"","call_id":"c"}"#,
    ] {
        let body = format!(r#"{{"store":false,"input":[{{"role":"user","content":"hi"}},{item}]}}"#);
        assert_eq!(sent(&body, &STRICT), emptied, "{item}");
        let says = Says { allow: &["mcp", "web_search", "programmatic_tool_calling"], ..STRICT };
        assert!(posted(&body, &says).unwrap().body.is_none(), "{item}");
    }
    assert_same(&[
        r#"{"store":false,"input":[{"type":"additional_tools","tools":[{"type":"namespace","name":"functions","tools":[{"type":"custom","name":"exec"}]}]}]}"#,
        r#"{"store":false,"input":[{"type":"web_search_call","status":"completed","action":{"type":"search"}}]}"#,
        r#"{"store":false,"input":[{"type":"compaction","encrypted_content":"x"},{"type":"reasoning","summary":[]}]}"#,
    ]);
}

#[test]
fn what_names_a_tool_that_is_gone_is_corrected() {
    let tools = r#""tools":[{"type":"function","name":"f"},{"type":"web_search"}]"#;
    let left = r#""tools":[{"type":"function","name":"f"}]"#;
    for (choice, expected) in [
        (r#"{"type":"web_search"}"#, r#""auto""#),
        (r#"{"type":"function","name":"f"}"#, r#"{"type":"function","name":"f"}"#),
        (r#""required""#, r#""required""#),
        (r#""none""#, r#""none""#),
        (
            r#"{"type":"allowed_tools","mode":"required","tools":[{"type":"web_search"}, {"type":"function","name":"f"}]}"#,
            r#"{"type":"allowed_tools","mode":"required","tools":[{"type":"function","name":"f"}]}"#,
        ),
        (r#"{"type":"allowed_tools","mode":"auto","tools":[{"type":"web_search"}]}"#, r#""auto""#),
    ] {
        let body = format!(r#"{{"store":false,{tools},"tool_choice":{choice}}}"#);
        assert_eq!(sent(&body, &STRICT), format!(r#"{{"store":false,{left},"tool_choice":{expected}}}"#));
    }
    assert_sent(&[
        (r#"{"store":false,"tools":[{"type":"web_search"}],"tool_choice":"required"}"#, r#"{"store":false}"#),
        (
            r#"{"store":false,"tools":[{"type":"web_search"}],"tool_choice":"auto"}"#,
            r#"{"store":false,"tool_choice":"auto"}"#,
        ),
        (
            r#"{"store":false,"tools":[{"type":"mcp","server_label":"a"}],"tool_choice":{"type":"mcp","server_label":"a"}}"#,
            r#"{"store":false}"#,
        ),
    ]);
}

#[test]
fn what_only_a_tool_that_is_gone_would_answer_is_not_asked_for() {
    assert_sent(&[
        (
            r#"{"store":false,"tools":[{"type":"web_search_preview"}],"include":["web_search_call.action.sources","reasoning.encrypted_content"]}"#,
            r#"{"store":false,"include":["reasoning.encrypted_content"]}"#,
        ),
        (
            r#"{"store":false,"tools":[{"type":"code_interpreter"}],"include":["code_interpreter_call.outputs"]}"#,
            r#"{"store":false}"#,
        ),
    ]);
    assert_same(&[r#"{"store":false,"tools":[],"include":["web_search_call.action.sources"]}"#]);
}

#[test]
fn a_response_is_not_kept_unless_that_is_allowed() {
    for (body, expected) in [
        (r#"{"model":"m"}"#, r#"{"model":"m","store":false}"#),
        (r#"{"store":true,"model":"m"}"#, r#"{"store":false,"model":"m"}"#),
        (r#"{"store":null}"#, r#"{"store":false}"#),
        (r#"{}"#, r#"{"store":false}"#),
        (r#"{"type":"response.create"}"#, r#"{"type":"response.create","store":false}"#),
    ] {
        assert_eq!(sent(body, &STRICT), expected);
        assert!(posted(body, &Says { state: true, ..STRICT }).unwrap().body.is_none(), "{body}");
    }
    assert_eq!(posted("{}", &STRICT).unwrap().changes, [Change::Other("store")]);
    for path in ["/v1/responses/compact", "/v1/responses/input_tokens"] {
        let body = r#"{"model":"m","input":"hi"}"#;
        assert!(ask(path, body, &STRICT, &BlockedCalls::new(4)).unwrap().body.is_none(), "{path}");
    }
    assert_same(&[r#"{"type":"response.steer","input":[]}"#]);
}

#[test]
fn what_the_provider_keeps_is_not_gone_on_from_unless_that_is_allowed() {
    for (body, place) in [
        (r#"{"store":false,"previous_response_id":"resp_1"}"#, "previous_response_id"),
        (r#"{"store":false,"conversation":"conv_1"}"#, "conversation"),
        (r#"{"store":false,"conversation":{"id":"conv_1"}}"#, "conversation"),
        (r#"{"store":false,"prompt":{"id":"pmpt_1"}}"#, "prompt"),
        (r#"{"store":false,"background":true}"#, "background"),
        (r#"{"store":false,"input":[{"type":"item_reference","id":"msg_1"}]}"#, "item_reference"),
        (r#"{"store":false,"input":[{"id":"msg_1"}]}"#, "item_reference"),
    ] {
        let denial = posted(body, &STRICT).unwrap_err();
        assert!(denial.decision.reason.as_deref().unwrap().contains(place), "{body}");
        assert!(posted(body, &Says { state: true, ..STRICT }).unwrap().body.is_none(), "{body}");
    }
    let denial = posted(r#"{"previous_response_id":"resp_1"}"#, &STRICT).unwrap_err();
    assert_eq!(denial.answer, DenialForm::Recoverable { status: 400, code: "previous_response_not_found" });
    assert_same(&[
        r#"{"store":false,"previous_response_id":null,"conversation":null,"prompt":null,"background":false}"#,
        r#"{"store":false,"input":[{"role":"user","content":"x","id":"msg_1"}]}"#,
    ]);
}

#[test]
fn the_provider_fetches_nothing_unless_that_is_allowed() {
    for item in [
        r#"{"role":"user","content":[{"type":"input_image","image_url":"https://a/x.png"}]}"#,
        r#"{"role":"user","content":[{"type":"input_image","image_url":{"url":" HTTP://a/x.png"}}]}"#,
        r#"{"role":"user","content":[{"type":"input_file","file_url":"https://a/x.pdf"}]}"#,
        r#"{"type":"function_call_output","call_id":"c","output":[{"type":"input_image","image_url":"https://a"}]}"#,
        r#"{"type":"custom_tool_call_output","call_id":"c","output":[{"type":"input_file","file\u005furl":"https://a"}]}"#,
        r#"{"type":"computer_call_output","call_id":"c","output":{"type":"computer_screenshot","image_url":"gs://a"}}"#,
    ] {
        let body = format!(r#"{{"store":false,"input":[{item}]}}"#);
        assert!(posted(&body, &STRICT).is_err(), "{item}");
        assert!(posted(&body, &Says { urls: true, ..STRICT }).unwrap().body.is_none(), "{item}");
    }
    assert_same(&[
        r#"{"store":false,"input":[{"role":"user","content":[{"type":"input_image","image_url":"data:image/png;base64,AA=="}]}]}"#,
        r#"{"store":false,"input":[{"role":"user","content":[{"type":"input_image","file_id":"file_1"}]}]}"#,
        r#"{"store":false,"input":[{"role":"user","content":"see https://example.com"}]}"#,
        r#"{"store":false,"input":[{"type":"function_call_output","call_id":"c","output":"https://example.com"}]}"#,
    ]);
}

#[test]
fn agents_at_the_provider_are_a_hosted_tool() {
    assert_sent(&[(r#"{"store":false,"multi_agent":{"enabled":true}}"#, r#"{"store":false}"#)]);
    assert_same(&[r#"{"store":false,"multi_agent":{"enabled":false}}"#]);
}

#[test]
fn what_has_two_readings_is_refused() {
    for body in [
        r#"{"tools":[],"tools":[{"type":"mcp"}]}"#,
        r#"{"store":false,"st\u006fre":true}"#,
        r#"{"tools":[{"type":"function","type":"mcp"}]}"#,
        r#"{"tools":[{"name":"x"}]}"#,
        r#"{"tools":[["type"]]}"#,
        r#"{"tools":{"type":"mcp"}}"#,
        r#"{"input":[{"type":"message","type":"mcp_approval_response"}]}"#,
        r#"{"input":[{"role":"user","content":[{"image_url":{"url":"data:x","url":"https://a"}}]}]}"#,
        r#"{"type":"session.update"}"#,
        r#"{"type":1}"#,
        r#"[{"tools":[]}]"#,
        r#""text""#,
    ] {
        let denial = posted(body, &STRICT).unwrap_err();
        assert_eq!(denial.decision.rule.unwrap().as_str(), "postern/builtin/unparseable", "{body}");
    }
}

#[test]
fn where_policy_says_deny_the_request_is_refused_and_where_it_only_audits_nothing_is_edited() {
    let body = r#"{"tools":[{"type":"web_search"}],"previous_response_id":"r"}"#;
    let says = Says { refuses: true, state: true, ..STRICT };
    assert!(posted(body, &says).is_err());
    assert!(posted(body, &Says { audit: true, ..STRICT }).unwrap().body.is_none());
}

#[test]
fn a_request_says_what_it_is() {
    let body = r#"{"type":"response.create","model":"gpt-5.6","prompt_cache_key":"s1","store":false,
        "tools":[{"type":"function","name":"f"},{"type":"local_shell"}]}"#;
    let facts = posted(body, &STRICT).unwrap().facts;
    assert_eq!(facts.model.as_deref(), Some("gpt-5.6"));
    assert_eq!((facts.stream, facts.writes, facts.session.as_deref()), (true, true, Some("s1")));
    let tools: Vec<(&str, &str)> =
        facts.tools.iter().map(|tool| (tool.name.as_str(), &tool.sha256[..8])).collect();
    assert_eq!(tools.len(), 2);
    assert_eq!((tools[0].0, tools[1].0), ("f", "local_shell"));
    let facts = posted(r#"{"model":"m","store":false,"stream":true}"#, &STRICT).unwrap().facts;
    assert_eq!((facts.stream, facts.writes, facts.session), (true, false, None));
}

#[test]
fn calls_that_were_blocked_get_an_output_where_the_conversation_goes_on() {
    let blocked = BlockedCalls::new(4);
    let kinds = ["function_call", "custom_tool_call", "shell_call", "apply_patch_call", "computer_call"];
    for (number, kind) in kinds.iter().enumerate() {
        blocked.remember("resp_1", &BlockedCall { id: format!("c{number}"), kind: (*kind).to_owned() });
    }
    let says = Says { state: true, ..STRICT };
    let outputs = |body: &str| -> Vec<String> {
        let edited = ask("/v1/responses", body, &says, &blocked).unwrap().body.unwrap();
        let value: serde_json::Value = serde_json::from_slice(&edited).unwrap();
        let items = value["input"].as_array().unwrap();
        items.iter().map(|item| format!("{}{}", item["type"], item["call_id"]).replace('"', "")).collect()
    };
    let all = ["function_call_outputc0", "custom_tool_call_outputc1", "shell_call_outputc2"];
    assert_eq!(outputs(r#"{"previous_response_id":"resp_1"}"#)[..3], all);
    assert_eq!(outputs(r#"{"previous_response_id":"resp_1","input":"go on"}"#)[..3], all);
    let answered = r#"{"previous_response_id":"resp_1","input":[{"type":"function_call_output","call_id":"c0","output":"x"}]}"#;
    assert_eq!(outputs(answered)[1], all[1]);
    for body in [r#"{"previous_response_id":"resp_2"}"#, r#"{"input":"resp_1"}"#] {
        assert!(ask("/v1/responses", body, &says, &blocked).unwrap().body.is_none(), "{body}");
    }
}
