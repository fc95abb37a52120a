//! What tests of this dialect share: terms, a judge, frames, and answers that come in pieces.

use std::sync::Mutex;

use crate::call::{
    Advice, Api, CallVerdict, Decision, Denial, Dialect, HostedAction, HostedToolVerdict, Judge, Judgement,
    Service, ShellTerms, Start, Terms, Tool, ToolCall, Vendor,
};
use crate::provider::adapter::{Adapter, Framing, ModelRequestHead};
use crate::provider::answer::testing::{fed, settings};
use crate::provider::answer::{BrokenAnswer, Guard};
use crate::provider::bedrock::Bedrock;
use crate::provider::request::{EditedRequest, RequestEditor};
use crate::wire::event_stream::{self, Decoder, Header};
use crate::wire::json::{Document, Limits};

/// What may stand in a request.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rules {
    pub(super) action: HostedAction,
    /// State at the provider, and URLs.
    pub(super) allows: bool,
}

pub(super) const STRIP: Rules = Rules { action: HostedAction::Strip, allows: false };
pub(super) const REFUSE: Rules = Rules { action: HostedAction::Refuse, allows: false };
pub(super) const KEEP: Rules = Rules { action: HostedAction::Keep, allows: true };

fn decided(allows: bool) -> Decision {
    Decision::of(if allows { crate::decision::Verdict::Allow } else { crate::decision::Verdict::Deny })
}

impl Terms for Rules {
    fn hosted_tool(&self, _: &str) -> HostedToolVerdict {
        let decision = decided(self.action == HostedAction::Keep);
        HostedToolVerdict { action: self.action, decision, audited: None }
    }

    fn provider_state(&self) -> Judgement {
        Judgement { decision: decided(self.allows), audited: None }
    }

    fn url_sources(&self) -> Judgement {
        self.provider_state()
    }

    fn may_edit(&self) -> bool {
        true
    }
}

/// Asks with this path, `MODEL/OPERATION`.
pub(super) fn with_asked<T>(path: &str, ask: impl FnOnce(&ModelRequestHead<'_>) -> T) -> T {
    let api = if path.contains("/converse") {
        Api::Converse
    } else if path.ends_with("/count-tokens") {
        Api::CountTokens
    } else {
        Api::InvokeModel
    };
    let service = Service { vendor: Vendor::Bedrock, api, dialect: Some(Dialect::Bedrock) };
    let path = format!("/model/{path}");
    ask(&ModelRequestHead { service, path: &path, query: None, is_subscription: false })
}

/// What a request comes to.
pub(super) fn drafted(path: &str, body: &str, rules: Rules) -> Result<EditedRequest, Denial> {
    let document = Document::parse(body.as_bytes(), Limits::default()).unwrap();
    let mut editor = RequestEditor::new(&document, &rules);
    with_asked(path, |head| Bedrock.request(head, &mut editor))?;
    Ok(editor.finish())
}

/// The same in words: the edited body, `same`, or the built-in rule that denies it (`policy` where a rule of its own).
pub(super) fn outcome(path: &str, body: &str, rules: Rules) -> String {
    match drafted(path, body, rules) {
        Ok(EditedRequest { body: None, .. }) => "same".to_owned(),
        Ok(EditedRequest { body: Some(body), .. }) => String::from_utf8(body).unwrap(),
        Err(denial) => {
            denial.decision.rule.map_or_else(|| "policy".to_owned(), |rule| rule.as_str().to_owned())
        }
    }
}

/// Holds every call, and denies by turns.
#[derive(Debug)]
pub(super) enum Turns {
    AllowAll,
    DenyAll,
    /// Without being held.
    DenyAtStart,
    EveryOther(Mutex<u32>),
}

impl Judge for Turns {
    fn denies(&self, _: bool) -> bool {
        true
    }

    fn shell(&self) -> ShellTerms {
        ShellTerms::default()
    }

    fn start(&self, _: &Tool<'_>) -> Start {
        match self {
            Self::DenyAtStart => Start::Deny(denied(Advice::NotAvailable)),
            Self::AllowAll | Self::DenyAll | Self::EveryOther(_) => Start::NeedsInput,
        }
    }

    fn complete(&self, _: &ToolCall<'_>) -> CallVerdict {
        match self {
            Self::AllowAll => CallVerdict::allowed(),
            Self::DenyAll | Self::DenyAtStart => denied(Advice::NotThisUse),
            Self::EveryOther(count) => {
                let mut count = count.lock().unwrap();
                *count += 1;
                if *count % 2 == 0 { CallVerdict::allowed() } else { denied(Advice::NotThisUse) }
            }
        }
    }
}

fn denied(advice: Advice) -> CallVerdict {
    CallVerdict { advice, ..CallVerdict::builtin("test", "a test says so") }
}

/// A guard of an answer to this path.
pub(super) fn guard(path: &str, judge: impl Judge + 'static) -> Guard {
    let facts = crate::call::RequestFacts::default();
    let framing = if path.ends_with("-stream") { Framing::EventStream } else { Framing::Whole };
    let transcript = with_asked(path, |head| Bedrock.transcript(head, &facts)).unwrap();
    Guard::new(transcript, framing, settings(judge))
}

/// What a stream becomes, in pieces of so many bytes, and how it ended.
pub(super) fn streamed(
    path: &str,
    judge: impl Judge + 'static,
    stream: &[u8],
    piece: usize,
) -> (Vec<u8>, Result<(), BrokenAnswer>) {
    fed(guard(path, judge), stream, piece)
}

/// What a whole answer becomes.
pub(super) fn whole(path: &str, judge: impl Judge + 'static, body: &str) -> Result<String, BrokenAnswer> {
    let body = guard(path, judge).whole(body.to_owned().into())?;
    Ok(String::from_utf8(body.to_vec()).unwrap())
}

/// A frame as Bedrock sends it.
pub(super) fn frame(name: &str, json: &str) -> Vec<u8> {
    let exception = name.ends_with("Exception");
    let (kind, message) = if exception { (":exception-type", "exception") } else { (":event-type", "event") };
    let headers = [
        Header::string(kind, name),
        Header::string(":content-type", "application/json"),
        Header::string(":message-type", message),
    ];
    let mut output = Vec::new();
    event_stream::encode(&headers, json.as_bytes(), &mut output).unwrap();
    output
}

/// Frames of `NAME JSON` lines.
pub(super) fn frames(lines: &[&str]) -> Vec<u8> {
    let pairs = lines.iter().map(|line| line.split_once(' ').unwrap());
    pairs.flat_map(|(name, json)| frame(name, json)).collect()
}

/// `NAME JSON` of every frame; each checksum is looked at.
pub(super) fn lines(stream: &[u8]) -> Vec<String> {
    let mut decoder = Decoder::default();
    decoder.push(stream.to_vec().into());
    decoder.end();
    let mut lines = Vec::new();
    while let Some(frame) = decoder.next_frame().unwrap() {
        let name = frame.string(":event-type").or(frame.string(":exception-type")).unwrap();
        lines.push(format!("{name} {}", std::str::from_utf8(&frame.payload).unwrap()));
    }
    lines
}
