//! Tools that nobody has heard of: what they do is told by their definitions, else by their inputs.

use bytes::Bytes;
use serde_json::{Value, json};

use super::model::{HOSTS, Model, assert_without, call, message, named, policy, request, text};
use crate::support::Answer;
use crate::support::upstream::{Gate, Step};

const STREAM: [(&str, &str); 1] = [("content-type", "text/event-stream")];
const NO_SHELL: &str = "tools: [{name: no-shell, kind: Shell, action: Deny}]";

/// A definition with these parameters, all of them texts.
fn tool(name: &str, parameters: &[&str]) -> Value {
    let text = |name: &&str| ((*name).to_owned(), json!({"type": "string"}));
    let properties: serde_json::Map<String, Value> = parameters.iter().map(text).collect();
    json!({"name": name, "input_schema": {"type": "object", "properties": properties, "required": parameters}})
}

fn question(tools: &[Value]) -> String {
    json!({"model": "claude-sonnet-5", "max_tokens": 64, "stream": true, "tools": tools,
           "messages": [{"role": "user", "content": "go"}]})
    .to_string()
}

/// A stream with one call.
fn stream(name: &str, input: &Value) -> String {
    named(&message(&[call(0, "toolu_1", name, &[&input.to_string()])], "tool_use"))
}

/// What comes of a call where the request offers these tools.
#[track_caller]
fn ask(model: &Model, tools: &[Value], (name, input): (&str, &Value)) -> Answer {
    model.says(&STREAM, vec![Step::Data(Bytes::from(stream(name, input)))]);
    let url = format!("https://{}/v1/messages", HOSTS[0]);
    let body = question(tools);
    model.gateway.agent().request("POST", &url, &[("content-type", "application/json")], body.as_bytes())
}

#[track_caller]
fn assert_denied(model: &Model, tools: &[Value], (name, input): (&str, &Value), rule: &str) {
    let answer = ask(model, tools, (name, input));
    assert_without(&answer, &["toolu_1"]);
    assert!(answer.text().contains(&format!("Rule: {rule}")), "{name} {input}: {}", answer.text());
}

#[track_caller]
fn assert_passes(model: &Model, tools: &[Value], (name, input): (&str, &Value)) {
    assert_eq!(ask(model, tools, (name, input)).text(), stream(name, input), "{name} {input}");
}

/// F24: a rule about a kind holds for the tools of every agent, for servers' tools in every spelling, and for tools
/// that run what another tool is given.
#[test]
fn a_kind_does_not_end_where_one_agents_tools_end() {
    let model = Model::under(NO_SHELL);
    let wrapped =
        json!({"server_name": "x", "tool_name": "run_command", "arguments": "{\"command\": \"ls\"}"});
    let called = json!({"name": "run_shell_command", "arguments": {"command": "ls"}});
    for (name, input) in [
        ("Monitor", json!({"command": "ls", "description": "x"})),
        ("monitor", json!({"command": "ls"})),
        ("mcp__ide__executeCode", json!({"code": "1"})),
        ("write_bash", json!({"sessionId": "1", "input": "ls\n"})),
        ("write_powershell", json!({"sessionId": "1", "input": "ls\n"})),
        ("create_and_run_task", json!({"task": {"type": "shell", "command": "ls", "args": []}})),
        ("automation_script", json!({"language": "shell", "script": "ls"})),
        ("computercontroller__automation_script", json!({"language": "shell", "script": "ls"})),
        ("exec", json!({"command": "ls"})),
        ("execute", json!({"command": "ls"})),
        ("mcp__desktop-commander__start_process", json!({"command": "ls", "timeout_ms": 1})),
        ("desktop-commander_start_process", json!({"command": "ls", "timeout_ms": 1})),
        ("desktop_commander_interact_with_process", json!({"pid": 1, "input": "ls"})),
        ("shell-run_command", json!({"command": "ls"})),
        ("functions.bash:0", json!({"command": "ls"})),
        ("use_mcp_tool", wrapped),
        ("tool_call", called),
    ] {
        let answer = ask(&model, &[], (name, &input));
        assert_without(&answer, &["toolu_1"]);
        assert!(answer.text().contains("Rule: agents/test/no-shell"), "{name}: {}", answer.text());
    }
    let harmless =
        json!({"server_name": "x", "tool_name": "get_weather", "arguments": "{\"city\": \"Bern\"}"});
    for (name, input) in [
        ("TodoWrite", json!({"todos": []})),
        ("mcp__db__execute", json!({"sql": "select 1"})),
        ("get_weather", json!({"city": "Bern"})),
        ("use_mcp_tool", harmless),
    ] {
        assert_passes(&model, &[], (name, &input));
    }
}

/// F24: what a tool does that nobody knows is told by the parameters of its definition; such a call is stopped at its
/// start, and the event says that its kind is inferred.
#[test]
fn a_tool_that_nobody_knows_is_what_its_definition_says() {
    let model = Model::under(
        "tools: [{name: no-shell, kind: Shell, action: Deny}, {name: no-write, kind: Write, action: Deny}, {name: no-fetch, kind: Fetch, action: Deny}]",
    );
    for (name, parameters, rule) in [
        ("frobnicate", vec!["cmd", "timeout"], "agents/test/no-shell"),
        ("mcp__box__run", vec!["script"], "agents/test/no-shell"),
        ("store", vec!["file_path", "contents"], "agents/test/no-write"),
        ("unlink", vec!["filename"], "agents/test/no-write"),
        ("get_page", vec!["url"], "agents/test/no-fetch"),
    ] {
        // Whatever the input has.
        assert_denied(&model, &[tool(name, &parameters)], (name, &json!({"x": 1})), rule);
    }
    let event = model.event("toolu_1");
    assert_eq!(
        (&event["toolCall"]["kindsBy"], &event["toolCall"]["inputBytes"]),
        (&json!("Inferred"), &json!(0))
    );
    let known = json!({"command": "ls"});
    assert_denied(&model, &[], ("Bash", &known), "agents/test/no-shell");
    model
        .gateway
        .wait_for_event("a call of a known tool", |event| event["toolCall"]["kindsBy"] == "Catalogue");

    let view =
        json!({"type": "object", "properties": {"command": {"type": "string", "enum": ["view", "list"]}}});
    let enumerated = json!({"name": "board", "input_schema": view});
    for (definition, input) in [
        (enumerated, json!({"command": "view"})),
        (tool("lookup", &["code"]), json!({"code": "x"})),
        (tool("show", &["file_path"]), json!({"file_path": "/w/a"})),
        (
            tool("put_file", &["owner", "repo", "path", "content"]),
            json!({"path": ".git/hooks/a", "content": ""}),
        ),
        (tool("link_issue", &["url"]), json!({"url": "https://a.example"})),
        (tool("get_weather", &["city"]), json!({"command": "ls"})),
        (
            json!({"name": "browser_snapshot", "input_schema": {"type": "object", "properties": {"filename": {"type": "string"}}}}),
            json!({}),
        ),
    ] {
        let name = definition["name"].as_str().unwrap().to_owned();
        assert_passes(&model, &[definition], (&name, &input));
    }
}

/// F24: a tool without a definition in the request is held until its input tells what it does; the text before it flows.
#[test]
fn a_tool_without_a_definition_is_what_its_input_says() {
    let model = Model::under(
        r"tools: [{name: no-force, kind: Shell, action: Deny, when: {param: command, operator: Matches, values: ['rm\s+-rf']}}]",
    );
    for (argv, denied) in [(json!(["rm", "-rf", "/"]), true), (json!(["ls", "-l"]), false)] {
        let input = json!({"argv": argv}).to_string();
        let (first, last) = input.split_at(7);
        let blocks = [text(0, "so"), call(1, "toolu_1", "frobnicate", &[first, last])];
        let stream = named(&message(&blocks, "tool_use"));
        let at = stream.find(&last.replace('"', "\\\"")).unwrap();
        let gate = Gate::new();
        let [before, after] = [&stream[..at], &stream[at..]].map(|part| Step::Data(part.to_owned().into()));
        model.says(&STREAM, vec![before, Step::Wait(gate.clone()), after]);
        let mut connection = model.gateway.agent().tls(HOSTS[0]);
        connection.send(request(HOSTS[0], "/v1/messages", &question(&[tool("other", &["x"])])));
        assert_eq!(connection.read_head().status, 200);
        let read = String::from_utf8_lossy(&connection.read_until(b"so\"")).into_owned();
        assert!(!read.contains("toolu_1"), "{read}");
        gate.open();
        let rest = String::from_utf8_lossy(&connection.read_until(b"message_stop\"}")).into_owned();
        assert_eq!(rest.contains("Rule: agents/test/no-force"), denied, "{rest}");
        assert_eq!(rest.contains("toolu_1"), !denied, "{rest}");
    }
}

/// F24: an Allow rule that names the tool takes it out of what its parameters say, where its tier is no lower; what is
/// inferred, and what the ending of a server's tool says, serves no Allow rule.
#[test]
fn what_is_inferred_denies_until_a_rule_names_the_tool_and_allows_nothing() {
    let model = Model::under(NO_SHELL);
    let runner = [tool("frobnicate", &["command"])];
    let call = ("frobnicate", &json!({"command": "ls"}));
    let allowing = |name: &str| {
        policy(&format!(
            "tools: [{{name: no-shell, kind: Shell, action: Deny}}, {{name: ours, tools: ['{name}'], action: Allow}}]"
        ))
    };
    for (name, passes) in [("frobnicate", true), ("Frobnicate", false), ("frob*", false), ("*", false)] {
        model.gateway.reload_policy(&allowing(name), "success");
        if passes {
            assert_passes(&model, &runner, call);
        } else {
            assert_denied(&model, &runner, call, "agents/test/no-shell");
        }
    }
    let cluster = "apiVersion: postern.dev/v1alpha1\nkind: ClusterEgressPolicy\nmetadata: {name: floor}\nspec:\n  tools: [{name: no-shell, kind: Shell, action: Deny}]\n";
    let both =
        format!("{}\n---\n{cluster}", policy("tools: [{name: ours, tools: [frobnicate], action: Allow}]"));
    model.gateway.reload_policy(&both, "success");
    assert_denied(&model, &runner, call, "-/floor/no-shell");
    let known = allowing("Bash");
    model.gateway.reload_policy(&known, "success");
    assert_denied(&model, &[], ("Bash", &json!({"command": "ls"})), "agents/test/no-shell");

    let closed = "toolDefault: Deny\ntools: [{name: reads, kind: Read, action: Allow}]";
    model.gateway.reload_policy(&policy(closed), "success");
    let input = json!({"file_path": "/w/a"});
    let rule = "agents/test/toolDefault";
    assert_denied(&model, &[tool("show", &["file_path"])], ("show", &input), rule);
    assert_denied(&model, &[], ("mcp__files__read_file", &input), rule);
    assert_denied(&model, &[], ("functions.Read", &input), rule);
    assert_passes(&model, &[], ("Read", &input));
}

/// F23: a file that runs by itself is written by no tool that looks like a writer of files; a remote repository's file,
/// and a tool that a rule names, are left alone.
#[test]
fn no_unknown_tool_writes_a_file_that_runs_by_itself() {
    let model = Model::under("");
    let path = "/workspace/.git/hooks/pre-commit";
    for (definition, input) in [
        (tool("store", &["file_path", "content"]), json!({"file_path": path, "content": "x"})),
        (tool("rename_it", &["file_path"]), json!({"file_path": path})),
        (tool("store", &["path", "text"]), json!({"path": path, "text": "x"})),
        (tool("store", &["path", "text"]), json!({"path": "./.git/hooks/pre-commit", "text": "x"})),
        (
            json!({"name": "store", "input_schema": {"type": "object"}}),
            json!({"absolutePath": path, "data": "x"}),
        ),
    ] {
        let name = definition["name"].as_str().unwrap().to_owned();
        assert_denied(&model, &[definition], (&name, &input), "postern/builtin/agent-control-files");
    }
    let remote = tool("create_or_update_file", &["owner", "repo", "path", "content", "branch"]);
    let input = json!({"owner": "o", "repo": "r", "path": ".github/hooks/a", "content": "x"});
    assert_passes(&model, &[remote], ("create_or_update_file", &input));
    let input = json!({"file_path": "/workspace/notes.md", "content": "x"});
    assert_passes(&model, &[tool("store", &["file_path", "content"])], ("store", &input));
    model.gateway.reload_policy(&policy("tools: [{name: r, tools: [store], action: Allow}]"), "success");
    let input = json!({"file_path": path, "content": "x"});
    assert_passes(&model, &[tool("store", &["file_path", "content"])], ("store", &input));
}

const CONTROL: &str = "postern/builtin/agent-control-files";

/// F23: the rule holds where the only writer is a server's tool that is known by the ending of its name.
#[test]
fn a_servers_writer_alone_is_held_by_the_rule() {
    let model = Model::under("");
    let hooks = "/w/.git/hooks/pre-commit";
    let patch = format!("*** Begin Patch\n*** Add File: {hooks}\n+x\n*** End Patch");
    let heredoc = format!("apply_patch <<'EOF'\n{patch}\nEOF\n");
    for (name, input) in [
        ("mcp__filesystem__move_file", json!({"source": "/w/a", "destination": hooks})),
        ("fs_rename_file", json!({"old_path": "/w/a", "new_path": hooks})),
        ("mcp__x__apply_patch", json!({"patch": patch})),
        ("mcp__x__exec_command", json!({"cmd": heredoc})),
        ("mcp__fs__write_file", json!({"destination": hooks, "content": "x"})),
        ("create_text_file", json!({"relative_path": ".git/hooks/pre-commit", "content": "x"})),
        ("mcp__ide__create_new_file", json!({"pathInProject": ".git/hooks/pre-commit", "text": "x"})),
    ] {
        let parameters: Vec<&str> = input.as_object().unwrap().keys().map(String::as_str).collect();
        assert_denied(&model, &[tool(name, &parameters)], (name, &input), CONTROL);
    }
    let moved = ("mcp__filesystem__move_file", &json!({"source": "/w/a", "destination": "/w/b"}));
    assert_passes(&model, &[tool(moved.0, &["source", "destination"])], moved);
}

/// F23: files that a server knows by their ids are elsewhere, however their tools are called.
#[test]
fn a_remote_file_by_its_id_is_no_write_that_cannot_be_read() {
    let model = Model::under("tools: [{name: no-write, kind: Write, action: Deny}]");
    for (name, input) in [
        ("mcp__gdrive__delete_file", json!({"fileId": "1"})),
        ("mcp__gdrive__copy_file", json!({"fileId": "1", "newTitle": "x"})),
        ("mcp__gdrive__rename_file", json!({"file_id": "1", "new_name": "x"})),
        ("mcp__gdrive__create_file", json!({"title": "x", "sourceUrl": "https://a.example"})),
        ("mcp__crm__create_directory", json!({"name": "x", "profileId": "1"})),
    ] {
        let parameters: Vec<&str> = input.as_object().unwrap().keys().map(String::as_str).collect();
        assert_passes(&model, &[tool(name, &parameters)], (name, &input));
    }
    let local = ("mcp__fs__delete_file", &json!({"logfile": "/w/a"}));
    assert_denied(&model, &[tool(local.0, &["logfile"])], local, "agents/test/no-write");
}

/// F23: where a tool that nobody knows moves or copies to counts as what it moves.
#[test]
fn an_unknown_tool_moves_nothing_to_where_it_runs_by_itself() {
    let model = Model::under("");
    let cases = [
        ("mcp__fs__rename", json!({"file": "/w/claude", "newname": "/w/.claude"})),
        ("mcp__fs__move", json!({"file_path": "/w/settings.json", "to": "/w/.claude/"})),
        ("mcp__fs__mv", json!({"source": "/w/settings.json", "target": "/w/.claude/"})),
        ("relocate_copy", json!({"path": "/w/claude", "new_name": ".claude"})),
    ];
    for (name, input) in &cases {
        let parameters: Vec<&str> = input.as_object().unwrap().keys().map(String::as_str).collect();
        assert_denied(&model, &[tool(name, &parameters)], (name, input), CONTROL);
        // Its input says the same, where another tool writes.
        let other = tool("Write", &["file_path", "content"]);
        assert_denied(&model, &[other], (name, input), CONTROL);
    }
    for (name, input) in [
        ("mcp__fs__move", json!({"file_path": "/w/a", "to": "/w/b/"})),
        ("move_card", json!({"source": "Todo", "target": "Done"})),
    ] {
        let parameters: Vec<&str> = input.as_object().unwrap().keys().map(String::as_str).collect();
        assert_passes(&model, &[tool(name, &parameters)], (name, &input));
    }

    let within = "{name: w, kind: Write, action: Deny, when: {param: paths, operator: NotWithin, values: [/workspace]}}";
    model.gateway.reload_policy(&policy(&format!("tools: [{within}]")), "success");
    let copied = ("mcp__fs__copy", &json!({"file": "/workspace/a", "to": "/etc/x"}));
    assert_denied(&model, &[tool(copied.0, &["file", "to"])], copied, "agents/test/w");
    let inside = ("mcp__fs__copy", &json!({"file": "/workspace/a", "to": "/workspace/b"}));
    assert_passes(&model, &[tool(inside.0, &["file", "to"])], inside);
}

/// F23: an absolute path is one of this machine whatever stands beside it; one in a remote repository is not.
#[test]
fn a_word_for_a_remote_place_hides_no_absolute_path() {
    let model = Model::under("");
    for (name, key) in [
        ("mcp__x__save_doc", "file_path"),
        ("mcp__x__save_doc", "path"),
        ("mcp__fs__write_file", "path"),
        ("mcp__fs__write_file", "file_path"),
    ] {
        let tools = [tool(name, &["project", key, "content"])];
        let input = |path: &str| json!({"project": "x", key: path, "content": "x"});
        assert_denied(&model, &tools, (name, &input("/w/.git/config")), CONTROL);
        assert_denied(&model, &tools, (name, &input("../w/.git/config")), CONTROL);
        for path in ["/w/notes.md", ".github/hooks/a", "notes.md"] {
            assert_passes(&model, &tools, (name, &input(path)));
        }
    }
}

/// F24: what a definition leaves open inside itself is what the input has there.
#[test]
fn an_object_of_which_a_definition_says_nothing_is_what_its_input_says() {
    let model = Model::under(NO_SHELL);
    let offering = |name: &str, properties: Value| json!({"name": name, "input_schema": {"type": "object", "properties": properties, "additionalProperties": false}});
    let open = json!({"type": "object", "additionalProperties": true});
    let caller = offering("invoke", json!({"name": {"type": "string"}, "arguments": open}));
    let run = offering("mcp__x__run", json!({"spec": {"type": "object"}}));
    let many = offering("submit", json!({"jobs": {"type": "array", "items": {"type": "object"}}}));
    for (definition, denied, passing) in [
        (
            caller,
            json!({"name": "run_command", "arguments": {"command": "ls"}}),
            json!({"name": "get_weather", "arguments": {"city": "Bern"}}),
        ),
        (run, json!({"spec": {"command": "ls"}}), json!({"spec": {"suite": "unit"}, "command": "x"})),
        (many, json!({"jobs": [{"x": 1}, {"argv": ["ls"]}]}), json!({"jobs": [{"x": 1}]})),
    ] {
        let name = definition["name"].as_str().unwrap().to_owned();
        assert_denied(&model, std::slice::from_ref(&definition), (&name, &denied), "agents/test/no-shell");
        assert_passes(&model, &[definition], (&name, &passing));
    }
    let python = ("mcp__x__python", &json!({"code": "1"}));
    assert_denied(&model, &[tool(python.0, &["code"])], python, "agents/test/no-shell");
}

/// F24: a browser's tab is opened at a URL, or at none.
#[test]
fn a_tab_that_opens_at_a_url_fetches_it() {
    let model = Model::under("tools: [{name: no-fetch, kind: Fetch, action: Deny}]");
    let tabs = json!({"name": "mcp__playwright__browser_tabs", "input_schema": {"type": "object", "required": ["action"],
        "properties": {"action": {"type": "string", "enum": ["list", "new"]}, "url": {"type": "string"}}}});
    let name = "mcp__playwright__browser_tabs";
    let new = json!({"action": "new", "url": "https://a.example"});
    assert_denied(&model, std::slice::from_ref(&tabs), (name, &new), "agents/test/no-fetch");
    assert_passes(&model, &[tabs], (name, &json!({"action": "list"})));
}
