//! The demo's upstream: real TLS under a throwaway CA of its own, for any name.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::task::{Context as Waking, Poll};
use std::time::SystemTime;

use anyhow::{Context, ensure};
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Request, Response, header};
use http_body_util::BodyExt;
use hyper::body::{Frame, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use rcgen::{BasicConstraints, CertificateParams, DistinguishedName, DnType, IsCa, KeyPair, KeyUsagePurpose};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::LazyConfigAcceptor;

use super::provider;
use crate::drain::Drain;
use crate::name::host::Host;
use crate::tls::authority::Authority;
use crate::tls::leaf::Leaves;

/// Where the upstream answers with the key that it was sent, in a header and in the body.
pub(super) const ECHO: &str = "/v1/echo";

/// A server on a port of the loopback.
pub(super) struct DemoUpstream {
    pub(super) address: SocketAddr,
    /// PEM of the CA behind its certificates.
    pub(super) root: String,
    known: Arc<Known>,
}

/// What its connections share.
#[derive(Default)]
struct Known {
    seen: Mutex<Vec<SeenRequest>>,
    /// The name under which nothing is served any more.
    stopped: OnceLock<&'static str>,
}

/// A request that reached it.
#[derive(Debug, Clone)]
pub(super) struct SeenRequest {
    pub(super) path: String,
    pub(super) headers: HeaderMap,
    pub(super) body: Bytes,
}

impl DemoUpstream {
    pub(super) async fn start(drain: &Drain) -> anyhow::Result<Self> {
        let (root, key) = make_ca()?;
        let authority = Authority::load(&root, &key, SystemTime::now())?;
        let leaves = Arc::new(Leaves::new(Arc::new(authority), 64));
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let known = Arc::<Known>::default();
        let (tasks, shared) = (drain.clone(), Arc::clone(&known));
        drain.detach(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (leaves, known) = (Arc::clone(&leaves), Arc::clone(&shared));
                // A connection that fails is seen by the agent: that is what the steps look at.
                tasks.detach(async move { drop(serve(stream, &leaves, &known).await) });
            }
        });
        Ok(Self { address, root, known })
    }

    /// Serves nothing more under this name, the first for which it is said.
    pub(super) fn stop(&self, name: &'static str) {
        self.known.stopped.get_or_init(|| name);
    }

    /// The requests that reached it, in that order.
    pub(super) fn seen(&self) -> Vec<SeenRequest> {
        self.known.seen.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

async fn serve(stream: TcpStream, leaves: &Leaves, known: &Known) -> anyhow::Result<()> {
    let start = LazyConfigAcceptor::new(rustls::server::Acceptor::default(), stream).await?;
    let name = start.client_hello().server_name().context("no server name")?.to_owned();
    let host = Host::parse(&name).context("no host name")?;
    let stream = start.into_stream(leaves.server_config(&host, false)?).await?;
    let service = service_fn(async |request: Request<Incoming>| {
        ensure!(known.stopped.get() != Some(&&*name), "stopped");
        let (head, body) = request.into_parts();
        let body = body.collect().await?.to_bytes();
        let request = SeenRequest { path: head.uri.path().to_owned(), headers: head.headers, body };
        let answer = answer(&request);
        known.seen.lock().unwrap_or_else(PoisonError::into_inner).push(request);
        Ok(answer)
    });
    Ok(http1::Builder::new().serve_connection(TokioIo::new(stream), service).await?)
}

fn answer(request: &SeenRequest) -> Response<AnswerChunks> {
    match request.path.as_str() {
        ECHO => echo(request),
        provider::MESSAGES => stream(provider::answer(&request.body)),
        provider::CHAT => stream(provider::chat_answer(&request.body)),
        _ => Response::new(AnswerChunks::from("hello\n")),
    }
}

fn stream(events: Vec<Bytes>) -> Response<AnswerChunks> {
    let mut response = Response::new(AnswerChunks(events.into()));
    let media_type = HeaderValue::from_static("text/event-stream");
    response.headers_mut().insert(header::CONTENT_TYPE, media_type);
    response
}

fn echo(request: &SeenRequest) -> Response<AnswerChunks> {
    let key = request.headers.get(header::AUTHORIZATION);
    let body = key.map_or_else(Vec::new, |key| [b"you sent ", key.as_bytes(), b"\n"].concat());
    let mut response = Response::new(AnswerChunks::from(body));
    if let Some(key) = key {
        response.headers_mut().insert("x-echo", key.clone());
    }
    response
}

/// A body that goes out piece by piece.
struct AnswerChunks(VecDeque<Bytes>);

impl<T: Into<Bytes>> From<T> for AnswerChunks {
    fn from(whole: T) -> Self {
        Self(VecDeque::from([whole.into()]))
    }
}

impl hyper::body::Body for AnswerChunks {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Waking<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Poll::Ready(self.0.pop_front().map(|chunk| Ok(Frame::data(chunk))))
    }
}

/// Certificate and key, PEM.
fn make_ca() -> anyhow::Result<(String, String)> {
    let key = KeyPair::generate()?;
    let mut params = CertificateParams::default();
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, "The server's own CA");
    Ok((params.self_signed(&key)?.pem(), key.serialize_pem()))
}
