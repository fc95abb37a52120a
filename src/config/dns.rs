//! The resolver's settings: its port, and the pool of addresses that stand for names.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};

use ipnet::{IpNet, Ipv4Net};
use serde::{Deserialize, Serialize};

use super::value::{self, Written, show, text};
use crate::policy::address::POOL;

/// The port of the resolver where none is configured, for UDP and TCP.
pub const DNS_PORT: u16 = 15_053;

/// The longest prefix of a pool: six addresses besides its first and last.
const LONGEST_PREFIX: u8 = 29;

/// What can be no pool, because the kernel treats it in a way of its own: a connection to it would not come back here.
const SPECIAL: [Ipv4Net; 4] = [
    Ipv4Net::new_assert(Ipv4Addr::new(0, 0, 0, 0), 8),
    Ipv4Net::new_assert(Ipv4Addr::new(127, 0, 0, 0), 8),
    Ipv4Net::new_assert(Ipv4Addr::new(169, 254, 0, 0), 16),
    Ipv4Net::new_assert(Ipv4Addr::new(224, 0, 0, 0), 3),
];

/// The gateway's resolver, on 127.0.0.1 and `[::1]`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct DnsSettings {
    /// For UDP and TCP; 0 lets the system choose.
    #[serde(deserialize_with = "value::port")]
    pub port: u16,
    /// The IPv4 addresses that stand for names.
    #[serde(deserialize_with = "text", serialize_with = "show")]
    pub pool: Ipv4Net,
}

impl Default for DnsSettings {
    fn default() -> Self {
        Self { port: DNS_PORT, pool: POOL }
    }
}

impl DnsSettings {
    /// Where it listens.
    pub fn addresses(&self) -> [SocketAddr; 2] {
        [(Ipv4Addr::LOCALHOST, self.port).into(), (Ipv6Addr::LOCALHOST, self.port).into()]
    }
}

impl Written for Ipv4Net {
    /// A pool: an IPv4 network of ordinary addresses with room for names.
    fn parse(text: &str) -> Result<Self, String> {
        let pool = match IpNet::parse(text)? {
            IpNet::V4(pool) => pool,
            IpNet::V6(_) => {
                return Err(format!(
                    "{text} is IPv6; write an IPv4 network like {POOL}, the one for IPv6 is fixed"
                ));
            }
        };
        if pool.prefix_len() > LONGEST_PREFIX {
            return Err(format!(
                "{text} is too small: a pool needs a prefix of /{LONGEST_PREFIX} or shorter"
            ));
        }
        let overlaps =
            |special: &&Self| special.contains(&pool.network()) || pool.contains(&special.network());
        match SPECIAL.iter().find(overlaps) {
            Some(special) => {
                Err(format!("{text} overlaps {special}, which has a meaning of its own; use {POOL}"))
            }
            None => Ok(pool),
        }
    }
}
