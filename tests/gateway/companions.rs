//! Hosts that agents dial beside their provider: refused where the agent reads it, opened by nothing but a rule.

use hickory_proto::op::ResponseCode;

use crate::support::{Answer, Gateway, Pki, Setup, Upstream};

const MODELS: &str = "{name: models, hosts: [api.anthropic.com], action: Inspect}";
const DEFAULT_DENY: &str = "postern/builtin/default-deny";

/// A gateway whose CA may vouch for these names alone, and all hosts' server.
fn constrained(permitted: &[&str], destinations: &[&str]) -> (Upstream, Gateway) {
    with(destinations, |setup| setup.issuing(Pki::permitting("Constrained CA", permitted)))
}

fn with(destinations: &[&str], change: impl FnOnce(Setup) -> Setup) -> (Upstream, Gateway) {
    let upstreams = Pki::new("Upstream Test CA");
    let names = ["api.anthropic.com", "platform.claude.com", "chatgpt.com"];
    let upstream = Upstream::tls(&upstreams, &names);
    let setup = names.iter().fold(Setup::new(&upstreams), |setup, name| setup.host(name, upstream.address()));
    let gateway = change(setup.destinations(destinations)).start();
    (upstream, gateway)
}

fn refused_at_connect(gateway: &Gateway, authority: &str) -> Answer {
    gateway.agent().connect(authority).err().unwrap()
}

#[test]
fn a_companion_of_a_provider_that_a_rule_opens_is_refused_inside_tls() {
    let (upstream, gateway) = constrained(&["api.anthropic.com", "platform.claude.com"], &[MODELS]);
    let mut connection = gateway.agent().tls("platform.claude.com");

    connection.send("GET /v1/oauth/hello HTTP/1.1\r\nHost: platform.claude.com\r\n\r\n");

    let answer = connection.read_answer();
    answer.assert_refused_by_provider(DEFAULT_DENY);
    assert_eq!((answer.status, connection.issuer().as_str()), (403, "Constrained CA"));
    assert!(answer.text().contains("which agents dial beside their provider"), "{}", answer.text());
    let event = gateway.wait_for("Connection", "Deny");
    assert_eq!(event["destination"]["intercepted"], true, "{event}");
    assert!(upstream.links().is_empty(), "nothing is dialled");
    let _ = gateway.agent().get("https://api.anthropic.com/api/hello");
    assert_eq!(upstream.requests()[0].authority, "api.anthropic.com");
}

#[test]
fn a_companion_for_which_the_ca_may_not_vouch_is_refused_at_connect() {
    let (_, gateway) = constrained(&["api.anthropic.com"], &[MODELS]);

    refused_at_connect(&gateway, "platform.claude.com:443").assert_refused(403, DEFAULT_DENY);
}

#[test]
fn a_host_that_is_no_companion_of_what_is_opened_is_refused_at_connect() {
    let permitted = ["api.anthropic.com", "platform.claude.com", "ab.chatgpt.com", "evil.example.com"];
    let (_, gateway) = constrained(&permitted, &[MODELS]);
    for authority in ["ab.chatgpt.com:443", "evil.example.com:443", "platform.claude.com:8443"] {
        refused_at_connect(&gateway, authority).assert_refused(403, DEFAULT_DENY);
    }
}

#[test]
fn a_companion_that_a_rule_names_is_as_the_rule_says() {
    let (upstream, gateway) = with(
        &[
            MODELS,
            "{name: hello, hosts: [platform.claude.com], action: Inspect}",
            "{name: no, hosts: [downloads.claude.ai], action: Deny}",
            "{name: pass, hosts: [chatgpt.com], action: Tunnel}",
        ],
        |setup| setup,
    );
    let agent = gateway.agent();
    let started = agent.get("https://platform.claude.com/v1/oauth/hello");
    assert_eq!(started.header("x-postern-decision"), None, "what it needs to start: {started:?}");
    agent
        .get("https://platform.claude.com/v1/oauth/token")
        .assert_refused_by_provider("postern/builtin/endpoint");
    agent.get("https://downloads.claude.ai/").assert_refused(403, "agents/test/no");
    assert!(agent.dial("chatgpt.com").open().is_err(), "its own certificate is not Postern's");
    let names: Vec<_> = upstream.requests().into_iter().map(|seen| seen.authority).collect();
    assert_eq!(names, ["platform.claude.com"]);
}

#[test]
fn where_the_ca_may_vouch_for_every_name_all_hosts_of_providers_are_refused_inside_tls() {
    let (upstream, gateway) = with(&["{name: a, hosts: [api.example.com], action: Inspect}"], |setup| setup);
    for name in ["chatgpt.com", "ab.chatgpt.com", "acme.openai.azure.com", "api.anthropic.com"] {
        let answer = gateway.agent().get(&format!("https://{name}/"));
        assert_eq!(answer.header("x-postern-rule"), Some(DEFAULT_DENY), "{name}: {answer:?}");
    }
    refused_at_connect(&gateway, "evil.example.com:443").assert_refused(403, DEFAULT_DENY);
    assert!(upstream.links().is_empty());
}

#[test]
fn a_wildcard_that_denies_everything_is_named_to_a_companion() {
    let all = "{name: none, hosts: ['**.claude.com'], action: Deny}";
    let (_, gateway) = constrained(&["api.anthropic.com", "platform.claude.com"], &[MODELS, all]);

    gateway.agent().get("https://platform.claude.com/").assert_refused_by_provider("agents/test/none");
    refused_at_connect(&gateway, "evil.claude.com:443").assert_refused(403, "agents/test/none");
}

#[test]
fn the_resolver_answers_companions_whose_refusal_can_be_shown() {
    let permitted = ["api.anthropic.com", "platform.claude.com", "ab.chatgpt.com"];
    let authority = Pki::permitting("Constrained CA", &permitted);
    let (_, gateway) = with(&[MODELS], |setup| setup.issuing(authority).resolver("198.18.0.0/15"));
    let resolver = gateway.resolver();
    let _ = resolver.address("platform.claude.com");
    for name in ["ab.chatgpt.com", "downloads.claude.ai", "x.platform.claude.com", "claude.com"] {
        assert_eq!(resolver.code(name), ResponseCode::NXDomain, "{name}");
    }
}

#[test]
fn a_policy_that_is_changed_decides_at_once_whether_a_host_is_a_companion() {
    let (_, gateway) = constrained(&["api.anthropic.com", "platform.claude.com"], &[MODELS]);
    gateway.agent().get("https://platform.claude.com/").assert_refused_by_provider(DEFAULT_DENY);

    let other = crate::support::setup::policy(&["{name: a, hosts: [api.example.com], action: Inspect}"]);
    gateway.reload_policy(&other, "success");

    refused_at_connect(&gateway, "platform.claude.com:443").assert_refused(403, DEFAULT_DENY);
}

#[test]
fn a_refused_connect_says_rule_and_reason_in_its_first_line() {
    let (_, gateway) = with(&[MODELS], |setup| setup);
    let mut connection = gateway.agent().open();
    connection.send("CONNECT evil.example.com:443 HTTP/1.1\r\nHost: evil.example.com:443\r\n\r\n");

    let line = String::from_utf8(connection.read_until(b"\r\n")).unwrap();

    let said = "HTTP/1.1 403 Blocked by policy: postern/builtin/default-deny (No rule names this host)";
    assert_eq!(line.trim_end(), said);
}
