//! What is measured, and how: workers run, a window opens, what was done in it is counted.

use std::fmt::Write as _;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock, Mutex};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http_body_util::BodyExt;
use hyper::body::Incoming;
use serde_json::json;
use tokio::task::JoinSet;

use super::body::{Body, count_events, delays};
use super::client::{Client, Sender, Way};
use super::exchanges::{Exchange, Repeated};
use super::gateway::{API, COLD, Gateway, MODEL, cold};

/// Work goes on for so long before it counts.
const WARM: Duration = Duration::from_millis(150);
/// Connections that are opened at the same time.
const OPENING: usize = 4;

/// The body of each turn of a conversation: 30 turns that read a file of 5 KB each.
static READING: LazyLock<Vec<Bytes>> = LazyLock::new(|| turns(30, 5_000, "Read", "file_path"));
/// The same, 40 turns that print 3.7 KB each.
static PRINTING: LazyLock<Vec<Bytes>> = LazyLock::new(|| turns(40, 3_700, "Bash", "command"));

/// What stands in each result for the number of its conversation, so that none has a text of another one.
const CONVERSATION: &str = concat!("conversation", "-", "00000000");
static CONVERSATIONS: AtomicU64 = AtomicU64::new(1);

/// The same turn with results that no conversation had before: all of them, or the last alone.
fn turn_of(turn: &Bytes, conversation: u64, news: News) -> Bytes {
    let mut turn = turn.to_vec();
    let mark = format!("conversation-{conversation:08}");
    let places: Vec<usize> = memchr::memmem::find_iter(&turn, CONVERSATION).collect();
    let known = if news == News::Last { places.len() - 1 } else { 0 };
    for at in places.into_iter().skip(known) {
        turn[at..at + CONVERSATION.len()].copy_from_slice(mark.as_bytes());
    }
    turn.into()
}

/// Which results of a turn no other conversation has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum News {
    All,
    Last,
}

/// The body of each turn of a conversation, of which each adds a call of a tool and a result of so many bytes.
fn turns(count: usize, bytes: usize, tool: &str, parameter: &str) -> Vec<Bytes> {
    let source = include_str!("load.rs");
    let result = |number: usize| -> String {
        let text: String = source.chars().cycle().skip(number * 997).take(bytes).collect();
        format!("{number} {CONVERSATION} {text}")
    };
    let mut messages = vec![json!({"role": "user", "content": "go"})];
    let turn = |number: usize| {
        let id = format!("toolu_{number}");
        let input = json!({parameter: format!("/w/{number}.rs")});
        messages.push(json!({"role": "assistant", "content": [{"type": "tool_use", "id": id, "name": tool, "input": input}]}));
        messages.push(json!({"role": "user", "content": [{"type": "tool_result", "tool_use_id": id, "content": result(number)}]}));
        json!({"model": "m", "max_tokens": 100, "messages": messages}).to_string().into()
    };
    (0..count).map(turn).collect()
}

/// The same for a model whose answers stream.
static AGENT_TURNS: LazyLock<Vec<Bytes>> = LazyLock::new(|| {
    let turn = |turn: &Bytes| {
        let asked: serde_json::Value = serde_json::from_slice(turn).unwrap();
        let messages = asked["messages"].to_string();
        streaming(TURN_MODEL, &messages[1..messages.len() - 1])
    };
    READING.iter().map(turn).collect()
});

/// A question of about so many bytes, in texts of source code of which no other number's question has one.
fn long_question(bytes: usize, number: u64) -> Bytes {
    let text: String = include_str!("load.rs").chars().take(bytes.min(4_000)).collect();
    let text = &json!(text).to_string()[1..];
    let mut asked = r#"{"model":"m","max_tokens":100,"messages":[{"role":"user","content":["#.to_owned();
    for part in 0..bytes.div_ceil(text.len()) {
        let comma = if part == 0 { "" } else { "," };
        write!(asked, r#"{comma}{{"type":"text","text":"{number} {part} {text}}}"#).unwrap();
    }
    (asked + "]}]}").into()
}

/// A request for a stream, with the model in front and these messages.
fn streaming(model: &str, messages: &str) -> Bytes {
    let tools = r#"[{"name":"Read","input_schema":{"type":"object"}}]"#;
    let head = format!(r#"{{"model":"{model}","max_tokens":100,"stream":true,"tools":{tools}"#);
    format!(r#"{head},"messages":[{messages}]}}"#).into()
}

/// The body of a conversation's turn, of which there are 30.
pub(crate) fn conversation(turn: usize) -> Bytes {
    READING[turn - 1].clone()
}

/// Models whose answers stream, each event on its own or many at once.
pub(crate) const EVENTS_MODEL: &str = "m-events";
pub(crate) const BULK_MODEL: &str = "m-bulk";
/// Models whose answers come event by event: some time apart, or as those of a turn of an agent.
pub(crate) const PACED_MODEL: &str = "m-paced";
pub(crate) const TURN_MODEL: &str = "m-turn";
/// A model whose calls interleave and never end.
pub(crate) const HELD_MODEL: &str = "m-held";

/// One kind of work.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Load {
    /// Small requests on kept connections, so many at a time on each.
    Requests { connections: usize, streams: usize },
    /// A new connection for each request, to one name or to names never seen.
    Connections { cold: bool },
    /// Server-sent events, one record each, on two connections.
    Events { name: &'static str },
    /// Events of a model's answers, one record each or many, on two connections.
    Answers { is_bulk: bool },
    /// Events of a model's answers that come 5 ms apart, on two connections: how long each takes.
    Paced,
    /// The turns of a conversation with a model whose answers stream.
    AgentTurns,
    /// Bytes of one answer.
    Down { name: &'static str },
    /// Bytes of one request: zeros.
    Up { name: &'static str },
    /// The same of text.
    UpText { name: &'static str },
    /// The turns of a conversation with a model, each of which repeats those before, on one connection.
    Conversation,
    /// The same, of which each turn adds the output of a command.
    Printing,
    /// The last of those turns over and over, each with another last output.
    LastPrinting,
    /// An exchange that has a name, one after the other on each of so many connections.
    Exchanges { name: &'static str, connections: usize },
    /// Questions of so many bytes to a model, on one connection: each with texts of its own, or the same ones again.
    Bodies { bytes: usize, is_new: bool },
}

/// What was done in one window.
pub(crate) struct Sample {
    pub(crate) items: f64,
    pub(crate) elapsed: Duration,
    /// Of the whole of each item, sorted; empty where items are bytes or events.
    pub(crate) latencies: Vec<Duration>,
    /// What the gateway used.
    pub(crate) cpu: Duration,
}

/// What workers count into.
#[derive(Default)]
struct Tally {
    items: Arc<AtomicU64>,
    latencies: Mutex<Vec<Duration>>,
}

/// Cold names that have been used.
#[derive(Default)]
pub(crate) struct Cold(AtomicUsize);

/// A client with all that its workers share.
#[derive(Clone)]
struct Worker {
    client: Arc<Client>,
    way: Way,
    tally: Arc<Tally>,
    cold: Arc<Cold>,
}

/// Measures one kind of work for `window`.
pub(crate) async fn measure(
    (client, gateway): (&Arc<Client>, &Gateway),
    (load, way): (Load, Way),
    window: Duration,
    cold: &Arc<Cold>,
) -> Sample {
    let tally = Arc::new(Tally::default());
    let worker =
        Worker { client: Arc::clone(client), way, tally: Arc::clone(&tally), cold: Arc::clone(cold) };
    let mut workers = worker.start(load).await;
    tokio::time::sleep(WARM).await;
    // Until each worker has what it needs: a connection of its own to the upstream, for example.
    while tally.items.load(Ordering::Relaxed) < workers.len() as u64 {
        fail_with(&mut workers);
        tokio::time::sleep(WARM).await;
    }
    let (begun, cpu, items) = (Instant::now(), gateway.cpu(), tally.items.load(Ordering::Relaxed));
    tally.latencies.lock().unwrap().clear();
    tokio::time::sleep(window).await;
    let elapsed = begun.elapsed();
    let cpu = gateway.cpu() - cpu;
    let items = tally.items.load(Ordering::Relaxed) - items;
    let mut latencies = std::mem::take(&mut *tally.latencies.lock().unwrap());
    latencies.sort_unstable();
    stop(workers).await;
    Sample { items: items as f64, elapsed, latencies, cpu }
}

/// A worker that has failed fails the run.
fn fail_with(workers: &mut JoinSet<()>) {
    while let Some(ended) = workers.try_join_next() {
        ended.unwrap();
    }
}

/// Ends them.
async fn stop(mut workers: JoinSet<()>) {
    fail_with(&mut workers);
    workers.shutdown().await;
}

impl Worker {
    async fn start(&self, load: Load) -> JoinSet<()> {
        let mut workers = JoinSet::new();
        match load {
            Load::Requests { connections, streams } => {
                for _ in 0..connections {
                    let h2 = streams > 1;
                    let sender = self.client.open(self.way, API, h2).await;
                    for _ in 1..streams {
                        workers.spawn(self.clone().requests(sender.clone()));
                    }
                    workers.spawn(self.clone().requests(sender));
                }
            }
            Load::Connections { cold } => {
                for _ in 0..OPENING {
                    workers.spawn(self.clone().connections(cold));
                }
            }
            Load::Events { name } => {
                for _ in 0..2 {
                    workers.spawn(self.clone().stream(name, "/v1/events", count_events));
                }
            }
            Load::Answers { is_bulk } => {
                for _ in 0..2 {
                    workers.spawn(self.clone().answers(is_bulk));
                }
            }
            Load::Paced => {
                for _ in 0..2 {
                    workers.spawn(self.clone().paced());
                }
            }
            Load::Down { name } => {
                workers.spawn(self.clone().stream(name, "/v1/bulk", |chunk| chunk.len() as u64));
            }
            Load::Up { name } => {
                workers.spawn(self.clone().upload(name, Body::bulk));
            }
            Load::UpText { name } => {
                workers.spawn(self.clone().upload(name, Body::source));
            }
            Load::Conversation => drop(workers.spawn(self.clone().converse(&READING, News::All))),
            Load::Printing => drop(workers.spawn(self.clone().converse(&PRINTING, News::All))),
            Load::LastPrinting => {
                let last = &PRINTING[PRINTING.len() - 1..];
                workers.spawn(self.clone().converse(last, News::Last));
            }
            Load::AgentTurns => drop(workers.spawn(self.clone().converse(&AGENT_TURNS, News::All))),
            Load::Exchanges { name, connections } => {
                for _ in 0..connections {
                    let exchange = Exchange::of(name).begin(&self.client).await;
                    workers.spawn(self.clone().exchanges(exchange));
                }
            }
            Load::Bodies { bytes, is_new } => drop(workers.spawn(self.clone().bodies(bytes, is_new))),
        }
        workers
    }

    async fn requests(self, mut sender: Sender) {
        loop {
            let begun = Instant::now();
            let answer = sender.send(API, "/v1/messages", self.client.question()).await;
            read(answer.into_body(), |_| ()).await;
            self.done(begun);
        }
    }

    async fn connections(self, is_cold: bool) {
        loop {
            let name = if is_cold { self.cold_name() } else { API.to_owned() };
            let begun = Instant::now();
            let mut sender = self.client.open(self.way, &name, false).await;
            let answer = sender.send(&name, "/v1/messages", self.client.question()).await;
            read(answer.into_body(), |_| ()).await;
            self.done(begun);
        }
    }

    fn cold_name(&self) -> String {
        if self.way == Way::Direct {
            return cold(0);
        }
        let number = self.cold.0.fetch_add(1, Ordering::Relaxed);
        assert!(number < COLD, "all cold names have been used: measure fewer rounds");
        cold(number)
    }

    async fn stream(self, name: &'static str, path: &'static str, count: fn(&[u8]) -> u64) {
        let mut sender = self.client.open(self.way, name, false).await;
        loop {
            let answer = sender.send(name, path, self.client.question()).await;
            let counted = |chunk: &[u8]| {
                self.tally.items.fetch_add(count(chunk), Ordering::Relaxed);
            };
            read(answer.into_body(), counted).await;
        }
    }

    async fn answers(self, is_bulk: bool) {
        let model = if is_bulk { BULK_MODEL } else { EVENTS_MODEL };
        let tool = json!({"name": "Read", "input_schema": {"type": "object"}});
        let asked = json!({
            "model": model, "max_tokens": 100, "stream": true, "tools": [tool],
            "messages": [{"role": "user", "content": "go"}],
        });
        let asked = Bytes::from(asked.to_string());
        let mut sender = self.client.open(self.way, MODEL, false).await;
        loop {
            let answer = sender.send(MODEL, "/v1/messages", Body::text(asked.clone())).await;
            let counted = |chunk: &[u8]| {
                self.tally.items.fetch_add(count_events(chunk), Ordering::Relaxed);
            };
            read(answer.into_body(), counted).await;
        }
    }

    async fn paced(self) {
        let mut sender = self.client.open(self.way, MODEL, false).await;
        loop {
            let asked = Body::text(streaming(PACED_MODEL, r#"{"role":"user","content":"go"}"#));
            let answer = sender.send(MODEL, "/v1/messages", asked).await;
            let counted = |chunk: &[u8]| {
                let mut latencies = self.tally.latencies.lock().unwrap();
                let before = latencies.len();
                latencies.extend(delays(chunk));
                self.tally.items.fetch_add((latencies.len() - before) as u64, Ordering::Relaxed);
            };
            read(answer.into_body(), counted).await;
        }
    }

    /// What is counted has been written, not read: over a whole window the two are the same but for buffers.
    async fn upload(self, name: &'static str, body: fn(&Arc<AtomicU64>) -> Body) {
        let mut sender = self.client.open(self.way, name, false).await;
        loop {
            let body = body(&self.tally.items);
            read(sender.send(name, "/v1/sink", body).await.into_body(), |_| ()).await;
        }
    }

    async fn converse(self, turns: &[Bytes], news: News) {
        let mut sender = self.client.open(self.way, MODEL, false).await;
        loop {
            let conversation = CONVERSATIONS.fetch_add(1, Ordering::Relaxed);
            for turn in turns {
                let body = Body::text(turn_of(turn, conversation, news));
                let begun = Instant::now();
                let answer = sender.send(MODEL, "/v1/messages", body).await;
                assert!(answer.status().is_success(), "{}", answer.status());
                read(answer.into_body(), |_| ()).await;
                self.done(begun);
            }
        }
    }

    async fn exchanges(self, mut exchange: Repeated) {
        loop {
            let begun = Instant::now();
            exchange.run(1).await;
            self.done(begun);
        }
    }

    async fn bodies(self, bytes: usize, is_new: bool) {
        let mut sender = self.client.open(self.way, MODEL, false).await;
        let again = long_question(bytes, 0);
        for number in 1.. {
            let body = if is_new { long_question(bytes, number) } else { again.clone() };
            let begun = Instant::now();
            let answer = sender.send(MODEL, "/v1/messages", Body::text(body)).await;
            read(answer.into_body(), |_| ()).await;
            self.done(begun);
        }
    }

    fn done(&self, begun: Instant) {
        self.tally.items.fetch_add(1, Ordering::Relaxed);
        self.tally.latencies.lock().unwrap().push(begun.elapsed());
    }
}

pub(crate) async fn read(mut body: Incoming, mut each: impl FnMut(&[u8])) {
    while let Some(frame) = body.frame().await {
        if let Some(data) = frame.unwrap().data_ref() {
            each(data);
        }
    }
}

/// Opens connections through the gateway, each with one request served, and keeps them.
pub(crate) async fn hold(client: &Arc<Client>, connections: usize) -> Vec<Sender> {
    let mut held = Vec::with_capacity(connections);
    let mut opening = JoinSet::new();
    for number in 0..connections {
        let client = Arc::clone(client);
        opening.spawn(async move {
            let mut sender = client.open(Way::Gateway, API, false).await;
            let answer = sender.send(API, "/v1/messages", client.question()).await;
            read(answer.into_body(), |_| ()).await;
            sender
        });
        if number >= OPENING {
            held.extend(opening.join_next().await.map(Result::unwrap));
        }
    }
    held.extend(opening.join_all().await);
    held
}
