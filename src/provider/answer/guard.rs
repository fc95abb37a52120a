//! Runs a transcript over the parts of an answer, and frames what goes on.

use bytes::{Bytes, BytesMut};

use super::encode::{self, Encoder, Sink};
use super::framing::{Reader, Unit};
use super::stencil::Stencil;
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
    /// An answer that comes whole and goes on meanwhile, until it can be read at its end.
    observed: BytesMut,
    state: State,
    normalization: Normalization,
    warning: Option<Broken>,
    /// How many parts the transcript was given, and how many of those it let go on: with both the same, nothing was
    /// edited, and nothing is kept.
    given: usize,
    passed: usize,
    /// How many parts of our own went on: something was edited.
    said: usize,
    /// The form of the last part, where parts may come that differ in their text alone.
    stencil: Stencil,
    /// What the JSON of parts is read in.
    scratch: Scratch,
}

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
            observed: BytesMut::new(),
            state: State::Reading,
            normalization: Normalization::NotNormalized,
            warning: None,
            given: 0,
            passed: 0,
            said: 0,
            stencil: Stencil::default(),
            scratch: Scratch::default(),
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
        if self.framing == Framing::Whole {
            self.observe(&chunk);
            return Ok(());
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
        if self.framing == Framing::Whole {
            let body = std::mem::take(&mut self.observed).freeze();
            // It has gone on already.
            let _ = self.whole(body);
            self.state = State::Ended(None);
            return Ok(());
        }
        let mut sink = Sink::new(Bytes::new(), out);
        self.reader.end();
        self.read(&mut sink)?;
        if !matches!(self.state, State::Reading) {
            return Ok(());
        }
        if let Err(broken) = self.transcript.end(&mut self.gate, &mut self.out) {
            return self.fail(broken, &Bytes::new(), &mut sink);
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
        self.fail(broken, &Bytes::new(), &mut Sink::new(Bytes::new(), out))
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
                if !self.observes() && !self.forgives(&broken) {
                    return Err(broken);
                }
                if !self.observes() {
                    self.warning = Some(broken);
                }
                Ok(body)
            }
        }
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
            return self.fail(Broken::bound(reason), &message, &mut sink);
        }
        let run = self.stencil.run(&message, most);
        if run.parts == 1 && run.bytes == message.len() {
            self.pass(run.parts, &message, &mut sink);
            return Ok(());
        }
        let data = Excerpt::Of(0..message.len());
        let received = Received { name: None, data, before: Bytes::new(), raw: message, canonical: true };
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
        match self.transcript.keep_alive() {
            KeepAlive::Nothing => None,
            KeepAlive::Comment => {
                let mut comment = Vec::new();
                sse::encode_comment("keep-alive", line_end, &mut comment);
                Some(comment.into())
            }
            KeepAlive::Event(name, json) => Some(encode::event(form.name, Some(name), json, line_end)),
        }
    }

    /// An event for clients that wait for one; none where nothing is held, or the dialect has no such thing. Asked for
    /// when no event went on for 60 seconds.
    pub fn heartbeat(&mut self) -> Option<Bytes> {
        let Framing::Events(form) = self.framing else { return None };
        if self.observes() || self.held() == 0 || !matches!(self.state, State::Reading) {
            return None;
        }
        let (name, json) = self.transcript.heartbeat()?;
        Some(encode::event(form.name, Some(name), &json, self.reader.line_end()))
    }

    /// How many events went on so far.
    pub fn passed(&self) -> usize {
        self.passed + self.said
    }

    /// How many bytes are held.
    pub fn held(&self) -> usize {
        self.transcript.held() + self.observed.len()
    }

    /// How many bytes are kept: what is held, and inputs of calls that have gone on and are judged or noted once they
    /// are complete.
    pub fn kept_bytes(&self) -> usize {
        self.transcript.held() + self.gate.kept_bytes()
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

    /// Why the answer, or the rest of it, passed unread although calls in it could be denied: `failurePolicy: Open`.
    pub fn warning(&self) -> Option<&Broken> {
        self.warning.as_ref()
    }

    /// Keeps a piece of an answer that comes whole and goes on meanwhile. One that is too large is not read.
    fn observe(&mut self, chunk: &[u8]) {
        self.observed.extend_from_slice(chunk);
        if self.observed.len() > self.gate.settings().limits.event_bytes {
            self.observed = BytesMut::new();
            self.normalization = Normalization::TooLarge;
            self.state = State::Passing;
        }
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
                self.pass(run.parts, &raw, sink);
            }
            match self.reader.next_unit() {
                Ok(None) => return Ok(()),
                Ok(Some(Unit::Part(received))) => self.part(received, sink)?,
                Ok(Some(Unit::Filler(_))) if self.observes() => {}
                Ok(Some(Unit::Filler(raw))) => sink.received(&raw),
                Ok(Some(Unit::Tail(tail))) => self.tail.push(tail),
                Err(broken) => return self.fail(broken, &Bytes::new(), sink),
            }
        }
    }

    /// Lets parts go on that lie under the stencil.
    fn pass(&mut self, parts: usize, raw: &Bytes, sink: &mut Sink<'_>) {
        self.given += parts;
        self.passed += parts;
        self.transcript.again(self.stencil.numbers(), &mut self.gate);
        if !self.observes() {
            sink.received(raw);
        }
    }

    /// Reads one part, and lets go on what may.
    fn part(&mut self, mut received: Received, sink: &mut Sink<'_>) -> Result<(), Broken> {
        match self.take(&mut received) {
            Ok(()) => self.emit(sink),
            Err(broken) => {
                // Where it only observes, all of it went on already.
                if !self.observes() && self.opens(&broken) {
                    sink.received(&received.before);
                }
                self.fail(broken, &received.raw, sink)
            }
        }
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
        self.given += 1;
        self.normalization = Normalization::StreamReconstructed;
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
            match part {
                super::Part::Received(_) => self.passed += 1,
                super::Part::New { .. } => self.said += 1,
            }
            if !observes {
                self.encoder.part(&part, line_end, sink)?;
            }
        }
        Ok(())
    }

    fn forgives(&self, broken: &Broken) -> bool {
        broken.forgivable && self.gate.settings().failure == FailurePolicy::Open
    }

    /// Whether the rest passes unread. Not where it would contradict what went on, or complete what is kept.
    fn opens(&self, broken: &Broken) -> bool {
        self.observes()
            || self.forgives(broken) && self.said == 0 && self.given == self.passed && self.held() == 0
    }

    /// The answer cannot be read on from `raw`.
    fn fail(&mut self, broken: Broken, raw: &Bytes, sink: &mut Sink<'_>) -> Result<(), Broken> {
        self.normalization = Normalization::Failed;
        if !self.opens(&broken) {
            let message = format!("[postern] Answer stopped: {broken} (postern/builtin/{})", broken.rule);
            self.stop(&message, sink);
            self.state = State::Ended(Some(broken.clone()));
            return Err(broken);
        }
        self.out.drain();
        let rest = self.reader.take_rest();
        if !self.observes() {
            self.tail.drain(..).for_each(|tail| sink.received(&tail));
            sink.received(raw);
            sink.received(&rest);
            self.warning = Some(broken);
        }
        self.state = State::Passing;
        Ok(())
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
