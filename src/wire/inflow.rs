//! Holds what a decoder was given and has not yet given out, and gives it out as slices of what came in.

use bytes::{Bytes, BytesMut};

/// Two runs of bytes: the beginning of a unit whose end has not come, and what nobody has looked at yet.
/// A unit that came in one piece is a slice of that piece; one that came in several is copied together, once.
#[derive(Debug, Default)]
pub(super) struct Inflow {
    held: BytesMut,
    fresh: Bytes,
}

impl Inflow {
    /// Adds a piece behind what is there. Whoever has looked at all of the last piece pays no copy.
    pub(super) fn push(&mut self, piece: Bytes) {
        if self.fresh.is_empty() {
            self.fresh = piece;
            return;
        }
        let mut both = BytesMut::with_capacity(self.fresh.len() + piece.len());
        both.extend_from_slice(&self.fresh);
        both.extend_from_slice(&piece);
        self.fresh = both.freeze();
    }

    /// The beginning of a unit that was looked at already.
    pub(super) fn held(&self) -> &[u8] {
        &self.held
    }

    /// What was not looked at yet.
    pub(super) fn fresh(&self) -> &[u8] {
        &self.fresh
    }

    /// Bytes of both.
    pub(super) fn len(&self) -> usize {
        self.held.len() + self.fresh.len()
    }

    /// Keeps what is fresh, as a part of a unit whose end it does not have.
    pub(super) fn hold(&mut self) {
        self.held.extend_from_slice(&self.fresh);
        self.fresh = Bytes::new();
    }

    /// Gives out a unit: what is held and the first `end` fresh bytes, or as many as there are.
    pub(super) fn take(&mut self, end: usize) -> Bytes {
        let part = self.fresh.split_to(end.min(self.fresh.len()));
        if self.held.is_empty() {
            return part;
        }
        let mut unit = std::mem::take(&mut self.held);
        unit.extend_from_slice(&part);
        unit.freeze()
    }

    /// The first bytes of what is there, held or not; `None` where there are fewer.
    pub(super) fn first<const N: usize>(&self) -> Option<[u8; N]> {
        let mut first = [0; N];
        let from_held = self.held.len().min(N);
        let (front, back) = first.split_at_mut(from_held);
        front.copy_from_slice(self.held.get(..from_held)?);
        back.copy_from_slice(self.fresh.get(..N - from_held)?);
        Some(first)
    }

    /// Gives out all there is.
    pub(super) fn take_all(&mut self) -> Bytes {
        self.take(self.fresh.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_unit_in_one_piece_is_not_copied() {
        let piece = Bytes::from_static(b"onetwo");
        let mut inflow = Inflow::default();
        inflow.push(piece.clone());
        let (one, two) = (inflow.take(3), inflow.take(3));
        assert_eq!((one.as_ptr(), two.as_ptr()), (piece.as_ptr(), piece[3..].as_ptr()));
    }

    #[test]
    fn a_unit_in_several_pieces_comes_out_whole() {
        let mut inflow = Inflow::default();
        inflow.push(Bytes::from_static(b"o"));
        inflow.hold();
        inflow.push(Bytes::from_static(b"n"));
        inflow.push(Bytes::from_static(b"etwo"));
        assert_eq!((inflow.held(), inflow.fresh(), inflow.len()), (&b"o"[..], &b"netwo"[..], 6));
        assert_eq!((inflow.first(), inflow.first::<7>()), (Some(*b"onet"), None));
        assert_eq!(inflow.take(2), "one");
        assert_eq!(inflow.take_all(), "two");
        assert_eq!(inflow.len(), 0);
    }
}
