//! What a simple command does with files and URLs, as its words name them.

use std::borrow::Cow;

use super::super::super::patch;
use super::super::division::{WordForm, WorkingDirectory};
use super::arguments::{Arguments, Piece, literal_start_of};
use super::directory::{is_device, last, located, within};
use super::table::{Role, Trait};
use super::{script, url};
use crate::call::{Facts, Kind};

/// Gathered from the words of one command.
#[derive(Debug, Default)]
pub(super) struct Effects {
    pub(super) reads: Vec<String>,
    pub(super) writes: Vec<String>,
    pub(super) urls: Vec<String>,
    pub(super) moves: bool,
    pub(super) is_opaque: bool,
}

impl Effects {
    /// One fact for each kind.
    pub(super) fn facts(self) -> Vec<Facts<'static>> {
        let owned = |texts: Vec<String>| texts.into_iter().map(Cow::Owned).collect::<Vec<_>>();
        let kinds = [&self.reads, &self.writes, &self.urls];
        let mut facts = Vec::with_capacity(kinds.iter().filter(|texts| !texts.is_empty()).count());
        if !self.reads.is_empty() {
            facts.push(Facts { paths: owned(self.reads), ..Facts::new(Kind::Read) });
        }
        if !self.writes.is_empty() {
            let paths = owned(self.writes);
            facts.push(Facts { paths, moves: self.moves, ..Facts::new(Kind::Write) });
        }
        if !self.urls.is_empty() {
            facts.push(Facts { urls: owned(self.urls), ..Facts::new(Kind::Fetch) });
        }
        facts
    }

    /// Adds what a word means by its role.
    pub(super) fn add(&mut self, role: Role, piece: Piece<'_>, arguments: &Arguments<'_>) {
        self.take(role, piece, arguments.base(piece), arguments);
    }

    fn take(&mut self, role: Role, piece: Piece<'_>, base: &WorkingDirectory, arguments: &Arguments<'_>) {
        let Piece { text, form, .. } = piece;
        match role {
            Role::Value | Role::End | Role::First | Role::Exec | Role::Verb | Role::Directory => {}
            Role::Read | Role::FirstFile => self.path(piece, base, true, false),
            Role::Write | Role::Into => self.path(piece, base, false, true),
            Role::Both => self.path(piece, base, true, true),
            Role::Archive => {
                let is_written = arguments.has(Trait::Packs);
                // It is opened before the directory is changed, wherever that option stands.
                self.path(piece, arguments.directory, !is_written, is_written);
            }
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
            Role::Script => {
                if form == WordForm::Computed || text.contains('/') || url::has_extension(text) {
                    self.path(piece, base, true, false);
                }
            }
            Role::List => {
                self.path(piece, base, true, false);
                self.is_opaque = true;
            }
            Role::Data | Role::Encoded | Role::Cookie | Role::Form | Role::Pair => {
                self.held(role, piece, base);
            }
            Role::Http => self.http(piece, base),
            Role::Volume => self.volume(piece, base),
            Role::Mount => self.mount(piece, base),
            Role::Config => self.is_opaque |= script::config_runs(text),
            Role::Transport => self.is_opaque |= form != WordForm::Literal || !script::is_plain_ssh(text),
            Role::Sql => self.is_opaque |= form == WordForm::Computed || script::sql_runs(text),
            Role::Code | Role::CodeEnd => self.is_opaque = true,
            Role::Sed => self.sed(piece, base),
            Role::Awk => self.is_opaque |= form == WordForm::Computed || script::awk_runs(text),
        }
    }

    /// A path that is read or written; which one is not told by expansions.
    pub(super) fn path(&mut self, piece: Piece<'_>, base: &WorkingDirectory, reads: bool, writes: bool) {
        if piece.form == WordForm::Computed {
            // What stands in a process substitution is a command of its own.
            self.is_opaque |= !piece.text.starts_with("<(") && !piece.text.starts_with(">(");
            return;
        }
        if matches!(piece.text, "" | "-") || is_device(piece.text) {
            return;
        }
        let path = piece.text.strip_prefix("file://").filter(|path| path.starts_with('/'));
        let Some(path) = located(base, path.unwrap_or(piece.text)) else {
            self.is_opaque = true;
            return;
        };
        if reads && writes {
            self.reads.push(path.clone());
            self.writes.push(path);
        } else if reads {
            self.reads.push(path);
        } else if writes {
            self.writes.push(path);
        }
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

    fn remote(&mut self, role: Role, piece: Piece<'_>, base: &WorkingDirectory) {
        let writes = matches!(role, Role::Output | Role::RemoteWrite);
        let text = piece.text;
        if piece.form == WordForm::Computed {
            return self.url(piece, |_| None);
        }
        if let Some(path) = url::file(text) {
            return self.path(Piece { text: path, ..piece }, base, !writes, writes);
        }
        let is_place = matches!(role, Role::Repository | Role::RemoteRead | Role::RemoteWrite);
        let may_be_name = matches!(role, Role::Repository | Role::Source);
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
    pub(super) fn patch(&mut self, text: &str, base: &WorkingDirectory) {
        let Some(paths) = patch::paths(text) else {
            self.is_opaque = true;
            return;
        };
        for path in &paths {
            let form = if path.contains(['$', '`']) { WordForm::Computed } else { WordForm::Literal };
            self.path(Piece { text: path, form, base: 0 }, base, false, true);
        }
    }

    /// A value that may name a file: `@file`, `name=@file`.
    fn held(&mut self, role: Role, piece: Piece<'_>, base: &WorkingDirectory) {
        if piece.form == WordForm::Computed {
            let start = literal_start_of(piece.text, piece.form);
            let is_told = held_file(role, start).is_none()
                && (if role == Role::Data { !start.is_empty() } else { start.contains('=') })
                && !(role == Role::Form && start.ends_with('='));
            self.is_opaque |= !is_told;
        } else if let Some(files) = held_file(role, piece.text) {
            let is_form = role == Role::Form;
            let files = files.split(';').next().filter(|_| is_form).unwrap_or(files);
            for text in files.split(|c| is_form && c == ',') {
                self.path(Piece { text, ..piece }, base, true, false);
            }
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
            let is_readonly = mode.is_some_and(|mode| mode.split(',').any(|word| word == "ro"));
            self.path(Piece { text: host, ..piece }, base, true, !is_readonly);
        }
    }

    /// `type=bind,source=/host,target=/container`, `id=key,src=file`
    fn mount(&mut self, piece: Piece<'_>, base: &WorkingDirectory) {
        let has = |wanted: &[&str]| piece.text.split(',').any(|part| wanted.contains(&part));
        let is_secret = piece.text.starts_with("id=") || has(&["type=file", "type=secret"]);
        let is_readonly = is_secret || has(&["ro", "readonly"]);
        let is_file = is_secret || has(&["type=bind"]);
        for part in piece.text.split(',').filter(|_| is_file) {
            if let Some(("source" | "src", text)) = part.split_once('=') {
                self.path(Piece { text, ..piece }, base, true, !is_readonly);
            }
        }
    }

    fn sed(&mut self, piece: Piece<'_>, base: &WorkingDirectory) {
        if piece.form == WordForm::Computed {
            // `s/a/$b/` could end in a command; that it does is rare, and what it is cannot be told.
            self.is_opaque = true;
            return;
        }
        let files = script::sed_files(piece.text);
        self.is_opaque |= files.is_opaque;
        for text in files.reads {
            self.path(Piece { text, form: WordForm::Literal, ..piece }, base, true, false);
        }
        for text in files.writes {
            self.path(Piece { text, form: WordForm::Literal, ..piece }, base, false, true);
        }
    }

    /// What is put into a directory: the directory, and each file in it by its name.
    pub(super) fn put(&mut self, directory: &str, sources: &[&str]) {
        if is_device(directory) {
            return;
        }
        for name in sources.iter().map(|source| last(source)) {
            if matches!(name, "" | "." | ".." | "~" | "-") {
                continue;
            }
            match within(directory, name) {
                Some(path) => self.writes.push(path),
                None => self.is_opaque = true,
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
