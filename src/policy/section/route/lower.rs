//! Routes, judged and compiled as far as one policy tells.

use super::super::lowering::{at_most, each};
use super::super::{Lowering, Problems, text};
use super::written::{WrittenMatch, WrittenRoute};
use super::{LoweredRoute, LoweredRoutes};
use crate::call::FailureClass;
use crate::name::gateway;
use crate::name::host::{DnsName, Host};
use crate::policy::mistake::{self, Beside};
use crate::policy::routing::{MOST_FALLBACK, MOST_LABELS, ModelGlob, RouteMatch};
use crate::yaml::field;

/// The most routes of a policy (routing.md 12.11).
const MOST_ROUTES: usize = 64;

/// The most names of models, and the most hosts, of a route.
const MOST_ENTRIES: usize = 256;

/// The names below `postern/builtin/` (design section 5.9): a route has none of them, so that a rule's last word says
/// who decided.
const BUILT_IN: [&str; 27] = [
    "default-deny",
    "denied-address",
    "name-mismatch",
    "framing",
    "endpoint",
    "credential",
    "placeholder",
    "bound",
    "unparseable",
    "ech",
    "expired",
    "no-policy",
    "provider-state",
    "provider-unknown",
    "redacted-value",
    "route",
    "ledger",
    "minting",
    "agent-control-files",
    "outbound-exfiltration",
    "upgrade",
    "ca-missing",
    "subscription-edit",
    "hosted-tools",
    "url-sources",
    "evaluation-error",
    "interception-off",
];

/// Compiles the routes of a policy; those with mistakes are left out.
pub(super) fn lower<'a>(written: &'a [WrittenRoute], lowering: &mut Lowering<'a>) -> LoweredRoutes {
    let list = "spec.routes";
    at_most(list, written.len(), MOST_ROUTES, "routes", &mut lowering.problems);
    let mut routes = Vec::with_capacity(written.len().min(MOST_ROUTES));
    for (number, written) in written.iter().enumerate().take(MOST_ROUTES) {
        let path = field::item(list, number);
        lowering.rule_name(&path, &written.name);
        if BUILT_IN.contains(&written.name.as_str()) {
            let message = format!(
                "`{0}` is the name of a built-in rule, postern/builtin/{0}; choose another",
                written.name
            );
            lowering.problems.add(field::key(&path, "name"), message);
        }
        routes.extend(route(path, written, lowering));
    }
    LoweredRoutes { models: lowering.models.all(), routes }
}

fn route(path: String, written: &WrittenRoute, lowering: &mut Lowering<'_>) -> Option<LoweredRoute> {
    let id = lowering.owner.rule(&written.name);
    let problems = &mut lowering.problems;
    let matched = matched(&field::key(&path, "match"), written.matching.as_ref(), problems);
    let has_marker = written.matching.as_ref().is_some_and(|matching| matching.marker.is_some());
    let is_fine = to(&path, &written.to, has_marker, problems)
        & fallback(&path, written, problems)
        & repeated(&path, written, problems);
    let on = on(&path, written, problems);
    let (matching, hosts) = matched?;
    is_fine.then(|| LoweredRoute {
        path,
        id,
        matching,
        hosts,
        to: written.to.clone(),
        fallback: written.fallback.clone().unwrap_or_default(),
        on,
    })
}

/// Reads what a route looks for, and the hosts.
fn matched(
    path: &str,
    written: Option<&WrittenMatch>,
    problems: &mut Problems,
) -> Option<(RouteMatch, Vec<Host>)> {
    let Some(written) = written else {
        problems.add(path, "is required: {marker: TOKEN} or {models: [NAME]}");
        return None;
    };
    let hosts = hosts(path, written.hosts.as_deref(), problems);
    let matching = match (&written.marker, &written.models) {
        (Some(token), None) => {
            let read = marker(token).map(|()| RouteMatch::Marker(token.as_str().into()));
            problems.keep(&field::key(path, "marker"), read)
        }
        (None, Some(models)) => globs(&field::key(path, "models"), models, problems).map(RouteMatch::Models),
        (Some(_), Some(_)) => {
            problems.add(path, "has `marker` and `models`: one route has one of them");
            None
        }
        (None, None) => {
            problems.add(path, "needs `marker` or `models`; [\"*\"] is every model");
            None
        }
    };
    Some((matching?, hosts?))
}

fn marker(token: &str) -> Result<(), String> {
    let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    if !(4..=32).contains(&token.len()) || !token.bytes().all(is_plain) {
        return Err("a marker's token is 4 to 32 lower-case letters and digits".to_owned());
    }
    Ok(())
}

fn globs(list: &str, written: &[String], problems: &mut Problems) -> Option<Vec<ModelGlob>> {
    is_filled(list, written, problems).then_some(())?;
    each(list, written, problems, |name| {
        if name.chars().any(char::is_control) || name.trim() != name {
            return Err("has white space around it or control characters in it".to_owned());
        }
        text::pattern(name).map(|()| ModelGlob::new(name))
    })
}

fn hosts(path: &str, written: Option<&[String]>, problems: &mut Problems) -> Option<Vec<Host>> {
    let list = field::key(path, "hosts");
    let Some(written) = written else { return Some(Vec::new()) };
    is_filled(&list, written, problems).then_some(())?;
    each(&list, written, problems, |text| {
        if text.contains('*') && !text.contains("://") {
            return Err("a route is about exact hosts; leave `hosts` out for every host".to_owned());
        }
        let host =
            if text.is_ascii() { Host::parse(text) } else { DnsName::parse_written(text).map(Host::Name) };
        let host = host.and_then(|host| match host {
            Host::Name(name) => gateway::refuse_own(name).map(Host::Name),
            Host::Ip(_) => Ok(host),
        });
        host.map_err(|error| mistake::of_host(text, &error, Beside::Nothing))
    })
}

fn is_filled(list: &str, written: &[String], problems: &mut Problems) -> bool {
    let most = format!("has {} entries; at most {MOST_ENTRIES}", written.len());
    match written.len() {
        0 => problems.add(list, "name at least one, or leave the field out"),
        1..=MOST_ENTRIES => return true,
        _ => problems.add(list, most),
    }
    false
}

fn to(path: &str, written: &[String], has_marker: bool, problems: &mut Problems) -> bool {
    let most = if has_marker { MOST_LABELS } else { 1 };
    let message = match written.len() {
        0 => "is required: a label of `models`, or origin".to_owned(),
        many if many <= most => return true,
        many if has_marker => format!("has {many} labels; a marker chooses from at most {MOST_LABELS}"),
        many => format!(
            "has {many} labels; without a marker a route has one, and what is asked next stands in `fallback`"
        ),
    };
    problems.add(field::key(path, "to"), message);
    false
}

fn fallback(path: &str, written: &WrittenRoute, problems: &mut Problems) -> bool {
    let Some(labels) = &written.fallback else { return true };
    let message = match labels.len() {
        0 => "name at least one label, or leave the field out".to_owned(),
        1..=MOST_FALLBACK => return true,
        many => format!("has {many} labels; at most {MOST_FALLBACK} follow the first"),
    };
    problems.add(field::key(path, "fallback"), message);
    false
}

/// Judges that no chain of the route has a label twice. Any of `to` may come before all of `fallback`.
fn repeated(path: &str, written: &WrittenRoute, problems: &mut Problems) -> bool {
    let mut seen: Vec<(&str, String)> = Vec::new();
    let mut is_fine = true;
    let lists =
        [("to", written.to.as_slice()), ("fallback", written.fallback.as_deref().unwrap_or_default())];
    for (name, labels) in lists {
        let list = field::key(path, name);
        for (number, label) in labels.iter().enumerate() {
            let at = field::item(&list, number);
            if let Some((_, first)) = seen.iter().find(|(other, _)| other == label) {
                problems.add(at, format!("`{label}` stands in {first} already: a chain asks each once"));
                is_fine = false;
            } else {
                seen.push((label, at));
            }
        }
    }
    is_fine
}

/// The failures after which the next one is asked.
fn on(path: &str, written: &WrittenRoute, problems: &mut Problems) -> Vec<FailureClass> {
    let at = field::key(path, "on");
    let Some(classes) = &written.on else {
        return FailureClass::ALL.into_iter().filter(|class| class.falls_through()).collect();
    };
    if classes.is_empty() {
        problems.add(at.as_str(), "name at least one class of failures, or leave the field out");
    }
    if written.fallback.is_none() {
        problems.add(at, "belongs to a route with `fallback`: nothing else follows");
    }
    let mut chosen = classes.clone();
    chosen.sort_unstable();
    chosen.dedup();
    chosen
}
