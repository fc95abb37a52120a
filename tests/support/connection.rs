//! A blocking connection with full control over its bytes: plain or TLS, an agent's end or a raw upstream's.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::Arc;

use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, HandshakeKind, ServerConfig, ServerConnection, StreamOwned};

use super::{Answer, PATIENCE};

pub(crate) struct Connection {
    stream: Stream,
    unread: Vec<u8>,
}

enum Stream {
    Plain(TcpStream),
    Client(Box<StreamOwned<ClientConnection, TcpStream>>),
    Server(Box<StreamOwned<ServerConnection, TcpStream>>),
}

/// How the other side ended a connection, and what it had said before.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    /// An orderly end, after these bytes.
    Closed(Vec<u8>),
    /// A reset, or a TLS stream cut without its closing alert, after these bytes.
    Cut(Vec<u8>),
}

impl Connection {
    /// A plain TCP connection.
    pub(crate) fn open(address: SocketAddr) -> Self {
        Self::over(TcpStream::connect(address).unwrap())
    }

    /// A connection over a socket that is open already.
    pub(crate) fn over(socket: TcpStream) -> Self {
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        socket.set_write_timeout(Some(PATIENCE)).unwrap();
        socket.set_nodelay(true).unwrap();
        Self { stream: Stream::Plain(socket), unread: Vec::new() }
    }

    /// Speaks TLS from here on, as its client. Err: the handshake failed.
    pub(crate) fn start_tls(self, name: &str, config: Arc<ClientConfig>) -> io::Result<Self> {
        let name = ServerName::try_from(name.to_owned()).unwrap();
        let tls = ClientConnection::new(config, name).map_err(io::Error::other)?;
        let mut stream = StreamOwned::new(tls, self.into_socket());
        while stream.conn.is_handshaking() {
            stream.conn.complete_io(&mut stream.sock)?;
        }
        Ok(Self { stream: Stream::Client(Box::new(stream)), unread: Vec::new() })
    }

    /// The same, sending each byte of the handshake in a segment of its own.
    pub(crate) fn start_tls_byte_by_byte(self, name: &str, config: Arc<ClientConfig>) -> io::Result<Self> {
        let name = ServerName::try_from(name.to_owned()).unwrap();
        let mut tls = ClientConnection::new(config, name).map_err(io::Error::other)?;
        let mut socket = self.into_socket();
        while tls.is_handshaking() || tls.wants_write() {
            if tls.wants_write() {
                let mut bytes = Vec::new();
                tls.write_tls(&mut bytes)?;
                bytes.chunks(1).try_for_each(|byte| socket.write_all(byte))?;
            } else {
                tls.read_tls(&mut socket)?;
                tls.process_new_packets().map_err(io::Error::other)?;
            }
        }
        let stream = Stream::Client(Box::new(StreamOwned::new(tls, socket)));
        Ok(Self { stream, unread: Vec::new() })
    }

    /// Speaks TLS from here on, as its server.
    pub(crate) fn accept_tls(self, config: Arc<ServerConfig>) -> io::Result<Self> {
        let tls = ServerConnection::new(config).map_err(io::Error::other)?;
        let mut stream = StreamOwned::new(tls, self.into_socket());
        while stream.conn.is_handshaking() {
            stream.conn.complete_io(&mut stream.sock)?;
        }
        Ok(Self { stream: Stream::Server(Box::new(stream)), unread: Vec::new() })
    }

    /// The certificates that the server presented, its own first.
    pub(crate) fn peer_certificates(&self) -> Vec<Vec<u8>> {
        let Stream::Client(stream) = &self.stream else { panic!("only a TLS client is shown certificates") };
        stream.conn.peer_certificates().unwrap_or_default().iter().map(|one| one.to_vec()).collect()
    }

    /// The common name of who signed the presented certificate: the proof of interception or of its absence.
    pub(crate) fn issuer(&self) -> String {
        let leaf = self.peer_certificates().remove(0);
        let (_, certificate) = x509_parser::parse_x509_certificate(&leaf).unwrap();
        let name = certificate.issuer().iter_common_name().next().unwrap();
        name.as_str().unwrap().to_owned()
    }

    /// The application protocol that TLS agreed on.
    pub(crate) fn alpn(&self) -> Option<String> {
        let chosen = match &self.stream {
            Stream::Plain(_) => None,
            Stream::Client(stream) => stream.conn.alpn_protocol(),
            Stream::Server(stream) => stream.conn.alpn_protocol(),
        };
        chosen.map(|name| String::from_utf8_lossy(name).into_owned())
    }

    /// Whether the TLS handshake was a full one.
    pub(crate) fn handshake(&self) -> Option<HandshakeKind> {
        match &self.stream {
            Stream::Plain(_) => None,
            Stream::Client(stream) => stream.conn.handshake_kind(),
            Stream::Server(stream) => stream.conn.handshake_kind(),
        }
    }

    /// Carries bytes between this connection and another address until both have ended.
    pub(crate) fn relay_to(&mut self, address: SocketAddr) {
        let mut target = TcpStream::connect(address).unwrap();
        let mut back = (target.try_clone().unwrap(), self.stream.socket().try_clone().unwrap());
        target.write_all(&std::mem::take(&mut self.unread)).unwrap();
        let answers = std::thread::spawn(move || {
            // An end in the middle is an end: the records of both sides tell the rest.
            let _ = io::copy(&mut back.0, &mut back.1);
            let _ = back.1.shutdown(Shutdown::Write);
        });
        let _ = io::copy(self.stream.io(), &mut target);
        let _ = target.shutdown(Shutdown::Write);
        let _ = answers.join();
    }

    /// Sends all bytes, or panics.
    #[track_caller]
    pub(crate) fn send(&mut self, bytes: impl AsRef<[u8]>) {
        self.try_send(bytes).unwrap();
    }

    /// Sends all bytes; Err where the other side is gone.
    pub(crate) fn try_send(&mut self, bytes: impl AsRef<[u8]>) -> io::Result<()> {
        let stream = self.stream.io();
        stream.write_all(bytes.as_ref())?;
        stream.flush()
    }

    /// Sends each byte in a segment (and TLS record) of its own.
    pub(crate) fn send_byte_by_byte(&mut self, bytes: impl AsRef<[u8]>) {
        for byte in bytes.as_ref() {
            self.send([*byte]);
        }
    }

    /// Says that no more bytes will come, and can still read.
    pub(crate) fn half_close(&mut self) {
        match &mut self.stream {
            Stream::Plain(_) => {}
            Stream::Client(stream) => stream.conn.send_close_notify(),
            Stream::Server(stream) => stream.conn.send_close_notify(),
        }
        self.stream.io().flush().unwrap();
        self.stream.socket().shutdown(Shutdown::Write).unwrap();
    }

    /// Reads up to and with `marker`.
    #[track_caller]
    pub(crate) fn read_until(&mut self, marker: &[u8]) -> Vec<u8> {
        loop {
            if let Some(at) = memchr::memmem::find(&self.unread, marker) {
                return self.unread.drain(..at + marker.len()).collect();
            }
            let got = self.fill().unwrap();
            assert!(got > 0, "the connection ended before {marker:?}: {:?}", self.unread_text());
        }
    }

    /// Reads that many bytes.
    #[track_caller]
    pub(crate) fn read_exactly(&mut self, count: usize) -> Vec<u8> {
        while self.unread.len() < count {
            let got = self.fill().unwrap();
            assert!(got > 0, "the connection ended before {count} bytes: {:?}", self.unread_text());
        }
        self.unread.drain(..count).collect()
    }

    /// Reads that many bytes; None where the connection ended before.
    pub(crate) fn try_read_exactly(&mut self, count: usize) -> Option<Vec<u8>> {
        while self.unread.len() < count {
            self.fill().ok().filter(|got| *got > 0)?;
        }
        Some(self.unread.drain(..count).collect())
    }

    /// The next bytes that come; None where the connection ended instead.
    pub(crate) fn try_read(&mut self) -> Option<Vec<u8>> {
        let got = if self.unread.is_empty() { self.fill().ok()? } else { self.unread.len() };
        (got > 0).then(|| std::mem::take(&mut self.unread))
    }

    /// Reads until the other side ends the connection; panics where it stays open for the whole patience.
    #[track_caller]
    pub(crate) fn ending(&mut self) -> Ending {
        loop {
            match self.fill() {
                Ok(0) => return Ending::Closed(std::mem::take(&mut self.unread)),
                Ok(_) => {}
                Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                    panic!("still open after {PATIENCE:?}, having said {:?}", self.unread_text())
                }
                Err(_) => return Ending::Cut(std::mem::take(&mut self.unread)),
            }
        }
    }

    /// Reads the final answer to a request; informational ones before it are skipped.
    #[track_caller]
    pub(crate) fn read_answer(&mut self) -> Answer {
        loop {
            let mut answer = self.read_head();
            if answer.status >= 200 || answer.status == 101 {
                self.read_body(&mut answer);
                return answer;
            }
        }
    }

    /// Reads one head, informational or final, and leaves the body unread.
    #[track_caller]
    pub(crate) fn read_head(&mut self) -> Answer {
        let head = self.read_until(b"\r\n\r\n");
        let mut slots = [httparse::EMPTY_HEADER; 256];
        let mut parsed = httparse::Response::new(&mut slots);
        parsed.parse(&head).unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&head)));
        Answer {
            status: parsed.code.unwrap(),
            version: if parsed.version == Some(0) { "HTTP/1.0" } else { "HTTP/1.1" },
            headers: pairs(parsed.headers),
            ..Answer::default()
        }
    }

    /// Reads one chunk of a chunked body; empty at its end.
    #[track_caller]
    pub(crate) fn read_chunk(&mut self) -> Vec<u8> {
        let line = String::from_utf8(self.read_until(b"\r\n")).unwrap();
        let size = line.trim().split(';').next().unwrap();
        let size = usize::from_str_radix(size, 16).unwrap_or_else(|_| panic!("no chunk size: {line:?}"));
        if size == 0 {
            return Vec::new();
        }
        let chunk = self.read_exactly(size);
        assert_eq!(self.read_exactly(2), b"\r\n");
        chunk
    }

    fn read_body(&mut self, answer: &mut Answer) {
        answer.complete = true;
        if matches!(answer.status, 101 | 204 | 304) {
            return;
        }
        if answer.header("transfer-encoding") == Some("chunked") {
            self.read_chunks(answer);
        } else if let Some(length) = answer.header("content-length") {
            let length = length.parse().unwrap();
            while self.unread.len() < length && self.fill().is_ok_and(|got| got > 0) {}
            answer.complete = self.unread.len() >= length;
            answer.body = self.unread.drain(..length.min(self.unread.len())).collect();
        } else {
            let ending = self.ending();
            answer.complete = matches!(ending, Ending::Closed(_));
            let (Ending::Closed(body) | Ending::Cut(body)) = ending;
            answer.body = body;
        }
    }

    fn read_chunks(&mut self, answer: &mut Answer) {
        loop {
            if !self.has_chunk() {
                answer.complete = false;
                return;
            }
            let chunk = self.read_chunk();
            if chunk.is_empty() {
                break;
            }
            answer.body.extend_from_slice(&chunk);
        }
        let mut line = self.read_until(b"\r\n");
        while line != b"\r\n" {
            let text = String::from_utf8_lossy(&line);
            let (name, value) = text.trim().split_once(':').unwrap();
            answer.trailers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
            line = self.read_until(b"\r\n");
        }
    }

    /// Waits for a whole chunk; false where the connection ends before.
    fn has_chunk(&mut self) -> bool {
        loop {
            let line = memchr::memmem::find(&self.unread, b"\r\n");
            let size = line.map(|end| String::from_utf8_lossy(&self.unread[..end]).into_owned());
            let size = size.map(|line| line.split(';').next().unwrap_or_default().trim().to_owned());
            let size = size.and_then(|size| usize::from_str_radix(&size, 16).ok());
            let is_whole =
                line.zip(size).is_some_and(|(end, size)| size == 0 || self.unread.len() >= end + size + 4);
            if is_whole || !self.fill().is_ok_and(|got| got > 0) {
                return is_whole;
            }
        }
    }

    fn fill(&mut self) -> io::Result<usize> {
        let mut bytes = [0; 16 * 1024];
        let got = self.stream.io().read(&mut bytes)?;
        self.unread.extend_from_slice(&bytes[..got]);
        Ok(got)
    }

    fn into_socket(self) -> TcpStream {
        assert!(self.unread.is_empty(), "bytes came before the handshake: {:?}", self.unread_text());
        let Stream::Plain(socket) = self.stream else { panic!("TLS inside TLS is not spoken here") };
        socket
    }

    fn unread_text(&self) -> String {
        String::from_utf8_lossy(&self.unread).into_owned()
    }
}

/// Header fields as text, names in lower case.
fn pairs(headers: &[httparse::Header<'_>]) -> Vec<(String, String)> {
    let text = |value: &[u8]| String::from_utf8_lossy(value).into_owned();
    headers.iter().map(|header| (header.name.to_ascii_lowercase(), text(header.value))).collect()
}

trait ReadWrite: Read + Write {}
impl<T: Read + Write> ReadWrite for T {}

impl Stream {
    fn io(&mut self) -> &mut dyn ReadWrite {
        match self {
            Self::Plain(socket) => socket,
            Self::Client(stream) => stream.as_mut(),
            Self::Server(stream) => stream.as_mut(),
        }
    }

    fn socket(&self) -> &TcpStream {
        match self {
            Self::Plain(socket) => socket,
            Self::Client(stream) => &stream.sock,
            Self::Server(stream) => &stream.sock,
        }
    }
}
