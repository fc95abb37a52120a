//! Tests of the detectors by the examples of their file, in every coding, and of the bounds.

use std::sync::LazyLock;

use base64::Engine as _;
use base64::prelude::{BASE64_STANDARD, BASE64_URL_SAFE_NO_PAD};
use proptest::prelude::*;

use super::examples::expand;
use super::testing::gzip;
use super::*;

static DETECTORS: LazyLock<Detectors> = LazyLock::new(|| Detectors::built_in().unwrap());

fn found(text: &[u8]) -> Vec<Match<'static>> {
    let mut found = Vec::new();
    DETECTORS.scan(text, Sight::Whole, &mut Budget::of(text.len(), 64 << 20), &mut found).unwrap();
    found
}

fn ids(text: &[u8]) -> Vec<(&'static str, Confidence)> {
    found(text).iter().map(|found| (found.detector.id.as_str(), found.confidence)).collect()
}

#[test]
fn every_example_is_found_and_every_near_miss_is_not() {
    for row in catalogue::rows().unwrap() {
        let (examples, misses) = (row.found.clone(), row.not.clone());
        let detector = catalogue::detector(row).unwrap();
        assert!(examples.len() >= 3 && misses.len() >= 3, "{} has too few examples", detector.id);
        for text in examples.iter().map(|text| expand(text)) {
            let seen = found(text.as_bytes());
            let own = seen.iter().find(|found| *found.detector == detector);
            assert!(
                own.is_some_and(|own| own.confidence == detector.confidence),
                "{}: {text}: {seen:?}",
                detector.id
            );
        }
        for text in misses.iter().map(|text| expand(text)) {
            let seen = found(text.as_bytes());
            let own =
                seen.iter().find(|found| *found.detector == detector && found.confidence != Confidence::Low);
            assert!(own.is_none(), "{}: {text}: {seen:?}", detector.id);
        }
    }
}

fn github() -> String {
    expand("ghp_{crc:36}")
}

#[test]
fn a_checksum_is_a_fact_and_lowers_nothing() {
    let right = github();
    let wrong = format!("{}{}", &right[..39], if right.ends_with('0') { "1" } else { "0" });
    for (text, checksum) in [(&right, true), (&wrong, false)] {
        let found = found(text.as_bytes());
        assert_eq!((found[0].checksum, found[0].confidence), (Some(checksum), Confidence::High));
        assert_eq!(found[0].range, 0..40);
    }
}

fn hex(text: &[u8]) -> String {
    text.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn base32(text: &[u8]) -> String {
    const ALPHABET: &[u8; 32] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
    let bits: Vec<u8> = text.iter().flat_map(|byte| (0..8).rev().map(move |bit| byte >> bit & 1)).collect();
    bits.chunks(5)
        .map(|five| {
            let digit = (0..5).fold(0, |digit, at| digit << 1 | five.get(at).copied().unwrap_or(0));
            char::from(ALPHABET[usize::from(digit)])
        })
        .collect()
}

type Encode = fn(&[u8]) -> Vec<u8>;

/// Codings that a whole text can be put in.
const CODINGS: &[(&str, Encode)] = &[
    ("json", |text| text.iter().flat_map(|byte| format!("\\u{byte:04x}").into_bytes()).collect()),
    ("percent", |text| text.iter().flat_map(|byte| format!("%{byte:02X}").into_bytes()).collect()),
    ("base64", |text| BASE64_STANDARD.encode(text).into_bytes()),
    ("base64", |text| BASE64_URL_SAFE_NO_PAD.encode(text).into_bytes()),
    ("base64", |text| format!("x{}", BASE64_STANDARD.encode(text)).into_bytes()),
    ("base64", |text| format!("xyz{}", BASE64_STANDARD.encode(text)).into_bytes()),
    ("hex", |text| hex(text).into_bytes()),
    ("hex", |text| text.iter().map(|byte| format!("{byte:02X}")).collect::<Vec<_>>().join(":").into_bytes()),
    ("base32", |text| base32(text).into_bytes()),
];

fn joined(text: &[u8], around: (&str, &str)) -> Vec<u8> {
    [around.0.as_bytes(), text, around.1.as_bytes()].concat()
}

#[test]
fn a_secret_is_found_in_each_coding_of_each_coding() {
    let around = ("the value is ", " and that is all");
    let secret = format!("key {} end", github());
    let benign = format!("key {} end", expand("ghq_{crc:36}"));
    for (outer_name, outer) in CODINGS {
        for (inner_name, inner) in CODINGS {
            for (text, finds) in [(&secret, true), (&benign, false)] {
                let once = inner(text.as_bytes());
                let twice = joined(&outer(&once), around);
                let found = found(&twice);
                let own = found.iter().find(|found| found.detector.id == "github-token");
                assert_eq!(own.is_some(), finds, "{inner_name} in {outer_name}: {found:?}");
                if let Some(own) = own {
                    let words: Vec<&str> = own.decoded.iter().map(|coding| coding.as_str()).collect();
                    assert!(words.ends_with(&[inner_name]), "{inner_name} in {outer_name}: {words:?}");
                    assert!(
                        own.range.start >= around.0.len() && own.range.end <= twice.len() - around.1.len()
                    );
                }
            }
        }
    }
}

#[test]
fn three_levels_are_undone_and_no_fourth() {
    let mut text = format!("key {} end", github()).into_bytes();
    for level in 1..=4 {
        text = BASE64_STANDARD.encode(&text).into_bytes();
        assert_eq!(!found(&text).is_empty(), level <= 3, "level {level}");
    }
}

#[test]
fn disguises_are_seen_through() {
    let secret = github();
    let reversed: String = secret.chars().rev().collect();
    let rot13: String =
        secret.bytes().map(|byte| char::from((decode::MIRRORS[1].undo)(&[byte])[0])).collect();
    let case: String = secret
        .chars()
        .map(|c| if c.is_ascii_lowercase() { c.to_ascii_uppercase() } else { c.to_ascii_lowercase() })
        .collect();
    let invisible: String = secret.chars().flat_map(|c| [c, '\u{200b}']).collect();
    let wide: String = secret
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() { char::from_u32(c as u32 + 0xfee0).unwrap() } else { c })
        .collect();
    let cyrillic = secret.replacen('p', "р", 1);
    for (word, text) in [
        ("reversed", reversed),
        ("rot13", rot13),
        ("case", case),
        ("unicode", invisible),
        ("unicode", wide),
        ("unicode", cyrillic),
    ] {
        let found = found(format!("a {text} b").as_bytes());
        let own = found
            .iter()
            .find(|found| found.detector.id == "github-token")
            .unwrap_or_else(|| panic!("{word}: {text}"));
        assert_eq!(own.decoded.last().map(|coding| coding.as_str()), Some(word));
        assert_eq!(own.range, 2..2 + text.len(), "{word}");
    }
}

#[test]
fn a_secret_is_found_over_the_line_breaks_of_a_coding() {
    // `base64`, `base32` and `xxd -p` break their lines, each at a place of its own, and the secret stands across one.
    let text = format!("{}key {} end{}", "some words. ".repeat(4), github(), " more words.".repeat(6));
    for (name, coded, width) in [
        ("base64", BASE64_STANDARD.encode(&text), 76),
        ("base32", base32(text.as_bytes()), 76),
        ("hex", hex(text.as_bytes()), 60),
    ] {
        for line_break in ["\n", "\r\n", "\n    "] {
            let lines: Vec<&str> =
                coded.as_bytes().chunks(width).map(|line| std::str::from_utf8(line).unwrap()).collect();
            let text = format!("a\n{}\nb", lines.join(line_break));
            let found = found(text.as_bytes());
            let own = found.iter().find(|found| found.detector.id == "github-token");
            let own = own.unwrap_or_else(|| panic!("{name} {line_break:?}: {found:?}"));
            assert_eq!(own.decoded.last().map(|coding| coding.as_str()), Some(name));
            assert_eq!(own.range, 2..text.len() - 2, "{name} {line_break:?}");
        }
    }
}

#[test]
fn texts_in_other_scripts_are_decoded_too() {
    let text = format!("это ключ от хранилища: {} и больше ничего нет, совсем ничего", github());
    for coded in [BASE64_STANDARD.encode(&text), hex(text.as_bytes()), base32(text.as_bytes())] {
        assert_eq!(ids(coded.as_bytes()), [("github-token", Confidence::High)]);
    }
}

#[test]
fn look_alikes_are_folded_in_bytes_that_are_no_text_too() {
    let alike = github().replacen('p', "р", 1);
    let mut bytes = b"a\xff b ".to_vec();
    bytes.extend(alike.as_bytes());
    bytes.extend(b" \xfe");
    let found = found(&bytes);
    assert_eq!(found[0].range, 5..5 + alike.len());
}

#[test]
fn what_follows_a_secret_hides_it_not() {
    for text in ["glpat-{an:20}", "xai-{an:70}", "sk_live_{an:20}"] {
        let text = expand(text);
        for behind in ["a".repeat(400), "-".repeat(400), format!("-{}", "filler-".repeat(60))] {
            let text = format!("{text}{behind}");
            assert_eq!(ids(text.as_bytes()).len(), 1, "{text}");
        }
    }
}

#[test]
fn a_refused_anchor_in_front_of_a_secret_hides_it_not() {
    for (anchor, secret) in [("glpat-", "glpat-{an:20}"), ("eyJ-", JWT), ("hf_a-", "hf_{let:34}")] {
        for count in [1, 2, 3, 5, 40] {
            let text = format!("{}{}", anchor.repeat(count), expand(secret));
            assert_eq!(ids(text.as_bytes()).len(), 1, "{text}");
        }
    }
}

const JWT: &str = "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.{url:43}";

#[test]
fn a_part_that_has_no_room_is_a_bound_and_not_passed_over() {
    // Each of these is undone into more than is left.
    let text = format!("key {} end", github());
    let filler = "the rest of the text ".repeat(400);
    for coded in [
        BASE64_STANDARD.encode(format!("{filler}{text}")),
        hex(format!("{filler}{text}").as_bytes()),
        base32(format!("{filler}{text}").as_bytes()),
        format!("{filler}{text}").bytes().map(|byte| format!("%{byte:02x}")).collect(),
        format!("{filler}{text}").bytes().map(|byte| format!("\\x{byte:02x}")).collect(),
        format!("{filler}{text}").chars().flat_map(|c| [c, '\u{200b}']).collect(),
    ] {
        let mut found = Vec::new();
        let mut budget = Budget::of(coded.len(), 1 << 10);
        let searched = DETECTORS.scan(coded.as_bytes(), Sight::Whole, &mut budget, &mut found);
        assert!(matches!(searched, Err(BoundReached::Decoded(_))), "{searched:?} {found:?}");
    }
}

#[test]
fn packed_data_is_looked_into() {
    let packed = gzip(&format!("key {} end", github()));
    assert_eq!(ids(&packed), [("github-token", Confidence::High)]);
    assert_eq!(ids(BASE64_STANDARD.encode(&packed).as_bytes()), [("github-token", Confidence::High)]);
}

#[test]
fn published_examples_are_low() {
    for text in [
        "AKIAIOSFODNN7EXAMPLE",
        "-----BEGIN RSA PRIVATE KEY-----",
        "gsk_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA1b",
    ] {
        assert!(ids(text.as_bytes()).iter().all(|(_, confidence)| *confidence == Confidence::Low), "{text}");
    }
}

#[test]
fn in_sealed_texts_rigid_secrets_alone_are_found_and_nothing_is_decoded() {
    let text = format!("{} {}", expand("sk_test_{an:24}"), github());
    let coded = BASE64_STANDARD.encode(github());
    for (text, expected) in [(text.as_str(), 1), (coded.as_str(), 0)] {
        let mut found = Vec::new();
        DETECTORS
            .scan(text.as_bytes(), Sight::Sealed, &mut Budget::of(text.len(), 1 << 20), &mut found)
            .unwrap();
        assert_eq!(found.len(), expected);
    }
}

#[test]
fn ordinary_texts_have_no_findings() {
    for text in [
        "fn main() { let token = parse(input)?; println!(\"{token}\"); }",
        "https://github.com/acme/widgets/blob/0123456789abcdef0123456789abcdef01234567/src/lib.rs#L10-L20",
        "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
        "integrity=\"sha512-{b64}\" crossorigin=\"anonymous\"",
        "password: ${DB_PASSWORD}\ntoken: {{ .Values.token }}\nsecret: <your secret>\n",
        "The key idea is that tokens = words; auth: none; pwd: /home/user/project/src/main",
        "550e8400-e29b-41d4-a716-446655440000",
        "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==",
    ] {
        assert_eq!(ids(text.as_bytes()), [], "{text}");
    }
}

#[test]
fn bounds_end_a_search() {
    let run = BASE64_STANDARD.encode("just some words in a row");
    let flood = format!("{run} ").repeat(10_001);
    let mut found = Vec::new();
    let searched =
        DETECTORS.scan(flood.as_bytes(), Sight::Whole, &mut Budget::of(flood.len(), 64 << 20), &mut found);
    assert_eq!(searched, Err(BoundReached::Runs));
    let tokens: String =
        (0..300).map(|number| format!("ghp_{:036} ", expand("{an:30}").len() + number)).collect();
    let tokens = tokens + &format!("{} ", github()).repeat(300);
    let mut found = Vec::new();
    let searched =
        DETECTORS.scan(tokens.as_bytes(), Sight::Whole, &mut Budget::of(tokens.len(), 64 << 20), &mut found);
    assert_eq!(searched, Err(BoundReached::Findings));
    let mut found = Vec::new();
    let searched =
        DETECTORS.scan(flood.as_bytes(), Sight::Whole, &mut Budget::of(flood.len(), 1 << 10), &mut found);
    assert!(matches!(searched, Err(BoundReached::Decoded(_)) | Ok(())));
}

proptest! {
    #[test]
    fn any_bytes_are_searched_and_findings_lie_in_them(bytes in proptest::collection::vec(any::<u8>(), 0..2_000)) {
        let mut found = Vec::new();
        let _ = DETECTORS.scan(&bytes, Sight::Whole, &mut Budget::of(bytes.len(), 1 << 20), &mut found);
        for found in found {
            prop_assert!(found.range.start <= found.range.end && found.range.end <= bytes.len());
        }
    }

    #[test]
    fn a_secret_is_found_wherever_it_stands(before in "[ -~]{0,40}[ ]", after in "[ ][ -~]{0,40}") {
        let text = format!("{before}{}{after}", github());
        let found = found(text.as_bytes());
        prop_assert!(found.iter().any(|found| found.range == (before.len()..before.len() + 40)));
    }
}

/// Random data of so many bytes, in base64 of some kind.
fn random(bytes: usize) -> Vec<u8> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let words = std::iter::repeat_with(|| {
        // Xorshift64 (Marsaglia, 2003).
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()
    });
    words.flatten().take(bytes).collect()
}

#[test]
fn random_data_has_no_sure_secret() {
    let data = random(6 << 20);
    let (standard, url) = (BASE64_STANDARD.encode(&data), BASE64_URL_SAFE_NO_PAD.encode(&data));
    let lines: Vec<u8> = standard.as_bytes().chunks(76).flat_map(|line| [line, b"\n"].concat()).collect();
    for text in [standard.as_bytes(), url.as_bytes(), &lines] {
        for sight in [Sight::Sealed, Sight::Whole] {
            let mut found = Vec::new();
            DETECTORS.scan(text, sight, &mut Budget::of(text.len(), 64 << 20), &mut found).unwrap();
            found.retain(|found| found.confidence == Confidence::High);
            assert_eq!(found, [], "{sight:?}");
        }
    }
}

#[test]
fn a_secret_that_no_sign_divides_from_random_data_may_be_one_unless_its_checksum_is_right() {
    let (noise, token) = (BASE64_URL_SAFE_NO_PAD.encode(random(60)), expand("ghp_{an:36}"));
    for (text, confidence) in [
        (format!("{noise}{token}"), Confidence::Medium),
        (format!("{noise}\n{token}aa"), Confidence::Medium),
        (format!("{noise}{}", github()), Confidence::High),
        (format!("{noise} {token}"), Confidence::High),
        (format!("{noise}={token}"), Confidence::High),
        (format!("{noise}\n{token}\n{noise}"), Confidence::High),
        (format!("/a/path/that/is/as/long/as/this/one/which/may/be/Camel-Case-3/{token}"), Confidence::High),
    ] {
        let own = found(text.as_bytes()).into_iter().find(|found| found.detector.id == "github-token");
        assert_eq!(own.map(|own| own.confidence), Some(confidence), "{text}");
    }
}

#[test]
fn in_a_coded_run_no_secret_hides_another() {
    let (one, other) = (github(), expand("ghp_{an:36}"));
    let (example, real) = (["AKIA", "IOSFODNN7EXAMPLE"].concat(), expand("AKIA{b32:16}"));
    let ids_of = |text: &str| -> Vec<(&str, Confidence)> { ids(BASE64_STANDARD.encode(text).as_bytes()) };
    let high = |id| (id, Confidence::High);
    assert_eq!(ids_of(&format!("{one} and {other}")), [high("github-token"), high("github-token")]);
    let keys = ids_of(&format!("{example} and {real}"));
    assert_eq!(keys, [("aws-access-key-id", Confidence::Low), high("aws-access-key-id")]);
    // Of the same value, once is enough.
    assert_eq!(ids_of(&format!("{one} and {one}")), [high("github-token")]);
}
