//! Tries policies before they bite: asks them about calls, requests and past events, by the code that decides. Pure.
//!
//! [`document`] is what users write, [`Trial::run`] gives a case to a policy, [`expect`] compares, [`report`] says it.
//! [`replay`] decides an event anew; [`learn`] drafts a policy from events;
//! [`changes`] and [`compare`] say what another policy changes; [`question`] is one call or request;
//! [`written`] is the test of an event.

pub mod changes;
pub mod compare;
pub mod document;
pub mod expect;
mod facts;
pub mod files;
mod found;
mod judge;
mod judged;
pub mod learn;
pub mod question;
pub mod replay;
pub mod report;
mod request;
mod routed;
pub mod written;

use std::path::Path;
use std::sync::Arc;
use std::time::SystemTime;

use http::request::Parts;

use crate::call::Service;
use crate::decision::Decision;
use crate::event::Event;
use crate::name::gateway;
use crate::name::host::Host;
use crate::policy::Policy;
use crate::policy::explain::ShownDecision;
use crate::problem::Problem;
use crate::provider::answer::GuardLimits;
use document::TestCase;
use question::{Asked, Question};
use replay::Replayed;

/// Whether the agent asked the gateway itself, which no policy opens or closes as a destination.
fn is_question(event: &Event) -> bool {
    event.destination.as_ref().is_some_and(|to| to.host == gateway::NAME)
}

/// A policy, and all that a case needs besides it.
pub struct Trial<'a> {
    pub policy: &'a Arc<Policy>,
    /// The gateway's own bounds.
    pub bounds: GuardLimits,
    pub world: &'a dyn World,
    /// The time, where rules may ask for it.
    pub now: Option<SystemTime>,
}

/// What a trial cannot do itself: it reads no files, and the decision about a head belongs to the gateway.
pub trait World {
    /// Reads a file that a test names.
    ///
    /// # Errors
    /// Why it cannot be read.
    fn file(&self, path: &Path) -> Result<Vec<u8>, String>;

    /// Finds an event by its id in a file or directory of events. Returns the event and its line.
    ///
    /// # Errors
    /// Why it cannot be found.
    fn event(&self, id: &str, from: &Path) -> Result<(Event, String), String>;

    /// Decides about the head of a request to a host and port as the gateway does.
    fn head(&self, parts: &Parts, has_body: bool, place: (Host, u16), policy: &Policy) -> HeadOutcome;
}

/// What the head of a request comes to.
pub struct HeadOutcome {
    pub decision: Decision,
    /// The API of a provider that is called.
    pub service: Option<Service>,
    /// The name of the credential that is attached.
    pub credential: Option<String>,
    /// It asks for a WebSocket, and may have one: its messages come later.
    pub is_upgrade: bool,
}

/// What a policy makes of a case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    pub decision: ShownDecision,
    /// The tool calls of an answer, in its order; those inside other calls too.
    pub calls: Vec<CallOutcome>,
    /// The types of the hosted tools that are taken out of the request.
    pub removed: Vec<String>,
    /// The detectors of the secrets that are replaced in the request.
    pub redacted: Vec<String>,
    /// The labels of the models that routes ask for the request, one after the other.
    pub models: Vec<String>,
}

/// A tool call of an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallOutcome {
    /// With its namespace in front.
    pub name: String,
    pub decision: ShownDecision,
}

/// The outcome of a case, or why none can be said.
pub type Tried = Result<Outcome, String>;

impl Trial<'_> {
    /// Gives a case to the policy.
    ///
    /// # Errors
    /// The case has a mistake: a file that cannot be read, a host that is none. The path is relative to the case.
    pub fn run(&self, case: &TestCase) -> Result<Tried, Problem> {
        if let Some(call) = &case.tool_call {
            let question = Question::about_call(call, case.files.as_ref());
            let explained = question.ask(self.policy, self.bounds, Asked::At(self.now));
            let explained = explained.map_err(|error| Problem::at("toolCall", error.to_string()))?;
            return Ok(said(explained.decision));
        }
        if let Some(request) = &case.request {
            return self.request(request, case.answer.as_ref(), case.files.as_ref());
        }
        let (Some(id), Some(from)) = (&case.event, &case.from) else {
            return Err(Problem::at("", "has none of toolCall, request and event"));
        };
        let found = self.world.event(id, from);
        let (event, line) = found.map_err(|why| Problem::at("event", why))?;
        Ok(match replay::replay(self.policy, self.bounds, &event, &line) {
            Some(Replayed::Decided(decision)) => Ok(Outcome::of(decision)),
            Some(Replayed::Unknown(why)) => Err(why),
            None => Err(format!("an event of kind {} is about no decision", event.kind.as_str())),
        })
    }
}

impl Outcome {
    fn of(decision: ShownDecision) -> Self {
        Self { decision, calls: Vec::new(), removed: Vec::new(), redacted: Vec::new(), models: Vec::new() }
    }
}

fn said(decision: ShownDecision) -> Tried {
    if decision.is_open() {
        return Err(decision.reason.unwrap_or_default());
    }
    Ok(Outcome::of(decision))
}
