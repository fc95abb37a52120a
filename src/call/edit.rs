//! Edits of files as calls ask for them, and what is known of the files (plain data).

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{Judgement, Kind, Start, Tool};

/// The most blocks of one file that are looked for.
pub const MOST_BLOCKS: usize = 256;

/// What a call would do to one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileEdit {
    /// As the call names it; a relative one begins in the directory that the call names, where it does.
    pub path: String,
    pub change: FileChange,
}

/// How a file is changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FileChange {
    /// Whatever stands in it is replaced.
    Overwrite,
    /// Some of it is replaced, one block after the other.
    Replace(Vec<EditBlock>),
}

/// One replacement in a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub enum EditBlock {
    /// A text, wherever it stands.
    Text { search: String, replace: String, expected: Occurrences },
    /// Lines of a patch, sought below those of the block before; white space at their ends does not count.
    Lines {
        /// Lines that stand above, in this order, anywhere.
        below: Vec<String>,
        old: Vec<String>,
    },
}

/// How often a text has to stand in the file for its tool to replace it as it was meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub enum Occurrences {
    Once,
    AtLeastOnce,
    Exactly(u64),
}

impl Occurrences {
    /// Whether a text that stands so often is replaced as it was meant.
    pub fn fits(self, count: u64) -> bool {
        match self {
            Self::Once => count == 1,
            Self::AtLeastOnce => count > 0,
            Self::Exactly(times) => count == times,
        }
    }
}

impl EditBlock {
    /// How often it has to stand in the file.
    pub fn expected(&self) -> Occurrences {
        match self {
            Self::Text { expected, .. } => *expected,
            Self::Lines { .. } => Occurrences::AtLeastOnce,
        }
    }
}

/// What is known of a file that a call edits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub enum FileState {
    /// It is a text, in UTF-8 and without a zero byte.
    Text {
        bytes: u64,
        /// 64 hex digits.
        sha256: String,
        /// How often each block stands in it, up to and including the first that does not fit.
        counts: Vec<u64>,
    },
    /// There is no such file.
    Missing,
    /// It is no regular file, no text, larger than what is read, or unreadable.
    NotText,
    /// It is not in the workspace.
    Outside,
}

/// What policies say of edits, by a workspace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EditTerms {
    /// About a whole file that is written onto an existing text.
    pub overwrite: Judgement,
    /// About an edit whose search text does not stand in the file as often as its tool needs.
    pub mismatch: Judgement,
    /// Where relative paths begin: `shell.directory`. None: at the workspace's root.
    pub directory: Option<Arc<str>>,
}

/// What phase one says of a tool where edits are judged: a call that may write waits for its input, or is recorded by it.
pub fn start(terms: Option<&EditTerms>, tool: &Tool<'_>, start: Start) -> Start {
    let Some(terms) = terms.filter(|_| tool.kinds.contains(&Kind::Write)) else { return start };
    let denies = terms.overwrite.denies() || terms.mismatch.denies();
    match start {
        Start::Allow(_) | Start::Observe if denies => Start::NeedsInput,
        Start::Allow(_) => Start::Observe,
        start @ (Start::Observe | Start::Deny(_) | Start::NeedsInput) => start,
    }
}

/// What became of the question whether an edit fits, in the words of events. Of the files of one call, the last of these
/// counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum EditCheck {
    /// The file was read, and the edit fits it.
    Fits,
    /// Nothing was judged: there is no such text in the workspace.
    NoText,
    /// Nothing was judged: an earlier call of the same answer changes the file.
    Pending,
    /// Nothing was judged: the workspace was not there, was late, or answered something else.
    Unavailable,
    /// The file was read, and the edit does not fit it.
    Misses,
}

impl EditCheck {
    /// The word in events.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Fits => "Fits",
            Self::Misses => "Misses",
            Self::NoText => "NoText",
            Self::Pending => "Pending",
            Self::Unavailable => "Unavailable",
        }
    }
}
