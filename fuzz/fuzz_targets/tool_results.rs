//! Results of tools that are cut: any text under any settings gives its own lines and the marker, shorter than before; in a
//! request nothing outside of results changes, and what was sent on one turn begins what is sent on the next.
#![no_main]

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};
use std::time::Instant;

use libfuzzer_sys::arbitrary::{self, Arbitrary};
use libfuzzer_sys::fuzz_target;
use postern::call::{Api, Dialect, Service, Terms, Tool, Vendor};
use postern::name::host::Host;
use postern::policy::{Policy, document};
use postern::provider::adapter::ModelRequestHead;
use postern::tool_output::chains::Chains;
use postern::tool_output::conversations::Conversations;
use postern::tool_output::cut::{Cut, PREFIX};
use postern::tool_output::evidence_id::EvidenceId;
use postern::tool_output::known::KnownCuts;
use postern::tool_output::plan::{self, PlannedChange, PlannedEdit, Replacement};
use postern::tool_output::request::{AskedRequest, Earlier, Places, Settings, planned};
use postern::tool_output::{Amount, Compress, Repeats, Shortening};
use postern::wire::json::{Document, Limits};
use serde_json::{Value, json};

const POLICY: &str = "{apiVersion: postern.dev/v1alpha1, kind: EgressPolicy, metadata: {name: p, namespace: n}, \
                      spec: {destinations: []}}";

static TERMS: LazyLock<Policy> = LazyLock::new(|| {
    let documents = document::parse("p.yaml", POLICY).expect("it is a policy");
    Policy::compile(&documents, &BTreeMap::new()).expect("it compiles")
});

/// Bounds that a policy may have, but for being much shorter.
#[derive(Debug, Arbitrary)]
struct Bounds {
    head: (u8, u8),
    tail: (u8, u8),
    more: (u8, u8),
    diagnostics: u8,
    refers: bool,
}

#[derive(Debug, Arbitrary)]
struct Result<'a> {
    text: &'a str,
    repeat: u8,
    is_error: bool,
    reads_evidence: bool,
}

#[derive(Debug, Arbitrary)]
struct Input<'a> {
    bounds: Bounds,
    results: Vec<Result<'a>>,
    dialect: bool,
    /// Any bytes in the place of a request.
    body: &'a [u8],
}

impl Bounds {
    fn compress(&self) -> Compress {
        let amount = |(lines, bytes): (u8, u8)| Amount {
            lines: 1 + usize::from(lines),
            bytes: 64 + 4 * usize::from(bytes),
        };
        let (head, tail) = (amount(self.head), amount(self.tail));
        let lines = (head.lines + tail.lines).div_ceil(2) * 3 + usize::from(self.more.0);
        let bytes = (head.bytes + tail.bytes).div_ceil(2) * 3 + 4 * usize::from(self.more.1);
        let diagnostics = usize::from(self.diagnostics) % 9;
        Compress { above: Amount { lines, bytes }, head, tail, diagnostics }
    }
}

/// Where all of a text is.
const OWN: &str = "/evidence/own.txt";

/// Settings that are about every tool.
#[derive(PartialEq)]
struct Every(Shortening);

impl Settings for Every {
    fn shortening(&self) -> &Shortening {
        &self.0
    }

    fn covers(&self, _: &Tool<'_>) -> bool {
        true
    }

    fn covers_repeats(&self, _: &Tool<'_>) -> bool {
        true
    }
}

struct Evidence;

impl Places for Evidence {
    fn place(&self, id: EvidenceId) -> String {
        format!("/e/{id}.txt")
    }

    fn root(&self) -> &str {
        "/e/"
    }

    fn is_named_in(&self, input: &str) -> bool {
        input.contains("/e/")
    }
}

fuzz_target!(|input: Input<'_>| {
    let bounds = input.bounds.compress();
    for result in &input.results {
        let text = result.text.repeat(1 + usize::from(result.repeat));
        for bounds in [bounds, bounds.of_error()] {
            check_cut(&text, &bounds);
        }
    }
    let repeats = if input.bounds.refers { Repeats::Refer } else { Repeats::Keep };
    let settings = Arc::new(Every(Shortening { compress: Some(bounds), repeats }));
    let remembered = (Conversations::new(Some(Arc::clone(&settings))), KnownCuts::default());
    let dialect = if input.dialect { Dialect::Anthropic } else { Dialect::OpenAIChat };
    let mut before: Option<Vec<u8>> = None;
    for turn in 1..=input.results.len().min(4) {
        let body = body(dialect, &input.results[..turn]);
        let sent = check_request(dialect, &body, &remembered, &settings).expect("it is a request");
        if let Some(before) = before {
            assert!(
                sent.starts_with(&before[..before.len() - 2]),
                "the earlier turn is no longer its beginning"
            );
        }
        before = Some(sent);
    }
    check_request(dialect, input.body, &remembered, &settings);
});

/// Cuts a text, and checks what is left.
fn check_cut(text: &str, bounds: &Compress) {
    // A forged marker is a line as any other, and would be taken for the gateway's here.
    let Some(cut) = Cut::of(text, bounds).filter(|_| !text.contains(OWN)) else { return };
    let Some(left) = cut.write(OWN) else { return };
    assert_eq!(cut.write(OWN).as_ref(), Some(&left), "the same text is cut in two ways");
    assert!(left.len() * 10 <= text.len() * 7, "it gains too little");
    let marker = left.match_indices(PREFIX).find(|(at, _)| {
        left[*at..].lines().next().is_some_and(|line| {
            line.ends_with(&format!(" left out. All of it: {OWN}"))
                || line.ends_with(&format!(" long ones in part. All of it: {OWN}"))
        })
    });
    let (at, _) = marker.expect("no marker");
    let before = left[..at].strip_suffix('\n').unwrap_or(&left[..at]);
    assert!(text.starts_with(before), "the beginning is not the text's own");
    let mut rest = left[at..].split_once('\n').expect("the marker ends").1;
    if cut.note().diagnostics > 0 {
        let (heading, mut shown) = rest.split_once('\n').expect("the heading ends");
        assert!(heading.starts_with(PREFIX) && heading.ends_with(':'), "{heading}");
        let lines: Vec<&str> = text.lines().collect();
        for _ in 0..cut.note().diagnostics {
            let (line, more) = shown.split_once('\n').expect("a diagnostic ends");
            let (number, line) = line.split_once(": ").expect("a diagnostic has a number");
            let own = lines[number.parse::<usize>().expect("a number") - 1];
            assert!(
                own == line || line.strip_suffix('…').is_some_and(|line| own.starts_with(line)),
                "{line}"
            );
            shown = more;
        }
        let (heading, tail) = shown.split_once('\n').unwrap_or(("", shown));
        rest = if heading.starts_with(PREFIX) && heading.ends_with(" on:") { tail } else { shown };
    }
    assert!(text.ends_with(rest), "the end is not the text's own");
    let again = Cut::of(&left, &Compress { diagnostics: 0, ..*bounds });
    let is_again = again.and_then(|again| again.write(OWN)).is_some();
    assert!(!is_again || cut.note().diagnostics > 0, "what is left is cut again");
}

/// Has a body edited, and checks that nothing else than its results changed. Returns what is sent; none where it is no request.
fn check_request(
    dialect: Dialect,
    body: &[u8],
    (conversations, cuts): &(Conversations<Every>, KnownCuts),
    settings: &Arc<Every>,
) -> Option<Vec<u8>> {
    let (api, path) = match dialect {
        Dialect::Anthropic => (Api::Messages, "/v1/messages"),
        _ => (Api::ChatCompletions, "/v1/chat/completions"),
    };
    let service = Service { vendor: Vendor::Custom, api, dialect: Some(dialect) };
    let head = ModelRequestHead { service, path, query: None, is_subscription: false };
    let adapter = postern::provider::adapter(dialect);
    let terms: &dyn Terms = &*TERMS;
    let document = Document::parse(body, Limits::default()).ok()?;
    let chains = Chains::default();
    let host = Host::parse("model.example").expect("a host");
    let earlier = Earlier::Answers(&chains, &host);
    let asked = AskedRequest { adapter, head, terms, earlier };
    let plan = |cuts| {
        planned(&asked, (&document, None), (conversations, cuts), Some(settings), Some(&Evidence), Instant::now())
    };
    let planned = plan(cuts);
    assert_eq!(planned, plan(&KnownCuts::default()), "what is remembered changes nothing");
    let edits = planned.edits;
    let changes: Vec<_> =
        edits.iter().filter_map(|edit| Some((edit.range.clone(), replacement(edit)?))).collect();
    let written: Vec<_> = changes.iter().map(|(range, left)| (range.clone(), &*left.json)).collect();
    let sent = plan::apply(body, &written);
    let mut at = 0;
    let mut left = sent.as_slice();
    for (range, Replacement { text, json }) in &changes {
        assert!(at <= range.start, "edits overlap");
        left = left.strip_prefix(&body[at..range.start]).expect("bytes before a result changed");
        let before: String =
            serde_json::from_slice(&body[range.clone()]).expect("what is edited is a string");
        assert!(text.len() < before.len(), "an edit is longer");
        assert_eq!(**json, json!(&**text).to_string(), "the text of the edit");
        left = left.strip_prefix(json.as_bytes()).expect("the text of the edit");
        at = range.end;
    }
    assert_eq!(left, &body[at..], "bytes behind the results changed");
    Some(sent)
}

fn replacement(edit: &PlannedEdit) -> Option<&Replacement> {
    match &edit.text.change {
        PlannedChange::Cut { left, .. } => Some(left),
        PlannedChange::Refer { reference } => Some(reference),
        PlannedChange::Leave(_) => None,
    }
}

/// A conversation in which these results were given. The messages are its last member.
fn body(dialect: Dialect, results: &[Result<'_>]) -> Vec<u8> {
    let mut messages = vec![json!({"role": "user", "content": "begin"})];
    for (number, result) in results.iter().enumerate() {
        let id = format!("call_{number}");
        let text = result.text.repeat(1 + usize::from(result.repeat));
        let input = json!({"command": if result.reads_evidence { "cat /e/1.txt" } else { "ls" }});
        messages.extend(match dialect {
            Dialect::Anthropic => [
                json!({"role": "assistant", "content": [{"type": "tool_use", "id": id, "name": "Bash", "input": input}]}),
                json!({"role": "user", "content":
                    [{"type": "tool_result", "tool_use_id": id, "content": text, "is_error": result.is_error}]}),
            ],
            _ => [
                json!({"role": "assistant", "content": null, "tool_calls": [{"id": id, "type": "function",
                    "function": {"name": "Bash", "arguments": input.to_string()}}]}),
                json!({"role": "tool", "tool_call_id": id, "content": text}),
            ],
        });
    }
    format!(r#"{{"model":"m","messages":{}}}"#, Value::from(messages)).into_bytes()
}
