//! What keeps a request valid whose tools were taken out.

use super::super::testing::*;
use super::{becomes, stays};

const SEARCH: &str = r#"{"type":"web_search_20250305","name":"web_search"}"#;
const MINE: &str = r#"{"name":"y"}"#;

/// A body with hosted search and a custom tool, and the same without the search.
fn pair(before: &str, after: &str) -> (String, String) {
    let with = |tools: &str, rest: &str| format!(r#"{{"tools":[{tools}]{rest}}}"#);
    (with(&format!("{SEARCH},{MINE}"), before), with(MINE, after))
}

#[test]
fn a_choice_of_what_is_gone_is_the_models_own() {
    let named = r#","tool_choice":{"type":"tool","name":"web_search"}"#;
    for (before, after) in [
        (named, r#","tool_choice":{"type":"auto"}"#),
        (
            r#","tool_choice":{"type":"tool","name":"web_\u0073earch","disable_parallel_tool_use":true}"#,
            r#","tool_choice":{"type":"auto","disable_parallel_tool_use":true}"#,
        ),
        (r#","tool_choice":{"type":"tool","name":"y"}"#, r#","tool_choice":{"type":"tool","name":"y"}"#),
        (r#","tool_choice":{"type":"any"}"#, r#","tool_choice":{"type":"any"}"#),
        (r#","tool_choice":{"type":"none"}"#, r#","tool_choice":{"type":"none"}"#),
    ] {
        let (before, after) = pair(before, after);
        assert_eq!(strictly(&before), after);
    }
    for choice in ["auto", "any", "none"] {
        let body = format!(r#"{{"tools":[{SEARCH}],"tool_choice":{{"type":"{choice}"}},"a":1}}"#);
        assert_eq!(strictly(&body), r#"{"a":1}"#, "{choice}");
    }
    stays(&[r#"{"tools":[],"tool_choice":{"type":"any"}}"#, &format!(r#"{{"tools":[{MINE}]{named}}}"#)]);
}

#[test]
fn a_cache_breakpoint_moves_to_the_tool_before() {
    let cached = r#"{"type":"web_search_20250305","cache_control":{"type":"ephemeral"}}"#;
    let body = |tools: &str| format!(r#"{{"tools":[{tools}]}}"#);
    becomes(&[
        (
            "the last",
            &body(&format!(r#"{{"name":"x"}},{{"name":"y"}},{cached}"#)),
            &body(r#"{"name":"x"},{"name":"y","cache_control":{"type":"ephemeral"}}"#),
        ),
        (
            "one in the middle",
            &body(&format!(r#"{{"name":"x"}},{cached},{{"name":"y"}}"#)),
            &body(r#"{"name":"x","cache_control":{"type":"ephemeral"}},{"name":"y"}"#),
        ),
        ("the first", &body(&format!(r#"{cached},{{"name":"y"}}"#)), &body(r#"{"name":"y"}"#)),
        (
            "two of them",
            &body(&format!(r#"{{"name":"x"}},{cached},{cached}"#)),
            &body(r#"{"name":"x","cache_control":{"type":"ephemeral"}}"#),
        ),
        (
            "one that has its own",
            &body(&format!(r#"{{"name":"x","cache_control":{{"type":"ephemeral","ttl":"1h"}}}},{cached}"#)),
            &body(r#"{"name":"x","cache_control":{"type":"ephemeral","ttl":"1h"}}"#),
        ),
        (
            "a null",
            &body(&format!(r#"{{"name":"x","cache_control":null}},{cached}"#)),
            &body(r#"{"name":"x","cache_control":{"type":"ephemeral"}}"#),
        ),
        (
            "a deferred tool can have none",
            &body(&format!(r#"{{"name":"x"}},{{"name":"y","defer_loading":true}},{cached}"#)),
            &body(r#"{"name":"x","cache_control":{"type":"ephemeral"}},{"name":"y","defer_loading":true}"#),
        ),
    ]);
}

#[test]
fn without_a_search_of_tools_none_is_deferred() {
    becomes(&[
        (
            "custom tools",
            r#"{"tools":[{"name":"y","defer_loading":true},{"type":"tool_search_tool_bm25_20251119","name":"s"},{"name":"z"}]}"#,
            r#"{"tools":[{"name":"y","defer_loading":false},{"name":"z"}]}"#,
        ),
        (
            "inline",
            r#"{"tools":[{"type":"tool_search_tool_regex"}],"messages":[{"role":"system","content":[{"type":"tool_addition","tool":{"type":"tool_definition","definition":{"name":"y","defer_loading":true}}}]}]}"#,
            r#"{"messages":[{"role":"system","content":[{"type":"tool_addition","tool":{"type":"tool_definition","definition":{"name":"y","defer_loading":false}}}]}]}"#,
        ),
    ]);
    // The client's own search loads them.
    stays(&[r#"{"tools":[{"name":"y","defer_loading":true},{"name":"ToolSearch"}]}"#]);
    let body = r#"{"tools":[{"type":"mcp_toolset","default_config":{"defer_loading":true},"configs":{"t":{"defer_loading":true}}},{"type":"tool_search_tool_bm25"}]}"#;
    let expected = r#"{"tools":[{"type":"mcp_toolset","default_config":{"defer_loading":false},"configs":{"t":{"defer_loading":false}}}]}"#;
    assert_eq!(sent(body, allowing(&["mcp_toolset"])).0, expected);
}

#[test]
fn what_only_code_could_call_is_called_directly() {
    let tool = |callers: &str| format!(r#"{{"name":"y","allowed_callers":[{callers}]}}"#);
    let code = r#"{"type":"code_execution_20250825","name":"code_execution"}"#;
    for callers in [r#""code_execution_20250825""#, r#""direct","code_execution_20260120""#] {
        let body = format!(r#"{{"tools":[{code},{}]}}"#, tool(callers));
        assert_eq!(strictly(&body), format!(r#"{{"tools":[{}]}}"#, tool(r#""direct""#)));
        assert_eq!(sent(&body, allowing(&["code_execution_20250825"])).0, body);
    }
    let direct = tool(r#""direct""#);
    assert_eq!(strictly(&format!(r#"{{"tools":[{code},{direct}]}}"#)), format!(r#"{{"tools":[{direct}]}}"#));
}

#[test]
fn web_fetch_takes_urls_from_no_tool_that_is_gone() {
    let fetch = |sources: &str| {
        format!(r#"{{"tools":[{{"type":"web_fetch_20260318","name":"web_fetch","url_sources":{sources}}}]}}"#)
    };
    let with_search = |sources: &str| fetch(sources).replacen("[{", &format!("[{SEARCH},{MINE},{{"), 1);
    let named = |kind: &str, names: &str| {
        format!(
            r#"{{"user_input":{{"type":"all"}},"server_tool_results":{{"type":"{kind}","tools":[{names}]}}}}"#
        )
    };
    let search = r#"{"type":"tool_reference","name":"web_search"}"#;
    let other = r#"{"type":"tool_reference","name":"y"}"#;
    let all_gone = |kind: &str| {
        format!(r#"{{"user_input":{{"type":"all"}},"server_tool_results":{{"type":"{kind}"}}}}"#)
    };
    for (before, after) in [
        (named("only", &format!("{search},{other}")), named("only", other)),
        (named("except", &format!("{other}, {search}")), named("except", other)),
        (named("only", search), all_gone("none")),
        (named("except", search), all_gone("all")),
    ] {
        let (kept, _) = sent(&with_search(&before), allowing(&["web_fetch_20260318"]));
        assert_eq!(kept, fetch(&after).replacen("[{", &format!("[{MINE},{{"), 1));
    }
}

#[test]
fn every_other_byte_stays_as_it_was() {
    let body = "{ \"model\" : \"m\\u0061\",\r\n\t\"tools\" : [ {\"name\":\"x\", \"n\": 1.0e+2} ,\n  {\"type\":\"web_search_20250305\"} , {\"name\":\"y\"} ] , \"max_tokens\":1E3 }\n";
    let expected = "{ \"model\" : \"m\\u0061\",\r\n\t\"tools\" : [ {\"name\":\"x\", \"n\": 1.0e+2} ,\n  {\"name\":\"y\"} ] , \"max_tokens\":1E3 }\n";
    becomes(&[("whitespace, escapes and numbers", body, expected)]);
}
