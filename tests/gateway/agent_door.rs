//! The gateway's own name: what an agent may ask there, on which ways in, and what is never told.

use serde_json::Value;

use super::{INSPECT_API, inspected, inspected_with};
use crate::support::{Answer, Gateway, Pki, Setup};

const DOOR: &str = "http://postern.internal";

/// A policy `agents/test` with these lines in its spec.
fn under(spec: &str) -> Setup {
    let spec: String = spec.lines().map(|line| format!("  {}\n", line.trim())).collect();
    Setup::new(&Pki::new("Upstream Test CA")).policy(&format!(
        "apiVersion: postern.dev/v1alpha1\nkind: EgressPolicy\nmetadata: {{name: test, namespace: agents}}\nspec:\n{spec}"
    ))
}

/// Has something denied, and returns the answer.
fn denied(gateway: &Gateway) -> Answer {
    let answer = gateway.agent().get("http://evil.example.com/");
    answer.assert_refused(403, "postern/builtin/default-deny");
    answer
}

/// What a refusal says of itself at the URL that its text names.
fn asked_of(gateway: &Gateway, refusal: &Answer) -> Value {
    let text = refusal.text();
    let url = text.lines().find_map(|line| line.strip_prefix("Ask: ")).unwrap_or_else(|| panic!("{text}"));
    let answer = gateway.agent().get(url);
    assert_eq!(answer.status, 200, "{answer:?}");
    assert_eq!(answer.header("content-type"), Some("application/json"));
    assert_eq!(answer.header("cache-control"), Some("no-store"));
    answer.json()
}

#[test]
fn a_refusal_names_the_address_at_which_its_reason_is_told() {
    let test = inspected();
    let refusal = denied(&test.gateway);
    let told = asked_of(&test.gateway, &refusal);
    assert_eq!(told["event"], refusal.header("x-postern-event").unwrap());
    assert_eq!((&told["verdict"], &told["kind"]), (&"Deny".into(), &"Request".into()));
    assert_eq!(told["rule"], "postern/builtin/default-deny");
    let connect = test.gateway.agent().connect("evil.example.com:443").err().unwrap();
    assert_eq!(asked_of(&test.gateway, &connect)["kind"], "Connection");
}

#[test]
fn a_question_has_an_event() {
    let test = inspected();
    assert_eq!(test.gateway.agent().get(&format!("{DOOR}/")).status, 200);
    let event = test.gateway.wait_for_event("a question", |event| {
        event["decision"]["rule"] == "postern/builtin/explain" && event["http"]["status"] == 200
    });
    assert_eq!(event["destination"]["host"], "postern.internal");
}

#[test]
fn the_gateway_answers_at_its_name_in_absolute_form_inside_connect_and_by_its_synthetic_address() {
    let gateway = under("destinations: []").resolver("198.18.0.0/15").start();
    assert_eq!(gateway.agent().get(&format!("{DOOR}/")).status, 200);
    let synthetic = gateway.resolver().address("postern.internal");
    for authority in ["postern.internal:80".to_owned(), format!("{synthetic}:80")] {
        let mut connection = gateway.agent().connect(&authority).unwrap();
        for _ in 0..2 {
            connection.send("GET / HTTP/1.1\r\nHost: postern.internal\r\n\r\n");
            assert_eq!(connection.read_answer().status, 200, "{authority}");
        }
        connection.send("GET / HTTP/1.1\r\nHost: api.example.com\r\n\r\n");
        assert_eq!(connection.read_answer().status, 421, "another name on its connection");
    }
}

#[test]
fn the_gateways_name_is_no_destination_whatever_rules_say() {
    for spec in [
        "destinations: [{name: all, hosts: ['**'], action: Tunnel, ports: [80, 443, 8080], protocol: Opaque}]",
        "destinations: [{name: own, hosts: ['*.internal'], action: Inspect, ports: [80, 443, 8080]}]",
        "enforcement: Audit",
    ] {
        let gateway = under(spec).start();
        assert_eq!(gateway.agent().get(&format!("{DOOR}/")).status, 200, "{spec}");
        for authority in ["postern.internal:443", "postern.internal:8080"] {
            let refusal = gateway.agent().connect(authority).err().unwrap_or_else(|| panic!("{spec}"));
            refusal.assert_refused(403, "postern/builtin/default-deny");
        }
        let other = gateway.agent().get("http://postern.internal:8080/");
        other.assert_refused(403, "postern/builtin/default-deny");
    }
}

#[test]
fn a_policy_that_says_none_leaves_nothing_at_the_name() {
    let gateway = under("explain: None\ndestinations: [{name: all, hosts: ['**'], action: Inspect}]")
        .resolver("198.18.0.0/15")
        .start();
    let refusal = gateway.agent().get(&format!("{DOOR}/"));
    refusal.assert_refused(403, "postern/builtin/default-deny");
    assert!(!refusal.text().contains("Ask: "), "{}", refusal.text());
    assert!(gateway.agent().connect("postern.internal:80").is_err());
    let synthetic = gateway.resolver().address("postern.internal");
    let refusal = gateway.agent().connect(&format!("{synthetic}:80")).err().unwrap();
    refusal.assert_refused(403, "postern/builtin/default-deny");
}

#[test]
fn a_policy_that_names_the_gateways_own_name_is_refused_with_its_place() {
    for spec in [
        "destinations: [{name: own, hosts: [Postern.internal.], action: Tunnel}]",
        "credentials: [{name: key, hosts: [postern.internal], source: {fromEnv: KEY}}]",
        "routes: [{name: r, match: {hosts: [postern.internal], models: [x]}, to: [m]}]",
        "dataLoss: {home: [{detector: github-token, hosts: [postern.internal]}]}",
    ] {
        let said = under(spec).run(&["gateway", "--config", "settings.yaml", "--check"]);
        assert_eq!(said.status.code(), Some(1), "{spec}");
        let told = said.stdout + &said.stderr;
        assert!(
            told.contains("answers at postern.internal itself") && told.contains("policy.yaml:5:"),
            "{told}"
        );
    }
}

#[test]
fn a_listener_that_stands_for_one_upstream_serves_no_other_name() {
    let test = inspected_with(|setup| setup.reverse("https://api.example.com"));
    let mut connection = test.gateway.reverse();
    connection.send("GET /echo HTTP/1.1\r\nHost: postern.internal\r\n\r\n");
    assert_eq!(connection.read_answer().status, 200);
    assert_eq!(test.upstream.requests()[0].target, "/echo", "the upstream has it");
}

#[test]
fn a_page_in_a_browser_is_refused_whatever_it_asks() {
    let test = inspected();
    let refusal = denied(&test.gateway);
    let event = refusal.header("x-postern-event").unwrap();
    for path in ["/", &format!("/why/{event}")] {
        let url = format!("{DOOR}{path}");
        let headers = [("origin", "http://postern.internal")];
        let answer = test.gateway.agent().request("GET", &url, &headers, b"");
        assert_eq!(answer.status, 403, "{path}");
        assert!(!answer.text().contains("default-deny"), "{}", answer.text());
    }
}

#[test]
fn a_flood_of_questions_is_refused_with_the_time_to_wait() {
    let test = inspected();
    let mut connection = test.gateway.agent().connect("postern.internal:80").unwrap();
    let question = "GET / HTTP/1.1\r\nHost: postern.internal\r\n\r\n";
    connection.send(question.repeat(200));
    let answers: Vec<Answer> = (0..200).map(|_| connection.read_answer()).collect();
    assert_eq!(answers[0].status, 200);
    let refused: Vec<&Answer> = answers.iter().filter(|answer| answer.status == 429).collect();
    assert!(refused.iter().all(|answer| answer.header("retry-after") == Some("1")));
    assert!(refused.len() > 100, "{} of 200", refused.len());
}

#[test]
fn policy_says_what_the_agent_may_ask_and_a_reload_changes_it() {
    let test = inspected();
    assert_eq!(test.gateway.agent().get(&format!("{DOOR}/")).json()["explain"], "Denials");
    let none = crate::support::setup::policy(&[INSPECT_API]).replace("spec:", "spec:\n  explain: None");
    test.gateway.reload_policy(&none, "success");
    assert_eq!(test.gateway.agent().get(&format!("{DOOR}/")).status, 403);
}
