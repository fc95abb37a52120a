//! Any order of chunks: what goes on has contiguous indices, holds no denied call, and does not depend on how the
//! stream was cut.

use proptest::prelude::*;

use super::testing::{judged, read, stream};
use crate::provider::answer::testing::Names;

/// A call of a choice: its name, and the pieces of its input.
#[derive(Debug, Clone)]
struct Planned {
    name: &'static str,
    pieces: Vec<&'static str>,
}

impl Planned {
    fn is_denied(&self) -> bool {
        let input = self.pieces.concat();
        self.name == "Denied" || self.name == "Held" && (input.contains("forbidden") || input == "{\"a\":1")
    }
}

fn planned() -> impl Strategy<Value = Planned> {
    let pieces = prop_oneof![
        Just(vec!["{}"]),
        Just(vec!["{\"a\":", "1}"]),
        Just(vec!["{\"a\":\"forb", "", "idden\"}"]),
        Just(vec!["{\"a\":1"]),
    ];
    (prop_oneof![Just("Free"), Just("Held"), Just("Denied")], pieces)
        .prop_map(|(name, pieces)| Planned { name, pieces })
}

/// The chunks of one choice: a role, its calls with text between them, an end.
fn chunks(choice: usize, calls: &[Planned], joined: bool) -> Vec<String> {
    let chunk = |delta: &str, finish: &str| {
        format!(r#"{{"id":"c","choices":[{{"index":{choice},"delta":{delta},"finish_reason":{finish}}}]}}"#)
    };
    let mut chunks = vec![chunk(r#"{"role":"assistant","content":""}"#, "null")];
    for (index, call) in calls.iter().enumerate() {
        let piece = |start: bool, input: &str| {
            let input = serde_json::Value::from(input);
            let name = if start { format!(r#""name":"{}","#, call.name) } else { String::new() };
            let content = if joined { r#""content":"t","# } else { "" };
            format!(
                r#"{{{content}"tool_calls":[{{"index":{index},"function":{{{name}"arguments":{input}}}}}]}}"#
            )
        };
        chunks.push(chunk(&piece(true, ""), "null"));
        chunks.extend(call.pieces.iter().map(|input| chunk(&piece(false, input), "null")));
        chunks.push(chunk(r#"{"content":"t"}"#, "null"));
    }
    chunks.push(chunk("{}", r#""tool_calls""#));
    chunks
}

/// The chunks of two choices, one after the other as `order` says.
fn woven(mut first: Vec<String>, mut second: Vec<String>, order: &[bool]) -> Vec<String> {
    let mut all = Vec::new();
    first.reverse();
    second.reverse();
    for &takes_first in order.iter().cycle() {
        let (one, other) = if takes_first { (&mut first, &mut second) } else { (&mut second, &mut first) };
        match one.pop().or_else(|| other.pop()) {
            Some(chunk) => all.push(chunk),
            None => break,
        }
    }
    all
}

proptest! {
    #[test]
    fn denied_calls_become_text_and_the_rest_is_contiguous(
        calls in prop::collection::vec(prop::collection::vec(planned(), 0..5), 2),
        order in prop::collection::vec(any::<bool>(), 1..20),
        joined in any::<bool>(),
        piece in 1_usize..200,
    ) {
        let chunks = woven(chunks(0, &calls[0], joined), chunks(1, &calls[1], joined), &order);
        let stream = stream(&chunks);
        let (out, result) = judged(&stream, Names::default(), stream.len());
        prop_assert_eq!(result, Ok(()));
        prop_assert_eq!(&judged(&stream, Names::default(), piece).0, &out);
        let (before, after) = (read(&stream), read(&out));
        for (choice, calls) in calls.iter().enumerate() {
            let (before, after) = (&before[&(choice as u64)], &after[&(choice as u64)]);
            let kept: Vec<_> = calls.iter().filter(|call| !call.is_denied()).collect();
            let seen = after.contiguous();
            prop_assert_eq!(seen.len(), kept.len());
            for (seen, kept) in seen.iter().zip(&kept) {
                prop_assert_eq!((seen.name.as_str(), &seen.input), (kept.name, &kept.pieces.concat()));
            }
            let is_lost = !calls.is_empty() && kept.is_empty();
            prop_assert_eq!(&after.finish, if is_lost { "stop" } else { "tool_calls" });
            prop_assert_eq!(after.content.matches("[postern]").count(), calls.len() - kept.len());
            prop_assert_eq!(&after.role, &before.role);
            let letters = |text: &str| text.lines().filter(|line| line.chars().all(|c| c == 't')).collect::<String>();
            prop_assert!(letters(&after.content).len() <= before.content.len());
        }
        if calls.iter().flatten().all(|call| !call.is_denied()) {
            // Text overtakes calls that wait, and nothing else changes.
            let events = |stream: &str| {
                let mut events: Vec<String> = stream.split("\n\n").map(str::to_owned).collect();
                events.sort();
                events
            };
            prop_assert_eq!(events(&out), events(&stream));
        }
    }
}
