//! Tests of the store over files of its own.

use std::time::SystemTime;

use rusqlite::Connection;

use super::*;
use crate::decision::{Decision, RuleId, Verdict};
use crate::event::{Kind, Timestamp};
use crate::ledger::fresh_id;
use crate::policy::Policy;

fn settings(path: &Path) -> StoreSettings {
    StoreSettings {
        path: path.to_owned(),
        max_age: Duration::from_secs(7 * 24 * 60 * 60),
        max_bytes: LEAST_BYTES,
        blocks: false,
    }
}

fn open(path: &Path) -> Result<Store, StoreError> {
    Store::open(settings(path), StoreHealth::default())
}

/// Gives events to a store as the writer does: numbered, and chained.
struct Writer {
    start: Id,
    sequence: u64,
    chain: Chain,
}

impl Writer {
    fn new() -> Self {
        Self { start: fresh_id(), sequence: 0, chain: Chain::BEGIN }
    }

    fn event(&mut self, rule: &str) -> (Event, Vec<u8>) {
        let mut event = Event::new(fresh_id(), Kind::Request, Decision::of(Verdict::Deny));
        event.decision.rule = Some(RuleId::new(rule));
        event.start = Some(self.start);
        self.sequence += 1;
        event.sequence = self.sequence;
        let mut line = serde_json::to_vec(&event).unwrap();
        self.chain = self.chain.after(&line);
        self.chain.append_to(&mut line);
        event.chain = Some(self.chain);
        (event, line)
    }

    fn write(&mut self, store: &mut Store, rule: &str) -> io::Result<()> {
        let (event, line) = self.event(rule);
        store.write(&event, &line)
    }
}

fn count(path: &Path, condition: &str) -> i64 {
    let read = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY).unwrap();
    read.query_row(&format!("SELECT count(*) FROM {condition}"), [], |row| row.get(0)).unwrap()
}

fn place() -> (tempfile::TempDir, PathBuf) {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("ledger.db");
    (place, path)
}

#[test]
fn what_was_flushed_is_read_while_the_store_writes_and_after_it_ended() {
    let (_place, path) = place();
    let (mut store, mut writer) = (open(&path).unwrap(), Writer::new());
    (0..300).for_each(|_| writer.write(&mut store, "a/b/c").unwrap());
    assert_eq!(count(&path, "events"), 256, "one transaction has 256 events at most");
    store.flush().unwrap();
    assert_eq!(count(&path, "events"), 300);
    assert_eq!(count(&path, "starts WHERE ended IS NULL"), 1);
    store.close().unwrap();
    drop(store);
    assert_eq!(count(&path, "starts WHERE ended IS NOT NULL"), 1);
    let read = Connection::open(&path).unwrap();
    let mut lines = read.prepare("SELECT event, chain, before FROM events ORDER BY n").unwrap();
    let mut rows = lines.query([]).unwrap();
    while let Some(row) = rows.next().unwrap() {
        let (line, chain, before): (String, [u8; 32], [u8; 32]) =
            (row.get(0).unwrap(), row.get(1).unwrap(), row.get(2).unwrap());
        let seen = Chain::of_line(line.as_bytes(), Chain::from_bytes(before)).unwrap();
        assert_eq!(seen, (Chain::from_bytes(chain), Chain::from_bytes(chain)));
    }
}

#[test]
fn a_file_is_for_its_owner_alone() {
    use std::os::unix::fs::PermissionsExt;
    let (_place, path) = place();
    let _store = open(&path).unwrap();
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
}

#[test]
fn a_second_gateway_is_refused_until_the_first_has_ended() {
    let (_place, path) = place();
    let store = open(&path).unwrap();
    assert!(matches!(open(&path), Err(StoreError::Locked(_))));
    drop(store);
    open(&path).unwrap();
}

#[test]
fn a_file_of_somebody_else_stays_as_it_is() {
    let (_place, path) = place();
    let other = Connection::open(&path).unwrap();
    other.execute_batch("CREATE TABLE notes (text)").unwrap();
    drop(other);
    let sqlite = fs::read(&path).unwrap();
    for bytes in [sqlite, b"not a database".to_vec(), b"x".repeat(5_000)] {
        fs::write(&path, &bytes).unwrap();
        assert!(matches!(open(&path), Err(StoreError::Foreign(_))));
        assert_eq!(fs::read(&path).unwrap(), bytes);
    }
}

#[test]
fn a_later_version_is_refused_and_stays_as_it_is() {
    let (_place, path) = place();
    drop(open(&path).unwrap());
    Connection::open(&path).unwrap().pragma_update(None, "user_version", schema::VERSION + 1).unwrap();
    let bytes = fs::read(&path).unwrap();
    assert!(matches!(open(&path), Err(StoreError::Newer { found: 2, .. })));
    assert_eq!(fs::read(&path).unwrap(), bytes);
}

#[test]
fn an_earlier_version_is_brought_to_this_one() {
    let (_place, path) = place();
    let early = Connection::open(&path).unwrap();
    early.pragma_update(None, "application_id", schema::APPLICATION).unwrap();
    early.execute_batch("VACUUM").unwrap();
    drop(early);
    let (mut store, mut writer) = (open(&path).unwrap(), Writer::new());
    writer.write(&mut store, "a/b/c").unwrap();
    store.flush().unwrap();
    assert_eq!(count(&path, "events"), 1);
}

#[test]
fn a_file_whose_making_was_interrupted_is_made_again() {
    let (_place, path) = place();
    fs::write(&path, b"").unwrap();
    drop(open(&path).unwrap());
    assert_eq!(count(&path, "events"), 0);
}

#[test]
fn a_missing_directory_is_said_with_what_to_do() {
    let (place, _) = place();
    let error = open(&place.path().join("none/ledger.db")).unwrap_err().to_string();
    assert!(error.contains("none/ledger.db") && error.contains("make its directory"), "{error}");
}

/// J13: a flood is its own victim.
/// J11: cheap events push out nothing else.
#[test]
fn a_flood_under_one_rule_evicts_nobody_elses_rows() {
    let (_place, path) = place();
    let (mut store, mut writer) = (open(&path).unwrap(), Writer::new());
    (0..50).for_each(|_| writer.write(&mut store, "a/b/rare").unwrap());
    (0..20_000).for_each(|_| writer.write(&mut store, "a/b/flood").unwrap());
    store.close().unwrap();
    assert_eq!(count(&path, "events WHERE rule = 'a/b/rare'"), 50);
    let kept = count(&path, "events WHERE rule = 'a/b/flood'");
    assert!(kept > 0 && kept < 20_000, "{kept}");
    assert_eq!(count(&path, "events WHERE sequence = 20050"), 1, "the newest stays");
    let read = Connection::open(&path).unwrap();
    let gone: i64 = read.query_row("SELECT sum(rows) FROM evicted", [], |row| row.get(0)).unwrap();
    assert_eq!(gone + kept, 20_000);
    assert!(fs::metadata(&path).unwrap().len() <= LEAST_BYTES);
}

/// J13: a flood is its own victim.
#[test]
fn what_is_noted_of_evicted_rows_is_bounded_and_stays_true() {
    let (_place, path) = place();
    drop(open(&path).unwrap());
    let file = Connection::open(&path).unwrap();
    let note = "INSERT INTO evicted VALUES ('Request', CASE WHEN ?1 % 3 THEN 'a/b/flood' END, ?1 * 10, ?1 * 10 + 9, 10, ?1)";
    file.execute_batch("BEGIN").unwrap();
    (0..5_000).for_each(|number| assert_eq!(file.execute(note, [number]).unwrap(), 1));
    file.execute_batch("COMMIT").unwrap();
    let mut store = open(&path).unwrap();
    store.file.as_mut().unwrap().evict_old(now().unix_millis(), Duration::from_secs(60)).unwrap();
    assert_eq!(count(&path, "evicted"), 1_024 + 2, "one for each rule, and the newest as they were");
    let all = "(SELECT sum(rows) AS n, min(first) AS first, max(last) AS last FROM evicted) WHERE n = 50000 AND first = 0 AND last = 49999";
    assert_eq!(count(&path, all), 1);
    assert_eq!(count(&path, "evicted WHERE last - first > 9 AND rule IS NULL AND first = 0"), 1);
}

#[test]
fn a_bound_that_is_lowered_while_the_store_writes_makes_the_file_smaller() {
    let (_place, path) = place();
    let large = StoreSettings { max_bytes: 4 * LEAST_BYTES, ..settings(&path) };
    let (mut store, mut writer) = (Store::open(large, StoreHealth::default()).unwrap(), Writer::new());
    (0..20_000).for_each(|_| writer.write(&mut store, "a/b/c").unwrap());
    store.flush().unwrap();
    store.file.as_mut().unwrap().truncate_wal().unwrap();
    assert!(fs::metadata(&path).unwrap().len() > LEAST_BYTES);
    store.retention().change(&settings(&path));
    (0..10_000).for_each(|_| writer.write(&mut store, "a/b/c").unwrap());
    store.close().unwrap();
    assert!(fs::metadata(&path).unwrap().len() <= LEAST_BYTES);
    assert_eq!(count(&path, "events WHERE sequence = 30000"), 1, "the newest stays");
}

#[test]
fn rows_beyond_their_age_go() {
    let (_place, path) = place();
    let (mut store, mut writer) = (open(&path).unwrap(), Writer::new());
    writer.write(&mut store, "a/b/c").unwrap();
    let (event, line) = writer.event("a/b/old");
    let old = Event { time: Timestamp::from_unix_millis(1_000), ..event };
    store.write(&old, &line).unwrap();
    store.flush().unwrap();
    let file = store.file.as_mut().unwrap();
    file.evict_old(now().unix_millis(), Duration::from_secs(60)).unwrap();
    assert_eq!((count(&path, "events"), count(&path, "events WHERE rule = 'a/b/old'")), (1, 0));
}

#[test]
fn a_removed_file_is_said_and_a_new_one_has_what_comes() {
    let (_place, path) = place();
    let (mut store, mut writer) = (open(&path).unwrap(), Writer::new());
    writer.write(&mut store, "a/b/c").unwrap();
    store.flush().unwrap();
    for end in ["", "-wal", "-shm"] {
        fs::remove_file(format!("{}{end}", path.display())).unwrap();
    }
    writer.write(&mut store, "a/b/c").unwrap();
    assert!(store.flush().unwrap_err().to_string().contains("removed or replaced"));
    assert!(store.health.failure().is_some());
    writer.write(&mut store, "a/b/c").unwrap();
    store.flush().unwrap();
    assert!(store.health.failure().is_none());
    assert_eq!(count(&path, "events"), 1);
}

#[test]
fn a_file_that_is_damaged_while_it_is_open_is_left_as_it_is() {
    for keeps in [0, 23, 5_000] {
        let (_place, path) = place();
        let (mut store, mut writer) = (open(&path).unwrap(), Writer::new());
        (0..2_000).for_each(|_| writer.write(&mut store, "a/b/c").unwrap());
        store.flush().unwrap();
        let file = store.file.as_mut().unwrap();
        file.truncate_wal().unwrap();
        file.length = fs::metadata(&path).unwrap().len();
        OpenOptions::new().write(true).open(&path).unwrap().set_len(keeps).unwrap();
        writer.write(&mut store, "a/b/c").unwrap();
        let said = store.flush().unwrap_err().to_string();
        assert!(said.contains(if keeps == 0 { "was emptied" } else { "shorter than it was" }), "{said}");
        if keeps > 0 {
            writer.write(&mut store, "a/b/c").unwrap();
            assert!(store.flush().is_err(), "{keeps}");
            assert!(store.health.failure().is_some());
            assert_eq!(fs::metadata(&path).unwrap().len(), keeps, "nothing was written into it");
        }
    }
}

#[test]
fn a_file_that_was_damaged_before_the_start_is_refused_and_left_as_it_is() {
    let (_place, path) = place();
    let (mut store, mut writer) = (open(&path).unwrap(), Writer::new());
    (0..2_000).for_each(|_| writer.write(&mut store, "a/b/c").unwrap());
    store.close().unwrap();
    drop(store);
    let mut bytes = fs::read(&path).unwrap();
    bytes[4_096..3 * 4_096].fill(0x5a);
    fs::write(&path, &bytes).unwrap();
    let said = open(&path).unwrap_err().to_string();
    assert!(said.contains("damaged and is left as it is; move it away"), "{said}");
    assert!(fs::read(&path).unwrap() == bytes);
}

#[test]
fn rows_are_counted_once_and_the_counts_stay_true() {
    let (_place, path) = place();
    let (mut store, mut writer) = (open(&path).unwrap(), Writer::new());
    for of in 0..20_000 {
        writer.write(&mut store, if of % 3 == 0 { "a/b/some" } else { "a/b/most" }).unwrap();
        if of == 15_000 {
            let old = Duration::from_secs(0);
            store.file.as_mut().unwrap().evict_old(now().unix_millis() - 500, old).unwrap();
        }
    }
    store.flush().unwrap();
    let file = store.file.as_ref().unwrap();
    assert_eq!(file.shares.as_ref().unwrap(), &Shares::of_all(&file.connection).unwrap());
}

#[test]
fn a_long_wal_is_written_back() {
    let (_place, path) = place();
    let (mut store, mut writer) = (open(&path).unwrap(), Writer::new());
    let mut longest = 0;
    for _ in 0..8_000 {
        writer.write(&mut store, "a/b/c").unwrap();
        let wal = fs::metadata(path.with_file_name("ledger.db-wal"));
        longest = longest.max(wal.map_or(0, |wal| wal.len()));
    }
    assert!(longest > most_wal(LEAST_BYTES) / 2 && longest < 2 * most_wal(LEAST_BYTES), "{longest}");
}

#[test]
fn the_lines_are_read_while_they_are_written_and_byte_for_byte() {
    let (_place, path) = place();
    let (mut store, mut writer) = (open(&path).unwrap(), Writer::new());
    let mut reader = StoreLines::open(&path).unwrap();
    let mut text = Vec::new();
    let mut expected = Vec::new();
    for _ in 0..3 {
        for _ in 0..700 {
            let (event, line) = writer.event("a/b/c");
            store.write(&event, &line).unwrap();
            expected.extend_from_slice(&line);
            expected.push(b'\n');
        }
        store.flush().unwrap();
        io::Read::read_to_end(&mut reader, &mut text).unwrap();
        assert!(text == expected);
    }
}

/// A policy that limits nothing; its revision is told from others.
fn policy() -> Policy {
    Policy::none()
}

fn spent(store: &Store) -> Vec<(Box<str>, u64, u64)> {
    let (_, saved) = store.allowances().changed_since(0);
    saved.into_iter().map(|usage| (usage.credential, usage.tokens, usage.denials)).collect()
}

#[test]
fn what_limits_count_is_written_with_the_event_and_read_by_the_next_start() {
    let (_place, path) = place();
    let (mut store, mut writer) = (open(&path).unwrap(), Writer::new());
    store.allowances().spent(Some("key"), 7, SystemTime::now());
    writer.write(&mut store, "a/b/c").unwrap();
    assert_eq!((count(&path, "events"), count(&path, "spent")), (0, 0));
    store.flush().unwrap();
    assert_eq!((count(&path, "events"), count(&path, "spent")), (1, 1));
    store.allowances().denied(&policy(), Some("key"));
    store.idle().unwrap();
    drop(store);
    assert_eq!(spent(&open(&path).unwrap()), [("key".into(), 7, 1)]);
}

#[test]
fn counts_of_a_day_that_is_over_are_forgotten_but_not_denials() {
    let (_place, path) = place();
    let mut store = open(&path).unwrap();
    let yesterday = SystemTime::now() - Duration::from_secs(25 * 60 * 60);
    for name in ["idle", "stopped"] {
        store.allowances().spent(Some(name), 7, yesterday);
    }
    store.allowances().denied(&policy(), Some("stopped"));
    store.idle().unwrap();
    drop(store);
    let store = open(&path).unwrap();
    assert_eq!(spent(&store), [("stopped".into(), 7, 1)]);
    assert_eq!(store.allowances().used(&policy(), Some("stopped"), SystemTime::now()).tokens_today, 0);
}

#[test]
fn a_new_file_in_the_place_of_a_removed_one_has_all_that_is_counted() {
    let (_place, path) = place();
    let (mut store, mut writer) = (open(&path).unwrap(), Writer::new());
    store.allowances().spent(Some("early"), 7, SystemTime::now());
    store.idle().unwrap();
    for end in ["", "-wal", "-shm"] {
        fs::remove_file(format!("{}{end}", path.display())).unwrap();
    }
    store.allowances().spent(Some("late"), 7, SystemTime::now());
    writer.write(&mut store, "a/b/c").unwrap();
    store.flush().unwrap_err();
    store.idle().unwrap();
    assert_eq!(count(&path, "spent"), 2);
}

#[test]
fn counts_that_cannot_be_read_are_not_taken_for_none() {
    for change in ["tokens = -1", "minute = 'x'", "credential = zeroblob(3)", "revision = zeroblob(9000)"] {
        let (_place, path) = place();
        let mut store = open(&path).unwrap();
        store.allowances().spent(Some("key"), 7, SystemTime::now());
        store.idle().unwrap();
        drop(store);
        Connection::open(&path).unwrap().execute_batch(&format!("UPDATE spent SET {change}")).unwrap();
        let error = open(&path).unwrap_err().to_string();
        assert!(error.contains("what limits have counted") && error.contains("move it away"), "{error}");
    }
}

#[test]
fn a_view_in_the_place_of_the_events_is_not_read() {
    let (_place, path) = place();
    drop(open(&path).unwrap());
    let hostile = Connection::open(&path).unwrap();
    hostile
        .execute_batch("DROP TABLE events; CREATE VIEW events AS SELECT 1 AS n, randomblob(9) AS event")
        .unwrap();
    drop(hostile);
    assert!(matches!(StoreLines::open(&path), Err(StoreError::Altered(_))));
}

#[test]
fn a_row_that_holds_no_line_is_no_event() {
    let (_place, path) = place();
    let (mut store, mut writer) = (open(&path).unwrap(), Writer::new());
    (0..3).for_each(|_| writer.write(&mut store, "a/b/c").unwrap());
    store.close().unwrap();
    drop(store);
    let hostile = Connection::open(&path).unwrap();
    hostile
        .execute_batch(
            "UPDATE events SET event = x'ff' WHERE n = 1; UPDATE events SET event = 'a\nb' WHERE n = 2",
        )
        .unwrap();
    drop(hostile);
    let mut text = String::new();
    io::Read::read_to_string(&mut StoreLines::open(&path).unwrap(), &mut text).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!((lines.len(), lines[0], lines[1]), (3, "{}", "{}"));
}
