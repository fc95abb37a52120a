//! Writes of files that run by themselves, in calls whose paths are hard to read.

use serde_json::{Value, json};

use super::model::{Model, assert_without, call, message, named, policy};
use crate::parity::anthropic::Anthropic;
use crate::parity::dialect::Mode::Streamed;

const CONTROL: &str = "postern/builtin/agent-control-files";

/// A stream of Messages with one call.
fn stream(name: &str, input: &Value) -> String {
    named(&message(&[call(0, "call_1", name, &[&input.to_string()])], "tool_use"))
}

/// Asserts that the built-in rule denies a call.
#[track_caller]
fn assert_denied(model: &Model, name: &str, input: &Value) {
    let answer = model.ask(&Anthropic, Streamed, stream(name, input));
    assert_without(&answer, &["call_1"]);
    assert!(answer.text().contains(&format!("Rule: {CONTROL}")), "{name} {input}: {}", answer.text());
}

/// F23: a write whose paths cannot be read is denied, and so is one that names a file in a way that only some tools read.
#[test]
fn a_write_that_cannot_be_read_is_denied() {
    let model = Model::under("");
    let diff = |name: &str| format!("--- a/x\n+++ b/{name}\n@@ -0,0 +1 @@\n+x\n");
    for (name, input) in [
        ("Write", json!({"where": "/w/a.rs", "content": "x"})),
        ("Write", json!({"file_path": {"path": "/w/a.rs"}, "content": "x"})),
        ("Write", json!({"file_path": "/w/a.rs", "target": "/w/.git/hooks/pre-commit", "content": "x"})),
        ("str_replace_based_edit_tool", json!({"path": "/w/a.rs", "file_text": "x"})),
        ("apply_patch", json!({"patch": "no patch at all"})),
        ("apply_patch", json!({"patch": diff(".git/hooks/pre-commit")})),
        ("apply_patch", json!({"patch": "diff --git a/x b/.envrc\nrename from x\nrename to .envrc\n"})),
        ("apply_patch", json!({"patch": "--- x\n+++ \"b/\\056bashrc\"\n@@ -0,0 +1 @@\n+x\n"})),
        ("write_file", json!({"directory": "/w/.git/hooks", "filename": "pre-commit", "content": "x"})),
        ("move_file", json!({"source": "/w/x", "destination": "/w/.claude"})),
        ("move_path", json!({"source_path": "w/x", "destination_path": "w/.git/hooks"})),
        ("copy_path", json!({"source_path": "w/x", "destination_path": "w/.vscode"})),
        ("rename_file", json!({"old_path": "/w/x/.mcp.json", "new_path": "/w"})),
        ("download", json!({"url": "https://a.example/x", "file_path": "/w/.envrc"})),
        ("file_editor", json!({"command": "create", "path": "/w/.bashrc", "file_text": "x"})),
        ("edit_block", json!({"file_path": "/w/.zshrc", "old_string": "a", "new_string": "b"})),
    ] {
        assert_denied(&model, name, &input);
    }

    for (name, input) in [
        ("Write", json!({"file_path": "/w/a.rs", "content": ".git/hooks/pre-commit"})),
        ("apply_patch", json!({"patch": diff("src/main.rs")})),
        ("write_file", json!({"directory": "/w/src", "filename": "a.rs", "content": "x"})),
        ("move_path", json!({"source_path": "w/a.rs", "destination_path": "w/b.rs"})),
        ("copy_path", json!({"source_path": "w/a", "destination_path": "w/.github/workflows"})),
        ("download", json!({"url": "https://a.example/.git/config", "file_path": "/w/x.tgz"})),
        ("file_editor", json!({"command": "view", "path": "/w/.bashrc"})),
        ("edit_block", json!({"file_path": "/w/a.rs", "old_string": "a", "new_string": ".zshrc"})),
        (
            "str_replace_based_edit_tool",
            json!({"command": "insert", "path": "/w/a.rs", "insert_line": 1, "insert_text": ".envrc"}),
        ),
        ("write_file", json!({"path": "/w/a.rs", "find_text": ".envrc", "replace_text": ".bashrc"})),
        ("write_file", json!({"path": "/w/a.rs", "content": "x", "new_code": ".git/config"})),
    ] {
        model.assert_passes(&Anthropic, Streamed, stream(name, &input));
    }
}

/// F23: a file that an agent runs by itself has many spellings, and its plans are ordinary files.
#[test]
fn another_spelling_of_a_control_file_is_denied_and_a_plan_is_not() {
    let model = Model::under("");
    let write = |path: &str| json!({"file_path": path, "content": "x"});
    for path in [
        "/w/.git./hooks/pre-commit",
        "/w/.git /hooks/pre-commit",
        "C:\\w\\GIT~1\\hooks\\pre-commit",
        "/w/.git::$INDEX_ALLOCATION/hooks/pre-commit",
        "/w/.bashrc::$DATA",
        "/w/.gi\u{200c}t/config",
        "file:///w/%2Egit/config",
        "/w/.claude/agents/x\\..\\..\\..\\y.md",
        "/w/.git/hooks/x/.. /../pre-commit",
        "/home/a/.gemini/tmp/p/plans/../../../settings.json",
    ] {
        assert_denied(&model, "Write", &write(path));
    }

    for path in [
        "/home/a/.gemini/tmp/p/plans/plan.md",
        "/w/.opencode/plans/1-plan.md",
        "/home/a/.claude/plans/plan.md",
        "/w/src/main.rs",
        "/w/.github/workflows/ci.yml",
        "/w/a~1.txt",
    ] {
        model.assert_passes(&Anthropic, Streamed, stream("Write", &write(path)));
    }
}

/// F23: a rule for the whole workspace opens nothing that runs by itself in it.
#[test]
fn a_rule_for_a_workspace_opens_no_hooks() {
    let rule = |directory: &str| {
        format!(
            "tools: [{{name: r, kind: Write, action: Allow, when: {{param: paths, operator: Within, values: [{directory}]}}}}]"
        )
    };
    let model = Model::under(&rule("/w"));
    let hook = json!({"file_path": "/w/.git/hooks/pre-commit", "content": "x"});
    assert_denied(&model, "Write", &hook);
    model.assert_passes(
        &Anthropic,
        Streamed,
        stream("Write", &json!({"file_path": "/w/a.rs", "content": "x"})),
    );

    model.gateway.reload_policy(&policy(&rule("/w/.git/hooks")), "success");
    model.assert_passes(&Anthropic, Streamed, stream("Write", &hook));
}
