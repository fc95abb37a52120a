//! Texts that are searched for secrets: no text panics, and each finding lies in it.
#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use postern::dlp::{Budget, Detectors, Sight};

static DETECTORS: LazyLock<Detectors> =
    LazyLock::new(|| Detectors::built_in().expect("the file is a test's"));

fuzz_target!(|text: &[u8]| {
    for sight in [Sight::Whole, Sight::Sealed] {
        let mut found = Vec::new();
        let searched = DETECTORS.scan(text, sight, &mut Budget::of(text.len(), 1 << 20), &mut found);
        assert!(found.len() <= 256 && (searched.is_ok() || sight == Sight::Whole));
        for found in &found {
            assert!(found.range.start <= found.range.end && found.range.end <= text.len());
            assert!(found.decoded.len() <= 4);
        }
        let mut again = Vec::new();
        assert_eq!(DETECTORS.scan(text, sight, &mut Budget::of(text.len(), 1 << 20), &mut again), searched);
        assert!(again == found, "the same text has the same findings");
    }
});
