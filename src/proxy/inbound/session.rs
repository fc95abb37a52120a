//! One inspected connection of an agent: hyper serves it, each request is an exchange.

use std::convert::Infallible;
use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use http::header::{CONNECTION, HeaderValue};
use http::{Response, StatusCode};
use hyper::body::Incoming;
use hyper::server::conn::http1::UpgradeableConnection;
use hyper::server::conn::{http1, http2};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::Instant;

use super::framed::{Framed, FramingEnd};
use super::pace::Pace;
use crate::config::Settings;
use crate::decision::{Decision, Verdict};
use crate::event::{self, Event, Id, Kind};
use crate::proxy::Gateway;
use crate::proxy::body::Body;
use crate::proxy::budget::Exhausted;
use crate::proxy::error::Stop;
use crate::proxy::exchange::{LastHead, exchange};
use crate::proxy::upstream::{Origin, Speaks};
use crate::proxy::window::{self, Uploads};
use crate::telemetry::label::{Closed, Limit};
use crate::wire::http1::Violation;

/// The state of a connection that its exchanges share.
pub(crate) struct Session {
    pub(crate) gateway: Arc<Gateway>,
    pub(crate) connection: Id,
    pub(crate) label: Arc<str>,
    pub(crate) naming: Naming,
    pub(crate) destination: Arc<event::Destination>,
    pub(crate) speaks: Speaks,
    /// The answer to every request: the TLS of the connection was ended only to carry it.
    pub(crate) refuse_all: Option<Stop>,
    pub(crate) activity: Arc<Activity>,
    pub(crate) pace: Pace,
    pub(crate) last_head: LastHead,
    /// The rest of the connection after HTTP: a WebSocket. The lock is taken at its beginning and at the end alone.
    pub(crate) continuation: Mutex<Option<Continuation>>,
    /// Counts the unread bytes of an h2 agent.
    pub(crate) uploads: OnceLock<Arc<Uploads>>,
}

type Continuation = Pin<Box<dyn Future<Output = Closed> + Send>>;

/// How the destination of a request is known.
pub(crate) enum Naming {
    /// The connection was made for one origin.
    Fixed(Origin),
    /// Each request to the explicit proxy has it in its target.
    PerRequest,
    /// The listener stands for one upstream, whatever the request says.
    Reverse(Origin),
}

/// Whether a connection is in use, shared with its reader.
pub(crate) struct Activity {
    epoch: Instant,
    in_flight: AtomicUsize,
    /// When bytes moved last, in milliseconds after the epoch.
    last: AtomicU64,
    /// The bytes are no longer HTTP.
    pub(crate) upgraded: AtomicBool,
    any: AtomicBool,
    /// No request is read behind the next one that is answered.
    is_ending: AtomicBool,
}

/// An exchange in progress.
pub(crate) struct Busy(Arc<Activity>);

impl Activity {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self {
            epoch: Instant::now(),
            in_flight: AtomicUsize::new(0),
            last: AtomicU64::new(0),
            upgraded: AtomicBool::new(false),
            any: AtomicBool::new(false),
            is_ending: AtomicBool::new(false),
        })
    }

    pub(crate) fn begin(self: &Arc<Self>) -> Busy {
        self.moved();
        self.in_flight.fetch_add(1, Ordering::Relaxed);
        self.any.store(true, Ordering::Relaxed);
        Busy(Arc::clone(self))
    }

    pub(crate) fn is_busy(&self) -> bool {
        self.in_flight.load(Ordering::Relaxed) > 0
    }

    /// Says in the last answer that it is the last (RFC 9112, section 9.6).
    fn answered(&self, mut answer: Response<Body>) -> Response<Body> {
        if self.is_ending.load(Ordering::Relaxed) && answer.status() != StatusCode::SWITCHING_PROTOCOLS {
            answer.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
        }
        answer
    }

    /// Notes that bytes were sent or received.
    pub(crate) fn moved(&self) {
        let now = u64::try_from(self.epoch.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.last.store(now, Ordering::Relaxed);
    }

    /// Resolves once the connection has been still for too long: `first` before any request, `then` between two,
    /// `within` in the middle of one. Returns the reason.
    async fn still_too_long(&self, first: Duration, then: Duration, within: Duration) -> Closed {
        loop {
            let idle = if self.any.load(Ordering::Relaxed) { then } else { first };
            let (limit, closed) = match (self.is_busy(), self.any.load(Ordering::Relaxed)) {
                (true, _) => (within, Closed::StreamIdle),
                (false, true) => (then, Closed::KeepAlive),
                (false, false) => (first, Closed::HeadTimeout),
            };
            let (now, due) = (Instant::now(), self.due(limit));
            if now >= due {
                return closed;
            }
            // In the middle of an exchange, the end of which begins another span.
            tokio::time::sleep_until(due.min(now + idle)).await;
        }
    }

    fn due(&self, limit: Duration) -> Instant {
        self.epoch + Duration::from_millis(self.last.load(Ordering::Relaxed)) + limit
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.0.moved();
        self.0.in_flight.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Serves HTTP/1 or HTTP/2 until either side ends it, it is idle for too long, or the process stops. Returns the
/// reason.
pub(crate) async fn serve<S>(session: Session, stream: S) -> Closed
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let session = Arc::new(session);
    match session.speaks {
        Speaks::H1 => serve_h1(session, stream).await,
        Speaks::H2 => serve_h2(session, stream).await,
    }
}

async fn serve_h1<S>(session: Arc<Session>, stream: S) -> Closed
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let snapshot = session.gateway.snapshot();
    let settings = &snapshot.settings;
    let (framed, found) = Framed::new(stream, &session.activity, settings, &session.gateway.budget);
    let service = {
        let session = Arc::clone(&session);
        service_fn(move |request: http::Request<Incoming>| {
            // Boxed: hyper keeps room for it as long as the connection, which is idle for most of its life.
            let exchange = Box::pin(exchange(Arc::clone(&session), request));
            let activity = Arc::clone(&session.activity);
            async move { Ok::<_, Infallible>(activity.answered(exchange.await)) }
        })
    };
    let connection = http1::Builder::new()
        .auto_date_header(false)
        .max_headers(settings.limits.header_count)
        .max_buf_size(BUFFER)
        .serve_connection(TokioIo::new(framed), service)
        .with_upgrades();
    let connection = pin!(connection);
    let ended = to_its_end(&session, settings, connection, UpgradeableConnection::graceful_shutdown).await;
    // Taken in any case: the continuation and the session hold each other.
    let continuation = session.continuation();
    match (found.get(), continuation) {
        (Some(FramingEnd::HeadTimeout), _) => Closed::HeadTimeout,
        (Some(FramingEnd::Violation(violation, event)), _) => session.violated(violation, *event),
        (Some(FramingEnd::Exhausted(event)), _) => session.exhausted(*event),
        (None, Some(continuation)) => continuation.await,
        (None, None) => ended,
    }
}

impl Session {
    fn why(&self, is_error: bool) -> Closed {
        match (self.gateway.drain.is_stopping(), is_error) {
            (true, _) => Closed::Draining,
            (false, true) => Closed::AgentGone,
            (false, false) => Closed::Finished,
        }
    }

    /// An HTTP/1.1 session; see [`Session::speaking`] and [`Session::refuse_all`].
    pub(crate) fn new(
        gateway: Arc<Gateway>,
        connection: Id,
        naming: Naming,
        destination: Arc<event::Destination>,
    ) -> Self {
        Self {
            gateway,
            connection,
            label: connection.to_string().into(),
            naming,
            destination,
            speaks: Speaks::H1,
            refuse_all: None,
            activity: Activity::new(),
            pace: Pace::default(),
            last_head: LastHead::default(),
            continuation: Mutex::default(),
            uploads: OnceLock::new(),
        }
    }

    /// The same, over the HTTP that the agent speaks.
    pub(crate) fn speaking(self, speaks: Speaks) -> Self {
        Self { speaks, ..self }
    }

    /// The same, answering every request with this.
    pub(crate) fn refuse_all(self, refuse_all: Option<Stop>) -> Self {
        Self { refuse_all, ..self }
    }

    /// Sets the future that runs once hyper is done with the connection.
    pub(crate) fn continue_with(&self, continuation: Continuation) {
        *self.continuation.lock().unwrap_or_else(PoisonError::into_inner) = Some(continuation);
    }

    fn continuation(&self) -> Option<Continuation> {
        self.continuation.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Emits the event of a connection that the framer ended.
    fn violated(&self, violation: &Violation, event: Id) -> Closed {
        self.refused(&super::names::framing(violation.reason()).decision, event);
        self.gateway.violated(violation)
    }

    /// Emits the event of a connection that the framer ended for want of memory.
    fn exhausted(&self, event: Id) -> Closed {
        self.refused(&Exhausted::ruling(), event);
        self.gateway.metrics.limit_reached(Limit::BufferedBytes);
        Closed::Limit
    }

    fn refused(&self, decision: &Decision, event: Id) {
        let mut event = Event::new(event, Kind::Request, decision.clone());
        event.session = Some(Arc::clone(&self.label));
        event.destination = Some(Arc::clone(&self.destination));
        event.connection = Some(self.connection);
        self.gateway.emit(event);
        self.gateway.metrics.request(None, Verdict::Deny);
    }
}

/// The most that hyper reads into one buffer. The framer in front of it bounds heads.
const BUFFER: usize = 256 << 10;
/// Streams that an agent may reset before they were looked at, and that wait to be accepted (CVE-2023-44487).
const RESETS: usize = 20;
/// How often a silent HTTP/2 agent is pinged, and how long it has to answer.
const PING: Duration = Duration::from_secs(60);
const PONG: Duration = Duration::from_secs(20);

async fn serve_h2<S>(session: Arc<Session>, stream: S) -> Closed
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let snapshot = session.gateway.snapshot();
    let settings = &snapshot.settings;
    let budget = &session.gateway.budget;
    let window = budget.windows.open(window::AGENT);
    let uploads = Uploads::new(&window, budget.open(settings.limits.buffered_bytes));
    // No one else sets them.
    let _ = session.uploads.set(uploads);
    let service = {
        let session = Arc::clone(&session);
        service_fn(move |request: http::Request<Incoming>| {
            let session = Arc::clone(&session);
            async move { Ok::<_, Infallible>(exchange(session, request).await) }
        })
    };
    let connection = http2::Builder::new(TokioExecutor::new())
        .timer(TokioTimer::new())
        .auto_date_header(false)
        .max_concurrent_streams(settings.limits.h2_streams)
        .max_header_list_size(window.head(settings.limits.header_bytes))
        .max_pending_accept_reset_streams(RESETS)
        .initial_stream_window_size(window.stream())
        .initial_connection_window_size(window.connection())
        .keep_alive_interval(PING)
        .keep_alive_timeout(PONG)
        .serve_connection(TokioIo::new(stream), service);
    let connection = pin!(connection);
    to_its_end(&session, settings, connection, http2::Connection::graceful_shutdown).await
}

/// How long a connection that has no exchange when the process stops is still read: hyper would close it without a look
/// at the request that may have arrived, and its agent would not know whether that was acted on.
const ON_ITS_WAY: Duration = Duration::from_millis(500);

/// Drives a connection: it is told to end when it is idle or the process stops, and dropped where it does not, or where
/// nothing moves in the middle of an exchange. Answers why it ended.
async fn to_its_end<C>(
    session: &Session,
    settings: &Settings,
    mut connection: Pin<&mut C>,
    tell: fn(Pin<&mut C>),
) -> Closed
where
    C: Future<Output = hyper::Result<()>>,
{
    let (activity, timeouts) = (&session.activity, &settings.timeouts);
    // Longer than any wait that has an answer of its own.
    let within = timeouts.stream_idle.max(timeouts.upstream_head) + timeouts.connect;
    let closed = tokio::select! {
        biased;
        result = connection.as_mut() => return session.why(result.is_err()),
        closed = activity.still_too_long(timeouts.agent_head, timeouts.keep_alive, within) => closed,
        () = session.gateway.drain.stopping() => Closed::Draining,
    };
    if closed == Closed::StreamIdle {
        return closed;
    }
    if closed == Closed::Draining && !activity.is_busy() {
        activity.is_ending.store(true, Ordering::Relaxed);
        tokio::select! {
            biased;
            result = connection.as_mut() => return session.why(result.is_err()),
            () = tokio::time::sleep(ON_ITS_WAY.min(settings.shutdown.grace / 2)) => {}
        }
    }
    tell(connection.as_mut());
    activity.moved();
    tokio::select! {
        _ = connection => closed,
        _ = activity.still_too_long(timeouts.agent_head, timeouts.agent_head, within) => closed,
    }
}
