//! Judges one whole request head by RFC 9112, without the leniencies that it allows.

use super::fields::{self, SectionSearch};
use super::limits::Limits;
use super::violation::Violation;

/// A request head that every reader reads alike.
#[derive(Debug)]
pub(super) struct JudgedHead<'a> {
    pub(super) method: &'a [u8],
    pub(super) target: &'a [u8],
    pub(super) host: Option<&'a [u8]>,
    pub(super) proxy_authorization: Option<&'a [u8]>,
    pub(super) body: BodyFraming,
}

/// How long the body is (RFC 9112, section 6.3); no body is a length of 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BodyFraming {
    Length(u64),
    Chunked,
}

/// Judges the head that `search` has delimited.
pub(super) fn judge<'a>(
    head: &'a [u8],
    search: &SectionSearch,
    limits: &Limits,
) -> Result<JudgedHead<'a>, Violation> {
    search.only_line_ends(head)?;
    let mut lines = search.lines(head);
    let line = request_line(lines.next().unwrap_or_default())?;
    let mut facts = FramingFields::default();
    let mut count = 0;
    for field in lines {
        count += 1;
        if count > limits.header_count {
            return Err(Violation::too_many());
        }
        let (name, value) = fields::field(field)?;
        facts.note(name, value)?;
    }
    let body = facts.settle(&line)?;
    Ok(JudgedHead {
        method: line.method,
        target: line.target,
        host: facts.host,
        proxy_authorization: facts.proxy_authorization,
        body,
    })
}

struct RequestLine<'a> {
    method: &'a [u8],
    target: &'a [u8],
    http_11: bool,
}

fn request_line(line: &[u8]) -> Result<RequestLine<'_>, Violation> {
    const MALFORMED: Violation = Violation::malformed("request line");
    let (method, rest) = line.split_at_checked(fields::token_length(line)).ok_or(MALFORMED)?;
    let rest = rest.strip_prefix(b" ").ok_or(MALFORMED)?;
    let (target, version) = rest.split_last_chunk::<9>().ok_or(MALFORMED)?;
    let http_11 = match version {
        b" HTTP/1.1" => true,
        b" HTTP/1.0" => false,
        [b' ', b'H', b'T', b'T', b'P', b'/', b'0'..=b'9', b'.', b'0'..=b'9'] => {
            return Err(Violation::version());
        }
        _ => return Err(MALFORMED),
    };
    if method.is_empty() || target.is_empty() {
        return Err(MALFORMED);
    }
    // A fragment never belongs on the wire; some readers cut it off, others do not.
    if target.iter().fold(false, |bad, b| bad | !(0x21..=0x7e).contains(b) | (*b == b'#')) {
        return Err(Violation::malformed("request target"));
    }
    if !target_suits(method, target) {
        return Err(Violation::malformed("form of the request target"));
    }
    Ok(RequestLine { method, target, http_11 })
}

/// The four forms of RFC 9112, section 3.2, each only with its methods.
fn target_suits(method: &[u8], target: &[u8]) -> bool {
    match (method, target) {
        (b"CONNECT", _) => !target.iter().any(|b| matches!(b, b'/' | b'?' | b'@')),
        (_, [b'/', ..]) | (b"OPTIONS", b"*") => true,
        (_, _) => {
            let scheme = target.iter().take_while(|b| b.is_ascii_alphabetic()).count();
            scheme > 0 && target.get(scheme..).is_some_and(|rest| rest.starts_with(b"://"))
        }
    }
}

/// The fields of framing and routing.
#[derive(Default)]
struct FramingFields<'a> {
    host: Option<&'a [u8]>,
    length: Option<u64>,
    chunked: bool,
    proxy_authorization: Option<&'a [u8]>,
}

impl<'a> FramingFields<'a> {
    fn note(&mut self, name: &'a [u8], value: &'a [u8]) -> Result<(), Violation> {
        match name.len() {
            4 if name.eq_ignore_ascii_case(b"host") => {
                if !value.iter().all(u8::is_ascii_graphic) {
                    return Err(Violation::malformed("host"));
                }
                once(&mut self.host, value, "several host headers")
            }
            10 if name.eq_ignore_ascii_case(b"connection") && !fields::nominates_hop_by_hop(value) => {
                Err(Violation::malformed("connection names an end-to-end header"))
            }
            14 if name.eq_ignore_ascii_case(b"content-length") => {
                once(&mut self.length, plain_number(value)?, "several content-length headers")
            }
            17 if name.eq_ignore_ascii_case(b"transfer-encoding") => {
                if self.chunked || !value.eq_ignore_ascii_case(b"chunked") {
                    return Err(Violation::malformed("transfer-encoding other than chunked once"));
                }
                self.chunked = true;
                Ok(())
            }
            19 if name.eq_ignore_ascii_case(b"proxy-authorization") => {
                once(&mut self.proxy_authorization, value, "several proxy-authorization headers")
            }
            _ => Ok(()),
        }
    }

    fn settle(&self, line: &RequestLine<'_>) -> Result<BodyFraming, Violation> {
        if line.http_11 && self.host.is_none() {
            return Err(Violation::malformed("no host header"));
        }
        let body = match (self.chunked, self.length) {
            (true, Some(_)) => return Err(Violation::malformed("content-length beside transfer-encoding")),
            (true, None) if !line.http_11 => {
                return Err(Violation::malformed("transfer-encoding in HTTP/1.0"));
            }
            (true, None) => BodyFraming::Chunked,
            (false, length) => BodyFraming::Length(length.unwrap_or(0)),
        };
        // RFC 9110, section 9.3.6: a CONNECT has no content, and readers differ if it claims to have some.
        if line.method == b"CONNECT" && body != BodyFraming::Length(0) {
            return Err(Violation::malformed("CONNECT with a body"));
        }
        Ok(body)
    }
}

fn once<T>(slot: &mut Option<T>, value: T, twice: &'static str) -> Result<(), Violation> {
    if slot.replace(value).is_some() { Err(Violation::malformed(twice)) } else { Ok(()) }
}

/// A `Content-Length`: digits alone, no leading zero (some read octal), at most 18 (some count in i64).
pub(super) fn plain_number(value: &[u8]) -> Result<u64, Violation> {
    let plain = matches!(value, [b'0'] | [b'1'..=b'9', ..])
        && value.len() <= 18
        && value.iter().all(u8::is_ascii_digit);
    if !plain {
        return Err(Violation::malformed("content-length is no plain number"));
    }
    Ok(value.iter().fold(0, |number, digit| number * 10 + u64::from(digit - b'0')))
}
