//! What a simple command does with files and URLs, as its words name them.

use std::borrow::Cow;

use super::super::super::patch;
use super::super::division::{DividedCommand, WordForm, WorkingDirectory};
use super::arguments::{Arguments, Piece, literal_start_of};
use super::computed::ToldPath;
use super::directory::{self, is_device, last, located, within};
use super::script::ScriptFiles;
use super::table::{Role, Trait};
use super::{awk, computed, form, script, setting, url};
use crate::call::{Facts, Kind};

/// The most files and URLs that are taken from the commands of one call.
pub(in super::super) const MOST_NAMED: usize = 4096;

/// The most components that are taken off the names in a diff.
const MOST_STRIPPED: usize = 8;

/// A path, and whether where it begins is told.
#[derive(Debug)]
pub(super) struct PlacedPath {
    pub(super) text: String,
    is_told: bool,
}

/// Gathered from the words of one command, with paths as they are from where it runs.
#[derive(Debug, Default)]
pub(super) struct Effects {
    pub(super) reads: Vec<String>,
    pub(super) writes: Vec<String>,
    /// Those of which the directory is not told, as they are written: some files are the same wherever they stand.
    loose_reads: Vec<String>,
    loose_writes: Vec<String>,
    pub(super) urls: Vec<String>,
    pub(super) moves: bool,
    pub(super) is_opaque: bool,
}

impl Effects {
    /// One fact for each kind that there is; those of files once more for each other directory where they differ. What was
    /// gathered is taken out.
    pub(super) fn facts(&mut self, command: &DividedCommand) -> Vec<Facts<'static>> {
        let (reads, writes) = (std::mem::take(&mut self.reads), std::mem::take(&mut self.writes));
        let Some((directory, others)) = command.directories.split_first() else { return Vec::new() };
        let mut elsewhere = Vec::new();
        for directory in others {
            elsewhere.extend(self.fact(Kind::Read, reads.clone(), directory));
            elsewhere.extend(self.fact(Kind::Write, writes.clone(), directory));
        }
        let loose = [std::mem::take(&mut self.loose_reads), std::mem::take(&mut self.loose_writes)];
        let mut facts = Vec::new();
        for ((kind, paths), loose) in [(Kind::Read, reads), (Kind::Write, writes)].into_iter().zip(loose) {
            if paths.is_empty() && loose.is_empty() {
                continue;
            }
            let mut fact = self.fact(kind, paths, directory).unwrap_or_else(|| Facts::new(kind));
            fact.moves = self.moves && fact.kind == Kind::Write;
            fact.paths.extend(loose.into_iter().map(Cow::Owned));
            facts.push(fact);
        }
        if !self.urls.is_empty() {
            let urls = std::mem::take(&mut self.urls).into_iter().map(Cow::Owned).collect();
            facts.push(Facts { urls, ..Facts::new(Kind::Fetch) });
        }
        for fact in elsewhere {
            if !facts.iter().any(|known| (known.kind, &known.paths) == (fact.kind, &fact.paths)) {
                facts.push(fact);
            }
        }
        facts
    }

    /// A fact about these files, where they are in this directory.
    fn fact(
        &mut self,
        kind: Kind,
        paths: Vec<String>,
        directory: &WorkingDirectory,
    ) -> Option<Facts<'static>> {
        if paths.is_empty() {
            return None;
        }
        let moves = self.moves && kind == Kind::Write;
        let mut place = |path| {
            let (path, is_told) = located(directory, path);
            self.is_opaque |= !is_told;
            Cow::Owned(path)
        };
        let paths = paths.into_iter().map(&mut place).collect();
        Some(Facts { paths, moves, ..Facts::new(kind) })
    }

    /// A path from where it begins. What is written of it is kept where that cannot be told.
    pub(super) fn place(&mut self, base: &WorkingDirectory, path: String) -> PlacedPath {
        let (text, is_told) = located(base, path);
        self.is_opaque |= !is_told;
        PlacedPath { text, is_told }
    }

    /// Adds what a word means by its role.
    pub(super) fn add(&mut self, role: Role, piece: Piece<'_>, arguments: &Arguments<'_>) {
        self.take(role, piece, arguments.base(piece), arguments);
    }

    fn take(&mut self, role: Role, piece: Piece<'_>, base: &WorkingDirectory, arguments: &Arguments<'_>) {
        let Piece { text, form, .. } = piece;
        match role {
            Role::Value | Role::End | Role::First | Role::Exec | Role::Verb | Role::Directory => {}
            // What `find` finds stands below its places, and `xargs` itself says that its input cannot be told.
            Role::Read if text == "{}" && form == WordForm::Computed => {}
            Role::Read | Role::Library => self.path(piece, base, true, false),
            Role::FirstFile => {
                let runs = matches!(arguments.program().operands.first(), Role::Sed | Role::Awk);
                self.take(if runs { Role::Program } else { Role::Read }, piece, base, arguments);
            }
            Role::Write | Role::Into => self.path(piece, base, false, true),
            Role::Both => self.path(piece, base, true, true),
            Role::Archive => {
                let is_written = arguments.has(Trait::Packs);
                // It is opened before the directory is changed, wherever that option stands.
                self.path(piece, &WorkingDirectory::Unsaid, !is_written, is_written);
            }
            Role::Url if arguments.takes_files() => self.path(piece, base, true, false),
            Role::Url | Role::Source | Role::Input | Role::Output => self.remote(role, piece, base),
            Role::Repository | Role::RemoteRead | Role::RemoteWrite => {
                self.remote(role, piece, base);
            }
            Role::NamedRead | Role::NamedWrite => {
                if !url::is_named(text) {
                    self.path(piece, base, role == Role::NamedRead, role == Role::NamedWrite);
                }
            }
            Role::Object => self.object(piece, base),
            Role::Host => self.url(piece, |text| Some(url::of_host(text))),
            Role::Module => self.url(piece, url::of_module),
            Role::Program | Role::Response | Role::Script | Role::List => self.listed(role, piece, base),
            Role::Data | Role::Encoded | Role::Cookie | Role::Form | Role::Pair => {
                self.held(role, piece, base);
            }
            Role::Http => self.http(piece, base),
            Role::Volume => self.volume(piece, base),
            Role::Mount => self.mount(piece, base),
            Role::Member
            | Role::Branch
            | Role::Place
            | Role::Backup
            | Role::Listing
            | Role::Upload
            | Role::Renaming => self.partly(role, piece, base, arguments),
            Role::Startup
            | Role::Scheme
            | Role::Import
            | Role::Sequence
            | Role::Config
            | Role::Transport
            | Role::Sql
            | Role::Code
            | Role::CodeEnd
            | Role::Sed
            | Role::Awk => self.run(role, piece, base),
        }
    }

    /// A file of which more hangs than its own text.
    fn listed(&mut self, role: Role, piece: Piece<'_>, base: &WorkingDirectory) {
        let Piece { text, form, .. } = piece;
        let list = text.strip_prefix('@').filter(|_| role == Role::Response);
        let is_file = role != Role::Script
            || form == WordForm::Computed
            || text.contains('/')
            || url::has_extension(text);
        self.is_opaque |= list.is_some() || role == Role::List;
        self.is_opaque |= role == Role::Program && (text == "-" || is_device(text));
        if is_file {
            self.path(Piece { text: list.unwrap_or(text), ..piece }, base, true, false);
        }
    }

    /// A word that is a path by its form, or of which a part is one.
    fn partly(&mut self, role: Role, piece: Piece<'_>, base: &WorkingDirectory, arguments: &Arguments<'_>) {
        let Piece { text, form, .. } = piece;
        let start = literal_start_of(text, form);
        if role == Role::Member {
            let target = arguments.value(Role::Into);
            let target =
                target.map(|target| directory::moved(arguments.base(target), target.text, target.form));
            self.path(piece, target.as_ref().unwrap_or(base), false, true);
        } else if role == Role::Place {
            self.is_opaque |= url::names_helper(start);
        } else if role == Role::Upload {
            self.is_opaque |= url::is_pattern(text);
            for text in text.trim_start_matches('{').trim_end_matches('}').split(',') {
                self.path(Piece { text, ..piece }, base, true, false);
            }
        } else if role != Role::Renaming {
            let path = match role == Role::Listing {
                true => text.split_once('=').map(|(_, path)| path),
                false => Some(text).filter(|text| match role == Role::Backup {
                    true => text.contains('/'),
                    false => url::is_no_branch(start),
                }),
            };
            if let Some(text) = path {
                self.path(Piece { text, ..piece }, base, false, true);
            }
        } else if arguments.has(Trait::WritesHere) {
            // Names in an archive that is made are no files, those of one that is taken apart are.
            self.is_opaque = true;
            if let Some(text) = script::replacement(text) {
                self.path(Piece { text, ..piece }, base, false, true);
            }
        }
    }

    /// Code, settings and scripts: whether they can be told, and the files that they name.
    fn run(&mut self, role: Role, piece: Piece<'_>, base: &WorkingDirectory) {
        let Piece { text, form, .. } = piece;
        let is_computed = form == WordForm::Computed;
        self.is_opaque |= if role == Role::Startup {
            is_computed || !text.starts_with("robots")
        } else if role == Role::Scheme {
            is_computed || !script::is_remote_scheme(text)
        } else if role == Role::Import {
            is_computed || script::import_runs(text)
        } else if role == Role::Sequence {
            is_computed || text.ends_with(';') || text.contains("#(")
        } else if role == Role::Config {
            setting::is_hidden(literal_start_of(text, form), is_computed)
        } else if role == Role::Transport {
            form != WordForm::Literal || !script::is_plain_ssh(text)
        } else if role == Role::Sql {
            is_computed || script::sql_runs(text)
        } else {
            let is_script = matches!(role, Role::Sed | Role::Awk) && !is_computed;
            if is_script {
                let read = if role == Role::Sed { script::sed_files } else { awk::files };
                self.script(&read(text), piece, base);
            }
            // `s/a/$b/` could end in a command; that it does is rare, and what it is cannot be told.
            !is_script
        };
    }

    /// A path that is read or written; which one is not told by expansions.
    pub(super) fn path(&mut self, piece: Piece<'_>, base: &WorkingDirectory, reads: bool, writes: bool) {
        if piece.form == WordForm::Computed {
            return self.computed(piece, base, reads, writes);
        }
        if matches!(piece.text, "" | "-") || is_device(piece.text) || self.is_full() {
            return;
        }
        let path = piece.text.strip_prefix("file://").filter(|path| path.starts_with('/'));
        let path = self.place(base, path.unwrap_or(piece.text).to_owned());
        if piece.form == WordForm::Pattern
            && let Some(outside) = directory::upward(&path.text)
        {
            let outside = PlacedPath { text: outside, ..path };
            self.located(outside, reads, writes);
        }
        self.located(path, reads, writes);
    }

    /// What a word with expansions tells of a path.
    fn computed(&mut self, piece: Piece<'_>, base: &WorkingDirectory, reads: bool, writes: bool) {
        // What stands in a process substitution is a command of its own.
        if piece.text.starts_with("<(") || piece.text.starts_with(">(") {
            return;
        }
        self.is_opaque = true;
        if let Some(path) = self.told(piece, base)
            && !self.is_full()
        {
            self.located(path, reads, writes);
        }
    }

    /// The path that a word with expansions tells.
    pub(super) fn told(&mut self, piece: Piece<'_>, base: &WorkingDirectory) -> Option<PlacedPath> {
        let told = computed::path(piece.text)?;
        let base = match told {
            ToldPath { is_end: true, .. } => &WorkingDirectory::Computed,
            ToldPath { is_here: true, .. } => &WorkingDirectory::Unsaid,
            ToldPath { .. } => base,
        };
        Some(self.place(base, told.text))
    }

    fn located(&mut self, path: PlacedPath, reads: bool, writes: bool) {
        let (read, written) = match path.is_told {
            true => (&mut self.reads, &mut self.writes),
            false => (&mut self.loose_reads, &mut self.loose_writes),
        };
        if reads && writes {
            read.push(path.text.clone());
            written.push(path.text);
        } else if reads {
            read.push(path.text);
        } else if writes {
            written.push(path.text);
        }
    }

    /// Whether so much is named that nothing more is taken.
    fn is_full(&mut self) -> bool {
        let loose = self.loose_reads.len() + self.loose_writes.len();
        let is_full = self.reads.len() + self.writes.len() + self.urls.len() + loose >= MOST_NAMED;
        self.is_opaque |= is_full;
        is_full
    }

    /// A URL that is asked for. The host of one with an expansion is told if all of it stands before.
    fn url(&mut self, piece: Piece<'_>, read: impl Fn(&str) -> Option<String>) {
        if piece.form == WordForm::Computed {
            self.is_opaque = true;
            let start = literal_start_of(piece.text, piece.form);
            self.urls.extend(url::certain_beginning(start).map(str::to_owned));
        } else if !matches!(piece.text, "" | "-") {
            self.urls.extend(read(piece.text));
        }
    }

    /// `/dev/tcp/host/port`, which the shell itself opens as a connection; false where a target is no such place.
    pub(super) fn connection(&mut self, piece: Piece<'_>) -> bool {
        let start = literal_start_of(piece.text, piece.form);
        let Some((protocol, place)) = ["tcp", "udp"].into_iter().find_map(|protocol| {
            let place = start.strip_prefix("/dev/")?.strip_prefix(protocol)?.strip_prefix('/')?;
            Some((protocol, place))
        }) else {
            return false;
        };
        self.is_opaque |= piece.form == WordForm::Computed;
        match place.split_once('/') {
            Some((host, port)) if !host.is_empty() && !self.is_full() => {
                let (open, close) = if host.contains(':') { ("[", "]") } else { ("", "") };
                let port = if port.is_empty() { String::new() } else { format!(":{port}") };
                self.urls.push(format!("{protocol}://{open}{host}{close}{port}"));
            }
            Some(_) | None => self.is_opaque = true,
        }
        true
    }

    fn remote(&mut self, role: Role, piece: Piece<'_>, base: &WorkingDirectory) {
        let writes = matches!(role, Role::Output | Role::RemoteWrite);
        let text = piece.text;
        if piece.form == WordForm::Computed {
            return self.url(piece, |_| None);
        }
        // `curl` takes braces and brackets as patterns.
        self.is_opaque |= role == Role::Url && url::is_pattern(text);
        if let Some(path) = url::file(text) {
            return self.path(Piece { text: &path, ..piece }, base, !writes, writes);
        }
        let is_place = matches!(role, Role::Repository | Role::RemoteRead | Role::RemoteWrite);
        let may_be_name = matches!(role, Role::Repository | Role::Source);
        // A module that stands in its own name.
        self.is_opaque |= text.get(..5).is_some_and(|start| start.eq_ignore_ascii_case("data:"));
        // `ext::command` names a program.
        self.is_opaque |= role == Role::Repository && url::names_helper(text);
        // `name @ https://…` of pip.
        let place = text.split_once(" @ ").map_or(text, |(_, place)| place.trim());
        let named = url::of_url(place).or_else(|| is_place.then(|| url::of_remote(place)).flatten());
        if let Some(url) = named {
            self.urls.push(url);
        } else if role == Role::Url {
            self.url(piece, |text| Some(format!("http://{text}")));
        } else if !may_be_name || url::looks_like_path(text) {
            // `.[extra]`
            let text = text.split_once('[').filter(|_| may_be_name).map_or(text, |(path, _)| path);
            self.path(Piece { text, ..piece }, base, !writes, writes);
        }
    }

    /// What git shows: a file of a revision, two with `..` between them, or a path where it can be no revision.
    fn object(&mut self, piece: Piece<'_>, base: &WorkingDirectory) {
        let range = piece.text.split_once("..").filter(|(_, to)| url::object_path(to).is_some());
        let (from, to) = range.map_or((piece.text, None), |(from, to)| (from, Some(to)));
        for text in [Some(from), to].into_iter().flatten() {
            let is_path = matches!(text, "." | "..")
                || ["/", "~", "./", "../"].iter().any(|start| text.starts_with(start));
            if let Some(text) = url::object_path(text).or_else(|| is_path.then_some(text)) {
                self.path(Piece { text, ..piece }, base, true, false);
            }
        }
    }

    /// The files of a patch. The text of a here-document may have expansions, a path has them or not.
    pub(super) fn patch(&mut self, text: &str) {
        let Some(paths) = patch::paths(text) else {
            self.is_opaque = true;
            return;
        };
        for path in &paths {
            let form = if path.contains(['$', '`']) { WordForm::Computed } else { WordForm::Literal };
            self.path(Piece { text: path, form, base: 0 }, &WorkingDirectory::Unsaid, false, true);
        }
    }

    /// The files of a diff, by each of their names, without any number of components in front.
    pub(super) fn diff(&mut self, text: &str, base: &WorkingDirectory) {
        let Some(paths) = patch::paths(text) else {
            self.is_opaque = true;
            return;
        };
        for path in &paths {
            let form = if path.contains(['$', '`']) { WordForm::Computed } else { WordForm::Literal };
            let behind = path.match_indices('/').take(MOST_STRIPPED).filter_map(|(at, _)| path.get(at + 1..));
            for text in std::iter::once(path.as_str()).chain(behind) {
                self.path(Piece { text, form, base: 0 }, base, false, true);
            }
        }
        self.writes.sort_unstable();
        self.writes.dedup();
    }

    /// A value that may name a file: `@file`, `name=@file`.
    fn held(&mut self, role: Role, piece: Piece<'_>, base: &WorkingDirectory) {
        if piece.form == WordForm::Computed {
            let start = literal_start_of(piece.text, piece.form);
            let is_told = held_file(role, start).is_none()
                && (if role == Role::Data { !start.is_empty() } else { start.contains('=') })
                && !(role == Role::Form && start.ends_with('='));
            self.is_opaque |= !is_told;
        } else if role == Role::Form {
            for text in &form::files(piece.text) {
                self.path(Piece { text, ..piece }, base, true, false);
            }
        } else if let Some(text) = held_file(role, piece.text) {
            self.path(Piece { text, ..piece }, base, true, false);
        }
    }

    /// `POST`, `example.com/x`, `name=value`, `name@file`, `name:=@file` of `httpie`.
    fn http(&mut self, piece: Piece<'_>, base: &WorkingDirectory) {
        let text = piece.text;
        if self.urls.is_empty() {
            let is_method = text.bytes().all(|byte| byte.is_ascii_uppercase());
            if !is_method {
                let local = text.strip_prefix(':').filter(|_| !text.starts_with("::"));
                match local {
                    Some(port) if port.starts_with('/') => self.urls.push(format!("http://localhost{port}")),
                    Some(port) => self.urls.push(format!("http://localhost:{port}")),
                    None => self.remote(Role::Url, piece, base),
                }
            }
        } else if let Some((name, file)) = text.split_once('@') {
            let is_file = !name.contains('=') || name.ends_with('=');
            if is_file && !name.contains("==") {
                self.path(Piece { text: file, ..piece }, base, true, false);
            }
        }
    }

    /// `/host:/container:ro`; a name is no path.
    fn volume(&mut self, piece: Piece<'_>, base: &WorkingDirectory) {
        let mut parts = piece.text.splitn(3, ':');
        let (host, inside, mode) = (parts.next(), parts.next(), parts.next());
        if let (Some(host), Some(_)) = (host, inside)
            && (host.starts_with(['/', '.', '~']) || piece.form == WordForm::Computed)
        {
            let is_readonly =
                mode.is_some_and(|mode| mode.split(',').any(|word| word.trim_matches('"') == "ro"));
            self.mounted(Piece { text: host, ..piece }, piece.text, base, !is_readonly);
        }
    }

    /// A directory that a container sees. That of the shell, which a command says, is as good as any other; `written` is
    /// the word in which it stands.
    fn mounted(&mut self, piece: Piece<'_>, written: &str, base: &WorkingDirectory, writes: bool) {
        let certain = match piece.form {
            WordForm::Computed => computed::path(piece.text).filter(|_| computed::is_certain(written)),
            WordForm::Literal | WordForm::Pattern => None,
        };
        match certain {
            Some(told) => {
                let base = if told.is_here { &WorkingDirectory::Unsaid } else { base };
                self.path(Piece { text: &told.text, form: WordForm::Literal, ..piece }, base, true, writes);
            }
            None => self.path(piece, base, true, writes),
        }
    }

    /// `type=bind,source=/host,target=/container`, `id=key,src=file`
    fn mount(&mut self, piece: Piece<'_>, base: &WorkingDirectory) {
        let parts = || piece.text.split(',').map(|part| part.trim_matches('"'));
        let has = |wanted: &[&str]| parts().any(|part| wanted.contains(&part));
        let is_secret = parts().any(|part| part.starts_with("id=")) || has(&["type=file", "type=secret"]);
        let is_readonly = is_secret || has(&["ro", "readonly"]);
        let is_file = is_secret || has(&["type=bind"]);
        for part in parts().filter(|_| is_file) {
            if let Some(("source" | "src", text)) = part.split_once('=') {
                self.mounted(Piece { text, ..piece }, piece.text, base, !is_readonly);
            }
        }
    }

    /// The files that a script names.
    fn script(&mut self, files: &ScriptFiles<'_>, piece: Piece<'_>, base: &WorkingDirectory) {
        self.is_opaque |= files.is_opaque;
        for text in &files.reads {
            self.path(Piece { text, form: WordForm::Literal, ..piece }, base, true, false);
        }
        for text in &files.writes {
            self.path(Piece { text, form: WordForm::Literal, ..piece }, base, false, true);
        }
    }

    /// What is put into a directory: the directory, and each file in it by its name.
    pub(super) fn put(&mut self, directory: &PlacedPath, sources: &[&str]) {
        if is_device(&directory.text) {
            return;
        }
        for name in sources.iter().map(|source| last(source)) {
            if matches!(name, "" | "." | ".." | "~" | "-") {
                continue;
            }
            match within(&directory.text, name) {
                Some(text) if !self.is_full() => {
                    self.located(PlacedPath { text, is_told: directory.is_told }, false, true);
                }
                Some(_) | None => self.is_opaque = true,
            }
        }
    }
}

/// The file that a value names.
fn held_file(role: Role, text: &str) -> Option<&str> {
    let value = text.split_once('=').map(|(_, value)| value);
    if role == Role::Data {
        text.strip_prefix('@')
    } else if role == Role::Encoded {
        text.get(text.find(['=', '@'])?..)?.strip_prefix('@')
    } else if role == Role::Cookie {
        Some(text).filter(|_| value.is_none())
    } else if role == Role::Form {
        value?.strip_prefix(['@', '<'])
    } else {
        value.or(Some(text))
    }
}
