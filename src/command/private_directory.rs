//! A directory for one process, which nobody else may look into, and which goes with it.

use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use anyhow::Context;
use aws_lc_rs::rand;

/// A Unix socket's path has 108 bytes at most, of which the file's own name takes some.
const LONGEST: usize = 80;

/// How the names of such directories begin.
pub(super) const PREFIX: &str = "postern-";

/// The directory, mode 0700. Dropping it removes it with all that is in it.
pub(super) struct PrivateDirectory(PathBuf);

impl PrivateDirectory {
    /// Makes `postern-` and random digits below the user's runtime directory, else the temporary one.
    pub(super) fn make() -> anyhow::Result<Self> {
        let name = format!("{PREFIX}{}", &random_hex()?[..16]);
        let path = parent().join(name);
        DirBuilder::new()
            .mode(0o700)
            .create(&path)
            .with_context(|| format!("cannot make the directory {}", path.display()))?;
        Ok(Self(path))
    }

    pub(super) fn path(&self) -> &Path {
        &self.0
    }

    /// Writes a file of mode 0600 whole, over one of that name. Answers where it is.
    pub(super) fn write(&self, name: &str, content: &[u8]) -> anyhow::Result<PathBuf> {
        let path = self.0.join(name);
        let draft = self.0.join(format!("{name}.new"));
        write_own(&draft, content)
            .and_then(|()| fs::rename(&draft, &path))
            .with_context(|| format!("cannot write {}", path.display()))?;
        Ok(path)
    }
}

impl Drop for PrivateDirectory {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_dir_all(&self.0) {
            tracing::warn!(%error, directory = %self.0.display(), "the directory was not removed");
        }
    }
}

/// 64 hex digits from the system's source of randomness.
pub(super) fn random_hex() -> anyhow::Result<String> {
    let mut bytes = [0; 32];
    rand::fill(&mut bytes).ok().context("the system gives no random bytes")?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

fn parent() -> PathBuf {
    let runtime = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
    runtime
        .into_iter()
        .chain([std::env::temp_dir()])
        .find(|path| path.is_absolute() && path.is_dir() && path.as_os_str().len() <= LONGEST)
        .unwrap_or_else(|| PathBuf::from("/tmp"))
}

fn write_own(path: &Path, content: &[u8]) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path)?;
    file.write_all(content)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn nobody_else_may_look_into_it_and_it_goes_with_all_that_is_in_it() {
        let directory = PrivateDirectory::make().unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        let file = directory.write("secret", b"one").unwrap();
        assert_eq!(directory.write("secret", b"two").unwrap(), file);
        assert_eq!((mode(directory.path()), mode(&file)), (0o700, 0o600));
        assert_eq!(fs::read(&file).unwrap(), b"two");
        let path = directory.path().to_owned();
        drop(directory);
        assert!(!path.exists());
    }
}
