//! Whole documents: the example of the documentation, revisions, what is never there.

use postern::policy::{Labels, Policy, document};

use super::{expect, policy};

const EXAMPLE: &str = r#"
apiVersion: postern.dev/v1alpha1
kind: EgressPolicy
metadata: {name: coding-agents, namespace: agents}
spec:
  podSelector: {matchLabels: {app: coder}}
  enforcement: Enforce
  failurePolicy: Closed
  destinations:
    - name: anthropic
      hosts: [api.anthropic.com]
      action: Inspect
    - name: packages
      hosts: [packages.example.com, files.packages.example.com]
      action: Inspect
      endpoints:
        - {methods: [GET], path: /**}
    - name: our-repositories
      hosts: [github.com]
      action: Inspect
      endpoints: [{methods: [GET, POST], path: /acme/**}]
    - name: registry
      hosts: ["*.registry.example"]
      action: Tunnel
    - name: database
      cidrs: [10.20.0.0/16]
      ports: [5432]
      action: Tunnel
    - name: in-house-model
      hosts: [llm.corp.example]
      ports: [8443]
      action: Inspect
  credentials:
    - name: anthropic
      hosts: [api.anthropic.com]
      secretKeyRef: {name: anthropic, key: api-key}
      placeholder: sk-ant-postern-anthropic
      require: true
"#;

#[test]
fn the_example_decides_as_it_reads() {
    let documents = document::parse("policy.yaml", EXAMPLE).unwrap();
    let labels = Labels::from([("app".into(), "coder".into())]);
    let policy = Policy::compile(&documents, &labels).unwrap();
    expect(
        &policy,
        "
        tls api.anthropic.com:443 = Inspect Allow agents/coding-agents/anthropic
        tls files.packages.example.com:443 = Inspect Allow agents/coding-agents/packages
        tls eu.registry.example:443 = Tunnel Allow agents/coding-agents/registry
        opaque 10.20.3.4:5432 = TunnelEch Allow agents/coding-agents/database
        tls llm.corp.example:8443 = Inspect Allow agents/coding-agents/in-house-model
        tls llm.corp.example:443 = Deny Deny postern/builtin/default-deny
        tls evil.example:443 = Deny Deny postern/builtin/default-deny
        ",
    );
    assert_eq!(policy.credentials().len(), 1);
    let other = Policy::compile(&documents, &Labels::new()).unwrap();
    expect(&other, "tls api.anthropic.com:443 = Deny Deny postern/builtin/no-policy");
    assert!(other.credentials().is_empty());
}

#[test]
fn a_revision_tells_what_is_said_and_not_how() {
    let read = |text: &str| policy(&[text.to_owned()]).revision().to_owned();
    let revision = read(EXAMPLE);
    assert!(revision.strip_prefix("sha256:").is_some_and(|hex| hex.len() == 32), "{revision}");
    assert_eq!(read(&EXAMPLE.replace("action: Tunnel", "action: Tunnel   # a grant")), revision);
    assert_ne!(read(&EXAMPLE.replace("5432", "5433")), revision);
    let documents = document::parse("policy.yaml", EXAMPLE).unwrap();
    let selecting = Policy::compile(&documents, &Labels::from([("app".into(), "coder".into())])).unwrap();
    assert_eq!(selecting.revision(), revision, "labels are no part of it");
}

#[test]
fn without_a_policy_everything_is_denied() {
    let policy = Policy::none();
    assert_eq!(policy.revision(), "none");
    assert!(!policy.audit_only());
    expect(&policy, "tls a.example:443 = Deny Deny postern/builtin/no-policy");
}

#[test]
fn names_are_compared_in_one_form() {
    let policy = policy(&[super::namespaced(
        "p",
        r#"- {name: a, hosts: [API.Example.COM., "*.Bücher.example", "2001:DB8:0::1"], action: Inspect}"#,
    )]);
    expect(
        &policy,
        "
        tls api.example.com:443 = Inspect Allow agents/p/a
        tls API.EXAMPLE.com.:443 = Inspect Allow agents/p/a
        tls www.xn--bcher-kva.example:443 = Inspect Allow agents/p/a
        tls [2001:db8::1]:443 = Inspect Allow agents/p/a
        ",
    );
}
