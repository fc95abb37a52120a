//! What servers of Chat Completions do otherwise than the API says, one file for each deviation: `transforms` of a policy.
//!
//! A list of transforms is a set. They act in stages, whatever the order in which they are written. On requests:
//! [`reasoning`], [`forcereasoning`], [`tooluse`], vendors, [`schema`]; on answers: vendors, tags ([`extrathinktag`],
//! [`forcereasoning`]), [`reasoning`], tools ([`enhancetool`], [`tooluse`]).

mod deepseek;
pub(super) mod enhancetool;
pub(super) mod extrathinktag;
pub(super) mod forcereasoning;
mod gemini;
pub(super) mod groq;
mod mistral;
pub(super) mod openrouter;
pub(super) mod reasoning;
pub(super) mod schema;
pub(super) mod tag;
#[cfg(test)]
mod tests;
pub(super) mod tooluse;

pub use tooluse::EXIT_TOOL;

use std::str::FromStr;

use super::ask::ChatTerms;
use super::ask::draft::Draft;
use crate::call::Vendor;

/// A transform, by the word that policies write.
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
    /// Every transform.
    pub const ALL: &'static [Self] = &[
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

    /// Whether it is one of those of which a model may have one.
    pub fn is_schema(self) -> bool {
        match self {
            Self::SchemaGeneric | Self::SchemaOllama | Self::SchemaOpenAi | Self::SchemaGemini => true,
            Self::Reasoning
            | Self::ExtraThinkTag
            | Self::ForceReasoning
            | Self::EnhanceTool
            | Self::ToolUse
            | Self::DeepSeek
            | Self::OpenRouter
            | Self::Groq
            | Self::Mistral
            | Self::Gemini => false,
        }
    }

    fn bit(self) -> u16 {
        1 << self as u16
    }
}

/// The word is none of [`Transform::ALL`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("no transform has this name")]
pub struct UnknownTransform;

impl FromStr for Transform {
    type Err = UnknownTransform;

    fn from_str(word: &str) -> Result<Self, UnknownTransform> {
        Self::ALL.iter().copied().find(|transform| transform.as_str() == word).ok_or(UnknownTransform)
    }
}

/// The transforms of one model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Transforms(u16);

impl Transforms {
    /// Whether this transform is among them.
    pub fn has(self, transform: Transform) -> bool {
        self.0 & transform.bit() != 0
    }

    /// The same without this transform.
    #[must_use]
    pub fn without(self, transform: Transform) -> Self {
        Self(self.0 & !transform.bit())
    }

    /// The transforms, in the order of [`Transform::ALL`].
    pub fn iter(self) -> impl Iterator<Item = Transform> {
        Transform::ALL.iter().copied().filter(move |transform| self.has(*transform))
    }

    /// The transforms of a model at a host of this vendor, where a policy names none.
    pub fn of_vendor(vendor: Vendor) -> Self {
        let generic = [Transform::Reasoning, Transform::SchemaGeneric];
        let own = match vendor {
            Vendor::OpenAi | Vendor::AzureOpenAi => return [Transform::SchemaOpenAi].into_iter().collect(),
            Vendor::Gemini | Vendor::VertexAi => {
                return [Transform::Gemini, Transform::SchemaGemini].into_iter().collect();
            }
            Vendor::OpenRouter => Some(Transform::OpenRouter),
            Vendor::Groq => Some(Transform::Groq),
            Vendor::Mistral => Some(Transform::Mistral),
            Vendor::Anthropic
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
        generic.into_iter().chain(own).collect()
    }
}

impl FromIterator<Transform> for Transforms {
    fn from_iter<I: IntoIterator<Item = Transform>>(transforms: I) -> Self {
        Self(transforms.into_iter().fold(0, |bits, transform| bits | transform.bit()))
    }
}

// The request.

/// Applies the transforms of a request in their stages, which are the order of [`Transform::ALL`]. Those of schemas act while the request is written.
pub(super) fn transform_request(draft: &mut Draft<'_>, terms: &ChatTerms<'_>) {
    for transform in terms.transforms.iter() {
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
