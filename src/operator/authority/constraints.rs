//! Computes what a namespace's CA may vouch for, from the hosts that its policies inspect. Pure.

use std::collections::BTreeSet;
use std::net::IpAddr;

use super::collapse::{self, Fitted};
use crate::policy::companion::companions;
use crate::policy::document::Document;
use crate::policy::pattern::Pattern;
use crate::policy::vouched::vouched;
use crate::provider::surface::COMPANIONS;

/// The most octets of all permitted names and addresses, encoded. Every client that was tried accepts this many; only
/// Go accepts 110 KiB.
const LIMIT: usize = 16 << 10;
/// The part of it that addresses may take.
const ADDRESSES: usize = LIMIT / 4;
/// Permitted if no other name is; it belongs to nobody (RFC 6761 section 6.4). Without any permitted name, all names
/// would be permitted, and an empty constraint crashes Java.
const NOBODYS: &str = "postern.invalid";
/// How many names are listed to people.
const LISTED: usize = 5;

/// What an intermediate may vouch for. Equal for equal policies, whatever their order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CaConstraints {
    /// As constraints write them; none if names are not limited.
    names: Option<BTreeSet<String>>,
    addresses: BTreeSet<IpAddr>,
    /// Parents that replace names that did not fit.
    parents: Vec<String>,
    /// Hosts that did not fit at all.
    left_out: Vec<String>,
}

impl CaConstraints {
    /// Permits the hosts that these policies inspect, or deny by exact name: an exact host as that name (a name
    /// constraint also covers what lies below), `*.` and `**.` as the name with a leading dot, addresses one by one.
    /// Companions, which agents dial beside the providers, come last if there is room: they need a leaf only to show
    /// their refusal.
    pub fn of(documents: &[Document]) -> Self {
        let (mut names, mut addresses, mut every) = (BTreeSet::new(), BTreeSet::new(), false);
        for pattern in vouched(documents) {
            match pattern {
                Pattern::Ip(ip) => {
                    addresses.insert(ip);
                }
                Pattern::Exact(_) | Pattern::OneLabel(_) | Pattern::Labels(_) => {
                    names.extend(written(&pattern))
                }
                Pattern::Every => every = true,
            }
        }
        let mut left_out = beyond(&mut addresses, ADDRESSES);
        if every {
            return Self { names: None, addresses, parents: Vec::new(), left_out };
        }
        if names.is_empty() {
            names.insert(NOBODYS.to_owned());
        }
        let taken = addresses.iter().map(encoded).sum::<usize>();
        let mut fitted: Fitted = collapse::fitted(&names, LIMIT - taken);
        if fitted.parents.is_empty() && fitted.left_out.is_empty() {
            let companions = companions(documents, COMPANIONS);
            let companions = companions.iter().map(|name| name.as_str());
            collapse::add(&mut fitted.names, companions, LIMIT - taken);
        }
        left_out.extend(fitted.left_out);
        Self { names: Some(fitted.names), addresses, parents: fitted.parents, left_out }
    }

    /// Whether the names are not limited, since a policy inspects every host.
    pub fn is_unconstrained(&self) -> bool {
        self.names.is_none()
    }

    /// Hosts of a policy that did not fit and are not covered, so that gateways deny them: `example.com`,
    /// `.example.com` (everything below) and addresses.
    pub fn left_out_of(&self, document: &Document) -> Vec<String> {
        if self.left_out.is_empty() {
            return Vec::new();
        }
        let hosts = vouched(std::slice::from_ref(document));
        let written = hosts.iter().filter_map(written);
        written.filter(|host| self.left_out.iter().any(|left| covers(left, host))).collect()
    }

    /// Sentences that the authors of the policies should know, for the policies' status.
    pub fn caveats(&self) -> Vec<String> {
        let mut caveats = Vec::new();
        if self.is_unconstrained() {
            caveats.push(
                "The namespace's CA is unconstrained: a policy inspects every host (`**`), so whoever reads its key \
                 can pass for any host name before agents that trust Postern's root; name the hosts to bound that"
                    .to_owned(),
            );
        }
        if !self.parents.is_empty() {
            caveats.push(format!(
                "The names that policies inspect take more than {} KiB in the namespace's CA, so it may vouch for \
                 everything below {}; write wildcards (`*.example.com`) to choose where names are united",
                LIMIT >> 10,
                listed(self.parents.iter().map(|parent| parent.trim_start_matches('.'))),
            ));
        }
        if !self.left_out.is_empty() {
            caveats.push(format!(
                "The hosts that policies inspect do not fit into the {} KiB of the namespace's CA, and these are \
                 denied: {}; inspect them by wildcards (`*.example.com`), or in another namespace",
                LIMIT >> 10,
                listed(self.left_out.iter().map(String::as_str)),
            ));
        }
        caveats
    }

    /// The names as constraints write them, sorted; none if they are not limited.
    pub(super) fn names(&self) -> Option<&BTreeSet<String>> {
        self.names.as_ref()
    }

    pub(super) fn addresses(&self) -> &BTreeSet<IpAddr> {
        &self.addresses
    }
}

/// A host as constraints write it; none for every host.
fn written(pattern: &Pattern) -> Option<String> {
    match pattern {
        Pattern::Exact(name) => Some(name.as_str().to_owned()),
        Pattern::OneLabel(suffix) | Pattern::Labels(suffix) => Some(format!(".{}", suffix.as_str())),
        Pattern::Ip(ip) => Some(ip.to_string()),
        Pattern::Every => None,
    }
}

/// Whether a permitted host would permit the other too.
fn covers(permitted: &str, other: &str) -> bool {
    let (parent, name) = (permitted.trim_start_matches('.'), other.trim_start_matches('.'));
    permitted == other
        || (name == parent && other.starts_with('.'))
        || name.strip_suffix(parent).is_some_and(|below| below.ends_with('.'))
}

/// Removes and returns the addresses that do not fit, the last ones first.
fn beyond(addresses: &mut BTreeSet<IpAddr>, limit: usize) -> Vec<String> {
    let mut size = addresses.iter().map(encoded).sum::<usize>();
    let mut taken = Vec::new();
    while size > limit
        && let Some(last) = addresses.pop_last()
    {
        size -= encoded(&last);
        taken.push(last.to_string());
    }
    taken
}

/// Octets of a `GeneralSubtree` with an `iPAddress`, address and mask.
fn encoded(address: &IpAddr) -> usize {
    4 + if address.is_ipv4() { 8 } else { 32 }
}

fn listed<'a>(names: impl ExactSizeIterator<Item = &'a str>) -> String {
    let more = names.len().saturating_sub(LISTED);
    let shown = names.take(LISTED).collect::<Vec<_>>().join(", ");
    if more == 0 { shown } else { format!("{shown} and {more} more") }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{denying, inspecting};
    use super::*;

    fn names(constraints: &CaConstraints) -> Vec<&str> {
        constraints.names().into_iter().flatten().map(String::as_str).collect()
    }

    #[test]
    fn each_pattern_becomes_its_constraint() {
        let documents =
            inspecting(&["api.example.com", "*.one.test", "**.two.test", "192.0.2.1", "2001:db8::1"]);
        let constraints = CaConstraints::of(&documents);
        assert_eq!(names(&constraints), [".one.test", ".two.test", "api.example.com"]);
        let addresses = constraints.addresses().iter().map(ToString::to_string).collect::<Vec<_>>();
        assert_eq!(addresses, ["192.0.2.1", "2001:db8::1"]);
        assert!(!constraints.is_unconstrained() && constraints.caveats().is_empty());
    }

    #[test]
    fn a_host_that_is_denied_by_name_is_vouched_for_too() {
        assert_eq!(names(&CaConstraints::of(&denying(&["evil.test", "*.other.test"]))), ["evil.test"]);
    }

    #[test]
    fn companions_of_a_provider_ride_along_and_none_that_the_policy_names() {
        let constraints = CaConstraints::of(&inspecting(&["api.anthropic.com", "platform.claude.com"]));
        let all = names(&constraints);
        assert!(all.contains(&"downloads.claude.ai") && all.contains(&"platform.claude.com"), "{all:?}");
        assert!(!all.contains(&"chatgpt.com") && constraints.caveats().is_empty(), "{all:?}");
        assert_eq!(names(&CaConstraints::of(&inspecting(&["api.example.com"]))), ["api.example.com"]);
    }

    #[test]
    fn companions_are_dropped_first_where_there_is_no_room_and_nobody_is_told_that_hosts_are_denied() {
        let hosts = (0..700).map(|n| format!("name{n:04}.test")).collect::<Vec<_>>();
        let wanted = |count: usize| {
            let hosts = hosts.iter().take(count).map(String::as_str);
            inspecting(&hosts.chain(["api.anthropic.com"]).collect::<Vec<_>>())
        };
        let kept = |count: usize| {
            let constraints = CaConstraints::of(&wanted(count));
            let names = names(&constraints);
            assert!(names.contains(&"name0000.test") && constraints.caveats().is_empty(), "{count}");
            names.len() - count - 1
        };
        let all = kept(1);
        assert!(all > 3);
        let room = (1..1_200).find(|count| {
            let many = (0..*count).map(|n| format!("name{n:04}.test")).collect::<Vec<_>>();
            let many = many.iter().map(String::as_str).chain(["api.anthropic.com"]).collect::<Vec<_>>();
            !CaConstraints::of(&inspecting(&many)).caveats().is_empty()
        });
        assert!(room.is_some_and(|room| room > 700), "{room:?}");
        assert_eq!(kept(700), all);
        let most = (0..room.unwrap_or_default() - 1).map(|n| format!("name{n:04}.test")).collect::<Vec<_>>();
        let most = most.iter().map(String::as_str).chain(["api.anthropic.com"]).collect::<Vec<_>>();
        let full = CaConstraints::of(&inspecting(&most));
        assert!(names(&full).len() - most.len() < all && full.left_out.is_empty());
    }

    #[test]
    fn the_order_of_policies_and_hosts_changes_nothing() {
        let mut documents = inspecting(&["b.test", "a.test", "*.c.test"]);
        documents.extend(inspecting(&["d.test", "b.test", "192.0.2.1"]));
        let constraints = CaConstraints::of(&documents);
        documents.reverse();
        assert_eq!(CaConstraints::of(&documents), constraints);
        assert_eq!(
            CaConstraints::of(&inspecting(&["192.0.2.1", "d.test", "*.c.test", "b.test", "a.test"])),
            constraints
        );
    }

    #[test]
    fn without_a_name_only_nobodys_is_permitted() {
        for documents in [Vec::new(), inspecting(&["192.0.2.1"])] {
            assert_eq!(names(&CaConstraints::of(&documents)), [NOBODYS]);
        }
    }

    #[test]
    fn who_inspects_every_host_has_no_bound_on_names_and_that_is_said() {
        let constraints = CaConstraints::of(&inspecting(&["**", "a.test"]));
        assert!(constraints.is_unconstrained());
        let [caveat] = &constraints.caveats()[..] else { panic!("one caveat") };
        assert!(caveat.contains("unconstrained") && caveat.contains("`**`"), "{caveat}");
    }

    #[test]
    fn names_past_the_bound_are_united_under_their_parents_and_that_is_said() {
        let hosts = (0..1_000).map(|n| format!("host{n}.region{}.example.com", n % 3)).collect::<Vec<_>>();
        let hosts = hosts.iter().map(String::as_str).collect::<Vec<_>>();
        let constraints = CaConstraints::of(&inspecting(&hosts));
        assert!(names(&constraints).contains(&".region0.example.com"));
        assert!(!constraints.is_unconstrained() && constraints.left_out.is_empty());
        let [caveat] = &constraints.caveats()[..] else { panic!("one caveat") };
        assert!(caveat.contains("everything below region0.example.com"), "{caveat}");
    }

    #[test]
    fn what_does_not_fit_is_left_out_and_said_and_never_makes_the_ca_unconstrained() {
        let names = (0..2_000).map(|n| format!("name{n:04}.test")).collect::<Vec<_>>();
        let ips = (0..600_u16).map(|n| format!("10.0.{}.{}", n / 256, n % 256)).collect::<Vec<_>>();
        let hosts = names.iter().chain(&ips).map(String::as_str).collect::<Vec<_>>();
        let constraints = CaConstraints::of(&inspecting(&hosts));
        assert!(!constraints.is_unconstrained());
        assert_eq!(constraints.addresses().len(), ADDRESSES / 12);
        let kept = constraints.names().unwrap().len() + constraints.addresses().len();
        assert_eq!(kept + constraints.left_out.len(), 2_600);
        let left_out =
            constraints.left_out_of(&inspecting(&["name0000.test", "name1999.test", "10.0.2.87"])[0]);
        assert_eq!(left_out, ["name1999.test", "10.0.2.87"]);
        let [caveat] = &constraints.caveats()[..] else { panic!("one caveat") };
        assert!(
            caveat.contains("are denied: ") && caveat.contains(" more; inspect them by wildcards"),
            "{caveat}"
        );
    }
}
