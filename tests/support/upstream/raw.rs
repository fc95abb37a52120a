//! An upstream that a test scripts byte by byte: framing errors, early bytes, other protocols.

use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rustls::ServerConfig;

use super::super::connection::Connection;
use super::super::journal::Journal;
use super::super::pki::Identity;

/// What serves one connection; it ends when this returns.
type Serve = dyn Fn(&mut Connection, &Journal<Vec<u8>>) + Send + Sync;

/// A running server, a thread for each connection.
pub(crate) struct RawUpstream {
    address: SocketAddr,
    heard: Arc<Journal<Vec<u8>>>,
    accepted: Arc<Journal<SocketAddr>>,
    stopping: Arc<AtomicBool>,
}

impl RawUpstream {
    /// Serves every connection by `serve`, over TLS (HTTP/1.1) where an identity is given.
    /// What `serve` pushes to the journal is what [`Self::heard`] answers.
    pub(crate) fn start(
        identity: Option<&Identity>,
        serve: impl Fn(&mut Connection, &Journal<Vec<u8>>) + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let server = Self {
            address: listener.local_addr().unwrap(),
            heard: Arc::new(Journal::new()),
            accepted: Arc::new(Journal::new()),
            stopping: Arc::new(AtomicBool::new(false)),
        };
        let (heard, accepted) = (Arc::clone(&server.heard), Arc::clone(&server.accepted));
        let stopping = Arc::clone(&server.stopping);
        let (tls, serve): (_, Arc<Serve>) = (identity.map(server_config), Arc::new(serve));
        std::thread::spawn(move || {
            while let Ok((socket, peer)) = listener.accept() {
                if stopping.load(Ordering::Relaxed) {
                    return;
                }
                accepted.push(peer);
                let (heard, tls, serve) = (Arc::clone(&heard), tls.clone(), Arc::clone(&serve));
                std::thread::spawn(move || converse(socket, tls, &heard, serve.as_ref()));
            }
        });
        server
    }

    /// Answers each request head on a connection with the next of these byte strings, then closes it.
    pub(crate) fn answering(identity: Option<&Identity>, answers: Vec<Vec<u8>>) -> Self {
        Self::start(identity, move |connection, heard| {
            for answer in &answers {
                heard.push(connection.read_until(b"\r\n\r\n"));
                connection.send(answer);
            }
        })
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// What the script noted: for [`Self::answering`] the request heads as received.
    pub(crate) fn heard(&self) -> &Journal<Vec<u8>> {
        &self.heard
    }

    /// The connections accepted so far.
    pub(crate) fn accepted(&self) -> usize {
        self.accepted.entries().len()
    }
}

impl Drop for RawUpstream {
    fn drop(&mut self) {
        self.stopping.store(true, Ordering::Relaxed);
        // The accepting thread waits for a connection; this is its last.
        let _ = TcpStream::connect(self.address);
    }
}

fn converse(socket: TcpStream, tls: Option<Arc<ServerConfig>>, heard: &Journal<Vec<u8>>, serve: &Serve) {
    let connection = Connection::over(socket);
    let connection = match tls {
        Some(config) => connection.accept_tls(config),
        None => Ok(connection),
    };
    if let Ok(mut connection) = connection {
        serve(&mut connection, heard);
    }
}

fn server_config(identity: &Identity) -> Arc<ServerConfig> {
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(identity.chain(), identity.key())
        .unwrap();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Arc::new(config)
}
