//! The addresses of the canary: the gateway dials them, and proves by its own redirected connection that the redirect holds.

use std::net::{Ipv4Addr, Ipv6Addr};

/// Nobody's address (RFC 5737). The redirect does not exempt the gateway there, and policies never allow to dial it.
pub(crate) const CANARY_V4: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);
/// The same in IPv6 (RFC 3849).
pub(crate) const CANARY_V6: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1);
