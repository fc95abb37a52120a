//! Explains why destination rules do or do not apply to a flow, and to a request inside.

use std::ptr;

use crate::call::Dialect;
use crate::decision::Decision;
use crate::name::host::Host;
use crate::policy::Policy;
use crate::policy::explain::{Applies, Explanation, RuleExplanation, ShownDecision};
use crate::policy::scope::{Mode, PolicyScope};

use super::decide::{Action, Flow, MatchedRules, Protocol};
use super::endpoints::EndpointQuery;
use super::rule::{DestinationRule, RuleTarget};
use super::written;

/// One flow, with the request that is asked inside where one is.
struct FlowQuestion<'a> {
    flow: &'a Flow<'a>,
    asked: Option<&'a EndpointQuery<'a>>,
    /// Of the policies that decide, and of all.
    met: [MatchedRules<'a>; 2],
    decision: Decision,
}

impl Policy {
    /// Says of every destination rule why it does or does not apply to a flow and to a request inside, which
    /// counts where the flow is inspected.
    pub fn explain_destination(&self, flow: &Flow<'_>, asked: Option<&EndpointQuery<'_>>) -> Explanation {
        let destination = self.destination(flow);
        let mut recorded: Vec<Decision> = destination.audited;
        let (mut decision, mut about) = (destination.decision, name(flow));
        match (&destination.action, asked) {
            (Action::Inspect(inspection), Some(asked)) => {
                decision = inspection.request(asked);
                recorded.extend(inspection.audited(asked));
                about = format!("{} {} at {about}, inspected", asked.method, asked.path);
            }
            (Action::Tunnel { .. }, Some(_)) => {
                about = format!("{about}, tunnelled: no request inside is seen");
            }
            (Action::Deny { .. }, Some(_)) => {}
            (Action::Inspect(_) | Action::Tunnel { .. } | Action::Deny { .. }, None) => {
                about = format!("{about}, {}", word(&destination.action));
            }
        }
        let met = [self.meet(flow, self.scope()), self.meet(flow, PolicyScope::All)];
        let question = FlowQuestion { flow, asked, met, decision };
        Explanation {
            about,
            decision: ShownDecision::from(&question.decision),
            recorded: recorded.iter().map(ShownDecision::from).collect(),
            rules: self
                .sections
                .destinations
                .rules
                .iter()
                .map(|rule| self.rule_said(rule, &question))
                .collect(),
            commands: Vec::new(),
            opaque: false,
            inside: Vec::new(),
        }
    }

    /// The dialect that a deciding rule names for a flow.
    pub fn provider_at(&self, flow: &Flow<'_>) -> Option<Dialect> {
        match self.destination(flow).action {
            Action::Inspect(inspection) => inspection.provider(),
            Action::Tunnel { .. } | Action::Deny { .. } => None,
        }
    }

    fn rule_said(&self, rule: &DestinationRule, question: &FlowQuestion<'_>) -> RuleExplanation {
        let mut why = Vec::new();
        let applies = self.takes_part(rule, question, &mut why);
        RuleExplanation {
            rule: rule.id.to_string(),
            action: rule.action.as_str(),
            enforcement: rule.enforcement().as_str(),
            applies: if applies { Applies::Yes } else { Applies::No },
            why,
            tests: Vec::new(),
        }
    }

    /// Whether a rule takes part in the decision, and says why.
    fn takes_part(&self, rule: &DestinationRule, question: &FlowQuestion<'_>, why: &mut Vec<String>) -> bool {
        let flow = question.flow;
        let Some(by) = covering(rule, flow) else {
            why.push(not_covering(rule, flow));
            return false;
        };
        if !rule.takes(flow.port, flow.protocol) {
            why.push(format!("{by} covers it, but {}", not_taking(rule, flow)));
            return false;
        }
        why.push(format!("{by} covers it"));
        let recorded = rule.audit && self.mode != Mode::AuditOnly;
        let (scope, met) = match &question.met {
            [_, all] if recorded => (PolicyScope::All, all),
            [deciding, _] => (self.scope(), deciding),
        };
        if rule.action != written::Action::Deny {
            if let Some(withheld) = met.withheld {
                why.push(format!("but it does not serve this connection: {}", withheld.ruling().why()));
                return false;
            }
            let specific: Vec<&DestinationRule> = self.allowing(met, flow, scope).collect();
            if !specific.iter().any(|other| ptr::eq(*other, rule)) {
                let others = specific.iter().filter(|other| other.tier == rule.tier);
                let others: Vec<&str> = others.map(|other| other.id.as_str()).collect();
                why.push(format!("{} is more specific in its tier", others.join(", ")));
                return false;
            }
            if let (Some(grant), Some(asked)) = (&rule.grant, question.asked)
                && !grant.allows(asked)
            {
                why.push(match &grant.endpoints {
                    Some(_) => "none of its endpoints covers the request".to_owned(),
                    None => {
                        "without `endpoints` it opens the provider's inference endpoints alone".to_owned()
                    }
                });
                return false;
            }
        }
        let allows = rule.action != written::Action::Deny;
        why.push(self.part(rule.id.as_str(), rule.audit, allows, &question.decision));
        true
    }
}

/// The entry of a rule that covers the flow's host or address, as it is written.
fn covering(rule: &DestinationRule, flow: &Flow<'_>) -> Option<String> {
    let host = match (flow.name, flow.address) {
        (Some(name), _) => Host::Name(name.clone()),
        (None, Some(address)) => Host::Ip(address),
        (None, None) => return None,
    };
    match &rule.subject {
        RuleTarget::Hosts(patterns) => {
            patterns.iter().find(|pattern| pattern.matches(&host)).map(ToString::to_string)
        }
        RuleTarget::Nets(nets) => {
            let address = host.ip()?;
            nets.iter().find(|net| net.contains(&address)).map(ToString::to_string)
        }
    }
}

fn not_covering(rule: &DestinationRule, flow: &Flow<'_>) -> String {
    match (&rule.subject, flow.name) {
        (RuleTarget::Hosts(_), Some(_)) => "it names other hosts".to_owned(),
        (RuleTarget::Hosts(_), None) => "it names hosts, and the connection names none".to_owned(),
        (RuleTarget::Nets(_), Some(_)) => {
            "it names address ranges, and the connection names a host".to_owned()
        }
        (RuleTarget::Nets(_), None) => "it names other address ranges".to_owned(),
    }
}

fn not_taking(rule: &DestinationRule, flow: &Flow<'_>) -> String {
    let protocol = match flow.protocol {
        Protocol::Tls => "TLS",
        Protocol::Http => "plain HTTP",
        Protocol::Opaque => "other bytes",
        Protocol::Unclear => "unclear bytes",
    };
    let ports =
        rule.ports.as_deref().map(|ports| ports.iter().map(u16::to_string).collect::<Vec<_>>().join(", "));
    let takes = match (rule.action, ports) {
        (written::Action::Inspect, None) => "TLS on 443 and plain HTTP on 80".to_owned(),
        (written::Action::Inspect, Some(ports)) => format!("TLS and plain HTTP on {ports}"),
        (written::Action::Tunnel, None) => "TLS on 443".to_owned(),
        (written::Action::Tunnel, Some(ports)) if rule.opaque => format!("any bytes on {ports}"),
        (written::Action::Tunnel, Some(ports)) => format!("TLS on {ports}"),
        (written::Action::Deny, ports) => format!("any bytes on {}", ports.unwrap_or_default()),
    };
    format!("it is about {takes}, not {protocol} on {}", flow.port)
}

fn name(flow: &Flow<'_>) -> String {
    let host = match (flow.name, flow.address) {
        (Some(name), _) => name.to_string(),
        (None, Some(address)) => address.to_string(),
        (None, None) => "no host".to_owned(),
    };
    format!("{host}, port {}", flow.port)
}

fn word(action: &Action) -> &'static str {
    match action {
        Action::Inspect(_) => "inspected",
        Action::Tunnel { .. } => "tunnelled",
        Action::Deny { .. } => "refused",
    }
}
