//! Rules that decide nothing, tests that say the same of every call, and wildcards that anybody's names meet.

use super::tests::{assert_twins, said};

#[test]
fn a_tool_rule_that_a_deny_rule_covers_whole_is_told() {
    assert_twins(&[
        (
            "{tools: [{name: no, tools: [Bash, Edit], action: Deny}, {name: a, tools: [Bash], action: Audit}]}",
            "spec.tools[1]: a decides nothing: the rule no denies every call of it",
            "{tools: [{name: no, tools: [Bash], action: Deny}, {name: a, tools: [Bash, Read], action: Audit}]}",
        ),
        (
            "{toolDefault: Deny, tools: [{name: a, kind: Shell, action: Allow}, {name: no, kind: Shell, action: Deny}]}",
            "spec.tools[0]: a decides nothing: the rule no denies every call of it",
            "{toolDefault: Deny, tools: [{name: a, kind: Shell, action: Allow},
                {name: no, kind: Shell, action: Deny, when: {param: command, operator: Contains, values: [rm]}}]}",
        ),
        (
            "{tools: [{name: no, tools: ['mcp__*'], action: Deny}, {name: some, tools: ['mcp__git__*'], action: Deny}]}",
            "spec.tools[1]: some decides nothing",
            "{tools: [{name: no, tools: ['mcp__git__*'], action: Deny}, {name: some, tools: ['mcp__*'], action: Deny,
                when: {param: x, operator: Exists}}]}",
        ),
        (
            "{tools: [{name: no, tools: [Bash], action: Deny}, {name: twice, tools: [Bash], action: Deny}]}",
            "spec.tools[1]: twice decides nothing",
            "{tools: [{name: no, kind: Shell, action: Deny}, {name: other, tools: [Bash], action: Deny}]}",
        ),
    ]);
    let deny = "{tools: [{name: no, tools: ['*'], action: Deny}]}";
    let allow = "{toolDefault: Deny, tools: [{name: a, kind: Read, action: Allow}]}";
    assert!(said(&[deny, allow])[0].contains("the rule no of n/p0 denies"), "{:?}", said(&[deny, allow]));
    let audit = deny.replacen('{', "{enforcement: Audit, ", 1);
    assert_eq!(said(&[&audit, allow]), Vec::<String>::new());
}

#[test]
fn an_allow_rule_where_nothing_is_denied_by_default_is_told() {
    assert_twins(&[
        (
            "{tools: [{name: a, tools: ['mcp__git__*'], action: Allow}]}",
            "spec.tools[0]: a allows what is allowed without it: no policy here says `toolDefault: Deny`",
            "{toolDefault: Deny, tools: [{name: a, tools: ['mcp__git__*'], action: Allow}]}",
        ),
        (
            "{tools: [{name: a, kind: Shell, action: Allow}]}",
            "spec.tools[0]: a allows what is allowed without it",
            "{tools: [{name: a, kind: Write, action: Allow, when: {param: paths, operator: Equals, values: [.git/config]}}]}",
        ),
        (
            "{tools: [{name: a, tools: [Read], action: Allow}]}",
            "spec.tools[0]: a allows what is allowed without it",
            "{tools: [{name: a, tools: [save_note], action: Allow}]}",
        ),
    ]);
    let allow = "{tools: [{name: a, tools: [Read], action: Allow}]}";
    assert_eq!(said(&[allow, "{toolDefault: Deny}"]), Vec::<String>::new());
}

#[test]
fn endpoints_beside_an_equal_rule_without_any_are_told() {
    let rules = |host: &str, more: &str| {
        format!(
            "{{destinations: [{{name: a, hosts: [{host}], action: Inspect, endpoints: [{{path: /a}}]}},
                {{name: b, hosts: [{host}], action: Inspect{more}}}]}}"
        )
    };
    let found = said(&[&rules("git.example", "")]);
    let expected =
        "spec.destinations[0].endpoints: at \"git.example\" these endpoints bound nothing: the rule b";
    assert!(found.len() == 1 && found[0].starts_with(expected), "{found:#?}");
    for (host, more) in [
        ("git.example", ", endpoints: [{path: /b}]"),
        ("git.example", ", ports: [8443]"),
        ("api.anthropic.com", ""),
    ] {
        assert_eq!(said(&[&rules(host, more)]), Vec::<String>::new(), "{host} {more}");
    }
}

#[test]
fn a_test_that_says_the_same_of_every_call_is_told() {
    let rule = |head: &str, test: &str| {
        format!("{{tools: [{{name: a, {head}, action: Deny, when: {{not: {test}}}}}]}}")
    };
    for (head, test, expected) in [
        (
            "kind: Shell",
            "{param: command, operator: Matches, values: [rm, '.*']}",
            "always holds: \".*\" is found in every",
        ),
        (
            "kind: Shell",
            "{param: command, operator: NotMatches, values: ['(rm)?']}",
            "never holds: \"(rm)?\"",
        ),
        (
            "kind: Fetch",
            "{param: url, operator: HostIn, values: ['**']}",
            "always holds: \"**\" is every host",
        ),
        ("kind: Read", "{param: paths, operator: Exists}", "always holds: every such call has \"paths\""),
        ("tools: [x]", "{param: $, operator: NotExists}", "never holds: every such call has \"$\""),
    ] {
        let found = said(&[&rule(head, test)]);
        let expected = format!("spec.tools[0].when.not: the test {expected}");
        assert!(found.len() == 1 && found[0].starts_with(&expected), "{test}: {found:#?}");
    }
    for (head, test) in [
        ("kind: Shell", "{param: command, operator: Matches, values: ['^$']}"),
        ("kind: Shell", "{param: command, operator: Matches, values: ['rm.*']}"),
        ("kind: Fetch", "{param: url, operator: HostIn, values: ['**.example.com']}"),
        ("tools: [x]", "{param: paths, operator: Exists}"),
    ] {
        assert_eq!(said(&[&rule(head, test)]), Vec::<String>::new(), "{test}");
    }
}

#[test]
fn a_wildcard_below_which_anybody_has_a_name_is_told() {
    assert_twins(&[
        (
            "{destinations: [{name: a, hosts: ['*.github.io'], action: Tunnel}]}",
            "spec.destinations[0].hosts[0]: \"*.github.io\": every name that somebody takes below \"github.io\" is opened",
            "{destinations: [{name: a, hosts: ['*.acme.github.io', acme.github.io], action: Tunnel}]}",
        ),
        (
            "{destinations: [{name: a, hosts: ['**.co.uk'], action: Inspect}]}",
            "spec.destinations[0].hosts[0]: \"**.co.uk\": every name that is registered below \"co.uk\" is opened",
            "{destinations: [{name: a, hosts: ['**.co.uk'], action: Deny}]}",
        ),
        (
            "{destinations: [{name: a, hosts: ['**.Com'], action: Tunnel}]}",
            "spec.destinations[0].hosts[0]: \"**.Com\"",
            "{destinations: [{name: a, hosts: ['**.internal', '**.svc.cluster.local', '**'], action: Tunnel}]}",
        ),
    ]);
}
