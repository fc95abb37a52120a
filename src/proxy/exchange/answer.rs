//! Has the answer of a model looked at: a stream as it comes, a whole answer before anything of it goes on.

use std::sync::Arc;

use bytes::Bytes;
use http::response::Parts;
use http::{HeaderMap, HeaderName, HeaderValue, Response, header};
use http_body::Body as _;

use super::intake::{self, Unfit};
use super::question::{Question, exhausted};
use super::record::Record;
use crate::call::{Denial, Judge, Normalization, RequestFacts, Start, Tool, ToolCall, Verdict};
use crate::decision::Decision;
use crate::provider::adapter::Framing;
use crate::provider::answer::{Broken, FailurePolicy, Guard, GuardLimits, GuardSettings, Transcript};
use crate::provider::kind::Offered;
use crate::proxy::body::Body;
use crate::proxy::body::rewriting::Guarding;
use crate::proxy::error::{Class, Failure, Refusal, Stop};
use crate::proxy::inbound::session::Session;
use crate::proxy::snapshot::Snapshot;
use crate::wire::coding::{self, Decoder};

/// Fields that say something of a body's bytes, which an edit makes untrue.
const ABOUT_BYTES: [&str; 5] = ["content-md5", "digest", "content-digest", "repr-digest", "etag"];

/// Looks at one answer.
pub(crate) struct Hearing<'a> {
    pub(crate) session: &'a Arc<Session>,
    pub(crate) snapshot: &'a Arc<Snapshot>,
    pub(crate) question: &'a Question,
}

impl Hearing<'_> {
    /// The answer as far as it may go on, whatever its status: there are clients that look at none.
    pub(crate) async fn of(
        &self,
        mut response: Response<Body>,
        record: &mut Record,
    ) -> Result<Response<Body>, Stop> {
        if response.body().is_end_stream() {
            return Ok(response);
        }
        let is_success = response.status().is_success();
        if let (true, Some(conversation)) = (is_success, &self.question.facts.answered_conversation) {
            self.session.gateway.blocked.forget(conversation);
        }
        let Some(framed) = self.guarding(response.headers()) else { return Ok(response) };
        let guard = &framed.guarding.guard;
        let limits = self.snapshot.coding_limits();
        let is_coded = Decoder::for_headers(response.headers(), limits).is_err();
        let observes = guard.observes();
        if observes && is_coded {
            record.read(guard.facts(), Normalization::Failed);
            return Ok(response);
        }
        if !observes && (framed.framing == Framing::Whole || is_coded || !is_success) {
            return self.whole(response, framed, record).await;
        }
        let (mut head, mut body) =
            (std::mem::take(response.headers_mut()), std::mem::replace(response.body_mut(), Body::own("")));
        let rewriting = body.rewriting();
        if observes {
            rewriting.decoding(&mut head, limits).map_err(|_| unreadable())?;
        } else {
            rewriting.detecting(&mut head, limits).map_err(|_| unreadable())?;
            forget(&mut head);
            typed(&mut head);
        }
        rewriting.guarding(framed.guarding);
        *response.headers_mut() = head;
        *response.body_mut() = body;
        Ok(response)
    }

    /// What looks at the messages of a WebSocket.
    pub(crate) fn conversation(&self) -> Option<Guarding> {
        let transcript = self.question.adapter.transcript(&self.question.asked(), &self.question.facts)?;
        let judge = Arc::new(InForce(Arc::clone(self.session)));
        // What tools there are is said later, message by message.
        Some(self.guard(transcript, Framing::Whole, (judge, &RequestFacts::default(), true)))
    }

    fn guarding(&self, head: &HeaderMap) -> Option<Framed> {
        let asked = self.question.asked();
        let facts = &self.question.facts;
        let transcript = self.question.adapter.transcript(&asked, facts)?;
        let content_type = head.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
        let content_type = content_type.unwrap_or_default().split(';').next().unwrap_or_default();
        let framing = self.question.adapter.framing(&asked, facts, &content_type.trim().to_ascii_lowercase());
        let events = self.question.adapter.framing(&asked, facts, "text/event-stream");
        let judge = Arc::clone(self.snapshot);
        let guarding = self.guard(transcript, framing, (judge, facts, facts.writes));
        Some(Framed { guarding, framing, events })
    }

    /// With a judge, what the request says, and whether it offers a tool that writes.
    fn guard(
        &self,
        transcript: Box<dyn Transcript>,
        framing: Framing,
        (judge, facts, writes): (Arc<dyn Judge>, &RequestFacts, bool),
    ) -> Guarding {
        let limits = &self.snapshot.settings.limits;
        let policy = self.snapshot.policy();
        let offered = if judge.denies(writes) { Offered::new(&facts.tools) } else { Offered::default() };
        let settings = GuardSettings {
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
        };
        let reserved = self.session.gateway.budget.open(limits.buffered_bytes);
        Guarding { guard: Guard::new(transcript, framing, settings), reserved }
    }

    /// An answer in a content coding that nobody here knows.
    fn uncoded(
        &self,
        (head, came): (Parts, Bytes),
        guarding: Guarding,
        record: &mut Record,
    ) -> Result<Response<Body>, Stop> {
        let denial =
            Denial::unparseable("the answer's content-encoding", "it is none of gzip, deflate, br, zstd");
        if !self.snapshot.policy().failure_open() {
            return Err(denial.into());
        }
        record.read(guarding.guard.facts(), Normalization::Failed);
        record.warned(&denial.decision);
        Ok(Response::from_parts(head, Body::whole(came, guarding.reserved)))
    }

    /// Takes the answer in, and lets it go on as far as it may.
    async fn whole(
        &self,
        response: Response<Body>,
        framed: Framed,
        record: &mut Record,
    ) -> Result<Response<Body>, Stop> {
        let Framed { mut guarding, framing, events } = framed;
        let (mut head, body) = response.into_parts();
        let most = self.snapshot.settings.limits.decoded_body_bytes;
        let mut came =
            intake::take(body, most, &mut guarding.reserved).await.map_err(|unfit| self.unfit(unfit))?;
        let decoder = coding::decoder_of(&head.headers, &came, self.snapshot.whole_coding_limits());
        let Ok(decoder) = decoder else {
            return self.uncoded((head, came), guarding, record);
        };
        if let Some(decoder) = decoder {
            let decoded = intake::decode(&came, decoder, most, &mut guarding.reserved);
            came = decoded.map_err(|unfit| self.unfit(unfit))?;
        }
        head.headers.remove(header::CONTENT_ENCODING);
        let guard = &mut guarding.guard;
        let heard = match framing {
            _ if !head.status.is_success() => guard.failure(came.clone(), events),
            Framing::Whole => guard.whole(came.clone()),
            Framing::Events(_) | Framing::EventStream | Framing::Array => guard.stream(came.clone(), framing),
        };
        guarding.tell_all(record);
        let goes_on = heard.map_err(|broken| refused(&broken))?;
        typed(&mut head.headers);
        if goes_on != came {
            forget(&mut head.headers);
        }
        head.headers.insert(header::CONTENT_LENGTH, HeaderValue::from(goes_on.len()));
        drop(came);
        guarding.reserved.set(goes_on.len()).map_err(|_| exhausted(self.session))?;
        Ok(Response::from_parts(head, Body::whole(goes_on, guarding.reserved)))
    }

    fn unfit(&self, unfit: Unfit) -> Stop {
        match unfit {
            Unfit::TooLarge(most) => {
                let reason = format!("the answer is larger than {most} bytes (limits.decodedBodyBytes)");
                Denial::builtin("bound", reason).into()
            }
            Unfit::Exhausted => exhausted(self.session),
            Unfit::Coded(error) => Denial::unparseable("the answer", error).into(),
            Unfit::Failed(failure) => failure.into(),
        }
    }
}

/// Judges the calls of a WebSocket by the policy in force, which may have changed since it was opened.
struct InForce(Arc<Session>);

impl Judge for InForce {
    fn denies(&self, writes: bool) -> bool {
        self.0.gateway.snapshot().denies(writes)
    }

    fn start(&self, tool: &Tool<'_>) -> Start {
        self.0.gateway.snapshot().start(tool)
    }

    fn complete(&self, call: &ToolCall<'_>) -> Verdict {
        self.0.gateway.snapshot().complete(call)
    }

    fn unknown(&self, tool: &Tool<'_>) -> Verdict {
        self.0.gateway.snapshot().unknown(tool)
    }
}

struct Framed {
    guarding: Guarding,
    /// As its content type says.
    framing: Framing,
    /// How the dialect frames a stream of events.
    events: Framing,
}

/// A whole answer that must not go on.
fn refused(broken: &Broken) -> Stop {
    let reason = format!("the answer cannot go on: {}", broken.reason);
    Refusal::new(http::StatusCode::FORBIDDEN, Decision::builtin(broken.rule, reason)).into()
}

fn forget(head: &mut HeaderMap) {
    for name in ABOUT_BYTES {
        head.remove(HeaderName::from_static(name));
    }
}

/// Makes a head say of a body how it was read, where it says something else: once, and as UTF-8. There are clients that
/// decode lines in whatever charset they are told.
fn typed(head: &mut HeaderMap) {
    let mut values = head.get_all(header::CONTENT_TYPE).iter();
    let (Some(value), None) = (values.next(), values.next()) else {
        if let Some(first) = head.get(header::CONTENT_TYPE).cloned() {
            head.insert(header::CONTENT_TYPE, first);
            typed(head);
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
        if let Ok(said) = HeaderValue::from_str(&format!("{essence}; charset=utf-8")) {
            head.insert(header::CONTENT_TYPE, said);
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
        let said = |all: &[&[u8]]| {
            let mut head = HeaderMap::new();
            for value in all {
                head.append(header::CONTENT_TYPE, HeaderValue::from_bytes(value).unwrap());
            }
            typed(&mut head);
            head.get_all(header::CONTENT_TYPE)
                .iter()
                .map(|value| value.to_str().unwrap().to_owned())
                .collect::<Vec<_>>()
        };
        for same in
            ["text/event-stream", "text/event-stream; charset=UTF-8", "application/json;charset=\"utf-8\""]
        {
            assert_eq!(said(&[same.as_bytes()]), [same]);
        }
        let plain = ["text/event-stream; charset=utf-8"];
        for other in [
            "text/event-stream; charset=utf-7",
            "text/event-stream; x=\"; charset=utf-8\"; CharSet=\"utf-7\"",
            "text/event-stream; charset*=utf-8''utf-7",
            "text/event-stream; charset*0=utf; charset*1=-7",
        ] {
            assert_eq!(said(&[other.as_bytes()]), plain, "{other}");
        }
        assert_eq!(said(&[b"text/event-stream", b"application/json"]), ["text/event-stream"]);
        assert_eq!(said(&[b"text/event-stream; charset=utf-7", b"a/b"]), plain);
        assert!(said(&[b"text/event-stream; x=\xe9; charset=utf-7"]).is_empty());
        assert!(said(&[]).is_empty());
    }
}
