//! Bounds the connections of a server, in all and by peer: the connection that was idle longest makes room.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio_util::sync::CancellationToken;

/// How many connections there are at a time.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ConnectionBounds {
    pub(crate) all: usize,
    pub(crate) of_a_peer: usize,
}

/// Who is at the other end, as far as that can be told apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Peer {
    V4(Ipv4Addr),
    /// A /64, which is what one machine has to choose addresses from.
    V6([u16; 4]),
    /// Whoever may open a Unix socket.
    Local,
}

/// The places of a server. No connection is refused: if all places are taken, another connection loses its place; if
/// those of its peer are, one of that peer's.
#[derive(Debug)]
pub(crate) struct Capacity {
    bounds: ConnectionBounds,
    table: Arc<Mutex<PlaceTable>>,
}

/// One connection's place; it comes back when dropped.
#[derive(Debug)]
pub(crate) struct ConnectionPlace {
    number: u64,
    table: Arc<Mutex<PlaceTable>>,
    lost: CancellationToken,
    displacing: bool,
}

/// A question that is under way until this is dropped.
#[derive(Debug)]
pub(crate) struct Asking<'a>(&'a ConnectionPlace);

/// The holders of places, by a number that is drawn when a place is taken.
#[derive(Debug, Default)]
struct PlaceTable {
    places: BTreeMap<u64, PlaceHolder>,
    drawn: u64,
}

#[derive(Debug)]
struct PlaceHolder {
    peer: Peer,
    asking: usize,
    /// A number that was drawn when the last question was answered.
    answered: Option<u64>,
    lost: CancellationToken,
}

impl From<SocketAddr> for Peer {
    fn from(address: SocketAddr) -> Self {
        match address.ip().to_canonical() {
            IpAddr::V4(address) => Self::V4(address),
            IpAddr::V6(address) => {
                let [a, b, c, d, ..] = address.segments();
                Self::V6([a, b, c, d])
            }
        }
    }
}

impl Capacity {
    pub(crate) fn new(bounds: ConnectionBounds) -> Self {
        Self { bounds, table: Arc::default() }
    }

    /// Takes a place, which another connection may lose by that.
    pub(crate) fn take(&self, peer: Peer) -> ConnectionPlace {
        let lost = CancellationToken::new();
        let mut table = locked(&self.table);
        let displacing =
            if table.places.values().filter(|held| held.peer == peer).count() >= self.bounds.of_a_peer {
                table.make_room(|held| held.peer == peer)
            } else {
                table.places.len() >= self.bounds.all && table.make_room(|_| true)
            };
        let number = table.draw();
        table.places.insert(number, PlaceHolder { peer, asking: 0, answered: None, lost: lost.clone() });
        ConnectionPlace { number, table: Arc::clone(&self.table), lost, displacing }
    }
}

impl ConnectionPlace {
    /// Whether another connection lost its place to this one.
    pub(crate) fn displaces(&self) -> bool {
        self.displacing
    }

    /// Resolves when the place is somebody else's: the connection is to end.
    pub(crate) async fn lost(&self) {
        self.lost.cancelled().await;
    }

    /// Notes that a question is under way.
    pub(crate) fn ask(&self) -> Asking<'_> {
        if let Some(held) = locked(&self.table).places.get_mut(&self.number) {
            held.asking += 1;
        }
        Asking(self)
    }
}

impl Drop for ConnectionPlace {
    fn drop(&mut self) {
        locked(&self.table).places.remove(&self.number);
    }
}

impl Drop for Asking<'_> {
    fn drop(&mut self) {
        let mut table = locked(&self.0.table);
        let now = table.draw();
        if let Some(held) = table.places.get_mut(&self.0.number) {
            held.asking -= 1;
            held.answered = Some(now);
        }
    }
}

impl PlaceTable {
    fn draw(&mut self) -> u64 {
        self.drawn += 1;
        self.drawn
    }

    /// Takes one place away: rather from whoever asks nothing, of those from whoever never asked, and of those from
    /// whoever came first. Where all have questions under way it is the one that was answered longest ago, so that
    /// nobody holds places by questions that never end.
    fn make_room(&mut self, of: impl Fn(&PlaceHolder) -> bool) -> bool {
        let candidates = self.places.iter().filter(|(_, held)| of(held));
        let order = |(number, held): &(&u64, &PlaceHolder)| (held.asking > 0, held.answered, **number);
        let first = candidates.min_by_key(order).map(|(number, _)| *number);
        let gone = first.and_then(|number| self.places.remove(&number));
        gone.inspect(|held| held.lost.cancel()).is_some()
    }
}

/// What it holds is whole after each call, also where a thread panicked.
fn locked(table: &Mutex<PlaceTable>) -> MutexGuard<'_, PlaceTable> {
    table.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOUNDS: ConnectionBounds = ConnectionBounds { all: 4, of_a_peer: 3 };

    fn peer(last: u8) -> Peer {
        Peer::V4(Ipv4Addr::new(192, 0, 2, last))
    }

    fn peer_of(address: &str) -> Peer {
        Peer::from(SocketAddr::new(address.parse().unwrap(), 1))
    }

    /// Which of these places were lost.
    fn lost(places: &[ConnectionPlace]) -> Vec<usize> {
        let lost = places.iter().enumerate().filter(|(_, place)| place.lost.is_cancelled());
        lost.map(|(at, _)| at).collect()
    }

    #[test]
    fn an_ipv6_peer_is_all_of_its_64_and_a_mapped_one_is_of_ipv4() {
        assert_eq!(peer_of("2001:db8:1:2::3"), peer_of("2001:db8:1:2:ffff::9"));
        assert_ne!(peer_of("2001:db8:1:2::3"), peer_of("2001:db8:1:3::3"));
        assert_eq!(peer_of("::ffff:192.0.2.1"), peer(1));
    }

    #[test]
    fn a_peer_that_takes_more_than_its_share_takes_them_from_itself() {
        let capacity = Capacity::new(BOUNDS);
        let another = capacity.take(peer(1));
        let places: Vec<ConnectionPlace> = (0..10).map(|_| capacity.take(peer(2))).collect();
        assert_eq!(lost(&places), (0..7).collect::<Vec<_>>());
        assert!(!another.lost.is_cancelled());
    }

    #[test]
    fn of_many_peers_whoever_never_asked_goes_before_whoever_did() {
        let capacity = Capacity::new(BOUNDS);
        let places: Vec<ConnectionPlace> = (0..4).map(|last| capacity.take(peer(last))).collect();
        drop(places[0].ask());
        drop(places[2].ask());
        drop(places[0].ask());
        let mut newcomers = Vec::new();
        for (last, gone) in [(4, vec![1]), (5, vec![1, 3])] {
            newcomers.push(capacity.take(peer(last)));
            drop(newcomers.last().unwrap().ask());
            assert_eq!(lost(&places), gone);
        }
        newcomers.push(capacity.take(peer(6)));
        assert_eq!(lost(&places), [1, 2, 3], "it has gone longer without a question than the first");
    }

    #[test]
    fn a_question_under_way_keeps_its_place_while_anybody_else_is_idle() {
        let capacity = Capacity::new(BOUNDS);
        let places: Vec<ConnectionPlace> = (0..4).map(|last| capacity.take(peer(last))).collect();
        let asking: Vec<Asking<'_>> = places.iter().take(3).map(ConnectionPlace::ask).collect();
        drop(places[3].ask());
        let newcomer = capacity.take(peer(5));
        assert_eq!(lost(&places), [3]);
        let _still = newcomer.ask();
        let _last = capacity.take(peer(6));
        assert_eq!(lost(&places), [0, 3], "where all ask, whoever has asked longest without an answer goes");
        drop(asking);
    }

    #[test]
    fn a_place_comes_back() {
        let capacity = Capacity::new(BOUNDS);
        let places: Vec<ConnectionPlace> = (0..4).map(|last| capacity.take(peer(last))).collect();
        let mut left = places;
        drop(left.remove(1));
        let _newcomer = capacity.take(peer(9));
        assert_eq!(lost(&left), Vec::<usize>::new());
    }
}
