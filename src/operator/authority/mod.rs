//! The CAs: a root for the cluster, and for each namespace an intermediate for the hosts that its policies inspect.
//!
//! Agents trust only the root; a gateway sends its leaf and the intermediate. So the use of a stolen intermediate is
//! bounded by its name constraints and its seven days. The controller reads and writes the Secrets: nothing here touches
//! the cluster or a clock.
//!
//! `constraints` computes what a namespace's CA may vouch for, `collapse` keeps that short, `extension` writes it into a
//! certificate; `root` reads and creates the root, `intermediate` issues below it, `rotation` replaces it.

mod certificate;
mod collapse;
mod constraints;
mod extension;
mod intermediate;
mod root;
mod rotation;

#[cfg(test)]
mod attack_tests;
#[cfg(test)]
mod testing;

pub use constraints::CaConstraints;
pub use root::RootCa;

use super::objects::SecretData as Data;
use crate::tls::authority::{AuthorityError as Defect, MintError};

/// Why a namespace's CA is issued.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Due {
    /// There is none, or it cannot be read or used.
    Missing,
    /// Its constraints permit less or more than the hosts that policies inspect now.
    Constraints,
    /// Half of its life has passed.
    Age,
    /// The root, or the set of roots that agents shall trust, has changed.
    Root,
}

/// Why a CA cannot be issued. It never contains parts of a key.
#[derive(Debug, thiserror::Error)]
pub enum IssuingError {
    #[error(
        "the root's Secret has no `{0}`: give it a CA certificate as `tls.crt` (the chain up to the self-signed root \
         after it) and its key as `tls.key`"
    )]
    Absent(&'static str),
    #[error("`{0}` of the root's Secret is not text: expected PEM")]
    NotText(&'static str),
    #[error(
        "no CA can be issued under the root's Secret, `{certificate}` and `{key}` of it: {cause}",
        certificate = slot.0,
        key = slot.1
    )]
    Unusable { slot: Slot, cause: Box<Defect> },
    #[error(
        "`{key}` of the root's Secret cannot be read ({reason}): put certificates of roots there as PEM, or remove it"
    )]
    Unreadable { key: &'static str, reason: String },
    #[error(
        "the root in `tls.crt` is listed in `distrusted.crt`: give another root (where the operator makes it, delete \
         the Secret), then list the old one there"
    )]
    Distrusted,
    #[error(
        "`{subject}` in `{key}` of the root's Secret may have {most} CAs below it, and each namespace's is one: issue it \
         again with a path length of at least {needed} (`basicConstraints = critical, CA:TRUE, pathlen:{needed}`)"
    )]
    PathLength { key: &'static str, subject: String, most: u32, needed: u32 },
    #[error("no root could be made ({0})")]
    Unmakable(rcgen::Error),
    #[error("no CA could be issued to the namespace {namespace}: {cause}")]
    Unissuable { namespace: String, cause: MintError },
    #[error("the CA issued to the namespace {namespace} would not work, and was thrown away: {cause}")]
    Useless { namespace: String, cause: Box<Defect> },
}

/// The keys of a certificate and its private key in the root's Secret.
type Slot = (&'static str, &'static str);
