//! Which hosts gateways show a certificate of their own for: what policies inspect, or deny by exact name.

use super::document::{Action, Destination, Document};
use super::pattern::Pattern;
use crate::decision::Enforcement;

/// The patterns of all hosts that a gateway under some of these policies may end TLS for, whatever pods they select, in
/// the order of the documents. A flow that a wildcard denies is reset without a certificate, and what is denied in an
/// Audit policy is only recorded. Patterns that are none are passed over: such a policy is not accepted.
pub fn vouched(documents: &[Document]) -> Vec<Pattern> {
    documents.iter().flat_map(of_document).collect()
}

fn of_document(document: &Document) -> impl Iterator<Item = Pattern> {
    let enforced = document.spec.enforcement != Some(Enforcement::Audit);
    document.spec.destinations.iter().flat_map(move |destination| of_destination(destination, enforced))
}

fn of_destination(destination: &Destination, enforced: bool) -> impl Iterator<Item = Pattern> {
    let action = destination.action;
    let hosts = destination.hosts.iter().flatten();
    hosts.filter_map(|text| Pattern::parse(text).ok()).filter(move |pattern| match action {
        Some(Action::Inspect) => true,
        Some(Action::Deny) => enforced && matches!(pattern, Pattern::Exact(_) | Pattern::Ip(_)),
        Some(Action::Tunnel) | None => false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::document::parse;

    fn vouched_by(destinations: &str, enforcement: &str) -> Vec<String> {
        let text = format!(
            "{{apiVersion: postern.dev/v1alpha1, kind: EgressPolicy, metadata: {{name: a}}, \
             spec: {{enforcement: {enforcement}, destinations: [{destinations}]}}}}"
        );
        vouched(&parse("policy.yaml", &text).unwrap()).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn what_is_inspected_needs_a_certificate_and_what_is_tunnelled_none() {
        let destinations = "{name: a, hosts: [API.example.com, '*.one.test', '**.two.test', 10.0.0.1], action: Inspect}, \
                            {name: b, hosts: [tunnel.test], action: Tunnel}, {name: c, hosts: ['**'], action: Inspect}";
        for enforcement in ["Enforce", "Audit"] {
            let expected = ["api.example.com", "*.one.test", "**.two.test", "10.0.0.1", "**"];
            assert_eq!(vouched_by(destinations, enforcement), expected, "{enforcement}");
        }
    }

    #[test]
    fn a_denial_needs_one_where_it_is_enforced_and_names_the_host_exactly() {
        let destinations = "{name: a, hosts: [evil.test, 192.0.2.1, '*.evil.test', '**'], action: Deny}, \
                            {name: b, cidrs: [10.0.0.0/8], action: Deny}";
        assert_eq!(vouched_by(destinations, "Enforce"), ["evil.test", "192.0.2.1"]);
        assert_eq!(vouched_by(destinations, "Audit"), [""; 0]);
    }

    #[test]
    fn a_host_that_is_none_is_passed_over() {
        let mut document = Document::default();
        let hosts = Some(vec!["a b".to_owned(), "fine.test".to_owned()]);
        let action = Some(Action::Inspect);
        document.spec.destinations = vec![Destination { hosts, action, ..Destination::default() }];
        assert_eq!(vouched(&[document]), [Pattern::parse("fine.test").unwrap()]);
    }
}
