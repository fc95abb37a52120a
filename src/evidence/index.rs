//! Knows which texts are kept, how large they are and when each was last touched; says which have to go. Pure.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::ops::Bound;
use std::time::{Duration, Instant, SystemTime};

use foldhash::quality::RandomState;

use crate::tool_output::evidence_id::EvidenceId;

/// The most files of one directory, so that small texts cannot fill the index.
const MOST_FILES: usize = 65_536;

/// What a file takes of the disk at least, and in steps of which it grows. A volume's limit counts it so.
const BLOCK: u64 = 4_096;

/// How long a file that was looked at is taken to be there still.
const TRUSTED: Duration = Duration::from_secs(60);

/// How much is kept, and for how long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Retention {
    pub(super) max_age: Duration,
    /// Of all files together, each counted in whole blocks.
    pub(super) max_bytes: u64,
}

/// A file that is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Entry {
    /// The file's length in bytes.
    pub(super) length: u64,
    /// When a request last carried the text.
    pub(super) touched: SystemTime,
    /// The last look at the file; none where it was written before this process started.
    pub(super) looked: Option<Look>,
}

/// A look at a file that held its text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Look {
    pub(super) at: Instant,
    /// The file's time of modification: while it stays, nobody has written it.
    pub(super) modified: SystemTime,
}

/// Texts that stay whatever else goes.
pub(super) type Needed = HashSet<EvidenceId, RandomState>;

/// All files of a directory.
#[derive(Debug, Default)]
pub(super) struct Index {
    entries: HashMap<EvidenceId, Placed, RandomState>,
    /// By the times under which they stand.
    by_age: BTreeSet<Place>,
    bytes: u64,
}

/// A file, and the time under which it stands. A conversation carries all of its texts with every turn: they are moved
/// once the oldest are looked for.
#[derive(Debug)]
struct Placed {
    entry: Entry,
    under: SystemTime,
}

type Place = (SystemTime, EvidenceId);

impl Index {
    /// The bytes of all files, in whole blocks.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(super) fn entry(&self, id: EvidenceId) -> Option<Entry> {
        self.entries.get(&id).map(|placed| placed.entry)
    }

    /// Notes a file, in the place of what was known of it.
    pub(super) fn put(&mut self, id: EvidenceId, entry: Entry) {
        self.remove(id);
        self.bytes += room(entry.length);
        self.by_age.insert((entry.touched, id));
        self.entries.insert(id, Placed { entry, under: entry.touched });
    }

    pub(super) fn remove(&mut self, id: EvidenceId) {
        if let Some(Placed { entry, under }) = self.entries.remove(&id) {
            self.bytes = self.bytes.saturating_sub(room(entry.length));
            self.by_age.remove(&(under, id));
        }
    }

    /// Notes that a request carries the text of this length. Returns whether its file is known to be there: it was looked
    /// at within the last minute.
    pub(super) fn touch(&mut self, id: EvidenceId, length: u64, now: (Instant, SystemTime)) -> bool {
        let Some(Placed { entry, .. }) = self.entries.get_mut(&id) else { return false };
        let is_there = entry.length == length
            && entry.looked.is_some_and(|look| now.0.saturating_duration_since(look.at) < TRUSTED);
        if is_there {
            entry.touched = now.1;
        }
        is_there
    }

    /// The file that was touched longest ago, of those behind this place.
    fn oldest(&mut self, behind: Option<Place>) -> Option<Place> {
        loop {
            let place = match behind {
                Some(behind) => self.by_age.range((Bound::Excluded(behind), Bound::Unbounded)).next(),
                None => self.by_age.first(),
            };
            let (under, id) = *place?;
            let placed = self.entries.get_mut(&id)?;
            if placed.entry.touched == under {
                return Some((under, id));
            }
            placed.under = placed.entry.touched;
            self.by_age.remove(&(under, id));
            self.by_age.insert((placed.under, id));
        }
    }

    /// The files that have to go before one of this length is there: those that were touched longest ago, but none of
    /// `needed`. None where there would be no room even so.
    pub(super) fn room_for(
        &mut self,
        id: EvidenceId,
        length: u64,
        needed: &Needed,
        max_bytes: u64,
    ) -> Option<Vec<EvidenceId>> {
        let before = self.entry(id);
        let mut bytes = self.bytes - before.map_or(0, |entry| room(entry.length)) + room(length);
        let mut files = self.entries.len() + usize::from(before.is_none());
        let (mut gone, mut behind) = (Vec::new(), None);
        while bytes > max_bytes || files > MOST_FILES {
            let place = self.oldest(behind)?;
            behind = Some(place);
            if place.1 != id && !needed.contains(&place.1) {
                bytes -= self.entry(place.1).map_or(0, |entry| room(entry.length));
                files -= 1;
                gone.push(place.1);
            }
        }
        Some(gone)
    }

    /// The files that are too old, and those touched longest ago where there are too many bytes.
    pub(super) fn outdated(&mut self, now: SystemTime, retention: Retention) -> Vec<EvidenceId> {
        let (mut bytes, mut files) = (self.bytes, self.entries.len());
        let (mut gone, mut behind) = (Vec::new(), None);
        while let Some((touched, id)) = self.oldest(behind) {
            let age = now.duration_since(touched).unwrap_or_default();
            if age <= retention.max_age && bytes <= retention.max_bytes && files <= MOST_FILES {
                break;
            }
            behind = Some((touched, id));
            bytes -= self.entry(id).map_or(0, |entry| room(entry.length));
            files -= 1;
            gone.push(id);
        }
        gone
    }
}

/// The bytes that a file of this length takes of the disk.
fn room(length: u64) -> u64 {
    length.div_ceil(BLOCK).max(1).saturating_mul(BLOCK)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(name: usize) -> EvidenceId {
        EvidenceId::of(&name.to_string())
    }

    fn at(second: u64) -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_secs(second)
    }

    /// Files 1, 2, 3 of one block each, touched in this order.
    fn three() -> Index {
        let mut index = Index::default();
        for name in 1..=3 {
            let entry = Entry { length: 10, touched: at(name as u64), looked: None };
            index.put(id(name), entry);
        }
        index
    }

    #[test]
    fn files_are_counted_in_whole_blocks_and_once() {
        let mut index = three();
        assert_eq!(index.bytes(), 3 * BLOCK);
        index.put(id(1), Entry { length: BLOCK + 1, ..index.entry(id(1)).unwrap() });
        assert_eq!(index.bytes(), 4 * BLOCK);
        index.remove(id(1));
        index.remove(id(1));
        assert_eq!(index.bytes(), 2 * BLOCK);
    }

    #[test]
    fn the_least_recently_touched_go_first_and_what_is_needed_stays() {
        let mut index = three();
        let room = |index: &mut Index, needed: &[EvidenceId]| {
            index.room_for(id(9), 1, &needed.iter().copied().collect(), 3 * BLOCK)
        };
        assert_eq!(room(&mut index, &[]), Some(vec![id(1)]));
        assert_eq!(room(&mut index, &[id(1)]), Some(vec![id(2)]));
        assert_eq!(room(&mut index, &[id(1), id(2), id(3)]), None, "nothing may go");
        index.put(id(1), Entry { touched: at(9), ..index.entry(id(1)).unwrap() });
        assert_eq!(room(&mut index, &[]), Some(vec![id(2)]));
        let now = Instant::now();
        let looked = Some(Look { at: now, modified: at(1) });
        for name in 1..=3 {
            index.put(id(name), Entry { looked, ..index.entry(id(name)).unwrap() });
        }
        assert!(index.touch(id(2), 10, (now, at(20))) && index.touch(id(1), 10, (now, at(30))));
        assert_eq!(room(&mut index, &[]), Some(vec![id(3)]), "requests have carried the others");
        assert_eq!(room(&mut index, &[id(3)]), Some(vec![id(2)]));
        assert!(index.touch(id(3), 10, (now, at(40))));
        assert_eq!(room(&mut index, &[id(2)]), Some(vec![id(1)]));
        assert_eq!(
            index.room_for(id(1), 1, &Needed::default(), 3 * BLOCK),
            Some(Vec::new()),
            "it is there already"
        );
        assert_eq!(
            index.room_for(id(9), 4 * BLOCK, &Needed::default(), 3 * BLOCK),
            None,
            "more than there may be"
        );
    }

    #[test]
    fn age_counts_from_the_last_touch() {
        let mut index = three();
        let mut outdated = |now, max_age, max_bytes| {
            let retention = Retention { max_age: Duration::from_secs(max_age), max_bytes };
            index.outdated(at(now), retention)
        };
        assert_eq!(outdated(12, 10, u64::MAX), vec![id(1)]);
        assert_eq!(outdated(12, 100, 2 * BLOCK), vec![id(1)]);
        assert_eq!(outdated(99, 10, u64::MAX).len(), 3);
        assert_eq!(outdated(0, 10, u64::MAX), Vec::new(), "the clock went back");
    }

    #[test]
    fn a_file_is_taken_to_be_there_for_a_minute_after_a_look() {
        let (mut index, now) = (three(), Instant::now());
        let later = |seconds| (now + Duration::from_secs(seconds), at(100 + seconds));
        assert!(!index.touch(id(1), 10, later(0)), "nobody has looked");
        assert!(!index.touch(id(8), 10, later(0)), "it is not there");
        let looked = Some(Look { at: now, modified: at(1) });
        index.put(id(1), Entry { looked, ..index.entry(id(1)).unwrap() });
        assert!(index.touch(id(1), 10, later(59)) && !index.touch(id(1), 11, later(59)));
        assert!(!index.touch(id(1), 10, later(60)));
        assert_eq!(index.entry(id(1)).unwrap().touched, at(159));
    }
}
