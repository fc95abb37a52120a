//! Requests that an agent signs for AWS: signed again with the real key where policy has one, or left alone, or denied.

use aws_lc_rs::digest::{SHA256, digest};
use aws_lc_rs::hmac;
use serde_json::json;

use super::model::Model;
use super::{requests, tool_results};
use crate::support::upstream::{Seen, Step};
use crate::support::{Answer, Setup};

const HOST: &str = "bedrock-runtime.us-east-1.amazonaws.com";
const PATH: &str = "/model/amazon.nova-pro/converse";
const SECRET: &str = "wJalrXUtnFEMIcanaryEXAMPLEKEY";
const CREDENTIAL: &str = "postern/builtin/credential";
const PLACEHOLDER: &str = "postern/builtin/placeholder";

/// A gateway that signs with its own key.
fn signing(more: &str) -> Model {
    signing_with(more, "", |setup| setup)
}

/// The same with these lines of policy.
fn signing_with(more: &str, lines: &str, change: impl FnOnce(Setup) -> Setup) -> Model {
    let credential = format!(
        "credentials: [{{name: aws, hosts: [{HOST}], secretKeyRef: {{name: keys, key: aws}}, sigV4: {{service: bedrock, region: us-east-1}}{more}}}]\n{lines}"
    );
    let key = json!({"accessKeyId": "AKIAREALKEYCANARY000", "secretAccessKey": SECRET}).to_string();
    answering(Model::with(&credential, |setup| change(setup).credential("aws", &key)))
}

fn answering(model: Model) -> Model {
    let answer =
        r#"{"output":{"message":{"role":"assistant","content":[{"text":"so"}]}},"stopReason":"end_turn"}"#;
    model.says(&[("content-type", "application/json")], vec![Step::Data(answer.into())]);
    model
}

/// A signature by this access key id, for this region and service.
fn by(id: &str, scope: &str) -> String {
    format!(
        "AWS4-HMAC-SHA256 Credential={id}/20260102/{scope}/aws4_request, SignedHeaders=host;x-amz-date, Signature=00ff"
    )
}

fn ask(model: &Model, target: &str, headers: &[(&str, &str)], body: &str) -> Answer {
    let headers = [headers, &[("content-type", "application/json")]].concat();
    model.gateway.agent().request("POST", &format!("https://{HOST}{target}"), &headers, body.as_bytes())
}

fn question(tools: &[&str]) -> String {
    let tools: Vec<serde_json::Value> =
        tools.iter().map(|tool| serde_json::from_str(tool).unwrap()).collect();
    let mut question = json!({"messages": [{"role": "user", "content": [{"text": "go"}]}]});
    if !tools.is_empty() {
        question["toolConfig"] = json!({"tools": tools});
    }
    question.to_string()
}

const OWN: &str = r#"{"toolSpec":{"name":"f","inputSchema":{"json":{"type":"object"}}}}"#;
const HOSTED: &str = r#"{"systemTool":{"name":"nova_grounding"}}"#;

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The signature that a request must have, made of what arrived.
fn signature(seen: &Seen) -> String {
    let stamp = seen.header("x-amz-date").unwrap();
    let authorization = seen.header("authorization").unwrap();
    let part = |name: &str| {
        let rest = authorization.split_once(&format!("{name}=")).unwrap().1;
        rest.split([',', ' ']).next().unwrap().to_owned()
    };
    let names = part("SignedHeaders");
    let fields: String =
        names.split(';').map(|name| format!("{name}:{}\n", seen.header(name).unwrap().trim())).collect();
    let body = hex(digest(&SHA256, &seen.body).as_ref());
    let canonical = format!("{}\n{}\n\n{fields}\n{names}\n{body}", seen.method, seen.path());
    let scope = format!("{}/us-east-1/bedrock/aws4_request", &stamp[..8]);
    let digest = hex(digest(&SHA256, canonical.as_bytes()).as_ref());
    let mut key = format!("AWS4{SECRET}").into_bytes();
    for part in scope.split('/') {
        key = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, &key), part.as_bytes()).as_ref().to_vec();
    }
    let text = format!("AWS4-HMAC-SHA256\n{stamp}\n{scope}\n{digest}");
    let signature = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, &key), text.as_bytes());
    format!(
        "AWS4-HMAC-SHA256 Credential=AKIAREALKEYCANARY000/{scope}, SignedHeaders={names}, Signature={}",
        hex(signature.as_ref())
    )
}

#[test]
fn a_result_that_is_cut_is_signed_as_it_leaves() {
    let model = signing_with("", tool_results::SHORTENS, tool_results::keeping);
    let own = by("postern:aws", "us-east-1/bedrock");
    let log = tool_results::log();
    let steps = [tool_results::bash(&log)];
    let sent = tool_results::conversation(requests::CONVERSE, "go", &steps);
    let answer = ask(&model, PATH, &[("authorization", &own), ("x-amz-date", "20260102T030405Z")], &sent);
    assert_eq!(answer.status, 200, "{answer:?}");
    let seen = model.upstream.requests().pop().unwrap();
    assert!(String::from_utf8_lossy(&seen.body).contains("285 of 300 lines"));
    assert_eq!(seen.header("authorization").unwrap(), signature(&seen));
}

/// G7: what is signed with the placeholder is signed again, over the body as it leaves, and nobody hears the key.
#[test]
fn a_request_is_signed_again_over_what_leaves() {
    let model = signing(", require: true");
    let own = by("postern:aws", "us-east-1/bedrock");
    for tools in [&[OWN][..], &[OWN, HOSTED]] {
        let sent = question(tools);
        let answer = ask(&model, PATH, &[("authorization", &own), ("x-amz-date", "20260102T030405Z")], &sent);
        assert_eq!(answer.status, 200, "{answer:?}");
        let seen = model.upstream.requests().pop().unwrap();
        let arrived = String::from_utf8_lossy(&seen.body).into_owned();
        assert_eq!(arrived == sent, tools.len() == 1, "what the provider would run is taken out: {arrived}");
        assert_eq!(
            seen.header("x-amz-content-sha256"),
            Some(hex(digest(&SHA256, &seen.body).as_ref()).as_str())
        );
        assert_eq!(seen.header("authorization").unwrap(), signature(&seen));
    }
    let said: String = model.gateway.events().iter().map(ToString::to_string).collect();
    let said = said + &model.gateway.log() + &model.gateway.admin("/metrics").text();
    assert!(!said.to_lowercase().contains("canary"), "{said}");
}

/// G7: a signature that cannot be made anew, or is for something else, is denied and reaches nobody.
#[test]
fn a_signature_that_cannot_be_made_anew_is_denied() {
    let model = signing(", require: true");
    let own = by("postern:aws", "us-east-1/bedrock");
    let presigned =
        format!("{PATH}?X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=AKIAATTACKER&X-Amz-Signature=00");
    for (target, headers) in [
        (PATH, vec![("authorization", by("postern:aws", "us-east-1/s3"))]),
        (PATH, vec![("authorization", by("postern:aws", "eu-west-1/bedrock"))]),
        (PATH, vec![("authorization", by("AKIAATTACKER", "us-east-1/bedrock"))]),
        (PATH, vec![("authorization", own.clone()), ("x-amz-security-token", "FwoGattacker".to_owned())]),
        (
            PATH,
            vec![
                ("authorization", own.clone()),
                ("x-amz-content-sha256", "STREAMING-AWS4-HMAC-SHA256-PAYLOAD".to_owned()),
            ],
        ),
        (PATH, vec![("x-api-key", "postern:aws".to_owned())]),
        (presigned.as_str(), vec![("authorization", own.clone())]),
        (presigned.as_str(), vec![]),
    ] {
        let headers: Vec<(&str, &str)> =
            headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
        let answer = ask(&model, target, &headers, &question(&[]));
        let rule =
            if headers.iter().any(|(name, _)| *name == "x-api-key") { PLACEHOLDER } else { CREDENTIAL };
        assert_eq!(answer.header("x-postern-rule"), Some(rule), "{target} {headers:?}: {answer:?}");
    }
    assert!(model.upstream.requests().is_empty());

    let unsigned = [("authorization", own.as_str()), ("x-amz-content-sha256", "UNSIGNED-PAYLOAD")];
    assert_eq!(ask(&model, PATH, &unsigned, &question(&[])).status, 200);
    let seen = model.upstream.requests().pop().unwrap();
    assert_ne!(seen.header("x-amz-content-sha256"), Some("UNSIGNED-PAYLOAD"), "the twin: the body is signed");
    assert_eq!(seen.header("authorization").unwrap(), signature(&seen));
}

/// G7: what the agent signed with a key of its own goes on only as it was signed.
#[test]
fn what_the_agent_signed_itself_goes_on_unchanged_or_not_at_all() {
    let model = answering(Model::under(""));
    let own = by("AKIAAGENT", "us-east-1/bedrock");

    let answer = ask(&model, PATH, &[("authorization", &own)], &question(&[OWN, HOSTED]));
    answer.assert_refused_by_provider(CREDENTIAL);
    assert!(model.upstream.requests().is_empty());

    let sent = question(&[OWN]);
    assert_eq!(ask(&model, PATH, &[("authorization", &own)], &sent).status, 200);
    let seen = model.upstream.requests().pop().unwrap();
    assert_eq!((seen.header("authorization"), &seen.body[..]), (Some(own.as_str()), sent.as_bytes()));
}
