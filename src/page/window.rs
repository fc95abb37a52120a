//! The newest events, numbered in the order in which they came; older ones make room.

use std::collections::VecDeque;

use serde::Serialize;
use serde_json::value::RawValue;

use super::columns::Columns;
use super::row::Row;
use crate::event::{Event, Id};

/// How many events are kept and answered.
#[derive(Clone, Copy)]
pub(super) struct WindowBounds {
    pub(super) events: usize,
    /// Of lines and rows.
    pub(super) bytes: usize,
    /// Of one answer.
    pub(super) rows: usize,
}

pub(super) const BOUNDS: WindowBounds = WindowBounds { events: 100_000, bytes: 256 << 20, rows: 20_000 };

/// The most events that are shown beside one, and the most of their bytes.
const MOST_RELATED: usize = 500;
const MOST_RELATED_BYTES: usize = 8 << 20;

/// Events, of which the newest are kept.
pub(super) struct EventWindow {
    bounds: WindowBounds,
    kept: VecDeque<KeptEvent>,
    /// How many came before the first that is kept.
    dropped: u64,
    bytes: usize,
    /// Where events come from, for people.
    pub(super) source: SourceState,
}

struct KeptEvent {
    row: Row,
    id: Id,
    /// When the last of several was, in milliseconds since the Unix epoch.
    last: u64,
    exchange: Option<Id>,
    connection: Option<Id>,
    line: Box<RawValue>,
}

/// What is known of the place from which events come.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SourceState {
    /// A file's path, `standard input`, or the command of a run.
    pub(crate) name: String,
    /// Whether all that is there was read.
    pub(crate) is_current: bool,
    /// Whether no more will come.
    pub(crate) has_ended: bool,
    /// What to know of it: lines that were skipped, a failure.
    pub(crate) notes: Vec<String>,
}

/// The rows after a number.
#[derive(Serialize)]
struct RowsAnswer<'a> {
    source: &'a SourceState,
    /// The numbers of the oldest event that is kept, and of the first row.
    oldest: u64,
    first: u64,
    /// What to ask for next.
    next: u64,
    /// Whether there are more rows already.
    more: bool,
    /// Counts changes; an answer waits until there is another.
    change: u64,
    rows: Columns<'a>,
}

/// One event, whole.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct EventAnswer<'a> {
    number: u64,
    /// Whether the event stands for several, of which the one that was asked for is one.
    is_counted: bool,
    event: &'a RawValue,
    /// The others of its exchange, or of its connection where it has no exchange.
    related: Vec<RelatedEvent<'a>>,
}

#[derive(Serialize)]
struct RelatedEvent<'a> {
    number: u64,
    event: &'a RawValue,
}

/// Which event is asked for.
pub(super) enum EventKey {
    Number(u64),
    Id(Id),
}

impl EventWindow {
    pub(super) fn new(bounds: WindowBounds) -> Self {
        Self { bounds, kept: VecDeque::new(), dropped: 0, bytes: 0, source: SourceState::default() }
    }

    /// Takes an event with its line. A line that is no JSON is passed over: the reader checked it.
    pub(super) fn push(&mut self, event: &Event, line: &str) {
        let Ok(line) = RawValue::from_string(line.to_owned()) else { return };
        let row = Row::of(event);
        let last = event.last.unwrap_or(event.time).unix_millis();
        let (exchange, connection) = (event.exchange, event.connection);
        let kept = KeptEvent { row, id: event.id, last, exchange, connection, line };
        self.bytes += kept.size();
        self.kept.push_back(kept);
        while self.kept.len() > self.bounds.events || self.bytes > self.bounds.bytes {
            let Some(first) = self.kept.pop_front() else { return };
            self.bytes -= first.size();
            self.dropped += 1;
        }
    }

    /// The number behind the newest event; numbers begin with 0.
    pub(super) fn next(&self) -> u64 {
        self.dropped + self.kept.len() as u64
    }

    /// The rows from a number on, as JSON; those that are not kept any more are left out.
    pub(super) fn rows(&self, from: u64, change: u64) -> serde_json::Result<Vec<u8>> {
        let first = from.clamp(self.dropped, self.next());
        let skipped = usize::try_from(first - self.dropped).unwrap_or(usize::MAX);
        let rows: Vec<&Row> =
            self.kept.iter().skip(skipped).take(self.bounds.rows).map(|kept| &kept.row).collect();
        let next = first + rows.len() as u64;
        serde_json::to_vec(&RowsAnswer {
            source: &self.source,
            oldest: self.dropped,
            first,
            next,
            more: next < self.next(),
            change,
            rows: Columns::of(&rows),
        })
    }

    /// One event with those that belong to it, as JSON; none where it is not kept.
    pub(super) fn event(&self, key: &EventKey) -> Option<serde_json::Result<Vec<u8>>> {
        let (at, is_counted) = self.find(key)?;
        let kept = self.kept.get(at)?;
        let (mut related, mut bytes) = (Vec::new(), 0);
        for (number, other) in (self.dropped..).zip(&self.kept) {
            if other.id == kept.id || !kept.is_related(other) {
                continue;
            }
            bytes += other.line.get().len();
            if related.len() == MOST_RELATED || bytes > MOST_RELATED_BYTES {
                break;
            }
            related.push(RelatedEvent { number, event: &other.line });
        }
        let number = self.dropped + at as u64;
        Some(serde_json::to_vec(&EventAnswer { number, is_counted, event: &kept.line, related }))
    }

    /// The line of an event.
    fn find(&self, key: &EventKey) -> Option<(usize, bool)> {
        match key {
            EventKey::Number(number) => {
                let at = usize::try_from(number.checked_sub(self.dropped)?).ok()?;
                (at < self.kept.len()).then_some((at, false))
            }
            EventKey::Id(id) => {
                let exact = self.kept.iter().position(|kept| kept.id == *id).map(|at| (at, false));
                exact.or_else(|| self.kept.iter().position(|kept| kept.counts(*id)).map(|at| (at, true)))
            }
        }
    }
}

impl KeptEvent {
    fn size(&self) -> usize {
        self.line.get().len() + self.row.size()
    }

    fn is_related(&self, other: &Self) -> bool {
        match (self.exchange, self.connection) {
            (Some(_), _) => other.exchange == self.exchange,
            (None, Some(_)) => other.connection == self.connection,
            (None, None) => false,
        }
    }

    /// Whether it stands for several between whose first and last the id was made: a UUIDv7 begins with its time.
    fn counts(&self, id: Id) -> bool {
        let made = id.time().unix_millis();
        self.row.count > 1 && self.row.time <= made && made <= self.last
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn line(number: u64, more: &Value) -> String {
        let mut event = json!({
            "apiVersion": "postern.dev/event/v1", "id": format!("01a2008d-747b-7101-8101-{number:012}"),
            "time": "2026-11-22T00:00:00.123Z", "sequence": number, "count": 1, "kind": "Request",
            "direction": "Outbound", "decision": {"verdict": "Allow"},
        });
        event.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        event.to_string()
    }

    fn push(window: &mut EventWindow, line: &str) {
        window.push(&Event::read(line.as_bytes()).unwrap(), line);
    }

    const SMALL: WindowBounds = WindowBounds { events: 5, bytes: 20_000, rows: 3 };

    fn window(count: u64) -> EventWindow {
        let mut window = EventWindow::new(SMALL);
        (0..count).for_each(|number| push(&mut window, &line(number, &json!({"session": "s"}))));
        window
    }

    fn rows(window: &EventWindow, from: u64) -> Value {
        serde_json::from_slice(&window.rows(from, 1).unwrap()).unwrap()
    }

    #[test]
    fn rows_come_in_parts_and_texts_once() {
        let window = window(5);
        let first = rows(&window, 0);
        assert_eq!((&first["first"], &first["next"], &first["more"]), (&json!(0), &json!(3), &json!(true)));
        assert_eq!(first["rows"]["texts"], json!(["", "s", "Request", "Allow"]));
        assert_eq!(first["rows"]["session"], json!([1, 1, 1]));
        let rest = rows(&window, 3);
        assert_eq!((&rest["more"], &rest["rows"]["count"]), (&json!(false), &json!([1, 1])));
        assert_eq!(rows(&window, u64::MAX)["next"], 5);
    }

    #[test]
    fn older_events_make_room_and_numbers_stay() {
        let mut window = window(8);
        let oldest = rows(&window, 0);
        assert_eq!((&oldest["oldest"], &oldest["first"]), (&json!(3), &json!(3)));
        assert!(window.event(&EventKey::Number(2)).is_none());
        let third: Value =
            serde_json::from_slice(&window.event(&EventKey::Number(3)).unwrap().unwrap()).unwrap();
        assert_eq!((&third["number"], &third["event"]["sequence"]), (&json!(3), &json!(3)));
        let long = line(9, &json!({"toolCall": {"name": "Bash", "input": "x".repeat(SMALL.bytes / 2)}}));
        (0..3).for_each(|_| push(&mut window, &long));
        assert_eq!(window.kept.len(), 1, "bytes are bounded too");
    }

    #[test]
    fn an_event_is_found_by_its_number_its_id_and_the_id_of_one_that_it_counts() {
        let mut window = EventWindow::new(BOUNDS);
        let exchange = "01a2008d-747b-7303-8303-030303030303";
        push(&mut window, &line(1, &json!({"exchange": exchange})));
        push(&mut window, &line(2, &json!({"count": 9, "last": "2026-11-22T00:00:02.000Z"})));
        push(&mut window, &line(3, &json!({"exchange": exchange})));
        let found = |key: EventKey| -> Value {
            serde_json::from_slice(&window.event(&key).unwrap().unwrap()).unwrap()
        };
        let id = |text: &str| EventKey::Id(Id::parse(text).unwrap());
        let third = found(id("01a2008d-747b-7101-8101-000000000003"));
        assert_eq!((&third["number"], &third["related"][0]["number"]), (&json!(2), &json!(0)));
        let counted = found(id("01a2008d-7500-7101-8101-000000000077"));
        assert_eq!((&counted["number"], &counted["isCounted"]), (&json!(1), &json!(true)));
        assert!(window.event(&id("01a3008d-7500-7101-8101-000000000077")).is_none());
    }
}
