//! `postern ledger query --sql`: questions in SQL to lines, and what is no question.

use serde_json::{Value, json};

use super::Place;

fn place() -> Place {
    let place = Place::new();
    let event = |number: u64| {
        let verdict = if number.is_multiple_of(3) { "Deny" } else { "Allow" };
        json!({
            "apiVersion": "postern.dev/event/v1", "id": format!("01a2008d-747b-7101-8101-{number:012}"),
            "time": "2026-11-22T00:00:00.000Z", "sequence": number, "count": 1, "kind": "ToolCall",
            "direction": "Inbound", "toolCall": {"name": "Bash\u{1b}[2J", "inputBytes": 2},
            "decision": {"verdict": verdict, "rule": "agents/coders/no-rm"},
        })
    };
    let lines: String = (1..=20_000).map(|number| format!("{}\n", event(number))).collect();
    place.write("events.jsonl", &lines);
    place
}

#[test]
fn lines_are_asked_as_a_ledger_is() {
    let place = place();
    let ask = |sql: &str, form: &str| {
        let said = place.run(&["ledger", "query", "--ledger", "events.jsonl", "--sql", sql, "-o", form]);
        assert_eq!((said.code, said.stderr.as_str()), (Some(0), ""), "{said:?}");
        said.stdout
    };
    let counts = "SELECT verdict, count(*) AS events, min(id) AS id, NULL, NULL FROM events GROUP BY verdict ORDER BY 2";
    let first = |number| format!("01a2008d-747b-7101-8101-{number:012}");
    let text = format!(
        "verdict\tevents\tid\tNULL\tNULL\nDeny\t6666\t{}\t-\t-\nAllow\t13334\t{}\t-\t-\n",
        first(3),
        first(1)
    );
    assert_eq!(ask(counts, "text"), text);
    let rows: Vec<Value> =
        ask(counts, "json").lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(
        rows[0],
        json!({"verdict": "Deny", "events": 6666, "id": first(3), "NULL": null, "NULL:5": null})
    );
    let yaml: Value = serde_yaml::from_str(&ask("SELECT max(sequence) AS last FROM events", "yaml")).unwrap();
    assert_eq!(yaml, json!({"last": 20_000}));
    assert_eq!(ask("SELECT tool FROM events LIMIT 1", "text"), "tool\nBash\\u{1b}[2J\n");
    assert_eq!(ask("SELECT count(*) FROM findings", "text"), "count(*)\n0\n");
}

#[test]
fn what_is_no_question_is_refused() {
    let place = place();
    for (sql, why) in [
        ("DELETE FROM events", "only one SELECT is answered"),
        ("SELECT 1; DELETE FROM events", "only one SELECT is answered"),
        ("ATTACH 'other.db' AS other", "only one SELECT is answered"),
        ("PRAGMA journal_mode = DELETE", "only one SELECT is answered"),
        ("PRAGMA user_version", "only one SELECT is answered"),
        ("VACUUM INTO 'copy.db'", "only one SELECT is answered"),
        ("CREATE TEMP TABLE t AS SELECT 1", "only one SELECT is answered"),
        ("SELECT * FROM pragma_database_list", "only one SELECT is answered"),
        ("SELECT load_extension('evil.so')", "not authorized"),
        ("SELECT nought FROM events", "no such column: nought"),
        ("", "only one SELECT is answered"),
    ] {
        let said = place.run(&["ledger", "query", "--ledger", "events.jsonl", "--sql", sql]);
        assert_eq!((said.code, said.stdout.as_str()), (Some(1), ""), "{sql}: {said:?}");
        assert!(said.stderr.contains(why), "{sql}: {said:?}");
    }
    let names: Vec<_> =
        std::fs::read_dir(place.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names, ["events.jsonl"], "nothing was written");
    let usage = place.run(&["ledger", "query", "--sql", "SELECT 1", "--tool", "Bash"]);
    assert_eq!(usage.code, Some(2), "{usage:?}");
}

#[test]
fn an_answer_is_bounded_in_rows_bytes_and_memory() {
    let place = place();
    let ask = |sql: &str| {
        place.run(&["ledger", "query", "--ledger", "events.jsonl", "--limit", "50000", "--sql", sql])
    };
    let said = ask("SELECT n FROM events");
    assert_eq!(
        (said.code, said.stdout.lines().count()),
        (Some(0), 10_001),
        "the names of the columns, and the rows"
    );
    assert!(said.stderr.contains("there are more"), "{}", said.stderr);
    let said = ask("SELECT printf('%.*c', 1000000, 'x') FROM events");
    assert_eq!(said.code, Some(1));
    assert!(said.stderr.contains("cut off after 64 MiB"), "{}", said.stderr);
    let said = ask("SELECT hex(zeroblob(1000000000))");
    assert_eq!((said.code, said.stdout.as_str()), (Some(1), ""), "{}", said.stderr);
}
