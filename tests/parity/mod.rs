//! One table of policies and calls through every dialect, whole and streamed, over HTTP/1.1 and h2: in every cell of
//! the matrix the verdict is the same.

pub(crate) mod anthropic;
pub(crate) mod bedrock;
pub(crate) mod chat;
mod column;
pub(crate) mod dialect;
pub(crate) mod frames;
pub(crate) mod gemini;
mod matrix;
pub(crate) mod responses;
pub(crate) mod routed;
mod table;
pub(crate) mod websocket;

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use serde_json::Value;

use crate::support::upstream::{Reply, Seen, Step};
use crate::support::{Gateway, Pki, Setup, Upstream};
use column::{Door, Got, HOSTS, SPEAKERS, Speaker, WAYS, Way};
use dialect::{Called, Mode, Said};
use matrix::{Cell, Matrix};
use table::{Case, TABLE, Verdict};

const TEXT: &str = "Let me see: \"one\"\nthen — more.";
/// Writes the matrix instead of comparing it.
const BLESS: &str = "POSTERN_BLESS";

/// What the upstream answers, by cell.
type Answers = Arc<Mutex<HashMap<String, Scripted>>>;

/// One answer: its content type, its pieces, and the tools that it calls.
struct Scripted {
    content_type: &'static str,
    pieces: Vec<Bytes>,
    tools: Vec<String>,
}

#[test]
fn every_dialect_comes_to_the_same_verdicts() {
    let room = Room::new();
    let mut matrix = Matrix::default();
    for (number, case) in TABLE.iter().enumerate() {
        room.gateway.reload_policy(&policy(case.spec), "success");
        room.routing.reload_policy(&routing_policy(case.spec), "success");
        matrix.begin(case);
        for (name, speaker) in SPEAKERS {
            for way in WAYS {
                let cell = format!(
                    "{number}-{}-{}",
                    name.replace(' ', "-"),
                    WAYS.iter().position(|w| *w == way).unwrap()
                );
                matrix.push(if speaker.has(way) {
                    room.try_cell(&cell, case, speaker, way)
                } else {
                    Cell::Absent
                });
            }
        }
    }
    matrix.assert_uniform();
    assert_kept("docs/parity.md", &matrix.render());
}

#[test]
fn what_a_dialect_says_is_what_it_hears() {
    for case in TABLE {
        let said = said("cell", case);
        let expected: Vec<String> = said.calls.iter().map(Called::full_name).collect();
        for (name, speaker) in SPEAKERS {
            let Speaker::Http(dialect) = speaker else { continue };
            for mode in [Mode::Whole, Mode::Streamed] {
                if dialect.place(mode).is_none() {
                    continue;
                }
                let heard = dialect.hear(&dialect.answer(&said, mode).concat(), mode);
                let names: Vec<String> = heard.calls.iter().map(|call| call.name.clone()).collect();
                assert_eq!(
                    (heard.text.as_str(), names),
                    (TEXT, expected.clone()),
                    "{name} {mode:?} {}",
                    case.title
                );
            }
        }
    }
}

/// One gateway, another one under routes, one upstream for all hosts, and what it is to answer.
struct Room {
    gateway: Gateway,
    routing: Gateway,
    answers: Answers,
    _upstream: Upstream,
    /// The connections over h2, of either gateway.
    h2: [Vec<(&'static str, crate::support::h2::H2)>; 2],
    agents: [crate::support::Agent; 2],
}

impl Room {
    fn new() -> Self {
        let (upstreams, answers) = (Pki::new("Upstream Test CA"), Answers::default());
        let scripted = Arc::clone(&answers);
        let upstream = Upstream::build()
            .identity(upstreams.leaf(HOSTS))
            .script(move |seen| Some(reply(seen, &scripted)))
            .start();
        let start = |policy: &str| {
            let setup = Setup::new(&upstreams).policy(policy);
            HOSTS.iter().fold(setup, |setup, host| setup.host(host, upstream.address())).start()
        };
        let (gateway, routing) = (start(&policy("")), start(&routing_policy("")));
        let agents = [gateway.agent(), routing.agent()];
        let h2 = [0, 1].map(|side| {
            let hosts = HOSTS.iter().filter(|host| side == 0 || **host == "api.anthropic.com");
            hosts.map(|host| (*host, agents[side].h2(host))).collect()
        });
        Self { gateway, routing, answers, _upstream: upstream, h2, agents }
    }

    /// One answer on its way to the agent, and what the events say of its calls.
    fn try_cell(&self, cell: &str, case: &Case, speaker: &Speaker, way: Way) -> Cell {
        let said = said(cell, case);
        let (content_type, pieces) = speaker.answer(&said, way.mode);
        let sent = pieces.concat();
        let mut answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
        let tools: Vec<String> = said.calls.iter().map(Called::full_name).collect();
        answers.insert(cell.to_owned(), Scripted { content_type, pieces, tools: tools.clone() });
        drop(answers);
        let side = usize::from(matches!(speaker, Speaker::Routed));
        let door = Door { agent: &self.agents[side], h2: &self.h2[side] };
        let got = match speaker.ask(way, &door, cell, &tools) {
            Ok(got) => got,
            Err(refused) => return Cell::wrong(cell, refused),
        };
        let mut problems = differences(case, &said, &got);
        let is_same = !speaker.is_exact() || got.bytes == sent;
        if case.calls.iter().all(|call| call.verdict.passes()) && !is_same {
            problems.push(format!("other bytes: {}", String::from_utf8_lossy(&got.bytes)));
        }
        problems.extend(case.calls.iter().zip(&said.calls).filter_map(|(call, called)| {
            recorded([&self.gateway, &self.routing][side], call.verdict, side == 1, called)
        }));
        let passed = said.calls.iter().map(|call| got.heard.calls.iter().any(|heard| heard.id == call.id));
        Cell::Seen { cell: cell.to_owned(), passed: passed.collect(), problems }
    }
}

/// What is wrong with the events of a call: one of the verdict, and beside it one of an Audit rule, or of a policy in Audit
/// where another one is enforced.
fn recorded(gateway: &Gateway, verdict: Verdict, is_enforced_too: bool, called: &Called) -> Option<String> {
    let decided = |kind: &'static str| {
        let wanted =
            move |event: &Value| event["kind"] == kind && event["toolCall"]["id"] == called.id.as_str();
        let event = gateway.wait_for_event(&format!("the {kind} event of {}", called.id), wanted);
        let decision = &event["decision"];
        let rule = decision["rule"].as_str().map(str::to_owned);
        (decision["verdict"].as_str().unwrap_or_default().to_owned(), rule)
    };
    let said = (verdict.word().to_owned(), verdict.rule());
    let is_beside = match verdict {
        Verdict::Audit(_) => true,
        Verdict::WouldDeny(_) => is_enforced_too,
        Verdict::Allow(_) | Verdict::Deny(_) => false,
    };
    let expected = if is_beside { ("Allow".to_owned(), None) } else { said.clone() };
    let found = decided("ToolCall");
    if found != expected {
        return Some(format!("the event says {found:?}, not {expected:?}"));
    }
    if !is_beside {
        return None;
    }
    let found = decided("Policy");
    (found != said).then(|| format!("the event beside it says {found:?}, not {said:?}"))
}

fn policy(spec: &str) -> String {
    let lines: String = spec.lines().map(|line| format!("  {line}\n")).collect();
    let hosts = HOSTS.join(", ");
    format!(
        "apiVersion: postern.dev/v1alpha1\nkind: EgressPolicy\nmetadata: {{name: parity, namespace: agents}}\nspec:\n  \
         podSelector: {{}}\n  providerState: Allow\n  \
         destinations: [{{name: llm, hosts: [{hosts}], action: Inspect}}]\n{lines}"
    )
}

/// The same beside a policy with routes.
fn routing_policy(spec: &str) -> String {
    policy(spec) + &routed::policy(&HOSTS.join(", "))
}

/// The answer of a case, its calls numbered for this cell.
fn said(cell: &str, case: &Case) -> Said {
    let called = |(number, call): (usize, &table::Call)| Called {
        id: format!("call_{cell}_{number}"),
        namespace: call.namespace,
        name: call.name,
        input: call.input,
    };
    Said { text: TEXT, calls: case.calls.iter().enumerate().map(called).collect() }
}

fn reply(seen: &Seen, answers: &Answers) -> Reply {
    let answers = answers.lock().unwrap_or_else(PoisonError::into_inner);
    let is_routed = seen.authority == routed::HOST;
    let cell = if is_routed { routed::cell(seen) } else { seen.header("x-cell").map(str::to_owned) };
    let Some(Scripted { content_type, pieces, tools }) = answers.get(&cell.unwrap_or_default()) else {
        return Reply::of(404, "no such cell");
    };
    let pieces = if is_routed { routed::named_as_sent(seen, tools, pieces.clone()) } else { pieces.clone() };
    let steps = pieces.into_iter().map(Step::Data).collect();
    if seen.header("upgrade").is_some() {
        return Reply { status: 101, headers: Vec::new(), steps };
    }
    Reply::streaming(steps).header("content-type", *content_type)
}

/// What is wrong with an answer as its client reads it.
fn differences(case: &Case, said: &Said, got: &Got) -> Vec<String> {
    let mut problems = Vec::new();
    let kept = case.calls.iter().zip(&said.calls).filter(|(call, _)| call.verdict.passes());
    let expected: Vec<_> =
        kept.map(|(_, call)| (call.id.clone(), call.full_name(), dialect::json(call.input))).collect();
    let heard = &got.heard;
    let found: Vec<_> =
        heard.calls.iter().map(|call| (call.id.clone(), call.name.clone(), call.input.clone())).collect();
    if found != expected {
        problems.push(format!("calls left: {found:?}, not {expected:?}"));
    }
    if !heard.text.starts_with(TEXT) {
        problems.push(format!("the text became {:?}", heard.text));
    }
    let refused: Vec<String> = case
        .calls
        .iter()
        .filter(|call| !call.verdict.passes())
        .filter_map(|call| call.verdict.rule())
        .collect();
    let rules: Vec<&str> = heard.text.lines().filter_map(|line| line.strip_prefix("Rule: ")).collect();
    if rules != refused {
        problems.push(format!("refused by {rules:?}, not {refused:?}"));
    }
    if heard.ends_in_calls.is_some_and(|calls| calls == expected.is_empty()) {
        problems.push(format!("it says of calls {:?}, and has {}", heard.ends_in_calls, expected.len()));
    }
    problems
}

/// Compares a file of the repository with what it must be, or writes it where that is asked for.
#[track_caller]
pub(crate) fn assert_kept(file: &str, wanted: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(file);
    if std::env::var_os(BLESS).is_some() {
        std::fs::write(&path, wanted).unwrap();
    }
    let kept = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(kept == wanted, "{file} differs from what was seen; {BLESS}=1 writes it\n{wanted}");
}
