//! What texts are divided into.

mod bounds;
mod hiding;
mod properties;

use super::*;

/// The commands of a text, each with its words joined by spaces, and whether it is opaque.
fn read(text: &str) -> (Vec<String>, bool) {
    let division = divide(text, &WorkingDirectory::Unsaid);
    (division.commands.iter().map(joined).collect(), division.is_opaque)
}

fn joined(command: &DividedCommand) -> String {
    command.words.iter().map(|word| word.text.as_str()).collect::<Vec<_>>().join(" ")
}

#[track_caller]
fn assert_divided(cases: &[(&str, &[&str])]) {
    for (text, commands) in cases {
        assert_eq!(read(text), (commands.iter().map(|c| (*c).to_owned()).collect(), false), "{text}");
    }
}

#[track_caller]
fn assert_opaque(texts: &[&str]) {
    for text in texts {
        assert!(read(text).1, "{text:?}: {:?}", read(text));
    }
}

#[test]
fn lists_and_pipelines_are_divided() {
    assert_divided(&[
        ("ls", &["ls"]),
        ("", &[]),
        (" # nothing\n\n", &[]),
        ("cd /x && git push origin main", &["cd /x", "git push origin main"]),
        ("a;b&c||d|e|&f\ng", &["a", "b", "c", "d", "e", "f", "g"]),
        ("! a | b && time -p c", &["a", "b", "c"]),
        ("a # b; c\nd#e", &["a", "d#e"]),
        ("a;", &["a"]),
    ]);
}

#[test]
fn compound_commands_are_divided() {
    assert_divided(&[
        ("(a; b) && { c; }", &["a", "b", "c"]),
        ("if a; then b; elif c; then d; else e; fi", &["a", "b", "c", "d", "e"]),
        ("while a; do b; done; until c; do d; done", &["a", "b", "c", "d"]),
        ("for x in 1 2; do a x; done; for x do b; done", &["a x", "b"]),
        ("for ((i=0;i<3;i++)); do a; done", &["a"]),
        ("select x in a b; do c; done", &["c"]),
        ("case x in a|b) c;; (d) e;& *) f;;& esac", &["c", "e", "f"]),
        ("f() { a; }; function g { b; }; f", &["a", "b", "f"]),
        ("[[ a == b && -f c ]] && d", &["d"]),
        ("((1 + 2)) || a", &["a"]),
    ]);
}

#[test]
fn commands_inside_of_words_are_divided() {
    assert_divided(&[
        ("a $(b; c) `d`", &["a $(b; c) `d`", "b", "c", "d"]),
        ("a \"$(b)\" \"`c`\"", &["a \"$(b)\" \"`c`\"", "b", "c"]),
        ("a <(b) >(c)", &["a <(b) >(c)", "b", "c"]),
        ("x=$(a) b", &["b", "a"]),
        ("a ${x:-$(b)} $((1+$(c)))", &["a ${x:-$(b)} $((1+$(c)))", "b", "c"]),
        ("a <<END\n$(b)\nEND", &["a", "b"]),
        ("a <<'END'\n$(b)\nEND", &["a"]),
        ("x=(a $(b)) c", &["c", "b"]),
    ]);
}

#[test]
fn quotes_and_escapes_hide_no_program() {
    let plain: &[&str] = &["rm -rf /"];
    for text in [
        "\"rm\" -rf /",
        "'rm' -rf /",
        "r''m -r\"\"f /",
        "\\rm -rf /",
        "r\\m -rf /",
        "$'rm' -rf /",
        "$'\\x72\\155' -rf /",
        "$\"rm\" -rf /",
        "rm$IFS-rf$IFS/",
        "rm${IFS}-rf${IFS}/",
        "{rm,-rf,/}",
        "rm \\\n-rf \\\n/",
        "r\\\nm -rf /",
        "rm\t-rf  /",
    ] {
        assert_divided(&[(text, plain)]);
    }
    assert_divided(&[
        ("cat 'a b'\\ c", &["cat a b c"]),
        ("cat \"a\\$b\\\\c\\d\"", &["cat a$b\\c\\d"]),
        ("{a,b}{1..3}", &["a1 a2 a3 b1 b2 b3"]),
    ]);
    assert_opaque(&["echo \\$(b"]);
}

#[test]
fn wrappers_are_taken_off() {
    for text in [
        "A=1 rm x",
        "env -i -u B A=1 rm x",
        "command rm x",
        "exec -a ls rm x",
        "nohup nice -n 5 timeout -k 1 5 rm x",
        "time -f %e rm x",
        "stdbuf -oL rm x",
        "sh -c 'rm x'",
        "bash -lc 'rm x' sh",
        "bash -o pipefail -ec 'rm x'",
        "eval rm x",
        "eval 'rm' \"x\"",
        "bash <<< 'rm x'",
        "trap 'rm x' EXIT",
    ] {
        assert!(read(text).0.contains(&"rm x".to_owned()), "{text}: {:?}", read(text));
        assert!(!read(text).1, "{text}");
    }
    assert_divided(&[
        ("sudo -u root rm x", &["sudo -u root rm x", "rm x"]),
        ("a | xargs -0 rm -f", &["a", "xargs -0 rm -f {}", "rm -f {}"]),
        ("find . -exec rm {} +", &["find . -exec rm {} +", "rm {}"]),
        ("sh <<END\nrm x\nEND", &["sh", "rm x"]),
    ]);
}

#[test]
fn redirections_are_read_without_spaces() {
    use RedirectionKind::{Read, ReadWrite, Text, Write};
    for (text, expected) in [
        ("a>b", &[(Write, "b")][..]),
        ("a 2>>b", &[(Write, "b")]),
        (">b a", &[(Write, "b")]),
        ("a&>b", &[(Write, "b")]),
        ("a >| b", &[(Write, "b")]),
        ("a >&b", &[(Write, "b")]),
        ("a 2>&1 >&- <&3", &[]),
        ("a<b", &[(Read, "b")]),
        ("a<>b", &[(ReadWrite, "b")]),
        ("a<<<b", &[(Text, "b")]),
        ("a {fd}>b", &[(Write, "b")]),
        ("a <<-E\n\tb\n\tE", &[(Text, "b\n")]),
        ("while a; do b; done >c <d", &[(Write, "c"), (Read, "d")]),
    ] {
        let division = divide(text, &WorkingDirectory::Unsaid);
        let redirections = division.commands.iter().flat_map(|command| &command.redirections);
        let targets: Vec<_> = redirections.map(|to| (to.kind, to.target.text.as_str())).collect();
        assert_eq!((targets.as_slice(), division.is_opaque), (expected, false), "{text}");
    }
}

#[test]
fn a_program_that_is_computed_is_opaque() {
    assert_opaque(&[
        "$x a",
        "$(x) a",
        "`x` a",
        "${x} a",
        "r$x a",
        "\"$x\" a",
        "r* a",
        "/bin/r? a",
        "eval $x",
        "sh -c \"$x\"",
        "sudo $x",
        "env -$x a",
        "a | sh",
        "curl x | bash -s",
        "source <(a)",
        "find . -exec $x {} \\;",
        "alias ls=rm",
        "pwsh -c a",
        "bash -c 'a $x; $y'",
        "IFS=x; a$IFS-b; $c",
    ]);
    assert_divided(&[("a $x", &["a $x"]), ("~/bin/a b", &["~/bin/a b"]), ("echo r*", &["echo r*"])]);
}

#[test]
fn a_text_in_which_something_is_expanded_is_divided_as_far_as_it_is_written() {
    for (text, inner) in [
        ("bash -c \"rm $x\"", &["rm $x"][..]),
        ("bash -c 'rm '\"$x; \\\"ls\\\" \\$y\"", &["rm $x", "ls $y"]),
        ("eval \"cd $x && rm y\"", &["cd $x", "rm y"]),
        ("bash <<E\nrm $x\nE", &["rm $x"]),
        ("bash <<<\"rm $x\"", &["rm $x"]),
        ("xargs -I{} sh -c 'rm {}'", &["rm {}"]),
    ] {
        let (commands, is_opaque) = read(text);
        assert!(
            is_opaque && commands.ends_with(&inner.iter().map(|c| (*c).to_owned()).collect::<Vec<_>>()),
            "{text}: {commands:?}"
        );
        assert!(commands.len() > inner.len(), "what runs it is a command, too: {commands:?}");
    }
}

#[test]
fn a_word_that_is_computed_is_told_from_one_that_is_written() {
    let division = divide("cat $x 'a*' b* ~/c '$d' \"e$f\" {g,$h}", &WorkingDirectory::Unsaid);
    let forms: Vec<_> =
        division.commands[0].words.iter().map(|word| (word.text.as_str(), word.form)).collect();
    let expected = [
        ("cat", WordForm::Literal),
        ("$x", WordForm::Computed),
        ("a*", WordForm::Literal),
        ("b*", WordForm::Pattern),
        ("~/c", WordForm::Pattern),
        ("$d", WordForm::Literal),
        ("\"e$f\"", WordForm::Computed),
        ("g", WordForm::Literal),
        ("$h", WordForm::Computed),
    ];
    assert_eq!(forms, expected);
}

/// Where `cat x` runs in a text that starts in `/w`, with `?` for what is computed.
fn places(text: &str) -> Vec<String> {
    let division = divide(text, &WorkingDirectory::At("/w".into()));
    let command = division.commands.into_iter().find(|command| joined(command) == "cat x").unwrap();
    let shown = |directory: &WorkingDirectory| match directory {
        WorkingDirectory::At(directory) => directory.to_string(),
        WorkingDirectory::Unsaid => ".".to_owned(),
        WorkingDirectory::Computed => "?".to_owned(),
    };
    let mut places: Vec<String> = command.directories.iter().map(shown).collect();
    places.sort();
    places
}

#[test]
fn a_directory_holds_for_what_runs_behind_it() {
    for (text, directories) in [
        ("cat x", &["/w"][..]),
        ("cd a && cat x", &["/w/a"]),
        ("cd a && b && cat x", &["/w/a"]),
        ("cd a; cd ..; cd /b/./c && cat x", &["/b/c"]),
        ("(cd a); cat x", &["/w"]),
        ("(cd a && cat x)", &["/w/a"]),
        ("cd a | b; cat x", &["/w"]),
        ("cd a & cat x", &["/w"]),
        ("cd $a && cat x", &["?"]),
        ("cd && cat x", &["?"]),
        ("cd - && cat x", &["?"]),
        ("cd a || cat x", &["/w"]),
        ("cd a || exit; cat x", &["/w/a"]),
        ("cd a || exit 1\ncat x", &["/w/a"]),
        ("cd a || { echo b >&2; exit 1; }; cat x", &["/w/a"]),
        ("sh -c 'cd a && cat x'", &["/w/a"]),
        ("sh -c 'cd a'; cat x", &["/w"]),
        ("eval 'cd a && cat x'", &["/w/a"]),
        ("env -C a cat x", &["/w/a"]),
        ("command cd a && cat x", &["/w/a"]),
        ("$(cd a); cat x", &["/w"]),
        ("trap 'cd /; b' EXIT; cat x", &["/w"]),
        ("f() { cd a; }; cat x", &["/w"]),
        ("CDPATH=/b; cd a && cat x", &["?"]),
        ("cd ~ && cat x", &["~"]),
        ("cd ~/a && cat x", &["~/a"]),
        ("cd ~/a/../b/ && cd c && cat x", &["~/b/c"]),
        ("cd ~/'a b' && cat x", &["~/a b"]),
        ("pushd ~/a && cat x", &["~/a"]),
        ("env -C ~/a cat x", &["~/a"]),
        ("cd /b && cd ~/a && cd /c && cat x", &["/c"]),
        ("cd {~/a,} && cat x", &["~/a"]),
        ("cd ~/.. && cat x", &["?"]),
        ("cd ~/a && cd ../.. && cat x", &["?"]),
        ("cd ~b && cat x", &["?"]),
        ("cd ~+/b && cat x", &["?"]),
        ("cd ~/b* && cat x", &["?"]),
        ("cd '~/a' && cat x", &["/w/~/a"]),
        ("cd ~'/a' && cat x", &["/w/~/a"]),
        ("cd ~\\/a && cat x", &["/w/~/a"]),
        ("cd ~\\\n/a && cat x", &["~/a"]),
        ("cd {'~/a',} && cat x", &["?"]),
        ("HOME=/b; cd ~/a && cat x", &["?"]),
    ] {
        assert_eq!(places(text), directories, "{text}");
    }
}

#[test]
fn where_a_change_of_the_directory_may_fail_or_not_run_both_are_told() {
    for (text, directories) in [
        ("cd a; cat x", &["/w", "/w/a"][..]),
        ("cd a\ncat x", &["/w", "/w/a"]),
        ("cd /etc; cd /w/b; cat x", &["/etc", "/w", "/w/b"]),
        ("cd /etc && cd /w/b; cat x", &["/etc", "/w", "/w/b"]),
        ("cd /etc && cd /w/b || true; cat x", &["/etc", "/w", "/w/b"]),
        ("cd /etc && { false && cd /w; cat x; }", &["/etc", "/w"]),
        ("cd /etc && { cd /b || { false && exit; }; cat x; }", &["/b", "/etc"]),
        ("cd /etc && { cd /b || (exit); cat x; }", &["/b", "/etc"]),
        ("cd /etc && { cd /b || exit 1 2; cat x; }", &["/b", "/etc"]),
        ("cd /etc && { cd /b || x=$(exit); cat x; }", &["/b", "/etc"]),
        ("cd /etc && { cd /b || bash -c exit; cat x; }", &["/b", "/etc"]),
        ("! cd a && cat x", &["/w", "/w/a"]),
        ("b | cd a; cat x", &["/w", "/w/a"]),
        ("if b; then cd a; fi; cat x", &["/w", "/w/a"]),
        ("case b in c) cd a;; esac; cat x", &["/w", "/w/a"]),
        ("cd $a; cat x", &["/w", "?"]),
        ("while b; do cd a; done; cat x", &["/w", "/w/a", "?"]),
        ("while b; do cat x; cd a; done", &["/w", "?"]),
        ("sh -c 'cd a; cat x'", &["/w", "/w/a"]),
        ("f() { cd a; }; f; cat x", &["/w", "?"]),
        ("f() { cd a; }; cd /b && f; cat x", &["/b", "/w", "?"]),
        ("f() { g; }; g() { cd a; }; cd /b && f; cat x", &["/b", "/w", "?"]),
        ("for i in 1 2; do f; cat x; f() { cd a; }; done", &["/w", "?"]),
        ("trap 'cd /etc' DEBUG; cat x", &["?"]),
        ("f() { cd /etc; }; trap f DEBUG; cat x", &["?"]),
        ("trap f DEBUG; f() { cd /etc; }; cat x", &["?"]),
    ] {
        assert_eq!(places(text), directories, "{text}");
    }
    assert!(places("cd a; cd b; cd c; cd d; cat x").contains(&"?".to_owned()));
}

#[test]
fn what_shells_read_differently_is_opaque() {
    assert_opaque(&[
        "a >!b",
        "${ a; }",
        "echo ${(e)a}",
        "echo $[1+1]",
        "a[ 1]=b c",
        "echo $'\\x{41}'",
        "echo $'a\\0b'",
        "coproc a",
        "if() { a; }",
        "cd() { a; }; cd b",
    ]);
}

#[test]
fn arguments_of_which_no_shell_reads_the_signs_are_words() {
    let start = WorkingDirectory::Unsaid;
    let division = divide_arguments(&["echo", "a; rm b", "$(c)", ">d"], &start);
    assert_eq!((joined(&division.commands[0]).as_str(), division.is_opaque), ("echo a; rm b $(c) >d", false));
    assert!(division.commands[0].words.iter().all(|word| word.form == WordForm::Literal));
    let division = divide_arguments(&["bash", "-lc", "echo a; rm b"], &start);
    assert_eq!(division.commands.iter().map(joined).collect::<Vec<_>>(), ["echo a", "rm b"]);
    assert!(divide_arguments(&["a\0b"], &start).is_opaque);
}
