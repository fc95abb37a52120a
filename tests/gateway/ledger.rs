//! The ledger of a gateway: what is in its file, whatever becomes of gateway and file.

use serde_json::Value;

use crate::support::journal::poll;
use crate::support::{Gateway, Pki, Setup, directory};

/// A gateway that writes this file.
fn started(file: &str) -> Gateway {
    setup(file).start()
}

fn setup(file: &str) -> Setup {
    Setup::new(&Pki::new("Upstream Test CA"))
        .set("/ledger/path", file)
        .destinations(&["{name: denied, hosts: [denied.example.com], action: Deny}"])
}

/// The events in the file, oldest first.
fn kept(gateway: &Gateway, file: &str) -> Vec<Value> {
    let said = gateway.run(&["ledger", "query", "--limit", "100000", "--ledger", file, "-o", "json"]);
    said.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn refuse(gateway: &Gateway, times: usize) {
    for _ in 0..times {
        gateway.agent().get("https://denied.example.com/").assert_refused(403, "agents/test/denied");
    }
}

#[test]
fn the_ledger_has_the_lines_of_standard_output() {
    let place = directory();
    let file = place.path().join("ledger.db").display().to_string();
    let mut gateway = started(&file);
    refuse(&gateway, 3);
    let events = poll("the events while the gateway runs", || {
        Some(kept(&gateway, &file))
            .filter(|events| events.iter().filter(|event| event["kind"] == "Request").count() == 3)
    });
    poll("the same on standard output", || (gateway.events().len() >= events.len()).then_some(()));
    assert!(gateway.events().starts_with(&events));
    gateway.terminate();
    assert_eq!(kept(&gateway, &file), gateway.events());
}

#[test]
fn a_gateway_that_is_killed_leaves_a_whole_file_and_the_next_one_goes_on_in_it() {
    let place = directory();
    let file = place.path().join("ledger.db").display().to_string();
    let mut starts = Vec::new();
    for _ in 0..5 {
        let mut gateway = started(&file);
        let start = gateway.wait_for("Lifecycle", "Allow")["start"].clone();
        refuse(&gateway, 5);
        gateway.signal("KILL");
        gateway.wait_for_exit();
        let events = kept(&gateway, &file);
        let of_start: Vec<_> = events.iter().filter(|event| event["start"] == start).collect();
        assert!(of_start.iter().zip(1..).all(|(event, number)| event["sequence"] == number), "no gap");
        let before = starts.iter().all(|before| events.iter().any(|event| event["start"] == *before));
        assert!(before, "what was written before is still there");
        starts.extend(of_start.first().map(|event| event["start"].clone()));
    }
    assert!(!starts.is_empty());
}

#[test]
fn a_file_that_cannot_be_the_ledger_keeps_the_gateway_from_starting_and_stays_as_it_is() {
    let place = directory();
    let file = place.path().join("notes.txt");
    std::fs::write(&file, "somebody's notes").unwrap();
    let said = setup(&file.display().to_string()).run(&["gateway", "--config", "settings.yaml"]);
    assert_eq!(said.status.code(), Some(1), "{}", said.stderr);
    assert!(said.stderr.contains("is no ledger of Postern and is left as it is"), "{}", said.stderr);
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "somebody's notes");
    let nowhere = place.path().join("none/ledger.db").display().to_string();
    let said = setup(&nowhere).run(&["gateway", "--config", "settings.yaml"]);
    assert_eq!(said.status.code(), Some(1), "{}", said.stderr);
    assert!(said.stderr.contains("make its directory"), "{}", said.stderr);
}

#[test]
fn two_gateways_do_not_write_one_file() {
    let place = directory();
    let file = place.path().join("ledger.db").display().to_string();
    let _first = started(&file);
    let said = setup(&file).run(&["gateway", "--config", "settings.yaml"]);
    assert_eq!(said.status.code(), Some(1), "{}", said.stderr);
    assert!(said.stderr.contains("is written by another gateway"), "{}", said.stderr);
}

#[test]
fn while_the_ledger_cannot_be_written_nothing_goes_on_unrecorded() {
    let place = directory();
    let file = place.path().join("ledger.db");
    let gateway = started(&file.display().to_string());
    refuse(&gateway, 1);
    for end in ["-wal", "-shm", ""] {
        // It is there or not, as the gateway is between two events.
        let _ = std::fs::remove_file(format!("{}{end}", file.display()));
    }
    std::fs::write(&file, "somebody's notes").unwrap();
    let answer = poll("the refusal", || {
        Some(gateway.agent().get("https://denied.example.com/")).filter(|answer| answer.status == 503)
    });
    answer.assert_refused(503, "postern/builtin/ledger");
    assert_eq!(gateway.status()["ready"], false);
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "somebody's notes");
    std::fs::remove_file(&file).unwrap();
    poll("the gateway to go on", || {
        Some(gateway.agent().get("https://denied.example.com/")).filter(|answer| answer.status == 403)
    });
}
