//! Which address stands for which name: synthetic addresses, given out on demand and never taken back while in use.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use ipnet::{IpNet, Ipv4Net};

use super::places::Places;
use crate::name::host::DnsName;
use crate::policy::address::POOL_V6;

/// How long an address keeps its name after its last answer or flow (design section 3).
const KEPT: Duration = Duration::from_secs(60 * 60);
/// The most names that have an address at a time. A name is at most 253 bytes, so all of them are about 20 MiB.
const MOST: u32 = 65_536;

/// The names that have addresses. It is asked once for each question and each flow, so one lock is enough.
#[derive(Debug)]
pub struct Names {
    pool: Ipv4Net,
    places: Mutex<Places>,
}

/// The addresses of one name, the same place in either pool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Synthetic {
    pub v4: Ipv4Addr,
    pub v6: Ipv6Addr,
}

impl Names {
    /// An empty table over a pool, whose first and last address are never given out.
    pub fn new(pool: Ipv4Net) -> Self {
        let last = u32::MAX.checked_shr(pool.prefix_len().into()).unwrap_or_default();
        let capacity = last.saturating_sub(1).min(MOST);
        Self { pool, places: Mutex::new(Places::new(capacity as usize, KEPT)) }
    }

    /// The addresses that stand for a name, from `now` on for an hour; `None` where all are in use.
    pub fn address_of(&self, name: &DnsName, now: Instant) -> Option<Synthetic> {
        let at = u32::try_from(self.places().hold(name, now)?).ok()?;
        let host = at.checked_add(1)?;
        Some(Synthetic {
            v4: Ipv4Addr::from_bits(self.pool.network().to_bits().checked_add(host)?),
            v6: Ipv6Addr::from_bits(POOL_V6.network().to_bits() | u128::from(host)),
        })
    }

    /// The name that an address of either pool stands for; looking keeps it for another hour.
    pub fn name_of(&self, ip: IpAddr, now: Instant) -> Option<DnsName> {
        let host = match ip.to_canonical() {
            IpAddr::V4(ip) if self.pool.contains(&ip) => ip.to_bits() - self.pool.network().to_bits(),
            IpAddr::V6(ip) if POOL_V6.contains(&ip) => {
                u32::try_from(ip.to_bits() - POOL_V6.network().to_bits()).ok()?
            }
            IpAddr::V4(_) | IpAddr::V6(_) => return None,
        };
        let at = usize::try_from(host.checked_sub(1)?).ok()?;
        self.places().name_at(at, now)
    }

    /// Whether an address is of either pool, whether it stands for a name or not.
    pub fn contains(&self, ip: IpAddr) -> bool {
        let ip = ip.to_canonical();
        self.pools().iter().any(|pool| pool.contains(&ip))
    }

    /// The pools, which are never dialled.
    pub fn pools(&self) -> [IpNet; 2] {
        [IpNet::V4(self.pool), IpNet::V6(POOL_V6)]
    }

    /// How many names have an address.
    pub fn count(&self, now: Instant) -> usize {
        self.places().held(now)
    }

    fn places(&self) -> MutexGuard<'_, Places> {
        self.places.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(pool: &str) -> Names {
        Names::new(pool.parse().unwrap())
    }

    fn name(text: &str) -> DnsName {
        DnsName::parse(text).unwrap()
    }

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn a_name_has_one_address_of_each_pool_and_no_other_name_has_it() {
        let (names, now) = (names("198.18.0.0/15"), Instant::now());
        let first = names.address_of(&name("a.example"), now).unwrap();
        assert_eq!(first.v4, Ipv4Addr::new(198, 18, 0, 1), "the network's own address is skipped");
        assert_eq!(IpAddr::V6(first.v6), ip("fd70:6f73:7465:726e::1"));
        assert_eq!(names.address_of(&name("a.example"), now), Some(first));
        let second = names.address_of(&name("b.example"), now).unwrap();
        assert_eq!(
            (IpAddr::V4(second.v4), IpAddr::V6(second.v6)),
            (ip("198.18.0.2"), ip("fd70:6f73:7465:726e::2"))
        );
        for address in ["198.18.0.2", "::ffff:198.18.0.2", "fd70:6f73:7465:726e::2"] {
            assert_eq!(names.name_of(ip(address), now), Some(name("b.example")), "{address}");
        }
        assert_eq!(names.count(now), 2);
    }

    #[test]
    fn an_address_that_was_not_given_out_has_no_name() {
        let (names, now) = (names("198.18.0.0/15"), Instant::now());
        names.address_of(&name("a.example"), now).unwrap();
        for address in [
            "198.18.0.0",
            "198.18.0.2",
            "198.19.255.255",
            "198.20.0.1",
            "fd70:6f73:7465:726e::",
            "10.0.0.1",
            "::1",
        ] {
            assert_eq!(names.name_of(ip(address), now), None, "{address}");
        }
        assert_eq!(
            names.name_of(ip("fd70:6f73:7465:726e:1::1"), now),
            None,
            "only the low bits are counted in"
        );
    }

    #[test]
    fn both_pools_are_known_whole() {
        let names = names("198.18.0.0/15");
        for address in ["198.18.0.0", "198.19.255.255", "::ffff:198.18.3.4", "fd70:6f73:7465:726e:ffff::1"] {
            assert!(names.contains(ip(address)), "{address}");
        }
        for address in ["198.20.0.0", "198.17.255.255", "fd70:6f73:7465:726f::1", "127.0.0.1"] {
            assert!(!names.contains(ip(address)), "{address}");
        }
    }

    #[test]
    fn an_address_keeps_its_name_for_an_hour_after_its_last_answer_or_flow() {
        let (names, start) = (names("198.18.0.0/15"), Instant::now());
        let address = IpAddr::V4(names.address_of(&name("a.example"), start).unwrap().v4);
        let almost = KEPT - Duration::from_secs(1);
        assert!(names.name_of(address, start + almost).is_some(), "and this look is a flow");
        assert!(names.name_of(address, start + almost + almost).is_some());
        assert!(names.address_of(&name("a.example"), start + almost * 3).is_some());
        assert_eq!(names.count(start + almost * 4), 1);
        assert_eq!(names.name_of(address, start + almost * 3 + KEPT), None);
        assert_eq!(names.count(start + almost * 3 + KEPT), 0);
    }

    #[test]
    fn a_full_pool_gives_nothing_until_an_address_is_free() {
        let (names, start) = (names("192.0.2.8/29"), Instant::now());
        let given: Vec<Ipv4Addr> =
            (0..6).map(|n| names.address_of(&name(&format!("n{n}.example")), start).unwrap().v4).collect();
        assert_eq!(given.first(), Some(&Ipv4Addr::new(192, 0, 2, 9)));
        assert_eq!(given.last(), Some(&Ipv4Addr::new(192, 0, 2, 14)), "nor is the last address given out");
        assert_eq!(names.address_of(&name("one.more.example"), start), None);
        assert!(names.address_of(&name("n3.example"), start).is_some(), "who has one is answered");
        let later = names.address_of(&name("one.more.example"), start + KEPT).unwrap();
        assert_eq!(later.v4, given[0]);
        assert_eq!(names.name_of(IpAddr::V4(given[0]), start + KEPT), Some(name("one.more.example")));
    }

    #[test]
    fn the_table_is_bounded_whatever_the_pool() {
        let (names, now) = (names("10.0.0.0/8"), Instant::now());
        for n in 0..MOST {
            assert!(names.address_of(&name(&format!("n{n}.example")), now).is_some());
        }
        assert_eq!(names.address_of(&name("one.more.example"), now), None);
        assert_eq!(names.count(now), 65_536);
    }
}
