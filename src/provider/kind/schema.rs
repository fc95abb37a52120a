//! Reads the parameters of a tool out of its definition: JSON Schema, in the places and dialects of providers.

use std::cell::Cell;
use std::collections::HashSet;

use super::infer::{MOST_DEPTH, ParamType, ToolParam, form, is_of_files, is_remote, matters};
use crate::wire::json::{Kind, Value};

/// The keys of a definition that hold the schema.
const PLACES: &[&[&str]] = &[
    // Anthropic Messages
    &["input_schema"],
    // OpenAI Chat Completions; Responses, and the functions of the time before tools
    &["function", "parameters"],
    &["parameters"],
    // Gemini
    &["parametersJsonSchema"],
    &["parameters_json_schema"],
    // Bedrock Converse
    &["toolSpec", "inputSchema", "json"],
    // MCP, as agents write it into `policy explain`
    &["inputSchema"],
];

/// The keys that list alternatives of a schema.
const ALTERNATIVES: [&str; 3] = ["anyOf", "oneOf", "allOf"];

/// How many schemas may stand in one another by alternatives and references.
const MOST_STEPS: usize = 8;

/// How many schemas of one definition are looked at: references let a few stand for very many.
const MOST_SCHEMAS: usize = 4096;

/// The schema of a tool's input.
pub(super) struct Schema<'d> {
    root: Value<'d>,
    /// How many schemas were looked at.
    seen: Cell<usize>,
}

/// The place of the walk.
#[derive(Clone, Copy)]
struct SchemaPlace<'p> {
    place: &'p [String],
    remote: bool,
    depth: usize,
    steps: usize,
}

impl<'d> Schema<'d> {
    /// The schema in a tool's definition; none where there is none that has one reading.
    pub(super) fn of(definition: Value<'d>) -> Option<Self> {
        let schema = |place: &&[&str]| definition.at_path(place).ok().flatten();
        let root = PLACES.iter().find_map(schema).filter(|schema| schema.kind() == Kind::Object)?;
        Some(Self { root, seen: Cell::new(0) })
    }

    /// All parameters, those inside others too; none where the schema does not say what they are, or says too much.
    pub(super) fn parameters(&self) -> Option<Vec<ToolParam>> {
        let mut found = Vec::new();
        let at = SchemaPlace { place: &[], remote: false, depth: 0, steps: 0 };
        let said = self.object(self.root, at, &mut found);
        (said && !self.is_too_large()).then_some(found)
    }

    /// Gathers the properties of an object. Returns whether they are said.
    fn object(&self, schema: Value<'d>, at: SchemaPlace<'_>, found: &mut Vec<ToolParam>) -> bool {
        self.seen.set(self.seen.get() + 1);
        if at.steps > MOST_STEPS || self.is_too_large() {
            return false;
        }
        let schema = self.resolved(schema);
        let mut said = false;
        for alternative in alternatives(schema) {
            said |= self.object(alternative, SchemaPlace { steps: at.steps + 1, ..at }, found);
        }
        let whole = schema;
        let Some(properties) = entry(schema, "properties").and_then(Value::entries) else { return said };
        let keyed: Vec<(String, bool, Value<'d>)> = properties
            .map(|property| {
                let key = property.key.text().unwrap_or_default();
                (form(&key), is_of_files(&key), property.value)
            })
            .collect();
        let open = keyed.is_empty() && entry(schema, "additionalProperties").is_some_and(allows_more);
        let is_elsewhere = |(key, _, _): &(String, bool, Value<'d>)| is_remote(key, true);
        let remote = at.remote || keyed.iter().any(is_elsewhere);
        let required = required(whole);
        for (key, of_files, schema) in keyed {
            let place = [at.place, std::slice::from_ref(&key)].concat();
            let schema = self.resolved(schema);
            if at.depth < MOST_DEPTH {
                let inside = SchemaPlace { place: &place, remote, depth: at.depth + 1, steps: at.steps + 1 };
                self.object(schema, inside, found);
                if let Some(items) = entry(schema, "items") {
                    let place = [place.as_slice(), &["*".to_owned()]].concat();
                    self.object(items, SchemaPlace { place: &place, ..inside }, found);
                }
                if self.is_open(schema, 0) {
                    let (key, place) = (key.clone(), place.clone());
                    let takes = ParamType::Anything;
                    found.push(ToolParam { key, of_files, place, takes, remote, required: false });
                }
            }
            let takes = if matters(&key) { self.takes(schema, 0) } else { ParamType::Nothing };
            // What may be left out, or be null, is of some calls alone.
            let required = at.depth == 0 && required.contains(&key) && !is_nullable(schema);
            found.push(ToolParam { takes, key, of_files, place, remote, required });
        }
        said || !open
    }

    /// Whether objects may stand at a parameter, or in an array there, of which the schema says nothing.
    fn is_open(&self, schema: Value<'d>, steps: usize) -> bool {
        self.seen.set(self.seen.get() + 1);
        let schema = self.resolved(schema);
        if steps > MOST_STEPS || self.is_too_large() || says_values(schema) {
            return false;
        }
        let mut alternatives = alternatives(schema).peekable();
        if alternatives.peek().is_some() {
            return alternatives.any(|one| self.is_open(one, steps + 1));
        }
        let types = types(schema);
        // Without a type, what describes the one says that it is not the other.
        let may_be = |kind: &str, other: &str| match types.is_empty() {
            true => entry(schema, other).is_none(),
            false => types.iter().any(|one| one == kind),
        };
        let elements = || entry(schema, "items").is_none_or(|items| self.is_open(items, steps + 1));
        let more = entry(schema, "additionalProperties");
        let properties = entry(schema, "properties").and_then(Value::entries).map(Iterator::count);
        let object = match properties {
            Some(0) => more.is_some_and(allows_more),
            Some(_) => false,
            None => more.is_none_or(allows_more),
        };
        (may_be("object", "items") && object) || (may_be("array", "properties") && elements())
    }

    /// What stands at a parameter.
    fn takes(&self, schema: Value<'d>, steps: usize) -> ParamType {
        self.seen.set(self.seen.get() + 1);
        let schema = self.resolved(schema);
        // An enumeration infers nothing.
        if steps > MOST_STEPS || self.is_too_large() || says_values(schema) {
            return ParamType::Nothing;
        }
        let items = || entry(schema, "items").map_or(ParamType::Text, |items| self.takes(items, steps + 1));
        let types = types(schema);
        if let Some(most) = alternatives(schema).map(|one| self.takes(one, steps + 1)).max() {
            return most;
        }
        let each = types.iter().map(|kind| match kind.as_str() {
            "string" => ParamType::Text,
            "array" => items(),
            "object" => ParamType::Structure,
            _ => ParamType::Nothing,
        });
        match each.max() {
            Some(most) => most,
            None if entry(schema, "properties").is_some() => ParamType::Structure,
            // Nothing is said: it may be a text.
            None => items(),
        }
    }

    fn is_too_large(&self) -> bool {
        self.seen.get() > MOST_SCHEMAS
    }

    /// Resolves a reference inside the schema.
    fn resolved(&self, schema: Value<'d>) -> Value<'d> {
        let mut schema = schema;
        for _ in 0..MOST_STEPS {
            let Some(reference) = entry(schema, "$ref").and_then(Value::text) else { return schema };
            let Some(path) = reference.strip_prefix("#/") else { return schema };
            let path: Vec<&str> = path.split('/').collect();
            let Some(next) = self.root.at_path(&path).ok().flatten() else { return schema };
            schema = next;
        }
        schema
    }
}

/// An object's entry, if it occurs once.
fn entry<'d>(object: Value<'d>, key: &str) -> Option<Value<'d>> {
    object.get(key).ok().flatten().filter(|value| !value.is_null())
}

/// Whether a schema says which values there may be.
fn says_values(schema: Value<'_>) -> bool {
    entry(schema, "enum").is_some() || entry(schema, "const").is_some()
}

fn alternatives<'d>(schema: Value<'d>) -> impl Iterator<Item = Value<'d>> {
    let lists = ALTERNATIVES.iter().filter_map(move |key| entry(schema, key).and_then(Value::items));
    lists.flatten()
}

/// The types of a schema, in lower case: Gemini writes `STRING`.
fn types(schema: Value<'_>) -> Vec<String> {
    let Some(written) = entry(schema, "type") else { return Vec::new() };
    let text = |value: Value<'_>| value.text().map(|text| text.to_ascii_lowercase());
    match written.items() {
        Some(all) => all.filter_map(text).collect(),
        None => text(written).into_iter().collect(),
    }
}

/// The properties that an object must have.
fn required(schema: Value<'_>) -> HashSet<String> {
    let names = entry(schema, "required").and_then(Value::items);
    names.into_iter().flatten().filter_map(Value::text).map(|name| form(&name)).collect()
}

fn is_nullable(schema: Value<'_>) -> bool {
    let null = |schema: Value<'_>| types(schema).iter().any(|kind| kind == "null");
    null(schema)
        || alternatives(schema).any(null)
        || entry(schema, "nullable").is_some_and(|nullable| nullable.as_bool() == Some(true))
}

fn allows_more(schema: Value<'_>) -> bool {
    schema.as_bool() != Some(false)
}
