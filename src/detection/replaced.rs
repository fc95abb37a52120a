//! Decides what of a text is replaced, and looks again at what is left: a token begins and ends at a word, and one that
//! touched another may stand free now.

use std::collections::BTreeSet;
use std::ops::Range;

use super::{Inspection, Settled, Site};
use crate::call::Denial;
use crate::call::withheld::PLACEHOLDER;
use crate::dlp::{Budget, Confidence, Sight};
use crate::policy::data_loss::FindingAction;
use crate::provider::request::{Looked, Redaction};

/// How often a text is looked at again: so many secrets may touch each other that none but the last can be told.
const MOST_TIMES: usize = 8;

impl Inspection {
    /// Adds what is found in the text once the secrets that are replaced are out of it. `budget` is what was left before them.
    pub(super) fn freed(
        &mut self,
        text: &str,
        (sight, site): (Sight, &Site<'_>),
        budget: Budget,
        found: &mut Vec<Settled>,
    ) -> Result<(), Denial> {
        let terms = self.terms.clone();
        for _ in 0..MOST_TIMES {
            let hidden = hidden(found);
            if hidden.is_empty() || self.denial.is_some() {
                return Ok(());
            }
            let (left, mut freed) = (Left::of(text, &hidden), Vec::new());
            let searched = terms.scan(left.text.as_bytes(), sight, &mut budget.clone(), &mut freed);
            searched.map_err(super::bound)?;
            let before = found.len();
            for found_again in &mut freed {
                found_again.range = left.origin(&found_again.range);
                let range = &found_again.range;
                let covers = |known: &Range<usize>| known.start <= range.start && range.end <= known.end;
                let is_replaced = hidden.iter().any(|hidden| covers(&hidden.range));
                let is_known =
                    |known: &Settled| known.detector == found_again.detector.id && covers(&known.range);
                if !is_replaced && !found.iter().any(is_known) {
                    found.extend(self.settle(found_again, site));
                }
            }
            if found.len() == before {
                return Ok(());
            }
        }
        let many = format!("more than {MOST_TIMES} secrets follow each other without a sign between them");
        Err(Denial::builtin("bound", format!("The request cannot be searched for secrets: {many}")))
    }
}

/// What is done to a text. Adds the detectors whose secrets are replaced.
pub(super) fn looked(mut found: Vec<Settled>, redacted: &mut BTreeSet<String>) -> Looked {
    let hidden = hidden(&mut found);
    let redactions =
        hidden.iter().map(|Hidden { range, by }| Redaction { range: range.clone(), by: placeholder(by) });
    let looked = Looked { has_finding: !found.is_empty(), redactions: redactions.collect() };
    redacted.extend(hidden.into_iter().map(|Hidden { by, .. }| by));
    looked
}

/// A part of a text that is replaced.
struct Hidden {
    range: Range<usize>,
    /// The detector.
    by: String,
}

fn placeholder(detector: &str) -> String {
    format!("{PLACEHOLDER}{detector}]")
}

/// What of a text is to be replaced: each secret, and beside a sure one the less sure ones too. What overlaps goes together.
fn hidden(found: &mut [Settled]) -> Vec<Hidden> {
    let is_replaced = |found: &Settled| found.action == FindingAction::Redact;
    if found.iter().any(|found| is_replaced(found) && found.confidence == Confidence::High) {
        let less = found.iter_mut().filter(|found| found.confidence == Confidence::Medium);
        less.for_each(|found| found.action = found.action.max(FindingAction::Redact));
    }
    let mut replaced: Vec<&Settled> = found.iter().filter(|found| is_replaced(found)).collect();
    replaced.sort_by_key(|found| (found.range.start, std::cmp::Reverse(found.range.end)));
    let mut hidden: Vec<Hidden> = Vec::new();
    for Settled { range, detector, .. } in replaced {
        match hidden.last_mut().filter(|last| range.start < last.range.end) {
            Some(last) => last.range.end = last.range.end.max(range.end),
            None => hidden.push(Hidden { range: range.clone(), by: detector.clone() }),
        }
    }
    hidden
}

/// What is left of a text.
struct Left {
    text: String,
    /// Where each placeholder stands in it, and what it stands for in the text that was.
    placeholders: Vec<[Range<usize>; 2]>,
}

impl Left {
    fn of(text: &str, hidden: &[Hidden]) -> Self {
        let mut left = Self { text: String::with_capacity(text.len()), placeholders: Vec::new() };
        let mut at = 0;
        for Hidden { range, by } in hidden {
            let range = text.floor_char_boundary(range.start)..text.ceil_char_boundary(range.end);
            left.text += text.get(at..range.start).unwrap_or_default();
            let start = left.text.len();
            left.text += &placeholder(by);
            at = range.end;
            left.placeholders.push([start..left.text.len(), range]);
        }
        left.text += text.get(at..).unwrap_or_default();
        left
    }

    /// Where that stood in the text that was. A part of a placeholder stands for all that it replaces.
    fn origin(&self, range: &Range<usize>) -> Range<usize> {
        let before = |at: usize| self.placeholders.iter().rev().find(move |[here, _]| here.start < at);
        let start =
            before(range.start + 1).map_or(range.start, |[here, there]| match range.start < here.end {
                true => there.start,
                false => there.end + (range.start - here.end),
            });
        let end = before(range.end)
            .map_or(range.end, |[here, there]| there.end + range.end.saturating_sub(here.end));
        start..end
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;
    use crate::detection::testing::Gateway;

    fn github() -> String {
        ["gh", "p_0123456789abcdefghijABCDEFGHIJ2zKx0l"].concat()
    }

    fn gitlab() -> String {
        ["glp", "at-Ab3dEf6hIj9kLm2nOp5q"].concat()
    }

    fn reversed() -> String {
        gitlab().chars().rev().collect()
    }

    /// What goes on of the result of a tool with this text, and how many findings are told.
    fn sent(text: &str) -> (String, usize) {
        let (gateway, body) = (Gateway::new(), conversation(text));
        let (found, became) = gateway.read(&body, None);
        let became: Value = serde_json::from_str(&became).unwrap_or_default();
        let left = became["messages"][1]["content"][0]["content"].as_str().unwrap_or_default();
        (left.to_owned(), found.len())
    }

    fn conversation(text: &str) -> String {
        let call = json!({"type": "tool_use", "id": "t", "name": "read", "input": {}});
        let result = json!({"type": "tool_result", "tool_use_id": "t", "content": text});
        let messages =
            [json!({"role": "assistant", "content": [call]}), json!({"role": "user", "content": [result]})];
        json!({"model": "m", "max_tokens": 9, "messages": messages}).to_string()
    }

    /// D18: neither of both can be told in the text, the first since the second follows without a sign between them.
    #[test]
    fn a_secret_that_touches_another_one_goes_with_it() {
        let (left, found) = sent(&format!("={}{}{}", reversed(), github(), github()));
        assert_eq!(left, "=[postern:gitlab-token][postern:github-token][postern:github-token]");
        assert_eq!(found, 3);
    }

    #[test]
    fn what_is_left_is_told_by_its_place_in_the_text_that_was() {
        let hidden = [(4..6, "x"), (8..9, "y")].map(|(range, by)| Hidden { range, by: by.to_owned() });
        let left = Left::of("0123ab67c9é", &hidden);
        assert_eq!(left.text, "0123[postern:x]67[postern:y]9é");
        let origin = |part: &str| {
            let start = left.text.find(part).unwrap();
            left.origin(&(start..start + part.len()))
        };
        for (part, there) in [
            ("0123", 0..4),
            ("67", 6..8),
            ("9é", 9..12),
            ("3[", 3..6),
            ("x]6", 4..7),
            ("67[postern:y]", 6..9),
            ("stern:x", 4..6),
        ] {
            assert_eq!(origin(part), there, "{part}");
        }
    }

    #[test]
    fn a_request_with_too_many_secrets_that_touch_each_other_is_refused() {
        // What is replaced ends as this pattern begins, so that each time one more is found.
        let gateway = Gateway::under("{dataLoss: {patterns: [{name: p, regex: '\\]secret'}]}}");
        let chained = |times: usize| {
            let (_, became) = gateway.read(&conversation(&format!("]{}", "secret".repeat(times))), None);
            became
        };
        assert!(chained(MOST_TIMES).contains("\"[postern:pattern:p]\""), "{}", chained(MOST_TIMES));
        let became = chained(MOST_TIMES + 1);
        assert!(became.contains("follow each other without a sign between them"), "{became}");
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(128))]

        #[test]
        fn nothing_is_left_that_would_be_replaced(parts in prop::collection::vec(0..8_usize, 1..8)) {
            let all = [
                github(), gitlab(), reversed(), "Z2xwYXQtQWIzZEVmNmhJajlrTG0ybk9wNXE=".to_owned(), "=".to_owned(),
                " ".to_owned(), "a".to_owned(), "password=\"aB3dE5gH7jK9mN1p\"".to_owned(),
            ];
            let text: String = parts.iter().filter_map(|part| all.get(*part)).map(String::as_str).collect();
            let (left, _) = sent(&text);
            prop_assert_eq!(sent(&left).0, left);
        }
    }
}
