//! Says of a shell command what an event may tell under `toolInputs: Redacted`: programs and names of options, no operand.
//!
//! A small reader of words, quotes and operators. Whatever it does not read with certainty is withheld as a whole, so
//! that no operand is taken for a program. It judges nothing: rules see the command itself.

mod flags;
mod words;

use std::borrow::Cow;

use flags::{KEYWORDS, PREFIXES, SHELLS, flags};
use words::{ShellToken, ShellWord, tokens};

/// Stands for one operand or several, and for a command that is not read.
const WITHHELD: &str = "…";

/// The longest command that is read, in bytes.
const MOST_BYTES: usize = 16 << 10;

/// How deep the scripts of shells are read that stand in one another.
const MOST_DEPTH: usize = 3;

/// The longest name of a program or an option, in bytes.
const MOST_NAME: usize = 40;

/// A name of so many bytes with digits among letters could be a key.
const KEY_LENGTH: usize = 16;

/// A command without its operands: `git … --force …; bash -lc 'rm -rf …'`.
pub(super) fn outline(command: &str) -> String {
    outline_at(command, 0).unwrap_or_else(|| WITHHELD.to_owned())
}

/// The same of a command that is a list of words, of which no shell reads the signs.
pub(super) fn outline_arguments(arguments: &[&str]) -> Vec<String> {
    let mut line = SimpleCommand::new(0);
    let outlined = arguments.iter().map(|argument| {
        line.word(&ShellWord::literal(argument))?;
        line.last.take()
    });
    outlined.collect::<Option<_>>().unwrap_or_else(|| vec![WITHHELD.to_owned(); arguments.len()])
}

/// The program and the options of a command that was read already: `rm -r -f …`. Letters that may be the value of an
/// option stay away.
pub(super) fn outline_of(command: &crate::call::SimpleCommand) -> String {
    let Some(program) = command.program.as_deref().filter(|name| is_name(name, "_.+-@")) else {
        return WITHHELD.to_owned();
    };
    let option = |name: &Cow<'_, str>| match name.chars().count() {
        1 => flags(program).contains(&**name).then(|| format!("-{name}")),
        _ => long_option(name, true),
    };
    let options = command.options.iter().filter_map(option);
    let pieces: Vec<String> = std::iter::once(program.to_owned()).chain(options).collect();
    let has_operand = command.text.split(' ').skip(1).any(|word| !word.starts_with('-'));
    if has_operand || pieces.len() <= command.options.len() {
        format!("{} {WITHHELD}", pieces.join(" "))
    } else {
        pieces.join(" ")
    }
}

fn outline_at(command: &str, depth: usize) -> Option<String> {
    if command.len() > MOST_BYTES || depth > MOST_DEPTH {
        return None;
    }
    let mut line = SimpleCommand::new(depth);
    let mut pieces: Vec<String> = Vec::new();
    for token in tokens(command)? {
        match token {
            ShellToken::Operator(sign) => {
                line = SimpleCommand::new(depth);
                pieces.push(sign.to_owned());
            }
            ShellToken::Redirection(sign) => {
                line.redirects = true;
                pieces.push(sign.to_owned());
            }
            ShellToken::Word(word) => {
                line.word(&word)?;
                let piece = line.last.take()?;
                // Neighbours are one, so that not even their number is told.
                if piece != WITHHELD || pieces.last().is_none_or(|last| last != WITHHELD) {
                    pieces.push(piece);
                }
            }
        }
    }
    Some(pieces.join(" "))
}

/// One simple command while its words come.
struct SimpleCommand {
    depth: usize,
    /// None until its word has come.
    program: Option<String>,
    /// The program runs the one that is named behind it: `sudo rm`.
    is_prefix: bool,
    /// The next word is where something is read from or written to.
    redirects: bool,
    /// The next word is the script of a shell.
    runs: bool,
    /// The next word is the value of a shell's option `-o`.
    is_valued: bool,
    /// `--` has come, or an operand of a shell: options do not any more.
    operands_only: bool,
    /// What is told of the last word.
    last: Option<String>,
}

impl SimpleCommand {
    fn new(depth: usize) -> Self {
        Self {
            depth,
            program: None,
            is_prefix: false,
            redirects: false,
            runs: false,
            is_valued: false,
            operands_only: false,
            last: None,
        }
    }

    /// Takes the next word; none where it cannot be told what the word is.
    fn word(&mut self, word: &ShellWord) -> Option<()> {
        let outlined = if std::mem::take(&mut self.redirects) {
            WITHHELD.to_owned()
        } else if self.program.is_none() || (self.is_prefix && !word.text.starts_with('-')) {
            self.program(word)?
        } else if std::mem::take(&mut self.runs) {
            // What follows are operands of the script.
            self.operands_only = true;
            self.script(word)
        } else if std::mem::take(&mut self.is_valued) || self.operands_only {
            WITHHELD.to_owned()
        } else if self.is_shell() && word.is_shells_operand() {
            self.operands_only = true;
            WITHHELD.to_owned()
        } else if word.is("--") {
            self.operands_only = true;
            word.text.clone()
        } else {
            self.option(word)
        };
        self.last = Some(outlined);
        Some(())
    }

    fn program(&mut self, word: &ShellWord) -> Option<String> {
        if word.is_assignment() {
            return Some(WITHHELD.to_owned());
        }
        if word.is("[") {
            self.is_prefix = false;
            self.program = Some(word.text.clone());
            return self.program.clone();
        }
        if !word.is_path() || KEYWORDS.contains(&word.text.as_str()) {
            return None;
        }
        let name = word.text.rsplit('/').next().filter(|name| is_name(name, "_.+-@"))?;
        self.is_prefix = PREFIXES.contains(&name);
        self.program = Some(name.to_owned());
        Some(name.to_owned())
    }

    fn script(&self, word: &ShellWord) -> String {
        if word.expands {
            return WITHHELD.to_owned();
        }
        let script = outline_at(&word.text, self.depth + 1);
        script.map_or_else(|| WITHHELD.to_owned(), |script| format!("'{script}'"))
    }

    fn is_shell(&self) -> bool {
        self.program.as_deref().is_some_and(|program| SHELLS.contains(&program))
    }

    /// The name of an option, without a value that is attached to it.
    fn option(&mut self, word: &ShellWord) -> String {
        // The program of a prefix could be an operand of this option.
        self.is_prefix = false;
        let plain = word.text.get(..word.plain).unwrap_or_default();
        let outlined = match plain.strip_prefix("--") {
            Some(long) => long_option(long, word.is_plain()),
            None => plain.strip_prefix('-').and_then(|letters| {
                let outlined = self.letters(letters, word.is_plain())?;
                self.runs = self.is_shell() && outlined.ends_with('c');
                self.is_valued = self.is_shell() && outlined.ends_with('o');
                Some(outlined)
            }),
        };
        outlined.unwrap_or_else(|| WITHHELD.to_owned())
    }

    /// Letters behind one dash: behind the first that may take a value, the rest is that value.
    fn letters(&self, letters: &str, is_whole: bool) -> Option<String> {
        let flags = self.program.as_deref().map(flags).unwrap_or_default();
        let first = letters.chars().next().filter(char::is_ascii_alphabetic)?;
        let mut outlined = format!("-{first}");
        let mut last = first;
        for letter in letters.chars().skip(1) {
            if !flags.contains(last) || !letter.is_ascii_alphabetic() {
                return Some(outlined + WITHHELD);
            }
            outlined.push(letter);
            last = letter;
        }
        Some(if is_whole { outlined } else { outlined + WITHHELD })
    }
}

/// `--name`, and that it has a value. A name with capitals or digits could be a key.
fn long_option(plain: &str, is_whole: bool) -> Option<String> {
    let (name, valued) = match plain.split_once('=') {
        Some((name, _)) => (name, true),
        None if is_whole => (plain, false),
        None => return None,
    };
    let is_words = name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'-');
    (is_words && is_name(name, "-")).then(|| format!("--{name}{}", if valued { "=…" } else { "" }))
}

/// Whether a text is what programs and options are called, and no key.
fn is_name(text: &str, signs: &str) -> bool {
    let of_name = |c: char| c.is_ascii_alphanumeric() || signs.contains(c);
    let digits = text.bytes().any(|byte| byte.is_ascii_digit());
    let letters = text.bytes().any(|byte| byte.is_ascii_alphabetic());
    letters
        && text.len() <= MOST_NAME
        && text.chars().all(of_name)
        && !text.starts_with(['-', '+'])
        && !(digits && text.len() >= KEY_LENGTH)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_and_names_of_options_stay() {
        for (command, told) in [
            ("ls", "ls"),
            ("rm -rf /tmp/secret", "rm -rf …"),
            ("git push --force origin main", "git … --force …"),
            ("git commit -m 'a secret; rm -rf x'", "git … -m …"),
            ("cd /srv/acme && make test | tee log > out.txt", "cd … && make … | tee … > …"),
            ("/home/alice/bin/deploy --env=prod --dry-run", "deploy --env=… --dry-run"),
            ("sudo rm -rf /", "sudo rm -rf …"),
            ("sudo -u alice rm -rf /", "sudo -u … -r… …"),
            ("TOKEN=hunter2 env X=1 curl -fsSLo f https://u:p@h/", "… env … curl -fsSLo …"),
            ("bash -lc 'rm -rf \"$X\" && echo \"hunter2 b\"'", "bash -lc 'rm -rf … && echo …'"),
            ("grep -rn hunter2 . 2>&1 >/dev/null", "grep -rn … >& … > …"),
            ("# build it\nmake -j4 all; echo $HOME ${USER}", "make -j… … ; echo …"),
            ("rm -- -hunter2 --hunter2", "rm -- …"),
            ("bash deploy.sh -c hunter2; zsh x.zsh -xc hunterKey a -c b", "bash … ; zsh …"),
            ("sh -e $X -c hunter2; sh - x -c hunter2; sh -$X -c hunter2", "sh -e … ; sh … ; sh …"),
            ("bash -eo pipefail -c 'ls x' -c hunter2", "bash -eo … -c 'ls …' …"),
            ("bash --rcfile x -c hunter2; env sh x -c hunter2", "bash --rcfile … ; env sh …"),
            ("find . -name '*.rs' -exec rm {} +", "find … -n… … -e… …"),
            ("[ -f x ] || exit 3", "[ -f … || exit …"),
            ("PATH+=:/opt/hunter ls; x=1 y+=z/hunter a[0]=b/hunter make -s", "… ls ; … make -s"),
        ] {
            assert_eq!(outline(command), told, "{command}");
        }
    }

    #[test]
    fn a_command_that_was_read_keeps_its_program_and_options() {
        for (text, options, told) in [
            ("rm -rf hunter2", &["r", "f"][..], "rm -r -f …"),
            ("rm -r", &["r"], "rm -r"),
            ("ls", &[], "ls"),
            ("mysql -phunter2", &["p", "h"], "mysql …"),
            ("cat hunter2", &[], "cat …"),
        ] {
            let command = crate::call::SimpleCommand {
                text: text.to_owned(),
                program: text.split(' ').next().map(|name| name.to_owned().into()),
                options: options.iter().map(|option| (*option).to_owned().into()).collect(),
                ..Default::default()
            };
            assert_eq!(outline_of(&command), told, "{text}");
        }
    }

    #[test]
    fn a_value_that_is_attached_to_an_option_does_not_stay() {
        for (command, told) in [
            ("mysql -phunter2 -uroot", "mysql -p… -u…"),
            ("mysql -pab", "mysql -p…"),
            ("curl -Hhunter2 --header='x: hunter2' --oauth2-bearer=hunter2", "curl -H… --header=… …"),
            ("head -n5 -20 x", "head -n… …"),
            ("tool --key=\"hunter2\" \"--hunter2\" -k'hunter2' --k'hunter2'", "tool --key=… … -k… …"),
            ("tool --0123456789abcdef0123 -", "tool …"),
            ("tool --hunterSecretKey --hunter2 --HUNTER=x --hun_ter --dry-run", "tool … --dry-run"),
        ] {
            assert_eq!(outline(command), told, "{command}");
        }
    }

    #[test]
    fn what_cannot_be_read_clearly_is_withheld_as_a_whole() {
        for command in [
            "",
            "echo $(cat hunter2)",
            "echo `cat hunter2`",
            "echo \"$(cat hunter2)\"",
            "echo 'hunter2",
            "echo \"hunter2",
            "cat <<EOF\nhunter2 x\nEOF",
            "diff <(cat hunter2) x",
            "(hunter2)",
            "if true; then hunter2; fi",
            "for hunter2 in a; do x; done",
            "f() { hunter2; }",
            "$PYTHON hunter2",
            "\"my program\" hunter2",
            "echo ${x:-hunter2}",
            "echo $'hunter2'",
            "# don't\nhunter2",
            // Another shell's quotes are not where these are.
            r#"echo "C:\" ; hunter2 ; "x\"""#,
            r"echo a\'; hunter2 b\'",
            r#"echo a\"; hunter2 b\""#,
            "echo \u{201c}; hunter2 b\u{201d}",
            "echo @\"\n\" ; hunter2 b \"\n\"@",
            "case x in hunter2) y;; esac",
            "ghp_0123456789abcdefghij",
            "echo \u{1b}[31m hunter2",
            "x; 'hunter2'",
            "https://user:pass@host/hunterKey",
            "env FOO-BAR=x/hunterKey cmd",
            "a:b/hunterKey",
            "x*/hunterKey",
            "sudo {a,b}/hunterKey",
            "+hunterKey",
        ] {
            let outlined = outline(command);
            assert!(
                outlined == WITHHELD || (command.is_empty() && outlined.is_empty()),
                "{command}: {outlined}"
            );
        }
        assert_eq!(outline(&format!("echo {}", "a".repeat(MOST_BYTES))), WITHHELD);
    }

    #[test]
    fn a_list_of_words_is_read_without_a_shells_signs() {
        assert_eq!(outline_arguments(&["bash", "-lc", "git push -f x"]), ["bash", "-lc", "'git … -f …'"]);
        assert_eq!(outline_arguments(&["rm", "-rf", "a; hunter2", "--x=1"]), ["rm", "-rf", "…", "--x=…"]);
        assert_eq!(outline_arguments(&["git push", "hunter2"]), ["…", "…"]);
        assert_eq!(outline_arguments(&["FOO+=a/hunterKey", "x"]), ["…", "x"]);
        assert_eq!(outline_arguments(&["TOKEN+=abc/hunter2"]), ["…"]);
        assert_eq!(outline_arguments(&["bash", "deploy.sh", "-c", "hunter2"]), ["bash", "…", "…", "…"]);
        assert_eq!(
            outline_arguments(&["bash", "-c", r#"bash -c 'bash -c "bash -c x\\ y"'"#])[2],
            "'bash -c 'bash -c 'bash -c …'''"
        );
    }

    proptest::proptest! {
        /// Of a text in quotes, behind an option or an assignment, or behind a shell's file, nothing is ever told.
        #[test]
        fn no_operand_is_told(
            operand in "[a-z]{6,10}",
            before in "[a-z '\"-]{0,12}",
            after in ".{0,12}",
            first in "(bash |sudo sh |env )?[a-z_]{1,3}(\\+|\\[[a-z0-9]\\]|\\[[a-z0-9]\\]\\+|[:@,!%^{}-]{0,2})",
            shell in "(env |sudo |/bin/)?(sh|bash|zsh|dash|ash|ksh) (-[eux]+ |-o x |--x )?[a-z./$+]{1,5}",
        ) {
            for command in [
                format!("prog '{operand}' {after}"),
                format!("prog {before} \"{operand}\" {after}"),
                format!("prog -x {operand} {after}"),
                format!("prog {before} arg={operand}"),
                format!("{first}={operand} {after}"),
                format!("{first}=/{operand} {after}"),
                format!("{first}:/{operand} {after}"),
                format!("{shell} -c {operand}"),
                format!("{shell} -xc '{operand}' -c {operand}"),
            ] {
                // What stands outside of its own quotes is a program by right.
                if !before.contains(['\'', '"']) && !after.contains(operand.as_str()) {
                    proptest::prop_assert!(!outline(&command).contains(&operand), "{}", command);
                    let words: Vec<&str> = command.split(' ').collect();
                    let outlined = outline_arguments(&words).join(" ");
                    proptest::prop_assert!(!outlined.contains(&operand), "{} as a list: {}", command, outlined);
                }
            }
        }
    }
}
