//! Doors that are none in the agent's API and one at the server that stands in: by `params`, by the model's name, in a body
//! that is moved.

use serde_json::{Value, json};

use crate::routing::{
    OPENAI, OPENROUTER, ORIGIN, Routed, Scripts, VLLM, chat, message, policy, request, routed_by, text_of,
};
use crate::support::upstream::{Reply, Seen};

const ROUTE: &str = "- {name: all, match: {models: ['*']}, to: [coder]}";
const HOSTED: &str = "postern/builtin/hosted-tools";

/// The first server is OpenRouter's, which speaks this dialect; `model` are the fields of its model.
fn at_openrouter(dialect: &str, model: &str) -> Routed {
    let credential = "  credentials:\n    - {name: vllm, hosts: [vllm.models.example], ports: [8443], secretKeyRef: {name: keys, key: vllm}}\n";
    let text = policy(ROUTE, "")
        .replace(credential, "")
        .replace(
            &format!("endpoint: 'https://{VLLM}:8443/v1', dialect: OpenAIChat, credential: vllm"),
            &format!("endpoint: 'https://{OPENROUTER}/api/v1', dialect: {dialect}"),
        )
        .replace(
            "{name: coder, provider: vllm, model: qwen3-coder}",
            &format!("{{name: coder, provider: vllm{model}}}"),
        )
        .replace(&format!("hosts: [{ORIGIN}]"), &format!("hosts: [{ORIGIN}, {OPENAI}]"));
    routed_by(&text, Scripts { vllm: |seen| Some(either(seen)), ..Scripts::default() }, |setup| setup)
}

/// Answers in the API that was asked.
fn either(seen: &Seen) -> Reply {
    if seen.path().ends_with("/messages") {
        return Reply::of(200, message("vllm")).header("content-type", "application/json");
    }
    chat(seen, "vllm")
}

/// L8: parameters of a policy that make a server search or fetch are judged as if the agent had sent them: taken out.
#[test]
fn a_door_by_params_is_closed() {
    for (params, left) in [
        ("{web_search_options: {}}", json!({})),
        ("{plugins: [{id: web}]}", json!({})),
        ("{plugins: [{id: of-next-month}], temperature: 0.1}", json!({"temperature": 0.1})),
        ("{models: ['a:online'], top_k: 4}", json!({"models": ["a"], "top_k": 4})),
    ] {
        let test = at_openrouter("OpenAIChat", &format!(", model: openai/gpt-5, params: {params}"));
        assert_eq!(text_of(&test.ask(&request("claude-opus-4", json!({})))), "vllm");
        let mut sent = Routed::sent_last(&test.vllm);
        for own in ["model", "messages", "max_tokens"] {
            sent.as_object_mut().unwrap().remove(own).unwrap();
        }
        assert_eq!(sent, left, "{params}");
    }
}

/// L8: a model that searches by itself is not asked, and an ending of its name that has it search is cut off, whether the
/// policy says the name or the agent.
#[test]
fn a_door_by_the_models_name_is_closed() {
    for (own, asked, sent) in [
        (", model: 'openai/gpt-5:online'", "claude-opus-4", Some("openai/gpt-5")),
        (", model: 'openai/gpt-5:free'", "claude-opus-4", Some("openai/gpt-5:free")),
        ("", "openai/gpt-5:online", Some("openai/gpt-5")),
        ("", "openai/gpt-5", Some("openai/gpt-5")),
        (", model: perplexity/sonar", "claude-opus-4", None),
        ("", "perplexity/sonar-pro", None),
        (", model: openai/gpt-4o-search-preview", "claude-opus-4", None),
    ] {
        for dialect in ["OpenAIChat", "Anthropic"] {
            let test = at_openrouter(dialect, own);
            let answer = test.ask(&request(asked, json!({})));
            match sent {
                Some(sent) => {
                    assert_eq!(text_of(&answer), "vllm", "{own} {asked} {dialect}: {}", answer.text());
                    assert_eq!(Routed::sent_last(&test.vllm)["model"], sent);
                }
                None => {
                    answer.assert_refused_by_provider(HOSTED);
                    assert!(test.vllm.requests().is_empty(), "{own} {asked} {dialect}");
                }
            }
        }
    }
}

/// L8: what the agent's provider ignores and the server that stands in does not is taken out of a body that is moved, and
/// every other byte stays.
#[test]
fn a_door_in_a_moved_body_is_closed() {
    let chat = |more: &str| {
        format!(r#"{{ "model":"gpt-5",{more}"messages":[{{"role":"user","content":"g\u006f"}}],"x":1e0 }}"#)
    };
    let messages = |more: &str| {
        format!(
            r#"{{ "model":"claude","max_tokens":9,{more}"messages":[{{"role":"user","content":"g\u006f"}}],"x":1e0 }}"#
        )
    };
    let chat_rows = [
        (r#""plugins":[{"id":"web"}],"#, Some("")),
        (r#""web_search_options":{"search_context_size":"high"},"#, Some("")),
        (r#""models":["a:online","b"],"#, Some(r#""models":["a","b"],"#)),
        (r#""models":["perplexity/sonar"],"#, None),
        (r#""temperature":0.10,"#, Some(r#""temperature":0.10,"#)),
    ];
    let messages_rows = [
        (r#""plugins":[{"id":"web"}],"#, Some("")),
        (r#""models":["perplexity/sonar"],"#, None),
        (r#""preset":"p","#, None),
        (
            r#""tools":[{"name":"a","input_schema":{}},{"type":"web_search_20250305","name":"web_search"}],"#,
            Some(r#""tools":[{"name":"a","input_schema":{}}],"#),
        ),
        (
            r#""tools":[{"name":"a","input_schema":{}}],"mcp_servers":[{"type":"url","url":"https://evil.example","name":"e"}],"#,
            Some(r#""tools":[{"name":"a","input_schema":{}}],"#),
        ),
        (r#""temperature":0.10,"#, Some(r#""temperature":0.10,"#)),
    ];
    let all = chat_rows
        .map(|row| ("OpenAIChat", row))
        .into_iter()
        .chain(messages_rows.map(|row| ("Anthropic", row)));
    let tests = ["OpenAIChat", "Anthropic"].map(|dialect| (dialect, at_openrouter(dialect, "")));
    for (dialect, (more, left)) in all {
        let test = &tests.iter().find(|(name, _)| *name == dialect).unwrap().1;
        let (place, body): (String, &dyn Fn(&str) -> String) = match dialect {
            "OpenAIChat" => (format!("{OPENAI}/v1/chat/completions"), &chat),
            _ => (format!("{ORIGIN}/v1/messages"), &messages),
        };
        let before = test.vllm.requests().len();
        let answer = test.post(&place, &[], &body(more));
        let Some(left) = left else {
            answer.assert_refused_by_provider(HOSTED);
            assert_eq!(test.vllm.requests().len(), before, "{more}");
            continue;
        };
        assert_eq!(answer.status, 200, "{more}: {}", answer.text());
        assert_eq!(test.vllm.requests().len(), before + 1);
        assert_eq!(
            String::from_utf8_lossy(&test.vllm.requests().pop().unwrap().body),
            body(left),
            "{dialect} {more}"
        );
    }
}

/// L8, E9: a URL that the server that stands in would fetch is refused as at the agent's own provider, before anything is
/// asked; what stands in the request itself goes on.
#[test]
fn a_url_that_a_stand_in_would_fetch_is_refused() {
    let test = at_openrouter("OpenAIChat", ", model: openai/gpt-5");
    let image = |source: Value| {
        let content = json!([{"type": "image", "source": source}, {"type": "text", "text": "go"}]);
        request("claude-opus-4", json!({"messages": [{"role": "user", "content": content}]}))
    };
    let url = image(json!({"type": "url", "url": "https://evil.example/?q=secret"}));
    test.ask(&url).assert_refused_by_provider("postern/builtin/url-sources");
    assert!(test.vllm.requests().is_empty());
    let own = image(json!({"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="}));
    assert_eq!(text_of(&test.ask(&own)), "vllm");
    let sent = Routed::sent_last(&test.vllm);
    let part = &sent["messages"][0]["content"][0]["image_url"]["url"];
    assert_eq!(*part, "data:image/png;base64,iVBORw0KGgo=", "{sent}");
}

/// E16, L8: a rule about models knows all that a route could ask, those of its fallback among them.
#[test]
fn a_rule_about_models_holds_for_those_of_a_route() {
    let rules = |model: &str| {
        format!(
            "  rules: [{{name: models, when: 'event.provider.models.exists(m, m == \"{model}\")', action: Deny}}]\n"
        )
    };
    let chain = "- {name: all, match: {models: ['claude-*']}, to: [coder], fallback: [chat]}";
    for model in ["qwen3-coder", "spare-chat", "claude-opus-4"] {
        let test = routed_by(&policy(chain, &rules(model)), Scripts::default(), |setup| setup);
        test.ask(&request("claude-opus-4", json!({}))).assert_refused_by_provider("agents/p/models");
        assert!(test.vllm.requests().is_empty() && test.spare.requests().is_empty(), "{model}");
    }
    let test = routed_by(&policy(chain, &rules("other")), Scripts::default(), |setup| setup);
    assert_eq!(text_of(&test.ask(&request("claude-opus-4", json!({})))), "vllm");
}
