//! The directory of kept texts: names in it are only ever ids, and no symbolic link in it is followed.

use std::fs::File;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use rustix::fs::{
    self, AtFlags, CWD, Dir, FileType, FlockOperation, Mode, OFlags, Stat, Timespec, Timestamps,
};
use rustix::io::Errno;

use crate::tool_output::evidence_id::EvidenceId;

/// The ending of a text's file.
const WHOLE: &str = "txt";
/// The ending while it is written, behind the process that does it.
const PART: &str = ".part";

/// Everybody may read a text, nobody may change one.
const READ_ONLY: Mode = Mode::RUSR.union(Mode::RGRP).union(Mode::ROTH);

/// A directory by its path: it may be made, or made again, at any time.
pub(super) struct Directory(pub(super) Arc<Path>);

/// A file of the directory, as the system tells of it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Seen {
    pub(super) length: u64,
    pub(super) modified: SystemTime,
}

impl Directory {
    /// Lists the texts that are there, removing what an end in the middle of writing has left. Other files stay, and
    /// count for nothing.
    ///
    /// # Errors
    /// It is not there, is no directory, or may not be read.
    pub(super) fn list(&self) -> io::Result<Vec<(EvidenceId, Seen)>> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let mut files = Vec::new();
        for entry in Dir::read_from(fs::openat(CWD, &*self.0, flags, Mode::empty())?)? {
            let entry = entry?;
            let Some((id, ending)) = entry.file_name().to_str().ok().and_then(|name| name.split_once('.'))
            else {
                continue;
            };
            let Some(id) = EvidenceId::parse(id) else { continue };
            if ending == WHOLE {
                files.extend(self.look(id)?.map(|seen| (id, seen)));
            } else if ending.ends_with(PART) {
                remove_draft(&self.file(id, ending));
            }
        }
        Ok(files)
    }

    /// Looks at a text's file; none where there is no ordinary file.
    pub(super) fn look(&self, id: EvidenceId) -> io::Result<Option<Seen>> {
        match fs::statat(CWD, self.file(id, WHOLE), AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => Ok(seen(&stat)),
            Err(Errno::NOENT) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Reads a file of at most so many bytes; none where there is no ordinary file, or a longer one.
    pub(super) fn read(&self, id: EvidenceId, most: u64) -> io::Result<Option<Vec<u8>>> {
        // What is no file could make an opener wait.
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = match fs::openat(CWD, self.file(id, WHOLE), flags, Mode::empty()) {
            Ok(file) => file,
            Err(Errno::NOENT | Errno::LOOP | Errno::MLINK) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        let Some(Seen { length, .. }) = seen(&fs::fstat(&file)?).filter(|seen| seen.length <= most) else {
            return Ok(None);
        };
        let mut bytes = Vec::with_capacity(usize::try_from(length).unwrap_or_default());
        File::from(file).take(most + 1).read_to_end(&mut bytes)?;
        Ok((bytes.len() as u64 == length).then_some(bytes))
    }

    /// Writes a text under a name of its own, then gives it the one by which it is read: nobody sees a part.
    pub(super) fn write(&self, id: EvidenceId, text: &str) -> io::Result<Seen> {
        let draft = self.file(id, &format!("{}{PART}", std::process::id()));
        let write = || -> io::Result<Seen> {
            let (_locked, seen) = write_draft(&draft, text)?;
            fs::renameat(CWD, &draft, CWD, self.file(id, WHOLE))?;
            Ok(seen)
        };
        let written = match write() {
            // Another gateway that starts may have removed the draft before it was locked.
            Err(error) if error.kind() == io::ErrorKind::NotFound => write(),
            written => written,
        };
        if written.is_err() {
            // It was not made, or is removed at the next start.
            let _ = fs::unlinkat(CWD, &draft, AtFlags::empty());
        }
        written
    }

    /// Sets the time by which a text's age counts after a restart, and returns what the file then is.
    pub(super) fn touch(&self, id: EvidenceId, now: SystemTime) -> io::Result<Option<Seen>> {
        let since = now.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let time = Timespec {
            tv_sec: since.as_secs().try_into().unwrap_or_default(),
            tv_nsec: since.subsec_nanos().into(),
        };
        let times = Timestamps { last_access: time, last_modification: time };
        fs::utimensat(CWD, self.file(id, WHOLE), &times, AtFlags::SYMLINK_NOFOLLOW)?;
        self.look(id)
    }

    pub(super) fn remove(&self, id: EvidenceId) -> io::Result<()> {
        match fs::unlinkat(CWD, self.file(id, WHOLE), AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    fn file(&self, id: EvidenceId, ending: &str) -> PathBuf {
        self.0.join(format!("{id}.{ending}"))
    }
}

/// Returns the file, which is locked until it is dropped.
fn write_draft(draft: &Path, text: &str) -> io::Result<(File, Seen)> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let make = || fs::openat(CWD, draft, flags, READ_ONLY);
    let mut file = File::from(match make() {
        // Of a process before, or of somebody who may write here. Another gateway may remove it meanwhile.
        Err(Errno::EXIST) => match fs::unlinkat(CWD, draft, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => make()?,
            Err(error) => return Err(error.into()),
        },
        made => made?,
    });
    fs::flock(&file, FlockOperation::LockExclusive)?;
    file.write_all(text.as_bytes())?;
    let stat = fs::fstat(&file)?;
    // The process's mask may have taken rights away.
    if Mode::from_raw_mode(stat.st_mode) != READ_ONLY {
        fs::fchmod(&file, READ_ONLY)?;
    }
    let seen = seen(&stat).ok_or_else(|| io::Error::other("what was written is no file"))?;
    Ok((file, seen))
}

/// Removes a draft, but none whose writer lives and so holds its lock. What cannot be removed counts for nothing.
fn remove_draft(draft: &Path) {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let is_locked = fs::openat(CWD, draft, flags, Mode::empty()).is_ok_and(|file| {
        fs::flock(&file, FlockOperation::NonBlockingLockExclusive) == Err(Errno::WOULDBLOCK)
    });
    if !is_locked {
        let _ = fs::unlinkat(CWD, draft, AtFlags::empty());
    }
}

/// The name of a text's file for those who read the directory.
pub(super) fn file_name(id: EvidenceId) -> String {
    format!("{id}.{WHOLE}")
}

/// An ordinary file, as the system tells of it; none for anything else.
fn seen(stat: &Stat) -> Option<Seen> {
    let is_file = FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile;
    let seconds = u64::try_from(stat.st_mtime).unwrap_or_default();
    let nanoseconds = u32::try_from(stat.st_mtime_nsec).unwrap_or_default();
    is_file.then(|| Seen {
        length: u64::try_from(stat.st_size).unwrap_or_default(),
        modified: SystemTime::UNIX_EPOCH + Duration::new(seconds, nanoseconds),
    })
}
