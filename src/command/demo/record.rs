//! The demo's steps about the record: reports, counts and the page of the events so far.

use std::path::Path;

use anyhow::Context;
use http_body_util::{BodyExt, Empty};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::net::TcpStream;

use super::stage::{DemoStage, POLICY, as_error};
use crate::command::private_directory::random_hex;
use crate::drain::Drain;
use crate::event::Event;
use crate::page::{LivePage, PageServer};
use crate::policy::document;
use crate::sarif::{RulePlaces, SarifReport};
use crate::stats::EventCounter;

/// Reports the denials, and says where the rule in CEL stands.
pub(super) async fn sarif(stage: &DemoStage) -> anyhow::Result<String> {
    let documents = document::parse("policy.yaml", POLICY).map_err(|found| as_error(&found))?;
    let mut report = SarifReport::new(true);
    for line in stage.events() {
        report.take(&serde_json::from_str(&line)?);
    }
    let log = serde_json::to_value(report.into_log(&RulePlaces::of(documents, Path::new(""))))?;
    let results = log["runs"][0]["results"].as_array().context("no results")?;
    let of_rule = results.iter().find(|result| result["ruleId"] == "local/demo/small-models");
    let result = of_rule.context("no result of the rule")?;
    let place = &result["locations"][0]["physicalLocation"];
    let word = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    Ok(format!(
        "{} results; the one of the rule in CEL: {} {} at {}:{}",
        results.len(),
        word(&result["level"]),
        word(&result["ruleId"]),
        word(&place["artifactLocation"]["uri"]),
        place["region"]["startLine"]
    ))
}

/// Counts the events.
pub(super) async fn stats(stage: &DemoStage) -> anyhow::Result<String> {
    let answers = || stage.events().iter().filter(|line| line.contains("\"outputTokens\"")).count();
    stage.until("the events of the answers", || answers() >= 9).await?;
    let mut counter = EventCounter::new(None);
    for line in stage.events() {
        counter.take(&serde_json::from_str(&line)?);
    }
    let report = counter.report(None, None);
    let total = &report.total;
    let of_calls = report.denied.iter().filter(|row| row.calls > 0).count();
    Ok(format!(
        "{} requests denied, {} of {} tool calls denied by {of_calls} rules, {} tokens in and {} out",
        total.denied_requests, total.denied_calls, total.tool_calls, total.tokens.input, total.tokens.output
    ))
}

/// Serves the page of the events, and asks for it with its token and without.
pub(super) async fn page(stage: &DemoStage) -> anyhow::Result<String> {
    let (live, token, drain) = (LivePage::new(), random_hex()?, Drain::default());
    for line in stage.events() {
        live.push(&serde_json::from_str::<Event>(&line)?, &line);
    }
    let server = PageServer::bind(0, token.clone(), live).await?;
    let address = server.address();
    drain.spawn(server.run(drain.clone()));
    let status = async |path: &str| -> anyhow::Result<u16> {
        let stream = TcpStream::connect(address).await?;
        let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
        stage.agent.drain.detach(async move { drop(connection.await) });
        let host = address.to_string();
        let request = http::Request::get(path).header(http::header::HOST, host);
        let answer = sender.send_request(request.body(Empty::<bytes::Bytes>::new())?).await?;
        let status = answer.status().as_u16();
        answer.into_body().collect().await?;
        Ok(status)
    };
    let (with, without) = (status(&format!("/{token}/")).await?, status("/").await?);
    drain.shut_down(std::time::Duration::from_secs(1)).await;
    Ok(format!("{with} at http://127.0.0.1:PORT/TOKEN/, {without} without the token"))
}
