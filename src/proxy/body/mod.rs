//! The answer's body: streams to the agent, counted, bounded in silence, rewritten if need be.

pub(crate) mod begun;
pub(crate) mod coalesce;
pub(crate) mod request;
pub(crate) mod rewriting;
pub(crate) mod silence;
pub(crate) mod transit;

use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use http_body::{Body as _, Frame, SizeHint};
use hyper::body::Incoming;
use tokio::time::Sleep;

use crate::call::Denial;
use crate::filter::bound::SizeBound;
use crate::proxy::budget::Reserved;
use crate::proxy::error::{Class, Failure, Stop};
use crate::proxy::exchange::head::without_forbidden_trailers;
use crate::proxy::exchange::record::Record;
use crate::proxy::upstream::H1Body;
use begun::BegunBody;
use coalesce::Source;
use rewriting::Rewriting;
use silence::{HUNGRY, Silence, Watchdog};
use transit::{Chunk, Transit};

/// The body of the agent's answer.
pub(crate) struct Body {
    source: Source,
    rewriting: Option<Box<Rewriting>>,
    /// Frames that a rewrite made of one chunk, still to be sent.
    ready: VecDeque<Frame<Bytes>>,
    /// The failure that follows the frames which are ready.
    failing: Option<Failure>,
    /// The time that hyper has to send the message about the failure.
    telling: Option<Pin<Box<Sleep>>>,
    record: Option<Box<Record>>,
    silence: Silence,
    watchdog: Watchdog,
    /// Counts the bytes that have been read and not yet written to the agent.
    transit: Option<Transit>,
    /// The reserved memory of a body that is held whole.
    reserved: Option<Reserved>,
    /// The bound of an answer that is to be held whole.
    bound: Option<SizeBound>,
}

/// The next frame that goes on, or the end.
type Polled = Poll<Option<Result<Frame<Chunk>, Stop>>>;

impl Body {
    /// A text of the gateway.
    pub(crate) fn own(text: impl Into<Bytes>) -> Self {
        let text = text.into();
        Self::over(Source::own((!text.is_empty()).then_some(text)), Duration::MAX)
    }

    /// An answer that was held whole, and its reserved memory until it is sent.
    pub(crate) fn whole(bytes: Bytes, reserved: Reserved) -> Self {
        Self::own(bytes).holding(reserved)
    }

    /// The same, with reserved memory until it is sent.
    pub(crate) fn holding(mut self, reserved: Reserved) -> Self {
        self.reserved = Some(reserved);
        self
    }

    /// The same, counted on its way to the agent.
    pub(crate) fn counted(mut self, transit: Transit) -> Self {
        self.transit = Some(transit);
        self
    }

    /// A body that comes over HTTP/1.1.
    pub(crate) fn h1(body: H1Body, idle: Duration) -> Self {
        Self::over(Source::h1(body), idle)
    }

    /// A body that comes over HTTP/2.
    pub(crate) fn h2(body: Incoming, idle: Duration) -> Self {
        Self::over(Source::h2(body), idle)
    }

    /// An answer that began before the agent was told of it. What comes of the upstream is watched there.
    pub(crate) fn begun(body: BegunBody) -> Self {
        Self::over(Source::begun(body), Duration::MAX)
    }

    fn over(source: Source, idle: Duration) -> Self {
        Self {
            source,
            rewriting: None,
            ready: VecDeque::new(),
            failing: None,
            telling: None,
            record: None,
            silence: Silence::new(idle),
            watchdog: Watchdog::new(HUNGRY),
            transit: None,
            reserved: None,
            bound: None,
        }
    }

    /// The same within a bound.
    ///
    /// # Errors
    /// Where the body says that it is longer: nothing of it is read.
    pub(crate) fn bounded(mut self, bound: SizeBound) -> Result<Self, Denial> {
        bound.clone().take(self.size_hint().lower())?;
        self.bound = Some(bound);
        Ok(self)
    }

    fn check_bound(&mut self, frame: &Frame<Bytes>) -> Result<(), Denial> {
        let (Some(bound), Some(data)) = (&mut self.bound, frame.data_ref()) else { return Ok(()) };
        bound.take(data.len() as u64)
    }

    /// The stages that the body runs through.
    pub(crate) fn rewriting(&mut self) -> &mut Rewriting {
        self.rewriting.get_or_insert_default()
    }

    /// Reports the end of the body to the record.
    pub(crate) fn recorded(mut self, record: Box<Record>) -> Self {
        self.record = Some(record);
        if self.is_end_stream() {
            self.end(None);
        }
        self
    }

    fn end(&mut self, failure: Option<&Failure>) {
        if let Some(mut record) = self.record.take() {
            if let Some(rewriting) = &mut self.rewriting {
                rewriting.tell_all(&mut record);
            }
            record.body_ended(failure);
        }
    }

    fn fail(&mut self, failure: Failure) -> Polled {
        self.source.end();
        self.ready.clear();
        self.end(Some(&failure));
        Poll::Ready(Some(Err(failure.into())))
    }

    /// Takes one frame of the source: it passes, or goes through the rewrite into `ready`.
    fn take_in(&mut self, frame: Frame<Bytes>) -> Result<Option<Frame<Bytes>>, Failure> {
        self.silence.broken();
        let frame = without_forbidden_trailers(frame);
        let Some(rewriting) = &mut self.rewriting else { return Ok(Some(frame)) };
        rewriting.frame(frame, &mut self.ready)?;
        let is_taken = !rewriting.has_more();
        self.rewrote();
        // A reader that knows the length polls no further, so that the rewrite finishes now.
        if is_taken && self.source.is_used_up() {
            self.finish()?;
        }
        Ok(None)
    }

    /// Records what a rewrite found. If it ended the answer, the source is not read further.
    fn rewrote(&mut self) {
        let Some(rewriting) = &mut self.rewriting else { return };
        let broken = rewriting.take_broken();
        if let Some(record) = &mut self.record {
            rewriting.tell(record);
            if let Some(broken) = &broken {
                record.answer_terminated(broken);
                rewriting.tell_all(record);
            }
        }
        if broken.is_some() {
            self.rewriting = None;
            self.source.end();
        }
    }

    /// Ends the source and releases what the rewrite held back.
    fn finish(&mut self) -> Result<(), Failure> {
        self.source.end();
        let Some(rewriting) = &mut self.rewriting else { return Ok(()) };
        rewriting.finish(&mut self.ready)?;
        self.rewrote();
        if let (Some(mut rewriting), Some(record)) = (self.rewriting.take(), &mut self.record) {
            rewriting.tell_all(record);
        }
        Ok(())
    }

    /// Ends a body whose source broke off: the agent reads a message where its dialect has one, then the failure.
    fn break_off(&mut self) -> Result<(), Failure> {
        let failure = Failure::new(Class::Exchange, "the upstream broke off its answer");
        if let Some(rewriting) = &mut self.rewriting {
            rewriting.broken_off(&mut self.ready);
            self.rewrote();
        }
        if self.ready.is_empty() {
            return Err(failure);
        }
        self.source.end();
        self.failing = Some(failure);
        self.telling = Some(Box::pin(tokio::time::sleep(TELLING)));
        Ok(())
    }

    fn hand_out(&mut self, frame: Frame<Bytes>) -> Polled {
        if let (Some(record), Some(data)) = (&mut self.record, frame.data_ref()) {
            record.count_received(data.len());
        }
        // While something is held, comments of the upstream may go on: no client counts those.
        if !self.rewriting.as_ref().is_some_and(|rewriting| rewriting.holds()) {
            self.watchdog.fed();
        }
        let is_last = self.ready.is_empty() && self.rewriting.is_none() && self.failing.is_none();
        if is_last && self.source.is_used_up() {
            self.end(None);
        }
        Poll::Ready(Some(Ok(frame.map_data(|bytes| self.carry(bytes)))))
    }

    /// Counts a piece until hyper has written it.
    fn carry(&mut self, bytes: Bytes) -> Chunk {
        match (self.reserved.take(), &self.transit) {
            (Some(reserved), _) => Chunk::reserved(bytes, reserved),
            (None, Some(transit)) => transit.carry(bytes),
            (None, None) => Chunk::free(bytes),
        }
    }

    /// Whether something was held for so long that the agent needs a sign of life.
    fn poll_hungry(&mut self, cx: &mut Context<'_>) -> bool {
        let Some(rewriting) = self.rewriting.as_mut().filter(|rewriting| rewriting.holds()) else {
            return false;
        };
        if !self.watchdog.poll_hungry(cx) {
            return false;
        }
        self.watchdog.fed();
        rewriting.keep_alive(&mut self.ready);
        true
    }
}

impl http_body::Body for Body {
    type Data = Chunk;
    type Error = Stop;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Polled {
        let this = self.get_mut();
        if let Some(transit) = &this.transit {
            // An agent that does not read makes its upstream wait, not this process grow.
            ready!(transit.poll_room(cx));
        }
        loop {
            if let Some(frame) = this.ready.pop_front() {
                return this.hand_out(frame);
            }
            if let Some(failure) = this.failing.take() {
                if this.telling.as_mut().is_some_and(|telling| telling.as_mut().poll(cx).is_pending()) {
                    this.failing = Some(failure);
                    return Poll::Pending;
                }
                return this.fail(failure);
            }
            if let Some(rewriting) = this.rewriting.as_mut().filter(|rewriting| rewriting.has_more()) {
                match rewriting.go_on(&mut this.ready) {
                    Ok(()) => this.rewrote(),
                    Err(failure) => return this.fail(failure),
                }
                continue;
            }
            if this.source.is_over() && this.rewriting.is_none() {
                this.end(None);
                return Poll::Ready(None);
            }
            let step = match this.source.poll(cx) {
                Poll::Ready(Some(Ok(frame))) => match this.check_bound(&frame) {
                    Ok(()) => this.take_in(frame),
                    Err(denial) => return Poll::Ready(Some(Err(denial.into()))),
                },
                Poll::Ready(Some(Err(_))) => this.break_off().map(|()| None),
                Poll::Ready(None) => this.finish().map(|()| None),
                Poll::Pending if this.poll_hungry(cx) => continue,
                Poll::Pending if this.silence.poll_too_long(cx) => {
                    Err(Failure::new(Class::Idle, "the upstream said nothing for too long"))
                }
                Poll::Pending => return Poll::Pending,
            };
            match step {
                Ok(Some(frame)) => return this.hand_out(frame),
                Ok(None) => {}
                Err(failure) => return this.fail(failure),
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.ready.is_empty() && self.rewriting.is_none() && self.failing.is_none() && self.source.has_ended()
    }

    fn size_hint(&self) -> SizeHint {
        if self.rewriting.as_ref().is_some_and(|rewriting| !rewriting.keeps_length()) {
            return SizeHint::default();
        }
        if self.source.is_over() {
            let ready = self.ready.iter().filter_map(Frame::data_ref);
            return SizeHint::with_exact(ready.map(|data| data.len() as u64).sum());
        }
        self.source.size_hint()
    }
}

impl Drop for Body {
    /// Records what was read of an answer whose agent hung up.
    fn drop(&mut self) {
        if let (Some(rewriting), Some(record)) = (&mut self.rewriting, &mut self.record) {
            rewriting.tell_all(record);
        }
    }
}

/// How long a body waits between its message about a failure and the failure: hyper drops frames that it has not sent
/// yet.
const TELLING: Duration = Duration::from_millis(20);

#[cfg(test)]
mod tests {
    use http::Request;
    use http_body_util::BodyExt;
    use hyper::service::service_fn;
    use hyper_util::rt::TokioIo;
    use tokio::io::AsyncWriteExt;

    use super::*;
    use crate::call::{Api, Dialect, RequestFacts, Service, Vendor};
    use crate::provider;
    use crate::provider::adapter::ModelRequestHead;
    use crate::provider::answer::Guard;
    use crate::provider::answer::testing::{Names, settings};
    use crate::proxy::exchange::enforce::{Allowance, EnforcedGuard};
    use crate::proxy::testing::gateway;

    /// A body that comes and does not end, under the guard of this dialect.
    fn guarded(incoming: Incoming, dialect: Dialect, api: Api) -> Body {
        let service = Service { vendor: Vendor::OpenAi, api, dialect: Some(dialect) };
        let asked = ModelRequestHead { service, path: "/", query: None, is_subscription: false };
        let facts = RequestFacts { stream: true, ..RequestFacts::default() };
        let adapter = provider::adapter(dialect);
        let framing = adapter.framing(&asked, &facts, "text/event-stream");
        let guard =
            Guard::new(adapter.transcript(&asked, &facts).unwrap(), framing, settings(Names::default()));
        let gateway = gateway("{}");
        let reserved = gateway.budget.open(1 << 20);
        let allowance = Allowance::new(&gateway, None);
        let mut body = Body::h2(incoming, Duration::MAX);
        body.rewriting().guarding(Box::new(EnforcedGuard::new(guard, reserved, allowance)));
        body.watchdog = Watchdog::new(Duration::from_millis(1));
        body
    }

    /// The first pieces that come of a body in which nothing follows this stream.
    async fn first_pieces(stream: String, dialect: Dialect, api: Api, count: usize) -> Vec<Bytes> {
        let (mut near, far) = tokio::io::duplex(1 << 16);
        let length = stream.len();
        let head = "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";
        near.write_all(format!("{head}{length:x}\r\n{stream}\r\n").as_bytes()).await.unwrap();
        let (sender, mut pieces) = tokio::sync::mpsc::unbounded_channel();
        let service = service_fn(move |request: Request<Incoming>| {
            let sender = sender.clone();
            async move {
                let mut body = guarded(request.into_body(), dialect, api);
                while let Some(Ok(frame)) = body.frame().await {
                    sender.send(frame.into_data().unwrap().into_bytes()).unwrap();
                }
                Ok::<_, std::convert::Infallible>(http::Response::new(String::new()))
            }
        });
        let connection =
            hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(far), service);
        let mut found = Vec::new();
        tokio::select! {
            _ = connection => panic!("the connection ended"),
            () = async {
                while found.len() < count {
                    found.push(pieces.recv().await.unwrap());
                }
            } => found,
        }
    }

    #[tokio::test]
    async fn an_agent_hears_a_ping_while_a_call_is_held() {
        let start = r#"{"type":"message_start","message":{"content":[]}}"#;
        let call = r#"{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"t","name":"Held","input":{}}}"#;
        let passes = format!("event: message_start\ndata: {start}\n\n");
        let stream = format!("{passes}event: content_block_start\ndata: {call}\n\n");
        let ping = Bytes::from_static(b"event: ping\ndata: {\"type\": \"ping\"}\n\n");

        let pieces = first_pieces(stream, Dialect::Anthropic, Api::Messages, 3).await;

        assert_eq!(pieces, [Bytes::from(passes), ping.clone(), ping]);
    }

    #[tokio::test]
    async fn an_agent_of_responses_hears_an_event_in_the_place_of_every_fourth_comment() {
        let created = r#"{"type":"response.created","response":{"id":"r","output":[]},"sequence_number":0}"#;
        let item = r#"{"type":"function_call","id":"f","call_id":"c","name":"Held","arguments":""}"#;
        let added = format!(
            r#"{{"type":"response.output_item.added","output_index":0,"item":{item},"sequence_number":1}}"#
        );
        let passes = format!("event: response.created\ndata: {created}\n\n");
        let stream = format!("{passes}event: response.output_item.added\ndata: {added}\n\n");

        let pieces = first_pieces(stream, Dialect::OpenAIResponses, Api::Responses, 9).await;

        let is_event = |piece: &Bytes| {
            let text = String::from_utf8_lossy(piece);
            text.starts_with("event: response.in_progress\n") && text.contains("\"sequence_number\":0")
        };
        assert_eq!(pieces[0], passes);
        let events: Vec<usize> = (1..9).filter(|at| is_event(&pieces[*at])).collect();
        assert_eq!(events, [4, 8], "{pieces:?}");
        let comment = Bytes::from_static(b": keep-alive\n\n");
        assert_eq!(pieces.iter().filter(|piece| **piece == comment).count(), 6);
    }

    #[tokio::test]
    async fn an_agent_of_chat_hears_a_comment_while_a_call_is_held() {
        let call = r#"{"index":0,"id":"c","type":"function","function":{"name":"Held","arguments":""}}"#;
        let chunk = format!(
            r#"{{"choices":[{{"index":0,"delta":{{"tool_calls":[{call}]}},"finish_reason":null}}]}}"#
        );

        let pieces =
            first_pieces(format!("data: {chunk}\n\n"), Dialect::OpenAIChat, Api::ChatCompletions, 2).await;

        assert_eq!(pieces, [&b": keep-alive\n\n"[..]; 2]);
    }
}
