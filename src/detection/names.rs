//! Takes secrets out of names: those of hosts, paths, models and tools, which events, metrics and logs tell.

use std::ops::Range;
use std::sync::Arc;

use super::CleanTexts;
use super::clean::Way;
use crate::dlp::{Budget, Confidence, Match, Search, Sight};
use crate::event::Event;

/// What stands in the place of a secret.
const SHOWN: &str = "#";
/// How often a name is searched again, each time without what was found before.
const MOST_TIMES: usize = 8;
/// How many bytes are decoded of one name.
const MOST_DECODED: usize = 1 << 20;

/// What names are searched with.
pub struct ShownNames {
    search: Search,
    clean: Arc<CleanTexts>,
}

impl ShownNames {
    pub fn new(search: Search, clean: Arc<CleanTexts>) -> Self {
        Self { search, clean }
    }

    /// Takes the secrets out of what somebody outside has chosen.
    pub fn mask(&self, event: &mut Event) {
        if let (Some(destination), Some(http)) = (&event.destination, &mut event.http)
            && let Some(path) = self.shown_path(&destination.host, &http.path)
        {
            http.path = path;
        }
        event.show_chosen(&mut |text| self.shown(text));
    }

    /// The same of a path: a webhook's URL is a secret as a whole.
    fn shown_path(&self, host: &str, path: &str) -> Option<String> {
        let shown = self.shown(&[host, path].concat())?;
        Some(shown.strip_prefix(host).map_or_else(|| format!("/{SHOWN}"), str::to_owned))
    }

    /// The text without the secrets in it; none where it has none.
    pub fn shown(&self, text: &str) -> Option<String> {
        if text.len() < self.search.shortest() {
            return None;
        }
        let key = self.clean.key(text.as_bytes(), (self.search.generation(), Way::Name));
        if self.clean.has(key) {
            return None;
        }
        let Some(first) = self.masked(text) else {
            self.clean.add(key);
            return None;
        };
        // A secret that touched another one may stand free now.
        let mut shown = first;
        for _ in 0..MOST_TIMES {
            match self.masked(&shown) {
                Some(again) => shown = again,
                None => return Some(shown),
            }
        }
        Some(SHOWN.to_owned())
    }

    /// The text without the secrets that are found in it; none where there are none.
    fn masked(&self, text: &str) -> Option<String> {
        let mut found = Vec::new();
        let mut budget = Budget::of(text.len(), MOST_DECODED);
        if self.search.scan(text.as_bytes(), Sight::Whole, &mut budget, &mut found).is_err() {
            // What cannot be searched is not told.
            return Some(SHOWN.to_owned());
        }
        found.retain(|found| found.confidence > Confidence::Low);
        (!found.is_empty()).then(|| without(text, &found))
    }
}

fn without(text: &str, found: &[Match<'_>]) -> String {
    let mut ranges: Vec<Range<usize>> = found.iter().map(|found| found.range.clone()).collect();
    ranges.sort_by_key(|range| range.start);
    let (mut shown, mut at) = (String::new(), 0);
    for range in ranges {
        if range.start >= at {
            shown += text.get(at..text.floor_char_boundary(range.start)).unwrap_or_default();
            shown += SHOWN;
        }
        at = at.max(text.ceil_char_boundary(range.end));
    }
    shown + text.get(at..).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::detection::testing::Gateway;
    use crate::dlp::Detectors;

    #[test]
    fn a_secret_in_a_name_is_not_shown_and_other_names_stay() {
        let names = ShownNames::new(Arc::clone(Detectors::shared()).into(), Arc::default());
        let secret = ["gh", "p_0123456789abcdefghijABCDEFGHIJ2zKx0l"].concat();
        let shown = |text: &str| names.shown(text);
        assert_eq!(shown(&format!("{secret}.evil.example")).unwrap(), "#.evil.example");
        assert_eq!(shown(&format!("/ä/{secret}/ä/{secret}/b")).unwrap(), "/ä/#/ä/#/b");
        let reversed: String = ["glp", "at-Ab3dEf6hIj9kLm2nOp5q"].concat().chars().rev().collect();
        assert_eq!(shown(&format!("={reversed}{secret}")).unwrap(), "=##");
        let hook = ["/serv", "ices/T0A1B2C3D/B0A1B2C3D/aB3dEf6hIj9kLm2nOp5qRs8t"].concat();
        assert_eq!(names.shown_path("hooks.slack.com", &hook).unwrap(), "/#");
        assert_eq!(names.shown_path("hooks.slack.com", &format!("/{secret}/a")).unwrap(), "/#/a");
        assert_eq!(names.shown_path("hooks.slack.com", "/services"), None);
        for text in ["api.anthropic.com", "mcp__github__create_issue", "claude-sonnet-4-5-20250929", ""] {
            assert_eq!(shown(text), None, "{text}");
            assert_eq!(shown(text), None, "{text}");
        }
    }

    /// What a secret is replaced by is of the pattern, so that one more is found each time.
    #[test]
    fn a_name_that_cannot_be_shown_without_secrets_is_not_shown() {
        let gateway = Gateway::under("{dataLoss: {patterns: [{name: p, regex: '[#=]secret'}]}}");
        let names = ShownNames::new(gateway.search, Arc::default());
        let shown = |times: usize| names.shown(&format!("a={}", "secret".repeat(times))).unwrap();
        assert_eq!(shown(MOST_TIMES), "a#");
        assert_eq!(shown(MOST_TIMES + 2), SHOWN);
    }
}
