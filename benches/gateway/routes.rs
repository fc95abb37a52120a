//! Answers of a model that a route chooses beside guarded ones of the agent's own API, and routes that match nothing beside
//! none; what `just bench-routes` runs.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use tokio::task::JoinSet;

use super::body::{Body, HELD_BYTES};
use super::client::{Client, Way};
use super::fleet::{Fleet, Member};
use super::gateway::{API, MODEL, PLAIN, POLICY};
use super::load::{EVENTS_MODEL, HELD_MODEL, Load, read};
use super::{Comparison, Unit, rounds, show};

/// A call of this tool is denied: all answers go through the guard.
const RULE: &str = "  tools: [{name: no-call, tools: [Never], action: Deny}]\n";

/// A route for models with these names, to a server that speaks Chat Completions.
fn routes(models: &str) -> String {
    format!(
        "  modelProviders: [{{name: own, endpoint: 'https://{PLAIN}/v1', dialect: OpenAIChat}}]\n  \
         models: [{{name: own, provider: own}}]\n  \
         routes: [{{name: own, match: {{models: ['{models}']}}, to: [own]}}]\n"
    )
}

const TRANSLATED: Comparison = Comparison {
    names: ["guarded", "routed"],
    ways: [Way::Gateway, Way::Gateway],
    loads: &[
        ("answers, records", Unit::Rate, Load::Answers { is_bulk: false }),
        ("answers, bulk", Unit::Rate, Load::Answers { is_bulk: true }),
        ("an event of 5 ms", Unit::Latency, Load::Paced),
        ("an agent's turn", Unit::Latency, Load::AgentTurns),
    ],
};

const UNMATCHED: Comparison = Comparison {
    names: ["no route", "routes"],
    ways: [Way::Gateway, Way::Gateway],
    loads: &[
        ("conversation", Unit::Latency, Load::Conversation),
        ("answers, records", Unit::Rate, Load::Answers { is_bulk: false }),
        ("answers, bulk", Unit::Rate, Load::Answers { is_bulk: true }),
        ("an event of 5 ms", Unit::Latency, Load::Paced),
        ("an agent's turn", Unit::Latency, Load::AgentTurns),
        ("h1, 1 connection", Unit::Latency, Load::Requests { connections: 1, streams: 1 }),
        ("events", Unit::Rate, Load::Events { name: API }),
    ],
};

pub(crate) async fn run() {
    held().await;
    for (comparison, models) in [(TRANSLATED, "m-*"), (UNMATCHED, "other-*")] {
        let place = tempfile::tempdir().unwrap();
        let policies = [format!("{POLICY}{RULE}"), format!("{POLICY}{RULE}{}", routes(models))];
        let fleet = Fleet::start(place.path(), &policies.map(Member::of)).await;
        show(&comparison, &rounds(&comparison, [0, 1].map(|number| fleet.side(number))).await);
    }
}

/// Answers at a time, each with calls that interleave and never end.
const ANSWERS: usize = 4;
/// How long the gateway has to take what was sent, and to settle.
const SETTLE: Duration = Duration::from_secs(2);

/// Has answers go by that end, so that what the first one needs is there.
async fn warm(client: &Arc<Client>) {
    let asked = json!({"model": EVENTS_MODEL, "max_tokens": 9, "stream": true, "messages": [{"role": "user", "content": "go"}]});
    for _ in 0..ANSWERS {
        let mut sender = client.open(Way::Gateway, MODEL, false).await;
        let answer = sender.send(MODEL, "/v1/messages", Body::text(asked.to_string())).await;
        read(answer.into_body(), |_| ()).await;
    }
    tokio::time::sleep(SETTLE).await;
}

/// Prints what a gateway needs for calls that wait for one another.
async fn held() {
    let place = tempfile::tempdir().unwrap();
    let fleet = Fleet::start(place.path(), &[Member::of(format!("{POLICY}{}", routes("m-*")))]).await;
    let (client, gateway) = fleet.side(0);
    let asked = json!({"model": HELD_MODEL, "max_tokens": 9, "stream": true, "messages": [{"role": "user", "content": "go"}]});
    warm(client).await;
    let idle = gateway.resident();
    let mut answers = JoinSet::new();
    for _ in 0..ANSWERS {
        let mut sender = client.open(Way::Gateway, MODEL, false).await;
        let asked = Body::text(asked.to_string());
        answers.spawn(async move {
            let answer = sender.send(MODEL, "/v1/messages", asked).await;
            read(answer.into_body(), |_| ()).await;
        });
    }
    tokio::time::sleep(SETTLE).await;
    let (held, sent) = (gateway.resident() - idle, (ANSWERS * HELD_BYTES) as f64 / 1024.0);
    assert!(answers.try_join_next().is_none(), "every answer waits");
    answers.shutdown().await;
    println!(
        "\nmemory for {ANSWERS} answers of 200 interleaved calls that wait: {:.1} MiB for {:.1} MiB of arguments, {:.2} times",
        held as f64 / 1024.0,
        sent / 1024.0,
        held as f64 / sent
    );
}
