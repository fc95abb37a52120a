//! The request's body: streams upstream as it comes, or goes on as it was taken in whole.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use http_body::{Body as _, Frame, SizeHint};
use hyper::body::Incoming;
use tokio::time::Instant;

use super::silence::Silence;
use super::transit::{Chunk, Transit};
use crate::call::Denial;
use crate::filter::bound::SizeBound;
use crate::filter::detect::BodyDetector;
use crate::filter::{Refused, Rewrite};
use crate::proxy::budget::Reserved;
use crate::proxy::error::{Class, Failure, Stop};
use crate::proxy::exchange::head::without_forbidden_trailers;
use crate::proxy::inbound::session::Activity;
use crate::proxy::window::Upload;
use crate::wire::json::{Document, KnownParts, Limits};

/// The agent's body on its way upstream.
pub(crate) struct RequestBody {
    incoming: Option<Incoming>,
    /// A body that was taken in whole, and the room that it has.
    whole: Option<Bytes>,
    /// What is known of it as JSON.
    known: KnownParts,
    /// The same in the content coding in which the agent sent it.
    coded: Option<Bytes>,
    reserved: Option<Reserved>,
    stage: Option<Box<Stage>>,
    progress: Progress,
    silence: Silence,
    activity: Option<Arc<Activity>>,
    /// Counts the bytes that have been read and not yet written upstream.
    transit: Option<Transit>,
    /// The room of what an h2 agent may send before it is read.
    upload: Option<Upload>,
}

/// How a request's body ended, if it has: when its last byte had gone on, or why it goes no further. Clones share it.
#[derive(Clone, Default)]
pub(crate) struct Progress(Arc<OnceLock<Result<Instant, Stop>>>);

impl Progress {
    pub(crate) fn is_finished(&self) -> bool {
        matches!(self.0.get(), Some(Ok(_)))
    }

    /// Why the body goes no further. Over HTTP/2 hyper does not tell.
    pub(crate) fn stop(&self) -> Option<Stop> {
        self.0.get()?.as_ref().err().cloned()
    }

    /// Resolves this long after the last byte.
    pub(crate) async fn finished_for(&self, limit: Duration) {
        loop {
            match self.0.get() {
                Some(Ok(finished)) => return tokio::time::sleep_until(*finished + limit).await,
                Some(Err(_)) | None => tokio::time::sleep(limit).await,
            }
        }
    }

    fn finish(&self) {
        self.0.get_or_init(|| Ok(Instant::now()));
    }

    fn break_off(&self, stop: &Stop) {
        self.0.get_or_init(|| Err(stop.clone()));
    }
}

/// A rewrite that the body goes through, and the frames that it has released.
struct Stage {
    rewrite: Box<dyn Rewrite>,
    released: VecDeque<Frame<Bytes>>,
    has_ended: bool,
    /// Runs while bytes are held.
    holding: Option<Silence>,
}

/// How long a rewrite may hold bytes that it need not: the agent may be waiting for an answer to them.
pub(in crate::proxy) const LONGEST_HELD: Duration = Duration::from_secs(1);

impl Stage {
    fn write(&mut self, frame: Frame<Bytes>) -> Result<(), Refused> {
        match frame.into_data() {
            Ok(data) => self.release(|rewrite, pieces| rewrite.write(data, pieces)),
            Err(trailers) => {
                self.finish()?;
                if let Some(fields) = trailers.trailers_ref() {
                    self.rewrite.trailers(fields)?;
                }
                self.released.push_back(trailers);
                Ok(())
            }
        }
    }

    /// Releases what has been held for too long. Returns whether something was.
    fn poll_held(&mut self, cx: &mut Context<'_>) -> Result<bool, Refused> {
        if !self.rewrite.is_holding() {
            self.holding = None;
            return Ok(false);
        }
        let holding = self.holding.get_or_insert_with(|| Silence::new(LONGEST_HELD));
        if !holding.poll_too_long(cx) {
            return Ok(false);
        }
        self.holding = None;
        self.release(|rewrite, pieces| rewrite.let_go(pieces))?;
        Ok(true)
    }

    /// Finishes, unless trailers have done so.
    fn end(&mut self) -> Result<(), Refused> {
        if self.has_ended { Ok(()) } else { self.finish() }
    }

    fn finish(&mut self) -> Result<(), Refused> {
        self.has_ended = true;
        self.release(|rewrite, pieces| rewrite.finish(pieces))
    }

    fn release(
        &mut self,
        step: impl FnOnce(&mut dyn Rewrite, &mut Vec<Bytes>) -> Result<(), Refused>,
    ) -> Result<(), Refused> {
        let mut pieces = Vec::new();
        step(self.rewrite.as_mut(), &mut pieces)?;
        self.released.extend(pieces.into_iter().filter(|piece| !piece.is_empty()).map(Frame::data));
        Ok(())
    }
}

impl RequestBody {
    /// `idle` is how long the agent may send nothing; `activity` hears of each frame.
    pub(crate) fn new(incoming: Incoming, idle: Duration, activity: &Arc<Activity>) -> Self {
        Self {
            incoming: Some(incoming),
            activity: Some(Arc::clone(activity)),
            silence: Silence::new(idle),
            ..Self::held(None)
        }
    }

    fn held(whole: Option<Bytes>) -> Self {
        Self {
            incoming: None,
            whole,
            known: KnownParts::default(),
            coded: None,
            reserved: None,
            stage: None,
            progress: Progress::default(),
            silence: Silence::new(Duration::MAX),
            activity: None,
            transit: None,
            upload: None,
        }
    }

    /// The same, counted on its way upstream.
    pub(crate) fn counted(mut self, transit: Transit, upload: Option<Upload>) -> Self {
        (self.transit, self.upload) = (Some(transit), upload);
        self
    }

    /// The same within a bound.
    ///
    /// # Errors
    /// Where the body says that it is longer: nothing of it is read.
    pub(crate) fn bounded(self, bound: SizeBound) -> Result<Self, Denial> {
        bound.clone().take(self.size_hint().lower())?;
        Ok(self.through(Box::new(bound)))
    }

    /// The same, searched on its way.
    pub(crate) fn searched(self, detector: BodyDetector) -> Self {
        self.through(Box::new(detector))
    }

    /// The same, gone through a rewrite. Where that refuses, the body breaks off: the upstream's connection is closed
    /// (over HTTP/2 its stream is reset), and the agent is told why unless an answer has begun.
    fn through(mut self, rewrite: Box<dyn Rewrite>) -> Self {
        self.stage =
            Some(Box::new(Stage { rewrite, released: VecDeque::new(), has_ended: false, holding: None }));
        self
    }

    /// A body without a byte.
    pub(crate) fn empty() -> Self {
        Self::whole(Bytes::new(), None)
    }

    /// A body that was taken in whole, and the room that it has until it was sent.
    pub(crate) fn whole(bytes: Bytes, reserved: Option<Reserved>) -> Self {
        let body = Self { reserved, ..Self::held((!bytes.is_empty()).then_some(bytes)) };
        if body.whole.is_none() {
            body.progress.finish();
        }
        body
    }

    /// The same of a body that was read as JSON.
    pub(crate) fn read(bytes: Bytes, known: KnownParts, reserved: Option<Reserved>) -> Self {
        Self { known, ..Self::whole(bytes, reserved) }
    }

    /// The same with the coded bytes as the agent sent them.
    pub(crate) fn sent_as(self, coded: Bytes) -> Self {
        Self { coded: Some(coded), ..self }
    }

    /// The document of a body that was taken in whole; none where it is no JSON.
    pub(crate) fn document(&self, limits: Limits) -> Option<Document<'_>> {
        Document::parse_known(self.whole.as_ref()?, limits, &self.known).ok()
    }

    /// What is known of a body that was taken in whole.
    pub(crate) fn known(&self) -> &KnownParts {
        &self.known
    }

    /// The body, where it was taken in whole.
    pub(crate) fn bytes(&self) -> Option<&Bytes> {
        self.whole.as_ref()
    }

    /// Puts other bytes in the place of a body that was taken in whole.
    pub(crate) fn replace(&mut self, bytes: Bytes) {
        (self.whole, self.known) = ((!bytes.is_empty()).then_some(bytes), KnownParts::default());
        self.forget_coding();
    }

    /// How many bytes the agent sent of a body that was taken in whole, unless others stand in its place.
    pub(crate) fn length(&self) -> Option<usize> {
        self.coded.as_ref().or(self.whole.as_ref()).map(Bytes::len)
    }

    /// Has the body sent as it is read, without the agent's coding. Returns whether it had one.
    pub(crate) fn forget_coding(&mut self) -> bool {
        let was_coded = self.coded.take().is_some();
        if was_coded {
            self.hold_no_more_than(self.whole.as_ref().map_or(0, Bytes::len));
        }
        was_coded
    }

    /// Has the body sent in the agent's coding, where nothing else stands in its place. Nobody reads it any more.
    pub(crate) fn send_as_it_came(&mut self) {
        let Some(coded) = self.coded.take() else { return };
        self.hold_no_more_than(coded.len());
        self.replace(coded);
    }

    fn hold_no_more_than(&mut self, bytes: usize) {
        if let Some(reserved) = self.reserved.as_mut().filter(|reserved| reserved.bytes() > bytes) {
            // To shrink never fails.
            let _ = reserved.set(bytes);
        }
    }

    pub(crate) fn progress(&self) -> Progress {
        self.progress.clone()
    }

    fn take_whole(&mut self) -> Option<Chunk> {
        let whole = self.whole.take()?;
        Some(match self.reserved.take() {
            Some(reserved) => Chunk::reserved(whole, reserved),
            None => Chunk::free(whole),
        })
    }

    fn ended(&mut self) {
        self.progress.finish();
        self.upload = None;
    }

    /// Whether nobody has said how long the body is.
    pub(crate) fn is_unmeasured(&self) -> bool {
        self.size_hint().exact().is_none()
    }

    /// The next frame of the agent, or the end.
    fn poll_incoming(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Stop>>> {
        let Some(incoming) = &mut self.incoming else { return Poll::Ready(None) };
        let broken = match Pin::new(incoming).poll_frame(cx) {
            Poll::Ready(Some(Ok(frame))) => {
                self.silence.broken();
                if let Some(activity) = &self.activity {
                    activity.moved();
                }
                return Poll::Ready(Some(Ok(without_forbidden_trailers(frame))));
            }
            Poll::Ready(None) => return Poll::Ready(None),
            Poll::Ready(Some(Err(_))) => "the request's body broke off",
            Poll::Pending if self.silence.poll_too_long(cx) => "the request's body stalled",
            Poll::Pending => return Poll::Pending,
        };
        Poll::Ready(Some(Err(Failure::new(Class::Agent, broken).into())))
    }

    /// The next frame that goes on, or the end.
    fn poll_staged(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Stop>>> {
        loop {
            let Some(stage) = &mut self.stage else { return self.poll_incoming(cx) };
            if let Some(frame) = stage.released.pop_front() {
                return Poll::Ready(Some(Ok(frame)));
            }
            if stage.has_ended {
                return Poll::Ready(None);
            }
            let polled = self.poll_incoming(cx)?;
            let has_come = self.incoming.as_ref().is_none_or(http_body::Body::is_end_stream);
            let Some(stage) = &mut self.stage else { continue };
            let Poll::Ready(frame) = polled else {
                if stage.poll_held(cx).map_err(Stop::from)? {
                    continue;
                }
                return Poll::Pending;
            };
            let taken = match frame {
                // The end is known by the length: what is held need not wait until the agent's connection says so.
                Some(frame) if has_come => stage.write(frame).and_then(|()| stage.end()),
                Some(frame) => stage.write(frame),
                None => stage.finish(),
            };
            taken.map_err(Stop::from)?;
        }
    }
}

impl http_body::Body for RequestBody {
    type Data = Chunk;
    type Error = Stop;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Chunk>, Stop>>> {
        if self.incoming.is_none() {
            self.progress.finish();
            return Poll::Ready(self.take_whole().map(|whole| Ok(Frame::data(whole))));
        }
        if let Some(transit) = &self.transit {
            ready!(transit.poll_room(cx));
        }
        let frame = match ready!(self.poll_staged(cx)) {
            Some(Ok(frame)) => frame,
            Some(Err(stop)) => {
                self.progress.break_off(&stop);
                return Poll::Ready(Some(Err(stop)));
            }
            None => {
                self.ended();
                return Poll::Ready(None);
            }
        };
        if self.is_end_stream() {
            self.ended();
        }
        let carry = |bytes| match &self.transit {
            Some(transit) => transit.carry(bytes),
            None => Chunk::free(bytes),
        };
        Poll::Ready(Some(Ok(frame.map_data(carry))))
    }

    fn is_end_stream(&self) -> bool {
        let has_come = self.incoming.as_ref().is_none_or(http_body::Body::is_end_stream);
        // A stage may release more at the end.
        let has_gone = self.stage.as_ref().is_none_or(|stage| stage.has_ended && stage.released.is_empty());
        self.whole.is_none() && has_come && has_gone
    }

    fn size_hint(&self) -> SizeHint {
        let whole = self.whole.as_ref().map_or(0, Bytes::len) as u64;
        match (&self.incoming, &self.stage) {
            (None, _) => SizeHint::with_exact(whole),
            (Some(_), Some(stage)) if !stage.rewrite.keeps_length() => SizeHint::default(),
            (Some(incoming), _) => incoming.size_hint(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use http::{Request, Response, header};
    use http_body_util::BodyExt;
    use hyper::client;
    use hyper::server;
    use hyper::service::service_fn;
    use hyper_util::rt::{TokioExecutor, TokioIo};
    use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};
    use tokio::sync::mpsc;
    use tokio::task::JoinSet;

    use super::*;
    use crate::proxy::budget::Budget;
    use crate::proxy::error::Refusal;
    use crate::telemetry::Metrics;

    #[test]
    fn a_coded_body_holds_no_more_than_what_is_sent_of_it() {
        let budget = Budget::new(Arc::new(Metrics::new().unwrap()));
        let body = || {
            let mut reserved = budget.open(1 << 20);
            reserved.set(130).unwrap();
            let read = RequestBody::read(vec![b'x'; 100].into(), KnownParts::default(), Some(reserved));
            read.sent_as(vec![b'z'; 30].into())
        };
        let held = |change: fn(&mut RequestBody)| {
            let mut body = body();
            assert_eq!((budget.held(), body.length()), (130, Some(30)));
            change(&mut body);
            (budget.held(), body.length(), body.bytes().map(|bytes| bytes[0]))
        };
        assert_eq!(held(RequestBody::send_as_it_came), (30, Some(30), Some(b'z')));
        assert_eq!(held(|body| assert!(body.forget_coding())), (100, Some(100), Some(b'x')));
        assert_eq!(held(|body| body.replace(vec![b'y'; 50].into())), (50, Some(50), Some(b'y')));
    }

    /// Holds one chunk back, and denies a body in which one says no.
    #[derive(Default)]
    struct Holding(Option<Bytes>);

    impl Rewrite for Holding {
        fn write(&mut self, chunk: Bytes, out: &mut Vec<Bytes>) -> Result<(), Refused> {
            if chunk == "no" {
                return Err(Refused::Denied(Denial::builtin("bound", "no")));
            }
            out.extend(self.0.replace(chunk));
            Ok(())
        }

        fn finish(&mut self, out: &mut Vec<Bytes>) -> Result<(), Refused> {
            out.extend(self.0.take());
            Ok(())
        }

        fn is_holding(&self) -> bool {
            self.0.is_some()
        }

        fn let_go(&mut self, out: &mut Vec<Bytes>) -> Result<(), Refused> {
            self.finish(out)
        }
    }

    /// The body of a request with these chunks and a trailer, gone through the rewrite.
    async fn rewritten(tasks: &mut JoinSet<()>, chunks: &[&str]) -> RequestBody {
        begun(tasks, chunks, "0\r\nt: 1\r\n\r\n").await
    }

    /// The body of a request with these chunks, and this behind them.
    async fn begun(tasks: &mut JoinSet<()>, chunks: &[&str], end: &str) -> RequestBody {
        let (mut near, far) = tokio::io::duplex(8 << 10);
        let mut text = "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n".to_owned();
        chunks.iter().for_each(|chunk| text += &format!("{:x}\r\n{chunk}\r\n", chunk.len()));
        near.write_all((text + end).as_bytes()).await.unwrap();
        let (sender, mut bodies) = mpsc::unbounded_channel();
        let service = service_fn(move |request: Request<Incoming>| {
            sender.send(request.into_body()).unwrap();
            std::future::pending::<Result<Response<String>, Infallible>>()
        });
        tasks.spawn(async move {
            let _agent = near;
            let _ = server::conn::http1::Builder::new().serve_connection(TokioIo::new(far), service).await;
        });
        let incoming = bodies.recv().await.unwrap();
        let body = RequestBody::new(incoming, Duration::MAX, &Activity::new());
        body.through(Box::new(Holding::default()))
    }

    /// Sends the body to an upstream over HTTP/1.1.
    async fn send_h1(tasks: &mut JoinSet<()>, body: RequestBody) -> DuplexStream {
        let (near, far) = tokio::io::duplex(8 << 10);
        let (mut sender, connection) = client::conn::http1::handshake(TokioIo::new(near)).await.unwrap();
        tasks.spawn(async { drop(connection.await) });
        let request = Request::post("/").header(header::HOST, "a").body(body).unwrap();
        tasks.spawn(async move { drop(sender.send_request(request).await) });
        far
    }

    fn denies(stop: &Stop) -> bool {
        matches!(stop, Stop::Denied(Refusal { decision, .. }) if decision.why() == "no")
    }

    #[tokio::test]
    async fn what_is_held_of_a_body_of_known_length_goes_on_with_its_last_byte() {
        let (mut near, far) = tokio::io::duplex(8 << 10);
        near.write_all(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc").await.unwrap();
        let (sender, mut bodies) = mpsc::unbounded_channel();
        let service = service_fn(move |request: Request<Incoming>| {
            sender.send(request.into_body()).unwrap();
            std::future::pending::<Result<Response<String>, Infallible>>()
        });
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            let _agent = near;
            let _ = server::conn::http1::Builder::new().serve_connection(TokioIo::new(far), service).await;
        });
        let incoming = bodies.recv().await.unwrap();
        let body = RequestBody::new(incoming, Duration::MAX, &Activity::new());
        let mut body = std::pin::pin!(body.through(Box::new(Holding::default())));
        let frame = std::future::poll_fn(|cx| http_body::Body::poll_frame(body.as_mut(), cx));
        let data = frame.await.unwrap().unwrap().into_data().ok().unwrap();
        assert_eq!(data.into_bytes(), "abc");
        assert!(http_body::Body::is_end_stream(&*body), "the upstream gets it with its end");
    }

    #[tokio::test]
    async fn a_rewrite_may_hold_back_until_the_end_which_trailers_follow() {
        let mut tasks = JoinSet::new();
        let mut body = rewritten(&mut tasks, &["a", "b"]).await;
        assert!(body.is_unmeasured());
        let mut frames = Vec::new();
        while let Some(frame) = body.frame().await {
            assert!(!body.progress().is_finished() || body.is_end_stream());
            frames.push(frame.unwrap().into_data().map_or("trailers".into(), Chunk::into_bytes));
        }
        assert_eq!(frames, ["a", "b", "trailers"]);
        assert!(body.progress().is_finished() && body.progress().stop().is_none());
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_held_goes_on_after_a_second_while_nothing_more_comes() {
        let mut tasks = JoinSet::new();
        let mut body = begun(&mut tasks, &["a", "b"], "").await;
        let start = Instant::now();
        for (chunk, after) in [("a", Duration::ZERO), ("b", LONGEST_HELD)] {
            assert_eq!(body.frame().await.unwrap().unwrap().into_data().unwrap().into_bytes(), chunk);
            assert_eq!(start.elapsed().as_secs(), after.as_secs());
        }
        assert!(!body.is_end_stream() && !body.progress().is_finished());
    }

    #[tokio::test]
    async fn over_http1_a_denial_in_the_middle_closes_the_connection_to_the_upstream() {
        let mut tasks = JoinSet::new();
        let body = rewritten(&mut tasks, &["a", "b", "no", "c"]).await;
        let progress = body.progress();
        let mut sent = String::new();
        send_h1(&mut tasks, body).await.read_to_string(&mut sent).await.unwrap();
        assert!(
            sent.contains("\r\n1\r\na\r\n") && !sent.contains("no") && !sent.ends_with("0\r\n\r\n"),
            "{sent}"
        );
        assert!(denies(&progress.stop().unwrap()) && !progress.is_finished());
    }

    #[tokio::test]
    async fn over_h2_a_denial_in_the_middle_resets_the_stream() {
        let mut tasks = JoinSet::new();
        let (near, far) = tokio::io::duplex(64 << 10);
        let (sender, mut received) = mpsc::unbounded_channel();
        let service = service_fn(move |request: Request<Incoming>| {
            let sender = sender.clone();
            async move {
                let is_whole = request.into_body().collect().await.is_ok();
                sender.send(is_whole).unwrap();
                Ok::<_, Infallible>(Response::new(String::new()))
            }
        });
        let upstream = server::conn::http2::Builder::new(TokioExecutor::new());
        tasks.spawn(async move { drop(upstream.serve_connection(TokioIo::new(far), service).await) });
        let builder = client::conn::http2::Builder::new(TokioExecutor::new());
        let (mut sender, connection) = builder.handshake(TokioIo::new(near)).await.unwrap();
        tasks.spawn(async { drop(connection.await) });
        for (chunks, is_allowed) in [(&["a", "no"][..], false), (&["a", "b"], true)] {
            let body = rewritten(&mut tasks, chunks).await;
            let progress = body.progress();
            let answer = sender.send_request(Request::post("http://a/").body(body).unwrap()).await;
            assert_eq!(answer.is_ok(), is_allowed, "one stream ends, the connection goes on");
            assert_eq!(received.recv().await, Some(is_allowed));
            assert_eq!(progress.stop().is_none_or(|stop| !denies(&stop)), is_allowed);
        }
    }
}
