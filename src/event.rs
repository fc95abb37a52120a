//! What happened: the envelope that every sink, metric and report reads (plain data, no bodies).

use serde::Serialize;

/// The version of the envelope's shape, its `apiVersion`.
pub const API_VERSION: &str = "postern.dev/event/v1";

/// One thing that happened at the door. Fields that do not apply are left out of the JSON.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Event {
    pub api_version: &'static str,
    /// UUIDv7, lower case.
    pub id: String,
    /// RFC 3339, UTC, milliseconds.
    pub time: String,
    /// Counts from 1 per gateway start, without gaps, in the order of the sink.
    pub sequence: u64,
    /// How many equal happenings this event stands for.
    pub count: u64,
    pub kind: Kind,
    pub direction: Direction,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// The agent's W3C trace id, 32 hex digits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trace: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workload: Option<std::sync::Arc<Workload>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub destination: Option<Destination>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub http: Option<Http>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub payload: Option<Payload>,
    pub decision: Decision,
    /// Joins the events of one connection.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub connection: Option<String>,
    /// Joins the events of one exchange (request and response).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exchange: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub transforms: Vec<Transform>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum Kind {
    Connection,
    Request,
    Response,
    ToolCall,
    Transform,
    Policy,
    Lifecycle,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum Direction {
    Outbound,
    Inbound,
}

/// Whose traffic it is, from the downward API.
#[derive(Debug, Clone, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Workload {
    #[serde(skip_serializing_if = "String::is_empty")]
    pub namespace: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub pod: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub service_account: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub node: String,
}

#[derive(Debug, Clone, Default, Serialize)]
pub struct Destination {
    pub host: String,
    pub port: u16,
    /// `Inspect`, `Tunnel` or `Deny`.
    pub action: &'static str,
    /// Whether TLS was ended here or the bytes were plain HTTP that was read.
    pub intercepted: bool,
    /// Why it was not, or why the connection ended, in one short phrase.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

#[derive(Debug, Clone, Default, Serialize)]
pub struct Http {
    pub method: String,
    /// Without the query.
    pub path: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// `HTTP/1.1` or `HTTP/2`.
    pub version: &'static str,
}

#[derive(Debug, Clone, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Payload {
    pub bytes: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sha256: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub encoding: Option<String>,
    /// Always false: an event never holds a body.
    pub body_retained: bool,
}

#[derive(Debug, Clone, Serialize)]
pub struct Decision {
    pub verdict: Verdict,
    /// The rule's stable id (`namespace/policy/rule`, `-/policy/rule`, `postern/builtin/NAME`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rule: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// `Enforce` or `Audit`: what the rule's policy says.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enforcement: Option<&'static str>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
pub enum Verdict {
    Allow,
    Deny,
    Audit,
    WouldDeny,
}

impl Verdict {
    /// The word used in events and as a metric label.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Allow => "Allow",
            Self::Deny => "Deny",
            Self::Audit => "Audit",
            Self::WouldDeny => "WouldDeny",
        }
    }
}

/// A change that was made to what flowed.
#[derive(Debug, Clone, Serialize)]
pub struct Transform {
    pub name: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
}
