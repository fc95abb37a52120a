//! Mistakes in what is written about tools, each at its field.

use postern::policy::{Labels, Policy, document};

use super::namespaced;

/// The problems of a spec, without the file, line and column.
fn of(spec: &str) -> Vec<String> {
    let parsed = document::parse("policy.yaml", &namespaced("p", spec));
    match parsed.and_then(|all| Policy::compile(&all, &Labels::new())) {
        Ok(_) => Vec::new(),
        Err(problems) => problems.iter().map(|one| format!("{}: {}", one.path, one.message)).collect(),
    }
}

/// A condition, and the one thing wrong with it.
const WRONG_CONDITIONS: &[(&str, &str)] = &[
    ("{}", "when: says nothing: write {param, operator, values}, `any`, `all` or `not`"),
    ("{any: []}", "when.any: name at least one condition"),
    ("{param: a, operator: Contains}", "when.values: name at least one value"),
    ("{param: a, operator: Exists, values: [x]}", "when.values: Exists and NotExists take no values"),
    ("{param: a, values: [x]}", "when.operator: is required, as in Equals, Contains, Matches, In or Within"),
    (
        "{operator: Exists}",
        "when.param: is required: a parameter of the tool, as in options.path, or $ for the whole input",
    ),
    (
        "{param: $.a, operator: Exists}",
        "when.param: \"$.a\": is no dotted path; write files.0.path for the path of the first of files",
    ),
    ("{param: a..b, operator: Exists}", "when.param: \"a..b\": has a dot without a name beside it"),
    (
        "{param: a, operator: Equals, values: [[x]]}",
        "when.values[0]: expected a string, a number, true or false, found a list",
    ),
    (
        "{param: a, operator: Within, values: [/w, w]}",
        "when.values[1]: \"w\": expected an absolute path, as in /workspace",
    ),
    (
        "{param: a, operator: NotWithin, values: [/w, /etc/**]}",
        "when.values[1]: \"/etc/**\": is no pattern; a directory covers all that is below it: write \"/etc\"",
    ),
    (
        "{param: a, operator: HostIn, values: [a.example, 'https://a.example/']}",
        "when.values[1]: \"https://a.example/\": has a scheme and a path beside the host; write a.example alone",
    ),
    ("{param: a, operator: Contains, values: ['']}", "when.values[0]: \"\": is empty, and in every text"),
    (
        "{any: [{param: a, operator: Matches, values: ['(']}]}",
        "when.any[0].values[0]: \"(\": is no regular expression: unclosed group",
    ),
    (
        "{not: {all: [{param: a, operator: Exists}, {param: b, operator: Matches, values: [ok, '[']}]}}",
        "when.not.all[1].values[1]: \"[\": is no regular expression: unclosed character class",
    ),
    (
        "{any: [{param: a, operator: Exists}], all: [{param: a, operator: Exists}]}",
        "when: says several things: one of `param`, `any`, `all` and `not` stands in one mapping; nest them in `all` or `any`",
    ),
    (
        "{param: a, operator: Is, values: [x]}",
        "when.operator: unknown value \"Is\"; expected Equals, NotEquals, Matches, NotMatches, Contains, NotContains, \
         StartsWith, NotStartsWith, In, NotIn, Within, NotWithin, HostIn, NotHostIn, Exists or NotExists",
    ),
    (
        "{param: a, operator: Exists, colour: red}",
        "when.colour: unknown field; expected any, all, not, param, operator or values",
    ),
];

#[test]
fn what_is_wrong_with_a_condition_is_said_where_it_stands() {
    for (condition, expected) in WRONG_CONDITIONS {
        let found = of(&format!("tools: [{{name: a, tools: [x], action: Deny, when: {condition}}}]"));
        assert_eq!(found, [format!("spec.tools[0].{expected}")], "{condition}");
    }
}

/// A tool rule, and the one thing wrong with it.
const WRONG_RULES: &[(&str, &str)] = &[
    ("{name: a, tools: [x]}", "spec.tools[0].action: is required: Deny, Audit or Allow"),
    ("{tools: [x], action: Deny}", "spec.tools[0].name: is required"),
    ("{name: a, action: Deny}", "spec.tools[0]: needs `kind` or `tools`"),
    (
        "{name: a, tools: [], action: Deny}",
        "spec.tools[0].tools: name at least one tool, or leave the field out",
    ),
    (
        "{name: a, tools: [x, ''], action: Deny}",
        "spec.tools[0].tools[1]: \"\": a name is 1 to 256 bytes long, `*` standing for any run of characters",
    ),
    (
        "{name: a, tools: ['^Bash$'], action: Deny}",
        "spec.tools[0].tools[0]: \"^Bash$\": is no regular expression: names are compared whole, so write Bash, with `*` \
         for any run of characters",
    ),
    (
        "{name: a, tools: [\" \\u200b\"], action: Deny}",
        "spec.tools[0].tools[0]: \" \\u{200b}\": has no visible character",
    ),
    (
        "{name: a, kind: Bash, action: Deny}",
        "spec.tools[0].kind: unknown value \"Bash\"; expected Shell, Read, Write or Fetch",
    ),
    (
        "{name: a, kind: Read, action: Deny, reason: \"one\\ntwo\"}",
        "spec.tools[0].reason: a reason is one line of at most 256 characters, without control characters",
    ),
    (
        "{name: a, kind: Read, action: Deny, when: {param: paths.0, operator: Exists}}",
        "spec.tools[0].when.param: \"paths.0\": has no parts: with a kind, command, paths and url are the catalogue's, and so are program, options and opaque with the kind Shell",
    ),
    (
        "{name: a, kind: Read, action: Deny}, {name: a, kind: Shell, action: Deny}",
        "spec.tools[1].name: the name `a` is taken by spec.tools[0]",
    ),
];

#[test]
fn what_is_wrong_with_a_rule_is_said_where_it_stands() {
    for (rule, expected) in WRONG_RULES {
        assert_eq!(of(&format!("tools: [{rule}]")), [*expected], "{rule}");
    }
}

#[test]
fn names_are_unique_over_destinations_and_tools() {
    let found = of("destinations: [{name: a, hosts: [a.example], action: Deny}]
                    tools: [{name: a, kind: Shell, action: Deny}]");
    assert_eq!(found, ["spec.tools[0].name: the name `a` is taken by spec.destinations[0]"]);
}

#[test]
fn several_mistakes_are_told_together() {
    let found = of("hostedTools: {action: Allow, allow: [x]}
                    providerState: Maybe
                    tools: [{name: A, tools: [x], action: Deny, when: {all: [{param: a, operator: Matches, values: ['(', '[']}, {}]}}]");
    let paths: Vec<&str> = found.iter().map(|line| line.split_once(": ").unwrap().0).collect();
    assert_eq!(
        paths,
        [
            "spec.hostedTools.allow",
            "spec.providerState",
            "spec.tools[0].name",
            "spec.tools[0].when.all[0].values[0]",
            "spec.tools[0].when.all[0].values[1]",
            "spec.tools[0].when.all[1]",
        ]
    );
}

#[test]
fn conditions_nest_ten_deep_and_no_deeper() {
    let nested = |depth: usize| {
        let condition = "{not: ".repeat(depth) + "{param: a, operator: Exists}" + &"}".repeat(depth);
        of(&format!("tools: [{{name: a, tools: [x], action: Deny, when: {condition}}}]"))
    };
    assert_eq!(nested(9), Vec::<String>::new());
    assert!(nested(10)[0].ends_with("nests deeper than 10 conditions"), "{:?}", nested(10));
    assert!(nested(1_900)[0].contains("32 lists and mappings"), "far too deep is a mistake like another");
}
