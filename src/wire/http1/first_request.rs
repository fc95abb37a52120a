//! Reads the one request head that opens a connection to the explicit proxy.

use std::fmt;

use super::fields::{FieldSection, SectionSearch};
use super::head;
use super::limits::Limits;
use super::violation::Violation;

/// A whole and unambiguous request head, as it stands on the wire.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct RequestHead<'a> {
    pub method: &'a str,
    /// Visible ASCII: an authority for CONNECT, else absolute-form, origin-form or `*`.
    pub target: &'a str,
    /// How many bytes the head is, its empty line (and one before it) included.
    pub length: usize,
    /// The value of `Host`; visible ASCII, perhaps empty. Absent only in HTTP/1.0.
    pub host: Option<&'a str>,
    /// The value of `Proxy-Authorization`. A secret.
    pub proxy_authorization: Option<&'a str>,
}

/// Reads the head at the start of `bytes` by the rules of the [`Framer`](super::Framer); `None` needs more bytes.
pub fn first_request<'a>(bytes: &'a [u8], limits: &Limits) -> Result<Option<RequestHead<'a>>, Violation> {
    let mut search = SectionSearch::default();
    let Some(length) = search.end(bytes, limits, FieldSection::Head)? else { return Ok(None) };
    let head = head::judge(bytes.get(..length).unwrap_or(bytes), &search, limits)?;
    Ok(Some(RequestHead {
        method: text(head.method)?,
        target: text(head.target)?,
        length,
        host: head.host.map(text).transpose()?,
        proxy_authorization: head.proxy_authorization.map(text).transpose()?,
    }))
}

fn text(bytes: &[u8]) -> Result<&str, Violation> {
    std::str::from_utf8(bytes).map_err(|_| Violation::malformed("header value is no text"))
}

impl fmt::Debug for RequestHead<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RequestHead")
            .field("method", &self.method)
            .field("target", &self.target)
            .field("length", &self.length)
            .field("host", &self.host)
            .field("proxy_authorization", &self.proxy_authorization.map(|_| "…"))
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(bytes: &[u8]) -> Result<Option<RequestHead<'_>>, Violation> {
        first_request(bytes, &Limits::default())
    }

    #[test]
    fn a_connect_is_read_with_its_password_and_its_length() {
        let head = b"CONNECT api.example:443 HTTP/1.1\r\nHost: api.example:443\r\nProxy-Authorization: Basic czpw\r\n\r\n";
        let bytes = [&head[..], b"\x16\x03\x01"].concat();
        let request = read(&bytes).unwrap().unwrap();
        assert_eq!((request.method, request.target), ("CONNECT", "api.example:443"));
        assert_eq!(
            (request.host, request.proxy_authorization),
            (Some("api.example:443"), Some("Basic czpw"))
        );
        assert_eq!(request.length, head.len());
    }

    #[test]
    fn the_password_does_not_show_in_debug() {
        let head =
            b"GET http://a.example/ HTTP/1.1\r\nHost: a.example\r\nProxy-Authorization: Basic czpw\r\n\r\n";
        let debug = format!("{:?}", read(head).unwrap().unwrap());
        assert!(debug.contains("http://a.example/") && !debug.contains("czpw"), "{debug}");
    }

    #[test]
    fn a_head_that_is_not_all_there_needs_more() {
        let head = b"CONNECT a.example:443 HTTP/1.1\r\nHost: a.example:443\r\n\r\n";
        for end in 0..head.len() {
            assert_eq!(read(&head[..end]), Ok(None));
        }
    }

    #[test]
    fn http_1_0_may_come_without_host() {
        assert_eq!(read(b"CONNECT a.example:443 HTTP/1.0\r\n\r\n").unwrap().unwrap().host, None);
    }

    #[test]
    fn two_passwords_are_refused() {
        let head = b"CONNECT a:443 HTTP/1.1\r\nHost: a:443\r\nProxy-Authorization: x\r\nProxy-Authorization: y\r\n\r\n";
        assert_eq!(read(head).unwrap_err().reason(), "several proxy-authorization headers");
    }
}
