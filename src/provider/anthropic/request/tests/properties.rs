//! What holds for every request, whatever tools it has.

use proptest::prelude::*;
use serde_json::Value;

use super::super::testing::strictly;

const KEPT: [&str; 4] = [
    r#"{"name":"x", "input_schema": {"type":"object"}}"#,
    r#"{ "type":"bash_20250124","name":"bash" }"#,
    r#"{"type":"custom","name":"y","n":1.50}"#,
    r#"{"type":"memory_20250818","name":"m\u00e9"}"#,
];

const GONE: [&str; 4] = [
    r#"{"type":"web_search_20250305","name":"web_search"}"#,
    r#"{ "type" : "code_execution_20250825" }"#,
    r#"{"t\u0079pe":"bash_20270101","name":"bash"}"#,
    r#"{"type":"mcp_toolset","mcp_server_name":"s"}"#,
];

/// A list of tools, each with the white space around it.
fn tools() -> impl Strategy<Value = Vec<(&'static str, &'static str)>> {
    let tool = prop_oneof![proptest::sample::select(&KEPT[..]), proptest::sample::select(&GONE[..])];
    proptest::collection::vec((tool, proptest::sample::select(&["", " ", "\n  "][..])), 0..8)
}

proptest! {
    #[test]
    fn what_is_kept_is_kept_byte_for_byte_and_in_order(tools in tools(), rest in "[a-z ]{0,12}") {
        let list: Vec<String> = tools.iter().map(|(tool, space)| format!("{space}{tool}")).collect();
        let body = format!(r#"{{"a": 1e3 ,"tools":[{}],"rest":"{rest}"}}"#, list.join(","));
        let edited = strictly(&body);
        let kept: Vec<&str> = tools.iter().map(|(tool, _)| *tool).filter(|tool| KEPT.contains(tool)).collect();
        let mut at = 0;
        for tool in &kept {
            at += edited[at..].find(tool).expect("a kept tool is there") + tool.len();
        }
        prop_assert!(edited.starts_with(r#"{"a": 1e3 ,"#), "{edited}");
        prop_assert!(edited.ends_with(&format!(r#""rest":"{rest}"}}"#)), "{edited}");
        let read: Value = serde_json::from_str(&edited).unwrap();
        let left = read.get("tools").map(|tools| tools.as_array().unwrap().len());
        prop_assert_eq!(left.unwrap_or(0), kept.len());
        prop_assert_eq!(left.is_none(), kept.is_empty() && !tools.is_empty());
        if kept.len() == tools.len() {
            prop_assert_eq!(&edited, &body);
        }
        prop_assert_eq!(strictly(&edited), edited);
    }
}
