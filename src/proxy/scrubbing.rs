//! Takes the real key out of an answer: decoded if it came encoded, then scrubbed.

use std::collections::VecDeque;
use std::sync::Arc;

use bytes::{Buf, Bytes};
use http::{HeaderMap, header};
use http_body::Frame;

use super::error::{Class, Failure};
use crate::filter::Rewrite;
use crate::filter::scrub::{Needles, Scrubber};
use crate::wire::coding::{self, Decoder, Wrote};

/// One answer's way through decoder and scrubber.
pub(crate) struct Scrubbing {
    decoder: Option<Decoder>,
    /// What came encoded and has not been decoded yet.
    coded: Bytes,
    has_more: bool,
    scrubber: Scrubber,
    needles: Arc<Needles>,
    scrubbed: Vec<Bytes>,
    trailers: Option<HeaderMap>,
}

impl Scrubbing {
    /// Prepares for a body with this head, and makes the head true of what will be sent. An encoding that cannot be
    /// decoded is a failure: the answer could hold the key unseen.
    pub(crate) fn of(
        head: &mut HeaderMap,
        needles: Arc<Needles>,
        limits: coding::Limits,
    ) -> Result<Self, Failure> {
        let decoder = Decoder::for_headers(head, limits).map_err(|_| unreadable())?;
        if decoder.is_some() {
            head.remove(header::CONTENT_ENCODING);
            head.remove(header::CONTENT_LENGTH);
        }
        needles.scrub_head(head);
        let scrubber = Scrubber::new(Arc::clone(&needles));
        let (coded, scrubbed) = (Bytes::new(), Vec::new());
        Ok(Self { decoder, coded, has_more: false, scrubber, needles, scrubbed, trailers: None })
    }

    /// Whether the answer is as long as the upstream said.
    pub(crate) fn keeps_length(&self) -> bool {
        self.decoder.is_none()
    }

    /// Takes a frame in; while there [is more](Self::has_more) to it, [`Self::go_on`] before the next one.
    pub(crate) fn frame(
        &mut self,
        frame: Frame<Bytes>,
        out: &mut VecDeque<Frame<Bytes>>,
    ) -> Result<(), Failure> {
        match frame.into_data() {
            Ok(data) if self.decoder.is_none() => self.scrub(data, out),
            Ok(data) => {
                self.coded = data;
                self.go_on(out)
            }
            Err(frame) => {
                if let Ok(mut trailers) = frame.into_trailers() {
                    self.needles.scrub_head(&mut trailers);
                    self.trailers = Some(trailers);
                }
                Ok(())
            }
        }
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
        self.scrub(plain.into(), out)
    }

    /// The answer has ended: all that was held back follows, trailers last.
    pub(crate) fn finish(&mut self, out: &mut VecDeque<Frame<Bytes>>) -> Result<(), Failure> {
        if let Some(mut decoder) = self.decoder.take() {
            decoder.finish().map_err(|_| unreadable())?;
        }
        self.scrubber.finish(&mut self.scrubbed).map_err(|_| unreadable())?;
        self.release(out);
        out.extend(self.trailers.take().map(Frame::trailers));
        Ok(())
    }

    fn scrub(&mut self, plain: Bytes, out: &mut VecDeque<Frame<Bytes>>) -> Result<(), Failure> {
        if !plain.is_empty() {
            self.scrubber.write(plain, &mut self.scrubbed).map_err(|_| unreadable())?;
            self.release(out);
        }
        Ok(())
    }

    fn release(&mut self, out: &mut VecDeque<Frame<Bytes>>) {
        out.extend(self.scrubbed.drain(..).filter(|chunk| !chunk.is_empty()).map(Frame::data));
    }
}

fn unreadable() -> Failure {
    Failure::new(
        Class::Encoding,
        "the upstream's answer is encoded in a way that cannot be checked for the key",
    )
}
