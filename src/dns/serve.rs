//! The resolver on its sockets: one task for each, with bounds on what a client may send and hold.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream, UdpSocket};
use tokio::sync::Semaphore;

use super::resolver::Resolver;
use super::sockets::Sockets;
use crate::drain::Drain;

/// The most bytes of a question: many times what one can need.
const LARGEST: usize = 4 << 10;
/// Connections over TCP at a time. No answer is too long for UDP, so few clients come this way.
const CONNECTIONS: usize = 64;
/// How long a connection may take to ask its next question and to take the answer.
const IDLE: Duration = Duration::from_secs(10);
/// After a failure of the system's: what it lacks has to be given back first.
const PAUSE: Duration = Duration::from_millis(50);
/// How often routes are looked at.
const LOOK: Duration = Duration::from_secs(5);

/// Answers on these sockets until the process stops.
pub fn serve(resolver: &Arc<Resolver>, sockets: Sockets, drain: &Drain) {
    for socket in sockets.udp {
        drain.spawn(datagrams(Arc::clone(resolver), socket, drain.clone()));
    }
    let places = Arc::new(Semaphore::new(CONNECTIONS));
    for listener in sockets.tcp {
        drain.spawn(connections(Arc::clone(resolver), listener, Arc::clone(&places), drain.clone()));
    }
    drain.spawn(look(Arc::clone(resolver), drain.clone()));
}

async fn datagrams(resolver: Arc<Resolver>, socket: UdpSocket, drain: Drain) {
    // One byte more than is taken, so that what is larger shows.
    let mut buffer = vec![0; LARGEST + 1];
    loop {
        let received = tokio::select! {
            received = socket.recv_from(&mut buffer) => received,
            () = drain.stopping() => return,
        };
        match received {
            Ok((length, from)) => {
                let question = buffer.get(..length).unwrap_or_default();
                reply(&resolver, &socket, question, from).await;
            }
            Err(error) => {
                tracing::error!(%error, "a DNS question could not be received");
                tokio::time::sleep(PAUSE).await;
            }
        }
    }
}

async fn reply(resolver: &Resolver, socket: &UdpSocket, question: &[u8], from: SocketAddr) {
    if question.len() > LARGEST {
        return resolver.dropped();
    }
    if let Some(answer) = resolver.answer(question) {
        // Who has gone needs no answer.
        let _ = socket.send_to(&answer, from).await;
    }
}

async fn connections(resolver: Arc<Resolver>, listener: TcpListener, places: Arc<Semaphore>, drain: Drain) {
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = drain.stopping() => return,
        };
        let stream = match accepted {
            Ok((stream, _)) => stream,
            Err(error) => {
                tracing::error!(%error, "a DNS connection could not be accepted");
                tokio::time::sleep(PAUSE).await;
                continue;
            }
        };
        let Ok(place) = Arc::clone(&places).try_acquire_owned() else {
            resolver.dropped();
            continue;
        };
        let (resolver, stopping) = (Arc::clone(&resolver), drain.clone());
        drain.spawn(async move {
            tokio::select! {
                () = connection(&resolver, stream) => {}
                () = stopping.stopping() => {}
            }
            drop(place);
        });
    }
}

/// Questions one after the other, each with its length in front (RFC 1035 section 4.2.2).
async fn connection(resolver: &Resolver, mut stream: TcpStream) {
    let mut buffer = vec![0; LARGEST];
    while let Ok(Some(())) = tokio::time::timeout(IDLE, exchange(resolver, &mut stream, &mut buffer)).await {}
}

/// One question and its answer; `None` where the connection ends.
async fn exchange(resolver: &Resolver, stream: &mut TcpStream, buffer: &mut [u8]) -> Option<()> {
    let length = stream.read_u16().await.ok()?;
    let Some(question) = buffer.get_mut(..usize::from(length)) else {
        resolver.dropped();
        return None;
    };
    stream.read_exact(question).await.ok()?;
    let answer = resolver.answer(question)?;
    let length = u16::try_from(answer.len()).ok()?;
    let mut framed = Vec::with_capacity(2 + answer.len());
    framed.extend_from_slice(&length.to_be_bytes());
    framed.extend_from_slice(&answer);
    stream.write_all(&framed).await.ok()
}

async fn look(resolver: Arc<Resolver>, drain: Drain) {
    loop {
        tokio::select! {
            () = tokio::time::sleep(LOOK) => resolver.look(),
            () = drain.stopping() => return,
        }
    }
}
