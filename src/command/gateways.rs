//! Finds the gateways and runs that answer on this machine, and makes a gateway one that can be found.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::os::unix::fs::{MetadataExt, symlink};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use anyhow::Context;
use serde::{Deserialize, Serialize};
use socket2::{Domain, SockAddr, Socket, Type};

use super::private_directory::{PREFIX, PrivateDirectory};
use crate::config::Settings;
use crate::config::listeners::STATUS_SOCKET;
use crate::config::source;

/// The status socket in a process's private directory, or a link to where it is.
const SOCKET: &str = "status.sock";

/// What says which process a directory belongs to.
const ORIGIN: &str = "origin.json";

/// The longest `origin.json` that is read.
const ORIGIN_BYTES: u64 = 16 << 10;

/// How many entries of a directory are looked at: the temporary one is everybody's.
const MOST_ENTRIES: usize = 10_000;

/// Where the runtime directories of all users are.
const USERS: &str = "/run/user";

/// What started a gateway.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Origin {
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
pub(super) struct Gateway {
    pub(super) socket: PathBuf,
    /// None at a socket that is known by its place alone.
    pub(super) origin: Option<Origin>,
    /// The user, where it is another one.
    pub(super) other_user: Option<u32>,
}

impl Origin {
    /// Of this process, which runs a command.
    pub(super) fn of_run(command: &str) -> Self {
        Self { pid: std::process::id(), command: Some(command.to_owned()), config: None }
    }

    fn of_gateway(config: &Path) -> Self {
        let config = std::path::absolute(config).unwrap_or_else(|_| config.to_owned());
        Self { pid: std::process::id(), command: None, config: Some(config) }
    }

    /// Writes it into the directory of the process, beside its status socket. Answers where that socket is to be.
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
    let socket = Origin::of_gateway(config).write(&place)?;
    match own {
        Some(own) => symlink(own, &socket).with_context(|| format!("cannot make {}", socket.display()))?,
        None => settings.admin.socket = Some(socket),
    }
    Ok(Some(place))
}

/// The gateways that answer: at the usual socket, and those of this user; for root those of every user.
pub(super) fn find() -> Vec<Gateway> {
    let mut found = Vec::new();
    let mut seen = BTreeSet::new();
    let usual = PathBuf::from(STATUS_SOCKET);
    let of_directories = directories().into_iter().flat_map(|parent| in_directory(&parent));
    for gateway in of_directories.chain([Gateway { socket: usual, origin: None, other_user: None }]) {
        let is_new = gateway.socket.canonicalize().is_ok_and(|socket| seen.insert(socket));
        if is_new && connect(&gateway.socket).is_ok() {
            found.push(gateway);
        }
    }
    found
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

fn in_directory(parent: &Path) -> Vec<Gateway> {
    let entries = fs::read_dir(parent).into_iter().flatten().flatten().take(MOST_ENTRIES);
    let named =
        entries.filter(|entry| entry.file_name().to_str().is_some_and(|name| name.starts_with(PREFIX)));
    let mut found: Vec<_> = named.filter_map(|entry| in_private(&entry.path())).collect();
    found.sort_by(|one, other| one.socket.cmp(&other.socket));
    found
}

/// The gateway of a private directory. One that somebody else made is theirs to say anything with, so root alone looks
/// into it.
fn in_private(directory: &Path) -> Option<Gateway> {
    let metadata = fs::symlink_metadata(directory).ok().filter(fs::Metadata::is_dir)?;
    let user = rustix::process::geteuid();
    let other_user = Some(metadata.uid()).filter(|owner| *owner != user.as_raw());
    if other_user.is_some() && !user.is_root() {
        return None;
    }
    let text = source::read_text(&directory.join(ORIGIN), ORIGIN_BYTES).ok()?;
    let origin = serde_json::from_str(&text).ok()?;
    Some(Gateway { socket: directory.join(SOCKET), origin: Some(origin), other_user })
}

impl Gateway {
    /// What it is, for people: `postern run` of claude, process 4711.
    pub(super) fn title(&self) -> String {
        let title = match &self.origin {
            Some(Origin { pid, command: Some(command), .. }) => {
                format!("`postern run` of {command}, process {pid}")
            }
            Some(Origin { pid, config: Some(config), .. }) => {
                format!("`postern gateway` with {}, process {pid}", config.display())
            }
            Some(Origin { pid, .. }) => format!("process {pid}"),
            None => "`postern gateway`".to_owned(),
        };
        match self.other_user {
            Some(user) => format!("{title} of user {user}"),
            None => title,
        }
    }
}
