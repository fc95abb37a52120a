//! The CAs: a root for the cluster, and for each namespace an intermediate that can vouch for what its policies inspect.
//!
//! Agents trust the root alone; a gateway sends its leaf and the intermediate. So what a stolen intermediate can be used
//! for is bounded by its name constraints and its seven days. Reading and writing the Secrets is the controller's:
//! nothing here touches the cluster or a clock.
//!
//! `constraints` says what a namespace's CA may vouch for, `collapse` how that is kept short, `extension` how it
//! stands in a certificate; `root` reads and makes the root, `intermediate` issues below it, `rotation` replaces
//! it.

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

use std::collections::BTreeMap;

pub use constraints::Constraints;
pub use root::Root;

use crate::tls::authority::{AuthorityError as Defect, MintError};

/// The data of a Secret.
type Data = BTreeMap<String, Vec<u8>>;

/// Why a namespace's CA is issued anew.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Due {
    /// There is none, or what is there cannot be read or used.
    Missing,
    /// Its constraints do not cover what policies inspect now, or permit more.
    Constraints,
    /// It has passed the part of its life after which it is replaced.
    Age,
    /// The root is another one, or the roots that agents are to trust are.
    Root,
}

/// What cannot be issued. Nothing of a key is ever in it.
#[derive(Debug, thiserror::Error)]
pub enum AuthorityError {
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
