//! What is said of a Node that would go around the gateway.

use super::{Said, User};
use crate::support::setup::policy;

/// A run whose PATH leads to a Node of this version first, which keeps what it finds in its environment.
fn run_beside(version: &str, enforced: bool) -> (User, Said) {
    let user = User::new();
    let told = user.path("told").display().to_string();
    let node = user.write("bin/node", &format!("#!/bin/sh\nenv > {told}\necho {version}\n"));
    std::fs::set_permissions(&node, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let path = format!("{}:/usr/local/bin:/usr/bin:/bin", node.parent().unwrap().display());
    let user = user.variable("PATH", &path).variable("REAL_KEY", "sk-canary-0123456789");
    let credential = "  credentials:\n    - {name: c, hosts: [api.example.com], fromEnv: REAL_KEY}\n";
    let rule = "{name: api, hosts: [api.example.com], action: Inspect}";
    let file = user.write("policy.yaml", &format!("{}{credential}", policy(&[rule])));
    let chosen = ["--policy", file.to_str().unwrap()];
    let mut line = vec!["run"];
    line.extend(chosen.iter().filter(|_| enforced));
    line.extend(["--", "true"]);
    let said = user.run(&line);
    assert_eq!(said.code, Some(0), "{said:?}");
    (user, said)
}

#[test]
fn a_node_that_ignores_the_proxy_is_warned_of_where_a_policy_is_enforced() {
    for (version, enforced, warned) in [
        ("v20.20.2", true, true),
        ("v22.20.0", true, true),
        ("v24.4.1", true, true),
        ("v22.21.0", true, false),
        ("v24.5.0", true, false),
        ("v20.20.2", false, false),
        ("nonsense", true, false),
    ] {
        let (_user, said) = run_beside(version, enforced);
        assert_eq!(said.stderr.contains("goes around the gateway"), warned, "{version}: {said:?}");
    }
}

#[test]
fn node_is_asked_with_what_the_command_has_and_not_with_the_real_key() {
    let (user, _) = run_beside("v20.20.2", true);
    let told = std::fs::read_to_string(user.path("told")).unwrap();
    assert!(told.contains("HTTPS_PROXY=http://postern:") && !told.contains("canary"), "{told}");
}
