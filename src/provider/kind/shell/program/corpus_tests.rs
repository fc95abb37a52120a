//! Calls of agents, divided and read, against what somebody read in them by hand.

use super::super::division::{WorkingDirectory, divide};
use super::read;
use super::tests::shown;
use crate::call::Kind;

const CALLS: &str = include_str!("../corpus.txt");

/// A call with the lines that are expected of it.
fn calls() -> Vec<(String, Vec<String>)> {
    let mut calls: Vec<(String, Vec<String>)> = Vec::new();
    for line in CALLS.lines().filter(|line| !line.starts_with('#') && !line.is_empty()) {
        match line.strip_prefix("$ ") {
            Some(text) => calls.push((text.replace('⏎', "\n"), Vec::new())),
            None => calls.last_mut().unwrap().1.push(line.strip_prefix("  ").unwrap().to_owned()),
        }
    }
    calls
}

/// What is read in a call, in the form of the file.
pub(super) fn lines(text: &str) -> Vec<String> {
    let division = divide(text, &WorkingDirectory::Unsaid);
    let mut lines: Vec<String> = division
        .commands
        .iter()
        .map(|command| {
            let reading = read(command);
            let mut facts = vec![shown(&reading).replace("; ", ", ")];
            facts.extend(reading.command.changes_directory.then(|| "cd".to_owned()));
            facts.extend(reading.command.emulates.map(|kind| match kind {
                Kind::Read => "=R".to_owned(),
                Kind::Write => "=W".to_owned(),
                Kind::Fetch | Kind::Shell => "=?".to_owned(),
            }));
            facts.retain(|fact| !fact.is_empty());
            let text = reading.command.text.replace('\n', "⏎");
            if facts.is_empty() {
                text.trim_end().to_owned()
            } else {
                format!("{text} => {}", facts.join(", "))
            }
        })
        .collect();
    lines.extend(division.is_opaque.then(|| "! opaque".to_owned()));
    lines
}

#[test]
fn calls_of_agents_have_the_commands_and_facts_that_were_read_by_hand() {
    let mut wrong = String::new();
    for (text, expected) in calls() {
        let found = lines(&text);
        if found != expected {
            wrong += &format!("\n$ {}", text.replace('\n', "⏎"));
            for line in expected.iter().filter(|line| !found.contains(line)) {
                wrong += &format!("\n  - {line}");
            }
            for line in found.iter().filter(|line| !expected.contains(line)) {
                wrong += &format!("\n  + {line}");
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

#[test]
fn there_are_300_calls() {
    assert!(calls().len() >= 300, "{}", calls().len());
}
