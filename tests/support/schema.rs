//! The schema of events, as far as it says anything: every event of every gateway that a test starts is held to it.

use std::sync::OnceLock;

use serde_json::{Map, Value};

/// A JSON Schema in the words that docs/event.schema.json has.
pub(crate) struct Schema(Value);

/// The published schema of events.
pub(crate) fn of_events() -> &'static Schema {
    static SCHEMA: OnceLock<Schema> = OnceLock::new();
    SCHEMA.get_or_init(|| {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/event.schema.json");
        Schema(serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap())
    })
}

impl Schema {
    /// Whether a value is as the schema says, and has no field beside those that it names.
    pub(crate) fn check(&self, value: &Value) -> Result<(), String> {
        self.node(&self.0, value, "event")
    }

    fn node(&self, schema: &Value, value: &Value, at: &str) -> Result<(), String> {
        let schema = schema.as_object().unwrap_or_else(|| panic!("{at}: no schema: {schema}"));
        for (word, says) in schema {
            let holds = match word.as_str() {
                "$schema" | "$id" | "$defs" | "title" | "description" | "required" => true,
                "$ref" => {
                    let name = says.as_str().unwrap().strip_prefix("#/$defs/").unwrap();
                    self.node(&self.0["$defs"][name], value, at)?;
                    true
                }
                "type" => is_type(says.as_str().unwrap(), value),
                "const" => says == value,
                "enum" => says.as_array().unwrap().contains(value),
                "oneOf" | "anyOf" => {
                    says.as_array().unwrap().iter().any(|choice| self.node(choice, value, at).is_ok())
                }
                "minimum" => value.as_f64().is_none_or(|number| number >= says.as_f64().unwrap()),
                "maximum" => value.as_f64().is_none_or(|number| number <= says.as_f64().unwrap()),
                "format" => is_format(says.as_str().unwrap(), value),
                "pattern" => value.as_str().is_some_and(|text| {
                    let length = match says.as_str().unwrap() {
                        "^[0-9a-f]{32}$" => 32,
                        "^[0-9a-f]{64}$" => 64,
                        other => panic!("{at}: the schema has the pattern {other}, which this does not know"),
                    };
                    let is_hex = |byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
                    text.len() == length && text.bytes().all(is_hex)
                }),
                "items" => {
                    let items = value.as_array().into_iter().flatten();
                    items
                        .enumerate()
                        .try_for_each(|(n, item)| self.node(says, item, &format!("{at}[{n}]")))?;
                    true
                }
                "properties" => {
                    self.properties(says.as_object().unwrap(), value, at)?;
                    true
                }
                other => panic!("{at}: the schema has {other}, which this does not know"),
            };
            if !holds {
                return Err(format!("{at} is not as `{word}: {says}` asks: {value}"));
            }
        }
        let required = schema.get("required").and_then(Value::as_array).into_iter().flatten();
        let missing: Vec<&Value> =
            required.filter(|name| value.get(name.as_str().unwrap()).is_none()).collect();
        if missing.is_empty() { Ok(()) } else { Err(format!("{at} lacks {missing:?}")) }
    }

    fn properties(&self, known: &Map<String, Value>, value: &Value, at: &str) -> Result<(), String> {
        for (name, field) in value.as_object().into_iter().flatten() {
            let schema = known.get(name).ok_or_else(|| {
                format!("{at}.{name} is not in docs/event.schema.json: run `just generate`")
            })?;
            self.node(schema, field, &format!("{at}.{name}"))?;
        }
        Ok(())
    }
}

fn is_type(name: &str, value: &Value) -> bool {
    match name {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_u64() || value.is_i64(),
        other => panic!("the schema has the type {other}, which this does not know"),
    }
}

fn is_format(name: &str, value: &Value) -> bool {
    match (name, value.as_str()) {
        ("uuid", Some(text)) => uuid::Uuid::try_parse(text).is_ok(),
        ("date-time", Some(text)) => text.len() == 24 && text.ends_with('Z') && text.as_bytes()[10] == b'T',
        ("uint64" | "uint16", None) => value.is_u64(),
        _ => false,
    }
}

#[test]
fn what_is_not_as_the_schema_says_is_found() {
    let event = serde_json::json!({
        "apiVersion": "postern.dev/event/v1",
        "id": "01a2008d-747b-7101-8101-010101010101",
        "time": "2026-11-22T00:00:00.123Z",
        "sequence": 1,
        "count": 1,
        "kind": "Request",
        "direction": "Outbound",
        "destination": {"host": "a.example", "port": 443, "action": "Inspect", "intercepted": true},
        "decision": {"verdict": "Allow", "rule": "a/b/c"},
    });
    assert_eq!(of_events().check(&event), Ok(()));
    for (place, wrong) in [
        ("/id", serde_json::json!("x")),
        ("/time", serde_json::json!("now")),
        ("/count", serde_json::json!("1")),
        ("/count", serde_json::json!(-1)),
        ("/kind", serde_json::json!("request")),
        ("/apiVersion", serde_json::json!("v2")),
        ("/destination/port", serde_json::json!(65_536)),
        ("/destination/action", serde_json::json!(null)),
        ("/decision", serde_json::json!({})),
        ("/decision", serde_json::json!({"verdict": "Allow", "more": 1})),
    ] {
        let mut event = event.clone();
        *event.pointer_mut(place).unwrap() = wrong;
        assert!(of_events().check(&event).is_err(), "{place}: {event}");
    }
}
