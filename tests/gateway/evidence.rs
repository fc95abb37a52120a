//! Kept tool results: read back whole or by lines, on every way in, and by nobody but the agent.

use serde_json::{Value, json};

use super::inspected_with;
use crate::support::{Agent, Answer, Pki, Setup};

const DOOR: &str = "http://postern.internal";
const TEXT: &str = "one\r\ntwo \u{e9}\n\nfour <b>\u{1b}[31m\nfive";
/// What `sha256sum` says of it first.
const ID: &str = "170d4c4d3fb8ad92b608";

/// Keeps [`TEXT`], as a gateway before this one has.
fn keeping(setup: Setup) -> Setup {
    let directory = setup.path().join("evidence");
    std::fs::create_dir(&directory).unwrap();
    std::fs::write(directory.join(format!("{ID}.txt")), TEXT).unwrap();
    setup.set("/evidence/directory", "evidence")
}

fn under(spec: &str) -> Setup {
    Setup::new(&Pki::new("Upstream Test CA")).policy(&format!(
        "apiVersion: postern.dev/v1alpha1\nkind: EgressPolicy\nmetadata: {{name: test, namespace: agents}}\nspec: {spec}\n"
    ))
}

fn asked(agent: &Agent, question: &str) -> Answer {
    agent.get(&format!("{DOOR}/evidence/{ID}{question}"))
}

#[test]
fn a_kept_text_is_read_back_byte_for_byte_and_by_lines() {
    let gateway = keeping(under("{destinations: []}")).start();
    let agent = gateway.agent();
    let whole = asked(&agent, "?from=&to=&match=");
    assert_eq!((whole.status, whole.body.as_slice()), (200, TEXT.as_bytes()));
    for (name, value) in [
        ("content-type", "text/plain; charset=utf-8"),
        ("x-content-type-options", "nosniff"),
        ("cache-control", "no-store"),
    ] {
        assert_eq!(whole.header(name), Some(value));
    }
    assert_eq!(asked(&agent, "?from=2&to=3").text(), "two \u{e9}\n\n");
    assert_eq!(asked(&agent, "?match=f").text(), "4: four <b>\u{1b}[31m\n5: five");
    let head = agent.request("HEAD", &format!("{DOOR}/evidence/{ID}"), &[], b"");
    assert_eq!((head.status, head.body.len()), (200, 0));
    assert_eq!(head.header("content-length"), Some(TEXT.len().to_string().as_str()));
}

#[test]
fn what_is_not_kept_and_who_may_not_ask_is_told_in_words() {
    let gateway = keeping(under("{destinations: []}")).start();
    let ask = |method: &str, path: &str, headers: &[(&str, &str)]| {
        let answer = gateway.agent().request(method, &format!("{DOOR}{path}"), headers, b"");
        assert!(answer.json()["error"].is_string(), "{path}: {answer:?}");
        answer.status
    };
    assert_eq!(ask("GET", "/evidence/e3b0c44298fc1c149afb", &[]), 404);
    assert_eq!(ask("GET", &format!("/evidence/{ID}?from=9"), &[]), 400);
    assert_eq!(ask("GET", &format!("/evidence/{ID}?lines=9"), &[]), 400);
    assert_eq!(ask("DELETE", &format!("/evidence/{ID}"), &[]), 405);
    assert_eq!(ask("GET", &format!("/evidence/{ID}"), &[("origin", DOOR)]), 403);
}

#[test]
fn it_is_served_on_every_way_in_although_nothing_else_is_told() {
    let gateway = keeping(under("{explain: None, destinations: []}")).resolver("198.18.0.0/15").start();
    assert_eq!(asked(&gateway.agent(), "").body, TEXT.as_bytes());
    let synthetic = gateway.resolver().address("postern.internal");
    for authority in ["postern.internal:80".to_owned(), format!("{synthetic}:80")] {
        let mut connection = gateway.agent().connect(&authority).unwrap();
        connection.send(format!("GET /evidence/{ID} HTTP/1.1\r\nHost: postern.internal\r\n\r\n"));
        assert_eq!(connection.read_answer().body, TEXT.as_bytes(), "{authority}");
        connection
            .send("GET /why/01a2008d-0000-7000-8000-000000000000 HTTP/1.1\r\nHost: postern.internal\r\n\r\n");
        assert_eq!(connection.read_answer().status, 403);
    }
    assert!(gateway.agent().connect("postern.internal:443").is_err(), "it is never tunnelled");
}

#[test]
fn a_listener_that_stands_for_an_upstream_serves_the_door_below_a_path_of_its_own() {
    let test = inspected_with(|setup| keeping(setup).reverse("https://api.example.com"));
    let mut connection = test.gateway.reverse();
    let mut ask = |target: &str, host: &str| {
        connection.send(format!("GET {target} HTTP/1.1\r\nHost: {host}\r\n\r\n"));
        connection.read_answer()
    };
    for host in ["127.0.0.1:15003", "localhost", "postern.internal"] {
        assert_eq!(ask(&format!("/.postern/evidence/{ID}"), host).body, TEXT.as_bytes(), "{host}");
    }
    assert_eq!(ask("/.postern/", "localhost").json()["explain"], "Denials");
    for target in ["/.postern", "/%2epostern/why/x", "//.postern/policy", "/.postern%2f"] {
        let answer = ask(target, "localhost");
        assert!(matches!(answer.status, 200 | 400 | 404), "{target}: {answer:?}");
    }
    let page = ask(&format!("/.postern/evidence/{ID}"), "rebound.example:15003");
    assert!(page.status == 403 && !page.text().contains("two"), "{page:?}");
    assert!(test.upstream.requests().is_empty(), "nothing of it is for the upstream");
    assert_eq!(ask("/echo", "localhost").status, 200);
}

#[test]
fn a_tool_reads_it_only_where_the_settings_say_so() {
    let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {
        "name": "read_evidence", "arguments": {"id": ID, "match": "two"}}})
    .to_string();
    for offers in [false, true] {
        let gateway = keeping(under("{destinations: []}")).set("/evidence/mcp", offers).start();
        let json = [("content-type", "application/json")];
        let told: Value =
            gateway.agent().request("POST", &format!("{DOOR}/mcp"), &json, call.as_bytes()).json();
        assert_eq!(told["error"].is_object(), !offers, "{told}");
        if offers {
            assert_eq!(told["result"]["content"][0]["text"], "2: two \u{e9}\n");
        }
    }
}

#[test]
fn a_file_that_holds_another_text_is_not_told() {
    let setup = keeping(under("{destinations: []}"));
    let file = setup.path().join(format!("evidence/{ID}.txt"));
    std::fs::write(&file, TEXT.replace("two", "tvo")).unwrap();
    let gateway = setup.start();
    assert_eq!(asked(&gateway.agent(), "").status, 404);
    std::fs::write(&file, TEXT).unwrap();
    assert_eq!(asked(&gateway.agent(), "").status, 200);
    std::fs::remove_dir_all(file.parent().unwrap()).unwrap();
    assert_eq!(asked(&gateway.agent(), "").status, 404);
    assert_eq!(gateway.agent().get(&format!("{DOOR}/")).status, 200, "the gateway goes on");
}

#[test]
fn how_much_is_kept_reloads_and_where_it_is_needs_a_restart() {
    let gateway = keeping(under("{destinations: []}")).start();
    let settings = std::fs::read_to_string(gateway.path().join("settings.yaml")).unwrap();
    let begun: Value = serde_yaml::from_str(&settings).unwrap();
    let reload = |change: &dyn Fn(&mut Value), result: &str| {
        let mut settings = begun.clone();
        change(&mut settings);
        let labels = [("result", result)];
        let ended = gateway.metric("postern_policy_reloads_total", &labels);
        gateway.write("settings.yaml", &settings.to_string());
        gateway.signal("HUP");
        gateway.wait_for_metric("postern_policy_reloads_total", &labels, ended + 1.0);
    };
    let offers_tool = || {
        let list = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}).to_string();
        let headers = [("content-type", "application/json")];
        let told = gateway.agent().request("POST", &format!("{DOOR}/mcp"), &headers, list.as_bytes());
        told.text().contains("read_evidence")
    };
    assert!(!offers_tool());
    reload(&|settings| settings["evidence"]["mcp"] = json!(true), "success");
    assert!(offers_tool());
    for (member, value) in [("agentPath", json!("/elsewhere")), ("directory", json!("/"))] {
        reload(&|settings| settings["evidence"][member] = value.clone(), "failure");
        let told = gateway.status().to_string();
        assert!(told.contains(&format!("evidence.{member}: cannot change while the gateway runs")), "{told}");
        assert_eq!(asked(&gateway.agent(), "").body, TEXT.as_bytes());
    }
    reload(&|settings| settings["evidence"] = Value::Null, "failure");
    assert_eq!(asked(&gateway.agent(), "").body, TEXT.as_bytes());
    reload(&|_| {}, "success");
}

#[test]
fn a_directory_that_cannot_be_written_and_mistakes_are_told_with_their_place() {
    let check = |setup: Setup| {
        let said = setup.run(&["gateway", "--config", "settings.yaml", "--check"]);
        assert_eq!(said.status.code(), Some(1));
        said.stdout + &said.stderr
    };
    let setup = under("{destinations: []}").set("/evidence/directory", "none");
    let told = check(setup);
    assert!(told.contains("evidence.directory: ") && told.contains("cannot take files"), "{told}");
    let setup = under("{destinations: []}")
        .set("/evidence", json!({"agentPath": "run/e", "maxAge": "1s", "maxBytes": 1}));
    let told = check(setup);
    for field in
        ["directory: is required", "agentPath: must be absolute", "maxAge: must be", "maxBytes: must be"]
    {
        let line = told.lines().find(|line| line.contains(&format!("evidence.{field}")));
        let line = line.unwrap_or_else(|| panic!("{field} is missing in\n{told}"));
        assert!(line.starts_with("settings.yaml:") && line.matches(':').count() >= 4, "{line}");
    }
}
