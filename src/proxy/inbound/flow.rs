//! The path of one connection, on which every way in meets: its protocol, its destination, the decision about it.

use std::borrow::Cow;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use bytes::Bytes;
use http::StatusCode;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout_at};

use super::intercept;
use super::listener;
use super::names::framing;
use super::rewind::Rewind;
use super::session::{Naming, Session, serve};
use super::sniff::{HostField, SniffBounds, SniffError, Sniffed, sniff};
use super::tunnel;
use crate::decision::Decision;
use crate::event::{self, Event, Id, Kind};
use crate::ledger::fresh_id;
use crate::name::host::{DnsName, Host};
use crate::policy::destination::{self, Action, FlowDecision, PreSniffDecision, Protocol};
use crate::policy::routing::Reach;
use crate::proxy::Gateway;
use crate::proxy::budget::Exhausted;
use crate::proxy::error::{Refusal, Stop, unrecorded};
use crate::proxy::exchange::reply;
use crate::proxy::snapshot::{Interception, Snapshot};
use crate::proxy::upstream::{AddressCheck, Origin, Speaks};
use crate::telemetry::label::{Closed, Limit, Mode};
use crate::wire::client_hello::ClientHello;
use crate::wire::http1;

/// A connection with the destination that its way in gave.
pub(crate) struct Flow {
    pub(crate) gateway: Arc<Gateway>,
    pub(crate) snapshot: Arc<Snapshot>,
    pub(crate) id: Id,
    pub(crate) mode: Mode,
    /// The name that CONNECT gave.
    pub(crate) name: Option<DnsName>,
    /// The address that CONNECT gave, or that was dialled: evidence, and authority only where there is no name.
    pub(crate) address: Option<IpAddr>,
    pub(crate) port: u16,
    /// The name that the resolver gave the address out for: it names a flow in which nothing else does.
    alias: Option<DnsName>,
}

impl Flow {
    pub(crate) fn new(gateway: &Arc<Gateway>, mode: Mode, host: &Host, port: u16) -> Self {
        let (name, address) = match host {
            Host::Name(name) => (Some(name.clone()), None),
            Host::Ip(ip) => (None, Some(*ip)),
        };
        let names = gateway.names.as_deref();
        let alias = names.zip(address).and_then(|(names, ip)| names.name_of(ip, Instant::now().into_std()));
        let id = fresh_id();
        let (gateway, snapshot) = (Arc::clone(gateway), gateway.snapshot());
        Self { gateway, snapshot, id, mode, name, address, port, alias }
    }

    /// The decision before the first byte.
    pub(crate) fn outlook(&self) -> PreSniffDecision {
        self.snapshot.outlook(self.name.as_ref().or(self.alias.as_ref()), self.address, self.port)
    }

    /// The host of the flow, as far as it is known.
    pub(crate) fn host(&self) -> Option<Host> {
        let name = self.name.as_ref().or(self.alias.as_ref());
        name.cloned().map(Host::Name).or(self.address.map(Host::Ip))
    }

    /// Decides about the flow once its protocol is known. No tunnel begins that the ledger could not record; of an
    /// inspected flow each request is refused, where the agent reads why.
    pub(crate) fn decide(&self, snapshot: &Snapshot, protocol: Protocol) -> FlowDecision {
        let decided = self.judge(snapshot, protocol);
        if !matches!(decided.action, Action::Tunnel { .. }) || !self.gateway.ledger.is_refusing() {
            return decided;
        }
        FlowDecision { action: Action::Deny { named: false }, decision: unrecorded(), audited: Vec::new() }
    }

    fn judge(&self, snapshot: &Snapshot, protocol: Protocol) -> FlowDecision {
        snapshot.destination(&destination::Flow {
            name: self.name.as_ref(),
            address: self.address,
            port: self.port,
            protocol,
        })
    }

    /// Whether the tunnel that was made of this flow may stay under the snapshot in force now.
    pub(crate) fn may_stay(&self, protocol: Protocol, peer: Option<SocketAddr>) -> bool {
        let snapshot = self.gateway.snapshot();
        let is_tunnelled = match self.judge(&snapshot, protocol).action {
            Action::Tunnel { .. } => true,
            Action::Inspect(inspection) => {
                inspection.reach() == Reach::Origin
                    && matches!(snapshot.interception, Interception::Passthrough(_))
            }
            Action::Deny { .. } => false,
        };
        let keeps = |(host, peer)| snapshot.upstreams.keeps(snapshot.policy(), &host, peer);
        is_tunnelled && self.host().zip(peer).is_none_or(keeps)
    }

    /// Serves the connection to its end; `taken` are bytes that were read of it before.
    pub(crate) async fn run(self, mut stream: TcpStream, taken: Bytes) -> Closed {
        self.gateway.ledger.ready().await;
        let outlook = self.outlook();
        if outlook.named && !outlook.sniff {
            // Only opaque rules speak of this flow: its bytes are not looked at, since the server may speak first.
            return self.opaque(Protocol::Opaque, Rewind::new(taken, stream)).await;
        }
        let mut reserved = self.gateway.budget.unread(&self.snapshot.settings.limits);
        let (taken, sniffed) = sniff(&mut stream, taken, self.bounds(), &mut reserved).await;
        drop(reserved);
        let is_silent = taken.is_empty();
        let stream = Rewind::new(taken, stream);
        match sniffed {
            Ok(Sniffed::Tls(hello)) => self.tls(hello, stream).await,
            Ok(Sniffed::Http1(host)) => self.http(Speaks::H1, host, stream).await,
            // The name is in frames that are not read before a rule inspects them.
            Ok(Sniffed::Http2) => self.http(Speaks::H2, HostField::Unclear, stream).await,
            Ok(Sniffed::Other) => self.opaque(Protocol::Opaque, stream).await,
            Ok(Sniffed::Unclear) => self.opaque(Protocol::Unclear, stream).await,
            // The agent is silent, and no rule needs its first bytes: the server may speak first.
            Err(SniffError::Timeout) if is_silent && !outlook.strict => {
                self.opaque(Protocol::Opaque, stream).await
            }
            Err(error) => self.failed(error, is_silent, stream.into_parts().1).await,
        }
    }

    fn bounds(&self) -> SniffBounds {
        let settings = &self.snapshot.settings;
        SniffBounds {
            hello_bytes: settings.limits.client_hello_bytes,
            head: http1::Limits {
                header_bytes: settings.limits.header_bytes,
                header_count: settings.limits.header_count,
            },
            deadline: Instant::now() + settings.timeouts.sniff,
        }
    }

    async fn tls(mut self, hello: ClientHello, stream: Rewind<TcpStream>) -> Closed {
        if let Err(decision) = self.named_by(hello.server_name.as_deref()) {
            return self.reset(&decision, stream.into_parts().1);
        }
        self.go_by_alias();
        let mut decided = self.decide(&self.snapshot, Protocol::Tls);
        if self.needs_ca(&decided.action) {
            decided = self.ca_arrived().await;
        }
        self.report_audits(&decided);
        match &decided.action {
            Action::Inspect(inspection) => {
                let decided = (&decided.decision, &**inspection);
                intercept::inspect(self, &hello, decided, stream).await
            }
            Action::Tunnel { allow_ech: false } if hello.ech => {
                let decision = Decision::builtin(
                    "ech",
                    "the name is hidden by Encrypted Client Hello, and the rule does not allow that",
                );
                if self.snapshot.policy().audit_only() {
                    return self.tunnel(&decision.into_would_deny(), Protocol::Tls, stream, None).await;
                }
                self.reset(&decision, stream.into_parts().1)
            }
            Action::Tunnel { .. } => self.tunnel(&decided.decision, Protocol::Tls, stream, None).await,
            Action::Deny { named: true } if self.snapshot.interception.can_mint() => {
                intercept::refuse(self, &decided.decision, stream).await
            }
            Action::Deny { .. } => self.reset(&decided.decision, stream.into_parts().1),
        }
    }

    /// Returns why CONNECT is refused where the CA does not vouch for an inspected host: an answer to CONNECT can carry
    /// a reason, a failed handshake cannot. On port 80 the agent may speak plain HTTP, which needs no CA.
    pub(crate) async fn lacks_ca(&mut self) -> Option<Decision> {
        let host = self.name.clone().filter(|_| self.port != 80).map(Host::Name)?;
        if !self.needs_ca(&self.decide(&self.snapshot, Protocol::Tls).action) {
            return None;
        }
        let decided = self.ca_arrived().await;
        let lacking = intercept::lacks_ca(&self.snapshot, &host);
        match decided.action {
            Action::Inspect(_) => lacking,
            // Denied meanwhile: the answer to CONNECT says so where no leaf can carry the refusal.
            Action::Deny { named } => (!named || lacking.is_some()).then_some(decided.decision),
            Action::Tunnel { .. } => None,
        }
    }

    /// Whether the host is inspected but the present CA does not vouch for it.
    fn needs_ca(&self, action: &Action) -> bool {
        let is_unvouched = |host: &Host| intercept::lacks_ca(&self.snapshot, host).is_some();
        matches!(action, Action::Inspect(_)) && self.host().is_some_and(|host| is_unvouched(&host))
    }

    /// Waits a moment for the CA that a new policy needs for this host: it is mounted apart from the policy. Each new
    /// snapshot decides anew, and one that needs no CA ends the wait. Returns the last decision.
    async fn ca_arrived(&mut self) -> FlowDecision {
        let (mut replaced, settles) = (self.gateway.replaced(), self.snapshot.settles());
        loop {
            self.snapshot = self.gateway.snapshot();
            let decided = self.decide(&self.snapshot, Protocol::Tls);
            if !self.needs_ca(&decided.action)
                || !timeout_at(settles, replaced.changed()).await.is_ok_and(|changed| changed.is_ok())
            {
                return decided;
            }
        }
    }

    /// Takes the name that the ClientHello gives, if it agrees with the known one.
    fn named_by(&mut self, server_name: Option<&str>) -> Result<(), Decision> {
        if let Some(text) = server_name {
            self.name = Some(agreed_name(text, self.name.as_ref())?);
        }
        Ok(())
    }

    /// Takes the name of the resolver, where nothing in the bytes has named the flow.
    fn go_by_alias(&mut self) {
        if self.name.is_none() {
            self.name = self.alias.take();
        }
    }

    async fn http(mut self, speaks: Speaks, host: HostField, stream: Rewind<TcpStream>) -> Closed {
        let is_unclear = matches!(host, HostField::Unclear);
        if let HostField::Name(name) = host {
            self.name.get_or_insert(name);
        }
        self.go_by_alias();
        if let Some(name) = self.name.clone().filter(|name| self.snapshot.serves_own(name, self.port)) {
            return self.own(name, speaks, stream).await;
        }
        let mut protocol = Protocol::Http;
        let mut decided = self.decide(&self.snapshot, protocol);
        if is_unclear && self.name.is_none() && matches!(decided.action, Action::Tunnel { .. }) {
            // No inspection will read its name: it passes only where unclear bytes may.
            protocol = Protocol::Unclear;
            decided = self.decide(&self.snapshot, protocol);
        }
        self.report_audits(&decided);
        let refuse_all = match &decided.action {
            Action::Tunnel { .. } => {
                return self.tunnel(&decided.decision, protocol, stream, None).await;
            }
            Action::Inspect(_) => None,
            Action::Deny { .. } if protocol == Protocol::Unclear => {
                return self.reset(&decided.decision, stream.into_parts().1);
            }
            Action::Deny { .. } => {
                Some(Stop::Denied(Refusal::closing(StatusCode::FORBIDDEN, decided.decision.clone())))
            }
        };
        let action = if refuse_all.is_some() { event::Action::Deny } else { event::Action::Inspect };
        let destination = self.report(&decided.decision, action, true, None);
        let Some(host) = self.host() else { return Closed::Internal };
        let origin = Origin { tls: false, host, port: self.port };
        let closed = if refuse_all.is_some() { Closed::Denied } else { Closed::Finished };
        let ended = serve(self.session(Naming::Fixed(origin), destination, speaks, refuse_all), stream).await;
        if closed == Closed::Denied { closed } else { ended }
    }

    /// Serves the gateway's own name. Each question has an event, the connection none.
    async fn own(self, name: DnsName, speaks: Speaks, stream: Rewind<TcpStream>) -> Closed {
        self.gateway.metrics.connection(self.mode, event::Action::Inspect);
        let origin = Origin { tls: false, host: Host::Name(name), port: self.port };
        let destination = Arc::new(event::Destination {
            host: self.shown_host(),
            port: self.port,
            action: event::Action::Inspect,
            intercepted: true,
            reason: None,
        });
        serve(self.session(Naming::Fixed(origin), destination, speaks, None), stream).await
    }

    async fn opaque(mut self, protocol: Protocol, stream: Rewind<TcpStream>) -> Closed {
        self.go_by_alias();
        let decided = self.decide(&self.snapshot, protocol);
        self.report_audits(&decided);
        match decided.action {
            Action::Tunnel { .. } => self.tunnel(&decided.decision, protocol, stream, None).await,
            Action::Inspect(_) | Action::Deny { .. } => self.reset(&decided.decision, stream.into_parts().1),
        }
    }

    async fn failed(mut self, error: SniffError, is_silent: bool, mut stream: TcpStream) -> Closed {
        self.go_by_alias();
        let (decision, closed) = match error {
            SniffError::Timeout if is_silent => {
                let decided = self.decide(&self.snapshot, Protocol::Opaque);
                if !matches!(decided.action, Action::Tunnel { .. }) {
                    return Closed::SniffTimeout;
                }
                let reason = "nothing came in time, and a rule about names covers this port: where the server speaks \
                              first, use another port";
                (Decision::builtin("unparseable", reason), Closed::SniffTimeout)
            }
            SniffError::Timeout => {
                let decided = self.decide(&self.snapshot, Protocol::Unclear).decision;
                let reason = "the first bytes did not say in time what the connection is";
                let late = || Decision::builtin("unparseable", reason);
                (Some(decided).filter(Decision::denies).unwrap_or_else(late), Closed::SniffTimeout)
            }
            SniffError::Closed => return Closed::Silent,
            SniffError::Garbage(why) => (Decision::builtin("unparseable", why), Closed::Garbage),
            SniffError::TooLong => {
                self.gateway.metrics.limit_reached(Limit::ClientHelloBytes);
                (Decision::builtin("bound", "the ClientHello is over its bound"), Closed::Limit)
            }
            SniffError::Exhausted { is_http } => {
                self.gateway.metrics.limit_reached(Limit::BufferedBytes);
                if is_http {
                    let status = StatusCode::SERVICE_UNAVAILABLE;
                    let text = reply::denied_raw(status, &Exhausted::ruling(), "-", (self.id, None));
                    // The agent may be gone already; the event says what matters.
                    let _ = stream.write_all(&text).await;
                    let _ = stream.shutdown().await;
                }
                (Exhausted::ruling(), Closed::Limit)
            }
            SniffError::Http(violation) => {
                let decision = framing(violation.reason()).decision;
                let text = reply::denied_raw(violation.status(), &decision, "-", (self.id, None));
                // The agent may be gone already; the event says what matters.
                let _ = stream.write_all(&text).await;
                let _ = stream.shutdown().await;
                self.report(&decision, event::Action::Deny, false, None);
                return self.gateway.violated(&violation);
            }
        };
        self.reset(&decision, stream);
        closed
    }

    /// Passes the bytes unseen, both ways, until either side ends or a new policy denies the flow.
    pub(crate) async fn tunnel(
        self,
        decision: &Decision,
        protocol: Protocol,
        stream: Rewind<TcpStream>,
        reason: Option<String>,
    ) -> Closed {
        let Some(host) = self.host() else { return Closed::Internal };
        let check = AddressCheck::new(self.snapshot.policy());
        let dialled = self.snapshot.upstreams.tunnel(&check, &host, self.port).await;
        if let Some(decision) = check.into_audited() {
            self.report_audited(&decision, event::Action::Tunnel);
        }
        let upstream = match dialled {
            Ok(upstream) => upstream,
            Err(Stop::Denied(refusal)) => return self.reset(&refusal.decision, stream.into_parts().1),
            Err(Stop::Failed(failure)) => {
                if let (_, Some(label)) = failure.class.shows() {
                    self.gateway.metrics.upstream_failed(label);
                }
                self.report(decision, event::Action::Tunnel, false, Some(failure.message));
                listener::reset(stream.into_parts().1);
                return Closed::Upstream;
            }
        };
        let destination = self.report(decision, event::Action::Tunnel, false, reason);
        tunnel::run(&self, protocol, &destination, stream, upstream).await
    }

    /// Emits the event, then resets the connection.
    pub(crate) fn reset(&self, decision: &Decision, stream: TcpStream) -> Closed {
        self.report(decision, event::Action::Deny, false, None);
        listener::reset(stream);
        Closed::Denied
    }

    pub(crate) fn session(
        self,
        naming: Naming,
        destination: Arc<event::Destination>,
        speaks: Speaks,
        refuse_all: Option<Stop>,
    ) -> Session {
        Session::new(self.gateway, self.id, naming, destination).speaking(speaks).refuse_all(refuse_all)
    }

    /// Emits the event of the connection, and returns the destination as events show it.
    pub(crate) fn report(
        &self,
        decision: &Decision,
        action: event::Action,
        intercepted: bool,
        reason: Option<String>,
    ) -> Arc<event::Destination> {
        let destination = Arc::new(event::Destination {
            host: self.shown_host(),
            port: self.port,
            action,
            intercepted,
            reason: reason.map(Into::into),
        });
        let mut event = Event::new(self.id, Kind::Connection, decision.clone());
        event.destination = Some(Arc::clone(&destination));
        event.connection = Some(self.id);
        self.gateway.emit(event);
        self.gateway.metrics.connection(self.mode, action);
        destination
    }

    /// Reports what Audit policies would have done, where that differs from what is done.
    fn report_audits(&self, decided: &FlowDecision) {
        decided.audited.iter().for_each(|decision| self.report_audited(decision, decided.action.word()));
    }

    pub(super) fn report_audited(&self, decision: &Decision, action: event::Action) {
        let mut event = Event::new(fresh_id(), Kind::Policy, decision.clone());
        event.connection = Some(self.id);
        event.destination = Some(Arc::new(event::Destination {
            host: self.shown_host(),
            port: self.port,
            action,
            intercepted: false,
            reason: None,
        }));
        self.gateway.emit(event);
    }

    fn shown_host(&self) -> String {
        self.host().map_or_else(|| "-".to_owned(), |host| host.to_string())
    }
}

/// The name of a TLS handshake, unless the connection is for another one.
fn agreed_name(server_name: &str, known: Option<&DnsName>) -> Result<DnsName, Decision> {
    let reason = match (Host::parse(server_name), known) {
        (Ok(Host::Name(sni)), Some(name)) if sni != *name => {
            format!("the TLS handshake is for {sni} and the connection for {name}").into()
        }
        (Ok(Host::Name(sni)), Some(_) | None) => return Ok(sni),
        (Ok(Host::Ip(_)) | Err(_), _) => {
            Cow::Borrowed("the TLS handshake names something that is no host name")
        }
    };
    Err(Decision::builtin("name-mismatch", reason))
}

impl Action {
    /// The word of an action in events and metrics.
    pub(crate) fn word(&self) -> event::Action {
        match self {
            Self::Inspect(_) => event::Action::Inspect,
            Self::Tunnel { .. } => event::Action::Tunnel,
            Self::Deny { .. } => event::Action::Deny,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_handshake_names_the_connection_and_contradicts_no_name() {
        let name = |text: &str| DnsName::parse(text).unwrap();
        assert_eq!(agreed_name("API.example", None), Ok(name("api.example")));
        assert_eq!(agreed_name("api.example", Some(&name("api.example"))), Ok(name("api.example")));
        for (server_name, known) in
            [("other.example", Some(name("api.example"))), ("192.0.2.1", None), ("a b", None), ("", None)]
        {
            let denied = agreed_name(server_name, known.as_ref()).unwrap_err();
            assert_eq!(denied.rule_id(), "postern/builtin/name-mismatch", "{server_name}");
        }
    }
}
