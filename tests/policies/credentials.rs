//! Credential rules: sources, placeholders, and what two of them must not share.

use std::path::Path;

use postern::policy::credential::Source;
use postern::policy::{Labels, Policy, document};

use super::problems;

fn with(kind: &str, name: &str, credentials: &str) -> String {
    format!(
        "apiVersion: postern.dev/v1alpha1\nkind: {kind}\nmetadata: {{name: {name}}}\n\
         spec: {{credentials: [{credentials}]}}\n"
    )
}

fn egress(credentials: &str) -> String {
    with("EgressPolicy", "p", credentials)
}

#[test]
fn a_credential_has_an_id_a_placeholder_and_a_source() {
    let text = egress(
        "{name: anthropic, hosts: [API.anthropic.com], secretKeyRef: {name: anthropic, key: api-key}, require: true},
         {name: local, hosts: [llm.corp.example], ports: [8443], fromEnv: LLM_KEY, placeholder: sk-ant-postern-local},
         {name: git, hosts: [github.com], fromFile: keys/git}",
    );
    let documents = document::parse("/etc/postern/policy/p.yaml", &text).unwrap();
    let policy = Policy::compile(&documents, &Labels::new()).unwrap();
    let [anthropic, local, git] = policy.credentials() else { panic!("three credentials") };
    assert_eq!(anthropic.id.as_str(), "default/p/credentials/anthropic");
    assert_eq!(anthropic.placeholder, "postern:anthropic");
    assert_eq!(anthropic.hosts[0].as_str(), "api.anthropic.com");
    assert!(anthropic.require && anthropic.ports.is_none());
    assert_eq!(anthropic.source, Source::Mounted);
    assert_eq!(local.source, Source::Env("LLM_KEY".into()));
    assert_eq!((local.placeholder.as_str(), local.ports()), ("sk-ant-postern-local", &[8443][..]));
    assert_eq!(git.source, Source::File(Path::new("/etc/postern/policy/keys/git").into()));
}

#[test]
fn a_credential_is_bound_to_exact_names() {
    for host in ["\"*.example.com\"", "\"**\"", "10.0.0.1", "\"::1\"", "a_b.example"] {
        let found = problems(&egress(&format!("{{name: a, hosts: [{host}], fromEnv: A}}")));
        assert_eq!(found.len(), 1, "{host}: {found:?}");
        assert!(found[0].contains("spec.credentials[0].hosts[0]"), "{}", found[0]);
    }
}

#[test]
fn a_credential_that_signs_says_for_which_service_and_region() {
    let text = egress(
        "{name: bedrock, hosts: [bedrock-runtime.us-east-1.amazonaws.com], fromFile: aws.json,
          sigV4: {service: bedrock, region: us-east-1}},
         {name: plain, hosts: [bedrock-runtime.eu-west-1.amazonaws.com], fromEnv: AWS_BEARER_TOKEN_BEDROCK}",
    );
    let documents = document::parse("p.yaml", &text).unwrap();
    let policy = Policy::compile(&documents, &Labels::new()).unwrap();
    let [signing, plain] = policy.credentials() else { panic!("two credentials") };
    let scope = signing.signing.as_ref().unwrap();
    assert_eq!((scope.service.as_str(), scope.region.as_str()), ("bedrock", "us-east-1"));
    assert_eq!(signing.placeholder, "postern:bedrock");
    assert!(plain.signing.is_none());
}

#[test]
fn a_signature_is_for_one_service_and_region_with_an_id_that_fits_into_it() {
    for (written, expected) in [
        ("sigV4: {service: bedrock}", "spec.credentials[0].sigV4.region: is required"),
        ("sigV4: {region: us-east-1}", "spec.credentials[0].sigV4.service: is required"),
        (
            "sigV4: {service: Bedrock, region: us-east-1}",
            "spec.credentials[0].sigV4.service: expected 1 to 63",
        ),
        ("sigV4: {service: bedrock, region: \"*\"}", "spec.credentials[0].sigV4.region: expected 1 to 63"),
        ("sigV4: {service: bedrock, region: us/east}", "spec.credentials[0].sigV4.region: expected 1 to 63"),
        ("sigV4: {service: bedrock, region: us-east-1, key: x}", "spec.credentials[0].sigV4.key"),
        ("sigV4: bedrock", "spec.credentials[0].sigV4"),
        (
            "sigV4: {service: bedrock, region: us-east-1}, placeholder: AKIA/POSTERN",
            "spec.credentials[0].placeholder: with `sigV4` it stands for an access key id",
        ),
    ] {
        let found = problems(&egress(&format!("{{name: a, hosts: [a.example], fromEnv: A, {written}}}")));
        assert_eq!(found.len(), 1, "{written}: {found:?}");
        assert!(found[0].contains(expected), "{written}: {}", found[0]);
    }
    let fine = "{name: a, hosts: [a.example], fromEnv: A, sigV4: {service: s3, region: us-gov-east-1}}";
    assert!(problems(&egress(fine)).is_empty());
}

#[test]
fn a_credential_has_exactly_one_source() {
    let none = problems(&egress("{name: a, hosts: [a.example]}"));
    assert!(none[0].contains("needs a source"), "{none:?}");
    let two = problems(&egress("{name: a, hosts: [a.example], fromEnv: A, fromFile: /a}"));
    assert!(two[0].contains("several sources"), "{two:?}");
    let empty = problems(&egress("{name: a, hosts: [a.example], secretKeyRef: {name: x}}"));
    assert!(empty[0].contains("secretKeyRef.key: is required"), "{empty:?}");
    assert_eq!(problems(&egress("{name: a, hosts: [a.example], fromFile: ~/key}")).len(), 1);
}

#[test]
fn a_policy_of_the_cluster_alone_names_a_namespace_of_keys() {
    let named = |namespace: &str| {
        format!("{{name: a, hosts: [a.example], secretKeyRef: {{name: x, key: k, namespace: {namespace}}}}}")
    };
    assert!(problems(&with("ClusterEgressPolicy", "p", &named("keys"))).is_empty());
    let found = problems(&egress(&named("keys")));
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(
        found[0].contains("spec.credentials[0].secretKeyRef.namespace: belongs to a ClusterEgressPolicy"),
        "{found:?}"
    );
    for namespace in ["''", "Keys", "a.b", "a/b"] {
        let found = problems(&with("ClusterEgressPolicy", "p", &named(namespace)));
        assert_eq!(found.len(), 1, "{namespace}: {found:?}");
    }
}

#[test]
fn a_name_is_usable_as_a_files() {
    for name in ["../x", ".x", "a/b", "A", "''"] {
        let found = problems(&egress(&format!("{{name: {name}, hosts: [a.example], fromEnv: A}}")));
        assert_eq!(found.len(), 1, "{name}: {found:?}");
    }
}

#[test]
fn two_credentials_for_a_host_and_port_in_one_tier_are_a_mistake() {
    let a = "{name: a, hosts: [x.example, a.example], fromEnv: A}";
    let b = "{name: b, hosts: [b.example, x.example], fromEnv: B}";
    let other_port = "{name: c, hosts: [x.example], ports: [8443], fromEnv: C}";
    let found = problems(&egress(&format!("{a}, {b}")));
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].contains("spec.credentials[1]") && found[0].contains("x.example"), "{found:?}");
    assert_eq!(problems(&egress(&format!("{a}, {other_port}"))), Vec::<String>::new());

    let two = [with("EgressPolicy", "one", a), with("EgressPolicy", "two", b)].join("---\n");
    assert_eq!(problems(&two).len(), 1);
    let tiers = [with("ClusterEgressPolicy", "one", a), with("EgressPolicy", "two", b)].join("---\n");
    assert_eq!(problems(&tiers), Vec::<String>::new());
}

#[test]
fn a_name_or_a_placeholder_is_one_credentials() {
    let a = "{name: a, hosts: [a.example], fromEnv: A}";
    let same_name = "{name: a, hosts: [b.example], fromEnv: A}";
    let same_placeholder = "{name: b, hosts: [b.example], fromEnv: A, placeholder: 'postern:a'}";
    for other in [same_name, same_placeholder] {
        assert_eq!(problems(&egress(&format!("{a}, {other}"))).len(), 1, "{other}");
        let two = [with("ClusterEgressPolicy", "one", a), with("EgressPolicy", "two", other)].join("---\n");
        assert_eq!(problems(&two).len(), 1, "{other}");
    }
}

#[test]
fn policies_for_other_pods_may_have_credentials_for_the_same_host() {
    let labelled = |name: &str, key: &str, app: &str| {
        with("EgressPolicy", name, &format!("{{name: {key}, hosts: [a.example], fromEnv: A}}"))
            .replace("spec: {", &format!("spec: {{podSelector: {{matchLabels: {{app: {app}}}}}, "))
    };
    let text = [labelled("one", "a", "x"), labelled("two", "b", "y")].join("---\n");
    assert_eq!(problems(&text), Vec::<String>::new());
    let same_name = [labelled("one", "a", "x"), labelled("two", "a", "y")].join("---\n");
    assert_eq!(problems(&same_name).len(), 1, "one file per name and namespace");
}

#[test]
fn an_audit_policys_credentials_are_attached_only_where_nothing_is_enforced() {
    let tried = super::audit(
        "apiVersion: postern.dev/v1alpha1\nkind: EgressPolicy\nmetadata: {name: tried}\nspec:\n  credentials: [{name: b, hosts: [a.example], fromEnv: B}]\n",
    );
    let real = with("EgressPolicy", "real", "{name: a, hosts: [a.example], fromEnv: A}");
    let names = |texts: &[String]| -> Vec<String> {
        super::policy(texts).credentials().iter().map(|credential| credential.name.clone()).collect()
    };
    assert_eq!(names(std::slice::from_ref(&tried)), ["b"]);
    assert_eq!(names(&[tried, real]), ["a"]);
}
