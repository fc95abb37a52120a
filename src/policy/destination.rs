//! Which rules a flow meets, and what becomes of it (design section 5.2 and 5.3).

use std::net::IpAddr;
use std::sync::Arc;

use ipnet::IpNet;

use crate::decision::{Enforcement, Verdict};

use super::compile::{Mode, Policy};

use super::document;
use super::index::Cover;
use super::inspection::Grant;
use super::rule::{Rule, TIERS, Tier};
use crate::name::host::DnsName;

pub use super::inspection::Inspection;
pub use super::outlook::Outlook;
pub use crate::decision::Decision;

/// What the first bytes of a flow are.
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

/// What a flow has shown. `name` wins: with a name, no address rule takes part. IPs in CONNECT or Host, and
/// dialled ones, are `address`.
#[derive(Debug, Clone, Copy)]
pub struct Flow<'a> {
    pub name: Option<&'a DnsName>,
    pub address: Option<IpAddr>,
    pub port: u16,
    pub protocol: Protocol,
}

/// What becomes of a flow, and why.
#[derive(Debug, Clone)]
pub struct Destination {
    pub action: Action,
    pub decision: Decision,
    /// What Audit policies beside enforced ones would have done, only where it differs.
    pub audited: Vec<Decision>,
}

/// What is done with a flow.
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
    Inspect(Arc<Inspection>),
}

/// The rules that a flow meets.
pub(super) struct Met<'a> {
    /// The most specific Deny rule, and whether it names the host exactly.
    pub(super) deny: Option<(&'a Rule, bool)>,
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

/// Whose rules are looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sight {
    /// Those of Enforce policies.
    Enforced,
    /// Those of all policies that select the pod.
    All,
}

/// Why a companion is denied, for people who wonder who dials it.
const COMPANION: &str =
    "No rule names this host, which agents dial beside their provider: name it in a rule to decide about it";

impl Policy {
    /// Decides about a flow. The common allowed flow costs a few look-ups and no allocation.
    pub fn destination(&self, flow: &Flow<'_>) -> Destination {
        match self.mode {
            Mode::Missing | Mode::Unselected => Destination {
                action: Action::Deny { named: false },
                decision: self.refusal(flow),
                audited: Vec::new(),
            },
            Mode::AuditOnly => self.audited_alone(flow),
            Mode::Enforced { audits } => self.enforced(flow, audits),
        }
    }

    /// The rules that decide for the pod: those of Audit policies where only such select it.
    pub(super) fn sight(&self) -> Sight {
        if self.mode == Mode::AuditOnly { Sight::All } else { Sight::Enforced }
    }

    fn enforced(&self, flow: &Flow<'_>, audits: bool) -> Destination {
        let met = self.meet(flow, Sight::Enforced);
        let mut destination = match met.deny {
            Some((rule, named)) => {
                Destination { action: Action::Deny { named }, decision: rule.ruling(), audited: Vec::new() }
            }
            None => self.grant(&met, flow, Sight::Enforced).unwrap_or_else(|| Destination {
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

    /// Only Audit policies select the pod: what they would deny goes through (design section 5.5).
    fn audited_alone(&self, flow: &Flow<'_>) -> Destination {
        let met = self.meet(flow, Sight::All);
        let granted = self.grant(&met, flow, Sight::All);
        let denial = match (met.deny, &granted) {
            (Some((rule, _)), _) => Some(rule.ruling()),
            (None, None) => Some(self.refusal(flow)),
            (None, Some(_)) => None,
        };
        let tunnelled = || Destination {
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

    /// Records what would become of the flow if the Audit policies were enforced too.
    fn audit(&self, flow: &Flow<'_>, destination: &mut Destination) {
        let met = self.meet(flow, Sight::All);
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
        let Some(other) = self.grant(&met, flow, Sight::All) else { return };
        let differs = match (&mut destination.action, &other.action) {
            (Action::Inspect(own), Action::Inspect(_)) => {
                let tiers = self.grants(&met, flow, Sight::All);
                if tiers != self.grants(&self.meet(flow, Sight::Enforced), flow, Sight::Enforced) {
                    *own = Arc::new(Inspection::clone(own).with_audited(tiers));
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
    pub(super) fn meet(&self, flow: &Flow<'_>, sight: Sight) -> Met<'_> {
        let mut met = Met { deny: None, tiers: [Tiered::default(); TIERS], withheld: None };
        self.index.walk(flow.name, flow.address, |cover, group| {
            for rule in self.visible(group, sight) {
                if !rule.takes(flow.port, flow.protocol) {
                    continue;
                }
                if rule.action == document::Action::Deny {
                    met.deny.get_or_insert((rule, cover == Cover::Exact));
                } else if let Some(tier) = met.tiers.get_mut(rule.tier.index())
                    && tier.0.is_empty()
                {
                    *tier = Tiered(group);
                }
            }
        });
        met.withheld = self.withheld(&met, flow, sight);
        met
    }

    /// What keeps a flow without a name, or bytes in which none was looked for, from the rules that it met.
    fn withheld(&self, met: &Met<'_>, flow: &Flow<'_>, sight: Sight) -> Option<Withheld> {
        if (flow.name.is_some() && !flow.protocol.is_bytes())
            || met.tiers.iter().all(|tier| tier.0.is_empty())
        {
            return None;
        }
        let ports = self.ports.get(sight);
        if flow.protocol == Protocol::Unclear && ports.named.contains(&flow.port) && self.is_read(flow, sight)
        {
            return Some(Withheld::Unclear);
        }
        let has_floor = ports.floor.contains(&flow.port) && met.tiers[Tier::Cluster.index()].0.is_empty();
        has_floor.then_some(Withheld::Floor)
    }

    /// Whether the first bytes are looked at: they may bring a name, or some rule about the name reads them.
    fn is_read(&self, flow: &Flow<'_>, sight: Sight) -> bool {
        let reads = |protocol| {
            let flow = Flow { protocol, ..*flow };
            let met = self.meet(&flow, sight);
            self.allowing(&met, &flow, sight).any(|rule| !rule.opaque)
        };
        flow.name.is_none() || reads(Protocol::Tls) || reads(Protocol::Http)
    }

    pub(super) fn visible<'a>(&'a self, group: &'a [usize], sight: Sight) -> impl Iterator<Item = &'a Rule> {
        let rules = group.iter().filter_map(|number| self.rules.get(*number));
        rules.filter(move |rule| sight == Sight::All || !rule.audit)
    }

    /// The rules that allow the flow, tier by tier; none where they are withheld from it.
    pub(super) fn allowing<'a>(
        &'a self,
        met: &'a Met<'a>,
        flow: &'a Flow<'_>,
        sight: Sight,
    ) -> impl Iterator<Item = &'a Rule> + 'a {
        let tiers: &[Tiered<'_>] = if met.withheld.is_some() { &[] } else { &met.tiers };
        tiers.iter().enumerate().flat_map(move |(tier, Tiered(group))| {
            self.visible(group, sight).filter(move |rule| {
                rule.tier.index() == tier
                    && rule.action != document::Action::Deny
                    && rule.takes(flow.port, flow.protocol)
            })
        })
    }

    /// What the rules that were met allow together: the stricter action, `allowEch` only if all say so.
    fn grant(&self, met: &Met<'_>, flow: &Flow<'_>, sight: Sight) -> Option<Destination> {
        let mut inspecting = self.allowing(met, flow, sight).filter(|rule| rule.grant.is_some());
        let (rule, action) = match (inspecting.next(), inspecting.next()) {
            (Some(rule), None) => (rule, Action::Inspect(rule.alone.clone()?)),
            (Some(rule), Some(_)) => {
                let united = Inspection::new(self.grants(met, flow, sight), self.audit_only());
                (rule, Action::Inspect(Arc::new(united)))
            }
            (None, _) => {
                let rule = self.allowing(met, flow, sight).next()?;
                let allow_ech = self.allowing(met, flow, sight).all(|rule| rule.allow_ech);
                (rule, Action::Tunnel { allow_ech })
            }
        };
        Some(Destination { action, decision: rule.ruling(), audited: Vec::new() })
    }

    /// The endpoints of the Inspect rules, by tier.
    fn grants(&self, met: &Met<'_>, flow: &Flow<'_>, sight: Sight) -> Vec<Vec<Arc<Grant>>> {
        let mut tiers = vec![Vec::new(); TIERS];
        for rule in self.allowing(met, flow, sight) {
            if let (Some(tier), Some(grant)) = (tiers.get_mut(rule.tier.index()), &rule.grant) {
                tier.push(Arc::clone(grant));
            }
        }
        tiers.retain(|tier| !tier.is_empty());
        tiers
    }

    /// The denial of what no rule allows, with what would help.
    pub(super) fn refusal(&self, flow: &Flow<'_>) -> Decision {
        if matches!(self.mode, Mode::Missing | Mode::Unselected) {
            return self.unselected();
        }
        if let Some(withheld) = self.meet(flow, self.sight()).withheld {
            return withheld.ruling();
        }
        let mut near = false;
        self.index.walk(flow.name, flow.address, |_, group| {
            near |= self.visible(group, self.sight()).any(|rule| rule.action != document::Action::Deny);
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
        if self.mode == Mode::AuditOnly { None } else { self.address_denial(ip, port, Sight::Enforced) }
    }

    /// What Audit policies say of an address that nothing enforced denies: recorded, never in the way.
    pub fn audits_address(&self, ip: IpAddr, port: u16) -> Option<Decision> {
        if self.denies_address(ip, port).is_some() {
            return None;
        }
        self.address_denial(ip, port, Sight::All).map(Decision::into_would_deny)
    }

    fn address_denial(&self, ip: IpAddr, port: u16, sight: Sight) -> Option<Decision> {
        let flow = Flow { name: None, address: Some(ip.to_canonical()), port, protocol: Protocol::Opaque };
        self.meet(&flow, sight).deny.map(|(rule, _)| rule.ruling())
    }

    /// Whether a CIDR Tunnel rule opens this address of a range that is denied by default: its net equals the
    /// range or is narrower, and it has that port.
    pub fn lifts(&self, range: &IpNet, ip: IpAddr, port: u16) -> bool {
        let mut lifted = false;
        self.index.walk_nets(ip, &mut |cover, group| {
            let narrow = matches!(cover, Cover::Net(net) if range.contains(&net));
            lifted |= narrow
                && self.visible(group, self.sight()).any(|rule| {
                    rule.action == document::Action::Tunnel && rule.takes(port, Protocol::Opaque)
                });
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
