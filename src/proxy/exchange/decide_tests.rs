//! Tests of decisions by the head of a request: their order, their audits, and the requests that go on.

use http::Request;

use super::*;
use crate::name::host::Host;
use crate::proxy::testing::{compiled, policy};

const SPEC: &str = "\
destinations:
  - {name: api, hosts: [api.example.com], action: Inspect, upgrade: Allow, endpoints: [{methods: [GET], path: /open/**}]}
  - {name: plain, hosts: [plain.example.com], action: Inspect}
  - {name: bytes, hosts: [bytes.example.com], action: Tunnel}
  - {name: openai, hosts: [api.openai.com], action: Inspect}
credentials:
  - {name: key, hosts: [api.example.com], secretKeyRef: {name: keys, key: api}, placeholder: sk-placeholder-api}
";
const WEBSOCKET: (&str, &str) = ("upgrade", "websocket");
const PLACEHOLDER: (&str, &str) = ("x-api-key", "sk-placeholder-api");

/// A request over TLS.
struct Sent {
    method: &'static str,
    host: &'static str,
    /// The value of its `Host` field, where that is another.
    claimed: Option<&'static str>,
    path: &'static str,
    fields: Vec<(&'static str, &'static str)>,
    naming: fn(Origin) -> Naming,
    refuse_all: Option<Stop>,
}

/// A request that every step allows.
fn allowed() -> Sent {
    Sent {
        method: "GET",
        host: "api.example.com",
        claimed: None,
        path: "/open/door",
        fields: Vec::new(),
        naming: Naming::Fixed,
        refuse_all: None,
    }
}

impl Sent {
    fn decided(&self, policy: &Policy) -> HeadDecision {
        let mut request = Request::builder().method(self.method).uri(self.path);
        request = request.header("host", self.claimed.unwrap_or(self.host));
        request = self.fields.iter().fold(request, |request, (name, value)| request.header(*name, *value));
        let (parts, ()) = request.body(()).unwrap().into_parts();
        let origin = Origin { tls: true, host: Host::parse(self.host).unwrap(), port: 443 };
        let request = InboundRequest {
            parts: &parts,
            has_body: false,
            naming: &(self.naming)(origin),
            refuse_all: self.refuse_all.as_ref(),
        };
        let destination = |flow: &Flow<'_>| policy.destination(flow);
        decide(&request, &RulesInForce { policy, destination: &destination, header_count: 4 })
    }

    /// `VERDICT RULE`, with its status where it is refused.
    fn outcome(&self, policy: &Policy) -> String {
        match self.decided(policy).outcome {
            Ok(plan) => format!("{} {}", plan.decision.verdict.as_str(), plan.decision.rule_id()),
            Err(Stop::Denied(refusal)) => {
                format!("{} {}", refusal.status.as_u16(), refusal.decision.rule_id())
            }
            Err(Stop::Failed(failure)) => panic!("{failure}"),
        }
    }
}

/// Makes one step deny a request.
type Fault = fn(&mut Sent);

/// The steps in the order of the contract (design 5.10), each with what makes it deny.
const STEPS: [(&str, Fault); 7] = [
    ("403 postern/builtin/interception-off", |sent| {
        sent.refuse_all = Some(Decision::builtin("interception-off", "").into());
    }),
    ("431 postern/builtin/bound", |sent| sent.fields.extend([("a", "1"); 4])),
    ("421 postern/builtin/name-mismatch", |sent| sent.claimed = Some("other.example.com")),
    ("403 postern/builtin/default-deny", |sent| sent.host = "closed.example.com"),
    ("403 postern/builtin/endpoint", |sent| sent.path = "/closed"),
    ("403 postern/builtin/placeholder", |sent| sent.fields.push(("x-note", "sk-placeholder-api"))),
    ("403 postern/builtin/upgrade", |sent| sent.fields.push(("upgrade", "irc"))),
];

#[test]
fn of_two_steps_that_deny_the_earlier_one_speaks() {
    let policy = policy(&[SPEC]);
    assert_eq!(allowed().outcome(&policy), "Allow agents/p/api");
    for (number, (denial, fault)) in STEPS.iter().enumerate() {
        let mut sent = allowed();
        fault(&mut sent);
        assert_eq!(sent.outcome(&policy), *denial);
        for (later, also) in &STEPS[number + 1..] {
            let mut sent = allowed();
            fault(&mut sent);
            also(&mut sent);
            assert_eq!(sent.outcome(&policy), *denial, "with {later}");
        }
    }
}

#[test]
fn a_request_that_goes_on_has_its_target_and_its_credential() {
    let policy = policy(&[SPEC]);
    let with = |fields: &[(&'static str, &'static str)]| {
        let plan = Sent { fields: fields.to_vec(), ..allowed() }.decided(&policy).outcome.unwrap();
        let key = plan.target.pool_key();
        (key.origin.to_string(), format!("{:?}", key.user), plan.is_upgrade)
    };
    let origin = || "https://api.example.com".to_owned();
    let credential = || "Credential(\"agents/p/credentials/key\")".to_owned();
    assert_eq!(with(&[]), (origin(), "Agent".to_owned(), false));
    assert_eq!(with(&[PLACEHOLDER]), (origin(), credential(), false));
    assert_eq!(with(&[PLACEHOLDER, WEBSOCKET]), (origin(), credential(), true));
    assert_eq!(with(&[("upgrade", "h2c")]), (origin(), "Agent".to_owned(), false));
}

#[test]
fn an_upgrade_needs_a_rule_and_is_refused_with_426() {
    let sent = Sent { host: "plain.example.com", fields: vec![WEBSOCKET], ..allowed() };
    assert_eq!(sent.outcome(&policy(&[SPEC])), "426 postern/builtin/upgrade");
    let connect =
        Sent { method: "CONNECT", host: "plain.example.com", path: "plain.example.com:443", ..allowed() };
    assert_eq!(connect.outcome(&policy(&[SPEC])), "403 postern/builtin/upgrade");
}

#[test]
fn a_request_to_a_provider_that_is_denied_still_has_its_service() {
    let policy = policy(&[SPEC]);
    let responses = |sent: Sent| {
        let sent = Sent { host: "api.openai.com", path: "/v1/responses", ..sent };
        (sent.outcome(&policy), sent.decided(&policy).facts.service.map(|service| service.api))
    };
    let websocket = Sent { fields: vec![WEBSOCKET], ..allowed() };
    assert_eq!(responses(websocket), ("426 postern/builtin/provider-state".to_owned(), Some(Api::Responses)));
    let refused =
        Sent { method: "POST", refuse_all: Some(Decision::builtin("endpoint", "").into()), ..allowed() };
    assert_eq!(responses(refused), ("403 postern/builtin/endpoint".to_owned(), Some(Api::Responses)));
    let overridden = Sent { host: "api.openai.com", path: "/v1/models?_method=POST", ..allowed() };
    assert_eq!(overridden.outcome(&policy), "403 postern/builtin/endpoint");
    let plain = Sent { host: "plain.example.com", path: "/v1/models?_method=POST", ..allowed() };
    assert_eq!(plain.outcome(&policy), "Allow agents/p/plain", "no method or path is told apart there");
}

#[test]
fn a_closed_websocket_of_responses_is_refused_with_426_which_codex_falls_back_from() {
    let closed = "destinations: [{name: openai, hosts: [api.openai.com], action: Inspect, endpoints: [{methods: [GET], path: /v1/models}]}]";
    let sent = |fields| Sent { host: "api.openai.com", path: "/v1/responses", fields, ..allowed() };
    assert_eq!(sent(vec![WEBSOCKET]).outcome(&policy(&[closed])), "426 postern/builtin/endpoint");
    assert_eq!(sent(Vec::new()).outcome(&policy(&[closed])), "403 postern/builtin/endpoint");
}

#[test]
fn a_connection_that_is_no_longer_inspected_is_closed_and_a_reverse_listener_inspects_it_anyway() {
    let policy = policy(&[SPEC]);
    let sent = |naming| Sent { host: "bytes.example.com", naming, ..allowed() };
    assert_eq!(sent(Naming::Fixed).outcome(&policy), "421 postern/builtin/name-mismatch");
    assert_eq!(sent(Naming::Reverse).outcome(&policy), "Allow agents/p/bytes");
}

#[test]
fn a_denied_destination_is_told_from_a_denied_endpoint() {
    let policy = policy(&[SPEC]);
    let facts = |sent: Sent| sent.decided(&policy).facts;
    assert!(facts(Sent { host: "closed.example.com", ..allowed() }).is_destination_denied);
    assert!(!facts(Sent { path: "/closed", ..allowed() }).is_destination_denied);
    assert!(facts(Sent { claimed: Some("other.example.com"), ..allowed() }).origin.is_none());
}

#[test]
fn the_audit_of_a_destination_is_recorded_unless_its_connection_has_done_so() {
    let audit = "enforcement: Audit\ndestinations: [{name: no, hosts: [api.example.com], action: Deny}]";
    let policy = policy(&[SPEC, audit]);
    let audits = |naming| {
        let decided = Sent { naming, ..allowed() }.decided(&policy);
        assert!(decided.outcome.is_ok());
        decided.facts.destination_audits
    };
    let recorded = audits(Naming::Reverse);
    assert_eq!((recorded.len(), recorded[0].verdict), (1, Verdict::WouldDeny));
    assert_eq!(recorded[0].rule_id(), "agents/q/no");
    assert_eq!(audits(Naming::Fixed), []);
}

#[test]
fn the_audit_of_an_endpoint_is_recorded_where_the_request_goes_on() {
    let policy = compiled(
        "
apiVersion: postern.dev/v1alpha1
kind: EgressPolicy
metadata: {name: p, namespace: agents}
spec:
  destinations: [{name: api, hosts: [api.example.com], action: Inspect, endpoints: [{methods: [GET], path: /open/**}]}]
---
apiVersion: postern.dev/v1alpha1
kind: ClusterEgressPolicy
metadata: {name: less}
spec:
  enforcement: Audit
  destinations: [{name: api, hosts: [api.example.com], action: Inspect, endpoints: [{methods: [GET], path: /open/hall}]}]
",
    );
    let audit = |path| Sent { path, ..allowed() }.decided(&policy).facts.endpoint_audit;
    let recorded = audit("/open/door").unwrap();
    assert_eq!((recorded.verdict, recorded.rule_id()), (Verdict::WouldDeny, "postern/builtin/endpoint"));
    assert!(audit("/open/hall").is_none(), "both allow it");
    assert!(audit("/closed").is_none(), "it is denied anyway");
}

#[test]
fn where_only_audit_policies_select_the_pod_denials_are_recorded_and_floors_hold() {
    let required = SPEC.replace("sk-placeholder-api}", "sk-placeholder-api, require: true}");
    let policy = policy(&[&format!("enforcement: Audit\n{required}")]);
    let outcome = |sent: Sent| sent.outcome(&policy);
    assert_eq!(outcome(allowed()), "Allow agents/p/api");
    assert_eq!(outcome(Sent { path: "/closed", ..allowed() }), "WouldDeny postern/builtin/endpoint");
    let own_key = Sent { fields: vec![("x-api-key", "sk-of-the-agent")], ..allowed() };
    assert_eq!(outcome(own_key), "WouldDeny postern/builtin/credential");
    let websocket = Sent { host: "plain.example.com", fields: vec![WEBSOCKET], ..allowed() };
    assert_eq!(outcome(websocket), "WouldDeny postern/builtin/upgrade");
    for (denial, fault) in [STEPS[1], STEPS[2], STEPS[5]] {
        let mut sent = allowed();
        fault(&mut sent);
        assert_eq!(outcome(sent), denial, "a floor");
    }
}
