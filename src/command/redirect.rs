//! `postern redirect`: makes the gateway the only way out of this network namespace.

use std::fmt::Write as _;
use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context;
use serde::Serialize;

use super::output;
use crate::cli::{Backend, Output, RedirectArgs};
use crate::config::Settings;
use crate::config::dns::DNS_PORT;
use crate::pod;
use crate::problem::Problem;
use crate::redirect::apply::{self, BackendChoice, Ipv6InForce, RedirectInForce};
use crate::redirect::plan::{GatewayPorts, RedirectPlan};
use crate::redirect::rule::IpFamily;
use crate::redirect::{RedirectError, iptables, nft};

/// The hosts file of a gateway.
const HOSTS: &[u8] = b"127.0.0.1 localhost\n::1 localhost\n";

/// Where administrators' programs are, whatever PATH says.
const SYSTEM_DIRECTORIES: [&str; 3] = ["/usr/local/sbin", "/usr/sbin", "/sbin"];

/// The rules in force, for programs.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct RedirectReport<'a> {
    uid: u32,
    transparent_port: u16,
    dns_port: u16,
    /// The admin port and what was declared.
    open_ports: Vec<u16>,
    #[serde(flatten)]
    in_force: &'a RedirectInForce,
}

/// The rules as text, for programs.
#[derive(Serialize)]
struct RedirectRules<'a> {
    rules: &'a str,
}

/// The rules that were removed.
#[derive(Serialize)]
struct RemovedRules {
    removed: Vec<apply::RedirectBackend>,
}

/// Programs the redirect, or does what is asked instead; exit status 1 where it is not in force afterwards.
pub(super) fn run(args: &RedirectArgs, output: Output) -> anyhow::Result<ExitCode> {
    let directories = directories();
    if args.instead.remove {
        return remove(&directories, output);
    }
    let ports = match &args.config {
        None => GatewayPorts::default(),
        Some(config) => match of_settings(config) {
            Ok(ports) => ports,
            Err(problems) => {
                output::print_problems(output, &problems)?;
                return Ok(ExitCode::FAILURE);
            }
        },
    };
    let uid = args.uid.context("--uid is missing")?;
    let plan = RedirectPlan::new(uid, ports, &args.inbound_ports)?;
    if args.instead.dry_run {
        let text = text(&plan, args.backend);
        output::print(output, &text, &RedirectRules { rules: &text })?;
        return Ok(ExitCode::SUCCESS);
    }
    if let Some(directory) = args.keep_names.as_deref().filter(|_| !args.instead.verify) {
        keep_names(directory)?;
    }
    let choice = choice(args.backend);
    let in_force = if args.instead.verify {
        match apply::verify(&plan, choice, &directories) {
            Err(RedirectError::Differs(differences)) => return differs(&differences, output),
            verified => verified?,
        }
    } else {
        apply::program(&plan, choice, &directories)?
    };
    for warning in &in_force.warnings {
        writeln!(io::stderr(), "postern: warning: {warning}")?;
    }
    let report = RedirectReport::new(&plan, &in_force);
    output::print(output, &report.text(), &report)?;
    Ok(ExitCode::SUCCESS)
}

/// Writes what the gateway resolves names by, under the usual file names, for its container to mount: the name servers
/// as they are now, and a hosts file with the loopback alone, since a pod's aliases are its author's.
///
/// What is there already stays: a container's `restartPolicyRules` can have all of them started again, these too, after
/// agents have written the files that they share.
fn keep_names(directory: &Path) -> anyhow::Result<()> {
    let servers = match fs::read(pod::NAME_SERVERS_FILE) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
        read => read.with_context(|| format!("{} cannot be read", pod::NAME_SERVERS_FILE))?,
    };
    for (file, text) in [(pod::HOSTS_FILE, HOSTS), (pod::NAME_SERVERS_FILE, servers.as_slice())] {
        let kept = directory.join(Path::new(file).file_name().unwrap_or_default());
        if !kept.exists() {
            keep(&kept, text).with_context(|| format!("{} cannot be written", kept.display()))?;
        }
    }
    Ok(())
}

/// Writes a file whole or not at all.
fn keep(file: &Path, text: &[u8]) -> io::Result<()> {
    let unfinished = file.with_extension("unfinished");
    fs::write(&unfinished, text)?;
    fs::rename(unfinished, file)
}

fn remove(directories: &[PathBuf], output: Output) -> anyhow::Result<ExitCode> {
    let removed = RemovedRules { removed: apply::remove(directories)? };
    let text = match removed.removed.as_slice() {
        [] => "nothing was programmed\n".to_owned(),
        backends => backends.iter().fold(String::new(), |mut text, backend| {
            // Writing to a String cannot fail.
            let _ = writeln!(text, "removed from {}", named(*backend));
            text
        }),
    };
    output::print(output, &text, &removed)?;
    Ok(ExitCode::SUCCESS)
}

/// Lists how the rules in force differ from the plan.
fn differs(differences: &[String], output: Output) -> anyhow::Result<ExitCode> {
    let nothing = "nothing is programmed here: run `postern redirect` with NET_ADMIN".to_owned();
    let lines = if differences.is_empty() { &[nothing] } else { differences };
    let problems: Vec<Problem> = lines.iter().map(|difference| Problem::at("", difference.clone())).collect();
    output::print_problems(output, &problems)?;
    Ok(ExitCode::FAILURE)
}

/// The ports of a gateway with these settings. Without a DNS listener questions go to the usual port, where nobody
/// may answer them.
fn of_settings(config: &Path) -> Result<GatewayPorts, Vec<Problem>> {
    // What the gateway takes from its environment is not there, and ports are none of it.
    let settings = Settings::read(config, &|_| None)?;
    let listeners = &settings.listeners;
    let transparent = listeners.transparent.as_ref().ok_or_else(|| {
        let message = "is not listed, and connections would be redirected to nobody: write `transparent: {}`";
        vec![Problem::at("listeners.transparent", message).in_file(config.display().to_string())]
    })?;
    Ok(GatewayPorts {
        transparent: transparent.port,
        dns: listeners.dns.as_ref().map_or(DNS_PORT, |dns| dns.port),
        explicit: listeners.explicit.as_ref().map(|explicit| explicit.address.port()),
        reverse: listeners.reverse.iter().map(|reverse| reverse.address.port()).collect(),
        admin: settings.admin.address.port(),
    })
}

fn choice(backend: Backend) -> BackendChoice {
    match backend {
        Backend::Auto => BackendChoice::Auto,
        Backend::Nftables => BackendChoice::Nftables,
        Backend::Iptables => BackendChoice::Iptables,
    }
}

/// The rules in the syntax of the backend.
fn text(plan: &RedirectPlan, backend: Backend) -> String {
    match backend {
        Backend::Auto | Backend::Nftables => nft::text(plan),
        Backend::Iptables => format!(
            "# iptables-restore --noflush\n{}\n# ip6tables-restore --noflush\n{}",
            iptables::text(plan, IpFamily::V4, &[]),
            iptables::text(plan, IpFamily::V6, &[]),
        ),
    }
}

/// Where programs of iptables may be.
fn directories() -> Vec<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    // A relative or empty entry would be a place that depends on where this is started.
    let of_path = std::env::split_paths(&path).filter(|directory| directory.is_absolute());
    of_path.chain(SYSTEM_DIRECTORIES.map(PathBuf::from)).collect()
}

fn named(backend: apply::RedirectBackend) -> &'static str {
    match backend {
        apply::RedirectBackend::Nftables => "nf_tables",
        apply::RedirectBackend::Iptables => "iptables",
    }
}

impl<'a> RedirectReport<'a> {
    fn new(plan: &RedirectPlan, in_force: &'a RedirectInForce) -> Self {
        Self {
            uid: plan.uid(),
            transparent_port: plan.ports().transparent,
            dns_port: plan.ports().dns,
            open_ports: plan.open_ports().into_iter().collect(),
            in_force,
        }
    }

    fn text(&self) -> String {
        let Self { uid, transparent_port, dns_port, open_ports, in_force } = self;
        let by = match &in_force.program {
            Some(program) => format!("{} ({program})", named(in_force.backend)),
            None => named(in_force.backend).to_owned(),
        };
        let ipv6 = match in_force.ipv6 {
            Ipv6InForce::Redirected => "redirected as IPv4 is",
            Ipv6InForce::Rejected => "rejected, the gateway's too: this kernel cannot redirect it",
            Ipv6InForce::Absent => "not spoken here",
        };
        let open: Vec<String> = open_ports.iter().map(ToString::to_string).collect();
        let mut text = format!(
            "in force     by {by}, read back and compared\n\
             gets out     UID {uid} alone\n\
             TCP          to port {transparent_port}, DNS to port {dns_port}; all else is rejected\n\
             IPv6         {ipv6}\n\
             comes in     TCP to {}\n",
            open.join(", "),
        );
        for chain in &in_force.chains {
            // Writing to a String cannot fail.
            let _ = writeln!(
                text,
                "chain        {} in table {}: {} rule{}",
                chain.chain,
                chain.table,
                chain.rules,
                if chain.rules == 1 { "" } else { "s" }
            );
        }
        text
    }
}
