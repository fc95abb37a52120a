//! The ledger of a gateway: what is in its file, whatever becomes of gateway and file.

use serde_json::Value;

use crate::support::journal::poll;
use crate::support::{Answer, Gateway, Pki, Setup, directory};

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

/// J7: a sink that fails stops traffic or costs counted events, as the settings say.
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
    assert!(answer.text().contains("Destination: denied.example.com:443"), "{}", answer.text());
    assert_eq!(gateway.status()["ready"], false);
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "somebody's notes");
    std::fs::remove_file(&file).unwrap();
    poll("the gateway to go on", || {
        Some(gateway.agent().get("https://denied.example.com/")).filter(|answer| answer.status == 403)
    });
}

/// The answer to a request that policy denies, until it has this status.
fn answer_of(gateway: &Gateway, status: u16) -> Answer {
    poll(&format!("an answer with status {status}"), || {
        let answer = gateway.agent().get("https://denied.example.com/");
        Some(answer).filter(|answer| answer.status == status)
    })
}

/// Waits until the file has so many denials.
fn wait_for_denials(gateway: &Gateway, file: &str, count: usize) {
    let denials = || kept(gateway, file).iter().filter(|event| event["kind"] == "Request").count();
    poll("the denials in the file", || (denials() >= count).then_some(()));
}

/// J7: a sink that fails stops traffic or costs counted events, as the settings say.
#[test]
fn a_full_disk_stops_traffic_until_there_is_room_and_loses_no_event() {
    let place = directory();
    let file = place.path().join("ledger.db").display().to_string();
    let mut gateway = setup(&file).with_full_disks().start();
    refuse(&gateway, 1);
    wait_for_denials(&gateway, &file, 1);
    gateway.limit_files(Some(4_096));
    answer_of(&gateway, 503).assert_refused(503, "postern/builtin/ledger");
    assert_eq!(gateway.status()["ready"], false);
    assert_eq!(gateway.metric("postern_ledger_dropped_total", &[]), 0.0);
    gateway.limit_files(None);
    answer_of(&gateway, 403);
    poll("readiness", || (gateway.status()["ready"] == true).then_some(()));
    assert!(gateway.terminate().success());
    assert_eq!(kept(&gateway, &file), gateway.events());
}

/// J7: a sink that fails stops traffic or costs counted events, as the settings say.
#[test]
fn with_drop_a_full_disk_costs_counted_events_and_no_traffic() {
    let place = directory();
    let file = place.path().join("ledger.db").display().to_string();
    let gateway = setup(&file).set("/ledger/onPressure", "Drop").with_full_disks().start();
    refuse(&gateway, 1);
    wait_for_denials(&gateway, &file, 1);
    gateway.limit_files(Some(4_096));
    let dropped = [("sink", "ledger"), ("reason", "write_failed")];
    refuse(&gateway, 5);
    gateway.wait_for_metric("postern_ledger_dropped_total", &dropped, 5.0);
    assert_eq!(gateway.metric("postern_ledger_dropped_total", &[("sink", "stdout")]), 0.0);
    assert_eq!(gateway.status()["ready"], true);
    gateway.limit_files(None);
    refuse(&gateway, 1);
    wait_for_denials(&gateway, &file, 2);
}

#[test]
fn a_file_that_is_removed_while_it_is_open_is_said_and_a_new_one_goes_on() {
    let place = directory();
    let file = place.path().join("ledger.db").display().to_string();
    let gateway = started(&file);
    refuse(&gateway, 1);
    wait_for_denials(&gateway, &file, 1);
    for end in ["-wal", "-shm", ""] {
        // It is there or not, as the gateway is between two events.
        let _ = std::fs::remove_file(format!("{file}{end}"));
    }
    refuse(&gateway, 1);
    poll("the new file", || std::fs::exists(&file).unwrap().then_some(()));
    wait_for_denials(&gateway, &file, 1);
    assert!(gateway.log().contains("was removed or replaced"), "{}", gateway.log());
}

#[test]
fn a_file_that_is_truncated_while_it_is_open_is_left_as_it_is_until_it_is_moved_away() {
    let place = directory();
    let file = place.path().join("ledger.db").display().to_string();
    let gateway = started(&file);
    refuse(&gateway, 1);
    wait_for_denials(&gateway, &file, 1);
    std::fs::OpenOptions::new().write(true).open(&file).unwrap().set_len(5_000).unwrap();
    answer_of(&gateway, 503).assert_refused(503, "postern/builtin/ledger");
    assert!(gateway.log().contains("move it away"), "{}", gateway.log());
    assert_eq!(std::fs::metadata(&file).unwrap().len(), 5_000);
    for end in ["-wal", "-shm", ""] {
        let _ = std::fs::rename(format!("{file}{end}"), format!("{file}-damaged{end}"));
    }
    answer_of(&gateway, 403);
}

#[test]
fn where_nothing_may_be_written_the_gateway_does_not_start() {
    let said = setup("/proc/ledger.db").run(&["gateway", "--config", "settings.yaml"]);
    assert_eq!(said.status.code(), Some(1), "{}", said.stderr);
    assert!(said.stderr.contains("let this user write there"), "{}", said.stderr);
}

#[test]
fn a_reload_changes_how_much_is_kept_and_says_that_another_file_needs_a_restart() {
    let place = directory();
    let file = place.path().join("ledger.db").display().to_string();
    let gateway = started(&file);
    let settings = std::fs::read_to_string(gateway.path().join("settings.yaml")).unwrap();
    let reload = |settings: &str, result: &str| {
        let labels = [("result", result)];
        let ended = gateway.metric("postern_policy_reloads_total", &labels);
        gateway.write("settings.yaml", settings);
        gateway.signal("HUP");
        gateway.wait_for_metric("postern_policy_reloads_total", &labels, ended + 1.0);
    };
    reload(&settings.replace("ledger:\n", "ledger:\n  maxAge: 1d\n  maxBytes: 8MiB\n"), "success");
    for (changed, place) in [
        (settings.replace("ledger.db", "other.db"), "ledger.path"),
        (settings.replace("ledger:\n", "ledger:\n  onPressure: Drop\n"), "ledger.onPressure"),
    ] {
        reload(&changed, "failure");
        let said = gateway.status()["policy"]["lastError"].to_string();
        assert!(said.contains(place) && said.contains("restart it"), "{said}");
    }
    reload(&settings, "success");
    refuse(&gateway, 1);
    wait_for_denials(&gateway, &file, 1);
    assert!(!place.path().join("other.db").exists());
}
