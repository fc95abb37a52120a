//! Serves the questions of the gateway on a Unix socket, a few at a time.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::UnixStream;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::answer::answer;
use super::outline;
use super::protocol::{self, MOST_ANSWER, MOST_QUESTION, PREFIX, WorkspaceAnswer};
use super::root::Root;
use crate::admin::{BoundSocket, OWNER_ALONE, SocketError};
use crate::drain::Drain;

/// How many questions are answered at once: each may hold a file, its question and what it makes of them.
const AT_ONCE: usize = 4;

/// How long a question may take to come, and its answer to be taken.
const TRANSFER: Duration = Duration::from_secs(1);

/// How long to wait before accepting again where there are no descriptors.
const PAUSE: Duration = Duration::from_millis(100);

/// Who may connect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Askers {
    /// The user of this process.
    Owner,
    /// Whoever may reach the socket's directory: in a pod, the gateway has a user of its own.
    Anybody,
}

/// Why the workspace cannot be served.
#[derive(Debug, thiserror::Error)]
pub enum WorkspaceError {
    #[error(
        "cannot open the workspace: {0}; it has to be a directory that this user may read, on a Linux of 5.6 or newer"
    )]
    Root(std::io::Error),
    #[error(transparent)]
    Socket(#[from] SocketError),
}

/// Serves the workspace below `root` at `socket` until the drain begins. Call it inside the runtime.
///
/// # Errors
/// The root cannot be opened, or the socket cannot be had.
pub fn serve(root: &Path, socket: &Path, askers: Askers, drain: &Drain) -> Result<(), WorkspaceError> {
    let root = Arc::new(Root::open(root).map_err(WorkspaceError::Root)?);
    let mode = match askers {
        Askers::Owner => OWNER_ALONE,
        Askers::Anybody => 0o666,
    };
    outline::prepare();
    let bound = BoundSocket::at(socket, mode)?;
    let own = drain.clone();
    drain.spawn(async move {
        let room = Arc::new(Semaphore::new(AT_ONCE));
        loop {
            tokio::select! {
                () = own.stopping() => break,
                next = accepted(&bound, &room) => match next {
                    Some((stream, place)) => {
                        let root = Arc::clone(&root);
                        own.spawn(async move {
                            converse(stream, root).await;
                            drop(place);
                        });
                    }
                    None => tokio::time::sleep(PAUSE).await,
                },
            }
        }
    });
    Ok(())
}

/// Waits for a place, then for a connection.
async fn accepted(bound: &BoundSocket, room: &Arc<Semaphore>) -> Option<(UnixStream, OwnedSemaphorePermit)> {
    let place = Arc::clone(room).acquire_owned().await.ok()?;
    let (stream, _) = bound.socket.accept().await.ok()?;
    Some((stream, place))
}

/// One question and one answer. Whoever asks wrongly, or is gone, is told nothing.
async fn converse(mut stream: UnixStream, root: Arc<Root>) {
    let Ok(Some(json)) = tokio::time::timeout(TRANSFER, question(&mut stream)).await else { return };
    let answered = tokio::task::spawn_blocking(move || {
        let asked = Instant::now();
        match protocol::parsed(&json) {
            Ok(question) => answer(&root, &question, asked),
            Err(error) => WorkspaceAnswer::Refused(error.to_string()),
        }
    });
    let Ok(answered) = answered.await else { return };
    let Ok(framed) = protocol::framed(&answered, MOST_ANSWER) else { return };
    // Who does not wait for it has given up.
    let _ = tokio::time::timeout(TRANSFER, stream.write_all(&framed)).await;
}

async fn question(stream: &mut UnixStream) -> Option<Vec<u8>> {
    let mut prefix = [0; PREFIX];
    stream.read_exact(&mut prefix).await.ok()?;
    let length = protocol::length(prefix, MOST_QUESTION).ok()?;
    // It grows with what comes, not with what was announced.
    let mut json = Vec::new();
    stream.take(length as u64).read_to_end(&mut json).await.ok()?;
    (json.len() == length).then_some(json)
}
