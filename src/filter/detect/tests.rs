//! Tests of the search of bodies: codings, chunks, silences, bounds, and the twins that go on as they came.

use std::sync::{LazyLock, Mutex};

use compression_codecs::core::Level;
use compression_codecs::core::util::{PartialBuffer, WriteBuffer};
use compression_codecs::{EncodeV2, GzipEncoder, ZstdEncoder};
use http::header::{CONTENT_ENCODING, HeaderValue};

use super::*;
use crate::dlp::{Confidence, Detectors};

static DETECTORS: LazyLock<Arc<Detectors>> = LazyLock::new(|| Arc::new(Detectors::built_in().unwrap()));

/// Put together here, so that no file holds it.
fn secret() -> String {
    format!("sk-or-v1-{}", "0f1e2d3c4b5a69788796a5b4c3d2e1f0".repeat(2))
}

/// Denies what is sure enough, and keeps all.
#[derive(Debug)]
struct Least(Option<Confidence>, Mutex<Vec<StreamMatch>>);

impl Settle for Least {
    fn settle(&self, _: StreamedPart, found: &StreamMatch) -> Option<Denial> {
        self.1.lock().unwrap().push(found.clone());
        self.0.filter(|least| found.confidence >= *least)?;
        Some(Denial::builtin("outbound-exfiltration", "a secret"))
    }

    fn small(&self, _: &[u8]) -> Option<Denial> {
        None
    }

    fn named(&self, _: &str) -> Option<Denial> {
        None
    }
}

fn detector(coding: Option<&'static str>, deny: Option<Confidence>) -> BodyDetector {
    settled(coding, deny).0
}

fn settled(coding: Option<&'static str>, deny: Option<Confidence>) -> (BodyDetector, Arc<Least>) {
    let least = Arc::new(Least(deny, Mutex::default()));
    let mut head = HeaderMap::new();
    head.extend(coding.map(|coding| (CONTENT_ENCODING, HeaderValue::from_static(coding))));
    let limits = coding::Limits { decoded_bytes: 2 << 20, ..coding::Limits::default() };
    let settle = Arc::clone(&least) as Arc<dyn Settle>;
    let terms = Terms { search: Arc::clone(&DETECTORS).into(), settle, limits };
    (BodyDetector::new(&head, terms), least)
}

/// Sends a body in chunks of a size. Returns what went on, and the rule that ended it.
fn send(mut detector: BodyDetector, body: &[u8], size: usize) -> (Vec<u8>, Option<String>) {
    let mut out = Vec::new();
    let chunks = body.chunks(size).map(Bytes::copy_from_slice);
    let sent = chunks.into_iter().try_for_each(|chunk| detector.write(chunk, &mut out));
    let ended = sent.and_then(|()| detector.finish(&mut out));
    let rule = ended.err().map(|refused| match refused {
        Refused::Denied(denial) => denial.decision.rule_id().to_owned(),
        Refused::Unreadable(why) => panic!("{why}"),
    });
    (out.concat(), rule)
}

fn packed(mut codec: impl EncodeV2, plain: &[u8]) -> Vec<u8> {
    let (mut all, mut buffer) = (Vec::new(), vec![0; 64 << 10]);
    let mut input = PartialBuffer::new(plain);
    while !input.unwritten().is_empty() {
        let mut out = WriteBuffer::new_initialized(&mut buffer);
        codec.encode(&mut input, &mut out).unwrap();
        all.extend_from_slice(out.written());
    }
    loop {
        let mut out = WriteBuffer::new_initialized(&mut buffer);
        let is_done = codec.finish(&mut out).unwrap();
        all.extend_from_slice(out.written());
        if is_done {
            return all;
        }
    }
}

fn gzip(plain: &[u8]) -> Vec<u8> {
    packed(GzipEncoder::new(Level::Default.into()), plain)
}

fn zstd(plain: &[u8]) -> Vec<u8> {
    packed(ZstdEncoder::new(3), plain)
}

const EXFILTRATION: Option<&str> = Some("postern/builtin/outbound-exfiltration");

#[test]
fn a_body_with_a_secret_ends_before_the_secret_has_gone_on_and_its_twin_passes() {
    let with = |value: &str| format!("{{\"note\":\"the key is {value}, says he\"}}");
    let (body, twin) = (with(&secret()), with("nowhere to be found"));
    let end = body.find(&secret()).unwrap() + secret().len();
    for size in [1, 2, 7, 40, 1_000] {
        let (gone, rule) = send(detector(None, Some(Confidence::High)), body.as_bytes(), size);
        assert_eq!(rule.as_deref(), EXFILTRATION);
        assert!(body.as_bytes().starts_with(&gone) && gone.len() < end);
        let passed = send(detector(None, Some(Confidence::High)), twin.as_bytes(), size);
        assert_eq!(passed, (twin.clone().into_bytes(), None));
    }
}

#[test]
fn a_coded_body_is_looked_at_whatever_its_head_says_and_goes_on_as_it_came() {
    let filler = "lorem ipsum ".repeat(40_000);
    for pack in [gzip, zstd] {
        let body = pack(format!("{filler}{} {filler}", secret()).as_bytes());
        let twin = pack(filler.as_bytes());
        for declared in [Some("gzip"), None, Some("br"), Some("of-their-own")] {
            for size in [1, 100, 1 << 20] {
                let (gone, rule) = send(detector(declared, Some(Confidence::High)), &body, size);
                assert_eq!((rule.as_deref(), gone.len()), (EXFILTRATION, 0), "{declared:?} {size}");
                let passed = send(detector(declared, Some(Confidence::High)), &twin, size);
                assert_eq!(passed, (twin.clone(), None));
            }
        }
    }
}

#[test]
fn what_is_only_recorded_goes_on() {
    let (detector, least) = settled(None, None);
    let body = format!("key={}\n", secret());
    assert_eq!(send(detector, body.as_bytes(), 5), (body.clone().into_bytes(), None));
    let found = std::mem::take(&mut *least.1.lock().unwrap());
    assert_eq!((found.len(), found[0].detector.as_str(), found[0].range.start), (1, "openrouter-key", 4));
}

#[test]
fn a_silence_lets_go_what_is_held_and_remembers_it() {
    let (mut detector, mut out) = (detector(None, Some(Confidence::High)), Vec::new());
    let mut first = secret();
    let rest = first.split_off(30);
    detector.write(first.clone().into(), &mut out).unwrap();
    assert!(detector.is_holding() && out.is_empty());
    detector.let_go(&mut out).unwrap();
    assert_eq!((out.concat(), detector.is_holding()), (first.into_bytes(), false));
    detector.write(rest.into(), &mut out).unwrap();
    assert!(matches!(detector.finish(&mut out), Err(Refused::Denied(_))));
}

#[test]
fn a_silence_within_a_signature_does_not_hide_the_coding() {
    let body = gzip(secret().as_bytes());
    let (mut detector, mut out) = (detector(None, Some(Confidence::High)), Vec::new());
    detector.write(Bytes::copy_from_slice(&body[..2]), &mut out).unwrap();
    detector.let_go(&mut out).unwrap();
    assert_eq!(out.concat(), body[..2]);
    let rest = detector.write(Bytes::copy_from_slice(&body[2..]), &mut out);
    assert!(rest.and_then(|()| detector.finish(&mut out)).is_err());
    assert_eq!(out.concat(), body[..2]);
}

#[test]
fn a_bomb_ends_at_its_bound() {
    let body = gzip(&vec![b' '; 16 << 20]);
    let (_, rule) = send(detector(Some("gzip"), Some(Confidence::High)), &body, 16 << 10);
    assert_eq!(rule.as_deref(), Some("postern/builtin/bound"));
}

#[test]
fn a_body_that_breaks_its_coding_is_looked_at_as_it_is() {
    let mut body = gzip(b"nothing");
    body.truncate(12);
    body.extend_from_slice(format!(" {} ", secret()).as_bytes());
    let (_, rule) = send(detector(Some("gzip"), Some(Confidence::High)), &body, 1_000);
    assert_eq!(rule.as_deref(), EXFILTRATION);
}

#[test]
fn coded_data_that_decodes_to_nothing_is_not_held_without_end() {
    // An empty frame that readers skip (RFC 8878, section 3.1.2), behind a token that may go on.
    let skipped = [&[0x50, 0x2a, 0x4d, 0x18, 0xf8, 0x3f, 0, 0][..], &[0; 0x3ff8]].concat();
    let mut detector = detector(Some("zstd"), Some(Confidence::High));
    let mut out = Vec::new();
    detector.write(zstd(b"a token").into(), &mut out).unwrap();
    for _ in 0..400 {
        detector.write(skipped.clone().into(), &mut out).unwrap();
        assert!(detector.held_bytes <= MOST_HELD + (64 << 10));
    }
    assert!(out.iter().map(Bytes::len).sum::<usize>() > 4 << 20);
}

#[test]
fn of_a_long_body_little_is_held() {
    let (mut detector, mut out) = (detector(None, Some(Confidence::High)), Vec::new());
    let chunk = Bytes::from("0123456789abcdef".repeat(1 << 10));
    for number in 1..=400 {
        detector.write(chunk.clone(), &mut out).unwrap();
        let gone: usize = out.iter().map(Bytes::len).sum();
        assert!(number * chunk.len() - gone <= 32 << 10, "a token without end is not held whole");
    }
    detector.finish(&mut out).unwrap();
    assert_eq!(out.iter().map(Bytes::len).sum::<usize>(), 400 * chunk.len());
}
