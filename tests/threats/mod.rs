//! Attacks by the numbers of the threat list, each with a benign twin that must pass; and the check that none is forgotten.

mod agent_door;
mod answers;
mod bodies;
mod bounds;
mod calls;
mod canaries;
mod companions;
mod conditions;
mod control;
mod control_files;
mod copies;
mod credentials;
mod descriptors;
mod doors;
mod echoes;
mod endpoints;
mod evidence;
mod floods;
mod framing;
mod grammar;
mod handshake;
mod hosted;
mod inferred;
mod interop;
mod kept_results;
mod kinds;
mod known_values;
mod leaving;
mod load;
mod memory;
mod model;
mod modes;
mod named_files;
mod names;
mod network;
mod one_id;
mod page;
mod phases;
mod record;
mod replay;
mod requests;
mod requests_routed;
mod resolver;
mod restarts;
mod results_alone;
mod route_answers;
mod route_doors;
mod route_endpoints;
mod route_floods;
mod route_guard;
mod route_keys;
mod route_markers;
mod scripts;
mod secrets;
mod shell;
mod shell_carriers;
mod shell_forms;
mod shell_native;
mod signatures;
mod sockets;
mod spelling;
mod state;
mod statuses;
mod streams;
mod tool_results;
mod truncated;
mod unclear;
mod workspace;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use crate::support::Gateway;
use crate::support::journal::poll;

/// The attacks that this version answers for.
const ANSWERED: &str = "A2 A6 A7 A8 A16 A17 A28 A29 B1 B2 B3 B4 B5 B6 B7 B8 B9 B10 B11 B12 B13 B14 B15 B17 B18 B19 B20 \
                        C1 C2 C3 C4 C5 C6 C7 C8 C9 C10 C11 C12 D1 D2 D3 D4 D5 D6 D7 \
                        D8 D9 D10 D11 D12 D14 D15 D16 D17 D18 D19 D20 \
                        E1 E2 E3 E4 E5 E6 E7 E8 E9 E10 E11 E12 E13 E14 E15 E16 E17 E18 E19 E21 \
                        F1 F2 F3 F4 F5 F6 F7 F8 F9 F10 F11 F12 F13 F14 F15 F16 F17 F18 F19 F20 F21 F22 F23 F24 F25 \
                        F26 F27 F28 F29 F30 F31 F32 \
                        G1 G3 G4 G5 G6 G7 G9 G11 G12 G13 G14 H4 H13 J1 J2 J3 J4 J5 J6 J7 J8 J9 J10 J11 J12 J13 J14 J15 J16 J17 J18 J19 J21 \
                         L1 L2 L3 L4 L5 L6 L7 L8 L9 L10 L11 L12 L13 L14 O1 O2 O3 O4 O5 O6 \
                        K1 K2 K3 K4 K5 K6 K7 K8 K9 K10 K11 K12 K13";

#[test]
fn every_attack_has_a_test_or_stands_among_the_exclusions() {
    let (tests, document) = (tests(), document());
    let excluded: BTreeSet<&str> =
        rows(&document, "## Without a test").map(|(ids, _)| ids).flat_map(ids).collect();

    let forgotten: Vec<&str> = ANSWERED
        .split_whitespace()
        .filter(|id| !tests.values().any(|carried| carried.contains(*id)) && !excluded.contains(id))
        .collect();

    assert_eq!(forgotten, Vec::<&str>::new(), "neither a test nor a line in docs/threat-model.md");
}

#[test]
fn the_document_names_for_every_attack_the_tests_that_are_there() {
    let (tests, document) = (tests(), document());
    let mut wrong = Vec::new();
    let mut described = BTreeSet::new();
    for (id, row) in rows(&document, "## What holds") {
        described.insert(id);
        for name in row.split('`').skip(1).step_by(2).filter(|name| name.matches('_').count() > 1) {
            if !tests.get(name).is_some_and(|carried| carried.contains(id)) {
                wrong.push(format!("{id}: no test {name} carries it"));
            }
        }
        let carrying = tests.iter().filter(|(_, carried)| carried.contains(id));
        wrong.extend(
            carrying
                .filter(|(name, _)| !row.contains(&format!("`{name}`")))
                .map(|(name, _)| format!("{id}: {name} is not named")),
        );
    }
    wrong.extend(
        ANSWERED.split_whitespace().filter(|id| !described.contains(id)).map(|id| format!("{id}: no row")),
    );

    assert!(wrong.is_empty(), "docs/threat-model.md:\n{}", wrong.join("\n"));
}

/// All tests, each with the numbers that its doc lines begin with: most stand in this directory, and some where the thing is
/// that they are about.
fn tests() -> BTreeMap<String, BTreeSet<String>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let files = ["tests", "src"].iter().flat_map(|directory| rust_files(&root.join(directory)));
    let mut tests = BTreeMap::<String, BTreeSet<String>>::new();
    for (name, numbers) in files.flat_map(|file| carried(&fs::read_to_string(file).unwrap())) {
        tests.entry(name).or_default().extend(numbers);
    }
    tests
}

fn rust_files(directory: &Path) -> Vec<PathBuf> {
    let paths = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    let files = paths.flat_map(|path| if path.is_dir() { rust_files(&path) } else { vec![path] });
    files.filter(|path| path.extension().is_some_and(|extension| extension == "rs")).collect()
}

/// Each `#[test]` of a file, and the numbers in front of the colon of its `///` lines.
fn carried(source: &str) -> Vec<(String, BTreeSet<String>)> {
    let mut found = Vec::new();
    let (mut numbers, mut is_test) = (BTreeSet::new(), false);
    for line in source.lines().map(str::trim) {
        if let Some(text) = line.strip_prefix("/// ") {
            numbers.extend(
                text.split_once(':').into_iter().flat_map(|(before, _)| ids(before)).map(str::to_owned),
            );
        } else if line == "#[test]" {
            is_test = true;
        } else if let Some(rest) = line.strip_prefix("fn ") {
            if is_test {
                let name = rest.split('(').next().unwrap_or_default().to_owned();
                found.push((name, std::mem::take(&mut numbers)));
            }
            (numbers, is_test) = (BTreeSet::new(), false);
        } else {
            numbers.clear();
        }
    }
    found
}

/// The rows of the table under a heading: the first cell, and the whole line.
fn rows<'a>(document: &'a str, heading: &str) -> impl Iterator<Item = (&'a str, &'a str)> {
    let section = document.split_once(heading).unwrap_or_else(|| panic!("no {heading:?}")).1;
    let section = section.split("\n## ").next().unwrap();
    let lines = section.lines().filter(|line| line.starts_with("| "));
    lines.skip(1).map(|line| (line.split('|').nth(1).unwrap().trim(), line))
}

fn document() -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/threat-model.md")).unwrap()
}

/// The numbers in a text such as `B14, K8`.
fn ids(text: &str) -> impl Iterator<Item = &str> {
    text.split(", ").filter(|id| {
        let digits = id.strip_prefix(|letter: char| letter.is_ascii_uppercase());
        digits.is_some_and(|digits| !digits.is_empty() && digits.bytes().all(|digit| digit.is_ascii_digit()))
    })
}

/// Waits until this many connections were denied, and answers the host and the rule of each that was.
#[track_caller]
fn denials(gateway: &Gateway, count: usize) -> Vec<(String, String)> {
    let word = |value: &serde_json::Value| value.as_str().unwrap_or_default().to_owned();
    poll(&format!("the denial of {count} connections"), || {
        let events = gateway.events().into_iter();
        let denied =
            events.filter(|event| event["kind"] == "Connection" && event["decision"]["verdict"] == "Deny");
        let denied: Vec<_> = denied
            .map(|event| (word(&event["destination"]["host"]), word(&event["decision"]["rule"])))
            .collect();
        (denied.len() >= count).then_some(denied)
    })
}
