//! Rules of other programs that match socket owners: so a sidecar exempts itself from its own interception.

use std::fmt;

/// Such a rule, and where it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ForeignOwner {
    /// The table as its tool names it.
    pub table: String,
    pub chain: String,
    pub owned: Owned,
}

/// The socket owner that a rule matches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Owned {
    Uid(u32),
    /// A group, several UIDs, or a match that cannot be read.
    Somebody,
}

impl fmt::Display for ForeignOwner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "chain {} of table {}", self.chain, self.table)?;
        match self.owned {
            Owned::Uid(uid) => write!(f, " asks whether UID {uid} owns a socket"),
            Owned::Somebody => f.write_str(" asks who owns a socket"),
        }
    }
}
