//! The one form in which names are compared where a difference in writing must not matter.

use icu_normalizer::ComposingNormalizerBorrowed;
use icu_properties::CodePointSetData;
use icu_properties::props::DefaultIgnorableCodePoint;

/// Marks the dot that `İ` keeps in lower case; a Turkish reader drops it.
const DOT_ABOVE: char = '\u{307}';

/// NFKC and case folding (Unicode Standard, sections 3.11 and 3.13), without what cannot be seen: white space,
/// controls, default ignorables. Names that a person or a client could take for one another are one.
///
/// The case is folded more coarsely than Unicode's table has it: `ı` and `İ` are `i`, as for a Turkish client.
pub(crate) fn fold(text: &str) -> String {
    if text.is_ascii() {
        return text
            .bytes()
            .filter(u8::is_ascii_graphic)
            .map(|byte| char::from(byte.to_ascii_lowercase()))
            .collect();
    }
    let mut folded = text.to_owned();
    // Folding may undo a composition and composing may make a letter that folds: two rounds settle all but rarities.
    for _ in 0..MOST_ROUNDS {
        let next = round(&folded);
        if next == folded {
            break;
        }
        folded = next;
    }
    folded
}

/// After so many rounds a text is taken as it is; none is known that needs more than three.
const MOST_ROUNDS: usize = 5;

fn round(text: &str) -> String {
    let ignorable = CodePointSetData::new::<DefaultIgnorableCodePoint>();
    let normalizer = ComposingNormalizerBorrowed::new_nfkc();
    let mut folded = String::with_capacity(text.len());
    let visible = |c: &char| !c.is_whitespace() && !c.is_control() && !ignorable.contains(*c);
    for c in normalizer.normalize(text).chars().filter(visible).flat_map(lower) {
        if c != DOT_ABOVE || !folded.ends_with('i') {
            folded.push(c);
        }
    }
    normalizer.normalize(&folded).into_owned()
}

/// Lower, upper, and lower case again: letters that share a capital or a small form become one.
fn lower(c: char) -> impl Iterator<Item = char> {
    c.to_lowercase().flat_map(char::to_uppercase).flat_map(char::to_lowercase)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn names_that_look_alike_to_a_client_are_one() {
        let same = [
            "Bash",
            "bash",
            "BASH",
            "Ｂａｓｈ",
            "ｂａｓｈ",
            " Bash\t",
            "Ba\u{200b}sh",
            "Ba\u{ad}sh",
            "\u{feff}bash",
            "ba\u{0}sh",
            "𝓑𝓪𝓼𝓱",
            "Baſh",
            "ba\u{2060}s\u{fe0f}h",
            "ba\u{a0}sh",
        ];
        for name in same {
            assert_eq!(fold(name), "bash", "{name:?}");
        }
    }

    #[test]
    fn letters_fold_as_the_languages_of_their_clients_have_it() {
        assert_eq!(fold("FİLE"), "file", "a dotted capital");
        assert_eq!(fold("fıle"), "file", "a dotless small letter");
        assert_eq!(fold("\u{212a}elvin"), "kelvin", "the Kelvin sign");
        assert_eq!(fold("STRASSE"), fold("straße"));
        assert_eq!(fold("STRAẞE"), fold("straße"));
        assert_eq!(fold("ΣΊΣΥΦΟΣ"), fold("σίσυφος"), "a final sigma");
        assert_eq!(fold("cafe\u{301}"), fold("CAFÉ"), "composed and decomposed");
        assert_eq!(fold("ﬁle"), "file", "a ligature");
    }

    #[test]
    fn other_names_stay_others() {
        assert_eq!(fold("mcp__Shell__run-it"), "mcp__shell__run-it");
        assert_ne!(fold("Bаsh"), "bash", "a Cyrillic letter is no Latin one: NFKC keeps scripts apart");
        assert_ne!(fold("bash2"), "bash");
    }

    #[test]
    fn every_letter_is_folded_once_and_for_all() {
        // Beyond are ideographs that nothing is done to, and planes without characters.
        for c in ('\0'..='\u{2ffff}').chain('\u{e0000}'..='\u{e0fff}') {
            let once = fold(&c.to_string());
            assert_eq!(fold(&once), once, "{:04x}", u32::from(c));
        }
    }

    #[test]
    fn what_differs_in_case_alone_folds_to_one() {
        let differs = |c: &char| !c.to_lowercase().eq([*c]) || !c.to_uppercase().eq([*c]);
        for c in ('\0'..=char::MAX).filter(differs) {
            let folded = fold(&c.to_string());
            for other in [c.to_lowercase().to_string(), c.to_uppercase().to_string()] {
                assert_eq!(fold(&other), folded, "{:04x} and {other:?}", u32::from(c));
            }
        }
    }

    proptest! {
        #[test]
        fn folding_twice_is_folding_once(text in "\\PC{0,24}") {
            let once = fold(&text);
            prop_assert_eq!(fold(&once), once);
        }

        #[test]
        fn plain_names_fold_to_lower_case(text in "[!-~]{0,40}") {
            prop_assert_eq!(fold(&text), text.to_ascii_lowercase());
        }
    }
}
