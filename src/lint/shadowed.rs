//! Rules that decide nothing: tool rules that a Deny rule covers whole, Allow rules where nothing is denied by default, and
//! endpoints beside a rule that opens everything.

use super::hosts::{applies_with, covers as covers_host};
use super::quoted;
use crate::call::{Kind, KindsBy};
use crate::policy::document::{Action, Destination, Document, Permission, ToolAction, ToolRule};
use crate::policy::pattern::Pattern;
use crate::policy::tool::covers;
use crate::problem::Problem;
use crate::provider::kind::{self, Offered};

/// `is_all`: no other document is in force beside those that are known.
pub(super) fn warnings(document: &Document, known: &[Document], is_all: bool) -> Vec<Problem> {
    let mut warnings = Vec::new();
    for (number, rule) in document.spec.tools.iter().enumerate() {
        let said = denied(rule, number, document, known)
            .or_else(|| needless(rule, known).filter(|_| is_all && rule.action == Some(ToolAction::Allow)));
        warnings.extend(said.map(|message| Problem::at(format!("spec.tools[{number}]"), message)));
    }
    for (number, rule) in document.spec.destinations.iter().enumerate() {
        let at = format!("spec.destinations[{number}].endpoints");
        warnings.extend(unbounded(rule, document).map(|message| Problem::at(at, message)));
    }
    warnings
}

/// What to say of a rule every call of which another one denies.
fn denied(rule: &ToolRule, number: usize, document: &Document, known: &[Document]) -> Option<String> {
    let of = |other: &Document| {
        if std::ptr::eq(other, document) { String::new() } else { format!(" of {}", other.id()) }
    };
    known.iter().filter(|other| applies_with(other, document)).find_map(|other| {
        let is_own = std::ptr::eq(other, document);
        let denies = |(at, deny): &(usize, &ToolRule)| {
            // Of two rules that say the same the later one is told.
            let is_other = !is_own || *at < number || (*at != number && !says_as_much(rule, deny));
            is_other && deny.action == Some(ToolAction::Deny) && deny.when.is_none() && covers_calls(deny, rule)
        };
        let (_, deny) = other.spec.tools.iter().enumerate().find(denies)?;
        let of = of(other);
        Some(format!(
            "{} decides nothing: the rule {}{of} denies every call of it, and a Deny rule wins wherever it stands; narrow \
             that rule, or take this one away",
            rule.name, deny.name
        ))
    })
}

fn says_as_much(rule: &ToolRule, deny: &ToolRule) -> bool {
    rule.action == Some(ToolAction::Deny) && rule.when.is_none() && covers_calls(rule, deny)
}

/// Whether every call of `inner` is one of `outer`. A rule with names and a kind is about the calls of either.
fn covers_calls(outer: &ToolRule, inner: &ToolRule) -> bool {
    let names = |rule: &ToolRule| rule.tools.clone().unwrap_or_default();
    let (of_outer, of_inner) = (names(outer), names(inner));
    let is_every = of_outer.iter().any(|name| name == "*");
    let covers_name = |name: &String| of_outer.iter().any(|outer| covers(outer, name));
    is_every || ((inner.kind.is_none() || inner.kind == outer.kind) && of_inner.iter().all(covers_name))
}

/// What to say of an Allow rule where calls are allowed without one.
fn needless(rule: &ToolRule, known: &[Document]) -> Option<String> {
    let is_denied_by_default =
        known.iter().any(|document| document.spec.tool_default == Some(Permission::Deny));
    (!is_denied_by_default && !lifts(rule)).then(|| {
        format!(
            "{} allows what is allowed without it: no policy here says `toolDefault: Deny`, and a Deny rule wins over an \
             Allow rule; say `toolDefault: Deny`, or take this rule away",
            rule.name
        )
    })
}

/// Whether a rule lifts what is built in: the rule about control files, or kinds that are inferred of a tool.
fn lifts(rule: &ToolRule) -> bool {
    let is_inferred = |name: &String| {
        !name.contains(['*', '%'])
            && kind::tool(name, None, false, &Offered::default()).by != KindsBy::Catalogue
    };
    rule.kind == Some(Kind::Write)
        || rule.when.as_ref().is_some_and(crate::policy::document::When::judges_paths)
        || (rule.when.is_none() && rule.tools.iter().flatten().any(is_inferred))
}

/// What to say of endpoints beside an equal rule without any.
fn unbounded(rule: &Destination, document: &Document) -> Option<String> {
    let patterns = |rule: &Destination| -> Vec<Pattern> {
        rule.hosts.iter().flatten().filter_map(|host| Pattern::parse(host).ok()).collect()
    };
    rule.endpoints.as_ref()?;
    let own = patterns(rule);
    let is_equal = |other: &Pattern| own.iter().any(|own| covers_host(own, other) && covers_host(other, own));
    let (other, host) = document.spec.destinations.iter().find_map(|other| {
        let opens =
            other.action == Some(Action::Inspect) && other.endpoints.is_none() && other.provider.is_none();
        let host = other
            .hosts
            .iter()
            .flatten()
            .find(|host| Pattern::parse(host).is_ok_and(|host| is_equal(&host)))?;
        (opens && other.ports == rule.ports && !is_models(host)).then_some((other, host))
    })?;
    Some(format!(
        "at {} these endpoints bound nothing: the rule {} inspects the same host without any, which opens every path; give \
         that rule its endpoints, or take one of the two away",
        quoted(host),
        other.name
    ))
}

/// At a provider of models a rule without endpoints opens inference alone, and endpoints add to it.
fn is_models(host: &str) -> bool {
    let name = host.trim_start_matches("**.").trim_start_matches("*.");
    crate::name::host::DnsName::parse(name)
        .is_ok_and(|name| crate::provider::surface::surface(&name).is_some())
}
