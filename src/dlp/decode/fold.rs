//! Characters that look like others, and those that nobody sees.

use std::sync::LazyLock;

use icu_normalizer::ComposingNormalizerBorrowed;
use icu_properties::CodePointSetData;
use icu_properties::props::DefaultIgnorableCodePoint;

use super::assembly::{Assembly, CONTEXT};
use super::{BoundReached, Coding, Parts, Source};
use crate::dlp::runs::{LEAST, TOKEN};

/// Letters of Cyrillic and Greek that look like Latin ones (Unicode TR 39, confusables.txt), and signs like these of ASCII.
const LOOK_ALIKES: &[(char, char)] = &[
    ('а', 'a'),
    ('с', 'c'),
    ('ԁ', 'd'),
    ('е', 'e'),
    ('һ', 'h'),
    ('і', 'i'),
    ('ј', 'j'),
    ('ӏ', 'l'),
    ('о', 'o'),
    ('р', 'p'),
    ('ԛ', 'q'),
    ('ѕ', 's'),
    ('ԝ', 'w'),
    ('х', 'x'),
    ('у', 'y'),
    ('А', 'A'),
    ('В', 'B'),
    ('С', 'C'),
    ('Е', 'E'),
    ('Н', 'H'),
    ('І', 'I'),
    ('Ј', 'J'),
    ('К', 'K'),
    ('М', 'M'),
    ('О', 'O'),
    ('Р', 'P'),
    ('Ѕ', 'S'),
    ('Т', 'T'),
    ('Х', 'X'),
    ('У', 'Y'),
    ('α', 'a'),
    ('ο', 'o'),
    ('ρ', 'p'),
    ('ν', 'v'),
    ('ι', 'i'),
    ('κ', 'k'),
    ('Α', 'A'),
    ('Β', 'B'),
    ('Ε', 'E'),
    ('Ζ', 'Z'),
    ('Η', 'H'),
    ('Ι', 'I'),
    ('Κ', 'K'),
    ('Μ', 'M'),
    ('Ν', 'N'),
    ('Ο', 'O'),
    ('Ρ', 'P'),
    ('Τ', 'T'),
    ('Υ', 'Y'),
    ('Χ', 'X'),
    ('‐', '-'),
    ('‑', '-'),
    ('‒', '-'),
    ('–', '-'),
    ('—', '-'),
    ('−', '-'),
    ('ˍ', '_'),
    ('․', '.'),
    ('∕', '/'),
    ('⁄', '/'),
];

/// What a character is folded to: so many bytes of ASCII.
#[derive(Clone, Copy)]
struct Folded {
    bytes: [u8; 4],
    count: u8,
}

/// The characters of a block.
const BLOCK: usize = 256;

/// Blocks with characters that NFKC makes ASCII (Unicode 17).
const COMPATIBLE: &[u32] = &[
    0x00, 0x01, 0x02, 0x03, 0x1d, 0x1e, 0x1f, 0x20, 0x21, 0x22, 0x24, 0x2c, 0x30, 0x32, 0x33, 0xa7, 0xab,
    0xfb, 0xfe, 0xff, 0x107, 0x1cc, 0x1d4, 0x1d5, 0x1d6, 0x1d7, 0x1f1, 0x1fb,
];

/// What characters are folded to, by blocks.
struct Folds(Vec<Option<Box<[Option<Folded>; BLOCK]>>>);

static FOLDS: LazyLock<Folds> = LazyLock::new(Folds::read);

impl Folds {
    fn read() -> Self {
        let mut folds = Self(vec![None; char::MAX as usize / BLOCK + 1]);
        let normalizer = ComposingNormalizerBorrowed::new_nfkc();
        let compatible = COMPATIBLE.iter().flat_map(|block| {
            let first = block * BLOCK as u32;
            (first..first + BLOCK as u32).filter_map(char::from_u32)
        });
        let mut buffer = [0; 4];
        for character in compatible.chain(LOOK_ALIKES.iter().map(|(written, _)| *written)) {
            let written: &str = character.encode_utf8(&mut buffer);
            let text: String = normalizer.normalize(written).chars().map(alike).collect();
            let mut bytes = [0; 4];
            if let Some(place) = bytes.get_mut(..text.len()).filter(|_| text.is_ascii()) {
                place.copy_from_slice(text.as_bytes());
                folds.add(character, Folded { bytes, count: text.len() as u8 });
            }
        }
        for range in CodePointSetData::new::<DefaultIgnorableCodePoint>().iter_ranges() {
            for character in range.filter_map(char::from_u32) {
                folds.add(character, Folded { bytes: [0; 4], count: 0 });
            }
        }
        folds
    }

    fn add(&mut self, character: char, folded: Folded) {
        let at = character as usize;
        if let Some(block) = self.0.get_mut(at / BLOCK) {
            block.get_or_insert_with(|| Box::new([None; BLOCK]))[at % BLOCK] = Some(folded);
        }
    }

    fn of(&self, character: char) -> Option<Folded> {
        let at = character as usize;
        self.0.get(at / BLOCK)?.as_ref()?[at % BLOCK]
    }
}

fn alike(character: char) -> char {
    LOOK_ALIKES.iter().find(|(written, _)| *written == character).map_or(character, |(_, alike)| *alike)
}

/// Whether a byte of ASCII stands in a run that is folded: tokens, and the first line of a key.
fn goes_on(byte: u8) -> bool {
    TOKEN[usize::from(byte)] || matches!(byte, b' ' | b':')
}

pub(super) fn decode(source: &Source<'_>, parts: &mut Parts<'_>) -> Result<(), BoundReached> {
    if other(source.text, 0).is_none() {
        return Ok(());
    }
    let mut assembly = Assembly::default();
    if let Ok(text) = std::str::from_utf8(source.text) {
        fold(text, 0, &mut assembly);
    } else {
        let mut at = 0;
        for chunk in source.text.utf8_chunks() {
            fold(chunk.valid(), at, &mut assembly);
            at += chunk.valid().len() + chunk.invalid().len();
        }
    }
    if assembly.bytes.is_empty() {
        return Ok(());
    }
    let (bytes, origin) = assembly.into_part();
    parts.add(Coding::Unicode, bytes, origin)
}

/// So many bytes are looked at together.
const TOGETHER: usize = 64;

/// The next byte from there on that is none of ASCII.
fn other(bytes: &[u8], mut at: usize) -> Option<usize> {
    while let Some(block) = bytes.get(at..at + TOGETHER) {
        if !block.is_ascii() {
            break;
        }
        at += TOGETHER;
    }
    let rest = bytes.get(at..)?;
    rest.iter().position(|byte| !byte.is_ascii()).map(|length| at + length)
}

/// Folds the runs of a text in which there is something to be folded.
fn fold(text: &str, base: usize, assembly: &mut Assembly) {
    let bytes = text.as_bytes();
    let mut done = 0;
    let mut at = 0;
    while let Some(next) = other(bytes, at) {
        at = next;
        let Some(character) = text.get(at..).and_then(|rest| rest.chars().next()) else { return };
        if FOLDS.of(character).is_none() {
            at += character.len_utf8();
            continue;
        }
        let before = bytes.get(done..at).unwrap_or_default();
        let start = at - before.iter().rev().take_while(|byte| goes_on(**byte)).count();
        let (end, count) = extent(text, start);
        if count >= LEAST {
            let mut from = start.saturating_sub(CONTEXT).max(done);
            while !text.is_char_boundary(from) {
                from += 1;
            }
            assembly.begin(base + from);
            assembly.copy(bytes.get(from..start).unwrap_or_default());
            write(text.get(start..end).unwrap_or_default(), base + start, assembly);
        }
        done = end;
        at = end;
    }
}

/// Where a run ends that begins there, and how many bytes it is folded to.
fn extent(text: &str, start: usize) -> (usize, usize) {
    let (mut end, mut count) = (start, 0);
    for character in text.get(start..).unwrap_or_default().chars() {
        match u8::try_from(character).ok().filter(u8::is_ascii) {
            Some(byte) if goes_on(byte) => count += 1,
            Some(_) => break,
            None => match FOLDS.of(character) {
                Some(folded) => count += usize::from(folded.count),
                None => break,
            },
        }
        end += character.len_utf8();
    }
    (end, count)
}

fn write(run: &str, base: usize, assembly: &mut Assembly) {
    let mut copied = 0;
    for (at, character) in run.char_indices().filter(|(_, character)| !character.is_ascii()) {
        assembly.copy(run.as_bytes().get(copied..at).unwrap_or_default());
        copied = at + character.len_utf8();
        if let Some(Folded { bytes, count }) = FOLDS.of(character) {
            assembly.replace(base + at, bytes.get(..usize::from(count)).unwrap_or_default(), base + copied);
        }
    }
    assembly.copy(run.as_bytes().get(copied..).unwrap_or_default());
}
