//! `postern ui`: a page of the events of a ledger, for a browser on this machine.

mod open;

use std::io::{self, Write};
use std::process::ExitCode;
use std::sync::{Arc, mpsc};
use std::time::Duration;

use anyhow::Context;
use serde_json::json;
use tokio::signal::unix::{SignalKind, signal};

use super::ledger::FollowedLedger;
use super::output;
use super::private_directory::random_hex;
use crate::cli::{Output, UiArgs};
use crate::drain::Drain;
use crate::page::{LivePage, PageServer};

/// How often a file is looked at for more.
const PAUSE: Duration = Duration::from_millis(100);

/// How long browsers may take to hear of the end.
const GRACE: Duration = Duration::from_secs(1);

/// Serves the page until SIGINT or SIGTERM.
pub(super) fn run(args: &UiArgs, output: Output) -> anyhow::Result<ExitCode> {
    let live = LivePage::new();
    let (opened, opening) = mpsc::channel();
    let (ledger, shown) = (args.source.ledger.clone(), Arc::clone(&live));
    // What is read may block for ever, and is for one thread alone.
    std::thread::Builder::new().name("ledger".to_owned()).spawn(move || {
        let ledger = FollowedLedger::open(ledger.as_deref());
        let ledger = ledger.map_err(|error| drop(opened.send(Err(error)))).ok()?;
        opened.send(Ok(())).ok()?;
        feed(ledger, &shown);
        Some(())
    })?;
    opening.recv().context("the ledger was not opened")??;
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    runtime.block_on(serve(args, output, &live)).map(|()| ExitCode::SUCCESS)
}

async fn serve(args: &UiArgs, output: Output, live: &Arc<LivePage>) -> anyhow::Result<()> {
    let mut interrupted = signal(SignalKind::interrupt())?;
    let mut terminated = signal(SignalKind::terminate())?;
    let served = start(args.port, live).await?;
    if args.open {
        open::open(&served.ticket);
    }
    output::print(output, &format!("{}\n", served.url), &json!({"url": served.url}))?;
    tokio::select! {
        _ = interrupted.recv() => {}
        _ = terminated.recv() => {}
    }
    served.stop().await;
    Ok(())
}

/// A page that is served.
pub(super) struct Served {
    pub(super) url: String,
    /// An address that leads there once.
    ticket: String,
    drain: Drain,
}

impl Served {
    /// Ends the server.
    pub(super) async fn stop(self) {
        self.drain.shut_down(GRACE).await;
    }
}

/// Serves a page under an address with a new token.
pub(super) async fn start(port: u16, live: &Arc<LivePage>) -> anyhow::Result<Served> {
    let token = random_hex()?;
    let server = PageServer::bind(port, token.clone(), Arc::clone(live))
        .await
        .with_context(|| format!("cannot listen on port {port} of 127.0.0.1"))?;
    let url = format!("http://{}/{token}/", server.address());
    let ticket = server.ticket(random_hex()?);
    let drain = Drain::default();
    drain.spawn(server.run(drain.clone()));
    Ok(Served { url, ticket, drain })
}

/// Gives the page each event, until there are none or reading fails, which the page then says.
fn feed(mut ledger: FollowedLedger, live: &LivePage) {
    live.describe(|source| ledger.name().clone_into(&mut source.name));
    loop {
        match ledger.next() {
            Ok(Some(entry)) => live.push(&entry.event, &entry.line),
            Ok(None) => {
                live.describe(|source| {
                    (source.is_current, source.has_ended) = (true, ledger.ends());
                    source.notes = ledger.skipped();
                });
                if ledger.ends() {
                    return;
                }
                std::thread::sleep(PAUSE);
            }
            Err(error) => {
                live.describe(|source| {
                    (source.is_current, source.has_ended) = (true, true);
                    source.notes = ledger.skipped();
                    source.notes.push(format!("{error:#}"));
                });
                // Nobody may be reading it.
                let _ = writeln!(io::stderr(), "postern: {}", crate::terminal::plain(&format!("{error:#}")));
                return;
            }
        }
    }
}
