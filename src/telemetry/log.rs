//! Logs for people, on standard error: standard output carries events alone.

use std::fs::File;
use std::io;
use std::sync::Mutex;

use tracing::Level;
use tracing::level_filters::LevelFilter;
use tracing_subscriber::Layer;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

/// How much the log says where nothing else is asked for.
pub const DEFAULT_LEVEL: Level = Level::INFO;

/// Starts the log of the process, once. Later calls change nothing.
///
/// Only Postern's own words follow `level`. What libraries say below a warning is never written, whatever is asked
/// for: at debug and trace they print frames and headers, and with them keys.
pub fn start(level: Level) {
    if subscriber(level, io::stderr).try_init().is_err() {
        tracing::debug!("the log was started before");
    }
}

/// The same, into a file: where standard error is another program's terminal.
pub fn start_in(level: Level, file: File) {
    if subscriber(level, Mutex::new(file)).try_init().is_err() {
        tracing::debug!("the log was started before");
    }
}

fn subscriber<W>(level: Level, writer: W) -> impl SubscriberInitExt + tracing::Subscriber
where
    W: for<'writer> MakeWriter<'writer> + Send + Sync + 'static,
{
    let filter = Targets::new()
        .with_default(LevelFilter::WARN.min(LevelFilter::from_level(level)))
        .with_target(env!("CARGO_CRATE_NAME"), level);
    let lines = tracing_subscriber::fmt::layer().compact().with_ansi(false).with_writer(writer);
    tracing_subscriber::registry().with(lines.with_filter(filter))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[derive(Clone, Default)]
    struct Buffer(Arc<Mutex<Vec<u8>>>);

    impl io::Write for Buffer {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn said_at(level: Level) -> String {
        let buffer = Buffer::default();
        let writer = buffer.clone();
        tracing::subscriber::with_default(subscriber(level, move || writer.clone()), || {
            tracing::debug!(host = "a.example", "dialling");
            tracing::info!("started");
            tracing::debug!(target: "h2::codec", "authorization: Bearer canary");
            tracing::warn!(target: "h2::codec", "odd frame");
        });
        String::from_utf8(buffer.0.lock().unwrap().clone()).unwrap()
    }

    #[test]
    fn the_level_chooses_what_postern_says() {
        assert!(!said_at(Level::INFO).contains("dialling"));
        assert!(said_at(Level::INFO).contains("started"));
        assert!(said_at(Level::DEBUG).contains(r#"dialling host="a.example""#));
        assert!(!said_at(Level::ERROR).contains("odd frame"));
    }

    #[test]
    fn libraries_never_say_what_they_relay() {
        let said = said_at(Level::TRACE);
        assert!(said.contains("odd frame"));
        assert!(!said.contains("canary"));
    }

    #[test]
    fn lines_have_no_escape_codes() {
        assert!(!said_at(Level::TRACE).contains('\u{1b}'));
    }
}
