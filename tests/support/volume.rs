//! A volume as kubelet lays out a ConfigMap, a Secret or the downward API, and as it replaces one version by the next.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

/// A directory in which each key is a link through `..data` to the version in force.
pub(crate) struct Volume {
    path: PathBuf,
    version: u32,
}

impl Volume {
    /// A volume with these keys.
    pub(crate) fn new(path: &Path, keys: &[(&str, &[u8])]) -> Self {
        fs::create_dir(path).unwrap();
        let mut volume = Self { path: path.to_owned(), version: 0 };
        volume.publish(keys);
        volume
    }

    /// Replaces all keys at once.
    pub(crate) fn publish(&mut self, keys: &[(&str, &[u8])]) {
        let before = self.directory();
        self.version += 1;
        fs::create_dir(self.directory()).unwrap();
        keys.iter().for_each(|(key, content)| fs::write(self.directory().join(key), content).unwrap());
        let (link, data) = (self.path.join("..data_tmp"), self.path.join("..data"));
        symlink(self.directory().file_name().unwrap(), &link).unwrap();
        fs::rename(link, data).unwrap();
        for entry in fs::read_dir(&self.path).unwrap().map(|entry| entry.unwrap().path()) {
            if !entry.exists() {
                fs::remove_file(entry).unwrap();
            }
        }
        for key in keys.iter().map(|(key, _)| self.path.join(key)).filter(|key| !key.is_symlink()) {
            symlink(Path::new("..data").join(key.file_name().unwrap()), key).unwrap();
        }
        if self.version > 1 {
            fs::remove_dir_all(before).unwrap();
        }
    }

    fn directory(&self) -> PathBuf {
        self.path.join(format!("..2026_11_22_{}", self.version))
    }
}
