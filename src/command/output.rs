//! How commands print: text for people, or the same data as JSON or YAML.

use std::fmt::Write as _;
use std::io::{self, Write};

use serde::Serialize;

use crate::cli::Output;
use crate::problem::Problem;
use crate::terminal;

/// A problem as programs read it.
#[derive(Serialize)]
struct ProblemRow<'a> {
    #[serde(skip_serializing_if = "str::is_empty")]
    file: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    column: Option<usize>,
    #[serde(skip_serializing_if = "str::is_empty")]
    path: &'a str,
    message: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    severity: Option<&'static str>,
}

impl<'a> ProblemRow<'a> {
    fn of(problem: &'a Problem, severity: Option<&'static str>) -> Self {
        Self {
            file: &problem.file,
            line: problem.position.map(|(line, _)| line),
            column: problem.position.map(|(_, column)| column),
            path: &problem.path,
            message: &problem.message,
            severity,
        }
    }
}

/// Prints a result on standard output: `text` for people, else `data`.
pub fn print(output: Output, text: &str, data: &impl Serialize) -> anyhow::Result<()> {
    let rendered = render(output, text, data)?;
    let mut stdout = io::stdout().lock();
    stdout.write_all(rendered.as_bytes())?;
    Ok(stdout.flush()?)
}

/// A result in the form that was asked for. Agents and upstreams may have chosen any text in it: none reaches a
/// terminal as anything but text.
pub(super) fn render(output: Output, text: &str, data: &impl Serialize) -> anyhow::Result<String> {
    Ok(match output {
        Output::Text => terminal::plain_lines(text),
        Output::Json => terminal::json(&serde_json::to_string_pretty(data)?).into_owned() + "\n",
        Output::Yaml | Output::Test => yaml(data)?,
    })
}

/// A document of YAML. Where it would have characters that a terminal does not show, it has the form of JSON, which is
/// YAML too: each of them is escaped there, and means what it meant.
pub(super) fn yaml(data: &impl Serialize) -> anyhow::Result<String> {
    let yaml = serde_yaml::to_string(data)?;
    if terminal::is_plain(&yaml) {
        return Ok(yaml);
    }
    Ok(terminal::json_as_yaml(&serde_json::to_string_pretty(data)?).into_owned() + "\n")
}

/// Prints problems: text goes to standard error, a line each; JSON and YAML are a list on standard output,
/// empty where nothing is wrong.
pub fn print_problems(output: Output, problems: &[Problem]) -> anyhow::Result<()> {
    if output == Output::Text {
        return Ok(io::stderr().write_all(lines("", problems).as_bytes())?);
    }
    let rows: Vec<_> = problems.iter().map(|problem| ProblemRow::of(problem, None)).collect();
    print(output, "", &rows)
}

/// Prints why an executable failed, on standard error.
pub fn print_error(executable: &str, error: &anyhow::Error) {
    // Nobody may be reading it.
    let _ = writeln!(io::stderr(), "{executable}: {}", terminal::plain_lines(&format!("{error:#}")));
}

/// Prints problems, as [`print_problems`], and warnings: text goes to standard output, a line each behind
/// `warning: `; in the list of JSON and YAML `severity` tells `error` from `warning`.
pub fn print_judgement(output: Output, problems: &[Problem], warnings: &[Problem]) -> anyhow::Result<()> {
    if output == Output::Text {
        print_problems(output, problems)?;
        return print(output, &lines("warning: ", warnings), &());
    }
    let errors = problems.iter().map(|problem| ProblemRow::of(problem, Some("error")));
    let warnings = warnings.iter().map(|problem| ProblemRow::of(problem, Some("warning")));
    print(output, "", &errors.chain(warnings).collect::<Vec<_>>())
}

fn lines(before: &str, problems: &[Problem]) -> String {
    problems.iter().fold(String::new(), |mut lines, problem| {
        // Writing to a String cannot fail.
        let _ = writeln!(lines, "{before}{}", terminal::plain_lines(&problem.to_string()));
        lines
    })
}

/// Whether a command failed only because nobody reads its output any more.
pub fn is_closed_pipe(error: &anyhow::Error) -> bool {
    error.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn yaml_means_the_same_whatever_its_texts_are() {
        for text in [
            "plain",
            "größe",
            "a\nb\tc",
            "\u{1b}[2J",
            "a\u{202e}b",
            "\u{200b}",
            "\u{85}\u{2028}",
            "\u{feff}x",
            "\u{e0041}",
            "\"\\ \u{9b}",
            "\\u{202e}",
            "a\r\n\u{7f}\0",
            "- a: \u{2066}b # c",
            "true",
        ] {
            let value = json!({"a": [text, {text: text}], "b": 1});
            let written = render(Output::Yaml, "", &value).unwrap();
            assert_eq!(serde_yaml::from_str::<Value>(&written).unwrap(), value, "{written}");
            assert!(terminal::is_plain(&written), "{written:?}");
        }
        assert_eq!(render(Output::Yaml, "", &json!({"a": "b"})).unwrap(), "a: b\n");
    }
}
