//! Enforces limits and remembers blocked calls. Events and metrics are made elsewhere: no change of those lifts a limit.

use std::sync::Arc;
use std::time::SystemTime;

use super::record::Record;
use crate::call::{CallNote, Denial};
use crate::decision::Decision;
use crate::name::host::Host;
use crate::policy::Policy;
use crate::policy::allowance::Used;
use crate::policy::credential::Credential;
use crate::provider::answer::Guard;
use crate::proxy::Gateway;
use crate::proxy::budget::Reserved;
use crate::tool_output::request::KeptAnswer;

/// What an exchange counts against: the limits of the credential that it carries.
#[derive(Clone)]
pub(crate) struct Allowance {
    gateway: Arc<Gateway>,
    credential: Option<Arc<Credential>>,
}

impl Allowance {
    pub(crate) fn new(gateway: &Arc<Gateway>, credential: Option<&Arc<Credential>>) -> Self {
        Self { gateway: Arc::clone(gateway), credential: credential.map(Arc::clone) }
    }

    /// What was used so far.
    pub(crate) fn used(&self, policy: &Policy, now: SystemTime) -> Used {
        self.gateway.allowances.used(policy, self.name(), now)
    }

    /// The name under which limits count.
    pub(crate) fn name(&self) -> Option<&str> {
        self.credential.as_ref().map(|credential| credential.name.as_str())
    }

    /// Counts a request that goes on. Returns the limit of an Audit policy that it exceeds, to be recorded.
    ///
    /// # Errors
    /// The denial by a limit that is reached.
    pub(crate) fn admit(&self, policy: &Policy) -> Result<Option<Decision>, Denial> {
        self.gateway.allowances.admit(policy, self.name(), SystemTime::now())
    }

    /// Counts the calls of an answer: each denial, until one is allowed.
    fn count(&self, notes: &[CallNote]) {
        if notes.is_empty() {
            return;
        }
        let (allowances, name) = (&self.gateway.allowances, self.name());
        let snapshot = self.gateway.snapshot();
        // A call inside another one reaches the agent, or does not, with that one.
        for note in notes.iter().filter(|note| !note.inside) {
            if note.verdict.decision.denies() {
                allowances.denied(snapshot.policy(), name);
            } else {
                allowances.allowed(name);
            }
        }
    }

    fn spend(&self, tokens: u64) {
        if tokens > 0 {
            self.gateway.allowances.spent(self.name(), tokens, SystemTime::now());
        }
    }
}

/// The guard of one answer, or of the messages of a WebSocket, whose decisions and tokens count. They count before their
/// events are made, so that whatever keeps an event can keep its count. Dropping the guard counts what is left: an agent
/// that hangs up has used it too.
pub(crate) struct EnforcedGuard {
    pub(crate) guard: Guard,
    /// The room for the bytes that the guard holds.
    pub(crate) reserved: Reserved,
    allowance: Allowance,
    /// The tokens that were charged.
    charged: u64,
    /// What to remember of the answer, where its provider keeps it and results are shortened, and the provider's host.
    kept: Option<(KeptAnswer, Host)>,
    /// Whether the answer is remembered for it.
    is_kept: bool,
}

impl EnforcedGuard {
    pub(crate) fn new(guard: Guard, reserved: Reserved, allowance: Allowance) -> Self {
        Self { guard, reserved, allowance, charged: 0, kept: None, is_kept: false }
    }

    /// The same of an answer from which a request may go on by its id alone.
    pub(crate) fn keeping(mut self, kept: Option<(KeptAnswer, Host)>) -> Self {
        self.kept = kept;
        self
    }

    /// Enforces the decisions that the guard made since the last time, and returns them for the record.
    pub(crate) fn settle(&mut self) -> Vec<CallNote> {
        for (scope, call) in self.guard.take_blocked() {
            self.allowance.gateway.blocked.remember(&scope, &call);
        }
        let notes = self.guard.take_notes();
        self.allowance.count(&notes);
        self.keep(&notes);
        self.charge();
        notes
    }

    /// Remembers the calls of an answer for the request that brings their results.
    fn keep(&mut self, notes: &[CallNote]) {
        let (Some((kept, host)), Some(id)) = (&self.kept, &self.guard.facts().id) else { return };
        if self.is_kept && notes.is_empty() {
            return;
        }
        self.is_kept = true;
        let chains = &self.allowance.gateway.shortened.chains;
        for id in [Some(id), kept.conversation.as_ref()].into_iter().flatten() {
            chains.add((host, id), kept.opening, notes);
        }
    }

    /// Charges the tokens that were reported since the last time.
    fn charge(&mut self) {
        let reported = self.guard.tokens();
        self.allowance.spend(reported.saturating_sub(self.charged));
        self.charged = self.charged.max(reported);
    }

    /// Tells the record the decisions since the last time.
    pub(crate) fn tell(&mut self, record: &mut Record) {
        record.calls_decided(self.settle());
    }

    /// Tells the record also what the answer has said of itself so far.
    pub(crate) fn tell_facts(&mut self, record: &mut Record) {
        self.tell(record);
        record.answer_read(self.guard.facts(), self.guard.normalization());
    }

    /// Tells the record everything, once the answer has ended or was given up.
    pub(crate) fn tell_all(&mut self, record: &mut Record) {
        self.tell_facts(record);
        if let Some(warning) = self.guard.warning() {
            record.unread_passed(warning);
        }
        record.bytes_left_out(self.guard.left_out());
    }
}

impl Drop for EnforcedGuard {
    fn drop(&mut self) {
        self.settle();
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;
    use crate::call::{Api, Dialect, RequestFacts, Service, Vendor};
    use crate::provider;
    use crate::provider::adapter::ModelRequestHead;
    use crate::provider::answer::testing::{Names, settings};
    use crate::proxy::testing::gateway;

    /// The guard of an answer in which the tool `Denied` is denied.
    fn guard(gateway: &Arc<Gateway>, dialect: Dialect, api: Api, content_type: &str) -> EnforcedGuard {
        let service = Service { vendor: Vendor::Custom, api, dialect: Some(dialect) };
        let asked = ModelRequestHead { service, path: "/", query: None, is_subscription: false };
        let (adapter, facts) = (provider::adapter(dialect), RequestFacts::default());
        let framing = adapter.framing(&asked, &facts, content_type);
        let transcript = adapter.transcript(&asked, &facts).unwrap();
        let guard = Guard::new(transcript, framing, settings(Names::default()));
        EnforcedGuard::new(guard, gateway.budget.open(1 << 20), Allowance::new(gateway, None))
    }

    /// The guard of a whole answer that has come, and that calls this tool.
    fn answered(gateway: &Arc<Gateway>, tool: &str) -> EnforcedGuard {
        let mut guard = guard(gateway, Dialect::Anthropic, Api::Messages, "application/json");
        let call = format!(r#"{{"type":"tool_use","id":"t1","name":"{tool}","input":{{}}}}"#);
        let body = format!(
            r#"{{"id":"m","type":"message","role":"assistant","model":"m","content":[{call}],"stop_reason":"tool_use"}}"#
        );
        guard.guard.whole(Bytes::from(body)).unwrap();
        guard
    }

    /// The reason why another request is refused; empty where it is admitted.
    fn refusal(gateway: &Arc<Gateway>) -> String {
        let admitted = Allowance::new(gateway, None).admit(gateway.snapshot().policy());
        admitted.err().map(|denial| denial.decision.why().to_owned()).unwrap_or_default()
    }

    #[test]
    fn denied_calls_count_though_nobody_records_them() {
        let gateway = gateway("limits: {consecutiveDenials: 2}");
        drop(answered(&gateway, "Denied"));
        assert_eq!(refusal(&gateway), "");
        drop(answered(&gateway, "Denied"));
        assert!(refusal(&gateway).starts_with("2 tool calls in a row"), "{}", refusal(&gateway));
    }

    #[test]
    fn an_allowed_call_starts_the_count_anew() {
        let gateway = gateway("limits: {consecutiveDenials: 2}");
        for tool in ["Denied", "Other", "Denied"] {
            drop(answered(&gateway, tool));
        }
        assert_eq!(refusal(&gateway), "");
    }

    #[test]
    fn a_decision_counts_once_however_often_it_is_settled() {
        let gateway = gateway("limits: {consecutiveDenials: 2}");
        let mut guard = answered(&gateway, "Denied");
        assert_eq!((guard.settle().len(), guard.settle().len()), (1, 0));
        drop(guard);
        assert_eq!(refusal(&gateway), "");
    }

    #[test]
    fn an_agent_that_hangs_up_is_charged_for_the_tokens_of_a_stream_so_far() {
        let gateway = gateway("limits: {tokensPerDay: 16}");
        let mut guard = guard(&gateway, Dialect::Anthropic, Api::Messages, "text/event-stream");
        let usage = r#"{"input_tokens":10,"output_tokens":6}"#;
        let start = format!(r#"{{"type":"message_start","message":{{"content":[],"usage":{usage}}}}}"#);
        let event = format!("event: message_start\ndata: {start}\n\n");
        guard.guard.write(Bytes::from(event), &mut Vec::new()).unwrap();
        assert_eq!(refusal(&gateway), "");
        drop(guard);
        assert!(refusal(&gateway).contains("16 tokens a day"), "{}", refusal(&gateway));
    }

    #[test]
    fn a_blocked_call_of_a_stored_answer_is_remembered_though_nobody_records_it() {
        let gateway = gateway("{}");
        let mut guard = guard(&gateway, Dialect::OpenAIResponses, Api::Responses, "application/json");
        let item = r#"{"type":"function_call","id":"f","call_id":"c1","name":"Denied","arguments":"{}"}"#;
        let body = format!(r#"{{"id":"resp_1","status":"completed","output":[{item}]}}"#);
        guard.guard.whole(Bytes::from(body)).unwrap();
        drop(guard);
        assert_eq!(gateway.blocked.of("resp_1").len(), 1);
    }
}
