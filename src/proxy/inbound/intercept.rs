//! Ends the agent's TLS with a minted leaf, once the upstream is known to be who it says.

use std::io;
use std::sync::Arc;
use std::time::SystemTime;

use rustls::AlertDescription;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use http::StatusCode;

use super::flow::Flow;
use super::listener;
use super::rewind::Rewind;
use super::session::{Naming, serve};
use crate::decision::{Decision, RuleId, Verdict};
use crate::event::{self, Event, Kind};
use crate::ledger::fresh_id;
use crate::name::host::Host;
use crate::policy::destination::{EndpointRules, Protocol};
use crate::policy::routing::Reach;
use crate::provider;
use crate::proxy::error::{Refusal, Stop};
use crate::proxy::readahead::ReadAhead;
use crate::proxy::snapshot::{Interception, Snapshot};
use crate::proxy::upstream::{AddressCheck, Origin, Speaks};
use crate::telemetry::label::{Closed, Limit};
use crate::tls::authority::MintError;
use crate::tls::leaf::{Leaves, Unserved};
use crate::wire::client_hello::ClientHello;

/// Serves a connection that a rule inspects.
pub(crate) async fn inspect(
    flow: Flow,
    hello: &ClientHello,
    (decision, inspection): (&Decision, &EndpointRules),
    stream: Rewind<TcpStream>,
) -> Closed {
    let Some(host) = flow.host() else { return Closed::Internal };
    let leaves = match &flow.snapshot.interception {
        Interception::On(leaves) => Arc::clone(leaves),
        Interception::Off => {
            let decision =
                Decision::builtin("interception-off", "a rule says Inspect, and interception.mode is Off");
            return flow.reset(&decision, stream.into_parts().1);
        }
        Interception::Passthrough(_) if inspection.reach() == Reach::Routes => {
            let reason = "only models of routes answer at this host, and nothing is intercepted here";
            return flow.reset(&Decision::builtin("route", reason), stream.into_parts().1);
        }
        Interception::Passthrough(why) => {
            let reason = format!("not intercepted: {why}");
            return flow.tunnel(decision, Protocol::Tls, stream, Some(reason)).await;
        }
    };
    if let Some(decision) = lacks_ca(&flow.snapshot, &host) {
        return turn_away(&flow, &decision, stream).await;
    }
    let origin = Origin { tls: true, host, port: flow.port };
    let snapshot = Arc::clone(&flow.snapshot);
    if inspection.reach() == Reach::Routes {
        // Nothing is resolved or dialled there: models of routes answer, or nobody.
        let destination = flow.report(decision, event::Action::Inspect, true, None);
        let h2 = offers(hello, b"h2");
        let ending = Ending { flow, origin, leaves, h2, destination, refuse_all: None, unserved: None };
        return ending.run(stream).await;
    }
    let check = AddressCheck::new(snapshot.policy());
    let prepared = snapshot.upstreams.prepare(&check, &origin, offers(hello, b"h2")).await;
    if let Some(decision) = check.into_audited() {
        flow.report_audited(&decision, event::Action::Inspect);
    }
    let (h2, refuse_all) = match prepared {
        Ok(h2) => (h2, None),
        Err(stop) => (false, Some(stop)),
    };
    // Its requests reach it no better, and a route may have another model for them.
    let is_routed = refuse_all.is_some() && could_serve(&snapshot, &origin.host, inspection);
    let destination = match &refuse_all {
        Some(Stop::Denied(refusal)) if !is_routed => {
            flow.report(&refusal.decision, event::Action::Deny, true, None)
        }
        Some(Stop::Denied(refusal)) => {
            flow.report(decision, event::Action::Inspect, true, Some(refusal.decision.why().to_owned()))
        }
        Some(Stop::Failed(failure)) => {
            flow.report(decision, event::Action::Inspect, true, Some(failure.message.clone()))
        }
        None => flow.report(decision, event::Action::Inspect, true, None),
    };
    let unserved = refuse_all.is_some().then_some(Unserved::Failed);
    let refuse_all = refuse_all.filter(|_| !is_routed);
    let ending = Ending { flow, origin, leaves, h2, destination, refuse_all, unserved };
    ending.run(stream).await
}

/// Whether a route could have a model answer for this host, where that itself cannot.
fn could_serve(snapshot: &Snapshot, host: &Host, inspection: &EndpointRules) -> bool {
    let is_model_host = || provider::spoken_at(host.name(), inspection.provider()).is_some();
    snapshot.policy().routing().is_some_and(|routing| routing.could_serve(host)) && is_model_host()
}

/// The denial of a host that rules inspect, where the CA that would vouch for it is not in place: a new one is mounted
/// soon, and taken over without a restart.
pub(super) fn lacks_ca(snapshot: &Snapshot, host: &Host) -> Option<Decision> {
    let Interception::On(leaves) = &snapshot.interception else { return None };
    let error = leaves.authority().vouches(host, SystemTime::now()).err()?;
    let reason = format!(
        "{error}; in a cluster the operator reissues it, and until that is mounted here this host is denied"
    );
    Some(Decision::builtin("ca-missing", reason))
}

/// A fatal `access_denied` (RFC 8446, section 6.2), as one record.
const ACCESS_DENIED: [u8; 7] = [21, 3, 3, 0, 2, 2, 49];

/// Refuses a handshake by an alert: without a certificate nothing else can be sent. A client reports an alert as denied
/// access, and a reset as a failure of the network.
async fn turn_away(flow: &Flow, decision: &Decision, stream: Rewind<TcpStream>) -> Closed {
    flow.report(decision, event::Action::Deny, false, None);
    let mut stream = stream.into_parts().1;
    // The agent may be gone already; the event says what matters.
    let _ = stream.write_all(&ACCESS_DENIED).await;
    let _ = stream.shutdown().await;
    Closed::Denied
}

/// Shows the refusal inside TLS, where a client can read it. Nothing is resolved or dialled.
pub(crate) async fn refuse(flow: Flow, decision: &Decision, stream: Rewind<TcpStream>) -> Closed {
    let (Some(host), Interception::On(leaves)) = (flow.host(), &flow.snapshot.interception) else {
        return flow.reset(decision, stream.into_parts().1);
    };
    let leaves = Arc::clone(leaves);
    if leaves.authority().vouches(&host, SystemTime::now()).is_err() {
        return turn_away(&flow, decision, stream).await;
    }
    let destination = flow.report(decision, event::Action::Deny, true, None);
    let origin = Origin { tls: true, host, port: flow.port };
    let refuse_all = Some(Stop::Denied(Refusal::closing(StatusCode::FORBIDDEN, decision.clone())));
    let unserved = Some(Unserved::Denied);
    let ending = Ending { flow, origin, leaves, h2: false, destination, refuse_all, unserved };
    ending.run(stream).await;
    Closed::Denied
}

/// A TLS connection about to be ended here.
struct Ending {
    flow: Flow,
    origin: Origin,
    leaves: Arc<Leaves>,
    h2: bool,
    destination: Arc<event::Destination>,
    refuse_all: Option<Stop>,
    /// Why the leaf carries no answer of an upstream: it is for a refusal, or for a 502.
    unserved: Option<Unserved>,
}

impl Ending {
    async fn run(self, stream: Rewind<TcpStream>) -> Closed {
        let host = &self.origin.host;
        let config = match self.unserved {
            Some(why) => self.leaves.refusing_config(host, why),
            None => self.leaves.server_config(host, self.h2),
        };
        let config = match config {
            Ok(config) => config,
            Err(MintError::TooMany(_)) => {
                self.flow.gateway.metrics.limit_reached(Limit::RefusalLeaves);
                listener::reset(stream.into_parts().1);
                return Closed::Limit;
            }
            Err(error) => {
                let host = self.origin.host.to_string();
                tracing::error!(host = %self.flow.gateway.shown(&host), %error, "no leaf could be minted");
                return Closed::Internal;
            }
        };
        self.flow.gateway.metrics.leaves_minted(self.leaves.minted());
        let limit = self.flow.snapshot.settings.timeouts.agent_head;
        // Boxed: the memory of the handshake is freed after it, and the stream is not moved again.
        let handshake = Box::pin(TlsAcceptor::from(config).accept(ReadAhead::new(stream)));
        let tls = match tokio::time::timeout(limit, handshake).await {
            Ok(Ok(tls)) => Box::new(tls),
            Ok(Err(error)) => return self.not_accepted(&error),
            Err(_) => return Closed::AgentTls,
        };
        let speaks = speaks(&tls);
        let Self { flow, origin, destination, refuse_all, .. } = self;
        serve(flow.session(Naming::Fixed(origin), destination, speaks, refuse_all), tls).await
    }

    /// Records a client that rejects the leaf; it is never let through unseen.
    fn not_accepted(&self, error: &io::Error) -> Closed {
        let alert = error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>());
        let Some(rustls::Error::AlertReceived(alert)) = alert.filter(|error| is_rejection(error)) else {
            tracing::debug!(host = %self.origin.host, "the agent's TLS handshake failed");
            return Closed::AgentTls;
        };
        let gateway = &self.flow.gateway;
        gateway.metrics.leaf_rejected();
        let host = self.origin.host.to_string();
        tracing::warn!(host = %gateway.shown(&host), ?alert, "the agent rejected our certificate: it does not trust Postern's CA");
        let mut event = Event::new(
            fresh_id(),
            Kind::Connection,
            Decision {
                verdict: Verdict::Deny,
                rule: Some(RuleId::builtin("default-deny")),
                reason: Some("the agent rejected our certificate".into()),
                enforcement: None,
            },
        );
        event.destination = Some(Arc::new(event::Destination {
            reason: Some("the agent rejected our certificate".into()),
            ..(*self.destination).clone()
        }));
        event.connection = Some(self.flow.id);
        gateway.emit(event);
        Closed::LeafRejected
    }
}

/// Alerts by which clients reject a certificate (RFC 8446, section 6.2).
fn is_rejection(error: &rustls::Error) -> bool {
    matches!(
        error,
        rustls::Error::AlertReceived(
            AlertDescription::UnknownCA
                | AlertDescription::BadCertificate
                | AlertDescription::CertificateUnknown
                | AlertDescription::CertificateExpired
                | AlertDescription::CertificateRevoked
                | AlertDescription::UnsupportedCertificate
                | AlertDescription::AccessDenied
        )
    )
}

fn offers(hello: &ClientHello, protocol: &[u8]) -> bool {
    hello.alpn.iter().any(|offered| offered == protocol)
}

fn speaks(tls: &TlsStream<ReadAhead<Rewind<TcpStream>>>) -> Speaks {
    match tls.get_ref().1.alpn_protocol() {
        Some(b"h2") => Speaks::H2,
        Some(_) | None => Speaks::H1,
    }
}

impl Interception {
    /// Whether a refusal can be shown inside TLS.
    pub(crate) fn can_mint(&self) -> bool {
        matches!(self, Self::On(_))
    }
}
