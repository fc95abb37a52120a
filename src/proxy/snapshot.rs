//! All that an exchange decides by, replaced whole when anything of it changes.

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime};

use tokio::time::Instant;

use crate::call::{Advice, Judge, Start, Tool, ToolCall, Verdict};
use crate::config::Settings;
use crate::credential::Store;
use crate::decision::Decision;
use crate::drain::Drain;
use crate::filter::scrub::SecretMatcher;
use crate::name::host::{DnsName, Host};
use crate::policy::Policy;
use crate::policy::address::Reserved;
use crate::policy::destination::{Action, Destination, Flow};
use crate::policy::limits::Limit;
use crate::policy::outlook::Outlook;
use crate::provider::surface;
use crate::proxy::upstream::{Bounds, CorporateProxy, Dialer, Origin, Places, Upstreams};
use crate::tls::leaf::Leaves;
use crate::tls::roots::UpstreamTls;
use crate::wire::{coding, json};

/// How long after a new policy the CA and the credentials that it newly needs may be on their way: they are mounted
/// apart from it.
const SETTLING: Duration = Duration::from_secs(5);

/// The port at which agents dial the hosts that no rule names.
const HTTPS: u16 = 443;

/// What is done with destinations that say Inspect.
#[derive(Clone)]
pub enum Interception {
    /// TLS is ended here.
    On(Arc<Leaves>),
    /// It is not; they are denied.
    Off,
    /// It cannot be; they are tunnelled, for this reason.
    Passthrough(String),
}

/// One state of the gateway: settings, policy, identity, trust. Immutable but for the secrets' values and its age.
pub struct Snapshot {
    pub settings: Arc<Settings>,
    pub interception: Interception,
    pub credentials: Arc<Store>,
    policy: Policy,
    /// When the policy came into force.
    since: Instant,
    /// The policy is too old to be followed.
    expired: AtomicBool,
    pub(crate) upstreams: Upstreams,
}

/// What a snapshot is made of.
pub struct Parts {
    pub settings: Arc<Settings>,
    pub policy: Policy,
    pub interception: Interception,
    pub credentials: Arc<Store>,
    pub tls: Arc<UpstreamTls>,
    /// `user:password` for the corporate proxy.
    pub proxy_credentials: Option<String>,
    /// The pod's own addresses.
    pub own: Vec<IpAddr>,
    pub(crate) places: Places,
    /// Those of the API server and of the pod's node.
    pub cluster: Vec<IpAddr>,
}

impl Snapshot {
    pub fn new(parts: Parts, drain: Drain) -> Self {
        let settings = parts.settings;
        let upstream = &settings.upstream;
        let dialer = Dialer {
            reserved: Reserved::new(&upstream.deny_addresses, &upstream.allow_addresses, &parts.own)
                .with_pools(&settings.listeners.pools())
                .with_cluster(&parts.cluster),
            hosts: upstream.hosts.iter().map(|(name, at)| (name.clone(), (at.ip, at.port))).collect(),
            tls: parts.tls,
            proxy: upstream
                .proxy
                .clone()
                .map(|proxy| CorporateProxy::new(proxy, parts.proxy_credentials.as_deref())),
            timeout: settings.timeouts.connect,
            places: parts.places,
        };
        let bounds = Bounds {
            header_bytes: settings.limits.header_bytes,
            header_count: settings.limits.header_count,
            head: settings.timeouts.upstream_head,
            idle: settings.timeouts.keep_alive,
        };
        Self {
            interception: parts.interception,
            credentials: parts.credentials,
            policy: parts.policy,
            since: Instant::now(),
            expired: AtomicBool::new(false),
            upstreams: Upstreams::new(dialer, bounds, drain),
            settings,
        }
    }

    /// The same snapshot as the one that follows another: the policy may have been in force for longer.
    #[must_use]
    pub fn after(self, before: &Self) -> Self {
        let is_same = self.policy.revision() == before.policy.revision();
        Self { since: if is_same { before.since } else { self.since }, ..self }
    }

    /// This snapshot with another policy, and the values of that policy's credentials.
    pub fn with_policy(&self, policy: Policy, credentials: Arc<Store>) -> Self {
        Self {
            settings: Arc::clone(&self.settings),
            interception: self.interception.clone(),
            credentials,
            policy,
            since: Instant::now(),
            expired: AtomicBool::new(false),
            upstreams: self.upstreams.anew(),
        }
        .after(self)
    }

    /// Until when what the policy newly needs may be on its way.
    pub(crate) fn settles(&self) -> Instant {
        self.since + SETTLING
    }

    /// Whether what the policy newly needs may be on its way.
    pub fn is_settling(&self) -> bool {
        Instant::now() < self.settles()
    }

    fn is_expired(&self) -> bool {
        self.expired.load(Ordering::Relaxed)
    }

    pub fn policy(&self) -> &Policy {
        &self.policy
    }

    /// Says whether the policy's age still lets it be followed. Answers whether that is new.
    pub fn set_expired(&self, expired: bool) -> bool {
        self.expired.swap(expired, Ordering::Relaxed) != expired
    }

    /// Drops idle upstream connections that have waited too long.
    pub fn sweep(&self) {
        self.upstreams.sweep();
    }

    /// What policy says of a flow; everything is denied once it has expired.
    pub(crate) fn destination(&self, flow: &Flow<'_>) -> Destination {
        if self.is_expired() {
            return Destination {
                action: Action::Deny { named: false },
                decision: Decision::builtin("expired", EXPIRED),
                audited: Vec::new(),
            };
        }
        let mut destination = self.policy.destination(flow);
        if let (Action::Deny { named: named @ false }, Some(name)) = (&mut destination.action, flow.name) {
            *named = self.refuses_inside(name, flow.port);
        }
        destination
    }

    /// What policy says before a byte is seen.
    pub(crate) fn outlook(&self, name: Option<&DnsName>, address: Option<IpAddr>, port: u16) -> Outlook {
        if self.is_expired() {
            return Outlook {
                named: false,
                decision: Decision::builtin("expired", EXPIRED),
                sniff: true,
                strict: true,
            };
        }
        let mut outlook = self.policy.outlook(name, address, port);
        if !outlook.named && name.is_some_and(|name| self.refuses_inside(name, port)) {
            outlook.named = true;
        }
        outlook
    }

    /// Whether a host that no rule names is refused inside TLS, as one that a Deny rule names: agents dial it beside
    /// their provider. A CA that may vouch for every name does so for all hosts of the provider tables.
    fn refuses_inside(&self, name: &DnsName, port: u16) -> bool {
        let Interception::On(leaves) = &self.interception else { return false };
        let is_meant = self.policy.accompanies(name)
            || (!leaves.authority().is_constrained()
                && self.policy.enforces()
                && surface::is_listed(name)
                && !self.policy.names_exactly(name));
        port == HTTPS && is_meant && self.vouches(name)
    }

    fn vouches(&self, name: &DnsName) -> bool {
        let Interception::On(leaves) = &self.interception else { return false };
        leaves.authority().vouches(&Host::Name(name.clone()), SystemTime::now()).is_ok()
    }

    /// Whether the resolver answers a name, a companion's too where its refusal can be shown; none once the policy has
    /// expired.
    ///
    /// # Errors
    /// The denial, where it does not.
    pub fn answers(&self, name: &DnsName) -> Result<(), Decision> {
        if self.is_expired() {
            return Err(Decision::builtin("expired", EXPIRED));
        }
        match self.policy.answers(name) {
            Err(_) if self.policy.accompanies(name) && self.vouches(name) => Ok(()),
            answer => answer,
        }
    }

    /// What the answers of an origin are scrubbed of; nothing where no key goes there.
    pub(crate) fn needles(&self, origin: &Origin) -> Option<Arc<SecretMatcher>> {
        let Host::Name(name) = &origin.host else { return None };
        let credentialed =
            self.policy.credentials().iter().any(|credential| credential.serves(name, origin.port));
        credentialed.then(|| self.credentials.needles())
    }

    /// The bound of a request body that is seen whole, in bytes: the gateway's, or a policy's that is lower.
    pub(crate) fn request_body_bytes(&self) -> usize {
        lower(self.settings.limits.request_body_bytes, self.policy.limits().request_body_bytes.as_ref())
    }

    /// The bound of a tool call's input, in bytes: the gateway's, or a policy's that is lower.
    pub(crate) fn tool_input_bytes(&self) -> usize {
        lower(self.settings.limits.tool_input_bytes, self.policy.limits().tool_input_bytes.as_ref())
    }

    /// Whether answers are looked at in the same way, whatever is then decided about their calls.
    pub(crate) fn guards_like(&self, other: &Self) -> bool {
        let how = |snapshot: &Self| {
            let policy = &snapshot.policy;
            (snapshot.denies(true), policy.failure_open(), policy.tool_inputs(), snapshot.tool_input_bytes())
        };
        how(self) == how(other)
    }

    /// What a JSON document may cost.
    pub(crate) fn json_limits(&self) -> json::Limits {
        json::Limits { depth: self.settings.limits.json_depth, ..json::Limits::default() }
    }

    /// What bounds the decoding of a body that is taken in whole.
    pub(crate) fn whole_coding_limits(&self) -> coding::Limits {
        coding::Limits {
            decoded_bytes: self.settings.limits.decoded_body_bytes as u64,
            ..self.coding_limits()
        }
    }

    /// What bounds the decoding of an answer.
    pub(crate) fn coding_limits(&self) -> coding::Limits {
        coding::Limits {
            // What is decoded here streams through, a chunk at a time.
            decoded_bytes: u64::MAX,
            zstd_window_bytes: self.settings.limits.zstd_window_bytes as u64,
            ..coding::Limits::default()
        }
    }
}

fn lower(own: usize, limit: Option<&Limit>) -> usize {
    limit.map_or(own, |limit| own.min(usize::try_from(limit.most).unwrap_or(own)))
}

impl Judge for Snapshot {
    fn denies(&self, writes: bool) -> bool {
        self.is_expired() || self.policy.denies(writes)
    }

    fn start(&self, tool: &Tool<'_>) -> Start {
        if self.is_expired() { Start::Deny(expired()) } else { self.policy.start(tool) }
    }

    fn complete(&self, call: &ToolCall<'_>) -> Verdict {
        if self.is_expired() { expired() } else { self.policy.complete(call) }
    }

    fn unknown(&self, tool: &Tool<'_>) -> Verdict {
        if self.is_expired() { expired() } else { self.policy.unknown(tool) }
    }
}

/// Every tool call is denied once the policy has expired.
fn expired() -> Verdict {
    let decision = Decision::builtin("expired", EXPIRED);
    Verdict { decision, advice: Advice::NotAvailable, audited: Vec::new() }
}

const EXPIRED: &str = "the policy has not been refreshed for 24 hours";
