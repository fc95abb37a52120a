//! Searches one layer of a text: anchors and values in its runs, a few anchors everywhere, then the shape at each.

use std::ops::{Range, RangeInclusive};
use std::sync::{Arc, LazyLock};

use super::anchors::Anchors;
use super::catalogue;
use super::decode::{MIRRORS, Mirror};
use super::detector::{Detector, Place};
use super::runs::{LEAST, tokens};
use super::validator::{Judged, Validator};

/// The shortest secret of a pattern: its literal.
const SHORTEST_PATTERN: usize = 3;
/// How much around an anchor is turned round at most.
const TURNED: usize = 8 << 10;

/// The detectors of a policy, ready to be searched for.
#[derive(Debug)]
pub struct Detectors {
    all: Vec<Detector>,
    /// The anchors that stand in runs.
    tokens: Anchors,
    /// The anchors that stand anywhere.
    texts: Anchors,
    /// The literals of patterns; none where there are no patterns.
    patterns: Option<Anchors>,
    /// The detectors that look at each value, and how long it has to be.
    values: Vec<(usize, RangeInclusive<usize>)>,
}

/// A secret in one layer.
pub(super) struct LayerMatch<'d> {
    pub(super) detector: &'d Detector,
    pub(super) judged: Judged,
}

/// What is found in one layer, and what the search of it needs.
#[derive(Default)]
pub(super) struct Room<'d> {
    /// Its runs.
    pub(super) runs: Vec<Range<usize>>,
    next: Vec<usize>,
    pub(super) secrets: Vec<LayerMatch<'d>>,
}

/// A part of a layer in which an anchor stands turned round.
pub(super) struct Turned {
    pub(super) range: Range<usize>,
    pub(super) mirror: &'static Mirror,
}

/// What is known of a layer while it is searched.
struct Layer<'t, 'd, 'o> {
    text: &'t [u8],
    rigid_alone: bool,
    /// Where each detector may find its next secret.
    next: &'o mut Vec<usize>,
    secrets: &'o mut Vec<LayerMatch<'d>>,
    turned: Vec<Turned>,
}

impl Detectors {
    /// The detectors that are built in.
    ///
    /// # Errors
    /// Their file is not as it should be; a test finds that.
    pub fn built_in() -> Result<Self, String> {
        let rows = catalogue::rows()?;
        Self::of(rows.into_iter().map(catalogue::detector).collect::<Result<_, _>>()?)
    }

    /// The same, made once.
    #[expect(clippy::expect_used, reason = "a test reads the file")]
    pub fn shared() -> &'static Arc<Self> {
        static SHARED: LazyLock<Arc<Detectors>> =
            LazyLock::new(|| Arc::new(Detectors::built_in().expect("the file of detectors is whole")));
        &SHARED
    }

    fn of(all: Vec<Detector>) -> Result<Self, String> {
        let values = all.iter().enumerate().filter(|(_, detector)| detector.form.place == Place::Value);
        let lengths =
            |detector: &Detector| detector.form.validator.map_or(0..=usize::MAX, Validator::lengths);
        let values = values.map(|(number, detector)| (number, lengths(detector))).collect();
        let tokens = Anchors::of(&all, Place::Token)?;
        let texts = Anchors::of(&all, Place::Text)?;
        let has_patterns = all.iter().any(|detector| detector.form.place == Place::Anywhere);
        let patterns = has_patterns.then(|| Anchors::of(&all, Place::Anywhere)).transpose()?;
        Ok(Self { all, tokens, texts, patterns, values })
    }

    /// The same with the detectors of policies.
    ///
    /// # Errors
    /// They have too many literals.
    pub fn with(patterns: Vec<Detector>) -> Result<Self, String> {
        let rows = catalogue::rows()?;
        let mut all = rows.into_iter().map(catalogue::detector).collect::<Result<Vec<_>, _>>()?;
        all.extend(patterns);
        Self::of(all)
    }

    /// The length of the shortest text in which something may be found.
    pub fn shortest(&self) -> usize {
        if self.patterns.is_some() { SHORTEST_PATTERN } else { LEAST }
    }

    /// The detectors, in the order of their file.
    pub fn iter(&self) -> impl Iterator<Item = &Detector> {
        self.all.iter()
    }

    /// Finds the secrets of a layer, with room that is used for each layer anew. Returns the parts in which an anchor stands
    /// turned round.
    pub(super) fn layer<'d>(&'d self, text: &[u8], rigid_alone: bool, room: &mut Room<'d>) -> Vec<Turned> {
        let Room { runs, next, secrets } = room;
        tokens(text, runs);
        next.clear();
        secrets.clear();
        let mut layer = Layer { text, rigid_alone, next, secrets, turned: Vec::new() };
        for anchor in self.texts.automaton.find_iter(text) {
            let owner = self.texts.owners.get(anchor.pattern().as_usize());
            self.anchored(&mut layer, owner, anchor.range(), 0..text.len());
        }
        if let Some(patterns) = self.patterns.as_ref().filter(|_| !rigid_alone) {
            self.anywhere(&mut layer, patterns);
        }
        for run in runs.iter() {
            let Some(bytes) = text.get(run.clone()) else { continue };
            self.tokens.in_run(bytes, |owner, range| {
                let range = run.start + range.start..run.start + range.end;
                self.anchored(&mut layer, owner, range, run.clone());
            });
            if !rigid_alone || self.values.iter().any(|(number, _)| self.all[*number].is_rigid) {
                for value in values(text, run.clone()) {
                    let fitting = self.values.iter().filter(|(_, lengths)| lengths.contains(&value.len()));
                    fitting.for_each(|(number, _)| self.judge(&mut layer, *number, value.clone()));
                }
            }
        }
        layer.turned
    }

    /// Searches for the patterns of which a literal stands in the layer.
    fn anywhere<'d>(&'d self, layer: &mut Layer<'_, 'd, '_>, patterns: &Anchors) {
        let mut near = vec![false; self.all.len()];
        for anchor in patterns.automaton.find_overlapping_iter(layer.text) {
            if let Some((number, _)) = patterns.owners.get(anchor.pattern().as_usize()) {
                near[*number] = true;
            }
        }
        for (detector, _) in self.all.iter().zip(near).filter(|(_, is_near)| *is_near) {
            let found = detector.form.anywhere.iter().flat_map(|regex| regex.find_iter(layer.text));
            let found = found.map(|found| LayerMatch { detector, judged: Judged::found(found.range()) });
            layer.secrets.extend(found);
        }
    }

    /// An anchor was found, in a part of the text that may hold the secret.
    fn anchored<'d>(
        &'d self,
        layer: &mut Layer<'_, 'd, '_>,
        owner: Option<&(usize, Option<usize>)>,
        anchor: Range<usize>,
        part: Range<usize>,
    ) {
        match owner {
            Some((number, None)) => self.judge(layer, *number, anchor),
            Some((_, Some(way))) => {
                if let Some(mirror) = MIRRORS.get(*way) {
                    layer.turn(mirror, &anchor, part);
                }
            }
            None => {}
        }
    }

    fn judge<'d>(&'d self, layer: &mut Layer<'_, 'd, '_>, number: usize, anchor: Range<usize>) {
        // Most layers have nothing to judge, and need no room for it.
        if layer.next.is_empty() {
            layer.next.resize(self.all.len(), 0);
        }
        let (Some(detector), Some(next)) = (self.all.get(number), layer.next.get_mut(number)) else { return };
        if layer.rigid_alone && !detector.is_rigid || anchor.start < *next {
            return;
        }
        if let Some(judged) = detector.at(layer.text, anchor) {
            *next = judged.range.end;
            layer.secrets.push(LayerMatch { detector, judged });
        }
    }
}

impl Layer<'_, '_, '_> {
    /// Has the surroundings of an anchor turned round, together with those of the one before where they meet.
    fn turn(&mut self, mirror: &'static Mirror, anchor: &Range<usize>, part: Range<usize>) {
        let start = part.start.max(anchor.start.saturating_sub(TURNED));
        let end = part.end.min(anchor.end + TURNED);
        let last = self.turned.iter_mut().rev().find(|turned| turned.mirror.coding == mirror.coding);
        match last {
            Some(turned) if start <= turned.range.end && turned.range.start <= start => {
                turned.range.end = turned.range.end.max(end);
            }
            _ => self.turned.push(Turned { range: start..end, mirror }),
        }
    }
}

/// The values in a run: what a sign of assignment stands in front of, and what begins it.
fn values(text: &[u8], run: Range<usize>) -> impl Iterator<Item = Range<usize>> + '_ {
    let mut at = run.start;
    std::iter::from_fn(move || {
        while at < run.end {
            let rest = text.get(at..run.end)?;
            let length = memchr::memchr(b'=', rest).unwrap_or(rest.len());
            let value = at..at + length;
            at = value.end + 1;
            if !value.is_empty() {
                return Some(value);
            }
        }
        None
    })
}
