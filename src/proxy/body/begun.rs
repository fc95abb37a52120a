//! An answer of which the agent is told once it has begun: until then another model can be asked instead.

use std::collections::VecDeque;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use http_body::Body as _;
use tokio::time::{Instant, Sleep};

use super::Body;
use super::coalesce::BrokenOff;
use crate::call::turn::AnswerFailure;

/// How long an answer that has begun is silent before the agent hears a sign of life.
const SILENCE: Duration = Duration::from_secs(15);

/// How many pieces behind the end of an answer are read.
const DRAINED: usize = 8;

/// Reads an answer on its way, and says when it has begun.
pub(crate) trait AnswerReader: Send {
    /// Takes a piece of the body. What the agent gets of it goes to `out`.
    fn write(&mut self, piece: Bytes, out: &mut VecDeque<Bytes>);

    /// The body has ended.
    fn finish(&mut self, out: &mut VecDeque<Bytes>);

    /// The other side went away, or said nothing for too long.
    fn broken_off(&mut self, out: &mut VecDeque<Bytes>);

    /// Begins the answer, although nothing of it has come.
    fn begin(&mut self, out: &mut VecDeque<Bytes>);

    /// A sign of life, where the dialect has one.
    fn ping(&mut self, out: &mut VecDeque<Bytes>);

    fn stage(&self) -> AnswerStage;

    /// Whether the model has said anything, although nothing of it goes to the agent: reasoning that it does not read.
    fn has_piece(&self) -> bool;

    /// Why it failed, if it did.
    fn failure(&mut self) -> Option<AnswerFailure>;

    /// Whether it failed for want of the gateway's own memory.
    fn is_exhausted(&self) -> bool;
}

/// How far an answer has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AnswerStage {
    /// Nothing of it goes to the agent yet.
    Waiting,
    Begun,
    /// Nothing went to the agent, and nothing will.
    Failed,
    /// All went to the agent; what follows does not.
    Over,
}

/// The body of an upstream's answer behind its reader.
pub(crate) struct BegunBody {
    body: Body,
    reader: Box<dyn AnswerReader>,
    ready: VecDeque<Bytes>,
    silence: Pin<Box<Sleep>>,
    has_ended: bool,
    /// The other side went away, and the agent is to see that.
    is_broken: bool,
}

/// How the wait for an answer ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Beginning {
    Begun,
    Failed,
    /// It failed for want of the gateway's own memory.
    Exhausted,
    /// Nothing came in time.
    Late,
}

impl BegunBody {
    pub(crate) fn new(body: Body, reader: Box<dyn AnswerReader>) -> Self {
        let silence = Box::pin(tokio::time::sleep(SILENCE));
        Self { body, reader, ready: VecDeque::new(), silence, has_ended: false, is_broken: false }
    }

    /// Reads until the answer begins or fails. Of what has its first piece by `until`, nothing that begins by `latest` is
    /// late; with `begins_at`, it begins then, whatever has come.
    pub(crate) async fn wait(
        &mut self,
        (until, latest): (Instant, Instant),
        mut begins_at: Option<Instant>,
    ) -> Beginning {
        loop {
            match self.reader.stage() {
                AnswerStage::Waiting if self.has_ended => return Beginning::Failed,
                AnswerStage::Waiting => {}
                AnswerStage::Begun | AnswerStage::Over => return Beginning::Begun,
                AnswerStage::Failed if self.reader.is_exhausted() => return Beginning::Exhausted,
                AnswerStage::Failed => return Beginning::Failed,
            }
            let last = if self.reader.has_piece() { latest } else { until };
            let due = begins_at.map_or(last, |at| at.min(last));
            let read = tokio::time::timeout_at(due, poll_fn(|cx| self.poll_read(cx)));
            if read.await.is_err() {
                if due >= last {
                    return Beginning::Late;
                }
                // Once: an answer that is wanted whole has nothing to begin with.
                begins_at = None;
                self.reader.begin(&mut self.ready);
            }
        }
    }

    /// Why it failed, if it did.
    pub(crate) fn failure(&mut self) -> Option<AnswerFailure> {
        self.reader.failure()
    }

    pub(super) fn has_ended(&self) -> bool {
        self.has_ended && self.ready.is_empty() && !self.is_broken
    }

    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, BrokenOff>>> {
        loop {
            if let Some(piece) = self.ready.pop_front() {
                self.silence.as_mut().reset(Instant::now() + SILENCE);
                return Poll::Ready(Some(Ok(piece)));
            }
            if std::mem::take(&mut self.is_broken) {
                return Poll::Ready(Some(Err(BrokenOff)));
            }
            if self.has_ended {
                return Poll::Ready(None);
            }
            match self.reader.stage() {
                AnswerStage::Waiting | AnswerStage::Begun => {}
                AnswerStage::Over => {
                    self.drain(cx);
                    return Poll::Ready(None);
                }
                AnswerStage::Failed => {
                    self.has_ended = true;
                    return Poll::Ready(Some(Err(BrokenOff)));
                }
            }
            if self.poll_read(cx).is_pending() {
                ready!(self.silence.as_mut().poll(cx));
                self.silence.as_mut().reset(Instant::now() + SILENCE);
                self.reader.ping(&mut self.ready);
            }
        }
    }

    /// Reads what is there behind the end of an answer, so that its connection can be used again.
    fn drain(&mut self, cx: &mut Context<'_>) {
        for _ in 0..DRAINED {
            if self.has_ended || self.poll_read(cx).is_pending() {
                return;
            }
        }
    }

    /// Gives the next piece to the reader.
    fn poll_read(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        match ready!(Pin::new(&mut self.body).poll_frame(cx)) {
            Some(Ok(frame)) => {
                if let Ok(data) = frame.into_data() {
                    self.reader.write(data.into_bytes(), &mut self.ready);
                }
            }
            Some(Err(_)) => {
                self.has_ended = true;
                self.reader.broken_off(&mut self.ready);
                // A reader that has told the agent is over; else the break itself goes on.
                self.is_broken = self.reader.stage() == AnswerStage::Begun;
            }
            None => {
                self.has_ended = true;
                self.reader.finish(&mut self.ready);
            }
        }
        Poll::Ready(())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;

    /// Is over with the first piece, and notes whether the body was read to its end.
    struct OnePiece {
        is_over: bool,
        is_finished: Arc<AtomicBool>,
    }

    impl AnswerReader for OnePiece {
        fn write(&mut self, piece: Bytes, out: &mut VecDeque<Bytes>) {
            self.is_over = true;
            out.push_back(piece);
        }

        fn finish(&mut self, _: &mut VecDeque<Bytes>) {
            self.is_finished.store(true, Ordering::Relaxed);
        }

        fn broken_off(&mut self, _: &mut VecDeque<Bytes>) {}

        fn begin(&mut self, _: &mut VecDeque<Bytes>) {}

        fn ping(&mut self, _: &mut VecDeque<Bytes>) {}

        fn stage(&self) -> AnswerStage {
            if self.is_over { AnswerStage::Over } else { AnswerStage::Waiting }
        }

        fn has_piece(&self) -> bool {
            self.is_over
        }

        fn failure(&mut self) -> Option<AnswerFailure> {
            None
        }

        fn is_exhausted(&self) -> bool {
            false
        }
    }

    #[tokio::test]
    async fn a_body_is_read_to_its_end_behind_the_end_of_the_answer() {
        let is_finished = Arc::new(AtomicBool::new(false));
        let reader = OnePiece { is_over: false, is_finished: Arc::clone(&is_finished) };
        let mut body = BegunBody::new(Body::own("all"), Box::new(reader));
        let soon = Instant::now() + SILENCE;
        assert_eq!(body.wait((soon, soon), None).await, Beginning::Begun);
        assert!(matches!(poll_fn(|cx| body.poll(cx)).await, Some(Ok(piece)) if piece == "all"));
        assert!(!is_finished.load(Ordering::Relaxed));
        assert!(poll_fn(|cx| body.poll(cx)).await.is_none());
        assert!(is_finished.load(Ordering::Relaxed), "its connection could not be used again");
    }
}
