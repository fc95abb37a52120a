//! What is remembered of clean texts changes nothing but the time: with it the same is found and replaced as without.

use std::collections::BTreeMap;
use std::sync::Arc;

use proptest::prelude::*;
use serde_json::json;

use super::{CleanTexts, Inspection};
use crate::call::{Api, BlockedCalls, Dialect, Service, Vendor};
use crate::dlp::{Detectors, Search};
use crate::name::host::Host;
use crate::policy::{Policy, document};
use crate::provider::adapter::ModelRequestHead;
use crate::provider::request::{self, Detection};
use crate::wire::json::Limits;

/// Texts that are clean alone; some are two parts of a token.
const TEXTS: [&str; 7] =
    ["go", "a\n\"b\"\\", "see glpat-Zx3", "Zx3kQ9vB7mW2", "kQ9vB7mW2tR5yU8pL there", "tR5yU8pL1", "ä€ text"];

struct Gateway {
    policy: Arc<Policy>,
    search: Search,
    host: Host,
}

impl Gateway {
    fn new() -> Self {
        let text = "{apiVersion: postern.dev/v1alpha1, kind: EgressPolicy, metadata: {name: p, namespace: n}, spec: {}}";
        let documents = document::parse("p.yaml", text).unwrap();
        let policy = Arc::new(Policy::compile(&documents, &BTreeMap::new()).unwrap());
        let search = Arc::clone(Detectors::shared()).into();
        Self { policy, search, host: Host::parse("api.anthropic.com").unwrap() }
    }

    /// What was found in a request, and what became of it.
    fn read(&self, body: &str, clean: Option<&Arc<CleanTexts>>) -> (Vec<String>, String) {
        let inspection = Inspection::of(&self.policy, self.search.clone(), &self.host, (body.len(), 1 << 20))
            .of_model(true);
        let mut inspection = match clean {
            Some(clean) => inspection.passing_over(Arc::clone(clean)),
            None => inspection,
        };
        let service =
            Service { vendor: Vendor::Anthropic, api: Api::Messages, dialect: Some(Dialect::Anthropic) };
        let head = ModelRequestHead { service, path: "/v1/messages", query: None, is_subscription: false };
        let read = request::read(
            crate::provider::adapter(Dialect::Anthropic),
            &head,
            (body.as_bytes(), Limits::default()),
            (&*self.policy, &BlockedCalls::new(1)),
            Some(&mut inspection as &mut dyn Detection),
        );
        let became = match read {
            Ok(edited) => String::from_utf8(edited.body.unwrap_or_else(|| body.as_bytes().to_vec())).unwrap(),
            Err(denial) => denial.decision.why().to_owned(),
        };
        let found = inspection.take().findings;
        (found.into_iter().map(|found| format!("{} {}", found.location, found.detector)).collect(), became)
    }
}

/// A conversation of these texts; a long one has a page in front or behind it.
fn conversation(turns: &[(usize, usize)]) -> String {
    let messages: Vec<_> = turns
        .iter()
        .enumerate()
        .map(|(number, (text, page))| {
            let page_text = "let value = read(\"file\");\n".repeat(page % 3 * 40);
            let text = match page / 3 {
                0 => format!("{page_text}{}", TEXTS[*text]),
                _ => format!("{}{page_text}", TEXTS[*text]),
            };
            if number % 4 == 3 {
                let call = json!({"type": "tool_use", "id": format!("t{number}"), "name": "Read", "input": {"file_path": "a"}});
                return json!({"role": "assistant", "content": [call]});
            }
            json!({"role": "user", "content": [{"type": "text", "text": text}]})
        })
        .collect();
    json!({"model": "m", "max_tokens": 1, "messages": messages}).to_string()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn what_is_passed_over_holds_nothing(
        conversations in prop::collection::vec(prop::collection::vec((0..TEXTS.len(), 0..6_usize), 1..8), 1..4),
    ) {
        let (gateway, clean) = (Gateway::new(), Arc::new(CleanTexts::default()));
        for turns in &conversations {
            for length in 1..=turns.len() {
                let body = conversation(&turns[..length]);
                prop_assert_eq!(gateway.read(&body, Some(&clean)), gateway.read(&body, None));
            }
        }
    }
}

#[test]
fn a_token_in_two_texts_is_found_behind_texts_that_were_passed_over() {
    let (gateway, clean) = (Gateway::new(), Arc::new(CleanTexts::default()));
    let turns = [(0, 1), (2, 1), (0, 0), (0, 0), (4, 3)];
    for length in 1..=turns.len() {
        let _ = gateway.read(&conversation(&turns[..length]), Some(&clean));
    }
    // The first part alone is clean, and so is the second one; one behind the other they are not.
    let (found, _) = gateway.read(&conversation(&[(2, 1), (4, 3)]), Some(&clean));
    let (expected, _) = gateway.read(&conversation(&[(2, 1), (4, 3)]), None);
    assert_eq!(found, expected);
    assert!(found.iter().any(|found| found.contains("gitlab-token")), "{found:?}");
}
