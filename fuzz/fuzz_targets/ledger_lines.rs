//! Files of events, plain or compressed: read, checked and counted, however they are cut; never a crash, and bounded.
#![no_main]

use std::io::Read;

use libfuzzer_sys::fuzz_target;
use postern::event::Event;
use postern::ledger::lines::{EventLines, NextLine};
use postern::ledger::unpacked::Unpacked;
use postern::ledger::verify::{PlacedLine, Verifier};
use postern::stats::{EventCounter, GroupBy};

/// Gives a few bytes at a time.
struct Cut<'a>(&'a [u8], usize);

impl Read for Cut<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let count = self.1.min(buffer.len()).min(self.0.len());
        let (now, rest) = self.0.split_at(count);
        buffer[..count].copy_from_slice(now);
        self.0 = rest;
        Ok(count)
    }
}

/// Every line, the bytes of a torn one, and whether reading failed.
fn lines(file: impl Read) -> (Vec<Option<Vec<u8>>>, u64, bool) {
    let mut reader = EventLines::new(Unpacked::new(file));
    let (mut lines, mut is_faulty) = (Vec::new(), false);
    loop {
        match reader.read() {
            Ok(NextLine::Line(line)) => lines.push(Some(line.to_vec())),
            Ok(NextLine::TooLong) => lines.push(None),
            Ok(NextLine::End { torn }) => return (lines, torn, is_faulty),
            Err(error) if error.kind() == std::io::ErrorKind::InvalidData => is_faulty = true,
            Err(_) => return (lines, 0, true),
        }
    }
}

fuzz_target!(|data: &[u8]| {
    let (size, file) = data.split_first().unwrap_or((&0, &[]));
    let whole = lines(file);
    let cut = lines(Cut(file, usize::from(*size) + 1));
    assert!(whole.2 == cut.2, "a fault is one however the file is read");
    assert!(whole.2 || whole == cut, "how a file is cut changes nothing");
    let mut verifier = Verifier::new(true);
    let mut counter = EventCounter::new(Some(GroupBy::Tool));
    let events: Vec<(Event, &Vec<u8>)> =
        whole.0.iter().flatten().filter_map(|line| Some((Event::read(line)?, line))).collect();
    let place = || "fuzz.jsonl".to_owned();
    let placed = |(event, line): &(Event, &Vec<u8>), take: &mut dyn FnMut(&PlacedLine<'_>)| {
        take(&PlacedLine { event, line, place: &place, before: None });
    };
    for event in &events {
        placed(event, &mut |line| {
            if let Some(missing) = verifier.take(line) {
                verifier.missing(missing, line);
            }
        });
        counter.take(&event.0);
    }
    events.iter().for_each(|event| placed(event, &mut |line| verifier.compare(line)));
    let report = verifier.report();
    assert!(report.events == events.len() as u64 && report.holds == report.faults.is_empty());
    assert!(counter.report(None, None).events == report.events);
});
