//! Keeps permitted names within a bound: drops those that others cover, then replaces siblings by their parent.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

/// Names as constraints write them: `example.com` permits itself and everything below, `.example.com` only what is
/// below.
pub(super) type PermittedNames = BTreeSet<String>;

/// Names that fit.
#[derive(Debug, Default)]
pub(super) struct Fitted {
    pub(super) names: PermittedNames,
    /// The parents that replace one or several names.
    pub(super) parents: Vec<String>,
    /// The names that did not fit even so, and are not covered.
    pub(super) left_out: Vec<String>,
}

/// Makes names fit into this many octets of an encoded extension, deterministically: while they do not fit, all names
/// below a parent are replaced by it, the deepest first and among those the most numerous. A parent has at least two
/// labels and does not look like a registry's suffix (`co.uk`). Names that do not fit even so are left out, the last in
/// order first.
pub(super) fn fitted(names: &PermittedNames, limit: usize) -> Fitted {
    let mut fitted = Fitted { names: without_covered(names), ..Fitted::default() };
    let mut size = fitted.names.iter().map(|name| encoded(name)).sum::<usize>();
    let deepest = fitted.names.iter().map(|name| depth(name)).max().unwrap_or_default();
    for level in (3..=deepest).rev() {
        for (parent, members) in families(&fitted.names, level) {
            if size <= limit {
                return fitted;
            }
            for member in members {
                size -= encoded(&member);
                fitted.names.remove(&member);
            }
            size += encoded(&parent);
            fitted.names.insert(parent.clone());
            fitted.parents.retain(|collapsed| !covers(&parent, collapsed));
            fitted.parents.push(parent);
        }
    }
    while size > limit
        && let Some(last) = fitted.names.pop_last()
    {
        size -= encoded(&last);
        fitted.left_out.push(last);
    }
    fitted
}

/// Adds names while they fit into this many octets, and drops those that others cover.
pub(super) fn add<'n>(names: &mut PermittedNames, more: impl Iterator<Item = &'n str>, limit: usize) {
    let mut size = names.iter().map(|name| encoded(name)).sum::<usize>();
    for name in more {
        size += encoded(name);
        if size > limit {
            return;
        }
        names.insert(name.to_owned());
    }
    *names = without_covered(names);
}

/// The names of one depth by the parent that would cover them, the most numerous first.
fn families(names: &PermittedNames, level: usize) -> Vec<(String, Vec<String>)> {
    let mut families = BTreeMap::<String, Vec<String>>::new();
    for name in names.iter().filter(|name| depth(name) == level) {
        let Some((_, parent)) = bare(name).split_once('.') else { continue };
        if !is_registry(parent) {
            families.entry(format!(".{parent}")).or_default().push(name.clone());
        }
    }
    let mut families = families.into_iter().collect::<Vec<_>>();
    families.sort_by_key(|(_, members)| Reverse(members.len()));
    families
}

/// Drops what another name covers.
fn without_covered(names: &PermittedNames) -> PermittedNames {
    let is_covered = |name: &String| {
        let itself = name.starts_with('.').then(|| bare(name));
        let above = bare(name).match_indices('.').filter_map(|(at, _)| bare(name).get(at + 1..));
        itself.into_iter().any(|name| names.contains(name))
            || above.into_iter().any(|suffix| names.contains(suffix) || names.contains(&format!(".{suffix}")))
    };
    names.iter().filter(|name| !is_covered(name)).cloned().collect()
}

/// Whether `.parent` covers a name.
fn covers(parent: &str, name: &str) -> bool {
    parent != name && bare(name).ends_with(parent)
}

/// Whether it looks like the second level of a country, as `co.uk` and `com.au`; short company names that look the same
/// are not collapsed either.
fn is_registry(name: &str) -> bool {
    name.split_once('.')
        .is_some_and(|(second, top)| !top.contains('.') && top.len() == 2 && second.len() <= 3)
}

fn bare(name: &str) -> &str {
    name.strip_prefix('.').unwrap_or(name)
}

fn depth(name: &str) -> usize {
    bare(name).split('.').count()
}

/// Octets of a `GeneralSubtree` with a `dNSName`: two headers of two octets, or three if the content is longer than
/// 127.
fn encoded(name: &str) -> usize {
    let header = |content: usize| if content < 0x80 { 2 } else { 3 };
    let inner = header(name.len()) + name.len();
    header(inner) + inner
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(texts: &[&str]) -> PermittedNames {
        texts.iter().map(|text| (*text).to_owned()).collect()
    }

    fn size(names: &PermittedNames) -> usize {
        names.iter().map(|name| encoded(name)).sum()
    }

    #[test]
    fn a_name_that_another_covers_is_dropped() {
        let kept = without_covered(&names(&[
            "example.com",
            "api.example.com",
            ".example.com",
            ".a.b.test",
            "x.a.b.test",
            ".y.a.b.test",
            "a.b.test",
            "badexample.com",
            "a.only.test",
            ".only.test",
            "only.test.evil",
        ]));
        assert_eq!(
            kept,
            names(&["example.com", "a.b.test", "badexample.com", ".only.test", "only.test.evil"])
        );
    }

    #[test]
    fn names_that_fit_stay_as_they_are() {
        let all = names(&["a.one.test", "b.one.test", "c.d.two.test"]);
        let fitted = fitted(&all, size(&all));
        assert_eq!(fitted.names, all);
        assert!(fitted.parents.is_empty() && fitted.left_out.is_empty());
    }

    #[test]
    fn the_deepest_and_most_numerous_make_way_for_their_parent_first() {
        let all = names(&["1.x.one.test", "2.x.one.test", "3.y.one.test", "a.two.test", "b.two.test"]);
        let fitted = fitted(&all, size(&all) - 1);
        assert_eq!(fitted.names, names(&[".x.one.test", "3.y.one.test", "a.two.test", "b.two.test"]));
        assert_eq!(fitted.parents, [".x.one.test"]);
    }

    #[test]
    fn parents_collapse_in_turn_but_never_into_a_single_label_or_a_registrys_suffix() {
        let all = names(&["1.x.one.test", "2.x.one.test", "a.one.test", "b.co.uk", "c.co.uk", "plain.test"]);
        let fitted = fitted(&all, 0);
        assert_eq!(fitted.parents, [".one.test"]);
        assert!(fitted.names.is_empty());
        assert_eq!(fitted.left_out, ["plain.test", "c.co.uk", "b.co.uk", ".one.test"]);
    }

    #[test]
    fn what_is_kept_covers_what_was_asked_or_it_is_said() {
        let all = (0..2_000)
            .map(|n| format!("h{n}.p{}.g{}.example{}.test", n % 50, n % 20, n % 7))
            .collect::<PermittedNames>();
        for limit in [100, 1_000, 10_000, 16 << 10, 1 << 20] {
            let fitted = fitted(&all, limit);
            assert!(size(&fitted.names) <= limit);
            for name in &all {
                let covering = |base: &String| base == name || covers(base, name);
                let shown = fitted.names.iter().chain(&fitted.left_out).any(covering);
                assert!(shown, "{name} within {limit}");
            }
        }
    }

    #[test]
    fn a_long_name_takes_longer_headers() {
        assert_eq!(encoded("a.test"), 10);
        assert_eq!(encoded(&"a".repeat(126)), 3 + 2 + 126);
        assert_eq!(encoded(&"a".repeat(128)), 3 + 3 + 128);
    }
}
