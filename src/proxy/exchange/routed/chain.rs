//! Asks the models of a route, one after the other, until one begins to answer.

use std::sync::Arc;
use std::time::{Duration, Instant};

use http::Response;

use super::attempt::{AgentTurn, Asked, Attempt, Begun, FailedAttempt};
use super::told;
use crate::call::FailureClass;
use crate::call::turn::AnswerFailure;
use crate::event;
use crate::policy::routing::{Hop, Model, Route};
use crate::provider::translate::{UpstreamError, classify};
use crate::proxy::body::Body;
use crate::proxy::error::Stop;
use crate::proxy::exchange::Exchange;
use crate::proxy::exchange::record::Record;
use crate::proxy::exchange::target::UpstreamTarget;
use crate::proxy::routing::health::Change;

/// The class of an attempt that was none of the failures.
const ANSWERED: &str = "Answered";

/// How long a model has for its first piece where another one follows.
const FIRST_PIECE: Duration = Duration::from_mins(2);

/// The models that a route asks, in this order.
#[derive(Debug)]
pub(in crate::proxy::exchange) struct Chain {
    pub(in crate::proxy::exchange) route: Arc<Route>,
    pub(in crate::proxy::exchange) hops: Vec<Hop>,
}

/// The answer of a chain.
pub(in crate::proxy::exchange) struct Routed {
    pub(in crate::proxy::exchange) response: Response<Body>,
    /// Who was asked last, whose key is masked in it.
    pub(in crate::proxy::exchange) target: UpstreamTarget,
    /// Whether a model said it: the guard reads it.
    pub(in crate::proxy::exchange) is_answer: bool,
}

impl Chain {
    /// The model that is asked first; none where that is the origin.
    pub(in crate::proxy::exchange) fn first_model(&self) -> Option<&Arc<Model>> {
        self.hops.first().and_then(Hop::model)
    }

    /// Asks one model after the other. What is answered is told to the record; the request's own event is emitted with the
    /// first that is asked.
    ///
    /// # Errors
    /// If the request must not go on, whoever would answer it.
    pub(in crate::proxy::exchange) async fn ask(
        &self,
        exchange: &Exchange<'_>,
        turn: &AgentTurn<'_>,
        record: &mut Record,
    ) -> Result<Routed, Stop> {
        let begun = Instant::now();
        let deadline = begun + exchange.snapshot.settings.timeouts.upstream_head;
        let mut last = None;
        for (number, hop) in self.hops.iter().enumerate() {
            let rest = self.hops.get(number + 1..).unwrap_or_default();
            if self.passes_over(exchange, turn, (hop, rest)) {
                record.attempted(attempt(hop.label(), "PassedOver", None, Duration::ZERO));
                continue;
            }
            let now = Instant::now();
            let until = deadline.min(now + first_piece(hop, !rest.is_empty(), deadline - begun));
            record.asking(&self.route, turn.shown(hop));
            let (is_last, rule) = (rest.is_empty(), self.route.id.as_str());
            // An agent that hangs up tells nothing about the model.
            let _trial = exchange.session.gateway.routing.health.trial(turn.health_name(hop));
            let attempt = Attempt { exchange, turn, hop, is_last, until, latest: deadline, rule };
            let asked = attempt.ask(record).await;
            let took = now.elapsed();
            match asked {
                Ok(begun) => return Ok(self.answered(exchange, (turn, hop), (begun, took), record)),
                Err(Asked::Stopped(stop)) => return Err(stop),
                Err(Asked::Failed(mut failed)) => {
                    failed.hide_key(exchange);
                    self.failed(exchange, (turn, hop), (&failed.failure, took), record);
                    let follows = self.route.follows(failed.failure.class) && Instant::now() < deadline;
                    last = Some((hop, failed));
                    if !follows {
                        break;
                    }
                }
            }
        }
        let metrics = exchange.session.gateway.metrics.routing();
        let Some((hop, failed)) = last else {
            // The last of a chain is never passed over.
            let failure = AnswerFailure::new(FailureClass::Connect, "no model of the route may be asked");
            return Ok(self.told(turn, ("none", &failure), (turn.origin.clone(), None), record));
        };
        let FailedAttempt { failure, target, answer } = *failed;
        metrics.routed(self.route.id.as_str(), hop.label(), failure.class.as_str());
        Ok(self.told(turn, (hop.label(), &failure), (target, answer), record))
    }

    /// Whether one is not asked since it failed before, and another is left.
    fn passes_over(
        &self,
        exchange: &Exchange<'_>,
        turn: &AgentTurn<'_>,
        (hop, rest): (&Hop, &[Hop]),
    ) -> bool {
        let (health, now) = (&exchange.session.gateway.routing.health, Instant::now());
        let is_other_open = || rest.iter().any(|other| health.is_open(&turn.health_name(other), now));
        !health.may_ask(&turn.health_name(hop), now) && is_other_open()
    }

    fn answered(
        &self,
        exchange: &Exchange<'_>,
        (turn, hop): (&AgentTurn<'_>, &Hop),
        (begun, took): (Begun, Duration),
        record: &mut Record,
    ) -> Routed {
        let Begun { response, target } = begun;
        let gateway = &exchange.session.gateway;
        let status = response.status().as_u16();
        let metrics = gateway.metrics.routing();
        if response.status().is_success() {
            self.tell_health(exchange, hop, gateway.routing.health.answered(&turn.health_name(hop)));
            record.attempted(attempt(hop.label(), ANSWERED, Some(status), took));
            metrics.attempted(hop.label(), ANSWERED);
            metrics.routed(self.route.id.as_str(), hop.label(), ANSWERED);
        } else {
            // The origin, last of its chain, whose error passes on unread.
            let failure = classify(&UpstreamError { status, retry_after: None, body: &[] });
            metrics.routed(self.route.id.as_str(), hop.label(), failure.class.as_str());
            self.failed(exchange, (turn, hop), (&failure, took), record);
        }
        Routed { response, target, is_answer: true }
    }

    fn failed(
        &self,
        exchange: &Exchange<'_>,
        (turn, hop): (&AgentTurn<'_>, &Hop),
        (failure, took): (&AnswerFailure, Duration),
        record: &mut Record,
    ) {
        let (gateway, name) = (&exchange.session.gateway, turn.health_name(hop));
        let health = &gateway.routing.health;
        let told = failure.retry_after.map(Duration::from_secs);
        let change = match failure.class {
            FailureClass::Connect | FailureClass::Timeout | FailureClass::Unavailable => {
                health.failed(&name, told, Instant::now())
            }
            FailureClass::RateLimited if told.is_some() => health.failed(&name, told, Instant::now()),
            FailureClass::RateLimited
            | FailureClass::Quota
            | FailureClass::Translate
            | FailureClass::ContextLength
            | FailureClass::Rejected => health.answered(&name),
        };
        self.tell_health(exchange, hop, change);
        gateway.metrics.routing().attempted(hop.label(), failure.class.as_str());
        record.attempted(attempt(hop.label(), failure.class.as_str(), failure.status, took));
        record.attempt_failed(&self.route, hop.label(), failure);
    }

    /// What the agent reads where no model answered: the error of the last one where it speaks the agent's own API.
    fn told(
        &self,
        turn: &AgentTurn<'_>,
        (label, failure): (&str, &AnswerFailure),
        (target, answer): (UpstreamTarget, Option<Response<Body>>),
        record: &mut Record,
    ) -> Routed {
        let event = record.route_failed(turn.decision, &failure.to_string());
        let is_answer = answer.is_some();
        let response = answer
            .unwrap_or_else(|| told::failed(turn.dialect(), failure, (label, self.route.id.as_str()), event));
        // Some clients do not look at the status of what a model's server says.
        Routed { response, target, is_answer }
    }

    fn tell_health(&self, exchange: &Exchange<'_>, hop: &Hop, change: Option<Change>) {
        let Some(change) = change else { return };
        let gateway = &exchange.session.gateway;
        gateway.metrics.routing().passed_over(hop.label(), matches!(change, Change::Closed(_)));
        gateway.emit(told::health_changed(&self.route.id, hop.label(), change));
    }
}

/// How long a model has for its first piece.
fn first_piece(hop: &Hop, is_followed: bool, whole: Duration) -> Duration {
    let said = hop.model().and_then(|model| model.provider.first_event);
    said.unwrap_or(if is_followed { FIRST_PIECE.min(whole) } else { whole })
}

fn attempt(label: &str, class: &'static str, status: Option<u16>, took: Duration) -> event::Attempt {
    let ms = u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
    event::Attempt { label: label.into(), class: class.into(), status, ms }
}
