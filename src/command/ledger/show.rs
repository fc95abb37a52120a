//! `postern ledger show`: one event, and those of its exchange.

use std::fmt::Write as _;
use std::path::Path;
use std::process::ExitCode;

use serde_json::{Value, json};

use super::find::{FoundEvent, find};
use super::print;
use super::reader::{self, LedgerEntry, LedgerReader, ReadStep};
use super::row::row;
use crate::cli::{LedgerShowArgs, Output};
use crate::command::output;
use crate::ledger::store::RowFilter;
use crate::terminal;
use crate::trial::written::test_of;

/// The most events of one exchange, and the most of their bytes.
const MOST_EVENTS: usize = 1_000;
const MOST_BYTES: usize = 64 << 20;

/// Prints the event; exit status 1 where there is none.
pub(super) fn run(args: &LedgerShowArgs, output: Output) -> anyhow::Result<ExitCode> {
    let found = find(&args.id, args.source.ledger.as_deref())?;
    if output == Output::Test {
        return write_test(&found, args.source.ledger.as_deref());
    }
    let event: Value = serde_json::from_str(&found.entry.line)?;
    let others = others(&found)?;
    let lines: Vec<Value> =
        others.iter().map(|other| serde_json::from_str(&other.line)).collect::<Result<_, _>>()?;
    output::print(output, &people(&found, &event, &others), &json!({"event": event, "exchange": lines}))?;
    print::report_skipped(&found.skipped);
    Ok(ExitCode::SUCCESS)
}

/// Prints the case of `postern policy test` that asks for this event's decision again.
fn write_test(found: &FoundEvent, ledger: Option<&Path>) -> anyhow::Result<ExitCode> {
    let file = match ledger {
        Some(path) if reader::is_standard_input(path) => None,
        Some(path) => Some(path.canonicalize()?),
        None => found.files.first().cloned(),
    };
    let event = &found.entry.event;
    let test = test_of(event, file.as_ref().map(|file| file.to_string_lossy()).as_deref())
        .map_err(|why| anyhow::anyhow!("{}: {why}", event.id))?;
    let mut text =
        "# Name your policy, and with `labels` the pod; then `postern policy test` this file.\n".to_owned();
    if event.tool_call.is_some() && test.pointer("/cases/0/toolCall").is_none() {
        text.push_str("# The event does not have the whole call; where what is missing decides, write a `toolCall` here.\n");
    }
    output::print(Output::Text, &(text + &output::yaml(&test)?), &())?;
    print::report_skipped(&found.skipped);
    Ok(ExitCode::SUCCESS)
}

/// Reads the other events of the exchange; of the connection where the event has no exchange.
fn others(found: &FoundEvent) -> anyhow::Result<Vec<LedgerEntry>> {
    let event = &found.entry.event;
    let is_other = |other: &LedgerEntry| {
        let shared = match (&event.exchange, &event.connection) {
            (Some(_), _) => other.event.exchange == event.exchange,
            (None, Some(_)) => other.event.connection == event.connection,
            (None, None) => false,
        };
        shared && other.event.id != event.id
    };
    if event.exchange.is_none() && event.connection.is_none() {
        return Ok(Vec::new());
    }
    let filter = RowFilter { exchange: event.exchange, ..RowFilter::default() };
    let mut reader = LedgerReader::filtered(found.files.clone(), filter)?;
    let (mut others, mut bytes) = (Vec::new(), 0);
    while let ReadStep::Entry(entry) = reader.next()? {
        if is_other(&entry) {
            bytes += entry.line.len();
            if others.len() == MOST_EVENTS || bytes > MOST_BYTES {
                break;
            }
            others.push(*entry);
        }
    }
    Ok(others)
}

fn people(found: &FoundEvent, event: &Value, others: &[LedgerEntry]) -> String {
    let mut text = String::new();
    if found.is_counted {
        text.push_str("no event has this id alone; it was made while these were counted as one:\n");
    }
    text.push_str(&row(&found.entry.event));
    text.push_str("\n\n");
    fields(event, "", &mut text);
    if !others.is_empty() {
        let scope = if found.entry.event.exchange.is_some() { "exchange" } else { "connection" };
        // Writing to a String cannot fail.
        let _ = writeln!(text, "\nof the same {scope}:");
        for other in others {
            let _ = writeln!(text, "{}", row(&other.event));
        }
    }
    let _ = writeln!(text, "\nwhy: postern policy explain --policy FILE --event {}", found.entry.event.id);
    text
}

/// Writes each field on a line, by its dotted path.
fn fields(value: &Value, path: &str, text: &mut String) {
    let below = |key: &str| if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") };
    let shown = match value {
        Value::Object(entries) => {
            return entries.iter().for_each(|(key, value)| fields(value, &below(key), text));
        }
        Value::Array(items) => {
            let numbered = items.iter().enumerate();
            return numbered.for_each(|(number, item)| fields(item, &below(&number.to_string()), text));
        }
        Value::String(shown) => shown.clone(),
        Value::Null | Value::Bool(_) | Value::Number(_) => value.to_string(),
    };
    // Writing to a String cannot fail.
    let _ = writeln!(text, "  {:<26} {}", terminal::plain(path), terminal::plain(&shown));
}
