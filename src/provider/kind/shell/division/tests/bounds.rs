//! Bounds and bad input: what is reached or not known makes the division opaque, and what was read before stands.

use super::super::state::MOST_BYTES;
use super::*;

/// Divides `before`, `count` times `repeated`, and `behind`.
fn repeated(before: &str, repeated: &str, count: usize, behind: &str) -> (Vec<String>, bool) {
    read(&[before, &repeated.repeat(count), behind].concat())
}

#[test]
fn what_does_not_end_is_opaque() {
    assert_opaque(&[
        "rm 'x",
        "rm \"x",
        "rm $'x",
        "rm `x",
        "rm $(x",
        "rm ${x",
        "rm $((x",
        "rm \\",
        "rm \"x\\",
        "(rm",
        "{ rm;",
        "if rm",
        "if a; then rm",
        "case a in b) rm",
        "while a; do rm",
        "for",
        "[[ a",
        "a &&",
        "a |",
        "a >",
        "f()",
        "a <<E",
        "a <<E\nb",
        "a <<E\n$(b\nE",
        "rm <(x",
        "x=(a",
    ]);
    assert_divided(&[("rm {a,b", &["rm {a,b"])]);
}

#[test]
fn what_no_shell_reads_is_opaque() {
    assert_opaque(&[
        "a )",
        "a; )",
        "fi",
        "a; done",
        "; a",
        "a;; b",
        "a & & b",
        "| a",
        "a || || b",
        "()",
        "{ }",
        "if; then a; fi",
        "a (b)",
        "(a) b",
        "{ a; } b",
        "for 1x$ in a; do b; done",
        "[[ a b ]]",
        "<",
        "> >a",
        "esac",
        "then a",
    ]);
}

#[test]
fn what_was_read_before_the_reading_ended_stands() {
    for text in ["rm x; 'a", "rm x; )", "rm x; $(b", "rm x\nfi", "rm x 'a", "rm x <<E\nb"] {
        let (commands, is_opaque) = read(text);
        assert!(commands.contains(&"rm x".to_owned()) && is_opaque, "{text}: {commands:?}");
    }
}

#[test]
fn a_text_with_a_nul_is_opaque() {
    assert_eq!(read("rm x\0; ls"), (vec!["rm x\0".to_owned(), "ls".to_owned()], true));
}

#[test]
fn spaces_that_no_shell_knows_are_opaque_where_they_are_not_quoted() {
    for space in ["\u{a0}", "\u{3000}", "\u{2003}", "\u{85}", "\u{2028}", "\r", "\u{b}", "\u{c}"] {
        assert_opaque(&[
            &format!("rm{space}-rf /"),
            &format!("rm -rf /{space}"),
            &format!("cd a{space}&& b"),
        ]);
        assert_divided(&[(&format!("echo 'a{space}b'"), &[&format!("echo a{space}b")])]);
    }
    assert_divided(&[("echo été 日本", &["echo été 日本"])]);
}

#[test]
fn a_continued_line_is_one_line() {
    assert_divided(&[
        ("git \\\n  push &\\\n& r\\\nm x", &["git push", "rm x"]),
        ("a '\\\n'", &["a \\\n"]),
        ("a \"\\\n\"", &["a "]),
        ("a \\\\\nb", &["a \\", "b"]),
    ]);
    assert_eq!(repeated("rm", "\\\n", 30_000, " x"), (vec!["rm x".to_owned()], false));
}

#[test]
fn a_text_that_is_too_long_is_read_to_the_bound() {
    let behind = "rm x; ";
    let (commands, is_opaque) = repeated(behind, "#", MOST_BYTES - behind.len(), "");
    assert_eq!((commands, is_opaque), (vec!["rm x".to_owned()], false));
    let (commands, is_opaque) = repeated(behind, "#", MOST_BYTES - behind.len() + 1, "");
    assert_eq!((commands, is_opaque), (vec!["rm x".to_owned()], true));
    // A word that is cut is not taken for a whole one.
    assert_eq!(repeated("rm /", "é", 1 << 20, ""), (vec!["rm".to_owned()], true));
}

#[test]
fn words_and_commands_and_levels_are_counted() {
    assert!(!repeated("a", " b", 4095, "").1);
    assert!(repeated("a", " b", 4096, "").1);
    assert_eq!(repeated("", "a;", 256, "").0.len(), 256);
    assert!(!repeated("", "a;", 256, "").1);
    assert_eq!(repeated("", "a;", 257, "").0.len(), 256);
    assert!(repeated("", "a;", 257, "").1);
    for (open, close) in [("( ", ")"), ("{ ", "; }"), ("$(", ")"), ("if ", "; then b; fi"), ("a \"$(", ")\"")]
    {
        let nested = |levels: usize| [&open.repeat(levels), "a", &close.repeat(levels)].concat();
        assert!(read(&nested(8)).0.contains(&"a".to_owned()), "{open}");
        assert!(read(&nested(9)).1, "{open}");
    }
}

#[test]
fn wrappers_are_counted() {
    assert_eq!(repeated("", "nice ", 4, "rm x"), (vec!["rm x".to_owned()], false));
    assert_eq!(repeated("", "nice ", 5, "rm x"), (vec!["nice rm x".to_owned()], true));
    let text = "sh -c \"sh -c 'eval env rm x'\"";
    assert_eq!(read(text), (vec!["rm x".to_owned()], false));
    let (commands, is_opaque) = repeated("", "find -exec ", 5, "rm {} ;");
    assert!(is_opaque && commands.len() <= 5);
    assert!(repeated("", "find -exec ", 5000, "").1);
}

#[test]
fn lists_in_braces_are_counted() {
    assert_divided(&[("a {1..3}", &["a 1 2 3"]), ("a {9999999999999999..1}", &["a {9999999999999999..1}"])]);
    assert!(!read("a {1..1024}").1);
    assert!(read("a {1..1025}").1);
    assert!(read("a {-9999999999..9999999999}").1);
    assert!(repeated("a ", "{b,c}", 12, "").1);
    assert!(repeated("a {", "b,", 2000, "}").1);
    assert!(repeated("", "{a,", 9000, &"}".repeat(9000)).1);
}

#[test]
fn a_directory_that_is_too_long_is_computed() {
    let division = divide(&format!("cd {}; cat x", "a/".repeat(3000)), &WorkingDirectory::Unsaid);
    assert_eq!(division.commands[1].directories[0], WorkingDirectory::Computed);
}

#[test]
fn many_parts_that_do_not_end_are_opaque() {
    for part in [
        "$(",
        "`",
        "${",
        "$((",
        "(",
        "{ ",
        "\"$(",
        "<(",
        "case a in b) ",
        "if ",
        "while ",
        "[[ ( ",
        "x=(",
        "f() { ",
    ] {
        assert!(repeated("", part, 10_000, "").1, "{part}");
    }
    for part in ["<<a ", "a <<a\n", "{,", "a[ ", "{}", "*,", "\\", "\u{3000}"] {
        assert!(repeated("a[", part, 10_000, "'").1, "{part}");
    }
}
