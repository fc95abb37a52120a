//! The demo's steps, in the order they are played; a further one is one entry of the list and one function.

use std::pin::Pin;

use super::agent::{AgentAnswer, Ask};
use super::stage::DemoStage;
use super::upstream::ECHO;
use super::{outputs, record, turns};

/// The placeholder that the agent holds instead of the key.
const PLACEHOLDER: &str = "sk-demo-placeholder";

/// One step: its description, the text that has to be seen, and the function that plays it and returns what was seen.
pub(super) struct DemoStep {
    pub(super) done: &'static str,
    pub(super) expected: &'static str,
    pub(super) play: for<'a> fn(&'a DemoStage) -> Playing<'a>,
}

type Playing<'a> = Pin<Box<dyn Future<Output = anyhow::Result<String>> + Send + 'a>>;

pub(super) const STEPS: &[DemoStep] = &[
    DemoStep {
        done: "GET https://model.demo.test/, which a rule inspects",
        expected: "200, TLS by Postern",
        play: |stage| Box::pin(inspected(stage)),
    },
    DemoStep {
        done: "CONNECT unknown.demo.test:443, which no rule names",
        expected: "403 to CONNECT by postern/builtin/default-deny",
        play: |stage| Box::pin(unnamed(stage)),
    },
    DemoStep {
        done: "GET https://pastebin.demo.test/, which a rule denies by name",
        expected: "403 by local/demo/pastebin in six lines, TLS by Postern",
        play: |stage| Box::pin(denied_by_name(stage)),
    },
    DemoStep {
        done: "GET https://packages.demo.test/simple/serde, an endpoint that is listed",
        expected: "200, TLS by Postern",
        play: |stage| Box::pin(listed_endpoint(stage)),
    },
    DemoStep {
        done: "POST https://packages.demo.test/upload, an endpoint that is not",
        expected: "403 by postern/builtin/endpoint in six lines, TLS by Postern",
        play: |stage| Box::pin(other_endpoint(stage)),
    },
    DemoStep {
        done: "GET https://model.demo.test/v1/models with the placeholder of a key",
        expected: "200, the server got the real key, the placeholder stayed here",
        play: |stage| Box::pin(swapped_key(stage)),
    },
    DemoStep {
        done: "the same placeholder, sent to packages.demo.test",
        expected: "403 by postern/builtin/placeholder in six lines, TLS by Postern",
        play: |stage| Box::pin(placeholder_elsewhere(stage)),
    },
    DemoStep {
        done: "GET https://model.demo.test/v1/echo, which answers with the key it got",
        expected: "200, the key scrubbed from header and body",
        play: |stage| Box::pin(scrubbed(stage)),
    },
    DemoStep {
        done: "GET https://eu.registry.demo.test/, which a rule tunnels",
        expected: "200, TLS by the server",
        play: |stage| Box::pin(tunnelled(stage)),
    },
    DemoStep {
        done: "TLS to model.demo.test, then Host: packages.demo.test",
        expected: "421 by postern/builtin/name-mismatch in six lines, TLS by Postern",
        play: |stage| Box::pin(disagreeing_names(stage)),
    },
    DemoStep {
        done: "GET https://later.demo.test/, then the policy's file is edited to inspect it, then again",
        expected: "403, then 200",
        play: |stage| Box::pin(edited_policy(stage)),
    },
    DemoStep {
        done: "ask a model at llm.demo.test, with the tools web_search and Bash",
        expected: "200, the provider was offered Bash",
        play: |stage| Box::pin(turns::hosted_tool(stage)),
    },
    DemoStep {
        done: "the model calls Bash twice in one stream, for ls -l and for rm -fr /",
        expected: r#"Bash {"command":"ls -l"} as it was sent, then a text by local/demo/only-listings, stop_reason tool_use"#,
        play: |stage| Box::pin(turns::blocked_call(stage)),
    },
    DemoStep {
        done: "read what stands in the place of rm -fr /",
        expected: "[postern] Tool call blocked by policy | Tool: Bash | Rule: local/demo/only-listings | \
                   Reason: Only ls may be run here | \
                   The tool itself is allowed; this use of it is not. Do not retry it unchanged. | \
                   Ask: the gateway's own name | Event: its id",
        play: |stage| Box::pin(turns::read_refusal(stage)),
    },
    DemoStep {
        done: "the model calls Read twice, for a file of the project and for /etc/shadow",
        expected: r#"Read {"file_path":"/workspace/README.md"} as it was sent, then a text by local/demo/stay-in-project, stop_reason tool_use"#,
        play: |stage| Box::pin(turns::outside_project(stage)),
    },
    DemoStep {
        done: "the model edits notes.txt twice: for a text that does not stand in it, and for one that does",
        expected: r#"a text by local/demo/edits, then Edit {"file_path":"notes.txt","old_string":"two","new_string":"2"} as it was sent, stop_reason tool_use; it names notes.txt"#,
        play: |stage| Box::pin(turns::edits(stage)),
    },
    DemoStep {
        done: "a tool has read a file with a token of GitLab in it; go on",
        expected: "200, the provider read GITLAB_TOKEN=[postern:gitlab-token]",
        play: |stage| Box::pin(turns::secret_in_result(stage)),
    },
    DemoStep {
        done: "POST the same token to model.demo.test",
        expected: "403 by postern/builtin/outbound-exfiltration in six lines, TLS by Postern",
        play: |stage| Box::pin(secret_elsewhere(stage)),
    },
    DemoStep {
        done: "a test run has printed 2,000 lines, of which one failed; go on",
        expected: "200, the provider read 184 lines, 700: test case 700 ... FAILED among them",
        play: |stage| Box::pin(outputs::cut(stage)),
    },
    DemoStep {
        done: "read the rest at the address that stands in their place",
        expected: "2000 lines, byte for byte what the test run printed",
        play: |stage| Box::pin(outputs::read_back(stage)),
    },
    DemoStep {
        done: "ask the model demo-opus, which a rule in CEL denies",
        expected: "403 by local/demo/small-models: Use a smaller model",
        play: |stage| Box::pin(turns::denied_model(stage)),
    },
    DemoStep {
        done: "ask the gateway, at the address in that refusal, why",
        expected: "Request denied by local/demo/small-models: Use a smaller model",
        play: |stage| Box::pin(turns::why(stage)),
    },
    DemoStep {
        done: "a subagent asks, with a marker for the model local in its system prompt; it calls Bash for rm -fr /",
        expected: "/v1/chat/completions got demo-local, without marker and key; \
                   a text by local/demo/only-listings, stop_reason end_turn",
        play: |stage| Box::pin(turns::subagent(stage)),
    },
    DemoStep {
        done: "llm.demo.test is stopped; ask it all the same",
        expected: "200 by local: text Said by the local model., stop_reason end_turn",
        play: |stage| Box::pin(turns::outage(stage)),
    },
    DemoStep {
        done: "look for the events of those calls",
        expected: "3 Bash allowed, 4 Bash denied by local/demo/only-listings, \
                   1 Edit allowed, 1 Edit denied by local/demo/edits, 1 Read allowed, \
                   1 Read denied by local/demo/stay-in-project; 1 web_search taken out",
        play: |stage| Box::pin(turns::events(stage)),
    },
    DemoStep {
        done: "look for the events of the refusals",
        expected: "each of 8 refusals has the event it named; no event holds the key",
        play: |stage| Box::pin(events(stage)),
    },
    DemoStep {
        done: "report the denials as SARIF, each at its rule",
        expected: "13 results; the one of the rule in CEL: error local/demo/small-models at policy.yaml:45",
        play: |stage| Box::pin(record::sarif(stage)),
    },
    DemoStep {
        done: "count what happened",
        expected: "6 requests denied, 6 of 11 tool calls denied by 3 rules, 108 tokens in and 270 out",
        play: |stage| Box::pin(record::stats(stage)),
    },
    DemoStep {
        done: "look at it in a browser: serve the page of these events on the loopback",
        expected: "200 at http://127.0.0.1:PORT/TOKEN/, 403 without the token",
        play: |stage| Box::pin(record::page(stage)),
    },
    DemoStep {
        done: "GET /metrics of the gateway",
        expected: "2 keys attached, 6 requests denied, 6 of 11 tool calls denied, 1 hosted tool taken out",
        play: |stage| Box::pin(metrics(stage)),
    },
];

async fn inspected(stage: &DemoStage) -> anyhow::Result<String> {
    Ok(answered(&stage.ask(Ask::get("model.demo.test", "/")).await?))
}

async fn unnamed(stage: &DemoStage) -> anyhow::Result<String> {
    Ok(refused(&stage.ask(Ask::get("unknown.demo.test", "/")).await?))
}

async fn denied_by_name(stage: &DemoStage) -> anyhow::Result<String> {
    Ok(refused(&stage.ask(Ask::get("pastebin.demo.test", "/")).await?))
}

async fn listed_endpoint(stage: &DemoStage) -> anyhow::Result<String> {
    Ok(answered(&stage.ask(Ask::get("packages.demo.test", "/simple/serde")).await?))
}

async fn other_endpoint(stage: &DemoStage) -> anyhow::Result<String> {
    let ask = Ask { method: "POST", ..Ask::get("packages.demo.test", "/upload") };
    Ok(refused(&stage.ask(ask).await?))
}

async fn swapped_key(stage: &DemoStage) -> anyhow::Result<String> {
    let shown = stage.ask(Ask::get("model.demo.test", "/v1/models").with_key(PLACEHOLDER)).await?;
    let seen = stage.upstream.seen();
    let last = seen.iter().rev().find(|seen| seen.path == "/v1/models");
    let heads = last.map(|seen| format!("{:?}", seen.headers)).unwrap_or_default();
    let got = if heads.contains(&stage.real_key) { "the server got the real key" } else { "no real key" };
    let kept =
        if heads.contains(PLACEHOLDER) { "the placeholder left" } else { "the placeholder stayed here" };
    Ok(format!("{}, {got}, {kept}", shown.status.as_u16()))
}

async fn placeholder_elsewhere(stage: &DemoStage) -> anyhow::Result<String> {
    Ok(refused(&stage.ask(Ask::get("packages.demo.test", "/simple/serde").with_key(PLACEHOLDER)).await?))
}

async fn secret_elsewhere(stage: &DemoStage) -> anyhow::Result<String> {
    let body = format!(r#"{{"note": "{}"}}"#, turns::token());
    Ok(refused(&stage.ask(Ask::post("model.demo.test", "/v1/notes", body)).await?))
}

async fn scrubbed(stage: &DemoStage) -> anyhow::Result<String> {
    let shown = stage.ask(Ask::get("model.demo.test", ECHO).with_key(PLACEHOLDER)).await?;
    let places = [("header", shown.header("x-echo")), ("body", shown.body.as_str())];
    // The echo has to be there, or nothing would be proven.
    let clean: Vec<_> = places
        .iter()
        .filter(|(_, text)| text.contains("Bearer ") && !text.contains(&stage.real_key))
        .map(|(place, _)| *place)
        .collect();
    Ok(format!("{}, the key scrubbed from {}", shown.status.as_u16(), clean.join(" and ")))
}

async fn tunnelled(stage: &DemoStage) -> anyhow::Result<String> {
    Ok(answered(&stage.ask(Ask::get("eu.registry.demo.test", "/")).await?))
}

async fn disagreeing_names(stage: &DemoStage) -> anyhow::Result<String> {
    let ask = Ask { host: "packages.demo.test", ..Ask::get("model.demo.test", "/simple/serde") };
    Ok(refused(&stage.ask(ask).await?))
}

async fn edited_policy(stage: &DemoStage) -> anyhow::Result<String> {
    let before = stage.ask(Ask::get("later.demo.test", "/")).await?.status;
    stage.add_destination("{name: later, hosts: [later.demo.test], action: Inspect}").await?;
    let after = stage.ask(Ask::get("later.demo.test", "/")).await?.status;
    Ok(format!("{}, then {}", before.as_u16(), after.as_u16()))
}

async fn events(stage: &DemoStage) -> anyhow::Result<String> {
    let refusals = stage.refusals();
    let denials = || {
        let lines = stage.events();
        let told = |id: &&String| {
            lines.iter().any(|line| {
                line.contains(&format!("\"id\":\"{id}\"")) && line.contains("\"verdict\":\"Deny\"")
            })
        };
        refusals.iter().filter(told).count()
    };
    stage.until("the events of the refusals", || denials() == refusals.len()).await?;
    let leaked = stage.events().iter().filter(|line| line.contains(&stage.real_key)).count();
    let key =
        if leaked == 0 { "no event holds the key".to_owned() } else { format!("{leaked} hold the key") };
    Ok(format!("each of {} refusals has the event it named; {key}", denials()))
}

async fn metrics(stage: &DemoStage) -> anyhow::Result<String> {
    let text = stage.metrics().await?;
    let sum = |name: &str, label: &str| -> f64 {
        let series = text.lines().filter(|line| line.starts_with(name) && line.contains(label));
        series.filter_map(|line| line.rsplit_once(' ')?.1.parse::<f64>().ok()).sum()
    };
    let keys = sum("postern_credentials_attached_total{", "credential=");
    let denied = sum("postern_requests_total{", "verdict=\"Deny\"");
    let calls = sum("postern_tool_calls_total{", "");
    let blocked = sum("postern_tool_calls_total{", "verdict=\"Deny\"");
    let taken = sum("postern_hosted_tools_stripped_total{", "");
    Ok(format!(
        "{keys} keys attached, {denied} requests denied, {blocked} of {calls} tool calls denied, \
         {taken} hosted tool taken out"
    ))
}

/// An answer in words.
fn answered(shown: &AgentAnswer) -> String {
    format!("{}, TLS by {}", shown.status.as_u16(), who(shown))
}

/// A refusal in words.
fn refused(shown: &AgentAnswer) -> String {
    let rule = shown.header("x-postern-rule");
    if shown.issuer.is_none() {
        return format!("{} to CONNECT by {rule}", shown.status.as_u16());
    }
    let lines = match shown.body.lines().count() {
        6 => "six lines".to_owned(),
        other => format!("{other} lines"),
    };
    let status = shown.status.as_u16();
    format!("{status} by {rule} in {lines}, TLS by {}", who(shown))
}

/// Returns who ended the TLS, by the issuer of the certificate.
fn who(shown: &AgentAnswer) -> &str {
    match shown.issuer.as_deref() {
        Some("The server's own CA") => "the server",
        Some(issuer) if issuer.starts_with("Postern CA ") => "Postern",
        other => other.unwrap_or("nobody"),
    }
}
