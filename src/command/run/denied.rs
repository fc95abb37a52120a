//! What was denied in a run, by rule and by host or tool, each with the id of one event to look at.

use std::collections::HashMap;
use std::fmt::Write as _;

use serde::Serialize;

use crate::decision::Verdict;
use crate::event::{Event, Kind};
use crate::terminal;

/// How many rows are told apart: hosts and names of tools are others' choice.
const MOST_ROWS: usize = 1_000;

/// How many of them the text shows.
const SHOWN: usize = 20;

/// Everything that was denied, or would be.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct DenialTally {
    rows: HashMap<DenialKey, (u64, String)>,
    /// Denials that found no row.
    beyond: u64,
    /// A tool call was denied, in force.
    calls: bool,
    /// Anything was denied.
    any: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct DenialKey {
    verdict: Verdict,
    rule: String,
    about: DenialSubject,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum DenialSubject {
    Tool(String),
    Host(String),
}

/// One row, as programs read it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct DenialRow {
    verdict: Verdict,
    /// Empty where no rule decided.
    rule: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    host: Option<String>,
    count: u64,
    /// The id of the first of them.
    event: String,
}

impl DenialTally {
    /// Counts an event, where it says that something was denied. `counts_alone`: no other event says the same.
    pub(super) fn count(&mut self, event: &Event, counts_alone: bool) {
        let verdict = event.decision.verdict;
        let about = match (event.kind, &event.tool_call, &event.destination) {
            (Kind::ToolCall | Kind::Policy, Some(call), _) => DenialSubject::Tool(call.name.clone()),
            (Kind::Connection | Kind::Request, _, to) if counts_alone => host(to.as_deref()),
            (Kind::Response | Kind::Policy, _, to) => host(to.as_deref()),
            (Kind::Connection | Kind::Request | Kind::ToolCall, _, _)
            | (Kind::Transform | Kind::Lifecycle | Kind::Unknown, _, _) => return,
        };
        if !matches!(verdict, Verdict::Deny | Verdict::WouldDeny) {
            return;
        }
        self.any |= verdict == Verdict::Deny;
        self.calls |= verdict == Verdict::Deny && matches!(about, DenialSubject::Tool(_));
        let rule = event.decision.rule.as_ref().map(ToString::to_string).unwrap_or_default();
        let key = DenialKey { verdict, rule, about };
        if let Some((count, _)) = self.rows.get_mut(&key) {
            *count += event.count;
        } else if self.rows.len() < MOST_ROWS {
            self.rows.insert(key, (event.count, event.id.to_string()));
        } else {
            self.beyond += event.count;
        }
    }

    /// Whether a tool call was denied, and whether anything was.
    pub(super) fn calls_and_any(&self) -> (bool, bool) {
        (self.calls, self.any)
    }

    /// The most frequent first; what was denied before what would be.
    pub(super) fn rows(&self) -> Vec<DenialRow> {
        let mut rows: Vec<_> = self.rows.iter().collect();
        rows.sort_by_cached_key(|(key, (count, _))| {
            (key.verdict != Verdict::Deny, std::cmp::Reverse(*count), key.rule.clone(), key.about.clone())
        });
        let row = |(key, (count, event)): (&DenialKey, &(u64, String))| {
            let (tool, host) = match &key.about {
                DenialSubject::Tool(tool) => (Some(tool.clone()), None),
                DenialSubject::Host(host) => (None, Some(host.clone())),
            };
            let (rule, event) = (key.rule.clone(), event.clone());
            DenialRow { verdict: key.verdict, rule, tool, host, count: *count, event }
        };
        rows.into_iter().map(row).collect()
    }

    /// For people, each line after `postern: `; nothing where nothing was.
    pub(super) fn text(&self) -> String {
        let rows = self.rows();
        let mut text = String::new();
        for row in rows.iter().take(SHOWN) {
            let about = row.tool.as_deref().or(row.host.as_deref()).unwrap_or_default();
            let rule = if row.rule.is_empty() { "no rule" } else { &row.rule };
            let verdict = if row.verdict == Verdict::Deny { "denied" } else { "would be denied" };
            // Writing to a String cannot fail.
            let _ = writeln!(
                text,
                "postern:   {verdict} {} × {}  by {}  e.g. {}",
                row.count,
                terminal::plain(about),
                terminal::plain(rule),
                row.event
            );
        }
        let rest: u64 = rows.iter().skip(SHOWN).map(|row| row.count).sum::<u64>() + self.beyond;
        if rest > 0 {
            let _ = writeln!(text, "postern:   and {rest} more, by other rules or elsewhere");
        }
        if let Some(first) = rows.first() {
            let _ = writeln!(text, "postern: what happened: postern ledger show {}", first.event);
        }
        text
    }
}

fn host(to: Option<&crate::event::Destination>) -> DenialSubject {
    DenialSubject::Host(to.map_or_else(|| "-".to_owned(), |to| format!("{}:{}", to.host, to.port)))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::call::CallNote;
    use crate::decision::Decision;
    use crate::decision::RuleId;
    use crate::event::{Action, Destination};
    use crate::ledger::fresh_id;

    fn denied(kind: Kind, verdict: Verdict, rule: &str) -> Event {
        let mut event = Event::new(fresh_id(), kind, Decision::of(verdict));
        event.decision.rule = Some(RuleId::new(rule));
        event
    }

    fn call(name: &str, rule: &str) -> Event {
        let note = CallNote::allowed(fresh_id(), name);
        Event { tool_call: Some(note.into()), ..denied(Kind::ToolCall, Verdict::Deny, rule) }
    }

    fn request(host: &str, verdict: Verdict, count: u64) -> Event {
        let to = Destination {
            host: host.to_owned(),
            port: 443,
            action: Action::Deny,
            intercepted: true,
            reason: None,
        };
        let event = denied(Kind::Request, verdict, "postern/builtin/default-deny");
        Event { destination: Some(Arc::new(to)), count, ..event }
    }

    #[test]
    fn each_rule_is_counted_for_each_tool_and_host_with_one_event() {
        let mut tally = DenialTally::default();
        let first = call("Bash", "a/b/no-rm");
        for event in [
            &first,
            &call("Bash", "a/b/no-rm"),
            &call("\u{1b}[2J", "a/b/other"),
            &request("evil.example", Verdict::Deny, 5),
            &request("odd.example", Verdict::WouldDeny, 9),
        ] {
            tally.count(event, true);
        }
        tally.count(&request("evil.example", Verdict::Deny, 1), false);
        tally.count(&request("fine.example", Verdict::Allow, 1), true);
        let ids: Vec<String> = tally.rows().iter().map(|row| row.event.clone()).collect();
        assert_eq!(ids[1], first.id.to_string());
        let text = ids.iter().fold(tally.text(), |text, id| text.replace(id, "ID"));
        insta::assert_snapshot!(text, @r"
        postern:   denied 5 × evil.example:443  by postern/builtin/default-deny  e.g. ID
        postern:   denied 2 × Bash  by a/b/no-rm  e.g. ID
        postern:   denied 1 × \u{1b}[2J  by a/b/other  e.g. ID
        postern:   would be denied 9 × odd.example:443  by postern/builtin/default-deny  e.g. ID
        postern: what happened: postern ledger show ID
        ");
        assert_eq!(tally.calls_and_any(), (true, true));
    }

    #[test]
    fn what_would_be_denied_was_not_denied() {
        let mut tally = DenialTally::default();
        tally.count(&request("odd.example", Verdict::WouldDeny, 1), true);
        assert_eq!(tally.calls_and_any(), (false, false));
        tally.count(&request("odd.example", Verdict::Deny, 1), true);
        assert_eq!(tally.calls_and_any(), (false, true));
    }

    #[test]
    fn names_that_are_invented_do_not_fill_the_memory() {
        let mut tally = DenialTally::default();
        for number in 0..MOST_ROWS + 5 {
            tally.count(&call(&format!("t{number}"), "a/b/c"), true);
        }
        assert_eq!((tally.rows.len(), tally.beyond), (MOST_ROWS, 5));
        assert_eq!(tally.calls_and_any(), (true, true));
        assert!(tally.text().contains("and 985 more, by other rules or elsewhere"), "{}", tally.text());
    }
}
