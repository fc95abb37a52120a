//! Makes heads fit for the next hop: fields of one hop, and those that speak for the gateway, are dropped.

use bytes::Bytes;
use http::header::{self, HeaderMap, HeaderName, HeaderValue};
use http::uri::{PathAndQuery, Scheme, Uri};
use http::{Request, Version};
use http_body::Frame;

use super::overrides::is_override;
use crate::proxy::body::request::RequestBody;
use crate::proxy::upstream::{Origin, Speaks};
use crate::wire::http1::fit_for_trailers;

/// Fields of one hop (RFC 9110, section 7.6.1), in either direction.
const HOP: [HeaderName; 6] = [
    header::CONNECTION,
    header::PROXY_AUTHENTICATE,
    header::TE,
    header::TRANSFER_ENCODING,
    header::UPGRADE,
    header::PROXY_AUTHORIZATION,
];
const HOP_BY_NAME: [&str; 3] = ["keep-alive", "proxy-connection", "http2-settings"];

/// Whether a field is dropped whichever way it goes: of one hop, ours, or one that two servers read differently.
pub(crate) fn is_left_behind(name: &HeaderName) -> bool {
    let text = name.as_str();
    HOP.contains(name)
        || HOP_BY_NAME.contains(&text)
        || is_override(text)
        || text.starts_with("x-postern-")
        || text.contains('_')
}

/// Addresses a request to its upstream: origin-form and `Host` over HTTP/1.1, pseudo-fields over HTTP/2.
pub(crate) fn address(request: &mut Request<RequestBody>, origin: &Origin, speaks: Speaks) {
    let authority = origin.authority();
    let path = request.uri().path_and_query().cloned().unwrap_or_else(|| PathAndQuery::from_static("/"));
    let mut uri = http::uri::Parts::default();
    uri.path_and_query = Some(path);
    request.headers_mut().remove(header::HOST);
    request.headers_mut().remove(header::TRANSFER_ENCODING);
    match speaks {
        Speaks::H1 => {
            join_cookies(request.headers_mut());
            if request.body().is_unmeasured() {
                // Unasked, hyper leaves the body of a GET out.
                request.headers_mut().insert(header::TRANSFER_ENCODING, HeaderValue::from_static("chunked"));
            }
            if let Ok(host) = HeaderValue::from_str(&authority) {
                request.headers_mut().insert(header::HOST, host);
            }
            *request.version_mut() = Version::HTTP_11;
        }
        Speaks::H2 => {
            uri.scheme = Some(if origin.tls { Scheme::HTTPS } else { Scheme::HTTP });
            uri.authority = authority.parse().ok();
            *request.version_mut() = Version::HTTP_2;
        }
    }
    if let Ok(uri) = Uri::from_parts(uri) {
        *request.uri_mut() = uri;
    }
}

/// HTTP/2 may split cookies over several fields, HTTP/1.1 may not (RFC 9113, section 8.2.3).
fn join_cookies(head: &mut HeaderMap) {
    let crumbs: Vec<&[u8]> = head.get_all(header::COOKIE).iter().map(HeaderValue::as_bytes).collect();
    if crumbs.len() > 1
        && let Ok(cookie) = HeaderValue::from_bytes(&crumbs.join(&b"; "[..]))
    {
        head.insert(header::COOKIE, cookie);
    }
}

/// Removes from a head all that does not go on. `TE: trailers` is kept, as gRPC asks for it.
pub(crate) fn strip(head: &mut HeaderMap) {
    let wants_trailers =
        head.get(header::TE).is_some_and(|te| te.as_bytes().eq_ignore_ascii_case(b"trailers"));
    let dropped: Vec<HeaderName> = head.keys().filter(|name| is_left_behind(name)).cloned().collect();
    for name in dropped {
        head.remove(name);
    }
    if wants_trailers {
        head.insert(header::TE, HeaderValue::from_static("trailers"));
    }
}

/// Trailers are fields that nobody decided on: those that frame, route or authenticate are dropped
/// (RFC 9110, section 6.5.1).
pub(crate) fn without_forbidden_trailers(mut frame: Frame<Bytes>) -> Frame<Bytes> {
    if let Some(trailers) = frame.trailers_mut() {
        let unfit = |name: &HeaderName| !fit_for_trailers(name.as_str().as_bytes()) || is_left_behind(name);
        let forbidden: Vec<_> = trailers.keys().filter(|name| unfit(name)).cloned().collect();
        for name in forbidden {
            trailers.remove(name);
        }
    }
    frame
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stripped(name: &'static str) -> bool {
        let mut head = HeaderMap::new();
        head.insert(name, HeaderValue::from_static("x"));
        strip(&mut head);
        head.is_empty()
    }

    #[test]
    fn what_belongs_to_one_hop_stays_behind() {
        for name in ["connection", "keep-alive", "te", "upgrade", "proxy-authorization", "transfer-encoding"]
        {
            assert!(stripped(name), "{name}");
        }
        assert!(!stripped("accept"));
    }

    #[test]
    fn what_speaks_for_the_gateway_or_for_another_method_stays_behind() {
        for name in [
            "x-postern-rule",
            "x_api_key",
            "x-http-method-override",
            "x-http-method",
            "x-method",
            "x-original-url",
            "x-rewrite-url",
            "x-forwarded-prefix",
            "x-forwarded-host",
        ] {
            assert!(stripped(name), "{name}");
        }
        assert!(!stripped("x-forwarded-for"));
        assert!(!stripped("x-api-key"));
    }

    #[test]
    fn cookies_that_came_in_pieces_go_on_as_one() {
        let mut head = HeaderMap::new();
        head.append(header::COOKIE, HeaderValue::from_static("a=1"));
        head.append(header::COOKIE, HeaderValue::from_static("b=2"));
        join_cookies(&mut head);
        let cookies: Vec<_> = head.get_all(header::COOKIE).iter().map(HeaderValue::as_bytes).collect();
        assert_eq!(cookies, [b"a=1; b=2"]);
    }

    #[test]
    fn a_wish_for_trailers_goes_on() {
        let mut head = HeaderMap::new();
        head.insert(header::TE, HeaderValue::from_static("Trailers"));
        strip(&mut head);
        assert_eq!(head.get(header::TE).map(HeaderValue::as_bytes), Some(&b"trailers"[..]));
    }
}
