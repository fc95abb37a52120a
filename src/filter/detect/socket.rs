//! Ends a WebSocket in whose messages a secret is found, before the secret's last byte has gone on (RFC 6455, section 5.2).
//!
//! What an agent sends goes on as it was received: frames are taken apart to be looked at, and held no longer than what is in
//! them.

use std::collections::VecDeque;
use std::sync::Arc;

use bytes::Bytes;

use super::{Settle, StreamedPart, bound_denial};
use crate::call::Denial;
use crate::dlp::{BoundReached, Search, StreamScanner};
use crate::filter::{Refused, Rewrite};

/// The first bytes of a frame: how long its head is.
const LEAST: usize = 2;
/// The bits of a head: the last frame of a message, a control frame, what a frame is, a masked payload, and its length.
const FIN: u8 = 0x80;
const CONTROL: u8 = 0x08;
const OPCODE: u8 = 0x0f;
const CONTINUATION: u8 = 0;
const BINARY: u8 = 2;
const MASKED: u8 = 0x80;
const LENGTH: u8 = 0x7f;

/// So many pieces are held at most: frames may be empty.
const MOST_HELD: usize = 1 << 10;

/// What is searched for, and who decides about it.
pub struct Ruling {
    pub search: Search,
    pub settle: Arc<dyn Settle>,
}

/// Knows the policy in force, which may change while a WebSocket is open.
pub trait InForce: Send {
    /// The ruling in force; none where it has not changed since this was asked last.
    ///
    /// # Errors
    /// Nothing may go on under it.
    fn renewed(&mut self) -> Result<Option<Ruling>, Denial>;
}

/// The search of what an agent sends over one WebSocket.
pub struct SocketDetector {
    in_force: Box<dyn InForce>,
    settle: Arc<dyn Settle>,
    /// Of messages, and of control frames, which may stand between the frames of a message.
    scanners: [Scanned; 2],
    at: At,
    /// What was received and has not gone on.
    held: VecDeque<(Bytes, Part)>,
}

/// A search, and how many bytes it has got.
struct Scanned {
    scanner: StreamScanner,
    seen: u64,
}

/// The payloads that are searched together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Of {
    Messages,
    Controls,
}

/// What a piece is.
#[derive(Clone, Copy)]
enum Part {
    /// The head of a frame.
    Head,
    /// Of payloads, and where in all of them it ends.
    Payload(Of, u64),
}

/// A place in a frame.
enum At {
    /// In its head, of which so much has come.
    Head(Vec<u8>),
    Payload {
        of: Of,
        left: u64,
        mask: [u8; 4],
        next: usize,
        ends: bool,
    },
}

impl SocketDetector {
    pub fn new(Ruling { search, settle }: Ruling, in_force: Box<dyn InForce>) -> Self {
        let scanners = [(); 2].map(|()| {
            let mut scanner = StreamScanner::new(search.clone());
            scanner.begin(false);
            Scanned { scanner, seen: 0 }
        });
        Self { in_force, settle, scanners, at: At::Head(Vec::new()), held: VecDeque::new() }
    }

    fn take(&mut self, chunk: &mut Bytes) -> Result<(), Refused> {
        match &mut self.at {
            At::Head(head) => {
                let missing = length(head).saturating_sub(head.len()).min(chunk.len());
                let piece = chunk.split_to(missing);
                head.extend_from_slice(&piece);
                self.held.push_back((piece, Part::Head));
                if head.len() == length(head) {
                    let first = head.first().copied().unwrap_or_default();
                    self.at = payload(head);
                    self.begin_frame(first)?;
                    return self.end_frame();
                }
                Ok(())
            }
            At::Payload { of, left, mask, next, .. } => {
                let piece = chunk.split_to(usize::try_from(*left).unwrap_or(usize::MAX).min(chunk.len()));
                let mask = mask.iter().cycle().skip(*next);
                let plain: Vec<u8> = piece.iter().zip(mask).map(|(byte, mask)| byte ^ mask).collect();
                *left -= piece.len() as u64;
                *next = (*next + piece.len()) % 4;
                let (of, scanned) = (*of, &mut self.scanners[*of as usize]);
                scanned.seen += piece.len() as u64;
                self.held.push_back((piece, Part::Payload(of, scanned.seen)));
                let written = scanned.scanner.write(&plain);
                self.judge(of, written)?;
                self.end_frame()
            }
        }
    }

    /// A message begins with this frame, unless it goes on with it.
    fn begin_frame(&mut self, first: u8) -> Result<(), Refused> {
        let opcode = first & OPCODE;
        if opcode == CONTINUATION {
            return Ok(());
        }
        if let Some(Ruling { search, settle }) = self.in_force.renewed().map_err(Refused::Denied)? {
            self.settle = settle;
            self.scanners.iter_mut().for_each(|scanned| scanned.scanner.renew(search.clone()));
        }
        let of = if opcode & CONTROL == 0 { Of::Messages } else { Of::Controls };
        // What is no text may be of a binary format all the same.
        self.scanners[of as usize].scanner.begin(opcode == BINARY);
        Ok(())
    }

    /// A frame may have ended, and with it a message.
    fn end_frame(&mut self) -> Result<(), Refused> {
        let At::Payload { of, left: 0, ends, .. } = self.at else { return Ok(()) };
        self.at = At::Head(Vec::new());
        if ends { self.flush(of) } else { Ok(()) }
    }

    fn flush(&mut self, of: Of) -> Result<(), Refused> {
        let flushed = self.scanners[of as usize].scanner.flush();
        self.judge(of, flushed)
    }

    fn judge(&mut self, of: Of, scanned: Result<(), BoundReached>) -> Result<(), Refused> {
        let found = self.scanners[of as usize].scanner.take_findings();
        let denials: Vec<_> =
            found.iter().filter_map(|found| self.settle.settle(StreamedPart::Body, found)).collect();
        match denials.into_iter().next().or_else(|| scanned.err().map(bound_denial)) {
            Some(denial) => Err(Refused::Denied(denial)),
            None => Ok(()),
        }
    }

    /// Lets go what may go on.
    fn release(&mut self, out: &mut Vec<Bytes>) {
        let released = self.scanners.each_ref().map(|scanned| scanned.scanner.released());
        while let Some((bytes, part)) = self.held.front_mut() {
            let waiting = match part {
                Part::Head => 0,
                Part::Payload(of, end) => end.saturating_sub(released[*of as usize]),
            };
            let may_go = bytes.len().saturating_sub(usize::try_from(waiting).unwrap_or(usize::MAX));
            if may_go > 0 {
                out.push(bytes.split_to(may_go));
            }
            if !bytes.is_empty() {
                break;
            }
            self.held.pop_front();
        }
    }
}

/// How long a head is, as far as its first bytes tell.
fn length(head: &[u8]) -> usize {
    let Some(second) = head.get(1) else { return LEAST };
    let extended = match second & LENGTH {
        126 => 2,
        127 => 8,
        _ => 0,
    };
    LEAST + extended + if second & MASKED == 0 { 0 } else { 4 }
}

/// The payload behind a whole head. One without a mask is read as it is, though no server takes it.
fn payload(head: &[u8]) -> At {
    let (first, second) =
        (head.first().copied().unwrap_or_default(), head.get(1).copied().unwrap_or_default());
    let (length, mask) =
        head.get(LEAST..).unwrap_or_default().split_at(length(head) - LEAST - mask_length(second));
    let left = match second & LENGTH {
        126 | 127 => length.iter().fold(0, |left, byte| left << 8 | u64::from(*byte)),
        short => u64::from(short),
    };
    let is_control = first & CONTROL != 0;
    let of = if is_control { Of::Controls } else { Of::Messages };
    let ends = is_control || first & FIN != 0;
    At::Payload { of, left, mask: mask.try_into().unwrap_or_default(), next: 0, ends }
}

fn mask_length(second: u8) -> usize {
    if second & MASKED == 0 { 0 } else { 4 }
}

impl Rewrite for SocketDetector {
    fn write(&mut self, mut chunk: Bytes, out: &mut Vec<Bytes>) -> Result<(), Refused> {
        while !chunk.is_empty() {
            self.take(&mut chunk)?;
            if self.held.len() > MOST_HELD {
                self.let_go(out)?;
            }
        }
        self.release(out);
        Ok(())
    }

    fn finish(&mut self, out: &mut Vec<Bytes>) -> Result<(), Refused> {
        self.let_go(out)
    }

    fn keeps_length(&self) -> bool {
        true
    }

    fn is_holding(&self) -> bool {
        !self.held.is_empty()
    }

    fn let_go(&mut self, out: &mut Vec<Bytes>) -> Result<(), Refused> {
        self.flush(Of::Messages)?;
        self.flush(Of::Controls)?;
        self.release(out);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;
    use crate::dlp::{Detectors, StreamMatch};
    use crate::wire::websocket::{Message, encode};

    #[derive(Debug, Default)]
    struct All(Mutex<usize>);

    impl Settle for All {
        fn settle(&self, _: StreamedPart, _: &StreamMatch) -> Option<Denial> {
            *self.0.lock().unwrap() += 1;
            Some(Denial::builtin("outbound-exfiltration", "a secret"))
        }

        fn small(&self, _: &[u8]) -> Option<Denial> {
            None
        }

        fn named(&self, _: &str) -> Option<Denial> {
            None
        }
    }

    /// Changes nothing, but for what is here.
    #[derive(Default)]
    struct Next(Option<Ruling>);

    impl InForce for Next {
        fn renewed(&mut self) -> Result<Option<Ruling>, Denial> {
            Ok(self.0.take())
        }
    }

    fn detector() -> SocketDetector {
        let search = Arc::clone(Detectors::shared()).into();
        SocketDetector::new(Ruling { search, settle: Arc::new(All::default()) }, Box::new(Next::default()))
    }

    fn secret() -> String {
        ["glp", "at-Ab3dEf6hIj9kLm2nOp5q"].concat()
    }

    fn framed(text: &str) -> Bytes {
        encode(&Message::Text(Bytes::copy_from_slice(text.as_bytes())), Some([1, 2, 3, 4]))
    }

    /// What goes on of bytes in pieces of a size, and whether it is refused.
    fn sent(bytes: &[u8], size: usize) -> (Vec<u8>, bool) {
        let (mut detector, mut out) = (detector(), Vec::new());
        let refused =
            bytes.chunks(size).any(|piece| detector.write(Bytes::copy_from_slice(piece), &mut out).is_err());
        let refused = refused || detector.finish(&mut out).is_err();
        (out.concat(), refused)
    }

    #[test]
    fn messages_go_on_as_they_came_at_any_cut() {
        let long = "some words ".repeat(9_000);
        let all =
            [framed("hello"), framed(&long), framed(""), encode(&Message::Ping(Bytes::new()), Some([9; 4]))]
                .concat();
        for size in [1, 2, 7, 1_000, all.len()] {
            assert_eq!(sent(&all, size), (all.clone(), false), "{size}");
        }
    }

    #[test]
    fn a_message_that_has_ended_is_not_held() {
        let (message, mut detector, mut out) = (framed("hello"), detector(), Vec::new());
        detector.write(message.clone(), &mut out).unwrap();
        assert_eq!((out.concat(), detector.is_holding()), (message.to_vec(), false));
    }

    #[test]
    fn the_last_byte_of_a_secret_never_goes_on() {
        let secret = secret();
        let (first, second) = secret.split_at(12);
        for messages in [
            vec![framed(&format!("it is {secret} here"))],
            vec![framed("before"), framed(first), framed(second)],
            vec![encode(&Message::Ping(Bytes::from(secret.clone())), Some([7; 4]))],
        ] {
            let all = [messages.concat(), framed("more").to_vec()].concat();
            for size in [1, 3, 20, all.len()] {
                let (gone, refused) = sent(&all, size);
                assert!(refused, "{size}");
                assert!(gone.len() < messages.concat().len() && all.starts_with(&gone), "{size}");
            }
        }
    }

    /// A frame with this first byte.
    fn frame(first: u8, payload: &[u8]) -> Vec<u8> {
        let mask = [1, 2, 3, 4];
        let masked = payload.iter().zip(mask.iter().cycle()).map(|(byte, mask)| byte ^ mask);
        [first, MASKED | u8::try_from(payload.len()).unwrap()].into_iter().chain(mask).chain(masked).collect()
    }

    const TEXT: u8 = 1;
    const PING: u8 = 9;

    #[test]
    fn what_stands_between_the_frames_of_a_message_hides_nothing_in_it() {
        let secret = secret();
        let (one, two) = secret.as_bytes().split_at(12);
        for between in [
            frame(FIN | PING, b"."),
            frame(FIN | PING, b" "),
            frame(CONTINUATION, b""),
            [frame(FIN | PING, b"x"), frame(CONTINUATION, b""), frame(FIN | PING, b"")].concat(),
        ] {
            let all = [frame(TEXT, one), between, frame(FIN | CONTINUATION, two)].concat();
            for size in [1, 5, all.len()] {
                let (gone, refused) = sent(&all, size);
                assert!(refused && gone.len() < all.len(), "{size}");
            }
        }
        let pings = [frame(FIN | PING, one), frame(FIN | TEXT, b"a b"), frame(FIN | PING, two)].concat();
        assert!(sent(&pings, pings.len()).1);
    }

    #[test]
    fn zeros_in_one_message_do_not_close_the_eyes_for_the_next() {
        let coded = base64::Engine::encode(&base64::prelude::BASE64_STANDARD, format!("it is {}", secret()));
        for zeros in [frame(FIN | TEXT, &[0; 9]), frame(FIN | BINARY, &[0; 9]), frame(FIN | PING, &[0; 9])] {
            let all = [zeros, frame(FIN | TEXT, coded.as_bytes())].concat();
            assert!(sent(&all, all.len()).1);
        }
        let in_it = frame(FIN | TEXT, format!("\0 {coded}").as_bytes());
        assert!(sent(&in_it, in_it.len()).1, "no text is binary");
    }

    #[test]
    fn frames_without_a_byte_are_held_in_bounds() {
        let (mut detector, mut out) = (detector(), Vec::new());
        detector.write(frame(TEXT, b"an-open-token").into(), &mut out).unwrap();
        let empty = Bytes::from(frame(CONTINUATION, b""));
        for _ in 0..10_000 {
            detector.write(empty.clone(), &mut out).unwrap();
            assert!(detector.held.len() <= MOST_HELD + 1);
        }
        assert!(out.iter().map(Bytes::len).sum::<usize>() > 9_000 * empty.len());
    }

    #[test]
    fn a_message_is_judged_under_the_policy_at_its_beginning() {
        #[derive(Debug)]
        struct Nothing;
        impl Settle for Nothing {
            fn settle(&self, _: StreamedPart, _: &StreamMatch) -> Option<Denial> {
                None
            }
            fn small(&self, _: &[u8]) -> Option<Denial> {
                None
            }
            fn named(&self, _: &str) -> Option<Denial> {
                None
            }
        }
        let search: Search = Arc::clone(Detectors::shared()).into();
        let next = Next(Some(Ruling { search: search.clone(), settle: Arc::new(Nothing) }));
        let mut detector =
            SocketDetector::new(Ruling { search, settle: Arc::new(All::default()) }, Box::new(next));
        let (message, mut out) = (framed(&format!("it is {} here", secret())), Vec::new());
        detector.write(message.clone(), &mut out).unwrap();
        assert_eq!(out.concat(), message);
    }
}
