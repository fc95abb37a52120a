//! Holds events that wait for a verdict, in order, and numbers those that go on.
//!
//! The numbers of a stream's events have no gap. So nothing overtakes an event that is kept, and where one item was
//! put in the place of another all later events get other numbers.

use std::borrow::Cow;
use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;

use super::item::{EventOutcome, OutputItem};
use super::say::Replacement;
use crate::provider::answer::{AnswerPart, Out, Received, StreamEvent};

/// Spans of a document and the text that replaces each. In order; no two overlap.
pub(super) type Cuts = Vec<(Range<usize>, String)>;

#[derive(Default)]
pub(super) struct EventQueue {
    kept: VecDeque<KeptEvent>,
    bytes: usize,
    /// By how much numbers are greater than they were.
    shift: i64,
    /// The number of the next event, where they have numbers.
    next: Option<i64>,
}

struct KeptEvent {
    received: Received,
    /// The item that it is about.
    index: Option<u64>,
    number: Option<(i64, Range<usize>)>,
    cuts: Cuts,
}

impl EventQueue {
    /// Takes an event that is about this item, to be changed so.
    pub(super) fn push(&mut self, event: &StreamEvent<'_>, index: Option<u64>, cuts: Cuts) {
        let number = event.json.get("sequence_number").ok().flatten();
        let number = number.and_then(|value| Some((value.number_text()?.parse().ok()?, value.span())));
        self.bytes += event.received.kept_bytes();
        self.kept.push_back(KeptEvent { received: event.received.clone(), index, number, cuts });
    }

    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// The number that an event of our own has next.
    pub(super) fn next(&self) -> Option<i64> {
        self.next
    }

    /// An event with this number went on, while nothing was kept.
    pub(super) fn passed(&mut self, number: u64) {
        self.next = i64::try_from(number).ok().map(|number| number + self.shift + 1);
    }

    /// A new response counts from its beginning.
    pub(super) fn restart(&mut self) {
        self.shift = 0;
        self.next = None;
    }

    /// Lets events go on that do not wait.
    pub(super) fn flush(&mut self, items: &mut BTreeMap<u64, OutputItem>, out: &mut Out) {
        while let Some(kept) = self.kept.front() {
            let item = kept.index.and_then(|index| items.get_mut(&index));
            let standing = item.map_or(EventOutcome::Goes, OutputItem::standing);
            if standing == EventOutcome::Waits {
                return;
            }
            let Some(kept) = self.kept.pop_front() else { return };
            self.bytes -= kept.received.kept_bytes();
            match standing {
                EventOutcome::Waits => {}
                EventOutcome::Goes => self.pass(kept, out),
                EventOutcome::Lost => self.drop(&kept),
                EventOutcome::Replaced(replacement) => self.replace(&kept, &replacement, out),
            }
        }
    }

    fn pass(&mut self, kept: KeptEvent, out: &mut Out) {
        let mut cuts = kept.cuts;
        if let Some((number, span)) = kept.number {
            self.next = Some(number + self.shift + 1);
            if self.shift != 0 {
                cuts.push((span, (number + self.shift).to_string()));
            }
        }
        if cuts.is_empty() {
            return out.release([AnswerPart::Received(kept.received)]);
        }
        cuts.sort_by_key(|(span, _)| span.start);
        let json = String::from_utf8_lossy(&cut(kept.received.data(), &cuts)).into_owned();
        let name = kept.received.name().map(|name| Cow::Owned(name.to_owned()));
        out.release([AnswerPart::New { name, json }]);
    }

    fn replace(&mut self, kept: &KeptEvent, replacement: &Replacement, out: &mut Out) {
        let first = kept.number.as_ref().map(|(number, _)| number + self.shift);
        let events = replacement.events(kept.index.unwrap_or_default(), first);
        if let Some(first) = first {
            // Six events replace one: later numbers grow by five, and by one less for each event that is dropped.
            self.shift += events.len() as i64 - 1;
            self.next = Some(first + events.len() as i64);
        }
        events.into_iter().for_each(|(name, json)| out.say(Some(name), json));
    }

    fn drop(&mut self, kept: &KeptEvent) {
        if kept.number.is_some() {
            self.shift -= 1;
        }
    }
}

/// Bytes with spans replaced.
pub(super) fn cut(bytes: &[u8], cuts: &Cuts) -> Vec<u8> {
    let mut edited = Vec::with_capacity(bytes.len());
    let mut copied = 0;
    for (span, text) in cuts {
        edited.extend_from_slice(&bytes[copied..span.start]);
        edited.extend_from_slice(text.as_bytes());
        copied = span.end;
    }
    edited.extend_from_slice(&bytes[copied..]);
    edited
}
