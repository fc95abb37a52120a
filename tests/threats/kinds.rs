//! One deed by many tools: what runs commands and writes files, whatever the tool and its parameters are called.

use serde_json::{Value, json};

use super::model::{Model, NO_FORCE, assert_without, call, message, named, policy};
use crate::parity::anthropic::Anthropic;
use crate::parity::dialect::Dialect;
use crate::parity::dialect::Mode::{Streamed, Whole};
use crate::parity::responses::Responses;

const CONTROL: &str = "postern/builtin/agent-control-files";

fn patch(path: &str) -> String {
    format!("*** Begin Patch\n*** Update File: {path}\n@@\n-a\n+b\n*** End Patch")
}

/// An item of Responses that calls a function.
fn function(name: &str, arguments: &Value) -> Value {
    json!({"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": name, "arguments": arguments.to_string(), "status": "completed"})
}

fn custom(name: &str, input: &str) -> Value {
    json!({"type": "custom_tool_call", "id": "ct_1", "call_id": "call_1", "name": name, "input": input, "status": "completed"})
}

/// A whole response with one item.
fn response(item: &Value) -> String {
    json!({"id": "resp_1", "object": "response", "created_at": 1, "status": "completed", "error": null, "model": "gpt-5", "output": [item], "tools": []})
        .to_string()
}

/// A stream of Messages with one call.
fn stream(name: &str, input: &Value) -> String {
    named(&message(&[call(0, "call_1", name, &[&input.to_string()])], "tool_use"))
}

/// The ways in which a file is written, each an answer.
fn writes(path: &str) -> Vec<(&'static dyn Dialect, String)> {
    let heredoc = format!("apply_patch <<'EOF'\n{}\nEOF\n", patch(path));
    let operation = json!({"type": "update_file", "path": path, "diff": "@@\n-a\n+b"});
    let messages = [
        ("Write", json!({"file_path": path, "content": "{}"})),
        ("Edit", json!({"file_path": path, "old_string": "a", "new_string": "b"})),
        ("MultiEdit", json!({"file_path": path, "edits": [{"old_string": "a", "new_string": "b"}]})),
        ("str_replace_based_edit_tool", json!({"command": "create", "path": path, "file_text": "x"})),
        ("write_file", json!({"path": path, "content": "x"})),
        ("mcp__filesystem__write_file", json!({"path": path, "content": "x"})),
        ("mcp__filesystem__move_file", json!({"source": "/tmp/a", "destination": path})),
    ];
    let items = [
        function("apply_patch", &json!({"input": patch(path)})),
        custom("apply_patch", &patch(path)),
        function("shell", &json!({"command": ["bash", "-lc", heredoc]})),
        function("exec_command", &json!({"cmd": heredoc})),
        function("shell", &json!({"command": ["apply_patch", patch(path)]})),
        json!({"type": "apply_patch_call", "id": "ap_1", "call_id": "call_1", "status": "completed", "operation": operation}),
    ];
    let messages = messages.iter().map(|(name, input)| (&Anthropic as &dyn Dialect, stream(name, input)));
    let items = items.iter().map(|item| (&Responses as &dyn Dialect, response(item)));
    messages.chain(items).collect()
}

fn ask(model: &Model, dialect: &dyn Dialect, body: &str) -> crate::support::Answer {
    model.ask(dialect, if body.starts_with('{') { Whole } else { Streamed }, body)
}

/// F23: a file that agents, shells and tools run by themselves is written by no tool, however its path is written.
#[test]
fn no_tool_writes_a_file_that_runs_by_itself() {
    let model = Model::under("");
    for (dialect, body) in writes("/workspace/.claude/settings.json") {
        let answer = ask(&model, dialect, &body);
        assert_without(&answer, &["call_1"]);
        assert!(answer.text().contains(&format!("Rule: {CONTROL}")), "{body}\n{}", answer.text());
    }
    for path in [
        "/workspace/.mcp.json",
        ".git/hooks/pre-commit",
        "./.git/hooks/../hooks/post-merge",
        "/workspace/x/../.claude/./settings.local.json",
        "/workspace/.CLAUDE/Settings.json",
        "/home/agent/.bashrc",
        "~/.zshrc",
        "C:\\w\\.vscode\\tasks.json",
        "/workspace/.codex/config.toml",
        "/home/agent/.ssh/authorized_keys",
    ] {
        let answer = ask(&model, &Anthropic, &stream("Write", &json!({"file_path": path, "content": "x"})));
        assert!(answer.text().contains(&format!("Rule: {CONTROL}")), "{path}: {}", answer.text());
    }

    for (dialect, body) in writes("/workspace/notes.md") {
        let mode = if body.starts_with('{') { Whole } else { Streamed };
        model.assert_passes(dialect, mode, body);
    }
    let read = stream("str_replace_based_edit_tool", &json!({"command": "view", "path": "/w/.mcp.json"}));
    model.assert_passes(&Anthropic, Streamed, read);
}

/// F23: only a rule that names the file opens it; one that allows the tool does not.
#[test]
fn only_a_rule_that_names_the_file_opens_it() {
    let model = Model::under("");
    let write = stream("Write", &json!({"file_path": "/w/.mcp.json", "content": "x"}));
    for rule in [
        "{name: r, tools: [Write], action: Allow}",
        "{name: r, kind: Write, action: Allow}",
        "{name: r, kind: Write, action: Allow, when: {param: paths, operator: Within, values: [/v]}}",
        "{name: r, kind: Write, action: Allow, when: {param: paths, operator: Within, values: [/w]}}",
    ] {
        model.gateway.reload_policy(&policy(&format!("tools: [{rule}]")), "success");
        assert!(ask(&model, &Anthropic, &write).text().contains(CONTROL), "{rule}");
    }
    for rule in [
        "{name: r, kind: Write, action: Allow, when: {param: paths, operator: In, values: [/x, /w/.mcp.json]}}",
        "{name: r, kind: Write, action: Allow, when: {param: paths, operator: Equals, values: [/w/.mcp.json]}}",
    ] {
        model.gateway.reload_policy(&policy(&format!("tools: [{rule}]")), "success");
        model.assert_passes(&Anthropic, Streamed, &write);
    }
    let outside = stream("Write", &json!({"file_path": "/v/.mcp.json", "content": "x"}));
    assert!(ask(&model, &Anthropic, &outside).text().contains(CONTROL));
}

/// The ways in which a command is run, each an answer.
fn runs(arguments: &[&str]) -> Vec<(&'static dyn Dialect, String)> {
    let line = arguments.join(" ");
    let action = json!({"type": "exec", "command": arguments, "env": {}});
    let messages = [
        ("Bash", json!({"command": line})),
        ("bash", json!({"command": line, "restart": false})),
        ("run_shell_command", json!({"command": line})),
        ("execute_command", json!({"command": line})),
        ("mcp__shell__run_command", json!({"command": line})),
        ("run_terminal_cmd", json!({"command": line})),
    ];
    let items = [
        function("exec_command", &json!({"cmd": line})),
        function("shell", &json!({"command": arguments})),
        function("shell", &json!({"command": ["bash", "-lc", line]})),
        function("container.exec", &json!({"cmd": arguments})),
        json!({"type": "local_shell_call", "id": "ls_1", "call_id": "call_1", "status": "completed", "action": action}),
        json!({"type": "shell_call", "id": "sh_1", "call_id": "call_1", "status": "completed", "action": {"commands": ["true", line]}}),
    ];
    let messages = messages.iter().map(|(name, input)| (&Anthropic as &dyn Dialect, stream(name, input)));
    let items = items.iter().map(|item| (&Responses as &dyn Dialect, response(item)));
    messages.chain(items).collect()
}

/// F24: a rule about a kind holds for every tool of it, and for arguments as for a line.
#[test]
fn a_command_is_judged_whatever_runs_it() {
    let model = Model::under(NO_FORCE);
    for (dialect, body) in runs(&["rm", "-rf", "/"]) {
        let answer = ask(&model, dialect, &body);
        assert_without(&answer, &["call_1"]);
        assert!(answer.text().contains("Rule: agents/test/no-force"), "{body}\n{}", answer.text());
    }
    for (dialect, body) in runs(&["ls", "-l", "/"]) {
        let mode = if body.starts_with('{') { Whole } else { Streamed };
        model.assert_passes(dialect, mode, body);
    }
}

/// F24: an input that the catalogue cannot read is of every kind that its tool may be.
#[test]
fn an_unknown_shape_of_input_errs_towards_denial() {
    let model = Model::under(
        "tools: [{name: no-shell, kind: Shell, action: Deny}, {name: no-write, kind: Write, action: Deny}]",
    );
    for (name, input) in [
        ("Bash", json!({"command": {"argv": ["rm"]}})),
        ("Bash", json!({})),
        ("Write", json!({"file_path": {"path": "/x"}})),
        ("shell", json!({"command": 7})),
        ("apply_patch", json!({"input": "no patch at all"})),
    ] {
        let answer = ask(&model, &Anthropic, &stream(name, &input));
        assert_without(&answer, &["call_1"]);
        assert!(answer.text().contains("Rule: agents/test/no-"), "{name} {input}: {}", answer.text());
    }
    model.assert_passes(&Anthropic, Streamed, stream("Read", &json!({"file_path": "/x"})));
}

/// F25: calls of a script are judged; where its calls cannot be told, it is denied if a rule of the policy could apply.
#[test]
fn a_script_is_its_calls_or_cannot_be_judged() {
    let model = Model::under(NO_FORCE);
    let exec = |script: &str| response(&custom("exec", script));
    for (script, rule) in [
        (r#"await tools.exec_command({cmd: "rm -rf /"})"#, "agents/test/no-force"),
        (
            r#"tools.exec_command({cmd: "ls"}); tools.exec_command({cmd: "\x72m -rf /"})"#,
            "agents/test/no-force",
        ),
        (r#"tools["exec_"+"command"]({cmd: "rm -rf /"})"#, "postern/builtin/unparseable"),
        (r#"tools.exec_command({cmd: "rm" + " -rf /"})"#, "agents/test/no-force"),
        (r#"tools.exec_command({cmd: "rm" + flags})"#, "postern/builtin/unparseable"),
        (r"const t = tools; t.exec_command({cmd: `rm -rf /`})", "postern/builtin/unparseable"),
        (r#"for (const f of ["a"]) tools.exec_command({cmd: f})"#, "postern/builtin/unparseable"),
    ] {
        let answer = ask(&model, &Responses, &exec(script));
        assert_without(&answer, &["call_1"]);
        assert!(answer.text().contains(&format!("Rule: {rule}")), "{script}: {}", answer.text());
    }
    model.assert_passes(
        &Responses,
        Whole,
        exec(r#"const r = await tools.exec_command({cmd: "ls"}); text(r)"#),
    );

    let ruleless = Model::under("");
    ruleless.assert_passes(&Responses, Whole, exec(r#"tools["exec_"+"command"]({cmd: "ls"})"#));
    let hooks = format!("await tools.apply_patch({:?})", patch(".git/hooks/pre-commit"));
    assert!(
        ask(&ruleless, &Responses, &exec(&hooks)).text().contains(CONTROL),
        "literal writes are seen all the same"
    );
}

/// F24, F25: calls in a call are judged whether their inputs are objects or texts of objects, and one that cannot be read
/// is denied, under the built-in rule alone, too; so is a script under a key that only some clients read.
#[test]
fn a_call_inside_another_is_judged_however_its_input_is_written() {
    let model = Model::under(NO_FORCE);
    let pairs = |command: &str| {
        let text = json!({"command": command}).to_string();
        [
            (
                "multi_tool_use.parallel",
                json!({"tool_uses": [{"recipient_name": "functions.Bash", "parameters": text}]}),
            ),
            ("batch", json!({"tool_calls": [{"tool": "Bash", "parameters": text}]})),
            ("use_mcp_tool", json!({"server_name": "s", "tool_name": "Bash", "arguments": text})),
        ]
    };
    for (name, input) in pairs("rm -rf /") {
        let answer = ask(&model, &Anthropic, &stream(name, &input));
        assert_without(&answer, &["call_1"]);
        assert!(answer.text().contains("Rule: agents/test/no-force"), "{name} {input}: {}", answer.text());
    }
    for (name, input) in pairs("ls") {
        model.assert_passes(&Anthropic, Streamed, stream(name, &input));
    }
    let empty = json!({"tool_uses": [{"recipient_name": "functions.TodoRead", "parameters": " "}]});
    model.assert_passes(&Anthropic, Streamed, stream("multi_tool_use.parallel", &empty));

    let rm = r#"tools.exec_command({cmd: "rm -rf /"})"#;
    for under in [model, Model::under("")] {
        for (name, input) in [
            ("exec", json!({"Source": rm})),
            ("exec", json!({"source": "1", "SOURCE": rm})),
            ("exec", json!({"source": [rm]})),
            (
                "use_mcp_tool",
                json!({"server_name": "s", "tool_name": "write_file", "arguments": "path: /w/.envrc"}),
            ),
        ] {
            let answer = ask(&under, &Anthropic, &stream(name, &input));
            assert_without(&answer, &["call_1"]);
            assert!(
                answer.text().contains("Rule: postern/builtin/unparseable"),
                "{input}: {}",
                answer.text()
            );
        }
        under.assert_passes(&Anthropic, Streamed, stream("exec", &json!({"source": "text(1)"})));
    }
}

/// F24: the text of a custom tool that runs commands is the command, and the patch in it is read.
#[test]
fn the_text_of_a_custom_tool_that_runs_commands_is_the_command() {
    let model = Model::under(NO_FORCE);
    for name in ["shell", "exec_command", "bash", "write_stdin"] {
        let answer = ask(&model, &Responses, &response(&custom(name, "rm -rf /")));
        assert_without(&answer, &["call_1"]);
        assert!(answer.text().contains("Rule: agents/test/no-force"), "{name}: {}", answer.text());
        model.assert_passes(&Responses, Whole, response(&custom(name, "ls")));
    }
    let heredoc = |path: &str| response(&custom("shell", &format!("apply_patch <<'E'\n{}\nE", patch(path))));
    assert!(ask(&model, &Responses, &heredoc(".git/hooks/pre-commit")).text().contains(CONTROL));
    model.assert_passes(&Responses, Whole, heredoc("src/a.rs"));
}

/// Every spelling in which an agent asks for one server's tool, each an answer.
fn spellings(server: &str, tool: &str) -> Vec<(&'static dyn Dialect, String)> {
    let sign = |text: &str| text.replace(['-', '.'], "_");
    let names = [
        format!("mcp__{server}__{tool}"),
        format!("mcp__{}__{}", sign(server), sign(tool)),
        format!("mcp_{server}_{tool}"),
        format!("{server}__{tool}"),
        format!("{}_{}", sign(server), sign(tool)),
        format!("{server}-{tool}"),
        format!("{server}.{tool}"),
        format!("functions.mcp__{server}__{tool}"),
        format!("default_api:{server}_{tool}"),
        format!("tools.{server}__{tool}:0"),
        format!("mcp__{server}__{tool}<|channel|>commentary"),
    ];
    let named = names.iter().map(|name| (&Anthropic as &dyn Dialect, stream(name, &json!({"x": 1}))));
    let script = format!("text(await tools.mcp__{}__{}({{x: 1}}))", sign(server), sign(tool));
    let plain = format!("await tools.mcp__{}__{}({{x: 1}})", sign(server), sign(tool));
    let wrapped = json!({"server_name": server, "tool_name": tool, "arguments": "{\"x\": 1}"});
    let spaced = |namespace: &str| {
        let mut item = function(tool, &json!({"x": 1}));
        item["namespace"] = namespace.into();
        item
    };
    let items = [
        spaced(server),
        spaced(&format!("mcp__{server}")),
        custom("exec", &plain),
        custom("exec", &script),
        function("use_mcp_tool", &wrapped),
    ];
    named.chain(items.iter().map(|item| (&Responses as &dyn Dialect, response(item)))).collect()
}

/// F5: a rule about a server's tool denies it in every spelling that agents make of its name, and no other tool.
#[test]
fn a_servers_tool_is_denied_in_every_spelling() {
    for rule in ["mcp__git-hub__create.issue", "mcp__git-hub__*", "mcp__*__create.issue"] {
        let model = Model::under(&format!("tools: [{{name: r, tools: ['{rule}'], action: Deny}}]"));
        for (dialect, body) in spellings("git-hub", "create.issue") {
            let answer = ask(&model, dialect, &body);
            assert_without(&answer, &["call_1"]);
            let text = answer.text();
            let denied = text.contains("Rule: agents/test/r") || text.contains("postern/builtin/unparseable");
            assert!(denied, "{rule}: {body}\n{text}");
        }
        model.assert_passes(&Anthropic, Streamed, stream("mcp__git-lab__list_issues", &json!({"x": 1})));
        let other = custom("exec", "await tools.mcp__git_lab__list_issues({x: 1})");
        model.assert_passes(&Responses, Whole, response(&other));
    }
}

/// F5: what is allowed by its name is allowed by exactly that: no spelling, and no tool of a server or namespace.
#[test]
fn a_bare_name_allows_no_tool_of_a_server() {
    let model = Model::under(
        "toolDefault: Deny\ntools: [{name: r, tools: [read_file, mcp__files__read_file], action: Allow}]",
    );
    let spaced = |namespace: &str| {
        let mut item = function("read_file", &json!({"path": "/w/a"}));
        item["namespace"] = namespace.into();
        response(&item)
    };
    for (dialect, body) in [
        (&Responses as &dyn Dialect, spaced("mcp__evil")),
        (&Responses, spaced("evil")),
        (&Anthropic, stream("mcp__evil__read_file", &json!({"path": "/w/a"}))),
        (&Anthropic, stream("evil_read_file", &json!({"path": "/w/a"}))),
        (&Anthropic, stream("mcp_files_read_file", &json!({"path": "/w/a"}))),
        (&Anthropic, stream("functions.read_file", &json!({"path": "/w/a"}))),
    ] {
        assert_without(&ask(&model, dialect, &body), &["call_1"]);
    }
    for body in [spaced("functions"), response(&function("read_file", &json!({"path": "/w/a"})))] {
        model.assert_passes(&Responses, Whole, body);
    }
    model.assert_passes(&Anthropic, Streamed, stream("mcp__files__read_file", &json!({"path": "/w/a"})));
}
