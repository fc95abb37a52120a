//! Draws the user ID of a pod's gateway, so that no image can carry it as its own.

use aws_lc_rs::rand;

use super::review::Taken;

/// User-namespaced pods have IDs up to 65535, of which the last two mean nobody and no ID.
const FIRST: u32 = 60_000;
const LAST: u32 = 65_533;

/// One of 60000 to 65533 that is not taken: the first free one from where chance points. None where all are taken, or
/// where the system has no randomness.
pub(super) fn draw(taken: &Taken) -> Option<u32> {
    let mut octets = [0; 8];
    rand::fill(&mut octets).ok()?;
    let count = u64::from(LAST - FIRST + 1);
    let start = u64::from_be_bytes(octets) % count;
    (0..count)
        .filter_map(|step| u32::try_from((start + step) % count).ok())
        .map(|offset| FIRST + offset)
        .find(|uid| !taken.contains(&i64::from(*uid)))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn it_is_drawn_from_the_whole_range() {
        let drawn: BTreeSet<u32> = (0..200).filter_map(|_| draw(&Taken::new())).collect();
        assert!(drawn.iter().all(|uid| (FIRST..=LAST).contains(uid)));
        assert!(drawn.len() > 150, "{} different of 200", drawn.len());
    }

    #[test]
    fn it_is_none_that_is_taken() {
        let all_but_one: Taken = (i64::from(FIRST)..=i64::from(LAST)).filter(|uid| *uid != 61_234).collect();
        assert_eq!(draw(&all_but_one), Some(61_234));
        let all: Taken = (0..=i64::from(u16::MAX)).collect();
        assert_eq!(draw(&all), None);
    }
}
