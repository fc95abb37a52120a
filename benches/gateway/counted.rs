//! The gateway in a process of its own that counts what it allocates: this executable, started again.

use std::alloc::System;
use std::io::{Read, Write};
use std::ops::Sub;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::process::{Command, ExitCode};

use postern::cli::Cli;
use stats_alloc::{INSTRUMENTED_SYSTEM, StatsAlloc};

use super::gateway::Gateway;

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// The variable that says that this is the gateway.
const IS_GATEWAY: &str = "BENCH_IS_GATEWAY";
/// Where it tells its counts, in its directory.
const SOCKET: &str = "counts.sock";

/// What was allocated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Counts {
    /// Calls of the allocator that returned memory, those that moved or grew a piece included.
    pub(crate) allocations: u64,
    /// How much they asked for.
    pub(crate) bytes: u64,
}

impl Sub for Counts {
    type Output = Self;

    fn sub(self, before: Self) -> Self {
        Self { allocations: self.allocations - before.allocations, bytes: self.bytes - before.bytes }
    }
}

/// Runs the gateway, if this process is to be one.
pub(crate) fn run_if_asked() -> Option<ExitCode> {
    std::env::var_os(IS_GATEWAY)?;
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    let listener = UnixListener::bind(SOCKET).unwrap();
    std::thread::spawn(move || listener.incoming().for_each(|asked| tell(asked.unwrap())));
    Some(postern::command::run(Cli::read().unwrap()).unwrap())
}

fn tell(mut to: UnixStream) {
    let stats = ALLOCATOR.stats();
    let numbers =
        [stats.allocations + stats.reallocations, stats.bytes_allocated].map(|number| number as u64);
    numbers.iter().for_each(|number| to.write_all(&number.to_le_bytes()).unwrap());
}

/// Starts the gateway with the settings and the policy that are in `directory`.
pub(crate) fn start(directory: &Path) -> Gateway {
    let mut command = Command::new(std::env::current_exe().unwrap());
    // One thread moves bytes, so that nothing depends on who is awake.
    command.env(IS_GATEWAY, "1").env("TOKIO_WORKER_THREADS", "1");
    Gateway::with_settings(directory, &mut command)
}

/// What the gateway in `directory` has allocated so far.
pub(crate) fn counts(directory: &Path) -> Counts {
    let mut stream = UnixStream::connect(directory.join(SOCKET)).unwrap();
    let mut number = || {
        let mut bytes = [0; 8];
        stream.read_exact(&mut bytes).unwrap();
        u64::from_le_bytes(bytes)
    };
    Counts { allocations: number(), bytes: number() }
}
