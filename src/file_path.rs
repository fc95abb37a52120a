//! A path that a settings file names: absolute, since a relative one is joined to the directory of that file.

use std::ffi::OsString;
use std::fmt;
use std::ops::Deref;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use serde::de::{Error, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::yaml::read::FILE_PATH;

/// The path of a file or a directory. The empty one, which nobody can write, stands for none.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FilePath(PathBuf);

impl Deref for FilePath {
    type Target = Path;

    fn deref(&self) -> &Path {
        &self.0
    }
}

impl From<PathBuf> for FilePath {
    fn from(path: PathBuf) -> Self {
        Self(path)
    }
}

impl From<&str> for FilePath {
    fn from(path: &str) -> Self {
        Self(path.into())
    }
}

impl From<FilePath> for PathBuf {
    fn from(path: FilePath) -> Self {
        path.0
    }
}

impl AsRef<Path> for FilePath {
    fn as_ref(&self) -> &Path {
        self
    }
}

impl Serialize for FilePath {
    /// As text: a path that is no UTF-8 shows replacement characters rather than failing.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&self.display())
    }
}

impl<'de> Deserialize<'de> for FilePath {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_newtype_struct(FILE_PATH, FilePathVisitor)
    }
}

impl FilePath {
    /// The path that the reader of the settings has joined.
    pub(crate) fn joined(bytes: Vec<u8>) -> Self {
        Self(OsString::from_vec(bytes).into())
    }
}

struct FilePathVisitor;

impl Visitor<'_> for FilePathVisitor {
    type Value = FilePath;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a path")
    }

    fn visit_byte_buf<E: Error>(self, bytes: Vec<u8>) -> Result<FilePath, E> {
        Ok(FilePath::joined(bytes))
    }
}
