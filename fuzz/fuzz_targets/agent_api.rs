//! Questions to the gateway's own name: any method, path, headers and body get an answer of plain ASCII, and one in JSON
//! where there is any.
#![no_main]

use http::{HeaderMap, HeaderName, HeaderValue};
use libfuzzer_sys::fuzz_target;
use postern::agent_api::denials::Denial;
use postern::agent_api::mcp::Action;
use postern::agent_api::{Body, Question, Source, answer};
use postern::event::Id;
use postern::policy::document::Explain;
use postern::policy::explain::ShownDecision;
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
}

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
    let (method, path) = if posts { ("POST", "/mcp") } else { ("GET", path) };
    let answer = answer(&Question { method, path, headers: &headers, body: Body::Whole(body) }, &Open);
    assert!(answer.body.bytes().all(|byte| matches!(byte, b' '..=b'~' | b'\n')), "{}", answer.body);
    assert!(answer.body.is_empty() == (answer.status == 202), "{answer:?}");
    if !answer.body.is_empty() {
        serde_json::from_str::<Value>(&answer.body).unwrap();
    }
});
