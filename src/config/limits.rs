//! The bounds on what is held, and on how long it is waited for.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::value::{count, duration, show_duration, size};

const KIB: usize = 1 << 10;
const MIB: usize = 1 << 20;

/// Bounds on what one agent can make the gateway hold or compute. A policy may only lower them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct Limits {
    /// A request body that must be seen whole, in bytes as sent.
    #[serde(deserialize_with = "size")]
    pub request_body_bytes: usize,
    /// A body once its content coding is undone.
    #[serde(deserialize_with = "size")]
    pub decoded_body_bytes: usize,
    /// The window of a zstd frame.
    #[serde(deserialize_with = "size")]
    pub zstd_window_bytes: usize,
    /// The input of one tool call.
    #[serde(deserialize_with = "size")]
    pub tool_input_bytes: usize,
    /// One server-sent event.
    #[serde(deserialize_with = "size")]
    pub sse_event_bytes: usize,
    /// What is read of a connection to learn its name.
    #[serde(deserialize_with = "size")]
    pub client_hello_bytes: usize,
    /// The head of a request or response, and the same again for trailers.
    #[serde(deserialize_with = "size")]
    pub header_bytes: usize,
    /// Header lines in one head.
    #[serde(deserialize_with = "count")]
    pub header_count: usize,
    /// Everything that is buffered at a time, over all exchanges.
    #[serde(deserialize_with = "size")]
    pub buffered_bytes: usize,
    /// Nesting of a JSON body.
    #[serde(deserialize_with = "count")]
    pub json_depth: usize,
    /// Minted leaf certificates that are kept.
    #[serde(deserialize_with = "count")]
    pub leaf_cache: usize,
    /// Connections from agents at a time.
    #[serde(deserialize_with = "count")]
    pub connections: usize,
    /// Concurrent streams of one HTTP/2 connection.
    #[serde(deserialize_with = "count")]
    pub h2_streams: u32,
    /// The text of one regular expression.
    #[serde(deserialize_with = "size")]
    pub regex_bytes: usize,
    /// One regular expression compiled.
    #[serde(deserialize_with = "size")]
    pub regex_compiled_bytes: usize,
    /// The static cost of one CEL expression.
    #[serde(deserialize_with = "count")]
    pub cel_cost: u64,
}

/// How long each step of a connection may take.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct Timeouts {
    /// Until a new connection has shown what it is.
    #[serde(deserialize_with = "duration", serialize_with = "show_duration")]
    pub sniff: Duration,
    /// Until an agent's request head is whole, counted from its first byte.
    #[serde(deserialize_with = "duration", serialize_with = "show_duration")]
    pub agent_head: Duration,
    /// Until an upstream is connected and verified.
    #[serde(deserialize_with = "duration", serialize_with = "show_duration")]
    pub connect: Duration,
    /// Until an upstream has answered with a head.
    #[serde(deserialize_with = "duration", serialize_with = "show_duration")]
    pub upstream_head: Duration,
    /// Without a byte in either direction, while a body or a tunnel is under way.
    #[serde(deserialize_with = "duration", serialize_with = "show_duration")]
    pub stream_idle: Duration,
    /// Without a request, on a kept connection.
    #[serde(deserialize_with = "duration", serialize_with = "show_duration")]
    pub keep_alive: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            request_body_bytes: 32 * MIB,
            decoded_body_bytes: 64 * MIB,
            zstd_window_bytes: 8 * MIB,
            tool_input_bytes: MIB,
            sse_event_bytes: 4 * MIB,
            client_hello_bytes: 64 * KIB,
            header_bytes: 64 * KIB,
            header_count: 128,
            buffered_bytes: 256 * MIB,
            json_depth: 128,
            leaf_cache: 1_024,
            connections: 10_000,
            h2_streams: 100,
            regex_bytes: 4 * KIB,
            regex_compiled_bytes: MIB,
            cel_cost: 10_000,
        }
    }
}

impl Default for Timeouts {
    fn default() -> Self {
        Self {
            sniff: Duration::from_secs(5),
            agent_head: Duration::from_secs(10),
            connect: Duration::from_secs(10),
            upstream_head: Duration::from_secs(15 * 60),
            stream_idle: Duration::from_secs(15 * 60),
            keep_alive: Duration::from_secs(60),
        }
    }
}
