//! The Unix socket on which `postern status` reads everything: only the gateway's own user may open it.

use std::fs;
use std::io;
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use socket2::{Domain, SockAddr, Socket, Type};
use tokio::net::UnixListener;

use super::answer::typed;
use super::serve::{AdminServer, BOUNDS};
use super::{Inspect, status_now};
use crate::drain::Drain;

/// How many connections may wait to be accepted.
const BACKLOG: i32 = 16;

/// The mode of a socket that its owner alone may connect to.
pub(crate) const OWNER_ALONE: u32 = 0o600;

/// Why the socket cannot be had.
#[derive(Debug, thiserror::Error)]
pub enum SocketError {
    #[error("another process answers at {0}: stop it, or give this one another socket")]
    InUse(PathBuf),
    #[error("{0} exists and is no socket: move it away, or choose another path")]
    NoSocket(PathBuf),
    #[error("cannot {doing} the socket {path}: {source}")]
    Io { doing: &'static str, path: PathBuf, source: io::Error },
}

/// Serves `GET /status` as JSON on a Unix socket of mode 0600 until the drain begins, then removes it.
///
/// A socket that a dead gateway left behind is replaced. Call it inside the runtime.
pub fn serve_socket(path: &Path, inspect: Arc<dyn Inspect>, drain: &Drain) -> Result<(), SocketError> {
    let listener = BoundSocket::at(path, OWNER_ALONE)?;
    let stopping = drain.clone();
    let answer = move |asked: &str| {
        let status = (asked == "/status").then(|| status_now(&*inspect, &stopping))?;
        serde_json::to_vec(&status).ok().map(|json| typed("application/json", json))
    };
    let server = Arc::new(AdminServer::new(answer, BOUNDS, drain.clone()));
    drain.spawn(async move { server.run(&listener.socket).await });
    Ok(())
}

/// A listening socket whose file goes before it does, so that a successor's file is never removed.
pub(crate) struct BoundSocket {
    path: PathBuf,
    pub(crate) socket: UnixListener,
}

impl BoundSocket {
    /// Listens at a path with this mode. A socket that a dead process left behind is replaced. Call it inside the runtime.
    pub(crate) fn at(path: &Path, mode: u32) -> Result<Self, SocketError> {
        remove_stale(path)?;
        let failed = |doing| move |source| SocketError::Io { doing, path: path.to_owned(), source };
        let socket = listening(path, mode).map_err(failed("bind"))?;
        let socket = UnixListener::from_std(socket).map_err(failed("listen on"))?;
        Ok(Self { path: path.to_owned(), socket })
    }
}

impl Drop for BoundSocket {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_file(&self.path) {
            tracing::debug!(%error, path = %self.path.display(), "the socket was gone before");
        }
    }
}

/// Nobody can connect before `listen`, so the mode is right before anybody can.
fn listening(path: &Path, mode: u32) -> io::Result<std::os::unix::net::UnixListener> {
    let socket = Socket::new(Domain::UNIX, Type::STREAM, None)?;
    socket.bind(&SockAddr::unix(path)?)?;
    fs::set_permissions(path, fs::Permissions::from_mode(mode))?;
    socket.listen(BACKLOG)?;
    socket.set_nonblocking(true)?;
    Ok(socket.into())
}

/// Removes a socket at which nobody answers. Anything else that stands there is left alone.
fn remove_stale(path: &Path) -> Result<(), SocketError> {
    let failed = |doing| move |source| SocketError::Io { doing, path: path.to_owned(), source };
    match fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(failed("look at")(error)),
        Ok(found) if !found.file_type().is_socket() => return Err(SocketError::NoSocket(path.to_owned())),
        Ok(_) => {}
    }
    match UnixStream::connect(path) {
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
            fs::remove_file(path).map_err(failed("remove"))
        }
        Err(error) => Err(failed("try")(error)),
        Ok(_) => Err(SocketError::InUse(path.to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::GatewayStatus;
    use super::super::status::tests::healthy;
    use super::*;

    struct Gateway;

    impl Inspect for Gateway {
        fn status(&self) -> GatewayStatus {
            healthy()
        }

        fn metrics(&self) -> String {
            String::new()
        }
    }

    fn serve_at(path: &Path, drain: &Drain) -> Result<(), SocketError> {
        serve_socket(path, Arc::new(Gateway), drain)
    }

    #[tokio::test]
    async fn only_its_owner_may_open_it_and_it_is_removed_at_the_end() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("postern.sock");
        let drain = Drain::default();
        serve_at(&path, &drain).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert!(drain.shut_down(Duration::from_secs(20)).await);
        assert!(!path.exists());
    }

    #[tokio::test]
    async fn a_socket_left_behind_is_replaced_and_a_live_one_is_not() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("postern.sock");
        drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
        assert!(path.exists());
        let drain = Drain::default();
        serve_at(&path, &drain).unwrap();
        assert!(matches!(serve_at(&path, &drain), Err(SocketError::InUse(_))));
    }

    #[tokio::test]
    async fn a_file_that_is_no_socket_is_left_alone() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("notes.txt");
        fs::write(&path, "mine").unwrap();
        assert!(matches!(serve_at(&path, &Drain::default()), Err(SocketError::NoSocket(_))));
        assert_eq!(fs::read_to_string(&path).unwrap(), "mine");
    }

    #[tokio::test]
    async fn a_directory_that_is_missing_is_said_with_the_path() {
        let error = serve_at(Path::new("/nowhere/postern.sock"), &Drain::default()).unwrap_err();
        assert!(error.to_string().contains("/nowhere/postern.sock"), "{error}");
    }
}
