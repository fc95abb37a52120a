//! What several policies write once each, and decide together by the strictest (design section 5.4).

use super::document::tool::{Permission, ToolInputs};
use super::hosted::HostedTools;
use super::lower::{Lowered, Scope};
use super::outcome::Outcome;
use super::permission::Switch;
use super::ruling::Ruling;

/// The settings of the policies that select a pod, united.
#[derive(Debug)]
pub(super) struct Settings {
    pub(super) hosted_tools: HostedTools,
    pub(super) url_sources: Switch,
    pub(super) provider_state: Switch,
    pub(super) tool_default: Switch,
    pub(super) tool_inputs: ToolInputs,
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
        let deny = |name, reason| Outcome::Denied(Ruling::builtin(name, reason));
        let inputs = policies.iter().filter(|policy| heeded(&policy.scope));
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
            tool_inputs: inputs
                .filter_map(|policy| policy.written.tool_inputs)
                .min()
                .unwrap_or(ToolInputs::Hash),
        }
    }
}
