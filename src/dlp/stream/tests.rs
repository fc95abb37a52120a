//! Tests of the search in pieces: however a text is cut, it has the same secrets, and none leaves.

use std::sync::{Arc, LazyLock};

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use proptest::prelude::*;

use super::super::catalogue;
use super::super::examples::expand;
use super::*;
use crate::dlp::Detectors;

static DETECTORS: LazyLock<Arc<Detectors>> = LazyLock::new(|| Arc::new(Detectors::built_in().unwrap()));

fn scanner() -> StreamScanner {
    StreamScanner::new(Arc::clone(&DETECTORS))
}

fn github() -> String {
    expand("ghp_{crc:36}")
}

/// How far a text came, and what was found of High. As in a request, the first such finding stops it.
fn sent(pieces: &[&[u8]]) -> (u64, Option<StreamMatch>) {
    let mut scanner = scanner();
    let mut gone = 0;
    for piece in pieces {
        scanner.write(piece).unwrap();
        if let Some(high) = high(&mut scanner) {
            return (gone, Some(high));
        }
        gone = scanner.released();
        assert!(scanner.window.len() <= HELD + LONGEST_CONTEXT, "memory is bounded");
    }
    scanner.flush().unwrap();
    match high(&mut scanner) {
        Some(high) => (gone, Some(high)),
        None => (scanner.released(), None),
    }
}

fn high(scanner: &mut StreamScanner) -> Option<StreamMatch> {
    let mut findings = scanner.take_findings().into_iter();
    findings.find(|found| found.confidence == Confidence::High)
}

/// A text that is cut at these places.
fn cut<'t>(text: &'t [u8], places: &[usize]) -> Vec<&'t [u8]> {
    let mut places: Vec<usize> = places.iter().map(|place| place % (text.len() + 1)).collect();
    places.extend([0, text.len()]);
    places.sort_unstable();
    places.windows(2).map(|pair| &text[pair[0]..pair[1]]).collect()
}

/// A secret in each of the ways in which it may be written.
fn written(secret: &str) -> Vec<String> {
    let hex = |separator: &str| {
        let pairs: Vec<String> = secret.bytes().map(|byte| format!("{byte:02x}")).collect();
        pairs.join(separator)
    };
    let base64 = BASE64_STANDARD.encode(secret);
    vec![
        secret.to_owned(),
        base64.clone(),
        BASE64_STANDARD.encode(&base64),
        hex(""),
        hex(" "),
        hex(":"),
        secret.bytes().map(|byte| format!("%{byte:02X}")).collect(),
        secret.bytes().map(|byte| format!("\\u{byte:04x}")).collect(),
        secret.chars().rev().collect(),
    ]
}

#[test]
fn cut_in_two_anywhere_a_secret_is_found_before_its_last_byte_left() {
    for secret in written(&github()) {
        let text = format!("{{\"note\": \"take {secret} home\"}}");
        let last = (text.find(&secret).unwrap() + secret.len() - 1) as u64;
        for place in 0..=text.len() {
            let (gone, found) = sent(&cut(text.as_bytes(), &[place]));
            assert!(found.is_some_and(|found| found.detector == "github-token"), "{text} at {place}");
            assert!(gone <= last, "{text} at {place}");
        }
    }
}

#[test]
fn byte_by_byte_every_example_of_high_confidence_is_found_before_it_left() {
    for row in catalogue::rows().unwrap() {
        let examples: Vec<String> = row.found.iter().map(|text| expand(text)).collect();
        let detector = catalogue::detector(row).unwrap();
        if detector.confidence != Confidence::High {
            continue;
        }
        for text in examples {
            let pieces: Vec<&[u8]> = text.as_bytes().chunks(1).collect();
            let (gone, found) = sent(&pieces);
            let found = found.unwrap_or_else(|| panic!("{}: not found", detector.id));
            assert!(gone < found.range.end, "{}: its last byte left", detector.id);
        }
    }
}

#[test]
fn what_is_no_secret_goes_on_to_its_last_byte_however_it_is_cut() {
    for row in catalogue::rows().unwrap() {
        let misses: Vec<String> = row.not.iter().map(|text| expand(text)).collect();
        for text in misses.iter().map(|text| format!("{text}\n")) {
            let mut whole = Vec::new();
            let mut budget = Budget::of(text.len(), usize::MAX);
            DETECTORS.scan(text.as_bytes(), Sight::Whole, &mut budget, &mut whole).unwrap();
            if whole.iter().any(|found| found.confidence == Confidence::High) {
                continue;
            }
            for pieces in [cut(text.as_bytes(), &[]), text.as_bytes().chunks(1).collect()] {
                assert_eq!(sent(&pieces), (text.len() as u64, None), "{text}");
            }
        }
    }
}

#[test]
fn only_a_token_that_may_go_on_is_held() {
    let mut scanner = scanner();
    scanner.write(b"some words and a toke").unwrap();
    assert_eq!(scanner.released(), 17);
    scanner.write(b"n ").unwrap();
    assert_eq!(scanner.released(), 23);
}

#[test]
fn what_was_let_go_in_a_silence_is_remembered() {
    let secret = github();
    for secret in written(&secret).iter().take(2) {
        for place in 1..secret.len() {
            let mut scanner = scanner();
            scanner.write(&secret.as_bytes()[..place]).unwrap();
            scanner.flush().unwrap();
            let was_found = high(&mut scanner).is_some();
            assert_eq!(scanner.released(), place as u64);
            scanner.write(&secret.as_bytes()[place..]).unwrap();
            scanner.write(b" ").unwrap();
            assert!(was_found || high(&mut scanner).is_some(), "{secret} at {place}");
        }
    }
}

#[test]
fn a_silence_behind_a_whole_secret_does_not_let_it_go() {
    let mut scanner = scanner();
    scanner.write(github().as_bytes()).unwrap();
    assert_eq!((scanner.released(), high(&mut scanner)), (0, None));
    scanner.flush().unwrap();
    assert!(high(&mut scanner).is_some());
}

#[test]
fn a_secret_deep_in_a_token_without_end_is_found_before_it_left() {
    for offset in [0, 100, HELD - 30, HELD - 9, HELD + 1, 3 * HELD - KEPT - 21] {
        let plain = "some words, ".repeat(20_000);
        let text = format!("{}{} {}", &plain[..offset], github(), &plain[..plain.len() - offset]);
        let coded = BASE64_STANDARD.encode(&text);
        let last = ((offset + 39) / 3 * 4) as u64;
        for size in [1_000, 16 << 10, coded.len()] {
            let (gone, found) = sent(&coded.as_bytes().chunks(size).collect::<Vec<_>>());
            assert!(found.is_some() && gone <= last, "{offset} in pieces of {size}: {gone} of {last}");
        }
    }
}

#[test]
fn in_binary_data_secrets_as_they_are_written_are_found() {
    let mut text = vec![0x89, b'P', b'N', b'G', 0, 0xff];
    text.extend(std::iter::repeat_n([0xe1, 0x07, 0xc3], 4_000).flatten());
    let benign = text.clone();
    text.extend_from_slice(format!(" {} ", github()).as_bytes());
    for size in [1, 7, 16 << 10] {
        assert!(sent(&text.chunks(size).collect::<Vec<_>>()).1.is_some());
        assert_eq!(sent(&benign.chunks(size).collect::<Vec<_>>()), (benign.len() as u64, None));
    }
}

#[test]
fn a_secret_of_which_more_and_more_comes_is_one_finding() {
    let mut scanner = scanner();
    let line = "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7VJTUt9Us8cKj\n";
    scanner.write(b"-----BEGIN PRIVATE KEY-----\n").unwrap();
    for _ in 0..400 {
        scanner.write(line.as_bytes()).unwrap();
    }
    let confidences: Vec<_> = scanner.take_findings().iter().map(|found| found.confidence).collect();
    assert_eq!(confidences, [Confidence::Low, Confidence::High]);
}

#[test]
fn too_many_findings_are_a_bound() {
    let mut scanner = scanner();
    let result = scanner.write(format!("{} ", github()).repeat(300).as_bytes());
    assert_eq!(result, Err(BoundReached::Findings));
}

proptest! {
    #[test]
    fn any_split_finds_what_the_whole_has(
        before in "[ -~\n]{0,300}",
        after in "[ -~\n]{0,300}",
        way in 0_usize..9,
        places in prop::collection::vec(any::<usize>(), 0..12),
    ) {
        let secret = written(&github()).swap_remove(way);
        let text = format!("{before} {secret} {after}");
        let (gone, found) = sent(&cut(text.as_bytes(), &places));
        let (_, whole) = sent(&cut(text.as_bytes(), &[]));
        prop_assert_eq!(found.is_some(), whole.is_some());
        prop_assert!(whole.is_none() || gone < (before.len() + 1 + secret.len()) as u64);
    }

    #[test]
    fn any_split_of_any_bytes_goes_on_whole_or_not_at_all(
        bytes in prop::collection::vec(any::<u8>(), 0..2_000),
        places in prop::collection::vec(any::<usize>(), 0..12),
    ) {
        let (gone, found) = sent(&cut(&bytes, &places));
        prop_assert!(found.is_some() || gone == bytes.len() as u64);
    }
}

#[test]
fn a_finding_has_its_codings() {
    let text = format!("{} ", BASE64_STANDARD.encode(github()));
    let found = sent(&[text.as_bytes()]).1.unwrap();
    assert_eq!(found.decoded, [Coding::Base64]);
}

#[test]
fn in_a_coded_run_no_secret_hides_another() {
    let (example, real) = (["AKIA", "IOSFODNN7EXAMPLE"].concat(), expand("AKIA{b32:16}"));
    let text = BASE64_STANDARD.encode(format!("{example} and some words, and then {real}."));
    for size in [1, 7, 64, text.len()] {
        let pieces: Vec<&[u8]> = text.as_bytes().chunks(size).collect();
        assert!(sent(&pieces).1.is_some(), "{size}");
    }
}

#[test]
fn a_stream_goes_on_behind_any_number_of_findings() {
    let mut scanner = scanner();
    let token = ["glp", "at-Ab3dEf6hIj9kLm2nOp5q"].concat();
    for number in 0..1_000 {
        scanner.write(format!("{token}{number:03} ").as_bytes()).unwrap();
        assert_eq!(scanner.take_findings().len(), 1);
    }
    assert!(scanner.known.len() < 256);
}

#[test]
fn a_known_value_that_is_written_in_escapes_does_not_leave_in_pieces() {
    let value = "Zx9-".repeat(500);
    let secrets = vec![Arc::new(crate::secret::Secret::parse(value.as_bytes()).unwrap())];
    let known = crate::dlp::KnownValue { id: "value:long".to_owned(), home: Vec::new(), secrets };
    let known = Arc::new(crate::dlp::KnownValues::new(vec![known], 1));
    let written: String = value.bytes().map(|byte| format!("&#x{byte:04x};")).collect();
    let mut scanner = StreamScanner::new(Search::new(Arc::clone(&DETECTORS), known));
    let (mut gone, mut found) = (0, Vec::new());
    for piece in written.as_bytes().chunks(1_000) {
        scanner.write(piece).unwrap();
        found.extend(scanner.take_findings());
        if found.is_empty() {
            gone = scanner.released();
        }
    }
    assert!(gone < written.len() as u64);
    assert_eq!(found.iter().map(|found| found.detector.as_str()).collect::<Vec<_>>(), ["value:long"]);
}
