//! The demo's steps about results of tools: a long one is cut, and all of it is read back.

use anyhow::Context;
use serde_json::{Value, json};

use super::agent::Ask;
use super::provider::MESSAGES;
use super::stage::DemoStage;
use super::turns::{HOST, first, tool};
use crate::name::gateway;

/// What the test run printed: one case of 2,000 failed.
fn printed() -> String {
    let case = |number| match number {
        700 => format!("test case {number} ... FAILED\n"),
        number => format!("test case {number} ... ok\n"),
    };
    (1..=2_000).map(case).collect()
}

/// What the provider read of the test run last.
fn read(stage: &DemoStage) -> anyhow::Result<String> {
    let seen = stage.upstream.seen();
    let last = seen.iter().rev().find(|seen| seen.path == MESSAGES).context("nothing was asked")?;
    let asked: Value = serde_json::from_slice(&last.body)?;
    Ok(first(&asked["messages"][2]["content"][0], ["content"]))
}

/// Returns what the provider reads of a long test run.
pub(super) async fn cut(stage: &DemoStage) -> anyhow::Result<String> {
    let body = json!({
        "model": "demo", "max_tokens": 1024, "stream": true, "tools": [tool("Bash")],
        "messages": [
            {"role": "user", "content": "Run the tests."},
            {"role": "assistant", "content": [{"type": "tool_use", "id": "t2", "name": "Bash", "input": {"command": "make test"}}]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t2", "content": printed()}]},
        ],
    });
    let shown = stage.ask(Ask::post(HOST, MESSAGES, body.to_string())).await?;
    let read = read(stage)?;
    let failed = read.lines().find(|line| line.contains("FAILED")).unwrap_or("nothing that failed");
    Ok(format!(
        "{}, the provider read {} lines, {failed} among them",
        shown.status.as_u16(),
        read.lines().count()
    ))
}

/// Reads all of it at the address in the marker.
pub(super) async fn read_back(stage: &DemoStage) -> anyhow::Result<String> {
    let read = read(stage)?;
    let address = read.lines().find_map(|line| line.split_once("All of it: http://")).context("no marker")?.1;
    let path = address.strip_prefix(gateway::NAME).context("another host")?;
    let all = stage.agent.ask_gateway(path).await?;
    let is_same = if all == printed() { "byte for byte what the test run printed" } else { "other bytes" };
    Ok(format!("{} lines, {is_same}", all.lines().count()))
}
