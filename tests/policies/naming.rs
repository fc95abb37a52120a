//! Which names the resolver answers.

use postern::name::host::DnsName;
use postern::policy::Policy;

use super::{audit, namespaced, policy, ruled};

/// `yes`, or the denial.
fn answers(policy: &Policy, name: &str) -> String {
    match policy.answers(&DnsName::parse(name).unwrap()) {
        Ok(()) => "yes".to_owned(),
        Err(decision) => ruled(&decision),
    }
}

const DEFAULT: &str = "Deny postern/builtin/default-deny";

#[test]
fn a_name_is_answered_where_a_host_rule_names_it_on_any_port_to_any_end() {
    let policy = policy(&[namespaced(
        "p",
        r#"- {name: look, hosts: [look.example], action: Inspect}
           - {name: pass, hosts: [pass.example], ports: [8443], action: Tunnel}
           - {name: db, hosts: [db.example], ports: [5432], action: Tunnel, protocol: Opaque}
           - {name: no, hosts: [no.example], action: Deny}
           - {name: one, hosts: ["*.one.example"], action: Tunnel}
           - {name: wide, hosts: ["**.bad.example"], action: Deny}
           - {name: net, cidrs: [0.0.0.0/0], ports: [443], action: Tunnel}
           - {name: literal, hosts: [192.0.2.1], action: Inspect}"#,
    )]);
    for name in
        ["look.example", "pass.example", "db.example", "no.example", "x.one.example", "y.x.bad.example"]
    {
        assert_eq!(answers(&policy, name), "yes", "{name}");
    }
    for name in ["one.example", "y.x.one.example", "bad.example", "example", "other.example", "xno.example"] {
        assert_eq!(answers(&policy, name), DEFAULT, "{name}");
    }
    let decision = policy.answers(&DnsName::parse("other.example").unwrap()).unwrap_err();
    assert_eq!(decision.why(), "No rule names this host");
}

#[test]
fn every_name_is_answered_where_only_audit_policies_select_the_pod() {
    let recorded = audit(&namespaced("p", "- {name: look, hosts: [look.example], action: Inspect}"));
    assert_eq!(answers(&policy(std::slice::from_ref(&recorded)), "other.example"), "yes");
    let beside = namespaced("q", "- {name: pass, hosts: [pass.example], action: Tunnel}");
    let policy = policy(&[recorded, beside]);
    assert_eq!(answers(&policy, "pass.example"), "yes");
    assert_eq!(answers(&policy, "look.example"), DEFAULT, "beside an enforced policy it only records");
}

#[test]
fn no_name_is_answered_without_a_policy() {
    assert_eq!(answers(&Policy::none(), "look.example"), "Deny postern/builtin/no-policy");
    let of_others = namespaced("p", "- {name: look, hosts: [look.example], action: Inspect}")
        .replace("spec:\n", "spec:\n  podSelector: {matchLabels: {app: other}}\n");
    assert_eq!(answers(&policy(&[of_others]), "look.example"), "Deny postern/builtin/no-policy");
}
