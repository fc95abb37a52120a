//! `postern gateway`: the sidecar's own command.

mod addresses;
pub(crate) mod descriptors;
mod first_settings;
mod health;
mod kept_evidence;
mod kept_ledger;
mod password;
mod redirect_proof;
mod reload;
pub(crate) mod running;
mod running_mark;
mod search_domains;
pub(crate) mod sinks;
mod snapshot;
mod sockets;
mod trusted_roots;
mod unreadable;

use std::path::Path;
use std::process::ExitCode;

use anyhow::Context;
use tokio::signal::unix::{Signal, SignalKind, signal};

use super::check::Checked;
use super::private_directory::PrivateDirectory;
use super::{check, gateways, output};
use crate::cli::{GatewayArgs, Output};
use crate::ledger::NamedSink;
use crate::ledger::stdout::JsonLines;
use crate::telemetry::log;
use running::Running;
use sinks::EventSinks;

/// Runs until SIGTERM or SIGINT; what is under way then has `shutdown.grace` to end.
pub(crate) fn run(args: &GatewayArgs, output: Output) -> anyhow::Result<ExitCode> {
    if args.check {
        return check::run(&args.config, output);
    }
    log::start(log::DEFAULT_LEVEL);
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let code = runtime.block_on(serve(&args.config, output));
    // A name that is still being resolved must not hold up the exit.
    runtime.shutdown_background();
    code
}

async fn serve(config: &Path, output: Output) -> anyhow::Result<ExitCode> {
    // Before the gateway can be seen: a signal that nobody listens for ends the process.
    let mut signals = GatewaySignals::new()?;
    let (watched, checked) = tokio::select! {
        read = first_settings::read(config) => read,
        () = signals.stops() => return Ok(ExitCode::SUCCESS),
    };
    let mut checked = match checked {
        Ok(checked) => checked,
        Err(problems) => {
            output::print_problems(output, &problems)?;
            return Ok(ExitCode::FAILURE);
        }
    };
    log::write_as(checked.settings.log.format);
    let _announced = announce(config, &mut checked);
    let stdout = checked.settings.events.stdout.then(JsonLines::stdout).transpose()?;
    let sinks = stdout.map(|stdout| NamedSink::blocking("stdout", stdout)).into_iter().collect();
    let sinks = EventSinks::with_exporters_of_environment(sinks);
    let sinks = match sinks.with_ledger(checked.settings.ledger.as_ref()) {
        Ok(sinks) => sinks,
        Err(problem) => {
            output::print_problems(output, &[problem])?;
            return Ok(ExitCode::FAILURE);
        }
    };
    let running = match Running::start(config, checked, watched, sinks).await {
        Ok(running) => running,
        Err(problems) => {
            output::print_problems(output, &problems)?;
            return Ok(ExitCode::FAILURE);
        }
    };
    let drained = serve_until_stopped(&running, &mut signals).await;
    Ok(if drained { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The signals that tell a gateway to stop, or to read its files again.
struct GatewaySignals {
    terminate: Signal,
    interrupt: Signal,
    hang_up: Signal,
}

impl GatewaySignals {
    fn new() -> anyhow::Result<Self> {
        Ok(Self {
            terminate: signal(SignalKind::terminate()).context("cannot listen for SIGTERM")?,
            interrupt: signal(SignalKind::interrupt()).context("cannot listen for SIGINT")?,
            hang_up: signal(SignalKind::hangup()).context("cannot listen for SIGHUP")?,
        })
    }

    /// Returns once one says to stop; others are nothing to a gateway that has not started.
    async fn stops(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}

/// Lets `postern status` find this gateway. In a pod the status socket has a fixed place.
fn announce(config: &Path, checked: &mut Checked) -> Option<PrivateDirectory> {
    if checked.surroundings.kubernetes {
        return None;
    }
    gateways::announce(config, &mut checked.settings).unwrap_or_else(|error| {
        tracing::info!("`postern status` does not find this gateway: {error:#}");
        None
    })
}

/// Serves until a signal tells the gateway to stop. Returns whether everything ended in time.
async fn serve_until_stopped(running: &Running, signals: &mut GatewaySignals) -> bool {
    loop {
        tokio::select! {
            _ = signals.terminate.recv() => break,
            _ = signals.interrupt.recv() => break,
            _ = signals.hang_up.recv() => running.reload(),
        }
    }
    running.stop().await
}
