//! Files that hold credentials, by their names: what a call named and a result tells, attachments, parts of forms.

use super::requests::{
    CHAT, CONVERSE, DIALECTS, GEMINI, INVOKE, MESSAGES, RESPONSES, becomes, models, refused, untouched,
};
use crate::gateway::{INSPECT_API, inspected_with};
use crate::support::setup;

/// A conversation in which a file was read, and this is what came of it.
fn read(door: &str, path: &str, result: &str) -> String {
    let body = match door {
        CHAT => {
            r#"{"model":"m","messages":[{"role":"user","content":"go"},{"role":"assistant","tool_calls":[{"id":"t1","type":"function","function":{"name":"Read","arguments":"{\"file_path\":\"~\"}"}}]},{"role":"tool","tool_call_id":"t1","content":"@"}]}"#
        }
        RESPONSES => {
            r#"{"model":"m","store":false,"input":[{"role":"user","content":"go"},{"type":"function_call","call_id":"t1","name":"Read","arguments":"{\"file_path\":\"~\"}"},{"type":"function_call_output","call_id":"t1","output":"@"}]}"#
        }
        GEMINI => {
            r#"{"contents":[{"role":"user","parts":[{"text":"go"}]},{"role":"model","parts":[{"functionCall":{"name":"Read","args":{"file_path":"~"}}}]},{"role":"user","parts":[{"functionResponse":{"name":"Read","response":{"result":"@"}}}]}]}"#
        }
        CONVERSE => {
            r#"{"messages":[{"role":"user","content":[{"text":"go"}]},{"role":"assistant","content":[{"toolUse":{"toolUseId":"t1","name":"Read","input":{"file_path":"~"}}}]},{"role":"user","content":[{"toolResult":{"toolUseId":"t1","content":[{"text":"@"}]}}]}]}"#
        }
        INVOKE => {
            r#"{"anthropic_version":"bedrock-2023-05-31","messages":[{"role":"user","content":"go"},{"role":"assistant","content":[{"type":"tool_use","id":"t1","name":"Read","input":{"file_path":"~"}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":"@"}]}]}"#
        }
        _ => {
            r#"{"model":"m","messages":[{"role":"user","content":"go"},{"role":"assistant","content":[{"type":"tool_use","id":"t1","name":"Read","input":{"file_path":"~"}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":[{"type":"text","text":"@"}]}]}]}"#
        }
    };
    body.replace('~', path).replace('@', result)
}

/// A command that shows a file.
fn shown(command: &str, result: &str) -> String {
    let input = serde_json::json!({"command": command}).to_string();
    format!(
        r#"{{"model":"m","messages":[{{"role":"user","content":"go"}},{{"role":"assistant","content":[{{"type":"tool_use","id":"t1","name":"Bash","input":{input}}}]}},{{"role":"user","content":[{{"type":"tool_result","tool_use_id":"t1","content":"{result}"}}]}}]}}"#
    )
}

fn attached(title: &str) -> String {
    format!(
        r#"{{"model":"m","messages":[{{"role":"user","content":[{{"type":"document","title":"{title}","source":{{"type":"text","media_type":"text/plain","data":"A=1"}}}}]}}]}}"#
    )
}

/// D11: what a file with credentials holds is taken out of what a model is told, where policy says so.
#[test]
fn the_content_of_a_credential_file_is_replaced_where_policy_says_so() {
    let test = models("dataLoss: {action: Redact, detectors: [Secrets, CredentialFiles, ProtectedPaths]}");
    let mut rows = Vec::new();
    for door in DIALECTS {
        rows.push(becomes(
            door,
            read(door, "/w/.env", "A=1"),
            read(door, "/w/.env", "[postern:credential-file]"),
        ));
        rows.push(becomes(
            door,
            read(door, "/h/.ssh/config", "A=1"),
            read(door, "/h/.ssh/config", "[postern:protected-path]"),
        ));
        for plain in ["/w/.env.example", "/w/src/environment.rs", "/w/id_rsa.pub"] {
            rows.push(untouched(door, read(door, plain, "A=1 in .env")));
        }
    }
    rows.push(becomes(
        MESSAGES,
        shown("cd /w && cat .env | head", "A=1"),
        shown("cd /w && cat .env | head", "[postern:credential-file]"),
    ));
    rows.push(untouched(MESSAGES, shown("echo the .env file is not here", "A=1")));
    rows.push(refused(MESSAGES, attached("id_rsa"), "agents/test/dataLoss"));
    rows.push(untouched(MESSAGES, attached("notes on id_rsa.md")));
    test.assert_rows(&rows);
}

/// D11: without such a policy it is recorded, and goes on.
#[test]
fn a_credential_file_that_is_named_is_recorded() {
    let test = models("");
    for (sent, kind, role) in [
        (read(MESSAGES, "/w/.env", "A=1"), "CredentialFiles", "ToolResult"),
        (read(MESSAGES, "/h/.aws/config", "A=1"), "ProtectedPaths", "ToolResult"),
        (attached(".npmrc"), "CredentialFiles", "Attachment"),
    ] {
        let asked = test.post(MESSAGES, &sent);
        assert_eq!(asked.seen().body, sent.as_bytes());
        let event = test.event_of(&asked, "Request", "Allow");
        let found = &event["dlp"][0];
        assert_eq!(
            (&found["kind"], &found["role"], &found["action"]),
            (&kind.into(), &role.into(), &"Audit".into())
        );
        assert!(!event.to_string().contains(".env"), "{event}");
    }
    let picture = r#"{"model":"m","messages":[{"role":"user","content":[{"type":"image","source":{"type":"base64","media_type":"image/png","data":"iVBORw0KGgoAAAANSUhEUg=="}}]}]}"#;
    let asked = test.post(MESSAGES, picture);
    let found = &test.event_of(&asked, "Request", "Allow")["dlp"][0];
    assert_eq!(
        (&found["kind"], &found["detector"], &found["confidence"]),
        (&"Binary".into(), &"png".into(), &"Low".into())
    );
    let asked = test.post(MESSAGES, read(MESSAGES, "/w/a.rs", "A=1"));
    assert!(test.event_of(&asked, "Request", "Allow").get("dlp").is_none());
}

/// D11: the parts of a form to another host.
#[test]
fn a_credential_file_in_a_form_is_recorded_and_denied_where_policy_says_so() {
    let form = |name: &str| {
        format!(
            "--b\r\ncontent-disposition: form-data; name=\"f\"; filename=\"{name}\"\r\n\r\nA=1\r\n--b--\r\n"
        )
    };
    let headers = [("content-type", "multipart/form-data; boundary=b")];
    let sent = |spec: &str, name: &str| {
        let test = inspected_with(|set| set.policy(&format!("{}  {spec}\n", setup::policy(&[INSPECT_API]))));
        let agent = test.gateway.agent();
        let status =
            agent.request("POST", "https://api.example.com/echo", &headers, form(name).as_bytes()).status;
        let told = test.gateway.wait_for_event("the end", |event| {
            event["kind"] == if status == 200 { "Response" } else { "Request" }
                && (status == 200 || event["decision"]["verdict"] == "Deny")
        });
        (status, told["dlp"][0]["kind"].as_str().unwrap_or_default().to_owned())
    };
    let deny = "dataLoss: {action: Deny, detectors: [CredentialFiles]}";
    assert_eq!(sent("", ".env"), (200, "CredentialFiles".to_owned()));
    assert_eq!(sent(deny, ".env"), (403, "CredentialFiles".to_owned()));
    assert_eq!(sent(deny, "notes.txt"), (200, String::new()));
}
