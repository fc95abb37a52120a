//! Finds out which call a piece belongs to, whichever of index, id and name a server gives.

use super::chunk::{CallKey, CallPiece};
use super::whole::WholeObject;
use super::{HearTerms, say};
use crate::call::turn::AnswerFailure;
use crate::call::turn::said::{JsonText, Said};
use crate::provider::openai_chat::transform::{EXIT_TOOL, Transform, enhancetool, tooluse};
use crate::provider::translate::{AnswerLimits, Listen};

/// How many calls an answer may have.
const MOST_CALLS: usize = 1024;

/// The calls of one answer.
pub(super) struct Calls {
    calls: Vec<Call>,
    /// Arguments are told whole, at the end of the answer.
    holds: bool,
    mends: bool,
    /// How many calls were mended.
    mended: u64,
    has_exit_tool: bool,
    /// How long all arguments are together that are kept here.
    held: usize,
    limits: AnswerLimits,
}

#[derive(Default)]
struct Call {
    key: Option<CallKey>,
    id: Option<String>,
    name: Option<String>,
    /// Its arguments, where they are told at the end; else they are told as they come.
    arguments: String,
    /// How long they are.
    length: usize,
    /// Something else than white space was among them.
    has_begun: bool,
    extent: WholeObject,
    /// The arguments are a whole object.
    is_complete: bool,
    /// The call has its place in the answer.
    is_told: bool,
}

impl Calls {
    pub(super) fn new(terms: &HearTerms) -> Self {
        let mends = terms.transforms.has(Transform::EnhanceTool);
        let has_exit_tool = terms.has_exit_tool && terms.transforms.has(Transform::ToolUse);
        let holds = mends || terms.transforms.has(Transform::ToolUse);
        Self { calls: Vec::new(), holds, mends, mended: 0, has_exit_tool, held: 0, limits: terms.limits }
    }

    pub(super) fn held(&self) -> usize {
        self.held
    }

    /// How many calls have other arguments than the model wrote.
    pub(super) fn mended(&self) -> u64 {
        self.mended
    }

    /// Takes a piece.
    ///
    /// # Errors
    /// If it cannot be one of any call, or a bound is reached.
    pub(super) fn take(
        &mut self,
        piece: &CallPiece<'_>,
        listener: &mut dyn Listen,
    ) -> Result<(), AnswerFailure> {
        if piece.is_custom {
            return Err(AnswerFailure::unreadable("the model called a custom tool, whose input is no JSON"));
        }
        let found = self.find(piece);
        if found.is_none() && piece.id.is_none() && piece.name.is_none() && piece.arguments.is_none() {
            return Ok(());
        }
        let number = match found {
            Some(number) if !self.begins_another(number, piece)? => number,
            Some(_) | None => self.begin(piece)?,
        };
        let is_exit_tool = |name: Option<&str>| name.is_none_or(|name| name == EXIT_TOOL);
        let (has_exit_tool, holds) = (self.has_exit_tool, self.holds);
        let Some(call) = self.calls.get_mut(number) else { return Ok(()) };
        let number = number as u32;
        let is_named = call.identify(piece);
        // As long as a call may be one of the tool that is text, it has no place.
        let waits = has_exit_tool && is_exit_tool(call.name.as_deref());
        if !call.is_told && !waits {
            call.is_told = true;
            listener.said(Said::CallStart { call: number })?;
        }
        if let Some(name) = call.name.as_deref().filter(|_| is_named && call.is_told) {
            listener.said(Said::CallName { call: number, id: call.id.as_deref(), name })?;
        }
        let Some(arguments) = piece.arguments else { return Ok(()) };
        call.add(arguments, holds, self.limits.tool_input_bytes)?;
        self.held += if holds { arguments.len() } else { 0 };
        let most = self.limits.body_bytes;
        if self.held > most {
            let message =
                format!("the inputs of calls are longer than {most} bytes (limits.decodedBodyBytes)");
            return Err(AnswerFailure::unreadable(&message));
        }
        if holds { Ok(()) } else { call.tell(number, arguments, listener) }
    }

    /// The call that a piece may belong to.
    fn find(&self, piece: &CallPiece<'_>) -> Option<usize> {
        let last_of = |is_it: &dyn Fn(&Call) -> bool| self.calls.iter().rposition(is_it);
        match piece.key {
            Some(key) => last_of(&|call| call.key == Some(key)),
            None => {
                let by_id =
                    piece.id.as_deref().and_then(|id| last_of(&|call| call.id.as_deref() == Some(id)));
                by_id.or_else(|| self.calls.len().checked_sub(1))
            }
        }
    }

    /// Whether a piece with a name begins another call than the one that was found.
    ///
    /// # Errors
    /// If its name would be a second one of the same call.
    fn begins_another(&self, number: usize, piece: &CallPiece<'_>) -> Result<bool, AnswerFailure> {
        let Some(call) = self.calls.get(number) else { return Ok(true) };
        let has_other_id = piece.id.is_some() && piece.id.as_deref() != call.id.as_deref();
        let Some(name) = piece.name.as_deref() else {
            // A server that gives no index tells calls apart by their ids.
            let is_other = has_other_id && call.id.is_some() && call.name.is_none() && piece.key.is_none();
            return Ok(is_other);
        };
        let Some(known) = call.name.as_deref() else {
            return Ok(has_other_id && call.id.is_some());
        };
        let is_same = name == known;
        match (&piece.id, &call.id) {
            // The id came late, with the name once more.
            (Some(_), None) if is_same && !call.is_complete => Ok(false),
            (Some(_), _) if has_other_id => Ok(true),
            (None, _) if call.is_complete => Ok(true),
            _ if is_same => Ok(false),
            _ => Err(AnswerFailure::unreadable("a call of the model has two names")),
        }
    }

    fn begin(&mut self, piece: &CallPiece<'_>) -> Result<usize, AnswerFailure> {
        let number = self.calls.len();
        if number >= MOST_CALLS {
            return Err(AnswerFailure::unreadable(&format!("the answer has more than {MOST_CALLS} calls")));
        }
        self.calls.push(Call { key: piece.key, ..Call::default() });
        Ok(number)
    }

    /// Tells what waited: the answer has ended, by reaching the limit of tokens or not.
    ///
    /// # Errors
    /// If the listener cannot say it.
    pub(super) fn end(&mut self, is_cut: bool, listener: &mut dyn Listen) -> Result<(), AnswerFailure> {
        for (number, call) in self.calls.iter().enumerate().filter(|_| self.holds) {
            if self.has_exit_tool && call.name.as_deref() == Some(EXIT_TOOL) {
                say(JsonText::Plain(&tooluse::exit_text(&call.arguments)), false, listener)?;
                continue;
            }
            let number = number as u32;
            if !call.is_told {
                listener.said(Said::CallStart { call: number })?;
            }
            let mended = (self.mends && !is_cut).then(|| enhancetool::mend(&call.arguments)).flatten();
            self.mended += u64::from(mended.is_some());
            let arguments = mended.as_deref().unwrap_or(&call.arguments);
            if !arguments.trim_ascii().is_empty() {
                listener.said(Said::CallInput { call: number, piece: JsonText::Plain(arguments) })?;
            }
            if call.is_complete || mended.is_some() {
                listener.said(Said::CallComplete { call: number })?;
            }
        }
        Ok(())
    }
}

impl Call {
    /// Takes the id and the name that a piece has; returns whether the name is new.
    fn identify(&mut self, piece: &CallPiece<'_>) -> bool {
        if self.id.is_none() {
            self.id = piece.id.as_deref().map(str::to_owned);
        }
        let is_new = self.name.is_none() && piece.name.is_some();
        if is_new {
            self.name = piece.name.as_deref().map(str::to_owned);
        }
        is_new
    }

    /// Takes the next piece of arguments.
    fn add(&mut self, arguments: JsonText<'_>, holds: bool, most: usize) -> Result<(), AnswerFailure> {
        let text = arguments.text();
        self.length += text.len();
        self.has_begun |= !text.trim_ascii().is_empty();
        if holds {
            self.arguments.push_str(&text);
        }
        if self.length > most {
            let message = format!("the input of a call is longer than {most} bytes (limits.toolInputBytes)");
            return Err(AnswerFailure::unreadable(&message));
        }
        self.extent.take(&text);
        self.is_complete = self.extent.is_complete();
        Ok(())
    }

    /// Tells the piece that was taken last. White space before all arguments goes: arguments of nothing else are none.
    fn tell(&self, number: u32, piece: JsonText<'_>, listener: &mut dyn Listen) -> Result<(), AnswerFailure> {
        if !self.has_begun {
            return Ok(());
        }
        listener.said(Said::CallInput { call: number, piece })?;
        if self.is_complete { listener.said(Said::CallComplete { call: number }) } else { Ok(()) }
    }
}
