//! Tests of expressions: what they mean, how mistakes are told, and that their bounds hold.

use std::thread;

use proptest::prelude::*;
use proptest::strategy::ValueTree as _;

use super::*;

/// Compiles regular expressions without a budget.
pub(super) struct Unbounded;

impl Regexes for Unbounded {
    fn compile(&mut self, source: &str) -> Result<Regex, String> {
        Regex::new(source).map_err(|_| "is no regular expression".to_owned())
    }
}

pub(super) fn compile(source: &str) -> Result<Expression, Vec<Mistake>> {
    Expression::compile(source, &mut Unbounded)
}

fn mistakes(source: &str) -> Vec<String> {
    compile(source).unwrap_err().iter().map(|mistake| mistake.describe(source)).collect()
}

fn only(source: &str) -> String {
    let mistakes = mistakes(source);
    assert_eq!(mistakes.len(), 1, "{mistakes:?}");
    mistakes.into_iter().next().unwrap()
}

fn facts() -> Facts<'static> {
    Facts {
        kind: "Request",
        direction: "Outbound",
        // A Monday.
        time: Some(std::time::UNIX_EPOCH + std::time::Duration::from_secs(1_795_424_400)),
        host: Some("api.anthropic.com"),
        port: Some(443),
        provider: Some("anthropic"),
        model: Some("claude-sonnet-5-5"),
        models: &["claude-sonnet-5-5", "claude-haiku-4-5"],
        stream: Some(false),
        payload_bytes: Some(2_000_000),
        tokens_today: Some(5_000_000),
        ..Facts::default()
    }
}

fn holds(source: &str) -> bool {
    compile(source)
        .unwrap_or_else(|mistakes| panic!("{source}: {mistakes:?}"))
        .holds(&facts(), MOST_COST)
        .unwrap()
}

#[test]
fn the_rules_of_the_documentation_hold_where_they_say() {
    let tool = |name| Tool { name, ..Tool::default() };
    let tools = [tool("Bash"), tool("mcp__jira__search")];
    let facts = Facts { tools: &tools, organization: Some("org-else"), ..facts() };
    for source in [
        r#"event.direction == "Outbound" && !event.provider.models.all(m, m in ["claude-sonnet-5-5"])"#,
        r#"event.time.getHours("+01:00") == 10 && event.time.getDayOfWeek() == 1"#,
        r#"event.spent.tokensToday > 4000000 && event.provider.model.contains("sonnet")"#,
        r#"has(event.provider.organization) && event.provider.organization != "org-acme""#,
        r#"event.provider.tools.exists(t, t.name.startsWith("mcp__") && !t.name.startsWith("mcp__github__"))"#,
        r#"hostIn(event.destination.host, "**.anthropic.com") && (event.payload.bytes > 1000000 || size(event.dlp) > 0)"#,
    ] {
        let expression = compile(source).unwrap_or_else(|mistakes| panic!("{source}: {mistakes:?}"));
        assert_eq!(expression.holds(&facts, MOST_COST), Ok(true), "{source}");
        assert!(expression.cost() <= MOST_COST / 2, "{source} costs {}", expression.cost());
    }
}

#[test]
fn what_is_not_there_is_empty_and_has_is_false() {
    assert!(holds("!has(event.toolCall) && !has(event.toolCall.name) && event.toolCall.name == ''"));
    assert!(holds("!has(event.usage) && event.usage.inputTokens == 0 && size(event.dlp) == 0"));
    assert!(holds("has(event.provider) && has(event.provider.stream) && !event.provider.stream"));
    assert!(holds("!event.dlp.exists(f, has(f.checksum) && f.checksum == 'Bad')"));
}

#[test]
fn a_mistake_has_its_line_column_and_offset_and_a_near_name() {
    assert_eq!(
        only("event.kind == 'Request' &&\n  event.provider.modle == ''"),
        "line 2, column 18 (offset 44): `event.provider` has no field \"modle\"; did you mean `model`?"
    );
    assert_eq!(
        only("provider.name == ''"),
        "line 1, column 1 (offset 0): \"provider\" is not known here; did you mean `event.provider`?"
    );
    assert_eq!(
        only("event.provider.model.startWith('a')"),
        "line 1, column 22 (offset 21): there is no function \"startWith\"; did you mean `startsWith`?"
    );
    assert_eq!(
        only("event.destination.port == '443'"),
        "line 1, column 24 (offset 23): `==` does not go with int and string; expected two values of one type, no groups"
    );
    assert_eq!(
        only("event.kind"),
        "line 1, column 7 (offset 6): a rule asks yes or no; this is string, expected bool"
    );
    assert!(only("event.provider.tools.exists(t, t.nam == '')").contains("did you mean `name`?"));
}

#[test]
fn all_mistakes_of_a_kind_are_told_at_once() {
    assert_eq!(mistakes("event.foo == 1 && event.time > 5 && size(3) == 1").len(), 3);
    assert_eq!(mistakes("1.5 > 2u && @ == 'a").len(), 4);
}

#[test]
fn what_the_subset_leaves_out_is_told_as_such() {
    for (source, part) in [
        ("1.5 < 2", "fraction"),
        ("1e3 < 2", "fraction"),
        ("2u == 2", "unsigned"),
        ("{'a': 1} == {'a': 1}", "maps"),
        ("event.kind == null", "no null"),
        ("event.kind = 'a'", "`==` compares"),
        ("string(1) == '1'", "no function"),
        ("event.kind.matches(event.direction)", "written out"),
        ("event.kind.matches('(')", "no regular expression"),
        ("event.time.getHours('Europe/Berlin') == 1", "no zone"),
        ("event.time < timestamp('today')", "no timestamp"),
        ("hostIn(event.kind, 'a*b')", "wildcard"),
        ("[1].exists(event, true)", "hide `event`"),
        ("event == event", "does not go"),
        ("for == 1", "CEL keeps"),
        ("has(event)", "asks for a field"),
        ("1 +", "ends here"),
        ("event.kind == 'a' 'b'", "does not belong"),
        ("", "ends here"),
    ] {
        let said = mistakes(source).join("; ");
        assert!(said.contains(part), "{source}: {said}");
    }
}

#[test]
fn an_expression_that_costs_too_much_is_refused_with_the_part_that_does() {
    let source = "event.kind == 'a' || event.dlp.exists(f, event.dlp.exists(g, f.kind == g.kind))";
    let said = only(source);
    assert!(
        said.contains("(offset 31)") && said.contains("may cost") && said.contains("at most 10000"),
        "{said}"
    );
    assert!(only("[1].all(a, [1].all(b, [1].all(c, true)))").contains("more than 2 of all"));
}

#[test]
fn bounds_are_told_and_not_overrun() {
    let deep = |count: usize| format!("{}true{}", "(".repeat(count), ")".repeat(count));
    assert!(compile(&deep(32)).is_ok());
    assert!(only(&deep(33)).contains("32 brackets"));
    assert!(only(&format!("{} == 1", vec!["1"; 70].join("+"))).contains("64 steps"));
    assert!(only(&format!("{}true", "true?true:".repeat(40))).contains("32 brackets"));
    assert!(only(&format!("[{}1].exists(x, x == 1)", "--x,".repeat(240))).contains("512 parts"));
    assert!(only(&" ".repeat(1025)).contains("1024"));
    // Chains of one operator are one step, and signs are none.
    assert!(compile(&vec!["true"; 100].join("&&")).is_ok());
    assert!(compile(&format!("{}true", "!".repeat(1000))).is_ok());
}

#[test]
fn a_list_or_a_text_over_its_bound_is_a_failure() {
    let models = ["m"; 65];
    let facts = Facts { models: &models, ..Facts::default() };
    let expression = compile("event.provider.models.exists(m, m == 'x')").unwrap();
    assert_eq!(expression.holds(&facts, MOST_COST), Err(Failure::Bound("provider.models")));
    let long = "x".repeat(2000);
    let facts = Facts { model: Some(&long), ..Facts::default() };
    assert_eq!(
        compile("event.provider.model == 'x'").unwrap().holds(&facts, MOST_COST),
        Err(Failure::Bound("provider.model"))
    );
}

#[test]
fn a_failure_tells_no_value_of_the_event() {
    let canary = "canary".repeat(400);
    let models = vec![canary.as_str(); 3];
    let facts = Facts { model: Some(&canary), models: &models, path: Some("/canary"), ..facts() };
    for source in [
        "event.provider.model == 'x'",
        "event.provider.models.all(m, m == 'x')",
        "event.provider.models[7] == 'x'",
        "1 / (size(event.http.path) - 7) == 1",
        "9223372036854775807 + size(event.http.path) == 1",
    ] {
        let failure = compile(source).unwrap().holds(&facts, MOST_COST).unwrap_err();
        assert!(
            !failure.to_string().contains("canary") && !format!("{failure:?}").contains("canary"),
            "{source}"
        );
    }
}

#[test]
fn what_kind_and_direction_decide_is_known_at_load() {
    let stage = |source: &str, kind, direction| {
        compile(source).unwrap().settled(&Facts { kind, direction, ..Facts::default() })
    };
    let calls = "event.kind == 'ToolCall' && event.provider.model == 'x'";
    assert_eq!(stage(calls, "Request", "Outbound"), Some(false));
    assert_eq!(stage(calls, "ToolCall", "Inbound"), None);
    assert_eq!(
        stage("!(event.kind in ['Request']) || event.direction != 'Inbound'", "Request", "Outbound"),
        Some(true)
    );
    assert_eq!(
        stage("event.kind == 'Request' ? event.http.method == 'GET' : true", "Response", "Inbound"),
        Some(true)
    );
    assert_eq!(stage("event.http.method == 'GET'", "Request", "Outbound"), None);
}

/// Pieces of which hostile expressions are made.
fn hostile() -> impl Strategy<Value = String> {
    let piece = prop::sample::select(vec![
        "(",
        ")",
        "[",
        "]",
        "{",
        "}",
        ".",
        ",",
        "?",
        ":",
        "!",
        "-",
        "+",
        "*",
        "/",
        "%",
        "==",
        "<",
        "in ",
        "&&",
        "||",
        "event",
        ".provider",
        ".models",
        ".tools",
        ".dlp",
        ".all(x,",
        ".map(x,",
        ".exists(y,",
        ".filter(z,",
        "has(",
        "size(",
        "x",
        "y",
        "1",
        "99999999999999999999",
        "0xffffffffffffffff",
        "'a'",
        "\"",
        "'",
        "'''",
        "\\",
        "r'",
        "\n",
        "//",
        "true",
        "é",
        "\u{0}",
        ".matches('(a|b){20}')",
        ".a",
        "[0]",
        ".f()",
        "1+",
        "a?b:",
    ]);
    let repeated = (piece.clone(), 1_usize..400).prop_map(|(piece, count)| piece.repeat(count));
    let mixed = prop::collection::vec(piece, 1..80).prop_map(|pieces| pieces.concat());
    let any = prop_oneof![repeated, mixed];
    prop::collection::vec(any, 1..4).prop_map(|parts| parts.concat())
}

/// Expressions that mostly pass.
fn fair() -> impl Strategy<Value = String> {
    let leaf = prop::sample::select(vec![
        "true",
        "event.provider.stream",
        "event.provider.models.all(m, m.contains('a'))",
        "event.payload.bytes / 0 == 1",
        "event.provider.tools.map(t, t.name + 'x').exists(n, n in event.provider.models)",
        "event.http.path.matches('a+')",
        "size(event.provider.models + ['a']) > 1",
        "event.provider.models[1] == 'b'",
        "[1, 2] == [2, 1]",
        "event.provider.models.filter(m, size(m) > 3).map(m, m.lowerAscii()) == ['a']",
        "has(event.http)",
        "event.time - duration('1h') < timestamp('2026-01-01T00:00:00Z')",
        "hostIn(event.destination.host, '**.a.example')",
    ]);
    let leaf = leaf.prop_map(str::to_owned);
    leaf.prop_recursive(4, 16, 3, |inner| {
        prop_oneof![
            (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("({a} && {b})")),
            (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("({a} || !{b})")),
            (inner.clone(), inner.clone(), inner).prop_map(|(a, b, c)| format!("({a} ? {b} : {c})")),
        ]
    })
}

/// Runs where the stack is as small as that of any thread that compiles policies.
fn on_a_small_stack(run: impl FnOnce() + Send + 'static) {
    thread::Builder::new().stack_size(512 * 1024).spawn(run).unwrap().join().unwrap();
}

#[test]
fn a_hundred_thousand_hostile_expressions_end_on_a_small_stack() {
    on_a_small_stack(|| {
        let mut runner = proptest::test_runner::TestRunner::deterministic();
        let strategy = hostile();
        for _ in 0..100_000 {
            let source = strategy.new_tree(&mut runner).unwrap().current();
            if let Ok(expression) = compile(&source) {
                assert!(expression.cost() <= MOST_COST, "{source}");
                let _ = expression.holds(&facts(), MOST_COST);
            }
        }
    });
}

#[test]
fn the_deepest_expressions_fit_a_small_stack() {
    on_a_small_stack(|| {
        let nested = [
            "(",
            "[",
            "!(",
            "-(",
            "size([",
            "true || (true && (1 == 1 + 1 * (",
            "true ? true : (",
            "f(",
            "a.f(",
        ];
        for opening in nested {
            let _ = compile(&opening.repeat(MOST_SOURCE / opening.len()));
        }
        // Within all bounds, so that every step runs.
        let body = |inner: &str| format!("(false || (true && ((1 + 1 * {inner}) == 2)))");
        let sources = [
            format!("{}1 == 1{}", "(".repeat(32), ")".repeat(32)),
            format!("{} > 1", vec!["1"; 60].join(" + ")),
            format!("{}true{}", "!(!(".repeat(16), "))".repeat(16)),
            format!("{}1{} == 1", "[".repeat(16), "][0]".repeat(16)),
            body("(2 * (1 - 1))"),
            format!("{}true{}", "(true ? (false || ".repeat(15), ") : false)".repeat(15)),
        ];
        for source in sources {
            let expression = compile(&source).unwrap_or_else(|mistakes| panic!("{source}: {mistakes:?}"));
            expression.holds(&facts(), MOST_COST).unwrap();
        }
    });
}

proptest! {
    #[test]
    fn an_evaluation_never_costs_more_than_was_reckoned(source in fair(), count in 0_usize..64) {
        let models: Vec<&str> = ["a", "claude-opus", "x"].into_iter().cycle().take(count).collect();
        let tools: Vec<Tool<'_>> = models.iter().map(|name| Tool { name, ..Tool::default() }).collect();
        let facts = Facts { models: &models, tools: &tools, path: Some("/aaaa"), host: Some("x.a.example"), ..facts() };
        if let Ok(expression) = compile(&source) {
            prop_assert_ne!(expression.holds(&facts, MOST_COST), Err(Failure::Cost));
            prop_assert_ne!(expression.holds(&facts, MOST_COST), Err(Failure::Type));
        }
    }
}
