//! `postern ledger verify` on what a gateway wrote: each kind of damage, and its twin that is none.

use rusqlite::Connection;
use serde_json::Value;

use crate::support::journal::poll;
use crate::support::{Gateway, Pki, Setup, directory};

struct Recorded {
    gateway: Gateway,
    ledger: String,
    place: tempfile::TempDir,
}

/// A gateway that refused some requests, kept them in a ledger, and ended in order or by `kill -9`.
fn recorded(ends: bool) -> Recorded {
    let place = directory();
    let ledger = place.path().join("ledger.db").display().to_string();
    let mut gateway = Setup::new(&Pki::new("Upstream Test CA"))
        .set("/ledger/path", &*ledger)
        .destinations(&["{name: denied, hosts: [denied.example.com], action: Deny}"])
        .start();
    for _ in 0..5 {
        gateway.agent().get("https://denied.example.com/").assert_refused(403, "agents/test/denied");
    }
    let is_refusal = |event: &&Value| event["kind"] == "Request";
    poll("the events", || (gateway.events().iter().filter(is_refusal).count() == 5).then_some(()));
    if ends {
        gateway.terminate();
    } else {
        gateway.signal("KILL");
        gateway.wait_for_exit();
    }
    let lines: String = gateway.events().iter().map(|event| format!("{event}\n")).collect();
    std::fs::write(place.path().join("events.jsonl"), lines).unwrap();
    Recorded { gateway, ledger, place }
}

impl Recorded {
    fn lines(&self) -> String {
        self.place.path().join("events.jsonl").display().to_string()
    }

    /// What the check of a file says, with these options.
    fn verify(&self, file: &str, options: &[&str]) -> Value {
        let arguments = [&["ledger", "verify", "--ledger", file, "-o", "json"], options].concat();
        serde_json::from_str(&self.gateway.run(&arguments)).unwrap()
    }

    /// The kinds of the faults in a copy of the ledger that was changed so.
    fn faults_after(&self, change: &str, options: &[&str]) -> Vec<Value> {
        let copy = self.place.path().join("copy.db");
        std::fs::copy(&self.ledger, &copy).unwrap();
        Connection::open(&copy).unwrap().execute_batch(change).unwrap();
        let report = self.verify(&copy.display().to_string(), options);
        let faults = report["faults"].as_array().unwrap();
        assert_eq!(report["holds"], faults.is_empty(), "{report}");
        faults.iter().map(|fault| fault["kind"].clone()).collect()
    }
}

#[test]
fn what_a_gateway_wrote_holds_together_in_its_ledger_and_in_its_lines() {
    let recorded = recorded(true);
    let lines = recorded.lines();
    for file in [&recorded.ledger, &lines] {
        let report = recorded.verify(file, &["--against", &lines]);
        assert_eq!(
            (&report["holds"], &report["starts"][0]["ended"]),
            (&true.into(), &true.into()),
            "{report}"
        );
        assert_eq!(report["chained"], report["events"]);
        assert_eq!(report["witness"]["same"], report["events"]);
        assert_eq!(report["notes"], serde_json::json!([]));
    }
    let said = recorded.gateway.run(&["ledger", "verify", "--ledger", &recorded.ledger]);
    assert!(said.ends_with(" chained: the record holds together\n"), "{said}");
}

#[test]
fn damage_in_a_ledger_is_found() {
    let recorded = recorded(true);
    assert_eq!(recorded.faults_after("UPDATE events SET time = time", &[]), [] as [Value; 0], "the twin");
    let lines = recorded.lines();
    for (change, kinds) in [
        (
            "UPDATE events SET event = replace(event, 'denied.example', 'pastry.example') WHERE n = 3",
            &["Changed", "Column"][..],
        ),
        ("UPDATE events SET event = 'no event' WHERE n = 3", &["Changed", "Missing"]),
        ("UPDATE events SET host = 'other.example.com' WHERE n = 3", &["Column"]),
        ("DELETE FROM events WHERE n = 3", &["Missing"]),
        ("DELETE FROM events WHERE n = 3; UPDATE events SET n = n - 1 WHERE n > 3", &["Missing"]),
        ("DELETE FROM events WHERE n > 4", &["Cut"]),
        ("DELETE FROM events", &["Cut"]),
        ("DELETE FROM starts", &["Missing"]),
        (
            "UPDATE events SET n = -3 WHERE n = 3; UPDATE events SET n = 3 WHERE n = 4; UPDATE events SET n = 4 WHERE n = -3",
            &["Missing", "Moved"],
        ),
    ] {
        assert_eq!(recorded.faults_after(change, &[]), kinds, "{change}");
    }
    let cut =
        "DELETE FROM events WHERE n > 4; UPDATE starts SET ended = NULL; DELETE FROM events WHERE n = 0";
    assert_eq!(recorded.faults_after(cut, &[]), [] as [Value; 0], "as if it had been killed");
    let retention =
        "DELETE FROM events WHERE n IN (1, 3); INSERT INTO evicted VALUES ('Request', NULL, 1, 3, 2, 0)";
    assert_eq!(
        recorded.faults_after(retention, &["--against", &lines]),
        [] as [Value; 0],
        "as retention does"
    );
    let said = recorded.gateway.run(&["ledger", "verify", "--ledger", &lines, "--against", &recorded.ledger]);
    assert_eq!(said, "", "a ledger is no witness");
}

#[test]
fn damage_in_lines_is_found() {
    let recorded = recorded(true);
    let text = std::fs::read_to_string(recorded.lines()).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    let changed = place_of(&recorded, &text.replacen("denied.example", "pastry.example", 1));
    let mut removed = lines.clone();
    removed.remove(2);
    let removed = place_of(&recorded, &removed.join("\n"));
    let mut moved = lines.clone();
    moved.swap(2, 3);
    let moved = place_of(&recorded, &moved.join("\n"));
    for (file, kind) in [(changed, "Changed"), (removed, "Missing"), (moved, "Moved")] {
        let report = recorded.verify(&file, &[]);
        assert!(report["faults"].as_array().unwrap().iter().any(|fault| fault["kind"] == kind), "{report}");
    }
    let torn = place_of(&recorded, &text[..text.len() - 9]);
    let report = recorded.verify(&torn, &[]);
    assert_eq!((&report["holds"], report["notes"].as_array().unwrap().len()), (&true.into(), 1), "{report}");
    let witness = recorded.lines();
    let short = place_of(&recorded, &lines[..3].join("\n"));
    let report = recorded.verify(&short, &["--against", &witness]);
    assert_eq!(
        (&report["holds"], &report["witness"]["same"]),
        (&true.into(), &2.into()),
        "within a batch: {report}"
    );
}

/// A file with this text.
fn place_of(recorded: &Recorded, text: &str) -> String {
    let number = std::fs::read_dir(recorded.place.path()).unwrap().count();
    let file = recorded.place.path().join(format!("{number}.jsonl"));
    std::fs::write(&file, text).unwrap();
    file.display().to_string()
}

#[test]
fn a_gateway_that_was_killed_left_no_damage() {
    let recorded = recorded(false);
    let report = recorded.verify(&recorded.ledger, &["--against", &recorded.lines()]);
    assert_eq!(report["holds"], true, "{report}");
    let notes = report["notes"].as_array().unwrap();
    let is_end = |note: &Value| note.as_str().unwrap().contains("did not end in order");
    assert!(notes.iter().any(is_end), "{report}");
}
