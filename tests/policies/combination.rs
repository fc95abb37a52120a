//! Several policies: tiers, precedence, equal rules united (design section 5.1 to 5.4).

use super::{
    audit, cluster, decide, expect, expect_requests, inspection, namespaced, policy, problems, ruled,
};

#[test]
fn an_explicit_deny_anywhere_wins_at_any_specificity() {
    let allowing = namespaced(
        "allowing",
        "- {name: exact, hosts: [api.example.com], action: Inspect}
         - {name: other, hosts: [www.example.com], action: Tunnel}",
    );
    let wildcard = namespaced("denying", r#"- {name: wide, hosts: ["**.example.com"], action: Deny}"#);
    expect(
        &policy(&[allowing.clone(), wildcard]),
        "
        tls api.example.com:443 = Deny Deny agents/denying/wide
        tls www.example.com:443 = Deny Deny agents/denying/wide
        ",
    );
    let of_cluster = cluster("floor", r#"- {name: none, hosts: ["**"], ports: [443], action: Deny}"#);
    expect(
        &policy(&[allowing, of_cluster]),
        "
        tls api.example.com:443 = Deny Deny -/floor/none
        http api.example.com:80 = Inspect Allow agents/allowing/exact
        ",
    );
}

#[test]
fn of_several_denials_the_one_that_names_the_host_is_told() {
    let policy = policy(&[
        cluster("floor", r#"- {name: wide, hosts: ["**.example.com"], action: Deny}"#),
        namespaced("p", "- {name: exact, hosts: [api.example.com], action: Deny}"),
    ]);
    expect(
        &policy,
        "
        tls api.example.com:443 = DenyNamed Deny agents/p/exact
        tls www.example.com:443 = Deny Deny -/floor/wide
        ",
    );
}

#[test]
fn a_clusters_inspect_is_a_floor_that_no_namespace_turns_into_a_tunnel() {
    let policy = policy(&[
        cluster("floor", r#"- {name: look, hosts: ["**.example.com"], action: Inspect}"#),
        namespaced("p", "- {name: pass, hosts: [api.example.com], action: Tunnel, allowEch: true}"),
    ]);
    expect(
        &policy,
        "
        tls api.example.com:443 = Inspect Allow -/floor/look
        http api.example.com:80 = Inspect Allow -/floor/look
        ",
    );
}

#[test]
fn what_shows_no_name_needs_a_rule_of_the_cluster_that_inspects_names_there() {
    let floor = r#"- {name: look, hosts: ["**"], action: Inspect}
                   - {name: alt, hosts: [api.example.com], ports: [8443], action: Inspect}"#;
    let opened = "- {name: net, cidrs: [10.1.0.0/16], ports: [443, 8443], action: Tunnel}
                  - {name: ssh, hosts: [git.example.com], ports: [443], action: Tunnel, protocol: Opaque}";
    let own = namespaced(
        "p",
        "- {name: net, cidrs: [10.0.0.0/8], ports: [22, 80, 443, 8443], action: Tunnel}
         - {name: one, hosts: [10.2.0.1], ports: [443], action: Inspect}
         - {name: ssh, hosts: [git.example.com, other.example.com], ports: [443], action: Tunnel, protocol: Opaque}",
    );
    let closed = "
        tls 10.2.0.1:443 = Deny Deny postern/builtin/default-deny
        tls 10.1.0.1:443 = Deny Deny postern/builtin/default-deny
        http 10.1.0.1:80 = Deny Deny postern/builtin/default-deny
        opaque 10.1.0.1:8443 = Deny Deny postern/builtin/default-deny
        unclear 10.1.0.1:443 = Deny Deny postern/builtin/unparseable
        opaque git.example.com:443 = Deny Deny postern/builtin/default-deny
        opaque 10.1.0.1:22 = TunnelEch Allow agents/p/net
        unclear 10.1.0.1:22 = TunnelEch Allow agents/p/net
        tls git.example.com:443 = Inspect Allow -/floor/look
        ";
    expect(&policy(&[cluster("floor", floor), own.clone()]), closed);
    expect(
        &policy(&[cluster("floor", &format!("{floor}\n{opened}")), own.clone()]),
        "
        tls 10.1.0.1:443 = TunnelEch Allow -/floor/net
        opaque 10.1.0.1:8443 = TunnelEch Allow -/floor/net
        unclear 10.1.0.1:443 = Deny Deny postern/builtin/unparseable
        http 10.1.0.1:80 = Deny Deny postern/builtin/default-deny
        opaque git.example.com:443 = TunnelEch Allow -/floor/ssh
        opaque other.example.com:443 = Deny Deny postern/builtin/default-deny
        ",
    );
    let denying = r#"- {name: no, hosts: ["**.evil.example"], action: Deny}"#;
    expect(
        &policy(&[cluster("floor", denying), own]),
        "
        tls 10.1.0.1:443 = TunnelEch Allow agents/p/net
        opaque 10.1.0.1:8443 = TunnelEch Allow agents/p/net
        opaque git.example.com:443 = TunnelEch Allow agents/p/ssh
        unclear 10.1.0.1:443 = Deny Deny postern/builtin/unparseable
        unclear 10.1.0.1:8443 = TunnelEch Allow agents/p/net
        ",
    );
}

#[test]
fn a_floor_that_only_records_closes_nothing() {
    let floor = audit(&cluster("floor", r#"- {name: look, hosts: ["**"], action: Inspect}"#));
    let own = namespaced("p", "- {name: net, cidrs: [10.0.0.0/8], ports: [443], action: Tunnel}");
    let recording = policy(&[floor.clone(), own.clone()]);
    expect(&recording, "tls 10.0.0.1:443 = TunnelEch Allow agents/p/net");
    let audited = decide(&recording, "tls 10.0.0.1:443").audited;
    assert_eq!(audited.iter().map(ruled).collect::<Vec<_>>(), ["WouldDeny postern/builtin/default-deny"]);
    expect(
        &policy(&[floor, audit(&own)]),
        "
        tls 10.0.0.1:443 = TunnelEch WouldDeny postern/builtin/default-deny
        unclear 10.0.0.1:443 = TunnelEch WouldDeny postern/builtin/unparseable
        ",
    );
}

#[test]
fn a_namespaces_inspect_holds_against_a_clusters_tunnel() {
    let policy = policy(&[
        cluster("wide", r#"- {name: pass, hosts: ["**"], action: Tunnel}"#),
        namespaced("p", "- {name: look, hosts: [api.example.com], action: Inspect}"),
    ]);
    expect(
        &policy,
        "
        tls api.example.com:443 = Inspect Allow agents/p/look
        tls www.example.com:443 = Tunnel Allow -/wide/pass
        ",
    );
}

#[test]
fn a_tier_without_a_matching_rule_is_silent() {
    let policy = policy(&[
        cluster("c", "- {name: a, hosts: [a.example], action: Tunnel}"),
        namespaced("p", "- {name: b, hosts: [b.example], action: Inspect}"),
    ]);
    expect(
        &policy,
        "
        tls a.example:443 = Tunnel Allow -/c/a
        tls b.example:443 = Inspect Allow agents/p/b
        tls c.example:443 = Deny Deny postern/builtin/default-deny
        ",
    );
}

#[test]
fn each_tier_must_allow_the_request() {
    let policy = policy(&[
        cluster(
            "c",
            r#"- {name: reads, hosts: ["**"], action: Inspect, endpoints: [{methods: [GET], path: /**}]}"#,
        ),
        namespaced(
            "p",
            "- {name: acme, hosts: [github.com], action: Inspect, endpoints: [{methods: [GET, POST], path: /acme/**}]}",
        ),
    ]);
    let destination = decide(&policy, "tls github.com:443");
    expect_requests(
        inspection(&destination),
        "
        GET /acme/x = Allow -/c/reads
        POST /acme/x = Deny postern/builtin/endpoint
        GET /other/x = Deny postern/builtin/endpoint
        ",
    );
    let destination = decide(&policy, "tls elsewhere.example:443");
    expect_requests(inspection(&destination), "GET /other = Allow -/c/reads");
}

#[test]
fn equal_rules_of_a_tier_are_united() {
    let policy = policy(&[
        namespaced(
            "one",
            "- {name: acme, hosts: [github.com], action: Inspect, endpoints: [{methods: [GET], path: /acme/**}]}",
        ),
        namespaced(
            "two",
            "- {name: beta, hosts: [github.com], action: Inspect, endpoints: [{methods: [POST], path: /beta/**}]}
             - {name: pass, hosts: [github.com], action: Tunnel}",
        ),
    ]);
    let destination = decide(&policy, "tls github.com:443");
    expect_requests(
        inspection(&destination),
        "
        GET /acme/x = Allow agents/one/acme
        POST /beta/x = Allow agents/two/beta
        POST /acme/x = Deny postern/builtin/endpoint
        GET /other = Deny postern/builtin/endpoint
        ",
    );
}

#[test]
fn an_equal_rule_without_endpoints_adds_everything() {
    let policy = policy(&[namespaced(
        "p",
        "- {name: some, hosts: [github.com], action: Inspect, endpoints: [{methods: [GET], path: /acme/**}]}
         - {name: all, hosts: [github.com], action: Inspect}",
    )]);
    let destination = decide(&policy, "tls github.com:443");
    expect_requests(
        inspection(&destination),
        "
        GET /acme/x = Allow agents/p/some
        DELETE /x = Allow agents/p/all
        ",
    );
}

#[test]
fn a_more_specific_rules_endpoints_replace_the_others() {
    let policy = policy(&[namespaced(
        "p",
        r#"- {name: all, hosts: ["*.example.com"], action: Inspect}
           - {name: some, hosts: [api.example.com], action: Inspect, endpoints: [{methods: [GET], path: /v1/**}]}"#,
    )]);
    expect_requests(
        inspection(&decide(&policy, "tls api.example.com:443")),
        "
        GET /v1/x = Allow agents/p/some
        GET /v2/x = Deny postern/builtin/endpoint
        ",
    );
}

#[test]
fn ech_and_upgrades_need_the_word_of_all_equal_rules() {
    let policy = policy(&[namespaced(
        "p",
        "- {name: yes, hosts: [a.example, b.example], action: Tunnel, allowEch: true}
         - {name: no, hosts: [b.example], action: Tunnel}
         - {name: up, hosts: [c.example, d.example], action: Inspect, upgrade: Allow}
         - {name: down, hosts: [d.example], action: Inspect, upgrade: Deny}",
    )]);
    expect(
        &policy,
        "
        tls a.example:443 = TunnelEch Allow agents/p/yes
        tls b.example:443 = Tunnel Allow agents/p/yes
        ",
    );
    assert!(inspection(&decide(&policy, "tls c.example:443")).upgrade_allowed());
    assert!(!inspection(&decide(&policy, "tls d.example:443")).upgrade_allowed());
}

#[test]
fn both_tiers_must_grant_an_upgrade_and_ech() {
    let policy = policy(&[
        cluster(
            "c",
            r#"- {name: look, hosts: ["**.example"], action: Inspect}
               - {name: pass, hosts: ["**.test"], action: Tunnel}"#,
        ),
        namespaced(
            "p",
            "- {name: up, hosts: [a.example], action: Inspect, upgrade: Allow}
             - {name: ech, hosts: [a.test], action: Tunnel, allowEch: true}",
        ),
    ]);
    assert!(!inspection(&decide(&policy, "tls a.example:443")).upgrade_allowed());
    expect(&policy, "tls a.test:443 = Tunnel Allow -/c/pass");
}

const SAYS: &str = "hosts: [llm.example, other.example], action: Inspect, provider";

#[test]
fn equal_rules_of_a_tier_name_one_provider() {
    let one = namespaced("one", &format!("- {{name: a, {SAYS}: OpenAIChat}}"));
    let two = namespaced("two", &format!("- {{name: b, {SAYS}: Anthropic}}"));
    let found = problems(&[one.clone(), two].join("---\n"));
    let told = "spec.destinations[0].provider: agents/one/a says OpenAIChat of llm.example; one host speaks one of \
                them in a tier";
    assert!(found.len() == 1 && found[0].ends_with(told), "{found:?}");
    let within = format!("- {{name: a, {SAYS}: Gemini}}\n- {{name: b, {SAYS}: Bedrock}}");
    let found = problems(&namespaced("p", &within));
    let told = "spec.destinations[1].provider: agents/p/a says Gemini";
    assert!(found.len() == 1 && found[0].contains(told), "{found:?}");

    for other in [
        namespaced("two", &format!("- {{name: b, {SAYS}: OpenAIChat}}")),
        namespaced("two", "- {name: b, hosts: [llm.example], action: Inspect}"),
        namespaced(
            "two",
            "- {name: b, hosts: [llm.example], ports: [8443], action: Inspect, provider: Gemini}",
        ),
        namespaced("two", "- {name: b, hosts: ['*.example'], action: Inspect, provider: Gemini}"),
        cluster("two", &format!("- {{name: b, {SAYS}: Anthropic}}")),
    ] {
        assert_eq!(problems(&[one.clone(), other].join("---\n")), Vec::<String>::new());
    }
}

#[test]
fn the_order_of_documents_does_not_matter() {
    let one = namespaced("one", "- {name: a, hosts: [x.example], action: Inspect}");
    let two = namespaced("two", "- {name: b, hosts: [x.example], action: Inspect}");
    let floor = cluster("floor", r#"- {name: c, hosts: ["**"], action: Inspect}"#);
    let forward = policy(&[one.clone(), two.clone(), floor.clone()]);
    let backward = policy(&[floor, two, one]);
    assert_eq!(forward.revision(), backward.revision());
    for policy in [forward, backward] {
        expect(&policy, "tls x.example:443 = Inspect Allow -/floor/c");
    }
}
