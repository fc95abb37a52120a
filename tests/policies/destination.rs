//! One policy: names, wildcards, ports, protocols, address literals and ranges.

use super::{audit, decide, expect, namespaced, policy};

#[test]
fn nothing_matches_and_nothing_passes() {
    let policy = policy(&[namespaced("p", "- {name: a, hosts: [api.example.com], action: Inspect}")]);
    expect(
        &policy,
        "
        tls other.example.com:443 = Deny Deny postern/builtin/default-deny
        tls example.com:443 = Deny Deny postern/builtin/default-deny
        tls evil-api.example.com:443 = Deny Deny postern/builtin/default-deny
        tls api.example.com.evil.com:443 = Deny Deny postern/builtin/default-deny
        tls 10.0.0.1:443 = Deny Deny postern/builtin/default-deny
        opaque -:443 = Deny Deny postern/builtin/default-deny
        ",
    );
}

#[test]
fn ports_default_to_what_the_action_speaks() {
    let policy = policy(&[namespaced(
        "p",
        "- {name: inspect, hosts: [inspect.example], action: Inspect}
         - {name: tunnel, hosts: [tunnel.example], action: Tunnel}
         - {name: deny, hosts: [deny.example], action: Deny}",
    )]);
    expect(
        &policy,
        "
        tls inspect.example:443 = Inspect Allow agents/p/inspect
        http inspect.example:80 = Inspect Allow agents/p/inspect
        http inspect.example:443 = Deny Deny postern/builtin/default-deny
        tls inspect.example:80 = Deny Deny postern/builtin/default-deny
        tls inspect.example:8443 = Deny Deny postern/builtin/default-deny
        opaque inspect.example:443 = Deny Deny postern/builtin/default-deny
        tls tunnel.example:443 = Tunnel Allow agents/p/tunnel
        http tunnel.example:80 = Deny Deny postern/builtin/default-deny
        http tunnel.example:443 = Deny Deny postern/builtin/default-deny
        opaque tunnel.example:443 = Deny Deny postern/builtin/default-deny
        tls deny.example:443 = DenyNamed Deny agents/p/deny
        http deny.example:8080 = DenyNamed Deny agents/p/deny
        opaque deny.example:22 = DenyNamed Deny agents/p/deny
        ",
    );
}

#[test]
fn named_ports_replace_the_default_ones() {
    let policy = policy(&[namespaced(
        "p",
        "- {name: inspect, hosts: [inspect.example], ports: [8443, 8080], action: Inspect}
         - {name: tunnel, hosts: [tunnel.example], ports: [8443], action: Tunnel}
         - {name: deny, hosts: [deny.example], ports: [25], action: Deny}",
    )]);
    expect(
        &policy,
        "
        tls inspect.example:8443 = Inspect Allow agents/p/inspect
        http inspect.example:8443 = Inspect Allow agents/p/inspect
        http inspect.example:8080 = Inspect Allow agents/p/inspect
        opaque inspect.example:8443 = Deny Deny postern/builtin/default-deny
        tls inspect.example:443 = Deny Deny postern/builtin/default-deny
        tls tunnel.example:8443 = Tunnel Allow agents/p/tunnel
        http tunnel.example:8443 = Deny Deny postern/builtin/default-deny
        opaque deny.example:25 = DenyNamed Deny agents/p/deny
        tls deny.example:443 = Deny Deny postern/builtin/default-deny
        ",
    );
}

#[test]
fn other_bytes_need_an_opaque_tunnel() {
    let policy = policy(&[namespaced(
        "p",
        "- {name: db, hosts: [db.corp.example], ports: [5432], action: Tunnel, protocol: Opaque}",
    )]);
    expect(
        &policy,
        "
        opaque db.corp.example:5432 = TunnelEch Allow agents/p/db
        tls db.corp.example:5432 = TunnelEch Allow agents/p/db
        http db.corp.example:5432 = TunnelEch Allow agents/p/db
        opaque db.corp.example:5433 = Deny Deny postern/builtin/default-deny
        ",
    );
}

#[test]
fn wildcards_end_at_label_boundaries() {
    let policy = policy(&[namespaced(
        "p",
        r#"- {name: one, hosts: ["*.one.example"], action: Tunnel}
           - {name: many, hosts: ["**.many.example"], action: Tunnel}"#,
    )]);
    expect(
        &policy,
        "
        tls a.one.example:443 = Tunnel Allow agents/p/one
        tls one.example:443 = Deny Deny postern/builtin/default-deny
        tls a.b.one.example:443 = Deny Deny postern/builtin/default-deny
        tls evil-one.example:443 = Deny Deny postern/builtin/default-deny
        tls a.many.example:443 = Tunnel Allow agents/p/many
        tls a.b.c.many.example:443 = Tunnel Allow agents/p/many
        tls many.example:443 = Deny Deny postern/builtin/default-deny
        tls amany.example:443 = Deny Deny postern/builtin/default-deny
        ",
    );
}

#[test]
fn the_most_specific_rule_decides() {
    let policy = policy(&[namespaced(
        "p",
        r#"- {name: every, hosts: ["**"], action: Inspect}
           - {name: short, hosts: ["**.example"], action: Tunnel}
           - {name: long, hosts: ["**.corp.example"], action: Inspect}
           - {name: label, hosts: ["*.corp.example"], action: Tunnel}
           - {name: exact, hosts: [api.corp.example], action: Inspect}"#,
    )]);
    expect(
        &policy,
        "
        tls api.corp.example:443 = Inspect Allow agents/p/exact
        tls www.corp.example:443 = Tunnel Allow agents/p/label
        tls a.www.corp.example:443 = Inspect Allow agents/p/long
        tls other.example:443 = Tunnel Allow agents/p/short
        tls example:443 = Inspect Allow agents/p/every
        tls elsewhere.test:443 = Inspect Allow agents/p/every
        ",
    );
}

#[test]
fn a_more_specific_rule_on_another_port_takes_no_part() {
    let policy = policy(&[namespaced(
        "p",
        r#"- {name: wide, hosts: ["*.example.com"], action: Tunnel}
           - {name: exact, hosts: [api.example.com], ports: [8443], action: Inspect}"#,
    )]);
    expect(
        &policy,
        "
        tls api.example.com:443 = Tunnel Allow agents/p/wide
        tls api.example.com:8443 = Inspect Allow agents/p/exact
        ",
    );
}

#[test]
fn address_ranges_serve_flows_without_a_name_alone() {
    let policy = policy(&[namespaced(
        "p",
        "- {name: database, cidrs: [10.20.0.0/16], ports: [5432], action: Tunnel}
         - {name: narrow, cidrs: [10.20.30.0/24], action: Deny}",
    )]);
    expect(
        &policy,
        "
        opaque 10.20.1.1:5432 = TunnelEch Allow agents/p/database
        tls 10.20.1.1:5432 = TunnelEch Allow agents/p/database
        opaque 10.20.1.1:5433 = Deny Deny postern/builtin/default-deny
        opaque 10.21.1.1:5432 = Deny Deny postern/builtin/default-deny
        opaque 10.20.30.1:5432 = Deny Deny agents/p/narrow
        tls name.example:5432 = Deny Deny postern/builtin/default-deny
        ",
    );
}

#[test]
fn the_longest_prefix_decides() {
    let policy = policy(&[namespaced(
        "p",
        "- {name: wide, cidrs: [10.0.0.0/8], ports: [22], action: Tunnel}
         - {name: narrow, cidrs: [10.20.0.0/16], ports: [22], action: Tunnel}
         - {name: six, cidrs: ['2001:db8::/32'], ports: [22], action: Tunnel}",
    )]);
    expect(
        &policy,
        "
        opaque 10.20.0.1:22 = TunnelEch Allow agents/p/narrow
        opaque 10.1.0.1:22 = TunnelEch Allow agents/p/wide
        opaque [2001:db8::1]:22 = TunnelEch Allow agents/p/six
        opaque [2001:db9::1]:22 = Deny Deny postern/builtin/default-deny
        ",
    );
}

#[test]
fn an_address_literal_in_hosts_is_that_address_and_can_be_inspected() {
    let policy = policy(&[namespaced(
        "p",
        r#"- {name: literal, hosts: [10.20.0.9, "2001:db8::9"], ports: [8443], action: Inspect}
           - {name: every, hosts: ["**"], ports: [8443], action: Inspect}
           - {name: range, cidrs: [10.20.0.0/16], ports: [8443], action: Tunnel}"#,
    )]);
    expect(
        &policy,
        "
        tls 10.20.0.9:8443 = Inspect Allow agents/p/literal
        tls [2001:db8::9]:8443 = Inspect Allow agents/p/literal
        tls 10.20.0.8:8443 = TunnelEch Allow agents/p/range
        opaque 10.20.0.9:8443 = TunnelEch Allow agents/p/range
        tls [2001:db8::8]:8443 = Deny Deny postern/builtin/default-deny
        ",
    );
}

#[test]
fn ech_passes_where_the_rule_says_so() {
    let policy = policy(&[namespaced(
        "p",
        "- {name: ech, hosts: [ech.example], action: Tunnel, allowEch: true}
         - {name: plain, hosts: [plain.example], action: Tunnel, allowEch: false}",
    )]);
    expect(
        &policy,
        "
        tls ech.example:443 = TunnelEch Allow agents/p/ech
        tls plain.example:443 = Tunnel Allow agents/p/plain
        ",
    );
}

#[test]
fn a_refusal_says_what_was_near() {
    let policy = policy(&[namespaced("p", "- {name: a, hosts: [api.example.com], action: Inspect}")]);
    let reason = |flow: &str| decide(&policy, flow).decision.why().to_owned();
    assert_eq!(
        reason("tls api.example.com:8443"),
        "A rule names this destination, but not on this port with this protocol"
    );
    assert_eq!(reason("tls b.example.com:443"), "No rule names this host");
    assert_eq!(reason("opaque 10.0.0.1:443"), "The connection names no host, and no rule names this address");
    assert_eq!(reason("opaque -:443"), "The connection names no host");
}

#[test]
fn a_policy_without_destinations_denies_and_an_audit_one_lets_through() {
    let empty = "apiVersion: postern.dev/v1alpha1\nkind: EgressPolicy\nmetadata: {name: p}\nspec:\n  podSelector: {}\n";
    expect(&policy(&[empty.into()]), "tls a.example:443 = Deny Deny postern/builtin/default-deny");
    expect(&policy(&[audit(empty)]), "tls a.example:443 = TunnelEch WouldDeny postern/builtin/default-deny");
}

#[test]
fn unclear_bytes_pass_only_where_no_rule_needs_a_name() {
    let policy = policy(&[namespaced(
        "p",
        "- {name: range, cidrs: [10.0.0.0/8], ports: [22, 25, 80, 443, 8443, 9443], action: Tunnel}
         - {name: look, hosts: [look.example], ports: [8443], action: Inspect}
         - {name: pass, hosts: [pass.example], ports: [9443], action: Tunnel}
         - {name: no, hosts: [no.example], action: Deny}
         - {name: db, hosts: [db.example], ports: [8443, 5432], action: Tunnel, protocol: Opaque}
         - {name: both, hosts: [pass.example], ports: [9443], action: Tunnel, protocol: Opaque}",
    )]);
    expect(
        &policy,
        "
        unclear 10.0.0.1:22 = TunnelEch Allow agents/p/range
        unclear 10.0.0.1:25 = TunnelEch Allow agents/p/range
        unclear 10.0.0.1:80 = Deny Deny postern/builtin/unparseable
        unclear 10.0.0.1:443 = Deny Deny postern/builtin/unparseable
        unclear 10.0.0.1:8443 = Deny Deny postern/builtin/unparseable
        unclear 10.0.0.1:9443 = Deny Deny postern/builtin/unparseable
        opaque 10.0.0.1:443 = TunnelEch Allow agents/p/range
        opaque 10.0.0.1:8443 = TunnelEch Allow agents/p/range
        unclear 192.0.2.1:443 = Deny Deny postern/builtin/default-deny
        unclear look.example:8443 = Deny Deny postern/builtin/default-deny
        unclear no.example:22 = DenyNamed Deny agents/p/no
        unclear db.example:5432 = TunnelEch Allow agents/p/db
        unclear db.example:8443 = TunnelEch Allow agents/p/db
        unclear pass.example:9443 = Deny Deny postern/builtin/unparseable
        opaque pass.example:9443 = TunnelEch Allow agents/p/both
        ",
    );
}

#[test]
fn a_denial_of_an_address_needs_no_name() {
    let policy = policy(&[namespaced(
        "p",
        "- {name: range, cidrs: [10.0.0.0/8], ports: [443], action: Tunnel}
         - {name: never, cidrs: [10.9.0.0/16], action: Deny}
         - {name: one, hosts: [10.8.0.1], action: Deny}",
    )]);
    expect(
        &policy,
        "
        unclear 10.0.0.1:443 = TunnelEch Allow agents/p/range
        unclear 10.8.0.1:443 = DenyNamed Deny agents/p/one
        unclear 10.9.0.1:443 = Deny Deny agents/p/never
        ",
    );
}
