//! Numbered places that names hold for a time since they were last asked for; a place is given on as late as possible.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use crate::name::host::DnsName;

/// A bounded set of names. Every operation takes constant time, but for letting go of what has run out, which
/// happens once for each time a name was kept.
#[derive(Debug)]
pub(super) struct Places {
    capacity: usize,
    time: Duration,
    by_name: HashMap<DnsName, usize>,
    /// A list from the place that was used longest ago to the one used last; those that ran out come first.
    places: Vec<NamedPlace>,
    oldest: usize,
    newest: usize,
    /// The first in the list that has not run out, and how many there are from it on.
    first_held: usize,
    held: usize,
    /// The latest time of any call: callers read their clocks before they take the lock.
    latest: Option<Instant>,
}

#[derive(Debug)]
struct NamedPlace {
    name: DnsName,
    used: Instant,
    older: usize,
    newer: usize,
}

/// The neighbour of the place at an end of the list.
const NONE: usize = usize::MAX;

impl Places {
    /// At most `capacity` names, each for `time` since its last use.
    pub(super) fn new(capacity: usize, time: Duration) -> Self {
        Self {
            capacity,
            time,
            by_name: HashMap::new(),
            places: Vec::new(),
            oldest: NONE,
            newest: NONE,
            first_held: NONE,
            held: 0,
            latest: None,
        }
    }

    /// The place of a name, counted from 0 and held from `now` on; `None` where others hold all of them.
    pub(super) fn hold(&mut self, name: &DnsName, now: Instant) -> Option<usize> {
        let now = self.let_go(now);
        if let Some(at) = self.by_name.get(name).copied() {
            self.touch(at, now);
            return Some(at);
        }
        if self.places.len() < self.capacity {
            let at = self.places.len();
            self.places.push(NamedPlace { name: name.clone(), used: now, older: NONE, newer: NONE });
            self.by_name.insert(name.clone(), at);
            self.append(at);
            self.count(at);
            return Some(at);
        }
        if self.held == self.places.len() {
            return None;
        }
        let at = self.oldest;
        let place = self.places.get_mut(at)?;
        let before = std::mem::replace(&mut place.name, name.clone());
        self.by_name.remove(&before);
        self.by_name.insert(name.clone(), at);
        self.touch(at, now);
        Some(at)
    }

    /// The name that holds a place, from `now` on for the whole time again.
    pub(super) fn name_at(&mut self, at: usize, now: Instant) -> Option<DnsName> {
        let now = self.let_go(now);
        let place = self.places.get(at).filter(|place| self.holds(place, now))?;
        let name = place.name.clone();
        self.touch(at, now);
        Some(name)
    }

    /// Whether a name holds a place.
    pub(super) fn is_held(&self, name: &DnsName, now: Instant) -> bool {
        let place = self.by_name.get(name).and_then(|at| self.places.get(*at));
        place.is_some_and(|place| self.holds(place, now))
    }

    /// How many names hold a place.
    pub(super) fn held(&mut self, now: Instant) -> usize {
        self.let_go(now);
        self.held
    }

    fn holds(&self, place: &NamedPlace, now: Instant) -> bool {
        now.saturating_duration_since(place.used) < self.time
    }

    /// Lets go of names whose time has run out. They stay in the list, so that one that is asked for again finds its
    /// place. Returns the time, which never goes back.
    fn let_go(&mut self, now: Instant) -> Instant {
        let now = self.latest.map_or(now, |latest| latest.max(now));
        self.latest = Some(now);
        while let Some(place) = self.places.get(self.first_held).filter(|place| !self.holds(place, now)) {
            self.first_held = place.newer;
            self.held -= 1;
        }
        now
    }

    /// Makes a place of the list the one that was used last.
    fn touch(&mut self, at: usize, now: Instant) {
        let Some(place) = self.places.get_mut(at) else { return };
        let was_held = now.saturating_duration_since(place.used) < self.time;
        place.used = now;
        let (older, newer) = (place.older, place.newer);
        if self.first_held == at && newer != NONE {
            self.first_held = newer;
        }
        match self.places.get_mut(older) {
            Some(place) => place.newer = newer,
            None => self.oldest = newer,
        }
        match self.places.get_mut(newer) {
            Some(place) => place.older = older,
            None => self.newest = older,
        }
        self.append(at);
        if !was_held {
            self.count(at);
        }
    }

    fn append(&mut self, at: usize) {
        let last = std::mem::replace(&mut self.newest, at);
        match self.places.get_mut(last) {
            Some(place) => place.newer = at,
            None => self.oldest = at,
        }
        if let Some(place) = self.places.get_mut(at) {
            (place.older, place.newer) = (last, NONE);
        }
    }

    /// Counts a place at the end of the list as held.
    fn count(&mut self, at: usize) {
        self.held += 1;
        if self.held == 1 {
            self.first_held = at;
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const TIME: Duration = Duration::from_secs(60);

    fn name(n: impl std::fmt::Display) -> DnsName {
        DnsName::parse(&format!("n{n}.example")).unwrap()
    }

    #[test]
    fn a_name_keeps_its_place_while_it_is_used() {
        let (mut places, start) = (Places::new(2, TIME), Instant::now());
        assert_eq!(places.hold(&name(1), start), Some(0));
        assert_eq!(places.hold(&name(2), start), Some(1));
        assert_eq!(places.hold(&name(1), start), Some(0));
        assert_eq!(places.hold(&name(3), start), None, "both are held");
        let later = start + TIME - Duration::from_nanos(1);
        assert_eq!(places.name_at(0, later), Some(name(1)), "a look prolongs");
        assert_eq!(places.hold(&name(3), start + TIME), Some(1), "the other has run out");
        assert_eq!(places.name_at(1, start + TIME), Some(name(3)));
        assert_eq!(places.name_at(0, start + TIME), Some(name(1)));
        assert_eq!(places.held(start + TIME * 3), 0);
        assert_eq!(places.name_at(0, start + TIME * 3), None);
        assert_eq!(places.name_at(7, start), None);
    }

    #[test]
    fn a_place_is_given_on_as_late_as_possible() {
        let (mut places, start) = (Places::new(4, TIME), Instant::now());
        let at = |n: u32| start + TIME * n;
        assert_eq!(places.hold(&name(1), at(0)), Some(0));
        assert_eq!(places.hold(&name(2), at(2)), Some(1), "never used before");
        assert_eq!(places.hold(&name(1), at(4)), Some(0), "asked for again, it has its place again");
        assert_eq!(places.hold(&name(3), at(6)), Some(2));
        assert_eq!(places.hold(&name(4), at(8)), Some(3));
        assert_eq!(places.hold(&name(5), at(10)), Some(1), "of the four, unused the longest");
        assert!(!places.is_held(&name(2), at(10)));
    }

    #[test]
    fn a_clock_that_was_read_earlier_takes_nothing_back() {
        let (mut places, start) = (Places::new(2, TIME), Instant::now());
        places.hold(&name(1), start);
        assert_eq!(places.held(start + TIME), 0);
        assert_eq!(places.name_at(0, start), None, "it has run out for everybody");
        assert_eq!(places.hold(&name(1), start), Some(0));
        assert_eq!(places.held(start + TIME), 1);
        assert_eq!(places.held(start + TIME * 2), 0);
    }

    #[derive(Debug, Clone)]
    enum Step {
        Hold(u8),
        Look(usize),
        Wait(u64),
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            (0_u8..9).prop_map(Step::Hold),
            (0_usize..6).prop_map(Step::Look),
            (0_u64..40).prop_map(Step::Wait),
        ]
    }

    proptest! {
        /// Against the plain statement of the rules: a list of names with their last use.
        #[test]
        fn places_are_those_of_a_list_that_is_searched(steps in prop::collection::vec(step(), 0..120)) {
            let mut places = Places::new(5, TIME);
            let mut model: Vec<(DnsName, Instant)> = Vec::new();
            let mut now = Instant::now();
            for step in steps {
                now += Duration::from_nanos(1);
                let lives = |used: Instant| now - used < TIME;
                match step {
                    Step::Wait(seconds) => now += Duration::from_secs(seconds),
                    Step::Look(at) => {
                        let found = model.get_mut(at).filter(|(_, used)| lives(*used));
                        let expected = found.map(|(name, used)| { *used = now; name.clone() });
                        prop_assert_eq!(places.name_at(at, now), expected);
                    }
                    Step::Hold(n) => {
                        let expected = match model.iter().position(|(held, _)| *held == name(n)) {
                            Some(at) => Some(at),
                            None if model.len() < 5 => { model.push((name(n), now)); Some(model.len() - 1) }
                            None => (0..5).min_by_key(|at| model[*at].1).filter(|at| !lives(model[*at].1)),
                        };
                        if let Some(at) = expected { model[at] = (name(n), now); }
                        prop_assert_eq!(places.hold(&name(n), now), expected);
                    }
                }
                let lives = model.iter().filter(|(_, used)| now - *used < TIME).count();
                prop_assert_eq!(places.held(now), lives);
            }
        }
    }
}
