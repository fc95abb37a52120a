//! Attacks on what judges and shows the record: hostile expressions, hostile ledgers, and names that are markup.

use std::path::Path;
use std::process::{Command, Output};

use rusqlite::Connection;
use serde_json::Value;

use super::model::{Model, call, message, named};
use crate::gateway::{INSPECT_API, inspected};
use crate::parity::anthropic::Anthropic;
use crate::parity::dialect::Mode::Streamed;
use crate::support::journal::poll;
use crate::support::setup::policy;
use crate::support::{Pki, Setup, directory};

/// J5: no pattern and no expression costs more than its bound.
/// J16: an expression that would eat stack, memory or time is refused when it is loaded, and what is in force stays; an
/// ordinary one is in force.
#[test]
fn a_hostile_expression_changes_nothing() {
    let test = inspected();
    let under = |when: &str| {
        let rule = format!("  rules: [{{name: posts, when: '{when}', action: Deny}}]\n");
        policy(&[INSPECT_API]) + &rule
    };
    let list = format!("[{}]", ["1"; 100].join(", "));
    for (when, why) in [
        ("(".repeat(500) + "true" + &")".repeat(500), "more than 32 brackets"),
        (format!("{list}.all(a, {list}.all(b, {list}.all(c, a == c)))"), "more than 2 of all"),
        (format!("{list}.all(a, {list}.all(b, a == b))"), "at most 10000 is allowed"),
        ("9".repeat(1_000) + " > 1", "too large"),
        ("!".repeat(2_000) + "true", "at most 1024"),
        ("event.http.path.matches(\"(a{1000}){1000}\")".to_owned(), "more than 1 MiB"),
    ] {
        test.gateway.reload_policy(&under(&when), "failure");
        poll(why, || {
            let told = test.gateway.status()["reasons"].to_string();
            (told.contains("spec.rules[0].when") && told.contains(why)).then_some(())
        });
        assert_eq!(test.gateway.agent().get("https://api.example.com/echo").status, 200);
    }
    test.gateway.reload_policy(&under("event.http.method == \"POST\""), "success");
    let denied = test.gateway.agent().request("POST", "https://api.example.com/echo", &[], b"hello");
    denied.assert_refused(403, "agents/test/posts");
}

/// J18: a name that is Markdown or HTML is a text in a report, and a plain one is as it is.
#[test]
fn a_name_is_no_markup_in_a_report() {
    let model = Model::under("toolDefault: Deny");
    let names = ["[click](https://evil.example) <img src=x> @you {0}", "mcp__srv__do.it"];
    for (number, name) in names.into_iter().enumerate() {
        let id = format!("toolu_{number}");
        model.hear(&Anthropic, Streamed, named(&message(&[call(0, &id, name, &["{}"])], "tool_use")));
        model.gateway.write("events.jsonl", &format!("{}\n", model.event(&id)));

        let report = model.gateway.run(&["ledger", "sarif", "--ledger", "events.jsonl"]);

        let report: Value = serde_json::from_str(&report).unwrap();
        let said = &report["runs"][0]["results"][0]["message"];
        let (text, markdown) = (said["text"].as_str().unwrap(), said["markdown"].as_str().unwrap());
        assert!(!text.contains("](") && !text.replace("{{0}}", "").contains("{0}"), "{text}");
        let outside: String = markdown.split('`').step_by(2).collect();
        assert!(!outside.contains("click") && !outside.contains("<img"), "{markdown}");
        assert!(number != 1 || (text.contains(name) && markdown.contains(name)), "the twin: {text}");
    }
}

fn postern(arguments: &[&str], file: &Path) -> Output {
    Command::new(env!("CARGO_BIN_EXE_postern")).args(arguments).arg("--ledger").arg(file).output().unwrap()
}

/// J15: a ledger in which somebody put a trigger, a view, a generated column or an index over an expression is neither
/// read nor written, and nothing of it runs; one whose rows alone were changed is read, and found out.
#[test]
fn nothing_in_a_hostile_ledger_runs() {
    let place = directory();
    let (file, copy) = (place.path().join("ledger.db"), place.path().join("copy.db"));
    let setup =
        |file: &Path| Setup::new(&Pki::new("Upstream Test CA")).set("/ledger/path", file.to_str().unwrap());
    let mut gateway = setup(&file).start();
    let id = gateway.wait_for("Lifecycle", "Allow")["id"].as_str().unwrap().to_owned();
    gateway.terminate();
    let readers: [&[&str]; 6] = [
        &["ledger", "query"],
        &["ledger", "tail"],
        &["ledger", "show", &id],
        &["ledger", "sarif"],
        &["ledger", "verify"],
        &["policy", "learn"],
    ];
    let change = |statements: &str| {
        // What the last reader left beside it is of another file.
        for ending in ["-wal", "-shm"] {
            let _ = std::fs::remove_file(place.path().join(format!("copy.db{ending}")));
        }
        std::fs::copy(&file, &copy).unwrap();
        Connection::open(&copy).unwrap().execute_batch(statements).unwrap();
    };
    for hostile in [
        "CREATE TRIGGER late AFTER INSERT ON events BEGIN DELETE FROM events; END",
        "CREATE VIEW spare AS SELECT load_extension('evil.so')",
        "DROP TABLE findings; CREATE VIEW findings AS SELECT randomblob(1000000000) AS n",
        "ALTER TABLE events ADD COLUMN grown TEXT AS (hex(zeroblob(100000000))) VIRTUAL",
        "CREATE INDEX odd ON events (upper(host))",
        "DROP TABLE evicted",
    ] {
        change(hostile);
        for reader in readers {
            let output = postern(reader, &copy);
            let said = String::from_utf8(output.stderr).unwrap();
            assert_eq!(
                (output.status.code(), output.stdout.len()),
                (Some(1), 0),
                "{hostile}: {reader:?}: {said}"
            );
            assert!(said.contains("that Postern did not make"), "{hostile}: {reader:?}: {said}");
        }
        let said = setup(&copy).run(&["gateway", "--config", "settings.yaml"]);
        assert_eq!(said.status.code(), Some(1), "{hostile}: {}", said.stderr);
        assert!(said.stderr.contains("is left as it is"), "{hostile}: {}", said.stderr);
    }
    change("ANALYZE; UPDATE events SET verdict = 'Deny'");
    for reader in readers {
        let output = postern(reader, &copy);
        let is_check = reader.contains(&"verify");
        assert_eq!(output.status.code(), Some(i32::from(is_check)), "the twin: {reader:?}");
        assert!(!is_check || String::from_utf8(output.stdout).unwrap().contains("the column verdict"));
    }
}

/// J14: a question that reads for ever is cut off, so that the WAL is written back; one that ends is answered.
#[test]
fn a_reader_does_not_keep_the_wal_from_being_written_back() {
    let place = directory();
    let file = place.path().join("ledger.db");
    let gateway = Setup::new(&Pki::new("Upstream Test CA"))
        .set("/ledger", serde_json::json!({"path": file, "maxBytes": 8 << 20}))
        .destinations(&["{name: denied, hosts: ['*.example.com'], action: Deny}"])
        .start();
    gateway.wait_for("Lifecycle", "Allow");
    let forever =
        "WITH RECURSIVE t(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM t) SELECT count(*) FROM t, events";
    let pinned = std::thread::scope(|scope| {
        let reader = scope.spawn(|| postern(&["ledger", "query", "--sql", forever], &file));
        let long = "x".repeat(1_500);
        for number in 0..1_200 {
            let url = format!("http://host-{number}.example.com/{long}");
            gateway.agent().get(&url).assert_refused(403, "agents/test/denied");
        }
        reader.join().unwrap()
    });
    assert_eq!((pinned.status.code(), pinned.stdout.len()), (Some(1), 0));
    let said = String::from_utf8(pinned.stderr).unwrap();
    assert!(said.contains("the statement was cut off after 5 seconds"), "{said}");
    let wal = place.path().join("ledger.db-wal");
    let mut number = 0;
    poll("the WAL to be written back", || {
        number += 1;
        gateway.agent().get(&format!("http://late-{number}.example.com/"));
        std::fs::metadata(&wal).is_ok_and(|wal| wal.len() < 1 << 20).then_some(())
    });
    let twin = postern(&["ledger", "query", "--sql", "SELECT count(*) > 0 AS has FROM events"], &file);
    assert_eq!((twin.status.code(), twin.stdout.as_slice()), (Some(0), &b"has\n1\n"[..]));
}
