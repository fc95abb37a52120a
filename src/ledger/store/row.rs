//! One event as rows of the ledger.

use rusqlite::types::{ToSqlOutput, Value, ValueRef};
use rusqlite::{CachedStatement, Connection, params, params_from_iter};

use super::{PendingRow, StoreError};
use crate::event::{Chain, Event, Id};

const START: &str = "INSERT OR IGNORE INTO starts (start, time, version) VALUES (?1, ?2, ?3)";

const EVENT: &str = "INSERT OR IGNORE INTO events (id, last, start, sequence, time, count, kind, direction, verdict, rule, \
    session, trace, exchange, namespace, pod, host, port, method, path, status, provider, api, model, tool, input_sha256, \
    input_tokens, output_tokens, cache_read_tokens, cache_write_tokens, bytes, event, chain, before) VALUES (?1, ?2, ?3, \
    ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21, ?22, ?23, ?24, ?25, ?26, ?27, ?28, \
    ?29, ?30, ?31, ?32, ?33)";

/// The columns of `events` that repeat what the line says, in the order of [`columns`] and of the statement above.
pub(super) const COLUMNS: [&str; 30] = [
    "id",
    "last",
    "start",
    "sequence",
    "time",
    "count",
    "kind",
    "direction",
    "verdict",
    "rule",
    "session",
    "trace",
    "exchange",
    "namespace",
    "pod",
    "host",
    "port",
    "method",
    "path",
    "status",
    "provider",
    "api",
    "model",
    "tool",
    "input_sha256",
    "input_tokens",
    "output_tokens",
    "cache_read_tokens",
    "cache_write_tokens",
    "bytes",
];

const FINDING: &str = "INSERT INTO findings (n, detector, kind, confidence, role, location, action) \
    VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)";

/// Adds the start that an event belongs to.
pub(super) fn insert_start(connection: &Connection, event: &Event) -> Result<(), StoreError> {
    let start = event.start.as_ref().map(|start| start.as_bytes().as_slice());
    let version = env!("CARGO_PKG_VERSION");
    connection.prepare_cached(START)?.execute(params![start, number(event.time.unix_millis()), version])?;
    Ok(())
}

/// What the columns have of an event.
pub(super) fn columns(event: &Event) -> [ToSqlOutput<'_>; COLUMNS.len()] {
    let (workload, to, http) = (event.workload.as_ref(), event.destination.as_ref(), event.http.as_ref());
    let (provider, call, usage) = (event.provider.as_ref(), event.tool_call.as_ref(), event.usage.as_ref());
    let trace = event.trace.map(|trace| format!("{:032x}", u128::from_be_bytes(trace.trace)));
    let model = provider.and_then(|of| of.response_model.as_deref().or(of.model.as_deref()));
    [
        blob(Some(event.id.as_bytes())),
        integer(event.last.map(|last| last.unix_millis())),
        blob(event.start.as_ref().map(Id::as_bytes)),
        integer(Some(event.sequence)),
        integer(Some(event.time.unix_millis())),
        integer(Some(event.count)),
        text(Some(event.kind.as_str())),
        text(Some(event.direction.as_str())),
        text(Some(event.decision.verdict.as_str())),
        text(event.decision.rule.as_ref().map(|rule| rule.as_str())),
        text(event.session.as_deref()),
        ToSqlOutput::Owned(trace.map_or(Value::Null, Value::Text)),
        blob(event.exchange.as_ref().map(Id::as_bytes)),
        text(workload.map(|of| of.namespace.as_str())),
        text(workload.map(|of| of.pod.as_str())),
        text(to.map(|to| to.host.as_str())),
        integer(to.map(|to| to.port.into())),
        text(http.map(|http| http.method.as_ref())),
        text(http.map(|http| http.path.as_str())),
        integer(http.and_then(|http| http.status).map(u64::from)),
        text(provider.map(|of| of.name.as_ref())),
        text(provider.map(|of| of.api.as_ref())),
        text(model),
        text(call.map(|call| call.name.as_str())),
        text(call.and_then(|call| call.input_sha256.as_deref())),
        integer(usage.and_then(|usage| usage.input_tokens)),
        integer(usage.and_then(|usage| usage.output_tokens)),
        integer(usage.and_then(|usage| usage.cache_read_tokens)),
        integer(usage.and_then(|usage| usage.cache_write_tokens)),
        integer(event.payload.as_ref().map(|payload| payload.bytes)),
    ]
}

fn text(value: Option<&str>) -> ToSqlOutput<'_> {
    ToSqlOutput::Borrowed(value.map_or(ValueRef::Null, |text| ValueRef::Text(text.as_bytes())))
}

fn blob<const N: usize>(value: Option<&[u8; N]>) -> ToSqlOutput<'_> {
    ToSqlOutput::Borrowed(value.map_or(ValueRef::Null, |bytes| ValueRef::Blob(bytes)))
}

fn integer(value: Option<u64>) -> ToSqlOutput<'static> {
    ToSqlOutput::Owned(value.map_or(Value::Null, |value| Value::Integer(number(value))))
}

/// The statements that add events, prepared once for all of a transaction.
pub(super) struct Insert<'c> {
    connection: &'c Connection,
    event: CachedStatement<'c>,
}

impl<'c> Insert<'c> {
    pub(super) fn new(connection: &'c Connection) -> Result<Self, StoreError> {
        Ok(Self { connection, event: connection.prepare_cached(EVENT)? })
    }

    /// Adds an event with its findings; one that is there already is left as it is, which the answer says.
    pub(super) fn add(&mut self, row: &PendingRow) -> Result<bool, StoreError> {
        let PendingRow { event, line, before } = row;
        let chains =
            [blob(event.chain.as_ref().map(Chain::as_bytes)), blob(before.as_ref().map(Chain::as_bytes))];
        let values = columns(event).into_iter().chain([text(Some(line))]).chain(chains);
        let added = self.event.execute(params_from_iter(values))?;
        if added == 0 || event.dlp.is_empty() {
            return Ok(added > 0);
        }
        let n = self.connection.last_insert_rowid();
        for of in &event.dlp {
            let role = of.role.as_deref();
            self.connection.prepare_cached(FINDING)?.execute(params![
                n,
                of.detector,
                of.kind,
                of.confidence,
                role,
                of.location,
                of.action
            ])?;
        }
        Ok(true)
    }
}

/// A number as SQLite has it; what is larger is the largest.
fn number(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}
