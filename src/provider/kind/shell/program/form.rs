//! The files in the value of a form: `name=@file,"other file";type=x;headers=@file`.

/// The files that a value names.
pub(super) fn files(text: &str) -> Vec<String> {
    let mut files = Vec::new();
    let mut rest = text.split_once('=').map(|(_, value)| value);
    while let Some(value) = rest {
        let named = value.trim_start().strip_prefix(['@', '<']);
        let mut left = named.unwrap_or(value);
        loop {
            let (name, after) = word(left);
            files.extend(Some(name).filter(|name| named.is_some() && !name.is_empty()));
            left = after;
            match after.strip_prefix(',').filter(|_| named.is_some()) {
                Some(next) => left = next,
                None => break,
            }
        }
        rest = left.split_once(';').and_then(|(_, next)| next.split_once('=')).map(|(_, value)| value);
    }
    files
}

/// A name up to `,` or `;`, or one in quotes; what stands behind it.
fn word(text: &str) -> (String, &str) {
    let text = text.trim_start();
    if let Some(quoted) = text.strip_prefix('"') {
        let mut name = String::new();
        let mut signs = quoted.char_indices();
        while let Some((at, sign)) = signs.next() {
            match sign {
                '"' => return (name, quoted.get(at + 1..).unwrap_or_default()),
                '\\' => name.extend(signs.next().map(|(_, escaped)| escaped)),
                _ => name.push(sign),
            }
        }
    }
    let (name, rest) = text.split_at(text.find([',', ';']).unwrap_or(text.len()));
    (name.trim_end().to_owned(), rest)
}
