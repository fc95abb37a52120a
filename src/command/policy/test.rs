//! `postern policy test`: cases of calls, requests and events against policies, without a gateway or a network.

use std::fs;
use std::io::Read as _;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use anyhow::Context;
use http::request::Parts;

use super::{guard_limits, read};
use crate::cli::{Output, PolicyTestArgs};
use crate::command::{ledger, output};
use crate::config::limits::Limits;
use crate::config::source;
use crate::event::Event;
use crate::name::host::Host;
use crate::policy::{Labels, Policy};
use crate::problem::Problem;
use crate::provider::surface::COMPANIONS;
use crate::proxy::exchange::preview;
use crate::sarif;
use crate::trial::document::{self, PolicyTest};
use crate::trial::report::{CaseReport, Report};
use crate::trial::{HeadOutcome, Trial, World, expect};

/// The largest file of tests.
const MOST_BYTES: u64 = 1 << 20;

/// The largest body, in bytes: what a gateway holds of a request at most by default.
const MOST_BODY: u64 = 64 << 20;

/// Tries every case; exit status 1 where one does not hold, or a file has a mistake.
pub(super) fn run(args: &PolicyTestArgs, output: Output) -> anyhow::Result<ExitCode> {
    let (mut tests, mut problems) = (Vec::new(), Vec::new());
    for file in &args.files {
        let name = file.display().to_string();
        let text = source::read_text(file, MOST_BYTES).map_err(|problem| vec![problem]);
        match text.and_then(|text| document::parse(&name, &text)) {
            Ok(read) => tests.extend(read.into_iter().map(|test| (name.clone(), test))),
            Err(found) => problems.extend(found),
        }
    }
    let mut cases = Vec::new();
    for (name, test) in &tests {
        match tried(name, test) {
            Ok(found) => cases.extend(found),
            Err(found) => problems.extend(found),
        }
    }
    if !problems.is_empty() {
        output::print_problems(output, &problems)?;
        return Ok(ExitCode::FAILURE);
    }
    let report = Report::new(cases);
    if let Some(file) = &args.junit {
        fs::write(file, report.junit()).with_context(|| format!("{} cannot be written", file.display()))?;
    }
    if let Some(file) = &args.sarif {
        let directory = std::env::current_dir().unwrap_or_default();
        let sarif = serde_json::to_string_pretty(&sarif::failed_cases(&report, &directory))?;
        fs::write(file, sarif + "\n").with_context(|| format!("{} cannot be written", file.display()))?;
    }
    output::print(output, &report.text(), &report)?;
    Ok(if report.failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Tries the cases of one document.
fn tried(file: &str, test: &PolicyTest) -> Result<Vec<CaseReport>, Vec<Problem>> {
    let paths: Vec<_> = test.policy.iter().map(|path| test.resolve(path)).collect();
    let (documents, problems) = read(&paths);
    if !problems.is_empty() {
        return Err(problems);
    }
    let mut problems = expect::unknown_rules(test, &documents);
    let labels: Labels = test.labels.clone().into_iter().collect();
    let policy = Arc::new(Policy::compile(&documents, &labels)?.accompanied(COMPANIONS));
    let now = test.now.map(|now| SystemTime::UNIX_EPOCH + Duration::from_millis(now.unix_millis()));
    let trial = Trial { policy: &policy, bounds: guard_limits(), world: &Files(test), now };
    let mut cases = Vec::new();
    for (number, case) in test.cases.iter().enumerate() {
        let place = format!("cases[{number}]");
        match trial.run(case) {
            Ok(tried) => {
                let differences = expect::differences(&case.expect, &tried);
                cases.push(CaseReport {
                    file: file.to_owned(),
                    place: test.origin.place(&place),
                    name: case.name.clone(),
                    holds: differences.is_empty(),
                    decision: tried.ok().map(|outcome| outcome.decision),
                    differences,
                });
            }
            Err(problem) => {
                let path = document::within(&place, &problem.path);
                problems.push(test.origin.locate(Problem { path, ..problem }));
            }
        }
    }
    if problems.is_empty() { Ok(cases) } else { Err(problems) }
}

/// The files of a test, and the gateway's decision about heads.
struct Files<'a>(&'a PolicyTest);

impl World for Files<'_> {
    fn file(&self, path: &Path) -> Result<Vec<u8>, String> {
        let path = self.0.resolve(path);
        let said = |error: &dyn std::fmt::Display| format!("{} cannot be read: {error}", path.display());
        let file = fs::File::open(&path).map_err(|error| said(&error))?;
        let mut bytes = Vec::new();
        file.take(MOST_BODY + 1).read_to_end(&mut bytes).map_err(|error| said(&error))?;
        if bytes.len() as u64 > MOST_BODY {
            return Err(said(&format!("it is larger than {MOST_BODY} bytes")));
        }
        Ok(bytes)
    }

    fn event(&self, id: &str, from: &Path) -> Result<(Event, String), String> {
        let entry =
            ledger::find(id, Some(&self.0.resolve(from))).map_err(|error| format!("{error:#}"))?.entry;
        Ok((entry.event, entry.line))
    }

    fn head(&self, parts: &Parts, has_body: bool, place: (Host, u16), policy: &Policy) -> HeadOutcome {
        let header_count = Limits::default().header_count;
        let head = preview::preview(parts, has_body, place, (policy, header_count));
        head.into()
    }
}
