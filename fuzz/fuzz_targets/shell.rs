//! Shell commands: any text is divided, within the bounds; how a word is quoted changes nothing.
#![no_main]

use libfuzzer_sys::fuzz_target;
use postern::provider::kind::shell::division::{
    Division, WordForm, WorkingDirectory, divide, divide_arguments,
};

fuzz_target!(|input: (&str, Vec<&str>, u8)| {
    let (text, words, quotes) = input;
    for start in
        [WorkingDirectory::Unsaid, WorkingDirectory::At("/workspace".into()), WorkingDirectory::Computed]
    {
        check(text, &divide(text, &start));
    }

    // Words that come one by one are the same in a text, however they are quoted there.
    let words: Vec<&str> = words.into_iter().take(20).filter(|word| !word.contains('\0')).collect();
    let start = WorkingDirectory::Unsaid;
    let arguments = divide_arguments(&words, &start);
    if arguments.is_opaque || words.iter().map(|word| word.len()).sum::<usize>() > 4096 {
        return;
    }
    let quoted = |(at, word): (usize, &&str)| match (usize::from(quotes) + at) % 3 {
        0 => format!("'{}'", word.replace('\'', r"'\''")),
        1 => format!(
            "\"{}\"",
            word.replace('\\', r"\\").replace('"', "\\\"").replace('$', "\\$").replace('`', "\\`")
        ),
        _ => format!("$'{}'", word.replace('\\', r"\\").replace('\'', r"\'")),
    };
    let text = words.iter().enumerate().map(quoted).collect::<Vec<_>>().join(" ");
    if !text.is_empty() {
        assert_eq!(divide(&text, &start), arguments, "{text}");
    }
});

fn check(text: &str, division: &Division) {
    assert!(division.commands.len() <= 256, "more commands than are read");
    assert!(division.commands.iter().map(|command| command.words.len()).sum::<usize>() <= 16 * 4096);
    assert!(division.is_opaque || !text.contains('\0') && text.len() <= 64 << 10);
    for command in &division.commands {
        assert!(!command.words.is_empty() || !command.redirections.is_empty(), "a command of nothing");
        let targets = command.redirections.iter().map(|redirection| &redirection.target);
        let computed = command.words.iter().chain(targets).filter(|word| word.form == WordForm::Computed);
        assert!(
            computed.clone().all(|word| !word.text.is_empty()),
            "a computed word is shown as it is written"
        );
    }
}
