//! Frames of RFC 6455, broken ones of every kind, and any message cut in any pieces.

use bytes::Bytes;
use proptest::prelude::*;

use super::*;

const MOST: usize = 1 << 17;

/// All messages of these bytes, and why there are no more.
fn read(sender: Sender, pieces: &[&[u8]]) -> (Vec<Message>, Result<(), Violation>) {
    let mut decoder = Decoder::new(sender, MOST);
    let mut messages = Vec::new();
    for (number, piece) in pieces.iter().enumerate() {
        decoder.push(Bytes::copy_from_slice(piece));
        if number + 1 == pieces.len() {
            decoder.end();
        }
        loop {
            match decoder.next_message() {
                Ok(Some(message)) => messages.push(message),
                Ok(None) => break,
                Err(violation) => {
                    assert_eq!(decoder.next_message(), Err(violation));
                    return (messages, Err(violation));
                }
            }
        }
    }
    (messages, Ok(()))
}

fn text(text: &'static str) -> Message {
    Message::Text(Bytes::from_static(text.as_bytes()))
}

fn ok(sender: Sender, bytes: &[u8], expected: &[Message]) {
    assert_eq!(read(sender, &[bytes]), (expected.to_vec(), Ok(())), "{bytes:02x?}");
    let single: Vec<&[u8]> = bytes.chunks(1).collect();
    assert_eq!(read(sender, &single), (expected.to_vec(), Ok(())), "byte by byte");
}

fn violates(sender: Sender, bytes: &[u8], violation: Violation) {
    assert_eq!(read(sender, &[bytes]).1, Err(violation), "{bytes:02x?}");
    let single: Vec<&[u8]> = bytes.chunks(1).collect();
    assert_eq!(read(sender, &single).1, Err(violation), "byte by byte");
}

#[test]
fn the_examples_of_the_rfc_are_read() {
    use Sender::{Client, Server};
    ok(Server, &[0x81, 5, b'H', b'e', b'l', b'l', b'o'], &[text("Hello")]);
    ok(Client, &[0x81, 0x85, 0x37, 0xfa, 0x21, 0x3d, 0x7f, 0x9f, 0x4d, 0x51, 0x58], &[text("Hello")]);
    ok(Server, &[0x01, 3, b'H', b'e', b'l', 0x80, 2, b'l', b'o'], &[text("Hello")]);
    ok(Server, &[0x89, 5, b'H', b'e', b'l', b'l', b'o'], &[Message::Ping(Bytes::from_static(b"Hello"))]);
    let long = [&[0x82, 126, 1, 0][..], &[7; 256]].concat();
    ok(Server, &long, &[Message::Binary(Bytes::from(vec![7; 256]))]);
    let longer = [&[0x82, 127, 0, 0, 0, 0, 0, 1, 0, 0][..], &[7; 65536]].concat();
    assert_eq!(read(Server, &[&longer]).0, [Message::Binary(Bytes::from(vec![7; 65536]))]);
}

#[test]
fn control_frames_come_between_fragments() {
    let bytes = [0x01, 1, b'a', 0x89, 1, b'x', 0x80, 1, b'b', 0x88, 2, 0x03, 0xe8];
    let close = Close { code: 1000, reason: String::new() };
    let expected = [Message::Ping(Bytes::from_static(b"x")), text("ab"), Message::Close(Some(close))];
    ok(Sender::Server, &bytes, &expected);
    ok(Sender::Server, &[0x88, 0], &[Message::Close(None)]);
}

#[test]
fn what_the_rfc_forbids_is_refused() {
    use Sender::{Client, Server};
    for (bytes, violation) in [
        (&[0xc1, 0][..], Violation::Reserved),
        (&[0xa1, 0], Violation::Reserved),
        (&[0x91, 0], Violation::Reserved),
        (&[0x83, 0], Violation::Opcode),
        (&[0x8b, 0], Violation::Opcode),
        (&[0x81, 0x80, 0, 0, 0, 0], Violation::Mask),
        (&[0x81, 126, 0, 125], Violation::Length),
        (&[0x81, 127, 0, 0, 0, 0, 0, 0, 0xff, 0xff], Violation::Length),
        (&[0x81, 127, 0x80, 0, 0, 0, 0, 0, 0, 0], Violation::Length),
        (&[0x09, 0], Violation::Control),
        (&[0x89, 126, 0, 126], Violation::Control),
        (&[0x80, 0], Violation::Fragment),
        (&[0x01, 0, 0x81, 0], Violation::Fragment),
        (&[0x81, 1, 0xff], Violation::Text),
        (&[0x88, 1, 3], Violation::Close),
        (&[0x88, 2, 3, 0xed], Violation::Close),
        (&[0x88, 2, 0, 0], Violation::Close),
        (&[0x88, 3, 3, 0xe8, 0xff], Violation::Text),
        (&[0x88, 0, 0x89, 0], Violation::AfterClose),
        (&[0x81, 2, b'a'], Violation::Truncated),
        (&[0x01, 1, b'a'], Violation::Truncated),
        (&[0x81], Violation::Truncated),
    ] {
        violates(Server, bytes, violation);
    }
    violates(Client, &[0x81, 0], Violation::Mask);
}

#[test]
fn text_may_be_cut_inside_a_character() {
    let bytes = [0x01, 1, 0xc3, 0x80, 1, 0xa9];
    ok(Sender::Server, &bytes, &[text("é")]);
}

#[test]
fn a_message_over_the_bound_is_refused_by_its_length_alone() {
    let length = (MOST as u64 + 1).to_be_bytes();
    let head = [&[0x82, 127][..], &length].concat();
    assert_eq!(read(Sender::Server, &[&head]).1, Err(Violation::TooLong(MOST)));
    let fragment = [&[0x02, 127][..], &(MOST as u64).to_be_bytes(), &vec![0; MOST], &[0x80, 1]].concat();
    assert_eq!(read(Sender::Server, &[&fragment]).1, Err(Violation::TooLong(MOST)));
    let empty = [&[0x02, 0][..], &[0x00, 0].repeat(1 << 16)].concat();
    assert_eq!(read(Sender::Server, &[&empty]).1, Err(Violation::TooMany(1 << 16)));
    // Bytes of a control frame do not count.
    let full =
        [&[0x02, 127][..], &(MOST as u64).to_be_bytes(), &vec![0; MOST], &[0x89, 1, 0, 0x80, 0]].concat();
    assert_eq!(read(Sender::Server, &[&full]).0.len(), 2);
}

#[test]
fn what_is_too_long_for_a_control_frame_is_cut() {
    let mut output = Vec::new();
    encode(&Message::Close(Some(Close { code: 1008, reason: "é".repeat(100) })), None, &mut output);
    let close = Close { code: 1008, reason: "é".repeat(61) };
    ok(Sender::Server, &output, &[Message::Close(Some(close))]);
    let mut output = Vec::new();
    encode_ping(&mut output);
    assert_eq!(output, [0x89, 0]);
}

fn messages() -> impl Strategy<Value = Message> {
    let bytes = || prop::collection::vec(any::<u8>(), 0..300).prop_map(Bytes::from);
    let control = || prop::collection::vec(any::<u8>(), 0..=125).prop_map(Bytes::from);
    prop_oneof![
        any::<String>().prop_map(|text| Message::Text(Bytes::from(text))),
        bytes().prop_map(Message::Binary),
        control().prop_map(Message::Ping),
        control().prop_map(Message::Pong),
    ]
}

proptest! {
    #[test]
    fn messages_come_out_as_they_went_in_however_they_are_cut(
        messages in prop::collection::vec(messages(), 0..8),
        key in prop::option::of(any::<[u8; 4]>()),
        piece in 1..50usize,
    ) {
        let mut bytes = Vec::new();
        messages.iter().for_each(|message| encode(message, key, &mut bytes));
        let sender = if key.is_some() { Sender::Client } else { Sender::Server };
        let pieces: Vec<&[u8]> = bytes.chunks(piece).collect();
        prop_assert_eq!(read(sender, &pieces), (messages.clone(), Ok(())));
        prop_assert_eq!(read(sender, &[&bytes]), (messages, Ok(())));
    }

    #[test]
    fn any_bytes_are_read_alike_however_they_are_cut(
        bytes in prop::collection::vec(any::<u8>(), 0..100),
        piece in 1..20usize,
    ) {
        for sender in [Sender::Client, Sender::Server] {
            let pieces: Vec<&[u8]> = bytes.chunks(piece).collect();
            let pieces = if pieces.is_empty() { vec![&bytes[..]] } else { pieces };
            prop_assert_eq!(read(sender, &pieces), read(sender, &[&bytes]));
        }
    }
}
