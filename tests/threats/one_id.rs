//! One id: what the agent reads of a denial is found by it in every record.

use serde_json::Value;

use super::model::{Model, call, message, named};
use crate::parity::anthropic::Anthropic;
use crate::parity::dialect::Mode::Streamed;
use crate::support::upstream::Reply;
use crate::support::{Gateway, Upstream, directory};

/// The id at the end of a refusal's text, wherever it stands in an answer.
fn id_in(text: &str) -> String {
    let (_, after) = text.split_once("Event: ").unwrap_or_else(|| panic!("{text}"));
    after.chars().take(36).collect()
}

fn ledger(gateway: &Gateway, arguments: &[&str]) -> String {
    gateway.run(&[&["ledger"], arguments].concat())
}

#[test]
fn a_denied_request_and_a_denied_call_have_one_id_in_every_record() {
    let collector = Upstream::build().script(|_| Some(Reply::of(200, ""))).start();
    let endpoint = format!("http://{}", collector.address());
    let place = directory();
    let file = place.path().join("ledger.db").display().to_string();
    let mut model = Model::with("tools: [{name: no-shell, kind: Shell, action: Deny}]", |setup| {
        setup
            .set("/ledger/path", file.as_str())
            .variable("OTEL_EXPORTER_OTLP_ENDPOINT", &endpoint)
            .variable("OTEL_LOGS_EXPORTER", "otlp")
    });

    let refused = model.gateway.agent().get("https://api.anthropic.com/v1/files");
    let blocks = [call(0, "toolu_1", "Bash", &[r#"{"command":"ls"}"#])];
    let answer = model.ask(&Anthropic, Streamed, named(&message(&blocks, "tool_use")));
    let ids = [refused.header("x-postern-event").unwrap().to_owned(), id_in(&answer.text())];
    assert_eq!(ids[0], id_in(&refused.text()), "header and text");
    assert!(model.gateway.terminate().success());

    let lines = model.gateway.events();
    let sarif: Value = serde_json::from_str(&ledger(&model.gateway, &["sarif", "--ledger", &file])).unwrap();
    let results = sarif["runs"][0]["results"].as_array().unwrap();
    let exports = |path: &str| -> Vec<u8> {
        collector
            .requests()
            .into_iter()
            .filter(|seen| seen.path() == path)
            .flat_map(|seen| seen.body)
            .collect()
    };
    let (logs, spans) = (exports("/v1/logs"), exports("/v1/traces"));
    for (id, kind) in ids.iter().zip(["Request", "ToolCall"]) {
        let line = lines
            .iter()
            .find(|event| event["id"] == id.as_str())
            .unwrap_or_else(|| panic!("{id}: {lines:?}"));
        assert_eq!(line["kind"], kind);
        let kept: Value = serde_json::from_str(
            ledger(&model.gateway, &["show", id, "--ledger", &file, "-o", "json"]).trim(),
        )
        .unwrap();
        assert!(kept.to_string().contains(id.as_str()), "{kept}");
        let result = results.iter().find(|result| result.to_string().contains(id.as_str()));
        assert_eq!(result.unwrap()["ruleId"], line["decision"]["rule"]);
        for (what, bytes) in [("log record", &logs), ("span", &spans)] {
            assert!(bytes.windows(36).any(|window| window == id.as_bytes()), "no {what} has {id}");
        }
    }
}
