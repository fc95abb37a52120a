//! The matrix that was seen: rendered for people, and whether it is the same in every cell.

use super::column::SPEAKERS;
use super::table::{Call, Case, Verdict};

const HEAD: &str = "# Parity

The same policy comes to the same verdict whatever dialect an agent speaks. Written by `tests/parity`, which tries
every cell through the built gateway and fails where this file differs (`POSTERN_BLESS=1` writes it anew).

A cell has four marks: whole over HTTP/1.1, whole over h2, streamed over HTTP/1.1, streamed over h2. `A`: the call
passed as it was sent. `D`: it was replaced by text. `-`: there is no such cell. The Responses WebSocket is served
under `providerState: Allow`, over HTTP/1.1, and has streams alone; Gemini has arrays for streams alone. In the last
column the agent speaks Messages, and a model that speaks Chat Completions answers by a route: there `A` says that the
agent hears the call with the same id, name and input.
";

/// What became of the calls of one answer.
pub(super) enum Cell {
    /// There is no such cell.
    Absent,
    Seen {
        cell: String,
        /// For each call, whether it passed.
        passed: Vec<bool>,
        problems: Vec<String>,
    },
}

/// Rows of cells, case by case.
#[derive(Default)]
pub(super) struct Matrix {
    rows: Vec<(&'static Case, Vec<Cell>)>,
}

impl Cell {
    /// An answer that did not come through.
    pub(super) fn wrong(cell: &str, refused: String) -> Self {
        Self::Seen { cell: cell.to_owned(), passed: Vec::new(), problems: vec![refused] }
    }

    fn mark(&self, call: usize) -> char {
        match self {
            Self::Absent => '-',
            Self::Seen { passed, .. } => match passed.get(call) {
                Some(true) => 'A',
                Some(false) => 'D',
                None => '?',
            },
        }
    }
}

impl Matrix {
    pub(super) fn begin(&mut self, case: &'static Case) {
        self.rows.push((case, Vec::new()));
    }

    pub(super) fn push(&mut self, cell: Cell) {
        self.rows.last_mut().unwrap().1.push(cell);
    }

    /// Panics with every problem of every cell.
    #[track_caller]
    pub(super) fn assert_uniform(&self) {
        let mut problems = Vec::new();
        for (case, cells) in &self.rows {
            for seen in cells {
                if let Cell::Seen { cell, problems: found, .. } = seen {
                    problems
                        .extend(found.iter().map(|problem| format!("{} [{cell}]: {problem}", case.title)));
                }
            }
        }
        assert!(problems.is_empty(), "{} cells differ:\n{}", problems.len(), problems.join("\n"));
    }

    /// The file, with a table of all calls and the policies below it.
    pub(super) fn render(&self) -> String {
        let names: Vec<&str> = SPEAKERS.iter().map(|(name, _)| *name).collect();
        let mut text = format!("{HEAD}\n| policy | call | verdict | {} |\n", names.join(" | "));
        text.push_str(&"|---".repeat(3 + names.len()));
        text.push_str("|\n");
        for (case, cells) in &self.rows {
            for (number, call) in case.calls.iter().enumerate() {
                let marks: Vec<char> = cells.iter().map(|cell| cell.mark(number)).collect();
                let groups: Vec<String> =
                    marks.chunks(4).map(|four| format!("`{}`", four.iter().collect::<String>())).collect();
                let columns = groups.join(" | ");
                text.push_str(&format!(
                    "| {} | `{}` | {} | {columns} |\n",
                    case.title,
                    shown(call),
                    verdict(call.verdict)
                ));
            }
        }
        text.push_str("\nThe policies, beside `providerState: Allow` and destinations that are inspected:\n");
        for (case, _) in self.rows.iter().filter(|(case, _)| !case.spec.is_empty()) {
            text.push_str(&format!("\n{}:\n\n```yaml\n{}\n```\n", case.title, case.spec));
        }
        text
    }
}

fn shown(call: &Call) -> String {
    let namespace = call.namespace.map_or_else(String::new, |name| format!("{name}."));
    format!("{namespace}{} {}", call.name, call.input.replace('|', "\\|"))
}

fn verdict(verdict: Verdict) -> String {
    let rule = verdict.rule().map_or_else(String::new, |rule| format!(", `{rule}`"));
    format!("{}{rule}", verdict.word())
}
