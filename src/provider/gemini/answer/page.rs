//! Chunks that wait for a verdict on a call, in their order, with what is to be changed in each.

use std::collections::{BTreeMap, VecDeque};

use crate::provider::answer::Received;

/// Where a part stands in its chunk: the position of its candidate, and its own among that candidate's parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct PartIndex {
    pub(super) candidate: usize,
    pub(super) part: usize,
}

/// Where a part stands in the answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct PartPlace {
    /// Which chunk, counted from the first.
    pub(super) page: u64,
    pub(super) place: PartIndex,
}

/// How a part is edited.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum PartChange {
    /// This text stands in its place.
    Text(String),
    /// It goes: a text stands for it elsewhere.
    Gone,
    /// It gets this signature, as JSON.
    Signature(String),
}

/// What is to be changed in one chunk.
#[derive(Debug, Default)]
pub(super) struct Changes {
    pub(super) parts: BTreeMap<PartIndex, PartChange>,
    /// By position of the candidate and name of the field: fields that go, with a text that is added to the parts.
    pub(super) metadata: BTreeMap<(usize, &'static str), Option<String>>,
}

impl Changes {
    pub(super) fn is_empty(&self) -> bool {
        self.parts.is_empty() && self.metadata.is_empty()
    }
}

/// The beginning of a call that the client is to execute.
#[derive(Debug)]
pub(super) struct Begun {
    pub(super) place: PartIndex,
    /// The index of its candidate.
    pub(super) candidate: u64,
    /// As JSON.
    pub(super) signature: Option<String>,
}

/// One chunk.
#[derive(Debug)]
pub(super) struct AnswerPage {
    /// None for an answer that came whole.
    pub(super) received: Option<Received>,
    pub(super) changes: Changes,
    pub(super) calls: Vec<Begun>,
}

/// The chunks that have not gone on.
#[derive(Debug, Default)]
pub(super) struct Pages {
    queue: VecDeque<AnswerPage>,
    /// How many have gone on.
    gone: u64,
    /// How many bytes are kept.
    bytes: usize,
}

impl Pages {
    /// Adds a chunk, and answers its number.
    pub(super) fn add(&mut self, received: Option<Received>) -> u64 {
        self.bytes += received.as_ref().map_or(0, Received::kept_bytes);
        self.queue.push_back(AnswerPage { received, changes: Changes::default(), calls: Vec::new() });
        self.gone + self.queue.len() as u64 - 1
    }

    /// The next chunk that goes on.
    pub(super) fn next(&mut self) -> Option<AnswerPage> {
        let page = self.queue.pop_front()?;
        self.gone += 1;
        self.bytes -= page.received.as_ref().map_or(0, Received::kept_bytes);
        Some(page)
    }

    pub(super) fn change(&mut self, at: PartPlace, change: PartChange) {
        if let Some(page) = self.page(at.page) {
            page.changes.parts.insert(at.place, change);
        }
    }

    /// A chunk that has not gone on.
    pub(super) fn page(&mut self, number: u64) -> Option<&mut AnswerPage> {
        let position = usize::try_from(number.checked_sub(self.gone)?).ok()?;
        self.queue.get_mut(position)
    }

    /// How many bytes are kept.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }
}
