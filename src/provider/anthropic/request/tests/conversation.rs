//! What a conversation says of tools that are taken out.

use super::super::testing::*;
use super::{becomes, stays, talk};

const SEARCH: &str = r#"{"type":"web_search_20250305","name":"web_search"}"#;
const CALL: &str = r#"{"type":"server_tool_use","id":"s1","name":"web_search","input":{"query":"q"}}"#;
const RESULT: &str = r#"{"type":"web_search_tool_result","tool_use_id":"s1","content":[{"type":"web_search_result","url":"https://a"}]}"#;

fn text(said: &str) -> String {
    format!(r#"{{"type":"text","text":"[postern] {said}"}}"#)
}

fn said(blocks: &str) -> String {
    format!(r#"{{"role":"assistant","content":[{blocks}]}}"#)
}

/// The body of [`talk`] with another tool beside the custom one.
fn with_tool(tool: &str, messages: &str) -> String {
    talk(messages).replacen("[{", &format!("[{tool},{{"), 1)
}

#[test]
fn calls_of_a_hosted_tool_stay_unless_the_tool_goes() {
    let messages = said(&format!("{CALL},{RESULT}"));
    stays(&[&talk(&messages)]);
    let body = with_tool(SEARCH, &messages);
    assert_eq!(sent(&body, allowing(&["web_search_20250305"])).0, body);
    let used = text("The tool web_search was used here; it is not available any more.");
    let result = text("The result of this tool is not shown any more.");
    assert_eq!(strictly(&body), talk(&said(&format!("{used},{result}"))));
}

#[test]
fn calls_of_code_execution_and_of_what_it_called_become_text_with_it() {
    let code = r#"{"type":"code_execution_20250825","name":"code_execution"}"#;
    let call =
        r#"{"type":"server_tool_use","id":"s1","name":"bash_code_execution","input":{"command":"ls"}}"#;
    let by_code = r#"{"type":"tool_use","id":"t1","name":"a","input":{},"caller":{"type":"code_execution_20250825","tool_id":"s1"}}"#;
    let result = r#"{"type":"bash_code_execution_tool_result","tool_use_id":"s1","content":{}}"#;
    let messages = |call: &str, by_code: &str, result: &str| {
        let outcome =
            r#"{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":"x"}]}"#;
        format!("{},{outcome},{}", said(&format!("{call},{by_code}")), said(result))
    };
    let expected = messages(
        &text("The tool bash_code_execution was used here; it is not available any more."),
        r#"{"type":"tool_use","id":"t1","name":"a","input":{}}"#,
        &text("The result of this tool is not shown any more."),
    );
    assert_eq!(strictly(&with_tool(code, &messages(call, by_code, result))), talk(&expected));
    stays(&[&talk(&messages(call, by_code, result))]);
}

#[test]
fn calls_of_mcp_tools_become_text_where_the_servers_go() {
    let blocks = r#"{"type":"mcp_tool_listing","mcp_server_name":"s","tools":[]},{"type":"mcp_tool_use","id":"m1","name":"t","server_name":"s","input":{}},{"type":"mcp_tool_result","tool_use_id":"m1","content":[]}"#;
    let expected = [
        text("These tools are not available any more."),
        text("The tool mcp_toolset was used here; it is not available any more."),
        text("The result of this tool is not shown any more."),
    ];
    let toolset = r#"{"type":"mcp_toolset","mcp_server_name":"s"}"#;
    assert_eq!(strictly(&with_tool(toolset, &said(blocks))), talk(&said(&expected.join(","))));
    stays(&[&talk(&said(blocks))]);
}

#[test]
fn a_reference_to_a_tool_that_is_gone_becomes_text() {
    let found = |name: &str| {
        format!(
            r#"{{"role":"user","content":[{{"type":"tool_result","tool_use_id":"t","content":[{{"type":"tool_reference","tool_name":"{name}"}}]}}]}}"#
        )
    };
    let gone = format!(
        r#"{{"role":"user","content":[{{"type":"tool_result","tool_use_id":"t","content":[{}]}}]}}"#,
        text("This tool is not available.")
    );
    assert_eq!(strictly(&with_tool(SEARCH, &found("web_search"))), talk(&gone));
    assert_eq!(strictly(&with_tool(SEARCH, &found("a"))), talk(&found("a")));
    stays(&[&talk(&found("web_search"))]);
}

#[test]
fn what_a_search_found_keeps_what_is_left() {
    let searcher = r#"{"type":"tool_search_tool_bm25","name":"tool_search_tool_bm25"}"#;
    let found = |names: &[&str]| {
        let references: Vec<String> =
            names.iter().map(|name| format!(r#"{{"type":"tool_reference","tool_name":"{name}"}}"#)).collect();
        said(&format!(
            r#"{{"type":"tool_search_tool_result","tool_use_id":"s2","content":{{"type":"tool_search_tool_search_result","tool_references":[{}]}}}}"#,
            references.join(",")
        ))
    };
    let body = |names: &[&str]| with_tool(&format!("{searcher},{SEARCH}"), &found(names));
    let allowed = allowing(&["tool_search_tool_bm25"]);
    let kept = |names: &[&str]| with_tool(searcher, &found(names));
    assert_eq!(sent(&body(&["a", "web_search"]), allowed).0, kept(&["a"]));
    assert_eq!(sent(&body(&["web_search"]), allowed).0, kept(&[]));
}

#[test]
fn a_converted_result_is_not_looked_into_again() {
    let searcher = r#"{"type":"tool_search_tool_bm25","name":"tool_search_tool_bm25"}"#;
    let call = r#"{"type":"server_tool_use","id":"s2","name":"tool_search_tool_bm25","input":{}}"#;
    let result = r#"{"type":"tool_search_tool_result","tool_use_id":"s2","content":{"tool_references":[{"type":"tool_reference","tool_name":"web_search"}]}}"#;
    let body = with_tool(&format!("{searcher},{SEARCH}"), &said(&format!("{call},{result}")));
    let used = text("The tool tool_search_tool_bm25 was used here; it is not available any more.");
    let shown = text("The result of this tool is not shown any more.");
    assert_eq!(strictly(&body), talk(&said(&format!("{used},{shown}"))));
}

#[test]
fn every_turn_is_edited_as_the_one_before() {
    let first = said(&format!("{CALL},{RESULT}"));
    let second = format!(r#"{first},{{"role":"user","content":"more"}}"#);
    let (first, second) = (strictly(&with_tool(SEARCH, &first)), strictly(&with_tool(SEARCH, &second)));
    assert!(second.starts_with(first.strip_suffix("]}").unwrap()), "{first} {second}");
}

#[test]
fn unknown_roles_and_blocks_are_walked_like_others() {
    becomes(&[(
        "a role that nobody knows",
        &talk(
            r#"{"role":"developer","content":[{"type":"later","content":[{"type":"tool_addition","tool":{"type":"mcp_toolset_reference","server_name":"s"}}]}]}"#,
        ),
        &talk(r#"{"role":"developer","content":[{"type":"later","content":[]}]}"#),
    )]);
}
