//! From the types that documents are read into to structural schemas, as the API server takes them.

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};

/// How often a type stands inside itself: a structural schema cannot recur. Further in, anything is kept, and the
/// webhook and the controller read it.
pub(super) const MOST_NESTED: usize = 3;

/// What becomes of fields that a schema does not name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unknown {
    /// They are kept, so that the webhook and the controller refuse them. Pruned, a field that is misspelt, or that an
    /// older definition does not know, would loosen a policy without a word.
    Kept,
    Pruned,
}

/// The structural schema of a type (apiextensions.k8s.io/v1, "Specifying a structural schema"). A field's description
/// is its documentation, with that of each word where it takes one of several.
pub(super) fn structural<T: JsonSchema>(unknown: Unknown) -> Value {
    let root = SchemaSettings::draft2020_12().into_generator().into_root_schema_for::<T>().to_value();
    let definitions = root.get("$defs").and_then(Value::as_object).cloned().unwrap_or_default();
    Value::Object(Rewrite { definitions, unknown }.node(&root, &mut Vec::new()))
}

struct Rewrite {
    definitions: Map<String, Value>,
    unknown: Unknown,
}

impl Rewrite {
    /// `within` names the definitions that the node stands in.
    fn node(&self, node: &Value, within: &mut Vec<String>) -> Map<String, Value> {
        let mut schema = match referred(node) {
            Some(name) => self.definition(name, within),
            None => self.own(node, within),
        };
        let words = schema.shift_remove("words");
        let own = text(node, "description").or_else(|| text(&Value::Object(schema.clone()), "description"));
        let parts: Vec<String> = [own, words.as_ref().and_then(Value::as_str).map(str::to_owned)]
            .into_iter()
            .flatten()
            .filter(|part| !part.is_empty())
            .collect();
        schema.shift_remove("description");
        let mut described = Map::new();
        if !parts.is_empty() {
            described.insert("description".into(), parts.join(" ").into());
        }
        described.extend(schema);
        described
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
            // Several types, such as a text, a number or a boolean: no structural schema says that.
            None => object(json!({"x-kubernetes-preserve-unknown-fields": true})),
        }
    }

    fn mapping(&self, node: &Value, within: &mut Vec<String>) -> Map<String, Value> {
        let mut schema = object(json!({"type": "object"}));
        let required =
            node.get("required").filter(|names| names.as_array().is_some_and(|all| !all.is_empty()));
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

/// A mapping of which nothing is said.
fn kept(definition: &Value) -> Map<String, Value> {
    let mut schema = object(json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true}));
    schema.extend(text(definition, "description").map(|about| ("description".to_owned(), about.into())));
    schema
}

/// The definition that a node is, or is unless it is null.
fn referred(node: &Value) -> Option<&str> {
    let alternatives = node.get("anyOf").and_then(Value::as_array);
    let inner = alternatives.and_then(|all| all.iter().find(|one| one.get("$ref").is_some())).unwrap_or(node);
    inner.get("$ref")?.as_str()?.strip_prefix("#/$defs/")
}

/// The words that a node takes, and what each is said to mean.
fn words(node: &Value) -> Option<(Vec<Value>, String)> {
    if let Some(values) = node.get("enum").and_then(Value::as_array) {
        return Some((values.clone(), String::new()));
    }
    let mut values = Vec::new();
    let mut about = Vec::new();
    for one in node.get("oneOf")?.as_array()? {
        if let Some(several) = one.get("enum").and_then(Value::as_array) {
            values.extend(several.iter().cloned());
            continue;
        }
        let word = one.get("const")?.as_str()?;
        values.push(word.into());
        about.extend(text(one, "description").map(|meaning| format!("`{word}`: {meaning}")));
    }
    Some((values, about.join(" ")))
}

/// The one type of a node, null aside.
fn kind(node: &Value) -> Option<&str> {
    let kind = node.get("type")?;
    let several = kind.as_array().map(Vec::as_slice).unwrap_or_default();
    kind.as_str().or_else(|| several.iter().filter_map(Value::as_str).find(|one| *one != "null"))
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
