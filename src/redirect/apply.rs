//! Programs, verifies and removes a plan: by nf_tables, or by iptables where that is wanted or the kernel has nothing else.

use std::fs::{File, TryLockError};
use std::path::PathBuf;

use serde::Serialize;

use super::chains::TABLE;
use super::error::RedirectError;
use super::plan::{Ipv6, RedirectPlan};
use super::restore::{Ipv6Outcome, Programs};
use super::rule::IpFamily;
use super::{iptables, netlink, restore};

/// Which backend is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BackendChoice {
    /// nf_tables, and iptables where the kernel has none.
    Auto,
    Nftables,
    Iptables,
}

/// The backend that was used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum RedirectBackend {
    Nftables,
    Iptables,
}

/// The redirect that is in force, verified.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RedirectInForce {
    pub backend: RedirectBackend,
    /// The program that was used, of iptables.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub program: Option<String>,
    pub ipv6: Ipv6InForce,
    pub chains: Vec<ChainInForce>,
    /// Rules of others that could not be inspected.
    pub warnings: Vec<String>,
}

/// How IPv6 is treated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum Ipv6InForce {
    /// As IPv4.
    Redirected,
    /// The kernel cannot redirect it, so nobody sends it.
    Rejected,
    /// Nothing here speaks it.
    Absent,
}

/// One of our chains.
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
/// Fails if another program's rules could let somebody past, the capability or a kernel feature is missing, or the
/// rules that are read back differ from the plan. Everything programmed is then removed; tables this call did not
/// modify are left untouched.
pub fn program(
    plan: &RedirectPlan,
    choice: BackendChoice,
    directories: &[PathBuf],
) -> Result<RedirectInForce, RedirectError> {
    let _lock = lock_namespace()?;
    let warnings = refuse_foreign(directories)?;
    let in_force = match choice {
        BackendChoice::Nftables => by_nftables(plan)?,
        BackendChoice::Iptables => by_iptables(plan, directories)?,
        BackendChoice::Auto => match by_nftables(plan) {
            Err(lacking @ (RedirectError::NoNftables | RedirectError::Lacking { .. })) => {
                by_iptables(plan, directories).map_err(|error| neither(lacking, error))?
            }
            otherwise => otherwise?,
        },
    };
    // Rules that the other backend still held would apply an older plan as well.
    let replaced = match in_force.backend {
        RedirectBackend::Nftables => remove_from_iptables(directories),
        RedirectBackend::Iptables => remove_from_nftables(),
    };
    or_roll_back(replaced, || remove_all(directories).map(drop))?;
    Ok(RedirectInForce { warnings, ..in_force })
}

/// Verifies that a plan is in force, by the backend that holds anything of ours.
///
/// # Errors
/// Fails if another program's rules could let somebody past, or our rules cannot be read or differ from the plan.
pub fn verify(
    plan: &RedirectPlan,
    choice: BackendChoice,
    directories: &[PathBuf],
) -> Result<RedirectInForce, RedirectError> {
    let warnings = refuse_foreign(directories)?;
    let nftables = match (choice, netlink::read()) {
        (BackendChoice::Iptables, _) | (BackendChoice::Auto, Err(RedirectError::NoNftables)) => None,
        (_, state) => Some(state?),
    };
    if let Some(state) = nftables.filter(|state| state.is_programmed() || choice == BackendChoice::Nftables) {
        let ipv6 = if state.is_without_ipv6() { Ipv6::Rejected } else { Ipv6::Redirected };
        let plan = plan.clone().with_ipv6(ipv6);
        return compared(state.differences(&plan))
            .map(|()| RedirectInForce { warnings, ..nftables_in_force(&plan) });
    }
    for programs in restore::find(directories) {
        match programs.read() {
            Err(RedirectError::NotPermitted) => return Err(RedirectError::NotPermitted),
            Ok(state) if state.is_programmed() => {
                compared(state.differences(plan))?;
                let in_force = iptables_in_force(plan, &programs, state.ipv6());
                return Ok(RedirectInForce { warnings, ..in_force });
            }
            _ => {}
        }
    }
    Err(RedirectError::Differs(Vec::new()))
}

/// Removes our rules from both backends, and returns those that had any.
///
/// # Errors
/// The capability is missing, or a program of iptables fails.
pub fn remove(directories: &[PathBuf]) -> Result<Vec<RedirectBackend>, RedirectError> {
    let _lock = lock_namespace()?;
    remove_all(directories)
}

fn remove_all(directories: &[PathBuf]) -> Result<Vec<RedirectBackend>, RedirectError> {
    let nftables = remove_from_nftables()?.then_some(RedirectBackend::Nftables);
    let iptables = remove_from_iptables(directories)?.then_some(RedirectBackend::Iptables);
    Ok(nftables.into_iter().chain(iptables).collect())
}

/// Locks this network namespace against another `postern redirect`. Two at a time would each remove what the other has
/// programmed, and nothing might be in force in the end.
fn lock_namespace() -> Result<File, RedirectError> {
    let namespace = File::open("/proc/self/ns/net").map_err(RedirectError::Unreadable)?;
    match namespace.try_lock() {
        Ok(()) => Ok(namespace),
        Err(TryLockError::WouldBlock) => Err(RedirectError::Busy),
        Err(TryLockError::Error(error)) => Err(RedirectError::Unreadable(error)),
    }
}

fn by_nftables(plan: &RedirectPlan) -> Result<RedirectInForce, RedirectError> {
    let plan = match netlink::program(plan) {
        Ok(()) => plan.clone(),
        // The kernel may lack only IPv6 nat. Where it lacks IPv4's too, the first error says more.
        Err(lacking @ RedirectError::Lacking { .. }) => {
            let rejecting = plan.clone().with_ipv6(Ipv6::Rejected);
            netlink::program(&rejecting).map_err(|_| lacking)?;
            rejecting
        }
        Err(error) => return Err(error),
    };
    let verified = netlink::read().and_then(|state| compared(state.differences(&plan)));
    or_roll_back(verified, netlink::remove)?;
    Ok(nftables_in_force(&plan))
}

/// Programs the plan by the first variant of iptables that can.
fn by_iptables(plan: &RedirectPlan, directories: &[PathBuf]) -> Result<RedirectInForce, RedirectError> {
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

fn by_programs(plan: &RedirectPlan, programs: &Programs) -> Result<RedirectInForce, RedirectError> {
    // Programs fail to read where the kernel does not have their tables: then there is nothing to roll back.
    programs.read()?;
    let programmed = programs.program(plan).and_then(|ipv6| {
        let state = programs.read()?;
        compared(state.differences(plan))?;
        Ok(ipv6)
    });
    let ipv6 = or_roll_back(programmed, || programs.remove().map(drop))?;
    Ok(iptables_in_force(plan, programs, ipv6))
}

/// Says why neither backend can be used. That iptables is not installed adds nothing to nf_tables' own error.
fn neither(nftables: RedirectError, iptables: RedirectError) -> RedirectError {
    if matches!(iptables, RedirectError::NoPrograms(_)) {
        return nftables;
    }
    RedirectError::Neither { nftables: Box::new(nftables), iptables: Box::new(iptables) }
}

/// Passes the result on; after a failure, removes what was programmed first.
fn or_roll_back<T>(
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

/// Fails if another sidecar exempts itself by a rule of its own; returns what could not be inspected.
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
        // The kernel does not have the tables of a variant whose rules cannot be read.
        let stands = match programs.read() {
            Ok(state) => state.is_programmed(),
            Err(RedirectError::NotPermitted) => return Err(RedirectError::NotPermitted),
            Err(_) => false,
        };
        any |= stands && programs.remove()?;
    }
    Ok(any)
}

fn nftables_in_force(plan: &RedirectPlan) -> RedirectInForce {
    let chain = |chain: super::rule::PlannedChain| ChainInForce {
        table: format!("{} {TABLE}", chain.table.word()),
        chain: chain.name.to_owned(),
        rules: chain.rules.len(),
    };
    RedirectInForce {
        backend: RedirectBackend::Nftables,
        program: None,
        ipv6: plan.ipv6().into(),
        chains: plan.chains().into_iter().map(chain).collect(),
        warnings: Vec::new(),
    }
}

fn iptables_in_force(plan: &RedirectPlan, programs: &Programs, ipv6: Ipv6Outcome) -> RedirectInForce {
    let chains = |family, plan: &RedirectPlan| {
        let word = if family == IpFamily::V4 { "iptables" } else { "ip6tables" };
        let in_force = |chain: iptables::IptablesChain| ChainInForce {
            table: format!("{word} {}", chain.place.table),
            chain: chain.place.chain.to_owned(),
            rules: chain.rules.len(),
        };
        iptables::chains(plan, family).into_iter().map(in_force).collect::<Vec<_>>()
    };
    let v6 = match ipv6 {
        Ipv6Outcome::As(ipv6) => chains(IpFamily::V6, &plan.clone().with_ipv6(ipv6)),
        Ipv6Outcome::Absent => Vec::new(),
    };
    RedirectInForce {
        backend: RedirectBackend::Iptables,
        program: Some(programs.name()),
        ipv6: ipv6.into(),
        chains: [chains(IpFamily::V4, plan), v6].concat(),
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

impl From<Ipv6Outcome> for Ipv6InForce {
    fn from(ipv6: Ipv6Outcome) -> Self {
        match ipv6 {
            Ipv6Outcome::As(ipv6) => ipv6.into(),
            Ipv6Outcome::Absent => Self::Absent,
        }
    }
}
