//! What is remembered of clean texts changes nothing but the time: with it the same is found and replaced as without.

use std::sync::Arc;

use proptest::prelude::*;
use serde_json::json;

use super::CleanTexts;
use super::testing::{Gateway, TEXTS};

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
