//! The scripts of `sed` and SQL: whether they run something, and the files that they name.

use super::awk;

/// What a script of `sed` does beside editing.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct ScriptFiles<'a> {
    pub(super) reads: Vec<&'a str>,
    pub(super) writes: Vec<&'a str>,
    /// Whether it runs commands, or cannot be read.
    pub(super) is_opaque: bool,
}

/// Whether a program that connects is `ssh` itself, with no program of its own.
pub(super) fn is_plain_ssh(command: &str) -> bool {
    let mut words = command.split_whitespace();
    words.next().is_some_and(|program| program.rsplit('/').next() == Some("ssh"))
        && !command.to_ascii_lowercase().contains("command")
}

/// Commands of `sqlite3` that only show something.
const DOTTED: &[&str] = &[
    "databases",
    "dump",
    "exit",
    "explain",
    "fullschema",
    "header",
    "headers",
    "help",
    "indexes",
    "indices",
    "limit",
    "mode",
    "nullvalue",
    "quit",
    "schema",
    "separator",
    "show",
    "stats",
    "tables",
    "timer",
    "version",
    "width",
];

/// Those of `psql`, beside the ones that begin with `d`.
const SLASHED: &[&str] = &[
    "a", "c", "connect", "conninfo", "echo", "encoding", "h", "l", "pset", "q", "sf", "sv", "t", "timing",
    "x", "z",
];

/// What stands in SQL that takes files or runs programs.
const FILES: &[&str] = &[
    "attach",
    "load_extension",
    "readfile",
    "writefile",
    "fsdir",
    "outfile",
    "dumpfile",
    "load_file",
    "lo_import",
    "lo_export",
    "pg_read",
    "pg_ls",
];

/// Words of SQL that do so, two of them where both stand in it.
const WORDS: &[[&str; 2]] =
    &[["copy", "to"], ["copy", "from"], ["load", "data"], ["program", "program"], ["vacuum", "into"]];

/// Whether SQL, or a command of `sqlite3`, `psql` or `mysql`, does more than ask the database: it runs programs, or
/// reads or writes files.
pub(super) fn sql_runs(text: &str) -> bool {
    let first = |text: &str| {
        text.split(|c: char| c.is_whitespace() || c == '+').next().unwrap_or_default().to_owned()
    };
    let line_runs = |line: &str| {
        let line = line.trim();
        if let Some(command) = line.strip_prefix('.') {
            return !DOTTED.contains(&first(command).as_str());
        }
        let rest = line.strip_prefix('\\').unwrap_or(line);
        let is_shown = rest.starts_with('d') || SLASHED.contains(&first(rest).as_str());
        (rest.len() < line.len() && !is_shown)
            || rest.contains('\\')
            || ["system ", "source ", "tee "].iter().any(|start| line.starts_with(start))
    };
    let lower = text.to_ascii_lowercase();
    lower.lines().any(line_runs) || FILES.iter().any(|name| lower.contains(name)) || names_files(&lower)
}

/// Whether words of SQL take files, whatever blanks and comments stand between them.
fn names_files(sql: &str) -> bool {
    let words = || sql.split(|c: char| !c.is_alphanumeric() && c != '_');
    let has = |wanted: &str| words().any(|word| word == wanted);
    // `"edit" (…)`, and not the name of a column.
    let has_comment = sql.contains("/*") || sql.contains("--");
    let is_called = |(at, name): (usize, &str)| {
        let behind = sql.get(at + name.len()..).unwrap_or_default();
        has_comment
            || behind.trim_start_matches(|c: char| c.is_whitespace() || "\"`]".contains(c)).starts_with('(')
    };
    WORDS.iter().any(|[first, second]| has(first) && has(second)) || sql.match_indices("edit").any(is_called)
}

/// What `s,old,new,flags` puts in the place of a name, unless parts of the name are in it.
pub(super) fn replacement(text: &str) -> Option<&str> {
    let (delimiter, rest) = delimiter(text.trim_start_matches("flags=").strip_prefix('s')?)?;
    let rest = behind(rest, delimiter)?;
    let end = rest.len().checked_sub(behind(rest, delimiter)?.len() + delimiter.len_utf8())?;
    rest.get(..end).filter(|new| !new.is_empty() && !new.contains(['&', '\\']))
}

/// Whether a scheme is one of other hosts.
pub(super) fn is_remote_scheme(text: &str) -> bool {
    let lower = text.to_ascii_lowercase();
    matches!(lower.as_str(), "http" | "https" | "ftp" | "ftps" | "sftp" | "scp" | "ws" | "wss")
}

/// Whether the name of a module of perl has code behind it: `-MList::Util=sum` and `-MPOSIX qw(floor)` have none.
pub(super) fn import_runs(text: &str) -> bool {
    let (name, list) = text.split_once(" qw").map_or((text, None), |(name, list)| (name, Some(list)));
    let is_name = |c: char| c.is_alphanumeric() || "_:=,-.+$@%&*".contains(c);
    let list = list.map(|list| list.trim().strip_prefix('(').and_then(|list| list.strip_suffix(')')));
    let is_list = |list: &str| list.chars().all(|c| c.is_alphanumeric() || "_:$@%& ".contains(c));
    !name.chars().all(is_name) || !list.is_none_or(|list| list.is_some_and(is_list))
}

/// Reads a script of `sed` (POSIX, and GNU's additions).
pub(super) fn sed_files(script: &str) -> ScriptFiles<'_> {
    let mut files = ScriptFiles::default();
    let mut rest = script;
    loop {
        rest = rest.trim_start_matches(|c: char| c.is_whitespace() || c == ';' || c == '}');
        if rest.is_empty() {
            return files;
        }
        let Some(after) = command(rest, &mut files) else {
            files.is_opaque = true;
            return files;
        };
        rest = after;
    }
}

/// Reads one command; none where it cannot be read.
fn command<'a>(script: &'a str, files: &mut ScriptFiles<'a>) -> Option<&'a str> {
    let script = addresses(script)?;
    let mut characters = script.chars();
    let letter = characters.next()?;
    let rest = characters.as_str();
    match letter {
        '{' => Some(rest),
        '#' | 'a' | 'i' | 'c' => Some(behind_line(rest)),
        // A label ends at a blank, too, in newer versions.
        ':' | 'b' | 't' | 'T' => Some(
            rest.trim_start_matches([' ', '\t'])
                .trim_start_matches(|c: char| !matches!(c, ';' | '\n' | '}' | ' ' | '\t')),
        ),
        'r' | 'R' => {
            files.reads.push(line(rest));
            Some(behind_line(rest))
        }
        'w' | 'W' => {
            files.writes.push(line(rest));
            Some(behind_line(rest))
        }
        's' => substitution(rest, files),
        'y' => {
            let (delimiter, rest) = delimiter(rest)?;
            behind(behind(rest, delimiter)?, delimiter)
        }
        'q' | 'Q' | 'l' | 'L' => Some(rest.trim_start_matches(|c: char| c.is_ascii_digit() || c == ' ')),
        'd' | 'D' | 'g' | 'G' | 'h' | 'H' | 'n' | 'N' | 'p' | 'P' | 'x' | 'z' | '=' | 'F' => Some(rest),
        _ => None,
    }
}

/// `1,5`, `$`, `/x/I`, `\,x,`, `2~3`, `1,+4`, `!` in front of a command.
fn addresses(script: &str) -> Option<&str> {
    let mut rest = script;
    loop {
        rest = rest.trim_start_matches([' ', '\t', ',', '!', '~', '+', '$']);
        rest = rest.trim_start_matches(|c: char| c.is_ascii_digit());
        if let Some(pattern) = rest.strip_prefix('/') {
            rest = behind(pattern, '/')?.trim_start_matches(['I', 'M']);
        } else if let Some(pattern) = rest.strip_prefix('\\') {
            let (delimiter, pattern) = delimiter(pattern)?;
            rest = behind(pattern, delimiter)?.trim_start_matches(['I', 'M']);
        } else if !rest.starts_with([
            ' ', '\t', ',', '!', '~', '+', '$', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9',
        ]) {
            return Some(rest);
        }
    }
}

/// `/old/new/flags`
fn substitution<'a>(script: &'a str, files: &mut ScriptFiles<'a>) -> Option<&'a str> {
    let (delimiter, rest) = delimiter(script)?;
    let mut rest = behind(behind(rest, delimiter)?, delimiter)?;
    loop {
        let mut characters = rest.chars();
        match characters.next() {
            Some('e') => {
                files.is_opaque = true;
                rest = characters.as_str();
            }
            Some('w') => {
                files.writes.push(line(characters.as_str()));
                return Some(behind_line(rest));
            }
            Some('g' | 'p' | 'i' | 'I' | 'm' | 'M' | '0'..='9') => rest = characters.as_str(),
            Some(_) | None => return Some(rest),
        }
    }
}

fn delimiter(script: &str) -> Option<(char, &str)> {
    let mut characters = script.chars();
    let delimiter = characters.next().filter(|c| !matches!(c, '\n' | '\\'))?;
    Some((delimiter, characters.as_str()))
}

/// What stands behind the next delimiter that is not escaped or in brackets.
fn behind(text: &str, delimiter: char) -> Option<&str> {
    let mut escaped = false;
    for (at, character) in text.char_indices() {
        if escaped {
            escaped = false;
        } else if character == '\\' {
            escaped = true;
        } else if character == delimiter {
            return text.get(at + delimiter.len_utf8()..);
        }
    }
    None
}

/// The file that a command names: the rest of its line.
fn line(rest: &str) -> &str {
    rest.lines().next().unwrap_or_default().trim()
}

fn behind_line(rest: &str) -> &str {
    rest.split_once('\n').map_or("", |(_, after)| after)
}

/// Whether a script of `sed` only prints lines by their numbers: `1,200p`, `5p;9p`, `$p`.
pub(super) fn sed_prints(script: &str) -> bool {
    let is_print = |command: &str| {
        let command = command.trim();
        let addresses = command.strip_suffix(['p', 'q']).unwrap_or("-");
        addresses.bytes().all(|byte| byte.is_ascii_digit() || b",$ ".contains(&byte))
    };
    script.contains('p')
        && script.split([';', '\n']).filter(|command| !command.trim().is_empty()).all(is_print)
}

/// Whether a script of `sed` prints all lines, up to one by its number: `` and `20q`.
pub(super) fn sed_stops(script: &str) -> bool {
    let script = script.trim();
    script.is_empty()
        || script
            .strip_suffix('q')
            .is_some_and(|line| !line.is_empty() && line.bytes().all(|byte| byte.is_ascii_digit()))
}

/// Whether a program of `awk` only prints whole lines by their numbers: `NR>=5 && NR<=9`, `NR==5{print}`, `{print NR": "$0}`.
pub(super) fn awk_prints(program: &str) -> bool {
    // `$1` is a field.
    let is_line = |behind: &str| {
        behind.strip_prefix('0').is_some_and(|rest| !rest.starts_with(|c: char| c.is_ascii_digit()))
    };
    awk::files(program) == ScriptFiles::default()
        && program.split('$').skip(1).all(is_line)
        && program.bytes().all(|byte| b"NRFprintexit0123456789<>=&|{}();, :$\"'\t\\n-.%d".contains(&byte))
}
