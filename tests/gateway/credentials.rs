//! Placeholders become keys on the way out, keys never come back, and no output holds one.

use super::{Inspected, inspected_with};
use crate::support::journal::poll;
use crate::support::upstream::Reply;
use crate::support::{Pki, Setup, Upstream};

const CANARY: &str = "sk-real-canary/+=&\"7f3a9c";

fn with_credential(extra: &str) -> Inspected {
    inspected_with(|setup| setup.policy(&policy(extra)).credential("api", &format!("{CANARY}\n")))
}

fn policy(extra: &str) -> String {
    format!(
        "apiVersion: postern.dev/v1alpha1\nkind: EgressPolicy\nmetadata: {{name: test, namespace: agents}}\nspec:\n\
         \x20 podSelector: {{}}\n  destinations:\n    - {{name: all, hosts: ['*.example.com'], action: Inspect}}\n\
         \x20 credentials:\n    - {{name: api, hosts: [api.example.com], secretKeyRef: {{name: keys, key: api}}, \
         placeholder: sk-placeholder-api{extra}}}\n"
    )
}

#[test]
fn a_placeholder_becomes_the_key_wherever_clients_put_it() {
    let test = with_credential("");
    let places = [
        ("Authorization", "Bearer sk-placeholder-api", format!("Bearer {CANARY}")),
        ("X-Api-Key", "sk-placeholder-api", CANARY.to_owned()),
        ("Api-Key", "sk-placeholder-api", CANARY.to_owned()),
        ("X-Goog-Api-Key", "sk-placeholder-api", CANARY.to_owned()),
    ];

    for (name, placeholder, real) in &places {
        let answer = test.gateway.agent().request(
            "GET",
            "https://api.example.com/status/200",
            &[(name, placeholder)],
            b"",
        );
        assert_eq!(answer.status, 200, "{answer:?}");
        let seen = test.upstream.requests().pop().unwrap();
        assert_eq!(seen.header(&name.to_lowercase()), Some(real.as_str()));
    }

    let counted = [("credential", "api")];
    test.gateway.wait_for_metric("postern_credentials_attached_total", &counted, places.len() as f64);
}

#[test]
fn the_key_is_scrubbed_from_what_comes_back_and_from_all_that_is_said() {
    let test = with_credential("");
    let headers = [("X-Api-Key", "sk-placeholder-api")];

    let answer = test.gateway.agent().request("GET", "https://api.example.com/echo", &headers, b"");

    assert_eq!(answer.status, 200, "{answer:?}");
    assert_eq!(test.upstream.requests()[0].header("x-api-key"), Some(CANARY));
    assert!(!answer.text().contains("canary"), "{}", answer.text());
    test.gateway.wait_for_event("the answer", |event| event["kind"] == "Response");
    let events: String = test.gateway.events().iter().map(ToString::to_string).collect();
    let said = [
        events,
        test.gateway.log(),
        test.gateway.admin("/metrics").text(),
        test.gateway.status().to_string(),
    ];
    assert!(said.iter().all(|text| !text.contains("canary")), "{said:#?}");
}

#[test]
fn a_key_reflected_in_a_header_or_encoded_is_scrubbed_too() {
    use base64::Engine;
    let upstreams = Pki::new("Upstream Test CA");
    let encoded = base64::prelude::BASE64_STANDARD.encode(CANARY);
    let reflected = encoded.clone();
    let upstream = Upstream::build()
        .identity(upstreams.leaf(&["api.example.com"]))
        .script(move |seen| {
            let key = seen.header("x-api-key").unwrap_or_default().to_owned();
            Some(Reply::of(200, format!("before {reflected} after")).header("x-reflected", key))
        })
        .start();
    let gateway = Setup::new(&upstreams)
        .host("api.example.com", upstream.address())
        .policy(&policy(""))
        .credential("api", CANARY)
        .start();

    let headers = [("X-Api-Key", "sk-placeholder-api")];
    let answer = gateway.agent().request("GET", "https://api.example.com/", &headers, b"");

    assert!(
        answer.complete && answer.text().starts_with("before ") && answer.text().ends_with(" after"),
        "{answer:?}"
    );
    assert!(!answer.text().contains(&encoded), "{answer:?}");
    assert!(!answer.header("x-reflected").unwrap_or_default().contains("canary"), "{answer:?}");
}

#[test]
fn a_placeholder_sent_elsewhere_is_denied() {
    let test = with_credential("");
    let other = Upstream::tls(&test.upstreams, &["other.example.com"]);
    let gateway = Setup::new(&test.upstreams)
        .host("other.example.com", other.address())
        .policy(&policy(""))
        .credential("api", CANARY)
        .start();
    let headers = [("X-Api-Key", "sk-placeholder-api")];

    let answer = gateway.agent().request("GET", "https://other.example.com/echo", &headers, b"");

    answer.assert_refused(403, "postern/builtin/placeholder");
    assert!(other.requests().is_empty());
    assert_eq!(gateway.agent().get("https://other.example.com/echo").status, 200);
}

#[test]
fn a_placeholder_in_plain_text_is_denied() {
    let plain = Upstream::plain();
    let gateway = Setup::new(&Pki::new("Upstream Test CA"))
        .host("api.example.com", plain.address())
        .policy(&policy(""))
        .credential("api", CANARY)
        .start();
    let headers = [("X-Api-Key", "sk-placeholder-api")];

    let answer = gateway.agent().request("GET", "http://api.example.com/echo", &headers, b"");

    answer.assert_refused(403, "postern/builtin/placeholder");
    assert!(plain.requests().is_empty());
}

#[test]
fn where_a_key_is_required_no_other_passes() {
    let test = with_credential(", require: true");
    let send = |headers: &[(&str, &str)]| {
        test.gateway.agent().request("GET", "https://api.example.com/echo", headers, b"")
    };

    send(&[("Authorization", "Bearer sk-attackers-own")]).assert_refused(403, "postern/builtin/credential");
    send(&[("X-Api-Key", "sk-attackers-own")]).assert_refused(403, "postern/builtin/credential");

    assert_eq!(send(&[]).status, 200, "a request without a key passes");
    assert_eq!(send(&[("X-Api-Key", "sk-placeholder-api")]).status, 200);
    assert_eq!(test.upstream.requests().len(), 2);
}

#[test]
fn no_reason_says_x_api_key_which_claude_code_shows_as_a_bad_key_of_its_own() {
    let test = with_credential(", require: true");

    for key in ["sk-another", "in-front-of-sk-placeholder-api"] {
        let headers = [("X-Api-Key", key)];
        let answer = test.gateway.agent().request("GET", "https://api.example.com/", &headers, b"");

        assert_eq!(answer.status, 403, "{answer:?}");
        assert!(answer.text().contains("the API key header"), "{answer:?}");
        assert!(!answer.text().to_lowercase().contains("x-api-key"), "{answer:?}");
    }
}

#[test]
fn a_rotated_key_is_used_without_a_restart() {
    let test = with_credential("");
    let headers = [("X-Api-Key", "sk-placeholder-api")];

    test.gateway.write("credentials/api", "sk-rotated");
    test.gateway.signal("HUP");

    poll("the rotated key", || {
        test.gateway.agent().request("GET", "https://api.example.com/status/200", &headers, b"");
        let seen = test.upstream.requests().pop()?;
        (seen.header("x-api-key") == Some("sk-rotated")).then_some(())
    });
}

#[test]
fn a_request_waits_for_the_key_that_a_new_policy_needs() {
    let test = inspected_with(|setup| setup.policy(&policy("")));
    let headers = [("X-Api-Key", "sk-placeholder-api")];
    let agent = test.gateway.agent();

    std::thread::scope(|scope| {
        let waiting =
            scope.spawn(|| agent.request("GET", "https://api.example.com/status/200", &headers, b""));
        poll("the connection", || (test.gateway.status()["connections"]["open"] == 1).then_some(()));
        test.gateway.write("credentials/api", CANARY);
        assert_eq!(waiting.join().unwrap().status, 200);
    });

    assert_eq!(test.upstream.requests()[0].header("x-api-key"), Some(CANARY));
}

#[test]
fn a_request_that_waits_for_a_key_is_refused_by_a_stricter_policy_under_its_rule() {
    let test = inspected_with(|setup| setup.policy(&policy("")));
    let headers = [("X-Api-Key", "sk-placeholder-api")];
    let agent = test.gateway.agent();
    let stricter = crate::support::setup::policy(&["{name: no-api, hosts: [api.example.com], action: Deny}"]);

    std::thread::scope(|scope| {
        let waiting =
            scope.spawn(|| agent.request("GET", "https://api.example.com/status/200", &headers, b""));
        test.gateway.wait_for("Connection", "Allow");
        test.gateway.write("policy.yaml", &stricter);
        waiting.join().unwrap().assert_refused(403, "agents/test/no-api");
    });

    assert!(test.upstream.requests().is_empty());
}

#[test]
fn a_request_that_waits_for_a_key_is_audited_once_by_the_policy_under_which_it_ends() {
    let audited = |name: &str| {
        format!(
            "{}---\napiVersion: postern.dev/v1alpha1\nkind: ClusterEgressPolicy\nmetadata: {{name: {name}}}\nspec:\n\
             \x20 enforcement: Audit\n  destinations:\n    - {{name: less, hosts: [api.example.com], action: Inspect, \
             endpoints: [{{methods: [PUT]}}]}}\n",
            policy("")
        )
    };
    let test = inspected_with(|setup| setup.policy(&audited("before")));
    let headers = [("X-Api-Key", "sk-placeholder-api")];
    let agent = test.gateway.agent();

    std::thread::scope(|scope| {
        let waiting =
            scope.spawn(|| agent.request("GET", "https://api.example.com/status/200", &headers, b""));
        test.gateway.wait_for("Connection", "Allow");
        test.gateway.write("policy.yaml", &audited("after"));
        waiting.join().unwrap().assert_refused(403, "postern/builtin/credential");
    });

    test.gateway.wait_for("Request", "Deny");
    let events = test.gateway.events();
    let audits: Vec<_> = events.iter().filter(|event| event["decision"]["verdict"] == "WouldDeny").collect();
    assert_eq!(audits.len(), 1, "{audits:?}");
    let reason = audits[0]["decision"]["reason"].as_str().unwrap();
    assert!(reason.contains("-/after/less"), "{reason}");
}

#[test]
fn a_key_that_is_missing_is_said_and_the_placeholder_stays_here() {
    let test = inspected_with(|setup| setup.policy(&policy("")));
    let headers = [("X-Api-Key", "sk-placeholder-api")];

    let answer = test.gateway.agent().request("GET", "https://api.example.com/echo", &headers, b"");

    answer.assert_refused(403, "postern/builtin/credential");
    assert!(
        answer.text().contains("the credential api cannot be attached: it has no value"),
        "{}",
        answer.text()
    );
    assert!(test.upstream.requests().is_empty());
    assert!(test.gateway.status()["reasons"].to_string().contains("api"), "{}", test.gateway.status());
}
