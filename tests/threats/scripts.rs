//! Scripts of code mode: what they call, and what they hide.

use serde_json::{Value, json};

use super::model::{Model, assert_without};
use crate::parity::dialect::Mode::Whole;
use crate::parity::responses::Responses;
use crate::support::Answer;

const UNPARSEABLE: &str = "postern/builtin/unparseable";
const CONTROL: &str = "postern/builtin/agent-control-files";

/// A rule about one server, as most policies have it.
const NO_GITHUB: &str = "tools: [{name: no-github, tools: ['mcp__github__*'], action: Deny}]";

/// A whole response whose one item is a script.
fn script(source: &str) -> String {
    let item = json!({"type": "custom_tool_call", "id": "ct_1", "call_id": "call_1", "namespace": "functions", "name": "exec", "input": source, "status": "completed"});
    json!({"id": "resp_1", "object": "response", "created_at": 1, "status": "completed", "error": null, "model": "gpt-5", "output": [item], "tools": []})
        .to_string()
}

fn ask(model: &Model, source: &str) -> Answer {
    model.ask(&Responses, Whole, script(source))
}

#[track_caller]
fn assert_denied(model: &Model, source: &str, rule: &str) {
    let answer = ask(model, source);
    assert_without(&answer, &["call_1"]);
    assert!(answer.text().contains(&format!("Rule: {rule}")), "{source}: {}", answer.text());
}

#[track_caller]
fn assert_passes(model: &Model, source: &str) {
    model.assert_passes(&Responses, Whole, script(source));
}

/// What models write for Codex every day.
const ORDINARY: &[&str] = &[
    "const r = await tools.exec_command({cmd: \"rg -n 'TODO' src\", workdir: \"/w\", yield_time_ms: 10_000});\ntext(r.output.slice(0, 4000));",
    "for (const f of [\"a.rs\", \"b.rs\"]) {\n  const r = await tools.exec_command({cmd: `sed -n '1,80p' ${f}`});\n  if (r.exit_code !== 0) { text(`failed: ${f}`); continue; }\n  text(r.output);\n}",
    "const patch = String.raw`*** Begin Patch\n*** Update File: src/a.rs\n@@\n-let x = \"a\\n\";\n+let x = 'b';\n*** End Patch`;\ntext(await tools.apply_patch(patch));",
    "text(await tools.apply_patch(\"*** Begin Patch\\n*** Add File: notes.md\\n+# it's\\n*** End Patch\"))",
    "const results = await Promise.all([\n  tools.exec_command({cmd: \"git status --short\"}),\n  tools.exec_command({cmd: \"git diff --stat\"}),\n]);\nresults.forEach((r, i) => text(`${i}: ${r.output.replace(/\\s+$/, \"\")}`));",
    "try {\n  const r = await tools.exec_command({cmd: \"cargo test\"});\n  text(r.output.split(/\\r?\\n/).filter(l => /FAILED|error/.test(l)).join(\"\\n\"));\n} catch (e) {\n  text(String(e));\n}",
    "// @exec: {\"yield_time_ms\": 30000}\nconst s = await tools.exec_command({cmd: \"npm run dev\", tty: true});\nif (s.session_id) text(await tools.write_stdin({session_id: s.session_id, chars: \"\"}));",
    "await tools.update_plan({plan: [{step: \"Read\", status: \"completed\"}, {step: \"Write\", status: \"in_progress\"}]});",
];

/// F25: scripts pass where no rule is about what they name, whatever else they do.
#[test]
fn an_ordinary_script_passes_under_a_rule_about_another_server() {
    for spec in [NO_GITHUB, ""] {
        let model = Model::under(spec);
        for source in ORDINARY {
            assert_passes(&model, source);
        }
    }
}

/// F25: a call is judged wherever it stands in a script, and one with an input that nobody can tell by its name alone.
#[test]
fn a_call_anywhere_in_a_script_is_judged() {
    let github = Model::under(NO_GITHUB);
    for source in [
        "text(await tools.mcp__github__delete_repo({name: 'x'}))",
        "for (const n of names) await tools.mcp__github__delete_repo({name: n})",
        "const f = tools.mcp__github__delete_repo; names.map(f)",
        "text(`${await tools?.[\"mcp__github__delete_repo\"]({})}`)",
        "const ok = /'/.test('x'); await tools.mcp__github__delete_repo({}) // '",
    ] {
        assert_denied(&github, source, "agents/test/no-github");
    }
    assert_passes(&github, "text('tools.mcp__github__delete_repo({})') // tools.mcp__github__x()");

    let force = Model::under(
        r"tools: [{name: no-force, kind: Shell, action: Deny, when: {param: command, operator: Matches, values: ['rm\s+-rf']}}]",
    );
    for source in [
        "text((await tools.exec_command({cmd: 'rm -rf /'})).output)",
        "const c = 'rm -rf'; const d = `${c} /`; if (x) { await tools.exec_command({cmd: d}) }",
        "await Promise.all([1].map(() => tools.exec_command({cmd: ['rm', '-rf', '/'].join(' ')})))",
    ] {
        assert_denied(&force, source, "agents/test/no-force");
    }
    assert_denied(&force, "for (const d of dirs) await tools.exec_command({cmd: `rm ${d}`})", UNPARSEABLE);
    assert_passes(
        &force,
        "for (const d of dirs) { text((await tools.exec_command({cmd: 'ls'})).output + d) }",
    );
    assert_passes(&force, "for (const d of dirs) await tools.view_image({path: d})");
}

/// F25: a script that could reach a tool without its name is denied where a rule of the policy could deny one.
#[test]
fn a_script_that_could_reach_any_tool_is_denied() {
    let (github, ruleless) = (Model::under(NO_GITHUB), Model::under(""));
    for source in [
        "await tools['mcp__git' + 'hub__delete_repo']({})",
        "await tools[ALL_TOOLS[3].name]({})",
        "const t = tools; await t.mcp__github__delete_repo({})",
        "const {mcp__github__delete_repo: f} = tools; await f({})",
        "((t) => t.mcp__github__delete_repo({}))(tools)",
        "await globalThis.tools.mcp__github__delete_repo({})",
        "await eval('tools.mcp__github__delete_repo({})')",
        "await new Function('return tools.mcp__github__delete_repo({})')()",
        "await (() => {}).constructor('return tools')().mcp__github__delete_repo({})",
        "await (() => {})['constr' + 'uctor']('return tools')().mcp__github__delete_repo({})",
        "await (await import('x')).tools",
        "setTimeout(function () { this.tools.mcp__github__delete_repo({}) }, 0)",
    ] {
        assert_denied(&github, source, UNPARSEABLE);
        assert_passes(&ruleless, source);
    }
    for source in ["t\\u006fols.mcp__github__delete_repo({})", "#!`\ntools.mcp__github__x({}) //`", "'open"] {
        assert_denied(&github, source, UNPARSEABLE);
        assert_denied(&ruleless, source, UNPARSEABLE);
    }
    assert_passes(&github, "const names = ALL_TOOLS.map(t => t.name); text(names.slice(0, 9), names[0])");
}

/// F23, F25: a script writes no file that runs by itself, and no file that nobody can tell.
#[test]
fn a_write_in_a_script_is_read_or_denied() {
    let model = Model::under("");
    let patch = |path: &str| format!("*** Begin Patch\\n*** Add File: {path}\\n+x\\n*** End Patch");
    for source in [
        format!("text(await tools.apply_patch(\"{}\"))", patch(".git/hooks/pre-commit")),
        format!("const p = '{}'; const r = await tools.apply_patch(p); text(r.slice(0, 9))", patch(".envrc")),
        "for (const p of patches) await tools.apply_patch(p)".to_owned(),
        "const f = tools.apply_patch; await f(load('p'))".to_owned(),
        format!("await tools.exec_command({{cmd: \"apply_patch <<'E'\\n{}\\nE\"}})", patch(".bashrc")),
    ] {
        assert_denied(&model, &source, CONTROL);
    }
    assert_passes(&model, &format!("text(await tools.apply_patch(\"{}\"))", patch("src/a.rs")));
    assert_passes(&model, "for (const f of files) await tools.exec_command({cmd: `cat ${f}`})");
}

/// F24, F25: under a rule about a kind, a call whose values only running the script would tell is judged by its tool and
/// the keys of its input: what could be of that kind is denied, and nothing else.
#[test]
fn an_input_that_is_not_known_is_denied_where_its_tool_could_be_of_the_kind() {
    let writes = Model::under(
        "tools: [{name: stay, kind: Write, action: Deny, when: {param: paths, operator: NotWithin, values: [/workspace]}}]",
    );
    let shells = Model::under(
        "tools: [{name: no-sudo, kind: Shell, action: Deny, when: {param: command, operator: Contains, values: [sudo]}}]",
    );
    let no_shell = Model::under("tools: [{name: no-shell, kind: Shell, action: Deny}]");
    assert_denied(&no_shell, "await tools.mcp__x__frob({command: x})", UNPARSEABLE);
    for source in [
        "await tools.update_plan({plan: steps})",
        "await tools.update_plan(plan)",
        "await tools.wait({cell_id: c})",
        "await tools.spawn_agent({message: m})",
        "for (const r of rs) await tools.mcp__github__list_issues({owner: o, repo: r})",
        "await tools.view_image({path: p})",
    ] {
        assert_passes(&writes, source);
        assert_passes(&shells, source);
    }
    for source in [
        "const a = load('a'); text(await tools.exec_command({cmd: `git diff ${a}`}))",
        "await tools.exec_command({cmd: 'ls', workdir: d})",
        "await tools.write_stdin({session_id: s, chars: c})",
        "await tools.mcp__x__frob({command: x})",
    ] {
        assert_passes(&writes, source);
        assert_denied(&shells, source, UNPARSEABLE);
    }
    assert_passes(&shells, "await tools.mcp__x__save({file_path: p, content: c})");
    for source in [
        "await tools.apply_patch(p)",
        "await tools.mcp__x__save({file_path: p, content: c})",
        "await tools.mcp__x__frob({...x})",
        "await tools.mcp__x__frob(x)",
        "names.map(tools.mcp__x__frob)",
    ] {
        assert_denied(&writes, source, UNPARSEABLE);
    }
    for source in [
        "await tools.mcp__x__frob({...x})",
        "await tools.mcp__x__frob({a: b || {command: c}})",
        "await tools.mcp__x__frob({task: {command: c}})",
        "await tools.wait({command: c})",
    ] {
        assert_denied(&shells, source, UNPARSEABLE);
    }
}

/// Calls in every way in which one stands in another, denied and allowed, read and unread.
const EXPLAINED: &[&str] = &[
    "await tools.exec_command({cmd: 'ls'}); await tools.mcp__github__get_me({})",
    "await tools.exec_command({cmd: 'ls'})",
    "await tools.mcp__github__create_issue(build())",
    "await tools.exec_command(build())",
    "await tools[name]({})",
    "text('unfinished",
    "text(1)",
];

const SERVER_AND_SHELL: &str = "tools: [{name: no-github, tools: ['mcp__github__*'], action: Deny}, {name: no-rm, kind: Shell, action: Deny, when: {param: command, operator: Contains, values: [rm]}}]";

/// What `policy explain` decides about an event, given as a file to the gateway's own policy.
fn explained(model: &Model, event: &Value) -> Value {
    model.gateway.write("event.json", &event.to_string());
    let text =
        model.gateway.run(&["policy", "explain", "--policy", "policy.yaml", "-o", "json", "event.json"]);
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {event}"))
}

/// Whatever was decided about a call and those inside of it, explaining its event says the same.
#[test]
fn events_of_scripts_and_wrappers_are_explained_as_they_were_decided() {
    for (inputs, keeps) in [("Full", true), ("Redacted", false), ("Hash", false), ("None", false)] {
        let model = Model::under(&format!("audit: {{toolInputs: {inputs}}}\n{SERVER_AND_SHELL}"));
        EXPLAINED.iter().for_each(|source| drop(ask(&model, source)));
        let inner = [
            ("functions.exec_command", json!({"cmd": "rm x"})),
            ("functions.exec_command", json!({"cmd": "ls"})),
        ];
        for (name, parameters) in inner {
            let uses = json!({"tool_uses": [{"recipient_name": name, "parameters": parameters}]});
            let item = json!({"type": "function_call", "id": "fc_1", "call_id": "call_2", "name": "multi_tool_use.parallel", "arguments": uses.to_string(), "status": "completed"});
            let response = json!({"id": "resp_1", "object": "response", "created_at": 1, "status": "completed", "error": null, "model": "gpt-5", "output": [item], "tools": []});
            model.ask(&Responses, Whole, response.to_string());
        }
        model.gateway.wait_for_event("the last call", |event| {
            event["toolCall"]["name"] == "exec_command"
                && event["toolCall"]["id"] == "call_2"
                && event["decision"]["verdict"] == "Allow"
        });
        let events = model.gateway.events();
        let calls: Vec<&Value> = events.iter().filter(|event| event["kind"] == "ToolCall").collect();
        let denied = calls.iter().filter(|event| event["decision"]["verdict"] == "Deny").count();
        assert!(denied > 5 && calls.len() - denied > 3, "{inputs}: {} calls, {denied} denied", calls.len());
        for event in calls {
            let explained = explained(&model, event);
            let decided = &explained["decision"];
            if !keeps && decided["verdict"] == "NeedsInput" {
                continue;
            }
            let whole = (&decided["verdict"], &decided["rule"], &decided["reason"]);
            let recorded = &event["decision"];
            assert_eq!(
                whole,
                (&recorded["verdict"], &recorded["rule"], &recorded["reason"]),
                "{inputs}: {event}"
            );
        }
    }
}
