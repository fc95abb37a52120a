//! Where agents come in, and where the gateway tells about itself.

use std::collections::BTreeMap;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;

use ipnet::IpNet;

use super::dns::Dns;
use super::section::Field;
use crate::name::host::{Authority, Host};
use crate::policy::address::{POOL, POOL_V6};

/// The port that the kernel redirects TCP to where none is configured.
pub const TRANSPARENT_PORT: u16 = 15_001;
/// The port of the explicit proxy where none is configured.
pub const EXPLICIT_PORT: u16 = 15_002;
/// The port of `/healthz`, `/readyz` and `/metrics` where none is configured.
pub const ADMIN_PORT: u16 = 15_090;
/// Where the status socket is where none is configured and this directory exists.
pub const STATUS_SOCKET: &str = "/run/postern/status.sock";

/// The ways in. At least one is there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listeners {
    pub transparent: Option<Transparent>,
    pub explicit: Option<Explicit>,
    pub reverse: Vec<Reverse>,
    /// No way in by itself: it gives names the addresses that transparent connections are made to.
    pub dns: Option<Dns>,
}

/// Connections that `postern redirect` made the kernel bring here, on 127.0.0.1 and `[::1]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Transparent {
    pub port: u16,
}

/// The explicit proxy: CONNECT and absolute-form requests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Explicit {
    pub address: SocketAddr,
    /// Holds the password that clients must present, with any user name.
    pub password_file: Option<PathBuf>,
}

/// A port that stands for one upstream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reverse {
    pub address: SocketAddr,
    pub upstream: Origin,
}

/// An upstream as a URL without a path names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Origin {
    /// `https`, else `http`.
    pub secure: bool,
    pub host: Host,
    pub port: u16,
}

/// What the gateway tells about itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Admin {
    /// `/healthz`, `/readyz` and `/metrics`, nothing else.
    pub address: SocketAddr,
    /// The Unix socket of `postern status`. Not written: [`STATUS_SOCKET`], where its directory exists.
    pub socket: Option<PathBuf>,
}

impl Listeners {
    /// Without `listeners`, the explicit proxy alone runs.
    pub(super) fn read(field: &Field<'_>) -> Self {
        let by_default = !field.is_written();
        field.section(|s| {
            let dns = s.field("dns");
            let (explicit, reverse) = (s.field("explicit"), s.field("reverse"));
            let transparent = s.field("transparent");
            let wanted = explicit.is_written() || by_default;
            let others = transparent.is_written() || (reverse.is_written() && !reverse.is_empty_list());
            if !wanted && !others {
                field.reject(
                    "lists no listener: write `explicit: {}` for the proxy on its default port, \
                     or leave `listeners` out",
                );
            }
            Self {
                transparent: transparent.is_written().then(|| Transparent::read(&transparent)),
                explicit: wanted.then(|| Explicit::read(&explicit)),
                reverse: reverse.list(Reverse::read),
                dns: dns.is_written().then(|| Dns::read(&dns)),
            }
        })
    }

    /// The addresses that stand for names, and are never dialled.
    pub fn pools(&self) -> [IpNet; 2] {
        [IpNet::V4(self.dns.as_ref().map_or(POOL, |dns| dns.pool)), IpNet::V6(POOL_V6)]
    }

    /// Says which addresses are given twice; port 0 is never the same port.
    pub(super) fn reject_shared(&self, admin: &Admin, field: &Field<'_>) {
        let reverse = self.reverse.iter().enumerate();
        let transparent = self.transparent.iter().flat_map(Transparent::addresses);
        let named = std::iter::once(("admin.address".to_owned(), admin.address))
            .chain(transparent.map(|address| ("listeners.transparent.port".to_owned(), address)))
            .chain(self.explicit.iter().map(|e| ("listeners.explicit.address".to_owned(), e.address)))
            .chain(self.dns.iter().flat_map(Dns::addresses).map(|at| ("listeners.dns.port".to_owned(), at)))
            .chain(reverse.map(|(i, r)| (format!("listeners.reverse[{i}].address"), r.address)));
        let mut taken = BTreeMap::<u16, Vec<(String, IpAddr)>>::new();
        for (name, address) in named.filter(|(_, address)| address.port() != 0) {
            let others = taken.entry(address.port()).or_default();
            if let Some((other, _)) = others.iter().find(|(_, ip)| overlap(*ip, address.ip())) {
                field.reject(format!("{name} and {other} share port {}", address.port()));
            }
            others.push((name, address.ip()));
        }
    }
}

/// Whether two sockets on one port would be in each other's way.
fn overlap(a: IpAddr, b: IpAddr) -> bool {
    a == b || ((a.is_unspecified() || b.is_unspecified()) && a.is_ipv4() == b.is_ipv4())
}

impl Transparent {
    fn read(field: &Field<'_>) -> Self {
        field.section(|s| Self { port: s.field("port").port_or(TRANSPARENT_PORT) })
    }

    /// Both loopbacks.
    pub fn addresses(&self) -> [SocketAddr; 2] {
        [(Ipv4Addr::LOCALHOST, self.port).into(), (Ipv6Addr::LOCALHOST, self.port).into()]
    }
}

impl Explicit {
    fn read(field: &Field<'_>) -> Self {
        let default = SocketAddr::from((Ipv4Addr::LOCALHOST, EXPLICIT_PORT));
        field.section(|s| Self {
            address: s.field("address").socket_address().unwrap_or(default),
            password_file: s.field("passwordFile").path(),
        })
    }
}

impl Reverse {
    fn read(field: &Field<'_>) -> Option<Self> {
        let (address, upstream) = field.section(|s| {
            let (address, upstream) = (s.field("address"), s.field("upstream"));
            address.require(": an IP address with a port");
            upstream.require(": the URL that this port stands for");
            (address.socket_address(), upstream.parsed(Origin::parse))
        });
        Some(Self { address: address?, upstream: upstream? })
    }
}

impl Admin {
    pub(super) fn read(field: &Field<'_>) -> Self {
        let default = SocketAddr::from((Ipv4Addr::UNSPECIFIED, ADMIN_PORT));
        field.section(|s| Self {
            address: s.field("address").socket_address().unwrap_or(default),
            socket: s.field("socket").path(),
        })
    }
}

impl Origin {
    /// Reads `https://host[:port]` or `http://host[:port]`; a slash may follow, nothing else.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let expected = || "expected a URL like https://api.example.com or http://127.0.0.1:8080".to_owned();
        let (scheme, rest) = text.split_once("://").ok_or_else(expected)?;
        let secure = match scheme {
            "https" => true,
            "http" => false,
            _ => return Err(expected()),
        };
        // Said before anything of the text is repeated: it may be a password.
        if rest.contains('@') {
            return Err("a URL in the settings may hold no user name or password".to_owned());
        }
        let authority = rest.strip_suffix('/').unwrap_or(rest);
        if authority.contains(['/', '?', '#']) {
            return Err("expected a URL without a path or query".to_owned());
        }
        let authority = Authority::parse(authority).map_err(|error| format!("{authority:?}: {error}"))?;
        let port = authority.port.unwrap_or(if secure { 443 } else { 80 });
        Ok(Self { secure, host: authority.host, port })
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.secure { "https" } else { "http" };
        write!(f, "{scheme}://{}", Authority { host: self.host.clone(), port: Some(self.port) })
    }
}
