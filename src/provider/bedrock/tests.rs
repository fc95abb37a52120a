//! Tables of requests to Bedrock with what becomes of them.

use super::testing::{KEEP, REFUSE, STRIP, drafted, outcome};
use super::*;
use crate::call::DenialForm;

const CONVERSE: &str = "us.amazon.nova-2-lite-v1%3A0/converse";
const SPEC: &str = r#"{"toolSpec":{"name":"run","inputSchema":{"json":{}}}}"#;
const SEARCH: &str = r#"{"systemTool":{"name":"nova_grounding"}}"#;

fn tools(list: &str, choice: &str, messages: &str) -> String {
    format!(
        r#"{{"messages":[{messages}], "toolConfig": {{"tools": [{list}]{choice}}}, "inferenceConfig":{{}}}}"#
    )
}

/// The list of tools and the choice that are left; `gone` where there is no `toolConfig` any more.
fn left(list: &str, choice: &str) -> String {
    let edited = outcome(CONVERSE, &tools(list, choice, ""), STRIP);
    let rest = edited.split_once(r#""toolConfig": {"tools": ["#).map(|(_, rest)| rest.to_owned());
    rest.map_or_else(
        || if edited == "same" { edited } else { "gone".to_owned() },
        |rest| rest.split_once(r#"}, "inferenceConfig""#).unwrap().0.to_owned(),
    )
}

#[test]
fn tools_of_the_provider_are_taken_out_and_tools_of_the_client_stay() {
    let point = r#"{"cachePoint":{"type":"default"}}"#;
    let unknown = r#"{"agentTool":{"name":"run"}}"#;
    let both = r#"{"toolSpec":{"name":"x"},"systemTool":{"name":"y"}}"#;
    for (list, expected) in [
        (SPEC.to_owned(), "same".to_owned()),
        (format!("{SPEC},{point}"), "same".to_owned()),
        (format!("{SPEC}, {SEARCH}"), format!("{SPEC}]")),
        (format!("{SEARCH}, {SPEC}, {point}"), format!("{SPEC}, {point}]")),
        (format!("{SEARCH},{point},{SPEC}"), format!("{SPEC}]")),
        (format!("{SPEC},{point},{SEARCH},{point}"), format!("{SPEC},{point}]")),
        (format!("{SPEC},{unknown}"), format!("{SPEC}]")),
        (format!("{both},{SPEC}"), format!("{SPEC}]")),
        (SEARCH.to_owned(), "gone".to_owned()),
        (format!("{SEARCH},{point}"), "gone".to_owned()),
    ] {
        assert_eq!(left(&list, ""), expected, "{list}");
        assert_eq!(outcome(CONVERSE, &tools(&list, "", ""), KEEP), "same");
        let refused = outcome(CONVERSE, &tools(&list, "", ""), REFUSE);
        assert_eq!(refused == "same", expected == "same", "{list}");
    }
}

#[test]
fn a_choice_of_a_tool_that_goes_is_left_to_the_model() {
    let list = format!("{SPEC},{SEARCH}");
    for (choice, expected) in [
        (r#","toolChoice":{"tool":{"name":"nova_grounding"}}"#, r#","toolChoice":{"auto":{}}"#),
        (r#","toolChoice":{"tool":{"name":"run"}}"#, r#","toolChoice":{"tool":{"name":"run"}}"#),
        (r#","toolChoice":{"any":{}}"#, r#","toolChoice":{"any":{}}"#),
    ] {
        assert_eq!(left(&list, choice), format!("{SPEC}]{expected}"));
        assert_eq!(left(SPEC, choice), "same");
    }
}

#[test]
fn a_conversation_with_calls_keeps_a_tool_that_is_not_available() {
    for block in [
        r#"{"toolUse":{"toolUseId":"1","name":"nova_grounding","input":{},"type":"server_tool_use"}}"#,
        r#"{"toolResult":{"toolUseId":"1","content":[{"text":"x"}]}}"#,
    ] {
        let message = format!(r#"{{"role":"user","content":[{block}]}}"#);
        let choice = r#","toolChoice":{"any":{}}"#;
        let edited = outcome(CONVERSE, &tools(SEARCH, choice, &message), STRIP);
        assert!(
            edited.contains(r#""toolConfig": {"tools":[{"toolSpec":{"name":"not_available""#),
            "{edited}"
        );
        assert!(!edited.contains("toolChoice") && edited.contains(block), "{edited}");
        assert_eq!(edited, outcome(CONVERSE, &tools(SEARCH, choice, &message), STRIP));
        assert_eq!(outcome(CONVERSE, &tools(SPEC, choice, &message), STRIP), "same");
    }
}

#[test]
fn fields_of_the_models_own_api_are_closed_like_that_api() {
    let with =
        |fields: &str| format!(r#"{{"messages":[],"additionalModelRequestFields":{fields},"system":[]}}"#);
    for (fields, expected) in [
        (r#"{"thinking":{"type":"enabled","budget_tokens":1024},"anthropic_beta":["x"],"top_k":1}"#, None),
        (r#"{"tools":[{"type":"bash_20250124","name":"bash"}]}"#, None),
        (r#"{"inferenceConfig":{"topK":20}}"#, None),
        (
            r#"{"tools":[{"type":"bash_20250124","name":"bash"},{"type":"web_search_20250305","name":"web_search"}]}"#,
            Some(r#"{"tools":[{"type":"bash_20250124","name":"bash"}]}"#),
        ),
        (
            r#"{"top_k":1,"tools":[{"type":"code_execution_20250825","name":"code_execution"}]}"#,
            Some(r#"{"top_k":1}"#),
        ),
        (
            r#"{"mcp_servers":[{"type":"url","url":"https://x","name":"x"}],"top_k":1}"#,
            Some(r#"{"top_k":1}"#),
        ),
        (r#"{"web_search_options":{},"top_k":1}"#, Some(r#"{"top_k":1}"#)),
    ] {
        let expected = expected.map_or_else(|| "same".to_owned(), with);
        assert_eq!(outcome(CONVERSE, &with(fields), STRIP), expected, "{fields}");
        assert_eq!(outcome(CONVERSE, &with(fields), KEEP), "same", "{fields}");
    }
}

#[test]
fn what_the_provider_would_fetch_is_asked_about() {
    let bytes = r#"{"bytes":"aGk="}"#;
    let bucket = r#"{"s3Location":{"uri":"s3://bucket/key"}}"#;
    for block in [
        r#"{"image":{"format":"png","source":SOURCE}}"#,
        r#"{"document":{"format":"pdf","name":"x","source":SOURCE}}"#,
        r#"{"video":{"format":"mp4","source":SOURCE}}"#,
        r#"{"audio":{"format":"mp3","source":SOURCE}}"#,
        r#"{"toolResult":{"toolUseId":"1","content":[{"image":{"format":"png","source":SOURCE}}]}}"#,
        r#"{"guardContent":{"image":{"format":"png","source":SOURCE}}}"#,
    ] {
        let body = |source| {
            format!(r#"{{"messages":[{{"role":"user","content":[{}]}}]}}"#, block.replace("SOURCE", source))
        };
        assert_eq!(outcome(CONVERSE, &body(bytes), STRIP), "same", "{block}");
        assert_eq!(outcome(CONVERSE, &body(bucket), KEEP), "same", "{block}");
        for source in [bucket, r#"{"url":"https://x"}"#, r#"{"bytes":null,"other":1}"#] {
            assert_eq!(outcome(CONVERSE, &body(source), STRIP), "policy", "{block}");
        }
    }
}

#[test]
fn changes_of_tools_inside_a_conversation_go_with_their_tool() {
    let body = |block: &str| {
        tools(&format!("{SPEC},{SEARCH}"), "", &format!(r#"{{"role":"system","content":[{block}]}}"#))
    };
    let plain = r#"{"text":"[postern] A change of tools was removed by policy."}"#;
    for (block, goes) in [
        (r#"{"toolAddition":{"tool":{"type":"tool_reference","name":"run"}}}"#, false),
        (r#"{"toolRemoval":{"tool":{"type":"tool_reference","name":"run"}}}"#, false),
        (r#"{"toolAddition":{"tool":{"type":"tool_reference","name":"nova_grounding"}}}"#, true),
        (r#"{"toolAddition":{"tool":{"type":"mcp_toolset_reference","serverName":"x"}}}"#, true),
        (r#"{"toolAddition":{"tool":{"name":"run","definition":{"type":"web_search_20250305"}}}}"#, true),
        (r#"{"toolAddition":{}}"#, true),
        (r#"{"toolDefinition":{"name":"run"}}"#, true),
        (r#"{"cachePoint":{"type":"default"}}"#, false),
    ] {
        let edited = outcome(CONVERSE, &body(block), STRIP);
        assert_eq!(edited.contains(plain), goes, "{block}: {edited}");
        assert_eq!(edited.contains(block), !goes, "{block}: {edited}");
        assert_eq!(outcome(CONVERSE, &body(block), KEEP), "same", "{block}");
    }
}

#[test]
fn stored_prompts_are_state_at_the_provider() {
    let arn = "arn%3Aaws%3Abedrock%3Aus-east-1%3A123456789012%3Aprompt%2FABCDEFGHIJ%3A1/converse";
    let variables = r#"{"promptVariables":{"a":{"text":"b"}}}"#;
    assert_eq!(outcome(arn, r#"{"messages":[]}"#, STRIP), "policy");
    assert_eq!(outcome(CONVERSE, variables, STRIP), "policy");
    assert_eq!(outcome(arn, variables, KEEP), "same");
    assert!(drafted(arn, variables, KEEP).unwrap().facts.writes);
    assert_eq!(outcome(CONVERSE, r#"{"promptVariables":null}"#, STRIP), "same");
}

#[test]
fn what_can_be_read_in_two_ways_is_refused() {
    let unparseable = "postern/builtin/unparseable";
    for body in [
        r#"{"toolConfig":{},"toolConfig":{}}"#,
        r#"{"toolConfig":{"tools":[],"tools":[]}}"#,
        r#"{"tool_config":{"tools":[]}}"#,
        r#"{"ToolConfig":{"tools":[]}}"#,
        r#"{"additional_model_request_fields":{}}"#,
        r#"{"toolConfig":{"tools":{"0":{}}}}"#,
        r#"{"toolConfig":{"tools":["x"]}}"#,
        r#"{"toolConfig":{"tools":[{"toolSpec":{}}]}}"#,
        r#"{"toolConfig":{"tools":[{"toolSpec":{"name":"x"},"toolSpec":{"name":"x"}}]}}"#,
        r#"{"messages":[{"content":[{"text":"a","text":"b"}]}]}"#,
        r#"{"additionalModelRequestFields":{"tools":[],"tools":[]}}"#,
        r#"{"additionalModelRequestFields":[]}"#,
        "[]",
    ] {
        assert_eq!(outcome(CONVERSE, body, STRIP), unparseable, "{body}");
        assert_eq!(outcome(CONVERSE, body, KEEP), unparseable, "{body}");
    }
    let plain = r#"{"messages":[{"role":"user","content":[{"text":"toolConfig"}]}],"toolConfig":null}"#;
    assert_eq!(outcome(CONVERSE, plain, STRIP), "same");
}

#[test]
fn a_request_says_its_model_its_way_and_its_tools() {
    let body = tools(&format!("{SPEC},{SEARCH}"), "", "");
    let facts = drafted("us.amazon.nova-2-lite-v1%3A0/converse-stream", &body, STRIP).unwrap().facts;
    assert_eq!(facts.model.as_deref(), Some("us.amazon.nova-2-lite-v1:0"));
    assert_eq!(facts.models, ["us.amazon.nova-2-lite-v1:0"]);
    assert!(facts.stream && facts.writes);
    let names: Vec<&str> = facts.tools.iter().map(|tool| tool.name.as_str()).collect();
    assert_eq!(names, ["run"]);
    assert_eq!(facts.tools[0].sha256.len(), 64);
    let kept = drafted(CONVERSE, &body, KEEP).unwrap().facts;
    assert_eq!(kept.tools.len(), 2);
    assert!(!kept.stream);
    let none = drafted(CONVERSE, r#"{"messages":[]}"#, STRIP).unwrap().facts;
    assert!(none.tools.is_empty() && !none.writes);
    let arn = "arn%3Aaws%3Abedrock%3Aus-east-1%3A1%3Aapplication-inference-profile%2Fa1b2/invoke";
    let facts =
        drafted(arn, r#"{"anthropic_version":"x","model":"other","messages":[]}"#, STRIP).unwrap().facts;
    assert_eq!(
        facts.model.as_deref(),
        Some("arn:aws:bedrock:us-east-1:1:application-inference-profile/a1b2")
    );
}

#[test]
fn the_body_of_invoke_is_read_as_its_models_api() {
    let arn = "arn:aws:bedrock:us-east-1:1:application-inference-profile%2Fa1b2";
    let search = r#"{"type":"web_search_20250305","name":"web_search"}"#;
    let bash = r#"{"type":"bash_20250124","name":"bash"}"#;
    let function = r#"{"type":"function","function":{"name":"run"}}"#;
    let claude = |tools: &str| {
        format!(r#"{{"anthropic_version":"bedrock-2023-05-31","messages":[],"tools":[{tools}]}}"#)
    };
    let chat = |tools: &str| format!(r#"{{"messages":[],"tools":[{tools}]}}"#);
    let nova = |tools: &str| {
        format!(r#"{{"schemaVersion":"messages-v1","messages":[],"toolConfig":{{"tools":[{tools}]}}}}"#)
    };
    let without_tools = r#"{"schemaVersion":"messages-v1","messages":[]}"#;
    let (same, refused) = ("same", "postern/builtin/unparseable");
    for (model, body, expected) in [
        ("anthropic.claude-v2", claude(bash), same),
        ("eu.anthropic.claude-sonnet-4", claude(&format!("{bash},{search}")), &claude(bash)),
        (arn, claude(&format!("{bash},{search}")), &claude(bash)),
        (arn, nova(SPEC), same),
        (arn, chat(function), same),
        (arn, chat(search), r#"{"messages":[]}"#),
        (arn, chat(bash), r#"{"messages":[]}"#),
        (arn, r#"{"anthropic_version":"x","toolConfig":{"tools":[]}}"#.to_owned(), refused),
        (arn, r#"{"schemaVersion":"x","tools":[]}"#.to_owned(), refused),
        ("us.amazon.nova-pro-v1%3A0", nova(SPEC), same),
        ("us.amazon.nova-pro-v1%3A0", nova(SEARCH), without_tools),
        ("us.amazon.nova-pro-v1%3A0", chat(function), refused),
        ("amazon.titan-text-express-v1", r#"{"inputText":"hi","textGenerationConfig":{}}"#.to_owned(), same),
        ("meta.llama3-70b", r#"{"prompt":"hi","max_gen_len":1}"#.to_owned(), same),
        ("openai.gpt-oss-120b-1%3A0", chat(function), same),
        (
            "openai.gpt-oss-120b-1%3A0",
            chat(r#"{"type":"mcp","server_url":"https://x"}"#),
            r#"{"messages":[]}"#,
        ),
        ("cohere.command-r-v1%3A0", r#"{"message":"hi","tools":[{"name":"x"}]}"#.to_owned(), refused),
        ("cohere.command-r-v1%3A0", r#"{"message":"hi","connectors":[{"id":"web"}]}"#.to_owned(), refused),
        ("cohere.command-r-v1%3A0", r#"{"message":"hi","documents":[]}"#.to_owned(), same),
        ("x.y", r#"{"a":1,"a":2}"#.to_owned(), refused),
        ("x.y", "[]".to_owned(), refused),
    ] {
        assert_eq!(outcome(&format!("{model}/invoke"), &body, STRIP), expected, "{model} {body}");
    }
    let image = |url| {
        format!(r#"{{"messages":[{{"content":[{{"type":"image_url","image_url":{{"url":"{url}"}}}}]}}]}}"#)
    };
    assert_eq!(outcome("x.y/invoke", &image("data:image/png;base64,aGk="), STRIP), same);
    assert_eq!(outcome("x.y/invoke", &image("https://x/y.png"), STRIP), "policy");
}

#[test]
fn what_tokens_are_counted_of_is_read_too() {
    use base64::Engine;
    use base64::prelude::BASE64_STANDARD;
    let path = "anthropic.claude-v2/count-tokens";
    let converse =
        |tools: &str| format!(r#"{{"input":{{"converse":{{"toolConfig":{{"tools":[{tools}]}}}}}}}}"#);
    assert_eq!(outcome(path, &converse(SPEC), STRIP), "same");
    assert_eq!(outcome(path, &converse(&format!("{SPEC},{SEARCH}")), STRIP), converse(SPEC));
    let invoke = |body: &str| {
        format!(r#"{{"input":{{"invokeModel":{{"body":"{}"}}}}}}"#, BASE64_STANDARD.encode(body))
    };
    let body = r#"{"anthropic_version":"x","messages":[],"tools":[{"name":"run"}]}"#;
    assert_eq!(outcome(path, &invoke(body), STRIP), "same");
    let with_search = body.replace("]}", r#",{"type":"web_search_20250305","name":"web_search"}]}"#);
    assert_eq!(outcome(path, &invoke(&with_search), STRIP), invoke(body));
    assert_eq!(drafted(path, &invoke(body), STRIP).unwrap().facts.tools[0].name, "run");
    for broken in [
        r#"{"input":{"invokeModel":{"body":"%"}}}"#,
        &invoke("{"),
        "{}",
        r#"{"input":{"converse":1,"converse":1}}"#,
    ] {
        assert_eq!(outcome(path, broken, STRIP), "postern/builtin/unparseable", "{broken}");
    }
}

#[test]
fn a_refusal_is_an_exception_of_aws() {
    let service = crate::call::Service {
        vendor: crate::call::Vendor::Bedrock,
        api: Api::Converse,
        dialect: Some(Dialect::Bedrock),
    };
    for (answer, status, kind) in [
        (DenialForm::Forbidden, 403, "AccessDeniedException"),
        (DenialForm::TooLarge, 400, "ValidationException"),
        (DenialForm::UnsupportedCoding, 400, "ValidationException"),
    ] {
        let said = Bedrock.refusal(&RefusalMessage { service, message: "no \"x\"", answer });
        assert_eq!(said.status, status);
        assert_eq!(said.headers, [("x-amzn-errortype", kind.to_owned())]);
        assert_eq!(said.body, format!(r#"{{"__type":"{kind}","message":"no \"x\""}}"#));
    }
}
