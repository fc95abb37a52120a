//! Anthropic Messages: <https://platform.claude.com/docs/en/api/messages>
//!
//! `request` removes what the provider would execute, `transcript` reads answers, `reply` writes those of other models,
//! `catalogue` knows which tools are whose. Whoever carries the same bodies in another framing (Bedrock's InvokeModel) uses the first two.

mod catalogue;
pub(super) mod marker;
#[cfg(test)]
mod marker_tests;
pub(super) mod moved;
pub(super) mod prompt;
mod refusal;
mod reply;
mod request;
mod roles;
mod system;
pub(super) mod told;
mod transcript;

#[cfg(test)]
pub(super) use reply::checker;
pub(super) use reply::{MessagesReply, ReplyTerms};
pub(super) use request::{MessagesVariant, is_subscription, messages_request};
pub(super) use roles::mark as mark_roles;
pub(super) use transcript::MessagesTranscript;

use super::adapter::{Adapter, ErrorAnswer, Framing, ModelRequestHead, RefusalMessage};
use super::answer::Transcript;
use super::compatible;
use super::endpoint::EndpointMethod::Post;
use super::endpoint::{Endpoints, MODELS, Mount};
use super::request::RequestEditor;
use super::request::marks::Marks;
use crate::call::{Api, Denial, Dialect, RequestFacts, Vendor};
use crate::wire::sse;

pub(super) const MESSAGES: Endpoints = Endpoints {
    dialect: Some(Dialect::Anthropic),
    rows: &[(Post, "/messages", Api::Messages), (Post, "/messages/count_tokens", Api::CountTokens)],
};

/// The endpoints at Google, where the model is in the path; tokens are counted by the model `count-tokens`.
pub(super) const RAW_PREDICT: Endpoints = Endpoints {
    dialect: Some(Dialect::Anthropic),
    rows: &[
        (Post, "/models/count-tokens:rawPredict", Api::CountTokens),
        (Post, "/models/*:rawPredict", Api::Messages),
        (Post, "/models/*:streamRawPredict", Api::Messages),
    ],
};

/// Its clients skip an event without a name, others execute it; comments are read by all.
const EVENTS: sse::Form = sse::Form {
    name: sse::NameLine::Required,
    comments: true,
    end: sse::End::Name(&["message_stop", "error"]),
};

/// At a host of which only a rule says that it speaks this.
const MOUNTS: &[Mount] = &[
    Mount { at: &["/v1", "/anthropic/v1", "/api/v1"], of: &MESSAGES },
    Mount { at: &["/v1", "/anthropic/v1", "/api/v1"], of: &MODELS },
    Mount { at: &["/v1/projects/*/locations/*/publishers/anthropic"], of: &RAW_PREDICT },
];

/// The dialect.
pub(super) struct Anthropic;

impl Adapter for Anthropic {
    fn mounts(&self) -> &'static [Mount] {
        MOUNTS
    }

    fn request(&self, head: &ModelRequestHead<'_>, editor: &mut RequestEditor<'_>) -> Result<(), Denial> {
        let (body, vendor) = (editor.root(), head.service.vendor);
        // Others that speak Messages have in it what they add to their own APIs.
        let is_anthropics = vendor == Vendor::Anthropic;
        if !is_anthropics {
            compatible::close_extensions(editor, vendor)?;
        }
        messages_request(editor, body, &MessagesVariant::of(head))?;
        if is_anthropics { Ok(()) } else { compatible::models(editor, vendor) }
    }

    fn mark<'d>(&self, _: &ModelRequestHead<'_>, editor: &RequestEditor<'d>, marks: &mut Marks<'d>) {
        roles::mark(editor.root(), marks);
    }

    fn is_attested(&self, head: &ModelRequestHead<'_>, editor: &RequestEditor<'_>) -> bool {
        MessagesVariant::of(head).is_attested(editor)
    }

    fn framing(&self, _: &ModelRequestHead<'_>, facts: &RequestFacts, content_type: &str) -> Framing {
        match content_type {
            "text/event-stream" => Framing::Events(EVENTS),
            other if facts.stream && !other.ends_with("json") => Framing::Events(EVENTS),
            _ => Framing::Whole,
        }
    }

    fn transcript(&self, head: &ModelRequestHead<'_>, _: &RequestFacts) -> Option<Box<dyn Transcript>> {
        (head.service.api == Api::Messages)
            .then(|| Box::new(MessagesTranscript::default()) as Box<dyn Transcript>)
    }

    fn refusal(&self, refusal: &RefusalMessage<'_>) -> ErrorAnswer {
        refusal::answer(refusal)
    }
}
