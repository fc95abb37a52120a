//! Messages that a model of Chat Completions answers by a route: the agent hears Messages, the stand-in says Chat.

use bytes::Bytes;
use serde_json::{Value, json};

use super::anthropic::Anthropic;
use super::chat::Chat;
use super::dialect::{Dialect, Heard, Mode, Said};
use crate::support::upstream::Seen;

/// Where the stand-in is.
pub(crate) const HOST: &str = "chat.models.example";

/// How the models begin that it answers for: what follows is the cell, since nothing of the agent's head reaches it.
const MODEL: &str = "routed-";

/// What the agent and the stand-in say, under a policy with [`policy`].
pub(crate) struct Routed;

impl Dialect for Routed {
    fn place(&self, mode: Mode) -> Option<(&'static str, &'static str)> {
        Anthropic.place(mode)
    }

    fn request(&self, tools: &[String], mode: Mode) -> Value {
        request("any", tools, mode)
    }

    fn content_type(&self, mode: Mode) -> &'static str {
        Chat.content_type(mode)
    }

    fn answer(&self, said: &Said, mode: Mode) -> Vec<Bytes> {
        Chat.answer(said, mode)
    }

    fn hear(&self, body: &[u8], mode: Mode) -> Heard {
        Anthropic.hear(body, mode)
    }
}

/// A policy of its own beside the one that is tried.
pub(crate) fn policy(hosts: &str) -> String {
    format!(
        "---\napiVersion: postern.dev/v1alpha1\nkind: EgressPolicy\nmetadata: {{name: routes, namespace: agents}}\nspec:\n  \
         podSelector: {{}}\n  destinations: [{{name: llm, hosts: [{hosts}], action: Inspect}}]\n  \
         modelProviders: [{{name: chat, endpoint: 'https://{HOST}/v1', dialect: OpenAIChat}}]\n  \
         models: [{{name: stand-in, provider: chat}}]\n  \
         routes: [{{name: all, match: {{models: ['{MODEL}*']}}, to: [stand-in]}}]\n"
    )
}

/// A request of Messages for the stand-in, which offers each tool once.
pub(crate) fn request(cell: &str, tools: &[String], mode: Mode) -> Value {
    let mut offered: Vec<String> = tools.to_vec();
    offered.sort();
    offered.dedup();
    let mut request = Anthropic.request(&offered, mode);
    request["model"] = format!("{MODEL}{cell}").into();
    request
}

/// The cell of a request that reached the stand-in; none of any other.
pub(crate) fn cell(seen: &Seen) -> Option<String> {
    let asked: Value = serde_json::from_slice(&seen.body).ok()?;
    asked["model"].as_str()?.strip_prefix(MODEL).map(str::to_owned)
}

/// The answer with the names that the stand-in knows the tools by: as they were sent, in the order of the agent's names.
pub(crate) fn named_as_sent(seen: &Seen, tools: &[String], pieces: Vec<Bytes>) -> Vec<Bytes> {
    let asked: Value = serde_json::from_slice(&seen.body).unwrap();
    let sent = asked["tools"].as_array().into_iter().flatten();
    let sent: Vec<&str> = sent.map(|tool| tool["function"]["name"].as_str().unwrap()).collect();
    let mut offered: Vec<&String> = tools.iter().collect();
    offered.sort();
    offered.dedup();
    assert_eq!(sent.len(), offered.len(), "{asked}");
    let rename = |piece: Bytes| {
        let text = String::from_utf8(piece.to_vec()).unwrap();
        let named = offered.iter().zip(&sent).fold(text, |text, (own, sent)| {
            text.replace(&format!("\"name\":{}", json!(own)), &format!("\"name\":{}", json!(sent)))
        });
        Bytes::from(named)
    };
    pieces.into_iter().map(rename).collect()
}
