//! Paths as agents write them, and patterns against them.
#![no_main]

use libfuzzer_sys::fuzz_target;
use postern::name::path::{NormalPath, PathPattern};

fuzz_target!(|input: (&str, &str)| {
    let (raw, pattern) = input;
    let path = NormalPath::parse(raw);
    assert_eq!(NormalPath::parse(path.as_str()), path, "normalising twice changes nothing");
    assert!(PathPattern::any().matches(&path), "/** covers every path");
    if path.is_ambiguous() {
        assert_eq!(path.as_str(), raw, "what is ambiguous is kept as it was sent");
    } else {
        let text = path.as_str();
        assert!(text.starts_with('/') && text.is_ascii());
        let inner = text.trim_start_matches('/').strip_suffix('/').unwrap_or(text.trim_start_matches('/'));
        assert!(inner.is_empty() || inner.split('/').all(|segment| !matches!(segment, "" | "." | "..")));
    }
    if let Ok(pattern) = PathPattern::parse(pattern) {
        let matched = pattern.matches(&path);
        assert!(!matched || !path.is_ambiguous() || pattern == PathPattern::any());
    }
});
