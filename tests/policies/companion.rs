//! Which hosts that no rule names are refused in words, and for which of them a CA may vouch.

use postern::call::{Companion, Dialect, ProviderHosts};
use postern::name::host::DnsName;
use postern::policy::companion::companions;
use postern::policy::{Policy, document};

use super::{audit, cluster, decide, namespaced, policy, said};

const MODELS: ProviderHosts =
    ProviderHosts { hosts: &["models.example", "*.models.example"], dialects: &[Dialect::Anthropic] };

const TABLE: &[Companion] = &[
    Companion { host: "hello.example", beside: &[MODELS] },
    Companion { host: "stats.example", beside: &[MODELS] },
    Companion {
        host: "other.example",
        beside: &[ProviderHosts { hosts: &["elsewhere.test"], dialects: &[] }],
    },
];

fn of(policies: &[String]) -> Vec<String> {
    policy(policies).accompanied(TABLE).companions().map(ToString::to_string).collect()
}

fn of_documents(policies: &[String]) -> Vec<String> {
    let documents = document::parse("policy.yaml", &policies.join("---\n")).unwrap();
    companions(&documents, TABLE).iter().map(ToString::to_string).collect()
}

#[test]
fn a_rule_that_opens_the_provider_brings_its_companions_and_no_others() {
    for rule in [
        "{name: m, hosts: [models.example], action: Inspect}",
        "{name: m, hosts: [models.example], action: Tunnel}",
        "{name: m, hosts: [eu.models.example], action: Inspect}",
        "{name: m, hosts: ['**.models.example'], action: Inspect}",
        "{name: m, hosts: ['*.example'], ports: [8443], action: Inspect}",
        "{name: m, hosts: [llm.corp.test], action: Inspect, provider: Anthropic}",
    ] {
        let policies = [namespaced("p", &format!("- {rule}"))];
        assert_eq!(of(&policies), ["hello.example", "stats.example"], "{rule}");
    }
    for rule in [
        "{name: m, hosts: [models.example], action: Deny}",
        "{name: m, hosts: [a.b.models.example], action: Inspect}",
        "{name: m, hosts: [xmodels.example], action: Inspect}",
        "{name: m, hosts: ['**'], ports: [8443], action: Inspect}",
        "{name: m, hosts: [llm.corp.test], action: Inspect, provider: Gemini}",
        "{name: m, cidrs: [0.0.0.0/0], ports: [443], action: Tunnel}",
    ] {
        let policies = [namespaced("p", &format!("- {rule}"))];
        assert_eq!((of(&policies), of_documents(&policies)), (vec![], vec![]), "{rule}");
    }
}

#[test]
fn a_companion_that_a_rule_names_is_the_rules() {
    for rule in [
        "{name: c, hosts: [hello.example], action: Deny}",
        "{name: c, hosts: [hello.example], action: Tunnel}",
        "{name: c, hosts: [hello.example], ports: [8443], action: Inspect}",
    ] {
        let models = "- {name: m, hosts: [models.example], action: Inspect}";
        let policies = [namespaced("p", &format!("{models}\n- {rule}"))];
        assert_eq!(
            (of(&policies), of_documents(&policies)),
            (vec!["stats.example".into()], vec!["stats.example".into()])
        );
        let apart = [cluster("f", &format!("- {rule}")), namespaced("p", models)];
        assert_eq!(of(&apart), ["stats.example"], "{rule}");
    }
}

#[test]
fn policies_that_only_record_bring_none_and_name_none() {
    let models = namespaced("p", "- {name: m, hosts: [models.example], action: Inspect}");
    assert_eq!((of(&[audit(&models)]), of_documents(&[audit(&models)])), (vec![], vec![]));
    let named = audit(&namespaced("q", "- {name: c, hosts: [hello.example], action: Inspect}"));
    assert_eq!(of(&[models, named]), ["hello.example", "stats.example"]);
    assert!(Policy::none().accompanied(TABLE).companions().next().is_none());
}

#[test]
fn a_ca_vouches_for_no_companion_that_has_a_tunnel_in_or_below_it() {
    let models = namespaced("p", "- {name: m, hosts: [models.example], action: Inspect}");
    for (tunnel, expected) in [
        ("hello.example", &["stats.example"][..]),
        ("deep.down.hello.example", &["stats.example"]),
        ("'*.hello.example'", &["stats.example"]),
        ("'**.example'", &[]),
        ("'**'", &[]),
        ("othello.example", &["hello.example", "stats.example"]),
    ] {
        let rule = format!("- {{name: t, hosts: [{tunnel}], action: Tunnel}}");
        let beside = [models.clone(), namespaced("q", &rule)];
        assert_eq!(of_documents(&beside), expected, "{tunnel}");
        assert_eq!(of_documents(&[models.clone(), audit(&namespaced("q", &rule))]), expected, "{tunnel}");
    }
}

#[test]
fn a_companion_is_denied_by_default_with_a_reason_of_its_own() {
    let models = namespaced("p", "- {name: m, hosts: [models.example], action: Inspect}");
    let policy = policy(&[models]).accompanied(TABLE);
    let destination = decide(&policy, "tls hello.example:443");
    assert_eq!(said(&destination), "Deny Deny postern/builtin/default-deny");
    assert!(destination.decision.why().contains("beside their provider"), "{destination:?}");
    let other = decide(&policy, "tls other.example:443");
    assert_eq!(other.decision.why(), "No rule names this host");
    assert!(policy.accompanies(&DnsName::parse("hello.example").unwrap()));
    assert!(!policy.mints(&postern::name::host::Host::parse("hello.example").unwrap()));
}
