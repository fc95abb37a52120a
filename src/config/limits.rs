//! The bounds on what is held, and on how long it is waited for.

use std::time::Duration;

use super::section::{Field, Section};

const KIB: usize = 1 << 10;
const MIB: usize = 1 << 20;

/// Bounds on what one agent can make the gateway hold or compute. A policy may only lower them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// A request body that must be seen whole, in bytes as sent.
    pub request_body_bytes: usize,
    /// A body once its content coding is undone.
    pub decoded_body_bytes: usize,
    /// The window of a zstd frame.
    pub zstd_window_bytes: usize,
    /// The input of one tool call.
    pub tool_input_bytes: usize,
    /// One server-sent event.
    pub sse_event_bytes: usize,
    /// What is read of a connection to learn its name.
    pub client_hello_bytes: usize,
    /// The head of a request or response, and the same again for trailers.
    pub header_bytes: usize,
    /// Header lines in one head.
    pub header_count: usize,
    /// Everything that is buffered at a time, over all exchanges.
    pub buffered_bytes: usize,
    /// Nesting of a JSON body.
    pub json_depth: usize,
    /// Minted leaf certificates that are kept.
    pub leaf_cache: usize,
    /// Connections from agents at a time.
    pub connections: usize,
    /// Concurrent streams of one HTTP/2 connection.
    pub h2_streams: u32,
    /// The text of one regular expression.
    pub regex_bytes: usize,
    /// One regular expression compiled.
    pub regex_compiled_bytes: usize,
    /// The static cost of one CEL expression.
    pub cel_cost: u64,
}

/// How long each step of a connection may take.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Timeouts {
    /// Until a new connection has shown what it is.
    pub sniff: Duration,
    /// Until an agent's request head is whole, counted from its first byte.
    pub agent_head: Duration,
    /// Until an upstream is connected and verified.
    pub connect: Duration,
    /// Until an upstream has answered with a head.
    pub upstream_head: Duration,
    /// Without a byte in either direction, while a body or a tunnel is under way.
    pub stream_idle: Duration,
    /// Without a request, on a kept connection.
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

impl Limits {
    pub(super) fn read(field: &Field<'_>) -> Self {
        fn size(section: &mut Section<'_>, name: &'static str, default: usize) -> usize {
            section.field(name).number_or(default, true)
        }
        fn count<T: TryFrom<u64>>(section: &mut Section<'_>, name: &'static str, default: T) -> T {
            section.field(name).number_or(default, false)
        }
        let default = Self::default();
        field.section(|s| Self {
            request_body_bytes: size(s, "requestBodyBytes", default.request_body_bytes),
            decoded_body_bytes: size(s, "decodedBodyBytes", default.decoded_body_bytes),
            zstd_window_bytes: size(s, "zstdWindowBytes", default.zstd_window_bytes),
            tool_input_bytes: size(s, "toolInputBytes", default.tool_input_bytes),
            sse_event_bytes: size(s, "sseEventBytes", default.sse_event_bytes),
            client_hello_bytes: size(s, "clientHelloBytes", default.client_hello_bytes),
            header_bytes: size(s, "headerBytes", default.header_bytes),
            header_count: count(s, "headerCount", default.header_count),
            buffered_bytes: size(s, "bufferedBytes", default.buffered_bytes),
            json_depth: count(s, "jsonDepth", default.json_depth),
            leaf_cache: count(s, "leafCache", default.leaf_cache),
            connections: count(s, "connections", default.connections),
            h2_streams: count(s, "h2Streams", default.h2_streams),
            regex_bytes: size(s, "regexBytes", default.regex_bytes),
            regex_compiled_bytes: size(s, "regexCompiledBytes", default.regex_compiled_bytes),
            cel_cost: count(s, "celCost", default.cel_cost),
        })
    }
}

impl Timeouts {
    pub(super) fn read(field: &Field<'_>) -> Self {
        let default = Self::default();
        field.section(|s| Self {
            sniff: s.field("sniff").duration_or(default.sniff),
            agent_head: s.field("agentHead").duration_or(default.agent_head),
            connect: s.field("connect").duration_or(default.connect),
            upstream_head: s.field("upstreamHead").duration_or(default.upstream_head),
            stream_idle: s.field("streamIdle").duration_or(default.stream_idle),
            keep_alive: s.field("keepAlive").duration_or(default.keep_alive),
        })
    }
}
