//! The examples of RFC 6455, what is no frame, and that cutting never matters.

use bytes::Bytes;
use proptest::prelude::*;

use super::*;

const MOST: usize = 1 << 20;

fn read(sender: Sender, most: usize, pieces: &[&[u8]]) -> (Vec<Message>, Option<WebSocketError>) {
    let mut decoder = Decoder::new(sender, most);
    let mut messages = Vec::new();
    for piece in pieces {
        decoder.push(piece);
        loop {
            match decoder.next_message() {
                Ok(Some(message)) => messages.push(message),
                Ok(None) => break,
                Err(error) => return (messages, Some(error)),
            }
        }
    }
    (messages, None)
}

fn text(text: &'static str) -> Message {
    Message::Text(Bytes::from_static(text.as_bytes()))
}

#[test]
fn the_examples_of_section_5_7_are_read() {
    let hello = [0x81, 0x05, 0x48, 0x65, 0x6c, 0x6c, 0x6f];
    assert_eq!(read(Sender::Server, MOST, &[&hello]).0, [text("Hello")]);
    let masked = [0x81, 0x85, 0x37, 0xfa, 0x21, 0x3d, 0x7f, 0x9f, 0x4d, 0x51, 0x58];
    assert_eq!(read(Sender::Client, MOST, &[&masked]).0, [text("Hello")]);
    let fragments: [&[u8]; 2] = [&[0x01, 0x03, 0x48, 0x65, 0x6c], &[0x80, 0x02, 0x6c, 0x6f]];
    assert_eq!(read(Sender::Server, MOST, &fragments).0, [text("Hello")]);
    let ping = [0x89, 0x05, 0x48, 0x65, 0x6c, 0x6c, 0x6f];
    assert_eq!(read(Sender::Server, MOST, &[&ping]).0, [Message::Ping(Bytes::from_static(b"Hello"))]);
    let long = [&[0x82, 0x7f, 0, 0, 0, 0, 0, 1, 0, 0][..], &[7; 65_536]].concat();
    assert_eq!(read(Sender::Server, MOST, &[&long]).0, [Message::Binary(Bytes::from(vec![7; 65_536]))]);
}

#[test]
fn a_control_frame_may_stand_inside_a_message() {
    let frames: [&[u8]; 3] = [&[0x01, 0x01, b'a'], &[0x89, 0x00], &[0x80, 0x01, b'b']];
    assert_eq!(read(Sender::Server, MOST, &frames).0, [Message::Ping(Bytes::new()), text("ab")]);
}

#[test]
fn what_is_no_frame_of_the_sender_is_an_error() {
    for (frame, error) in [
        (&[0xc1, 0x00][..], WebSocketError::Extension),
        (&[0x83, 0x00], WebSocketError::Opcode),
        (&[0x81, 0x80, 0, 0, 0, 0], WebSocketError::Mask),
        (&[0x81, 0x7e, 0x00, 0x05], WebSocketError::Length),
        (&[0x81, 0x7f, 0, 0, 0, 0, 0, 0, 0xff, 0xff], WebSocketError::Length),
        (&[0x09, 0x00], WebSocketError::Control),
        (&[0x89, 0x7e, 0x00, 0x7e], WebSocketError::Control),
        (&[0x88, 0x01, 0x03], WebSocketError::Control),
        (&[0x80, 0x00], WebSocketError::Sequence),
        (&[0x01, 0x00, 0x81, 0x00], WebSocketError::Sequence),
        (&[0x81, 0x01, 0xff], WebSocketError::Text),
    ] {
        assert_eq!(read(Sender::Server, MOST, &[frame]).1, Some(error), "{frame:?}");
    }
    assert_eq!(read(Sender::Client, MOST, &[&[0x81, 0x00]]).1, Some(WebSocketError::Mask));
}

#[test]
fn a_message_that_is_too_long_is_an_error_before_it_came() {
    assert_eq!(read(Sender::Server, 4, &[&[0x81, 0x05]]).1, Some(WebSocketError::TooLong(4)));
    let fragments: [&[u8]; 2] = [&[0x01, 0x03, b'a', b'b', b'c'], &[0x80, 0x02]];
    assert_eq!(read(Sender::Server, 4, &fragments).1, Some(WebSocketError::TooLong(4)));
    let endless = [0x82, 0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff];
    assert_eq!(read(Sender::Server, MOST, &[&endless]).1, Some(WebSocketError::TooLong(MOST)));
}

#[test]
fn a_reason_for_closing_is_cut_to_what_a_frame_holds() {
    let Message::Close(payload) = Message::close(POLICY_VIOLATION, &"ü".repeat(100)) else { panic!() };
    assert_eq!((payload.len(), &payload[..2]), (124, &[0x03, 0xf0][..]));
}

proptest! {
    #[test]
    fn what_is_written_is_read_however_it_is_cut(
        payloads in prop::collection::vec("[a-zä]{0,300}", 1..5),
        mask in prop::option::of(any::<[u8; 4]>()),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..8),
    ) {
        let messages: Vec<Message> = payloads.into_iter().map(|text| Message::Text(text.into())).collect();
        let bytes: Vec<u8> = messages.iter().flat_map(|message| encode(message, mask)).collect();
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).collect();
        cuts.extend([0, bytes.len()]);
        cuts.sort_unstable();
        let pieces: Vec<&[u8]> = cuts.windows(2).map(|cut| &bytes[cut[0]..cut[1]]).collect();
        let sender = if mask.is_some() { Sender::Client } else { Sender::Server };
        prop_assert_eq!(read(sender, MOST, &pieces), (messages, None));
    }

    #[test]
    fn no_bytes_are_read_otherwise_when_they_come_one_by_one(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let single: Vec<&[u8]> = bytes.chunks(1).collect();
        prop_assert_eq!(read(Sender::Server, 64, &single), read(Sender::Server, 64, &[&bytes]));
    }
}
