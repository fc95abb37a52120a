//! Values that are known: keys that the gateway holds, and those that a policy names. They are searched for as they are, in
//! each form in which they may stand in a text, so that nothing is taken for one by mistake.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use zeroize::Zeroizing;

use super::Confidence;
use super::detector::{Detector, Form};
use super::scan::LayerMatch;
use super::validator::Judged;
use crate::secret::{KeyMatch, Secret, SecretMatcher};

/// The detector of keys that the gateway holds.
pub const GATEWAY_CREDENTIAL: &str = "gateway-credential";

/// The name of the detector of a value that a policy names.
pub fn value_detector(name: &str) -> String {
    format!("value:{name}")
}

/// A value that must not leave, and how a finding of it is called.
pub struct KnownValue {
    /// The detector's name.
    pub id: String,
    /// Hosts at which it authenticates.
    pub home: Vec<String>,
    pub secrets: Vec<Arc<Secret>>,
}

/// How many bytes of text stand for one of a value at most where it is written with entities (`&lowbar;`) or in UTF-32.
/// More are zeros in front of numbers, and line breaks beside others.
const WRITTEN: usize = 8;

/// Values that are known, ready to be searched for.
pub struct KnownValues {
    values: Vec<(Detector, SecretMatcher)>,
    /// All of them, for a first look.
    all: SecretMatcher,
    longest: usize,
    /// Tells apart the values of one gateway, one after the other.
    pub(crate) generation: u64,
}

impl KnownValues {
    /// Makes the search.
    pub fn new(values: Vec<KnownValue>, generation: u64) -> Self {
        let turned: Vec<Vec<Arc<Secret>>> = values.iter().map(|value| turned(&value.secrets)).collect();
        let secrets: Vec<Arc<Secret>> = values.iter().flat_map(|value| value.secrets.clone()).collect();
        let all = SecretMatcher::shallow(&secrets, &turned.concat());
        let longest = secrets.iter().map(|secret| secret.expose().len()).max().unwrap_or_default();
        let values = values.into_iter().zip(&turned).map(|(value, turned)| {
            let matcher = SecretMatcher::shallow(&value.secrets, turned);
            (detector(value.id, value.home), matcher)
        });
        Self { values: values.collect(), all, longest, generation }
    }

    /// How many bytes of a text the longest value takes at most, in each form and in all usual spellings: 128 KiB, since no
    /// value has more than 16 KiB.
    pub(super) fn longest_written(&self) -> usize {
        self.longest * WRITTEN
    }

    pub(super) fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    pub(super) fn detectors(&self) -> impl Iterator<Item = &Detector> {
        self.values.iter().map(|(detector, _)| detector)
    }

    /// Whether a value stands in a text.
    pub(super) fn is_in(&self, text: &[u8]) -> bool {
        wholes(&self.all, text).next().is_some()
    }

    /// Adds the values that stand in a layer.
    pub(super) fn layer<'d>(&'d self, text: &[u8], secrets: &mut Vec<LayerMatch<'d>>) {
        let mut next = 0;
        for range in wholes(&self.all, text) {
            if range.start < next {
                continue;
            }
            next = range.end;
            let stands = |matcher: &SecretMatcher| {
                text.get(range.clone()).is_some_and(|part| wholes(matcher, part).next().is_some())
            };
            let found = self.values.iter().filter(|(_, matcher)| stands(matcher));
            secrets.extend(
                found.map(|(detector, _)| LayerMatch { detector, judged: Judged::found(range.clone()) }),
            );
        }
    }
}

fn wholes<'a>(matcher: &'a SecretMatcher, text: &'a [u8]) -> impl Iterator<Item = Range<usize>> + 'a {
    matcher.find(text, true).filter_map(|found| match found {
        KeyMatch::Whole { start, end } => Some(start..end),
        KeyMatch::Begun { .. } => None,
    })
}

impl Default for KnownValues {
    /// None.
    fn default() -> Self {
        Self::new(Vec::new(), 0)
    }
}

impl fmt::Debug for KnownValues {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} known values", self.values.len())
    }
}

fn detector(id: String, home: Vec<String>) -> Detector {
    Detector {
        id,
        confidence: Confidence::High,
        is_rigid: false,
        home,
        anchors: Vec::new(),
        form: Form::default(),
    }
}

/// Writes a value otherwise.
type Turn = fn(&[u8]) -> Vec<u8>;

/// The values turned round, and in ROT13. The other case of their letters is a form of each.
fn turned(secrets: &[Arc<Secret>]) -> Vec<Arc<Secret>> {
    let turned = |way: Turn, secret: &Secret| {
        let turned = Zeroizing::new(way(secret.expose()));
        Secret::parse(&turned).ok().map(Arc::new)
    };
    let ways: [Turn; 2] = [reversed, rot13];
    ways.iter().flat_map(|way| secrets.iter().filter_map(|secret| turned(*way, secret))).collect()
}

fn reversed(value: &[u8]) -> Vec<u8> {
    value.iter().rev().copied().collect()
}

fn rot13(value: &[u8]) -> Vec<u8> {
    let turned = |byte: &u8| match byte {
        b'a'..=b'z' => (byte - b'a' + 13) % 26 + b'a',
        b'A'..=b'Z' => (byte - b'A' + 13) % 26 + b'A',
        other => *other,
    };
    value.iter().map(turned).collect()
}

#[cfg(test)]
mod tests {
    use super::super::{Budget, Detectors, Match, Search, Sight, StreamScanner};
    use super::*;

    fn search() -> Search {
        let known = |id: &str, text: &str| KnownValue {
            id: id.to_owned(),
            home: Vec::new(),
            secrets: vec![Arc::new(Secret::parse(text.as_bytes()).unwrap())],
        };
        let values = vec![known("value:a", "blue-bicycle"), known("value:b", "blue-bicycle-on-monday")];
        Search::new(Arc::clone(Detectors::shared()), Arc::new(KnownValues::new(values, 1)))
    }

    fn found(text: &str) -> Vec<(String, Range<usize>)> {
        let search = search();
        let mut found: Vec<Match<'_>> = Vec::new();
        search.scan(text.as_bytes(), Sight::Whole, &mut Budget::of(text.len(), 1 << 20), &mut found).unwrap();
        found.into_iter().map(|found| (found.detector.id.clone(), found.range)).collect()
    }

    #[test]
    fn a_value_is_found_by_its_name_in_each_form() {
        for text in
            ["one blue-bicycle two", "one BLUE-Bicycle two", "one elcycib-eulb two", "one oyhr-ovplpyr two"]
        {
            assert_eq!(found(text), [("value:a".to_owned(), 4..16)], "{text}");
        }
        assert_eq!(found("blue-bicycl"), []);
    }

    #[test]
    fn of_values_that_stand_in_each_other_all_are_found() {
        let of = |id: &str| (id.to_owned(), 0..22);
        assert_eq!(found("blue-bicycle-on-monday"), [of("value:a"), of("value:b")]);
    }

    #[test]
    fn a_value_is_found_in_a_text_that_is_too_short_for_the_detectors() {
        let values = vec![KnownValue {
            id: "value:short".to_owned(),
            home: Vec::new(),
            secrets: vec![Arc::new(Secret::parse(b"ab-cdefg").unwrap())],
        }];
        let search = Search::new(Arc::clone(Detectors::shared()), Arc::new(KnownValues::new(values, 1)));
        for text in
            ["ab-cdefg", "AB-CDEFG;", "ab%2Dcdefg", "ab\\u002dcdefg", "\\u002561b-cdefg", "ab=2Dcdefg"]
        {
            let mut found = Vec::new();
            search
                .scan(text.as_bytes(), Sight::Whole, &mut Budget::of(text.len(), 1 << 20), &mut found)
                .unwrap();
            assert!(!found.is_empty(), "{text}");
        }
    }

    #[test]
    fn a_value_that_comes_in_pieces_is_found_in_each_usual_spelling() {
        let value: String = "Ab1-_xY2.".chars().cycle().take(1_500).collect();
        let known = KnownValue {
            id: "value:long".to_owned(),
            home: Vec::new(),
            secrets: vec![Arc::new(Secret::parse(value.as_bytes()).unwrap())],
        };
        let search = Search::new(Arc::clone(Detectors::shared()), Arc::new(KnownValues::new(vec![known], 1)));
        let ways: [fn(char) -> String; 6] = [
            String::from,
            |written| format!("{written}\0\0\0"),
            |written| format!("&#x{:02x};", u32::from(written)),
            |written| format!("&#0{};", u32::from(written)),
            |written| format!("\\u{{{:x}}}", u32::from(written)),
            |written| {
                if written == '_' { "&lowbar;".to_owned() } else { format!("&#{};", u32::from(written)) }
            },
        ];
        for way in ways {
            let text = format!("before {} after", value.chars().map(way).collect::<String>());
            for length in [700, 5_000, text.len()] {
                let mut scanner = StreamScanner::new(search.clone());
                scanner.begin(false);
                for piece in text.as_bytes().chunks(length) {
                    scanner.write(piece).unwrap();
                }
                scanner.flush().unwrap();
                let found = scanner.take_findings();
                assert!(found.iter().any(|found| found.detector == "value:long"), "{length} {}", &text[..40]);
            }
        }
    }
}
