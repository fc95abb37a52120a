//! What is known of programs: which letters of their options take no value, and which of them run others.

/// Letters of options without a value, so that what follows them behind the same dash is an option too.
/// Sources: POSIX.1-2024 and the manuals of GNU coreutils 9, GNU grep 3, GNU tar 1.35, bash 5 and curl 8.
const FLAGS: &[(&[&str], &str)] = &[
    (&["sh", "bash", "zsh", "dash", "ash", "ksh"], "cilxeuvnrs"),
    (&["rm"], "dfiIrRv"),
    (&["cp"], "abdfHiLlnPpRrsTuvx"),
    (&["mv"], "bfinTuv"),
    (&["ln"], "bdfFiLnPrsTv"),
    (&["ls"], "aAbBcCdfFgGhHiklLmnNopqQrRsStuUvxXZ"),
    (&["mkdir"], "pv"),
    (&["chmod", "chown", "chgrp"], "cfvRhHLP"),
    (&["cat"], "AbeEnstTuv"),
    (&["du"], "0abcDhHklLmPsSx"),
    (&["df"], "ahHiklPT"),
    (&["sort"], "bcCdfghiMmnRrsuVz"),
    (&["grep", "egrep", "fgrep"], "abcEFGhHiILlnoPqRrsTUVvwxyzZ"),
    (&["tar"], "aAcdhjJkmOprStuvWxzZ"),
    (&["curl"], "aBfgGiIjJklLnNOpqRsSv"),
];

/// The letters of a program's options that take no value.
pub(super) fn flags(program: &str) -> &'static str {
    FLAGS.iter().find(|(names, _)| names.contains(&program)).map_or("", |(_, letters)| letters)
}

/// Programs whose option `-c` takes a script.
pub(super) const SHELLS: &[&str] = &["sh", "bash", "zsh", "dash", "ash", "ksh"];

/// Programs that run the one that is named next, where no option stands between.
pub(super) const PREFIXES: &[&str] = &["sudo", "env", "nohup", "exec", "command", "builtin"];

/// Words of the shell's grammar (POSIX.1-2024, section 2.4, and bash), which this reader does not follow.
pub(super) const KEYWORDS: &[&str] = &[
    "!", "{", "}", "[[", "case", "coproc", "do", "done", "elif", "else", "esac", "fi", "for", "function",
    "if", "in", "select", "then", "time", "until", "while",
];
