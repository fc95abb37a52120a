//! The nf_tables backend over netlink: needs no program, and changes everything in one transaction.

use std::io;

use super::chains::TABLE;
use super::error::RedirectError;
use super::owners::ForeignOwner;
use super::plan::RedirectPlan;

mod attribute;
mod comparison;
mod compile;
mod expression;
mod foreign;
mod listing;
mod message;
mod ruleset;
mod socket;

use message::Batch;
use socket::BatchRefused;

/// The rules that nf_tables holds now.
#[derive(Debug)]
pub(super) struct NftablesState(ruleset::Ruleset);

/// Reads what is in force.
///
/// # Errors
/// The capability or nf_tables is missing, or the rules cannot be read.
pub(super) fn read() -> Result<NftablesState, RedirectError> {
    listing::read(TABLE).map(NftablesState).map_err(|source| match kind(&source) {
        KernelFailure::NotPermitted => RedirectError::NotPermitted,
        KernelFailure::Missing => RedirectError::NoNftables,
        KernelFailure::Other => RedirectError::Unreadable(source),
    })
}

/// Replaces our tables by a plan, all at once or not at all.
///
/// # Errors
/// The capability is missing, or the kernel lacks what the plan needs; nothing has changed then.
pub(super) fn program(plan: &RedirectPlan) -> Result<(), RedirectError> {
    socket::carry_out(&Batch::program(plan)).map_err(refusal)
}

/// Removes our tables, where there are any.
///
/// # Errors
/// The capability or nf_tables is missing.
pub(super) fn remove() -> Result<(), RedirectError> {
    socket::carry_out(&Batch::remove()).map_err(refusal)
}

impl NftablesState {
    /// Whether one of our tables exists.
    pub(super) fn is_programmed(&self) -> bool {
        comparison::is_programmed(&self.0)
    }

    /// Whether our tables are those of a kernel that cannot redirect IPv6.
    pub(super) fn is_without_ipv6(&self) -> bool {
        comparison::is_without_ipv6(&self.0)
    }

    /// Every difference between our tables and a plan, a sentence each.
    pub(super) fn differences(&self, plan: &RedirectPlan) -> Vec<String> {
        comparison::differences(plan, &self.0)
    }

    /// A rule of another program that matches socket owners, in a table that sees outgoing packets.
    pub(super) fn foreign_owner(&self) -> Option<ForeignOwner> {
        foreign::owner(&self.0)
    }
}

fn refusal(refused: BatchRefused) -> RedirectError {
    match (kind(&refused.source), refused.at) {
        (KernelFailure::NotPermitted, _) => RedirectError::NotPermitted,
        (KernelFailure::Missing, Some(what)) => RedirectError::Lacking { what, cause: refused.source },
        (KernelFailure::Missing, None) => RedirectError::NoNftables,
        (KernelFailure::Other, what) => RedirectError::Refused {
            what: what.unwrap_or_else(|| "the request".to_owned()),
            cause: refused.source,
        },
    }
}

/// The meaning of a kernel error.
enum KernelFailure {
    NotPermitted,
    /// The kernel has no such thing: no netlink to netfilter, no nf_tables, no chain or expression of this type.
    Missing,
    Other,
}

fn kind(error: &io::Error) -> KernelFailure {
    use rustix::io::Errno;

    let errno = error.raw_os_error().map(Errno::from_raw_os_error);
    match errno {
        Some(Errno::PERM | Errno::ACCESS) => KernelFailure::NotPermitted,
        // EINVAL is how nfnetlink answers a request to list for a subsystem that is not there.
        Some(Errno::PROTONOSUPPORT | Errno::AFNOSUPPORT | Errno::OPNOTSUPP | Errno::NOENT | Errno::INVAL) => {
            KernelFailure::Missing
        }
        _ => KernelFailure::Other,
    }
}
