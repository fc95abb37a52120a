//! Whole answers and failures with what the agent reads of them, as files in `golden/`. `POSTERN_BLESS=1` writes them anew.
//!
//! A file has cases: `=== SENTENCE`, terms as `key: value`, `--- model` with what the model's server sends (each line of a
//! stream is the data of one event), and `--- agent` with what the agent reads. Streams are also checked strictly, and fed
//! byte by byte.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use super::testing::{STREAM, WHOLE, terms, translated};
use super::{AnswerTerms, UpstreamError, agent_error, classify};
use crate::call::FailureClass;
use crate::call::turn::AnswerFailure;
use crate::provider::anthropic::checker::{check, check_whole};

struct Case {
    title: String,
    terms: Vec<(String, String)>,
    model: String,
    agent: String,
}

impl Case {
    fn read(text: &str) -> Self {
        let (head, rest) = text.split_once("--- model\n").expect("a case has a model");
        let (model, agent) = rest.split_once("--- agent\n").expect("a case has an agent");
        let mut lines = head.lines();
        let title = lines.next().unwrap().to_owned();
        let term = |line: &str| {
            let (key, value) = line.split_once(": ").expect("a term is `key: value`");
            (key.to_owned(), value.to_owned())
        };
        let terms = lines.filter(|line| !line.is_empty()).map(term).collect();
        Self { title, terms, model: model.to_owned(), agent: agent.to_owned() }
    }

    fn write(&self, agent: &str) -> String {
        let terms: String = self.terms.iter().fold(String::new(), |mut all, (key, value)| {
            writeln!(all, "{key}: {value}").unwrap();
            all
        });
        format!("=== {}\n{terms}--- model\n{}--- agent\n{agent}", self.title, self.model)
    }

    fn term(&self, key: &str) -> Option<&str> {
        self.terms.iter().find(|(own, _)| own == key).map(|(_, value)| value.as_str())
    }
}

fn golden(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("src/provider/translate/golden").join(name)
}

/// Compares every case of a file with what `read` makes of it.
fn compare(name: &str, read: impl Fn(&Case) -> String) {
    let path = golden(name);
    let text = std::fs::read_to_string(&path).unwrap();
    let cases: Vec<Case> = text.split("=== ").skip(1).map(Case::read).collect();
    assert!(!cases.is_empty(), "{name}");
    let results: Vec<String> = cases.iter().map(read).collect();
    if std::env::var_os("POSTERN_BLESS").is_some() {
        let written: String = cases.iter().zip(&results).map(|(case, result)| case.write(result)).collect();
        std::fs::write(&path, written).unwrap();
        return;
    }
    for (case, result) in cases.iter().zip(results) {
        assert_eq!(result.trim_end(), case.agent.trim_end(), "{name}: {}", case.title);
    }
}

fn terms_of(case: &Case) -> AnswerTerms {
    let transforms: Vec<_> = case
        .term("transforms")
        .unwrap_or("reasoning")
        .split_whitespace()
        .map(|word| word.parse().unwrap())
        .collect();
    let json = |key: &str, otherwise: &str| {
        serde_json::from_str::<serde_json::Value>(case.term(key).unwrap_or(otherwise)).unwrap()
    };
    AnswerTerms {
        is_stream: case.term("agent") != Some("whole"),
        shows_thinking: case.term("thinking") != Some("no"),
        stop_sequences: serde_json::from_value(json("stop_sequences", "[]")).unwrap(),
        names: serde_json::from_value(json("names", "{}")).unwrap(),
        input_estimate: case.term("estimate").map(|number| number.parse().unwrap()),
        drops_unreadable: case.term("failurePolicy") == Some("Open"),
        ..terms(&transforms)
    }
}

fn answer(case: &Case) -> String {
    let terms = terms_of(case);
    let is_whole = case.term("model") == Some("whole");
    let (content_type, body) = if is_whole {
        (WHOLE, case.model.trim_end().to_owned())
    } else {
        (STREAM, case.model.lines().map(|line| format!("data: {line}\n\n")).collect())
    };
    let outcome = translated(&terms, content_type, body.as_bytes(), usize::MAX);
    assert_eq!(translated(&terms, content_type, body.as_bytes(), 1), outcome, "{}", case.title);
    let mut agent = match &outcome.result {
        Err(failure) => format!("{failure}\n"),
        Ok(()) if terms.is_stream => {
            check(&outcome.out, false);
            String::from_utf8(outcome.out).unwrap()
        }
        Ok(()) => {
            check_whole(&outcome.out);
            String::from_utf8(outcome.out).unwrap() + "\n"
        }
    };
    let dropped: Vec<String> =
        outcome.report.dropped.iter().map(|(what, count)| format!("{what} {count}")).collect();
    if !dropped.is_empty() {
        writeln!(agent, "dropped: {}", dropped.join(", ")).unwrap();
    }
    agent
}

fn failure(case: &Case) -> String {
    let body = case.model.trim_end();
    let failure = match (case.term("status"), case.term("class")) {
        (Some(status), _) => classify(&UpstreamError {
            status: status.parse().unwrap(),
            retry_after: case.term("retry-after"),
            body: body.as_bytes(),
        }),
        (None, Some("Request")) => AnswerFailure::unsayable(body),
        (None, class) => {
            let is_it = |known: &FailureClass| Some(known.as_str()) == class;
            AnswerFailure::new(FailureClass::ALL.into_iter().find(is_it).unwrap(), body)
        }
    };
    let error = agent_error(&failure, &terms(&[]).route);
    let next = if failure.class.falls_through() { "next" } else { "last" };
    let mut agent = format!("{} {next}\n{}", failure.class.as_str(), error.status);
    for (name, value) in &error.headers {
        write!(agent, " {name}: {value}").unwrap();
    }
    format!("{agent}\n{}\n", error.body)
}

#[test]
fn answers_are_blocks() {
    compare("blocks.txt", answer);
}

#[test]
fn calls_are_blocks_however_they_come() {
    compare("calls.txt", answer);
}

#[test]
fn answers_end_as_messages_do() {
    compare("ends.txt", answer);
}

#[test]
fn transforms_read_what_servers_write() {
    compare("transforms.txt", answer);
}

#[test]
fn failures_are_said_in_the_shape_of_anthropic() {
    compare("failures.txt", failure);
}
