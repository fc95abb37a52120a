//! Tests of reading `PolicyTest` documents: every mistake has its place, and all are told at once.

use super::*;

fn told(text: &str) -> Vec<String> {
    parse("t.yaml", text).unwrap_err().iter().map(ToString::to_string).collect()
}

const HEAD: &str = "apiVersion: postern.dev/v1alpha1\nkind: PolicyTest\npolicy: [policy.yaml]\n";

#[test]
fn a_whole_test_is_read() {
    let text = format!(
        "{HEAD}labels: {{app: coder}}\ncases:\n\
         - {{name: a, toolCall: {{name: Bash, input: {{command: ls}}}}, expect: {{verdict: Allow}}}}\n\
         - {{name: b, request: {{url: \"https://a.example/\", bodyFile: b.json}}, answer: {{contentType: application/json, body: {{x: 1}}}},\n   \
         expect: {{verdict: Deny, rule: a/b/c, removed: [], calls: [{{name: x, verdict: Deny}}]}}}}\n\
         - {{name: c, event: 01a2008d-747b-7101-8101-010101010101, from: e.jsonl, expect: {{verdict: WouldDeny}}}}\n"
    );
    let tests = parse("dir/t.yaml", &text).unwrap();
    assert_eq!((tests.len(), tests[0].cases.len()), (1, 3));
    assert_eq!(tests[0].resolve(&tests[0].policy[0]), PathBuf::from("dir/policy.yaml"));
    assert_eq!(tests[0].cases[2].expect.verdict, Some(ExpectedVerdict::WouldDeny));
}

#[test]
fn unknown_fields_and_words_are_told_with_their_places() {
    let text = format!(
        "{HEAD}now: tomorrow\ncases:\n\
         - name: a\n  toolcall: {{name: Bash}}\n  expect: {{verdict: Denied, redacted: [x]}}\n"
    );
    let told = told(&text);
    let expected = [
        "t.yaml:4:6: now: ",
        "t.yaml:7:13: cases[0].toolcall: unknown field",
        "t.yaml:8:21: cases[0].expect.verdict: unknown value \"Denied\"",
    ];
    for expected in expected {
        let (_, rest) = expected.split_once(": ").unwrap();
        assert!(told.iter().any(|line| line.contains(rest)), "{expected} is missing in {told:#?}");
    }
    assert!(told.iter().all(|line| line.starts_with("t.yaml:")), "{told:#?}");
}

#[test]
fn what_cannot_be_met_and_what_belongs_together_is_told() {
    for (case, expected) in [
        ("{name: a, toolCall: {name: x}, expect: {}}", "cases[0].expect.verdict: is required"),
        ("{name: a, expect: {verdict: Deny}}", "cases[0]: is about nothing"),
        (
            "{name: a, toolCall: {name: x}, event: y, from: z, expect: {verdict: Deny}}",
            "cases[0]: is about several things",
        ),
        ("{name: a, event: y, expect: {verdict: Deny}}", "cases[0].from: event and from belong together"),
        (
            "{name: a, toolCall: {name: x}, expect: {verdict: Deny, calls: []}}",
            "cases[0].expect.calls: cannot be met",
        ),
        (
            "{name: a, toolCall: {name: x}, expect: {verdict: Deny, removed: []}}",
            "cases[0].expect.removed: cannot be met",
        ),
        (
            "{name: a, request: {url: u, body: x, bodyFile: y}, expect: {verdict: Deny}}",
            "cases[0].request.bodyFile: body and bodyFile",
        ),
        (
            "{name: a, toolCall: {name: x, paths: [y]}, expect: {verdict: Deny}}",
            "cases[0].toolCall.kind: is required",
        ),
        ("{toolCall: {name: x}, expect: {verdict: Deny}}", "cases[0]: name: is required"),
    ] {
        let told = told(&format!("{HEAD}cases:\n- {case}\n"));
        assert!(told.len() == 1 && told[0].contains(expected), "{case}: {told:#?}");
    }
    let twice = "- {name: a, toolCall: {name: x}, expect: {verdict: Deny}}\n";
    let told = told(&format!("{HEAD}cases:\n{twice}{twice}"));
    assert!(told[0].starts_with("t.yaml:6:") && told[0].contains("another case"), "{told:#?}");
}

#[test]
fn a_file_without_a_test_is_a_mistake() {
    for text in ["", "---\n", "kind: EgressPolicy\n", "[]", "x"] {
        assert!(!told(text).is_empty(), "{text}");
    }
}
