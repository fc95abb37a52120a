//! Searches one layer of a text: anchors in one pass, then the shape at each.

use aho_corasick::{AhoCorasick, AhoCorasickBuilder, AhoCorasickKind, MatchKind};

use super::catalogue;
use super::decode::{MIRRORS, Mirror};
use super::detector::Detector;
use super::validator::Judged;

/// Anchors that are shorter stand in too many texts by chance, turned round or in the other case.
const LEAST_MIRRORED: usize = 4;

/// The detectors of a policy, ready to be searched for.
#[derive(Debug)]
pub struct Detectors {
    all: Vec<Detector>,
    anchors: AhoCorasick,
    /// Whose each anchor is, and how it is turned round.
    owners: Vec<(usize, Option<usize>)>,
}

/// Ways in which a text is turned round.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Mirrors([bool; MIRRORS.len()]);

impl Mirrors {
    pub(super) fn iter(self) -> impl Iterator<Item = &'static Mirror> {
        MIRRORS.iter().zip(self.0).filter_map(|(mirror, is_in)| is_in.then_some(mirror))
    }
}

/// A secret in one layer.
pub(super) struct LayerMatch<'d> {
    pub(super) detector: &'d Detector,
    pub(super) judged: Judged,
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

    fn of(all: Vec<Detector>) -> Result<Self, String> {
        let (mut texts, mut owners) = (Vec::new(), Vec::new());
        for (number, detector) in all.iter().enumerate() {
            for anchor in detector.anchors.iter().map(String::as_bytes) {
                texts.push(anchor.to_vec());
                owners.push((number, None));
                if !detector.is_rigid || anchor.len() < LEAST_MIRRORED {
                    continue;
                }
                for (way, mirror) in MIRRORS.iter().enumerate() {
                    let turned = (mirror.undo)(anchor);
                    if turned != anchor {
                        texts.push(turned);
                        owners.push((number, Some(way)));
                    }
                }
            }
        }
        let mut builder = AhoCorasickBuilder::new();
        builder.match_kind(MatchKind::Standard).kind(Some(AhoCorasickKind::DFA));
        let anchors = builder.build(texts).map_err(|error| error.to_string())?;
        Ok(Self { all, anchors, owners })
    }

    /// The detectors, in the order of their file.
    pub fn iter(&self) -> impl Iterator<Item = &Detector> {
        self.all.iter()
    }

    /// Adds the secrets of a layer. Returns the ways in which an anchor stands in it turned round.
    pub(super) fn layer<'d>(
        &'d self,
        text: &[u8],
        rigid_alone: bool,
        secrets: &mut Vec<LayerMatch<'d>>,
    ) -> Mirrors {
        let mut mirrors = Mirrors::default();
        for anchor in self.anchors.find_overlapping_iter(text) {
            let Some((number, way)) = self.owners.get(anchor.pattern().as_usize()) else { continue };
            let Some(detector) = self.all.get(*number).filter(|detector| detector.is_rigid || !rigid_alone)
            else {
                continue;
            };
            if let Some(way) = way {
                mirrors.0[*way] = true;
            } else if let Some(judged) = detector.at(text, anchor.range()) {
                secrets.push(LayerMatch { detector, judged });
            }
        }
        mirrors
    }
}
