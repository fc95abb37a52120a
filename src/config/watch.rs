//! Tells by a handful of stats whether files or directories have changed.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::directory::policy_files;

/// A set of files and directories, and how they were when they were last looked at.
///
/// A path is looked at before it is first read, so that no change in between is missed.
#[derive(Debug, Default)]
pub struct Watched {
    paths: Vec<(PathBuf, Fingerprint)>,
}

/// The state of a file or directory, as cheaply as it can be told. Equal fingerprints mean equal content unless
/// somebody writes the same number of bytes in place within one tick of the file system's clock.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Fingerprint {
    Absent,
    File(FileStamp),
    /// A volume of Kubernetes: its content is what the link `..data` names, and changes with it at once.
    Projected(PathBuf),
    /// Any other directory: its policy files.
    Directory(Vec<(PathBuf, Option<FileStamp>)>),
    /// A directory that cannot be listed now.
    Unlisted,
}

/// The metadata that change with a file's content; those of the file that a link leads to.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct FileStamp {
    device: u64,
    inode: u64,
    length: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

impl Watched {
    /// Looks at the paths as they are now. Paths that do not exist yet are watched too.
    pub fn new(paths: impl IntoIterator<Item = PathBuf>) -> Self {
        let mut watched = Self::default();
        watched.add(paths);
        watched
    }

    /// Looks at further paths as they are now.
    pub fn add(&mut self, paths: impl IntoIterator<Item = PathBuf>) {
        self.paths.extend(paths.into_iter().map(|path| {
            let fingerprint = Fingerprint::take(&path);
            (path, fingerprint)
        }));
    }

    /// Goes on watching what was watched before, so that nothing that could not be read is lost sight of.
    pub fn keep(&mut self, before: Self) {
        let is_new = |path: &PathBuf| self.paths.iter().all(|(watched, _)| watched != path);
        let lost: Vec<_> = before.paths.into_iter().filter(|(path, _)| is_new(path)).collect();
        self.paths.extend(lost);
    }

    /// Whether anything differs from the last look.
    pub fn changed(&mut self) -> bool {
        let mut changed = false;
        for (path, before) in &mut self.paths {
            let now = Fingerprint::take(path);
            if now != *before {
                *before = now;
                changed = true;
            }
        }
        changed
    }
}

impl Fingerprint {
    pub(super) fn take(path: &Path) -> Self {
        let Ok(metadata) = fs::metadata(path) else { return Self::Absent };
        if !metadata.is_dir() {
            return Self::File(FileStamp::of(&metadata));
        }
        if let Ok(target) = fs::read_link(path.join("..data")) {
            return Self::Projected(target);
        }
        let Ok(files) = policy_files(path) else { return Self::Unlisted };
        let stamped = files.into_iter().map(|file| {
            let stamp = fs::metadata(&file).ok().map(|metadata| FileStamp::of(&metadata));
            (file, stamp)
        });
        Self::Directory(stamped.collect())
    }
}

impl FileStamp {
    fn of(metadata: &fs::Metadata) -> Self {
        Self {
            device: metadata.dev(),
            inode: metadata.ino(),
            length: metadata.len(),
            modified: (metadata.mtime(), metadata.mtime_nsec()),
            changed: (metadata.ctime(), metadata.ctime_nsec()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    fn watch(path: &Path) -> Watched {
        Watched::new([path.to_owned()])
    }

    #[test]
    fn a_file_changes_when_it_is_written_replaced_removed_and_made() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("f.yaml");
        let mut watched = watch(&file);
        let mut step = |what: &dyn Fn()| {
            what();
            (watched.changed(), watched.changed())
        };
        assert_eq!(step(&|| ()), (false, false));
        assert_eq!(step(&|| fs::write(&file, "one").unwrap()), (true, false), "made");
        assert_eq!(step(&|| fs::write(&file, "three").unwrap()), (true, false), "written");
        let other = dir.path().join("other");
        fs::write(&other, "three").unwrap();
        assert_eq!(step(&|| fs::rename(&other, &file).unwrap()), (true, false), "replaced");
        assert_eq!(step(&|| fs::remove_file(&file).unwrap()), (true, false), "removed");
    }

    #[test]
    fn what_was_watched_before_stays_watched() {
        let dir = tempfile::tempdir().unwrap();
        let (settings, policy) = (dir.path().join("settings"), dir.path().join("policy"));
        let mut watched = watch(&settings);
        watched.keep(Watched::new([settings.clone(), policy.clone()]));
        assert_eq!(watched.paths.len(), 2);
        fs::write(&policy, "new").unwrap();
        assert!(watched.changed() && !watched.changed());
    }

    #[test]
    fn a_directory_changes_with_its_policy_files_alone() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("a.yaml"), "a").unwrap();
        let mut watched = watch(dir.path());
        fs::write(dir.path().join("notes.txt"), "x").unwrap();
        assert!(!watched.changed());
        fs::write(dir.path().join("a.yaml"), "longer").unwrap();
        assert!(watched.changed());
        fs::write(dir.path().join("b.yml"), "b").unwrap();
        assert!(watched.changed());
        fs::remove_file(dir.path().join("a.yaml")).unwrap();
        assert!(watched.changed());
        assert!(!watched.changed());
    }

    #[test]
    fn a_projected_volume_changes_when_its_data_link_switches() {
        let dir = tempfile::tempdir().unwrap();
        for version in ["..1", "..2"] {
            fs::create_dir(dir.path().join(version)).unwrap();
            fs::write(dir.path().join(version).join("labels"), version).unwrap();
        }
        let data = dir.path().join("..data");
        symlink("..1", &data).unwrap();
        symlink("..data/labels", dir.path().join("labels")).unwrap();
        let mut volume = watch(dir.path());
        let mut key = watch(&dir.path().join("labels"));
        assert!(!volume.changed() && !key.changed());
        symlink("..2", dir.path().join("..data_tmp")).unwrap();
        fs::rename(dir.path().join("..data_tmp"), &data).unwrap();
        assert!(volume.changed() && key.changed());
        assert!(!volume.changed() && !key.changed());
    }
}
