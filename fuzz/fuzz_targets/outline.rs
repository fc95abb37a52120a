//! Outlines: any text of any language gives lines of the text, in their order, with the numbers that they have there.
#![no_main]

use libfuzzer_sys::fuzz_target;
use postern::workspace::outline::{is_source, outline};

const NAMES: &[&str] =
    &["a.rs", "a.go", "a.py", "a.js", "a.ts", "A.java", "a.c", "a.cpp", "A.cs", "a.rb", "a.txt"];

fuzz_target!(|input: (&str, u8)| {
    let (text, language) = input;
    let name = NAMES[usize::from(language) % NAMES.len()];
    let lines: Vec<&str> = text.lines().collect();
    let mut last = 0;
    for line in outline(name, text) {
        assert!(is_source(name), "a language that is not known has no outline");
        assert!(line.number > last, "lines come in their order");
        assert_eq!(lines[line.number - 1].trim_end(), line.text, "a line is as it stands in the file");
        last = line.number;
    }
});
