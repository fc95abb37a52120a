//! Whether the kernel knows a way to an address.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, UdpSocket};

/// The port does not matter (discard, RFC 863): nothing is sent.
const PORT: u16 = 9;

/// Asks the routing table; that is all that connecting a UDP socket does.
pub(super) fn is_there(to: IpAddr) -> bool {
    let any: IpAddr = match to {
        IpAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        IpAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    UdpSocket::bind((any, 0)).and_then(|socket| socket.connect((to, PORT))).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_a_way_to_the_loopback() {
        assert!(is_there(Ipv4Addr::LOCALHOST.into()));
    }
}
