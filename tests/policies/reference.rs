//! The indexed decision against a slow one that reads like the design: every rule is looked at, one by one.

use postern::name::host::Host;
use postern::policy::Policy;
use postern::policy::destination::{Destination, Flow, Protocol};
use postern::policy::explain::Applies;
use postern::policy::pattern::Pattern;
use proptest::prelude::*;

use super::{cluster, decide, namespaced, policy};

#[derive(Debug, Clone)]
struct Rule {
    cluster: bool,
    host: String,
    action: &'static str,
    port: Option<u16>,
}

fn rule() -> impl Strategy<Value = Rule> {
    let prefix = prop::sample::select(vec!["", "*.", "**."]);
    let suffix = prop::sample::select(vec!["a", "b.a", "c.b.a", "d.c.b.a", "x"]);
    let named = (prefix, suffix).prop_map(|(prefix, suffix)| format!("{prefix}{suffix}"));
    let host = prop_oneof![8 => named, 1 => Just("**".to_owned())];
    let action = prop::sample::select(vec!["Inspect", "Inspect", "Tunnel", "Tunnel", "Tunnel", "Deny"]);
    let port = prop::sample::select(vec![None, None, Some(443), Some(8443)]);
    (any::<bool>(), host, action, port).prop_map(|(cluster, host, action, port)| Rule {
        cluster,
        host,
        action,
        port,
    })
}

impl Rule {
    fn covers(&self, host: &Host, port: u16) -> bool {
        let ports = match (self.action, self.port) {
            (_, Some(own)) => own == port,
            ("Deny", None) => true,
            (_, None) => port == 443,
        };
        ports && Pattern::parse(&self.host).unwrap().matches(host)
    }

    /// Exact over `*.` over `**.` over `**`, then longer over shorter.
    fn specificity(&self) -> (u8, usize) {
        let class = match self.host.as_str() {
            "**" => 0,
            host if host.starts_with("**.") => 1,
            host if host.starts_with("*.") => 2,
            _ => 3,
        };
        (class, self.host.len())
    }
}

/// Section 5.2 and 5.3, word for word, for a TLS flow.
fn slow(rules: &[Rule], host: &str, port: u16) -> String {
    let host = Host::parse(host).unwrap();
    let covering: Vec<&Rule> = rules.iter().filter(|rule| rule.covers(&host, port)).collect();
    let denying: Vec<&&Rule> = covering.iter().filter(|rule| rule.action == "Deny").collect();
    if !denying.is_empty() {
        let exact = denying.iter().any(|rule| !rule.host.contains('*'));
        return if exact { "DenyNamed" } else { "Deny" }.to_owned();
    }
    let mut actions = Vec::new();
    for cluster in [true, false] {
        let tier: Vec<&&Rule> = covering.iter().filter(|rule| rule.cluster == cluster).collect();
        let most = tier.iter().map(|rule| rule.specificity()).max();
        actions.extend(tier.iter().filter(|rule| Some(rule.specificity()) == most).map(|rule| rule.action));
    }
    let strictest = ["Inspect", "Tunnel"].into_iter().find(|action| actions.contains(action));
    strictest.unwrap_or("Deny").to_owned()
}

/// What is explained of a flow agrees with what is decided about it.
fn explained(
    policy: &Policy,
    host: &Host,
    port: u16,
    destination: &Destination,
) -> Result<(), TestCaseError> {
    let flow = Flow { name: host.name(), address: host.ip(), port, protocol: Protocol::Tls };
    let explanation = policy.explain_destination(&flow, None);
    prop_assert_eq!(explanation.decision.verdict, destination.decision.verdict.as_str());
    let decides = explanation.rules.iter().filter(|rule| rule.why.iter().any(|why| why == "it decides"));
    let decides: Vec<&str> = decides.map(|rule| rule.rule.as_str()).collect();
    let rule = destination.decision.rule_id();
    prop_assert_eq!(
        decides,
        Some(rule).filter(|rule| !rule.starts_with("postern/")).into_iter().collect::<Vec<_>>()
    );
    for rule in explanation.rules.iter().filter(|rule| rule.applies == Applies::Yes) {
        prop_assert!(rule.action != "Deny" || explanation.decision.verdict == "Deny");
    }
    Ok(())
}

proptest! {
    #[test]
    fn the_index_decides_as_a_look_at_every_rule_does(
        rules in prop::collection::vec(rule(), 1..8),
        host in prop::sample::select(vec!["a", "b.a", "c.b.a", "d.c.b.a", "e.d.c.b.a", "z.a", "x", "y.x", "q"]),
        port in prop::sample::select(vec![443_u16, 8443, 80]),
    ) {
        let write = |of_cluster: bool| {
            let own = rules.iter().enumerate().filter(|(_, rule)| rule.cluster == of_cluster);
            own.map(|(number, rule)| {
                let ports = rule.port.map(|port| format!("ports: [{port}], ")).unwrap_or_default();
                format!("- {{name: r{number}, hosts: ['{}'], {ports}action: {}}}\n", rule.host, rule.action)
            })
            .collect::<String>()
        };
        let mut documents = Vec::new();
        for (of_cluster, document) in [(true, cluster as fn(&str, &str) -> String), (false, namespaced)] {
            let rules = write(of_cluster);
            documents.extend((!rules.is_empty()).then(|| document("p", &rules)));
        }
        let policy = policy(&documents);
        let destination = decide(&policy, &format!("tls {host}:{port}"));
        explained(&policy, &Host::parse(host).unwrap(), port, &destination)?;
        let said = super::said(&destination);
        prop_assert_eq!(said.split(' ').next().unwrap(), slow(&rules, host, port));
    }
}
