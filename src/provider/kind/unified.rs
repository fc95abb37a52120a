//! Reads which files a unified diff changes, whichever of its lines a program goes by: those of `diff`, Git and GNU patch.

/// The lines that name a file.
const NAMING: &[&str] = &["---", "+++", "Index:", "rename from", "rename to", "copy from", "copy to"];

/// The line between the hunks of a context diff. GNU patch takes any of its names, so that it is not read.
const CONTEXT: &str = "***************";

/// Whether a text has hunks of a diff in it.
pub(super) fn has_hunks(text: &str) -> bool {
    text.lines().map(str::trim_start).any(|line| line.starts_with("@@ -") || line.starts_with(CONTEXT))
}

/// Every file that is named; none where one of them cannot be read.
pub(super) fn paths(text: &str) -> Option<Vec<String>> {
    let mut paths = Vec::new();
    // GNU patch reads diffs that are indented.
    for line in text.lines().map(str::trim_start) {
        if line.starts_with(CONTEXT) {
            return None;
        }
        if let Some(rest) = line.strip_prefix("diff --git ") {
            both(rest, &mut paths)?;
        }
        let rest = NAMING.iter().find_map(|naming| line.strip_prefix(naming));
        if let Some(rest) = rest.filter(|rest| rest.starts_with([' ', '\t'])) {
            named(rest, &mut paths)?;
        }
    }
    paths.sort_unstable();
    paths.dedup();
    Some(paths)
}

/// `a/x b/x`: Git goes by this line where a file is renamed, is binary, or only changes its mode.
fn both(text: &str, paths: &mut Vec<String>) -> Option<()> {
    if text.contains('"') {
        // Quoted names; each closing quote ends one.
        let mut rest = text.trim();
        while !rest.is_empty() {
            let end = match rest.strip_prefix('"') {
                Some(quoted) => closing(quoted)? + 2,
                None => rest.find(' ').unwrap_or(rest.len()),
            };
            named(rest.get(..end)?, paths)?;
            rest = rest.get(end..)?.trim_start();
        }
        return Some(());
    }
    // The same name twice, which may have spaces in it; else each word.
    let text = text.trim();
    let half = text.len() / 2;
    if text.as_bytes().get(half) == Some(&b' ') {
        let (first, second) = text.split_at_checked(half)?;
        named(first, paths)?;
        named(second, paths)?;
    }
    text.split_whitespace().try_for_each(|word| named(word, paths))
}

/// Adds a name in each way in which it is read: to the tab or to the first space, with and without `a/` and `b/`.
fn named(text: &str, paths: &mut Vec<String>) -> Option<()> {
    let text = text.trim();
    let mut add = |name: &str| {
        if name.is_empty() || name == "/dev/null" {
            return;
        }
        paths.push(name.to_owned());
        let bare = name.strip_prefix("a/").or_else(|| name.strip_prefix("b/"));
        paths.extend(bare.filter(|bare| !bare.is_empty()).map(str::to_owned));
    };
    if let Some(quoted) = text.strip_prefix('"') {
        let name = quoted.get(..closing(quoted)?)?;
        add(&unquoted(name)?);
        return Some(());
    }
    let name = text.split('\t').next().unwrap_or_default().trim_end();
    add(name);
    add(name.split_whitespace().next().unwrap_or_default());
    Some(())
}

/// The end of a quoted name, behind its first quote.
fn closing(quoted: &str) -> Option<usize> {
    let mut escaped = false;
    for (at, sign) in quoted.bytes().enumerate() {
        match sign {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' => return Some(at),
            _ => {}
        }
    }
    None
}

/// A name without the escapes of C; none where they are none, or the name is no UTF-8.
fn unquoted(text: &str) -> Option<String> {
    let mut bytes = text.bytes().peekable();
    let mut name = Vec::with_capacity(text.len());
    while let Some(byte) = bytes.next() {
        if byte != b'\\' {
            name.push(byte);
            continue;
        }
        let escaped = bytes.next()?;
        name.push(match escaped {
            b'a' => 7,
            b'b' => 8,
            b't' => b'\t',
            b'n' => b'\n',
            b'v' => 11,
            b'f' => 12,
            b'r' => b'\r',
            b'"' | b'\\' => escaped,
            b'0'..=b'3' => {
                let mut value = escaped - b'0';
                for _ in 0..2 {
                    let digit = bytes.next().filter(|digit| (b'0'..=b'7').contains(digit))?;
                    value = value * 8 + (digit - b'0');
                }
                value
            }
            _ => return None,
        });
    }
    String::from_utf8(name).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(text: &str) -> Option<Vec<String>> {
        paths(text)
    }

    #[test]
    fn every_name_of_a_diff_is_read_as_each_program_reads_it() {
        for (text, expected) in [
            ("--- a/x.rs\n+++ b/x.rs\n@@ -1 +1 @@\n", &["a/x.rs", "b/x.rs", "x.rs"][..]),
            ("--- /dev/null\n+++ b/.git/hooks/x\t2026-01-01\n", &[".git/hooks/x", "b/.git/hooks/x"]),
            ("  +++ .bashrc then more\n", &[".bashrc", ".bashrc then more"]),
            ("+++\t.bashrc\n", &[".bashrc"]),
            ("+++ \"b/\\056git/hooks/x\"\n", &[".git/hooks/x", "b/.git/hooks/x"]),
            ("Index: .envrc\n", &[".envrc"]),
            ("similarity index 100%\nrename from a b\nrename to .envrc\n", &[".envrc", "a", "a b"]),
            ("diff --git a/x y b/x y\n", &["a/x", "a/x y", "b/x", "b/x y", "x", "x y", "y"]),
            ("diff --git \"a/\\303\\244\" b/c\n", &["a/ä", "b/c", "c", "ä"]),
            ("nothing\n", &[]),
        ] {
            assert_eq!(all(text).unwrap(), expected, "{text}");
        }
    }

    #[test]
    fn a_name_that_cannot_be_read_leaves_none() {
        for text in [
            "+++ \"b/x\n",
            "+++ \"b/\\9\"\n",
            "+++ \"b/\\777\"\n",
            "+++ \"b/\\377\"\n",
            "*** .bashrc\n--- x\n***************\n*** 1 ****\n",
        ] {
            assert_eq!(all(text), None, "{text}");
        }
    }
}
