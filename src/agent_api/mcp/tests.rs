//! What clients of each revision are answered, and what they are refused.

use http::{HeaderName, HeaderValue};

use super::*;
use std::sync::Arc;

use crate::agent_api::denials::{Denial, Denials};
use crate::agent_api::evidence::{EvidenceAccess, NotTold};
use crate::decision::Decision;
use crate::event::{Id, Kind};
use crate::ledger::fresh_id;
use crate::policy::document::Explain;
use crate::policy::explain::ShownDecision;

struct Known(Denials, Explain, EvidenceAccess);

const KEPT: &str = "one\ntwo \u{e9}\n";

impl Source for Known {
    fn explains(&self) -> Explain {
        self.1
    }

    fn denial(&self, event: Id) -> Option<Denial> {
        self.0.find(event)
    }

    fn permissions(&self) -> Value {
        json!({"destinations": "<told>\u{202e}"})
    }

    fn check(&self, action: &Action) -> Result<ShownDecision, String> {
        let rule = "agents/test/rule".to_owned();
        match action {
            Action::Call { tool, .. } if tool == "Bash" => {
                Ok(ShownDecision { verdict: "Deny", rule: Some(rule), reason: Some("Not here".to_owned()) })
            }
            Action::Call { .. } => {
                Ok(ShownDecision { verdict: "Allow", rule: Some(rule), reason: Some("Lifted".to_owned()) })
            }
            Action::Request { url, .. } => Err(format!("{url} is no URL")),
        }
    }

    fn evidence_access(&self) -> EvidenceAccess {
        self.2
    }

    fn evidence(&self, id: EvidenceId) -> Result<Arc<str>, NotTold> {
        if id == EvidenceId::of(KEPT) { Ok(KEPT.into()) } else { Err(NotTold::Unknown) }
    }
}

fn known(explains: Explain) -> (Known, Id) {
    let (denials, id) = (Denials::default(), fresh_id());
    let decision = Decision::builtin("default-deny", "No rule names <b>it</b>");
    denials.keep(Denial::new(id, Kind::Request, &decision, Vec::new()));
    (Known(denials, explains, EvidenceAccess::Http), id)
}

fn headers(said: &[(&'static str, &str)]) -> HeaderMap {
    let said = [("content-type", "application/json")].iter().chain(said);
    said.map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_str(value).unwrap())).collect()
}

fn posted(said: &[(&'static str, &str)], body: &str) -> (u16, Value) {
    let answer = answer(&headers(said), body.as_bytes(), &known(Explain::Policy).0);
    (answer.status, serde_json::from_str(&answer.body).unwrap_or_default())
}

/// A request of the revision with a handshake.
fn asked(method: &str, params: &Value) -> Value {
    let body = json!({"jsonrpc": "2.0", "id": 7, "method": method, "params": params});
    let (status, answer) = posted(&[("mcp-protocol-version", "2025-11-25")], &body.to_string());
    assert_eq!((status, &answer["id"]), (200, &json!(7)), "{answer}");
    answer
}

/// A request that stands for itself, with these changes in its headers and its `_meta`.
fn stateless(method: &str, more: &Value, said: &[(&'static str, &str)], meta: &Value) -> (u16, Value) {
    let mut params = more.clone();
    params["_meta"] = meta.clone();
    let body = json!({"jsonrpc": "2.0", "id": "a", "method": method, "params": params});
    posted(said, &body.to_string())
}

fn claim(version: &str) -> Value {
    json!({
        "io.modelcontextprotocol/protocolVersion": version,
        "io.modelcontextprotocol/clientCapabilities": {},
    })
}

#[test]
fn a_handshake_agrees_on_the_clients_revision_or_on_the_newest_with_one() {
    for (asked_for, agreed) in [
        ("2025-06-18", "2025-06-18"),
        ("2025-11-25", "2025-11-25"),
        ("2026-07-28", "2025-11-25"),
        ("x", "2025-11-25"),
    ] {
        let told = asked("initialize", &json!({"protocolVersion": asked_for, "capabilities": {}}));
        assert_eq!(told["result"]["protocolVersion"], agreed);
        assert_eq!(told["result"]["serverInfo"]["name"], "postern");
        assert!(told["result"]["capabilities"]["tools"].is_object());
    }
    assert_eq!(asked("ping", &json!({}))["result"], json!({}));
}

#[test]
fn a_notification_and_a_response_are_taken_and_not_answered() {
    for body in [
        r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#,
        r#"{"jsonrpc":"2.0","id":1,"result":{}}"#,
    ] {
        assert_eq!(posted(&[], body), (202, Value::Null), "{body}");
        assert_eq!(posted(&[("mcp-protocol-version", "1999-01-01")], body).0, 400, "{body}");
    }
}

#[test]
fn what_is_no_message_gets_the_error_of_the_protocol() {
    let deep = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"ping","params":{}}}"#, "[".repeat(60_000));
    for (body, code) in [
        ("", -32_700),
        ("{", -32_700),
        (deep.as_str(), -32_700),
        ("[]", -32_600),
        (r#"[{"jsonrpc":"2.0","id":1,"method":"ping"}]"#, -32_600),
        ("7", -32_600),
        (r#"{"id":1,"method":"ping"}"#, -32_600),
        (r#"{"jsonrpc":"2.0","id":1}"#, -32_600),
        (r#"{"jsonrpc":"2.0","id":1,"method":7}"#, -32_600),
        (r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#, -32_600),
        (r#"{"jsonrpc":"2.0","id":1.5,"method":"ping"}"#, -32_600),
        (r#"{"jsonrpc":"2.0","id":1,"method":"ping","params":[]}"#, -32_600),
    ] {
        let (status, answer) = posted(&[], body);
        assert_eq!((status, &answer["error"]["code"]), (400, &json!(code)), "{body}");
    }
    let text = answer(&HeaderMap::new(), b"{}", &known(Explain::Denials).0);
    assert_eq!(text.status, 415);
}

#[test]
fn an_unknown_method_is_an_error_of_the_method_in_one_revision_and_of_http_in_the_other() {
    assert_eq!(asked("resources/list", &json!({}))["error"]["code"], -32_601);
    let said = [("mcp-protocol-version", "2026-07-28"), ("mcp-method", "ping")];
    let (status, answer) = stateless("ping", &json!({}), &said, &claim("2026-07-28"));
    assert_eq!((status, &answer["error"]["code"], &answer["id"]), (404, &json!(-32_601), &json!("a")));
}

#[test]
fn a_request_that_stands_for_itself_is_answered_without_a_handshake() {
    let said = [("mcp-protocol-version", "2026-07-28"), ("mcp-method", "server/discover")];
    let (status, answer) = stateless("server/discover", &json!({}), &said, &claim("2026-07-28"));
    assert_eq!(status, 200, "{answer}");
    assert_eq!(answer["result"]["supportedVersions"], json!(["2026-07-28"]));
    assert_eq!(answer["result"]["resultType"], "complete");
    assert_eq!(answer["result"]["_meta"]["io.modelcontextprotocol/serverInfo"]["name"], "postern");
    assert_eq!((&answer["result"]["ttlMs"], &answer["result"]["cacheScope"]), (&json!(0), &json!("private")));
}

#[test]
fn headers_that_do_not_say_what_the_body_says_are_refused() {
    let call = |said: &[(&'static str, &str)], version| {
        stateless("tools/call", &json!({"name": "list_permissions"}), said, &claim(version))
    };
    let [version, method] = [("mcp-protocol-version", "2026-07-28"), ("mcp-method", "tools/call")];
    for name in ["list_permissions", "=?base64?bGlzdF9wZXJtaXNzaW9ucw==?="] {
        assert_eq!(call(&[version, method, ("mcp-name", name)], "2026-07-28").0, 200);
    }
    let name = ("mcp-name", "list_permissions");
    for said in [
        vec![method, name],
        vec![version, name],
        vec![version, method],
        vec![version, method, ("mcp-name", "check_action")],
        vec![version, method, ("mcp-name", "=?base64?!?=")],
        vec![version, ("mcp-method", "tools/list"), name],
        vec![version, method, method, name],
        vec![("mcp-protocol-version", "2025-11-25"), method, name],
    ] {
        let mut headers = headers(&[]);
        for (field, value) in &said {
            headers.append(HeaderName::from_static(field), HeaderValue::from_str(value).unwrap());
        }
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call",
            "params": {"name": "list_permissions", "_meta": claim("2026-07-28")}});
        let refused = answer(&headers, body.to_string().as_bytes(), &known(Explain::Policy).0);
        assert!(refused.status == 400 && refused.body.contains("-32020"), "{said:?}: {}", refused.body);
    }
}

#[test]
fn a_revision_that_is_not_spoken_is_refused_with_those_that_are() {
    let said = [("mcp-protocol-version", "2027-01-01"), ("mcp-method", "tools/list")];
    let (status, answer) = stateless("tools/list", &json!({}), &said, &claim("2027-01-01"));
    assert_eq!((status, &answer["error"]["code"]), (400, &json!(-32_022)));
    assert_eq!(answer["error"]["data"], json!({"supported": ["2026-07-28"], "requested": "2027-01-01"}));
    let body = r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#;
    let (status, answer) = posted(&[("mcp-protocol-version", "2024-11-05")], body);
    assert_eq!((status, &answer["error"]["code"]), (400, &json!(-32_022)));
    for missing in [json!({}), json!({"io.modelcontextprotocol/protocolVersion": "2026-07-28"})] {
        let said = [("mcp-protocol-version", "2026-07-28"), ("mcp-method", "tools/list")];
        let (status, answer) = stateless("tools/list", &json!({}), &said, &missing);
        assert_eq!((status, &answer["error"]["code"]), (400, &json!(-32_602)), "{missing}");
    }
}

#[test]
fn a_denial_is_explained_in_plain_text() {
    let (known, id) = known(Explain::Denials);
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call",
        "params": {"name": "explain_denial", "arguments": {"event": id.to_string()}}});
    let answer = answer(&headers(&[]), body.to_string().as_bytes(), &known);
    let answer: Value = serde_json::from_str(&answer.body).unwrap();
    let text = answer["result"]["content"][0]["text"].as_str().unwrap();
    assert!(!text.contains('<'), "{text}");
    let told: Value = serde_json::from_str(text).unwrap();
    assert_eq!(told["rule"], "postern/builtin/default-deny");
}

#[test]
fn what_is_wrong_with_the_input_of_a_tool_is_told_in_its_result() {
    for (name, arguments) in [
        ("explain_denial", json!({})),
        ("explain_denial", json!({"event": 7})),
        ("explain_denial", json!({"event": "01a2008d-0000-7000-8000-000000000000"})),
        ("check_action", json!({})),
        ("check_action", json!({"tool": "Bash", "url": "https://a.example/"})),
        ("check_action", json!({"tool": "Bash", "body": "x"})),
        ("check_action", json!({"url": "x"})),
    ] {
        let told = asked("tools/call", &json!({"name": name, "arguments": arguments}));
        assert_eq!(told["result"]["isError"], true, "{name} {arguments}: {told}");
    }
    for params in [json!({}), json!({"name": "other"}), json!({"name": "explain_denial", "arguments": []})] {
        assert_eq!(asked("tools/call", &params)["error"]["code"], -32_602);
    }
}

#[test]
fn what_lets_an_action_pass_is_not_told() {
    let checked = |tool: &str| {
        let told =
            asked("tools/call", &json!({"name": "check_action", "arguments": {"tool": tool, "input": {}}}));
        told["result"]["content"][0]["text"].as_str().unwrap().to_owned()
    };
    assert_eq!(checked("Read"), r#"{"verdict":"Allow"}"#);
    assert_eq!(checked("Bash"), r#"{"verdict":"Deny","rule":"agents/test/rule","reason":"Not here"}"#);
}

#[test]
fn tools_about_the_policies_are_there_where_the_policies_say_so() {
    for (explains, tools) in [(Explain::Denials, 1), (Explain::Policy, 3)] {
        let (known, _) = known(explains);
        let ask = |method: &str, params: Value| -> Value {
            let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
            serde_json::from_str(&answer(&headers(&[]), body.to_string().as_bytes(), &known).body).unwrap()
        };
        let listed = ask("tools/list", json!({}));
        assert_eq!(listed["result"]["tools"].as_array().unwrap().len(), tools);
        for name in ["list_permissions", "check_action"] {
            let told = ask("tools/call", json!({"name": name, "arguments": {"tool": "Bash"}}));
            assert_eq!(told["error"].is_object(), tools == 1, "{told}");
        }
    }
    assert_eq!(asked("tools/list", &json!({"cursor": "x"}))["error"]["code"], -32_602);
}

#[test]
fn a_kept_text_is_read_by_a_tool_where_the_settings_say_so_also_if_nothing_else_is_told() {
    let id = EvidenceId::of(KEPT).to_string();
    let ask = |access, method: &str, params: &Value| -> Value {
        let known = Known(Denials::default(), Explain::None, access);
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).to_string();
        let wanted = wanted_evidence(&headers(&[]), body.as_bytes());
        assert_eq!(wanted, params["arguments"]["id"].as_str().and_then(EvidenceId::parse), "{body}");
        serde_json::from_str(&answer(&headers(&[]), body.as_bytes(), &known).body).unwrap()
    };
    let call = |access, arguments: Value| {
        ask(access, "tools/call", &json!({"name": "read_evidence", "arguments": arguments}))
    };
    let begun = ask(EvidenceAccess::ToolToo, "initialize", &json!({"protocolVersion": "2025-11-25"}));
    let instructions = begun["result"]["instructions"].as_str().unwrap();
    assert!(instructions.contains("reads the tool results") && !instructions.contains("denied"), "{begun}");
    let listed = ask(EvidenceAccess::ToolToo, "tools/list", &json!({}));
    assert_eq!(listed["result"]["tools"].as_array().unwrap().len(), 1);
    assert_eq!(listed["result"]["tools"][0]["name"], "read_evidence");
    assert_eq!(listed["result"]["tools"][0]["annotations"]["readOnlyHint"], true);
    let whole = call(EvidenceAccess::ToolToo, json!({"id": id}));
    assert_eq!(whole["result"]["content"][0]["text"], KEPT);
    let found = call(EvidenceAccess::ToolToo, json!({"id": id, "from": 2, "to": 2, "match": "w"}));
    assert_eq!(found["result"]["content"][0]["text"], "2: two \u{e9}\n");
    for arguments in [
        json!({}),
        json!({"id": "../../etc/passwd"}),
        json!({"id": "e3b0c44298fc1c149afb"}),
        json!({"id": id, "from": 0}),
        json!({"id": id, "from": 9}),
        json!({"id": id, "path": "/"}),
    ] {
        assert_eq!(
            call(EvidenceAccess::ToolToo, arguments.clone())["result"]["isError"],
            true,
            "{arguments}"
        );
    }
    for access in [EvidenceAccess::None, EvidenceAccess::Http] {
        assert_eq!(call(access, json!({"id": id}))["error"]["code"], -32_602);
    }
}
