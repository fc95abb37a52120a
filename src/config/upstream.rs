//! How upstreams are reached and trusted.

use std::collections::BTreeMap;
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

use ipnet::IpNet;
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::listeners::OriginUrl;
use super::value::{self, Text, TextOrVariable, Written, show, show_all, texts};
use crate::file_path::FilePath;
use crate::name::host::{DnsName, Host};
use crate::policy::pattern::Pattern;
use crate::problem::Problem;
use crate::tls::roots::{HostTls, TlsSettings};
use crate::yaml::field;

/// The gateway's side towards the world.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct Upstream {
    /// PEM files whose certificates are trusted besides the system's.
    pub roots: Vec<FilePath>,
    /// The same of the environment (`SSL_CERT_FILE` and the like).
    #[serde(skip)]
    pub roots_of_environment: Vec<PathBuf>,
    pub proxy: Option<UpstreamProxy>,
    /// Names that are dialled at a fixed address instead of being resolved.
    #[serde(deserialize_with = "hosts", serialize_with = "show_hosts")]
    pub hosts: BTreeMap<DnsName, StaticAddress>,
    /// Trust and client certificates, by host in its canonical form.
    #[serde(deserialize_with = "tls")]
    pub tls: BTreeMap<String, HostTls>,
    #[serde(deserialize_with = "deny_addresses", serialize_with = "show_all")]
    pub deny_addresses: Vec<IpNet>,
    #[serde(deserialize_with = "texts", serialize_with = "show_all")]
    pub allow_addresses: Vec<IpNet>,
}

/// A corporate proxy that is asked, by CONNECT, for every upstream connection.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct UpstreamProxy {
    /// Where it is, by `http://`.
    #[serde(deserialize_with = "proxy_url", serialize_with = "show")]
    pub url: OriginUrl,
    /// One line, `user:password`.
    pub credentials_file: Option<FilePath>,
    /// What is dialled directly.
    #[serde(default, deserialize_with = "texts", serialize_with = "show_all")]
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
    /// What upstreams are trusted by, and what they are shown.
    pub fn tls_settings(&self) -> TlsSettings {
        TlsSettings {
            roots: self.roots.iter().map(|file| file.to_path_buf()).collect(),
            of_environment: self.roots_of_environment.clone(),
            hosts: self.tls.clone(),
        }
    }

    /// Hosts with half of a client's identity.
    pub(super) fn mistakes(&self) -> impl Iterator<Item = Problem> {
        let halves = self.tls.iter().filter(|(_, tls)| tls.certificate.is_some() != tls.key.is_some());
        halves.map(|(host, _)| {
            let message = "a client certificate needs both `certificate` and `key`";
            Problem::at(field::key("upstream.tls", host), message)
        })
    }
}

impl UpstreamProxy {
    /// Whether an upstream is dialled directly.
    pub fn excepts(&self, host: &Host) -> bool {
        self.except.iter().any(|except| except.covers(host))
    }
}

fn proxy_url<'de, D: Deserializer<'de>>(deserializer: D) -> Result<OriginUrl, D::Error> {
    let url = String::deserialize(deserializer)?;
    let message = if url.contains('@') {
        "put the proxy's user and password into a file, one line `user:password`, and name it as \
         `proxy: {url, credentialsFile}`"
    } else {
        let origin = OriginUrl::parse(&url).map_err(Error::custom)?;
        if !origin.secure {
            return Ok(origin);
        }
        "TLS to the upstream proxy itself is not supported yet by this build; write http://"
    };
    Err(Error::custom(message))
}

impl Written for Except {
    fn parse(text: &str) -> Result<Self, String> {
        if text.contains('/') || text.parse::<IpAddr>().is_ok() {
            return IpNet::parse(text).map(Self::Network);
        }
        Pattern::parse(text).map(Self::Host).map_err(|error| format!("{text:?}: {error}"))
    }
}

impl Except {
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

impl Written for StaticAddress {
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

impl fmt::Display for StaticAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.port {
            Some(port) => SocketAddr::new(self.ip, port).fmt(f),
            None => self.ip.fmt(f),
        }
    }
}

fn hosts<'de, D: Deserializer<'de>>(deserializer: D) -> Result<BTreeMap<DnsName, StaticAddress>, D::Error> {
    let hosts = value::map(deserializer, host_name)?;
    Ok(hosts.into_iter().map(|(name, Text(address))| (name, address)).collect())
}

fn show_hosts<S: Serializer>(
    hosts: &BTreeMap<DnsName, StaticAddress>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.collect_map(hosts.iter().map(|(name, at)| (name.as_str(), at.to_string())))
}

fn tls<'de, D: Deserializer<'de>>(deserializer: D) -> Result<BTreeMap<String, HostTls>, D::Error> {
    value::map(deserializer, |key| Ok(host(key)?.to_string()))
}

/// Reads the key of a map as a host, in its canonical form.
fn host(key: &str) -> Result<Host, String> {
    let host = if key.is_ascii() { Host::parse(key) } else { DnsName::parse_written(key).map(Host::Name) };
    host.map_err(|error| format!("the key is neither a host name nor an address: {error}"))
}

/// Reads the key of a map as a host name, in its canonical form.
fn host_name(key: &str) -> Result<DnsName, String> {
    host(key)?.name().cloned().ok_or_else(|| "the key is an address; only names can stand here".to_owned())
}

/// One network, or the comma-separated ones of a variable.
#[derive(Deserialize)]
#[serde(try_from = "TextOrVariable")]
struct Networks(Vec<IpNet>);

impl TryFrom<TextOrVariable> for Networks {
    type Error = String;

    fn try_from(networks: TextOrVariable) -> Result<Self, String> {
        if !networks.is_variable {
            return Ok(Self(vec![IpNet::parse(&networks.text)?]));
        }
        let list: Result<_, String> =
            networks.text.split(',').map(|item| IpNet::parse(item.trim())).collect();
        list.map(Self).map_err(|message| format!("the variable's value is wrong: {message}"))
    }
}

fn deny_addresses<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<IpNet>, D::Error> {
    Ok(Vec::<Networks>::deserialize(deserializer)?.into_iter().flat_map(|Networks(list)| list).collect())
}
