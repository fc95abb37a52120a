//! The head that leaves for each kind of provider, kept in a file: nothing is in it that is not there.

use serde_json::json;

use super::*;
use crate::parity::assert_kept;

/// The file, from the root of the project.
const KEPT: &str = "tests/routing/heads.golden";

/// Each kind: its label, its host, how it is written, and what the agent that it answers speaks.
const KINDS: [(&str, &str, &str, &str); 7] = [
    (
        "chat",
        "chat.models.example",
        "endpoint: 'https://chat.models.example/v1', dialect: OpenAIChat, credential: chat",
        "messages",
    ),
    (
        "keyless",
        "keyless.models.example",
        "endpoint: 'https://keyless.models.example:8443/v1', dialect: OpenAIChat",
        "messages",
    ),
    (
        "azure",
        "team.openai.azure.com",
        "endpoint: 'https://team.openai.azure.com/openai/v1', dialect: OpenAIChat, credential: azure, keyIn: ApiKey",
        "messages",
    ),
    (
        "anthropic",
        "api.anthropic.com",
        "endpoint: 'https://api.anthropic.com/v1', dialect: Anthropic, credential: anthropic",
        "messages",
    ),
    (
        "messages",
        "messages.models.example",
        "endpoint: 'https://messages.models.example/v1', dialect: Anthropic, credential: messages",
        "messages",
    ),
    (
        "bearer",
        "bearer.models.example",
        "endpoint: 'https://bearer.models.example', dialect: Anthropic, credential: bearer, keyIn: Authorization",
        "messages",
    ),
    (
        "responses",
        "responses.models.example",
        "endpoint: 'https://responses.models.example/v1', dialect: OpenAIResponses, credential: responses",
        "responses",
    ),
];

/// All that an agent may say of itself.
const AGENT: [(&str, &str); 16] = [
    ("accept", "application/json, text/event-stream;q=0.5"),
    ("accept-encoding", "gzip, br"),
    ("accept-language", "*"),
    ("anthropic-beta", "oauth-2025-04-20,context-1m-2025-08-07, \"odd\""),
    ("anthropic-dangerous-direct-browser-access", "true"),
    ("anthropic-version", "2099-01-01"),
    ("authorization", "Bearer sk-ant-oat01-agent"),
    ("baggage", "a=b"),
    ("cookie", "a=b"),
    ("idempotency-key", "a"),
    ("openai-beta", "responses=v1"),
    ("referer", "https://agent.example/"),
    ("traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"),
    ("user-agent", "claude-cli/2.0"),
    ("x-app", "cli"),
    ("x-stainless-os", "Linux"),
];

fn policy_of_all() -> String {
    type Line = dyn Fn(&(&str, &str, &str, &str)) -> Option<String>;
    let list =
        |one: &Line| KINDS.iter().filter_map(one).map(|line| format!("    - {line}\n")).collect::<String>();
    let credentials = list(&|(name, host, written, _)| {
        written
            .contains("credential")
            .then(|| format!("{{name: {name}, hosts: [{host}], secretKeyRef: {{name: keys, key: {name}}}}}"))
    });
    let providers = list(&|(name, _, written, _)| Some(format!("{{name: {name}, {written}}}")));
    let models = list(&|(name, ..)| Some(format!("{{name: m-{name}, provider: {name}, model: served}}")));
    let routes =
        list(&|(name, ..)| Some(format!("{{name: {name}, match: {{models: [{name}]}}, to: [m-{name}]}}")));
    format!(
        "apiVersion: postern.dev/v1alpha1\nkind: EgressPolicy\nmetadata: {{name: p, namespace: agents}}\nspec:\n  \
         podSelector: {{}}\n  destinations: [{{name: claude, hosts: [{ORIGIN}, {OPENAI}], action: Inspect, reach: Routes}}]\n  \
         credentials:\n{credentials}  modelProviders:\n{providers}  models:\n{models}  routes:\n{routes}"
    )
}

/// A head as the file has it: what differs from run to run is named.
fn shown(seen: &Seen, label: &str) -> String {
    let mut fields: Vec<String> = seen
        .headers
        .iter()
        .map(|(name, value)| {
            let value = if name == "content-length" { "LENGTH" } else { value };
            format!("{name}: {value}\n")
        })
        .collect();
    fields.sort();
    let head = format!("{} {} {}\n{}", seen.method, seen.target, seen.version, fields.concat());
    head.replace(&key(label), "KEY").replace(env!("CARGO_PKG_VERSION"), "VERSION")
}

fn key(label: &str) -> String {
    format!("sk-{label}-0123456789abcdef")
}

#[test]
fn the_head_of_each_kind_of_provider_is_made_of_these_fields() {
    let upstreams = Pki::new("Upstream Test CA");
    let names: Vec<&str> = KINDS.iter().map(|(_, host, ..)| *host).collect();
    let server = Upstream::build().identity(upstreams.leaf(&names)).script(|seen| {
        let body = if seen.path().ends_with("/messages") {
            message("ok")
        } else if seen.path().ends_with("/responses") {
            json!({"id": "r", "object": "response", "status": "completed", "model": "m", "output": []}).to_string()
        } else {
            let choice = json!({"index": 0, "message": {"role": "assistant", "content": "ok"}, "finish_reason": "stop"});
            json!({"id": "c", "object": "chat.completion", "model": "m", "choices": [choice]}).to_string()
        };
        Some(Reply::of(200, body).header("content-type", "application/json"))
    }).start();
    let setup = Setup::new(&upstreams).policy(&policy_of_all());
    let setup = names.iter().fold(setup, |setup, host| setup.host(host, server.address()));
    let setup = KINDS.iter().fold(setup, |setup, (name, ..)| setup.credential(name, &key(name)));
    let gateway = setup.start();
    let mut kept = String::from(
        "# The head of a request to each kind of provider, whole and as a stream (tests/routing/heads.rs)\n",
    );
    for (label, host, _, spoken) in KINDS {
        for (streams, h2) in [(false, false), (true, false), (false, true)] {
            let body = match spoken {
                "responses" => json!({"model": label, "store": false, "stream": streams, "input": "go"}),
                _ => request(label, json!({"stream": streams})),
            };
            let url = if spoken == "responses" {
                format!("https://{OPENAI}/v1/responses?a=b")
            } else {
                format!("https://{ORIGIN}/v1/messages?beta=true")
            };
            let agent = gateway.agent();
            let own = if spoken == "responses" { OPENAI } else { ORIGIN };
            let mut fields = AGENT.to_vec();
            fields.push(("content-type", "application/json; charset=utf-8"));
            if h2 {
                // A stream of the server is none here: that it was asked is enough.
                agent.h2(own).request("POST", &url, &fields, body.to_string().as_bytes()).unwrap();
            } else {
                agent.request("POST", &url, &fields, body.to_string().as_bytes());
            }
            let seen = server.requests().pop().unwrap();
            assert_eq!(seen.authority.split(':').next(), Some(host));
            let how = match (streams, h2) {
                (true, _) => "a stream",
                (_, true) => "over h2",
                _ => "whole",
            };
            kept.push_str(&format!("\n## {label}, {how}\n{}", shown(&seen, label)));
        }
    }
    assert_eq!(server.requests().len(), KINDS.len() * 3);
    assert_kept(KEPT, &kept);
}
