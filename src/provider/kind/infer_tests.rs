//! What is inferred of tools that nobody knows.

use serde_json::{Value, json};

use super::infer;
use crate::call::Kind;
use crate::wire::json::{Document, Limits};

/// The kinds of a definition with these properties, in words; `?` where the input decides.
fn of(name: &str, properties: &Value) -> String {
    let required: Vec<&String> = properties.as_object().unwrap().keys().collect();
    schema(name, &json!({"type": "object", "properties": properties, "required": required}))
}

fn schema(name: &str, schema: &Value) -> String {
    let text = json!({"name": name, "input_schema": schema}).to_string();
    let document = Document::parse(text.as_bytes(), Limits::default()).unwrap();
    let (kinds, certain) = infer::kinds(&infer::of_definition(name, document.root()));
    said(kinds, certain)
}

fn said(kinds: &[Kind], certain: bool) -> String {
    let kinds: Vec<String> = kinds.iter().map(|kind| format!("{kind:?}")).collect();
    kinds.join(" ") + if certain || kinds.is_empty() { "" } else { "?" }
}

/// What is inferred of an input, with what each kind is about.
fn seen(name: &str, input: &Value) -> Vec<String> {
    let facts = infer::read(&infer::of_input(name, input), input);
    let line = |facts: &crate::call::Facts<'_>| {
        let all = [&facts.commands, &facts.paths, &facts.urls].map(|texts| texts.join(" | ")).concat();
        format!("{:?}: {all}", facts.kind)
    };
    facts.iter().map(line).collect()
}

#[test]
fn a_definition_says_what_a_tool_does() {
    let text = json!({"type": "string"});
    let one = |key: &str| json!({key: text});
    let two = |one: &str, other: &str| json!({one: text, other: text});
    for key in ["command", "cmd", "commands", "shell", "bash", "powershell", "argv", "Command"] {
        assert_eq!(of("mine", &one(key)), "Shell", "{key}");
    }
    for (name, key, kinds) in [
        ("run_it", "code", "Shell"),
        ("pythonExec", "script", "Shell"),
        ("mcp__x__evaluate", "program", "Shell"),
        ("runcode", "code", "Shell"),
        ("mcp__run__lint", "code", ""),
        ("lookup", "code", ""),
        ("mine", "file_path", "Read"),
        ("mine", "filePath", "Read"),
        ("mine", "notebook_path", "Read"),
        ("create_it", "file_path", "Write"),
        ("deleteFile", "filename", "Write"),
        ("mine", "path", "Read?"),
        ("remove_it", "paths", "Write?"),
        ("fetch_it", "url", "Fetch"),
        ("download", "uri", "Fetch"),
        ("mine", "url", ""),
        ("browser_click", "url", ""),
        ("browse", "href", "Fetch"),
    ] {
        assert_eq!(of(name, &one(key)), kinds, "{name} {key}");
    }
    for (other, kinds) in
        [("content", "Write"), ("newString", "Write"), ("patch", "Write"), ("limit", "Read")]
    {
        assert_eq!(of("mine", &two("file_path", other)), kinds, "{other}");
    }
    for other in ["owner", "repo", "project", "bucket"] {
        let beside = |path: &str| of("mine", &json!({path: text, "content": text, other: text}));
        assert_eq!([beside("path"), beside("file_path")], ["Write?", "Write?"], "absolute ones, {other}");
    }
    assert_eq!(of("download_it", &json!({"url": text, "file_path": text})), "Write Fetch");
    assert_eq!(of("mine", &json!({"command": text, "file_path": text})), "Shell Read");
}

#[test]
fn an_enumeration_and_what_is_no_text_infer_nothing() {
    for parameter in [
        json!({"enum": ["view", "create"]}),
        json!({"type": "string", "enum": ["view"]}),
        json!({"const": "view"}),
        json!({"type": "boolean"}),
        json!({"type": ["integer", "null"]}),
        json!({"anyOf": [{"enum": ["a"]}, {"type": "null"}]}),
        json!({"type": "array", "items": {"type": "string", "enum": ["a"]}}),
    ] {
        assert_eq!(of("mine", &json!({"command": parameter})), "", "{parameter}");
    }
    for parameter in [
        json!({"type": "STRING"}),
        json!({"type": ["string", "null"]}),
        json!({"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]}),
        json!({"type": "array", "items": {"type": "string"}}),
        json!({"anyOf": [{"enum": ["a"]}, {"type": "string"}]}),
    ] {
        assert_eq!(of("mine", &json!({"command": parameter})), "Shell", "{parameter}");
    }
    let referred = |kind: Value| {
        schema("mine", &json!({"properties": {"command": {"$ref": "#/$defs/C"}}, "$defs": {"C": kind}}))
    };
    assert_eq!(referred(json!({"enum": ["a"]})), "");
    assert_eq!(referred(json!({"type": "string"})), "Shell");
    let endless = referred(json!({"$ref": "#/$defs/C"}));
    assert_eq!(endless, "Shell Read Write Fetch?", "it refers to itself");
}

#[test]
fn a_parameter_that_may_be_left_out_is_of_calls_that_have_it() {
    let text = json!({"type": "string"});
    let optional = |name: &str, key: &str| {
        schema(name, &json!({"properties": {key: text, "x": text}, "required": ["x"]}))
    };
    assert_eq!(optional("browser_snapshot", "filename"), "Write?");
    assert_eq!(optional("mcp__playwright__browser_network_requests", "filename"), "Write?");
    assert_eq!(optional("mine", "file_path"), "Read?");
    assert_eq!(optional("get_it", "url"), "Fetch?");
    assert_eq!(optional("mine", "command"), "Shell");
    let nullable = json!({"file_path": {"type": ["string", "null"]}});
    assert_eq!(of("mine", &nullable), "Read?");
}

#[test]
fn parameters_inside_others_count() {
    let inside = json!({"properties": {"command": {"type": "string"}}});
    assert_eq!(of("mine", &json!({"task": inside})), "Shell");
    assert_eq!(of("mine", &json!({"tasks": {"type": "array", "items": inside}})), "Shell");
    assert_eq!(
        schema("mine", &json!({"anyOf": [{"properties": {"x": {"type": "string"}}}, inside]})),
        "Shell"
    );
    let files = json!({"files": {"type": "array", "items": {"properties": {"path": {"type": "string"}, "content": {"type": "string"}}}}});
    assert_eq!(of("mine", &files), "Write?");
    let pushed = json!({"repo": {"type": "string"}, "files": files["files"]});
    assert_eq!(of("push", &pushed), "Write?");
}

#[test]
fn a_definition_that_says_nothing_leaves_it_to_the_input() {
    for open in
        [json!({}), json!({"type": "object"}), json!({"properties": {}, "additionalProperties": true})]
    {
        assert_eq!(schema("mine", &open), "Shell Read Write Fetch?", "{open}");
    }
    for closed in [json!({"properties": {}}), json!({"properties": {}, "additionalProperties": false})] {
        assert_eq!(schema("mine", &closed), "", "{closed}");
    }
}

#[test]
fn an_input_says_what_a_call_does() {
    for (name, input, expected) in [
        ("mine", json!({"command": "ls"}), vec!["Shell: ls"]),
        ("mine", json!({"ARGV": ["rm", "-rf", "/"]}), vec!["Shell: rm | -rf | / | rm -rf /"]),
        ("mine", json!({"argv": ["bash", "-c", "ls"]}), vec!["Shell: ls | bash | -c | ls | bash -c ls"]),
        ("mine", json!({"job": {"cmd": "ls"}}), vec!["Shell: ls"]),
        ("mine", json!({"jobs": [{"cmd": "ls"}, {"cmd": "rm"}]}), vec!["Shell: ls | rm"]),
        ("mine", json!({"command": true, "shell": null}), vec![]),
        ("run", json!({"code": "x"}), vec!["Shell: x"]),
        ("mine", json!({"code": "x"}), vec![]),
        ("mine", json!({"file_path": "a", "content": ""}), vec!["Write: a"]),
        ("mine", json!({"filePath": "a"}), vec!["Read: a"]),
        ("rename", json!({"path": "/a"}), vec!["Write: /a"]),
        ("mine", json!({"path": "src/main.rs"}), vec![]),
        ("mine", json!({"path": "./src"}), vec!["Read: ./src"]),
        ("mine", json!({"path": "~/x"}), vec!["Read: ~/x"]),
        ("mine", json!({"path": "C:\\x"}), vec!["Read: C:\\x"]),
        ("mine", json!({"paths": ["a", "/b"]}), vec!["Read: /b"]),
        ("mine", json!({"path": "/a", "repo": "x"}), vec!["Read: /a"]),
        ("mine", json!({"path": "../a", "repo": "x"}), vec!["Read: ../a"]),
        ("mine", json!({"path": "/", "repo": "x"}), vec![]),
        ("mine", json!({"path": ".github/a", "repo": "x"}), vec![]),
        ("mine", json!({"path": "a", "repo": "x"}), vec![]),
        ("move", json!({"file_path": "a", "to": "b"}), vec!["Write: a | b"]),
        ("copyFile", json!({"source": "a", "target": "/b"}), vec!["Write: a | /b"]),
        ("rename", json!({"old_name": "a", "new_name": "b"}), vec![]),
        ("mine", json!({"file_path": "a", "to": "b"}), vec!["Read: a"]),
        (
            "browser_tabs",
            json!({"action": "new", "url": "https://a.example"}),
            vec!["Fetch: https://a.example"],
        ),
        ("browser_tabs", json!({"action": "list"}), vec![]),
        ("python", json!({"code": "x"}), vec!["Shell: x"]),
        ("mine", json!({"file_path": "/a", "repo": "x"}), vec!["Read: /a"]),
        ("get", json!({"url": "https://a.example"}), vec!["Fetch: https://a.example"]),
        ("mine", json!({"url": "https://a.example"}), vec![]),
        ("mine", json!(7), vec![]),
    ] {
        assert_eq!(seen(name, &input), expected, "{name} {input}");
    }
}

#[test]
fn every_dialect_has_its_schema_somewhere() {
    let schema = json!({"type": "object", "properties": {"cmd": {"type": "string"}}});
    for definition in [
        json!({"name": "mine", "input_schema": schema}),
        json!({"type": "function", "function": {"name": "mine", "parameters": schema}}),
        json!({"type": "function", "name": "mine", "parameters": schema}),
        json!({"name": "mine", "parametersJsonSchema": schema}),
        json!({"name": "mine", "parameters": {"type": "OBJECT", "properties": {"cmd": {"type": "STRING"}}}}),
        json!({"toolSpec": {"name": "mine", "inputSchema": {"json": schema}}}),
        json!({"name": "mine", "inputSchema": schema}),
    ] {
        let text = definition.to_string();
        let document = Document::parse(text.as_bytes(), Limits::default()).unwrap();
        let (kinds, certain) = infer::kinds(&infer::of_definition("mine", document.root()));
        assert_eq!(said(kinds, certain), "Shell", "{definition}");
    }
}

#[test]
fn a_definition_that_would_not_end_leaves_it_to_the_input() {
    let alternatives: Vec<Value> = (0..50).map(|_| json!({"$ref": "#/$defs/A"})).collect();
    let endless = json!({"anyOf": alternatives, "properties": {"x": {"$ref": "#/$defs/A"}}});
    let bomb = json!({"properties": {"command": {"$ref": "#/$defs/A"}}, "$defs": {"A": endless}});
    assert_eq!(schema("mine", &bomb), "Shell Read Write Fetch?");
}

#[test]
fn a_parameter_that_says_nothing_of_what_is_in_it_leaves_that_to_the_input() {
    let every = "Shell Read Write Fetch?";
    let text = json!({"type": "string"});
    for open in [
        json!({}),
        json!({"type": "object"}),
        json!({"type": "object", "additionalProperties": true}),
        json!({"type": "object", "additionalProperties": {"type": "string"}}),
        json!({"type": ["object", "null"]}),
        json!({"anyOf": [{"type": "object"}, {"type": "null"}]}),
        json!({"type": "array"}),
        json!({"type": "array", "items": {"type": "object"}}),
    ] {
        assert_eq!(of("mine", &json!({"name": text, "arguments": open})), every, "{open}");
        let inside = json!({"properties": {"arguments": open}});
        assert_eq!(of("mine", &json!({"call": inside})), every, "{open}");
    }
    for closed in [
        json!({"type": "object", "properties": {}}),
        json!({"type": "object", "additionalProperties": false}),
        json!({"properties": {"x": text}}),
        json!({"type": "array", "items": text}),
        json!({"items": text}),
        json!({"enum": ["a"]}),
        text.clone(),
    ] {
        assert_eq!(of("mine", &json!({"name": text, "arguments": closed})), "", "{closed}");
    }
}

#[test]
fn a_parameter_names_a_file_by_its_words() {
    for key in [
        "path",
        "filePath",
        "file_name",
        "outputFile",
        "SOURCE",
        "working-directory",
        "outdir",
        "sources",
        "notebook",
    ] {
        assert!(infer::is_of_files(key), "{key}");
    }
    for key in
        ["fileId", "file_ids", "profileId", "profile", "sourceUrl", "source_type", "resource", "title", ""]
    {
        assert!(!infer::is_of_files(key), "{key}");
    }
}
