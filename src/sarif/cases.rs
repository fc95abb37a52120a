//! The cases of policy tests that do not hold, each at its line.

use std::path::Path;

use super::SarifLog;
use super::log::{Configuration, Description, ReportingDescriptor, RuleProperties, SarifResult, help};
use super::message::Message;
use super::place::Place;
use crate::digest::sha256_hex;
use crate::trial::report::{CaseReport, Report};

const RULE: &str = "postern/policy-test";

/// A report of the cases that do not hold; files are told relative to this directory.
pub(crate) fn failed_cases(report: &Report, directory: &Path) -> SarifLog {
    let failed = report.cases.iter().filter(|case| !case.holds);
    let results: Vec<_> = failed.map(|case| result(case, directory)).collect();
    let rules = if results.is_empty() { Vec::new() } else { vec![rule()] };
    SarifLog::written("postern/policy-test/", rules, results)
}

fn result(case: &CaseReport, directory: &Path) -> SarifResult {
    let line = case.place.rsplit(':').next().and_then(|line| line.parse().ok()).unwrap_or(1);
    let mut message = Message::default().ours("The case ").foreign(&case.name).ours(" does not hold");
    for (number, difference) in case.differences.iter().enumerate() {
        message = message.ours(if number == 0 { ": " } else { "; " }).foreign(difference);
    }
    let place = Place::of_file(Path::new(&case.file), line, directory);
    // The line moves with every edit above it; the name stays.
    let fingerprint = sha256_hex(format!("{}\0{}", place.uri, case.name).as_bytes());
    SarifResult::plain(RULE, &message.ours("."), place, fingerprint)
}

fn rule() -> ReportingDescriptor {
    let text = |words: &'static str| Description { text: Message::default().ours(words).text() };
    let what = Message::default()
        .ours("The policies decide otherwise than the test expects. ")
        .ours("`postern policy explain --policy FILE QUESTION` says why each rule applies or does not.");
    ReportingDescriptor {
        id: RULE.to_owned(),
        short_description: text("A case of a policy test does not hold"),
        full_description: text("A policy test expects another decision than the policies make."),
        help: help(&what),
        help_uri: concat!(env!("CARGO_PKG_REPOSITORY"), "/blob/main/docs/policy.md"),
        default_configuration: Configuration { level: "error" },
        properties: RuleProperties { tags: vec!["policy".to_owned()], security_severity: "5.0" },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn case(name: &str, differences: &[&str]) -> CaseReport {
        CaseReport {
            file: "tests/a b.yaml".to_owned(),
            place: "tests/a b.yaml:12".to_owned(),
            name: name.to_owned(),
            holds: differences.is_empty(),
            decision: None,
            differences: differences.iter().map(|text| (*text).to_owned()).collect(),
        }
    }

    #[test]
    fn each_case_that_does_not_hold_is_a_result_at_its_line() {
        let report = Report::new(vec![case("one", &[]), case("[two](x)", &["expected Deny, is Allow"])]);
        let log = serde_json::to_value(failed_cases(&report, Path::new("/w"))).unwrap();
        let results = log["runs"][0]["results"].as_array().unwrap();
        assert_eq!(results.len(), 1);
        let place = &results[0]["locations"][0]["physicalLocation"];
        assert_eq!(place["artifactLocation"]["uri"], "tests/a%20b.yaml");
        assert_eq!(place["region"]["startLine"], 12);
        assert!(results[0]["message"]["markdown"].as_str().unwrap().contains("`[two](x)`"), "{log}");
        assert!(results[0].get("guid").is_none(), "{log}");
        assert_eq!(log["runs"][0]["tool"]["driver"]["rules"][0]["id"], RULE);
    }

    #[test]
    fn where_all_cases_hold_the_report_is_empty() {
        let log = serde_json::to_value(failed_cases(&Report::new(vec![case("one", &[])]), Path::new("/w")))
            .unwrap();
        assert_eq!(log["runs"][0]["results"], serde_json::json!([]));
    }
}
