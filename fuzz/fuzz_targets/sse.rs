//! Cutting a stream never matters, no byte is lost, and what is called canonical is written as it was received.
#![no_main]

use bytes::Bytes;
use libfuzzer_sys::fuzz_target;
use postern::wire::sse::{Decoder, End, Form, Item, LineEnd, NameLine, TooLong, encode};

const FORMS: [Form; 3] = [
    Form { name: NameLine::Required, comments: true, end: End::Name(&["stop"]) },
    Form { name: NameLine::Absent, comments: true, end: End::Data("[DONE]") },
    Form { name: NameLine::Absent, comments: false, end: End::Body },
];

fuzz_target!(|input: (u8, u8, Vec<u8>, Vec<u16>)| {
    let (form, bound, bytes, cuts) = input;
    let form = FORMS[usize::from(form) % FORMS.len()];
    let bound = 8 + usize::from(bound) * 16;
    let mut cuts: Vec<usize> = cuts.iter().map(|cut| usize::from(*cut) % (bytes.len() + 1)).collect();
    cuts.sort_unstable();
    let (items, outcome, rest) = decode(form, &bytes, &cuts, bound);
    let whole = decode(form, &bytes, &[], bound);
    assert_eq!((&items, outcome), (&whole.0, whole.1), "another split, other events");
    let raw = items.iter().flat_map(|item| item.raw().clone()).chain(rest);
    assert!(raw.eq(bytes), "bytes are lost");
    for item in &items {
        assert!(item.raw().len() <= bound, "more than the bound");
        let Item::Event(event) = item else { continue };
        let Ok(data) = std::str::from_utf8(event.data()) else { continue };
        let line_end = if event.raw.ends_with(b"\r\n") { LineEnd::CrLf } else { LineEnd::Lf };
        let mut written = Vec::new();
        encode(event.name(), data, line_end, &mut written);
        if event.is_canonical() {
            assert_eq!(written, event.raw, "written otherwise");
        }
        let again = decode(form, &written, &[], usize::MAX).0;
        assert!(matches!(&again[..], [Item::Event(_)]), "not one event");
    }
});

fn decode(form: Form, bytes: &[u8], cuts: &[usize], bound: usize) -> (Vec<Item>, Result<(), TooLong>, Bytes) {
    let mut decoder = Decoder::new(form, bound);
    let mut items = Vec::new();
    let mut outcome = Ok(());
    let mut start = 0;
    for end in cuts.iter().copied().chain([bytes.len()]) {
        decoder.push(Bytes::copy_from_slice(&bytes[start..end]));
        drain(&mut decoder, &mut items, &mut outcome);
        start = end;
    }
    decoder.end();
    drain(&mut decoder, &mut items, &mut outcome);
    (items, outcome, decoder.into_rest())
}

fn drain(decoder: &mut Decoder, items: &mut Vec<Item>, outcome: &mut Result<(), TooLong>) {
    loop {
        match decoder.next_item() {
            Ok(Some(item)) => items.push(item),
            Ok(None) => return,
            Err(error) => {
                *outcome = Err(error);
                return;
            }
        }
    }
}
