//! Questions to the gateway's own name: any method, path, query, headers and body get an answer of plain ASCII, and one in
//! JSON where there is any; but for the lines of a kept text, which are told as they stand in it.
#![no_main]

use std::sync::Arc;

use http::{HeaderMap, HeaderName, HeaderValue};
use libfuzzer_sys::fuzz_target;
use postern::agent_api::denials::Denial;
use postern::agent_api::evidence::{EvidenceAccess, NotTold};
use postern::agent_api::mcp::Action;
use postern::agent_api::{Body, Question, Source, answer, wanted_evidence};
use postern::event::Id;
use postern::policy::document::Explain;
use postern::policy::explain::ShownDecision;
use postern::tool_output::evidence_id::EvidenceId;
use serde_json::{Value, json};

struct Open;

impl Source for Open {
    fn explains(&self) -> Explain {
        Explain::Policy
    }

    fn denial(&self, _event: Id) -> Option<Denial> {
        None
    }

    fn permissions(&self) -> Value {
        json!({"destinations": []})
    }

    fn check(&self, _action: &Action) -> Result<ShownDecision, String> {
        Ok(ShownDecision { verdict: "Deny", rule: None, reason: Some("<\u{202e}".to_owned()) })
    }

    fn evidence_access(&self) -> EvidenceAccess {
        EvidenceAccess::ToolToo
    }

    /// A text is kept under each name.
    fn evidence(&self, _id: EvidenceId) -> Result<Arc<str>, NotTold> {
        Ok(KEPT.into())
    }
}

const KEPT: &str = "one\r\ntwo <\u{202e}>\n\nfour";

const NAMES: [&str; 5] = ["content-type", "mcp-protocol-version", "mcp-method", "mcp-name", "origin"];

fuzz_target!(|input: (bool, &str, Vec<(u8, &str)>, &[u8])| {
    let (posts, path, said, body) = input;
    let mut headers = HeaderMap::new();
    headers.insert("content-type", HeaderValue::from_static("application/json"));
    for (name, value) in said {
        let name = HeaderName::from_static(NAMES[usize::from(name) % NAMES.len()]);
        if let Ok(value) = HeaderValue::from_str(value) {
            headers.append(name, value);
        }
    }
    let (method, target) = if posts { ("POST", "/mcp") } else { ("GET", path) };
    let (path, query) = target.split_once('?').map_or((target, None), |(path, query)| (path, Some(query)));
    let question = Question { method, path, query, headers: &headers, body: Body::Whole(body) };
    let _ = wanted_evidence(&question, EvidenceAccess::ToolToo);
    let answer = answer(&question, &Open);
    if answer.content_type.starts_with("text/plain") {
        let told = |line: &str| {
            let unnumbered = line.split_once(": ").map_or(line, |(_, line)| line);
            KEPT.contains(line) || KEPT.contains(unnumbered)
        };
        assert!(answer.body.split_inclusive('\n').all(told), "{answer:?}");
        return;
    }
    assert!(answer.body.bytes().all(|byte| matches!(byte, b' '..=b'~' | b'\n')), "{}", answer.body);
    assert!(answer.body.is_empty() == (answer.status == 202), "{answer:?}");
    if !answer.body.is_empty() {
        serde_json::from_str::<Value>(&answer.body).unwrap();
    }
});
