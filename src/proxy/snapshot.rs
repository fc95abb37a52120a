//! The settings, policy and connections that an exchange uses, replaced as one when any of them changes.

use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, SystemTime};

use tokio::time::Instant;

use crate::call::{CallVerdict, FactsDeny, Judge, ShellTerms, Start, Tool, ToolCall, edit};
use crate::config::Settings;
use crate::credential::Store;
use crate::decision::Decision;
use crate::detection::{CleanTexts, ShownNames};
use crate::dlp::Search;
use crate::drain::Drain;
use crate::evidence::Evidence;
use crate::name::gateway;
use crate::name::host::{DnsName, Host};
use crate::policy::Policy;
use crate::policy::address::Reserved;
use crate::policy::data_loss::NamedValue;
use crate::policy::destination::{Action, Flow, FlowDecision, PreSniffDecision};
use crate::policy::document::Explain;
use crate::policy::limits::Limit;
use crate::provider::surface;
use crate::proxy::upstream::{CorporateProxy, Dialer, ExchangeBounds, Origin, Places, Upstreams};
use crate::secret::SecretMatcher;
use crate::tls::leaf::Leaves;
use crate::tls::roots::UpstreamTls;
use crate::wire::{coding, json};
use crate::workspace::client::WorkspaceClient;

/// How long after a new policy its CA and its credentials may arrive: they are mounted apart from it.
const SETTLING: Duration = Duration::from_secs(5);

/// The port on which hosts that no rule names can be refused inside TLS.
const HTTPS: u16 = 443;

/// How destinations under an Inspect rule are handled.
#[derive(Clone)]
pub enum Interception {
    /// Their TLS is terminated.
    On(Arc<Leaves>),
    /// They are denied.
    Off,
    /// They are tunnelled, for this reason.
    Passthrough(String),
}

/// One state of the gateway: settings, policy, identity, trust. Immutable but for the secrets' values and its age.
pub struct Snapshot {
    pub settings: Arc<Settings>,
    pub interception: Interception,
    pub credentials: Arc<Store>,
    /// Where tool results that are cut out of requests are kept.
    pub evidence: Option<Evidence>,
    policy: Arc<Policy>,
    /// Made when the first text was searched.
    clean: OnceLock<Arc<CleanTexts>>,
    /// When the policy came into force.
    since: Instant,
    /// The policy is too old to be followed.
    expired: AtomicBool,
    pub(crate) upstreams: Upstreams,
    /// The companion that reads the agent's files; none where the settings name none.
    workspace: Option<Arc<WorkspaceClient>>,
}

/// The parts of a snapshot.
pub struct SnapshotParts {
    pub settings: Arc<Settings>,
    pub policy: Policy,
    pub interception: Interception,
    pub credentials: Arc<Store>,
    pub evidence: Option<Evidence>,
    pub tls: Arc<UpstreamTls>,
    /// `user:password` for the corporate proxy.
    pub proxy_credentials: Option<String>,
    /// The pod's own addresses.
    pub own: Vec<IpAddr>,
    pub(crate) places: Places,
    /// The addresses of the API server and of the pod's node.
    pub cluster: Vec<IpAddr>,
    /// Where the gateway itself listens.
    pub listeners: Vec<SocketAddr>,
}

impl Snapshot {
    pub fn new(parts: SnapshotParts, drain: Drain) -> Self {
        let settings = parts.settings;
        let upstream = &settings.upstream;
        let dialer = Dialer {
            reserved: Reserved::new(&upstream.deny_addresses, &upstream.allow_addresses, &parts.own)
                .with_pools(&settings.listeners.pools())
                .with_cluster(&parts.cluster)
                .with_listeners(parts.listeners),
            hosts: upstream.hosts.iter().map(|(name, at)| (name.clone(), (at.ip, at.port))).collect(),
            tls: parts.tls,
            proxy: upstream
                .proxy
                .clone()
                .map(|proxy| CorporateProxy::new(proxy, parts.proxy_credentials.as_deref())),
            timeout: settings.timeouts.connect,
            places: parts.places,
        };
        let bounds = ExchangeBounds {
            header_bytes: settings.limits.header_bytes,
            header_count: settings.limits.header_count,
            head: settings.timeouts.upstream_head,
            idle: settings.timeouts.keep_alive,
        };
        Self {
            interception: parts.interception,
            credentials: parts.credentials,
            evidence: parts.evidence,
            policy: Arc::new(parts.policy),
            clean: OnceLock::new(),
            since: Instant::now(),
            expired: AtomicBool::new(false),
            upstreams: Upstreams::new(dialer, bounds, drain),
            workspace: settings
                .workspace
                .as_ref()
                .map(|workspace| Arc::new(WorkspaceClient::new(workspace.socket.to_path_buf()))),
            settings,
        }
    }

    /// The same snapshot, with the time since when its policy was in force already in the snapshot `before`.
    #[must_use]
    pub fn after(self, before: &Self) -> Self {
        let is_same = self.policy.revision() == before.policy.revision();
        Self { since: if is_same { before.since } else { self.since }, ..self }
    }

    /// The same snapshot with another policy, and the values of its credentials.
    pub fn with_policy(&self, policy: Policy, credentials: Arc<Store>) -> Self {
        Self {
            settings: Arc::clone(&self.settings),
            interception: self.interception.clone(),
            credentials,
            evidence: self.evidence.clone(),
            policy: Arc::new(policy),
            clean: OnceLock::new(),
            since: Instant::now(),
            expired: AtomicBool::new(false),
            upstreams: self.upstreams.anew(),
            workspace: self.workspace.clone(),
        }
        .after(self)
    }

    /// What is searched for in what leaves; none where every policy allows secrets.
    pub(crate) fn search(&self) -> Option<Search> {
        self.search_lacking().map(|(search, _)| search)
    }

    /// The same, and a value that must not leave and is not known.
    pub(crate) fn search_lacking(&self) -> Option<(Search, Option<Arc<NamedValue>>)> {
        let detectors = Arc::clone(self.policy.detectors()?);
        let (known, missing) = self.credentials.known();
        Some((Search::new(detectors, known), missing))
    }

    /// What names are searched with before they are told; none where every policy allows secrets.
    pub(crate) fn shown_names(&self) -> Option<ShownNames> {
        Some(ShownNames::new(self.search()?, self.clean_texts()))
    }

    /// The texts in which nothing was found under this policy.
    pub(crate) fn clean_texts(&self) -> Arc<CleanTexts> {
        Arc::clone(self.clean.get_or_init(Arc::default))
    }

    /// Until when the CA and the credentials of a new policy may be on their way.
    pub(crate) fn settles(&self) -> Instant {
        self.since + SETTLING
    }

    /// Whether the CA and the credentials of a new policy may be on their way.
    pub fn is_settling(&self) -> bool {
        Instant::now() < self.settles()
    }

    /// The decision about everything while the policy is too old to be followed.
    pub(crate) fn denies_everything(&self) -> Option<Decision> {
        self.is_expired().then(|| Decision::builtin("expired", EXPIRED))
    }

    fn is_expired(&self) -> bool {
        self.expired.load(Ordering::Relaxed)
    }

    pub fn policy(&self) -> &Arc<Policy> {
        &self.policy
    }

    /// Sets whether the policy has expired, and returns whether that changed.
    pub fn set_expired(&self, expired: bool) -> bool {
        self.expired.swap(expired, Ordering::Relaxed) != expired
    }

    /// Drops upstream connections that were idle for too long.
    pub fn sweep(&self) {
        self.upstreams.sweep();
    }

    /// Decides about a flow; an expired policy denies everything.
    pub(crate) fn destination(&self, flow: &Flow<'_>) -> FlowDecision {
        if flow.name.is_some_and(gateway::is_own) {
            return FlowDecision {
                action: Action::Deny { named: false },
                decision: self.own_refused(),
                audited: Vec::new(),
            };
        }
        if self.is_expired() {
            return FlowDecision {
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

    /// Decides before the first byte.
    pub(crate) fn outlook(
        &self,
        name: Option<&DnsName>,
        address: Option<IpAddr>,
        port: u16,
    ) -> PreSniffDecision {
        if let Some(name) = name.filter(|name| gateway::is_own(name)) {
            let (named, decision) = (self.serves_own(name, port), self.own_refused());
            return PreSniffDecision { named, decision, sniff: true, strict: true };
        }
        if self.is_expired() {
            return PreSniffDecision {
                named: false,
                decision: Decision::builtin("expired", EXPIRED),
                sniff: true,
                strict: true,
            };
        }
        let mut outlook = self.policy.before_sniff(name, address, port);
        if !outlook.named && name.is_some_and(|name| self.refuses_inside(name, port)) {
            outlook.named = true;
        }
        outlook
    }

    /// Whether this is where the gateway itself is asked, and there is something that the agent may ask.
    pub(crate) fn serves_own(&self, name: &DnsName, port: u16) -> bool {
        gateway::is_own(name) && port == gateway::PORT && self.answers_here()
    }

    /// Whether the agent may ask anything.
    fn answers_here(&self) -> bool {
        self.policy.explains() != Explain::None || self.evidence.is_some() || self.workspace.is_some()
    }

    /// Where the agent may ask why an event was denied, without the event's id.
    pub(crate) fn ask_at(&self) -> Option<&'static str> {
        (self.policy.explains() != Explain::None).then_some(gateway::WHY)
    }

    /// The denial of the gateway's own name as a destination, whatever rules say of it.
    fn own_refused(&self) -> Decision {
        let reason = if self.answers_here() {
            "This name is the gateway's own: it answers plain HTTP on port 80"
        } else {
            "This name is the gateway's own, and it answers nothing here"
        };
        Decision::builtin("default-deny", reason)
    }

    /// Whether a host that no rule names is refused inside TLS, like a host that a Deny rule names: agents dial it beside
    /// their provider. With an unconstrained CA that holds for every host in the provider tables.
    fn refuses_inside(&self, name: &DnsName, port: u16) -> bool {
        let Interception::On(leaves) = &self.interception else { return false };
        let is_known = self.policy.accompanies(name)
            || (!leaves.authority().is_constrained()
                && self.policy.enforces()
                && surface::is_listed(name)
                && !self.policy.names_exactly(name));
        port == HTTPS && is_known && self.vouches(name)
    }

    fn vouches(&self, name: &DnsName) -> bool {
        let Interception::On(leaves) = &self.interception else { return false };
        leaves.authority().vouches(&Host::Name(name.clone()), SystemTime::now()).is_ok()
    }

    /// Decides whether the resolver answers a name. The gateway's own always is. A companion's name is answered if the refusal can be shown inside
    /// TLS; no name is answered once the policy has expired.
    ///
    /// # Errors
    /// The denial.
    pub fn answers(&self, name: &DnsName) -> Result<(), Decision> {
        if gateway::is_own(name) {
            return Ok(());
        }
        if self.is_expired() {
            return Err(Decision::builtin("expired", EXPIRED));
        }
        match self.policy.answers(name) {
            Err(_) if self.policy.accompanies(name) && self.vouches(name) => Ok(()),
            answer => answer,
        }
    }

    /// The secrets that are scrubbed from the answers of an origin; none where no key goes there.
    pub(crate) fn needles(&self, origin: &Origin) -> Option<Arc<SecretMatcher>> {
        let Host::Name(name) = &origin.host else { return None };
        let credentialed =
            self.policy.credentials().iter().any(|credential| credential.serves(name, origin.port));
        credentialed.then(|| self.credentials.needles())
    }

    /// The bound of a request body that is buffered, in bytes: the gateway's, or a policy's that is lower.
    pub(crate) fn request_body_bytes(&self) -> usize {
        lower(self.settings.limits.request_body_bytes, self.policy.limits().request_body_bytes.as_ref())
    }

    /// The bound of a tool call's input, in bytes: the gateway's, or a policy's that is lower.
    pub(crate) fn tool_input_bytes(&self) -> usize {
        lower(self.settings.limits.tool_input_bytes, self.policy.limits().tool_input_bytes.as_ref())
    }

    /// The companion that reads the agent's files, where there is one.
    pub(crate) fn workspace(&self) -> Option<&Arc<WorkspaceClient>> {
        self.workspace.as_ref()
    }

    /// Whether a policy says something of edits, and there is a workspace to ask.
    pub(crate) fn judges_edits(&self) -> bool {
        self.workspace.is_some() && self.policy.edits().is_some()
    }

    /// Whether guards made under either snapshot read answers alike, whatever they decide about calls.
    pub(crate) fn guards_like(&self, other: &Self) -> bool {
        let reading = |snapshot: &Self| {
            let policy = &snapshot.policy;
            let denies = snapshot.denies(true) || policy.facts_deny_calls() != FactsDeny::Never;
            (denies, policy.failure_open(), policy.tool_inputs(), snapshot.tool_input_bytes())
        };
        reading(self) == reading(other)
    }

    /// The bounds of a JSON document.
    pub(crate) fn json_limits(&self) -> json::Limits {
        json::Limits { depth: self.settings.limits.json_depth, ..json::Limits::default() }
    }

    /// The bounds of decoding a body that is held whole.
    pub(crate) fn whole_coding_limits(&self) -> coding::Limits {
        coding::Limits {
            decoded_bytes: self.settings.limits.decoded_body_bytes as u64,
            ..self.coding_limits()
        }
    }

    /// The bounds of decoding an answer that streams.
    pub(crate) fn coding_limits(&self) -> coding::Limits {
        coding::Limits {
            // A decoded answer streams, a chunk at a time.
            decoded_bytes: u64::MAX,
            zstd_window_bytes: self.settings.limits.zstd_window_bytes as u64,
            ..coding::Limits::default()
        }
    }
}

fn lower(gateway: usize, limit: Option<&Limit>) -> usize {
    limit.map_or(gateway, |limit| gateway.min(usize::try_from(limit.most).unwrap_or(gateway)))
}

impl Judge for Snapshot {
    fn denies(&self, writes: bool) -> bool {
        self.is_expired() || self.policy.denies(writes)
    }

    fn shell(&self) -> ShellTerms {
        self.policy.shell()
    }

    fn start(&self, tool: &Tool<'_>) -> Start {
        if self.is_expired() {
            return Start::Deny(expired());
        }
        let terms = self.policy.edits().filter(|_| self.workspace.is_some());
        edit::start(terms.as_ref(), tool, self.policy.start(tool))
    }

    fn complete(&self, call: &ToolCall<'_>) -> CallVerdict {
        if self.is_expired() { expired() } else { self.policy.complete(call) }
    }

    fn unknown(&self, tool: &Tool<'_>) -> CallVerdict {
        if self.is_expired() { expired() } else { self.policy.unknown(tool) }
    }
}

/// Every tool call is denied once the policy has expired.
fn expired() -> CallVerdict {
    CallVerdict::of_no_tool(Decision::builtin("expired", EXPIRED))
}

const EXPIRED: &str = "the policy has not been refreshed for 24 hours";
