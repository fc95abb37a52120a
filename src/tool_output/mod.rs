//! SHORTENS results of tools in requests to models: which are cut, what is left of them, and that it is the same on every
//! turn.
//!
//! An edit depends on the result's text, its call's name, whether it is marked as an error, and the settings: never on its
//! place, its age or a clock. So what was sent once is sent again in the same form, and the provider's cache of the
//! conversation's beginning stays good.

mod answered;
pub mod chains;
pub mod conversations;
pub mod cut;
pub mod cut_by_agent;
pub mod diagnostics;
pub mod evidence_id;
pub mod heard;
pub mod known;
pub mod plan;
pub mod request;
mod units;

use std::fmt;

use serde::{Deserialize, Serialize};

/// What is done with results of tools.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shortening {
    /// None: no result is cut.
    pub compress: Option<Compress>,
    pub repeats: Repeats,
}

/// When a result is cut, and what is left of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Compress {
    /// A result with more of either is cut.
    pub above: Amount,
    pub head: Amount,
    pub tail: Amount,
    /// The most lines that look like diagnostics.
    pub diagnostics: usize,
}

/// So many lines, or so many bytes, whichever comes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Amount {
    pub lines: usize,
    pub bytes: usize,
}

/// How many bytes a token has, where nobody counts them by a model's own rules.
pub const TOKEN: usize = 4;

/// What becomes of a result that stands in the same request already.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "operator", derive(schemars::JsonSchema))]
pub enum Repeats {
    /// It stays.
    #[default]
    Keep,
    /// It becomes a line that names the earlier one, of tools that read files, too.
    Refer,
}

/// What became of a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Shortened {
    Compressed,
    Repeated,
    /// It is long and stays as it is.
    Left,
}

impl Shortened {
    /// The name of the transform in events, and of the action in metrics behind `tool-output-`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Compressed => "tool-output-compressed",
            Self::Repeated => "tool-output-repeated",
            Self::Left => "tool-output-left",
        }
    }
}

impl Amount {
    /// Whether a text has more of either. No more of it is read than that takes.
    pub fn is_exceeded_by(self, text: &str) -> bool {
        text.len() > self.bytes || units::has_more_lines(text, self.lines)
    }
}

impl Compress {
    /// The same for a result that is marked as an error: twice the end, and twice the diagnostics.
    #[must_use]
    pub fn of_error(self) -> Self {
        let Amount { lines, bytes } = self.tail;
        Self {
            tail: Amount { lines: 2 * lines, bytes: 2 * bytes },
            diagnostics: 2 * self.diagnostics,
            ..self
        }
    }
}

impl Repeats {
    /// The word, as users write it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Keep => "Keep",
            Self::Refer => "Refer",
        }
    }
}

impl fmt::Display for Amount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} lines or {} tokens", self.lines, self.bytes / TOKEN)
    }
}
