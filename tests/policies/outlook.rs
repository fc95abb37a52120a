//! What is known before the first byte, and for whom a leaf may be minted.

use postern::name::host::Host;
use postern::policy::Policy;

use super::{audit, cluster, namespaced, policy, ruled, split};

/// `go`, `go unsniffed` or `refuse`, with the rule.
fn outlook(policy: &Policy, authority: &str) -> String {
    let (host, port) = authority.rsplit_once(':').unwrap();
    let host = Host::parse(host).unwrap();
    let (name, address) = split(Some(&host));
    let outlook = policy.outlook(name, address, port.parse().unwrap());
    let word = match (outlook.named, outlook.sniff) {
        (true, true) => "go",
        (true, false) => "go unsniffed",
        (false, _) => "refuse",
    };
    format!("{word} {}", ruled(&outlook.decision))
}

#[track_caller]
fn expect(policy: &Policy, table: &str) {
    for line in table.trim().lines().map(str::trim) {
        let (authority, expected) = line.split_once(" = ").unwrap();
        assert_eq!(outlook(policy, authority), expected, "{authority}");
    }
}

#[test]
fn a_name_that_no_rule_names_is_refused_before_its_first_byte() {
    let policy = policy(&[namespaced(
        "p",
        r#"- {name: look, hosts: [look.example], action: Inspect}
           - {name: db, hosts: [db.example], ports: [5432], action: Tunnel, protocol: Opaque}
           - {name: no, hosts: [no.example], action: Deny}
           - {name: wide, hosts: ["**.bad.example"], action: Deny}
           - {name: hidden, hosts: [ok.bad.example], action: Inspect}"#,
    )]);
    expect(
        &policy,
        "
        look.example:443 = go Allow agents/p/look
        look.example:80 = go Allow agents/p/look
        look.example:8443 = refuse Deny postern/builtin/default-deny
        db.example:5432 = go unsniffed Allow agents/p/db
        db.example:5433 = refuse Deny postern/builtin/default-deny
        other.example:443 = refuse Deny postern/builtin/default-deny
        no.example:443 = go Deny agents/p/no
        no.example:22 = go Deny agents/p/no
        a.bad.example:443 = refuse Deny agents/p/wide
        ok.bad.example:443 = refuse Deny agents/p/wide
        ",
    );
}

#[test]
fn an_opaque_rule_is_sniffed_where_another_tier_inspects() {
    let policy = policy(&[
        cluster("c", r#"- {name: look, hosts: ["**"], ports: [5432], action: Inspect}"#),
        namespaced("p", "- {name: db, hosts: [db.example], ports: [5432], action: Tunnel, protocol: Opaque}"),
    ]);
    expect(&policy, "db.example:5432 = go Allow -/c/look");
}

#[test]
fn an_address_waits_for_a_name_only_where_a_host_rule_shares_its_port() {
    let policy = policy(&[namespaced(
        "p",
        "- {name: look, hosts: [look.example], action: Inspect}
         - {name: opaque, hosts: [db.example], ports: [5432], action: Tunnel, protocol: Opaque}
         - {name: no, hosts: [no.example], action: Deny}
         - {name: range, cidrs: [10.0.0.0/8], ports: [443, 5432], action: Tunnel}
         - {name: never, cidrs: [10.9.0.0/16], action: Deny}",
    )]);
    expect(
        &policy,
        "
        10.0.0.1:5432 = go unsniffed Allow agents/p/range
        10.0.0.1:443 = go Allow agents/p/range
        192.0.2.1:443 = go Deny postern/builtin/default-deny
        192.0.2.1:5432 = refuse Deny postern/builtin/default-deny
        10.9.0.1:5432 = refuse Deny agents/p/never
        10.9.0.1:443 = go Deny agents/p/never
        ",
    );
}

#[test]
fn a_denial_by_name_waits_for_a_name_on_the_ports_of_the_web() {
    let policy = policy(&[namespaced(
        "p",
        "- {name: no, hosts: [no.example], action: Deny}
         - {name: range, cidrs: [10.0.0.0/8], ports: [22, 80, 443], action: Tunnel}",
    )]);
    expect(
        &policy,
        "
        10.0.0.1:22 = go unsniffed Allow agents/p/range
        10.0.0.1:80 = go Allow agents/p/range
        10.0.0.1:443 = go Allow agents/p/range
        ",
    );
}

#[test]
fn a_name_with_opaque_rules_alone_is_sniffed_where_a_floor_closes_opaque_bytes() {
    let policy = policy(&[
        cluster("c", "- {name: look, hosts: [api.example], ports: [5432], action: Inspect}"),
        namespaced("p", "- {name: db, hosts: [db.example], ports: [5432], action: Tunnel, protocol: Opaque}"),
    ]);
    expect(&policy, "db.example:5432 = go Allow agents/p/db");
}

#[test]
fn silence_is_no_way_past_a_rule_that_inspects() {
    let policy = policy(&[namespaced(
        "p",
        "- {name: look, hosts: [both.example], ports: [9000], action: Inspect}
         - {name: pass, hosts: [both.example, db.example], ports: [9000], action: Tunnel, protocol: Opaque}
         - {name: tls, hosts: [tls.example], ports: [9001], action: Tunnel}
         - {name: range, cidrs: [10.0.0.0/8], ports: [9000, 9002], action: Tunnel}",
    )]);
    let strict = |authority: &str| {
        let (host, port) = authority.rsplit_once(':').unwrap();
        let host = Host::parse(host).unwrap();
        let (name, address) = split(Some(&host));
        policy.outlook(name, address, port.parse().unwrap()).strict
    };
    assert!(strict("both.example:9000"));
    assert!(strict("10.0.0.1:9000"), "the bytes could name both.example");
    assert!(!strict("db.example:9000"));
    assert!(!strict("tls.example:9001"));
    assert!(!strict("10.0.0.1:9002"));
}

#[test]
fn where_only_audit_policies_select_everything_goes_on() {
    let policy = policy(&[audit(&namespaced(
        "p",
        "- {name: no, hosts: [no.example], action: Deny}
         - {name: db, hosts: [db.example], ports: [5432], action: Tunnel, protocol: Opaque}",
    ))]);
    expect(
        &policy,
        "
        no.example:443 = go WouldDeny agents/p/no
        other.example:443 = go WouldDeny postern/builtin/default-deny
        192.0.2.1:22 = go WouldDeny postern/builtin/default-deny
        db.example:5432 = go unsniffed Allow agents/p/db
        ",
    );
}

#[test]
fn without_a_policy_everything_is_refused() {
    expect(&Policy::none(), "a.example:443 = refuse Deny postern/builtin/no-policy");
    assert!(!Policy::none().mints(&Host::parse("a.example").unwrap()));
}

#[test]
fn leaves_are_minted_for_what_is_inspected_or_denied_by_its_exact_name() {
    let rules = r#"
        - {name: look, hosts: [look.example, "*.wild.example", 10.0.0.1], action: Inspect}
        - {name: no, hosts: [no.example], action: Deny}
        - {name: wide, hosts: ["**.bad.example"], action: Deny}
        - {name: pass, hosts: [pass.example], action: Tunnel}
    "#;
    let enforced = policy(&[namespaced("p", rules)]);
    let audited = policy(&[audit(&namespaced("p", rules))]);
    let mints = |policy: &Policy, host: &str| policy.mints(&Host::parse(host).unwrap());
    for host in ["look.example", "a.wild.example", "10.0.0.1", "no.example"] {
        assert!(mints(&enforced, host), "{host}");
    }
    for host in
        ["other.example", "a.b.wild.example", "wild.example", "10.0.0.2", "a.bad.example", "pass.example"]
    {
        assert!(!mints(&enforced, host), "{host}");
    }
    assert!(mints(&audited, "look.example"));
    assert!(!mints(&audited, "no.example"));
}
