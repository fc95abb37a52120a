//! The command of a run: started, given the signals that are meant for it, and waited for.

use std::ffi::OsString;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;

use anyhow::Context;
use rustix::process::{Pid, Signal, kill_process};
use tokio::process::{Child, Command};
use tokio::signal::unix::{SignalKind, signal};

use crate::command::gateway::descriptors::as_started;

/// The exit status of a shell for a command that cannot be started.
pub(super) const NOT_STARTED: u8 = 127;
/// A shell's exit status is this plus the signal that ended the command.
const SIGNALLED: i32 = 128;

/// The signals that reach this process while the command runs.
pub(super) struct ChildSignals {
    terminate: tokio::signal::unix::Signal,
    hang_up: tokio::signal::unix::Signal,
    /// The terminal sends these to the whole group: the command has its own.
    _interrupt: tokio::signal::unix::Signal,
    _quit: tokio::signal::unix::Signal,
}

impl ChildSignals {
    /// From here on none of them ends this process.
    pub(super) fn listen() -> anyhow::Result<Self> {
        let listen = |kind| signal(kind).context("cannot listen for signals");
        Ok(Self {
            terminate: listen(SignalKind::terminate())?,
            hang_up: listen(SignalKind::hangup())?,
            _interrupt: listen(SignalKind::interrupt())?,
            _quit: listen(SignalKind::quit())?,
        })
    }
}

/// Starts the command with these variables over its environment. It has this process's standard streams.
pub(super) fn start(command: &[OsString], variables: Vec<(OsString, OsString)>) -> std::io::Result<Child> {
    let (program, arguments) = command.split_first().ok_or(std::io::ErrorKind::InvalidInput)?;
    as_started(|| Command::new(program).args(arguments).envs(variables).spawn())
}

/// Waits for the command's end, handing SIGTERM and SIGHUP on to it. Returns the exit status that stands for it.
pub(super) async fn wait(mut child: Child, mut signals: ChildSignals) -> anyhow::Result<u8> {
    let pid = child.id().and_then(|id| Pid::from_raw(i32::try_from(id).ok()?));
    loop {
        let signal = tokio::select! {
            status = child.wait() => return Ok(code(status.context("the command cannot be waited for")?)),
            _ = signals.terminate.recv() => Signal::TERM,
            _ = signals.hang_up.recv() => Signal::HUP,
        };
        // It is not waited for yet, so the number is still its own.
        if let Some(Err(error)) = pid.map(|pid| kill_process(pid, signal)) {
            tracing::warn!(%error, "a signal could not be handed on");
        }
    }
}

fn code(status: ExitStatus) -> u8 {
    let code = status.code().or_else(|| Some(SIGNALLED + status.signal()?));
    code.and_then(|code| u8::try_from(code).ok()).unwrap_or(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_or_a_signal_becomes_what_a_shell_would_answer() {
        assert_eq!(code(ExitStatus::from_raw(0)), 0);
        assert_eq!(code(ExitStatus::from_raw(7 << 8)), 7);
        assert_eq!(code(ExitStatus::from_raw(9)), 137);
        assert_eq!(code(ExitStatus::from_raw(15)), 143);
    }
}
