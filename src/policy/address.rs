//! Addresses that are not dialled, judged on the address that would really be.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use ipnet::{IpNet, Ipv4Net, Ipv6Net};

use super::Policy;
use crate::canary::{CANARY_V4, CANARY_V6};
use crate::decision::Decision;

const fn v4(a: u8, b: u8, c: u8, d: u8, prefix: u8) -> IpNet {
    IpNet::V4(Ipv4Net::new_assert(Ipv4Addr::new(a, b, c, d), prefix))
}

const fn v6(segments: [u16; 8], prefix: u8) -> IpNet {
    let [a, b, c, d, e, f, g, h] = segments;
    IpNet::V6(Ipv6Net::new_assert(Ipv6Addr::new(a, b, c, d, e, f, g, h), prefix))
}

/// Ranges that agents do not need and attackers do: this host, its neighbours, its cloud's metadata.
const BUILT_IN: &[IpNet] = &[
    // This host, which Linux takes for loopback (RFC 1122 section 3.2.1.3), and loopback.
    v4(0, 0, 0, 0, 8),
    v4(127, 0, 0, 0, 8),
    v6([0, 0, 0, 0, 0, 0, 0, 0], 128),
    v6([0, 0, 0, 0, 0, 0, 0, 1], 128),
    // Link-local. The metadata of AWS (with ECS 169.254.170.2 and EKS 169.254.170.23), Azure, Google, Oracle, IBM,
    // Huawei, Tencent (169.254.0.23), Baidu, DigitalOcean, Hetzner, Akamai, OVH, Vultr, Exoscale, Scaleway
    // (169.254.42.42), Yandex, Equinix and OpenStack (fe80::a9fe:a9fe too) is in here, by their documents.
    v4(169, 254, 0, 0, 16),
    v6([0xfe80, 0, 0, 0, 0, 0, 0, 0], 10),
    // Site-local (RFC 3879 deprecates it; old routers still route it).
    v6([0xfec0, 0, 0, 0, 0, 0, 0, 0], 10),
    // Azure: the host's WireServer ("What is IP address 168.63.129.16?").
    v4(168, 63, 129, 16, 32),
    // Alibaba: ECS instance metadata; over IPv6 as cloud-init's DataSourceAliYun has it.
    v4(100, 100, 100, 200, 32),
    v6([0xfd00, 0x100, 0, 0, 0, 0, 0x100, 0x200], 128),
    // Tencent: an older metadata address, in lists of server-side request forgery; no public address in any case.
    v4(100, 88, 222, 5, 32),
    // Volcengine and BytePlus: ECS metadata (volcengine/cello, credential provider).
    v4(100, 96, 0, 96, 32),
    // UCloud: UHost metadata ("metadata-server" of its documents, ucloud-sdk-go).
    v4(100, 80, 80, 80, 32),
    // Oracle: Cloud Infrastructure Classic; over IPv6 as oci-python-sdk's instance principals have it.
    v4(192, 0, 0, 192, 32),
    v6([0xfd00, 0xc1, 0, 0, 0, 0, 0xa9fe, 0xa9fe], 128),
    // AWS: metadata ::254, EKS Pod Identity ::23, DNS and NTP ("Retrieve instance metadata").
    v6([0xfd00, 0xec2, 0, 0, 0, 0, 0, 0], 32),
    // Google: instances with IPv6 alone ("About VM metadata").
    v6([0xfd20, 0xce, 0, 0, 0, 0, 0, 0x254], 128),
    // Scaleway: instance metadata over IPv6.
    v6([0xfd00, 0x42, 0, 0, 0, 0, 0, 0x42], 128),
    // Akamai (Linode): fd00:a9fe:a9fe::1, as cloud-init's DataSourceAkamai has it.
    v6([0xfd00, 0xa9fe, 0xa9fe, 0, 0, 0, 0, 0], 48),
    // Multicast and broadcast.
    v4(224, 0, 0, 0, 4),
    v4(255, 255, 255, 255, 32),
    v6([0xff00, 0, 0, 0, 0, 0, 0, 0], 8),
];

/// The built-in range that no provider of models lifts and that a range meets: any but loopback.
pub(super) fn never_lifted(net: &IpNet) -> Option<IpNet> {
    let meets = |range: &&IpNet| range.contains(net) || net.contains(*range);
    BUILT_IN.iter().filter(|range| !is_loopback(range)).find(meets).copied()
}

fn is_loopback(range: &IpNet) -> bool {
    range.addr().is_loopback()
}

/// The pool of synthetic addresses where none is configured (design section 2, `listeners.dns.pool`).
pub const POOL: Ipv4Net = Ipv4Net::new_assert(Ipv4Addr::new(198, 18, 0, 0), 15);
/// The pool of synthetic addresses for pods without IPv4, of the unique local range (RFC 4193).
pub const POOL_V6: Ipv6Net =
    Ipv6Net::new_assert(Ipv6Addr::new(0xfd70, 0x6f73, 0x7465, 0x726e, 0, 0, 0, 0), 64);

const NAT64: IpNet = v6([0x64, 0xff9b, 0, 0, 0, 0, 0, 0], 96);
const NAT64_LOCAL: IpNet = v6([0x64, 0xff9b, 1, 0, 0, 0, 0, 0], 48);
const SIX_TO_FOUR: IpNet = v6([0x2002, 0, 0, 0, 0, 0, 0, 0], 16);
const TEREDO: IpNet = v6([0x2001, 0, 0, 0, 0, 0, 0, 0], 32);
/// IPv4-compatible (RFC 4291 section 2.5.5.1) and IPv4-translated (RFC 2765 section 2.1).
const COMPATIBLE: IpNet = v6([0, 0, 0, 0, 0, 0, 0, 0], 96);
const TRANSLATED: IpNet = v6([0, 0, 0, 0, 0xffff, 0, 0, 0], 96);

/// The addresses that are denied whatever name they came from.
#[derive(Debug, Clone)]
pub struct Reserved {
    ranges: Vec<IpNet>,
    allow: Vec<IpNet>,
    own: Vec<IpAddr>,
    pools: Vec<IpNet>,
    cluster: Vec<IpNet>,
    listeners: Vec<SocketAddr>,
}

impl Reserved {
    /// The built-in ranges and those of `upstream.denyAddresses`, without those of `upstream.allowAddresses`;
    /// `own` are the pod's addresses, of which none but loopback is ever dialled.
    pub fn new(deny: &[IpNet], allow: &[IpNet], own: &[IpAddr]) -> Self {
        let own = own.iter().map(IpAddr::to_canonical).filter(|ip| !ip.is_loopback());
        Self {
            ranges: BUILT_IN.iter().chain(deny).copied().collect(),
            allow: allow.to_vec(),
            own: own.collect(),
            pools: vec![IpNet::V4(POOL), IpNet::V6(POOL_V6)],
            cluster: Vec::new(),
            listeners: Vec::new(),
        }
    }

    /// The same with the addresses of the API server and of the pod's node, which no setting for a wider range lifts.
    #[must_use]
    pub fn with_cluster(self, addresses: &[IpAddr]) -> Self {
        let cluster = addresses.iter().map(|ip| IpNet::from(ip.to_canonical())).collect();
        Self { cluster, ..self }
    }

    /// The same with other pools of synthetic addresses, which are never dialled.
    #[must_use]
    pub fn with_pools(self, pools: &[IpNet]) -> Self {
        Self { pools: pools.to_vec(), ..self }
    }

    /// The same with the places where the gateway itself listens, to which it sends no request of its own.
    #[must_use]
    pub fn with_listeners(self, listeners: Vec<SocketAddr>) -> Self {
        Self { listeners, ..self }
    }

    /// Where the gateway itself listens.
    pub fn listeners(&self) -> &[SocketAddr] {
        &self.listeners
    }

    /// Judges the address really dialled, at connect. IPv4 inside IPv6 (mapped, compatible, translated, NAT64,
    /// 6to4, Teredo) is judged as IPv4 too. The answer is a denial: `denied-address`, or a CIDR Deny rule's.
    pub fn judge(&self, policy: &Policy, ip: IpAddr, port: u16) -> Option<Decision> {
        forms(ip).into_iter().find_map(|form| self.judge_form(policy, form, port, None))
    }

    /// Judges the address of a provider of models in the same way. Its `allowAddresses` lift what `upstream.denyAddresses`
    /// denies and, outside of a cluster, loopback: in a pod that is the pod itself. The gateway's own listeners stay
    /// denied: a route to one would take the request that it made, again and again.
    pub fn judge_provider(
        &self,
        policy: &Policy,
        allow: &[IpNet],
        (ip, port): (IpAddr, u16),
    ) -> Option<Decision> {
        forms(ip).into_iter().find_map(|form| {
            let is_own = self.listens_at(form, port);
            let own = || Decision::builtin("denied-address", "The name leads to the gateway itself");
            is_own.then(own).or_else(|| self.judge_form(policy, form, port, Some(allow)))
        })
    }

    /// Whether a connection to this address reaches a listener of the gateway. Addresses of the machine other than
    /// loopback are denied as its own.
    fn listens_at(&self, ip: IpAddr, port: u16) -> bool {
        let is_there = |at: &SocketAddr| {
            let own = at.ip().to_canonical();
            at.port() == port && (own == ip || own.is_unspecified() && ip.is_loopback())
        };
        self.listeners.iter().any(is_there)
    }

    /// The denial that Audit policies alone would make of an address, judged in the same forms.
    pub fn audit(&self, policy: &Policy, ip: IpAddr, port: u16) -> Option<Decision> {
        forms(ip).into_iter().find_map(|form| policy.audits_address(form, port))
    }

    fn judge_form(
        &self,
        policy: &Policy,
        ip: IpAddr,
        port: u16,
        allow: Option<&[IpNet]>,
    ) -> Option<Decision> {
        let denied = |reason: &'static str| Some(Decision::builtin("denied-address", reason));
        if self.own.contains(&ip) {
            return denied("The name leads to the pod itself");
        }
        if covers(&self.pools, ip) {
            return denied(
                "The name leads to a synthetic address, which stands for a name and is never dialled",
            );
        }
        // The redirect does not exempt the gateway there: the connection would come back to it for ever.
        if ip == IpAddr::V4(CANARY_V4) || ip == IpAddr::V6(CANARY_V6) {
            return denied("The address is nowhere: with it the gateway proves its redirect");
        }
        if let Some(decision) = policy.denies_address(ip, port) {
            return Some(decision);
        }
        let is_lifted =
            |range: &IpNet| policy.lifts(range, ip, port) || self.allow.iter().any(|net| range.contains(net));
        if self.cluster.iter().any(|range| range.contains(&ip) && !is_lifted(range)) {
            return denied("The address is the API server's, or that of the pod's node");
        }
        if covers(&self.allow, ip) {
            return None;
        }
        let is_liftable =
            |range: &IpNet| !BUILT_IN.contains(range) || is_loopback(range) && self.cluster.is_empty();
        let is_allowed = allow.is_some_and(|allow| covers(allow, ip));
        let is_lifted = |range: &IpNet| policy.lifts(range, ip, port) || is_allowed && is_liftable(range);
        let closed = self.ranges.iter().any(|range| range.contains(&ip) && !is_lifted(range));
        if closed {
            denied("The address is loopback, link-local, metadata, or of a range that is denied here")
        } else {
            None
        }
    }
}

fn covers(nets: &[IpNet], ip: IpAddr) -> bool {
    nets.iter().any(|net| net.contains(&ip))
}

/// The address itself, and every IPv4 address that a router on the way might make of it.
fn forms(ip: IpAddr) -> Vec<IpAddr> {
    let ip = ip.to_canonical();
    let IpAddr::V6(v6) = ip else { return vec![ip] };
    let octets = v6.octets();
    let at = |places: [usize; 4]| {
        let [a, b, c, d] = places.map(|place| octets.get(place).copied().unwrap_or_default());
        IpAddr::V4(Ipv4Addr::new(a, b, c, d))
    };
    let last = at([12, 13, 14, 15]);
    let mut all = vec![ip];
    if NAT64.contains(&ip) || TRANSLATED.contains(&ip) {
        all.push(last);
    }
    if COMPATIBLE.contains(&ip) && !v6.is_unspecified() && !v6.is_loopback() {
        all.push(last);
    }
    if NAT64_LOCAL.contains(&ip) {
        // Any of the prefix lengths of RFC 6052 section 2.2 may be in use inside it: /48, /56, /64, /96.
        all.extend([at([6, 7, 9, 10]), at([7, 9, 10, 11]), at([9, 10, 11, 12]), last]);
    }
    if SIX_TO_FOUR.contains(&ip) {
        all.push(at([2, 3, 4, 5]));
    }
    if TEREDO.contains(&ip) {
        let IpAddr::V4(hidden) = last else { return all };
        all.extend([at([4, 5, 6, 7]), IpAddr::V4(Ipv4Addr::from_bits(!hidden.to_bits()))]);
    }
    all
}
