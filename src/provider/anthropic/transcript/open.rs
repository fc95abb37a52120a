//! The one block of a stream that is open, and what becomes of it.

use super::block::{Block, Named};
use crate::provider::answer::{Broken, Call, Fate, Form, Gate, Out, Part, Phase, member};
use crate::wire::json::{Document, Limits, Value};

/// A block that has started.
#[derive(Debug)]
pub(super) struct Open {
    /// Its number in what is received, and in what goes on.
    index: u64,
    number: u64,
    content: Content,
}

#[derive(Debug)]
enum Content {
    Text,
    Thinking,
    Other,
    /// The result of a hosted call that was replaced: nothing of it goes on.
    Swallowed,
    Call(Box<Calling>),
}

/// A call whose input comes.
#[derive(Debug)]
struct Calling {
    call: Call,
    hosted: bool,
    /// The input that stood in the start of the block.
    seed: Option<String>,
    /// How many bytes of input have come in pieces.
    came: usize,
    /// What waits for the verdict, in order.
    kept: Vec<Kept>,
    kept_bytes: usize,
}

#[derive(Debug)]
struct Kept {
    part: Part,
    /// Whether it is of the call, and not only among its parts.
    of_call: bool,
}

/// What a block turned out to be, once it is complete.
#[derive(Debug)]
pub(super) enum Step {
    NoCall,
    /// A call of the client's.
    Call {
        denied: bool,
    },
    /// A hosted call that became text.
    Replaced {
        id: String,
    },
}

impl Open {
    /// A block of which nothing goes on.
    pub(super) fn swallowed(index: u64) -> Self {
        Self { index, number: index, content: Content::Swallowed }
    }

    /// Takes the start of a block; `part` is what goes on of it, where it does.
    pub(super) fn start(
        (index, number): (u64, u64),
        block: &Block<'_>,
        part: Part,
        (gate, out): (&mut Gate, &mut Out),
    ) -> Self {
        let content = match block {
            Block::Call(named) => Content::Call(Calling::begin(named, false, gate)),
            Block::Hosted(named) => Content::Call(Calling::begin(named, true, gate)),
            Block::Text => Content::Text,
            Block::Thinking => Content::Thinking,
            Block::Result { .. } | Block::Fallback { .. } | Block::Other => Content::Other,
        };
        let mut open = Self { index, number, content };
        match &open.content {
            Content::Call(calling) => match calling.call.phase() {
                Phase::Denied(text) => say_text(number, &text.clone(), out),
                Phase::Flows | Phase::Held => open.forward(part, out),
            },
            Content::Text | Content::Thinking | Content::Other | Content::Swallowed => {
                open.forward(part, out)
            }
        }
        open
    }

    /// A block of which the beginning could not be read: it takes no input of a call.
    pub(super) fn unread(index: u64, number: u64) -> Self {
        Self { index, number, content: Content::Other }
    }

    pub(super) fn index(&self) -> u64 {
        self.index
    }

    /// Whether what comes of it is of a call, or of what goes with one.
    pub(super) fn is_of_call(&self) -> bool {
        matches!(self.content, Content::Call(_) | Content::Swallowed)
    }

    pub(super) fn held(&self) -> usize {
        match &self.content {
            Content::Call(calling) => calling.kept_bytes,
            Content::Text | Content::Thinking | Content::Other | Content::Swallowed => 0,
        }
    }

    /// Takes the next piece.
    ///
    /// # Errors
    /// Where it is of another kind than the block: clients differ in what they make of that.
    pub(super) fn delta(
        &mut self,
        delta: Value<'_>,
        part: Part,
        (gate, out): (&mut Gate, &mut Out),
    ) -> Result<(), Broken> {
        let kind = member::text(delta, "type")?.unwrap_or_default();
        let fits = match &self.content {
            Content::Swallowed => true,
            Content::Call(_) => kind == "input_json_delta",
            Content::Text => !matches!(&*kind, "input_json_delta" | "thinking_delta" | "signature_delta"),
            Content::Thinking => !matches!(&*kind, "input_json_delta" | "text_delta" | "citations_delta"),
            Content::Other => kind != "input_json_delta",
        };
        if !fits {
            return Err(Broken::ambiguous(format!("block {} takes no piece of this type", self.index)));
        }
        if let Content::Call(calling) = &mut self.content {
            let piece = member::text(delta, "partial_json")?;
            let piece = piece.ok_or_else(|| Broken::ambiguous("a piece of a tool's input is no string"))?;
            calling.came += piece.len();
            calling.call.push(&piece, gate);
        }
        self.forward(part, out);
        Ok(())
    }

    /// What a piece of text, or of thinking, says: nothing here depends on it.
    pub(super) fn free<'d>(&self, delta: Value<'d>) -> Option<Value<'d>> {
        let (kind, key) = match &self.content {
            Content::Text => ("text_delta", "text"),
            Content::Thinking => ("thinking_delta", "thinking"),
            Content::Other | Content::Swallowed | Content::Call(_) => return None,
        };
        let of = |key: &str| delta.get(key).ok().flatten();
        of(key).filter(|_| of("type").is_some_and(|said| said.says(kind)))
    }

    /// Takes what stands among the block's parts and is of no block: it keeps its place.
    pub(super) fn beside(&mut self, part: Part, out: &mut Out) {
        match &mut self.content {
            Content::Call(calling) if calling.call.is_held() => calling.keep(part, false),
            Content::Call(_) | Content::Text | Content::Thinking | Content::Other | Content::Swallowed => {
                out.release([part]);
            }
        }
    }

    /// Takes the end of the block, and decides what is undecided.
    ///
    /// # Errors
    /// Where the input came twice and differs, and where a call is denied that has gone on already.
    pub(super) fn stop(self, part: Part, (gate, out): (&mut Gate, &mut Out)) -> Result<Step, Broken> {
        match self.content {
            Content::Call(calling) => calling.stop(self.number, part, (gate, out)),
            Content::Swallowed => Ok(Step::NoCall),
            Content::Text | Content::Thinking | Content::Other => {
                out.release([part]);
                Ok(Step::NoCall)
            }
        }
    }

    /// The message ends inside the block, as it says itself. Of a call that was held a text goes on.
    pub(super) fn cut(self, gate: &mut Gate, out: &mut Out) -> Step {
        let Content::Call(calling) = self.content else { return Step::NoCall };
        let is_held = calling.call.is_held();
        let fate = gate.cut(calling.call);
        if let (Fate::Denied(text), true) = (&fate, is_held) {
            // Nothing follows, and the API takes no last message of the model's that ends in white space.
            say_text(self.number, text.trim_end(), out);
            out.release(calling.kept.into_iter().filter(|kept| !kept.of_call).map(|kept| kept.part));
        }
        if calling.hosted { Step::NoCall } else { Step::Call { denied: fate != Fate::Passes } }
    }

    /// The stream has ended inside the block. Answers whether any part of it was held.
    pub(super) fn abandon(self, gate: &mut Gate) -> bool {
        match self.content {
            Content::Call(calling) => {
                let is_held = calling.call.is_held();
                gate.abandon(calling.call);
                is_held
            }
            Content::Text | Content::Thinking | Content::Other | Content::Swallowed => false,
        }
    }

    /// Lets a part go on, keeps it, or drops it.
    fn forward(&mut self, part: Part, out: &mut Out) {
        match &mut self.content {
            Content::Text | Content::Thinking | Content::Other => out.release([part]),
            Content::Swallowed => {}
            Content::Call(calling) => calling.forward(part, out),
        }
    }
}

impl Calling {
    fn begin(named: &Named<'_>, hosted: bool, gate: &mut Gate) -> Box<Self> {
        let namespace = named.namespace.as_deref();
        let call = if hosted {
            gate.begin_hosted(&named.id, &named.name, namespace, Form::Json)
        } else {
            gate.begin(&named.id, &named.name, namespace, Form::Json)
        };
        let seed = named.input.map(str::to_owned);
        Box::new(Self { call, hosted, seed, came: 0, kept: Vec::new(), kept_bytes: 0 })
    }

    fn forward(&mut self, part: Part, out: &mut Out) {
        match self.call.phase() {
            Phase::Flows => out.release([part]),
            Phase::Denied(_) => {}
            // More came than may be kept: it will be denied, and need not wait.
            Phase::Held if self.is_over() => {
                self.kept.retain(|kept| !kept.of_call);
                self.kept_bytes = self.kept.iter().map(|kept| kept.part.kept_bytes()).sum();
            }
            Phase::Held => self.keep(part, true),
        }
    }

    fn keep(&mut self, part: Part, of_call: bool) {
        self.kept_bytes += part.kept_bytes();
        self.kept.push(Kept { part, of_call });
    }

    fn is_over(&self) -> bool {
        self.came > self.call.input().len()
    }

    fn stop(
        mut self: Box<Self>,
        number: u64,
        part: Part,
        (gate, out): (&mut Gate, &mut Out),
    ) -> Result<Step, Broken> {
        self.join_seed(gate)?;
        let (phase, is_over) = (self.call.phase().clone(), self.is_over());
        let id = self.call.id().to_owned();
        let denied = match (phase, gate.finish(self.call)) {
            (Phase::Flows, Fate::Passes) => {
                out.release([part]);
                false
            }
            // Its beginning has gone on. Clients execute a call only once it is complete.
            (Phase::Flows, Fate::Denied(text)) => return Err(Broken::ambiguous(text.trim_end())),
            (Phase::Held, Fate::Passes) if is_over => {
                return Err(Broken::bound("a tool's input is longer than may be held"));
            }
            (Phase::Held, Fate::Passes) => {
                out.release(self.kept.into_iter().map(|kept| kept.part));
                out.release([part]);
                false
            }
            (Phase::Held, Fate::Denied(text)) => {
                say_text(number, &text, out);
                out.release(self.kept.into_iter().filter(|kept| !kept.of_call).map(|kept| kept.part));
                true
            }
            // Its text stands there already.
            (Phase::Denied(_), _) => true,
        };
        Ok(match (self.hosted, denied) {
            (true, true) => Step::Replaced { id },
            (true, false) => Step::NoCall,
            (false, denied) => Step::Call { denied },
        })
    }

    /// Clients take what came in pieces, and else what stood in the start. Both must be the same.
    fn join_seed(&mut self, gate: &mut Gate) -> Result<(), Broken> {
        let Some(seed) = self.seed.take() else { return Ok(()) };
        if self.came == 0 {
            self.came = seed.len();
            self.call.push(&seed, gate);
            return Ok(());
        }
        let is_same = !self.is_over()
            && read_once(&seed).is_some_and(|seed| read_once(self.call.input()) == Some(seed));
        if is_same {
            return Ok(());
        }
        Err(Broken::ambiguous("the start of a tool call has another input than what follows"))
    }
}

/// A value that has one reading.
fn read_once(text: &str) -> Option<serde_json::Value> {
    let document = Document::parse(text.as_bytes(), Limits::default()).ok()?;
    document.first_duplicate().is_none().then(|| serde_json::from_str(text).ok())?
}

/// A whole block of text.
fn say_text(number: u64, text: &str, out: &mut Out) {
    let text = serde_json::Value::from(text);
    let start = r#"{"type":"text","text":""}"#;
    let delta = format!(r#"{{"type":"text_delta","text":{text}}}"#);
    for (name, rest) in [
        ("content_block_start", format!(r#","content_block":{start}"#)),
        ("content_block_delta", format!(r#","delta":{delta}"#)),
        ("content_block_stop", String::new()),
    ] {
        out.say(Some(name), format!(r#"{{"type":"{name}","index":{number}{rest}}}"#));
    }
}
