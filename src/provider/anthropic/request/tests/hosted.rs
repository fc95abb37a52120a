//! Doors to what the provider would execute: tools, MCP servers, containers, threads, URLs.

use super::super::testing::*;
use super::{becomes, stays, talk};
use crate::call::{Change, DenialForm, HostedAction};

const CLIENT: &[&str] = &[
    "custom",
    "bash_20241022",
    "bash_20250124",
    "text_editor_20241022",
    "text_editor_20250124",
    "text_editor_20250429",
    "text_editor_20250728",
    "computer_20241022",
    "computer_20250124",
    "computer_20251124",
    "memory_20250818",
    "computer_toolset_20260801",
    "browser_toolset_20260801",
];

const HOSTED: &[&str] = &[
    "web_search_20250305",
    "web_search_20260209",
    "web_search_20260318",
    "web_fetch_20250910",
    "web_fetch_20260209",
    "web_fetch_20260309",
    "web_fetch_20260318",
    "code_execution_20250522",
    "code_execution_20250825",
    "code_execution_20260120",
    "code_execution_20260521",
    "tool_search_tool_regex",
    "tool_search_tool_regex_20251119",
    "tool_search_tool_bm25",
    "tool_search_tool_bm25_20251119",
    "advisor_20260301",
    "mcp_toolset",
    // Nobody has looked at these.
    "bash_20270101",
    "Custom",
    "custom ",
    "",
];

#[test]
fn what_the_client_executes_is_kept() {
    for kind in CLIENT {
        stays(&[&format!(r#"{{"tools":[{{"type":"{kind}","name":"x"}},{{"name":"y"}},{{"type":null}}]}}"#)]);
    }
}

#[test]
fn what_the_provider_would_execute_and_what_nobody_knows_is_taken_out() {
    for kind in HOSTED {
        let hosted = format!(r#"{{"type":"{kind}","name":"x"}}"#);
        let (kept, changes) =
            sent(&format!(r#"{{"tools":[{hosted}, {{"name":"y"}}],"max_tokens":1}}"#), STRICT);
        assert_eq!(kept, r#"{"tools":[{"name":"y"}],"max_tokens":1}"#, "{kind}");
        assert_eq!(changes, [Change::HostedTool((*kind).to_owned())]);
        assert_eq!(strictly(&format!(r#"{{"max_tokens":1,"tools":[{hosted}]}}"#)), r#"{"max_tokens":1}"#);
    }
}

#[test]
fn escapes_hide_no_tool() {
    becomes(&[
        ("a key", r#"{"a":1,"t\u006fols":[{"t\u0079pe":"web_search_20250305"}]}"#, r#"{"a":1}"#),
        ("a type", r#"{"a":1,"tools":[{"type":"web\u005fsearch_20250305"}]}"#, r#"{"a":1}"#),
        ("servers", r#"{"a":1,"mcp\u005fservers":[{}]}"#, r#"{"a":1}"#),
    ]);
    stays(&[r#"{"t\u006fols":[{"type":"b\u0061sh_20250124"}]}"#]);
}

#[test]
fn what_policy_allows_is_kept_by_its_exact_type() {
    let body = r#"{"tools":[{"type":"web_search_20250305"},{"type":"web_search_20260209"}]}"#;
    let (kept, _) = sent(body, allowing(&["web_search_20250305"]));
    assert_eq!(kept, r#"{"tools":[{"type":"web_search_20250305"}]}"#);
}

#[test]
fn a_request_may_be_refused_for_what_it_offers() {
    let refuse = Rules { action: HostedAction::Refuse, ..STRICT };
    for body in [
        r#"{"tools":[{"type":"web_search_20250305"}]}"#.to_owned(),
        r#"{"mcp_servers":[{"type":"url"}]}"#.to_owned(),
        r#"{"container":"c"}"#.to_owned(),
        talk(r#"{"role":"user","content":[{"type":"container_upload","file_id":"f"}]}"#),
        talk(&addition(r#"{"type":"tool_definition","definition":{"type":"web_search_20250305"}}"#)),
    ] {
        let denial = refused(&body, refuse);
        assert_eq!(told(&denial).0, "postern/builtin/hosted-tools", "{body}");
        assert_eq!(denial.answer, DenialForm::Forbidden);
    }
    let (kept, _) = sent(r#"{"tools":[{"type":"bash_20250124"}]}"#, refuse);
    assert_eq!(kept, r#"{"tools":[{"type":"bash_20250124"}]}"#);
}

#[test]
fn mcp_servers_go_with_every_toolset() {
    becomes(&[
        ("alone", r#"{"mcp_servers":[{"type":"url","url":"https://a"}],"a":1}"#, r#"{"a":1}"#),
        ("no array", r#"{"mcp_servers":{"url":"https://a"},"a":1}"#, r#"{"a":1}"#),
        (
            "with its toolset",
            r#"{"mcp_servers":[{"name":"s"}],"tools":[{"name":"y"},{"type":"mcp_toolset","mcp_server_name":"s"}]}"#,
            r#"{"tools":[{"name":"y"}]}"#,
        ),
    ]);
    stays(&[r#"{"mcp_servers":[],"tools":[]}"#, r#"{"mcp_servers":null,"tools":null}"#]);
    let body = r#"{"mcp_servers":[{"name":"s"}],"tools":[{"type":"mcp_toolset","mcp_server_name":"s"}]}"#;
    assert_eq!(sent(body, allowing(&["mcp_toolset"])).0, body);
}

fn addition(tool: &str) -> String {
    format!(r#"{{"role":"system","content":[{{"type":"tool_addition","tool":{tool}}}]}}"#)
}

#[test]
fn tools_are_not_added_in_messages_either() {
    let said = r#"{"role":"user","content":"hi"}"#;
    for tool in [
        r#"{"type":"tool_definition","definition":{"type":"web_search_20250305","name":"web_search"}}"#,
        r#"{"type":"tool_definition","definition":{"type":"mcp_toolset","mcp_server_name":"s"}}"#,
        r#"{"type":"tool_definition","definition":{"type":"bash_20270101"}}"#,
        r#"{"type":"mcp_tool_reference","server_name":"s","name":"t"}"#,
        r#"{"type":"mcp_toolset_reference","server_name":"s"}"#,
        r#"{"type":"some_new_reference","name":"t"}"#,
    ] {
        assert_eq!(strictly(&talk(&format!("{said},{}", addition(tool)))), talk(said), "{tool}");
    }
    for tool in [
        r#"{"type":"tool_definition","definition":{"name":"mine","input_schema":{"type":"object"}}}"#,
        r#"{"type":"tool_definition","definition":{"type":"bash_20250124","name":"bash"}}"#,
        r#"{"type":"tool_reference","name":"a"}"#,
    ] {
        stays(&[&talk(&format!("{said},{}", addition(tool)))]);
    }
}

#[test]
fn of_a_message_stays_what_is_no_forbidden_change() {
    let searches = r#"{"type":"tool_addition","tool":{"type":"tool_definition","definition":{"type":"web_search_20250305","name":"web_search"}}}"#;
    let withdrawn = r#"{"type":"tool_removal","tool":{"type":"tool_reference","name":"web_search"}}"#;
    let text = r#"{"type":"text","text":"hi"}"#;
    let with = |blocks: &str| talk(&format!(r#"{{"role":"system","content":[{blocks}]}}"#));
    let body = with(&format!("{text}, {searches}, {withdrawn}"));
    assert_eq!(strictly(&body), with(text));
    let body = talk(&format!(r#"{{"role":"system","output_config":{{}},"content":[{searches}]}}"#));
    assert_eq!(strictly(&body), talk(r#"{"role":"system","output_config":{}}"#));
    stays(&[&with(&withdrawn.replace("web_search", "a"))]);
}

#[test]
fn a_summary_repeats_no_forbidden_change() {
    let change = r#"{"type":"tool_addition","tool":{"type":"tool_definition","definition":{"type":"web_search_20250305"}}}"#;
    let block = |rest: &str, changes: &str| {
        talk(&format!(
            r#"{{"role":"assistant","content":[{{"type":"compaction","content":"s"{rest},"tool_changes":[{changes}]}}]}}"#
        ))
    };
    assert_eq!(strictly(&block("", change)), block("", ""));
    // What the provider signed cannot be edited.
    let denial = refused(&block(r#","signature":"x""#, change), STRICT);
    assert_eq!(told(&denial).0, "postern/builtin/hosted-tools");
    let mine = change.replace("web_search_20250305", "custom");
    stays(&[&block(r#","signature":"x""#, &mine), &block("", &mine)]);
    assert_eq!(sent(&block(r#","signature":"x""#, change), allowing(&["web_search_20250305"])).1, []);
}

#[test]
fn a_container_goes_where_no_code_execution_is_left() {
    let tools = r#""tools":[{"name":"y"}]"#;
    for container in [r#""c1""#, r#"{"id":"c1","skills":[{"type":"anthropic","skill_id":"pdf"}]}"#] {
        assert_eq!(strictly(&format!(r#"{{{tools},"container":{container}}}"#)), format!("{{{tools}}}"));
        let code = format!(
            r#"{{"tools":[{{"type":"code_execution_20250825"}},{{"name":"y"}}],"container":{container}}}"#
        );
        assert_eq!(strictly(&code), format!("{{{tools}}}"));
        assert_eq!(sent(&code, allowing(&["code_execution_20250825"])).0, code);
        let alone = format!(r#"{{{tools},"container":{container}}}"#);
        assert_eq!(sent(&alone, allowing(&["container"])).0, alone);
    }
    stays(&[r#"{"container":null}"#]);
}

#[test]
fn a_file_for_a_container_becomes_text_where_there_is_none() {
    let body = talk(
        r#"{"role":"user","content":[{"type":"container_upload","file_id":"f","cache_control":{"type":"ephemeral"}}]}"#,
    );
    let expected = talk(
        r#"{"role":"user","content":[{"type":"text","text":"[postern] A file for a container stood here; containers are not available.","cache_control":{"type":"ephemeral"}}]}"#,
    );
    assert_eq!(strictly(&body), expected);
    assert_eq!(sent(&body, allowing(&["container"])).0, body);
}

#[test]
fn a_thread_does_not_begin_and_one_that_goes_on_is_refused_recoverably() {
    becomes(&[("create", r#"{"thread":{"type":"create"},"a":1}"#, r#"{"a":1}"#)]);
    stays(&[r#"{"thread":null}"#]);
    for body in [
        r#"{"thread":{"type":"continue","previous_message_id":"msg_1"}}"#,
        r#"{"thread":{"type":"create","previous_message_id":"msg_1"}}"#,
        r#"{"thread":{"type":"resume"}}"#,
    ] {
        let denial = refused(body, STRICT);
        assert_eq!(told(&denial).0, "postern/builtin/provider-state", "{body}");
        let answer = DenialForm::Recoverable { status: 400, code: "thread_unsupported_request" };
        assert_eq!(denial.answer, answer, "{body}");
    }
    let body = r#"{"thread":{"type":"continue","previous_message_id":"msg_1"}}"#;
    let kept = drafted(body, KEEPING, &super::super::MessagesVariant::default()).unwrap();
    assert_eq!(kept.body, None);
    assert!(kept.facts.writes, "what is offered is not in the request");
}

#[test]
fn nothing_that_the_provider_would_fetch_goes_unasked() {
    let url = r#"{"type":"image","source":{"type":"url","url":"https://a"}}"#;
    let document = url.replace("image", "document");
    let within = |block: &str| talk(&format!(r#"{{"role":"user","content":[{block}]}}"#));
    for block in [
        url.to_owned(),
        document,
        url.replace(r#""url","url""#, r#""\u0075rl","url""#),
        url.replace(r#"{"type":"url""#, r#"{"type":"s3""#),
        format!(r#"{{"type":"tool_result","tool_use_id":"t","content":[{url}]}}"#),
        format!(r#"{{"type":"document","source":{{"type":"content","content":[{url}]}}}}"#),
        format!(
            r#"{{"type":"web_fetch_tool_result","content":{{"type":"web_fetch_result","content":{url}}}}}"#
        ),
    ] {
        let denial = refused(&within(&block), STRICT);
        let told = told(&denial);
        assert_eq!(
            told,
            ("postern/builtin/url-sources".into(), "a test says so (messages[0])".into()),
            "{block}"
        );
        assert_eq!(sent(&within(&block), FETCHING).1, []);
    }
    let denial = refused(&format!(r#"{{"system":[{url}]}}"#), STRICT);
    assert_eq!(told(&denial).1, "a test says so (system)");
    let data = r#"{"type":"image","source":{"type":"base64","data":"AA=="}}"#;
    stays(&[
        &within(data),
        &within(&data.replace("base64", "file")),
        &within(&format!(r#"{{"type":"tool_result","content":[{data}]}}"#)),
        &within(r#"{"type":"search_result","source":"https://a","content":[{"type":"text","text":"x"}]}"#),
        // What a tool was asked for is data.
        &within(&format!(r#"{{"type":"tool_use","id":"t","name":"a","input":{{"content":[{url}]}}}}"#)),
    ]);
}

#[test]
fn where_only_audit_policies_are_nothing_is_edited_and_all_is_recorded() {
    let body = r#"{"tools":[{"type":"web_search_20250305"}],"thread":{"type":"create"},"container":"c","messages":[{"role":"user","content":[{"type":"image","source":{"type":"url","url":"u"}}]}]}"#;
    let drafted = drafted(body, AUDIT, &super::super::MessagesVariant::default()).unwrap();
    assert_eq!(drafted.body, None);
    assert_eq!(drafted.changes, []);
    let rules: Vec<&str> = drafted.recorded.iter().map(|it| it.rule.as_ref().unwrap().as_str()).collect();
    let hosted = "postern/builtin/hosted-tools";
    assert_eq!(rules, ["postern/builtin/provider-state", hosted, "postern/builtin/url-sources", hosted]);
}

#[test]
fn what_has_two_readings_is_refused_wherever_it_decides() {
    let said = |content: &str| format!(r#"{{"messages":[{{"role":"user","content":[{content}]}}]}}"#);
    for body in [
        r#"{"tools":[],"t\u006fols":[{"type":"web_search_20250305"}]}"#.to_owned(),
        r#"{"model":"a","model":"b"}"#.to_owned(),
        r#"{"tools":[{"type":"custom","type":"web_search_20250305"}]}"#.to_owned(),
        r#"{"tools":[{"name":"a","name":"b"}]}"#.to_owned(),
        r#"{"tools":[{"type":"web_search_20250305"},{"name":"y"}],"tool_choice":{"type":"auto","type":"any"}}"#.to_owned(),
        r#"{"thread":{"type":"create","type":"continue"}}"#.to_owned(),
        r#"{"messages":[{"role":"user","content":"a","content":[]}]}"#.to_owned(),
        said(r#"{"type":"text","type":"tool_addition"}"#),
        said(r#"{"type":"image","source":{"type":"base64","type":"url"}}"#),
        said(r#"{"type":"tool_addition","tool":{"type":"tool_reference","type":"tool_definition"}}"#),
        said(r#"{"type":"tool_addition","tool":{"type":"tool_definition","definition":{"type":"custom","type":"x"}}}"#),
    ] {
        let denial = refused(&body, STRICT);
        assert_eq!(told(&denial).0, "postern/builtin/unparseable", "{body}");
    }
    // Where nothing is decided by it, it is the provider's to read.
    stays(&[&said(r#"{"type":"tool_use","id":"t","name":"a","input":{"x":1,"x":2}}"#)]);
}

#[test]
fn what_is_of_no_known_shape_is_refused_where_it_decides() {
    for (body, reason) in [
        (r#"[]"#, "the body: it is no JSON object"),
        (r#"{"tools":{}}"#, "tools: it is no array"),
        (r#"{"tools":["web_search"]}"#, "tools[0]: it is no object"),
        (r#"{"tools":[{"type":["custom"]}]}"#, "tools[0]: its type is no string"),
        (r#"{"messages":{"role":"user"}}"#, "messages: it is no array"),
        (r#"{"thread":{}}"#, "thread: it has no type"),
        (
            r#"{"messages":[{"role":"system","content":[{"type":"tool_addition"}]}]}"#,
            "messages[0]: a change of tools without a tool",
        ),
    ] {
        let told = told(&refused(body, STRICT));
        assert_eq!(told.0, "postern/builtin/unparseable");
        assert_eq!(told.1, format!("the request cannot be understood: {reason}"));
    }
}
