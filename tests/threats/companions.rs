//! A leaf for a host that no rule names: what it can be made to carry, and how many of them there are.

use crate::support::{Gateway, Pki, Setup, Upstream};

const MODELS: &str = "{name: models, hosts: [api.anthropic.com], action: Inspect, \
                      endpoints: [{methods: [GET], path: /echo}]}";
const DEFAULT_DENY: Option<&str> = Some("postern/builtin/default-deny");

fn gateway() -> (Upstream, Gateway) {
    let upstreams = Pki::new("Upstream Test CA");
    let upstream = Upstream::tls(&upstreams, &["api.anthropic.com", "platform.claude.com"]);
    let setup = Setup::new(&upstreams)
        .host("api.anthropic.com", upstream.address())
        .host("platform.claude.com", upstream.address())
        .destinations(&[MODELS]);
    (upstream, setup.start())
}

/// What a rule allows.
fn hello(gateway: &Gateway) -> u16 {
    gateway.agent().get("https://api.anthropic.com/echo").status
}

/// B2: behind the certificate of a host that no rule names nothing is said but its refusal: not to a Host that a rule
/// names, to an absolute form, an upgrade, a CONNECT, nor to a second request.
#[test]
fn a_leaf_of_a_companion_carries_its_refusal_and_nothing_else() {
    let (upstream, gateway) = gateway();
    for request in [
        "GET /v1/oauth/hello HTTP/1.1\r\nHost: platform.claude.com\r\n\r\n",
        "GET /echo HTTP/1.1\r\nHost: api.anthropic.com\r\n\r\n",
        "GET https://api.anthropic.com/echo HTTP/1.1\r\nHost: api.anthropic.com\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: platform.claude.com\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\
         Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: MDEyMzQ1Njc4OWFiY2RlZg==\r\n\r\n",
        "POST /v1/messages HTTP/1.1\r\nHost: api.anthropic.com\r\nContent-Length: 2\r\n\r\n{}",
    ] {
        let mut connection = gateway.agent().tls("platform.claude.com");
        connection.send(request);
        let answer = connection.read_answer();
        assert_eq!((answer.status, answer.header("x-postern-rule")), (403, DEFAULT_DENY), "{request}");
        assert_eq!(answer.header("connection"), Some("close"), "{request}");
    }
    let mut connection = gateway.agent().tls("platform.claude.com");
    connection.send("CONNECT api.anthropic.com:443 HTTP/1.1\r\nHost: api.anthropic.com:443\r\n\r\n");
    assert_ne!(connection.read_answer().status, 200);
    assert!(upstream.links().is_empty(), "nobody is dialled");

    assert_eq!(hello(&gateway), 200);
}

/// B1: the name of a companion at an address of the agent's choice reaches neither.
#[test]
fn a_companions_name_at_an_address_of_the_agents_own_reaches_nobody() {
    let (upstream, gateway) = gateway();
    let dial = |name| gateway.agent().dial(name).authority("192.0.2.7:443").open().unwrap();
    let mut connection = dial("platform.claude.com");
    connection.send("GET /v1/oauth/hello HTTP/1.1\r\nHost: platform.claude.com\r\n\r\n");

    assert_eq!(connection.read_answer().header("x-postern-rule"), DEFAULT_DENY);
    assert!(upstream.links().is_empty());

    let mut allowed = dial("api.anthropic.com");
    allowed.send("GET /echo HTTP/1.1\r\nHost: api.anthropic.com\r\n\r\n");
    assert_eq!(allowed.read_answer().status, 200);
    assert_eq!(upstream.links()[0].sni.as_deref(), Some("api.anthropic.com"));
}

/// J3: the provider tables have wildcards, below which an agent can invent names: leaves that carry a refusal alone are
/// bounded per second, and what is allowed goes on meanwhile.
#[test]
fn a_flood_of_names_below_a_providers_wildcard_is_bounded_per_second() {
    let (_upstream, gateway) = gateway();
    let agent = gateway.agent();
    let opened = |number: usize| agent.dial(&format!("h{number}.openai.azure.com")).open().is_ok();

    let refused = (0..5_000).position(|number| !opened(number));

    let most = refused.expect("a bound");
    assert!(most > 50, "an agent's start fits: {most}");
    gateway.wait_for_metric("postern_limit_refusals_total", &[("limit", "refusalLeaves")], 1.0);
    assert_eq!(hello(&gateway), 200);
    let known = agent.get("https://h0.openai.azure.com/");
    assert_eq!(known.header("x-postern-rule"), DEFAULT_DENY, "what is there is still said");
}
