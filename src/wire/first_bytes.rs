//! Classifies the first bytes of a connection: certainly TLS or HTTP, certainly another protocol, or unclear.

use super::signature::{self, SignatureMatch};

/// The protocol of a connection, by its first bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum First {
    /// Nothing is certain yet.
    NeedMore,
    /// A TLS handshake record (RFC 8446, section 5.1).
    Tls,
    /// An HTTP/1 request line (RFC 9112, section 3).
    Http1,
    /// The connection preface of HTTP/2 (RFC 9113, section 3.4) without TLS.
    Http2Preface,
    /// The first bytes of another protocol, by the table of signatures.
    Other,
    /// Neither: a lenient server could take it for TLS or HTTP.
    Unclear,
}

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
const LONGEST_METHOD: usize = 20;

/// Classifies all bytes seen so far; a verdict other than [`First::NeedMore`] never changes with more bytes.
///
/// HTTP/1 is upper-case letters, a space, a target and ` HTTP/`: text protocols that also begin with an
/// upper-case word (SMTP, IRC) are told apart by what follows, at the latest at the end of their first line.
/// Every other TLS record (RFC 8446, section 5.1) is unclear, whatever its version: Go's crypto/tls, for one, reads
/// alerts before a ClientHello, and takes any version below 0x1000.
pub fn classify(bytes: &[u8]) -> First {
    match bytes {
        [] | [0x16] => First::NeedMore,
        [0x16, 0x03, ..] => First::Tls,
        [0x14..=0x18, ..] => First::Unclear,
        _ if bytes.starts_with(PREFACE) => First::Http2Preface,
        _ if PREFACE.starts_with(bytes) => First::NeedMore,
        _ => match request_line(bytes) {
            LineMatch::Request => First::Http1,
            LineMatch::Perhaps => First::NeedMore,
            LineMatch::None => match signature::compare(bytes) {
                SignatureMatch::Yes => First::Other,
                SignatureMatch::Perhaps => First::NeedMore,
                SignatureMatch::No => First::Unclear,
            },
        },
    }
}

/// Whether bytes begin an HTTP/1 request line.
enum LineMatch {
    Request,
    Perhaps,
    None,
}

fn request_line(bytes: &[u8]) -> LineMatch {
    let method = bytes.iter().take(LONGEST_METHOD + 1).take_while(|b| b.is_ascii_uppercase()).count();
    match bytes.get(method) {
        _ if method > LONGEST_METHOD => return LineMatch::None,
        None => return LineMatch::Perhaps,
        Some(b' ') if method > 0 => {}
        Some(_) => return LineMatch::None,
    }
    let rest = bytes.get(method + 1..).unwrap_or_default();
    let target = rest.iter().take_while(|b| b.is_ascii_graphic()).count();
    match rest.get(target) {
        None => LineMatch::Perhaps,
        Some(b' ') if target > 0 => version(rest.get(target + 1..).unwrap_or_default()),
        Some(_) => LineMatch::None,
    }
}

fn version(bytes: &[u8]) -> LineMatch {
    const NAME: &[u8] = b"HTTP/";
    if bytes.starts_with(NAME) {
        LineMatch::Request
    } else if NAME.starts_with(bytes) {
        LineMatch::Perhaps
    } else {
        LineMatch::None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn each_protocol_is_told_by_its_first_bytes() {
        let cases: &[(&[u8], First)] = &[
            (b"", First::NeedMore),
            (b"\x16", First::NeedMore),
            (b"\x16\x03\x01\x02\x00", First::Tls),
            (b"\x16\x02", First::Unclear),
            (b"\x15", First::Unclear),
            (b"\x15\x03\x01\x00\x02\x01\x00\x16\x03\x01", First::Unclear),
            (b"\x80\x2e\x01\x03\x01", First::Unclear),
            (b"GET", First::NeedMore),
            (b"GET /a HT", First::NeedMore),
            (b"GET /a HTTP/", First::Http1),
            (b"CONNECT a.example:443 HTTP/1.1\r\n", First::Http1),
            (b"PRI * HTTP/2.0\r\n\r\nSM", First::NeedMore),
            (PREFACE, First::Http2Preface),
            (b"PRI * HTTP/2.0\r\nHost: a\r\n", First::Http1),
            (b"SSH-2.0-OpenSSH_9.9\r\n", First::Other),
            (b"SSH-2", First::NeedMore),
            (b"SSH-3.0-x", First::Unclear),
            (b"M-SEARCH * HTTP/1.1", First::Unclear),
            (b"PROXY TCP4 192.0.2.1 192.0.2.2 1 2\r\n", First::Unclear),
            (b"pri * http/2.0\r\n", First::Unclear),
            (b"\x05\x01\x00\x03", First::Unclear),
            (b"EHLO mail.example\r\n", First::Unclear),
            (b"GET /\r\n", First::Unclear),
            (b"GET  / HTTP/1.1", First::Unclear),
            (b"get / HTTP/1.1", First::Unclear),
            (b"ABCDEFGHIJKLMNOPQRST / HTTP/1.1", First::Http1),
            (b"ABCDEFGHIJKLMNOPQRSTU", First::Unclear),
            (b"\x00\x00\x00\x08\x04\xd2\x16\x2f", First::Other),
            (b"\r\nGET / HTTP/1.1", First::Unclear),
        ];
        for (bytes, expected) in cases {
            assert_eq!(classify(bytes), *expected, "{:?}", String::from_utf8_lossy(bytes));
        }
    }

    proptest! {
        #[test]
        fn a_verdict_never_changes_with_more_bytes(
            bytes in prop_oneof![
                "[A-Z]{1,22} [ -~]{0,8}( HTTP/1.1)?\r?\n?".prop_map(String::into_bytes),
                proptest::collection::vec(any::<u8>(), 0..40),
                (0usize..=24, any::<u8>()).prop_map(|(n, b)| { let mut p = PREFACE[..n].to_vec(); p.push(b); p }),
            ],
        ) {
            let whole = classify(&bytes);
            for end in 0..bytes.len() {
                let part = classify(&bytes[..end]);
                prop_assert!(part == First::NeedMore || part == whole);
            }
        }
    }
}
