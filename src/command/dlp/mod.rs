//! `postern dlp`: the detectors, and what they find in files.

mod files;
mod scan;

use std::fmt::Write as _;
use std::io::{self, Read as _};
use std::process::ExitCode;

use anyhow::{Context, bail};
use serde::Serialize;

use super::output;
use crate::cli::{DlpCommand, Output};
use crate::digest::sha256_hex;
use crate::dlp::{Confidence, Detectors, GATEWAY_CREDENTIAL};

/// The longest value that is hashed, in bytes.
const MOST_BYTES: u64 = 1 << 20;

pub(super) fn run(command: &DlpCommand, output: Output) -> anyhow::Result<ExitCode> {
    match command {
        DlpCommand::Scan(args) => scan::run(args, output),
        DlpCommand::List => list(output),
        DlpCommand::Hash => hash(output),
    }
}

/// A row of the list.
#[derive(Serialize)]
struct Listed<'a> {
    detector: &'a str,
    confidence: Confidence,
    rigid: bool,
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    home: &'a [String],
}

fn list(output: Output) -> anyhow::Result<ExitCode> {
    let detectors = detectors()?;
    let rows = detectors.iter().map(|detector| Listed {
        detector: &detector.id,
        confidence: detector.confidence,
        rigid: detector.is_rigid,
        home: &detector.home,
    });
    // A gateway knows its own keys, and needs no shape for them.
    let own = Listed { detector: GATEWAY_CREDENTIAL, confidence: Confidence::High, rigid: false, home: &[] };
    let rows: Vec<Listed<'_>> = rows.chain([own]).collect();
    let mut text = String::new();
    for row in &rows {
        let rigid = if row.rigid { "rigid" } else { "" };
        // Writing to a String cannot fail.
        let _ = writeln!(
            text,
            "{:<28} {:<7} {rigid:<6} {}",
            row.detector,
            row.confidence.as_str(),
            row.home.join(" ")
        );
    }
    output::print(output, &text, &rows)?;
    Ok(ExitCode::SUCCESS)
}

/// A value by its hash alone.
#[derive(Serialize)]
struct Hashed {
    sha256: String,
}

fn hash(output: Output) -> anyhow::Result<ExitCode> {
    let mut value = Vec::new();
    io::stdin().take(MOST_BYTES + 1).read_to_end(&mut value).context("standard input cannot be read")?;
    if value.len() as u64 > MOST_BYTES {
        bail!("the value is longer than {MOST_BYTES} bytes");
    }
    let value = value.strip_suffix(b"\n").unwrap_or(&value);
    let value = value.strip_suffix(b"\r").unwrap_or(value);
    if value.is_empty() {
        bail!("there is no value on standard input: printf %s \"$VALUE\" | postern dlp hash");
    }
    let sha256 = sha256_hex(value);
    output::print(output, &format!("{sha256}\n"), &Hashed { sha256: sha256.clone() })?;
    Ok(ExitCode::SUCCESS)
}

fn detectors() -> anyhow::Result<Detectors> {
    Detectors::built_in()
        .map_err(anyhow::Error::msg)
        .context("the detectors that are built in cannot be read")
}
