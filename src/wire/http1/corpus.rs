//! Smuggling attacks on request framing, each beside a benign twin, and what holds for every split of the bytes.

use proptest::prelude::*;

use super::*;

struct Case {
    reason: &'static str,
    attack: &'static [u8],
    twin: &'static [u8],
}

const fn case(reason: &'static str, attack: &'static [u8], twin: &'static [u8]) -> Case {
    Case { reason, attack, twin }
}

const PLAIN: &[u8] = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n";

#[rustfmt::skip]
const HEADS: &[Case] = &[
    case("bare LF", b"GET / HTTP/1.1\nHost: a\n\n", PLAIN),
    case("bare LF", b"GET / HTTP/1.1\r\nHost: a\r\nX: b\nContent-Length: 9\r\n\r\n", b"GET / HTTP/1.1\r\nHost: a\r\nX: b\r\nContent-Length: 0\r\n\r\n"),
    case("bare LF", b"\nGET / HTTP/1.1\r\nHost: a\r\n\r\n", b"\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n"),
    case("bare CR", b"GET / HTTP/1.1\r\nHost: a\r\nX: b\rContent-Length: 9\r\n\r\n", b"GET / HTTP/1.1\r\nHost: a\r\nX: b Content-Length: 9\r\n\r\n"),
    case("bare CR", b"GET / HTTP/1.1\r\r\nHost: a\r\n\r\n", PLAIN),
    case("control byte", b"GET / HTTP/1.1\r\nHost: a\r\nX: b\0c\r\n\r\n", b"GET / HTTP/1.1\r\nHost: a\r\nX: b\tc\r\n\r\n"),
    case("control byte", b"GET / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding:\x0bchunked\r\n\r\n", b"GET / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding:\tchunked\r\n\r\n0\r\n\r\n"),
    case("control byte", b"GET / HTTP/1.1\r\nHost: a\r\nX\x7f: b\r\n\r\n", b"GET / HTTP/1.1\r\nHost: a\r\nX~: b\r\n\r\n"),
    case("empty line before the request", b"\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n", b"\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n"),
    case("folded header line", b"GET / HTTP/1.1\r\nHost: a\r\nX: b\r\n Content-Length: 9\r\n\r\n", b"GET / HTTP/1.1\r\nHost: a\r\nX: b Content-Length: 9\r\n\r\n"),
    case("folded header line", b"GET / HTTP/1.1\r\n Host: a\r\nHost: b\r\n\r\n", PLAIN),
    case("space in or after a header name", b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length : 5\r\n\r\nhello", b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length:   5 \r\n\r\nhello"),
    case("space in or after a header name", b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding\t: chunked\r\n\r\n", b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\t\r\n\r\n0\r\n\r\n"),
    case("empty header name", b"GET / HTTP/1.1\r\nHost: a\r\n: b\r\n\r\n", b"GET / HTTP/1.1\r\nHost: a\r\nX:\r\n\r\n"),
    case("header without colon", b"GET / HTTP/1.1\r\nHost: a\r\nX\r\n\r\n", b"GET / HTTP/1.1\r\nHost: a\r\nX:\r\n\r\n"),
    case("header name", b"GET / HTTP/1.1\r\nHost: a\r\nX(y): b\r\n\r\n", b"GET / HTTP/1.1\r\nHost: a\r\nX_y: b\r\n\r\n"),
    case("header name", b"GET / HTTP/1.1\r\nHost: a\r\nTransfer\xe2Encoding: chunked\r\n\r\n", b"GET / HTTP/1.1\r\nHost: a\r\nX: \xc3\xa4\r\n\r\n"),
    case("content-length beside transfer-encoding", b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
    case("content-length beside transfer-encoding", b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nContent-Length: 0\r\n\r\n0\r\n\r\n", b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n"),
    case("several content-length headers", b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello!", b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 6\r\nX-Content-Length: 5\r\n\r\nhello!"),
    case("several content-length headers", b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\ncontent-length: 5\r\n\r\nhello", b"POST / HTTP/1.1\r\nHost: a\r\ncontent-length: 5\r\n\r\nhello"),
    case("content-length is no plain number", b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5, 5\r\n\r\nhello", b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello"),
    case("content-length is no plain number", b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: +5\r\n\r\nhello", b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello"),
    case("content-length is no plain number", b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 010\r\n\r\nhello", b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nhellohello"),
    case("content-length is no plain number", b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0x5\r\n\r\nhello", b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello"),
    case("content-length is no plain number", b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 18446744073709551621\r\n\r\nhello", b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello"),
    case("content-length is no plain number", b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length:\r\n\r\n", b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n"),
    case("transfer-encoding other than chunked once", b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", b"POST / HTTP/1.1\r\nHost: a\r\nTE: gzip, chunked\r\nTransfer-Encoding: CHUNKED\r\n\r\n0\r\n\r\n"),
    case("transfer-encoding other than chunked once", b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n", b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
    case("transfer-encoding other than chunked once", b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
    case("transfer-encoding other than chunked once", b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: xchunked\r\n\r\n0\r\n\r\n", b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
    case("transfer-encoding other than chunked once", b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: \"chunked\"\r\n\r\n0\r\n\r\n", b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
    case("transfer-encoding in HTTP/1.0", b"POST / HTTP/1.0\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", b"POST / HTTP/1.0\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello"),
    case("no host header", b"GET / HTTP/1.1\r\nX: a\r\n\r\n", b"GET / HTTP/1.0\r\nX: a\r\n\r\n"),
    case("several host headers", b"GET / HTTP/1.1\r\nHost: a\r\nhOST: b\r\n\r\n", b"GET / HTTP/1.1\r\nhOST: a\r\nX-Host: b\r\n\r\n"),
    case("several host headers", b"GET / HTTP/1.0\r\nHost: a\r\nHost: b\r\n\r\n", b"GET / HTTP/1.0\r\n\r\n"),
    case("host", b"GET / HTTP/1.1\r\nHost: a b\r\n\r\n", b"GET / HTTP/1.1\r\nHost: a:80\r\n\r\n"),
    case("host", b"GET / HTTP/1.1\r\nHost: \xc3\xa4.example\r\n\r\n", b"GET / HTTP/1.1\r\nHost: xn--4ca.example\r\n\r\n"),
    case("HTTP version", b"GET / HTTP/1.2\r\nHost: a\r\n\r\n", PLAIN),
    case("HTTP version", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", PLAIN),
    case("request line", b"GET /\r\n\r\n", PLAIN),
    case("request line", b"GET / HTTP/1.1 \r\nHost: a\r\n\r\n", PLAIN),
    case("request line", b"GET / http/1.1\r\nHost: a\r\n\r\n", PLAIN),
    case("request line", b" GET / HTTP/1.1\r\nHost: a\r\n\r\n", PLAIN),
    case("request line", b"GET\t/ HTTP/1.1\r\nHost: a\r\n\r\n", PLAIN),
    case("request line", b"G@T / HTTP/1.1\r\nHost: a\r\n\r\n", b"M-SEARCH / HTTP/1.1\r\nHost: a\r\n\r\n"),
    case("request target", b"GET  / HTTP/1.1\r\nHost: a\r\n\r\n", PLAIN),
    case("request target", b"GET /a b HTTP/1.1\r\nHost: a\r\n\r\n", b"GET /a%20b HTTP/1.1\r\nHost: a\r\n\r\n"),
    case("request target", b"GET / HTTP/1.1 HTTP/1.1\r\nHost: a\r\n\r\n", b"GET /HTTP/1.1 HTTP/1.1\r\nHost: a\r\n\r\n"),
    case("request target", b"GET /\xc3\xa4 HTTP/1.1\r\nHost: a\r\n\r\n", b"GET /%C3%A4 HTTP/1.1\r\nHost: a\r\n\r\n"),
    case("request target", b"GET /a#/../b HTTP/1.1\r\nHost: a\r\n\r\n", b"GET /a%23/../b HTTP/1.1\r\nHost: a\r\n\r\n"),
    case("form of the request target", b"GET b.example HTTP/1.1\r\nHost: a\r\n\r\n", b"GET http://a/ HTTP/1.1\r\nHost: a\r\n\r\n"),
    case("form of the request target", b"GET * HTTP/1.1\r\nHost: a\r\n\r\n", b"OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n"),
    case("form of the request target", b"CONNECT http://a/ HTTP/1.1\r\nHost: a\r\n\r\n", b"CONNECT a:443 HTTP/1.1\r\nHost: a\r\n\r\n"),
    case("form of the request target", b"CONNECT b@a:443 HTTP/1.1\r\nHost: a\r\n\r\n", b"CONNECT [::1]:443 HTTP/1.1\r\nHost: a\r\n\r\n"),
    case("CONNECT with a body", b"CONNECT a:443 HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello", b"CONNECT a:443 HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n"),
    case("connection names an end-to-end header", b"POST / HTTP/1.1\r\nHost: a\r\nConnection: close, content-encoding\r\n\r\n", b"POST / HTTP/1.1\r\nHost: a\r\nConnection: Keep-Alive, ,TE,Upgrade, HTTP2-Settings\r\n\r\n"),
    case("connection names an end-to-end header", b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nConnection: authorization\r\n\r\n", b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nConnection: te\r\n\r\n"),
];

const CHUNKED: &[u8] = b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";

/// Bodies that follow [`CHUNKED`].
#[rustfmt::skip]
const BODIES: &[Case] = &[
    case("bare LF in a chunk line", b"5\nhello\r\n0\r\n\r\n", b"5\r\nhello\r\n0\r\n\r\n"),
    case("bare LF in a chunk line", b"5;a=\"\n\"\r\nhello\r\n0\r\n\r\n", b"5;a=\" \"\r\nhello\r\n0\r\n\r\n"),
    case("chunk size or extension", b"5\rX\r\nhello\r\n0\r\n\r\n", b"5\r\nhello\r\n0\r\n\r\n"),
    case("chunk size or extension", b"-5\r\nhello\r\n0\r\n\r\n", b"5\r\nhello\r\n0\r\n\r\n"),
    case("chunk size or extension", b"0x5\r\nhello\r\n0\r\n\r\n", b"05\r\nhello\r\n0\r\n\r\n"),
    case("chunk size or extension", b" 5\r\nhello\r\n0\r\n\r\n", b"5\r\nhello\r\n0\r\n\r\n"),
    case("chunk size or extension", b"5 \r\nhello\r\n0\r\n\r\n", b"a\r\nhellohello\r\n0\r\n\r\n"),
    case("chunk size or extension", b"5 ;a\r\nhello\r\n0\r\n\r\n", b"5;a;b=c\r\nhello\r\n0\r\n\r\n"),
    case("chunk size or extension", b"5;\r\nhello\r\n0\r\n\r\n", b"5;a=\"x\\\"y\"\r\nhello\r\n0\r\n\r\n"),
    case("chunk size or extension", b"5;a=\r\nhello\r\n0\r\n\r\n", b"5;a=b\r\nhello\r\n0\r\n\r\n"),
    case("chunk size or extension", b"5;a=\"x\r\nhello\r\n0\r\n\r\n", b"5;a=\"\"\r\nhello\r\n0\r\n\r\n"),
    case("chunk size or extension", b"\r\nhello\r\n0\r\n\r\n", b"5\r\nhello\r\n0\r\n\r\n"),
    case("chunk size too large", b"10000000000000005\r\nhello\r\n0\r\n\r\n", b"0000000000000005\r\nhello\r\n0\r\n\r\n"),
    case("chunk size too large", b"00000000000000005\r\nhello\r\n0\r\n\r\n", b"0000000000000005\r\nhello\r\n0\r\n\r\n"),
    case("chunk size too large", b"ffffffffffffffff\r\nhello\r\n0\r\n\r\n", b"5\r\nhello\r\n0000000000000000\r\n\r\n"),
    case("chunk longer than its size", b"4\r\nhello\r\n0\r\n\r\n", b"5\r\nhello\r\n0\r\n\r\n"),
    case("chunk longer than its size", b"5\r\nhello\n0\r\n\r\n", b"5\r\nhello\r\n0\r\n\r\n"),
    case("trailer with a name of framing or authentication", b"0\r\nContent-Length: 5\r\n\r\n", b"0\r\nX-Checksum: 5\r\n\r\n"),
    case("trailer with a name of framing or authentication", b"0\r\nAuthorization: x\r\n\r\n", b"0\r\nX-Checksum: 5\r\nY: z\r\n\r\n"),
    case("bare LF", b"0\r\nX: y\n\r\n", b"0\r\nX: y\r\n\r\n"),
    case("bare LF", b"0\r\n\n", b"0\r\n\r\n"),
    case("bare CR", b"0\r\nX: y\rz\r\n\r\n", b"0\r\nX: y z\r\n\r\n"),
    case("folded header line", b"0\r\nX: y\r\n z\r\n\r\n", b"0\r\nX: y z\r\n\r\n"),
    case("space in or after a header name", b"0\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n", b"0\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n"),
];

/// What passes when `bytes` arrive cut at `cuts`, and the violation that ends it.
fn drive(bytes: &[u8], cuts: &[usize], limits: Limits) -> (usize, Option<Violation>, State) {
    let mut framer = Framer::new(limits);
    let mut passed = 0;
    for end in cuts.iter().copied().chain([bytes.len()]) {
        loop {
            match framer.push(&bytes[passed..end]) {
                Ok(Progress { pass: 0 }) => break,
                Ok(Progress { pass }) => passed += pass,
                Err(violation) => return (passed, Some(violation), framer.state()),
            }
        }
    }
    (passed, None, framer.state())
}

fn every_case() -> impl Iterator<Item = (&'static str, Vec<u8>, Vec<u8>)> {
    let heads = HEADS.iter().map(|c| (c.reason, c.attack.to_vec(), c.twin.to_vec()));
    let bodies = BODIES.iter().map(|c| (c.reason, [CHUNKED, c.attack].concat(), [CHUNKED, c.twin].concat()));
    heads.chain(bodies)
}

#[test]
fn every_attack_is_refused_and_its_twin_passes() {
    for (reason, attack, twin) in every_case() {
        let shown = String::from_utf8_lossy(&attack).into_owned();
        let (_, violation, _) = drive(&attack, &[], Limits::default());
        assert_eq!(violation.map(|v| v.reason()), Some(reason), "{shown:?}");
        let shown = String::from_utf8_lossy(&twin).into_owned();
        assert_eq!(drive(&twin, &[], Limits::default()), (twin.len(), None, State::Idle), "{shown:?}");
    }
}

#[test]
fn a_case_reads_alike_in_whole_and_byte_by_byte() {
    for (_, attack, twin) in every_case() {
        for bytes in [attack, twin] {
            let cuts: Vec<usize> = (1..bytes.len()).collect();
            let whole = drive(&bytes, &[], Limits::default());
            assert_eq!(
                drive(&bytes, &cuts, Limits::default()),
                whole,
                "{:?}",
                String::from_utf8_lossy(&bytes)
            );
        }
    }
}

#[test]
fn no_byte_of_a_refused_head_passes() {
    for case in HEADS {
        assert_eq!(drive(case.attack, &[], Limits::default()).0, 0);
        let second = [PLAIN, case.attack].concat();
        assert_eq!(drive(&second, &[], Limits::default()).0, PLAIN.len());
    }
}

#[test]
fn refusals_say_their_status() {
    let status = |bytes: &[u8], limits| drive(bytes, &[], limits).1.map(|v| v.status().as_u16());
    let few = Limits { header_count: 1, ..Limits::default() };
    let short = Limits { header_bytes: PLAIN.len(), ..Limits::default() };
    let two = b"GET / HTTP/1.1\r\nHost: a\r\nX: y\r\n\r\n";
    assert_eq!(status(b"GET / HTTP/3.0\r\n\r\n", Limits::default()), Some(505));
    assert_eq!(status(b"GET /\r\n\r\n", Limits::default()), Some(400));
    assert_eq!((status(PLAIN, few), status(two, few)), (None, Some(431)));
    assert_eq!((status(PLAIN, short), status(two, short)), (None, Some(431)));
}

#[test]
fn trailers_are_bounded_like_heads() {
    let few = Limits { header_count: 3, header_bytes: CHUNKED.len() };
    let trailers = |lines: &str| [CHUNKED, b"0\r\n", lines.as_bytes(), b"\r\n"].concat();
    let reason = |bytes: &[u8]| drive(bytes, &[], few).1.map(|v| v.reason());
    assert_eq!(reason(&trailers("A: 1\r\nB: 1\r\nC: 1\r\n")), None);
    assert_eq!(reason(&trailers("A: 1\r\nB: 1\r\nC: 1\r\nD: 1\r\n")), Some("too many headers"));
    assert_eq!(reason(&trailers(&format!("A: {}\r\n", "x".repeat(99)))), Some("trailers too large"));
}

#[test]
fn a_chunk_line_is_bounded() {
    let line = |n: usize| [CHUNKED, b"0;a=", &vec![b'x'; n], b"\r\n\r\n"].concat();
    assert_eq!(drive(&line(1021), &[], Limits::default()).1, None);
    let reason = |n| drive(&line(n), &[], Limits::default()).1.map(|v| v.reason());
    assert_eq!(reason(1022), Some("chunk size or extension"));
    assert_eq!(reason(9000), Some("chunk line too long"));
}

#[test]
fn states_follow_the_message() {
    let mut framer = Framer::new(Limits::default());
    let mut push = |bytes: &[u8]| (framer.push(bytes).unwrap().pass, framer.state());
    assert_eq!(push(b"\r\n"), (0, State::Idle));
    assert_eq!(push(b"\r\nPOST / HTTP/1.1\r\n"), (0, State::Head));
    let head = b"\r\nPOST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\n";
    assert_eq!(push(head), (head.len(), State::Body));
    assert_eq!(push(b"hell"), (4, State::Body));
    assert_eq!(push(b"oGET"), (1, State::Head));
    assert_eq!(push(&[b"GET", &PLAIN[3..]].concat()), (PLAIN.len(), State::Idle));
    assert_eq!(push(CHUNKED), (CHUNKED.len(), State::Body));
    assert_eq!(push(b"1\r"), (0, State::Body));
    assert_eq!(push(b"1\r\na\r\n0\r\n"), (9, State::Body));
    assert_eq!(push(b"\r\n"), (2, State::Idle));
    framer.upgraded();
    assert_eq!(framer.push(b"\x81\x05hello\n").unwrap().pass, 8);
    assert_eq!(framer.state(), State::Opaque);
}

/// Walks what passed with the parser hyper uses, from head to head, by that parser's own reading of the framing.
fn walk_with_httparse(mut bytes: &[u8]) -> Result<(), String> {
    while !bytes.is_empty() {
        let mut headers = [httparse::EMPTY_HEADER; 128];
        let mut request = httparse::Request::new(&mut headers);
        let length = match request.parse(bytes) {
            Ok(httparse::Status::Complete(length)) => length,
            other => return Err(format!("{other:?}")),
        };
        let value =
            |name: &str| request.headers.iter().find(|h| h.name.eq_ignore_ascii_case(name)).map(|h| h.value);
        let chunked = value("transfer-encoding").is_some();
        let length_of_body =
            value("content-length").map_or(0, |v| String::from_utf8_lossy(v).parse().unwrap());
        bytes = &bytes[length..];
        if chunked {
            bytes = match past_chunks(bytes)? {
                Some(rest) => rest,
                None => return Ok(()),
            };
        } else {
            bytes = bytes.get(length_of_body..).unwrap_or_default();
        }
    }
    Ok(())
}

fn past_chunks(mut bytes: &[u8]) -> Result<Option<&[u8]>, String> {
    loop {
        match httparse::parse_chunk_size(bytes) {
            Ok(httparse::Status::Complete((line, 0))) => {
                if bytes.len() == line {
                    return Ok(None);
                }
                let mut trailers = [httparse::EMPTY_HEADER; 128];
                return match httparse::parse_headers(&bytes[line..], &mut trailers) {
                    Ok(httparse::Status::Complete((length, _))) => Ok(Some(&bytes[line + length..])),
                    other => Err(format!("{other:?}")),
                };
            }
            Ok(httparse::Status::Complete((line, size))) => {
                let end = line + usize::try_from(size).unwrap();
                match bytes.get(end..) {
                    None | Some([]) => return Ok(None),
                    Some([b'\r', b'\n', ..]) => bytes = &bytes[end + 2..],
                    Some(other) => return Err(format!("{other:?}")),
                }
            }
            Ok(httparse::Status::Partial) if bytes.is_empty() => return Ok(None),
            other => return Err(format!("{other:?}")),
        }
    }
}

/// Streams of requests from the corpus's pieces, some of them damaged in one byte.
fn streams() -> impl Strategy<Value = Vec<u8>> {
    let pieces: Vec<Vec<u8>> =
        every_case().flat_map(|(_, attack, twin)| [twin.clone(), twin.clone(), twin, attack]).collect();
    let stream = proptest::collection::vec(proptest::sample::select(pieces), 1..4).prop_map(|p| p.concat());
    let damage = proptest::option::weighted(0.5, (any::<prop::sample::Index>(), any::<u8>()));
    (stream, damage).prop_map(|(mut stream, damage)| {
        if let Some((at, byte)) = damage {
            let at = at.index(stream.len());
            stream[at] = byte;
        }
        stream
    })
}

proptest! {
    #[test]
    fn any_split_gives_the_same_verdict(
        stream in streams(),
        cuts in proptest::collection::vec(any::<prop::sample::Index>(), 0..12),
        small in any::<bool>(),
    ) {
        let limits = if small { Limits { header_bytes: 60, header_count: 2 } } else { Limits::default() };
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(stream.len())).collect();
        cuts.sort_unstable();
        prop_assert_eq!(drive(&stream, &cuts, limits), drive(&stream, &[], limits));
    }

    #[test]
    fn what_passes_is_read_alike_by_httparse(stream in streams()) {
        let (passed, _, _) = drive(&stream, &[], Limits::default());
        prop_assert_eq!(walk_with_httparse(&stream[..passed]), Ok(()));
    }

    #[test]
    fn arbitrary_bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200), body in any::<bool>()) {
        let stream = if body { [CHUNKED, &bytes].concat() } else { bytes };
        let (passed, _, _) = drive(&stream, &[], Limits::default());
        prop_assert_eq!(walk_with_httparse(&stream[..passed]), Ok(()));
    }
}
