//! Reads a TLS ClientHello from the first bytes of a connection, however records and segments cut it.

/// The result of reading a client's first bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Hello {
    /// All well so far; more bytes are needed.
    Incomplete,
    /// Not a TLS handshake record.
    NotTls,
    /// TLS, but no ClientHello that every reader would read alike; says why.
    Bad(&'static str),
    Complete(ClientHello),
}

/// The destination that a ClientHello names (RFC 8446, section 4.1.2).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ClientHello {
    /// The `host_name` of `server_name` (RFC 6066, section 3) as it was sent. Only checked to be ASCII.
    pub server_name: Option<String>,
    /// The protocols offered, in the client's order (RFC 7301).
    pub alpn: Vec<Vec<u8>>,
    /// Whether Encrypted ClientHello is there, real or GREASE (RFC 9849), or its forerunner ESNI.
    pub ech: bool,
}

const SERVER_NAME: u16 = 0;
const ALPN: u16 = 16;
const ENCRYPTED_CLIENT_HELLO: u16 = 0xfe0d;
const ESNI: u16 = 0xffce;

const RECORD_HEADER: usize = 5;
/// RFC 8446, section 5.1: a record holds at most 2^14 bytes.
const LONGEST_RECORD: usize = 1 << 14;
const HANDSHAKE_HEADER: usize = 4;
const LONGEST_HELLO: usize = 64 * 1024;

/// Reads all bytes seen so far; the caller bounds them. A verdict other than [`Hello::Incomplete`] never changes
/// with more bytes.
pub fn read(bytes: &[u8]) -> Hello {
    // A handshake record (22) of any version 3.x: what the version says is checked for every record.
    match bytes {
        [] | [0x16] => return Hello::Incomplete,
        [0x16, 0x03, ..] => {}
        _ => return Hello::NotTls,
    }
    match message(bytes).and_then(|message| message.map(|m| hello(&m)).transpose()) {
        Ok(None) => Hello::Incomplete,
        Ok(Some(hello)) => Hello::Complete(hello),
        Err(reason) => Hello::Bad(reason),
    }
}

/// Joins the ClientHello's body from its records; `None` while it is incomplete.
fn message(mut bytes: &[u8]) -> Result<Option<Vec<u8>>, &'static str> {
    let mut message = Vec::new();
    loop {
        let Some((header, rest)) = bytes.split_at_checked(RECORD_HEADER) else { return Ok(None) };
        let length = record_length(header)?;
        let fragment = rest.get(..length).unwrap_or(rest);
        message.extend_from_slice(fragment);
        if let Some(needed) = message_length(&message)? {
            // The record's length is judged before its bytes have arrived, so that no split changes the verdict.
            let reach = message.len() - fragment.len() + length;
            if reach > needed {
                return Err("bytes after the ClientHello in its record");
            }
            if message.len() == needed {
                return Ok(Some(message.split_off(HANDSHAKE_HEADER)));
            }
        }
        match rest.split_at_checked(length) {
            Some((_, next)) => bytes = next,
            None => return Ok(None),
        }
    }
}

fn record_length(header: &[u8]) -> Result<usize, &'static str> {
    let &[kind, major, _, high, low] = header else { return Err("record header") };
    let length = usize::from(u16::from_be_bytes([high, low]));
    match (kind, major) {
        (0x16, 0x03) if length == 0 => Err("empty record"),
        (0x16, 0x03) if length > LONGEST_RECORD => Err("record too long"),
        (0x16, 0x03) => Ok(length),
        (_, 0x03) => Err("another record inside the ClientHello"),
        (_, _) => Err("record version"),
    }
}

/// The length of the handshake message with its header, once the header is complete.
fn message_length(message: &[u8]) -> Result<Option<usize>, &'static str> {
    let kind_is_hello = message.first().is_none_or(|kind| *kind == 1);
    if !kind_is_hello {
        return Err("first message is no ClientHello");
    }
    let &[_, high, middle, low, ..] = message else { return Ok(None) };
    let length = u32::from_be_bytes([0, high, middle, low]) as usize;
    if length > LONGEST_HELLO {
        return Err("ClientHello too long");
    }
    Ok(Some(HANDSHAKE_HEADER + length))
}

fn hello(body: &[u8]) -> Result<ClientHello, &'static str> {
    let mut body = HelloReader(body);
    let version = body.u16("version")?;
    if version >> 8 != 3 {
        return Err("version");
    }
    body.take(32, "random")?;
    if body.vector8("session id")?.len() > 32 {
        return Err("session id");
    }
    let suites = body.vector16("cipher suites")?;
    if suites.is_empty() || suites.len() % 2 != 0 {
        return Err("cipher suites");
    }
    if body.vector8("compression methods")?.is_empty() {
        return Err("compression methods");
    }
    // Before TLS 1.3 a ClientHello may end here (RFC 5246, section 7.4.1.2).
    if body.0.is_empty() {
        return Ok(ClientHello::default());
    }
    let list = body.vector16("extensions")?;
    body.end("bytes after the extensions")?;
    extensions(HelloReader(list))
}

fn extensions(mut list: HelloReader<'_>) -> Result<ClientHello, &'static str> {
    let mut hello = ClientHello::default();
    let mut seen = Vec::new();
    while !list.0.is_empty() {
        let kind = list.u16("extension")?;
        let data = list.vector16("extension")?;
        seen.push(kind);
        match kind {
            SERVER_NAME => hello.server_name = Some(server_name(data)?),
            ALPN => hello.alpn = alpn(data)?,
            ENCRYPTED_CLIENT_HELLO | ESNI => hello.ech = true,
            _ => {}
        }
    }
    seen.sort_unstable();
    if seen.windows(2).any(|pair| pair.first() == pair.last()) {
        return Err("an extension twice");
    }
    Ok(hello)
}

fn server_name(data: &[u8]) -> Result<String, &'static str> {
    let mut data = HelloReader(data);
    let mut list = HelloReader(data.vector16("server_name")?);
    data.end("server_name")?;
    if list.u8("server_name")? != 0 {
        return Err("server_name of an unknown kind");
    }
    let name = list.vector16("server_name")?;
    list.end("several server names")?;
    if name.is_empty() || !name.is_ascii() {
        return Err("server_name is not ASCII text");
    }
    Ok(name.iter().map(|b| char::from(*b)).collect())
}

fn alpn(data: &[u8]) -> Result<Vec<Vec<u8>>, &'static str> {
    let mut data = HelloReader(data);
    let mut list = HelloReader(data.vector16("alpn")?);
    data.end("alpn")?;
    let mut protocols = Vec::new();
    while !list.0.is_empty() {
        let protocol = list.vector8("alpn")?;
        if protocol.is_empty() {
            return Err("alpn");
        }
        protocols.push(protocol.to_vec());
    }
    if protocols.is_empty() {
        return Err("alpn");
    }
    Ok(protocols)
}

/// The bytes left to read. Each read names the field for its error.
struct HelloReader<'a>(&'a [u8]);

impl<'a> HelloReader<'a> {
    fn take(&mut self, length: usize, what: &'static str) -> Result<&'a [u8], &'static str> {
        let (taken, rest) = self.0.split_at_checked(length).ok_or(what)?;
        self.0 = rest;
        Ok(taken)
    }

    fn u8(&mut self, what: &'static str) -> Result<u8, &'static str> {
        self.take(1, what)?.first().copied().ok_or(what)
    }

    fn u16(&mut self, what: &'static str) -> Result<u16, &'static str> {
        Ok(u16::from_be_bytes([self.u8(what)?, self.u8(what)?]))
    }

    fn vector8(&mut self, what: &'static str) -> Result<&'a [u8], &'static str> {
        let length = self.u8(what)?;
        self.take(usize::from(length), what)
    }

    fn vector16(&mut self, what: &'static str) -> Result<&'a [u8], &'static str> {
        let length = self.u16(what)?;
        self.take(usize::from(length), what)
    }

    fn end(&self, what: &'static str) -> Result<(), &'static str> {
        if self.0.is_empty() { Ok(()) } else { Err(what) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn vector16(bytes: &[u8]) -> Vec<u8> {
        [&u16::try_from(bytes.len()).unwrap().to_be_bytes()[..], bytes].concat()
    }

    fn extension(kind: u16, data: &[u8]) -> Vec<u8> {
        [&kind.to_be_bytes()[..], &vector16(data)].concat()
    }

    fn sni(name: &[u8]) -> Vec<u8> {
        extension(SERVER_NAME, &vector16(&[&[0][..], &vector16(name)].concat()))
    }

    fn offered(protocols: &[&str]) -> Vec<u8> {
        let list: Vec<u8> =
            protocols.iter().flat_map(|p| [&[p.len() as u8][..], p.as_bytes()].concat()).collect();
        extension(ALPN, &vector16(&list))
    }

    fn body(extensions: &[u8]) -> Vec<u8> {
        let mut body = vec![3, 3];
        body.extend([7; 32]);
        body.push(0);
        body.extend(vector16(&[0x13, 0x01, 0x13, 0x02]));
        body.extend([1, 0]);
        body.extend(vector16(extensions));
        body
    }

    fn handshake(body: &[u8]) -> Vec<u8> {
        let length = u32::try_from(body.len()).unwrap().to_be_bytes();
        [&[1, length[1], length[2], length[3]][..], body].concat()
    }

    fn records(message: &[u8], size: usize) -> Vec<u8> {
        message.chunks(size).flat_map(|part| [&[0x16, 3, 1][..], &vector16(part)].concat()).collect()
    }

    fn whole(extensions: &[u8]) -> Vec<u8> {
        records(&handshake(&body(extensions)), LONGEST_RECORD)
    }

    fn typical() -> Vec<u8> {
        [extension(0x0a0a, &[]), sni(b"api.example.com"), offered(&["h2", "http/1.1"])].concat()
    }

    #[test]
    fn name_protocols_and_ech_are_read() {
        let expected = ClientHello {
            server_name: Some("api.example.com".into()),
            alpn: vec![b"h2".to_vec(), b"http/1.1".to_vec()],
            ech: false,
        };
        assert_eq!(read(&whole(&typical())), Hello::Complete(expected.clone()));
        let with_ech = [typical(), extension(ENCRYPTED_CLIENT_HELLO, &[0; 40])].concat();
        assert_eq!(read(&whole(&with_ech)), Hello::Complete(ClientHello { ech: true, ..expected }));
    }

    #[test]
    fn a_hello_without_extensions_has_no_name() {
        let mut bare = body(&[]);
        bare.truncate(bare.len() - 2);
        assert_eq!(read(&records(&handshake(&bare), 99)), Hello::Complete(ClientHello::default()));
        assert_eq!(read(&whole(&[])), Hello::Complete(ClientHello::default()));
    }

    #[test]
    fn every_fragmentation_into_records_reads_alike() {
        let message = handshake(&body(&typical()));
        let expected = read(&records(&message, LONGEST_RECORD));
        for size in 1..message.len() {
            assert_eq!(read(&records(&message, size)), expected, "records of {size} bytes");
        }
    }

    #[test]
    fn what_comes_after_the_hello_is_not_looked_at() {
        let bytes = [whole(&typical()), b"\x14\x03\x03\x00\x01\x01 and more".to_vec()].concat();
        assert_eq!(read(&bytes), read(&whole(&typical())));
    }

    #[test]
    fn a_hello_that_readers_could_read_differently_is_bad() {
        let good = handshake(&body(&typical()));
        let cases: Vec<(&str, Vec<u8>)> = vec![
            ("an extension twice", whole(&[sni(b"a.example"), sni(b"b.example")].concat())),
            ("several server names", whole(&extension(0, &vector16(&[0, 0, 1, b'a', 0, 0, 1, b'b'])))),
            ("server_name of an unknown kind", whole(&extension(0, &vector16(&[1, 0, 1, b'a'])))),
            ("server_name", whole(&extension(0, &[0, 4, 0, 0, 1, b'a', 0]))),
            ("server_name", whole(&extension(0, &[]))),
            ("server_name is not ASCII text", whole(&sni(b""))),
            ("server_name is not ASCII text", whole(&sni("ä.example".as_bytes()))),
            ("alpn", whole(&extension(ALPN, &[0, 0]))),
            ("alpn", whole(&extension(ALPN, &[0, 1, 0]))),
            ("alpn", whole(&extension(ALPN, &[0, 3, 1, b'a', 2]))),
            ("extension", whole(&[0, 0, 0, 9, 1])),
            ("bytes after the extensions", records(&handshake(&[body(&typical()), vec![0]].concat()), 999)),
            ("bytes after the ClientHello in its record", records(&[good.clone(), vec![0]].concat(), 999)),
            ("another record inside the ClientHello", {
                let mut cut = records(&good, 40);
                cut[45] = 0x17;
                cut
            }),
            ("empty record", [&[0x16, 3, 1, 0, 0][..], &records(&good, 999)].concat()),
            ("record too long", vec![0x16, 3, 1, 0x40, 1]),
            ("first message is no ClientHello", records(&[2, 0, 0, 0], 9)),
            ("ClientHello too long", records(&[1, 1, 0, 1], 9)),
            ("version", records(&handshake(&[2; 60]), 99)),
        ];
        for (reason, bytes) in cases {
            assert_eq!(read(&bytes), Hello::Bad(reason), "{bytes:02x?}");
        }
    }

    #[test]
    fn other_protocols_are_not_tls() {
        for bytes in [&b"GET / HTTP/1.1\r\n"[..], b"\x80\x2e\x01\x03\x01", b"\x16\x02\x00", b"SSH-2.0-x"] {
            assert_eq!(read(bytes), Hello::NotTls);
        }
    }

    #[test]
    fn names_are_given_as_they_stand() {
        let Hello::Complete(hello) = read(&whole(&sni(b"EVIL.example\0.good.example."))) else { panic!() };
        assert_eq!(hello.server_name.as_deref(), Some("EVIL.example\0.good.example."));
    }

    fn settled(bytes: &[u8]) -> Result<(), TestCaseError> {
        let last = read(bytes);
        for end in 0..bytes.len() {
            let part = read(&bytes[..end]);
            prop_assert!(part == Hello::Incomplete || part == last, "{end}: {part:?}, then {last:?}");
        }
        Ok(())
    }

    proptest! {
        #[test]
        fn a_verdict_never_changes_with_more_bytes(
            size in 1usize..400, at in 0usize..200, flip in any::<u8>(), tail in any::<[u8; 8]>(),
        ) {
            let mut bytes = records(&handshake(&body(&typical())), size);
            let at = at % bytes.len();
            bytes[at] ^= flip;
            bytes.extend(tail);
            settled(&bytes)?;
        }

        #[test]
        fn arbitrary_bytes_never_panic_and_settle(mut bytes in proptest::collection::vec(any::<u8>(), 2..300)) {
            bytes[0] = 0x16;
            bytes[1] = 0x03;
            settled(&bytes)?;
        }
    }
}
