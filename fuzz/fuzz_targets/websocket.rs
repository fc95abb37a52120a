//! Cutting what one side sends never matters, and a message that is read is read again as it is written.
#![no_main]

use libfuzzer_sys::fuzz_target;
use postern::wire::websocket::{Decoder, Message, Sender, WebSocketError, encode};

const MOST: usize = 4096;

fuzz_target!(|input: (bool, Vec<u8>, Vec<u16>)| {
    let (client, bytes, cuts) = input;
    let sender = if client { Sender::Client } else { Sender::Server };
    let mut cuts: Vec<usize> = cuts.iter().map(|cut| usize::from(*cut) % (bytes.len() + 1)).collect();
    cuts.sort_unstable();
    let (messages, outcome) = decode(sender, &bytes, &cuts);
    assert_eq!((&messages, outcome), (&decode(sender, &bytes, &[]).0, decode(sender, &bytes, &[]).1));
    for message in messages {
        let written = encode(&message, client.then_some([1, 2, 3, 4]));
        assert_eq!(decode(sender, &written, &[]), (vec![message], Ok(())), "read otherwise");
    }
});

fn decode(sender: Sender, bytes: &[u8], cuts: &[usize]) -> (Vec<Message>, Result<(), WebSocketError>) {
    let mut decoder = Decoder::new(sender, MOST);
    let mut messages = Vec::new();
    let mut start = 0;
    for end in cuts.iter().copied().chain([bytes.len()]) {
        decoder.push(&bytes[start..end]);
        loop {
            match decoder.next_message() {
                Ok(Some(message)) => messages.push(message),
                Ok(None) => break,
                Err(error) => return (messages, Err(error)),
            }
        }
        start = end;
    }
    (messages, Ok(()))
}
