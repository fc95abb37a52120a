//! The socket to nf_tables in the kernel: sends a batch or a request, and reads the answer.

use std::io::{self, Read};
use std::time::Duration;

use socket2::{Domain, Protocol, Socket, Type};

use super::message::{Batch, FAMILY_HEADER, HEADER};
use super::ruleset::ListedObject;

/// AF_NETLINK and NETLINK_NETFILTER.
const NETLINK: i32 = 16;
const NETFILTER: i32 = 12;

/// NLMSG_ERROR (0 is success) and NLMSG_DONE.
const ERROR: u16 = 2;
const DONE: u16 = 3;
/// NLM_F_DUMP_INTR: rules changed while they were read.
const INTERRUPTED: u16 = 0x10;

/// More than the kernel puts into one answer.
const ANSWER_BYTES: usize = 64 * 1024;
/// How often rules are read again that change while they are read.
const ATTEMPTS: usize = 10;
/// The kernel answers at once; this is for one that does not.
const PATIENCE: Duration = Duration::from_secs(10);

/// Why a batch was not carried out. The kernel applies a batch whole or not at all.
#[derive(Debug)]
pub(super) struct BatchRefused {
    /// The operation that the kernel refused; none where the request did not reach it.
    pub(super) at: Option<String>,
    pub(super) source: io::Error,
}

/// Sends a batch, and waits for its result.
///
/// # Errors
/// The kernel's refusal, with the operation that it refused.
pub(super) fn carry_out(batch: &Batch) -> Result<(), BatchRefused> {
    let unasked = |source| BatchRefused { at: None, source };
    let socket = open().map_err(unasked)?;
    socket.send(batch.bytes()).map_err(unasked)?;
    // Only the last operation asks for an acknowledgement, and errors are sent before it: the first message decides.
    let mut buffer = vec![0; ANSWER_BYTES];
    let length = (&socket).read(&mut buffer).map_err(unasked)?;
    let first = NetlinkMessages(buffer.get(..length).unwrap_or_default()).next();
    match first {
        Some(NetlinkMessage { kind: ERROR, number, payload, .. }) => match failure(payload) {
            None if number == batch.last() => Ok(()),
            None => Err(unasked(unexpected())),
            Some(source) => Err(BatchRefused { at: Some(batch.label(number).to_owned()), source }),
        },
        _ => Err(unasked(unexpected())),
    }
}

/// Lists the objects that a request asks for, read without a change in between.
///
/// # Errors
/// The kernel refuses, or the rules do not come to rest.
pub(super) fn list(request: &[u8]) -> io::Result<Vec<ListedObject>> {
    for _ in 0..ATTEMPTS {
        if let Some(answers) = list_once(request)? {
            return Ok(answers);
        }
    }
    Err(io::Error::other("somebody keeps changing the rules while they are read"))
}

/// The objects of one listing; none where the rules changed meanwhile.
fn list_once(request: &[u8]) -> io::Result<Option<Vec<ListedObject>>> {
    let socket = open()?;
    socket.send(request)?;
    let mut answers = Vec::new();
    let mut changed = false;
    let mut buffer = vec![0; ANSWER_BYTES];
    loop {
        let length = (&socket).read(&mut buffer)?;
        if length == 0 {
            return Err(unexpected());
        }
        for message in NetlinkMessages(buffer.get(..length).unwrap_or_default()) {
            changed |= message.flags & INTERRUPTED != 0;
            match (message.kind, message.payload.split_first_chunk::<FAMILY_HEADER>()) {
                // A listing ends by DONE, whose payload begins with an error number too.
                (DONE | ERROR, _) => {
                    return match failure(message.payload) {
                        None => Ok((!changed).then_some(answers)),
                        Some(error) => Err(error),
                    };
                }
                (_, Some(([family, ..], attributes))) => {
                    answers.push(ListedObject { family: *family, attributes: attributes.to_vec() });
                }
                (_, None) => return Err(unexpected()),
            }
        }
    }
}

fn open() -> io::Result<Socket> {
    let socket = Socket::new(Domain::from(NETLINK), Type::RAW, Some(Protocol::from(NETFILTER)))?;
    socket.set_read_timeout(Some(PATIENCE))?;
    Ok(socket)
}

/// Reads the first field of `struct nlmsgerr`: 0, or a negated error number.
fn failure(payload: &[u8]) -> Option<io::Error> {
    let code = payload.first_chunk().copied().map_or(0, i32::from_ne_bytes);
    (code != 0).then(|| io::Error::from_raw_os_error(code.saturating_neg()))
}

fn unexpected() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "the kernel's answer cannot be read")
}

struct NetlinkMessage<'a> {
    kind: u16,
    flags: u16,
    number: u32,
    payload: &'a [u8],
}

/// The messages of one answer, up to the first with a wrong length.
struct NetlinkMessages<'a>(&'a [u8]);

impl<'a> Iterator for NetlinkMessages<'a> {
    type Item = NetlinkMessage<'a>;

    fn next(&mut self) -> Option<NetlinkMessage<'a>> {
        let ([l0, l1, l2, l3, k0, k1, f0, f1, n0, n1, n2, n3, ..], _) =
            self.0.split_first_chunk::<HEADER>()?;
        let length = usize::try_from(u32::from_ne_bytes([*l0, *l1, *l2, *l3])).ok()?;
        let payload = self.0.get(HEADER..length)?;
        self.0 = self.0.get(length.next_multiple_of(4)..).unwrap_or_default();
        Some(NetlinkMessage {
            kind: u16::from_ne_bytes([*k0, *k1]),
            flags: u16::from_ne_bytes([*f0, *f1]),
            number: u32::from_ne_bytes([*n0, *n1, *n2, *n3]),
            payload,
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn an_answer_is_read_message_by_message() {
        let one = [20u32.to_ne_bytes().to_vec(), [2u16, 0].map(u16::to_ne_bytes).concat(), vec![7, 0, 0, 0]]
            .concat();
        let message = [one, vec![0; 4], (-1i32).to_ne_bytes().to_vec()].concat();
        let bytes = [message.clone(), message].concat();
        let read: Vec<NetlinkMessage<'_>> = NetlinkMessages(&bytes).collect();
        assert_eq!(read.len(), 2);
        let [first, _] = read.as_slice() else { panic!("two messages") };
        assert_eq!((first.kind, first.number), (ERROR, u32::from_ne_bytes([7, 0, 0, 0])));
        assert_eq!(failure(first.payload).unwrap().raw_os_error(), Some(1));
        assert!(failure(&[0; 4]).is_none());
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_to_an_end(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            prop_assert!(NetlinkMessages(&bytes).count() <= bytes.len() / HEADER);
        }
    }
}
