//! Denied addresses, judged on the address that would be dialled (threats A8, A28).

use std::net::IpAddr;

use ipnet::IpNet;
use postern::policy::Policy;
use postern::policy::address::Reserved;

use super::{audit, namespaced, policy};

fn nets(texts: &[&str]) -> Vec<IpNet> {
    texts.iter().map(|text| text.parse().unwrap()).collect()
}

fn judge(reserved: &Reserved, policy: &Policy, address: &str, port: u16) -> Option<String> {
    reserved.judge(policy, address.parse().unwrap(), port).map(|decision| {
        assert!(decision.denies());
        decision.rule_id().to_owned()
    })
}

const BUILTIN: Option<&str> = Some("postern/builtin/denied-address");

#[test]
fn built_in_ranges_are_denied_in_every_disguise() {
    let reserved = Reserved::new(&[], &[], &[]);
    let denied = [
        "127.0.0.1",
        "127.8.9.10",
        "0.0.0.0",
        "0.1.2.3",
        "169.254.169.254",
        "168.63.129.16",
        "100.100.100.200",
        "192.0.0.192",
        "224.0.0.1",
        "255.255.255.255",
        "198.18.0.1",
        "198.19.255.255",
        "::",
        "::1",
        "fe80::1",
        "fd00:ec2::254",
        "fd20:ce::254",
        "100.88.222.5",
        "100.96.0.96",
        "100.80.80.80",
        "fd00:100::100:200",
        "fd00:c1::a9fe:a9fe",
        "fd00:42::42",
        "fd00:a9fe:a9fe::1",
        "fec0::1",
        "64:ff9b::100.100.100.200",
        "ff02::1",
        "::ffff:127.0.0.1",
        "::ffff:169.254.169.254",
        "::127.0.0.1",
        "::ffff:0:127.0.0.1",
        "64:ff9b::169.254.169.254",
        "64:ff9b:1::169.254.169.254",
        "64:ff9b:1:a9fe:a9:fe00::",
        "64:ff9b:1:0:a9:fea9:fe00:0",
        "2002:a9fe:a9fe::1",
        "2002:7f00:1::",
        "2001:0:a9fe:a9fe::1",
        "2001:0:102:304:0:0:5601:5601",
    ];
    for address in denied {
        assert_eq!(judge(&reserved, &Policy::none(), address, 443).as_deref(), BUILTIN, "{address}");
    }
    for address in [
        "192.0.2.2",
        "10.0.0.1",
        "100.64.0.1",
        "168.63.129.17",
        "2001:db8::2",
        "64:ff9b::192.0.2.2",
        "2002:c000:202::1",
        "fd00::1",
        "fd00:c1::1",
    ] {
        assert_eq!(judge(&reserved, &Policy::none(), address, 443), None, "{address}");
    }
}

#[test]
fn only_a_range_rule_as_narrow_as_the_range_lifts_it_on_its_port() {
    let reserved = Reserved::new(&nets(&["10.96.0.0/16"]), &[], &[]);
    let policy = policy(&[namespaced(
        "p",
        "- {name: equal, cidrs: [10.96.0.0/16], ports: [443], action: Tunnel}
         - {name: narrow, cidrs: [169.254.169.254/32], ports: [80], action: Tunnel}
         - {name: broad, cidrs: [0.0.0.0/0], ports: [443, 80, 8080], action: Tunnel}
         - {name: pool, cidrs: [198.18.0.1/32], ports: [443], action: Tunnel}",
    )]);
    assert_eq!(judge(&reserved, &policy, "10.96.0.1", 443), None);
    assert_eq!(judge(&reserved, &policy, "10.96.0.1", 8080).as_deref(), BUILTIN);
    assert_eq!(judge(&reserved, &policy, "169.254.169.254", 80), None);
    assert_eq!(judge(&reserved, &policy, "::ffff:169.254.169.254", 80), None);
    assert_eq!(judge(&reserved, &policy, "169.254.169.253", 80).as_deref(), BUILTIN);
    assert_eq!(judge(&reserved, &policy, "127.0.0.1", 443).as_deref(), BUILTIN);
    assert_eq!(judge(&reserved, &policy, "198.18.0.1", 443).as_deref(), BUILTIN, "a pool is never dialled");
    let other = Reserved::new(&[], &[], &[]).with_pools(&nets(&["203.0.113.0/24"]));
    assert_eq!(judge(&other, &policy, "198.18.0.1", 443), None);
    assert_eq!(judge(&other, &policy, "203.0.113.9", 443).as_deref(), BUILTIN);
}

#[test]
fn the_canaries_of_the_redirect_are_never_dialled_since_the_gateway_is_redirected_there_itself() {
    let reserved = Reserved::new(&[], &nets(&["192.0.2.0/24", "2001:db8::/32"]), &[]);
    let policy = policy(&[namespaced(
        "p",
        r#"- {name: exact, cidrs: [192.0.2.1/32, "2001:db8::1/128"], ports: [443], action: Tunnel}"#,
    )]);
    for address in ["192.0.2.1", "::ffff:192.0.2.1", "64:ff9b::192.0.2.1", "2001:db8::1"] {
        assert_eq!(judge(&reserved, &policy, address, 443).as_deref(), BUILTIN, "{address}");
    }
}

#[test]
fn every_range_that_holds_an_address_must_be_lifted() {
    let reserved = Reserved::new(&nets(&["10.96.0.10/32"]), &nets(&[]), &[]);
    let policy =
        policy(&[namespaced("p", "- {name: wide, cidrs: [10.96.0.0/16], ports: [443], action: Tunnel}")]);
    assert_eq!(judge(&reserved, &policy, "10.96.0.10", 443).as_deref(), BUILTIN);
    assert_eq!(judge(&reserved, &policy, "10.96.0.11", 443), None);
}

#[test]
fn a_host_rule_lifts_nothing() {
    let reserved = Reserved::new(&[], &[], &[]);
    let policy = policy(&[namespaced("p", r#"- {name: a, hosts: ["**", 127.0.0.1], action: Inspect}"#)]);
    assert_eq!(judge(&reserved, &policy, "127.0.0.1", 443).as_deref(), BUILTIN);
}

#[test]
fn allowed_addresses_lift_the_denial_but_never_the_pods_own() {
    let own: IpAddr = "10.244.1.7".parse().unwrap();
    let loopback: IpAddr = "127.0.0.1".parse().unwrap();
    let allow = nets(&["127.0.0.0/8", "10.244.0.0/16"]);
    let reserved = Reserved::new(&nets(&["10.244.0.0/16"]), &allow, &[own, loopback]);
    assert_eq!(judge(&reserved, &Policy::none(), "127.0.0.1", 8080), None);
    assert_eq!(judge(&reserved, &Policy::none(), "10.244.2.2", 8080), None);
    assert_eq!(judge(&reserved, &Policy::none(), "10.244.1.7", 8080).as_deref(), BUILTIN);
    let opened =
        policy(&[namespaced("p", "- {name: own, cidrs: [10.244.1.7/32], ports: [8080], action: Tunnel}")]);
    assert_eq!(judge(&reserved, &opened, "::ffff:10.244.1.7", 8080).as_deref(), BUILTIN);
}

#[test]
fn the_api_server_and_the_node_are_lifted_only_by_what_names_them_alone() {
    let cluster: Vec<IpAddr> = ["10.96.0.1", "192.0.2.7", "fd00::7"].map(|ip| ip.parse().unwrap()).into();
    let lifting = policy(&[namespaced(
        "p",
        r#"- {name: wide, cidrs: [10.96.0.0/16, 192.0.2.0/24, "fd00::/8"], ports: [443], action: Tunnel}
           - {name: api, cidrs: [10.96.0.1/32, "fd00::7/128"], ports: [6443], action: Tunnel}"#,
    )]);
    let wide = Reserved::new(&nets(&["10.96.0.0/16"]), &nets(&["10.0.0.0/8", "192.0.2.0/24"]), &[]);
    let reserved = wide.clone().with_cluster(&cluster);
    for address in ["10.96.0.1", "192.0.2.7", "fd00::7", "::ffff:10.96.0.1", "64:ff9b::10.96.0.1"] {
        assert_eq!(judge(&reserved, &lifting, address, 443).as_deref(), BUILTIN, "{address}");
        assert_eq!(
            judge(&wide, &lifting, address, 443),
            None,
            "{address} is nothing but an address elsewhere"
        );
    }
    assert_eq!(judge(&reserved, &lifting, "10.96.0.1", 6443), None);
    assert_eq!(judge(&reserved, &lifting, "fd00::7", 6443), None);
    assert_eq!(judge(&reserved, &lifting, "192.0.2.7", 6443).as_deref(), BUILTIN);
    let named = Reserved::new(&[], &nets(&["192.0.2.7/32"]), &[]).with_cluster(&cluster);
    assert_eq!(judge(&named, &lifting, "192.0.2.7", 443), None);
}

#[test]
fn a_range_that_a_rule_denies_is_not_dialled_for_a_name_either() {
    let reserved = Reserved::new(&[], &nets(&["10.0.0.0/8"]), &[]);
    let rules = r#"
        - {name: host, hosts: [a.example], action: Inspect}
        - {name: no, cidrs: [10.0.0.0/8], ports: [443], action: Deny}
        - {name: literal, hosts: [192.0.2.7], action: Deny}
    "#;
    let enforced = policy(&[namespaced("p", rules)]);
    assert_eq!(judge(&reserved, &enforced, "10.1.1.1", 443).as_deref(), Some("agents/p/no"));
    assert_eq!(judge(&reserved, &enforced, "64:ff9b::10.1.1.1", 443).as_deref(), Some("agents/p/no"));
    assert_eq!(judge(&reserved, &enforced, "10.1.1.1", 80), None);
    assert_eq!(judge(&reserved, &enforced, "192.0.2.7", 80).as_deref(), Some("agents/p/literal"));
    let audited = policy(&[audit(&namespaced("p", rules))]);
    assert_eq!(judge(&reserved, &audited, "10.1.1.1", 443), None);
    assert_eq!(judge(&reserved, &audited, "127.0.0.1", 443).as_deref(), BUILTIN, "the floor stays");
    let told = audited.audits_address("10.1.1.1".parse().unwrap(), 443).unwrap();
    assert_eq!(super::ruled(&told), "WouldDeny agents/p/no");
}

#[test]
fn an_audit_rule_lifts_nothing_where_another_policy_is_enforced() {
    let reserved = Reserved::new(&[], &[], &[]);
    let lifting = namespaced("tried", "- {name: up, cidrs: [127.0.0.0/8], ports: [80], action: Tunnel}");
    let real = namespaced("real", "- {name: a, hosts: [a.example], action: Inspect}");
    assert_eq!(judge(&reserved, &policy(&[audit(&lifting), real]), "127.0.0.1", 80).as_deref(), BUILTIN);
    assert_eq!(judge(&reserved, &policy(&[audit(&lifting)]), "127.0.0.1", 80), None);
}
