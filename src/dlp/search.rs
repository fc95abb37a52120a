//! What is searched for in a text: the detectors of a policy, and values that are known.

use std::sync::Arc;

use super::known::KnownValues;
use super::{BoundReached, Budget, Detector, Detectors, Match, Sight};
use crate::secret::LEAST;

/// How many bytes a character of a known value may have where it is written as an escape: `&#x000000002d;` has 14.
const LONGEST_SPELLING: usize = 14;
/// So many bytes of a text at the most are looked at again. A longer value is found where it is written shorter.
const MOST_WRITTEN: usize = 64 << 10;

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
        self.detectors.scan_with(self.known.as_deref(), (text, sight), budget, found)
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
        self.known
            .as_ref()
            .map_or(0, |known| known.longest().saturating_mul(LONGEST_SPELLING).min(MOST_WRITTEN))
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
