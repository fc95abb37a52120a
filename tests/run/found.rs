//! `postern status` and `postern doctor` find the runs and gateways of a user.

use std::process::{Child, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use super::User;
use crate::support::journal::poll;
use crate::support::setup::policy;

#[test]
fn a_run_is_found_by_status_and_doctor_without_a_socket_being_named() {
    let user = User::new();
    let said = user.run(&["status"]);
    assert_eq!((said.code, said.stdout.as_str()), (Some(1), ""), "{said:?}");
    assert!(said.stderr.contains("no gateway runs here") && said.stderr.contains("postern run"), "{said:?}");

    let run = user.start(None);
    let said = user.run(&["status"]);
    assert!(said.code == Some(0) && said.stdout.contains("explicit 127.0.0.1:"), "{said:?}");
    let status: Value = serde_json::from_str(&user.run(&["status", "-o", "json"]).stdout).unwrap();
    assert_eq!(status["ready"], true);
    let doctor = user.run(&["doctor"]).stdout;
    assert!(doctor.contains("`postern run` of sh, process "), "{doctor}");
    assert!(doctor.contains("ask it with `postern status --socket /"), "{doctor}");
    run.end();
    assert_eq!(user.run(&["status"]).code, Some(1), "it is gone with its run");
}

/// A gateway that ends with the test.
struct Gateway(Child);

impl Gateway {
    fn start(user: &User, name: &str, admin: &str) -> Self {
        let settings = format!(
            "policy: {{path: policy.yaml}}\ninterception: {{mode: Off}}\nevents: {{stdout: false}}\n\
             listeners: {{explicit: {{address: '127.0.0.1:0'}}}}\nadmin: {{address: '127.0.0.1:0'{admin}}}\n"
        );
        user.write("policy.yaml", &policy(&[]));
        let config = user.write(name, &settings);
        let mut command = user.command(&["gateway", "--config", config.to_str().unwrap()]);
        Self(command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap())
    }

    fn terminate(&mut self) {
        kill_process(Pid::from_child(&self.0), Signal::TERM).unwrap();
        assert!(self.0.wait().unwrap().success());
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// What `postern status` lists, once it lists so many.
fn listed(user: &User, count: usize) -> Vec<Value> {
    poll(&format!("{count} gateways"), || {
        let said = user.run(&["status", "-o", "json"]);
        serde_json::from_str::<Vec<Value>>(&said.stdout).ok().filter(|list| list.len() == count)
    })
}

#[test]
fn several_are_listed_with_what_started_each() {
    let user = User::new();
    let run = user.start(None);
    // One has a status socket at a place of its own, the other names none.
    let mut gateways = [
        Gateway::start(&user, "named.yaml", ", socket: named.sock"),
        Gateway::start(&user, "silent.yaml", ""),
    ];
    let rows = listed(&user, 3);
    let origin = |row: &Value| {
        assert!(row["pid"].is_u64() && row["status"]["ready"] == true, "{row}");
        row["command"].as_str().or(row["config"].as_str()).unwrap().to_owned()
    };
    let mut origins: Vec<String> = rows.iter().map(origin).collect();
    origins.sort();
    assert!(origins[0].ends_with("/named.yaml") && origins[1].ends_with("/silent.yaml"), "{origins:?}");
    assert_eq!(origins[2], "sh", "a run is told by its program: arguments may hold secrets");

    let said = user.run(&["status"]);
    assert!(said.code == Some(0) && said.stdout.starts_with("gateways      3 answer here"), "{said:?}");
    assert!(said.stdout.contains("  ready, up "), "{said:?}");
    let socket = rows[0]["socket"].as_str().unwrap();
    assert_eq!(user.run(&["status", "--socket", socket]).code, Some(0));

    gateways.iter_mut().for_each(Gateway::terminate);
    run.end();
    assert_eq!(std::fs::read_dir(user.path("tmp")).unwrap().count(), 0, "nothing is left of them");
}

#[test]
fn what_is_left_of_a_gateway_that_was_killed_is_no_gateway() {
    let user = User::new();
    let mut gateway = Gateway::start(&user, "settings.yaml", "");
    poll("the gateway", || user.run(&["status"]).code.filter(|code| *code == 0));
    gateway.0.kill().unwrap();
    gateway.0.wait().unwrap();
    assert_eq!(user.run(&["status"]).code, Some(1));
    assert!(user.run(&["doctor"]).stdout.contains("none runs at /run/postern/status.sock"));
}
