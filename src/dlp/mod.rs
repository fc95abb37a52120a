//! FINDS what must not leave: secrets in texts, in every coding that is undone. Pure.
//!
//! [`Detectors`] has the detectors of `detectors.yaml`. Tokens and coded parts stand in *runs* of few characters (`runs`), so
//! most of a text is never looked at closely. A detector's *anchors*, literals without which its shape is never tried, are
//! searched for in these (`scan`); its *validator* judges what has the shape. `walk` undoes codings, breadth first, and
//! searches what comes out.

mod anchors;
mod budget;
mod catalogue;
mod decode;
mod detector;
mod known;
mod pattern;
mod runs;
mod scan;
mod search;
mod stream;
mod validator;
mod walk;

#[cfg(test)]
mod examples;
#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;

use std::fmt;
use std::ops::Range;

use serde::{Deserialize, Serialize};

pub use budget::{BoundReached, Budget};
pub use decode::Coding;
pub use detector::Detector;
pub use known::{GATEWAY_CREDENTIAL, KnownValue, KnownValues, value_detector};
pub use pattern::detector as pattern;
pub use scan::Detectors;
pub use search::Search;
pub use stream::{StreamMatch, StreamScanner};

/// How sure a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Confidence {
    /// Published examples, and values that nobody has drawn: recorded, never acted on.
    Low,
    /// It may be a secret.
    Medium,
    /// It is one, or looks like nothing else.
    High,
}

impl Confidence {
    /// The word in events and policies.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Low => "Low",
            Self::Medium => "Medium",
            Self::High => "High",
        }
    }
}

/// How closely a text is looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sight {
    /// All detectors, and every coding is undone.
    Whole,
    /// Random data such as signatures: rigid detectors alone, and nothing is undone.
    Sealed,
}

/// A secret that was found. It has no text of it.
#[derive(Clone, PartialEq, Eq)]
pub struct Match<'d> {
    pub detector: &'d Detector,
    /// The detector's, or [`Confidence::Low`].
    pub confidence: Confidence,
    /// Whether the checksum that such a secret has is right; none of a secret without one.
    pub checksum: Option<bool>,
    /// Where it stands in the text; of a coded one, the outermost run of it.
    pub range: Range<usize>,
    /// The codings that were undone, the outermost first.
    pub decoded: Vec<Coding>,
    /// Of the value, after decoding.
    pub sha256: [u8; 32],
}

impl fmt::Debug for Match<'_> {
    /// Without the hash, which may be that of a value that somebody can guess.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} at {:?} {:?}", self.confidence.as_str(), self.detector.id, self.range, self.decoded)
    }
}
