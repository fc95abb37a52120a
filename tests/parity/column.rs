//! The columns of the matrix: a dialect, how it answers, and the version of HTTP below.

use bytes::Bytes;
use serde_json::Value;

use super::anthropic::Anthropic;
use super::bedrock::{Converse, Invoke};
use super::chat::Chat;
use super::dialect::{Dialect, Heard, Mode, Said};
use super::responses::{self, Responses};
use super::{gemini, routed, websocket};
use crate::support::agent::Agent;
use crate::support::h2::H2;

/// What speaks, in the order of the matrix.
pub(super) const SPEAKERS: &[(&str, Speaker)] = &[
    ("Anthropic", Speaker::Http(&Anthropic)),
    ("Chat", Speaker::Http(&Chat)),
    ("Responses", Speaker::Http(&Responses)),
    ("Responses WebSocket", Speaker::WebSocket),
    ("Gemini SSE", Speaker::Http(&gemini::Sse)),
    ("Gemini array", Speaker::Http(&gemini::Array)),
    ("Bedrock Converse", Speaker::Http(&Converse)),
    ("Bedrock Invoke", Speaker::Http(&Invoke)),
    ("Messages by a Chat model", Speaker::Routed),
];

/// The hosts that they speak at.
pub(super) const HOSTS: &[&str] = &[
    "api.anthropic.com",
    "api.openai.com",
    "generativelanguage.googleapis.com",
    "bedrock-runtime.us-east-1.amazonaws.com",
    routed::HOST,
];

pub(super) enum Speaker {
    Http(&'static dyn Dialect),
    /// Events of Responses in messages, after an upgrade, which h2 does not have here.
    WebSocket,
    /// Messages, which a model of Chat Completions answers by a route.
    Routed,
}

/// One column within a speaker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Way {
    pub(super) mode: Mode,
    pub(super) h2: bool,
}

/// The columns of each speaker, in the order of the matrix.
pub(super) const WAYS: [Way; 4] = [
    Way { mode: Mode::Whole, h2: false },
    Way { mode: Mode::Whole, h2: true },
    Way { mode: Mode::Streamed, h2: false },
    Way { mode: Mode::Streamed, h2: true },
];

/// What a client got.
pub(super) struct Got {
    /// Every byte of the answer's body, or of the messages.
    pub(super) bytes: Vec<u8>,
    pub(super) heard: Heard,
}

impl Speaker {
    /// Whether there is such a column at all.
    pub(super) fn has(&self, way: Way) -> bool {
        match self {
            Self::Http(dialect) => dialect.place(way.mode).is_some(),
            Self::WebSocket => way.mode == Mode::Streamed && !way.h2,
            Self::Routed => true,
        }
    }

    /// Whether what was said and allowed comes out byte for byte.
    pub(super) fn is_exact(&self) -> bool {
        !matches!(self, Self::Routed)
    }

    /// The type of an answer's body and its pieces.
    pub(super) fn answer(&self, said: &Said, mode: Mode) -> (&'static str, Vec<Bytes>) {
        match self {
            Self::Http(dialect) => (dialect.content_type(mode), dialect.answer(said, mode)),
            Self::Routed => (Chat.content_type(mode), Chat.answer(said, mode)),
            Self::WebSocket => {
                ("", responses::events(said).iter().map(|event| event.to_string().into()).collect())
            }
        }
    }

    /// Asks through the gateway for the answer of a cell.
    pub(super) fn ask(&self, way: Way, door: &Door<'_>, cell: &str, tools: &[String]) -> Result<Got, String> {
        let dialect = match self {
            Self::WebSocket => return Ok(ask_websocket(door.agent, cell, tools)),
            Self::Http(dialect) => *dialect,
            Self::Routed => &Anthropic,
        };
        let (host, path) = dialect.place(way.mode).unwrap();
        let body = match self {
            Self::Routed => routed::request(cell, tools, way.mode),
            Self::Http(_) | Self::WebSocket => dialect.request(tools, way.mode),
        };
        let (url, body) = (format!("https://{host}{path}"), body.to_string());
        let headers = [("content-type", "application/json"), ("x-cell", cell)];
        let answer = if way.h2 {
            let (_, connection) = door.h2.iter().find(|(name, _)| *name == host).unwrap();
            connection.request("POST", &url, &headers, body.as_bytes()).unwrap()
        } else {
            door.agent.request("POST", &url, &headers, body.as_bytes())
        };
        if answer.status != 200 || !answer.complete {
            return Err(format!("{} {}", answer.status, answer.text()));
        }
        Ok(Got { heard: dialect.hear(&answer.body, way.mode), bytes: answer.body })
    }
}

/// The ways through the gateway that cells share.
pub(super) struct Door<'a> {
    pub(super) agent: &'a Agent,
    pub(super) h2: &'a [(&'static str, H2)],
}

fn ask_websocket(agent: &Agent, cell: &str, tools: &[String]) -> Got {
    let mut request = Responses.request(tools, Mode::Streamed);
    request["type"] = "response.create".into();
    request.as_object_mut().unwrap().remove("stream");
    let messages = websocket::converse(agent, cell, &request);
    let events: Vec<Value> = messages.iter().map(|message| super::dialect::json(message)).collect();
    Got { bytes: messages.concat().into_bytes(), heard: responses::hear_events(&events) }
}
