//! The filter of `ledger query` and `ledger tail`.

use std::time::SystemTime;

use crate::cli::{LedgerFilterArgs, Moment};
use crate::decision::RuleId;
use crate::event::{Event, Timestamp, pattern};
use crate::ledger::timestamp;

/// Takes events that have one of the values of each option that is given.
pub(super) struct EventFilter<'a> {
    args: &'a LedgerFilterArgs,
    since: Option<Timestamp>,
    until: Option<Timestamp>,
}

impl<'a> EventFilter<'a> {
    pub(super) fn new(args: &'a LedgerFilterArgs, now: SystemTime) -> Self {
        let at = |moment: &Moment| match moment {
            Moment::At(at) => timestamp((*at).into()),
            Moment::Ago(ago) => timestamp(now.checked_sub(*ago).unwrap_or(SystemTime::UNIX_EPOCH)),
        };
        Self { args, since: args.since.as_ref().map(at), until: args.until.as_ref().map(at) }
    }

    pub(super) fn takes(&self, event: &Event) -> bool {
        let Self { args, .. } = self;
        let host = event.destination.as_ref().map(|to| to.host.as_str());
        let tool = event.tool_call.as_ref().map(|call| call.name.as_str());
        let rule = event.decision.rule.as_ref().map(RuleId::as_str);
        let exchange = event.exchange.map(|id| id.to_string());
        let provider = event.provider.as_ref();
        let models =
            provider.map(|of| [of.model.as_deref(), of.response_model.as_deref()]).unwrap_or_default();
        self.is_in_time(event)
            && is_one(&args.kind, &[Some(event.kind.as_str())])
            && is_one(&args.verdict, &[Some(event.decision.verdict.as_str())])
            && is_rule(&args.rule, rule)
            && is_one(&args.host, &[host])
            && is_one(&args.tool, &[tool])
            && is_one(&args.model, &models)
            && is_one(&args.session, &[event.session.as_deref()])
            && is_one(&args.exchange, &[exchange.as_deref()])
    }

    /// An event that stands for several happened from the first to the last of them.
    fn is_in_time(&self, event: &Event) -> bool {
        let last = event.last.unwrap_or(event.time);
        self.since.is_none_or(|since| last >= since) && self.until.is_none_or(|until| event.time <= until)
    }
}

/// Whether one of the texts matches one of the patterns, or there is no pattern.
fn is_one(patterns: &[String], texts: &[Option<&str>]) -> bool {
    let is_any = |text: &str| patterns.iter().any(|pattern| pattern::matches(pattern, text));
    patterns.is_empty() || texts.iter().flatten().any(|text| is_any(text))
}

/// Whether a rule's id, or the last part of the id, matches one of the patterns.
fn is_rule(patterns: &[String], rule: Option<&str>) -> bool {
    let name = rule.and_then(|rule| rule.rsplit('/').next());
    is_one(patterns, &[rule, name])
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use serde_json::json;

    use super::*;

    fn event(fields: &serde_json::Value) -> Event {
        let mut event = json!({
            "apiVersion": "postern.dev/event/v1", "id": "01a2008d-747b-7101-8101-010101010101",
            "time": "2026-11-22T00:00:00.123Z", "sequence": 1, "count": 1, "kind": "Request", "direction": "Outbound",
            "decision": {"verdict": "Allow"},
        });
        event.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        Event::read(event.to_string().as_bytes()).unwrap()
    }

    #[test]
    fn every_option_that_is_given_has_to_hold_by_one_of_its_values() {
        let args = LedgerFilterArgs {
            verdict: vec!["deny".to_owned(), "WouldDeny".to_owned()],
            rule: vec!["no-rm".to_owned()],
            ..LedgerFilterArgs::default()
        };
        let filter = EventFilter::new(&args, SystemTime::UNIX_EPOCH);
        let decided = |verdict: &str, rule: &str| {
            filter.takes(&event(&json!({"decision": {"verdict": verdict, "rule": rule}})))
        };
        assert!(decided("Deny", "agents/coders/no-rm") && decided("WouldDeny", "-/all/no-rm"));
        assert!(!decided("Allow", "agents/coders/no-rm") && !decided("Deny", "agents/no-rm/other"));
        assert!(!filter.takes(&event(&json!({"decision": {"verdict": "Deny"}}))));
    }

    #[test]
    fn an_event_that_stands_for_several_is_there_for_as_long_as_they_were() {
        let event = event(&json!({"time": "2026-11-22T10:00:00.000Z", "last": "2026-11-22T10:05:00.000Z"}));
        let minutes = |minutes: u64| Duration::from_secs(60 * minutes);
        let first = SystemTime::UNIX_EPOCH + Duration::from_millis(event.time.unix_millis());
        let now = first + minutes(10);
        let takes = |since: u64, until: u64| {
            let ago = |time| Some(Moment::Ago(minutes(time)));
            let args =
                LedgerFilterArgs { since: ago(since), until: ago(until), ..LedgerFilterArgs::default() };
            EventFilter::new(&args, now).takes(&event)
        };
        assert!(takes(20, 0) && takes(6, 0) && takes(20, 7));
        assert!(!takes(4, 0) && !takes(20, 11));
    }
}
