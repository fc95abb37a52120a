//! One output item while it comes, and what has become of it.

use super::called::CalledItem;
use super::copies::{Copies, sha256};
use super::say::Replacement;
use crate::provider::answer::{BrokenAnswer, CallOutcome, Gate, PendingCall, Phase};

/// An output item, by its index.
pub(super) struct OutputItem {
    /// Its type.
    kind: String,
    name: String,
    namespace: Option<String>,
    id: Option<String>,
    call_id: Option<String>,
    /// Whether the provider runs it.
    is_hosted: bool,
    progress: ItemProgress,
    copies: Copies,
    /// Of the input, once it is complete.
    input: Option<[u8; 32]>,
    replacement: Replacement,
    /// Whether the message in its place went on.
    is_replaced: bool,
}

enum ItemProgress {
    /// No call.
    Plain,
    /// Its events go on as they come.
    Flows(PendingCall),
    Held(PendingCall),
    Passed,
    Denied,
    /// The answer ended before it did.
    Lost,
}

/// Whether an event about an item goes on.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum EventOutcome {
    Waits,
    Goes,
    /// It is replaced by a message, once for the item.
    Replaced(Replacement),
    /// It does not go on.
    Lost,
}

impl OutputItem {
    /// An item that is no call.
    pub(super) fn plain(kind: &str) -> Self {
        Self::of(kind, ItemProgress::Plain, Replacement::new(None, 0, "", None))
    }

    /// The output of a denied call, which is replaced with it.
    pub(super) fn denied(kind: &str, replacement: Replacement) -> Self {
        Self::of(kind, ItemProgress::Denied, replacement)
    }

    fn of(kind: &str, progress: ItemProgress, replacement: Replacement) -> Self {
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
    /// If it has more commands than are compared.
    pub(super) fn begin(
        called: &CalledItem<'_>,
        mut replacement: Replacement,
        gate: &mut Gate,
    ) -> Result<Self, BrokenAnswer> {
        let call = gate.begin(&called.head());
        let progress = match call.phase() {
            Phase::Flows => ItemProgress::Flows(call),
            Phase::Held => ItemProgress::Held(call),
            Phase::Denied(text) => {
                replacement.text.clone_from(text);
                ItemProgress::Denied
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
    pub(super) fn piece(
        &mut self,
        command: Option<u64>,
        piece: &str,
        gate: &mut Gate,
    ) -> Result<(), BrokenAnswer> {
        let is_input = matches!(self.kind.as_str(), "function_call" | "custom_tool_call");
        if let ItemProgress::Flows(call) | ItemProgress::Held(call) = &mut self.progress
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
    /// If it disagrees with what came.
    pub(super) fn whole(
        &mut self,
        command: Option<u64>,
        whole: &str,
        name: Option<&str>,
    ) -> Result<(), BrokenAnswer> {
        if name.is_some_and(|name| name != self.name) {
            return Err(other("name"));
        }
        self.copies.whole(command, whole)
    }

    /// It is complete, or as complete as it becomes: `is_cut` where the model was stopped inside it.
    ///
    /// # Errors
    /// If it is not what it was when it began.
    pub(super) fn complete(
        &mut self,
        called: &CalledItem<'_>,
        is_cut: bool,
        gate: &mut Gate,
    ) -> Result<(), BrokenAnswer> {
        if self.input.is_some() {
            return Err(BrokenAnswer::ambiguous("a tool call ends twice"));
        }
        self.check_identity(called)?;
        self.copies.check(called)?;
        self.take_runner(called);
        let input = called.input.as_deref().unwrap_or_default();
        self.input = Some(sha256(input));
        let fate = match std::mem::replace(&mut self.progress, ItemProgress::Passed) {
            ItemProgress::Flows(call) | ItemProgress::Held(call) if is_cut => gate.cut(call),
            ItemProgress::Flows(call) => {
                return match finished(call, called, gate) {
                    CallOutcome::Denied(text) if !self.is_hosted => {
                        Err(BrokenAnswer::ambiguous(text.trim_end()))
                    }
                    // Its beginning went on already, and it has run.
                    CallOutcome::Passes | CallOutcome::Denied(_) => Ok(()),
                };
            }
            ItemProgress::Held(call) => finished(call, called, gate),
            same @ (ItemProgress::Plain
            | ItemProgress::Passed
            | ItemProgress::Denied
            | ItemProgress::Lost) => {
                self.progress = same;
                return Ok(());
            }
        };
        if let CallOutcome::Denied(text) = fate
            && !gate.observes()
        {
            self.progress = ItemProgress::Denied;
            self.replacement.text = text;
        }
        Ok(())
    }

    /// A copy of it in a response that is told whole.
    ///
    /// # Errors
    /// If it is not what it was.
    pub(super) fn check_copy(&self, called: &CalledItem<'_>) -> Result<(), BrokenAnswer> {
        self.check_identity(called)?;
        let input = called.input.as_deref().unwrap_or_default();
        if self.input.is_some_and(|before| before != sha256(input)) || self.is_hosted && !called.is_hosted {
            return Err(BrokenAnswer::ambiguous("copies of a tool call disagree"));
        }
        Ok(())
    }

    /// A call of which any copy does not say that the provider runs it is the client's: some client runs it.
    fn take_runner(&mut self, called: &CalledItem<'_>) {
        self.is_hosted &= called.is_hosted;
        if let ItemProgress::Flows(call) | ItemProgress::Held(call) = &mut self.progress
            && !self.is_hosted
        {
            call.is_of_client();
        }
    }

    pub(super) fn is_hosted(&self) -> bool {
        self.is_hosted
    }

    /// Gives up the call.
    pub(super) fn abandon(&mut self, gate: &mut Gate) {
        match std::mem::replace(&mut self.progress, ItemProgress::Lost) {
            // What went on of it cannot be taken back.
            ItemProgress::Flows(call) => {
                gate.abandon(call);
                self.progress = ItemProgress::Passed;
            }
            ItemProgress::Held(call) => gate.abandon(call),
            same @ (ItemProgress::Plain
            | ItemProgress::Passed
            | ItemProgress::Denied
            | ItemProgress::Lost) => {
                self.progress = same;
            }
        }
    }

    fn check_identity(&self, called: &CalledItem<'_>) -> Result<(), BrokenAnswer> {
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

    /// Returns whether the next event about it goes on.
    pub(super) fn standing(&mut self) -> EventOutcome {
        match self.progress {
            ItemProgress::Held(_) => EventOutcome::Waits,
            ItemProgress::Plain | ItemProgress::Flows(_) | ItemProgress::Passed => EventOutcome::Goes,
            ItemProgress::Lost => EventOutcome::Lost,
            ItemProgress::Denied if std::mem::replace(&mut self.is_replaced, true) => EventOutcome::Lost,
            ItemProgress::Denied => EventOutcome::Replaced(self.replacement.clone()),
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
        matches!(self.progress, ItemProgress::Flows(_) | ItemProgress::Held(_))
    }

    /// Whether more events of it may come: those of one that was denied go until it is complete.
    pub(super) fn is_under_way(&self) -> bool {
        self.is_open() || matches!(self.progress, ItemProgress::Denied) && !self.is_complete()
    }

    pub(super) fn is_plain(&self) -> bool {
        matches!(self.progress, ItemProgress::Plain)
    }

    pub(super) fn is_complete(&self) -> bool {
        self.input.is_some()
    }

    /// The message that replaces it; none if it goes on.
    pub(super) fn replacement(&self) -> Option<&Replacement> {
        matches!(self.progress, ItemProgress::Denied).then_some(&self.replacement)
    }
}

/// Decides about a call. If its input did not come in pieces, it is the item's.
fn finished(mut call: PendingCall, called: &CalledItem<'_>, gate: &mut Gate) -> CallOutcome {
    if call.input().is_empty()
        && let Some(input) = &called.input
    {
        call.push(input, gate);
    }
    gate.finish(call)
}

fn other(what: &str) -> BrokenAnswer {
    BrokenAnswer::ambiguous(format!("the {what} of a tool call is not what it was when the call began"))
}
