//! A gateway in front of one server that stands for every provider, and what became of requests to a model: at the
//! provider, for the agent, and in the events.

use std::fmt::Write as _;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::Value;

use super::requests_routed;
use crate::support::upstream::{Reply, Seen};
use crate::support::{Answer, Gateway, Pki, Setup, Upstream};

pub(super) const MESSAGES: &str = "api.anthropic.com/v1/messages";
pub(super) const CHAT: &str = "api.openai.com/v1/chat/completions";
pub(super) const RESPONSES: &str = "api.openai.com/v1/responses";
pub(super) const GEMINI: &str =
    "generativelanguage.googleapis.com/v1beta/models/gemini-3-pro:generateContent";
pub(super) const CONVERSE: &str =
    "bedrock-runtime.us-east-1.amazonaws.com/model/amazon.nova-pro-v1:0/converse";
pub(super) const INVOKE: &str =
    "bedrock-runtime.us-east-1.amazonaws.com/model/anthropic.claude-sonnet-5-v1:0/invoke";

/// A rule that looks at every shell command, so that answers are read.
pub(super) const NO_RM: &str = "tools: [{name: no-rm, tools: [Bash, run], action: Deny, when: {param: command, operator: Contains, values: [rm]}}]";

/// Every dialect, by one of its doors.
pub(super) const DIALECTS: [&str; 6] = [MESSAGES, CHAT, RESPONSES, GEMINI, CONVERSE, INVOKE];

/// What the server stands for.
const HOSTS: [&str; 15] = [
    "api.anthropic.com",
    "api.openai.com",
    "generativelanguage.googleapis.com",
    "bedrock-runtime.us-east-1.amazonaws.com",
    "us-east5-aiplatform.googleapis.com",
    "cloudcode-pa.googleapis.com",
    "openrouter.ai",
    "api.x.ai",
    "api.groq.com",
    "api.mistral.ai",
    "api.perplexity.ai",
    "api.cohere.com",
    "api.deepseek.com",
    "team.openai.azure.com",
    "ollama.com",
];

/// The gateway, and the server behind it.
pub(super) struct Models {
    pub(super) upstream: Upstream,
    pub(super) gateway: Gateway,
    asked: AtomicUsize,
    /// The lines of its policy, where rows are tried under a route too.
    spec: Option<String>,
}

/// One request that was answered.
pub(super) struct Asked {
    pub(super) answer: Answer,
    /// What came of it at the provider.
    pub(super) reached: Vec<Seen>,
    session: String,
}

/// A request, and what must become of it.
pub(super) struct Row {
    pub(super) door: &'static str,
    pub(super) sent: String,
    pub(super) fate: Fate,
}

pub(super) enum Fate {
    Untouched,
    Becomes(String),
    Refused(String),
}

/// It reaches the provider byte for byte.
pub(super) fn untouched(door: &'static str, sent: impl Into<String>) -> Row {
    Row { door, sent: sent.into(), fate: Fate::Untouched }
}

/// It reaches the provider like this.
pub(super) fn becomes(door: &'static str, sent: impl Into<String>, expected: impl Into<String>) -> Row {
    Row { door, sent: sent.into(), fate: Fate::Becomes(expected.into()) }
}

/// It goes nowhere, by this rule; of a built-in one, its name alone.
pub(super) fn refused(door: &'static str, sent: impl Into<String>, rule: &str) -> Row {
    let rule = if rule.contains('/') { rule.to_owned() } else { format!("postern/builtin/{rule}") };
    Row { door, sent: sent.into(), fate: Fate::Refused(rule) }
}

/// A plain question at a door, with these entries (each with its comma) before what is said.
pub(super) fn said(door: &str, entries: &str) -> String {
    match door {
        GEMINI => format!(r#"{{{entries}"contents":[{{"role":"user","parts":[{{"text":"go"}}]}}]}}"#),
        CONVERSE => format!(r#"{{{entries}"messages":[{{"role":"user","content":[{{"text":"go"}}]}}]}}"#),
        RESPONSES => format!(r#"{{"model":"gpt-5","store":false,{entries}"input":"go"}}"#),
        INVOKE => format!(
            r#"{{"anthropic_version":"bedrock-2023-05-31",{entries}"messages":[{{"role":"user","content":"go"}}]}}"#
        ),
        _ => format!(r#"{{"model":"some-model",{entries}"messages":[{{"role":"user","content":"go"}}]}}"#),
    }
}

/// A question with these tools.
pub(super) fn offering(door: &str, tools: &[&str]) -> String {
    let list = tools.join(",");
    let entries = match door {
        CONVERSE => format!(r#""toolConfig":{{"tools":[{list}]}},"#),
        _ => format!(r#""tools":[{list}],"#),
    };
    said(door, &entries)
}

/// A tool that the agent runs itself.
pub(super) fn own_tool(door: &str) -> &'static str {
    match door {
        CHAT => r#"{"type":"function","function":{"name":"look_up","parameters":{"type":"object"}}}"#,
        RESPONSES => r#"{"type":"function","name":"look_up","parameters":{"type":"object"}}"#,
        GEMINI => r#"{"functionDeclarations":[{"name":"look_up"}]}"#,
        CONVERSE => r#"{"toolSpec":{"name":"look_up","inputSchema":{"json":{"type":"object"}}}}"#,
        _ => r#"{"name":"look_up","input_schema":{"type":"object"}}"#,
    }
}

/// A tool that the provider would run.
pub(super) fn hosted_tool(door: &str) -> &'static str {
    match door {
        CHAT | RESPONSES => r#"{"type":"web_search"}"#,
        GEMINI => r#"{"googleSearch":{}}"#,
        CONVERSE => r#"{"systemTool":{"name":"nova_grounding"}}"#,
        _ => r#"{"type":"web_search_20250305","name":"web_search"}"#,
    }
}

/// Under a policy with these lines beside its destinations, all inspected.
pub(super) fn models(spec: &str) -> Models {
    let models = models_with(spec, |seen| reply(seen.path()), |setup| setup);
    Models { spec: Some(spec.to_owned()), ..models }
}

/// The same, answered by a script, and changed before it starts.
pub(super) fn models_with(
    spec: &str,
    script: impl Fn(&Seen) -> Reply + Send + Sync + 'static,
    change: impl FnOnce(Setup) -> Setup,
) -> Models {
    let upstreams = Pki::new("Upstream Test CA");
    let names = [&HOSTS[..], &[requests_routed::HOST]].concat();
    let upstream =
        Upstream::build().identity(upstreams.leaf(&names)).script(move |seen| Some(script(seen))).start();
    let setup = Setup::new(&upstreams).policy(&policy(spec));
    let setup = names.iter().fold(setup, |setup, host| setup.host(host, upstream.address()));
    Models { upstream, gateway: change(setup).start(), asked: AtomicUsize::new(0), spec: None }
}

/// The policy `agents/test`, which inspects every provider.
pub(super) fn policy(spec: &str) -> String {
    let mut lines = String::new();
    spec.lines().for_each(|line| writeln!(lines, "  {line}").unwrap());
    crate::support::setup::policy(&[&format!(
        "{{name: llm, hosts: [{}], action: Inspect}}",
        HOSTS.join(", ")
    )]) + &lines
}

/// A short answer of the API at a path, whole.
pub(super) fn reply(path: &str) -> Reply {
    let body = if path.ends_with("/count_tokens") || path.ends_with("/input_tokens") {
        r#"{"input_tokens":7}"#
    } else if path.ends_with("countTokens") {
        r#"{"totalTokens":7}"#
    } else if path.ends_with("/count-tokens") {
        r#"{"inputTokens":7}"#
    } else if path.ends_with("/chat/completions") {
        r#"{"id":"chatcmpl-1","object":"chat.completion","model":"gpt-5","choices":[{"index":0,"message":{"role":"assistant","content":"ok"},"finish_reason":"stop"}],"usage":{"prompt_tokens":7,"completion_tokens":9,"total_tokens":16}}"#
    } else if path.ends_with("/responses") || path.ends_with("/compact") {
        r#"{"id":"resp_1","object":"response","status":"completed","model":"gpt-5","output":[{"id":"msg_1","type":"message","status":"completed","role":"assistant","content":[{"type":"output_text","text":"ok","annotations":[]}]}],"usage":{"input_tokens":7,"output_tokens":9,"total_tokens":16}}"#
    } else if path.contains("v1internal") {
        r#"{"response":{"candidates":[{"content":{"role":"model","parts":[{"text":"ok"}]},"finishReason":"STOP"}]}}"#
    } else if path.contains("enerateContent") {
        r#"{"candidates":[{"content":{"role":"model","parts":[{"text":"ok"}]},"finishReason":"STOP","index":0}],"modelVersion":"gemini-3-pro"}"#
    } else if path.ends_with("/converse") {
        r#"{"output":{"message":{"role":"assistant","content":[{"text":"ok"}]}},"stopReason":"end_turn","usage":{"inputTokens":7,"outputTokens":9,"totalTokens":16},"metrics":{"latencyMs":1}}"#
    } else {
        r#"{"id":"msg_1","type":"message","role":"assistant","model":"claude-sonnet-5","content":[{"type":"text","text":"ok"}],"stop_reason":"end_turn","stop_sequence":null,"usage":{"input_tokens":7,"output_tokens":9}}"#
    };
    Reply::of(200, body).header("content-type", "application/json")
}

impl Models {
    /// Asks a model in JSON.
    #[track_caller]
    pub(super) fn post(&self, door: &str, body: impl AsRef<[u8]>) -> Asked {
        self.post_with(door, &[("content-type", "application/json")], body)
    }

    /// The same, with these fields and no others.
    #[track_caller]
    pub(super) fn post_with(&self, door: &str, headers: &[(&str, &str)], body: impl AsRef<[u8]>) -> Asked {
        let before = self.upstream.requests().len();
        let session = format!("s{}", self.asked.fetch_add(1, Ordering::Relaxed));
        let mut all = vec![("x-postern-session", session.as_str())];
        all.extend(headers);
        let answer = self.gateway.agent().request("POST", &format!("https://{door}"), &all, body.as_ref());
        Asked { answer, reached: self.upstream.requests().split_off(before), session }
    }

    /// Asserts what becomes of each request; every one that fares otherwise is told. Those of Messages fare alike where a
    /// model of Chat Completions answers them.
    #[track_caller]
    pub(super) fn assert_rows(&self, rows: &[Row]) {
        let told = |row: &Row, problem: String| format!("{}\n  sent     {}\n  {problem}", row.door, row.sent);
        let problems = rows.iter().filter_map(|row| {
            self.compare(row, &self.post(row.door, &row.sent)).err().map(|problem| told(row, problem))
        });
        let mut problems: Vec<String> = problems.collect();
        if let Some(spec) = &self.spec {
            let routed = requests_routed::problems(spec, rows);
            problems
                .extend(routed.into_iter().map(|(row, problem)| told(row, format!("by a route: {problem}"))));
        }
        assert!(problems.is_empty(), "{} of {} rows:\n{}", problems.len(), rows.len(), problems.join("\n"));
    }

    fn compare(&self, row: &Row, asked: &Asked) -> Result<(), String> {
        match &row.fate {
            Fate::Untouched => {
                asked.arrived(row.sent.as_bytes())?;
                self.event_of(asked, "Request", "Allow");
                let changed = self.events_of(asked).into_iter().find(|event| event["kind"] == "Transform");
                changed.map_or(Ok(()), |event| Err(format!("an event says it was changed: {event}")))
            }
            Fate::Becomes(expected) => {
                asked.arrived(expected.as_bytes())?;
                let event = self.event_of(asked, "Transform", "Allow");
                let said = &event["transforms"][0];
                let told = (said["before"]["sha256"].as_str(), said["after"]["sha256"].as_str());
                let made = (sha256(row.sent.as_bytes()), sha256(expected.as_bytes()));
                let is_told = told == (Some(made.0.as_str()), Some(made.1.as_str()));
                if is_told { Ok(()) } else { Err(format!("the event tells of other bytes: {event}")) }
            }
            Fate::Refused(rule) => {
                if let Some(seen) = asked.reached.first() {
                    return Err(format!("came as  {}", String::from_utf8_lossy(&seen.body)));
                }
                if asked.answer.header("x-postern-rule") != Some(rule) {
                    return Err(format!("answered {:?}", asked.answer));
                }
                asked.answer.assert_refused_by_provider(rule);
                self.assert_denial_is_told(asked, rule);
                Ok(())
            }
        }
    }

    /// Asserts that the event which a refusal names says so.
    #[track_caller]
    pub(super) fn assert_denial_is_told(&self, asked: &Asked, rule: &str) {
        let id = asked.answer.header("x-postern-event").unwrap_or_default();
        let event = self.gateway.wait_for_event("the event of a refusal", |event| event["id"] == id);
        let told = (&event["kind"], &event["decision"]["verdict"], &event["decision"]["rule"]);
        assert_eq!(told, (&"Request".into(), &"Deny".into(), &rule.into()), "{event}");
    }

    /// Waits for an event of a request.
    #[track_caller]
    pub(super) fn event_of(&self, asked: &Asked, kind: &str, verdict: &str) -> Value {
        self.gateway.wait_for_event(&format!("a {kind} event with verdict {verdict}"), |event| {
            event["session"] == asked.session.as_str()
                && event["kind"] == kind
                && event["decision"]["verdict"] == verdict
        })
    }

    /// The events of a request so far.
    pub(super) fn events_of(&self, asked: &Asked) -> Vec<Value> {
        let events = self.gateway.events().into_iter();
        events.filter(|event| event["session"] == asked.session.as_str()).collect()
    }
}

impl Asked {
    /// What the provider read; panics where nothing came.
    #[track_caller]
    pub(super) fn seen(&self) -> &Seen {
        self.reached.first().unwrap_or_else(|| panic!("nothing reached the provider: {:?}", self.answer))
    }

    fn arrived(&self, expected: &[u8]) -> Result<(), String> {
        let Some(seen) = self.reached.first() else { return Err(format!("answered {:?}", self.answer)) };
        if seen.body != expected {
            let (expected, came) = (String::from_utf8_lossy(expected), String::from_utf8_lossy(&seen.body));
            return Err(format!("expected {expected}\n  came as  {came}"));
        }
        if seen.header("content-length") != Some(&expected.len().to_string()) {
            return Err(format!("with another length: {:?}", seen.headers));
        }
        if self.answer.status != 200 {
            return Err(format!("answered {:?}", self.answer));
        }
        Ok(())
    }
}

/// SHA-256 in hex.
fn sha256(bytes: &[u8]) -> String {
    let digest = aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA256, bytes);
    digest.as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
}
