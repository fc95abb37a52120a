//! The backend of nf_tables over netlink: needs no program, and changes everything in one transaction.

use std::io;

use super::chains::TABLE;
use super::error::RedirectError;
use super::owners::ForeignOwner;
use super::plan::Plan;

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
use socket::Refused;

/// What nf_tables holds now.
#[derive(Debug)]
pub(super) struct State(ruleset::Ruleset);

/// Reads what is in force.
///
/// # Errors
/// The capability or nf_tables is missing, or the rules cannot be read.
pub(super) fn read() -> Result<State, RedirectError> {
    listing::read(TABLE).map(State).map_err(|source| match kind(&source) {
        Failure::NotPermitted => RedirectError::NotPermitted,
        Failure::Missing => RedirectError::NoNftables,
        Failure::Other => RedirectError::Unreadable(source),
    })
}

/// Replaces our tables by a plan, all at once or not at all.
///
/// # Errors
/// The capability is missing, or the kernel lacks what the plan needs; nothing has changed then.
pub(super) fn program(plan: &Plan) -> Result<(), RedirectError> {
    socket::carry_out(&Batch::program(plan)).map_err(refusal)
}

/// Removes our tables, where there are any.
///
/// # Errors
/// The capability or nf_tables is missing.
pub(super) fn remove() -> Result<(), RedirectError> {
    socket::carry_out(&Batch::remove()).map_err(refusal)
}

impl State {
    /// Whether there is a table of ours.
    pub(super) fn is_programmed(&self) -> bool {
        comparison::is_programmed(&self.0)
    }

    /// Whether our tables are those of a kernel that cannot redirect IPv6.
    pub(super) fn is_without_ipv6(&self) -> bool {
        comparison::is_without_ipv6(&self.0)
    }

    /// Everything in which our tables differ from a plan, in a sentence each.
    pub(super) fn differences(&self, plan: &Plan) -> Vec<String> {
        comparison::differences(plan, &self.0)
    }

    /// A rule of another's that looks at who owns a socket, in a table that sees outgoing packets.
    pub(super) fn foreign_owner(&self) -> Option<ForeignOwner> {
        foreign::owner(&self.0)
    }
}

fn refusal(refused: Refused) -> RedirectError {
    match (kind(&refused.source), refused.at) {
        (Failure::NotPermitted, _) => RedirectError::NotPermitted,
        (Failure::Missing, Some(what)) => RedirectError::Lacking { what, cause: refused.source },
        (Failure::Missing, None) => RedirectError::NoNftables,
        (Failure::Other, what) => RedirectError::Refused {
            what: what.unwrap_or_else(|| "the request".to_owned()),
            cause: refused.source,
        },
    }
}

/// What an error of the kernel means here.
enum Failure {
    NotPermitted,
    /// The kernel has no such thing: no netlink to netfilter, no nf_tables, no chain or expression of this type.
    Missing,
    Other,
}

fn kind(error: &io::Error) -> Failure {
    use rustix::io::Errno;

    let errno = error.raw_os_error().map(Errno::from_raw_os_error);
    match errno {
        Some(Errno::PERM | Errno::ACCESS) => Failure::NotPermitted,
        // EINVAL is how nfnetlink answers a request to list for a subsystem that is not there.
        Some(Errno::PROTONOSUPPORT | Errno::AFNOSUPPORT | Errno::OPNOTSUPP | Errno::NOENT | Errno::INVAL) => {
            Failure::Missing
        }
        _ => Failure::Other,
    }
}
