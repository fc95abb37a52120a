//! Tests of the search against one that looks at every place.

use base64::Engine as _;
use base64::prelude::{BASE64_STANDARD, BASE64_URL_SAFE_NO_PAD};
use proptest::prelude::*;

use super::*;

const KEYS: [&str; 4] = [r#"sk-ant/a=03+Zq9"7\_~K="#, "abcdefgh", "aaaaaaaab", "x&#45;%2D=\\n\\q"];

fn matcher(is_shallow: bool) -> SecretMatcher {
    let secrets: Vec<_> = KEYS.iter().map(|key| Arc::new(Secret::parse(key.as_bytes()).unwrap())).collect();
    if is_shallow {
        SecretMatcher::shallow(&secrets[..3], &secrets[3..])
    } else {
        SecretMatcher::new(&secrets)
    }
}

/// What stands at every place, and nothing passed over.
fn slowly(matcher: &SecretMatcher, text: &[u8]) -> Vec<KeyMatch> {
    let at = |start: usize| {
        let rest = &text[start..];
        let mut seen = FormsSeen::default();
        matcher.forms.iter().for_each(|form| compare(form, rest, &mut seen));
        seen.longest.map(|length| KeyMatch::Whole { start, end: start + length })
    };
    (0..text.len()).filter_map(at).collect()
}

fn wholes(matcher: &SecretMatcher, text: &[u8], is_last: bool) -> Vec<KeyMatch> {
    let found = matcher.find(text, is_last);
    found.filter(|found| matches!(found, KeyMatch::Whole { .. })).collect()
}

/// One of the ways in which a character may be written.
fn spelled(byte: u8, way: usize) -> String {
    match way {
        0 => format!("%{byte:02X}"),
        1 => format!("%25{byte:02x}"),
        2 => format!("&#{byte};"),
        3 => format!("&#x{byte:x}"),
        4 => format!("\\u{byte:04x}"),
        5 => format!("\\x{byte:02x}"),
        6 => format!("={byte:02X}"),
        7 => format!("\n{}", char::from(byte)),
        8 => format!("\r\n\r\n{}", char::from(byte)),
        9 => format!("=\r\n{}", char::from(byte)),
        10 => format!("\\n{}", char::from(byte)),
        13 => format!("\r\n{}", char::from(byte)),
        11 => format!("%0A%0D{}", char::from(byte)),
        12 => char::from(byte).to_ascii_uppercase().to_string(),
        _ => char::from(byte).to_string(),
    }
}

fn form(key: usize, way: usize) -> Vec<u8> {
    let key = KEYS[key].as_bytes();
    match way {
        0 => BASE64_STANDARD.encode(key).into_bytes(),
        1 => BASE64_URL_SAFE_NO_PAD.encode([b"x", key, b"yz"].concat()).into_bytes(),
        2 => key.iter().flat_map(|byte| format!("{byte:02x}").into_bytes()).collect(),
        3 => key.iter().flat_map(|byte| [*byte, 0]).collect(),
        4 => BASE64_STANDARD.encode(BASE64_STANDARD.encode(key)).into_bytes(),
        _ => key.to_vec(),
    }
}

proptest! {
    #[test]
    fn the_search_finds_what_a_look_at_every_place_finds(
        parts in prop::collection::vec(
            (0_usize..4, 0_usize..9, prop::collection::vec(0_usize..40, 0..60), 0_usize..99, "[ -~\r\n%&=\\\\]{0,9}"),
            0..5,
        ),
        is_shallow: bool,
    ) {
        let matcher = matcher(is_shallow);
        let mut text = Vec::new();
        for (key, way, spellings, cut, between) in parts {
            let form = form(key, way);
            let kept = if cut < 60 { form.len() } else { form.len() * (cut - 60) / 40 };
            for (at, byte) in form.iter().take(kept).enumerate() {
                match spellings.get(at).filter(|_| byte.is_ascii_graphic()) {
                    Some(way) => text.extend(spelled(*byte, *way).into_bytes()),
                    None => text.push(*byte),
                }
            }
            text.extend(between.into_bytes());
        }
        let slow = slowly(&matcher, &text);
        prop_assert_eq!(&wholes(&matcher, &text, true), &slow);
        prop_assert_eq!(&wholes(&matcher, &text, false), &slow);
    }
}

#[test]
fn a_key_is_found_with_any_one_character_spelled_in_any_way() {
    for is_shallow in [false, true] {
        let matcher = matcher(is_shallow);
        for key in KEYS {
            for (at, byte) in key.bytes().enumerate() {
                for way in 0..15 {
                    let text = format!("a {}{}{} z", &key[..at], spelled(byte, way), &key[at + 1..]);
                    let slow = slowly(&matcher, text.as_bytes());
                    assert_eq!(wholes(&matcher, text.as_bytes(), true), slow, "{text:?}");
                }
            }
        }
    }
}
