//! Decides what of a text is replaced, and looks again at what is left: a token begins and ends at a word, and one that
//! touched another may stand free now.

use std::collections::BTreeSet;
use std::ops::Range;

use super::{Inspection, Settled, Site};
use crate::call::Denial;
use crate::call::withheld::PLACEHOLDER;
use crate::dlp::{Confidence, Sight};
use crate::policy::data_loss::FindingAction;
use crate::provider::request::{Looked, Redaction};

/// How often a text is searched again: each time one more of the secrets that touch each other may be found.
const MOST_TIMES: usize = 8;
/// What stands for a secret while the rest is searched. No word of it can be a part of what is found.
const GAP: &str = "[]";

impl Inspection {
    /// Adds what is found in the text once the secrets that are replaced are out of it.
    pub(super) fn freed(
        &mut self,
        text: &str,
        (sight, site): (Sight, &Site<'_>),
        found: &mut Vec<Settled>,
    ) -> Result<(), Denial> {
        let terms = self.terms.clone();
        for _ in 0..MOST_TIMES {
            let hidden = hidden(found);
            if hidden.is_empty() || self.denial.is_some() {
                return Ok(());
            }
            let (left, mut freed) = (Left::of(text, &hidden), Vec::new());
            let searched = terms.scan(left.text.as_bytes(), sight, &mut self.budget_again, &mut freed);
            searched.map_err(super::bound)?;
            let before = found.len();
            for found_again in &mut freed {
                found_again.range = left.origin(&found_again.range);
                let range = &found_again.range;
                let is_replaced = hidden
                    .iter()
                    .any(|hidden| hidden.range.start <= range.start && range.end <= hidden.range.end);
                // All that one coded run holds stands in the same place.
                let is_known = |known: &Settled| {
                    known.detector == found_again.detector.id
                        && known.sha256 == found_again.sha256
                        && known.range == *range
                };
                if !is_replaced && !found.iter().any(is_known) {
                    found.extend(self.settle(found_again, site));
                }
            }
            if found.len() == before {
                return Ok(());
            }
        }
        let reason = format!(
            "The request cannot be searched for secrets: in one text they touch each other, so that {MOST_TIMES} more \
             searches did not find all. Take them out (rewind to before that text)"
        );
        Err(Denial::builtin("bound", reason))
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
    /// Where each gap stands in it, and what it stands for in the text that was.
    gaps: Vec<[Range<usize>; 2]>,
}

impl Left {
    fn of(text: &str, hidden: &[Hidden]) -> Self {
        let mut left = Self { text: String::with_capacity(text.len()), gaps: Vec::new() };
        let mut at = 0;
        for Hidden { range, .. } in hidden {
            let range = text.floor_char_boundary(range.start)..text.ceil_char_boundary(range.end);
            left.text += text.get(at..range.start).unwrap_or_default();
            let start = left.text.len();
            left.text += GAP;
            at = range.end;
            left.gaps.push([start..left.text.len(), range]);
        }
        left.text += text.get(at..).unwrap_or_default();
        left
    }

    /// Where that stood in the text that was. A part of a gap stands for all of it.
    fn origin(&self, range: &Range<usize>) -> Range<usize> {
        let before = |at: usize| self.gaps.iter().rev().find(move |[here, _]| here.start < at);
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
    use base64::Engine as _;
    use base64::prelude::BASE64_STANDARD;
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;
    use crate::detection::testing::Gateway;
    use crate::dlp::testing::gzip;

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
        conversation_of(&[text])
    }

    /// A conversation in which one call has results of these texts.
    fn conversation_of(texts: &[&str]) -> String {
        let call = json!({"type": "tool_use", "id": "t", "name": "read", "input": {}});
        let result = |text: &&str| json!({"type": "tool_result", "tool_use_id": "t", "content": text});
        let results: Vec<Value> = texts.iter().map(result).collect();
        let messages =
            [json!({"role": "assistant", "content": [call]}), json!({"role": "user", "content": results})];
        json!({"model": "m", "max_tokens": 9, "messages": messages}).to_string()
    }

    /// D18: neither of both can be told in the text, the first since the second follows without a sign between them.
    #[test]
    fn a_secret_that_touches_another_one_goes_with_it() {
        let (left, found) = sent(&format!("={}{}{}", reversed(), github(), github()));
        assert_eq!(left, "=[postern:gitlab-token][postern:github-token][postern:github-token]");
        assert_eq!(found, 3);
    }

    /// D9: an example is only recorded, and all of a packed part stands in one place.
    #[test]
    fn a_secret_beside_an_example_in_a_packed_part_that_is_freed_goes_too() {
        let example = ["gh", "p_", &"EXAMPLE".repeat(5), "1"].concat();
        let packed = BASE64_STANDARD.encode(gzip(&format!("{example} {}", github())));
        assert_eq!(sent(&format!("{}{packed}", github())).0, "[postern:github-token][postern:github-token]");
        let twin = BASE64_STANDARD.encode(gzip(&example));
        assert_eq!(sent(&format!("{}{twin}", github())).0, format!("[postern:github-token]{twin}"));
    }

    /// What is not a secret stays, and the request goes on.
    #[test]
    fn a_placeholder_makes_no_secret_of_what_follows() {
        let hashes: Vec<String> =
            (0..9_u64).map(|n| format!("{:016x}", (n + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15))).collect();
        let text = format!("{}: {}", github(), hashes.join(": "));
        assert_eq!(sent(&text).0, text.replace(&github(), "[postern:github-token]"));
        let policy = "{dataLoss: {patterns: [{name: internal, regex: 'internal.{0,20}'}]}}";
        let became =
            Gateway::under(policy).read(&conversation(&format!("internal{}", "x".repeat(400))), None).1;
        assert!(became.contains(&format!("[postern:pattern:internal]{}", "x".repeat(380))), "{became}");
    }

    /// D20: what is searched again has one budget for the whole request.
    #[test]
    fn searches_that_are_made_again_cost_no_more_than_a_request_may() {
        let packed = BASE64_STANDARD.encode(gzip(&"a".repeat(40 << 10)));
        let text = format!("{}{packed}", github());
        assert_eq!(sent(&text).0, format!("[postern:github-token]{packed}"));
        let (_, became) = Gateway::new().read(&conversation_of(&[&text, &text]), None);
        assert!(became.contains("bytes would come out"), "{became}");
        let (_, became) = Gateway::new().read(&conversation_of(&[&packed, &github()]), None);
        assert!(became.contains("[postern:github-token]"), "{became}");
    }

    #[test]
    fn what_is_left_is_told_by_its_place_in_the_text_that_was() {
        let hidden = [(4..6, "x"), (8..9, "y")].map(|(range, by)| Hidden { range, by: by.to_owned() });
        let left = Left::of("0123ab67c9é", &hidden);
        assert_eq!(left.text, "0123[]67[]9é");
        let origin = |part: &str| {
            let start = left.text.find(part).unwrap();
            left.origin(&(start..start + part.len()))
        };
        for (part, there) in [
            ("0123", 0..4),
            ("67", 6..8),
            ("9é", 9..12),
            ("3[", 3..6),
            ("]6", 4..7),
            ("67[]", 6..9),
            ("[]", 4..6),
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
        assert!(became.contains("they touch each other"), "{became}");
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
