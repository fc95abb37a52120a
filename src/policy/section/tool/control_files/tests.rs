//! Which paths the rule is about, in whatever spelling, and which it is not.

use serde_json::json;

use super::*;
use crate::call::{Facts, Tool};

fn covered(path: &str) -> Option<&'static str> {
    covering(path)
}

#[test]
fn what_runs_by_itself_is_on_the_list_wherever_it_stands() {
    for path in [
        "/home/agent/.config/postern/policy.yaml",
        "/home/agent/.local/share/postern/ca-key.pem",
        "/workspace/.claude/settings.json",
        ".claude/settings.local.json",
        "/home/agent/.claude.json",
        "~/.bashrc",
        "/home/agent/.zshenv",
        "/workspace/.git/hooks/pre-commit",
        "sub/.git/config",
        "/workspace/.git",
        "/workspace/.mcp.json",
        "~/.codex/config.toml",
        ".gemini/settings.json",
        "/etc/profile.d/x.sh",
        "../../etc/cron.daily/x",
        "/workspace/.vscode/tasks.json",
        "/usr/lib/python3/site-packages/evil.pth",
        "/home/agent/.copilot/mcp-config.json",
        "/w/crush.json",
        "/w/.zed/tasks.json",
        "/w/.clinerules/hooks/PreToolUse",
        "/home/agent/Documents/Cline/Hooks/PreToolUse",
        "/w/.kilocode/mcp.json",
        "/w/.factory/droids/x.md",
        "/w/.augment/commands/x.md",
        "/home/agent/.aws/amazonq/mcp.json",
        "/w/.junie/mcp/mcp.json",
        "/w/.openhands/setup.sh",
        "~/.config/amp/settings.json",
        "/w/.claude/rules/x.md",
        "/w/.claude/scheduled_tasks.json",
        "/w/x.code-workspace",
        "~/Library/Application Support/Code/User/settings.json",
        "/home/agent/.vscode-server/data/Machine/settings.json",
        "/w/.idea/workspace.xml",
        "/w/mise.local.toml",
        "/w/lefthook.yml",
        "/w/.hg/hgrc",
        "~/.kube/config",
        "/Users/a/Library/LaunchAgents/x.plist",
        "/etc/sudoers.d/x",
        "~/.local/bin/git",
    ] {
        assert!(covered(path).is_some(), "{path}");
    }
}

#[test]
fn another_spelling_of_the_path_is_the_same_file() {
    for path in [
        "/workspace/.CLAUDE/Settings.json",
        "/workspace/.claude/x/../settings.json",
        "/workspace/./.claude//settings.json",
        "/workspace/.git/./hooks/pre-commit",
        "C:\\work\\.git\\hooks\\pre-commit",
        "/workspace/.gi\u{200c}t/hooks/pre-commit",
        "/workspace/.ｇit/hooks/pre-commit",
        "file:///home/agent/.bashrc",
        "file:///home/agent/%2Ebashrc",
        "/workspace/.git./hooks/pre-commit",
        "/workspace/.git /hooks/pre-commit",
        "C:/w/GIT~1/hooks/pre-commit",
        "C:\\w\\claude~2\\settings.json",
        "/w/.git/hooks::$INDEX_ALLOCATION/pre-commit",
        "/w/.git::$INDEX_ALLOCATION/hooks/pre-commit",
        "/w/.bashrc::$DATA",
        "C:.bashrc",
        "/w/.git/hooks/x/.. /../pre-commit",
        "/w/.claude/agents/x\\..\\..\\..\\y.md",
    ] {
        assert!(covered(path).is_some(), "{path}");
    }
}

#[test]
fn ordinary_files_are_not() {
    for path in [
        "/workspace/src/main.rs",
        "/workspace/.gitignore",
        "/workspace/.github/workflows/ci.yml",
        "/workspace/docs/.claude-notes.md",
        "/workspace/settings.json",
        "/workspace/src/config.json",
        "/workspace/.aws/config/x",
        "/workspace/CLAUDE.md",
        "/workspace/AGENTS.md",
        "/workspace/.github/copilot-instructions.md",
        "/workspace/.vscode/extensions.json",
        "/workspace/local/bin/x",
        "/workspace/docker/config.json",
        "/workspace/promise.toml",
        "/home/agent/.claude/plans/plan.md",
        "/workspace/git/hooks/pre-commit",
        "/workspace/.git/hooks/../../src/lib.rs",
        "/home/agent/.gemini/tmp/abc/plans/plan.md",
        "/home/agent/.gemini/tmp/abc/session/plans/plan.md",
        "/workspace/.opencode/plans/1-plan.md",
        "C:\\Users\\CONTAI~1\\AppData\\Local\\Temp\\a.txt",
        "/workspace/a~1.txt",
        "/workspace/notes.txt::$DATA",
        "",
        "/",
    ] {
        assert_eq!(covered(path), None, "{path}");
    }
}

#[test]
fn what_is_ordinary_below_a_place_excuses_nothing_else() {
    for path in [
        "/home/agent/.gemini/tmp/abc/plans/.git/hooks/pre-commit",
        "/home/agent/.gemini/tmp/abc/plans/../settings.json",
        "/home/agent/.gemini/settings.json",
        "/workspace/.opencode/plans.md",
        "/workspace/.opencode/plans/../plugin/x.js",
        "/workspace/.opencode/plans/.opencode/plugin/x.js",
    ] {
        assert!(covered(path).is_some(), "{path}");
    }
    for ordinary in ORDINARY {
        assert!(CONTROL_FILES.iter().any(|entry| ordinary.starts_with(entry)), "{ordinary}");
    }
}

#[test]
fn a_pattern_of_a_shell_is_on_the_list_if_it_may_stand_for_an_entry() {
    for path in [
        ".clau*/settings.json",
        "/w/.clau?e/settings.json",
        ".[c]laude/set*.json",
        ".git/ho*/pre-commit",
        ".git/hooks/pre-commi[t]",
        ".?itconfig",
        "/w/.*",
        "/etc/cla*-code/x",
        ".bash[!x]c",
        ".gi[[:alpha:]]/hooks/pre-commit",
        "/w/.git/[^[:digit:]x]ooks/pre-commit",
        ".[[.c.]]laude/settings.json",
        "/w/.[][:alnum:]]it/hooks/x",
    ] {
        assert!(covered(path).is_some(), "{path}");
    }
    for path in [
        "*",
        "/w/*.json",
        "*/settings.json",
        "src/[slug]/page.tsx",
        ".cache/*",
        ".next*",
        ".clau?/settings.json",
        ".[bash",
        "opencode.jso?",
        ".gi[[:alpha:]]x/hooks/pre-commit",
        ".gi[[:alpha:]/hooks/pre-commit",
        "src/[[:alpha:]]/settings.json",
    ] {
        assert_eq!(covered(path), None, "{path}");
    }
}

fn write(paths: &[&'static str], moves: bool, input: &Value) -> Option<ControlFileFinding> {
    let facts =
        Facts { paths: paths.iter().map(|path| (*path).into()).collect(), moves, ..Facts::new(Kind::Write) };
    let tool = Tool { kinds: &[Kind::Write], ..Tool::named("t") };
    finding(&ToolCall { tool, input: Input::Json(input), facts: Some(&facts), derived: &[] }, |path| {
        path == "/w/.envrc"
    })
}

#[test]
fn a_move_brings_what_stands_below_it() {
    let none = json!({});
    for paths in [
        ["/w/x", "/w/.claude"],
        ["/w/x", "/w/.vscode/"],
        ["/w/x", "/home/a/.config"],
        ["/w/settings.json", "/w/.claude"],
        ["/w/x/.mcp.json", "/w"],
    ] {
        assert!(write(&paths, true, &none).is_some(), "{paths:?}");
    }
    for paths in [["/w/a.rs", "/w/b.rs"], ["/w/a", "/w/.github/workflows"], ["/w/x", "/w/etc"]] {
        assert_eq!(write(&paths, true, &none), None, "{paths:?}");
    }
    assert_eq!(write(&["/w/.claude/"], false, &none), None, "a directory is made, and has nothing in it");
    let many = vec!["/w/a"; 40];
    assert_eq!(write(&many, true, &none), Some(ControlFileFinding::Unreadable));
}

#[test]
fn a_path_in_a_parameter_that_nobody_knows_counts_and_contents_do_not() {
    let path = ["/w/a.md"];
    for input in [
        json!({"path": "/w/a.md", "target": ".git/hooks/x"}),
        json!({"path": "/w/a.md", "more": [{"where": {"it_is": "/home/a/.bashrc"}}]}),
    ] {
        assert!(matches!(write(&path, false, &input), Some(ControlFileFinding::Writes(_))), "{input}");
    }
    for input in [
        json!({"content": ".bashrc", "old_string": ".git/hooks/x", "newString": "~/.zshrc"}),
        json!({"description": ".envrc", "edits": [{"oldText": ".envrc", "newText": "~/.envrc"}]}),
        json!({"note": "first line\n.git/hooks/x", "url": "https://a.example/.git/config", "n": 1}),
        json!({"path": "/w/a.md", "allowed": "/w/.envrc"}),
    ] {
        assert_eq!(write(&path, false, &input), None, "{input}");
    }
}

#[test]
fn a_write_without_a_path_is_unreadable_but_what_a_shell_runs_is_not_read() {
    let input = json!({"x": 1});
    let call = |kinds: &[Kind], facts: Option<Facts<'_>>| {
        let tool = Tool { kinds, ..Tool::named("t") };
        let call = ToolCall { tool, input: Input::Json(&input), facts: facts.as_ref(), derived: &[] };
        finding(&call, |_| false)
    };
    assert_eq!(call(&[Kind::Write], None), Some(ControlFileFinding::Unreadable));
    assert_eq!(call(&[Kind::Read, Kind::Write], None), Some(ControlFileFinding::Unreadable));
    assert_eq!(call(&[Kind::Shell, Kind::Write], None), None);
    assert_eq!(call(&[Kind::Read], None), None);
    assert_eq!(
        call(&[Kind::Shell, Kind::Write], Some(Facts::new(Kind::Write))),
        Some(ControlFileFinding::Unreadable)
    );
    assert_eq!(call(&[Kind::Shell, Kind::Write], Some(Facts::new(Kind::Shell))), None);
    let many = |count: usize| Facts { paths: vec!["/w/a".into(); count], ..Facts::new(Kind::Write) };
    assert_eq!(call(&[Kind::Write], Some(many(1_000))), None);
    assert_eq!(
        call(&[Kind::Write], Some(many(100_000))),
        Some(ControlFileFinding::Unreadable),
        "beyond the bound"
    );
    let texts = json!({"path": "/w/a", "more": vec!["/w/b"; 100_000]});
    assert_eq!(write(&["/w/a"], false, &texts), Some(ControlFileFinding::Unreadable), "beyond the bound");
}

#[test]
fn the_list_says_each_file_once() {
    let mut sorted: Vec<&str> = CONTROL_FILES.to_vec();
    sorted.sort_unstable();
    sorted.dedup();
    assert_eq!(sorted.len(), CONTROL_FILES.len());
}
