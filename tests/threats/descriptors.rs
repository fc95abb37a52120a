//! File descriptors: an agent that takes all it can get keeps nothing from being read, answered or revoked.

use std::net::TcpStream;

use crate::gateway::{INSPECT_API, inspected_with};
use crate::support::journal::poll;
use crate::support::setup::policy;
use crate::support::{Connection, Gateway, Pki, Setup, Upstream};

const DENY_API: &str = "{name: no-api, hosts: [api.example.com], action: Deny}";
/// The hard limit of the gateways of these tests, and the connections that it leaves to agents.
const DESCRIPTORS: u64 = 512;
const CONNECTIONS: usize = 64;
/// So many that nothing can be opened any more.
const NONE_LEFT: u64 = 3;

/// A29: an agent that holds every connection it can get, of every listener, freezes no policy and silences nobody.
#[test]
fn whoever_holds_every_connection_freezes_no_policy() {
    let test = inspected_with(|setup| setup.descriptors(DESCRIPTORS).resolver("100.64.0.0/20"));
    let gateway = &test.gateway;
    assert_eq!(gateway.metric("process_max_fds", &[]), 512.0, "the soft limit is raised to the hard one");
    assert_eq!(gateway.status()["connections"]["limit"], CONNECTIONS as u64);
    let said = gateway.run(&["status", "--socket", "status.sock"]);
    assert!(said.contains("file descriptors allow no more"), "{said}");
    assert!(gateway.log().contains("limits.connections is cut"), "{}", gateway.log());
    let ask = "GET /echo HTTP/1.1\r\nHost: api.example.com\r\n\r\n";
    let mut open = gateway.agent().tls("api.example.com");
    open.send(ask);
    assert_eq!(open.read_answer().status, 200);

    let held = hold_all(gateway, 2 * DESCRIPTORS as usize);
    poll("every connection to be held", || {
        (gateway.metric("postern_connections_open", &[]) >= CONNECTIONS as f64).then_some(())
    });
    open.send(ask);
    assert_eq!(open.read_answer().status, 200, "upstreams have descriptors of their own");
    gateway.write("policy.yaml", &policy(&[DENY_API]));

    gateway.wait_for_metric("postern_policy_reloads_total", &[("result", "success")], 1.0);
    assert_eq!(gateway.metric("postern_policy_reloads_total", &[("result", "failure")]), 0.0);
    open.send(ask);
    open.read_answer().assert_refused(403, "agents/test/no-api");
    assert_eq!(gateway.admin("/healthz").status, 200);
    assert_eq!(gateway.status()["policy"]["lastError"], serde_json::Value::Null);

    // The twin: who comes after the flood is served.
    drop((held, open));
    gateway.reload_policy(&policy(&[INSPECT_API]), "success");
    poll("a free connection", || {
        let open = gateway.metric("postern_connections_open", &[]);
        (open == 0.0).then_some(())
    });
    assert_eq!(gateway.agent().get("https://api.example.com/echo").status, 200);
}

/// A29: a look that fails for want of descriptors is repeated until it succeeds, whichever file changed meanwhile, and
/// nothing is lost sight of; until then the last good policy holds.
#[test]
fn a_look_that_fails_for_want_of_descriptors_is_repeated() {
    for (what, file, text) in [
        ("the policy", "policy.yaml", Some(policy(&[DENY_API]))),
        ("a policy of a directory", "policies/test.yaml", Some(policy(&[DENY_API]))),
        ("the settings", "settings.yaml", None),
        ("the roots", "upstream-ca.pem", None),
    ] {
        let test = inspected_with(|setup| match file.split_once('/') {
            None => setup,
            Some((directory, name)) => {
                let directory = setup.path().join(directory);
                std::fs::create_dir(&directory).unwrap();
                std::fs::write(directory.join(name), policy(&[INSPECT_API])).unwrap();
                setup.set("/policy/path", "policies")
            }
        });
        let gateway = &test.gateway;
        let mut open = gateway.agent().tls("api.example.com");

        gateway.limit_descriptors(NONE_LEFT);
        let text = text.unwrap_or_else(|| std::fs::read_to_string(gateway.path().join(file)).unwrap() + "\n");
        gateway.write(file, &text);
        let failed = gateway.wait_for("Policy", "Deny");
        let reason = failed["decision"]["reason"].as_str().unwrap();
        assert!(reason.contains("Too many open files"), "{what}: {reason}");
        open.send("GET /echo HTTP/1.1\r\nHost: api.example.com\r\n\r\n");
        assert_ne!(open.read_answer().status, 403, "{what}: nothing is decided by what cannot be read");

        gateway.limit_descriptors(DESCRIPTORS);
        gateway.wait_for_metric("postern_policy_reloads_total", &[("result", "success")], 1.0);
        poll("readiness", || (gateway.admin("/readyz").status == 200).then_some(()));
        // What was watched before still is.
        let policy_file = if file.starts_with("policies") { file } else { "policy.yaml" };
        gateway
            .write(policy_file, &policy(&[DENY_API, "{name: other, hosts: [b.example.com], action: Deny}"]));
        poll(what, || (gateway.agent().get("https://api.example.com/echo").status == 403).then_some(()));
        let told = gateway
            .events()
            .into_iter()
            .filter(|event| event["kind"] == "Policy" && event["decision"]["verdict"] == "Deny");
        assert!(told.count() < 4, "{what}: what is tried each second is not said each second");
    }
}

/// A29: idle connections to upstreams make room for others, so that what waits takes no place from what is asked.
#[test]
fn idle_upstream_connections_make_room() {
    let names: Vec<String> = (0..2 * CONNECTIONS).map(|number| format!("n{number}.example.com")).collect();
    let listed: Vec<&str> = names.iter().map(String::as_str).collect();
    let upstreams = Pki::new("Upstream Test CA");
    let upstream = Upstream::tls(&upstreams, &listed);
    let setup = Setup::new(&upstreams)
        .descriptors(DESCRIPTORS)
        .destinations(&["{name: all, hosts: ['*.example.com'], action: Inspect}"]);
    let gateway = listed.iter().fold(setup, |setup, name| setup.host(name, upstream.address())).start();

    for name in &listed {
        assert_eq!(gateway.agent().get(&format!("https://{name}/echo")).status, 200, "{name}");
    }

    assert_eq!(gateway.metric("postern_upstream_errors_total", &[]), 0.0);
}

/// Opens connections to every listener until all of them are held that may be; those beyond are closed at once.
fn hold_all(gateway: &Gateway, each: usize) -> Vec<Connection> {
    let addresses = ["explicit", "dns", "admin"].map(|mode| gateway.address(mode));
    let dialled = (0..each).flat_map(|_| addresses).filter_map(|address| TcpStream::connect(address).ok());
    dialled.map(Connection::over).collect()
}
