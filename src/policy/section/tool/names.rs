//! Finds the rules that a name matches without looking at the others: exact names by hash, wildcards by a text
//! that they contain.

use std::collections::HashMap;
use std::fmt;

use aho_corasick::AhoCorasick;

use crate::call::name::{Called, MCP, cut, plain};
use crate::fold::fold;

/// Rules by the patterns of their names.
#[derive(Debug, Default)]
pub(super) struct NameIndex {
    exact: HashMap<Box<str>, Vec<usize>>,
    /// Rules with the pattern `*`.
    every: Vec<usize>,
    /// Finds the longest text of each wildcard in a name; none where there are no wildcards.
    texts: Option<AhoCorasick>,
    /// The wildcards by the number of their longest text.
    wildcards: Vec<Vec<(Wildcard, usize)>>,
}

/// A pattern with at least one `*`: the texts before, between and after them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::policy) struct Wildcard {
    first: Box<str>,
    middle: Box<[Box<str>]>,
    last: Box<str>,
}

/// What stands for any run of characters.
const WILD: [char; 2] = ['*', '%'];

/// A name, or a wildcard over names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::policy) enum NamePattern {
    Exact(Box<str>),
    Wildcard(Wildcard),
}

/// A name of a rule, as it is written and as it is compared.
#[derive(Debug)]
pub(in crate::policy) struct ToolName {
    pub(in crate::policy) written: Box<str>,
    /// Folded, but in Allow rules.
    pattern: NamePattern,
    /// In the form of [`plain`], for every spelling that agents make of the name; none in Allow rules.
    spellings: Option<Vec<NamePattern>>,
}

/// Whether a name or wildcard, as users write it, covers a name that is compared exactly.
pub fn covers(written: &str, name: &str) -> bool {
    NamePattern::read(written, str::to_owned).covers(name)
}

impl ToolName {
    /// Reads a name of an Allow rule, which is compared exactly.
    pub(in crate::policy) fn exact(written: &str) -> Self {
        Self { written: written.into(), pattern: NamePattern::read(written, str::to_owned), spellings: None }
    }

    /// Reads a name of a rule that denies or records.
    pub(in crate::policy) fn spelled(written: &str) -> Self {
        let pattern = NamePattern::read(written, fold);
        let mut texts = Vec::new();
        let pieces: Vec<String> = written.split(WILD).map(|piece| plain(&fold(piece))).collect();
        add_spellings(&pieces.join("*"), &mut texts);
        if let NamePattern::Exact(name) = &pattern {
            add_spellings(&plain(cut(name)), &mut texts);
            // Clients that take ASCII alone write every other letter as a sign.
            let signs: String = name.chars().map(|c| if c.is_ascii() { c } else { '_' }).collect();
            add_spellings(&plain(&signs), &mut texts);
        }
        let spellings = texts.iter().map(|text| NamePattern::read(text, str::to_owned)).collect();
        Self { written: written.into(), pattern, spellings: Some(spellings) }
    }

    /// Whether a tool that is called so is meant.
    pub(in crate::policy) fn covers(&self, called: &Called) -> bool {
        let Some(spellings) = &self.spellings else { return self.pattern.covers(&called.exact) };
        let spelled = |spelling: &NamePattern| called.spellings.iter().any(|name| spelling.covers(name));
        called.folded.iter().any(|name| self.pattern.covers(name)) || spellings.iter().any(spelled)
    }

    /// Whether it is this name, and no wildcard.
    pub(super) fn is(&self, name: &str) -> bool {
        matches!(&self.pattern, NamePattern::Exact(exact) if **exact == *name)
    }

    /// What finds the rule in [`NameIndex`]: by folded names, or by exact ones in Allow rules.
    pub(super) fn pattern(&self) -> &NamePattern {
        &self.pattern
    }

    /// What finds it by the spellings of names.
    pub(super) fn spellings(&self) -> &[NamePattern] {
        self.spellings.as_deref().unwrap_or_default()
    }
}

/// Adds the forms of a pattern in which the spellings of names are compared with it. A wildcard without a letter or a
/// digit would be about tools of every kind, and has none.
fn add_spellings(plain: &str, texts: &mut Vec<String>) {
    let whole = plain.trim_start_matches('_');
    let rest = whole.strip_prefix(MCP).unwrap_or_default();
    let forms = if rest.contains('_') && rest.contains(char::is_alphanumeric) {
        vec![rest.to_owned()]
    } else {
        // Where one star stands for parts of server and tool, what joins the two is in it.
        let behind = rest.ends_with('*').then(|| format!("{rest}_*"));
        let before = rest.starts_with('*').then(|| format!("*_{rest}"));
        [Some(whole.to_owned()), behind, before].into_iter().flatten().collect()
    };
    for form in forms {
        let is_narrow = !form.contains('*') || form.contains(char::is_alphanumeric);
        if is_narrow && !form.is_empty() && !texts.contains(&form) {
            texts.push(form);
        }
    }
}

impl NamePattern {
    /// Reads a pattern: `*` and `%` match any run of characters. What stands between them is put in the form that
    /// names are compared in.
    pub(in crate::policy) fn read(written: &str, form: impl Fn(&str) -> String) -> Self {
        Self::of_texts(written.split(WILD).map(|text| form(text).into_boxed_str()))
    }

    /// Reads a pattern in which `*` alone matches any run of characters, and all else is compared as it is.
    pub(in crate::policy) fn glob(written: &str) -> Self {
        Self::of_texts(written.split('*').map(Box::from))
    }

    /// Makes a pattern of the texts before, between and after what matches any run.
    fn of_texts(mut texts: impl Iterator<Item = Box<str>>) -> Self {
        let first = texts.next().unwrap_or_default();
        let mut middle: Vec<Box<str>> = texts.collect();
        match middle.pop() {
            None => Self::Exact(first),
            Some(last) => {
                middle.retain(|text| !text.is_empty());
                Self::Wildcard(Wildcard { first, middle: middle.into(), last })
            }
        }
    }

    /// Whether the pattern covers this name, which is in the same form.
    pub(in crate::policy) fn covers(&self, name: &str) -> bool {
        match self {
            Self::Exact(exact) => **exact == *name,
            Self::Wildcard(wildcard) => wildcard.covers(name),
        }
    }
}

impl Wildcard {
    /// Linear in the name: the leftmost place of each text leaves the most for those that follow.
    fn covers(&self, name: &str) -> bool {
        let Some(rest) = name.strip_prefix(&*self.first) else { return false };
        let Some(mut rest) = rest.strip_suffix(&*self.last) else { return false };
        for text in &self.middle {
            let Some(at) = rest.find(&**text) else { return false };
            rest = rest.get(at + text.len()..).unwrap_or_default();
        }
        true
    }

    /// The longest of its texts; empty where it has stars alone.
    fn longest(&self) -> &str {
        let texts = [&self.first, &self.last].into_iter().chain(&self.middle);
        texts.max_by_key(|text| text.len()).map_or("", |text| text)
    }
}

impl fmt::Display for NamePattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exact(name) => f.write_str(name),
            Self::Wildcard(wildcard) => {
                write!(f, "{}*", wildcard.first)?;
                wildcard.middle.iter().try_for_each(|text| write!(f, "{text}*"))?;
                f.write_str(&wildcard.last)
            }
        }
    }
}

impl NameIndex {
    /// Gathers the patterns of all rules, each with its rule's number.
    pub(super) fn new(patterns: impl Iterator<Item = (NamePattern, usize)>) -> Self {
        let mut names = Self::default();
        let mut numbers: HashMap<Box<str>, usize> = HashMap::new();
        for (pattern, rule) in patterns {
            match pattern {
                NamePattern::Exact(name) => names.exact.entry(name).or_default().push(rule),
                NamePattern::Wildcard(wildcard) if wildcard.longest().is_empty() => names.every.push(rule),
                NamePattern::Wildcard(wildcard) => {
                    let next = numbers.len();
                    let number = *numbers.entry(wildcard.longest().into()).or_insert(next);
                    names.wildcards.resize_with(names.wildcards.len().max(number + 1), Vec::new);
                    names
                        .wildcards
                        .get_mut(number)
                        .into_iter()
                        .for_each(|all| all.push((wildcard.clone(), rule)));
                }
            }
        }
        let mut texts: Vec<(Box<str>, usize)> = numbers.into_iter().collect();
        texts.sort_by_key(|(_, number)| *number);
        if !texts.is_empty() {
            names.texts = AhoCorasick::new(texts.iter().map(|(text, _)| text.as_bytes())).ok();
        }
        names
    }

    /// Adds the rules that this name matches to `found`; some may be there several times.
    pub(super) fn find(&self, name: &str, rules: &mut Vec<usize>) {
        rules.extend(self.exact.get(name).into_iter().flatten());
        rules.extend(&self.every);
        let covered = |all: &[(Wildcard, usize)], rules: &mut Vec<usize>| {
            rules.extend(all.iter().filter(|(wildcard, _)| wildcard.covers(name)).map(|(_, rule)| rule));
        };
        match &self.texts {
            Some(texts) => {
                let hits = texts.find_overlapping_iter(name);
                let mut hits: Vec<usize> = hits.map(|hit| hit.pattern().as_usize()).collect();
                hits.sort_unstable();
                hits.dedup();
                hits.iter().filter_map(|hit| self.wildcards.get(*hit)).for_each(|all| covered(all, rules));
            }
            // A matcher that could not be built (its states are beyond count) costs time, never a rule.
            None => self.wildcards.iter().for_each(|all| covered(all, rules)),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn pattern(text: &str) -> NamePattern {
        NamePattern::read(text, str::to_owned)
    }

    fn find(patterns: &[&str], name: &str) -> Vec<usize> {
        let names = NameIndex::new(patterns.iter().enumerate().map(|(number, text)| (pattern(text), number)));
        let mut rules = Vec::new();
        names.find(name, &mut rules);
        rules.sort_unstable();
        rules
    }

    #[test]
    fn a_star_is_any_run_of_characters() {
        for (text, name, covered) in [
            ("mcp__*", "mcp__shell__run", true),
            ("mcp__*", "mcp__", true),
            ("mcp__*", "mcp_", false),
            ("*run", "mcp__shell__run", true),
            ("*run", "runs", false),
            ("a*b*c", "a-b-c", true),
            ("a*b*c", "abc", true),
            ("a*b*c", "acb", false),
            ("ab*ba", "aba", false),
            ("ab*ba", "abba", true),
            ("*a*a*", "a", false),
            ("a%z", "a__z", true),
            ("*", "", true),
            ("**", "x", true),
            ("a", "a", true),
            ("a", "A", false),
        ] {
            assert_eq!(pattern(text).covers(name), covered, "{text} {name}");
        }
    }

    #[test]
    fn a_pattern_prints_as_it_is_written() {
        for text in ["a", "*", "a*", "*a", "a*b*c", "*a*"] {
            assert_eq!(pattern(text).to_string(), text);
        }
    }

    #[test]
    fn each_rule_is_found_by_its_own_patterns() {
        let patterns = ["a", "a*", "*b", "*", "x*y", "ab", "*a*b*"];
        assert_eq!(find(&patterns, "ab"), [1, 2, 3, 5, 6]);
        assert_eq!(find(&patterns, "x-y"), [3, 4]);
        assert_eq!(find(&patterns, "q"), [3]);
    }

    #[test]
    fn stars_without_end_cost_no_more_than_the_name_is_long() {
        let stars = "a*".repeat(120) + "b";
        let name = "a".repeat(1_000_000);
        assert!(!pattern(&stars).covers(&name), "a backtracking matcher would not come back");
        assert_eq!(find(&[&stars, "*a"], &name), [1]);
    }

    proptest! {
        #[test]
        fn the_index_finds_what_a_look_at_every_pattern_does(
            patterns in prop::collection::vec("[ab*]{1,5}", 0..12),
            name in "[ab]{0,8}",
        ) {
            let texts: Vec<&str> = patterns.iter().map(String::as_str).collect();
            let slow = |text: &str| regex::Regex::new(&format!("^{}$", text.replace('*', ".*"))).unwrap();
            let expected: Vec<usize> =
                (0..texts.len()).filter(|number| slow(texts[*number]).is_match(&name)).collect();
            prop_assert_eq!(find(&texts, &name), expected);
        }
    }
}
