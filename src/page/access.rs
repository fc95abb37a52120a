//! Who may read the page: whoever has the address that was printed, and no page of another site.

use std::sync::{Mutex, PoisonError};

use aws_lc_rs::constant_time::verify_slices_are_equal;
use http::header::{HOST, HeaderName, ORIGIN};
use http::request::Parts;
use http::uri::Authority;
use http::{Method, StatusCode};

/// The names of this machine by which a browser may ask. A web page that rebinds its own name to the loopback asks by that
/// name. The port is not compared: it is another one where `ssh -L` or an editor forwards it.
const OWN_NAMES: [&str; 3] = ["127.0.0.1", "localhost", "[::1]"];

const FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");
const FETCH_MODE: HeaderName = HeaderName::from_static("sec-fetch-mode");
const FETCH_DEST: HeaderName = HeaderName::from_static("sec-fetch-dest");

/// Why a request is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Refusal {
    /// `Host` is missing, there twice, or no name of this machine.
    Host,
    /// Another site asks.
    Origin,
    Method,
    Token,
}

impl Refusal {
    pub(super) fn status(self) -> StatusCode {
        match self {
            Self::Host => StatusCode::MISDIRECTED_REQUEST,
            Self::Origin | Self::Token => StatusCode::FORBIDDEN,
            Self::Method => StatusCode::METHOD_NOT_ALLOWED,
        }
    }

    /// Says what to do, for the person who reads it in a browser.
    pub(super) fn text(self) -> &'static str {
        match self {
            Self::Host => "this page is read at 127.0.0.1 or localhost alone\n",
            Self::Origin => "no other page may read this one: open the address that postern printed\n",
            Self::Method => "only GET and HEAD\n",
            Self::Token => "open the whole address that postern printed, with the part behind the port\n",
        }
    }
}

/// What a request has to show.
pub(super) struct PageAccess {
    token: String,
    /// Leads to the page once.
    ticket: Mutex<Option<String>>,
}

impl PageAccess {
    pub(super) fn new(token: String) -> Self {
        Self { token, ticket: Mutex::default() }
    }

    /// Lets one request through that shows this ticket, instead of the token.
    pub(super) fn issue(&self, ticket: String) {
        *self.ticket.lock().unwrap_or_else(PoisonError::into_inner) = Some(ticket);
    }

    /// Takes the ticket of a path, `/open/TICKET`, and returns where the page is.
    pub(super) fn redeem(&self, path: &str) -> Option<String> {
        let shown = path.strip_prefix("/open/")?;
        let mut ticket = self.ticket.lock().unwrap_or_else(PoisonError::into_inner);
        verify_slices_are_equal(shown.as_bytes(), ticket.as_deref()?.as_bytes()).ok()?;
        *ticket = None;
        Some(format!("/{}/", self.token))
    }

    /// Returns the path below the token, without the slash in front of it.
    pub(super) fn admit<'a>(&self, request: &'a Parts) -> Result<&'a str, Refusal> {
        let host = own_host(request).ok_or(Refusal::Host)?;
        let path = self.below_token(request.uri.path());
        if !is_own_origin(request, host, path == Some("")) {
            return Err(Refusal::Origin);
        }
        if request.method != Method::GET && request.method != Method::HEAD {
            return Err(Refusal::Method);
        }
        path.ok_or(Refusal::Token)
    }

    fn below_token<'a>(&self, path: &'a str) -> Option<&'a str> {
        let (token, rest) = path.strip_prefix('/')?.split_once('/')?;
        verify_slices_are_equal(token.as_bytes(), self.token.as_bytes()).ok().map(|()| rest)
    }
}

/// The one `Host`, where it is a name of this machine; a target in absolute form must name the same.
fn own_host(request: &Parts) -> Option<&str> {
    let mut fields = request.headers.get_all(HOST).iter();
    let (field, None) = (fields.next()?.to_str().ok()?, fields.next()) else { return None };
    let authority: Authority = field.parse().ok()?;
    let is_own = !field.contains('@') && OWN_NAMES.contains(&authority.host());
    let is_same = request.uri.authority().is_none_or(|target| target.as_str() == field);
    (is_own && is_same).then_some(field)
}

/// Whether the page itself asks, or a person opens the page, by a link elsewhere too. Browsers send `Sec-Fetch-Site`, all
/// but old ones, and `Origin` with whatever could change something or read across sites.
fn is_own_origin(request: &Parts, host: &str, is_page: bool) -> bool {
    let field = |name: &HeaderName| request.headers.get(name).map(|value| value.as_bytes());
    if field(&ORIGIN).is_some_and(|origin| origin.strip_prefix(b"http://") != Some(host.as_bytes())) {
        return false;
    }
    let is_opened =
        is_page && field(&FETCH_MODE) == Some(b"navigate") && field(&FETCH_DEST) == Some(b"document");
    match field(&FETCH_SITE) {
        None | Some(b"same-origin" | b"none") => true,
        Some(_) => is_opened,
    }
}

#[cfg(test)]
mod tests {
    use http::Request;

    use super::*;

    const HOST_FIELD: (&str, &str) = ("host", "127.0.0.1:4000");

    fn admitted(method: &str, target: &str, fields: &[(&str, &str)]) -> Result<String, Refusal> {
        let mut request = Request::builder().method(method).uri(target);
        for (name, value) in fields {
            request = request.header(*name, *value);
        }
        let (parts, ()) = request.body(()).unwrap().into_parts();
        PageAccess::new("secret".to_owned()).admit(&parts).map(str::to_owned)
    }

    fn with(fields: &[(&str, &str)]) -> Result<String, Refusal> {
        admitted("GET", "/secret/events", &[&[HOST_FIELD], fields].concat())
    }

    #[test]
    fn the_token_is_the_first_part_of_the_path() {
        assert_eq!(admitted("GET", "/secret/", &[HOST_FIELD]), Ok(String::new()));
        assert_eq!(admitted("HEAD", "/secret/a/b?c=d", &[HOST_FIELD]), Ok("a/b".to_owned()));
        for target in ["/", "/secret", "/secre/", "/secretx/", "//secret/", "/x/secret/", "*"] {
            assert_eq!(admitted("GET", target, &[HOST_FIELD]), Err(Refusal::Token), "{target}");
        }
    }

    #[test]
    fn a_ticket_leads_to_the_page_once() {
        let access = PageAccess::new("secret".to_owned());
        assert_eq!(access.redeem("/open/"), None);
        access.issue("ticket".to_owned());
        assert_eq!(access.redeem("/open/ticke"), None);
        assert_eq!(access.redeem("/open/ticket").as_deref(), Some("/secret/"));
        assert_eq!(access.redeem("/open/ticket"), None);
    }

    #[test]
    fn a_name_that_is_not_this_machines_is_refused() {
        for host in ["127.0.0.1:4000", "localhost:8080", "localhost", "[::1]:4000"] {
            assert!(admitted("GET", "/secret/", &[("host", host)]).is_ok(), "{host}");
        }
        for host in [
            "evil.example:4000",
            "127.0.0.1.evil.example",
            "localhost.evil.example",
            "a@localhost",
            "0.0.0.0:4000",
            "",
            "x y",
        ] {
            assert_eq!(admitted("GET", "/secret/", &[("host", host)]), Err(Refusal::Host), "{host}");
        }
        assert_eq!(admitted("GET", "/secret/", &[]), Err(Refusal::Host));
        assert_eq!(admitted("GET", "/secret/", &[HOST_FIELD, HOST_FIELD]), Err(Refusal::Host));
        assert_eq!(admitted("GET", "http://evil.example/secret/", &[HOST_FIELD]), Err(Refusal::Host));
        assert!(admitted("GET", "http://127.0.0.1:4000/secret/", &[HOST_FIELD]).is_ok());
    }

    #[test]
    fn another_site_reads_nothing_even_with_the_token() {
        assert!(with(&[("origin", "http://127.0.0.1:4000"), ("sec-fetch-site", "same-origin")]).is_ok());
        assert!(with(&[("sec-fetch-site", "none")]).is_ok());
        for origin in [
            "http://evil.example",
            "null",
            "https://127.0.0.1:4000",
            "http://127.0.0.1:4001",
            "http://127.0.0.1",
        ] {
            assert_eq!(with(&[("origin", origin)]), Err(Refusal::Origin), "{origin}");
        }
        for site in ["cross-site", "same-site", "later"] {
            assert_eq!(with(&[("sec-fetch-site", site)]), Err(Refusal::Origin), "{site}");
        }
    }

    #[test]
    fn a_link_elsewhere_opens_the_page_and_embeds_nothing() {
        let ask = |target: &str, mode: &str, dest: &str| {
            let fields = [
                HOST_FIELD,
                ("sec-fetch-site", "cross-site"),
                ("sec-fetch-mode", mode),
                ("sec-fetch-dest", dest),
            ];
            admitted("GET", target, &fields)
        };
        assert!(ask("/secret/", "navigate", "document").is_ok());
        for (target, mode, dest) in [
            ("/secret/", "navigate", "iframe"),
            ("/secret/", "no-cors", "script"),
            ("/secret/events", "navigate", "document"),
        ] {
            assert_eq!(ask(target, mode, dest), Err(Refusal::Origin), "{target} {mode} {dest}");
        }
    }

    #[test]
    fn nothing_but_reading_is_a_method() {
        for method in ["POST", "PUT", "DELETE", "OPTIONS", "PATCH", "PURGE"] {
            assert_eq!(admitted(method, "/secret/", &[HOST_FIELD]), Err(Refusal::Method), "{method}");
        }
    }
}
