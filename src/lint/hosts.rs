//! Destinations: names that are nearly a provider's, hosts that sound like one's, rules that a Deny rule covers.

use super::near::is_near;
use super::quoted;
use crate::decision::Enforcement;
use crate::name::host::{DnsName, Host};
use crate::policy::document::{Action, Destination, Document, Kind, Selector};
use crate::policy::pattern::Pattern;
use crate::problem::Problem;
use crate::provider::surface;

/// Names shorter than this are near to too many others (`api.x.ai`, `api.z.ai`).
const SHORTEST: usize = 9;

pub(super) fn warnings(document: &Document, all: &[Document]) -> Vec<Problem> {
    let mut warnings = Vec::new();
    for (number, rule) in document.spec.destinations.iter().enumerate() {
        let place = format!("spec.destinations[{number}]");
        for (item, host) in rule.hosts.iter().flatten().enumerate() {
            let at = format!("{place}.hosts[{item}]");
            if rule.action != Some(Action::Deny) {
                warnings.extend(misspelt(host).map(|message| Problem::at(&at, message)));
                warnings.extend(denied(rule, host, document, all).map(|message| Problem::at(&at, message)));
            }
            warnings.extend(silent(rule, host).map(|message| Problem::at(&at, message)));
        }
    }
    warnings
}

/// What to say of a host whose name is nearly a known provider's.
pub(super) fn misspelt(host: &str) -> Option<String> {
    let name = host.trim_start_matches("**.").trim_start_matches("*.").to_ascii_lowercase();
    let parsed = DnsName::parse_written(&name).ok()?;
    if name.len() < SHORTEST || surface::surface(&parsed).is_some() {
        return None;
    }
    let suffixes =
        || surface::hosts().map(|known| (known, known.trim_start_matches("**.").trim_start_matches("*.")));
    if suffixes().any(|(_, suffix)| suffix == name) {
        return None;
    }
    let is_meant = |known: &str, suffix: &str| {
        // Of a wildcard's host, what follows the labels that the wildcard stands for.
        let labels = if known == suffix { usize::MAX } else { suffix.matches('.').count() };
        let tail =
            name.rmatch_indices('.').nth(labels).and_then(|(at, _)| name.get(at + 1..)).unwrap_or(&name);
        !suffix.contains('*') && is_near(tail, suffix)
    };
    let (known, _) = suffixes().find(|(known, suffix)| is_meant(known, suffix))?;
    Some(format!(
        "{} differs by one letter from {known}, a known LLM provider's; write that if it is meant",
        quoted(host)
    ))
}

/// What to say of a host that sounds like a provider's and that no table knows: what asks a model there is denied until
/// the rule says what speaks.
fn silent(rule: &Destination, host: &str) -> Option<String> {
    let is_silent =
        rule.provider.is_none() && rule.endpoints.is_none() && rule.action == Some(Action::Inspect);
    (is_silent && sounds_like_a_provider(host)).then(|| {
        format!(
            "{} inspects {host}, where nobody knows what speaks: requests to a model are denied there \
             (postern/builtin/provider-unknown) until the rule says `provider: …`, or `provider: None`",
            rule.name
        )
    })
}

/// Words in names of hosts where models are served.
const WORDS: &[&str] = &[
    "ai",
    "anthropic",
    "azureml",
    "bedrock",
    "chat",
    "claude",
    "gemini",
    "genai",
    "gpt",
    "inference",
    "litellm",
    "llama",
    "llm",
    "llms",
    "model",
    "models",
    "ollama",
    "openai",
    "vllm",
];

fn sounds_like_a_provider(host: &str) -> bool {
    let Ok(name) = DnsName::parse(host) else { return false };
    if surface::surface(&name).is_some() {
        return false;
    }
    // The last label is that of a registry: `.ai` says nothing.
    let labels = name.as_str().rsplit_once('.').map_or(name.as_str(), |(labels, _)| labels);
    labels.split(['.', '-']).any(|word| WORDS.contains(&word))
}

/// What to say of a host that a Deny rule covers whole, on every port of the rule, in every pod that has it.
fn denied(rule: &Destination, host: &str, document: &Document, all: &[Document]) -> Option<String> {
    let own = Pattern::parse(host).ok()?;
    let denies = |other: &&Destination| {
        let patterns = other.hosts.iter().flatten().filter_map(|host| Pattern::parse(host).ok());
        other.action == Some(Action::Deny)
            && covers_ports(other.ports.as_ref(), rule)
            && patterns.into_iter().any(|pattern| covers(&pattern, &own))
    };
    let (policy, deny) = all
        .iter()
        .filter(|other| applies_with(other, document))
        .find_map(|other| Some((other, other.spec.destinations.iter().find(denies)?)))?;
    let of = if std::ptr::eq(policy, document) { String::new() } else { format!(" of {}", policy.id()) };
    Some(format!(
        "{} is never allowed: the rule {}{of} denies it, and a Deny rule wins however broad it is; narrow that rule, or \
         take this one away",
        quoted(host),
        deny.name
    ))
}

/// Whether the Deny rules of `other` hold wherever `document` is in force.
pub(super) fn applies_with(other: &Document, document: &Document) -> bool {
    if std::ptr::eq(other, document) {
        return true;
    }
    let is_everywhere =
        |selector: Option<&Selector>| selector.is_none_or(|selector| *selector == Selector::default());
    let of_cluster = other.kind == Some(Kind::ClusterEgressPolicy)
        && is_everywhere(other.spec.namespace_selector.as_ref());
    let of_namespace = other.kind == Some(Kind::EgressPolicy) && other.namespace() == document.namespace();
    other.spec.enforcement != Some(Enforcement::Audit)
        && is_everywhere(other.spec.pod_selector.as_ref())
        && (of_cluster || of_namespace)
}

fn covers_ports(deny: Option<&Vec<i64>>, rule: &Destination) -> bool {
    let usual: &[i64] = if rule.action == Some(Action::Inspect) { &[443, 80] } else { &[443] };
    let ports = rule.ports.as_deref().unwrap_or(usual);
    deny.is_none_or(|denied| ports.iter().all(|port| denied.contains(port)))
}

/// Whether every host of `inner` is one of `outer`.
pub(super) fn covers(outer: &Pattern, inner: &Pattern) -> bool {
    let is_below = |name: &DnsName, suffix: &DnsName| {
        let before = name.as_str().strip_suffix(suffix.as_str());
        before.is_some_and(|labels| labels.is_empty() || labels.ends_with('.'))
    };
    match (outer, inner) {
        (Pattern::Every, Pattern::Exact(_) | Pattern::OneLabel(_) | Pattern::Labels(_) | Pattern::Every) => {
            true
        }
        (outer, Pattern::Exact(name)) => outer.matches(&Host::Name(name.clone())),
        (Pattern::Labels(outer), Pattern::OneLabel(inner) | Pattern::Labels(inner)) => is_below(inner, outer),
        (Pattern::OneLabel(outer), Pattern::OneLabel(inner)) => outer == inner,
        (Pattern::Ip(outer), Pattern::Ip(inner)) => outer == inner,
        (_, _) => false,
    }
}
