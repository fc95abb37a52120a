//! Tests of the search for forms against one that looks at every place, and of lists of forms and spellings.

use std::ops::Range;

use proptest::prelude::*;
use proptest::sample::Index;

use super::super::sorted::GAPS;
use super::super::spelling::{Spelled, is_introducer, spellings};
use super::*;

/// The same search, slow and obvious: each form is compared at each place of a text.
fn everywhere(forms: &BTreeSet<KeyForm>, text: &[u8], is_last: bool) -> Vec<KeyMatch> {
    let mut found = Vec::new();
    for start in 0..text.len() {
        let mut seen = FormsSeen::default();
        forms.iter().for_each(|form| compare(form, &text[start..], &mut seen));
        found.extend(seen.longest.map(|length| KeyMatch::Whole { start, end: start + length }));
        found.extend((seen.is_begun && !is_last).then_some(KeyMatch::Begun { start }));
    }
    found
}

fn accepts(form: &KeyForm, want: u8, byte: u8) -> bool {
    want == byte || form.folds() && want.eq_ignore_ascii_case(&byte)
}

fn compare(form: &KeyForm, text: &[u8], seen: &mut FormsSeen) {
    let cannot_begin = |byte: &u8| !is_introducer(*byte) && !accepts(form, form.text()[0], *byte);
    if text.first().is_some_and(cannot_begin) {
        return;
    }
    let mut places = vec![0];
    for (at, &want) in form.text().iter().enumerate() {
        let mut next = Vec::new();
        for place in places {
            seen.is_begun |= step((form, want), text, place, if at > 0 { GAPS } else { 0 }, &mut next);
        }
        if next.is_empty() {
            return;
        }
        next.sort_unstable();
        next.dedup();
        places = next;
    }
    seen.longest = seen.longest.max(places.last().copied());
}

/// Adds the places where this byte of a form may end; returns whether the text ends before that is known.
fn step(form: (&KeyForm, u8), text: &[u8], place: usize, gaps: usize, next: &mut Vec<usize>) -> bool {
    let Some(&byte) = text.get(place) else { return true };
    if accepts(form.0, form.1, byte) {
        next.push(place + 1);
    }
    if !is_introducer(byte) {
        return false;
    }
    let mut behind = Vec::new();
    let is_cut = spellings(&text[place..], &mut |spelled| match spelled {
        Spelled::Byte(byte, length) if accepts(form.0, form.1, byte) => next.push(place + length),
        Spelled::Byte(..) => {}
        Spelled::Gap(length) => behind.push(place + length),
    });
    let is_allowed = gaps > 0 && (gaps == GAPS || !matches!(byte, b'\r' | b'\n'));
    let behind = behind.into_iter().filter(|_| is_allowed);
    behind.fold(is_cut, |is_cut, place| is_cut | step(form, text, place, gaps - 1, next))
}

fn found(matcher: &SecretMatcher, text: &[u8], is_last: bool) -> Vec<KeyMatch> {
    let is_wanted = |found: &KeyMatch| !is_last || matches!(found, KeyMatch::Whole { .. });
    matcher.find(text, is_last).filter(is_wanted).collect()
}

/// Ways to write one character of a form.
const WAYS: [fn(u8) -> String; 24] = [
    |byte| char::from(byte).to_string(),
    |byte| format!("%{byte:02x}"),
    |byte| format!("%25{byte:02X}"),
    |byte| format!("%252525{byte:02X}"),
    |byte| format!("%u{byte:04x}"),
    |byte| format!("&#{byte};"),
    |byte| format!("&#{byte}"),
    |byte| format!("&#x00{byte:02x};"),
    |byte| format!("={byte:02X}"),
    |byte| format!("\\u{byte:04x}"),
    |byte| format!("\\U{byte:08x}"),
    |byte| format!("\\u{{{byte:x}}}"),
    |byte| format!("\\x{byte:02x}"),
    |byte| format!("\\{byte:03o}"),
    |byte| format!("\\{}", char::from(byte)),
    |byte| format!("\\\\{}", char::from(byte)),
    |byte| char::from(byte.to_ascii_uppercase()).to_string(),
    |byte| format!("\n{}", char::from(byte)),
    |byte| format!("\r\n{}", char::from(byte)),
    |byte| format!("=\r\n{}", char::from(byte)),
    |byte| format!("=\n={byte:02x}"),
    |byte| format!("\\n\\r{}", char::from(byte)),
    |byte| format!("%0a\\\n&NewLine;&#{byte};"),
    |byte| format!("\n\n{}", char::from(byte)),
];

/// A part of a form, with some of its characters written otherwise, and what follows.
#[derive(Debug, Clone)]
struct Part {
    form: Index,
    cut: Range<usize>,
    ways: Vec<(usize, usize)>,
    behind: String,
}

impl Part {
    fn write(&self, forms: &BTreeSet<KeyForm>, text: &mut Vec<u8>) {
        let form: Vec<u8> = self.form.get(&forms.iter().collect::<Vec<_>>()).text().to_vec();
        let cut = self.cut.start.min(form.len())
            ..form.len() - self.cut.end.min(form.len() - self.cut.start.min(form.len()));
        let cut = cut.start..cut.end.max(cut.start);
        for (at, byte) in form[cut].iter().enumerate() {
            let way = self.ways.iter().find(|(place, _)| *place == at).map_or(0, |(_, way)| *way);
            text.extend(WAYS[way](*byte).into_bytes());
        }
        text.extend(self.behind.bytes());
    }
}

fn part() -> impl Strategy<Value = Part> {
    let cut =
        (0_usize..12, 0_usize..12).prop_map(|(start, end)| start.saturating_sub(9)..end.saturating_sub(6));
    let ways = proptest::collection::vec((0_usize..40, 0..WAYS.len()), 0..6);
    let behind = prop_oneof![
        3 => "[ -~]{0,3}",
        1 => "[%&=\\\\\r\n0-9a-f#;ux]{0,12}",
        1 => Just("x".repeat(5000)),
        1 => Just(" ".repeat(4070)),
    ];
    (any::<Index>(), cut, ways, behind).prop_map(|(form, cut, ways, behind)| Part { form, cut, ways, behind })
}

fn secret() -> impl Strategy<Value = String> {
    prop_oneof!["[a-z0-9]{8,14}", "sk-[a-zA-Z0-9]{20,45}", "[ab=%&\\\\n2]{8,24}", "[!-~]{8,40}", "[ab]{8,9}"]
}

fn shared(keys: &[String]) -> Vec<Arc<Secret>> {
    keys.iter().map(|key| Arc::new(Secret::parse(key.as_bytes()).unwrap())).collect()
}

proptest! {
    #[test]
    fn a_text_has_the_matches_that_are_found_at_each_place_of_it(
        keys in proptest::collection::vec(secret(), 1..4),
        is_shallow in any::<bool>(),
        parts in proptest::collection::vec(part(), 1..5),
        cut in any::<Index>(),
    ) {
        let keys = shared(&keys);
        let of = if is_shallow { once } else { forms };
        let all = || keys.iter().flat_map(|key| of(key.expose())).collect::<BTreeSet<KeyForm>>();
        let (matcher, forms) = (SecretMatcher::of(all()), all());
        let mut text = Vec::new();
        parts.iter().for_each(|part| part.write(&forms, &mut text));
        text.truncate(text.len() - cut.index(text.len().clamp(1, 30)));
        prop_assert_eq!(found(&matcher, &text, true), everywhere(&forms, &text, true));
        prop_assert_eq!(found(&matcher, &text, false), everywhere(&forms, &text, false));
    }

    #[test]
    fn noise_has_the_matches_that_are_found_at_each_place_of_it(
        key in secret(),
        text in prop_oneof!["[ab=%&\\\\n2#;x0-9\r\n]{0,200}", "(a|b|n|2|%61|%62|\\\\|=|\n|&#9[78];?|=\n|\\\\n|\\\\x6[12]){0,80}"],
    ) {
        let key = Secret::parse(key.as_bytes()).unwrap();
        let (matcher, forms) = (SecretMatcher::of(once(key.expose())), once(key.expose()));
        prop_assert_eq!(found(&matcher, text.as_bytes(), true), everywhere(&forms, text.as_bytes(), true));
        prop_assert_eq!(found(&matcher, text.as_bytes(), false), everywhere(&forms, text.as_bytes(), false));
    }
}

#[test]
fn each_form_is_found_in_each_spelling() {
    let keys = shared(&["sk-live-4eC39HqLyjWDarjtT1zdp7dc".to_owned(), "p%s=w&rd".to_owned()]);
    let all: BTreeSet<KeyForm> = keys.iter().flat_map(|key| forms(key.expose())).collect();
    let matcher = SecretMatcher::new(&keys);
    for form in &all {
        for way in WAYS.iter().take(WAYS.len() - 1) {
            for places in [0..1, 1..2, 3..4, 7..8, 6..9, 0..form.text().len()] {
                let mut text = b"before ".to_vec();
                for (at, byte) in form.text().iter().enumerate() {
                    let is_written = places.contains(&at) && (at > 0 || !way(b'-').ends_with('-'));
                    let way = if is_written { way } else { &WAYS[0] };
                    text.extend(way(*byte).into_bytes());
                }
                let expected = everywhere(&all, &text, true);
                assert_eq!(found(&matcher, &text, true), expected, "{}", String::from_utf8_lossy(&text));
            }
        }
    }
}

/// Spellings that people and programs write, each with a key in it.
#[test]
fn a_key_is_found_as_programs_write_it() {
    let matcher = SecretMatcher::new(&shared(&["sk-live/0001+abcd".to_owned()]));
    for text in [
        "key: sk-live/0001+abcd.",
        "SK-LIVE/0001+ABCD",
        "?key=sk-live%2F0001%2Babcd&x=1",
        "?key=sk-live%252f0001%252babcd",
        r"sk-live\/0001+abcd",
        r"sk-live\\\/0001+abcd",
        r"\u0073k-live\u002f0001+abcd",
        r"\x73\x6b-live/0001+abcd",
        r"\163k-live/0001+abcd",
        r"\U00000073k-live/0001+abcd",
        r"\u{73}k-live/0001+abcd",
        "&#115;k-live&sol;0001&plus;abcd",
        "&#x73;k&#x2d;live&#47;0001+abcd",
        "%u0073k-live/0001+abcd",
        "=73k-live/0001+abcd",
        "sk-live=2F0001=2Babcd",
        "sk-li=\r\nve/0001+abcd",
        "sk-li\nve/0001+abcd",
        "sk-li\r\nve/0001+abcd",
        r"sk-li\nve/0001+abcd",
        r"sk-li\r\nve/0001+abcd",
        "sk-li\\\nve/0001+abcd",
        "sk-li%0D%0Ave/0001+abcd",
        "s\u{0}k\u{0}-\u{0}l\u{0}i\u{0}v\u{0}e\u{0}/\u{0}0\u{0}0\u{0}0\u{0}1\u{0}+\u{0}a\u{0}b\u{0}c\u{0}d\u{0}",
        "c2stbGl2ZS8wMDAxK2FiY2Q=",
        "c2stbGl2ZS8w\nMDAxK2FiY2Q=",
        "YzJzdGJHbDJaUzh3TURBeEsyRmlZMlE9",
        "736b2d6c6976652f303030312b61626364",
        "ONVS23DJOZSS6MBQGAYSWYLCMNSA",
    ] {
        let whole = |found: &KeyMatch| matches!(found, KeyMatch::Whole { .. });
        assert!(matcher.find(text.as_bytes(), true).any(|found| whole(&found)), "{text:?}");
        let half = text.len() * 2 / 3;
        if text.is_char_boundary(half) {
            let begun = |found: &KeyMatch| matches!(found, KeyMatch::Begun { .. });
            assert!(matcher.find(&text.as_bytes()[..half], false).any(|found| begun(&found)), "{text:?}");
        }
    }
}

#[test]
fn a_form_over_the_border_of_two_parts_is_found_once() {
    let keys = shared(&["sk-live/0001+abcdefghijklmnopqrstuv".to_owned()]);
    let (matcher, all) = (SecretMatcher::new(&keys), forms(keys[0].expose()));
    for text in ["sk-live/0001+abcdefghijklmnopqrstuv", "sk%2dlive/0001\n+abcdefghijklmnopqrstu%76"] {
        for before in 0..text.len() + 2 {
            for cut in [0, 1, 3, text.len() / 2, text.len() - 4] {
                let text = [&b" ".repeat(PART - before), &text.as_bytes()[..text.len() - cut]].concat();
                assert_eq!(found(&matcher, &text, true), everywhere(&all, &text, true), "{before} {cut}");
                assert_eq!(found(&matcher, &text, false), everywhere(&all, &text, false), "{before} {cut}");
            }
        }
    }
}
