//! `limits` and `failurePolicy`: which of several policies decides, and what is counted against it.

use std::time::{Duration, SystemTime};

use postern::call::{Denial, DenialForm};
use postern::decision::Decision;
use postern::policy::Policy;
use postern::policy::allowance::Allowances;
use postern::policy::limits::Limit;

use super::{audit, policy, problems};

/// An EgressPolicy `agents/NAME` with this spec.
fn says(name: &str, spec: &str) -> String {
    format!(
        "apiVersion: postern.dev/v1alpha1\nkind: EgressPolicy\nmetadata: {{name: {name}, namespace: agents}}\n\
         spec:\n  {spec}\n"
    )
}

/// One policy `agents/p` with these limits.
fn limited(limits: &str) -> Policy {
    policy(&[says("p", &format!("limits: {{{limits}}}"))])
}

/// Noon of a day, and so many seconds.
fn noon(seconds: u64) -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(20_000 * 24 * 60 * 60 + 12 * 60 * 60 + seconds)
}

fn ruled(decision: &Decision) -> String {
    let rule = decision.rule.as_ref().map(ToString::to_string).unwrap_or_default();
    format!("{} {rule}", decision.verdict.as_str())
}

/// `passes`, `passes, WouldDeny …` or the denial with how it is answered.
fn said(admitted: Result<Option<Decision>, Denial>) -> String {
    match admitted {
        Ok(None) => "passes".to_owned(),
        Ok(Some(recorded)) => format!("passes, {}", ruled(&recorded)),
        Err(denial) => match denial.answer {
            DenialForm::Limited { retry_after_seconds } => {
                format!("{}, again in {retry_after_seconds} s", ruled(&denial.decision))
            }
            other @ (DenialForm::Forbidden
            | DenialForm::TooLarge
            | DenialForm::UnsupportedCoding
            | DenialForm::Recoverable { .. }) => format!("{}, {other:?}", ruled(&denial.decision)),
        },
    }
}

fn set(limit: Option<&Limit>) -> Option<(u64, &str)> {
    limit.map(|limit| (limit.most, limit.rule.as_str()))
}

#[test]
fn the_lowest_of_each_limit_decides() {
    let both = policy(&[
        says("p", "limits: {tokensPerDay: 500, requestsPerMinute: 10, requestBodyBytes: 4096}"),
        says("q", "limits: {tokensPerDay: 400, requestsPerMinute: 20}"),
    ]);
    let limits = both.limits();
    assert_eq!(set(limits.tokens_per_day.as_ref()), Some((400, "agents/q/limits")));
    assert_eq!(set(limits.requests_per_minute.as_ref()), Some((10, "agents/p/limits")));
    assert_eq!(set(limits.request_body_bytes.as_ref()), Some((4096, "agents/p/limits")));
    assert_eq!(set(limits.tool_input_bytes.as_ref()), None);
    assert_eq!(set(limits.consecutive_denials.as_ref()), None);
}

#[test]
fn an_audit_policy_lowers_no_limit() {
    let beside = policy(&[
        says("p", "limits: {toolInputBytes: 500}"),
        audit(&says("q", "limits: {toolInputBytes: 1, requestBodyBytes: 1}")),
    ]);
    assert_eq!(set(beside.limits().tool_input_bytes.as_ref()), Some((500, "agents/p/limits")));
    assert_eq!(set(beside.limits().request_body_bytes.as_ref()), None);
    let alone = policy(&[audit(&says("q", "limits: {toolInputBytes: 1}"))]);
    assert_eq!(set(alone.limits().tool_input_bytes.as_ref()), None);
}

#[test]
fn requests_count_for_a_minute() {
    let (policy, used) = (limited("requestsPerMinute: 3"), Allowances::default());
    let admit = |seconds| said(used.admit(&policy, None, noon(seconds)));
    assert_eq!([admit(0), admit(10), admit(59)], ["passes"; 3]);
    assert_eq!(admit(59), "Deny agents/p/limits, again in 1 s");
    assert_eq!(admit(60), "passes", "that of second 0 counts no more, and what was denied never did");
    assert_eq!(admit(61), "Deny agents/p/limits, again in 9 s");
    assert_eq!(admit(70), "passes");
    assert_eq!(admit(500), "passes");
}

#[test]
fn fewer_requests_than_the_limit_pass_forever() {
    let (policy, used) = (limited("requestsPerMinute: 3"), Allowances::default());
    for seconds in (0..10_000).step_by(20) {
        assert_eq!(said(used.admit(&policy, None, noon(seconds))), "passes", "{seconds}");
    }
}

#[test]
fn tokens_count_until_the_day_ends() {
    let (policy, used) = (limited("tokensPerDay: 1000"), Allowances::default());
    let admit = |seconds| said(used.admit(&policy, Some("anthropic"), noon(seconds)));
    assert_eq!(admit(0), "passes");
    used.spent(Some("anthropic"), 999, noon(1));
    assert_eq!(admit(2), "passes", "one is left");
    used.spent(Some("anthropic"), 5_000, noon(3));
    assert_eq!(admit(4), "Deny agents/p/limits, again in 43196 s");
    assert_eq!(admit(43_199), "Deny agents/p/limits, again in 1 s");
    assert_eq!(admit(43_200), "passes", "midnight, UTC");
}

#[test]
fn what_one_credential_uses_is_not_taken_from_another() {
    let (policy, used) = (limited("tokensPerDay: 10, requestsPerMinute: 1"), Allowances::default());
    let admit = |credential| said(used.admit(&policy, credential, noon(0)));
    used.spent(Some("anthropic"), 10, noon(0));
    assert_eq!(admit(Some("anthropic")), "Deny agents/p/limits, again in 43200 s");
    assert_eq!(admit(Some("openai")), "passes");
    assert_eq!(admit(Some("openai")), "Deny agents/p/limits, again in 60 s");
    assert_eq!(admit(None), "passes");
}

#[test]
fn so_many_denials_in_a_row_end_it_until_the_policy_changes() {
    let (policy, used) = (limited("consecutiveDenials: 3"), Allowances::default());
    let admit = |policy, seconds| said(used.admit(policy, None, noon(seconds)));
    (0..3).for_each(|_| used.denied(&policy, None));
    assert_eq!(admit(&policy, 0), "Deny agents/p/limits, Forbidden");
    assert_eq!(admit(&policy, 1_000_000), "Deny agents/p/limits, Forbidden", "time alone lifts nothing");
    assert_eq!(said(used.admit(&policy, Some("other"), noon(0))), "passes");
    let changed = limited("consecutiveDenials: 3, tokensPerDay: 5000000");
    assert_eq!(admit(&changed, 0), "passes");
    (0..2).for_each(|_| used.denied(&changed, None));
    assert_eq!(admit(&changed, 0), "passes", "they are counted anew");
}

#[test]
fn an_allowed_call_between_starts_anew() {
    let (policy, used) = (limited("consecutiveDenials: 3"), Allowances::default());
    for _ in 0..10 {
        (0..2).for_each(|_| used.denied(&policy, None));
        assert_eq!(said(used.admit(&policy, None, noon(0))), "passes");
        used.allowed(None);
    }
}

#[test]
fn without_limits_nothing_is_refused() {
    let (policy, used) = (limited(""), Allowances::default());
    used.spent(None, u64::MAX, noon(0));
    for _ in 0..10_000 {
        used.denied(&policy, None);
        assert_eq!(said(used.admit(&policy, None, noon(0))), "passes");
    }
}

#[test]
fn audit_policies_record_what_their_limits_would_refuse() {
    let beside = policy(&[
        says("p", "limits: {requestsPerMinute: 2}"),
        audit(&says("q", "limits: {requestsPerMinute: 1}")),
    ]);
    let used = Allowances::default();
    let admit = |policy| said(used.admit(policy, None, noon(0)));
    assert_eq!(admit(&beside), "passes");
    assert_eq!(admit(&beside), "passes, WouldDeny agents/q/limits");
    assert_eq!(admit(&beside), "Deny agents/p/limits, again in 60 s");
    let alone = policy(&[audit(&says("q", "limits: {requestsPerMinute: 1}"))]);
    assert_eq!(admit(&alone), "passes, WouldDeny agents/q/limits");
}

#[test]
fn a_reload_gives_nothing_back() {
    let used = Allowances::default();
    assert_eq!(said(used.admit(&limited("requestsPerMinute: 1"), None, noon(0))), "passes");
    let lowered = limited("requestsPerMinute: 1, tokensPerDay: 7");
    assert_eq!(said(used.admit(&lowered, None, noon(1))), "Deny agents/p/limits, again in 59 s");
}

#[test]
fn counters_that_are_restored_limit_as_those_that_were_saved() {
    let limits = limited("requestsPerMinute: 2, tokensPerDay: 100, consecutiveDenials: 2");
    let used = Allowances::default();
    for (credential, seconds) in [(Some("a"), 0), (Some("a"), 30), (None, 5)] {
        assert_eq!(said(used.admit(&limits, credential, noon(seconds))), "passes");
    }
    used.spent(Some("b"), 100, noon(0));
    (0..2).for_each(|_| used.denied(&limits, Some("c")));
    let (changes, saved) = used.changed_since(0);
    assert_eq!((changes, saved.len()), (used.changes(), 4));
    let restored = Allowances::restored(saved);
    for allowances in [&used, &restored] {
        let admit = |credential, seconds| said(allowances.admit(&limits, credential, noon(seconds)));
        assert_eq!(admit(Some("a"), 31), "Deny agents/p/limits, again in 29 s");
        assert_eq!(admit(Some("a"), 60), "passes");
        assert_eq!(admit(Some("b"), 31), "Deny agents/p/limits, again in 43169 s");
        assert_eq!(admit(Some("b"), 43_200), "passes");
        assert_eq!(admit(Some("c"), 31), "Deny agents/p/limits, Forbidden");
        assert_eq!(said(allowances.admit(&limited("consecutiveDenials: 2"), Some("c"), noon(31))), "passes");
        assert_eq!(admit(None, 31), "passes");
    }
}

#[test]
fn counters_are_saved_when_they_change_and_not_when_they_are_read() {
    let limits = limited("requestsPerMinute: 1");
    let used = Allowances::default();
    let changed = |change| {
        let (changes, saved) = used.changed_since(change);
        (changes, saved.into_iter().map(|saved| saved.credential).collect::<Vec<_>>())
    };
    used.admit(&limits, Some("a"), noon(0)).unwrap();
    let (first, names) = changed(0);
    assert_eq!(names, ["a".into()]);
    assert!(used.admit(&limits, Some("a"), noon(0)).is_err());
    used.used(&limits, Some("a"), noon(0));
    used.allowed(Some("a"));
    assert_eq!(changed(first), (first, vec![]));
    used.spent(Some("b"), 7, noon(0));
    let (second, names) = changed(first);
    assert!(second > first);
    assert_eq!(names, ["b".into()]);
}

#[test]
fn a_clock_that_is_set_back_holds_nobody_up() {
    let (policy, used) = (limited("requestsPerMinute: 1, tokensPerDay: 1"), Allowances::default());
    let admit = |seconds| said(used.admit(&policy, None, noon(seconds)));
    assert_eq!(admit(1_000_000), "passes");
    assert_eq!(admit(1_000_000 - 5), "Deny agents/p/limits, again in 60 s", "a little is no new start");
    assert_eq!(admit(0), "passes");
}

#[test]
fn credentials_without_end_are_counted_together() {
    let (policy, used) = (limited("requestsPerMinute: 1"), Allowances::default());
    let passed =
        (0..5_000).filter(|number| used.admit(&policy, Some(&format!("c{number}")), noon(0)).is_ok()).count();
    assert_eq!(passed, 1_025, "1,024 apart, and one for all others");
}

#[test]
fn a_limit_that_allows_nothing_is_a_mistake() {
    let found =
        problems(&says("p", "limits: {requestsPerMinute: 0, tokensPerDay: -1, toolInputBytes: 1MiB, x: 1}"));
    assert_eq!(
        found,
        [
            "policy.yaml:5:31: spec.limits.requestsPerMinute: 0 allows nothing; write 1 or more, or leave the field out for no limit",
            "policy.yaml:5:48: spec.limits.tokensPerDay: -1 allows nothing; write 1 or more, or leave the field out for no limit",
            "policy.yaml:5:68: spec.limits.toolInputBytes: expected a whole number, found the text \"1MiB\"",
            "policy.yaml:5:74: spec.limits.x: unknown field; expected requestBodyBytes, toolInputBytes, tokensPerDay, requestsPerMinute or consecutiveDenials",
        ]
    );
}

#[test]
fn open_needs_every_policy_that_says_anything() {
    let open = |documents: &[String]| policy(documents).failure_open();
    let (yes, no, silent) =
        (says("p", "failurePolicy: Open"), says("q", "failurePolicy: Closed"), says("r", "podSelector: {}"));
    assert!(!open(std::slice::from_ref(&silent)));
    assert!(open(std::slice::from_ref(&yes)));
    assert!(open(&[yes.clone(), silent.clone()]));
    assert!(!open(&[yes.clone(), no.clone()]));
    assert!(!Policy::none().failure_open());
    assert!(open(&[yes.clone(), audit(&no)]), "an Audit policy tightens nothing");
    assert!(!open(&[silent, audit(&yes)]), "and loosens nothing");
    assert!(open(&[audit(&no)]), "alone it refuses nothing");
}
