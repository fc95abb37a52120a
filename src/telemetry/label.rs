//! The words that metric labels may have: closed sets, so that no agent can make a time series.

use crate::call::{Api, Vendor};
use crate::decision::Verdict;
use crate::event::Action;

/// A closed set of label values.
pub trait Label: Copy + 'static {
    /// Every value, in the order of `index`.
    const ALL: &'static [Self];

    /// The place of the value in `ALL`.
    fn index(self) -> usize;

    /// The word in the exposition.
    fn word(self) -> &'static str;
}

macro_rules! labels {
    ($($(#[$doc:meta])* $name:ident { $($(#[$about:meta])* $value:ident = $word:literal,)+ })+) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum $name { $($(#[$about])* $value,)+ }

        impl Label for $name {
            const ALL: &'static [Self] = &[$(Self::$value,)+];

            fn index(self) -> usize {
                self as usize
            }

            fn word(self) -> &'static str {
                match self { $(Self::$value => $word,)+ }
            }
        }
    )+};
}

labels! {
    /// Which way in a connection took, as under `listeners`.
    Mode {
        Transparent = "transparent",
        Explicit = "explicit",
        Reverse = "reverse",
    }

    /// The kinds of traffic that a rule can deny.
    Denied {
        Connection = "connection",
        Request = "request",
        /// An answer, or the rest of one, that was not let through.
        Response = "response",
        ToolCall = "tool_call",
    }

    /// How the commands of a call of a shell were read.
    ShellRead {
        Literal = "Literal",
        /// A part of them cannot be told.
        Opaque = "Opaque",
    }

    /// Why a connection of an agent ended.
    Closed {
        /// Both sides said all they had to say.
        Finished = "finished",
        /// A rule or a built-in rule denied it.
        Denied = "denied",
        /// Nothing that could be judged came within `timeouts.sniff`.
        SniffTimeout = "sniff_timeout",
        /// The first bytes are no protocol that any rule allows here, or a broken ClientHello.
        Garbage = "garbage",
        /// The agent went away before it had said where to.
        Silent = "silent",
        /// A request's head was not whole within `timeouts.agentHead`.
        HeadTimeout = "head_timeout",
        /// Two parsers could read the message differently.
        Framing = "framing",
        /// The agent's TLS handshake failed for another reason than our leaf.
        AgentTls = "agent_tls",
        /// The agent rejected our leaf.
        LeafRejected = "leaf_rejected",
        /// The explicit proxy's password was missing or wrong.
        Password = "password",
        /// A bound of `limits` was reached.
        Limit = "limit",
        /// No request came within `timeouts.keepAlive`.
        KeepAlive = "keep_alive",
        /// Nothing flowed within `timeouts.streamIdle`.
        StreamIdle = "stream_idle",
        /// The agent reset it or hung up in the middle.
        AgentGone = "agent_gone",
        /// The upstream could not be reached, or ended in the middle.
        Upstream = "upstream",
        /// A new policy denies what was open.
        PolicyChanged = "policy_changed",
        /// The gateway stops.
        Draining = "draining",
        /// A failure of the gateway itself.
        Internal = "internal",
    }

    /// Which bound refused something, by its name under `limits`.
    Limit {
        Connections = "connections",
        ClientHelloBytes = "clientHelloBytes",
        HeaderBytes = "headerBytes",
        HeaderCount = "headerCount",
        H2Streams = "h2Streams",
        RequestBodyBytes = "requestBodyBytes",
        DecodedBodyBytes = "decodedBodyBytes",
        ZstdWindowBytes = "zstdWindowBytes",
        BufferedBytes = "bufferedBytes",
        /// Leaves a second that would carry a refusal alone; this one is fixed.
        RefusalLeaves = "refusalLeaves",
    }

    /// How an upstream failed.
    UpstreamError {
        /// The name has no address, or the resolver did not answer.
        Resolve = "resolve",
        /// Every address refused the connection or was unreachable.
        Connect = "connect",
        /// No connection within `timeouts.connect`.
        ConnectTimeout = "connect_timeout",
        /// The gateway had no file descriptor left for another connection.
        Descriptors = "descriptors",
        /// The corporate proxy refused, or answered something else than its protocol.
        Proxy = "proxy",
        /// The certificate was not verified, or the handshake failed.
        Tls = "tls",
        /// No response head within `timeouts.upstreamHead`.
        HeadTimeout = "head_timeout",
        /// The body stood still for `timeouts.streamIdle`.
        StreamIdle = "stream_idle",
        /// The connection was closed or reset before the response was whole.
        Reset = "reset",
        /// The answer was no HTTP, or broke its rules.
        Protocol = "protocol",
    }

    /// The outcome of a question to the resolver.
    DnsAnswer {
        /// The address that stands for the name.
        Address = "address",
        /// The name is answered, and has nothing of the type that was asked for.
        NoData = "nodata",
        /// No rule names it.
        NxDomain = "nxdomain",
        /// Every address is in use.
        ServFail = "servfail",
        /// An operation, class or EDNS version that is not served.
        Refused = "refused",
        /// It could not be read.
        Malformed = "malformed",
        /// Nothing was said: no question, too large, or too many.
        Dropped = "dropped",
    }

    /// Why an event was not written.
    Dropped {
        /// The queue to the writer was full.
        QueueFull = "queue_full",
        /// A sink could not write it.
        WriteFailed = "write_failed",
        /// It came after the ledger was closed.
        Closed = "closed",
    }

    /// The outcome of reading changed policy files.
    Reload {
        Success = "success",
        Failure = "failure",
    }

    /// The outcome of exporting spans.
    Export {
        Success = "success",
        Failure = "failure",
    }

    /// How destinations with action Inspect are treated.
    Interception {
        /// TLS is ended here.
        Required = "Required",
        /// By `interception.mode`: they are denied, but for plain HTTP.
        Off = "Off",
        /// By `interception.onError`: the CA is missing, they are tunnelled.
        Passthrough = "Passthrough",
    }
}

impl Label for Action {
    const ALL: &'static [Self] = &[Self::Inspect, Self::Tunnel, Self::Deny];

    fn index(self) -> usize {
        self as usize
    }

    fn word(self) -> &'static str {
        match self {
            Self::Inspect => "Inspect",
            Self::Tunnel => "Tunnel",
            Self::Deny => "Deny",
            Self::Unknown => "Unknown",
        }
    }
}

impl Label for Verdict {
    const ALL: &'static [Self] = &[Self::Allow, Self::Deny, Self::Audit, Self::WouldDeny];

    fn index(self) -> usize {
        self as usize
    }

    fn word(self) -> &'static str {
        self.as_str()
    }
}

impl Label for Vendor {
    const ALL: &'static [Self] = Self::ALL;

    fn index(self) -> usize {
        self as usize
    }

    fn word(self) -> &'static str {
        self.as_str()
    }
}

impl Label for Api {
    const ALL: &'static [Self] = Self::ALL;

    fn index(self) -> usize {
        self as usize
    }

    fn word(self) -> &'static str {
        self.as_str()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn is_sound<L: Label>() -> bool {
        let words: BTreeSet<_> = L::ALL.iter().map(|label| label.word()).collect();
        words.len() == L::ALL.len() && L::ALL.iter().enumerate().all(|(i, label)| label.index() == i)
    }

    #[test]
    fn every_set_lists_each_value_once_at_its_place() {
        assert!(is_sound::<Action>());
        assert!(is_sound::<Verdict>());
        assert!(is_sound::<Vendor>());
        assert!(is_sound::<Api>());
        assert!(is_sound::<Closed>());
        assert!(is_sound::<Limit>());
        assert!(is_sound::<UpstreamError>());
        assert!(is_sound::<DnsAnswer>());
    }
}
