//! Shortens results of tools in a request to a model: what is cut is kept as evidence first, and what cannot be kept stays.

use std::ops::Range;
use std::time::Instant;

use bytes::Bytes;
use http::request::Parts;

use super::Exchange;
use super::model_request::{ModelRequest, describe};
use super::record::Record;
use crate::digest::{hex, sha256_hex};
use crate::event::{Extent, Transform};
use crate::evidence::Evidence;
use crate::provider::adapter::{Adapter, ModelRequestHead};
use crate::provider::request::marks::Marks;
use crate::proxy::Gateway;
use crate::proxy::body::request::RequestBody;
use crate::proxy::snapshot::Snapshot;
use crate::telemetry::label::Label;
use crate::tool_output::cut::CutNote;
use crate::tool_output::evidence_id::EvidenceId;
use crate::tool_output::heard::Heard;
use crate::tool_output::plan::{self, Change, PlannedChange, PlannedEdit, PlannedText, Replacement};
use crate::tool_output::request::{self, AskedRequest, Earlier, KeptAnswer, Places, Planned};
use crate::tool_output::{Shortened, TOKEN};
use crate::wire::json::{Document, KnownParts};

/// What became of the results of a request.
pub(super) struct ShortenedRequest {
    /// The body, where anything was edited.
    pub(super) body: Option<Bytes>,
    /// What is told of texts, once each.
    pub(super) told: Vec<Transform>,
    /// All of it in one line.
    pub(super) sum: Option<Transform>,
    /// What to remember of the answer.
    pub(super) kept: Option<KeptAnswer>,
}

/// What becomes of the results of a request, as far as that is known.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) enum ResultsPlan {
    /// Nobody has asked.
    #[default]
    Open,
    /// Of the body as it stands.
    Made(Planned),
}

impl Exchange<'_> {
    /// Shortens the results of a request whose body was taken in whole.
    pub(super) async fn shorten_results(
        &self,
        parts: &mut Parts,
        (model_request, body): (&mut ModelRequest, &mut RequestBody),
        record: &mut Record,
    ) {
        let (gateway, Some(before)) = (&self.session.gateway, body.bytes().cloned()) else { return };
        if !gateway.shortened.is_asked(self.snapshot.policy()) {
            return;
        }
        let plan = std::mem::take(&mut model_request.results);
        let asked = (&*model_request, Earlier::Answers(&gateway.shortened.chains, &model_request.host));
        let shortened = shorten(gateway, &self.snapshot, asked, (&before, body.known(), plan));
        let shortened = Box::pin(shortened).await;
        let Some(ShortenedRequest { body: edited, told, sum, kept }) = shortened else { return };
        model_request.kept = kept;
        record.results_shortened(told, sum);
        if let Some(edited) = edited {
            describe(&mut parts.headers, edited.len());
            body.replace(edited);
            model_request.is_edited = true;
        }
    }
}

/// Hears a message of a provider's WebSocket.
pub(super) fn hear(
    gateway: &Gateway,
    snapshot: &Snapshot,
    asked: &ModelRequest,
    message: &Bytes,
    heard: &Heard,
) {
    if gateway.shortened.is_asked(snapshot.policy()) {
        let places = snapshot.evidence.as_ref().map(|evidence| evidence as &dyn Places);
        heard.hear(asked.adapter, message, snapshot.json_limits(), places);
    }
}

/// Shortens the results of a request; none where that is not asked for, or it cannot be read. `earlier`: the
/// source of what it leaves out.
pub(super) async fn shorten(
    gateway: &Gateway,
    snapshot: &Snapshot,
    (asked, earlier): (&ModelRequest, Earlier<'_>),
    (body, known, plan): (&Bytes, &KnownParts, ResultsPlan),
) -> Option<ShortenedRequest> {
    if asked.facts.is_attested {
        return None;
    }
    let Some((head, carried)) = asked.adapter.carried(&asked.asked(), body, snapshot.json_limits()) else {
        let planned = match plan {
            ResultsPlan::Made(planned) => planned,
            ResultsPlan::Open => {
                let of = (asked.adapter, asked.asked(), earlier);
                planned_body(gateway, snapshot, of, (body, known))?
            }
        };
        return Some(shorten_body(gateway, snapshot, body, planned).await);
    };
    let inside = (&carried.body, &KnownParts::default());
    let planned = planned_body(gateway, snapshot, (asked.adapter, head, earlier), inside)?;
    let shortened = shorten_body(gateway, snapshot, &carried.body, planned).await;
    let edited = shortened.body.map(|inner| carried.replaced(body, &inner).into());
    Some(ShortenedRequest { body: edited, ..shortened })
}

/// Makes the edits that are planned, but those of texts that cannot be kept.
async fn shorten_body(
    gateway: &Gateway,
    snapshot: &Snapshot,
    body: &Bytes,
    Planned { edits, kept }: Planned,
) -> ShortenedRequest {
    let evidence = snapshot.evidence.as_ref();
    let texts: Vec<_> = edits.iter().filter_map(PlannedEdit::cut_text).collect();
    let keeping = evidence.map(|evidence| evidence.keep(&texts));
    let planned: Vec<Change<'_>> = edits.iter().filter_map(PlannedEdit::change).collect();
    // Made while the texts are written, and made again where one of them cannot be.
    let edited = (keeping.is_some() && !planned.is_empty()).then(|| plan::apply(body, &planned));
    let written = match keeping {
        Some(keeping) => keeping.await,
        None => Vec::new(),
    };
    let mut written = written.into_iter();
    let mut outcome = Outcome::default();
    for PlannedEdit { range, text } in &edits {
        let PlannedText { before, change } = &**text;
        match change {
            PlannedChange::Cut { left, note, sha256 } => match written.next() {
                Some(Ok(())) => outcome.cut(gateway, range, (before, left), (sha256, *note)),
                Some(Err(why)) => outcome.left(gateway, before, why.word()),
                None => outcome.left(gateway, before, NO_EVIDENCE),
            },
            PlannedChange::Refer { reference } => outcome.referred(gateway, range, before, reference),
            PlannedChange::Leave(why) => outcome.left(gateway, before, why),
        }
    }
    let edited = edited.filter(|_| outcome.changes.len() == planned.len());
    ShortenedRequest { kept, ..outcome.conclude(body, edited) }
}

/// Why a result is left where the gateway keeps no evidence.
const NO_EVIDENCE: &str = "no-evidence";

/// How a request is read, and the source of what it leaves out.
type Asked<'a> = (&'a dyn Adapter, ModelRequestHead<'a>, Earlier<'a>);

/// The edits of a request, before anything is kept.
pub(super) fn planned<'d>(
    gateway: &Gateway,
    snapshot: &'d Snapshot,
    (adapter, head, earlier): Asked<'d>,
    marked: (&'d Document<'d>, Option<Marks<'d>>),
) -> Planned {
    let policy = snapshot.policy();
    let asked = AskedRequest { adapter, head, terms: &**policy, earlier };
    let places = snapshot.evidence.as_ref().map(|evidence| evidence as &dyn Places);
    let remembered = (&gateway.shortened.conversations, &gateway.shortened.cuts);
    request::planned(&asked, marked, remembered, policy.tool_outputs(), places, Instant::now())
}

/// The same of a body that nobody has read, or that was edited since; none where it cannot be read.
fn planned_body(
    gateway: &Gateway,
    snapshot: &Snapshot,
    asked: Asked<'_>,
    (body, known): (&Bytes, &KnownParts),
) -> Option<Planned> {
    let document = Document::parse_known(body, snapshot.json_limits(), known).ok()?;
    Some(planned(gateway, snapshot, asked, (&document, None)))
}

impl Places for Evidence {
    fn place(&self, id: EvidenceId) -> String {
        self.place(id)
    }

    fn root(&self) -> &str {
        self.root()
    }

    fn is_named_in(&self, input: &str) -> bool {
        self.is_named_in(input)
    }
}

/// The edits of a request that are made, and what is told of them.
#[derive(Default)]
struct Outcome<'e> {
    changes: Vec<Change<'e>>,
    told: Vec<Transform>,
    compressed: usize,
    repeated: usize,
    left: usize,
    before: usize,
    after: usize,
}

impl<'e> Outcome<'e> {
    fn cut(
        &mut self,
        gateway: &Gateway,
        range: &Range<usize>,
        (before, left): (&str, &'e Replacement),
        (sha256, note): (&[u8; 32], CutNote),
    ) {
        self.compressed += 1;
        let id = EvidenceId::of_digest(sha256);
        let told = || {
            let CutNote { lines, lines_out, diagnostics } = note;
            let detail =
                format!("evidence {id}, {lines_out} of {lines} lines left out, {diagnostics} diagnostics");
            (extent(before, hex(sha256)), detail)
        };
        let is_new = gateway.shortened.is_new(id, Shortened::Compressed);
        self.change(gateway, range, (before, left), (Shortened::Compressed, is_new, &told));
    }

    fn referred(
        &mut self,
        gateway: &Gateway,
        range: &Range<usize>,
        before: &str,
        reference: &'e Replacement,
    ) {
        self.repeated += 1;
        let is_new = gateway.shortened.is_new(before, Shortened::Repeated);
        let told = || (extent_of(before), "stands above".to_owned());
        self.change(gateway, range, (before, reference), (Shortened::Repeated, is_new, &told));
    }

    /// `told`: how long the text was, and what else is told of it.
    fn change(
        &mut self,
        gateway: &Gateway,
        range: &Range<usize>,
        (before, after): (&str, &'e Replacement),
        (how, is_new, told): (Shortened, bool, &dyn Fn() -> (Extent, String)),
    ) {
        self.before += before.len();
        self.after += after.text.len();
        if is_new {
            gateway.metrics.tool_output(how, "", before.len(), after.text.len());
            let (before, detail) = told();
            self.told.push(Transform {
                before: Some(before),
                after: Some(extent_of(&after.text)),
                ..Transform::new(how.as_str(), Some(detail))
            });
        }
        self.changes.push((range.clone(), &after.json));
    }

    fn left(&mut self, gateway: &Gateway, text: &str, why: &'static str) {
        self.left += 1;
        if gateway.shortened.is_new(text, Shortened::Left) {
            gateway.metrics.tool_output(Shortened::Left, why, text.len(), text.len());
            self.told.push(Transform {
                before: Some(extent_of(text)),
                ..Transform::new(Shortened::Left.as_str(), Some(why.to_owned()))
            });
        }
    }

    /// `edited`: the body with all changes, where somebody has made it.
    fn conclude(self, body: &Bytes, edited: Option<Vec<u8>>) -> ShortenedRequest {
        let Self { changes, told, compressed, repeated, left, before, after } = self;
        let words = format!(
            "{compressed} compressed, {repeated} repeated, {left} left: {before} bytes became {after}"
        );
        let sum = (!changes.is_empty()).then(|| Transform::new(SUM, Some(words)));
        let edited = edited.or_else(|| (!changes.is_empty()).then(|| plan::apply(body, &changes)));
        let body = edited.map(Bytes::from);
        ShortenedRequest { body, told, sum, kept: None }
    }
}

/// The kind of the transform that sums up what became of a request's results.
const SUM: &str = "tool-outputs";

fn extent_of(text: &str) -> Extent {
    extent(text, sha256_hex(text.as_bytes()))
}

fn extent(text: &str, sha256: String) -> Extent {
    let (bytes, tokens) = (text.len() as u64, (text.len() / TOKEN) as u64);
    Extent { sha256, bytes, tokens: Some(tokens) }
}
