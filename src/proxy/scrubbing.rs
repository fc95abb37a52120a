//! Takes the real key out of an answer: decoded if it came encoded, then scrubbed.

use std::collections::VecDeque;

use bytes::Bytes;
use http::{HeaderMap, header};
use http_body::Frame;

use super::error::{Class, Failure};
use crate::filter::Rewrite;
use crate::filter::scrub::Scrubber;
use crate::wire::coding::{self, Decoder};

/// One answer's way through decoder and scrubber.
pub(crate) struct Scrubbing {
    decoder: Option<Decoder>,
    scrubber: Scrubber,
    scrubbed: Vec<Bytes>,
    trailers: Option<HeaderMap>,
}

/// What is decoded before it is scrubbed and passed on: a bomb never stands in memory whole.
const DECODED: usize = 64 << 10;

impl Scrubbing {
    /// Prepares for a body with this head, and makes the head true of what will be sent. An encoding that cannot be
    /// decoded is a failure: the answer could hold the key unseen.
    pub(crate) fn of(head: &mut HeaderMap, scrubber: Scrubber, limits: coding::Limits) -> Result<Self, Failure> {
        let mut encodings = head.get_all(header::CONTENT_ENCODING).iter();
        let decoder = match (encodings.next(), encodings.next()) {
            (None, _) => None,
            (Some(one), None) => {
                let name = one.to_str().map_err(|_| unreadable())?;
                Decoder::for_header(name, limits).map_err(|_| unreadable())?
            }
            (Some(_), Some(_)) => return Err(unreadable()),
        };
        head.remove(header::CONTENT_ENCODING);
        head.remove(header::CONTENT_LENGTH);
        scrubber.scrub_head(head);
        Ok(Self { decoder, scrubber, scrubbed: Vec::new(), trailers: None })
    }

    pub(crate) fn frame(&mut self, frame: Frame<Bytes>, out: &mut VecDeque<Frame<Bytes>>) -> Result<(), Failure> {
        match frame.into_data() {
            Ok(data) => self.data(data, out),
            Err(frame) => {
                if let Ok(mut trailers) = frame.into_trailers() {
                    self.scrubber.scrub_head(&mut trailers);
                    self.trailers = Some(trailers);
                }
                Ok(())
            }
        }
    }

    /// The answer has ended: all that was held back follows, trailers last.
    pub(crate) fn finish(&mut self, out: &mut VecDeque<Frame<Bytes>>) -> Result<(), Failure> {
        if let Some(decoder) = self.decoder.take() {
            let mut plain = Vec::new();
            decoder.finish(&mut plain).map_err(|_| unreadable())?;
            self.scrub(plain.into(), out)?;
        }
        self.scrubber.finish(&mut self.scrubbed).map_err(|_| unreadable())?;
        self.release(out);
        out.extend(self.trailers.take().map(Frame::trailers));
        Ok(())
    }

    fn data(&mut self, data: Bytes, out: &mut VecDeque<Frame<Bytes>>) -> Result<(), Failure> {
        let Some(mut decoder) = self.decoder.take() else { return self.scrub(data, out) };
        let mut rest = &data[..];
        loop {
            let mut plain = Vec::with_capacity(DECODED);
            let read = decoder.write(rest, &mut plain).map_err(|_| unreadable())?;
            rest = &rest[read..];
            let done = rest.is_empty() && plain.is_empty();
            self.scrub(plain.into(), out)?;
            if done {
                break;
            }
        }
        self.decoder = Some(decoder);
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
    Failure::new(Class::Encoding, "the upstream's answer is encoded in a way that cannot be checked for the key")
}
