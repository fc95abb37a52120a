//! Runs a transcript over the parts of an answer, and frames what goes on.

use bytes::{Bytes, BytesMut};

use super::encode::{self, Encoder, Sink};
use super::framing::{Reader, Unit};
use super::stencil::Stencil;
use super::unread;
use super::{Broken, Event, FailurePolicy, Gate, KeepAlive, Out, Received, Settings, Transcript};
use crate::call::{AnswerFacts, BlockedCall, CallNote, Normalization};
use crate::provider::adapter::Framing;
use crate::wire::excerpt::Excerpt;
use crate::wire::json::{Document, JsonError, Reason, Scratch};
use crate::wire::sse;

/// Guards one answer. Chunking never matters: any split of the same bytes gives the same output.
pub struct Guard {
    transcript: Box<dyn Transcript>,
    gate: Gate,
    out: Out,
    framing: Framing,
    reader: Reader,
    encoder: Encoder,
    /// What ended an array: it goes on behind all that the transcript has to say at the end.
    tail: Vec<Bytes>,
    /// An answer that comes whole, until it can be read at its end. Where nothing could be denied it goes on meanwhile.
    gathered: BytesMut,
    state: State,
    normalization: Normalization,
    warning: Option<Broken>,
    /// Whether anything of a body was looked at that is to be an array.
    begun: bool,
    /// The form of the last part, where parts may come that differ in their text alone.
    stencil: Stencil,
    /// What the JSON of parts is read in.
    scratch: Scratch,
    /// How often the client's watchdog was fed since an event went on.
    fed: u32,
}

/// After so many feedings without an event, one every 15 seconds, the next is an event where the dialect has one.
const EVENT_EVERY: u32 = 4;

enum State {
    Reading,
    /// Nothing is read any more, and everything goes on.
    Passing,
    /// Nothing goes on any more.
    Ended(Option<Broken>),
}

impl Guard {
    pub fn new(transcript: Box<dyn Transcript>, framing: Framing, settings: Settings) -> Self {
        Self {
            reader: Reader::new(framing, &settings.limits),
            transcript,
            gate: Gate::new(settings),
            out: Out::default(),
            framing,
            encoder: Encoder::new(framing),
            tail: Vec::new(),
            gathered: BytesMut::new(),
            state: State::Reading,
            normalization: Normalization::NotNormalized,
            warning: None,
            begun: false,
            stencil: Stencil::default(),
            scratch: Scratch::default(),
            fed: 0,
        }
    }

    /// Takes the next chunk of a stream and appends to `out` what may go on now.
    ///
    /// # Errors
    /// Where the answer must not go on. What the client is told of it is in `out`: the last bytes that it reads.
    pub fn write(&mut self, chunk: Bytes, out: &mut Vec<Bytes>) -> Result<(), Broken> {
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
        let mut sink = Sink::new(chunk.clone(), out);
        self.reader.push(chunk);
        let result = self.read(&mut sink);
        sink.flush();
        result
    }

    /// The stream has ended.
    ///
    /// # Errors
    /// As for [`Self::write`].
    pub fn finish(&mut self, out: &mut Vec<Bytes>) -> Result<(), Broken> {
        if !self.is_reading(&Bytes::new(), out)? {
            return Ok(());
        }
        let mut sink = Sink::new(Bytes::new(), out);
        if self.framing == Framing::Whole {
            let body = std::mem::take(&mut self.gathered).freeze();
            let read = self.whole(body);
            self.state = State::Ended(None);
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
        if !matches!(self.state, State::Reading) {
            return Ok(());
        }
        if let Err(broken) = self.transcript.end(&mut self.gate, &mut self.out) {
            return self.fail(broken, &mut sink);
        }
        self.emit(&mut sink)?;
        self.close(&mut sink);
        self.state = State::Ended(None);
        Ok(())
    }

    /// The upstream broke off: calls that were under way are given up. The client is told where one of them was held
    /// back; else its answer ends as the upstream's did, and it tries again where it does so by itself.
    pub fn broken_off(&mut self, out: &mut Vec<Bytes>) {
        if !matches!(self.state, State::Reading) {
            return;
        }
        self.normalization = Normalization::Failed;
        self.state = State::Ended(None);
        if self.transcript.held() > 0 {
            self.stop("The provider's answer broke off.", &mut Sink::new(Bytes::new(), out));
        } else {
            self.give_up();
        }
    }

    /// There is no room for what is held: the answer ends here.
    ///
    /// # Errors
    /// As for [`Self::write`].
    pub fn exhausted(&mut self, out: &mut Vec<Bytes>) -> Result<(), Broken> {
        let broken = Broken::bound("too many bytes are held at this moment (limits.bufferedBytes)");
        self.fail(broken, &mut Sink::new(Bytes::new(), out))
    }

    /// Reads an answer that came whole, and answers what goes on.
    ///
    /// # Errors
    /// Where it must not go on. Nothing of it is to be sent.
    pub fn whole(&mut self, body: Bytes) -> Result<Bytes, Broken> {
        let most = self.gate.settings().limits.body_bytes;
        if body.len() > most {
            self.normalization = Normalization::TooLarge;
            let reason = format!("the answer is longer than {most} bytes (limits.decodedBodyBytes)");
            return if self.observes() { Ok(body) } else { Err(Broken::bound(reason)) };
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

    /// Reads the body of an answer that is no success, and answers what goes on: an error as it came, and what a client
    /// may take for an answer as it may have it. There are clients that look at no status. `events` is how the dialect's
    /// streams of events are framed.
    ///
    /// # Errors
    /// As for [`Self::whole`].
    pub fn failure(&mut self, body: Bytes, events: Framing) -> Result<Bytes, Broken> {
        let Some(framing) = unread::framing_of_failure(&body, self.framing, events) else { return Ok(body) };
        if framing == Framing::Whole {
            let read = self.whole(body.clone());
            // What is no answer needs no reading.
            return read.or_else(|broken| {
                let is_harmless = broken.forgivable && !self.transcript.suspects(&body);
                if is_harmless { Ok(body) } else { Err(broken) }
            });
        }
        self.stream(body, framing)
    }

    /// Reads a stream that came whole, and answers what goes on.
    ///
    /// # Errors
    /// As for [`Self::whole`].
    pub fn stream(&mut self, body: Bytes, framing: Framing) -> Result<Bytes, Broken> {
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
    pub fn message(&mut self, message: Bytes, out: &mut Vec<Bytes>) -> Result<(), Broken> {
        if !self.is_reading(&message, out)? {
            return Ok(());
        }
        let most = self.gate.settings().limits.event_bytes;
        let mut sink = Sink::new(Bytes::new(), out);
        if message.len() > most {
            let reason = format!("a message is longer than {most} bytes (limits.sseEventBytes)");
            return self.fail(Broken::bound(reason), &mut sink);
        }
        let run = self.stencil.run(&message, most);
        if run.parts == 1 && run.bytes == message.len() {
            self.pass(&message, &mut sink);
            return Ok(());
        }
        let (data, before) = (Excerpt::Of(0..message.len()), Bytes::new());
        let received = Received { name: None, data, before, raw: message, canonical: true, bare: false };
        self.part(received, &mut sink)
    }

    /// What feeds the client's watchdog; none where nothing is held, or the dialect has no such thing. Asked for when
    /// nothing went on for 15 seconds.
    pub fn keep_alive(&mut self) -> Option<Bytes> {
        let Framing::Events(form) = self.framing else { return None };
        if self.observes() || self.held() == 0 || !matches!(self.state, State::Reading) {
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

    /// How many bytes are kept: what is held, and inputs of calls that have gone on and are judged or noted once they
    /// are complete.
    pub fn kept_bytes(&self) -> usize {
        let gathered = if self.observes() { 0 } else { self.gathered.len() };
        self.transcript.held() + self.gate.kept_bytes() + gathered
    }

    /// Whether nothing is ever denied or held here.
    pub fn observes(&self) -> bool {
        self.gate.observes()
    }

    /// What has been decided since this was asked last.
    pub fn take_notes(&mut self) -> Vec<CallNote> {
        self.gate.take_notes()
    }

    /// The calls that were denied since this was asked last, each with the id of the answer or conversation that the
    /// provider may keep: what is asked there next needs an output of theirs.
    pub fn take_blocked(&mut self) -> Vec<(String, BlockedCall)> {
        self.gate.take_blocked()
    }

    /// What the answer says of itself, so far.
    pub fn facts(&self) -> &AnswerFacts {
        &self.gate.facts
    }

    /// How well it was understood, so far.
    pub fn normalization(&self) -> Normalization {
        self.normalization
    }

    /// Why the answer, or the first part of it that could not be read, passed unread although calls in it could be
    /// denied: `failurePolicy: Open`.
    pub fn warning(&self) -> Option<&Broken> {
        self.warning.as_ref()
    }

    /// How many bytes of a stream were left out that said something, but to no client: behind its end, or in no form
    /// that its clients read.
    pub fn left_out(&self) -> usize {
        if self.observes() { 0 } else { self.reader.left_out() }
    }

    /// Cuts the body in another way than was said.
    fn reframe(&mut self, framing: Framing) {
        self.framing = framing;
        self.reader = Reader::new(framing, &self.gate.settings().limits);
        self.encoder = Encoder::new(framing);
    }

    /// Whether a body that is to be an array begins as something else: an error, for the most part.
    fn is_no_array(&mut self, chunk: &[u8]) -> bool {
        if self.framing != Framing::Array || self.begun {
            return false;
        }
        let first = chunk.iter().find(|byte| !byte.is_ascii_whitespace());
        self.begun = first.is_some();
        first.is_some_and(|first| *first != b'[')
    }

    /// Keeps a piece of an answer that comes whole. Where it goes on meanwhile, one that is too large is not read.
    fn gather(&mut self, chunk: &[u8], out: &mut Vec<Bytes>) -> Result<(), Broken> {
        self.gathered.extend_from_slice(chunk);
        let limits = &self.gate.settings().limits;
        let most = if self.observes() { limits.event_bytes } else { limits.body_bytes };
        if self.gathered.len() <= most {
            return Ok(());
        }
        self.gathered = BytesMut::new();
        if !self.observes() {
            let reason = format!("the answer is longer than {most} bytes (limits.decodedBodyBytes)");
            return self.fail(Broken::bound(reason), &mut Sink::new(Bytes::new(), out));
        }
        self.normalization = Normalization::TooLarge;
        self.state = State::Passing;
        Ok(())
    }

    /// Whether bytes are still to be read; where all of them go on, they do so here.
    fn is_reading(&self, bytes: &Bytes, out: &mut Vec<Bytes>) -> Result<bool, Broken> {
        if self.observes() && !bytes.is_empty() {
            out.push(bytes.clone());
        }
        match &self.state {
            State::Reading => Ok(true),
            State::Passing => {
                if !self.observes() && !bytes.is_empty() {
                    out.push(bytes.clone());
                }
                Ok(false)
            }
            State::Ended(None) => Ok(false),
            State::Ended(Some(broken)) => Err(broken.clone()),
        }
    }

    /// Reads all parts that are complete.
    fn read(&mut self, sink: &mut Sink<'_>) -> Result<(), Broken> {
        let most = self.gate.settings().limits.event_bytes;
        loop {
            let run = self.stencil.run(self.reader.untouched(), most);
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
                Ok(Some(Unit::Broken(received, broken))) => self.unreadable(broken, received, sink)?,
                Err(broken) => return self.fail_at(broken, sink),
            }
        }
    }

    /// The framing is broken. Where nothing can follow, what is left is the part that cannot be read.
    fn fail_at(&mut self, broken: Broken, sink: &mut Sink<'_>) -> Result<(), Broken> {
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
        self.state = State::Ended(None);
        Ok(())
    }

    /// Lets parts go on that lie under the stencil.
    fn pass(&mut self, raw: &Bytes, sink: &mut Sink<'_>) {
        self.transcript.again(self.stencil.numbers(), &mut self.gate);
        if !self.observes() {
            sink.received(raw);
        }
    }

    /// Reads one part, and lets go on what may.
    fn part(&mut self, mut received: Received, sink: &mut Sink<'_>) -> Result<(), Broken> {
        match self.take(&mut received) {
            Ok(()) => self.emit(sink),
            Err(broken) => self.unreadable(broken, received, sink),
        }
    }

    /// A part cannot be read: it is let go on, or the answer ends.
    fn unreadable(&mut self, broken: Broken, received: Received, sink: &mut Sink<'_>) -> Result<(), Broken> {
        if self.skips(&broken, &received) {
            self.skip(broken, received, sink)
        } else {
            self.fail(broken, sink)
        }
    }

    /// Reads lines without a field. An error that comes so goes on as it came: some clients read it. Google's take
    /// anything else for a chunk of the answer; all others pass over it.
    fn bare(&mut self, mut received: Received, sink: &mut Sink<'_>) -> Result<(), Broken> {
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
    fn skips(&self, broken: &Broken, received: &Received) -> bool {
        if self.observes() {
            return broken.forgivable;
        }
        // Of a frame, what is not its data is no text.
        let is_framed = self.framing == Framing::EventStream;
        self.forgives(broken, received.data())
            && (is_framed || !self.transcript.suspects(&received.raw))
            && !self.transcript.is_in_call()
            && self.transcript.held() == 0
    }

    /// Lets a part go on that cannot be read.
    fn skip(&mut self, broken: Broken, received: Received, sink: &mut Sink<'_>) -> Result<(), Broken> {
        self.out.drain();
        self.transcript.skipped();
        self.normalization = Normalization::Failed;
        if self.observes() {
            return Ok(());
        }
        self.warning.get_or_insert(broken);
        let part = super::Part::Received(Received { canonical: true, ..received });
        self.encoder.part(&part, self.reader.line_end(), sink)
    }

    /// Gives one part to the transcript.
    fn take(&mut self, received: &mut Received) -> Result<(), Broken> {
        self.stencil.forget();
        let data = received.data.of(&received.raw);
        let json = if data.is_empty() || received.is_done() { b"null" } else { data };
        let document = Document::parse_with(json, self.gate.settings().limits.json, &mut self.scratch)
            .map_err(|error| unread("an event", error))?;
        if let Some(name) = self.reader.rename(received, document.root())? {
            received.name = Some(Excerpt::Own(name));
            received.canonical = false;
        }
        let event = Event { name: received.name(), json: document.root(), received };
        self.transcript.event(&event, &mut self.gate, &mut self.out)?;
        if let Some(data) = received.data_in_raw().filter(|_| self.may_come_again(received)) {
            self.stencil.cut(&received.raw, data, self.transcript.free(&event));
        }
        document.give_back(&mut self.scratch);
        if self.normalization == Normalization::NotNormalized {
            self.normalization = Normalization::StreamReconstructed;
        }
        let most = self.gate.settings().limits.body_bytes;
        if self.kept_bytes() > most {
            return Err(Broken::bound(format!(
                "more than {most} bytes wait for a verdict (limits.decodedBodyBytes)"
            )));
        }
        Ok(())
    }

    /// Whether a part went on, alone and as it came, and more may follow it.
    fn may_come_again(&self, received: &Received) -> bool {
        let is_cut_from_stream = matches!(self.framing, Framing::Events(_) | Framing::Whole);
        is_cut_from_stream && !self.reader.is_over() && self.out.is_only(received)
    }

    fn read_whole(&mut self, body: &Bytes) -> Result<Option<Vec<u8>>, Broken> {
        let document = Document::parse(body, self.gate.settings().limits.json)
            .map_err(|error| unread("the answer", error))?;
        self.transcript.whole(&document, &mut self.gate)
    }

    /// Frames what the transcript lets go on.
    fn emit(&mut self, sink: &mut Sink<'_>) -> Result<(), Broken> {
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
    fn forgives(&self, broken: &Broken, unread: &[u8]) -> bool {
        let is_open = self.gate.settings().failure == FailurePolicy::Open;
        is_open && broken.forgivable && !self.transcript.suspects(unread)
    }

    /// The answer cannot be read on. Where nothing could be denied it has gone on already.
    fn fail(&mut self, broken: Broken, sink: &mut Sink<'_>) -> Result<(), Broken> {
        self.normalization = Normalization::Failed;
        if self.observes() {
            self.out.drain();
            self.state = State::Passing;
            return Ok(());
        }
        let reason = broken.reason.trim_end();
        self.stop(&format!("[postern] Answer stopped: {reason} (postern/builtin/{})", broken.rule), sink);
        self.state = State::Ended(Some(broken.clone()));
        Err(broken)
    }

    /// Gives up what is under way, and tells the client.
    fn stop(&mut self, message: &str, sink: &mut Sink<'_>) {
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
        // What it fails at, or would say of an end, is of no more interest.
        let _ = self.transcript.end(&mut self.gate, &mut self.out);
        self.out.drain();
    }

    fn close(&mut self, sink: &mut Sink<'_>) {
        if !self.observes() {
            self.encoder.end(&self.tail, sink);
        }
        sink.flush();
    }
}

/// Why JSON cannot be read: beyond a bound, or malformed.
fn unread(what: &str, error: JsonError) -> Broken {
    let reason = format!("{what} is not JSON that can be read: {error}");
    match error.reason {
        Reason::TooLong | Reason::TooMany | Reason::TooDeep => Broken::bound(reason),
        Reason::NotUtf8
        | Reason::ByteOrderMark
        | Reason::End
        | Reason::Value
        | Reason::Number
        | Reason::Key
        | Reason::Colon
        | Reason::Item
        | Reason::Entry
        | Reason::Trailing
        | Reason::Control
        | Reason::Escape
        | Reason::Surrogate => Broken::malformed(reason),
    }
}
