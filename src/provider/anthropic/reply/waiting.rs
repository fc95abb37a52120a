//! What waits to be written, in pieces that never move: a text that grew in one place would be copied again and again, and
//! leave holes where it was.

use crate::call::turn::said::JsonText;

/// The least room of a piece, and the most.
const LEAST: usize = 256;
const MOST: usize = 16 << 10;

/// The inside of a JSON string that waits.
#[derive(Debug, Default)]
pub(super) struct Waiting {
    pieces: Vec<Vec<u8>>,
    length: usize,
}

impl Waiting {
    pub(super) fn len(&self) -> usize {
        self.length
    }

    pub(super) fn is_empty(&self) -> bool {
        self.length == 0
    }

    pub(super) fn push(&mut self, text: JsonText<'_>) {
        let has_room = |piece: &Vec<u8>| piece.capacity() - piece.len() >= text.len();
        if !self.pieces.last().is_some_and(has_room) {
            let room = (self.length / 8).clamp(LEAST, MOST).max(text.len());
            self.pieces.push(Vec::with_capacity(room));
        }
        let Some(piece) = self.pieces.last_mut() else { return };
        let before = piece.len();
        text.write(piece);
        self.length += piece.len() - before;
    }

    /// Takes all of it, in one piece.
    pub(super) fn take(&mut self) -> Vec<u8> {
        self.length = 0;
        std::mem::take(&mut self.pieces).concat()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_pushed_is_taken_in_order_and_little_room_is_empty() {
        let mut waiting = Waiting::default();
        let texts: Vec<String> = (0..500).map(|number| format!("{number} ").repeat(number % 40)).collect();
        texts.iter().for_each(|text| waiting.push(JsonText::Raw(text)));
        let room: usize = waiting.pieces.iter().map(Vec::capacity).sum();
        assert_eq!(waiting.len(), texts.concat().len());
        assert!(room < waiting.len() * 4 / 3, "{room} of {}", waiting.len());
        assert_eq!(waiting.take(), texts.concat().into_bytes());
        assert!(waiting.is_empty() && waiting.take().is_empty());
    }
}
