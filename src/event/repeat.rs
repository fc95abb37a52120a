//! Repeats: which events may be counted as one, and what the one event then holds.

use std::borrow::Cow;

use super::{Event, Kind, Verdict};
use crate::decision::RuleId;

/// The key of equal refusals.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct RefusalKey {
    kind: Kind,
    rule: Option<RuleId>,
    destination: Option<(String, u16)>,
    http: Option<(String, Cow<'static, str>)>,
}

/// The key of all refusals by one rule.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct RuleKey {
    kind: Kind,
    rule: Option<RuleId>,
}

/// Stands for a path where paths differ.
const ANY_PATH: &str = "*";

impl Event {
    /// Whether a connection or a request was refused: nothing has left, so a repeat may be counted. An event of allowed
    /// traffic is evidence by itself, and so is every tool call.
    pub fn is_refusal(&self) -> bool {
        matches!(self.kind, Kind::Connection | Kind::Request) && self.decision.verdict == Verdict::Deny
    }

    /// Returns the key that equal refusals share.
    pub fn refusal_key(&self) -> RefusalKey {
        let destination = self.destination.as_ref().map(|to| (to.host.clone(), to.port));
        let http = self.http.as_ref().map(|http| (http.method.to_string(), http.version.clone()));
        RefusalKey { kind: self.kind, rule: self.decision.rule.clone(), destination, http }
    }

    /// Returns the key that all refusals by its rule share.
    pub fn rule_key(&self) -> RuleKey {
        RuleKey { kind: self.kind, rule: self.decision.rule.clone() }
    }

    /// Counts another event of the same kind and verdict in this one, and keeps only the fields that are equal in both.
    /// `id` and `time` become those of the first, `last` that of the last, in whatever order they come: events are made
    /// on several threads.
    pub fn absorb(&mut self, other: &Self) {
        self.count += other.count;
        self.last = Some(other.last.unwrap_or(other.time).max(self.last.unwrap_or(self.time)));
        if other.id < self.id {
            (self.id, self.time) = (other.id, other.time);
        }
        keep_equal(&mut self.session, &other.session);
        keep_equal(&mut self.trace, &other.trace);
        keep_equal(&mut self.credential, &other.credential);
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
        if self.dlp != other.dlp {
            self.dlp.clear();
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
        event.http = Some(Http::request("GET", path, http::Version::HTTP_11));
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
        let key = refused(1, "a.example", "/1").refusal_key();
        assert_eq!(key, refused(2, "a.example", "/2").refusal_key());
        assert_ne!(key, refused(1, "b.example", "/1").refusal_key());
        assert_ne!(key, Event { http: None, ..refused(1, "a.example", "/1") }.refusal_key());
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

    #[test]
    fn the_first_is_the_one_that_was_made_first() {
        let (mut late, early) = (refused(2_000, "a.example", "/"), refused(1_000, "a.example", "/"));
        late.absorb(&early);
        assert_eq!((late.id, late.time), (early.id, early.time));
        assert_eq!(late.last, Some(Timestamp::from_unix_millis(2_000)));
    }
}
