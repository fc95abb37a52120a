//! `postern ca init` and `postern ca status`: the CA of this machine, and the gate before it.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::SystemTime;

use serde::Serialize;

use super::{directories, environment, output};
use crate::cli::{CaArgs, Output};
use crate::tls::gate::{Evidence, Gate, GateSettings, Mode, OnError};
use crate::tls::init::{self, CERTIFICATE, KEY, Metadata, Status};

/// The CA that was made, and its files.
#[derive(Serialize)]
struct CreatedCa<'a> {
    directory: String,
    #[serde(flatten)]
    metadata: &'a Metadata,
}

/// The CA, and whether a gateway started from this environment would use it.
#[derive(Serialize)]
struct CaReport {
    #[serde(flatten)]
    ca: Status,
    gate: Evidence,
}

/// Makes a CA; exit status 1 where there is one already.
pub(super) fn init(args: &CaArgs, output: Output) -> anyhow::Result<ExitCode> {
    let directory = directory(args)?;
    let metadata = init::init(&directory, SystemTime::now())?;
    let made = CreatedCa { directory: directory.display().to_string(), metadata: &metadata };
    output::print(output, &made.text(), &made)?;
    Ok(ExitCode::SUCCESS)
}

/// Reports on the CA; exit status 1 where it cannot be used.
pub(super) fn status(args: &CaArgs, output: Output) -> anyhow::Result<ExitCode> {
    let directory = directory(args)?;
    let now = SystemTime::now();
    let report = CaReport { ca: init::status(&directory, now), gate: gate(&directory, now) };
    output::print(output, &report.text(), &report)?;
    Ok(if report.ca.problems.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn directory(args: &CaArgs) -> anyhow::Result<PathBuf> {
    match &args.directory {
        Some(directory) => Ok(std::path::absolute(directory)?),
        None => directories::data(),
    }
}

/// The gate as settings that name this CA and no approval would find it.
fn gate(directory: &Path, now: SystemTime) -> Evidence {
    let settings = GateSettings {
        mode: Mode::Required,
        certificate: Some(directory.join(CERTIFICATE).into()),
        key: Some(directory.join(KEY).into()),
        approval: None,
        on_error: OnError::FailClosed,
    };
    match Gate::open(&settings, environment::read(), now) {
        Ok(gate) => gate.evidence,
        Err(closed) => closed.evidence,
    }
}

impl CreatedCa<'_> {
    fn text(&self) -> String {
        let Self { directory, metadata } = self;
        format!(
            "made         {directory}/{CERTIFICATE} and {KEY}\n\
             fingerprint  {fingerprint}\n\
             valid until  {until}\n\
             \n\
             A gateway uses it with these settings, and POSTERN_INTERCEPT=1 in its environment:\n\
             \n\
             interception:\n  \
               mode: Required\n  \
               caCertificate: {directory}/{CERTIFICATE}\n  \
               caKey: {directory}/{KEY}\n  \
               caApproval: \"{fingerprint}\"\n",
            fingerprint = metadata.fingerprint,
            until = metadata.not_after,
        )
    }
}

impl CaReport {
    fn text(&self) -> String {
        let mut text = format!("certificate  {}\n", self.ca.certificate.display());
        if let Some(authority) = &self.ca.authority {
            // Writing to a String cannot fail.
            let _ = writeln!(text, "subject      {}", authority.subject);
            let _ = writeln!(text, "fingerprint  {}", authority.fingerprint);
            let _ = writeln!(text, "valid        {} to {}", authority.not_before, authority.not_after);
            let constrained = if authority.constrained { "some names alone" } else { "every name" };
            let _ = writeln!(text, "vouches for  {constrained}");
            for caveat in &authority.caveats {
                let _ = writeln!(text, "note         {caveat}");
            }
        }
        match &self.gate.reason {
            None => text.push_str("gate         open: a gateway started here would end TLS with this CA\n"),
            Some(reason) => {
                let _ = writeln!(text, "gate         closed: {reason}");
            }
        }
        for problem in &self.ca.problems {
            let _ = writeln!(text, "problem      {problem}");
        }
        text
    }
}
