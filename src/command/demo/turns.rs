//! The demo's steps about models: their requests, their calls, and the answers that the agent reads.

use std::collections::BTreeMap;

use anyhow::{Context, bail};
use serde_json::{Value, json};

use super::agent::{AgentAnswer, Ask};
use super::provider::{self, CLEAN_UP, CORRECT, Call, LOOK_AROUND, MESSAGES, ModelTurn};
use super::stage::DemoStage;

pub(super) const HOST: &str = "llm.demo.test";

/// Returns which tools the provider was offered: `web_search`, and one of the agent's own.
pub(super) async fn hosted_tool(stage: &DemoStage) -> anyhow::Result<String> {
    let search = json!({"type": "web_search_20250305", "name": "web_search"});
    let shown = ask(stage, &CLEAN_UP, &[search, tool("Bash")]).await?;
    let seen = stage.upstream.seen();
    let last = seen.iter().rev().find(|seen| seen.path == MESSAGES).context("nothing was asked")?;
    let asked: Value = serde_json::from_slice(&last.body)?;
    let offered = asked["tools"].as_array().context("no tools")?;
    let names: Vec<_> = offered.iter().filter_map(|tool| tool["name"].as_str()).collect();
    Ok(format!("{}, the provider was offered {}", shown.status.as_u16(), names.join(" and ")))
}

/// Plays two calls in one stream, of which the second is denied.
pub(super) async fn blocked_call(stage: &DemoStage) -> anyhow::Result<String> {
    let shown = ask(stage, &CLEAN_UP, &[tool("Bash")]).await?;
    came(&shown, CLEAN_UP.1)
}

/// Returns the text that replaced a denied call.
pub(super) async fn read_refusal(stage: &DemoStage) -> anyhow::Result<String> {
    let shown = ask(stage, &CLEAN_UP, &[tool("Bash")]).await?;
    let answer = PrintedAnswer::read(&shown.body)?;
    let (_, text) = answer.blocks.iter().find(|(kind, _)| kind == "text").context("no text")?;
    let lines = text.trim_end().lines().map(|line| match line {
        line if line.starts_with("Ask: ") => "Ask: the gateway's own name",
        line if line.starts_with("Event: ") => "Event: its id",
        line => line,
    });
    Ok(lines.collect::<Vec<_>>().join(" | "))
}

/// Plays reads of a file in the project, and of one outside.
pub(super) async fn outside_project(stage: &DemoStage) -> anyhow::Result<String> {
    let shown = ask(stage, &LOOK_AROUND, &[tool("Read")]).await?;
    came(&shown, LOOK_AROUND.1)
}

/// Plays edits of a file: one that looks for a text which is not there, and one that fits. Returns what the agent reads, and
/// what it is told of the file.
pub(super) async fn edits(stage: &DemoStage) -> anyhow::Result<String> {
    let shown = ask(stage, &CORRECT, &[tool("Edit")]).await?;
    let answer = PrintedAnswer::read(&shown.body)?;
    let (_, text) = answer.blocks.first().context("no answer")?;
    let reason = text.lines().find_map(|line| line.strip_prefix("Reason: ")).unwrap_or_default();
    let told = if reason.contains("notes.txt") { "it names notes.txt" } else { reason };
    Ok(format!("{}; {told}", came(&shown, CORRECT.1)?))
}

/// A token as GitLab makes them. It is put together here, so that no file holds one.
pub(super) fn token() -> String {
    ["glp", "at-Zq3vEf6hIj9kLm2nOp5s"].concat()
}

/// Returns what the provider reads of a file with a token in it, which a tool has read.
pub(super) async fn secret_in_result(stage: &DemoStage) -> anyhow::Result<String> {
    let line = format!("GITLAB_TOKEN={}", token());
    let body = json!({
        "model": "demo", "max_tokens": 1024, "stream": true, "tools": [tool("Read")],
        "messages": [
            {"role": "user", "content": "What is set?"},
            {"role": "assistant", "content": [{"type": "tool_use", "id": "t1", "name": "Read", "input": {"file_path": "/workspace/.env"}}]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": line}]},
        ],
    });
    let shown = stage.ask(Ask::post(HOST, MESSAGES, body.to_string())).await?;
    let seen = stage.upstream.seen();
    let last = seen.iter().rev().find(|seen| seen.path == MESSAGES).context("nothing was asked")?;
    let asked: Value = serde_json::from_slice(&last.body)?;
    let read = first(&asked["messages"][2]["content"][0], ["content"]);
    Ok(format!("{}, the provider read {read}", shown.status.as_u16()))
}

/// Returns how a rule over facts refuses a model.
pub(super) async fn denied_model(stage: &DemoStage) -> anyhow::Result<String> {
    let body =
        json!({"model": "demo-opus", "max_tokens": 1024, "messages": [{"role": "user", "content": "hello"}]});
    let shown = stage.ask(Ask::post(HOST, MESSAGES, body.to_string())).await?;
    let error: Value = serde_json::from_str(&shown.body)?;
    let text = first(&error["error"], ["message"]);
    let reason = text.lines().find_map(|line| line.strip_prefix("Reason: ")).unwrap_or_default();
    Ok(format!("{} by {}: {reason}", shown.status.as_u16(), shown.header("x-postern-rule")))
}

/// The key of the agent's own account, which is nobody else's business.
const AGENT_KEY: &str = "sk-demo-agents-own";

/// A subagent asks with a marker in its system prompt. Returns what the local model got, and what the agent reads.
pub(super) async fn subagent(stage: &DemoStage) -> anyhow::Result<String> {
    let (prompt, _) = CLEAN_UP;
    let body = json!({
        "model": "demo-small", "max_tokens": 1024, "stream": true, "tools": [tool("Bash")],
        "system": "<!-- @proxy-local-route:d3m0 model=local -->\nYou tidy up.",
        "messages": [{"role": "user", "content": prompt}],
    });
    let shown = stage.ask(Ask::post(HOST, MESSAGES, body.to_string()).with_key(AGENT_KEY)).await?;
    let seen = stage.upstream.seen();
    let asked = seen.last().context("nothing was asked")?;
    let got: Value = serde_json::from_slice(&asked.body)?;
    let all = format!("{:?} {got}", asked.headers);
    let left = if all.contains(AGENT_KEY) || all.contains("proxy-local-route") { "with" } else { "without" };
    let (path, model) = (&asked.path, first(&got, ["model"]));
    let read = came(&shown, CLEAN_UP.1)?;
    Ok(format!("{path} got {model}, {left} marker and key; {read}"))
}

/// The agent's provider is stopped. Returns who answers, and what.
pub(super) async fn outage(stage: &DemoStage) -> anyhow::Result<String> {
    stage.upstream.stop(HOST);
    let shown = ask(stage, &("Go on.", CLEAN_UP.1), &[]).await?;
    let (status, route) = (shown.status.as_u16(), shown.header("x-postern-route").to_owned());
    Ok(format!("{status} by {route}: {}", came(&shown, CLEAN_UP.1)?))
}

/// Returns what the gateway says of the last refusal, at its own name.
pub(super) async fn why(stage: &DemoStage) -> anyhow::Result<String> {
    let event = stage.refusals().pop().context("nothing was refused")?;
    let shown = stage.agent.ask_gateway(&format!("/why/{event}")).await?;
    let told: Value = serde_json::from_str(&shown)?;
    let word = |name| first(&told, [name]);
    let verdict = if told["verdict"] == "Deny" { "denied" } else { "not denied" };
    Ok(format!("{} {verdict} by {}: {}", word("kind"), word("rule"), word("reason")))
}

/// Returns the events of the calls, and of the tools that were removed.
pub(super) async fn events(stage: &DemoStage) -> anyhow::Result<String> {
    let calls = |lines: &[String]| lines.iter().filter(|line| line.contains(r#""kind":"ToolCall""#)).count();
    stage.until("the events of the tool calls", || calls(&stage.events()) >= 11).await?;
    let (mut texts, mut taken) = (BTreeMap::<_, usize>::new(), 0);
    for line in stage.events() {
        let event: Value = serde_json::from_str(&line)?;
        let taken_out = &event["transforms"][0]["detail"] == "web_search_20250305";
        taken += usize::from(event["kind"] == "Transform" && taken_out);
        if event["kind"] == "ToolCall" {
            let (name, decision) = (event["toolCall"]["name"].as_str(), &event["decision"]);
            let by = decision["rule"].as_str().filter(|_| decision["verdict"] == "Deny");
            let by = by.map_or_else(|| "allowed".to_owned(), |rule| format!("denied by {rule}"));
            *texts.entry(format!("{} {by}", name.unwrap_or_default())).or_default() += 1;
        }
    }
    let texts: Vec<_> = texts.iter().map(|(what, count)| format!("{count} {what}")).collect();
    Ok(format!("{}; {taken} web_search taken out", texts.join(", ")))
}

/// A prompt with these tools, answered in a stream.
async fn ask(stage: &DemoStage, (prompt, _): &ModelTurn, tools: &[Value]) -> anyhow::Result<AgentAnswer> {
    let body = json!({
        "model": "demo", "max_tokens": 1024, "stream": true, "tools": tools,
        "messages": [{"role": "user", "content": prompt}],
    });
    stage.ask(Ask::post(HOST, MESSAGES, body.to_string())).await
}

pub(super) fn tool(name: &str) -> Value {
    json!({"name": name, "description": "A tool of the agent's own.", "input_schema": {"type": "object"}})
}

/// In words, which of the calls are in an answer, and in what form.
fn came(shown: &AgentAnswer, calls: [Call; 2]) -> anyhow::Result<String> {
    let answer = PrintedAnswer::read(&shown.body)?;
    let mut texts = Vec::new();
    for (index, (kind, text)) in answer.blocks.iter().enumerate() {
        let sent = calls.get(index).map(|call| provider::block(index, *call).concat());
        let is_same = sent.is_some_and(|sent| shown.body.contains(&*String::from_utf8_lossy(&sent)));
        texts.push(match text.lines().find_map(|line| line.strip_prefix("Rule: ")) {
            Some(rule) if kind == "text" => format!("a text by {rule}"),
            _ if is_same => format!("{kind} {text} as it was sent"),
            _ => format!("{kind} {text}"),
        });
    }
    Ok(format!("{}, stop_reason {}", texts.join(", then "), answer.stop_reason))
}

/// An answer as an agent puts it together.
#[derive(Default)]
struct PrintedAnswer {
    /// Each block: the tool that is called, or `text`; then the input, or the text.
    blocks: Vec<(String, String)>,
    stop_reason: String,
}

impl PrintedAnswer {
    /// # Errors
    /// Where the stream is not one that the official SDKs accept: blocks that are not numbered without gaps.
    fn read(stream: &str) -> anyhow::Result<Self> {
        let mut answer = Self::default();
        for data in stream.lines().filter_map(|line| line.strip_prefix("data: ")) {
            let event: Value = serde_json::from_str(data)?;
            let (count, index) = (answer.blocks.len(), event["index"].as_u64().unwrap_or_default());
            match event["type"].as_str().unwrap_or_default() {
                "content_block_start" if index == count as u64 => {
                    let block = &event["content_block"];
                    answer.blocks.push((first(block, ["name", "type"]), first(block, ["text"])));
                }
                "content_block_delta" if index + 1 == count as u64 => {
                    if let Some((_, text)) = answer.blocks.last_mut() {
                        text.push_str(&first(&event["delta"], ["partial_json", "text"]));
                    }
                }
                "message_delta" => answer.stop_reason = first(&event["delta"], ["stop_reason"]),
                "content_block_start" | "content_block_delta" => bail!("block {index} after {count} blocks"),
                _ => {}
            }
        }
        Ok(answer)
    }
}

/// The first of these entries that is a text.
pub(super) fn first<const N: usize>(object: &Value, keys: [&str; N]) -> String {
    keys.iter().find_map(|key| object[*key].as_str()).unwrap_or_default().to_owned()
}
