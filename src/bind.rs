//! Binds sockets to addresses, and says in words why one cannot be bound.

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};

use rustix::io::Errno;
use tokio::net::{TcpListener, TcpSocket, UdpSocket};

/// How many connections the kernel holds until they are accepted; the system may hold fewer (`net.core.somaxconn`).
pub(crate) const BACKLOG: u32 = 1024;

/// Binds and listens. An address in use is said with the remedy. `[::]` stands for all addresses that the machine has,
/// also where none of them is of IPv6. Async, since a listener belongs to a runtime.
pub(crate) async fn tcp(address: SocketAddr) -> Result<TcpListener, String> {
    let bound = listen(address);
    match &bound {
        Err(error) if lacks_ipv6(error) && address.ip() == Ipv6Addr::UNSPECIFIED => {
            let v4 = SocketAddr::from((Ipv4Addr::UNSPECIFIED, address.port()));
            listen(v4).map_err(|error| because(v4, &error))
        }
        Ok(_) | Err(_) => bound.map_err(|error| because(address, &error)),
    }
}

fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
    // A port whose last connections are not forgotten yet can be had again.
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}

/// Binds a socket that nobody else can share: no address or port is reused.
pub(crate) async fn udp(address: SocketAddr) -> Result<UdpSocket, String> {
    UdpSocket::bind(address).await.map_err(|error| because(address, &error))
}

/// Binds and listens on a port of 127.0.0.1 and, where the machine has it, of `[::1]`.
pub(crate) async fn tcp_on_loopbacks(port: u16) -> Result<Vec<TcpListener>, String> {
    let v4 = tcp((Ipv4Addr::LOCALHOST, port).into()).await?;
    if !has_ipv6_loopback() {
        return Ok(vec![v4]);
    }
    let port = v4.local_addr().map_or(port, |address| address.port());
    Ok(vec![v4, tcp((Ipv6Addr::LOCALHOST, port).into()).await?])
}

/// Whether there is a `[::1]`. Only its absence excuses its not being bound: what somebody else holds is said.
pub(crate) fn has_ipv6_loopback() -> bool {
    let any_port = SocketAddr::from((Ipv6Addr::LOCALHOST, 0));
    !std::net::UdpSocket::bind(any_port).is_err_and(|error| lacks_ipv6(&error))
}

/// Whether it is for want of IPv6, or of its addresses, that something was not bound.
fn lacks_ipv6(error: &io::Error) -> bool {
    let absent = [Errno::ADDRNOTAVAIL, Errno::AFNOSUPPORT];
    Errno::from_io_error(error).is_some_and(|errno| absent.contains(&errno))
}

/// Why an address is not bound.
fn because(address: SocketAddr, error: &io::Error) -> String {
    #[expect(clippy::wildcard_enum_match_arm, reason = "every other kind is said as the system says it")]
    match error.kind() {
        io::ErrorKind::AddrInUse => format!(
            "{address} is in use by another process: stop that one, or give this listener another port"
        ),
        io::ErrorKind::PermissionDenied => {
            format!("{address} may not be bound: choose a port of 1024 or above")
        }
        io::ErrorKind::AddrNotAvailable => format!("{address} is no address of this machine"),
        _ => format!("{address} cannot be bound: {error}"),
    }
}
