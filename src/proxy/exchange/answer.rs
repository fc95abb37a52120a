//! Guards the answers of models: a stream as it comes, a whole answer before its first byte is sent on.

use std::sync::Arc;

use http::{HeaderMap, HeaderValue, Response, header};
use http_body::Body as _;

use super::buffer::{self, BufferError};
use super::edits::EditJudge;
use super::enforce::{Allowance, EnforcedGuard};
use super::head::forget_digests;
use super::judge::{ExchangeJudge, PolicyInForce};
use super::model_request::{ModelRequest, exhausted};
use super::record::Record;
use super::reply;
use super::rules::ExchangeFacts;
use crate::call::withheld::Withheld;
use crate::call::{Denial, FactsDeny, Judge, Normalization, ToolDefinition};
use crate::decision::Decision;
use crate::filter::bound::SizeBound;
use crate::ledger::fresh_id;
use crate::provider::adapter::Framing;
use crate::provider::answer::{
    BrokenAnswer, FailurePolicy, Guard, GuardLimits, GuardSettings, ReadsEvidence, Transcript,
};
use crate::provider::kind::Offered;
use crate::proxy::body::Body;
use crate::proxy::error::{Class, Failure, Refusal, Stop};
use crate::proxy::inbound::session::Session;
use crate::proxy::snapshot::Snapshot;
use crate::tool_output::request::names_evidence;
use crate::wire::coding::{self, Decoder};

/// Guards the answer to one request.
pub(crate) struct ResponseGuard<'a> {
    pub(crate) session: &'a Arc<Session>,
    pub(crate) snapshot: &'a Arc<Snapshot>,
    pub(crate) model_request: &'a ModelRequest,
    pub(crate) allowance: &'a Allowance,
    /// What rules know of the exchange, where any is asked about it.
    pub(crate) facts: Option<&'a Arc<ExchangeFacts>>,
}

impl ResponseGuard<'_> {
    /// Returns the answer with a guard over its body, or as far as it is allowed if it was read whole. The status does
    /// not matter: some clients ignore it.
    pub(crate) async fn guard_response(
        &self,
        mut response: Response<Body>,
        record: &mut Record,
    ) -> Result<Response<Body>, Stop> {
        if response.body().is_end_stream() {
            return Ok(response);
        }
        let is_success = response.status().is_success();
        if let (true, Some(conversation)) = (is_success, &self.model_request.facts.answered_conversation) {
            self.session.gateway.blocked.forget(conversation);
        }
        let Some(framed) = self.guard_body(response.headers()) else { return Ok(response) };
        let guard = &framed.guard.guard;
        let limits = self.snapshot.coding_limits();
        let is_coded = Decoder::for_headers(response.headers(), limits).is_err();
        let observes = guard.observes();
        if observes && is_coded {
            record.answer_read(guard.facts(), Normalization::Failed);
            return Ok(response);
        }
        if !observes && (framed.framing == Framing::Whole || is_coded || !is_success) {
            return self.guard_whole(response, framed, record).await;
        }
        let (mut head, mut body) =
            (std::mem::take(response.headers_mut()), std::mem::replace(response.body_mut(), Body::own("")));
        let rewriting = body.rewriting();
        if observes {
            rewriting.decoding(&mut head, limits).map_err(|_| unreadable())?;
        } else {
            rewriting.detecting(&mut head, limits).map_err(|_| unreadable())?;
            remove_digests(&mut head);
            correct_content_type(&mut head);
        }
        rewriting.guarding(framed.guard);
        *response.headers_mut() = head;
        *response.body_mut() = body;
        Ok(response)
    }

    /// Returns the guard for the messages of a WebSocket, whose calls are judged so.
    pub(crate) fn guard_messages(&self, judge: Arc<PolicyInForce>) -> Option<EnforcedGuard> {
        let transcript =
            self.model_request.adapter.transcript(&self.model_request.asked(), &self.model_request.facts)?;
        // The tools are named later, message by message.
        let settings = self.settings(judge, true, &[]);
        Some(self.guard(transcript, Framing::Whole, settings))
    }

    fn guard_body(&self, head: &HeaderMap) -> Option<FramedGuard> {
        let asked = self.model_request.asked();
        let facts = &self.model_request.facts;
        let transcript = self.model_request.adapter.transcript(&asked, facts)?;
        let content_type = head.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
        let content_type = content_type.unwrap_or_default().split(';').next().unwrap_or_default();
        let framing =
            self.model_request.adapter.framing(&asked, facts, &content_type.trim().to_ascii_lowercase());
        let events = self.model_request.adapter.framing(&asked, facts, "text/event-stream");
        let snapshot = Arc::clone(self.snapshot);
        let judge: Arc<dyn Judge> = match self.facts.map(Arc::clone) {
            Some(facts) => Arc::new(ExchangeJudge { snapshot, facts }),
            None => snapshot,
        };
        let judge = EditJudge::over(judge, self.snapshot);
        let judge: Arc<dyn Judge> = if facts.holds_placeholders { Arc::new(Withheld(judge)) } else { judge };
        let settings = self.settings(judge, facts.writes, &facts.tools);
        let guard = Box::new(self.guard(transcript, framing, settings));
        Some(FramedGuard { guard, framing, events })
    }

    fn guard(
        &self,
        transcript: Box<dyn Transcript>,
        framing: Framing,
        settings: GuardSettings,
    ) -> EnforcedGuard {
        let reserved = self.session.gateway.budget.open(self.snapshot.settings.limits.buffered_bytes);
        let guard = Guard::new(transcript, framing, settings);
        let kept = self.model_request.kept.clone().map(|kept| (kept, self.model_request.host.clone()));
        EnforcedGuard::new(guard, reserved, self.allowance.clone()).keeping(kept)
    }

    /// Returns the settings of a guard with this judge. `writes`: one of the offered tools may write.
    fn settings(&self, judge: Arc<dyn Judge>, writes: bool, tools: &[ToolDefinition]) -> GuardSettings {
        let limits = &self.snapshot.settings.limits;
        let policy = self.snapshot.policy();
        let denies = judge.denies(writes) || judge.facts_deny() == FactsDeny::ByCall;
        let offered = match (denies, judge.shell().prefers_file_tools) {
            (false, _) => Offered::default(),
            (true, false) => Offered::new(tools),
            (true, true) => Offered::with_file_tools(tools),
        };
        GuardSettings {
            judge,
            failure: if policy.failure_open() { FailurePolicy::Open } else { FailurePolicy::Closed },
            limits: GuardLimits {
                event_bytes: limits.sse_event_bytes,
                tool_input_bytes: self.snapshot.tool_input_bytes(),
                body_bytes: limits.decoded_body_bytes,
                json: self.snapshot.json_limits(),
            },
            inputs: policy.tool_inputs(),
            writes,
            offered,
            conversation: self.model_request.facts.session.clone().unwrap_or_default(),
            typed: self.session.gateway.typed.clone(),
            event_id: fresh_id,
            ask_at: reply::ask_at(self.snapshot, &self.session.naming),
            reads_evidence: self.reads_evidence(),
        }
    }

    fn reads_evidence(&self) -> Option<ReadsEvidence> {
        self.model_request.kept.as_ref()?;
        let snapshot = Arc::clone(self.snapshot);
        Some(Arc::new(move |name, input| {
            let evidence = snapshot.evidence.as_ref();
            evidence.is_some_and(|evidence| names_evidence(name, input, evidence))
        }))
    }

    /// Decides about an answer in an unknown content coding.
    fn pass_undecoded(
        &self,
        response: Response<Body>,
        guard: &EnforcedGuard,
        record: &mut Record,
    ) -> Result<Response<Body>, Stop> {
        let denial =
            Denial::unparseable("the answer's content-encoding", "it is none of gzip, deflate, br, zstd");
        if !self.snapshot.policy().failure_open() {
            return Err(denial.into());
        }
        record.answer_read(guard.guard.facts(), Normalization::Failed);
        record.emit_warning(&denial.decision);
        Ok(response)
    }

    /// Buffers the answer, and returns it as far as it is allowed.
    async fn guard_whole(
        &self,
        response: Response<Body>,
        framed: FramedGuard,
        record: &mut Record,
    ) -> Result<Response<Body>, Stop> {
        let FramedGuard { mut guard, framing, events } = framed;
        let (mut head, body) = response.into_parts();
        let most = self.snapshot.settings.limits.decoded_body_bytes;
        let body = body.bounded(SizeBound::of_answer(most))?;
        let mut reserved = self.session.gateway.budget.open(self.snapshot.settings.limits.buffered_bytes);
        let mut received =
            buffer::buffer(body, most, &mut reserved).await.map_err(|error| self.refuse_unbuffered(error))?;
        let decoder = coding::decoder_of(&head.headers, &received, self.snapshot.whole_coding_limits());
        let Ok(decoder) = decoder else {
            let undecoded = Response::from_parts(head, Body::whole(received, reserved));
            return self.pass_undecoded(undecoded, &guard, record);
        };
        if let Some(decoder) = decoder {
            let decoded = buffer::decode(&received, decoder, most, &mut reserved);
            received = decoded.map_err(|error| self.refuse_unbuffered(error))?;
        }
        head.headers.remove(header::CONTENT_ENCODING);
        let guarded = match framing {
            _ if !head.status.is_success() => guard.guard.failure(received.clone(), events),
            Framing::Whole => guard.guard.whole(received.clone()),
            Framing::Events(_) | Framing::EventStream | Framing::Array => {
                guard.guard.stream(received.clone(), framing)
            }
        };
        guard.tell_all(record);
        let allowed = guarded.map_err(|broken| refused(&broken))?;
        correct_content_type(&mut head.headers);
        if allowed != received {
            remove_digests(&mut head.headers);
        }
        head.headers.insert(header::CONTENT_LENGTH, HeaderValue::from(allowed.len()));
        drop(received);
        reserved.set(allowed.len()).map_err(|_| exhausted(self.session))?;
        Ok(Response::from_parts(head, Body::whole(allowed, reserved)))
    }

    fn refuse_unbuffered(&self, error: BufferError) -> Stop {
        match error {
            BufferError::Exhausted => exhausted(self.session),
            BufferError::Coded(error) => Denial::unparseable("the answer", error).into(),
            BufferError::Stopped(stop) => stop,
        }
    }
}

struct FramedGuard {
    guard: Box<EnforcedGuard>,
    /// The framing that the content type names.
    framing: Framing,
    /// The framing of the dialect's event streams.
    events: Framing,
}

/// The refusal in place of a whole answer that the guard ended.
fn refused(broken: &BrokenAnswer) -> Stop {
    let reason = format!("the answer cannot go on: {}", broken.reason);
    Refusal::new(http::StatusCode::FORBIDDEN, Decision::builtin(broken.rule, reason)).into()
}

fn remove_digests(head: &mut HeaderMap) {
    forget_digests(head);
    head.remove(header::ETAG);
}

/// Corrects a content type that is repeated, or that names another charset than the UTF-8 as which the body was read:
/// some clients decode lines in whatever charset the head names.
fn correct_content_type(head: &mut HeaderMap) {
    let mut values = head.get_all(header::CONTENT_TYPE).iter();
    let (Some(value), None) = (values.next(), values.next()) else {
        if let Some(first) = head.get(header::CONTENT_TYPE).cloned() {
            head.insert(header::CONTENT_TYPE, first);
            correct_content_type(head);
        }
        return;
    };
    let text = value.to_str().unwrap_or_default();
    let is_other = |parameter: &str| {
        let (name, value) = parameter.split_once('=').unwrap_or((parameter, ""));
        let value = value.trim().trim_matches('"').to_ascii_lowercase();
        name.trim().to_ascii_lowercase().starts_with("charset")
            && !matches!(value.as_str(), "utf-8" | "utf8" | "us-ascii")
    };
    if text.is_empty() {
        head.remove(header::CONTENT_TYPE);
    } else if text.split(';').skip(1).any(is_other) {
        let essence = text.split(';').next().unwrap_or_default().trim();
        if let Ok(corrected) = HeaderValue::from_str(&format!("{essence}; charset=utf-8")) {
            head.insert(header::CONTENT_TYPE, corrected);
        }
    }
}

fn unreadable() -> Failure {
    Failure::new(Class::Encoding, "the upstream's answer is encoded in a way that cannot be read")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_that_was_read_as_utf_8_is_called_nothing_else() {
        let corrected = |values: &[&[u8]]| {
            let mut head = HeaderMap::new();
            for value in values {
                head.append(header::CONTENT_TYPE, HeaderValue::from_bytes(value).unwrap());
            }
            correct_content_type(&mut head);
            head.get_all(header::CONTENT_TYPE)
                .iter()
                .map(|value| value.to_str().unwrap().to_owned())
                .collect::<Vec<_>>()
        };
        for same in
            ["text/event-stream", "text/event-stream; charset=UTF-8", "application/json;charset=\"utf-8\""]
        {
            assert_eq!(corrected(&[same.as_bytes()]), [same]);
        }
        let plain = ["text/event-stream; charset=utf-8"];
        for other in [
            "text/event-stream; charset=utf-7",
            "text/event-stream; x=\"; charset=utf-8\"; CharSet=\"utf-7\"",
            "text/event-stream; charset*=utf-8''utf-7",
            "text/event-stream; charset*0=utf; charset*1=-7",
        ] {
            assert_eq!(corrected(&[other.as_bytes()]), plain, "{other}");
        }
        assert_eq!(corrected(&[b"text/event-stream", b"application/json"]), ["text/event-stream"]);
        assert_eq!(corrected(&[b"text/event-stream; charset=utf-7", b"a/b"]), plain);
        assert!(corrected(&[b"text/event-stream; x=\xe9; charset=utf-7"]).is_empty());
        assert!(corrected(&[]).is_empty());
    }
}
