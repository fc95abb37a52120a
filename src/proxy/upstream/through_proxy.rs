//! The corporate proxy: a CONNECT before anything else (RFC 9110, section 9.3.6).

use std::net::SocketAddr;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout_at};
use zeroize::Zeroizing;

use super::Route;
use super::dial::{Dialled, connect_any, resolve};
use super::places::{Place, Places};
use crate::config::upstream::UpstreamProxy;
use crate::name::host::Host;
use crate::proxy::error::{Class, Failure, Stop};

/// The longest answer to CONNECT, in bytes.
const HEAD: usize = 16 << 10;

/// The proxy of the company, for all hosts but its exceptions.
pub(crate) struct CorporateProxy {
    settings: UpstreamProxy,
    /// `Proxy-Authorization`'s value, as it is sent.
    authorization: Option<Zeroizing<String>>,
}

impl CorporateProxy {
    /// `credentials` is `user:password`.
    pub(crate) fn new(settings: UpstreamProxy, credentials: Option<&str>) -> Self {
        let authorization =
            credentials.map(|pair| Zeroizing::new(format!("Basic {}", BASE64_STANDARD.encode(pair))));
        Self { settings, authorization }
    }

    pub(crate) fn serves(&self, host: &Host) -> bool {
        !self.settings.excepts(host)
    }

    /// A connection to the route through the proxy. The proxy resolves the name.
    pub(crate) async fn connect(
        &self,
        route: Route<'_>,
        deadline: Instant,
        place: Place,
        places: &Places,
    ) -> Result<Dialled, Stop> {
        let addresses: Vec<SocketAddr> = match &self.settings.url.host {
            Host::Ip(ip) => vec![SocketAddr::new(*ip, self.settings.url.port)],
            Host::Name(name) => resolve(name.as_str(), self.settings.url.port, deadline, places).await?,
        };
        let mut dialled = connect_any(&addresses, deadline, place, places).await?;
        let exchange = async {
            dialled.tcp.write_all(self.request(route).as_bytes()).await?;
            read_head(&mut dialled.tcp).await
        };
        match timeout_at(deadline, exchange).await {
            Ok(Ok(Some(status))) if (200..300).contains(&status) => Ok(dialled),
            Ok(Ok(Some(status))) => {
                let message = format!("the upstream proxy refused the connection with status {status}");
                Err(Failure::new(Class::Proxy, message).into())
            }
            Ok(Ok(None) | Err(_)) => {
                Err(Failure::new(Class::Proxy, "the upstream proxy closed the connection or spoke no HTTP")
                    .into())
            }
            Err(_) => {
                Err(Failure::new(Class::ConnectTimeout, "the upstream proxy did not answer in time").into())
            }
        }
    }

    fn request(&self, route: Route<'_>) -> String {
        let authority = match route.host {
            Host::Ip(ip) => SocketAddr::new(*ip, route.port).to_string(),
            Host::Name(name) => format!("{name}:{}", route.port),
        };
        let authorization = self
            .authorization
            .as_ref()
            .map_or_else(String::new, |value| format!("Proxy-Authorization: {}\r\n", value.as_str()));
        format!("CONNECT {authority} HTTP/1.1\r\nHost: {authority}\r\n{authorization}\r\n")
    }
}

/// Reads the head of the answer and not a byte more: what follows belongs to the tunnel.
async fn read_head(tcp: &mut TcpStream) -> std::io::Result<Option<u16>> {
    let mut head = Vec::with_capacity(256);
    while !head.ends_with(b"\r\n\r\n") {
        if head.len() >= HEAD {
            return Ok(None);
        }
        head.push(tcp.read_u8().await?);
    }
    let mut fields = [httparse::EMPTY_HEADER; 64];
    let mut response = httparse::Response::new(&mut fields);
    Ok(response.parse(&head).ok().and(response.code))
}
