//! A hash for tables that are written in the source, of which several are asked for each command.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// A table of which nobody outside chooses the keys, so that none can be made that collide.
pub(super) type Table<V> = HashMap<&'static str, V, BuildHasherDefault<TableHasher>>;

#[derive(Default)]
pub(super) struct TableHasher(u64);

impl Hasher for TableHasher {
    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let number = chunk.iter().fold(0, |number, byte| number << 8 | u64::from(*byte));
            // The multiplication of FxHash, which moves what differs to the upper bits.
            self.0 = (self.0.rotate_left(5) ^ number).wrapping_mul(0x517c_c1b7_2722_0a95);
        }
    }

    fn finish(&self) -> u64 {
        // Tables look at the lower bits first.
        self.0.rotate_left(26)
    }
}
