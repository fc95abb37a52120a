//! One event as rows of the ledger.

use rusqlite::{Connection, params};

use super::{PendingRow, StoreError};
use crate::event::Event;

const START: &str = "INSERT OR IGNORE INTO starts (start, time, version) VALUES (?1, ?2, ?3)";

const EVENT: &str = "INSERT OR IGNORE INTO events (id, last, start, sequence, time, count, kind, direction, verdict, rule, \
    session, trace, exchange, namespace, pod, host, port, method, path, status, provider, api, model, tool, input_sha256, \
    input_tokens, output_tokens, cache_read_tokens, cache_write_tokens, bytes, event, chain, before) VALUES (?1, ?2, ?3, \
    ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21, ?22, ?23, ?24, ?25, ?26, ?27, ?28, \
    ?29, ?30, ?31, ?32, ?33)";

const FINDING: &str = "INSERT INTO findings (n, detector, kind, confidence, role, location, action) \
    VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)";

/// Adds the start that an event belongs to.
pub(super) fn insert_start(connection: &Connection, event: &Event) -> Result<(), StoreError> {
    let start = event.start.as_ref().map(|start| start.as_bytes().as_slice());
    let version = env!("CARGO_PKG_VERSION");
    connection.prepare_cached(START)?.execute(params![start, number(event.time.unix_millis()), version])?;
    Ok(())
}

/// Adds an event with its findings; an event that is there already is left as it is.
pub(super) fn insert(connection: &Connection, row: &PendingRow) -> Result<(), StoreError> {
    let PendingRow { event, line, before } = row;
    let (workload, to, http) = (event.workload.as_ref(), event.destination.as_ref(), event.http.as_ref());
    let (provider, call, usage) = (event.provider.as_ref(), event.tool_call.as_ref(), event.usage.as_ref());
    let trace = event.trace.map(|trace| format!("{:032x}", u128::from_be_bytes(trace.trace)));
    let model = provider.and_then(|of| of.response_model.as_deref().or(of.model.as_deref()));
    let added = connection.prepare_cached(EVENT)?.execute(params![
        event.id.as_bytes().as_slice(),
        event.last.map(|last| number(last.unix_millis())),
        event.start.as_ref().map(|start| start.as_bytes().as_slice()),
        number(event.sequence),
        number(event.time.unix_millis()),
        number(event.count),
        event.kind.as_str(),
        event.direction.as_str(),
        event.decision.verdict.as_str(),
        event.decision.rule.as_ref().map(|rule| rule.as_str()),
        event.session.as_deref(),
        trace,
        event.exchange.as_ref().map(|id| id.as_bytes().as_slice()),
        workload.map(|of| of.namespace.as_str()),
        workload.map(|of| of.pod.as_str()),
        to.map(|to| to.host.as_str()),
        to.map(|to| to.port),
        http.map(|http| http.method.as_ref()),
        http.map(|http| http.path.as_str()),
        http.and_then(|http| http.status),
        provider.map(|of| of.name.as_ref()),
        provider.map(|of| of.api.as_ref()),
        model,
        call.map(|call| call.name.as_str()),
        call.and_then(|call| call.input_sha256.as_deref()),
        usage.and_then(|usage| usage.input_tokens).map(number),
        usage.and_then(|usage| usage.output_tokens).map(number),
        usage.and_then(|usage| usage.cache_read_tokens).map(number),
        usage.and_then(|usage| usage.cache_write_tokens).map(number),
        event.payload.as_ref().map(|payload| number(payload.bytes)),
        line,
        event.chain.as_ref().map(|chain| chain.as_bytes().as_slice()),
        before.as_ref().map(|chain| chain.as_bytes().as_slice()),
    ])?;
    if added == 0 || event.dlp.is_empty() {
        return Ok(());
    }
    let n = connection.last_insert_rowid();
    for of in &event.dlp {
        let role = of.role.as_deref();
        connection.prepare_cached(FINDING)?.execute(params![
            n,
            of.detector,
            of.kind,
            of.confidence,
            role,
            of.location,
            of.action
        ])?;
    }
    Ok(())
}

/// A number as SQLite has it; what is larger is the largest.
fn number(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}
