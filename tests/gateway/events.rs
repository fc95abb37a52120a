//! What is said of what happened: events, metrics, health, status, and what never is.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{inspected, inspected_with};
use crate::support::journal::poll;
use crate::support::setup::policy;
use crate::support::{Gateway, Pki, Setup};

#[test]
fn an_exchange_is_two_events_joined_by_its_id() {
    let test = inspected();

    test.gateway.agent().request("POST", "https://api.example.com/echo?secret=1", &[], b"hello");

    let request = test.gateway.wait_for("Request", "Allow");
    let response = test.gateway.wait_for_event("the answer", |event| event["kind"] == "Response");
    assert_eq!(request["decision"]["rule"], "agents/test/api");
    assert_eq!(request["decision"]["enforcement"], "Enforce");
    assert_eq!(request["direction"], "Outbound");
    assert_eq!((&request["http"]["method"], &request["http"]["path"]), (&"POST".into(), &"/echo".into()));
    assert_eq!(
        (&request["destination"]["host"], &request["destination"]["port"]),
        (&"api.example.com".into(), &443.into())
    );
    assert_eq!(request["destination"]["intercepted"], true);
    assert_eq!((&response["direction"], &response["http"]["status"]), (&"Inbound".into(), &200.into()));
    assert!(response["payload"]["bytes"].as_u64().unwrap() > 0);
    assert_eq!(response["payload"]["bodyRetained"], false);
    for joint in ["exchange", "connection", "session"] {
        assert!(
            request[joint].is_string() && request[joint] == response[joint],
            "{joint}: {request} {response}"
        );
    }
}

#[test]
fn a_gateway_that_died_is_told_by_the_next_one_and_one_that_stopped_is_not() {
    let upstreams = Pki::new("Upstream Test CA");
    let place = tempfile::tempdir().unwrap();
    let socket = |name: &str| place.path().join(name).display().to_string();
    let started = |name: &str| {
        // The test waits for the status socket in the gateway's own directory, so that each is linked there.
        let setup = Setup::new(&upstreams).set("/admin/socket", socket(name));
        std::os::unix::fs::symlink(socket(name), setup.path().join("status.sock")).unwrap();
        setup.start()
    };
    let said = |gateway: &Gateway| {
        let event = gateway.wait_for_event("its start", |event| event["kind"] == "Lifecycle");
        event["decision"]["reason"].as_str().unwrap().to_owned()
    };
    let mut first = started("a.sock");
    assert!(said(&first).starts_with("the gateway has started;"), "{}", said(&first));
    first.signal("KILL");
    first.wait_for_exit();

    let mut second = started("b.sock");
    assert!(
        said(&second).starts_with("the gateway has started again: the one that started at "),
        "{}",
        said(&second)
    );
    second.terminate();

    let third = started("c.sock");
    assert!(said(&third).starts_with("the gateway has started;"), "{}", said(&third));
}

#[test]
fn the_log_is_json_where_the_settings_say_so_and_text_after_a_reload() {
    let gateway = Setup::new(&Pki::new("Upstream Test CA")).set("/log/format", "Json").start();
    let wrong = policy(&["{name: api, hosts: [api.example.com], action: Allow}"]);
    let told = || {
        gateway
            .log()
            .lines()
            .filter(|line| line.contains("not in force"))
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };

    gateway.reload_policy(&wrong, "failure");
    let line = poll("the line", || told().pop());
    let line: Value = serde_json::from_str(&line).unwrap();
    assert_eq!((&line["level"], &line["message"].is_string()), (&"ERROR".into(), &true), "{line}");
    assert!(line["fields"]["problems"].as_str().unwrap().contains("policy.yaml"), "{line}");

    let settings = std::fs::read_to_string(gateway.path().join("settings.yaml")).unwrap();
    assert!(settings.contains("Json"));
    gateway.reload_policy(&policy(&[]), "success");
    gateway.write("settings.yaml", &settings.replace("Json", "Text"));
    poll("the settings in force", || (gateway.status()["settings"]["log"]["format"] == "Text").then_some(()));
    gateway.reload_policy(&wrong, "failure");
    let is_text = |line: &String| serde_json::from_str::<Value>(line).is_err();
    poll("a line of text", || told().into_iter().find(is_text));
}

#[test]
fn an_answer_that_was_delivered_whole_ends_without_a_reason() {
    let test = inspected();
    let agent = test.gateway.agent();

    agent.get("https://api.example.com/bytes/5000");
    agent.get("https://api.example.com/sse?events=2");
    agent.h2("api.example.com").get("https://api.example.com/bytes/5000");
    agent.get("https://api.example.com/status/204");

    test.gateway.wait_for_event("the last answer", |event| event["http"]["status"] == 204);
    for event in test.gateway.events().iter().filter(|event| event["kind"] == "Response") {
        assert_eq!(event["destination"]["reason"], Value::Null, "{event}");
    }
}

#[test]
fn every_event_has_the_envelope_and_numbers_have_no_gaps() {
    let test = inspected();
    test.gateway.agent().get("https://api.example.com/echo");
    let _ = test.gateway.agent().connect("evil.example.com:443");
    test.gateway.wait_for("Connection", "Deny");
    test.gateway.wait_for_event("the answer", |event| event["kind"] == "Response");

    let events = test.gateway.events();

    let ids: BTreeSet<&str> = events.iter().filter_map(|event| event["id"].as_str()).collect();
    assert_eq!(ids.len(), events.len(), "ids are unique");
    for (event, number) in events.iter().zip(1_u64..) {
        assert_eq!(event["apiVersion"], "postern.dev/event/v1");
        assert_eq!(event["sequence"], number, "{event}");
        assert_eq!(event["id"].as_str().unwrap().as_bytes()[14], b'7', "a UUIDv7: {event}");
        assert!(event["time"].as_str().unwrap().ends_with('Z'), "{event}");
        assert!(event["count"].as_u64().unwrap() >= 1, "{event}");
        assert!(event["decision"]["verdict"].is_string(), "{event}");
    }
}

#[test]
fn an_event_has_no_query_header_or_body() {
    let test = inspected();
    let headers = [("X-Private", "canary-in-a-header"), ("Cookie", "canary-in-a-cookie")];

    test.gateway.agent().request(
        "POST",
        "https://api.example.com/echo?q=canary-in-a-query",
        &headers,
        b"canary-in-a-body",
    );
    test.gateway.wait_for_event("the answer", |event| event["kind"] == "Response");

    for event in test.gateway.events() {
        assert!(!event.to_string().contains("canary"), "{event}");
    }
    assert!(!test.gateway.log().contains("canary"), "{}", test.gateway.log());
}

#[test]
fn a_session_and_a_trace_come_from_the_client_where_it_says_them() {
    let test = inspected();
    let headers = [
        ("X-Postern-Session", "my-session"),
        ("Traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"),
    ];

    test.gateway.agent().request("GET", "https://api.example.com/echo", &headers, b"");

    let request = test.gateway.wait_for("Request", "Allow");
    assert_eq!(request["session"], "my-session");
    assert_eq!(request["trace"], "0af7651916cd43dd8448eb211c80319c");
}

#[test]
fn an_audit_policy_lets_pass_and_says_what_it_would_have_done() {
    let policy = "apiVersion: postern.dev/v1alpha1\nkind: EgressPolicy\nmetadata: {name: trial, namespace: agents}\n\
                  spec:\n  podSelector: {}\n  enforcement: Audit\n  destinations:\n    - {name: api, hosts: [api.example.com], \
                  action: Inspect, endpoints: [{methods: [GET], path: /echo}]}\n";
    let test = inspected_with(|setup| setup.policy(policy));

    let answer = test.gateway.agent().get("https://api.example.com/bytes/5");

    assert_eq!(answer.status, 200, "{answer:?}");
    let event = test.gateway.wait_for("Request", "WouldDeny");
    assert_eq!(event["decision"]["enforcement"], "Audit");
}

/// An Enforce policy that lets the host through, and an Audit policy that denies these addresses.
fn auditing(action: &str, addresses: &str) -> String {
    let allowed = policy(&[&format!("{{name: api, hosts: [api.example.com], action: {action}}}")]);
    let trial = format!(
        "---\napiVersion: postern.dev/v1alpha1\nkind: EgressPolicy\nmetadata: {{name: trial, namespace: agents}}\n\
         spec:\n  podSelector: {{}}\n  enforcement: Audit\n  destinations:\n    - {{name: range, cidrs: \
         [\"{addresses}\"], action: Deny}}\n"
    );
    allowed + &trial
}

#[test]
fn an_address_that_an_audit_policy_denies_is_recorded_once_where_it_is_dialled() {
    for action in ["Inspect", "Tunnel"] {
        for (addresses, told) in [("127.0.0.0/8", 1), ("10.0.0.0/8", 0)] {
            let test = inspected_with(|setup| setup.policy(&auditing(action, addresses)));
            if action == "Inspect" {
                for _ in 0..2 {
                    assert_eq!(test.gateway.agent().get("https://api.example.com/echo").status, 200);
                }
                test.gateway.wait_for("Request", "Allow");
            } else {
                let agent = test.gateway.agent().trusting(test.upstreams.roots());
                let _open = agent.dial("api.example.com").open().unwrap();
            }
            test.gateway.wait_for("Connection", "Allow");
            let policies = test.gateway.events();
            let policies: Vec<_> = policies.iter().filter(|event| event["kind"] == "Policy").collect();
            assert_eq!(policies.len(), told, "{action} {addresses}: {policies:?}");
            for event in policies {
                let decision = &event["decision"];
                assert_eq!(
                    (&decision["verdict"], &decision["rule"]),
                    (&"WouldDeny".into(), &"agents/trial/range".into())
                );
                assert_eq!(event["destination"]["host"], "api.example.com");
                assert!(event["connection"].is_string(), "{event}");
            }
        }
    }
}

#[test]
fn metrics_count_connections_requests_and_their_times() {
    let test = inspected();
    test.gateway.agent().get("https://api.example.com/echo");
    let _ = test.gateway.agent().connect("evil.example.com:443");
    let gateway = &test.gateway;

    gateway.wait_for_metric("postern_requests_total", &[("verdict", "Allow")], 1.0);
    gateway.wait_for_metric("postern_connections_total", &[("mode", "explicit"), ("action", "Deny")], 1.0);
    gateway.wait_for_metric("postern_connections_total", &[("mode", "explicit"), ("action", "Inspect")], 1.0);
    gateway.wait_for_metric("postern_request_duration_seconds_count", &[], 1.0);
    gateway.wait_for_metric("postern_upstream_duration_seconds_count", &[], 1.0);
    gateway.wait_for_metric("postern_time_to_first_byte_seconds_count", &[], 1.0);
    gateway.wait_for_metric("postern_leaf_certificates_minted_total", &[], 1.0);
    gateway.wait_for_metric("postern_policy_info", &[], 1.0);
    assert_eq!(gateway.metric("postern_ledger_dropped_total", &[]), 0.0);
}

#[test]
fn denials_are_counted_by_the_rule_that_says_so_and_a_refusal_inside_of_tls_once() {
    let test = inspected_with(|setup| {
        setup.destinations(&[
            "{name: api, hosts: [api.example.com], action: Inspect, endpoints: [{methods: [GET], path: /echo}]}",
            "{name: never, hosts: [forbidden.example.com], action: Deny}",
        ])
    });
    let (gateway, agent) = (&test.gateway, test.gateway.agent());
    assert_eq!(agent.get("https://api.example.com/echo").status, 200);
    assert_eq!(agent.get("https://api.example.com/bytes/5").status, 403);
    assert_eq!(agent.get("https://forbidden.example.com/").status, 403);
    let _ = agent.connect("evil.example.com:443");

    let denied = |kind, rule| [("kind", kind), ("rule", rule), ("verdict", "Deny")];
    for labels in [
        denied("request", "postern/builtin/endpoint"),
        denied("request", "agents/test/never"),
        denied("connection", "postern/builtin/default-deny"),
    ] {
        gateway.wait_for_metric("postern_denials_total", &labels, 1.0);
    }
    assert_eq!(gateway.metric("postern_denials_total", &[]), 3.0, "what is allowed is no denial");
}

#[test]
fn the_admin_port_tells_health_and_metrics_and_nothing_else() {
    let test = inspected();

    assert_eq!(test.gateway.admin("/healthz").status, 200);
    assert_eq!(test.gateway.admin("/readyz").status, 200);
    assert!(test.gateway.admin("/metrics").header("content-type").unwrap().starts_with("text/plain"));
    for hidden in ["/", "/status", "/config", "/debug", "/metrics/../status"] {
        let answer = test.gateway.admin(hidden);
        assert!((400..500).contains(&answer.status), "{hidden}: {answer:?}");
        assert!(!answer.text().contains("postern_"), "{answer:?}");
    }
}

#[test]
fn the_status_socket_tells_what_is_in_force() {
    let test = inspected();

    let status = test.gateway.status();

    assert!(status["version"].is_string(), "{status}");
    assert!(status["policy"]["revision"].as_str().unwrap().starts_with("sha256:"), "{status}");
    let modes: BTreeSet<&str> =
        status["listeners"].as_array().unwrap().iter().filter_map(|one| one["mode"].as_str()).collect();
    assert!(modes.contains("explicit") && modes.contains("admin"), "{status}");
}
