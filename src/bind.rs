//! Binds sockets to addresses, and says in words why one cannot be bound.

use std::io;
use std::net::SocketAddr;

use tokio::net::{TcpListener, UdpSocket};

/// Binds and listens. An address in use is said with the remedy.
pub(crate) async fn tcp(address: SocketAddr) -> Result<TcpListener, String> {
    TcpListener::bind(address).await.map_err(|error| because(address, &error))
}

/// Binds a socket that nobody else can share: no address or port is reused.
pub(crate) async fn udp(address: SocketAddr) -> Result<UdpSocket, String> {
    UdpSocket::bind(address).await.map_err(|error| because(address, &error))
}

/// Why an address is not bound.
pub(crate) fn because(address: SocketAddr, error: &io::Error) -> String {
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
