//! Words with expansions: what they tell of a path all the same.

/// A path of which a word tells so much that rules can meet it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ToldPath {
    /// With `*` for what expansions give.
    pub(super) text: String,
    /// Whether it begins where the shell is, whatever directory an option names.
    pub(super) is_here: bool,
    /// Whether expansions stand in front of it, so that where it begins is not told.
    pub(super) is_end: bool,
}

/// What a word as it is written consists of.
#[derive(Debug, PartialEq, Eq)]
enum Part {
    /// Without its quotes.
    Text(String),
    /// The directory of the shell; whether a command says it, and no variable that may hold another.
    Here {
        is_said: bool,
    },
    /// `$HOME`
    Home,
    Other,
}

/// What a word tells of the path that it gives: all of it behind `$PWD`, `$(pwd)` and `$HOME`; of another only what stands
/// around a hidden file or directory, which is the same file wherever it is.
pub(super) fn path(written: &str) -> Option<ToldPath> {
    let parts = parts(written);
    let mut rest = parts.iter().peekable();
    let mut text = String::new();
    let begins = |next: Option<&&Part>| match next {
        None => true,
        Some(Part::Text(text)) => text.starts_with('/'),
        Some(Part::Here { .. } | Part::Home | Part::Other) => false,
    };
    let first = rest.next_if(|part| matches!(part, Part::Here { .. } | Part::Home));
    let is_begun = first.is_some() && begins(rest.peek());
    let is_here = is_begun && first != Some(&Part::Home);
    match first {
        Some(_) if !is_begun => rest = parts.iter().peekable(),
        Some(Part::Home) => text.push('~'),
        Some(Part::Here { .. } | Part::Text(_) | Part::Other) => text.push('.'),
        None => {}
    }
    // Whether what was taken is directly behind an expansion, and no name by itself.
    let mut is_attached = false;
    let mut is_told = true;
    let (mut is_hidden, mut is_end) = (false, false);
    for part in rest {
        match part {
            Part::Text(part) => {
                is_hidden |= has_hidden(part, is_attached) || (is_told && part.starts_with("/etc/"));
                // What stands behind an expansion does not begin at the root.
                let part = if text.is_empty() && !is_told { part.trim_start_matches('/') } else { part };
                text.push_str(part);
            }
            Part::Here { .. } | Part::Home | Part::Other => {
                is_told = false;
                if is_hidden {
                    text.push('*');
                } else {
                    is_end = true;
                    text.clear();
                }
            }
        }
        is_attached = text.is_empty();
    }
    let text = text.strip_prefix("./").map(|rest| rest.trim_start_matches('/').to_owned()).unwrap_or(text);
    let text = if text.is_empty() && is_told { ".".to_owned() } else { text };
    (is_told || is_hidden).then_some(ToldPath { text, is_here: is_here && !is_end, is_end })
}

/// Whether nothing but a command that says where the shell is decides what a word gives.
pub(super) fn is_certain(written: &str) -> bool {
    parts(written).iter().all(|part| matches!(part, Part::Text(_) | Part::Here { is_said: true }))
}

/// The name at the end of what a word gives, where no expansion is in it.
pub(super) fn name(written: &str) -> Option<String> {
    match parts(written).pop()? {
        Part::Text(text) => text.rsplit_once('/').map(|(_, name)| name.to_owned()),
        Part::Here { .. } | Part::Home | Part::Other => None,
    }
}

/// Whether a name in a text is hidden. One that follows an expansion is mostly an extension, unless it is a directory.
fn has_hidden(text: &str, is_attached: bool) -> bool {
    let is_extension = is_attached && !text.contains('/');
    !is_extension && text.split('/').any(|name| name.starts_with('.') && !matches!(name, "." | ".."))
}

/// Takes the quotes off a word, and its expansions out.
fn parts(written: &str) -> Vec<Part> {
    let mut parts = Vec::new();
    let (mut rest, mut in_quotes) = (written, false);
    while let Some(sign) = rest.chars().next() {
        let after = rest.get(sign.len_utf8()..).unwrap_or_default();
        rest = match (sign, after.chars().next()) {
            ('"', _) => {
                in_quotes = !in_quotes;
                after
            }
            ('\'', _) if !in_quotes => {
                let (text, after) = after.split_once('\'').unwrap_or((after, ""));
                push(&mut parts, text);
                after
            }
            ('\\', Some(next)) => {
                let is_kept = in_quotes && !matches!(next, '$' | '`' | '"' | '\\' | '\n');
                let (from, to) = (if is_kept { 0 } else { 1 }, 1 + next.len_utf8());
                push(&mut parts, rest.get(from..to).unwrap_or_default());
                rest.get(to..).unwrap_or_default()
            }
            ('`', _) => {
                let (command, after) = after.split_once('`').unwrap_or((after, ""));
                parts.push(substituted(command));
                after
            }
            ('<' | '>', Some('(')) if !in_quotes => {
                let (_, after) = enclosed(after, ('(', ')'), false);
                parts.push(Part::Other);
                after
            }
            // What `find` finds, and `xargs` is given.
            ('{', Some('}')) => {
                parts.push(Part::Other);
                after.get(1..).unwrap_or_default()
            }
            ('$', Some(_)) => expansion(after, in_quotes, &mut parts),
            (_, _) => {
                push(&mut parts, rest.get(..sign.len_utf8()).unwrap_or_default());
                after
            }
        };
    }
    parts
}

fn push(parts: &mut Vec<Part>, text: &str) {
    if let Some(Part::Text(last)) = parts.last_mut() {
        last.push_str(text);
    } else if !text.is_empty() {
        parts.push(Part::Text(text.to_owned()));
    }
}

/// Takes an expansion from behind its `$`; returns what stands behind it.
fn expansion<'a>(text: &'a str, in_quotes: bool, parts: &mut Vec<Part>) -> &'a str {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    match text.chars().next() {
        Some('(') => {
            let (command, after) = enclosed(text, ('(', ')'), false);
            parts.push(substituted(command));
            after
        }
        Some('{') => {
            let (name, after) = enclosed(text, ('{', '}'), in_quotes);
            parts.push(variable(name));
            after
        }
        Some('"') if !in_quotes => text,
        Some('\'') if !in_quotes => {
            let (inside, after) = text.get(1..).and_then(|text| text.split_once('\'')).unwrap_or_default();
            match inside.contains('\\') {
                true => parts.push(Part::Other),
                false => push(parts, inside),
            }
            after
        }
        Some(first) if first.is_ascii_alphabetic() || first == '_' => {
            let (name, after) = text.split_at(text.find(|c| !is_part(c)).unwrap_or(text.len()));
            parts.push(variable(name));
            after
        }
        Some(first) if first.is_ascii_digit() || "@*#?-$!".contains(first) => {
            parts.push(Part::Other);
            text.get(1..).unwrap_or_default()
        }
        Some(_) | None => {
            push(parts, "$");
            text
        }
    }
}

fn substituted(command: &str) -> Part {
    if command.trim() == "pwd" { Part::Here { is_said: true } } else { Part::Other }
}

fn variable(name: &str) -> Part {
    match name {
        "PWD" => Part::Here { is_said: false },
        "HOME" => Part::Home,
        _ => Part::Other,
    }
}

/// What stands between the sign that opens a text and the one that closes it, and what is behind that. `in_quotes`: a
/// single quote in it is itself.
fn enclosed(text: &str, (open, close): (char, char), in_quotes: bool) -> (&str, &str) {
    let (mut depth, mut quote, mut is_escaped) = (0_usize, None, false);
    for (at, sign) in text.char_indices() {
        if std::mem::take(&mut is_escaped) {
            continue;
        }
        match (sign, quote) {
            ('\\', None | Some('"')) => is_escaped = true,
            ('"', None) => quote = Some('"'),
            ('\'', None) if !in_quotes => quote = Some('\''),
            (sign, Some(end)) => quote = Some(end).filter(|end| *end != sign),
            (sign, None) if sign == open => depth += 1,
            (sign, None) if sign == close => {
                depth = depth.saturating_sub(1);
                if depth == 0 {
                    return (text.get(1..at).unwrap_or_default(), text.get(at + 1..).unwrap_or_default());
                }
            }
            (_, None) => {}
        }
    }
    (text.get(1..).unwrap_or_default(), "")
}
