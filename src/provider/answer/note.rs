//! Makes the note of a call that events are built from.

use std::borrow::Cow;
use std::collections::HashSet;

use serde_json::Value;

use super::call::{InputForm, PendingCall};
use super::decide::InnerCallVerdict;
use super::{GuardSettings, command};
use crate::call::{CallNote, CallVerdict, Input, Inputs, Kind};
use crate::digest::sha256_hex;
use crate::provider::kind;

/// How a call came to its verdict.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct How {
    pub(super) incomplete: bool,
    /// Its input has come, whole.
    pub(super) has_input: bool,
}

/// The note of a call.
pub(super) fn note(call: PendingCall, verdict: CallVerdict, how: How, settings: &GuardSettings) -> CallNote {
    let (input_sha256, input) = if how.has_input && !call.is_over() {
        told(&call.input, (&call.name, call.namespace.as_deref()), call.form, settings)
    } else {
        (None, None)
    };
    let reads = settings.reads_evidence.as_ref();
    // Of an input that was not kept whole nobody knows: in doubt a result stays whole.
    let reads_evidence = reads.is_some_and(|reads| call.is_over() || reads(&call.name, &call.input));
    CallNote {
        event: call.event,
        id: call.id,
        name: call.name,
        namespace: call.namespace,
        custom: call.form == InputForm::Text,
        kinds_by: call.kinds_by,
        kinds: call.kinds,
        input_bytes: call.bytes as u64,
        input_sha256,
        input,
        command: denied(&verdict, settings),
        verdict,
        reads_evidence,
        hosted: call.hosted,
        incomplete: how.incomplete,
        inside: false,
        computed: false,
    }
}

/// The note of a call inside another.
pub(super) fn inner(
    call: &PendingCall,
    ruled: InnerCallVerdict,
    how: How,
    settings: &GuardSettings,
) -> CallNote {
    let (input_sha256, input) = match &ruled.input {
        Some(input) => told(input, (&ruled.name, None), ruled.form, settings),
        None => (None, None),
    };
    CallNote {
        event: (settings.event_id)(),
        id: call.id.clone(),
        name: ruled.name,
        namespace: None,
        custom: ruled.form == InputForm::Text,
        kinds_by: ruled.kinds_by,
        kinds: ruled.kinds,
        input_bytes: ruled.input.as_ref().map_or(0, |input| input.len() as u64),
        input_sha256,
        computed: ruled.input.is_none(),
        input,
        command: denied(&ruled.verdict, settings),
        verdict: ruled.verdict,
        reads_evidence: false,
        hosted: call.hosted,
        incomplete: how.incomplete,
        inside: true,
    }
}

/// The simple command that is denied, as far as policy lets events have it.
fn denied(verdict: &CallVerdict, settings: &GuardSettings) -> Option<String> {
    let denied = verdict.command.as_ref()?;
    match settings.inputs {
        Inputs::None | Inputs::Hash => None,
        Inputs::Redacted => Some(command::outline_of(denied)),
        Inputs::Full => Some(denied.text.clone()),
    }
}

/// Returns the SHA-256 in hex and the text of an input, as far as policy lets events have them.
fn told(
    input: &str,
    tool: (&str, Option<&str>),
    form: InputForm,
    settings: &GuardSettings,
) -> (Option<String>, Option<String>) {
    let sha256 = || sha256_hex(input.as_bytes());
    match settings.inputs {
        Inputs::None => (None, None),
        Inputs::Hash => (Some(sha256()), None),
        Inputs::Redacted => (Some(sha256()), Some(redacted(input, tool, form, settings))),
        Inputs::Full => (Some(sha256()), Some(input.to_owned())),
    }
}

/// The JSON without what its strings say, but for the programs and options of commands; of anything else, how long it is.
fn redacted(input: &str, tool: (&str, Option<&str>), form: InputForm, settings: &GuardSettings) -> String {
    if input.is_empty() {
        return String::new();
    }
    match (form, serde_json::from_str::<Value>(input)) {
        (InputForm::Json, Ok(mut json)) => {
            let commands = Commands::of(tool, &json, settings);
            redact(&mut json, "", &commands);
            json.to_string()
        }
        (InputForm::Json | InputForm::Text, _) => length(input),
    }
}

/// Parameters that hold commands for a shell, in lower case and without `_`. Code, and what is typed into a program that
/// runs (a password, say), is told by its length alone.
const PARAMETERS: &[&str] = &["command", "cmd", "commands", "commandline", "argv"];

/// The commands in an input.
#[derive(Default)]
struct Commands {
    /// Where the texts begin that are commands, and how long they are: an operand may be the text of another parameter.
    texts: HashSet<(usize, usize)>,
    /// Lists of words, each joined by spaces.
    lists: HashSet<String>,
}

impl Commands {
    /// Those that a call runs, by what is known of its tool.
    fn of(tool: (&str, Option<&str>), input: &Value, settings: &GuardSettings) -> Self {
        let mut commands = Self::default();
        if !kind::is_shell(tool.0, tool.1) {
            return commands;
        }
        let seen = kind::read(tool.0, tool.1, Input::Json(input), &settings.offered);
        let facts = seen.facts.unwrap_or_default();
        let run = facts.into_iter().filter(|facts| facts.kind == Kind::Shell);
        for command in run.flat_map(|facts| facts.commands) {
            match command {
                Cow::Borrowed(text) => {
                    commands.texts.insert(place(text));
                }
                Cow::Owned(words) => {
                    commands.lists.insert(words);
                }
            }
        }
        commands
    }
}

fn place(text: &str) -> (usize, usize) {
    (text.as_ptr().addr(), text.len())
}

/// Recursion ends: the reader of JSON goes 128 deep. `parameter` is the key that a value stands under.
fn redact(json: &mut Value, parameter: &str, commands: &Commands) {
    let runs = || PARAMETERS.contains(&parameter.to_ascii_lowercase().replace('_', "").as_str());
    match json {
        Value::String(text) if text.is_empty() => {}
        Value::String(text) if commands.texts.contains(&place(text)) && runs() => {
            *text = command::outline(text);
        }
        Value::String(text) => *text = length(text),
        Value::Array(items) => {
            let is_command = |words: &Vec<&str>| commands.lists.contains(&words.join(" ")) && runs();
            let outlined =
                arguments(items).filter(is_command).map(|words| command::outline_arguments(&words));
            match outlined {
                Some(words) => *items = words.into_iter().map(Value::from).collect(),
                None => items.iter_mut().for_each(|item| redact(item, parameter, commands)),
            }
        }
        Value::Object(entries) => {
            entries.iter_mut().for_each(|(key, value)| redact(value, key, commands));
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// The words of a list of texts.
fn arguments(items: &[Value]) -> Option<Vec<&str>> {
    items.iter().map(Value::as_str).collect()
}

fn length(text: &str) -> String {
    format!("[{} bytes]", text.len())
}
