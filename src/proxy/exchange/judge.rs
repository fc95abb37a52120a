//! Judges the calls of answers, by policy and by its rules over the facts of the exchange.

use std::sync::{Arc, Mutex, PoisonError};

use super::edits::AnswerEdits;
use super::rules::ExchangeFacts;
use crate::call::withheld;
use crate::call::{ByFacts, CallVerdict, FactsDeny, Judge, SeenCall, ShellTerms, Start, Tool, ToolCall};
use crate::policy::rule::Place;
use crate::proxy::inbound::session::Session;
use crate::proxy::snapshot::Snapshot;

/// Judges the calls of one answer, by the rules over the facts of its exchange too.
pub(crate) struct ExchangeJudge {
    pub(crate) snapshot: Arc<Snapshot>,
    pub(crate) facts: Arc<ExchangeFacts>,
}

impl Judge for ExchangeJudge {
    fn denies(&self, writes: bool) -> bool {
        self.snapshot.denies(writes)
    }

    fn shell(&self) -> ShellTerms {
        self.snapshot.shell()
    }

    fn start(&self, tool: &Tool<'_>) -> Start {
        self.snapshot.start(tool)
    }

    fn complete(&self, call: &ToolCall<'_>) -> CallVerdict {
        self.snapshot.complete(call)
    }

    fn unknown(&self, tool: &Tool<'_>) -> CallVerdict {
        self.snapshot.unknown(tool)
    }

    fn facts_deny(&self) -> FactsDeny {
        self.snapshot.policy().facts_deny_calls()
    }

    fn by_facts(&self, call: &SeenCall<'_>) -> ByFacts {
        self.facts.ask_call(&self.snapshot, call)
    }
}

/// Judges the calls of a WebSocket by the policy in force, which may have changed since it was opened, and by the facts
/// of the request that was allowed last.
pub(crate) struct PolicyInForce {
    session: Arc<Session>,
    facts: Mutex<Option<Arc<ExchangeFacts>>>,
    edits: Mutex<Arc<AnswerEdits>>,
}

impl PolicyInForce {
    pub(crate) fn new(session: &Arc<Session>, facts: Option<Arc<ExchangeFacts>>) -> Self {
        Self { session: Arc::clone(session), facts: Mutex::new(facts), edits: Mutex::default() }
    }

    /// Takes the facts of another request.
    pub(crate) fn asked(&self, facts: ExchangeFacts) {
        *self.facts.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(facts));
        *self.edits.lock().unwrap_or_else(PoisonError::into_inner) = Arc::default();
    }

    fn snapshot(&self) -> Arc<Snapshot> {
        self.session.gateway.snapshot()
    }

    /// Whether something was replaced in the request that is answered.
    fn withholds(&self) -> bool {
        let facts = self.facts.lock().unwrap_or_else(PoisonError::into_inner);
        facts.as_ref().is_some_and(|facts| facts.holds_placeholders)
    }
}

impl Judge for PolicyInForce {
    fn denies(&self, writes: bool) -> bool {
        writes && self.withholds() || self.snapshot().denies(writes)
    }

    fn shell(&self) -> ShellTerms {
        self.snapshot().shell()
    }

    fn start(&self, tool: &Tool<'_>) -> Start {
        let start = self.snapshot().start(tool);
        if self.withholds() { withheld::start(tool, start) } else { start }
    }

    fn complete(&self, call: &ToolCall<'_>) -> CallVerdict {
        let snapshot = self.snapshot();
        let verdict = snapshot.complete(call);
        let verdict = if self.withholds() { withheld::complete(call, verdict) } else { verdict };
        let edits = Arc::clone(&self.edits.lock().unwrap_or_else(PoisonError::into_inner));
        edits.complete(&snapshot, call, verdict)
    }

    fn unknown(&self, tool: &Tool<'_>) -> CallVerdict {
        let verdict = self.snapshot().unknown(tool);
        if self.withholds() { withheld::unknown(tool, verdict) } else { verdict }
    }

    fn facts_deny(&self) -> FactsDeny {
        self.snapshot().policy().facts_deny_calls()
    }

    fn by_facts(&self, call: &SeenCall<'_>) -> ByFacts {
        let facts = self.facts.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let snapshot = self.snapshot();
        match facts {
            Some(facts) => facts.ask_call(&snapshot, call),
            None if !snapshot.policy().has_rules_at(Place::Call) => ByFacts::Silent,
            None => {
                let reason = "Nothing is known of the request that this call answers";
                ByFacts::Decided(Box::new(CallVerdict::builtin("evaluation-error", reason)))
            }
        }
    }
}
