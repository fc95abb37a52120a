//! What happened: the envelope that every sink, metric and report reads (plain data, no bodies).

mod chain;
mod chosen;
mod finding;
mod inference;
pub mod pattern;
mod read;
mod repeat;
mod routing;
#[cfg(feature = "operator")]
pub mod schema;
mod trace;

use std::borrow::Cow;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::decision::{Decision, Verdict};
pub use crate::id::{Id, Timestamp};

pub use chain::Chain;
pub use finding::{Finding, keep_worst};
pub use inference::{Conversation, Provider, ToolCall, ToolDefinition, Usage};
pub use repeat::{RefusalKey, RuleKey};
pub use routing::{Attempt, Route};
pub use trace::TraceParent;

/// The version of the envelope's shape, its `apiVersion`.
pub const API_VERSION: &str = "postern.dev/event/v1";

/// One thing that happened at the door. Fields that do not apply are left out of the JSON.
///
/// What is the same for a whole connection is shared, so that an event costs the data path few allocations.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "operator", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Event {
    /// `postern.dev/event/v1`. Fields may be added under it; none changes its meaning or goes.
    pub api_version: Cow<'static, str>,
    /// A UUIDv7, which sorts by time. It is what a refusal names, and the header `x-postern-event`.
    pub id: Id,
    /// When it happened, of several the first.
    pub time: Timestamp,
    /// Counts from 1 for each start of a gateway, without gaps, in the order in which events are written.
    // The ledger's writer sets it.
    pub sequence: u64,
    /// The start of the gateway that counts the sequence: a UUIDv7 of its own.
    // The ledger's writer sets it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start: Option<Id>,
    /// How many equal happenings this event stands for.
    pub count: u64,
    /// When the last of them was, where it stands for several; the first was at `time`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last: Option<Timestamp>,
    pub kind: Kind,
    pub direction: Direction,
    /// The label that the agent gives its session; it is the agent's choice.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session: Option<Arc<str>>,
    /// The agent's W3C trace id, 32 hex digits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trace: Option<TraceParent>,
    /// The name of the credential that the request was given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub credential: Option<Arc<str>>,
    // The ledger's writer sets it where it is not set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workload: Option<Arc<Workload>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub destination: Option<Arc<Destination>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub http: Option<Http>,
    /// Of requests to the hosts of LLM providers alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provider: Option<Provider>,
    /// Of requests to models whose body was read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub conversation: Option<Conversation>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub payload: Option<Payload>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_call: Option<ToolCall>,
    pub decision: Decision,
    /// Joins the events of one connection.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub connection: Option<Id>,
    /// Joins the events of one exchange (request and response).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exchange: Option<Id>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub transforms: Vec<Transform>,
    /// What detectors found.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub dlp: Vec<Finding>,
    /// SHA-256 over the chain of the event before (32 bytes, zeros for the first of a start) and this line without this
    /// field; 64 hex digits. It is the last field of a line.
    // The ledger's writer sets it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub chain: Option<Chain>,
}

impl Event {
    /// An outbound event that stands for one happening at the time its id was made; all else is left out.
    pub fn new(id: Id, kind: Kind, decision: Decision) -> Self {
        Self {
            api_version: Cow::Borrowed(API_VERSION),
            id,
            time: id.time(),
            sequence: 0,
            start: None,
            count: 1,
            last: None,
            kind,
            direction: Direction::Outbound,
            session: None,
            trace: None,
            credential: None,
            workload: None,
            destination: None,
            http: None,
            provider: None,
            conversation: None,
            payload: None,
            usage: None,
            tool_call: None,
            decision,
            connection: None,
            exchange: None,
            transforms: Vec::new(),
            dlp: Vec::new(),
            chain: None,
        }
    }

    /// Whether the event has a reserved share of a queue that runs full: denials and tool calls have.
    pub fn is_reserved(&self) -> bool {
        self.kind == Kind::ToolCall || matches!(self.decision.verdict, Verdict::Deny | Verdict::WouldDeny)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "operator", derive(schemars::JsonSchema))]
pub enum Kind {
    /// A connection was let through, or refused.
    Connection,
    /// A request was let through, or refused.
    Request,
    /// An answer has ended, or a tunnel: `payload` says how much came or went.
    Response,
    /// A tool call of a model was decided.
    ToolCall,
    /// A request was changed: `transforms` says how.
    Transform,
    /// What a policy recorded beside a decision.
    Policy,
    /// Of the gateway itself: it started, stopped, read a policy, or dropped events.
    Lifecycle,
    /// A kind of a later version, read back; no gateway emits it.
    #[serde(other)]
    #[cfg_attr(feature = "operator", schemars(skip))]
    Unknown,
}

impl Kind {
    /// The word used in events.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Connection => "Connection",
            Self::Request => "Request",
            Self::Response => "Response",
            Self::ToolCall => "ToolCall",
            Self::Transform => "Transform",
            Self::Policy => "Policy",
            Self::Lifecycle => "Lifecycle",
            Self::Unknown => "Unknown",
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "operator", derive(schemars::JsonSchema))]
pub enum Direction {
    /// From the agent.
    Outbound,
    /// To the agent.
    Inbound,
    /// A direction of a later version, read back; no gateway emits it.
    #[serde(other)]
    #[cfg_attr(feature = "operator", schemars(skip))]
    Unknown,
}

impl Direction {
    /// The word used in events.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Outbound => "Outbound",
            Self::Inbound => "Inbound",
            Self::Unknown => "Unknown",
        }
    }
}

/// Whose traffic it is, from the downward API.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "operator", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct Workload {
    /// Of the pod.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub namespace: String,
    /// Its name.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub pod: String,
    /// Under which it runs.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub service_account: String,
    /// On which it runs.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub node: String,
}

/// Where a connection goes, and what became of it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "operator", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Destination {
    /// A name, or an address where the connection names none.
    pub host: String,
    /// Of TCP.
    pub port: u16,
    pub action: Action,
    /// Whether TLS was ended here or the bytes were plain HTTP that was read.
    pub intercepted: bool,
    /// Why it was not, or why the connection ended, in one short phrase.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<Cow<'static, str>>,
}

/// What became of a connection.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "operator", derive(schemars::JsonSchema))]
pub enum Action {
    /// TLS was ended, or plain HTTP read, and each request decided.
    Inspect,
    /// The bytes passed unseen.
    Tunnel,
    Deny,
    /// An action of a later version, read back; no gateway emits it.
    #[default]
    #[serde(other)]
    #[cfg_attr(feature = "operator", schemars(skip))]
    Unknown,
}

/// The head of a request, and of its response once there is one.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "operator", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Http {
    /// At most 64 bytes.
    pub method: Cow<'static, str>,
    /// Without the query, at most 2 KiB; `*` where requests with several paths were counted.
    pub path: String,
    /// Of the response.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// `HTTP/1.0`, `HTTP/1.1` or `HTTP/2`.
    pub version: Cow<'static, str>,
}

/// The longest path and method that an event has, in bytes.
const PATH: usize = 2 << 10;
const METHOD: usize = 64;

impl Http {
    /// The head of a request that has no answer yet. The query is cut off.
    pub fn request(method: &str, target: &str, version: http::Version) -> Self {
        let path = shortened(target.split(['?', '#']).next().unwrap_or_default(), PATH).into_owned();
        Self { method: method_word(method), path, status: None, version: version_word(version).into() }
    }
}

/// A text of an agent's choice, which may be as long as a head, up to so many bytes; `…` where it was cut.
fn shortened(text: &str, bytes: usize) -> Cow<'_, str> {
    if text.len() <= bytes {
        return Cow::Borrowed(text);
    }
    Cow::Owned(format!("{}…", &text[..text.floor_char_boundary(bytes)]))
}

/// Only a method that no RFC names costs an allocation.
fn method_word(word: &str) -> Cow<'static, str> {
    const KNOWN: [&str; 9] = ["GET", "POST", "PUT", "DELETE", "HEAD", "OPTIONS", "CONNECT", "PATCH", "TRACE"];
    match KNOWN.iter().find(|known| **known == word) {
        Some(known) => Cow::Borrowed(known),
        None => Cow::Owned(shortened(word, METHOD).into_owned()),
    }
}

fn version_word(version: http::Version) -> &'static str {
    match version {
        http::Version::HTTP_2 => "HTTP/2",
        http::Version::HTTP_10 => "HTTP/1.0",
        _ => "HTTP/1.1",
    }
}

/// How much went or came, without what is in it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "operator", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct Payload {
    /// How many went, or came.
    pub bytes: u64,
    /// In hex.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sha256: Option<String>,
    /// The content coding.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub encoding: Option<String>,
    /// Always false: an event never holds a body.
    pub body_retained: bool,
}

/// A change that was made to what flowed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "operator", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Transform {
    /// What kind of change: `hosted-tool`, `redact`, `request`, `marker`, `translate`, `answer` or `credential`;
    /// of results of tools `tool-output-compressed`, `tool-output-repeated` or `tool-output-left`, once a text, and
    /// `tool-outputs` for all of a request.
    pub name: Cow<'static, str>,
    /// The body as it came.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub before: Option<Extent>,
    /// The body as it went on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after: Option<Extent>,
    /// What was changed: the type of a hosted tool, the detector of a secret, the label of a marker, what a translation left
    /// out or mended, the id of a credential, how much of a result was cut and the evidence's id, why one was left.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
}

/// The kind of the transform that took a hosted tool out of a request; its detail is the tool's type.
pub const HOSTED_TOOL: &str = "hosted-tool";

impl Transform {
    /// A change without the body's extent.
    pub fn new(name: &'static str, detail: Option<String>) -> Self {
        Self { name: name.into(), before: None, after: None, detail }
    }
}

/// A body, without what is in it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "operator", derive(schemars::JsonSchema))]
#[serde(default)]
pub struct Extent {
    /// In hex.
    pub sha256: String,
    /// Its length.
    pub bytes: u64,
    /// About how many tokens it is, a quarter of its bytes, of results of tools that were shortened.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u64>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(n: u8) -> Id {
        Id::new(Timestamp::from_unix_millis(1_795_305_600_123), [n; 10])
    }

    #[test]
    fn an_event_with_nothing_but_a_decision_leaves_the_rest_out() {
        let event = Event::new(id(1), Kind::Lifecycle, Decision::of(Verdict::Allow));
        insta::assert_snapshot!(serde_json::to_string_pretty(&event).unwrap(), @r#"
        {
          "apiVersion": "postern.dev/event/v1",
          "id": "01a2008d-747b-7101-8101-010101010101",
          "time": "2026-11-22T00:00:00.123Z",
          "sequence": 0,
          "count": 1,
          "kind": "Lifecycle",
          "direction": "Outbound",
          "decision": {
            "verdict": "Allow"
          }
        }
        "#);
    }

    /// A response event in which every group is filled.
    fn denied() -> Event {
        Event {
            session: Some("s-1".into()),
            trace: TraceParent::parse("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"),
            workload: Some(Arc::new(Workload {
                namespace: "agents".to_owned(),
                pod: "coder-0".to_owned(),
                service_account: "coder".to_owned(),
                node: String::new(),
            })),
            destination: Some(Arc::new(Destination {
                host: "api.anthropic.com".to_owned(),
                port: 443,
                action: Action::Inspect,
                intercepted: true,
                reason: None,
            })),
            http: Some(Http {
                status: Some(403),
                ..Http::request("POST", "/v1/files?key=secret", http::Version::HTTP_2)
            }),
            provider: Some(Provider { name: "anthropic".into(), api: "other".into(), ..Provider::default() }),
            payload: Some(Payload { bytes: 12, ..Payload::default() }),
            decision: Decision {
                verdict: Verdict::Deny,
                rule: Some(crate::decision::RuleId::new("agents/coding/anthropic")),
                reason: Some("the endpoint is not listed".into()),
                enforcement: Some(crate::decision::Enforcement::Enforce),
            },
            connection: Some(id(2)),
            exchange: Some(id(3)),
            transforms: vec![Transform::new("scrub", None)],
            ..Event::new(id(1), Kind::Response, Decision::of(Verdict::Deny))
        }
    }

    #[test]
    fn a_denied_request_says_who_what_and_why() {
        insta::assert_snapshot!(serde_json::to_string_pretty(&denied()).unwrap(), @r#"
        {
          "apiVersion": "postern.dev/event/v1",
          "id": "01a2008d-747b-7101-8101-010101010101",
          "time": "2026-11-22T00:00:00.123Z",
          "sequence": 0,
          "count": 1,
          "kind": "Response",
          "direction": "Outbound",
          "session": "s-1",
          "trace": "4bf92f3577b34da6a3ce929d0e0e4736",
          "workload": {
            "namespace": "agents",
            "pod": "coder-0",
            "serviceAccount": "coder"
          },
          "destination": {
            "host": "api.anthropic.com",
            "port": 443,
            "action": "Inspect",
            "intercepted": true
          },
          "http": {
            "method": "POST",
            "path": "/v1/files",
            "status": 403,
            "version": "HTTP/2"
          },
          "provider": {
            "name": "anthropic",
            "api": "other"
          },
          "payload": {
            "bytes": 12,
            "bodyRetained": false
          },
          "decision": {
            "verdict": "Deny",
            "rule": "agents/coding/anthropic",
            "reason": "the endpoint is not listed",
            "enforcement": "Enforce"
          },
          "connection": "01a2008d-747b-7202-8202-020202020202",
          "exchange": "01a2008d-747b-7303-8303-030303030303",
          "transforms": [
            {
              "name": "scrub"
            }
          ]
        }
        "#);
    }

    #[test]
    fn the_query_never_reaches_an_event() {
        for target in ["/a?b=c", "/a#b?c", "/a?b#c?d"] {
            let http = Http::request("GET", target, http::Version::HTTP_11);
            assert_eq!(http.path, "/a", "{target}");
        }
    }

    #[test]
    fn a_path_or_a_method_of_any_length_makes_no_long_event() {
        let method = "M".repeat(9_000);
        let path = format!("/{}", "a".repeat(60_000));
        let http = Http::request(&method, &path, http::Version::HTTP_11);
        assert_eq!((http.path.len(), http.method.len()), (PATH + 3, METHOD + 3));
        assert!(http.path.ends_with("a…") && http.method.ends_with("M…"));
        assert_eq!(Http::request(&method, &path[..PATH], http::Version::HTTP_11).path, path[..PATH]);
    }

    #[test]
    fn denials_and_tool_calls_are_reserved_and_the_rest_is_not() {
        let event = |kind, verdict| Event::new(id(1), kind, Decision::of(verdict));
        assert!(event(Kind::Request, Verdict::Deny).is_reserved());
        assert!(event(Kind::Connection, Verdict::WouldDeny).is_reserved());
        assert!(event(Kind::ToolCall, Verdict::Allow).is_reserved());
        assert!(!event(Kind::Request, Verdict::Allow).is_reserved());
        assert!(!event(Kind::Response, Verdict::Audit).is_reserved());
    }

    #[test]
    fn a_method_of_no_rfc_keeps_its_word() {
        assert_eq!(Http::request("PURGE", "/", http::Version::HTTP_10).method, "PURGE");
        assert!(matches!(method_word("PATCH"), Cow::Borrowed("PATCH")));
    }
}
