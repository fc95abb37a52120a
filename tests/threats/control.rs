//! Policy as a control plane: what is invalid changes nothing, what is new holds for what is open.

use crate::gateway::{INSPECT_API, inspected};
use crate::support::journal::poll;
use crate::support::setup::policy;
use crate::support::upstream::RawUpstream;
use crate::support::{Connection, Ending, Gateway, Pki, Setup, Upstream};

const DENY_OTHER: &str = "{name: no-other, hosts: [other.example.com], action: Deny}";

/// H4: what a policy says, its names and its place are told on the Unix socket; the pod network reads fixed words.
#[test]
fn a_mistake_in_a_policy_is_quoted_on_the_socket_alone() {
    let test = inspected();
    assert_eq!(test.gateway.admin("/readyz").text(), "ready\n");

    test.gateway.reload_policy(
        &policy(&["{name: canary-rule, hosts: ['canary host.example'], action: Canary}"]),
        "failure",
    );

    let ready = test.gateway.admin("/readyz");
    assert_eq!((ready.status, ready.text()), (503, "the newest files are not in force\n".to_owned()));
    for path in ["/metrics", "/healthz"] {
        let said = test.gateway.admin(path).text();
        assert!(!said.to_lowercase().contains("canary") && !said.contains("policy.yaml"), "{path}: {said}");
    }
    let status = test.gateway.status()["reasons"].to_string();
    for part in ["policy.yaml", "canary host.example", "Canary"] {
        assert!(status.contains(part), "{part}: {status}");
    }
}

/// H4: a policy that is invalid, empty, cut or gone is never an empty one: the last good stays, and it is said.
#[test]
fn an_invalid_policy_opens_nothing() {
    let test = inspected();
    let good = test.gateway.status()["policy"]["revision"].clone();
    let half = policy(&[INSPECT_API]);
    for broken in [
        "",
        "# nothing\n",
        "[]\n",
        "kind: EgressPolicy\n",
        &half[..half.len() / 2],
        &policy(&["{name: all, hosts: ['**'], action: Allow}"]),
        &policy(&["{name: all, hosts: ['**'], action: Inspect, tools: []}"]),
        &format!("{}---\n{}", policy(&["{name: all, hosts: ['**'], action: Tunnel}"]), "kind: Nonsense\n"),
        &policy(&["{name: all, hosts: ['**'], action: Inspect}"])
            .replace("spec:", "spec:\n  failurePolicy: Opened"),
    ] {
        test.gateway.reload_policy(broken, "failure");
        assert_eq!(test.gateway.status()["policy"]["revision"], good, "{broken:?}");
        let answer = test.gateway.agent().connect("evil.example.com:443").err().unwrap();
        answer.assert_refused(403, "postern/builtin/default-deny");
    }
    std::fs::remove_file(test.gateway.path().join("policy.yaml")).unwrap();
    test.gateway.signal("HUP");
    test.gateway.wait_for_metric("postern_policy_reloads_total", &[("result", "failure")], 10.0);
    assert_eq!(test.gateway.admin("/readyz").status, 503, "it was wrong, and is out of reach now");
    test.gateway
        .agent()
        .connect("evil.example.com:443")
        .err()
        .unwrap()
        .assert_refused(403, "postern/builtin/default-deny");
    assert!(test.gateway.log().contains("policy.yaml"), "{}", test.gateway.log());
    assert!(test.gateway.status().to_string().contains("policy.yaml"), "{}", test.gateway.status());

    assert_eq!(test.gateway.agent().get("https://api.example.com/echo").status, 200, "the last good holds");
    test.gateway.reload_policy(&policy(&[INSPECT_API, DENY_OTHER]), "success");
    assert_ne!(test.gateway.status()["policy"]["revision"], good);
}

/// H4: a gateway that never had a valid policy does not start, and one that selects nobody denies everything.
#[test]
fn without_a_policy_nothing_passes() {
    let upstreams = Pki::new("Upstream Test CA");
    for broken in ["", "not: a policy\n", &policy(&["{name: all, hosts: ['**'], action: Allow}"])] {
        let said = Setup::new(&upstreams).policy(broken).run(&["gateway", "--config", "settings.yaml"]);
        assert_eq!(said.status.code(), Some(1), "{broken:?}: {said:?}");
        assert!(said.stderr.contains("policy.yaml"), "{broken:?}: {}", said.stderr);
    }
    let upstream = Upstream::tls(&upstreams, &["api.example.com"]);
    let start = |selector: &str| {
        let text = policy(&["{name: all, hosts: ['**'], action: Inspect}"]);
        let text = text.replace("podSelector: {}", &format!("podSelector: {selector}"));
        Setup::new(&upstreams).host("api.example.com", upstream.address()).policy(&text).start()
    };

    let unselected = start("{matchLabels: {app: other}}");
    let answer = unselected.agent().connect("api.example.com:443").err().unwrap();
    answer.assert_refused(403, "postern/builtin/no-policy");
    unselected.agent().get("http://api.example.com/").assert_refused(403, "postern/builtin/no-policy");
    assert!(upstream.links().is_empty());

    assert_eq!(start("{}").agent().get("https://api.example.com/echo").status, 200);
}

/// H13: tunnels of TLS and of opaque bytes that a new policy denies are closed; those that it allows go on.
#[test]
fn an_open_tunnel_ends_with_its_permission() {
    let (first, second) = (echoing(), echoing());
    let rule = |name: &str, server: &RawUpstream| {
        let port = server.address().port();
        format!(
            "{{name: {name}, hosts: [{name}.example.com], ports: [{port}], action: Tunnel, protocol: Opaque}}"
        )
    };
    let (denied_rule, kept_rule) = (rule("denied", &first), rule("kept", &second));
    let gateway = Setup::new(&Pki::new("Upstream Test CA"))
        .host("denied.example.com", first.address())
        .host("kept.example.com", second.address())
        .destinations(&[&denied_rule, &kept_rule])
        .start();
    let open = |name: &str, server: &RawUpstream| {
        let authority = format!("{name}.example.com:{}", server.address().port());
        let mut connection = gateway.agent().connect(&authority).unwrap();
        connection.send("one\n");
        assert_eq!(connection.read_until(b"\n"), b"one\n");
        connection
    };
    let (mut denied, mut kept) = (open("denied", &first), open("kept", &second));

    gateway.reload_policy(&policy(&[&kept_rule]), "success");

    assert!(ended(&mut denied));
    kept.send("two\n");
    assert_eq!(kept.read_until(b"\n"), b"two\n");
    gateway.wait_for_metric("postern_connections_closed_total", &[("reason", "policy_changed")], 1.0);
    let event = gateway.wait_for_event("the tunnel's end", |event| {
        event["kind"] == "Response" && event["destination"]["reason"].is_string()
    });
    assert_eq!(event["destination"]["host"], "denied.example.com");
}

/// H13: an open WebSocket ends where its host is denied or may no longer be upgraded; another goes on.
#[test]
fn an_open_websocket_ends_with_its_permission() {
    for taken_away in [
        "",
        "{name: api, hosts: [api.example.com], action: Inspect}",
        "{name: api, hosts: [api.example.com], action: Deny}",
    ] {
        let upstreams = Pki::new("Upstream Test CA");
        let (api, other) = (
            Upstream::tls(&upstreams, &["api.example.com"]),
            Upstream::tls(&upstreams, &["other.example.com"]),
        );
        let rule = |name: &str| {
            format!("{{name: {name}, hosts: [{name}.example.com], action: Inspect, upgrade: Allow}}")
        };
        let gateway = Setup::new(&upstreams)
            .host("api.example.com", api.address())
            .host("other.example.com", other.address())
            .destinations(&[&rule("api"), &rule("other")])
            .start();
        let (mut closed, mut kept) =
            (websocket(&gateway, "api.example.com"), websocket(&gateway, "other.example.com"));

        let rules: Vec<&str> = [taken_away].into_iter().filter(|rule| !rule.is_empty()).collect();
        let other_rule = rule("other");
        gateway.reload_policy(&policy(&[rules.as_slice(), &[&other_rule]].concat()), "success");

        assert!(ended(&mut closed), "{taken_away:?}");
        kept.send([0x81, 0x82, 1, 2, 3, 4, b'h' ^ 1, b'i' ^ 2]);
        assert_eq!(kept.read_exactly(4), b"\x81\x02hi");
        poll("the upstream's end", || api.links().iter().all(|link| link.ended).then_some(()));
    }
}

/// H13: a request on a connection that was made before, over either version, meets the new policy.
#[test]
fn an_open_connection_meets_the_new_policy() {
    let test = inspected();
    let agent = test.gateway.agent();
    let mut h1 = agent.tls("api.example.com");
    let h2 = agent.h2("api.example.com");
    h1.send("GET /echo HTTP/1.1\r\nHost: api.example.com\r\n\r\n");
    assert_eq!(h1.read_answer().status, 200);
    assert_eq!(h2.get("https://api.example.com/echo").status, 200);

    let narrower = "{name: api, hosts: [api.example.com], action: Inspect, endpoints: [{methods: [GET], path: /status/*}]}";
    test.gateway.reload_policy(&policy(&[narrower]), "success");

    h1.send("GET /echo HTTP/1.1\r\nHost: api.example.com\r\n\r\n");
    h1.read_answer().assert_refused(403, "postern/builtin/endpoint");
    h2.get("https://api.example.com/echo").assert_refused(403, "postern/builtin/endpoint");
    assert_eq!(h2.get("https://api.example.com/status/204").status, 204);
    assert_eq!(test.upstream.requests().len(), 3);
}

/// A server of lines that says each one back.
fn echoing() -> RawUpstream {
    RawUpstream::start(None, |connection, _| {
        while let Some(said) = connection.try_read() {
            connection.send(said);
        }
    })
}

fn websocket(gateway: &Gateway, host: &str) -> Connection {
    let mut connection = gateway.agent().tls(host);
    connection.send(format!(
        "GET /ws HTTP/1.1\r\nHost: {host}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
         Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n"
    ));
    assert_eq!(connection.read_head().status, 101);
    connection
}

fn ended(connection: &mut Connection) -> bool {
    matches!(connection.ending(), Ending::Closed(rest) | Ending::Cut(rest) if rest.is_empty())
}
