//! The stages of an answer on its way to the agent: it is decoded if it came encoded, guarded, and scrubbed of real keys.

use std::collections::VecDeque;
use std::sync::Arc;

use bytes::{Buf, Bytes};
use http::{HeaderMap, header};
use http_body::Frame;

use crate::filter::Rewrite;
use crate::filter::scrub::{self, Scrubber};
use crate::provider::answer::BrokenAnswer;
use crate::proxy::error::{Class, Failure};
use crate::proxy::exchange::enforce::EnforcedGuard;
use crate::proxy::exchange::record::Record;
use crate::secret::SecretMatcher;
use crate::wire::coding::{self, Decoder, Detector, Wrote};

/// The stages of one answer; a stage that is not needed is absent.
#[derive(Default)]
pub(crate) struct Rewriting {
    /// Finds the content coding in the first bytes, then is gone.
    detector: Option<Detector>,
    decoder: Option<Decoder>,
    /// Encoded bytes that have not been decoded yet.
    coded: Bytes,
    has_more: bool,
    /// Boxed: an answer is moved from step to step.
    guarding: Option<Box<EnforcedGuard>>,
    scrubbing: Option<Scrubbing>,
    chunks: Vec<Bytes>,
    trailers: Option<HeaderMap>,
    broken: Option<BrokenAnswer>,
}

struct Scrubbing {
    scrubber: Scrubber,
    needles: Arc<SecretMatcher>,
    scrubbed: Vec<Bytes>,
}

impl Rewriting {
    /// Decodes a body with this head, and corrects the head for the decoded bytes.
    ///
    /// # Errors
    /// For an encoding that is not known, or stacked on another.
    pub(crate) fn decoding(
        &mut self,
        head: &mut HeaderMap,
        limits: coding::Limits,
    ) -> Result<(), coding::Unsupported> {
        if let Some(decoder) = Decoder::for_headers(head, limits)? {
            head.remove(header::CONTENT_ENCODING);
            head.remove(header::CONTENT_LENGTH);
            self.decoder = Some(decoder);
        }
        Ok(())
    }

    /// Decodes a body by its first bytes, whatever its head says, and corrects the head for the decoded bytes.
    ///
    /// # Errors
    /// As for [`Self::decoding`].
    pub(crate) fn detecting(
        &mut self,
        head: &mut HeaderMap,
        limits: coding::Limits,
    ) -> Result<(), coding::Unsupported> {
        let announced = Decoder::for_headers(head, limits)?;
        head.remove(header::CONTENT_ENCODING);
        head.remove(header::CONTENT_LENGTH);
        self.detector = Some(Detector::new(announced, limits));
        Ok(())
    }

    /// Adds a guard, which takes out denied calls.
    pub(crate) fn guarding(&mut self, guarding: Box<EnforcedGuard>) {
        self.guarding = Some(guarding);
    }

    /// Masks real keys in the body with this head, and in the head. An encoding that cannot be decoded is a failure,
    /// and so is a character set that is not ASCII's: the answer could hold the key unseen.
    pub(crate) fn scrubbing(
        &mut self,
        head: &mut HeaderMap,
        needles: Arc<SecretMatcher>,
        limits: coding::Limits,
    ) -> Result<(), Failure> {
        if self.decoder.is_none() {
            self.decoding(head, limits).map_err(|_| unreadable())?;
        }
        check_charset(head)?;
        needles.scrub_head(head);
        let scrubber = Scrubber::of_body(Arc::clone(&needles));
        self.scrubbing = Some(Scrubbing { scrubber, needles, scrubbed: Vec::new() });
        Ok(())
    }

    /// Whether the answer keeps the length that the upstream announced.
    pub(crate) fn keeps_length(&self) -> bool {
        self.decoder.is_none() && self.guarding.as_ref().is_none_or(|guarding| guarding.guard.observes())
    }

    /// Takes a frame. While it [has more](Self::has_more), [`Self::go_on`] comes before the next one.
    pub(crate) fn frame(
        &mut self,
        frame: Frame<Bytes>,
        out: &mut VecDeque<Frame<Bytes>>,
    ) -> Result<(), Failure> {
        match frame.into_data() {
            Ok(data) => match &mut self.detector {
                None => self.data(data, out),
                Some(detector) => {
                    let Some((decoder, data)) = detector.take(data) else { return Ok(()) };
                    (self.detector, self.decoder) = (None, decoder);
                    self.data(data, out)
                }
            },
            Err(frame) => {
                if let Ok(mut trailers) = frame.into_trailers() {
                    if let Some(scrubbing) = &self.scrubbing {
                        scrubbing.needles.scrub_head(&mut trailers);
                    }
                    self.trailers = Some(trailers);
                }
                Ok(())
            }
        }
    }

    fn data(&mut self, data: Bytes, out: &mut VecDeque<Frame<Bytes>>) -> Result<(), Failure> {
        if self.decoder.is_none() {
            return self.guard(data, out);
        }
        self.coded = data;
        self.go_on(out)
    }

    /// Whether the taken bytes decode to more than has been released.
    pub(crate) fn has_more(&self) -> bool {
        self.has_more
    }

    /// Decodes a bounded piece of the taken bytes: few bytes can stand for gigabytes, which are never held.
    pub(crate) fn go_on(&mut self, out: &mut VecDeque<Frame<Bytes>>) -> Result<(), Failure> {
        let Some(decoder) = &mut self.decoder else { return Ok(()) };
        let (mut rest, mut plain) = (&self.coded[..], Vec::new());
        let wrote = decoder.write(&mut rest, &mut plain).map_err(|_| unreadable())?;
        let used = self.coded.len() - rest.len();
        self.coded.advance(used);
        self.has_more = wrote == Wrote::Full;
        self.guard(plain.into(), out)
    }

    /// Ends the answer: releases all that was held back, trailers last.
    pub(crate) fn finish(&mut self, out: &mut VecDeque<Frame<Bytes>>) -> Result<(), Failure> {
        if let Some(mut detector) = self.detector.take() {
            let (decoder, data) = detector.end();
            self.decoder = decoder;
            self.data(data, out)?;
            while self.has_more {
                self.go_on(out)?;
            }
        }
        if let Some(mut decoder) = self.decoder.take() {
            decoder.finish().map_err(|_| unreadable())?;
        }
        if let Some(guarding) = &mut self.guarding {
            self.broken = guarding.guard.finish(&mut self.chunks).err();
            self.scrub(out)?;
        }
        self.scrub_rest(out)
    }

    /// Ends an answer that the upstream broke off: a guard writes its dialect's message about it.
    pub(crate) fn broken_off(&mut self, out: &mut VecDeque<Frame<Bytes>>) {
        if let Some(guarding) = &mut self.guarding {
            guarding.guard.broken_off(&mut self.chunks);
            let told = self.scrub(out).and_then(|()| self.scrub_rest(out));
            if told.is_err() {
                out.clear();
            }
        }
    }

    /// Returns why the guard ended the answer, if it did. The message to the agent has been released.
    pub(crate) fn take_broken(&mut self) -> Option<BrokenAnswer> {
        self.broken.take()
    }

    /// Whether something is held back until more has come.
    pub(crate) fn holds(&self) -> bool {
        self.guarding.as_ref().is_some_and(|guarding| guarding.guard.held() > 0)
    }

    /// Writes a sign of life, where the dialect has one.
    pub(crate) fn keep_alive(&mut self, out: &mut VecDeque<Frame<Bytes>>) {
        let ping = self.guarding.as_mut().and_then(|guarding| guarding.guard.keep_alive());
        // It may repeat text of the provider, so that it is scrubbed too, in its order.
        self.chunks.extend(ping);
        if self.scrub(out).is_err() {
            out.clear();
        }
    }

    /// Records what the guard has decided since the last call.
    pub(crate) fn tell(&mut self, record: &mut Record) {
        if let Some(guarding) = &mut self.guarding {
            guarding.tell(record);
        }
    }

    /// Records the facts of the answer, once it has ended or was given up.
    pub(crate) fn tell_all(&mut self, record: &mut Record) {
        if let Some(guarding) = &mut self.guarding {
            guarding.tell_all(record);
        }
    }

    fn guard(&mut self, plain: Bytes, out: &mut VecDeque<Frame<Bytes>>) -> Result<(), Failure> {
        if plain.is_empty() || self.broken.is_some() {
            return Ok(());
        }
        match &mut self.guarding {
            None => self.chunks.push(plain),
            Some(guarding) => {
                let EnforcedGuard { guard, reserved, .. } = &mut **guarding;
                self.broken = guard.write(plain, &mut self.chunks).err();
                if reserved.set(guard.kept_bytes()).is_err() {
                    self.broken = guard.exhausted(&mut self.chunks).err();
                }
            }
        }
        self.scrub(out)?;
        if self.broken.is_some() { self.scrub_rest(out) } else { Ok(()) }
    }

    fn scrub(&mut self, out: &mut VecDeque<Frame<Bytes>>) -> Result<(), Failure> {
        let chunks = self.chunks.drain(..).filter(|chunk| !chunk.is_empty());
        let Some(scrubbing) = &mut self.scrubbing else {
            out.extend(chunks.map(Frame::data));
            return Ok(());
        };
        for chunk in chunks {
            scrubbing.scrubber.write(chunk, &mut scrubbing.scrubbed).map_err(|_| unreadable())?;
        }
        scrubbing.release(out);
        Ok(())
    }

    fn scrub_rest(&mut self, out: &mut VecDeque<Frame<Bytes>>) -> Result<(), Failure> {
        if let Some(scrubbing) = &mut self.scrubbing {
            scrubbing.scrubber.finish(&mut scrubbing.scrubbed).map_err(|_| unreadable())?;
            scrubbing.release(out);
        }
        out.extend(self.trailers.take().map(Frame::trailers));
        Ok(())
    }
}

impl Scrubbing {
    fn release(&mut self, out: &mut VecDeque<Frame<Bytes>>) {
        out.extend(self.scrubbed.drain(..).filter(|chunk| !chunk.is_empty()).map(Frame::data));
    }
}

/// Refuses an answer with this head where its character set is not ASCII's: a key could stand in it unseen.
pub(crate) fn check_charset(head: &HeaderMap) -> Result<(), Failure> {
    if scrub::is_ascii_compatible(head) { Ok(()) } else { Err(unreadable()) }
}

fn unreadable() -> Failure {
    Failure::new(
        Class::Encoding,
        "the upstream's answer is encoded in a way that cannot be checked for the key",
    )
}
