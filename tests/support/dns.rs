//! Questions to the gateway's resolver over UDP and TCP, as any client asks them and byte by byte.

use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream, UdpSocket};

use hickory_proto::op::{Message, MessageType, OpCode, Query, ResponseCode};
use hickory_proto::rr::{Name, RecordType};

use super::PATIENCE;

/// Where questions go.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Resolver(SocketAddr);

impl Resolver {
    pub(crate) fn at(address: SocketAddr) -> Self {
        Self(address)
    }

    /// The address of a name over UDP; panics where there is not exactly one.
    #[track_caller]
    pub(crate) fn address(&self, name: &str) -> IpAddr {
        let answer = self.ask(name, RecordType::A);
        address(&answer).unwrap_or_else(|| panic!("no address of {name}: {answer}"))
    }

    /// The response code to a question for an address over UDP.
    pub(crate) fn code(&self, name: &str) -> ResponseCode {
        self.ask(name, RecordType::A).response_code
    }

    /// Asks over UDP.
    pub(crate) fn ask(&self, name: &str, kind: RecordType) -> Message {
        let answer = self.exchange(&question(name, kind).to_vec().unwrap());
        Message::from_vec(&answer).unwrap()
    }

    /// Sends a datagram and waits for the one that answers it.
    #[track_caller]
    pub(crate) fn exchange(&self, datagram: &[u8]) -> Vec<u8> {
        let socket = self.socket();
        socket.send(datagram).unwrap();
        receive(&socket)
    }

    /// A UDP socket that hears the resolver alone.
    pub(crate) fn socket(&self) -> UdpSocket {
        let any: IpAddr =
            if self.0.is_ipv4() { Ipv4Addr::LOCALHOST.into() } else { Ipv6Addr::LOCALHOST.into() };
        let socket = UdpSocket::bind((any, 0)).unwrap();
        socket.connect(self.0).unwrap();
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        socket
    }

    /// A connection over TCP.
    pub(crate) fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.0).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream
    }
}

/// A question as a stub asks it.
pub(crate) fn question(name: &str, kind: RecordType) -> Message {
    let mut message = Message::new(0x5050, MessageType::Query, OpCode::Query);
    message.metadata.recursion_desired = true;
    message.add_query(Query::query(Name::from_ascii(name).unwrap(), kind));
    message
}

/// The one address of an answer.
pub(crate) fn address(answer: &Message) -> Option<IpAddr> {
    let [record] = &answer.answers[..] else { return None };
    record.data.ip_addr()
}

/// The next datagram.
#[track_caller]
pub(crate) fn receive(socket: &UdpSocket) -> Vec<u8> {
    let mut buffer = vec![0; 65_535];
    let length = socket.recv(&mut buffer).unwrap();
    buffer.truncate(length);
    buffer
}

/// Sends a message with its length in front.
pub(crate) fn send_framed(stream: &mut TcpStream, message: &[u8]) {
    let length = u16::try_from(message.len()).unwrap();
    stream.write_all(&[&length.to_be_bytes()[..], message].concat()).unwrap();
}

/// The next message of a connection.
#[track_caller]
pub(crate) fn read_framed(stream: &mut TcpStream) -> Message {
    let mut length = [0; 2];
    stream.read_exact(&mut length).unwrap();
    let mut message = vec![0; u16::from_be_bytes(length).into()];
    stream.read_exact(&mut message).unwrap();
    Message::from_vec(&message).unwrap()
}
