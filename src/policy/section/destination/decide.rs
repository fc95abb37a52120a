//! Decides about a flow by the rules that it meets (design sections 5.2 and 5.3).

use std::net::IpAddr;
use std::sync::Arc;

use ipnet::IpNet;

use super::endpoints::{EndpointGrant, EndpointRules};
use super::index::Cover;
use super::rule::DestinationRule;
use super::written;
use crate::decision::{Decision, Enforcement, Verdict};
use crate::name::host::DnsName;
use crate::policy::Policy;
use crate::policy::scope::{Mode, PolicyScope, TIERS, Tier};

/// The protocol of a flow, by its first bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum Protocol {
    Tls,
    Http,
    /// Plainly another protocol, or a server that speaks first.
    Opaque,
    /// Neither plainly TLS or HTTP nor plainly another: it passes as opaque only where no rule needs a name.
    Unclear,
}

impl Protocol {
    /// Whether the bytes are passed without a name having been looked for in them.
    pub(super) fn is_bytes(self) -> bool {
        match self {
            Self::Tls | Self::Http => false,
            Self::Opaque | Self::Unclear => true,
        }
    }
}

/// Whom a flow is for, as far as it has shown. `name` wins: with a name, no address rule takes part. `address` is an IP in
/// CONNECT or Host, or the dialled one.
#[derive(Debug, Clone, Copy)]
pub struct Flow<'a> {
    pub name: Option<&'a DnsName>,
    pub address: Option<IpAddr>,
    pub port: u16,
    pub protocol: Protocol,
}

/// The decision about a flow.
#[derive(Debug, Clone)]
pub struct FlowDecision {
    pub action: Action,
    pub decision: Decision,
    /// Decisions of Audit policies beside enforced ones, only where they differ.
    pub audited: Vec<Decision>,
}

/// The action on a flow.
#[derive(Debug, Clone)]
pub enum Action {
    /// `named`: a Deny rule names the host exactly, so the refusal is shown inside (leaf minted, 403).
    Deny {
        named: bool,
    },
    /// Without `allow_ech` a ClientHello with ECH is denied; where [`Policy::audit_only`] that is recorded alone.
    Tunnel {
        allow_ech: bool,
    },
    Inspect(Arc<EndpointRules>),
}

/// The rules that a flow meets.
pub(super) struct MatchedRules<'a> {
    /// The most specific Deny rule, and whether it names the host exactly.
    pub(super) deny: Option<(&'a DestinationRule, bool)>,
    /// Of each tier the most specific rules that take part and deny nothing; empty where it has none.
    tiers: [Tiered<'a>; TIERS],
    /// Why those rules do not serve this flow.
    pub(super) withheld: Option<Withheld>,
}

/// Why a flow that shows no name is not served by rules that would allow it (design section 5.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Withheld {
    /// The bytes are unclear, on a port where a rule needs a name.
    Unclear,
    /// The cluster inspects names on the port, and none of its rules allows what shows none.
    Floor,
}

impl Withheld {
    pub(super) fn ruling(self) -> Decision {
        match self {
            Self::Unclear => Decision::builtin(
                "unparseable",
                "The first bytes are neither TLS nor HTTP nor a protocol that is known, and a rule about names covers \
                 this port",
            ),
            Self::Floor => Decision::builtin(
                "default-deny",
                "A cluster policy inspects names on this port: what shows none needs a cluster rule with `cidrs` or \
                 `protocol: Opaque`",
            ),
        }
    }
}

/// The equally specific rules that decide for one tier: a group of the index, to be filtered again.
#[derive(Clone, Copy, Default)]
struct Tiered<'a>(&'a [usize]);

/// Why a companion is denied, for people who wonder who dials it.
const COMPANION: &str =
    "No rule names this host, which agents dial beside their provider: name it in a rule to decide about it";

impl Policy {
    /// Decides about a flow. The common allowed flow costs a few look-ups and no allocation.
    pub fn destination(&self, flow: &Flow<'_>) -> FlowDecision {
        match self.mode {
            Mode::Missing | Mode::Unselected => FlowDecision {
                action: Action::Deny { named: false },
                decision: self.refusal(flow),
                audited: Vec::new(),
            },
            Mode::AuditOnly => self.audited_alone(flow),
            Mode::Enforced { audits } => self.enforced(flow, audits),
        }
    }

    fn enforced(&self, flow: &Flow<'_>, audits: bool) -> FlowDecision {
        let met = self.meet(flow, PolicyScope::Enforced);
        let mut destination = match met.deny {
            Some((rule, named)) => {
                FlowDecision { action: Action::Deny { named }, decision: rule.ruling(), audited: Vec::new() }
            }
            None => self.grant(&met, flow, PolicyScope::Enforced).unwrap_or_else(|| FlowDecision {
                action: Action::Deny { named: false },
                decision: self.refusal(flow),
                audited: Vec::new(),
            }),
        };
        if audits {
            self.audit(flow, &mut destination);
        }
        destination
    }

    /// Decides where only Audit policies select the pod: flows that they would deny go through (design section 5.5).
    fn audited_alone(&self, flow: &Flow<'_>) -> FlowDecision {
        let met = self.meet(flow, PolicyScope::All);
        let granted = self.grant(&met, flow, PolicyScope::All);
        let denial = match (met.deny, &granted) {
            (Some((rule, _)), _) => Some(rule.ruling()),
            (None, None) => Some(self.refusal(flow)),
            (None, Some(_)) => None,
        };
        let tunnelled = || FlowDecision {
            action: Action::Tunnel { allow_ech: true },
            decision: self.refusal(flow),
            audited: Vec::new(),
        };
        let mut destination = granted.unwrap_or_else(tunnelled);
        if let Some(denial) = denial {
            destination.decision = denial.into_would_deny();
        }
        destination
    }

    /// Records the decision that the Audit policies would make, were they enforced too.
    fn audit(&self, flow: &Flow<'_>, destination: &mut FlowDecision) {
        let met = self.meet(flow, PolicyScope::All);
        let denied = matches!(destination.action, Action::Deny { .. });
        if let Some((rule, _)) = met.deny {
            if !denied {
                destination.audited.push(rule.ruling().into_would_deny());
            }
            return;
        }
        if let Some(withheld) = met.withheld.filter(|_| !denied) {
            destination.audited.push(withheld.ruling().into_would_deny());
        }
        let Some(other) = self.grant(&met, flow, PolicyScope::All) else { return };
        let differs = match (&mut destination.action, &other.action) {
            (Action::Inspect(own), Action::Inspect(_)) => {
                let tiers = self.grants(&met, flow, PolicyScope::All);
                if tiers != self.grants(&self.meet(flow, PolicyScope::Enforced), flow, PolicyScope::Enforced)
                {
                    *own = Arc::new(EndpointRules::clone(own).with_audited(tiers));
                }
                false
            }
            (Action::Tunnel { .. }, Action::Tunnel { .. }) => false,
            (Action::Deny { .. } | Action::Tunnel { .. } | Action::Inspect(_), _) => true,
        };
        if differs {
            let word = other.action.as_str();
            let reason = format!("With the Audit policies enforced, this rule would say {word}");
            destination.audited.push(Decision {
                verdict: Verdict::Audit,
                reason: Some(reason.into()),
                enforcement: Some(Enforcement::Audit),
                ..other.decision
            });
        }
    }

    /// Finds the rules that take part.
    pub(super) fn meet(&self, flow: &Flow<'_>, scope: PolicyScope) -> MatchedRules<'_> {
        let mut met = MatchedRules { deny: None, tiers: [Tiered::default(); TIERS], withheld: None };
        self.sections.destinations.index.walk(flow.name, flow.address, |cover, group| {
            for rule in self.visible(group, scope) {
                if !rule.takes(flow.port, flow.protocol) {
                    continue;
                }
                if rule.action == written::Action::Deny {
                    met.deny.get_or_insert((rule, cover == Cover::Exact));
                } else if let Some(tier) = met.tiers.get_mut(rule.tier.index())
                    && tier.0.is_empty()
                {
                    *tier = Tiered(group);
                }
            }
        });
        met.withheld = self.withheld(&met, flow, scope);
        met
    }

    /// Why a flow without a name, or with unread bytes, is not served by the rules that it met.
    fn withheld(&self, met: &MatchedRules<'_>, flow: &Flow<'_>, scope: PolicyScope) -> Option<Withheld> {
        if (flow.name.is_some() && !flow.protocol.is_bytes())
            || met.tiers.iter().all(|tier| tier.0.is_empty())
        {
            return None;
        }
        let ports = self.sections.destinations.ports.get(scope);
        if flow.protocol == Protocol::Unclear && ports.named.contains(&flow.port) && self.is_read(flow, scope)
        {
            return Some(Withheld::Unclear);
        }
        let has_floor = ports.floor.contains(&flow.port) && met.tiers[Tier::Cluster.index()].0.is_empty();
        has_floor.then_some(Withheld::Floor)
    }

    /// Whether the first bytes are looked at: they may bring a name, or some rule about the name reads them.
    fn is_read(&self, flow: &Flow<'_>, scope: PolicyScope) -> bool {
        let reads = |protocol| {
            let flow = Flow { protocol, ..*flow };
            let met = self.meet(&flow, scope);
            self.allowing(&met, &flow, scope).any(|rule| !rule.opaque)
        };
        flow.name.is_none() || reads(Protocol::Tls) || reads(Protocol::Http)
    }

    pub(super) fn visible<'a>(
        &'a self,
        group: &'a [usize],
        scope: PolicyScope,
    ) -> impl Iterator<Item = &'a DestinationRule> {
        let rules = group.iter().filter_map(|number| self.sections.destinations.rules.get(*number));
        rules.filter(move |rule| scope.shows(rule.audit))
    }

    /// The rules that allow the flow, tier by tier; none where they are withheld.
    pub(super) fn allowing<'a>(
        &'a self,
        met: &'a MatchedRules<'a>,
        flow: &'a Flow<'_>,
        scope: PolicyScope,
    ) -> impl Iterator<Item = &'a DestinationRule> + 'a {
        let tiers: &[Tiered<'_>] = if met.withheld.is_some() { &[] } else { &met.tiers };
        tiers.iter().enumerate().flat_map(move |(tier, Tiered(group))| {
            self.visible(group, scope).filter(move |rule| {
                rule.tier.index() == tier
                    && rule.action != written::Action::Deny
                    && rule.takes(flow.port, flow.protocol)
            })
        })
    }

    /// Unites the matched rules that allow: the stricter action, `allowEch` only if all say so.
    fn grant(&self, met: &MatchedRules<'_>, flow: &Flow<'_>, scope: PolicyScope) -> Option<FlowDecision> {
        let mut inspecting = self.allowing(met, flow, scope).filter(|rule| rule.grant.is_some());
        let (rule, action) = match (inspecting.next(), inspecting.next()) {
            (Some(rule), None) => (rule, Action::Inspect(rule.alone.clone()?)),
            (Some(rule), Some(_)) => {
                let united = EndpointRules::new(self.grants(met, flow, scope), self.audit_only());
                (rule, Action::Inspect(Arc::new(united)))
            }
            (None, _) => {
                let rule = self.allowing(met, flow, scope).next()?;
                let allow_ech = self.allowing(met, flow, scope).all(|rule| rule.allow_ech);
                (rule, Action::Tunnel { allow_ech })
            }
        };
        Some(FlowDecision { action, decision: rule.ruling(), audited: Vec::new() })
    }

    /// The endpoints of the Inspect rules, by tier.
    fn grants(
        &self,
        met: &MatchedRules<'_>,
        flow: &Flow<'_>,
        scope: PolicyScope,
    ) -> Vec<Vec<Arc<EndpointGrant>>> {
        let mut tiers = vec![Vec::new(); TIERS];
        for rule in self.allowing(met, flow, scope) {
            if let (Some(tier), Some(grant)) = (tiers.get_mut(rule.tier.index()), &rule.grant) {
                tier.push(Arc::clone(grant));
            }
        }
        tiers.retain(|tier| !tier.is_empty());
        tiers
    }

    /// The denial of a flow that no rule allows, with a hint.
    pub(super) fn refusal(&self, flow: &Flow<'_>) -> Decision {
        if matches!(self.mode, Mode::Missing | Mode::Unselected) {
            return self.unselected();
        }
        if let Some(withheld) = self.meet(flow, self.scope()).withheld {
            return withheld.ruling();
        }
        let mut near = false;
        self.sections.destinations.index.walk(flow.name, flow.address, |_, group| {
            near |= self.visible(group, self.scope()).any(|rule| rule.action != written::Action::Deny);
        });
        let reason = match (near, flow.name, flow.address) {
            (false, Some(name), _) if self.accompanies(name) => COMPANION,
            (true, ..) => "A rule names this destination, but not on this port with this protocol",
            (false, Some(_), _) => "No rule names this host",
            (false, None, Some(_)) => "The connection names no host, and no rule names this address",
            (false, None, None) => "The connection names no host",
        };
        Decision::builtin("default-deny", reason)
    }

    /// A CIDR (or IP literal) Deny rule about an address that was resolved or dialled.
    pub fn denies_address(&self, ip: IpAddr, port: u16) -> Option<Decision> {
        if self.mode == Mode::AuditOnly { None } else { self.address_denial(ip, port, PolicyScope::Enforced) }
    }

    /// The denial by an Audit policy of an address that no Enforce policy denies: it is recorded, never enforced.
    pub fn audits_address(&self, ip: IpAddr, port: u16) -> Option<Decision> {
        if self.denies_address(ip, port).is_some() {
            return None;
        }
        self.address_denial(ip, port, PolicyScope::All).map(Decision::into_would_deny)
    }

    fn address_denial(&self, ip: IpAddr, port: u16, scope: PolicyScope) -> Option<Decision> {
        let flow = Flow { name: None, address: Some(ip.to_canonical()), port, protocol: Protocol::Opaque };
        self.meet(&flow, scope).deny.map(|(rule, _)| rule.ruling())
    }

    /// Whether a CIDR Tunnel rule opens this address of a range that is denied by default: its net equals the
    /// range or is narrower, and it has that port.
    pub fn lifts(&self, range: &IpNet, ip: IpAddr, port: u16) -> bool {
        let mut lifted = false;
        self.sections.destinations.index.walk_nets(ip, &mut |cover, group| {
            let narrow = matches!(cover, Cover::Net(net) if range.contains(&net));
            lifted |= narrow
                && self
                    .visible(group, self.scope())
                    .any(|rule| rule.action == written::Action::Tunnel && rule.takes(port, Protocol::Opaque));
        });
        lifted
    }
}

impl Action {
    /// `Inspect`, `Tunnel` or `Deny`.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Deny { .. } => "Deny",
            Self::Tunnel { .. } => "Tunnel",
            Self::Inspect(_) => "Inspect",
        }
    }
}
