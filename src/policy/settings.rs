//! What several policies write once each, and decide together by the strictest (design section 5.4).

use crate::call::Inputs;

use super::document::FailurePolicy;
use super::document::tool::Permission;
use super::hosted::HostedTools;
use super::limits::Limits;
use super::lower::{Lowered, Scope};
use super::outcome::Outcome;
use super::permission::Switch;
use crate::decision::Decision;

/// The settings of the policies that select a pod, united.
#[derive(Debug)]
pub(super) struct Settings {
    pub(super) hosted_tools: HostedTools,
    pub(super) url_sources: Switch,
    pub(super) provider_state: Switch,
    pub(super) tool_default: Switch,
    pub(super) tool_inputs: Inputs,
    /// Whether one of the policies that decide says Open, and none Closed.
    pub(super) failure_open: bool,
    pub(super) limits: Limits,
}

const URL_SOURCES: &str = "The provider would fetch a URL that the request names";
const PROVIDER_STATE: &str = "The conversation would be kept at the provider, out of sight";
const TOOL_DEFAULT: &str = "No rule allows this tool";

impl Settings {
    /// Unites what the policies write; `heeded` says whose word counts beside the switches, which record for themselves.
    pub(super) fn new(policies: &[Lowered], heeded: impl Fn(&Scope) -> bool) -> Self {
        let switch = |section, reason, default, written: fn(&Lowered) -> Option<Permission>| {
            let written = policies.iter().filter_map(|policy| Some((&policy.scope, written(policy)?)));
            Switch::new(section, reason, &default, &written.collect::<Vec<_>>())
        };
        let deny = |name, reason| Outcome::Denied(Decision::builtin(name, reason));
        let deciding = || policies.iter().filter(|policy| heeded(&policy.scope));
        let mut failure = deciding().filter_map(|policy| policy.written.failure).peekable();
        Self {
            hosted_tools: HostedTools::new(policies),
            url_sources: switch("hostedTools", URL_SOURCES, deny("url-sources", URL_SOURCES), |policy| {
                policy.written.url_sources
            }),
            provider_state: switch(
                "providerState",
                PROVIDER_STATE,
                deny("provider-state", PROVIDER_STATE),
                |policy| policy.written.provider_state,
            ),
            tool_default: switch("toolDefault", TOOL_DEFAULT, Outcome::Allowed(None), |policy| {
                policy.written.tool_default
            }),
            tool_inputs: deciding()
                .filter_map(|policy| policy.written.tool_inputs)
                .min()
                .unwrap_or(Inputs::Hash),
            failure_open: failure.peek().is_some() && failure.all(|word| word == FailurePolicy::Open),
            limits: Limits::new(policies),
        }
    }
}
