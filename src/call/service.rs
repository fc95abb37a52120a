//! What an agent asks of an LLM provider, as plain data: `provider` reads it, `policy` decides about it, events and
//! metrics say it.

use serde::{Deserialize, Serialize};

/// What a request to the host of an LLM provider is, as far as host, method and path tell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Service {
    pub vendor: Vendor,
    pub api: Api,
    /// None where the endpoint belongs to no dialect: a list of models, or what is no inference endpoint.
    pub dialect: Option<Dialect>,
}

impl Service {
    /// Whether it is one of the provider's inference endpoints, which are open by default (design section 6.1).
    pub fn is_inference(&self) -> bool {
        self.api != Api::Other
    }

    /// Whether routes are about requests for it: the body names a model, and another may answer in its words.
    pub fn may_be_routed(&self) -> bool {
        // There the model is in the path.
        let is_vertex = self.vendor == Vendor::VertexAi;
        match self.api {
            _ if is_vertex => false,
            Api::Messages | Api::ChatCompletions | Api::Responses | Api::CountTokens => true,
            Api::GenerateContent
            | Api::Converse
            | Api::InvokeModel
            | Api::Embeddings
            | Api::Models
            | Api::Startup
            | Api::Other => false,
        }
    }
}

macro_rules! words {
    ($($(#[$doc:meta])* $name:ident { $($(#[$about:meta])* $value:ident = $word:literal,)+ })+) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum $name { $($(#[$about])* $value,)+ }

        impl $name {
            /// Every value, in order.
            pub const ALL: &'static [Self] = &[$(Self::$value,)+];

            /// The word in events, metrics and policies.
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$value => $word,)+ }
            }
        }
    )+};
}

words! {
    /// The wire format of an API, and the words of a rule's `provider`.
    #[derive(Serialize, Deserialize)]
    #[cfg_attr(feature = "operator", derive(schemars::JsonSchema))]
    Dialect {
        /// Anthropic Messages.
        Anthropic = "Anthropic",
        /// OpenAI Chat Completions.
        OpenAIChat = "OpenAIChat",
        /// OpenAI Responses.
        OpenAIResponses = "OpenAIResponses",
        /// Gemini's `generateContent` and `streamGenerateContent`.
        Gemini = "Gemini",
        /// Bedrock's Converse and InvokeModel.
        Bedrock = "Bedrock",
    }

    /// Who serves a host. The words are those of OpenTelemetry's `gen_ai.provider.name` where it has one.
    Vendor {
        Anthropic = "anthropic",
        OpenAi = "openai",
        AzureOpenAi = "azure.ai.openai",
        /// The Gemini API, Firebase AI, and the login of Gemini's command line.
        Gemini = "gcp.gemini",
        VertexAi = "gcp.vertex_ai",
        Bedrock = "aws.bedrock",
        Copilot = "github_copilot",
        OpenRouter = "openrouter",
        Groq = "groq",
        DeepSeek = "deepseek",
        Mistral = "mistral_ai",
        XAi = "x_ai",
        Perplexity = "perplexity",
        Ollama = "ollama",
        Cohere = "cohere",
        Cursor = "cursor",
        AmazonQ = "amazon_q",
        /// A host of which only its dialect is known, from a rule's `provider` or from the tables.
        Custom = "custom",
    }

    /// Which API a request asks for.
    Api {
        Messages = "messages",
        ChatCompletions = "chat_completions",
        Responses = "responses",
        GenerateContent = "generate_content",
        Converse = "converse",
        InvokeModel = "invoke_model",
        /// How many tokens a request would have.
        CountTokens = "count_tokens",
        Embeddings = "embeddings",
        /// What there is to choose from.
        Models = "models",
        /// What an agent asks before its first turn and does not start without, or starts badly.
        Startup = "startup",
        /// No inference endpoint: closed unless a rule's `endpoints` open it.
        Other = "other",
    }
}
