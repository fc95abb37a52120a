//! The demo's agent: it goes through the explicit listener over real TLS, and says what it was shown.

use std::net::SocketAddr;
use std::sync::Arc;

use anyhow::{Context, bail};
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Request, StatusCode, header};
use http_body_util::{BodyExt, Full};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use x509_parser::prelude::{FromDer, X509Certificate};

use crate::drain::Drain;
use crate::name::gateway;

/// The longest answer to CONNECT.
const HEAD: usize = 16 << 10;

/// Trusts Postern's CA and the upstream's, so that the certificate it is shown tells who ended the TLS.
pub(super) struct DemoAgent {
    pub(super) proxy: SocketAddr,
    pub(super) password: String,
    pub(super) tls: Arc<ClientConfig>,
    pub(super) drain: Drain,
}

/// The answer as the agent sees it.
#[derive(Debug)]
pub(super) struct AgentAnswer {
    /// The issuer's common name; `None` where CONNECT was refused.
    pub(super) issuer: Option<String>,
    pub(super) status: StatusCode,
    pub(super) headers: HeaderMap,
    pub(super) body: String,
}

/// A request of the agent.
pub(super) struct Ask<'a> {
    pub(super) method: &'a str,
    /// The name in CONNECT and TLS.
    pub(super) name: &'a str,
    /// The name in `Host`.
    pub(super) host: &'a str,
    pub(super) path: &'a str,
    /// `Authorization: Bearer …`
    pub(super) key: Option<&'a str>,
    /// JSON, or nothing.
    pub(super) body: String,
}

impl<'a> Ask<'a> {
    pub(super) fn get(name: &'a str, path: &'a str) -> Self {
        Self { method: "GET", name, host: name, path, key: None, body: String::new() }
    }

    pub(super) fn post(name: &'a str, path: &'a str, body: String) -> Self {
        Self { method: "POST", body, ..Self::get(name, path) }
    }

    pub(super) fn with_key(self, key: &'a str) -> Self {
        Self { key: Some(key), ..self }
    }
}

impl DemoAgent {
    /// A TLS client that trusts these roots, PEM.
    pub(super) fn tls(roots: &[&str]) -> anyhow::Result<Arc<ClientConfig>> {
        let mut store = RootCertStore::empty();
        for root in roots {
            store.add(CertificateDer::from_pem_slice(root.as_bytes())?)?;
        }
        Ok(Arc::new(ClientConfig::builder().with_root_certificates(store).with_no_client_auth()))
    }

    /// Sends one request on a connection of its own.
    pub(super) async fn ask(&self, ask: &Ask<'_>) -> anyhow::Result<AgentAnswer> {
        let mut stream = TcpStream::connect(self.proxy).await?;
        if let Some(refused) = self.connect(&mut stream, &format!("{}:443", ask.name)).await? {
            return Ok(refused);
        }
        let name = ServerName::try_from(ask.name.to_owned())?;
        let stream = TlsConnector::from(Arc::clone(&self.tls)).connect(name, stream).await?;
        let (_, connection) = stream.get_ref();
        let issuer =
            issuer(connection.peer_certificates().and_then(<[_]>::first).context("no certificate")?)?;
        let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
        // How the connection ends is told by the answer.
        self.drain.detach(async move { drop(connection.await) });
        let mut request = Request::builder().method(ask.method).uri(ask.path).header(header::HOST, ask.host);
        if let Some(key) = ask.key {
            request = request.header(header::AUTHORIZATION, format!("Bearer {key}"));
        }
        if !ask.body.is_empty() {
            request = request.header(header::CONTENT_TYPE, "application/json");
        }
        let request = request.body(Full::<Bytes>::from(ask.body.clone()))?;
        let (head, body) = sender.send_request(request).await?.into_parts();
        let body = String::from_utf8_lossy(&body.collect().await?.to_bytes()).into_owned();
        Ok(AgentAnswer { issuer: Some(issuer), status: head.status, headers: head.headers, body })
    }

    /// Asks the gateway itself, at its own name. Returns the body of its answer.
    pub(super) async fn ask_gateway(&self, path: &str) -> anyhow::Result<String> {
        let mut stream = TcpStream::connect(self.proxy).await?;
        if let Some(refused) =
            self.connect(&mut stream, &format!("{}:{}", gateway::NAME, gateway::PORT)).await?
        {
            bail!("{}: {}", refused.status, refused.body);
        }
        let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
        self.drain.detach(async move { drop(connection.await) });
        let request = Request::get(path).header(header::HOST, gateway::NAME).body(Full::<Bytes>::default())?;
        let body = sender.send_request(request).await?.into_body().collect().await?.to_bytes();
        Ok(String::from_utf8_lossy(&body).into_owned())
    }

    /// Asks for a tunnel to a name and port. Answers what was shown instead of one.
    async fn connect(&self, stream: &mut TcpStream, to: &str) -> anyhow::Result<Option<AgentAnswer>> {
        let pair = BASE64_STANDARD.encode(format!("agent:{}", self.password));
        let head =
            format!("CONNECT {to} HTTP/1.1\r\nHost: {to}\r\nProxy-Authorization: Basic {pair}\r\n\r\n");
        stream.write_all(head.as_bytes()).await?;
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") && head.len() < HEAD {
            head.push(stream.read_u8().await?);
        }
        let mut fields = [httparse::EMPTY_HEADER; 32];
        let mut answer = httparse::Response::new(&mut fields);
        if answer.parse(&head)?.is_partial() {
            bail!("the answer to CONNECT has no end");
        }
        let status = StatusCode::from_u16(answer.code.unwrap_or_default())?;
        if status.is_success() {
            return Ok(None);
        }
        let mut headers = HeaderMap::new();
        for field in answer.headers.iter() {
            let name = header::HeaderName::from_bytes(field.name.as_bytes())?;
            headers.append(name, HeaderValue::from_bytes(field.value)?);
        }
        let mut body = String::new();
        stream.read_to_string(&mut body).await?;
        Ok(Some(AgentAnswer { issuer: None, status, headers, body }))
    }
}

impl AgentAnswer {
    /// A header's text, or nothing.
    pub(super) fn header(&self, name: &str) -> &str {
        self.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
    }
}

fn issuer(certificate: &CertificateDer<'_>) -> anyhow::Result<String> {
    let (_, certificate) = X509Certificate::from_der(certificate)?;
    let name = certificate.issuer().iter_common_name().next().context("an issuer without a common name")?;
    Ok(name.as_str()?.to_owned())
}
