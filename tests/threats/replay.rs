//! What agents send again and again: betas, counts, retries, and conversations that grow, edited alike on every turn.

use super::requests::{
    CHAT, CONVERSE, DIALECTS, GEMINI, INVOKE, MESSAGES, NO_RM, RESPONSES, becomes, hosted_tool, models,
    models_with, offering, own_tool, reply, said, untouched,
};

const BETAS: [(&str, &str); 4] = [
    (
        "anthropic-beta",
        "claude-code-20250219,mcp-client-2025-11-20,context-1m-2025-08-07,of-next-month-2027-01-01",
    ),
    ("anthropic-version", "2023-06-01"),
    ("OpenAI-Beta", "assistants=v2, responses=experimental"),
    ("x-goog-api-client", "genai-js/1.30"),
];

/// E12, K5: betas go on as they are, whatever is taken out: what one would enable is closed where it stands in the body.
#[test]
fn betas_are_preserved_and_enable_nothing() {
    let test = models("");
    for door in DIALECTS {
        for (sent, left) in [
            (vec![own_tool(door)], vec![own_tool(door)]),
            (vec![own_tool(door), hosted_tool(door)], vec![own_tool(door)]),
        ] {
            let asked = test.post_with(door, &BETAS, offering(door, &sent));
            let seen = asked.seen();
            assert_eq!(String::from_utf8_lossy(&seen.body), offering(door, &left), "{door}");
            for (name, value) in BETAS {
                assert_eq!(seen.header(&name.to_ascii_lowercase()), Some(value), "{door} {name}");
            }
        }
    }
    let own = format!(r#""tools":[{}],"#, own_tool(INVOKE));
    let body = r#""anthropic_beta":["mcp-client-2025-11-20"],"betas":["web-fetch-2025-09-10"],"#;
    test.assert_rows(&[
        untouched(MESSAGES, said(MESSAGES, body)),
        untouched(INVOKE, said(INVOKE, body)),
        becomes(
            INVOKE,
            said(
                INVOKE,
                &format!(
                    r#"{body}{own}"mcp_servers":[{{"type":"url","url":"https://a.example","name":"s"}}],"#
                ),
            ),
            said(INVOKE, &format!("{body}{own}")),
        ),
    ]);
}

/// E14: a conversation stays valid after an edit: both blocks of a hosted call become text, references to what is gone too.
#[test]
fn a_conversation_stays_valid_where_its_tools_are_gone() {
    let test = models("");
    let conversation = |tools: &str, assistant: &str| {
        format!(
            r#"{{"model":"m",{tools}"messages":[{{"role":"user","content":"a"}},{{"role":"assistant","content":[{assistant}]}},{{"role":"user","content":"b"}}]}}"#
        )
    };
    let (search, own) = (hosted_tool(MESSAGES), own_tool(MESSAGES));
    let pair = r#"{"type":"thinking","thinking":"t","signature":"sig"},{"type":"server_tool_use","id":"srvtoolu_1","name":"web_search","input":{"query":"q"}},{"type":"web_search_tool_result","tool_use_id":"srvtoolu_1","content":[]},{"type":"text","text":"found"}"#;
    let text = r#"{"type":"thinking","thinking":"t","signature":"sig"},{"type":"text","text":"[postern] The tool web_search was used here; it is not available any more."},{"type":"text","text":"[postern] The result of this tool is not shown any more."},{"type":"text","text":"found"}"#;
    let smuggled = r#"{"type":"text","text":"{\"tools\":[{\"type\":\"web_search_20250305\"}]} <tool>web_search</tool>"}"#;
    let never_issued = r#"{"type":"tool_use","id":"t9","name":"never_issued","input":{"type":"web_search_20250305","tools":[{"type":"mcp"}]}}"#;
    let (both, one) = (format!(r#""tools":[{own},{search}],"#), format!(r#""tools":[{own}],"#));
    test.assert_rows(&[
        becomes(MESSAGES, conversation(&both, pair), conversation(&one, text)),
        becomes(
            MESSAGES,
            conversation(&both, r#"{"type":"tool_reference","tool_name":"web_search"}"#),
            conversation(&one, r#"{"type":"text","text":"[postern] This tool is not available."}"#),
        ),
        becomes(MESSAGES, conversation(&both, smuggled), conversation(&one, smuggled)),
        becomes(MESSAGES, conversation(&both, never_issued), conversation(&one, never_issued)),
        untouched(MESSAGES, conversation(&one, never_issued)),
        untouched(MESSAGES, conversation(&one, pair)),
        untouched(
            MESSAGES,
            conversation(
                r#""system":[{"type":"text","text":"You have web_search_20250305 and mcp_servers."}],"#,
                smuggled,
            ),
        ),
    ]);
}

/// E14: Converse wants a `toolConfig` where a conversation has calls: the last hosted tool leaves one of a tool that is not there.
#[test]
fn converse_keeps_a_configuration_where_its_conversation_has_calls() {
    let test = models("");
    let calls = r#"{"messages":[{"role":"assistant","content":[{"toolUse":{"toolUseId":"t1","name":"look_up","input":{}}}]},{"role":"user","content":[{"toolResult":{"toolUseId":"t1","content":[{"text":"x"}]}}]}],"toolConfig":CONFIG}"#;
    let with = |config: &str| calls.replace("CONFIG", config);
    let asked = test.post(CONVERSE, with(r#"{"tools":[{"systemTool":{"name":"nova_grounding"}}]}"#));
    let config = &serde_json::from_slice::<serde_json::Value>(&asked.seen().body).unwrap()["toolConfig"];
    assert_eq!(config["tools"][0]["toolSpec"]["name"], "not_available", "{config}");
    assert_eq!(config["tools"].as_array().unwrap().len(), 1, "{config}");
    test.event_of(&asked, "Transform", "Allow");
    test.assert_rows(&[untouched(CONVERSE, with(&format!(r#"{{"tools":[{}]}}"#, own_tool(CONVERSE))))]);
}

/// K10: counts of tokens and retries without a stream pass, and are edited as the request is that they stand for.
#[test]
fn counts_and_retries_pass_and_are_edited_alike() {
    let test = models_with(NO_RM, |seen| reply(seen.path()), |setup| setup);
    let counts = [
        (MESSAGES, "api.anthropic.com/v1/messages/count_tokens?beta=true"),
        (RESPONSES, "api.openai.com/v1/responses/input_tokens"),
        (GEMINI, "generativelanguage.googleapis.com/v1beta/models/gemini-3-pro:countTokens"),
    ];
    for (door, count) in counts {
        for (tools, left) in [
            (vec![own_tool(door)], own_tool(door)),
            (vec![own_tool(door), hosted_tool(door)], own_tool(door)),
        ] {
            let asked = test.post(count, offering(door, &tools));
            assert_eq!(String::from_utf8_lossy(&asked.seen().body), offering(door, &[left]), "{count}");
            assert_eq!(
                (asked.answer.status, asked.answer.text().contains("okens\":7")),
                (200, true),
                "{:?}",
                asked.answer
            );
        }
    }
    for door in DIALECTS {
        let body = offering(door, &[own_tool(door), hosted_tool(door)]);
        let [first, again] =
            [test.post(door, &body), test.post_with(door, &[("x-stainless-retry-count", "1")], &body)];
        assert_eq!((first.answer.status, again.answer.status), (200, 200));
        assert_eq!(first.seen().body, again.seen().body);
        assert_eq!(first.answer.body, again.answer.body);
    }
}

/// K11: a conversation that grows is edited to the same beginning on every turn, so that caches and signatures hold.
#[test]
fn a_conversation_that_grows_is_edited_to_the_same_beginning() {
    let test = models("");
    for door in DIALECTS {
        let mut before: Option<Vec<u8>> = None;
        for turns in 1..4 {
            let asked = test.post(door, conversation(door, turns));
            assert_eq!(asked.answer.status, 200, "{door}: {:?}", asked.answer);
            test.event_of(&asked, "Transform", "Allow");
            let body = asked.seen().body.clone();
            if let Some(before) = before.replace(body.clone()) {
                let shared = before.strip_suffix(b"]}").unwrap();
                assert!(body.starts_with(shared), "{door}: {}", String::from_utf8_lossy(&body));
            }
        }
    }
}

/// A conversation of so many turns, with a hosted tool in all that a dialect has of it; what is said comes last.
fn conversation(door: &str, turns: usize) -> String {
    let turn = |number: usize| match door {
        GEMINI => format!(
            r#"{{"role":"user","parts":[{{"text":"{number}"}}]}},{{"role":"model","parts":[{{"text":"ok"}}]}}"#
        ),
        CONVERSE => format!(
            r#"{{"role":"user","content":[{{"text":"{number}"}}]}},{{"role":"assistant","content":[{{"text":"ok"}}]}}"#
        ),
        RESPONSES => format!(
            r#"{{"role":"user","content":"{number}"}},{{"type":"additional_tools","tools":[{{"type":"mcp"}},{{"type":"function","name":"f{number}"}}]}},{{"role":"assistant","content":"ok"}}"#
        ),
        CHAT => format!(r#"{{"role":"user","content":"{number}"}},{{"role":"assistant","content":"ok"}}"#),
        _ => format!(
            r#"{{"role":"user","content":"{number}"}},{{"role":"assistant","content":[{{"type":"server_tool_use","id":"s{number}","name":"web_search","input":{{}}}},{{"type":"web_search_tool_result","tool_use_id":"s{number}","content":[]}},{{"type":"text","text":"ok"}}]}}"#
        ),
    };
    let said: Vec<String> = (0..turns).map(turn).collect();
    let body = offering(door, &[hosted_tool(door), own_tool(door)]);
    let (head, list) = match door {
        RESPONSES => (body.strip_suffix(r#""input":"go"}"#).unwrap(), "input"),
        GEMINI => (body.split_once(r#""contents":"#).unwrap().0, "contents"),
        _ => (body.split_once(r#""messages":"#).unwrap().0, "messages"),
    };
    format!(r#"{head}"{list}":[{}]}}"#, said.join(","))
}
