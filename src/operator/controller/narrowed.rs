//! What of a policy a gateway is given that does not know all of it: whom it is for, what it denies, and what it opened before. Pure.

use std::collections::HashSet;

use serde::Serialize;

use super::previous::Known;
use crate::decision::Enforcement;
use crate::policy::document::limits::Limits;
use crate::policy::document::tool::{
    Action as ToolAction, Audit, HostedAction, HostedTools, Permission, Rule,
};
use crate::policy::document::{Action, Credential, Destination, Document, FailurePolicy, Spec};

/// A policy without anything that it opens: its selectors, what it denies, its switches where they are set to the strict
/// side, its limits and the credentials that it demands. A Deny rule that is not known whole denies more: without its
/// condition, or everything there is of its kind. None where it is an Audit policy of whose pods nothing is known: it
/// would only take denials from others.
pub(super) fn stub(known: &Known, newest: &Document) -> Option<Document> {
    let written = &newest.spec;
    let is_scoped = known.knows(&written.pod_selector, "spec.podSelector");
    if !is_scoped && written.enforcement == Some(Enforcement::Audit) {
        return None;
    }
    let mut names = Names::default();
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
        spec.tools.push(Rule { name: names.free(&rule.name), ..widened(known, rule) });
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

/// The `stub` of a policy with what the newest opens and the `former` version opened too, word for word, and with what the
/// former denied. So nothing is opened again that a policy took back. None where they are not for the same pods, or not
/// enforced alike: what was opened for some is not opened for others.
pub(super) fn strengthened(stub: &Document, former: &Document, newest: &Document) -> Option<Document> {
    let (mut spec, former, newest) = (stub.spec.clone(), &former.spec, &newest.spec);
    if newest.pod_selector != former.pod_selector || newest.enforcement != former.enforcement {
        return None;
    }
    let of_tools = spec.tools.iter().map(|rule| &rule.name);
    let mut names = Names(spec.destinations.iter().map(|rule| &rule.name).chain(of_tools).cloned().collect());
    let is_open = |rule: &&Destination| rule.action != Some(Action::Deny);
    let opens = newest.destinations.iter().filter(is_open).filter(|rule| has(&former.destinations, *rule));
    let denies = former.destinations.iter().filter(|rule| !is_open(rule));
    for rule in opens.chain(denies) {
        if !has(&spec.destinations, rule) {
            spec.destinations.push(rule.named(names.free(&rule.name)));
        }
    }
    let is_open = |rule: &&Rule| rule.action != Some(ToolAction::Deny);
    let opens = newest.tools.iter().filter(is_open).filter(|rule| has(&former.tools, *rule));
    let denies = former.tools.iter().filter(|rule| !is_open(rule));
    for rule in opens.chain(denies) {
        if !has(&spec.tools, rule) {
            spec.tools.push(rule.named(names.free(&rule.name)));
        }
    }
    for credential in newest.credentials.iter().filter(|one| former.credentials.contains(one)) {
        if !spec.credentials.contains(credential) {
            spec.credentials.push(credential.clone());
        }
    }
    let strict = FailurePolicy::Closed;
    spec.failure_policy = spec.failure_policy.or(both(former.failure_policy, newest.failure_policy, strict));
    let strict = Permission::Deny;
    spec.provider_state = spec.provider_state.or(both(former.provider_state, newest.provider_state, strict));
    spec.tool_default = spec.tool_default.or(both(former.tool_default, newest.tool_default, strict));
    spec.hosted_tools = if former.hosted_tools == newest.hosted_tools {
        former.hosted_tools.clone()
    } else {
        let of = |hosted: &Option<HostedTools>| hosted.clone().unwrap_or_default();
        let all = stricter(&of(&former.hosted_tools), &of(&spec.hosted_tools), &of(&newest.hosted_tools));
        Some(all).filter(|hosted| *hosted != HostedTools::default())
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

/// A credential of a former version that is another one by now.
pub(super) fn changed_hands<'a>(former: &'a Document, newest: &Document) -> Option<&'a str> {
    let is_another = |one: &&Credential| {
        newest.spec.credentials.iter().any(|other| other.name == one.name && other != *one)
    };
    former.spec.credentials.iter().find(is_another).map(|credential| credential.name.as_str())
}

/// A rule, which may have another name and mean the same.
trait Named: PartialEq + Sized {
    fn named(&self, name: String) -> Self;
}

impl Named for Destination {
    fn named(&self, name: String) -> Self {
        Self { name, ..self.clone() }
    }
}

impl Named for Rule {
    fn named(&self, name: String) -> Self {
        Self { name, ..self.clone() }
    }
}

/// Whether a rule is among others, whatever its name.
fn has<T: Named>(rules: &[T], rule: &T) -> bool {
    let nameless = rule.named(String::new());
    rules.iter().any(|one| one.named(String::new()) == nameless)
}

/// A switch as the former version sets it to the strict side, or as both set it.
fn both<T: PartialEq + Copy>(former: Option<T>, newest: Option<T>, strict: T) -> Option<T> {
    former.filter(|switch| *switch == strict || former == newest)
}

/// Names of rules, each once.
#[derive(Default)]
struct Names(HashSet<String>);

impl Names {
    /// The name that is wanted, or one that is free.
    fn free(&mut self, wanted: &str) -> String {
        let others = (1..).map(|number: u32| format!("rule-{number}"));
        let mut names = std::iter::once(wanted.to_owned()).chain(others);
        let free = names.find(|name| !self.0.contains(name)).unwrap_or_default();
        self.0.insert(free.clone());
        free
    }
}

fn kept<T: Serialize + Clone>(known: &Known, part: &Option<T>, path: &str) -> Option<T> {
    part.clone().filter(|part| known.knows(part, path))
}

fn denied(name: String, hosts: Option<Vec<String>>, cidrs: Option<Vec<String>>) -> Destination {
    Destination { name, hosts, cidrs, action: Some(Action::Deny), ..Destination::default() }
}

/// Denies every name and every address.
fn everything(names: &mut Names, name: &str) -> [Destination; 2] {
    let all = |texts: &[&str]| Some(texts.iter().map(|text| (*text).to_owned()).collect());
    [
        denied(names.free(name), all(&["**"]), None),
        denied(names.free(name), None, all(&["0.0.0.0/0", "::/0"])),
    ]
}

/// A Deny rule that is known whole and means at least as many calls.
fn widened(known: &Known, rule: &Rule) -> Rule {
    if known.knows(rule, "spec.tools[]") {
        return rule.clone();
    }
    let always = Rule { when: None, ..rule.clone() };
    if known.knows(&always, "spec.tools[]") {
        return always;
    }
    Rule { tools: Some(vec!["*".to_owned()]), kind: None, ..always }
}

/// What is refused of hosted tools, the list of what stays kept where all of it is known.
fn strict(known: &Known, hosted: &HostedTools) -> HostedTools {
    let action = match (hosted.action, &hosted.allow) {
        (Some(HostedAction::Allow), _) | (None, None) => None,
        (None, Some(_)) => Some(HostedAction::Strip),
        (Some(action @ (HostedAction::Strip | HostedAction::Deny)), _) => Some(action),
    };
    let allow = hosted.allow.clone().filter(|_| action.is_some() && known.knows(hosted, "spec.hostedTools"));
    HostedTools { action, allow, url_sources: hosted.url_sources.filter(|one| *one == Permission::Deny) }
}

/// What the former version or the newest refuses; `now` is what of the newest may be said.
fn stricter(former: &HostedTools, now: &HostedTools, newest: &HostedTools) -> HostedTools {
    let mut allow = former.allow.clone().unwrap_or_default();
    let listed = now.allow.as_deref().unwrap_or_default();
    allow.retain(|tool| listed.contains(tool));
    let action = former.action.filter(|action| *action != HostedAction::Allow).max(now.action);
    let action = action.or(former.allow.as_ref().map(|_| HostedAction::Strip));
    let url_sources = now.url_sources.or(both(former.url_sources, newest.url_sources, Permission::Deny));
    HostedTools {
        action: action.filter(|action| *action != HostedAction::Allow),
        allow: Some(allow).filter(|list| !list.is_empty()),
        url_sources,
    }
}

fn known_limits(known: &Known, limits: &Limits) -> Limits {
    let kept = |limit: Option<i64>, name: &str| {
        limit.filter(|limit| known.knows(limit, &format!("spec.limits.{name}")))
    };
    Limits {
        request_body_bytes: kept(limits.request_body_bytes, "requestBodyBytes"),
        tool_input_bytes: kept(limits.tool_input_bytes, "toolInputBytes"),
        tokens_per_day: kept(limits.tokens_per_day, "tokensPerDay"),
        requests_per_minute: kept(limits.requests_per_minute, "requestsPerMinute"),
        consecutive_denials: kept(limits.consecutive_denials, "consecutiveDenials"),
    }
}

fn lower(one: &Limits, other: &Limits) -> Limits {
    let least = |one: Option<i64>, other: Option<i64>| [one, other].into_iter().flatten().min();
    Limits {
        request_body_bytes: least(one.request_body_bytes, other.request_body_bytes),
        tool_input_bytes: least(one.tool_input_bytes, other.tool_input_bytes),
        tokens_per_day: least(one.tokens_per_day, other.tokens_per_day),
        requests_per_minute: least(one.requests_per_minute, other.requests_per_minute),
        consecutive_denials: least(one.consecutive_denials, other.consecutive_denials),
    }
}

/// Leaves out switches that such a gateway has not.
fn without_unknown_switches(known: &Known, spec: &mut Spec) {
    spec.failure_policy = kept(known, &spec.failure_policy, "spec.failurePolicy");
    spec.provider_state = kept(known, &spec.provider_state, "spec.providerState");
    spec.tool_default = kept(known, &spec.tool_default, "spec.toolDefault");
    spec.hosted_tools = kept(known, &spec.hosted_tools, "spec.hostedTools");
    spec.limits = kept(known, &spec.limits, "spec.limits");
}
