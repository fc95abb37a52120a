//! What a section is judged with: the policy that it stands in, the names of rules, the mistakes so far.

use std::collections::HashMap;
use std::sync::Arc;

use ipnet::IpNet;

use super::model_provider::LoweredProvider;
use super::text;
use crate::policy::credential::Credential;
use crate::policy::document::{Kind, Origin};
use crate::policy::routing::Model;
use crate::policy::scope::Owner;
use crate::problem::Problem;
use crate::yaml::field;

/// One document while its sections are judged.
pub(in crate::policy) struct Lowering<'a> {
    pub(in crate::policy) owner: &'a Owner,
    pub(in crate::policy) kind: Option<Kind>,
    pub(in crate::policy) origin: &'a Origin,
    /// Of destinations, tools and rules.
    pub(super) rule_names: RuleNames<'a>,
    /// What is already judged of the policy and named further down in it.
    pub(super) credentials: Declared<'a, Credential>,
    pub(super) model_providers: Declared<'a, LoweredProvider>,
    pub(super) models: Declared<'a, Model>,
    pub(in crate::policy) problems: Problems,
}

impl<'a> Lowering<'a> {
    pub(in crate::policy) fn new(
        owner: &'a Owner,
        kind: Option<Kind>,
        origin: &'a Origin,
        problems: Problems,
    ) -> Self {
        Self {
            owner,
            kind,
            origin,
            rule_names: RuleNames::default(),
            credentials: Declared::default(),
            model_providers: Declared::default(),
            models: Declared::default(),
            problems,
        }
    }

    /// Judges the name of a rule at `path`, which no other destination, tool rule or rule of the policy has.
    pub(super) fn rule_name(&mut self, path: &str, name: &'a str) {
        self.rule_names.add(path, name, &mut self.problems);
    }
}

/// Mistakes, gathered.
#[derive(Default)]
pub(in crate::policy) struct Problems(Vec<Problem>);

impl Problems {
    pub(in crate::policy) fn add(&mut self, path: impl Into<String>, message: impl Into<String>) {
        self.0.push(Problem::at(path, message));
    }

    pub(in crate::policy) fn push(&mut self, problem: Problem) {
        self.0.push(problem);
    }

    /// Returns the value, or notes its mistake at a field.
    pub(in crate::policy) fn keep<T, E: ToString>(&mut self, path: &str, result: Result<T, E>) -> Option<T> {
        result.map_err(|error| self.add(path, error.to_string())).ok()
    }

    pub(in crate::policy) fn into_result<T>(self, value: T) -> Result<T, Vec<Problem>> {
        if self.0.is_empty() { Ok(value) } else { Err(self.0) }
    }
}

/// Judges the names of rules, which are unique in their policy.
#[derive(Default)]
pub(super) struct RuleNames<'a>(HashMap<&'a str, String>);

impl<'a> RuleNames<'a> {
    pub(super) fn add(&mut self, path: &str, name: &'a str, problems: &mut Problems) {
        let path = field::key(path, "name");
        if problems.keep(&path, text::rule_name(name)).is_none() {
            return;
        }
        if let Some(first) = self.0.get(name) {
            problems.add(path, format!("the name `{name}` is taken by {first}"));
        } else {
            self.0.insert(name, field::parent(&path).to_owned());
        }
    }
}

/// What a section of a policy declares and other sections of the same policy name; none for what has a mistake, which is
/// told once, where it stands.
pub(super) struct Declared<'a, T>(HashMap<&'a str, Option<Arc<T>>>);

impl<T> Default for Declared<'_, T> {
    fn default() -> Self {
        Self(HashMap::new())
    }
}

impl<'a, T> Declared<'a, T> {
    /// Notes a name; of two that are alike the first one counts.
    pub(super) fn add(&mut self, name: &'a str, value: Option<&Arc<T>>) {
        self.0.entry(name).or_insert_with(|| value.cloned());
    }

    /// Finds what is called so; none where nothing is.
    pub(super) fn find(&self, name: &str) -> Option<Option<&Arc<T>>> {
        self.0.get(name).map(Option::as_ref)
    }

    /// All that have no mistake, in no order.
    pub(super) fn all(&self) -> Vec<Arc<T>> {
        self.0.values().flatten().cloned().collect()
    }

    /// Says that nothing is called so, and what there is.
    pub(super) fn unknown(&self, name: &str, list: &str) -> String {
        let mut names: Vec<&str> = self.0.keys().copied().filter(|name| !name.is_empty()).collect();
        names.sort_unstable();
        let there = if names.is_empty() {
            "there are none".to_owned()
        } else {
            let some = names.get(..names.len().min(MOST_SHOWN)).unwrap_or_default();
            format!("there are {}", some.join(", "))
        };
        format!("{} is none of this policy's `{list}`: {there}", field::quoted(name))
    }
}

/// How many names a message lists.
const MOST_SHOWN: usize = 16;

/// Judges how many items a list has.
pub(super) fn at_most(list: &str, items: usize, most: usize, what: &str, problems: &mut Problems) -> bool {
    if items > most {
        problems.add(list, format!("has {items} {what}; a policy has at most {most}"));
    }
    items <= most
}

/// Reads each item of a list, and notes each that cannot be read; none where one could not.
pub(super) fn each<T>(
    list: &str,
    written: &[String],
    problems: &mut Problems,
    read: impl Fn(&str) -> Result<T, String>,
) -> Option<Vec<T>> {
    let mut values = Vec::with_capacity(written.len());
    for (number, text) in written.iter().enumerate() {
        let result = read(text).map_err(|error| format!("{}: {error}", field::quoted(text)));
        values.extend(problems.keep(&field::item(list, number), result));
    }
    (values.len() == written.len()).then_some(values)
}

/// Judges ports: sorted, without repetition; none where there are none to judge.
pub(super) fn ports(path: &str, written: Option<&Vec<i64>>, problems: &mut Problems) -> Option<Vec<u16>> {
    let path = field::key(path, "ports");
    let written = written?;
    if written.is_empty() {
        problems.add(path.as_str(), "name at least one port, or leave the field out");
    }
    let mut ports = Vec::with_capacity(written.len());
    for (number, port) in written.iter().enumerate() {
        match u16::try_from(*port) {
            Ok(port) if port > 0 => ports.push(port),
            Ok(_) | Err(_) => {
                problems.add(field::item(&path, number), format!("{port} is no port; expected 1 to 65535"));
            }
        }
    }
    ports.sort_unstable();
    ports.dedup();
    Some(ports)
}

/// Reads a range of addresses without host bits.
pub(super) fn net(text: &str) -> Result<IpNet, String> {
    let Ok(net) = text.parse::<IpNet>() else {
        return Err("is no range of addresses; expected one like 10.20.0.0/16 or 2001:db8::/32".to_owned());
    };
    if net.trunc() != net {
        return Err(format!(
            "has bits behind its prefix; {} is the whole range, /{} one address",
            net.trunc(),
            net.max_prefix_len()
        ));
    }
    match net {
        IpNet::V6(v6) if v6.addr().to_ipv4_mapped().is_some() => {
            Err("is IPv4 written as IPv6; write it as IPv4".to_owned())
        }
        IpNet::V4(_) | IpNet::V6(_) => Ok(net),
    }
}
