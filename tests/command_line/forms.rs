//! Every reader of events finds the same in each form in which events are kept.

use std::fs;
use std::process::Stdio;

use serde_json::{Value, json};

use super::{Place, Said};
use crate::support::coding::encode;

const POLICY: &str = "\
apiVersion: postern.dev/v1alpha1
kind: EgressPolicy
metadata: {name: coders, namespace: agents}
spec:
  destinations: [{name: api, hosts: [api.example.com], action: Inspect}]
";

fn id(number: u64) -> String {
    format!("01a2008d-747b-7101-8101-{number:012}")
}

fn request(number: u64) -> Value {
    let verdict = if number.is_multiple_of(3) { "Deny" } else { "Allow" };
    json!({
        "apiVersion": "postern.dev/event/v1", "id": id(number), "time": "2026-11-22T00:00:00.000Z",
        "sequence": number, "count": 1, "kind": "Request", "direction": "Outbound",
        "destination": {"host": "api.example.com", "port": 443, "action": "Inspect", "intercepted": true},
        "http": {"method": "GET", "path": "/v1", "version": "HTTP/2"},
        "decision": {"verdict": verdict, "rule": "agents/coders/api"},
        "exchange": id(1_000 + number / 2),
    })
}

fn lines() -> String {
    (1..=20).map(|number| format!("{}\n", request(number))).collect()
}

/// What each reader says of events that are named so, and given so.
fn said(place: &Place, ledger: &str, input: impl Fn() -> Stdio) -> Vec<String> {
    let shown = id(7);
    let readers: [&[&str]; 8] = [
        &["ledger", "query", "-o", "json"],
        &["ledger", "query", "-o", "yaml", "--verdict", "Deny"],
        &["ledger", "tail", "-n", "3"],
        &["ledger", "show", &shown],
        &["ledger", "sarif", "--group"],
        &["policy", "learn"],
        &["policy", "diff", "policy.yaml", "new.yaml"],
        &["policy", "explain", "--policy", "policy.yaml", "--event", &shown],
    ];
    let run = |reader: &[&str]| {
        let said = place.start(&[reader, &["--ledger", ledger]].concat(), &[], input());
        assert_eq!((said.code, said.stderr.as_str()), (Some(0), ""), "{ledger}: {said:?}");
        said.stdout
    };
    readers.into_iter().map(run).collect()
}

#[test]
fn equal_events_give_equal_results_in_every_form() {
    let place = Place::new();
    place.write("policy.yaml", POLICY);
    place.write("new.yaml", &POLICY.replace("api.example.com", "other.example.com"));
    place.write("events.jsonl", &lines());
    let plain = said(&place, "events.jsonl", Stdio::null);
    assert_eq!(plain[0].lines().count(), 20);
    fs::create_dir(place.path().join("several")).unwrap();
    for (coding, ending) in [("gzip", "gz"), ("zstd", "zst")] {
        let name = format!("events.jsonl.{ending}");
        fs::write(place.path().join(&name), encode(coding, lines().as_bytes())).unwrap();
        assert_eq!(said(&place, &name, Stdio::null), plain, "{coding}");
        let open = || fs::File::open(place.path().join(&name)).unwrap().into();
        assert_eq!(said(&place, "-", open), plain, "{coding} on standard input");
    }
    let text = lines();
    let half = text.match_indices('\n').nth(9).unwrap().0 + 1;
    fs::write(place.path().join("several/1.jsonl.gz"), encode("gzip", &text.as_bytes()[..half])).unwrap();
    fs::write(place.path().join("several/2.jsonl"), &text[half..]).unwrap();
    fs::write(place.path().join("several/notes.txt"), "not ours").unwrap();
    assert_eq!(said(&place, "several", Stdio::null), plain, "a directory");
}

#[test]
fn compressed_data_that_was_cut_is_read_as_far_as_it_goes_and_the_other_files_whole() {
    let place = Place::new();
    let many: String = (1..=20_000).map(|number| format!("{}\n", request(number))).collect();
    let packed = encode("gzip", many.as_bytes());
    let query =
        |ledger: &str| place.run(&["ledger", "query", "-o", "json", "--limit", "100000", "--ledger", ledger]);
    fs::create_dir(place.path().join("several")).unwrap();
    fs::write(place.path().join("several/1.jsonl.gz"), &packed[..packed.len() / 2]).unwrap();
    fs::write(place.path().join("several/2.jsonl"), lines()).unwrap();

    let said = query("several");

    let count = said.stdout.lines().count();
    assert!(said.code == Some(0) && count > 1_000 && count < 20_000, "{count}: {}", said.stderr);
    assert!(said.stdout.ends_with(&format!("{}\n", request(20))), "the second file is read");
    assert!(
        said.stderr.contains("the compressed data ends too early; nothing behind that was read"),
        "{}",
        said.stderr
    );
    fs::write(place.path().join("whole.gz"), packed).unwrap();
    let said = query("whole.gz");
    assert_eq!((said.stdout.lines().count(), said.stderr.as_str()), (20_000, ""), "the twin");
}

#[test]
fn a_line_of_100_mb_and_a_bomb_are_passed_over() {
    let place = Place::new();
    let long = "x".repeat(100 << 20);
    fs::write(place.path().join("long.jsonl"), format!("{long}\n{}", lines())).unwrap();
    fs::write(place.path().join("long.gz"), encode("gzip", format!("{long}\n{}", lines()).as_bytes()))
        .unwrap();
    let query = |ledger: &str| place.run(&["ledger", "query", "-o", "json", "--ledger", ledger]);
    let count = |said: &Said| said.stdout.lines().count();
    let said = query("long.jsonl");
    assert_eq!((said.code, count(&said)), (Some(0), 20), "{}", said.stderr);
    assert!(said.stderr.contains("1 line is no event, or too long"), "{}", said.stderr);
    let said = query("long.gz");
    assert_eq!((said.code, count(&said)), (Some(1), 0), "{}", said.stderr);
    assert!(said.stderr.contains("more than 256 times as long"), "{}", said.stderr);
}

#[test]
fn where_no_line_is_an_event_the_exit_status_says_so() {
    let place = Place::new();
    for (name, text) in [
        ("none.jsonl", ""),
        ("log.jsonl", "starting\nready\n"),
        ("later.jsonl", "{\"apiVersion\":\"postern.dev/event/v2\"}\n"),
    ] {
        place.write(name, text);
        for command in ["query", "tail", "sarif"] {
            let said = place.run(&["ledger", command, "--ledger", name]);
            assert_eq!((said.code, said.stdout.as_str()), (Some(1), ""), "{said:?}");
            assert!(said.stderr.contains(&format!("no event was read: {name}")), "{said:?}");
        }
    }
    place.write("events.jsonl", &lines());
    let said = place.run(&["ledger", "query", "--ledger", "events.jsonl", "--host", "other.example.com"]);
    assert_eq!((said.code, said.stdout.as_str()), (Some(0), ""), "none was asked for: {said:?}");
}
