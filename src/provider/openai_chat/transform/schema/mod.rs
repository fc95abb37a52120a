//! `schema:*`: servers that take less than JSON Schema. Keywords are taken out at every schema in a schema, and nowhere
//! else: a property may be named like a keyword. All other bytes stay.

mod walk;

pub(in crate::provider::openai_chat) use walk::write_schema;

use super::{Transform, Transforms};

/// What is taken out of schemas.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(in crate::provider::openai_chat) struct SchemaRules {
    /// `additionalProperties`, and `$schema` and `strict`.
    drops_extensions: bool,
    drops_schema: bool,
    drops_strict: bool,
    /// What Google's `Schema` has no field for, or reads otherwise: <https://ai.google.dev/api/caching#Schema>
    is_google: bool,
}

impl SchemaRules {
    pub(in crate::provider::openai_chat) fn of(transforms: Transforms) -> Self {
        let is_google = transforms.has(Transform::SchemaGemini);
        let is_generic =
            is_google || transforms.has(Transform::SchemaGeneric) || transforms.has(Transform::SchemaOllama);
        Self {
            drops_extensions: is_generic,
            drops_schema: is_generic || transforms.has(Transform::Groq),
            drops_strict: is_generic || transforms.has(Transform::SchemaOpenAi),
            is_google,
        }
    }

    /// Whether every schema stays as it is.
    fn is_idle(self) -> bool {
        self == Self::default()
    }

    /// Whether this keyword of a schema goes.
    fn drops(self, keyword: &str) -> bool {
        match keyword {
            "additionalProperties" => self.drops_extensions,
            "$schema" => self.drops_schema,
            "strict" => self.drops_strict,
            "exclusiveMaximum" | "exclusiveMinimum" => self.is_google,
            _ => false,
        }
    }
}
