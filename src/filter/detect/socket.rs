//! Ends a WebSocket in whose messages a secret is found, before the secret's last byte has gone on (RFC 6455, section 5.2).
//!
//! What an agent sends goes on as it was received: frames are taken apart to be looked at, and held no longer than what is in
//! them.

use std::collections::VecDeque;
use std::sync::Arc;

use bytes::Bytes;

use super::{Settle, bound_denial};
use crate::dlp::{BoundReached, Search, StreamScanner};
use crate::filter::{Refused, Rewrite};

/// The first bytes of a frame: how long its head is.
const LEAST: usize = 2;
/// The bits of a head: the last frame of a message, a control frame, a masked payload, and its length.
const FIN: u8 = 0x80;
const CONTROL: u8 = 0x08;
const MASKED: u8 = 0x80;
const LENGTH: u8 = 0x7f;

/// The search of what an agent sends over one WebSocket.
pub struct SocketDetector {
    settle: Arc<dyn Settle>,
    scanner: StreamScanner,
    at: At,
    /// What was received and has not gone on, each with where in all payloads it ends; none where it is the head of a frame.
    held: VecDeque<(Bytes, Option<u64>)>,
    /// How many bytes of payloads the scanner has got.
    seen: u64,
}

/// A place in a frame.
enum At {
    /// In its head, of which so much has come.
    Head(Vec<u8>),
    Payload {
        left: u64,
        mask: [u8; 4],
        next: usize,
        ends: bool,
    },
}

impl SocketDetector {
    pub fn new(search: Search, settle: Arc<dyn Settle>) -> Self {
        let scanner = StreamScanner::new(search);
        Self { settle, scanner, at: At::Head(Vec::new()), held: VecDeque::new(), seen: 0 }
    }

    fn take(&mut self, chunk: &mut Bytes) -> Result<(), Refused> {
        match &mut self.at {
            At::Head(head) => {
                let missing = length(head).saturating_sub(head.len()).min(chunk.len());
                let piece = chunk.split_to(missing);
                head.extend_from_slice(&piece);
                self.held.push_back((piece, None));
                if head.len() == length(head) {
                    self.at = payload(head);
                    return self.end_frame();
                }
                Ok(())
            }
            At::Payload { left, mask, next, .. } => {
                let piece = chunk.split_to(usize::try_from(*left).unwrap_or(usize::MAX).min(chunk.len()));
                let mask = mask.iter().cycle().skip(*next);
                let plain: Vec<u8> = piece.iter().zip(mask).map(|(byte, mask)| byte ^ mask).collect();
                *left -= piece.len() as u64;
                *next = (*next + piece.len()) % 4;
                self.seen += piece.len() as u64;
                self.held.push_back((piece, Some(self.seen)));
                let scanned = self.scanner.write(&plain);
                self.judge(scanned)?;
                self.end_frame()
            }
        }
    }

    /// A frame may have ended, and with it a message.
    fn end_frame(&mut self) -> Result<(), Refused> {
        let At::Payload { left: 0, ends, .. } = self.at else { return Ok(()) };
        self.at = At::Head(Vec::new());
        if ends { self.flush() } else { Ok(()) }
    }

    fn flush(&mut self) -> Result<(), Refused> {
        let flushed = self.scanner.flush();
        self.judge(flushed)
    }

    fn judge(&mut self, scanned: Result<(), BoundReached>) -> Result<(), Refused> {
        let found = self.scanner.take_findings();
        let denials: Vec<_> = found.iter().filter_map(|found| self.settle.settle(found)).collect();
        match denials.into_iter().next().or_else(|| scanned.err().map(bound_denial)) {
            Some(denial) => Err(Refused::Denied(denial)),
            None => Ok(()),
        }
    }

    /// Lets go what may go on.
    fn release(&mut self, out: &mut Vec<Bytes>) {
        let released = self.scanner.released();
        while let Some((bytes, end)) = self.held.front_mut() {
            let waiting =
                end.map_or(0, |end| usize::try_from(end.saturating_sub(released)).unwrap_or(usize::MAX));
            let may_go = bytes.len().saturating_sub(waiting);
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
    let ends = first & FIN != 0 || first & CONTROL != 0;
    At::Payload { left, mask: mask.try_into().unwrap_or_default(), next: 0, ends }
}

fn mask_length(second: u8) -> usize {
    if second & MASKED == 0 { 0 } else { 4 }
}

impl Rewrite for SocketDetector {
    fn write(&mut self, mut chunk: Bytes, out: &mut Vec<Bytes>) -> Result<(), Refused> {
        while !chunk.is_empty() {
            self.take(&mut chunk)?;
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
        self.flush()?;
        self.release(out);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;
    use crate::call::Denial;
    use crate::dlp::{Detectors, StreamMatch};
    use crate::wire::websocket::{Message, encode};

    #[derive(Debug, Default)]
    struct All(Mutex<usize>);

    impl Settle for All {
        fn settle(&self, _: &StreamMatch) -> Option<Denial> {
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

    fn secret() -> String {
        ["glp", "at-Ab3dEf6hIj9kLm2nOp5q"].concat()
    }

    fn framed(text: &str) -> Bytes {
        encode(&Message::Text(Bytes::copy_from_slice(text.as_bytes())), Some([1, 2, 3, 4]))
    }

    /// What goes on of bytes in pieces of a size, and whether it is refused.
    fn sent(bytes: &[u8], size: usize) -> (Vec<u8>, bool) {
        let mut detector =
            SocketDetector::new(Arc::clone(Detectors::shared()).into(), Arc::new(All::default()));
        let mut out = Vec::new();
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
        let mut detector =
            SocketDetector::new(Arc::clone(Detectors::shared()).into(), Arc::new(All::default()));
        let (message, mut out) = (framed("hello"), Vec::new());
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
}
