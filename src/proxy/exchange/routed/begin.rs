//! The answer of one model of a chain: what its refusal comes to, or the answer once it begins.

use std::time::{Duration, Instant};

use http::{HeaderMap, HeaderValue, Response, StatusCode, header};
use http_body_util::BodyExt as _;

use super::attempt::{Asked, Attempt, Begun, FailedAttempt, ROUTE, failed};
use super::body::TranslatedRequest;
use super::reading::{Moved, SharedReport, Translated};
use crate::call::turn::AnswerFailure;
use crate::call::{Dialect, FailureClass};
use crate::policy::routing::{Hop, ORIGIN};
use crate::provider;
use crate::provider::adapter::Framing;
use crate::provider::translate::failure::{MOST_ERROR_BYTES, UpstreamError, classify, is_advice};
use crate::provider::translate::{AgentRoute, AnswerLimits, AnswerTerms, AnswerTranslation, MovedAnswer};
use crate::proxy::body::Body;
use crate::proxy::body::begun::{AnswerReader, Beginning, BegunBody};
use crate::proxy::body::transit::Transit;
use crate::proxy::exchange::head::forget_digests;
use crate::proxy::exchange::model_request::exhausted;
use crate::proxy::exchange::record::Record;
use crate::proxy::exchange::target::UpstreamTarget;

/// How long after the head of its answer the agent hears that a model answers, where no other follows.
const HEARD: Duration = Duration::from_secs(10);

impl Attempt<'_> {
    /// What an answer that is no success comes to.
    pub(super) async fn refused(&self, response: Response<Body>, target: UpstreamTarget) -> Asked {
        let (head, body) = response.into_parts();
        let mut body = self.first_bytes(body).await;
        // Before anything of it is cut off.
        if let Some(masked) =
            target.secrets(&self.exchange.snapshot).and_then(|secrets| secrets.masked(&body))
        {
            body = masked;
        }
        let retry_after = head.headers.get(header::RETRY_AFTER).and_then(|value| value.to_str().ok());
        let status = head.status.as_u16();
        let failure = classify(&UpstreamError { status, retry_after, body: &body });
        let answer = match self.hop {
            Hop::Origin if body.len() >= MOST_ERROR_BYTES => None,
            Hop::Origin => {
                let mut response = Response::from_parts(head, Body::own(body));
                forget_digests(response.headers_mut());
                response.headers_mut().remove(header::ETAG);
                response.headers_mut().remove(header::CONTENT_LENGTH);
                response.headers_mut().insert(ROUTE, HeaderValue::from_static(ORIGIN));
                Some(response)
            }
            Hop::Model(_) if self.turn.dialect() == Dialect::Anthropic && is_advice(&failure) => None,
            Hop::Model(model) if model.provider.dialect == self.turn.dialect() => {
                passed_on(head.status, &head.headers, body, &model.label)
            }
            Hop::Model(_) => None,
        };
        Asked::Failed(Box::new(FailedAttempt { failure, target, answer }))
    }

    /// As much of a body as an error has.
    async fn first_bytes(&self, mut body: Body) -> Vec<u8> {
        let mut bytes = Vec::new();
        let reading = async {
            while bytes.len() < MOST_ERROR_BYTES {
                let Some(Ok(frame)) = body.frame().await else { break };
                if let Ok(data) = frame.into_data() {
                    bytes.extend_from_slice(&data.into_bytes());
                }
            }
        };
        // What came in time says enough.
        let _ = tokio::time::timeout_at(self.until.into(), reading).await;
        bytes.truncate(MOST_ERROR_BYTES);
        bytes
    }

    /// Waits until a successful answer begins.
    pub(super) async fn begin(
        &self,
        response: Response<Body>,
        target: UpstreamTarget,
        translated: Option<TranslatedRequest>,
        record: &mut Record,
    ) -> Result<Begun, Asked> {
        let (mut head, body) = response.into_parts();
        let content_type = head.headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
        let essence = content_type.unwrap_or_default().split(';').next().unwrap_or_default().trim();
        let essence = essence.to_ascii_lowercase();
        let asked = self.turn.model_request.facts.stream;
        let streams = translated.as_ref().map_or(asked, |translated| translated.streams);
        let is_translated = translated.is_some();
        let reader = match translated {
            Some(translated) => self.translation(translated, &essence, record),
            None => self.watch(&essence),
        };
        let mut body = match reader {
            Ok(reader) => BegunBody::new(body, reader),
            Err(failure) => return Err(failed(failure, target)),
        };
        let begins_at = (self.is_last && streams).then(|| Instant::now() + HEARD);
        let by = (self.until.into(), self.latest.into());
        match body.wait(by, begins_at.map(Into::into)).await {
            Beginning::Begun => {}
            Beginning::Late => {
                let late = AnswerFailure::new(FailureClass::Timeout, "the model said nothing in time");
                return Err(failed(late, target));
            }
            Beginning::Exhausted => return Err(Asked::Stopped(exhausted(self.exchange.session))),
            Beginning::Failed => {
                let broken = || AnswerFailure::unreadable("the answer has nothing that can be read");
                return Err(failed(body.failure().unwrap_or_else(broken), target));
            }
        }
        let label = HeaderValue::from_str(self.hop.label()).unwrap_or(HeaderValue::from_static("-"));
        if matches!(self.hop, Hop::Model(_)) {
            let content_type = match (is_translated, streams) {
                (true, true) => HeaderValue::from_static("text/event-stream"),
                (true, false) => HeaderValue::from_static("application/json"),
                (false, _) => {
                    HeaderValue::from_str(&essence).unwrap_or(HeaderValue::from_static("application/json"))
                }
            };
            head.headers = HeaderMap::new();
            head.headers.insert(header::CONTENT_TYPE, content_type);
            head.headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
        }
        if is_translated {
            head.status = StatusCode::OK;
        }
        head.headers.remove(header::CONTENT_LENGTH);
        head.headers.insert(ROUTE, label);
        let exchange = self.exchange;
        let limit = exchange.snapshot.settings.limits.buffered_bytes;
        let transit = Transit::new(&exchange.session.gateway.budget, limit);
        let response = Response::from_parts(head, Body::begun(body).counted(transit));
        Ok(Begun { response, target })
    }

    /// Reads an answer that is moved until it begins.
    fn watch(&self, essence: &str) -> Result<Box<dyn AnswerReader>, AnswerFailure> {
        let dialect = self.turn.dialect();
        let adapter = provider::adapter(dialect);
        let asked = self.turn.model_request.asked();
        let event_bytes = self.exchange.snapshot.settings.limits.sse_event_bytes;
        let framing = adapter.framing(&asked, &self.turn.model_request.facts, essence);
        let answer = match framing {
            Framing::Events(form) => MovedAnswer::stream(dialect, form, event_bytes),
            Framing::Whole if essence == "application/json" || matches!(self.hop, Hop::Origin) => {
                MovedAnswer::whole(dialect)
            }
            Framing::Whole | Framing::EventStream | Framing::Array => {
                return Err(AnswerFailure::unreadable("the answer is neither JSON nor a stream of events"));
            }
        };
        Ok(Box::new(Moved(answer)))
    }

    fn translation(
        &self,
        translated: TranslatedRequest,
        essence: &str,
        record: &mut Record,
    ) -> Result<Box<dyn AnswerReader>, AnswerFailure> {
        let (exchange, report) = (self.exchange, SharedReport::default());
        let snapshot = &exchange.snapshot;
        let limits = &snapshot.settings.limits;
        let ratio = exchange.session.gateway.routing.ratios.of(&self.turn.health_name(self.hop));
        let terms = AnswerTerms {
            agent: self.turn.dialect(),
            model: Dialect::OpenAIChat,
            route: AgentRoute { label: self.hop.label().to_owned(), rule: self.rule.to_owned() },
            exchange: record.hex_id(),
            is_stream: translated.streams,
            shows_thinking: translated.shows_thinking,
            stop_sequences: translated.stop_sequences,
            names: translated.names.iter().map(|(sent, own)| (sent.to_owned(), own.to_owned())).collect(),
            transforms: translated.transforms,
            has_exit_tool: translated.has_exit_tool,
            input_estimate: Some(translated.size.tokens(ratio)),
            bytes_per_token: ratio.bytes(),
            drops_unreadable: snapshot.policy().failure_open(),
            limits: AnswerLimits {
                event_bytes: limits.sse_event_bytes,
                tool_input_bytes: snapshot.tool_input_bytes(),
                body_bytes: limits.decoded_body_bytes,
            },
        };
        let translation = AnswerTranslation::new(terms, essence)?;
        record.translated(report.clone(), (self.turn.health_name(self.hop), translated.size));
        let reserved = exchange.session.gateway.budget.open(limits.buffered_bytes);
        Ok(Box::new(Translated::new(translation, report, reserved)))
    }
}

/// An error in the agent's own API, which passes on; none where it has another shape.
fn passed_on(status: StatusCode, head: &HeaderMap, body: Vec<u8>, label: &str) -> Option<Response<Body>> {
    let json: serde_json::Value = serde_json::from_slice(&body).ok()?;
    json.get("error").filter(|error| error.is_object())?;
    let status = match status {
        // Clients log in anew over these, which is not their matter.
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => StatusCode::BAD_REQUEST,
        status if status.is_client_error() || status.is_server_error() => status,
        _ => return None,
    };
    let mut response = Response::new(Body::own(body));
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    if let Some(retry_after) = head.get(header::RETRY_AFTER).filter(|_| status.as_u16() == 429) {
        response.headers_mut().insert(header::RETRY_AFTER, retry_after.clone());
    }
    if let Ok(label) = HeaderValue::from_str(label) {
        response.headers_mut().insert(ROUTE, label);
    }
    Some(response)
}
