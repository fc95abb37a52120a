//! Endpoints of providers that lead where nothing may be asked: metadata, the pod, the gateway itself, another tier's denial.

use serde_json::json;

use crate::routing::{
    ORIGIN, SPARE, Script, Scripts, VLLM, message, policy, request, routed, routed_by, text_of,
};
use crate::support::journal::poll;
use crate::support::upstream::Reply;
use crate::support::{Pki, Setup, Upstream};

const CHAIN: &str = "- {name: all, match: {models: ['*']}, to: [coder], fallback: [chat]}";
const ALONE: &str = "- {name: all, match: {models: ['*']}, to: [coder]}";
const DENIED: &str = "postern/builtin/denied-address";

/// The same policy whose first server is this one, without a key, with more fields.
fn at(policy: &str, endpoint: &str, more: &str) -> String {
    let own = format!("endpoint: 'https://{VLLM}:8443/v1', dialect: OpenAIChat, credential: vllm");
    assert!(policy.contains(&own));
    policy.replace(&own, &format!("endpoint: '{endpoint}', dialect: OpenAIChat{more}"))
}

/// L6: no policy can lift metadata, link-local or the unspecified address for a provider, in whichever form; loopback it
/// can, outside of a pod.
#[test]
fn no_policy_opens_metadata_to_a_provider() {
    let problems = |ranges: &str| {
        let text =
            at(&policy(ALONE, ""), "http://model.example/v1", &format!(", allowAddresses: [{ranges}]"));
        let setup = Setup::new(&Pki::new("Upstream Test CA")).policy(&text);
        let said = setup.run(&["policy", "check", "policy.yaml"]);
        (said.status.success(), format!("{}{}", said.stdout, said.stderr))
    };
    for range in [
        "169.254.169.254/32",
        "169.254.0.0/16",
        "0.0.0.0/0",
        "'::/0'",
        "168.63.129.16/32",
        "100.100.100.200/32",
        "'fe80::/10'",
        "'fd00:ec2::254/128'",
        "'::ffff:169.254.169.254/128'",
        "0.0.0.0/32",
        "10.0.0.0/8, 169.254.0.0/24",
    ] {
        let (holds, said) = problems(range);
        assert!(!holds && said.contains("allowAddresses"), "{range}: {said}");
    }
    for range in ["10.96.0.0/12", "127.0.0.0/8", "'fd12:3456::/32'"] {
        let (holds, said) = problems(range);
        assert!(holds, "{range}: {said}");
    }
}

/// L6: an endpoint at a forbidden address is not dialled, however it is written: nothing else is either.
#[test]
fn an_endpoint_at_metadata_is_not_dialled() {
    for host in [
        "169.254.169.254",
        "168.63.129.16",
        "100.100.100.200",
        "0.0.0.0",
        "127.0.0.1",
        "[::1]",
        "[fe80::1]",
        "[fd00:ec2::254]",
        "[::ffff:169.254.169.254]",
        "[64:ff9b::a9fe:a9fe]",
        "[2002:a9fe:a9fe::1]",
    ] {
        let policy = at(&policy(ALONE, ""), &format!("http://{host}:80/latest"), "");
        let test =
            routed_by(&policy, Scripts::default(), |setup| setup.set("/upstream/allowAddresses", json!([])));
        let answer = test.ask(&request("claude-opus-4", json!({})));
        let told = test.gateway.wait_for_event("the failed attempt", |event| {
            event["kind"] == "Policy"
                && event["decision"]["reason"].as_str().unwrap().contains("coder gave no answer")
        });
        let reason = told["decision"]["reason"].as_str().unwrap();
        assert!(reason.contains("loopback, link-local, metadata"), "{host}: {reason}");
        assert_eq!(answer.status, 502, "{host}");
    }
}

/// L6: a name is judged by the address that it leads to at this moment. What policy lifts for a provider is lifted for
/// routed requests alone: the agent itself is not let there.
#[test]
fn an_endpoints_name_that_leads_to_a_forbidden_address_is_not_dialled() {
    let local = Upstream::build().script(|seen| Some(crate::routing::chat(seen, "local"))).start();
    let port = local.address().port();
    let endpoint = format!("http://localhost:{port}/v1");
    let start = |more: &str, change: &dyn Fn(Setup) -> Setup| {
        let text = at(&policy(CHAIN, ""), &endpoint, more);
        routed_by(&text, Scripts::default(), |setup| change(setup.set("/upstream/allowAddresses", json!([]))))
    };
    let lifts = ", allowAddresses: [127.0.0.0/8, '::1/128']";
    let in_pod = |setup: Setup| setup.variable("KUBERNETES_SERVICE_HOST", "192.0.2.1");
    for (more, change) in [("", &(|setup| setup) as &dyn Fn(Setup) -> Setup), (lifts, &in_pod)] {
        let test = start(more, change);
        // The spare one is on the loopback too: nothing is left.
        let answer = test.ask(&request("claude-opus-4", json!({})));
        assert_eq!(answer.status, 502, "{more}: {}", answer.text());
        assert!(answer.text().contains("loopback, link-local, metadata"), "{}", answer.text());
        assert!(local.links().is_empty() && test.spare.links().is_empty());
    }

    // The twin: outside of a pod the policy may lift it, for the provider and nobody else.
    let test = start(lifts, &|setup| setup);
    let answer = test.ask(&request("claude-opus-4", json!({})));
    assert_eq!((answer.status, text_of(&answer).as_str()), (200, "local"), "{}", answer.text());
    let links = local.links().len();
    for url in [format!("http://localhost:{port}/v1/models"), format!("http://127.0.0.1:{port}/v1/models")] {
        test.gateway.agent().get(&url).assert_refused(403, "postern/builtin/default-deny");
    }
    assert_eq!(local.links().len(), links);
}

/// L6: an address that a destination of the agent may reach is still denied to a provider by `upstream.denyAddresses`,
/// and what a provider lifts is denied to the agent's destinations.
#[test]
fn what_a_provider_lifts_is_lifted_for_no_destination() {
    let text = at(&policy(ALONE, ""), &format!("https://{VLLM}:8443/v1"), ", allowAddresses: [127.0.0.0/8]")
        .replace(&format!("hosts: [{ORIGIN}]"), &format!("hosts: [{ORIGIN}, {VLLM}]"))
        .replace("credentials:\n    - {name: vllm, hosts: [vllm.models.example], ports: [8443], secretKeyRef: {name: keys, key: vllm}}\n  ", "");
    let test = routed_by(&text, Scripts::default(), |setup| {
        setup
            .set("/upstream/allowAddresses", json!([]))
            .set("/upstream/denyAddresses", json!(["127.0.0.0/8"]))
    });
    let answer = test.ask(&request("claude-opus-4", json!({})));
    assert_eq!((answer.status, text_of(&answer).as_str()), (200, "vllm"), "{}", answer.text());
    let links = test.vllm.links().len();
    let direct = test.gateway.agent().request("GET", &format!("https://{VLLM}/v1/models"), &[], b"");
    direct.assert_refused(403, DENIED);
    assert_eq!(test.vllm.links().len(), links);
}

/// L6: a redirect is followed by nobody, wherever it leads, and no other model is asked for it.
#[test]
fn a_redirect_of_a_models_server_is_not_followed() {
    let scripts: [Script; 4] = [
        |_| Some(Reply::of(302, "").header("location", format!("https://{SPARE}/v1/chat/completions"))),
        |_| Some(Reply::of(307, "").header("location", format!("https://{ORIGIN}/v1/messages"))),
        |_| Some(Reply::of(308, "").header("location", "http://169.254.169.254/latest/meta-data")),
        |_| {
            Some(
                Reply::of(301, "{}")
                    .header("location", "/v1/elsewhere")
                    .header("content-type", "application/json"),
            )
        },
    ];
    for (number, vllm) in scripts.into_iter().enumerate() {
        let test = routed(CHAIN, "", Scripts { vllm, ..Scripts::default() });
        let answer = test.ask(&request("claude-opus-4", json!({"stream": number % 2 == 0})));
        assert_eq!((answer.status, answer.header("location")), (400, None), "{answer:?}");
        assert!(answer.text().contains("redirects, which is not followed"), "{}", answer.text());
        assert!(!answer.text().contains("169.254"), "{}", answer.text());
        assert_eq!(test.vllm.requests().len(), 1);
        assert!(test.spare.links().is_empty() && test.origin.requests().is_empty());
    }
    // The twin: without one it answers.
    let test = routed(CHAIN, "", Scripts::default());
    assert_eq!(text_of(&test.ask(&request("claude-opus-4", json!({})))), "vllm");
}

/// L7: a Deny rule holds for a provider whichever tier it is of: the other's model is not dialled.
#[test]
fn a_deny_of_either_tier_holds_for_a_provider() {
    let denial = |tier: &str, rule: &str| {
        let (kind, namespace) = if tier == "cluster" {
            ("ClusterEgressPolicy", "")
        } else {
            ("EgressPolicy", ", namespace: agents")
        };
        format!(
            "---\napiVersion: postern.dev/v1alpha1\nkind: {kind}\nmetadata: {{name: floor{namespace}}}\nspec:\n  destinations: [{{name: no-vllm, action: Deny, {rule}}}]\n"
        )
    };
    let of_cluster = policy(CHAIN, "")
        .replace("kind: EgressPolicy\nmetadata: {name: p, namespace: agents}", "kind: ClusterEgressPolicy\nmetadata: {name: p}")
        .replace("  credentials:\n    - {name: vllm, hosts: [vllm.models.example], ports: [8443], secretKeyRef: {name: keys, key: vllm}}\n", "")
        .replace(", credential: vllm", "");
    let host = format!("hosts: [{VLLM}], ports: [8443]");
    for (name, text) in [
        (
            "of the cluster, about a namespace's provider",
            format!("{}{}", policy(CHAIN, ""), denial("cluster", &host)),
        ),
        (
            "by a pattern",
            format!(
                "{}{}",
                policy(CHAIN, ""),
                denial("cluster", "hosts: ['**.models.example'], ports: [8443]")
            ),
        ),
        (
            "of the namespace, about a provider of the cluster",
            format!("{of_cluster}{}", denial("namespace", &host)),
        ),
        (
            "of the namespace, beside its provider",
            format!("{}{}", policy(CHAIN, ""), denial("namespace", &host)),
        ),
    ] {
        let test = routed_by(&text, Scripts::default(), |setup| setup);
        let answer = test.ask(&request("claude-opus-4", json!({})));
        assert_eq!((answer.status, text_of(&answer).as_str()), (200, "spare"), "{name}: {}", answer.text());
        assert!(test.vllm.links().is_empty(), "{name}");
        let told = test.gateway.wait_for_event("the failed attempt", |event| {
            event["kind"] == "Policy" && event["decision"]["reason"].as_str().unwrap().contains("no-vllm")
        });
        assert!(told["decision"]["reason"].as_str().unwrap().contains("denies its host"), "{told}");
    }
    // The twins: about another port or host it says nothing of this one.
    for rule in
        [format!("hosts: [{VLLM}], ports: [443]"), "hosts: [other.models.example], ports: [8443]".to_owned()]
    {
        let text = format!("{}{}", policy(CHAIN, ""), denial("cluster", &rule));
        let test = routed_by(&text, Scripts::default(), |setup| setup);
        assert_eq!(text_of(&test.ask(&request("claude-opus-4", json!({})))), "vllm", "{rule}");
    }
}

/// L13: a provider that is one of the gateway's own listeners leads nowhere, and certainly not round and round.
#[test]
fn a_route_to_the_gateways_own_listener_leads_nowhere() {
    let upstreams = Pki::new("Upstream Test CA");
    let origin = Upstream::build()
        .identity(upstreams.leaf(&[ORIGIN]))
        .script(|_| Some(Reply::of(200, message("origin")).header("content-type", "application/json")))
        .start();
    let text = |endpoint: &str, dialect: &str| {
        format!(
            "apiVersion: postern.dev/v1alpha1\nkind: EgressPolicy\nmetadata: {{name: p, namespace: agents}}\nspec:\n  \
             destinations: [{{name: claude, hosts: [{ORIGIN}], action: Inspect}}]\n  \
             modelProviders: [{{name: own, endpoint: '{endpoint}', dialect: {dialect}, allowAddresses: [127.0.0.0/8]}}]\n  \
             models: [{{name: loop, provider: own}}]\n  \
             routes: [{{name: all, match: {{models: ['*']}}, to: [loop]}}]\n"
        )
    };
    let gateway = Setup::new(&upstreams)
        .policy(&text("http://127.0.0.1:9/v1", "Anthropic"))
        .set("/upstream/allowAddresses", json!([]))
        .set("/listeners/transparent", json!({"port": 0}))
        .reverse(&format!("https://{ORIGIN}"))
        .host(ORIGIN, origin.address())
        .start();
    let body = request("claude-opus-4", json!({})).to_string();
    let mut asked = 0;
    for listener in ["reverse", "explicit", "transparent", "admin"] {
        for dialect in ["Anthropic", "OpenAIChat"] {
            let endpoint = format!("http://{}/v1", gateway.address(listener));
            gateway.reload_policy(&text(&endpoint, dialect), "success");
            let url = format!("https://{ORIGIN}/v1/messages");
            let answer = gateway.agent().request(
                "POST",
                &url,
                &[("content-type", "application/json")],
                body.as_bytes(),
            );
            asked += 1;
            assert_eq!(answer.status, 502, "{listener} {dialect}: {}", answer.text());
            assert!(answer.text().contains("the gateway itself"), "{listener} {dialect}: {}", answer.text());
        }
    }
    let ended = || gateway.events().iter().filter(|event| event["kind"] == "Response").count();
    poll("every end", || (ended() >= asked).then_some(()));
    let requests = gateway.events().iter().filter(|event| event["kind"] == "Request").count();
    assert_eq!((requests, ended()), (asked, asked), "one request came back to the gateway");
    assert!(origin.requests().is_empty());

    // The twin: another server on the loopback answers.
    let local = Upstream::build().script(|seen| Some(crate::routing::chat(seen, "local"))).start();
    gateway.reload_policy(&text(&format!("http://{}/v1", local.address()), "OpenAIChat"), "success");
    let url = format!("https://{ORIGIN}/v1/messages");
    let answer =
        gateway.agent().request("POST", &url, &[("content-type", "application/json")], body.as_bytes());
    assert_eq!(text_of(&answer), "local", "{}", answer.text());
}
