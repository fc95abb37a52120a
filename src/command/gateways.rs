//! Finds the gateways and runs that answer on this machine, and makes a gateway one that can be found.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::fs::{MetadataExt, symlink};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use anyhow::Context;
use rustix::fs::{Mode, OFlags};
use rustix::process::Uid;
use serde::{Deserialize, Serialize};
use socket2::{Domain, SockAddr, Socket, Type};

use super::private_directory::{PREFIX, PrivateDirectory};
use crate::config::Settings;
use crate::config::listeners::STATUS_SOCKET;

/// The status socket in a process's private directory, or a link to where it is.
const SOCKET: &str = "status.sock";

/// The file that says which process a directory belongs to.
const ORIGIN: &str = "origin.json";

/// The longest `origin.json` that is read.
const ORIGIN_BYTES: u64 = 16 << 10;

/// How many directories of gateways are looked at, of this user and of others: the temporary one is everybody's.
const MOST_ENTRIES: usize = 10_000;

/// How many gateways are found; this user's come first.
const MOST_GATEWAYS: usize = 100;

/// Where the runtime directories of all users are.
const USERS: &str = "/run/user";

/// The process that started a gateway.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct GatewayOrigin {
    pub(super) pid: u32,
    /// The program that a run started; its arguments may hold secrets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) command: Option<String>,
    /// The settings file of `postern gateway`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) config: Option<PathBuf>,
}

/// A gateway that answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct FoundGateway {
    pub(super) socket: PathBuf,
    /// None at a socket that is known by its place alone.
    pub(super) origin: Option<GatewayOrigin>,
    /// The user, where it is another one.
    pub(super) other_user: Option<u32>,
}

impl GatewayOrigin {
    /// Returns the origin of this process, which runs a command.
    pub(super) fn of_run(command: &str) -> Self {
        Self { pid: std::process::id(), command: Some(command.to_owned()), config: None }
    }

    fn of_gateway(config: &Path) -> Self {
        let config = std::path::absolute(config).unwrap_or_else(|_| config.to_owned());
        Self { pid: std::process::id(), command: None, config: Some(config) }
    }

    /// Writes it into the directory of the process, beside its status socket. Returns the place of that socket.
    pub(super) fn write(&self, place: &PrivateDirectory) -> anyhow::Result<PathBuf> {
        place.write(ORIGIN, &serde_json::to_vec(self)?)?;
        Ok(place.path().join(SOCKET))
    }
}

/// Makes the gateway of these settings one that [`find`] finds: gives it a status socket where it would have none, and
/// leads to the one that it has where that is at a place of its own. What is answered keeps it so.
///
/// # Errors
/// There is no place for the directory, as in a container whose file systems are read-only.
pub(super) fn announce(config: &Path, settings: &mut Settings) -> anyhow::Result<Option<PrivateDirectory>> {
    let usual = Path::new(STATUS_SOCKET);
    let own = settings.admin.socket.as_deref();
    let is_usual = own.map_or_else(|| usual.parent().is_some_and(Path::is_dir), |own| own == usual);
    if is_usual {
        return Ok(None);
    }
    let place = PrivateDirectory::make()?;
    let socket = GatewayOrigin::of_gateway(config).write(&place)?;
    match own {
        Some(own) => symlink(own, &socket).with_context(|| format!("cannot make {}", socket.display()))?,
        None => settings.admin.socket = Some(socket.into()),
    }
    Ok(Some(place))
}

/// The gateways that answer: at the usual socket, and those of this user; for root those of every user, behind its own,
/// which they can neither hide nor rename.
pub(super) fn find() -> Vec<FoundGateway> {
    let user = rustix::process::geteuid();
    let usual = FoundGateway { socket: PathBuf::from(STATUS_SOCKET), origin: None, other_user: None };
    let in_directories = directories().into_iter().flat_map(|parent| in_directory(&parent, user));
    let mut seen = BTreeSet::new();
    in_order(usual, in_directories.collect())
        .into_iter()
        .filter(|gateway| gateway.socket.canonicalize().is_ok_and(|socket| seen.insert(socket)))
        .filter(|gateway| connect(&gateway.socket).is_ok())
        .take(MOST_GATEWAYS)
        .collect()
}

/// Own directories first, since they say what started the gateway, then the usual socket, then those of others.
fn in_order(usual: FoundGateway, in_directories: Vec<FoundGateway>) -> Vec<FoundGateway> {
    let (mut own, others): (Vec<_>, Vec<_>) =
        in_directories.into_iter().partition(|gateway| gateway.other_user.is_none());
    own.push(usual);
    own.extend(others);
    own
}

/// Where [`find`] looks besides the usual socket.
pub(super) fn directories() -> BTreeSet<PathBuf> {
    let user = rustix::process::geteuid();
    let runtime = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from).filter(|path| path.is_absolute());
    let runtime = runtime.unwrap_or_else(|| Path::new(USERS).join(user.as_raw().to_string()));
    let others = user.is_root().then(|| fs::read_dir(USERS).ok()).flatten();
    let others = others.into_iter().flatten().flatten().take(MOST_ENTRIES).map(|entry| entry.path());
    others.chain([runtime, std::env::temp_dir()]).filter(|path| path.is_dir()).collect()
}

/// Connects to a status socket. A socket whose owner does not accept is an error at once, not a wait.
pub(super) fn connect(socket: &Path) -> io::Result<UnixStream> {
    let stream = Socket::new(Domain::UNIX, Type::STREAM, None)?;
    stream.set_nonblocking(true)?;
    stream.connect(&SockAddr::unix(socket)?)?;
    stream.set_nonblocking(false)?;
    Ok(stream.into())
}

fn in_directory(parent: &Path, user: Uid) -> Vec<FoundGateway> {
    let entries = fs::read_dir(parent).into_iter().flatten().flatten();
    // What others put there besides takes none of the places; a name is shown as part of a command to be copied.
    let is_digits = |name: &str| name.bytes().all(|byte| byte.is_ascii_hexdigit());
    let named = entries.filter(|entry| {
        entry.file_name().to_str().and_then(|name| name.strip_prefix(PREFIX)).is_some_and(is_digits)
    });
    let (mut own, mut others) = (Vec::new(), Vec::new());
    for entry in named {
        let Some(owner) = owner(&entry.path()) else { continue };
        let list = if owner == user.as_raw() { &mut own } else { &mut others };
        if list.len() < MOST_ENTRIES {
            list.push(entry.path());
        }
    }
    let mut found: Vec<_> =
        own.into_iter().chain(others).filter_map(|path| in_private(&path, user)).collect();
    found.sort_by(|one, other| one.socket.cmp(&other.socket));
    found
}

fn owner(directory: &Path) -> Option<u32> {
    fs::symlink_metadata(directory).ok().filter(fs::Metadata::is_dir).map(|metadata| metadata.uid())
}

/// The gateway of a private directory. One that somebody else made is theirs to say anything with, so root alone looks
/// into it, and takes from it no socket but theirs.
fn in_private(directory: &Path, user: Uid) -> Option<FoundGateway> {
    let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let opened = File::from(rustix::fs::open(directory, flags, Mode::empty()).ok()?);
    let owner = opened.metadata().ok()?.uid();
    let other_user = Some(owner).filter(|owner| *owner != user.as_raw());
    let socket = directory.join(SOCKET);
    if other_user.is_some() && !(user.is_root() && is_of(&socket, owner)) {
        return None;
    }
    Some(FoundGateway { socket, origin: Some(origin(&opened)?), other_user })
}

/// Whether a file is of this user, wherever links lead.
fn is_of(file: &Path, user: u32) -> bool {
    fs::metadata(file).is_ok_and(|metadata| metadata.uid() == user)
}

/// Reads the origin from a regular file in the directory: no link, and nothing that blocks when opened.
fn origin(directory: &File) -> Option<GatewayOrigin> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = File::from(rustix::fs::openat(directory, ORIGIN, flags, Mode::empty()).ok()?);
    let is_fit = file.metadata().is_ok_and(|metadata| metadata.is_file() && metadata.len() <= ORIGIN_BYTES);
    let mut text = Vec::new();
    file.take(if is_fit { ORIGIN_BYTES } else { 0 }).read_to_end(&mut text).ok()?;
    serde_json::from_slice(&text).ok()
}

impl FoundGateway {
    /// What it is, for people: `postern run` of claude, process 4711. What another user says of theirs has that user in
    /// front.
    pub(super) fn title(&self) -> String {
        let title = match &self.origin {
            Some(GatewayOrigin { pid, command: Some(command), .. }) => {
                format!("`postern run` of {command}, process {pid}")
            }
            Some(GatewayOrigin { pid, config: Some(config), .. }) => {
                format!("`postern gateway` with {}, process {pid}", config.display())
            }
            Some(GatewayOrigin { pid, .. }) => format!("process {pid}"),
            None => "`postern gateway`".to_owned(),
        };
        match self.other_user {
            Some(user) => format!("user {user}: {title}"),
            None => title,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixListener;

    use super::*;

    /// A user that is not the one of these tests, nor root.
    const STRANGER: u32 = 4_000_000_000;

    /// A directory with a socket and an origin.
    fn private(parent: &Path, name: &str) -> (PathBuf, UnixListener) {
        let directory = parent.join(format!("{PREFIX}{name}"));
        fs::create_dir(&directory).unwrap();
        fs::write(directory.join(ORIGIN), format!("{{\"pid\": 7, \"command\": \"{name}\"}}")).unwrap();
        let listener = UnixListener::bind(directory.join(SOCKET)).unwrap();
        (directory, listener)
    }

    fn me() -> Uid {
        rustix::process::geteuid()
    }

    #[test]
    fn a_directory_of_another_user_is_taken_by_root_alone_and_with_their_own_socket_alone() {
        let place = tempfile::tempdir().unwrap();
        let (directory, _listener) = private(place.path(), "a");
        assert_eq!(in_private(&directory, me()).unwrap().other_user, None);
        assert_eq!(in_private(&directory, Uid::from_raw(STRANGER)), None, "nobody else looks into it");

        let link = place.path().join("link.sock");
        symlink(directory.join(SOCKET), &link).unwrap();
        let owner = me().as_raw();
        assert!(is_of(&link, owner) && !is_of(&link, STRANGER), "the socket decides, and no link to it");
        assert!(!is_of(&place.path().join("none"), owner));
    }

    #[test]
    fn own_directories_come_first_and_then_the_usual_socket() {
        let gateway = |name: &str, other_user| FoundGateway { socket: name.into(), origin: None, other_user };
        let all = vec![gateway("a", Some(1)), gateway("b", None), gateway("c", Some(2)), gateway("d", None)];
        let ordered = in_order(gateway("usual", None), all);
        let names: Vec<_> = ordered.iter().map(|gateway| gateway.socket.to_str().unwrap()).collect();
        assert_eq!(names, ["b", "d", "usual", "a", "c"]);
    }

    #[test]
    fn an_origin_is_a_regular_file_of_the_directory() {
        let place = tempfile::tempdir().unwrap();
        let (directory, _listener) = private(place.path(), "a");
        let found = || in_private(&directory, me()).and_then(|gateway| gateway.origin);
        assert_eq!(found().unwrap().pid, 7);
        let file = directory.join(ORIGIN);
        let moved = place.path().join("elsewhere.json");
        fs::rename(&file, &moved).unwrap();
        symlink(&moved, &file).unwrap();
        assert_eq!(found(), None, "a link");
        fs::remove_file(&file).unwrap();
        rustix::fs::mknodat(rustix::fs::CWD, &file, rustix::fs::FileType::Fifo, Mode::RUSR, 0).unwrap();
        assert_eq!(found(), None, "a pipe that nobody writes to");
        fs::remove_file(&file).unwrap();
        fs::write(&file, format!("{{\"pid\": 7}}{}", " ".repeat(ORIGIN_BYTES as usize))).unwrap();
        assert_eq!(found(), None, "too long");
    }

    #[test]
    fn other_entries_of_a_directory_take_no_place() {
        let place = tempfile::tempdir().unwrap();
        (0..=MOST_ENTRIES).for_each(|number| {
            fs::write(place.path().join(format!("x{number}")), "").unwrap();
        });
        let (_directory, _listener) = private(place.path(), "a");
        let _no_digits = private(place.path(), "$(a)");
        assert_eq!(in_directory(place.path(), me()).len(), 1);
    }

    #[test]
    fn what_another_user_says_of_theirs_has_that_user_in_front() {
        let origin = Some(GatewayOrigin::of_run("claude"));
        let gateway = FoundGateway { socket: PathBuf::new(), origin, other_user: Some(1_000) };
        assert!(gateway.title().starts_with("user 1000: `postern run` of claude, process "));
    }
}
