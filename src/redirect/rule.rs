//! The vocabulary of a plan: chains of rules, each a list of matches and a verdict.

use std::collections::BTreeSet;
use std::net::IpAddr;

use ipnet::IpNet;

/// The device of packets that never leave the namespace.
pub const LOOPBACK: &str = "lo";

/// A base chain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlannedChain {
    pub name: &'static str,
    pub table: TableFamily,
    pub kind: ChainKind,
    pub hook: Hook,
    /// Where it stands among the chains of its hook; lower is earlier.
    pub priority: i32,
    pub rules: Vec<PlannedRule>,
}

/// The family of the table that a chain lies in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum TableFamily {
    /// IPv4 and IPv6.
    Inet,
    /// IPv4 alone.
    Ip,
}

/// What a chain may do with packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChainKind {
    Filter,
    /// Sees the first packet of a flow alone.
    Nat,
}

/// Where in the kernel a chain is called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hook {
    Input,
    Output,
    Postrouting,
}

/// A packet that every match holds for gets the verdict; others go on to the next rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlannedRule {
    /// Why the rule is there, in one line.
    pub reason: &'static str,
    pub matches: Vec<PacketMatch>,
    pub verdict: PacketVerdict,
    /// Whether the packets that the verdict meets are counted.
    pub counted: bool,
}

/// A condition on a packet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PacketMatch {
    /// The socket belongs to this UID. Never true of a packet without a socket.
    Owner(u32),
    /// The socket belongs to another UID than this. Never true of a packet without a socket either.
    OtherOwner(u32),
    /// It comes in by the loopback device.
    FromLoopback,
    /// It goes out by the loopback device.
    ToLoopback,
    /// It goes out by another device than the loopback.
    ToElsewhere,
    /// It is IPv6.
    Ipv6,
    /// Its source is no address of this machine.
    FromForeignAddress,
    /// Its destination is an address of this machine.
    ToOwnAddress,
    /// Its destination lies in this range.
    To(IpNet),
    /// Its destination is of this address's family, and not this address.
    NotTo(IpAddr),
    Transport(Transport),
    /// Its protocol is anything but this.
    NotTransport(Transport),
    SourcePort(Transport, BTreeSet<u16>),
    DestinationPort(Transport, BTreeSet<u16>),
    /// SYN is set: it opens a connection, or takes part in the opening.
    Syn,
    /// It is TCP, and takes no part in the opening of a connection.
    NoSyn,
    /// Connection tracking cannot make sense of it.
    Invalid,
    Established,
    EstablishedOrRelated,
    /// It goes in the direction in which its flow began.
    Original,
    /// It goes against the direction in which its flow began.
    Reply,
    /// The destination of its flow was rewritten.
    DestinationRewritten,
    /// It is one of these ICMPv6 messages.
    Discovery(BTreeSet<Discovery>),
}

/// The messages of ICMPv6 by which neighbours and routers are found (RFC 4861, section 4).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Discovery {
    RouterSolicit,
    RouterAdvert,
    NeighbourSolicit,
    NeighbourAdvert,
}

/// The transports that are named.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Transport {
    Tcp,
    Udp,
}

/// What a rule does with a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PacketVerdict {
    /// It passes this chain. Chains of other programs still see it.
    Accept,
    Drop,
    /// It is refused with an ICMP error.
    Reject(IcmpError),
    /// It goes to this port of the loopback address of its family.
    Redirect(u16),
    /// It goes on, and the flow that it begins is tracked apart from those of others.
    TrackApart,
}

/// The ICMP error that refuses a packet, by the code of that meaning in each family.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IcmpError {
    PortUnreachable,
    AdminProhibited,
}

/// A family of addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum IpFamily {
    V4,
    V6,
}

impl PlannedRule {
    /// The address family that this rule is limited to, if it is.
    pub fn family(&self) -> Option<IpFamily> {
        self.matches.iter().find_map(PacketMatch::family)
    }

    /// Returns the same rule with a packet counter.
    #[must_use]
    pub(super) fn counted(self) -> Self {
        Self { counted: true, ..self }
    }
}

impl PacketMatch {
    fn family(&self) -> Option<IpFamily> {
        match self {
            Self::To(net) => Some(IpFamily::of(net.addr())),
            Self::NotTo(address) => Some(IpFamily::of(*address)),
            Self::Ipv6 | Self::Discovery(_) => Some(IpFamily::V6),
            Self::Owner(_)
            | Self::FromLoopback
            | Self::ToLoopback
            | Self::ToElsewhere
            | Self::FromForeignAddress
            | Self::ToOwnAddress
            | Self::Transport(_)
            | Self::NotTransport(_)
            | Self::SourcePort(..)
            | Self::DestinationPort(..)
            | Self::Syn
            | Self::NoSyn
            | Self::Invalid
            | Self::Established
            | Self::EstablishedOrRelated
            | Self::Original
            | Self::OtherOwner(_)
            | Self::Reply
            | Self::DestinationRewritten => None,
        }
    }
}

impl IpFamily {
    /// The family of an address.
    pub fn of(address: IpAddr) -> Self {
        if address.is_ipv4() { Self::V4 } else { Self::V6 }
    }
}

impl TableFamily {
    pub const ALL: [Self; 2] = [Self::Inet, Self::Ip];

    /// The word for it in `nft`.
    pub fn word(self) -> &'static str {
        match self {
            Self::Inet => "inet",
            Self::Ip => "ip",
        }
    }
}

impl ChainKind {
    /// The word for it in nf_tables.
    pub fn word(self) -> &'static str {
        match self {
            Self::Filter => "filter",
            Self::Nat => "nat",
        }
    }
}

impl Hook {
    /// The word for it in `nft`.
    pub fn word(self) -> &'static str {
        match self {
            Self::Input => "input",
            Self::Output => "output",
            Self::Postrouting => "postrouting",
        }
    }
}

impl Transport {
    /// The word for it in both syntaxes.
    pub fn word(self) -> &'static str {
        match self {
            Self::Tcp => "tcp",
            Self::Udp => "udp",
        }
    }

    /// Its protocol number (IANA, Assigned Internet Protocol Numbers).
    pub fn number(self) -> u8 {
        match self {
            Self::Tcp => 6,
            Self::Udp => 17,
        }
    }
}

impl Discovery {
    /// The type of the message.
    pub fn number(self) -> u8 {
        match self {
            Self::RouterSolicit => 133,
            Self::RouterAdvert => 134,
            Self::NeighbourSolicit => 135,
            Self::NeighbourAdvert => 136,
        }
    }

    /// The word for it in `nft`.
    pub fn word(self) -> &'static str {
        match self {
            Self::RouterSolicit => "nd-router-solicit",
            Self::RouterAdvert => "nd-router-advert",
            Self::NeighbourSolicit => "nd-neighbor-solicit",
            Self::NeighbourAdvert => "nd-neighbor-advert",
        }
    }
}
