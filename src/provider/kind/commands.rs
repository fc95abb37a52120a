//! Finds the commands in an input, and has them read.

use std::borrow::Cow;

use serde_json::Value;

use super::catalogue::InputLayout;
use super::shell::{self, CommandReading, CommandSource, Language, WorkingDirectory};
use super::spelling::{self, SpelledInput};
use super::{infer, reading};
use crate::call::{Input, Place, ShellTerms};

/// Whose commands are read, and how far.
pub(super) struct CommandQuestion<'a> {
    pub(super) name: &'a str,
    pub(super) terms: &'a ShellTerms,
    /// What may have been typed before.
    pub(super) typed: &'a [String],
}

/// Where the commands of an input stand.
#[derive(Debug, Clone, Copy)]
pub(super) enum CommandPlaces<'a> {
    /// Where the catalogue says.
    Known(InputLayout),
    /// By the words of the parameters.
    Inferred(&'a [Place]),
}

/// What is typed into a program that runs is no command, but for these tools, which start one.
const STARTING: &[&str] = &["monitor"];

pub(super) fn read(
    asked: &CommandQuestion<'_>,
    places: CommandPlaces<'_>,
    input: Input<'_>,
) -> CommandReading {
    let is_typed = matches!(places, CommandPlaces::Known(InputLayout::CommandIfAny(_)));
    let language = shell::language(asked.name, is_typed && !STARTING.contains(&asked.name));
    let directory = asked.terms.directory.as_deref();
    let json = match input {
        Input::Text(text) => {
            let start = shell::start(&Value::Null, directory);
            return shell::read(&[CommandSource::Text(text)], language, &start);
        }
        Input::Json(json) => json,
    };
    let start = shell::start(json, directory);
    match places {
        CommandPlaces::Inferred(places) => shell::read(&infer::sources(places, json), language, &start),
        CommandPlaces::Known(takes) => match spelling::of(json, takes) {
            SpelledInput::Exact => known(asked, takes, (json, &start), language),
            SpelledInput::Anew(json) => known(asked, takes, (&json, &start), language),
            // Which of two commands runs is not known, and neither is judged.
            SpelledInput::Ambiguous => shell::read(&[CommandSource::Other], language, &start),
        },
    }
}

/// The text that a call types into a program that runs, by what the catalogue says; of a list, its elements in one.
pub(super) fn typed<'a>(takes: InputLayout, input: Input<'a>) -> Option<Cow<'a, str>> {
    if !matches!(takes, InputLayout::CommandIfAny(_)) {
        return None;
    }
    match input {
        Input::Text(text) => Some(Cow::Borrowed(text)),
        Input::Json(json) => takes.keys().find_map(|key| match json.get(key)? {
            Value::String(text) => Some(Cow::Borrowed(text.as_str())),
            Value::Array(all) => Some(Cow::Owned(reading::arguments(all)?.concat())),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => None,
        }),
    }
}

fn known(
    asked: &CommandQuestion<'_>,
    takes: InputLayout,
    (json, start): (&Value, &WorkingDirectory),
    language: Language,
) -> CommandReading {
    let mut sources = reading::sources(takes, json);
    let mut lines = Vec::new();
    if language == Language::Typed {
        let text = typed(takes, Input::Json(json)).unwrap_or_default();
        lines.extend(asked.typed.iter().map(|before| [before, &*text].concat()));
        // Something is typed, and where it stands is not known.
        if text.is_empty() && shell::says_more(json) {
            sources.push(CommandSource::Other);
        }
    }
    // The text stays by itself, too: whether the line before was ended otherwise is not known.
    sources.extend(lines.iter().map(|line| CommandSource::Text(line)));
    shell::read(&sources, language, start)
}
