//! Without `endpoints`, each family is open for inference and closed for everything else.

use super::inspected;

#[test]
fn anthropic_is_open_for_messages_alone() {
    let test = inspected(&["api.anthropic.com"]);
    test.assert_open(&[
        "POST api.anthropic.com/v1/messages",
        "POST api.anthropic.com/v1/messages?beta=true",
        "POST api.anthropic.com/v1/messages/",
        "POST api.anthropic.com/v1/%6dessages",
        "POST api.anthropic.com/v1/messages/count_tokens?beta=true",
        "GET api.anthropic.com/v1/models?limit=20",
        "GET api.anthropic.com/api/claude_code/settings",
    ]);
    test.assert_closed(&[
        "POST api.anthropic.com/v1/messages/batches",
        "GET api.anthropic.com/v1/messages/batches/b/results",
        "POST api.anthropic.com/v1/files",
        "GET api.anthropic.com/v1/files/f/content",
        "POST api.anthropic.com/v1/sessions/s/events",
        "POST api.anthropic.com/v1/skills",
        "POST api.anthropic.com/v1/complete",
        "POST api.anthropic.com/V1/Messages",
        "POST api.anthropic.com//v1/messages",
        "POST api.anthropic.com/v1%2Fmessages",
        "POST api.anthropic.com/v1/messages;x",
        "POST api.anthropic.com/v1/messages/../files",
        "PUT api.anthropic.com/v1/messages",
        "OPTIONS api.anthropic.com/v1/messages",
    ]);
    let refused = test.ask("POST api.anthropic.com/v1/files").text();
    assert!(refused.contains("anthropic") && refused.contains("`endpoints`"), "{refused}");
    assert!(refused.contains("agents/test/llm"), "{refused}");
}

#[test]
fn openai_is_open_for_chat_and_responses_alone() {
    let test = inspected(&["api.openai.com", "eu.api.openai.com", "chatgpt.com"]);
    test.assert_open(&[
        "POST api.openai.com/v1/chat/completions",
        "POST api.openai.com/v1/responses",
        "POST api.openai.com/v1/responses/compact",
        "POST api.openai.com/v1/embeddings",
        "GET api.openai.com/v1/models",
        "POST eu.api.openai.com/v1/responses",
        "POST chatgpt.com/backend-api/codex/responses",
        "GET chatgpt.com/backend-api/codex/models?client_version=0.169.0",
    ]);
    test.assert_closed(&[
        "GET api.openai.com/v1/responses/resp_1?stream=true",
        "GET api.openai.com/v1/responses",
        "POST api.openai.com/v1/responses/resp_1/cancel",
        "GET api.openai.com/v1/chat/completions/c",
        "POST api.openai.com/v1/conversations",
        "POST api.openai.com/v1/batches",
        "POST api.openai.com/v1/files",
        "POST api.openai.com/v1/threads/t/runs",
        "POST api.openai.com/v1/assistants",
        "POST api.openai.com/v1/containers",
        "POST api.openai.com/v1/fine_tuning/jobs",
        "POST api.openai.com/v1/alpha/search",
        "POST api.openai.com/v1/traces/ingest",
        "POST chatgpt.com/backend-api/ps/mcp",
        "GET eu.api.openai.com/v1/realtime",
    ]);
}

#[test]
fn google_is_open_for_generating_alone() {
    let test = inspected(&[
        "generativelanguage.googleapis.com",
        "us-central1-aiplatform.googleapis.com",
        "cloudcode-pa.googleapis.com",
    ]);
    let vertex = "us-central1-aiplatform.googleapis.com/v1/projects/p/locations/us-central1";
    test.assert_open(&[
        "POST generativelanguage.googleapis.com/v1beta/models/gemini-2.5-pro:generateContent",
        "POST generativelanguage.googleapis.com/v1beta/models/gemini-2.5-pro:streamGenerateContent?alt=sse",
        "POST generativelanguage.googleapis.com/v1/models/gemini-2.5-pro:countTokens",
        &format!("POST {vertex}/publishers/google/models/gemini-2.5-pro:streamGenerateContent"),
        &format!("POST {vertex}/publishers/anthropic/models/claude-opus-4@20250514:streamRawPredict"),
        "POST cloudcode-pa.googleapis.com/v1internal:streamGenerateContent?alt=sse",
        "POST cloudcode-pa.googleapis.com/v1internal:loadCodeAssist",
    ]);
    test.assert_closed(&[
        "POST generativelanguage.googleapis.com/v1beta/models/gemini-2.5-pro:batchGenerateContent",
        "POST generativelanguage.googleapis.com/v1beta/cachedContents",
        "POST generativelanguage.googleapis.com/v1beta/interactions",
        "POST generativelanguage.googleapis.com/upload/v1beta/files",
        "POST generativelanguage.googleapis.com/v1beta/models/m:generateContent/x",
        "POST generativelanguage.googleapis.com/v1beta/models/a%2Fb:generateContent",
        "POST generativelanguage.googleapis.com/v1beta/models/m:GENERATECONTENT",
        &format!("POST {vertex}/reasoningEngines/r:streamQuery"),
        &format!("POST {vertex}/batchPredictionJobs"),
        &format!("POST {vertex}/cachedContents"),
    ]);
}

#[test]
fn bedrock_is_open_for_invoking_alone() {
    let runtime = "bedrock-runtime.us-east-1.amazonaws.com";
    let agents = "bedrock-agent-runtime.us-east-1.amazonaws.com";
    let test = inspected(&[runtime, agents, "bedrock-mantle.us-east-1.api.aws"]);
    let arn = "arn%3Aaws%3Abedrock%3Aus-east-1%3A123456789012";
    test.assert_open(&[
        &format!("POST {runtime}/model/us.anthropic.claude-sonnet-4-5-20250929-v1%3A0/converse-stream"),
        &format!("POST {runtime}/model/anthropic.claude-v2%3A1/invoke-with-response-stream"),
        &format!("POST {runtime}/model/{arn}%3Aapplication-inference-profile%2Fa1b2/converse"),
        "POST bedrock-mantle.us-east-1.api.aws/anthropic/v1/messages",
        "POST bedrock-mantle.us-east-1.api.aws/openai/v1/responses",
    ]);
    test.assert_closed(&[
        &format!("POST {runtime}/model/{arn}%3Aprompt%2FABCDEF/converse"),
        &format!("POST {runtime}/model/..%2Fguardrail-checks/invoke"),
        &format!("POST {runtime}/async-invoke"),
        &format!("POST {runtime}/guardrail/g/version/1/apply"),
        &format!("POST {agents}/agents/a/agentAliases/b/sessions/s/text"),
        &format!("POST {agents}/retrieveAndGenerate"),
    ]);
}

#[test]
fn azure_is_open_for_inference_with_and_without_deployments() {
    let test = inspected(&["team.openai.azure.com", "team.services.ai.azure.com"]);
    test.assert_open(&[
        "POST team.openai.azure.com/openai/deployments/gpt-5/chat/completions?api-version=2025-04-01-preview",
        "POST team.openai.azure.com/openai/v1/responses",
        "POST team.services.ai.azure.com/anthropic/v1/messages",
    ]);
    test.assert_closed(&[
        "POST team.openai.azure.com/openai/deployments/gpt-5/extensions/chat/completions",
        "POST team.openai.azure.com/openai/threads",
        "POST team.openai.azure.com/openai/files?api-version=2025-04-01-preview",
        "POST team.services.ai.azure.com/api/projects/p/agents",
    ]);
}

#[test]
fn other_vendors_are_open_at_their_own_base() {
    let hosts = [
        "openrouter.ai",
        "api.groq.com",
        "api.deepseek.com",
        "api.mistral.ai",
        "api.x.ai",
        "api.perplexity.ai",
        "ollama.com",
        "api.cohere.com",
        "api.githubcopilot.com",
    ];
    let test = inspected(&hosts);
    test.assert_open(&[
        "POST openrouter.ai/api/v1/chat/completions",
        "POST api.groq.com/openai/v1/chat/completions",
        "POST api.deepseek.com/chat/completions",
        "POST api.deepseek.com/anthropic/v1/messages",
        "POST api.mistral.ai/v1/chat/completions",
        "POST api.x.ai/v1/responses",
        "POST api.perplexity.ai/chat/completions",
        "POST ollama.com/v1/messages",
        "POST api.cohere.com/compatibility/v1/chat/completions",
        "POST api.githubcopilot.com/responses",
    ]);
    test.assert_closed(&[
        "POST openrouter.ai/api/v1/presets/p/chat/completions",
        "POST openrouter.ai/api/v1/interns/i/chat/completions",
        "POST api.groq.com/openai/v1/batches",
        "POST api.mistral.ai/v1/conversations",
        "POST api.mistral.ai/v1/agents/completions",
        "POST api.perplexity.ai/search",
        "POST ollama.com/api/web_fetch",
        "POST ollama.com/api/chat",
        "POST api.cohere.com/v2/chat",
        "POST api.githubcopilot.com/mcp",
    ]);
}

#[test]
fn over_h2_the_same_endpoints_are_open() {
    let test = inspected(&["api.anthropic.com"]);
    let connection = test.gateway.agent().h2("api.anthropic.com");

    let post = |path: &str| {
        connection.request("POST", &format!("https://api.anthropic.com{path}"), &[], b"{}").unwrap()
    };

    post("/v1/files").assert_refused_by_provider("postern/builtin/endpoint");
    assert_eq!(post("/v1/messages?beta=true").status, 200);
    assert_eq!(test.upstream.requests().len(), 1);
}

#[test]
fn a_host_that_is_no_providers_stays_open() {
    let test = inspected(&["api.example.com"]);
    test.assert_open(&["POST api.example.com/v1/files", "GET api.example.com//odd"]);
}
