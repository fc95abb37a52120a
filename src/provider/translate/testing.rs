//! What tests of translations share: terms, streams, and what an agent reads.

use std::collections::BTreeMap;

use super::{AgentRoute, AnswerLimits, AnswerReport, AnswerTerms, AnswerTranslation, Transform};
use crate::call::Dialect;
use crate::call::turn::AnswerFailure;
use crate::provider::anthropic::checker::{Seen, check, check_whole};

pub(super) const STREAM: &str = "text/event-stream; charset=utf-8";
pub(super) const WHOLE: &str = "application/json";

/// Terms of an agent that asked for a stream with thinking.
pub(super) fn terms(transforms: &[Transform]) -> AnswerTerms {
    AnswerTerms {
        agent: Dialect::Anthropic,
        model: Dialect::OpenAIChat,
        route: AgentRoute { label: "coder".to_owned(), rule: "agents/p/small".to_owned() },
        exchange: "0123456789abcdef01234567".to_owned(),
        is_stream: true,
        shows_thinking: true,
        stop_sequences: Vec::new(),
        names: BTreeMap::new(),
        transforms: transforms.iter().copied().collect(),
        has_exit_tool: transforms.contains(&Transform::ToolUse),
        input_estimate: None,
        bytes_per_token: 3.5,
        drops_unreadable: false,
        limits: AnswerLimits { event_bytes: 1 << 20, tool_input_bytes: 1 << 16, body_bytes: 1 << 22 },
    }
}

/// The same for a whole answer.
pub(super) fn whole_terms(transforms: &[Transform]) -> AnswerTerms {
    AnswerTerms { is_stream: false, ..terms(transforms) }
}

/// A stream of these chunks, without a marker at its end.
pub(super) fn events(chunks: &[impl AsRef<str>]) -> String {
    chunks.iter().map(|chunk| format!("data: {}\n\n", chunk.as_ref())).collect()
}

/// A stream of these deltas of the first choice, with this end.
pub(super) fn deltas(deltas: &[impl AsRef<str>], finish: &str) -> String {
    let chunk =
        |delta: &str| format!(r#"{{"id":"c1","model":"m1","choices":[{{"index":0,"delta":{delta}}}]}}"#);
    let mut chunks: Vec<String> = deltas.iter().map(|delta| chunk(delta.as_ref())).collect();
    chunks.push(format!(r#"{{"choices":[{{"index":0,"delta":{{}},"finish_reason":"{finish}"}}]}}"#));
    events(&chunks) + "data: [DONE]\n\n"
}

/// What became of an answer.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Outcome {
    pub(super) out: Vec<u8>,
    pub(super) result: Result<(), AnswerFailure>,
    pub(super) report: AnswerReport,
}

/// Translates a body that comes in pieces of so many bytes.
#[track_caller]
pub(super) fn translated(terms: &AnswerTerms, content_type: &str, body: &[u8], piece: usize) -> Outcome {
    let mut translation = AnswerTranslation::new(terms.clone(), content_type).unwrap();
    let mut out = Vec::new();
    let mut result = Ok(());
    for bytes in body.chunks(piece) {
        result = translation.write(bytes, &mut out);
        assert_eq!(translation.is_committed(), !out.is_empty());
        if result.is_err() {
            break;
        }
    }
    if result.is_ok() {
        result = translation.finish(&mut out);
    }
    assert!(translation.is_over());
    assert!(result.is_ok() || out.is_empty(), "a failure is returned before anything is written");
    Outcome { out, result, report: translation.report() }
}

/// What an agent reads of an answer.
#[track_caller]
pub(super) fn seen(terms: &AnswerTerms, content_type: &str, body: &str) -> Seen {
    let outcome = translated(terms, content_type, body.as_bytes(), usize::MAX);
    assert_eq!(outcome.result, Ok(()));
    if terms.is_stream { check(&outcome.out, false) } else { check_whole(&outcome.out) }
}

/// What an agent reads of a stream of deltas.
#[track_caller]
pub(super) fn seen_deltas(transforms: &[Transform], all: &[impl AsRef<str>], finish: &str) -> Seen {
    seen(&terms(transforms), STREAM, &deltas(all, finish))
}
