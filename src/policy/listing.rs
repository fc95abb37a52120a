//! Everything that applies to one pod, as plain data that people and programs read.

use serde::Serialize;

use super::compile::{Mode, Policy};
use super::credential::Credential;
use crate::decision::{Decision, Enforcement};

use super::destination::Sight;
use super::document::Action;
use super::document::tool::{Action as ToolAction, HostedAction};
use super::limits::{Limit, PolicyLimits};
use super::outcome::Outcome;
use super::permission::Switch;
use super::rule::{Rule, Subject};
use super::tool::Rule as ToolRule;
use crate::call::{Inputs, Kind};
use crate::fold::fold;

/// What applies to a pod.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Listing {
    pub revision: String,
    /// `Enforce`, `Audit` where only Audit policies select the pod, or `None`: everything is denied.
    pub enforcement: &'static str,
    /// Those that select the pod.
    pub policies: Vec<PolicyListed>,
    pub destinations: Vec<DestinationListed>,
    /// Hosts that no rule names and agents dial all the same: denied, in words.
    pub companions: Vec<String>,
    pub tool_default: Setting,
    pub tools: Vec<ToolListed>,
    pub hosted_tools: HostedListed,
    pub url_sources: Setting,
    pub provider_state: Setting,
    pub credentials: Vec<CredentialListed>,
    /// Where only Audit policies select the pod, they are recorded alone.
    pub limits: Vec<LimitListed>,
    /// What becomes of answers that cannot be understood: `Closed` or `Open`.
    pub failure_policy: &'static str,
    pub audit: AuditListed,
}

#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PolicyListed {
    pub policy: String,
    pub enforcement: &'static str,
}

/// A setting as it holds, and who sets it; nobody where that is the default.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Setting {
    pub action: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rule: Option<String>,
}

#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct DestinationListed {
    pub rule: String,
    pub enforcement: &'static str,
    pub action: &'static str,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub hosts: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub cidrs: Vec<String>,
    /// None: those of the action.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ports: Option<Vec<u16>>,
    /// `GET, POST /path`. None: everything, and at an LLM provider its inference endpoints.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub endpoints: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provider: Option<crate::policy::document::Provider>,
    /// What else the rule grants: `upgrade`, `ech`, `any bytes`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub grants: Vec<&'static str>,
}

#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolListed {
    pub rule: String,
    pub enforcement: &'static str,
    pub action: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<Kind>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<String>,
    /// The condition in words. None: every call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub when: Option<String>,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// Whether one of its names is that of MCP servers' tools, `mcp__…`.
    pub mcp: bool,
}

#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct HostedListed {
    #[serde(flatten)]
    pub setting: Setting,
    /// The lists of `allow`, one for each policy that has a say: a type must be covered by all of them.
    pub allow: Vec<Vec<String>>,
}

/// A credential, without what it stands for.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CredentialListed {
    pub name: String,
    pub rule: String,
    pub hosts: Vec<String>,
    pub ports: Vec<u16>,
    pub require: bool,
}

#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct LimitListed {
    pub name: &'static str,
    pub most: u64,
    pub rule: String,
}

#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct AuditListed {
    pub tool_inputs: Inputs,
}

impl Policy {
    /// What applies to the pod that the policy was compiled for.
    pub fn listing(&self) -> Listing {
        let settings = &self.settings;
        let sight = self.sight();
        Listing {
            revision: self.revision().to_owned(),
            enforcement: match self.mode {
                Mode::Missing | Mode::Unselected => "None",
                Mode::AuditOnly => Enforcement::Audit.as_str(),
                Mode::Enforced { .. } => Enforcement::Enforce.as_str(),
            },
            policies: self
                .selected()
                .iter()
                .map(|one| PolicyListed { policy: one.id.clone(), enforcement: enforcement(one.audit) })
                .collect(),
            destinations: self.rules.iter().map(destination).collect(),
            companions: self.companions().map(ToString::to_string).collect(),
            tool_default: setting(&settings.tool_default, sight),
            tools: self.tools.all().iter().map(tool).collect(),
            hosted_tools: self.hosted(sight),
            url_sources: setting(&settings.url_sources, sight),
            provider_state: setting(&settings.provider_state, sight),
            credentials: self.credentials().iter().map(|credential| listed(credential)).collect(),
            limits: limits(settings.limits.at(sight)),
            failure_policy: if self.failure_open() { "Open" } else { "Closed" },
            audit: AuditListed { tool_inputs: self.tool_inputs() },
        }
    }

    fn hosted(&self, sight: Sight) -> HostedListed {
        let (strictest, allow) = self.settings.hosted_tools.written(sight);
        let (action, rule) = match strictest {
            Some((action, rule)) => (action, Some(rule)),
            None => (HostedAction::Strip, None),
        };
        let action = match action {
            HostedAction::Allow => "Allow",
            HostedAction::Strip => "Strip",
            HostedAction::Deny => "Deny",
        };
        HostedListed { setting: Setting { action, rule }, allow }
    }
}

fn enforcement(audit: bool) -> &'static str {
    Enforcement::of(audit).as_str()
}

fn setting(switch: &Switch, sight: Sight) -> Setting {
    // What is built in is nobody's.
    let written = |decision: &Decision| {
        Some(decision.rule_id().to_owned()).filter(|rule| !rule.starts_with("postern/builtin/"))
    };
    match switch.at(sight) {
        Outcome::Denied(decision) => Setting { action: "Deny", rule: written(decision) },
        Outcome::Allowed(decision) => Setting { action: "Allow", rule: decision.as_ref().and_then(written) },
    }
}

fn destination(rule: &Rule) -> DestinationListed {
    let (hosts, cidrs) = match &rule.subject {
        Subject::Hosts(hosts) => (hosts.iter().map(ToString::to_string).collect(), Vec::new()),
        Subject::Nets(nets) => (Vec::new(), nets.iter().map(ToString::to_string).collect()),
    };
    let grant = rule.grant.as_deref();
    let granted = [
        (grant.is_some_and(|grant| grant.upgrade), "upgrade"),
        (rule.allow_ech && !rule.opaque, "ech"),
        (rule.opaque && rule.action == Action::Tunnel, "any bytes"),
    ];
    DestinationListed {
        rule: rule.id.to_string(),
        enforcement: rule.enforcement().as_str(),
        action: match rule.action {
            Action::Inspect => "Inspect",
            Action::Tunnel => "Tunnel",
            Action::Deny => "Deny",
        },
        hosts,
        cidrs,
        ports: rule.ports.clone(),
        endpoints: grant
            .and_then(|grant| grant.endpoints.as_ref())
            .map(|all| all.iter().map(ToString::to_string).collect()),
        provider: grant.and_then(|grant| grant.provider),
        grants: granted.into_iter().filter_map(|(holds, word)| holds.then_some(word)).collect(),
    }
}

fn tool(rule: &ToolRule) -> ToolListed {
    let tools: Vec<String> = rule.names.iter().map(|name| name.written.to_string()).collect();
    ToolListed {
        rule: rule.id.to_string(),
        enforcement: enforcement(rule.audit),
        action: match rule.action {
            ToolAction::Deny => "Deny",
            ToolAction::Audit => "Audit",
            ToolAction::Allow => "Allow",
        },
        kind: rule.kind,
        mcp: tools.iter().any(|name| is_mcp(name)),
        tools,
        when: rule.condition.as_ref().map(ToString::to_string),
        reason: rule.reason.clone(),
    }
}

/// Whether a name, or a wildcard over names, is about tools of MCP servers, which agents call `mcp__SERVER__TOOL`.
pub fn is_mcp(name: &str) -> bool {
    fold(name).starts_with("mcp__")
}

fn listed(credential: &Credential) -> CredentialListed {
    CredentialListed {
        name: credential.name.clone(),
        rule: credential.id.to_string(),
        hosts: credential.hosts.iter().map(ToString::to_string).collect(),
        ports: credential.ports().to_vec(),
        require: credential.require,
    }
}

fn limits(limits: &PolicyLimits) -> Vec<LimitListed> {
    let all: [(&'static str, &Option<Limit>); 5] = [
        ("requestBodyBytes", &limits.request_body_bytes),
        ("toolInputBytes", &limits.tool_input_bytes),
        ("tokensPerDay", &limits.tokens_per_day),
        ("requestsPerMinute", &limits.requests_per_minute),
        ("consecutiveDenials", &limits.consecutive_denials),
    ];
    let written = all.into_iter().filter_map(|(name, limit)| {
        let limit = limit.as_ref()?;
        Some(LimitListed { name, most: limit.most, rule: limit.rule.to_string() })
    });
    written.collect()
}
