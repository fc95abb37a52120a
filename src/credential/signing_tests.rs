//! Tables of requests that the agent signed for AWS with a placeholder, or with a key of its own.

use http::Request;
use time::macros::datetime;

use super::*;
use crate::decision::RuleId;
use crate::policy::credential::{SigV4, Source};

const HOST: &str = "bedrock-runtime.us-east-1.amazonaws.com";

fn credential(label: &str, signs: bool, require: bool) -> Arc<Credential> {
    let scope = || SigV4 { service: "bedrock".to_owned(), region: "us-east-1".to_owned() };
    Arc::new(Credential {
        id: RuleId::new(format!("agents/coding/credentials/{label}")),
        name: label.to_owned(),
        hosts: vec![DnsName::parse(HOST).unwrap()],
        ports: None,
        placeholder: format!("postern:{label}"),
        require,
        source: Source::Mounted,
        signing: signs.then(scope),
    })
}

fn parts(uri: &str, headers: &[(&str, &str)]) -> Parts {
    let mut request = Request::builder().method("POST").uri(uri);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    request.body(()).unwrap().into_parts().0
}

/// A signature by this access key id, for this region and service.
fn by(id: &str, scope: &str) -> String {
    let signed = "SignedHeaders=host;x-amz-date, Signature=00ff";
    format!("AWS4-HMAC-SHA256 Credential={id}/20250102/{scope}/aws4_request, {signed}")
}

/// What becomes of a request: `pass`, `sign`, `put`, or the built-in rule that denies it with its reason.
fn outcome(all: &[Arc<Credential>], uri: &str, headers: &[(&str, &str)]) -> String {
    let host = DnsName::parse(HOST).unwrap();
    let target = Target { host: Some(&host), port: 443, secure: true };
    match plan(&parts(uri, headers), all, &target) {
        Placement::Nothing => "pass".to_owned(),
        Placement::Attach(plan) => if plan.signs() { "sign" } else { "put" }.to_owned(),
        Placement::Deny(denial) => {
            let rule = denial.decision.rule_id().replace("postern/builtin/", "deny ");
            format!("{rule}: {}", denial.decision.why())
        }
    }
}

#[test]
fn a_request_that_is_signed_with_the_placeholder_is_signed_again() {
    let all = [credential("aws", true, true)];
    let own = by("postern:aws", "us-east-1/bedrock");
    let spaced = own.replace(", ", ",");
    for headers in [
        vec![("authorization", own.as_str())],
        vec![("authorization", spaced.as_str())],
        vec![("authorization", &own), ("x-amz-security-token", "postern:aws")],
        vec![("authorization", &own), ("x-amz-content-sha256", "UNSIGNED-PAYLOAD")],
        vec![("authorization", &own), ("x-amz-date", "20250102T030405Z")],
    ] {
        assert_eq!(outcome(&all, "/model/a/converse", &headers), "sign", "{headers:?}");
    }
    assert_eq!(outcome(&all, "/model/a/converse", &[]), "pass", "a request without a key");
}

/// Says what is denied, and that it begins with these words.
fn denies(uri: &str, headers: &[(&str, &str)], expected: &str) {
    let said = outcome(&[credential("aws", true, true)], uri, headers);
    assert!(said.starts_with(expected), "{uri} {headers:?}: {said}");
}

const ID: &str = "agents/coding/credentials/aws";

#[test]
fn a_signature_for_another_service_or_region_or_by_another_key_is_denied() {
    for (value, expected) in [
        (
            by("postern:aws", "eu-west-1/bedrock"),
            format!("deny credential: {ID} signs for the service bedrock"),
        ),
        (by("postern:aws", "us-east-1/s3"), format!("deny credential: {ID} signs for the service bedrock")),
        (by("AKIAFOREIGNKEY", "us-east-1/bedrock"), "deny credential: only the placeholder".to_owned()),
        ("Bearer bedrock-api-key".to_owned(), "deny credential: only the placeholder".to_owned()),
    ] {
        denies("/", &[("authorization", &value)], &expected);
    }
    let own = by("postern:aws", "us-east-1/bedrock");
    let foreign = [("authorization", own.as_str()), ("x-amz-security-token", "FwoGforeign")];
    denies("/", &foreign, "deny credential: only the placeholder");
}

#[test]
fn the_placeholder_of_a_signature_stands_nowhere_else() {
    let own = by("postern:aws", "us-east-1/bedrock");
    let twice = own.replace("SignedHeaders", "Credential=AKIA/1/2/3/aws4_request, SignedHeaders");
    for (name, value) in [
        ("authorization", "Bearer postern:aws"),
        ("x-api-key", "postern:aws"),
        ("authorization", &own.replace("HMAC-SHA256", "ECDSA-P256-SHA256")),
        ("authorization", &own.replace("/aws4_request", "/aws4_request/x")),
        ("authorization", &twice),
    ] {
        denies("/", &[(name, value)], "deny placeholder");
    }
    denies("/?X-Amz-Credential=postern:aws%2F20250102", &[], "deny placeholder");
}

#[test]
fn what_cannot_be_signed_again_is_denied() {
    let own = by("postern:aws", "us-east-1/bedrock");
    let own = ("authorization", own.as_str());
    let unsigned = format!("deny credential: {ID} signs requests, and this one has no signature, or several");
    denies("/", &[("x-amz-security-token", "postern:aws")], &unsigned);
    denies("/", &[own, own], &unsigned);
    denies("/?X-Amz-Signature=00", &[own], "deny credential: beside the signature");
    let presigned = "/?X-Amz-Credential=AKIAFOREIGNKEY&X-Amz-Signature=00";
    denies(presigned, &[], "deny credential: only the placeholder");
    let chunks = ("x-amz-content-sha256", "STREAMING-AWS4-HMAC-SHA256-PAYLOAD");
    denies("/", &[own, chunks], "deny credential: the body is signed in chunks");
    denies("/", &[own, ("content-encoding", "aws-chunked")], "deny credential: the body is signed in chunks");
}

#[test]
fn without_require_a_key_of_the_agents_own_passes_and_none_stands_beside_a_placeholder() {
    let all = [credential("aws", true, false), credential("key", false, false)];
    let foreign = by("AKIAFOREIGNKEY", "eu-west-1/s3");
    assert_eq!(outcome(&all, "/", &[("authorization", &foreign)]), "pass");
    assert_eq!(outcome(&all, "/", &[("authorization", "Bearer postern:key")]), "put");
    let own = by("postern:aws", "us-east-1/bedrock");
    assert_eq!(outcome(&all, "/", &[("authorization", &own)]), "sign");
    assert!(
        outcome(&all, "/", &[("authorization", &own), ("x-api-key", "sk-own")])
            .starts_with("deny credential")
    );
    let both = [("authorization", own.as_str()), ("x-api-key", "postern:key")];
    assert!(outcome(&all, "/", &both).starts_with("deny credential"));
    // A key that is put into requests signs none.
    let wrong = by("postern:key", "us-east-1/bedrock");
    assert!(outcome(&all, "/", &[("authorization", &wrong)]).starts_with("deny placeholder"));
}

#[test]
fn signing_comes_after_the_last_edit_and_needs_the_placeholder_still() {
    let all = [credential("aws", true, true)];
    let host = DnsName::parse(HOST).unwrap();
    let target = Target { host: Some(&host), port: 443, secure: true };
    let own = by("postern:aws", "us-east-1/bedrock");
    let mut head =
        parts("/model/a/converse", &[("authorization", &own), ("content-type", "application/json")]);
    let Placement::Attach(plan) = plan(&head, &all, &target) else { panic!("not attached") };
    let key =
        AccessKey::parse(b"aws_access_key_id=AKIDEXAMPLE\naws_secret_access_key=a-real-secret").unwrap();
    let body_sha256 = Subject::hash(b"{}");
    let subject = Subject { authority: HOST, body_sha256, now: datetime!(2025-01-02 03:04:05 UTC) };
    assert_eq!(plan.attach(&mut head, &Secret::parse(b"a-real-key").unwrap()), Err(Unattachable::Signs));
    plan.sign(&mut head, &key, &subject).unwrap();
    let said = head.headers[header::AUTHORIZATION].to_str().unwrap();
    let scope = "AKIDEXAMPLE/20250102/us-east-1/bedrock/aws4_request";
    assert!(said.starts_with(&format!(
        "AWS4-HMAC-SHA256 Credential={scope}, SignedHeaders=content-type;host;x-amz-"
    )));
    assert!(!format!("{head:?}").contains("postern:aws"));
    assert_eq!(plan.sign(&mut head, &key, &subject), Err(Unattachable::Gone));
}
