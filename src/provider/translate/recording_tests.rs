//! Recorded answers of many vendors: the agent has the calls, texts and tokens that OpenAI's own client has.

use std::fs;
use std::path::Path;

use serde_json::Value;

use super::testing::{STREAM, WHOLE, terms, translated, whole_terms};
use super::{AnswerTerms, Transforms};
use crate::call::Vendor;
use crate::provider::answer::testing::recorded;
use crate::provider::anthropic::checker::{Seen, check, check_whole};

const VENDORS: &[(&str, Vendor)] = &[
    ("openai-chat", Vendor::OpenAi),
    ("groq", Vendor::Groq),
    ("deepseek", Vendor::DeepSeek),
    ("mistral", Vendor::Mistral),
    ("openrouter", Vendor::OpenRouter),
    ("perplexity", Vendor::Perplexity),
    ("xai", Vendor::XAi),
    ("ollama", Vendor::Ollama),
    ("tool-choice-matrix", Vendor::Custom),
];

/// Recordings with this ending, their terms, and their paths as the list of what clients have names them.
pub(super) fn recordings(ending: &str) -> Vec<(String, AnswerTerms, String)> {
    let mut found = Vec::new();
    for (folder, vendor) in VENDORS {
        for path in recorded(folder)
            .into_iter()
            .filter(|path| path.to_str().is_some_and(|path| path.ends_with(ending)))
        {
            let text = fs::read_to_string(&path).unwrap();
            if text.contains("\"chat.completion") {
                let name = path.to_str().unwrap().rsplit_once("fixtures/").unwrap().1.to_owned();
                let terms = AnswerTerms { transforms: Transforms::of_vendor(*vendor), ..terms(&[]) };
                found.push((name, terms, text));
            }
        }
    }
    found
}

/// What OpenAI's Python client has of each recorded stream.
fn expected() -> Option<Value> {
    let any = recorded("").into_iter().find(|path| path.ends_with("expected-python-sdk.json"))?;
    Some(serde_json::from_str(&fs::read_to_string(Path::new(&any)).unwrap()).unwrap())
}

/// The texts at this key of all deltas of the first choice.
fn joined(stream: &str, key: &str) -> String {
    let lines =
        stream.lines().filter_map(|line| line.strip_prefix("data: ")).filter(|data| *data != "[DONE]");
    let chunks = lines.map(|data| serde_json::from_str::<Value>(data).unwrap());
    chunks.filter_map(|chunk| chunk["choices"][0]["delta"][key].as_str().map(str::to_owned)).collect()
}

/// Id, name and input of calls; inputs as JSON, of which nothing is an empty object.
fn calls(calls: impl IntoIterator<Item = (String, String, String)>) -> Vec<(String, String, Value)> {
    let json = |input: String| {
        if input.is_empty() { serde_json::json!({}) } else { serde_json::from_str(&input).unwrap() }
    };
    calls.into_iter().map(|(id, name, input)| (id, name, json(input))).collect()
}

fn same_usage(seen: &Seen, usage: &Value, name: &str) {
    let of = |value: &Value| value.as_u64().unwrap_or(0);
    let ours = ["input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens"];
    let input: u64 = ours.iter().map(|key| of(&seen.usage[*key])).sum();
    assert_eq!(input, of(&usage["prompt_tokens"]), "{name}");
    let cached = [
        &usage["prompt_tokens_details"]["cached_tokens"],
        &usage["prompt_cache_hit_tokens"],
        &usage["num_cached_tokens"],
    ];
    let cached = cached.into_iter().find_map(Value::as_u64).unwrap_or(0);
    assert_eq!(of(&seen.usage["cache_read_input_tokens"]), cached, "{name}");
    let (wrote, total) = (of(&usage["completion_tokens"]), of(&usage["total_tokens"]));
    let output = of(&seen.usage["output_tokens"]);
    assert!(output == wrote || input + output == total, "{name}");
}

#[test]
fn recorded_streams_give_what_the_client_of_openai_has() {
    let Some(expected) = expected() else { return };
    let mut compared = 0;
    for (name, terms, stream) in recordings(".sse") {
        let outcome = translated(&terms, STREAM, stream.as_bytes(), 1000);
        assert_eq!(outcome.result, Ok(()), "{name}");
        let seen = check(&outcome.out, false);
        assert_eq!(seen.error, None, "{name}");
        let known = &expected["files"][&name];
        // OpenAI's client fails at a missing index and at a gap, where others have the call.
        let choice = &known["choices"][0];
        if known["ok"] != true {
            assert_eq!(seen.calls().len(), 1, "{name}");
            assert_eq!(seen.text(), joined(&stream, "content"), "{name}");
            continue;
        }
        compared += 1;
        let of = |value: &Value| value.as_str().unwrap_or("").to_owned();
        let text = of(&choice["content"]) + &joined(&stream, "refusal");
        assert_eq!(seen.text().trim(), text.trim(), "{name}");
        let called = choice["tool_calls"].as_array().unwrap().iter();
        let called = called.map(|call| (of(&call["id"]), of(&call["name"]), of(&call["arguments"])));
        assert_eq!(calls(seen.calls()), calls(called), "{name}");
        if known["usage"].is_object() {
            same_usage(&seen, &known["usage"], &name);
            assert!(outcome.report.usage.is_some(), "{name}");
        }
        assert_eq!(outcome.report.model.as_deref(), known["model"].as_str(), "{name}");
    }
    assert_eq!(compared, 22);
}

#[test]
fn every_other_recorded_stream_is_an_answer() {
    let mut read = 0;
    for path in ["azure-openai", "sse-corner-cases", "openai-chat"].into_iter().flat_map(recorded) {
        let Ok(text) = fs::read_to_string(&path) else { continue };
        let name = path.display().to_string();
        let stream = match name.rsplit_once('.') {
            Some((_, "sse")) => text,
            Some((_, "jsonl")) => text.lines().map(|line| format!("data: {line}\n\n")).collect(),
            Some(_) | None => continue,
        };
        if !stream.contains("chat.completion.chunk") {
            continue;
        }
        let outcome = translated(&terms(&[]), STREAM, stream.as_bytes(), 1000);
        assert_eq!(outcome.result, Ok(()), "{name}");
        assert_eq!(check(&outcome.out, false).error, None, "{name}");
        read += 1;
    }
    assert!(expected().is_none() || read > 10);
}

#[test]
fn recorded_reasoning_is_thinking() {
    let mut with_thinking = 0;
    for (name, terms, stream) in recordings(".sse") {
        let seen = check(&translated(&terms, STREAM, stream.as_bytes(), 1000).out, false);
        let has_reasoning = terms.transforms.has(super::Transform::Reasoning);
        let told = [joined(&stream, "reasoning_content"), joined(&stream, "reasoning")].concat();
        if has_reasoning && !told.trim().is_empty() {
            assert_eq!(seen.thinking().trim(), told.trim(), "{name}");
            with_thinking += 1;
        }
    }
    assert!(expected().is_none() || with_thinking > 2);
}

#[test]
fn any_split_of_a_recording_gives_the_same_output() {
    for (name, terms, stream) in recordings(".sse").into_iter().filter(|(_, _, stream)| stream.len() < 20_000)
    {
        let whole = translated(&terms, STREAM, stream.as_bytes(), usize::MAX);
        for piece in [1, 2, 61, 997] {
            assert_eq!(
                translated(&terms, STREAM, stream.as_bytes(), piece),
                whole,
                "{name}, in pieces of {piece}"
            );
        }
    }
}

#[test]
fn recorded_whole_answers_give_what_they_say() {
    let recordings = recordings(".response.json");
    for (name, terms, body) in &recordings {
        let answer: Value = serde_json::from_str(body).unwrap();
        let message = &answer["choices"][0]["message"];
        for is_stream in [true, false] {
            let terms = AnswerTerms { is_stream, ..terms.clone() };
            let outcome = translated(&terms, WHOLE, body.as_bytes(), 1000);
            assert_eq!(outcome.result, Ok(()), "{name}");
            let seen = if is_stream { check(&outcome.out, false) } else { check_whole(&outcome.out) };
            let parts = message["content"].as_array().into_iter().flatten();
            let parts: String = parts.filter_map(|part| part["text"].as_str()).collect();
            let text = message["content"].as_str().map_or(parts, str::to_owned);
            assert_eq!(seen.text().trim(), text.trim(), "{name}");
            let of = |value: &Value| value.as_str().unwrap_or("").to_owned();
            let called = message["tool_calls"].as_array().into_iter().flatten();
            let called: Vec<_> = called
                .map(|call| (of(&call["function"]["name"]), of(&call["function"]["arguments"])))
                .collect();
            let seen_calls = calls(seen.calls());
            assert_eq!(seen_calls.len(), called.len(), "{name}");
            for ((_, name, input), (expected, arguments)) in seen_calls.iter().zip(called) {
                assert_eq!((name, input), (&expected, &serde_json::from_str(&arguments).unwrap()), "{name}");
            }
            same_usage(&seen, &answer["usage"], name);
        }
    }
    assert!(expected().is_none() || recordings.len() > 10);
    assert!(!whole_terms(&[]).is_stream);
}
