//! What an answer goes through on its way to the agent: decoded if it came encoded, guarded, scrubbed of real keys.

use std::collections::VecDeque;
use std::sync::Arc;

use bytes::{Buf, Bytes};
use http::{HeaderMap, header};
use http_body::Frame;

use crate::filter::Rewrite;
use crate::filter::scrub::{self, Scrubber, SecretMatcher};
use crate::provider::answer::{Broken, Guard};
use crate::proxy::budget::Reserved;
use crate::proxy::error::{Class, Failure};
use crate::proxy::exchange::record::Record;
use crate::wire::coding::{self, Decoder, Detector, Wrote};

/// One answer's way. A stage that is not needed is not there.
#[derive(Default)]
pub(crate) struct Rewriting {
    /// Until the first bytes have shown how it is coded.
    detector: Option<Detector>,
    decoder: Option<Decoder>,
    /// What came encoded and has not been decoded yet.
    coded: Bytes,
    has_more: bool,
    guarding: Option<Guarding>,
    scrubbing: Option<Scrubbing>,
    chunks: Vec<Bytes>,
    trailers: Option<HeaderMap>,
    broken: Option<Broken>,
}

/// A guard, and the room for what it holds.
pub(crate) struct Guarding {
    pub(crate) guard: Guard,
    pub(crate) reserved: Reserved,
}

impl Guarding {
    /// Tells what the guard has decided since this was called last.
    pub(crate) fn tell(&mut self, record: &mut Record) {
        record.calls(self.guard.take_notes());
        record.blocked(self.guard.take_blocked());
    }

    /// Tells also what the answer said of itself so far.
    pub(crate) fn tell_facts(&mut self, record: &mut Record) {
        self.tell(record);
        record.read(self.guard.facts(), self.guard.normalization());
    }

    /// Tells everything, once the answer has ended or was given up.
    pub(crate) fn tell_all(&mut self, record: &mut Record) {
        self.tell_facts(record);
        if let Some(warning) = self.guard.warning() {
            record.passed(warning);
        }
        record.left_out(self.guard.left_out());
    }
}

struct Scrubbing {
    scrubber: Scrubber,
    needles: Arc<SecretMatcher>,
    scrubbed: Vec<Bytes>,
}

impl Rewriting {
    /// Decodes a body with this head, and makes the head true of what will be sent.
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

    /// Decodes a body as its first bytes show, whatever this head says of it, and makes the head true of what will be
    /// sent.
    ///
    /// # Errors
    /// As for [`Self::decoding`].
    pub(crate) fn detecting(
        &mut self,
        head: &mut HeaderMap,
        limits: coding::Limits,
    ) -> Result<(), coding::Unsupported> {
        let said = Decoder::for_headers(head, limits)?;
        head.remove(header::CONTENT_ENCODING);
        head.remove(header::CONTENT_LENGTH);
        self.detector = Some(Detector::new(said, limits));
        Ok(())
    }

    /// Has a guard look at it, and take out what is denied.
    pub(crate) fn guarding(&mut self, guarding: Guarding) {
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

    /// Whether the answer is as long as the upstream said.
    pub(crate) fn keeps_length(&self) -> bool {
        self.decoder.is_none() && self.guarding.as_ref().is_none_or(|guarding| guarding.guard.observes())
    }

    /// Takes a frame in; while there [is more](Self::has_more) to it, [`Self::go_on`] before the next one.
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

    /// Whether what was taken in decodes to more than has been given out.
    pub(crate) fn has_more(&self) -> bool {
        self.has_more
    }

    /// Decodes a bounded piece of what was taken in: few bytes can stand for gigabytes, which are never held.
    pub(crate) fn go_on(&mut self, out: &mut VecDeque<Frame<Bytes>>) -> Result<(), Failure> {
        let Some(decoder) = &mut self.decoder else { return Ok(()) };
        let (mut rest, mut plain) = (&self.coded[..], Vec::new());
        let wrote = decoder.write(&mut rest, &mut plain).map_err(|_| unreadable())?;
        let used = self.coded.len() - rest.len();
        self.coded.advance(used);
        self.has_more = wrote == Wrote::Full;
        self.guard(plain.into(), out)
    }

    /// The answer has ended: all that was held back follows, trailers last.
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

    /// The upstream broke off: the agent is told what its dialect has for that, if it has a guard.
    pub(crate) fn broken_off(&mut self, out: &mut VecDeque<Frame<Bytes>>) {
        if let Some(guarding) = &mut self.guarding {
            guarding.guard.broken_off(&mut self.chunks);
            let told = self.scrub(out).and_then(|()| self.scrub_rest(out));
            if told.is_err() {
                out.clear();
            }
        }
    }

    /// Why the answer goes no further, where the guard ended it. What the agent is told of it has been given out.
    pub(crate) fn take_broken(&mut self) -> Option<Broken> {
        self.broken.take()
    }

    /// Whether something is held back until more has come.
    pub(crate) fn holds(&self) -> bool {
        self.guarding.as_ref().is_some_and(|guarding| guarding.guard.held() > 0)
    }

    /// Says what keeps the agent waiting, where its dialect has such a thing.
    pub(crate) fn keep_alive(&mut self, out: &mut VecDeque<Frame<Bytes>>) {
        let said = self.guarding.as_mut().and_then(|guarding| guarding.guard.keep_alive());
        // What the provider chose may be in it, so that it is scrubbed as well, in the place that it has.
        self.chunks.extend(said);
        if self.scrub(out).is_err() {
            out.clear();
        }
    }

    /// Tells what the guard has decided since this was called last.
    pub(crate) fn tell(&mut self, record: &mut Record) {
        if let Some(guarding) = &mut self.guarding {
            guarding.tell(record);
        }
    }

    /// Tells what the answer said of itself, once it has ended or was given up.
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
            Some(Guarding { guard, reserved }) => {
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
