//! Requests to a model in which secrets are replaced: what goes on is JSON of the same shape, differs in replaced texts alone,
//! and has nothing more to replace; any split of a text to another host finds what the whole has.
#![no_main]

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use libfuzzer_sys::fuzz_target;
use postern::call::{Api, BlockedCalls, Dialect, Service, Terms, Vendor};
use postern::detection::Inspection;
use postern::dlp::{Budget, Confidence, Detectors, Search, Sight, StreamScanner};
use postern::name::host::Host;
use postern::policy::{Policy, document};
use postern::provider::adapter::ModelRequestHead;
use postern::provider::request::{self, Detection};
use postern::wire::json::Limits;
use serde_json::{Value, json};

const TEXT: &str = "{apiVersion: postern.dev/v1alpha1, kind: EgressPolicy, metadata: {name: p, namespace: n}, spec: {\
    destinations: [{name: m, hosts: [api.anthropic.com], action: Inspect}], dataLoss: {confidence: Medium}}}";

static POLICY: LazyLock<Arc<Policy>> = LazyLock::new(|| {
    let documents = document::parse("p.yaml", TEXT).expect("it is a policy");
    Arc::new(Policy::compile(&documents, &BTreeMap::new()).expect("it compiles"))
});

/// What texts are made of: beginnings of secrets, whole ones, and what stands around them.
fn parts() -> [String; 12] {
    let github = ["gh", "p_0123456789abcdefghijABCDEFGHIJ2zKx0l"].concat();
    let gitlab = ["glp", "at-Ab3dEf6hIj9kLm2nOp5q"].concat();
    [
        github.clone(),
        gitlab.clone(),
        gitlab.chars().rev().collect(),
        "Z2xwYXQtQWIzZEVmNmhJajlrTG0ybk9wNXE=".to_owned(),
        "676c7061742d4162336445663668496a396b4c6d326e4f703571".to_owned(),
        gitlab.replace('-', "%2D"),
        gitlab.replace('-', "\\u002d"),
        "password=\"aB3dE5gH7jK9mN1p\"".to_owned(),
        " \"\\\u{200b}ä\u{1f600}".to_owned(),
        github[..20].to_owned(),
        "\n".to_owned(),
        "[postern:github-token]".to_owned(),
    ]
}

fn text(data: &[u8]) -> String {
    let parts = parts();
    let piece = |byte: &u8| match parts.get(usize::from(*byte)) {
        Some(part) => part.clone(),
        None => char::from(*byte).to_string(),
    };
    data.iter().map(piece).collect()
}

/// Gives a body to the policy. Returns what goes on, or none where it is refused.
fn sent(body: &[u8]) -> Option<(Vec<u8>, bool)> {
    let service =
        Service { vendor: Vendor::Anthropic, api: Api::Messages, dialect: Some(Dialect::Anthropic) };
    let head = ModelRequestHead { service, path: "/v1/messages", query: None, is_subscription: false };
    let host = Host::parse("api.anthropic.com").expect("it is a host");
    let search = Search::from(Arc::clone(POLICY.detectors()?));
    let mut inspection = Inspection::of(&POLICY, search, &host, (body.len(), 1 << 20)).of_model(true);
    let detection: &mut dyn Detection = &mut inspection;
    let (limits, blocked) = (Limits { depth: 64, nodes: 10_000 }, BlockedCalls::new(1));
    let terms: &dyn Terms = POLICY.as_ref();
    let adapter = postern::provider::adapter(Dialect::Anthropic);
    let edited = request::read(adapter, &head, (body, limits), (terms, &blocked), Some(detection)).ok()?;
    let is_edited = edited.body.is_some();
    Some((edited.body.unwrap_or_else(|| body.to_vec()), is_edited))
}

/// Whether a value is another one but for texts in which something was replaced.
fn is_alike(before: &Value, after: &Value) -> bool {
    match (before, after) {
        (Value::String(before), Value::String(after)) => before == after || after.contains("[postern:"),
        (Value::Array(before), Value::Array(after)) => {
            before.len() == after.len()
                && before.iter().zip(after).all(|(before, after)| is_alike(before, after))
        }
        (Value::Object(before), Value::Object(after)) => {
            before.len() == after.len()
                && before
                    .iter()
                    .zip(after)
                    .all(|(before, after)| before.0 == after.0 && is_alike(before.1, after.1))
        }
        (before, after) => before == after,
    }
}

fn split(data: &[u8], text: &str) {
    if text.len() > 1_500 {
        return;
    }
    let detectors = Detectors::shared();
    let mut whole = Vec::new();
    let scanned =
        detectors.scan(text.as_bytes(), Sight::Whole, &mut Budget::of(text.len(), 1 << 20), &mut whole);
    let Some(first) =
        whole.iter().filter(|found| found.confidence == Confidence::High).map(|found| found.range.end).min()
    else {
        return;
    };
    let mut scanner = StreamScanner::new(Arc::clone(detectors));
    let (mut rest, mut sizes) = (text.as_bytes(), data.iter().cycle());
    let mut found = Vec::new();
    while !rest.is_empty() {
        let size = usize::from(*sizes.next().unwrap_or(&1)).clamp(1, rest.len());
        let (piece, behind) = rest.split_at(size);
        rest = behind;
        let written = scanner.write(piece);
        found.extend(scanner.take_findings());
        if found.iter().any(|found| found.confidence == Confidence::High) || written.is_err() {
            return;
        }
        assert!(scanner.released() < first as u64, "the last byte of a secret went on");
    }
    let flushed = scanner.flush();
    found.extend(scanner.take_findings());
    let is_found = found.iter().any(|found| found.confidence == Confidence::High);
    assert!(is_found || flushed.is_err() || scanned.is_err(), "the pieces have what the whole has");
}

fuzz_target!(|data: &[u8]| {
    let text = text(data);
    split(data, &text);
    let result = json!({"type": "tool_result", "tool_use_id": "t", "content": text});
    let call = json!({"type": "tool_use", "id": "t", "name": "read", "input": {}});
    let before = json!({"model": "m", "max_tokens": 9, "messages": [
        {"role": "user", "content": "go"}, {"role": "assistant", "content": [call]}, {"role": "user", "content": [result]},
    ]});
    let Some((body, _)) = sent(before.to_string().as_bytes()) else { return };
    let after: Value = serde_json::from_slice(&body).expect("what goes on is JSON");
    assert!(is_alike(&before, &after), "{after}");
    if let Some((again, is_edited)) = sent(&body) {
        assert!(!is_edited && again == body, "the second time nothing is replaced: {after}");
    }
});
