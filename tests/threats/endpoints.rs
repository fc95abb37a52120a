//! Endpoints of LLM providers that carry tools or data past whoever looks at inference alone.

use crate::providers::{Providers, inspected, with};

const BATCHES: [&str; 8] = [
    "POST api.anthropic.com/v1/messages/batches",
    "GET api.anthropic.com/v1/messages/batches/b/results",
    "POST api.openai.com/v1/batches",
    "POST api.groq.com/openai/v1/batches",
    "POST api.mistral.ai/v1/batch/jobs",
    "POST team.openai.azure.com/openai/batches",
    "POST generativelanguage.googleapis.com/v1beta/models/m:batchGenerateContent",
    "POST bedrock.us-east-1.amazonaws.com/model-invocation-job",
];

const FILES: [&str; 6] = [
    "POST api.anthropic.com/v1/files",
    "POST api.openai.com/v1/files",
    "POST api.openai.com/v1/uploads",
    "POST team.openai.azure.com/openai/v1/files",
    "POST generativelanguage.googleapis.com/upload/v1beta/files",
    "POST generativelanguage.googleapis.com/v1beta/fileSearchStores/s:uploadToFileSearchStore",
];

const HOSTS: [&str; 7] = [
    "api.anthropic.com",
    "api.openai.com",
    "api.groq.com",
    "api.mistral.ai",
    "team.openai.azure.com",
    "generativelanguage.googleapis.com",
    "bedrock.us-east-1.amazonaws.com",
];

/// Inference where the agent would rather have a batch or a file.
fn assert_that_inference_passes(test: &Providers) {
    test.assert_open(&[
        "POST api.anthropic.com/v1/messages",
        "POST api.openai.com/v1/responses",
        "POST generativelanguage.googleapis.com/v1beta/models/m:generateContent",
        "POST team.openai.azure.com/openai/v1/chat/completions",
    ]);
}

/// E1: a batch carries whole requests, tools among them, and its results come later.
#[test]
fn no_batch_is_made_and_none_is_read() {
    let test = inspected(&HOSTS);
    test.assert_closed(&BATCHES);
    assert_that_inference_passes(&test);
}

/// E2: a file that is uploaded with the attacker's key is read elsewhere.
#[test]
fn no_file_is_uploaded_with_anybodys_key() {
    let test = inspected(&HOSTS);
    test.assert_closed(&FILES);
    let key = [("x-api-key", "sk-ant-attackers")];
    let answer =
        test.gateway.agent().request("POST", "https://api.anthropic.com/v1/files", &key, b"the secret");
    answer.assert_refused_by_provider("postern/builtin/endpoint");
    assert_that_inference_passes(&test);
}

/// E10: what a provider keeps for old clients, or adds for new ones, is no inference endpoint of ours.
#[test]
fn no_endpoint_is_open_for_being_old_new_or_compatible() {
    let test = inspected(&HOSTS);
    test.assert_closed(&[
        "POST api.anthropic.com/v1/complete",
        "POST api.anthropic.com/v1/chat/completions",
        "POST api.anthropic.com/v1/of-next-month",
        "POST api.openai.com/v1/completions",
        "POST api.openai.com/v1/audio/speech",
        "POST api.openai.com/v1/images/generations",
        "GET api.openai.com/v1/realtime?model=gpt-realtime",
        "POST api.openai.com/v1/realtime/calls",
        "POST api.mistral.ai/v1/fim/completions",
        "POST generativelanguage.googleapis.com/v1beta/interactions",
        "GET api.openai.com/v1/responses/resp_1",
    ]);
    test.assert_open(&["POST api.openai.com/v1/responses/compact", "POST api.openai.com/v1/embeddings"]);
}

/// E11: every front door of a provider has the same list, also where a wildcard let the agent find it.
#[test]
fn no_other_front_door_of_a_provider_is_wider() {
    let hosts = [
        "eu.api.openai.com",
        "chatgpt.com",
        "console.anthropic.com",
        "europe-west1-aiplatform.googleapis.com",
        "aiplatform.us.rep.googleapis.com",
        "generativelanguage.mtls.googleapis.com",
        "bedrock-runtime-fips.us-east-1.amazonaws.com",
        "vpce-1.bedrock-runtime.us-east-1.vpce.amazonaws.com",
        "api.business.githubcopilot.com",
    ];
    let policy = crate::support::setup::policy(&["{name: everything, hosts: ['**'], action: Inspect}"]);
    let test = with(&hosts, &policy, |setup| setup);
    test.assert_closed(&[
        "POST eu.api.openai.com/v1/files",
        "POST chatgpt.com/backend-api/files",
        "POST console.anthropic.com/v1/files",
        "POST europe-west1-aiplatform.googleapis.com/v1/projects/p/locations/l/batchPredictionJobs",
        "POST aiplatform.us.rep.googleapis.com/v1/projects/p/locations/us/reasoningEngines/r:streamQuery",
        "POST generativelanguage.mtls.googleapis.com/v1beta/cachedContents",
        "POST bedrock-runtime-fips.us-east-1.amazonaws.com/async-invoke",
        "POST vpce-1.bedrock-runtime.us-east-1.vpce.amazonaws.com/async-invoke",
        "POST api.business.githubcopilot.com/mcp",
    ]);
    test.assert_open(&[
        "POST eu.api.openai.com/v1/responses",
        "POST aiplatform.us.rep.googleapis.com/v1/projects/p/locations/us/publishers/google/models/m:generateContent",
        "POST vpce-1.bedrock-runtime.us-east-1.vpce.amazonaws.com/model/m/converse",
    ]);
}

/// C5, E10: at a provider of which everything is open, what a lenient server takes for an inference endpoint is refused,
/// since nobody would read it; what is no such endpoint passes.
#[test]
fn a_disguised_inference_path_is_refused_where_everything_is_open() {
    let hosts = ["api.anthropic.com", "api.openai.com"];
    let opened =
        "{name: llm, hosts: [api.anthropic.com, api.openai.com], action: Inspect, endpoints: [{path: /**}]}";
    let test = with(&hosts, &crate::support::setup::policy(&[opened]), |setup| setup);

    test.assert_closed(&[
        "POST api.anthropic.com/v1/messages%00",
        "POST api.anthropic.com/v1/messages%00.txt",
        "POST api.anthropic.com/v1/messages.",
        "POST api.anthropic.com/v1/messages%20",
        "POST api.anthropic.com/v1/messages;a=b",
        "POST api.anthropic.com/v1%c0%afmessages",
        "POST api.anthropic.com/v1%e0%80%afmessages",
        "POST api.anthropic.com/v1%EF%BC%8Fmessages",
        "POST api.anthropic.com/v1/%EF%BD%8D%EF%BD%85ssages",
        "POST api.anthropic.com/v1%252fmessages",
        "POST api.anthropic.com/v1%5Cmessages",
        "POST api.openai.com/v1//chat/./completions",
        "PUT api.openai.com/v1/responses",
    ]);
    for method in ["GET", "DELETE", "OPTIONS", "PATCH"] {
        let url = "https://api.openai.com/v1/chat/completions";
        let answer = test.gateway.agent().request(method, url, &[], b"{\"model\":\"m\"}");
        assert_eq!(answer.header("x-postern-rule"), Some("postern/builtin/endpoint"), "{method}: {answer:?}");
    }
    let mut connection = test.gateway.agent().tls("api.openai.com");
    connection.send("HEAD /v1/responses HTTP/1.1\r\nHost: api.openai.com\r\nContent-Length: 2\r\n\r\n{}");
    let head = String::from_utf8(connection.read_until(b"\r\n\r\n")).unwrap();
    assert!(head.contains("postern/builtin/endpoint"), "{head}");
    assert!(test.upstream.requests().is_empty());

    test.assert_open(&[
        "POST api.anthropic.com/v1/messages",
        "GET api.openai.com/v1/chat/completions",
        "DELETE api.openai.com/v1/chat/completions/id",
        "POST api.openai.com/v1/files",
        "GET api.anthropic.com/v1/messages/batches/b%20c",
    ]);
    test.assert_closed(&["POST api.openai.com/v1/responses%2Fcompact"]);
}

/// C6: where a provider's own list of endpoints is in force, no query parameter names another method.
#[test]
fn at_a_provider_no_query_names_another_method() {
    let test = inspected(&["api.openai.com"]);
    test.assert_closed(&["POST api.openai.com/v1/chat/completions?_method=DELETE"]);
    test.assert_open(&["POST api.openai.com/v1/chat/completions?api-version=1"]);
}

/// Requests that are inference wherever they go, the disguised ones among them.
const ANYWHERE: [&str; 10] = [
    "POST llm.corp.example/v1/chat/completions",
    "POST llm.corp.example/api/paas/v4/chat/completions",
    "POST llm.corp.example/anthropic/v1/messages",
    "POST llm.corp.example/v1/responses",
    "POST llm.corp.example/v1beta/models/m:streamGenerateContent?alt=sse",
    "POST llm.corp.example/model/m/converse",
    "POST llm.corp.example/model/m/invoke-with-response-stream",
    "POST llm.corp.example//v1/chat/completions",
    "POST llm.corp.example/V1/Chat%2fCompletions;x",
    "POST llm.corp.example/v1/x/../messages",
];

/// E21: what looks like inference at a host that nobody knows is denied until a rule says what speaks there; a
/// namespace cannot say it in the cluster's place.
#[test]
fn an_unknown_provider_is_denied_until_a_rule_says_what_speaks_there() {
    let rule = |more: &str| format!("{{name: llm, hosts: [llm.corp.example], action: Inspect{more}}}");
    let of = |more: &str| crate::support::setup::policy(&[&rule(more)]);
    let hosts = ["llm.corp.example"];
    let assert_denied = |test: &Providers| {
        for line in ANYWHERE {
            let answer = test.ask(line);
            answer.assert_refused(403, "postern/builtin/provider-unknown");
            assert!(answer.text().contains("`provider: None`"), "{line}: {}", answer.text());
            assert!(answer.text().contains("/llm"), "the rule is named: {}", answer.text());
        }
        assert!(test.upstream.requests().is_empty());
        let event = test.gateway.wait_for("Request", "Deny");
        assert_eq!(event["decision"]["rule"], "postern/builtin/provider-unknown");
        test.assert_open(&[
            "POST llm.corp.example/graphql",
            "POST llm.corp.example/v1/messages/search",
            "GET llm.corp.example/v1/chat/completions",
        ]);
    };
    assert_denied(&with(&hosts, &of(""), |setup| setup));
    let cluster = "apiVersion: postern.dev/v1alpha1\nkind: ClusterEgressPolicy\nmetadata: {name: floor}\nspec:\n  \
                   destinations:\n    - {name: llm, hosts: ['**'], action: Inspect}\n";
    assert_denied(&with(&hosts, &format!("{}---\n{cluster}", of(", provider: None")), |setup| setup));

    let plain = [ANYWHERE[0], ANYWHERE[3], ANYWHERE[5]];
    with(&hosts, &of(", provider: None"), |setup| setup).assert_open(&plain);
    with(&hosts, &of(", endpoints: [{methods: [POST], path: /**}]"), |setup| setup).assert_open(&plain);
    let spoken = with(&hosts, &of(", provider: OpenAIChat"), |setup| setup);
    spoken.assert_open(&[ANYWHERE[0]]);
    assert_eq!(spoken.gateway.wait_for("Request", "Allow")["provider"]["api"], "chat_completions");
}

/// E21: under policies that only audit it goes through, and is recorded.
#[test]
fn an_unknown_provider_is_recorded_where_nothing_is_enforced() {
    let policy = crate::support::setup::policy(&["{name: llm, hosts: [llm.corp.example], action: Inspect}"]);
    let policy = policy.replace("spec:\n", "spec:\n  enforcement: Audit\n");
    let test = with(&["llm.corp.example"], &policy, |setup| setup);
    test.assert_open(&[ANYWHERE[0]]);
    let event = test.gateway.wait_for("Request", "WouldDeny");
    assert_eq!(event["decision"]["rule"], "postern/builtin/provider-unknown");
}

/// E21: `provider: None` says nothing of a host that is known, and vendors that speak a known API are.
#[test]
fn a_known_provider_is_guarded_whatever_a_rule_says() {
    let hosts =
        ["api.anthropic.com", "api.z.ai", "api.moonshot.ai", "router.huggingface.co", "api.replicate.com"];
    let rule = format!("{{name: llm, hosts: [{}], action: Inspect, provider: None}}", hosts.join(", "));
    let test = with(&hosts, &crate::support::setup::policy(&[&rule]), |setup| setup);
    test.assert_open(&["POST api.z.ai/api/paas/v4/chat/completions", "POST api.anthropic.com/v1/messages"]);
    for line in ["POST api.z.ai/api/anthropic/v1/messages", "POST api.moonshot.ai/v1/chat/completions"] {
        let before = test.gateway.events().len();
        assert_eq!(test.ask(line).status, 200, "{line}");
        let is_read = |event: &serde_json::Value| event["provider"]["api"].is_string();
        let new = || test.gateway.events().into_iter().skip(before).find(is_read);
        crate::support::journal::poll(line, new);
    }
    for line in [
        "POST api.replicate.com/v1/predictions",
        "POST router.huggingface.co/x/v2/y",
        "POST api.anthropic.com/v1/files",
    ] {
        let answer = test.ask(line);
        assert_eq!(answer.header("x-postern-rule"), Some("postern/builtin/endpoint"), "{line}: {answer:?}");
    }
}
