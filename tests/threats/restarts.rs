//! J10: what limits have counted outlives the gateway, however it ends, where it has a ledger.

use serde_json::Value;

use super::requests::{MESSAGES, Models, RESPONSES, models_with, policy, reply, said};
use crate::support::directory;
use crate::support::journal::poll;
use crate::support::upstream::{Reply, Seen};

const LIMITS: &str = "agents/test/limits";

/// A ledger in a directory of its own, and the spec of the gateways that write it, one after the other.
struct Kept {
    _place: tempfile::TempDir,
    file: String,
    spec: &'static str,
}

impl Kept {
    fn under(spec: &'static str) -> Self {
        let place = directory();
        let file = place.path().join("ledger.db").display().to_string();
        Self { _place: place, file, spec }
    }

    /// The next gateway, before a provider that answers by this script.
    fn next(&self, script: impl Fn(&Seen) -> Reply + Send + Sync + 'static) -> Models {
        models_with(self.spec, script, |setup| {
            let setup = setup.set("/ledger/path", self.file.as_str());
            ["first", "second"]
                .into_iter()
                .fold(setup, |setup, name| setup.credential(name, &format!("sk-{name}-0123456789")))
        })
    }

    /// Kills a gateway once its ledger has so many events of a kind.
    fn kill(&self, mut test: Models, kind: &str, events: usize) {
        poll("the events in the ledger", || {
            let query = ["ledger", "query", "--kind", kind, "--ledger", &self.file, "-o", "json"];
            let lines = test.gateway.run(&query);
            let count =
                lines.lines().filter(|line| serde_json::from_str::<Value>(line).unwrap()["http"].is_object());
            (count.count() >= events).then_some(())
        });
        test.gateway.signal("KILL");
        test.gateway.wait_for_exit();
    }
}

fn plain(seen: &Seen) -> Reply {
    reply(seen.path())
}

/// An answer that calls a tool which the policy denies.
fn calling(_: &Seen) -> Reply {
    let body = r#"{"id":"msg_1","type":"message","role":"assistant","model":"m","content":[{"type":"tool_use","id":"t1","name":"delete_file","input":{}}],"stop_reason":"tool_use","stop_sequence":null,"usage":{"input_tokens":7,"output_tokens":9}}"#;
    Reply::of(200, body).header("content-type", "application/json")
}

/// J10: the tokens of a day are not given back by an end of the gateway.
#[test]
fn tokens_of_the_day_count_for_the_gateway_after_a_kill() {
    let kept = Kept::under("limits: {tokensPerDay: 20}");
    for round in 1..=2 {
        let test = kept.next(plain);
        assert_eq!(test.post(MESSAGES, said(MESSAGES, "")).answer.status, 200);
        kept.kill(test, "Response", round);
    }
    let test = kept.next(plain);
    let refused = test.post(MESSAGES, said(MESSAGES, ""));
    assert!(refused.answer.status == 429 && refused.reached.is_empty(), "{:?}", refused.answer);
    assert!(refused.answer.text().contains("20 tokens a day"), "{:?}", refused.answer);
}

/// J10: nor the requests of a minute.
#[test]
fn requests_of_the_minute_count_for_the_gateway_after_a_kill() {
    let kept = Kept::under("limits: {requestsPerMinute: 1}");
    let test = kept.next(plain);
    assert_eq!(test.post(MESSAGES, said(MESSAGES, "")).answer.status, 200);
    kept.kill(test, "Request", 1);
    let refused = kept.next(plain).post(MESSAGES, said(MESSAGES, ""));
    assert!(refused.answer.text().contains("1 requests a minute"), "{:?}", refused.answer);
}

/// J10, F22: a stop after denials in a row stays until somebody writes another policy.
#[test]
fn a_hard_stop_ends_with_a_new_policy_and_not_with_a_kill_or_an_orderly_end() {
    let kept = Kept::under(
        "tools: [{name: no-delete, tools: [delete_file], action: Deny}]\nlimits: {consecutiveDenials: 1}",
    );
    let test = kept.next(calling);
    assert_eq!(test.post(MESSAGES, said(MESSAGES, "")).answer.status, 200);
    kept.kill(test, "ToolCall", 1);
    let mut test = kept.next(calling);
    test.post(MESSAGES, said(MESSAGES, "")).answer.assert_refused_by_provider(LIMITS);
    assert!(test.gateway.terminate().success());

    let test = kept.next(calling);
    test.post(MESSAGES, said(MESSAGES, "")).answer.assert_refused_by_provider(LIMITS);
    let other =
        "tools: [{name: none-deleted, tools: [delete_file], action: Deny}]\nlimits: {consecutiveDenials: 1}";
    test.gateway.reload_policy(&policy(other), "success");
    assert_eq!(test.post(MESSAGES, said(MESSAGES, "")).answer.status, 200);
}

/// J10: one credential's count is not another's.
#[test]
fn each_credential_has_its_own_count_after_a_kill() {
    let kept = Kept::under(
        "limits: {tokensPerDay: 16}\ncredentials:\n  - {name: first, hosts: [api.anthropic.com], secretKeyRef: {name: keys, key: a}}\n  \
         - {name: second, hosts: [api.openai.com], secretKeyRef: {name: keys, key: b}}",
    );
    let ask = |test: &Models, door, key| {
        test.post_with(door, &[("authorization", &format!("Bearer postern:{key}"))], said(door, "")).answer
    };
    let test = kept.next(plain);
    assert_eq!(ask(&test, MESSAGES, "first").status, 200);
    kept.kill(test, "Response", 1);
    let test = kept.next(plain);
    assert_eq!(ask(&test, MESSAGES, "first").status, 429);
    assert_eq!(ask(&test, RESPONSES, "second").status, 200);
}

#[test]
fn without_a_ledger_the_count_begins_anew() {
    for _ in 0..2 {
        let mut test = models_with("limits: {requestsPerMinute: 1}", plain, |setup| setup);
        assert_eq!(test.post(MESSAGES, said(MESSAGES, "")).answer.status, 200);
        test.gateway.signal("KILL");
        test.gateway.wait_for_exit();
    }
}
