//! The resolver's sockets: UDP and TCP on one port of both loopbacks.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};

use tokio::net::{TcpListener, UdpSocket};

use crate::bind::{has_ipv6_loopback, tcp, udp};

/// How often another port is tried where any will do: one that is free for UDP may be in use for TCP.
const ATTEMPTS: usize = 16;

/// Sockets that are bound, and not served yet.
#[derive(Debug)]
pub struct Sockets {
    pub(super) udp: Vec<UdpSocket>,
    pub(super) tcp: Vec<TcpListener>,
    addresses: Vec<SocketAddr>,
}

impl Sockets {
    /// Where they are, each address once for UDP and TCP.
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }
}

/// Binds 127.0.0.1 and, where the machine has it, `[::1]`; port 0 stands for any one that is free for all of them.
///
/// # Errors
/// A sentence that says which address cannot be bound, and what helps.
pub async fn bind(port: u16) -> Result<Sockets, String> {
    if port != 0 {
        return bind_all(port).await;
    }
    let mut refused = String::new();
    for _ in 0..ATTEMPTS {
        let probe = udp((Ipv4Addr::LOCALHOST, 0).into()).await?;
        let port = probe.local_addr().map_err(|error| error.to_string())?.port();
        drop(probe);
        match bind_all(port).await {
            Ok(sockets) => return Ok(sockets),
            Err(message) => refused = message,
        }
    }
    Err(refused)
}

async fn bind_all(port: u16) -> Result<Sockets, String> {
    let mut sockets = Sockets { udp: Vec::new(), tcp: Vec::new(), addresses: Vec::new() };
    let v6 = has_ipv6_loopback().then_some(SocketAddr::from((Ipv6Addr::LOCALHOST, port)));
    for address in std::iter::once((Ipv4Addr::LOCALHOST, port).into()).chain(v6) {
        sockets.udp.push(udp(address).await?);
        sockets.tcp.push(tcp(address).await?);
        sockets.addresses.push(address);
    }
    Ok(sockets)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn one_port_is_bound_for_both_transports_and_families() {
        let sockets = bind(0).await.unwrap();
        let ports: Vec<u16> = sockets
            .udp
            .iter()
            .map(|socket| socket.local_addr().unwrap().port())
            .chain(sockets.tcp.iter().map(|listener| listener.local_addr().unwrap().port()))
            .collect();
        assert!(ports.iter().all(|port| *port == sockets.addresses()[0].port() && *port != 0), "{ports:?}");
        assert!(sockets.addresses().iter().all(|address| address.ip().is_loopback()));
    }

    #[tokio::test]
    async fn a_port_that_is_held_is_said_with_the_remedy() {
        let held = udp((Ipv4Addr::LOCALHOST, 0).into()).await.unwrap();
        let address = held.local_addr().unwrap();
        let message = bind(address.port()).await.unwrap_err();
        assert!(
            message.starts_with(&format!("{address} is in use by another process: stop that one")),
            "{message}"
        );
    }
}
