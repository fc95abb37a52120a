//! Which rules a tool meets: by name, wildcard, namespace and kind.

use postern::call::{Judge, Start};

use super::{expect, rules, tool};

#[test]
fn an_unconditional_deny_takes_effect_at_the_start() {
    let policy = rules(&["{name: r, tools: [Bash, 'mcp__shell__*'], action: Deny}"]);
    expect(
        &policy,
        r#"
        Bash = stops Deny agents/p/r !
        Bash {"command": "ls"} = Deny agents/p/r !
        mcp__shell__run = stops Deny agents/p/r !
        mcp__shellx__run = starts Allow
        Read = starts Allow
        Read {"file_path": "/x"} = Allow
        "#,
    );
}

#[test]
fn a_denial_folds_names_and_an_allowance_is_exact() {
    let deny = rules(&["{name: r, tools: [ＢASH, 'MCP__*'], action: Deny}"]);
    for name in ["bash", "BASH", "Ｂａｓｈ", "Ba\u{200b}sh", "baſh", " Bash", "mcp__x", "Mcp__X"] {
        assert!(matches!(deny.start(&tool(name)), Start::Deny(_)), "{name:?}");
    }
    assert!(matches!(deny.start(&tool("Bash2")), Start::Allow(_)));
    let allow = rules(&[
        "{name: all, tools: ['*'], action: Deny, when: {param: $, operator: Exists}}",
        "{name: r, tools: [Bash, 'mcp__*'], action: Allow}",
    ]);
    expect(
        &allow,
        r#"
        Bash {} = Deny agents/p/all
        "#,
    );
    let closed = super::policy(&[super::namespaced(
        "p",
        "toolDefault: Deny
         tools: [{name: r, tools: [Bash, 'mcp__*'], action: Allow}]",
    )]);
    expect(
        &closed,
        "
        Bash = held
        mcp__x = starts Allow agents/p/r
        bash = stops Deny agents/p/toolDefault !
        Ｂａｓｈ = stops Deny agents/p/toolDefault !
        MCP__x = stops Deny agents/p/toolDefault !
        ",
    );
}

#[test]
fn a_namespaced_call_has_two_names() {
    let policy = rules(&[
        "{name: whole, tools: [computer.left_click], action: Deny}",
        "{name: part, tools: [navigate], action: Deny}",
    ]);
    expect(
        &policy,
        "
        computer/left_click = stops Deny agents/p/whole !
        left_click = starts Allow
        other/left_click = starts Allow
        browser/navigate = stops Deny agents/p/part !
        computer.left_click = stops Deny agents/p/whole !
        ",
    );
}

#[test]
fn a_rule_meets_a_tool_by_kind_or_by_name() {
    let policy = rules(&["{name: r, kind: Shell, tools: ['mcp__*'], action: Deny}"]);
    expect(
        &policy,
        "
        Bash = stops Deny agents/p/r !
        mcp__x = stops Deny agents/p/r !
        Read = starts Allow
        ",
    );
}

#[test]
fn a_tool_of_several_kinds_is_held_until_its_input_tells_which() {
    let policy = rules(&["{name: r, kind: Write, action: Deny}"]);
    expect(
        &policy,
        r#"
        Write = stops Deny agents/p/r !
        editor = held
        editor {"command": "view", "path": "/w/a"} = Allow
        editor {"command": "create", "path": "/w/a"} = Deny agents/p/r
        editor {"nonsense": 1} = Deny agents/p/r
        "#,
    );
    let reads = super::policy(&[super::namespaced(
        "p",
        "toolDefault: Deny
         tools: [{name: r, kind: Read, action: Allow}]",
    )]);
    expect(
        &reads,
        r#"
        Read = starts Allow agents/p/r
        editor {"command": "view", "path": "/w/a"} = Allow agents/p/r
        editor {"command": "create", "path": "/w/a"} = Deny agents/p/toolDefault
        editor {"nonsense": 1} = Deny postern/builtin/agent-control-files
        "#,
    );
}

#[test]
fn a_name_beyond_the_bound_is_denied_unread() {
    let policy = rules(&["{name: r, tools: [x], action: Audit}"]);
    let long = "a".repeat(1024);
    expect(&policy, &format!("{long} = stops Deny postern/builtin/bound !"));
    assert!(matches!(policy.start(&tool(&long[1..])), Start::Allow(_)));
}

#[test]
fn a_denial_covers_every_spelling_of_a_servers_tool() {
    let policy = rules(&[
        "{name: one, tools: [mcp__git-hub__create.issue], action: Deny}",
        "{name: all, tools: ['mcp__shell__*'], action: Deny}",
        "{name: any, tools: ['mcp__*__wipe'], action: Deny}",
        "{name: own, tools: [web-search], action: Deny}",
    ]);
    expect(
        &policy,
        "
        mcp__git-hub__create.issue = stops Deny agents/p/one !
        mcp__git_hub__create_issue = stops Deny agents/p/one !
        mcp_git-hub_create.issue = stops Deny agents/p/one !
        git-hub__create.issue = stops Deny agents/p/one !
        git_hub_create_issue = stops Deny agents/p/one !
        git-hub-create.issue = stops Deny agents/p/one !
        git-hub.create.issue = stops Deny agents/p/one !
        git-hub/create.issue = stops Deny agents/p/one !
        mcp__git-hub/create_issue = stops Deny agents/p/one !
        functions.mcp__git_hub__create_issue:3 = stops Deny agents/p/one !
        create_issue = starts Allow
        mcp__git_hub__create_issues = starts Allow
        mcp__shell__run = stops Deny agents/p/all !
        mcp_shell_run = stops Deny agents/p/all !
        shell-run = stops Deny agents/p/all !
        shell/run = stops Deny agents/p/all !
        mcp__shell/run = stops Deny agents/p/all !
        shellx_run = starts Allow
        disk_wipe = stops Deny agents/p/any !
        mcp_disk_wipe = stops Deny agents/p/any !
        disk/wipe = stops Deny agents/p/any !
        wipe = starts Allow
        web_search = stops Deny agents/p/own !
        tools.web_search = stops Deny agents/p/own !
        websearch = starts Allow
        ",
    );
}

#[test]
fn a_wildcard_over_all_servers_is_about_names_that_say_so() {
    let policy = rules(&["{name: r, tools: ['mcp__*', '*__*'], action: Deny}"]);
    expect(
        &policy,
        "
        mcp__x__y = stops Deny agents/p/r !
        mcp_x_y = stops Deny agents/p/r !
        mcp__x/y = stops Deny agents/p/r !
        x__y = stops Deny agents/p/r !
        read_file = starts Allow
        Bash = held
        ",
    );
}

#[test]
fn what_models_write_around_a_name_hides_nothing_and_allows_nothing() {
    let deny = rules(&["{name: r, tools: [Bash, functions.rm], action: Deny}"]);
    for name in [
        "functions.Bash",
        "functions.bash:0",
        "tools.Bash",
        "default_api:Bash",
        "default_api.Bash",
        "repo_browser.bash",
        "functions.tools.Bash",
        "Bash<|channel|>commentary",
        "<|constrain|>Bash",
        "functions/Bash",
        "rm",
        "functions/rm",
    ] {
        assert!(matches!(deny.start(&tool(&name.replace('/', "."))), Start::Deny(_)), "{name:?}");
    }
    let closed = super::policy(&[super::namespaced(
        "p",
        "toolDefault: Deny
         tools: [{name: r, tools: [Bash, shell.Bash, S_T], action: Allow}]",
    )]);
    expect(
        &closed,
        "
        Bash = held
        functions/Bash = held
        shell/Bash = held
        functions.Bash = stops Deny agents/p/toolDefault !
        Bash:0 = stops Deny agents/p/toolDefault !
        other/Bash = stops Deny agents/p/toolDefault !
        mcp__other/Bash = stops Deny agents/p/toolDefault !
        mcp__shell__Bash = stops Deny agents/p/toolDefault !
        mcp__S__T = stops Deny agents/p/toolDefault !
        S-T = stops Deny agents/p/toolDefault !
        S/T = stops Deny agents/p/toolDefault !
        ",
    );
}
