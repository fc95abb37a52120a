//! Runs a transcript over the parts of an answer, and frames the parts that go on.

use bytes::{Bytes, BytesMut};

use super::delta_template::DeltaTemplate;
use super::encode::{self, Encoder, PartSink};
use super::framing::{PartReader, Unit};
use super::unread;
use super::{
    BrokenAnswer, FailurePolicy, Gate, GuardSettings, KeepAlive, Out, Received, StreamEvent, Transcript,
};
use crate::call::{AnswerFacts, BlockedCall, CallNote, Normalization};
use crate::provider::adapter::Framing;
use crate::wire::excerpt::Excerpt;
use crate::wire::json::{Document, Scratch};
use crate::wire::sse;

/// Guards one answer. Chunking never matters: any split of the same bytes gives the same output.
pub struct Guard {
    transcript: Box<dyn Transcript>,
    gate: Gate,
    out: Out,
    framing: Framing,
    reader: PartReader,
    encoder: Encoder,
    /// The end of an array: it goes on behind the last parts of the transcript.
    tail: Vec<Bytes>,
    /// An answer that comes whole, until it is read at its end. If nothing can be denied, it goes on meanwhile.
    gathered: BytesMut,
    state: GuardState,
    normalization: Normalization,
    warning: Option<BrokenAnswer>,
    /// Whether the first byte of a body that should be an array was seen.
    begun: bool,
    /// The last part without its text: parts that differ from it in their text alone are not parsed.
    template: DeltaTemplate,
    /// Memory that is used again for the JSON of each part.
    scratch: Scratch,
    /// How often the client's watchdog was fed since an event went on.
    fed: u32,
}

/// After so many keep-alives (one every 15 seconds) without an event, the next is an event if the dialect has one.
const EVENT_EVERY: u32 = 4;

enum GuardState {
    Reading,
    /// Nothing is read any more, and everything goes on.
    Passing,
    /// Nothing goes on any more.
    Ended(Option<BrokenAnswer>),
}

impl Guard {
    pub fn new(transcript: Box<dyn Transcript>, framing: Framing, settings: GuardSettings) -> Self {
        Self {
            reader: PartReader::new(framing, &settings.limits),
            transcript,
            gate: Gate::new(settings),
            out: Out::default(),
            framing,
            encoder: Encoder::new(framing),
            tail: Vec::new(),
            gathered: BytesMut::new(),
            state: GuardState::Reading,
            normalization: Normalization::NotNormalized,
            warning: None,
            begun: false,
            template: DeltaTemplate::default(),
            scratch: Scratch::default(),
            fed: 0,
        }
    }

    /// Takes the next chunk of a stream and appends to `out` what may go on now.
    ///
    /// # Errors
    /// If the answer must not go on. `out` then ends with the error for the client: the last bytes that it reads.
    pub fn write(&mut self, chunk: Bytes, out: &mut Vec<Bytes>) -> Result<(), BrokenAnswer> {
        if !self.is_reading(&chunk, out)? {
            return Ok(());
        }
        if self.is_no_array(&chunk) {
            self.gathered.extend_from_slice(&self.reader.take_rest());
            self.reframe(Framing::Whole);
        }
        if self.framing == Framing::Whole {
            return self.gather(&chunk, out);
        }
        let mut sink = PartSink::new(chunk.clone(), out);
        self.reader.push(chunk);
        let result = self.read(&mut sink);
        sink.flush();
        result
    }

    /// The stream has ended.
    ///
    /// # Errors
    /// As for [`Self::write`].
    pub fn finish(&mut self, out: &mut Vec<Bytes>) -> Result<(), BrokenAnswer> {
        if !self.is_reading(&Bytes::new(), out)? {
            return Ok(());
        }
        let mut sink = PartSink::new(Bytes::new(), out);
        if self.framing == Framing::Whole {
            let body = std::mem::take(&mut self.gathered).freeze();
            let read = self.whole(body);
            self.state = GuardState::Ended(None);
            return match read {
                // It has gone on already.
                Ok(_) | Err(_) if self.observes() => Ok(()),
                Ok(body) => {
                    sink.own(body);
                    Ok(())
                }
                Err(broken) => self.fail(broken, &mut sink),
            };
        }
        self.reader.end();
        self.read(&mut sink)?;
        if !matches!(self.state, GuardState::Reading) {
            return Ok(());
        }
        if let Err(broken) = self.transcript.end(&mut self.gate, &mut self.out) {
            return self.fail(broken, &mut sink);
        }
        self.emit(&mut sink)?;
        self.close(&mut sink);
        self.state = GuardState::Ended(None);
        Ok(())
    }

    /// Gives up pending calls: the upstream broke off. The client gets an error if one of them was held; else its
    /// answer ends as the upstream's did, and the client may try again by itself.
    pub fn broken_off(&mut self, out: &mut Vec<Bytes>) {
        if !matches!(self.state, GuardState::Reading) {
            return;
        }
        self.normalization = Normalization::Failed;
        self.state = GuardState::Ended(None);
        if self.transcript.held() > 0 {
            self.stop("The provider's answer broke off.", &mut PartSink::new(Bytes::new(), out));
        } else {
            self.give_up();
        }
    }

    /// Ends the answer: there is no memory for what is held.
    ///
    /// # Errors
    /// As for [`Self::write`].
    pub fn exhausted(&mut self, out: &mut Vec<Bytes>) -> Result<(), BrokenAnswer> {
        let broken = BrokenAnswer::bound("too many bytes are held at this moment (limits.bufferedBytes)");
        self.fail(broken, &mut PartSink::new(Bytes::new(), out))
    }

    /// Reads an answer that came whole, and returns the body that goes on.
    ///
    /// # Errors
    /// If the answer must not go on: nothing of it is to be sent.
    pub fn whole(&mut self, body: Bytes) -> Result<Bytes, BrokenAnswer> {
        let most = self.gate.settings().limits.body_bytes;
        if body.len() > most {
            self.normalization = Normalization::TooLarge;
            let reason = format!("the answer is longer than {most} bytes (limits.decodedBodyBytes)");
            return if self.observes() { Ok(body) } else { Err(BrokenAnswer::bound(reason)) };
        }
        match self.read_whole(&body) {
            Ok(edited) => {
                self.normalization = Normalization::Parsed;
                Ok(edited.filter(|_| !self.observes()).map_or(body, Bytes::from))
            }
            Err(broken) => {
                self.normalization = Normalization::Failed;
                if !self.observes() && !self.forgives(&broken, &body) {
                    return Err(broken);
                }
                if !self.observes() {
                    self.warning = Some(broken);
                }
                Ok(body)
            }
        }
    }

    /// Reads the body of an answer that is no success, and returns the body that goes on. An error goes on as it came.
    /// A body that a client may take for an answer is guarded, because some clients ignore the status. `events` is how
    /// the dialect's streams of events are framed.
    ///
    /// # Errors
    /// As for [`Self::whole`].
    pub fn failure(&mut self, body: Bytes, events: Framing) -> Result<Bytes, BrokenAnswer> {
        let Some(framing) = unread::framing_of_failure(&body, self.framing, events) else { return Ok(body) };
        if framing == Framing::Whole {
            let read = self.whole(body.clone());
            // A body in which nothing can be a call may go on unread.
            return read.or_else(|broken| {
                let is_harmless = broken.forgivable && !self.transcript.suspects(&body);
                if is_harmless { Ok(body) } else { Err(broken) }
            });
        }
        self.stream(body, framing)
    }

    /// Reads a stream that came whole, and returns the body that goes on.
    ///
    /// # Errors
    /// As for [`Self::whole`].
    pub fn stream(&mut self, body: Bytes, framing: Framing) -> Result<Bytes, BrokenAnswer> {
        self.reframe(framing);
        let mut out = Vec::new();
        self.write(body, &mut out)?;
        self.finish(&mut out)?;
        Ok(match <[Bytes; 1]>::try_from(out) {
            Ok([one]) => one,
            Err(several) => several.concat().into(),
        })
    }

    /// Takes a message of a WebSocket, and appends to `out` the messages that go on.
    ///
    /// # Errors
    /// As for [`Self::write`].
    pub fn message(&mut self, message: Bytes, out: &mut Vec<Bytes>) -> Result<(), BrokenAnswer> {
        if !self.is_reading(&message, out)? {
            return Ok(());
        }
        let most = self.gate.settings().limits.event_bytes;
        let mut sink = PartSink::new(Bytes::new(), out);
        if message.len() > most {
            let reason = format!("a message is longer than {most} bytes (limits.sseEventBytes)");
            return self.fail(BrokenAnswer::bound(reason), &mut sink);
        }
        // A message is one part: it matches as a whole or not at all.
        let run = self.template.run(&message, most);
        if run.parts == 1 && run.bytes == message.len() {
            self.pass(&message, &mut sink);
            return Ok(());
        }
        let (data, before) = (Excerpt::Of(0..message.len()), Bytes::new());
        let received = Received { name: None, data, before, raw: message, canonical: true, bare: false };
        self.part(received, &mut sink)
    }

    /// Returns the keep-alive for a client that received nothing for 15 seconds; none if nothing is held or the dialect
    /// has none.
    pub fn keep_alive(&mut self) -> Option<Bytes> {
        let Framing::Events(form) = self.framing else { return None };
        if self.observes() || self.held() == 0 || !matches!(self.state, GuardState::Reading) {
            return None;
        }
        let line_end = self.reader.line_end();
        self.fed += 1;
        let needs_event = self.fed.is_multiple_of(EVENT_EVERY);
        match self.transcript.keep_alive() {
            KeepAlive::Nothing => None,
            KeepAlive::CommentOrEvent(name, json) if needs_event => {
                Some(encode::event(form.name, Some(name), &json, line_end))
            }
            KeepAlive::Comment | KeepAlive::CommentOrEvent(..) => {
                let mut comment = Vec::new();
                sse::encode_comment("keep-alive", line_end, &mut comment);
                Some(comment.into())
            }
            KeepAlive::Event(name, json) => Some(encode::event(form.name, Some(name), json, line_end)),
        }
    }

    /// How many bytes are held.
    pub fn held(&self) -> usize {
        self.transcript.held() + self.gathered.len()
    }

    /// How many bytes are kept: what is held, and the inputs of calls that go on and are judged once they are complete.
    pub fn kept_bytes(&self) -> usize {
        let gathered = if self.observes() { 0 } else { self.gathered.len() };
        self.transcript.held() + self.gate.kept_bytes() + gathered
    }

    /// Whether nothing is ever denied or held here.
    pub fn observes(&self) -> bool {
        self.gate.observes()
    }

    /// Takes the calls that were decided since the last time.
    pub fn take_notes(&mut self) -> Vec<CallNote> {
        self.gate.take_notes()
    }

    /// Takes the calls that were denied since the last time, each with the id of the answer or conversation that the
    /// provider may keep: the next request there needs an output for them.
    pub fn take_blocked(&mut self) -> Vec<(String, BlockedCall)> {
        self.gate.take_blocked()
    }

    /// What the answer says of itself so far: its model, its id, its usage.
    pub fn facts(&self) -> &AnswerFacts {
        &self.gate.facts
    }

    /// The tokens so far, input and output, of all answers that this guard has read.
    pub fn tokens(&self) -> u64 {
        let usage = &self.gate.facts.usage;
        let newest = usage.input.unwrap_or(0).saturating_add(usage.output.unwrap_or(0));
        self.gate.tokens.max(newest)
    }

    /// How well it was understood, so far.
    pub fn normalization(&self) -> Normalization {
        self.normalization
    }

    /// Why the answer, or the first part of it that could not be read, passed unread although calls in it could be
    /// denied: `failurePolicy: Open`.
    pub fn warning(&self) -> Option<&BrokenAnswer> {
        self.warning.as_ref()
    }

    /// How many bytes of a stream were left out because no client reads them: behind its end, or in another form.
    pub fn left_out(&self) -> usize {
        if self.observes() { 0 } else { self.reader.left_out() }
    }

    /// Reads the body in another framing than its head says.
    fn reframe(&mut self, framing: Framing) {
        self.framing = framing;
        self.reader = PartReader::new(framing, &self.gate.settings().limits);
        self.encoder = Encoder::new(framing);
    }

    /// Whether a body that should be an array begins as something else: mostly an error.
    fn is_no_array(&mut self, chunk: &[u8]) -> bool {
        if self.framing != Framing::Array || self.begun {
            return false;
        }
        let first = chunk.iter().find(|byte| !byte.is_ascii_whitespace());
        self.begun = first.is_some();
        first.is_some_and(|first| *first != b'[')
    }

    /// Keeps a piece of an answer that comes whole. If it goes on meanwhile, an answer that is too large is not read.
    fn gather(&mut self, chunk: &[u8], out: &mut Vec<Bytes>) -> Result<(), BrokenAnswer> {
        self.gathered.extend_from_slice(chunk);
        let limits = &self.gate.settings().limits;
        let most = if self.observes() { limits.event_bytes } else { limits.body_bytes };
        if self.gathered.len() <= most {
            return Ok(());
        }
        self.gathered = BytesMut::new();
        if !self.observes() {
            let reason = format!("the answer is longer than {most} bytes (limits.decodedBodyBytes)");
            return self.fail(BrokenAnswer::bound(reason), &mut PartSink::new(Bytes::new(), out));
        }
        self.normalization = Normalization::TooLarge;
        self.state = GuardState::Passing;
        Ok(())
    }

    /// Whether bytes are still to be read. If all of them go on unread, they do so here.
    fn is_reading(&self, bytes: &Bytes, out: &mut Vec<Bytes>) -> Result<bool, BrokenAnswer> {
        if self.observes() && !bytes.is_empty() {
            out.push(bytes.clone());
        }
        match &self.state {
            GuardState::Reading => Ok(true),
            GuardState::Passing => {
                if !self.observes() && !bytes.is_empty() {
                    out.push(bytes.clone());
                }
                Ok(false)
            }
            GuardState::Ended(None) => Ok(false),
            GuardState::Ended(Some(broken)) => Err(broken.clone()),
        }
    }

    /// Reads all parts that are complete.
    fn read(&mut self, sink: &mut PartSink<'_>) -> Result<(), BrokenAnswer> {
        let most = self.gate.settings().limits.event_bytes;
        loop {
            let run = self.template.run(self.reader.untouched(), most);
            if run.parts > 0 {
                let raw = self.reader.skip(run.bytes);
                self.pass(&raw, sink);
            }
            match self.reader.next_unit() {
                Ok(None) => return Ok(()),
                Ok(Some(Unit::Part(received))) => self.part(received, sink)?,
                Ok(Some(Unit::Bare(received))) => self.bare(received, sink)?,
                Ok(Some(Unit::Filler(_))) if self.observes() => {}
                Ok(Some(Unit::Filler(raw))) => sink.received(&raw),
                Ok(Some(Unit::Tail(tail))) => self.tail.push(tail),
                Ok(Some(Unit::BrokenAnswer(received, broken))) => self.unreadable(broken, received, sink)?,
                Err(broken) => return self.fail_at(broken, sink),
            }
        }
    }

    /// The framing is broken. If nothing can follow, the remaining bytes are one part that cannot be read.
    fn fail_at(&mut self, broken: BrokenAnswer, sink: &mut PartSink<'_>) -> Result<(), BrokenAnswer> {
        if !self.reader.has_ended() || self.observes() {
            return self.fail(broken, sink);
        }
        let (raw, before) = (self.reader.take_rest(), Bytes::new());
        let data = Excerpt::Of(0..raw.len());
        let rest = Received { name: None, data, before, raw, canonical: true, bare: false };
        if !self.skips(&broken, &rest) {
            return self.fail(broken, sink);
        }
        self.tail.drain(..).for_each(|tail| sink.received(&tail));
        sink.received(&rest.raw);
        sink.flush();
        self.normalization = Normalization::Failed;
        self.warning.get_or_insert(broken);
        self.state = GuardState::Ended(None);
        Ok(())
    }

    /// Lets parts go on that match the template.
    fn pass(&mut self, raw: &Bytes, sink: &mut PartSink<'_>) {
        self.transcript.again(self.template.numbers(), &mut self.gate);
        if !self.observes() {
            sink.received(raw);
        }
    }

    /// Reads one part, and lets it go on if it may.
    fn part(&mut self, mut received: Received, sink: &mut PartSink<'_>) -> Result<(), BrokenAnswer> {
        match self.take(&mut received) {
            Ok(()) => self.emit(sink),
            Err(broken) => self.unreadable(broken, received, sink),
        }
    }

    /// Lets a part go on that cannot be read, or ends the answer.
    fn unreadable(
        &mut self,
        broken: BrokenAnswer,
        received: Received,
        sink: &mut PartSink<'_>,
    ) -> Result<(), BrokenAnswer> {
        if self.skips(&broken, &received) {
            self.skip(broken, received, sink)
        } else {
            self.fail(broken, sink)
        }
    }

    /// Reads lines without a field. An error that comes so goes on as it came: some clients read it. Google's take
    /// anything else for a chunk of the answer; all others pass over it.
    fn bare(&mut self, mut received: Received, sink: &mut PartSink<'_>) -> Result<(), BrokenAnswer> {
        let are_chunks = matches!(self.framing, Framing::Events(form) if !form.comments);
        let document = Document::parse(received.data(), self.gate.settings().limits.json);
        let is_error = document.is_ok_and(|document| unread::is_error(document.root(), are_chunks));
        if is_error || are_chunks {
            received.canonical = is_error;
            return self.part(received, sink);
        }
        self.reader.leave_out(received.raw.len());
        Ok(())
    }

    /// Whether a part that cannot be read goes on, so that what is behind it is read: no call may be in it, and none
    /// may be under way of which it could be a part.
    fn skips(&self, broken: &BrokenAnswer, received: &Received) -> bool {
        if self.observes() {
            return broken.forgivable;
        }
        // The headers of a frame are binary: only its data can be searched for the words of a call.
        let is_framed = self.framing == Framing::EventStream;
        self.forgives(broken, received.data())
            && (is_framed || !self.transcript.suspects(&received.raw))
            && !self.transcript.is_in_call()
            && self.transcript.held() == 0
    }

    /// Lets a part go on that cannot be read.
    fn skip(
        &mut self,
        broken: BrokenAnswer,
        received: Received,
        sink: &mut PartSink<'_>,
    ) -> Result<(), BrokenAnswer> {
        self.out.drain();
        self.transcript.skipped();
        self.normalization = Normalization::Failed;
        if self.observes() {
            return Ok(());
        }
        self.warning.get_or_insert(broken);
        let part = super::AnswerPart::Received(Received { canonical: true, ..received });
        self.encoder.part(&part, self.reader.line_end(), sink)
    }

    /// Gives one part to the transcript.
    fn take(&mut self, received: &mut Received) -> Result<(), BrokenAnswer> {
        self.template.forget();
        let data = received.data.of(&received.raw);
        let json = if data.is_empty() || received.is_done() { b"null" } else { data };
        let document = Document::parse_with(json, self.gate.settings().limits.json, &mut self.scratch)
            .map_err(|error| unread::json_error("an event", error))?;
        if let Some(name) = self.reader.rename(received, document.root())? {
            received.name = Some(Excerpt::Own(name));
            received.canonical = false;
        }
        let event = StreamEvent { name: received.name(), json: document.root(), received };
        self.transcript.event(&event, &mut self.gate, &mut self.out)?;
        // Parts that were edited, joined or held must be read in full the next time as well.
        if let Some(data) = received.data_in_raw().filter(|_| self.may_come_again(received)) {
            self.template.cut(&received.raw, data, self.transcript.free(&event));
        }
        document.give_back(&mut self.scratch);
        if self.normalization == Normalization::NotNormalized {
            self.normalization = Normalization::StreamReconstructed;
        }
        let most = self.gate.settings().limits.body_bytes;
        if self.kept_bytes() > most {
            return Err(BrokenAnswer::bound(format!(
                "more than {most} bytes wait for a verdict (limits.decodedBodyBytes)"
            )));
        }
        Ok(())
    }

    /// Whether the part went on alone and as it came, so that more like it may follow.
    fn may_come_again(&self, received: &Received) -> bool {
        let is_cut_from_stream = matches!(self.framing, Framing::Events(_) | Framing::Whole);
        is_cut_from_stream && !self.reader.is_over() && self.out.is_only(received)
    }

    fn read_whole(&mut self, body: &Bytes) -> Result<Option<Vec<u8>>, BrokenAnswer> {
        let document = Document::parse(body, self.gate.settings().limits.json)
            .map_err(|error| unread::json_error("the answer", error))?;
        self.transcript.whole(&document, &mut self.gate)
    }

    /// Frames the parts that the transcript lets go on.
    fn emit(&mut self, sink: &mut PartSink<'_>) -> Result<(), BrokenAnswer> {
        let line_end = self.reader.line_end();
        let observes = self.gate.observes();
        for part in self.out.drain() {
            self.fed = 0;
            if !observes {
                self.encoder.part(&part, line_end, sink)?;
            }
        }
        Ok(())
    }

    /// Whether policy lets bytes pass that cannot be read, and in which no call is suspected.
    fn forgives(&self, broken: &BrokenAnswer, unread: &[u8]) -> bool {
        let is_open = self.gate.settings().failure == FailurePolicy::Open;
        is_open && broken.forgivable && !self.transcript.suspects(unread)
    }

    /// Ends the answer, which cannot be read further. If nothing can be denied, it went on already.
    fn fail(&mut self, mut broken: BrokenAnswer, sink: &mut PartSink<'_>) -> Result<(), BrokenAnswer> {
        self.normalization = Normalization::Failed;
        if self.observes() {
            self.out.drain();
            self.state = GuardState::Passing;
            return Ok(());
        }
        let event = (self.gate.settings().event_id)();
        broken.event = Some(event);
        let (reason, rule) = (broken.reason.trim_end(), broken.rule);
        let text = format!("[postern] Answer stopped: {reason} (postern/builtin/{rule})\nEvent: {event}");
        self.stop(&text, sink);
        self.state = GuardState::Ended(Some(broken.clone()));
        Err(broken)
    }

    /// Gives up pending calls, and tells the client.
    fn stop(&mut self, message: &str, sink: &mut PartSink<'_>) {
        self.give_up();
        if self.observes() {
            return;
        }
        self.transcript.broken(message, &mut self.out);
        let _ = self.emit(sink);
        self.tail.clear();
        self.close(sink);
    }

    fn give_up(&mut self) {
        self.gate.give_up();
        // The answer has failed already: neither an error nor parts of an end matter.
        let _ = self.transcript.end(&mut self.gate, &mut self.out);
        self.out.drain();
    }

    fn close(&mut self, sink: &mut PartSink<'_>) {
        if !self.observes() {
            self.encoder.end(&self.tail, sink);
        }
        sink.flush();
    }
}
