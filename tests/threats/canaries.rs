//! Canaries everywhere an agent or a model can put a word: what records, reports and answers of the gateway keep of them.

use serde_json::{Value, json};

use crate::ui::Page;

use super::model::{Model, call, message, named, text};
use crate::support::upstream::{Reply, Step};
use crate::support::{Upstream, directory};

/// What an agent or a provider says, and nothing keeps.
const NEVER: [&str; 18] = [
    "canary-system",
    "canary-prompt",
    "canary-tool-result",
    "canary-description",
    "canary-body-key",
    "canary-header",
    "canary-cookie",
    "canary-query",
    "canary-part-name",
    "canary-filename",
    "canary-part",
    "canary-thinking",
    "canary-answer",
    "canary-response-header",
    "canary-browser",
    "canary-baggage",
    "canary-tracestate",
    "x-canary-field",
];

/// What events name, and neither the log, a metric nor a status. (A metric counts calls by the tool's name.)
const NAMED: [&str; 3] = ["canary-path", "canary-host", "canary-session"];

/// The words of a tool's input: a parameter's name and its value.
const INPUT: [&str; 2] = ["canary-parameter", "canary-input"];

const FILES: &str = "/v1/canary-path/files?q=canary-query";

/// Everything that the gateway says and keeps.
struct Said {
    /// Events in every form.
    records: Vec<(&'static str, String)>,
    /// What is for those who run it, and for the agent.
    others: Vec<(&'static str, String)>,
}

#[track_caller]
fn assert_without(said: &[(&'static str, String)], canaries: &[&str]) {
    for (place, text) in said {
        for canary in canaries {
            let at = text.find(canary).map(|at| text.get(at.saturating_sub(200)..).unwrap_or_default());
            assert!(at.is_none(), "{place} has {canary}: …{:.400}", at.unwrap_or_default());
        }
    }
}

/// Secrets of either kind, put together here, so that no file holds them: one with a hash in events, and one without.
fn secrets() -> [String; 2] {
    [["glp", "at-Ab3dEf6hIj9kLm2nOp5q"].concat(), ["Xk7", "pQz9vT2mLw4s"].concat()]
}

/// One that a host's name may have.
fn named_secret() -> String {
    ["glp", "at-ab3def6hij9klm2nop5q"].concat()
}

fn question() -> String {
    let [token, password] = secrets();
    let content = format!("canary-tool-result {token} postgres://user:{password}@db.example.com/x");
    let tool = json!({"name": "canary-tool", "description": "canary-description", "input_schema": {"type": "object"}});
    let result = json!({"type": "tool_result", "tool_use_id": "toolu_0", "content": content});
    let asked = json!({"type": "tool_use", "id": "toolu_0", "name": "canary-tool", "input": {"canary-parameter": "canary-input"}});
    json!({
        "model": "claude-sonnet-5", "max_tokens": 64, "stream": true, "system": "canary-system",
        "metadata": {"user_id": "user_x_account__session_canary-session", "canary-body-key": "x"}, "tools": [tool],
        "messages": [
            {"role": "user", "content": "canary-prompt"},
            {"role": "assistant", "content": [asked]},
            {"role": "user", "content": [result]},
        ],
    })
    .to_string()
}

const HEADERS: [(&str, &str); 8] = [
    ("content-type", "application/json"),
    ("x-note", "canary-header"),
    ("cookie", "a=canary-cookie"),
    ("user-agent", "canary-browser/1"),
    ("baggage", "user=canary-baggage"),
    ("tracestate", "vendor=canary-tracestate"),
    ("x-canary-field", "1"),
    ("x-claude-code-session-id", "canary-session"),
];

/// Two turns with a model, of which one call is denied and one goes on; requests to paths and hosts that nobody opens; an
/// upload in parts.
fn work(model: &Model) {
    let calls = [
        text(0, "canary-answer"),
        call(1, "toolu_1", "canary-tool", &[r#"{"canary-parameter":"canary-input"}"#]),
        call(2, "toolu_2", "get_weather", &[r#"{"canary-parameter":"canary-input"}"#]),
    ];
    let body = named(&message(&calls, "tool_use"));
    let headers = [("content-type", "text/event-stream"), ("x-provider-note", "canary-response-header")];
    model.says(&headers, vec![Step::Data(body.into())]);
    let agent = model.gateway.agent();
    for _ in 0..2 {
        let url = "https://api.anthropic.com/v1/messages?beta=canary-query";
        assert_eq!(agent.request("POST", url, &HEADERS, question().as_bytes()).status, 200);
    }
    let parts = "--b\r\nContent-Disposition: form-data; name=\"canary-part-name\"; filename=\"canary-filename\"\r\n\r\n\
                 canary-part\r\n--b--\r\n";
    let upload = [("content-type", "multipart/form-data; boundary=b"), ("x-note", "canary-header")];
    let refused =
        agent.request("POST", &format!("https://api.anthropic.com{FILES}"), &upload, parts.as_bytes());
    assert_eq!(refused.status, 403);
    assert_eq!(agent.get("http://canary-host.example.com/canary-path?canary-query").status, 403);
}

/// A secret where names stand: of a host, a path, a session, a model, a tool that is offered, and one that is called, whose
/// input has it too.
fn work_with_names(model: &Model) {
    let secret = named_secret();
    let calls = [
        text(0, "hello"),
        call(1, "toolu_1", &secret, &["{}"]),
        call(2, "toolu_2", "canary-tool", &[&json!({"a": secret}).to_string()]),
    ];
    model.says(
        &[("content-type", "text/event-stream")],
        vec![Step::Data(named(&message(&calls, "tool_use")).into())],
    );
    let agent = model.gateway.agent();
    let url = "https://api.anthropic.com/v1/messages";
    let ask = |session: &str, body: Value| {
        let headers = [("content-type", "application/json"), ("x-claude-code-session-id", session)];
        agent.request("POST", url, &headers, body.to_string().as_bytes()).status
    };
    let plain = json!({"model": "m", "max_tokens": 9, "stream": true, "messages": [{"role": "user", "content": "hi"}]});
    let with = |key: &str, value: Value| {
        let mut body = plain.clone();
        body[key] = value;
        body
    };
    assert_eq!(ask("one", plain.clone()), 200);
    ask(&secret, plain.clone());
    assert_eq!(ask("one", with("model", secret.as_str().into())), 403);
    let tools = json!([{"name": secret, "description": "", "input_schema": {"type": "object"}}]);
    assert_eq!(ask("one", with("tools", tools)), 403);
    assert_eq!(agent.get(&format!("http://{secret}.example.com/{secret}")).status, 403);
    assert_eq!(agent.get(&format!("https://api.anthropic.com/{secret}")).status, 403);
}

fn everything(mut model: Model, file: &str, collector: &Upstream) -> Said {
    let gateway = &model.gateway;
    let denied = gateway.wait_for_event("the denied call", |event| {
        event["kind"] == "ToolCall" && event["decision"]["verdict"] == "Deny"
    });
    let id = denied["id"].as_str().unwrap().to_owned();
    let ask = |path: &str| gateway.agent().get(&format!("http://postern.internal{path}")).text();
    let why = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call",
        "params": {"name": "explain_denial", "arguments": {"event": id}}});
    let json = [("content-type", "application/json")];
    let tool =
        gateway.agent().request("POST", "http://postern.internal/mcp", &json, why.to_string().as_bytes());
    let mut others = vec![
        ("/why", ask(&format!("/why/{id}"))),
        ("/policy", ask("/policy")),
        ("/mcp", tool.text()),
        ("metrics", gateway.admin("/metrics").text()),
        ("ready", gateway.admin("/readyz").text()),
        ("status", gateway.status().to_string()),
    ];
    assert!(others.iter().all(|(place, said)| *place == "ready" || said.len() > 40), "{others:?}");
    assert!(model.gateway.terminate().success());
    others.push(("log", model.gateway.log()));
    let run = |arguments: &[&str]| model.gateway.run(arguments);
    let policy = "policy.yaml";
    let exports = |path: &str| {
        let seen = collector.requests().into_iter().filter(|seen| seen.path() == path);
        String::from_utf8_lossy(&seen.flat_map(|seen| seen.body).collect::<Vec<u8>>()).into_owned()
    };
    let bytes = |name: &str| std::fs::read(name).map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    let lines: Vec<String> = model.gateway.events().iter().map(Value::to_string).collect();
    let records = vec![
        ("stdout", lines.join("\n")),
        ("ledger", bytes(file).unwrap()),
        ("wal", bytes(&format!("{file}-wal")).unwrap_or_default()),
        ("query", run(&["ledger", "query", "--ledger", file])),
        ("show", run(&["ledger", "show", &id, "--ledger", file])),
        ("test", run(&["ledger", "show", &id, "-o", "test", "--ledger", file])),
        ("tail", run(&["ledger", "tail", "--ledger", file])),
        ("stats", run(&["ledger", "stats", "--ledger", file, "--by", "session"])),
        ("sarif", run(&["ledger", "sarif", "--ledger", file])),
        ("learn", run(&["policy", "learn", "--min", "1", "--ledger", file])),
        ("diff", run(&["policy", "diff", policy, policy, "--ledger", file])),
        ("explain", run(&["policy", "explain", "--policy", policy, "--event", &id, "--ledger", file])),
        ("log records", exports("/v1/logs")),
        ("spans", exports("/v1/traces")),
        ("page", Page::start(directory(), file).whole()),
    ];
    assert!(records.iter().all(|(place, said)| *place == "wal" || said.len() > 40), "{records:?}");
    Said { records, others }
}

fn said(inputs: &str) -> Said {
    let collector = Upstream::build().script(|_| Some(Reply::of(200, ""))).start();
    let endpoint = format!("http://{}", collector.address());
    let place = directory();
    let file = place.path().join("ledger.db").display().to_string();
    let spec = format!(
        "explain: Policy\naudit: {{toolInputs: {inputs}}}\n\
         tools: [{{name: no, tools: [canary-tool], action: Deny, reason: Not here}}]"
    );
    let model = Model::with(&spec, |setup| {
        setup
            .set("/ledger/path", file.as_str())
            .variable("OTEL_EXPORTER_OTLP_ENDPOINT", &endpoint)
            .variable("OTEL_LOGS_EXPORTER", "otlp")
    });
    work(&model);
    work_with_names(&model);
    everything(model, &file, &collector)
}

/// G9: under each mode of `audit.toolInputs` nothing keeps what an agent and a model say to each other, and what events name
/// stands in no log, metric or status.
/// D17: a secret in a name is shown by none of them.
#[test]
fn no_word_of_a_conversation_stands_in_any_record() {
    for inputs in ["None", "Hash", "Redacted", "Full"] {
        let said = said(inputs);
        assert_without(&said.records, &NEVER);
        assert_without(&said.others, &NEVER);
        assert_without(&said.others, &INPUT);
        for secret in secrets().into_iter().chain([named_secret()]) {
            assert_without(&said.records, &[&secret]);
            assert_without(&said.others, &[&secret]);
        }
        assert!(said.records[0].1.contains("gitlab-token"), "the token was found");
        assert!(said.records[0].1.contains(r##""name":"#""##), "the call of that name was recorded");
        let digest = aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA256, secrets()[1].as_bytes());
        let hash: String = digest.as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
        assert_without(&said.records, &[&hash]);
        let told: &[&str] = &["metrics", "ready", "status", "log"];
        let others: Vec<_> = said.others.into_iter().filter(|(place, _)| told.contains(place)).collect();
        assert_without(&others, &NAMED);
        // `Redacted` keeps names of parameters, and a canary that is kept nowhere would not be one.
        let (hidden, kept) = match inputs {
            "Full" => (&INPUT[..0], &INPUT[..]),
            "Redacted" => (&INPUT[1..], &INPUT[..1]),
            _ => (&INPUT[..], &INPUT[..0]),
        };
        assert_without(&said.records, hidden);
        for canary in kept {
            assert!(said.records[0].1.contains(canary), "{inputs} keeps {canary}");
        }
    }
}
