//! Makes patterns of paths: exact ones, `*` for segments that vary, and `**` for what is read in very many places.

use std::collections::{BTreeMap, BTreeSet};

use super::Evidence;

/// So many values like ids become `*`.
const IDS: usize = 4;

/// So many values of any kind become `*`.
const VALUES: usize = 8;

/// So many paths of several lengths below one segment, all read with GET, become `**`.
const READ: usize = 50;

/// A pattern, with the methods that were seen.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Learnt {
    pub(super) path: String,
    pub(super) methods: BTreeSet<String>,
    pub(super) evidence: Evidence,
    /// How many values the `*` with the most stands for.
    pub(super) values: usize,
}

/// The segments of paths as a tree.
#[derive(Debug, Default)]
struct Tree {
    children: BTreeMap<String, Self>,
    /// The requests that end here.
    ends: BTreeMap<String, Evidence>,
    /// How many segments were merged into this one.
    values: usize,
}

const ANY: &str = "*";

/// The patterns of requests, by path and method.
pub(super) fn patterns(requests: &BTreeMap<(String, String), Evidence>) -> Vec<Learnt> {
    let mut root = Tree::default();
    for ((path, method), evidence) in requests {
        let mut at = &mut root;
        for segment in path.split('/').skip(1) {
            at = at.children.entry(segment.to_owned()).or_default();
        }
        merge_end(&mut at.ends, method, *evidence);
    }
    root.generalise(false);
    let mut learnt = Vec::new();
    root.gather(&mut String::new(), 0, &mut learnt);
    learnt
}

impl Tree {
    fn generalise(&mut self, is_below_literal: bool) {
        if is_below_literal && self.is_read_widely() {
            let mut ends = BTreeMap::new();
            self.collect(&mut ends);
            let values = self.paths();
            self.children = BTreeMap::from([("**".to_owned(), Self { ends, values, ..Self::default() })]);
            self.ends = BTreeMap::new();
            return;
        }
        let ids: Vec<String> = self.children.keys().filter(|name| is_like_id(name)).cloned().collect();
        if ids.len() >= IDS {
            self.merge(ids);
        }
        // An empty segment is a slash at the end, and no value.
        let names: Vec<String> = self.children.keys().filter(|name| !name.is_empty()).cloned().collect();
        if names.len() >= VALUES {
            self.merge(names);
        }
        for (name, child) in &mut self.children {
            child.generalise(name != ANY && !name.is_empty());
        }
    }

    /// Merges children into one that stands for all of them.
    fn merge(&mut self, names: Vec<String>) {
        let mut merged = Self::default();
        for name in names {
            let Some(child) = self.children.remove(&name) else { continue };
            merged.values += child.values.max(1);
            merged.join(child);
        }
        self.children.insert(ANY.to_owned(), merged);
    }

    fn join(&mut self, other: Self) {
        for (method, evidence) in other.ends {
            merge_end(&mut self.ends, &method, evidence);
        }
        for (name, child) in other.children {
            let known = self.children.entry(name).or_default();
            known.values = known.values.max(child.values);
            known.join(child);
        }
    }

    fn is_read_widely(&self) -> bool {
        let mut ends = BTreeMap::new();
        self.collect(&mut ends);
        let mut depths = BTreeSet::new();
        self.depths(0, &mut depths);
        ends.keys().all(|method| method == "GET") && depths.len() > 1 && self.paths() >= READ
    }

    fn collect(&self, ends: &mut BTreeMap<String, Evidence>) {
        self.ends.iter().for_each(|(method, evidence)| merge_end(ends, method, *evidence));
        self.children.values().for_each(|child| child.collect(ends));
    }

    fn depths(&self, depth: usize, depths: &mut BTreeSet<usize>) {
        if !self.ends.is_empty() {
            depths.insert(depth);
        }
        self.children.values().for_each(|child| child.depths(depth + 1, depths));
    }

    fn paths(&self) -> usize {
        usize::from(!self.ends.is_empty()) + self.children.values().map(Self::paths).sum::<usize>()
    }

    fn gather(&self, path: &mut String, values: usize, learnt: &mut Vec<Learnt>) {
        let values = values.max(self.values);
        let mut ends = self.ends.iter();
        if let Some((method, first)) = ends.next() {
            let (mut methods, mut evidence) = (BTreeSet::from([method.clone()]), *first);
            for (method, other) in ends {
                methods.insert(method.clone());
                evidence.add(*other);
            }
            let path = if path.is_empty() { "/".to_owned() } else { path.clone() };
            learnt.push(Learnt { path, methods, evidence, values });
        }
        for (name, child) in &self.children {
            let length = path.len();
            path.push('/');
            path.push_str(name);
            child.gather(path, values, learnt);
            path.truncate(length);
        }
    }
}

fn merge_end(ends: &mut BTreeMap<String, Evidence>, method: &str, evidence: Evidence) {
    ends.entry(method.to_owned()).and_modify(|known| known.add(evidence)).or_insert(evidence);
}

/// Whether a segment looks like an id: a number, a UUID, 8 hex digits or more, or 12 letters and digits mixed.
fn is_like_id(segment: &str) -> bool {
    let has_digit = segment.bytes().any(|byte| byte.is_ascii_digit());
    let has_letter = segment.bytes().any(|byte| byte.is_ascii_alphabetic());
    let is_number = !segment.is_empty() && segment.bytes().all(|byte| byte.is_ascii_digit());
    let is_hex = segment.len() >= 8 && segment.bytes().all(|byte| byte.is_ascii_hexdigit());
    let is_mixed = segment.len() >= 12
        && has_digit
        && has_letter
        && segment.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte));
    is_number || (is_hex && has_digit) || is_mixed || uuid::Uuid::try_parse(segment).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::{Id, Timestamp};

    /// The patterns of `METHOD /path` texts, with methods.
    fn learnt<'a>(requests: impl IntoIterator<Item = &'a str>) -> Vec<String> {
        let evidence = Evidence { count: 1, first: Id::new(Timestamp::from_unix_millis(1), [1; 10]) };
        let split = |request: &str| {
            let (method, path) = request.split_once(' ').unwrap();
            ((path.to_owned(), method.to_owned()), evidence)
        };
        let shown = |learnt: Learnt| {
            let methods: Vec<String> = learnt.methods.into_iter().collect();
            format!("{} {} {}", methods.join(","), learnt.path, learnt.evidence.count)
        };
        patterns(&requests.into_iter().map(split).collect()).into_iter().map(shown).collect()
    }

    #[test]
    fn few_paths_stay_as_they_are() {
        assert_eq!(
            learnt(["GET /", "POST /a/b", "GET /a/b", "GET /a/1", "GET /a/2", "GET /a/3"]),
            ["GET / 1", "GET /a/1 1", "GET /a/2 1", "GET /a/3 1", "GET,POST /a/b 2"]
        );
    }

    #[test]
    fn four_ids_and_eight_values_become_a_star() {
        let ids =
            ["GET /r/1/x", "GET /r/22/x", "GET /r/deadbeef01/x", "POST /r/018f3c1e9a2b/y", "GET /r/new"];
        assert_eq!(learnt(ids), ["GET /r/*/x 3", "POST /r/*/y 1", "GET /r/new 1"]);
        let words = ["a", "b", "c", "d", "e", "f", "g", "h"].map(|word| format!("GET /p/{word}"));
        assert_eq!(learnt(words.iter().map(String::as_str)), ["GET /p/* 8"]);
        assert_eq!(learnt(words.iter().skip(1).map(String::as_str)).len(), 7);
    }

    #[test]
    fn very_many_paths_of_several_lengths_become_two_stars_where_they_are_only_read() {
        let mut paths: Vec<String> = (0..30).map(|n| format!("GET /simple/p{n}/index")).collect();
        paths.extend((0..30).map(|n| format!("GET /simple/p{n}/a/b/c{n}")));
        assert_eq!(learnt(paths.iter().map(String::as_str)), ["GET /simple/** 60"]);
        paths.push("PUT /simple/p1/index".to_owned());
        assert!(learnt(paths.iter().map(String::as_str)).iter().all(|pattern| !pattern.contains("**")));
        let at_root: Vec<String> = (0..60).map(|n| format!("GET /p{n}{}", "/x".repeat(n % 3))).collect();
        assert!(learnt(at_root.iter().map(String::as_str)).iter().all(|pattern| !pattern.contains("**")));
    }
}
