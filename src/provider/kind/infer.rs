//! Infers what a tool does that the catalogue does not know: from the parameters of its definition, else of its input.

use std::borrow::Cow;

use serde_json::Value;

use super::reading;
use super::schema::Schema;
use super::shell::{self, CommandSource};
use crate::call::name::plain;
use crate::call::{Facts, Kind, Place, Shape};
use crate::fold::fold;
use crate::wire::json;

/// Parameters are compared by these forms: folded, letters and digits alone (`filePath`, `file_path`, `FILE-PATH`).
const COMMANDS: &[&str] = &["command", "cmd", "commands", "shell", "bash", "powershell", "argv"];

/// What is run where the tool's name says that it runs something.
const CODE: &[&str] = &["code", "script", "program"];

const PATHS: &[&str] = &[
    "filepath",
    "filepaths",
    "filename",
    "file",
    "absolutepath",
    "localpath",
    "notebookpath",
    "targetfile",
    // Serena, JetBrains
    "relativepath",
    "pathinproject",
];

/// Words that are paths of this machine only where their values begin like one.
const BARE_PATHS: &[&str] = &["path", "paths", "directory"];

/// Words for where a tool moves, renames or copies from and to: paths where such a tool names a file, too; else where
/// one of their values begins like a path of this machine.
const MOVED: &[&str] = &[
    "source",
    "destination",
    "src",
    "dst",
    "dest",
    "from",
    "to",
    "sourcepath",
    "destinationpath",
    "destpath",
    "oldpath",
    "newpath",
    "oldname",
    "newname",
    "oldfile",
    "newfile",
    "oldfilename",
    "newfilename",
    "oldfilepath",
    "newfilepath",
    "sourcefile",
    "destinationfile",
    "target",
    "targetpath",
    "frompath",
    "topath",
    "into",
];

const CONTENT: &[&str] =
    &["content", "contents", "text", "filetext", "newstring", "newstr", "patch", "diff", "data"];

const URLS: &[&str] = &["url", "uri", "href", "urls", "uris"];

/// What stands beside the path of a file that is elsewhere.
const REMOTE: &[&str] = &["owner", "repo", "project", "bucket"];

/// The same, in definitions alone: GitLab's server has `project_id` beside `file_path`. A call cannot add to those.
/// MongoDB's has the paths of fields beside `collection`.
const REMOTE_DEFINED: &[&str] = &[
    "projectid",
    "repository",
    "repositoryid",
    "repoid",
    "bucketname",
    "drive",
    "driveid",
    "collection",
    "database",
];

/// Tools that write what they found to the file that they name, though neither name nor parameters say so: Playwright's
/// server 0.0.83 (`filename`) and Chrome DevTools' 1.11.0 (`filePath`).
const SAVING: &[&str] = &[
    "browser_console_messages",
    "browser_evaluate",
    "browser_network_request",
    "browser_network_requests",
    "browser_run_code",
    "browser_run_code_unsafe",
    "evaluate_script",
    "performance_start_trace",
    "performance_stop_trace",
    "screencast_start",
    "take_heapsnapshot",
];

/// Tools that open pages, though their names do not say so: Playwright's server 0.0.83 (`browser_tabs {action, url}`), and
/// before it was that (`browser_tab_new {url}`).
const OPENING: &[&str] = &["browser_tabs", "browser_tab_new"];

/// Words in the name of a parameter that names a file of this machine.
const OF_FILES: &[&str] = &[
    "source",
    "sources",
    "destination",
    "destinations",
    "src",
    "dst",
    "dest",
    "patch",
    "diff",
    "notebook",
    "input",
    "inputs",
    "from",
];

/// How such words end, which are written as one with others: `outdir`, `logfile`.
const OF_FILES_ENDING: &[&str] = &[
    "path",
    "paths",
    "pathname",
    "file",
    "files",
    "filename",
    "filenames",
    "dir",
    "dirs",
    "directory",
    "directories",
];

/// Words that end so, and name no file.
const NOT_OF_FILES: &[&str] = &["profile", "profiles"];

/// The last words of parameters that name something by other means than its path: `fileId`, `sourceUrl`.
const NOT_BY_PATH: &[&str] = &["id", "ids", "url", "urls", "uri", "uris", "type", "types"];

/// Verbs in names of tools. A verb may have an object behind it (`runcode`).
const RUNNING: &[&str] =
    &["run", "exec", "execute", "eval", "evaluate", "interpret", "launch", "spawn", "repl", "python"];
const WRITING: &[&str] = &[
    "write",
    "create",
    "edit",
    "update",
    "modify",
    "replace",
    "insert",
    "append",
    "delete",
    "remove",
    "rename",
    "move",
    "copy",
    "save",
    "patch",
    "apply",
    "overwrite",
    "put",
    "touch",
    "mkdir",
    "make",
    "generate",
    "export",
    "download",
    "screenshot",
    "snapshot",
    "record",
    "dump",
    "unlink",
    "rm",
    "mv",
    "cp",
];
/// Those of the writing verbs whose tools have two places.
const MOVING: &[&str] = &["rename", "move", "copy", "mv", "cp"];
const FETCHING: &[&str] = &["fetch", "get", "download", "open", "browse", "navigate"];

/// What may stand behind a verb in one word with it.
const BEHIND: &[&str] = &[
    "", "s", "d", "ed", "ing", "file", "files", "code", "script", "command", "python", "js", "url", "urls",
    "page",
];

/// The most places of one sort that are remembered of a tool.
const MOST_PLACES: usize = 64;

/// A parameter, as definitions and inputs have it.
pub(super) struct ToolParam {
    /// In the form in which parameters are compared.
    pub(super) key: String,
    /// Whether its name says that it names a file of this machine.
    pub(super) of_files: bool,
    pub(super) place: Vec<String>,
    pub(super) takes: ParamType,
    /// What stands beside it says that its files are elsewhere.
    pub(super) remote: bool,
    /// Whether every call has it.
    pub(super) required: bool,
}

/// What stands at a parameter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum ParamType {
    /// A number, a switch, or one of a list of words.
    Nothing,
    /// An object, or several.
    Structure,
    /// A text, or several.
    Text,
    /// Anything: a definition does not say what is in it, so that the input of a call does.
    Anything,
}

/// What a tool's definition says of it; `definition` is all that a request says of the tool.
pub(super) fn of_definition(name: &str, definition: json::Value<'_>) -> Shape {
    let Some(schema) = Schema::of(definition) else { return Shape::open() };
    let Some(parameters) = schema.parameters() else { return Shape::open() };
    shape(name, &parameters, true)
}

/// What an input says of a tool that has no definition in the request.
pub(super) fn of_input(name: &str, input: &Value) -> Shape {
    let mut parameters = Vec::new();
    walk(input, &[], false, 0, &mut parameters);
    shape(name, &parameters, false)
}

/// What an input says below the places of which a definition says nothing.
pub(super) fn of_input_below(name: &str, places: &[Place], input: &Value) -> Shape {
    let mut parameters = Vec::new();
    walk(input, &[], false, 0, &mut parameters);
    let is_below = |place: &Place| {
        places.iter().any(|open| place.len() > open.len() && place.starts_with(open.as_slice()))
    };
    parameters.retain(|parameter| is_below(&parameter.place));
    shape(name, &parameters, false)
}

/// How deep parameters may stand in others.
pub(super) const MOST_DEPTH: usize = 2;

fn walk(value: &Value, place: &[String], remote: bool, depth: usize, parameters: &mut Vec<ToolParam>) {
    let Value::Object(entries) = value else { return };
    let keyed: Vec<(String, bool, &Value)> =
        entries.iter().map(|(key, value)| (form(key), is_of_files(key), value)).collect();
    let remote = remote
        || keyed.iter().any(|(key, _, value)| is_remote(key, false) && takes(value) == ParamType::Text);
    for (key, of_files, value) in keyed {
        let place = [place, std::slice::from_ref(&key)].concat();
        if depth < MOST_DEPTH {
            walk(value, &place, remote, depth + 1, parameters);
            let inside = [place.as_slice(), &["*".to_owned()]].concat();
            let elements = value.as_array().into_iter().flatten();
            elements.for_each(|element| walk(element, &inside, remote, depth + 1, parameters));
        }
        parameters.push(ToolParam { takes: takes(value), key, of_files, place, remote, required: true });
    }
}

fn takes(value: &Value) -> ParamType {
    match value {
        Value::String(_) => ParamType::Text,
        Value::Array(all) => all.iter().map(takes).max().unwrap_or(ParamType::Nothing),
        Value::Object(_) => ParamType::Structure,
        Value::Null | Value::Bool(_) | Value::Number(_) => ParamType::Nothing,
    }
}

/// Whether a parameter says that files are elsewhere.
pub(super) fn is_remote(key: &str, defined: bool) -> bool {
    REMOTE.contains(&key) || (defined && REMOTE_DEFINED.contains(&key))
}

/// Whether the word of a parameter infers anything, so that it must be known where the parameter stands.
pub(super) fn matters(key: &str) -> bool {
    [COMMANDS, CODE, PATHS, BARE_PATHS, MOVED, CONTENT, URLS].iter().any(|words| words.contains(&key))
}

/// Whether the name of a parameter says that it names a file of this machine.
pub(super) fn is_of_files(key: &str) -> bool {
    let words = split(key);
    let is_one = |word: &String| {
        let word = word.as_str();
        OF_FILES.contains(&word)
            || (OF_FILES_ENDING.iter().any(|end| word.ends_with(end)) && !NOT_OF_FILES.contains(&word))
    };
    words.last().is_some_and(|last| !NOT_BY_PATH.contains(&last.as_str())) && words.iter().any(is_one)
}

/// The form in which parameters are compared.
pub(super) fn form(key: &str) -> String {
    if key.is_ascii() {
        return plainly(key).collect();
    }
    fold(key).chars().filter(|c| c.is_alphanumeric()).collect()
}

/// Whether a key has this form.
fn is_form(key: &str, of: &str) -> bool {
    if key.is_ascii() { plainly(key).eq(of.chars()) } else { form(key) == of }
}

/// The form of a key in ASCII.
fn plainly(key: &str) -> impl Iterator<Item = char> {
    let kept = key.bytes().filter(u8::is_ascii_alphanumeric);
    kept.map(|byte| char::from(byte.to_ascii_lowercase()))
}

/// `defined`: the parameters are those of a definition. There `owner` and its like say of every path that it is elsewhere
/// unless its value is one of this machine; in a call, which a model writes, of bare ones alone.
fn shape(name: &str, parameters: &[ToolParam], defined: bool) -> Shape {
    let verbs = words(name);
    let does = |all: &[&str]| verbs.iter().any(|word| is_verb(word, all));
    let last = plain(name.rsplit("__").next().unwrap_or(name));
    let (runs, moves) = (does(RUNNING), does(MOVING));
    let fetches = does(FETCHING) || OPENING.contains(&last.as_str());
    let saves = SAVING.contains(&last.as_str());
    let mut shape = Shape { writes: saves || does(WRITING), moves, ..Shape::default() };
    let is_file =
        |parameter: &ToolParam| PATHS.contains(&parameter.key.as_str()) && parameter.takes == ParamType::Text;
    let moves_files = moves && parameters.iter().any(is_file);
    for ToolParam { key, of_files, place, takes, remote, required } in parameters {
        let key = key.as_str();
        if *takes == ParamType::Anything {
            add(&mut shape.open, place);
            continue;
        }
        shape.writes |= CONTENT.contains(&key) && *takes != ParamType::Nothing;
        shape.names_files |= !remote && *of_files;
        if *takes != ParamType::Text {
            continue;
        }
        let is_moved = MOVED.contains(&key);
        let is_path = PATHS.contains(&key) || (moves_files && is_moved);
        let is_bare = BARE_PATHS.contains(&key) || (moves && is_moved);
        if COMMANDS.contains(&key) || (runs && CODE.contains(&key)) {
            add(&mut shape.commands, place);
        } else if *remote && (if is_path { defined } else { is_bare }) {
            add(&mut shape.remote_paths, place);
        } else if is_path {
            add(if *required { &mut shape.paths } else { &mut shape.optional_paths }, place);
        } else if is_bare {
            add(&mut shape.bare_paths, place);
        } else if fetches && URLS.contains(&key) {
            add(if *required { &mut shape.urls } else { &mut shape.optional_urls }, place);
        }
    }
    shape
}

fn add(places: &mut Vec<Vec<String>>, place: &[String]) {
    if places.len() < MOST_PLACES && !places.iter().any(|known| known == place) {
        places.push(place.to_vec());
    }
}

/// The words of a tool's name, folded, without those of its server: `mcp__x__runCode` has `run` and `code`.
fn words(name: &str) -> Vec<String> {
    split(name.rsplit("__").next().unwrap_or(name))
}

/// The words of a text, folded: they end at signs, and where a capital letter stands behind a small one.
fn split(text: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut before = ' ';
    for c in text.chars() {
        if !c.is_alphanumeric() || (c.is_uppercase() && before.is_lowercase()) {
            words.push(String::new());
        }
        if let Some(word) = words.last_mut().filter(|_| c.is_alphanumeric()) {
            word.push(c);
        }
        before = c;
    }
    words.iter().map(|word| fold(word)).filter(|word| !word.is_empty()).collect()
}

fn is_verb(word: &str, verbs: &[&str]) -> bool {
    verbs.iter().any(|verb| word.strip_prefix(verb).is_some_and(|rest| BEHIND.contains(&rest)))
}

/// The kinds that the definition of a tool makes it, and whether it is each of them for certain.
pub(super) fn kinds(shape: &Shape) -> (&'static [Kind], bool) {
    if shape.is_open || !shape.open.is_empty() {
        return (SETS[15], false);
    }
    let (paths, urls) = (!shape.paths.is_empty(), !shape.urls.is_empty());
    let maybe_paths = [&shape.optional_paths, &shape.bare_paths, &shape.remote_paths]
        .iter()
        .any(|places| !places.is_empty());
    let maybe_urls = !shape.optional_urls.is_empty();
    let certain = (paths || !maybe_paths) && (urls || !maybe_urls);
    let touches = (paths || maybe_paths).then_some(shape.writes);
    (set(!shape.commands.is_empty(), touches, urls || maybe_urls), certain)
}

/// What a call does, once for each kind that it is. Its parameters are those by which the kind is inferred.
pub(super) fn read<'a>(shape: &Shape, input: &'a Value) -> Vec<Facts<'a>> {
    let mut facts = Vec::new();
    if !shape.commands.is_empty() {
        let commands = gather(&shape.commands, input).into_iter().flat_map(commands).collect();
        facts.push(Facts { commands, ..Facts::new(Kind::Shell) });
    }
    let at = |places: &[Place]| -> Vec<Cow<'a, str>> {
        gather(places, input).into_iter().flat_map(texts).collect()
    };
    let mut paths = [at(&shape.paths), at(&shape.optional_paths)].concat();
    let bare = at(&shape.bare_paths);
    // What is moved to a path of this machine comes from one.
    let all = shape.moves && bare.iter().any(|path| is_local(path));
    paths.extend(bare.into_iter().filter(|path| all || is_local(path)));
    paths.extend(at(&shape.remote_paths).into_iter().filter(|path| is_surely_local(path)));
    if !shape.paths.is_empty() || !paths.is_empty() {
        let kind = if shape.writes { Kind::Write } else { Kind::Read };
        let moves = shape.moves && paths.len() > 1;
        facts.push(Facts { paths, moves, ..Facts::new(kind) });
    }
    let urls = [at(&shape.urls), at(&shape.optional_urls)].concat();
    if !shape.urls.is_empty() || !urls.is_empty() {
        facts.push(Facts { urls, ..Facts::new(Kind::Fetch) });
    }
    facts
}

/// The kinds of what a call does.
pub(super) fn kinds_of(facts: &[Facts<'_>]) -> &'static [Kind] {
    let has = |kind| facts.iter().any(|facts| facts.kind == kind);
    let touches = (has(Kind::Write) || has(Kind::Read)).then_some(has(Kind::Write));
    set(has(Kind::Shell), touches, has(Kind::Fetch))
}

/// Every set of kinds, by the bits of Shell, Read, Write and Fetch.
const SETS: [&[Kind]; 16] = {
    use Kind::{Fetch, Read, Shell, Write};
    [
        &[],
        &[Shell],
        &[Read],
        &[Shell, Read],
        &[Write],
        &[Shell, Write],
        &[Read, Write],
        &[Shell, Read, Write],
        &[Fetch],
        &[Shell, Fetch],
        &[Read, Fetch],
        &[Shell, Read, Fetch],
        &[Write, Fetch],
        &[Shell, Write, Fetch],
        &[Read, Write, Fetch],
        &[Shell, Read, Write, Fetch],
    ]
};

/// A set of kinds; `touches`: whether files are written, where any are touched.
fn set(runs: bool, touches: Option<bool>, fetches: bool) -> &'static [Kind] {
    let files = match touches {
        None => 0,
        Some(false) => 2,
        Some(true) => 4,
    };
    SETS[usize::from(runs) + files + 8 * usize::from(fetches)]
}

/// Whether a value is a path of this machine.
fn is_local(path: &str) -> bool {
    let drive = |path: &str| {
        let mut chars = path.chars();
        chars.next().is_some_and(|letter| letter.is_ascii_alphabetic()) && chars.next() == Some(':')
    };
    path.starts_with(['/', '~', '.', '\\']) || drive(path)
}

/// The same where what stands beside it says that files are elsewhere: remote repositories have `.github/x`, and `/` for all.
fn is_surely_local(path: &str) -> bool {
    let rest = path.trim_start_matches('.');
    let is_hidden = rest.len() < path.len() && !rest.starts_with(['/', '\\']);
    is_local(path) && !is_hidden && path != "/"
}

/// What stands at parameters, however their keys are written.
fn gather<'a>(places: &[Vec<String>], input: &'a Value) -> Vec<&'a Value> {
    let mut found = Vec::new();
    places.iter().for_each(|place| at(place, input, &mut found));
    found
}

fn at<'a>(place: &[String], value: &'a Value, found: &mut Vec<&'a Value>) {
    let Some((key, rest)) = place.split_first() else {
        found.extend(Some(value).filter(|value| !value.is_null()));
        return;
    };
    match value {
        Value::Array(all) if key == "*" => all.iter().for_each(|one| at(rest, one, found)),
        Value::Object(entries) => {
            let entries = entries.iter().filter(|(own, _)| is_form(own, key));
            entries.for_each(|(_, value)| at(rest, value, found));
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {}
    }
}

/// The commands of a value; what is no command is taken as its JSON.
fn commands(value: &Value) -> Vec<Cow<'_, str>> {
    let Value::Array(all) = value else { return texts(value) };
    match all.iter().map(Value::as_str).collect::<Option<Vec<&str>>>() {
        // The arguments of one command, or several commands.
        Some(arguments) => {
            let line = Cow::Owned(arguments.join(" "));
            let each = arguments.iter().map(|one| Cow::Borrowed(*one));
            shell::script(&arguments).map(Cow::Borrowed).into_iter().chain(each).chain([line]).collect()
        }
        None => vec![reading::json(value)],
    }
}

/// The commands at these places as a shell is given them: a list may be the arguments of one command, or several.
pub(super) fn sources<'a>(places: &[Place], input: &'a Value) -> Vec<CommandSource<'a>> {
    let mut found = Vec::new();
    for place in places {
        let is_other = place.iter().any(|key| CODE.contains(&key.as_str()) || key == "powershell");
        for value in gather(std::slice::from_ref(place), input) {
            match value {
                _ if is_other => found.push(CommandSource::Other),
                Value::String(text) => found.push(CommandSource::Text(text)),
                Value::Array(all) => match reading::arguments(all) {
                    Some(words) => {
                        found.extend(words.iter().map(|word| CommandSource::Text(word)));
                        found.push(CommandSource::Arguments(words));
                    }
                    None => found.push(CommandSource::Other),
                },
                Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => {
                    found.push(CommandSource::Other);
                }
            }
        }
    }
    found
}

fn texts(value: &Value) -> Vec<Cow<'_, str>> {
    match value {
        Value::String(text) => vec![Cow::Borrowed(text)],
        Value::Array(all) => all.iter().flat_map(texts).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => vec![reading::json(value)],
    }
}
