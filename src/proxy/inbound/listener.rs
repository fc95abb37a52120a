//! The listening sockets, and the handling of each connection.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use socket2::{SockRef, TcpKeepalive};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;

use super::connect;
use super::session::{Naming, Session, serve};
use super::transparent;
use crate::bind::BACKLOG;
use crate::config::listeners::OriginUrl;
use crate::event::{Action, Destination};
use crate::ledger::fresh_id;
use crate::proxy::Gateway;
use crate::proxy::upstream::Origin;
use crate::telemetry::label::{Closed, Limit, Mode};

/// The proxy's password, wiped from memory with the gateway.
pub(crate) type Password = zeroize::Zeroizing<Vec<u8>>;

/// The kinds of listener.
#[derive(Clone)]
pub(crate) enum Way {
    /// Gets connections that the kernel has redirected.
    Transparent,
    /// A proxy for CONNECT and absolute-form, perhaps with a password.
    Explicit { password: Option<Arc<Password>> },
    /// A stand-in for one upstream.
    Reverse(OriginUrl),
}

/// How long nothing is accepted where that failed: out of descriptors, mostly, and those in use have to end first.
const REST: Duration = Duration::from_millis(50);

/// How often that is tried again when the process stops.
const MOST_RESTS: usize = 10;

/// Accepts until the process stops, and then what had connected before. `places` bounds the connections of all listeners
/// together.
pub(crate) async fn accept(gateway: Arc<Gateway>, listener: TcpListener, way: Way, places: Arc<Semaphore>) {
    let entrance = Entrance { gateway, way, places };
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = entrance.gateway.drain.stopping() => break,
        };
        match accepted {
            Ok((stream, peer)) => entrance.admit(stream, peer),
            Err(error) => {
                tracing::error!(%error, "a connection could not be accepted");
                tokio::time::sleep(REST).await;
            }
        }
    }
    if let Err(error) = entrance.admit_waiting(listener).await {
        tracing::warn!(%error, "connections that waited for a listener when it closed were reset");
    }
}

/// One listener's way in.
struct Entrance {
    gateway: Arc<Gateway>,
    way: Way,
    places: Arc<Semaphore>,
}

impl Entrance {
    /// Serves a connection in a task of its own, where there is a place for it.
    fn admit(&self, stream: TcpStream, peer: SocketAddr) {
        let Self { gateway, way, places } = self;
        if matches!(way, Way::Transparent) && transparent::is_canary(gateway, &stream, peer) {
            return;
        }
        let Ok(place) = Arc::clone(places).try_acquire_owned() else {
            gateway.metrics.limit_reached(Limit::Connections);
            gateway.metrics.connection_closed(Closed::Limit);
            return;
        };
        tune(&stream);
        let serving = connection(Arc::clone(gateway), way.clone(), stream);
        let drain = gateway.drain.clone();
        gateway.drain.spawn(async move {
            tokio::select! {
                () = serving => {}
                () = drain.aborting() => {}
            }
            drop(place);
        });
    }

    /// Admits what the kernel has connected already, and closes the listener: its close resets what is left.
    async fn admit_waiting(&self, listener: TcpListener) -> io::Result<()> {
        let listener = listener.into_std()?;
        let mut rests = 0;
        // Bounded, since agents go on to connect; Linux holds one more than it is asked for.
        for _ in 0..=BACKLOG {
            let taken = listener.accept().and_then(|(stream, peer)| {
                stream.set_nonblocking(true)?;
                Ok((TcpStream::from_std(stream)?, peer))
            });
            match taken {
                Ok((stream, peer)) => self.admit(stream, peer),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(_) if rests < MOST_RESTS => {
                    rests += 1;
                    tokio::time::sleep(REST).await;
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

async fn connection(gateway: Arc<Gateway>, way: Way, stream: TcpStream) {
    let _open = gateway.metrics.connection_opened();
    let _room = gateway.budget.connection(&gateway.snapshot().settings.limits);
    let metrics = Arc::clone(&gateway.metrics);
    let closed = match way {
        Way::Transparent => transparent::serve(gateway, stream).await,
        Way::Explicit { password } => connect::serve_explicit(gateway, password.as_deref(), stream).await,
        Way::Reverse(origin) => serve_reverse(gateway, &origin, stream).await,
    };
    metrics.connection_closed(closed);
}

/// Plain HTTP in, one upstream out; body-free events and policy as everywhere.
async fn serve_reverse(gateway: Arc<Gateway>, origin: &OriginUrl, stream: TcpStream) -> Closed {
    let origin = Origin { tls: origin.secure, host: origin.host.clone(), port: origin.port };
    let connection = fresh_id();
    gateway.metrics.connection(Mode::Reverse, Action::Inspect);
    let destination = Arc::new(Destination {
        host: origin.host.to_string(),
        port: origin.port,
        action: Action::Inspect,
        intercepted: true,
        reason: None,
    });
    let session = Session::new(gateway, connection, Naming::Reverse(origin), destination);
    serve(session, stream).await
}

/// Turns off the delay of small writes, and turns on keep-alive probes.
pub(crate) fn tune(stream: &TcpStream) {
    // Both are improvements: a socket that refuses them works without.
    let _ = stream.set_nodelay(true);
    let keepalive =
        TcpKeepalive::new().with_time(Duration::from_secs(60)).with_interval(Duration::from_secs(15));
    let _ = SockRef::from(stream).set_tcp_keepalive(&keepalive);
}

/// Closes a connection with a reset, so that its client knows at once.
pub(crate) fn reset(stream: TcpStream) {
    // Where it cannot be set, the close that follows is an ordinary one.
    let _ = SockRef::from(&stream).set_linger(Some(Duration::ZERO));
    drop(stream);
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;
    use crate::name::host::Host;
    use crate::proxy::testing;

    /// Tasks run in turn here: no connection is accepted before the end has begun.
    #[tokio::test]
    async fn what_was_sent_before_the_end_began_is_answered() {
        let gateway = testing::gateway("destinations: []");
        let host = Host::parse("api.example.com").unwrap();
        let upstream = OriginUrl { secure: true, host, port: 443 };
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let mut agents = Vec::new();
        for _ in 0..40 {
            let mut agent = TcpStream::connect(address).await.unwrap();
            agent.write_all(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n").await.unwrap();
            agents.push(agent);
        }

        let places = Arc::new(Semaphore::new(100));
        gateway.drain.spawn(accept(Arc::clone(&gateway), listener, Way::Reverse(upstream), places));
        assert!(gateway.drain.shut_down(Duration::from_secs(20)).await);

        for mut agent in agents {
            let mut answer = String::new();
            agent.read_to_string(&mut answer).await.unwrap();
            assert!(answer.starts_with("HTTP/1.1 403") && answer.contains("connection: close"), "{answer}");
        }
    }
}
