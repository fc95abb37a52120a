//! An agent: it goes through the explicit listener with full control over names, TLS and bytes.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use rustls::{ClientConfig, RootCertStore, SupportedProtocolVersion};

use super::h2::H2;
use super::{Answer, Connection};

/// Who dials where, and whom it trusts.
#[derive(Clone)]
pub(crate) struct Agent {
    proxy: SocketAddr,
    roots: Arc<RootCertStore>,
    password: Option<String>,
}

/// A TLS connection to be made through the proxy; what is not said is what an honest client would do.
pub(crate) struct Dial {
    agent: Agent,
    authority: String,
    server_name: String,
    protocols: Vec<Vec<u8>>,
    versions: Vec<&'static SupportedProtocolVersion>,
    identity: Option<super::pki::Identity>,
}

impl Agent {
    pub(crate) fn new(proxy: SocketAddr, roots: Arc<RootCertStore>) -> Self {
        Self { proxy, roots, password: None }
    }

    /// The same agent, trusting others.
    pub(crate) fn trusting(mut self, roots: Arc<RootCertStore>) -> Self {
        self.roots = roots;
        self
    }

    /// The same agent with a proxy password.
    pub(crate) fn password(mut self, password: &str) -> Self {
        self.password = Some(password.to_owned());
        self
    }

    /// A bare connection to the proxy.
    pub(crate) fn open(&self) -> Connection {
        Connection::open(self.proxy)
    }

    /// Asks for a tunnel to `host:port`. Err: the proxy's answer that is not 200.
    pub(crate) fn connect(&self, authority: &str) -> Result<Connection, Answer> {
        let mut connection = self.open();
        let authorization = self.authorization();
        connection.send(format!("CONNECT {authority} HTTP/1.1\r\nHost: {authority}\r\n{authorization}\r\n"));
        let mut answer = connection.read_head();
        if answer.status == 200 {
            return Ok(connection);
        }
        if let Some(length) = answer.header("content-length") {
            answer.body = connection.read_exactly(length.parse().unwrap());
        }
        Err(answer)
    }

    /// A TLS connection to this name on 443, to be described further.
    pub(crate) fn dial(&self, name: &str) -> Dial {
        Dial {
            agent: self.clone(),
            authority: format!("{name}:443"),
            server_name: name.to_owned(),
            protocols: vec![b"http/1.1".to_vec()],
            versions: rustls::ALL_VERSIONS.to_vec(),
            identity: None,
        }
    }

    /// A TLS connection to this name on 443, for HTTP/1.1.
    #[track_caller]
    pub(crate) fn tls(&self, name: &str) -> Connection {
        self.dial(name).open().unwrap()
    }

    /// An h2 connection to this name on 443.
    #[track_caller]
    pub(crate) fn h2(&self, name: &str) -> H2 {
        self.dial(name).h2()
    }

    /// GET on a connection of its own.
    #[track_caller]
    pub(crate) fn get(&self, url: &str) -> Answer {
        self.request("GET", url, &[], b"")
    }

    /// One request on a connection of its own: CONNECT and TLS for `https`, the absolute form for `http`.
    #[track_caller]
    pub(crate) fn request(&self, method: &str, url: &str, headers: &[(&str, &str)], body: &[u8]) -> Answer {
        let (scheme, rest) = url.split_once("://").unwrap();
        let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
        let (mut connection, target) = if scheme == "https" {
            let (name, port) = authority.split_once(':').unwrap_or((authority, "443"));
            (self.dial(name).port(port.parse().unwrap()).open().unwrap(), format!("/{path}"))
        } else {
            (self.open(), url.to_owned())
        };
        let mut head = format!("{method} {target} HTTP/1.1\r\nHost: {authority}\r\n");
        if scheme == "http" {
            head.push_str(&self.authorization());
        }
        for (name, value) in headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        if !body.is_empty() {
            head.push_str(&format!("Content-Length: {}\r\n", body.len()));
        }
        connection.send(format!("{head}\r\n"));
        // A refusal may come, and the connection end, before the body was taken.
        let _ = connection.try_send(body);
        connection.read_answer()
    }

    fn authorization(&self) -> String {
        let encode = |password| BASE64_STANDARD.encode(format!("agent:{password}"));
        let line = |password| format!("Proxy-Authorization: Basic {}\r\n", encode(password));
        self.password.as_ref().map(line).unwrap_or_default()
    }
}

impl Dial {
    /// Another port in CONNECT.
    pub(crate) fn port(mut self, port: u16) -> Self {
        let (name, _) = self.authority.rsplit_once(':').unwrap();
        self.authority = format!("{name}:{port}");
        self
    }

    /// Another authority in CONNECT than the name in TLS.
    pub(crate) fn authority(mut self, authority: &str) -> Self {
        authority.clone_into(&mut self.authority);
        self
    }

    /// The application protocols offered; none sends no ALPN at all.
    pub(crate) fn protocols(mut self, protocols: &[&str]) -> Self {
        self.protocols = protocols.iter().map(|name| name.as_bytes().to_vec()).collect();
        self
    }

    /// The TLS versions offered.
    pub(crate) fn versions(mut self, versions: &[&'static SupportedProtocolVersion]) -> Self {
        self.versions = versions.to_vec();
        self
    }

    /// A client certificate to present where it is asked for.
    pub(crate) fn identity(mut self, identity: super::pki::Identity) -> Self {
        self.identity = Some(identity);
        self
    }

    /// CONNECT, then the handshake. Err: the handshake failed or the connection ended.
    #[track_caller]
    pub(crate) fn open(self) -> io::Result<Connection> {
        let config = self.config();
        let connection = self.agent.connect(&self.authority).unwrap();
        connection.start_tls(&self.server_name, config)
    }

    /// CONNECT, then the handshake, each byte in a segment of its own.
    #[track_caller]
    pub(crate) fn byte_by_byte(self) -> io::Result<Connection> {
        let config = self.config();
        self.agent.connect(&self.authority).unwrap().start_tls_byte_by_byte(&self.server_name, config)
    }

    /// CONNECT, the handshake with `h2` alone, and the HTTP/2 preface.
    #[track_caller]
    pub(crate) fn h2(self) -> H2 {
        let dial = self.protocols(&["h2"]);
        H2::open(dial.agent.proxy, &dial.authority, &dial.server_name, dial.config())
    }

    /// The TLS configuration of a client like this one.
    pub(crate) fn config(&self) -> Arc<ClientConfig> {
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let builder = ClientConfig::builder_with_provider(provider)
            .with_protocol_versions(&self.versions)
            .unwrap()
            .with_root_certificates(Arc::clone(&self.agent.roots));
        let mut config = match &self.identity {
            Some(identity) => builder.with_client_auth_cert(identity.chain(), identity.key()).unwrap(),
            None => builder.with_no_client_auth(),
        };
        config.alpn_protocols.clone_from(&self.protocols);
        Arc::new(config)
    }
}
