//! OpenAI Responses, over HTTP and WebSocket: <https://platform.openai.com/docs/api-reference/responses>

mod answer;
pub(super) mod moved;
mod request;

use serde_json::{Value, json};

use super::adapter::{Adapter, ErrorAnswer, Framing, ModelRequestHead, RefusalMessage};
use super::answer::Transcript;
use super::endpoint::EndpointMethod::{Post, WebSocket};
use super::endpoint::{Endpoints, MODELS, Mount};
use super::openai_chat::{BASES, EMBEDDINGS};
use super::request::RequestEditor;
use super::request::marks::Marks;
use crate::call::{Api, Denial, DenialForm, Dialect, RequestFacts};
use crate::wire::json::{self, Document};
use crate::wire::sse::{End, Form, NameLine};

pub(super) const RESPONSES: Endpoints = Endpoints {
    dialect: Some(Dialect::OpenAIResponses),
    rows: &[
        (Post, "/responses", Api::Responses),
        (Post, "/responses/compact", Api::Responses),
        (Post, "/responses/input_tokens", Api::CountTokens),
        (WebSocket, "/responses", Api::Responses),
    ],
};

/// At a host of which only a rule says that it speaks this.
const MOUNTS: &[Mount] = &[
    Mount { at: BASES, of: &RESPONSES },
    Mount { at: BASES, of: &EMBEDDINGS },
    Mount { at: BASES, of: &MODELS },
    Mount { at: &["/openai"], of: &RESPONSES },
];

/// The dialect.
pub(super) struct OpenAiResponses;

/// How its streams look.
const EVENTS: Form = Form { name: NameLine::Required, comments: true, end: End::Name(&answer::ENDS) };

impl Adapter for OpenAiResponses {
    fn mounts(&self) -> &'static [Mount] {
        MOUNTS
    }

    fn request(&self, head: &ModelRequestHead<'_>, editor: &mut RequestEditor<'_>) -> Result<(), Denial> {
        request::read(head, editor)
    }

    fn mark<'d>(&self, _: &ModelRequestHead<'_>, editor: &RequestEditor<'d>, marks: &mut Marks<'d>) {
        request::mark(editor.root(), marks);
    }

    fn mark_answer<'d>(&self, message: json::Value<'d>, marks: &mut Marks<'d>) {
        request::mark_answer(message, marks);
    }

    fn keeps_answer(&self, body: json::Value<'_>) -> bool {
        request::keeps_answer(body)
    }

    fn framing(&self, _: &ModelRequestHead<'_>, facts: &RequestFacts, content_type: &str) -> Framing {
        match content_type {
            "text/event-stream" => Framing::Events(EVENTS),
            "" if facts.stream => Framing::Events(EVENTS),
            _ => Framing::Whole,
        }
    }

    fn transcript(&self, head: &ModelRequestHead<'_>, _: &RequestFacts) -> Option<Box<dyn Transcript>> {
        let has_answer = head.service.api == Api::Responses;
        has_answer.then(|| Box::new(answer::Responses::default()) as Box<dyn Transcript>)
    }

    fn refusal(&self, refusal: &RefusalMessage<'_>) -> ErrorAnswer {
        let (status, code) = status_and_code(refusal.answer);
        let error = json!({"message": refusal.message, "type": "invalid_request_error", "code": code});
        let mut body = json!({"error": error});
        body["error"]["param"] = Value::Null;
        ErrorAnswer { status, headers: Vec::new(), body: body.to_string() }
    }

    fn refused_message(&self, refusal: &RefusalMessage<'_>, document: &Document<'_>) -> Option<String> {
        let stream = document.root().get("stream_id").ok().flatten().and_then(json::Value::text);
        Some(match refusal.answer {
            // The form from which clients that chain responses send all of the conversation.
            DenialForm::Recoverable { status, code } => {
                let error =
                    json!({"type": "invalid_request_error", "code": code, "message": refusal.message});
                let mut message = json!({"type": "error", "status": status, "error": error});
                if let Some(stream) = stream {
                    message["stream_id"] = json!(stream);
                }
                message.to_string()
            }
            DenialForm::Forbidden
            | DenialForm::TooLarge
            | DenialForm::UnsupportedCoding
            | DenialForm::Limited { .. } => answer::refused(refusal.message, stream.as_deref()),
        })
    }
}

/// 400 is the one status that every client shows once and does not try again; the message of a 429 is hidden.
fn status_and_code(answer: DenialForm) -> (u16, &'static str) {
    match answer {
        DenialForm::Forbidden => (400, "policy_violation"),
        DenialForm::TooLarge => (413, "request_too_large"),
        DenialForm::UnsupportedCoding => (415, "unsupported_content_encoding"),
        DenialForm::Limited { .. } => (400, "rate_limit_exceeded"),
        DenialForm::Recoverable { status, code } => (status, code),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::call::{Service, Vendor};
    use crate::wire::json::Limits;

    const SERVICE: Service =
        Service { vendor: Vendor::OpenAi, api: Api::Responses, dialect: Some(Dialect::OpenAIResponses) };

    fn refusal(answer: DenialForm) -> RefusalMessage<'static> {
        RefusalMessage { service: SERVICE, message: "a \"b\"\nc", answer }
    }

    #[test]
    fn a_refusal_has_the_shape_of_the_apis_own_errors() {
        for (answer, status, code) in [
            (DenialForm::Forbidden, 400, "policy_violation"),
            (DenialForm::TooLarge, 413, "request_too_large"),
            (DenialForm::Limited { retry_after_seconds: 1 }, 400, "rate_limit_exceeded"),
            (DenialForm::Recoverable { status: 400, code: "x" }, 400, "x"),
        ] {
            let said = OpenAiResponses.refusal(&refusal(answer));
            let error = &serde_json::from_str::<Value>(&said.body).unwrap()["error"];
            assert_eq!((said.status, &error["code"]), (status, &json!(code)));
            assert_eq!((&error["message"], &error["param"]), (&json!("a \"b\"\nc"), &Value::Null));
        }
    }

    #[test]
    fn a_message_is_refused_in_its_lane_and_in_the_form_from_which_clients_recover() {
        let said = |answer: DenialForm, document: &str| {
            let document = Document::parse(document.as_bytes(), Limits::default()).unwrap();
            let message = OpenAiResponses.refused_message(&refusal(answer), &document).unwrap();
            serde_json::from_str::<Value>(&message).unwrap()
        };
        let failed = said(DenialForm::Forbidden, r#"{"type":"response.create","stream_id":"a"}"#);
        assert_eq!((&failed["type"], &failed["stream_id"]), (&json!("response.failed"), &json!("a")));
        assert_eq!(failed["response"]["error"]["code"], "invalid_prompt");
        let lost = said(DenialForm::Recoverable { status: 400, code: "previous_response_not_found" }, "{}");
        assert_eq!((&lost["type"], &lost["status"]), (&json!("error"), &json!(400)));
        assert_eq!(lost["error"]["code"], "previous_response_not_found");
    }

    #[test]
    fn an_answer_is_framed_as_its_content_type_says() {
        let head =
            ModelRequestHead { service: SERVICE, path: "/v1/responses", query: None, is_subscription: false };
        let streamed = RequestFacts { stream: true, ..RequestFacts::default() };
        for (content_type, framing) in [
            ("text/event-stream", Framing::Events(EVENTS)),
            ("application/json", Framing::Whole),
            ("", Framing::Events(EVENTS)),
        ] {
            assert_eq!(OpenAiResponses.framing(&head, &streamed, content_type), framing);
        }
        assert_eq!(OpenAiResponses.framing(&head, &RequestFacts::default(), ""), Framing::Whole);
        let counting = ModelRequestHead { service: Service { api: Api::CountTokens, ..SERVICE }, ..head };
        assert!(OpenAiResponses.transcript(&counting, &streamed).is_none());
    }
}
