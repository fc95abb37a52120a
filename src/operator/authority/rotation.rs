//! Replaces the root: agents get the next one first, then it issues, and the old one stays trusted until it expires.

use std::time::{Duration, SystemTime};

use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use super::certificate::Certificate;
use super::root::{self, BACKDATED, DISTRUSTED, NEXT, PREVIOUS, ROOT, RootCa};
use super::{Data, IssuingError};

/// The part of a root's life, in percent, after which the next one is created.
const REPLACED_AT: u32 = 80;

/// The next step of the rotation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RotationStep {
    Stay,
    /// A next root is created.
    Make,
    /// The next root becomes the root.
    Promote,
}

/// The state of the rotation.
#[derive(Debug, Clone, Copy)]
struct RotationState {
    not_before: SystemTime,
    not_after: SystemTime,
    /// When the next root was created, and whether its key is known.
    next: Option<(SystemTime, bool)>,
    distribution: Duration,
}

impl RootCa {
    /// The new data of the root's Secret if its rotation advances now: a next root is created, because that was `asked`
    /// or the root has passed 80 % of its life; or the next root is promoted, because agents have had it long enough
    /// ([`RootCa::distributing`]). Only for a root that the operator generates.
    pub fn advanced(&self, asked: bool, now: SystemTime) -> Result<Option<Data>, IssuingError> {
        match self.standing().step(asked, now) {
            RotationStep::Stay => Ok(None),
            RotationStep::Make => {
                let (certificate, key) = root::make(now).map_err(IssuingError::Unmakable)?;
                let mut data = self.data();
                data.insert(NEXT.0.to_owned(), certificate);
                data.insert(NEXT.1.to_owned(), key.to_vec());
                Self::load(&data, now).map(|_usable| Some(data))
            }
            RotationStep::Promote => self.promoted(now).map(Some),
        }
    }

    /// Whether a requested rotation has not begun: `wish` is the time of the request (RFC 3339), in the past and after
    /// the newest root was created. So an annotation that stays is obeyed once.
    pub fn is_asked(&self, wish: &str, now: SystemTime) -> bool {
        let Ok(wished) = OffsetDateTime::parse(wish, &Rfc3339) else { return false };
        let standing = self.standing();
        let newest = standing.next.map_or(standing.not_before + BACKDATED, |(made, _)| made);
        // Certificates hold whole seconds, and the annotation may have fractions.
        wished.unix_timestamp() > OffsetDateTime::from(newest).unix_timestamp() && wished <= now
    }

    fn standing(&self) -> RotationState {
        let (not_before, not_after) = self.authority.validity();
        let next = self.next.as_ref().and_then(|next| {
            let made = next.certificates.first()?.not_before + BACKDATED;
            Some((made, next.key.is_some()))
        });
        RotationState { not_before, not_after, next, distribution: self.distribution }
    }

    /// The data of the Secret without a next root.
    fn data(&self) -> Data {
        let chain = self.authority.certificates().iter().map(|der| crate::tls::certificate_pem(der));
        let mut data = Data::from([
            (ROOT.0.to_owned(), chain.collect::<String>().into_bytes()),
            (ROOT.1.to_owned(), self.key.to_vec()),
        ]);
        for (key, certificates) in [(PREVIOUS, &self.previous), (DISTRUSTED, &self.distrusted)] {
            if !certificates.is_empty() {
                data.insert(key.to_owned(), root::written(certificates));
            }
        }
        data
    }

    fn promoted(&self, now: SystemTime) -> Result<Data, IssuingError> {
        let mut data = self.data();
        let Some((next, key)) = self.next.as_ref().and_then(|next| Some((next, next.key.as_ref()?))) else {
            return Ok(data);
        };
        let old = self.authority.certificates().last().cloned();
        let old = old.and_then(|der| Certificate::read(der).ok());
        let previous = old.iter().chain(&self.previous).filter(|previous| !self.distrusts(&previous.der));
        data.insert(PREVIOUS.to_owned(), root::written(previous));
        data.insert(ROOT.0.to_owned(), root::written(&next.certificates));
        data.insert(ROOT.1.to_owned(), key.to_vec());
        Self::load(&data, now).map(|_usable| data)
    }
}

impl RotationState {
    fn step(&self, asked: bool, now: SystemTime) -> RotationStep {
        match self.next {
            Some((made, true)) if now >= made + self.distribution => RotationStep::Promote,
            Some(_) => RotationStep::Stay,
            None if asked || now >= self.replaced() => RotationStep::Make,
            None => RotationStep::Stay,
        }
    }

    fn replaced(&self) -> SystemTime {
        let life = self.not_after.duration_since(self.not_before).unwrap_or_default();
        self.not_before + life / 100 * REPLACED_AT
    }
}

#[cfg(test)]
mod tests {
    use std::time::UNIX_EPOCH;

    use super::super::testing::{DAY, root, text};
    use super::*;

    #[test]
    fn each_standing_has_its_step() {
        let at = |days: u32| UNIX_EPOCH + DAY * days;
        let standing =
            |next| RotationState { not_before: at(0), not_after: at(1_000), next, distribution: DAY * 7 };
        let table = [
            // Without a next root: only who asks, or age, has one made.
            (None, false, 0, RotationStep::Stay),
            (None, false, 799, RotationStep::Stay),
            (None, false, 800, RotationStep::Make),
            (None, false, 1_200, RotationStep::Make),
            (None, true, 1, RotationStep::Make),
            // With one: it waits its time out, whoever asks, and then becomes the root.
            (Some((at(10), true)), false, 10, RotationStep::Stay),
            (Some((at(10), true)), true, 16, RotationStep::Stay),
            (Some((at(10), true)), false, 17, RotationStep::Promote),
            (Some((at(10), true)), true, 400, RotationStep::Promote),
            (Some((at(990), true)), false, 991, RotationStep::Stay),
            // One that somebody else announced is theirs to put in force.
            (Some((at(10), false)), true, 400, RotationStep::Stay),
        ];
        for (next, asked, day, expected) in table {
            assert_eq!(standing(next).step(asked, at(day)), expected, "{next:?} asked {asked} on day {day}");
        }
    }

    #[test]
    fn a_rotation_goes_from_one_root_over_two_to_the_next_and_the_old_one_stays_trusted() {
        let now = SystemTime::now();
        let data = RootCa::generate(now).unwrap();
        let first = RootCa::load(&data, now).unwrap();
        assert_eq!(first.advanced(false, now).unwrap(), None);

        let both = first.advanced(true, now).unwrap().unwrap();
        assert_eq!(text(&both, "tls.crt"), text(&data, "tls.crt"));
        let rotating = RootCa::load(&both, now).unwrap();
        assert_eq!(rotating.anchors().len(), 2);
        assert_eq!(rotating.advanced(true, now + DAY * 6).unwrap(), None);

        let later = now + DAY * 7;
        let after = rotating.advanced(false, later).unwrap().unwrap();
        assert_eq!(text(&after, "tls.crt"), text(&both, "next.crt"));
        assert_eq!(after["tls.key"], both["next.key"]);
        assert_eq!(text(&after, "previous.crt"), text(&data, "tls.crt"));
        assert!(!after.contains_key("next.crt") && !after.contains_key("next.key"));
        let second = RootCa::load(&after, later).unwrap();
        assert_eq!(second.anchors().len(), 2);
        assert_eq!(second.advanced(false, later).unwrap(), None);
    }

    #[test]
    fn the_time_of_distribution_is_a_setting() {
        let now = SystemTime::now();
        let both = root(now).advanced(true, now).unwrap().unwrap();
        let hasty = RootCa::load(&both, now).unwrap().distributing(Duration::from_secs(1));
        assert_eq!(hasty.advanced(false, now).unwrap(), None);
        assert!(hasty.advanced(false, now + Duration::from_secs(2)).unwrap().is_some());
    }

    #[test]
    fn a_wish_is_granted_once() {
        let now = UNIX_EPOCH + DAY * 20_000;
        let day = |days: u32| UNIX_EPOCH + DAY * (20_000 + days);
        let (wish, old, future) = ("2024-10-05T00:00:00Z", "2024-10-03T00:00:00Z", "2030-01-01T00:00:00Z");
        let first = root(now);
        assert!(first.is_asked(wish, day(2)) && !first.is_asked(wish, day(0)));
        for other in [old, future, "now", ""] {
            assert!(!first.is_asked(other, day(2)), "{other}");
        }
        let both = first.advanced(true, day(2)).unwrap().unwrap();
        let rotating = RootCa::load(&both, day(2)).unwrap();
        assert!(!rotating.is_asked(wish, day(2)));
        let after = rotating.advanced(false, day(9)).unwrap().unwrap();
        assert!(!RootCa::load(&after, day(9)).unwrap().is_asked(wish, day(9)));
    }

    #[test]
    fn a_previous_root_that_has_ended_is_forgotten() {
        let now = SystemTime::now();
        let mut data = RootCa::generate(now).unwrap();
        let error = RootCa::load(&RootCa::generate(now - DAY * 3_660).unwrap(), now).unwrap_err();
        assert!(error.to_string().contains("expired at"), "{error}");
        let old = root::make(now - DAY * 3_660).unwrap().0;
        data.insert("previous.crt".to_owned(), old);
        assert_eq!(RootCa::load(&data, now).unwrap().anchors().len(), 1);
    }
}
