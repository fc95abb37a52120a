//! Makes a connection: a name is resolved here, every address is judged, and only then dialled.

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use ipnet::IpNet;
use rustls::pki_types::ServerName;
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout_at};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::places::{Place, Places};
use super::socket::Socket;
use super::{CorporateProxy, Origin};
use crate::decision::Decision;
use crate::name::host::{DnsName, Host};
use crate::policy::Policy;
use crate::policy::address::Reserved;
use crate::problem::is_passing;
use crate::proxy::error::{Class, Failure, Stop};
use crate::proxy::readahead::ReadAhead;
use crate::tls::roots::{Alpn, UpstreamTls};

/// How long an address has to answer before the next one is tried beside it (RFC 8305, section 5).
const ATTEMPT: Duration = Duration::from_millis(300);
/// Addresses of one name that are tried at most.
const ADDRESSES: usize = 16;

/// What a dialled connection is for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Route<'a> {
    pub(crate) host: &'a Host,
    pub(crate) port: u16,
}

impl<'a> Route<'a> {
    pub(crate) fn to(origin: &'a Origin) -> Self {
        Self { host: &origin.host, port: origin.port }
    }
}

/// All that a dial needs to know.
pub(crate) struct Dialer {
    pub(crate) reserved: Reserved,
    /// Names with an address of their own (`upstream.hosts`); `None` for the port means the flow's.
    pub(crate) hosts: HashMap<DnsName, (IpAddr, Option<u16>)>,
    pub(crate) tls: Arc<UpstreamTls>,
    pub(crate) proxy: Option<CorporateProxy>,
    pub(crate) timeout: Duration,
    pub(crate) places: Places,
}

/// The policy by which addresses are judged, and what its Audit policies alone would have denied of those that were
/// dialled for one exchange or tunnel.
pub(crate) struct AddressCheck<'a> {
    policy: &'a Policy,
    /// What the policy lifts (`allowAddresses`) for the provider of models that is dialled; none where it is none.
    allow: Option<&'a [IpNet]>,
    audited: OnceLock<Decision>,
}

impl<'a> AddressCheck<'a> {
    pub(crate) fn new(policy: &'a Policy) -> Self {
        Self { policy, allow: None, audited: OnceLock::new() }
    }

    /// The same for a provider of models, for which the policy lifts these ranges.
    pub(crate) fn of_provider(self, allow: &'a [IpNet]) -> Self {
        Self { allow: Some(allow), ..self }
    }

    fn judge(&self, reserved: &Reserved, ip: IpAddr, port: u16) -> Result<(), Decision> {
        let denied = match self.allow {
            None => reserved.judge(self.policy, ip, port),
            Some(allow) => reserved.judge_provider(self.policy, allow, (ip, port)),
        };
        denied.map_or(Ok(()), Err)
    }

    /// The first denial that Audit policies would have made, to be recorded.
    pub(crate) fn into_audited(self) -> Option<Decision> {
        self.audited.into_inner()
    }

    fn audit(&self, reserved: &Reserved, addresses: &[SocketAddr]) {
        let audited = addresses.iter().find_map(|at| reserved.audit(self.policy, at.ip(), at.port()));
        if let Some(decision) = audited {
            // A second attempt adds nothing.
            let _ = self.audited.set(decision);
        }
    }
}

/// A connection that was made, with its place.
pub(crate) struct Dialled {
    pub(crate) tcp: TcpStream,
    pub(crate) place: Place,
}

impl Dialer {
    /// A TCP connection to the route, through the corporate proxy where there is one.
    pub(crate) async fn tcp(
        &self,
        check: &AddressCheck<'_>,
        route: Route<'_>,
        place: Place,
    ) -> Result<Dialled, Stop> {
        let deadline = Instant::now() + self.timeout;
        let fixed = self.fixed(route.host);
        if let Some(proxy) = self.proxy_for(route.host) {
            if let Host::Ip(ip) = route.host {
                check.judge(&self.reserved, *ip, route.port)?;
            }
            return proxy.connect(route, deadline, place, &self.places).await;
        }
        let addresses = match (route.host, fixed) {
            (_, Some((ip, port))) => vec![SocketAddr::new(ip, port.unwrap_or(route.port))],
            (Host::Ip(ip), None) => vec![SocketAddr::new(*ip, route.port)],
            (Host::Name(name), None) => resolve(name.as_str(), route.port, deadline, &self.places).await?,
        };
        let allowed = self.allowed(check, &addresses)?;
        // An address that the flow names itself was audited with the flow.
        if let Host::Name(_) = route.host {
            check.audit(&self.reserved, &allowed);
        }
        tracing::debug!(host = %route.host, addresses = ?allowed, "dialling an upstream");
        Ok(connect_any(&allowed, deadline, place, &self.places).await?)
    }

    /// TLS to an origin, its certificate verified for the origin's name.
    pub(crate) async fn tls(
        &self,
        origin: &Origin,
        alpn: Alpn,
        dialled: Dialled,
    ) -> Result<TlsStream<ReadAhead<Socket>>, Stop> {
        let name = match &origin.host {
            Host::Name(name) => ServerName::try_from(name.as_str().to_owned()).map_err(|_| {
                Failure::new(Class::Untrusted, "the upstream's name cannot stand in a certificate")
            })?,
            Host::Ip(ip) => ServerName::IpAddress((*ip).into()),
        };
        let config = self.tls.client_config(&origin.host, alpn);
        let handshake = TlsConnector::from(config).connect(name, ReadAhead::new(Socket::new(dialled)));
        match tokio::time::timeout(self.timeout, handshake).await {
            Ok(Ok(tls)) => {
                let version = tls.get_ref().1.protocol_version();
                tracing::debug!(host = %origin.host, ?version, "an upstream is verified");
                Ok(tls)
            }
            Ok(Err(error)) => Err(Failure::handshake(&error).into()),
            Err(_) => {
                Err(Failure::new(Class::ConnectTimeout, "the upstream's TLS handshake took too long").into())
            }
        }
    }

    /// Whether a connection that was made before this policy may stay: its address is judged again. Which one it is
    /// behind the corporate proxy nobody here knows.
    pub(crate) fn keeps(&self, policy: &Policy, host: &Host, peer: SocketAddr) -> bool {
        let ip = match (host, self.proxy_for(host)) {
            (Host::Name(_), Some(_)) => return true,
            (Host::Ip(ip), Some(_)) => *ip,
            (Host::Name(_) | Host::Ip(_), None) => peer.ip(),
        };
        AddressCheck::new(policy).judge(&self.reserved, ip, peer.port()).is_ok()
    }

    fn fixed(&self, host: &Host) -> Option<(IpAddr, Option<u16>)> {
        host.name().and_then(|name| self.hosts.get(name)).copied()
    }

    /// The corporate proxy, unless the host is one of its exceptions or has an address of its own.
    fn proxy_for(&self, host: &Host) -> Option<&CorporateProxy> {
        self.proxy.as_ref().filter(|proxy| self.fixed(host).is_none() && proxy.serves(host))
    }

    /// The addresses that may be dialled; if none may, the decision on the first.
    fn allowed(&self, check: &AddressCheck<'_>, addresses: &[SocketAddr]) -> Result<Vec<SocketAddr>, Stop> {
        let mut refused = None;
        let mut allowed = Vec::with_capacity(addresses.len());
        for address in addresses {
            match check.judge(&self.reserved, address.ip(), address.port()) {
                Ok(()) => allowed.push(*address),
                Err(decision) => refused = refused.or(Some(decision)),
            }
        }
        match refused {
            Some(decision) if allowed.is_empty() => Err(Stop::from(decision)),
            Some(_) | None => Ok(allowed),
        }
    }
}

/// Where names stand that no DNS server knows, `hostAliases` of a pod among them. In a pod it is a copy from before the
/// agents ran, who may write the one that they share.
const HOSTS: &str = "/etc/hosts";

/// Asks the hosts file, then the system's resolver. The name is complete: resolv.conf's search domains, which could
/// lead it elsewhere, stay out of it by the dot at its end.
pub(super) async fn resolve(
    name: &str,
    port: u16,
    deadline: Instant,
    places: &Places,
) -> Result<Vec<SocketAddr>, Failure> {
    let name = name.to_owned();
    let asking = async {
        let place = places.lookup().await;
        // The place is held until the system has answered, which nothing can cut short.
        let looking = move || (look_up(&name, port), place);
        tokio::task::spawn_blocking(looking).await.map_or_else(|_| Err(unresolved()), |(found, _)| found)
    };
    timeout_at(deadline, asking).await.unwrap_or_else(|_| {
        Err(Failure::new(Class::ConnectTimeout, "the upstream's name was not resolved in time"))
    })
}

fn look_up(name: &str, port: u16) -> Result<Vec<SocketAddr>, Failure> {
    let hosts = match std::fs::read_to_string(HOSTS) {
        // It may list the name: to ask elsewhere instead could lead to another machine.
        Err(error) if is_passing(error.kind()) => return Err(unresolved()),
        read => read.unwrap_or_default(),
    };
    let known: Vec<_> = listed(&hosts, name).map(|ip| SocketAddr::new(ip, port)).take(ADDRESSES).collect();
    if !known.is_empty() {
        return Ok(known);
    }
    let asked = (format!("{name}."), port);
    let found: Vec<_> =
        (asked.0.as_str(), asked.1).to_socket_addrs().into_iter().flatten().take(ADDRESSES).collect();
    if found.is_empty() { Err(unresolved()) } else { Ok(found) }
}

fn unresolved() -> Failure {
    Failure::new(Class::Resolve, "the upstream's name cannot be resolved")
}

/// The addresses of a name in a hosts file (hosts(5)): an address, then names, then perhaps a comment.
fn listed<'a>(hosts: &'a str, name: &'a str) -> impl Iterator<Item = IpAddr> + 'a {
    hosts.lines().filter_map(move |line| {
        let mut words = line.split('#').next()?.split_whitespace();
        let ip = words.next()?.parse().ok()?;
        words.any(|word| word.eq_ignore_ascii_case(name)).then_some(ip)
    })
}

/// Connects to the first address that answers; a silent one does not hold up the next for long. Each attempt has a place
/// of its own: where no second one is free, the next address waits for an attempt that fails.
pub(super) async fn connect_any(
    addresses: &[SocketAddr],
    deadline: Instant,
    place: Place,
    places: &Places,
) -> Result<Dialled, Failure> {
    if let [address] = addresses {
        return single(*address, deadline, place).await;
    }
    let mut attempts = tokio::task::JoinSet::new();
    let mut rest = addresses.iter().copied().peekable();
    let (mut own, mut last) = (Some(place), None);
    loop {
        let place = rest.peek().and_then(|_| own.take().or_else(|| places.spare()));
        if let Some((place, address)) = place.and_then(|place| Some((place, rest.next()?))) {
            attempts.spawn(single(address, deadline, place));
        }
        let wait = if rest.peek().is_some() { deadline.min(Instant::now() + ATTEMPT) } else { deadline };
        match timeout_at(wait, attempts.join_next()).await {
            Ok(Some(Ok(Ok(dialled)))) => return Ok(dialled),
            Ok(Some(Ok(Err(failure)))) => last = Some(failure),
            Ok(Some(Err(_))) => {}
            Ok(None) => break,
            Err(_) if Instant::now() >= deadline => break,
            Err(_) => {}
        }
    }
    Err(last.unwrap_or_else(|| Failure::new(Class::ConnectTimeout, "the upstream did not accept in time")))
}

async fn single(address: SocketAddr, deadline: Instant, place: Place) -> Result<Dialled, Failure> {
    match timeout_at(deadline, TcpStream::connect(address)).await {
        Ok(Ok(tcp)) => {
            crate::proxy::inbound::listener::tune(&tcp);
            Ok(Dialled { tcp, place })
        }
        Ok(Err(error)) => Err(Failure::connect(&error)),
        Err(_) => Err(Failure::new(Class::ConnectTimeout, "the upstream did not accept in time")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hosts_file_answers_for_the_names_it_lists() {
        let hosts = "127.0.0.1 localhost\n# 192.0.2.9 model.corp\n192.0.2.1\tdb Model.Corp # ours\n2001:db8::1 model.corp\nbad model.corp\n";
        let found: Vec<String> = listed(hosts, "model.corp").map(|ip| ip.to_string()).collect();
        assert_eq!(found, ["192.0.2.1", "2001:db8::1"]);
        assert_eq!(listed(hosts, "corp").count(), 0);
    }
}
