//! `postern gateway`: the sidecar's own command.

mod addresses;
mod condition;
pub(crate) mod descriptors;
mod look;
mod mark;
pub(crate) mod outlets;
mod proving;
pub(crate) mod running;
mod search;
mod sockets;
mod trusting;
mod unread;

use std::path::Path;
use std::process::ExitCode;
use std::time::SystemTime;

use anyhow::Context;
use tokio::signal::unix::{Signal, SignalKind, signal};

use super::check::Checked;
use super::private_directory::PrivateDirectory;
use super::{check, gateways, output, surroundings};
use crate::cli::{GatewayArgs, Output};
use crate::ledger::Sink;
use crate::ledger::stdout::JsonLines;
use crate::telemetry::log;
use outlets::Outlets;
use running::Running;

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
    let (watched, checked) = check::read(config, surroundings::read(), SystemTime::now());
    let mut checked = match checked {
        Ok(checked) => checked,
        Err(problems) => {
            output::print_problems(output, &problems)?;
            return Ok(ExitCode::FAILURE);
        }
    };
    log::write_as(checked.settings.log.format);
    // Before anybody can see that it runs: a signal that nobody listens for ends the process.
    let mut signals = Signals::new()?;
    let _findable = findable(config, &mut checked);
    let sinks: Vec<Box<dyn Sink>> =
        if checked.settings.events.stdout { vec![Box::new(JsonLines::stdout()?)] } else { Vec::new() };
    let running = match Running::start(config, checked, watched, Outlets::of_environment(sinks)).await {
        Ok(running) => running,
        Err(problems) => {
            output::print_problems(output, &problems)?;
            return Ok(ExitCode::FAILURE);
        }
    };
    let drained = until_told(&running, &mut signals).await;
    Ok(if drained { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// What tells a gateway to stop, or to read its files again.
struct Signals {
    terminate: Signal,
    interrupt: Signal,
    hang_up: Signal,
}

impl Signals {
    fn new() -> anyhow::Result<Self> {
        Ok(Self {
            terminate: signal(SignalKind::terminate()).context("cannot listen for SIGTERM")?,
            interrupt: signal(SignalKind::interrupt()).context("cannot listen for SIGINT")?,
            hang_up: signal(SignalKind::hangup()).context("cannot listen for SIGHUP")?,
        })
    }
}

/// Has `postern status` find this gateway; its pod's status socket has its place.
fn findable(config: &Path, checked: &mut Checked) -> Option<PrivateDirectory> {
    if checked.surroundings.kubernetes {
        return None;
    }
    gateways::announce(config, &mut checked.settings).unwrap_or_else(|error| {
        tracing::info!("`postern status` does not find this gateway: {error:#}");
        None
    })
}

/// Answers whether everything ended in time.
async fn until_told(running: &Running, signals: &mut Signals) -> bool {
    loop {
        tokio::select! {
            _ = signals.terminate.recv() => break,
            _ = signals.interrupt.recv() => break,
            _ = signals.hang_up.recv() => running.reload(),
        }
    }
    running.stop().await
}
