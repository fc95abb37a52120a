//! The results of tests, as people, programs and continuous integration (JUnit) read them.

use std::fmt::Write as _;

use serde::Serialize;

use crate::policy::explain::ShownDecision;
use crate::terminal;

/// What became of all cases.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Report {
    pub held: usize,
    pub failed: usize,
    pub cases: Vec<CaseReport>,
}

/// What became of one case.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CaseReport {
    pub file: String,
    /// `file:line`, where the case begins.
    #[serde(skip)]
    pub place: String,
    pub name: String,
    pub holds: bool,
    /// None where it cannot be said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub decision: Option<ShownDecision>,
    /// What differs from what is expected.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub differences: Vec<String>,
}

impl Report {
    pub fn new(cases: Vec<CaseReport>) -> Self {
        let held = cases.iter().filter(|case| case.holds).count();
        Self { held, failed: cases.len() - held, cases }
    }

    /// A line for each case, and below it what differs.
    pub fn text(&self) -> String {
        let mut text = String::new();
        for case in &self.cases {
            let word = if case.holds { "ok  " } else { "FAIL" };
            // Writing to a String cannot fail.
            let _ = writeln!(text, "{word}  {}  {}", case.place, terminal::plain(&case.name));
            for difference in &case.differences {
                let _ = writeln!(text, "      {}", terminal::plain(difference));
            }
        }
        let cases = if self.cases.len() == 1 { "case" } else { "cases" };
        let holding = if self.held == 1 { "holds" } else { "hold" };
        let failing = if self.failed == 1 { "does" } else { "do" };
        let _ = writeln!(
            text,
            "{} {cases}: {} {holding}, {} {failing} not",
            self.cases.len(),
            self.held,
            self.failed
        );
        text
    }

    /// A document of JUnit's XML, as the readers of continuous integration know it: a suite for each file.
    pub fn junit(&self) -> String {
        let mut xml = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
        let _ = writeln!(xml, "<testsuites tests=\"{}\" failures=\"{}\">", self.cases.len(), self.failed);
        for suite in self.cases.chunk_by(|one, next| one.file == next.file) {
            let file = suite.first().map(|case| escaped(&case.file)).unwrap_or_default();
            let failed = suite.iter().filter(|case| !case.holds).count();
            let _ = writeln!(
                xml,
                "  <testsuite name=\"{file}\" tests=\"{}\" failures=\"{failed}\">",
                suite.len()
            );
            for case in suite {
                let head = format!("    <testcase classname=\"{file}\" name=\"{}\"", escaped(&case.name));
                if case.holds {
                    let _ = writeln!(xml, "{head}/>");
                    continue;
                }
                let message = escaped(&case.differences.join("; "));
                let _ = writeln!(
                    xml,
                    "{head}>\n      <failure message=\"{message}\">{}</failure>\n    </testcase>",
                    escaped(&case.place)
                );
            }
            xml.push_str("  </testsuite>\n");
        }
        xml.push_str("</testsuites>\n");
        xml
    }
}

/// A text as XML 1.0 may hold it, in an attribute too. A character that XML does not know becomes U+FFFD.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\n' => escaped.push_str("&#10;"),
            '\t' => escaped.push_str("&#9;"),
            '\r' => escaped.push_str("&#13;"),
            '\0'..='\u{1f}' | '\u{fffe}' | '\u{ffff}' => escaped.push('\u{fffd}'),
            other => escaped.push(other),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    fn case(file: &str, name: &str, differences: &[&str]) -> CaseReport {
        CaseReport {
            file: file.to_owned(),
            place: format!("{file}:3"),
            name: name.to_owned(),
            holds: differences.is_empty(),
            decision: None,
            differences: differences.iter().map(|text| (*text).to_owned()).collect(),
        }
    }

    #[test]
    fn junit_has_a_suite_for_each_file_and_no_text_breaks_its_xml() {
        let report = Report::new(vec![
            case("a.yaml", "one", &[]),
            case("a.yaml", "<\"two\" & \u{1}three>", &["expected ]]> Deny", "b"]),
            case("b.yaml", "four", &[]),
        ]);
        insta::assert_snapshot!(report.junit(), @r#"
        <?xml version="1.0" encoding="UTF-8"?>
        <testsuites tests="3" failures="1">
          <testsuite name="a.yaml" tests="2" failures="1">
            <testcase classname="a.yaml" name="one"/>
            <testcase classname="a.yaml" name="&lt;&quot;two&quot; &amp; �three&gt;">
              <failure message="expected ]]&gt; Deny; b">a.yaml:3</failure>
            </testcase>
          </testsuite>
          <testsuite name="b.yaml" tests="1" failures="0">
            <testcase classname="b.yaml" name="four"/>
          </testsuite>
        </testsuites>
        "#);
    }

    #[test]
    fn people_read_a_line_for_each_case() {
        let report = Report::new(vec![case("a.yaml", "one", &[]), case("a.yaml", "two", &["expected Deny"])]);
        insta::assert_snapshot!(report.text(), @r"
        ok    a.yaml:3  one
        FAIL  a.yaml:3  two
              expected Deny
        2 cases: 1 holds, 1 does not
        ");
    }
}
