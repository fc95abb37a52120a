//! Buffers the bytes of a decoder that have not come out yet, and returns them as slices of the pieces that came in.

use bytes::{Bytes, BytesMut};

/// Two runs of bytes: the held beginning of an unfinished unit, and the fresh bytes that were not read yet.
/// A unit that came in one piece is a slice of that piece; one that came in several is joined by one copy.
#[derive(Debug, Default)]
pub(super) struct Inflow {
    held: BytesMut,
    fresh: Bytes,
}

impl Inflow {
    /// Appends a piece. Costs no copy if the last piece was read to its end.
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

    /// The beginning of the unfinished unit, which was read already.
    pub(super) fn held(&self) -> &[u8] {
        &self.held
    }

    /// The bytes that were not read yet.
    pub(super) fn fresh(&self) -> &[u8] {
        &self.fresh
    }

    /// The length of both runs.
    pub(super) fn len(&self) -> usize {
        self.held.len() + self.fresh.len()
    }

    /// Holds the fresh bytes as a part of the unfinished unit.
    pub(super) fn hold(&mut self) {
        self.held.extend_from_slice(&self.fresh);
        self.fresh = Bytes::new();
    }

    /// Takes out a unit: the held bytes and the first `end` fresh ones, or as many as there are.
    pub(super) fn take(&mut self, end: usize) -> Bytes {
        let part = self.fresh.split_to(end.min(self.fresh.len()));
        if self.held.is_empty() {
            return part;
        }
        let mut unit = std::mem::take(&mut self.held);
        unit.extend_from_slice(&part);
        unit.freeze()
    }

    /// The first bytes, held or fresh; `None` if there are fewer.
    pub(super) fn first<const N: usize>(&self) -> Option<[u8; N]> {
        let mut first = [0; N];
        let from_held = self.held.len().min(N);
        let (front, back) = first.split_at_mut(from_held);
        front.copy_from_slice(self.held.get(..from_held)?);
        back.copy_from_slice(self.fresh.get(..N - from_held)?);
        Some(first)
    }

    /// Takes out everything.
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
