//! `postern dlp scan`: where secrets stand in files.

use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context;
use serde::Serialize;

use super::{detectors, files};
use crate::cli::{DlpScanArgs, LeastConfidence, Output};
use crate::command::output;
use crate::dlp::{Budget, Coding, Confidence, Detectors, Match, Sight};

/// The longest file, in bytes.
const MOST_BYTES: u64 = 64 << 20;
/// The most bytes that come out of the codings of one file.
const MOST_DECODED: usize = 64 << 20;
/// In so many first bytes of text there is no zero.
const HEAD: usize = 512;

/// What was found.
#[derive(Serialize)]
struct Report {
    files: usize,
    bytes: u64,
    findings: Vec<Finding>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    skipped: Vec<Skipped>,
}

/// A finding in a file. It has nothing of the value.
#[derive(Serialize)]
struct Finding {
    file: String,
    line: usize,
    column: usize,
    /// In bytes.
    length: usize,
    detector: String,
    confidence: Confidence,
    #[serde(skip_serializing_if = "Option::is_none")]
    checksum: Option<bool>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    decoded: Vec<Coding>,
}

/// A file that was not read, or not to its end.
#[derive(Serialize)]
struct Skipped {
    file: String,
    why: String,
}

pub(super) fn run(args: &DlpScanArgs, output: Output) -> anyhow::Result<ExitCode> {
    let detectors = detectors()?;
    let least = match args.confidence {
        LeastConfidence::Low => Confidence::Low,
        LeastConfidence::Medium => Confidence::Medium,
        LeastConfidence::High => Confidence::High,
    };
    let mut scan = Scan {
        detectors: &detectors,
        least,
        report: Report { files: 0, bytes: 0, findings: Vec::new(), skipped: Vec::new() },
    };
    for path in &args.paths {
        if path == Path::new("-") {
            scan.read("-", &mut io::stdin().lock()).context("standard input cannot be read")?;
            continue;
        }
        let mut failed: Vec<(PathBuf, io::Error)> = Vec::new();
        for file in files::below(path, &mut failed) {
            let opened = File::open(&file);
            if let Err(error) =
                opened.and_then(|mut opened| scan.read(&file.display().to_string(), &mut opened))
            {
                failed.push((file, error));
            }
        }
        for (file, error) in failed {
            scan.skip(&file.display().to_string(), format!("cannot be read: {error}"));
        }
    }
    let report = scan.report;
    output::print(output, &people(&report), &report)?;
    let is_clean = report.findings.is_empty() && report.skipped.is_empty();
    Ok(if is_clean { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

struct Scan<'d> {
    detectors: &'d Detectors,
    least: Confidence,
    report: Report,
}

impl Scan<'_> {
    fn read(&mut self, name: &str, input: &mut impl Read) -> io::Result<()> {
        let mut text = Vec::new();
        input.take(MOST_BYTES + 1).read_to_end(&mut text)?;
        if text.len() as u64 > MOST_BYTES {
            self.skip(name, format!("is longer than {MOST_BYTES} bytes"));
            return Ok(());
        }
        self.report.files += 1;
        self.report.bytes += text.len() as u64;
        let is_binary = text.iter().take(HEAD).any(|byte| *byte == 0);
        let sight = if is_binary { Sight::Sealed } else { Sight::Whole };
        let mut found = Vec::new();
        let searched =
            self.detectors.scan(&text, sight, &mut Budget::of(text.len(), MOST_DECODED), &mut found);
        if let Err(bound) = searched {
            self.skip(name, format!("was not searched to its end: {bound}"));
        }
        found.retain(|found| found.confidence >= self.least);
        found.sort_by_key(|found| (found.range.start, found.range.end));
        self.report.findings.extend(found.iter().map(|found| finding(name, &text, found)));
        Ok(())
    }

    fn skip(&mut self, file: &str, why: String) {
        self.report.skipped.push(Skipped { file: file.to_owned(), why });
    }
}

fn finding(file: &str, text: &[u8], found: &Match<'_>) -> Finding {
    let before = text.get(..found.range.start).unwrap_or_default();
    let line_start = memchr::memrchr(b'\n', before).map_or(0, |at| at + 1);
    let column = String::from_utf8_lossy(before.get(line_start..).unwrap_or_default()).chars().count() + 1;
    Finding {
        file: file.to_owned(),
        line: memchr::memchr_iter(b'\n', before).count() + 1,
        column,
        length: found.range.len(),
        detector: found.detector.id.clone(),
        confidence: found.confidence,
        checksum: found.checksum,
        decoded: found.decoded.clone(),
    }
}

fn people(report: &Report) -> String {
    let mut text = String::new();
    for Finding { file, line, column, detector, confidence, checksum, decoded, .. } in &report.findings {
        let checksum = match checksum {
            Some(true) => ", checksum right",
            Some(false) => ", checksum wrong",
            None => "",
        };
        let decoded: Vec<&str> = decoded.iter().map(|coding| coding.as_str()).collect();
        let within =
            if decoded.is_empty() { String::new() } else { format!(", in {}", decoded.join(" in ")) };
        // Writing to a String cannot fail.
        let _ =
            writeln!(text, "{file}:{line}:{column}: {} {detector}{checksum}{within}", confidence.as_str());
    }
    for Skipped { file, why } in &report.skipped {
        let _ = writeln!(text, "{file} {why}");
    }
    let count = |number: usize, what: &str| format!("{number} {what}{}", if number == 1 { "" } else { "s" });
    let (findings, files) = (count(report.findings.len(), "finding"), count(report.files, "file"));
    let _ = writeln!(text, "{findings} in {files}, {} bytes", report.bytes);
    text
}
