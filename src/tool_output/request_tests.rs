//! The prefix property: what was sent on one turn is the beginning of what is sent on the next, whatever happens between.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::call::{Api, Dialect, Kind, Service, Vendor};
use crate::provider::request::RequestEditor;
use crate::provider::request::testing::Open;
use crate::tool_output::plan::{self, PlannedChange};
use crate::tool_output::{Amount, Compress, Repeats};
use crate::wire::json::Limits;

/// Settings that are about tools of kind Shell, and about repeats of those that read, too.
#[derive(Debug, PartialEq)]
struct Simple(Shortening);

impl Settings for Simple {
    fn shortening(&self) -> &Shortening {
        &self.0
    }

    fn covers(&self, tool: &Tool<'_>) -> bool {
        tool.kinds.contains(&Kind::Shell)
    }

    fn covers_repeats(&self, tool: &Tool<'_>) -> bool {
        tool.kinds.contains(&Kind::Read) || self.covers(tool)
    }
}

/// Evidence of which some texts cannot be kept: those with an odd length.
struct Kept;

impl Places for Kept {
    fn place(&self, id: EvidenceId) -> String {
        format!("/evidence/{id}.txt")
    }

    fn root(&self) -> &str {
        "/evidence/"
    }

    fn is_named_in(&self, input: &str) -> bool {
        input.contains("/evidence/")
    }
}

fn settings(diagnostics: usize, repeats: Repeats) -> Arc<Simple> {
    let amount = |lines, bytes| Amount { lines, bytes };
    let compress =
        Compress { above: amount(12, 900), head: amount(2, 200), tail: amount(3, 300), diagnostics };
    Arc::new(Simple(Shortening { compress: Some(compress), repeats }))
}

/// What is sent of a body.
fn sent(
    dialect: Dialect,
    body: &[u8],
    (conversations, cuts): &(Conversations<Simple>, KnownCuts),
    current: Option<&Arc<Simple>>,
) -> Vec<u8> {
    let (api, path) = match dialect {
        Dialect::Anthropic => (Api::Messages, "/v1/messages"),
        Dialect::OpenAIChat => (Api::ChatCompletions, "/v1/chat/completions"),
        Dialect::OpenAIResponses => (Api::Responses, "/v1/responses"),
        Dialect::Gemini => (Api::GenerateContent, "/v1beta/models/gemini-2.5-pro:generateContent"),
        Dialect::Bedrock => (Api::Converse, "/model/amazon.nova-pro/converse"),
    };
    let service = Service { vendor: Vendor::Custom, api, dialect: Some(dialect) };
    let head = ModelRequestHead { service, path, query: None, is_subscription: false };
    let adapter = crate::provider::adapter(dialect);
    let document = Document::parse(body, Limits::default()).unwrap();
    let chains = Chains::default();
    let host = Host::parse("model.example").unwrap();
    let earlier = Earlier::Answers(&chains, &host);
    let asked = AskedRequest { adapter, head, terms: &Open, earlier };
    let plan = |cuts, marks| {
        planned(&asked, (&document, marks), (conversations, cuts), current, Some(&Kept), Instant::now())
    };
    let (edits, nothing) = (plan(cuts, None), KnownCuts::default());
    assert_eq!(edits, plan(&nothing, None), "what is remembered changes nothing");
    let mut marks = Marks::default();
    adapter.mark(&head, &RequestEditor::new(&document, &Open), &mut marks);
    assert_eq!(edits, plan(cuts, Some(marks)), "marks that were made before are the same");
    let edits = edits.edits;
    let changes: Vec<_> = edits
        .iter()
        .filter_map(|edit| {
            let left = match &edit.text.change {
                PlannedChange::Cut { left, .. } if edit.text.before.len().is_multiple_of(2) => left,
                PlannedChange::Refer { reference } => reference,
                PlannedChange::Cut { .. } | PlannedChange::Leave(_) => return None,
            };
            Some((edit.range.clone(), &*left.json))
        })
        .collect();
    plan::apply(body, &changes)
}

/// One step of a conversation: a call of a tool, and its result.
#[derive(Debug, Clone)]
struct Step {
    tool: &'static str,
    input: &'static str,
    text: String,
    is_error: bool,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let text = prop_oneof![
        prop::collection::vec("(error: )?[a-f]{0,40}", 0..40).prop_map(|lines| lines.join("\n")),
        Just("the same text of a file\n".repeat(30)),
        Just("one line without an end ".repeat(200)),
    ];
    let tool = prop_oneof![Just("Bash"), Just("Read"), Just("shell"), Just("unknown_tool")];
    let input = prop_oneof![Just("ls"), Just("cat /evidence/1.txt")];
    let step = (tool, input, text, any::<bool>()).prop_map(|(tool, input, text, is_error)| Step {
        tool,
        input,
        text,
        is_error,
    });
    prop::collection::vec(step, 1..8)
}

/// The messages of a conversation after these steps, in a dialect. They are the last member, so that a longer conversation
/// begins with the bytes of a shorter one but for what closes it.
fn body(dialect: Dialect, steps: &[Step]) -> Vec<u8> {
    let mut items = Vec::new();
    match dialect {
        Dialect::Bedrock => items.push(json!({"role": "user", "content": [{"text": "begin"}]})),
        Dialect::Gemini => items.push(json!({"role": "user", "parts": [{"text": "begin"}]})),
        Dialect::Anthropic | Dialect::OpenAIChat | Dialect::OpenAIResponses => {
            items.push(json!({"role": "user", "content": "begin"}));
        }
    }
    for (number, step) in steps.iter().enumerate() {
        items.extend(turn(dialect, &format!("call_{number}"), step));
    }
    let list = match dialect {
        Dialect::OpenAIResponses => "input",
        Dialect::Gemini => "contents",
        Dialect::Anthropic | Dialect::OpenAIChat | Dialect::Bedrock => "messages",
    };
    format!(r#"{{"model":"m","{list}":{}}}"#, Value::from(items)).into_bytes()
}

fn turn(dialect: Dialect, id: &str, step: &Step) -> [Value; 2] {
    let Step { tool, input, text, is_error } = step;
    let input = json!({"command": input});
    match dialect {
        Dialect::Anthropic => [
            json!({"role": "assistant", "content": [{"type": "tool_use", "id": id, "name": tool, "input": input}]}),
            json!({"role": "user", "content":
                [{"type": "tool_result", "tool_use_id": id, "content": text, "is_error": is_error}]}),
        ],
        Dialect::OpenAIChat => [
            json!({"role": "assistant", "content": null, "tool_calls": [{"id": id, "type": "function",
                "function": {"name": tool, "arguments": input.to_string()}}]}),
            json!({"role": "tool", "tool_call_id": id, "content": text}),
        ],
        Dialect::OpenAIResponses => [
            json!({"type": "function_call", "call_id": id, "name": tool, "arguments": input.to_string()}),
            json!({"type": "function_call_output", "call_id": id, "output": text}),
        ],
        Dialect::Gemini => {
            let member = if *is_error { "error" } else { "output" };
            [
                json!({"role": "model", "parts": [{"functionCall": {"id": id, "name": tool, "args": input}}]}),
                json!({"role": "user", "parts":
                    [{"functionResponse": {"id": id, "name": tool, "response": {member: text}}}]}),
            ]
        }
        Dialect::Bedrock => {
            let status = if *is_error { "error" } else { "success" };
            [
                json!({"role": "assistant", "content":
                    [{"toolUse": {"toolUseId": id, "name": tool, "input": input}}]}),
                json!({"role": "user", "content": [{"toolResult":
                    {"toolUseId": id, "status": status, "content": [{"text": text}]}}]}),
            ]
        }
    }
}

const DIALECTS: [Dialect; 5] =
    [Dialect::Anthropic, Dialect::OpenAIChat, Dialect::OpenAIResponses, Dialect::Gemini, Dialect::Bedrock];

/// What happens between two turns.
#[derive(Debug, Clone, Copy)]
enum Between {
    Nothing,
    /// The policy is read again, with other settings or none.
    Reload(Option<usize>),
    /// The gateway starts anew, with the settings in force.
    Restart,
}

fn between() -> impl Strategy<Value = Between> {
    prop_oneof![
        3 => Just(Between::Nothing),
        2 => prop::option::of(0usize..3).prop_map(Between::Reload),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    /// A gateway that starts anew has forgotten; it goes on with what it starts with, so that a restart alone changes
    /// nothing, and a reload alone changes nothing. (After a reload and a restart the old form is lost.)
    #[test]
    fn what_is_sent_begins_with_what_was_sent_before(
        steps in steps(),
        reloads in prop::collection::vec(between(), 8),
        restarts in any::<bool>(),
        repeats in prop_oneof![Just(Repeats::Keep), Just(Repeats::Refer)],
        first in prop::option::of(0usize..3),
        dialect in prop::sample::select(&DIALECTS[..]),
    ) {
        let of = |diagnostics: Option<usize>| diagnostics.map(|most| settings(most, repeats));
        let mut current = of(first);
        let begun = |first| (Conversations::new(first), KnownCuts::default());
        let mut remembered = begun(current.clone());
        let mut before: Option<Vec<u8>> = None;
        for turn in 0..=steps.len() {
            let body = body(dialect, &steps[..turn]);
            let sent = sent(dialect, &body, &remembered, current.as_ref());
            if let Some(before) = &before {
                let open = &before[..before.len() - 2];
                prop_assert!(
                    sent.starts_with(open),
                    "{}\nis no beginning of\n{}",
                    String::from_utf8_lossy(open),
                    String::from_utf8_lossy(&sent)
                );
            }
            before = Some(sent);
            match if restarts { Between::Restart } else { reloads[turn] } {
                Between::Nothing => {}
                Between::Reload(other) => current = of(other),
                Between::Restart => remembered = begun(current.clone()),
            }
        }
    }
}

#[test]
fn a_place_of_evidence_is_known_in_every_spelling_of_json() {
    let current = settings(3, Repeats::Keep);
    let text = "a line\n".repeat(100);
    let sent = |arguments: &str| {
        let body = json!({"model": "m", "input": [{"role": "user", "content": "begin"},
            {"type": "function_call", "call_id": "c", "name": "shell", "arguments": arguments},
            {"type": "function_call_output", "call_id": "c", "output": text}]});
        let remembered = (Conversations::new(Some(Arc::clone(&current))), KnownCuts::default());
        let sent = sent(Dialect::OpenAIResponses, body.to_string().as_bytes(), &remembered, Some(&current));
        serde_json::from_slice::<Value>(&sent).unwrap()["input"][2]["output"].as_str().unwrap().to_owned()
    };
    for reads in [r#"{"command":"cat /evidence/1.txt"}"#, r#"{"command":"cat \/evidence\/1.txt"}"#] {
        assert_eq!(sent(reads), text, "{reads}");
    }
    assert_ne!(sent(r#"{"command":"cat /other/1.txt"}"#), text);
}

#[test]
fn a_local_shell_is_known_by_either_id_of_its_call() {
    let current = settings(3, Repeats::Keep);
    let text = "a line\n".repeat(100);
    for by in ["id", "call_id"] {
        let body = json!({"model": "m", "input": [{"role": "user", "content": "begin"},
            {"type": "local_shell_call", "call_id": "c", "action": {"type": "exec", "command": ["ls"]}},
            {"type": "local_shell_call_output", by: "c", "output": text}]});
        let remembered = (Conversations::new(Some(Arc::clone(&current))), KnownCuts::default());
        let sent = sent(Dialect::OpenAIResponses, body.to_string().as_bytes(), &remembered, Some(&current));
        assert!(String::from_utf8(sent).unwrap().contains("95 of 100 lines"), "{by}");
    }
}

#[test]
fn results_of_every_dialect_are_cut_and_those_that_read_evidence_are_not() {
    let long = Step { tool: "Bash", input: "ls", text: "a line\n".repeat(100), is_error: false };
    let reads = Step { input: "cat /evidence/1.txt", ..long.clone() };
    let current = settings(3, Repeats::Keep);
    for dialect in DIALECTS {
        let remembered = (Conversations::new(Some(Arc::clone(&current))), KnownCuts::default());
        let body = body(dialect, &[long.clone(), reads.clone()]);
        let sent = sent(dialect, &body, &remembered, Some(&current));
        let text = String::from_utf8(sent).unwrap();
        let place = Kept.place(EvidenceId::of(&long.text));
        let marker = format!("[postern] 95 of 100 lines (665 bytes) left out. All of it: {place}");
        assert_eq!(text.matches(&marker).count(), 1, "{dialect:?}: {text}");
        assert_eq!(text.matches("a line").count(), 5 + 100, "{dialect:?}");
        let _: Value = serde_json::from_str(&text).unwrap();
    }
}
