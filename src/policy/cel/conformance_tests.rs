//! What CEL's language definition says of the subset, case by case, and that the crate `cel` says the same.

use std::{env, fs};

use proptest::prelude::*;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::tests::compile;
use super::{Facts, Failure};

/// What becomes of an expression.
#[derive(Debug, PartialEq)]
enum Outcome {
    Is(bool),
    Fails(Failure),
    Refused,
}

use Outcome::{Fails, Is, Refused};

fn outcome(source: &str) -> Outcome {
    match compile(source).map(|expression| expression.holds(&Facts::default(), u64::MAX)) {
        Ok(Ok(value)) => Is(value),
        Ok(Err(failure)) => Fails(failure),
        Err(_) => Refused,
    }
}

const CASES: &[(&str, Outcome)] = &[
    // Literals.
    ("0x55555555 == 1431655765", Is(true)),
    ("-0x1 == -1", Is(true)),
    ("9223372036854775807 > 0", Is(true)),
    ("-9223372036854775808 < 0", Is(true)),
    ("9223372036854775808 > 0", Refused),
    (r#""\u00e9" == "é""#, Is(true)),
    (r#"'\101\x42\U00000043' == "ABC""#, Is(true)),
    (r#""""a"b"#, Refused),
    (r#"'''a'b''' == "a'b""#, Is(true)),
    (r#"r'\n' == '\\n'"#, Is(true)),
    (r#"R"\d" == "\\d""#, Is(true)),
    (r#"'\a\b\f\n\r\t\v\?\"\'\`' == "x""#, Is(false)),
    (r"'\q' == 'q'", Refused),
    (r"'\ud800' == ''", Refused),
    ("'a' // a comment\n == 'a'", Is(true)),
    ("[1, 2,] == [1, 2]", Is(true)),
    // Precedence and chains.
    ("2 + 3 * 4 == 14 && (2 + 3) * 4 == 20", Is(true)),
    ("10 - 4 - 3 == 3", Is(true)),
    ("100 / 10 / 5 == 2", Is(true)),
    ("true || false && false", Is(true)),
    ("!true || true", Is(true)),
    ("--5 == 5 && ---5 == -5", Is(true)),
    ("true ? false : true ? true : false", Is(false)),
    ("false ? 1 / 0 == 1 : true", Is(true)),
    ("1 < 2 == true", Is(true)),
    // Arithmetic: whole numbers of 64 bits, truncated towards zero.
    ("-7 / 2 == -3 && -7 % 2 == -1 && 7 % -2 == 1", Is(true)),
    ("9223372036854775807 + 1 == 0", Fails(Failure::Overflow)),
    ("-9223372036854775808 - 1 == 0", Fails(Failure::Overflow)),
    ("4611686018427387904 * 2 == 0", Fails(Failure::Overflow)),
    ("-9223372036854775808 / -1 == 0", Fails(Failure::Overflow)),
    ("-(-9223372036854775808) == 0", Fails(Failure::Overflow)),
    ("1 / 0 == 1", Fails(Failure::DivisionByZero)),
    ("1 % 0 == 1", Fails(Failure::DivisionByZero)),
    ("1 + 'a' == 2", Refused),
    // Errors are absorbed by what decides, on either side.
    ("1 / 0 == 1 || true", Is(true)),
    ("true || 1 / 0 == 1", Is(true)),
    ("false && 1 / 0 == 1", Is(false)),
    ("1 / 0 == 1 && false", Is(false)),
    ("1 / 0 == 1 || false", Fails(Failure::DivisionByZero)),
    ("1 / 0 == 1 && true", Fails(Failure::DivisionByZero)),
    ("!(1 / 0 == 1)", Fails(Failure::DivisionByZero)),
    // Comparisons.
    ("'a' < 'b' && 'a' < 'aa' && 'Z' < 'a' && 'é' > 'z'", Is(true)),
    ("false < true", Is(true)),
    ("[1, 2] == [2, 1] || [1] == [1, 1]", Is(false)),
    ("[[1], [2]] == [[1], [2]] && [] == []", Is(true)),
    ("1 == '1'", Refused),
    ("[1, 'a'] == [1, 'a']", Refused),
    ("[1] < [2]", Refused),
    // Lists and texts.
    ("2 in [1, 2] && !(3 in [1, 2]) && !('a' in [])", Is(true)),
    ("'a' in [1]", Refused),
    ("[1, 2, 3][2] == 3", Is(true)),
    ("[1][1] == 1", Fails(Failure::Index)),
    ("[1][-1] == 1", Fails(Failure::Index)),
    ("[1] + [2] == [1, 2] && [] + [1] == [1]", Is(true)),
    ("'ab' + 'c' == 'abc'", Is(true)),
    ("size('') == 0 && size('é') == 1 && '四'.size() == 1 && size([1, 2]) == 2", Is(true)),
    ("'abc'.contains('') && 'abc'.contains('bc') && !'abc'.contains('ac')", Is(true)),
    ("'abc'.startsWith('ab') && 'abc'.endsWith('bc') && 'a'.endsWith('')", Is(true)),
    ("'hubba'.matches('ubb') && !'hubba'.matches('^ubb') && 'a'.matches('')", Is(true)),
    ("'aÄB'.lowerAscii() == 'aÄb'", Is(true)),
    // Macros.
    ("[1, 2].all(x, x > 0) && [].all(x, false) && ![].exists(x, true)", Is(true)),
    (
        "[1, 2, 3].exists(x, x == 2) && [1, 2, 3].exists_one(x, x > 2) && ![1, 2].exists_one(x, x > 0)",
        Is(true),
    ),
    ("[0, 1].exists(x, 1 / x == 1)", Is(true)),
    ("[0, 1].all(x, 1 / x == 2)", Is(false)),
    ("[0, 1].all(x, 1 / x == 1)", Fails(Failure::DivisionByZero)),
    ("[0].exists_one(x, 1 / x == 1)", Fails(Failure::DivisionByZero)),
    ("[1, 2, 3].filter(x, x > 1) == [2, 3] && [1, 2].map(x, x * x) == [1, 4]", Is(true)),
    ("[1, 2, 3].map(x, x > 1, x * 2) == [4, 6]", Is(true)),
    ("[1].map(x, [2].map(x, x)) == [[2]]", Is(true)),
    ("[1].all(x, [2].all(y, x < y))", Is(true)),
    ("[1].all(1, true)", Refused),
    ("[1].all(x, 1)", Refused),
    ("x == 1", Refused),
    // Times.
    ("timestamp('2009-02-13T23:31:30Z').getDate() == 13", Is(true)),
    ("timestamp('2009-02-13T23:31:30Z').getMonth() == 1", Is(true)),
    ("timestamp('2009-02-13T23:31:30Z').getDayOfWeek() == 5", Is(true)),
    ("timestamp('2009-02-13T23:31:30Z').getHours('+02:00') == 1", Is(true)),
    ("timestamp('2009-02-13T23:31:30Z').getMinutes('-02:15') == 16", Is(true)),
    ("timestamp('2009-02-13T23:31:30Z').getHours('UTC') == 23", Is(true)),
    ("timestamp('2009-02-13T23:31:30+01:00') == timestamp('2009-02-13T22:31:30Z')", Is(true)),
    ("timestamp('2009-02-13T23:00:00Z') + duration('2h') > timestamp('2009-02-14T00:59:59Z')", Is(true)),
    ("timestamp('2009-02-14T00:00:00Z') - timestamp('2009-02-13T23:00:00Z') == duration('60m')", Is(true)),
    ("duration('1m') + duration('1s') - duration('1s') == duration('60s')", Is(true)),
    ("timestamp('9999-12-31T23:59:59Z') + duration('1s') == event.time", Fails(Failure::Overflow)),
    (
        "timestamp('9999-12-31T23:59:59Z') - timestamp('0001-01-01T00:00:00Z') > duration('1s')",
        Fails(Failure::Overflow),
    ),
    ("duration('1s') > 1", Refused),
    // What is no part of the subset.
    ("1.0 == 1.0", Refused),
    ("1u == 1u", Refused),
    ("b'a' == b'a'", Refused),
    ("{}.size() == 0", Refused),
    ("dyn(1) == 1", Refused),
    ("type(1) == int", Refused),
    ("int('1') == 1", Refused),
];

#[test]
fn the_subset_means_what_the_language_definition_says() {
    for (source, expected) in CASES {
        assert_eq!(&outcome(source), expected, "{source}");
    }
}

/// The official cases that the subset accepts.
const OFFICIAL: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/src/policy/cel/conformance.json");

/// `conformance.json`.
#[derive(Serialize, Deserialize)]
struct Official {
    source: String,
    license: String,
    cases: Vec<OfficialCase>,
}

#[derive(Serialize, Deserialize)]
struct OfficialCase {
    name: String,
    expression: String,
    /// A bool, `int 1`, `string text`, or nothing for an error.
    value: Value,
}

impl OfficialCase {
    /// An expression that holds where the case has its value, and has no value where that is an error.
    fn source(&self) -> String {
        let expression = &self.expression;
        match &self.value {
            Value::Bool(true) => expression.clone(),
            Value::Bool(false) => format!("!({expression})"),
            Value::String(value) => match value.split_once(' ') {
                Some(("int", number)) => format!("({expression}) == {number}"),
                Some((_, text)) => format!("({expression}) == {}", Value::from(text)),
                None => panic!("{}: {value}", self.name),
            },
            Value::Null | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
                format!("({expression}) == ({expression})")
            }
        }
    }

    fn holds(&self) -> bool {
        match outcome(&self.source()) {
            Is(value) => value && !self.value.is_null(),
            Fails(_) => self.value.is_null(),
            Refused => false,
        }
    }
}

#[test]
fn the_official_cases_of_the_subset_hold() {
    let mut official: Official = serde_json::from_str(&fs::read_to_string(OFFICIAL).unwrap()).unwrap();
    if let Some(path) = env::var_os("POSTERN_CEL_CASES") {
        official.cases = serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap();
        official.cases.retain(|case| outcome(&case.source()) != Refused);
        fs::write(OFFICIAL, serde_json::to_string_pretty(&official).unwrap() + "\n").unwrap();
    }
    let failing: Vec<(&str, String)> = official
        .cases
        .iter()
        .filter(|case| !case.holds())
        .map(|case| (case.name.as_str(), format!("{}: {:?}", case.source(), outcome(&case.source()))))
        .collect();
    assert!(failing.is_empty() && official.cases.len() > 300, "{} cases, {failing:#?}", official.cases.len());
}

/// What the crate says; none where it cannot say: a function that it has in no build without `chrono`.
fn of_the_crate(source: &str) -> Outcome {
    let program = cel::Program::compile(source).unwrap();
    match program.execute(&cel::Context::default()) {
        Ok(cel::Value::Bool(value)) => Is(value),
        Ok(other) => panic!("{source}: {other:?}"),
        Err(_) => Refused,
    }
}

/// Whether both give the same value, or both none.
fn agree(source: &str) -> bool {
    match (outcome(source), of_the_crate(source)) {
        (Is(one), Is(other)) => one == other,
        (Fails(_), Refused) => true,
        _ => false,
    }
}

fn number() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        (-3_i64..4).prop_map(|number| number.to_string()),
        prop::sample::select(vec![
            "9223372036854775807",
            "size('aé')",
            "size([1, 2])",
            "[1, 2, 3][1]",
            "[1][2]"
        ])
        .prop_map(str::to_owned),
    ];
    leaf.prop_recursive(3, 12, 2, |inner| {
        let operator = prop::sample::select(vec!["+", "-", "*", "/", "%"]);
        (inner.clone(), operator, inner).prop_map(|(a, operator, b)| format!("({a} {operator} {b})"))
    })
}

fn condition() -> impl Strategy<Value = String> {
    let text = || prop::sample::select(vec!["'a'", "'ab'", "''", "'é'", "('a' + 'b')", "r'\\d'", "\"b\""]);
    let list =
        || prop::sample::select(vec!["[1, 2, 3]", "[0, 1]", "[5]", "([1] + [2])", "[1, 2].filter(y, y > 1)"]);
    let compared = prop::sample::select(vec!["==", "!=", "<", "<=", ">", ">="]);
    let method = prop::sample::select(vec!["contains", "startsWith", "endsWith", "matches"]);
    let quantor = prop::sample::select(vec!["all", "exists", "exists_one"]);
    let leaf = prop_oneof![
        (number(), compared.clone(), number()).prop_map(|(a, operator, b)| format!("{a} {operator} {b}")),
        (text(), compared, text()).prop_map(|(a, operator, b)| format!("{a} {operator} {b}")),
        (text(), method, prop::sample::select(vec!["'a'", "''", "'b'"]))
            .prop_map(|(a, method, b)| format!("{a}.{method}({b})")),
        (number(), list()).prop_map(|(a, list)| format!("{a} in {list}")),
        (list(), quantor, number())
            .prop_map(|(list, quantor, a)| format!("{list}.{quantor}(x, 6 / x > {a})")),
        (list(), number()).prop_map(|(list, a)| format!("{list}.map(x, x * {a}) == [2, 4, 6]")),
        Just("true".to_owned()),
    ];
    leaf.prop_recursive(3, 12, 3, |inner| {
        prop_oneof![
            (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("({a} && {b})")),
            (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("({a} || {b})")),
            inner.clone().prop_map(|a| format!("!({a})")),
            (inner.clone(), inner.clone(), inner).prop_map(|(a, b, c)| format!("({a} ? {b} : {c})")),
        ]
    })
}

proptest! {
    #[test]
    fn what_is_accepted_means_what_the_crate_says(source in condition()) {
        if compile(&source).is_ok() {
            prop_assert!(agree(&source), "{source}: here {:?}, there {:?}", outcome(&source), of_the_crate(&source));
        }
    }
}
