//! The transparent way in: connections that the kernel redirected here, and where they were dialled to.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use bytes::Bytes;
use socket2::SockRef;
use tokio::net::TcpStream;

use super::flow::Flow;
use crate::decision::Decision;
use crate::name::host::Host;
use crate::proxy::Gateway;
use crate::telemetry::label::{Closed, Mode};

/// Serves a redirected connection to its end.
pub(crate) async fn serve(gateway: Arc<Gateway>, stream: TcpStream) -> Closed {
    let Ok(to) = original_destination(&stream) else { return to_the_listener_itself(&gateway, stream) };
    let flow = Flow::new(&gateway, Mode::Transparent, &Host::Ip(to.ip()), to.port());
    // The rest of the way is long; boxed, it is not moved again.
    Box::pin(flow.run(stream, Bytes::new())).await
}

/// Whether a connection is the gateway's proof of its own redirect, which is told of it.
pub(crate) fn is_canary(gateway: &Gateway, stream: &TcpStream, peer: SocketAddr) -> bool {
    gateway.canaries.are_awaited()
        && original_destination(stream).is_ok_and(|to| gateway.canaries.arrived(peer, to))
}

/// The destination before the kernel rewrote it (`SO_ORIGINAL_DST`, and its form for IPv6). An error where the
/// connection was dialled to the listener itself: it would lead to itself for ever.
fn original_destination(stream: &TcpStream) -> io::Result<SocketAddr> {
    let (socket, here) = (SockRef::from(stream), stream.local_addr()?);
    let original = match here {
        SocketAddr::V4(_) => socket.original_dst_v4()?,
        SocketAddr::V6(_) => socket.original_dst_v6()?,
    };
    let original = original.as_socket().ok_or(io::ErrorKind::InvalidData)?;
    let original = SocketAddr::new(original.ip().to_canonical(), original.port());
    if original == SocketAddr::new(here.ip().to_canonical(), here.port()) {
        return Err(io::ErrorKind::NotFound.into());
    }
    Ok(original)
}

fn to_the_listener_itself(gateway: &Arc<Gateway>, stream: TcpStream) -> Closed {
    let Ok(here) = stream.local_addr() else { return Closed::AgentGone };
    let flow = Flow::new(gateway, Mode::Transparent, &Host::Ip(here.ip()), here.port());
    let decision = Decision::builtin(
        "denied-address",
        "the connection was made to the gateway's own port, which stands for no destination",
    );
    flow.reset(&decision, stream)
}
