//! One request: named, decided, edited, given its credential, sent, answered, recorded. Each step is a file.

use std::sync::Arc;

use http::request::Parts;
use http::{Method, Request, Response, StatusCode, Version, header};
use http_body::Body as _;
use http_body_util::BodyExt;
use hyper::body::Incoming;

use super::body::{Body, RequestBody};
use super::error::{Class, Failure, Refusal, Stop};
use super::names;
use super::record::Record;
use super::scrubbing::Scrubbing;
use super::session::{Naming, Session};
use super::snapshot::Snapshot;
use super::upstream::{Answer, Key, Origin, Speaks, user_of};
use super::{head, reply, upgrade};
use crate::credential::placement::{self, Denial, Placement, Plan, Target};
use crate::filter::scrub;
use crate::policy::destination::{Action, Flow, Protocol, Ruling};
use crate::policy::inspection::Inspection;
use crate::policy::name::Host;
use crate::policy::path::NormalPath;

/// Answers one request of an agent. What cannot be answered is refused in words; nothing is thrown.
pub(crate) async fn exchange(session: Arc<Session>, request: Request<Incoming>) -> Response<Body> {
    session.gateway.ledger.ready().await;
    let snapshot = session.gateway.snapshot();
    let (parts, incoming) = request.into_parts();
    let mut record = Box::new(Record::begin(&session, &parts));
    let expects = parts.headers.contains_key(header::EXPECT);
    let mut exchange = Exchange { session: &session, snapshot: &snapshot, incoming: Some(incoming), expects };
    match exchange.run(parts, &mut record).await {
        Ok(response) => response.map(|body| body.recorded(record)),
        Err(stop) => exchange.stopped(&stop, &mut record).await,
    }
}

struct Exchange<'a> {
    session: &'a Arc<Session>,
    snapshot: &'a Snapshot,
    /// The request's body, until it is sent.
    incoming: Option<Incoming>,
    /// The agent sends the body only once it is told to go on.
    expects: bool,
}

/// What was decided of a request before anything of it leaves.
struct Decided {
    origin: Origin,
    ruling: Ruling,
    plan: Option<Plan>,
    upgrade: bool,
}

impl Exchange<'_> {
    async fn run(&mut self, mut parts: Parts, record: &mut Record) -> Result<Response<Body>, Stop> {
        let decided = self.decide(&parts, record)?;
        record.allowed(&decided.ruling);
        if decided.upgrade {
            return upgrade::run(self.session, self.snapshot, parts, &decided.origin, decided.plan.as_ref())
                .await;
        }
        head::strip(&mut parts.headers);
        let needles = self.snapshot.needles(&decided.origin);
        if needles.is_some() {
            scrub::ask_for_plain(&mut parts.headers);
        }
        if let Some(plan) = &decided.plan {
            attach(self.snapshot, plan, &mut parts)?;
            record.credential_attached(plan.credential());
        }
        let request = self.outgoing(parts);
        let method = request.method().clone();
        let key = Key { user: user_of(decided.plan.as_ref().map(Plan::credential)), origin: decided.origin };
        let policy = self.snapshot.policy();
        let answer = self.snapshot.upstreams.send(policy, key, self.speaks(), request).await?;
        let mut response = self.incoming(answer, record)?;
        if let Some(needles) = needles
            && method != Method::HEAD
        {
            let limits = self.snapshot.coding_limits();
            let scrubbing = Scrubbing::of(response.headers_mut(), needles, limits)?;
            response = response.map(|body| body.scrubbed(scrubbing));
        }
        Ok(response)
    }

    /// Everything that can deny a request, in the order of the contract (design 5.10).
    fn decide(&self, parts: &Parts, record: &mut Record) -> Result<Decided, Stop> {
        if let Some(doomed) = &self.session.doomed {
            return Err(doomed.clone());
        }
        let origin = names::target(self.session, parts)?;
        record.to(&origin);
        let (ruling, inspection) = self.destination(&origin)?;
        let ruling = match &inspection {
            Some(inspection) => endpoint(inspection, parts, ruling)?,
            None => ruling,
        };
        let plan = self.credential(parts, &origin)?;
        let upgrade = upgrade::asked(parts, inspection.as_deref())?;
        Ok(Decided { origin, ruling, plan, upgrade })
    }

    /// What policy says of the destination now, which may differ from when the connection was made.
    fn destination(&self, origin: &Origin) -> Result<(Ruling, Option<Arc<Inspection>>), Stop> {
        let (name, address) = match &origin.host {
            Host::Name(name) => (Some(name), None),
            Host::Ip(ip) => (None, Some(*ip)),
        };
        let protocol = if origin.tls { Protocol::Tls } else { Protocol::Http };
        let decided = self.snapshot.destination(&Flow { name, address, port: origin.port, protocol });
        match decided.action {
            Action::Inspect(inspection) => Ok((decided.decision, Some(inspection))),
            // The connection was made for what is denied now.
            Action::Deny { .. } => Err(Refusal::closing(StatusCode::FORBIDDEN, decided.decision).into()),
            // A tunnel through here is a request that nobody inspects: what a reverse listener is for, and Audit alone.
            Action::Tunnel { .. } if !matches!(self.session.naming, Naming::Fixed(_)) => {
                Ok((decided.decision, None))
            }
            Action::Tunnel { .. } => {
                let ruling = Ruling::builtin(
                    "name-mismatch",
                    "policy has changed: this destination is no longer inspected",
                );
                Err(Refusal::closing(StatusCode::MISDIRECTED_REQUEST, ruling).into())
            }
        }
    }

    fn credential(&self, parts: &Parts, origin: &Origin) -> Result<Option<Plan>, Stop> {
        let host = match &origin.host {
            Host::Name(name) => Some(name),
            Host::Ip(_) => None,
        };
        let target = Target { host, port: origin.port, secure: origin.tls };
        match placement::plan(parts, self.snapshot.policy().credentials(), &target) {
            Placement::Nothing => Ok(None),
            Placement::Attach(plan) => Ok(Some(plan)),
            // Where only Audit policies select the pod, what is no floor is recorded and goes on.
            Placement::Deny(Denial { floor: false, plan, .. }) if self.snapshot.policy().audit_only() => {
                Ok(plan)
            }
            Placement::Deny(denial) => Err(denial.ruling.into()),
        }
    }

    fn speaks(&self) -> Speaks {
        self.session.speaks
    }

    /// The request as it goes upstream.
    fn outgoing(&mut self, parts: Parts) -> Request<RequestBody> {
        let idle = self.snapshot.settings.timeouts.stream_idle;
        let body = match self.incoming.take() {
            Some(incoming) if !incoming.is_end_stream() => RequestBody::new(incoming, idle),
            Some(_) | None => RequestBody::empty(),
        };
        Request::from_parts(parts, body)
    }

    /// The answer as it goes to the agent.
    fn incoming(&self, answer: Answer, record: &mut Record) -> Result<Response<Body>, Failure> {
        let idle = self.snapshot.settings.timeouts.stream_idle;
        let mut response = match answer {
            Answer::H1(response) => {
                crate::wire::http1::check_response(response.status(), response.headers()).map_err(
                    |violation| {
                        Failure::new(Class::Framing, format!("the upstream's answer: {}", violation.reason()))
                    },
                )?;
                response.map(|body| Body::h1(body, idle))
            }
            Answer::H2(response) => response.map(|body| Body::h2(body, idle)),
        };
        if response.status() == StatusCode::SWITCHING_PROTOCOLS {
            return Err(Failure::new(Class::Framing, "the upstream switched protocols unasked"));
        }
        head::strip(response.headers_mut());
        *response.version_mut() = match self.speaks() {
            Speaks::H1 => Version::HTTP_11,
            Speaks::H2 => Version::HTTP_2,
        };
        let encoding = response.headers().get(header::CONTENT_ENCODING).and_then(|value| value.to_str().ok());
        record.answered(response.status().as_u16(), encoding.map(str::to_owned));
        Ok(response)
    }

    /// Says why the request goes no further.
    async fn stopped(&mut self, stop: &Stop, record: &mut Record) -> Response<Body> {
        let response = match stop {
            Stop::Denied(refusal) => {
                let event = record.denied(refusal);
                reply::denied(refusal, &record.destination(), event)
            }
            Stop::Failed(failure) => {
                let event = record.failed(failure);
                reply::failed(failure, &record.destination(), event)
            }
        };
        // A client that waits for 100 has not begun to write.
        if let Some(incoming) = self.incoming.take().filter(|_| !self.expects) {
            drain(incoming).await;
        }
        response
    }
}

fn endpoint(inspection: &Inspection, parts: &Parts, ruling: Ruling) -> Result<Ruling, Stop> {
    let path = NormalPath::parse(parts.uri.path());
    let said = inspection.request(&parts.method, &path);
    match said.verdict {
        crate::event::Verdict::Deny => Err(said.into()),
        crate::event::Verdict::WouldDeny => Ok(said),
        crate::event::Verdict::Allow | crate::event::Verdict::Audit => Ok(ruling),
    }
}

/// Puts the real key where the placeholder stands. The last edit: nothing sees the request after it.
pub(crate) fn attach(snapshot: &Snapshot, plan: &Plan, parts: &mut Parts) -> Result<(), Failure> {
    let name = &plan.credential().name;
    let secret = snapshot
        .credentials
        .secret(plan.credential())
        .ok_or_else(|| Failure::new(Class::Credential, format!("the credential {name} has no value")))?;
    plan.attach(parts, &secret).map_err(|error| {
        Failure::new(Class::Credential, format!("the credential {name} cannot be attached: {error}"))
    })
}

/// How much of a refused request is read, and for how long, so that a client which writes first reads the answer.
const DRAIN_BYTES: usize = 64 << 20;
const DRAIN_TIME: std::time::Duration = std::time::Duration::from_secs(10);

async fn drain(mut body: Incoming) {
    let mut left = DRAIN_BYTES;
    let reading = async {
        while let Some(Ok(frame)) = body.frame().await {
            left = left.saturating_sub(frame.data_ref().map_or(0, bytes::Bytes::len));
            if left == 0 {
                break;
            }
        }
    };
    // Past the time the connection is closed under the client, which has had its chance.
    let _ = tokio::time::timeout(DRAIN_TIME, reading).await;
}
