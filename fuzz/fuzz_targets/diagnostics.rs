//! Diagnostics: of any text at most so many lines are selected, in their order, each once, and all that are one alone first.
#![no_main]

use std::collections::HashSet;

use libfuzzer_sys::fuzz_target;
use postern::tool_output::diagnostics::{is_diagnostic, select};

fuzz_target!(|input: (&str, u8)| {
    let (text, most) = input;
    let most = usize::from(most);
    let lines: Vec<&str> = text.split('\n').collect();
    let selected = select(lines.iter().copied(), most);
    assert!(selected.len() <= most, "more than are asked for");
    assert!(selected.windows(2).all(|pair| pair[0] < pair[1]), "not in their order");
    let texts: HashSet<&str> = selected.iter().map(|number| lines[*number]).collect();
    assert_eq!(texts.len(), selected.len(), "equal lines");
    let count = lines.iter().filter(|line| is_diagnostic(line)).collect::<HashSet<_>>().len();
    assert!(selected.len() >= count.min(most), "a diagnostic is left out though there is room");
});
