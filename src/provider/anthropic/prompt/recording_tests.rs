//! Recorded requests to Anthropic: each can be said to another model, or it is known why not, and nothing of it is lost
//! without being counted.

use std::fs;

use serde_json::Value;

use super::prompt;
use crate::call::Vendor;
use crate::provider::answer::testing::recorded;
use crate::provider::translate::estimate::{Ratio, Size};
use crate::provider::translate::{ChatTerms, EffortTerms, Images, Transforms, ask};
use crate::wire::json::{Document, Limits};

/// Recordings that cannot be said to another model, by their names: they have a document's URL, and a stored file.
const UNSAYABLE: [&str; 2] = ["document-url.request.json", "responses_agent_subset.json"];

/// Fields of a body that have a counterpart.
const SAID: [&str; 13] = [
    "model",
    "messages",
    "system",
    "tools",
    "tool_choice",
    "max_tokens",
    "temperature",
    "top_p",
    "stop_sequences",
    "stream",
    "thinking",
    "output_config",
    "output_format",
];

fn recordings() -> Vec<(String, String)> {
    let folders = ["anthropic/live", "agentgateway/requests/messages", "tool-choice-matrix"];
    let paths = folders.into_iter().flat_map(recorded);
    let is_request = |name: &str| {
        let is_ours = !name.contains("tool-choice-matrix") || name.contains("/anthropic-");
        is_ours && (name.ends_with(".request.json") || name.contains("/requests/messages/"))
    };
    let named = paths.map(|path| (path.display().to_string(), path)).filter(|(name, _)| is_request(name));
    named.map(|(name, path)| (name, fs::read_to_string(path).unwrap())).collect()
}

#[test]
fn every_recorded_request_can_be_said_to_every_vendor() {
    for (name, body) in recordings() {
        let document = Document::parse(body.as_bytes(), Limits::default()).unwrap();
        assert!(Size::of(&document).tokens(Ratio::default()) > 0, "{name}");
        for vendor in Vendor::ALL {
            let transforms = Transforms::of_vendor(*vendor);
            let terms = ChatTerms {
                model: "m",
                label: "coder",
                vendor: *vendor,
                max_tokens: None,
                images: Images::Send,
                effort: EffortTerms::Map,
                params: "",
                transforms,
            };
            let request = prompt(&document).and_then(|prompt| ask(&prompt, &terms));
            assert_eq!(request.is_err(), UNSAYABLE.iter().any(|file| name.ends_with(file)), "{name}");
            let Ok(request) = request else { continue };
            let sent = Document::parse(&request.body, Limits::default()).unwrap();
            assert!(sent.first_duplicate().is_none(), "{name}");
            let sent: Value = serde_json::from_slice(&request.body).unwrap();
            let asked: Value = serde_json::from_str(&body).unwrap();
            let lost = |key: &&String| !SAID.contains(&key.as_str()) && request.notes.count(key) == 0;
            let lost: Vec<_> = asked.as_object().unwrap().keys().filter(lost).collect();
            assert!(lost.is_empty(), "{name}: {lost:?}");
            let (texts, said) = (texts(&asked), sent["messages"].to_string());
            let is_lost = |text: &&String| !said.contains(text.trim_matches('"'));
            let lost = texts.iter().filter(is_lost).count();
            assert!(lost == 0 || !request.notes.is_empty(), "{name}: {lost} texts are lost without a word");
        }
    }
}

/// The texts of the blocks of a request, as JSON writes them.
fn texts(value: &Value) -> Vec<String> {
    let members = value.as_object().into_iter().flatten();
    let items = value.as_array().into_iter().flatten();
    let own = members.clone().filter(|(key, value)| *key == "text" && value.is_string());
    let own = own.map(|(_, value)| value.to_string());
    own.chain(members.map(|(_, value)| value).chain(items).flat_map(texts)).collect()
}
