//! Any split of any bytes is scrubbed to the same bytes, and no key is left in them.
#![no_main]

use std::sync::{Arc, LazyLock};

use bytes::Bytes;
use libfuzzer_sys::fuzz_target;
use postern::filter::Rewrite;
use postern::filter::scrub::Scrubber;
use postern::secret::{Secret, SecretMatcher};

const KEYS: [&str; 4] = [r#"sk/a+Zq9"7\_~K="#, "sk-live-0001", "sk-live-0001-more", "aaaaaaaa"];

static NEEDLES: LazyLock<Arc<SecretMatcher>> = LazyLock::new(|| {
    let secrets: Vec<_> = KEYS.iter().map(|key| Arc::new(Secret::parse(key.as_bytes()).unwrap())).collect();
    Arc::new(SecretMatcher::new(&secrets))
});

// The first bytes say where the rest is cut.
fuzz_target!(|input: &[u8]| {
    let Some((cuts, text)) = input.split_at_checked(8) else { return };
    let mut at_once = Scrubber::new(Arc::clone(&NEEDLES));
    let mut whole = Vec::new();
    at_once.write(Bytes::copy_from_slice(text), &mut whole).unwrap();
    at_once.finish(&mut whole).unwrap();
    let whole = whole.concat();
    let mut scrubber = Scrubber::new(Arc::clone(&NEEDLES));
    let mut out = Vec::new();
    let mut rest = Bytes::copy_from_slice(text);
    for &cut in cuts {
        let chunk = rest.split_to(usize::from(cut).min(rest.len()));
        scrubber.write(chunk, &mut out).unwrap();
    }
    scrubber.write(rest, &mut out).unwrap();
    scrubber.finish(&mut out).unwrap();
    assert_eq!(out.concat(), whole);
    assert_eq!(whole.len(), text.len());
    assert!(KEYS.iter().all(|key| !whole.windows(key.len()).any(|part| part == key.as_bytes())));
});
