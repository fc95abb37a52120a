//! Applies the transforms to what a choice says, stage by stage: vendors, tags, reasoning, tools.

use super::calls::Calls;
use super::chunk::Chunk;
use super::{HearTerms, say};
use crate::call::turn::AnswerFailure;
use crate::call::turn::said::{JsonText, Said};
use crate::provider::openai_chat::transform::tag::{Part, TagReader};
use crate::provider::openai_chat::transform::{Transform, extrathinktag, forcereasoning, openrouter};
use crate::provider::translate::Listen;
use crate::wire::json::{Kind, Value};

/// The transforms of one answer, with their state.
pub(super) struct Stages {
    reads_groq: bool,
    reads_details: bool,
    reads_reasoning: bool,
    tags: Vec<TagReader>,
    calls: Calls,
}

impl Stages {
    pub(super) fn new(terms: &HearTerms) -> Self {
        let transforms = terms.transforms;
        let tags = [
            (Transform::ExtraThinkTag, extrathinktag::THINK),
            (Transform::ForceReasoning, forcereasoning::REASONING),
        ];
        let tags = tags.into_iter().filter(|(transform, _)| transforms.has(*transform));
        Self {
            reads_groq: transforms.has(Transform::Groq),
            reads_details: transforms.has(Transform::OpenRouter),
            reads_reasoning: transforms.has(Transform::Reasoning),
            tags: tags.map(|(_, tag)| TagReader::new(tag)).collect(),
            calls: Calls::new(terms),
        }
    }

    pub(super) fn reads_groq(&self) -> bool {
        self.reads_groq
    }

    /// How many bytes wait here.
    pub(super) fn held(&self) -> usize {
        self.calls.held()
    }

    /// How many calls were mended.
    pub(super) fn mended(&self) -> u64 {
        self.calls.mended()
    }

    /// Tells all that a delta or a message says.
    pub(super) fn delta(
        &mut self,
        chunk: &Chunk<'_>,
        listener: &mut dyn Listen,
    ) -> Result<(), AnswerFailure> {
        match (chunk.reasoning, chunk.details) {
            ([Some(text), _] | [None, Some(text)], _) => self.reasoning(text, listener)?,
            ([None, None], Some(details)) if self.reads_details => {
                for text in openrouter::reasoning_texts(details) {
                    self.reasoning(text, listener)?;
                }
            }
            ([None, None], _) => {}
        }
        if let Some(content) = chunk.content {
            self.content(content, listener)?;
        }
        if let Some(refusal) = chunk.refusal {
            self.text(refusal, listener)?;
        }
        for piece in &chunk.calls {
            self.flush_tags(listener)?;
            self.calls.take(piece, listener)?;
        }
        Ok(())
    }

    /// The answer has ended, by reaching the limit of tokens or not.
    pub(super) fn end(&mut self, is_cut: bool, listener: &mut dyn Listen) -> Result<(), AnswerFailure> {
        self.flush_tags(listener)?;
        self.calls.end(is_cut, listener)
    }

    /// Tells a piece of reasoning.
    pub(super) fn reasoning(
        &mut self,
        text: JsonText<'_>,
        listener: &mut dyn Listen,
    ) -> Result<(), AnswerFailure> {
        if text.is_empty() {
            return Ok(());
        }
        if !self.reads_reasoning {
            return listener.said(Said::Hidden);
        }
        self.flush_tags(listener)?;
        say(text, true, listener)
    }

    /// Tells `content`: a text, or the list of parts in which Mistral has texts and reasoning.
    /// <https://docs.mistral.ai/capabilities/reasoning/>
    fn content(&mut self, content: Value<'_>, listener: &mut dyn Listen) -> Result<(), AnswerFailure> {
        if let Some(text) = JsonText::of(content) {
            return self.text(text, listener);
        }
        for part in content.items().into_iter().flatten() {
            let of = |key: &str| part.get(key).ok().flatten();
            match of("thinking") {
                Some(thinking) if thinking.kind() == Kind::Array => {
                    let texts = thinking.items().into_iter().flatten();
                    for text in texts.filter_map(|part| part.get("text").ok()?.and_then(JsonText::of)) {
                        self.reasoning(text, listener)?;
                    }
                }
                Some(thinking) => {
                    if let Some(text) = JsonText::of(thinking) {
                        self.reasoning(text, listener)?;
                    }
                }
                None => {
                    let text = JsonText::of(part)
                        .or_else(|| of("text").or_else(|| of("refusal")).and_then(JsonText::of));
                    if let Some(text) = text {
                        self.text(text, listener)?;
                    }
                }
            }
        }
        Ok(())
    }

    /// Tells a piece of text, without what stands between tags.
    pub(super) fn text(
        &mut self,
        text: JsonText<'_>,
        listener: &mut dyn Listen,
    ) -> Result<(), AnswerFailure> {
        let has_no_tag = || text.plain().is_some_and(|text| !text.contains('<'));
        let is_through = self.tags.iter().all(|tag| tag.is_done() || tag.is_outside() && has_no_tag());
        if is_through {
            return say(text, false, listener);
        }
        read_tags(&mut self.tags, &text.text(), listener)
    }

    /// Tells what waits for the rest of a tag: something else follows.
    fn flush_tags(&mut self, listener: &mut dyn Listen) -> Result<(), AnswerFailure> {
        let mut tags = self.tags.as_mut_slice();
        while let Some((first, others)) = tags.split_first_mut() {
            first.flush(&mut |part| give(part, others, listener))?;
            tags = others;
        }
        Ok(())
    }
}

fn read_tags(tags: &mut [TagReader], text: &str, listener: &mut dyn Listen) -> Result<(), AnswerFailure> {
    match tags.split_first_mut() {
        None => say(JsonText::Plain(text), false, listener),
        Some((first, others)) => first.read(text, &mut |part| give(part, others, listener)),
    }
}

fn give(part: Part<'_>, others: &mut [TagReader], listener: &mut dyn Listen) -> Result<(), AnswerFailure> {
    match part {
        Part::Text(text) => read_tags(others, text, listener),
        Part::Thinking(text) => say(JsonText::Plain(text), true, listener),
    }
}
