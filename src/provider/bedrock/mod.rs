//! Bedrock's runtime, Converse and InvokeModel: <https://docs.aws.amazon.com/bedrock/latest/APIReference/>
//!
//! `converse` is AWS's own shape for the models of every vendor; `invoke` carries each vendor's own, and leaves it to
//! the dialect that knows it.

mod additional;
#[cfg(test)]
mod answer_tests;
mod arn;
mod converse;
mod count_tokens;
mod error;
mod invoke;
mod operation;
mod plain;
#[cfg(test)]
mod recording_tests;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;

pub(super) use arn::without_arn;

use super::adapter::{Adapter, CarriedBody, ErrorAnswer, Framing, ModelRequestHead, RefusalMessage};
use super::answer::Transcript;
use super::endpoint::EndpointMethod::{Get, Post};
use super::endpoint::{Endpoints, Mount};
use super::openai_chat::OpenAiChat;
use super::request::RequestEditor;
use super::request::marks::Marks;
use crate::call::{Api, Denial, Dialect, RequestFacts};
use crate::wire::json::{Kind, Limits};
use operation::{RuntimeOperation, RuntimeTarget};

pub(super) const RUNTIME: Endpoints = Endpoints {
    dialect: Some(Dialect::Bedrock),
    rows: &[
        (Post, "/model/*/converse", Api::Converse),
        (Post, "/model/*/converse-stream", Api::Converse),
        (Post, "/model/*/invoke", Api::InvokeModel),
        (Post, "/model/*/invoke-with-response-stream", Api::InvokeModel),
        (Post, "/model/*/count-tokens", Api::CountTokens),
    ],
};

/// The lists of models, from the control plane; Claude Code reads them when it starts.
pub(super) const CATALOGUE: Endpoints = Endpoints {
    dialect: None,
    rows: &[
        (Get, "/inference-profiles", Api::Models),
        (Get, "/inference-profiles/*", Api::Models),
        (Get, "/foundation-models", Api::Models),
        (Get, "/foundation-models/*", Api::Models),
    ],
};

/// At a host of which only a rule says that it speaks this.
const MOUNTS: &[Mount] = &[Mount { at: &[""], of: &RUNTIME }];

/// The dialect.
pub(super) struct Bedrock;

impl Adapter for Bedrock {
    fn mounts(&self) -> &'static [Mount] {
        MOUNTS
    }

    fn request(&self, head: &ModelRequestHead<'_>, editor: &mut RequestEditor<'_>) -> Result<(), Denial> {
        let target = RuntimeTarget::of(head);
        let body = editor.root();
        if body.kind() != Kind::Object {
            return Err(Denial::unparseable("the body", "it is no JSON object"));
        }
        if target.is_prompt() {
            editor.keeps_state("a stored prompt")?;
            editor.excuse();
        }
        match target.operation {
            RuntimeOperation::Converse => converse::read(editor, body, &target)?,
            RuntimeOperation::Invoke => invoke::read(editor, head, &target)?,
            RuntimeOperation::CountTokens => count_tokens::read(editor, head, &target)?,
        }
        let facts = &mut editor.facts;
        facts.writes |= target.is_prompt();
        facts.stream = target.stream;
        facts.models.retain(|model| *model != target.model);
        facts.models.insert(0, target.model.clone());
        facts.model = Some(target.model);
        Ok(())
    }

    fn mark<'d>(&self, head: &ModelRequestHead<'_>, editor: &RequestEditor<'d>, marks: &mut Marks<'d>) {
        let target = RuntimeTarget::of(head);
        match target.operation {
            RuntimeOperation::Converse => converse::mark(editor.root(), marks),
            RuntimeOperation::Invoke => invoke::mark(editor, &target, marks),
            RuntimeOperation::CountTokens => count_tokens::mark(editor.root(), marks),
        }
    }

    fn carried<'h>(
        &self,
        head: &ModelRequestHead<'h>,
        body: &[u8],
        limits: Limits,
    ) -> Option<(ModelRequestHead<'h>, CarriedBody)> {
        let is_count = RuntimeTarget::of(head).operation == RuntimeOperation::CountTokens;
        is_count.then(|| count_tokens::carried(head, body, limits)).flatten()
    }

    fn framing(&self, _: &ModelRequestHead<'_>, _: &RequestFacts, content_type: &str) -> Framing {
        // An error comes whole, where a stream was asked for too.
        if content_type == "application/vnd.amazon.eventstream" {
            Framing::EventStream
        } else {
            Framing::Whole
        }
    }

    fn transcript(&self, head: &ModelRequestHead<'_>, facts: &RequestFacts) -> Option<Box<dyn Transcript>> {
        let target = RuntimeTarget::of(head);
        match target.operation {
            RuntimeOperation::Converse => Some(Box::new(converse::ConverseTranscript::new(
                converse::EventShape::Named,
                Some(target.model),
            ))),
            RuntimeOperation::Invoke => {
                let chat = OpenAiChat.transcript(head, facts);
                Some(Box::new(invoke::InvokeTranscript::new(target.model, chat)))
            }
            RuntimeOperation::CountTokens => None,
        }
    }

    fn refusal(&self, refusal: &RefusalMessage<'_>) -> ErrorAnswer {
        error::refusal(refusal)
    }
}
