//! The one form in which names are compared where a difference in writing must not matter.

use icu_normalizer::ComposingNormalizerBorrowed;
use icu_properties::CodePointSetData;
use icu_properties::props::DefaultIgnorableCodePoint;
use serde_json::{Map, Value};

/// Marks the dot that `İ` keeps in lower case; a Turkish reader drops it.
const DOT_ABOVE: char = '\u{307}';

/// NFKC and case folding (Unicode Standard, sections 3.11 and 3.13), without what cannot be seen: white space,
/// controls, default ignorables. Names that a person or a client could take for one another are one.
///
/// The case is folded more coarsely than Unicode's table has it: `ı` and `İ` are `i`, as for a Turkish client.
pub(crate) fn fold(text: &str) -> String {
    if text.is_ascii() {
        return visible(text).map(char::from).collect();
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

/// Whether a key of a protocol is this name, but in another case. Go's `encoding/json`, Jackson and C# can be told to
/// read such a key, or do so by default; none of them normalizes. Allocates nothing.
pub(crate) fn is_other_case(key: &str, name: &str) -> bool {
    // Nearly every key is another name by its first letter.
    let first = |text: &str| text.as_bytes().first().copied().unwrap_or_default();
    if first(key).is_ascii() && !first(key).eq_ignore_ascii_case(&first(name)) {
        return false;
    }
    if key.len() == name.len() && key.eq_ignore_ascii_case(name) {
        return key != name;
    }
    if key.is_ascii() {
        return false;
    }
    let folded = |c: char| match c {
        '\u{17f}' => 's',
        '\u{212a}' => 'k',
        '\u{131}' | '\u{130}' => 'i',
        other => other.to_ascii_lowercase(),
    };
    key.chars().map(folded).eq(name.chars().map(folded))
}

/// What an object has under a name.
#[derive(Debug, PartialEq)]
pub(crate) enum Member<'a> {
    Missing,
    Exact(&'a Value),
    /// One key that folds to the name without being it: some readers take it for the name, others find nothing.
    Respelled(&'a str, &'a Value),
    /// Several keys fold to the name, and readers differ in which one they take. Also more keys that are not ASCII
    /// than are looked at.
    Several(Vec<&'a Value>),
}

/// The most keys of one object that are folded in full: each costs an allocation, for each name.
const MOST_FOREIGN: usize = 256;

/// Finds what an object has under a name, for readers that compare keys exactly and for those that fold them.
pub(crate) fn member<'a>(object: &'a Map<String, Value>, name: &str) -> Member<'a> {
    let mut folded = None;
    let (mut found, mut foreign) = (Vec::new(), 0);
    for (key, value) in object {
        let is_alike = if key == name {
            true
        } else if key.is_ascii() && name.is_ascii() {
            visible(key).eq(visible(name))
        } else {
            foreign += 1;
            if foreign > MOST_FOREIGN {
                return Member::Several(Vec::new());
            }
            fold(key) == *folded.get_or_insert_with(|| fold(name))
        };
        if is_alike {
            found.push((key, value));
        }
    }
    match found.as_slice() {
        [] => Member::Missing,
        [(key, value)] if *key == name => Member::Exact(value),
        [(key, value)] => Member::Respelled(key, value),
        _ => Member::Several(found.into_iter().map(|(_, value)| value).collect()),
    }
}

/// The form of an ASCII text, byte by byte.
fn visible(text: &str) -> impl Iterator<Item = u8> {
    text.bytes().filter(u8::is_ascii_graphic).map(|byte| byte.to_ascii_lowercase())
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

    #[test]
    fn a_key_in_another_case_is_known_by_what_readers_fold() {
        for key in ["Type", "TYPE", "tYpe"] {
            assert!(is_other_case(key, "type"), "{key}");
        }
        assert!(is_other_case("toolu\u{17f}e", "toolUse"));
        assert!(is_other_case("TO\u{212a}EN", "token") && is_other_case("\u{131}d", "id"));
        for key in ["type", "types", "typ", "ty pe", "t\u{435}pe"] {
            assert!(!is_other_case(key, "type"), "{key}");
        }
    }

    #[test]
    fn a_member_is_found_under_every_spelling_that_folds_to_its_name() {
        let member_of = |json: &str| {
            let json: Value = serde_json::from_str(json).unwrap();
            match member(json.as_object().unwrap(), "file_path") {
                Member::Missing => "missing".to_owned(),
                Member::Exact(value) => format!("exact {value}"),
                Member::Respelled(key, value) => format!("{key} {value}"),
                Member::Several(values) => format!("several {}", values.len()),
            }
        };
        assert_eq!(member_of(r#"{"file_path":1,"path":2}"#), "exact 1");
        assert_eq!(member_of(r#"{"File_Path":1}"#), "File_Path 1");
        assert_eq!(member_of(r#"{"filePath":1,"file-path":2}"#), "missing");
        assert_eq!(member_of(r#"{"file_path":1,"FILE_PATH":2}"#), "several 2");
        assert_eq!(member_of(r#"{"file_path":1,"f\u0131le_path":2,"file_path ":3}"#), "several 3");
        assert_eq!(member_of(r#"{"ﬁle_path":1}"#), "ﬁle_path 1");
        let many: Map<String, Value> = (0..=MOST_FOREIGN).map(|n| (format!("é{n}"), Value::Null)).collect();
        assert_eq!(member(&many, "file_path"), Member::Several(Vec::new()));
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
