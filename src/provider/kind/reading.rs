//! Reads an input by what the catalogue says of the tool.

use std::borrow::Cow;

use serde_json::Value;

use super::catalogue::{DIRECTORIES, InputLayout};
use super::shell::{self, CommandSource};
use super::{glob, patch};
use crate::call::{Facts, Input, Kind};

/// What a call does, once for each kind that it is; none where the input is not what the tool takes. `kinds` are
/// those of the tool.
pub(super) fn read<'a>(takes: InputLayout, kinds: &[Kind], input: Input<'a>) -> Option<Vec<Facts<'a>>> {
    let json = match input {
        Input::Json(json) => json,
        Input::Text(text) => return read_text(takes, kinds, text),
    };
    let facts = Facts::new(*kinds.first()?);
    let fact = match takes {
        InputLayout::Nothing => facts,
        InputLayout::Command(keys) | InputLayout::CommandOrPatch(keys) => {
            let restarts = json.get("restart") == Some(&Value::Bool(true));
            let found = commands(json, keys)?;
            if found.is_empty() && !restarts {
                return None;
            }
            return Some(run(takes, facts, found, json));
        }
        InputLayout::CommandIfAny(keys) => {
            Facts { commands: commands(json, keys).or_else(|| inside(json, keys))?, ..facts }
        }
        InputLayout::Paths(keys) => {
            let paths = located(json, texts(json, keys)?)?;
            let paths = if facts.kind == Kind::Read { glob::expanded(paths)? } else { paths };
            Facts { paths: some(paths)?, ..facts }
        }
        InputLayout::Moves(keys) => {
            let paths = located(json, texts(json, keys)?)?;
            if paths.len() < 2 {
                return None;
            }
            Facts { paths, moves: true, ..facts }
        }
        InputLayout::Download(urls, paths) => {
            let saved = some(located(json, texts(json, paths)?)?)?;
            let fetching = Facts { urls: some(texts(json, urls)?)?, ..Facts::new(Kind::Fetch) };
            return Some(vec![fetching, Facts { paths: saved, ..Facts::new(Kind::Write) }]);
        }
        InputLayout::Search(keys) => Facts { paths: searched(json, keys)?, ..facts },
        InputLayout::Urls(keys) => Facts { urls: some(texts(json, keys)?)?, ..facts },
        InputLayout::UrlsIfAny(keys) => Facts { urls: texts(json, keys)?, ..facts },
        InputLayout::UrlsInText(keys, text) => {
            let mut urls = texts(json, keys)?;
            urls.extend(json.get(text).and_then(Value::as_str).into_iter().flat_map(urls_in));
            Facts { urls: some(urls)?, ..facts }
        }
        InputLayout::Patch(keys) => return patch_of(json, keys),
        InputLayout::Editor => edited(json)?,
    };
    Some(vec![fact])
}

/// What the text of a custom tool does: it is the one command, or the one patch.
fn read_text<'a>(takes: InputLayout, kinds: &[Kind], text: &'a str) -> Option<Vec<Facts<'a>>> {
    match takes {
        InputLayout::Patch(_) => patched(text, None),
        InputLayout::Command(_) | InputLayout::CommandIfAny(_) | InputLayout::CommandOrPatch(_) => {
            Some(run(takes, Facts::new(*kinds.first()?), vec![Cow::Borrowed(text)], &Value::Null))
        }
        InputLayout::Nothing
        | InputLayout::Paths(_)
        | InputLayout::Moves(_)
        | InputLayout::Download(_, _)
        | InputLayout::Search(_)
        | InputLayout::Urls(_)
        | InputLayout::UrlsIfAny(_)
        | InputLayout::UrlsInText(_, _)
        | InputLayout::Editor => None,
    }
}

/// Returns the facts of commands: they run, and a patch in one writes.
fn run<'a>(
    takes: InputLayout,
    facts: Facts<'a>,
    commands: Vec<Cow<'a, str>>,
    json: &Value,
) -> Vec<Facts<'a>> {
    let written =
        matches!(takes, InputLayout::CommandOrPatch(_)) && commands.iter().any(|one| patch::is_in(one));
    let writing = written.then(|| {
        // A patch that cannot be read writes nobody knows where: a Write without paths says so.
        shell::patches(&commands, json).unwrap_or_else(|| Facts::new(Kind::Write))
    });
    [Some(Facts { commands, ..facts }), writing].into_iter().flatten().collect()
}

/// The text of a value that is none: its JSON.
pub(super) fn json(value: &Value) -> Cow<'_, str> {
    Cow::Owned(value.to_string())
}

fn some<T>(all: Vec<T>) -> Option<Vec<T>> {
    (!all.is_empty()).then_some(all)
}

/// The commands of all parameters that are there; none where one of them is no command.
fn commands<'a>(json: &'a Value, keys: &[&str]) -> Option<Vec<Cow<'a, str>>> {
    let mut found = Vec::new();
    for key in keys {
        let mut values = Vec::new();
        gather(json, key, &mut values);
        for value in values {
            match value {
                Value::String(command) => found.push(Cow::Borrowed(command.as_str())),
                Value::Array(all) => {
                    let arguments = arguments(all)?;
                    found.extend(shell::script(&arguments).map(Cow::Borrowed));
                    found.push(Cow::Owned(arguments.join(" ")));
                }
                Value::Null => {}
                Value::Bool(_) | Value::Number(_) | Value::Object(_) => return None,
            }
        }
    }
    Some(found)
}

/// The same commands as a shell is given them.
pub(super) fn sources(takes: InputLayout, json: &Value) -> Vec<CommandSource<'_>> {
    let mut found = Vec::new();
    for key in takes.keys() {
        let mut values = Vec::new();
        gather(json, key, &mut values);
        found.extend(values.iter().filter_map(|value| match value {
            Value::String(command) => Some(CommandSource::Text(command)),
            Value::Array(all) => Some(arguments(all).map_or(CommandSource::Other, CommandSource::Arguments)),
            Value::Object(_) => Some(CommandSource::Other),
            Value::Null | Value::Bool(_) | Value::Number(_) => None,
        }));
        // What is made of an object is not known: each text in it may be a command.
        let objects = values.iter().filter(|value| value.is_object());
        found.extend(objects.flat_map(|value| shell::texts(value)).map(CommandSource::Text));
    }
    found
}

/// The texts that may be typed where a parameter is an object; none where one is a number or a switch.
fn inside<'a>(json: &'a Value, keys: &[&str]) -> Option<Vec<Cow<'a, str>>> {
    let mut values = Vec::new();
    keys.iter().for_each(|key| gather(json, key, &mut values));
    let is_scalar = |value: &&Value| value.is_number() || value.is_boolean();
    let texts = || values.iter().flat_map(|value| shell::texts(value)).map(Cow::Borrowed).collect();
    (!values.iter().any(is_scalar)).then(texts)
}

/// The words of a list of texts.
pub(super) fn arguments(all: &[Value]) -> Option<Vec<&str>> {
    all.iter().map(Value::as_str).collect()
}

/// The strings of all parameters that are there, one by one or in arrays; none where one of them is anything else.
pub(super) fn texts<'a>(json: &'a Value, keys: &[&str]) -> Option<Vec<Cow<'a, str>>> {
    let mut found: Vec<Cow<'a, str>> = Vec::new();
    for key in keys {
        let mut values = Vec::new();
        gather(json, key, &mut values);
        for value in values {
            match value {
                Value::String(text) => found.push(Cow::Borrowed(text.as_str())),
                // An element that another parameter looks into.
                Value::Object(_) if key.ends_with('*') => {}
                Value::Null => {}
                Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => return None,
            }
        }
    }
    Some(found)
}

/// What stands at a dotted path, in which `*` is every element of an array; what is no array is its own element.
fn gather<'a>(value: &'a Value, path: &str, found: &mut Vec<&'a Value>) {
    let (name, rest) = path.split_once('.').map_or((path, None), |(name, rest)| (name, Some(rest)));
    let mut walk = |next: &'a Value| match rest {
        Some(rest) => gather(next, rest, found),
        None => found.push(next),
    };
    match (name, value) {
        ("*", Value::Array(all)) => all.iter().for_each(walk),
        ("*", _) => walk(value),
        _ => value.get(name).into_iter().for_each(walk),
    }
}

/// The paths that relative ones among `paths` name below each directory that the input has a parameter for; those
/// directories themselves where there is no other path.
pub(super) fn located<'a>(json: &'a Value, paths: Vec<Cow<'a, str>>) -> Option<Vec<Cow<'a, str>>> {
    let directories = texts(json, DIRECTORIES)?;
    if directories.is_empty() || paths.is_empty() {
        return Some(if paths.is_empty() { directories } else { paths });
    }
    let below = |directory: &str| {
        let joined = paths.iter().map(|path| patch::below(Some(directory), path.clone().into_owned()));
        joined.map(Cow::Owned).collect::<Vec<_>>()
    };
    Some(directories.iter().flat_map(|directory| below(directory)).collect())
}

fn searched<'a>(json: &'a Value, keys: &[&str]) -> Option<Vec<Cow<'a, str>>> {
    let mut paths = glob::expanded(texts(json, keys)?)?;
    if paths.is_empty() {
        paths.push(Cow::Borrowed("."));
    }
    let pattern = json.get("pattern").and_then(Value::as_str).map(Cow::Borrowed);
    let patterns = glob::expanded(pattern.into_iter().collect())?;
    paths.extend(patterns.into_iter().filter(|pattern| glob::leaves(pattern)));
    Some(paths)
}

fn urls_in(text: &str) -> impl Iterator<Item = Cow<'_, str>> {
    let words = text.split(|c: char| c.is_whitespace() || "\"'`<>()[]{}|,;".contains(c));
    let is_url = |word: &&str| {
        word.split_once("://").is_some_and(|(scheme, rest)| !scheme.is_empty() && !rest.is_empty())
    };
    words.filter(is_url).map(Cow::Borrowed)
}

fn patch_of<'a>(json: &'a Value, keys: &[&str]) -> Option<Vec<Facts<'a>>> {
    let operation = json.get("operation").unwrap_or(json);
    if operation.get("type").is_some() && operation.get("path").is_some() {
        let paths = some(texts(operation, &["path", "move_to", "new_path"])?)?;
        return Some(vec![Facts { paths, ..Facts::new(Kind::Write) }]);
    }
    let texts = some(texts(json, keys)?)?;
    let paths = texts.iter().map(|text| patch::paths(text)).collect::<Option<Vec<_>>>()?.concat();
    let paths = paths.into_iter().map(Cow::Owned).collect();
    Some(vec![Facts { paths, ..Facts::new(Kind::Write) }])
}

/// A call that patches files; `directory` is where relative paths begin.
pub(super) fn patched(text: &str, directory: Option<&str>) -> Option<Vec<Facts<'static>>> {
    let paths =
        patch::paths(text)?.into_iter().map(|path| Cow::Owned(patch::below(directory, path))).collect();
    Some(vec![Facts { paths, ..Facts::new(Kind::Write) }])
}

fn edited(json: &Value) -> Option<Facts<'_>> {
    let command = json.get("command")?.as_str()?;
    let kind = if command == "view" { Kind::Read } else { Kind::Write };
    let paths = some(texts(json, &["path", "file_path", "old_path", "new_path"])?)?;
    Some(Facts { paths, moves: json.get("new_path").is_some(), ..Facts::new(kind) })
}
