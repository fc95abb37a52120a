//! The sockets that settings ask for, bound before any of them is served.

use std::net::SocketAddr;
use std::sync::Arc;

use tokio::net::TcpListener;

use super::password;
use crate::admin::status::ListenerStatus;
use crate::config::Settings;
use crate::config::dns::DnsSettings;
use crate::config::listeners::Listeners;
use crate::dns::{self, Names, Sockets};
use crate::problem::Problem;
use crate::proxy::inbound::listener::{Password, Way};

/// Sockets that are bound, and not served yet.
pub(super) struct BoundSockets {
    pub(super) ways: Vec<(TcpListener, Way, ListenerStatus)>,
    pub(super) dns: Option<BoundDns>,
    pub(super) admin: TcpListener,
}

/// The resolver's sockets, and the names that it gives addresses.
pub(super) struct BoundDns {
    pub(super) sockets: Sockets,
    pub(super) names: Arc<Names>,
}

impl BoundSockets {
    /// Where everything listens.
    pub(super) fn addresses(&self) -> Vec<SocketAddr> {
        let ways = self.ways.iter().map(|(listener, ..)| listener).chain([&self.admin]);
        let resolver = self.dns.iter().flat_map(|dns| dns.sockets.addresses().iter().copied());
        ways.filter_map(|listener| listener.local_addr().ok()).chain(resolver).collect()
    }

    /// Where everything listens, as status shows it.
    pub(super) fn shown(&self) -> Vec<ListenerStatus> {
        let ways = self.ways.iter().map(|(_, _, shown)| shown.clone());
        let resolver = self.dns.iter().flat_map(|dns| dns.sockets.addresses().iter().map(shown_dns));
        ways.chain(resolver).chain([shown("admin", &self.admin, None)]).collect()
    }
}

/// Binds every listener of the settings.
///
/// # Errors
/// Sockets that cannot be bound.
pub(super) async fn bind(settings: &Settings) -> Result<BoundSockets, Vec<Problem>> {
    let Listeners { transparent, explicit, reverse, dns } = &settings.listeners;
    let mut ways = Vec::new();
    if let Some(transparent) = transparent {
        let listeners = crate::bind::tcp_on_loopbacks(transparent.port).await;
        for listener in listeners.map_err(|message| vec![Problem::at("listeners.transparent", message)])? {
            let shown = shown("transparent", &listener, None);
            ways.push((listener, Way::Transparent, shown));
        }
    }
    if let Some(explicit) = explicit {
        let password = match &explicit.password_file {
            Some(file) => {
                let line = password::read(file).map_err(|problem| vec![problem])?;
                Some(Arc::new(Password::new(line.into_bytes())))
            }
            None => None,
        };
        let listener = bind_one(explicit.address, "listeners.explicit").await?;
        let shown = shown("explicit", &listener, None);
        ways.push((listener, Way::Explicit { password }, shown));
    }
    for (i, reverse) in reverse.iter().enumerate() {
        let listener = bind_one(reverse.address, &format!("listeners.reverse[{i}]")).await?;
        let shown = shown("reverse", &listener, Some(reverse.upstream.to_string()));
        ways.push((listener, Way::Reverse(reverse.upstream.clone()), shown));
    }
    let dns = match dns {
        Some(dns) => Some(bind_dns(dns).await?),
        None => None,
    };
    let admin = bind_one(settings.admin.address, "admin.address").await?;
    warn_of_strangers(&settings.listeners);
    Ok(BoundSockets { ways, dns, admin })
}

/// Warns of listeners that anybody who reaches them may use, and with them the credentials that are attached here.
fn warn_of_strangers(listeners: &Listeners) {
    let without_password = listeners.explicit.iter().filter(|explicit| explicit.password_file.is_none());
    let explicit = without_password.map(|explicit| {
        ("listeners.explicit", explicit.address, "set passwordFile, or listen on a loopback address")
    });
    let reverse = listeners
        .reverse
        .iter()
        .map(|reverse| ("listeners.reverse", reverse.address, "listen on a loopback address"));
    for (field, address, remedy) in explicit.chain(reverse).filter(|(_, at, _)| !at.ip().is_loopback()) {
        tracing::warn!(field, %address, remedy, "whoever reaches this address uses this gateway's credentials");
    }
}

async fn bind_one(address: SocketAddr, field: &str) -> Result<TcpListener, Vec<Problem>> {
    crate::bind::tcp(address).await.map_err(|message| vec![Problem::at(field, message)])
}

async fn bind_dns(settings: &DnsSettings) -> Result<BoundDns, Vec<Problem>> {
    let bound = dns::bind(settings.port).await;
    let sockets = bound.map_err(|message| vec![Problem::at("listeners.dns.port", message)])?;
    Ok(BoundDns { sockets, names: Arc::new(Names::new(settings.pool)) })
}

fn shown_dns(address: &SocketAddr) -> ListenerStatus {
    ListenerStatus { mode: "dns".to_owned(), address: address.to_string(), upstream: None }
}

fn shown(mode: &str, listener: &TcpListener, upstream: Option<String>) -> ListenerStatus {
    let address = listener.local_addr().map(|address| address.to_string()).unwrap_or_default();
    ListenerStatus { mode: mode.to_owned(), address, upstream }
}
