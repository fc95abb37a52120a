//! The tables against what the providers document: which endpoint is open at which host, and which is not.

use super::*;

fn service(host: &str, line: &str) -> Option<Service> {
    let (method, path) = line.split_once(' ').unwrap();
    let (method, websocket) = if method == "WS" { ("GET", true) } else { (method, false) };
    let surface = surface(&DnsName::parse(host).unwrap())?;
    Some(surface.service(&method.parse().unwrap(), &NormalPath::parse(path), websocket))
}

/// `vendor api` of each line.
#[track_caller]
fn expect(host: &str, table: &str) {
    let lines = table.trim().lines().map(str::trim);
    let seen: Vec<String> = lines
        .clone()
        .map(|line| {
            let (asked, _) = line.split_once(" = ").unwrap();
            let word = service(host, asked).map_or("none", |service| service.api.as_str());
            format!("{asked} = {word}")
        })
        .collect();
    assert_eq!(seen, lines.collect::<Vec<_>>(), "{host}");
}

/// Asserts that an LLM provider has the host and none of these is open there, by any method.
#[track_caller]
fn closed(host: &str, paths: &str) {
    for path in paths.split_whitespace() {
        for method in ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "WS"] {
            let service = service(host, &format!("{method} {path}")).unwrap();
            assert!(!service.is_inference(), "{method} {host}{path}: {service:?}");
        }
    }
}

#[test]
fn every_row_of_the_tables_is_a_path_of_the_pattern_language() {
    let custom = Dialect::ALL.iter().map(|dialect| HostFamily::custom(*dialect)).collect::<Vec<_>>();
    for family in FAMILIES.iter().chain(&custom) {
        for mount in family.mounts {
            for base in mount.at {
                for (_, path, api) in mount.of.rows {
                    let path = format!("{base}{path}");
                    assert!(PathPattern::parse(&path).is_ok(), "{path}");
                    assert!(!path.contains("**") && *api != Api::Other, "{path}");
                }
            }
        }
    }
}

#[test]
fn no_trick_in_a_path_makes_it_an_inference_endpoint() {
    for family in FAMILIES {
        let surface = family.compiled();
        let rows =
            family.mounts.iter().flat_map(|mount| mount.of.rows.iter().map(move |row| (mount.at[0], row)));
        for (base, (call, path, _)) in rows {
            let (method, websocket) = match call {
                EndpointMethod::Get => (Method::GET, false),
                EndpointMethod::Post => (Method::POST, false),
                EndpointMethod::WebSocket => (Method::GET, true),
            };
            let path = format!("{base}{path}").replace('*', "x");
            let is_open =
                |path: &str| surface.service(&method, &NormalPath::parse(path), websocket).is_inference();
            assert!(is_open(&path), "{path}");
            for trick in ["//", "/../", "/./", ";", "%2F", "%5c", "\\", "%00", "%2e%2e", "%252f", "?"] {
                for at in 0..=path.len() {
                    let tricked = format!("{}{trick}{}", &path[..at], &path[at..]);
                    assert!(!is_open(&tricked), "{tricked}");
                }
            }
        }
    }
}

#[test]
fn every_host_of_the_tables_leads_to_its_own_family() {
    for (number, family) in FAMILIES.iter().enumerate() {
        for pattern in family.hosts {
            let host = pattern.replace("**.", "a.b.").replace('*', "x-1");
            let found = surface(&DnsName::parse(&host).unwrap()).unwrap();
            assert!(std::ptr::eq(found, &CATALOGUE.surfaces[number]), "{host} of {pattern}");
            assert_eq!(found.vendor, family.vendor);
        }
    }
}

#[test]
fn what_only_looks_like_a_providers_host_is_none() {
    for host in [
        "api.anthropic.com.example.com",
        "evil-api.anthropic.com",
        "anthropic.com",
        "openai.azure.com",
        "x.a.api.openai.com",
        "aiplatform.googleapis.com.example.com",
        "storage.googleapis.com",
        "bedrock-runtime.amazonaws.com",
        "bedrock-runtime.us-east-1.evil.amazonaws.com",
        "s3.us-east-1.amazonaws.com",
        "github.com",
    ] {
        assert!(surface(&DnsName::parse(host).unwrap()).is_none(), "{host}");
    }
}

#[test]
fn anthropic_messages_are_open_and_jobs_files_and_agents_are_not() {
    expect(
        "api.anthropic.com",
        "
        POST /v1/messages = messages
        POST /v1/messages/ = messages
        POST /v1/messages/count_tokens = count_tokens
        GET /v1/models = models
        GET /v1/models/claude-sonnet-4-5 = models
        HEAD /api/hello = startup
        GET /api/claude_code/settings = startup
        GET /api/claude_code/policy_limits = startup
        GET /v1/messages = other
        PUT /v1/messages = other
        POST /V1/Messages = other
        POST /v1%2Fmessages = other
        POST /v1//messages = other
        POST /v1/models = other
        POST /api/hello = other
        ",
    );
    closed(
        "api.anthropic.com",
        "/v1/messages/batches /v1/messages/batches/b /v1/messages/batches/b/results /v1/messages/batches/b/cancel
         /v1/agents /v1/agents/a /v1/sessions /v1/sessions/s/events /v1/sessions/s/events/stream
         /v1/sessions/s/threads/t/stream /v1/deployments/d/run /v1/environments/e/work /v1/dreams
         /v1/memory_stores /v1/skills /v1/files /v1/files/f/content /v1/vaults/v/credentials /v1/tunnels
         /v1/user_profiles /v1/organizations/o /v1/complete /v1/chat/completions /v1/experimental/x
         /api/event_logging/v2/batch /api/eval/sdk-x /api/web/domain_info /mcp-registry/v0/servers /",
    );
    closed("console.anthropic.com", "/v1/oauth/token /v1/messages");
}

#[test]
fn anthropics_other_front_doors_have_messages_at_their_own_paths() {
    expect(
        "europe-west1-aiplatform.googleapis.com",
        "
        POST /v1/projects/p/locations/l/publishers/anthropic/models/claude-opus-4@20250514:rawPredict = messages
        POST /v1/projects/p/locations/l/publishers/anthropic/models/claude:streamRawPredict = messages
        POST /v1beta1/projects/p/locations/l/publishers/anthropic/models/claude:rawPredict = messages
        POST /v1/projects/p/locations/l/publishers/anthropic/models/count-tokens:rawPredict = count_tokens
        POST /v1/projects/p/locations/l/publishers/mistralai/models/m:rawPredict = other
        GET /v1/projects/p/locations/l/publishers/anthropic/models/claude:rawPredict = other
        ",
    );
    expect(
        "claude.googleapis.com",
        "
        POST /v1/projects/p/locations/l/workspaces/w/invoke/v1/messages = messages
        POST /v1/projects/p/locations/l/workspaces/w/invoke/v1/messages/batches = other
        POST /v1/projects/p/locations/l/claudeOrganization/invoke/v1/files = other
        ",
    );
    expect("bedrock-mantle.us-east-1.api.aws", "POST /anthropic/v1/messages = messages");
    expect("aws-external-anthropic.us-east-1.api.aws", "POST /v1/messages = messages");
    expect(
        "team.services.ai.azure.com",
        "
        POST /anthropic/v1/messages = messages
        POST /anthropic/v1/messages/count_tokens = count_tokens
        POST /anthropic/v1/messages/batches = other
        ",
    );
    closed(
        "team.services.ai.azure.com",
        "/api/projects/p/agents /api/projects/p/threads/runs /anthropic/v1/files",
    );
}

#[test]
fn bedrock_models_are_invoked_and_its_agents_jobs_and_guardrails_are_not() {
    let arn = "arn%3Aaws%3Abedrock%3Aus-east-1%3A1%3A";
    expect(
        "bedrock-runtime.us-east-1.amazonaws.com",
        &format!(
            "
        POST /model/anthropic.claude-sonnet-4-5-20250929-v1%3A0/converse = converse
        POST /model/us.anthropic.claude-sonnet-4-5-20250929-v1:0/converse-stream = converse
        POST /model/m/invoke = invoke_model
        POST /model/m/invoke-with-response-stream = invoke_model
        POST /model/m/count-tokens = count_tokens
        POST /model/{arn}application-inference-profile%2Fabc/converse = converse
        POST /model/{arn}prompt%2FABC%3A1/converse = other
        POST /model/..%2Fguardrail-checks/invoke = other
        POST /model/{arn}inference-profile%2Fm/async-invoke = other
        POST /openai/v1/chat/completions = chat_completions
        POST /openai/v1/responses = responses
        "
        ),
    );
    for host in [
        "bedrock-runtime-fips.us-gov-west-1.amazonaws.com",
        "bedrock-runtime.eu-west-1.api.aws",
        "vpce-1-2.bedrock-runtime.us-east-1.vpce.amazonaws.com",
    ] {
        expect(host, "POST /model/m/converse = converse");
    }
    closed(
        "bedrock-runtime.us-east-1.amazonaws.com",
        "/model/m/async-invoke /async-invoke /async-invoke/i /model/m/invoke-with-bidirectional-stream
         /guardrail-checks/invoke /guardrail/g/version/1/apply /openai/v1/files /openai/v1/batches",
    );
    expect(
        "bedrock.us-east-1.amazonaws.com",
        "GET /inference-profiles = models\nPOST /model-invocation-job = other",
    );
    closed(
        "bedrock-agent-runtime.us-east-1.amazonaws.com",
        "/agents/a/agentAliases/b/sessions/s/text /agents/a /flows/f/aliases/b /retrieveAndGenerate",
    );
}

#[test]
fn openai_chat_and_responses_are_open_and_everything_that_is_kept_or_run_there_is_not() {
    for host in ["api.openai.com", "eu.api.openai.com"] {
        expect(
            host,
            "
            POST /v1/chat/completions = chat_completions
            POST /v1/responses = responses
            WS /v1/responses = responses
            POST /v1/responses/compact = responses
            POST /v1/responses/input_tokens = count_tokens
            POST /v1/embeddings = embeddings
            GET /v1/models = models
            GET /v1/models/gpt-5 = models
            DELETE /v1/models/ft:gpt = other
            GET /v1/responses = other
            WS /v1/chat/completions = other
            GET /v1/chat/completions = other
            ",
        );
    }
    closed(
        "api.openai.com",
        "/v1/chat/completions/c /v1/chat/completions/c/messages /v1/responses/r /v1/responses/r/cancel
         /v1/responses/r/input_items /v1/conversations /v1/conversations/c /v1/conversations/c/items
         /v1/conversations/c/items/i /v1/realtime /v1/realtime/client_secrets /v1/realtime/calls
         /v1/realtime/sessions /v1/live/sessions /v1/batches /v1/batches/b /v1/files /v1/files/f/content
         /v1/uploads /v1/assistants /v1/threads /v1/threads/t/runs /v1/threads/t/messages /v1/agents
         /v1/agents/sessions /v1/automations /v1/environments /v1/chatkit/sessions /v1/containers
         /v1/containers/c/files /v1/skills /v1/vaults /v1/vector_stores/v/search /v1/videos /v1/decisions
         /v1/evals /v1/completions /v1/fine_tuning/jobs /v1/images/generations /v1/audio/speech
         /v1/moderations /v1/organization/users /v1/alpha/search /v1/traces/ingest",
    );
}

#[test]
fn codex_with_a_login_starts_and_speaks_responses_alone() {
    expect(
        "chatgpt.com",
        "
        POST /backend-api/codex/responses = responses
        WS /backend-api/codex/responses = responses
        POST /backend-api/codex/responses/compact = responses
        GET /backend-api/codex/models = models
        GET /backend-api/wham/accounts/check = startup
        ",
    );
    closed(
        "chatgpt.com",
        "/backend-api/ps/mcp /backend-api/ps/plugins/p /backend-api/codex/analytics-events
         /backend-api/conversation /backend-api/conversations /backend-api/files /",
    );
}

#[test]
fn azure_has_deployments_in_the_path_or_not() {
    for host in
        ["team.openai.azure.com", "team.cognitiveservices.azure.com", "team.privatelink.openai.azure.com"]
    {
        expect(
            host,
            "
            POST /openai/deployments/gpt-5/chat/completions = chat_completions
            POST /openai/deployments/gpt-5/embeddings = embeddings
            POST /openai/responses = responses
            WS /openai/v1/responses = responses
            POST /openai/v1/responses = responses
            POST /openai/v1/chat/completions = chat_completions
            GET /openai/v1/models = models
            ",
        );
        closed(
            host,
            "/openai/deployments/d/completions /openai/deployments/d/images/generations
             /openai/deployments/d/audio/speech /openai/deployments/d/extensions/chat/completions
             /openai/deployments/a/b/chat/completions /openai/realtime /openai/v1/realtime /openai/assistants
             /openai/threads /openai/files /openai/v1/files /openai/batches /openai/v1/batches
             /openai/responses/r /openai/v1/vector_stores /openai/fine_tuning/jobs",
        );
    }
}

#[test]
fn gemini_generates_and_keeps_and_runs_nothing() {
    for version in ["v1", "v1beta", "v1alpha"] {
        let table = "
            POST /V/models/gemini-2.5-pro:generateContent = generate_content
            POST /V/models/gemini-2.5-pro:streamGenerateContent = generate_content
            POST /V/models/gemini-2.5-pro%3AstreamGenerateContent = generate_content
            POST /V/tunedModels/t:generateContent = generate_content
            POST /V/models/m:countTokens = count_tokens
            POST /V/models/m:embedContent = embeddings
            POST /V/models/m:batchEmbedContents = embeddings
            GET /V/models = models
            POST /V/models/m:generatecontent = other
            POST /V/models/m:batchGenerateContent = other
            POST /V/models/m:x:generateContent = other";
        expect("generativelanguage.googleapis.com", &table.replace("/V/", &format!("/{version}/")));
    }
    expect("generativelanguage.googleapis.com", "POST /v1beta/openai/chat/completions = chat_completions");
    closed(
        "generativelanguage.googleapis.com",
        "/v1beta/models/m:batchGenerateContent /v1beta/models/m:asyncBatchEmbedContent /v1beta/batches
         /v1beta/cachedContents /v1beta/cachedContents/c /v1beta/files /upload/v1beta/files /batch
         /v1beta/fileSearchStores/s:uploadToFileSearchStore /v1beta/corpora /v1beta/interactions
         /v1/interactions /v1beta/interactions/i /v1beta/interactions/i/cancel /v1beta/agents
         /v1beta/environments /v1beta/triggers /v1beta/tunedModels /v1beta/openai/batches /v1beta/openai/files
         /ws/google.ai.generativelanguage.v1beta.GenerativeService.BidiGenerateContent
         /ws/google.ai.generativelanguage.v1beta.GenerativeService.BidiGenerateContentConstrained
         /google.ai.generativelanguage.v1beta.GenerativeService/GenerateContent",
    );
}

#[test]
fn vertex_generates_by_project_and_in_express_mode() {
    for host in [
        "us-central1-aiplatform.googleapis.com",
        "aiplatform.googleapis.com",
        "aiplatform.eu.rep.googleapis.com",
        "us-central1-aiplatform.mtls.googleapis.com",
    ] {
        expect(
            host,
            "
            POST /v1/projects/p/locations/l/publishers/google/models/g:generateContent = generate_content
            POST /v1beta1/projects/p/locations/l/publishers/google/models/g:streamGenerateContent = generate_content
            POST /v1beta1/publishers/google/models/g:generateContent = generate_content
            POST /v1/projects/p/locations/l/endpoints/e:generateContent = generate_content
            POST /v1/projects/p/locations/l/endpoints/openapi/chat/completions = chat_completions
            POST /v1/projects/p/locations/l/publishers/google/models/g:countTokens = count_tokens
            ",
        );
    }
    closed(
        "us-central1-aiplatform.googleapis.com",
        "/v1/projects/p/locations/l/publishers/google/models/g:predict
         /v1/projects/p/locations/l/publishers/google/models/g:predictLongRunning
         /v1/projects/p/locations/l/endpoints/e:predict /v1/projects/p/locations/l/endpoints/e:rawPredict
         /v1/projects/p/locations/l/batchPredictionJobs /v1/projects/p/locations/l/cachedContents
         /v1/projects/p/locations/l/reasoningEngines/r:streamQuery /v1/projects/p/locations/l/ragCorpora
         /v1/projects/p/locations/l/tuningJobs /v1/projects/p/locations/l/pipelineJobs
         /ws/google.cloud.aiplatform.v1.LlmBidiService/BidiGenerateContent",
    );
}

#[test]
fn googles_logins_and_firebase_generate() {
    for host in [
        "cloudcode-pa.googleapis.com",
        "daily-cloudcode-pa.googleapis.com",
        "daily-cloudcode-pa.sandbox.googleapis.com",
    ] {
        expect(
            host,
            "
            POST /v1internal:generateContent = generate_content
            POST /v1internal:streamGenerateContent = generate_content
            POST /v1internal:countTokens = count_tokens
            POST /v1internal:loadCodeAssist = startup
            POST /v1internal:onboardUser = other
            ",
        );
    }
    expect(
        "firebasevertexai.googleapis.com",
        "
        POST /v1beta/projects/p/models/m:generateContent = generate_content
        POST /v1beta/projects/p/locations/l/publishers/google/models/m:streamGenerateContent = generate_content
        POST /v1beta/projects/p/templates/t:templateGenerateContent = other
        ",
    );
}

#[test]
fn copilot_has_three_dialects_and_its_mcp_server_is_closed() {
    for host in ["api.githubcopilot.com", "api.business.githubcopilot.com", "copilot-api.acme.ghe.com"] {
        expect(
            host,
            "
            POST /chat/completions = chat_completions
            POST /responses = responses
            POST /v1/messages = messages
            GET /models = models
            ",
        );
        closed(host, "/mcp /mcp/readonly /agents /v1/messages/batches");
    }
}

#[test]
fn compatible_vendors_are_open_at_their_own_base_alone() {
    for (host, base, has_responses) in [
        ("openrouter.ai", "/api/v1", true),
        ("api.groq.com", "/openai/v1", true),
        ("api.deepseek.com", "", true),
        ("api.deepseek.com", "/v1", true),
        ("api.mistral.ai", "/v1", false),
        ("api.eu.mistral.ai", "/v1", false),
        ("codestral.mistral.ai", "/v1", false),
        ("api.x.ai", "/v1", true),
        ("us-east-1.api.x.ai", "/v1", true),
        ("api.perplexity.ai", "", false),
        ("ollama.com", "/v1", true),
        ("api.cohere.com", "/compatibility/v1", false),
    ] {
        let responses = if has_responses { "responses" } else { "other" };
        expect(
            host,
            &format!(
                "POST {base}/chat/completions = chat_completions
                 POST {base}/responses = {responses}
                 POST {base}/completions = other
                 POST /elsewhere/chat/completions = other"
            ),
        );
        closed(
            host,
            &format!("{base}/files {base}/batches {base}/batch/jobs {base}/realtime {base}/responses/r"),
        );
    }
}

#[test]
fn what_compatible_vendors_run_themselves_is_closed() {
    closed(
        "openrouter.ai",
        "/api/v1/presets/p/chat/completions /api/v1/presets/p/messages /api/v1/presets/p/responses
         /api/v1/interns/i/chat/completions /api/alpha/responses /api/v1/keys",
    );
    closed(
        "api.mistral.ai",
        "/v1/agents /v1/agents/completions /v1/conversations /v1/conversations/c /v1/connectors/c
         /v1/libraries /v1/workflows /v1/fim/completions",
    );
    closed("api.deepseek.com", "/beta/completions /anthropic/v1/messages/batches");
    closed("api.perplexity.ai", "/search /async/chat/completions /v1/responses");
    closed("ollama.com", "/api/chat /api/generate /api/web_search /api/web_fetch");
    closed("api.cohere.com", "/v1/chat /v2/chat /v1/connectors /v1/datasets");
    for host in ["api2.cursor.sh", "q.us-east-1.amazonaws.com", "runtime.us-east-1.kiro.dev"] {
        closed(host, "/ /v1/messages /v1/chat/completions /generateAssistantResponse");
    }
    expect("api.deepseek.com", "POST /anthropic/v1/messages = messages");
}

#[test]
fn what_a_rule_says_is_spoken_is_open_at_the_bases_that_vendors_use() {
    let table = [
        (Dialect::Anthropic, "/v1/messages", "/v1/chat/completions"),
        (Dialect::Anthropic, "/anthropic/v1/messages/count_tokens", "/v1/messages/batches"),
        (Dialect::OpenAIChat, "/v1/chat/completions", "/v1/responses"),
        (Dialect::OpenAIChat, "/openai/deployments/d/chat/completions", "/presets/p/chat/completions"),
        (Dialect::OpenAIResponses, "/openai/v1/responses", "/v1/responses/r/cancel"),
        (Dialect::Gemini, "/v1beta/models/m:generateContent", "/v1beta/models/m:batchGenerateContent"),
        (Dialect::Bedrock, "/model/m/converse", "/model/m/async-invoke"),
    ];
    for (dialect, open, shut) in table {
        let surface = of_dialect(dialect).unwrap();
        let of = |path| surface.service(&Method::POST, &NormalPath::parse(path), false);
        assert_eq!((of(open).vendor, of(open).dialect), (Vendor::Custom, Some(dialect)), "{open}");
        assert!(!of(shut).is_inference(), "{shut}");
    }
}

#[test]
fn what_a_lenient_server_takes_for_an_endpoint_is_disguised() {
    let is_disguised = |host: &str, method: Method, path: &str| {
        let surface = surface(&DnsName::parse(host).unwrap()).unwrap();
        surface.is_disguised(&method, &NormalPath::parse(path), method != Method::GET)
    };
    let arn = "arn%3Aaws%3Abedrock%3Aus-east-1%3A1%3Aprompt%2FABCDEFGHIJ%3A1";
    for (host, path) in [
        ("api.anthropic.com", "//v1/messages"),
        ("api.anthropic.com", "/v1/./messages"),
        ("api.anthropic.com", "/v1/files/../messages"),
        ("api.anthropic.com", "/v1%2Fmessages"),
        ("api.anthropic.com", "/v1%252fmessages"),
        ("api.anthropic.com", "/v1\\messages"),
        ("api.anthropic.com", "/v1/messages;beta=true"),
        ("api.anthropic.com", "/v1/messages%3Fbeta"),
        ("api.anthropic.com", "/v1/messages%20"),
        ("api.anthropic.com", "/V1/Messages"),
        ("api.anthropic.com", "/v1/messages."),
        ("api.anthropic.com", "/v1/messages%00"),
        ("api.anthropic.com", "/v1/messages%00.json"),
        ("api.anthropic.com", "/v1%c0%afmessages"),
        ("api.anthropic.com", "/v1%EF%BC%8Fmessages"),
        ("api.anthropic.com", "/v1/%EF%BD%8Dessages"),
        ("acme.openai.azure.com", "/OpenAI/Deployments/d/Chat/Completions"),
        ("generativelanguage.googleapis.com", "/v1beta//models/g:GenerateContent"),
        ("bedrock-runtime.us-east-1.amazonaws.com", &format!("/model/{arn}/converse")),
    ] {
        assert!(is_disguised(host, Method::POST, path), "{path}");
    }
    for method in [Method::PUT, Method::DELETE, Method::HEAD] {
        assert!(is_disguised("api.anthropic.com", method, "/v1/messages"));
    }
    for path in ["/v1/messages/batches", "/v1//files", "/v1/models", "/"] {
        assert!(!is_disguised("api.anthropic.com", Method::POST, path), "{path}");
    }
    assert!(!is_disguised("api.openai.com", Method::GET, "/v1/chat/completions"));
}
