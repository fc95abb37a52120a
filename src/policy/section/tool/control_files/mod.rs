//! The built-in rule `agent-control-files`: files that agents, shells, editors and build tools run by themselves are
//! not written, but where a rule names them.

mod list;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::sync::LazyLock;

use serde_json::Value;

use crate::call::{Input, Kind, ToolCall};
use crate::decision::Decision;
use crate::fold::fold;

use super::names::NamePattern;
use list::{CONTROL_FILES, ORDINARY};

/// The longest text in an input that is looked at as a path, in bytes: the longest path of Linux.
const MOST_PATH: usize = 4096;
/// How much of an input is looked at as paths, in bytes.
const MOST_BYTES: usize = 256 * 1024;
/// The most paths that a move may have; each could land in each.
const MOST_MOVED: usize = 32;

/// Parameters that hold the content to write, or prose about it, in lower case without `_` and `-`.
const CONTENT: &[&str] = &[
    "content",
    "contents",
    "filecontent",
    "codecontent",
    "text",
    "filetext",
    "oldstring",
    "newstring",
    "oldstr",
    "newstr",
    "oldtext",
    "newtext",
    "newsource",
    "inserttext",
    "findtext",
    "replacetext",
    "code",
    "newcode",
    "codeedit",
    "data",
    "diff",
    "patch",
    "patchtext",
    "search",
    "replace",
    "find",
    "replacement",
    "replacementcontent",
    "targetcontent",
    "pattern",
    "regex",
    "description",
    "explanation",
    "instruction",
    "instructions",
    "prompt",
    "displaydescription",
    "reason",
    "message",
    "old",
    "new",
    "before",
    "after",
    "body",
    "line",
    "lines",
    "snippet",
    "value",
    "needle",
    "repl",
    "comment",
    "summary",
    "title",
];

/// One entry of the list, compiled.
struct ControlFile {
    written: &'static str,
    components: Vec<Component>,
    directory: bool,
    /// Ordinary files below it, each with the components of the entry in front.
    ordinary: Vec<Vec<Component>>,
}

/// One component of an entry.
struct Component {
    pattern: NamePattern,
    /// It as it is written, without wildcards.
    shortest: String,
    /// What Windows makes a short name of, as in `GIT~1`: the letters before the first dot.
    long: String,
}

/// The reason for a denial by the rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ControlFileFinding {
    /// It writes a file of this entry.
    Writes(&'static str),
    /// Which files it writes cannot be read.
    Unreadable,
}

/// The list, compiled.
struct ControlFiles {
    all: Vec<ControlFile>,
    /// The entries whose first component is this one.
    by_first: HashMap<Box<str>, Vec<usize>>,
    /// Those whose first component is a wildcard.
    others: Vec<usize>,
}

static ENTRIES: LazyLock<ControlFiles> = LazyLock::new(|| {
    let all: Vec<ControlFile> = CONTROL_FILES.iter().copied().map(ControlFile::read).collect();
    let mut entries = ControlFiles { all: Vec::new(), by_first: HashMap::new(), others: Vec::new() };
    for (number, entry) in all.iter().enumerate() {
        match entry.components.first().map(|first| &first.pattern) {
            Some(NamePattern::Exact(name)) => entries.by_first.entry(name.clone()).or_default().push(number),
            Some(NamePattern::Wildcard(_)) | None => entries.others.push(number),
        }
    }
    ControlFiles { all, ..entries }
});

/// Returns why the rule denies a call; none where the call writes no control file, or only `lifted` ones.
pub(super) fn finding(call: &ToolCall<'_>, lifted: impl Fn(&str) -> bool) -> Option<ControlFileFinding> {
    let Some(facts) = call.facts else {
        return is_unreadable(call).then_some(ControlFileFinding::Unreadable);
    };
    if facts.kind != Kind::Write {
        return None;
    }
    if facts.paths.is_empty() || facts.paths.iter().map(|path| path.len() + 1).sum::<usize>() > MOST_BYTES {
        return Some(ControlFileFinding::Unreadable);
    }
    let denied = |path: &str| covering(path).filter(|_| !lifted(path)).map(ControlFileFinding::Writes);
    let known = facts.paths.iter().find_map(|path| denied(path));
    let moved = || if facts.moves { moved(&facts.paths, &lifted) } else { None };
    // A parameter that the catalogue does not know may be the one that the tool goes by.
    let hidden = || match call.input {
        // The input of a shell is a command, which was read.
        _ if facts.derived_from.is_some() => None,
        Input::Json(input) => hidden(input, &mut { MOST_BYTES }, &denied),
        Input::Text(_) => None,
    };
    known.or_else(moved).or_else(hidden)
}

/// Whether a directory is itself a place of the list, or below one.
pub(in crate::policy) fn is_place(directory: &str) -> bool {
    covering(directory).is_some()
}

/// The denial, which names the entry rather than the model's text.
pub(super) fn ruling(finding: ControlFileFinding) -> Decision {
    let reason = match finding {
        ControlFileFinding::Writes(entry) => format!(
            "{entry} is run by agents, shells or tools by themselves, and no rule that names it allows it"
        ),
        ControlFileFinding::Unreadable => {
            "Which files this call writes cannot be read from its input".to_owned()
        }
    };
    Decision::builtin("agent-control-files", reason)
}

/// Whether a call without facts could write files. What a shell writes is not known without its command.
fn is_unreadable(call: &ToolCall<'_>) -> bool {
    call.tool.kinds.contains(&Kind::Write) && !call.tool.kinds.contains(&Kind::Shell)
}

/// The entry that covers a path, whichever file system it is for.
fn covering(path: &str) -> Option<&'static str> {
    let readings = readings(path);
    readings.iter().find_map(|components| ENTRIES.covering(components)).map(|entry| entry.written)
}

/// Finds control files that a move or copy makes beyond its paths: a directory that comes to stand where the list has
/// some of its files, and a file that lands inside a directory.
fn moved(paths: &[impl AsRef<str>], lifted: &impl Fn(&str) -> bool) -> Option<ControlFileFinding> {
    if paths.len() > MOST_MOVED {
        return Some(ControlFileFinding::Unreadable);
    }
    for path in paths.iter().map(AsRef::as_ref) {
        let readings = readings(path);
        let above = |entry: &&ControlFile| readings.iter().any(|components| entry.is_below(components));
        if let Some(entry) = ENTRIES.all.iter().find(above).filter(|_| !lifted(path)) {
            return Some(ControlFileFinding::Writes(entry.written));
        }
        for other in paths.iter().map(AsRef::as_ref) {
            let name = other.trim_end_matches(['/', '\\']).rsplit(['/', '\\']).next().unwrap_or_default();
            let inside = format!("{path}/{name}");
            if let Some(entry) = covering(&inside).filter(|_| !lifted(path) && !lifted(&inside)) {
                return Some(ControlFileFinding::Writes(entry));
            }
        }
    }
    None
}

/// Finds a control file in any text of the input but the content to write. `room` is the number of bytes that may still be
/// looked at.
fn hidden(
    input: &Value,
    room: &mut usize,
    denied: &impl Fn(&str) -> Option<ControlFileFinding>,
) -> Option<ControlFileFinding> {
    match input {
        // A path has one line, and an address of the web is none.
        Value::String(text) if text.len() > MOST_PATH || text.contains('\n') || text.starts_with("http") => {
            None
        }
        Value::String(text) => match room.checked_sub(text.len() + 1) {
            Some(left) => {
                *room = left;
                denied(text)
            }
            None => Some(ControlFileFinding::Unreadable),
        },
        Value::Array(items) => items.iter().find_map(|item| hidden(item, room, denied)),
        Value::Object(fields) => {
            let mut others = fields.iter().filter(|(key, _)| !is_content(key));
            others.find_map(|(_, value)| hidden(value, room, denied))
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => None,
    }
}

fn is_content(key: &str) -> bool {
    let key: String = fold(key).chars().filter(|c| !"_-".contains(*c)).collect();
    CONTENT.contains(&key.as_str())
}

impl ControlFiles {
    fn covering(&self, path: &[String]) -> Option<&ControlFile> {
        (0..path.len()).find_map(|start| {
            let path = path.get(start..)?;
            let first = path.first()?;
            // A Windows short name (`GIT~1`) may stand for any entry.
            if first.contains('~') || is_pattern(first) {
                return self.all.iter().find(|entry| entry.covers(path));
            }
            let numbers = self.by_first.get(first.as_str()).into_iter().flatten().chain(&self.others);
            numbers.filter_map(|number| self.all.get(*number)).find(|entry| entry.covers(path))
        })
    }
}

impl ControlFile {
    fn read(written: &'static str) -> Self {
        let ordinary = ORDINARY.iter().filter(|ordinary| ordinary.starts_with(written));
        Self {
            written,
            components: Component::all(written),
            directory: written.ends_with('/'),
            ordinary: ordinary.map(|ordinary| Component::all(ordinary)).collect(),
        }
    }

    /// Whether it covers the end of a path that begins here.
    fn covers(&self, path: &[String]) -> bool {
        // A pattern alone may stand for any file: only hidden ones are meant by a dot in front.
        let is_meant = |first: &String| {
            !is_pattern(first)
                || self.written.starts_with('.')
                || self.components.first().is_some_and(|own| own.pattern.covers(first))
        };
        (self.directory || path.len() == self.components.len())
            && path.first().is_some_and(is_meant)
            && begins(path, &self.components)
            && !self.ordinary.iter().any(|ordinary| begins(path, ordinary))
    }

    /// Whether the files of the entry stand below a hidden directory that the path ends in.
    fn is_below(&self, path: &[String]) -> bool {
        let above = |length: usize| {
            let components = self.components.get(..length)?;
            let start = path.len().checked_sub(length)?;
            Some(begins(path.get(start..)?, components))
        };
        self.written.starts_with('.') && (1..self.components.len()).any(|length| above(length) == Some(true))
    }
}

fn is_pattern(name: &str) -> bool {
    name.contains(['*', '?', '['])
}

/// Whether a pattern may stand for a text, whatever its brackets hold. It is linear in the lengths of both multiplied.
fn meets(pattern: &str, text: &[char]) -> bool {
    // Where the text may have been met up to.
    let mut met: Vec<bool> = std::iter::once(true).chain(text.iter().map(|_| false)).collect();
    let mut signs = pattern.chars().peekable();
    while let Some(sign) = signs.next() {
        if sign == '*' {
            let from = met.iter().position(|is_met| *is_met).unwrap_or(met.len());
            met.iter_mut().skip(from).for_each(|is_met| *is_met = true);
            continue;
        }
        let is_any = match sign {
            '?' => true,
            '[' => {
                // `[]x]`, `[!]x]`
                signs.next_if(|next| matches!(next, '!' | '^'));
                signs.next_if_eq(&']');
                ends_set(&mut signs)
            }
            _ => false,
        };
        let next = |at: usize| at > 0 && met.get(at - 1) == Some(&true);
        met = (0..met.len()).map(|at| next(at) && (is_any || text.get(at - 1) == Some(&sign))).collect();
    }
    met.last() == Some(&true)
}

/// Goes to the end of a set of characters; false where it has none. A class in it has brackets of its own: `[[:alpha:]]`.
fn ends_set(signs: &mut std::iter::Peekable<std::str::Chars<'_>>) -> bool {
    while let Some(sign) = signs.next() {
        if sign == ']' {
            return true;
        }
        if sign == '['
            && let Some(mark) = signs.next_if(|next| matches!(next, ':' | '=' | '.'))
        {
            let mut before = ' ';
            signs.by_ref().any(|next| std::mem::replace(&mut before, next) == mark && next == ']');
        }
    }
    false
}

/// Whether a path begins with these components.
fn begins(path: &[String], components: &[Component]) -> bool {
    path.len() >= components.len() && components.iter().zip(path).all(|(own, other)| own.covers(other))
}

impl Component {
    fn all(written: &str) -> Vec<Self> {
        written.trim_end_matches('/').split('/').map(Self::read).collect()
    }

    fn read(written: &str) -> Self {
        let long = fold(written.trim_start_matches('.'));
        let long = long.split(['.', '*']).next().unwrap_or_default().to_owned();
        Self { pattern: NamePattern::read(written, fold), shortest: fold(&written.replace('*', "")), long }
    }

    fn covers(&self, name: &str) -> bool {
        self.pattern.covers(name)
            || self.is_shortened(name).unwrap_or(false)
            || (is_pattern(name) && self.is_met_by(name))
    }

    /// Whether a pattern of a shell may stand for it: `.clau?e`. A dot in front is met by a dot alone.
    fn is_met_by(&self, pattern: &str) -> bool {
        let text: Vec<char> = self.shortest.chars().collect();
        (!self.shortest.starts_with('.') || pattern.starts_with('.')) && meets(pattern, &text)
    }

    /// Whether a name is one by which Windows knows a long one, too: `GIT~1`, `GI7EBA~1`.
    fn is_shortened(&self, name: &str) -> Option<bool> {
        let (base, rest) = name.split_once('~')?;
        let number = rest.split('.').next()?;
        if base.is_empty() || number.is_empty() || !number.bytes().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        let cut = self.long.starts_with(base) && base.len() >= self.long.len().min(4);
        let hashed = || {
            let (letters, hash) = base.split_at_checked(2)?;
            let is_hash = hash.len() == 4 && hash.bytes().all(|byte| byte.is_ascii_hexdigit());
            Some(is_hash && self.long.starts_with(letters))
        };
        Some(cut || hashed()?)
    }
}

/// The components of a path in the form of the list, once for each way in which systems read it: with either slash or
/// with `/` alone; with `..` where it is written so, and where it folds to that.
fn readings(path: &str) -> Vec<Vec<String>> {
    let decoded = path.contains("://").then(|| percent_decoded(path)).flatten();
    let path = decoded.as_deref().unwrap_or(path);
    let both: &[char] = &['/', '\\'];
    let mut readings = vec![components(path, both, false)];
    if path.contains('\\') {
        readings.push(components(path, &['/'], false));
    }
    let folds =
        |component: &str| !matches!(component, "." | "..") && matches!(fold(component).as_str(), "." | "..");
    if path.split(both).any(folds) {
        readings.push(components(path, both, true));
    }
    readings
}

/// The components, folded, since some file systems fold names, too; `.` and `..` resolved as far as the text goes.
fn components(path: &str, separators: &[char], loose: bool) -> Vec<String> {
    let mut components: Vec<String> = Vec::new();
    for written in path.split(separators) {
        let name = name(written);
        match if loose { name.as_str() } else { written } {
            "" | "." => {}
            ".." if components.last().is_some_and(|last| last != "..") => {
                components.pop();
            }
            _ if name.is_empty() => {}
            _ => components.push(name),
        }
    }
    components
}

/// A component as file systems know it: folded; without a drive, the name of a stream (`::$DATA`), and the dots at its
/// end, which Windows drops.
fn name(component: &str) -> String {
    let folded = fold(component);
    // A class in a pattern has two of its own: `[[:alpha:]]`.
    let is_class = |at: usize| {
        folded.get(..at).is_some_and(|before| before.ends_with('['))
            || folded.get(at + 1..).is_some_and(|behind| behind.starts_with(']'))
    };
    let name = match folded.match_indices(':').map(|(at, _)| at).find(|at| !is_class(*at)) {
        Some(1) => folded.get(2..).unwrap_or_default(),
        Some(at) if at > 1 => folded.get(..at).unwrap_or_default(),
        Some(_) | None => &folded,
    };
    let bare = name.trim_end_matches('.');
    if bare.is_empty() { name.to_owned() } else { bare.to_owned() }
}

/// Decodes `%2e` and its like in a URL's path; none where the result is no UTF-8.
fn percent_decoded(text: &str) -> Option<String> {
    let mut rest = text.as_bytes();
    let mut decoded = Vec::with_capacity(text.len());
    while let Some((byte, after)) = rest.split_first() {
        let digits =
            after.get(..2).filter(|_| *byte == b'%').and_then(|digits| std::str::from_utf8(digits).ok());
        match digits.and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            Some(value) => {
                decoded.push(value);
                rest = after.get(2..).unwrap_or_default();
            }
            None => {
                decoded.push(*byte);
                rest = after;
            }
        }
    }
    String::from_utf8(decoded).ok()
}
