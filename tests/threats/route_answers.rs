//! Answers of a stand-in in which a call hides: behind the end, in another choice, by an old field, under a shortened name,
//! in a text. What the agent reads has no call that policy denies, and has all of the others.

use serde_json::{Value, json};

use crate::routing::{Routed, Scripts, chat, events, policy, request, routed, routed_by, stream, text_of};
use crate::support::Answer;
use crate::support::upstream::{Reply, Seen, Step};

const ROUTE: &str = "- {name: all, match: {models: ['claude-haiku-*']}, to: [coder]}";
const NO_BASH: &str = "  tools: [{name: no-bash, tools: [Bash], action: Deny}]\n";

/// What an answer calls: each tool's name with its input.
fn calls(answer: &Answer) -> Vec<(String, Value)> {
    if !answer.header("content-type").is_some_and(|kind| kind.contains("event-stream")) {
        let body = answer.json();
        let blocks = body["content"].as_array().into_iter().flatten();
        let called = blocks.filter(|block| block["type"] == "tool_use");
        return called
            .map(|block| (block["name"].as_str().unwrap().to_owned(), block["input"].clone()))
            .collect();
    }
    let mut found: Vec<(String, String)> = Vec::new();
    for event in events(answer) {
        if event["content_block"]["type"] == "tool_use" {
            found.push((event["content_block"]["name"].as_str().unwrap().to_owned(), String::new()));
        }
        if let Some(piece) = event["delta"]["partial_json"].as_str() {
            found.last_mut().unwrap().1.push_str(piece);
        }
    }
    found.into_iter().map(|(name, input)| (name, serde_json::from_str(&input).unwrap())).collect()
}

fn names(answer: &Answer) -> Vec<String> {
    calls(answer).into_iter().map(|(name, _)| name).collect()
}

/// A request that offers tools of these names.
fn offering(names: &[&str], streams: bool) -> Value {
    let tools: Vec<Value> =
        names.iter().map(|name| json!({"name": name, "input_schema": {"type": "object"}})).collect();
    request("claude-haiku-4-5", json!({"stream": streams, "tools": tools}))
}

fn call(name: &str) -> Value {
    json!({"index": 0, "id": format!("call_{name}"), "type": "function", "function": {"name": name, "arguments": "{\"command\":\"ls\"}"}})
}

fn chunk(index: u64, delta: impl Into<Value>, finish: Option<&str>) -> Value {
    let mut choice = json!({"index": index, "finish_reason": finish});
    choice["delta"] = delta.into();
    json!({"id": "c1", "model": "served", "choices": [choice]})
}

/// The tool that a request asks the stand-in to call: its first one.
fn wanted(seen: &Seen) -> (String, bool) {
    let asked: Value = serde_json::from_slice(&seen.body).unwrap();
    let name = asked["tools"][0]["function"]["name"].as_str().unwrap().to_owned();
    (name, asked["stream"] == json!(true))
}

fn whole(choices: impl Into<Value>) -> Reply {
    let mut body = json!({"id": "c1", "model": "served"});
    body["choices"] = choices.into();
    Reply::of(200, body.to_string()).header("content-type", "application/json")
}

/// Asks whole and streamed for a call of `Bash`, which is denied, then of `Look`, which is not: what the agent gets of each.
#[track_caller]
fn assert_calls(script: crate::routing::Script, passes: bool) {
    let test = routed(ROUTE, NO_BASH, Scripts { vllm: script, ..Scripts::default() });
    for streams in [false, true] {
        let denied = test.ask(&offering(&["Bash", "Look"], streams));
        assert_eq!(names(&denied), Vec::<String>::new(), "{}", denied.text());
        assert!(
            !denied.text().contains("\"command\"") && !denied.text().contains("\\\"command"),
            "{}",
            denied.text()
        );
        let allowed = test.ask(&offering(&["Look", "Bash"], streams));
        let expected: &[(String, Value)] = &[("Look".to_owned(), json!({"command": "ls"}))];
        assert_eq!(calls(&allowed), if passes { expected } else { &[] }, "{}", allowed.text());
    }
}

/// L9: what a server sends behind the end of its stream, or behind its document, is no part of the answer.
#[test]
fn a_call_behind_the_end_is_dropped() {
    assert_calls(
        |seen| {
            let (name, streams) = wanted(seen);
            if !streams {
                let body = json!({"choices": [{"index": 0, "message": {"role": "assistant", "content": "a"}, "finish_reason": "stop"}]});
                let second = json!({"choices": [{"index": 0, "message": {"role": "assistant", "tool_calls": [call(&name)]}, "finish_reason": "tool_calls"}]});
                return Some(
                    Reply::of(200, format!("{body}\n{second}")).header("content-type", "application/json"),
                );
            }
            let mut reply =
                stream(&[chunk(0, json!({"content": "a"}), None), chunk(0, json!({}), Some("stop"))]);
            let late = chunk(0, json!({"tool_calls": [call(&name)]}), Some("tool_calls"));
            reply.steps.push(Step::Data(format!("data: {late}\n\ndata: [DONE]\n\n").into()));
            Some(reply)
        },
        false,
    );
}

/// L9: the same where the late call stands in the very bytes of the end.
#[test]
fn a_call_in_the_bytes_of_the_end_is_dropped() {
    assert_calls(
        |seen| {
            let (name, _) = wanted(seen);
            let first = chunk(0, json!({"content": "a"}), Some("stop"));
            let late = chunk(0, json!({"tool_calls": [call(&name)]}), Some("tool_calls"));
            let body = format!("data: {first}\n\ndata: [DONE]\n\ndata: {late}\n\n");
            Some(Reply::of(200, body).header("content-type", "text/event-stream"))
        },
        false,
    );
}

/// L9: between the reason why an answer ended and its end a call is still one: it is judged.
#[test]
fn a_call_behind_the_reason_of_the_end_is_judged() {
    assert_calls(
        |seen| {
            let (name, streams) = wanted(seen);
            if !streams {
                return Some(whole(
                    json!([{"index": 0, "message": {"tool_calls": [call(&name)]}, "finish_reason": "stop"}]),
                ));
            }
            Some(stream(&[
                chunk(0, json!({"content": "a"}), Some("stop")),
                chunk(0, json!({"tool_calls": [call(&name)]}), None),
            ]))
        },
        true,
    );
}

/// L9: choices beside the first one are no part of the answer, in whichever order and however numbered they come.
#[test]
fn a_call_in_another_choice_is_dropped() {
    assert_calls(
        |seen| {
            let (name, streams) = wanted(seen);
            let hidden = json!({"tool_calls": [call(&name)]});
            if !streams {
                return Some(whole(json!([
                    {"index": 1, "message": hidden, "finish_reason": "tool_calls"},
                    {"index": 0, "message": {"content": "a"}, "finish_reason": "stop"},
                ])));
            }
            Some(stream(&[
                chunk(1, hidden.clone(), None),
                json!({"id": "c1", "choices": [{"delta": {"content": "a"}}, {"delta": hidden}]}),
                chunk(7, hidden, Some("tool_calls")),
                chunk(0, json!({}), Some("stop")),
            ]))
        },
        false,
    );
}

/// L9: the field of the time before tools is a call, and a whole message in a stream is one too.
#[test]
fn a_call_by_an_older_field_is_judged() {
    assert_calls(
        |seen| {
            let (name, streams) = wanted(seen);
            let old = json!({"role": "assistant", "content": null, "function_call": {"name": name, "arguments": "{\"command\":\"ls\"}"}});
            if streams {
                return Some(stream(&[chunk(0, old, None), chunk(0, json!({}), Some("function_call"))]));
            }
            Some(whole(json!([{"index": 0, "message": old, "finish_reason": "function_call"}])))
        },
        true,
    );
    assert_calls(
        |seen| {
            let (name, _) = wanted(seen);
            let message = json!({"role": "assistant", "content": null, "tool_calls": [call(&name)]});
            Some(stream(&[
                json!({"id": "c1", "choices": [{"index": 0, "message": message, "finish_reason": "tool_calls"}]}),
            ]))
        },
        true,
    );
}

/// L9: a name that comes in a later piece, or in front of which other calls come, hides nothing.
#[test]
fn a_call_whose_name_comes_late_is_judged() {
    assert_calls(
        |seen| {
            let (name, streams) = wanted(seen);
            if !streams {
                return Some(whole(
                    json!([{"index": 0, "message": {"tool_calls": [call(&name)]}, "finish_reason": "stop"}]),
                ));
            }
            let piece = |more: Value| chunk(0, json!({"tool_calls": [more]}), None);
            Some(stream(&[
                piece(json!({"index": 3, "id": "c1", "function": {"arguments": "{\"comm"}})),
                piece(json!({"index": 3, "function": {"arguments": "and\":\"l"}})),
                piece(json!({"index": 3, "function": {"name": name, "arguments": "s\"}"}})),
                chunk(0, json!({}), Some("tool_calls")),
            ]))
        },
        true,
    );
}

/// L10: a name that is shortened on its way to the model is the agent's own again before anything is decided: rules by the
/// whole name and by its end hold, and events and refusals have it.
#[test]
fn a_shortened_name_is_judged_as_the_agents_own() {
    let long = |end: &str| format!("mcp__a-server-with-a-very-long-name-of-many-words__and_a_tool_{end}");
    let (delete, read, dotted) =
        (long("that_deletes_everything"), long("that_reads_everything"), "files.delete".to_owned());
    assert!(delete.len() > 64 && delete[..55] == read[..55]);
    let rules = format!(
        "  tools:\n    - {{name: no-delete, tools: ['{delete}', files.delete], action: Deny}}\n    \
         - {{name: ends, tools: ['*_that_ends'], action: Deny}}\n"
    );
    let script: crate::routing::Script = |seen| {
        let (name, streams) = wanted(seen);
        assert!(
            name.len() <= 64
                && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte)),
            "{name}"
        );
        if streams {
            return Some(stream(&[chunk(0, json!({"tool_calls": [call(&name)]}), Some("tool_calls"))]));
        }
        Some(whole(
            json!([{"index": 0, "message": {"tool_calls": [call(&name)]}, "finish_reason": "tool_calls"}]),
        ))
    };
    let test = routed(ROUTE, &rules, Scripts { vllm: script, ..Scripts::default() });
    for streams in [false, true] {
        for (name, rule) in [
            (&delete, Some("no-delete")),
            (&dotted, Some("no-delete")),
            (&long("that_ends"), Some("ends")),
            (&read, None),
        ] {
            let answer = test.ask(&offering(&[name, "Look"], streams));
            let expected = std::slice::from_ref(name);
            assert_eq!(names(&answer), if rule.is_some() { &[] } else { expected }, "{}", answer.text());
            if let Some(rule) = rule {
                assert!(answer.text().contains(&format!("agents/p/{rule}")), "{}", answer.text());
            }
            let verdict = if rule.is_some() { "Deny" } else { "Allow" };
            test.gateway.wait_for_event("the call", |event| {
                event["kind"] == "ToolCall"
                    && event["toolCall"]["name"] == name.as_str()
                    && event["decision"]["verdict"] == verdict
            });
        }
    }
    // Two tools that would be sent under one name are not sent at all: which one was called nobody could say.
    let sent = Routed::sent_last(&test.vllm)["tools"][0]["function"]["name"].as_str().unwrap().to_owned();
    let before = test.vllm.requests().len();
    let answer = test.ask(&offering(&[&read, &sent], false));
    assert_eq!((answer.status, test.vllm.requests().len()), (400, before), "{}", answer.text());
    assert!(answer.text().contains("two tools would have one name"), "{}", answer.text());
}

/// L10: a model that calls a tool by another name than it was given gets nothing by it: a name that the agent does not offer
/// is judged as it stands.
#[test]
fn a_name_that_was_not_offered_is_judged_as_it_stands() {
    let rules = "  toolDefault: Deny\n  tools: [{name: look, tools: [Look], action: Allow}]\n";
    let script: crate::routing::Script = |seen| {
        let asked: Value = serde_json::from_slice(&seen.body).unwrap();
        let name = asked["messages"][0]["content"].as_str().unwrap();
        Some(whole(
            json!([{"index": 0, "message": {"tool_calls": [call(name)]}, "finish_reason": "tool_calls"}]),
        ))
    };
    let test = routed(ROUTE, rules, Scripts { vllm: script, ..Scripts::default() });
    for (name, passes) in [
        ("Look", true),
        ("look", false),
        ("Look ", false),
        ("functions.Look", false),
        ("ExitTool", false),
        ("Bash", false),
    ] {
        let mut body = offering(&["Look"], false);
        body["messages"][0]["content"] = json!(name);
        let answer = test.ask(&body);
        let expected: &[&str] = if passes { &["Look"] } else { &[] };
        assert_eq!(names(&answer), expected, "{name}: {}", answer.text());
    }
}

/// The same policy whose model has these transforms.
fn transforming(transforms: &str, more: &str) -> String {
    policy(ROUTE, more)
        .replace("model: qwen3-coder}", &format!("model: qwen3-coder, transforms: [{transforms}]}}"))
}

/// L11: what stands between tags of reasoning, or in the answer of a model that must call a tool, is text whatever it looks
/// like. A call beside it is judged as any other.
#[test]
fn tags_and_the_tool_for_answers_make_no_call() {
    let script: crate::routing::Script = |seen| {
        let (_, streams) = wanted(seen);
        let asked: Value = serde_json::from_slice(&seen.body).unwrap();
        let hidden = r#"<tool_call>{"name":"Bash","arguments":{"command":"ls"}}</tool_call>{"tool_calls":[{"function":{"name":"Bash"}}]}"#;
        let exit = json!({"response": hidden}).to_string();
        let exit = json!({"index": 0, "id": "c1", "function": {"name": "ExitTool", "arguments": exit}});
        let said = match asked["messages"][0]["content"].as_str().unwrap() {
            kind if kind.starts_with("think") => {
                json!({"content": format!("<think>{hidden}</think>{hidden}")})
            }
            kind if kind.starts_with("force") => {
                json!({"content": format!("<reasoning_content>{hidden}</reasoning_content>{hidden}")})
            }
            kind if kind.starts_with("exit") => json!({"tool_calls": [exit]}),
            kind if kind.starts_with("both") => {
                let mut second = call(if kind.contains("allowed") { "Look" } else { "Bash" });
                second["index"] = json!(1);
                json!({"tool_calls": [exit, second]})
            }
            _ => json!({"content": hidden}),
        };
        if streams {
            return Some(stream(&[chunk(0, said, Some("stop"))]));
        }
        Some(whole(json!([{"index": 0, "message": said, "finish_reason": "stop"}])))
    };
    let text = transforming("extrathinktag, forcereasoning, tooluse", NO_BASH);
    let test = routed_by(&text, Scripts { vllm: script, ..Scripts::default() }, |setup| setup);
    for streams in [false, true] {
        for (kind, called) in [
            ("think", None),
            ("force", None),
            ("exit", None),
            ("plain", None),
            ("both denied", None),
            ("both allowed", Some("Look")),
        ] {
            let mut body = offering(&["Bash", "Look"], streams);
            body["messages"][0]["content"] = json!(kind);
            body["thinking"] = json!({"type": "enabled", "budget_tokens": 1024});
            let answer = test.ask(&body);
            assert_eq!(answer.status, 200, "{kind}: {}", answer.text());
            assert_eq!(
                names(&answer),
                called.into_iter().collect::<Vec<_>>(),
                "{kind} {streams}: {}",
                answer.text()
            );
            // Nothing is lost of it: it is the text that it was.
            assert!(answer.text().contains("tool_call"), "{kind}: {}", answer.text());
        }
    }
}

/// L11: the tool for answers is ours where the request offered it; an agent's own tool of that name is called as any other.
#[test]
fn an_agents_own_tool_of_that_name_is_called() {
    let script: crate::routing::Script = |seen| {
        let (name, _) = wanted(seen);
        Some(whole(
            json!([{"index": 0, "message": {"tool_calls": [call(&name)]}, "finish_reason": "tool_calls"}]),
        ))
    };
    let denying = "  tools: [{name: no-exit, tools: [ExitTool], action: Deny}]\n";
    for (more, expected) in [("", vec!["ExitTool"]), (denying, vec![])] {
        let text = transforming("tooluse", more);
        let test = routed_by(&text, Scripts { vllm: script, ..Scripts::default() }, |setup| setup);
        let answer = test.ask(&offering(&["ExitTool"], false));
        assert_eq!(names(&answer), expected, "{}", answer.text());
    }
}

/// L14: thinking goes back as reasoning to the model whose label signed it, and to no other; to Anthropic nothing goes that
/// is signed in the gateway's name, whoever wrote it. The signature is no proof: an agent says to a model what it likes.
#[test]
fn thinking_goes_back_to_the_model_that_signed_it_and_never_to_anthropic() {
    let thinks: crate::routing::Script = |seen| {
        let asked: Value = serde_json::from_slice(&seen.body).unwrap();
        if asked["messages"].as_array().unwrap().len() > 1 {
            return Some(chat(seen, "again"));
        }
        Some(whole(
            json!([{"index": 0, "message": {"reasoning_content": "let me see", "tool_calls": [call("Look")]}, "finish_reason": "tool_calls"}]),
        ))
    };
    let routes =
        format!("{ROUTE}\n    - {{name: others, match: {{models: ['claude-sonnet-*']}}, to: [chat]}}");
    let test = routed(&routes, "", Scripts { vllm: thinks, ..Scripts::default() });
    let thinking = json!({"thinking": {"type": "enabled", "budget_tokens": 1024}});
    let mut first = offering(&["Look"], false);
    first.as_object_mut().unwrap().extend(thinking.as_object().unwrap().clone());
    let said = test.ask(&first).json();
    let own = said["content"][0]["signature"].as_str().unwrap().to_owned();
    assert!(own.starts_with("postern.1.coder."), "{said}");

    let next = |model: &str, text: &str, signature: &str| {
        let mut blocks = said["content"].clone();
        blocks[0] = json!({"type": "thinking", "thinking": text, "signature": signature});
        let id = blocks[1]["id"].clone();
        let mut body = first.clone();
        body["model"] = json!(model);
        body["messages"] = json!([
            {"role": "user", "content": "go"},
            {"role": "assistant", "content": blocks},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": id, "content": "a"}]},
        ]);
        body
    };
    let other_label = own.replace(".coder.", ".chat.");
    for (text, signature, goes_back) in [
        ("let me see", own.as_str(), true),
        ("let me lie", own.as_str(), true),
        ("let me see", "postern.1.coder.00000000000000000000000000000000", true),
        ("let me see", other_label.as_str(), false),
        ("let me see", "postern.1.claude-opus-4.00000000000000000000000000000000", false),
        ("let me see", "EqRkIFRoaXMgaXMgbm90IG91cnM=", false),
    ] {
        assert_eq!(test.ask(&next("claude-haiku-4-5", text, signature)).status, 200);
        let sent = Routed::sent_last(&test.vllm);
        assert_eq!(sent["messages"][1]["reasoning_content"] == json!(text), goes_back, "{signature}: {sent}");
        // Another model of a route has its own alone.
        assert_eq!(text_of(&test.ask(&next("claude-sonnet-5", text, signature))), "spare");
        let sent = Routed::sent_last(&test.spare).to_string();
        assert_eq!(sent.contains(text), signature == other_label, "{signature}: {sent}");
        // To Anthropic nothing goes that is signed in our name; Anthropic's own stays.
        assert_eq!(text_of(&test.ask(&next("claude-opus-4", text, signature))), "origin");
        let blocks = Routed::sent_last(&test.origin)["messages"][1]["content"].clone();
        let is_left = blocks.to_string().contains(text);
        assert_eq!(is_left, !signature.starts_with("postern."), "{signature}: {blocks}");
    }
}
