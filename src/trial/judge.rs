//! Judges the calls of a test's answer, by policy and by its rules over facts.

use std::sync::{Arc, Mutex, PoisonError};

use super::facts::KnownFacts;
use crate::call::{ByFacts, CallVerdict, FactsDeny, Judge, SeenCall, ShellTerms, Start, Tool, ToolCall};
use crate::policy::Policy;
use crate::policy::rule::{CallRuling, KnownCall, Place, RulesVerdict};

/// The judge of one answer.
pub(super) struct TrialJudge {
    policy: Arc<Policy>,
    facts: KnownFacts,
    unknown: Mutex<Option<String>>,
}

impl TrialJudge {
    pub(super) fn new(policy: &Arc<Policy>, facts: KnownFacts) -> Self {
        Self { policy: Arc::clone(policy), facts, unknown: Mutex::default() }
    }

    /// Why a call could not be judged, if one could not.
    pub(super) fn why_unknown(&self) -> Option<String> {
        self.unknown.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

impl Judge for TrialJudge {
    fn denies(&self, writes: bool) -> bool {
        self.policy.denies(writes)
    }

    fn shell(&self) -> ShellTerms {
        self.policy.shell()
    }

    fn start(&self, tool: &Tool<'_>) -> Start {
        self.policy.start(tool)
    }

    fn complete(&self, call: &ToolCall<'_>) -> CallVerdict {
        self.policy.complete(call)
    }

    fn unknown(&self, tool: &Tool<'_>) -> CallVerdict {
        self.policy.unknown(tool)
    }

    fn facts_deny(&self) -> FactsDeny {
        self.policy.facts_deny_calls()
    }

    fn by_facts(&self, call: &SeenCall<'_>) -> ByFacts {
        if !self.policy.has_rules_at(Place::Call) {
            return ByFacts::Silent;
        }
        let facts = self.facts.clone().called(call);
        let known = KnownCall { kinds: call.has_all_kinds, input: call.input_bytes.is_some() };
        match facts.judge_call(&self.policy, known) {
            Ok(CallRuling::NeedsInput { denies }) => ByFacts::NeedsInput { denies },
            Ok(CallRuling::Decided(verdict, advice)) => {
                let RulesVerdict { judgement, audits, .. } = verdict;
                let audited = judgement.audited.into_iter().chain(audits).collect();
                let decision = judgement.decision;
                ByFacts::Decided(Box::new(CallVerdict {
                    decision,
                    advice,
                    audited,
                    ..CallVerdict::allowed()
                }))
            }
            Err(unknown) => {
                *self.unknown.lock().unwrap_or_else(PoisonError::into_inner) = Some(unknown.to_string());
                ByFacts::Silent
            }
        }
    }
}
