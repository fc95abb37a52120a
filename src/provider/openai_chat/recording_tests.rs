//! Recorded streams of many vendors: unchanged where nothing is denied, and sound where something is.

use std::fs;

use super::testing::{Called, Choice, judged, read, stream};
use crate::provider::answer::testing::{Every, recorded};

const VENDORS: &[&str] = &[
    "openai-chat",
    "azure-openai",
    "groq",
    "deepseek",
    "mistral",
    "openrouter",
    "perplexity",
    "xai",
    "sse-corner-cases",
];

/// Recorded streams of chunks with their files' names.
fn recordings() -> Vec<(String, String)> {
    let mut found = Vec::new();
    for path in VENDORS.iter().flat_map(|vendor| recorded(vendor)) {
        let Ok(text) = fs::read_to_string(&path) else { continue };
        let name = path.display().to_string();
        if !text.contains("chat.completion.chunk") {
            continue;
        }
        if name.ends_with(".sse") {
            found.push((name, text));
        } else if name.ends_with(".chunks.txt") || name.ends_with(".jsonl") {
            found.push((name, stream(&text.lines().collect::<Vec<_>>())));
        }
    }
    found
}

/// What a client has of each choice, where it has it without a denial and with one.
fn pairs(before: &str, after: &str) -> Vec<(Choice, Choice)> {
    let (before, after) = (read(before), read(after));
    assert_eq!(before.keys().collect::<Vec<_>>(), after.keys().collect::<Vec<_>>());
    before.into_values().zip(after.into_values()).collect()
}

/// Whether a judge can be asked about every call: what is no JSON is denied whatever it says.
fn is_readable(recording: &str) -> bool {
    let is_json = |call: &Called| {
        call.input.is_empty() || serde_json::from_str::<serde_json::Value>(&call.input).is_ok()
    };
    read(recording).values().all(|choice| choice.calls.values().all(is_json))
}

#[test]
fn a_recording_of_which_nothing_is_denied_passes_byte_for_byte() {
    for (name, recording) in recordings() {
        for holds in [false, true] {
            if holds && !is_readable(&recording) {
                continue;
            }
            for piece in [7, 1 << 20] {
                let (out, result) = judged(&recording, Every::new(0, holds), piece);
                assert_eq!(result, Ok(()), "{name}");
                // One ends without the blank line, which is added.
                assert_eq!(
                    out.trim_end(),
                    recording.trim_end(),
                    "{name}, in pieces of {piece}, held: {holds}"
                );
            }
        }
    }
}

#[test]
fn a_recording_of_which_everything_is_denied_has_text_instead_of_calls() {
    for (name, recording) in recordings() {
        for holds in [false, true] {
            let (out, result) = judged(&recording, Every::new(1, holds), 1 << 20);
            assert_eq!(result, Ok(()), "{name}");
            for (before, after) in pairs(&recording, &out) {
                assert_eq!(after.contiguous(), [], "{name}");
                assert!(after.content.starts_with(&before.content), "{name}");
                assert_eq!(after.content.matches("[postern]").count(), before.calls.len(), "{name}");
                assert_eq!(after.role, before.role, "{name}");
                let had_calls = ["tool_calls", "function_call"].contains(&before.finish.as_str());
                let expected = if had_calls && !before.calls.is_empty() { "stop" } else { &before.finish };
                assert_eq!(after.finish, expected, "{name}");
            }
        }
    }
}

#[test]
fn a_recording_of_which_every_other_call_is_denied_keeps_the_rest() {
    let mut several = 0;
    let recordings = recordings();
    for (name, recording) in recordings.iter().filter(|(_, recording)| is_readable(recording)) {
        for holds in [false, true] {
            let (out, result) = judged(recording, Every::new(2, holds), 1 << 20);
            assert_eq!(result, Ok(()), "{name}");
            let mut number = 0;
            for (before, after) in pairs(recording, &out) {
                // A judge is asked in the order in which calls begin or end: for one choice, that of the stream.
                let kept: Vec<_> = before.calls.values().skip(1).step_by(2).cloned().collect();
                if number == 0 && read(recording).len() == 1 {
                    assert_eq!(after.contiguous(), kept, "{name}");
                    several += usize::from(!kept.is_empty());
                }
                number += before.calls.len();
            }
        }
    }
    assert!(recordings.is_empty() || several > 0);
}

#[test]
fn any_split_of_a_recording_gives_the_same_output() {
    for (name, recording) in recordings().into_iter().filter(|(_, recording)| recording.len() < 20_000) {
        for holds in [false, true] {
            let judge = || Every::new(2, holds);
            let whole = judged(&recording, judge(), 1 << 20);
            for piece in [1, 2, 61, 997] {
                assert_eq!(judged(&recording, judge(), piece), whole, "{name}, in pieces of {piece}");
            }
        }
    }
}
