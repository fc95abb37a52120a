//! What may stand in a request to a provider, and what is asked about it (plain data).

use std::borrow::Cow;

use crate::decision::Decision;

/// Through which a dialect asks what a request may hold; policy implements it.
pub trait Terms: Send + Sync {
    /// About a tool of this type that the provider would run, or of which nobody knows who runs it.
    fn hosted_tool(&self, tool_type: &str) -> HostedToolVerdict;

    /// Whether conversations may be kept at the provider.
    fn provider_state(&self) -> Judgement;

    /// Whether the provider may be asked to fetch URLs.
    fn url_sources(&self) -> Judgement;

    /// Whether requests may be edited at all: where only Audit policies select the pod, none is.
    fn may_edit(&self) -> bool;
}

/// What is done about one hosted tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostedToolVerdict {
    pub action: HostedAction,
    /// Who says so: Allow, Deny (also where it is only taken out), or WouldDeny where only Audit policies select the pod.
    pub decision: Decision,
    /// What Audit policies beside enforced ones would have done, only where it differs.
    pub audited: Option<Decision>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HostedAction {
    Keep,
    /// It is taken out of the request.
    Strip,
    /// The request is refused.
    Refuse,
}

/// What becomes of something that is allowed or denied as a whole, and what is recorded beside.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Judgement {
    /// Allow, Deny, or WouldDeny where only Audit policies select the pod.
    pub decision: Decision,
    /// What Audit policies beside enforced ones would have done, only where it differs.
    pub audited: Option<Decision>,
}

impl Judgement {
    /// Whether it must not go on.
    pub fn denies(&self) -> bool {
        self.decision.denies()
    }
}

/// Why a request goes no further.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Denial {
    pub decision: Decision,
    pub answer: DenialForm,
}

/// How a denial is answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DenialForm {
    /// In the dialect's shape for what policy forbids.
    Forbidden,
    /// The body is larger than what may be seen whole: 413.
    TooLarge,
    /// The body's content coding is none that is known: 415.
    UnsupportedCoding,
    /// With this status and error code, from which the client of the dialect recovers by itself.
    Recoverable { status: u16, code: &'static str },
    /// A limit is reached that lifts by itself after that time: Anthropic 429 with `retry-after` and
    /// `x-should-retry: false`, OpenAI and Gemini 400, as a 429 hides the message in Codex and stalls Gemini
    /// (design section 6.5).
    Limited { retry_after_seconds: u64 },
}

impl Denial {
    /// A denial by something built in, `postern/builtin/RULE`.
    pub fn builtin(rule: &str, reason: impl Into<Cow<'static, str>>) -> Self {
        Decision::builtin(rule, reason).into()
    }

    /// A request that cannot be understood; `place` says where, `why` what is wrong with it.
    pub fn unparseable(place: &str, why: impl std::fmt::Display) -> Self {
        let colon = if place.is_empty() { "" } else { ": " };
        Self::builtin("unparseable", format!("the request cannot be understood: {place}{colon}{why}"))
    }

    /// The same denial, answered otherwise.
    pub fn answered(self, answer: DenialForm) -> Self {
        Self { answer, ..self }
    }
}

impl From<Decision> for Denial {
    fn from(decision: Decision) -> Self {
        Self { decision, answer: DenialForm::Forbidden }
    }
}
