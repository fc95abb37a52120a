//! Transforms: how one server's Chat Completions differ from another's, one file each. A list of them is a set, which
//! acts in stages, in whatever order it is written.

mod deepseek;
mod forcereasoning;
mod gemini;
mod groq;
mod mistral;
mod openrouter;
mod reasoning;
pub(super) mod schema;
#[cfg(test)]
mod tests;
mod tooluse;

use std::collections::BTreeSet;
use std::str::FromStr;

use super::ask::ChatTerms;
use super::ask::draft::Draft;
use crate::call::Vendor;

/// A transform, in the order of the stages of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Transform {
    Reasoning,
    ExtraThinkTag,
    ForceReasoning,
    EnhanceTool,
    ToolUse,
    DeepSeek,
    OpenRouter,
    Groq,
    Mistral,
    Gemini,
    SchemaGeneric,
    SchemaOllama,
    SchemaOpenAi,
    SchemaGemini,
}

impl Transform {
    /// Every transform, in order.
    pub const ALL: [Self; 14] = [
        Self::Reasoning,
        Self::ExtraThinkTag,
        Self::ForceReasoning,
        Self::EnhanceTool,
        Self::ToolUse,
        Self::DeepSeek,
        Self::OpenRouter,
        Self::Groq,
        Self::Mistral,
        Self::Gemini,
        Self::SchemaGeneric,
        Self::SchemaOllama,
        Self::SchemaOpenAi,
        Self::SchemaGemini,
    ];

    /// The word in policies.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Reasoning => "reasoning",
            Self::ExtraThinkTag => "extrathinktag",
            Self::ForceReasoning => "forcereasoning",
            Self::EnhanceTool => "enhancetool",
            Self::ToolUse => "tooluse",
            Self::DeepSeek => "deepseek",
            Self::OpenRouter => "openrouter",
            Self::Groq => "groq",
            Self::Mistral => "mistral",
            Self::Gemini => "gemini",
            Self::SchemaGeneric => "schema:generic",
            Self::SchemaOllama => "schema:ollama",
            Self::SchemaOpenAi => "schema:openai",
            Self::SchemaGemini => "schema:gemini",
        }
    }
}

/// A word that names no transform.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("there is no such transform")]
pub struct UnknownTransform;

impl FromStr for Transform {
    type Err = UnknownTransform;

    fn from_str(word: &str) -> Result<Self, UnknownTransform> {
        Self::ALL.into_iter().find(|transform| transform.as_str() == word).ok_or(UnknownTransform)
    }
}

/// A set of transforms.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Transforms(BTreeSet<Transform>);

impl Transforms {
    pub fn has(&self, transform: Transform) -> bool {
        self.0.contains(&transform)
    }

    /// Those of a host for which policy names none.
    pub fn of_vendor(vendor: Vendor) -> Self {
        let own = match vendor {
            Vendor::OpenAi | Vendor::AzureOpenAi => return Self::from_iter([Transform::SchemaOpenAi]),
            Vendor::Gemini => return Self::from_iter([Transform::Gemini, Transform::SchemaGemini]),
            Vendor::OpenRouter => Some(Transform::OpenRouter),
            Vendor::Groq => Some(Transform::Groq),
            Vendor::Mistral => Some(Transform::Mistral),
            Vendor::Anthropic
            | Vendor::VertexAi
            | Vendor::Bedrock
            | Vendor::Copilot
            | Vendor::DeepSeek
            | Vendor::XAi
            | Vendor::Perplexity
            | Vendor::Ollama
            | Vendor::Cohere
            | Vendor::Cursor
            | Vendor::AmazonQ
            | Vendor::Custom => None,
        };
        own.into_iter().chain([Transform::Reasoning, Transform::SchemaGeneric]).collect()
    }
}

impl FromIterator<Transform> for Transforms {
    fn from_iter<I: IntoIterator<Item = Transform>>(transforms: I) -> Self {
        Self(transforms.into_iter().collect())
    }
}

// The request.

/// Applies the transforms of a request in their stages. Those of schemas act while the request is written.
pub(super) fn transform_request(draft: &mut Draft<'_>, terms: &ChatTerms<'_>) {
    for transform in &terms.transforms.0 {
        match transform {
            Transform::Reasoning => reasoning::request(draft, terms.label),
            Transform::ForceReasoning => forcereasoning::request(draft),
            Transform::ToolUse => tooluse::request(draft),
            Transform::DeepSeek => deepseek::request(draft, terms.max_tokens),
            Transform::OpenRouter => openrouter::request(draft, terms.model),
            Transform::Groq => groq::request(draft),
            Transform::Mistral => mistral::request(draft),
            Transform::Gemini => gemini::request(draft),
            Transform::ExtraThinkTag
            | Transform::EnhanceTool
            | Transform::SchemaGeneric
            | Transform::SchemaOllama
            | Transform::SchemaOpenAi
            | Transform::SchemaGemini => {}
        }
    }
}
