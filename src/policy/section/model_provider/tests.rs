//! Providers as users write them: what they become, and every mistake with its place.

use std::time::Duration;

use super::*;
use crate::name::host::Host;
use crate::policy::address::Reserved;
use crate::policy::routing::testing::{assert_problems, namespaced, policy, problems};

const CREDENTIALS: &str = "  credentials:
    - {name: vllm, hosts: [vllm.models.svc.cluster.local], ports: [8443], fromEnv: KEY}
    - {name: deepseek, hosts: [api.deepseek.com], fromEnv: DEEPSEEK}
    - {name: aws, hosts: [bedrock.example], fromFile: aws.json, sigV4: {service: bedrock, region: us-east-1}}
";

fn with(provider: &str) -> String {
    format!("{CREDENTIALS}  modelProviders:\n    - {{{provider}}}\n")
}

#[test]
fn a_provider_has_an_endpoint_a_dialect_and_a_key() {
    let policy = policy(&[namespaced(
        "p",
        &with(
            "name: vllm, endpoint: 'https://vllm.models.svc.cluster.local:8443/v1', dialect: OpenAIChat, \
             credential: vllm, allowAddresses: [10.96.0.0/12], firstEvent: 1m30s",
        ),
    )]);
    let [provider] = policy.model_providers() else { panic!("one provider") };
    assert_eq!(provider.id.as_str(), "agents/p/modelProviders/vllm");
    assert_eq!(provider.endpoint.host, Host::parse("vllm.models.svc.cluster.local").unwrap());
    assert_eq!((provider.endpoint.port, provider.endpoint.path.as_str()), (8443, "/v1"));
    assert_eq!((provider.dialect, provider.key_in), (Dialect::OpenAIChat, KeyIn::Authorization));
    assert_eq!(provider.first_event, Some(Duration::from_secs(90)));
    let credential = provider.credential.as_ref().unwrap();
    assert!(Arc::ptr_eq(credential, &policy.credentials()[0]), "it is the policy's own");
}

#[test]
fn the_key_stands_where_the_dialect_has_it_unless_it_is_said() {
    let key_in = |more: &str| {
        let spec =
            with(&format!("name: a, endpoint: 'https://api.deepseek.com', credential: deepseek, {more}"));
        policy(&[namespaced("p", &spec)]).model_providers()[0].key_in
    };
    assert_eq!(key_in("dialect: Anthropic"), KeyIn::XApiKey);
    assert_eq!(key_in("dialect: OpenAIResponses"), KeyIn::Authorization);
    assert_eq!(key_in("dialect: OpenAIChat, keyIn: ApiKey"), KeyIn::ApiKey);
    assert_eq!(key_in("dialect: Anthropic, keyIn: Authorization"), KeyIn::Authorization);
}

/// A provider, where the mistake stands in it, and what is told.
const MISTAKES: &[(&str, &str, &str)] = &[
    (
        "endpoint: 'https://a.example', dialect: OpenAIChat",
        "{endpoint:",
        "spec.modelProviders[0].name: is required",
    ),
    (
        "name: A_b, endpoint: 'https://a.example', dialect: OpenAIChat",
        "A_b",
        "spec.modelProviders[0].name: a name is",
    ),
    (
        "name: a, dialect: OpenAIChat",
        "{name: a,",
        "spec.modelProviders[0].endpoint: is required: https://HOST",
    ),
    (
        "name: a, endpoint: 'https://a.example'",
        "{name: a, e",
        "spec.modelProviders[0].dialect: is required: OpenAIChat",
    ),
    (
        "name: a, endpoint: 'https://a.example', dialect: Gemini",
        "Gemini",
        "spec.modelProviders[0].dialect: unknown value \"Gemini\"; expected OpenAIChat, Anthropic or OpenAIResponses",
    ),
    (
        "name: a, endpoint: 'https://u:p@a.example', dialect: OpenAIChat",
        "'https://u:p",
        "spec.modelProviders[0].endpoint: has a user in front of the host",
    ),
    (
        "name: a, endpoint: 'https://vllm:8443', dialect: OpenAIChat",
        "'https://vllm:8443",
        "spec.modelProviders[0].endpoint: has an incomplete name",
    ),
    (
        "name: a, endpoint: 'https://api.deepseek.com/v1', dialect: OpenAIChat, credential: nobody",
        "nobody",
        "spec.modelProviders[0].credential: \"nobody\" is none of this policy's `credentials`: there are aws, deepseek, vllm",
    ),
    (
        "name: a, endpoint: 'https://api.deepseek.com/v1', dialect: OpenAIChat, credential: vllm",
        "vllm}",
        "spec.modelProviders[0].credential: `vllm` is not for api.deepseek.com on port 443",
    ),
    (
        "name: a, endpoint: 'https://vllm.models.svc.cluster.local/v1', dialect: OpenAIChat, credential: vllm",
        "vllm}",
        "spec.modelProviders[0].credential: `vllm` is not for vllm.models.svc.cluster.local on port 443",
    ),
    (
        "name: a, endpoint: 'http://api.deepseek.com:443', dialect: OpenAIChat, credential: deepseek",
        "deepseek}",
        "spec.modelProviders[0].credential: a key is sent by verified TLS alone",
    ),
    (
        "name: a, endpoint: 'https://bedrock.example', dialect: Anthropic, credential: aws",
        "aws}",
        "spec.modelProviders[0].credential: `aws` signs requests to AWS",
    ),
    (
        "name: a, endpoint: 'https://10.0.0.1', dialect: OpenAIChat, credential: deepseek",
        "deepseek}",
        "spec.modelProviders[0].credential: `deepseek` is not for an address",
    ),
    (
        "name: a, endpoint: 'https://api.deepseek.com/v1', dialect: OpenAIChat, keyIn: ApiKey",
        "ApiKey",
        "spec.modelProviders[0].keyIn: belongs to a provider with `credential`",
    ),
    (
        "name: a, endpoint: 'https://api.deepseek.com/v1', dialect: OpenAIChat, credential: deepseek, keyIn: Cookie",
        "Cookie",
        "spec.modelProviders[0].keyIn: unknown value \"Cookie\"; expected Authorization, XApiKey or ApiKey",
    ),
    (
        "name: a, endpoint: 'https://api.deepseek.com/v1', dialect: OpenAIChat, firstEvent: 500ms",
        "500ms",
        "spec.modelProviders[0].firstEvent: \"500ms\": expected a duration from 1s to 15m",
    ),
    (
        "name: a, endpoint: 'https://api.deepseek.com/v1', dialect: OpenAIChat, firstEvent: 16m",
        "16m",
        "spec.modelProviders[0].firstEvent: \"16m\"",
    ),
    (
        "name: a, endpoint: 'https://api.deepseek.com/v1', dialect: OpenAIChat, firstEvent: 0s",
        "0s",
        "spec.modelProviders[0].firstEvent: \"0s\"",
    ),
    (
        "name: a, endpoint: 'https://api.deepseek.com/v1', dialect: OpenAIChat, colour: red",
        "colour",
        "spec.modelProviders[0].colour: unknown field; expected name, endpoint, dialect",
    ),
];

#[test]
fn every_mistake_has_its_place() {
    for (written, at, expected) in MISTAKES {
        assert_problems(&[(&with(written), at, expected)]);
    }
}

#[test]
fn ranges_that_are_never_dialled_are_refused() {
    let with_ranges = |ranges: &str| {
        with(&format!(
            "name: a, endpoint: 'https://a.example', dialect: OpenAIChat, allowAddresses: [{ranges}]"
        ))
    };
    for range in [
        "169.254.169.254/32",
        "169.254.0.0/16",
        "0.0.0.0/0",
        "100.64.0.0/10",
        "168.63.129.16/32",
        "'fe80::/10'",
        "'fd00:ec2::254/128'",
        "'::/0'",
        "0.0.0.0/8",
        "224.0.0.0/4",
    ] {
        let found = problems(&[namespaced("p", &with_ranges(range))]);
        assert!(
            found.len() == 1
                && found[0].contains("spec.modelProviders[0].allowAddresses[0]: ")
                && found[0].contains(" meets "),
            "{range}: {found:?}"
        );
    }
    for range in ["10.96.0.0/12", "10.0.0.7/32", "192.168.0.0/16", "'fd12::/16'", "127.0.0.0/8", "'::1/128'"]
    {
        assert_eq!(problems(&[namespaced("p", &with_ranges(range))]), [""; 0], "{range}");
    }
    for (ranges, part) in [
        ("", "name at least one range"),
        ("10.0.0.1", "is no range of addresses"),
        ("10.0.0.1/8", "has bits behind its prefix"),
        (&vec!["10.96.0.0/12"; 17].join(", "), "has 17 ranges; a provider has at most 16"),
    ] {
        let found = problems(&[namespaced("p", &with_ranges(ranges))]);
        assert!(found.len() == 1 && found[0].contains(part), "{ranges}: {found:?}");
    }
}

#[test]
fn a_policy_has_at_most_32_providers_each_with_a_name_of_its_own() {
    let many = |count: usize| -> String {
        let one = |number| {
            format!("    - {{name: p{number}, endpoint: 'https://a.example', dialect: OpenAIChat}}\n")
        };
        format!("  modelProviders:\n{}", (0..count).map(one).collect::<String>())
    };
    assert_eq!(problems(&[namespaced("p", &many(32))]), [""; 0]);
    let found = problems(&[namespaced("p", &many(33))]);
    assert!(found.len() == 1 && found[0].contains("has 33 providers; a policy has at most 32"), "{found:?}");
    let twice = many(2).replace("p1", "p0");
    let found = problems(&[namespaced("p", &twice)]);
    assert!(
        found[0].contains("spec.modelProviders[1].name: the name `p0` is taken by spec.modelProviders[0]"),
        "{found:?}"
    );
}

#[test]
fn a_mistake_of_a_credential_is_told_once() {
    let spec = "  credentials: [{name: a, hosts: [a.example]}]\n  \
                modelProviders: [{name: x, endpoint: 'https://a.example', dialect: OpenAIChat, credential: a}]\n";
    let found = problems(&[namespaced("p", spec)]);
    assert!(found.len() == 1 && found[0].contains("spec.credentials[0]: needs a source"), "{found:?}");
}

#[test]
fn a_provider_lifts_denied_ranges_for_itself_alone() {
    let policy =
        policy(&[namespaced("p", "  destinations: [{name: no, cidrs: [10.99.0.0/16], action: Deny}]\n")]);
    let net = |text: &str| text.parse::<ipnet::IpNet>().unwrap();
    let outside = Reserved::new(&[net("10.96.0.0/12")], &[], &["10.96.0.9".parse().unwrap()]);
    let reserved = outside.clone().with_cluster(&["10.96.0.1".parse().unwrap()]);
    let allow = [net("10.96.0.0/12"), net("127.0.0.0/8"), net("::/128")];
    let denied = |ip: &str, is_in_cluster| {
        let reserved = if is_in_cluster { &reserved } else { &outside };
        reserved.judge_provider(&policy, &allow, (ip.parse().unwrap(), 443)).is_some()
    };
    assert!(
        !denied("10.96.1.2", true) && reserved.judge(&policy, "10.96.1.2".parse().unwrap(), 443).is_some()
    );
    assert!(!denied("::ffff:10.96.1.2", true) && !denied("93.184.216.34", true));
    for ip in ["10.96.0.9", "10.99.0.1", "169.254.169.254", "::", "64:ff9b::a9fe:a9fe", "198.18.0.1"] {
        assert!(denied(ip, true) && denied(ip, false), "{ip}");
    }
    assert!(denied("10.96.0.1", true));
    assert!(denied("127.0.0.1", true) && !denied("127.0.0.1", false));
}

#[test]
fn a_provider_is_not_the_gateway_itself_and_its_neighbours_may_be_one() {
    let policy = policy(&[namespaced("p", "  destinations: []\n")]);
    let at = |text: &str| text.parse::<std::net::SocketAddr>().unwrap();
    let listeners = ["127.0.0.1:15001", "0.0.0.0:15002", "[::]:15003", "[::1]:15004"].map(at).to_vec();
    let reserved = Reserved::new(&[], &[], &[]).with_listeners(listeners);
    let allow = ["127.0.0.0/8".parse().unwrap(), "::1/128".parse().unwrap()];
    let denied = |text: &str| {
        let at = at(text);
        reserved.judge_provider(&policy, &allow, (at.ip(), at.port())).is_some()
    };
    for own in [
        "127.0.0.1:15001",
        "[::ffff:127.0.0.1]:15001",
        "127.0.0.1:15002",
        "127.8.0.1:15002",
        "[::1]:15003",
        "127.0.0.1:15003",
        "[::1]:15004",
    ] {
        assert!(denied(own), "{own}");
    }
    for other in
        ["127.0.0.1:8000", "127.0.0.2:15001", "127.0.0.1:15004", "[::1]:15001", "93.184.216.34:15002"]
    {
        assert!(!denied(other), "{other}");
    }
}
