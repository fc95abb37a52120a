//! A real HTTP server on the loopback that records what reached it and answers by script or by built-in routes.

mod raw;
mod record;
mod routes;
mod websocket;

use std::net::SocketAddr;
use std::sync::Arc;

use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::{Handle, Runtime};
use tokio_rustls::TlsAcceptor;

use super::journal::Journal;
use super::pki::{Identity, Pki};
pub(crate) use raw::RawUpstream;
pub(crate) use record::{Link, Seen, pairs};
pub(crate) use routes::{Gate, Reply, Step, crc32, pattern};
pub(crate) use websocket::accept_key;

/// What decides an answer from the request; None leaves it to the built-in routes.
type Script = dyn Fn(&Seen) -> Option<Reply> + Send + Sync;

/// A running server. Dropping it ends it and all of its connections.
pub(crate) struct Upstream {
    address: SocketAddr,
    records: Arc<Records>,
    runtime: Option<Runtime>,
}

/// What an upstream is to be, before it starts.
pub(crate) struct Builder {
    identity: Option<Identity>,
    protocols: Vec<&'static str>,
    client_roots: Option<Arc<RootCertStore>>,
    script: Box<Script>,
}

/// What one server has seen and how it answers, shared by its connections.
struct Records {
    links: Journal<Link>,
    requests: Journal<Seen>,
    script: Box<Script>,
    handle: Handle,
}

impl Upstream {
    /// A TLS server for these names that speaks h2 and HTTP/1.1 and has the built-in routes.
    pub(crate) fn tls(pki: &Pki, names: &[&str]) -> Self {
        Self::build().identity(pki.leaf(names)).start()
    }

    /// A server without TLS that speaks HTTP/1.1 and has the built-in routes.
    pub(crate) fn plain() -> Self {
        Self::build().start()
    }

    /// A server to be described first.
    pub(crate) fn build() -> Builder {
        Builder {
            identity: None,
            protocols: vec!["h2", "http/1.1"],
            client_roots: None,
            script: Box::new(|_| None),
        }
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Every connection that was accepted, also those that never sent a request.
    pub(crate) fn links(&self) -> Vec<Link> {
        self.records.links.entries()
    }

    /// Every request whose head arrived, in that order.
    pub(crate) fn requests(&self) -> Vec<Seen> {
        self.records.requests.entries()
    }

    /// Waits for a request; its body is what has arrived so far.
    pub(crate) fn wait_for_request(&self, what: &str, wanted: impl Fn(&Seen) -> bool) -> Seen {
        self.records.requests.wait_for(what, wanted)
    }
}

impl Drop for Upstream {
    #[expect(clippy::print_stderr, reason = "what reached the upstream explains a failed test")]
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("--- what reached the upstream at {}", self.address);
            self.links().iter().for_each(|link| eprintln!("{link:?}"));
            self.requests().iter().for_each(|seen| eprintln!("{}", seen.short()));
        }
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

impl Builder {
    /// Ends TLS with this certificate; without one the server is plain.
    pub(crate) fn identity(mut self, identity: Identity) -> Self {
        self.identity = Some(identity);
        self
    }

    /// The application protocols offered by TLS, `h2` and `http/1.1` unless said; none at all is possible.
    pub(crate) fn protocols(mut self, protocols: &[&'static str]) -> Self {
        self.protocols = protocols.to_vec();
        self
    }

    /// Demands a client certificate of this authority.
    pub(crate) fn client_certificates(mut self, pki: &Pki) -> Self {
        self.client_roots = Some(pki.roots());
        self
    }

    /// Decides answers once the request's body has arrived whole.
    pub(crate) fn script(mut self, script: impl Fn(&Seen) -> Option<Reply> + Send + Sync + 'static) -> Self {
        self.script = Box::new(script);
        self
    }

    /// Starts on a free port of the loopback.
    pub(crate) fn start(self) -> Upstream {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
        let address = listener.local_addr().unwrap();
        let acceptor = self.identity.as_ref().map(|identity| self.acceptor(identity));
        let records = Arc::new(Records {
            links: Journal::new(),
            requests: Journal::new(),
            script: self.script,
            handle: runtime.handle().clone(),
        });
        runtime.spawn(accept(listener, acceptor, Arc::clone(&records)));
        Upstream { address, records, runtime: Some(runtime) }
    }

    fn acceptor(&self, identity: &Identity) -> TlsAcceptor {
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .unwrap();
        let builder = match &self.client_roots {
            Some(roots) => {
                let verifier = WebPkiClientVerifier::builder_with_provider(Arc::clone(roots), provider);
                builder.with_client_cert_verifier(verifier.build().unwrap())
            }
            None => builder.with_no_client_auth(),
        };
        let mut config = builder.with_single_cert(identity.chain(), identity.key()).unwrap();
        config.alpn_protocols = self.protocols.iter().map(|name| name.as_bytes().to_vec()).collect();
        TlsAcceptor::from(Arc::new(config))
    }
}

async fn accept(listener: TcpListener, acceptor: Option<TlsAcceptor>, records: Arc<Records>) {
    while let Ok((socket, _)) = listener.accept().await {
        let link = records.links.push(Link::new());
        records.handle.spawn(serve(socket, acceptor.clone(), link, Arc::clone(&records)));
    }
}

async fn serve(socket: TcpStream, acceptor: Option<TlsAcceptor>, link: usize, records: Arc<Records>) {
    let _ = socket.set_nodelay(true);
    let Some(acceptor) = acceptor else {
        return speak(socket, false, link, records).await;
    };
    match acceptor.accept(socket).await {
        Ok(stream) => {
            let (_, tls) = stream.get_ref();
            let h2 = tls.alpn_protocol() == Some(b"h2");
            records.links.edit(link, |entry| entry.note_handshake(tls));
            speak(stream, h2, link, records).await;
        }
        Err(error) => records.links.edit(link, |entry| entry.handshake_error = Some(error.to_string())),
    }
}

async fn speak<S>(stream: S, h2: bool, link: usize, records: Arc<Records>)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let answering = Arc::clone(&records);
    let service = service_fn(move |request| routes::answer(request, link, Arc::clone(&answering)));
    let stream = TokioIo::new(stream);
    // How the connection ends is what the test provoked; the records say what came before.
    let _ = if h2 {
        hyper::server::conn::http2::Builder::new(TokioExecutor::new()).serve_connection(stream, service).await
    } else {
        let mut builder = hyper::server::conn::http1::Builder::new();
        builder.half_close(true).serve_connection(stream, service).with_upgrades().await
    };
    records.links.edit(link, |entry| entry.ended = true);
}
