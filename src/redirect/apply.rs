//! Makes a plan true, verifies it, takes it away: by nf_tables, or by iptables where that is wanted or all there is.

use std::fs::{File, TryLockError};
use std::path::PathBuf;

use serde::Serialize;

use super::chains::TABLE;
use super::error::RedirectError;
use super::plan::{Ipv6, Plan};
use super::restore::{Family6, Programs};
use super::rule::Family;
use super::{iptables, netlink, restore};

/// Which backend is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Choice {
    /// nf_tables, and iptables where the kernel has none.
    Auto,
    Nftables,
    Iptables,
}

/// The backend that was used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum Backend {
    Nftables,
    Iptables,
}

/// What stands, verified.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct InForce {
    pub backend: Backend,
    /// The program that was used, of iptables.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub program: Option<String>,
    pub ipv6: Ipv6InForce,
    pub chains: Vec<ChainInForce>,
    /// What could not be looked into.
    pub warnings: Vec<String>,
}

/// What becomes of IPv6.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum Ipv6InForce {
    /// As IPv4.
    Redirected,
    /// The kernel cannot redirect it, so nobody sends it.
    Rejected,
    /// Nothing here speaks it.
    Absent,
}

/// A chain of ours.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ChainInForce {
    /// The table as its tool names it: `inet postern`, `iptables filter`.
    pub table: String,
    pub chain: String,
    pub rules: usize,
}

/// Programs a plan and verifies it. Programs of iptables are looked for in these directories.
///
/// # Errors
/// Another's rules could let somebody past, the capability or a feature of the kernel is missing, or what stands
/// afterwards is not the plan. What was programmed is taken back then; what nothing was changed in stands as before.
pub fn program(plan: &Plan, choice: Choice, directories: &[PathBuf]) -> Result<InForce, RedirectError> {
    let _alone = alone()?;
    let warnings = refuse_foreign(directories)?;
    let in_force = match choice {
        Choice::Nftables => by_nftables(plan)?,
        Choice::Iptables => by_iptables(plan, directories)?,
        Choice::Auto => match by_nftables(plan) {
            Err(lacking @ (RedirectError::NoNftables | RedirectError::Lacking { .. })) => {
                by_iptables(plan, directories).map_err(|error| neither(lacking, error))?
            }
            otherwise => otherwise?,
        },
    };
    // What the other backend held before would judge packets by another plan.
    let replaced = match in_force.backend {
        Backend::Nftables => remove_from_iptables(directories),
        Backend::Iptables => remove_from_nftables(),
    };
    taken_back(replaced, || remove_all(directories).map(drop))?;
    Ok(InForce { warnings, ..in_force })
}

/// Verifies that a plan is in force, by the backend that holds anything of ours.
///
/// # Errors
/// Another's rules could let somebody past, the rules cannot be read, or they are not the plan.
pub fn verify(plan: &Plan, choice: Choice, directories: &[PathBuf]) -> Result<InForce, RedirectError> {
    let warnings = refuse_foreign(directories)?;
    let nftables = match (choice, netlink::read()) {
        (Choice::Iptables, _) | (Choice::Auto, Err(RedirectError::NoNftables)) => None,
        (_, state) => Some(state?),
    };
    if let Some(state) = nftables.filter(|state| state.is_programmed() || choice == Choice::Nftables) {
        let ipv6 = if state.is_without_ipv6() { Ipv6::Rejected } else { Ipv6::Redirected };
        let plan = plan.clone().with_ipv6(ipv6);
        return compared(state.differences(&plan)).map(|()| InForce { warnings, ..nftables_in_force(&plan) });
    }
    for programs in restore::find(directories) {
        match programs.read() {
            Err(RedirectError::NotPermitted) => return Err(RedirectError::NotPermitted),
            Ok(state) if state.is_programmed() => {
                compared(state.differences(plan))?;
                let in_force = iptables_in_force(plan, &programs, state.ipv6());
                return Ok(InForce { warnings, ..in_force });
            }
            _ => {}
        }
    }
    Err(RedirectError::Differs(Vec::new()))
}

/// Removes everything of ours from both backends; answers from which.
///
/// # Errors
/// The capability is missing, or a program of iptables fails.
pub fn remove(directories: &[PathBuf]) -> Result<Vec<Backend>, RedirectError> {
    let _alone = alone()?;
    remove_all(directories)
}

fn remove_all(directories: &[PathBuf]) -> Result<Vec<Backend>, RedirectError> {
    let nftables = remove_from_nftables()?.then_some(Backend::Nftables);
    let iptables = remove_from_iptables(directories)?.then_some(Backend::Iptables);
    Ok(nftables.into_iter().chain(iptables).collect())
}

/// The lock of whoever changes the rules of this network namespace. Two at a time would each take back what the other
/// has programmed, and nothing might stand in the end.
fn alone() -> Result<File, RedirectError> {
    let namespace = File::open("/proc/self/ns/net").map_err(RedirectError::Unreadable)?;
    match namespace.try_lock() {
        Ok(()) => Ok(namespace),
        Err(TryLockError::WouldBlock) => Err(RedirectError::Busy),
        Err(TryLockError::Error(error)) => Err(RedirectError::Unreadable(error)),
    }
}

fn by_nftables(plan: &Plan) -> Result<InForce, RedirectError> {
    let plan = match netlink::program(plan) {
        Ok(()) => plan.clone(),
        // What is lacking may be nat of IPv6; where IPv4 lacks it too, the first refusal says more.
        Err(lacking @ RedirectError::Lacking { .. }) => {
            let rejecting = plan.clone().with_ipv6(Ipv6::Rejected);
            netlink::program(&rejecting).map_err(|_| lacking)?;
            rejecting
        }
        Err(error) => return Err(error),
    };
    let verified = netlink::read().and_then(|state| compared(state.differences(&plan)));
    taken_back(verified, netlink::remove)?;
    Ok(nftables_in_force(&plan))
}

/// The first variant of iptables by which the plan can be programmed.
fn by_iptables(plan: &Plan, directories: &[PathBuf]) -> Result<InForce, RedirectError> {
    let mut first = None;
    for programs in restore::find(directories) {
        match by_programs(plan, &programs) {
            Ok(in_force) => return Ok(in_force),
            Err(error @ (RedirectError::NotPermitted | RedirectError::Remains { .. })) => return Err(error),
            Err(error) => first = first.or(Some(error)),
        }
    }
    Err(first.unwrap_or(RedirectError::NoPrograms("iptables-restore")))
}

fn by_programs(plan: &Plan, programs: &Programs) -> Result<InForce, RedirectError> {
    // Programs that cannot even read are those of tables that this kernel does not have: nothing is there to take back.
    programs.read()?;
    let programmed = programs.program(plan).and_then(|ipv6| {
        let state = programs.read()?;
        compared(state.differences(plan))?;
        Ok(ipv6)
    });
    let ipv6 = taken_back(programmed, || programs.remove().map(drop))?;
    Ok(iptables_in_force(plan, programs, ipv6))
}

/// Why neither backend can be used; programs that are not installed are no news.
fn neither(nftables: RedirectError, iptables: RedirectError) -> RedirectError {
    if matches!(iptables, RedirectError::NoPrograms(_)) {
        return nftables;
    }
    RedirectError::Neither { nftables: Box::new(nftables), iptables: Box::new(iptables) }
}

/// What was done; where it failed, after what stands has been removed.
fn taken_back<T>(
    done: Result<T, RedirectError>,
    remove: impl FnOnce() -> Result<(), RedirectError>,
) -> Result<T, RedirectError> {
    done.map_err(|error| match (&error, remove()) {
        (RedirectError::NotPermitted, _) | (_, Ok(())) => error,
        (_, Err(removal)) => RedirectError::Remains { cause: Box::new(error), removal: Box::new(removal) },
    })
}

fn compared(differences: Vec<String>) -> Result<(), RedirectError> {
    if differences.is_empty() { Ok(()) } else { Err(RedirectError::Differs(differences)) }
}

/// Refuses to stand beside rules by which another sidecar exempts itself; answers what could not be looked into.
fn refuse_foreign(directories: &[PathBuf]) -> Result<Vec<String>, RedirectError> {
    let owner = match netlink::read() {
        Ok(state) => state.foreign_owner(),
        Err(RedirectError::NoNftables) => None,
        Err(error) => return Err(error),
    };
    if let Some(owner) = owner {
        return Err(RedirectError::Foreign(owner));
    }
    match restore::legacy_foreign_owner(directories) {
        Ok(None) => Ok(Vec::new()),
        Ok(Some(owner)) => Err(RedirectError::Foreign(owner)),
        Err(unseen) => Ok(vec![unseen]),
    }
}

fn remove_from_nftables() -> Result<bool, RedirectError> {
    match netlink::read() {
        Ok(state) if state.is_programmed() => netlink::remove().map(|()| true),
        Ok(_) | Err(RedirectError::NoNftables) => Ok(false),
        Err(error) => Err(error),
    }
}

fn remove_from_iptables(directories: &[PathBuf]) -> Result<bool, RedirectError> {
    let mut any = false;
    for programs in restore::find(directories) {
        // A variant whose rules cannot be read is one that this kernel does not have.
        let stands = match programs.read() {
            Ok(state) => state.is_programmed(),
            Err(RedirectError::NotPermitted) => return Err(RedirectError::NotPermitted),
            Err(_) => false,
        };
        any |= stands && programs.remove()?;
    }
    Ok(any)
}

fn nftables_in_force(plan: &Plan) -> InForce {
    let chain = |chain: super::rule::Chain| ChainInForce {
        table: format!("{} {TABLE}", chain.table.word()),
        chain: chain.name.to_owned(),
        rules: chain.rules.len(),
    };
    InForce {
        backend: Backend::Nftables,
        program: None,
        ipv6: plan.ipv6().into(),
        chains: plan.chains().into_iter().map(chain).collect(),
        warnings: Vec::new(),
    }
}

fn iptables_in_force(plan: &Plan, programs: &Programs, ipv6: Family6) -> InForce {
    let chains = |family, plan: &Plan| {
        let word = if family == Family::V4 { "iptables" } else { "ip6tables" };
        let in_force = |chain: iptables::Chain| ChainInForce {
            table: format!("{word} {}", chain.place.table),
            chain: chain.place.chain.to_owned(),
            rules: chain.rules.len(),
        };
        iptables::chains(plan, family).into_iter().map(in_force).collect::<Vec<_>>()
    };
    let v6 = match ipv6 {
        Family6::As(ipv6) => chains(Family::V6, &plan.clone().with_ipv6(ipv6)),
        Family6::Absent => Vec::new(),
    };
    InForce {
        backend: Backend::Iptables,
        program: Some(programs.name()),
        ipv6: ipv6.into(),
        chains: [chains(Family::V4, plan), v6].concat(),
        warnings: Vec::new(),
    }
}

impl From<Ipv6> for Ipv6InForce {
    fn from(ipv6: Ipv6) -> Self {
        match ipv6 {
            Ipv6::Redirected => Self::Redirected,
            Ipv6::Rejected => Self::Rejected,
        }
    }
}

impl From<Family6> for Ipv6InForce {
    fn from(ipv6: Family6) -> Self {
        match ipv6 {
            Family6::As(ipv6) => ipv6.into(),
            Family6::Absent => Self::Absent,
        }
    }
}
