//! Shows from inside that the redirect is in force: the gateway's own connection must come back to it.
//!
//! The redirect exempts the gateway's user everywhere but at the canary addresses, so that a canary takes the very
//! rule that an agent's connection takes (design section 10.5). It shows that the hook, the chain and those rules
//! are in force; not that no rule of somebody else's exempts another user, nor that nobody else is the gateway's user.

use std::collections::HashMap;
use std::fmt;
use std::io;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::net::{TcpSocket, UdpSocket};
use tokio::sync::oneshot;
use tokio::time::timeout;

use crate::canary::{CANARY_V4, CANARY_V6};
use crate::route;

/// Beside the canary: where the gateway may send, it may send there.
const BESIDE_V6: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 2);
/// Nobody serves it (IANA, "tcpmux"), and no rule is likely to treat it apart.
const TCP_PORT: u16 = 1;
/// Not 53, which goes to the resolver.
const UDP_PORT: u16 = 9;
/// How long a redirected connection may take on a busy machine; it never leaves the machine.
const PATIENCE: Duration = Duration::from_secs(4);

/// The gateway's own connections that must come back, by canary address and source port: no one else can have that port
/// while they are open. The lock is taken once per accepted connection.
#[derive(Debug, Default)]
pub(crate) struct Canaries(Mutex<Awaited>);

type Awaited = HashMap<(IpAddr, u16), oneshot::Sender<()>>;

/// The results for both families.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Proof {
    v4: Family,
    v6: Family,
}

/// The results of the canaries of one family.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Family {
    tcp: Seen,
    udp: Seen,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Seen {
    /// It came back to the listener, with the canary as the address that was dialled.
    CameBack,
    /// The kernel refused to send it.
    Rejected,
    /// There is no way to such addresses.
    NoRoute,
    /// Neither: it may be outside.
    Loose(String),
}

impl Canaries {
    pub(crate) fn are_awaited(&self) -> bool {
        !self.waiting().is_empty()
    }

    /// Whether a connection is an awaited canary; its waiter is told.
    pub(crate) fn arrived(&self, peer: SocketAddr, dialled: SocketAddr) -> bool {
        let canary = (dialled.ip(), peer.port());
        dialled.port() == TCP_PORT
            && self.waiting().remove(&canary).is_some_and(|waiting| waiting.send(()).is_ok())
    }

    /// Sends canaries over TCP and UDP, in both families.
    pub(crate) async fn prove(&self) -> Proof {
        let (v4, v6) = tokio::join!(self.family(CANARY_V4.into()), self.family(CANARY_V6.into()));
        Proof { v4, v6 }
    }

    async fn family(&self, canary: IpAddr) -> Family {
        match route::is_there(canary) {
            Ok(true) => {}
            Ok(false) => return Family { tcp: Seen::NoRoute, udp: Seen::NoRoute },
            Err(error) => {
                let untried = Seen::Loose(format!("could not be tried ({error})"));
                return Family { tcp: untried.clone(), udp: untried };
            }
        }
        let (tcp, datagram) = tokio::join!(self.tcp(canary), udp(canary));
        Family { tcp, udp: datagram }
    }

    /// Sends a connection. An error proves nothing: anybody outside can refuse it, or report that there is no route.
    async fn tcp(&self, canary: IpAddr) -> Seen {
        let Ok((socket, port)) = bound(canary) else { return Seen::Loose("could not be sent".to_owned()) };
        let (come, back) = oneshot::channel();
        self.waiting().insert((canary, port), come);
        let trial = timeout(PATIENCE, async {
            let _open = socket.connect(SocketAddr::new(canary, TCP_PORT)).await?;
            back.await.map_err(|_| io::Error::from(io::ErrorKind::Other))
        });
        let outcome = trial.await;
        self.waiting().remove(&(canary, port));
        match outcome {
            Ok(Ok(())) => Seen::CameBack,
            // Where the kernel has no nat for IPv6, all of it is rejected with this error, the gateway's own too; that
            // a datagram to anywhere is rejected as well cannot come from outside.
            Ok(Err(error)) if is_prohibited(&error) && udp(BESIDE_V6.into()).await == Seen::Rejected => {
                Seen::Rejected
            }
            Ok(Err(error)) => Seen::Loose(format!("did not come back ({})", error.kind())),
            Err(_) => Seen::Loose(format!("did not come back within {} s", PATIENCE.as_secs())),
        }
    }

    fn waiting(&self) -> std::sync::MutexGuard<'_, Awaited> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether a connection was "administratively prohibited" (ICMPv6), as it is where IPv6 is rejected whole.
fn is_prohibited(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::PermissionDenied
}

/// A socket whose source port is known before it connects.
fn bound(canary: IpAddr) -> io::Result<(TcpSocket, u16)> {
    let socket = if canary.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
    socket.bind(route::unspecified(canary))?;
    let port = socket.local_addr()?.port();
    Ok((socket, port))
}

/// A reject in the kernel's output chain is EPERM for the datagram it is about, at once.
async fn udp(to: IpAddr) -> Seen {
    let sent = async { UdpSocket::bind(route::unspecified(to)).await?.send_to(&[], (to, UDP_PORT)).await };
    match sent.await {
        Ok(_) => Seen::Loose("was sent".to_owned()),
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Seen::Rejected,
        Err(error) => Seen::Loose(format!("was not rejected ({})", error.kind())),
    }
}

impl Proof {
    /// Whether no canary could have left.
    pub(crate) fn holds(&self) -> bool {
        self.loose().next().is_none()
    }

    fn loose(&self) -> impl Iterator<Item = (&'static str, &'static str, &str)> {
        [("IPv4", &self.v4), ("IPv6", &self.v6)].into_iter().flat_map(|(name, family)| {
            let tcp = family.tcp.loose().map(|why| (name, "TCP", why));
            tcp.into_iter().chain(family.udp.loose().map(|why| (name, "UDP", why)))
        })
    }
}

impl Seen {
    fn loose(&self) -> Option<&str> {
        match self {
            Self::Loose(why) => Some(why),
            Self::CameBack | Self::Rejected | Self::NoRoute => None,
        }
    }
}

impl fmt::Display for Proof {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.holds() {
            let word = |family: &Family| match family.tcp {
                Seen::CameBack => "redirected",
                Seen::Rejected => "rejected",
                Seen::NoRoute | Seen::Loose(_) => "without a route",
            };
            return write!(f, "IPv4 is {}, IPv6 is {}", word(&self.v4), word(&self.v6));
        }
        for (i, (family, protocol, why)) in self.loose().enumerate() {
            let comma = if i == 0 { "" } else { ", " };
            write!(f, "{comma}the {protocol} canary over {family} {why}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn proof(tcp: Seen, udp: Seen) -> Proof {
        Proof { v4: Family { tcp, udp }, v6: Family { tcp: Seen::NoRoute, udp: Seen::NoRoute } }
    }

    #[test]
    fn only_what_came_back_or_was_refused_is_proof() {
        let proven = proof(Seen::CameBack, Seen::Rejected);
        assert!(proven.holds());
        assert_eq!(proven.to_string(), "IPv4 is redirected, IPv6 is without a route");
        let sent = proof(Seen::CameBack, Seen::Loose("was sent".to_owned()));
        assert!(!sent.holds());
        assert_eq!(sent.to_string(), "the UDP canary over IPv4 was sent");
    }

    #[test]
    fn a_connection_is_a_canary_only_if_it_was_waited_for() {
        let canaries = Canaries::default();
        let (come, _back) = oneshot::channel();
        canaries.waiting().insert((CANARY_V4.into(), 4_000), come);
        let peer = |port| SocketAddr::from(([10, 0, 0, 7], port));
        let canary = SocketAddr::new(CANARY_V4.into(), TCP_PORT);
        assert!(!canaries.arrived(peer(4_001), canary));
        assert!(!canaries.arrived(peer(4_000), SocketAddr::from(([192, 0, 2, 2], TCP_PORT))));
        let other_family = SocketAddr::new(CANARY_V6.into(), TCP_PORT);
        assert!(!canaries.arrived(peer(4_000), other_family), "one family proves nothing of the other");
        assert!(canaries.arrived(peer(4_000), canary));
        assert!(!canaries.arrived(peer(4_000), canary));
    }
}
