//! Why destination rules do or do not apply to a flow, and to a request inside.

use std::ptr;

use crate::call::Dialect;
use crate::decision::Decision;
use crate::name::host::Host;
use crate::policy::compile::{Mode, Policy};
use crate::policy::destination::{Action, Flow, Met, Protocol, Sight};
use crate::policy::document;
use crate::policy::inspection::Asked;
use crate::policy::rule::{Rule, Subject};

use super::{Applies, Explanation, RuleSaid, Said};

/// One flow, with the request that is asked inside where one is.
struct Question<'a> {
    flow: &'a Flow<'a>,
    asked: Option<&'a Asked<'a>>,
    /// Of the policies that decide, and of all.
    met: [Met<'a>; 2],
    decision: Decision,
}

impl Policy {
    /// Says of every destination rule why it does or does not apply to a flow and to a request inside, which
    /// counts where the flow is inspected.
    pub fn explain_destination(&self, flow: &Flow<'_>, asked: Option<&Asked<'_>>) -> Explanation {
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
        let met = [self.meet(flow, self.sight()), self.meet(flow, Sight::All)];
        let question = Question { flow, asked, met, decision };
        Explanation {
            about,
            decision: Said::from(&question.decision),
            recorded: recorded.iter().map(Said::from).collect(),
            rules: self.rules.iter().map(|rule| self.rule_said(rule, &question)).collect(),
            inside: Vec::new(),
        }
    }

    /// What a rule that decides about a flow says is spoken there.
    pub fn provider_at(&self, flow: &Flow<'_>) -> Option<Dialect> {
        match self.destination(flow).action {
            Action::Inspect(inspection) => inspection.provider(),
            Action::Tunnel { .. } | Action::Deny { .. } => None,
        }
    }

    fn rule_said(&self, rule: &Rule, question: &Question<'_>) -> RuleSaid {
        let mut why = Vec::new();
        let applies = self.takes_part(rule, question, &mut why);
        RuleSaid {
            rule: rule.id.to_string(),
            action: action(rule.action),
            enforcement: rule.enforcement().as_str(),
            applies: if applies { Applies::Yes } else { Applies::No },
            why,
            tests: Vec::new(),
        }
    }

    /// Whether a rule takes part in the decision, and says why.
    fn takes_part(&self, rule: &Rule, question: &Question<'_>, why: &mut Vec<String>) -> bool {
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
        let (sight, met) = match &question.met {
            [_, all] if recorded => (Sight::All, all),
            [deciding, _] => (self.sight(), deciding),
        };
        if rule.action != document::Action::Deny {
            if let Some(withheld) = met.withheld {
                why.push(format!("but it does not serve this connection: {}", withheld.ruling().why()));
                return false;
            }
            let specific: Vec<&Rule> = self.allowing(met, flow, sight).collect();
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
        let allows = rule.action != document::Action::Deny;
        why.push(self.part(rule.id.as_str(), rule.audit, allows, &question.decision));
        true
    }
}

/// The entry of a rule that covers the flow's host or address, as it is written.
fn covering(rule: &Rule, flow: &Flow<'_>) -> Option<String> {
    let host = match (flow.name, flow.address) {
        (Some(name), _) => Host::Name(name.clone()),
        (None, Some(address)) => Host::Ip(address),
        (None, None) => return None,
    };
    match &rule.subject {
        Subject::Hosts(patterns) => {
            patterns.iter().find(|pattern| pattern.matches(&host)).map(ToString::to_string)
        }
        Subject::Nets(nets) => {
            let address = host.ip()?;
            nets.iter().find(|net| net.contains(&address)).map(ToString::to_string)
        }
    }
}

fn not_covering(rule: &Rule, flow: &Flow<'_>) -> String {
    match (&rule.subject, flow.name) {
        (Subject::Hosts(_), Some(_)) => "it names other hosts".to_owned(),
        (Subject::Hosts(_), None) => "it names hosts, and the connection names none".to_owned(),
        (Subject::Nets(_), Some(_)) => "it names address ranges, and the connection names a host".to_owned(),
        (Subject::Nets(_), None) => "it names other address ranges".to_owned(),
    }
}

fn not_taking(rule: &Rule, flow: &Flow<'_>) -> String {
    let protocol = match flow.protocol {
        Protocol::Tls => "TLS",
        Protocol::Http => "plain HTTP",
        Protocol::Opaque => "other bytes",
        Protocol::Unclear => "unclear bytes",
    };
    let ports =
        rule.ports.as_deref().map(|ports| ports.iter().map(u16::to_string).collect::<Vec<_>>().join(", "));
    let takes = match (rule.action, ports) {
        (document::Action::Inspect, None) => "TLS on 443 and plain HTTP on 80".to_owned(),
        (document::Action::Inspect, Some(ports)) => format!("TLS and plain HTTP on {ports}"),
        (document::Action::Tunnel, None) => "TLS on 443".to_owned(),
        (document::Action::Tunnel, Some(ports)) if rule.opaque => format!("any bytes on {ports}"),
        (document::Action::Tunnel, Some(ports)) => format!("TLS on {ports}"),
        (document::Action::Deny, ports) => format!("any bytes on {}", ports.unwrap_or_default()),
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

fn action(action: document::Action) -> &'static str {
    match action {
        document::Action::Inspect => "Inspect",
        document::Action::Tunnel => "Tunnel",
        document::Action::Deny => "Deny",
    }
}
