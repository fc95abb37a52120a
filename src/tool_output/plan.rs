//! Plans the edits of one request's results: which are cut, and which become a reference to an earlier one.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use foldhash::quality::RandomState;

use super::cut::{Cut, CutNote, PREFIX};
use super::cut_by_agent::is_cut_by_agent;
use super::evidence_id::EvidenceId;
use super::known::{KnownCuts, OfText};
use super::request::Places;
use super::{Compress, Repeats, Shortening};
use crate::digest::sha256_of;
use crate::wire::json::Value;

/// A text of a tool's result in a request.
pub struct ResultText<'d> {
    pub value: Value<'d>,
    /// Whether the result is marked as an error.
    pub is_error: bool,
    /// Whether the settings are about its tool.
    pub is_cut: bool,
    /// Whether its tool is one whose repeats are referred.
    pub is_referred: bool,
    /// Whether its call reads what was cut before.
    pub reads_evidence: bool,
    /// The name and the id of its call, where it has both.
    pub called: Option<(&'d str, &'d str)>,
}

/// An edit of one result.
#[derive(Debug, PartialEq, Eq)]
pub struct PlannedEdit {
    /// The JSON string in the request, with its quotes.
    pub range: Range<usize>,
    pub text: Arc<PlannedText>,
}

/// A text, and what becomes of it.
#[derive(Debug, PartialEq, Eq)]
pub struct PlannedText {
    /// Without escapes.
    pub before: Arc<str>,
    pub change: PlannedChange,
}

#[derive(Debug, PartialEq, Eq)]
pub enum PlannedChange {
    /// Only once all of the text, of which this is the SHA-256, is kept elsewhere.
    Cut { left: Replacement, note: CutNote, sha256: [u8; 32] },
    /// It stands above.
    Refer { reference: Replacement },
    /// It is long, and stays for this reason.
    Leave(&'static str),
}

/// What stands in the place of a text.
#[derive(Debug, PartialEq, Eq)]
pub struct Replacement {
    pub text: Arc<str>,
    /// The same as a JSON string, with its quotes.
    pub json: Arc<str>,
}

impl From<String> for Replacement {
    fn from(text: String) -> Self {
        Self { json: serde_json::Value::from(text.as_str()).to_string().into(), text: text.into() }
    }
}

impl PlannedEdit {
    /// What it replaces and by what, as JSON writes it.
    pub fn change(&self) -> Option<Change<'_>> {
        match &self.text.change {
            PlannedChange::Cut { left: by, .. } | PlannedChange::Refer { reference: by } => {
                Some((self.range.clone(), &by.json))
            }
            PlannedChange::Leave(_) => None,
        }
    }

    /// The text with its name, where it is to be cut.
    pub fn cut_text(&self) -> Option<(EvidenceId, &Arc<str>)> {
        match &self.text.change {
            PlannedChange::Cut { sha256, .. } => Some((EvidenceId::of_digest(sha256), &self.text.before)),
            PlannedChange::Refer { .. } | PlannedChange::Leave(_) => None,
        }
    }
}

/// Why a long result stays as it is.
const LITTLE_GAIN: &str = "little-gain";
const READS_EVIDENCE: &str = "reads-evidence";
const CUT_BY_AGENT: &str = "cut-by-agent";

/// The least of a repeat that is replaced, in bytes: a reference to less gains too little.
const LEAST_REFERRED: usize = 400;

/// The longest reference, in bytes.
const LONGEST_REFERENCE: usize = 280;

/// By what edits are planned.
pub struct Plan<'a> {
    pub settings: &'a Shortening,
    /// False where the provider may drop what is earlier.
    pub may_refer: bool,
    /// Where all of a text is that is cut. Without them nothing could be kept.
    pub places: Option<&'a dyn Places>,
    /// What became of texts before.
    pub known: &'a KnownCuts,
}

impl Plan<'_> {
    /// Plans the edits.
    pub fn edits(&self, results: &[ResultText<'_>]) -> Vec<PlannedEdit> {
        let mut edits = Vec::new();
        // Results that stand whole in this request, by the length of their JSON.
        let mut whole: HashMap<usize, Vec<&ResultText<'_>>, RandomState> = HashMap::default();
        let refers = self.may_refer && self.settings.repeats == Repeats::Refer;
        for result in results {
            if let Some(edit) = self.cut(result) {
                edits.push(edit);
                continue;
            }
            let raw = result.value.raw();
            if !refers || !result.is_referred || raw.len() < LEAST_REFERRED {
                continue;
            }
            let alike = whole.entry(raw.len()).or_default();
            let earlier = alike.iter().find(|one| one.is_error == result.is_error && one.value.raw() == raw);
            match earlier.and_then(|earlier| earlier.called).and_then(|(name, id)| called(name, id)) {
                Some(called) => edits.extend(refer(result, &called)),
                None => alike.push(result),
            }
        }
        edits
    }

    fn cut(&self, result: &ResultText<'_>) -> Option<PlannedEdit> {
        let bounds = self.settings.compress.as_ref().filter(|_| result.is_cut)?;
        let raw = result.value.raw();
        // No text has more bytes or lines than its JSON has bytes.
        if raw.len() <= bounds.above.bytes.min(bounds.above.lines) {
            return None;
        }
        let bounds = if result.is_error { bounds.of_error() } else { *bounds };
        let root = self.places.map(Places::root).unwrap_or_default();
        let mut text = self.known.of((raw, bounds, root), || self.of_text(result.value, &bounds))?;
        if result.reads_evidence {
            let change = PlannedChange::Leave(READS_EVIDENCE);
            text = Arc::new(PlannedText { before: Arc::clone(&text.before), change });
        }
        Some(PlannedEdit { range: result.value.span(), text })
    }

    fn of_text(&self, value: Value<'_>, bounds: &Compress) -> OfText {
        let text = value.text()?;
        let cut = Cut::of(&text, bounds)?;
        let change = if is_cut_by_agent(&text) {
            PlannedChange::Leave(CUT_BY_AGENT)
        } else {
            let sha256 = sha256_of(&[text.as_bytes()]);
            let place = |places: &dyn Places| places.place(EvidenceId::of_digest(&sha256));
            let place = self.places.map(place).unwrap_or_default();
            match cut.write(&place) {
                Some(left) => PlannedChange::Cut { left: left.into(), note: cut.note(), sha256 },
                None => PlannedChange::Leave(LITTLE_GAIN),
            }
        };
        Some(Arc::new(PlannedText { before: Arc::from(&*text), change }))
    }
}

fn refer(result: &ResultText<'_>, called: &str) -> Option<PlannedEdit> {
    let before = Arc::from(&*result.value.text()?);
    let reference = format!("{PREFIX}Same as the result of {called} above.").into();
    let change = PlannedChange::Refer { reference };
    Some(PlannedEdit { range: result.value.span(), text: Arc::new(PlannedText { before, change }) })
}

/// What a reference calls a result by: the tool's name and the call's id, where both are short and plain.
fn called(name: &str, id: &str) -> Option<String> {
    let is_plain = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic());
    let called = format!("{name} ({id})");
    (is_plain(name) && is_plain(id) && called.len() + 40 <= LONGEST_REFERENCE).then_some(called)
}

/// A JSON string of a document, and the one that takes its place.
pub type Change<'a> = (Range<usize>, &'a str);

/// Makes changes, which are in the order of the document and do not overlap.
pub fn apply(body: &[u8], changes: &[Change<'_>]) -> Vec<u8> {
    let (gone, come) =
        changes.iter().fold((0, 0), |(gone, come), (range, json)| (gone + range.len(), come + json.len()));
    let mut edited = Vec::with_capacity(body.len().saturating_sub(gone) + come);
    let mut copied = 0;
    for (range, json) in changes {
        edited.extend_from_slice(body.get(copied..range.start).unwrap_or_default());
        edited.extend_from_slice(json.as_bytes());
        copied = range.end;
    }
    edited.extend_from_slice(body.get(copied..).unwrap_or_default());
    edited
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tool_output::{Amount, Compress};
    use crate::wire::json::{Document, Limits};

    const SETTINGS: Shortening = Shortening {
        compress: Some(Compress {
            above: Amount { lines: 20, bytes: 4_000 },
            head: Amount { lines: 3, bytes: 600 },
            tail: Amount { lines: 5, bytes: 900 },
            diagnostics: 4,
        }),
        repeats: Repeats::Refer,
    };

    /// Where everything is.
    struct Place(&'static str);

    impl Places for Place {
        fn place(&self, _: EvidenceId) -> String {
            self.0.to_owned()
        }

        fn root(&self) -> &str {
            self.0
        }

        fn is_named_in(&self, _: &str) -> bool {
            false
        }
    }

    /// The edited texts of a list of results, each called by its number.
    fn edited(texts: &[&str], settings: &Shortening, may_refer: bool) -> Vec<String> {
        let body = serde_json::to_string(texts).unwrap();
        let document = Document::parse(body.as_bytes(), Limits::default()).unwrap();
        let ids: Vec<String> = (0..texts.len()).map(|number| number.to_string()).collect();
        let results: Vec<ResultText<'_>> = document
            .root()
            .items()
            .unwrap()
            .zip(&ids)
            .map(|(value, id)| ResultText {
                value,
                is_error: false,
                is_cut: true,
                is_referred: true,
                reads_evidence: false,
                called: Some(("Bash", id)),
            })
            .collect();
        let known = &KnownCuts::default();
        let plan = |place| {
            let place = Place(place);
            Plan { settings, may_refer, places: Some(&place), known }.edits(&results)
        };
        let elsewhere = plan("ELSEWHERE");
        let edits = plan("PLACE");
        assert!(!format!("{edits:?}").contains("ELSEWHERE"), "what is remembered changes nothing");
        assert_eq!(plan("ELSEWHERE"), elsewhere);
        let changes: Vec<_> = edits.iter().filter_map(PlannedEdit::change).collect();
        serde_json::from_slice(&apply(body.as_bytes(), &changes)).unwrap()
    }

    #[test]
    fn a_repeat_names_the_first_that_stands_whole() {
        let text = "a text with \"quotes\"\n".repeat(20);
        let short = "short";
        let after = edited(&[&text, short, &text, short, &text], &SETTINGS, true);
        let reference = "[postern] Same as the result of Bash (0) above.";
        assert_eq!(after, [&text, short, reference, short, reference]);
    }

    #[test]
    fn what_the_provider_may_drop_and_what_is_kept_is_not_referred_to() {
        let text = "a text\n".repeat(60);
        let keeps = Shortening { repeats: Repeats::Keep, compress: None };
        let refers = Shortening { compress: None, ..SETTINGS };
        assert_eq!(edited(&[&text, &text], &keeps, true), [&*text, &*text]);
        assert_eq!(edited(&[&text, &text], &refers, false), [&*text, &*text]);
    }

    #[test]
    fn a_long_result_is_cut_every_time_and_never_referred_to() {
        let text = "a long line of a result\n".repeat(400);
        let after = edited(&[&text, &text], &SETTINGS, true);
        assert_eq!(after[0], after[1]);
        assert!(after[0].contains("392 of 400 lines (9 KB) left out. All of it: PLACE"), "{}", after[0]);
    }

    #[test]
    fn what_the_agent_has_cut_is_left_since_it_is_not_all_of_the_text() {
        let lines = "a long line of a result\n".repeat(200);
        let text = format!("{lines}\n... [19977 characters truncated] ...\n\n{lines}");
        assert_eq!(edited(&[&text], &SETTINGS, true), [&*text]);
    }

    #[test]
    fn a_name_or_id_that_is_no_plain_word_names_nothing() {
        assert_eq!(called("Bash", "toolu_01").as_deref(), Some("Bash (toolu_01)"));
        assert_eq!(called("Bash", ""), None);
        assert_eq!(called("Ba sh", "1"), None);
        assert_eq!(called("Bash", &"1".repeat(300)), None);
    }
}
