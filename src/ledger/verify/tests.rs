//! Each kind of damage, and its twin that is none.

use super::*;
use crate::decision::{Decision, Verdict};
use crate::event::{Kind, Timestamp};

fn start(n: u8) -> Id {
    Id::new(Timestamp::from_unix_millis(1_795_305_600_000), [n; 10])
}

/// A line as it was written, and its event.
#[derive(Clone)]
struct Written(Event, Vec<u8>);

/// The lines of one start; the last says that the gateway stopped.
fn record(of: u8, count: u64) -> Vec<Written> {
    let mut chain = Chain::BEGIN;
    let line = |sequence: u64| {
        let id = Id::new(Timestamp::from_unix_millis(1_795_305_600_000 + sequence), [of; 10]);
        let mut decision = Decision::of(Verdict::Allow);
        decision.reason = (sequence == count).then(|| "the gateway has stopped; policy x".into());
        let event = Event { sequence, start: Some(start(of)), ..Event::new(id, Kind::Lifecycle, decision) };
        let mut line = serde_json::to_vec(&event).unwrap();
        chain = chain.after(&line);
        chain.append_to(&mut line);
        Written(Event { chain: Some(chain), ..event }, line)
    };
    (1..=count).map(line).collect()
}

fn give(lines: &[Written], mut take: impl FnMut(&PlacedLine<'_>, usize)) {
    for (number, Written(event, line)) in lines.iter().enumerate() {
        let place = || format!("line {}", number + 1);
        take(&PlacedLine { event, line, place: &place, before: None }, number);
    }
}

fn check(verifier: &mut Verifier, lines: &[Written]) {
    give(lines, |line, _| {
        if let Some(missing) = verifier.take(line) {
            verifier.missing(missing, line);
        }
    });
}

fn verify(lines: &[Written]) -> Report {
    let mut verifier = Verifier::new(false);
    check(&mut verifier, lines);
    verifier.report()
}

/// Compares a record with a witness.
fn verify_against(lines: &[Written], witness: &[Written]) -> Report {
    let mut verifier = Verifier::new(true);
    check(&mut verifier, lines);
    give(witness, |line, _| verifier.compare(line));
    verifier.report()
}

/// Rows of a ledger, with their numbers.
fn verify_rows(rows: &[(i64, &Written)], evictions: &[Eviction], starts: &[(u8, bool)]) -> Report {
    let mut verifier = Verifier::new(false);
    let starts = starts.iter().map(|(of, has_ended)| StartRow { start: start(*of), has_ended: *has_ended });
    let mut check = RowCheck::new(evictions, starts.collect());
    for (n, Written(event, line)) in rows {
        let place = || format!("row {n}");
        check.take(*n, &PlacedLine { event, line, place: &place, before: None }, &mut verifier);
    }
    check.finish("ledger.db", &mut verifier);
    verifier.report()
}

#[track_caller]
fn kinds(report: &Report) -> Vec<FaultKind> {
    assert_eq!(report.holds, report.faults.is_empty());
    report.faults.iter().map(|fault| fault.kind).collect()
}

#[test]
fn a_record_that_nobody_touched_holds_and_each_start_begins_anew() {
    let lines = [record(1, 5), record(2, 3)].concat();
    let report = verify(&lines);
    assert_eq!((kinds(&report), report.events, report.chained), (vec![], 8, 8));
    assert!(report.starts.iter().all(|start| start.ended) && report.notes.is_empty(), "{report:?}");
}

#[test]
fn a_changed_line_is_named_once() {
    let mut lines = record(1, 5);
    let at = lines[2].1.iter().position(|byte| *byte == b'A').unwrap();
    lines[2].1[at] = b'B';
    let report = verify(&lines);
    assert_eq!(kinds(&report), [FaultKind::Changed]);
    assert_eq!((report.faults[0].place.as_str(), report.faults[0].sequence), ("line 3", Some(3)));
}

#[test]
fn a_line_whose_chain_was_changed_is_named_once() {
    let mut lines = record(1, 5);
    let Written(event, line) = &mut lines[2];
    event.chain = Some(Chain::from_bytes([7; 32]));
    line.truncate(line.len() - 66);
    line.extend_from_slice("07".repeat(32).as_bytes());
    line.extend_from_slice(b"\"}");
    let report = verify(&lines);
    assert_eq!((kinds(&report), report.faults[0].sequence), (vec![FaultKind::Changed], Some(3)));
}

#[test]
fn a_removed_line_is_missing_and_a_line_behind_it_cannot_be_checked() {
    let mut lines = record(1, 5);
    lines.remove(2);
    let report = verify(&lines);
    assert_eq!((kinds(&report), report.unchecked), (vec![FaultKind::Missing], 1));
    assert!(report.faults[0].message.starts_with("sequence 3 is not there"), "{report:?}");
    assert_eq!(report.starts[0].missing, 1);
}

#[test]
fn the_beginning_of_lines_that_were_rotated_is_a_note() {
    let report = verify(&record(1, 5)[2..]);
    assert_eq!(kinds(&report), []);
    assert_eq!(report.notes, ["the lines begin with sequence 3: what was before is not here"]);
    let second = [record(1, 5), record(2, 5)[2..].to_vec()].concat();
    assert_eq!(kinds(&verify(&second)), [FaultKind::Missing], "a later start has its beginning");
}

#[test]
fn a_line_that_was_moved_or_is_there_twice_is_named() {
    let mut lines = record(1, 5);
    lines.swap(1, 2);
    assert!(kinds(&verify(&lines)).contains(&FaultKind::Moved));
    let twice = [record(1, 5), record(1, 5)[4..].to_vec()].concat();
    assert_eq!(kinds(&verify(&twice)), [FaultKind::Moved]);
}

#[test]
fn a_gateway_that_was_killed_or_runs_is_a_note() {
    let report = verify(&record(1, 5)[..4]);
    assert_eq!(kinds(&report), []);
    assert!(report.notes[0].contains("did not end in order, as far as sequence 4"), "{report:?}");
}

#[test]
fn the_tail_of_a_start_that_ended_is_cut_and_of_one_that_was_killed_is_not() {
    let lines = record(1, 5);
    let rows: Vec<(i64, &Written)> = (1..).zip(&lines).take(3).collect();
    assert_eq!(kinds(&verify_rows(&rows, &[], &[(1, true)])), [FaultKind::Cut]);
    assert_eq!(kinds(&verify_rows(&rows, &[], &[(1, false)])), []);
    let evicted = [Eviction { first: 4, last: 5, rows: 2 }];
    assert_eq!(kinds(&verify_rows(&rows, &evicted, &[(1, true)])), [], "retention took it");
    assert_eq!(kinds(&verify_rows(&[], &[], &[(1, true)])), [FaultKind::Cut], "every row was removed");
}

#[test]
fn rows_that_retention_took_are_explained_and_others_are_not() {
    let lines = record(1, 9);
    let rows: Vec<(i64, &Written)> = (1..).zip(&lines).filter(|(n, _)| ![3, 4, 6].contains(n)).collect();
    let evictions = |rows| [Eviction { first: 3, last: 6, rows }];
    let report = verify_rows(&rows, &evictions(3), &[(1, true)]);
    assert_eq!((kinds(&report), report.starts[0].evicted), (vec![], 3));
    assert_eq!(
        kinds(&verify_rows(&rows, &evictions(2), &[(1, true)])),
        [FaultKind::Missing],
        "one more is gone"
    );
    let other = [Eviction { first: 3, last: 4, rows: 3 }];
    assert_eq!(kinds(&verify_rows(&rows, &other, &[(1, true)])), [FaultKind::Missing], "none from there");
    assert_eq!(kinds(&verify_rows(&rows, &[], &[(1, true)])), [FaultKind::Missing; 2]);
}

#[test]
fn numbers_of_rows_that_are_used_again_after_retention_took_all_are_explained() {
    let lines = record(1, 9);
    let rows: Vec<(i64, &Written)> = (1..).zip(&lines[5..]).collect();
    let evicted = [Eviction { first: 1, last: 5, rows: 5 }];
    assert_eq!(kinds(&verify_rows(&rows, &evicted, &[(1, true)])), []);
    assert_eq!(kinds(&verify_rows(&rows, &[], &[(1, true)])), [FaultKind::Missing]);
}

#[test]
fn a_start_that_the_ledger_does_not_know_is_named() {
    let lines = record(1, 2);
    let rows: Vec<(i64, &Written)> = (1..).zip(&lines).collect();
    assert_eq!(kinds(&verify_rows(&rows, &[], &[])), [FaultKind::Missing]);
    assert_eq!(kinds(&verify_rows(&rows, &[], &[(1, true)])), []);
}

#[test]
fn a_record_that_was_written_anew_holds_alone_and_not_beside_its_witness() {
    let witness = record(1, 5);
    let mut anew = Vec::new();
    let mut chain = Chain::BEGIN;
    for Written(event, _) in &witness {
        let mut event = event.clone();
        event.decision = if event.sequence == 2 { Decision::of(Verdict::Audit) } else { event.decision };
        event.chain = None;
        let mut line = serde_json::to_vec(&event).unwrap();
        chain = chain.after(&line);
        chain.append_to(&mut line);
        anew.push(Written(Event { chain: Some(chain), ..event }, line));
    }
    assert_eq!(kinds(&verify(&anew)), []);
    let report = verify_against(&anew, &witness);
    assert_eq!((kinds(&report).first(), report.faults.len()), (Some(&FaultKind::Rewritten), 4));
    let report = verify_against(&witness, &witness[1..4]);
    assert_eq!((kinds(&report), report.witness.unwrap().same), (vec![], 3), "the twin: a part of it");
}

#[test]
fn beside_a_witness_a_tail_that_was_cut_shows_and_an_open_batch_that_was_lost_is_a_note() {
    let witness = record(1, 600);
    let report = verify_against(&witness[..400], &witness[..599]);
    assert_eq!(kinds(&report), [], "killed within a batch");
    assert!(report.notes.iter().any(|note| note.contains("its last 199 lines left it")), "{report:?}");
    assert_eq!(kinds(&verify_against(&witness[..100], &witness)), [FaultKind::Missing], "more than a batch");
}

#[test]
fn beside_a_witness_a_start_that_was_taken_out_whole_shows() {
    let (first, second, third) = (record(1, 3), record(2, 3), record(3, 3));
    let report = verify_against(&[first.clone(), third].concat(), &[first.clone(), second].concat());
    assert_eq!(kinds(&report), [FaultKind::Missing]);
    let other = record(9, 3);
    assert_eq!(
        kinds(&verify_against(&first, &other)).last(),
        Some(&FaultKind::Rewritten),
        "nothing of it is there"
    );
}

#[test]
fn events_without_a_chain_are_not_said_to_hold() {
    let bare =
        |written: &Written| Written(Event { chain: None, start: None, ..written.0.clone() }, b"{}".to_vec());
    let none: Vec<Written> = record(1, 3).iter().map(bare).collect();
    assert_eq!(kinds(&verify(&none)), [FaultKind::Changed]);
    let some = [none, record(1, 3)].concat();
    let report = verify(&some);
    assert_eq!((kinds(&report), report.without_chain), (vec![], 3));
    assert_eq!(report.notes, ["3 events have no chain and are not checked"]);
}
