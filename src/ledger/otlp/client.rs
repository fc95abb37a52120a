//! Sends what the exporter has encoded: OTLP over HTTP, or the same message over gRPC.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bytes::{BufMut, Bytes, BytesMut};
use http::header::{CONTENT_TYPE, HOST, HeaderName, HeaderValue, TE};
use http::uri::PathAndQuery;
use http::{HeaderMap, Request, Response, StatusCode, Uri};
use http_body_util::{BodyExt, Full, Limited};
use hyper_util::rt::{TokioExecutor, TokioIo};
use opentelemetry_http::{HttpClient, HttpError};
use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::runtime::Handle;
use tokio_rustls::TlsConnector;

use crate::name::host::Host;
use crate::tls::roots::{Alpn, UpstreamTls};

const GRPC: HeaderValue = HeaderValue::from_static("application/grpc");
const TRAILERS: HeaderValue = HeaderValue::from_static("trailers");
const GRPC_STATUS: HeaderName = HeaderName::from_static("grpc-status");
/// One byte for whether the message is compressed, and four for its length.
const GRPC_PREFIX: usize = 5;
/// The longest answer that is read: it holds a count of what was rejected.
const MAX_ANSWER: usize = 64 << 10;

/// The transport of OTLP.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OtlpProtocol {
    Http,
    Grpc,
}

/// A client that connects anew for each batch. Batches come from a thread without a runtime, so the client keeps the
/// runtime that it was built in.
pub(in crate::ledger) struct OtlpClient {
    pub(super) runtime: Handle,
    /// None where the endpoint is asked in plain HTTP.
    pub(super) tls: Option<Arc<UpstreamTls>>,
    pub(super) protocol: OtlpProtocol,
    /// The path of the collector's method for gRPC.
    pub(super) method: &'static str,
    /// For connection, request and answer together.
    pub(super) timeout: Duration,
}

impl fmt::Debug for OtlpClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").field("protocol", &self.protocol).finish_non_exhaustive()
    }
}

#[async_trait::async_trait]
impl HttpClient for OtlpClient {
    async fn send_bytes(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        let exchange = exchange(self.tls.clone(), (self.protocol, self.method), request);
        let timeout = self.timeout;
        let task = self.runtime.spawn(async move { tokio::time::timeout(timeout, exchange).await });
        task.await??
    }
}

async fn exchange(
    tls: Option<Arc<UpstreamTls>>,
    (protocol, method): (OtlpProtocol, &'static str),
    request: Request<Bytes>,
) -> Result<Response<Bytes>, HttpError> {
    let secure = request.uri().scheme_str() == Some("https");
    let host = request.uri().host().ok_or("the endpoint names no host")?.trim_matches(['[', ']']).to_owned();
    let port = request.uri().port_u16().unwrap_or(if secure { 443 } else { 80 });
    let socket = TcpStream::connect((host.as_str(), port)).await?;
    socket.set_nodelay(true)?;
    if !secure {
        return over(socket, (protocol, method), request).await;
    }
    let alpn = match protocol {
        OtlpProtocol::Http => Alpn::H1,
        OtlpProtocol::Grpc => Alpn::H2OrH1,
    };
    let tls = tls.ok_or("the endpoint is https, and its variable said otherwise")?;
    let config = tls.client_config(&Host::parse(&host)?, alpn);
    let name = ServerName::try_from(host)?;
    over(TlsConnector::from(config).connect(name, socket).await?, (protocol, method), request).await
}

async fn over<S>(
    stream: S,
    (protocol, method): (OtlpProtocol, &'static str),
    request: Request<Bytes>,
) -> Result<Response<Bytes>, HttpError>
where
    S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    let io = TokioIo::new(stream);
    match protocol {
        OtlpProtocol::Http => {
            let (mut sender, connection) = hyper::client::conn::http1::handshake(io).await?;
            let request = plain(request)?;
            tokio::select! {
                answer = async { whole(sender.send_request(request).await?).await } => Ok(answer?.0),
                ended = connection => Err(ended.err().map_or_else(|| "the connection ended".into(), Into::into)),
            }
        }
        OtlpProtocol::Grpc => {
            let (mut sender, connection) =
                hyper::client::conn::http2::handshake(TokioExecutor::new(), io).await?;
            let request = framed(request, method)?;
            tokio::select! {
                answer = async { whole(sender.send_request(request).await?).await } => unframed(answer?),
                ended = connection => Err(ended.err().map_or_else(|| "the connection ended".into(), Into::into)),
            }
        }
    }
}

/// Puts the request in origin form with a `Host`, as HTTP/1.1 asks.
fn plain(request: Request<Bytes>) -> Result<Request<Full<Bytes>>, HttpError> {
    let (mut parts, body) = request.into_parts();
    let authority = parts.uri.authority().ok_or("the endpoint names no host")?;
    parts.headers.insert(HOST, HeaderValue::from_str(authority.as_str())?);
    parts.uri = parts.uri.path_and_query().map_or("/", |path| path.as_str()).parse::<Uri>()?;
    Ok(Request::from_parts(parts, Full::new(body)))
}

/// Frames the message as a unary call of gRPC (gRPC over HTTP2, "Requests").
fn framed(request: Request<Bytes>, method: &'static str) -> Result<Request<Full<Bytes>>, HttpError> {
    let (mut parts, body) = request.into_parts();
    let mut uri = std::mem::take(&mut parts.uri).into_parts();
    uri.path_and_query = Some(PathAndQuery::from_static(method));
    parts.uri = Uri::from_parts(uri)?;
    parts.headers.insert(CONTENT_TYPE, GRPC);
    parts.headers.insert(TE, TRAILERS);
    let mut frame = BytesMut::with_capacity(GRPC_PREFIX + body.len());
    frame.put_u8(0);
    frame.put_u32(u32::try_from(body.len())?);
    frame.put(body);
    Ok(Request::from_parts(parts, Full::new(frame.freeze())))
}

/// Reads the whole answer and its trailers.
async fn whole(
    answer: Response<hyper::body::Incoming>,
) -> Result<(Response<Bytes>, Option<HeaderMap>), HttpError> {
    let (parts, body) = answer.into_parts();
    let body = Limited::new(body, MAX_ANSWER).collect().await?;
    let trailers = body.trailers().cloned();
    Ok((Response::from_parts(parts, body.to_bytes()), trailers))
}

/// Maps gRPC's status to HTTP's: 503 where gRPC lets a client try again, 400 for other failures.
fn unframed((answer, trailers): (Response<Bytes>, Option<HeaderMap>)) -> Result<Response<Bytes>, HttpError> {
    let (mut parts, body) = answer.into_parts();
    let status = trailers.as_ref().and_then(|trailers| trailers.get(&GRPC_STATUS));
    let status = status.or_else(|| parts.headers.get(&GRPC_STATUS)).and_then(|status| status.to_str().ok());
    parts.status = match status {
        Some("0") => parts.status,
        // Cancelled, deadline exceeded, resource exhausted, aborted, out of range, unavailable, data loss: the OTLP
        // specification, "OTLP/gRPC response".
        Some("1" | "4" | "8" | "10" | "11" | "14" | "15") => StatusCode::SERVICE_UNAVAILABLE,
        Some(_) => StatusCode::BAD_REQUEST,
        None if parts.status.is_success() => StatusCode::BAD_GATEWAY,
        None => parts.status,
    };
    Ok(Response::from_parts(parts, body.slice(GRPC_PREFIX.min(body.len())..)))
}
