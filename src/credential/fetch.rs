//! A place that holds a credential's value, and why it may give none.

use std::io;

use zeroize::Zeroizing;

use super::access_key::NoAccessKey;
use crate::problem::is_passing;
use crate::secret::Unfit;

/// A place that holds a value; one file each.
pub(super) trait Fetch: Send + Sync {
    /// The bytes that stand there now, unchecked.
    fn fetch(&self) -> Result<Zeroizing<Vec<u8>>, Unavailable>;

    /// The place, for its reader: a path, or a variable's name.
    fn place(&self) -> String;
}

/// Why a source gives no value.
#[derive(Debug, thiserror::Error)]
pub(super) enum Unavailable {
    #[error("cannot be read ({0})")]
    Unreadable(io::ErrorKind),
    #[error("is not a regular file")]
    NotAFile,
    #[error("is not set")]
    Unset,
    #[error("is needed, but the setting credentials.directory is not written")]
    NoDirectory,
    #[error("{0}")]
    Unfit(#[from] Unfit),
    #[error("{0}")]
    NoAccessKey(#[from] NoAccessKey),
    #[error("holds the placeholder itself, which the agent knows")]
    Placeholder,
}

impl Unavailable {
    /// Why the file could not be read, where it may be there and in order. One that is missing is an answer: nobody has put a
    /// value there yet.
    pub(super) fn passing(&self) -> Option<io::ErrorKind> {
        match self {
            Self::Unreadable(kind) => Some(*kind).filter(|kind| is_passing(*kind)),
            Self::NotAFile
            | Self::Unset
            | Self::NoDirectory
            | Self::Unfit(_)
            | Self::NoAccessKey(_)
            | Self::Placeholder => None,
        }
    }
}

/// A mounted credential where the gateway has no directory of them.
pub(super) struct Nowhere(pub(super) String);

impl Fetch for Nowhere {
    fn fetch(&self) -> Result<Zeroizing<Vec<u8>>, Unavailable> {
        Err(Unavailable::NoDirectory)
    }

    fn place(&self) -> String {
        format!("the mounted file {}", self.0)
    }
}
