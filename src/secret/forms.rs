//! The forms in which a key may come back: as it is, and in each usual encoding that changes it as a whole.
//!
//! What is written in the place of single characters (`%2D`, `\u002d`, `&#45;`) is [`super::spelling`]'s.

use std::collections::BTreeSet;

use zeroize::{Zeroize, Zeroizing};

/// RFC 4648, sections 4 to 7.
const BASE64: Code =
    Code { bits: 6, alphabet: b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/" };
const BASE64_URL: Code =
    Code { bits: 6, alphabet: b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_" };
const BASE32: Code = Code { bits: 5, alphabet: b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567" };
const BASE32_HEX: Code = Code { bits: 5, alphabet: b"0123456789ABCDEFGHIJKLMNOPQRSTUV" };
const HEX: Code = Code { bits: 4, alphabet: b"0123456789abcdef" };

/// One form of a key. It is wiped on drop.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct KeyForm {
    /// In lower case, where the case of its letters is open.
    text: Vec<u8>,
    /// Whether the case of its letters is open.
    folds: bool,
}

/// A key as it is, in whatever case.
pub(super) fn plain(key: &[u8]) -> KeyForm {
    KeyForm::of(key, true)
}

/// Every form of a key, each once.
pub(super) fn forms(key: &[u8]) -> BTreeSet<KeyForm> {
    let mut forms = once(key);
    for (inner, before) in [BASE64, BASE64_URL].iter().flat_map(|code| [(code, 0), (code, 1), (code, 2)]) {
        let inner = inner.aligned(key, before);
        // Base64 once more, wherever the first stands in what is encoded.
        for (outer, before) in
            [BASE64, BASE64_URL].iter().flat_map(|outer| [(outer, 0), (outer, 1), (outer, 2)])
        {
            let twice = outer.aligned(inner.core(), before);
            forms.insert(KeyForm::of(twice.core(), false));
        }
    }
    forms
}

/// Every form of a key that is encoded once at most.
pub(super) fn once(key: &[u8]) -> BTreeSet<KeyForm> {
    let mut forms = BTreeSet::new();
    let mut add = |text: &[u8], folds| {
        forms.insert(KeyForm::of(text, folds));
    };
    add(key, true);
    add(&HEX.aligned(key, 0).whole, true);
    for width in [2, 4] {
        add(&widened(key, width), true);
    }
    for code in [BASE32, BASE32_HEX] {
        for before in 0..5 {
            code.aligned(key, before).parts().for_each(|part| add(part, true));
        }
    }
    for code in [BASE64, BASE64_URL] {
        for before in 0..3 {
            code.aligned(key, before).parts().for_each(|part| add(part, false));
        }
    }
    forms
}

impl KeyForm {
    fn of(text: &[u8], folds: bool) -> Self {
        let text = if folds { text.to_ascii_lowercase() } else { text.to_vec() };
        Self { text, folds }
    }

    pub(super) fn text(&self) -> &[u8] {
        &self.text
    }

    /// Whether the case of its letters is open.
    pub(super) fn folds(&self) -> bool {
        self.folds
    }
}

impl Drop for KeyForm {
    fn drop(&mut self) {
        self.text.zeroize();
    }
}

/// A key in UTF-16 or UTF-32 without a byte order mark: either order has these bytes, from the first to the last that
/// is not zero.
fn widened(key: &[u8], width: usize) -> Zeroizing<Vec<u8>> {
    let mut text = Zeroizing::new(vec![0; (key.len() - 1) * width + 1]);
    for (place, byte) in text.iter_mut().step_by(width).zip(key) {
        *place = *byte;
    }
    text
}

/// An encoding in which each character stands for some bits.
struct Code {
    bits: usize,
    alphabet: &'static [u8],
}

/// A key encoded behind bytes of something else.
struct Aligned {
    whole: Zeroizing<Vec<u8>>,
    /// The characters that depend on the key alone: others hold bits of what stands before or behind it.
    core: std::ops::Range<usize>,
    /// Where the characters end, and padding begins.
    unpadded: usize,
}

impl Code {
    /// Encodes `before` zeros and the key. Where the key stands in what is encoded (Basic puts a user before it)
    /// decides which bits share a character.
    fn aligned(&self, key: &[u8], before: usize) -> Aligned {
        let mut whole = Zeroizing::new(Vec::with_capacity((before + key.len()) * 2 + 8));
        let (mut held, mut count) = (0_usize, 0);
        for byte in std::iter::repeat_n(&0, before).chain(key) {
            held = (held << 8 | usize::from(*byte)) & 0xffff;
            count += 8;
            while count >= self.bits {
                count -= self.bits;
                whole.push(self.character(held >> count));
            }
        }
        let core = (before * 8).div_ceil(self.bits)..whole.len();
        if count > 0 {
            whole.push(self.character(held << (self.bits - count)));
        }
        let unpadded = whole.len();
        while !(whole.len() * self.bits).is_multiple_of(8) {
            whole.push(b'=');
        }
        Aligned { whole, core, unpadded }
    }

    fn character(&self, bits: usize) -> u8 {
        self.alphabet[bits & ((1 << self.bits) - 1)]
    }
}

impl Aligned {
    fn core(&self) -> &[u8] {
        &self.whole[self.core.clone()]
    }

    /// The core alone, and where the key ends what is encoded, with the last character and the padding.
    fn parts(&self) -> impl Iterator<Item = &[u8]> {
        [self.core.end, self.unpadded, self.whole.len()]
            .into_iter()
            .map(|end| &self.whole[self.core.start..end])
    }
}
