//! The machine and the process: what holds an agent here, and what it could do against that.

use std::fs;

use super::Finding;
use crate::tls::gate::Surroundings;

/// Capabilities that an agent must not have (capabilities(7)), by their number.
const DANGEROUS: [(u32, &str); 6] =
    [(6, "SETGID"), (7, "SETUID"), (12, "NET_ADMIN"), (13, "NET_RAW"), (19, "SYS_PTRACE"), (21, "SYS_ADMIN")];

pub(super) fn look(surroundings: Surroundings) -> Vec<Finding> {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    vec![kernel(surroundings), privileges(&status), keys(&status)]
}

fn kernel(surroundings: Surroundings) -> Finding {
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let place = if surroundings.kubernetes { "in a pod of Kubernetes" } else { "not in Kubernetes" };
    let os = std::env::consts::OS;
    let text = format!("{os} {} {}, {place}", release.trim(), std::env::consts::ARCH);
    if os == "linux" { Finding::ok("platform", text) } else { Finding::warn("platform", text) }
}

fn privileges(status: &str) -> Finding {
    let Some(effective) = field(status, "CapEff").and_then(|mask| u64::from_str_radix(mask, 16).ok()) else {
        return Finding::warn("privileges", "this platform does not tell a process's capabilities");
    };
    let held: Vec<_> =
        DANGEROUS.iter().filter(|(bit, _)| effective & (1 << bit) != 0).map(|(_, name)| *name).collect();
    if held.is_empty() {
        return Finding::ok(
            "privileges",
            "what is started from here has no capability to undo a wall of the kernel",
        );
    }
    let held = held.join(", ");
    Finding::warn(
        "privileges",
        format!("what is started from here has {held}: enough to undo a wall of the kernel"),
    )
    .remedy("start agents as an ordinary user, or drop these capabilities")
}

fn keys(status: &str) -> Finding {
    let text = if field(status, "Uid").is_some_and(|ids| ids.split_whitespace().next() == Some("0")) {
        "an agent that is root reads every key there is here"
    } else {
        "an agent of the same user can read the key files, the CA's key and the gateway's memory; the placeholder keeps keys out of prompts, logs and what a steered model sends, not from code that looks for them"
    };
    Finding::not_enforced("keys", text).remedy("run the gateway as another user than the agent")
}

/// A line of `/proc/self/status`, without its name.
fn field<'a>(status: &'a str, name: &str) -> Option<&'a str> {
    status.lines().find_map(|line| Some(line.strip_prefix(name)?.strip_prefix(':')?.trim()))
}

#[cfg(test)]
mod tests {
    use super::super::State;
    use super::*;

    #[test]
    fn dangerous_capabilities_are_named() {
        let finding = privileges("Name:\tx\nCapPrm:\t0\nCapEff:\t0000000000003000\n");
        assert_eq!(finding.state, FindingState::Warn);
        assert!(finding.found.contains("NET_ADMIN, NET_RAW:"), "{}", finding.found);
        assert_eq!(privileges("CapEff:\t0000000000000400\n").state, FindingState::Ok);
        assert_eq!(privileges("").state, FindingState::Warn);
    }
}
