//! Tools that would run at the provider: every type that is known, those that nobody knows yet, and what policy says of them.

use super::requests::{
    CHAT, CONVERSE, DIALECTS, GEMINI, INVOKE, MESSAGES, Models, RESPONSES, Row, becomes, hosted_tool, models,
    models_with, offering, own_tool, policy, refused, reply, said, untouched,
};

/// What the agent runs in Anthropic Messages.
const ANTHROPIC_CLIENT: [&str; 14] = [
    r#"{"name":"a","input_schema":{}}"#,
    r#"{"type":null,"name":"b","input_schema":{}}"#,
    r#"{"type":"custom","name":"c","input_schema":{}}"#,
    r#"{"type":"bash_20241022","name":"bash"}"#,
    r#"{"type":"bash_20250124","name":"bash"}"#,
    r#"{"type":"text_editor_20241022","name":"str_replace_editor"}"#,
    r#"{"type":"text_editor_20250124","name":"str_replace_editor"}"#,
    r#"{"type":"text_editor_20250429","name":"str_replace_based_edit_tool"}"#,
    r#"{"type":"text_editor_20250728","name":"str_replace_based_edit_tool"}"#,
    r#"{"type":"computer_20250124","name":"computer"}"#,
    r#"{"type":"computer_20251124","name":"computer"}"#,
    r#"{"type":"memory_20250818","name":"memory"}"#,
    r#"{"type":"computer_toolset_20260801"}"#,
    r#"{"type":"browser_toolset_20260801"}"#,
];

/// What Anthropic runs, and types that it could come to run.
const ANTHROPIC_HOSTED: &str = "web_search_20250305 web_search_20260209 web_search_20260318 web_fetch_20250910 \
     web_fetch_20260209 web_fetch_20260309 web_fetch_20260318 code_execution_20250522 code_execution_20250825 \
     code_execution_20260120 code_execution_20260521 tool_search_tool_regex tool_search_tool_regex_20251119 \
     tool_search_tool_bm25 tool_search_tool_bm25_20251119 advisor_20260301 mcp_toolset \
     web_search_20991231 bash_20270101 text_editor computer_20241022x memory_2025081 Bash_20250124 CUSTOM custom_20270101 \
     browser_toolset tool_search advisor";

/// What the agent runs in Chat Completions.
const CHAT_CLIENT: [&str; 2] =
    [r#"{"type":"function","function":{"name":"a"}}"#, r#"{"type":"custom","custom":{"name":"b"}}"#];

/// What one vendor or another runs in Chat Completions, and types that none has yet.
const CHAT_HOSTED: &str = "web_search web_search_preview web_search_premium x_search code_interpreter code_execution \
     file_search collections_search image_generation view_image view_x_video mcp browser_search document_library connector \
     builtin_function retrieval openrouter:web_search openrouter:web_fetch openrouter:datetime openrouter:image_generation \
     openrouter:bash openrouter:shell openrouter:apply_patch openrouter:text_editor openrouter:files openrouter:file_search \
     openrouter:code_interpreter openrouter:mcp openrouter:memory openrouter:browser_use openrouter:tool_search \
     openrouter:subagent openrouter:advisor openrouter:fusion openrouter:experimental__search_models \
     Function function_v2 custom_2027 time_travel";

/// What the agent runs in Responses.
const RESPONSES_CLIENT: [&str; 9] = [
    r#"{"type":"function","name":"a"}"#,
    r#"{"type":"custom","name":"b"}"#,
    r#"{"type":"apply_patch"}"#,
    r#"{"type":"local_shell"}"#,
    r#"{"type":"computer"}"#,
    r#"{"type":"computer_use_preview","environment":"browser"}"#,
    r#"{"type":"namespace","name":"n","tools":[{"type":"function","name":"c"}]}"#,
    r#"{"type":"shell","environment":{"type":"local"}}"#,
    r#"{"type":"tool_search","execution":"client"}"#,
];

/// What OpenAI or xAI runs in Responses, and what nobody knows yet.
const RESPONSES_HOSTED: &str = "web_search web_search_2025_08_26 web_search_preview web_search_preview_2025_03_11 \
     file_search code_interpreter image_generation mcp programmatic_tool_calling shell tool_search x_search code_execution \
     collections_search view_image view_x_video web_search_2027_01_01 local_shell_v2 Function namespaces";

/// The same, by more than their type.
const RESPONSES_CONDITIONAL: [&str; 6] = [
    r#"{"type":"shell","environment":{"type":"container_auto"}}"#,
    r#"{"type":"shell","environment":{"type":"container_reference","container_id":"cntr_1"}}"#,
    r#"{"type":"shell","environment":null}"#,
    r#"{"type":"shell","environment":{"type":"Local"}}"#,
    r#"{"type":"tool_search","execution":"server"}"#,
    r#"{"type":"namespace","name":"n","tools":[{"type":"web_search"}]}"#,
];

/// What Google runs, and a field that it could add.
const GEMINI_HOSTED: &str = "googleSearch googleSearchRetrieval googleMaps urlContext codeExecution fileSearch retrieval \
     enterpriseWebSearch parallelAiSearch exaAiSearch mcpServers timeTravel google_search google_search_retrieval google_maps \
     url_context code_execution file_search enterprise_web_search parallel_ai_search exa_ai_search mcp_servers time_travel";

/// Tools of this type, one after each that the agent runs itself.
fn among(client: &[&str], hosted: &[String]) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    for number in 0..client.len().max(hosted.len()) {
        all.extend(client.get(number).map(|tool| (*tool).to_owned()));
        all.extend(hosted.get(number).cloned());
    }
    all
}

/// Asserts that of these tools the agent's own are left, that the rest is told by its types, and that each alone goes too.
#[track_caller]
fn assert_client_tools_alone_stay(
    test: &Models,
    door: &'static str,
    client: &[&str],
    hosted: &[(&str, String)],
) {
    let tools: Vec<String> = hosted.iter().map(|(_, tool)| tool.clone()).collect();
    let all = among(client, &tools);
    let all: Vec<&str> = all.iter().map(String::as_str).collect();
    let (sent, left) = (offering(door, &all), offering(door, client));
    let seen = test.post(door, &sent);
    let told = test.event_of(&seen, "Transform", "Allow");
    for (tool_type, _) in hosted {
        let is_told =
            |entry: &serde_json::Value| entry["name"] == "hosted-tool" && entry["detail"] == *tool_type;
        assert!(told["transforms"].as_array().unwrap().iter().any(is_told), "{tool_type}: {told}");
    }
    test.assert_rows(&[
        becomes(door, sent, left.clone()),
        untouched(door, left),
        refused(door, offering(door, &[&tools[0]]), "hosted-tools"),
    ]);
}

fn of_types(types: &'static str, tool: impl Fn(&str) -> String) -> Vec<(&'static str, String)> {
    types.split_whitespace().map(|tool_type| (tool_type, tool(tool_type))).collect()
}

/// E7: every type that Anthropic runs is taken out of a request, and every one that is not known; the agent's stay.
#[test]
fn of_anthropics_tools_those_of_the_client_stay() {
    let test = models("");
    let hosted = of_types(ANTHROPIC_HOSTED, |kind| format!(r#"{{"type":"{kind}","name":"x_{kind}"}}"#));
    for door in [MESSAGES, INVOKE] {
        assert_client_tools_alone_stay(&test, door, &ANTHROPIC_CLIENT, &hosted);
    }
}

/// E7: of Chat Completions, functions and custom tools stay, whatever vendors add to it.
#[test]
fn of_chats_tools_those_of_the_client_stay() {
    let test = models("");
    let hosted = of_types(CHAT_HOSTED, |kind| format!(r#"{{"type":"{kind}"}}"#));
    let openrouter = "openrouter.ai/api/v1/chat/completions";
    for door in
        [CHAT, openrouter, "api.groq.com/openai/v1/chat/completions", "api.mistral.ai/v1/chat/completions"]
    {
        assert_client_tools_alone_stay(&test, door, &CHAT_CLIENT, &hosted);
    }
    // What can be nothing else needs no type; what could be, has none that is known.
    let alone = r#"{"function":{"name":"weather","parameters":{"type":"object"}}}"#;
    let chosen =
        said(CHAT, &format!(r#""tools":[{alone}],"tool_choice":{{"function":{{"name":"weather"}}}},"#));
    test.assert_rows(&[
        untouched(CHAT, chosen),
        becomes(CHAT, offering(CHAT, &[alone, r#"{"type":"web_search"}"#]), offering(CHAT, &[alone])),
        refused(CHAT, offering(CHAT, &[r#"{"function":{"name":"a"},"web_search":{}}"#]), "unparseable"),
        refused(CHAT, offering(CHAT, &[r#"{"type":null,"web_search":{"name":"a"}}"#]), "unparseable"),
        refused(CHAT, offering(CHAT, &[r#"{"function":"a"}"#]), "unparseable"),
    ]);
}

/// E7: of Responses, what the client runs stays; a shell or a search of tools only where it says that the client does.
#[test]
fn of_responses_tools_those_of_the_client_stay() {
    let test = models("");
    let mut hosted = of_types(RESPONSES_HOSTED, |kind| format!(r#"{{"type":"{kind}"}}"#));
    let types = ["shell", "shell", "shell", "shell", "tool_search", "web_search"];
    hosted.extend(types.into_iter().zip(RESPONSES_CONDITIONAL.map(str::to_owned)));
    assert_client_tools_alone_stay(&test, RESPONSES, &RESPONSES_CLIENT, &hosted);
    test.assert_rows(&[becomes(
        RESPONSES,
        offering(RESPONSES, &[r#"{"type":"namespace","name":"n","tools":[{"type":"mcp","server_label":"s"},{"type":"function","name":"c"}]}"#]),
        offering(RESPONSES, &[r#"{"type":"namespace","name":"n","tools":[{"type":"function","name":"c"}]}"#]),
    )]);
}

/// E7: of Gemini's fields, declarations and computer use stay, in either spelling; an object loses a field, not its others.
#[test]
fn of_geminis_tools_those_of_the_client_stay() {
    let test = models("");
    let client = [
        r#"{"functionDeclarations":[{"name":"a"}]}"#,
        r#"{"function_declarations":[{"name":"b"}]}"#,
        r#"{"computerUse":{"environment":"ENVIRONMENT_BROWSER"}}"#,
        r#"{"computer_use":{"environment":"ENVIRONMENT_BROWSER"}}"#,
    ];
    let (camel, snake): (Vec<_>, Vec<_>) = of_types(GEMINI_HOSTED, |field| format!(r#"{{"{field}":{{}}}}"#))
        .into_iter()
        .partition(|(field, _)| !field.contains('_'));
    assert_client_tools_alone_stay(&test, GEMINI, &client, &camel);
    // One name in events, however it was spelled.
    let snake: Vec<_> =
        snake.into_iter().enumerate().map(|(at, (_, tool))| (camel_of(at, &camel), tool)).collect();
    assert_client_tools_alone_stay(&test, GEMINI, &client, &snake);
    test.assert_rows(&[becomes(
        GEMINI,
        offering(GEMINI, &[r#"{"googleSearch":{},"functionDeclarations":[{"name":"a"}],"url_context":{}}"#]),
        offering(GEMINI, &[r#"{"functionDeclarations":[{"name":"a"}]}"#]),
    )]);
}

/// The name in camelCase of the field that is spelled with underscores at this place.
fn camel_of<'t>(at: usize, camel: &[(&'t str, String)]) -> &'t str {
    let spelled: Vec<&str> = GEMINI_HOSTED.split_whitespace().filter(|field| field.contains('_')).collect();
    let plain = spelled[at].replace('_', "");
    camel.iter().find(|(field, _)| field.eq_ignore_ascii_case(&plain)).unwrap().0
}

/// E7: of Converse, `toolSpec` stays; every other member is Amazon's.
#[test]
fn of_converses_tools_those_of_the_client_stay() {
    let test = models("");
    let client = [
        r#"{"toolSpec":{"name":"a","inputSchema":{"json":{}}}}"#,
        r#"{"toolSpec":{"name":"b","inputSchema":{"json":{}}}}"#,
    ];
    let system = |name: &str| format!(r#"{{"systemTool":{{"name":"{name}"}}}}"#);
    let hosted = [
        ("nova_grounding", system("nova_grounding")),
        ("nova_code_interpreter", system("nova_code_interpreter")),
        ("nova_of_next_month", system("nova_of_next_month")),
        ("quantumTool", r#"{"quantumTool":{"name":"q"}}"#.to_owned()),
        ("ToolSpec", r#"{"ToolSpec":{"name":"c"}}"#.to_owned()),
    ];
    assert_client_tools_alone_stay(&test, CONVERSE, &client, &hosted);
    let point = r#"{"cachePoint":{"type":"default"}}"#;
    test.assert_rows(&[becomes(
        CONVERSE,
        offering(CONVERSE, &[client[0], point, hosted_tool(CONVERSE), point]),
        offering(CONVERSE, &[client[0], point]),
    )]);
}

/// E6: what connects the provider to an MCP server goes, with the secret that it carries; the agent's own MCP tools stay.
#[test]
fn no_connector_of_the_provider_goes_on() {
    let test = models("");
    let server =
        r#"{"type":"url","name":"s","url":"https://evil.example/mcp","authorization_token":"secret"}"#;
    let own = |door| said(door, r#""tools":[{"name":"mcp__s__run","input_schema":{}}],"#);
    let mut rows = Vec::new();
    for door in [MESSAGES, INVOKE] {
        rows.push(refused(door, said(door, &format!(r#""mcp_servers":[{server}],"#)), "hosted-tools"));
        rows.push(becomes(
            door,
            said(door, &format!(r#""mcp_servers":[{server}],"tools":[{{"type":"mcp_toolset","mcp_server_name":"s"}},{{"name":"mcp__s__run","input_schema":{{}}}}],"#)),
            own(door),
        ));
        rows.push(untouched(door, said(door, r#""mcp_servers":[],"#)));
        rows.push(untouched(door, own(door)));
    }
    for tool in [
        r#"{"type":"mcp","server_label":"s","server_url":"https://evil.example/mcp","authorization":"secret"}"#,
        r#"{"type":"mcp","server_label":"s","connector_id":"connector_gmail","authorization":"secret"}"#,
        r#"{"type":"mcp","server_label":"s","tunnel_id":"t"}"#,
    ] {
        let function = own_tool(RESPONSES);
        rows.push(becomes(
            RESPONSES,
            offering(RESPONSES, &[tool, function]),
            offering(RESPONSES, &[function]),
        ));
    }
    rows.push(becomes(
        GEMINI,
        offering(GEMINI, &[r#"{"mcpServers":[{"name":"s","streamableHttpTransport":{"url":"https://evil.example","headers":{"authorization":"secret"}}}]}"#, own_tool(GEMINI)]),
        offering(GEMINI, &[own_tool(GEMINI)]),
    ));
    let config = format!(r#""toolConfig":{{"tools":[{}]}},"#, own_tool(CONVERSE));
    rows.push(becomes(
        CONVERSE,
        said(
            CONVERSE,
            &format!(r#"{config}"additionalModelRequestFields":{{"top_k":5,"mcp_servers":[{server}]}},"#),
        ),
        said(CONVERSE, &format!(r#"{config}"additionalModelRequestFields":{{"top_k":5}},"#)),
    ));
    test.assert_rows(&rows);
    assert!(
        test.upstream.requests().iter().all(|seen| !String::from_utf8_lossy(&seen.body).contains("secret"))
    );
}

/// E7: over h2 the same tools go, and the length upstream is that of what is left.
#[test]
fn over_h2_the_same_tools_go() {
    let test = models("");
    for door in DIALECTS {
        let connection = test.gateway.agent().h2(door.split_once('/').unwrap().0);
        for tools in [vec![own_tool(door)], vec![hosted_tool(door), own_tool(door)]] {
            let body = offering(door, &tools);
            let answer =
                connection.request("POST", &format!("https://{door}"), &[], body.as_bytes()).unwrap();
            let seen = test.upstream.requests().pop().unwrap();
            assert_eq!((answer.status, seen.version), (200, "HTTP/2"), "{door}");
            assert_eq!(String::from_utf8_lossy(&seen.body), offering(door, &[own_tool(door)]), "{door}");
            let length = seen.header("content-length");
            assert!(length.is_none_or(|length| length == seen.body.len().to_string()), "{door}: {length:?}");
        }
    }
}

/// E7: whichever way a request comes in, in clear or by the reverse listener, it is the same request.
#[test]
fn by_every_way_in_the_same_tools_go() {
    let script = |seen: &crate::support::upstream::Seen| reply(seen.path());
    let test = models_with("", script, |setup| setup.reverse("https://api.anthropic.com"));
    let (own, hosted) = (own_tool(MESSAGES), hosted_tool(MESSAGES));
    let mut connection = test.gateway.reverse();
    for tools in [vec![own], vec![hosted, own]] {
        let body = offering(MESSAGES, &tools);
        connection.send(format!(
            "POST /v1/messages HTTP/1.1\r\nHost: localhost\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        ));
        assert_eq!(connection.read_answer().status, 200);
        let seen = test.upstream.requests().pop().unwrap();
        assert_eq!(String::from_utf8_lossy(&seen.body), offering(MESSAGES, &[own]));
    }

    // No server here speaks in clear: what is refused is refused before it is asked, and what is not meets nobody.
    let denying = models("hostedTools: {action: Deny}");
    let ask = |tools: &[&str]| {
        let url = "http://api.anthropic.com/v1/messages";
        denying.gateway.agent().request("POST", url, &[], offering(MESSAGES, tools).as_bytes())
    };
    ask(&[hosted, own]).assert_refused_by_provider("agents/test/hostedTools");
    assert_eq!(ask(&[own]).status, 502);
}

/// E7: where policy denies hosted tools, a request that offers one is refused rather than edited.
#[test]
fn a_hosted_tool_is_refused_where_policy_denies_it() {
    let test = models("hostedTools: {action: Deny, allow: [web_fetch_20250910]}");
    let mut rows: Vec<Row> = Vec::new();
    for door in DIALECTS {
        rows.push(refused(
            door,
            offering(door, &[own_tool(door), hosted_tool(door)]),
            "agents/test/hostedTools",
        ));
        rows.push(untouched(door, offering(door, &[own_tool(door)])));
    }
    let listed = r#"{"type":"web_fetch_20250910","name":"web_fetch"}"#;
    rows.push(untouched(MESSAGES, offering(MESSAGES, &[listed])));
    rows.push(refused(
        MESSAGES,
        offering(MESSAGES, &[listed, hosted_tool(MESSAGES)]),
        "agents/test/hostedTools",
    ));
    test.assert_rows(&rows);
}

/// E7: a request whose only tools the provider would run is refused with its reason: without them the model would invent
/// what they find.
#[test]
fn a_request_for_hosted_tools_alone_is_refused_with_its_reason() {
    let test = models("");
    let mut rows: Vec<Row> = Vec::new();
    for door in DIALECTS {
        rows.push(refused(door, offering(door, &[hosted_tool(door)]), "hosted-tools"));
        rows.push(untouched(door, said(door, "")));
        rows.push(untouched(door, offering(door, &[own_tool(door)])));
    }
    rows.push(refused(
        MESSAGES,
        said(MESSAGES, &format!(r#""tools":[{}],"tool_choice":{{"type":"any"}},"#, hosted_tool(MESSAGES))),
        "hosted-tools",
    ));
    test.assert_rows(&rows);
    let answer = test.post(MESSAGES, offering(MESSAGES, &[hosted_tool(MESSAGES)])).answer;
    assert!(answer.text().contains("the model would invent its results"), "{}", answer.text());

    let strip = models("hostedTools: {action: Strip}");
    strip.assert_rows(&[refused(CHAT, offering(CHAT, &[hosted_tool(CHAT)]), "agents/test/hostedTools")]);
}

/// The conversation of an agent that has called a tool of its own, with these entries before it.
fn conversation(door: &str, entries: &str) -> String {
    let version = match door {
        INVOKE => r#""anthropic_version":"bedrock-2023-05-31""#,
        _ => r#""model":"m""#,
    };
    match door {
        CHAT => format!(
            r#"{{"model":"m",{entries}"messages":[{{"role":"user","content":"go"}},{{"role":"assistant","tool_calls":[{{"id":"c1","type":"function","function":{{"name":"look_up","arguments":"{{}}"}}}}]}},{{"role":"tool","tool_call_id":"c1","content":"x"}}]}}"#
        ),
        RESPONSES => format!(
            r#"{{"model":"m","store":false,{entries}"input":[{{"role":"user","content":"go"}},{{"type":"function_call","call_id":"c1","name":"look_up","arguments":"{{}}"}},{{"type":"function_call_output","call_id":"c1","output":"x"}}]}}"#
        ),
        GEMINI => format!(
            r#"{{{entries}"contents":[{{"role":"user","parts":[{{"text":"go"}}]}},{{"role":"model","parts":[{{"functionCall":{{"name":"look_up","args":{{}}}}}}]}},{{"role":"user","parts":[{{"functionResponse":{{"name":"look_up","response":{{}}}}}}]}}]}}"#
        ),
        CONVERSE => format!(
            r#"{{{entries}"messages":[{{"role":"user","content":[{{"text":"go"}}]}},{{"role":"assistant","content":[{{"toolUse":{{"toolUseId":"t1","name":"look_up","input":{{}}}}}}]}},{{"role":"user","content":[{{"toolResult":{{"toolUseId":"t1","content":[{{"text":"x"}}]}}}}]}}]}}"#
        ),
        _ => format!(
            r#"{{{version},{entries}"messages":[{{"role":"user","content":"go"}},{{"role":"assistant","content":[{{"type":"tool_use","id":"t1","name":"look_up","input":{{}}}}]}},{{"role":"user","content":[{{"type":"tool_result","tool_use_id":"t1","content":"x"}}]}}]}}"#
        ),
    }
}

/// E7: hosted tools that the model does not miss are taken out as ever: the client's are known to the conversation, none
/// may be called, tokens are counted, or a conversation is made shorter.
#[test]
fn hosted_tools_that_are_not_missed_are_taken_out() {
    let test = models("");
    let stub = r#""toolConfig":{"tools":[{"toolSpec":{"name":"not_available","description":"Not available here. Do not call it.","inputSchema":{"json":{"type":"object","properties":{}}}}}]},"#;
    let mut rows: Vec<Row> = Vec::new();
    for door in DIALECTS {
        let hosted = match door {
            CONVERSE => format!(r#""toolConfig":{{"tools":[{}]}},"#, hosted_tool(door)),
            _ => format!(r#""tools":[{}],"#, hosted_tool(door)),
        };
        let left = if door == CONVERSE { stub } else { "" };
        rows.push(becomes(door, conversation(door, &hosted), conversation(door, left)));
    }
    let none = |door, choice: &str| said(door, &format!(r#""tools":[{}],{choice}"#, hosted_tool(door)));
    let count = "api.anthropic.com/v1/messages/count_tokens";
    rows.extend([
        becomes(MESSAGES, none(MESSAGES, r#""tool_choice":{"type":"none"},"#), said(MESSAGES, "")),
        becomes(CHAT, none(CHAT, r#""tool_choice":"none","#), said(CHAT, "")),
        becomes(
            RESPONSES,
            none(RESPONSES, r#""tool_choice":"none","#),
            said(RESPONSES, r#""tool_choice":"none","#),
        ),
        becomes(count, offering(MESSAGES, &[hosted_tool(MESSAGES)]), said(MESSAGES, "")),
        becomes(
            "api.openai.com/v1/responses/input_tokens",
            offering(RESPONSES, &[hosted_tool(RESPONSES)]),
            said(RESPONSES, ""),
        ),
        becomes(
            "api.openai.com/v1/responses/compact",
            offering(RESPONSES, &[hosted_tool(RESPONSES)]),
            said(RESPONSES, ""),
        ),
    ]);
    test.assert_rows(&rows);
}

/// E7: where policy allows all hosted tools, or some by their types, those go on as they are, and the others do not.
#[test]
fn a_hosted_tool_stays_where_policy_allows_it() {
    let all = models("hostedTools: {action: Allow}");
    let rows: Vec<Row> = DIALECTS
        .iter()
        .map(|door| untouched(door, offering(door, &[own_tool(door), hosted_tool(door)])))
        .collect();
    all.assert_rows(&rows);

    let some = models(
        "hostedTools: {action: Strip, allow: ['web_search*', google_search, googleSearch, nova_grounding, openrouter:mcp]}",
    );
    let (search, code) =
        (hosted_tool(MESSAGES), r#"{"type":"code_execution_20250825","name":"code_execution"}"#);
    let mut rows: Vec<Row> = DIALECTS
        .iter()
        .map(|door| untouched(door, offering(door, &[own_tool(door), hosted_tool(door)])))
        .collect();
    rows.extend([
        becomes(MESSAGES, offering(MESSAGES, &[search, code]), offering(MESSAGES, &[search])),
        becomes(
            RESPONSES,
            offering(RESPONSES, &[r#"{"type":"web_search"}"#, r#"{"type":"file_search"}"#]),
            offering(RESPONSES, &[r#"{"type":"web_search"}"#]),
        ),
        becomes(
            GEMINI,
            offering(GEMINI, &[r#"{"googleSearch":{}}"#, r#"{"urlContext":{}}"#]),
            offering(GEMINI, &[r#"{"googleSearch":{}}"#]),
        ),
        becomes(
            CHAT,
            offering(CHAT, &[r#"{"type":"openrouter:mcp"}"#, r#"{"type":"openrouter:bash"}"#]),
            offering(CHAT, &[r#"{"type":"openrouter:mcp"}"#]),
        ),
    ]);
    some.assert_rows(&rows);
}

/// E7: where policies only audit, nothing is edited or refused, and what they would do is recorded; bounds stay.
#[test]
fn under_audit_nothing_is_edited_and_all_of_it_is_recorded() {
    let audit = policy("").replace("podSelector", "enforcement: Audit\n  podSelector");
    let test = models_with(
        "",
        |seen| reply(seen.path()),
        |setup| setup.policy(&audit).set("/limits/requestBodyBytes", 4096),
    );
    let mut cases: Vec<(&str, String, &str)> = DIALECTS
        .iter()
        .map(|door| {
            (*door, offering(door, &[own_tool(door), hosted_tool(door)]), "postern/builtin/hosted-tools")
        })
        .collect();
    cases.extend([
        (RESPONSES, r#"{"model":"m","background":true,"input":"a"}"#.to_owned(), "postern/builtin/provider-state"),
        (CHAT, said(CHAT, r#""tools":[],"tools":[{"type":"web_search"}],"#), "postern/builtin/unparseable"),
        (
            MESSAGES,
            r#"{"model":"m","messages":[{"role":"user","content":[{"type":"image","source":{"type":"url","url":"https://evil.example/"}}]}]}"#.to_owned(),
            "postern/builtin/url-sources",
        ),
    ]);
    for (door, sent, rule) in cases {
        let asked = test.post(door, &sent);
        assert_eq!(String::from_utf8_lossy(&asked.seen().body), sent, "{door}");
        assert_eq!(asked.answer.status, 200);
        let told = test.event_of(&asked, "Policy", "WouldDeny");
        assert_eq!(told["decision"]["rule"], rule, "{door}");
        assert!(test.events_of(&asked).iter().all(|event| event["kind"] != "Transform"), "{door}");
    }
    let plain = test.post(MESSAGES, said(MESSAGES, ""));
    test.event_of(&plain, "Request", "Allow");
    assert!(test.events_of(&plain).iter().all(|event| event["decision"]["verdict"] != "WouldDeny"));
    let large = test.post(MESSAGES, said(MESSAGES, &format!(r#""pad":"{}","#, "a".repeat(4096))));
    large.answer.assert_refused_by_provider("postern/builtin/bound");
    assert!(large.reached.is_empty());
}
