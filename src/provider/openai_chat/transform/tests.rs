//! What each transform does to a request: a file of `golden/` for each, and that their order does not matter.

use proptest::prelude::*;
use serde_json::json;

use super::schema::{SchemaRules, write_schema};
use super::{Transform, Transforms};
use crate::call::Vendor;
use crate::provider::openai_chat::ask::testing::{compare, translated};
use crate::wire::json::{Document, Limits};

#[test]
fn every_transform_does_what_its_files_say() {
    compare("../transform/golden");
}

#[test]
fn every_transform_has_a_word_of_its_own() {
    for transform in Transform::ALL.iter().copied() {
        assert_eq!(transform.as_str().parse(), Ok(transform));
    }
    assert!("schema".parse::<Transform>().is_err());
}

#[test]
fn a_host_has_its_own_transforms() {
    for (vendor, words) in [
        (Vendor::OpenAi, "schema:openai"),
        (Vendor::AzureOpenAi, "schema:openai"),
        (Vendor::Gemini, "gemini schema:gemini"),
        (Vendor::OpenRouter, "openrouter reasoning schema:generic"),
        (Vendor::Groq, "groq reasoning schema:generic"),
        (Vendor::Mistral, "mistral reasoning schema:generic"),
        (Vendor::DeepSeek, "reasoning schema:generic"),
        (Vendor::Custom, "reasoning schema:generic"),
    ] {
        let words: Transforms = words.split(' ').map(|word| word.parse::<Transform>().unwrap()).collect();
        assert_eq!(Transforms::of_vendor(vendor), words, "{vendor:?}");
    }
}

/// What a schema becomes under a transform.
fn written(transform: Transform, schema: &str) -> String {
    let document = Document::parse(schema.as_bytes(), Limits::default()).unwrap();
    let mut out = String::new();
    write_schema(document.root(), SchemaRules::of(Transforms::from_iter([transform])), &mut out);
    out
}

#[test]
fn schemas_lose_what_their_servers_do_not_take_and_no_other_byte() {
    use Transform::{Groq, SchemaGemini, SchemaGeneric, SchemaOllama, SchemaOpenAi};
    for (transform, schema, expected) in [
        (SchemaGeneric, r#"{"$schema":"x","properties":{"strict":{}}}"#, r#"{"properties":{"strict":{}}}"#),
        (SchemaOllama, r#"{"$schema":"x","properties":{"strict":{}}}"#, r#"{"properties":{"strict":{}}}"#),
        (SchemaOpenAi, r#"{"type":"object","strict":true}"#, r#"{"type":"object"}"#),
        (
            SchemaOpenAi,
            r#"{"$schema":"x","additionalProperties":false}"#,
            r#"{"$schema":"x","additionalProperties":false}"#,
        ),
        (
            SchemaGemini,
            r#"{"type":["string","null"],"format":"uri"}"#,
            r#"{"type":"string","nullable":true}"#,
        ),
        (
            SchemaGemini,
            r#"{"items":{"type":["null","integer"],"format":"int32","exclusiveMinimum":0}}"#,
            r#"{"items":{"type":"integer","nullable":true,"format":"int32"}}"#,
        ),
        (
            SchemaGemini,
            r#"{"nullable":true,"type":["string","null"]}"#,
            r#"{"nullable":true,"type":"string"}"#,
        ),
        (SchemaGemini, r#"{"type":["string","integer","null"]}"#, r#"{"type":["string","integer","null"]}"#),
        (SchemaGemini, r#"{"properties":{"format":{"format":"x"}}}"#, r#"{"properties":{"format":{}}}"#),
        (Groq, r#"{"$schema":"x","strict":true,"items":{"$schema":1}}"#, r#"{"strict":true,"items":{}}"#),
        // White space, first, last and neighbouring members.
        (SchemaGeneric, r#"{ "a" : 1 , "strict" : 2 }"#, r#"{ "a" : 1 }"#),
        (SchemaGeneric, r#"{ "strict" : 2 , "a" : 1 }"#, r#"{ "a" : 1 }"#),
        (SchemaGeneric, r#"{ "strict" : 2 , "$schema":1 }"#, r#"{  }"#),
        (SchemaGeneric, r#"{"a":1,"strict":2,"$schema":3,"b":4}"#, r#"{"a":1,"b":4}"#),
        (SchemaGeneric, r#"{"a":{"strict":2},"strict":2,"$schema":3}"#, r#"{"a":{"strict":2}}"#),
        (SchemaGeneric, r#"{"items":{"a":1,"strict":2},"strict":2,"$schema":3}"#, r#"{"items":{"a":1}}"#),
        (SchemaGeneric, r#"{"\u0024schema":1,"a":2}"#, r#"{"a":2}"#),
        (SchemaGeneric, "true", "true"),
    ] {
        assert_eq!(written(transform, schema), expected, "{transform:?} {schema}");
    }
}

#[test]
fn only_schemas_in_a_schema_are_walked() {
    let strict = r#"{"strict":1}"#;
    for keyword in ["items", "contains", "not", "if", "then", "else"] {
        let schema = format!(r#"{{"{keyword}":{strict}}}"#);
        assert_eq!(written(Transform::SchemaGeneric, &schema), format!(r#"{{"{keyword}":{{}}}}"#));
    }
    for keyword in ["items", "prefixItems", "anyOf", "oneOf", "allOf"] {
        let schema = format!(r#"{{"{keyword}":[{strict},{strict}]}}"#);
        assert_eq!(written(Transform::SchemaGeneric, &schema), format!(r#"{{"{keyword}":[{{}},{{}}]}}"#));
    }
    for keyword in ["properties", "patternProperties", "$defs", "definitions", "dependentSchemas"] {
        let schema = format!(r#"{{"{keyword}":{{"items":{strict}}}}}"#);
        assert_eq!(
            written(Transform::SchemaGeneric, &schema),
            format!(r#"{{"{keyword}":{{"items":{{}}}}}}"#)
        );
    }
    for keyword in ["default", "const", "enum", "examples", "x-extension"] {
        let schema = format!(r#"{{"{keyword}":[{strict}]}}"#);
        assert_eq!(written(Transform::SchemaGeneric, &schema), schema);
    }
}

/// A conversation that every transform has something to do with.
fn conversation() -> String {
    let ours = format!("postern.1.coder.{}", "0".repeat(32));
    json!({
        "max_tokens": 32000, "stream": true,
        "system": [{"type": "text", "text": "s", "cache_control": {"type": "ephemeral"}}],
        "messages": [
            {"role": "user", "content": "go"},
            {"role": "assistant", "content": [
                {"type": "thinking", "thinking": "hm", "signature": ours},
                {"type": "tool_use", "id": "toolu_01A", "name": "A", "input": {}},
            ]},
            {"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": "toolu_01A", "content": "r"},
                {"type": "text", "text": "on"},
            ]},
        ],
        "tools": [{"name": "A", "input_schema": {
            "$schema": "x", "type": ["object", "null"], "strict": true, "format": "uri",
        }}],
    })
    .to_string()
}

proptest! {
    #[test]
    fn the_order_of_a_list_does_not_matter(
        words in Just(Transform::ALL.iter().map(|transform| transform.as_str()).collect::<Vec<_>>()).prop_shuffle(),
        kept in prop::collection::vec(any::<bool>(), Transform::ALL.len()),
    ) {
        let mut listed: Vec<&str> =
            words.iter().zip(kept).filter(|(_, kept)| *kept).map(|(word, _)| *word).collect();
        let body = |words: &[&str]| {
            let terms = json!({"transforms": words, "model": "claude", "vendor": "openai"});
            translated(&conversation(), &terms).unwrap().body
        };
        let shuffled = body(&listed);
        listed.sort_unstable();
        prop_assert_eq!(shuffled, body(&listed));
    }
}

#[test]
fn a_list_is_a_set() {
    let all: Transforms = Transform::ALL.iter().copied().collect();
    let reversed: Transforms = Transform::ALL.iter().rev().copied().collect();
    assert_eq!(all, reversed);
    assert_eq!(all.iter().collect::<Vec<_>>(), Transform::ALL);
    let without = all.without(Transform::ToolUse);
    assert!(all.has(Transform::ToolUse) && !without.has(Transform::ToolUse));
    assert_eq!(without.iter().count(), Transform::ALL.len() - 1);
    assert!(Transform::ALL.iter().all(|transform| !Transforms::default().has(*transform)));
}
