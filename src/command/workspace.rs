//! `postern workspace`: the companion that reads the agent's files for a gateway, without a network or keys.

use std::io::{self, Write as _};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context;
use tokio::signal::unix::{SignalKind, signal};
use tracing::Level;

use crate::cli::WorkspaceArgs;
use crate::drain::Drain;
use crate::telemetry::log;
use crate::workspace::serve::{Askers, serve};

/// How long questions under way may take to end.
const GRACE: Duration = Duration::from_secs(1);

/// What it says on standard output with `--attached`, once it answers.
pub(super) const READY: &str = "ready";

/// How many threads read: four files, and standard input.
const READERS: usize = 5;

/// Serves until SIGTERM or SIGINT, and with `--attached` until standard input ends.
pub(super) fn run(args: &WorkspaceArgs) -> anyhow::Result<ExitCode> {
    log::start(Level::WARN);
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().max_blocking_threads(READERS).build()?;
    let code = runtime.block_on(answer(args));
    // A read of a file system that hangs must not hold up the exit.
    runtime.shutdown_background();
    code
}

async fn answer(args: &WorkspaceArgs) -> anyhow::Result<ExitCode> {
    // Before it can be seen: a signal that nobody listens for ends the process.
    let mut terminate = signal(SignalKind::terminate()).context("cannot listen for SIGTERM")?;
    let mut interrupt = signal(SignalKind::interrupt()).context("cannot listen for SIGINT")?;
    let askers = if args.any_user { Askers::Anybody } else { Askers::Owner };
    let drain = Drain::default();
    serve(&args.root, &args.socket, askers, &drain)?;
    if args.attached {
        writeln!(io::stdout(), "{READY}")?;
    }
    tokio::select! {
        _ = terminate.recv() => {}
        // From the terminal of a run it comes to all: the run says when it is over.
        _ = interrupt.recv(), if !args.attached => {}
        () = ended(), if args.attached => {}
    }
    drain.shut_down(GRACE).await;
    Ok(ExitCode::SUCCESS)
}

/// Waits for the end of standard input: that of the process that started this one.
async fn ended() {
    let ends = || io::copy(&mut io::stdin(), &mut io::sink());
    // Where it cannot be read, it has ended.
    let _ = tokio::task::spawn_blocking(ends).await;
}
