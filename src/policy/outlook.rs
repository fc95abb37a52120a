//! What can be said of a flow before its first byte is seen.

use std::net::IpAddr;

use super::compile::{Mode, Policy};
use super::destination::{Flow, Protocol};
use super::document::Action;
use super::index::Cover;
use crate::decision::Decision;
use crate::name::host::{DnsName, Host};

/// What is known from CONNECT's authority, a synthetic address or the dialled one alone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outlook {
    /// Whether the flow may go on to its first bytes: a rule could allow it, or the refusal is shown inside.
    pub named: bool,
    /// The refusal where `named` is false; else what the decision is so far.
    pub decision: Decision,
    /// Whether the first bytes matter. Without, the flow is tunnelled at once (server-first protocols).
    pub sniff: bool,
    /// Whether a flow whose bytes stay undecided (silence, too many of them) must be refused: taken for opaque,
    /// it would slip past a rule that inspects what it turns out to be.
    pub strict: bool,
}

const PROTOCOLS: [Protocol; 3] = [Protocol::Tls, Protocol::Http, Protocol::Opaque];

impl Policy {
    /// Before any byte is seen: whether any rule names this host or address on this port, and whether to look
    /// at the bytes. An address may still turn out to have a name, on a port that a host rule takes.
    pub fn outlook(&self, name: Option<&DnsName>, address: Option<IpAddr>, port: u16) -> Outlook {
        let flow = |protocol| Flow { name, address, port, protocol };
        let mut decision = self.destination(&flow(Protocol::Tls)).decision;
        if matches!(self.mode, Mode::Missing | Mode::Unselected) {
            return Outlook { named: false, decision, sniff: false, strict: true };
        }
        let may_be_named = name.is_none() && self.ports.get(self.sight()).named.contains(&port);
        let (mut allowed, mut opaque, mut inspects) = (0, 0, false);
        for protocol in PROTOCOLS {
            let flow = flow(protocol);
            let met = self.meet(&flow, self.sight());
            if let Some((rule, exact)) = met.deny.filter(|_| !self.audit_only()) {
                return Outlook {
                    named: exact || may_be_named,
                    decision: rule.ruling(),
                    sniff: true,
                    strict: true,
                };
            }
            let Some(rule) = self.allowing(&met, &flow, self.sight()).next() else { continue };
            if decision.denies() {
                decision = rule.ruling();
            }
            allowed += 1;
            opaque += usize::from(self.allowing(&met, &flow, self.sight()).all(|rule| rule.opaque));
            inspects |= self.allowing(&met, &flow, self.sight()).any(|rule| rule.grant.is_some());
        }
        let sniff = opaque < PROTOCOLS.len() || may_be_named;
        let named = allowed > 0 || may_be_named || self.audit_only();
        Outlook { named, decision, sniff, strict: (inspects || may_be_named) && !self.audit_only() }
    }

    /// Whether a leaf may be minted for this host: a rule inspects it, or denies it by its exact name.
    pub fn mints(&self, host: &Host) -> bool {
        let mut mints = false;
        self.index.walk(host.name(), host.ip(), |cover, group| {
            mints |= self.visible(group, self.sight()).any(|rule| match rule.action {
                Action::Inspect => true,
                Action::Deny => cover == Cover::Exact && !self.audit_only(),
                Action::Tunnel => false,
            });
        });
        mints
    }
}
