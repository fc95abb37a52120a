//! Shortens results of tools in a request to a model: what is cut is kept as evidence first, and what cannot be kept stays.

use std::ops::Range;
use std::time::Instant;

use bytes::Bytes;
use http::request::Parts;

use super::Exchange;
use super::model_request::{ModelRequest, describe};
use super::record::Record;
use crate::digest::sha256_hex;
use crate::event::{Extent, Transform};
use crate::evidence::{Evidence, EvidenceId};
use crate::provider::adapter::ModelRequestHead;
use crate::proxy::Gateway;
use crate::proxy::body::request::RequestBody;
use crate::proxy::snapshot::Snapshot;
use crate::telemetry::label::Label;
use crate::tool_output::cut::CutNote;
use crate::tool_output::heard::Heard;
use crate::tool_output::plan::{self, PlannedChange, PlannedEdit, Replacement};
use crate::tool_output::request::{self, AskedRequest, Earlier, KeptAnswer, Places, Planned};
use crate::tool_output::{Shortened, TOKEN};
use crate::wire::json::KnownParts;

/// What became of the results of a request.
pub(super) struct ShortenedRequest {
    /// The body, where anything was edited.
    pub(super) body: Option<Bytes>,
    /// What is told of texts, once each.
    pub(super) told: Vec<Transform>,
    /// All of it in one line.
    pub(super) sum: Option<Transform>,
    /// For a request that goes on from the answer.
    pub(super) kept: Option<KeptAnswer>,
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
        let asked = (&*model_request, Earlier::Answers(&gateway.shortened.chains));
        let shortened = Box::pin(shorten(gateway, &self.snapshot, asked, (&before, body.known()))).await;
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

/// Shortens the results of a request; none where that is not asked for, or it cannot be read. `earlier`: where is known what
/// it leaves out.
pub(super) async fn shorten(
    gateway: &Gateway,
    snapshot: &Snapshot,
    (asked, earlier): (&ModelRequest, Earlier<'_>),
    (body, known): (&Bytes, &KnownParts),
) -> Option<ShortenedRequest> {
    if asked.facts.is_attested {
        return None;
    }
    let Some((head, carried)) = asked.adapter.carried(&asked.asked(), body, snapshot.json_limits()) else {
        return shorten_body(gateway, snapshot, (asked, asked.asked(), earlier), (body, known)).await;
    };
    let inside = (&carried.body, &KnownParts::default());
    let shortened = shorten_body(gateway, snapshot, (asked, head, earlier), inside).await?;
    let edited = shortened.body.map(|inner| carried.replaced(body, &inner).into());
    Some(ShortenedRequest { body: edited, ..shortened })
}

/// The same for a body and the head by which it is read.
async fn shorten_body(
    gateway: &Gateway,
    snapshot: &Snapshot,
    asked: (&ModelRequest, ModelRequestHead<'_>, Earlier<'_>),
    (body, known): (&Bytes, &KnownParts),
) -> Option<ShortenedRequest> {
    let evidence = snapshot.evidence.as_ref();
    let Planned { edits, kept: answer } = planned(gateway, snapshot, asked, (body, known))?;
    let texts: Vec<_> = edits.iter().filter_map(PlannedEdit::cut_text).collect();
    let kept = match evidence {
        Some(evidence) if !texts.is_empty() => evidence.keep(&texts).await,
        Some(_) | None => Vec::new(),
    };
    let mut kept = kept.into_iter();
    let mut outcome = Outcome::default();
    for edit in edits {
        match edit.change {
            PlannedChange::Cut { left, note, id } => match kept.next() {
                Some(Ok(())) => outcome.cut(gateway, edit.range, (&edit.before, left), (id, note)),
                Some(Err(why)) => outcome.left(gateway, &edit.before, why.word()),
                None => outcome.left(gateway, &edit.before, NO_EVIDENCE),
            },
            PlannedChange::Refer { reference } => {
                outcome.referred(gateway, edit.range, &edit.before, reference);
            }
            PlannedChange::Leave(why) => outcome.left(gateway, &edit.before, why),
        }
    }
    Some(ShortenedRequest { kept: answer, ..outcome.conclude(body) })
}

/// Why a result is left where the gateway keeps no evidence.
const NO_EVIDENCE: &str = "no-evidence";

/// The edits of a request, before anything is kept.
fn planned(
    gateway: &Gateway,
    snapshot: &Snapshot,
    (asked, head, earlier): (&ModelRequest, ModelRequestHead<'_>, Earlier<'_>),
    (body, known): (&Bytes, &KnownParts),
) -> Option<Planned> {
    let policy = snapshot.policy();
    let (adapter, limits) = (asked.adapter, snapshot.json_limits());
    let asked = AskedRequest { adapter, head, body, known, limits, terms: &**policy, earlier };
    let places = snapshot.evidence.as_ref().map(|evidence| evidence as &dyn Places);
    let remembered = (&gateway.shortened.conversations, &gateway.shortened.cuts);
    request::planned(&asked, remembered, policy.tool_outputs(), places, Instant::now())
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
struct Outcome {
    changes: Vec<(Range<usize>, Replacement)>,
    told: Vec<Transform>,
    compressed: usize,
    repeated: usize,
    left: usize,
    before: usize,
    after: usize,
}

impl Outcome {
    fn cut(
        &mut self,
        gateway: &Gateway,
        range: Range<usize>,
        (before, left): (&str, Replacement),
        (id, note): (EvidenceId, CutNote),
    ) {
        self.compressed += 1;
        let CutNote { lines, lines_out, diagnostics } = note;
        let detail =
            || format!("evidence {id}, {lines_out} of {lines} lines left out, {diagnostics} diagnostics");
        let is_new = gateway.shortened.is_new(id, Shortened::Compressed);
        self.change(gateway, range, (before, left), (Shortened::Compressed, is_new, &detail));
    }

    fn referred(&mut self, gateway: &Gateway, range: Range<usize>, before: &str, reference: Replacement) {
        self.repeated += 1;
        let is_new = gateway.shortened.is_new(before, Shortened::Repeated);
        let detail = || "stands above".to_owned();
        self.change(gateway, range, (before, reference), (Shortened::Repeated, is_new, &detail));
    }

    fn change(
        &mut self,
        gateway: &Gateway,
        range: Range<usize>,
        (before, after): (&str, Replacement),
        (how, is_new, detail): (Shortened, bool, &dyn Fn() -> String),
    ) {
        self.before += before.len();
        self.after += after.text.len();
        if is_new {
            gateway.metrics.tool_output(how, "", before.len(), after.text.len());
            self.told.push(Transform {
                before: Some(extent(before)),
                after: Some(extent(&after.text)),
                ..Transform::new(how.as_str(), Some(detail()))
            });
        }
        self.changes.push((range, after));
    }

    fn left(&mut self, gateway: &Gateway, text: &str, why: &'static str) {
        self.left += 1;
        if gateway.shortened.is_new(text, Shortened::Left) {
            gateway.metrics.tool_output(Shortened::Left, why, text.len(), text.len());
            self.told.push(Transform {
                before: Some(extent(text)),
                ..Transform::new(Shortened::Left.as_str(), Some(why.to_owned()))
            });
        }
    }

    fn conclude(self, body: &Bytes) -> ShortenedRequest {
        let Self { changes, told, compressed, repeated, left, before, after } = self;
        let words = format!(
            "{compressed} compressed, {repeated} repeated, {left} left: {before} bytes became {after}"
        );
        let sum = (!changes.is_empty()).then(|| Transform::new(SUM, Some(words)));
        let body = (!changes.is_empty()).then(|| Bytes::from(plan::apply(body, &changes)));
        ShortenedRequest { body, told, sum, kept: None }
    }
}

/// The kind of the transform that sums up what became of a request's results.
const SUM: &str = "tool-outputs";

fn extent(text: &str) -> Extent {
    let (bytes, tokens) = (text.len() as u64, (text.len() / TOKEN) as u64);
    Extent { sha256: sha256_hex(text.as_bytes()), bytes, tokens: Some(tokens) }
}
