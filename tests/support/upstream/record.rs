//! What an upstream saw: connections and requests as plain data.

use http::{HeaderMap, Request};
use rustls::ServerConnection;

/// One accepted connection.
#[derive(Debug, Clone)]
pub(crate) struct Link {
    pub(crate) sni: Option<String>,
    pub(crate) alpn: Option<String>,
    /// The client's own certificate, DER.
    pub(crate) client_certificate: Option<Vec<u8>>,
    pub(crate) handshake_error: Option<String>,
    pub(crate) ended: bool,
}

/// One request. The body and trailers grow as they arrive.
#[derive(Debug, Clone)]
pub(crate) struct Seen {
    /// The index of the connection among the upstream's links.
    pub(crate) link: usize,
    /// `HTTP/1.1` or `HTTP/2`.
    pub(crate) version: &'static str,
    pub(crate) method: String,
    /// Path and query, as received.
    pub(crate) target: String,
    /// The `Host` header, or `:authority`.
    pub(crate) authority: String,
    /// Names in lower case, in the order received.
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
    pub(crate) trailers: Vec<(String, String)>,
    /// Whether the body has arrived whole.
    pub(crate) complete: bool,
}

impl Link {
    pub(super) fn new() -> Self {
        Self { sni: None, alpn: None, client_certificate: None, handshake_error: None, ended: false }
    }

    pub(super) fn note_handshake(&mut self, tls: &ServerConnection) {
        self.sni = tls.server_name().map(str::to_owned);
        self.alpn = tls.alpn_protocol().map(|name| String::from_utf8_lossy(name).into_owned());
        self.client_certificate =
            tls.peer_certificates().and_then(|chain| chain.first()).map(|one| one.to_vec());
    }
}

impl Seen {
    pub(super) fn of<B>(request: &Request<B>, link: usize) -> Self {
        let h2 = request.version() == http::Version::HTTP_2;
        let host = || request.headers().get("host").map(|host| text(host.as_bytes()));
        let authority = request.uri().authority().map(|authority| authority.to_string());
        Self {
            link,
            version: if h2 { "HTTP/2" } else { "HTTP/1.1" },
            method: request.method().to_string(),
            target: request.uri().path_and_query().map_or_else(String::new, ToString::to_string),
            authority: authority.or_else(host).unwrap_or_default(),
            headers: pairs(request.headers()),
            body: Vec::new(),
            trailers: Vec::new(),
            complete: false,
        }
    }

    /// One line, without the body.
    pub(super) fn short(&self) -> String {
        let Self { link, version, method, target, authority, complete, .. } = self;
        format!(
            "{link}: {method} {authority} {target} {version}, {} bytes, whole: {complete}",
            self.body.len()
        )
    }

    /// The first header of that name.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    /// The value of a query parameter, undecoded.
    pub(crate) fn query(&self, name: &str) -> Option<&str> {
        let (_, query) = self.target.split_once('?')?;
        query.split('&').find_map(|pair| pair.strip_prefix(name)?.strip_prefix('='))
    }

    pub(crate) fn path(&self) -> &str {
        self.target.split('?').next().unwrap_or_default()
    }
}

/// Header fields as text.
pub(crate) fn pairs(headers: &HeaderMap) -> Vec<(String, String)> {
    headers.iter().map(|(name, value)| (name.to_string(), text(value.as_bytes()))).collect()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
