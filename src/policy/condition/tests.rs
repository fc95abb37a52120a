//! Every operator on both sides, on everything that may stand at a parameter.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::call::Kind;

fn scalar(value: &Value) -> Scalar {
    match value {
        Value::String(text) => Scalar::Text(text.clone()),
        Value::Number(number) => Scalar::Number(number.clone()),
        Value::Bool(value) => Scalar::Bool(*value),
        other @ (Value::Null | Value::Array(_) | Value::Object(_)) => panic!("no scalar: {other}"),
    }
}

fn compile(param: &str, word: Comparison, values: &Value, kind: bool) -> Result<Condition, Wrong> {
    let values: Vec<Scalar> = values.as_array().unwrap().iter().map(scalar).collect();
    let kind = kind.then_some(Kind::Shell);
    Condition::test(Param::parse(param, kind).unwrap(), word, &values, &mut RegexBudget::default())
}

fn test(param: &str, word: Comparison, values: &Value) -> Condition {
    compile(param, word, values, false).unwrap()
}

/// `D` where it holds in a Deny rule, `A` where it holds in an Allow rule, `-` where not.
fn sides(condition: &Condition, input: &Value) -> String {
    let subject = CallSubject::new(Input::Json(input), None, None);
    let deny = if condition.holds_to_deny(&subject).is_some() { "D" } else { "-" };
    let allow = if condition.holds_to_allow(&subject) { "A" } else { "-" };
    format!("{deny}{allow}")
}

#[test]
fn every_operator_errs_towards_denial_whatever_stands_there() {
    use Comparison as C;
    let head = ["missing", "null", "empty", "hit", "miss", "all hit", "some hit", "none hit"];
    // A hit and a miss for each positive operator with its values.
    let families = [
        (C::Equals, C::NotEquals, json!(["a", 7]), json!("a"), json!("b")),
        (C::In, C::NotIn, json!(["a", true]), json!(true), json!("b")),
        (C::Matches, C::NotMatches, json!(["^a+$", "x"]), json!("aaa"), json!("ab")),
        (C::Contains, C::NotContains, json!(["a"]), json!("bab"), json!("b")),
        (C::StartsWith, C::NotStartsWith, json!(["a"]), json!("ab"), json!("ba")),
        (C::Within, C::NotWithin, json!(["/w"]), json!("/w/a"), json!("/wx")),
    ];
    let positive = ["--", "--", "--", "DA", "--", "DA", "D-", "--"];
    let negative = ["D-", "D-", "D-", "--", "DA", "--", "D-", "DA"];
    for (yes, no, values, hit, miss) in families {
        let inputs = [
            json!({}),
            json!({"p": null}),
            json!({"p": []}),
            json!({"p": hit}),
            json!({"p": miss}),
            json!({"p": [hit, hit]}),
            json!({"p": [miss, hit]}),
            json!({"p": [miss, miss]}),
        ];
        for (word, expected) in [(yes, positive), (no, negative)] {
            let condition = test("p", word, &values);
            for ((name, input), expected) in head.iter().zip(&inputs).zip(expected) {
                assert_eq!(sides(&condition, input), expected, "{word:?} {name}");
            }
        }
    }
}

#[test]
fn that_something_is_there_or_not_is_certain_on_both_sides() {
    let (exists, not_exists) =
        (test("p", Comparison::Exists, &json!([])), test("p", Comparison::NotExists, &json!([])));
    for (input, there) in [
        (json!({"p": ""}), true),
        (json!({"p": false}), true),
        (json!({"p": {}}), true),
        (json!({}), false),
        (json!({"p": null}), false),
        (json!({"p": []}), false),
        (json!([]), false),
    ] {
        assert_eq!(sides(&exists, &input), if there { "DA" } else { "--" }, "{input}");
        assert_eq!(sides(&not_exists, &input), if there { "--" } else { "DA" }, "{input}");
    }
}

#[test]
fn a_not_swaps_the_sides_and_what_is_missing_still_counts_against_a_call() {
    let not = |word| Condition::Not(Box::new(test("p", word, &json!(["a"]))));
    let (missing, some) = (json!({}), json!({"p": ["a", "b"]}));
    assert_eq!(sides(&not(Comparison::Equals), &some), "D-");
    assert_eq!(sides(&not(Comparison::NotEquals), &some), "D-");
    assert_eq!(sides(&not(Comparison::Equals), &missing), "D-", "an Allow rule knows nothing of it");
    assert_eq!(sides(&not(Comparison::NotEquals), &missing), "D-");
    let twice = Condition::Not(Box::new(not(Comparison::Equals)));
    assert_eq!(sides(&twice, &some), "D-", "two of them are none");
    assert_eq!(sides(&twice, &missing), "--");
    assert_eq!(sides(&not(Comparison::Equals), &json!({"p": "b"})), "DA");
}

#[test]
fn arrays_of_strings_cannot_hide_what_they_say_together() {
    let argv = json!({"p": ["rm", "-rf", "/"]});
    let one = json!({"p": "rm -rf /"});
    for (word, value, on_array, on_text) in [
        (Comparison::Matches, r"rm\s+-rf\s+/", "D-", "DA"),
        (Comparison::Contains, "rm -rf", "D-", "DA"),
        (Comparison::StartsWith, "rm -", "D-", "DA"),
        (Comparison::Equals, "rm -rf /", "D-", "DA"),
        (Comparison::NotContains, "rm -rf", "D-", "--"),
        (Comparison::NotContains, "sudo", "DA", "DA"),
        (Comparison::NotIn, "rm", "D-", "DA"),
    ] {
        let condition = test("p", word, &json!([value]));
        assert_eq!(sides(&condition, &argv), on_array, "{word:?} {value} on an array");
        assert_eq!(sides(&condition, &one), on_text, "{word:?} {value} on a text");
    }
    let listed = test("p", Comparison::NotIn, &json!(["a", "b"]));
    assert_eq!(sides(&listed, &json!({"p": ["a", "b"]})), "--", "all elements are listed");
    let mixed = test("p", Comparison::Contains, &json!(["a 1"]));
    assert_eq!(sides(&mixed, &json!({"p": ["a", 1]})), "--", "only strings are joined");
}

#[test]
fn numbers_and_booleans_are_compared_by_value() {
    let five = test("p", Comparison::Equals, &json!([5]));
    for (input, expected) in [
        (json!({"p": 5}), "DA"),
        (json!({"p": 5.0}), "DA"),
        (json!({"p": 5.5}), "--"),
        (json!({"p": -5}), "--"),
        (json!({"p": "5"}), "D-"),
        (json!({"p": [4, 5]}), "D-"),
    ] {
        assert_eq!(sides(&five, &input), expected, "{input}");
    }
    let not_true = test("p", Comparison::NotEquals, &json!([true]));
    assert_eq!(sides(&not_true, &json!({"p": true})), "--");
    assert_eq!(sides(&not_true, &json!({"p": "true"})), "D-", "many agents take the text for the boolean");
    assert_eq!(sides(&not_true, &json!({"p": false})), "DA");
    let big = test("p", Comparison::Equals, &json!([u64::MAX]));
    assert_eq!(sides(&big, &json!({"p": u64::MAX})), "DA");
    assert_eq!(sides(&big, &json!({"p": u64::MAX - 1})), "--");
}

#[test]
fn text_operators_read_the_json_of_what_is_no_text() {
    let contains = |text: &str| test("p", Comparison::Contains, &json!([text]));
    assert_eq!(sides(&contains("23"), &json!({"p": 1234})), "DA");
    assert_eq!(sides(&contains(r#""b":["x"]"#), &json!({"p": {"a": 1, "b": ["x"]}})), "DA");
    assert_eq!(sides(&contains("ru"), &json!({"p": true})), "DA");
    assert_eq!(sides(&contains("x"), &json!({"p": [["x"]]})), "DA", "an array in an array");
    assert_eq!(sides(&test("p", Comparison::StartsWith, &json!([12])), &json!({"p": "123"})), "DA");
}

#[test]
fn a_path_within_is_certain_or_within_nothing() {
    let within = test("p", Comparison::Within, &json!(["/workspace", "/tmp/"]));
    let not_within = test("p", Comparison::NotWithin, &json!(["/workspace", "/tmp/"]));
    for (path, is, is_not) in [
        ("/workspace", "DA", "--"),
        ("/workspace/a/../b", "DA", "--"),
        ("/tmp/x", "DA", "--"),
        ("/workspace/../etc", "--", "DA"),
        ("/workspacex", "--", "DA"),
        ("/etc/../workspace", "DA", "--"),
        // Below a directory that is not known here.
        ("workspace/a", "--", "--"),
        ("./a", "--", "--"),
        ("a/../b", "--", "--"),
        ("../a", "--", "D-"),
        ("a/../../b", "--", "D-"),
        ("a\\..\\..\\b", "--", "D-"),
        ("C:\\a", "--", "D-"),
        ("$HOME/a", "--", "D-"),
        ("~/a", "--", "D-"),
        ("", "--", "D-"),
        ("/workspace/a\0/../../etc", "--", "D-"),
        ("/../workspace", "D-", "D-"),
        ("/../etc", "--", "DA"),
    ] {
        assert_eq!(sides(&within, &json!({"p": path})), is, "Within {path:?}");
        // A path that climbs over the root is within nothing for a rule that asks whether it stays inside.
        assert_eq!(sides(&not_within, &json!({"p": path})), is_not, "NotWithin {path:?}");
    }
    assert_eq!(sides(&within, &json!({"p": 1})), "--");
    assert_eq!(sides(&not_within, &json!({"p": {"x": "/workspace"}})), "D-");
}

#[test]
fn a_relative_path_meets_neither_operator_under_any_nesting() {
    let test = |word| test("p", word, &json!(["/w"]));
    let not = |one| Condition::Not(Box::new(one));
    let also = || self::test("q", Comparison::Equals, &json!(["x"]));
    for word in [Comparison::Within, Comparison::NotWithin] {
        for condition in [
            test(word),
            not(test(word)),
            not(not(test(word))),
            Condition::All(vec![test(word), also()]),
            not(Condition::Any(vec![test(word), not(also())])),
            Condition::Any(vec![not(not(not(test(word))))]),
        ] {
            assert_eq!(sides(&condition, &json!({"p": "src/main.rs", "q": "x"})), "--", "{condition}");
            assert_eq!(sides(&condition, &json!({"p": ["a", "b/c"], "q": "x"})), "--", "{condition}");
        }
    }
    let outside = test(Comparison::NotWithin);
    assert_eq!(sides(&outside, &json!({"p": ["src/main.rs", "/etc/passwd"]})), "D-", "the other one decides");
    assert_eq!(sides(&not(test(Comparison::Within)), &json!({"p": ["src/main.rs", "/etc/passwd"]})), "D-");
    assert_eq!(sides(&test(Comparison::Within), &json!({"p": ["/w/a", "src/main.rs"]})), "D-");
    assert_eq!(sides(&outside, &json!({"p": ["/w/a", "src/main.rs"]})), "--");
}

#[test]
fn a_host_is_read_from_a_url_and_a_url_without_one_reading_counts_against_the_call() {
    let values = json!(["docs.example.com", "*.corp.example", "**.deep.example", "10.0.0.1"]);
    let (is, is_not) = (test("p", Comparison::HostIn, &values), test("p", Comparison::NotHostIn, &values));
    let not = |condition| Condition::Not(Box::new(condition));
    for (url, expected) in [
        (json!("https://docs.example.com/a"), ["DA", "--"]),
        (json!("https://DOCS.example.com.:8443/a"), ["DA", "--"]),
        (json!("docs.example.com/a"), ["DA", "--"]),
        (json!("https://a.corp.example/"), ["DA", "--"]),
        (json!("https://b.a.deep.example/"), ["DA", "--"]),
        (json!("http://[::ffff:10.0.0.1]/"), ["DA", "--"]),
        (json!("https://docs.example.com.evil.test/"), ["--", "DA"]),
        (json!("https://corp.example/"), ["--", "DA"]),
        (json!("https://b.a.corp.example/"), ["--", "DA"]),
        (json!("https://10.0.0.2/"), ["--", "DA"]),
        (json!("https://docs.example.com@evil.test/"), ["D-", "D-"]),
        (json!("https://docs.example.com\\@evil.test/"), ["D-", "D-"]),
        (json!("https://2130706433/"), ["D-", "D-"]),
        (json!("file:///etc/passwd"), ["D-", "D-"]),
        (json!(""), ["D-", "D-"]),
        (json!(7), ["D-", "D-"]),
        (json!({"url": "https://docs.example.com"}), ["D-", "D-"]),
        (json!(["https://docs.example.com/", "https://evil.test/"]), ["D-", "D-"]),
        (json!(["https://docs.example.com/", "https:evil.test"]), ["D-", "D-"]),
        (json!(null), ["--", "D-"]),
    ] {
        let input = json!({ "p": url });
        assert_eq!([sides(&is, &input), sides(&is_not, &input)], expected, "{url}");
        let nested =
            [not(test("p", Comparison::NotHostIn, &values)), not(test("p", Comparison::HostIn, &values))];
        let nested = nested.map(|condition| sides(&condition, &input));
        if url.is_null() {
            assert_eq!(nested, ["D-", "D-"]);
        } else {
            assert_eq!(nested, expected, "under a not: {url}");
        }
    }
    let wrong =
        compile("p", Comparison::HostIn, &json!(["https://a.example/", "a.example", 7]), false).unwrap_err();
    assert_eq!(wrong.iter().map(|(number, _)| *number).collect::<Vec<_>>(), [0, 2]);
}

#[test]
fn a_dotted_path_walks_objects_and_arrays() {
    let equals = |param: &str| test(param, Comparison::Equals, &json!(["x"]));
    let input =
        json!({"a": {"b": "x"}, "files": [{"path": "x"}, {"path": "y"}], "0": {"1": "x"}, "n": [["x"]]});
    for (param, expected) in [
        ("a.b", "DA"),
        ("a.c", "--"),
        ("a.b.c", "--"),
        ("files.0.path", "DA"),
        ("files.1.path", "--"),
        ("files.2.path", "--"),
        ("files.path", "D-"),
        ("files.name", "--"),
        ("0.1", "DA"),
        ("n.0", "DA"),
        ("n.0.0", "DA"),
    ] {
        assert_eq!(sides(&equals(param), &input), expected, "{param}");
    }
    let some_missing = test("files.mode", Comparison::NotEquals, &json!(["x"]));
    assert_eq!(sides(&some_missing, &json!({"files": [{"mode": "x"}, {}]})), "D-", "one element has none");
}

#[test]
fn a_key_in_another_case_has_two_readings() {
    let operators = [
        (Comparison::Equals, json!(["x"])),
        (Comparison::NotEquals, json!(["y"])),
        (Comparison::NotEquals, json!(["x"])),
        (Comparison::Exists, json!([])),
        (Comparison::NotExists, json!([])),
    ];
    for (word, values) in operators {
        let condition = test("a.b", word, &values);
        for input in [json!({"A": {"b": "x"}}), json!({"a": {"B": "x"}})] {
            assert_eq!(sides(&condition, &input), "D-", "{condition} of {input}");
        }
        assert_eq!(
            sides(&Condition::Not(Box::new(condition)), &json!({"A": {"b": "x"}})),
            "D-",
            "{word:?} under a not"
        );
    }
    let equals = test("a.b", Comparison::Equals, &json!(["x"]));
    assert_eq!(sides(&equals, &json!({"a": {"b": "x"}, "a_b": 1})), "DA");
    assert_eq!(sides(&equals, &json!({"A": {"b": "y"}})), "--");
    let is_ambiguous =
        |input: &Value| equals.ambiguous(&CallSubject::new(Input::Json(input), None, None)).is_some();
    assert!(is_ambiguous(&json!({"a": 1, "A": 2})));
    assert!(is_ambiguous(&json!({"a": [{"b": 1}, {"b": 1, "B": 1}]})));
    assert!(!is_ambiguous(&json!({"a": {"b": 1, "c": 1, "C": 1}, "x": 1, "X": 1})));
}

#[test]
fn the_whole_input_is_its_text() {
    let whole = test("$", Comparison::Contains, &json!(["sudo rm"]));
    assert_eq!(sides(&whole, &json!({"a": ["sudo rm -rf"]})), "DA");
    let escaped: Value = serde_json::from_str(r#"{"a": "s\u0075do rm"}"#).unwrap();
    assert_eq!(sides(&whole, &escaped), "DA", "escapes do not hide it");
    let custom = |text: &'static str| CallSubject::new(Input::Text(text), None, None);
    assert!(whole.holds_to_deny(&custom("await tools.exec('sudo rm')")).is_some());
    assert!(whole.holds_to_deny(&custom("ls")).is_none());
    let param = test("command", Comparison::NotContains, &json!(["sudo"]));
    assert!(param.holds_to_deny(&custom("ls")).is_some(), "a custom tool has no parameters");
    assert!(!param.holds_to_allow(&custom("ls")));
}

#[test]
fn with_a_kind_the_catalogue_says_what_is_run_read_and_asked() {
    let known = |param, word, value: &str| compile(param, word, &json!([value]), true).unwrap();
    let facts = Facts {
        commands: vec!["cd /x".into(), "rm -rf /".into()],
        paths: vec!["/w/a".into(), "/etc/b".into()],
        ..Facts::new(Kind::Shell)
    };
    let input = json!({"command": "echo", "url": "https://a.example"});
    let of = |condition: &Condition, facts| {
        let subject = CallSubject::new(Input::Json(&input), facts, None);
        (condition.holds_to_deny(&subject).is_some(), condition.holds_to_allow(&subject))
    };
    let removes = known("command", Comparison::StartsWith, "rm");
    assert_eq!(of(&removes, Some(&facts)), (true, false), "each command by itself");
    assert_eq!(of(&removes, None), (false, false), "without facts the input's own parameter");
    let joined = known("command", Comparison::Contains, "/x rm");
    assert_eq!(of(&joined, Some(&facts)), (true, false), "and all of them together");
    let outside = known("paths", Comparison::NotWithin, "/w");
    assert_eq!(of(&outside, Some(&facts)), (true, false));
    let url = known("url", Comparison::StartsWith, "https://");
    assert_eq!(of(&url, Some(&facts)), (false, false), "the catalogue knows of no URL");
    assert!(Param::parse("paths.0", Some(Kind::Read)).is_err());
    assert!(Param::parse("paths.0", None).is_ok());
}

#[test]
fn an_allow_rule_names_a_file_by_a_test_that_holds_for_all_of_them() {
    let paths = |word, value: &str| compile("paths", word, &json!([value]), true).unwrap();
    let facts = |paths: &[&'static str]| Facts {
        paths: paths.iter().map(|path| (*path).into()).collect(),
        ..Facts::new(Kind::Write)
    };
    let names = |condition: &Condition, facts: &Facts<'_>| {
        let input = json!({"x": 1});
        let subject = CallSubject::new(Input::Json(&input), Some(facts), None);
        condition.names_file(&subject, "/w/.mcp.json")
    };
    let one = facts(&["/w/.mcp.json"]);
    let two = facts(&["/w/.mcp.json", "/w/.bashrc"]);
    for word in [Comparison::Equals, Comparison::In] {
        assert!(names(&paths(word, "/w/.mcp.json"), &one));
        assert!(!names(&paths(word, "/w/.mcp.json"), &two));
    }
    assert!(!names(&paths(Comparison::Within, "/w"), &one), "it names a directory of anything");
    let hooks = || paths(Comparison::Within, "/w/.git/hooks");
    let named = |path: &'static str, asked: &str| {
        let facts = facts(&[path]);
        hooks().names_file(&CallSubject::new(Input::Json(&json!({})), Some(&facts), None), asked)
    };
    assert!(named("/w/.git/hooks/pre-commit", "/w/.git/hooks/pre-commit"));
    assert!(!named("/w/.git/hooks/pre-commit", "/w/.mcp.json"), "another file");
    assert!(!names(&paths(Comparison::Contains, ".mcp.json"), &one), "this operator names no file");
    let x = || test("x", Comparison::Equals, &json!([1]));
    let other = || paths(Comparison::Equals, "/w/.bashrc");
    assert!(!names(&Condition::Any(vec![x(), other()]), &one), "it holds by something else");
    let own = || paths(Comparison::Equals, "/w/.mcp.json");
    assert!(names(&Condition::All(vec![x(), own()]), &one));
    assert!(!names(&Condition::All(vec![test("y", Comparison::Exists, &json!([])), own()]), &one));
    assert!(!names(&Condition::Not(Box::new(paths(Comparison::NotWithin, "/w"))), &one));
}

/// J5: no pattern and no expression costs more than its bound.
#[test]
fn expressions_are_bounded_and_linear() {
    let wrong = |source: &str| match compile("p", Comparison::Matches, &json!([source]), false) {
        Err(wrong) => wrong[0].1.clone(),
        Ok(_) => panic!("compiles: {source}"),
    };
    assert!(wrong(&"a".repeat(4097)).contains("4 KiB"));
    assert!(wrong(r"\w{5000}").contains("1 MiB"), "{}", wrong(r"\w{5000}"));
    assert_eq!(wrong("(a"), "is no regular expression: unclosed group");
    assert!(wrong("").contains("empty"));
    let greedy = test("p", Comparison::Matches, &json!(["^(a|a)*(a|aa)*$"]));
    let input = json!({"p": "a".repeat(100_000) + "b"});
    assert_eq!(sides(&greedy, &input), "--", "a backtracking engine would not come back");
}

fn word() -> impl Strategy<Value = Comparison> {
    use Comparison as C;
    prop::sample::select(vec![
        C::Equals,
        C::NotEquals,
        C::Contains,
        C::NotContains,
        C::StartsWith,
        C::NotStartsWith,
        C::In,
        C::NotIn,
        C::Within,
        C::NotWithin,
        C::HostIn,
        C::NotHostIn,
        C::Matches,
        C::NotMatches,
        C::Exists,
        C::NotExists,
    ])
}

/// A condition as data, so that it can be built twice.
#[derive(Debug, Clone)]
enum Shape {
    Test(&'static str, Comparison, &'static str),
    Any(Vec<Self>),
    All(Vec<Self>),
    Not(Box<Self>),
}

impl Shape {
    fn build(&self) -> Condition {
        match self {
            Self::Test(param, word @ (Comparison::HostIn | Comparison::NotHostIn), _) => {
                test(param, *word, &json!(["*.a"]))
            }
            Self::Test(param, word, value) => test(param, *word, &json!([value])),
            Self::Any(all) => Condition::Any(all.iter().map(Self::build).collect()),
            Self::All(all) => Condition::All(all.iter().map(Self::build).collect()),
            Self::Not(one) => Condition::Not(Box::new(one.build())),
        }
    }

    /// The same with every `not` pushed one level down.
    fn pushed(&self) -> Self {
        let all = |shapes: &[Self]| shapes.iter().map(Self::pushed).collect();
        let nots =
            |shapes: &[Self]| shapes.iter().map(|one| Self::Not(Box::new(one.clone())).pushed()).collect();
        match self {
            Self::Test(..) => self.clone(),
            Self::Any(shapes) => Self::Any(all(shapes)),
            Self::All(shapes) => Self::All(all(shapes)),
            Self::Not(one) => match &**one {
                Self::Test(..) => self.clone(),
                Self::Any(shapes) => Self::All(nots(shapes)),
                Self::All(shapes) => Self::Any(nots(shapes)),
                Self::Not(one) => one.pushed(),
            },
        }
    }
}

fn shape() -> impl Strategy<Value = Shape> {
    let values = prop::sample::select(vec!["/a", "/b", "/a/b"]);
    let params = prop::sample::select(vec!["p", "q", "$"]);
    let leaf = (params, word(), values).prop_map(|(param, word, value)| Shape::Test(param, word, value));
    leaf.prop_recursive(4, 24, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 1..3).prop_map(Shape::Any),
            prop::collection::vec(inner.clone(), 1..3).prop_map(Shape::All),
            inner.prop_map(|one| Shape::Not(Box::new(one))),
        ]
    })
}

fn value() -> impl Strategy<Value = Value> {
    let text = prop::sample::select(vec!["/a", "/b", "/a/b", "a", "../a", "", "/../a", "x.a", "http://b.a/"]);
    let one =
        prop_oneof![text.prop_map(|text| json!(text)), Just(json!(null)), Just(json!(7)), Just(json!(true))];
    prop_oneof![one.clone(), prop::collection::vec(one, 0..3).prop_map(Value::from)]
}

fn input() -> impl Strategy<Value = Value> {
    (prop::option::of(value()), prop::option::of(value())).prop_map(|(p, q)| {
        let mut input = serde_json::Map::new();
        input.extend(p.map(|value| ("p".to_owned(), value)));
        input.extend(q.map(|value| ("q".to_owned(), value)));
        Value::Object(input)
    })
}

proptest! {
    #[test]
    fn de_morgan_holds_on_both_sides(shape in shape(), input in input()) {
        prop_assert_eq!(sides(&shape.build(), &input), sides(&shape.pushed().build(), &input));
    }

    #[test]
    fn what_an_allow_rule_finds_a_deny_rule_finds_too(shape in shape(), input in input()) {
        prop_assert_ne!(sides(&shape.build(), &input), "-A");
    }
}

/// J5: no pattern and no expression costs more than its bound.
#[test]
fn the_regular_expressions_of_a_policy_have_a_bound_together() {
    let mut room = RegexBudget::default();
    let mut add = |source: &str, times: usize| {
        let values = vec![Scalar::Text(source.to_owned()); times];
        Condition::test(Param::parse("p", None).unwrap(), Comparison::Matches, &values, &mut room)
            .map_err(|wrong| wrong.into_iter().map(|(number, _)| number).collect::<Vec<_>>())
            .map(drop)
    };
    assert_eq!(add(r"rm\s+-rf\s+/", 100), Ok(()), "those that people write are small");
    assert_eq!(add(r"(?i)\b(curl|wget)\b.*https?://", 20), Ok(()));
    assert_eq!(add(r"\w{20}", 4), Err(vec![3]), "each takes a mebibyte");
}
