//! Searches a text and all that its codings hold, breadth first.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::ops::Range;
use std::rc::Rc;

use super::budget::{BoundReached, Budget};
use super::decode::{Coding, DECODERS, Origin, Part, Parts, Source};
use super::known::KnownValues;
use super::scan::{Detectors, LayerMatch, Room, Turned};
use super::{Confidence, Match, Sight};
use crate::digest::sha256_of;

/// How many codings are undone inside of each other.
const LEVELS: usize = 3;

/// A text that came out of codings.
struct Layer<'t> {
    bytes: Cow<'t, [u8]>,
    /// Tells the layers of one text apart.
    number: usize,
    /// How many codings.
    level: usize,
    /// None of the text that is searched.
    place: Option<Rc<Place>>,
}

/// Where a layer stands in the one that it came from, and where that stands.
struct Place {
    coding: Coding,
    origin: Origin,
    outer: Option<Rc<Self>>,
}

/// The codings of a layer, the outermost first, and then another.
fn codings(mut place: Option<&Rc<Place>>, last: Option<Coding>) -> Vec<Coding> {
    let mut codings = Vec::from_iter(last);
    while let Some(inner) = place {
        codings.push(inner.coding);
        place = inner.outer.as_ref();
    }
    codings.reverse();
    codings
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
        let mut walk = Walk { detectors: self, known, found, first, stands: Vec::new() };
        let (mut room, mut turned_room) = (Room::default(), Room::default());
        let (mut layers, mut count) = (VecDeque::new(), 0);
        let mut next = Some(Layer { bytes: Cow::Borrowed(text), number: 0, level: 0, place: None });
        while let Some(layer) = next {
            let turned = walk.search(&layer, sight == Sight::Sealed, &mut room, budget)?;
            if sight == Sight::Sealed {
                break;
            }
            for turned in turned {
                walk.mirrored(&layer, &turned, &mut turned_room, budget)?;
            }
            if layer.level < LEVELS {
                divide(&layer, &room.runs, budget, (&mut layers, &mut count))?;
            }
            next = layers.pop_front();
        }
        Ok(())
    }
}

/// Decodes the coded parts of a layer.
fn divide<'t>(
    layer: &Layer<'_>,
    runs: &[Range<usize>],
    budget: &mut Budget,
    (layers, count): (&mut VecDeque<Layer<'t>>, &mut usize),
) -> Result<(), BoundReached> {
    let source = Source { text: &layer.bytes, runs };
    let mut parts = Parts::of(budget);
    for decoder in DECODERS {
        decoder(&source, &mut parts)?;
    }
    layers.extend(parts.into_parts().into_iter().map(|Part { coding, bytes, origin }| {
        let place = Some(Rc::new(Place { coding, origin, outer: layer.place.clone() }));
        *count += 1;
        Layer { bytes: bytes.into(), number: *count, level: layer.level + 1, place }
    }));
    Ok(())
}

struct Walk<'d, 'f> {
    detectors: &'d Detectors,
    known: Option<&'d KnownValues>,
    found: &'f mut Vec<Match<'d>>,
    /// The first finding of this text.
    first: usize,
    /// Where each of its findings stands.
    stands: Vec<Stand>,
}

/// Where a finding stands in the layer that it was found in.
struct Stand {
    layer: usize,
    range: Range<usize>,
}

impl Stand {
    /// Whether two findings share bytes. Of a coded run all that is in it stands at the same place of the text, so that places
    /// are compared within one layer alone.
    fn overlaps(&self, other: &Self) -> bool {
        self.layer == other.layer && self.range.start < other.range.end && other.range.start < self.range.end
    }
}

impl<'d> Walk<'d, '_> {
    /// Searches a layer, and returns its parts that are to be turned round.
    fn search(
        &mut self,
        layer: &Layer<'_>,
        rigid_alone: bool,
        room: &mut Room<'d>,
        budget: &mut Budget,
    ) -> Result<Vec<Turned>, BoundReached> {
        let turned = self.detectors.layer(&layer.bytes, rigid_alone, room);
        if let Some(known) = self.known {
            known.layer(&layer.bytes, &mut room.secrets);
        }
        for secret in &room.secrets {
            self.add((secret, &secret.judged.range), &layer.bytes, (layer, None), budget)?;
        }
        Ok(turned)
    }

    /// Searches a part of a layer turned round, for rigid secrets.
    fn mirrored(
        &mut self,
        layer: &Layer<'_>,
        part: &Turned,
        room: &mut Room<'d>,
        budget: &mut Budget,
    ) -> Result<(), BoundReached> {
        let Turned { range: part, mirror } = part;
        budget.decode(part.len())?;
        let turned = (mirror.undo)(layer.bytes.get(part.clone()).unwrap_or_default());
        self.detectors.layer(&turned, true, room);
        // In random data each way of turning it would be wrong as often as the data itself.
        for secret in room.secrets.iter().filter(|secret| secret.judged.at_most != Confidence::Medium) {
            let Range { start, end } = secret.judged.range;
            let range = if mirror.is_reversed {
                part.end - end..part.end - start
            } else {
                part.start + start..part.start + end
            };
            self.add((secret, &range), &turned, (layer, Some(mirror.coding)), budget)?;
        }
        Ok(())
    }

    /// Adds a finding at its range in the layer, unless the same value was found there under fewer codings, or a surer one
    /// covers it.
    fn add(
        &mut self,
        (secret, range): (&LayerMatch<'d>, &Range<usize>),
        bytes: &[u8],
        (layer, mirror): (&Layer<'_>, Option<Coding>),
        budget: &mut Budget,
    ) -> Result<(), BoundReached> {
        let detector = secret.detector;
        let confidence = detector.confidence.min(secret.judged.at_most);
        let sha256 = sha256_of(&[bytes.get(secret.judged.range.clone()).unwrap_or_default()]);
        let stand = Stand { layer: layer.number, range: range.clone() };
        let range = outermost(layer.place.as_ref(), range);
        let is_same = |other: &Match<'_>| {
            other.detector == detector
                && other.sha256 == sha256
                && other.range.start < range.end
                && range.start < other.range.end
        };
        let known = self.found.get(self.first..).unwrap_or_default();
        if known.iter().zip(&self.stands).any(|(other, stands)| {
            is_same(other) || (other.confidence > confidence && stands.overlaps(&stand))
        }) {
            return Ok(());
        }
        self.forget_less_sure(&stand, confidence);
        budget.find()?;
        let decoded = codings(layer.place.as_ref(), mirror);
        let checksum = secret.judged.checksum;
        self.found.push(Match { detector, confidence, checksum, range, decoded, sha256 });
        self.stands.push(stand);
        Ok(())
    }

    /// Forgets the findings that a surer one covers.
    fn forget_less_sure(&mut self, stand: &Stand, confidence: Confidence) {
        let mut at = self.first;
        while let (Some(found), Some(stands)) = (self.found.get(at), self.stands.get(at - self.first)) {
            if found.confidence < confidence && stands.overlaps(stand) {
                self.found.remove(at);
                self.stands.remove(at - self.first);
            } else {
                at += 1;
            }
        }
    }
}
