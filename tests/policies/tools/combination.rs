//! Several rules and policies together: precedence, defaults, conditions, Audit.

use postern::call::Inputs;
use postern::call::Judge;
use postern::policy::Policy;
use postern::policy::document::Explain;

use super::{audit, cluster, complete, expect, namespaced, policy, rules, said, tool};

/// The example of the documentation.
const EXAMPLE: &str = r"
    tools:
    - name: no-force-remove
      kind: Shell
      tools: ['mcp__shell__*']
      action: Deny
      when:
        any:
        - {param: command, operator: Matches, values: ['rm\s+-rf\s+/']}
        - {param: command, operator: Contains, values: [sudo]}
      reason: Dangerous shell command
    - name: stay-in-project
      tools: [Read, Edit, Write]
      action: Deny
      when: {all: [{param: file_path, operator: NotWithin, values: [/workspace]}]}
      reason: File access is restricted to the project directory
";

fn example() -> Policy {
    let lines = EXAMPLE.lines().map(|line| format!("  {}\n", line.strip_prefix("    ").unwrap_or(line)));
    let spec: String = lines.collect();
    policy(&[format!(
        "apiVersion: postern.dev/v1alpha1\nkind: EgressPolicy\nmetadata: {{name: p, namespace: agents}}\nspec:\n{spec}"
    )])
}

#[test]
fn the_example_decides_as_it_reads() {
    let policy = example();
    expect(
        &policy,
        r#"
        Bash = held
        Bash {"command": "ls"} = Allow
        Bash {"command": "rm  -rf /"} = Deny agents/p/no-force-remove
        Bash {"command": "sudo ls"} = Deny agents/p/no-force-remove
        mcp__shell__run {"command": ["rm", "-rf", "/"]} = Deny agents/p/no-force-remove
        mcp__shell__run {"cmd": "rm -rf /"} = Allow
        Read {"file_path": "/workspace/a"} = Allow
        Read {"file_path": "/workspace/../etc/passwd"} = Deny agents/p/stay-in-project
        Read {"file_path": "~/.ssh/id"} = Deny agents/p/stay-in-project
        Read {} = Deny agents/p/stay-in-project
        edit {"file_path": "/etc/x"} = Deny agents/p/stay-in-project
        Glob = starts Allow
        "#,
    );
    let denied = complete(&policy, "Bash", &serde_json::json!({"command": "sudo"}));
    assert_eq!(denied.decision.reason.as_deref(), Some("Dangerous shell command"));
    assert!(denied.advice.as_str().starts_with("The tool itself is allowed"));
}

#[test]
fn a_deny_wins_over_every_allow_and_an_allow_over_the_default() {
    let policy = policy(&[namespaced(
        "p",
        "toolDefault: Deny
         tools:
         - {name: allow-all, tools: ['*'], action: Allow}
         - {name: no-bash, tools: [Bash], action: Deny, when: {param: command, operator: Contains, values: [sudo]}}
         - {name: no-fetch, kind: Fetch, action: Deny}",
    )]);
    expect(
        &policy,
        r#"
        Bash {"command": "ls"} = Allow agents/p/allow-all
        Bash {"command": "sudo"} = Deny agents/p/no-bash
        WebFetch = stops Deny agents/p/no-fetch !
        Read = starts Allow agents/p/allow-all
        "#,
    );
}

#[test]
fn with_a_closed_default_only_what_an_allow_rule_covers_is_held() {
    let policy = policy(&[namespaced(
        "p",
        "toolDefault: Deny
         tools:
         - {name: git, tools: [Bash], action: Allow, when: {param: command, operator: StartsWith, values: ['git ']}}
         - {name: no-x, tools: [Unheard], action: Deny, when: {param: x, operator: Exists}}",
    )]);
    expect(
        &policy,
        r#"
        Bash = held
        Bash {"command": "git status"} = Allow agents/p/git
        Bash {"command": "ls"} = Deny agents/p/toolDefault
        Bash {} = Deny agents/p/toolDefault
        Unheard = stops Deny agents/p/toolDefault !
        "#,
    );
}

#[test]
fn an_open_default_needs_no_input_for_an_allow_rule() {
    let policy = rules(&[
        "{name: git, tools: [Other], action: Allow, when: {param: command, operator: StartsWith, values: ['git ']}}",
    ]);
    expect(&policy, "Other = starts Allow");
}

#[test]
fn the_strictest_of_all_policies_decides_whoever_wrote_it() {
    let closed = cluster("floor", "toolDefault: Deny");
    let open = namespaced("p", "toolDefault: Allow\ntools: [{name: bash, tools: [Bash], action: Allow}]");
    expect(
        &policy(&[closed, open.clone()]),
        "
        Bash = held
        Read = stops Deny -/floor/toolDefault !
        ",
    );
    let forbidding = cluster("floor", "tools: [{name: no-bash, tools: [Bash], action: Deny}]");
    expect(
        &policy(&[open.clone(), forbidding]),
        "
        Bash = stops Deny -/floor/no-bash !
        Read = starts Allow agents/p/toolDefault
        ",
    );
    expect(&policy(&[open]), "Read = starts Allow agents/p/toolDefault");
}

#[test]
fn an_audit_rule_records_and_stops_nothing() {
    let policy = rules(&[
        "{name: all, tools: [Bash], action: Audit}",
        "{name: sudo, kind: Shell, action: Audit, when: {param: command, operator: Contains, values: [sudo]}}",
        "{name: no-rm, kind: Shell, action: Deny, when: {param: command, operator: Contains, values: [rm]}}",
        "{name: seen, tools: [Glob], action: Audit}",
        "{name: paths, tools: [Grep], action: Audit, when: {param: path, operator: NotWithin, values: [/w]}}",
    ]);
    expect(
        &policy,
        r#"
        Bash {"command": "ls"} = Allow + Audit agents/p/all
        Bash {"command": "sudo ls"} = Allow + Audit agents/p/all + Audit agents/p/sudo
        Bash {"command": "sudo rm"} = Deny agents/p/no-rm
        Glob = starts Allow + Audit agents/p/seen
        Glob {} = Allow + Audit agents/p/seen
        Grep = observed
        Grep {} = Allow + Audit agents/p/paths
        Grep {"path": "/w/x"} = Allow
        "#,
    );
}

#[test]
fn an_audit_policy_beside_an_enforced_one_tells_what_it_would_do() {
    let trial = audit(&namespaced(
        "trial",
        "toolDefault: Deny
         tools:
         - {name: no-bash, tools: [Bash], action: Deny}
         - {name: no-etc, tools: [Read], action: Deny, when: {param: file_path, operator: Within, values: [/etc]}}
         - {name: glob, tools: [Glob], action: Allow}",
    ));
    let enforced = namespaced("p", "tools: [{name: no-fetch, tools: [WebFetch], action: Deny}]");
    let policy = policy(&[enforced, trial]);
    expect(
        &policy,
        r#"
        Bash = held
        Bash {"command": "ls"} = Allow + WouldDeny agents/trial/no-bash
        Grep = starts Allow + WouldDeny agents/trial/toolDefault
        Glob = starts Allow
        WebFetch = stops Deny agents/p/no-fetch !
        Read = starts Allow + WouldDeny agents/trial/toolDefault
        "#,
    );
}

#[test]
fn an_audit_policys_allowance_is_told_and_grants_nothing() {
    let enforced = namespaced("p", "toolDefault: Deny");
    let trial = audit(&namespaced("trial", "tools: [{name: grep, tools: [Grep], action: Allow}]"));
    expect(
        &policy(&[enforced, trial]),
        "
        Grep = stops Deny agents/p/toolDefault ! + Audit agents/trial/grep
        Read = stops Deny agents/p/toolDefault !
        ",
    );
}

#[test]
fn where_only_audit_policies_select_the_pod_nothing_is_held_or_stopped() {
    let policy = policy(&[audit(&namespaced(
        "p",
        "tools:
         - {name: no-fetch, kind: Fetch, action: Deny}
         - {name: sudo, kind: Shell, action: Deny, when: {param: command, operator: Contains, values: [sudo]}}",
    ))]);
    expect(
        &policy,
        r#"
        WebFetch = starts WouldDeny agents/p/no-fetch
        Bash = observed
        Bash {"command": "sudo"} = WouldDeny agents/p/sudo
        Bash {"command": "ls"} = Allow
        Write {"file_path": "/w/.mcp.json"} = WouldDeny postern/builtin/agent-control-files
        Read = starts Allow
        "#,
    );
    assert!(!policy.denies(true));
}

#[test]
fn without_a_policy_every_call_is_denied() {
    expect(&Policy::none(), "Bash = stops Deny postern/builtin/no-policy !");
    let other = namespaced("p", "podSelector: {matchLabels: {app: other}}");
    expect(&policy(&[other]), "Bash = stops Deny postern/builtin/no-policy !");
    assert!(Policy::none().denies(false));
}

#[test]
fn a_policy_knows_whether_it_could_deny_any_call() {
    let says = |spec: &str| {
        let policy = policy(&[namespaced("p", spec)]);
        (policy.denies(false), policy.denies(true))
    };
    assert_eq!(says("enforcement: Enforce"), (false, true), "the built-in rule is about Write tools alone");
    assert_eq!(
        says("tools: [{name: a, tools: [x], action: Allow}, {name: b, kind: Shell, action: Audit}]"),
        (false, true)
    );
    assert_eq!(says("tools: [{name: a, tools: [x], action: Deny}]"), (true, true));
    assert_eq!(says("toolDefault: Deny"), (true, true));
}

#[test]
fn events_keep_the_least_that_any_policy_says() {
    let keeps = |documents: &[String]| policy(documents).tool_inputs();
    let says = |name: &str, word: &str| namespaced(name, &format!("audit: {{toolInputs: {word}}}"));
    assert_eq!(keeps(&[namespaced("p", "enforcement: Enforce")]), Inputs::Hash);
    assert_eq!(keeps(&[says("p", "Full")]), Inputs::Full);
    assert_eq!(keeps(&[says("p", "Full"), says("q", "Redacted")]), Inputs::Redacted);
    assert_eq!(keeps(&[says("p", "Full"), says("q", "None")]), Inputs::None);
    assert_eq!(
        keeps(&[says("p", "Full"), audit(&says("q", "None"))]),
        Inputs::Full,
        "an Audit policy only records"
    );
    assert_eq!(keeps(&[audit(&says("q", "None"))]), Inputs::None);
}

#[test]
fn an_agent_may_ask_the_least_that_any_policy_says() {
    let explains = |documents: &[String]| policy(documents).explains();
    let says = |name: &str, word: &str| namespaced(name, &format!("explain: {word}"));
    assert_eq!(Policy::none().explains(), Explain::Denials, "a pod without a policy learns that");
    assert_eq!(explains(&[namespaced("p", "enforcement: Enforce")]), Explain::Denials);
    assert_eq!(explains(&[says("p", "Policy")]), Explain::Policy);
    assert_eq!(explains(&[says("p", "Policy"), says("q", "Denials")]), Explain::Denials);
    assert_eq!(explains(&[says("p", "Policy"), says("q", "None")]), Explain::None);
    assert_eq!(
        explains(&[says("p", "Policy"), audit(&says("q", "None"))]),
        Explain::Policy,
        "an Audit policy only records"
    );
    assert_eq!(explains(&[audit(&says("q", "None"))]), Explain::None);
}

#[test]
fn a_call_whose_input_nobody_knows_is_denied_by_a_rule_that_asks_for_it() {
    let unknown = |policy: &Policy, name: &str| said(&policy.unknown(&tool(name)));
    let asking =
        "{name: asks, kind: Shell, action: Deny, when: {param: command, operator: Contains, values: [sudo]}}";
    let conditional = rules(&[asking, "{name: never, tools: [mcp__x], action: Deny}"]);
    for (name, expected) in [
        ("Bash", "Deny postern/builtin/unparseable"),
        ("mcp__x", "Deny agents/p/never !"),
        ("Read", "Allow"),
        ("other", "Allow"),
        ("Write", "Deny postern/builtin/agent-control-files"),
    ] {
        assert_eq!(unknown(&conditional, name), expected, "{name}");
    }

    let narrow = policy(&[namespaced(
        "p",
        "toolDefault: Deny
         tools: [{name: any, tools: [Read], action: Allow}, {name: some, kind: Shell, action: Allow, when: {param: command, operator: Equals, values: [ls]}}]",
    )]);
    for (name, expected) in [
        ("Read", "Allow agents/p/any"),
        ("Bash", "Deny agents/p/toolDefault"),
        ("other", "Deny agents/p/toolDefault !"),
    ] {
        assert_eq!(unknown(&narrow, name), expected, "{name}");
    }

    let recording = policy(&[
        namespaced("q", "enforcement: Enforce"),
        audit(&namespaced("p", &format!("tools: [{asking}]"))),
    ]);
    assert_eq!(unknown(&recording, "Bash"), "Allow + WouldDeny postern/builtin/unparseable");
}
