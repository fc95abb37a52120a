//! What differs between two policies, marked by whether it lets more through.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::Value;

use crate::lint;
use crate::name::path::{NormalPath, PathPattern};
use crate::policy::document::{
    Action, Destination, Document, Endpoint, ToolAction, ToolRule, WrittenModelProvider,
};
use crate::policy::routing::Reach;
use crate::provider;

/// Whether a change lets more through.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Mark {
    Looser,
    Tighter,
    /// It may be either, or neither.
    Other,
}

impl Mark {
    /// The word for people and programs.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Looser => "looser",
            Self::Tighter => "tighter",
            Self::Other => "other",
        }
    }

    fn reversed(self) -> Self {
        match self {
            Self::Looser => Self::Tighter,
            Self::Tighter => Self::Looser,
            Self::Other => Self::Other,
        }
    }
}

/// One change.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct PolicyChange {
    pub mark: Mark,
    /// `namespace/policy/rule`, or the section in the rule's place.
    pub rule: String,
    /// For people.
    pub what: String,
}

/// Lists what differs, the looser first.
pub fn changes(old: &[Document], new: &[Document]) -> Vec<PolicyChange> {
    let by_id = |documents: &[Document]| -> BTreeMap<String, Value> {
        documents.iter().map(|document| (document.id(), spec(document))).collect()
    };
    let (before, after) = (by_id(old), by_id(new));
    let mut changes = Changes(Vec::new());
    let nothing = Document::default();
    for id in before.keys().chain(after.keys().filter(|id| !before.contains_key(*id))) {
        let find = |documents: &'_ [Document]| documents.iter().position(|document| document.id() == *id);
        let (was, is) = (find(old), find(new));
        match (was, is) {
            (None, Some(_)) => changes.add(Mark::Other, id, "a new policy"),
            (Some(_), None) => changes.add(Mark::Other, id, "the policy is gone"),
            (Some(_), Some(_)) | (None, None) => {}
        }
        let was = was.and_then(|at| old.get(at)).unwrap_or(&nothing);
        let is = is.and_then(|at| new.get(at)).unwrap_or(&nothing);
        changes.destinations(id, was, is);
        changes.tools(id, was, is);
        changes.providers(id, was, is);
        changes.sections(id, &spec(was), &spec(is));
    }
    changes.0.sort();
    changes.0
}

fn spec(document: &Document) -> Value {
    serde_json::to_value(&document.spec).unwrap_or_default()
}

struct Changes(Vec<PolicyChange>);

impl Changes {
    fn add(&mut self, mark: Mark, rule: &str, what: impl Into<String>) {
        self.0.push(PolicyChange { mark, rule: rule.to_owned(), what: what.into() });
    }

    fn destinations(&mut self, id: &str, old: &Document, new: &Document) {
        let (old, new) = (&old.spec.destinations, &new.spec.destinations);
        let named = |rules: &'_ [Destination], name: &str| rules.iter().position(|rule| rule.name == name);
        for was in old {
            let rule = format!("{id}/{}", was.name);
            match named(new, &was.name).and_then(|at| new.get(at)) {
                None => self.add(grants(was.action).reversed(), &rule, format!("gone: {}", about(was))),
                Some(is) if is != was => self.destination(&rule, was, is),
                Some(_) => {}
            }
        }
        for is in new.iter().filter(|is| named(old, &is.name).is_none()) {
            self.add(grants(is.action), &format!("{id}/{}", is.name), format!("new: {}", about(is)));
        }
    }

    fn destination(&mut self, rule: &str, was: &Destination, is: &Destination) {
        if was.action != is.action {
            let width = |action: Option<Action>| match action {
                Some(Action::Deny) => 0,
                Some(Action::Inspect) => 1,
                Some(Action::Tunnel) => 2,
                None => 3,
            };
            let mark = if width(is.action) > width(was.action) { Mark::Looser } else { Mark::Tighter };
            let word = |action: Option<Action>| action.map(|action| action.to_string()).unwrap_or_default();
            self.add(mark, rule, format!("action: {} becomes {}", word(was.action), word(is.action)));
        }
        let grants = grants(is.action);
        let hosts = |rule: &Destination| rule.hosts.clone().unwrap_or_default();
        self.items(rule, "hosts", (&hosts(was), &hosts(is)), (grants, lint::covers_host));
        let ranges = |rule: &Destination| rule.cidrs.clone().unwrap_or_default();
        self.items(rule, "cidrs", (&ranges(was), &ranges(is)), (grants, |_, _| false));
        let ports = |rule: &Destination| -> Vec<String> {
            rule.ports.iter().flatten().map(ToString::to_string).collect()
        };
        if was.ports.is_some() == is.ports.is_some() {
            self.items(rule, "ports", (&ports(was), &ports(is)), (grants, |_, _| false));
        } else {
            self.add(Mark::Other, rule, "ports");
        }
        self.endpoints(rule, was, is);
        match (reach(was), reach(is)) {
            (Reach::Origin, Reach::Routes) => self.add(Mark::Tighter, rule, "reach: Origin becomes Routes"),
            (Reach::Routes, Reach::Origin) => self.add(Mark::Looser, rule, "reach: Routes becomes Origin"),
            (Reach::Origin, Reach::Origin) | (Reach::Routes, Reach::Routes) => {}
        }
        let rest = |rule: &Destination| (rule.provider, rule.upgrade, rule.allow_ech, rule.protocol);
        if rest(was) != rest(is) {
            self.add(Mark::Other, rule, "provider, upgrade, allowEch or protocol");
        }
    }

    fn endpoints(&mut self, rule: &str, was: &Destination, is: &Destination) {
        match (&was.endpoints, &is.endpoints) {
            (Some(was), Some(is)) => {
                let shown =
                    |endpoints: &[Endpoint]| -> Vec<String> { endpoints.iter().map(endpoint).collect() };
                self.items(rule, "endpoints", (&shown(was), &shown(is)), (Mark::Looser, covers_endpoint));
            }
            (None, None) => {}
            // At a provider no list means its inference endpoints.
            _ if is.hosts.iter().flatten().any(|host| is_provider(host)) => {
                self.add(Mark::Other, rule, "endpoints");
            }
            (None, Some(_)) => self.add(Mark::Tighter, rule, "endpoints are listed"),
            (Some(_), None) => self.add(Mark::Looser, rule, "every endpoint"),
        }
    }

    /// Compares lists whose every item lets more through, or, where `adds` says so, less.
    fn items(
        &mut self,
        rule: &str,
        field: &str,
        (was, is): (&[String], &[String]),
        (adds, covers): (Mark, fn(&str, &str) -> bool),
    ) {
        let without = |these: &[String], those: &[String]| -> Vec<String> {
            these.iter().filter(|item| !those.contains(item)).cloned().collect()
        };
        let (gone, fresh) = (without(was, is), without(is, was));
        if gone.is_empty() && fresh.is_empty() {
            return;
        }
        let is_within = |inner: &[String], outer: &[String]| {
            inner.iter().all(|inner| outer.iter().any(|outer| covers(outer, inner)))
        };
        let mark = match (is_within(&gone, is), is_within(&fresh, was)) {
            (true, true) => Mark::Other,
            (true, false) => adds,
            (false, true) => adds.reversed(),
            (false, false) => Mark::Other,
        };
        let signed =
            gone.iter().map(|item| format!("- {item}")).chain(fresh.iter().map(|item| format!("+ {item}")));
        self.add(mark, rule, format!("{field}: {}", signed.collect::<Vec<_>>().join(", ")));
    }

    fn tools(&mut self, id: &str, old: &Document, new: &Document) {
        let (old, new) = (&old.spec.tools, &new.spec.tools);
        let named = |rules: &'_ [ToolRule], name: &str| rules.iter().position(|rule| rule.name == name);
        for was in old {
            let rule = format!("{id}/{}", was.name);
            match named(new, &was.name).and_then(|at| new.get(at)) {
                None => self.add(lifts(was.action).reversed(), &rule, "gone: a rule about tool calls"),
                Some(is) if is != was => self.tool(&rule, was, is),
                Some(_) => {}
            }
        }
        for is in new.iter().filter(|is| named(old, &is.name).is_none()) {
            self.add(lifts(is.action), &format!("{id}/{}", is.name), "new: a rule about tool calls");
        }
    }

    /// Servers of models: what agents ask may go there.
    fn providers(&mut self, id: &str, old: &Document, new: &Document) {
        let (old, new) = (&old.spec.model_providers, &new.spec.model_providers);
        let named = |all: &'_ [WrittenModelProvider], name: &str| all.iter().position(|one| one.name == name);
        for was in old {
            let rule = format!("{id}/{}", was.name);
            match named(new, &was.name).and_then(|at| new.get(at)) {
                None => self.add(Mark::Tighter, &rule, format!("gone: requests to {}", was.endpoint)),
                Some(is) if is != was => self.provider(&rule, was, is),
                Some(_) => {}
            }
        }
        for is in new.iter().filter(|is| named(old, &is.name).is_none()) {
            self.add(Mark::Looser, &format!("{id}/{}", is.name), format!("new: requests to {}", is.endpoint));
        }
    }

    fn provider(&mut self, rule: &str, was: &WrittenModelProvider, is: &WrittenModelProvider) {
        if was.endpoint != is.endpoint {
            self.add(Mark::Other, rule, format!("endpoint: {} becomes {}", was.endpoint, is.endpoint));
        }
        let ranges = |one: &WrittenModelProvider| one.allow_addresses.clone().unwrap_or_default();
        self.items(rule, "allowAddresses", (&ranges(was), &ranges(is)), (Mark::Looser, |_, _| false));
        let rest = |one: &WrittenModelProvider| WrittenModelProvider {
            endpoint: String::new(),
            allow_addresses: None,
            ..one.clone()
        };
        if rest(was) != rest(is) {
            self.add(Mark::Other, rule, "dialect, credential or what is said to its models");
        }
    }

    fn tool(&mut self, rule: &str, was: &ToolRule, is: &ToolRule) {
        if was.action != is.action {
            let mark = match (was.action, is.action) {
                (_, Some(ToolAction::Deny)) => Mark::Tighter,
                (Some(ToolAction::Deny), _) => Mark::Looser,
                _ => Mark::Other,
            };
            self.add(mark, rule, "action");
        }
        if was.kind != is.kind || was.when != is.when || was.tools.is_some() != is.tools.is_some() {
            self.add(Mark::Other, rule, "kind, when or tools");
        } else {
            let names = |rule: &ToolRule| rule.tools.clone().unwrap_or_default();
            self.items(rule, "tools", (&names(was), &names(is)), (lifts(is.action), |_, _| false));
        }
    }

    /// Compares the other sections: those of which it is known which value lets more through, by that.
    fn sections(&mut self, id: &str, old: &Value, new: &Value) {
        let is_new = |pointer: &str| old.pointer(pointer) != new.pointer(pointer);
        for (pointer, looser, absent) in [
            ("/enforcement", "Audit", "Enforce"),
            ("/failurePolicy", "Open", "Closed"),
            ("/toolDefault", "Allow", "Allow"),
            ("/providerState", "Allow", "Deny"),
            ("/hostedTools/action", "Allow", "Strip"),
            ("/hostedTools/urlSources", "Allow", "Deny"),
        ] {
            let word =
                |spec: &Value| spec.pointer(pointer).and_then(Value::as_str).unwrap_or(absent).to_owned();
            let (was, is) = (word(old), word(new));
            let mark = match (was == looser, is == looser) {
                (false, true) => Mark::Looser,
                (true, false) => Mark::Tighter,
                (true, true) | (false, false) => Mark::Other,
            };
            if was != is {
                self.add(mark, &section(id, pointer), format!("{was} becomes {is}"));
            }
        }
        let listed = |spec: &Value| -> Vec<String> {
            let items = spec.pointer("/hostedTools/allow").and_then(Value::as_array);
            items.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
        };
        let rule = section(id, "/hostedTools/allow");
        self.items(&rule, "allow", (&listed(old), &listed(new)), (Mark::Looser, |_, _| false));
        for limit in
            ["requestBodyBytes", "toolInputBytes", "tokensPerDay", "requestsPerMinute", "consecutiveDenials"]
        {
            let most = |spec: &Value| spec.pointer(&format!("/limits/{limit}")).and_then(Value::as_i64);
            let (was, is) = (most(old), most(new));
            if was != is {
                let bound = |most: Option<i64>| most.unwrap_or(i64::MAX);
                let mark = if bound(is) > bound(was) { Mark::Looser } else { Mark::Tighter };
                let word = |most: Option<i64>| most.map_or("none".to_owned(), |most| most.to_string());
                let what = format!("{limit}: {} becomes {}", word(was), word(is));
                self.add(mark, &section(id, "/limits"), what);
            }
        }
        let known = [
            "/destinations",
            "/tools",
            "/modelProviders",
            "/enforcement",
            "/failurePolicy",
            "/toolDefault",
            "/providerState",
            "/hostedTools",
            "/limits",
        ];
        let keys = |spec: &Value| -> Vec<String> {
            spec.as_object().into_iter().flatten().map(|(key, _)| format!("/{key}")).collect()
        };
        let mut others: Vec<String> = keys(old).into_iter().chain(keys(new)).collect();
        others.sort();
        others.dedup();
        for pointer in others.iter().filter(|pointer| !known.contains(&pointer.as_str()) && is_new(pointer)) {
            self.add(Mark::Other, &section(id, pointer), "changed");
        }
    }
}

fn section(id: &str, pointer: &str) -> String {
    format!("{id}{}", pointer.replacen("/allow", "", 1))
}

fn reach(rule: &Destination) -> Reach {
    rule.reach.unwrap_or(Reach::Origin)
}

/// What a rule with this action does where it is added.
fn grants(action: Option<Action>) -> Mark {
    if action == Some(Action::Deny) { Mark::Tighter } else { Mark::Looser }
}

fn lifts(action: Option<ToolAction>) -> Mark {
    match action {
        Some(ToolAction::Deny) => Mark::Tighter,
        Some(ToolAction::Allow) => Mark::Looser,
        Some(ToolAction::Audit) | None => Mark::Other,
    }
}

fn about(rule: &Destination) -> String {
    let places: Vec<&str> =
        rule.hosts.iter().flatten().chain(rule.cidrs.iter().flatten()).map(String::as_str).collect();
    let action = rule.action.map(|action| action.to_string()).unwrap_or_default();
    format!("{action} {}", places.join(", "))
}

fn is_provider(host: &str) -> bool {
    let name = crate::name::host::DnsName::parse(host).ok();
    // Of a wildcard nobody can say which hosts it is about.
    name.is_none_or(|name| provider::spoken_at(Some(&name), None).is_some())
}

/// An endpoint as text: `GET,POST /a/**`; no method is every method.
fn endpoint(endpoint: &Endpoint) -> String {
    let methods = endpoint.methods.clone().unwrap_or_default().join(",");
    let methods = if methods.is_empty() { "*" } else { &methods };
    format!("{methods} {}", endpoint.path.as_deref().unwrap_or("/**"))
}

/// Whether every request of `inner` is one of `outer`, as [`endpoint`] writes them.
fn covers_endpoint(outer: &str, inner: &str) -> bool {
    let (Some((methods, pattern)), Some((asked, path))) = (outer.split_once(' '), inner.split_once(' '))
    else {
        return false;
    };
    let has_method = |method: &str| methods.split(',').any(|known| known == method);
    let Ok(pattern) = PathPattern::parse(pattern) else { return false };
    // What `**` stands for may be nothing, or several segments.
    let paths = ["", "/*", "/*/*", "/*/*/*"].map(|some| path.replace("/**", some));
    (methods == "*" || asked.split(',').all(has_method))
        && paths.iter().all(|path| pattern.matches(&NormalPath::parse(path)))
}

#[cfg(test)]
#[path = "changes_tests.rs"]
mod tests;
