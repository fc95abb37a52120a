//! What an interactive shell puts in the place of what is typed: earlier commands, or parts of them.

/// Whether a line that is typed recalls another: `!!`, `!rm`, `!$`, `^old^new`.
///
/// Shells differ in which quotes and backslashes keep them from it. Only what stands in single quotes on a line of its
/// own, with no other quote before it, is certain.
pub(super) fn is_recalled(text: &str) -> bool {
    if !text.contains(['!', '^']) {
        return false;
    }
    let mut quotes_before = 0;
    let mut is_plain = true;
    text.split('\n').any(|line| {
        let mut quotes = 0;
        let mut signs = line.chars().peekable();
        let recalls = line.starts_with('^')
            || std::iter::from_fn(|| signs.next().map(|sign| (sign, signs.peek().copied()))).any(
                |(sign, next)| {
                    quotes += usize::from(sign == '\'');
                    is_plain &= !matches!(sign, '"' | '\\');
                    let is_quoted = is_plain && quotes % 2 == 1 && quotes_before % 2 == 0;
                    sign == '!' && !is_quoted && next.is_some_and(|next| !matches!(next, ' ' | '\t' | '='))
                },
            );
        quotes_before += quotes;
        recalls
    })
}

#[cfg(test)]
mod tests {
    use super::is_recalled;

    #[test]
    fn a_line_recalls_another_unless_it_is_certainly_quoted() {
        for line in [
            "!!",
            "!rm",
            "cat !$/shadow",
            "^ls^rm^",
            "ls\n^ls^rm",
            "echo \"!!\"",
            "echo \"it's !rm x'\"",
            "echo it\\'s !rm\\'",
            "echo \\\\'!rm'",
            "echo 'a\nb' !rm ''",
            "# it's\nls ' ' !rm",
            "ls; !-2",
            "!?shadow?",
            "!{rm}",
        ] {
            assert!(is_recalled(line), "{line:?}");
        }
        for line in [
            "ls",
            "echo '!!'",
            "echo 'a ^b' '!rm'",
            "[ ! -e x ] && ls",
            "[ a != b ]",
            "echo hi!",
            "echo hi! there",
            "a=$!\nls",
            "grep -v 'x^' y",
            "if ! ls; then :; fi",
        ] {
            assert!(!is_recalled(line), "{line:?}");
        }
    }
}
