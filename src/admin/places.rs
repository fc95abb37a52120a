//! Who may hold a connection: as many as there are places, and nobody all of them.

use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::oneshot;

/// The places of a server.
#[derive(Debug)]
pub(super) struct Places {
    bound: usize,
    held: Mutex<Held>,
}

/// Connections by the order in which they came.
#[derive(Debug, Default)]
struct Held {
    next: u64,
    connections: BTreeMap<u64, (Option<IpAddr>, oneshot::Sender<()>)>,
}

/// The place of one connection.
#[derive(Debug)]
pub(super) struct Place {
    number: u64,
    /// Ends once the place is somebody else's.
    pub(super) taken: oneshot::Receiver<()>,
}

impl Places {
    pub(super) fn new(bound: usize) -> Self {
        Self { bound, held: Mutex::default() }
    }

    /// A place for whoever comes. Where there is none left, the oldest connection goes of the peer that has most: kubelet's
    /// probes are answered however many somebody else holds open.
    pub(super) fn take(&self, peer: Option<IpAddr>) -> Place {
        let mut held = self.lock();
        while held.connections.len() >= self.bound.max(1) {
            let Some(oldest) = held.most_greedy() else { break };
            held.connections.remove(&oldest);
        }
        let (held_by, taken) = oneshot::channel();
        let number = held.next;
        held.next += 1;
        held.connections.insert(number, (peer.map(whose), held_by));
        Place { number, taken }
    }

    pub(super) fn leave(&self, place: &Place) {
        self.lock().connections.remove(&place.number);
    }

    fn lock(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Held {
    /// The oldest connection of the peer that has most; of several such peers, the oldest of all.
    fn most_greedy(&self) -> Option<u64> {
        let mut by_peer: HashMap<Option<IpAddr>, (usize, u64)> = HashMap::new();
        for (number, (peer, _)) in &self.connections {
            by_peer.entry(*peer).or_insert((0, *number)).0 += 1;
        }
        by_peer
            .into_values()
            .max_by_key(|(count, oldest)| (*count, u64::MAX - oldest))
            .map(|(_, oldest)| oldest)
    }
}

/// Whoever is in the same network namespace has all of the loopback's addresses.
fn whose(peer: IpAddr) -> IpAddr {
    let peer = peer.to_canonical();
    if peer.is_loopback() { IpAddr::V4(std::net::Ipv4Addr::LOCALHOST) } else { peer }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_taken(place: &mut Place) -> bool {
        place.taken.try_recv() == Err(oneshot::error::TryRecvError::Closed)
    }

    fn from(address: &str) -> Option<IpAddr> {
        Some(address.parse().unwrap())
    }

    #[test]
    fn whoever_holds_most_gives_way_to_a_newcomer() {
        let places = Places::new(4);
        let mut kubelet = places.take(from("10.0.0.1"));
        let mut greedy: Vec<Place> =
            (1..4).map(|last| places.take(from(&format!("127.0.0.{last}")))).collect();
        let mut second = places.take(from("10.0.0.1"));
        assert!(is_taken(&mut greedy[0]), "its oldest");
        assert!(!is_taken(&mut greedy[1]) && !is_taken(&mut greedy[2]));
        places.leave(&second);
        let mut more = places.take(from("::ffff:127.0.0.9"));
        assert!(!is_taken(&mut more) && !is_taken(&mut greedy[1]), "there was a place again");
        drop(places.take(from("127.0.0.1")));
        assert!(is_taken(&mut greedy[1]));
        assert!(!is_taken(&mut kubelet) && is_taken(&mut second));
    }

    #[test]
    fn where_all_have_as_many_the_oldest_goes() {
        let places = Places::new(2);
        let (mut first, mut second) = (places.take(from("10.0.0.1")), places.take(from("10.0.0.2")));
        let mut third = places.take(None);
        assert!(is_taken(&mut first) && !is_taken(&mut second) && !is_taken(&mut third));
    }
}
