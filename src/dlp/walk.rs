//! Searches a text and all that its codings hold, breadth first.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::ops::Range;
use std::rc::Rc;

use super::budget::{BoundReached, Budget};
use super::decode::{Coding, DECODERS, Origin, Parts, Source};
use super::known::KnownValues;
use super::runs::tokens;
use super::scan::{Detectors, LayerMatch, Turned};
use super::{Confidence, Match, Sight};
use crate::digest::sha256_of;

/// How many codings are undone inside of each other.
const LEVELS: usize = 3;

/// A text that came out of codings.
struct Layer<'t> {
    bytes: Cow<'t, [u8]>,
    /// The codings, the outermost first.
    codings: Vec<Coding>,
    /// None of the text that is searched.
    place: Option<Rc<Place>>,
}

/// Where a layer stands in the one that it came from, and where that stands.
struct Place {
    origin: Origin,
    outer: Option<Rc<Self>>,
}

/// The range in the text that is searched.
fn outermost(mut place: Option<&Rc<Place>>, range: &Range<usize>) -> Range<usize> {
    let mut range = range.clone();
    while let Some(inner) = place {
        range = match &inner.origin {
            Origin::Run(run) => run.clone(),
            Origin::Steps(steps) => steps.range(&range),
        };
        place = inner.outer.as_ref();
    }
    range
}

impl Detectors {
    /// Searches a text, and adds what is found.
    ///
    /// # Errors
    /// A bound was reached; what was found before is there.
    pub fn scan<'d>(
        &'d self,
        text: &[u8],
        sight: Sight,
        budget: &mut Budget,
        found: &mut Vec<Match<'d>>,
    ) -> Result<(), BoundReached> {
        self.scan_with(None, (text, sight), budget, found)
    }

    /// The same, with values that are known.
    pub(super) fn scan_with<'d>(
        &'d self,
        known: Option<&'d KnownValues>,
        (text, sight): (&[u8], Sight),
        budget: &mut Budget,
        found: &mut Vec<Match<'d>>,
    ) -> Result<(), BoundReached> {
        let first = found.len();
        let mut walk = Walk { detectors: self, known, found, first };
        let mut layers =
            VecDeque::from([Layer { bytes: Cow::Borrowed(text), codings: Vec::new(), place: None }]);
        while let Some(layer) = layers.pop_front() {
            let runs = tokens(&layer.bytes);
            let turned = walk.search(&layer, &runs, sight == Sight::Sealed, budget)?;
            if sight == Sight::Sealed {
                break;
            }
            for turned in turned {
                walk.mirrored(&layer, &turned, budget)?;
            }
            if layer.codings.len() < LEVELS {
                divide(&layer, &runs, budget, &mut layers)?;
            }
        }
        Ok(())
    }
}

/// Decodes the coded parts of a layer.
fn divide<'t>(
    layer: &Layer<'_>,
    runs: &[Range<usize>],
    budget: &mut Budget,
    layers: &mut VecDeque<Layer<'t>>,
) -> Result<(), BoundReached> {
    let source = Source { text: &layer.bytes, runs };
    let mut parts = Parts::of(budget);
    for decoder in DECODERS {
        decoder(&source, &mut parts)?;
    }
    for part in parts.into_parts() {
        let mut codings = layer.codings.clone();
        codings.push(part.coding);
        let place = Some(Rc::new(Place { origin: part.origin, outer: layer.place.clone() }));
        layers.push_back(Layer { bytes: part.bytes.into(), codings, place });
    }
    Ok(())
}

struct Walk<'d, 'f> {
    detectors: &'d Detectors,
    known: Option<&'d KnownValues>,
    found: &'f mut Vec<Match<'d>>,
    /// The first finding of this text.
    first: usize,
}

impl<'d> Walk<'d, '_> {
    /// Searches a layer, and returns its parts that are to be turned round.
    fn search(
        &mut self,
        layer: &Layer<'_>,
        runs: &[Range<usize>],
        rigid_alone: bool,
        budget: &mut Budget,
    ) -> Result<Vec<Turned>, BoundReached> {
        let mut secrets = Vec::new();
        let turned = self.detectors.layer(&layer.bytes, runs, rigid_alone, &mut secrets);
        if let Some(known) = self.known {
            known.layer(&layer.bytes, &mut secrets);
        }
        for secret in &secrets {
            let range = outermost(layer.place.as_ref(), &secret.judged.range);
            self.add((secret, range), &layer.bytes, &layer.codings, budget)?;
        }
        Ok(turned)
    }

    /// Searches a part of a layer turned round, for rigid secrets.
    fn mirrored(
        &mut self,
        layer: &Layer<'_>,
        part: &Turned,
        budget: &mut Budget,
    ) -> Result<(), BoundReached> {
        let Turned { range: part, mirror } = part;
        budget.decode(part.len())?;
        let turned = (mirror.undo)(layer.bytes.get(part.clone()).unwrap_or_default());
        let mut codings = layer.codings.clone();
        codings.push(mirror.coding);
        let mut secrets = Vec::new();
        self.detectors.layer(&turned, &tokens(&turned), true, &mut secrets);
        for secret in &secrets {
            let Range { start, end } = secret.judged.range;
            let range = if mirror.is_reversed {
                part.end - end..part.end - start
            } else {
                part.start + start..part.start + end
            };
            let range = outermost(layer.place.as_ref(), &range);
            self.add((secret, range), &turned, &codings, budget)?;
        }
        Ok(())
    }

    /// Adds a finding, unless the same secret was found there under fewer codings, or a surer one covers it.
    fn add(
        &mut self,
        (secret, range): (&LayerMatch<'d>, Range<usize>),
        bytes: &[u8],
        codings: &[Coding],
        budget: &mut Budget,
    ) -> Result<(), BoundReached> {
        let detector = secret.detector;
        let confidence = if secret.judged.is_low { Confidence::Low } else { detector.confidence };
        let overlaps = |other: &Match<'_>| other.range.start < range.end && range.start < other.range.end;
        let known = self.found.get(self.first..).unwrap_or_default();
        if known
            .iter()
            .any(|other| overlaps(other) && (other.detector == detector || other.confidence > confidence))
        {
            return Ok(());
        }
        let first = self.first;
        let mut number = 0;
        self.found.retain(|other| {
            number += 1;
            number <= first || !(overlaps(other) && other.confidence < confidence)
        });
        budget.find()?;
        let value = bytes.get(secret.judged.range.clone()).unwrap_or_default();
        self.found.push(Match {
            detector,
            confidence,
            checksum: secret.judged.checksum,
            range,
            decoded: codings.to_vec(),
            sha256: sha256_of(&[value]),
        });
        Ok(())
    }
}
