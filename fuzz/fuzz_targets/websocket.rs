//! Cutting a WebSocket's bytes never matters, and messages that are written anew are read as the same.
#![no_main]

use bytes::Bytes;
use libfuzzer_sys::fuzz_target;
use postern::wire::websocket::{Decoder, Message, Sender, Violation, encode};

fuzz_target!(|input: (bool, u16, Vec<u8>, Vec<u16>)| {
    let (is_client, bound, bytes, cuts) = input;
    let sender = if is_client { Sender::Client } else { Sender::Server };
    let bound = usize::from(bound);
    let mut cuts: Vec<usize> = cuts.iter().map(|cut| usize::from(*cut) % (bytes.len() + 1)).collect();
    cuts.sort_unstable();
    let (messages, outcome) = decode(sender, bound, &bytes, &cuts);
    let whole = decode(sender, bound, &bytes, &[]);
    assert_eq!((&messages, outcome), (&whole.0, whole.1), "another split, other messages");

    let mut anew = Vec::new();
    for message in &messages {
        encode(message, is_client.then_some([1, 2, 3, 4]), &mut anew);
    }
    assert_eq!(decode(sender, bound, &anew, &cuts), (messages, Ok(())));
});

fn decode(
    sender: Sender,
    bound: usize,
    bytes: &[u8],
    cuts: &[usize],
) -> (Vec<Message>, Result<(), Violation>) {
    let mut decoder = Decoder::new(sender, bound);
    let mut messages = Vec::new();
    let mut outcome = Ok(());
    let mut start = 0;
    for end in cuts.iter().copied().filter(|cut| *cut <= bytes.len()).chain([bytes.len()]) {
        decoder.push(Bytes::copy_from_slice(&bytes[start..end]));
        drain(&mut decoder, &mut messages, &mut outcome);
        assert!(decoder.held() <= bytes.len(), "more is held than came");
        start = end;
    }
    decoder.end();
    drain(&mut decoder, &mut messages, &mut outcome);
    (messages, outcome)
}

fn drain(decoder: &mut Decoder, messages: &mut Vec<Message>, outcome: &mut Result<(), Violation>) {
    loop {
        match decoder.next_message() {
            Ok(Some(message)) => messages.push(message),
            Ok(None) => return,
            Err(violation) => {
                *outcome = Err(violation);
                return;
            }
        }
    }
}
