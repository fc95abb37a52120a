//! Hosts that agents dial beside their provider, as plain data: `provider` lists them, `policy` decides which count.

use super::Dialect;

/// A host that some agent dials at its start, beside the provider of its models.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Companion {
    /// An exact name.
    pub host: &'static str,
    /// The providers beside which it is dialled.
    pub beside: &'static [ProviderHosts],
}

/// How rules of a policy show that a provider is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProviderHosts {
    /// Its hosts, as a rule's `hosts` writes them.
    pub hosts: &'static [&'static str],
    /// What it speaks: a rule's `provider` names it so at a host that is not known.
    pub dialects: &'static [Dialect],
}
