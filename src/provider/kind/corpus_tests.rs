//! What is known and inferred of the tools of widely used MCP servers, one by one, as somebody reviewed it.
//!
//! `servers.txt` has a line for each tool: what it is taken for, its name, and its parameters. `Write` is what the
//! catalogue says, `~Write` what is inferred from the definition, `~Write?` what the input has to confirm, `-` nothing.
//! A parameter is a text, `[]` a list of texts, `:enum` one of a list of words, and `:number`, `:object` and `:objects`
//! no text; `?` behind it: it may be left out. Those inside others have a dotted path. A line that begins with `#` names the package and its version.

use serde_json::{Value, json};

use super::{Offered, shape, tool};
use crate::call::{KindsBy, ToolDefinition};
use crate::provider::answer::testing::recorded;
use crate::wire::json::{Document, Limits};

const SERVERS: &str = include_str!("servers.txt");

/// The schema of a line's parameters.
fn schema<'a>(parameters: impl Iterator<Item = &'a str>) -> Value {
    let mut root = json!({"type": "object", "properties": {}, "required": []});
    for parameter in parameters {
        let (parameter, optional) =
            parameter.strip_suffix('?').map_or((parameter, false), |name| (name, true));
        let (path, written) = match parameter.split_once(':') {
            Some((path, kind)) => (path, kind),
            None => parameter.strip_suffix("[]").map_or((parameter, "text"), |path| (path, "texts")),
        };
        if !optional {
            root["required"].as_array_mut().unwrap().push(path.into());
        }
        let own = match written {
            "text" => json!({"type": "string"}),
            "texts" => json!({"type": "array", "items": {"type": "string"}}),
            "enum" => json!({"type": "string", "enum": ["a", "b"]}),
            // What is in it has lines of its own.
            "object" => json!({"type": "object", "properties": {}}),
            "objects" => json!({"type": "array", "items": {"type": "object", "properties": {}}}),
            _ => json!({"type": "number"}),
        };
        let mut at = &mut root;
        for key in path.split('.') {
            at = if key == "*" {
                &mut at["items"]
            } else {
                if !at.is_object() {
                    *at = json!({"type": "object"});
                }
                &mut at["properties"][key]
            };
        }
        *at = own;
    }
    root
}

/// What a tool of some server is taken for.
fn taken(name: &str, definition: &Value) -> String {
    let name = format!("mcp__server__{name}");
    let text = definition.to_string();
    let document = Document::parse(text.as_bytes(), Limits::default()).unwrap();
    let definition =
        ToolDefinition { name: name.clone(), sha256: String::new(), shape: shape(&name, document.root()) };
    let offered = Offered::new(&[definition]);
    let tool = tool(&name, None, false, &offered);
    let kinds: Vec<String> = tool.kinds.iter().map(|kind| format!("{kind:?}")).collect();
    match (kinds.join("+"), tool.by) {
        (kinds, _) if kinds.is_empty() => "-".to_owned(),
        (kinds, KindsBy::Catalogue | KindsBy::Ending) => kinds,
        (kinds, KindsBy::Inferred) => format!("~{kinds}"),
        (kinds, KindsBy::Possible) => format!("~{kinds}?"),
    }
}

#[test]
fn nothing_that_is_inferred_of_widely_used_servers_is_a_surprise() {
    let mut wrong = Vec::new();
    for line in SERVERS.lines().filter(|line| !line.starts_with('#')) {
        let mut words = line.split_whitespace();
        let (expected, name) = (words.next().unwrap(), words.next().unwrap());
        let taken = taken(name, &json!({"inputSchema": schema(words)}));
        if taken != expected {
            wrong.push(format!("{taken} instead of {line}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The definitions in a recorded request, whatever its dialect.
fn definitions<'a>(json: &'a Value, found: &mut Vec<&'a Value>) {
    match json {
        Value::Object(entries) => {
            for (key, value) in entries {
                if matches!(
                    key.as_str(),
                    "tools" | "functions" | "functionDeclarations" | "function_declarations"
                ) {
                    found.extend(value.as_array().into_iter().flatten());
                }
                definitions(value, found);
            }
        }
        Value::Array(all) => all.iter().for_each(|value| definitions(value, found)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

#[test]
fn nothing_is_inferred_of_the_tools_in_recorded_requests() {
    for path in recorded("").into_iter().filter(|path| path.extension().is_some_and(|found| found == "json"))
    {
        let Ok(json) = serde_json::from_slice::<Value>(&std::fs::read(&path).unwrap()) else { continue };
        let mut found = Vec::new();
        definitions(&json, &mut found);
        for definition in found {
            let name = ["/name", "/function/name", "/toolSpec/name"]
                .iter()
                .find_map(|at| definition.pointer(at)?.as_str());
            let schema =
                ["/input_schema", "/parameters", "/function/parameters", "/toolSpec/inputSchema/json"];
            // A definition without parameters says nothing: the input of a call does.
            let says =
                |at: &&str| definition.pointer(at).is_some_and(|schema| schema["properties"].is_object());
            let Some(name) = name.filter(|_| schema.iter().any(says)) else { continue };
            let taken = taken(name, definition);
            let known = matches!(taken.as_str(), "-" | "Read" | "Shell" | "Write" | "Fetch");
            assert!(known, "{}: {name} is taken for {taken}: {definition}", path.display());
        }
    }
}
