//! What holds for any text: no panic, bounded work, and quotes that change nothing.

use proptest::prelude::*;

use super::super::reader::steps;
use super::*;

/// Pieces of commands, in any order.
const PIECES: &str = "( |\n|;|&|&&|\\||\\(|\\)|\\{|\\}|\\[\\[| \\]\\]|\\[|\\]|'|\"|`|\\$|\\$\\(|\\$\\(\\(|\\$\\{|\\$'|<<E\n|<<|<|>|\\\\|\\\\\n|#|\\*|,|=|~|!|if |then |fi|for x in |do |done|case a in |esac|;;|function f|\\(\\)|cd |sh -c |eval |sudo |find -exec |xargs |env A=1 |\\{\\}|\\.\\.|\\$IFS|é|\u{a0}|\0|a|b1|-x|/|E\n){0,60}";

fn quoted(word: &str, how: usize) -> String {
    match how % 5 {
        0 => format!("'{}'", word.replace('\'', "'\\''")),
        1 => format!("\"{}\"", escaped(word, "\\\"$`")),
        2 => format!("$'{}'", escaped(word, "\\'")),
        // A backslash before a line break takes it away.
        3 => word.chars().map(|c| if c == '\n' { "'\n'".to_owned() } else { format!("\\{c}") }).collect(),
        _ => {
            word.chars().map(|c| if c == '\'' { "\"'\"".to_owned() } else { format!("'{c}'\"\"") }).collect()
        }
    }
}

fn escaped(word: &str, signs: &str) -> String {
    let escape = |c: char| if signs.contains(c) { vec!['\\', c] } else { vec![c] };
    word.chars().flat_map(escape).collect()
}

/// How many steps the reading of a text takes.
fn count(text: &str) -> usize {
    let before = steps();
    divide(text, &WorkingDirectory::Unsaid);
    steps() - before
}

proptest! {
    #[test]
    fn any_text_is_divided_within_the_bounds(text in PIECES) {
        let division = divide(&text, &WorkingDirectory::Unsaid);
        prop_assert!(division.commands.len() <= 256);
        let is_empty = |command: &DividedCommand| command.words.is_empty() && command.redirections.is_empty();
        prop_assert!(!division.commands.iter().any(is_empty));
        prop_assert!(count(&text) <= 100 * text.len() + 100, "{} steps", count(&text));
    }

    #[test]
    fn any_characters_are_divided(text in "\\PC{0,200}") {
        divide(&text, &WorkingDirectory::Unsaid);
    }

    #[test]
    fn how_words_are_quoted_changes_nothing(words in proptest::collection::vec("[^\0]{1,8}|rm|-rf|sh|-c|a; b|cd|/x|sudo", 1..6), how: [usize; 6]) {
        let start = WorkingDirectory::Unsaid;
        let arguments: Vec<&str> = words.iter().map(String::as_str).collect();
        let text = words.iter().zip(how).map(|(word, how)| quoted(word, how)).collect::<Vec<_>>().join(" ");
        prop_assert_eq!(divide(&text, &start), divide_arguments(&arguments, &start), "{}", text);
    }

    #[test]
    fn quotes_inside_of_a_word_change_nothing(word in "[a-z0-9./_-]{2,12}", at: prop::sample::Index, how in 0..5_usize) {
        let (first, second) = word.split_at(1 + at.index(word.len() - 1));
        prop_assume!(!grammar::is_keyword(&word));
        for text in [
            format!("{first}{}", quoted(second, how)),
            format!("{}{second}", quoted(first, how)),
            format!("{first}''{second}"),
            format!("{first}\"\"{second}"),
            format!("{first}\\\n{second}"),
        ] {
            prop_assert_eq!(read(&text), read(&word), "{}", text);
        }
    }
}

#[test]
fn the_work_grows_as_the_text_does() {
    for (before, part) in [
        ("", "a "),
        ("", "a;"),
        ("", "$a"),
        ("a", "\\\n"),
        ("", "{a,b}"),
        ("{", "a,"),
        ("", "*,"),
        ("", "{}"),
        ("", "''"),
        ("a[", "x "),
        ("", "$("),
        ("", "`a`"),
        ("", "${a}"),
        ("$((", "(1"),
        ("a", "$IFS"),
        ("a <<E\n", "b\n"),
        ("", "<<a "),
        ("", "cd a/b;"),
        ("find ", "-exec find "),
        ("sudo -", "E"),
        ("", "a | "),
        ("", "a &\\\n& "),
        ("[[ ", "a && "),
        ("case a in ", "a) b;; "),
        ("", "time "),
        ("", "! "),
        ("", "#\n"),
        ("", "1>a "),
        ("", "eval "),
    ] {
        let steps = |bytes: usize| count(&[before, &part.repeat(bytes / part.len())].concat());
        let (some, more) = (steps(4 << 10), steps(32 << 10));
        assert!(more <= 12 * some + 1000, "{part:?}: {some} and {more} steps");
    }
}
