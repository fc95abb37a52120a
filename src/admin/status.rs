//! The status of a running gateway (plain data, as JSON on the Unix socket).

use serde::{Deserialize, Serialize};

/// The whole status of a running gateway, without secrets. Times are RFC 3339 in UTC.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct GatewayStatus {
    pub version: String,
    pub started_at: String,
    pub uptime_seconds: u64,
    pub ready: bool,
    /// Why it is not ready, and reasons for concern while it is.
    pub reasons: Vec<String>,
    /// Why it is not ready, in words without content: all that the pod network is told.
    #[serde(skip)]
    pub unready: Vec<&'static str>,
    pub interception: InterceptionStatus,
    pub policy: PolicyStatus,
    pub listeners: Vec<ListenerStatus>,
    pub connections: ConnectionCounts,
    pub events: EventCounts,
    /// The settings in force, redacted.
    pub settings: serde_json::Value,
}

impl GatewayStatus {
    /// Adds a reason for not being ready: fixed words, and the detail that the Unix socket alone tells.
    pub fn not_ready(&mut self, words: &'static str, detail: Option<&str>) {
        self.ready = false;
        self.unready.push(words);
        self.reasons.push(detail.map_or_else(|| words.to_owned(), |detail| format!("{words}: {detail}")));
    }
}

/// Whether TLS is ended here, and the evidence.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct InterceptionStatus {
    /// `Required`, `Off` or `Passthrough`.
    pub mode: String,
    /// `sha256:` and the digest of the issuing certificate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fingerprint: Option<String>,
    /// When the CA ends.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_after: Option<String>,
    /// Why it is not as the settings ask.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The outcome of the newest trial of the redirect, where the transparent listener is on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proof: Option<String>,
}

/// Which policy is in force.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PolicyStatus {
    pub revision: String,
    /// The revision that the operator gave the mounted documents; equal to `revision`, where all is well.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub published: Option<String>,
    /// The revision that the operator stamped on the pod; another one is on its way, where it is not the revision.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stamped: Option<String>,
    /// When it was synced, or loaded where nothing syncs it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub synced_at: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub age_seconds: Option<u64>,
    pub state: PolicyState,
    /// How many policies select this pod.
    pub policies: usize,
    /// Why the newest files are not in force.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_error: Option<String>,
}

/// How old the policy is (Fresh under 5 minutes, Stale under 24 hours), or that there is a newer one which this version
/// does not know.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum PolicyState {
    Fresh,
    Stale,
    Expired,
    Unknown,
}

/// One listener: a way in, the resolver, or the admin port.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ListenerStatus {
    /// `transparent`, `explicit`, `reverse`, `dns` or `admin`.
    pub mode: String,
    pub address: String,
    /// The upstream of a reverse listener.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub upstream: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConnectionCounts {
    pub open: u64,
    pub limit: u64,
    /// `limits.connections`; more than `limit` where file descriptors allow no more.
    #[serde(default)]
    pub configured: u64,
}

/// Counts since the start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct EventCounts {
    pub written: u64,
    pub dropped: u64,
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A gateway that lacks nothing.
    pub(crate) fn healthy() -> GatewayStatus {
        GatewayStatus {
            version: "0.1.0".to_owned(),
            started_at: "2026-11-22T00:00:00.000Z".to_owned(),
            uptime_seconds: 7_384,
            ready: true,
            reasons: Vec::new(),
            unready: Vec::new(),
            interception: InterceptionStatus {
                mode: "Required".to_owned(),
                fingerprint: Some("sha256:ab12".to_owned()),
                not_after: Some("2027-11-22T00:00:00.000Z".to_owned()),
                reason: None,
                proof: None,
            },
            policy: PolicyStatus {
                revision: "sha256:0123456789abcdef".to_owned(),
                published: None,
                stamped: None,
                synced_at: Some("2026-11-22T02:00:00.000Z".to_owned()),
                age_seconds: Some(12),
                state: PolicyState::Fresh,
                policies: 2,
                last_error: None,
            },
            listeners: vec![ListenerStatus {
                mode: "explicit".to_owned(),
                address: "127.0.0.1:15002".to_owned(),
                upstream: None,
            }],
            connections: ConnectionCounts { open: 3, limit: 10_000, configured: 10_000 },
            events: EventCounts { written: 120, dropped: 0 },
            settings: serde_json::json!({"timeouts": {"sniff": "5s"}}),
        }
    }

    #[test]
    fn what_does_not_apply_is_left_out_and_read_back_as_absent() {
        let mut status = healthy();
        status.interception = InterceptionStatus {
            mode: "Off".to_owned(),
            fingerprint: None,
            not_after: None,
            reason: Some("interception.mode is Off".to_owned()),
            proof: None,
        };
        status.not_ready("the policy is expired", Some("since 25 h"));
        let json = serde_json::to_string(&status).unwrap();
        assert!(!json.contains("notAfter"), "{json}");
        assert_eq!(std::mem::take(&mut status.unready), ["the policy is expired"]);
        assert_eq!(serde_json::from_str::<GatewayStatus>(&json).unwrap(), status);
    }
}
