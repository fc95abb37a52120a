//! Asks the kernel whether it knows a way to an address.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};

use rustix::io::Errno;

/// The port does not matter (discard, RFC 863): nothing is sent.
const PORT: u16 = 9;

/// Whether there is a route; connecting a UDP socket asks the routing table, and does no more.
///
/// # Errors
/// It cannot be asked: somebody may hold every port, or this process every descriptor that it may have.
pub(crate) fn is_there(to: IpAddr) -> io::Result<bool> {
    match UdpSocket::bind(unspecified(to)).and_then(|socket| socket.connect((to, PORT))) {
        Ok(()) => Ok(true),
        Err(error) if says_no_route(&error) => Ok(false),
        Err(error) => Err(error),
    }
}

/// Any address of the same family, with any port.
pub(crate) fn unspecified(like: IpAddr) -> SocketAddr {
    let any: IpAddr = match like {
        IpAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        IpAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    (any, 0).into()
}

/// Whether an error says that there is no such family here, no address to send from or no route, or a route that
/// leads nowhere (`prohibit`, `blackhole`).
fn says_no_route(error: &io::Error) -> bool {
    let those = [
        Errno::AFNOSUPPORT,
        Errno::ADDRNOTAVAIL,
        Errno::NETUNREACH,
        Errno::HOSTUNREACH,
        Errno::ACCESS,
        Errno::INVAL,
    ];
    Errno::from_io_error(error).is_some_and(|errno| those.contains(&errno))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_a_way_to_the_loopback() {
        assert!(is_there(Ipv4Addr::LOCALHOST.into()).unwrap());
    }

    #[test]
    fn ports_and_descriptors_that_ran_out_are_no_lack_of_a_route() {
        let says = |errno: Errno| says_no_route(&errno.into());
        assert!([Errno::NETUNREACH, Errno::HOSTUNREACH, Errno::AFNOSUPPORT].into_iter().all(says));
        assert!(![Errno::ADDRINUSE, Errno::MFILE, Errno::NFILE, Errno::NOBUFS].into_iter().any(says));
    }
}
