//! What rules may ask of an event: each field with its type, its bound, and how it is read.

use std::borrow::Cow;
use std::time::SystemTime;

use time::OffsetDateTime;

use super::kind::{Extent, Record, Type};
use super::value::{List, Object, Value};

/// What is known of an event. What is not known where a rule is asked is none, or an empty list.
#[derive(Debug, Clone, Default)]
pub struct Facts<'a> {
    /// `Request`, `ToolCall` or `Response`.
    pub kind: &'a str,
    /// `Outbound` or `Inbound`.
    pub direction: &'a str,
    pub time: Option<SystemTime>,
    pub session: Option<&'a str>,
    /// 32 hex digits.
    pub trace: Option<&'a str>,
    pub namespace: Option<&'a str>,
    pub pod: Option<&'a str>,
    pub service_account: Option<&'a str>,
    pub node: Option<&'a str>,
    pub credential: Option<&'a str>,
    pub host: Option<&'a str>,
    pub port: Option<u16>,
    /// `Inspect`, where a request is read.
    pub action: Option<&'a str>,
    pub intercepted: Option<bool>,
    pub method: Option<&'a str>,
    /// Without the query.
    pub path: Option<&'a str>,
    pub version: Option<&'a str>,
    pub status: Option<u16>,
    pub provider: Option<&'a str>,
    pub api: Option<&'a str>,
    pub model: Option<&'a str>,
    pub response_model: Option<&'a str>,
    pub organization: Option<&'a str>,
    pub models: &'a [&'a str],
    pub stream: Option<bool>,
    pub max_tokens: Option<u64>,
    pub tools: &'a [Tool<'a>],
    pub messages: Option<u64>,
    pub images: Option<u64>,
    pub tool_results: Option<u64>,
    /// The bytes of the body, as sent.
    pub payload_bytes: Option<u64>,
    pub input_tokens: Option<u64>,
    pub output_tokens: Option<u64>,
    pub cache_read_tokens: Option<u64>,
    pub cache_write_tokens: Option<u64>,
    pub reasoning_tokens: Option<u64>,
    pub call_name: Option<&'a str>,
    pub call_kinds: &'a [&'a str],
    pub call_input_bytes: Option<u64>,
    pub dlp: &'a [Finding<'a>],
    pub tokens_today: Option<u64>,
    pub requests_this_minute: Option<u64>,
    pub denials_in_a_row: Option<u64>,
}

/// A tool that a request offers.
#[derive(Debug, Clone, Default)]
pub struct Tool<'a> {
    pub name: &'a str,
    pub kinds: Vec<&'a str>,
    /// Of its definition.
    pub sha256: Option<&'a str>,
}

/// A secret, a credential file or a protected path that was found.
#[derive(Debug, Clone, Default)]
pub struct Finding<'a> {
    pub detector: &'a str,
    pub kind: &'a str,
    pub confidence: &'a str,
    pub role: &'a str,
    pub location: &'a str,
    pub checksum: Option<&'a str>,
    pub action: &'a str,
}

/// A field.
#[derive(Debug)]
pub struct Field {
    /// `provider.models`; of an element of a list its name alone.
    pub path: &'static str,
    pub(super) kind: FieldType,
    /// For people.
    pub about: &'static str,
    pub(super) read: for<'a> fn(Object<'a>) -> Option<Value<'a>>,
}

/// Types of fields, with the most bytes of a text and the most items of a list.
#[derive(Debug, Clone, Copy)]
pub(super) enum FieldType {
    Bool,
    Int,
    Text(u64),
    Time,
    Texts(u64, u64),
    Records(u64, Record),
}

/// The most bytes of names that agents and providers choose.
const NAME: u64 = 1024;
/// The most bytes of names that Kubernetes, DNS or the gateway choose.
const LABEL: u64 = 256;
/// The most bytes of words of a fixed set.
const WORD: u64 = 32;
const HASH: u64 = 64;
/// The most bytes of a path.
const PATH: u64 = 16 * 1024;
const MODELS: u64 = 64;
const TOOLS: u64 = 128;
const KINDS: u64 = 8;
const FINDINGS: u64 = 256;

/// A row of a table.
macro_rules! field {
    ($path:literal, $kind:expr, $about:literal, $from:ident => $read:expr) => {
        Field {
            path: $path,
            kind: $kind,
            about: $about,
            read: |object| match object {
                Object::Event($from) => $read,
                Object::Tool(_) | Object::Finding(_) => None,
            },
        }
    };
}

/// The fields of `event`, in the order of the documentation.
pub(super) const EVENT: &[Field] = &[
    field!("kind", FieldType::Text(WORD), "`Request`, `ToolCall` or `Response`", f => text(Some(f.kind))),
    field!("direction", FieldType::Text(WORD), "`Outbound` from the agent, `Inbound` to it", f => text(Some(f.direction))),
    field!("session", FieldType::Text(NAME), "The session's label, as the agent names it", f => text(f.session)),
    field!("trace", FieldType::Text(WORD), "The trace's id, 32 hex digits", f => text(f.trace)),
    field!("time", FieldType::Time, "When the rule is asked", f => time(f.time)),
    field!("workload.namespace", FieldType::Text(LABEL), "The pod's namespace", f => text(f.namespace)),
    field!("workload.pod", FieldType::Text(LABEL), "The pod's name", f => text(f.pod)),
    field!("workload.serviceAccount", FieldType::Text(LABEL), "The pod's service account", f => text(f.service_account)),
    field!("workload.node", FieldType::Text(LABEL), "The pod's node", f => text(f.node)),
    field!("credential", FieldType::Text(LABEL), "The credential that the gateway attaches", f => text(f.credential)),
    field!("destination.host", FieldType::Text(LABEL), "The host, in lower case", f => text(f.host)),
    field!("destination.port", FieldType::Int, "The port", f => int(f.port.map(u64::from))),
    field!("destination.action", FieldType::Text(WORD), "`Inspect`", f => text(f.action)),
    field!("destination.intercepted", FieldType::Bool, "Whether the gateway ended the agent's TLS", f => bool(f.intercepted)),
    field!("http.method", FieldType::Text(LABEL), "The method", f => text(f.method)),
    field!("http.path", FieldType::Text(PATH), "The path, without the query", f => text(f.path)),
    field!("http.version", FieldType::Text(WORD), "`HTTP/1.1` or `HTTP/2`", f => text(f.version)),
    field!("http.status", FieldType::Int, "The answer's status; of its calls too", f => int(f.status.map(u64::from))),
    field!("provider.name", FieldType::Text(LABEL), "The provider, as events name it: `anthropic`", f => text(f.provider)),
    field!("provider.api", FieldType::Text(LABEL), "The API: `messages`", f => text(f.api)),
    field!("provider.model", FieldType::Text(NAME), "The model that is asked", f => text(f.model)),
    field!("provider.responseModel", FieldType::Text(NAME), "The model that answered; known at the end of an answer", f => text(f.response_model)),
    field!("provider.organization", FieldType::Text(NAME), "The organization: of a request what it names in `openai-organization`, of an answer what that names in `openai-organization` or `anthropic-organization-id`", f => text(f.organization)),
    field!("provider.models", FieldType::Texts(MODELS, NAME), "Every model that the request names, fallbacks too", f => texts(f.models)),
    field!("provider.stream", FieldType::Bool, "Whether a stream is asked for", f => bool(f.stream)),
    field!("provider.maxTokens", FieldType::Int, "The most tokens that the request asks for", f => int(f.max_tokens)),
    field!("provider.tools", FieldType::Records(TOOLS, Record::Tool), "The tools that the request offers; of requests alone", f => (!f.tools.is_empty()).then_some(Value::List(List::Tools(f.tools)))),
    field!("conversation.messages", FieldType::Int, "How many messages the request has; of requests alone, as the two below", f => int(f.messages)),
    field!("conversation.images", FieldType::Int, "How many images", f => int(f.images)),
    field!("conversation.toolResults", FieldType::Int, "How many results of tools", f => int(f.tool_results)),
    field!("payload.bytes", FieldType::Int, "The bytes of a request's body, unknown while it streams without a length; at the end of an answer the bytes that came", f => int(f.payload_bytes)),
    field!("usage.inputTokens", FieldType::Int, "Tokens, as the provider counts them; known at the end of an answer", f => int(f.input_tokens)),
    field!("usage.outputTokens", FieldType::Int, "The same", f => int(f.output_tokens)),
    field!("usage.cacheReadTokens", FieldType::Int, "The same", f => int(f.cache_read_tokens)),
    field!("usage.cacheWriteTokens", FieldType::Int, "The same", f => int(f.cache_write_tokens)),
    field!("usage.reasoningTokens", FieldType::Int, "The same", f => int(f.reasoning_tokens)),
    field!("toolCall.name", FieldType::Text(NAME), "The tool that the model calls, as it wrote the name; with a namespace `namespace.name`", f => text(f.call_name)),
    field!("toolCall.kinds", FieldType::Texts(KINDS, WORD), "`Shell`, `Read`, `Write`, `Fetch`: what the call may do", f => texts(f.call_kinds)),
    field!("toolCall.inputBytes", FieldType::Int, "The bytes of the call's input", f => int(f.call_input_bytes)),
    field!("dlp", FieldType::Records(FINDINGS, Record::Finding), "What detection found in the request: at most 32", f => (!f.dlp.is_empty()).then_some(Value::List(List::Findings(f.dlp)))),
    field!("spent.tokensToday", FieldType::Int, "Tokens since 00:00 UTC, of the pod and the credential", f => int(f.tokens_today)),
    field!("spent.requestsThisMinute", FieldType::Int, "Requests to models in the last 60 seconds, of the pod and the credential", f => int(f.requests_this_minute)),
    field!("spent.denialsInARow", FieldType::Int, "Denied tool calls without an allowed one between, of the pod and the credential", f => int(f.denials_in_a_row)),
];

/// The fields of an element of `event.provider.tools`.
pub(super) const TOOL: &[Field] = &[
    element("name", FieldType::Text(NAME), "The tool's name", |o| text(Some(tool(o)?.name))),
    element("kinds", FieldType::Texts(KINDS, WORD), "`Shell`, `Read`, `Write`, `Fetch`", |o| {
        texts(&tool(o)?.kinds)
    }),
    element("sha256", FieldType::Text(HASH), "Of its definition, 64 hex digits", |o| text(tool(o)?.sha256)),
];

/// The fields of an element of `event.dlp`.
pub(super) const FINDING: &[Field] = &[
    element("detector", FieldType::Text(LABEL), "The detector", |o| text(Some(finding(o)?.detector))),
    element("kind", FieldType::Text(WORD), "`Secret`, `CredentialFile`, `ProtectedPath`, `Binary`", |o| {
        text(Some(finding(o)?.kind))
    }),
    element("confidence", FieldType::Text(WORD), "`High`, `Medium`, `Low`", |o| {
        text(Some(finding(o)?.confidence))
    }),
    element("role", FieldType::Text(WORD), "Whose text it stood in", |o| text(Some(finding(o)?.role))),
    element("location", FieldType::Text(NAME), "Where it stood", |o| text(Some(finding(o)?.location))),
    element("checksum", FieldType::Text(WORD), "Whether its checksum is right", |o| {
        text(finding(o)?.checksum)
    }),
    element("action", FieldType::Text(WORD), "What was done about it", |o| text(Some(finding(o)?.action))),
];

const fn element(
    path: &'static str,
    kind: FieldType,
    about: &'static str,
    read: for<'a> fn(Object<'a>) -> Option<Value<'a>>,
) -> Field {
    Field { path, kind, about, read }
}

impl Field {
    /// The last part of its path.
    pub(super) fn name(&self) -> &'static str {
        self.path.rsplit('.').next().unwrap_or(self.path)
    }

    pub(super) fn r#type(&self) -> Type {
        match self.kind {
            FieldType::Bool => Type::Bool,
            FieldType::Int => Type::Int,
            FieldType::Text(_) => Type::Text,
            FieldType::Time => Type::Time,
            FieldType::Texts(..) => Type::list(Type::Text),
            FieldType::Records(_, record) => Type::list(Type::Object(record)),
        }
    }

    pub(super) fn extent(&self) -> Extent {
        match self.kind {
            FieldType::Bool | FieldType::Int | FieldType::Time => Extent::default(),
            FieldType::Text(most) => Extent::text(most),
            FieldType::Texts(most, bytes) => Extent::list(most, Extent::text(bytes)),
            FieldType::Records(most, _) => Extent::list(most, Extent::default()),
        }
    }

    /// What stands for a value that is not there.
    pub(super) fn empty(&self) -> Value<'static> {
        match self.kind {
            FieldType::Bool => Value::Bool(false),
            FieldType::Int => Value::Int(0),
            FieldType::Text(_) => Value::Text(Cow::Borrowed("")),
            FieldType::Time => Value::Time(OffsetDateTime::UNIX_EPOCH),
            FieldType::Texts(..) | FieldType::Records(..) => Value::List(List::Texts(&[])),
        }
    }

    /// Whether a value is larger than the field may be.
    pub(super) fn is_over(&self, value: &Value<'_>) -> bool {
        let over = |length: usize, most: u64| length as u64 > most;
        match (self.kind, value) {
            (FieldType::Text(most), Value::Text(text)) => over(text.len(), most),
            (FieldType::Texts(most, bytes), Value::List(List::Texts(texts))) => {
                over(texts.len(), most) || texts.iter().any(|text| over(text.len(), bytes))
            }
            (FieldType::Records(most, _), Value::List(list)) => over(list.len(), most),
            _ => false,
        }
    }

    /// The type and the bound, in words: `list(string), at most 64`.
    pub fn describe(&self) -> String {
        match self.kind {
            FieldType::Texts(most, _) | FieldType::Records(most, _) => {
                format!("{}, at most {most}", self.r#type())
            }
            FieldType::Bool | FieldType::Int | FieldType::Text(_) | FieldType::Time => {
                self.r#type().to_string()
            }
        }
    }
}

/// The fields of `event`, for the documentation.
pub fn event_fields() -> &'static [Field] {
    EVENT
}

fn text(value: Option<&str>) -> Option<Value<'_>> {
    value.map(|value| Value::Text(Cow::Borrowed(value)))
}

fn texts<'a>(values: &'a [&'a str]) -> Option<Value<'a>> {
    (!values.is_empty()).then_some(Value::List(List::Texts(values)))
}

fn int<'a>(value: Option<u64>) -> Option<Value<'a>> {
    value.map(|value| Value::Int(i64::try_from(value).unwrap_or(i64::MAX)))
}

fn bool<'a>(value: Option<bool>) -> Option<Value<'a>> {
    value.map(Value::Bool)
}

fn time<'a>(value: Option<SystemTime>) -> Option<Value<'a>> {
    value.map(|value| Value::Time(OffsetDateTime::from(value)))
}

fn tool(object: Object<'_>) -> Option<&Tool<'_>> {
    match object {
        Object::Tool(tool) => Some(tool),
        Object::Event(_) | Object::Finding(_) => None,
    }
}

fn finding(object: Object<'_>) -> Option<&Finding<'_>> {
    match object {
        Object::Finding(finding) => Some(finding),
        Object::Event(_) | Object::Tool(_) => None,
    }
}
