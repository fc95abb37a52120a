//! One HTTP answer as an agent saw it, and what every refusal must look like.

/// An answer, whichever version of HTTP carried it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    /// `HTTP/1.0`, `HTTP/1.1` or `HTTP/2`.
    pub(crate) version: &'static str,
    /// Names in lower case, in the order received.
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
    pub(crate) trailers: Vec<(String, String)>,
    /// Whether the body ended as its framing promised.
    pub(crate) complete: bool,
}

impl Answer {
    /// The first header of that name.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// The body as JSON; panics with the body where it is none.
    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error} in {self:?}"))
    }

    /// Asserts a plain host's refusal: the status, its lines of text, the three headers that agree with them,
    /// and the rule.
    #[track_caller]
    pub(crate) fn assert_refused(&self, status: u16, rule: &str) {
        assert_eq!(self.status, status, "{self:?}");
        assert_eq!(self.header("x-postern-decision"), Some("deny"), "{self:?}");
        assert_eq!(self.header("x-postern-rule"), Some(rule), "{self:?}");
        let event = self.header("x-postern-event").unwrap_or_default();
        assert_eq!(event.len(), 36, "the event's id is a UUID: {self:?}");
        assert!(self.header("content-type").is_some_and(|kind| kind.starts_with("text/plain")), "{self:?}");
        let text = self.text();
        let lines = without_door(&text);
        assert_eq!(lines.len(), 5, "{text}");
        assert!(lines[0].starts_with("[postern] "), "{text}");
        assert!(lines[1].starts_with("Destination: "), "{text}");
        assert_eq!(lines[2], format!("Rule: {rule}"), "{text}");
        assert!(lines[3].starts_with("Reason: "), "{text}");
        assert_eq!(lines[4], format!("Event: {event}"), "{text}");
    }

    /// Asserts the refusal of a provider's host: an error in JSON, or plain text, with the same lines in its message, and a
    /// status at which clients show it once.
    #[track_caller]
    pub(crate) fn assert_refused_by_provider(&self, rule: &str) {
        if self.header("content-type").is_some_and(|kind| kind.starts_with("text/plain")) {
            // The dialect of such a host is not known at this path.
            return self.assert_refused(403, rule);
        }
        assert!(matches!(self.status, 400 | 403 | 413 | 415), "{self:?}");
        assert_eq!(self.header("x-postern-decision"), Some("deny"), "{self:?}");
        assert_eq!(self.header("x-postern-rule"), Some(rule), "{self:?}");
        let event = self.header("x-postern-event").unwrap_or_default();
        assert_eq!(event.len(), 36, "{self:?}");
        assert_eq!(self.header("content-type"), Some("application/json"), "{self:?}");
        let body = self.json();
        let error = if body["error"].is_object() { &body["error"] } else { &body };
        let message = error["message"].as_str().unwrap_or_default();
        let lines = without_door(message);
        assert_eq!(lines.len(), 5, "{message}");
        assert!(lines[0].starts_with("[postern] "), "{message}");
        assert_eq!(lines[2], format!("Rule: {rule}"), "{message}");
        assert_eq!(lines[4], format!("Event: {event}"), "{message}");
    }
}

/// The lines of a refusal but the one that says where to ask.
fn without_door(text: &str) -> Vec<&str> {
    text.lines().filter(|line| !line.starts_with("Ask: http://postern.internal/why/")).collect()
}
