//! A model behind the gateway that says what a test tells it to, and the words in which it says it.

use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use serde_json::{Value, json};

use crate::parity::dialect::{Dialect, Heard, Mode};
use crate::parity::routed;
use crate::support::upstream::{Reply, Step};
use crate::support::{Answer, Connection, Ending, Gateway, Pki, Setup, Upstream};

pub(super) const HOSTS: [&str; 4] = [
    "api.anthropic.com",
    "api.openai.com",
    "generativelanguage.googleapis.com",
    "bedrock-runtime.us-east-1.amazonaws.com",
];

/// A condition that asks what a shell runs.
pub(super) const NO_FORCE: &str = r"tools: [{name: no-force, kind: Shell, action: Deny, when: {param: command, operator: Matches, values: ['rm\s+-rf']}}]";
pub(super) const NO_DELETE: &str = "tools: [{name: no-delete, tools: [delete_file], action: Deny}]";

/// A gateway in front of one server that stands for every provider.
pub(super) struct Model {
    pub(super) gateway: Gateway,
    pub(super) upstream: Upstream,
    next: Arc<Mutex<Saying>>,
}

/// What it answers next, and from then on.
#[derive(Clone, Default)]
struct Saying {
    status: u16,
    headers: Vec<(&'static str, String)>,
    steps: Vec<Step>,
}

impl Model {
    /// Behind a policy with these lines in its spec.
    pub(super) fn under(spec: &str) -> Self {
        Self::with(spec, |setup| setup)
    }

    /// The same with a route by which this model answers as one of Chat Completions, for agents of Messages.
    pub(super) fn routed(spec: &str) -> Self {
        let text = policy(spec) + &routed::policy(&HOSTS.join(", "));
        Self::with(spec, |setup| setup.policy(&text))
    }

    /// The same, changed before it starts.
    pub(super) fn with(spec: &str, change: impl FnOnce(Setup) -> Setup) -> Self {
        let (upstreams, next) = (Pki::new("Upstream Test CA"), Arc::<Mutex<Saying>>::default());
        let said = Arc::clone(&next);
        let script = move |_: &_| {
            let Saying { status, headers, steps } =
                said.lock().unwrap_or_else(PoisonError::into_inner).clone();
            Some(Reply { status, headers, steps })
        };
        let names = [&HOSTS[..], &[routed::HOST]].concat();
        let upstream = Upstream::build().identity(upstreams.leaf(&names)).script(script).start();
        let setup = Setup::new(&upstreams).policy(&policy(spec));
        let setup = names.iter().fold(setup, |setup, host| setup.host(host, upstream.address()));
        Self { gateway: change(setup).start(), upstream, next }
    }

    /// Has it answer so.
    pub(super) fn says(&self, headers: &[(&'static str, &str)], steps: Vec<Step>) {
        self.says_with(200, headers, steps);
    }

    /// The same with another status.
    pub(super) fn says_with(&self, status: u16, headers: &[(&'static str, &str)], steps: Vec<Step>) {
        let headers = headers.iter().map(|(name, value)| (*name, (*value).to_owned())).collect();
        *self.next.lock().unwrap_or_else(PoisonError::into_inner) = Saying { status, headers, steps };
    }

    /// Asks, and answers what the agent gets in the place of `body`.
    #[track_caller]
    pub(super) fn ask(&self, dialect: &dyn Dialect, mode: Mode, body: impl AsRef<[u8]>) -> Answer {
        let body = Bytes::copy_from_slice(body.as_ref());
        self.says(&[("content-type", dialect.content_type(mode))], in_two(body));
        self.question(dialect, mode)
    }

    /// The same for an answer that goes on in full: what its client reads.
    #[track_caller]
    pub(super) fn hear(&self, dialect: &dyn Dialect, mode: Mode, body: impl AsRef<[u8]>) -> Heard {
        let answer = self.ask(dialect, mode, body);
        assert_eq!((answer.status, answer.complete), (200, true), "{}", answer.text());
        dialect.hear(&answer.body, mode)
    }

    /// Asserts that an answer reaches the agent byte for byte.
    #[track_caller]
    pub(super) fn assert_passes(&self, dialect: &dyn Dialect, mode: Mode, body: impl AsRef<[u8]>) {
        let answer = self.ask(dialect, mode, body.as_ref());
        assert_eq!((answer.status, answer.complete), (200, true), "{}", answer.text());
        let sent = String::from_utf8_lossy(body.as_ref()).into_owned();
        assert_eq!(answer.text(), sent);
    }

    /// Asks for what it says.
    #[track_caller]
    pub(super) fn question(&self, dialect: &dyn Dialect, mode: Mode) -> Answer {
        let (host, path) = dialect.place(mode).unwrap();
        let headers = [("content-type", "application/json")];
        let body = question(dialect, mode);
        self.gateway.agent().request("POST", &format!("https://{host}{path}"), &headers, body.as_bytes())
    }

    /// Asks, and leaves the answer to be read piece by piece behind its head.
    #[track_caller]
    pub(super) fn listen(&self, dialect: &dyn Dialect) -> Connection {
        let (host, path) = dialect.place(Mode::Streamed).unwrap();
        let mut connection = self.gateway.agent().tls(host);
        connection.send(request(host, path, &question(dialect, Mode::Streamed)));
        let head = connection.read_head();
        assert_eq!(head.status, 200, "{head:?}");
        connection
    }

    /// Asks for an answer that ends its connection: all that comes, head and framing included.
    #[track_caller]
    pub(super) fn overhear(&self, dialect: &dyn Dialect) -> String {
        let (host, path) = dialect.place(Mode::Streamed).unwrap();
        let mut connection = self.gateway.agent().tls(host);
        connection.send(request(host, path, &question(dialect, Mode::Streamed)));
        let (Ending::Closed(all) | Ending::Cut(all)) = connection.ending();
        String::from_utf8_lossy(&all).into_owned()
    }

    /// The event of a call.
    #[track_caller]
    pub(super) fn event(&self, id: &str) -> Value {
        self.gateway.wait_for_event(&format!("the event of {id}"), |event| {
            event["kind"] == "ToolCall" && event["toolCall"]["id"] == id
        })
    }

    /// The verdict on a call and its rule.
    #[track_caller]
    pub(super) fn verdict(&self, id: &str) -> (String, String) {
        let event = self.event(id);
        let word = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        (word(&event["decision"]["verdict"]), word(&event["decision"]["rule"]))
    }

    /// Asserts that a call was denied by a rule, built in or of the policy, and allowed where there is none.
    #[track_caller]
    pub(super) fn assert_verdict(&self, id: &str, rule: Option<&str>) {
        let expected = match rule {
            None => ("Allow".to_owned(), String::new()),
            Some(rule) if rule.contains('/') => ("Deny".to_owned(), rule.to_owned()),
            Some(rule) => ("Deny".to_owned(), format!("agents/test/{rule}")),
        };
        assert_eq!(self.verdict(id), expected, "{id}");
    }
}

/// A whole request in HTTP/1.1.
pub(super) fn request(host: &str, path: &str, body: &str) -> String {
    let length = body.len();
    format!(
        "POST {path} HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n{body}"
    )
}

fn question(dialect: &dyn Dialect, mode: Mode) -> String {
    let tools = ["Bash", "Write", "delete_file", "get_weather"].map(str::to_owned);
    dialect.request(&tools, mode).to_string()
}

/// The policy `agents/test` that inspects every provider.
pub(super) fn policy(spec: &str) -> String {
    let lines: String = spec.lines().map(|line| format!("  {line}\n")).collect();
    let hosts = HOSTS.join(", ");
    format!(
        "apiVersion: postern.dev/v1alpha1\nkind: EgressPolicy\nmetadata: {{name: test, namespace: agents}}\nspec:\n  \
         podSelector: {{}}\n  destinations: [{{name: llm, hosts: [{hosts}], action: Inspect}}]\n{lines}"
    )
}

/// Two pieces, so that nobody knows the length.
fn in_two(mut body: Bytes) -> Vec<Step> {
    let second = body.split_off(body.len() / 2);
    vec![Step::Data(body), Step::Data(second)]
}

/// Asserts that nothing of a call is in an answer: neither its id nor, where it is said, its secret.
#[track_caller]
pub(super) fn assert_without(answer: &Answer, secrets: &[&str]) {
    for secret in secrets {
        assert!(!answer.text().contains(secret), "{secret} in {}", answer.text());
    }
}

/// Events with their names, in canonical form.
pub(super) fn named(events: &[Value]) -> String {
    events
        .iter()
        .map(|event| format!("event: {}\ndata: {event}\n\n", event["type"].as_str().unwrap()))
        .collect()
}

/// Chunks of Chat Completions, and their end.
pub(super) fn chunks(choices: &[Value]) -> String {
    let chunk = |choices: &Value| json!({"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "gpt-5", "choices": [choices]});
    let data = choices.iter().map(|choice| format!("data: {}\n\n", chunk(choice)));
    data.chain(["data: [DONE]\n\n".to_owned()]).collect()
}

/// What one choice says in one chunk.
pub(super) fn choice(index: u64, delta: Value, finish: Option<&str>) -> Value {
    let mut choice = json!({"index": index, "delta": {}, "logprobs": null, "finish_reason": finish});
    choice["delta"] = delta;
    choice
}

/// A message of Anthropic with these events between its start and its end.
pub(super) fn message(blocks: &[Vec<Value>], stop_reason: &str) -> Vec<Value> {
    let usage = json!({"input_tokens": 7, "output_tokens": 1});
    let message = json!({"id": "msg_1", "type": "message", "role": "assistant", "model": "claude-sonnet-5", "content": [], "stop_reason": null, "stop_sequence": null, "usage": usage});
    let delta = json!({"stop_reason": stop_reason, "stop_sequence": null});
    let mut events = vec![json!({"type": "message_start", "message": message})];
    events.extend(blocks.iter().flatten().cloned());
    events.push(json!({"type": "message_delta", "delta": delta, "usage": {"output_tokens": 9}}));
    events.push(json!({"type": "message_stop"}));
    events
}

/// A block of text.
pub(super) fn text(index: u64, text: &str) -> Vec<Value> {
    vec![
        json!({"type": "content_block_start", "index": index, "content_block": {"type": "text", "text": ""}}),
        json!({"type": "content_block_delta", "index": index, "delta": {"type": "text_delta", "text": text}}),
        json!({"type": "content_block_stop", "index": index}),
    ]
}

/// A call whose input comes in these pieces.
pub(super) fn call(index: u64, id: &str, name: &str, pieces: &[&str]) -> Vec<Value> {
    call_with(index, json!({"type": "tool_use", "id": id, "name": name, "input": {}}), pieces)
}

/// A block that starts so, and whose input comes in these pieces.
pub(super) fn call_with(index: u64, block: Value, pieces: &[&str]) -> Vec<Value> {
    let mut start = json!({"type": "content_block_start", "index": index, "content_block": {}});
    start["content_block"] = block;
    let mut events = vec![start];
    events.extend(pieces.iter().map(|piece| {
        let delta = json!({"type": "input_json_delta", "partial_json": piece});
        json!({"type": "content_block_delta", "index": index, "delta": delta})
    }));
    events.push(json!({"type": "content_block_stop", "index": index}));
    events
}
