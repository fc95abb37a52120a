//! Gemini's generateContent: <https://ai.google.dev/api/generate-content>

mod answer;
mod fields;
mod refusal;
mod request;
mod target;

use super::adapter::{Adapter, ErrorAnswer, Framing, ModelRequestHead, RefusalMessage};
use super::answer::Transcript;
use super::endpoint::EndpointMethod::Post;
use super::endpoint::{Endpoints, MODELS, Mount};
use super::request::RequestEditor;
use super::request::marks::Marks;
use crate::call::{Api, Denial, Dialect, RequestFacts};
use crate::wire::sse;
use answer::GeminiTranscript;

pub(super) const GENERATE_CONTENT: Endpoints = Endpoints {
    dialect: Some(Dialect::Gemini),
    rows: &[
        (Post, "/models/*:generateContent", Api::GenerateContent),
        (Post, "/models/*:streamGenerateContent", Api::GenerateContent),
        (Post, "/models/*:countTokens", Api::CountTokens),
    ],
};

/// `batchEmbedContents` answers at once, as the official SDKs ask for embeddings; it is no batch job.
pub(super) const EMBED_CONTENT: Endpoints = Endpoints {
    dialect: None,
    rows: &[
        (Post, "/models/*:embedContent", Api::Embeddings),
        (Post, "/models/*:batchEmbedContents", Api::Embeddings),
    ],
};

/// A tuned model of the Gemini API.
pub(super) const TUNED: Endpoints = Endpoints {
    dialect: Some(Dialect::Gemini),
    rows: &[
        (Post, "/tunedModels/*:generateContent", Api::GenerateContent),
        (Post, "/tunedModels/*:streamGenerateContent", Api::GenerateContent),
    ],
};

/// A model that was deployed to an endpoint of Vertex AI.
pub(super) const DEPLOYED: Endpoints = Endpoints {
    dialect: Some(Dialect::Gemini),
    rows: &[
        (Post, "/endpoints/*:generateContent", Api::GenerateContent),
        (Post, "/endpoints/*:streamGenerateContent", Api::GenerateContent),
        (Post, "/endpoints/*:countTokens", Api::CountTokens),
    ],
};

/// The login of Gemini's command line, whose bodies wrap the same requests and answers.
pub(super) const CODE_ASSIST: Endpoints = Endpoints {
    dialect: Some(Dialect::Gemini),
    rows: &[
        (Post, ":generateContent", Api::GenerateContent),
        (Post, ":streamGenerateContent", Api::GenerateContent),
        (Post, ":countTokens", Api::CountTokens),
    ],
};

/// The bases at which Google has its models.
const BASES: &[&str] = &[
    "/v1",
    "/v1beta",
    "/v1alpha",
    "/v1/projects/*/locations/*/publishers/google",
    "/v1beta1/projects/*/locations/*/publishers/google",
];

/// At a host of which only a rule says that it speaks this.
const MOUNTS: &[Mount] = &[
    Mount { at: BASES, of: &GENERATE_CONTENT },
    Mount { at: BASES, of: &EMBED_CONTENT },
    Mount { at: BASES, of: &MODELS },
];

/// The dialect.
pub(super) struct Gemini;

impl Adapter for Gemini {
    fn mounts(&self) -> &'static [Mount] {
        MOUNTS
    }

    fn request(&self, head: &ModelRequestHead<'_>, editor: &mut RequestEditor<'_>) -> Result<(), Denial> {
        request::read(head, editor)
    }

    fn mark<'d>(&self, _: &ModelRequestHead<'_>, editor: &RequestEditor<'d>, marks: &mut Marks<'d>) {
        request::mark(editor.root(), marks);
    }

    /// `alt=sse` is one of several spellings, and custom hosts need not heed it: what the answer says of itself
    /// decides. Google's clients read lines of a stream of events that are none of its grammar as JSON; in canonical
    /// form there are no such lines.
    fn framing(&self, _: &ModelRequestHead<'_>, facts: &RequestFacts, content_type: &str) -> Framing {
        match content_type {
            "text/event-stream" => Framing::Events(EVENTS),
            _ if facts.stream => Framing::Array,
            _ => Framing::Whole,
        }
    }

    fn transcript(&self, head: &ModelRequestHead<'_>, _: &RequestFacts) -> Option<Box<dyn Transcript>> {
        (head.service.api != Api::CountTokens)
            .then(|| Box::new(GeminiTranscript::default()) as Box<dyn Transcript>)
    }

    fn refusal(&self, refusal: &RefusalMessage<'_>) -> ErrorAnswer {
        refusal::answer(refusal)
    }
}

/// `data: {…}` and nothing else.
const EVENTS: sse::Form = sse::Form { name: sse::NameLine::Absent, comments: false, end: sse::End::Body };

#[cfg(test)]
mod tests {
    use super::*;
    use crate::call::{Service, Vendor};

    #[test]
    fn what_an_answer_says_of_itself_decides_how_it_is_cut() {
        let head = |api: Api| {
            let service = Service { vendor: Vendor::Gemini, api, dialect: Some(Dialect::Gemini) };
            ModelRequestHead {
                service,
                path: "/v1/models/g:generateContent",
                query: None,
                is_subscription: false,
            }
        };
        let table = [
            (true, "text/event-stream", Framing::Events(EVENTS)),
            (false, "text/event-stream", Framing::Events(EVENTS)),
            (true, "application/json", Framing::Array),
            (true, "", Framing::Array),
            (false, "application/json", Framing::Whole),
            (false, "", Framing::Whole),
        ];
        for (stream, content_type, framing) in table {
            let facts = RequestFacts { stream, ..RequestFacts::default() };
            assert_eq!(Gemini.framing(&head(Api::GenerateContent), &facts, content_type), framing);
        }
        let facts = RequestFacts::default();
        assert!(Gemini.transcript(&head(Api::GenerateContent), &facts).is_some());
        assert!(Gemini.transcript(&head(Api::CountTokens), &facts).is_none());
    }
}
