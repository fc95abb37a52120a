//! What becomes of the command's traffic.

use super::User;
use super::relay::Relay;
use crate::support::setup::policy;
use crate::support::upstream::Reply;
use crate::support::{Agent, Pki, Upstream};

const REAL_KEY: &str = "sk-canary-0123456789";

/// A user behind a corporate proxy and a corporate CA, as their environment says; the way out leads to one upstream.
struct Office {
    user: User,
    relay: Relay,
    upstream: Upstream,
}

fn office() -> Office {
    let corporate = Pki::new("Corporate CA");
    let identity = corporate.leaf(&["api.anthropic.com", "other.example"]);
    let upstream = Upstream::build().identity(identity).script(|_| Some(Reply::of(200, "hello"))).start();
    let relay = Relay::to(upstream.address());
    let user = User::new();
    let root = user.write("corporate.pem", &std::fs::read_to_string(corporate.certificate_path()).unwrap());
    let user = user
        .variable("HTTPS_PROXY", &format!("http://me:pr%6Fxy-word@{}", relay.address))
        .variable("SSL_CERT_FILE", root.to_str().unwrap());
    Office { user, relay, upstream }
}

/// The same agent, with Postern's CA as its only root.
fn strict(agent: Agent, user: &User) -> Agent {
    let mut roots = rustls::RootCertStore::empty();
    let pem = std::fs::read(user.path(".local/share/postern/ca-cert.pem")).unwrap();
    roots.add(rustls::pki_types::pem::PemObject::from_pem_slice(&pem).unwrap()).unwrap();
    agent.trusting(std::sync::Arc::new(roots))
}

/// What an agent that trusts Postern alone is answered by a provider.
fn asks(agent: &Agent, user: &User) -> u16 {
    strict(agent.clone(), user).get("https://api.anthropic.com/v1/models").status
}

#[test]
fn without_a_policy_llm_hosts_are_inspected_and_the_rest_is_tunnelled() {
    let Office { user, relay, upstream } = office();
    let run = user.start(None);
    assert_eq!(strict(run.agent(), &user).get("https://api.anthropic.com/v1/models").status, 200);
    assert!(strict(run.agent(), &user).dial("other.example").open().is_err(), "not Postern's certificate");
    assert_eq!(run.agent().get("https://other.example/").status, 200);
    let said = run.end();
    assert_eq!(said.code, Some(0));
    assert!(said.stderr.contains("the built-in one is in Audit mode"), "{said:?}");
    assert!(said.stderr.contains("api.anthropic.com:443  1 request, "), "{said:?}");
    assert!(said.stderr.contains("other.example:443  2 tunnels, 2 would be denied"), "{said:?}");
    let events = user.events();
    assert!(events.iter().any(|event| event["decision"]["verdict"] == "WouldDeny"));
    assert_eq!(upstream.requests().len(), 2);
    // The way out was the user's proxy, with the user's password, which is said nowhere.
    let asked = relay.asked();
    assert!(asked[0].starts_with("CONNECT api.anthropic.com:443 HTTP/1.1\r\n"), "{asked:?}");
    assert!(asked.iter().all(|head| head.contains("Proxy-Authorization: Basic bWU6cHJveHktd29yZA==\r\n")));
    assert!(!format!("{said:?}").contains("word") && !said.stderr.contains("pr%6F"), "{said:?}");
}

#[test]
fn a_policy_holds_and_the_command_has_the_placeholder_alone() {
    let Office { user, upstream, .. } = office();
    let user = user.variable("ANTHROPIC_API_KEY", REAL_KEY).variable("A_COPY", REAL_KEY);
    let policy = policy(&["{name: llm, hosts: [api.anthropic.com], action: Inspect}"])
        + "  credentials:\n    - {name: llm, hosts: [api.anthropic.com], fromEnv: ANTHROPIC_API_KEY, require: true}\n";
    let file = user.write("policies/policy.yaml", &policy);
    let run = user.start(Some(&file));
    assert_eq!(run.variables["ANTHROPIC_API_KEY"], "postern:llm");
    assert_eq!(run.variables["A_COPY"], "postern:llm");
    assert!(!run.variables.values().any(|value| value.contains(REAL_KEY)));
    let key = [("x-api-key", "postern:llm")];
    let answer = run.agent().request("GET", "https://api.anthropic.com/v1/models", &key, b"");
    assert_eq!(answer.status, 200);
    assert_eq!(run.agent().connect("other.example:443").err().map(|answer| answer.status), Some(403));
    let said = run.end();
    let seen = &upstream.requests()[0];
    assert_eq!(seen.header("x-api-key"), Some(REAL_KEY));
    assert!(said.stderr.contains("1 request, 0 tunnels, 1 denied"), "{said:?}");
    let events = std::fs::read_to_string(user.event_file()).unwrap();
    assert!(!events.contains("canary") && !said.stderr.contains("canary") && !said.stdout.contains("canary"));
}

#[test]
fn the_users_own_policy_is_taken_and_one_of_the_working_directory_never() {
    let Office { user, .. } = office();
    user.write("work/policy.yaml", "not even YAML: [");
    let run = user.start(None);
    let said = run.end();
    assert_eq!(said.code, Some(0), "{said:?}");
    assert!(said.stderr.contains("built-in"), "{said:?}");
    let mine = user.write(".config/postern/policy.yaml", &policy(&[]));
    let run = user.start(None);
    assert_eq!(asks(&run.agent(), &user), 403, "inside TLS, where it is read");
    let said = run.end();
    assert!(said.stderr.contains(&format!("policy {}", mine.display())), "{said:?}");
}

#[test]
fn whoever_lacks_the_password_is_not_served() {
    let Office { user, upstream, .. } = office();
    let run = user.start(None);
    for agent in [run.agent().password("guess"), run.agent().password("")] {
        let refused = agent.connect("api.anthropic.com:443").err().unwrap();
        assert_eq!(refused.status, 407);
    }
    run.end();
    assert!(upstream.links().is_empty());
}

#[test]
fn a_policy_that_is_edited_meanwhile_takes_effect() {
    let Office { user, relay: _relay, upstream: _upstream } = office();
    let file = user.write("policies/policy.yaml", &policy(&[]));
    let run = user.start(Some(&file));
    assert_eq!(asks(&run.agent(), &user), 403, "inside TLS, where it is read");
    user.write(
        "policies/policy.yaml",
        &policy(&["{name: llm, hosts: [api.anthropic.com], action: Inspect}"]),
    );
    crate::support::journal::poll("the edited policy", || (asks(&run.agent(), &user) == 200).then_some(()));
    run.end();
}

#[test]
fn the_summary_is_data_where_that_is_asked_for() {
    let user = User::new();
    let said = user.run(&["-o", "json", "run", "--", "true"]);
    let at = said.stderr.find("\n{").unwrap();
    let summary: serde_json::Value = serde_json::from_str(&said.stderr[at..]).unwrap();
    assert_eq!(summary["requests"], 0);
    assert_eq!(said.stdout, "");
}

/// An answer of Anthropic's whose one call is of Bash.
const CALLS_BASH: &str = r#"{"id":"msg_1","type":"message","role":"assistant","model":"claude-sonnet-5-5","content":[{"type":"tool_use","id":"toolu_1","name":"Bash","input":{"command":"rm -rf /"}}],"stop_reason":"tool_use","stop_sequence":null,"usage":{"input_tokens":3,"output_tokens":5}}"#;
const QUESTION: &str = r#"{"model":"claude-sonnet-5-5","max_tokens":9,"messages":[{"role":"user","content":"x"}],"tools":[{"name":"Bash","input_schema":{"type":"object"}}]}"#;

/// A user whose model calls Bash, and a policy that denies it.
fn denied_call() -> (User, Relay, Upstream, std::path::PathBuf) {
    let corporate = Pki::new("Corporate CA");
    let identity = corporate.leaf(&["api.anthropic.com"]);
    let reply = |_: &_| Some(Reply::of(200, CALLS_BASH).header("content-type", "application/json"));
    let upstream = Upstream::build().identity(identity).script(reply).start();
    let relay = Relay::to(upstream.address());
    let user = User::new();
    let root = user.write("corporate.pem", &std::fs::read_to_string(corporate.certificate_path()).unwrap());
    let user = user
        .variable("HTTPS_PROXY", &format!("http://{}", relay.address))
        .variable("SSL_CERT_FILE", root.to_str().unwrap());
    let policy = policy(&["{name: llm, hosts: [api.anthropic.com], action: Inspect}"])
        + "  tools: [{name: no-shell, kind: Shell, action: Deny}]\n";
    let file = user.write("policies/policy.yaml", &policy);
    (user, relay, upstream, file)
}

#[test]
fn a_run_in_which_a_call_was_denied_ends_with_3_if_that_is_asked_for() {
    let (user, _relay, _upstream, policy) = denied_call();
    for (option, asks, code) in [
        (None, true, 0),
        (Some("--fail-on-deny"), true, 3),
        (Some("--fail-on-deny=ToolCalls"), true, 3),
        (Some("--fail-on-deny"), false, 0),
    ] {
        let run = user.start_with(Some(&policy), option.as_slice());
        if asks {
            let headers = [("content-type", "application/json")];
            let url = "https://api.anthropic.com/v1/messages";
            let answer = run.agent().request("POST", url, &headers, QUESTION.as_bytes());
            assert!(answer.text().contains("Rule: agents/test/no-shell"), "{}", answer.text());
        }
        let said = run.end();
        assert_eq!(said.code, Some(code), "{option:?} {asks}: {said:?}");
    }
}

#[test]
fn a_connection_that_was_denied_is_a_denial_and_no_call() {
    let (user, _relay, _upstream, policy) = denied_call();
    for (option, code) in [("--fail-on-deny=Any", 3), ("--fail-on-deny=ToolCalls", 0)] {
        let run = user.start_with(Some(&policy), &[option]);
        assert!(run.agent().connect("other.example:443").is_err());
        assert_eq!(run.end().code, Some(code), "{option}");
    }
    let said = user.run(&["run", "--fail-on-deny", "ToolCalls", "--", "true"]);
    assert_eq!(said.code, Some(127), "{said:?}");
    assert!(said.stderr.contains("; write --fail-on-deny=ToolCalls, with `=`"), "{said:?}");
    let said = user.run(&["run", "ToolCalls"]);
    assert!(said.code == Some(127) && !said.stderr.contains("--fail-on-deny"), "{said:?}");
    let said = user.run(&["run", "--fail-on-deny", "--", "sh", "-c", "exit 7"]);
    assert_eq!(said.code, Some(7), "{said:?}");
}

#[test]
fn the_summary_names_rule_tool_and_host_and_an_event_that_the_ledger_shows() {
    let (user, _relay, _upstream, policy) = denied_call();
    let run = user.start(Some(&policy));
    let headers = [("content-type", "application/json")];
    for _ in 0..2 {
        run.agent().request("POST", "https://api.anthropic.com/v1/messages", &headers, QUESTION.as_bytes());
    }
    assert!(run.agent().connect("other.example:443").is_err());
    let said = run.end();
    let row = |start: &str| {
        let line = said.stderr.lines().find_map(|line| line.strip_prefix(start));
        line.unwrap_or_else(|| panic!("{start:?} in {said:?}")).to_owned()
    };
    let call = row("postern:   denied 2 × Bash  by agents/test/no-shell  e.g. ");
    let host = row("postern:   denied 1 × other.example:443  by postern/builtin/default-deny  e.g. ");
    assert_eq!(row("postern: what happened: postern ledger show "), call);
    for (id, about) in [(&call, "Bash at api.anthropic.com:443"), (&host, "other.example:443")] {
        let shown = user.run(&["ledger", "show", id]);
        assert_eq!(shown.code, Some(0), "{shown:?}");
        assert!(shown.stdout.lines().next().unwrap().contains(about), "{shown:?}");
    }
    let why = user.run(&["policy", "explain", "--policy", policy.to_str().unwrap(), "--event", &call]);
    assert!(why.stdout.contains("\nDeny by agents/test/no-shell: "), "{why:?}");
}

#[test]
fn the_command_asks_the_gateway_why_it_was_refused() {
    let Office { user, .. } = office();
    let policy = policy(&["{name: llm, hosts: [api.anthropic.com], action: Inspect}"]);
    let run = user.start(Some(&user.write("policies/policy.yaml", &policy)));
    let refused = run.agent().get("http://other.example/");
    let event = refused.header("x-postern-event").unwrap();
    let told = run.agent().get(&format!("http://postern.internal/why/{event}"));
    assert_eq!((told.status, &told.json()["rule"]), (200, &"postern/builtin/default-deny".into()));
    let call = serde_json::json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call",
        "params": {"name": "explain_denial", "arguments": {"event": event}}});
    let headers = [("content-type", "application/json")];
    let told =
        run.agent().request("POST", "http://postern.internal/mcp", &headers, call.to_string().as_bytes());
    assert!(told.status == 200 && told.text().contains("default-deny"), "{told:?}");
    assert_eq!(run.end().code, Some(0));
}
