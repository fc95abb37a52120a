//! The built-in rule about files that run by themselves, and how a policy opens one of them.

use super::{expect, namespaced, policy, rules};

#[test]
fn a_write_of_a_control_file_is_denied_without_any_rule() {
    let policy = policy(&[namespaced("p", "enforcement: Enforce")]);
    expect(
        &policy,
        r#"
        Write = held
        Write {"file_path": "/workspace/a.rs"} = Allow
        Write {"file_path": "/workspace/.git/hooks/pre-commit"} = Deny postern/builtin/agent-control-files
        Edit {"file_path": "/home/agent/.bashrc"} = Deny postern/builtin/agent-control-files
        editor {"command": "create", "path": "/w/.claude/settings.local.json"} = Deny postern/builtin/agent-control-files
        editor {"command": "view", "path": "/w/.claude/settings.local.json"} = Allow
        Read = starts Allow
        Read {"file_path": "/w/.mcp.json"} = Allow
        "#,
    );
}

#[test]
fn an_allow_rule_opens_the_files_that_it_names() {
    for test in [
        "{param: paths, operator: Equals, values: [/w/.mcp.json]}",
        "{param: paths, operator: In, values: [/x, /w/.mcp.json]}",
        "{all: [{param: paths, operator: Equals, values: [/w/.mcp.json]}, {param: content, operator: NotContains, values: [curl]}]}",
    ] {
        let policy = rules(&[&format!("{{name: r, kind: Write, action: Allow, when: {test}}}")]);
        expect(
            &policy,
            r#"
            Write {"file_path": "/w/.mcp.json", "content": "{}"} = Allow agents/p/r
            Write {"file_path": "/v/.mcp.json", "content": "{}"} = Deny postern/builtin/agent-control-files
            "#,
        );
    }
}

#[test]
fn a_directory_names_its_files_where_it_is_itself_on_the_list() {
    let allow = |directories: &str| {
        rules(&[&format!(
            "{{name: r, kind: Write, action: Allow, when: {{param: paths, operator: Within, values: [{directories}]}}}}"
        )])
    };
    let hook = r#"Write {"file_path": "/w/.git/hooks/pre-commit", "content": "x"}"#;
    for place in ["/w/.git/hooks", "/w/.git/hooks/", "'/w, x', /w/.git/hooks", "/w, /w/.git/hooks", "/w/.git"]
    {
        assert_eq!(super::decide(&allow(place), hook), "Allow agents/p/r", "{place}");
    }
    for above in ["/w", "/", "/w/.github", "/w, /v/.git/hooks"] {
        let verdict = super::decide(&allow(above), hook);
        assert_eq!(verdict, "Deny postern/builtin/agent-control-files", "{above}");
    }
    let ordinary = r#"Write {"file_path": "/w/src/main.rs", "content": "x"}"#;
    assert_eq!(super::decide(&allow("/w"), ordinary), "Allow agents/p/r");
}

#[test]
fn a_write_that_cannot_be_read_is_denied_by_name_and_kind_and_all_the_same() {
    let unreadable = r#"editor {"path": "/w/a.rs"}"#;
    for rule in [
        "{name: r, kind: Write, action: Allow}",
        "{name: r, tools: [editor, Write], action: Allow}",
        "{name: r, kind: Write, action: Allow, when: {param: paths, operator: Equals, values: [/w/a.rs]}}",
    ] {
        let policy = rules(&[rule]);
        for call in [unreadable, r#"Write {"content": "x"}"#] {
            let verdict = super::decide(&policy, call);
            assert_eq!(verdict, "Deny postern/builtin/agent-control-files", "{rule} {call}");
        }
        assert!(
            super::decide(&policy, r#"editor {"command": "view", "path": "/w/a.rs"}"#).starts_with("Allow")
        );
    }
}

#[test]
fn an_allow_rule_that_names_no_file_opens_none() {
    for rule in [
        "{name: r, kind: Write, action: Allow}",
        "{name: r, tools: [Write], action: Allow}",
        "{name: r, kind: Write, action: Allow, when: {param: content, operator: Exists}}",
        "{name: r, kind: Write, action: Allow, when: {param: paths, operator: Matches, values: ['mcp.json$']}}",
        "{name: r, kind: Write, action: Allow, when: {not: {param: paths, operator: Within, values: [/etc]}}}",
        "{name: r, kind: Write, action: Allow, when: {any: [{param: content, operator: Exists}, {param: paths, operator: Equals, values: [/x]}]}}",
        "{name: r, kind: Read, action: Allow, when: {param: paths, operator: Within, values: [/w]}}",
        "{name: r, kind: Write, action: Audit, when: {param: paths, operator: Within, values: [/w]}}",
    ] {
        let verdict =
            super::decide(&rules(&[rule]), r#"Write {"file_path": "/w/.mcp.json", "content": "x"}"#);
        assert_eq!(verdict, "Deny postern/builtin/agent-control-files", "{rule}");
    }
}

#[test]
fn a_deny_rule_is_told_before_the_built_in_one_and_still_wins_over_the_exception() {
    let policy = rules(&[
        "{name: open, kind: Write, action: Allow, when: {param: paths, operator: Equals, values: [/w/.mcp.json]}}",
        "{name: no-curl, kind: Write, action: Deny, when: {param: content, operator: Contains, values: [curl]}}",
    ]);
    expect(
        &policy,
        r#"
        Write {"file_path": "/w/.mcp.json", "content": "curl"} = Deny agents/p/no-curl
        Write {"file_path": "/v/.mcp.json", "content": "curl"} = Deny agents/p/no-curl
        Write {"file_path": "/w/.mcp.json", "content": "x"} = Allow agents/p/open
        "#,
    );
}
