//! `hostedTools`: what becomes of tools that would run at the provider (design section 6.2), whoever knows which those
//! are, and of the URLs that it would fetch.

use serde::{Deserialize, Serialize};

use super::lowering::each;
use super::page::{Heading, Page, row};
use super::switch::{self, Permission, Setting, Switch};
use super::tool::NamePattern;
use super::{Lowering, Owner, PolicySection, text};
use crate::decision::{Decision, Verdict};
use crate::policy::outcome::Outcome;
use crate::policy::scope::{Mode, PolicyScope};

const SECTION: &str = "hostedTools";
const REASON: &str = "This tool would run at the provider, beyond the reach of policy";
const URL_SOURCES: &str = "The provider would fetch a URL that the request names";

/// What becomes of tools that would run at the provider.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "operator", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[serde(expecting = "a mapping: {action, allow, urlSources}")]
pub struct WrittenHostedTools {
    /// What becomes of a request that names such a tool. Of several policies Deny goes before Strip before Allow;
    /// without any it is Strip.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub action: Option<HostedAction>,
    /// Types of tools that stay, with `*`: `web_search_*`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allow: Option<Vec<String>>,
    /// Whether the provider may fetch URLs that a request names (pictures, documents). Deny if any policy says so,
    /// and without any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url_sources: Option<Permission>,
}

/// What is done about a hosted tool; the later is the stricter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "operator", derive(schemars::JsonSchema))]
pub enum HostedAction {
    /// The tools stay.
    Allow,
    /// The tools are taken out, and the request goes on; one that has no other tool is refused.
    Strip,
    /// The request is refused.
    Deny,
}

impl HostedAction {
    fn as_str(self) -> &'static str {
        match self {
            Self::Allow => "Allow",
            Self::Strip => "Strip",
            Self::Deny => "Deny",
        }
    }
}

/// `hostedTools` of one policy, judged.
#[derive(Default)]
pub(in crate::policy) struct LoweredHostedTools {
    /// None where the policy writes neither `action` nor `allow`.
    stance: Option<Stance>,
    url_sources: Option<Permission>,
}

/// What one policy says of hosted tools: what it does not write is as where nobody writes it.
struct Stance {
    action: HostedAction,
    allow: Vec<NamePattern>,
}

/// `hostedTools` of all policies.
#[derive(Debug)]
pub(in crate::policy) struct HostedTools {
    /// Of those that write the action or the list.
    parts: Vec<PolicyStance>,
    pub(in crate::policy) url_sources: Switch,
}

#[derive(Debug)]
struct PolicyStance {
    action: HostedAction,
    allow: Vec<NamePattern>,
    audit: bool,
    allows: Decision,
    denies: Decision,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(in crate::policy) struct HostedToolsListed {
    hosted_tools: StanceListed,
    url_sources: Setting,
}

#[derive(Serialize)]
struct StanceListed {
    #[serde(flatten)]
    setting: Setting,
    /// The lists of `allow`, one for each policy that has a say: a type must be covered by all of them.
    allow: Vec<Vec<String>>,
}

impl PolicySection for HostedTools {
    type Written = Option<WrittenHostedTools>;
    type Lowered = LoweredHostedTools;
    type Listed = HostedToolsListed;

    fn lower(written: &Option<WrittenHostedTools>, lowering: &mut Lowering<'_>) -> LoweredHostedTools {
        let Some(written) = written else { return LoweredHostedTools::default() };
        LoweredHostedTools { stance: stance(written, lowering), url_sources: written.url_sources }
    }

    fn unite(policies: Vec<(&Owner, LoweredHostedTools)>, _: Mode) -> Self {
        let written: Vec<_> = policies.iter().map(|(owner, lowered)| (*owner, lowered.url_sources)).collect();
        let default = Outcome::Denied(Decision::builtin("url-sources", URL_SOURCES));
        let parts = policies.into_iter().filter_map(|(owner, lowered)| {
            let Stance { action, allow } = lowered.stance?;
            Some(PolicyStance {
                action,
                allow,
                audit: owner.audit,
                allows: switch::decision(owner, SECTION, Verdict::Allow, ""),
                denies: switch::decision(owner, SECTION, Verdict::Deny, REASON),
            })
        });
        Self { parts: parts.collect(), url_sources: Switch::new(SECTION, URL_SOURCES, &default, &written) }
    }

    fn list(&self, scope: PolicyScope) -> HostedToolsListed {
        let strictest = self.strictest(scope);
        let action = strictest.map_or(HostedAction::Strip, |part| part.action).as_str();
        let rule = strictest.map(|part| part.denies.rule_id().to_owned());
        let lists = self.visible(scope).filter(|part| part.action != HostedAction::Allow);
        let words = |part: &PolicyStance| part.allow.iter().map(ToString::to_string).collect();
        HostedToolsListed {
            hosted_tools: StanceListed {
                setting: Setting { action, rule },
                allow: lists.map(words).collect(),
            },
            url_sources: self.url_sources.list(scope),
        }
    }

    fn rows(listed: &HostedToolsListed, page: &mut Page) {
        let StanceListed { setting, allow } = &listed.hosted_tools;
        let but = if setting.action == "Allow" || allow.iter().all(Vec::is_empty) {
            String::new()
        } else {
            let lists: Vec<String> = allow.iter().map(|list| list.join(", ")).collect();
            format!(" but {}", lists.join(" and "))
        };
        page.add(Heading::AtProvider, row("hosted tools", setting.row(&but)));
        page.add(Heading::AtProvider, row("URLs that the provider would fetch", listed.url_sources.row("")));
    }
}

fn stance(written: &WrittenHostedTools, lowering: &mut Lowering<'_>) -> Option<Stance> {
    let list = "spec.hostedTools.allow";
    let allow = written.allow.as_deref().unwrap_or_default();
    if written.action == Some(HostedAction::Allow) && !allow.is_empty() {
        lowering.problems.add(list, "belongs to Strip and Deny: the action Allow keeps every hosted tool");
    }
    let allow = each(list, allow, &mut lowering.problems, |name| {
        text::pattern(name)?;
        Ok(NamePattern::read(name, str::to_owned))
    })?;
    if written.action.is_none() && written.allow.is_none() {
        return None;
    }
    Some(Stance { action: written.action.unwrap_or(HostedAction::Strip), allow })
}

impl HostedTools {
    fn visible(&self, scope: PolicyScope) -> impl Iterator<Item = &PolicyStance> {
        self.parts.iter().filter(move |part| scope.shows(part.audit))
    }

    /// The first policy that says the strictest action.
    fn strictest(&self, scope: PolicyScope) -> Option<&PolicyStance> {
        self.visible(scope).reduce(|one, other| if other.action > one.action { other } else { one })
    }

    /// The strictest action; none where nobody writes one.
    pub(in crate::policy) fn action(&self, scope: PolicyScope) -> Option<HostedAction> {
        self.strictest(scope).map(|part| part.action)
    }

    /// A type is allowed where every policy that does not allow them all lists it.
    pub(in crate::policy) fn outcome(&self, tool_type: &str, scope: PolicyScope) -> Outcome {
        let Some(strictest) = self.strictest(scope) else {
            return Outcome::Denied(Decision::builtin("hosted-tools", REASON));
        };
        let lists = |part: &PolicyStance| {
            part.action == HostedAction::Allow || part.allow.iter().any(|pattern| pattern.covers(tool_type))
        };
        if self.visible(scope).all(lists) {
            return Outcome::Allowed(Some(strictest.allows.clone()));
        }
        Outcome::Denied(strictest.denies.clone())
    }
}
