//! Finds the parameters that the catalogue reads where an input spells them in another case.

use serde_json::Value;

use super::catalogue::{DIRECTORIES, InputLayout};
use crate::fold::{self, Member};

/// How an input spells what the catalogue reads of it.
#[derive(Debug, PartialEq)]
pub(super) enum SpelledInput {
    Exact,
    /// The input, with the catalogue's spelling of keys that only fold to it.
    Anew(Value),
    /// Two keys fold to one parameter.
    Ambiguous,
}

/// Looks at every key on the way to every parameter that a tool takes.
pub(super) fn of(json: &Value, takes: InputLayout) -> SpelledInput {
    let paths = read_of(takes);
    let mut respelled = false;
    for path in &paths {
        match walk(json, ("", path), &paths) {
            KeyPath::Plain => {}
            KeyPath::Respelled => respelled = true,
            KeyPath::Ambiguous => return SpelledInput::Ambiguous,
        }
    }
    if !respelled {
        return SpelledInput::Exact;
    }
    let mut anew = json.clone();
    paths.iter().for_each(|path| rename(&mut anew, ("", path), &paths));
    SpelledInput::Anew(anew)
}

/// Every parameter that is read of an input, as a dotted path.
fn read_of(takes: InputLayout) -> Vec<&'static str> {
    let (keys, beside): (&[&str], &[&str]) = match takes {
        InputLayout::Nothing => (&[], &[]),
        InputLayout::Command(keys) => (keys, &["restart"]),
        InputLayout::CommandOrPatch(keys) => (keys, &["restart", "workdir", "cwd", "working_directory"]),
        InputLayout::CommandIfAny(keys) | InputLayout::Urls(keys) | InputLayout::UrlsIfAny(keys) => {
            (keys, &[])
        }
        InputLayout::Paths(keys) | InputLayout::Moves(keys) => (keys, DIRECTORIES),
        InputLayout::Download(urls, paths) => {
            return [urls, paths, DIRECTORIES].into_iter().flatten().copied().collect();
        }
        InputLayout::Search(keys) => (keys, &["pattern"]),
        InputLayout::UrlsInText(keys, text) => return keys.iter().copied().chain([text]).collect(),
        InputLayout::Patch(keys) => (
            keys,
            &[
                "type",
                "path",
                "move_to",
                "new_path",
                "operation.type",
                "operation.path",
                "operation.move_to",
                "operation.new_path",
            ],
        ),
        InputLayout::Editor => (&["command", "path", "file_path", "old_path", "new_path"], &[]),
    };
    keys.iter().chain(beside).copied().collect()
}

/// How the keys of a parameter's path are spelled in an input.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum KeyPath {
    Plain,
    Respelled,
    Ambiguous,
}

/// `before` is the part of the path that was gone already, with its dot.
fn walk(value: &Value, (before, path): (&str, &str), paths: &[&str]) -> KeyPath {
    let (name, rest) = path.split_once('.').map_or((path, None), |(name, rest)| (name, Some(rest)));
    let below = rest.map(|rest| (format!("{before}{name}."), rest));
    let go = |value: &Value| match &below {
        Some((before, rest)) => walk(value, (before, rest), paths),
        None => KeyPath::Plain,
    };
    match (name, value) {
        ("*", Value::Array(all)) => all.iter().map(go).max().unwrap_or(KeyPath::Plain),
        ("*", value) => go(value),
        (name, Value::Object(fields)) => match fold::member(fields, name) {
            Member::Missing => KeyPath::Plain,
            Member::Exact(value) => go(value),
            Member::Respelled(key, _) if is_listed(before, key, paths) => KeyPath::Plain,
            Member::Respelled(_, value) => go(value).max(KeyPath::Respelled),
            Member::Several(_) => KeyPath::Ambiguous,
        },
        (_, _) => KeyPath::Plain,
    }
}

/// Gives keys that fold to a step of the path its spelling.
fn rename(value: &mut Value, (before, path): (&str, &str), paths: &[&str]) {
    let (name, rest) = path.split_once('.').map_or((path, None), |(name, rest)| (name, Some(rest)));
    let below = format!("{before}{name}.");
    let go = |value: &mut Value| rest.into_iter().for_each(|rest| rename(value, (&below, rest), paths));
    match (name, value) {
        ("*", Value::Array(all)) => all.iter_mut().for_each(go),
        ("*", value) => go(value),
        (name, Value::Object(fields)) => {
            let respelled = match fold::member(fields, name) {
                Member::Respelled(key, _) if !is_listed(before, key, paths) => Some(key.to_owned()),
                Member::Respelled(_, _) | Member::Missing | Member::Exact(_) | Member::Several(_) => None,
            };
            if let Some(value) = respelled.and_then(|key| fields.remove(&key)) {
                fields.insert(name.to_owned(), value);
            }
            fields.get_mut(name).into_iter().for_each(go);
        }
        (_, _) => {}
    }
}

/// Whether a key is a parameter of its own: the catalogue has `url` and `Url`.
fn is_listed(before: &str, key: &str, paths: &[&str]) -> bool {
    let is_key =
        |rest: &str| rest.strip_prefix(key).is_some_and(|end| end.is_empty() || end.starts_with('.'));
    paths.iter().any(|path| path.strip_prefix(before).is_some_and(is_key))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const PATHS: InputLayout = InputLayout::Paths(&["file_path", "files.*.path", "url", "Url"]);

    #[test]
    fn a_key_in_another_case_gets_the_spelling_of_the_catalogue() {
        let table = [
            (json!({"File_Path": "/a", "Mode": 1}), json!({"file_path": "/a", "Mode": 1})),
            (
                json!({"FILES": [{"Path": "/a"}, {"path": "/b"}]}),
                json!({"files": [{"path": "/a"}, {"path": "/b"}]}),
            ),
            (json!({"files": {"PATH": "/a"}}), json!({"files": {"path": "/a"}})),
            (json!({"file_path\u{200b}": "/a"}), json!({"file_path": "/a"})),
        ];
        for (json, anew) in table {
            assert_eq!(of(&json, PATHS), SpelledInput::Anew(anew), "{json}");
        }
    }

    #[test]
    fn the_spellings_of_the_catalogue_and_other_keys_stay() {
        for json in [
            json!({"file_path": "/a", "Command": "x", "command": "y"}),
            json!({"Url": "https://a"}),
            json!({"files": [{"path": "/a", "Content": 1, "content": 2}]}),
            json!({"filePath": "/a", "options": {"File_Path": 1, "file_path": 2}}),
            json!([1]),
        ] {
            assert_eq!(of(&json, PATHS), SpelledInput::Exact, "{json}");
        }
    }

    #[test]
    fn two_keys_for_one_parameter_are_ambiguous_at_every_level() {
        for json in [
            json!({"file_path": "/a", "FILE_PATH": "/b"}),
            json!({"File_path": "/a", "FILE_PATH": "/b"}),
            json!({"file_path": "/a", "f\u{131}le_path": "/b"}),
            json!({"files": [{"path": "/a"}, {"path": "/b", "Path": null}]}),
            json!({"files": [], "Files": []}),
            json!({"url": "https://a", "Url": "https://b"}),
        ] {
            assert_eq!(of(&json, PATHS), SpelledInput::Ambiguous, "{json}");
        }
    }
}
