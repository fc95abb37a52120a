//! Which policies a pod's labels select.

use postern::policy::{Labels, Policy, document};

fn selected(selector: &str, labels: &[(&str, &str)]) -> bool {
    let text = format!(
        "apiVersion: postern.dev/v1alpha1\nkind: EgressPolicy\nmetadata: {{name: p}}\n\
         spec: {{{selector} destinations: [{{name: a, hosts: [a.example], action: Inspect}}]}}\n"
    );
    let documents = document::parse("p.yaml", &text).unwrap();
    let labels: Labels = labels.iter().map(|(key, value)| ((*key).into(), (*value).into())).collect();
    let policy = Policy::compile(&documents, &labels).unwrap();
    let outcome = super::said(&super::decide(&policy, "tls a.example:443"));
    match outcome.as_str() {
        "Inspect Allow default/p/a" => true,
        "Deny Deny postern/builtin/no-policy" => false,
        other => panic!("{other}"),
    }
}

#[test]
fn an_empty_or_absent_selector_selects_every_pod() {
    for selector in ["", "podSelector: {},", "podSelector: {matchLabels: {}},", "podSelector: null,"] {
        assert!(selected(selector, &[]), "{selector}");
        assert!(selected(selector, &[("app", "x")]), "{selector}");
    }
}

#[test]
fn all_labels_must_match() {
    let selector = "podSelector: {matchLabels: {app: coder, app.kubernetes.io/part-of: x}},";
    assert!(selected(selector, &[("app", "coder"), ("app.kubernetes.io/part-of", "x"), ("more", "y")]));
    assert!(!selected(selector, &[("app", "coder")]));
    assert!(!selected(selector, &[("app", "other"), ("app.kubernetes.io/part-of", "x")]));
    assert!(!selected(selector, &[]));
}

#[test]
fn expressions_hold_as_kubernetes_has_them() {
    let expression = |text: &str| format!("podSelector: {{matchExpressions: [{{key: env, {text}}}]}},");
    for (text, dev, prod, none) in [
        ("operator: In, values: [dev, test]", true, false, false),
        ("operator: NotIn, values: [dev, test]", false, true, true),
        ("operator: Exists", true, true, false),
        ("operator: DoesNotExist", false, false, true),
    ] {
        let selector = expression(text);
        assert_eq!(selected(&selector, &[("env", "dev")]), dev, "{text}");
        assert_eq!(selected(&selector, &[("env", "prod")]), prod, "{text}");
        assert_eq!(selected(&selector, &[]), none, "{text}");
    }
}

#[test]
fn labels_and_expressions_must_hold_together() {
    let selector = "podSelector: {matchLabels: {app: a}, matchExpressions: [{key: env, operator: Exists}]},";
    assert!(selected(selector, &[("app", "a"), ("env", "x")]));
    assert!(!selected(selector, &[("app", "a")]));
    assert!(!selected(selector, &[("env", "x")]));
}

#[test]
fn a_cluster_policys_namespaces_are_not_compared_without_a_cluster() {
    let text = "apiVersion: postern.dev/v1alpha1\nkind: ClusterEgressPolicy\nmetadata: {name: p}\n\
                spec: {namespaceSelector: {matchLabels: {team: x}}, destinations: [{name: a, hosts: [a.example], action: Tunnel}]}\n";
    super::expect(&super::policy(&[text.into()]), "tls a.example:443 = Tunnel Allow -/p/a");
}

#[test]
fn documents_that_do_not_select_the_pod_are_judged_all_the_same() {
    let text = "apiVersion: postern.dev/v1alpha1\nkind: EgressPolicy\nmetadata: {name: p}\n\
                spec: {podSelector: {matchLabels: {app: other}}, destinations: [{name: a, hosts: [a_b], action: Inspect}]}\n";
    assert_eq!(super::problems(text).len(), 1);
}

#[test]
fn an_unselected_enforce_policy_does_not_make_an_audit_policy_enforced() {
    let audit = super::audit(&super::namespaced("tried", "- {name: a, hosts: [a.example], action: Deny}"));
    let other = super::namespaced("real", "- {name: a, hosts: [a.example], action: Deny}")
        .replace("spec:\n", "spec:\n  podSelector: {matchLabels: {app: other}}\n");
    super::expect(&super::policy(&[audit, other]), "tls a.example:443 = TunnelEch WouldDeny agents/tried/a");
}
