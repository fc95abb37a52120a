//! The programs of iptables: finds them, feeds them, and reads back what they made.

use std::ffi::OsStr;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use super::error::RedirectError;
use super::iptables;
use super::owners::ForeignOwner;
use super::plan::{Ipv6, RedirectPlan};
use super::rule::IpFamily;
use super::saved::Saved;

/// The names under which distributions install them: what the administrator chose first.
const VARIANTS: [&str; 3] = ["", "-nft", "-legacy"];

/// How long a program waits for another's lock, in seconds.
const LOCK_SECONDS: &str = "10";

/// The programs of one variant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Programs {
    v4: Pair,
    /// Not every image that has iptables has ip6tables.
    v6: Option<Pair>,
}

/// The program that writes rules, and the one that prints them.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Pair {
    restore: PathBuf,
    save: PathBuf,
}

/// The rules of both families; none for IPv6 where its program cannot read any.
#[derive(Debug)]
pub(super) struct IptablesState {
    v4: Saved,
    v6: Option<Saved>,
}

/// How IPv6 was programmed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ipv6Outcome {
    As(Ipv6),
    /// Nothing on this machine speaks it.
    Absent,
}

/// The variants that are in these directories.
pub(super) fn find(directories: &[PathBuf]) -> Vec<Programs> {
    let pair = |program: &str, variant: &str| {
        let restore = locate(directories, &format!("{program}{variant}-restore"))?;
        let save = locate(directories, &format!("{program}{variant}-save"))?;
        Some(Pair { restore, save })
    };
    let programs =
        |variant: &str| Some(Programs { v4: pair("iptables", variant)?, v6: pair("ip6tables", variant) });
    VARIANTS.into_iter().filter_map(programs).collect()
}

fn locate(directories: &[PathBuf], name: &str) -> Option<PathBuf> {
    directories.iter().map(|directory| directory.join(name)).find(|path| path.is_file())
}

impl Programs {
    /// The name of the program that writes rules.
    pub(super) fn name(&self) -> String {
        self.v4.restore.file_name().unwrap_or_default().display().to_string()
    }

    /// Reads what is in force.
    ///
    /// # Errors
    /// The capability is missing, or the program fails.
    pub(super) fn read(&self) -> Result<IptablesState, RedirectError> {
        let v4 = self.v4.save()?;
        Ok(IptablesState { v4, v6: self.v6.as_ref().and_then(|pair| pair.save().ok()) })
    }

    /// Programs a plan in place of our former rules, and returns how IPv6 was programmed. After a failure some rules
    /// may be in force: the caller removes them.
    ///
    /// # Errors
    /// The capability is missing, the kernel lacks what the plan needs, or IPv6 can be neither redirected nor closed.
    pub(super) fn program(&self, plan: &RedirectPlan) -> Result<Ipv6Outcome, RedirectError> {
        let saved = self.v4.save()?;
        self.v4.restore(&iptables::text(plan, IpFamily::V4, &saved.jumps()))?;
        let redirected = self.program_v6(&plan.clone().with_ipv6(Ipv6::Redirected));
        let rejected = || self.program_v6(&plan.clone().with_ipv6(Ipv6::Rejected));
        match redirected.map(|()| Ipv6::Redirected).or_else(|_| rejected().map(|()| Ipv6::Rejected)) {
            Ok(ipv6) => Ok(Ipv6Outcome::As(ipv6)),
            Err(_) if !machine_has_ipv6() => Ok(Ipv6Outcome::Absent),
            Err(error) => Err(RedirectError::Ipv6Open(Box::new(error))),
        }
    }

    fn program_v6(&self, plan: &RedirectPlan) -> Result<(), RedirectError> {
        let pair = self.v6.as_ref().ok_or(RedirectError::NoPrograms("ip6tables-restore"))?;
        let saved = pair.save()?;
        pair.restore(&iptables::text(plan, IpFamily::V6, &saved.jumps()))
    }

    /// Removes our chains from both families, and returns whether there were any.
    ///
    /// # Errors
    /// The capability is missing, or the program fails.
    pub(super) fn remove(&self) -> Result<bool, RedirectError> {
        let mut removed = false;
        for pair in [Some(&self.v4), self.v6.as_ref()].into_iter().flatten() {
            let saved = pair.save()?;
            let ours = saved.ours();
            if !ours.is_empty() {
                pair.restore(&iptables::removal(&ours, &saved.jumps()))?;
                removed = true;
            }
        }
        Ok(removed)
    }
}

impl IptablesState {
    /// Whether any of our chains exists.
    pub(super) fn is_programmed(&self) -> bool {
        self.families().any(|saved| !saved.ours().is_empty())
    }

    /// How IPv6 was programmed, by which of our chains exist.
    pub(super) fn ipv6(&self) -> Ipv6Outcome {
        let ours = self.v6.as_ref().map(Saved::ours).unwrap_or_default();
        if ours.iter().any(|place| place.table == "nat") {
            Ipv6Outcome::As(Ipv6::Redirected)
        } else if !ours.is_empty() || machine_has_ipv6() {
            Ipv6Outcome::As(Ipv6::Rejected)
        } else {
            Ipv6Outcome::Absent
        }
    }

    /// Every difference between our chains and a plan, a sentence each.
    pub(super) fn differences(&self, plan: &RedirectPlan) -> Vec<String> {
        let mut differences = self.v4.differences(plan, IpFamily::V4);
        if let Ipv6Outcome::As(ipv6) = self.ipv6() {
            let plan = plan.clone().with_ipv6(ipv6);
            differences.extend(self.v6.clone().unwrap_or_default().differences(&plan, IpFamily::V6));
        }
        differences
    }

    fn families(&self) -> impl Iterator<Item = &Saved> {
        [Some(&self.v4), self.v6.as_ref()].into_iter().flatten()
    }
}

impl Pair {
    fn save(&self) -> Result<Saved, RedirectError> {
        let output = run(&self.save, &[], "").map_err(|error| cannot_run(&self.save, &error))?;
        let text = succeeded(&self.save, &output)?;
        Ok(Saved::parse(&text))
    }

    fn restore(&self, text: &str) -> Result<(), RedirectError> {
        let output = run(&self.restore, &["--noflush", "-w", LOCK_SECONDS], text)
            .map_err(|error| cannot_run(&self.restore, &error))?;
        succeeded(&self.restore, &output).map(|_| ())
    }
}

/// A rule of another program that matches socket owners in the legacy tables, which nf_tables does not show.
///
/// # Errors
/// Fails with a warning if such tables exist and no program can list them.
pub(super) fn legacy_foreign_owner(directories: &[PathBuf]) -> Result<Option<ForeignOwner>, String> {
    for (list, program) in
        [("/proc/net/ip_tables_names", "iptables"), ("/proc/net/ip6_tables_names", "ip6tables")]
    {
        // Without the kernel module the file does not exist, and without tables it is empty.
        if std::fs::read_to_string(list).unwrap_or_default().trim().is_empty() {
            continue;
        }
        let saved = legacy_save(directories, program).ok_or_else(|| {
            format!(
                "the legacy tables of {program} are in use here, and without {program}-legacy-save nobody can see \
                 whether their rules let somebody past the gateway"
            )
        })?;
        if let Some(owner) = saved.foreign_owner() {
            return Ok(Some(owner));
        }
    }
    Ok(None)
}

fn legacy_save(directories: &[PathBuf], program: &str) -> Option<Saved> {
    let legacy = locate(directories, &format!("{program}-legacy-save")).or_else(|| {
        let plain = locate(directories, &format!("{program}-save"))?;
        let version = run(&plain, &["--version"], "").ok()?;
        (!String::from_utf8_lossy(&version.stdout).contains("nf_tables")).then_some(plain)
    })?;
    let output = run(&legacy, &[], "").ok()?;
    succeeded(&legacy, &output).ok().map(|text| Saved::parse(&text))
}

/// Whether a device other than the loopback has an IPv6 address.
fn machine_has_ipv6() -> bool {
    let addresses = std::fs::read_to_string("/proc/net/if_inet6").unwrap_or_default();
    addresses.lines().any(|line| line.split_whitespace().last() != Some("lo"))
}

fn run(program: &Path, arguments: &[&str], input: &str) -> io::Result<Output> {
    let mut child = Command::new(program)
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    if let Some(mut stdin) = child.stdin.take() {
        match stdin.write_all(input.as_bytes()) {
            // A program that stops reading early says why on its standard error.
            Err(error) if error.kind() != io::ErrorKind::BrokenPipe => return Err(error),
            _ => {}
        }
    }
    child.wait_with_output()
}

/// Returns the standard output of a program that succeeded.
fn succeeded(program: &Path, output: &Output) -> Result<String, RedirectError> {
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let stderr = String::from_utf8_lossy(&output.stderr);
    let unpermitted = ["Permission denied", "Operation not permitted", "you must be root"];
    if unpermitted.iter().any(|words| stderr.contains(words)) {
        return Err(RedirectError::NotPermitted);
    }
    let first = stderr.lines().find(|line| !line.trim().is_empty()).unwrap_or("it does not say why");
    Err(RedirectError::Program { program: shown(program), reason: first.trim().to_owned() })
}

fn cannot_run(program: &Path, error: &io::Error) -> RedirectError {
    RedirectError::Program { program: shown(program), reason: error.to_string() }
}

fn shown(program: &Path) -> String {
    program.file_name().unwrap_or(OsStr::new("iptables")).display().to_string()
}
