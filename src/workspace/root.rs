//! Opens files and directories of the workspace: beneath its root, through no link, and regular files alone.

use std::fs::File;
use std::io::{self, Read as _};
use std::os::fd::OwnedFd;
use std::path::{Component, Path, PathBuf};

use rustix::fs::{Dir, FileType, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;

use super::MOST_FILE;

/// After so many entries of a directory the clock is looked at.
const LOOKS: usize = 1024;

/// An open workspace.
pub(crate) struct Root {
    directory: OwnedFd,
    /// The absolute paths by which agents know it: as it was named, and without links.
    names: Vec<PathBuf>,
}

/// Why a file is not read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unread {
    Missing,
    /// It is no regular file, a link is on its way, it is too long, no text, or may not be read.
    NotText,
}

/// One entry of a directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) name: String,
    pub(super) is_directory: bool,
}

impl Root {
    /// Opens the workspace.
    ///
    /// # Errors
    /// It is no directory that can be read, or the kernel cannot open beneath it.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let directory = rustix::fs::open(path, flags, Mode::empty())?;
        let mut names = vec![std::path::absolute(path)?, path.canonicalize()?];
        names.dedup();
        let root = Self { directory, names };
        root.beneath(Path::new("."), OFlags::DIRECTORY)?;
        Ok(root)
    }

    /// The path beneath the root that an agent means; none where it is elsewhere. `directory` is where relative paths begin,
    /// the root itself where there is none.
    pub(super) fn locate(&self, path: &str, directory: Option<&str>) -> Option<PathBuf> {
        if path.contains('\0') {
            return None;
        }
        let path = Path::new(path);
        let path = match directory.filter(|_| path.is_relative()) {
            Some(directory) => Path::new(directory).join(path),
            None => path.to_owned(),
        };
        let beneath = if path.is_absolute() {
            self.names.iter().find_map(|root| path.strip_prefix(root).ok())?
        } else {
            &path
        };
        let beneath: PathBuf = beneath.components().filter(|part| *part != Component::CurDir).collect();
        Some(if beneath.as_os_str().is_empty() { PathBuf::from(".") } else { beneath })
    }

    /// Reads a text beneath the root.
    pub(super) fn text(&self, path: &Path) -> Result<String, Unread> {
        // Without O_NONBLOCK, opening a FIFO waits for its writer.
        let opened = self.beneath(path, OFlags::NONBLOCK | OFlags::NOCTTY).map_err(unread)?;
        let file = File::from(opened);
        let metadata = file.metadata().map_err(|_| Unread::NotText)?;
        if !metadata.is_file() || metadata.len() > MOST_FILE {
            return Err(Unread::NotText);
        }
        // It may grow meanwhile.
        let mut bytes = Vec::new();
        file.take(MOST_FILE + 1).read_to_end(&mut bytes).map_err(|_| Unread::NotText)?;
        if bytes.len() as u64 > MOST_FILE || memchr::memchr(0, &bytes).is_some() {
            return Err(Unread::NotText);
        }
        // Much faster on long texts than the standard library.
        let text = simdutf8::basic::from_utf8(&bytes).map_err(|_| Unread::NotText)?;
        Ok(text.to_owned())
    }

    /// The directories and regular files in a directory, in the order of their names, at most so many and as far as there is
    /// time; and whether there are more.
    pub(super) fn entries(
        &self,
        path: &Path,
        most: usize,
        is_late: impl Fn() -> bool,
    ) -> Result<(Vec<Entry>, bool), Unread> {
        let opened = self.beneath(path, OFlags::DIRECTORY).map_err(unread)?;
        let read = Dir::read_from(opened).map_err(|_| Unread::NotText)?;
        let (mut entries, mut looked_at, mut has_more) = (Vec::new(), 0, false);
        for entry in read {
            // A directory that ends early by an error ends.
            let Ok(entry) = entry else { break };
            let bytes = entry.file_name().to_bytes();
            if matches!(bytes, b"." | b"..") {
                continue;
            }
            if looked_at == most || (looked_at % LOOKS == LOOKS - 1 && is_late()) {
                has_more = true;
                break;
            }
            looked_at += 1;
            let is_directory = match entry.file_type() {
                FileType::Directory => true,
                FileType::RegularFile | FileType::Unknown => false,
                FileType::Symlink
                | FileType::Fifo
                | FileType::Socket
                | FileType::CharacterDevice
                | FileType::BlockDevice => continue,
            };
            // A name that is no UTF-8 could not be asked for.
            if let Ok(name) = String::from_utf8(bytes.to_vec()) {
                entries.push(Entry { name, is_directory });
            }
        }
        entries.sort_unstable_by(|one: &Entry, other| one.name.cmp(&other.name));
        Ok((entries, has_more))
    }

    fn beneath(&self, path: &Path, flags: OFlags) -> Result<OwnedFd, Errno> {
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
        let flags = flags | OFlags::RDONLY | OFlags::CLOEXEC;
        rustix::fs::openat2(&self.directory, path, flags, Mode::empty(), resolve)
    }
}

fn unread(error: Errno) -> Unread {
    match error {
        Errno::NOENT | Errno::NOTDIR => Unread::Missing,
        _ => Unread::NotText,
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;
    use std::os::unix::net::UnixListener;

    use super::*;

    fn workspace() -> (tempfile::TempDir, Root) {
        let outer = tempfile::tempdir().unwrap();
        let inner = outer.path().join("w");
        fs::create_dir_all(inner.join("src")).unwrap();
        fs::write(outer.path().join("key"), "secret").unwrap();
        fs::write(inner.join("src/a.rs"), "fn a() {}\n").unwrap();
        let root = Root::open(&inner).unwrap();
        (outer, root)
    }

    #[test]
    fn nothing_but_a_short_regular_text_beneath_the_root_is_read() {
        let (outer, root) = workspace();
        let inner = outer.path().join("w");
        symlink(outer.path().join("key"), inner.join("link")).unwrap();
        symlink("src", inner.join("linked")).unwrap();
        symlink("/proc/self/fd/0", inner.join("magic")).unwrap();
        rustix::fs::mknodat(rustix::fs::CWD, inner.join("fifo"), FileType::Fifo, Mode::RUSR, 0).unwrap();
        let _socket = UnixListener::bind(inner.join("socket")).unwrap();
        File::create(inner.join("sparse")).unwrap().set_len(10 << 30).unwrap();
        fs::write(inner.join("exact"), vec![b'a'; usize::try_from(MOST_FILE).unwrap()]).unwrap();
        fs::write(inner.join("binary"), b"a\0b").unwrap();
        fs::write(inner.join("latin"), b"caf\xe9").unwrap();
        let read = |path: &str| root.text(Path::new(path));
        assert_eq!(read("src/a.rs").as_deref(), Ok("fn a() {}\n"));
        assert_eq!(read("src/../src/a.rs").as_deref(), Ok("fn a() {}\n"));
        assert!(read("exact").is_ok());
        for path in [
            "link",
            "linked/a.rs",
            "magic",
            "fifo",
            "socket",
            "sparse",
            "binary",
            "latin",
            "src",
            ".",
            "../key",
        ] {
            assert_eq!(read(path), Err(Unread::NotText), "{path}");
        }
        for path in ["none", "src/a.rs/b", "none/a"] {
            assert_eq!(read(path), Err(Unread::Missing), "{path}");
        }
    }

    #[test]
    fn an_absolute_path_is_known_by_the_name_of_the_root_in_either_form() {
        let (outer, _) = workspace();
        let inner = outer.path().join("w");
        let alias = outer.path().join("alias");
        symlink(&inner, &alias).unwrap();
        let root = Root::open(&alias).unwrap();
        let located = |path: &str, directory| root.locate(path, directory);
        let at = |directory: &Path, rest: &str| directory.join(rest).display().to_string();
        for path in
            [at(&alias, "src/a.rs"), at(&inner, "./src/a.rs"), "src//a.rs".into(), "./src/a.rs".into()]
        {
            assert_eq!(located(&path, None), Some("src/a.rs".into()), "{path}");
        }
        let below = at(&inner, "src");
        assert_eq!(located("a.rs", Some(&below)), Some("src/a.rs".into()));
        assert_eq!(located(&at(&inner, ""), None), Some(".".into()));
        assert_eq!(located("", None), Some(".".into()));
        for outside in
            [outer.path().join("key").display().to_string(), at(&alias, "../w2/x").replace("alias/../", "")]
        {
            assert_eq!(located(&outside, None), None, "{outside}");
        }
        assert_eq!(located("a", Some("/elsewhere")), None);
        assert_eq!(located("a\0b", None), None);
        assert_eq!(root.text(&located(&at(&inner, "../key"), None).unwrap()), Err(Unread::NotText));
    }

    #[test]
    fn a_directory_has_its_files_and_directories_in_order_and_no_links() {
        let (outer, root) = workspace();
        let inner = outer.path().join("w");
        symlink("src", inner.join("linked")).unwrap();
        fs::write(inner.join("b"), "").unwrap();
        fs::write(inner.join("a"), "").unwrap();
        let (entries, more) = root.entries(Path::new("."), 10, || false).unwrap();
        let names: Vec<_> = entries.iter().map(|entry| (entry.name.as_str(), entry.is_directory)).collect();
        assert_eq!((names.as_slice(), more), (&[("a", false), ("b", false), ("src", true)][..], false));
        assert!(root.entries(Path::new("."), 2, || false).unwrap().1);
        assert_eq!(root.entries(Path::new("linked"), 2, || false), Err(Unread::NotText));
        assert_eq!(root.entries(Path::new(".."), 2, || false), Err(Unread::NotText));
        assert_eq!(root.entries(Path::new("a"), 2, || false), Err(Unread::Missing));
    }
}
