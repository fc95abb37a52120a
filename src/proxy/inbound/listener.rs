//! The listening sockets, and the handling of each connection.

use std::sync::Arc;
use std::time::Duration;

use socket2::{SockRef, TcpKeepalive};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;

use super::connect;
use super::session::{Naming, Session, serve};
use super::transparent;
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

/// Accepts until the process stops. `places` bounds the connections of all listeners together.
pub(crate) async fn accept(gateway: Arc<Gateway>, listener: TcpListener, way: Way, places: Arc<Semaphore>) {
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = gateway.drain.stopping() => return,
        };
        let (stream, peer) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                // Out of descriptors, mostly: those in use have to end first.
                tracing::error!(%error, "a connection could not be accepted");
                tokio::time::sleep(Duration::from_millis(50)).await;
                continue;
            }
        };
        if matches!(way, Way::Transparent) && transparent::is_canary(&gateway, &stream, peer) {
            continue;
        }
        let Ok(place) = Arc::clone(&places).try_acquire_owned() else {
            gateway.metrics.limit_reached(Limit::Connections);
            gateway.metrics.connection_closed(Closed::Limit);
            continue;
        };
        tune(&stream);
        let serving = connection(Arc::clone(&gateway), way.clone(), stream);
        let drain = gateway.drain.clone();
        gateway.drain.spawn(async move {
            tokio::select! {
                () = serving => {}
                () = drain.aborting() => {}
            }
            drop(place);
        });
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
