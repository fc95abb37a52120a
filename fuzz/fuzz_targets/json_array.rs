//! Cutting an array never matters, no byte is lost, and what serde_json reads as objects is split into the same.
#![no_main]

use bytes::Bytes;
use libfuzzer_sys::fuzz_target;
use postern::wire::json_array::{Decoder, Item, JsonArrayError};
use serde_json::{Map, Value};

fuzz_target!(|input: (u8, Vec<u8>, Vec<u16>)| {
    let (bound, mut bytes, cuts) = input;
    bytes.insert(0, b'[');
    let bound = 4 + usize::from(bound) * 16;
    let mut cuts: Vec<usize> = cuts.iter().map(|cut| usize::from(*cut) % (bytes.len() + 1)).collect();
    cuts.sort_unstable();
    let (items, outcome, rest) = decode(&bytes, &cuts, bound);
    let whole = decode(&bytes, &[], bound);
    assert_eq!((&items, outcome, &rest), (&whole.0, whole.1, &whole.2), "another split, other elements");
    let parts = items.iter().flat_map(|item| match item {
        Item::Element { before, json } => [before.clone(), json.clone()],
        Item::Close(part) | Item::Space(part) => [part.clone(), Bytes::new()],
    });
    assert!(parts.flatten().chain(rest).eq(bytes.iter().copied()), "bytes are lost");

    let Ok(expected) = serde_json::from_slice::<Vec<Map<String, Value>>>(&bytes) else { return };
    let (items, outcome, _) = decode(&bytes, &[], usize::MAX);
    assert_eq!(outcome, Ok(()));
    let objects = items.iter().filter_map(|item| match item {
        Item::Element { json, .. } => Some(serde_json::from_slice(json).expect("an object")),
        Item::Close(_) | Item::Space(_) => None,
    });
    assert_eq!(objects.collect::<Vec<Map<String, Value>>>(), expected);
});

fn decode(bytes: &[u8], cuts: &[usize], bound: usize) -> (Vec<Item>, Result<(), JsonArrayError>, Bytes) {
    let mut decoder = Decoder::new(bound);
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

fn drain(decoder: &mut Decoder, items: &mut Vec<Item>, outcome: &mut Result<(), JsonArrayError>) {
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
