//! Expands braces in paths and patterns that a tool for searching expands: `{/etc,src}/*` is two patterns.

use std::borrow::Cow;

/// The most paths that one input may come to.
const MOST_PATHS: usize = 64;
/// The longest text whose braces are expanded, in bytes.
const MOST_BYTES: usize = 4096;

/// The paths with all alternatives in braces written out; none where there are more than the bounds allow.
pub(super) fn expanded(paths: Vec<Cow<'_, str>>) -> Option<Vec<Cow<'_, str>>> {
    if !paths.iter().any(|path| alternatives(path).is_some()) {
        return Some(paths);
    }
    let mut open = paths;
    let mut done = Vec::new();
    while let Some(path) = open.pop() {
        match alternatives(&path) {
            None => done.push(path),
            Some(_) if path.len() > MOST_BYTES => return None,
            Some(all) => open.extend(all.into_iter().map(Cow::Owned)),
        }
        if open.len() + done.len() > MOST_PATHS {
            return None;
        }
    }
    Some(done)
}

/// The texts that the first group of alternatives in a text stands for; none where it has none.
fn alternatives(text: &str) -> Option<Vec<String>> {
    let mut from = 0;
    loop {
        let open = from + text.get(from..)?.find('{')?;
        if let Some((choices, close)) = choices(text, open) {
            let (before, after) = (text.get(..open)?, text.get(close + 1..)?);
            return Some(choices.into_iter().map(|choice| format!("{before}{choice}{after}")).collect());
        }
        from = open + 1;
    }
}

/// The alternatives of the group that opens here, and where it closes; none where it is no group of several.
fn choices(text: &str, open: usize) -> Option<(Vec<&str>, usize)> {
    let (mut depth, mut start, mut choices) = (0_usize, open + 1, Vec::new());
    for (at, sign) in text.bytes().enumerate().skip(open) {
        match sign {
            b'{' => depth += 1,
            b'}' => depth -= 1,
            b',' if depth == 1 => {
                choices.push(text.get(start..at)?);
                start = at + 1;
            }
            _ => {}
        }
        if depth == 0 {
            choices.push(text.get(start..at)?);
            return (choices.len() > 1).then_some((choices, at));
        }
    }
    None
}

/// Whether a pattern of names finds files outside of the directory that is searched.
pub(super) fn leaves(pattern: &str) -> bool {
    pattern.starts_with(['/', '~']) || pattern.split('/').any(|part| part == "..")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(text: &str) -> Option<Vec<String>> {
        let mut all: Vec<String> =
            expanded(vec![Cow::Borrowed(text)])?.into_iter().map(Cow::into_owned).collect();
        all.sort();
        Some(all)
    }

    #[test]
    fn every_alternative_is_a_path() {
        for (text, expected) in [
            ("src/*.rs", &["src/*.rs"][..]),
            ("{/etc,src}/*", &["/etc/*", "src/*"]),
            ("/w/{..,x}/{a,b}", &["/w/../a", "/w/../b", "/w/x/a", "/w/x/b"]),
            ("{a,{b,../c}}", &["../c", "a", "b"]),
            ("{,..}/x", &["../x", "/x"]),
            ("app/{id}/x", &["app/{id}/x"]),
            ("{id}{a,b}", &["{id}a", "{id}b"]),
            ("{a,b", &["{a,b"]),
            ("a}", &["a}"]),
        ] {
            assert_eq!(all(text).unwrap(), expected, "{text}");
        }
        assert_eq!(all(&"{a,b}".repeat(7)), None, "more than can be looked at");
        assert_eq!(all(&format!("{{a,b}}{}", "x".repeat(5000))), None);
    }
}
