//! Logs for people, on standard error: standard output carries events alone.

use std::collections::HashMap;
use std::fmt;
use std::fs::File;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use tracing::callsite::Identifier;
use tracing::field::{Field, Visit};
use tracing::level_filters::LevelFilter;
use tracing::{Event, Level, Metadata, Subscriber};
use tracing_subscriber::filter::Targets;
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::time::{FormatTime, SystemTime};
use tracing_subscriber::fmt::writer::OptionalWriter;
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields, MakeWriter};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{Layer, Registry, reload};

use crate::pod;

/// How much the log says where nothing else is asked for.
pub const DEFAULT_LEVEL: Level = Level::INFO;

/// How a line of the log is written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Format {
    /// For people.
    #[default]
    Text,
    /// One JSON object a line, for collectors: `time`, `level`, `target`, `message`, and `fields` where there are any.
    Json,
}

/// Whether lines are JSON. It is read for each line, since settings are read after the log has started and may change.
static JSON: AtomicBool = AtomicBool::new(false);

/// Writes all later lines in this format.
pub fn write_as(format: Format) {
    JSON.store(format == Format::Json, Ordering::Relaxed);
}

/// The log of the process: the level that it started with, and the filter that [`follow`] replaces.
static STARTED: OnceLock<(Level, Handle)> = OnceLock::new();

type Filter = reload::Layer<Targets, Registry>;
type Handle = reload::Handle<Targets, Registry>;

/// Starts the log of the process, once. Later calls change nothing.
///
/// Only Postern's own words follow `level`. What libraries say below a warning is never written, whatever is asked
/// for: at debug and trace they print frames and headers, and with them keys.
pub fn start(level: Level) {
    let (filter, handle) = Filter::new(targets(level));
    started(level, handle, subscriber(filter, io::stderr, &JSON).try_init().is_ok());
}

/// Starts the log in a file, where standard error is another program's terminal.
pub fn start_in(level: Level, file: File) {
    let (filter, handle) = Filter::new(targets(level));
    started(level, handle, subscriber(filter, Mutex::new(file), &JSON).try_init().is_ok());
}

/// Writes at this level from now on; without one, at the level that the log started with.
pub fn follow(asked: Option<Level>) {
    let Some((start, handle)) = STARTED.get() else { return };
    let level = asked.unwrap_or(*start);
    let wanted = targets(level);
    if handle.with_current(|current| *current != wanted).unwrap_or(false) {
        // Fails where the subscriber, and with it the log, is gone.
        let _ = handle.reload(wanted);
        tracing::info!(%level, "the log is written at another level");
    }
}

/// The level of a word: `error`, `warn`, `info`, `debug` or `trace`.
pub fn level(word: &str) -> Option<Level> {
    pod::LOG_LEVELS.contains(&word).then(|| word.parse().ok()).flatten()
}

fn started(level: Level, handle: Handle, first: bool) {
    if first {
        let _ = STARTED.set((level, handle));
    } else {
        tracing::debug!("the log was started before");
    }
}

fn targets(level: Level) -> Targets {
    Targets::new()
        .with_default(LevelFilter::WARN.min(LevelFilter::from_level(level)))
        .with_target(env!("CARGO_CRATE_NAME"), level)
}

fn subscriber<W>(filter: Filter, writer: W, json: &'static AtomicBool) -> impl SubscriberInitExt + Subscriber
where
    W: for<'writer> MakeWriter<'writer> + Send + Sync + 'static,
{
    let writer = BoundedLog { writer, places: Mutex::default() };
    let lines = tracing_subscriber::fmt::layer().compact().with_ansi(false).with_writer(writer);
    let lines = lines.map_event_format(|text| LineFormat { text, json });
    tracing_subscriber::registry().with(lines.with_filter(filter))
}

/// Writes a line as text, by the format for that, or as JSON.
struct LineFormat<F> {
    text: F,
    json: &'static AtomicBool,
}

impl<S, N, F> FormatEvent<S, N> for LineFormat<F>
where
    S: Subscriber + for<'span> LookupSpan<'span>,
    N: for<'field> FormatFields<'field> + 'static,
    F: FormatEvent<S, N>,
{
    fn format_event(
        &self,
        context: &FmtContext<'_, S, N>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        if !self.json.load(Ordering::Relaxed) {
            return self.text.format_event(context, writer, event);
        }
        let mut time = String::new();
        SystemTime.format_time(&mut Writer::new(&mut time))?;
        let mut fields = LineFields::default();
        event.record(&mut fields);
        let metadata = event.metadata();
        let mut line = json!({
            "time": time,
            "level": metadata.level().as_str(),
            "target": metadata.target(),
            "message": fields.message,
        });
        if !fields.others.is_empty() {
            line["fields"] = Value::Object(fields.others);
        }
        writeln!(writer, "{line}")
    }
}

/// The fields of a line, its message apart.
#[derive(Default)]
struct LineFields {
    message: String,
    others: Map<String, Value>,
}

impl LineFields {
    fn put(&mut self, field: &Field, value: Value) {
        match (field.name(), value) {
            ("message", Value::String(message)) => self.message = message,
            (name, value) => drop(self.others.insert(name.to_owned(), value)),
        }
    }
}

impl Visit for LineFields {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.put(field, Value::from(format!("{value:?}")));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.put(field, Value::from(value));
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.put(field, Value::from(value));
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.put(field, Value::from(value));
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        self.put(field, Value::from(value));
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.put(field, Value::from(value));
    }
}

/// So many lines of one place in the code are written in a second. An agent can cause more (by upstreams that fail, by
/// handshakes that break off), and they would push the events out of the container's log, which has both. What the
/// lines say stands in events too.
const LINES: u32 = 50;
const WINDOW: Duration = Duration::from_secs(1);

/// Counts the lines of each place. Places are few, and no input makes more of them.
struct BoundedLog<W> {
    writer: W,
    places: Mutex<HashMap<Identifier, LineBudget>>,
}

/// The lines of one place in the second that began then.
struct LineBudget {
    began: Instant,
    count: u32,
}

impl LineBudget {
    /// Whether another one is written.
    fn take(&mut self, now: Instant) -> bool {
        if now.duration_since(self.began) >= WINDOW {
            *self = Self { began: now, count: 0 };
        }
        self.count = self.count.saturating_add(1);
        self.count <= LINES
    }
}

impl<'writer, W: MakeWriter<'writer>> MakeWriter<'writer> for BoundedLog<W> {
    type Writer = OptionalWriter<W::Writer>;

    fn make_writer(&'writer self) -> Self::Writer {
        OptionalWriter::some(self.writer.make_writer())
    }

    fn make_writer_for(&'writer self, place: &Metadata<'_>) -> Self::Writer {
        let now = Instant::now();
        let mut places = self.places.lock().unwrap_or_else(PoisonError::into_inner);
        if places.entry(place.callsite()).or_insert(LineBudget { began: now, count: 0 }).take(now) {
            OptionalWriter::some(self.writer.make_writer_for(place))
        } else {
            OptionalWriter::none()
        }
    }
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

    static AS_TEXT: AtomicBool = AtomicBool::new(false);
    static AS_JSON: AtomicBool = AtomicBool::new(true);

    fn filter(level: Level) -> Filter {
        Filter::new(targets(level)).0
    }

    fn said_at(level: Level) -> String {
        let buffer = Buffer::default();
        let writer = buffer.clone();
        tracing::subscriber::with_default(
            subscriber(filter(level), move || writer.clone(), &AS_TEXT),
            || {
                tracing::debug!(host = "a.example", "dialling");
                tracing::info!("started");
                tracing::debug!(target: "h2::codec", "authorization: Bearer canary");
                tracing::warn!(target: "h2::codec", "odd frame");
            },
        );
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
    fn the_level_of_a_log_that_runs_can_be_another_and_libraries_still_say_little() {
        let buffer = Buffer::default();
        let writer = buffer.clone();
        let (filter, handle) = Filter::new(targets(Level::INFO));
        tracing::subscriber::with_default(subscriber(filter, move || writer.clone(), &AS_TEXT), || {
            let dial = |number: u32| {
                tracing::debug!(number, "dialling");
                tracing::debug!(target: "h2::codec", "authorization: Bearer canary");
            };
            dial(1);
            handle.reload(targets(Level::DEBUG)).unwrap();
            dial(2);
            handle.reload(targets(Level::INFO)).unwrap();
            dial(3);
        });
        let text = String::from_utf8(buffer.0.lock().unwrap().clone()).unwrap();
        assert!(
            text.contains("number=2") && !text.contains("number=1") && !text.contains("number=3"),
            "{text}"
        );
        assert!(!text.contains("canary"), "{text}");
    }

    #[test]
    fn a_level_is_one_of_five_words() {
        assert_eq!(level("debug"), Some(Level::DEBUG));
        for word in ["", "DEBUG", "off", "5", "verbose"] {
            assert_eq!(level(word), None, "{word}");
        }
    }

    #[test]
    fn one_place_writes_so_many_lines_and_silences_no_other() {
        let buffer = Buffer::default();
        let writer = buffer.clone();
        tracing::subscriber::with_default(
            subscriber(filter(Level::INFO), move || writer.clone(), &AS_TEXT),
            || {
                for number in 0..10_000 {
                    tracing::warn!(number, "the upstream cannot be reached");
                }
                tracing::warn!("another one");
            },
        );
        let text = String::from_utf8(buffer.0.lock().unwrap().clone()).unwrap();
        let lines = text.lines().filter(|line| line.contains("cannot be reached")).count();
        assert!((50..5_000).contains(&lines), "{lines} lines");
        assert!(text.contains("another one"));
    }

    #[test]
    fn a_line_of_json_is_an_object_whatever_it_says() {
        let buffer = Buffer::default();
        let writer = buffer.clone();
        tracing::subscriber::with_default(
            subscriber(filter(Level::INFO), move || writer.clone(), &AS_JSON),
            || {
                tracing::warn!(host = "a\"\n.example", tries = 3, late = true, error = ?Some(1), level = "mine", "no way");
                tracing::info!("two\nlines");
            },
        );
        let text = String::from_utf8(buffer.0.lock().unwrap().clone()).unwrap();
        let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(lines.len(), 2);
        assert_eq!(
            lines[0]["fields"],
            json!({"host": "a\"\n.example", "tries": 3, "late": true, "error": "Some(1)", "level": "mine"})
        );
        assert_eq!((&lines[0]["level"], &lines[0]["message"]), (&json!("WARN"), &json!("no way")));
        assert!(lines[0]["target"].as_str().unwrap().starts_with("postern"));
        assert!(lines[0]["time"].as_str().unwrap().ends_with('Z'));
        assert_eq!((&lines[1]["message"], &lines[1]["fields"]), (&json!("two\nlines"), &Value::Null));
    }

    #[test]
    fn a_place_may_go_on_after_a_second() {
        let now = Instant::now();
        let mut lines = LineBudget { began: now, count: 0 };
        for line in 0..100 {
            assert_eq!(lines.take(now), line < 50);
        }
        assert!(lines.take(now + WINDOW));
    }

    #[test]
    fn libraries_never_say_what_they_relay() {
        let text = said_at(Level::TRACE);
        assert!(text.contains("odd frame"));
        assert!(!text.contains("canary"));
    }

    #[test]
    fn lines_have_no_escape_codes() {
        assert!(!said_at(Level::TRACE).contains('\u{1b}'));
    }
}
