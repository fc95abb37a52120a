//! Asks of 64 bytes at once which of them are in a set.

/// So many bytes are asked at once.
pub(crate) const BLOCK: usize = 64;

/// A bit for each byte of a block, the first one lowest: whether `is_in` says 1 of it, and not 0. It has no branches and no
/// table, so that compilers make it a few wide instructions where `is_in` has none either.
#[inline]
pub(crate) fn mask_of(block: &[u8; BLOCK], is_in: impl Fn(u8) -> u8) -> u64 {
    /// Multiplied by this, the lowest bits of eight bytes stand together in the highest byte.
    const GATHER: u64 = 0x0102_0408_1020_4080;
    let gathered = |eight: &[u8; 8]| u64::from_le_bytes(*eight).wrapping_mul(GATHER) >> 56;
    block.as_chunks::<16>().0.iter().rev().fold(0, |mask, bytes| {
        let mut are_in = [0; 16];
        are_in.iter_mut().zip(bytes).for_each(|(to, byte)| *to = is_in(*byte));
        let (eights, _) = are_in.as_chunks::<8>();
        eights.iter().rev().fold(mask, |mask, eight| mask << 8 | gathered(eight))
    })
}

/// The whole blocks of a text, and its end with zeros behind it.
pub(crate) fn blocks(text: &[u8]) -> impl Iterator<Item = [u8; BLOCK]> + '_ {
    let (blocks, last) = text.as_chunks::<BLOCK>();
    let mut end = [0; BLOCK];
    end.iter_mut().zip(last).for_each(|(to, from)| *to = *from);
    blocks.iter().copied().chain([end])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_byte_has_its_bit() {
        let text: Vec<u8> = (0..150).collect();
        let found: Vec<usize> = blocks(&text)
            .enumerate()
            .flat_map(|(number, block)| {
                let mask = mask_of(&block, |byte| u8::from(byte % 7 == 3));
                (0..BLOCK).filter(move |at| mask >> at & 1 == 1).map(move |at| number * BLOCK + at)
            })
            .collect();
        assert_eq!(found, (0..150).filter(|byte| byte % 7 == 3).collect::<Vec<usize>>());
    }
}
