//! Reads a request to a model: buffers its body, has policy decide about the content, and edits it.

use std::sync::Arc;

use bytes::Bytes;
use http::request::Parts;
use http::{HeaderMap, HeaderValue, StatusCode, header};
use hyper::body::Incoming;

use super::buffer::{self, BufferError};
use super::detection;
use super::enforce::Allowance;
use super::head::forget_digests;
use super::record::Record;
use super::rules::ExchangeFacts;
use super::tool_results::{self, ResultsPlan};
use crate::call::{Change, Denial, DenialForm, Dialect, RequestFacts, Service};
use crate::digest::sha256_hex;
use crate::event::{Extent, HOSTED_TOOL, Transform};
use crate::filter::bound::SizeBound;
use crate::name::host::Host;
use crate::policy::rule::Place;
use crate::provider;
use crate::provider::adapter::{Adapter, ModelRequestHead};
use crate::provider::request::marks::Marks;
use crate::provider::request::{self, Detection, EditedRequest};
use crate::proxy::body::request::RequestBody;
use crate::proxy::budget::{Exhausted, Reserved};
use crate::proxy::error::{Refusal, Stop};
use crate::proxy::inbound::session::Session;
use crate::proxy::snapshot::Snapshot;
use crate::telemetry::label::Limit;
use crate::tool_output::request::{Earlier, KeptAnswer};
use crate::wire::coding::{CodingError, Decoder, Unsupported};
use crate::wire::json::{Document, KnownParts};

/// The name of the change of a request in which a secret was replaced.
const REDACTED: &str = "redact";

/// A request to a model. Its facts are empty until its body was read.
pub(crate) struct ModelRequest {
    pub(crate) service: Service,
    pub(crate) dialect: Dialect,
    pub(crate) adapter: &'static dyn Adapter,
    pub(crate) facts: RequestFacts,
    path: String,
    query: Option<String>,
    is_subscription: bool,
    /// Where it goes, and whether with a key of the gateway's.
    pub(crate) host: Host,
    pub(crate) is_vouched: bool,
    /// Whether the body that is sent differs from the agent's.
    pub(crate) is_edited: bool,
    /// What becomes of the results of tools in it.
    pub(crate) results: ResultsPlan,
    /// What to remember of the answer, where results of tools are shortened and the provider keeps it.
    pub(crate) kept: Option<KeptAnswer>,
}

impl ModelRequest {
    pub(crate) fn asked(&self) -> ModelRequestHead<'_> {
        ModelRequestHead {
            service: self.service,
            path: &self.path,
            query: self.query.as_deref(),
            is_subscription: self.is_subscription,
        }
    }
}

/// Reads one request to a model.
pub(crate) struct RequestReader<'a> {
    pub(crate) session: &'a Arc<Session>,
    pub(crate) snapshot: &'a Snapshot,
    pub(crate) service: Service,
    pub(crate) dialect: Dialect,
    /// Where it goes, and whether with a key of the gateway's.
    pub(crate) host: &'a Host,
    pub(crate) is_vouched: bool,
}

impl RequestReader<'_> {
    /// Buffers the body and decides about it. Returns the request with the body to send, whose length and coding the
    /// head says.
    pub(crate) async fn read(
        &self,
        parts: &mut Parts,
        incoming: Incoming,
        record: &mut Record,
    ) -> Result<(ModelRequest, RequestBody), Stop> {
        let (sent, decoded, mut reserved) =
            buffer_decoded(self.session, self.snapshot, parts, incoming).await?;
        let mut model_request = self.model_request(parts);
        let answers = Earlier::Answers(&self.session.gateway.shortened.chains, self.host);
        let drafted = decoded.and_then(|decoded| {
            self.draft(&model_request.asked(), (&decoded, Some(answers)), record)
                .map(|drafted| (drafted, decoded))
        });
        let ((drafted, results), decoded) = match drafted {
            Ok(drafted) => drafted,
            // Where nothing is enforced, a body that cannot be read is sent as it came.
            Err(denial) if self.snapshot.policy().audit_only() => {
                record.emit_audit(&denial.decision.into_would_deny());
                return Ok((model_request, RequestBody::whole(sent, Some(reserved))));
            }
            Err(denial) => return Err(denial.into()),
        };
        record.model_request_read(&drafted.facts);
        record.emit_audits(drafted.recorded);
        (model_request.facts, model_request.results) = (drafted.facts, results);
        let Some(edited) = drafted.body else {
            let is_coded = !std::ptr::eq(sent.as_ref(), decoded.as_ref());
            if !is_coded {
                hold(self.session, &mut reserved, sent.len())?;
                return Ok((model_request, RequestBody::read(sent, drafted.known, Some(reserved))));
            }
            if !self.is_read_again() {
                drop(decoded);
                hold(self.session, &mut reserved, sent.len())?;
                return Ok((model_request, RequestBody::whole(sent, Some(reserved))));
            }
            hold(self.session, &mut reserved, sent.len() + decoded.len())?;
            let body = RequestBody::read(decoded, drafted.known, Some(reserved));
            return Ok((model_request, body.sent_as(sent)));
        };
        let edited = Bytes::from(edited);
        hold(self.session, &mut reserved, edited.len())?;
        let transforms = self.transforms(&drafted.changes, &decoded, &edited);
        drop((sent, decoded));
        record.body_edited(transforms);
        model_request.is_edited = true;
        describe(&mut parts.headers, edited.len());
        Ok((model_request, RequestBody::read(edited, drafted.known, Some(reserved))))
    }

    /// Decides about a message of a WebSocket, by the rules over its facts too. Returns the text to send, and the facts
    /// for the answer; none where the message cannot be read and nothing is enforced.
    pub(crate) fn message(
        &self,
        asked: &ModelRequestHead<'_>,
        text: &Bytes,
        allowance: &Allowance,
        record: &mut Record,
    ) -> Result<(Bytes, Option<ExchangeFacts>), Denial> {
        let drafted = match self.draft(asked, (text, None), record) {
            Ok((drafted, _)) => drafted,
            Err(denial) if self.snapshot.policy().audit_only() => {
                record.emit_audit(&denial.decision.into_would_deny());
                return Ok((text.clone(), None));
            }
            Err(denial) => return Err(denial),
        };
        record.model_request_read(&drafted.facts);
        record.emit_audits(drafted.recorded);
        let facts = ExchangeFacts::of(self.session, allowance, (asked.path, Some(&drafted.facts)), record);
        if self.snapshot.policy().has_rules_at(Place::Request) {
            facts.ask_request(self.snapshot, Some(&drafted.facts), Some(text.len() as u64), record)?;
        }
        if let Some(conversation) = &drafted.facts.answered_conversation {
            self.session.gateway.blocked.forget(conversation);
        }
        let Some(edited) = drafted.body.map(Bytes::from) else { return Ok((text.clone(), Some(facts))) };
        record.body_edited(self.transforms(&drafted.changes, text, &edited));
        Ok((edited, Some(facts)))
    }

    /// Returns the request as far as its head tells.
    pub(crate) fn model_request(&self, parts: &Parts) -> ModelRequest {
        ModelRequest {
            service: self.service,
            dialect: self.dialect,
            adapter: provider::adapter(self.dialect),
            facts: RequestFacts::default(),
            path: parts.uri.path().to_owned(),
            query: parts.uri.query().map(str::to_owned),
            is_subscription: provider::is_subscription(&parts.headers),
            host: self.host.clone(),
            is_vouched: self.is_vouched,
            is_edited: false,
            results: ResultsPlan::Open,
            kept: None,
        }
    }

    /// Whether others read the body as well: routes, which write it for other models, and who shortens results of tools.
    fn is_read_again(&self) -> bool {
        self.snapshot.policy().routing().is_some()
            || self.session.gateway.shortened.is_asked(self.snapshot.policy())
    }

    /// Whether others parse the body as well.
    fn is_parsed_again(&self, results: &ResultsPlan) -> bool {
        self.snapshot.policy().routing().is_some() || *results == ResultsPlan::Open && self.is_read_again()
    }

    /// Plans what becomes of results of tools, while the document is at hand; not of one that is edited.
    fn plan_results<'d>(
        &self,
        (adapter, asked): (&'d dyn Adapter, &ModelRequestHead<'d>),
        drafted: &EditedRequest,
        (document, marks): (&'d Document<'d>, Option<Marks<'d>>),
        earlier: Option<Earlier<'d>>,
    ) -> ResultsPlan {
        let shortened = &self.session.gateway.shortened;
        let Some(earlier) = earlier else { return ResultsPlan::Open };
        if drafted.body.is_some()
            || drafted.facts.is_attested
            || !shortened.is_asked(self.snapshot.policy())
            || adapter.carried(asked, document.bytes(), self.snapshot.json_limits()).is_some()
        {
            return ResultsPlan::Open;
        }
        let asked = (adapter, *asked, earlier);
        ResultsPlan::Made(tool_results::planned(
            &self.session.gateway,
            self.snapshot,
            asked,
            (document, marks),
        ))
    }

    /// Decides about a body, and edits it. With `earlier`, the source of what it leaves out, results of tools are planned too.
    fn draft(
        &self,
        asked: &ModelRequestHead<'_>,
        (body, earlier): (&Bytes, Option<Earlier<'_>>),
        record: &mut Record,
    ) -> Result<(EditedRequest, ResultsPlan), Denial> {
        let adapter = provider::adapter(self.dialect);
        let (limits, blocked) = (self.snapshot.json_limits(), &self.session.gateway.blocked);
        let inspection = detection::inspection(self.snapshot, self.host, body.len());
        let mut inspection = inspection.map(|inspection| inspection.of_model(self.is_vouched));
        let policy = self.snapshot.policy().as_ref();
        let drafted = request::document((body, limits), &KnownParts::default()).and_then(|document| {
            let detection = inspection.as_mut().map(|inspection| inspection as &mut dyn Detection);
            let (drafted, marks) =
                request::read_marked(adapter, asked, &document, (policy, blocked), detection)?;
            let results = self.plan_results((adapter, asked), &drafted, (&document, marks), earlier);
            let is_known = drafted.body.is_some() || !self.is_parsed_again(&results);
            let known = if is_known { drafted.known } else { document.known() };
            Ok((EditedRequest { known, ..drafted }, results))
        });
        inspection.into_iter().for_each(|mut inspection| record.inspected(inspection.take()));
        drafted
    }

    /// Describes the changes for an event, and counts them.
    fn transforms(&self, changes: &[Change], before: &Bytes, after: &Bytes) -> Vec<Transform> {
        let metrics = &self.session.gateway.metrics;
        let mut transforms: Vec<Transform> = changes
            .iter()
            .map(|change| match change {
                Change::HostedTool(tool_type) => {
                    metrics.hosted_tool_stripped(self.service.vendor, tool_type);
                    Transform::new(HOSTED_TOOL, Some(tool_type.chars().take(128).collect()))
                }
                Change::Redaction(detector) => Transform::new(REDACTED, Some(detector.clone())),
                Change::Other(what) => Transform::new("request", Some((*what).to_owned())),
            })
            .collect();
        if let Some(first) = transforms.first_mut() {
            (first.before, first.after) = (Some(extent(before)), Some(extent(after)));
        }
        transforms
    }
}

/// Buffers the body of an endpoint that belongs to no dialect, and checks that it is JSON with one reading: policy has
/// no question about it.
pub(crate) async fn buffer_json(
    session: &Session,
    snapshot: &Snapshot,
    parts: &Parts,
    incoming: Incoming,
    record: &Record,
) -> Result<RequestBody, Stop> {
    let (sent, decoded, mut reserved) = buffer_decoded(session, snapshot, parts, incoming).await?;
    match decoded.and_then(|decoded| request::one_reading(&decoded, snapshot.json_limits())) {
        Err(denial) if snapshot.policy().audit_only() => {
            record.emit_audit(&denial.decision.into_would_deny());
        }
        checked => checked?,
    }
    hold(session, &mut reserved, sent.len())?;
    Ok(RequestBody::whole(sent, Some(reserved)))
}

/// Returns a buffered body as it was sent, and decoded; the denial of a coding that cannot be undone where nothing is
/// enforced, so that the caller records it.
async fn buffer_decoded(
    session: &Session,
    snapshot: &Snapshot,
    parts: &Parts,
    incoming: Incoming,
) -> Result<(Bytes, Result<Bytes, Denial>, Reserved), Stop> {
    let is_audit = snapshot.policy().audit_only();
    let decoder = Decoder::for_headers(&parts.headers, snapshot.whole_coding_limits());
    let decoder = match decoder.map_err(unknown_coding) {
        // Nothing of the body is awaited.
        Err(denial) if !is_audit => return Err(denial.into()),
        decoder => decoder,
    };
    let (sent, mut reserved) = buffer_request(session, snapshot, incoming).await?;
    let decoder = match decoder {
        Ok(Some(decoder)) => decoder,
        Ok(None) => return Ok((sent.clone(), Ok(sent), reserved)),
        Err(denial) => return Ok((sent, Err(denial), reserved)),
    };
    let most = snapshot.settings.limits.decoded_body_bytes;
    match buffer::decode(&sent, decoder, most, &mut reserved) {
        Ok(decoded) => Ok((sent, Ok(decoded), reserved)),
        // The bounds stay under Audit policies too.
        Err(BufferError::Coded(error)) if is_audit && !error.is_bound() => {
            Ok((sent, Err(Denial::unparseable("the body", error)), reserved))
        }
        Err(error) => Err(unfit(session, snapshot, error)),
    }
}

fn unknown_coding(unsupported: Unsupported) -> Denial {
    Denial::unparseable("content-encoding", unsupported).answered(DenialForm::UnsupportedCoding)
}

/// Resizes the reservation to the body that is sent.
fn hold(session: &Session, reserved: &mut Reserved, bytes: usize) -> Result<(), Stop> {
    reserved.set(bytes).map_err(|_| exhausted(session))
}

/// Buffers a whole request body, within its bounds.
pub(crate) async fn buffer_request(
    session: &Session,
    snapshot: &Snapshot,
    incoming: Incoming,
) -> Result<(Bytes, Reserved), Stop> {
    let settings = &snapshot.settings;
    let mut reserved = session.gateway.budget.open(settings.limits.buffered_bytes);
    let most = snapshot.request_body_bytes();
    let body = RequestBody::new(incoming, settings.timeouts.stream_idle, &session.activity)
        .bounded(SizeBound::of_request(most));
    let taken = match body {
        Ok(body) => buffer::buffer(body, most, &mut reserved).await,
        Err(denial) => Err(BufferError::Stopped(denial.into())),
    };
    Ok((taken.map_err(|reason| unfit(session, snapshot, reason))?, reserved))
}

fn unfit(session: &Session, snapshot: &Snapshot, unfit: BufferError) -> Stop {
    let reached = |limit: Limit, name: &str, most: usize| {
        session.gateway.metrics.limit_reached(limit);
        let reason = format!("the request is larger than {most} bytes (limits.{name})");
        Denial::builtin("bound", reason).answered(DenialForm::TooLarge).into()
    };
    let limits = &snapshot.settings.limits;
    match unfit {
        BufferError::Coded(CodingError::TooLarge) => {
            reached(Limit::DecodedBodyBytes, "decodedBodyBytes", limits.decoded_body_bytes)
        }
        BufferError::Coded(CodingError::Window) => {
            reached(Limit::ZstdWindowBytes, "zstdWindowBytes", limits.zstd_window_bytes)
        }
        BufferError::Coded(error) => Denial::unparseable("the body", error).into(),
        BufferError::Exhausted => exhausted(session),
        BufferError::Stopped(stop) => {
            if stop.is_too_large() {
                session.gateway.metrics.limit_reached(Limit::RequestBodyBytes);
            }
            stop
        }
    }
}

/// The refusal while `limits.bufferedBytes` is used up; clients retry after it.
pub(crate) fn exhausted(session: &Session) -> Stop {
    session.gateway.metrics.limit_reached(Limit::BufferedBytes);
    Refusal::closing(StatusCode::SERVICE_UNAVAILABLE, Exhausted::ruling()).into()
}

/// Sets the length of an edited body, and removes fields that are no longer true.
pub(super) fn describe(head: &mut HeaderMap, length: usize) {
    head.remove(header::CONTENT_ENCODING);
    forget_digests(head);
    head.insert(header::CONTENT_LENGTH, HeaderValue::from(length));
}

fn extent(body: &Bytes) -> Extent {
    Extent { sha256: sha256_hex(body), bytes: body.len() as u64, tokens: None }
}

#[cfg(test)]
#[path = "model_request_tests.rs"]
mod tests;
