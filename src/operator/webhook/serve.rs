//! Serves the webhook over TLS, HTTP/1.1 and HTTP/2, bounded in everything.

use std::convert::Infallible;
use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::time::Duration;

use aws_lc_rs::rand;
use bytes::Bytes;
use http::header::{ALLOW, CONTENT_TYPE};
use http::{HeaderValue, Method, Request, Response, StatusCode};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::server::conn::{http1, http2};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use kube::Client as ApiClient;
use kube::core::DynamicObject;
use kube::core::admission::AdmissionRequest;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, SemaphorePermit};
use tokio::task::JoinError;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use super::intake::{Intake, IntakeError, MAX_BYTES};
use super::review::{self, AdmissionQuestion, ReviewFacts};
use super::{namespaces, refusal};
use crate::capacity::{Capacity, ConnectionBounds, ConnectionPlace, Peer};
use crate::drain::Drain;
use crate::operator::controller::metrics::{OperatorMetrics, WebhookVerdict};
use crate::operator::injector::Annotations;
use crate::operator::settings::Settings;
use crate::tls::serving::{Presented, server_config};

/// The bounds of a server. Each replica of the API server needs one HTTP/2 connection per webhook, and all of them may
/// come from one address.
#[derive(Debug, Clone, Copy)]
pub(super) struct ServerBounds {
    pub(super) connections: ConnectionBounds,
    /// How long a handshake, and how long a request's head, may take.
    pub(super) handshake: Duration,
    pub(super) head: Duration,
}

const BOUNDS: ServerBounds = ServerBounds {
    connections: ConnectionBounds { all: 256, of_a_peer: 16 },
    handshake: Duration::from_secs(5),
    head: Duration::from_secs(30),
};

/// How many questions are judged at once, half as many of one connection: each may take a core, and the memory of a
/// compiled policy.
const JUDGED: usize = 4;
const STREAMS: u32 = 64;
const HEADER_BYTES: u32 = 16 * 1024;
const HEADER_COUNT: usize = 64;
/// How often a silent HTTP/2 client is pinged, and how long its answer may take.
const PING: Duration = Duration::from_secs(30);
const PONG: Duration = Duration::from_secs(10);
/// How long a connection that has lost its place may take to complete its answers and close.
const LEAVING: Duration = Duration::from_millis(250);
/// How long accepting pauses after an error: file descriptors may have run out.
const REST: Duration = Duration::from_millis(100);

/// The state of the webhook.
pub struct AdmissionWebhook {
    api: ApiClient,
    settings: Arc<Settings>,
    metrics: Arc<OperatorMetrics>,
    pub(super) intake: Intake,
    /// The places for judging questions.
    judging: Arc<Semaphore>,
}

impl AdmissionWebhook {
    pub fn new(api: ApiClient, settings: Arc<Settings>, metrics: Arc<OperatorMetrics>) -> Self {
        Self { api, settings, metrics, intake: Intake::new(), judging: Arc::new(Semaphore::new(JUDGED)) }
    }
}

/// Serves until the drain begins; questions in progress are still answered.
///
/// # Errors
/// None in practice: the provider speaks the versions of TLS.
pub fn serve(
    listener: TcpListener,
    presented: Arc<Presented>,
    webhook: AdmissionWebhook,
    drain: &Drain,
) -> Result<(), rustls::Error> {
    serve_within(listener, presented, webhook, BOUNDS, drain)
}

pub(super) fn serve_within(
    listener: TcpListener,
    presented: Arc<Presented>,
    webhook: AdmissionWebhook,
    bounds: ServerBounds,
    drain: &Drain,
) -> Result<(), rustls::Error> {
    let acceptor = TlsAcceptor::from(server_config(presented, &["h2", "http/1.1"])?);
    let capacity = Capacity::new(bounds.connections);
    let server = Arc::new(WebhookServer { webhook, acceptor, bounds, capacity, drain: drain.clone() });
    drain.spawn(async move { server.run(&listener).await });
    Ok(())
}

struct WebhookServer {
    webhook: AdmissionWebhook,
    acceptor: TlsAcceptor,
    bounds: ServerBounds,
    capacity: Capacity,
    drain: Drain,
}

/// The client of a connection.
struct WebhookClient {
    peer: Peer,
    place: ConnectionPlace,
    /// Its own places for judging, so that one client's questions do not queue up in front of another's.
    turns: Semaphore,
}

type WebhookAnswer = Response<Full<Bytes>>;

impl WebhookServer {
    async fn run(self: Arc<Self>, listener: &TcpListener) {
        loop {
            let accepted = tokio::select! {
                accepted = listener.accept() => accepted,
                () = self.drain.stopping() => return,
            };
            let Ok((stream, address)) = accepted else {
                tokio::time::sleep(REST).await;
                continue;
            };
            let peer = Peer::from(address);
            let client =
                WebhookClient { peer, place: self.capacity.take(peer), turns: Semaphore::new(JUDGED / 2) };
            let client = Arc::new(client);
            if client.place.displaces() {
                tracing::debug!(%address, "a connection to the webhook took the place of another");
                self.webhook.metrics.webhook_closed();
            }
            let server = Arc::clone(&self);
            self.drain.spawn(async move {
                tokio::select! {
                    () = server.converse(stream, &client) => {}
                    () = Self::dismissed(&client) => {}
                    () = server.drain.aborting() => {}
                }
            });
        }
    }

    /// Resolves once the client has lost its place and had the time to close.
    async fn dismissed(client: &WebhookClient) {
        client.place.lost().await;
        tokio::time::sleep(LEAVING).await;
    }

    /// Serves a connection. Its failures are only logged: no question was asked.
    async fn converse(self: &Arc<Self>, stream: TcpStream, client: &Arc<WebhookClient>) {
        let _ = stream.set_nodelay(true);
        let handshake = tokio::time::timeout(self.bounds.handshake, self.acceptor.accept(stream));
        let shaken = tokio::select! {
            shaken = handshake => shaken,
            () = client.place.lost() => return,
        };
        match shaken {
            Ok(Ok(stream)) if stream.get_ref().1.alpn_protocol() == Some(b"h2") => {
                self.speak_h2(stream, client).await
            }
            Ok(Ok(stream)) => self.speak_h1(stream, client).await,
            Ok(Err(error)) => tracing::debug!(%error, "a handshake with the webhook failed"),
            Err(_) => tracing::debug!("a handshake with the webhook took too long"),
        }
    }

    async fn speak_h1(self: &Arc<Self>, stream: TlsStream<TcpStream>, client: &WebhookClient) {
        let mut http = http1::Builder::new();
        http.timer(TokioTimer::new()).header_read_timeout(self.bounds.head);
        http.max_buf_size(HEADER_BYTES as usize).max_headers(HEADER_COUNT);
        let service = service_fn(|request| self.serve(request, client));
        let connection = http.serve_connection(TokioIo::new(stream), service);
        self.to_its_end(pin!(connection), http1::Connection::graceful_shutdown, client).await;
    }

    async fn speak_h2(self: &Arc<Self>, stream: TlsStream<TcpStream>, client: &Arc<WebhookClient>) {
        let mut http = http2::Builder::new(TokioExecutor::new());
        http.timer(TokioTimer::new()).keep_alive_interval(PING).keep_alive_timeout(PONG);
        http.max_concurrent_streams(STREAMS).max_header_list_size(HEADER_BYTES);
        let service = service_fn(|request| {
            let (server, client) = (Arc::clone(self), Arc::clone(client));
            async move { server.serve(request, &client).await }
        });
        let connection = http.serve_connection(TokioIo::new(stream), service);
        self.to_its_end(pin!(connection), http2::Connection::graceful_shutdown, client).await;
    }

    /// Drives a connection to its end; shuts it down when the process stops or the client loses its place.
    async fn to_its_end<C>(&self, mut connection: Pin<&mut C>, tell: fn(Pin<&mut C>), client: &WebhookClient)
    where
        C: Future<Output = hyper::Result<()>>,
    {
        tokio::select! {
            _ = connection.as_mut() => return,
            () = self.drain.stopping() => {}
            () = client.place.lost() => {}
        }
        tell(connection.as_mut());
        let _ = connection.await;
    }

    async fn serve(
        &self,
        request: Request<Incoming>,
        client: &WebhookClient,
    ) -> Result<WebhookAnswer, Infallible> {
        let Some(question) = AdmissionQuestion::at(request.uri().path()) else {
            return Ok(text(StatusCode::NOT_FOUND, "not found"));
        };
        if request.method() != Method::POST {
            let mut refusal = text(StatusCode::METHOD_NOT_ALLOWED, "only POST");
            refusal.headers_mut().insert(ALLOW, HeaderValue::from_static("POST"));
            return Ok(refusal);
        }
        let _asking = client.place.ask();
        let (verdict, answer) = self.webhook.answer(question, request.into_body(), client).await;
        self.webhook.metrics.webhook(question.path(), verdict);
        Ok(answer)
    }
}

impl AdmissionWebhook {
    /// Takes one of the client's places for judging, and one of the webhook's. Neither semaphore is ever closed.
    async fn turn<'a>(
        &self,
        client: &'a WebhookClient,
    ) -> (Option<SemaphorePermit<'a>>, Option<OwnedSemaphorePermit>) {
        let of_client = client.turns.acquire().await.ok();
        (of_client, Arc::clone(&self.judging).acquire_owned().await.ok())
    }

    async fn answer(
        &self,
        question: AdmissionQuestion,
        body: Incoming,
        client: &WebhookClient,
    ) -> (WebhookVerdict, WebhookAnswer) {
        let read = match self.intake.read(body, client.peer).await {
            Ok(read) => read,
            Err(refused) => return (WebhookVerdict::Failed, not_read(question, refused)),
        };
        let (of_client, turn) = self.turn(client).await;
        let bytes = read.bytes.clone();
        // Reading megabytes must not hold up probes and other questions. The work keeps its place to its end, even if
        // nobody waits for the answer any more.
        let read = tokio::task::spawn_blocking(move || {
            let _turn = turn;
            review::read(&bytes)
        });
        let request = match read.await {
            Ok(Ok(request)) => request,
            Ok(Err(malformed)) => {
                tracing::warn!(path = question.path(), %malformed, "a question could not be read");
                return (
                    WebhookVerdict::Failed,
                    text(StatusCode::BAD_REQUEST, format!("Postern: {malformed}")),
                );
            }
            Err(error) => return not_judged(question, &error),
        };
        // Others are judged while the API server is asked.
        drop(of_client);
        let annotations = match namespaces::annotations(&self.api, question, &request).await {
            Ok(annotations) => annotations,
            Err(why) => {
                tracing::error!(path = question.path(), why, "a question could not be judged");
                return failed(format!("Postern: {why}"));
            }
        };
        let (_of_client, turn) = self.turn(client).await;
        let settings = Arc::clone(&self.settings);
        let judged = tokio::task::spawn_blocking(move || {
            let _turn = turn;
            judge(question, request, &settings, &annotations)
        });
        judged.await.unwrap_or_else(|error| not_judged(question, &error))
    }
}

fn judge(
    question: AdmissionQuestion,
    request: AdmissionRequest<DynamicObject>,
    settings: &Settings,
    annotations: &Annotations,
) -> (WebhookVerdict, WebhookAnswer) {
    let mut octets = [0; 4];
    if rand::fill(&mut octets).is_err() {
        return failed("Postern: the system has no randomness to draw a user ID by");
    }
    let circumstances = ReviewFacts { settings, annotations, random: u32::from_be_bytes(octets) };
    let subject = refusal::named(&request);
    let answer = review::answer(question, request, circumstances);
    let verdict = if answer.allowed { WebhookVerdict::Allowed } else { WebhookVerdict::Denied };
    if verdict == WebhookVerdict::Denied {
        tracing::info!(path = question.path(), %subject, why = answer.result.message, "refused");
    }
    match serde_json::to_vec(&answer.into_review()) {
        Ok(json) => (verdict, typed("application/json", json)),
        Err(error) => failed(format!("Postern: the answer cannot be written ({error})")),
    }
}

fn not_judged(question: AdmissionQuestion, error: &JoinError) -> (WebhookVerdict, WebhookAnswer) {
    // Its own text has the message of a panic, which may hold what was judged.
    let has_panicked = error.is_panic();
    tracing::error!(path = question.path(), has_panicked, "a question could not be judged");
    failed("Postern: the question could not be judged")
}

fn failed(message: impl Into<Bytes>) -> (WebhookVerdict, WebhookAnswer) {
    (WebhookVerdict::Failed, text(StatusCode::INTERNAL_SERVER_ERROR, message))
}

fn not_read(question: AdmissionQuestion, refused: IntakeError) -> WebhookAnswer {
    let (status, message) = match refused {
        IntakeError::TooLarge => {
            (StatusCode::PAYLOAD_TOO_LARGE, format!("Postern: a review has at most {MAX_BYTES} bytes"))
        }
        IntakeError::TooSlow => {
            (StatusCode::REQUEST_TIMEOUT, "Postern: the review did not come in time".to_owned())
        }
        IntakeError::Busy => {
            let message = "Postern: too many reviews are under way; ask again".to_owned();
            (StatusCode::SERVICE_UNAVAILABLE, message)
        }
        IntakeError::BrokenOff => (StatusCode::BAD_REQUEST, "Postern: the review broke off".to_owned()),
    };
    tracing::warn!(path = question.path(), said = message, "a question could not be read");
    text(status, message)
}

fn text(status: StatusCode, message: impl Into<Bytes>) -> WebhookAnswer {
    let mut answer = typed("text/plain; charset=utf-8", message);
    *answer.status_mut() = status;
    answer
}

fn typed(content_type: &'static str, body: impl Into<Bytes>) -> WebhookAnswer {
    let mut answer = Response::new(Full::new(body.into()));
    answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    answer
}
