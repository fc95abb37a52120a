//! What agents send again and again: betas, counts, retries, and conversations that grow, edited alike on every turn.

use crate::support::upstream::{Reply, Seen};

use super::models::{
    CHAT, CONVERSE, DIALECTS, GEMINI, INVOKE, MESSAGES, RESPONSES, becomes, hosted_tool, models, models_with,
    offering, own_tool, reply, said, untouched,
};

/// A rule that looks at every shell command, so that answers are read.
const NO_RM: &str = "tools: [{name: no-rm, tools: [Bash, run], action: Deny, when: {param: command, operator: Contains, values: [rm]}}]";

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
    let body = r#""anthropic_beta":["mcp-client-2025-11-20"],"betas":["web-fetch-2025-09-10"],"#;
    test.assert_rows(&[
        untouched(MESSAGES, said(MESSAGES, body)),
        untouched(INVOKE, said(INVOKE, body)),
        becomes(
            INVOKE,
            said(
                INVOKE,
                &format!(r#"{body}"mcp_servers":[{{"type":"url","url":"https://a.example","name":"s"}}],"#),
            ),
            said(INVOKE, body),
        ),
    ]);
}

/// A model's answer with one call of a shell, whole and as a stream, for each dialect that has streams of events.
fn answers(command: &str) -> [(&'static str, String, String); 4] {
    let quoted = format!(r#"{{\"command\":\"{command}\"}}"#);
    let anthropic = format!(
        r#"{{"id":"msg_1","type":"message","role":"assistant","model":"m","content":[{{"type":"tool_use","id":"t1","name":"Bash","input":{{"command":"{command}"}}}}],"stop_reason":"tool_use","stop_sequence":null,"usage":{{"input_tokens":7,"output_tokens":9}}}}"#
    );
    let chat = |key: &str| {
        format!(
            r#"{{"id":"c1","object":"chat.completion","model":"m","choices":[{{"index":0,"{key}":{{"role":"assistant","content":null,"tool_calls":[{{"index":0,"id":"t1","type":"function","function":{{"name":"Bash","arguments":"{quoted}"}}}}]}},"finish_reason":"tool_calls"}}]}}"#
        )
    };
    let item = format!(
        r#"{{"id":"fc_1","type":"function_call","status":"completed","call_id":"t1","name":"Bash","arguments":"{quoted}"}}"#
    );
    let response = format!(
        r#"{{"id":"resp_1","object":"response","status":"completed","model":"m","output":[{item}],"usage":{{"input_tokens":7,"output_tokens":9,"total_tokens":16}}}}"#
    );
    let gemini = format!(
        r#"{{"candidates":[{{"content":{{"role":"model","parts":[{{"functionCall":{{"id":"t1","name":"Bash","args":{{"command":"{command}"}}}}}}]}},"finishReason":"STOP","index":0}}]}}"#
    );
    let streamed = |events: &[String]| {
        let event = |data: &String| {
            let name =
                serde_json::from_str::<serde_json::Value>(data).unwrap()["type"].as_str().unwrap().to_owned();
            format!("event: {name}\ndata: {data}\n\n")
        };
        events.iter().map(event).collect::<String>()
    };
    let anthropic_events = streamed(&[
        r#"{"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","model":"m","content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":7,"output_tokens":1}}}"#.to_owned(),
        r#"{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"t1","name":"Bash","input":{}}}"#.to_owned(),
        format!(r#"{{"type":"content_block_delta","index":0,"delta":{{"type":"input_json_delta","partial_json":"{quoted}"}}}}"#),
        r#"{"type":"content_block_stop","index":0}"#.to_owned(),
        r#"{"type":"message_delta","delta":{"stop_reason":"tool_use","stop_sequence":null},"usage":{"output_tokens":9}}"#.to_owned(),
        r#"{"type":"message_stop"}"#.to_owned(),
    ]);
    let responses_events = streamed(&[
        r#"{"type":"response.created","response":{"id":"resp_1","object":"response","status":"in_progress","model":"m","output":[]},"sequence_number":0}"#.to_owned(),
        format!(r#"{{"type":"response.output_item.added","output_index":0,"item":{},"sequence_number":1}}"#, item.replace(&quoted, "").replace("completed", "in_progress")),
        format!(r#"{{"type":"response.function_call_arguments.delta","item_id":"fc_1","output_index":0,"delta":"{quoted}","sequence_number":2}}"#),
        format!(r#"{{"type":"response.function_call_arguments.done","item_id":"fc_1","output_index":0,"name":"Bash","arguments":"{quoted}","sequence_number":3}}"#),
        format!(r#"{{"type":"response.output_item.done","output_index":0,"item":{item},"sequence_number":4}}"#),
        format!(r#"{{"type":"response.completed","response":{response},"sequence_number":5}}"#),
    ]);
    let chat_events = format!(
        "data: {}\n\ndata: [DONE]\n\n",
        chat("delta").replace("chat.completion", "chat.completion.chunk")
    );
    [
        (MESSAGES, anthropic, anthropic_events),
        (CHAT, chat("message"), chat_events),
        (RESPONSES, response, responses_events),
        (GEMINI, gemini.clone(), format!("data: {gemini}\n\n")),
    ]
}

/// E13: whole or streamed, asked for or not, and whatever an answer calls itself, a denied call never reaches the agent.
#[test]
fn no_way_of_asking_or_answering_hides_a_call() {
    let script = |seen: &Seen| {
        let field = |name: &str| seen.header(name).unwrap_or_default().to_owned();
        let found = answers(if field("x-command") == "rm" { "rm -rf /" } else { "ls -l" }).into_iter();
        let same_api = |door: &str| {
            door.split_once('/').unwrap().1.split(':').next() == seen.path()[1..].split(':').next()
        };
        let (_, whole, streamed) = found.into_iter().find(|(door, ..)| same_api(door)).unwrap();
        let reply = Reply::of(200, if field("x-streamed") == "yes" { streamed } else { whole });
        match field("x-type") {
            none if none.is_empty() => reply,
            content_type => reply.header("content-type", content_type),
        }
    };
    let test = models_with(NO_RM, script, |setup| setup);
    for (door, whole, streamed) in answers("ls -l") {
        for asks in [true, false] {
            let (door, entry) = asking(door, asks);
            for content_type in
                ["text/event-stream", "application/json", "text/plain", "application/octet-stream", ""]
            {
                for answer in ["yes", "no"] {
                    let ask = |command: &str| {
                        let fields = [
                            ("accept", if asks { "application/json" } else { "text/event-stream" }),
                            ("x-type", content_type),
                            ("x-streamed", answer),
                            ("x-command", command),
                        ];
                        test.post_with(
                            &door,
                            &fields,
                            said(door.as_str().split('?').next().unwrap_or_default(), entry),
                        )
                        .answer
                    };
                    let place = format!("{door}, asked {asks}, streamed {answer}, as {content_type:?}");
                    let denied = ask("rm").text();
                    assert!(!denied.contains("rm -rf"), "{place}: {denied}");
                    let honest = (asks, answer, content_type) == (true, "yes", "text/event-stream")
                        || (asks, answer, content_type) == (false, "no", "application/json");
                    if honest {
                        let sent = if asks { &streamed } else { &whole };
                        assert_eq!(ask("ls").text(), *sent, "{place}");
                        assert!(denied.contains("no-rm"), "{place}: {denied}");
                    }
                }
            }
        }
    }
}

/// The door, and the entry of a body, by which a stream is asked for.
fn asking(door: &str, stream: bool) -> (String, &'static str) {
    match (door, stream) {
        (GEMINI, true) => (GEMINI.replace(":generateContent", ":streamGenerateContent?alt=sse"), ""),
        (door, true) => (door.to_owned(), r#""stream":true,"#),
        (door, false) => (door.to_owned(), ""),
    }
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

/// K6: what a stream says of usage at its beginning reaches the agent as it was said, also where a call is replaced.
#[test]
fn usage_at_the_beginning_of_a_stream_is_preserved() {
    let script = |seen: &Seen| {
        let command = if seen.header("x-command") == Some("rm") { "rm -rf /" } else { "ls -l" };
        let [(_, _, streamed), ..] = answers(command);
        Reply::of(200, streamed).header("content-type", "text/event-stream")
    };
    let test = models_with(NO_RM, script, |setup| setup);
    let [(_, _, sent), ..] = answers("rm -rf /");
    let start = &sent[..sent.find("\n\n").unwrap() + 2];
    assert!(start.contains(r#""usage":{"input_tokens":7,"output_tokens":1}"#));

    for command in ["rm", "ls"] {
        let asked = test.post_with(MESSAGES, &[("x-command", command)], said(MESSAGES, r#""stream":true,"#));
        let text = asked.answer.text();
        assert!(text.starts_with(start), "{text}");
        assert!(text.contains(r#""usage":{"output_tokens":9}"#), "{text}");
        assert_eq!(text.contains("[postern]"), command == "rm");
        let usage = &test.event_of(&asked, "Response", "Allow")["usage"];
        assert_eq!((&usage["inputTokens"], &usage["outputTokens"]), (&7.into(), &9.into()), "{usage}");
    }
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
