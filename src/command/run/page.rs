//! The page of a run's events (`postern run --ui`), which goes with the run.

use std::io;
use std::path::Path;
use std::sync::Arc;

use crate::command::ui::{self, Served};
use crate::event::Event;
use crate::ledger::{NamedSink, Sink};
use crate::page::LivePage;

/// A page that is served while the command runs.
pub(super) struct RunPage {
    live: Arc<LivePage>,
    served: Served,
}

impl RunPage {
    /// Serves a page of the events that will be in this file.
    ///
    /// # Errors
    /// Nothing can listen on the loopback.
    pub(super) async fn serve(events: &Path) -> anyhow::Result<Self> {
        let live = LivePage::new();
        live.describe(|source| {
            source.name = events.display().to_string();
            source.is_current = true;
        });
        let served = ui::start(0, &live).await?;
        Ok(Self { live, served })
    }

    /// Where the page is.
    pub(super) fn url(&self) -> &str {
        &self.served.url
    }

    /// The sink by which the page learns of events.
    pub(super) fn sink(&self) -> NamedSink {
        NamedSink::blocking("page", PageSink(Arc::clone(&self.live)))
    }

    /// Ends the server.
    pub(super) async fn stop(self) {
        self.served.stop().await;
    }
}

/// Gives events to a page, which keeps them in memory and never waits.
struct PageSink(Arc<LivePage>);

impl Sink for PageSink {
    fn write(&mut self, event: &Event, line: &[u8]) -> io::Result<()> {
        self.0.push(event, std::str::from_utf8(line).map_err(io::Error::other)?);
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
