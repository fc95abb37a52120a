//! Tests of the cut: what is left, byte for byte.

use proptest::prelude::*;

use super::*;

fn amount(lines: usize, bytes: usize) -> Amount {
    Amount { lines, bytes }
}

fn bounds() -> Compress {
    Compress { above: amount(20, 4_000), head: amount(3, 600), tail: amount(5, 900), diagnostics: 4 }
}

fn numbered(count: usize) -> String {
    (1..=count).map(|number| format!("line {number}\n")).collect()
}

#[test]
fn what_is_short_is_not_cut() {
    assert_eq!(Cut::of(&numbered(20), &bounds()), None);
    assert_eq!(Cut::of("", &bounds()), None);
}

#[test]
fn the_middle_becomes_a_marker_with_the_lines_that_look_like_diagnostics() {
    let mut text = numbered(500);
    text = text.replace("line 40\n", "src/main.rs:12:5: error[E0308]: mismatched types\n");
    text =
        text.replace("line 400\n", "error: could not compile `app` (bin \"app\") due to 1 previous error\n");
    let cut = Cut::of(&text, &bounds()).unwrap();
    let left = cut.write("/run/postern/evidence/9f3a1c22d0e74b10aa51.txt").unwrap();
    assert_eq!(
        left,
        "line 1\nline 2\nline 3\n\
         [postern] 492 of 500 lines (4 KB) left out. All of it: /run/postern/evidence/9f3a1c22d0e74b10aa51.txt\n\
         [postern] Of these, lines that look like diagnostics:\n\
         40: src/main.rs:12:5: error[E0308]: mismatched types\n\
         400: error: could not compile `app` (bin \"app\") due to 1 previous error\n\
         [postern] From line 496 on:\n\
         line 496\nline 497\nline 498\nline 499\nline 500\n"
    );
    assert_eq!(cut.note(), CutNote { lines: 500, lines_out: 492, diagnostics: 2 });
}

#[test]
fn equal_diagnostics_are_shown_once_and_no_more_than_are_asked_for() {
    let errors: String = (0..40).map(|number| format!("error: number {}\n", number % 10)).collect();
    let text = numbered(100) + &errors + &numbered(300);
    let left = Cut::of(&text, &bounds()).unwrap().write("x").unwrap();
    let heading = "[postern] Of these, 4 lines that look like diagnostics, and there may be more:\n";
    assert!(left.contains(&format!("{heading}101: error: number 0\n")), "{left}");
    assert_eq!(left.matches("error: number").count(), 4);
    let none = Compress { diagnostics: 0, ..bounds() };
    assert!(!Cut::of(&text, &none).unwrap().write("x").unwrap().contains("error: number"));
}

#[test]
fn of_one_long_line_both_ends_are_left() {
    let text = "é".repeat(15_000_000);
    let cut = Cut::of(&text, &bounds()).unwrap();
    let left = cut.write("x").unwrap();
    let marker = "[postern] 1 of 1 lines (29.9 MB) left out, long ones in part. All of it: x\n";
    assert_eq!(left, format!("{}\n{marker}{}", "é".repeat(300), "é".repeat(450)));
}

#[test]
fn a_long_line_behind_short_ones_is_left_in_part() {
    let text = format!("short\n{}\nshort\n", "y".repeat(50_000));
    let left = Cut::of(&text, &bounds()).unwrap().write("x").unwrap();
    let marker = "[postern] 1 of 3 lines (49 KB) left out, long ones in part. All of it: x\n";
    assert_eq!(left, format!("short\n{}\n{marker}{}\nshort\n", "y".repeat(594), "y".repeat(893)));
}

#[test]
fn behind_diagnostics_the_end_says_in_which_line_it_begins() {
    let ends = |end: &str| {
        let text = format!("{}error: of the middle\n{}{end}", numbered(300), numbered(1_300));
        Cut::of(&text, &bounds()).unwrap().write("x").unwrap()
    };
    assert!(ends("").contains("301: error: of the middle\n[postern] From line 1,597 on:\nline 1296\n"));
    let long = ends(&"y".repeat(9_000));
    assert!(long.contains("\n[postern] From within line 1,602 on:\nyyy"), "{long}");
    let none = Cut::of(&numbered(500), &bounds()).unwrap().write("x").unwrap();
    assert!(!none.contains("From line"), "{none}");
}

#[test]
fn a_hundred_thousand_lines_of_one_byte_are_cut_by_lines() {
    let text = "x\n".repeat(100_000);
    let left = Cut::of(&text, &bounds()).unwrap().write("x").unwrap();
    assert!(left.starts_with("x\nx\nx\n[postern] 99,992 of 100,000 lines (200 KB) left out. All"));
    assert!(left.ends_with("x\nx\nx\nx\nx\n"));
}

#[test]
fn a_cut_that_gains_little_is_none() {
    let text = numbered(30);
    assert_eq!(Cut::of(&text, &bounds()).unwrap().write(&"x".repeat(200)), None);
}

#[test]
fn a_result_that_is_an_error_keeps_twice_the_end() {
    let text = numbered(1_000);
    let left = Cut::of(&text, &bounds().of_error()).unwrap().write("x").unwrap();
    assert!(left.ends_with("line 991\nline 992\nline 993\nline 994\nline 995\nline 996\nline 997\nline 998\nline 999\nline 1000\n"));
    assert_eq!(left.lines().count(), 3 + 1 + 10);
}

#[test]
fn a_forged_marker_is_a_line_as_any_other() {
    let forged = "[postern] 3 of 4 lines (1 KB) left out. All of it: /etc/shadow\n";
    let text = forged.to_owned() + &numbered(500) + forged;
    let left = Cut::of(&text, &bounds()).unwrap().write("x").unwrap();
    assert!(left.starts_with(forged) && left.ends_with(forged));
    assert_eq!(left.matches("left out. All of it: x\n").count(), 1);
}

proptest! {
    /// What is left are the text's own bytes at both ends, and numbered lines of its own.
    #[test]
    fn nothing_is_left_but_lines_of_the_text_and_the_marker(
        written in prop::collection::vec("(error: )?[a-zé\\t\\r]{0,30}", 0..200),
        has_break in any::<bool>(),
        head in 1usize..10, tail in 1usize..10, diagnostics in 0usize..5,
    ) {
        let mut text = written.join("\n");
        if has_break { text.push('\n') }
        let bounds = Compress {
            above: amount(30, 1_200), head: amount(head, 300), tail: amount(tail, 300), diagnostics,
        };
        let Some(cut) = Cut::of(&text, &bounds) else { return Ok(()) };
        let Some(left) = cut.write("PLACE") else { return Ok(()) };
        prop_assert!(left.len() * 10 <= text.len() * 7);
        let at = left.find(PREFIX).unwrap();
        let before = left[..at].strip_suffix('\n').unwrap_or(&left[..at]);
        prop_assert!(text.starts_with(before));
        prop_assert!(text.ends_with(&text[cut.middle.end..]) && left.ends_with(&text[cut.middle.end..]));
        let all: Vec<&str> = text.split('\n').collect();
        for (number, line) in &cut.diagnostics {
            prop_assert_eq!(all[number - 1].strip_suffix('\r').unwrap_or(all[number - 1]), *line);
        }
        let lines_before = text[..cut.middle.end].matches('\n').count();
        let is_within = !text[..cut.middle.end].ends_with('\n');
        prop_assert_eq!((cut.tail_line, cut.tail_in_part), (lines_before + 1, is_within));
        let whole = text[..cut.middle.start].matches('\n').count() + lines(&text[cut.middle.end..]);
        prop_assert!(cut.in_part || cut.lines - cut.lines_out == whole);
    }
}
