//! Exchanges with names, one after the other on one connection: what is counted, and what a profile is made of.

use std::fmt::Write as _;
use std::sync::Arc;

use bytes::Bytes;
use serde_json::json;

use super::answers::{CALL_MODEL, SUDO_MODEL, TEXT_MODEL};
use super::body::Body;
use super::client::{Client, Sender, Way, question};
use super::gateway::{GUARDED, PLAIN, POLICY};
use super::load::{conversation, read};

/// Rules by a tool's name and by what a command says.
const RULES: &str = "  tools:
    - {name: delete, tools: ['mcp__*__delete*'], action: Deny}
    - {name: sudo, kind: Shell, action: Deny, when: {param: command, operator: Contains, values: [sudo]}}
";

/// The policy behind all of them: a guard, and a credential.
pub(crate) fn policy() -> String {
    format!("{POLICY}{RULES}")
}

/// One kind of exchange.
pub(crate) struct Exchange {
    pub(crate) name: &'static str,
    host: &'static str,
    body: fn() -> Bytes,
}

pub(crate) const EXCHANGES: [Exchange; 6] = [
    // 2 KB and an answer of 1 KB, of which nothing is read.
    Exchange { name: "plain", host: PLAIN, body: question },
    // The same to a model, with a credential.
    Exchange { name: "question", host: GUARDED, body: question },
    // A stream of 100 events of text.
    Exchange { name: "text", host: GUARDED, body: || asked(TEXT_MODEL) },
    // A stream with one call, whose input has 200 bytes.
    Exchange { name: "call", host: GUARDED, body: || asked(CALL_MODEL) },
    // The same call, denied.
    Exchange { name: "denied", host: GUARDED, body: || asked(SUDO_MODEL) },
    // The last of the turns of a conversation, 150 KB.
    Exchange { name: "conversation", host: GUARDED, body: || conversation(30) },
];

/// A short question of a model whose answer streams, with a tool.
fn asked(model: &str) -> Bytes {
    let tool = json!({
        "name": "Bash", "description": "Runs a command.",
        "input_schema": {"type": "object", "properties": {"command": {"type": "string"}}, "required": ["command"]},
    });
    let asked = json!({
        "model": model, "max_tokens": 100, "stream": true, "tools": [tool],
        "messages": [{"role": "user", "content": "go"}],
    });
    asked.to_string().into()
}

impl Exchange {
    pub(crate) fn of(name: &str) -> &'static Self {
        let found = EXCHANGES.iter().find(|exchange| exchange.name == name);
        found.unwrap_or_else(|| panic!("no exchange {name}: there are{}", names()))
    }

    /// The exchanges of one connection.
    pub(crate) async fn begin(&self, client: &Arc<Client>) -> Repeated {
        Repeated {
            sender: client.open(Way::Gateway, self.host, false).await,
            host: self.host,
            body: (self.body)(),
        }
    }
}

fn names() -> String {
    EXCHANGES.iter().fold(String::new(), |mut text, exchange| {
        write!(text, " {}", exchange.name).unwrap();
        text
    })
}

/// One exchange, over and over.
pub(crate) struct Repeated {
    sender: Sender,
    host: &'static str,
    body: Bytes,
}

impl Repeated {
    /// Makes so many, each to its end.
    pub(crate) async fn run(&mut self, times: usize) {
        for _ in 0..times {
            let answer = self.sender.send(self.host, "/v1/messages", Body::text(self.body.clone())).await;
            read(answer.into_body(), |_| ()).await;
        }
    }
}
