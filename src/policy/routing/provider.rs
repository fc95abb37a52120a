//! A server of models, compiled.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use ipnet::IpNet;

use super::KeyIn;
use crate::call::Dialect;
use crate::decision::{Decision, RuleId};
use crate::name::host::Host;
use crate::policy::Policy;
use crate::policy::credential::Credential;
use crate::policy::destination::Protocol;

/// A server of models, and how it is asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelProvider {
    /// `namespace/policy/modelProviders/NAME`
    pub id: RuleId,
    pub name: String,
    pub endpoint: Endpoint,
    /// Anthropic, OpenAIChat or OpenAIResponses.
    pub dialect: Dialect,
    /// Of the same policy; it serves the endpoint's host and port.
    pub credential: Option<Arc<Credential>>,
    /// Which field has the key.
    pub key_in: KeyIn,
    /// Ranges of `upstream.denyAddresses` that are dialled for this provider, and loopback outside of a pod.
    pub allow_addresses: Vec<IpNet>,
    /// How long the first piece of an answer may take; none for the default.
    pub first_event: Option<Duration>,
}

/// Where a provider is reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Endpoint {
    pub host: Host,
    pub port: u16,
    /// What stands before the API's own path: empty, or with a slash in front and none behind it.
    pub path: String,
    /// Whether it is reached by TLS, or in plain text.
    pub is_tls: bool,
}

impl Endpoint {
    /// The port of the scheme.
    pub(in crate::policy) fn usual_port(is_tls: bool) -> u16 {
        if is_tls { 443 } else { 80 }
    }

    /// The protocol in which rules about destinations judge it.
    pub fn protocol(&self) -> Protocol {
        if self.is_tls { Protocol::Tls } else { Protocol::Http }
    }
}

impl fmt::Display for Endpoint {
    /// `https://llm.corp.example:8443/v1`, without the usual port.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.is_tls { "https://" } else { "http://" })?;
        match &self.host {
            Host::Ip(ip) if ip.is_ipv6() => write!(f, "[{ip}]")?,
            Host::Ip(ip) => write!(f, "{ip}")?,
            Host::Name(name) => write!(f, "{name}")?,
        }
        if self.port != Self::usual_port(self.is_tls) {
            write!(f, ":{}", self.port)?;
        }
        f.write_str(&self.path)
    }
}

impl Policy {
    /// The denial of a provider by a Deny rule of any tier. No other rule is needed to reach it: the provider grants its
    /// endpoint to routed requests, and to nothing that the agent sends there.
    pub fn denies_provider(&self, provider: &ModelProvider) -> Option<Decision> {
        let Endpoint { host, port, .. } = &provider.endpoint;
        self.denial_of(host, *port, provider.endpoint.protocol())
    }
}
