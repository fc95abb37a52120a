//! A request that routes of the policy are about: which models are asked in its place, one after the other.

mod attempt;
mod begin;
mod body;
mod chain;
mod outgoing;
mod reading;
mod told;

use http::request::Parts;
use http::{Method, Response, StatusCode};

use super::Exchange;
use super::decide::RequestPlan;
use super::model_request::{ModelRequest, describe};
use super::record::Record;
use crate::call::{Api, Dialect};
use crate::decision::Decision;
use crate::policy::routing::{
    Hop, Reach, RouteMarker, RouteOutcome, RouteQuestion, Routing, attested, unknown_label, unrouted,
};
use crate::provider::translate::estimate::Size;
use crate::provider::translate::{Marked, has_own_thinking, marked};
use crate::proxy::body::Body;
use crate::proxy::body::request::RequestBody;
use crate::proxy::error::{Refusal, Stop};
pub(super) use attempt::AgentTurn;
use body::ReadBody;
pub(super) use chain::{Chain, Routed};
pub(super) use reading::SharedReport;

/// What routes say about a request to a model.
pub(super) enum Choice {
    /// It goes where the agent sent it.
    Origin,
    Chain(Chain),
    /// Its tokens are counted here.
    Counted(Box<Response<Body>>),
    /// It is answered here.
    Told(Box<Response<Body>>),
}

impl Exchange<'_> {
    /// Answers what is no request to a model at a host that only routes answer; nothing is sent there.
    ///
    /// # Errors
    /// If it is an inference endpoint that no route can take.
    pub(super) fn answer_beside_routes(
        &self,
        parts: &Parts,
        plan: &RequestPlan,
    ) -> Result<Option<Response<Body>>, Stop> {
        if plan.reach == Reach::Origin {
            return Ok(None);
        }
        let service = plan.target.service;
        match service.map(|service| service.api) {
            Some(Api::Models) if parts.method == Method::GET => {
                let routing = self.snapshot.policy().routing();
                let names =
                    routing.map(|routing| routing.model_list(&plan.target.origin.host)).unwrap_or_default();
                let one = parts.uri.path().split_once("/models/").map(|(_, name)| name);
                Ok(Some(told::models(&names, one.filter(|name| !name.is_empty()))))
            }
            Some(Api::Startup) if parts.uri.path().ends_with("/hello") => Ok(Some(told::hello())),
            Some(Api::Models | Api::Startup | Api::Other) | None => Ok(Some(told::unknown())),
            Some(
                Api::Messages
                | Api::ChatCompletions
                | Api::Responses
                | Api::GenerateContent
                | Api::Converse
                | Api::InvokeModel
                | Api::CountTokens
                | Api::Embeddings,
            ) if service.is_some_and(|service| service.dialect.is_some()) => Ok(None),
            Some(_) => Err(refused(unrouted())),
        }
    }

    /// Cuts out markers, and asks policy which models answer a request.
    ///
    /// # Errors
    /// If no model may answer it.
    pub(super) fn choose(
        &self,
        plan: &RequestPlan,
        parts: &mut Parts,
        (model_request, body): (&mut ModelRequest, &mut RequestBody),
        record: &mut Record,
    ) -> Result<Choice, Stop> {
        let choice = match self.snapshot.policy().routing() {
            Some(routing) => self.ask_routes(routing, plan, parts, (&mut *model_request, body), record)?,
            None => Choice::Origin,
        };
        if !matches!(choice, Choice::Origin) {
            // Models of routes have it without a coding.
            if let (true, Some(length)) = (body.forget_coding(), body.length()) {
                describe(&mut parts.headers, length);
                model_request.is_edited = true;
            }
            return Ok(choice);
        }
        if plan.reach == Reach::Routes {
            return Err(refused(unrouted()));
        }
        if self.snapshot.policy().routing().is_some() {
            self.forget_own_thinking(parts, (model_request, body), record)?;
        }
        Ok(choice)
    }

    /// Cuts thinking that the gateway signed out of what goes to Anthropic: a model of a route thought it, earlier in the
    /// session, and Anthropic refuses signatures that are not its own.
    fn forget_own_thinking(
        &self,
        parts: &mut Parts,
        (model_request, body): (&mut ModelRequest, &mut RequestBody),
        record: &mut Record,
    ) -> Result<(), Stop> {
        let Some(before) = body.bytes().cloned() else { return Ok(()) };
        let read = ReadBody { bytes: &before, known: body.known() };
        let written = body::for_origin(model_request.service, read, self.snapshot.json_limits());
        let Ok(written) = written else { return Ok(()) };
        if written.body == before {
            return Ok(());
        }
        if model_request.facts.is_attested {
            return Err(refused(attested("Thinking of another model")));
        }
        record.written_anew(&written.notes, &before, &written.body);
        describe(&mut parts.headers, written.body.len());
        body.replace(written.body);
        model_request.is_edited = true;
        Ok(())
    }

    fn ask_routes(
        &self,
        routing: &Routing,
        plan: &RequestPlan,
        parts: &mut Parts,
        (model_request, body): (&mut ModelRequest, &mut RequestBody),
        record: &mut Record,
    ) -> Result<Choice, Stop> {
        let (true, Some(model)) = (model_request.service.may_be_routed(), model_request.facts.model.clone())
        else {
            return Ok(Choice::Origin);
        };
        let marker = self.marker(routing, model_request, body);
        let audit_marker = self.audit_marker(routing, model_request, body);
        let of = |marked: &'_ Marked| (marked.token.clone(), marked.label.clone());
        let (own, audited) = (marker.as_ref().map(of), audit_marker.as_ref().map(of));
        fn shown(marker: &Option<(String, String)>) -> Option<RouteMarker<'_>> {
            marker.as_ref().map(|(token, label)| RouteMarker { token, label })
        }
        let decision = routing.choose(&RouteQuestion {
            host: &plan.target.origin.host,
            dialect: model_request.dialect,
            model: &model,
            marker: shown(&own),
            audit_marker: shown(&audited),
            reach: plan.reach,
        });
        if let Some(audited) = decision.audited {
            record.emit_audit(&audited);
        }
        let (route, mut hops) = match decision.outcome {
            RouteOutcome::NoMatch => return Ok(Choice::Origin),
            RouteOutcome::Stub { route, label } => {
                let labels: Vec<&str> = route.labels().collect();
                let told = self.stub(model_request, &unknown_label(&label, &labels), record);
                return Ok(Choice::Told(Box::new(told)));
            }
            RouteOutcome::Chain { route, chain } => (route, chain),
        };
        let is_cut = marker.is_some();
        if let Some(marked) = marker {
            let (before, after) = (body.bytes().cloned().unwrap_or_default(), marked.body.into());
            record.markers_cut(&marked.label, &before, &after);
            body.replace(after);
            describe(&mut parts.headers, body.length().unwrap_or(0));
            model_request.is_edited = true;
        }
        if model_request.facts.is_attested && (is_cut || self.has_own_thinking(body)) {
            // Its client has a hash of the body in it, which would no longer be true.
            hops.retain(|hop| !matches!(hop, Hop::Origin));
        }
        if hops.is_empty() {
            return Err(refused(attested("A marker, or thinking of another model,")));
        }
        let begins_at_model = hops.first().is_some_and(|hop| hop.model().is_some());
        if model_request.service.api == Api::CountTokens {
            let counted = || Choice::Counted(Box::new(self.count(&hops, body)));
            return Ok(if begins_at_model { counted() } else { Choice::Origin });
        }
        let models = hops.iter().filter_map(|hop| hop.model().and_then(|model| model.model.as_deref()));
        model_request.facts.models.extend(models.map(str::to_owned));
        Ok(Choice::Chain(Chain { route, hops }))
    }

    /// The first marker that chooses a route, and the body without any.
    fn marker(&self, routing: &Routing, asked: &ModelRequest, body: &RequestBody) -> Option<Marked> {
        let tokens: Vec<&str> = routing.tokens().collect();
        self.marked(&tokens, asked, body)
    }

    /// The same of markers that only Audit policies name, which stay where they are.
    fn audit_marker(&self, routing: &Routing, asked: &ModelRequest, body: &RequestBody) -> Option<Marked> {
        let own: Vec<&str> = routing.tokens().collect();
        let all: Vec<&str> = routing.all_tokens().collect();
        if own.len() == all.len() { None } else { self.marked(&all, asked, body) }
    }

    fn marked(&self, tokens: &[&str], asked: &ModelRequest, body: &RequestBody) -> Option<Marked> {
        if tokens.is_empty() || asked.dialect != Dialect::Anthropic {
            return None;
        }
        let document = body.document(self.snapshot.json_limits())?;
        marked(&document, |token| tokens.contains(&token)).ok().flatten()
    }

    /// Whether thinking stands in a body that the gateway signed.
    fn has_own_thinking(&self, body: &RequestBody) -> bool {
        let document = body.document(self.snapshot.json_limits());
        document.is_some_and(|document| has_own_thinking(&document))
    }

    /// How many tokens a request would have for the first of a chain.
    fn count(&self, hops: &[Hop], body: &RequestBody) -> Response<Body> {
        let model = hops.first().and_then(|hop| hop.model()).map(|model| model.id.to_string());
        let ratio = self.session.gateway.routing.ratios.of(&model.unwrap_or_default());
        let document = body.document(self.snapshot.json_limits());
        told::count(document.map_or(0, |document| Size::of(&document).tokens(ratio)))
    }

    /// The answer to a marker that names no model of its route.
    fn stub(&self, asked: &ModelRequest, decision: &Decision, record: &mut Record) -> Response<Body> {
        let event = record.stub_told(decision);
        let text = decision.reason.as_deref().unwrap_or_default();
        let model = asked.facts.model.as_deref().unwrap_or_default();
        told::stub(text, (model, asked.facts.stream), (decision, event), &record.hex_id())
    }
}

/// The refusal of a request that no model may answer.
fn refused(decision: Decision) -> Stop {
    Refusal::new(StatusCode::FORBIDDEN, decision).into()
}
