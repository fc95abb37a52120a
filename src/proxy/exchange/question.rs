//! Reads a request to a model: takes its body in, asks policy what it may hold, and edits it.

use std::sync::Arc;

use bytes::Bytes;
use http::request::Parts;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use hyper::body::Incoming;

use super::intake::{self, Unfit};
use super::record::Record;
use crate::call::{Answer, Api, Change, Denial, Dialect, RequestFacts, Service};
use crate::digest::sha256_hex;
use crate::event::{Extent, HOSTED_TOOL, Transform};
use crate::provider::adapter::{Adapter, ModelRequestHead};
use crate::provider::request::{EditedRequest, RequestEditor};
use crate::proxy::body::request::RequestBody;
use crate::proxy::budget::{Exhausted, Reserved};
use crate::proxy::error::{Refusal, Stop};
use crate::proxy::inbound::session::Session;
use crate::proxy::snapshot::Snapshot;
use crate::telemetry::label::Limit;
use crate::wire::coding::{CodingError, Decoder};
use crate::wire::json::Document;

/// Fields that say something of a body's bytes, which an edit makes untrue.
const ABOUT_BYTES: [&str; 4] = ["content-md5", "digest", "content-digest", "repr-digest"];

/// What a request to a model asks, once it was read.
pub(crate) struct Question {
    pub(crate) service: Service,
    pub(crate) dialect: Dialect,
    pub(crate) adapter: &'static dyn Adapter,
    pub(crate) facts: RequestFacts,
    path: String,
    query: Option<String>,
    headers: HeaderMap,
    /// Whether the body that goes on is not the one that came.
    pub(crate) is_edited: bool,
}

impl Question {
    pub(crate) fn asked(&self) -> ModelRequestHead<'_> {
        ModelRequestHead {
            service: self.service,
            path: &self.path,
            query: self.query.as_deref(),
            headers: &self.headers,
        }
    }
}

/// Reads one request.
pub(crate) struct Reader<'a> {
    pub(crate) session: &'a Arc<Session>,
    pub(crate) snapshot: &'a Snapshot,
    pub(crate) service: Service,
    pub(crate) dialect: Dialect,
}

impl Reader<'_> {
    /// Takes the body in and decides about it. Answers what the request asks, and the body that goes on; the head is
    /// made true of it.
    pub(crate) async fn read(
        &self,
        parts: &mut Parts,
        incoming: Incoming,
        record: &mut Record,
    ) -> Result<(Question, RequestBody), Stop> {
        let (sent, decoded, mut reserved) = self.take(parts, incoming).await?;
        let mut question = self.question(parts);
        let drafted = match self.draft(&question.asked(), decoded.as_ref().unwrap_or(&sent)) {
            Ok(drafted) => drafted,
            // What cannot be understood goes through where nothing is enforced.
            Err(denial) if self.snapshot.policy().audit_only() => {
                record.audited(&denial.decision.into_would_deny());
                return Ok((question, RequestBody::whole(sent, Some(reserved))));
            }
            Err(denial) => return Err(denial.into()),
        };
        record.understood(&drafted.facts);
        record.weighed(drafted.recorded);
        question.facts = drafted.facts;
        let Some(edited) = drafted.body else {
            drop(decoded);
            self.hold(&mut reserved, sent.len())?;
            return Ok((question, RequestBody::whole(sent, Some(reserved))));
        };
        let edited = Bytes::from(edited);
        self.hold(&mut reserved, edited.len())?;
        let transforms = self.transforms(&drafted.changes, decoded.as_ref().unwrap_or(&sent), &edited);
        drop((sent, decoded));
        record.edited(transforms);
        question.is_edited = true;
        describe(&mut parts.headers, edited.len());
        Ok((question, RequestBody::whole(edited, Some(reserved))))
    }

    /// Decides about a message of a WebSocket. Answers the text that goes on.
    pub(crate) fn message(
        &self,
        asked: &ModelRequestHead<'_>,
        text: &Bytes,
        record: &mut Record,
    ) -> Result<Bytes, Denial> {
        let drafted = match self.draft(asked, text) {
            Ok(drafted) => drafted,
            Err(denial) if self.snapshot.policy().audit_only() => {
                record.audited(&denial.decision.into_would_deny());
                return Ok(text.clone());
            }
            Err(denial) => return Err(denial),
        };
        record.understood(&drafted.facts);
        record.weighed(drafted.recorded);
        if let Some(conversation) = &drafted.facts.answered_conversation {
            self.session.gateway.blocked.forget(conversation);
        }
        let Some(edited) = drafted.body.map(Bytes::from) else { return Ok(text.clone()) };
        record.edited(self.transforms(&drafted.changes, text, &edited));
        Ok(edited)
    }

    /// What the head of a request asks.
    pub(crate) fn question(&self, parts: &Parts) -> Question {
        Question {
            service: self.service,
            dialect: self.dialect,
            adapter: crate::provider::adapter(self.dialect),
            facts: RequestFacts::default(),
            path: parts.uri.path().to_owned(),
            query: parts.uri.query().map(str::to_owned),
            headers: parts.headers.clone(),
            is_edited: false,
        }
    }

    /// The body as it was sent and, where it came encoded, as it is.
    async fn take(
        &self,
        parts: &Parts,
        incoming: Incoming,
    ) -> Result<(Bytes, Option<Bytes>, Reserved), Stop> {
        let decoder = Decoder::for_headers(&parts.headers, self.snapshot.whole_coding_limits());
        let decoder = decoder.map_err(|unsupported| {
            Denial::unparseable("content-encoding", unsupported).answered(Answer::UnsupportedCoding)
        })?;
        let (sent, mut reserved) = take_whole(self.session, self.snapshot, incoming).await?;
        let Some(decoder) = decoder else { return Ok((sent, None, reserved)) };
        let most = self.snapshot.settings.limits.decoded_body_bytes;
        let decoded = intake::decode(&sent, decoder, most, &mut reserved);
        let decoded = decoded.map_err(|reason| unfit(self.session, self.snapshot, reason))?;
        Ok((sent, Some(decoded), reserved))
    }

    /// Makes the room that of the body which goes on.
    fn hold(&self, reserved: &mut Reserved, bytes: usize) -> Result<(), Stop> {
        reserved.set(bytes).map_err(|_| exhausted(self.session))
    }

    fn draft(&self, asked: &ModelRequestHead<'_>, body: &Bytes) -> Result<EditedRequest, Denial> {
        let document = Document::parse(body, self.snapshot.json_limits());
        let document = document.map_err(|error| Denial::unparseable("the body", error))?;
        let mut draft =
            RequestEditor::new(&document, self.snapshot.policy()).with_blocked(&self.session.gateway.blocked);
        crate::provider::adapter(self.dialect).request(asked, &mut draft)?;
        if asked.service.api != Api::CountTokens {
            draft.misses_no_tools()?;
        }
        Ok(draft.finish())
    }

    /// Says in an event's words what was changed, and counts it.
    fn transforms(&self, changes: &[Change], before: &Bytes, after: &Bytes) -> Vec<Transform> {
        let metrics = &self.session.gateway.metrics;
        let mut transforms: Vec<Transform> = changes
            .iter()
            .map(|change| match change {
                Change::HostedTool(tool_type) => {
                    metrics.hosted_tool_stripped(self.service.vendor, tool_type);
                    Transform::new(HOSTED_TOOL, Some(tool_type.chars().take(128).collect()))
                }
                Change::Other(what) => Transform::new("request", Some((*what).to_owned())),
            })
            .collect();
        if let Some(first) = transforms.first_mut() {
            (first.before, first.after) = (Some(extent(before)), Some(extent(after)));
        }
        transforms
    }
}

/// Takes in a body that must be seen whole, within its bounds.
pub(crate) async fn take_whole(
    session: &Session,
    snapshot: &Snapshot,
    incoming: Incoming,
) -> Result<(Bytes, Reserved), Stop> {
    let settings = &snapshot.settings;
    let mut reserved = session.gateway.budget.open(settings.limits.buffered_bytes);
    let body = RequestBody::new(incoming, settings.timeouts.stream_idle, &session.activity);
    let taken = intake::take(body, snapshot.request_body_bytes(), &mut reserved).await;
    Ok((taken.map_err(|reason| unfit(session, snapshot, reason))?, reserved))
}

fn unfit(session: &Session, snapshot: &Snapshot, unfit: Unfit) -> Stop {
    let reached = |limit: Limit, name: &str, most: usize| {
        session.gateway.metrics.limit_reached(limit);
        let reason = format!("the request is larger than {most} bytes (limits.{name})");
        Denial::builtin("bound", reason).answered(Answer::TooLarge).into()
    };
    let limits = &snapshot.settings.limits;
    match unfit {
        Unfit::TooLarge(most) => reached(Limit::RequestBodyBytes, "requestBodyBytes", most),
        Unfit::Coded(CodingError::TooLarge) => {
            reached(Limit::DecodedBodyBytes, "decodedBodyBytes", limits.decoded_body_bytes)
        }
        Unfit::Coded(CodingError::Window) => {
            reached(Limit::ZstdWindowBytes, "zstdWindowBytes", limits.zstd_window_bytes)
        }
        Unfit::Coded(error) => Denial::unparseable("the body", error).into(),
        Unfit::Exhausted => exhausted(session),
        Unfit::Failed(failure) => failure.into(),
    }
}

/// There is no room for another body: a refusal that clients try again after.
pub(crate) fn exhausted(session: &Session) -> Stop {
    session.gateway.metrics.limit_reached(Limit::BufferedBytes);
    Refusal::closing(StatusCode::SERVICE_UNAVAILABLE, Exhausted::ruling()).into()
}

/// Makes a head true of an edited body.
fn describe(head: &mut HeaderMap, length: usize) {
    head.remove(header::CONTENT_ENCODING);
    for name in ABOUT_BYTES {
        head.remove(HeaderName::from_static(name));
    }
    head.insert(header::CONTENT_LENGTH, HeaderValue::from(length));
}

fn extent(body: &Bytes) -> Extent {
    Extent { sha256: sha256_hex(body), bytes: body.len() as u64 }
}
