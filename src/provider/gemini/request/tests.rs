//! Requests as they go on: what is asked about, what is taken out, what is refused, and what each says of itself.

use super::*;
use crate::call::{
    Api, CallVerdict, Change, Denial, Dialect, HostedAction, HostedToolVerdict, Judgement, Service, Terms,
    Vendor,
};
use crate::provider::adapter::ModelRequestHead;
use crate::provider::request::EditedRequest;
use crate::wire::json::{Document, Limits};

/// Returns the same about every hosted tool but `googleMaps`, which stays.
struct Says {
    hosted: HostedAction,
    allows: bool,
}

const STRIP: Says = Says { hosted: HostedAction::Strip, allows: false };
const REFUSE: Says = Says { hosted: HostedAction::Refuse, allows: false };
const ALLOW: Says = Says { hosted: HostedAction::Keep, allows: true };

impl Says {
    fn judged(allows: bool) -> Judgement {
        let allowed = CallVerdict::allowed().decision;
        let decision = if allows { allowed } else { Denial::builtin("test", "said by a test").decision };
        Judgement { decision, audited: None }
    }
}

impl Terms for Says {
    fn hosted_tool(&self, tool_type: &str) -> HostedToolVerdict {
        let action = if tool_type == "googleMaps" { HostedAction::Keep } else { self.hosted };
        let decision = Self::judged(action == HostedAction::Keep).decision;
        HostedToolVerdict { action, decision, audited: None }
    }

    fn provider_state(&self) -> Judgement {
        Self::judged(self.allows)
    }

    fn url_sources(&self) -> Judgement {
        Self::judged(self.allows)
    }

    fn may_edit(&self) -> bool {
        true
    }
}

const GENERATE: &str = "/v1beta/models/gemini-3-pro:generateContent";
const CODE_ASSIST: &str = "/v1internal:streamGenerateContent";

fn drafted(path: &str, body: &str, terms: &Says) -> Result<EditedRequest, String> {
    let document = Document::parse(body.as_bytes(), Limits::default()).unwrap();
    let mut editor = RequestEditor::new(&document, terms);
    let service =
        Service { vendor: Vendor::Gemini, api: Api::GenerateContent, dialect: Some(Dialect::Gemini) };
    let head = ModelRequestHead { service, path, query: Some("alt=sse"), is_subscription: false };
    match read(&head, &mut editor) {
        Ok(()) => Ok(editor.finish()),
        Err(denial) => Err(denial.decision.reason.unwrap_or_default().into_owned()),
    }
}

/// The body as it goes on.
fn sent(path: &str, body: &str, terms: &Says) -> String {
    match drafted(path, body, terms) {
        Ok(drafted) => drafted.body.map_or_else(|| body.to_owned(), |body| String::from_utf8(body).unwrap()),
        Err(reason) => format!("refused: {reason}"),
    }
}

/// The same request with the fields in snake_case.
fn snake(body: &str) -> String {
    let names = [
        "functionDeclarations",
        "functionCallingConfig",
        "allowedFunctionNames",
        "includeServerSideToolInvocations",
        "retrievalConfig",
        "googleSearch",
        "googleMaps",
        "codeExecution",
        "urlContext",
        "computerUse",
        "toolConfig",
        "cachedContent",
        "systemInstruction",
        "fileData",
        "fileUri",
        "functionResponse",
        "continuationToken",
        "automaticContinuation",
        "generateContentRequest",
    ];
    names.iter().fold(body.to_owned(), |body, name| {
        let spelled: String = name
            .chars()
            .flat_map(|c| c.is_uppercase().then_some('_').into_iter().chain(c.to_lowercase()))
            .collect();
        body.replace(&format!("\"{name}\""), &format!("\"{spelled}\""))
    })
}

const DECLARED: &str = r#"{"functionDeclarations": [{"name": "run"}]}"#;

#[test]
fn tools_of_the_provider_are_taken_out_field_by_field() {
    let table = [
        // Nothing is left: the key goes.
        (r#"{"contents":[] , "tools":[{"googleSearch":{}}]}"#, r#"{"contents":[]}"#),
        (r#"{"tools":[{"googleSearch":{}},{"codeExecution":{}}], "contents":[]}"#, r#"{"contents":[]}"#),
        (r#"{"tools":{"urlContext":{}},"contents":[]}"#, r#"{"contents":[]}"#),
        (r#"{"tools":[{},{"googleSearch":{}}],"contents":[]}"#, r#"{"contents":[]}"#),
        // Several in one object.
        (
            r#"{"tools":[{"googleSearch":{}, "functionDeclarations": [{"name": "run"}]}],"contents":[]}"#,
            r#"{"tools":[{"functionDeclarations": [{"name": "run"}]}],"contents":[]}"#,
        ),
        (
            r#"{"tools":[{"computerUse":{"environment":1},"mcpServers":[{"name":"x"}]} , {"exaAiSearch":{}}]}"#,
            r#"{"tools":[{"computerUse":{"environment":1}}]}"#,
        ),
        // What nobody knows is the provider's.
        (r#"{"tools":[{"googleMaps":{},"newTool2027":{"x":1}}]}"#, r#"{"tools":[{"googleMaps":{}}]}"#),
        (r#"{"tools":[{"googleMaps":{},"FunctionDeclarations":[]}]}"#, r#"{"tools":[{"googleMaps":{}}]}"#),
        (r#"{"tools":[{"googleMaps":{},"google\u0053earch":{}}]}"#, r#"{"tools":[{"googleMaps":{}}]}"#),
    ];
    for (body, edited) in table {
        assert_eq!(sent(GENERATE, body, &STRIP), edited);
        assert_eq!(sent(GENERATE, &snake(body), &STRIP), snake(edited));
        assert!(sent(GENERATE, body, &REFUSE).starts_with("refused: said by a test"), "{body}");
        assert_eq!(sent(GENERATE, body, &ALLOW), body);
    }
    let kept = [
        r#"{"contents":[{"parts":[{"text":"googleSearch"}]}],"tools":[]}"#,
        r#"{"tools":null,"toolConfig":{"functionCallingConfig":{"mode":"NONE"}}}"#,
        r#"{"tools":[{"googleSearch":null,"functionDeclarations":[{"name":"googleSearch"}]},{}]}"#,
        r#"{"tools":[{"computerUse":{}}],"unknown":1e400}"#,
    ];
    for body in kept {
        assert_eq!(sent(GENERATE, body, &REFUSE), body);
        assert_eq!(sent(GENERATE, &snake(body), &REFUSE), snake(body));
    }
}

#[test]
fn the_configuration_of_tools_follows_them() {
    let table = [
        // No function is declared.
        (
            r#"{"tools":[{"googleSearch":{}}],"toolConfig":{"functionCallingConfig":{"mode":"AUTO"}},"contents":[]}"#.to_owned(),
            r#"{"contents":[]}"#.to_owned(),
        ),
        (
            r#"{"tools":[{"codeExecution":{}},{"googleMaps":{}}],"toolConfig":{"functionCallingConfig":{}, "retrievalConfig":{"languageCode":"de"}}}"#.to_owned(),
            r#"{"tools":[{"googleMaps":{}}],"toolConfig":{"retrievalConfig":{"languageCode":"de"}}}"#.to_owned(),
        ),
        // The provider's tools are gone.
        (
            format!(r#"{{"tools":[{{"googleSearch":{{}}}},{DECLARED}],"toolConfig":{{"includeServerSideToolInvocations":true,"functionCallingConfig":{{"mode":"ANY"}},"retrievalConfig":{{}}}}}}"#),
            format!(r#"{{"tools":[{DECLARED}],"toolConfig":{{"functionCallingConfig":{{"mode":"ANY"}}}}}}"#),
        ),
        (
            format!(r#"{{"tools":[{{"googleSearch":{{}}}},{DECLARED}],"toolConfig":{{"includeServerSideToolInvocations":true}}}}"#),
            format!(r#"{{"tools":[{DECLARED}]}}"#),
        ),
        // Names that nothing declares.
        (
            format!(r#"{{"tools":[{{"googleSearch":{{}}}},{DECLARED}],"toolConfig":{{"functionCallingConfig":{{"allowedFunctionNames":["x", "run"]}}}}}}"#),
            format!(r#"{{"tools":[{DECLARED}],"toolConfig":{{"functionCallingConfig":{{"allowedFunctionNames":["run"]}}}}}}"#),
        ),
        (
            format!(r#"{{"tools":[{{"googleSearch":{{}}}},{DECLARED}],"toolConfig":{{"functionCallingConfig":{{"mode":"ANY","allowedFunctionNames":["x"]}}}}}}"#),
            format!(r#"{{"tools":[{DECLARED}],"toolConfig":{{"functionCallingConfig":{{"mode":"ANY"}}}}}}"#),
        ),
        // Nothing is taken out, and nothing follows.
        (
            format!(r#"{{"tools":[{{"googleMaps":{{}}}},{DECLARED}],"toolConfig":{{"functionCallingConfig":{{"allowedFunctionNames":["x"]}}}}}}"#),
            format!(r#"{{"tools":[{{"googleMaps":{{}}}},{DECLARED}],"toolConfig":{{"functionCallingConfig":{{"allowedFunctionNames":["x"]}}}}}}"#),
        ),
    ];
    for (body, edited) in &table {
        assert_eq!(sent(GENERATE, body, &STRIP), *edited);
        assert_eq!(sent(GENERATE, &snake(body), &STRIP), snake(edited));
    }
}

#[test]
fn what_was_taken_out_is_said() {
    let body = r#"{"tools":[{"google_search":{},"codeExecution":{}}],"tool_config":{"functionCallingConfig":{}},"store":true}"#;
    let drafted = drafted(GENERATE, body, &STRIP).unwrap();
    let hosted = |name: &str| Change::HostedTool(name.to_owned());
    let expected = [
        Change::Other("store"),
        hosted("googleSearch"),
        hosted("codeExecution"),
        Change::Other("toolConfig"),
    ];
    assert_eq!(drafted.changes, expected);
    assert_eq!(drafted.body.unwrap(), br#"{"store":false}"#);
}

#[test]
fn doors_to_hidden_tools_and_to_urls_are_closed() {
    let refused = [
        r#"{"cachedContent":"cachedContents/x"}"#,
        r#"{"continuationToken":"x"}"#,
        r#"{"automaticContinuation":true}"#,
        r#"{"contents":[{"parts":[{"fileData":{"fileUri":"https://example.com/?secret"}}]}]}"#,
        r#"{"contents":{"parts":{"fileData":{"fileUri":"gs://bucket/object"}}}}"#,
        r#"{"contents":[{"parts":[{"fileData":{"fileUri":"https://youtu.be/x"}}]}]}"#,
        r#"{"systemInstruction":{"parts":[{"fileData":{"fileUri":"http://x/"}}]}}"#,
        r#"{"contents":[{"parts":[{"functionResponse":{"name":"x","parts":[{"fileData":{"fileUri":"gs://x"}}]}}]}]}"#,
        r#"{"contents":[{"parts":[{"fileData":{"fileUri":"https://generativelanguage.googleapis.com/v1beta/files/../x"}}]}]}"#,
        r#"{"contents":[{"parts":[{"fileData":{"fileUri":"https://generativelanguage.googleapis.com@example.com/v1beta/files/x"}}]}]}"#,
        r#"{"instances":[{"contents":[{"parts":[{"fileData":{"fileUri":"gs://x"}}]}]}]}"#,
        r#"{"generateContentRequest":{"cachedContent":"x"}}"#,
    ];
    for body in refused {
        for spelled in [body.to_owned(), snake(body)] {
            assert!(sent(GENERATE, &spelled, &STRIP).starts_with("refused: said by a test ("), "{spelled}");
            assert_eq!(sent(GENERATE, &spelled, &ALLOW), spelled);
        }
    }
    let benign = [
        r#"{"cachedContent":"","continuationToken":null,"automaticContinuation":false,"store":false}"#,
        r#"{"contents":[{"parts":[{"text":"https://example.com"},{"inlineData":{"data":"aA=="}}]}]}"#,
        r#"{"contents":[{"parts":[{"fileData":{"fileUri":"https://generativelanguage.googleapis.com/v1beta/files/ab-12"}}]}]}"#,
        r#"{"contents":[{"parts":[{"functionResponse":{"name":"x","response":{"fileUri":"https://example.com"}}}]}]}"#,
        r#"{"contents":[{"parts":[{"functionCall":{"name":"x","args":{"fileUri":"https://example.com"}}}]}]}"#,
        r#"{"generationConfig":{"responseSchema":{"properties":{"fileUri":{"type":"STRING"}}}},"labels":{"a":"b"}}"#,
    ];
    for body in benign {
        for spelled in [body.to_owned(), snake(body)] {
            assert_eq!(sent(GENERATE, &spelled, &STRIP), spelled);
        }
    }
}

#[test]
fn requests_are_not_stored_at_the_provider() {
    for on in ["true", "1", r#""true""#] {
        let body = format!(r#"{{"store": {on} ,"contents":[]}}"#);
        assert_eq!(sent(GENERATE, &body, &STRIP), r#"{"store": false ,"contents":[]}"#);
        assert_eq!(sent(GENERATE, &body, &ALLOW), body);
    }
}

#[test]
fn what_has_several_readings_is_refused() {
    let refused = [
        r#"[]"#,
        r#"{"toolConfig":{},"tool_config":{}}"#,
        r#"{"tools":[],"t\u006fols":[{"googleSearch":{}}]}"#,
        r#"{"tools":[{"functionDeclarations":[],"function_declarations":[]}]}"#,
        r#"{"tools":[{"functionDeclarations":[{"name":"a","name":"b"}]}]}"#,
        r#"{"tools":[{"functionDeclarations":[{"description":"no name"}]}]}"#,
        r#"{"tools":[{"functionDeclarations":["x"]}]}"#,
        r#"{"tools":["googleSearch"]}"#,
        r#"{"tools":[[{"googleSearch":{}}]]}"#,
        r#"{"cachedContent":null,"cached_content":"x"}"#,
    ];
    for body in refused {
        assert!(
            sent(GENERATE, body, &STRIP).starts_with("refused: the request cannot be understood"),
            "{body}"
        );
        let wrapped = format!(r#"{{"model":"m","request":{body}}}"#);
        assert!(sent(CODE_ASSIST, &wrapped, &STRIP).starts_with("refused: the request"), "{wrapped}");
    }
    assert!(sent(CODE_ASSIST, r#"{"model":"m","contents":[]}"#, &ALLOW).starts_with("refused: the request"));
}

#[test]
fn code_assist_wraps_the_same_request() {
    let body = format!(
        r#"{{"model":"gemini-3-pro","project":"p","user_prompt_id":"u","request":{{"contents":[],"tools":[{{"googleSearch":{{}}}},{DECLARED}],"session_id":"s"}}}}"#
    );
    let drafted = drafted(CODE_ASSIST, &body, &STRIP).unwrap();
    let edited = body.replace(r#"{"googleSearch":{}},"#, "");
    assert_eq!(String::from_utf8(drafted.body.unwrap()).unwrap(), edited);
    assert_eq!(drafted.facts.model.as_deref(), Some("gemini-3-pro"));
    assert_eq!(drafted.facts.session.as_deref(), Some("s"));
    assert!(drafted.facts.stream);
}

#[test]
fn a_request_says_what_it_is() {
    let body = format!(
        r#"{{"tools":[{DECLARED},{{"function_declarations":{{"name":"write_f\u0069le","x":1}}}}],"generationConfig":{{"routingConfig":{{"manualMode":{{"modelName":"other"}}}}}},"generateContentRequest":{{"model":"models/gemini-3-pro"}}}}"#
    );
    let facts = drafted(GENERATE, &body, &STRIP).unwrap().facts;
    assert_eq!(facts.model.as_deref(), Some("gemini-3-pro"));
    assert_eq!(facts.models, ["gemini-3-pro", "other"]);
    assert_eq!(facts.tools.iter().map(|tool| tool.name.as_str()).collect::<Vec<_>>(), ["run", "write_file"]);
    // Of `{"name": "run"}`.
    assert_eq!(facts.tools[0].sha256, "ce399ecce641f8ed6772b83788ef8fecc765968dede2dbd263534a02334c0dc4");
    assert!(facts.writes && !facts.stream);
    assert_eq!(facts.session, None);
    let nothing = drafted(GENERATE, "{}", &STRIP).unwrap().facts;
    assert!(nothing.tools.is_empty() && !nothing.writes);
    let harmless = r#"{"tools":[{"functionDeclarations":[{"name":"run","parameters":{"properties":{}}}]},{"computerUse":{}}]}"#;
    assert!(!drafted(GENERATE, harmless, &STRIP).unwrap().facts.writes);
    let wrapping = r#"{"tools":[{"functionDeclarations":[{"name":"batch"}]}]}"#;
    assert!(drafted(GENERATE, wrapping, &STRIP).unwrap().facts.writes, "other calls may stand in its input");
    assert!(drafted(GENERATE, r#"{"cachedContent":"x"}"#, &ALLOW).unwrap().facts.writes);
}

#[test]
fn edits_are_the_same_every_time() {
    let body = r#"{"contents":[{"parts":[{"text":"x"}]}],"tools":[{"googleSearch":{},"urlContext":{}},{"functionDeclarations":[{"name":"a"}]}],"toolConfig":{"includeServerSideToolInvocations":true}}"#;
    let once = sent(GENERATE, body, &STRIP);
    assert_eq!(sent(GENERATE, body, &STRIP), once);
    assert_eq!(sent(GENERATE, &once, &STRIP), once);
}
