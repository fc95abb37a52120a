//! Tests of decisions about the body of a request to a model: their order.

use super::*;
use crate::call::{Api, Vendor};
use crate::event::{Action, Destination};
use crate::ledger::fresh_id;
use crate::name::host::Host;
use crate::proxy::inbound::session::Naming;
use crate::proxy::testing::gateway;
use crate::proxy::upstream::Origin;

const RESPONSES: Service =
    Service { vendor: Vendor::OpenAi, api: Api::Responses, dialect: Some(Dialect::OpenAIResponses) };

/// The rule that refuses this body of a request to Responses; empty where none does.
fn refusal(spec: &str, body: &str) -> String {
    let gateway = gateway(spec);
    let origin = Origin { tls: true, host: Host::parse("api.openai.com").unwrap(), port: 443 };
    let destination = Destination {
        host: origin.host.to_string(),
        port: origin.port,
        action: Action::Inspect,
        intercepted: true,
        reason: None,
    };
    let snapshot = gateway.snapshot();
    let host = origin.host.clone();
    let session = Session::new(gateway, fresh_id(), Naming::Fixed(origin), Arc::new(destination));
    let session = Arc::new(session);
    let reader = RequestReader {
        session: &session,
        snapshot: &snapshot,
        service: RESPONSES,
        dialect: Dialect::OpenAIResponses,
        host: &host,
        is_vouched: false,
    };
    let (parts, ()) = http::Request::post("/v1/responses").body(()).unwrap().into_parts();
    let mut record = Record::begin(&session, &parts);
    let body = Bytes::from(body.to_owned());
    let drafted = reader.draft(&reader.model_request(&parts).asked(), (&body, None), &mut record);
    drafted.err().map(|denial| denial.decision.rule_id().to_owned()).unwrap_or_default()
}

#[test]
fn of_two_steps_that_deny_a_body_the_earlier_one_speaks() {
    const DENYING: &str = "hostedTools: {action: Deny}";
    let [stored, hosted] = [r#""previous_response_id":"r","#, r#""tools":[{"type":"web_search"}],"#];
    let body = |fields: &str, end: &str| format!(r#"{{"model":"m",{fields}"input":"a"{end}"#);
    let rule = |fields: String, end: &str| refusal(DENYING, &body(&fields, end));

    assert_eq!(rule(format!("{hosted}{stored}"), ""), "postern/builtin/unparseable");
    for both in [format!("{hosted}{stored}"), format!("{stored}{hosted}")] {
        assert_eq!(rule(both, "}"), "postern/builtin/provider-state");
    }
    assert_eq!(rule(hosted.to_owned(), "}"), "agents/p/hostedTools");
    assert_eq!(rule(String::new(), "}"), "");
}
