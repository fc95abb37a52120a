//! Finds out whether the Node that a command would start follows proxy variables: an older one goes around the gateway.

use std::ffi::OsString;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use tokio::process::Command;

use crate::command::gateway::descriptors::as_started;

/// Node answers within 50 ms; something else of that name must not hold up the run.
const PATIENCE: Duration = Duration::from_secs(2);

/// The first minor version of each major one that follows `NODE_USE_ENV_PROXY` in `fetch`, `http` and `https`; every
/// later major version does. Node 22.21.0 has it from 24 (<https://nodejs.org/blog/release/v22.21.0>), where `fetch` alone
/// had it before 24.5 (<https://nodejs.org/api/cli.html#node_use_env_proxy1>).
const FIRST: [(u32, u32); 2] = [(22, 21), (24, 5)];

/// Returns what to say of a Node that goes around the gateway. It is asked in the command's own environment, since it is a
/// program that the agent may have put there.
pub(super) async fn warning(program: &OsString, variables: &[(OsString, OsString)]) -> Option<String> {
    let name = Path::new(program).file_name().and_then(|name| name.to_str());
    let node = if matches!(name, Some("node" | "nodejs")) { program.as_os_str() } else { "node".as_ref() };
    let mut asked = Command::new(node);
    asked.arg("--version").envs(variables.iter().cloned()).kill_on_drop(true);
    asked.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let child = as_started(|| asked.spawn()).ok()?;
    let output = tokio::time::timeout(PATIENCE, child.wait_with_output()).await.ok()?.ok()?;
    let (major, minor) = version(std::str::from_utf8(&output.stdout).ok()?)?;
    (!follows_proxies(major, minor)).then(|| {
        format!(
            "Node {major}.{minor} does not follow proxy variables (22.21, 24.5 and later do): what it runs goes around the \
             gateway, and the policy does not hold it; update Node, or run the command in a network namespace of its own \
             (docs/redirect.md)"
        )
    })
}

/// Reads `v22.21.0`.
fn version(text: &str) -> Option<(u32, u32)> {
    let mut numbers = text.trim().strip_prefix('v')?.split('.').map(str::parse);
    Some((numbers.next()?.ok()?, numbers.next()?.ok()?))
}

fn follows_proxies(major: u32, minor: u32) -> bool {
    let last = FIRST.iter().map(|(major, _)| *major).max();
    last.is_some_and(|last| major > last)
        || FIRST.iter().any(|(first, least)| major == *first && minor >= *least)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read_and_judged() {
        for (text, follows) in [
            ("v20.20.2\n", false),
            ("v22.20.9\n", false),
            ("v22.21.0\n", true),
            ("v23.11.1\n", false),
            ("v24.4.1\n", false),
            ("v24.5.0\n", true),
            ("v25.0.0-nightly\n", true),
        ] {
            let (major, minor) = version(text).unwrap();
            assert_eq!(follows_proxies(major, minor), follows, "{text}");
        }
        for text in ["", "20.1", "v20", "node", "v4294967296.0"] {
            assert_eq!(version(text), None, "{text}");
        }
    }
}
