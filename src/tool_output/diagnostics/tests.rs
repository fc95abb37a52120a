//! The corpus: real outputs of each tool, with the lines of each that must count and no others; and shapes that nobody meant.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use super::*;

fn corpus() -> Vec<PathBuf> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/tool_output/diagnostics/corpus");
    let files = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<_> =
        files.filter(|file| file.extension().is_some_and(|extension| extension == "txt")).collect();
    files.sort();
    files
}

/// The lines that are selected, as `NUMBER: LINE`, counted from 1.
fn shown(text: &str, most: usize) -> String {
    let lines: Vec<&str> = text.lines().collect();
    let mut shown = String::new();
    for number in select(lines.iter().copied(), most) {
        writeln!(shown, "{}: {}", number + 1, lines[number]).unwrap();
    }
    shown
}

/// The lines that are selected of a text.
fn selected(text: &str, most: usize) -> Vec<&str> {
    let lines: Vec<&str> = text.lines().collect();
    select(lines.iter().copied(), most).into_iter().map(|number| lines[number]).collect()
}

#[test]
fn the_file_of_patterns_is_as_it_should_be() {
    assert_eq!(Patterns::built_in().err(), None);
}

/// `POSTERN_BLESS=1` writes what is selected; somebody then reads it.
#[test]
fn of_real_outputs_exactly_the_expected_lines_count() {
    let mut wrong = String::new();
    for file in corpus() {
        let expected = file.with_extension("expected");
        let now = shown(&fs::read_to_string(&file).unwrap(), usize::MAX);
        if std::env::var_os("POSTERN_BLESS").is_some() {
            fs::write(&expected, &now).unwrap();
        }
        let before = fs::read_to_string(&expected).unwrap();
        let (before, now): (BTreeSet<_>, BTreeSet<_>) = (before.lines().collect(), now.lines().collect());
        for line in before.symmetric_difference(&now) {
            let is_missing = before.contains(line);
            writeln!(
                wrong,
                "{}: {} {line}",
                file.display(),
                if is_missing { "missing" } else { "unexpected" }
            )
            .unwrap();
        }
    }
    assert!(wrong.is_empty(), "\n{wrong}");
}

/// A line that passes may look like one that fails: a message of a log, a name. There are few of them.
#[test]
fn outputs_of_runs_that_failed_have_diagnostics_and_those_that_passed_hardly_any() {
    for file in corpus() {
        let count = shown(&fs::read_to_string(&file).unwrap(), usize::MAX).lines().count();
        let is_right = if file.to_str().unwrap().contains("-failing") { count > 3 } else { count < 3 };
        assert!(is_right, "{}: {count}", file.display());
    }
}

#[test]
fn a_line_alone_is_judged_without_its_colours_and_its_return() {
    for line in [
        "error[E0308]: mismatched types",
        "error[E0308]: mismatched types\r",
        "\u{1b}[0m\u{1b}[1m\u{1b}[38;5;9merror[E0308]\u{1b}[0m: mismatched types",
        "\u{1b}[1m\u{1b}[31mE   assert 3 == 4\u{1b}[0m",
        "\u{1b}]8;;file:///src/app/main.c\u{7}main.c\u{1b}]8;;\u{7}:3:5: error: no such thing",
        "test tests::totals_add_up ... FAILED\r",
        "C:\\src\\app\\main.c(3): error C2065: 'x'",
    ] {
        assert!(is_diagnostic(line), "{line:?}");
    }
    for line in [
        "",
        "\r",
        "\u{1b}",
        "\u{1b}[",
        "\u{1b}]8;;",
        "0 errors",
        "test errors ... ok",
        "  --> src/main.rs:1:2",
        "# fail 0",
    ] {
        assert!(!is_diagnostic(line), "{line:?}");
    }
}

#[test]
fn what_a_log_puts_in_front_of_a_line_hides_nothing() {
    for prefix in [
        "build\tRun tests\t2026-11-28T22:23:35.5079123Z ",
        "2026-11-28T22:23:35.5079123Z ",
        "#12 3.456 ",
        "web-1  | ",
    ] {
        assert!(is_diagnostic(&format!("{prefix}error[E0308]: mismatched types")), "{prefix}");
        assert!(!is_diagnostic(&format!("{prefix}test errors ... ok")), "{prefix}");
        let text = "Traceback (most recent call last):\n  File \"b.py\", line 2, in g\n    raise NoCart\nshop.NoCart: a\n";
        let text = text.lines().fold(String::new(), |text, line| format!("{text}{prefix}{line}\n"));
        assert_eq!(selected(&text, 9).last(), Some(&format!("{prefix}shop.NoCart: a").as_str()), "{prefix}");
    }
}

#[test]
fn only_the_beginning_of_a_line_is_looked_at() {
    let path = |length| format!("{}.c:3:5: error: no such thing", "d/".repeat(length));
    assert!(is_diagnostic(&path(100)));
    assert!(!is_diagnostic(&path(LOOKED_AT)));
    // A character of several bytes stands across the bound.
    assert!(is_diagnostic(&format!("error: {}", "é".repeat(30 << 20))));
}

#[test]
fn equal_lines_count_once() {
    assert_eq!(selected("error: a\nerror: b\nerror: a\n", 9), ["error: a", "error: b"]);
}

#[test]
fn where_there_is_room_for_few_lines_failures_come_first() {
    let text = "    a_test.go:1: one\n    a_test.go:2: two\n--- FAIL: TestA (0.00s)\n--- FAIL: TestB (0.00s)\nFAIL\n";
    assert_eq!(selected(text, 2), ["--- FAIL: TestA (0.00s)", "--- FAIL: TestB (0.00s)"]);
    assert_eq!(selected(text, 4)[0], "    a_test.go:1: one");
    assert_eq!(selected(text, 0), Vec::<&str>::new());
}

#[test]
fn the_place_of_an_error_counts_and_that_of_a_warning_does_not() {
    let text =
        "warning: unused\n --> src/a.rs:1:2\n\nerror: no such thing\n --> src/a.rs:3:4\n --> src/b.rs:5:6\n";
    assert_eq!(selected(text, 9), ["error: no such thing", " --> src/a.rs:3:4"]);
}

#[test]
fn a_problem_brings_the_name_of_its_file_along() {
    let text = "/src/a.js\n  1:2  warning  a\n\n/src/b.js\n  3:4  error  b  x\n  5:6  error  c  y\n";
    assert_eq!(selected(text, 9), ["/src/b.js", "  3:4  error  b  x", "  5:6  error  c  y"]);
    assert_eq!(selected("/src/a.js\n/src/b.js\n", 9), Vec::<&str>::new(), "a list of files");
}

#[test]
fn an_exception_of_any_name_is_found_by_the_traceback_above_it() {
    let text = "Traceback (most recent call last):\n  File \"a.py\", line 1, in f\n    g()\n  File \"b.py\", line 2, in g\n    raise NoCart\nshop.NoCart: a\nnext\n";
    let head = "Traceback (most recent call last):";
    assert_eq!(selected(text, 9), [head, "  File \"b.py\", line 2, in g", "shop.NoCart: a"]);
    assert_eq!(selected(&text.replace("shop.NoCart: a\n", "\n"), 9), [head], "nothing ends it");
}
