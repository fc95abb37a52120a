//! Repeats: which events may be counted together, and what is then said of all of them.

use super::{Event, Kind, Verdict};
use crate::decision::RuleId;

/// What equal refusals have in common.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Equal {
    kind: Kind,
    rule: Option<RuleId>,
    destination: Option<(String, u16)>,
    http: Option<(String, &'static str)>,
}

/// What all refusals by one rule have in common.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ByRule {
    kind: Kind,
    rule: Option<RuleId>,
}

/// Stands for a path where paths differ.
const ANY_PATH: &str = "*";

impl Event {
    /// Whether it says that a connection or a request was refused: nothing has left, so a repeat may be counted. What
    /// was allowed is evidence by itself, and so is every tool call.
    pub fn is_refusal(&self) -> bool {
        matches!(self.kind, Kind::Connection | Kind::Request) && self.decision.verdict == Verdict::Deny
    }

    /// What makes another refusal equal to this one.
    pub fn equal(&self) -> Equal {
        let destination = self.destination.as_ref().map(|to| (to.host.clone(), to.port));
        let http = self.http.as_ref().map(|http| (http.method.to_string(), http.version));
        Equal { kind: self.kind, rule: self.decision.rule.clone(), destination, http }
    }

    /// What it has in common with all refusals by its rule.
    pub fn by_rule(&self) -> ByRule {
        ByRule { kind: self.kind, rule: self.decision.rule.clone() }
    }

    /// Counts another event of the same kind and verdict in this one, which goes on to say what is true of both. Its
    /// `id` and `time` stay those of the first, `last` becomes the time of the last.
    pub fn absorb(&mut self, other: &Self) {
        self.count += other.count;
        self.last = Some(other.last.unwrap_or(other.time).max(self.last.unwrap_or(self.time)));
        keep_equal(&mut self.session, &other.session);
        keep_equal(&mut self.trace, &other.trace);
        keep_equal(&mut self.provider, &other.provider);
        keep_equal(&mut self.payload, &other.payload);
        keep_equal(&mut self.connection, &other.connection);
        keep_equal(&mut self.exchange, &other.exchange);
        keep_equal(&mut self.destination, &other.destination);
        keep_equal(&mut self.decision.rule, &other.decision.rule);
        keep_equal(&mut self.decision.reason, &other.decision.reason);
        keep_equal(&mut self.decision.enforcement, &other.decision.enforcement);
        if let (Some(http), Some(another)) = (&mut self.http, &other.http)
            && http.method == another.method
            && http.version == another.version
        {
            if http.path != another.path {
                ANY_PATH.clone_into(&mut http.path);
            }
            keep_equal(&mut http.status, &another.status);
        } else {
            self.http = None;
        }
        if self.transforms != other.transforms {
            self.transforms.clear();
        }
    }
}

fn keep_equal<T: PartialEq>(ours: &mut Option<T>, other: &Option<T>) {
    if ours != other {
        *ours = None;
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::decision::Decision;
    use crate::event::{Action, Destination, Http, Id, Timestamp};

    fn refused(at: u64, host: &str, path: &str) -> Event {
        let id = Id::new(Timestamp::from_unix_millis(at), [7; 10]);
        let mut event = Event::new(id, Kind::Request, Decision::of(Verdict::Deny));
        event.decision.rule = Some(RuleId::builtin("default-deny"));
        event.session = Some("s".into());
        event.connection = Some(id);
        event.http = Some(Http::request(&http::Method::GET, path, http::Version::HTTP_11));
        event.destination = Some(Arc::new(Destination {
            host: host.to_owned(),
            port: 443,
            action: Action::Deny,
            intercepted: true,
            reason: None,
        }));
        event
    }

    #[test]
    fn only_refused_connections_and_requests_may_be_counted() {
        for (kind, verdict, counted) in [
            (Kind::Connection, Verdict::Deny, true),
            (Kind::Request, Verdict::Deny, true),
            (Kind::Request, Verdict::Allow, false),
            (Kind::Connection, Verdict::WouldDeny, false),
            (Kind::ToolCall, Verdict::Deny, false),
            (Kind::Response, Verdict::Deny, false),
            (Kind::Policy, Verdict::Deny, false),
        ] {
            let event = Event { kind, decision: Decision::of(verdict), ..refused(1, "a.example", "/") };
            assert_eq!(event.is_refusal(), counted, "{kind:?} {verdict:?}");
        }
    }

    #[test]
    fn equal_refusals_differ_in_their_path_at_most() {
        let one = refused(1, "a.example", "/1").equal();
        assert_eq!(one, refused(2, "a.example", "/2").equal());
        assert_ne!(one, refused(1, "b.example", "/1").equal());
        assert_ne!(one, Event { http: None, ..refused(1, "a.example", "/1") }.equal());
    }

    #[test]
    fn what_is_said_of_several_is_true_of_each() {
        let mut first = refused(1_000, "a.example", "/1");
        let id = first.id;
        first.absorb(&refused(3_000, "a.example", "/2"));
        first.absorb(&refused(2_000, "a.example", "/1"));
        assert_eq!((first.id, first.count), (id, 3));
        assert_eq!(first.last, Some(Timestamp::from_unix_millis(3_000)));
        assert_eq!(first.http.as_ref().unwrap().path, "*");
        assert_eq!(first.destination.as_ref().unwrap().host, "a.example");
        assert_eq!((first.session.as_deref(), first.connection), (Some("s"), None));

        first.absorb(&refused(4_000, "b.example", "/2"));
        assert_eq!((first.count, first.destination.is_none()), (4, true));
        assert_eq!(first.decision.rule, Some(RuleId::builtin("default-deny")));
    }
}
