//! One output item while it comes, and what has become of it.

use super::called::Called;
use super::copies::{Copies, sha256};
use super::say::Replacement;
use crate::provider::answer::{Broken, Call, Fate, Gate, Phase};

/// An output item, by its index.
pub(super) struct Item {
    /// Its type.
    kind: String,
    name: String,
    namespace: Option<String>,
    id: Option<String>,
    call_id: Option<String>,
    /// Whether the provider runs it.
    is_hosted: bool,
    progress: Progress,
    copies: Copies,
    /// Of the input, once it is complete.
    input: Option<[u8; 32]>,
    replacement: Replacement,
    /// Whether the message in its place went on.
    is_replaced: bool,
}

enum Progress {
    /// Nothing that anybody runs.
    Plain,
    /// Its events go on as they come.
    Flows(Call),
    Held(Call),
    Passed,
    Denied,
    /// The answer ended before it did.
    Lost,
}

/// What becomes of an event that is about an item.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Standing {
    Waits,
    Goes,
    /// A message goes on, once, in its place.
    Replaced(Replacement),
    /// It does not go on.
    Lost,
}

impl Item {
    /// An item that is no call.
    pub(super) fn plain(kind: &str) -> Self {
        Self::of(kind, Progress::Plain, Replacement::new(None, 0, "", None))
    }

    /// What stands for an item that goes with a call which was denied.
    pub(super) fn denied(kind: &str, replacement: Replacement) -> Self {
        Self::of(kind, Progress::Denied, replacement)
    }

    fn of(kind: &str, progress: Progress, replacement: Replacement) -> Self {
        Self {
            kind: kind.to_owned(),
            name: String::new(),
            namespace: None,
            id: None,
            call_id: None,
            is_hosted: false,
            progress,
            copies: Copies::default(),
            input: None,
            replacement,
            is_replaced: false,
        }
    }

    /// A call that begins. `replacement` stands in its place if it is denied; its text is still empty.
    ///
    /// # Errors
    /// Where it says more than is compared.
    pub(super) fn begin(
        called: &Called<'_>,
        mut replacement: Replacement,
        gate: &mut Gate,
    ) -> Result<Self, Broken> {
        let id = called.call_id.as_deref().or(called.id.as_deref()).unwrap_or_default();
        let namespace = called.namespace.as_deref();
        let call = if called.is_hosted {
            gate.begin_hosted(id, &called.name, namespace, called.form)
        } else {
            gate.begin(id, &called.name, namespace, called.form)
        };
        let progress = match call.phase() {
            Phase::Flows => Progress::Flows(call),
            Phase::Held => Progress::Held(call),
            Phase::Denied(text) => {
                replacement.text.clone_from(text);
                Progress::Denied
            }
        };
        Ok(Self {
            name: called.name.to_string(),
            namespace: called.namespace.as_deref().map(str::to_owned),
            id: called.id.as_deref().map(str::to_owned),
            call_id: called.call_id.as_deref().map(str::to_owned),
            is_hosted: called.is_hosted,
            copies: Copies::begun(called)?,
            ..Self::of(&called.kind, progress, replacement)
        })
    }

    /// The next piece of its input, or of one of its commands.
    ///
    /// # Errors
    /// As for [`Copies::piece`].
    pub(super) fn piece(&mut self, command: Option<u64>, piece: &str, gate: &mut Gate) -> Result<(), Broken> {
        let is_input = matches!(self.kind.as_str(), "function_call" | "custom_tool_call");
        if let Progress::Flows(call) | Progress::Held(call) = &mut self.progress
            && is_input
            && !self.copies.is_seeded()
        {
            call.push(piece, gate);
        }
        self.copies.piece(command, piece)
    }

    /// All of its input, or of one of its commands; `name` where the event says it too.
    ///
    /// # Errors
    /// Where it disagrees with what came.
    pub(super) fn whole(
        &mut self,
        command: Option<u64>,
        whole: &str,
        name: Option<&str>,
    ) -> Result<(), Broken> {
        if name.is_some_and(|name| name != self.name) {
            return Err(other("name"));
        }
        self.copies.whole(command, whole)
    }

    /// It is complete, or as complete as it becomes: `is_cut` where the model was stopped inside it.
    ///
    /// # Errors
    /// Where it is not what it was when it began.
    pub(super) fn complete(
        &mut self,
        called: &Called<'_>,
        is_cut: bool,
        gate: &mut Gate,
    ) -> Result<(), Broken> {
        if self.input.is_some() {
            return Err(Broken::ambiguous("a tool call ends twice"));
        }
        self.check_identity(called)?;
        self.copies.check(called)?;
        self.take_runner(called);
        let input = called.input.as_deref().unwrap_or_default();
        self.input = Some(sha256(input));
        let fate = match std::mem::replace(&mut self.progress, Progress::Passed) {
            Progress::Flows(call) | Progress::Held(call) if is_cut => gate.cut(call),
            Progress::Flows(call) => {
                return match finished(call, called, gate) {
                    Fate::Denied(text) if !self.is_hosted => Err(Broken::ambiguous(text.trim_end())),
                    // Its beginning went on already, and it has run.
                    Fate::Passes | Fate::Denied(_) => Ok(()),
                };
            }
            Progress::Held(call) => finished(call, called, gate),
            same @ (Progress::Plain | Progress::Passed | Progress::Denied | Progress::Lost) => {
                self.progress = same;
                return Ok(());
            }
        };
        if let Fate::Denied(text) = fate
            && !gate.observes()
        {
            self.progress = Progress::Denied;
            self.replacement.text = text;
        }
        Ok(())
    }

    /// A copy of it in a response that is told whole.
    ///
    /// # Errors
    /// Where it is not what it was.
    pub(super) fn check_copy(&self, called: &Called<'_>) -> Result<(), Broken> {
        self.check_identity(called)?;
        let input = called.input.as_deref().unwrap_or_default();
        if self.input.is_some_and(|before| before != sha256(input)) || self.is_hosted && !called.is_hosted {
            return Err(Broken::ambiguous("copies of a tool call disagree"));
        }
        Ok(())
    }

    /// A call of which any copy does not say that the provider runs it is the client's: some client runs it.
    fn take_runner(&mut self, called: &Called<'_>) {
        self.is_hosted &= called.is_hosted;
        if let Progress::Flows(call) | Progress::Held(call) = &mut self.progress
            && !self.is_hosted
        {
            call.is_of_client();
        }
    }

    pub(super) fn is_hosted(&self) -> bool {
        self.is_hosted
    }

    /// It never becomes complete.
    pub(super) fn abandon(&mut self, gate: &mut Gate) {
        match std::mem::replace(&mut self.progress, Progress::Lost) {
            // What went on of it cannot be taken back.
            Progress::Flows(call) => {
                gate.abandon(call);
                self.progress = Progress::Passed;
            }
            Progress::Held(call) => gate.abandon(call),
            same @ (Progress::Plain | Progress::Passed | Progress::Denied | Progress::Lost) => {
                self.progress = same;
            }
        }
    }

    fn check_identity(&self, called: &Called<'_>) -> Result<(), Broken> {
        if self.kind != called.kind {
            return Err(other("type"));
        }
        if self.name != called.name || self.namespace.as_deref() != called.namespace.as_deref() {
            return Err(other("name"));
        }
        // OpenAI itself gives a search for tools another id when it ends.
        let is_search = called.kind == "tool_search_call" && self.input.is_none();
        match (&self.call_id, &called.call_id) {
            (Some(before), Some(now)) if before != now && !is_search => Err(other("call_id")),
            _ => Ok(()),
        }
    }

    /// What becomes of the next event that is about it.
    pub(super) fn standing(&mut self) -> Standing {
        match self.progress {
            Progress::Held(_) => Standing::Waits,
            Progress::Plain | Progress::Flows(_) | Progress::Passed => Standing::Goes,
            Progress::Lost => Standing::Lost,
            Progress::Denied if std::mem::replace(&mut self.is_replaced, true) => Standing::Lost,
            Progress::Denied => Standing::Replaced(self.replacement.clone()),
        }
    }

    pub(super) fn kind(&self) -> &str {
        &self.kind
    }

    /// That with which it began: there are servers that give it another with each event.
    pub(super) fn id(&self) -> Option<&str> {
        self.id.as_deref()
    }

    pub(super) fn call_id(&self) -> Option<&str> {
        self.call_id.as_deref()
    }

    /// Whether it is a call that could still become something else.
    pub(super) fn is_open(&self) -> bool {
        matches!(self.progress, Progress::Flows(_) | Progress::Held(_))
    }

    /// Whether more events of it may come: those of one that was denied go until it is complete.
    pub(super) fn is_under_way(&self) -> bool {
        self.is_open() || matches!(self.progress, Progress::Denied) && !self.is_complete()
    }

    pub(super) fn is_plain(&self) -> bool {
        matches!(self.progress, Progress::Plain)
    }

    pub(super) fn is_complete(&self) -> bool {
        self.input.is_some()
    }

    /// What stands in its place; none where it goes on.
    pub(super) fn replacement(&self) -> Option<&Replacement> {
        matches!(self.progress, Progress::Denied).then_some(&self.replacement)
    }
}

/// Decides about a call with all of its input, where it did not come in pieces.
fn finished(mut call: Call, called: &Called<'_>, gate: &mut Gate) -> Fate {
    if call.input().is_empty()
        && let Some(input) = &called.input
    {
        call.push(input, gate);
    }
    gate.finish(call)
}

fn other(what: &str) -> Broken {
    Broken::ambiguous(format!("the {what} of a tool call is not what it was when the call began"))
}
