//! Turns the types that documents are read into into the structural schemas that the API server requires.

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};

/// How deep a recursive type is unrolled: a structural schema cannot recur. Deeper values are kept without a schema,
/// and the webhook and the controller validate them.
pub(super) const MOST_NESTED: usize = 3;

/// How the API server treats fields that a schema does not name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unknown {
    /// They are kept, and the webhook and the controller refuse them. If they were pruned, a misspelt field, or one
    /// that an older definition does not know, would silently loosen a policy.
    Kept,
    Pruned,
}

/// The structural schema of a type (apiextensions.k8s.io/v1, "Specifying a structural schema"). A field's description
/// is its doc comment, followed by those of an enumeration's words.
pub(super) fn structural<T: JsonSchema>(unknown: Unknown) -> Value {
    let root = SchemaSettings::draft2020_12().into_generator().into_root_schema_for::<T>().to_value();
    let definitions = root.get("$defs").and_then(Value::as_object).cloned().unwrap_or_default();
    Value::Object(SchemaRewrite { definitions, unknown }.node(&root, &mut Vec::new()))
}

struct SchemaRewrite {
    definitions: Map<String, Value>,
    unknown: Unknown,
}

impl SchemaRewrite {
    /// `within` names the definitions that the node stands in.
    fn node(&self, node: &Value, within: &mut Vec<String>) -> Map<String, Value> {
        let mut schema = match referred(node) {
            Some(name) => self.definition(name, within),
            None => self.own(node, within),
        };
        let words = schema.shift_remove("words");
        let described = text(node, "description");
        let described = described.or_else(|| text(&Value::Object(schema.clone()), "description"));
        let parts: Vec<String> = [described, words.as_ref().and_then(Value::as_str).map(str::to_owned)]
            .into_iter()
            .flatten()
            .filter(|part| !part.is_empty())
            .collect();
        schema.shift_remove("description");
        let mut ordered = Map::new();
        if !parts.is_empty() {
            ordered.insert("description".into(), parts.join(" ").into());
        }
        ordered.extend(schema);
        ordered
    }

    fn definition(&self, name: &str, within: &mut Vec<String>) -> Map<String, Value> {
        let Some(definition) = self.definitions.get(name) else { return Map::new() };
        if within.iter().filter(|above| *above == name).count() == MOST_NESTED {
            return kept(definition);
        }
        within.push(name.to_owned());
        let mut schema = self.own(definition, within);
        within.pop();
        if let Some(description) = text(definition, "description") {
            schema.insert("description".into(), description.into());
        }
        schema
    }

    fn own(&self, node: &Value, within: &mut Vec<String>) -> Map<String, Value> {
        if let Some((values, about)) = words(node) {
            return object(json!({"type": "string", "enum": values, "words": about}));
        }
        match kind(node) {
            Some("object") => self.mapping(node, within),
            Some("array") => {
                let items = self.node(node.get("items").unwrap_or(&Value::Null), within);
                object(json!({"type": "array", "items": items}))
            }
            Some(kind) => {
                let mut schema = object(json!({"type": kind}));
                let format = node.get("format").filter(|format| *format != "uint64");
                schema.extend(format.map(|format| ("format".to_owned(), format.clone())));
                schema
            }
            // A structural schema cannot express several types, such as a text, a number or a boolean.
            None => object(json!({"x-kubernetes-preserve-unknown-fields": true})),
        }
    }

    fn mapping(&self, node: &Value, within: &mut Vec<String>) -> Map<String, Value> {
        let mut schema = object(json!({"type": "object"}));
        let required =
            node.get("required").filter(|names| names.as_array().is_some_and(|names| !names.is_empty()));
        schema.extend(required.map(|required| ("required".to_owned(), required.clone())));
        if let Some(properties) = node.get("properties").and_then(Value::as_object) {
            let rewritten: Map<String, Value> = properties
                .iter()
                .map(|(name, property)| (name.clone(), Value::Object(self.node(property, within))))
                .collect();
            schema.insert("properties".into(), rewritten.into());
            if self.unknown == Unknown::Kept {
                schema.insert("x-kubernetes-preserve-unknown-fields".into(), true.into());
            }
        } else if let Some(values) = node.get("additionalProperties").filter(|values| values.is_object()) {
            schema.insert("additionalProperties".into(), self.node(values, within).into());
        }
        schema
    }
}

/// A mapping with any fields.
fn kept(definition: &Value) -> Map<String, Value> {
    let mut schema = object(json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true}));
    schema.extend(text(definition, "description").map(|about| ("description".to_owned(), about.into())));
    schema
}

/// The name of the definition that a node refers to, directly or as `anyOf` of it and null.
fn referred(node: &Value) -> Option<&str> {
    let mut alternatives = node.get("anyOf").and_then(Value::as_array).into_iter().flatten();
    let inner = alternatives.find(|node| node.get("$ref").is_some()).unwrap_or(node);
    inner.get("$ref")?.as_str()?.strip_prefix("#/$defs/")
}

/// The words of an enumeration, and the description of each.
fn words(node: &Value) -> Option<(Vec<Value>, String)> {
    if let Some(values) = node.get("enum").and_then(Value::as_array) {
        return Some((values.clone(), String::new()));
    }
    let mut values = Vec::new();
    let mut about = Vec::new();
    for variant in node.get("oneOf")?.as_array()? {
        // Variants without a description of their own are gathered in one `enum`.
        if let Some(several) = variant.get("enum").and_then(Value::as_array) {
            values.extend(several.iter().cloned());
            continue;
        }
        let word = variant.get("const")?.as_str()?;
        values.push(word.into());
        about.extend(text(variant, "description").map(|meaning| format!("`{word}`: {meaning}")));
    }
    Some((values, about.join(" ")))
}

/// The type of a node; of several, the first that is not null.
fn kind(node: &Value) -> Option<&str> {
    let kind = node.get("type")?;
    let several = kind.as_array().map(Vec::as_slice).unwrap_or_default();
    kind.as_str().or_else(|| several.iter().filter_map(Value::as_str).find(|name| *name != "null"))
}

/// A text on one line.
fn text(node: &Value, key: &str) -> Option<String> {
    Some(node.get(key)?.as_str()?.split_whitespace().collect::<Vec<_>>().join(" "))
}

fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(map) => map,
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => Map::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(JsonSchema)]
    #[expect(dead_code, reason = "only its schema is looked at")]
    struct Holder {
        thing: Thing,
    }

    /// A thing.
    #[derive(JsonSchema)]
    #[expect(dead_code, reason = "only its schema is looked at")]
    struct Thing {
        /// What it does.
        action: Option<Word>,
        /// Things
        /// inside.
        things: Option<Vec<Self>>,
        count: i64,
    }

    #[derive(JsonSchema)]
    #[expect(dead_code, reason = "only its schema is looked at")]
    enum Word {
        /// It goes.
        Go,
        Stay,
    }

    #[test]
    fn words_are_one_enumeration_and_described_with_the_field() {
        let schema = structural::<Holder>(Unknown::Pruned)["properties"]["thing"].take();
        let action = &schema["properties"]["action"];
        assert_eq!(action["type"], "string");
        let mut words: Vec<&str> =
            action["enum"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
        words.sort_unstable();
        assert_eq!(words, ["Go", "Stay"]);
        assert_eq!(action["description"], "What it does. `Go`: It goes.");
        assert_eq!(schema["properties"]["count"], json!({"type": "integer", "format": "int64"}));
    }

    #[test]
    fn what_stands_in_itself_is_unrolled_and_then_kept_as_it_is() {
        let mut node = structural::<Holder>(Unknown::Kept)["properties"]["thing"].take();
        let mut depth = 0;
        while node.get("properties").is_some() {
            assert_eq!(node["x-kubernetes-preserve-unknown-fields"], true);
            assert_eq!(node["properties"]["things"]["description"], "Things inside.");
            node = node["properties"]["things"]["items"].clone();
            depth += 1;
        }
        assert_eq!(depth, MOST_NESTED);
        let kept = json!({"description": "A thing.", "type": "object", "x-kubernetes-preserve-unknown-fields": true});
        assert_eq!(node, kept);
    }
}
