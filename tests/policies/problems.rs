//! Mistakes: all of them at once, each with its place and what was expected.

use super::{audit, cluster, namespaced, problems};

const HEAD: &str =
    "apiVersion: postern.dev/v1alpha1\nkind: EgressPolicy\nmetadata: {name: p, namespace: agents}\n";

/// The problems of destinations in flow style, without the file, line and column.
fn of(destination: &str) -> Vec<String> {
    let text = format!("{HEAD}spec: {{destinations: [{destination}]}}\n");
    problems(&text).iter().map(|line| line.split_once(' ').unwrap().1.to_owned()).collect()
}

#[test]
fn several_mistakes_of_a_file_are_told_together_with_their_places() {
    let text = format!(
        "{HEAD}spec:
  enforcement: Sometimes
  toolOutputs: {{}}
  destinations:
    - name: a
      hosts: [ok.example, 12, a_b.example]
      action: Inspekt
    - name: a
      hosts: [x.example]
      action: Tunnel
      endpoints: [{{path: /x}}]
      colour: red
---
apiVersion: postern.dev/v1
kind: EgressPolicy
metadata: {{}}
"
    );
    let expected = [
        r#"policy.yaml:5:16: spec.enforcement: unknown value "Sometimes"; expected Enforce or Audit"#,
        "policy.yaml:6:16: spec.toolOutputs: asks for nothing; write `compress`, `repeats: Refer` or both",
        "policy.yaml:9:27: spec.destinations[0].hosts[1]: expected a string, found the number 12: put it in quotes",
        r#"policy.yaml:9:31: spec.destinations[0].hosts[2]: "a_b.example": a name is made of letters, digits, hyphens and dots"#,
        r#"policy.yaml:10:15: spec.destinations[0].action: unknown value "Inspekt"; expected Inspect, Tunnel or Deny"#,
        "policy.yaml:11:13: spec.destinations[1].name: the name `a` is taken by spec.destinations[0]",
        "policy.yaml:14:18: spec.destinations[1].endpoints: belongs to Inspect rules; this one says Tunnel",
        "policy.yaml:15:7: spec.destinations[1].colour: unknown field; expected name, hosts, cidrs, ports, action, \
         endpoints, provider, upgrade, reach, allowEch or protocol",
        "policy.yaml:17:13: apiVersion: expected postern.dev/v1alpha1",
        "policy.yaml:19:11: metadata.name: is required",
    ];
    assert_eq!(problems(&text), expected);
}

#[test]
fn items_that_cannot_be_read_keep_the_numbers_of_the_others_right() {
    let found = of("17, {name: a, hosts: [a_b], action: Inspect}");
    assert_eq!(
        found[0],
        "spec.destinations[0]: expected a destination: {name, hosts or cidrs, ports, action, …}, found the number 17"
    );
    assert!(found[1].starts_with("spec.destinations[1].hosts[0]: \"a_b\""), "{}", found[1]);
}

/// A destination, and the one thing wrong with it.
const WRONG: &[(&str, &str)] = &[
    ("{name: a, hosts: [a.example]}", "spec.destinations[0].action: is required: Inspect, Tunnel or Deny"),
    ("{hosts: [a.example], action: Deny}", "spec.destinations[0].name: is required"),
    ("{name: a, action: Deny}", "spec.destinations[0]: needs `hosts` or `cidrs`"),
    ("{name: a, hosts: [], action: Deny}", "spec.destinations[0].hosts: name at least one host"),
    ("{name: a, cidrs: [], action: Deny}", "spec.destinations[0].cidrs: name at least one range"),
    (
        "{name: a, hosts: [a.example], cidrs: [10.0.0.0/8], action: Deny}",
        "spec.destinations[0]: has `hosts` and `cidrs`: one rule has one of them",
    ),
    (
        "{name: a, cidrs: [10.0.0.0/8], action: Inspect}",
        "spec.destinations[0].action: a rule with `cidrs` is Tunnel or Deny: only a host can be inspected",
    ),
    (
        "{name: a, cidrs: [10.0.0.0/8], action: Tunnel}",
        "spec.destinations[0].ports: is required: a Tunnel that passes any bytes (`cidrs`, or `protocol: Opaque`) names its ports",
    ),
    (
        "{name: a, hosts: [a.example], action: Tunnel, protocol: Opaque}",
        "spec.destinations[0].ports: is required: a Tunnel that passes any bytes (`cidrs`, or `protocol: Opaque`) names its ports",
    ),
    (
        "{name: a, hosts: [a.example], action: Inspect, allowEch: true}",
        "spec.destinations[0].allowEch: belongs to Tunnel rules; this one says Inspect",
    ),
    (
        "{name: a, hosts: [a.example], ports: [1], action: Deny, protocol: Opaque}",
        "spec.destinations[0].protocol: belongs to Tunnel rules; this one says Deny",
    ),
    (
        "{name: a, hosts: [a.example], action: Tunnel, upgrade: Allow}",
        "spec.destinations[0].upgrade: belongs to Inspect rules; this one says Tunnel",
    ),
    (
        "{name: a, hosts: [a.example], action: Inspect, ports: [0]}",
        "spec.destinations[0].ports[0]: 0 is no port; expected 1 to 65535",
    ),
    (
        "{name: a, hosts: [a.example], action: Inspect, ports: [70000]}",
        "spec.destinations[0].ports[0]: 70000 is no port; expected 1 to 65535",
    ),
    (
        "{name: a, hosts: [a.example], action: Inspect, ports: []}",
        "spec.destinations[0].ports: name at least one port, or leave the field out",
    ),
    (
        "{name: a, hosts: [a.example], action: Inspect, ports: ['443']}",
        "spec.destinations[0].ports[0]: expected a whole number, found the text \"443\"",
    ),
    (
        "{name: a, cidrs: [10.0.0.1/8], action: Deny}",
        "spec.destinations[0].cidrs[0]: \"10.0.0.1/8\": has bits behind its prefix; 10.0.0.0/8 is the whole range, /32 one address",
    ),
    (
        "{name: a, hosts: [a.example], action: Inspect, provider: OpenAI}",
        "spec.destinations[0].provider: unknown value \"OpenAI\"; expected Anthropic, OpenAIChat, OpenAIResponses, Gemini, Bedrock or None",
    ),
    (
        "{name: a, hosts: [a.example], action: Tunnel, provider: OpenAIChat}",
        "spec.destinations[0].provider: belongs to Inspect rules; this one says Tunnel",
    ),
    (
        "{name: a, hosts: [a.example], action: Inspect, endpoints: []}",
        "spec.destinations[0].endpoints: name at least one endpoint, or leave the field out for what is open by default",
    ),
    (
        "{name: a, hosts: [a.example], action: Inspect, endpoints: [{}]}",
        "spec.destinations[0].endpoints[0]: needs `methods`, `path` or both",
    ),
    (
        "{name: a, hosts: [a.example], action: Inspect, endpoints: [{methods: [get]}]}",
        "spec.destinations[0].endpoints[0].methods[0]: \"get\": is no method; methods are upper case, as in GET or POST",
    ),
    (
        "{name: a, hosts: [a.example], action: Inspect, endpoints: [{path: v1}]}",
        "spec.destinations[0].endpoints[0].path: \"v1\": a path begins with `/`",
    ),
];

#[test]
fn fields_that_do_not_go_together_are_told() {
    for (destination, expected) in WRONG {
        assert_eq!(of(destination), [*expected], "{destination}");
    }
}

#[test]
fn a_source_without_any_document_is_a_mistake() {
    for text in ["", "\n", "# only a comment\n", "---\n---\n", "~\n"] {
        let found = problems(text);
        assert_eq!(found.len(), 1, "{text:?}");
        assert!(found[0].starts_with("policy.yaml: there is no policy document"), "{found:?}");
    }
}

#[test]
fn broken_yaml_is_told_with_its_line() {
    let found = problems("apiVersion: postern.dev/v1alpha1\nkind: [EgressPolicy\nmetadata: {}\n");
    assert_eq!(found.len(), 1);
    assert!(found[0].starts_with("policy.yaml:3:"), "{found:?}");
    let found = problems(&format!("{HEAD}spec: {{destinations: [{{hosts: [*.example.com]}}]}}\n"));
    assert!(found[0].contains("put the pattern in quotes"), "{found:?}");
    let found = problems("hello");
    assert!(found[0].contains("expected a policy document, found the text \"hello\""), "{found:?}");
}

#[test]
fn a_list_where_a_mapping_belongs_is_refused() {
    for (spec, place) in [
        ("[]", "spec"),
        ("{podSelector: []}", "spec.podSelector"),
        ("{limits: [~]}", "spec.limits"),
        ("{hostedTools: []}", "spec.hostedTools"),
        ("{audit: []}", "spec.audit"),
        ("{destinations: [[a, [a.example]]]}", "spec.destinations[0]"),
        (
            "{credentials: [{name: c, hosts: [a.example], fromEnv: X, sigV4: [a, b, c]}]}",
            "spec.credentials[0].sigV4",
        ),
    ] {
        let found = problems(&format!("{HEAD}spec: {spec}\n"));
        assert_eq!(found.len(), 1, "{spec}: {found:?}");
        assert!(found[0].contains(&format!(": {place}: expected ")), "{found:?}");
        assert!(found[0].ends_with(", found a list"), "{found:?}");
    }
}

#[test]
fn a_field_written_twice_is_told() {
    let found = problems(&format!("{HEAD}spec: {{}}\nspec: {{enforcement: Audit}}\n"));
    assert_eq!(found, ["policy.yaml:5:1: spec: the field is written twice"]);
}

#[test]
fn what_names_a_policy_is_judged() {
    let text = |kind: &str, metadata: &str| {
        format!("apiVersion: postern.dev/v1alpha1\nkind: {kind}\nmetadata: {metadata}\nspec: {{}}\n")
    };
    assert!(problems(&text("EgressPolicy", "{name: p}")).is_empty());
    for (kind, metadata, expected) in [
        ("EgressPolicy", "{name: builtin, namespace: postern}", "metadata.name: postern/builtin"),
        ("EgressPolicy", "{name: Upper}", "metadata.name: a name is"),
        ("EgressPolicy", "{name: p, namespace: a.b}", "metadata.namespace: a namespace has no dots"),
        (
            "ClusterEgressPolicy",
            "{name: p, namespace: a}",
            "metadata.namespace: a ClusterEgressPolicy has no",
        ),
        ("NetworkPolicy", "{name: p}", "kind: unknown value \"NetworkPolicy\""),
        ("EgressPolicy", "{name: p, nmespace: x}", "metadata.nmespace: unknown field"),
    ] {
        let found = problems(&text(kind, metadata));
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].contains(expected), "{found:?}");
    }
}

#[test]
fn a_policy_may_be_written_once() {
    let one = namespaced("p", "- {name: a, hosts: [a.example], action: Inspect}");
    let found = problems(&[one.clone(), one.clone()].join("---\n"));
    assert_eq!(
        found,
        ["policy.yaml:11:18: metadata.name: the policy agents/p is already written in policy.yaml:3"]
    );
    let tiers = [one.clone(), cluster("p", "- {name: a, hosts: [a.example], action: Inspect}")];
    assert!(problems(&tiers.join("---\n")).is_empty());
    assert!(problems(&audit(&one)).is_empty());
}

#[test]
fn what_belongs_to_the_cluster_is_refused_in_a_namespace() {
    let found = problems(&format!("{HEAD}spec: {{namespaceSelector: {{}}}}\n"));
    assert!(found[0].contains("spec.namespaceSelector: belongs to a ClusterEgressPolicy"), "{found:?}");
}

#[test]
fn selectors_are_judged() {
    let found = problems(&format!(
        "{HEAD}spec: {{podSelector: {{matchLabels: {{app: 1}}, matchExpressions: [{{key: a, operator: In}}, {{operator: Exists, values: [x]}}, {{key: b}}]}}}}\n"
    ));
    let told = |text: &str| assert!(found.iter().any(|line| line.contains(text)), "{text}: {found:#?}");
    told("spec.podSelector.matchLabels.app: expected a string, found the number 1: put it in quotes");
    told("matchExpressions[0].values: In and NotIn need at least one value");
    told("matchExpressions[1].key: is required");
    told("matchExpressions[1].values: Exists and DoesNotExist take no values");
    told("matchExpressions[2].operator: is required");
    assert_eq!(found.len(), 5);
}

#[test]
fn what_a_cluster_adds_is_accepted() {
    let text = "apiVersion: postern.dev/v1alpha1
kind: EgressPolicy
metadata:
  name: p
  namespace: agents
  uid: 8f2b
  resourceVersion: \"12\"
  generation: 3
  creationTimestamp: \"2026-11-01T00:00:00Z\"
  labels: {a: b}
  annotations: {c: d}
  managedFields: [{manager: kubectl}]
  finalizers: [x]
spec: {}
status:
  conditions: [{type: Accepted}]
";
    assert_eq!(problems(text), Vec::<String>::new());
}
