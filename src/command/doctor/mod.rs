//! `postern doctor`: what is enforced here, what is not, and how to get it.

mod machine;
mod room;
mod rules;
mod token;
mod trust;

use std::fmt::Write as _;
use std::process::ExitCode;

use serde::Serialize;

use super::{environment, output};
use crate::cli::{DoctorArgs, Output};
use crate::config::Settings;
use crate::terminal;

/// The outcome of one check.
#[derive(Debug, PartialEq, Eq, Serialize)]
struct Finding {
    state: FindingState,
    /// The subject of the check, in a word or two.
    subject: &'static str,
    /// The finding in words.
    found: String,
    /// The remedy.
    #[serde(skip_serializing_if = "Option::is_none")]
    remedy: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
enum FindingState {
    #[serde(rename = "ok")]
    Ok,
    #[serde(rename = "warn")]
    Warn,
    /// What nobody holds an agent to.
    #[serde(rename = "not enforced")]
    NotEnforced,
    /// What `--config` asks for and is not to be had.
    #[serde(rename = "broken")]
    BrokenAnswer,
}

/// Looks at this machine and user, and at what a settings file asks for. Exit status 1 where that is broken.
pub(super) fn run(args: &DoctorArgs, output: Output) -> anyhow::Result<ExitCode> {
    let surroundings = environment::read();
    let settings =
        args.config.as_deref().map(|config| (config, Settings::read(config, &environment::variable)));
    let mut findings = machine::look(surroundings);
    findings.extend(match &settings {
        Some((config, _)) => trust::of_settings(config, surroundings),
        None => trust::of_user(surroundings),
    });
    findings.extend(trust::environment());
    let settings = settings.and_then(|(_, settings)| settings.ok());
    findings.extend(room::look(surroundings, settings.as_ref()));
    findings.extend(rules::look(settings.as_ref()));
    findings.extend(token::look(surroundings));
    let broken = findings.iter().any(|finding| finding.state == FindingState::BrokenAnswer);
    output::print(output, &text(&findings), &findings)?;
    Ok(if broken { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// Two lines at most for each, the remedy on the second.
fn text(findings: &[Finding]) -> String {
    let mut text = String::new();
    for Finding { state, subject, found, remedy } in findings {
        // A path or a policy's words stand in these texts, so controls do not reach the terminal. Writing to a
        // String cannot fail.
        let _ = writeln!(text, "{:<13} {subject:<12} {}", state.word(), terminal::plain(found));
        if let Some(remedy) = remedy {
            let _ = writeln!(text, "{:<26} to do: {}", "", terminal::plain(remedy));
        }
    }
    text
}

impl Finding {
    fn new(state: FindingState, subject: &'static str, found: impl Into<String>) -> Self {
        Self { state, subject, found: found.into(), remedy: None }
    }

    fn ok(subject: &'static str, found: impl Into<String>) -> Self {
        Self::new(FindingState::Ok, subject, found)
    }

    fn warn(subject: &'static str, found: impl Into<String>) -> Self {
        Self::new(FindingState::Warn, subject, found)
    }

    fn not_enforced(subject: &'static str, found: impl Into<String>) -> Self {
        Self::new(FindingState::NotEnforced, subject, found)
    }

    fn broken(subject: &'static str, found: impl Into<String>) -> Self {
        Self::new(FindingState::BrokenAnswer, subject, found)
    }

    fn remedy(self, remedy: impl Into<String>) -> Self {
        Self { remedy: Some(remedy.into()), ..self }
    }
}

impl FindingState {
    fn word(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Warn => "warn",
            Self::NotEnforced => "not enforced",
            Self::BrokenAnswer => "BROKEN",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn people_read_what_is_so_and_what_to_do() {
        let findings = [
            Finding::ok("kernel", "6.1"),
            Finding::not_enforced("way out", "an agent goes \u{1b}[31maround").remedy("close it"),
        ];
        insta::assert_snapshot!(text(&findings), @r"
        ok            kernel       6.1
        not enforced  way out      an agent goes \u{1b}[31maround
                                   to do: close it
        ");
    }
}
