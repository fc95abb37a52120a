//! What texts are divided into.

use super::*;

fn words(text: &str) -> (Vec<String>, bool) {
    let division = divide(text, &WorkingDirectory::Unsaid);
    let joined = |command: DividedCommand| {
        command.words.into_iter().map(|word| word.text).collect::<Vec<_>>().join(" ")
    };
    (division.commands.into_iter().map(joined).collect(), division.is_opaque)
}

#[test]
fn commands_are_divided() {
    for (text, commands) in [
        ("ls", &["ls"][..]),
        ("cd /x && git push origin main", &["cd /x", "git push origin main"]),
        ("a;b&c||d|e|&f\ng", &["a", "b", "c", "d", "e", "f", "g"]),
    ] {
        assert_eq!(words(text), (commands.iter().map(|c| (*c).to_owned()).collect(), false), "{text}");
    }
}
