//! The types by which policies know tools that run at a provider, as data. Nothing is decided by this list: a type that is
//! not on it is taken for the provider's too. It tells the author of a policy of a type that nobody sends.

use super::compatible;

/// By the API that has them; the newest type definitions of the official SDKs, as of November 2026.
const TYPES: &[&[&str]] = &[
    // Anthropic Messages: `tools[].type`, and what is asked for beside it
    // (https://platform.claude.com/docs/en/agents-and-tools/tool-use/tool-reference).
    &[
        "web_search_20250305",
        "web_search_20260209",
        "web_search_20260318",
        "web_fetch_20250910",
        "web_fetch_20260209",
        "web_fetch_20260309",
        "web_fetch_20260318",
        "code_execution_20250522",
        "code_execution_20250825",
        "code_execution_20260120",
        "code_execution_20260521",
        "tool_search_tool_regex",
        "tool_search_tool_regex_20251119",
        "tool_search_tool_bm25",
        "tool_search_tool_bm25_20251119",
        "advisor_20260301",
        "mcp_toolset",
        "container",
    ],
    // OpenAI Responses: `tools[].type` (https://platform.openai.com/docs/api-reference/responses/create). `shell` and
    // `tool_search` are the client's where they say so.
    &[
        "web_search",
        "web_search_2025_08_26",
        "web_search_preview",
        "web_search_preview_2025_03_11",
        "file_search",
        "code_interpreter",
        "image_generation",
        "mcp",
        "programmatic_tool_calling",
        "shell",
        "tool_search",
        "multi_agent",
    ],
    // Gemini: the fields of a tool (https://ai.google.dev/api/caching#Tool, and Vertex AI's).
    &[
        "googleSearch",
        "googleSearchRetrieval",
        "googleMaps",
        "urlContext",
        "codeExecution",
        "fileSearch",
        "retrieval",
        "enterpriseWebSearch",
        "parallelAiSearch",
        "exaAiSearch",
        "mcpServers",
    ],
    // Bedrock's Converse: the names of system tools
    // (https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_SystemTool.html) and other parameters.
    &["nova_grounding", "nova_code_interpreter", "systemTool", "toolAddition", "skills", "plugins"],
    // OpenRouter (https://openrouter.ai/docs/guides/features/server-tools).
    &[
        "openrouter:web_search",
        "openrouter:web_fetch",
        "openrouter:datetime",
        "openrouter:image_generation",
        "openrouter:bash",
        "openrouter:shell",
        "openrouter:apply_patch",
        "openrouter:text_editor",
        "openrouter:files",
        "openrouter:file_search",
        "openrouter:code_interpreter",
        "openrouter:mcp",
        "openrouter:memory",
        "openrouter:browser_use",
        "openrouter:tool_search",
        "openrouter:subagent",
        "openrouter:advisor",
        "openrouter:fusion",
        "openrouter:experimental__search_models",
        "openrouter:plugin:web",
        "openrouter:plugin:web-fetch",
        "openrouter:plugin:file-parser",
        "openrouter:plugin:response-healing",
        "openrouter:plugin:moderation",
        "openrouter:plugin:fusion",
        "openrouter:plugin:auto-router",
        "openrouter:plugin:auto-beta-router",
        "openrouter:plugin:pareto-router",
        "openrouter:plugin:switchyard-router",
        "openrouter:plugin:context-compression",
    ],
    // xAI (https://docs.x.ai/docs/guides/tools/overview), Groq (https://console.groq.com/docs/built-in-tools), Mistral
    // (https://docs.mistral.ai/agents/connectors).
    &[
        "x_search",
        "code_execution",
        "collections_search",
        "view_image",
        "view_x_video",
        "browser_search",
        "web_search_premium",
        "document_library",
        "connector",
    ],
];

/// Every type that is known, and every parameter that is known by its key.
pub fn types() -> impl Iterator<Item = &'static str> {
    TYPES.iter().copied().flatten().copied().chain(compatible::types())
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn each_type_stands_once() {
        let mut seen = HashSet::new();
        let twice: Vec<_> = types().filter(|one| !seen.insert(*one)).collect();
        assert_eq!(twice, Vec::<&str>::new());
    }
}
