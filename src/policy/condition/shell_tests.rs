//! Conditions of Shell rules: what they are asked about, and on which side they err.

use serde_json::json;

use super::*;
use crate::call::Kind;

/// One simple command, its options in front.
fn command(text: &str) -> SimpleCommand {
    let mut words = text.split(' ').skip_while(|word| word.contains('='));
    let program = words.next().filter(|word| !word.starts_with('$')).map(str::to_owned);
    let options = words.clone().filter_map(|word| word.strip_prefix('-'));
    let letters = |option: &str| match option.strip_prefix('-') {
        Some(long) => vec![long.to_owned()],
        None => option.chars().map(|letter| letter.to_string()).collect(),
    };
    SimpleCommand {
        text: text.split(' ').skip_while(|word| word.contains('=')).collect::<Vec<_>>().join(" "),
        changes_directory: program.as_deref() == Some("cd"),
        options: options.flat_map(letters).map(Into::into).collect(),
        has_computed_words: text.contains('$'),
        redirects: text.contains(" > "),
        path: program.as_deref().filter(|program| program.starts_with('.')).map(Into::into),
        program: program.map(|program| program.trim_start_matches("./").to_owned().into()),
        ..SimpleCommand::default()
    }
}

/// A call of a text that is divided at each `&&`; with `?` in front it is opaque.
fn facts(text: &str) -> Facts<'_> {
    let (is_opaque, text) = text.strip_prefix('?').map_or((false, text), |text| (true, text));
    let commands = text.split(" && ").map(command).collect();
    Facts {
        commands: vec![Cow::Borrowed(text)],
        shell: Some(ShellFacts { commands, is_opaque, has_assignments: text.contains("=1") }),
        ..Facts::new(Kind::Shell)
    }
}

fn test(param: &str, word: Comparison, values: &[&str]) -> Condition {
    let scalar = |value: &&str| match *value {
        "true" => Scalar::Bool(true),
        "false" => Scalar::Bool(false),
        text => Scalar::Text(text.to_owned()),
    };
    let values: Vec<Scalar> = values.iter().map(scalar).collect();
    let param = Param::parse(param, Some(Kind::Shell)).unwrap();
    Condition::test(param, word, &values, &mut RegexBudget::default()).unwrap()
}

fn all(tests: Vec<Condition>) -> Condition {
    Condition::All(tests)
}

fn not(one: Condition) -> Condition {
    Condition::Not(Box::new(one))
}

/// `D` where it holds in a Deny rule, `A` where it holds in an Allow rule, `-` where not.
fn sides(condition: &Condition, text: &str) -> String {
    let (input, facts) = (json!({"command": text}), facts(text));
    let subject = CallSubject::new(Input::Json(&input), Some(&facts), None);
    let deny = if condition.holds_to_deny(&subject).is_some() { "D" } else { "-" };
    let allow = if condition.holds_to_allow(&subject) { "A" } else { "-" };
    format!("{deny}{allow}")
}

#[track_caller]
fn expect(condition: &Condition, table: &[(&str, &str)]) {
    for (text, expected) in table {
        assert_eq!(sides(condition, text), *expected, "{condition} on {text}");
    }
}

#[test]
fn a_command_is_the_whole_text_and_each_simple_command() {
    let pushes = test("command", Comparison::StartsWith, &["git push"]);
    expect(
        &pushes,
        &[
            ("git push origin", "DA"),
            ("cd /x && git push origin", "DA"),
            ("git push && git pull", "D-"),
            ("git pull", "--"),
            ("cd /x", "--"),
        ],
    );
    let whole = test("command", Comparison::Matches, &["^cd /x && ls$"]);
    expect(&whole, &[("cd /x && ls", "D-"), ("?cd /x && ls", "D-")]);
    let listed = test("command", Comparison::NotMatches, &["^(ls|pwd)$"]);
    expect(&listed, &[("ls", "--"), ("rm", "DA"), ("ls && pwd", "D-"), ("ls && rm", "D-")]);
}

#[test]
fn an_allow_rule_asks_of_every_simple_command_but_changes_of_the_directory() {
    let tests = test("command", Comparison::StartsWith, &["npm test", "git status"]);
    for (text, allowed) in [
        ("npm test", true),
        ("cd /w && npm test && git status", true),
        ("npm test && curl x", false),
        ("?npm test", true),
        ("?npm test && sh", false),
        ("?curl x && npm test", false),
        ("CI=1 npm test", false),
        ("$X npm test", false),
    ] {
        assert_eq!(sides(&tests, text).ends_with('A'), allowed, "{text}");
    }
    let changes = test("program", Comparison::Equals, &["cd"]);
    expect(&changes, &[("cd /x", "DA"), ("cd /x && ls", "D-"), ("?cd /x", "D-")]);
}

#[test]
fn an_allow_rule_asks_of_the_whole_text_where_a_redirection_is_of_a_file() {
    let exactly = test("command", Comparison::Matches, &["^npm test( > log)?$"]);
    expect(&exactly, &[("npm test", "DA"), ("npm test > log", "DA"), ("npm test && npm test > log", "D-")]);
    let program = test("program", Comparison::In, &["npm"]);
    expect(&program, &[("npm test", "DA"), ("npm test > log", "D-")]);
}

#[test]
fn a_program_that_is_named_by_a_path_is_that_file_in_rules_that_allow() {
    let named = test("program", Comparison::In, &["npm"]);
    let by_path = test("program", Comparison::In, &["./npm"]);
    let left_out = test("program", Comparison::NotIn, &["npm"]);
    let (path_left_out, not) =
        (test("program", Comparison::NotIn, &["./npm"]), not(test("program", Comparison::In, &["npm"])));
    for (condition, bare, path) in [
        (named, "DA", "D-"),
        (by_path, "--", "-A"),
        (left_out, "--", "--"),
        (path_left_out, "DA", "D-"),
        (not, "--", "--"),
    ] {
        expect(&condition, &[("npm test", bare), ("./npm test", path)]);
    }
}

#[test]
fn the_tests_of_one_condition_hold_for_the_same_simple_command() {
    let forced =
        all(vec![test("program", Comparison::In, &["rm"]), test("options", Comparison::In, &["f", "force"])]);
    expect(
        &forced,
        &[
            ("rm -rf /", "D-"),
            ("rm -f /", "DA"),
            ("rm -r -f /", "D-"),
            ("rm --force /", "DA"),
            ("ls && rm -f /", "D-"),
            ("rm x && ls -f", "--"),
            ("rm x", "--"),
        ],
    );
}

#[test]
fn a_command_without_options_has_none_for_certain_and_one_with_computed_words_may_have_any() {
    let careful =
        all(vec![test("program", Comparison::In, &["git"]), test("options", Comparison::NotIn, &["force"])]);
    expect(&careful, &[("git push", "DA"), ("git push --force", "--"), ("git push $X", "D-")]);
    let without = all(vec![
        test("program", Comparison::In, &["git"]),
        not(test("options", Comparison::In, &["force"])),
    ]);
    expect(&without, &[("git push", "DA"), ("git push --force", "--"), ("git push $X", "D-")]);
    let bare = test("options", Comparison::NotExists, &[]);
    expect(&bare, &[("ls", "DA"), ("ls -l", "--")]);
}

#[test]
fn the_whole_text_has_no_program_and_no_negative_of_one_holds_for_it() {
    for others in [
        test("program", Comparison::NotIn, &["git", "npm"]),
        not(test("program", Comparison::In, &["git", "npm"])),
    ] {
        expect(
            &others,
            &[
                ("git status", "--"),
                ("git status && npm test", "--"),
                ("git status && curl x", "D-"),
                ("curl x", "DA"),
                ("$X status", "D-"),
                ("?curl x", "D-"),
                ("?git x", "--"),
            ],
        );
    }
}

#[test]
fn a_call_that_cannot_be_told_is_opaque() {
    let opaque = test("opaque", Comparison::Equals, &["true"]);
    expect(&opaque, &[("ls", "--"), ("?ls", "DA")]);
    let plain =
        all(vec![test("program", Comparison::In, &["ls"]), test("opaque", Comparison::Equals, &["false"])]);
    expect(&plain, &[("ls", "DA"), ("?ls", "--"), ("ls && rm", "D-")]);
}

#[test]
fn without_a_reading_there_is_the_text_alone() {
    let input = json!({"command": "git push"});
    let facts = Facts { commands: vec![Cow::Borrowed("git push")], ..Facts::new(Kind::Shell) };
    let subject = CallSubject::new(Input::Json(&input), Some(&facts), None);
    let holds = |condition: Condition| {
        (condition.holds_to_deny(&subject).is_some(), condition.holds_to_allow(&subject))
    };
    assert_eq!(holds(test("command", Comparison::StartsWith, &["git"])), (true, true));
    for param in ["program", "options", "opaque"] {
        assert_eq!(holds(test(param, Comparison::NotIn, &["x"])), (false, false), "{param}");
        assert_eq!(holds(test(param, Comparison::In, &["git"])), (false, false), "{param}");
    }
}

#[test]
fn program_options_and_opaque_are_a_shells_alone() {
    for param in ["program", "options", "opaque"] {
        assert!(Param::parse(&format!("{param}.x"), Some(Kind::Shell)).is_err(), "{param}");
        for kind in [None, Some(Kind::Read), Some(Kind::Write), Some(Kind::Fetch)] {
            assert_eq!(Param::parse(param, kind), Ok(Param::Path(vec![param.to_owned()])));
        }
    }
}

#[test]
fn a_directory_is_where_relative_paths_begin() {
    let input = json!({});
    let of = |word: Comparison, path: &'static str, derived: Option<usize>| {
        let paths = vec![Cow::Borrowed(path)];
        let facts = Facts { paths, derived_from: derived, ..Facts::new(Kind::Write) };
        let subject = CallSubject::new(Input::Json(&input), Some(&facts), Some("/w"));
        let condition = test("paths", word, &["/w"]);
        let deny = if condition.holds_to_deny(&subject).is_some() { "D" } else { "-" };
        let allow = if condition.holds_to_allow(&subject) { "A" } else { "-" };
        format!("{deny}{allow}")
    };
    for (path, within, outside) in [
        ("src/a", "DA", "--"),
        (".", "DA", "--"),
        ("a/../b", "DA", "--"),
        ("../w/a", "D-", "D-"),
        ("../etc/a", "--", "D-"),
        ("~/a", "--", "D-"),
        ("/etc/a", "--", "DA"),
    ] {
        assert_eq!(of(Comparison::Within, path, None), within, "Within on {path}");
        assert_eq!(of(Comparison::NotWithin, path, None), outside, "NotWithin on {path}");
    }
    // A relative path of a command begins elsewhere: else it would be below the directory already.
    assert_eq!(of(Comparison::Within, "src/a", Some(0)), "--");
    assert_eq!(of(Comparison::NotWithin, "src/a", Some(0)), "--");
}
