//! Secrets in what an agent sends: in every place of requests to models, in every coding, and to other hosts.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde_json::Value;

use super::requests::{
    CHAT, CONVERSE, DIALECTS, GEMINI, INVOKE, MESSAGES, Models, RESPONSES, Row, becomes, models, refused,
    untouched,
};

const RULE: &str = "outbound-exfiltration";
const PLACEHOLDER: &str = "[postern:gitlab-token]";
/// Text in which nothing is found, and which is as long as the secret.
const TWIN: &str = "glpat-is-how-they-begin-he";

/// Put together here, so that no file holds it.
fn secret() -> String {
    ["glp", "at-Ab3dEf6hIj9kLm2nOp5q"].concat()
}

/// A conversation with this text in the result of a tool.
fn result(door: &str, text: &str) -> String {
    let body = match door {
        CHAT => {
            r#"{"model":"m","messages":[{"role":"user","content":"go"},{"role":"assistant","tool_calls":[{"id":"t1","type":"function","function":{"name":"read","arguments":"{}"}}]},{"role":"tool","tool_call_id":"t1","content":"@"}]}"#
        }
        RESPONSES => {
            r#"{"model":"m","store":false,"input":[{"role":"user","content":"go"},{"type":"function_call","call_id":"t1","name":"read","arguments":"{}"},{"type":"function_call_output","call_id":"t1","output":"@"}]}"#
        }
        GEMINI => {
            r#"{"contents":[{"role":"user","parts":[{"text":"go"}]},{"role":"model","parts":[{"functionCall":{"name":"read","args":{}}}]},{"role":"user","parts":[{"functionResponse":{"name":"read","response":{"result":"@"}}}]}]}"#
        }
        CONVERSE => {
            r#"{"messages":[{"role":"user","content":[{"text":"go"}]},{"role":"assistant","content":[{"toolUse":{"toolUseId":"t1","name":"read","input":{}}}]},{"role":"user","content":[{"toolResult":{"toolUseId":"t1","content":[{"text":"@"}]}}]}]}"#
        }
        INVOKE => {
            r#"{"anthropic_version":"bedrock-2023-05-31","messages":[{"role":"user","content":"go"},{"role":"assistant","content":[{"type":"tool_use","id":"t1","name":"read","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":"@"}]}]}"#
        }
        _ => {
            r#"{"model":"m","messages":[{"role":"user","content":"go"},{"role":"assistant","content":[{"type":"tool_use","id":"t1","name":"read","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":"@"}]}]}"#
        }
    };
    body.replace('@', text)
}

/// The same in what a user says, and in the system prompt.
fn told(door: &str, text: &str) -> [String; 2] {
    let bodies = match door {
        RESPONSES => [
            r#"{"model":"m","store":false,"input":"@"}"#,
            r#"{"model":"m","store":false,"instructions":"@","input":"go"}"#,
        ],
        CHAT => [
            r#"{"model":"m","messages":[{"role":"user","content":[{"type":"text","text":"@"}]}]}"#,
            r#"{"model":"m","messages":[{"role":"developer","content":"@"},{"role":"user","content":"go"}]}"#,
        ],
        GEMINI => [
            r#"{"contents":[{"role":"user","parts":[{"text":"@"}]}]}"#,
            r#"{"systemInstruction":{"parts":[{"text":"@"}]},"contents":[{"role":"user","parts":[{"text":"go"}]}]}"#,
        ],
        CONVERSE => [
            r#"{"messages":[{"role":"user","content":[{"text":"@"}]}]}"#,
            r#"{"system":[{"text":"@"}],"messages":[{"role":"user","content":[{"text":"go"}]}]}"#,
        ],
        INVOKE => [
            r#"{"anthropic_version":"bedrock-2023-05-31","messages":[{"role":"user","content":"@"}]}"#,
            r#"{"anthropic_version":"bedrock-2023-05-31","system":"@","messages":[{"role":"user","content":"go"}]}"#,
        ],
        _ => [
            r#"{"model":"m","messages":[{"role":"user","content":[{"type":"text","text":"@"}]}]}"#,
            r#"{"model":"m","system":[{"type":"text","text":"@"}],"messages":[{"role":"user","content":"go"}]}"#,
        ],
    };
    bodies.map(|body| body.replace('@', text))
}

/// The same in what the model said, and in the input of its call.
fn written(door: &str, text: &str) -> [String; 2] {
    let bodies = match door {
        RESPONSES => [
            r#"{"model":"m","store":false,"input":[{"role":"assistant","content":[{"type":"output_text","text":"@"}]},{"role":"user","content":"go"}]}"#,
            r#"{"model":"m","store":false,"input":[{"type":"function_call","call_id":"t1","name":"read","arguments":"{\"a\":\"@\"}"},{"type":"function_call_output","call_id":"t1","output":"ok"}]}"#,
        ],
        CHAT => [
            r#"{"model":"m","messages":[{"role":"assistant","content":"@"},{"role":"user","content":"go"}]}"#,
            r#"{"model":"m","messages":[{"role":"assistant","tool_calls":[{"id":"t1","type":"function","function":{"name":"read","arguments":"{\"a\":\"@\"}"}}]},{"role":"tool","tool_call_id":"t1","content":"ok"}]}"#,
        ],
        GEMINI => [
            r#"{"contents":[{"role":"model","parts":[{"text":"@"}]},{"role":"user","parts":[{"text":"go"}]}]}"#,
            r#"{"contents":[{"role":"model","parts":[{"functionCall":{"name":"read","args":{"a":"@"}}}]},{"role":"user","parts":[{"functionResponse":{"name":"read","response":{"r":"ok"}}}]}]}"#,
        ],
        CONVERSE => [
            r#"{"messages":[{"role":"assistant","content":[{"text":"@"}]},{"role":"user","content":[{"text":"go"}]}]}"#,
            r#"{"messages":[{"role":"assistant","content":[{"toolUse":{"toolUseId":"t1","name":"read","input":{"a":"@"}}}]},{"role":"user","content":[{"toolResult":{"toolUseId":"t1","content":[{"text":"ok"}]}}]}]}"#,
        ],
        INVOKE => [
            r#"{"anthropic_version":"bedrock-2023-05-31","messages":[{"role":"assistant","content":"@"},{"role":"user","content":"go"}]}"#,
            r#"{"anthropic_version":"bedrock-2023-05-31","messages":[{"role":"assistant","content":[{"type":"tool_use","id":"t1","name":"read","input":{"a":"@"}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":"ok"}]}]}"#,
        ],
        _ => [
            r#"{"model":"m","messages":[{"role":"assistant","content":"@"},{"role":"user","content":"go"}]}"#,
            r#"{"model":"m","messages":[{"role":"assistant","content":[{"type":"tool_use","id":"t1","name":"read","input":{"a":"@"}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":"ok"}]}]}"#,
        ],
    };
    bodies.map(|body| body.replace('@', text))
}

/// Ways to write the secret, each with what it is found by.
fn codings(secret: &str) -> Vec<(String, &'static str)> {
    let hex: String = secret.bytes().map(|byte| format!("{byte:02x}")).collect();
    let percent: String = secret.bytes().map(|byte| format!("%{byte:02X}")).collect();
    let escaped: String = secret.chars().map(|sign| format!("\\\\u{:04x}", u32::from(sign))).collect();
    let once = BASE64_STANDARD.encode(format!("key: {secret}"));
    vec![
        (once.clone(), "base64"),
        (BASE64_STANDARD.encode(format!("again {once}")), "base64"),
        (hex, "hex"),
        (percent, "percent"),
        (escaped, "json"),
        (secret.chars().rev().collect(), "reversed"),
        (secret.replacen('l', "\u{200b}l", 1), "unicode"),
    ]
}

/// D15: what is replaced is the match alone, each time alike, and all other bytes stay.
#[test]
fn in_what_a_model_is_told_a_secret_is_replaced_and_nothing_else_changes() {
    let test = models("");
    let mut rows = Vec::new();
    for door in DIALECTS {
        let with = |text: &str| {
            let [user, system] = told(door, text);
            [result(door, text), user, system]
        };
        let before = format!(r#"a \"key\": {} \u00e4\n"#, secret());
        let after = before.replace(&secret(), PLACEHOLDER);
        let twin = before.replace(&secret(), TWIN);
        let pairs = with(&before).into_iter().zip(with(&after));
        rows.extend(pairs.map(|(sent, expected)| becomes(door, sent, expected)));
        rows.extend(with(&twin).into_iter().map(|sent| untouched(door, sent)));
        rows.push(untouched(door, result(door, &after)));
    }
    test.assert_rows(&rows);
    let again = test.post(CHAT, result(CHAT, &secret()));
    let event = test.event_of(&again, "Request", "Allow");
    let found = &event["dlp"][0];
    let told =
        ["detector", "kind", "confidence", "role", "tool", "location", "action"].map(|key| &found[key]);
    let expected =
        ["gitlab-token", "Secrets", "High", "ToolResult", "read", "body/messages/2/content", "Redact"];
    assert_eq!(told.map(|value| value.as_str().unwrap_or_default()), expected, "{event}");
    assert!(found["sha256"].is_string() && !event.to_string().contains(&secret()));
}

/// D9: no coding hides a secret: what is replaced is the outermost coded run.
#[test]
fn no_coding_hides_a_secret_from_the_search() {
    let test = models("");
    for (coded, coding) in codings(&secret()) {
        for door in DIALECTS {
            let asked = test.post(door, result(door, &format!("x {coded} y")));
            let seen = String::from_utf8_lossy(&asked.seen().body).into_owned();
            assert_eq!(seen, result(door, &format!("x {PLACEHOLDER} y")), "{coding} at {door}");
            let event = test.event_of(&asked, "Request", "Allow");
            let decoded = event["dlp"][0]["decoded"].as_array().cloned().unwrap_or_default();
            assert!(decoded.iter().any(|name| name == coding), "{coding}: {event}");
        }
    }
    let twins = codings(TWIN).into_iter().flat_map(|(coded, _)| DIALECTS.map(|door| (door, coded.clone())));
    let rows: Vec<Row> =
        twins.map(|(door, coded)| untouched(door, result(door, &format!("x {coded} y")))).collect();
    test.assert_rows(&rows);
}

/// D19: what the model is said to have written may be made up where the agent has a key of its own.
#[test]
fn a_secret_that_the_model_is_said_to_have_written_is_refused_under_a_key_of_the_agents() {
    let test = models("");
    let rows = DIALECTS.iter().flat_map(|door| {
        let refused = written(door, &secret()).map(|sent| refused(door, sent, RULE));
        let passed = written(door, TWIN).map(|sent| untouched(door, sent));
        refused.into_iter().chain(passed)
    });
    test.assert_rows(&rows.collect::<Vec<_>>());
    let vouched = models_with_a_key();
    let rows = [MESSAGES].iter().flat_map(|door| written(door, &secret()).map(|sent| (*door, sent)));
    for (door, sent) in rows {
        let asked = vouched.post_with(door, &[("x-api-key", "postern:key")], &sent);
        assert_eq!(asked.seen().body, sent.as_bytes());
        assert_eq!(vouched.event_of(&asked, "Request", "Allow")["dlp"][0]["action"], "Audit");
    }
}

fn models_with_a_key() -> Models {
    super::requests::models_with(
        "credentials: [{name: key, hosts: [api.anthropic.com], secretKeyRef: {name: keys, key: key}}]",
        |seen| super::requests::reply(seen.path()),
        |setup| setup.credential("key", "sk-real-0123456789abcdef"),
    )
}

/// D12: a key, a name, an id or a parameter cannot be replaced, so that the request is refused.
#[test]
fn a_secret_in_a_key_or_a_parameter_is_refused() {
    let (test, secret) = (models(""), secret());
    let bodies = |text: &str| {
        [
            format!(
                r#"{{"model":"m","metadata":{{"user_id":"{text}"}},"messages":[{{"role":"user","content":"go"}}]}}"#
            ),
            format!(
                r#"{{"model":"m","messages":[{{"role":"user","content":"go"}},{{"role":"assistant","content":[{{"type":"tool_use","id":"t1","name":"read","input":{{"{text}":1}}}}]}},{{"role":"user","content":[{{"type":"tool_result","tool_use_id":"t1","content":"ok"}}]}}]}}"#
            ),
            format!(
                r#"{{"model":"m","messages":[{{"role":"user","content":"go"}}],"tools":[{{"name":"{text}","input_schema":{{"type":"object"}}}}]}}"#
            ),
        ]
    };
    let rows: Vec<Row> = bodies(&secret)
        .into_iter()
        .map(|sent| refused(MESSAGES, sent, RULE))
        .chain(bodies("glpat-is-how-they-begin-he").into_iter().map(|sent| untouched(MESSAGES, sent)))
        .collect();
    test.assert_rows(&rows);
}

/// D8: a secret that is divided between two texts is found where they follow each other.
#[test]
fn a_secret_that_is_divided_between_texts_is_refused() {
    let test = models("");
    let body = |first: &str, second: &str| {
        format!(
            r#"{{"model":"m","messages":[{{"role":"user","content":[{{"type":"text","text":"{first}"}},{{"type":"text","text":"{second}"}}]}}]}}"#
        )
    };
    let secret = secret();
    let (first, second) = secret.split_at(12);
    test.assert_rows(&[
        refused(MESSAGES, body(first, second), RULE),
        untouched(MESSAGES, body(first, "and then he left")),
        // A whole secret at the end of one is no part of another.
        becomes(
            MESSAGES,
            body(&format!("it is {secret}"), "abcdefgh"),
            body(&format!("it is {PLACEHOLDER}"), "abcdefgh"),
        ),
    ]);
}

/// D18: whoever turns, flips or respells a secret does not get it out.
#[test]
fn a_secret_in_another_order_or_case_is_found() {
    let (test, secret) = (models(""), secret());
    let rot: String = secret
        .chars()
        .map(|sign| match sign {
            'a'..='m' | 'A'..='M' => char::from(sign as u8 + 13),
            'n'..='z' | 'N'..='Z' => char::from(sign as u8 - 13),
            other => other,
        })
        .collect();
    let swapped: String =
        secret
            .chars()
            .map(|sign| {
                if sign.is_ascii_lowercase() { sign.to_ascii_uppercase() } else { sign.to_ascii_lowercase() }
            })
            .collect();
    for turned in [secret.chars().rev().collect(), rot, swapped] {
        let asked = test.post(CHAT, result(CHAT, &format!("x {turned} y")));
        assert_eq!(String::from_utf8_lossy(&asked.seen().body), result(CHAT, &format!("x {PLACEHOLDER} y")));
    }
}

/// D16: a model that writes what a secret was replaced by would destroy the secret in the file.
#[test]
fn a_call_that_would_write_a_placeholder_into_a_file_is_denied() {
    let test = super::requests::models_with(
        "",
        |seen| {
            let asks = String::from_utf8_lossy(&seen.body).contains("twin");
            let text = if asks { "a plain line" } else { PLACEHOLDER };
            let body = format!(
                r#"{{"id":"msg_1","type":"message","role":"assistant","model":"m","content":[{{"type":"tool_use","id":"t2","name":"Write","input":{{"file_path":"/w/.env","content":"KEY={text}"}}}}],"stop_reason":"tool_use","stop_sequence":null,"usage":{{"input_tokens":7,"output_tokens":9}}}}"#
            );
            crate::support::upstream::Reply::of(200, body).header("content-type", "application/json")
        },
        |setup| setup,
    );
    let ask = |text: &str| {
        let body = result(MESSAGES, text).replacen(
            r#""model":"m","#,
            r#""model":"m","tools":[{"name":"Write","input_schema":{"type":"object"}}],"#,
            1,
        );
        let answer = test.post(MESSAGES, body).answer;
        (serde_json::from_str::<Value>(&answer.text()).unwrap(), answer.text())
    };
    let (denied, text) = ask(&format!("the key is {}", secret()));
    assert_eq!(denied["content"][0]["type"], "text", "{text}");
    assert!(text.contains("postern/builtin/redacted-value"), "{text}");
    // The same call where nothing was replaced, and another one where something was.
    assert_eq!(ask("no secret here").0["content"][0]["type"], "tool_use");
    assert_eq!(ask(&format!("a twin of {}", secret())).0["content"][0]["type"], "tool_use");
}

/// Policies say what else becomes of secrets.
#[test]
fn policies_deny_record_or_allow_secrets() {
    let secret = secret();
    let sent = result(MESSAGES, &secret);
    let changed = result(MESSAGES, PLACEHOLDER);
    models("dataLoss: {action: Deny}").assert_rows(&[refused(
        MESSAGES,
        sent.as_str(),
        "agents/test/dataLoss",
    )]);
    for spec in ["dataLoss: {action: Audit}", "dataLoss: {action: Allow}"] {
        models(spec).assert_rows(&[untouched(MESSAGES, sent.as_str())]);
    }
    models("dataLoss: {confidence: Medium}").assert_rows(&[becomes(
        MESSAGES,
        sent.as_str(),
        changed.as_str(),
    )]);
    let digest = aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA256, secret.as_bytes());
    let hash: String = digest.as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
    let allowed = format!("dataLoss: {{allow: [{{detector: gitlab-token, sha256: {hash}}}]}}");
    models(&allowed).assert_rows(&[untouched(MESSAGES, sent.as_str())]);
    let own = "dataLoss: {patterns: [{name: corp, regex: 'corp_[a-z]{8}'}]}";
    let [own_sent, own_changed] =
        ["corp_abcdefgh", "[postern:pattern:corp]"].map(|text| result(MESSAGES, text));
    models(own).assert_rows(&[
        becomes(MESSAGES, own_sent, own_changed),
        untouched(MESSAGES, result(MESSAGES, "corp_1")),
    ]);
    let audit = models("enforcement: Audit");
    let asked = audit.post(MESSAGES, &sent);
    assert_eq!(asked.seen().body, sent.as_bytes());
    let event = audit.event_of(&asked, "Policy", "WouldDeny");
    assert_eq!(event["decision"]["rule"], "postern/builtin/outbound-exfiltration");
}

/// Files that hold credentials are named in calls, and a policy denies those before they run.
#[test]
fn a_call_that_names_a_credential_file_is_denied_where_policy_says_so() {
    let answer = |seen: &crate::support::upstream::Seen| {
        let asked = String::from_utf8_lossy(&seen.body).into_owned();
        let wanted =
            asked.split("go: ").nth(1).and_then(|rest| rest.split('"').next()).unwrap_or_default().to_owned();
        let (tool, input) = wanted.split_once(' ').unwrap_or_default();
        let key = if tool == "Bash" { "command" } else { "file_path" };
        let body = format!(
            r#"{{"id":"msg_1","type":"message","role":"assistant","model":"m","content":[{{"type":"tool_use","id":"t2","name":"{tool}","input":{{"{key}":"{input}"}}}}],"stop_reason":"tool_use","stop_sequence":null,"usage":{{"input_tokens":7,"output_tokens":9}}}}"#
        );
        crate::support::upstream::Reply::of(200, body).header("content-type", "application/json")
    };
    let spec = "dataLoss: {action: Deny, detectors: [CredentialFiles, ProtectedPaths]}";
    let test = super::requests::models_with(spec, answer, |setup| setup);
    let denied = |wanted: &str| {
        let body = format!(r#"{{"model":"m","messages":[{{"role":"user","content":"go: {wanted}"}}]}}"#);
        test.post(MESSAGES, body).answer.text().contains("Rule: agents/test/dataLoss")
    };
    for call in [
        "Read /w/.env",
        "Read /home/a/.ssh/id_ed25519",
        "Bash cat ~/.aws/credentials",
        "Bash grep KEY .env.local | head",
    ] {
        assert!(denied(call), "{call}");
    }
    for call in
        ["Read /w/.env.example", "Read /w/README.md", "Bash ls -la", "Bash echo the .env file is not read"]
    {
        assert!(!denied(call), "{call}");
    }
}
