//! Signatures that AWS publishes (its Signature Version 4 test suite), that its SDK for Python makes, and that
//! another SDK's tests have.

use http::Request;
use time::macros::datetime;

use super::*;

const SECRET: &str = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY";

fn key(token: &str) -> AccessKey {
    let text =
        serde_json::json!({"accessKeyId": "AKIDEXAMPLE", "secretAccessKey": SECRET, "sessionToken": token});
    AccessKey::parse(text.to_string().as_bytes()).unwrap()
}

fn scope(service: &str) -> SigV4 {
    SigV4 { service: service.to_owned(), region: "us-east-1".to_owned() }
}

fn parts(method: &str, uri: &str, headers: &[(&str, &str)]) -> Parts {
    let mut request = Request::builder().method(method).uri(uri);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    request.body(()).unwrap().into_parts().0
}

/// What the suite signs: its requests do not carry the hash of their body.
fn suite(method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> String {
    let mut parts = parts(method, path, headers);
    parts.headers.insert("x-amz-date", HeaderValue::from_static("20150830T123600Z"));
    let subject = Subject {
        authority: "example.amazonaws.com",
        body_sha256: Subject::hash(body.as_bytes()),
        now: datetime!(2015-08-30 12:36 UTC),
    };
    let value = authorization(&parts, &key(""), &scope("service"), &subject, "20150830T123600Z");
    value.unwrap().to_str().unwrap().to_owned()
}

#[test]
fn requests_of_awss_test_suite_are_signed_as_it_says() {
    let form = [("content-type", "application/x-www-form-urlencoded")];
    let token =
        [("x-amz-security-token", "6e86291e8372ff2a2260956d9b8aae1d763fbf315fa00fa31553b73ebf194267")];
    let vanilla = "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31";
    let none: &[(&str, &str)] = &[];
    for (method, path, headers, body, signature) in [
        ("GET", "/", none, "", vanilla),
        ("GET", "/./", none, "", vanilla),
        ("GET", "/example/..", none, "", vanilla),
        ("GET", "//", none, "", vanilla),
        ("POST", "/", none, "", "5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b"),
        (
            "GET",
            "/?Param2=value2&Param1=value1",
            none,
            "",
            "b97d918cfa904a5beff61c982a1b6f458b799221646efd99d3219ec94cdf2500",
        ),
        (
            "GET",
            "/?Param1=value1",
            none,
            "",
            "a67d582fa61cc504c4bae71f336f98b97f1ea3c7a6bfe1b6e45aec72011b9aeb",
        ),
        (
            "POST",
            "/",
            &form,
            "Param1=value1",
            "ff11897932ad3f4e8b18135d722051e5ac45fc38421b1da7b9d196a0fe09473a",
        ),
        ("GET", "/", &token, "", "07ec1639c89043aa0e3e2de82b96708f198cceab042d4a97044c66dd9f74e7f8"),
    ] {
        let said = suite(method, path, headers, body);
        assert!(said.ends_with(&format!("Signature={signature}")), "{method} {path}: {said}");
        assert!(said.starts_with(
            "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/service/aws4_request, "
        ));
    }
}

/// A request that is signed as it goes to AWS.
fn signed(mut parts: Parts, service: &str, token: &str, body: &str) -> Parts {
    let authority = parts.uri.authority().unwrap().to_string();
    let body_sha256 = Subject::hash(body.as_bytes());
    let subject = Subject { authority: &authority, body_sha256, now: datetime!(2025-01-02 03:04:05 UTC) };
    sign(&mut parts, &key(token), &scope(service), &subject).unwrap();
    parts
}

fn signature(parts: &Parts) -> &str {
    parts.headers[header::AUTHORIZATION].to_str().unwrap().rsplit_once("Signature=").unwrap().1
}

#[test]
fn escaped_labels_and_parameters_are_signed_as_the_sdk_for_python_does() {
    let json = [("content-type", "application/json"), ("user-agent", "Boto3/1.44.5"), ("accept", "*/*")];
    let runtime = "https://bedrock-runtime.us-east-1.amazonaws.com/model";
    let stream = format!("{runtime}/us.anthropic.claude-sonnet-4-20250514-v1%3A0/converse-stream");
    let parts_of = parts("POST", &stream, &json);
    assert_eq!(
        signature(&signed(parts_of, "bedrock", "", r#"{"messages":[]}"#)),
        "933ab22683a36305f7aa69efc0522b8495eea1d224a97b59ec5171057ec0169b"
    );
    let arn = "arn%3Aaws%3Abedrock%3Aus-east-1%3A123456789012%3Aapplication-inference-profile%2Fa1b2c3";
    let parts_of = parts("POST", &format!("{runtime}/{arn}/invoke"), &json);
    assert_eq!(
        signature(&signed(parts_of, "bedrock", "tokentokentoken==", "{}")),
        "8362eaf7a5ed35ec76ba98b5bcebd2e3d4f8c4d7f5bb78cd9408261fd5f58903"
    );
    let list = "https://bedrock.us-east-1.amazonaws.com/inference-profiles\
                ?type=SYSTEM_DEFINED&maxResults=1000&nextToken=a%2Fb%3D";
    assert_eq!(
        signature(&signed(parts("GET", list, &[]), "bedrock", "", "")),
        "4c10dcb4ed5c6258a8c63b7ebe5f053d2d5c24477115b9500dde4b2c7205fedc"
    );
}

#[test]
fn a_request_to_mantle_is_signed_as_the_sdk_of_openai_does() {
    let uri = "https://bedrock-mantle.us-east-1.api.aws/openai/v1/responses";
    let parts = parts("POST", uri, &[("content-type", "application/json")]);
    let parts =
        signed(parts, "bedrock-mantle", "fixture-session-token", r#"{"model":"gpt-4o","input":"hello"}"#);
    assert_eq!(
        parts.headers[header::AUTHORIZATION],
        "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20250102/us-east-1/bedrock-mantle/aws4_request, \
         SignedHeaders=content-type;host;x-amz-content-sha256;x-amz-date;x-amz-security-token, \
         Signature=dc20c8fbe516daf0ccae7e5b7a78fc2936870413a9f1af6e1b2d44b970ce411f"
    );
    assert_eq!(parts.headers["x-amz-date"], "20250102T030405Z");
    let hash = "50329e51ad520f21b77bad0b01999930ff556cd1bf18434701251ba6c9f877bc";
    assert_eq!(parts.headers["x-amz-content-sha256"], hash);
}

#[test]
fn what_the_agent_signed_with_goes() {
    let agents = [
        ("authorization", "AWS4-HMAC-SHA256 Credential=postern:a/20250101/r/s/aws4_request, Signature=00"),
        ("x-amz-security-token", "postern:a"),
        ("x-amz-date", "20250101T000000Z"),
        ("x-amz-content-sha256", "UNSIGNED-PAYLOAD"),
    ];
    let parts = signed(parts("POST", "https://a.example/", &agents), "bedrock", "", "{}");
    assert!(!parts.headers.contains_key("x-amz-security-token"));
    assert_eq!(parts.headers["x-amz-date"], "20250102T030405Z");
    assert_eq!(parts.headers["x-amz-content-sha256"].len(), 64);
    assert!(parts.headers[header::AUTHORIZATION].is_sensitive());
    assert_eq!(parts.headers.get_all(header::AUTHORIZATION).iter().count(), 1);
}

#[test]
fn a_header_is_signed_without_the_spaces_that_say_nothing() {
    let headers = [("x-amz-meta", "  a   b\tc "), ("x-amz-meta", "d")];
    let (lines, names) = canonical_headers(&parts("GET", "/", &headers), "a.example:8443");
    assert_eq!(lines, "host:a.example:8443\nx-amz-meta:a b c,d\n");
    assert_eq!(names, "host;x-amz-meta");
}

#[test]
fn s3_alone_takes_a_path_as_it_is() {
    assert_eq!(canonical_path("/a/../b//c%20d/", "bedrock"), "/b/c%2520d/");
    assert_eq!(canonical_path("/a/../b//c%20d/", "s3"), "/a/../b//c%20d/");
    assert_eq!(canonical_path("", "bedrock"), "/");
    assert_eq!(canonical_path("/\u{1234}", "bedrock"), "/%E1%88%B4");
    assert_eq!(canonical_query("b=2&a=%2f&a=&c"), "a=&a=%2F&b=2&c=");
}

#[test]
fn a_signature_of_the_agents_own_is_seen() {
    let signed = |uri: &str, value: &str| is_signed_by_agent(&parts("GET", uri, &[("authorization", value)]));
    assert!(signed("/", "AWS4-HMAC-SHA256 Credential=AKIA/1/r/s/aws4_request, Signature=1"));
    assert!(signed("/", "AWS4-ECDSA-P256-SHA256 Credential=AKIA/1/s/aws4_request, Signature=1"));
    assert!(signed("/?X-Amz-Signature=1", ""));
    assert!(signed("/?x%2Damz%2Dalgorithm=1", ""));
    assert!(!signed("/?a=b", "Bearer bedrock-api-key-x"));
}
