//! Where agents come in, and where the gateway tells about itself.

use std::collections::BTreeMap;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use ipnet::IpNet;
use serde::{Deserialize, Serialize};

use super::dns::DnsSettings;
use super::value::{self, Written, show, text};
use crate::file_path::FilePath;
use crate::name::gateway;
use crate::name::host::{Authority, Host};
use crate::policy::address::{POOL, POOL_V6};
use crate::problem::Problem;

/// The port that the kernel redirects TCP to where none is configured.
pub const TRANSPARENT_PORT: u16 = 15_001;
/// The port of the explicit proxy where none is configured.
pub const EXPLICIT_PORT: u16 = 15_002;
/// The port of `/healthz`, `/readyz` and `/metrics` where none is configured.
pub const ADMIN_PORT: u16 = 15_090;
/// Where the status socket is where none is configured and this directory exists.
pub const STATUS_SOCKET: &str = "/run/postern/status.sock";

/// The ways in. At least one is there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Listeners {
    pub transparent: Option<Transparent>,
    pub explicit: Option<Explicit>,
    #[serde(default)]
    pub reverse: Vec<Reverse>,
    /// No way in by itself: it gives names the addresses that transparent connections are made to.
    pub dns: Option<DnsSettings>,
}

/// Connections that `postern redirect` made the kernel bring here, on 127.0.0.1 and `[::1]`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Transparent {
    #[serde(deserialize_with = "value::port")]
    pub port: u16,
}

/// The explicit proxy: CONNECT and absolute-form requests.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct Explicit {
    #[serde(deserialize_with = "text", serialize_with = "show")]
    pub address: SocketAddr,
    /// Holds the password that clients must present, with any user name.
    pub password_file: Option<FilePath>,
}

/// A port that stands for one upstream.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reverse {
    #[serde(deserialize_with = "text", serialize_with = "show")]
    pub address: SocketAddr,
    #[serde(deserialize_with = "text", serialize_with = "show")]
    pub upstream: OriginUrl,
}

/// An upstream as a URL without a path names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OriginUrl {
    /// `https`, else `http`.
    pub secure: bool,
    pub host: Host,
    pub port: u16,
}

/// What the gateway tells about itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Admin {
    /// `/healthz`, `/readyz` and `/metrics`, nothing else.
    #[serde(deserialize_with = "text", serialize_with = "show")]
    pub address: SocketAddr,
    /// The Unix socket of `postern status`. Not written: [`STATUS_SOCKET`], where its directory exists.
    pub socket: Option<FilePath>,
}

impl Default for Listeners {
    /// Without `listeners`, the explicit proxy alone runs.
    fn default() -> Self {
        Self { transparent: None, explicit: Some(Explicit::default()), reverse: Vec::new(), dns: None }
    }
}

impl Default for Transparent {
    fn default() -> Self {
        Self { port: TRANSPARENT_PORT }
    }
}

impl Default for Explicit {
    fn default() -> Self {
        Self { address: (Ipv4Addr::LOCALHOST, EXPLICIT_PORT).into(), password_file: None }
    }
}

impl Default for Admin {
    fn default() -> Self {
        Self { address: (Ipv4Addr::UNSPECIFIED, ADMIN_PORT).into(), socket: None }
    }
}

impl Listeners {
    /// Whether agents have a way in.
    pub(super) fn is_empty(&self) -> bool {
        self.transparent.is_none() && self.explicit.is_none() && self.reverse.is_empty()
    }

    /// The addresses that stand for names, and are never dialled.
    pub fn pools(&self) -> [IpNet; 2] {
        [IpNet::V4(self.dns.as_ref().map_or(POOL, |dns| dns.pool)), IpNet::V6(POOL_V6)]
    }

    /// Which addresses are given twice; port 0 is never the same port.
    pub(super) fn shared(&self, admin: &Admin) -> Vec<Problem> {
        let mut problems = Vec::new();
        let reverse = self.reverse.iter().enumerate();
        let transparent = self.transparent.iter().flat_map(Transparent::addresses);
        let named = std::iter::once(("admin.address".to_owned(), admin.address))
            .chain(transparent.map(|address| ("listeners.transparent.port".to_owned(), address)))
            .chain(self.explicit.iter().map(|e| ("listeners.explicit.address".to_owned(), e.address)))
            .chain(
                self.dns
                    .iter()
                    .flat_map(DnsSettings::addresses)
                    .map(|at| ("listeners.dns.port".to_owned(), at)),
            )
            .chain(reverse.map(|(i, r)| (format!("listeners.reverse[{i}].address"), r.address)));
        let mut taken = BTreeMap::<u16, Vec<(String, IpAddr)>>::new();
        for (name, address) in named.filter(|(_, address)| address.port() != 0) {
            let others = taken.entry(address.port()).or_default();
            if let Some((other, _)) = others.iter().find(|(_, ip)| overlap(*ip, address.ip())) {
                let message = format!("{name} and {other} share port {}", address.port());
                problems.push(Problem::at("", message));
            }
            others.push((name, address.ip()));
        }
        problems
    }
}

/// Whether two sockets on one port would be in each other's way.
fn overlap(a: IpAddr, b: IpAddr) -> bool {
    a == b || ((a.is_unspecified() || b.is_unspecified()) && a.is_ipv4() == b.is_ipv4())
}

impl Transparent {
    /// Both loopbacks.
    pub fn addresses(&self) -> [SocketAddr; 2] {
        [(Ipv4Addr::LOCALHOST, self.port).into(), (Ipv6Addr::LOCALHOST, self.port).into()]
    }
}

impl Written for OriginUrl {
    /// Reads `https://host[:port]` or `http://host[:port]`; a slash may follow, nothing else.
    fn parse(text: &str) -> Result<Self, String> {
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
        if let Some(name) = authority.host.name() {
            gateway::refuse_own(name.clone()).map_err(|error| error.to_string())?;
        }
        let port = authority.port.unwrap_or(if secure { 443 } else { 80 });
        Ok(Self { secure, host: authority.host, port })
    }
}

impl fmt::Display for OriginUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.secure { "https" } else { "http" };
        write!(f, "{scheme}://{}", Authority { host: self.host.clone(), port: Some(self.port) })
    }
}
