//! The built-in rule `agent-control-files`: files that agents, shells, editors and build tools run by themselves are
//! not written, but where a rule names them.

use std::sync::LazyLock;

use serde_json::Value;

use crate::call::{Input, Kind, ToolCall};
use crate::fold::fold;
use crate::policy::ruling::Ruling;

use super::control_list::{CONTROL_FILES, ORDINARY};
use super::names::Pattern;

/// The longest text in an input that is looked at as a path, in bytes: the longest path of Linux.
const MOST_PATH: usize = 4096;
/// The most paths that a move may have; each could land in each.
const MOST_MOVED: usize = 32;

/// Parameters that hold what is written, and what is said about it, in lower case without `_` and `-`.
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
    "code",
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
struct Entry {
    written: &'static str,
    components: Vec<Component>,
    directory: bool,
    /// Ordinary files below it, each with the components of the entry in front.
    ordinary: Vec<Vec<Component>>,
}

/// One component of an entry.
struct Component {
    pattern: Pattern,
    /// What Windows makes a short name of, as in `GIT~1`: the letters before the first dot.
    long: String,
}

/// What the rule has against a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Finding {
    /// It writes a file of this entry.
    Writes(&'static str),
    /// Which files it writes cannot be read.
    Unreadable,
}

static ENTRIES: LazyLock<Vec<Entry>> = LazyLock::new(|| {
    let entry = |written: &'static str| Entry {
        written,
        components: Component::all(written),
        directory: written.ends_with('/'),
        ordinary: ORDINARY
            .iter()
            .filter(|ordinary| ordinary.starts_with(written))
            .map(|ordinary| Component::all(ordinary))
            .collect(),
    };
    CONTROL_FILES.iter().copied().map(entry).collect()
});

/// What the rule has against a call; none where the call writes nothing of the kind, or only files that are `lifted`.
pub(super) fn finding(call: &ToolCall<'_>, lifted: impl Fn(&str) -> bool) -> Option<Finding> {
    let Some(facts) = call.facts else { return is_unreadable(call).then_some(Finding::Unreadable) };
    if facts.kind != Kind::Write {
        return None;
    }
    if facts.paths.is_empty() {
        return Some(Finding::Unreadable);
    }
    let denied = |path: &str| covering(path).filter(|_| !lifted(path));
    let known = facts.paths.iter().find_map(|path| denied(path)).map(Finding::Writes);
    let moved = || if facts.moves { moved(&facts.paths, &lifted) } else { None };
    // A parameter that the catalogue does not know may be the one that the tool goes by.
    let hidden = || match call.input {
        Input::Json(input) => hidden(input, &denied).map(Finding::Writes),
        Input::Text(_) => None,
    };
    known.or_else(moved).or_else(hidden)
}

/// Whether a directory is itself a place of the list, or below one.
pub(in crate::policy) fn is_place(directory: &str) -> bool {
    covering(directory).is_some()
}

/// The denial, which names the entry rather than what the model wrote.
pub(super) fn ruling(finding: Finding) -> Ruling {
    let reason = match finding {
        Finding::Writes(entry) => format!(
            "{entry} is run by agents, shells or tools by themselves, and no rule that names it allows it"
        ),
        Finding::Unreadable => "Which files this call writes cannot be read from its input".to_owned(),
    };
    Ruling::builtin("agent-control-files", reason)
}

/// Whether a call without facts could be one that writes files. What a shell writes is not read from its input anyway.
fn is_unreadable(call: &ToolCall<'_>) -> bool {
    call.tool.kinds.contains(&Kind::Write) && !call.tool.kinds.contains(&Kind::Shell)
}

/// The entry that covers a path, whichever file system it is for.
fn covering(path: &str) -> Option<&'static str> {
    let readings = readings(path);
    let covered = |entry: &&Entry| readings.iter().any(|components| entry.covers(components));
    ENTRIES.iter().find(covered).map(|entry| entry.written)
}

/// What a move or copy does to the list beyond its paths: a directory that comes to stand where the list has
/// some of its files, and a file that lands inside a directory.
fn moved(paths: &[impl AsRef<str>], lifted: &impl Fn(&str) -> bool) -> Option<Finding> {
    if paths.len() > MOST_MOVED {
        return Some(Finding::Unreadable);
    }
    for path in paths.iter().map(AsRef::as_ref) {
        let readings = readings(path);
        let above = |entry: &&Entry| readings.iter().any(|components| entry.is_below(components));
        if let Some(entry) = ENTRIES.iter().find(above).filter(|_| !lifted(path)) {
            return Some(Finding::Writes(entry.written));
        }
        for other in paths.iter().map(AsRef::as_ref) {
            let name = other.trim_end_matches(['/', '\\']).rsplit(['/', '\\']).next().unwrap_or_default();
            let inside = format!("{path}/{name}");
            if let Some(entry) = covering(&inside).filter(|_| !lifted(path) && !lifted(&inside)) {
                return Some(Finding::Writes(entry));
            }
        }
    }
    None
}

/// The entry that a text in the input names, wherever it stands but for what is written.
fn hidden(input: &Value, denied: &impl Fn(&str) -> Option<&'static str>) -> Option<&'static str> {
    match input {
        // A path has one line, and an address of the web is none.
        Value::String(text) => {
            let is_path = text.len() <= MOST_PATH && !text.contains('\n') && !text.starts_with("http");
            if is_path { denied(text) } else { None }
        }
        Value::Array(items) => items.iter().find_map(|item| hidden(item, denied)),
        Value::Object(fields) => {
            let mut others = fields.iter().filter(|(key, _)| !is_content(key));
            others.find_map(|(_, value)| hidden(value, denied))
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => None,
    }
}

fn is_content(key: &str) -> bool {
    let key: String = fold(key).chars().filter(|c| !"_-".contains(*c)).collect();
    CONTENT.contains(&key.as_str())
}

impl Entry {
    fn covers(&self, path: &[String]) -> bool {
        let length = self.components.len();
        let Some(last) = path.len().checked_sub(length) else { return false };
        let first = if self.directory { 0 } else { last };
        (first..=last).filter_map(|start| path.get(start..)).any(|path| {
            begins(path, &self.components) && !self.ordinary.iter().any(|ordinary| begins(path, ordinary))
        })
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
        Self { pattern: Pattern::read(written, fold), long }
    }

    fn covers(&self, name: &str) -> bool {
        self.pattern.covers(name) || self.is_shortened(name).unwrap_or(false)
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
    let name = match folded.find(':') {
        Some(1) => folded.get(2..).unwrap_or_default(),
        Some(at) if at > 1 => folded.get(..at).unwrap_or_default(),
        Some(_) | None => &folded,
    };
    let bare = name.trim_end_matches('.');
    if bare.is_empty() { name.to_owned() } else { bare.to_owned() }
}

/// A URL's path without `%2e` and its like; none where what comes of it is no text.
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::call::{Facts, Tool};

    fn covered(path: &str) -> Option<&'static str> {
        covering(path)
    }

    #[test]
    fn what_runs_by_itself_is_on_the_list_wherever_it_stands() {
        for path in [
            "/workspace/.claude/settings.json",
            ".claude/settings.local.json",
            "/home/agent/.claude.json",
            "~/.bashrc",
            "/home/agent/.zshenv",
            "/workspace/.git/hooks/pre-commit",
            "sub/.git/config",
            "/workspace/.git",
            "/workspace/.mcp.json",
            "~/.codex/config.toml",
            ".gemini/settings.json",
            "/etc/profile.d/x.sh",
            "../../etc/cron.daily/x",
            "/workspace/.vscode/tasks.json",
            "/usr/lib/python3/site-packages/evil.pth",
            "/home/agent/.copilot/mcp-config.json",
            "/w/crush.json",
            "/w/.zed/tasks.json",
            "/w/.clinerules/hooks/PreToolUse",
            "/home/agent/Documents/Cline/Hooks/PreToolUse",
            "/w/.kilocode/mcp.json",
            "/w/.factory/droids/x.md",
            "/w/.augment/commands/x.md",
            "/home/agent/.aws/amazonq/mcp.json",
            "/w/.junie/mcp/mcp.json",
            "/w/.openhands/setup.sh",
            "~/.config/amp/settings.json",
            "/w/.claude/rules/x.md",
            "/w/.claude/scheduled_tasks.json",
            "/w/x.code-workspace",
            "~/Library/Application Support/Code/User/settings.json",
            "/home/agent/.vscode-server/data/Machine/settings.json",
            "/w/.idea/workspace.xml",
            "/w/mise.local.toml",
            "/w/lefthook.yml",
            "/w/.hg/hgrc",
            "~/.kube/config",
            "/Users/a/Library/LaunchAgents/x.plist",
            "/etc/sudoers.d/x",
            "~/.local/bin/git",
        ] {
            assert!(covered(path).is_some(), "{path}");
        }
    }

    #[test]
    fn another_spelling_of_the_path_is_the_same_file() {
        for path in [
            "/workspace/.CLAUDE/Settings.json",
            "/workspace/.claude/x/../settings.json",
            "/workspace/./.claude//settings.json",
            "/workspace/.git/./hooks/pre-commit",
            "C:\\work\\.git\\hooks\\pre-commit",
            "/workspace/.gi\u{200c}t/hooks/pre-commit",
            "/workspace/.ｇit/hooks/pre-commit",
            "file:///home/agent/.bashrc",
            "file:///home/agent/%2Ebashrc",
            "/workspace/.git./hooks/pre-commit",
            "/workspace/.git /hooks/pre-commit",
            "C:/w/GIT~1/hooks/pre-commit",
            "C:\\w\\claude~2\\settings.json",
            "/w/.git/hooks::$INDEX_ALLOCATION/pre-commit",
            "/w/.git::$INDEX_ALLOCATION/hooks/pre-commit",
            "/w/.bashrc::$DATA",
            "C:.bashrc",
            "/w/.git/hooks/x/.. /../pre-commit",
            "/w/.claude/agents/x\\..\\..\\..\\y.md",
        ] {
            assert!(covered(path).is_some(), "{path}");
        }
    }

    #[test]
    fn ordinary_files_are_not() {
        for path in [
            "/workspace/src/main.rs",
            "/workspace/.gitignore",
            "/workspace/.github/workflows/ci.yml",
            "/workspace/docs/.claude-notes.md",
            "/workspace/settings.json",
            "/workspace/src/config.json",
            "/workspace/.aws/config/x",
            "/workspace/CLAUDE.md",
            "/workspace/AGENTS.md",
            "/workspace/.github/copilot-instructions.md",
            "/workspace/.vscode/extensions.json",
            "/workspace/local/bin/x",
            "/workspace/docker/config.json",
            "/workspace/promise.toml",
            "/home/agent/.claude/plans/plan.md",
            "/workspace/git/hooks/pre-commit",
            "/workspace/.git/hooks/../../src/lib.rs",
            "/home/agent/.gemini/tmp/abc/plans/plan.md",
            "/home/agent/.gemini/tmp/abc/session/plans/plan.md",
            "/workspace/.opencode/plans/1-plan.md",
            "C:\\Users\\CONTAI~1\\AppData\\Local\\Temp\\a.txt",
            "/workspace/a~1.txt",
            "/workspace/notes.txt::$DATA",
            "",
            "/",
        ] {
            assert_eq!(covered(path), None, "{path}");
        }
    }

    #[test]
    fn what_is_ordinary_below_a_place_excuses_nothing_else() {
        for path in [
            "/home/agent/.gemini/tmp/abc/plans/.git/hooks/pre-commit",
            "/home/agent/.gemini/tmp/abc/plans/../settings.json",
            "/home/agent/.gemini/settings.json",
            "/workspace/.opencode/plans.md",
            "/workspace/.opencode/plans/../plugin/x.js",
            "/workspace/.opencode/plans/.opencode/plugin/x.js",
        ] {
            assert!(covered(path).is_some(), "{path}");
        }
        for ordinary in ORDINARY {
            assert!(CONTROL_FILES.iter().any(|entry| ordinary.starts_with(entry)), "{ordinary}");
        }
    }

    fn write(paths: &[&'static str], moves: bool, input: &Value) -> Option<Finding> {
        let facts = Facts {
            paths: paths.iter().map(|path| (*path).into()).collect(),
            moves,
            ..Facts::new(Kind::Write)
        };
        let tool = Tool { kinds: &[Kind::Write], ..Tool::named("t") };
        finding(&ToolCall { tool, input: Input::Json(input), facts: Some(&facts) }, |path| {
            path == "/w/.envrc"
        })
    }

    #[test]
    fn a_move_brings_what_stands_below_it() {
        let none = json!({});
        for paths in [
            ["/w/x", "/w/.claude"],
            ["/w/x", "/w/.vscode/"],
            ["/w/x", "/home/a/.config"],
            ["/w/settings.json", "/w/.claude"],
            ["/w/x/.mcp.json", "/w"],
        ] {
            assert!(write(&paths, true, &none).is_some(), "{paths:?}");
        }
        for paths in [["/w/a.rs", "/w/b.rs"], ["/w/a", "/w/.github/workflows"], ["/w/x", "/w/etc"]] {
            assert_eq!(write(&paths, true, &none), None, "{paths:?}");
        }
        assert_eq!(write(&["/w/.claude/"], false, &none), None, "a directory is made, and has nothing in it");
        let many = vec!["/w/a"; 40];
        assert_eq!(write(&many, true, &none), Some(Finding::Unreadable));
    }

    #[test]
    fn a_path_in_a_parameter_that_nobody_knows_counts_and_contents_do_not() {
        let path = ["/w/a.md"];
        for input in [
            json!({"path": "/w/a.md", "target": ".git/hooks/x"}),
            json!({"path": "/w/a.md", "more": [{"where": {"it_is": "/home/a/.bashrc"}}]}),
        ] {
            assert!(matches!(write(&path, false, &input), Some(Finding::Writes(_))), "{input}");
        }
        for input in [
            json!({"content": ".bashrc", "old_string": ".git/hooks/x", "newString": "~/.zshrc"}),
            json!({"description": ".envrc", "edits": [{"oldText": ".envrc", "newText": "~/.envrc"}]}),
            json!({"note": "first line\n.git/hooks/x", "url": "https://a.example/.git/config", "n": 1}),
            json!({"path": "/w/a.md", "allowed": "/w/.envrc"}),
        ] {
            assert_eq!(write(&path, false, &input), None, "{input}");
        }
    }

    #[test]
    fn a_write_without_a_path_is_unreadable_but_what_a_shell_runs_is_not_read() {
        let input = json!({"x": 1});
        let call = |kinds: &[Kind], facts: Option<Facts<'_>>| {
            let tool = Tool { kinds, ..Tool::named("t") };
            let call = ToolCall { tool, input: Input::Json(&input), facts: facts.as_ref() };
            finding(&call, |_| false)
        };
        assert_eq!(call(&[Kind::Write], None), Some(Finding::Unreadable));
        assert_eq!(call(&[Kind::Read, Kind::Write], None), Some(Finding::Unreadable));
        assert_eq!(call(&[Kind::Shell, Kind::Write], None), None);
        assert_eq!(call(&[Kind::Read], None), None);
        assert_eq!(
            call(&[Kind::Shell, Kind::Write], Some(Facts::new(Kind::Write))),
            Some(Finding::Unreadable)
        );
        assert_eq!(call(&[Kind::Shell, Kind::Write], Some(Facts::new(Kind::Shell))), None);
    }

    #[test]
    fn the_list_says_each_file_once() {
        let mut sorted: Vec<&str> = CONTROL_FILES.to_vec();
        sorted.sort_unstable();
        sorted.dedup();
        assert_eq!(sorted.len(), CONTROL_FILES.len());
    }
}
