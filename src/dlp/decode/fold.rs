//! Characters that look like others, and those that nobody sees.

use icu_normalizer::ComposingNormalizerBorrowed;
use icu_properties::CodePointSetData;
use icu_properties::props::DefaultIgnorableCodePoint;

use super::{Coding, Origin, Part, Room, Steps};

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

pub(super) fn decode(text: &[u8], room: &Room, parts: &mut Vec<Part>) {
    if text.is_ascii() || text.len() > room.bytes {
        return;
    }
    let Ok(text) = std::str::from_utf8(text) else { return };
    let ignorable = CodePointSetData::new::<DefaultIgnorableCodePoint>();
    let normalizer = ComposingNormalizerBorrowed::new_nfkc();
    let (mut bytes, mut steps, mut is_changed) = (Vec::with_capacity(text.len()), Steps::default(), false);
    let mut buffer = [0; 4];
    for (at, character) in text.char_indices() {
        if character.is_ascii() {
            bytes.push(character as u8);
            continue;
        }
        let begin = bytes.len();
        steps.add(begin, at);
        if ignorable.contains(character) {
            is_changed = true;
        } else {
            let alike = LOOK_ALIKES.iter().find(|(written, _)| *written == character);
            let alike = alike.map_or(character, |(_, alike)| *alike);
            bytes.extend(normalizer.normalize(alike.encode_utf8(&mut buffer)).bytes());
            is_changed |= bytes[begin..].is_ascii();
        }
        steps.add(bytes.len(), at + character.len_utf8());
    }
    if is_changed {
        parts.push(Part { coding: Coding::Unicode, bytes, origin: Origin::Steps(steps) });
    }
}
