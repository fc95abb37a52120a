//! How entries of a ledger are printed, and the lines that were skipped.

use std::io::{self, Write};

use super::reader::LedgerEntry;
use super::row;
use crate::cli::Output;
use crate::command::output;
use crate::terminal;

/// Prints one line for people, the event itself for programs; a document each in YAML.
pub(super) fn entry(entry: &LedgerEntry, form: Output) -> anyhow::Result<String> {
    Ok(match form {
        Output::Text => row::row(&entry.event) + "\n",
        Output::Json => format!("{}\n", terminal::json(&entry.line)),
        Output::Yaml | Output::Test => {
            let event: serde_json::Value = serde_json::from_str(&entry.line)?;
            format!("---\n{}", output::yaml(&event)?)
        }
    })
}

/// Reports skipped lines on standard error; standard output has events alone.
pub(super) fn report_skipped(texts: &[String]) {
    for text in texts {
        // Nobody may be reading it.
        let _ = writeln!(io::stderr(), "postern: {}", terminal::plain(text));
    }
}
