//! The schema of events, made from their types: what programs that read them may rely on.

use std::borrow::Cow;

use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde_json::{Value, json};

use super::{API_VERSION, Chain, Event, Id, Timestamp, TraceParent};

/// Where the schema is found.
const PLACE: &str = "https://postern.dev/schemas/event.v1.json";

/// The JSON Schema (draft 2020-12) of one line of events.
pub fn json_schema() -> Value {
    let generator = SchemaSettings::draft2020_12().for_serialize().into_generator();
    let mut schema = generator.into_root_schema_for::<Event>().to_value();
    as_written(&mut schema);
    schema["$id"] = json!(PLACE);
    schema["properties"]["apiVersion"]["const"] = json!(API_VERSION);
    schema
}

/// A field that does not apply is left out, never null. Defaults are how lines are read back, and not written.
fn as_written(schema: &mut Value) {
    match schema {
        Value::Object(entries) => {
            entries.shift_remove("default");
            if let Some(Value::Array(kinds)) = entries.get_mut("type") {
                kinds.retain(|kind| kind != "null");
                if let [kind] = kinds.as_slice() {
                    let kind = kind.clone();
                    entries.insert("type".to_owned(), kind);
                }
            }
            if let Some(Value::Array(choices)) = entries.get_mut("anyOf") {
                choices.retain(|choice| choice["type"] != "null");
                if let [Value::Object(only)] = choices.as_slice() {
                    let only = only.clone();
                    entries.shift_remove("anyOf");
                    entries.extend(only);
                }
            }
            entries.values_mut().for_each(as_written);
        }
        Value::Array(all) => all.iter_mut().for_each(as_written),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

impl JsonSchema for Id {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Id".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "string", "format": "uuid"})
    }
}

impl JsonSchema for Chain {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Chain".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "string", "pattern": "^[0-9a-f]{64}$"})
    }
}

impl JsonSchema for Timestamp {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Timestamp".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "string", "format": "date-time"})
    }
}

impl JsonSchema for TraceParent {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "TraceParent".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "string", "pattern": "^[0-9a-f]{32}$"})
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_field_says_what_it_is() {
        let schema = json_schema();
        let is_described = |about: &Value| about.get("description").is_some() || about.get("oneOf").is_some();
        let described = |about: &Value| {
            let name = [about, &about["items"]].into_iter().find_map(|one| one["$ref"].as_str());
            let name = name.and_then(|name| name.strip_prefix("#/$defs/"));
            is_described(about) || name.is_some_and(|name| is_described(&schema["$defs"][name]))
        };
        let groups = schema["$defs"].as_object().unwrap().iter();
        let mut silent = Vec::new();
        for (group, of_group) in
            groups.map(|(name, group)| (name.as_str(), group)).chain([("Event", &schema)])
        {
            let fields = of_group["properties"].as_object().into_iter().flatten();
            silent.extend(
                fields.filter(|(_, about)| !described(about)).map(|(field, _)| format!("{group}.{field}")),
            );
        }
        assert_eq!(silent, Vec::<String>::new());
    }
}
