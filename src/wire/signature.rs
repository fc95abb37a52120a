//! The first bytes of protocols that are certainly neither TLS nor HTTP.

/// The range of one byte of a signature, both ends included.
type Byte = (u8, u8);

const ANY: Byte = (0, 0xff);
const ZERO: Byte = (0, 0);
const DIGIT: Byte = (b'0', b'9');

const fn is(byte: u8) -> Byte {
    (byte, byte)
}

/// A header of MongoDB whose length begins with these two bytes.
const fn mongodb(low: Byte, high: Byte) -> [Byte; 16] {
    let kind = (0xd4, 0xdd);
    [low, high, ZERO, ZERO, ANY, ANY, ANY, ANY, ZERO, ZERO, ZERO, ZERO, kind, is(7), ZERO, ZERO]
}

/// Each row is the first bytes of one client. A row is here only if no TLS or HTTP server, however lenient, would take
/// the bytes for a hello or a request: nothing that begins with a TLS record type and version, with a line break or
/// with a method and a space.
///
/// MySQL, SMTP, FTP, IMAP, POP3 and VNC are missing because their servers speak first: those clients are silent.
/// SOCKS, PROXY and `git://` are missing because they carry a name of their own.
const SIGNATURES: &[&[Byte]] = &[
    // SSH (RFC 4253, sections 4.2 and 5.1): `SSH-2.0-` and `SSH-1.99-`.
    &[is(b'S'), is(b'S'), is(b'H'), is(b'-'), is(b'2'), is(b'.'), is(b'0'), is(b'-')],
    &[is(b'S'), is(b'S'), is(b'H'), is(b'-'), is(b'1'), is(b'.'), is(b'9'), is(b'9'), is(b'-')],
    // PostgreSQL (manual, "Message Formats"): SSLRequest 80877103, GSSENCRequest 80877104, CancelRequest 80877102, each
    // behind its length; StartupMessage of protocol 3 behind a length of at most 10000 (src/include/libpq/pqcomm.h).
    &[ZERO, ZERO, ZERO, is(8), is(0x04), is(0xd2), is(0x16), (0x2f, 0x30)],
    &[ZERO, ZERO, ZERO, ANY, is(0x04), is(0xd2), is(0x16), is(0x2e)],
    &[ZERO, ZERO, ZERO, (8, 0xff), ZERO, is(3)],
    &[ZERO, ZERO, (1, 0x27), ANY, ZERO, is(3)],
    // Redis (redis.io, "RESP protocol specification"): a command is an array of bulk strings.
    // Inline commands are missing: `GET /` is one, and HTTP/0.9.
    &[is(b'*'), DIGIT, is(b'\r'), is(b'\n'), is(b'$')],
    &[is(b'*'), DIGIT, DIGIT, is(b'\r'), is(b'\n'), is(b'$')],
    // MongoDB (mongodb.com, "Wire Protocol"): length below 64 KiB, request id, no response id, OP_QUERY 2004,
    // OP_COMPRESSED 2012 or OP_MSG 2013, all little-endian. The length is at least 16, in either of its two bytes.
    &mongodb((16, 0xff), ANY),
    &mongodb(ANY, (1, 0xff)),
    // Kafka (kafka.apache.org, "Protocol Guide"): length, ApiVersions (key 18), its version.
    &[ZERO, ZERO, ZERO, (8, 0xff), ZERO, is(18), ZERO, (0, 9)],
    &[ZERO, ZERO, (1, 0xff), ANY, ZERO, is(18), ZERO, (0, 9)],
    // AMQP (0-9-1 specification, section 4.2.2; 1.0, part 2.2): `AMQP` and a protocol id.
    &[is(b'A'), is(b'M'), is(b'Q'), is(b'P'), (0, 3)],
    // MQTT (3.1.1 and 5.0, section 3.1): CONNECT, its length in one byte or two, the protocol's name.
    &[is(0x10), (0, 0x7f), ZERO, is(4), is(b'M'), is(b'Q'), is(b'T'), is(b'T')],
    &[is(0x10), (0x80, 0xff), (1, 0x7f), ZERO, is(4), is(b'M'), is(b'Q'), is(b'T'), is(b'T')],
    // LDAP (RFC 4511, section 4.1.1): a message with a one-byte id: BindRequest, SearchRequest or ExtendedRequest
    // (StartTLS). The length is short, or long with four bytes as Windows writes it.
    &[is(0x30), (0, 0x7f), is(2), is(1), ANY, is(0x60)],
    &[is(0x30), (0, 0x7f), is(2), is(1), ANY, is(0x63)],
    &[is(0x30), (0, 0x7f), is(2), is(1), ANY, is(0x77)],
    &[is(0x30), is(0x84), ZERO, ZERO, ANY, ANY, is(2), is(1), ANY, is(0x60)],
    &[is(0x30), is(0x84), ZERO, ZERO, ANY, ANY, is(2), is(1), ANY, is(0x63)],
    // Cassandra (native_protocol_v3.spec to v5, section 2): OPTIONS or STARTUP, shorter than 64 KiB.
    &[(3, 5), ZERO, ANY, ANY, is(5), ZERO, ZERO, ANY, ANY],
    &[(3, 5), ZERO, ANY, ANY, is(1), ZERO, ZERO, ANY, ANY],
    // SQL Server ([MS-TDS], sections 2.2.3.1 and 2.2.6.5): PRELOGIN, the last packet of its message.
    &[is(0x12), is(1), (0, 1), ANY, ZERO, ZERO, ANY, ZERO],
];

/// The result of comparing bytes with the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SignatureMatch {
    Yes,
    /// The bytes so far are the beginning of a row.
    Perhaps,
    No,
}

/// Compares the first bytes of a connection with every row.
pub(super) fn compare(bytes: &[u8]) -> SignatureMatch {
    let mut best = SignatureMatch::No;
    for row in SIGNATURES {
        if row.iter().zip(bytes).all(|((low, high), byte)| (low..=high).contains(&byte)) {
            if row.len() <= bytes.len() {
                return SignatureMatch::Yes;
            }
            best = SignatureMatch::Perhaps;
        }
    }
    best
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_of_each_protocol_is_recognised() {
        let cases: &[&[u8]] = &[
            b"SSH-2.0-OpenSSH_9.9\r\n",
            b"SSH-1.99-Go\r\n",
            b"\x00\x00\x00\x08\x04\xd2\x16\x2f",
            b"\x00\x00\x00\x08\x04\xd2\x16\x30",
            b"\x00\x00\x00\x10\x04\xd2\x16\x2e\x00\x00\x00\x01",
            b"\x00\x00\x00\x54\x00\x03\x00\x00user\x00app\x00",
            b"*1\r\n$4\r\nPING\r\n",
            b"*12\r\n$5\r\nHELLO",
            b"\x3b\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00\xd4\x07\x00\x00",
            b"\x05\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00\xdd\x07\x00\x00",
            b"\x00\x00\x00\x2f\x00\x12\x00\x03\x00\x00\x00\x00",
            b"AMQP\x00\x00\x09\x01",
            b"AMQP\x03\x01\x00\x00",
            b"\x10\x10\x00\x04MQTT\x04\x02\x00\x3c",
            b"\x10\xac\x02\x00\x04MQTT\x05",
            b"\x30\x0c\x02\x01\x01\x60\x07\x02\x01\x03",
            b"\x30\x84\x00\x00\x00\x10\x02\x01\x01\x60",
            b"\x04\x00\x00\x00\x05\x00\x00\x00\x00",
            b"\x12\x01\x00\x2f\x00\x00\x01\x00\x00\x00",
        ];
        for bytes in cases {
            assert_eq!(compare(bytes), SignatureMatch::Yes, "{bytes:02x?}");
        }
    }

    #[test]
    fn no_row_begins_as_a_server_of_tls_or_http_would_accept() {
        for row in SIGNATURES {
            let may_be = |place: usize, byte: u8| {
                row.get(place).is_some_and(|(low, high)| (*low..=*high).contains(&byte))
            };
            // An SSLv2 hello has its type, 1, in the third byte behind a length whose first bit is set.
            assert!(!((0x80..=0xff).any(|byte| may_be(0, byte)) && may_be(2, 1)), "{row:?}");
            // A line break, then a method.
            let breaks = [b'\r', b'\n', b' '].iter().any(|byte| may_be(0, *byte));
            assert!(!(breaks && (b'A'..=b'z').any(|byte| may_be(2, byte))), "{row:?}");
        }
    }
}
