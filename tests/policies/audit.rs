//! Audit and Enforce (design section 5.5).

use postern::decision::Decision;
use postern::name::path::NormalPath;
use postern::policy::destination::Destination;
use postern::policy::inspection::Asked;

use super::{audit, decide, expect, expect_requests, inspection, namespaced, policy, ruled};

fn audited(destination: &Destination) -> Vec<String> {
    destination.audited.iter().map(ruled).collect()
}

/// What is audited of a GET.
fn told(destination: &Destination, path: &str) -> Option<Decision> {
    let path = NormalPath::parse(path);
    inspection(destination).audited(&Asked {
        method: &http::Method::GET,
        path: &path,
        service: None,
        unknown_provider: false,
    })
}

const RULES: &str = r#"
    - {name: look, hosts: [look.example, both.example], action: Inspect, endpoints: [{methods: [GET], path: /v1/**}]}
    - {name: pass, hosts: [pass.example], action: Tunnel}
    - {name: no, hosts: [no.example, both.example], action: Deny}
    - {name: range, cidrs: [10.0.0.0/8], action: Deny}
"#;

#[test]
fn what_only_audit_policies_deny_goes_through_and_is_told() {
    let policy = policy(&[audit(&namespaced("p", RULES))]);
    assert!(policy.audit_only());
    expect(
        &policy,
        "
        tls look.example:443 = Inspect Allow agents/p/look
        tls pass.example:443 = Tunnel Allow agents/p/pass
        tls no.example:443 = TunnelEch WouldDeny agents/p/no
        tls both.example:443 = Inspect WouldDeny agents/p/no
        tls other.example:443 = TunnelEch WouldDeny postern/builtin/default-deny
        http other.example:80 = TunnelEch WouldDeny postern/builtin/default-deny
        tls look.example:8443 = TunnelEch WouldDeny postern/builtin/default-deny
        opaque look.example:22 = TunnelEch WouldDeny postern/builtin/default-deny
        opaque 192.0.2.1:22 = TunnelEch WouldDeny postern/builtin/default-deny
        opaque 10.0.0.1:22 = TunnelEch WouldDeny agents/p/range
        opaque -:22 = TunnelEch WouldDeny postern/builtin/default-deny
        ",
    );
    let destination = decide(&policy, "tls look.example:443");
    assert_eq!(destination.decision.enforcement.unwrap().as_str(), "Audit");
    expect_requests(
        inspection(&destination),
        "
        GET /v1/x = Allow agents/p/look
        POST /v1/x = WouldDeny postern/builtin/endpoint
        ",
    );
}

#[test]
fn beside_an_enforce_policy_an_audit_policy_only_records() {
    let policy = policy(&[
        namespaced(
            "real",
            "- {name: pass, hosts: [pass.example, look.example], action: Tunnel}
             - {name: look, hosts: [both.example, no.example], action: Inspect}",
        ),
        audit(&namespaced("tried", RULES)),
    ]);
    assert!(!policy.audit_only());
    expect(
        &policy,
        "
        tls pass.example:443 = Tunnel Allow agents/real/pass
        tls look.example:443 = Tunnel Allow agents/real/pass
        tls no.example:443 = Inspect Allow agents/real/look
        tls other.example:443 = Deny Deny postern/builtin/default-deny
        opaque 10.0.0.1:22 = Deny Deny postern/builtin/default-deny
        ",
    );
    let told = |flow: &str| audited(&decide(&policy, flow));
    assert_eq!(told("tls pass.example:443"), Vec::<String>::new());
    assert_eq!(told("tls look.example:443"), ["Audit agents/tried/look"]);
    assert_eq!(told("tls no.example:443"), ["WouldDeny agents/tried/no"]);
    assert_eq!(told("tls other.example:443"), Vec::<String>::new());
}

#[test]
fn an_audit_policy_loosens_nothing() {
    let policy = policy(&[
        namespaced("real", "- {name: a, hosts: [a.example], action: Inspect}"),
        audit(&namespaced("tried", "- {name: b, hosts: [b.example], action: Tunnel}")),
    ]);
    let destination = decide(&policy, "tls b.example:443");
    assert_eq!(super::said(&destination), "Deny Deny postern/builtin/default-deny");
    assert_eq!(audited(&destination), ["Audit agents/tried/b"]);
    assert_eq!(destination.audited[0].enforcement.unwrap().as_str(), "Audit");
}

#[test]
fn an_audit_policys_endpoints_are_recorded_by_request() {
    let policy = policy(&[
        namespaced("real", "- {name: a, hosts: [a.example], action: Inspect}"),
        audit(&namespaced(
            "tried",
            "- {name: b, hosts: ['**'], action: Inspect, endpoints: [{path: /wide/**}]}
             - {name: c, hosts: [a.example], ports: [443], action: Tunnel}",
        )),
    ]);
    // The enforced exact rule outranks the audited wildcard, so nothing would change.
    let destination = decide(&policy, "tls a.example:443");
    assert!(told(&destination, "/x").is_none());
    let policy = super::policy(&[
        super::cluster("real", "- {name: a, hosts: [a.example], action: Inspect}"),
        audit(&namespaced(
            "tried",
            "- {name: b, hosts: [a.example], action: Inspect, endpoints: [{path: /v1/**}]}",
        )),
    ]);
    let destination = decide(&policy, "tls a.example:443");
    assert!(told(&destination, "/v1/x").is_none());
    assert_eq!(
        told(&destination, "/v2/x").as_ref().map(ruled).as_deref(),
        Some("WouldDeny postern/builtin/endpoint")
    );
    expect_requests(inspection(&destination), "GET /v2/x = Allow -/real/a");
}
