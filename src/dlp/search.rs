//! What is searched for in a text: the detectors of a policy, and values that are known.

use std::sync::Arc;

use super::known::KnownValues;
use super::{BoundReached, Budget, Detector, Detectors, Match, Sight};
use crate::secret::LEAST;

/// The detectors and the known values of one moment. Clones share them.
#[derive(Debug, Clone)]
pub struct Search {
    detectors: Arc<Detectors>,
    known: Option<Arc<KnownValues>>,
}

impl Search {
    pub fn new(detectors: Arc<Detectors>, known: Arc<KnownValues>) -> Self {
        Self { detectors, known: Some(known).filter(|known| !known.is_empty()) }
    }

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
        if text.len() < self.detectors.shortest() && is_as_it_is(text) && !self.has_known(text) {
            return Ok(());
        }
        self.detectors.scan_with(self.known.as_deref(), (text, sight), budget, found)
    }

    fn has_known(&self, text: &[u8]) -> bool {
        self.known.as_ref().is_some_and(|known| known.is_in(text))
    }

    /// The detector of that name.
    pub fn detector(&self, id: &str) -> Option<&Detector> {
        let known = self.known.iter().flat_map(|known| known.detectors());
        self.detectors.iter().chain(known).find(|detector| detector.id == id)
    }

    /// The length of the shortest text in which something may be found.
    pub fn shortest(&self) -> usize {
        let shortest = self.detectors.shortest();
        if self.known.is_some() { shortest.min(LEAST) } else { shortest }
    }

    /// How much of a text that has gone on is looked at again with what follows it, at least.
    pub(super) fn longest_known(&self) -> usize {
        self.known.as_ref().map_or(0, |known| known.longest_written())
    }

    /// Tells apart the known values of one gateway, one after the other.
    pub(crate) fn generation(&self) -> u64 {
        self.known.as_ref().map_or(0, |known| known.generation)
    }
}

impl From<Arc<Detectors>> for Search {
    fn from(detectors: Arc<Detectors>) -> Self {
        Self { detectors, known: None }
    }
}

/// Whether a text that is too short for the detectors has nothing that is decoded.
fn is_as_it_is(text: &[u8]) -> bool {
    let is_packed = text.starts_with(b"x^");
    !is_packed && text.iter().all(|byte| matches!(byte, b' '..=b'~') && !matches!(byte, b'\\' | b'%'))
}
