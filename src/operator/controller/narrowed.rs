//! Narrows a policy for gateways that do not know all its fields: to its selectors, what it denies, and what it opened before. Pure.

use std::collections::{BTreeMap, HashSet};

use serde::Serialize;

use super::known_fields::KnownFields;
use crate::policy::document::{
    Action, Audit, Credential, Destination, Document, Enforcement, Explain, FailurePolicy, HostedAction,
    Kind, Permission, Rule, RuleAction, Spec, ToolAction, ToolRule, WrittenHostedTools, WrittenLimits,
};
use crate::policy::routing::ORIGIN;

/// The policy without anything that it opens: its selectors, Deny rules, switches that are set to strict, limits and
/// required credentials. A Deny rule with an unknown field denies more: it loses its condition, or denies everything of
/// its kind. None for an Audit policy with an unknown pod selector: it would only weaken the denials of others.
pub(super) fn stub(known: &KnownFields, newest: &Document) -> Option<Document> {
    let written = &newest.spec;
    let is_scoped = known.knows(&written.pod_selector, "spec.podSelector");
    if !is_scoped && written.enforcement == Some(Enforcement::Audit) {
        return None;
    }
    let mut names = RuleNames(written.routes.iter().map(|route| route.name.clone()).collect());
    let mut spec = Spec {
        namespace_selector: kept(known, &written.namespace_selector, "spec.namespaceSelector"),
        pod_selector: kept(known, &written.pod_selector, "spec.podSelector"),
        enforcement: kept(known, &written.enforcement, "spec.enforcement"),
        failure_policy: written.failure_policy.filter(|policy| *policy == FailurePolicy::Closed),
        provider_state: written.provider_state.filter(|state| *state == Permission::Deny),
        tool_default: written.tool_default.filter(|tools| *tools == Permission::Deny),
        hosted_tools: written.hosted_tools.as_ref().map(|hosted| strict(known, hosted)),
        limits: written.limits.as_ref().map(|limits| known_limits(known, limits)),
        audit: kept(known, &written.audit, "spec.audit"),
        explain: written.explain.filter(|explain| *explain != Explain::Policy),
        ..Spec::default()
    };
    for rule in written.destinations.iter().filter(|rule| rule.action == Some(Action::Deny)) {
        if known.knows(rule, "spec.destinations[]") {
            spec.destinations.push(Destination { name: names.free(&rule.name), ..rule.clone() });
        } else {
            spec.destinations.extend(everything(&mut names, &rule.name));
        }
    }
    for rule in written.tools.iter().filter(|rule| rule.action == Some(ToolAction::Deny)) {
        spec.tools.push(ToolRule { name: names.free(&rule.name), ..widened(known, rule) });
    }
    for rule in written.rules.iter().filter(|rule| rule.action == Some(RuleAction::Deny)) {
        if known.knows(rule, "spec.rules[]") {
            spec.rules.push(rule.named(names.free(&rule.name)));
        } else {
            spec.destinations.extend(everything(&mut names, &rule.name));
        }
    }
    for credential in written.credentials.iter().filter(|credential| credential.require == Some(true)) {
        if is_scoped && known.knows(credential, "spec.credentials[]") {
            spec.credentials.push(credential.clone());
        } else {
            let hosts = Some(credential.hosts.clone());
            spec.destinations.push(denied(names.free(&credential.name), hosts, None));
        }
    }
    without_unknown_switches(known, &mut spec);
    Some(Document { spec, ..newest.clone() })
}

/// The `stub` of a policy, with the rules that open something in both the newest and the `former` version, word for
/// word, and with the Deny rules of the former. So nothing that a policy took back is opened again. None if the two
/// select different pods or are enforced differently: what was opened for some pods is not opened for others. None also if
/// their routes differ, or the keys of their models: what a route keeps from a host is not sent there.
pub(super) fn strengthened(stub: &Document, former: &Document, newest: &Document) -> Option<Document> {
    let (mut spec, former, newest) = (stub.spec.clone(), &former.spec, &newest.spec);
    if newest.pod_selector != former.pod_selector || newest.enforcement != former.enforcement {
        return None;
    }
    let of_tools = spec.tools.iter().map(|rule| &rule.name).chain(spec.rules.iter().map(|rule| &rule.name));
    let of_routes = newest.routes.iter().map(|route| &route.name);
    let taken = spec.destinations.iter().map(|rule| &rule.name).chain(of_tools).chain(of_routes);
    let mut names = RuleNames(taken.cloned().collect());
    let is_open = |rule: &&Destination| rule.action != Some(Action::Deny);
    let opens = newest.destinations.iter().filter(is_open).filter(|rule| has(&former.destinations, *rule));
    let denies = former.destinations.iter().filter(|rule| !is_open(rule));
    for rule in opens.chain(denies) {
        if !has(&spec.destinations, rule) {
            spec.destinations.push(rule.named(names.free(&rule.name)));
        }
    }
    let is_open = |rule: &&ToolRule| rule.action != Some(ToolAction::Deny);
    let opens = newest.tools.iter().filter(is_open).filter(|rule| has(&former.tools, *rule));
    let denies = former.tools.iter().filter(|rule| !is_open(rule));
    for rule in opens.chain(denies) {
        if !has(&spec.tools, rule) {
            spec.tools.push(rule.named(names.free(&rule.name)));
        }
    }
    for rule in former.rules.iter().filter(|rule| rule.action == Some(RuleAction::Deny)) {
        if !has(&spec.rules, rule) {
            spec.rules.push(rule.named(names.free(&rule.name)));
        }
    }
    for credential in newest.credentials.iter().filter(|each| former.credentials.contains(each)) {
        if !spec.credentials.contains(credential) {
            spec.credentials.push(credential.clone());
        }
    }
    add_routes(&mut spec, former, newest)?;
    let strict = FailurePolicy::Closed;
    spec.failure_policy = spec.failure_policy.or(both(former.failure_policy, newest.failure_policy, strict));
    let strict = Permission::Deny;
    spec.provider_state = spec.provider_state.or(both(former.provider_state, newest.provider_state, strict));
    spec.tool_default = spec.tool_default.or(both(former.tool_default, newest.tool_default, strict));
    spec.explain = spec.explain.or(both(former.explain, newest.explain, Explain::None));
    spec.hosted_tools = if former.hosted_tools == newest.hosted_tools {
        former.hosted_tools.clone()
    } else {
        let of = |hosted: &Option<WrittenHostedTools>| hosted.clone().unwrap_or_default();
        let strictest =
            stricter(&of(&former.hosted_tools), &of(&spec.hosted_tools), &of(&newest.hosted_tools));
        Some(strictest).filter(|hosted| *hosted != WrittenHostedTools::default())
    };
    spec.limits = match (&former.limits, &spec.limits) {
        (Some(before), Some(now)) => Some(lower(before, now)),
        (before, now) => now.clone().or_else(|| before.clone()),
    };
    let inputs = |audit: &Option<Audit>| audit.as_ref().and_then(|audit| audit.tool_inputs);
    let least = [inputs(&former.audit), inputs(&spec.audit)].into_iter().flatten().min();
    spec.audit = least.map(|inputs| Audit { tool_inputs: Some(inputs) });
    Some(Document { spec, ..stub.clone() })
}

/// Adds the routes that both versions have, with their models. None if the two route differently, or if a provider's key is
/// not among the credentials.
fn add_routes(spec: &mut Spec, former: &Spec, newest: &Spec) -> Option<()> {
    let is_routed_alike = newest.routes == former.routes
        && newest.models == former.models
        && newest.model_providers == former.model_providers;
    let has_key = |name: &String| {
        let mut formers = former.credentials.iter().filter(|former| former.name == *name);
        formers.all(|former| spec.credentials.contains(former))
    };
    let mut keys = former.model_providers.iter().filter_map(|provider| provider.credential.as_ref());
    if !is_routed_alike || !keys.all(has_key) {
        return None;
    }
    spec.routes.clone_from(&former.routes);
    spec.models.clone_from(&former.models);
    spec.model_providers.clone_from(&former.model_providers);
    Some(())
}

/// Whether a route names a label that none of these has: of its own policy, or of a cluster policy.
pub(super) fn has_unknown_labels(document: &Document, others: &BTreeMap<String, Document>) -> bool {
    let of_cluster = others.values().filter(|other| other.kind == Some(Kind::ClusterEgressPolicy));
    let known: HashSet<&str> = of_cluster
        .chain([document])
        .flat_map(|each| &each.spec.models)
        .map(|model| model.name.as_str())
        .chain([ORIGIN])
        .collect();
    let labels =
        document.spec.routes.iter().flat_map(|route| route.to.iter().chain(route.fallback.iter().flatten()));
    labels.into_iter().any(|label| !known.contains(label.as_str()))
}

/// The name of a credential that the newest version defines differently than the former one.
pub(super) fn changed_hands<'a>(former: &'a Document, newest: &Document) -> Option<&'a str> {
    let is_another =
        |old: &&Credential| newest.spec.credentials.iter().any(|new| new.name == old.name && new != *old);
    former.spec.credentials.iter().find(is_another).map(|credential| credential.name.as_str())
}

/// A rule that may be renamed without a change of its meaning.
trait NamedRule: PartialEq + Sized {
    fn named(&self, name: String) -> Self;
}

impl NamedRule for Destination {
    fn named(&self, name: String) -> Self {
        Self { name, ..self.clone() }
    }
}

impl NamedRule for Rule {
    fn named(&self, name: String) -> Self {
        Self { name, ..self.clone() }
    }
}

impl NamedRule for ToolRule {
    fn named(&self, name: String) -> Self {
        Self { name, ..self.clone() }
    }
}

/// Whether a rule is among others, whatever their names.
fn has<T: NamedRule>(rules: &[T], rule: &T) -> bool {
    let nameless = rule.named(String::new());
    rules.iter().any(|each| each.named(String::new()) == nameless)
}

/// The former version's value of a switch, if it is the strict one or both versions agree.
fn both<T: PartialEq + Copy>(former: Option<T>, newest: Option<T>, strict: T) -> Option<T> {
    former.filter(|switch| *switch == strict || former == newest)
}

/// Names of rules, each once.
struct RuleNames(HashSet<String>);

impl RuleNames {
    /// Takes the wanted name, or a free one.
    fn free(&mut self, wanted: &str) -> String {
        let others = (1..).map(|number: u32| format!("rule-{number}"));
        let mut names = std::iter::once(wanted.to_owned()).chain(others);
        let free = names.find(|name| !self.0.contains(name)).unwrap_or_default();
        self.0.insert(free.clone());
        free
    }
}

fn kept<T: Serialize + Clone>(known: &KnownFields, part: &Option<T>, path: &str) -> Option<T> {
    part.clone().filter(|part| known.knows(part, path))
}

fn denied(name: String, hosts: Option<Vec<String>>, cidrs: Option<Vec<String>>) -> Destination {
    Destination { name, hosts, cidrs, action: Some(Action::Deny), ..Destination::default() }
}

/// Denies every name and every address.
fn everything(names: &mut RuleNames, name: &str) -> [Destination; 2] {
    let list = |texts: &[&str]| Some(texts.iter().map(|text| (*text).to_owned()).collect());
    [
        denied(names.free(name), list(&["**"]), None),
        denied(names.free(name), None, list(&["0.0.0.0/0", "::/0"])),
    ]
}

/// A Deny rule in known fields that denies at least as many calls.
fn widened(known: &KnownFields, rule: &ToolRule) -> ToolRule {
    if known.knows(rule, "spec.tools[]") {
        return rule.clone();
    }
    let always = ToolRule { when: None, ..rule.clone() };
    if known.knows(&always, "spec.tools[]") {
        return always;
    }
    ToolRule { tools: Some(vec!["*".to_owned()]), kind: None, ..always }
}

/// The refusals of hosted tools; the list of allowed ones only if all fields are known.
fn strict(known: &KnownFields, hosted: &WrittenHostedTools) -> WrittenHostedTools {
    // A list without an action strips the other tools; Allow refuses nothing.
    let action = match (hosted.action, &hosted.allow) {
        (Some(HostedAction::Allow), _) | (None, None) => None,
        (None, Some(_)) => Some(HostedAction::Strip),
        (Some(action @ (HostedAction::Strip | HostedAction::Deny)), _) => Some(action),
    };
    let allow = hosted.allow.clone().filter(|_| action.is_some() && known.knows(hosted, "spec.hostedTools"));
    WrittenHostedTools {
        action,
        allow,
        url_sources: hosted.url_sources.filter(|each| *each == Permission::Deny),
    }
}

/// What the former version or the newest refuses; `now` is the newest in known fields.
fn stricter(
    former: &WrittenHostedTools,
    now: &WrittenHostedTools,
    newest: &WrittenHostedTools,
) -> WrittenHostedTools {
    let mut allow = former.allow.clone().unwrap_or_default();
    let listed = now.allow.as_deref().unwrap_or_default();
    allow.retain(|tool| listed.contains(tool));
    let action = former.action.filter(|action| *action != HostedAction::Allow).max(now.action);
    let action = action.or(former.allow.as_ref().map(|_| HostedAction::Strip));
    let url_sources = now.url_sources.or(both(former.url_sources, newest.url_sources, Permission::Deny));
    WrittenHostedTools {
        action: action.filter(|action| *action != HostedAction::Allow),
        allow: Some(allow).filter(|list| !list.is_empty()),
        url_sources,
    }
}

fn known_limits(known: &KnownFields, limits: &WrittenLimits) -> WrittenLimits {
    let kept = |limit: Option<i64>, name: &str| {
        limit.filter(|limit| known.knows(limit, &format!("spec.limits.{name}")))
    };
    WrittenLimits {
        request_body_bytes: kept(limits.request_body_bytes, "requestBodyBytes"),
        tool_input_bytes: kept(limits.tool_input_bytes, "toolInputBytes"),
        tokens_per_day: kept(limits.tokens_per_day, "tokensPerDay"),
        requests_per_minute: kept(limits.requests_per_minute, "requestsPerMinute"),
        consecutive_denials: kept(limits.consecutive_denials, "consecutiveDenials"),
    }
}

fn lower(former: &WrittenLimits, newest: &WrittenLimits) -> WrittenLimits {
    let least = |former: Option<i64>, newest: Option<i64>| [former, newest].into_iter().flatten().min();
    WrittenLimits {
        request_body_bytes: least(former.request_body_bytes, newest.request_body_bytes),
        tool_input_bytes: least(former.tool_input_bytes, newest.tool_input_bytes),
        tokens_per_day: least(former.tokens_per_day, newest.tokens_per_day),
        requests_per_minute: least(former.requests_per_minute, newest.requests_per_minute),
        consecutive_denials: least(former.consecutive_denials, newest.consecutive_denials),
    }
}

/// Leaves out the switches that such a gateway does not know.
fn without_unknown_switches(known: &KnownFields, spec: &mut Spec) {
    spec.failure_policy = kept(known, &spec.failure_policy, "spec.failurePolicy");
    spec.provider_state = kept(known, &spec.provider_state, "spec.providerState");
    spec.tool_default = kept(known, &spec.tool_default, "spec.toolDefault");
    spec.hosted_tools = kept(known, &spec.hosted_tools, "spec.hostedTools");
    spec.explain = kept(known, &spec.explain, "spec.explain");
    spec.limits = kept(known, &spec.limits, "spec.limits");
}
