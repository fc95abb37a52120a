//! Model routing: a request to one model is answered by another, and the agent does not notice.

mod edges;
mod failures;
mod first_piece;
mod heads;
mod moved;
mod reach;
mod record;
mod translated;

use serde_json::{Value, json};

use crate::support::upstream::{Reply, Seen, Step};
use crate::support::{Answer, Gateway, Pki, Setup, Upstream};

/// Where agents send their requests.
pub(crate) const ORIGIN: &str = "api.anthropic.com";
/// Where agents of OpenAI's two APIs send theirs: the same server.
pub(crate) const OPENAI: &str = "api.openai.com";
/// A server of models that speaks Chat Completions, and another one.
pub(crate) const VLLM: &str = "vllm.models.example";
pub(crate) const SPARE: &str = "spare.models.example";
/// A vendor's host, at which the first server answers too: it has doors of its own.
pub(crate) const OPENROUTER: &str = "openrouter.ai";
/// The key of the first one.
pub(crate) const KEY: &str = "sk-vllm-0123456789abcdefghijklmnop";

/// A gateway with the servers of models that its policy may name.
pub(crate) struct Routed {
    pub(crate) gateway: Gateway,
    pub(crate) origin: Upstream,
    pub(crate) vllm: Upstream,
    pub(crate) spare: Upstream,
}

pub(crate) type Script = fn(&Seen) -> Option<Reply>;

/// How the three servers answer.
#[derive(Clone, Copy)]
pub(crate) struct Scripts {
    pub(crate) origin: Script,
    pub(crate) vllm: Script,
    pub(crate) spare: Script,
}

impl Default for Scripts {
    fn default() -> Self {
        Self {
            origin: |_| Some(Reply::of(200, message("origin")).header("content-type", "application/json")),
            vllm: |seen| Some(chat(seen, "vllm")),
            spare: |seen| Some(chat(seen, "spare")),
        }
    }
}

/// Under these routes, with the models `coder` (of the first server), `chat` (of the second) and whatever else the policy says.
pub(crate) fn routed(routes: &str, more: &str, scripts: Scripts) -> Routed {
    routed_by(&policy(routes, more), scripts, |setup| setup)
}

pub(crate) fn policy(routes: &str, more: &str) -> String {
    let reach = if more.contains("reach-routes") { ", reach: Routes" } else { "" };
    let more = more.replace("reach-routes", "");
    format!(
        "apiVersion: postern.dev/v1alpha1\nkind: EgressPolicy\nmetadata: {{name: p, namespace: agents}}\n\
         spec:\n  podSelector: {{}}\n  destinations:\n    - {{name: claude, hosts: [{ORIGIN}], action: Inspect{reach}}}\n  \
         credentials:\n    - {{name: vllm, hosts: [{VLLM}], ports: [8443], secretKeyRef: {{name: keys, key: vllm}}}}\n  \
         modelProviders:\n    - {{name: vllm, endpoint: 'https://{VLLM}:8443/v1', dialect: OpenAIChat, credential: vllm}}\n    \
         - {{name: spare, endpoint: 'https://{SPARE}/v1', dialect: OpenAIChat}}\n  \
         models:\n    - {{name: coder, provider: vllm, model: qwen3-coder}}\n    \
         - {{name: chat, provider: spare, model: spare-chat}}\n  routes:\n    {routes}\n{more}"
    )
}

pub(crate) fn routed_by(policy: &str, scripts: Scripts, change: impl FnOnce(Setup) -> Setup) -> Routed {
    let upstreams = Pki::new("Upstream Test CA");
    let server = |names: &[&str], script: Script| {
        Upstream::build().identity(upstreams.leaf(names)).script(script).start()
    };
    let origin = server(&[ORIGIN, OPENAI], scripts.origin);
    let (vllm, spare) = (server(&[VLLM, OPENROUTER], scripts.vllm), server(&[SPARE], scripts.spare));
    let setup = Setup::new(&upstreams)
        .policy(policy)
        .credential("vllm", KEY)
        .host(ORIGIN, origin.address())
        .host(OPENAI, origin.address())
        .host(VLLM, vllm.address())
        .host(OPENROUTER, vllm.address())
        .host(SPARE, spare.address());
    Routed { gateway: change(setup).start(), origin, vllm, spare }
}

impl Routed {
    /// Sends a request of Messages with the fields of an agent.
    #[track_caller]
    pub(crate) fn ask(&self, body: &Value) -> Answer {
        self.ask_with(body, &[])
    }

    #[track_caller]
    pub(crate) fn ask_with(&self, body: &Value, more: &[(&str, &str)]) -> Answer {
        let mut headers = vec![("x-api-key", "sk-agent-key"), ("anthropic-version", "2023-06-01")];
        headers.extend(more);
        self.post(&format!("{ORIGIN}/v1/messages"), &headers, &body.to_string())
    }

    /// Sends a body to a host and path.
    #[track_caller]
    pub(crate) fn post(&self, place: &str, more: &[(&str, &str)], body: &str) -> Answer {
        let mut headers = vec![("content-type", "application/json")];
        headers.extend(more);
        self.gateway.agent().request("POST", &format!("https://{place}"), &headers, body.as_bytes())
    }

    /// What a server was sent last, as JSON.
    #[track_caller]
    pub(crate) fn sent_last(server: &Upstream) -> Value {
        serde_json::from_slice(&server.requests().pop().unwrap().body).unwrap()
    }
}

/// A request to a model.
pub(crate) fn request(model: &str, more: Value) -> Value {
    let mut body =
        json!({"model": model, "max_tokens": 100, "messages": [{"role": "user", "content": "go"}]});
    if let Value::Object(more) = more {
        body.as_object_mut().unwrap().extend(more);
    }
    body
}

/// A whole answer of Messages.
pub(crate) fn message(text: &str) -> String {
    json!({
        "id": "msg_1", "type": "message", "role": "assistant", "model": "claude",
        "content": [{"type": "text", "text": text}], "stop_reason": "end_turn", "stop_sequence": null,
        "usage": {"input_tokens": 3, "output_tokens": 2},
    })
    .to_string()
}

/// What a server of Chat Completions says, whole or as a stream, whichever was asked.
pub(crate) fn chat(seen: &Seen, text: &str) -> Reply {
    let asked: Value = serde_json::from_slice(&seen.body).unwrap_or_default();
    let usage = json!({"prompt_tokens": 12, "completion_tokens": 5, "total_tokens": 17});
    if asked["stream"] == json!(true) {
        let events = [
            json!({"id": "c1", "model": "served", "choices": [{"index": 0, "delta": {"role": "assistant", "content": ""}}]}),
            json!({"id": "c1", "model": "served", "choices": [{"index": 0, "delta": {"content": text}}]}),
            json!({"id": "c1", "model": "served", "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}),
            json!({"id": "c1", "model": "served", "choices": [], "usage": usage}),
        ];
        return stream(&events);
    }
    let choice =
        json!({"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"});
    let body = json!({"id": "c1", "object": "chat.completion", "model": "served", "choices": [choice], "usage": usage});
    Reply::of(200, body.to_string()).header("content-type", "application/json")
}

/// A stream of Chat Completions with its end.
pub(crate) fn stream(events: &[Value]) -> Reply {
    let mut steps: Vec<Step> =
        events.iter().map(|event| Step::Data(format!("data: {event}\n\n").into())).collect();
    steps.push(Step::Data("data: [DONE]\n\n".into()));
    Reply::streaming(steps).header("content-type", "text/event-stream")
}

/// The JSON of each event of a stream.
pub(crate) fn events(answer: &Answer) -> Vec<Value> {
    let text = answer.text();
    let data = text.lines().filter_map(|line| line.strip_prefix("data: "));
    data.map(|data| serde_json::from_str(data).unwrap()).collect()
}

/// The text of an answer of Messages, whole or streamed.
pub(crate) fn text_of(answer: &Answer) -> String {
    if answer.header("content-type").is_some_and(|kind| kind.contains("event-stream")) {
        let events = events(answer);
        return events.iter().filter_map(|event| event["delta"]["text"].as_str()).collect();
    }
    answer.json()["content"][0]["text"].as_str().unwrap_or_default().to_owned()
}
