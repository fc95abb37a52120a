//! How upstreams are reached and trusted.

use std::collections::BTreeMap;
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

use ipnet::IpNet;

use super::listeners::Origin;
use super::section::Field;
use crate::name::host::{DnsName, Host};
use crate::policy::pattern::Pattern;
use crate::tls::roots::{HostTls, TlsSettings};

/// The gateway's side towards the world.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Upstream {
    /// `upstream.roots` and `upstream.tls`.
    pub tls: TlsSettings,
    pub proxy: Option<UpstreamProxy>,
    /// Names that are dialled at a fixed address instead of being resolved.
    pub hosts: BTreeMap<DnsName, StaticAddress>,
    pub deny_addresses: Vec<IpNet>,
    pub allow_addresses: Vec<IpNet>,
}

/// A corporate proxy that is asked, by CONNECT, for every upstream connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UpstreamProxy {
    pub host: Host,
    pub port: u16,
    /// One line, `user:password`.
    pub credentials_file: Option<PathBuf>,
    /// What is dialled directly.
    pub except: Vec<Except>,
}

/// One exception from the upstream proxy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Except {
    Host(Pattern),
    /// Upstreams that are addressed by IP, in this network.
    Network(IpNet),
}

/// Where a name is dialled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StaticAddress {
    pub ip: IpAddr,
    /// `None`: the port that was asked for.
    pub port: Option<u16>,
}

impl Upstream {
    pub(super) fn read(field: &Field<'_>) -> Self {
        field.section(|s| Self {
            tls: TlsSettings {
                roots: s.field("roots").list(Field::path),
                of_environment: Vec::new(),
                hosts: s.field("tls").map(|name, field| {
                    let host = host_key(name, field);
                    let tls = host_tls(field);
                    Some((host?.to_string(), tls))
                }),
            },
            proxy: UpstreamProxy::read(&s.field("proxy")),
            hosts: s.field("hosts").map(|name, field| {
                let host = name_key(name, field);
                let address = field.parsed(StaticAddress::parse);
                Some((host?, address?))
            }),
            deny_addresses: s.field("denyAddresses").list(networks).into_iter().flatten().collect(),
            allow_addresses: s.field("allowAddresses").list(|field| field.parsed(network)),
        })
    }
}

fn host_tls(field: &Field<'_>) -> HostTls {
    let tls = field.section(|s| HostTls {
        roots: s.field("roots").list(Field::path),
        certificate: s.field("certificate").path(),
        key: s.field("key").path(),
    });
    if tls.certificate.is_some() != tls.key.is_some() {
        field.reject("a client certificate needs both `certificate` and `key`");
    }
    tls
}

impl UpstreamProxy {
    /// Where the proxy is, as a URL.
    pub fn url(&self) -> String {
        Origin { secure: false, host: self.host.clone(), port: self.port }.to_string()
    }

    /// Whether an upstream is dialled directly.
    pub fn excepts(&self, host: &Host) -> bool {
        self.except.iter().any(|except| except.covers(host))
    }

    /// Reads a URL alone, or a map with the URL, credentials and exceptions.
    fn read(field: &Field<'_>) -> Option<Self> {
        if !field.is_written() {
            return None;
        }
        if !field.is_map() {
            return field.parsed(Self::at);
        }
        field.section(|s| {
            let url = s.field("url");
            url.require("");
            let credentials_file = s.field("credentialsFile").path();
            let except = s.field("except").list(|field| field.parsed(Except::parse));
            Some(Self { credentials_file, except, ..url.parsed(Self::at)? })
        })
    }

    fn at(url: &str) -> Result<Self, String> {
        if url.contains('@') {
            return Err("put the proxy's user and password into a file, one line `user:password`, \
                        and name it as `proxy: {url, credentialsFile}`"
                .to_owned());
        }
        let origin = Origin::parse(url)?;
        if origin.secure {
            return Err("TLS to the upstream proxy itself is not supported yet by this build; write http://"
                .to_owned());
        }
        Ok(Self { host: origin.host, port: origin.port, credentials_file: None, except: Vec::new() })
    }
}

impl Except {
    fn parse(text: &str) -> Result<Self, String> {
        if text.contains('/') || text.parse::<IpAddr>().is_ok() {
            return network(text).map(Self::Network);
        }
        Pattern::parse(text).map(Self::Host).map_err(|error| format!("{text:?}: {error}"))
    }

    fn covers(&self, host: &Host) -> bool {
        match self {
            Self::Host(pattern) => pattern.matches(host),
            Self::Network(network) => host.ip().is_some_and(|ip| network.contains(&ip)),
        }
    }
}

impl fmt::Display for Except {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Host(pattern) => pattern.fmt(f),
            Self::Network(network) => network.fmt(f),
        }
    }
}

impl StaticAddress {
    fn parse(text: &str) -> Result<Self, String> {
        if let Ok(ip) = text.parse::<IpAddr>() {
            return Ok(Self { ip, port: None });
        }
        match text.parse::<SocketAddr>() {
            Ok(address) if address.port() != 0 => Ok(Self { ip: address.ip(), port: Some(address.port()) }),
            Ok(_) | Err(_) => Err(format!(
                "expected an IP address, with a port or without, like \"127.0.0.1:8443\", found {text:?}"
            )),
        }
    }
}

/// Reads the key of a map as a host, in its canonical form.
fn host_key(key: &str, field: &Field<'_>) -> Option<Host> {
    let host = if key.is_ascii() { Host::parse(key) } else { DnsName::parse_written(key).map(Host::Name) };
    host.map_err(|error| field.reject(format!("the key is neither a host name nor an address: {error}"))).ok()
}

/// Reads the key of a map as a host name, in its canonical form.
fn name_key(key: &str, field: &Field<'_>) -> Option<DnsName> {
    let host = host_key(key, field)?;
    if host.name().is_none() {
        field.reject("the key is an address; only names can stand here");
    }
    host.name().cloned()
}

/// Reads one network, or the comma-separated ones of a variable.
fn networks(field: &Field<'_>) -> Option<Vec<IpNet>> {
    if !field.is_map() {
        return field.parsed(network).map(|network| vec![network]);
    }
    let text = field.text_or_variable()?;
    let networks: Result<_, _> = text.split(',').map(|item| network(item.trim())).collect();
    networks.map_err(|message| field.reject(format!("the variable's value is wrong: {message}"))).ok()
}

/// Reads a network in CIDR form, or one address; bits beyond the prefix are a likely mistake and refused.
pub(super) fn network(text: &str) -> Result<IpNet, String> {
    if let Ok(ip) = text.parse::<IpAddr>() {
        return Ok(IpNet::from(ip));
    }
    match text.parse::<IpNet>() {
        Ok(net) if net.addr() == net.network() => Ok(net),
        Ok(net) => Err(format!("{text} has bits beyond its prefix; did you mean {}?", net.trunc())),
        Err(_) => Err(format!("expected a network like 10.96.0.0/16 or an address, found {text:?}")),
    }
}
