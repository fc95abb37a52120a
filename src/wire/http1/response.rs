//! Refuses response heads that hyper's client accepts and another reader could frame differently.

use http::header::{CONTENT_LENGTH, TRANSFER_ENCODING};
use http::{HeaderMap, StatusCode};

use super::head::plain_number;
use super::violation::Violation;

/// Judges the head of an HTTP/1 response that hyper has parsed; a violation is answered with 502, and the upstream
/// connection is closed.
///
/// hyper's client itself refuses folded lines, a space before the colon, control bytes, lengths that differ, and a
/// transfer coding in HTTP/1.0. It takes a length beside a transfer coding, any list of codings that ends in
/// `chunked` (which it leaves undecoded), any other coding (read to the end of the connection), and a length that
/// is repeated or written as a list.
pub fn check_response(status: StatusCode, headers: &HeaderMap) -> Result<(), Violation> {
    let mut codings = headers.get_all(TRANSFER_ENCODING).iter();
    let coding = codings.next();
    if coding.is_some_and(|c| !c.as_bytes().eq_ignore_ascii_case(b"chunked")) || codings.next().is_some() {
        return Err(Violation::upstream("transfer-encoding other than chunked once"));
    }
    let mut lengths = headers.get_all(CONTENT_LENGTH).iter();
    let length = lengths.next();
    if coding.is_some() && length.is_some() {
        return Err(Violation::upstream("content-length beside transfer-encoding"));
    }
    if lengths.next().is_some() {
        return Err(Violation::upstream("several content-length headers"));
    }
    let length = length.map(|l| plain_number(l.as_bytes())).transpose();
    let length = length.map_err(|violation| Violation::upstream(violation.reason()))?;
    // RFC 9110, section 8.6, and RFC 9112, section 6.1: hyper takes these as empty whatever they claim.
    let has_no_body = status.is_informational() || status == StatusCode::NO_CONTENT;
    if has_no_body && (coding.is_some() || length.is_some_and(|l| l > 0)) {
        return Err(Violation::upstream("a body where the status has none"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict(status: u16, headers: &[(&'static str, &'static str)]) -> Result<(), &'static str> {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.append(*name, value.parse().unwrap());
        }
        check_response(StatusCode::from_u16(status).unwrap(), &map).map_err(|v| v.reason())
    }

    #[test]
    fn a_response_that_is_framed_once_passes() {
        for (status, headers) in [
            (200, &[("content-length", "5")][..]),
            (200, &[("content-length", "0")]),
            (200, &[("transfer-encoding", "chunked")]),
            (200, &[("transfer-encoding", "Chunked")]),
            (200, &[]),
            (204, &[("content-length", "0")]),
            (304, &[("content-length", "5")]),
        ] {
            assert_eq!(verdict(status, headers), Ok(()), "{status} {headers:?}");
        }
    }

    #[test]
    fn a_response_that_readers_could_frame_differently_is_refused() {
        let coding = "transfer-encoding other than chunked once";
        let number = "content-length is no plain number";
        for (status, headers, reason) in [
            (200, &[("transfer-encoding", "gzip, chunked")][..], coding),
            (200, &[("transfer-encoding", "gzip"), ("transfer-encoding", "chunked")], coding),
            (200, &[("transfer-encoding", "chunked"), ("transfer-encoding", "chunked")], coding),
            (200, &[("transfer-encoding", "identity")], coding),
            (200, &[("transfer-encoding", "xchunked")], coding),
            (
                200,
                &[("transfer-encoding", "chunked"), ("content-length", "5")],
                "content-length beside transfer-encoding",
            ),
            (200, &[("content-length", "5"), ("content-length", "5")], "several content-length headers"),
            (200, &[("content-length", "5, 5")], number),
            (200, &[("content-length", "+5")], number),
            (200, &[("content-length", "05")], number),
            (204, &[("content-length", "5")], "a body where the status has none"),
            (204, &[("transfer-encoding", "chunked")], "a body where the status has none"),
            (101, &[("content-length", "5")], "a body where the status has none"),
        ] {
            assert_eq!(verdict(status, headers), Err(reason), "{status} {headers:?}");
        }
    }
}
